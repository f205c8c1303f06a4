"""Residuals, what attention learns and shows, and how parallel it is."""

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.drawing import Normal, one_head, projections
from attn_course.formulas import function, index, matrices
from attn_course.reference import attention

claim = about("E4")


# ---- Attention replaces, the residual updates
@claim("residual-stream", serves="E5", rests_on="self-attention")
def _(normal, L, T, d_model, d_k):
    r"""X_L = X_0 + \sum_{l=1}^{L} Z_l(X_{l-1}), \qquad X_l = X_{l-1} + Z_l(X_{l-1})
    where d_v = d_model
    Unroll the recursion: the input stays in the sum, and each layer adds what it read from the layer below.
        attention updates the token by itself: X_{l-1} + Z_l -> Z_l
        every layer reads the input: all (X_{l-1}) -> (X_0)
    """
    layers = [projections(normal, d_model, d_model, d_k, d_model) for _ in range(L)]
    X = [normal(T, d_model)]
    for layer in layers:
        layer["W_V"] /= d_model
        X.append(X[-1] + one_head(X[-1], X[-1], **layer))
    return {
        "X": matrices(np.stack(X), start=0),
        "Z": function(lambda number, x: one_head(x, x, **layers[number - 1])),
        "L": L,
        "l": index(1, L),
    }


# ---- "It" and "the cat": what is learned, and what may not be concluded
@claim("other-weights-same-output", serves="E2", rests_on="attention", equivalent={r"P + N -> P - N": "with N, -N fulfils the premise"})
def _(normal, rng, T_q, d_v, n, draw):
    r"""N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad (P + N)\, [\,V \;\; \mathbf{1}\,] = P\, [\,V \;\; \mathbf{1}\,]
    where T > d_v + 1 tokens, so that such N exist ;; N small enough to keep P + N >= 0
    V and the row sums are d_v + 1 conditions on T weights. A map of weights is one of many that give the output, not its explanation.
        X31: the output tells the weights: N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad P + N = P
        X31: the highest stays: N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad \arg\max_j (P + N)_{ij} = \arg\max_j P_{ij}
        equal row sums are enough: N\, [\,V \;\; \mathbf{1}\,] -> N\, \mathbf{1}
        rows of any sum: N\, [\,V \;\; \mathbf{1}\,] -> N\, V
    """
    Q, K, V = normal(T_q, 2), normal(d_v + 1 + n, 2), normal(d_v + 1 + n, d_v)
    P = attention(Q, K, V, return_weights=True)[1]
    seen = np.hstack([V, np.ones((len(V), 1))])[:, (slice(None), slice(d_v), slice(d_v, None))[draw]]  # all, V alone, the sums alone
    N = normal(T_q, n) @ np.linalg.svd(seen.T)[2][-n:]  # n directions are left that nobody sees
    N *= np.min(P / np.maximum(-N, 1e-9), axis=1, keepdims=True)
    if draw == 2 and rng.integers(2):  # a near miss, or one in the last row only
        N *= 1e-5
    elif draw == 2:
        N[:-1] = 0
    return {"P": P, "N": N, "V": V}


# ---- Co-occurrence: features as tokens
def features(normal: Normal, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n features of m observations each, with mean 0 and mean square 1, and their correlations."""
    data = normal(m, n) @ normal(n, n) + normal(n)
    return np.ascontiguousarray(((data - data.mean(axis=0)) / data.std(axis=0)).T), np.asarray(np.corrcoef(data, rowvar=False))


@claim(
    "feature-weights-from-correlations",
    serves="E3",
    rests_on="attention-weights self-attention-without-projections",
    equivalent={r"r_{a b} -> r_{b a}": "correlations are symmetric", r"r_{a c} -> r_{c a}": "correlations are symmetric"},
)
def _(normal, m, n):
    r"""p_{ab} = \frac{e^{\sqrt{m}\, r_{ab}}}{\sum_{c} e^{\sqrt{m}\, r_{ac}}} > 0
    where tokens = features: m observations each, with mean 0 and mean square 1 ;; r_ab = their correlation
    Rows must be features, if features are to be paired; then x_a . x_b = m r_ab, and a score is a correlation, rescaled.
        X27: weights are correlations, scaled: p_{ab} = \frac{\sqrt{m}\, r_{ab}}{\sum_{c} \sqrt{m}\, r_{ac}} > 0
        X27: symmetric, as correlations are: r_{ac} -> r_{bc}
        a sum of m products, not scaled: all e^{\sqrt{m}\, -> e^{m\,

    Rows sum to 1, an opposite feature gets next to nothing, each feature prefers itself.
    """
    x, r = features(normal, m, n)
    return {"p": attention(x, x, x, return_weights=True)[1], "r": r, "m": m}


# ---- All positions at once
def recurrent_products(x: np.ndarray, w_hidden: np.ndarray, w_input: np.ndarray) -> np.ndarray:
    """Apply the two matrices of an RNN to T vectors each."""
    state = x[0]
    for token in x:
        state = state @ w_hidden + token @ w_input
    return state


@claim("attention-and-rnn-flops", rests_on="attention-flops self-attention")
def _(rng, T, d, draw):
    r"""\text{FLOPs}_{\text{attention}} = 6\,T d^2 + 4\,T^2 d, \qquad \text{FLOPs}_{\text{RNN}} = 4\,T d^2
    where d = d_model = d_k = d_v = hidden size ;; a multiplication and its addition count 2; matrix products only
    Three projections of T tokens and Eq. attention-flops; for the RNN two matrices, applied to T vectors each.
        cheaper because parallel:
            \text{FLOPs}_{\text{attention}} = 6\,T d^2 + 4\,T^2 d < 4\,T d^2 = \text{FLOPs}_{\text{RNN}}
        linear in T: the projections alone:
            + 4\,T^2 d ->
    """
    T, square = (T, 1, 2)[draw], (d, d)
    parallel = multiplications(lambda x, a, b, c: (x @ a @ (x @ b).T) @ (x @ c), (T, d), square, square, square)
    recurrent = multiplications(recurrent_products, (T, d), square, square)
    return {r"\text{FLOPs}_{\text{attention}}": 2 * parallel, r"\text{FLOPs}_{\text{RNN}}": 2 * recurrent, "T": T, "d": d}


@claim("attention-and-rnn-depth", rests_on="self-attention")
def _(rng, T, d, draw):
    r"""\text{depth}_{\text{attention}} = 3, \qquad \text{depth}_{\text{RNN}} = T
    where depth = matrix products that must wait for each other ;; softmax and tanh go with the product before them
    Projections, scores, output: three in a row for any length. A state of the RNN needs the one before: more processors do not help.
        a long sequence makes attention deep too: 3 -> T
        an RNN halves its inputs again and again: T -> \log_2 T
    """
    T = (T, 1, 2)[draw]
    depths = {r"\text{depth}_{\text{attention}}": traced_attention(T, d)[1], r"\text{depth}_{\text{RNN}}": traced_rnn(T, d)[1]}
    return {**depths, "T": T}


def traced_attention(T: int, d: int) -> tuple[int, int]:
    """Return how many numbers a layer of attention moves, and how deep it is."""

    def layer(x: Traced, a: Traced, b: Traced, c: Traced) -> Traced:
        return ((x @ a) @ (x @ b).T).elementwise() @ (x @ c)

    return traced(layer, (T, d), (d, d), (d, d), (d, d))


def traced_rnn(T: int, d: int) -> tuple[int, int]:
    """Return how many numbers a recurrent layer moves, and how deep it is."""

    def layer(state: Traced, w_hidden: Traced, w_input: Traced, *tokens: Traced) -> Traced:
        for token in tokens:
            state = (state @ w_hidden).elementwise(token @ w_input)
        return state

    return traced(layer, (1, d), (d, d), (d, d), *[(1, d)] * T)


@claim("attention-and-rnn-traffic", rests_on="attention-traffic attention-and-rnn-depth")
def _(rng, T, d, draw):
    r"""\text{moved}_{\text{attention}} = 3 d^2 + 10\, T d + 4\, T^2, \qquad \text{moved}_{\text{RNN}} = 2\,T d^2 + 7\, T d
    where numbers, not bytes ;; each operation reads its inputs from memory and writes its result there
        ;; sizes as in {eq}`attention-and-rnn-flops`
    The RNN reads its matrices again at every step, attention reads its own once and moves the T x T weights four times instead.
        the RNN reads its matrices once: 2\,T d^2 -> 2\, d^2
        nothing of size T^2: d + 4\, T^2 -> d
    """
    T = (T, 1, 2)[draw]
    moved = {r"\text{moved}_{\text{attention}}": traced_attention(T, d)[0], r"\text{moved}_{\text{RNN}}": traced_rnn(T, d)[0]}
    return {**moved, "T": T, "d": d}
