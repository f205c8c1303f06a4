"""Words for a wrong result: where it is off, by what pattern, in digits that show it."""

import itertools
from collections.abc import Sequence

import numpy as np

from attn_course.tasks.compare import Miss, compare
from attn_course.tasks.core import Case, Task
from attn_course.tasks.latex import Line

SECRET = ("predict", "figure")  # kinds whose right number stays unsaid: it is the whole answer


def pattern(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Return a remark if the results are the right ones times a constant, or plus a constant.

    Returns `remark`: a sentence after a blank; empty if no pattern holds everywhere.
    """
    if [array.shape for array in got] != [array.shape for array in wanted]:
        return ""
    with np.errstate(all="ignore"):
        ours = np.concatenate([array.astype(np.float64).ravel() for array in got])
        theirs = np.concatenate([array.astype(np.float64).ravel() for array in wanted])
        return _remark(ours, theirs, 1e-4 if any(array.dtype == np.float32 for array in got) else 1e-6)


def holds_nan(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> bool:
    """Return whether a result holds NaN, and is wanted without."""
    alike = [array.shape for array in got] == [array.shape for array in wanted]
    return alike and any(np.isnan(array).any() for array in got) and not any(np.isnan(array).any() for array in wanted)


def nearly_right(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Return a remark if wide results would be right as float32, so that a hidden step in float32 may be all that is wrong.

    Returns `remark`: a sentence after a blank; empty if a result is off by more.
    """
    if [array.shape for array in got] != [array.shape for array in wanted]:
        return ""
    for ours, theirs in zip(got, wanted, strict=True):
        scale = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)) or 1.0
        if not np.allclose(ours, theirs, rtol=0.0, atol=5e-4 * scale, equal_nan=True):
            return ""
    return (
        " It is right to a few digits only: does a step run in float32, as torch.tensor(2.0) and astype(np.float32) do, "
        "or is a small number added somewhere, or a finite one put in the place of infinity?"
    )


def about_formula(task: Task, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Return a remark on a formula that has the right shape: whether it is right with two of its indices exchanged."""
    letters = task.question.letters
    if [array.shape for array in got] != [array.shape for array in wanted]:
        return ""
    for one, other in itertools.combinations(range(len(letters)), 2):
        if all(compare([ours.swapaxes(one, other)], [theirs], task.tolerance) is None for ours, theirs in zip(got, wanted, strict=True)):
            return f" It would be right with the indices {letters[one]} and {letters[other]} exchanged."
    return " Its indices and its shape are right."


def _remark(ours: np.ndarray, theirs: np.ndarray, rtol: float) -> str:
    if len(ours) < 3 or not (np.isfinite(ours).all() and np.isfinite(theirs).all()) or np.ptp(theirs) == 0.0:
        return ""
    factor = float(ours @ theirs / (theirs @ theirs))
    near = 1e-3 * rtol * np.abs(ours).max()
    if np.allclose(ours, theirs, rtol=rtol, atol=near):
        return ""  # the difference is too small to see a pattern in it
    if factor and abs(factor - 1.0) >= 1e-3 and np.allclose(ours, factor * theirs, rtol=rtol, atol=near):
        return f" Everywhere it is {number(factor)} times the right result."
    offset = float((ours - theirs).mean())
    if np.allclose(ours, theirs + offset, rtol=rtol, atol=1e-3 * rtol * np.abs(theirs).max()):
        return f" Everywhere it is the right result plus {number(offset)}."
    return ""


def shown(task: Task, case: Case, miss: Miss) -> str:
    """Return where and by how much a result is off; never the right number where finding it is the task."""
    item = "" if miss.item is None else f"item {miss.item} of the tuple"
    if task.module and miss.item is not None:
        item = task.module.names(case.inputs, miss.items)[miss.item]
    if task.wants_latex and not miss.reason:
        at = Line(task.question, task.question.frame, case.inputs).positions(miss.index)
        got, wanted = told_apart(miss.got, miss.wanted)
        numbers = f"The line before is {wanted}, this one {got}" if task.question.goal else f"It is {got}, wanted {wanted}"
        look = " That is no number: look for 0 / 0, inf - inf or 0 * inf." if task.question.goal and np.isnan(miss.got) else ""
        return f" {numbers}{f' at {at}' if at else ''}, for {case.name}.{look}"
    if miss.reason:
        return f" Shape or form: {miss.reason.replace(f'item {miss.item} of the tuple', item)}."
    if task.kind in SECRET:
        place = f" Entry {miss.index[0]} is the first that is off." if miss.index else ""
        return f"{place} You gave {number(miss.got)}."
    got, wanted = told_apart(miss.got, miss.wanted)
    numbers = f"is {got}, wanted {wanted}"
    numbers += f"; largest error {number(miss.largest_error, 3)}" if miss.largest_error else ""
    if task.kind == "derive":
        points = np.broadcast_arrays(*(case.inputs[name] for name in task.symbols))
        point = ", ".join(f"{name} = {number(values[miss.index], 4)}" for name, values in zip(task.symbols, points, strict=True))
        return f" At {point} it {numbers}."
    places = [f"element {list(miss.index)}"] if miss.index else []
    places += [item] if item else []
    return f" First wrong: {' of '.join(places) or 'the number'} {numbers}."


def number(value: float, digits: int = 6) -> str:
    """Return a number in so many digits; nobody is to wonder about a minus before a zero."""
    return f"{float(value) + 0.0:.{digits}g}"


def told_apart(got: float, wanted: float) -> tuple[str, str]:
    """Return two numbers in six digits, or in as many as it takes to see that they differ."""
    for digits in range(6, 18):
        pair = number(got, digits), number(wanted, digits)
        if pair[0] != pair[1]:
            break
    return pair
