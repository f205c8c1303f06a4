"""The rungs of the ladder: kernels that the lesson asks its reader to write, each a little more than the one before."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attn_course.reference import attention, causal_mask, logsumexp, scaled_dot_scores, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked_cell
from attn_course.tasks.core import Case, Task, Wrong

BLOCK = 16
LIBRARY = forbidden.Forbidden(
    "a library's sum, maximum or product",
    tuple(f"{place}.{name}" for place in ("numpy", "torch") for name in ["sum", "max", "amax", "einsum", "matmul", "dot"]),
)
FORBID = (LIBRARY, forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.EXPONENTIALS, forbidden.KERNEL_LAUNCHED)
Draw = Callable[[np.random.Generator], list[Case]]


def rung(
    task_id: str,
    title: str,
    *,
    entry: str,
    minutes: int,
    asks: str,
    slips: list[Wrong],
    solution: str,
    equation: str | None = None,
    **facts: Any,
) -> Task:
    """A task whose answer is a cell with a kernel and its launch, asked in the lesson."""
    return asked_cell(
        task_id, title, kind="write", entry=entry, asks=asks, points=1, minutes=minutes, your_turn=True, forbid=FORBID,
        slips=slips, equation=equation, solution=inspect.cleandoc(solution), **facts,
    )  # fmt: skip


def table(*shapes: tuple[int, int], shift: float = 0.0, **more: Callable[[np.random.Generator, int, int], np.ndarray]) -> Draw:
    """Cases of one array `x` for each shape, and others that depend on the shape."""

    def cases(rng: np.random.Generator) -> list[Case]:
        found = []
        for rows, columns in shapes:
            others = {name: make(rng, rows, columns) for name, make in more.items()}
            found.append(Case(f"{rows} by {columns}", x=rng.normal(size=(rows, columns)) + shift, **others))
        return found

    return cases


def heads(*sizes: tuple[int, int, int]) -> Draw:
    """Cases of queries, keys and values."""

    def cases(rng: np.random.Generator) -> list[Case]:
        found = []
        for q_len, kv_len, d in sizes:
            query, key, value = rng.normal(size=(q_len, d)), 2 * rng.normal(size=(kv_len, d)), rng.normal(size=(kv_len, d))
            found.append(Case(f"{q_len} queries, {kv_len} keys, {d} features", query=query, key=key, value=value))
        query, key = 1 + rng.normal(size=(19, 16)) / 256, rng.normal(size=(19, 16)) / 16 - 79.6  # 16 products of -79.6, over 4
        found.append(Case("square, scores near -318", query=query, key=key, value=rng.normal(size=(19, 16))))
        return found

    return cases


def first_row(right: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """The right result in the first row or entry, and NaN in the others."""
    found = np.full_like(result := right(*arrays), np.nan)
    found[0] = result[0]
    return found


def full_blocks(x: np.ndarray) -> np.ndarray:
    """The columns of full blocks."""
    return x[:, : x.shape[1] // BLOCK * BLOCK]


def last_block(x: np.ndarray) -> np.ndarray:
    """The columns of the last block."""
    return x[:, (x.shape[1] - 1) // BLOCK * BLOCK :]


def sums(x: np.ndarray) -> np.ndarray:
    """The sum of each row."""
    return x.sum(axis=1)


def maxima(x: np.ndarray) -> np.ndarray:
    """The largest number of each row."""
    return x.max(axis=1)


def read_on(x: np.ndarray) -> np.ndarray:
    """The blocks of each row when no load has a mask: a row reads on into the next, and the last one into NaN."""
    padded = -x.shape[1] % BLOCK
    behind = np.concatenate([x.ravel(), np.full(padded, np.nan)])
    return np.stack([behind[start : start + x.shape[1] + padded] for start in range(0, x.size, x.shape[1])])


READ_ON = "a row reads on into the next, and the last one beyond the array: the load needs `mask=j < n`"
NO_OTHER = "what a load without `other` brings where its mask leaves a number out may be anything; the check makes it infinity"
ONE_PROGRAM = "the first row is right and the others are NaN: the grid has one program for each row, and each stores at `out + row`"

my_row_sum = rung(
    "row-sum-kernel",
    "A row, summed in blocks",
    entry="my_row_sum",
    minutes=4,
    asks="""
        `my_row_sum(x)` returns the sum of each row of `x` $(r, n)$. One program sums one row, in blocks of `B` = 16. The number $n$ need
        not be a multiple of 16 {case}`3 by 37`.
    """,
    difficulty=1,
    trains="a program for a row, and a loop over blocks",
    cases=table((3, 37), (2, 16), (1, 5), (5, 1)),
    judged_by=sums,
    slips=[
        Wrong("only the first row", partial(first_row, sums), ONE_PROGRAM),
        Wrong("no mask at the load", lambda x: read_on(x).sum(axis=1), READ_ON),
        Wrong("no other at the load", lambda x: np.where(x.shape[1] % BLOCK, np.inf, sums(x)), NO_OTHER),
        Wrong("the last block dropped", lambda x: full_blocks(x).sum(axis=1), "columns of a last block that is not full are missing"),
        Wrong(
            "only the last block",
            lambda x: last_block(x).sum(axis=1),
            "the total must live through the loop",
        ),
        Wrong("one row for all", lambda x: np.full(len(x), x[0].sum()), "each program reads its own row, which begins at `x + row * n`"),
    ],
    hints="""
        Which row is this program's, and where in memory does it begin?
        A block of columns is `j = start + tl.arange(0, B)`; what is not there must not count.
        Add `tl.sum(block, 0)`, where `block = tl.load(x + row * n + j, mask=j < n, other=0.0)`.
    """,
    why="A masked load puts `other` in the place of what is not there, and 0 changes no sum.",
    solution="""
        @triton.jit
        def sum_of_row(x, out, n, B: tl.constexpr):
            row = tl.program_id(0)
            total = 0.0
            for start in range(0, n, B):
                j = start + tl.arange(0, B)
                ### BEGIN SOLUTION
                block = tl.load(x + row * n + j, mask=j < n, other=0.0)
                total += tl.sum(block, 0)
                ### END SOLUTION
            tl.store(out + row, total)


        def my_row_sum(x):
            x = torch.as_tensor(x, dtype=torch.float32, device=device)
            out = torch.full((len(x),), torch.nan, device=device)
            sum_of_row[(len(x),)](x, out, x.shape[1], B=16)
            return out
    """,
)

my_row_max = rung(
    "row-maximum-kernel",
    "The largest number of a row",
    entry="my_row_max",
    minutes=2,
    asks="""
        `my_row_max(x)` returns the largest number of each row of `x` $(r, n)$. One program takes one row, in blocks of
        `B` = 16. All numbers of a row may be negative {case}`1 by 5`, down to $-300$ {lowest}`-300`.
    """,
    difficulty=1,
    trains="what a masked load must put in the place of nothing",
    cases=lambda rng: [
        *table((3, 37), (2, 16), (1, 5), (5, 1), shift=-4.0)(rng),
        Case("near -299", x=rng.normal(size=(3, 21)).clip(-3, 3) / 4 - 299.0),
    ],
    judged_by=maxima,
    slips=[
        Wrong("only the first row", partial(first_row, maxima), ONE_PROGRAM),
        Wrong(
            "the tail read as 0",
            lambda x: np.where(x.shape[1] % BLOCK, np.maximum(maxima(x), 0.0), maxima(x)),
            "where a block is not full, columns past the end count as 0: what changes no maximum?",
        ),
        Wrong("no mask at the load", lambda x: np.fmax.reduce(read_on(x), axis=1), READ_ON),
        Wrong("no other at the load", lambda x: np.where(x.shape[1] % BLOCK, np.inf, maxima(x)), NO_OTHER),
        Wrong("a maximum that starts at 0", lambda x: np.maximum(maxima(x), 0.0), "before the first block the maximum is -inf"),
        Wrong("only the last block", lambda x: last_block(x).max(axis=1), "the maximum must live through the loop"),
    ],
    hints="""
        Take the kernel that sums a row. Which of its numbers have to change?
        What changes no maximum? It stands before the loop, and in the place of what is not there.
        Load with `other=float("-inf")`, and then `m = tl.maximum(m, tl.max(block, 0))`.
    """,
    why=r"For a maximum nothing is $-\infty$, as 0 is for a sum.",
    solution="""
        @triton.jit
        def row_max(x, out, n, B: tl.constexpr):
            row = tl.program_id(0)
            ### BEGIN SOLUTION
            m = float("-inf")
            for start in range(0, n, B):
                j = start + tl.arange(0, B)
                block = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
                m = tl.maximum(m, tl.max(block, 0))
            ### END SOLUTION
            tl.store(out + row, m)


        def my_row_max(x):
            x = torch.as_tensor(x, dtype=torch.float32, device=device)
            out = torch.full((len(x),), torch.nan, device=device)
            row_max[(len(x),)](x, out, x.shape[1], B=16)
            return out
    """,
)


def _average(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(x) @ values)


def _average_in_blocks(
    x: np.ndarray,
    values: np.ndarray,
    *,
    rescale_sum: bool = True,
    rescale_acc: bool = True,
    running: bool = True,
    upside_down: bool = False,
) -> np.ndarray:
    m, row_sum, acc = np.full(len(x), -np.inf), np.zeros(len(x)), np.zeros(len(x))
    for start in range(0, x.shape[1], BLOCK):
        block = x[:, start : start + BLOCK]
        new = np.maximum(m, block.max(axis=1)) if running else block.max(axis=1)
        p, factor = np.exp(block - new[:, None]), np.exp(new - m if upside_down else m - new)
        row_sum = (factor if rescale_sum else 1.0) * row_sum + p.sum(axis=1)
        acc = (factor if rescale_acc else 1.0) * acc + p @ values[start : start + BLOCK]
        m = new
    return acc / row_sum


def _zeros_counted(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    rest = -x.shape[1] % BLOCK
    return _average(np.pad(x, ((0, 0), (0, rest))), np.pad(values, (0, rest)))


def _average_cases(rng: np.random.Generator) -> list[Case]:
    drawn = table((3, 37), (1, 5), (2, 1), values=lambda rng, _, n: rng.normal(size=n))(rng)
    rising = Case("rising scores, up to 300", x=np.sort(rng.uniform(-60, 299, size=(1, 50)), axis=1), values=rng.normal(size=50))
    low = Case("scores near -299", x=rng.normal(size=(3, 21)).clip(-3, 3) / 4 - 299.0, values=rng.normal(size=21))
    falling = np.repeat([[299.0, -299.0]], 16, axis=1) + rng.uniform(-1, 1, size=(2, 32))
    steep = Case("from 300 down to -300", x=falling, values=rng.normal(size=32))
    return [*drawn, rising, low, steep]


my_average = rung(
    "softmax-average-kernel",
    "The state in a loop",
    entry="my_average",
    minutes=4,
    asks=r"""
        `my_average(x, values)` returns for each row of scores `x` $(r, n)$ the average of `values` $(n,)$ under the softmax of the row. One
        program goes through one row once, in blocks of 16. Scores lie between $-300$ and 300 {lowest}`-300`. Later
        blocks may hold much lower scores than earlier ones {case}`from 300 down to -300`.
    """,
    equation="tiled-attention-update",
    difficulty=3,
    trains="the state of a row in a kernel",
    cases=_average_cases,
    judged_by=_average,
    slips=[
        Wrong("only the first row", partial(first_row, _average), ONE_PROGRAM),
        Wrong("the tail read as 0", _zeros_counted, "columns past the end count with e^0 in the sum: load their scores as -inf"),
        Wrong(
            "the sum not rescaled",
            partial(_average_in_blocks, rescale_sum=False, rescale_acc=True),
            "the accumulator is rescaled when the maximum grows; the sum needs the same factor",
        ),
        Wrong(
            "the accumulator not rescaled",
            partial(_average_in_blocks, rescale_sum=True, rescale_acc=False),
            "the sum is rescaled when the maximum grows; the accumulator needs the same factor",
        ),
        Wrong(
            "a load without its mask or `other`",
            lambda x, values: np.where(len(values) % BLOCK, np.nan, _average(x, values)),
            "beyond the end of a row and of `values` anything may stand, also NaN: both loads need `mask=j < n` and `other`",
        ),
        Wrong(
            "the maximum of the block alone",
            lambda x, values: _average_in_blocks(x.astype(np.float32), values, running=False),
            "if a later block is smaller, e^(m - new) overflows: the new maximum is the larger of the old one and the block's",
        ),
        Wrong(
            "nothing rescaled",
            partial(_average_in_blocks, rescale_sum=False, rescale_acc=False),
            "when the maximum grows, sum and accumulator need the factor e^(m - m')",
        ),
        Wrong(
            "the maximum not kept",
            lambda x, values: _average(last_block(x), last_block(values[None])[0]),
            "only the last block counts: `m` stays -inf, so that every factor is 0; end the loop with `m = new`",
        ),
        Wrong("the factor upside down", partial(_average_in_blocks, upside_down=True), "the factor is e^(old - new), which is at most 1"),
        Wrong("the plain mean", lambda x, values: np.full(len(x), values.mean()), "the average must be weighted by e^(s - m)"),
    ],
    hints="""
        What was added before was measured from the old maximum `m`. Which factor brings it to `new`?
        The factor is `tl.exp(m - new)`, and the terms of the block are `p = tl.exp(s - new)`. At the end `m = new`.
        `acc = acc * tl.exp(m - new) + tl.sum(p * v, 0)`, and the same without `v` for the sum. Divide once, at the store.
    """,
    why="It is attention for one query whose scores are known, with one feature.",
    solution="""
        @triton.jit
        def average(x, values, out, n, B: tl.constexpr):
            row = tl.program_id(0)
            m, row_sum, acc = float("-inf"), 0.0, 0.0
            for start in range(0, n, B):
                j = start + tl.arange(0, B)
                ### BEGIN SOLUTION
                s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
                v = tl.load(values + j, mask=j < n, other=0.0)
                new = tl.maximum(m, tl.max(s, 0))
                factor, p = tl.exp(m - new), tl.exp(s - new)
                row_sum = row_sum * factor + tl.sum(p, 0)
                acc = acc * factor + tl.sum(p * v, 0)
                m = new
                ### END SOLUTION
            tl.store(out + row, acc / row_sum)


        def my_average(x, values):
            x, values = (torch.as_tensor(each, dtype=torch.float32, device=device) for each in (x, values))
            out = torch.full((len(x),), torch.nan, device=device)
            average[(len(x),)](x, values, out, x.shape[1], B=16)
            return out
    """,
)


def _product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.asarray(x @ w)


my_product = rung(
    "first-dot-kernel",
    "A first product",
    entry="my_product",
    minutes=3,
    asks=r"""
        `my_product(x, w)` returns $x\,w$ for `x` $(r, 32)$ and `w` $(32, 16)$. Each program multiplies 16 rows of `x` with the whole of
        `w`, and the last program may have fewer rows {case}`37 by 32`.
    """,
    difficulty=2,
    trains="blocks of addresses with two axes, and tl.dot",
    cases=table((37, 32), (3, 32), (1, 32), w=lambda rng, _, n: rng.normal(size=(n, 16))),
    judged_by=_product,
    slips=[
        Wrong(
            "only the first block of rows",
            lambda x, w: np.where(np.arange(len(x))[:, None] < BLOCK, x @ w, np.nan),
            "the first 16 rows are right and the others are NaN: the grid needs triton.cdiv(r, 16) programs",
        ),
        Wrong(
            "the matrix read by columns",
            lambda x, w: x @ w.ravel().reshape(16, 32).T,
            "row k of `w` begins at `w + k * 16`, since it has 16 columns",
        ),
        Wrong("the rows averaged", lambda x, w: np.full((len(x), 16), (x @ w).mean()), "each row of the result belongs to one row of x"),
    ],
    hints="""
        Which rows of `x` belong to this program?
        `i = tl.program_id(0) * B + tl.arange(0, B)` numbers its rows of `x`.
        Load them with `a = load_rows(x, i, r, K)`, then `store_rows(out, i, r, tl.dot(a, b, input_precision="ieee"), N)`.
    """,
    why="The product of a block of rows is that block of the product, so no program needs another.",
    solution="""
        @triton.jit
        def load_rows(array, i, length, D: tl.constexpr):
            at = array + i[:, None] * D + tl.arange(0, D)[None, :]
            return tl.load(at, mask=i[:, None] < length, other=0.0)


        @triton.jit
        def store_rows(array, i, length, block, D: tl.constexpr):
            at = array + i[:, None] * D + tl.arange(0, D)[None, :]
            tl.store(at, block, mask=i[:, None] < length)


        @triton.jit
        def product(x, w, out, r, K: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
            b = load_rows(w, tl.arange(0, K), K, N)
            ### BEGIN SOLUTION
            i = tl.program_id(0) * B + tl.arange(0, B)
            a = load_rows(x, i, r, K)
            store_rows(out, i, r, tl.dot(a, b, input_precision="ieee"), N)
            ### END SOLUTION


        def my_product(x, w):
            x, w = (torch.as_tensor(each, dtype=torch.float32, device=device) for each in (x, w))
            out = torch.full((len(x), 16), torch.nan, device=device)
            product[(triton.cdiv(len(x), 16),)](x, w, out, len(x), K=32, N=16, B=16)
            return out
    """,
)


def _scores(x: np.ndarray, key: np.ndarray) -> np.ndarray:
    return np.asarray(scaled_dot_scores(x, key))


SHAPES = (20, 16), (3, 32), (1, 32), (5, 16)
KEYS = {20: 37, 3: 5, 1: 17, 5: 1}

my_scores = rung(
    "tile-of-scores-kernel",
    "A tile of scores",
    entry="my_scores",
    minutes=3,
    asks=r"""
        `my_scores(q, k)` returns $Q K^\top / \sqrt{d}$ for queries `q` $(r, d)$ and keys `k` $(n, d)$. One program takes 16 queries, and
        goes through all keys in blocks of 16. The width $d$ is 16 or a larger power of 2, and the lengths are any numbers {case}`20 by 16`.
    """,
    equation="scaled-score",
    difficulty=2,
    trains="a loop over tiles of keys, and a mask with two axes",
    cases=table(*SHAPES, key=lambda rng, rows, d: rng.normal(size=(KEYS[rows], d))),
    judged_by=_scores,
    slips=[
        Wrong("not scaled", lambda x, key: x @ key.T, "the products are right; the scale 1 / sqrt(d) is missing"),
        Wrong("divided by d", lambda x, key: x @ key.T / x.shape[1], "the products are right; divide by the root of d"),
        Wrong(
            "only the first tile of keys",
            lambda x, key: np.where(np.arange(len(key)) < BLOCK, _scores(x, key), np.nan),
            "the first 16 columns are right and the others are NaN: the loop must go through all keys",
        ),
        Wrong(
            "only the first tile of queries",
            lambda x, key: np.where(np.arange(len(x))[:, None] < BLOCK, _scores(x, key), np.nan),
            "the first 16 rows are right and the others are NaN: the grid counts tiles of queries",
        ),
    ],
    hints="""
        Rows of the tile are queries and columns are keys. Which of the two factors has to be transposed?
        Transpose the keys with `tl.trans(k_tile)`, and multiply the product by `scale`.
        `s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale`
    """,
    why="Queries or keys that are not there are read as zeros, and the mask of the store throws their scores away.",
    solution="""
        @triton.jit
        def scores(q, k, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            q_tile = load_rows(q, i, r, D)
            for start in range(0, n, B):
                j = start + tl.arange(0, B)
                ### BEGIN SOLUTION
                k_tile = load_rows(k, j, n, D)
                s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
                is_there = (i[:, None] < r) & (j[None, :] < n)
                tl.store(out + i[:, None] * n + j[None, :], s, mask=is_there)
                ### END SOLUTION


        def my_scores(q, k):
            (r, d), n = q.shape, len(k)
            q, k = (torch.as_tensor(each, dtype=torch.float32, device=device) for each in (q, k))
            out = torch.full((r, n), torch.nan, device=device)
            scores[(triton.cdiv(r, 16),)](q, k, out, r, n, d**-0.5, D=d, B=16)
            return out
    """,
)


def _padded_keys(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Attention in which keys that are not there count with a score of 0 and a value of 0."""
    rest = ((0, -len(key) % BLOCK), (0, 0))
    return np.asarray(attention(query, np.pad(key, rest), np.pad(value, rest)))


def _unrescaled(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, acc_too: bool = False) -> np.ndarray:
    s = scaled_dot_scores(query, key)
    m, row_sum, acc = np.full((len(s), 1), -np.inf), np.zeros((len(s), 1)), np.zeros((len(s), value.shape[1]))
    for start in range(0, s.shape[1], BLOCK):
        block = s[:, start : start + BLOCK]
        new = np.maximum(m, block.max(axis=1, keepdims=True))
        p, factor = np.exp(block - new), np.exp(m - new)
        row_sum = (1.0 if acc_too else factor) * row_sum + p.sum(axis=1, keepdims=True)
        acc, m = acc + p @ value[start : start + BLOCK], new
    return acc / row_sum


def _first_queries(right: Callable[..., np.ndarray], query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(query))[:, None] < BLOCK, right(query, key, value), np.nan)


def _attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.asarray(attention(query, key, value))


FORWARD = [
    Wrong(
        "missing keys counted",
        _padded_keys,
        "keys past the end have a score of 0 and count with e^0: after the product set their scores to -inf",
    ),
    Wrong("the accumulator not rescaled", _unrescaled, "when the maximum grows, the accumulator needs the factor, as the sum does"),
    Wrong("nothing rescaled", partial(_unrescaled, acc_too=True), "when the maximum grows, sum and accumulator need the factor e^(m - m')"),
    Wrong("no scale", lambda query, key, value: np.asarray(attention(query, key, value, scale=1.0)), "the scale 1 / sqrt(d) is missing"),
    Wrong(
        "only the first tile of queries",
        partial(_first_queries, _attention),
        "the first 16 rows are right and the others are NaN: the grid counts tiles of queries",
    ),
]
my_attention = rung(
    "attention-kernel",
    "Attention, forward",
    entry="my_attention",
    minutes=4,
    asks=r"""
        `my_attention(query, key, value)` returns attention for one head: `query` $(r, d)$, `key` and `value` $(n, d)$, where $d$ is 16 or a
        larger power of 2, and the lengths are any numbers {case}`20 queries, 37 keys, 16 features`. One program takes 16
        queries, and goes through all keys in blocks of 16. Scores may be as low as $-320$ {lowest}`-320`.
    """,
    equation="attention",
    difficulty=3,
    trains="the whole forward pass in one kernel",
    cases=heads((20, 37, 16), (3, 5, 32), (1, 16, 32), (5, 1, 16)),
    judged_by=_attention,
    slips=FORWARD,
    hints=r"""
        Load and multiply as in the rung before. Then `update` does with a tile what the average did with a block. Which keys may not count?
        `j[None, :] < n` is true for the keys that are there. The scores of the others must be $-\infty$ before `update`.
        Behind the product `s = tl.where(j[None, :] < n, s, float("-inf"))`, then `m, row_sum, acc = update(m, row_sum, acc, s, v)`.
    """,
    why="It is `forward` of lesson {lesson}`flash`: the grid took the place of its outer loop.",
    solution="""
        @triton.jit
        def update(m, row_sum, acc, s, v):
            new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
            factor, p = tl.exp(m - new), tl.exp(s - new)
            row_sum = row_sum * factor + tl.sum(p, 1, keep_dims=True)
            return new, row_sum, acc * factor + tl.dot(p, v, input_precision="ieee")


        @triton.jit
        def forward(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            q = load_rows(query, i, r, D)
            m = tl.full([B, 1], float("-inf"), tl.float32)
            row_sum = tl.zeros([B, 1], tl.float32)
            acc = tl.zeros([B, D], tl.float32)
            for start in range(0, n, B):
                j = start + tl.arange(0, B)
                ### BEGIN SOLUTION
                k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
                s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
                s = tl.where(j[None, :] < n, s, float("-inf"))
                m, row_sum, acc = update(m, row_sum, acc, s, v)
                ### END SOLUTION
            store_rows(out, i, r, acc / row_sum, D)


        def my_attention(query, key, value):
            (r, d), n = query.shape, len(key)
            out = torch.full((r, d), torch.nan, device=device)
            arrays = [torch.as_tensor(each, dtype=torch.float32, device=device) for each in (query, key, value)]
            forward[(triton.cdiv(r, 16),)](*arrays, out, r, n, d**-0.5, D=d, B=16)
            return out
    """,
)


def _causal(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.asarray(attention(query, key, value, is_causal=True))


def _without_diagonal(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What comes out if the block on the diagonal has no mask."""
    blocks = np.arange(len(key)) // BLOCK
    return np.asarray(attention(query, key, value, mask=blocks <= blocks[:, None]))


def _open_diagonal(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The same, where also keys that are not there count, with a score of 0 and a value of 0."""
    rest = -len(key) % BLOCK
    blocks = np.arange(len(key) + rest) // BLOCK
    key, value = (np.pad(each, ((0, rest), (0, 0))) for each in (key, value))
    return np.asarray(attention(query, key, value, mask=blocks <= blocks[: len(query), None]))


def _diagonal_twice(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What comes out if the loop takes the block on the diagonal too, without a mask."""
    n, rest = len(key), -len(key) % BLOCK
    blocks, causal = np.arange(n + rest) // BLOCK, causal_mask(n, n)
    own = blocks[:n, None]
    seen = np.concatenate([blocks <= own, causal & (blocks[:n] == own)], axis=1)
    key, value = (np.concatenate([np.pad(each, ((0, rest), (0, 0))), each]) for each in (key, value))
    return np.asarray(attention(query, key, value, mask=seen))


def _without_edge(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    blocks = np.arange(len(key)) // BLOCK
    found = np.asarray(attention(query, key, value, mask=blocks < blocks[:, None]))
    return np.where(np.arange(len(query))[:, None] < BLOCK, np.nan, found)


def _own_key_hidden(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    earlier = causal_mask(len(key), len(key)) & ~np.eye(len(key), dtype=bool)
    return np.where(np.arange(len(query))[:, None] == 0, np.nan, attention(query, key, value, mask=earlier))


def _turned_round(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What comes out if the mask on the diagonal keeps the later keys, those that are not there among them."""
    n, rest = len(key), -len(key) % BLOCK
    key, value = (np.pad(each, ((0, rest), (0, 0))) for each in (key, value))
    place, own = np.arange(n + rest), np.arange(n)[:, None]
    later = (place // BLOCK == own // BLOCK) & (place >= own)
    return np.asarray(attention(query, key, value, mask=(place // BLOCK < own // BLOCK) | later))


def _causal_cases(rng: np.random.Generator) -> list[Case]:
    query, key, value = rng.normal(size=(3, 37, 16))
    value[32:] = np.nan  # the last block, which only its own queries may use
    behind = Case("NaN behind the diagonal", query=query, key=key, value=value)
    return [*heads((20, 20, 16), (37, 37, 16), (5, 5, 32), (1, 1, 32))(rng), behind]


my_causal = rung(
    "causal-attention-kernel",
    "Causal, in two parts",
    entry="my_causal",
    minutes=6,
    asks=r"""
        `my_causal(query, key, value)` returns causal attention: `query`, `key` and `value` are $(n, d)$, so `r` and `n` are equal, and
        query $i$ sees the keys $j \le i$. The loop takes the tiles below the diagonal, without a mask. After the loop comes the
        tile on the diagonal, with the mask. The values of tiles above it are not used {case}`NaN behind the diagonal`. Scores may be as
        low as $-320$ {lowest}`-320`.
    """,
    equation="causal-tile-share",
    difficulty=3,
    trains="which tiles need a mask, and which need nothing",
    cases=_causal_cases,
    judged_by=_causal,
    slips=[
        Wrong(
            "blocks above the diagonal used",
            lambda query, key, value: np.where(np.isnan(value).any(), np.nan, _causal(query, key, value)),
            "the values of a block that no query sees are multiplied: its weights are 0, and 0 times NaN is NaN",
        ),
        Wrong("no mask", _attention, "every query sees every key"),
        Wrong(
            "no mask on the diagonal",
            _open_diagonal,
            "in the block on the diagonal a query still sees later keys, and some that are not there",
        ),
        Wrong("the mask of the rung before", _without_diagonal, "in the block on the diagonal a query still sees later keys"),
        Wrong(
            "the block on the diagonal in the loop too",
            _diagonal_twice,
            "the loop takes the block on the diagonal too, without a mask, so that it counts twice: the last `start` must be below `first`",
        ),
        Wrong("no block on the diagonal", _without_edge, "the block on the diagonal is missing: the first 16 queries have seen no key"),
        Wrong(
            "its own key hidden",
            _own_key_hidden,
            "query i sees its own key too: the mask is j <= i, not j < i",
        ),
        Wrong("the mask turned round", _turned_round, "query i sees the keys up to its own, j <= i; yours sees those from its own on"),
        Wrong("only the first tile of queries", partial(_first_queries, _causal), FORWARD[-1].hint),
    ],
    hints="""
        The tile of queries begins at `first`. With which key does the block on the diagonal begin?
        The loop is `range(0, first, B)`. On the diagonal the keys have the numbers of the queries, so `i` numbers both.
        `tl.where(i[None, :] <= i[:, None], s, float("-inf"))` hides what is too late, and also what is not there.
    """,
    why=r"Rows past the end see keys past the end, and are not stored. For a row that is there $j \le i$ leaves no key past the end.",
    solution="""
        @triton.jit
        def causal(query, key, value, out, n, scale, D: tl.constexpr, B: tl.constexpr):
            first = tl.program_id(0) * B
            i = first + tl.arange(0, B)
            q = load_rows(query, i, n, D)
            m = tl.full([B, 1], float("-inf"), tl.float32)
            row_sum = tl.zeros([B, 1], tl.float32)
            acc = tl.zeros([B, D], tl.float32)
            ### BEGIN SOLUTION
            for start in range(0, first, B):
                j = start + tl.arange(0, B)
                k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
                s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
                m, row_sum, acc = update(m, row_sum, acc, s, v)
            k, v = load_rows(key, i, n, D), load_rows(value, i, n, D)
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            s = tl.where(i[None, :] <= i[:, None], s, float("-inf"))
            m, row_sum, acc = update(m, row_sum, acc, s, v)
            ### END SOLUTION
            store_rows(out, i, n, acc / row_sum, D)


        def my_causal(query, key, value):
            n, d = query.shape
            out = torch.full((n, d), torch.nan, device=device)
            arrays = [torch.as_tensor(each, dtype=torch.float32, device=device) for each in (query, key, value)]
            causal[(triton.cdiv(n, 16),)](*arrays, out, n, d**-0.5, D=d, B=16)
            return out
    """,
)


def _row_softmax(x: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(x))


def _as_handed_out(x: np.ndarray) -> np.ndarray:
    """Shares of a row of which the padding counts as zeros."""
    rest = -x.shape[1] % 64
    return np.asarray(softmax(np.pad(x, ((0, 0), (0, rest))))[:, : x.shape[1]])


my_softmax = rung(
    "repair-row-softmax",
    "A mask to repair",
    entry="my_softmax",
    minutes=3,
    asks="""
        The kernel is to return the softmax of each row of `x` $(r, n)$, where $n$ is at most 64. One program takes a whole row, padded to
        64. Numbers may be as low as $-300$ {lowest}`-300`. It has two mistakes, and both concern what a mask leaves out.
        Repair it as `my_softmax(x)`.
    """,
    difficulty=2,
    trains="finding a mask that is missing",
    cases=lambda rng: [
        *table((2, 37), (1, 64), (3, 1), shift=-4.0)(rng),
        Case("near -299", x=rng.normal(size=(3, 21)).clip(-3, 3) / 4 - 299.0),
    ],
    judged_by=_row_softmax,
    slips=[
        Wrong("no other at the load", lambda x: np.where(x.shape[1] % 64, np.nan, _row_softmax(x)), NO_OTHER),
        Wrong("the padding counted", _as_handed_out, "the shares of a row sum to less than 1: the padding counts with e^0"),
        Wrong("only the first row", partial(first_row, _row_softmax), ONE_PROGRAM),
        Wrong("not divided", lambda x: np.exp(x - x.max(axis=1, keepdims=True)), "the terms are still to be divided by their sum"),
        Wrong("the log-softmax", lambda x: x - logsumexp(x)[:, None], "these are the logarithms of the shares"),
    ],
    hints="""
        The check says where numbers are stored that should not be, or that shares are too small. What does the padding hold?
        A softmax has a maximum and a sum. Which number in the place of nothing changes neither?
        Load with `other=float("-inf")`, and give the store the mask of the load.
    """,
    why=r"""
        The exponential of $-\infty$ is 0, so the padding changes neither the maximum nor the sum. A store without a mask writes into the
        next row.
    """,
    solution="""
        @triton.jit
        def row_softmax(x, out, n, B: tl.constexpr):
            ### BEGIN SOLUTION
            row, j = tl.program_id(0), tl.arange(0, B)
            s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
            p = tl.exp(s - tl.max(s, 0))
            tl.store(out + row * n + j, p / tl.sum(p, 0), mask=j < n)
            ### END SOLUTION


        def my_softmax(x):
            x = torch.as_tensor(x, dtype=torch.float32, device=device)
            out = torch.full(x.shape, torch.nan, device=device)
            row_softmax[(len(x),)](x, out, x.shape[1], B=64)
            return out
    """,
)
