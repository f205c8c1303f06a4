"""The levels of "Break the machine": inputs that hide a twin, and the fewest numbers that expose it, found by search."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attn_course.game.formulas import PARTS
from attn_course.game.rules import AHEAD, computed, twin_of

MATRICES = ("X", "W_Q", "W_K", "W_V", "W_O")
TRIED = (0, 1, -1, 2, -3, 9, 99, 40, -40)  # in the place of each number
MOST, CLOSE = 3, 1e-9
LEAST, SHARE = 0.005, 0.001  # what is seen to differ: so much of one number, and so much of the largest
Inputs = Mapping[str, Any]
Change = tuple[str, tuple[int, ...], Any]  # an input, the place in it, and what stands there instead


@dataclass(frozen=True)
class Level:
    """A twin, inputs on which no part of it differs, and the lamp that goes out once its output does.

    `note` says what the inputs have that no level before had; `locked` inputs stay as they are.
    """

    twin: str
    lesson: str | None
    lamp: str
    title: str
    hint: str
    story: str
    start: Inputs = field(default_factory=dict)
    locked: tuple[str, ...] = ("heads",)
    note: str = ""


def _start(tokens: list[list[int]], mask: str = "none", heads: int = 1, **others: list[list[int]]) -> dict[str, Any]:
    """Return inputs of one head or more whose matrices are identities, where nothing else is said."""
    width = len(tokens[0])
    identity = np.eye(width, dtype=int).tolist()
    return {"X": tokens, **{name: others.get(name, identity) for name in MATRICES[1:]}, "mask": mask, "heads": heads}


NOTHING = [[0, 0], [0, 0]]
LEVELS = (
    Level(
        "softmax-over-queries",
        "attention",
        "rows",
        "A symmetric square of scores",
        "The scores are symmetric, and all their rows hold the same numbers. Make one row of X larger than the other.",
        "A softmax along the wrong axis gives a matrix of the right shape, and each of its columns sums to 1. If the scores are symmetric "
        "and all their rows hold the same numbers, each of its rows sums to 1 as well. A test with more keys than queries, or fewer, finds "
        "it at once.",
        _start([[1, 0], [0, 1]]),
    ),
    Level(
        "no-scale",
        "attention",
        "spread",
        "Nobody asks, nobody answers",
        "All scores are 0. A score needs a query and a key that are not 0.",
        "Without the scale nothing looks wrong: rows sum to 1, nothing leaks, heads stay apart. Only the lamp for the "
        "spread of scores shows it: for random ±1 queries and keys the variance of a score should be 1, and without the scale it is "
        "d_k, here 2.",
        _start([[1, 2], [3, 1]], W_Q=NOTHING, W_K=NOTHING),
    ),
    Level(
        "keys-ask",
        "attention",
        "own",
        "Who asks whom?",
        "While W_Q and W_K are equal, token i scores j as j scores i. No tokens tell the two apart: change W_Q or W_K.",
        "With one matrix for queries and keys the scores are symmetric, whatever the tokens are, so that exchanging the roles changes "
        "nothing. The mistake is the same as an exchange of rows and columns of W_Q W_K^T.",
        _start([[1, 2], [3, -1], [0, 2]]),
    ),
    Level(
        "weights-transposed",
        "attention",
        "own",
        "Three equal tokens",
        "All weights are 1/3, and all values are equal. Let one token differ from the others.",
        "p_ij is the weight of input j in output i. Read the other way round, the weights of an output need not sum to 1, and a "
        "query changes what other tokens find.",
        _start([[1, 2], [1, 2], [1, 2]]),
    ),
    Level(
        "mask-after-softmax",
        "masking",
        "rows",
        "A future that is far away",
        "The first token scores the second so low that its weight is 0 in floating point even without a mask. Make them more alike.",
        "Weights that are hidden after the softmax have already taken their share of the sum. What is left sums to less than 1. The "
        "missing amount depends on the later words, and so it reveals something of them.",
        _start([[40, 0], [-40, 1]], mask="causal"),
    ),
    Level(
        "finite-fill",
        "masking",
        "leak",
        "A row with nothing to see",
        "exp(−10000) is 0 in floating point. Look for a row in which everything is hidden, or for a hidden score larger by 10000.",
        "A large finite fill hides keys as long as no hidden score is larger by about 10000 than all that are seen. Where all keys of a "
        "row are hidden, each score is made smaller by the same number, which no softmax notices: the weights are those without any mask.",
        _start([[1, 2], [2, 0], [0, 1]], mask="causal"),
    ),
    Level(
        "heads-tiled",
        "heads",
        "heads",
        "All shapes fit",
        "Both key heads have the same columns of W_K and W_V. Let one number differ. If nothing changes, try another one.",
        "Heads 0 and 1 should share key head 0, and heads 2 and 3 key head 1. In the twin the key heads go 0, 1, 0, 1 and not 0, 0, 1, 1, "
        "so that heads 0 and 2 share one. All shapes fit.",
        _start(
            [[1, 2], [2, -1], [0, 1]],
            heads=4,
            W_Q=[[1, 2, -1, 1], [1, 0, 2, 1]],
            W_K=[[1, 1], [2, 2]],
            W_V=[[1, 1], [1, 1]],
            W_O=[[1, 0], [0, 1], [1, 1], [1, -1]],
        ),
        note="A key head is a block of columns of W_K and W_V: it makes keys and values. Here four heads share two key heads, "
        "two heads each.",
    ),
    Level(
        "heads-reshaped",
        "heads",
        "heads",
        "Two heads that see alike",
        "All tokens are equal, and so are the queries of both heads: wherever a query lands, it is the right one. Change one token.",
        "Reshaping the numbers in memory into heads, without a transposition, gives the right shape, and reshaping back gives "
        "the queries again. But head 0 gets the queries of the first half of the tokens, and head 1 those of the second.",
        _start(
            [[1, 2], [1, 2], [1, 2], [1, 2]],
            heads=2,
            W_Q=[[1, 0, 1, 0], [0, 1, 0, 1]],
            W_K=[[1, 0, 1, 1], [0, 1, 0, 2]],
            W_V=[[1, 0], [0, 1]],
        ),
    ),
    Level(
        "scaled-by-width",
        "heads",
        "spread",
        "One head hides it",
        "With one head, the width of all heads together is the width of that head. Choose two heads.",
        "The scale is the square root of the width of one head, not of all heads together. With a single head these are the same.",
        _start([[1, 2], [3, -1], [0, 2]]),
        locked=(),
    ),
    Level(
        "accumulator-kept",
        None,
        "permutation",
        "The best comes first",
        "For each query the first key has the largest score. Let a later one be larger.",
        "An online softmax takes the keys one by one and measures its sums from the largest score so far. When a larger one comes, "
        "all that was summed up must shrink, or early keys count too much. Scores that never rise from key to key hide it, and so does "
        "a single key.",
        _start([[3], [2], [1]]),
    ),
    Level(
        "maximum-kept",
        None,
        "shift",
        "As long as numbers are small",
        "In double precision exp(x) is infinite from about x = 710 on. One number is enough.",
        "Without the subtraction of the largest score the exponential of a score of 710 is infinite, and infinity divided by infinity is "
        "no number. In half precision a score of 12 is enough.",
        _start([[1, 2], [2, 0], [0, 1]], mask="causal"),
    ),
)


def changes(level: Level, count: int) -> Iterator[tuple[Change, ...]]:
    """Yield all ways to put something else in so many places of the inputs of a level."""
    places: list[list[Change]] = []
    for name, value in level.start.items():
        if name in level.locked:
            continue
        if name in MATRICES:
            cells = np.ndindex(*np.shape(value))
            places += [[(name, cell, other) for other in TRIED if other != value[cell[0]][cell[1]]] for cell in cells]
        else:
            choices = AHEAD if name == "mask" else [heads for heads in (1, 2) if heads != value]
            places.append([(name, (), other) for other in choices if other != value])
    for chosen in itertools.combinations(places, count):
        yield from itertools.product(*chosen)


def changed(start: Inputs, some: list[tuple[Change, ...]]) -> dict[str, Any]:
    """Return many inputs at once, each with its changes; all must agree in what is no matrix."""
    found = {name: np.repeat(np.array(start[name], float)[None], len(some), axis=0) if name in MATRICES else start[name] for name in start}
    for case, several in enumerate(some):
        for name, place, value in several:
            if name in MATRICES:
                found[name][case, *place] = value
            else:
                found[name] = value
    return found


def differs(inputs: Inputs, twin: str) -> np.ndarray:
    """Return for each of many inputs whether any number of the twin differs from the machine's."""
    machine = computed(inputs)
    other = computed(inputs, twin, machine)
    found = np.zeros(len(inputs["X"]), bool)
    for part in PARTS:
        a, b = machine[part.name], other[part.name]
        with np.errstate(invalid="ignore"):
            same = (a == b) | (np.abs(a - b) <= CLOSE * np.maximum(1, np.abs(a)))
        found |= ~same.reshape(len(same), -1).all(axis=1)
    return found


def exposed(inputs: Inputs, twin: str) -> np.ndarray:
    """Return for each of many inputs whether what leaves the twin is seen to differ: what its test compares, and what all heads write."""
    machine = computed(inputs)
    other = computed(inputs, twin, machine)
    found = np.ones(len(inputs["X"]), bool)
    for name in (twin_of(twin).tested, "O"):
        a, b = (made[name].reshape(len(found), -1) for made in (machine, other))
        with np.errstate(invalid="ignore"):
            least = np.maximum(LEAST, SHARE * np.abs(a).max(axis=1, keepdims=True))
            found &= np.isfinite(a).all(axis=1) & ~(np.abs(a - b) < least).all(axis=1)
    return found


def solved(level: Level) -> tuple[Change, ...]:
    """Return the fewest changes that expose the twin of a level; AssertionError if it is exposed at the start, or by no few changes."""
    for count in range(MOST):
        options: dict[tuple[Change, ...], list[tuple[Change, ...]]] = {}
        for some in changes(level, count):
            options.setdefault(tuple(change for change in some if change[0] not in MATRICES), []).append(some)
        for group in options.values():
            shown = np.flatnonzero(exposed(changed(level.start, group), level.twin))
            if shown.size:
                assert count, f"{level.twin} is exposed at the start"
                return group[shown[0]]
    raise AssertionError(f"no {MOST - 1} changes expose {level.twin}")
