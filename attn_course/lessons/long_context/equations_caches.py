"""Long context: caches in pages, and caches of few bits with a bound on what the rounding changes."""

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import derivative, index, matrices, rows, vector
from attn_course.reference import PagedCache, QuantisedCache, attention, quantise, softmax

claim = about("O5")


# ---- pages
@claim("paged-address", rests_on="decoding-equals-full-pass")
def _(normal, rng, b, d_k, draw):
    r"""k_t = P_{\beta_n,\, t - b\,n}, \qquad n = \Bigl\lfloor \frac{t}{b} \Bigr\rfloor
    where beta = the table of a sequence, P = the pool of blocks with b rows each ;; all counted from 0
    Two sequences write by turns, so that neither has blocks in a row; the table says where each of them lies.
        as if the blocks lay in order: \beta_n -> n
        the row within the pool, not within the block: t - b\,n -> t
        the table read with the position: \beta_n -> \beta_t
    """
    cache, k = PagedCache(20, b), normal(3 * b + 1 + draw, d_k)
    for start in range(0, len(k), b):
        for name in ("other", "this")[:: rng.choice([-1, 1])]:
            part = k[start : start + b] if name == "this" else normal(b, d_k)
            cache.append(name, part, part)
    assert cache.pool is not None
    table = vector(cache.tables["this"], start=0)
    return {"k": rows(k, start=0), "P": matrices(cache.pool[0], start=(0, 0, 1)), r"\beta": table, "b": b, "t": index(0, len(k) - 1)}


@claim("paged-waste", rests_on="paged-address")
def _(rng, b, draw):
    r"""n = \Bigl\lceil \frac{T}{b} \Bigr\rceil, \qquad b\,n - T \le b - 1
    where n = blocks of a sequence of T > 0 tokens
    Blocks come when they are needed: what is empty is the end of the last one, not a reserve for the longest text.
        rounded down: the last tokens have no place:
            \lceil -> \lfloor
        as much as is reserved, whatever comes: - T \le -> - T =
        half a block at most: \le b - 1 -> \le \frac{b}{2}
    """
    T = (2 + draw) * b + (1, 0, 2)[draw]
    cache = PagedCache(2 * (T // b) + 2, b)
    for _ in range(T):
        cache.append("this", np.ones((1, 1)), np.ones((1, 1)))
    return {"n": sum(holders > 0 for holders in cache.holders), "T": T, "b": b}


@claim("blocks-of-a-fork", rests_on="paged-address paged-waste")
def _(rng, b, draw):
    r"""n = \Bigl\lceil \frac{T + a}{b} \Bigr\rceil + \Bigl\lceil \frac{T + c}{b} \Bigr\rceil - \Bigl\lfloor \frac{T}{b} \Bigr\rfloor
    where two sequences share T tokens, then write a > 0 and c > 0 of their own ;; n = blocks of both
    Full blocks stay shared; of the one that is begun the first writer gets a copy, and the other keeps the original.
        the block that is begun is shared, too, and overwritten:
            \Bigl\lfloor \frac{T}{b} \Bigr\rfloor -> \Bigl\lceil \frac{T}{b} \Bigr\rceil
        nothing is shared: - \Bigl\lfloor \frac{T}{b} \Bigr\rfloor ->
        the whole prefix copied for the second: \frac{T + c}{b} -> \frac{2\,T + c}{b}
    """
    T, a, c = 2 * b + (0, 2, b - 1)[draw], *(int(size) for size in rng.integers(1, 3 * b, size=2))
    cache = PagedCache(20, b)
    cache.append("this", np.ones((T, 1)), np.ones((T, 1)))
    cache.fork("this", "other")
    for name, new in (("this", a), ("other", c)):
        cache.append(name, np.ones((new, 1)), np.ones((new, 1)))
    return {"n": sum(holders > 0 for holders in cache.holders), "T": T, "a": a, "c": c, "b": b}


# ---- few bits


@claim("quantised-number", rests_on="kv-cache-bytes", equivalent={r"x -> \hat{x}": "as well: rounding what is rounded changes nothing"})
def _(normal, n, draw):
    r"""\hat{x}_c = m + \Delta\, \Bigl\lfloor \frac{x_c - m}{\Delta} + \frac{1}{2} \Bigr\rfloor, \qquad
        \Delta = \frac{\max_l x_l - m}{2^B - 1}, \qquad m = \min_l x_l
    where B bits for each number of a group x, beside its least number and its step ;; the numbers of the group are not all equal
    2^B levels have 2^B - 1 steps between them; the least and the largest number are met exactly.
        2^B steps: the largest number has no code:
            2^B - 1 -> 2^B
        cut off instead of rounded: + \frac{1}{2} ->
        the least number forgotten on the way back: = m + \Delta -> = \Delta
    """
    x, B = normal(n), draw + 1
    if draw == 1:  # halfway between two levels, which is rounded up
        x = np.resize([-1.0, 2.0, -0.5, 0.5, 1.5], n)
    return {"x": vector(x), r"\hat{x}": vector(quantise(x[None], B, "token").restored()[0]), "B": B}


@claim(
    "quantisation-error",
    rests_on="quantised-number",
    equivalent={r"x -> \hat{x}": "as well: the least and the largest number of a group are met exactly"},
)
def _(rng, n, draw):
    r"""|x_c - \hat{x}_c| \le \frac{\Delta}{2}, \qquad \Delta = \frac{\max_l x_l - \min_l x_l}{2^B - 1}
    Each bit more halves it, nearly; one large number of the group makes it large for all, hence the groups.
        2^B steps: 2^B - 1 -> 2^B
        a quarter of a step: \frac{\Delta}{2} -> \frac{\Delta}{4}
        exact with few numbers: \le \frac{\Delta}{2} -> \le 0
    """
    B, step = draw + 1, 0.5
    x = step * rng.uniform(0, 2**B - 1, size=n)
    x[:3] = 0, step * (2**B - 1), step * (0.5 if draw else 1)  # once half of a step, which is rounded up
    x -= step  # of both signs
    return {"x": vector(x), r"\hat{x}": vector(quantise(x[None], B, "token").restored()[0]), "B": B}


@claim("quantised-score-error", rests_on="quantisation-error")
def _(normal, rng, T, d_k, draw):
    r"""\bigl| q \cdot \hat{k} - q \cdot k \bigr| \le \frac{1}{2} \sum_c |q_c|\, \Delta_c
    where Delta_c = the step of channel c, shared by all keys of the group
    Channels with a wide range have long steps; by token one such channel would lengthen the steps of all.
        errors as if they had no sign to agree on: |q_c| -> q_c
        whole steps: \frac{1}{2} ->
        half of that: \frac{1}{2} -> \frac{1}{4}
    """
    keys = normal(T, d_k)
    q, steps = normal(d_k), 2.0 ** rng.integers(-3, 3, size=d_k)
    if draw:  # each entry half a step up, or nearly so far down: no two errors cancel; once q has one sign
        q = -np.abs(q) if draw == 1 else q
        keys[:3] = np.zeros(d_k), 3 * steps, np.where(q < 0, 1.5, 1.49) * steps
        keys[3:] = keys[3:].clip(0, 1) * steps
    quantised = quantise(keys, 2, "channel")
    return {"q": vector(q), "k": vector(keys[2]), r"\hat{k}": vector(quantised.restored()[2]), r"\Delta": vector(quantised.step[0])}


@claim(
    "softmax-jacobian-one-norm",
    serves="O5 B2",
    rests_on="softmax-jacobian",
    equivalent={"J_{i j} -> J_{j i}": "the Jacobian of softmax is symmetric"},
)
def _(normal, n, draw):
    r"""\sum_i \Bigl| \sum_j J_{ij}\, \delta_j \Bigr| \le \frac{\max_j \delta_j - \min_j \delta_j}{2}
    where J = the Jacobian of softmax at any scores ;; delta = small errors of the scores
    Weight i moves by s_i times delta_i less its mean: a mean distance from the mean, which is half the spread at most.
        the whole spread: \delta_j}{2} -> \delta_j}{1}
        a quarter: that of a single weight:
            \delta_j}{2} -> \delta_j}{4}
        largest plus least: - -> +
    """
    z, delta = normal(n), normal(n)
    if draw == 2:  # two keys share all the weight, and err in opposite ways
        z = np.array([z[0], z[0], *z[2:] - 900])
        delta[:2] = delta.max() + 1, delta.min() - 1
    return {"J": derivative(softmax, z), r"\delta": vector(delta)}


@claim("weights-under-score-errors", rests_on="softmax-jacobian-one-norm")
def _(normal, rng, n, draw):
    r"""\sum_j \bigl| \sigma(s + \delta)_j - \sigma(s)_j \bigr| \le 2 \tanh\Bigl( \frac{\max_j |\delta_j|}{2} \Bigr)
    where delta = the errors of the scores, of any size
    Follow Eq. softmax-jacobian-one-norm from s to s + delta: at most the largest error itself, and never more than 2.
        without the 2 in front: \le 2 \tanh -> \le \tanh
        the half forgotten: {2} -> {1}
        as the error of a typical score: \max_j |\delta_j| -> \min_j |\delta_j|
    """
    s, delta = normal(n), normal(n)
    if draw == 2:  # one key against the rest
        largest = rng.uniform(0.3, 2)
        s, delta = _worst(n, largest)
    return {"s": vector(s), r"\delta": vector(delta)}


def _worst(n: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, and errors up to `largest` that move most weight: the odds of the first key go from e^-largest to e^largest."""
    s, delta = np.full(n, largest - np.log(n - 1)), np.full(n, -largest)
    s[0], delta[0] = 0.0, largest
    return s, delta


@claim("quantised-output-error", rests_on="weights-under-score-errors quantised-score-error quantisation-error")
def _(normal, rng, T, d_v, draw):
    r"""|z'_c - z_c| \le \max_j |\hat{v}_{jc} - v_{jc}| + \tanh\Bigl( \frac{\varepsilon}{2} \Bigr)
        \bigl( \max_j \hat{v}_{jc} - \min_j \hat{v}_{jc} \bigr), \qquad \varepsilon = \max_j |\hat{s}_j - s_j|
    where z' = attention with the scores and values of the cache, z = with those that were rounded
    Values are averaged, so their errors do not grow; errors of scores move weight, from one end of the values to the other at worst.
        errors of the keys forgotten: + \tanh\Bigl( \frac{\varepsilon}{2} \Bigr) \bigl( \max_j \hat{v}_{jc} - \min_j \hat{v}_{jc} \bigr) ->
        errors of the values forgotten: \max_j |\hat{v}_{jc} - v_{jc}| + \tanh -> \tanh
        the least error of a score: = \max_j -> = \min_j
    """
    s, V = normal(T), normal(T, d_v)
    large, small = -np.abs(normal(T)), -np.abs(normal(T, d_v))  # once the scores are off, once the values
    delta, off = (0.7 * large, 1e-3 * small) if draw else (1e-3 * large, 0.2 * small)
    if draw == 2:  # attained
        s, delta = _worst(T, rng.uniform(0.3, 1))
        V, off = np.where(delta[:, None] > 0, -1.0, 2.0) + normal(d_v), np.full((T, d_v), -0.2)
    one = np.ones((1, 1))
    kept = attention(one, (s + delta)[:, None], V + off, scale=1.0)[0]
    names = {r"\hat{s}": vector(s + delta), r"\hat{v}": V + off, "z'": vector(kept)}
    return names | {"s": vector(s), "v": V, "z": vector(attention(one, s[:, None], V, scale=1.0)[0])}


@claim("quantised-cache-bytes", rests_on="kv-cache-bytes quantised-number")
def _(normal, d_k, d_v, g, draw):
    r"""\text{bytes} = G\, d_k \Bigl( \frac{g\,B}{8} + 2\,b \Bigr) + (T - G\,g)\, d_k\, b
        + T\, \Bigl( \frac{d_v\,B}{8} + 2\,b \Bigr), \qquad G = \Bigl\lfloor \frac{T}{g} \Bigr\rfloor
    where one head; B bits for a number, b bytes for one in full ;; keys by channel in groups of g tokens, values by token
    Two bits are not an eighth of sixteen: each group keeps two numbers in full, which a group of 32 makes one bit for each number.
        B / 16 of it: steps and least numbers forgotten:
            all + 2\,b ->
        the least number forgotten: symmetric steps:
            all 2\,b -> b
        keys that wait for their group forgotten: + (T - G\,g)\, d_k\, b ->
    """
    B, dtype, T = (2, 4, 8)[draw], (np.float32, np.float64, np.float32)[draw], 2 * g + (0, 2, g - 1)[draw]
    cache = QuantisedCache(bits=B, group=g)
    cache.append(normal(T, d_k).astype(dtype), normal(T, d_v).astype(dtype))
    kept = float(cache.waiting.nbytes)
    for part in (*cache.keys, *cache.values):
        kept += part.codes.size * B / 8 + part.step.nbytes + part.least.nbytes
    return {r"\text{bytes}": kept, "T": T, "g": g, "B": B, "b": np.dtype(dtype).itemsize, "d_k": d_k, "d_v": d_v}
