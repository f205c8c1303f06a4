"""What is true of a wrong result that is no known mistake: sentences from the cases, from what came, and from what is right.

Nothing here knows how the result was made, so nothing here says why it is wrong.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.again import first_name
from attn_course.tasks.compare import Miss
from attn_course.tasks.core import Case, Task
from attn_course.tasks.likeness import FEW_DIGITS, LEAST, Pair, begun, likeness, likeness_of_rows, number, sums_to_one

Arrays = tuple[np.ndarray, ...]
MOST_SAID = 3  # sentences
MOST_NAMED = 3  # cases, rows, items
NAN_FROM = "inf - inf, inf / inf, 0 / 0 or 0 * inf"
REMEMBERS = "Each first call is right: does it remember something of an earlier one?"
IN_ANOTHER_ORDER = "The tuple holds the right arrays, but in another order."
MOST_ORDERED = 4  # numbers whose every order is tried
CLOSE = 0.02  # of the largest entry: what is right to its first digits


@dataclass(frozen=True)
class Outcome:
    """What came and what is right in a case, and how it differs; `agrees` judges other arrays in place of what came."""

    case: Case
    got: Arrays
    wanted: Arrays
    miss: Miss | None
    agrees: Callable[[Arrays], bool]

    @property
    def fits(self) -> bool:
        """Whether both sides have the same form."""
        return [array.shape for array in self.got] == [array.shape for array in self.wanted]


def truths(task: Task, outcomes: Sequence[Outcome], at: int, *, guessed: bool = False) -> str:
    """Return the two or three most telling sentences about a wrong result, each after a blank.

    `at`: number of the case shown. `guessed`: whether a known mistake is named that it may be.
    """
    with np.errstate(all="ignore"):
        said = [one for one in _said(task, outcomes, at, guessed) if one]
    return "".join(f" {sentence}" for sentence in said[:MOST_SAID])


def _said(task: Task, outcomes: Sequence[Outcome], at: int, guessed: bool) -> list[str]:
    shown = outcomes[at]
    if task.kind in ("predict", "figure"):
        return [_of_numbers(shown, guessed)] if shown.fits else []
    if not shown.fits:
        return [_form(shown), _cases(outcomes, at)]
    return [*(_points(task, shown) if task.kind == "derive" else _function(task, outcomes, at))]


def _function(task: Task, outcomes: Sequence[Outcome], at: int) -> Iterator[str]:
    """Yield what is true of what a function returned, the most telling first."""
    shown, missed = outcomes[at], [outcome for outcome in outcomes if outcome.miss]
    item = shown.miss.item if shown.miss and shown.miss.item is not None else 0
    it = _item_name(shown, item)
    pairs = [Pair(one.case.inputs, one.got[item], one.wanted[item]) for one in missed if one.fits and not _agrees(one, item)]
    like = likeness(pairs, it, all_fail=len(pairs) == len(outcomes)) if all(one.fits for one in missed) else ""
    digits = "" if like else _digits(outcomes, at)
    place = "" if like or digits else _place(shown, item, it)
    rows = "" if like or digits or place or not pairs else likeness_of_rows(pairs, it, all_fail=len(pairs) == len(outcomes))
    nan = any(np.isnan(ours).any() and not np.isnan(theirs).any() for ours, theirs in zip(shown.got, shown.wanted, strict=True))
    if nan:
        unwritten = "for what no program stored, " * (forbidden.KERNEL_LAUNCHED in task.forbid)
        yield f"It holds NaN: look {unwritten}for {NAN_FROM}."
    yield from (like, digits, place, rows)
    yield _items(outcomes, at)
    yield _cases(outcomes, at)
    if pairs and not (like or digits):
        yield _sums(pairs[0])
    if not (like or digits or nan or place or rows):
        yield _signs(pairs, "entry" if it == "it" else f"entry of {it.removesuffix(' of the tuple')}")


def _item_name(outcome: Outcome, item: int) -> str:
    return "it" if len(outcome.wanted) == 1 else f"item {item} of the tuple"


def _agrees(outcome: Outcome, *items: int) -> bool:
    """Whether these results of a case are right, whatever the others are."""
    return outcome.agrees(
        tuple(ours if n in items else theirs for n, (ours, theirs) in enumerate(zip(outcome.got, outcome.wanted, strict=True)))
    )


# --- which cases, which results ---


def _cases(outcomes: Sequence[Outcome], at: int) -> str:
    """Say in which cases a result is right; one that is called again is told only if it went another way."""
    shown = outcomes[at]
    missed = {outcome.case.name: bool(outcome.miss) for outcome in outcomes}
    if all(not missed.get(first_name(name), True) for name, wrong in missed.items() if wrong):
        return REMEMBERS
    outcomes = [one for one in outcomes if one is shown or not _goes_with_the_first(one.case.name, missed)]
    right = [outcome.case.name for outcome in outcomes if not outcome.miss]
    wrong = [outcome.case.name for outcome in outcomes if outcome.miss and outcome is not shown]
    if not right:
        return ""
    if not wrong:
        return "It is right in the other case." if len(right) == 1 else "It is right in every other case."
    if len(right) <= MOST_NAMED and len(right) <= len(wrong):
        return f"It is right in {_cases_named(right)} only."
    if len(wrong) <= MOST_NAMED:
        return f"It is wrong in {_cases_named(wrong)}, too, and right in {'the other' if len(right) == 1 else 'every other case'}."
    return f"It is right in {len(right)} of the {len(outcomes)} cases, “{right[0]}” among them."


def _goes_with_the_first(name: str, missed: Mapping[str, bool]) -> bool:
    first = first_name(name)
    return first != name and missed.get(first) == missed[name]


def _cases_named(names: Sequence[str]) -> str:
    return f"the case{'s' if len(names) > 1 else ''} {_listed([f'“{name}”' for name in names])}"


def _items(outcomes: Sequence[Outcome], at: int) -> str:
    count = len(outcomes[at].wanted)
    if count == 1 or not all(outcome.fits for outcome in outcomes):
        return ""
    right = [n for n in range(count) if all(_agrees(outcome, n) for outcome in outcomes)]
    if _in_other_places(outcomes[at]):
        return IN_ANOTHER_ORDER
    if not right:
        return f"{'Neither' if count == 2 else 'None'} of its {count} results is right in every case."
    if len(right) == count - 1 and count > 2:
        return "Everything else that it returns is right."
    names = [_item_name(outcomes[at], n).removesuffix(" of the tuple") for n in right]
    return begun(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} right in every case.")


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# --- where in an array ---


def _place(outcome: Outcome, item: int, it: str) -> str:
    """Say which part of an array is wrong, or right, if it is a part that has a name."""
    got, wanted = outcome.got[item], outcome.wanted[item]
    wrong = _wrong(got, wanted)

    def rest_is_right(part: np.ndarray) -> bool:
        mended = np.where(part, wanted, got).astype(got.dtype)
        return outcome.agrees(tuple(mended if n == item else theirs for n, theirs in enumerate(outcome.wanted)))

    if not wrong.any() or not rest_is_right(wrong):
        return ""
    at = "" if it == "it" else f"in {it}, "
    if wrong.sum() == 1 and wrong.size > 1:
        return begun(f"{at}it is the only wrong element there.")
    parts = dict(_named_parts(got, wanted))
    for words, part in parts.items():
        if not (wrong & ~part).any() and not part.all():
            return begun(f"{at}only {words} are wrong there.")
    infinite = np.isinf(wanted) | np.isinf(got)
    if not (wrong & ~infinite).any():
        return begun(f"{at}the finite numbers are right there; what differs is which entries are infinite.")
    if (np.isnan(got) == wrong).all() and not wrong.all():
        return f"Apart from NaN, {it} is right there."
    if words := _indices(wrong):
        return begun(f"{at}{words} there.")
    for words, part in parts.items():
        if part.sum() > 1 and not (wrong & part).any():
            return begun(f"{at}all {words.removeprefix('the ')} are right there.")
    return ""


def _wrong(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which entries are clearly wrong, by the size of the array."""
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)) or 1.0
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return np.asarray(~same & ~(error <= scale * (1e-4 if got.dtype == np.float32 else 1e-9)))


def _named_parts(got: np.ndarray, wanted: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield parts of an array that can be named whatever its task is, the smaller ones first."""
    if wanted.ndim > 1 and wanted.shape[-1] > 1:
        yield "rows that must be zero", np.broadcast_to((wanted == 0.0).all(axis=-1, keepdims=True), wanted.shape)
        yield "rows that came out as zero", np.broadcast_to((got == 0.0).all(axis=-1, keepdims=True), wanted.shape)
    if wanted.ndim > 1 and wanted.shape[-1] == wanted.shape[-2] > 1:
        square = np.ones(wanted.shape[-2:], dtype=bool)
        yield "the entries on the diagonal", np.broadcast_to(np.eye(len(square), dtype=bool), wanted.shape)
        yield "entries above the diagonal", np.broadcast_to(np.triu(square, 1), wanted.shape)
        yield "entries below the diagonal", np.broadcast_to(np.tril(square, -1), wanted.shape)
    if wanted.ndim:
        yield "entries that must be zero", wanted == 0.0
        if (wanted == 0.0).mean() > 0.25:
            yield "entries that must not be zero", wanted != 0.0


def _indices(wrong: np.ndarray) -> str:
    """Say which rows, columns or other indices hold all that is wrong; along the axis where these are fewest."""
    best, words = 1.0, ""
    for axis in range(wrong.ndim):
        hit = np.asarray(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        share = float(hit.mean())
        if share < best:
            best, words = share, _along(hit, _axis_name(wrong.ndim, axis))
    return words


def _axis_name(ndim: int, axis: int) -> str:
    names = ["element"] if ndim == 1 else [*(f"index {{}} of axis {n}" for n in range(ndim - 2)), "row", "column"]
    return names[axis]


def _along(hit: np.ndarray, name: str) -> str:
    wrong, right = np.flatnonzero(hit), np.flatnonzero(~hit)

    def these(indices: np.ndarray) -> str:
        listed = _listed([str(index) for index in indices])
        plural = "s" if len(indices) > 1 else ""
        if "{}" in name:
            return name.replace("index {}", f"{'indices' if plural else 'index'} {listed}")
        return f"{name}{plural} {listed}"

    if len(wrong) == 1 or len(wrong) <= min(len(right), MOST_NAMED):
        return f"only {these(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong"
    if len(right) <= MOST_NAMED:
        return f"only {these(right)} {'is' if len(right) == 1 else 'are'} right"
    return ""


# --- sums and sizes ---


def _sums(pair: Pair) -> str:
    """Say what rows, or columns, sum to where they are weights."""
    for name, other, axis in (("rows", "columns", -1), ("columns", "rows", -2)):
        if not sums_to_one(pair.wanted, axis) or not np.isfinite(pair.got).all():
            continue
        got, wanted = (array.sum(axis=axis, dtype=np.float64).ravel() for array in (pair.got, pair.wanted))
        it, its = ("It", "sums") if pair.wanted.ndim == 1 else (f"Its {name}", "sum")
        if np.allclose(got, wanted, rtol=0.0, atol=1e-5 if pair.got.dtype == np.float32 else 1e-9):
            return f"{it} {its} to 1 there, as {'it' if its == 'sums' else 'they'} must."
        if pair.wanted.ndim > 1 and sums_to_one(pair.got, -3 - axis):
            return f"Its {other} sum to 1 there, where its {name} must."
        worst = int(np.abs(got - wanted).argmax())
        if pair.wanted.ndim == 1:
            return f"It must sum to 1 there, and sums to {number(got[worst], 4)}."
        if (wanted == 1.0).any() or np.ptp(wanted) < 1e-9:
            return f"One of its {name} sums to {number(got[worst], 4)} there, where it must sum to {number(round(wanted[worst]))}."
    return _sums_to_zero(pair) or _lengths(pair)


def _sums_to_zero(pair: Pair) -> str:
    """Say what rows, or columns, sum to where what is right cancels."""
    for name, axis in (("rows", -1), ("columns", -2)):
        if pair.wanted.ndim < -axis or pair.wanted.shape[axis] < LEAST or not np.isfinite([pair.got, pair.wanted]).all():
            continue
        sizes = np.abs(pair.wanted).sum(axis=axis)
        if not sizes.all() or (np.abs(pair.wanted.sum(axis=axis)) > 1e-9 * sizes).any():
            continue
        got = pair.got.sum(axis=axis, dtype=np.float64).ravel()
        worst = int(np.abs(got).argmax())
        held = abs(got[worst]) <= pair.rtol * float(np.abs(pair.got).max())
        if pair.wanted.ndim == 1:
            return "It sums to 0 there, as it must." if held else f"It must sum to 0 there, and sums to {number(got[worst], 4)}."
        if held:
            return f"Its {name} sum to 0 there, as they must."
        return f"One of its {name} sums to {number(got[worst], 4)} there, where it must sum to 0."
    return ""


def _lengths(pair: Pair) -> str:
    """Say that rows have the right lengths, though other entries."""
    if pair.wanted.ndim < 2 or pair.wanted.shape[-1] < 2:
        return ""
    ours, theirs = (np.linalg.norm(array.astype(np.float64), axis=-1) for array in (pair.got, pair.wanted))
    if not np.isfinite(ours).all() or np.ptp(theirs) < 1e-3 * theirs.max(initial=0.0) or not pair.equal(ours, theirs):
        return ""
    return "Each of its rows has the right length, the root of its sum of squares, there."


def _digits(outcomes: Sequence[Outcome], at: int) -> str:
    """Say that a result is right to its first digits."""
    worst = max(map(_relative_error, outcomes))
    if worst <= FEW_DIGITS:
        return (
            "It is right to a few digits only: does a step run in float32, as torch.tensor(2.0) and astype(np.float32) do, "
            "or is a small number added somewhere, or a finite one put in the place of infinity?"
        )
    if worst <= CLOSE:
        return f"It is nearly right: nowhere is it off by more than {100 * worst:.1g} % of the largest entry."
    return "There it is right to its first digits." if _relative_error(outcomes[at]) <= FEW_DIGITS else ""


def _relative_error(outcome: Outcome) -> float:
    """The largest error of a case, relative to the largest entry of its array."""
    worst = 0.0 if outcome.fits else np.inf
    for ours, theirs in zip(outcome.got, outcome.wanted, strict=outcome.fits):
        finite = np.isfinite(theirs)
        if not outcome.fits or (np.isfinite(ours) != finite).any() or (ours[~finite] != theirs[~finite]).any():
            return np.inf
        scale = float(np.abs(theirs[finite]).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(ours[finite] - theirs[finite]).max(initial=0.0)) / scale)
    return worst


def _signs(pairs: Sequence[Pair], entry: str) -> str:
    """Say in which direction all that is wrong is off."""
    wrong = [_wrong(pair.got, pair.wanted) for pair in pairs]
    ours, theirs = (
        np.concatenate([side[off] for side, off in zip(sides, wrong, strict=True)])
        for sides in ([pair.got for pair in pairs], [pair.wanted for pair in pairs])
    )
    if len(ours) < 2 * LEAST or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return ""
    signed = bool((np.sign(ours) == np.sign(theirs)).all())
    if signed and (theirs < 0).any():
        if (np.abs(ours) < np.abs(theirs)).all() or (np.abs(ours) > np.abs(theirs)).all():
            size = "small" if abs(ours[0]) < abs(theirs[0]) else "large"
            return f"Every wrong {entry} has the right sign, and is too {size} in size."
        return "All signs are right." if (theirs > 0).any() else ""
    if (ours < theirs).all() or (ours > theirs).all():
        return f"Every wrong {entry} is too {'small' if ours[0] < theirs[0] else 'large'}."
    return ""


# --- forms ---


def _form(outcome: Outcome) -> str:
    """Say what of the right result is there in another shape."""
    if not (outcome.miss and len(outcome.got) == len(outcome.wanted)):
        return ""
    item = outcome.miss.item or 0
    got, wanted = outcome.got[item], outcome.wanted[item]
    if len(outcome.got) > 1 and _in_other_places(outcome):
        return IN_ANOTHER_ORDER
    if got.size == wanted.size and wanted.size:
        if _equal(got.ravel(), wanted.ravel()):
            lost = [length for length in wanted.shape if length != 1] == [length for length in got.shape if length != 1]
            if lost:
                less, more = got.ndim < wanted.ndim, got.ndim > wanted.ndim
                end = " too many" if more else "" if less else " in another place"
                return f"Its numbers are right; it {'lacks' if less else 'has'} an axis of length 1{end}."
            return f"Its numbers are right; what is missing is a reshape to {wanted.shape}."
        if got.ndim == wanted.ndim > 1:
            for order in [*itertools.permutations(range(got.ndim))][1:]:
                if _equal(got, wanted.transpose(order)):
                    moved = [str(axis) for axis in range(got.ndim) if order[axis] != axis]
                    return (
                        "It is the right result transposed."
                        if got.ndim == 2
                        else f"Its numbers are right; its axes {_listed(moved)} have changed places."
                    )
    return ""


def _in_other_places(outcome: Outcome) -> bool:
    left = list(outcome.wanted)
    for ours in outcome.got:
        place = next((n for n, theirs in enumerate(left) if _equal(ours, theirs)), None)
        if place is None:
            return False
        del left[place]
    return not left


def _equal(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return Pair({}, ours, theirs).equal(ours, theirs)


# --- numbers and points ---


def _of_numbers(outcome: Outcome, guessed: bool) -> str:
    """Say which of several predicted numbers are right, or of a single one how far off it is; never what it must be."""
    (got,), (wanted,) = outcome.got, outcome.wanted
    wrong = np.flatnonzero(
        [not outcome.agrees((np.where(np.arange(wanted.size).reshape(wanted.shape) == n, got, wanted),)) for n in range(wanted.size)]
    )
    right = [n for n in range(wanted.size) if n not in wrong]
    if right and wanted.size > 2 and len(wrong) == 1:
        return "The other entries are right."
    if right:
        return f"Entr{'y' if len(right) == 1 else 'ies'} {_listed([str(n) for n in right])} {'is' if len(right) == 1 else 'are'} right."
    if guessed:
        return ""
    if wanted.size > 1:
        orders = itertools.permutations(range(wanted.size)) if wanted.size <= MOST_ORDERED else ()
        exchanged = any(outcome.agrees((got.ravel()[[*order]].reshape(wanted.shape),)) for order in orders)
        return "The numbers are right, but in another order." if exchanged else "No entry is right yet."
    ours, theirs = float(got.ravel()[0]), float(wanted.ravel()[0])
    if not np.isfinite(ours) or theirs == 0.0 or ours == 0.0:
        return ""
    if (ours < 0.0) != (theirs < 0.0):
        return "Its sign is not right."
    large = abs(ours) > abs(theirs)
    if not 0.1 < ours / theirs < 10.0:
        return f"It is more than ten times too {'large' if large else 'small'}."
    if any(ours == float(f"{theirs:.{digits}g}") for digits in range(2, 9)):
        return "It is right to its last digit, but more digits are asked for."
    if abs(ours / theirs - 1.0) < CLOSE:
        return "It is close, but not equal to what is asked for."
    return f"Its order of magnitude is right, but it is too {'large' if large else 'small'}."


def _points(task: Task, outcome: Outcome) -> Iterator[str]:
    """Yield what is true of an expression at its points."""
    (got,), (wanted,) = outcome.got, outcome.wanted
    symbols = dict(zip(task.symbols, np.broadcast_arrays(*(outcome.case.inputs[name] for name in task.symbols)), strict=True))
    pair = Pair({}, got, wanted)
    like = likeness([pair], "it", all_fail=True)
    yield like or _times_symbols(pair, symbols)
    wrong = _wrong(got, wanted)
    for name, values in symbols.items():
        held = np.unique(values)
        if 2 <= len(held) <= MOST_NAMED:
            fine = [value for value in held if not wrong[values == value].any()]
            if fine and len(fine) < len(held):
                yield f"It is right wherever {name} is {_listed([number(value) for value in fine])}."
    if not like:
        yield _signs([pair], "value")


def _times_symbols(pair: Pair, symbols: dict[str, np.ndarray]) -> str:
    """Say that an expression lacks a factor, or has one too many, that is made of one or two symbols."""
    if (pair.wanted == 0.0).any() or not np.isfinite(pair.got).all():
        return ""
    times = pair.got / pair.wanted
    with np.errstate(all="ignore"):
        simple = symbols | {f"(1 - {name})": 1.0 - values for name, values in symbols.items()}
        simple |= {f"sqrt({name})": np.sqrt(values) for name, values in symbols.items() if (values > 0).all()}
        simple |= {f"{name}**2": values**2 for name, values in symbols.items()}
        for (one, ours), (other, theirs) in itertools.combinations(list(simple.items())[: 2 * len(symbols)], 2):
            simple |= {f"{one} * {other}": ours * theirs, f"{one} / {other}": ours / theirs}
        for words, values in simple.items():
            for constant in (1.0, -1.0, 2.0, 0.5):
                of = {1.0: "", -1.0: ", with the other sign", 2.0: ", times 2", 0.5: ", times 1/2"}[constant]
                if np.allclose(times, constant * values, rtol=1e-6, atol=0.0):
                    return f"At every point it is the right result times `{words}`{of}."
                if np.allclose(times * values, constant, rtol=1e-6, atol=0.0):
                    return f"At every point it is the right result divided by `{words}`{of}."
    return ""
