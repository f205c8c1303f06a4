"""The delta rule: before a value is written under a key, what the state already holds there is taken away."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import narrowed, require_flags
from attn_course.reference.fast_weights import decay_between, decayed_scores, read_write
from attn_course.reference.sequences import Sequences, checked_form, checked_sequences, returned_state, starting_state


def delta_rule_attention(
    query: Float[np.ndarray, "*#batch len d_k"],
    key: Float[np.ndarray, "*#batch_key len d_k"],
    value: Float[np.ndarray, "*#batch_key len d_v"],
    beta: Float[np.ndarray, "*#batch_key len 1"],
    *,
    scale: float = 1.0,
    log_decay: Float[np.ndarray, "*#batch_key len d_decay"] | None = None,
    enable_gqa: bool = False,
    form: Literal["recurrent", "chunked"] = "recurrent",
    chunk: int = 64,
    initial_state: Float[np.ndarray, "*#batch_state d_k d_v"] | None = None,
    return_state: bool = False,
) -> Any:
    r"""Correct at each position what the state answers to the key, towards the value, and read it with the query.

    .. math:: D_t = \mathrm{diag}(e^{g_t})\,S_{t-1}, \qquad
              S_t = D_t + k_t\,\bigl(\beta_t\,(v_t - D_t^\top k_t)\bigr)^\top, \qquad o_t = \mathrm{scale} \cdot S_t^\top q_t

    Without decay the state is that of Eq. delta-rule; chunk by chunk it is Eqs. chunked-delta-rule and chunked-delta-outputs.

    `query`: one row per position; reads after its own position has written.
    `key`: where to write; of unit length in practice, which keeps the state from growing without bound.
    `beta`: how far to correct: 0 leaves the state, 1 makes it answer a unit key with the value exactly.
    `scale`: factor on the output.
    `log_decay`: the exponents g, at most 0; -inf forgets. None keeps everything.
    `enable_gqa`: the query has a multiple of the key's heads on axis -3; each key head has one state.
    `form`: position by position, or chunk by chunk: the same result.
    `chunk`: positions in a chunk.
    `initial_state`: S before the first position; zero if left out.
    `return_state`: also return the state after the last position.

    Returns `output` (*batch, len, d_v): in the common dtype of query, key and value, computed in at least float32;
    `state` (*batch, d_k, d_v): only with `return_state`. In the dtype of the output, or that of `initial_state` if it
    is wider.

    Raises TypeError if an array is not floating, or an option is of the wrong type; ValueError if shapes do not fit, a
    decay is positive, or an option is unknown.

    Schlag et al. (2021), arXiv:2102.11174; chunks by the WY form: Yang et al. (2024), arXiv:2406.06484; with one decay
    for all features: Yang et al. (2024), section 3.1, Eq. 10, arXiv:2412.06464, whose Eqs. 6 to 9 are the chunked form
    without decay (numbers of the published version). They write the transpose of S.

    >>> key, value, beta = np.array([[1.0], [1.0]]), np.array([[5.0], [7.0]]), np.array([[1.0], [0.5]])
    >>> delta_rule_attention(key, key, value, beta).ravel()
    array([5., 6.])
    """
    factor = checked_form(form, ("recurrent", "chunked"), chunk, scale)
    require_flags(enable_gqa=enable_gqa, return_state=return_state)
    if beta is None:
        raise TypeError("beta must be an ndarray of floats; got NoneType")
    sequences = checked_sequences(query, key, value, log_decay=log_decay, beta=beta, enable_gqa=enable_gqa)
    features = (key.shape[-1], value.shape[-1])
    state = starting_state("initial_state", initial_state, features, sequences)
    output, state = _recurrent(sequences, state) if form == "recurrent" else _chunked(sequences, state, chunk)
    result = narrowed(factor * output, sequences.dtype)
    return (result, returned_state(state, initial_state, features, sequences)) if return_state else result


@np.errstate(over="ignore", invalid="ignore")
def _recurrent(sequences: Sequences, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    query, key, value, log_decay, beta = sequences[:5]
    output = np.empty((*sequences.batch, *value.shape[-2:]), dtype=query.dtype)
    for t in range(value.shape[-2]):
        state = np.exp(log_decay[..., t, :, None]) * state
        answer = key[..., t, None, :] @ state  # (..., 1, d_v)
        state = state + key[..., t, :, None] * (beta[..., t, None, :] * (value[..., t, None, :] - answer))
        output[..., t, :] = (query[..., t, None, :] @ state)[..., 0, :]
    return output, state


def _chunked(sequences: Sequences, state: np.ndarray, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    output = np.empty((*sequences.batch, *sequences.value.shape[-2:]), dtype=sequences.value.dtype)
    for start in range(0, output.shape[-2], chunk):
        query, key, value, log_decay, beta = (array[..., start : start + chunk, :] for array in sequences[:5])
        written = pseudo_values(state, key, value, log_decay, beta)
        output[..., start : start + chunk, :], state = read_write(state, query, key, written, log_decay)
    return output, state


@np.errstate(over="ignore", invalid="ignore")
def pseudo_values(state: np.ndarray, key: np.ndarray, value: np.ndarray, log_decay: np.ndarray, beta: np.ndarray) -> np.ndarray:
    r"""Return what linear attention would have to write, for the delta rule to come out: U - W S.

    .. math:: u_i = \beta_i \Bigl(v_i - S^\top (\gamma_i \odot k_i) - \sum_{j < i} (k_i^\top \Gamma_{ij} k_j)\,u_j\Bigr)

    The sum over j makes this a triangular system, the same for values (U) and for decayed keys (W): neither needs the
    state, so every chunk can solve its own at once.
    """
    scores = beta * np.tril(decayed_scores(key, key, decay_between(log_decay)), -1)
    decayed_key = key * np.exp(log_decay.cumsum(axis=-2))
    solved = forward_substitution(scores, beta * np.concatenate([value, decayed_key], axis=-1))
    u, w = solved[..., : value.shape[-1]], solved[..., value.shape[-1] :]
    return u - w @ state


def forward_substitution(strictly_lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve (I + L) X = right, row by row.

    >>> forward_substitution(np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[2.0], [7.0]]))
    array([[2.],
           [1.]])
    """
    solution = right.copy()
    for row in range(1, right.shape[-2]):
        solution[..., row, :] -= (strictly_lower[..., row, None, :row] @ solution[..., :row, :])[..., 0, :]
    return solution
