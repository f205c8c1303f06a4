"""Fast attention: tiles, what they move, and what limits them."""

from typing import TypeAlias

import numpy as np
import sympy
from sympy import symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.matrices import weights_of
from attn_course.equations.stated import equation

T, d, b, B = symbols("T d b B", positive=True)
_Run: TypeAlias = tuple[int, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]


# ---- 12.3 tiling


@equation(
    "tiled-attention-bytes",
    r"M_{\mathrm{tiled}} = b\, \Bigl( T_q\, (d_k + d_v + 1) + \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, T_k\, (d_k + d_v) \Bigr)",
    rows=["M1"],
    uses=["plain-attention-bytes", "tiled-attention-update"],
    assumes=["a block of B_q queries stays in fast memory while all keys and values pass by", "one L for each query is written", "b bytes"],
    kind="numeric",
    scope="ragged blocks, counted while computing, b = 8",
)
def bytes_of_tiled_attention(rng: np.random.Generator) -> Claims:
    """Scores and weights never leave the chip: keys and values are read once for each block of queries."""
    for q_len, kv_len, block_q in ((5, 7, 2), (5, 7, 5), (6, 4, 3), (1, 7, 4)):
        counted, output, (query, key, value) = _tiled(rng, q_len, kv_len, block_q)
        yield output, weights_of(query @ key.T / np.sqrt(3)) @ value
        yield counted, 8 * (q_len * (3 + 2 + 1) + int(np.ceil(q_len / block_q)) * kv_len * (3 + 2))


def _tiled(rng: np.random.Generator, q_len: int, kv_len: int, block_q: int, block_kv: int = 3) -> _Run:
    """Run Eq. tiled-attention-update tile by tile (d_k = 3, d_v = 2); count what slow memory sees; return it, the output and the inputs."""
    query, key, value = rng.normal(size=(q_len, 3)), rng.normal(size=(kv_len, 3)), rng.normal(size=(kv_len, 2))
    moved, output = 0, np.empty((q_len, 2))
    for start in range(0, q_len, block_q):
        Q = query[start : start + block_q]
        moved += Q.nbytes
        m, row_sum, acc = np.full((len(Q), 1), -np.inf), np.zeros((len(Q), 1)), np.zeros((len(Q), 2))
        for column in range(0, kv_len, block_kv):
            K, V = key[column : column + block_kv], value[column : column + block_kv]
            moved += K.nbytes + V.nbytes
            S = Q @ K.T / np.sqrt(3)
            m_new = np.maximum(m, S.max(axis=1, keepdims=True))
            shares, rescale = np.exp(S - m_new), np.exp(m - m_new)
            m, row_sum, acc = m_new, rescale * row_sum + shares.sum(axis=1, keepdims=True), rescale * acc + shares @ V
        output[start : start + block_q] = acc / row_sum
        moved += acc.nbytes + (m + np.log(row_sum)).nbytes
    return moved, output, (query, key, value)


bytes_of_tiled_attention.wrong("keys and values read once in all")(
    lambda rng: (_tiled(rng, 5, 7, 2)[0], 8 * (5 * (3 + 2 + 1) + 7 * (3 + 2)))
)
bytes_of_tiled_attention.wrong("T_q / B_q blocks, not rounded up")(
    lambda rng: (_tiled(rng, 5, 7, 2)[0], 8 * (5 * (3 + 2 + 1) + 5 / 2 * 7 * (3 + 2)))
)


@equation(
    "plain-to-tiled-bytes",
    r"\lim_{T \to \infty} \frac{M_{\mathrm{plain}}}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{d}",
    rows=["M1"],
    uses=["plain-attention-bytes", "tiled-attention-bytes"],
    assumes=["T_q = T_k = T, a multiple of B_q", "d_k = d_v = d"],
    scope="any d, B_q",
)
def bytes_saved() -> Sides:
    """4 T^2 numbers against 2 T^2 d / B_q: still quadratic in T, but blocks of 128 queries with d = 64 move a quarter of it."""
    plain, tiled = 4 * T * d + 4 * T**2, T * (2 * d + 1) + T / B * T * 2 * d
    return sympy.limit(plain / tiled, T, sympy.oo), 2 * B / d


@bytes_saved.wrong("it grows with T: tiling moves O(T) bytes")
def _() -> Sides:
    plain, tiled = 4 * T * d + 4 * T**2, T * (2 * d + 1) + T / B * T * 2 * d
    return sympy.limit(plain / tiled, T, sympy.oo), T / d


@equation(
    "tiled-attention-intensity",
    r"\lim_{T \to \infty} \frac{F}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{b}",
    rows=["M1"],
    uses=["attention-forward-flops", "tiled-attention-bytes"],
    assumes=["T_q = T_k = T, a multiple of B_q", "d_k = d_v = d"],
    scope="any d, B_q, b",
)
def intensity_of_tiled_attention() -> Sides:
    """The block of queries, not the width of a head, now sets the intensity: 128 FLOPs for each byte at B_q = 128 and b = 2."""
    return sympy.limit(4 * T**2 * d / (b * (T * (2 * d + 1) + T / B * T * 2 * d)), T, sympy.oo), 2 * B / b


@intensity_of_tiled_attention.wrong("d / b, as without tiles")
def _() -> Sides:
    return sympy.limit(4 * T**2 * d / (b * (T * (2 * d + 1) + T / B * T * 2 * d)), T, sympy.oo), d / b


@equation(
    "bytes-by-fast-memory",
    r"4\, B d = N \;\Rightarrow\; b\, \frac{2\, T^2 d}{B} = b\, \frac{8\, T^2 d^2}{N}",
    rows=["M1"],
    uses=["tiled-attention-bytes"],
    assumes=["fast memory holds N numbers: blocks of B queries, keys, values and outputs", "B_q = B"],
    scope="any N",
)
def bytes_by_size_of_fast_memory() -> Sides:
    """Twice the fast memory, half the traffic: the T^2 d^2 / N of Theorem 2 (Dao et al. 2022, arXiv:2205.14135)."""
    N = sympy.Symbol("N", positive=True)
    return (b * 2 * T**2 * d / B).subs(B, sympy.solve(4 * B * d - N, B)[0]), b * 8 * T**2 * d**2 / N


@bytes_by_size_of_fast_memory.wrong("T^2 d / N")
def _() -> Sides:
    N = sympy.Symbol("N", positive=True)
    return (b * 2 * T**2 * d / B).subs(B, sympy.solve(4 * B * d - N, B)[0]), b * 8 * T**2 * d / N


@equation(
    "causal-tile-share",
    r"\frac{\text{tiles visited}}{\text{tiles}} = \frac{n\, (n + 1) / 2}{n^2} = \frac{n + 1}{2\, n}, \qquad n = \frac{T}{B}",
    rows=["M1", "G1"],
    uses=["causal-pair-count", "tiled-attention-bytes"],
    assumes=["causal, p = 0", "square tiles, B divides T"],
    kind="numeric",
    scope="T = 12, B = 1, 2, 3, 4, 6, 12",
)
def causal_tiles(rng: np.random.Generator) -> Claims:
    """Tiles above the diagonal are skipped, those on it cost in full: a little more than half, and only they need the mask."""
    for block in (1, 2, 3, 4, 6, 12):
        n = 12 // block
        tiles = reference.causal_mask(12, 12).reshape(n, block, n, block)
        yield tiles.any(axis=(1, 3)).mean(), (n + 1) / (2 * n)


causal_tiles.wrong("exactly half")(lambda rng: (reference.causal_mask(12, 12).reshape(4, 3, 4, 3).any(axis=(1, 3)).mean(), 1 / 2))
causal_tiles.wrong("the tiles on the diagonal skipped too")(
    lambda rng: (reference.causal_mask(12, 12).reshape(4, 3, 4, 3).any(axis=(1, 3)).mean(), 3 / (2 * 4))
)


@equation(
    "causal-attention-flops",
    r"F_{\mathrm{causal}} = 2\,(d_k + d_v) \sum_i |A_i| = T\, (T + 1)\, (d_k + d_v)",
    rows=["M1", "G1"],
    uses=["causal-pair-count", "attention-forward-flops"],
    assumes=["p = 0", "only pairs that may attend are counted"],
    kind="numeric",
    scope="T = 1 to 7, d_k = 3, d_v = 2",
)
def causal_flops(rng: np.random.Generator) -> Claims:
    """What a benchmark divides by its time; taking T^2 / 2 pairs instead understates a short sequence."""
    for length in range(1, 8):
        pairs = sum(1 for i in range(length) for j in range(length) if j <= i)
        yield 2 * pairs * 3 + 2 * pairs * 2, length * (length + 1) * (3 + 2)


causal_flops.wrong("half of the full count")(lambda rng: (2 * reference.causal_mask(7, 7).sum() * 5, 2 * 7**2 * 5 / 2))


# ---- 12.4 what limits a kernel


@equation(
    "exponential-to-matmul-time",
    r"\frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{B_q B_k / \rho_{\exp}}{4\, B_q B_k d / \rho_{\mathrm{matmul}}}"
    r" = \frac{\rho_{\mathrm{matmul}}}{4\, d\, \rho_{\exp}}",
    rows=["M1"],
    uses=["exponentials-per-flop", "attention-forward-flops"],
    assumes=["rho: FLOPs, or exponentials, for each clock and multiprocessor", "d_k = d_v = d"],
    kind="numeric",
    scope="tiles of 128 x 128, d = 64 and 128; rho = 4096 and 16, as on an H100 in 16 bits",
)
def exponentials_against_products(rng: np.random.Generator) -> Claims:
    """At d = 64 the exponentials take as long as the products, at d = 128 half as long (Shah et al. 2024, arXiv:2407.08608)."""
    for width in (64, 128):
        tile = rng.normal(size=(128, 128))
        exp_clocks, matmul_clocks = tile.size / 16, 2 * (2 * tile.size * width) / 4096
        yield exp_clocks / matmul_clocks, 4096 / (4 * width * 16)


exponentials_against_products.wrong("one exponential for 4 d FLOPs costs 1 / (4 d) of the time", trap="X29")(
    lambda rng: ((128 * 128 / 16) / (4 * 128 * 128 * 64 / 4096), 1 / (4 * 64))
)
exponentials_against_products.wrong("the same for every d")(
    lambda rng: ((128 * 128 / 16) / (4 * 128 * 128 * 128 / 4096), (128 * 128 / 16) / (4 * 128 * 128 * 64 / 4096))
)


@equation(
    "overlapped-tile-time",
    r"t(n) = t_1 + (n - 1)\, \max(t_1, t_2) + t_2 \;<\; n\, (t_1 + t_2)",
    rows=["M1"],
    uses=["exponential-to-matmul-time"],
    assumes=[
        "n > 1 tiles; t_1: products of one tile, t_2: its exponentials, on two units",
        "the products of the next tile do not wait for the exponentials of this one",
    ],
    kind="numeric",
    scope="n = 2 to 6, five pairs of times, scheduled step by step",
)
def what_overlap_can_gain(rng: np.random.Generator) -> Claims:
    """For many tiles the slower unit alone sets the pace: a factor of 2 at most, at t_1 = t_2, which is why d = 64 needs it most."""
    for t_1, t_2 in ((1.0, 1.0), (2.0, 1.0), (1.0, 3.0), *rng.uniform(0.1, 2, size=(2, 2))):
        for n in range(2, 7):
            yield _scheduled(n, t_1, t_2), t_1 + (n - 1) * max(t_1, t_2) + t_2
            yield Chain(_scheduled(n, t_1, t_2), "<", n * (t_1 + t_2))


def _scheduled(n: int, t_1: float, t_2: float) -> float:
    """Start each step as soon as its unit is free and its input is there; return when the last one ends."""
    products_end = exponentials_end = 0.0
    for _ in range(n):
        products_end += t_1
        exponentials_end = max(exponentials_end, products_end) + t_2
    return exponentials_end


what_overlap_can_gain.wrong("as without overlap")(lambda rng: (_scheduled(5, 2.0, 1.0), 5 * (2.0 + 1.0)))
what_overlap_can_gain.wrong("the faster unit sets the pace")(lambda rng: (_scheduled(5, 2.0, 1.0), 2.0 + 4 * min(2.0, 1.0) + 1.0))
