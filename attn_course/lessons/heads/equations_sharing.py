"""Multi-head attention: heads as filters, shared keys and values, the cache."""

from collections.abc import Iterator

import numpy as np
import sympy
from sympy import symbols

from attn_course import reference
from attn_course.equations.claims import Claims, Limit, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import minus_infinity_where_hidden, weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, total

SHIFTS = (-1, 0, 1)


# ---- 8.4 heads as the filters of a convolution


@equation(
    "shifted-heads-convolve",
    r"\sum_{h=1}^{H} S_{\Delta_h} X\, W_h = X * W, \qquad (S_\Delta)_{tj} = [\,j = t + \Delta\,]",
    rows=["H5"],
    uses=["sum-of-head-maps"],
    assumes=["P_h = S_{Delta_h}: head h looks at shift Delta_h only", "(X * W)_t = sum_h x_{t + Delta_h} W_h, with zeros beyond the ends"],
    kind="numeric",
    scope="T = 6, shifts -1, 0, 1, 3 features to 2",
)
def heads_with_fixed_shifts_convolve(rng: np.random.Generator) -> Claims:
    """A filter is one matrix for each shift, summed: Eq. sum-of-head-maps with one head for each place in the filter."""
    for _ in range(3):
        x, w = rng.normal(size=(6, 3)), rng.normal(size=(3, 3, 2))
        yield _convolution(x, w), np.eye(6, k=-1) @ x @ w[0] + np.eye(6) @ x @ w[1] + np.eye(6, k=1) @ x @ w[2]


def _convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Sum 1-D convolutions over the input features; NumPy's kernel runs backwards."""
    pairs = [[np.convolve(x[:, a], w[::-1, a, b], mode="same") for a in range(x.shape[1])] for b in range(w.shape[2])]
    return np.array(pairs).sum(axis=1).T


@heads_with_fixed_shifts_convolve.wrong("one head that averages the three places")
def _(rng: np.random.Generator) -> Sides:
    x, w = rng.normal(size=(6, 3)), rng.normal(size=(3, 3, 2))
    mean = (np.eye(6, k=-1) + np.eye(6) + np.eye(6, k=1)) / 3
    return _convolution(x, w), mean @ x @ w.sum(axis=0)


@heads_with_fixed_shifts_convolve.wrong("the shifts in reverse order")
def _(rng: np.random.Generator) -> Sides:
    x, w = rng.normal(size=(6, 3)), rng.normal(size=(3, 3, 2))
    return _convolution(x, w), sum(np.eye(6, k=-shift) @ x @ each for shift, each in zip(SHIFTS, w, strict=True))


@equation(
    "score-peaked-at-shift",
    r"-\alpha\,(1,\, -2\Delta) \cdot (\delta^2,\, \delta) = -\alpha\,(\delta - \Delta)^2 + \alpha\,\Delta^2",
    rows=["H5"],
    assumes=["delta = key position minus query position"],
    scope="any alpha, Delta, delta",
)
def scores_peaked_at_a_shift() -> Sides:
    """A dot product of a learned vector with an encoding of the shift: largest at delta = Delta; the last term is constant."""
    alpha, center, shift = symbols("alpha Delta delta", real=True)
    encoding = sympy.Matrix([shift**2, shift])
    return (-alpha * sympy.Matrix([[1, -2 * center]]) * encoding)[0], -alpha * (shift - center) ** 2 + alpha * center**2


@scores_peaked_at_a_shift.wrong("peaked at -Delta")
def _() -> Sides:
    alpha, center, shift = symbols("alpha Delta delta", real=True)
    return -alpha * (shift**2 - 2 * center * shift), -alpha * (shift + center) ** 2 + alpha * center**2


@equation(
    "peaked-scores-become-shift",
    r"\lim_{\alpha \to \infty} \sigma\bigl(-\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t + \Delta\,]",
    rows=["H5"],
    uses=["temperature-limits", "score-peaked-at-shift"],
    assumes=["inside sigma, l runs over the T keys", "0 <= t + Delta < T"],
    kind="numeric",
    scope="T = 6, Delta = -1, 0, 1",
)
def peaked_scores_become_a_shift(rng: np.random.Generator) -> Claims:
    """A temperature limit with one largest score: softmax attention comes as close to a filter as one likes, never quite."""
    for shift in SHIFTS:
        t, j = np.arange(1, 5)[:, None], np.arange(6)[None, :]
        values = np.array([weights_of(-(2.0**step) * (j - t - shift) ** 2) for step in range(8)])
        yield Limit(values, np.where(j == t + shift, 1.0, 0.0))


@peaked_scores_become_a_shift.wrong("the wrong neighbour")
def _(rng: np.random.Generator) -> Claims:
    t, j = np.arange(1, 5)[:, None], np.arange(6)[None, :]
    yield Limit(np.array([weights_of(-(2.0**step) * (j - t - 1) ** 2) for step in range(8)]), np.where(j == t - 1, 1.0, 0.0))


# ---- 8.5 shared keys and values


def _grouped(rng: np.random.Generator) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield g and grouped heads: 6 query heads on 1, 2, 3 and 6 key heads."""
    for n_kv_heads in (1, 2, 3, 6):
        yield 6 // n_kv_heads, rng.normal(size=(6, 4, 3)), rng.normal(size=(n_kv_heads, 5, 3)), rng.normal(size=(n_kv_heads, 5, 2))


@equation(
    "grouped-query-attention",
    r"Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}",
    rows=["H3"],
    uses=["attention-of-one-head"],
    assumes=["heads counted from 0", "H_kv divides H"],
    kind="numeric",
    scope="H = 6, H_kv = 1, 2, 3, 6",
)
def grouped_heads(rng: np.random.Generator) -> Claims:
    """Neighbouring query heads share one key head: H_kv = H is multi-head, H_kv = 1 multi-query attention."""
    for g, query, key, value in _grouped(rng):
        output = reference.attention(query, key, value, enable_gqa=True)
        for h in range(6):
            yield output[h], weights_of(query[h] @ key[h // g].T / np.sqrt(3)) @ value[h // g]


@grouped_heads.wrong("r = h mod H_kv: heads tiled instead of repeated")
def _(rng: np.random.Generator) -> Claims:
    for _g, query, key, value in _grouped(rng):
        tiled = [reference.attention(query[h], key[h % len(key)], value[h % len(key)]) for h in range(6)]
        yield reference.attention(query, key, value, enable_gqa=True), np.array(tiled)


@grouped_heads.wrong("all heads share the first key head")
def _(rng: np.random.Generator) -> Claims:
    for _g, query, key, value in _grouped(rng):
        yield reference.attention(query, key, value, enable_gqa=True), reference.attention(query, key[:1], value[:1])


@equation(
    "mean-pooled-key-heads",
    r"\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \frac{1}{g} \sum_{h=1}^{g} W_K^{(h)}",
    rows=["H3"],
    uses=["grouped-query-attention"],
    assumes=["g trained key heads are to become one"],
    scope="g = 3, one entry",
)
def mean_pooling_of_heads() -> Sides:
    """The nearest shared matrix is the mean: the start from which a trained multi-head model learns to share."""
    w, shared = real_symbols("w", 3), sympy.Symbol("w", real=True)
    return sympy.solve(total((w_h - shared) ** 2 for w_h in w).diff(shared), shared)[0], total(w) / 3


@mean_pooling_of_heads.wrong("the sum")
def _() -> Sides:
    w, shared = real_symbols("w", 3), sympy.Symbol("w", real=True)
    return sympy.solve(total((w_h - shared) ** 2 for w_h in w).diff(shared), shared)[0], total(w)


# ---- 8.6 the cache of keys and values


@equation(
    "decoding-equals-full-pass",
    r"z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t",
    rows=["H3"],
    uses=["bottom-right-offset", "causal-prefix-invariance"],
    assumes=["causal mask on the right"],
    kind="numeric",
    scope="T = 7, one step at a time and three",
)
def decoding_equals_the_full_pass(rng: np.random.Generator) -> Claims:
    """Row t of causal attention reads the past only: keep its keys and values, and compute one new row."""
    query, key, value = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    causal = minus_infinity_where_hidden(np.tri(7, dtype=bool))
    for steps in (1, 3):
        cache, start = reference.KeyValueCache(), 0
        while start < 7:
            new = slice(start, start + steps)
            offset = len(cache)
            keys, values = cache.append(key[new], value[new])
            yield (
                reference.attention(query[new], keys, values, is_causal=True, q_offset=offset),
                weights_of(query @ key.T / np.sqrt(3) + causal)[new] @ value,
            )
            start += steps


@decoding_equals_the_full_pass.wrong("with the mask aligned at the top left, a new query sees the first key only")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    return reference.attention(query[6:], key, value, is_causal=True), reference.attention(query, key, value, is_causal=True)[6:]


@decoding_equals_the_full_pass.wrong("also without a causal mask in training")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    return reference.attention(query[2:3], key[:3], value[:3]), reference.attention(query, key, value)[2:3]


@equation(
    "kv-cache-bytes",
    r"\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b",
    rows=["H3"],
    uses=["grouped-query-attention", "decoding-equals-full-pass"],
    assumes=["b bytes for one number", "d_k = d_v = d_head"],
    kind="numeric",
    scope="caches that were filled: 1 and 3 layers, H_kv = 1, 2, 8, b = 2, 4, 8",
)
def cache_bytes_per_token(rng: np.random.Generator) -> Claims:
    """One key and one value for each layer and key head; the number of query heads plays no part."""
    for layers, n_kv_heads, d_head, dtype in ((1, 8, 3, np.float64), (3, 2, 5, np.float32), (3, 1, 4, np.float16)):
        yield _filled_bytes(layers, n_kv_heads, d_head, dtype) / 7, 2 * layers * n_kv_heads * d_head * np.dtype(dtype).itemsize


def _filled_bytes(layers: int, n_kv_heads: int, d_head: int, dtype: type) -> int:
    """Fill the caches of a model with 7 tokens and add up the memory they take."""
    kept = 0
    for _ in range(layers):
        cache = reference.KeyValueCache()
        for _ in range(7):
            keys, values = cache.append(*np.ones((2, n_kv_heads, 1, d_head), dtype=dtype))
        kept += keys.nbytes + values.nbytes
    return kept


cache_bytes_per_token.wrong("keys only")(lambda rng: (_filled_bytes(3, 2, 5, np.float32) / 7, 3 * 2 * 5 * 4))
cache_bytes_per_token.wrong("counted with all 8 query heads")(lambda rng: (_filled_bytes(3, 2, 5, np.float32) / 7, 2 * 3 * 8 * 5 * 4))


@equation(
    "projection-flops-without-cache",
    r"\sum_{t=1}^{T} 8\, t\, d^2 = 4\, T (T + 1)\, d^2",
    rows=["H3"],
    uses=["multi-head-flops", "decoding-equals-full-pass"],
    assumes=["without a cache each step projects the whole prefix again", "a multiply-add counts 2"],
    kind="numeric",
    scope="T = 1 to 5, d = 4",
)
def projections_without_a_cache(rng: np.random.Generator) -> Claims:
    """A cache turns 4 T (T + 1) d^2 into 8 T d^2: each token is projected once."""
    for length in range(1, 6):
        steps = [multiplications(_projections, (t, 4), *4 * [(4, 4)]) for t in range(1, length + 1)]
        yield 2 * sum(steps), 4 * length * (length + 1) * 4**2


def _projections(x: np.ndarray, *weights: np.ndarray) -> None:
    for weight in weights:
        x @ weight


projections_without_a_cache.wrong("as with a cache, 8 T d^2")(
    lambda rng: (2 * sum(multiplications(_projections, (t, 4), *4 * [(4, 4)]) for t in range(1, 6)), 8 * 5 * 4**2)
)
