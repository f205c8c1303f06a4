"""Attention as a function, what one output can hold, and what it costs."""

import math
from itertools import combinations

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.drawing import inputs
from attn_course.formulas import column, columns, function, independent, of, opaque, outcomes, row, rows
from attn_course.formulas.givens import Given

claim = about("L2")


def widest(table: np.ndarray) -> float:
    """Return the diameter: the largest distance between two rows."""
    return max(math.dist(a, b) for a, b in combinations(table, 2))


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
    Eq. weighted-mean-derivative with f = v and scores whose slope is k_j / sqrt(d_k): values do not depend on q.
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


@claim(
    "bounded-slope-in-query",
    rests_on="output-derivative-by-query",
    equivalent={
        r"\lVert \frac{\partial z}{\partial q} \rVert_2 -> \lVert \frac{\partial z}{\partial q} \rVert_F": "true as well, by the variance"
        " of distances instead of that of vectors"
    },
)
def _(normal, T_k, d_k, d_v, draw):
    r"""\Bigl\| \frac{\partial z}{\partial q} \Bigr\|_2 \le \frac{\mathrm{diam}(V)\,\mathrm{diam}(K)}{4 \sqrt{d_k}}
    where diam = largest distance between two rows
    A covariance is at most the product of two standard deviations, each at most half a diameter. Sharp for two equal weights.
        8 instead of 4: 4 -> 8
        d_k for its root: \sqrt{d_k} -> \, d_k
        the square of d_k for its root: \sqrt{d_k} -> d_k^2
    """
    (q,), K, V = inputs(normal, 1, T_k, d_k, d_v)
    if draw == 2:  # two different pairs, one of them often: the query makes up for that, so that each has half of the weight
        K[2:], V[2:] = K[1], V[1]
        q = (K[0] - K[1]) / math.dist(K[0], K[1]) ** 2 * math.sqrt(d_k) * math.log(T_k - 1)
    z = of(lambda q: row(reference.attention(q[None], K, V)[0]), "q")
    return {"z": z, "q": row(q), "K": K, "V": V, r"\mathrm{diam}": function(widest), "d_k": d_k}


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


# ---- What one output can hold
@claim("doubled-context-same-output", serves="L1", rests_on="duplicated-pair-counts-twice attention-of-one-query")
def _(normal, T_k, d_k, d_v):
    r"""\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D)
    where D = the pairs (k_j, v_j); every pair occurs twice on the left
    Numerator and denominator both double: d_v numbers come out, however long the context is.
        twice the context, twice the output: = -> = 2\,
        as sharp as for a doubled query: q, D -> 2\, q, D
        half of the output, since each weight halves: = -> = \frac{1}{2}
    """
    q, K, V = inputs(normal, 1, T_k, d_k, d_v)
    attention = function(lambda q, pairs: reference.attention(q[None], *pairs)[0])
    joined = function(lambda one, other: opaque(tuple(np.vstack(both) for both in zip(one, other, strict=True))))
    return {r"\mathrm{Attention}": attention, "q": row(q[0]), "D": opaque((K, V)), r"\uplus": joined}


@claim("count-beside-reference", serves="L1", rests_on="attention-of-one-query doubled-context-same-output")
def _(normal, n, d_k):
    r"""n = \frac{1}{z} - 1
    where n copies with the value 0 and one reference with the value 1, all with the same score
    Equal scores give each token the weight 1 / (1 + n), and the output is the weight of the reference.
        the reference not counted: n = \frac{1}{z}
        the share taken for the number: n = 1 - z
        the odds of the reference: n = \frac{z}{1 - z}
    """
    key = normal(d_k)
    z = reference.attention(normal(1, d_k), np.tile(key, (n + 1, 1)), np.eye(n + 1)[:, :1])
    return {"n": n, "z": z[0, 0]}


@claim("variance-of-an-output", serves="L1", rests_on="output-of-a-query")
def _(normal, T_k, draw):
    r"""\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2
    where values independent, variance 1, and independent of the weights ;; one entry of z
    Variances add with squared factors. Under uniform weights 1 / T_k: the more is averaged, the less of each is left.
        1, since the weights sum to 1: p_j^2 -> p_j
        the mean of the squares: \sum -> \frac{1}{T_k} \sum
        the variance of a plain mean: \mathrm{Var}[z] = \frac{1}{T_k}
    """
    values, chances = independent((2.3, -0.2), (0.2, 0.8), T_k)  # a lopsided variable of variance 1
    K, q = normal(T_k, 2), normal(1, 2) * (1e4 if draw == 2 else 1)  # in draw 2 one value has all the weight
    z = [reference.attention(q, K, v[:, None])[0, 0] for v in values]
    return {"z": outcomes(chances, Given(z, "scalar")), "p": reference.softmax(reference.scaled_dot_scores(q, K))[0], "T_k": T_k}


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
