"""Judge arrays against the right answer, and name the mistake; never sees the code that made the arrays."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.numbers import cite
from attn_course.tasks.compare import Miss, compare, largest_input
from attn_course.tasks.core import Case, Task, Verdict, Wrong
from attn_course.tasks.run import Result, run
from attn_course.tasks.wording import SECRET, nearly_right, pattern, shown

Expected = Callable[[Task, Callable[..., Any], Sequence[Case]], list[Result]]


def judge(task: Task, cases: Sequence[Case], results: Sequence[Result], *, expect: Expected | None = None) -> Verdict:
    """Compare what an answer returned with what is right.

    `task`: the task, with its right and its known wrong answers.
    `expect`: runs a trusted function of the task on the cases; the default is `expected`. A class run remembers what it
    gave.

    Returns `verdict`: all points or none; a failed one says why, names the mistake if it is known, and points to the
    equation.

    Raises ValueError if there is not one result for each case, or the task's own answer fails.
    """
    if len(cases) != len(results):
        raise ValueError(f"results must hold one entry for each of the {len(cases)} cases; got {len(results)}")
    for case, result in zip(cases, results, strict=True):
        if result.problem:
            return _failed(task, _problem(task, case, result))
        if result.changed:
            return _failed(task, f"{task.entry} changed its input `{result.changed}`{_in_case(task, case)}: work on a copy")
    expect = expect or expected
    rights = expect(task, task.answer, cases)
    if broken := next((right.problem for right in rights if right.problem), None):
        raise ValueError(f"the right answer of task {task.id} must hold in every case; {broken}")
    for case, result, right in zip(cases, results, rights, strict=True):
        if result.listed and len(_arrays(right)) == 1:
            return _failed(task, f"{result.listed}{_in_case(task, case)}")
    results = [_fitted(task, result, right) for result, right in zip(results, rights, strict=True)]
    misses = {
        n: miss
        for n, (right, result) in enumerate(zip(rights, results, strict=True))
        if (miss := _difference(task, cases[n], result, right))
    }
    if not misses:
        return Verdict(task.id, task.title, True, task.points, task.points, task.ok_line, equation=task.equation)
    known, explained = _recognise(task, cases, results, list(misses), expect)
    number = min(explained or misses)
    words = shown(task, cases[number], misses[number])
    if known is None:
        got, wanted = ([array for result in side for array in _arrays(result)] for side in (results, rights))
        remark = "" if task.kind in SECRET else pattern(got, wanted)
        remark = remark or (nearly_right(got, wanted) if task.wants_function else "")
        return _failed(task, f"{task.entry} is not right{_in_case(task, cases[number])}.{words}{remark}")
    if len(explained) < len(misses):
        return _failed(
            task, f"it looks like “{known.name}”{_in_case(task, cases[number])}, but not in every case that fails.{words}", known
        )
    return _failed(task, f"this is “{known.name}”{_in_case(task, cases[number])}.{words}", known)


def expected(task: Task, function: Callable[..., Any], cases: Sequence[Case]) -> list[Result]:
    """Run a trusted function of the task (its answer, or a known wrong one) on the cases.

    `task`: says how the function is called: on arrays, on symbols (derive) or on nothing (predict, figure, module).
    `function`: `task.answer` or the function of a `Wrong`.

    Returns `results`: one for each case; a known wrong answer may hold problems too.
    """
    value: Any = function
    if task.kind == "derive":
        import sympy

        value = function(*(sympy.Symbol(name, real=True) for name in task.symbols))
    elif task.module or not task.wants_function:
        value = function()
    inputs = [case.inputs for case in cases]
    return run(value, inputs, kind=task.kind, entry=task.entry, symbols=task.symbols, functions=task.functions, module=task.module)


def _problem(task: Task, case: Case, result: Result) -> str:
    """What kept an answer from giving a result; a stub fails for no case of its own."""
    problem = result.problem or ""
    if problem.startswith(f"{task.entry} has no answer yet"):
        return problem
    return f"{problem}{_in_case(task, case)}" + (f": {result.advice}" if result.advice else "")


def _fitted(task: Task, result: Result, right: Result) -> Result:
    """A predicted number may stand alone in a list or array, or bare where such a one is wanted."""
    got, wanted = _arrays(result), _arrays(right)
    if task.kind in SECRET and [array.size for array in (*got, *wanted)] == [1, 1]:
        return replace(result, arrays=(got[0].reshape(wanted[0].shape),))
    return result


def _recognise(
    task: Task, cases: Sequence[Case], results: Sequence[Result], missed: Sequence[int], expect: Expected
) -> tuple[Wrong, list[int]] | tuple[None, list[int]]:
    """The known wrong answer that explains most of the missed cases, half of them at least, and these cases.

    A case that the answer passed speaks too: where a known wrong answer gives other numbers, this is not that mistake. If two
    explain as many, it is the one that the task lists first.
    """
    best: tuple[Wrong, list[int]] | tuple[None, list[int]] = (None, [])
    most = (len(missed) - 1) // 2
    for wrong in task.wrong:
        theirs = expect(task, wrong.function, cases)
        alike = [
            n
            for n, wrong_result in enumerate(theirs)
            if wrong_result.arrays and _difference(task, cases[n], results[n], wrong_result) is None
        ]
        explained = [n for n in alike if n in missed]
        if len(explained) > most and len(alike) - len(explained) == len(cases) - len(missed):
            best, most = (wrong, explained), len(explained)
    return best


def _difference(task: Task, case: Case, result: Result, wanted: Result) -> Miss | None:
    """None if they agree; most right answers do to the last bit, which is quickly seen."""
    ours, theirs = _arrays(result), _arrays(wanted)
    if len(ours) == len(theirs) and all(a.shape == b.shape and (a == b).all() for a, b in zip(ours, theirs, strict=True)):
        return None
    return compare(ours, theirs, task.tolerance, largest_input(case))


def _failed(task: Task, message: str, known: Wrong | None = None) -> Verdict:
    mistake, hint = (known.name, cite(known.hint)) if known else (None, None)
    return Verdict(task.id, task.title, False, 0, task.points, message, mistake, hint, task.equation)


def _in_case(task: Task, case: Case) -> str:
    return f" in the case “{case.name}”" if task.wants_function else ""


def _arrays(result: Result) -> tuple[np.ndarray, ...]:
    return result.arrays or ()
