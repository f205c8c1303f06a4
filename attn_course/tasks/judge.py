"""Judge arrays against the right answer, and name the mistake; never sees the code that made the arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.tasks.core import Case, Task, Verdict, Wrong
from attn_course.tasks.run import Result, run

SECRET = ("predict", "figure")  # kinds whose right number stays unsaid: it is the whole answer
ROUNDINGS = 8.0
TOLERANCE = {"float32": 5e-4}  # of results wider than float32: Task.tolerance, else 1e-9


def judge(task: Task, cases: Sequence[Case], results: Sequence[Result]) -> Verdict:
    """Compare what an answer returned with what is right.

    Parameters
    ----------
    task : Task
        The task, with its right and its known wrong answers.
    cases : sequence of Case
        The cases that were run.
    results : sequence of Result
        What `run` gave for them, in the same order.

    Returns
    -------
    verdict : Verdict
        All points or none; a failed one says why, names the mistake if it is known, and points to the equation.

    Raises
    ------
    ValueError
        If there is not one result for each case, or the task's own answer fails.
    """
    if len(cases) != len(results):
        raise ValueError(f"results must hold one entry for each of the {len(cases)} cases; got {len(results)}")
    for case, result in zip(cases, results, strict=True):
        if result.problem:
            return _failed(task, result.problem + _in_case(task, case))
        if result.changed:
            return _failed(task, f"{task.entry} changed its input `{result.changed}`{_in_case(task, case)}: work on a copy")
    rights = expected(task, task.answer, cases)
    if broken := next((right.problem for right in rights if right.problem), None):
        raise ValueError(f"the right answer of task {task.id} must hold in every case; {broken}")
    misses = [
        (n, miss)
        for n, (right, result) in enumerate(zip(rights, results, strict=True))
        if (miss := compare(_arrays(result), _arrays(right), task.tolerance, _largest_input(cases[n])))
    ]
    if not misses:
        return Verdict(task.id, task.title, True, task.points, task.points, task.ok_line, equation=task.equation)
    recognised = _recognise(task, cases, results, [n for n, _ in misses])
    if recognised is not None:
        known, explained = recognised
        miss = dict(misses)[explained]
        return _failed(task, f"this is “{known.name}”{_in_case(task, cases[explained])}.{_shown(task, cases[explained], miss)}", known)
    number, miss = misses[0]
    remark = "" if task.kind in SECRET else _pattern(results, rights)
    return _failed(task, f"{task.entry} is not right{_in_case(task, cases[number])}.{_shown(task, cases[number], miss)}{remark}")


def expected(task: Task, function: Callable[..., Any], cases: Sequence[Case]) -> list[Result]:
    """Run a trusted function of the task (its answer, or a known wrong one) on the cases.

    Parameters
    ----------
    task : Task
        Says how the function is called: on arrays, on symbols (derive) or on nothing (predict, figure).
    function : callable
        `task.answer` or the function of a `Wrong`.
    cases : sequence of Case
        The inputs.

    Returns
    -------
    results : list of Result
        One for each case; a known wrong answer may hold problems too.
    """
    value: Any = function
    if task.kind == "derive":
        import sympy

        value = function(*(sympy.Symbol(name, real=True) for name in task.symbols))
    elif not task.wants_function:
        value = function()
    inputs = [case.inputs for case in cases]
    return run(value, inputs, kind=task.kind, entry=task.entry, symbols=task.symbols, functions=task.functions)


@dataclass(frozen=True)
class Miss:
    """How a result differs from the right one: in form (`reason`), or in numbers."""

    reason: str = ""
    item: int | None = None
    index: tuple[int, ...] = ()
    got: float = 0.0
    wanted: float = 0.0
    largest_error: float = 0.0


def compare(
    got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float | None = None, largest_input: float = 0.0
) -> Miss | None:
    """Return None if the arrays agree, else the first difference.

    Parameters
    ----------
    got, wanted : sequence of ndarray
        As many arrays on both sides, of the same shapes. NaN and infinities must stand in the same places.
    tolerance : float, optional
        Largest error, relative to the largest finite entry wanted; the default goes by the dtype that came.
    largest_input : float, optional
        Size of the numbers that went in. Where they cancel, a few of their roundings remain, and are no mistake.

    Returns
    -------
    miss : Miss or None
        The first element that is wrong, and the largest error.
    """
    if len(got) != len(wanted):
        return Miss(f"it must return {_items(len(wanted))}; got {_items(len(got))}")
    for position, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        which = f"item {position} of the tuple" if len(wanted) > 1 else "the result"
        if ours.shape != theirs.shape:
            wanted_form = f"have shape {theirs.shape}" if theirs.shape else "be a single number"
            return Miss(f"{which} must {wanted_form}; got {ours.shape or 'a single number'}")
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max(initial=0.0)) or 1.0
        rounding = max(np.finfo(ours.dtype).eps, np.finfo(np.float64).eps)
        allowed = max(scale * TOLERANCE.get(ours.dtype.name, tolerance or 1e-9), ROUNDINGS * float(rounding) * largest_input)
        with np.errstate(all="ignore"):
            error = np.abs(ours.astype(np.float64) - theirs)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        wrong = ~same & ~(error <= allowed)  # a NaN error counts as wrong
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            largest = float(error[wrong & np.isfinite(error)].max(initial=0.0))
            return Miss("", position if len(wanted) > 1 else None, index, float(ours[index]), float(theirs[index]), largest)
    return None


def _largest_input(case: Case) -> float:
    parts = [part for value in case.inputs.values() for part in (value if isinstance(value, (list, tuple)) else [value])]
    arrays = [np.asarray(part, dtype=np.float64) for part in parts if isinstance(part, (np.ndarray, float))]
    return max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in arrays), default=0.0)


def _recognise(task: Task, cases: Sequence[Case], results: Sequence[Result], missed: Sequence[int]) -> tuple[Wrong, int] | None:
    """The known wrong answer that explains most of the missed cases, half of them at least, and the first of these.

    If two explain as many, it is the one that the task lists first.
    """
    best, best_count = None, (len(missed) - 1) // 2
    for wrong in task.wrong:
        theirs = expected(task, wrong.function, [cases[n] for n in missed])
        explained = [
            n
            for n, wrong_result in zip(missed, theirs, strict=True)
            if wrong_result.arrays and compare(_arrays(results[n]), wrong_result.arrays, task.tolerance, _largest_input(cases[n])) is None
        ]
        if len(explained) > best_count:
            best, best_count = (wrong, explained[0]), len(explained)
    return best


def _pattern(results: Sequence[Result], rights: Sequence[Result]) -> str:
    """A remark if the results are the right ones times a constant, plus a constant, or hold NaN."""
    got, wanted = ([array for result in side for array in _arrays(result)] for side in (results, rights))
    if [array.shape for array in got] != [array.shape for array in wanted]:
        return ""
    with np.errstate(all="ignore"):
        ours = np.concatenate([array.astype(np.float64).ravel() for array in got])
        theirs = np.concatenate([array.astype(np.float64).ravel() for array in wanted])
        return _remark(ours, theirs, 1e-4 if any(array.dtype == np.float32 for array in got) else 1e-6)


def _remark(ours: np.ndarray, theirs: np.ndarray, rtol: float) -> str:
    if np.isnan(ours).any() and not np.isnan(theirs).any():
        return " It holds NaN: look for inf - inf, 0 / 0 or 0 * inf."
    if len(ours) < 3 or not (np.isfinite(ours).all() and np.isfinite(theirs).all()) or np.ptp(theirs) == 0.0:
        return ""
    factor = float(ours @ theirs / (theirs @ theirs))
    if factor and np.allclose(ours, factor * theirs, rtol=rtol, atol=1e-3 * rtol * np.abs(ours).max()):
        return f" Everywhere it is {factor:.6g} times the right result."
    offset = float((ours - theirs).mean())
    if np.allclose(ours, theirs + offset, rtol=rtol, atol=1e-3 * rtol * np.abs(theirs).max()):
        return f" Everywhere it is the right result plus {offset:.6g}."
    return ""


def _shown(task: Task, case: Case, miss: Miss) -> str:
    if miss.reason:
        return f" Shape or form: {miss.reason}."
    if task.kind in SECRET:
        place = f" Entry {miss.index[0]} is the first that is off." if miss.index else ""
        return f"{place} You gave {miss.got:.6g}."
    numbers = f"is {miss.got:.6g}, wanted {miss.wanted:.6g}"
    numbers += f"; largest error {miss.largest_error:.3g}" if miss.largest_error else ""
    if task.kind == "derive":
        points = np.broadcast_arrays(*(case.inputs[name] for name in task.symbols))
        point = ", ".join(f"{name} = {values[miss.index]:.4g}" for name, values in zip(task.symbols, points, strict=True))
        return f" At {point} it {numbers}."
    places = [f"element {list(miss.index)}"] if miss.index else []
    places += [] if miss.item is None else [f"item {miss.item} of the tuple"]
    return f" First wrong: {' of '.join(places) or 'the number'} {numbers}."


def _failed(task: Task, message: str, known: Wrong | None = None) -> Verdict:
    mistake, hint = (known.name, known.hint) if known else (None, None)
    return Verdict(task.id, task.title, False, 0, task.points, message, mistake, hint, task.equation)


def _in_case(task: Task, case: Case) -> str:
    return f" in the case “{case.name}”" if task.wants_function else ""


def _arrays(result: Result) -> tuple[np.ndarray, ...]:
    return result.arrays or ()


def _items(count: int) -> str:
    return "one array" if count == 1 else f"a tuple of {count} arrays"
