"""The graded tasks on fast attention: bytes and tiles here; blocks, gradients, kernels and formulas in files of their own."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from attn_course.lessons.flash.tasks_blocks import MERGE, REPAIR, STREAM
from attn_course.lessons.flash.tasks_formulas import GRADIENT_FORMULA, MERGE_DERIVED, UPDATE_FORMULA
from attn_course.lessons.flash.tasks_kernels import FIRST_KERNEL, READ_SCHEDULE, SPLITS, TILE_GRADIENT
from attn_course.tasks.core import Case, Task, Wrong, every


def _saved(
    T: int,
    d_v: int,
    B: Sequence[int],
    *,
    plain: Callable[[int, int], float] = lambda T, d_v: 4 * T * d_v + 4 * T**2,
    passed: Callable[[int, int, int], float] = lambda T, d_v, block: T / block * T * 2 * d_v,
    rows: Callable[[int], float] = lambda d_v: 2 * d_v + 1,
) -> tuple[float, ...]:
    """Numbers moved plain over numbers moved in tiles, for each block size: `passed` of keys and values, `rows` for each query."""
    return tuple(plain(T, d_v) / (T * rows(d_v) + passed(T, d_v, block)) for block in B)


SAVED = Task(
    id="bytes-saved-by-tiles",
    title="What tiles save",
    entry="my_factors",
    kind="predict",
    equation="tiled-attention-bytes",
    points=2,
    difficulty=2,
    minutes=8,
    trains="counting bytes before measuring time",
    tolerance=2e-4,
    variants=every(T=(4096, 2048, 3072), d_v=(128, 64), B=((64, 256), (32, 512), (64, 512))),
    answer=_saved,
    wrong=[
        Wrong(
            "the limit",
            lambda T, d_v, B: tuple(2 * block / d_v for block in B),
            "that is the limit for long sequences; the question is about this one",
        ),
        Wrong(
            "turned round",
            lambda T, d_v, B: tuple(1 / factor for factor in _saved(T, d_v, B)),
            "the bytes of plain attention over those in tiles",
        ),
        Wrong(
            "scores and weights counted once",
            partial(_saved, plain=lambda T, d_v: 4 * T * d_v + 2 * T**2),
            "scores are written and read, weights are written and read: four times the square",
        ),
        Wrong(
            "keys and values read once in all",
            partial(_saved, passed=lambda T, d_v, block: 2 * T * d_v),
            "keys and values pass by once for EACH block of queries",
        ),
        Wrong("keys without values", partial(_saved, passed=lambda T, d_v, block: T / block * T * d_v), "values pass by as well as keys"),
        Wrong(
            "keys read for every query",
            partial(_saved, passed=lambda T, d_v, block: T * T * 2 * d_v),
            "a key that has been read serves all queries of the block",
        ),
        Wrong("scores alone", partial(_saved, plain=lambda T, d_v: 4 * T**2), "plain attention also reads Q, K, V and writes the output"),
        Wrong("the blocks alone", partial(_saved, rows=lambda d_v: 0), "queries, outputs and log-sum-exps move as well, once each"),
        Wrong(
            "no log-sum-exp",
            partial(_saved, rows=lambda d_v: 2 * d_v),
            "the log-sum-exp of each query is written too: one number for each row",
        ),
    ],
    hints=[
        (
            "Two formulas, {eq}`plain-attention-bytes` and {eq}`tiled-attention-bytes`, for the same T and d_v. Which of their terms "
            "depend on the block?"
        ),
        "Plain: 4 T d_v + 4 T^2 numbers. In tiles: T (2 d_v + 1) + (T / B) T 2 d_v.",
        "plain / (T * (2 * d_v + 1) + T / B * T * 2 * d_v) for each of the two B.",
    ],
)

_SYMBOLS = ("t", "d", "r", "g", "b")


def _points(rng: np.random.Generator) -> list[Case]:
    return [Case("16 points", **{name: rng.uniform(1.5, 5.0, size=16) for name in _SYMBOLS})]


GROUPED = Task(
    id="shared-key-tile-bytes",
    title="Tiles for shared keys",
    entry="my_bytes",
    kind="derive",
    equation="tiled-attention-bytes",
    points=2,
    difficulty=3,
    minutes=10,
    trains="a count of bytes for a new kernel",
    symbols=_SYMBOLS,
    cases=_points,
    answer=lambda t, d, r, g, b: b * (g * t * (2 * d + 1) + t / r * t * 2 * d),
    wrong=[
        Wrong(
            "keys read by every head",
            lambda t, d, r, g, b: b * (g * t * (2 * d + 1) + g * t / r * t * 2 * d),
            "that is the traffic without sharing: here one reading serves the blocks of all g heads",
        ),
        Wrong(
            "one query head",
            lambda t, d, r, g, b: b * (t * (2 * d + 1) + t / r * t * 2 * d),
            "keys and values are right; queries, outputs and log-sum-exps exist for each of the g heads",
        ),
        Wrong(
            "no log-sum-exp",
            lambda t, d, r, g, b: b * (g * t * 2 * d + t / r * t * 2 * d),
            "the log-sum-exp of each query is written too: one number for each row and head",
        ),
        Wrong(
            "keys and values read once",
            lambda t, d, r, g, b: b * (g * t * (2 * d + 1) + t * 2 * d),
            "keys and values pass by again for every block of queries: t / r times",
        ),
        Wrong(
            "the sharing helps twice",
            lambda t, d, r, g, b: b * (g * t * (2 * d + 1) + t / (g * r) * t * 2 * d),
            "the program holds r rows of EACH head, so there are t / r blocks, not t / (g r)",
        ),
        Wrong("numbers, not bytes", lambda t, d, r, g, b: g * t * (2 * d + 1) + t / r * t * 2 * d, "each number has b bytes"),
        Wrong(
            "the scores as well",
            lambda t, d, r, g, b: b * (g * t * (2 * d + 1) + t / r * t * 2 * d + 4 * g * t**2),
            "scores and weights stay in fast memory: that is the point of tiles",
        ),
    ],
    hints=[
        "List what exists once for each query head, and what passes by for each block.",
        "Queries in, outputs out, one log-sum-exp: g t (2 d + 1). Keys and values: once for each of the t / r blocks.",
        "b times the sum of `g*t*(2*d + 1)` and `(t/r)*t*2*d`.",
    ],
)

Counts = tuple[float, float, float]


def _tiles(
    q_len: int, kv_len: int, block_q: int, block_kv: int, q_offset: int, *, seen: str = "last", full: str = "first", strict: int = 0,
    padded: bool = False, whole: bool = False,
) -> Counts:  # fmt: skip
    """Count tiles; which row decides, and how a tile that is not full is treated, may be done differently."""
    skipped = complete = edge = 0
    for start in range(0, q_len - (block_q - 1 if whole else 0), block_q):
        rows = start, (start + block_q if padded else min(start + block_q, q_len)) - 1
        for first in range(0, kv_len - (block_kv - 1 if whole else 0), block_kv):
            last = (first + block_kv if padded else min(first + block_kv, kv_len)) - 1
            sees_some, sees_all = rows[seen == "last"], rows[full == "last"]
            if first > sees_some + q_offset - strict:
                skipped += 1
            elif last <= sees_all + q_offset - strict:
                complete += 1
            else:
                edge += 1
    return float(skipped), float(complete), float(edge)


TILES = Task(
    id="causal-tile-counts",
    title="Skip, whole or edge",
    entry="my_tiles",
    kind="write",
    equation="causal-tile-share",
    points=2,
    difficulty=3,
    minutes=12,
    trains="which tiles of a causal kernel need work, and which a mask",
    answer=_tiles,
    cases=lambda rng: [
        Case("ragged on both sides", q_len=13, kv_len=17, block_q=4, block_kv=3, q_offset=4),
        Case("no offset", q_len=11, kv_len=7, block_q=3, block_kv=2, q_offset=0),
        Case("a cache of 14 keys", q_len=5, kv_len=19, block_q=2, block_kv=4, q_offset=14),
        Case("queries that see nothing", q_len=9, kv_len=8, block_q=2, block_kv=3, q_offset=-3),
        Case("one tile", q_len=3, kv_len=2, block_q=5, block_kv=4, q_offset=1),
        Case("any sizes", q_len=int(rng.integers(20, 30)), kv_len=31, block_q=7, block_kv=5, q_offset=int(rng.integers(1, 5))),
    ],
    wrong=[
        Wrong(
            "skipped by its first query",
            lambda *sizes: _tiles(*sizes, seen="first"),
            "a tile may be skipped only if its LAST query, which sees most, sees none of its keys",
        ),
        Wrong(
            "whole by its last query",
            lambda *sizes: _tiles(*sizes, full="last"),
            "a tile needs no mask only if its FIRST query, which sees least, sees its last key",
        ),
        Wrong(
            "no offset", lambda q, k, block_q, block_kv, _: _tiles(q, k, block_q, block_kv, 0), "query i sees the keys up to i + q_offset"
        ),
        Wrong("a query does not see its own position", lambda *s: _tiles(*s, strict=1), "key i + q_offset itself may be seen: <=, not <"),
        Wrong("unfilled tiles left out", lambda *s: _tiles(*s, whole=True), "the last tiles count too, though they are not full"),
        Wrong(
            "unfilled tiles counted as if full",
            lambda *s: _tiles(*s, padded=True),
            "a tile ends with the sequence: only pairs that exist count",
        ),
    ],
    hints=[
        "Of the queries of a tile, which sees most keys and which sees fewest? Each decides one of the questions.",
        "Skip if first key > last query + q_offset. Whole if last key <= first query + q_offset.",
        "Two loops over range(0, q_len, block_q) and range(0, kv_len, block_kv); the last index is min(start + block, length) - 1.",
    ],
)

TASKS = [
    MERGE,
    SAVED,
    GROUPED,
    STREAM,
    TILES,
    REPAIR,
    TILE_GRADIENT,
    SPLITS,
    READ_SCHEDULE,
    FIRST_KERNEL,
    MERGE_DERIVED,
    UPDATE_FORMULA,
    GRADIENT_FORMULA,
]
