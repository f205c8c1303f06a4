"""Attention without softmax: linear attention in three forms, its costs and its memory."""

import math
from itertools import product
from typing import Any

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import inputs, named
from attn_course.formulas import columns, function, matrices, outcomes
from attn_course.reference import elu_features, linear_attention

claim = about("K2")


# ---- brackets
@claim("linear-attention-by-associativity", whatever={r"\phi": "products of matrices are associative, whatever the features are"})
def _(normal, T_q, T_k, d_k, d_v):
    r"""\bigl( \phi(Q)\, \phi(K)^\top \bigr)\, V = \phi(Q)\, \bigl( \phi(K)^\top V \bigr)
    where no softmax between the products
    Matrix products are associative: the T x T matrix need never exist.
        X29: with a softmax: \mathrm{softmax}\bigl( \phi(Q)\, \phi(K)^\top \bigr)\, V = \phi(Q)\, \bigl( \phi(K)^\top V \bigr)
        the features of the keys forgotten: \phi(K)^\top V -> K^\top V
        the products in another order: \phi(K)^\top V -> V\, \phi(K)^\top
    """
    _, K, V = inputs(normal, T_k, T_k, d_k, d_v)
    return {"Q": normal(T_q, d_k), "K": K, "V": V, r"\phi": function(elu_features)}


@claim(
    "linear-attention-mixes-features",
    serves="A1 K2",
    rests_on="linear-attention-two-readings absorbed-score linear-attention-by-associativity",
)
def _(normal, T, d, d_k, d_v):
    r"""(X W_Q)\, (X W_K)^\top X W_V = X\, W(X), \qquad W(X) = W_Q W_K^\top X^\top X\, W_V
    Bracketed from the right, the data make a matrix that acts on features; softmax attention can only be read as mixing positions.
        positions instead of features: X^\top X\, -> X\, X^\top\,
        queries and keys exchanged: W_Q W_K -> W_K W_Q
        a fixed matrix: X^\top X\, ->
    """
    return named(normal, X=(T, d), W_Q=(d, d_k), W_K=(d, d_k), W_V=(d, d_v))


@claim(
    "exponential-scores-full-rank",
    serves="K2 K1",
    rests_on="linear-attention-by-associativity",
    sizes="T m d, T > m",
)
def _(normal, T, m, d, draw):
    r"""\mathrm{rank}\bigl( \phi(Q)\, \phi(K)^\top \bigr) \le m < T = \mathrm{rank}\bigl( e^{Q K^\top} \bigr)
    where m features ;; e to each entry ;; T different queries and keys in general position
    What blocks re-bracketing is not the cost of exp, but that no narrow product equals its matrix of weights.
        X29: exp keeps the rank: \mathrm{rank}( \phi(Q)\, \phi(K)^\top ) \le m = \mathrm{rank}( e^{Q K^\top} ) < T
        the ranks exchanged: \mathrm{rank}( e^{Q K^\top} ) \le m < T = \mathrm{rank}( \phi(Q)\, \phi(K)^\top )
    """
    Q, K = 1.5 * normal(2, T, d)
    W = normal(d, m)
    if draw == 1:  # one feature, m times
        W[:] = W[:, :1]
    return {"Q": Q, "K": K, r"\phi": function(lambda X: elu_features(X @ W)), "m": m, "T": T}


def _flops(T: int, d_k: int, d_v: int) -> tuple[int, int]:
    """Count the FLOPs of both brackets by doing them, a multiply-add as 2."""
    shapes = (T, d_k), (T, d_k), (T, d_v)
    scores_first = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes)
    return 2 * scores_first, 2 * multiplications(lambda q, k, v: q @ (k.T @ v), *shapes)


@claim("linear-attention-flops", rests_on="linear-attention-by-associativity")
def _(rng, T, d_k, d_v):
    r"""F_{\mathrm{scores\ first}} = 2\, T^2 (d_k + d_v), \qquad F_{\mathrm{state\ first}} = 4\, T d_k d_v
    where no mask ;; features already computed, d_k of them ;; a multiply-add counts 2
    T^2 against T: two products of T x T, or two with a d_k x d_v matrix.
        always T times less: 4\, T d_k d_v -> 2\, T (d_k + d_v)
        T^2 gone in any order: 2\, T^2 (d_k + d_v) -> 4\, T d_k d_v
    """
    names = r"F_{\mathrm{scores\ first}}", r"F_{\mathrm{state\ first}}"
    return dict(zip(names, _flops(T, d_k, d_v), strict=True)) | {"T": T, "d_k": d_k, "d_v": d_v}


@claim("linear-attention-crossover", rests_on="linear-attention-flops")
def _(rng, d_k, d_v):
    r"""T^\ast = \frac{2\, d_k d_v}{d_k + d_v}
    where equal FLOPs; what hardware does with them is another matter
    Equate the two of Eq. linear-attention-flops: with d_k = d_v = d at T = d. Shorter sequences are cheaper with scores first.
        T = d_k d_v: T^\ast = d_k d_v
        the arithmetic mean of the widths: T^\ast = \frac{d_k + d_v}{2}
    """
    more = [np.subtract(*_flops(T, d_k, d_v)) for T in (1, 2, 3)]
    return {r"T^\ast": np.roots(np.polyfit((1, 2, 3), more, 2)).max(), "d_k": d_k, "d_v": d_v}


# ---- three equal forms
def _outputs_and_states(ends: range, Q: np.ndarray, K: np.ndarray, V: np.ndarray, **options: Any) -> tuple[np.ndarray, list[Any]]:
    """Return the outputs of all positions, and the state after so many of them, each from a run of its own."""
    runs = [linear_attention(Q[:end], K[:end], V[:end], return_state=True, **options) for end in ends]
    return runs[-1][0], [state for _, state in runs]


@claim("recurrent-linear-attention", rests_on="linear-attention-by-associativity")
def _(normal, T, d_k, d_v, draw):
    r"""S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \qquad o_t = S_t^\top \phi(q_t) = \sum_{j \le t} \bigl( \phi(q_t) \cdot \phi(k_j) \bigr)\, v_j
    where S_0 = 0 ;; causal
    The state is a sum of outer products: the past costs d_k d_v numbers, however long it is. A network that programs fast weights.
        the state read before it is written: S_t^\top \phi(q_t) = \sum_{j \le t} -> S_{t-1}^\top \phi(q_t) = \sum_{j < t}
        without the causal mask: \sum_{j \le t} -> \sum_j
    """
    Q, K, V = inputs(normal, T, T, d_k, d_v)
    phi = np.tanh if draw == 2 else elu_features
    o, S = _outputs_and_states(range(T + 1), Q, K, V, feature_map=phi)
    lists = {"q": columns(Q), "k": columns(K), "v": columns(V), "o": columns(o)}
    return lists | {"S": matrices(S, start=0, states=True), r"\phi": function(phi)}


@claim(
    "normalised-linear-attention",
    rests_on="softmax-as-kernel-smoother recurrent-linear-attention",
    beside=(r"n_t = \sum_{j \le t} \phi(k_j)",),
)
def _(normal, T, d_k, d_v):
    r"""o_t = \frac{S_t^\top \phi(q_t)}{n_t \cdot \phi(q_t)}, \qquad n_t = n_{t-1} + \phi(k_t)
    where phi > 0, so that the denominator is not 0
    Eq. softmax-as-kernel-smoother with another kernel: the denominator is the same sum with every value 1.
        only the last key is counted: n_{t-1} + ->
        the denominator of the step before: n_t \cdot -> n_{t-1} \cdot
    """
    Q, K, V = inputs(normal, T, T, d_k, d_v)
    o, ends = _outputs_and_states(range(T + 1), Q, K, V, feature_map=elu_features, normalize=True)
    S, n = zip(*ends, strict=True)
    states = {"S": matrices(S, start=0, states=True), "n": columns(n, start=0, states=True)}
    return states | {"q": columns(Q), "k": columns(K), "o": columns(o), r"\phi": function(elu_features)}


@claim("chunked-linear-attention", rests_on="recurrent-linear-attention")
def _(normal, n, C, d_k, d_v):
    r"""O_c = Q_c\, S_c + \bigl( Q_c K_c^\top \odot M \bigr) V_c, \qquad S_{c+1} = S_c + K_c^\top V_c
    where features in Q, K ;; M_ij = 1 for j <= i, else 0, within one chunk
    Between chunks recurrent, inside them parallel: matrix products of a useful size, and work that still grows like T.
        the past forgotten: Q_c\, S_c + ->
        written before it is read: O_c = Q_c\, S_{c+1} + ( Q_c K_c^\top \odot M ) V_c, \qquad S_{c+1} = S_c + K_c^\top V_c
        the mask looks ahead: M -> M^\top
    """
    Q, K, V = inputs(normal, n * C, n * C, d_k, d_v)
    outputs, S = _outputs_and_states(range(0, n * C + 1, C), Q, K, V, form="recurrent", initial_state=normal(d_k, d_v))
    chunks = {name: matrices(array.reshape(n, C, -1)) for name, array in {"O": outputs, "Q": Q, "K": K, "V": V}.items()}
    return chunks | {"S": matrices(S, states=True), "M": np.tri(C)}


@claim("linear-attention-with-decay", rests_on="recurrent-linear-attention")
def _(normal, rng, T, d_k, d_v):
    r"""S_t = \mathrm{diag}(a_t)\, S_{t-1} + k_t v_t^\top, \qquad
        o_t = \sum_{j \le t} \Bigl( \sum_r q_{t,r}\, k_{j,r} \prod_{l=j+1}^{t} a_{l,r} \Bigr) v_j
    where S_0 = 0 ;; o_t = S_t^T q_t ;; 0 < a <= 1: what each feature keeps at each step
    A gate that forgets: key j reaches query t weakened by all gates in between, its own not among them.
        the gate of step j counted too: j+1 -> j
        the gate after the write: S_{t-1} + k_t v_t^\top -> \bigl( S_{t-1} + k_t v_t^\top \bigr)
    """
    Q, K, V = inputs(normal, T, T, d_k, d_v)
    a = rng.uniform(0.05, 1, size=(T, d_k))
    o = linear_attention(Q, K, V, log_decay=np.log(a), form="recurrent")
    S = [linear_attention(Q[:t], K[:t], V[:t], log_decay=np.log(a[:t]), return_state=True)[1] for t in range(T + 1)]
    lists = {"q": columns(Q), "k": columns(K), "v": columns(V), "a": columns(a), "o": columns(o)}
    return lists | {"S": matrices(S, start=0, states=True)}


# ---- what the state can hold
@claim("recall-signal-and-interference", rests_on="recurrent-linear-attention")
def _(normal, n, d_k, d_v):
    r"""S^\top k_i = |k_i|^2\, v_i + \sum_{j \ne i} (k_j \cdot k_i)\, v_j, \qquad S = \sum_j k_j v_j^\top
    What is read back is what was written, plus every other value as far as its key overlaps. Orthonormal keys read exactly.
        the value alone: v_i + \sum_{j \ne i} (k_j \cdot k_i)\, v_j -> v_i
        the value once: |k_i|^2\, v_i -> v_i
    """
    _, K, V = inputs(normal, n, n, d_k, d_v)
    return {"S": linear_attention(K, K, V, return_state=True)[1], "k": columns(K), "v": columns(V)}


@claim("interference-of-random-keys", rests_on="recall-signal-and-interference")
def _(normal, draw):
    r"""\mathbb{E}\, \Bigl\| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \Bigr\|^2 = \frac{n - 1}{d_k}\, \mathbb{E} \|v_i\|^2
    where keys independent, uniform on the unit sphere ;; values independent of them and of each other, mean 0
    E (k . k')^2 = 1 / d_k for unit vectors, and independent terms add: the noise is as large as the signal at n = d_k + 1.
        no noise below d_k pairs:
            \mathbb{E}\, \| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \|^2 = \frac{\max(0, n - d_k)}{d_k}\, \mathbb{E} \|v_i\|^2
        1 / d_k^2 for 1 / d_k: \mathbb{E}\, \| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \|^2 = \frac{n - 1}{d_k^2} \mathbb{E} \|v_i\|^2

    Each key is one of the d_k + 1 corners of a regular simplex: their squares have the mean that the sphere has. One corner is turned
    round, so that the mean of the keys is not 0: nothing rests on it.
    """
    n, d_k = ((3, 4), (4, 2), (3, 5))[draw]
    across = np.linalg.qr(np.hstack([np.ones((d_k + 1, 1)), normal(d_k + 1, d_k)]))[0][:, 1:]
    corners = math.sqrt(1 + 1 / d_k) * across * np.array([-1] + [1] * d_k)[:, None]
    values = normal(3, 2)
    k = np.array(list(product(corners, repeat=n)))
    v = np.array(list(product(values - values.mean(axis=0), repeat=n)))
    uniform = [np.full(len(each), 1 / len(each)) for each in (k, v)]
    random = {"k": outcomes(uniform[0], columns(k), group="keys"), "v": outcomes(uniform[1], columns(v), group="values")}
    return random | {"n": n, "d_k": d_k}
