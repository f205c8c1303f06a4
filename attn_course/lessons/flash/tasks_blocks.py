"""Tasks on softmax over blocks: merging states, streaming over keys, a loop to repair."""

import math

import numpy as np

from attn_course.reference import attention
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked
from attn_course.tasks.core import Case

State = tuple[np.ndarray, np.ndarray, np.ndarray]


def _state(rng: np.random.Generator, rows: int, d_v: int, spread: float, empty: tuple[int, ...] = ()) -> State:
    m, row_sum, acc = spread * rng.normal(size=rows), rng.uniform(1.0, 4.0, size=rows), rng.normal(size=(rows, d_v))
    for row in empty:
        m[row], row_sum[row], acc[row] = -np.inf, 0.0, 0.0
    return m, row_sum, acc


def _far_states(rng: np.random.Generator, reach: float, middle: float = 0.0) -> tuple[State, State]:
    """Two states of which now the first, now the second has the larger maximum, by up to twice this reach."""
    first, second = _state(rng, 7, 2, reach / 9), _state(rng, 7, 2, reach / 9)
    rising = np.linspace(-reach, reach, 7)
    return (first[0] + middle + rising, *first[1:]), (second[0] + middle - rising, *second[1:])


def _two_states(name: str, first: State, second: State) -> Case:
    return Case(name, **dict(zip(("m_a", "l_a", "a_a", "m_b", "l_b", "a_b"), (*first, *second), strict=True)))


@asked(
    "merge-two-states",
    "Merge two states",
    kind="write",
    equation="merge-of-attention-states",
    points=2,
    difficulty=2,
    minutes=10,
    trains="one reference for two blocks",
    cases=lambda rng: [
        _two_states("maxima near each other", _state(rng, 5, 3, 1.0), _state(rng, 5, 3, 1.0)),
        _two_states("maxima hundreds apart", *_far_states(rng, 450.0, 500.0)),
        _two_states("maxima some ten apart", *_far_states(rng, 6.0)),
        _two_states("rows that have seen nothing", _state(rng, 5, 2, 1.0, (0, 3)), _state(rng, 5, 2, 1.0, (1, 3))),
        _two_states("one row", _state(rng, 1, 3, 2.0), _state(rng, 1, 3, 2.0)),
        _two_states("no key on either side", *(_state(rng, 3, 5, 1.0, (0, 1, 2)) for _ in range(2))),
    ],
    slips="""
        the accumulator not rescaled
            factor_a[:, None] * a_a + factor_b[:, None] * a_b -> a_a + a_b
            maximum and sum are right; the accumulator is measured from the same maximum as the sum and needs the same factor
        the sum not rescaled
            factor_a * l_a + factor_b * l_b -> l_a + l_b
            maximum and accumulator are right; each sum is measured from its own maximum and must be moved to the common one
        nothing rescaled
            factor_a * l_a + factor_b * l_b, factor_a[:, None] * a_a + factor_b[:, None] * a_b -> l_a + l_b, a_a + a_b
            sums from different maxima cannot be added
        the exponent upside down
            np.exp(m_a - shift), np.exp(m_b - shift) -> np.exp(shift - m_a), np.exp(shift - m_b)
            the factor is exp(m_A - m), never above 1; yours grows with the distance
        factors exchanged
            factor_a, factor_b = -> factor_b, factor_a =
            the factor of A is made from the maximum of A; you gave each block that of the other
        no care for rows without keys
            np.where(np.isneginf(m), 0.0, m) -> m
            -inf - (-inf) is NaN: a row that neither side has seen stays (-inf, 0, 0)
        divided by the sum
                return m, factor_a * l_a + factor_b * l_b, factor_a[:, None] * a_a + factor_b[:, None] * a_b
                ->
                total = factor_a * l_a + factor_b * l_b
                acc = factor_a[:, None] * a_a + factor_b[:, None] * a_b
                return m, total, acc / np.where(total == 0.0, 1.0, total)[:, None]
            the accumulator stays unnormalised, else the result could not be merged again
        a maximum that is never below 0
            np.maximum(m_a, m_b) -> np.maximum(np.maximum(m_a, m_b), 0.0)
            the maximum of both blocks is the larger of the two, whatever its sign: 0 is none of the scores
        one maximum for all queries
            np.maximum(m_a, m_b) -> np.full_like(m_a, max(m_a.max(), m_b.max()))
            each query has a maximum of its own: compare `m_a` and `m_b` entry by entry
    """,
    hints="""
        Which of the two maxima becomes the common one, row by row? What does a sum measured from another maximum need?
        The factors exp(m_A - m) and exp(m_B - m) apply to sum and accumulator alike. Where is the exponent -inf - (-inf)?
        shift = np.where(np.isneginf(m), 0.0, m); then np.exp(m_a - shift) is 0 for a row without keys.
    """,
    why=r"""
        Both sums are moved to the larger maximum, so no exponent is positive. Where both maxima are $-\infty$ we
        subtract 0 instead, and $e^{-\infty} = 0$ does the rest.
    """,
)
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    r"""Two states (n,), (n,), (n, d_v) -> the state of both blocks, {eq}`merge-of-attention-states`.

    Two programs saw disjoint blocks of keys, A and B, for the same $n$ queries. Each kept, measured from its maximum $m$
    `(n,)`: the sum $\ell$ `(n,)` of $e^{s - m}$ and the accumulator $a$ `(n, d_v)`, the same sum times values. Write
    `my_merge(m_a, l_a, a_a, m_b, l_b, a_b)`, which returns the state of both blocks as the tuple `(m, l, a)`,
    {eq}`merge-of-attention-states`,
    not divided.

    Maxima may lie hundreds apart
    {case}`maxima hundreds apart`. A query that saw no key on one side
    {case}`rows that have seen nothing` has $(-\infty, 0, 0)$ there; if on both sides, so
    is the result, without NaN.
    """
    m = np.maximum(m_a, m_b)
    shift = np.where(np.isneginf(m), 0.0, m)  # never -inf - -inf
    factor_a, factor_b = np.exp(m_a - shift), np.exp(m_b - shift)
    return m, factor_a * l_a + factor_b * l_b, factor_a[:, None] * a_a + factor_b[:, None] * a_b


def _blocks(rng: np.random.Generator, name: str, q_len: int, sizes: tuple[int, ...], d_k: int, d_v: int, spread: float = 1.0) -> Case:
    keys, values = ([rng.normal(size=(size, width)) for size in sizes] for width in (d_k, d_v))
    return Case(name, query=spread * rng.normal(size=(q_len, d_k)), key_blocks=keys, value_blocks=values)


def _slope(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys whose scores rise from -largest to largest, or fall, or (row 2) stay small."""
    key = rng.normal(size=(kv_len, d_k))
    key[:, 0] = np.linspace(-1.0, 1.0, kv_len)
    query = rng.normal(size=(q_len, d_k))
    query[:, 0] = [(1.0, -1.0, 0.0)[row % 3] * largest * math.sqrt(d_k) for row in range(q_len)]
    return query, key


def _sloping_blocks(rng: np.random.Generator, name: str, sizes: tuple[int, ...]) -> Case:
    query, key = _slope(rng, 5, sum(sizes), 3, 900.0)
    keys = [block.copy() for block in np.split(key, np.cumsum(sizes)[:-1])]
    return Case(name, query=query, key_blocks=keys, value_blocks=[rng.normal(size=(size, 2)) for size in sizes])


def _set_to_bounds(query: np.ndarray, keys: list[np.ndarray]) -> None:
    """Give all keys one score, 20 000 or -20 000 by turns from query to query; all have 4 features, so that the scale is 1/2."""
    query[...] = np.where(np.arange(len(query)) % 2, 200.0, -200.0)[:, None] * np.array([1.0, 0.0, 0.0, 0.0])
    for key in keys:
        key[:, 0] = 200.0


def _at_the_bounds(rng: np.random.Generator) -> Case:
    case = _blocks(rng, "all scores of a query -20 000 or 20 000", 3, (3, 2, 5), 4, 7)
    _set_to_bounds(case.inputs["query"], case.inputs["key_blocks"])
    return case


def _low_and_high(rng: np.random.Generator) -> Case:
    """Queries of which some have all their scores near -900, and the others near 900."""
    case = _blocks(rng, "all scores of a query near -900 or near 900", 4, (3, 2), 2, 5)
    for key in case.inputs["key_blocks"]:
        key[:, 0] = 1.0
    case.inputs["query"][:, 0] = math.sqrt(2.0) * np.array([-900.0, 900.0, -900.0, 900.0])
    return case


def _exact(query, key_blocks, value_blocks):
    return attention(query, np.concatenate(key_blocks), np.concatenate(value_blocks), return_lse=True)


@asked(
    "streamed-attention",
    "Attention from a stream",
    kind="write",
    equation="tiled-attention-update",
    points=3,
    difficulty=3,
    minutes=15,
    trains="the forward pass in tiles",
    judged_by=_exact,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX, forbidden.JOINING),
    cases=lambda rng: [
        _blocks(rng, "blocks of 4, 4 and 3", 5, (4, 4, 3), 7, 2),
        _blocks(rng, "one block", 3, (5,), 2, 7),
        _blocks(rng, "a last block of one key", 7, (3, 3, 3, 1), 5, 2),
        _blocks(rng, "scores of several hundred", 2, (5, 5, 4), 3, 7, 300.0),
        _sloping_blocks(rng, "scores that rise or fall by 1800", (3, 2, 4, 2)),
        _low_and_high(rng),
        _blocks(rng, "one query, values of one feature", 1, (2, 3), 5, 1),
        _at_the_bounds(rng),
    ],
    slips="""
        the accumulator not rescaled
            rescale[:, None] * acc -> acc
            when the maximum grows, what the accumulator holds shrinks by the same factor as the sum, {eq}`tiled-attention-update`
        the sum not rescaled
            rescale * row_sum -> row_sum
            the accumulator is rescaled, the sum is not: both are measured from the running maximum
        outputs accumulated instead of values
            acc + p @ value -> acc + p / p.sum(axis=1, keepdims=True) @ value
            add exp(S - m) V, not the finished output of the block: the division by the sum comes once, after the last block
        no scale
            ` / np.sqrt(query.shape[1])` ->
            the scores are divided by the root of d_k
        the sum returned instead of its logarithm
            row_max + np.log(row_sum) -> row_sum
            the output is right; the second result is L = m + ln(l), {eq}`row-lse-and-output`, not the sum alone
        the last block dropped
            zip(key_blocks, value_blocks, strict=True) -> list(zip(key_blocks, value_blocks))[: max(len(key_blocks) - 1, 1)]
            the last block counts too, however short it is
        the maximum of the first block kept
            np.maximum(row_max, scores.max(axis=1)) -> np.where(np.isneginf(row_max), scores.max(axis=1), row_max)
            a later block may hold much larger scores, and then exp(S - m) overflows: the maximum must follow
        one maximum for all queries
            scores.max(axis=1)) -> scores.max(axis=1)).max() + np.zeros(len(query))
            each query has a maximum of its own: where all its scores lie far below that of another, every exponential becomes 0
        the maximum begins at 0
            np.full(len(query), -np.inf) -> np.zeros(len(query))
            scores may all lie far below 0, and then every exponential becomes 0: before the first block the maximum is -inf
        the mean of the blocks
                acc = rescale[:, None] * acc + p @ value
                ->
                own = np.exp(scores - scores.max(axis=1, keepdims=True))
                    acc = acc + own / own.sum(axis=1, keepdims=True) @ value
                ;;
                acc / row_sum[:, None] -> acc / len(key_blocks)
            blocks do not weigh the same: one that holds larger scores has more to say
        the maximum missing from the log-sum-exp
            row_max + np.log(row_sum) -> np.log(row_sum)
            the sum is measured from the maximum: add it again behind the logarithm
    """,
    hints="""
        Keep three things for each query: a maximum, a sum, and an accumulator of d_v numbers. What are they before the first block?
        For each block: scores, new maximum, the factor exp(m - m'), then sum and accumulator. Divide after the loop.
        acc = factor[:, None] * acc + np.exp(S - new[:, None]) @ V, and lse = m + np.log(row_sum) at the end.
    """,
    why=r"""
        At the start the maximum is $-\infty$, so the first factor is $e^{-\infty} = 0$: no special case. The
        division comes once, at the end.
    """,
)
def my_stream(query, key_blocks, value_blocks):
    r"""(q_len, d_k) and lists of (n, d_k), (n, d_v) -> output (q_len, d_v), lse
    (q_len,).

    Keys and values arrive as a stream: `key_blocks` is a list of arrays `(n_c, d_k)`, `value_blocks` of `(n_c, d_v)`, with $n_c \ge 1$;
    blocks differ in length
    {case}`blocks of 4, 4 and 3`. Write `my_stream(query, key_blocks, value_blocks)` for `query` `(q_len, d_k)`. It goes through the blocks
    once, keeps the state of {eq}`tiled-attention-update`, and returns the tuple `(output, lse)` of shapes `(q_len, d_v)` and `(q_len,)`,
    {eq}`row-lse-and-output`, natural logarithm.

    Scores lie between -20 000 and 20 000, in any order {case}`scores that rise or fall by 1800` {lowest}`-20000`.
    """
    row_max = np.full(len(query), -np.inf)
    row_sum = np.zeros(len(query))
    acc = np.zeros((len(query), value_blocks[0].shape[1]))
    for key, value in zip(key_blocks, value_blocks, strict=True):
        scores = query @ key.T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1))
        rescale, p = np.exp(row_max - new_max), np.exp(scores - new_max[:, None])
        row_sum = rescale * row_sum + p.sum(axis=1)
        acc = rescale[:, None] * acc + p @ value
        row_max = new_max
    return acc / row_sum[:, None], row_max + np.log(row_sum)


def _loop_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, q_len, kv_len, d_k, d_v, block, spread in (
        ("eleven keys in blocks of four", 5, 11, 7, 3, 4, 1.0),
        ("ten keys in blocks of five", 7, 10, 3, 2, 5, 1.0),
        ("large scores, blocks of two", 3, 7, 5, 2, 2, 300.0),
        ("blocks of one key", 2, 5, 3, 7, 1, 3.0),
        ("one query", 1, 7, 5, 3, 3, 1.0),
        ("scores near -1400", 3, 7, 2, 5, 2, 1.0),
        ("one block", 3, 5, 7, 2, 5, 1.0),
        ("all scores of a query -20 000 or 20 000", 3, 7, 4, 5, 2, 1.0),
    ):
        shapes = {"query": (q_len, d_k), "key": (kv_len, d_k), "value": (kv_len, d_v)}
        arrays = {key: rng.normal(size=shape) for key, shape in shapes.items()}
        arrays["query"] *= spread
        if name == "scores near -1400":
            arrays["query"][:, 0], arrays["key"][:, 0] = 100.0, -14.0 * math.sqrt(d_k)
        if name == "all scores of a query -20 000 or 20 000":
            _set_to_bounds(arrays["query"], [arrays["key"]])
        cases.append(Case(name, **arrays, block=block))
    query, key = _slope(rng, 5, 13, 3, 900.0)
    return [*cases, Case("scores that rise or fall by 1800", query=query, key=key, value=rng.normal(size=(13, 2)), block=3)]


@asked(
    "repair-tiled-loop",
    "Repair a tiled loop",
    kind="repair",
    equation="tiled-attention-update",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the two classic faults of a first kernel",
    judged_by=lambda query, key, value, block: attention(query, key, value),
    broken="""
        for start in range(0, len(key), block):
            tile = slice(start, start + block)
        ->
        for step in range(len(key) // block):
            tile = slice(step * block, (step + 1) * block)
        ;;
            rescale = np.exp(row_max - new_max)
            row_sum = row_sum * rescale + p.sum(axis=1, keepdims=True)
            acc = acc * rescale + p @ value[tile]
        ->
            row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
            acc = acc + p @ value[tile]
    """,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=_loop_cases,
    slips="""
        only the last block mended
            acc * rescale -> acc
            all keys count now. But the sum shrinks when the maximum grows, and the accumulator does not
        only the rescale mended
            range(0, len(key), block) -> range(0, len(key) // block * block, block)
            the accumulator is right now. But 11 keys in blocks of 4 are three blocks, and `//` makes two of them
        padded with zeros
                row_max = np.full(
                ->
                missing = -len(key) % block
                key, value = (np.concatenate([x, np.zeros((missing, x.shape[1]))]) for x in (key, value))
                row_max = np.full(
            keys that do not exist have the score 0 in your loop, and e^0 is not nothing: their scores must be -inf, or absent
        the sum no longer rescaled
            row_sum * rescale -> row_sum
            now the accumulator is rescaled and the sum is not: both need the factor
        nothing rescaled
            row_sum * rescale -> row_sum ;; acc * rescale -> acc
            leaving the factor out everywhere does not cancel: every block would keep the maximum of its own time
        the maximum of the first block kept
                np.maximum(row_max, scores.max(axis=1, keepdims=True))
                ->
                np.where(np.isneginf(row_max), scores.max(axis=1, keepdims=True), row_max)
            without a maximum that follows, a later block with much larger scores overflows
        blocks normalised one by one
            rescale + p @ -> rescale + p / p.sum(axis=1, keepdims=True) @
            divide once, after the loop: a block alone does not know the sum of its row
    """,
    hints="""
        Try 11 keys in blocks of 4: how often does the loop run? Then try two blocks, the second with the larger scores.
        Everything measured from the old maximum needs the factor `np.exp(row_max - new_max)`. What is measured from it?
        `range(0, len(key), block)` with `slice(start, start + block)`, and `acc * np.exp(row_max - new_max) + p @ value[tile]`.
    """,
    why="""
        (1) The accumulator is measured from the running maximum, like the sum, and needs the same factor. (2)
        `len(key) // block` rounds down and loses the last keys. If the largest score stands in the first block, (1) does no
        harm at all: test with a maximum that grows.
    """,
)
def tiled_attention(query, key, value, block):
    """Attention over blocks of keys: (q_len, d_k), (kv_len, d_k), (kv_len, d_v),
    block -> (q_len, d_v).

    The function below should compute attention over blocks of keys: `query` `(q_len, d_k)`, `key` `(kv_len, d_k)`,
    `value` `(kv_len, d_v)`, and `block`, a whole number that need not divide `kv_len` and is at most `kv_len`
    {case}`eleven keys in blocks of four`. The result
    has shape `(q_len, d_v)`; scores lie between -20 000 and 20 000 {lowest}`-20000`. It is wrong in two places, and a test with one block
    does not notice. Repair it.
    """
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        rescale = np.exp(row_max - new_max)
        row_sum = row_sum * rescale + p.sum(axis=1, keepdims=True)
        acc = acc * rescale + p @ value[tile]
        row_max = new_max
    return acc / row_sum
