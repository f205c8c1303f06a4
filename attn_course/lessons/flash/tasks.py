"""The tasks on fast attention: bytes and tiles here; blocks, gradients, kernels and formulas in files of their own."""

from attn_course.tasks.asked import asked, cell, note
from attn_course.tasks.core import every


@asked(
    "bytes-saved-by-tiles",
    "What tiles save",
    kind="predict",
    equation="tiled-attention-bytes",
    points=2,
    difficulty=2,
    minutes=8,
    trains="counting bytes before measuring time",
    variants=every(T=(4096, 2048, 3072), d_v=(128, 64), B=((64, 256), (32, 512), (64, 512))),
    digits=4,
    slips="""
        the limit
            plain / (T * (2 * d_v + 1) + T / block * T * 2 * d_v) -> 2 * block / d_v
            that is the limit for long sequences; the question is about this one
        turned round
            plain / (T * (2 * d_v + 1) + T / block * T * 2 * d_v) -> (T * (2 * d_v + 1) + T / block * T * 2 * d_v) / plain
            the bytes of plain attention over those in tiles
        scores and weights counted once
            4 * T**2 -> 2 * T**2
            scores are written and read, weights are written and read: four times the square
        keys and values read once in all
            T / block * T * 2 * d_v -> 2 * T * d_v
            keys and values pass by once for EACH block of queries
        keys without values
            T * 2 * d_v) -> T * d_v)
            values pass by as well as keys
        keys read for every query
            T / block * T -> T * T
            a key that has been read serves all queries of the block
        scores alone
            4 * T * d_v + ->
            plain attention also reads Q, K, V and writes the output
        the blocks alone
            T * (2 * d_v + 1) + ->
            queries, outputs and log-sum-exps move as well, once each
        no log-sum-exp
            2 * d_v + 1 -> 2 * d_v
            the log-sum-exp of each query is written too: one number for each row
    """,
    hints="""
        Two formulas, {eq}`plain-attention-bytes` and {eq}`tiled-attention-bytes`, for the same T and d_v. Which of their terms depend
            on the block?
        Plain: 4 T d_v + 4 T^2 numbers. In tiles: T (2 d_v + 1) + (T / B) T 2 d_v.
        plain / (T * (2 * d_v + 1) + T / B * T * 2 * d_v) for each of the two B.
    """,
    why="""
        With 64 queries in a block and $d_v = 128$, nearly nothing is saved: what no longer moves as scores moves as keys and values that
        pass by 64 times. Tiles pay when the block is large against the width: for long sequences the factor tends to $2 B_q / d_v$, here
        1 and 4.
    """,
)
def my_factors(T, d_v, B):
    r"""One head attends over $T$ positions ($T_q = T_k$) with $d_k = d_v$; all numbers (log-sum-exps too) have the same size, and there
    is no mask. By what factor does tiling reduce the bytes moved: $M_{\mathrm{plain}} / M_{\mathrm{tiled}}$,
    {eq}`plain-attention-bytes` and {eq}`tiled-attention-bytes`? The cell below prints your $T$, $d_v$ and two sizes $B$ of a block of
    queries. Write `my_factors = (a, b)`, one for each size, exact for this length, not the limit.
    """
    plain = 4 * T * d_v + 4 * T**2
    return tuple(plain / (T * (2 * d_v + 1) + T / block * T * 2 * d_v) for block in B)


def _sixteen_points(rng):
    return {name: rng.uniform(1.5, 5.0, size=16) for name in ("t", "d", "r", "g", "b")}


@asked(
    "shared-key-tile-bytes",
    "Tiles for shared keys",
    kind="derive",
    equation="tiled-attention-bytes",
    points=2,
    difficulty=3,
    minutes=10,
    trains="a count of bytes for a new kernel",
    cases=[_sixteen_points],
    slips="""
        keys read by every head
            (t / r) -> (g * t / r)
            that is the traffic without sharing: here one reading serves the blocks of all g heads
        one query head
            g * t * -> t *
            keys and values are right; queries, outputs and log-sum-exps exist for each of the g heads
        no log-sum-exp
            2 * d + 1 -> 2 * d
            the log-sum-exp of each query is written too: one number for each row and head
        keys and values read once
            (t / r) * t * 2 -> t * 2
            keys and values pass by again for every block of queries: t / r times
        the sharing helps twice
            (t / r) -> (t / (g * r))
            the program holds r rows of EACH head, so there are t / r blocks, not t / (g r)
        numbers, not bytes
            b * (g -> (g
            each number has b bytes
        the scores as well
            t * 2 * d) -> t * 2 * d + 4 * g * t**2)
            scores and weights stay in fast memory: that is the point of tiles
    """,
    hints="""
        List what exists once for each query head, and what passes by for each block.
        Queries in, outputs out, one log-sum-exp: g t (2 d + 1). Keys and values: once for each of the t / r blocks.
        b times the sum of `g*t*(2*d + 1)` and `(t/r)*t*2*d`.
    """,
    why="""
        Only the first term of {eq}`tiled-attention-bytes` exists for every head; the passing keys serve $g r$ rows at a time, which
        raises the intensity by $g$. For decoding ($t$ keys, one query) this is all that helps.
    """,
)
def my_bytes(t, d, r, g, b):
    """Grouped-query attention in tiles: $g$ query heads share one head of keys and values. Lengths are $t$, widths $d$, a
    number has $b$ bytes, no mask. A program holds a block of $r$ queries **of each** of the $g$ heads ($r$ divides $t$)
    while keys and values pass by once for all of them. Queries are read once; outputs and one log-sum-exp for each query
    and head are written once. Write the bytes moved for all $g$ heads, in `t`, `d`, `r`, `g`, `b`: sums, products,
    powers.
    """
    return b * (g * t * (2 * d + 1) + (t / r) * t * 2 * d)


ORDER = [
    note(
        "title",
        """
        Take them in any order. Task {task}`tile-score-gradient` leans on the *Deeper* section about states and gradients, the others on the
        core alone.
    """,
    ),
    note(
        "setup-text",
        r"""
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 (whole numbers where the text says
        so) and must not be changed. Rows are queries, columns keys. There is no mask unless the task says so, and the scale
        of scores is $1/\sqrt{d_k}$.
    """,
    ),
    cell(
        "setup",
        """
        import numpy as np
        import torch
    """,
    ),
    "merge-two-states",
    "bytes-saved-by-tiles",
    "shared-key-tile-bytes",
    "streamed-attention",
    "repair-tiled-loop",
    "tile-score-gradient",
    "merge-decoding-splits",
    note(
        "answers-in-latex",
        """
        The next four answers are written in LaTeX, and any form that is equal counts. To see how an answer is understood, `from
        attn_course import read` and call, for instance, `read("merge-of-two-blocks", my_merging)`; what cannot be read is no
        attempt.
    """,
    ),
    "output-of-two-parts",
    "merge-of-two-blocks",
    "update-of-divided-outputs",
    "gradient-of-tile-scores",
    "fold-in-a-block",
    "gradient-of-a-tile",
]
