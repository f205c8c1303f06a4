"""Positions without rotation: a penalty on distance, and what the causal mask alone tells."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import index, matrix, vector
from attn_course.reference import alibi_bias, alibi_slopes, attention, causal_mask, scaled_dot_scores

equation = about("O1")


def one_head(rng: np.random.Generator, T: int, d_k: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the slope of one of eight heads, its penalties, queries and keys."""
    head, (Q, K) = rng.integers(3), rng.normal(size=(2, T, d_k))  # of the steep ones, or nothing would be seen of it
    return float(alibi_slopes(8)[head]), alibi_bias(8, T, T)[head], Q, K


# ---- ALiBi: a penalty on distance
@equation(
    "alibi-decays-weights",
    r"p_{tj} = \frac{w_{tj}\, e^{-m\,(t - j)}}{\sum_{l} w_{tl}\, e^{-m\,(t - l)}}",
    uses=["ratio-of-weights"],
    assumes=["w: causal weights without a penalty", "p: with -m (t - j) added to the scaled scores"],
    wrong={
        "what is far gains": r"-m -> m",
        "the rest is not divided up again": r"p_{tj} = w_{tj}\, e^{-m\,(t - j)}",
        "taken from the weights": r"p_{tj} = w_{tj} - m\,(t - j)",
        "decay with the position of the key": r"p_{tj} = \frac{w_{tj}\, e^{-m\,j}}{\sum_{l} w_{tl}\, e^{-m\,l}}",
    },
)
def penalties_make_weights_decay(rng: np.random.Generator, T: int, d_k: int) -> Givens:
    """What is added to a score multiplies the weight: every weight shrinks by e^{-m} for each position of distance, at any length."""
    m, penalties, Q, K = one_head(rng, T, d_k)
    p, w = (attention(Q, K, K, mask=mask, is_causal=True, return_weights=True)[1] for mask in (penalties, None))
    return {"p": matrix(p), "w": matrix(w), "m": m}


@equation(
    "alibi-needs-keys-alone",
    r"p_{tj} = \sigma_l\bigl( s_{tl} + m\, l \bigr)_j",
    uses=["alibi-decays-weights", "softmax-shift-invariance"],
    assumes=["s: scaled scores, -infinity where l > t"],
    wrong={
        "what is early gains": r"+ m -> - m",
        "the position of the query in its place": r"m\, l -> m\, t",
        "the scores multiplied": r"\bigl( s_{tl} + m\, l \bigr) -> \bigl( s_{tl}\, m\, l \bigr)",
    },
)
def penalties_by_keys_alone(rng: np.random.Generator, T: int, d_k: int) -> Givens:
    """-m (t - l) = -m t + m l, and the softmax of a row does not see -m t: one number for each key does, as codes have it."""
    m, penalties, Q, K = one_head(rng, T, d_k)
    p = attention(Q, K, K, mask=penalties, is_causal=True, return_weights=True)[1]
    return {"p": matrix(p), "s": matrix(np.where(causal_mask(T, T), scaled_dot_scores(Q, K), -np.inf)), "m": m}


@equation(
    "alibi-as-two-features",
    r"b_{tj} = (-m\, t,\; m) \cdot (1,\; j) \quad (j \le t)",
    uses=["alibi-needs-keys-alone"],
    assumes=["b: the penalties of one head, -infinity where j > t"],
    wrong={
        "beyond the query, too": r"\quad (j \le t) -> ",
        "the distance once more": r"(-m\, t,\; m) -> (-m\, t,\; m\, t)",
        "the features exchanged": r"(1,\; j) -> (j,\; 1)",
    },
)
def penalties_as_a_dot_product(rng: np.random.Generator, T: int) -> Givens:
    """A layer that has each position as a feature can make the penalty itself, with two more features of queries and keys."""
    m, penalties, _, _ = one_head(rng, T, 1)
    return {"b": matrix(np.where(causal_mask(T, T), penalties, -np.inf)), "m": m}


@equation(
    "alibi-slopes",
    r"m_h = 2^{-8h / H}",
    uses=["alibi-decays-weights"],
    assumes=["H = 2^a heads, counted from 1"],
    wrong={
        "heads counted from 0": r"-8h -> -8(h - 1)",
        "the quotient upside down": r"-8h / H -> -H h / 8",
        "equal steps": r"m_h = 1 - \frac{h}{H}",
    },
)
def slopes_of_the_heads(rng: np.random.Generator, a: int) -> Givens:
    """A geometric sequence that ends at 1/256: some heads see a few tokens, others hundreds, and every factor between is there."""
    return {"m": vector(alibi_slopes(2**a)), "H": 2**a}


@equation(
    "alibi-odds-of-far",
    r"\frac{\sum_{j=1}^{t - r} p_j}{\sum_{j=t-r+1}^{t} p_j} \le e^{2c}\, \frac{e^{-m r} - e^{-m t}}{1 - e^{-m r}}, \qquad c = \max_j |s_j|",
    uses=["alibi-decays-weights"],
    assumes=["p: weights of the query at t", "s: its scaled scores without the penalty"],
    wrong={
        "scores differ by c at most": r"e^{2c} -> e^{c}",
        "less, the larger the scores": r"e^{2c} -> e^{-2c}",
        "it grows with the length": r"- e^{-m t} -> + e^{-m t}",
    },
)
def far_keys_hold_little(rng: np.random.Generator, t: int, draw: int) -> Givens:
    """Two geometric sums: the weight beyond r positions stays below e^{2c} / (e^{mr} - 1) of the near one, however long the text."""
    head, r = rng.integers(3), int(rng.integers(1, t))
    s = rng.normal(size=t)
    if draw > 0:  # the near ones as small as may be, the far ones as large, or 0
        s = rng.uniform(0.3, 0.9) * np.where(np.arange(t) < t - r, 2.0 - draw, -1.0)
    one = np.ones((1, 1))
    penalties = alibi_bias(8, 1, t, q_offset=t - 1)[head]
    p = attention(one, s[:, None], s[:, None], mask=penalties, scale=1.0, return_weights=True)[1][0]
    return {"p": vector(p), "s": vector(s), "m": alibi_slopes(8)[head], "r": r, "t": t}


@equation(
    "alibi-stored-bytes",
    r"B = b\, H\, T_q\, T_k",
    uses=["alibi-slopes"],
    assumes=["penalties stored for every head and pair, b bytes each"],
    wrong={
        "one half, for what is causal": r"b\, H\, -> \frac{1}{2} b\, H\, ",
        "counted in bits": r"B = b -> B = 8\, b",
        "positions instead of pairs": r"T_q\, T_k -> (T_q + T_k)",
    },
)
def bytes_of_stored_penalties(rng: np.random.Generator, H: int, T_q: int, T_k: int, draw: int) -> Givens:
    """As much as all scores: a kernel computes them from H slopes as it goes, and reads nothing."""
    dtype = np.dtype((np.float16, np.float32, np.float64)[draw])
    return {"B": alibi_bias(H, T_q, T_k).astype(dtype).nbytes, "b": dtype.itemsize, "H": H, "T_q": T_q, "T_k": T_k}


# ---- no positions at all
@equation(
    "mask-counts-positions",
    r"z_t = \frac{1}{t} \sum_{j=1}^{t} [\,j = 1\,] = \frac{1}{t}",
    uses=["weights-times-values"],
    assumes=["no positions", "q_t = 0: equal weights", "values: 1 for the first token, else 0"],
    wrong={
        "the position itself": r"= \frac{1}{t} \sum_{j=1}^{t} [\,j = 1\,] = \frac{1}{t} -> = t",
        "positions counted from 0": r"z_t = \frac{1}{t + 1}",
        "every token marked": r"[\,j = 1\,] -> [\,j \le t\,]",
    },
)
def the_causal_mask_counts(rng: np.random.Generator, T: int, d_k: int) -> Givens:
    """The later a token, the more share its average: a causal layer without positions can tell the next one where each token stands."""
    marks = np.eye(T)[:, :1]
    z = attention(np.zeros((T, d_k)), rng.normal(size=(T, d_k)), marks, is_causal=True)[:, 0]
    return {"z": vector(z), "t": index(1, T)}
