"""Tasks on softmax over blocks: merging states, streaming over keys, a loop to repair; tasks.py lists them."""

import math
from typing import Any

import numpy as np

from attn_course.reference import attention
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong

State = tuple[np.ndarray, np.ndarray, np.ndarray]
Result = tuple[np.ndarray, np.ndarray]


# ---- 12.1 merge two states


def _factor(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """exp(old - new), and 0 for a state that has seen nothing."""
    return np.where(np.isneginf(old), 0.0, np.exp(old - np.where(np.isneginf(new), 0.0, new)))


def _merge(m_a: np.ndarray, l_a: np.ndarray, a_a: np.ndarray, m_b: np.ndarray, l_b: np.ndarray, a_b: np.ndarray) -> State:
    m = np.maximum(m_a, m_b)
    first, second = _factor(m_a, m), _factor(m_b, m)
    return m, first * l_a + second * l_b, first[:, None] * a_a + second[:, None] * a_b


def _merge_without_care(m_a: np.ndarray, l_a: np.ndarray, a_a: np.ndarray, m_b: np.ndarray, l_b: np.ndarray, a_b: np.ndarray) -> State:
    m = np.maximum(m_a, m_b)
    first, second = np.exp(m_a - m), np.exp(m_b - m)
    return m, first * l_a + second * l_b, first[:, None] * a_a + second[:, None] * a_b


def _merge_upside_down(m_a: np.ndarray, l_a: np.ndarray, a_a: np.ndarray, m_b: np.ndarray, l_b: np.ndarray, a_b: np.ndarray) -> State:
    m = np.maximum(m_a, m_b)
    first, second = (np.where(np.isneginf(old), 0.0, np.exp(m - old)) for old in (m_a, m_b))
    return m, first * l_a + second * l_b, first[:, None] * a_a + second[:, None] * a_b


def _merge_divided(*states: np.ndarray) -> State:
    m, row_sum, acc = _merge(*states)
    return m, row_sum, acc / np.where(row_sum == 0.0, 1.0, row_sum)[:, None]


def _merge_exchanged(m_a: np.ndarray, l_a: np.ndarray, a_a: np.ndarray, m_b: np.ndarray, l_b: np.ndarray, a_b: np.ndarray) -> State:
    m = np.maximum(m_a, m_b)
    first, second = _factor(m_b, m), _factor(m_a, m)
    return m, first * l_a + second * l_b, first[:, None] * a_a + second[:, None] * a_b


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


MERGE = Task(
    id="merge-two-states",
    title="Merge two states",
    entry="my_merge",
    kind="write",
    equation="merge-of-attention-states",
    points=2,
    difficulty=2,
    minutes=10,
    trains="one reference for two blocks",
    answer=_merge,
    cases=lambda rng: [
        _two_states("maxima near each other", _state(rng, 5, 3, 1.0), _state(rng, 5, 3, 1.0)),
        _two_states("maxima hundreds apart", *_far_states(rng, 450.0, 500.0)),
        _two_states("maxima some ten apart", *_far_states(rng, 6.0)),
        _two_states("rows that have seen nothing", _state(rng, 5, 2, 1.0, (0, 3)), _state(rng, 5, 2, 1.0, (1, 3))),
        _two_states("one row", _state(rng, 1, 3, 2.0), _state(rng, 1, 3, 2.0)),
        _two_states("no key on either side", *(_state(rng, 3, 5, 1.0, (0, 1, 2)) for _ in range(2))),
    ],
    wrong=[
        Wrong(
            "the accumulator not rescaled",
            lambda m_a, l_a, a_a, m_b, l_b, a_b: (*_merge(m_a, l_a, a_a, m_b, l_b, a_b)[:2], a_a + a_b),
            "maximum and sum are right; the accumulator is measured from the same maximum as the sum and needs the same factor",
        ),
        Wrong(
            "the sum not rescaled",
            lambda m_a, l_a, a_a, m_b, l_b, a_b: (np.maximum(m_a, m_b), l_a + l_b, _merge(m_a, l_a, a_a, m_b, l_b, a_b)[2]),
            "maximum and accumulator are right; each sum is measured from its own maximum and must be moved to the common one",
        ),
        Wrong(
            "nothing rescaled", lambda *s: (np.maximum(s[0], s[3]), s[1] + s[4], s[2] + s[5]), "sums from different maxima cannot be added"
        ),
        Wrong("the exponent upside down", _merge_upside_down, "the factor is exp(m_A - m), never above 1; yours grows with the distance"),
        Wrong(
            "factors exchanged", _merge_exchanged, "the factor of A is made from the maximum of A; you gave each block that of the other"
        ),
        Wrong(
            "no care for rows without keys",
            _merge_without_care,
            "-inf - (-inf) is NaN: a row that neither side has seen stays (-inf, 0, 0)",
        ),
        Wrong("divided by the sum", _merge_divided, "the accumulator stays unnormalised, else the result could not be merged again"),
    ],
    hints=[
        "Which of the two maxima becomes the common one, row by row? What does a sum measured from another maximum need?",
        "The factors exp(m_A - m) and exp(m_B - m) apply to sum and accumulator alike. Where is the exponent -inf - (-inf)?",
        "shift = np.where(np.isneginf(m), 0.0, m); then np.exp(m_a - shift) is 0 for a row without keys.",
    ],
)

# ---- 12.4 attention from a stream of blocks


def _stream(
    query: np.ndarray,
    keys: list[np.ndarray],
    values: list[np.ndarray],
    *,
    rescale_acc: bool = True,
    rescale_sum: bool = True,
    outputs: bool = False,
    scaled: bool = True,
    natural: bool = True,
    drop_last: bool = False,
    maximum: str = "running",
    start: float = -math.inf,
) -> Result:
    """The loop of Eq. tiled-attention-update, with one step done differently; `maximum` says which one is subtracted."""
    scale = 1.0 / math.sqrt(query.shape[1]) if scaled else 1.0
    m, row_sum, acc = np.full(len(query), start), np.zeros(len(query)), np.zeros((len(query), values[0].shape[1]))
    for K, V in list(zip(keys, values, strict=True))[: -1 if drop_last and len(keys) > 1 else None]:
        S = query @ K.T * scale
        new = np.maximum(m, S.max(axis=1))
        if maximum == "of the first block":
            new = np.where(np.isneginf(m), new, m)
        elif maximum == "of all queries":
            new = np.full_like(new, new.max())
        factor, shares = np.exp(m - new), np.exp(S - new[:, None])
        row_sum = (factor if rescale_sum else 1.0) * row_sum + shares.sum(axis=1)
        added = shares / shares.sum(axis=1, keepdims=True) if outputs else shares
        acc = (factor[:, None] if rescale_acc else 1.0) * acc + added @ V
        m = new
    return acc / row_sum[:, None], m + np.log(row_sum) if natural else row_sum


def _exact(query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> Result:
    output, lse = attention(query, np.concatenate(keys), np.concatenate(values), return_lse=True)
    return output, lse


def _mean_of_blocks(query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> Result:
    outputs = [attention(query, K, V) for K, V in zip(keys, values, strict=True)]
    return np.mean(outputs, axis=0), _exact(query, keys, values)[1]


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


STREAM = Task(
    id="streamed-attention",
    title="Attention from a stream",
    entry="my_stream",
    kind="write",
    equation="tiled-attention-update",
    points=3,
    difficulty=3,
    minutes=15,
    trains="the forward pass in tiles",
    answer=_exact,
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
    wrong=[
        Wrong(
            "the accumulator not rescaled",
            lambda *inputs: _stream(*inputs, rescale_acc=False),
            "when the maximum grows, what the accumulator holds shrinks by the same factor as the sum, {eq}`tiled-attention-update`",
        ),
        Wrong(
            "the sum not rescaled",
            lambda *inputs: _stream(*inputs, rescale_sum=False),
            "the accumulator is rescaled, the sum is not: both are measured from the running maximum",
        ),
        Wrong(
            "outputs accumulated instead of values",
            lambda *inputs: _stream(*inputs, outputs=True),
            "add exp(S - m) V, not the finished output of the block: the division by the sum comes once, after the last block",
        ),
        Wrong("no scale", lambda *inputs: _stream(*inputs, scaled=False), "the scores are divided by the root of d_k"),
        Wrong(
            "the sum returned instead of its logarithm",
            lambda *inputs: _stream(*inputs, natural=False),
            "the output is right; the second result is L = m + ln(l), {eq}`row-lse-and-output`, not the sum alone",
        ),
        Wrong("the last block dropped", lambda *inputs: _stream(*inputs, drop_last=True), "the last block counts too, however short it is"),
        Wrong(
            "the maximum of the first block kept",
            lambda *inputs: _stream(*inputs, maximum="of the first block"),
            "a later block may hold much larger scores, and then exp(S - m) overflows: the maximum must follow",
        ),
        Wrong(
            "one maximum for all queries",
            lambda *inputs: _stream(*inputs, maximum="of all queries"),
            "each query has a maximum of its own: where all its scores lie far below that of another, every exponential becomes 0",
        ),
        Wrong(
            "the maximum begins at 0",
            lambda *inputs: _stream(*inputs, start=0.0),
            "scores may all lie far below 0, and then every exponential becomes 0: before the first block the maximum is -inf",
        ),
        Wrong("the mean of the blocks", _mean_of_blocks, "blocks do not weigh the same: one that holds larger scores has more to say"),
    ],
    hints=[
        "Keep three things for each query: a maximum, a sum, and an accumulator of d_v numbers. What are they before the first block?",
        "For each block: scores, new maximum, the factor exp(m - m'), then sum and accumulator. Divide after the loop.",
        "acc = factor[:, None] * acc + np.exp(S - new[:, None]) @ V, and lse = m + np.log(row_sum) at the end.",
    ],
)

# ---- 12.6 repair the loop


def _loop_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    block: int,
) -> np.ndarray:
    """(q_len, d_k), (kv_len, d_k), (kv_len, d_v), block -> (q_len, d_v)."""
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for step in range(len(key) // block):
        tile = slice(step * block, (step + 1) * block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc + p @ value[tile]
        row_max = new_max
    return acc / row_sum


def _loop(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int, *, rest: str = "kept", **options: Any) -> np.ndarray:
    """The repaired loop, with one step done differently; `rest` says what becomes of a last block that is not full."""
    if rest == "dropped":
        kept = len(key) // block * block
        key, value = key[:kept], value[:kept]
    elif rest == "padded":
        missing = -len(key) % block
        key, value = (np.concatenate([x, np.zeros((missing, x.shape[1]))]) for x in (key, value))
    starts = range(0, len(key), block)
    return _stream(query, [key[i : i + block] for i in starts], [value[i : i + block] for i in starts], **options)[0]


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


REPAIR = Task(
    id="repair-tiled-loop",
    title="Repair a tiled loop",
    entry="tiled_attention",
    kind="repair",
    equation="tiled-attention-update",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the two classic faults of a first kernel",
    answer=lambda query, key, value, block: attention(query, key, value),
    broken=_loop_broken,
    forbid=(forbidden.ATTENTION, forbidden.SOFTMAX),
    cases=_loop_cases,
    wrong=[
        Wrong(
            "only the last block mended",
            lambda *inputs: _loop(*inputs, rescale_acc=False),
            "all keys count now. But the sum shrinks when the maximum grows, and the accumulator does not",
        ),
        Wrong(
            "only the rescale mended",
            lambda *inputs: _loop(*inputs, rest="dropped"),
            "the accumulator is right now. But 11 keys in blocks of 4 are three blocks, and `//` makes two of them",
        ),
        Wrong(
            "padded with zeros",
            lambda *inputs: _loop(*inputs, rest="padded"),
            "keys that do not exist have the score 0 in your loop, and e^0 is not nothing: their scores must be -inf, or absent",
        ),
        Wrong(
            "the sum no longer rescaled",
            lambda *inputs: _loop(*inputs, rescale_sum=False),
            "now the accumulator is rescaled and the sum is not: both need the factor",
        ),
        Wrong(
            "nothing rescaled",
            lambda *inputs: _loop(*inputs, rescale_acc=False, rescale_sum=False),
            "leaving the factor out everywhere does not cancel: every block would keep the maximum of its own time",
        ),
        Wrong(
            "the maximum of the first block kept",
            lambda *inputs: _loop(*inputs, maximum="of the first block"),
            "without a maximum that follows, a later block with much larger scores overflows",
        ),
        Wrong(
            "blocks normalised one by one",
            lambda *inputs: _loop(*inputs, outputs=True),
            "divide once, after the loop: a block alone does not know the sum of its row",
        ),
    ],
    hints=[
        "Try 11 keys in blocks of 4: how often does the loop run? Then try two blocks, the second with the larger scores.",
        "Everything measured from the old maximum needs the factor `np.exp(row_max - new_max)`. What is measured from it?",
        "`range(0, len(key), block)` with `slice(start, start + block)`, and `acc * np.exp(row_max - new_max) + p @ value[tile]`.",
    ],
)
