"""Fast weights and masks: a recurrence that decays as a matrix, what it costs, and stacks that mix it with attention."""

from typing import Any

import numpy as np

from attn_course.costs import hybrid_cache_bytes
from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import index, of, vector
from attn_course.reference import decay_matrix, linear_attention

equation = about("O7")


# ---- one decay for all features
@equation(
    "state-space-duality",
    r"O = \bigl( L \odot Q K^\top \bigr) V, \qquad L_{ij} = [\,j \le i\,] \prod_{l=j+1}^{i} a_l",
    uses=["linear-attention-with-decay"],
    assumes=["o_t = S_t^T q_t with S_t = a_t S_{t-1} + k_t v_t^T, S_0 = 0: one number a_t for all features"],
    wrong={
        "the gate of the writer too": "j+1 -> j",
        "added to the scores, as a mask is": r"L \odot Q K^\top -> L + Q K^\top",
        "the bracket moved in spite of the mask": r"\bigl( L \odot Q K^\top \bigr) V -> L\, Q\, (K^\top V)",
        "later keys grow instead": r"[\,j \le i\,] -> ",
    },
)
def a_recurrence_is_a_mask(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Unroll the recurrence: key j reaches query i through all decays in between. T steps of a state, or one masked matrix."""
    Q, K, V, a = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v)), rng.uniform(0.2, 1, size=T)
    output = linear_attention(Q, K, V, log_decay=np.log(a)[:, None], form="recurrent")
    return {"O": output, "Q": Q, "K": K, "V": V, "a": vector(a), "i": index(1, T), "j": index(1, T)}


@equation(
    "decay-matrix-inverse",
    r"\bigl( L^{-1} \bigr)_{ij} = [\,i = j\,] - a_i\, [\,i = j + 1\,]",
    uses=["state-space-duality"],
    wrong={
        "the gate of the writer": r"a_i\, -> a_j\,",
        "one over each entry": r"- a_i\, -> - \frac{1}{a_i}\,",
        "the other triangle": r"i = j + 1 -> j = i + 1",
    },
)
def the_inverse_has_two_diagonals(rng: np.random.Generator, T: int) -> Givens:
    """The state is x_t - a_t x_{t-1} = what is written: the recurrence solves the system whose matrix has these two diagonals."""
    a = rng.uniform(0.2, 0.9, size=T)
    return {"L": decay_matrix(np.log(a)), "a": vector(a)}


@equation(
    "state-space-block-rank",
    r"\mathrm{rank}(M) \le d_k",
    sizes="m n d_k, m >= d_k, n >= d_k",
    uses=["state-space-duality", "decay-through-a-midpoint"],
    assumes=["M: any block of L o Q K^T below the diagonal, m queries and n keys before them"],
    wrong={
        "1, as that of the mask": r"\le d_k -> \le 1",
        "at least d_k": r"\le d_k -> \ge d_k",
        "always d_k": r"\le d_k -> = d_k",
    },
)
def blocks_of_low_rank(rng: np.random.Generator, m: int, n: int, d_k: int, draw: int) -> Givens:
    """All that later queries learn of earlier keys passes through one state of d_k rows; softmax attention has no such bound."""
    T, seen = m + n, d_k if draw else d_k - 1
    Q, K = rng.normal(size=(T, d_k)), rng.normal(size=(T, seen)) @ rng.normal(size=(seen, d_k))
    decay = np.log(rng.uniform(0.6, 1, size=(T, 1)))
    whole = linear_attention(Q, K, np.eye(T), log_decay=decay, form="recurrent")  # what unit values return are the weights
    return {"M": whole[n:, :n], "d_k": d_k}


# ---- what it costs
def _gated_loop(q: Any, k: Any, v: Any, a: Any, S: Any) -> None:
    for t in range(len(k)):
        S = a[t][:, None] * S
        S = S + k[t][:, None] * (v[t] + k[t] @ S)[None, :]
        q[t] @ S


@equation(
    "gated-delta-multiplications",
    r"N = 4\, T d_k d_v",
    uses=["gated-delta-step", "linear-attention-flops"],
    assumes=["position by position: decay, ask, write, read; beta not counted"],
    wrong={
        "a gate is free": "4 -> 3",
        "as without correction": "4 -> 2",
        "only what the key touches": r"4\, T d_k d_v -> T (3\, d_k d_v + d_k)",
    },
)
def multiplications_of_a_step(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Each touches the whole state once; no addition comes with the decay, so that it is one FLOP of seven."""
    counted = multiplications(_gated_loop, (T, d_k), (T, d_k), (T, d_v), (T, d_k), (d_k, d_v))
    return {"N": counted, "T": T, "d_k": d_k, "d_v": d_v}


@equation(
    "hybrid-cache-share",
    r"\lim_{T \to \infty} \frac{b_{\mathrm{hybrid}}}{b_{\mathrm{full}}} = \frac{1}{r + 1}",
    uses=["kv-cache-bytes"],
    assumes=["r layers with a state of fixed size to each that attends to all T positions"],
    wrong={
        "one in r": r"\frac{1}{r + 1} -> \frac{1}{r}",
        "what the states save": r"\frac{1}{r + 1} -> \frac{r}{r + 1}",
        "a state costs nothing, nor does the rest": r"\frac{1}{r + 1} -> 0",
    },
)
def share_of_the_cache(rng: np.random.Generator, r: int, d_k: int, d_v: int) -> Givens:
    """States do not grow: in the end the layers that attend keep everything, 1 in 4 a quarter."""

    def kept(T: int, every: int) -> int:
        return hybrid_cache_bytes(int(T), 2 * (r + 1), every=every, n_heads=3, n_kv_heads=1, d_k=d_k, d_v=d_v)

    names = {r"b_{\mathrm{hybrid}}": of(lambda T: kept(T, r + 1), "T"), r"b_{\mathrm{full}}": of(lambda T: kept(T, 1), "T")}
    return names | {"T": 3, "r": r}
