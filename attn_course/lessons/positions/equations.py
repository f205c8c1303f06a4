"""Positions without rotation: a penalty on distance, and what the causal mask alone tells."""

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import index, matrix, vector
from attn_course.reference import alibi_bias, alibi_slopes, attention, causal_mask, scaled_dot_scores

claim = about("O1")


def one_head(rng: np.random.Generator, T: int, d_k: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the slope of one of eight heads, its penalties, queries and keys."""
    head, (Q, K) = rng.integers(3), rng.normal(size=(2, T, d_k))  # of the steep ones, or nothing would be seen of it
    return float(alibi_slopes(8)[head]), alibi_bias(8, T, T)[head], Q, K


# ---- ALiBi: a penalty on distance
@claim("alibi-decays-weights", rests_on="softmax")
def _(rng, T, d_k):
    r"""p_{tj} = \frac{w_{tj}\, e^{-m\,(t - j)}}{\sum_{l} w_{tl}\, e^{-m\,(t - l)}}
    where w: causal weights without a penalty ;; p: with -m (t - j) added to the scaled scores
    What is added to a score multiplies the weight: every weight shrinks by e^{-m} for each position of distance, at any length.
        what is far gains: all -m -> m
        the rest is not divided up again: p_{tj} = w_{tj}\, e^{-m\,(t - j)}
        taken from the weights: p_{tj} = w_{tj} - m\,(t - j)
        decay with the position of the key: p_{tj} = \frac{w_{tj}\, e^{-m\,j}}{\sum_{l} w_{tl}\, e^{-m\,l}}
    """
    m, penalties, Q, K = one_head(rng, T, d_k)
    p, w = (attention(Q, K, K, mask=mask, is_causal=True, return_weights=True)[1] for mask in (penalties, None))
    return {"p": matrix(p), "w": matrix(w), "m": m}


@claim("alibi-needs-keys-alone", rests_on="alibi-decays-weights softmax-shift-invariance")
def _(rng, T, d_k):
    r"""p_{tj} = \sigma_l\bigl( s_{tl} + m\, l \bigr)_j
    where s: scaled scores, -infinity where l > t
    -m (t - l) = -m t + m l, and the softmax of a row does not see -m t: one number for each key does, as codes have it.
        what is early gains: + m -> - m
        the position of the query in its place: m\, l -> m\, t
        the scores multiplied: + -> \,
    """
    m, penalties, Q, K = one_head(rng, T, d_k)
    p = attention(Q, K, K, mask=penalties, is_causal=True, return_weights=True)[1]
    return {"p": matrix(p), "s": matrix(np.where(causal_mask(T, T), scaled_dot_scores(Q, K), -np.inf)), "m": m}


@claim("alibi-as-two-features", rests_on="alibi-needs-keys-alone")
def _(rng, T):
    r"""b_{tj} = (-m\, t,\; m) \cdot (1,\; j) \quad (j \le t)
    where b: the penalties of one head, -infinity where j > t
    A layer that has each position as a feature can make the penalty itself, with two more features of queries and keys.
        beyond the query, too: \quad (j \le t) ->
        the distance once more: (-m\, t,\; m) -> (-m\, t,\; m\, t)
        the features exchanged: (1,\; j) -> (j,\; 1)
    """
    m, penalties, _, _ = one_head(rng, T, 1)
    return {"b": matrix(np.where(causal_mask(T, T), penalties, -np.inf)), "m": m}


@claim("alibi-slopes", rests_on="alibi-decays-weights")
def _(rng, a):
    r"""m_h = 2^{-8h / H}
    where H = 2^a heads, counted from 1
    A geometric sequence that ends at 1/256: some heads see a few tokens, others hundreds, and every factor between is there.
        heads counted from 0: -8h -> -8(h - 1)
        the quotient upside down: -8h / H -> -H h / 8
        equal steps: m_h = 1 - \frac{h}{H}
    """
    return {"m": vector(alibi_slopes(2**a)), "H": 2**a}


@claim("alibi-odds-of-far", rests_on="alibi-decays-weights")
def _(normal, rng, t, draw):
    r"""\frac{\sum_{j=1}^{t - r} p_j}{\sum_{j=t-r+1}^{t} p_j} \le e^{2c}\, \frac{e^{-m r} - e^{-m t}}{1 - e^{-m r}}, \qquad c = \max_j |s_j|
    where p: weights of the query at t ;; s: its scaled scores without the penalty
    Two geometric sums: the weight beyond r positions stays below e^{2c} / (e^{mr} - 1) of the near one, however long the text.
        scores differ by c at most: e^{2c} -> e^{c}
        less, the larger the scores: e^{2c} -> e^{-2c}
        it grows with the length: - e^{-m t} -> + e^{-m t}
    """
    head, r = rng.integers(3), int(rng.integers(1, t))
    s = normal(t)
    if draw > 0:  # the near ones as small as may be, the far ones as large, or 0
        s = rng.uniform(0.3, 0.9) * np.where(np.arange(t) < t - r, 2.0 - draw, -1.0)
    one = np.ones((1, 1))
    penalties = alibi_bias(8, 1, t, q_offset=t - 1)[head]
    p = attention(one, s[:, None], s[:, None], mask=penalties, scale=1.0, return_weights=True)[1][0]
    return {"p": vector(p), "s": vector(s), "m": alibi_slopes(8)[head], "r": r, "t": t}


@claim("alibi-stored-bytes", rests_on="alibi-slopes")
def _(rng, H, T_q, T_k, draw):
    r"""B = b\, H\, T_q\, T_k
    where penalties stored for every head and pair, b bytes each
    As much as all scores: a kernel computes them from H slopes as it goes, and reads nothing.
        one half, for what is causal: b\, H\, -> \frac{1}{2} b\, H\,
        counted in bits: B = b -> B = 8\, b
        positions instead of pairs: T_q\, T_k -> (T_q + T_k)
    """
    dtype = np.dtype((np.float16, np.float32, np.float64)[draw])
    return {"B": alibi_bias(H, T_q, T_k).astype(dtype).nbytes, "b": dtype.itemsize, "H": H, "T_q": T_q, "T_k": T_k}


# ---- no positions at all
@claim("mask-counts-positions", rests_on="weights-times-values")
def _(normal, T, d_k):
    r"""z_t = \frac{1}{t} \sum_{j=1}^{t} [\,j = 1\,] = \frac{1}{t}
    where no positions ;; q_t = 0: equal weights ;; values: 1 for the first token, else 0
    The later a token, the more share its average: a causal layer without positions can tell the next one where each token stands.
        the position itself: = \frac{1}{t} \sum_{j=1}^{t} [\,j = 1\,] = \frac{1}{t} -> = t
        positions counted from 0: z_t = \frac{1}{t + 1}
        every token marked: [\,j = 1\,] -> [\,j \le t\,]
    """
    marks = np.eye(T)[:, :1]
    z = attention(np.zeros((T, d_k)), normal(T, d_k), marks, is_causal=True)[:, 0]
    return {"z": vector(z), "t": index(1, T)}
