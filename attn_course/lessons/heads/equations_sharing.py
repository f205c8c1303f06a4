"""Multi-head attention: heads as filters, shared keys and values, the cache."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import function, index, matrices, rows
from attn_course.reference import KeyValueCache, attention

equation = about("H3")


# ---- heads as the filters of a convolution
@equation(
    "shifted-heads-convolve",
    r"\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,]",
    sizes="T H d_x d_y, T >= H",
    topics=["H5"],
    uses=["sum-of-head-maps"],
    assumes=["P_h = S_h: head h looks at shift Delta_h only", "Y_t = sum_h x_{t + Delta_h} W_h, with zeros beyond the ends"],
    wrong={
        "one head that averages the places": r"\sum_{h=1}^{H} S_h\, X\, -> \Bigl(\frac{1}{H} \sum_{h=1}^{H} S_h\Bigr) X \sum_{h=1}^{H}",
        "the shifts in reverse order": r"\sum_{h=1}^{H} S_h^\top X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,]",
        "the wrong neighbour": r"\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t - \Delta_h\,]",
    },
)
def heads_with_fixed_shifts_convolve(rng: np.random.Generator, T: int, H: int, d_x: int, d_y: int) -> Givens:
    """A filter is one matrix for each shift, summed: Eq. sum-of-head-maps with one head for each place in the filter."""
    X, W, shifts = rng.normal(size=(T, d_x)), rng.normal(size=(H, d_x, d_y)), rng.permutation(np.arange(1 - T, T))[:H]
    Y = np.zeros((T, d_y))
    for t in range(T):
        for shift, tap in zip(shifts, W, strict=True):
            if 0 <= t + shift < T:
                Y[t] += X[t + shift] @ tap
    diagonals = [np.eye(T, k=shift) for shift in shifts]
    return {"S": matrices(diagonals), "X": X, "W": matrices(W), "Y": Y, r"\Delta": shifts, "H": H}


@equation(
    "score-peaked-at-shift",
    r"-\alpha\,(1,\, -2\Delta) \cdot (\delta^2,\, \delta) = -\alpha\,(\delta - \Delta)^2 + \alpha\,\Delta^2",
    topics=["H5"],
    assumes=["delta = key position minus query position"],
    wrong={
        "peaked at -Delta": r"- \Delta -> + \Delta",
        "the square not completed": r"(\delta - \Delta)^2 + \alpha\,\Delta^2 -> (\delta - \Delta)^2",
    },
)
def scores_peaked_at_a_shift(rng: np.random.Generator, draw: int) -> Givens:
    """A dot product of a learned vector with an encoding of the shift: largest at delta = Delta; the last term is constant."""
    shift = rng.normal(scale=3)
    return {r"\alpha": rng.uniform(0.3, 4), r"\Delta": shift, r"\delta": rng.normal(scale=3) if draw else shift}


@equation(
    "peaked-scores-become-shift",
    r"\lim_{\alpha \to \infty} \sigma_l\bigl(-\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t + \Delta\,]",
    topics=["H5"],
    uses=["softmax-with-temperature", "score-peaked-at-shift"],
    assumes=["l runs over the T keys", "1 <= t + Delta <= T"],
    wrong={
        "the wrong neighbour": r"\lim_{\alpha \to \infty} \sigma_l\bigl(-\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t - \Delta\,]",
        "the square forgotten": r"\lim_{\alpha \to \infty} \sigma_l\bigl(-\alpha\,(l - t - \Delta)\bigr)_j = [\,j = t + \Delta\,]",
        "the sign forgotten": r"\lim_{\alpha \to \infty} \sigma_l\bigl(\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t + \Delta\,]",
    },
)
def peaked_scores_become_a_shift(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """A temperature limit with one largest score: softmax attention comes as close to a filter as one likes, never quite."""
    shift = (0, 1, -1)[draw] * int(rng.integers(1, T))
    keys = {"l": index(1, T), "j": index(1, T), "t": index(max(1, 1 - shift), min(T, T - shift))}
    return {r"\alpha": rng.uniform(0.5, 2), r"\Delta": shift, **keys}


# ---- shared keys and values
@equation(
    "grouped-query-attention",
    r"Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}",
    sizes="H g H_kv T d_k, H = g H_kv",
    uses=["attention-of-one-head"],
    assumes=["heads counted from 0", "H_kv divides H"],
    wrong={
        "r = h mod H_kv: heads tiled instead of repeated": r"Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad"
        r" r = h - H_{kv} \Bigl\lfloor \frac{g\,h}{H} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}",
        "the queries shared, too": "Q_h -> Q_r",
        "all heads share the first key head": r"\frac{h}{g} -> \frac{h}{H\,g}",
    },
)
def grouped_heads(rng: np.random.Generator, H: int, g: int, H_kv: int, T: int, d_k: int) -> Givens:
    """Neighbouring query heads share one key head: H_kv = H is multi-head, H_kv = 1 multi-query attention."""
    Q, K, V = (rng.normal(size=shape) for shape in ((H, T, d_k), (H_kv, T, d_k), (H_kv, T, 2)))
    lists = {"Q": Q, "K": K, "V": V, "Z": attention(Q, K, V, enable_gqa=True)}
    named = {name: matrices(arrays, start=0) for name, arrays in lists.items()}
    return {r"\mathrm{attention}": function(attention), "H": H, "H_{kv}": H_kv, **named}


@equation(
    "mean-pooled-key-heads",
    r"\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \frac{1}{g} \sum_{h=1}^{g} W_K^{(h)}",
    uses=["grouped-query-attention"],
    assumes=["g trained key heads are to become one"],
    wrong={
        "the sum": r"\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \sum_{h=1}^{g} W_K^{(h)}",
        "one head too few in the mean": r"\frac{1}{g} -> \frac{1}{g - 1}",
        "only the first head": r"\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = W_K^{(1)}",
    },
)
def mean_pooling_of_heads(rng: np.random.Generator, g: int) -> Givens:
    """The nearest shared matrix is the mean: the start from which a trained multi-head model learns to share."""
    return {"W_K^{(h)}": matrices(rng.normal(size=(g, 2, 3))), "W": rng.normal(size=(2, 3)), "g": g}


# ---- the cache of keys and values
@equation(
    "decoding-equals-full-pass",
    r"z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t",
    uses=["bottom-right-offset", "causal-prefix-invariance"],
    assumes=["causal mask on the right"],
    wrong={
        "with the mask aligned at the top left, a new query sees the first key only": ":t -> :1",
        "also without a causal mask in training": r"z_t = \mathrm{attention}(q_t,\, K,\, V) = \mathrm{attention}(Q, K, V)_t",
        "the new query is the first row": r"z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_1",
    },
)
def decoding_equals_the_full_pass(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Row t of causal attention reads the past only: keep its keys and values, and compute one new row."""
    Q, K, V = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))
    cache = KeyValueCache()
    z = [attention(Q[t : t + 1], *cache.append(K[t : t + 1], V[t : t + 1]), is_causal=True, q_offset=t)[0] for t in range(T)]
    one_or_all = function(lambda Q, K, V: attention(Q, K, V, is_causal=True) if Q.ndim == 2 else attention(Q[None], K, V)[0])
    return {r"\mathrm{attention}": one_or_all, "q": rows(Q), "Q": Q, "K": K, "V": V, "z": rows(z)}


@equation(
    "kv-cache-bytes",
    r"\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b",
    uses=["grouped-query-attention", "decoding-equals-full-pass"],
    assumes=["b bytes for one number", "d_k = d_v = d_head"],
    wrong={
        "keys only": r"\frac{\text{bytes}}{\text{token}} = n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b",
        "counted in bits": r"\frac{\text{bytes}}{\text{token}} = 16\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b",
    },
)
def cache_bytes_per_token(rng: np.random.Generator, n_layers: int, H_kv: int, d_head: int, T: int, draw: int) -> Givens:
    """One key and one value for each layer and key head; the number of query heads plays no part."""
    dtype, kept = (np.float16, np.float32, np.float64)[draw], 0
    for cache in [KeyValueCache() for _ in range(n_layers)]:
        for _ in range(T):
            keys, values = cache.append(*np.ones((2, H_kv, 1, d_head), dtype=dtype))
        kept += keys.nbytes + values.nbytes
    sizes = {r"n_{\mathrm{layers}}": n_layers, "H_{kv}": H_kv, r"d_{\mathrm{head}}": d_head, "b": np.dtype(dtype).itemsize}
    return {r"\text{bytes}": kept, r"\text{token}": T, **sizes}


@equation(
    "projection-flops-without-cache",
    r"F = \sum_{t=1}^{T} 8\, t\, d^2 = 4\, T (T + 1)\, d^2",
    uses=["multi-head-flops", "decoding-equals-full-pass"],
    assumes=["without a cache each step projects the whole prefix again", "a multiply-add counts 2"],
    wrong={"as with a cache": r"4\, T (T + 1)\, d^2 -> 8\, T d^2", "each step as long as the last": r"4\, T (T + 1)\, d^2 -> 8\, T^2 d^2"},
)
def projections_without_a_cache(rng: np.random.Generator, T: int, d: int, draw: int) -> Givens:
    """A cache turns 4 T (T + 1) d^2 into 8 T d^2: each token is projected once."""
    T = (1, T, T + 1)[draw]
    count = sum(multiplications(_projections, (t, d), *4 * [(d, d)]) for t in range(1, T + 1))
    return {"F": 2 * count, "T": T, "d": d}


def _projections(x: np.ndarray, *weights: np.ndarray) -> None:
    """Project all rows by each of the weights."""
    for weight in weights:
        x @ weight
