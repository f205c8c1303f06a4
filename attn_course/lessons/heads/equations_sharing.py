"""Multi-head attention: heads as filters, shared keys and values, the cache."""

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import tables
from attn_course.formulas import function, matrices, rows
from attn_course.reference import KeyValueCache, attention

claim = about("H3")


# ---- heads as the filters of a convolution
@claim("shifted-heads-convolve", serves="H5", rests_on="sum-of-head-maps", sizes="T H d_x d_y, T >= H")
def _(normal, rng, T, H, d_x, d_y):
    r"""\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,]
    where P_h = S_h: head h looks at shift Delta_h only ;; Y_t = sum_h x_{t + Delta_h} W_h, with zeros beyond the ends
    A filter is one matrix for each shift, summed: Eq. sum-of-head-maps with one head for each place in the filter.
        one head that averages the places: \sum_{h=1}^{H} S_h\, X\, -> \Bigl(\frac{1}{H} \sum_{h=1}^{H} S_h\Bigr) X \sum_{h=1}^{H}
        the shifts in reverse order: S_h\, -> S_h^\top
        the wrong neighbour: + -> -
    """
    X, W, shifts = normal(T, d_x), normal(H, d_x, d_y), rng.permutation(np.arange(1 - T, T))[:H]
    Y = np.zeros((T, d_y))
    for t in range(T):
        for shift, tap in zip(shifts, W, strict=True):
            if 0 <= t + shift < T:
                Y[t] += X[t + shift] @ tap
    diagonals = [np.eye(T, k=shift) for shift in shifts]
    return {"S": matrices(diagonals), "X": X, "W": matrices(W), "Y": Y, r"\Delta": shifts, "H": H}


# ---- shared keys and values
@claim("grouped-query-attention", rests_on="attention-of-one-head", sizes="H g H_kv T d_k, H = g H_kv")
def _(normal, H, g, H_kv, T, d_k):
    r"""Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
    where heads counted from 0 ;; H_kv divides H
    Neighbouring query heads share one key head: H_kv = H is multi-head, H_kv = 1 multi-query attention.
        r = h mod H_kv: heads tiled instead of repeated:
            \Bigl\lfloor \frac{h}{g} \Bigr\rfloor -> h - H_{kv} \Bigl\lfloor \frac{g\,h}{H} \Bigr\rfloor
        the queries shared, too: Q_h -> Q_r
        all heads share the first key head: \frac{h}{g} -> \frac{h}{H\,g}
    """
    Q, K, V = tables(normal, (H, T, d_k), (H_kv, T, d_k), (H_kv, T, 2))
    lists = {"Q": Q, "K": K, "V": V, "Z": attention(Q, K, V, enable_gqa=True)}
    named = {name: matrices(arrays, start=0) for name, arrays in lists.items()}
    return {r"\mathrm{attention}": function(attention), "H": H, "H_{kv}": H_kv, **named}


# ---- the cache of keys and values
@claim("decoding-equals-full-pass", rests_on="bottom-right-offset causal-prefix-invariance")
def _(normal, T, d_k, d_v):
    r"""z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t
    where causal mask on the right
    Row t of causal attention reads the past only: keep its keys and values, and compute one new row.
        with the mask aligned at the top left, a new query sees the first key only: all :t -> :1
        also without a causal mask in training: all _{1:t} ->
        the new query is the first row: (Q, K, V)_t -> (Q, K, V)_1
    """
    Q, K, V = normal(T, d_k), normal(T, d_k), normal(T, d_v)
    cache = KeyValueCache()
    z = [attention(Q[t : t + 1], *cache.append(K[t : t + 1], V[t : t + 1]), is_causal=True, q_offset=t)[0] for t in range(T)]
    one_or_all = function(lambda Q, K, V: attention(Q, K, V, is_causal=True) if Q.ndim == 2 else attention(Q[None], K, V)[0])
    return {r"\mathrm{attention}": one_or_all, "q": rows(Q), "Q": Q, "K": K, "V": V, "z": rows(z)}


@claim("kv-cache-bytes", rests_on="grouped-query-attention decoding-equals-full-pass")
def _(rng, n_layers, H_kv, d_head, T, draw):
    r"""\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b
    where b bytes for one number ;; d_k = d_v = d_head
    One key and one value for each layer and key head; the number of query heads plays no part.
        keys only: = 2\, -> =
        counted in bits: 2\, -> 16\,
    """
    dtype, kept = (np.float16, np.float32, np.float64)[draw], 0
    for cache in [KeyValueCache() for _ in range(n_layers)]:
        for _ in range(T):
            keys, values = cache.append(*np.ones((2, H_kv, 1, d_head), dtype=dtype))
        kept += keys.nbytes + values.nbytes
    sizes = {r"n_{\mathrm{layers}}": n_layers, "H_{kv}": H_kv, r"d_{\mathrm{head}}": d_head, "b": np.dtype(dtype).itemsize}
    return {r"\text{bytes}": kept, r"\text{token}": T, **sizes}
