"""Kernels that are asked and marked: the log-sum-exp of rows, and the keys of one query in parts."""

import math
from typing import Any

import numpy as np

from attn_course.reference import attention, logsumexp, scaled_dot_scores
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked_cell
from attn_course.tasks.core import Case, Wrong

BLOCK = 16


def _padded(scores: np.ndarray, fill: float) -> np.ndarray:
    columns = -scores.shape[1] % BLOCK
    return np.concatenate([scores, np.full((len(scores), columns), fill)], axis=1)


def _without_rescale(scores: np.ndarray) -> np.ndarray:
    """The sum keeps each block's share from the maximum of its time."""
    m, row_sum = np.full(len(scores), -np.inf), np.zeros(len(scores))
    for start in range(0, scores.shape[1], BLOCK):
        block = scores[:, start : start + BLOCK]
        m = np.maximum(m, block.max(axis=1))
        row_sum = row_sum + np.exp(block - m[:, None]).sum(axis=1)
    return m + np.log(row_sum)


def _full_blocks(scores: np.ndarray) -> np.ndarray:
    kept = scores[:, : scores.shape[1] // BLOCK * BLOCK]
    return logsumexp(kept) if kept.shape[1] else np.full(len(scores), -np.inf)


def _from_zero(scores: np.ndarray) -> np.ndarray:
    top = np.maximum(scores.max(axis=1), 0.0)
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1))


def _sum_of_last_block(scores: np.ndarray) -> np.ndarray:
    return logsumexp(scores[:, (scores.shape[1] - 1) // BLOCK * BLOCK :])


my_row_lse = asked_cell(
    "row-lse-kernel",
    "A first kernel of your own",
    kind="write",
    entry="my_row_lse",
    asks=r"""
        The log-sum-exp of each row, block by block. One program takes one row of `scores`, goes through its columns in blocks
        of 16, keeps a running maximum and a running sum, and stores $m + \ln \ell$, {eq}`row-lse-and-output`. The number of columns need
        not be a multiple of 16, and may be smaller {case}`fewer columns than a block`. Scores lie between $-300$ and 300 {lowest}`-300`.

        Two gaps: the body of the kernel, and the launch (one program for each row). `my_row_lse` gets an array `(n_rows,
        n_columns)` and returns the float32 tensor `lse`, filled with NaN at first: an entry nobody writes is seen. What float32
        rounds off is fine.
    """,
    equation="row-lse-and-output",
    points=4,
    difficulty=4,
    minutes=25,
    trains="a Triton program: rows, blocks, tails",
    tolerance=1e-7,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.EXPONENTIALS, forbidden.KERNEL_LAUNCHED),
    cases=lambda rng: [
        Case("three full blocks", scores=rng.normal(size=(5, 48)) - 2.0),
        Case("two blocks and a tail", scores=rng.normal(size=(3, 37)) - 4.0),
        Case("fewer columns than a block", scores=rng.normal(size=(7, 5)) - 3.0),
        Case("rising scores, up to 300", scores=np.sort(rng.uniform(-60.0, 299.0, size=(2, 67)), axis=1)),
        Case("falling scores, down to -300", scores=-np.sort(60.0 * rng.normal(size=(3, 35)).clip(-3.0, 3.0) + 120.0, axis=1)),
        Case("scores near -299", scores=rng.normal(size=(5, 21)).clip(-3, 3) / 4 - 299.0),
        Case("one row", scores=rng.normal(size=(1, 19)) - 3.0),
        Case("one score a row", scores=rng.normal(size=(3, 1)) - 1.0),
    ],
    slips=[
        Wrong(
            "the tail read as 0",
            lambda s: logsumexp(_padded(s, 0.0)),
            "columns past the end count as scores of 0; load them with other=-inf",
        ),
        Wrong(
            "no other at the load",
            lambda s: np.where(s.shape[1] % BLOCK, np.nan, logsumexp(s)),
            "what a load without `other` brings where its mask leaves a number out may be anything; the check makes it infinity",
        ),
        Wrong(
            "the last block dropped when it is not full",
            _full_blocks,
            "the loop must also run for a block that is not full: range(0, n, BLOCK)",
        ),
        Wrong("the sum not rescaled", _without_rescale, "when the maximum grows, the old sum shrinks by exp(old - new)"),
        Wrong(
            "no maximum",
            lambda s: np.log(np.exp(s.astype(np.float32)).sum(axis=1)),
            "exp overflows in float32 near 88.7: subtract the running maximum",
        ),
        Wrong(
            "a maximum that starts at 0",
            lambda s: _from_zero(s.astype(np.float32)),
            "below -104 every exp(s - 0) is 0 in float32: before the first block the maximum is -inf",
        ),
        Wrong(
            "only the first row written",
            lambda s: np.where(np.arange(len(s)) == 0, logsumexp(s), np.nan),
            "the first row is right and the others are no numbers: does one program run for each row, and does it store at lse_ptr + row?",
        ),
        Wrong("the maximum returned", lambda s: s.max(axis=1), "the maximum is only the first part of m + ln(l)"),
        Wrong("the logarithm of the sum alone", lambda s: logsumexp(s) - s.max(axis=1), "ln(l) is measured from the maximum: add m again"),
        Wrong(
            "a logarithm to base 2",
            lambda s: s.max(axis=1) + (logsumexp(s) - s.max(axis=1)) / math.log(2.0),
            "the sum is of powers of e, so its logarithm is natural: tl.log, not tl.log2",
        ),
        Wrong("only the last block", _sum_of_last_block, "maximum and sum must live through the loop: you start afresh in every block"),
        Wrong(
            "one number for all rows",
            lambda s: np.full(len(s), logsumexp(s[0])),
            "each program reads its own row: the start is row * n_columns",
        ),
    ],
    hints="""
        One program, one row. What do `row_max` and `row_sum` hold before the loop, and what does one block change?
        `columns = start + tl.arange(0, BLOCK)`; the load needs `mask=columns < n_columns, other=float('-inf')`; the grid is
            `(n_rows,)`.
        new_max = tl.maximum(row_max, tl.max(x, 0)); row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), 0).
    """,
    why=r"""
        The pointer plus `row * n_columns` is where the row begins. The mask keeps the load inside the row, and what
        it does not read counts as $-\infty$, whose exponential is 0. The loop carries two numbers; `tl.log` is the natural
        logarithm.
    """,
    judged_by=logsumexp,
    solution='''
        import triton
        import triton.language as tl


        @triton.jit
        def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
            """One program: one row of scores (n_rows, n_columns), contiguous float32 -> one
            entry of lse."""
            ### BEGIN SOLUTION
            row = tl.program_id(0)
            row_max = float("-inf")
            row_sum = 0.0
            for start in range(0, n_columns, BLOCK):
                columns = start + tl.arange(0, BLOCK)
                block = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
                new_max = tl.maximum(row_max, tl.max(block, 0))
                row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(block - new_max), 0)
                row_max = new_max
            tl.store(lse_ptr + row, row_max + tl.log(row_sum))
            ### END SOLUTION


        def my_row_lse(scores):
            """(n_rows, n_columns) -> (n_rows,) float32, by the kernel."""
            device = "cuda" if torch.cuda.is_available() else "cpu"
            scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
            lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
            ### BEGIN SOLUTION
            row_lse[(len(scores),)](scores, lse, scores.shape[1], BLOCK=16)
            ### END SOLUTION
            return lse
    ''',
)


def _parts(query: np.ndarray, key: np.ndarray, value: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    found = [attention(query[None], key[i : i + size], value[i : i + size], return_lse=True) for i in range(0, len(key), size)]
    return np.concatenate([output for output, _ in found]), np.concatenate([lse for _, lse in found])


def _part_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for n, d, size in ((37, 16, 18), (5, 32, 2), (17, 16, 17), (1, 16, 1)):
        arrays = {"query": rng.normal(size=d), "key": 2 * rng.normal(size=(n, d)), "value": rng.normal(size=(n, d))}
        cases.append(Case(f"{n} keys, {size} a part", **arrays, size=size))
    low = {"query": 1 + rng.normal(size=16) / 256, "key": rng.normal(size=(20, 16)) / 16 - 79.6, "value": rng.normal(size=(20, 16))}
    cases.append(Case("scores near -318", **low, size=10))
    for name, end in (("scores that rise from block to block", 8.0), ("scores that fall by 150", -150.0)):
        towards = {"query": np.ones(16), "key": np.linspace(0, end, 45)[:, None] / 4 + rng.normal(size=(45, 16)) / 8}
        cases.append(Case(name, **towards, value=rng.normal(size=(45, 16)), size=40))
    return cases


def _padded_parts(query: np.ndarray, key: np.ndarray, value: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Each part with zeros behind it, up to a full block."""
    found = []
    for i in range(0, len(key), size):
        rest = ((0, -len(key[i : i + size]) % BLOCK), (0, 0))
        found.append(attention(query[None], np.pad(key[i : i + size], rest), np.pad(value[i : i + size], rest), return_lse=True))
    return np.concatenate([output for output, _ in found]), np.concatenate([lse for _, lse in found])


def _unrescaled(query: np.ndarray, key: np.ndarray, value: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Each block adds to the accumulator what it is worth beside its own largest score so far."""
    outputs, lses = _parts(query, key, value, size)
    scores, found = scaled_dot_scores(query[None], key)[0], np.zeros_like(outputs)
    for part, (first, lse) in enumerate(zip(range(0, len(key), size), lses, strict=True)):
        last = min(first + size, len(key))
        for start in range(first, last, BLOCK):
            block = slice(start, min(start + BLOCK, last))
            found[part] += np.exp(scores[block] - scores[first : block.stop].max()) @ value[block]
        found[part] /= np.exp(lse - scores[first:last].max())
    return found, lses


def _tops(query: np.ndarray, key: np.ndarray, value: np.ndarray, size: int) -> np.ndarray:
    return np.array([scaled_dot_scores(query[None], key[i : i + size]).max() for i in range(0, len(key), size)])


def _undivided(*given: Any) -> tuple[np.ndarray, np.ndarray]:
    outputs, lses = _parts(*given)
    return outputs * np.exp(lses - _tops(*given))[:, None], lses


my_parts = asked_cell(
    "split-keys-kernel",
    "The keys of one query, split",
    kind="write",
    entry="my_parts",
    asks=r"""
        The first half of Flash-Decoding. One query has $n$ keys, which are cut into parts of `size` keys; the last part may have fewer
        {case}`37 keys, 18 a part`. No score is below $-320$ {lowest}`-320`. One
        program takes one part, and stores its output $z^{(c)}$ and its log-sum-exp $L^{(c)}$, {eq}`row-lse-and-output`. It goes through the
        part in blocks of 16 keys, and a part may end inside a block {case}`37 keys, 18 a part`.

        Two gaps: the body of the kernel, and the launch. `my_parts(query, key, value, size)` gets `query` $(d,)$, `key` and `value`
        $(n, d)$, where $d$ is a power of 2, and a whole number. For $p$ parts it returns the tensors `(outputs, lses)` of shapes $(p, d)$
        and $(p,)$.
    """,
    equation="merge-of-finished-outputs",
    points=4,
    difficulty=4,
    minutes=20,
    trains="a loop that ends inside a block",
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.EXPONENTIALS, forbidden.KERNEL_LAUNCHED),
    cases=_part_cases,
    judged_by=_parts,
    slips=[
        Wrong("the end of a part ignored", _padded_parts, "a part ends inside a block: behind its last key all scores are -inf"),
        Wrong("the accumulator not rescaled", _unrescaled, "when the maximum grows, exp(m - new) makes what was added before smaller too"),
        Wrong("not divided", _undivided, "log-sum-exps are right; each part must divide its accumulator by its sum"),
        Wrong(
            "no scale",
            lambda query, key, value, size: _parts(query * math.sqrt(len(query)), key, value, size),
            "the scores lack the scale 1 / sqrt(d)",
        ),
        Wrong(
            "only the first part",
            lambda *given: tuple(np.where((np.arange(len(x)) == 0).reshape(-1, *[1] * (x.ndim - 1)), x, np.nan) for x in _parts(*given)),
            "the first part is right and the others are NaN: the grid has one program for each part",
        ),
        Wrong(
            "the maximum for the log-sum-exp",
            lambda *given: (_parts(*given)[0], _tops(*given)),
            "the outputs are right; L is m + ln(l)",
        ),
    ],
    hints="""
        With one query no product of tiles is needed. What is the score of a block of keys, as a sum over features?
        The part of program c ends at `tl.minimum((c + 1) * size, n)`, and so does the mask of every load.
        `s = tl.sum(k * q[None, :], 1) * scale`, then the state of the row, and `a = a * factor + tl.sum(p[:, None] * v, 0)`.
    """,
    why=r"""
        Each part is a whole attention over its own keys. The other half is {task}`merge-decoding-splits`, which puts the parts together.
    """,
    solution='''
        import triton
        import triton.language as tl


        @triton.jit
        def attend_part(query, key, value, outputs, lses, n, size, scale, D: tl.constexpr, BLOCK: tl.constexpr):
            """One program: one part of size keys (n, D) of a query (D,), contiguous float32 -> one
            row of outputs and one entry of lses."""
            ### BEGIN SOLUTION
            part, d = tl.program_id(0), tl.arange(0, D)
            stop = tl.minimum((part + 1) * size, n)
            q = tl.load(query + d)
            m, l, a = float("-inf"), 0.0, tl.zeros([D], tl.float32)
            for start in range(part * size, stop, BLOCK):
                j = start + tl.arange(0, BLOCK)
                k = tl.load(key + j[:, None] * D + d[None, :], mask=j[:, None] < stop, other=0.0)
                v = tl.load(value + j[:, None] * D + d[None, :], mask=j[:, None] < stop, other=0.0)
                s = tl.where(j < stop, tl.sum(k * q[None, :], 1) * scale, float("-inf"))
                new = tl.maximum(m, tl.max(s, 0))
                factor, p = tl.exp(m - new), tl.exp(s - new)
                l = l * factor + tl.sum(p, 0)
                a = a * factor + tl.sum(p[:, None] * v, 0)
                m = new
            tl.store(outputs + part * D + d, a / l)
            tl.store(lses + part, m + tl.log(l))
            ### END SOLUTION


        def my_parts(query, key, value, size):
            """(d,), (n, d), (n, d), int -> (p, d) and (p,) float32, by the kernel."""
            device = "cuda" if torch.cuda.is_available() else "cpu"
            query, key, value = (torch.as_tensor(x, dtype=torch.float32, device=device).contiguous() for x in (query, key, value))
            n, d = key.shape
            parts = triton.cdiv(n, size)
            outputs = torch.full((parts, d), torch.nan, dtype=torch.float32, device=device)
            lses = torch.full((parts,), torch.nan, dtype=torch.float32, device=device)
            ### BEGIN SOLUTION
            attend_part[(parts,)](query, key, value, outputs, lses, n, size, d**-0.5, D=d, BLOCK=16)
            ### END SOLUTION
            return outputs, lses
    ''',
)
