"""Long context: sinks, gates on the output, windows with a cache that forgets, and windows beside global layers."""

import numpy as np

from attn_course.equations.core import Givens, about
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

equation = about("O2")


def _scored(rng: np.random.Generator, T: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, a query and keys that have them, and values."""
    s, values = 2 * rng.normal(size=T), rng.normal(size=(T, d_v))
    return s, np.ones((1, 1)), s[:, None], values


# ---- somewhere to put the weight
@equation(
    "sink-shrinks-output",
    r"z' = \frac{\sum_j e^{s_j} v_j}{e^{b} + \sum_j e^{s_j}} = \frac{1}{1 + e^{b - \mathrm{lse}(s)}}\, z",
    uses=["output-of-a-query", "weights-from-lse"],
    assumes=["b = the sink logit of the head, which has no value", "z = attention without the sink"],
    wrong={
        "the share of the sink, not that of the keys": r"e^{b - \mathrm{lse}(s)} -> e^{\mathrm{lse}(s) - b}",
        "the logit in the sum, not its exponential": r"{e^{b} + -> {b +",
        "against the largest score instead of the log-sum-exp": r"\mathrm{lse}(s) -> \max_j s_j",
        "a sink added behind the softmax": r"e^{b} + \sum_j e^{s_j} -> \sum_j e^{s_j}",
    },
)
def a_sink_shrinks_the_output(rng: np.random.Generator, T: int, d_v: int) -> Givens:
    """One more exponential in the sum, none above it: all weights shrink alike, by the sigmoid of lse - b."""
    s, q, k, v = _scored(rng, T, d_v)
    b = 3 * rng.normal()
    new, plain = sink_attention(q, k, v, np.array(b), scale=1.0)[0], attention(q, k, v, scale=1.0)[0]
    return {"s": vector(s), "v": rows(v), "b": b, "z'": row(new), "z": row(plain)}


@equation(
    "gate-equals-sink",
    r"z' = \frac{1}{1 + e^{-x}}\, z = \frac{\sum_j e^{s_j} v_j}{e^{b} + \sum_j e^{s_j}}, \qquad b = \mathrm{lse}(s) - x",
    uses=["sink-shrinks-output"],
    assumes=["x = the gate's score, made from the query's own position", "one gate for the head"],
    wrong={
        "the gate closes where x is large": r"1 + e^{-x} -> 1 + e^{x}",
        "the same sink for all queries": r"b = \mathrm{lse}(s) - x -> b = x",
        "the sink grows with the gate": r"\mathrm{lse}(s) - x -> \mathrm{lse}(s) + x",
    },
)
def a_gate_is_a_sink_of_its_own(rng: np.random.Generator, T: int, d_v: int) -> Givens:
    """A sigmoid behind attention does what a sink does whose logit each query sets for itself, above its own log-sum-exp."""
    s, q, k, v = _scored(rng, T, d_v)
    x, plain = 2 * rng.normal(), attention(q, k, v, scale=1.0)
    return {"s": vector(s), "v": rows(v), "x": x, "z": row(plain[0]), "z'": row(gate_output(plain, np.array([[x]]))[0])}


# ---- a window that keeps the first keys
@equation(
    "sink-window-keys",
    r"[\,j \in A_i\,] = [\,j \le i\,]\, \max\bigl( [\,j < m\,],\; [\,j \ge i - w\,] \bigr)",
    topics=["O2", "O3"],
    uses=["causal-mask"],
    assumes=["positions counted from 0", "m first keys stay, and w keys before the query's own"],
    wrong={
        "a window of w that counts the token itself": r"\ge i - w -> > i - w",
        "the first keys seen before they come": r"[\,j \le i\,]\, -> ",
        "first keys only inside the window": r"\max -> \min",
        "one first key too many": "j < m -> j \\le m",
    },
)
def keys_of_a_window_with_sinks(rng: np.random.Generator, m: int, w: int, draw: int) -> Givens:
    """Two patterns, of which one has to let a key through. Does a window "of w" count the token itself? Libraries differ."""
    T = m + w + 4 + draw
    return {"A": subset(sink_window_mask(T, T, m, w), start=0), "m": m, "w": w, "j": index(0, T - 1)}


@equation(
    "sink-window-size",
    r"|A_i| = \min(i,\, m + w) + 1",
    topics=["O2", "O3"],
    uses=["sink-window-keys"],
    assumes=["positions counted from 0"],
    wrong={
        "the token itself forgotten": r"\min(i,\, m + w) + 1 -> \min(i,\, m + w)",
        "the first keys do not count": "m + w -> w",
        "as many at the start as later": r"\min(i,\, m + w) -> m + w",
    },
)
def size_of_a_window_with_sinks(rng: np.random.Generator, m: int, w: int, draw: int) -> Givens:
    """While the two overlap every key so far is seen; from then on their number stays: memory and work of a step are constant."""
    T = m + w + 4 + draw
    return {"A": subset(sink_window_mask(T, T, m, w), start=0), "m": m, "w": w}


# ---- a cache that forgets
@equation(
    "rolling-slot-position",
    r"n_r = r + (w + 1)\, \Bigl\lfloor \frac{t - 1 - r}{w + 1} \Bigr\rfloor",
    topics=["O3"],
    uses=["sink-window-size"],
    assumes=["t positions so far, position n in slot n mod (w + 1)", "both counted from 0"],
    wrong={
        "slots in the order of positions": r"r + (w + 1)\, \Bigl\lfloor \frac{t - 1 - r}{w + 1} \Bigr\rfloor -> t - 1 - w + r",
        "w slots: the query's own key has no place": "w + 1 -> w",
        "one step behind": "t - 1 - r -> t - 2 - r",
    },
)
def position_in_a_slot(rng: np.random.Generator, w: int, T: int, draw: int) -> Givens:
    """The latest position that leaves the rest r: positions in the slots are a rotation of the window, which a softmax does not see."""
    t = (w + 1 + T) if draw == 0 else (draw + 1) * (w + 1) + int(rng.integers(1, w + 1))
    cache = RollingCache(left=w)
    cache.append(np.zeros((t, 1)), np.zeros((t, 1)))
    return {"n": vector(cache.positions, start=0), "t": t, "w": w}


@equation(
    "rolling-cache-equals-window",
    r"z_t = \frac{\sum_{j=\max(1,\, t - w)}^{t} e^{s_{tj}} v_j}{\sum_{j=\max(1,\, t - w)}^{t} e^{s_{tj}}}",
    topics=["O3"],
    uses=["rolling-slot-position", "decoding-equals-full-pass"],
    assumes=["z_t = attention to what w + 1 slots hold after step t"],
    wrong={
        "dropped a step too early": "t - w -> t - w + 1",
        "dropped a step too late": "t - w -> t - w - 1",
        "a sink where none is": r"}^{t} e^{s_{tj}}} -> }^{t} e^{s_{tj}} + 1}",
    },
)
def a_rolling_cache_is_a_window(rng: np.random.Generator, w: int, T: int, d_k: int, d_v: int, draw: int) -> Givens:
    """What is overwritten at step t is the one key that no later query sees; the order in the slots does not matter."""
    T, cache = w + T + draw, RollingCache(left=w)
    Q, K, V = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))
    z = []
    for t in range(T):
        keys, values, mask = cache.append(K[t : t + 1], V[t : t + 1])
        z.append(attention(Q[t : t + 1], keys, values, mask=mask)[0])
    return {"z": rows(z), "s": scaled_dot_scores(Q, K), "v": rows(V), "w": w}


# ---- windows beside global layers
@equation(
    "layers-to-reach-back",
    r"L = \Bigl\lceil \frac{T - 1}{w} \Bigr\rceil",
    topics=["O3"],
    uses=["reach-of-stacked-windows"],
    assumes=["L = the least number of layers with windows of w keys to the left after which the last of T tokens depends on the first"],
    wrong={
        "w + 1 a layer": r"\frac{T - 1}{w} -> \frac{T - 1}{w + 1}",
        "one token farther than there is": "T - 1 -> T",
        "rounded down": r"\lceil -> \lfloor",
    },
)
def layers_of_windows_to_the_first_token(rng: np.random.Generator, w: int, draw: int) -> Givens:
    """Each layer carries w positions; a global layer carries all at once, wherever it stands."""
    T = 2 + (2 + draw) * w + (0, 1, int(rng.integers(2, w + 1)))[draw] - 1
    L, reached, near = 1, window_mask(T, T, w, 0), window_mask(T, T, w, 0)
    while not reached[-1, 0]:
        L, reached = L + 1, reached @ near
    return {"L": L, "T": T, "w": w}


@equation(
    "mixed-cache-bytes",
    r"\text{bytes} = b\, H_{kv}\, (d_k + d_v)\, \bigl( G\, T + N\, \min(T,\, w + 1) \bigr)",
    topics=["O3"],
    uses=["kv-cache-bytes", "rolling-cache-equals-window"],
    assumes=["G global layers, N layers with a window of w keys to the left", "b bytes for one number"],
    wrong={
        "layers with windows keep everything": r"\min(T,\, w + 1) -> T",
        "w slots: the query's own key has no place": "w + 1 -> w",
        "one cache for all: the largest window decides": r"G\, T + N\, \min(T,\, w + 1) -> (G + N)\, T",
    },
)
def bytes_of_windows_and_global_layers(
    rng: np.random.Generator, H_kv: int, d_k: int, d_v: int, G: int, N: int, w: int, draw: int
) -> Givens:
    """Only the global layers grow with the text: at five windows to one global layer a long text costs a sixth."""
    dtype, T, kept = (np.float16, np.float32, np.float64)[draw], (w + 5, w - 1, 2 * w + 3)[draw], 0
    new = np.ones((H_kv, T, d_k), dtype), np.ones((H_kv, T, d_v), dtype)
    for _ in range(G):
        kept += sum(part.nbytes for part in KeyValueCache().append(*new))
    for cache in [RollingCache(left=w) for _ in range(N)]:
        cache.append(*new)
        kept += sum(part.nbytes for part in cache.slots or ())
    sizes = {"H_{kv}": H_kv, "d_k": d_k, "d_v": d_v, "G": G, "N": N, "w": w}
    return {r"\text{bytes}": kept, "b": np.dtype(dtype).itemsize, "T": T, **sizes}
