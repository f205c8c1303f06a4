"""Long context: sinks, gates on the output, windows with a cache that forgets, and windows beside global layers."""

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import Normal
from attn_course.formulas import index, row, rows, subset, vector
from attn_course.reference import (
    KeyValueCache,
    RollingCache,
    attention,
    gate_output,
    scaled_dot_scores,
    sink_attention,
    sink_window_mask,
    window_mask,
)

claim = about("O2")


def _scored(normal: Normal, T: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, a query and keys that have them, and values."""
    s, values = 2 * normal(T), normal(T, d_v)
    return s, np.ones((1, 1)), s[:, None], values


# ---- somewhere to put the weight
@claim("sink-shrinks-output", rests_on="output-of-a-query weights-from-lse")
def _(normal, T, d_v):
    r"""z' = \frac{\sum_j e^{s_j} v_j}{e^{b} + \sum_j e^{s_j}} = \frac{1}{1 + e^{b - \mathrm{lse}(s)}}\, z
    where b = the sink logit of the head, which has no value ;; z = attention without the sink
    One more exponential in the sum, none above it: all weights shrink alike, by the sigmoid of lse - b.
        the share of the sink, not that of the keys: e^{b - \mathrm{lse}(s)} -> e^{\mathrm{lse}(s) - b}
        the logit in the sum, not its exponential: {e^{b} + -> {b +
        against the largest score instead of the log-sum-exp: \mathrm{lse}(s) -> \max_j s_j
        a sink added behind the softmax: e^{b} + ->
    """
    s, q, k, v = _scored(normal, T, d_v)
    b = 3 * normal()
    new, plain = sink_attention(q, k, v, np.array(b), scale=1.0)[0], attention(q, k, v, scale=1.0)[0]
    return {"s": vector(s), "v": rows(v), "b": b, "z'": row(new), "z": row(plain)}


@claim("gate-equals-sink", rests_on="sink-shrinks-output")
def _(normal, T, d_v):
    r"""z' = \frac{1}{1 + e^{-x}}\, z = \frac{\sum_j e^{s_j} v_j}{e^{b} + \sum_j e^{s_j}}, \qquad b = \mathrm{lse}(s) - x
    where x = the gate's score, made from the query's own position ;; one gate for the head
    A sigmoid behind attention does what a sink does whose logit each query sets for itself, above its own log-sum-exp.
        the gate closes where x is large: 1 + e^{-x} -> 1 + e^{x}
        the same sink for all queries: b = \mathrm{lse}(s) - x -> b = x
        the sink grows with the gate: - x -> + x
    """
    s, q, k, v = _scored(normal, T, d_v)
    x, plain = 2 * normal(), attention(q, k, v, scale=1.0)
    return {"s": vector(s), "v": rows(v), "x": x, "z": row(plain[0]), "z'": row(gate_output(plain, np.array([[x]]))[0])}


# ---- a window that keeps the first keys
@claim("sink-window-keys", serves="O2 O3", rests_on="causal-mask")
def _(rng, m, w, draw):
    r"""[\,j \in A_i\,] = [\,j \le i\,]\, \max\bigl( [\,j < m\,],\; [\,j \ge i - w\,] \bigr)
    where positions counted from 0 ;; m first keys stay, and w keys before the query's own
    Two patterns, of which one has to let a key through. Does a window "of w" count the token itself? Libraries differ.
        a window of w that counts the token itself: \ge i - w -> > i - w
        the first keys seen before they come: [\,j \le i\,]\, ->
        first keys only inside the window: \max -> \min
        one first key too many: j < m -> j \le m
    """
    T = m + w + 4 + draw
    return {"A": subset(sink_window_mask(T, T, m, w), start=0), "m": m, "w": w, "j": index(0, T - 1)}


@claim("sink-window-size", serves="O2 O3", rests_on="sink-window-keys")
def _(rng, m, w, draw):
    r"""|A_i| = \min(i,\, m + w) + 1
    where positions counted from 0
    While the two overlap every key so far is seen; from then on their number stays: memory and work of a step are constant.
        the token itself forgotten: + 1 ->
        the first keys do not count: m + w -> w
        as many at the start as later: \min(i,\, m + w) -> m + w
    """
    T = m + w + 4 + draw
    return {"A": subset(sink_window_mask(T, T, m, w), start=0), "m": m, "w": w}


# ---- a cache that forgets
@claim("rolling-slot-position", serves="O3", rests_on="sink-window-size")
def _(rng, w, T, draw):
    r"""n_r = r + (w + 1)\, \Bigl\lfloor \frac{t - 1 - r}{w + 1} \Bigr\rfloor
    where t positions so far, position n in slot n mod (w + 1) ;; both counted from 0
    The latest position that leaves the rest r: positions in the slots are a rotation of the window, which a softmax does not see.
        slots in the order of positions: r + (w + 1)\, \Bigl\lfloor \frac{t - 1 - r}{w + 1} \Bigr\rfloor -> t - 1 - w + r
        w slots: the query's own key has no place:
            all w + 1 -> w
        one step behind: t - 1 - r -> t - 2 - r
    """
    t = (w + 1 + T) if draw == 0 else (draw + 1) * (w + 1) + int(rng.integers(1, w + 1))
    cache = RollingCache(left=w)
    cache.append(np.zeros((t, 1)), np.zeros((t, 1)))
    return {"n": vector(cache.positions, start=0), "t": t, "w": w}


@claim("rolling-cache-equals-window", serves="O3", rests_on="rolling-slot-position decoding-equals-full-pass")
def _(normal, w, T, d_k, d_v, draw):
    r"""z_t = \frac{\sum_{j=\max(1,\, t - w)}^{t} e^{s_{tj}} v_j}{\sum_{j=\max(1,\, t - w)}^{t} e^{s_{tj}}}
    where z_t = attention to what w + 1 slots hold after step t
    What is overwritten at step t is the one key that no later query sees; the order in the slots does not matter.
        dropped a step too early: all t - w -> t - w + 1
        dropped a step too late: all t - w -> t - w - 1
        a sink where none is: }^{t} e^{s_{tj}}} -> }^{t} e^{s_{tj}} + 1}
    """
    T, cache = w + T + draw, RollingCache(left=w)
    Q, K, V = normal(T, d_k), normal(T, d_k), normal(T, d_v)
    z = []
    for t in range(T):
        keys, values, mask = cache.append(K[t : t + 1], V[t : t + 1])
        z.append(attention(Q[t : t + 1], keys, values, mask=mask)[0])
    return {"z": rows(z), "s": scaled_dot_scores(Q, K), "v": rows(V), "w": w}


# ---- windows beside global layers
@claim("layers-to-reach-back", serves="O3", rests_on="reach-of-stacked-windows")
def _(rng, w, draw):
    r"""L = \Bigl\lceil \frac{T - 1}{w} \Bigr\rceil
    where L = the least number of layers with windows of w keys to the left after which the last of T tokens depends on the first
    Each layer carries w positions; a global layer carries all at once, wherever it stands.
        w + 1 a layer: w -> w + 1
        one token farther than there is: T - 1 -> T
        rounded down: \lceil -> \lfloor
    """
    T = 2 + (2 + draw) * w + (0, 1, int(rng.integers(2, w + 1)))[draw] - 1
    L, reached, near = 1, window_mask(T, T, w, 0), window_mask(T, T, w, 0)
    while not reached[-1, 0]:
        L, reached = L + 1, reached @ near
    return {"L": L, "T": T, "w": w}


@claim("mixed-cache-bytes", serves="O3", rests_on="kv-cache-bytes rolling-cache-equals-window")
def _(rng, H_kv, d_k, d_v, G, N, w, draw):
    r"""\text{bytes} = b\, H_{kv}\, (d_k + d_v)\, \bigl( G\, T + N\, \min(T,\, w + 1) \bigr)
    where G global layers, N layers with a window of w keys to the left ;; b bytes for one number
    Only the global layers grow with the text: at five windows to one global layer a long text costs a sixth.
        layers with windows keep everything: \min(T,\, w + 1) -> T
        w slots: the query's own key has no place:
            w + 1 -> w
        one cache for all: the largest window decides:
            G\, T + N\, \min(T,\, w + 1) -> (G + N)\, T
    """
    dtype, T, kept = (np.float16, np.float32, np.float64)[draw], (w + 5, w - w % 2, 2 * w + 3)[draw], 0
    new = np.ones((H_kv, T, d_k), dtype), np.ones((H_kv, T, d_v), dtype)
    for _ in range(G):
        kept += sum(part.nbytes for part in KeyValueCache().append(*new))
    for cache in [RollingCache(left=w) for _ in range(N)]:
        cache.append(*new)
        kept += sum(part.nbytes for part in cache.slots or ())
    sizes = {"H_{kv}": H_kv, "d_k": d_k, "d_v": d_v, "G": G, "N": N, "w": w}
    return {r"\text{bytes}": kept, "b": np.dtype(dtype).itemsize, "T": T, **sizes}
