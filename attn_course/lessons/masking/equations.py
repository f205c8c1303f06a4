"""Masking: what minus infinity does, causal masks, leaks.

Symbolic statements use n = 3 scores of one query; the set A of allowed keys is {1, 2}.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import sympy
from sympy import Matrix, exp, log, symbols

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.derivatives import jacobian
from attn_course.equations.matrices import minus_infinity_where_hidden, random_mask, weights_of
from attn_course.equations.points import score_vectors
from attn_course.equations.stated import Statement, equation
from attn_course.equations.symbols import column, positive_symbols, real_symbols, softmax_symbols, total

s, v, a = real_symbols("s", 3), real_symbols("v", 3), positive_symbols("a", 3)
c = sympy.Symbol("c", positive=True)
w = softmax_symbols(s)
kept = (1, 1, 0)  # [j in A]
_Layer: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


# ---- 7.1 what adding minus infinity does


@equation(
    "score-bias-is-factor",
    r"\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}}",
    rows=["G1"],
    uses=["softmax"],
    assumes=["a > 0"],
    scope="n = 3",
)
def bias_is_a_factor() -> Sides:
    """What is added to a score multiplies its key's share before normalisation."""
    return _weights_with_bias(), Matrix(3, 1, lambda j, _: a[j] * exp(s[j]) / total(a[k] * exp(s[k]) for k in range(3)))


def _weights_with_bias() -> Matrix:
    """Solve for weights that sum to 1 and have the ratios of a softmax, e to the difference of two scores."""
    u = positive_symbols("u", 3)
    biased = [s_j + log(a_j) for s_j, a_j in zip(s, a, strict=True)]
    (solution,) = sympy.linsolve([*(u[j] - exp(biased[j] - biased[0]) * u[0] for j in (1, 2)), total(u) - 1], u)
    return column(solution)


bias_is_a_factor.wrong("the factor multiplies the weight, and nothing is renormalised")(
    lambda: (_weights_with_bias(), column(a_j * w_j for a_j, w_j in zip(a, w, strict=True)))
)
bias_is_a_factor.wrong("a itself is added, as with a mask of zeros and ones")(
    lambda: (_weights_with_bias(), softmax_symbols([s_j + a_j for s_j, a_j in zip(s, a, strict=True)]))
)


@equation(
    "minus-infinity-removes-key",
    r"\lim_{a_l \to 0,\; l \notin A} \sigma(s + \ln a)_j = \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}",
    rows=["G1"],
    uses=["score-bias-is-factor"],
    assumes=["a_l = 1 for l in A", "A not empty"],
    scope="n = 3, A = {1, 2}",
)
def minus_infinity_removes_a_key() -> Sides:
    """ln a goes to minus infinity; in Eq. score-bias-is-factor the key's term leaves the numerator and the sum."""
    return _masked(), Matrix(3, 1, lambda j, _: kept[j] * exp(s[j]) / total(kept[k] * exp(s[k]) for k in range(3)))


def _masked() -> Matrix:
    return softmax_symbols([s[0], s[1], s[2] + log(c)]).applyfunc(lambda entry: sympy.limit(entry, c, 0))


minus_infinity_removes_a_key.wrong("the key keeps its place in the sum")(
    lambda: (_masked(), Matrix(3, 1, lambda j, _: kept[j] * exp(s[j]) / total(map(exp, s))))
)
minus_infinity_removes_a_key.wrong("the score is multiplied by zero")(lambda: (_masked(), softmax_symbols([s[0], s[1], 0])))


@equation(
    "masking-renormalises-weights",
    r"\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l}, \qquad w = \sigma(s)",
    rows=["G1"],
    follows="minus-infinity-removes-key",
    uses=["softmax", "minus-infinity-removes-key"],
    assumes=["A not empty"],
    scope="n = 3, A = {1, 2}",
)
def masking_renormalises() -> Sides:
    """Divide both by the sum over all keys: the weights of the unmasked softmax, given that the key is in A."""
    masked = Matrix(3, 1, lambda j, _: kept[j] * exp(s[j]) / total(kept[k] * exp(s[k]) for k in range(3)))
    return masked, Matrix(3, 1, lambda j, _: kept[j] * w[j] / total(kept[k] * w[k] for k in range(3)))


masking_renormalises.wrong("the mask after the softmax, not renormalised")(lambda: (_masked(), Matrix(3, 1, lambda j, _: kept[j] * w[j])))
masking_renormalises.wrong("the weight of the removed key is shared out equally")(
    lambda: (_masked(), Matrix(3, 1, lambda j, _: kept[j] * (w[j] + w[2] / 2)))
)


@equation(
    "masked-exponential-is-zero",
    r"e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j}, \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases}",
    rows=["G1"],
    assumes=["s finite"],
    kind="numeric",
    scope="n = 1 to 7, IEEE arithmetic",
)
def arithmetic_of_minus_infinity(rng: np.random.Generator) -> Claims:
    """s + (-inf) = -inf and e^{-inf} = 0 exactly: in floating point the limit of Eq. minus-infinity-removes-key is attained."""
    for scores in score_vectors(rng):
        allowed = rng.random(scores.size) < 0.5
        small = scores - scores.max()
        yield np.exp(small + minus_infinity_where_hidden(allowed)), np.where(allowed, 1.0, 0.0) * np.exp(small)


@arithmetic_of_minus_infinity.wrong("M = (1 - mask) * (-inf), where 0 * (-inf) is NaN")
def _(rng: np.random.Generator) -> Sides:
    scores, allowed = rng.normal(size=5), np.array([True, True, False, True, False])
    return np.exp(scores + (1 - allowed) * -np.inf), np.where(allowed, np.exp(scores), 0.0)


@arithmetic_of_minus_infinity.wrong("the scores multiplied by a mask of zeros and ones: e^0 is 1")
def _(rng: np.random.Generator) -> Sides:
    scores, allowed = rng.normal(size=5), np.array([True, True, False, True, False])
    return np.exp(scores * allowed), np.where(allowed, np.exp(scores), 0.0)


@equation(
    "masked-attention",
    r"\mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z, \qquad"
    r" z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}",
    rows=["G1"],
    uses=["attention", "minus-infinity-removes-key"],
    assumes=["no A_i empty"],
    kind="numeric",
    scope="T_q = 5, T_k = 3 and 7",
)
def masked_attention(rng: np.random.Generator) -> Claims:
    """Eq. minus-infinity-removes-key for each row: M belongs to the scores, and each query has its own set of keys."""
    for kv_len in (3, 7):
        query, key, value, mask = *_qkv(rng, kv_len), random_mask(rng, 5, kv_len)
        output = np.empty((5, 2))
        for i in range(5):
            terms = [(np.exp(query[i] @ key[j] / np.sqrt(3)), value[j]) for j in range(kv_len) if mask[i, j]]
            output[i] = sum(share * row for share, row in terms) / sum(share for share, _ in terms)
        yield output, weights_of(query @ key.T / np.sqrt(3) + minus_infinity_where_hidden(mask)) @ value
        yield reference.attention(query, key, value, mask=mask), output


def _qkv(rng: np.random.Generator, kv_len: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return rng.normal(size=(5, 3)), rng.normal(size=(kv_len, 3)), rng.normal(size=(kv_len, 2))


def _added_to_embeddings(size: float) -> Sides:
    """Causal self-attention of 5 tokens with d_model = 5, so that a 5 x 5 mask can be added to the embeddings at all."""
    rng = np.random.default_rng(7)
    x, mask = rng.normal(size=(5, 5)), reference.causal_mask(5, 5)
    hidden = x + np.where(mask, 0.0, -size)
    w_query, w_key, w_value = rng.normal(size=(3, 5, 5))
    right = reference.attention(x @ w_query, x @ w_key, x @ w_value, mask=mask)
    return reference.attention(hidden @ w_query, hidden @ w_key, hidden @ w_value), right


masked_attention.wrong("minus infinity added to the input embeddings", trap="X7")(lambda rng: _added_to_embeddings(np.inf))
masked_attention.wrong("a large negative number added to the input embeddings", trap="X7")(lambda rng: _added_to_embeddings(1e4))


@masked_attention.wrong("the boolean mask added to the scores")
def _(rng: np.random.Generator) -> Sides:
    (query, key, value), mask = _qkv(rng, 7), random_mask(rng, 5, 7)
    return weights_of(query @ key.T / np.sqrt(3) + mask) @ value, reference.attention(query, key, value, mask=mask)


@masked_attention.wrong("inverted polarity: True hides, as in torch's MultiheadAttention")
def _(rng: np.random.Generator) -> Sides:
    (query, key, value), mask = _qkv(rng, 7), random_mask(rng, 5, 7)
    hides = np.where(mask, -np.inf, 0.0)
    return reference.attention(query, key, value, mask=hides), reference.attention(query, key, value, mask=mask)


# ---- 7.2 nothing to attend to, and masks that are merely large


@equation(
    "finite-fill-leaks",
    r"\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = \frac{r}{r + e^{c}}, \qquad"
    r" r = \frac{\sum_{j \notin A} e^{s_j}}{\sum_{j \in A} e^{s_j}}",
    rows=["G1", "G2"],
    uses=["score-bias-is-factor"],
    assumes=["c finite", "A not empty"],
    scope="n = 3, A = {1, 2}",
)
def finite_fill_leaks() -> Sides:
    """Eq. score-bias-is-factor with a = e^{-c}: hidden keys keep some weight, and much of it where their scores are larger by about c."""
    r = exp(s[2]) / (exp(s[0]) + exp(s[1]))
    return softmax_symbols([s[0], s[1], s[2] - c])[2], r / (r + exp(c))


finite_fill_leaks.wrong("a finite c hides the keys completely", trap="X21")(lambda: (softmax_symbols([s[0], s[1], s[2] - c])[2], 0))
finite_fill_leaks.wrong("their weight shrinks by e^{-c}")(lambda: (softmax_symbols([s[0], s[1], s[2] - c])[2], w[2] * exp(-c)))


@equation(
    "filled-row-hides-nothing",
    r"\sigma(s - c\,\mathbf{1})_j = \frac{e^{s_j}}{\sum_{l=1}^{n} e^{s_l}}",
    rows=["G2"],
    uses=["softmax-shift-invariance"],
    assumes=["c finite", "every key hidden"],
    scope="n = 3, any c",
)
def finite_fill_of_a_whole_row_hides_nothing() -> Sides:
    """The shift cancels: a row in which all keys are hidden attends as if none were."""
    return softmax_symbols([s_j - c for s_j in s]), Matrix(3, 1, lambda j, _: exp(s[j]) / total(exp(s_l) for s_l in s))


finite_fill_of_a_whole_row_hides_nothing.wrong("the weights are 0")(lambda: (softmax_symbols([s_j - c for s_j in s]), sympy.zeros(3, 1)))
finite_fill_of_a_whole_row_hides_nothing.wrong("the weights are equal (true where c replaces the scores)")(
    lambda: (softmax_symbols([s_j - c for s_j in s]), sympy.ones(3, 1) / 3)
)


@equation(
    "empty-row-is-zero",
    r"A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad e^{L_i} = 0",
    rows=["G2"],
    uses=["masked-attention"],
    assumes=[
        "a definition: the sums of {eq}`masked-attention` are empty, and 0 / 0 is read as 0",
        "L_i = ln of the sum in the denominator",
    ],
    kind="numeric",
    scope="T_q = 5, T_k = 1, 3 and 7",
)
def nothing_to_attend_to(rng: np.random.Generator) -> Claims:
    """No key, no weight, no output: the other rows, and the sums over blocks of keys, stay right."""
    for kv_len in (1, 3, 7):
        (query, key, value), mask = _qkv(rng, kv_len), random_mask(rng, 5, kv_len)
        mask[2] = False
        output, weights, lse = reference.attention(query, key, value, mask=mask, return_weights=True, return_lse=True)
        yield (output[2], weights[2], np.exp(lse[2])), (value[mask[2]].sum(axis=0), 1.0 * mask[2], mask[2].sum())
        yield output[3:], weights_of(query[3:] @ key.T / np.sqrt(3) + np.where(mask[3:], 0.0, -np.inf)) @ value


@nothing_to_attend_to.wrong("the formula as it stands: 0 / 0")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _qkv(rng, 7)
    return np.exp(query @ key.T - np.inf) / np.exp(query @ key.T - np.inf).sum(axis=-1, keepdims=True) @ value, np.zeros((5, 2))


@nothing_to_attend_to.wrong("the mean of the values, from a finite fill")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _qkv(rng, 7)
    return reference.attention(query, key, value, mask=np.zeros((5, 7), dtype=bool)), value.mean(axis=0) * np.ones((5, 1))


# ---- 7.3 the causal mask


@equation(
    "causal-mask",
    r"A_i = \{\, j : j \le i + p \,\}, \qquad M_{ij} = -\infty \iff j > i + p",
    rows=["G1"],
    assumes=["positions count from 0", "p = position of the first query among the keys"],
    kind="numeric",
    scope="T_q, T_k, p = (5, 5, 0), (3, 5, 2), (1, 5, 4), (5, 3, 0), (3, 5, 0)",
)
def causal_mask(rng: np.random.Generator) -> Claims:
    """Query i stands at position i + p and sees itself and what came before."""
    for q_len, kv_len, p in ((5, 5, 0), (3, 5, 2), (1, 5, 4), (5, 3, 0), (3, 5, 0)):
        i, j = np.ogrid[:q_len, :kv_len]
        yield np.exp(minus_infinity_where_hidden(reference.causal_mask(q_len, kv_len, p))), np.where(j > i + p, 0.0, 1.0)


def _causal_wrong(hidden: np.ndarray) -> Sides:
    return np.exp(minus_infinity_where_hidden(reference.causal_mask(5, 5))), np.where(hidden, 0.0, 1.0)


causal_mask.wrong("transposed: the past is hidden", trap="X8")(lambda rng: _causal_wrong(np.tri(5, 5, -1, dtype=bool)))
causal_mask.wrong("off by one: the token itself is hidden")(lambda rng: _causal_wrong(~np.tri(5, 5, -1, dtype=bool)))


@equation(
    "bottom-right-offset",
    r"p = T_k - T_q",
    rows=["G1"],
    uses=["causal-mask"],
    assumes=["the last query stands at the last key, as in decoding with a cache"],
    scope="any lengths",
)
def offset_of_the_last_queries() -> Sides:
    """The last query, i = T_q - 1, stands at position T_k - 1: aligned at the bottom right, not at the top left."""
    q_len, kv_len, p = symbols("T_q T_k p", integer=True)
    return sympy.solve((q_len - 1) + p - (kv_len - 1), p)[0], kv_len - q_len


offset_of_the_last_queries.wrong("top left: a single new query sees the first key only")(
    lambda: (symbols("T_k", integer=True) - 1, sympy.Integer(0))
)
offset_of_the_last_queries.wrong("off by one, past the last key")(
    lambda: (symbols("T_k", integer=True) - symbols("T_q", integer=True), symbols("T_k", integer=True) - symbols("T_q", integer=True) + 1)
)


@equation(
    "causal-prefix-invariance",
    r"Z(x_1, \ldots, x_t) = Z(x_1, \ldots, x_T)_{1:t}",
    rows=["G1"],
    uses=["masked-attention", "causal-mask"],
    assumes=["causal mask, p = 0", "Z = self-attention of the rows"],
    kind="numeric",
    scope="T = 7, t = 1 to 7",
)
def prefix_invariance(rng: np.random.Generator) -> Claims:
    """Row i <= t reads keys up to i only, and all of them are in the prefix: what comes later changes nothing."""
    x, weights = rng.normal(size=(7, 5)), rng.normal(size=(3, 5, 3))
    weights_all = weights_of(_scores(x, weights) + minus_infinity_where_hidden(np.tri(7, dtype=bool)))
    for t in range(1, 8):
        yield _self_attention(x[:t], weights), weights_all[:t] @ (x @ weights[2])


def _scores(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (x @ weights[0]) @ (x @ weights[1]).T / np.sqrt(weights.shape[-1])


def _self_attention(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights_of(_scores(x, weights) + minus_infinity_where_hidden(np.tri(len(x), dtype=bool))) @ (x @ weights[2])


def _prefixes(function: _Layer) -> Statement:
    """State prefix invariance for another kind of attention."""

    def statement(rng: np.random.Generator) -> Claims:
        x, weights = rng.normal(size=(7, 5)), rng.normal(size=(3, 5, 3))
        for t in range(1, 7):
            yield function(x[:t], weights), function(x, weights)[:t]

    return statement


prefix_invariance.wrong("without a mask")(_prefixes(lambda x, weights: weights_of(_scores(x, weights)) @ (x @ weights[2])))
prefix_invariance.wrong("with the mask after the softmax")(
    _prefixes(lambda x, weights: (weights_of(_scores(x, weights)) * np.tri(len(x))) @ (x @ weights[2]))
)
prefix_invariance.wrong("with the softmax over the queries", trap="X8")(
    _prefixes(
        lambda x, weights: (
            weights_of(_scores(x, weights) + minus_infinity_where_hidden(np.tri(len(x), dtype=bool)), axis=0) @ (x @ weights[2])
        )
    )
)


# ---- 7.4 leaks, and how to find them


@equation(
    "output-derivative-by-score",
    r"\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(v_j - z_i)",
    rows=["G1"],
    uses=["softmax-derivative"],
    assumes=["z_i = sum_j p_ij v_j", "P_i = softmax of s_i"],
    scope="n = 3, one feature",
)
def output_by_score() -> Sides:
    """Eq. softmax-derivative, summed over the values: a key of weight 0 has no influence, not even on the gradient."""
    z = total(w[j] * v[j] for j in range(3))
    return column(z.diff(s_j) for s_j in s), Matrix(3, 1, lambda j, _: w[j] * (v[j] - z))


output_by_score.wrong("the normaliser forgotten: P v")(lambda: ((w.T * column(v))[0].diff(s[0]), w[0] * v[0]))
output_by_score.wrong("the weight squared")(lambda: ((w.T * column(v))[0].diff(s[0]), w[0] ** 2 * (v[0] - (w.T * column(v))[0])))


@equation(
    "mask-after-softmax-leaks",
    r"\tilde{z}_i = \sum_{j \in A_i} w_{ij}\, v_j \;\Rightarrow\;"
    r" \frac{\partial \tilde{z}_i}{\partial s_{il}} = -w_{il}\,\tilde{z}_i \quad (l \notin A_i)",
    rows=["G1"],
    uses=["softmax-derivative", "output-derivative-by-score"],
    assumes=["w = softmax of all scores, the mask applied afterwards"],
    scope="n = 3, A = {1, 2}",
)
def leak_of_a_mask_after_the_softmax() -> Sides:
    """The hidden score is still in the normaliser: the output tells how large it was."""
    leaky = w[0] * v[0] + w[1] * v[1]
    return leaky.diff(s[2]), -w[2] * leaky


leak_of_a_mask_after_the_softmax.wrong("no gradient, hence no leak")(lambda: ((w[0] * v[0] + w[1] * v[1]).diff(s[2]), 0))
leak_of_a_mask_after_the_softmax.wrong("what leaks is the hidden value")(
    lambda: ((w[0] * v[0] + w[1] * v[1]).diff(s[2]), -w[2] * (w[0] * v[0] + w[1] * v[1] - v[2]))
)


@equation(
    "causal-mask-hides-future",
    r"\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i)",
    rows=["G1"],
    uses=["causal-prefix-invariance", "output-derivative-by-score"],
    assumes=["causal self-attention, p = 0"],
    kind="numeric",
    scope="T = 5, all pairs",
)
def no_leak(rng: np.random.Generator) -> Claims:
    """Queries, keys and values of later tokens enter no earlier row: the leak test, exact to the last bit."""
    x, weights = rng.normal(size=(5, 3)), rng.normal(size=(3, 3, 3))
    by_token = jacobian(lambda moved: _self_attention(moved, weights), x)
    size = np.abs(by_token).max(axis=(1, 3))  # (i, j): the largest influence of token j on row i
    for i in range(5):
        for j in range(i + 1, 5):
            yield size[i, j], 0.0
    yield np.sign(size), np.tri(5)


def _leak(output: _Layer) -> Statement:
    def statement(rng: np.random.Generator) -> Sides:
        x, weights = rng.normal(size=(5, 3)), rng.normal(size=(3, 3, 3))
        by_token = jacobian(lambda moved: output(moved, weights), x)
        return np.abs(by_token).max(axis=(1, 3)) * (1 - np.tri(5)), np.zeros((5, 5))

    return statement


no_leak.wrong("with the mask after the softmax")(_leak(lambda x, weights: (weights_of(_scores(x, weights)) * np.tri(5)) @ (x @ weights[2])))
no_leak.wrong("with the mask one column too wide")(
    _leak(lambda x, weights: weights_of(_scores(x, weights) + minus_infinity_where_hidden(np.tri(5, k=1, dtype=bool))) @ (x @ weights[2]))
)
no_leak.wrong("with the mask transposed")(
    _leak(lambda x, weights: weights_of(_scores(x, weights) + minus_infinity_where_hidden(np.tri(5, dtype=bool).T)) @ (x @ weights[2]))
)
