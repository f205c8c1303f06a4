"""Fast attention: tiles, what they move, and what limits them."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import by_size
from attn_course.formulas import of
from attn_course.formulas.givens import Of
from attn_course.lessons.flash.equations import square_flops

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


@claim("tiled-attention-bytes", rests_on="attention-traffic tiled-attention-update", sizes="T_q T_k d_k d_v B_q, T_q >= B_q")
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
