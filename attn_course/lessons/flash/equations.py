"""Fast attention: the memory wall, and softmax over blocks.

The state of a set of keys is (m, l, a): a reference, the sum of e^{s_j - m}, and the same sum times the values.
"""

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import sympy
from sympy import exp, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, total

T, d, b, g = symbols("T d b g", positive=True)


# ---- 12.1 the memory wall


@equation(
    "attention-forward-flops",
    r"F = 2\, T_q T_k\, (d_k + d_v)",
    rows=["M1"],
    uses=["attention-flops"],
    assumes=["a multiply-add counts 2", "exponentials not counted"],
    kind="numeric",
    scope="four shapes, counted while computing",
)
def flops_of_the_forward_pass(rng: np.random.Generator) -> Claims:
    """Two matrix products: scores over d_k, output over d_v."""
    for q_len, kv_len, d_k, d_v in ((3, 5, 4, 2), (1, 7, 3, 3), (6, 6, 2, 5), (5, 1, 1, 1)):
        yield _flops(q_len, kv_len, d_k, d_v), 2 * q_len * kv_len * (d_k + d_v)


def _flops(q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    return 2 * multiplications(lambda q, k, v: (q @ k.T) @ v, (q_len, d_k), (kv_len, d_k), (kv_len, d_v))


flops_of_the_forward_pass.wrong("a multiply-add counted once")(lambda rng: (_flops(3, 5, 4, 2), 3 * 5 * (4 + 2)))


class _Memory:
    """Slow memory that counts what goes in and out, in bytes."""

    def __init__(self) -> None:
        self.moved = 0

    def move(self, array: np.ndarray) -> np.ndarray:
        """Read or write an array."""
        self.moved += array.nbytes
        return array


@equation(
    "plain-attention-bytes",
    r"M_{\mathrm{plain}} = b\, \bigl( (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \bigr)",
    rows=["M1"],
    uses=["attention-traffic", "attention-forward-flops"],
    assumes=["three kernels, each of which reads its inputs and writes its result", "b bytes for one number"],
    kind="numeric",
    scope="three shapes, counted while computing, b = 8",
)
def bytes_of_plain_attention(rng: np.random.Generator) -> Claims:
    """Q, K, V and the output go once; the scores are written and read, the weights are written and read."""
    for q_len, kv_len, d_k, d_v in ((3, 5, 4, 2), (1, 7, 3, 3), (6, 6, 2, 5)):
        yield _plain_bytes(rng, q_len, kv_len, d_k, d_v), 8 * ((q_len + kv_len) * (d_k + d_v) + 4 * q_len * kv_len)


def _plain_bytes(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int) -> int:
    query, key, value = rng.normal(size=(q_len, d_k)), rng.normal(size=(kv_len, d_k)), rng.normal(size=(kv_len, d_v))
    memory = _Memory()
    scores = memory.move(memory.move(query) @ memory.move(key).T)
    weights = memory.move(weights_of(memory.move(scores)))
    memory.move(memory.move(weights) @ memory.move(value))
    return memory.moved


bytes_of_plain_attention.wrong("inputs and outputs only")(lambda rng: (_plain_bytes(rng, 3, 5, 4, 2), 8 * (3 + 5) * (4 + 2)))
bytes_of_plain_attention.wrong("the scores counted once")(lambda rng: (_plain_bytes(rng, 3, 5, 4, 2), 8 * ((3 + 5) * (4 + 2) + 3 * 5)))


@equation(
    "roofline",
    r"\frac{F}{\max(F / \pi,\; M / \beta)} = \min(\pi,\; I \beta), \qquad I = \frac{F}{M}",
    rows=["M1"],
    assumes=[
        "pi: FLOPs per second",
        "beta: bytes per second",
        "computing and moving overlap completely: the time is the larger of the two",
    ],
    kind="numeric",
    scope="random machines and kernels",
)
def roofline(rng: np.random.Generator) -> Claims:
    """Below the intensity pi / beta memory sets the pace, above it arithmetic. No kernel is faster."""
    for _ in range(8):
        F, M, pi, beta = rng.uniform(0.1, 10, size=4)
        intensity = F / M
        yield F / max(F / pi, M / beta), min(pi, intensity * beta)


@roofline.wrong("the two rates averaged")
def _(rng: np.random.Generator) -> Claims:
    for _ in range(8):
        F, M, pi, beta = rng.uniform(0.1, 10, size=4)
        yield F / max(F / pi, M / beta), (pi + F / M * beta) / 2


@roofline.wrong("the faster of the two")
def _(rng: np.random.Generator) -> Claims:
    for _ in range(8):
        F, M, pi, beta = rng.uniform(0.1, 10, size=4)
        yield F / max(F / pi, M / beta), max(pi, F / M * beta)


@equation(
    "plain-attention-intensity",
    r"\lim_{T \to \infty} \frac{F}{M_{\mathrm{plain}}} = \frac{d}{b}",
    rows=["M1"],
    uses=["attention-forward-flops", "plain-attention-bytes"],
    assumes=["T_q = T_k = T", "d_k = d_v = d"],
    scope="any d, b",
)
def intensity_of_plain_attention() -> Sides:
    """32 FLOPs for each byte at d = 64 and b = 2, where a large GPU wants hundreds: longer sequences do not help."""
    return sympy.limit((2 * T**2 * 2 * d) / (b * (2 * T * 2 * d + 4 * T**2)), T, sympy.oo), d / b


@intensity_of_plain_attention.wrong("it grows with T")
def _() -> Sides:
    return sympy.limit((2 * T**2 * 2 * d) / (b * (2 * T * 2 * d + 4 * T**2)), T, sympy.oo), T / b


@equation(
    "decoding-intensity",
    r"\lim_{T \to \infty} \frac{F}{M} = \frac{2\, g}{b}",
    rows=["M1", "H3"],
    uses=["grouped-query-attention", "attention-forward-flops"],
    assumes=["decoding: one new token, g query heads on one key head", "everything moved once", "d_k = d_v = d"],
    scope="any g, d, b",
)
def intensity_of_decoding() -> Sides:
    """The cache is read for 2 g FLOPs per number: bound by memory, unless many query heads share it."""
    return sympy.limit((g * 2 * T * 2 * d) / (b * (2 * g * d + 2 * T * d)), T, sympy.oo), 2 * g / b


@intensity_of_decoding.wrong("d / b, as in training")
def _() -> Sides:
    return sympy.limit((g * 2 * T * 2 * d) / (b * (2 * g * d + 2 * T * d)), T, sympy.oo), d / b


# ---- 12.2 softmax over blocks of keys

_State: TypeAlias = tuple[float, float, np.ndarray]


def _state(scores: np.ndarray, values: np.ndarray) -> _State:
    """Return (m, l, a) of a set of keys; of none, (-inf, 0, 0)."""
    m = scores.max(initial=-np.inf)
    shares = np.exp(scores - m)
    return float(m), float(shares.sum()), shares @ values


def _merged(first: _State, second: _State) -> _State:
    m = max(first[0], second[0])
    old, new = (0.0 if state[0] == -np.inf else np.exp(state[0] - m) for state in (first, second))
    return m, old * first[1] + new * second[1], old * first[2] + new * second[2]


def _rows(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield scores of one query and values (d_v = 2): plain, equal, and far apart."""
    for n in (2, 5, 8):
        for scores in (rng.normal(size=n), np.zeros(n), rng.permutation(300.0 * np.arange(n)), rng.normal(size=n) - 800):
            yield scores, rng.normal(size=(n, 2))


@equation(
    "reference-score-cancels",
    r"\frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}} = \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}}",
    rows=["M1"],
    uses=["shifted-lse"],
    assumes=["m any number"],
    scope="n = 3, any m",
)
def any_reference_will_do() -> Sides:
    """e^{-m} cancels: numerator and denominator may be summed apart, and m may even lag behind the maximum, if nothing overflows."""
    s, v, m = real_symbols("s", 3), real_symbols("v", 3), sympy.Symbol("m", real=True)
    left = total(exp(s[j] - m) * v[j] for j in range(3)) / total(exp(s[j] - m) for j in range(3))
    return left, total(exp(s[j]) * v[j] for j in range(3)) / total(exp(s[j]) for j in range(3))


@any_reference_will_do.wrong("also if only the numerator is shifted")
def _() -> Sides:
    s, v, m = real_symbols("s", 3), real_symbols("v", 3), sympy.Symbol("m", real=True)
    left = total(exp(s[j] - m) * v[j] for j in range(3)) / total(exp(s[j]) for j in range(3))
    return left, total(exp(s[j]) * v[j] for j in range(3)) / total(exp(s[j]) for j in range(3))


@equation(
    "merge-of-attention-states",
    r"m = \max(m_A, m_B), \quad \ell = e^{m_A - m} \ell_A + e^{m_B - m} \ell_B, \quad a = e^{m_A - m} a_A + e^{m_B - m} a_B",
    rows=["M1"],
    uses=["merge-of-softmax-sums", "reference-score-cancels"],
    assumes=["A, B disjoint sets of keys, not empty", "z = a / l"],
    kind="numeric",
    scope="n = 2, 5, 8, every split",
)
def merge_of_states(rng: np.random.Generator) -> Claims:
    """Bring both blocks to one reference, then add: the accumulator needs the same factor as the sum."""
    for scores, values in _rows(rng):
        whole = _state(scores, values)
        for cut in range(1, scores.size):
            (m_A, l_A, a_A), (m_B, l_B, a_B) = _state(scores[:cut], values[:cut]), _state(scores[cut:], values[cut:])
            m = max(m_A, m_B)
            yield whole[:2], (max(m_A, m_B), np.exp(m_A - m) * l_A + np.exp(m_B - m) * l_B)
            yield whole[2], np.exp(m_A - m) * a_A + np.exp(m_B - m) * a_B


@merge_of_states.wrong("the accumulator is not rescaled")
def _(rng: np.random.Generator) -> Claims:
    for scores, values in _rows(rng):
        yield _state(scores, values)[2], _state(scores[:1], values[:1])[2] + _state(scores[1:], values[1:])[2]


@merge_of_states.wrong("rescaled by e^{m - m_A}")
def _(rng: np.random.Generator) -> Claims:
    for scores, values in _rows(rng):
        first, second = _state(scores[:1], values[:1]), _state(scores[1:], values[1:])
        m = max(first[0], second[0])
        yield _state(scores, values)[1], np.exp(m - first[0]) * first[1] + np.exp(m - second[0]) * second[1]


@equation(
    "merging-is-commutative-monoid",
    r"(A \oplus B) \oplus C = A \oplus (B \oplus C), \qquad A \oplus B = B \oplus A, \qquad A \oplus (-\infty, 0, 0) = A",
    rows=["M1"],
    uses=["merge-of-attention-states"],
    assumes=["states (m, l, a), not only those of scores; e^{-inf - (-inf)} is read as 0"],
    kind="numeric",
    scope="random states",
)
def merging_is_a_commutative_monoid(rng: np.random.Generator) -> Claims:
    """Blocks may be merged in any order and grouping: one after the other, as a tree, or on several machines."""
    for _ in range(8):
        A, B, C = ((float(rng.normal() * 5), float(rng.uniform(0, 3)), rng.normal(size=2)) for _ in range(3))
        empty = (-np.inf, 0.0, np.zeros(2))
        m = max(A[0], B[0], C[0])
        sums = np.exp(A[0] - m) * A[1] + np.exp(B[0] - m) * B[1] + np.exp(C[0] - m) * C[1]
        for grouped in (_merged(_merged(A, B), C), _merged(A, _merged(B, C)), _merged(_merged(C, empty), _merged(B, A))):
            yield grouped[:2], (max(A[0], B[0], C[0]), sums)
            yield grouped[2], np.exp(A[0] - m) * A[2] + np.exp(B[0] - m) * B[2] + np.exp(C[0] - m) * C[2]


@merging_is_a_commutative_monoid.wrong("finished outputs may be averaged in any grouping")
def _(rng: np.random.Generator) -> Sides:
    first, second, third = rng.normal(size=3)
    return ((first + second) / 2 + third) / 2, (first + (second + third) / 2) / 2


@equation(
    "tiled-attention-update",
    r"m' = \max(m, \mathrm{rowmax}\, S), \quad \ell' = e^{m - m'} \ell + \mathrm{rowsum}\, e^{S - m'}, \quad"
    r" a' = e^{m - m'} a + e^{S - m'} V",
    rows=["M1"],
    uses=["online-softmax-update", "merge-of-attention-states"],
    assumes=["S, V: scores and values of the next block of keys", "m = -inf, l = 0, a = 0 at the start"],
    kind="numeric",
    scope="3 queries, 7 keys, blocks of 1, 2, 3 and 7",
)
def invariant_of_the_loop(rng: np.random.Generator) -> Claims:
    """Induction: if (m, l, a) is the state of the keys so far, then (m', l', a') is that of one block more. At the end z = a / l."""
    scores, values = 4 * rng.normal(size=(3, 7)), rng.normal(size=(7, 2))
    for size in (1, 2, 3, 7):
        m, row_sum, a = np.full((3, 1), -np.inf), np.zeros((3, 1)), np.zeros((3, 2))
        for start in range(0, 7, size):
            S, V = scores[:, start : start + size], values[start : start + size]
            seen = slice(0, start + size)
            shares = np.exp(scores[:, seen] - scores[:, seen].max(axis=1, keepdims=True))
            m_new = np.maximum(m, S.max(axis=1, keepdims=True))
            yield shares.sum(axis=1, keepdims=True), np.exp(m - m_new) * row_sum + np.exp(S - m_new).sum(axis=1, keepdims=True)
            yield shares @ values[seen], np.exp(m - m_new) * a + np.exp(S - m_new) @ V
            yield scores[:, seen].max(axis=1, keepdims=True), np.maximum(m, S.max(axis=1, keepdims=True))
            m, row_sum, a = m_new, shares.sum(axis=1, keepdims=True), shares @ values[seen]


def _without(rng: np.random.Generator, rescaled: bool) -> Sides:
    """Run the loop with a mistake: no rescaling, or finished outputs accumulated instead of values."""
    scores, values = np.sort(4 * rng.normal(size=(3, 7)), axis=1), rng.normal(size=(7, 2))  # each block holds a new maximum
    m, row_sum, a = np.full((3, 1), -np.inf), np.zeros((3, 1)), np.zeros((3, 2))
    for start in range(0, 7, 3):
        S, V = scores[:, start : start + 3], values[start : start + 3]
        m_new = np.maximum(m, S.max(axis=1, keepdims=True))
        rescale, shares = np.exp(m - m_new) if rescaled else 1.0, np.exp(S - m_new)
        row_sum = rescale * row_sum + shares.sum(axis=1, keepdims=True)
        a = rescale * a + (weights_of(S) if rescaled else shares) @ V
        m = m_new
    return weights_of(scores) @ values, a / row_sum


invariant_of_the_loop.wrong("the missing rescale")(lambda rng: _without(rng, rescaled=False))
invariant_of_the_loop.wrong("outputs accumulated instead of values")(lambda rng: _without(rng, rescaled=True))


@equation(
    "row-lse-and-output",
    r"L = m + \ln \ell = \ln \sum_j e^{s_j}, \qquad z = \frac{a}{\ell}",
    rows=["M1"],
    uses=["shifted-lse", "tiled-attention-update"],
    kind="numeric",
    scope="n = 2, 5, 8",
)
def what_is_kept_of_a_row(rng: np.random.Generator) -> Claims:
    """After the last block two numbers become one: L is all that the backward pass, or another machine, needs to know of a row."""
    for scores, values in _rows(rng):
        m, row_sum, a = _state(scores, values)
        yield (reference.logsumexp(scores), reference.softmax(scores) @ values), (m + np.log(row_sum), a / row_sum)


@what_is_kept_of_a_row.wrong("m + l, without the logarithm")
def _(rng: np.random.Generator) -> Claims:
    for scores, values in _rows(rng):
        m, row_sum, _a = _state(scores, values)
        yield reference.logsumexp(scores), m + row_sum


@equation(
    "merge-of-finished-outputs",
    r"z = \sum_{c} e^{L_c - L}\, z_c, \qquad L = \ln \sum_c e^{L_c}",
    rows=["M1", "H3"],
    uses=["merge-of-attention-states", "row-lse-and-output"],
    assumes=["z_c, L_c: output and log-sum-exp of chunk c of the keys"],
    kind="numeric",
    scope="3 queries, 7 keys in chunks of 2, 3 and 2",
)
def merge_of_finished_outputs(rng: np.random.Generator) -> Claims:
    """Outputs merge with softmax weights of their L: keys can be split over programs (decoding) or machines (ring attention)."""
    for _ in range(3):
        scores, values = 4 * rng.normal(size=(3, 7)), rng.normal(size=(7, 2))
        chunks = [slice(0, 2), slice(2, 5), slice(5, 7)]
        z = [weights_of(scores[:, chunk]) @ values[chunk] for chunk in chunks]
        L_c = np.array([np.log(np.exp(scores[:, chunk]).sum(axis=1)) for chunk in chunks])
        L = np.log(np.exp(L_c).sum(axis=0))
        yield weights_of(scores) @ values, sum(np.exp(L_c[c] - L)[:, None] * z[c] for c in range(3))
        yield reference.merge_partial_attention(np.array(z), L_c)[0], sum(np.exp(L_c[c] - L)[:, None] * z[c] for c in range(3))


@merge_of_finished_outputs.wrong("the mean over chunks, weighted by their length")
def _(rng: np.random.Generator) -> Sides:
    scores, values = rng.normal(size=(3, 7)), rng.normal(size=(7, 2))
    chunks = [slice(0, 2), slice(2, 5), slice(5, 7)]
    mean = sum((chunk.stop - chunk.start) / 7 * (weights_of(scores[:, chunk]) @ values[chunk]) for chunk in chunks)
    return weights_of(scores) @ values, mean


@equation(
    "running-sum-bounds",
    r"1 \le \ell \le n",
    rows=["M1"],
    uses=["lse-bounds", "tiled-attention-update"],
    assumes=["m = the maximum of the n scores so far"],
    kind="numeric",
    scope="n = 2, 5, 8, both bounds attained",
)
def the_sum_cannot_overflow(rng: np.random.Generator) -> Claims:
    """No exponent is positive and one of them is 0: safe in any format that can hold n; a reference that lags has no such bound."""
    for scores, values in _rows(rng):
        tight = (bool(np.sort(scores)[-1] - np.sort(scores)[-2] > 100), np.ptp(scores) == 0)
        yield Chain(1, "<=", _state(scores, values)[1], "<=", len(scores), tight=tight)


@the_sum_cannot_overflow.wrong("also without subtracting the maximum")
def _(rng: np.random.Generator) -> Claims:
    for scores, _values in _rows(rng):
        yield Chain(1, "<=", np.exp(scores / 10).sum(), "<=", len(scores))


@the_sum_cannot_overflow.wrong("below 1, as a sum of weights")
def _(rng: np.random.Generator) -> Claims:
    for scores, values in _rows(rng):
        yield Chain(_state(scores, values)[1], "<=", 1)


@equation(
    "exponential-in-base-two",
    r"e^{s - m} = 2^{\,s \log_2 e - m \log_2 e}",
    rows=["M1"],
    kind="numeric",
    scope="random s, m",
)
def base_two(rng: np.random.Generator) -> Claims:
    """Hardware computes powers of 2: fold log_2 e into the scale of the scores once, and save a product for every exponential."""
    for s, m in rng.normal(size=(8, 2)):
        yield np.exp(s - m), 2 ** (s * math.log2(math.e) - m * math.log2(math.e))


base_two.wrong("2^{s - m}, without the factor")(lambda rng: (np.exp(1.5 - 0.25), 2 ** (1.5 - 0.25)))
base_two.wrong("ln 2 instead of log_2 e")(lambda rng: (np.exp(1.5), 2 ** (1.5 * np.log(2))))
