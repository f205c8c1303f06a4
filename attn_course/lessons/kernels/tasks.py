"""The tasks on kernels that need none: which tiles a causal mask leaves, and a schedule to read."""

from typing import Any

from attn_course.tasks.asked import asked, cell, note, tried
from attn_course.tasks.changed import slips
from attn_course.tasks.core import every


def _sizes(rng, q_len, kv_len, block_q, block_kv, q_offset):
    return {"q_len": q_len, "kv_len": kv_len, "block_q": block_q, "block_kv": block_kv, "q_offset": q_offset}


def _any_sizes(rng):
    return _sizes(rng, int(rng.integers(20, 30)), 31, 7, 5, int(rng.integers(1, 5)))


SIZES = """
ragged on both sides: 13 17 4 3 4
no offset: 11 7 3 2 0
a cache of 14 keys: 5 19 2 4 14
queries that see nothing: 9 8 2 3 -3
one tile: 3 2 5 4 1
"""


@asked(
    "causal-tile-counts",
    "Skip, whole or edge",
    kind="write",
    equation="causal-tile-share",
    points=2,
    difficulty=3,
    minutes=12,
    trains="which tiles of a causal kernel need work, and which a mask",
    cases=[tried(_sizes, SIZES), _any_sizes],
    slips="""
        skipped by its first query
            first_key > last_query -> first_key > first_query
            a tile may be skipped only if its LAST query, which sees most, sees none of its keys
        whole by its last query
            last_key <= first_query -> last_key <= last_query
            a tile needs no mask only if its FIRST query, which sees least, sees its last key
        no offset
            all ` + q_offset` ->
            query i sees the keys up to i + q_offset
        a query does not see its own position
            all + q_offset -> + q_offset - 1
            key i + q_offset itself may be seen: <=, not <
        unfilled tiles left out
                range(0, q_len, block_q) -> range(0, q_len - block_q + 1, block_q)
                ;;
                range(0, kv_len, block_kv) -> range(0, kv_len - block_kv + 1, block_kv)
            the last tiles count too, though they are not full
        unfilled tiles counted as if full
            min(first_query + block_q, q_len) -> first_query + block_q ;; min(first_key + block_kv, kv_len) -> first_key + block_kv
            a tile ends with the sequence: only pairs that exist count
    """,
    hints="""
        Of the queries of a tile, which sees most keys and which sees fewest? Each decides one of the questions.
        Skip if first key > last query + q_offset. Whole if last key <= first query + q_offset.
        Two loops over range(0, q_len, block_q) and range(0, kv_len, block_kv); the last index is min(start + block, length) - 1.
    """,
    why="""
        The last query of a tile sees most: if it does not see the first key, nobody sees any. The first query sees
        least: if it sees the last key, everybody sees all. Only the edge needs a mask.
    """,
)
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    r"""How many tiles are skipped, whole, at the edge.

    A causal kernel cuts the scores into tiles: blocks of `block_q` queries from query 0 on, blocks of `block_kv` keys
    from key 0 on; the last block may be smaller
    {case}`ragged on both sides`, and only pairs that exist count. Query $i$ sees key $j$ if $j \le i + p$
    with $p$ = `q_offset`, which may be negative
    {case}`queries that see nothing`. Write `my_tiles(q_len, kv_len, block_q, block_kv, q_offset)` (five whole
    numbers). It returns three numbers `(skipped, whole, edge)`: tiles in which no pair is visible, all are, and the
    others.
    """
    skipped = whole = edge = 0.0
    for first_query in range(0, q_len, block_q):
        last_query = min(first_query + block_q, q_len) - 1
        for first_key in range(0, kv_len, block_kv):
            last_key = min(first_key + block_kv, kv_len) - 1
            if first_key > last_query + q_offset:
                skipped += 1
            elif last_key <= first_query + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge


def _schedule_to_read(t_1: float, t_2: float) -> dict[str, Any]:
    return {"products": t_1, "exponentials": t_2, "tiles": 3, "overlap": False}


def _read(t_1, t_2):
    """Ticks of a tile on each unit, of all tiles with overlap, and how many times as long they take without."""
    tiles = 10
    overlapped = t_1 + (tiles - 1) * max(t_1, t_2) + t_2
    return t_1, t_2, overlapped, tiles * (t_1 + t_2) / overlapped


@asked(
    "read-overlap-schedule",
    "Read a schedule",
    kind="figure",
    equation="overlapped-tile-time",
    points=2,
    difficulty=2,
    minutes=6,
    trains="what overlap can gain",
    judged_by=_read,
    figure="figures.schedule",
    variants=every(t_1=(3.0, 4.0, 5.0), t_2=(2.0, 1.0)),
    digits=3,
    figure_data=_schedule_to_read,
    slips=[
        slips(
            """
            the two units exchanged
                return t_1, t_2, -> return t_2, t_1,
                the upper row is the matrix unit, the lower one the exponentials
            no overlap
                t_1 + (tiles - 1) * max(t_1, t_2) + t_2 -> tiles * (t_1 + t_2)
                with overlap the slower unit never waits: the steps of the other are hidden behind it
            nothing but the slower unit
                t_1 + (tiles - 1) * max(t_1, t_2) + t_2 -> tiles * max(t_1, t_2)
                the last tile's exponentials still follow its products
            the faster unit sets the pace
                max -> min
                the slower unit sets the pace, {eq}`overlapped-tile-time`
            the tiles of the figure
                tiles = 10 -> tiles = 3
                the last two questions are about ten tiles, the figure shows three
            a tile too many
                (tiles - 1) -> tiles
                one of the products is the first term already: N - 1 more follow
            the limit of many tiles
                tiles * (t_1 + t_2) / overlapped -> (t_1 + t_2) / max(t_1, t_2)
                that is the factor for very many tiles; with ten of them the first products and the last exponentials still count
            the factor turned round
                tiles * (t_1 + t_2) / overlapped -> overlapped / (tiles * (t_1 + t_2))
                how many times as long it takes WITHOUT overlap: a number above 1
        """,
            of=_read,
        ),
    ],
    hints="""
        Where does the first block of each row begin and end?
        With overlap only the first products and the last exponentials stand alone; in between the slower unit works without a break.
        t_1 + 9 max(t_1, t_2) + t_2 against 10 (t_1 + t_2).
    """,
    why="""
        With overlap the slower unit, here the products, works without a break; only the exponentials of the last
        tile stick out.
    """,
)
def my_schedule(t_1, t_2):
    """The cell below shows the first three tiles of a kernel on two units, **without** overlap: upper row the
    matrix products, lower row the exponentials, in clock ticks. Write `my_schedule = (a, b, c, d)`:

    - `a`, `b`: ticks that one tile takes on the matrix unit, and on the unit for exponentials;
    - `c`: ticks of **ten** tiles if products need not wait for the exponentials of the tile before,
      {eq}`overlapped-tile-time`;
    - `d`: how many times as long they take without overlap.
    """
    return (3, 2, 3 + 9 * 3 + 2, 10 * (3 + 2) / (3 + 9 * 3 + 2))


ORDER = [
    note(
        "setup-text",
        r"""
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 (whole numbers where the text says
        so) and must not be changed. Rows are queries, columns keys.

        Tasks {task}`row-lse-kernel` and {task}`split-keys-kernel` need Triton (Linux; `pip install triton`). Without a GPU its interpreter
        runs the kernels, slowly, with NumPy. The variable below chooses it, and must be set before Triton is imported. The interpreter does
        not check addresses: if Python dies ("the kernel died"), a load or store left its array. Restart, and look at the mask and at the
        number of programs.
    """,
    ),
    cell(
        "setup",
        """
        import os

        import numpy as np
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
    """,
    ),
    "causal-tile-counts",
    "read-overlap-schedule",
    "row-lse-kernel",
    "split-keys-kernel",
    "row-sum-kernel",
    "row-maximum-kernel",
    "repair-row-softmax",
    "softmax-average-kernel",
    "first-dot-kernel",
    "tile-of-scores-kernel",
    "attention-kernel",
    "causal-attention-kernel",
]
