"""A ladder of kernels: rows in memory, tiles of a causal pass and their bytes; two units, powers of two, a backward pass, merged states."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.formulas import function, index, matrix, of, vector

claim = about("M1")


@claim("row-major-address", kind="definition")
def _(normal, r, n):
    r"""X_{ij} = x_{i\,n + j}
    where X has n columns ;; x = its rows, one behind the other ;; all counted from 0
    In front of row i lie i rows of n numbers each, and in front of its entry j lie j more.
        as if columns lay one behind the other: x_{i\,n + j} -> x_{i + j\,n}
        the start of the row alone: x_{i\,n + j} -> x_{i\,n}
        rows counted from 1: i\,n -> (i + 1)\,n
    """
    X = normal(r, n)
    return {"X": matrix(X, start=(0, 0)), "x": vector(X.reshape(-1), start=0), "n": n, "i": index(0, r - 1), "j": index(0, n - 1)}


@claim("merging-is-commutative-monoid", rests_on="merge-of-attention-states")
def _(normal, rng, draw):
    r"""(X \oplus Y) \oplus Z = X \oplus (Y \oplus Z), \qquad X \oplus Y = Y \oplus X, \qquad X \oplus (-\infty, 0, 0) = X
    where states (m, l, a), not only those of scores; e^{-inf - (-inf)} is read as 0
    Blocks may be merged in any order and grouping: one after the other, as a tree, or on several machines.
        a state of zeros changes nothing: -\infty -> 0
        the same keys twice change nothing: (X \oplus Y) \oplus Z = X \oplus (Y \oplus Z), \qquad X \oplus X = X
        the later block wins: \oplus X, \qquad X \oplus (-\infty, 0, 0) = X ->
    """

    def merged(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if any(np.isneginf(one[0]) and one[1:].any() for one in (first, second)):
            raise ValueError("a state of no keys has sums of 0")
        top = max(first[0], second[0])
        factors = [0.0 if np.isneginf(one[0]) else np.exp(one[0] - top) for one in (first, second)]
        return np.concatenate([[top], factors[0] * first[1:] + factors[1] * second[1:]])

    states = [[3 * normal() - (0, 3e3, 3e9)[draw], rng.uniform(0.5, 3), normal()] for _ in "XYZ"]
    return {**{name: vector(one) for name, one in zip("XYZ", states, strict=True)}, r"\oplus": function(merged, "vector")}


@claim("exponential-in-base-two")
def _(normal):
    r"""e^{s - m} = 2^{\,s \log_2 e - m \log_2 e}
    Hardware computes powers of 2: fold log_2 e into the scale of the scores once, and save a product for every exponential.
        2^(s - m), without the factor: all \log_2 e ->
        ln 2 instead of log_2 e: e^{s - m} = 2^{\,s \ln 2 - m \ln 2}
        only the score converted: m \log_2 e -> m
    """
    s, m = normal(2)
    return {"s": s, "m": m + 1.3}


def five_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_o: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what a backward pass computes: S, dP, dV, dQ and dK (a tile stands for P and for dS)."""
    return q @ k.T, d_o @ v.T, tile.T @ d_o, tile @ k, tile.T @ q


def seven_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_o: np.ndarray, tile: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what two kernels compute: S, dP, dV and dK; then S, dP and dQ."""
    return (k @ q.T, v @ d_o.T, tile.T @ d_o, tile.T @ q, q @ k.T, d_o @ v.T, tile @ k)


@claim("two-kernel-backward-flops", rests_on="key-gradient-in-blocks attention-backward-flops")
def _(rng, T_q, T_k, d_k, d_v, draw):
    r"""F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \qquad
        d_k = d_v:\; \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5}
    where one kernel for dK and dV, one for dQ; each rebuilds S and dP ;; a multiply-add counts 2
    Seven products where five are counted: the price of sums in a fixed order, the same to the last bit in every run.
        five, as counted: 4\, -> 3\, ;; + 3\, -> + 2\, ;; \frac{7}{5} -> 1
        dP rebuilt by one of them only: + 3\, -> + 2\, ;; 7 -> 6
        everything twice: 4\, -> 6\, ;; + 3\, -> + 4\, ;; \frac{7}{5} -> 2
    """
    d_k, d_v = ((d_k, d_v), (d_k, d_k), (1, T_q))[draw]
    T_k = T_q if draw == 2 else T_k  # neither a width equal to a length nor equal lengths are a reason for the ratio
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    kernels = {r"F_{\mathrm{backward}}": five_products, r"F_{\mathrm{two\ kernels}}": seven_products}
    counted = {name: 2 * multiplications(products, *shapes) for name, products in kernels.items()}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@claim("causal-tile-share", serves="M1 G1", rests_on="causal-pair-count tiled-attention-bytes")
def _(rng, n, B, draw):
    r"""\frac{\text{tiles visited}}{\text{tiles}} = \frac{N\, (N + 1) / 2}{N^2} = \frac{N + 1}{2\, N}, \qquad N = \frac{T}{B}
    where causal, p = 0 ;; square tiles, B divides T
    Tiles above the diagonal are skipped, those on it cost in full: a little more than half, and only they need the mask.
        exactly half: \frac{N\, (N + 1) / 2}{N^2} = \frac{N + 1}{2\, N} -> \frac{N^2 / 2}{N^2} = \frac{1}{2}
        the tiles on the diagonal skipped too: all N + 1 -> N - 1
        the share of the pairs: \frac{\text{tiles visited}}{\text{tiles}} = \frac{T\, (T + 1) / 2}{T^2} = \frac{T + 1}{2\, T}
    """
    n += draw % 2
    T = n * B

    def seen(T: int, B: int) -> np.ndarray:
        return np.asarray(reference.causal_mask(T, T).reshape(T // B, B, T // B, B).any(axis=(1, 3)))

    visited, tiles = of(lambda T, B: int(seen(T, B).sum()), "T", "B"), of(lambda T, B: seen(T, B).size, "T", "B")
    return {"T": T, "B": B, r"\text{tiles visited}": visited, r"\text{tiles}": tiles}


@claim("causal-tile-bytes", serves="M1 G1", rests_on="causal-tile-share")
def _(rng, n, B, d_k, d_v, draw):
    r"""M_{\mathrm{causal}} = \frac{N\,(N + 1)}{2}\, B\, (d_k + d_v)\, b, \qquad N = \frac{T}{B}
    where keys and values only; causal, p = 0 ;; square tiles, B divides T ;; b bytes for a number
    Each visited tile loads B keys and B values: twice the tile, about half the bytes.
        every tile visited: \frac{N\,(N + 1)}{2} -> N^2
        the tiles on the diagonal left out: N + 1 -> N - 1
        keys alone: (d_k + d_v) -> d_k
    """
    n += draw % 2
    T, b = n * B, int(rng.integers(2, 9))
    seen = reference.causal_mask(T, T).reshape(n, B, n, B).any(axis=(1, 3))
    loaded = sum(b * (np.zeros((B, d_k)).size + np.zeros((B, d_v)).size) for _ in range(int(seen.sum())))
    return {r"M_{\mathrm{causal}}": loaded, "T": T, "B": B, "d_k": d_k, "d_v": d_v, "b": b}


@claim("overlapped-tile-time", rests_on="attention-forward-flops")
def _(rng, n, draw):
    r"""t(N) = t_1 + (N - 1)\, \max(t_1, t_2) + t_2 \;<\; N\, (t_1 + t_2)
    where N > 1 tiles; t_1: products of one tile, t_2: its exponentials, on two units
        ;; the products of the next tile do not wait for the exponentials of this one
    For many tiles the slower unit alone sets the pace: a factor of 2 at most, at t_1 = t_2, which is why d = 64 needs it most.
        as without overlap: t(N) = N\, (t_1 + t_2)
        the faster unit sets the pace: \max(t_1, t_2) -> \min(t_1, t_2)
        no start and no end: t(N) = N\, \max(t_1, t_2) \;<\; N\, (t_1 + t_2)
    """
    t_1 = rng.uniform(0.5, 2) * (1, 40, 1)[draw]
    t_2 = t_1 * (rng.uniform(0, 0.3), 1.0, rng.uniform(1.5, 9))[draw]

    def last_end(n: float) -> float:
        products_end = exponentials_end = 0.0
        for _ in range(int(n)):  # each step starts as soon as its unit is free and its input is there
            products_end += t_1
            exponentials_end = max(exponentials_end, products_end) + t_2
        return exponentials_end

    return {"t": function(last_end), "t_1": t_1, "t_2": t_2, "N": n}
