"""Fast attention: the memory wall, and softmax over blocks.

The state of a set of keys is (m, l, a): a reference, the sum of e^{s_j - m}, and the same sum times the values.
"""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import Traced, by_size, multiplications, traced
from attn_course.formulas import matrix, of, row, rows, vector
from attn_course.formulas.givens import Of

claim = about("M1")


# ---- the memory wall
@claim("attention-forward-flops", rests_on="attention-flops")
def _(rng, T_q, T_k, d_k, d_v):
    r"""F = 2\, T_q T_k\, (d_k + d_v)
    where a multiply-add counts 2 ;; exponentials not counted
    Two matrix products: scores over d_k, output over d_v.
        a multiply-add counted once: 2\, T_q -> T_q
        the widths multiplied: (d_k + d_v) -> d_k d_v
        linear in the lengths: T_q T_k\, -> (T_q + T_k)\,
    """
    products = multiplications(lambda q, k, v: (q @ k.T) @ v, (T_q, d_k), (T_k, d_k), (T_k, d_v))
    return {"F": 2 * products, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


def three_kernels(query: Traced, key: Traced, value: Traced) -> Traced:
    """Attention as three kernels, each of which reads its inputs and writes its result."""
    return (query @ key.T).elementwise() @ value


@claim("plain-attention-bytes", rests_on="attention-traffic")
def _(rng, T_q, T_k, d_k, d_v, draw):
    r"""M_{\mathrm{plain}} = b\, \bigl( (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \bigr)
    where three kernels, each of which reads its inputs and writes its result ;; b bytes for one number
    Q, K, V and the output go once; the scores are written and read, the weights are written and read.
        inputs and outputs only: M_{\mathrm{plain}} = b\, (T_q + T_k)(d_k + d_v)
        the scores counted once: + 4\, -> +
        numbers, not bytes: M_{\mathrm{plain}} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k
    """
    T_k = T_q if draw == 1 else T_k

    def moved(size: int) -> int:
        return size * traced(three_kernels, (T_q, d_k), (T_k, d_k), (T_k, d_v))[0]

    given = {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}
    return given | {"b": int(rng.integers(2, 9)), r"M_{\mathrm{plain}}": of(moved, "b")}


@claim("roofline")
def _(rng, draw):
    r"""t = \max(F / \pi,\; M / \beta), \qquad \frac{F}{t} = \min(\pi,\; I \beta), \qquad I = \frac{F}{M}
    where pi: FLOPs per second ;; beta: bytes per second ;; t: the time, if computing and moving overlap completely
    Below the intensity pi / beta memory sets the pace, above it arithmetic. No kernel is faster.
        the two rates averaged: \frac{F}{t} = \frac{\pi + I \beta}{2}, \qquad I = \frac{F}{M}
        the faster of the two: \frac{F}{t} = \max(\pi,\; I \beta), \qquad I = \frac{F}{M}
        one after the other: \max(F / \pi,\; M / \beta) -> F / \pi + M / \beta
        the intensity upside down: \frac{F}{t} = \min(\pi,\; I \beta), \qquad I = \frac{M}{F}
    """
    M, pi, beta = rng.uniform(2, 9, size=3)
    F = (2.3, 0.4, 1.0)[draw] * pi / beta * M  # once at the ridge itself
    t, left = 0.0, {pi: F, beta: M}  # what each unit still has to do
    while left:
        step = min(amount / rate for rate, amount in left.items())
        t += step
        left = {rate: amount - step * rate for rate, amount in left.items() if amount / rate > 1.000001 * step}
    return {"t": t, "F": F, "M": M, r"\pi": pi, r"\beta": beta}


def square_flops(d: int) -> Of:
    """Return the FLOPs of attention for T queries, T keys and one width, as counted."""
    return by_size(lambda T: 2 * multiplications(lambda q, k, v: (q @ k.T) @ v, *3 * [(T, d)]), "T", "d")


def square_bytes(d: int, b: int) -> Of:
    """Return what the three kernels move for T queries, T keys and one width, as counted."""
    return by_size(lambda T: b * traced(three_kernels, *3 * [(T, d)])[0], "T", "d", "b")


@claim("plain-attention-intensity", rests_on="attention-forward-flops plain-attention-bytes")
def _(rng, d, b):
    r"""\lim_{T \to \infty} \frac{F}{M_{\mathrm{plain}}} = \frac{d}{b}
    where T_q = T_k = T ;; d_k = d_v = d
    32 FLOPs for each byte at d = 64 and b = 2, where a large GPU wants hundreds: longer sequences do not help.
        it grows with T: d -> T
        a FLOP for each byte: d -> 1
        the weights never leave the chip: d -> 2\, d
    """
    return {"T": rng.uniform(3, 9), "d": d, "b": b, "F": square_flops(d), r"M_{\mathrm{plain}}": square_bytes(d, b)}


@claim("decoding-intensity", serves="M1 H3", rests_on="grouped-query-attention attention-forward-flops")
def _(normal, rng, g, d, b):
    r"""\lim_{T \to \infty} \frac{F}{M} = \frac{2\, g}{b}
    where decoding: one new token, g query heads on one key head ;; everything moved once ;; d_k = d_v = d
    The cache is read for 2 g FLOPs per number: bound by memory, unless many query heads share it.
        d / b, as in training: 2\, g -> d
        as if each head had keys of its own: 2\, g -> 2
        a multiply-add counted once: 2\, g -> g
    """

    def moved(T: int) -> int:
        query, key, value = (normal(length, d) for length in (g, T, T))
        return b * sum(array.size for array in (query, key, value, reference.attention(query, key, value)))

    flops = by_size(lambda T: 2 * multiplications(lambda q, k, v: (q @ k.T) @ v, (g, d), (T, d), (T, d)), "T", "g", "d")
    return {"T": rng.uniform(3, 9), "g": g, "d": d, "b": b, "F": flops, "M": by_size(moved, "T", "g", "d", "b")}


# ---- softmax over blocks of keys
def state(scores: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (m, l, a) of a set of keys, for each row of scores, by definition; of none, or none that counts, (-inf, 0, 0)."""
    m = scores.max(axis=-1, initial=-np.inf)
    shares = np.exp(scores - np.where(np.isneginf(m), 0.0, m)[..., None])
    return m, shares.sum(axis=-1), shares @ values


@claim("reference-score-cancels", rests_on="shifted-lse")
def _(normal, n, d_v):
    r"""\frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}} = \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}}
    where m any number
    e^{-m} cancels: numerator and denominator may be summed apart, and m may even lag behind the maximum, if nothing overflows.
        only the numerator is shifted: {\sum_j e^{s_j - m}} -> {\sum_j e^{s_j}}
        the numerator alone: \sum_j e^{s_j - m}\, v_j = \sum_j e^{s_j}\, v_j
    """
    return {"s": vector(normal(n)), "v": rows(normal(n, d_v)), "m": 2 * normal()}


@claim("merge-of-attention-states", rests_on="merge-of-softmax-sums reference-score-cancels", may_be="empty")
def _(normal, n_A, n_B, d_v, draw):
    r"""m = \max(m_A, m_B), \quad \ell = e^{m_A - m} \ell_A + e^{m_B - m} \ell_B, \quad a = e^{m_A - m} a_A + e^{m_B - m} a_B
    where A, B disjoint sets of keys, not both empty ;; z = a / l
    Bring both blocks to one reference, then add: the accumulator needs the same factor as the sum.
        the accumulator is not rescaled: e^{m_A - m} a_A + e^{m_B - m} -> a_A +
        rescaled by exp(m - m_A): e^{m_A - m} \ell_A + e^{m_B - m} -> e^{m - m_A} \ell_A + e^{m - m_B}
        the maxima added, as the sums are: \max(m_A, m_B) -> m_A + m_B
    """
    scores = 2 * np.concatenate([normal(n_A), normal(n_B)]) - 12 * draw  # also without a positive score
    values = normal(n_A + n_B, d_v)
    _, row_sum, a = state(scores, values)
    given = {r"\ell": row_sum, "a": row(a)}
    for name, keys in {"A": slice(n_A), "B": slice(n_A, None)}.items():
        m, row_sum, a = state(scores[keys], values[keys])
        given |= {f"m_{name}": m, rf"\ell_{name}": row_sum, f"a_{name}": row(a)}
    return given


@claim("tiled-attention-update", rests_on="online-softmax-update shifted-lse")
def _(normal, B_q, B_k, n, d_v, draw):
    r"""m'_i = \max(m_i, \max_j s_{ij}), \quad \ell'_i = e^{m_i - m'_i} \ell_i + \sum_j e^{s_{ij} - m'_i}, \quad a'_i
        = e^{m_i - m'_i} a_i + \sum_j e^{s_{ij} - m'_i} v_j
    where s_ij, v_j: scores and values of the next block of keys ;; m = -inf, l = 0, a = 0 at the start
    Induction: if (m, l, a) is the state of the keys so far, then (m', l', a') is that of one block more. At the end z = a / l.
        the missing rescale: all e^{m_i - m'_i} ->
        outputs accumulated instead of values: \sum_j e^{s_{ij} - m'_i} v_j -> \frac{\sum_j e^{s_{ij} - m'_i} v_j}{\sum_j e^{s_{ij} - m'_i}}
        the new block measured from the old maximum: all s_{ij} - m' -> s_{ij} - m
        the maximum of the block alone: \max(m_i, \max_j s_{ij}) -> \max_j s_{ij}
    """
    seen = 0 if draw == 2 else n  # the last draw is the start of the loop
    scores, values = 2 * normal(B_q, seen + B_k) - 9 * draw, normal(seen + B_k, d_v)
    m, row_sum, a = state(scores[:, :seen], values[:seen])
    _, new_sum, new_a = state(scores, values)
    old = {"m": vector(m), r"\ell": vector(row_sum), "a": rows(a)}
    return old | {"s": matrix(scores[:, seen:]), "v": rows(values[seen:]), r"\ell'": vector(new_sum), "a'": rows(new_a)}


@claim("row-lse-and-output", rests_on="shifted-lse tiled-attention-update")
def _(normal, n, d_k, d_v, draw):
    r"""L = m + \ln \ell = \ln \sum_j e^{s_j}, \qquad z = \frac{a}{\ell}
    After the last block two numbers become one: L is all that the backward pass, or another machine, needs to know of a row.
        m + l, without the logarithm: + \ln -> +
        the maximum kept alone: + \ln \ell ->
        the output divided by L: {\ell} -> {L}
    """
    n, query = (n, normal(1, d_k)) if draw else (1, np.zeros((1, d_k)))  # once a single key, of score 0
    key, value = normal(n, d_k), normal(n, d_v)
    output, lse = reference.attention(query, key, value, scale=1.3, return_lse=True)
    scores = 1.3 * reference.dot_scores(query, key)[0]
    m, row_sum, a = state(scores, value)
    return {"s": vector(scores), "m": m, r"\ell": row_sum, "a": row(a), "L": lse[0], "z": row(output[0])}


@claim("merge-of-finished-outputs", serves="M1 H3", rests_on="row-lse-and-output")
def _(normal, rng, n, g, d_k, d_v):
    r"""z = \sum_{c} e^{L^{(c)} - L}\, z^{(c)}, \qquad L = \ln \sum_c e^{L^{(c)}}
    where z^(c), L^(c): output and log-sum-exp of chunk c of the keys
    Outputs merge with softmax weights of their L: keys can be split over programs (decoding) or machines (ring attention).
        the sum of the outputs: e^{L^{(c)} - L}\, ->
        the largest L as that of all keys: \ln \sum_c e^{L^{(c)}} -> \max_c L^{(c)}
        weighted by L itself: e^{L^{(c)} - L}\, -> \frac{L^{(c)}}{L}\,
    """
    query, key, value = normal(1, d_k), normal(g * n, d_k), normal(g * n, d_v)
    output, lse = reference.attention(query, key, value, return_lse=True)
    ends = np.sort(rng.choice(np.arange(1, g * n), size=g - 1, replace=False))  # chunks of different lengths
    chunks = zip(np.split(key, ends), np.split(value, ends), strict=True)
    z, L = zip(*(reference.attention(query, *chunk, return_lse=True) for chunk in chunks), strict=True)
    return {"z": row(output[0]), "L": lse[0], "z^{(c)}": rows(np.concatenate(z)), "L^{(c)}": vector(np.concatenate(L))}


@claim("running-sum-bounds", rests_on="tiled-attention-update")
def _(normal, n, draw):
    r"""1 \le \ell \le n
    where m = the maximum of the n scores so far
    No exponent is positive and one of them is 0, so the sum cannot overflow; a reference that lags has no such bound.
        below 1, as a sum of weights: \ell \le 1 \le n
        one key never counts: n -> n - 1
        the maximum counts twice: 1 -> 2
    """
    n = 1 if draw == 1 else n
    scores = np.full(n, normal()) if draw == 2 else 2 * normal(n)
    m, row_sum = -np.inf, 0.0
    for score in scores:  # a key at a time
        top = max(m, score)
        m, row_sum = top, row_sum * np.exp(m - top) + np.exp(score - top)
    return {r"\ell": row_sum, "n": n}
