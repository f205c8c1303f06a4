"""Masking: orientation of mask and softmax, combined masks, patterns and their counts."""

from collections.abc import Callable, Iterator

import numpy as np
from sympy import Matrix, exp

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.matrices import minus_infinity_where_hidden, random_mask, weights_of
from attn_course.equations.stated import Statement, equation
from attn_course.equations.symbols import column, real_symbols, softmax_symbols

s = real_symbols("s", 3)


def _points(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield query, key and value with d_k = 3 and d_v = 2, for equal and for different lengths."""
    for q_len, kv_len in ((5, 5), (3, 5), (5, 7)):
        yield rng.normal(size=(q_len, 3)), rng.normal(size=(kv_len, 3)), rng.normal(size=(kv_len, 2))


# ---- 7.5 which triangle, which axis


@equation(
    "masked-attention-in-columns",
    r"\mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V"
    r" = \Bigl( V^\top\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{K Q^\top}{\sqrt{d_k}} + M^\top\Bigr) \Bigr)^{\!\top}",
    rows=["G1"],
    uses=["masked-attention", "causal-mask"],
    assumes=["rows of Q, K, V are positions"],
    kind="numeric",
    scope="T_q, T_k = 3 to 7, causal",
)
def two_orientations(rng: np.random.Generator) -> Claims:
    """Transpose everything: -inf stands above the diagonal of Q K^T and below that of K Q^T; the softmax runs over keys in both."""
    for query, key, value in _points(rng):
        M = _causal(query, key)
        yield reference.attention(query, key, value, is_causal=True), (value.T @ weights_of(key @ query.T / np.sqrt(3) + M.T, axis=0)).T


def _causal(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    return minus_infinity_where_hidden(reference.causal_mask(len(query), len(key)))


def _instead(weights: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Statement:
    """State that other weights, (q_len, kv_len), give causal attention too."""

    def statement(rng: np.random.Generator) -> Claims:
        for query, key, value in _points(rng):
            if len(query) == len(key):
                wrong = weights(query @ key.T / np.sqrt(3), _causal(query, key))
                yield reference.attention(query, key, value, is_causal=True), wrong @ value

    return statement


two_orientations.wrong("-inf below the diagonal although rows are queries", trap="X8")(
    _instead(lambda scores, added: weights_of(scores + added.T))
)
two_orientations.wrong("columns as queries, but the triangle not transposed", trap="X8")(
    _instead(lambda scores, added: weights_of(scores.T + added, axis=0).T)
)
two_orientations.wrong("the right triangle, but the softmax over the queries", trap="X8")(
    _instead(lambda scores, added: weights_of(scores + added, axis=0))
)
two_orientations.wrong("Q^T K with a softmax over columns, where queries and keys swap roles", trap="X8")(
    _instead(lambda scores, added: weights_of(scores + added.T, axis=0).T)
)


@equation(
    "softmax-over-queries-leaks",
    r"\tilde{p}_{ij} = \frac{e^{s_{ij}}}{\sum_{r \ge j} e^{s_{rj}}} \;\Rightarrow\;"
    r" \frac{\partial \tilde{p}_{ij}}{\partial s_{lj}} = -\tilde{p}_{ij}\, \tilde{p}_{lj} \quad (l > i \ge j)",
    rows=["G1"],
    uses=["softmax-derivative", "masked-attention-in-columns"],
    assumes=["causal mask on Q K^T, softmax over the queries"],
    scope="three queries, j = 1, every l > i",
)
def leak_through_the_normaliser() -> Sides:
    """The sum over queries r >= j holds the future: the mask hides its values, but its scores still move the weights of the past."""
    p = softmax_symbols(s)  # weights of key 1 for queries 1, 2, 3
    pairs = [(0, 1), (0, 2), (1, 2)]
    return column(p[i].diff(s[k]) for i, k in pairs), Matrix(3, 1, lambda row, _: -p[pairs[row][0]] * p[pairs[row][1]])


leak_through_the_normaliser.wrong("no leak: the mask is above the diagonal", trap="X8")(lambda: (softmax_symbols(s)[0].diff(s[2]), 0))
leak_through_the_normaliser.wrong("the normaliser stops at query i")(
    lambda: (softmax_symbols(s)[1].diff(s[2]), (exp(s[1]) / (exp(s[0]) + exp(s[1]))).diff(s[2]))
)


# ---- 7.6 several masks


@equation(
    "added-masks-intersect",
    r"M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)}",
    rows=["G1"],
    uses=["masked-exponential-is-zero"],
    assumes=["M, M^(1), M^(2) hold 0 and -inf only"],
    kind="numeric",
    scope="random masks, causal with padding and window",
)
def masks_combine(rng: np.random.Generator) -> Claims:
    """-inf plus anything below +inf is -inf: what one mask hides stays hidden. Additive masks add, boolean ones combine by `and`."""
    causal, first = reference.causal_mask(5, 5), random_mask(rng, 5, 5)
    for second in (causal, reference.window_mask(5, 5, 1, 1), reference.padding_mask(np.array(3), 5) & np.ones((5, 1), dtype=bool)):
        added = minus_infinity_where_hidden(first) + minus_infinity_where_hidden(second)
        yield np.exp(added), np.where(first, 1.0, 0.0) * np.where(second, 1.0, 0.0)


@masks_combine.wrong("a key is hidden only if both masks hide it")
def _(rng: np.random.Generator) -> Sides:
    first, second = random_mask(rng, 5, 5), random_mask(rng, 5, 5)
    return np.exp(minus_infinity_where_hidden(first) + minus_infinity_where_hidden(second)), np.where(first | second, 1.0, 0.0)


@masks_combine.wrong("masks that hide (True = hidden) combine by `and` as well")
def _(rng: np.random.Generator) -> Sides:
    first, second = random_mask(rng, 5, 5), random_mask(rng, 5, 5)
    return np.exp(minus_infinity_where_hidden(first) + minus_infinity_where_hidden(second)), np.where(~first & ~second, 0.0, 1.0)


@equation(
    "key-padding-changes-nothing",
    r"\mathrm{attention}\bigl(Q, [K;\, \ast\,], [V;\, \ast\,]\bigr)_{M_{ij} = -\infty,\; j \ge n}"
    r" = \mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}}\Bigr) V",
    rows=["G1"],
    uses=["masked-attention"],
    assumes=["K, V hold the n real rows, counted from 0", "* = padding, any numbers at all"],
    kind="numeric",
    scope="T_q, T_k = 3 to 7, padding of 4 rows",
)
def padding_changes_nothing(rng: np.random.Generator) -> Claims:
    """Hidden rows leave the sums, so a padded batch gives each sequence what it gets alone."""
    for query, key, value in _points(rng):
        mask = reference.padding_mask(np.array(len(key)), len(key) + 4)
        filler = rng.normal(size=(4, 5)) * 100
        filler[0] = np.nan
        padded = reference.attention(query, np.vstack([key, filler[:, :3]]), np.vstack([value, filler[:, 3:]]), mask=mask)
        yield padded, weights_of(query @ key.T / np.sqrt(3)) @ value


@padding_changes_nothing.wrong("rows of zeros need no mask")
def _(rng: np.random.Generator) -> Claims:
    for query, key, value in _points(rng):
        zeros = np.zeros((4, 3))
        padded = reference.attention(query, np.vstack([key, zeros]), np.vstack([value, zeros[:, :2]]))
        yield padded, reference.attention(query, key, value)


@padding_changes_nothing.wrong("hiding the rows of queries instead of the columns of keys")
def _(rng: np.random.Generator) -> Claims:
    for query, key, value in _points(rng):
        both = np.vstack([key, key[:2]]), np.vstack([value, value[:2]])
        rows = np.arange(len(query))[:, None] < len(query) - 2
        yield reference.attention(query, *both, mask=rows), reference.attention(query, key, value)


@equation(
    "packed-documents-stay-apart",
    r"A_i = \{\, j : g_j = g_i \,\} \;\Rightarrow\; Z = \bigl[\, Z(X^{(1)});\; Z(X^{(2)}) \,\bigr]",
    rows=["G1"],
    uses=["masked-attention"],
    assumes=["g_i = number of the document that token i belongs to", "X = [X^(1); X^(2)]"],
    kind="numeric",
    scope="documents of 4 and 3 tokens, causal and not",
)
def packed_documents(rng: np.random.Generator) -> Claims:
    """A block-diagonal mask: documents packed into one sequence do not see each other."""
    x, group = rng.normal(size=(7, 3)), np.repeat([0, 1], [4, 3])
    for causal in (False, True):
        packed = reference.attention(x, x, x, mask=group[:, None] == group[None, :], is_causal=causal)
        yield packed, np.vstack([_weights_alone(x[:4], causal) @ x[:4], _weights_alone(x[4:], causal) @ x[4:]])


def _weights_alone(x: np.ndarray, causal: bool) -> np.ndarray:
    mask = np.tri(len(x), dtype=bool) if causal else np.ones((len(x), len(x)), dtype=bool)
    return weights_of(x @ x.T / np.sqrt(x.shape[-1]) + minus_infinity_where_hidden(mask))


@packed_documents.wrong("a causal mask alone keeps documents apart")
def _(rng: np.random.Generator) -> Sides:
    x = rng.normal(size=(7, 3))
    return reference.attention(x, x, x, is_causal=True), np.vstack(
        [_weights_alone(x[:4], True) @ x[:4], _weights_alone(x[4:], True) @ x[4:]]
    )


# ---- 7.7 how many pairs are left


@equation(
    "causal-pair-count",
    r"\sum_{i=0}^{T_q - 1} |A_i| = T_q\,p + \frac{T_q\,(T_q + 1)}{2}",
    rows=["G1"],
    uses=["causal-mask"],
    assumes=["causal", "p + T_q <= T_k"],
    kind="numeric",
    scope="T_q = 1 to 7, p = 0 to 4",
)
def causal_pairs(rng: np.random.Generator) -> Claims:
    """Query i sees i + p + 1 keys; for p = 0 this is a little more than half of all pairs, not half."""
    for q_len in range(1, 8):
        for p in range(5):
            yield reference.causal_mask(q_len, q_len + p, p).sum(), q_len * p + q_len * (q_len + 1) / 2


causal_pairs.wrong("half of T^2")(lambda rng: (reference.causal_mask(7, 7).sum(), 7**2 / 2))
causal_pairs.wrong("without the diagonal")(lambda rng: (reference.causal_mask(7, 7).sum(), 7 * 6 / 2))


@equation(
    "window-pair-count",
    r"\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1) - \frac{w\,(w + 1)}{2}",
    rows=["G1"],
    uses=["causal-pair-count"],
    assumes=["window of w keys to the left and the token itself", "w < T"],
    kind="numeric",
    scope="T = 1 to 7, every w",
)
def window_pairs(rng: np.random.Generator) -> Claims:
    """All rows have w + 1 keys but the first w, which lack w, w - 1, ..., 1 of them: the count grows like T, not T^2."""
    for length in range(1, 8):
        for w in range(length):
            yield reference.window_mask(length, length, w, 0).sum(), length * (w + 1) - w * (w + 1) / 2


window_pairs.wrong("T w: the token itself forgotten")(lambda rng: (reference.window_mask(7, 7, 2, 0).sum(), 7 * 2))
window_pairs.wrong("the start of the sequence forgotten")(lambda rng: (reference.window_mask(7, 7, 2, 0).sum(), 7 * 3))


@equation(
    "reach-of-stacked-windows",
    r"\bigl[\,(B_w)^{L} > 0\,\bigr] = B_{L w}, \qquad (B_w)_{ij} = [\,i - w \le j \le i\,]",
    rows=["G1"],
    uses=["window-pair-count"],
    assumes=["L layers with windows of w keys to the left"],
    kind="numeric",
    scope="T = 13, w and L = 1 to 4",
)
def reach_of_stacked_windows(rng: np.random.Generator) -> Claims:
    """A path of L steps, each at most w long, reaches L w back: depth buys distance, step by step."""
    for w in range(1, 5):
        for layers in range(1, 5):
            paths = np.linalg.matrix_power(_band(w), layers)
            yield np.sign(paths), 1.0 * reference.window_mask(13, 13, layers * w, 0)


def _band(w: int) -> np.ndarray:
    return np.tri(13) - np.tri(13, k=-w - 1)


reach_of_stacked_windows.wrong("a window of w never sees further than w")(
    lambda rng: (np.sign(np.linalg.matrix_power(_band(2), 3)), _band(2))
)
reach_of_stacked_windows.wrong("w + 1 per layer")(
    lambda rng: (np.sign(np.linalg.matrix_power(_band(2), 3)), np.tri(13) - np.tri(13, k=-10))
)
