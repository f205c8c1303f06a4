"""Attention without softmax: one state that is written by every key and read by every query, in three equal forms."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, described, narrowed, require_flags
from attn_course.reference.fast_weights import read_write
from attn_course.reference.sequences import Sequences, checked_form, checked_sequences, returned_state, starting_state

FeatureMap = Callable[[np.ndarray], np.ndarray]


def linear_attention(
    query: Float[np.ndarray, "*#batch q_len d_k"],
    key: Float[np.ndarray, "*#batch_key kv_len d_k"],
    value: Float[np.ndarray, "*#batch_key kv_len d_v"],
    *,
    feature_map: FeatureMap | None = None,
    is_causal: bool = True,
    normalize: bool = False,
    scale: float = 1.0,
    log_decay: Float[np.ndarray, "*#batch_key kv_len d_decay"] | None = None,
    enable_gqa: bool = False,
    form: Literal["parallel", "recurrent", "chunked"] = "parallel",
    chunk: int = 64,
    initial_state: Any = None,
    return_state: bool = False,
) -> Any:
    r"""Write each value under its key into a state, let the state decay, and read it with each query.

    .. math:: S_t = \mathrm{diag}(e^{g_t})\,S_{t-1} + \phi(k_t)\,v_t^\top, \qquad o_t = \mathrm{scale} \cdot S_t^\top \phi(q_t)

    Without decay this is Eq. recurrent-linear-attention, with it Eq. linear-attention-with-decay, normalised Eq.
    normalised-linear-attention, in chunks Eq. chunked-linear-attention; all keys at once,
    not causally, Eq. linear-attention-by-associativity.

    `query`: one row per position that reads; as many as keys if causal.
    `feature_map`: the map phi of queries and keys, (..., len, d_k) to (..., len, d_phi); the identity if left out.
    `is_causal`: whether a query reads what was written up to its own position; else it reads everything.
    `normalize`: divide by z_t . phi(q_t), where z sums the features of the keys as S does; needs a `feature_map`.
    `scale`: factor on the output.
    `log_decay`: the exponents g, at most 0; -inf forgets. None keeps everything.
    `enable_gqa`: the query has a multiple of the key's heads on axis -3; each key head has one state.
    `form`: all pairs of positions at once, position by position, or chunk by chunk: the same result.
    `chunk`: positions in a chunk.
    `initial_state` (*batch, d_phi, d_v): S before the first position, zero if left out; with `normalize` the pair (S,
    z).
    `return_state`: also return the state after the last position.

    Returns `output` (*batch, q_len, d_v): in the common dtype of query, key and value, computed in at least float32; 0
    where the normaliser is 0; `state` (*batch, d_phi, d_v): only with `return_state`. In the dtype of the output, or
    that of `initial_state` if it is wider.

    Raises TypeError if an array is not floating, or an option is of the wrong type; ValueError if shapes do not fit, a
    decay is positive, an option is unknown, `normalize` has no feature map, or a call that is not causal asks for
    another form, a decay or a state.

    Katharopoulos et al. (2020), arXiv:2006.16236; as fast weights: Schlag et al. (2021), arXiv:2102.11174; with decay,
    and in chunks: Yang et al. (2023), arXiv:2312.06635. The parallel form costs O(len^2), the others O(len).

    >>> query, value = np.array([[1.0], [1.0], [1.0]]), np.array([[1.0], [10.0], [100.0]])
    >>> linear_attention(query, query, value).ravel()
    array([  1.,  11., 111.])
    >>> linear_attention(query, query, value, log_decay=np.log(np.full((3, 1), 0.5)), form="recurrent").ravel()
    array([  1.  ,  10.5 , 105.25])
    """
    factor = checked_form(form, ("parallel", "recurrent", "chunked"), chunk, scale)
    require_flags(is_causal=is_causal, normalize=normalize, enable_gqa=enable_gqa, return_state=return_state)
    _check_options(feature_map, is_causal, normalize, log_decay, form, initial_state, return_state)
    wide_query, wide_key, _ = checked_floats(query=query, key=key, value=value)
    sequences = checked_sequences(
        _mapped("query", feature_map, wide_query),
        _mapped("key", feature_map, wide_key),
        value,
        log_decay=log_decay,
        is_causal=is_causal,
        enable_gqa=enable_gqa,
        dtype=np.result_type(query, key, value),
    )
    if normalize:  # z is the state of a value that is always 1
        sequences = sequences._replace(value=np.insert(sequences.value, value.shape[-1], 1.0, axis=-1))
    state = _start(initial_state, normalize, sequences)
    if not is_causal:
        with np.errstate(over="ignore", invalid="ignore"):
            output = sequences.query @ (sequences.key.swapaxes(-1, -2) @ sequences.value)
    elif form == "recurrent":
        output, state = _recurrent(sequences, state)
    else:
        output, state = _chunked(sequences, state, chunk if form == "chunked" else max(key.shape[-2], 1))
    result = narrowed(factor * (_divided(output) if normalize else output), sequences.dtype)
    return (result, _finish(state, initial_state, normalize, sequences)) if return_state else result


@np.errstate(over="ignore", invalid="ignore")
def _recurrent(sequences: Sequences, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    query, key, value, log_decay = sequences[:4]
    output = np.empty((*sequences.batch, *value.shape[-2:]), dtype=query.dtype)
    for t in range(value.shape[-2]):
        state = np.exp(log_decay[..., t, :, None]) * state + key[..., t, :, None] * value[..., t, None, :]
        output[..., t, :] = (query[..., t, None, :] @ state)[..., 0, :]
    return output, state


def _chunked(sequences: Sequences, state: np.ndarray, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    value = sequences.value
    output = np.empty((*sequences.batch, *value.shape[-2:]), dtype=value.dtype)
    for start in range(0, value.shape[-2], chunk):
        query, key, values, log_decay = (array[..., start : start + chunk, :] for array in sequences[:4])
        output[..., start : start + chunk, :], state = read_write(state, query, key, values, log_decay)
    return output, state


@np.errstate(over="ignore", invalid="ignore")
def _divided(output: np.ndarray) -> np.ndarray:
    """Divide by the last feature, z . phi(q), with 0 where that is 0."""
    numerator, normaliser = output[..., :-1], output[..., -1:]
    return np.where(normaliser == 0.0, 0.0, numerator / np.where(normaliser == 0.0, 1.0, normaliser)).astype(output.dtype)


def _start(initial_state: Any, normalize: bool, sequences: Sequences) -> np.ndarray:
    """S, or S with z as its last column."""
    d_phi, d_v = sequences.key.shape[-1], sequences.value.shape[-1]
    if not normalize:
        return starting_state("initial_state", initial_state, (d_phi, d_v), sequences)
    sums, counts = (None, None) if initial_state is None else initial_state
    s = starting_state("initial_state[0]", sums, (d_phi, d_v - 1), sequences)
    z = starting_state("initial_state[1]", counts, (d_phi,), sequences)
    return np.concatenate([s, z[..., None]], axis=-1)


def _finish(state: np.ndarray, initial_state: Any, normalize: bool, sequences: Sequences) -> Any:
    d_phi, d_v = state.shape[-2:]
    if not normalize:
        return returned_state(state, initial_state, (d_phi, d_v), sequences)
    sums, counts = (None, None) if initial_state is None else initial_state
    s = returned_state(state[..., :-1], sums, (d_phi, d_v - 1), sequences)
    return s, returned_state(state[..., -1], counts, (d_phi,), sequences)


def _mapped(name: str, feature_map: FeatureMap | None, array: np.ndarray) -> np.ndarray:
    if feature_map is None:
        return array
    features = feature_map(array)
    floating = isinstance(features, np.ndarray) and np.issubdtype(features.dtype, np.floating)
    if not floating or features.shape[:-1] != array.shape[:-1]:
        got = f"{described(features)} of shape {np.shape(features)}"
        raise ValueError(f"feature_map must return an ndarray of floats, {(*array.shape[:-1], 'd_phi')} for the {name}; got {got}")
    return features


def _check_options(
    feature_map: Any, is_causal: bool, normalize: bool, log_decay: Any, form: str, initial_state: Any, return_state: bool
) -> None:
    if feature_map is not None and not callable(feature_map):
        raise TypeError(f"feature_map must be callable or None; got {described(feature_map)}")
    if normalize and feature_map is None:
        raise ValueError("normalize needs a feature_map; got None")
    if normalize and initial_state is not None and not (isinstance(initial_state, tuple) and len(initial_state) == 2):
        raise TypeError(f"initial_state must be a pair (S, z) with normalize; got {described(initial_state)}")
    if not is_causal:
        asked = {"form": form != "parallel", "log_decay": log_decay is not None, "initial_state": initial_state is not None}
        for name, wrong in {**asked, "return_state": return_state}.items():
            if wrong:
                raise ValueError(f'is_causal=False allows form="parallel" only, without decay and states; got {name}')
