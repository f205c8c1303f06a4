"""Fast weights and masks: a recurrence that decays as a matrix, what it costs, and stacks that mix it with attention."""

from typing import Any

import numpy as np

from attn_course.costs import hybrid_cache_bytes
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.formulas import index, of, vector
from attn_course.reference import decay_matrix, linear_attention

claim = about("O7")


# ---- one decay for all features
@claim("state-space-duality", rests_on="linear-attention-with-decay")
def _(normal, rng, T, d_k, d_v):
    r"""O = \bigl( L \odot Q K^\top \bigr) V, \qquad L_{ij} = [\,j \le i\,] \prod_{l=j+1}^{i} a_l
    where o_t = S_t^T q_t with S_t = a_t S_{t-1} + k_t v_t^T, S_0 = 0: one number a_t for all features
    Unroll the recurrence: key j reaches query i through all decays in between. T steps of a state, or one masked matrix.
        the gate of the writer too: j+1 -> j
        added to the scores, as a mask is: L \odot Q K^\top -> L + Q K^\top
        the bracket moved in spite of the mask: \bigl( L \odot Q K^\top \bigr) V -> L\, Q\, (K^\top V)
        later keys grow instead: [\,j \le i\,] ->
    """
    Q, K, V, a = normal(T, d_k), normal(T, d_k), normal(T, d_v), rng.uniform(0.2, 1, size=T)
    output = linear_attention(Q, K, V, log_decay=np.log(a)[:, None], form="recurrent")
    return {"O": output, "Q": Q, "K": K, "V": V, "a": vector(a), "i": index(1, T), "j": index(1, T)}


@claim("decay-matrix-inverse", rests_on="state-space-duality")
def _(rng, T):
    r"""\bigl( L^{-1} \bigr)_{ij} = [\,i = j\,] - a_i\, [\,i = j + 1\,]
    The state is x_t - a_t x_{t-1} = what is written: the recurrence solves the system whose matrix has these two diagonals.
        the gate of the writer: a_i\, -> a_j\,
        one over each entry: - a_i\, -> - \frac{1}{a_i}\,
        the other triangle: i = j + 1 -> j = i + 1
    """
    a = rng.uniform(0.2, 0.9, size=T)
    return {"L": decay_matrix(np.log(a)), "a": vector(a)}


@claim("state-space-block-rank", rests_on="state-space-duality decay-through-a-midpoint", sizes="m n d_k, m >= d_k, n >= d_k")
def _(normal, rng, m, n, d_k, draw):
    r"""\mathrm{rank}(M) \le d_k
    where M: any block of L o Q K^T below the diagonal, m queries and n keys before them
    All that later queries learn of earlier keys passes through one state of d_k rows; softmax attention has no such bound.
        1, as that of the mask: \le d_k -> \le 1
        at least d_k: \le d_k -> \ge d_k
        always d_k: \le d_k -> = d_k
    """
    T, seen = m + n, d_k if draw else d_k - 1
    Q, K = normal(T, d_k), normal(T, seen) @ normal(seen, d_k)
    decay = np.log(rng.uniform(0.6, 1, size=(T, 1)))
    whole = linear_attention(Q, K, np.eye(T), log_decay=decay, form="recurrent")  # what unit values return are the weights
    return {"M": whole[n:, :n], "d_k": d_k}


# ---- what it costs
def _gated_loop(q: Any, k: Any, v: Any, a: Any, S: Any) -> None:
    for t in range(len(k)):
        S = a[t][:, None] * S
        S = S + k[t][:, None] * (v[t] + k[t] @ S)[None, :]
        q[t] @ S


@claim("gated-delta-multiplications", rests_on="gated-delta-step linear-attention-flops")
def _(rng, T, d_k, d_v):
    r"""N = 4\, T d_k d_v
    where position by position: decay, ask, write, read; beta not counted
    Each touches the whole state once; no addition comes with the decay, so that it is one FLOP of seven.
        a gate is free: 4 -> 3
        as without correction: 4 -> 2
        only what the key touches: 4\, T d_k d_v -> T (3\, d_k d_v + d_k)
    """
    counted = multiplications(_gated_loop, (T, d_k), (T, d_k), (T, d_v), (T, d_k), (d_k, d_v))
    return {"N": counted, "T": T, "d_k": d_k, "d_v": d_v}


@claim("hybrid-cache-share", rests_on="kv-cache-bytes")
def _(rng, r, d_k, d_v):
    r"""\lim_{T \to \infty} \frac{b_{\mathrm{hybrid}}}{b_{\mathrm{full}}} = \frac{1}{r + 1}
    where r layers with a state of fixed size to each that attends to all T positions
    States do not grow: in the end the layers that attend keep everything, 1 in 4 a quarter.
        one in r: \frac{1}{r + 1} -> \frac{1}{r}
        what the states save: \frac{1}{r + 1} -> \frac{r}{r + 1}
        a state costs nothing, nor does the rest: \frac{1}{r + 1} -> 0
    """

    def kept(T: int, every: int) -> int:
        return hybrid_cache_bytes(int(T), 2 * (r + 1), every=every, n_heads=3, n_kv_heads=1, d_k=d_k, d_v=d_v)

    names = {r"b_{\mathrm{hybrid}}": of(lambda T: kept(T, r + 1), "T"), r"b_{\mathrm{full}}": of(lambda T: kept(T, 1), "T")}
    return names | {"T": 3, "r": r}
