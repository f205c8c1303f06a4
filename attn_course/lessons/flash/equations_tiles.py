"""Fast attention: tiles, what they move, and what limits them."""

import numpy as np

from attn_course import costs, reference
from attn_course.equations.core import about
from attn_course.equations.counting import by_size, multiplications
from attn_course.formulas import function, of, subset
from attn_course.formulas.givens import Of
from attn_course.lessons.flash.equations import square_bytes, square_flops

claim = about("M1")


# ---- tiling
def moved_by_tiles(T_q: int, T_k: int, d_k: int, d_v: int, B_q: int) -> dict[str, int]:
    """Run attention in tiles, and count the numbers that go in and out of fast memory: of Q, of K and V, and of what is written."""
    rng = np.random.default_rng(0)
    slow = {"Q": rng.normal(size=(T_q, d_k)), "K": rng.normal(size=(T_k, d_k)), "V": rng.normal(size=(T_k, d_v))}
    moved = dict.fromkeys((*slow, "written"), 0)

    def load(name: str, first: int, count: int) -> np.ndarray:
        block = slow[name][first : first + count]
        moved[name] += block.size
        return block

    for start in range(0, T_q, B_q):
        q = load("Q", start, B_q)
        row_sum, a = np.zeros(len(q)), np.zeros((len(q), d_v))
        for first in range(0, T_k, 2):
            shares = np.exp(q @ load("K", first, 2).T / np.sqrt(d_k))
            row_sum, a = row_sum + shares.sum(axis=1), a + shares @ load("V", first, 2)
        z, lse = a / row_sum[:, None], np.log(row_sum)
        if not np.allclose(z, reference.attention(q, slow["K"], slow["V"])):
            raise ValueError("the tiles do not give attention")
        moved["written"] += z.size + lse.size
    return moved


@claim("tiled-attention-bytes", rests_on="plain-attention-bytes tiled-attention-update", sizes="T_q T_k d_k d_v B_q, T_q >= B_q")
def _(rng, T_q, T_k, d_k, d_v, B_q):
    r"""M_{\mathrm{tiled}} = b\, \Bigl( T_q\, (d_k + d_v + 1) + \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, T_k\, (d_k + d_v) \Bigr)
    where a block of B_q queries stays in fast memory while all keys and values pass by ;; one L for each query is written ;; b bytes
    Scores and weights never leave the chip: keys and values are read once for each block of queries.
        keys and values read once in all: \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, ->
        T_q / B_q blocks, not rounded up: \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil -> \frac{T_q}{B_q}
        the last block forgotten: \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil -> \Bigl\lfloor \frac{T_q}{B_q} \Bigr\rfloor
        nothing written but the output: d_v + 1 -> d_v
    """

    def moved(B_q: int, b: int) -> int:
        return b * sum(moved_by_tiles(T_q, T_k, d_k, d_v, B_q).values())

    given = {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v, "B_q": B_q, "b": int(rng.integers(2, 9))}
    return given | {r"M_{\mathrm{tiled}}": of(moved, "B_q", "b")}


def tiled_bytes(d: int, B_q: int, b: int) -> Of:
    """Return what tiles move for T queries, T keys and one width, as counted; T is a multiple of B_q."""
    return by_size(lambda T: b * sum(moved_by_tiles(T, T, d, d, B_q).values()), "T", "d", "B_q", "b", step=B_q)


@claim("plain-to-tiled-bytes", rests_on="plain-attention-bytes tiled-attention-bytes")
def _(rng, d, b):
    r"""\lim_{T \to \infty} \frac{M_{\mathrm{plain}}}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{d}
    where T_q = T_k = T, a multiple of B_q ;; d_k = d_v = d
    4 T^2 numbers against 2 T^2 d / B_q: still quadratic in T, but blocks of 128 queries with d = 64 move a quarter of it.
        it grows with T: tiling moves O(T) bytes:
            2\, B_q -> T
        the scores counted once, not four times: \frac{2\, B_q}{d} -> \frac{B_q}{2\, d}
        wider heads gain more: \frac{2\, B_q}{d} -> 2\, B_q d
    """
    B_q = int(rng.integers(2, 9))
    given = {"T": rng.uniform(3, 9), "d": d, "b": b, "B_q": B_q}
    return given | {r"M_{\mathrm{plain}}": square_bytes(d, b), r"M_{\mathrm{tiled}}": tiled_bytes(d, B_q, b)}


@claim("tiled-attention-intensity", rests_on="attention-forward-flops tiled-attention-bytes")
def _(rng, d, b):
    r"""\lim_{T \to \infty} \frac{F}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{b}
    where T_q = T_k = T, a multiple of B_q ;; d_k = d_v = d
    The block of queries, not the width of a head, now sets the intensity: 128 FLOPs for each byte at B_q = 128 and b = 2.
        d / b, as without tiles: 2\, B_q -> d
        it grows with T: B_q -> T
        a multiply-add counted once: 2\, B_q -> B_q
    """
    B_q = int(rng.integers(2, 9))
    given = {"T": rng.uniform(3, 9), "d": d, "b": b, "B_q": B_q}
    return given | {"F": square_flops(d), r"M_{\mathrm{tiled}}": tiled_bytes(d, B_q, b)}


@claim("bytes-by-fast-memory", rests_on="tiled-attention-bytes")
def _(rng, B, d, n, draw):
    r"""4\, B d = N:\; M_{KV} = b\, \frac{2\, T^2 d}{B} = b\, \frac{8\, T^2 d^2}{N}
    where fast memory holds N numbers: blocks of B queries, keys, values and outputs ;; B_q = B divides T
        ;; M_KV: bytes of keys and values read, the rest is of order T d
    Twice the fast memory, half the traffic: the T^2 d^2 / N of Theorem 2 (Dao et al. 2022, arXiv:2205.14135).
        T^2 d / N: T^2 d^2 -> T^2 d
        only the block of queries stays: 4\, B -> B
        twice the fast memory, a quarter of the traffic: d^2}{N} -> d^2}{N^2}
    """
    numbers = (4 * B * d, 4 * B * d + (7 if d < B else -7), B * d)[draw]  # the blocks fill the memory, nearly do, or do not fit
    T, b = n * B, int(rng.integers(2, 9))
    moved = moved_by_tiles(T, T, d, d, B)
    return {"M_{KV}": b * (moved["K"] + moved["V"]), "N": numbers, "B": B, "d": d, "T": T, "b": b}


@claim("causal-tile-share", serves="M1 G1", rests_on="causal-pair-count tiled-attention-bytes")
def _(rng, n, B, draw):
    r"""\frac{\text{tiles visited}}{\text{tiles}} = \frac{n\, (n + 1) / 2}{n^2} = \frac{n + 1}{2\, n}, \qquad n = \frac{T}{B}
    where causal, p = 0 ;; square tiles, B divides T
    Tiles above the diagonal are skipped, those on it cost in full: a little more than half, and only they need the mask.
        exactly half: n\, (n + 1) -> n^2 ;; \frac{n + 1} -> \frac{1} ;; 2\, n -> 2
        the tiles on the diagonal skipped too: all n + 1 -> n - 1
        the share of the pairs: \frac{\text{tiles visited}}{\text{tiles}} = \frac{T\, (T + 1) / 2}{T^2} = \frac{T + 1}{2\, T}
    """
    n += draw % 2
    T = n * B

    def seen(T: int, B: int) -> np.ndarray:
        return np.asarray(reference.causal_mask(T, T).reshape(T // B, B, T // B, B).any(axis=(1, 3)))

    visited, tiles = of(lambda T, B: int(seen(T, B).sum()), "T", "B"), of(lambda T, B: seen(T, B).size, "T", "B")
    return {"T": T, "B": B, r"\text{tiles visited}": visited, r"\text{tiles}": tiles}


@claim("causal-attention-flops", serves="M1 G1", rests_on="causal-pair-count attention-forward-flops")
def _(rng, T, d_k, d_v, draw):
    r"""F_{\mathrm{causal}} = 2\,(d_k + d_v) \sum_i |A_i| = T\, (T + 1)\, (d_k + d_v)
    where p = 0 ;; only pairs that may attend are counted
    What a benchmark divides by its time; taking T^2 / 2 pairs instead understates a short sequence.
        half of the full count: T\, (T + 1)\, -> T^2\,
        without the diagonal: + 1 -> - 1
        the full count: T\, (T + 1)\, -> 2\, T^2\,
    """
    T += draw % 2

    def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        return [v[j] * (q[i] @ k[j]) for i in range(T) for j in range(T) if j <= i]

    counted = 2 * multiplications(attended, (T, d_k), (T, d_k), (T, d_v))
    return {r"F_{\mathrm{causal}}": counted, "A": subset(reference.causal_mask(T, T)), "T": T, "d_k": d_k, "d_v": d_v}


# ---- what limits a kernel
@claim("exponential-to-matmul-time", rests_on="exponentials-per-flop attention-forward-flops")
def _(rng, B_q, B_k, d):
    r"""t_{\exp} = \frac{B_q B_k}{\rho_{\exp}}, \qquad t_{\mathrm{matmul}} = \frac{4\, B_q B_k d}{\rho_{\mathrm{matmul}}}, \qquad
        \frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{\rho_{\mathrm{matmul}}}{4\, d\, \rho_{\exp}}
    where rho: FLOPs, or exponentials, for each clock and multiprocessor ;; d_k = d_v = d
    At d = 64 the exponentials take as long as the products, at d = 128 half as long (Shah et al. 2024, arXiv:2407.08608).
        X29: one exponential for 4 d FLOPs costs 1 / (4 d) of the time:
            \frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{B_q B_k / \rho_{\exp}}{4\, B_q B_k d / \rho_{\mathrm{matmul}}} = \frac{1}{4\, d}
        the same for every d:
            \frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{B_q B_k d / \rho_{\exp}}{4\, B_q B_k d / \rho_{\mathrm{matmul}}} =
            \frac{\rho_{\mathrm{matmul}}}{4\, \rho_{\exp}}
        one product counted:
            \frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{B_q B_k / \rho_{\exp}}{2\, B_q B_k d / \rho_{\mathrm{matmul}}} =
            \frac{\rho_{\mathrm{matmul}}}{2\, d\, \rho_{\exp}}
    """
    products, exponentials = rng.uniform(20, 500), rng.uniform(2, 9)
    flops = 2 * multiplications(lambda q, k, v: (q @ k.T) @ v, (B_q, d), (B_k, d), (B_k, d))
    machine = {"peak_flops_per_s": products, "bandwidth_bytes_per_s": 1.0, "peak_exps_per_s": exponentials}
    times = {
        r"t_{\exp}": costs.roofline_time_s(0, 0, exps=np.exp(np.zeros((B_q, B_k))).size, **machine),
        r"t_{\mathrm{matmul}}": costs.roofline_time_s(flops, 0, **machine),
    }
    return times | {"B_q": B_q, "B_k": B_k, "d": d, r"\rho_{\exp}": exponentials, r"\rho_{\mathrm{matmul}}": products}


@claim("overlapped-tile-time", rests_on="exponential-to-matmul-time")
def _(rng, n, draw):
    r"""t(n) = t_1 + (n - 1)\, \max(t_1, t_2) + t_2 \;<\; n\, (t_1 + t_2)
    where n > 1 tiles; t_1: products of one tile, t_2: its exponentials, on two units
        ;; the products of the next tile do not wait for the exponentials of this one
    For many tiles the slower unit alone sets the pace: a factor of 2 at most, at t_1 = t_2, which is why d = 64 needs it most.
        as without overlap: t(n) = n\, (t_1 + t_2)
        the faster unit sets the pace: \max(t_1, t_2) -> \min(t_1, t_2)
        no start and no end: t(n) = n\, \max(t_1, t_2) \;<\; n\, (t_1 + t_2)
    """
    t_1 = rng.uniform(0.5, 2) * (1, 40, 1)[draw]
    t_2 = t_1 * (rng.uniform(0, 0.3), 1.0, rng.uniform(1.5, 9))[draw]

    def last_end(n: float) -> float:
        products_end = exponentials_end = 0.0
        for _ in range(int(n)):  # each step starts as soon as its unit is free and its input is there
            products_end += t_1
            exponentials_end = max(exponentials_end, products_end) + t_2
        return exponentials_end

    return {"t": function(last_end), "t_1": t_1, "t_2": t_2, "n": n}
