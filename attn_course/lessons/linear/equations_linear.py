"""Attention without softmax: linear attention in three forms, its costs and its memory."""

import numpy as np
import sympy
from sympy import symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Moment, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import matrix_symbols
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, total


def _sequence(rng: np.random.Generator, length: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return query and key with positive features (d_k = 3), and values (d_v = 2)."""
    return rng.uniform(0.1, 1, size=(length, 3)), rng.uniform(0.1, 1, size=(length, 3)), rng.normal(size=(length, 2))


# ---- 11.3 brackets


@equation(
    "linear-attention-by-associativity",
    r"\bigl( \phi(Q)\, \phi(K)^\top \bigr)\, V = \phi(Q)\, \bigl( \phi(K)^\top V \bigr)",
    rows=["K2"],
    assumes=["no softmax between the products"],
    scope="T = 2, 2 features, d_v = 1",
)
def brackets() -> Sides:
    """Matrix products are associative: the T x T matrix need never exist."""
    Q, K, V = matrix_symbols("q", 2, 2), matrix_symbols("k", 2, 2), matrix_symbols("v", 2, 1)
    return (Q * K.T) * V, Q * (K.T * V)


@brackets.wrong("also with a softmax around the scores", trap="X29")
def _() -> Sides:
    Q, K, V = matrix_symbols("q", 2, 1), matrix_symbols("k", 2, 1), matrix_symbols("v", 2, 1)
    exponentials = (Q * K.T).applyfunc(sympy.exp)
    weights = sympy.Matrix(2, 2, lambda i, j: exponentials[i, j] / (exponentials[i, 0] + exponentials[i, 1]))
    return weights * V, Q.applyfunc(sympy.exp) * (K.applyfunc(sympy.exp).T * V) / total(K.applyfunc(sympy.exp))


@brackets.wrong("the products in another order")
def _() -> Sides:
    Q, K, V = matrix_symbols("q", 2, 2), matrix_symbols("k", 2, 2), matrix_symbols("v", 2, 2)
    return (Q * K.T) * V, Q * (V * K.T)


@equation(
    "linear-attention-mixes-features",
    r"(X W_Q)\, (X W_K)^\top X W_V = X\, W(X), \qquad W(X) = W_Q W_K^\top X^\top X\, W_V",
    rows=["A1", "K2"],
    uses=["linear-attention-two-readings", "absorbed-score", "linear-attention-by-associativity"],
    scope="T = 2, d = 2",
)
def linear_attention_mixes_features() -> Sides:
    """Bracketed from the right, the data make a matrix that acts on features; softmax attention can only be read as mixing positions."""
    X, W_Q, W_K, W_V = (matrix_symbols(letter, 2, 2) for letter in "xabc")
    return ((X * W_Q) * (X * W_K).T) * (X * W_V), X * (W_Q * W_K.T * X.T * X * W_V)


@linear_attention_mixes_features.wrong("with X X^T in the middle: positions instead of features")
def _() -> Sides:
    X, W_Q, W_K, W_V = (matrix_symbols(letter, 2, 2) for letter in "xabc")
    return ((X * W_Q) * (X * W_K).T) * (X * W_V), X * (W_Q * W_K.T * X * X.T * W_V)


@equation(
    "exponential-scores-full-rank",
    r"\mathrm{rank}\bigl( \phi(Q)\, \phi(K)^\top \bigr) \le m < T = \mathrm{rank}\bigl( e^{Q K^\top} \bigr)",
    rows=["K2", "K1"],
    uses=["exponential-kernel-features", "linear-attention-by-associativity"],
    assumes=["m features", "e to each entry", "T different queries and keys in general position"],
    kind="numeric",
    scope="T = 7, m = d = 2",
)
def the_exponential_has_full_rank(rng: np.random.Generator) -> Claims:
    """What blocks re-bracketing is not the cost of exp, but that no narrow product equals its matrix of weights."""
    for _ in range(3):
        query, key = 2 * rng.normal(size=(2, 7, 2))
        ranks = np.linalg.matrix_rank(query @ key.T), np.linalg.matrix_rank(np.exp(query @ key.T), rtol=1e-12)
        yield Chain(ranks[0], "<=", 2, "<", ranks[1], tight=(True, False))
        yield ranks[1], len(query @ key.T)


@the_exponential_has_full_rank.wrong("exp of a matrix of rank 2 has rank 2", trap="X29")
def _(rng: np.random.Generator) -> Sides:
    query, key = 2 * rng.normal(size=(2, 7, 2))
    return np.linalg.matrix_rank(np.exp(query @ key.T), rtol=1e-12), 2


@equation(
    "linear-attention-flops",
    r"F_{\mathrm{scores\ first}} = 2\, T^2 (d_k + d_v), \qquad F_{\mathrm{state\ first}} = 4\, T d_k d_v",
    rows=["K2"],
    uses=["linear-attention-by-associativity"],
    assumes=["no mask", "features already computed, d_k of them", "a multiply-add counts 2"],
    kind="numeric",
    scope="T = 1 to 6, d_k = 3, d_v = 2",
)
def flops_of_the_two_brackets(rng: np.random.Generator) -> Claims:
    """T^2 against T: two products of T x T, or two with a d_k x d_v matrix."""
    for length in range(1, 7):
        scores_first, state_first = _flops(length, 3, 2)
        yield (scores_first, state_first), (2 * length**2 * (3 + 2), 4 * length * 3 * 2)


def _flops(length: int, d_k: int, d_v: int) -> tuple[int, int]:
    shapes = (length, d_k), (length, d_k), (length, d_v)
    scores_first = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes)
    return 2 * scores_first, 2 * multiplications(lambda q, k, v: q @ (k.T @ v), *shapes)


flops_of_the_two_brackets.wrong("always cheaper: T times less")(lambda rng: (_flops(6, 3, 2)[1], 2 * 6 * (3 + 2)))


@equation(
    "linear-attention-crossover",
    r"T^\ast = \frac{2\, d_k d_v}{d_k + d_v}",
    rows=["K2"],
    uses=["linear-attention-flops"],
    assumes=["equal FLOPs; what hardware does with them is another matter"],
    scope="any widths",
)
def crossover() -> Sides:
    """Equate the two of Eq. linear-attention-flops: with d_k = d_v = d at T = d. Shorter sequences are cheaper with scores first."""
    T, d_k, d_v = symbols("T d_k d_v", positive=True)
    return sympy.solve(2 * T * (d_k + d_v) - 4 * d_k * d_v, T)[0], 2 * d_k * d_v / (d_k + d_v)


@crossover.wrong("T = d_k d_v")
def _() -> Sides:
    T, d_k, d_v = symbols("T d_k d_v", positive=True)
    return sympy.solve(2 * T * (d_k + d_v) - 4 * d_k * d_v, T)[0], d_k * d_v


@equation(
    "exponentials-per-flop",
    r"\frac{N_{\exp}}{F} = \frac{T^2}{2\, T^2 (d_k + d_v)} = \frac{1}{2\, (d_k + d_v)}",
    rows=["K2"],
    uses=["linear-attention-flops"],
    assumes=["softmax attention; one exponential for each score"],
    kind="numeric",
    scope="T = 1 to 6",
)
def how_many_exponentials(rng: np.random.Generator) -> Claims:
    """One exp for every 256 FLOPs at d_k = d_v = 64: dropping it would not make attention linear, re-bracketing does."""
    for length in range(1, 7):
        scores = rng.normal(size=(length, 3)) @ rng.normal(size=(3, length))
        yield np.exp(scores).size / _flops(length, 3, 2)[0], 1 / (2 * (3 + 2))


how_many_exponentials.wrong("exponentials are most of the work", trap="X29")(
    lambda rng: Chain(_flops(6, 3, 2)[0], "<", np.exp(np.zeros((6, 6))).size)
)
how_many_exponentials.wrong("without exp the cost grows like T", trap="X29")(lambda rng: (_flops(6, 3, 2)[0] / _flops(3, 3, 2)[0], 2.0))


# ---- 11.4 three equal forms


@equation(
    "recurrent-linear-attention",
    r"S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \qquad o_t = S_t^\top \phi(q_t) = \sum_{j \le t} \bigl( \phi(q_t) \cdot \phi(k_j) \bigr)\, v_j",
    rows=["K2"],
    uses=["linear-map-from-context", "linear-attention-by-associativity"],
    assumes=["S_0 = 0", "causal"],
    kind="numeric",
    scope="T = 7",
)
def recurrent_form(rng: np.random.Generator) -> Claims:
    """The state is a sum of outer products: the past costs d_k d_v numbers, however long it is. A network that programs fast weights."""
    query, key, value = _sequence(rng)
    state, outputs = np.zeros((3, 2)), []
    for t in range(7):
        state = state + key[t][:, None] * value[t][None, :]
        outputs.append(query[t] @ state)
    yield np.array(outputs), (np.tri(7) * (query @ key.T)) @ value
    yield reference.linear_attention(query, key, value, form="recurrent"), (np.tri(7) * (query @ key.T)) @ value


@recurrent_form.wrong("the state read before it is written")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    return reference.linear_attention(query, key, value, form="recurrent"), (np.tri(7, k=-1) * (query @ key.T)) @ value


@recurrent_form.wrong("without the causal mask")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    return reference.linear_attention(query, key, value, form="recurrent"), (query @ key.T) @ value


@equation(
    "normalised-linear-attention",
    r"o_t = \frac{S_t^\top \phi(q_t)}{n_t \cdot \phi(q_t)}, \qquad n_t = n_{t-1} + \phi(k_t)",
    rows=["K2"],
    uses=["softmax-as-kernel-smoother", "recurrent-linear-attention"],
    assumes=["phi > 0, so that the denominator is not 0"],
    kind="numeric",
    scope="T = 7",
)
def normalised_form(rng: np.random.Generator) -> Claims:
    """Eq. softmax-as-kernel-smoother with another kernel: the denominator is the same sum with every value 1."""
    query, key, value = _sequence(rng)
    S = np.cumsum(key[:, :, None] * value[:, None, :], axis=0)
    n = np.cumsum(key, axis=0)
    kernel = np.tri(7) * (query @ key.T)
    smoother = kernel @ value / kernel.sum(axis=1, keepdims=True)
    yield smoother, np.array([query[t] @ S[t] / (n[t] @ query[t]) for t in range(7)])
    yield (
        reference.linear_attention(query, key, value, normalize=True, feature_map=np.abs, form="recurrent"),
        np.array([query[t] @ S[t] / (n[t] @ query[t]) for t in range(7)]),
    )


@normalised_form.wrong("n_t = n_t + phi instead of n_{t-1} + phi: only the last key is counted")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    S = np.cumsum(key[:, :, None] * value[:, None, :], axis=0)
    kernel = np.tri(7) * (query @ key.T)
    return kernel @ value / kernel.sum(axis=1, keepdims=True), np.array([query[t] @ S[t] / (key[t] @ query[t]) for t in range(7)])


@normalised_form.wrong("features of any sign: the denominator may vanish")
def _(rng: np.random.Generator) -> Chain:
    return Chain(0.0, "<", np.tri(7) * (rng.normal(size=(7, 3)) @ rng.normal(size=(3, 7))) @ np.ones(7))


@equation(
    "chunked-linear-attention",
    r"O_c = Q_c\, S_c + \bigl( Q_c K_c^\top \odot M \bigr) V_c, \qquad S_{c+1} = S_c + K_c^\top V_c",
    rows=["K2"],
    uses=["recurrent-linear-attention"],
    assumes=["features in Q, K", "M_ij = 1 for j <= i, else 0, within one chunk"],
    kind="numeric",
    scope="T = 7 in chunks of 1, 3 and 7",
)
def chunked_form(rng: np.random.Generator) -> Claims:
    """Between chunks recurrent, inside them parallel: matrix products of a useful size, and work that still grows like T."""
    query, key, value = _sequence(rng)
    whole = (np.tri(7) * (query @ key.T)) @ value
    for size in (1, 3, 7):
        state = np.zeros((3, 2))
        for start in range(0, 7, size):
            Q, K, V = (array[start : start + size] for array in (query, key, value))
            M = np.tri(len(Q))
            yield whole[start : start + size], Q @ state + (Q @ K.T * M) @ V
            state = state + K.T @ V


@chunked_form.wrong("the state of the past forgotten")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    return ((np.tri(7) * (query @ key.T)) @ value)[3:], (np.tri(4) * (query[3:] @ key[3:].T)) @ value[3:]


@chunked_form.wrong("the chunk written into the state before it is read")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    state = key.T @ value
    return ((np.tri(7) * (query @ key.T)) @ value)[3:], query[3:] @ state + (np.tri(4) * (query[3:] @ key[3:].T)) @ value[3:]


@equation(
    "linear-attention-with-decay",
    r"S_t = \mathrm{diag}(a_t)\, S_{t-1} + k_t v_t^\top \;\Rightarrow\;"
    r" o_t = \sum_{j \le t} \Bigl( \sum_r q_{t,r}\, k_{j,r} \prod_{l=j+1}^{t} a_{l,r} \Bigr) v_j",
    rows=["K2"],
    uses=["recurrent-linear-attention"],
    assumes=["S_0 = 0", "o_t = S_t^T q_t", "0 < a <= 1: what each feature keeps at each step"],
    kind="numeric",
    scope="T = 7, d_k = 3",
)
def decay(rng: np.random.Generator) -> Claims:
    """A gate that forgets: key j reaches query t weakened by all gates in between, its own not among them."""
    query, key, value = _sequence(rng)
    a = rng.uniform(0.5, 1, size=(7, 3))
    output = reference.linear_attention(query, key, value, log_decay=np.log(a), form="recurrent")
    for t in range(7):
        yield output[t], sum((query[t] * key[j] * a[j + 1 : t + 1].prod(axis=0)).sum() * value[j] for j in range(t + 1))


@decay.wrong("the gate of step j counted too")
def _(rng: np.random.Generator) -> Sides:
    query, key, value = _sequence(rng)
    a = rng.uniform(0.5, 1, size=(7, 3))
    output = reference.linear_attention(query, key, value, log_decay=np.log(a), form="recurrent")
    return output[6], sum((query[6] * key[j] * a[j:].prod(axis=0)).sum() * value[j] for j in range(7))


# ---- 11.5 what the state can hold


@equation(
    "recall-signal-and-interference",
    r"S^\top k_i = |k_i|^2\, v_i + \sum_{j \ne i} (k_j \cdot k_i)\, v_j, \qquad S = \sum_j k_j v_j^\top",
    rows=["K2"],
    uses=["recurrent-linear-attention"],
    scope="3 pairs, d_k = 2, one value",
)
def signal_and_interference() -> Sides:
    """What is read back is what was written, plus every other value as far as its key overlaps. Orthonormal keys read exactly."""
    K, v = matrix_symbols("k", 3, 2), real_symbols("v", 3)
    read = (K.T * sympy.Matrix(v)).T * K.row(0).T
    overlaps = [(K.row(j) * K.row(0).T)[0] for j in range(3)]
    return read[0], (K[0, 0] ** 2 + K[0, 1] ** 2) * v[0] + total(overlaps[j] * v[j] for j in (1, 2))


@signal_and_interference.wrong("the value alone")
def _() -> Sides:
    K, v = matrix_symbols("k", 3, 2), real_symbols("v", 3)
    return ((K.T * sympy.Matrix(v)).T * K.row(0).T)[0], (K[0, 0] ** 2 + K[0, 1] ** 2) * v[0]


@equation(
    "interference-lower-bound",
    r"\sum_{i \ne j} (k_i \cdot k_j)^2 \ge \frac{n^2}{d_k} - n",
    rows=["K2"],
    uses=["recall-signal-and-interference"],
    assumes=["n unit keys"],
    kind="numeric",
    scope="d_k = 2 and 3, n = 1 to 7, bound attained by evenly spread keys",
)
def capacity(rng: np.random.Generator) -> Claims:
    """No more than d_k keys are free of interference. The Gram matrix has trace n and rank at most d_k, so its squares sum to n^2 / d_k."""
    for d_k in (2, 3):
        for n in range(1, 8):
            keys = rng.normal(size=(n, d_k))
            keys /= np.linalg.norm(keys, axis=1, keepdims=True)
            yield Chain(n**2 / d_k - n, "<=", _interference(keys), scale=float(n**2))
    for n in range(2, 8):
        angles = np.pi * np.arange(n) / n
        yield Chain(n**2 / 2 - n, "<=", _interference(np.stack([np.cos(angles), np.sin(angles)], axis=1)), tight=(True,), scale=float(n**2))


def _interference(keys: np.ndarray) -> float:
    overlaps = keys @ keys.T
    return float((overlaps**2).sum() - (np.diag(overlaps) ** 2).sum())


capacity.wrong("any number of keys fits without interference")(
    lambda rng: Chain(0.0, "<=", _interference(np.array([[1.0, 0.0], [0.0, 1.0], [np.sqrt(0.5), np.sqrt(0.5)]])), tight=(True,), scale=1.0)
)


@equation(
    "interference-of-random-keys",
    r"\mathbb{E}\, \Bigl| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \Bigr|^2 = \frac{n - 1}{d_k}\, \mathbb{E} |v|^2",
    rows=["K2"],
    uses=["recall-signal-and-interference"],
    assumes=["keys independent, uniform on the unit sphere", "values independent of them and of each other, mean 0"],
    kind="statistical",
    scope="d_k = 8, n = 5, 40 000 draws, 2 %",
)
def noise_of_random_keys(rng: np.random.Generator) -> Moment:
    """E (k . k')^2 = 1 / d_k for unit vectors, and independent terms add: the noise is as large as the signal at n = d_k + 1."""
    keys, values = _random_pairs(rng)
    overlaps = (keys[:, 1:] * keys[:, :1]).sum(axis=-1)
    noise = (overlaps[:, :, None] * values[:, 1:]).sum(axis=1)
    return Moment((noise**2).sum(axis=-1), (5 - 1) / 8 * 2, resolution=0.02)


def _random_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw 5 unit keys (d_k = 8) and 5 values (d_v = 2, variance 1) many times."""
    keys = rng.normal(size=(40_000, 5, 8))
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True), rng.normal(size=(40_000, 5, 2))


@noise_of_random_keys.wrong("no noise below d_k pairs")
def _(rng: np.random.Generator) -> Moment:
    keys, values = _random_pairs(rng)
    overlaps = (keys[:, 1:] * keys[:, :1]).sum(axis=-1)
    return Moment(((overlaps[:, :, None] * values[:, 1:]).sum(axis=1) ** 2).sum(axis=-1), 0.0, scale=1.0)


@noise_of_random_keys.wrong("1 / d_k^2: the square of the overlap squared again")
def _(rng: np.random.Generator) -> Moment:
    keys, values = _random_pairs(rng)
    overlaps = (keys[:, 1:] * keys[:, :1]).sum(axis=-1)
    return Moment(((overlaps[:, :, None] * values[:, 1:]).sum(axis=1) ** 2).sum(axis=-1), (5 - 1) / 8**2 * 2, resolution=0.02)
