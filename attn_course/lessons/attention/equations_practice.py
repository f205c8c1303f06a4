"""Attention as a function of its query, one key among many, and what it costs."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.drawing import inputs
from attn_course.formulas import column, columns, of, row, rows

claim = about("L2")


# ---- Attention as a function of the query
@claim(
    "output-derivative-by-query",
    serves="D3 L2",
    rests_on="weighted-mean-derivative attention-of-one-query",
    equivalent={
        r"v_{j} - z -> v_{j}": "the mean of k_j - k-bar is 0",
        r"v_{j} - z -> v_{j} + z": "the mean of k_j - k-bar is 0",
        r"k_{j} - \bar{k} -> k_{j}": "the mean of v_j - z is 0",
        r"k_{j} - \bar{k} -> k_{j} + \bar{k}": "the mean of v_j - z is 0",
        r"\bar{k} -> q": "the mean of v_j - z is 0",
    },
)
def _(normal, T_k, d_k, d_v):
    r"""\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
        \bar{k} = \sum_{j=1}^{T_k} p_j k_j
    Eq. weighted-mean-derivative with g = v and scores whose slope is k_j / sqrt(d_k): values do not depend on q.
        not centred: (v_j - z)\,(k_j - \bar{k})^\top -> v_j\, k_j^\top
        divided by d_k: \sqrt{d_k} -> d_k
        keys and values exchanged: (v_j - z)\,(k_j - \bar{k})^\top -> (k_j - \bar{k})\,(v_j - z)^\top

    Smooth everywhere, and not constant.
    """
    q, K, V = inputs(normal, 1, T_k, d_k, d_v)
    z = of(lambda q: column(reference.attention(q[None], K, V)[0]), "q")
    mean, p = reference.attention(q, K, K, return_weights=True)
    vectors = {"q": column(q[0]), "k": columns(K), "v": columns(V), "z": z, r"\bar{k}": column(mean[0])}
    return {**vectors, "p": p[0], "T_k": T_k, "d_k": d_k}


@claim("query-misses-own-key", rests_on="attention-of-one-query")
def _(normal, rng, d_v, draw):
    r"""q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06
    The scores are 1 and 5 over sqrt(2): a long key in about the same direction wins against the very key the query sits on.
        q near k_1 gives an output near v_1: q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 > \frac{1}{2}
        X32: attention maps a query to its value: q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = 1
        the weight of the other key: p_1 -> p_2
        whatever the query: q = k_1 -> k_1
    """
    angle, other = rng.uniform(-2, 2), normal(2)
    q, K = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [5.0, 0.0]])
    match draw and 1 + (2 * d_v + draw) % 5:  # all of the premise but one thing
        case 1:
            q = K[0] = np.array([np.cos(angle), np.sin(angle)])
        case 2:
            q = other
        case 3:
            K[0] = other
        case 4:
            K[1] = other
        case 5:
            q = K[0] = other
            K[1] = 5 * q
    p = reference.attention(np.array([q]), K, normal(2, d_v), return_weights=True)[1][0]
    return {"q": row(q), "k": rows(K), "p": p}


@claim("lead-of-own-key", rests_on="dot-product-by-distance query-misses-own-key")
def _(normal, T_k, d_k):
    r"""k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
    Eq. dot-product-by-distance with q = k_i.
        a function of the distance alone: k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2
        longer keys fall behind: k_i \cdot (k_i - k_j) = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} (\|k_j\|^2 - \|k_i\|^2)
        without the halves: k_i \cdot (k_i - k_j) = \|k_i - k_j\|^2 + \|k_i\|^2 - \|k_j\|^2

    For keys of equal length the own key always has the largest score; a longer key can overtake it.
    """
    return {"k": rows(normal(T_k, d_k))}


# ---- One key among many
@claim("margin-grows-with-context", serves="L1", rests_on="attention-weights")
def _(normal, rng, n, draw):
    r"""\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad \Delta = \ln (n - 1) + \ln \frac{p}{1 - p}
    where one key whose score is Delta above the n - 1 others, which are equal ;; 0 < p < 1 ;; n > 1
    Solve for Delta: to keep half of the weight in twice the context, its score must rise by ln 2. Bounded scores lose it at last.
        the same at any length: \frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \iff \Delta = \ln \frac{p}{1 - p}
        in proportion to the length: \frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \iff \Delta = (n - 1) \ln \frac{p}{1 - p}
        the odds turned over: \frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \iff \Delta = \ln (n - 1) + \ln \frac{1 - p}{p}
    """
    delta = normal()
    p = reference.softmax(np.array([delta, *[0.0] * (n - 1)]))[0]
    return {r"\Delta": delta, "p": (p, rng.uniform(0.1, 0.9), p * (1 - 1e-5))[draw], "n": n}


# ---- What it costs
@claim("attention-flops", serves="D1", rests_on="attention")
def _(rng, T_q, T_k, d_k, d_v):
    r"""\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v)
    where a multiplication and its addition count 2 ;; the two matrix products; softmax adds a few operations per score
    T_q T_k dot products of length d_k, then T_q d_v sums of length T_k: quadratic in the length of the sequence.
        the lengths added instead of multiplied: linear in the sequence:
            T_q T_k\, -> (T_q + T_k)
        one FLOP for a multiplication and its addition: 2\, T_q -> T_q
        the two products multiplied: (d_k + d_v) -> d_k d_v
    """
    pairs = multiplications(lambda q, k, v: (q @ k.T) @ v, (T_q, d_k), (T_k, d_k), (T_k, d_v))
    return {r"\text{FLOPs}": 2 * pairs, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@claim("attention-traffic", serves="D1", rests_on="attention attention-flops")
def _(rng, T_q, T_k, d_k, d_v):
    r"""\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k
    where three steps: scores, softmax, output; each reads its inputs from memory and writes its result there
    Inputs and output once, and the T_q x T_k matrix four times: written, read, written, read. For long sequences nothing else counts.
        as if nothing were stored in between: + 4\, T_q T_k ->
        the score matrix moved once: + 4\, -> +
        queries as long as values: (T_q + T_k)(d_k + d_v) -> (T_q + T_k) d_k + 2\, T_k d_v
    """

    def three_steps(q: Traced, k: Traced, v: Traced) -> Traced:
        return (q @ k.T).elementwise() @ v

    moved, _ = traced(three_steps, (T_q, d_k), (T_k, d_k), (T_k, d_v))
    return {r"\text{numbers moved}": moved, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}
