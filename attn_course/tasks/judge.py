"""Judge arrays against the right answer, and name the mistake; never sees the code that made the arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

from attn_course.numbers import cite, counted
from attn_course.tasks.again import first_name
from attn_course.tasks.compare import NUDGES, Miss, compare, nudged
from attn_course.tasks.core import Case, Task, Verdict, Wrong
from attn_course.tasks.latex import Line, evaluate
from attn_course.tasks.likeness import Pair, everywhere
from attn_course.tasks.run import TIME_LIMIT_S, Result, run
from attn_course.tasks.truths import NAN_FROM, Outcome, truths
from attn_course.tasks.wording import SECRET, about_formula, shown


class Expected(Protocol):
    """As `expected`: runs a trusted function of a task on its cases, or on cases that are nudged."""

    def __call__(self, task: Task, function: Any, cases: Sequence[Case], nudge: str = "") -> list[Result]:
        """Return a result for each case."""
        ...


def judge(task: Task, cases: Sequence[Case], results: Sequence[Result], *, expect: Expected | None = None) -> Verdict:
    """Compare what an answer returned with what is right.

    `task`: the task, with its right and its known wrong answers. `expect`: runs a trusted function of the task on the cases; the
    default is `expected`. A class run remembers what it gave. Returns `verdict`: all points or none, or a share of them if parts of
    the task count; a failed one says why, names the mistake if it is known, and points to the equation. Raises ValueError if there
    is not one result for each case, or the task's own answer fails.
    """
    if len(cases) != len(results):
        raise ValueError(f"results must hold one entry for each of the {len(cases)} cases; got {len(results)}")
    for case, result in zip(cases, results, strict=True):
        if result.problem:
            problem = _problem(task, case, result)
            if task.left and (remark := _right_elsewhere(task, cases, results, expect or expected)):
                said, line, place = problem.partition("\n")
                problem = f"{said}.{remark}{line}{place}"
            of_form = not (result.timed_out or _is_open(task, problem))
            return replace(_failed(task, problem, of_form=of_form), counts=result.timed_out or not task.wants_latex)
        if result.changed:
            changed = f"{task.entry} changed its input `{result.changed}`{_in_case(task, case)}: work on a copy"
            return _failed(task, changed, of_form=True)
    expect = expect or expected
    if task.kind == "derivation":
        return _judge_derivation(task, cases, results, expect)
    rights = _rights(task, cases, expect)
    for case, result, right in zip(cases, results, rights, strict=True):
        if result.listed and len(_arrays(right)) == 1:
            return _failed(task, f"{result.listed}{_in_case(task, case)}", of_form=True)
    results = [_fitted(task, result, right) for result, right in zip(results, rights, strict=True)]

    def differ(n: int, result: Result) -> Miss | None:
        return _difference(result, rights[n], _Nearby(task, task.answer, cases, n, expect), exact_zeros=task.exact_zeros)

    misses = {n: miss for n, result in enumerate(results) if (miss := differ(n, result))}
    if not misses:
        return _passed(task)
    with_parts = partial(_with_parts, task, results=results, rights=rights, differ=differ)
    known, explained, sure = _recognise(task, cases, results, rights, list(misses), expect)
    forms = [n for n, miss in misses.items() if miss.reason]
    if not {*forms} <= {*explained}:
        known, explained = None, []  # a form is said before any number
    number = min({*forms} & {*explained} or explained or forms or misses, key=lambda n: (cases[n].name != first_name(cases[n].name), n))
    where, words = _in_case(task, cases[number]), shown(task, cases[number], misses[number])
    sizes = [sum(array.size for array in _arrays(result)) for result in (results[number], rights[number])]
    if task.kind in SECRET and misses[number].reason and sizes[0] > sizes[1]:
        words += " A comma begins another number: 7,5 are two, 7.5 is one."
    if known and len(explained) < len(misses):
        said = f"it looks like the mistake “{known.name}”{where}, but not in every case that fails.{words}"
        return with_parts(_failed(task, said, known))
    if known and sure:
        return with_parts(_failed(task, f"this is the mistake “{known.name}”{where}.{words}", known))
    if task.left:
        remark = _formula_remark(task, cases, results, rights, expect)
    else:
        outcomes = [
            Outcome(case, _arrays(result), _arrays(right), misses.get(n), partial(_fits, differ, n))
            for n, (case, result, right) in enumerate(zip(cases, results, rights, strict=True))
        ]
        remark = truths(task, outcomes, number, guessed=known is not None)
    opening = f"this may be the mistake “{known.name}”" if known else f"{task.entry} is not right"
    return with_parts(_failed(task, f"{opening}{where}.{words}{remark}", known, of_form=bool(misses[number].reason)))


def expected(task: Task, function: Any, cases: Sequence[Case], nudge: str = "") -> list[Result]:
    """Run a trusted function of the task (its answer, or a known wrong one) on the cases.

    `task`: says how the function is called: on arrays, on symbols (derive), or on its numbers (predict, figure). `function`:
    `task.answer` or the function of a `Wrong`. `nudge`: how the inputs are moved by a rounding, as `compare.nudged` says; not at
    all if empty. Returns `results`: one for each case; a known wrong answer may hold problems too.
    """
    if task.wants_latex:
        return _expected_of_latex(task, function, cases)
    inputs = [nudged(case.inputs, nudge, np.random.default_rng(0)) if nudge else case.inputs for case in cases]
    return run(task.handed_in(function), inputs, task.call, is_ours=True)


def _fits(differ: Callable[[int, Result], Miss | None], number: int, arrays: tuple[np.ndarray, ...]) -> bool:
    return differ(number, Result(arrays)) is None


def _formula_remark(task: Task, cases: Sequence[Case], results: Sequence[Result], rights: Sequence[Result], expect: Expected) -> str:
    """What is true of a formula that no known mistake explains; `mending` looks further."""
    got, wanted = ([array for result in side for array in _arrays(result)] for side in (results, rights))
    if [array.shape for array in got] == [array.shape for array in wanted]:
        if any(np.isnan(array).any() for array in got):
            return f" It holds NaN: look for {NAN_FROM}."
        if constant := everywhere([Pair({}, ours, theirs) for ours, theirs in zip(got, wanted, strict=True)], "it"):
            return f" {constant}"
    return about_formula(task, got, wanted) + _right_elsewhere(task, cases, results, expect)


def _right_elsewhere(task: Task, cases: Sequence[Case], results: Sequence[Result], expect: Expected) -> str:
    """In which cases a formula is right that is not so in all."""
    rights = expect(task, task.answer, cases)
    pairs = zip(cases, map(_arrays, results), map(_arrays, rights), strict=True)
    fit = [case.name for case, ours, theirs in pairs if compare(ours, theirs, task.tolerance) is None]
    return f" It is right for {' and '.join(fit)}." if fit else ""


def _rights(task: Task, cases: Sequence[Case], expect: Expected) -> list[Result]:
    """What the task's own answer gives; ValueError if it fails."""
    rights = expect(task, task.answer, cases)
    if broken := next((right.problem for right in rights if right.problem), None):
        raise ValueError(f"the right answer of task {task.id} must hold in every case; {broken}")
    return rights


def _expected_of_latex(task: Task, latex: Any, cases: Sequence[Case]) -> list[Result]:
    """What a formula is to equal comes from its givens, not from an answer; a wrong line of a derivation stands behind its first."""
    question = task.question
    if task.kind == "formula" and latex is task.answer:
        return [Result((Line(question, question.frame, case.inputs).array,)) for case in cases]
    lines = [latex] if task.kind == "formula" else [task.answer[0], latex] if isinstance(latex, str) else latex
    return evaluate(question, lines, task.blank(cases), limit_s=TIME_LIMIT_S)


def _judge_derivation(task: Task, cases: Sequence[Case], results: Sequence[Result], expect: Expected) -> Verdict:
    """The first line that does not follow is the one to mend; else how it begins, ends and goes on."""
    facts, lines = results[0].facts, [_arrays(result) for result in results]
    if not facts or {len(one) for one in lines} != {1 + len(facts["changed"])}:
        return _failed(task, f"{task.entry} came back in no form that can be judged")
    rights = _rights(task, cases, expect)
    begins = [compare(one[:1], _arrays(right)[:1], task.tolerance) is None for one, right in zip(lines, rights, strict=True)]
    if not (facts["begins"] and all(begins)):
        return _failed(task, f"line 1 of {task.entry} must be where the derivation begins: `{task.answer[0]}`")
    for number in range(1, len(lines[0])):
        steps = [compare([one[number]], [one[number - 1]], task.tolerance) for one in lines]
        missed = [n for n, miss in enumerate(steps) if miss]
        if missed:
            known = _recognised_line(task, cases, [one[number] for one in lines], expect)
            words = f"line {number + 1} does not follow from line {number}"
            words += f": this is the mistake “{known.name}”" if known else ""
            return _failed(task, f"{words}.{shown(task, cases[missed[0]], steps[missed[0]] or Miss())}", known)
    if not facts["ends"]:
        return _failed(task, f"every line of {task.entry} follows from the one before, but the last is not yet `{task.answer[-1]}`")
    if (taken := sum(facts["changed"])) < task.least_steps:
        wanted = counted(task.least_steps, "step")
        return _failed(task, f"{task.entry} gets there, but show {wanted} or more that lead to something new; it has {taken}")
    return _passed(task)


def _recognised_line(task: Task, cases: Sequence[Case], line: Sequence[np.ndarray], expect: Expected) -> Wrong | None:
    """The known wrong line that has the same value in every case."""
    for wrong in task.wrong:
        theirs = [_arrays(result) for result in expect(task, wrong.function, cases)]
        if all(arrays and compare([ours], arrays[-1:], task.tolerance) is None for ours, arrays in zip(line, theirs, strict=True)):
            return wrong
    return None


def _with_parts(
    task: Task, verdict: Verdict, results: Sequence[Result], rights: Sequence[Result], differ: Callable[[int, Result], Miss | None]
) -> Verdict:
    """A failed verdict with the points of those arrays that are right in every case, if they count."""
    count = len(_arrays(rights[0]))
    if not task.partial or any(len(_arrays(result)) != count for result in results):
        return verdict

    def is_right(item: int, n: int) -> bool:
        ours, theirs = _arrays(results[n]), _arrays(rights[n])
        return differ(n, Result((*theirs[:item], ours[item], *theirs[item + 1 :]))) is None

    right = sum(all(is_right(item, n) for n in range(len(rights))) for item in range(count))
    points = task.points * right // count
    words = f" {right} of {count} arrays are right in every case: {points} of {counted(task.points, 'point')} in class marks."
    return replace(verdict, points=points, message=verdict.message + words) if points else verdict


def _passed(task: Task) -> Verdict:
    return Verdict(task.id, task.title, True, task.points, task.points, task.ok_line, equation=task.equation)


def _problem(task: Task, case: Case, result: Result) -> str:
    """What kept an answer from giving a result; a stub fails for no case of its own."""
    problem = result.problem or ""
    if _is_open(task, problem):
        return problem
    return f"{problem}{_in_case(task, case)}" + (f": {result.advice}" if result.advice else "")


def _is_open(task: Task, problem: str) -> bool:
    """Whether there is no answer yet."""
    return problem.startswith(f"{task.entry} has no answer yet")


def _fitted(task: Task, result: Result, right: Result) -> Result:
    """A predicted number may stand alone in a list or array, or bare where such a one is wanted."""
    got, wanted = _arrays(result), _arrays(right)
    if task.kind in SECRET and [array.size for array in (*got, *wanted)] == [1, 1]:
        return replace(result, arrays=(got[0].reshape(wanted[0].shape),))
    return result


def _recognise(
    task: Task, cases: Sequence[Case], results: Sequence[Result], rights: Sequence[Result], missed: Sequence[int], expect: Expected
) -> tuple[Wrong | None, list[int], bool]:
    """The known wrong answer that explains most of the missed cases, half of them at least, these cases, and whether that is sure.

    A case that the answer passed speaks too: where a known wrong answer gives other numbers, this is not that mistake. If two
    explain as many, it is the one that the task lists first. One number, NaN or nothing but 0 that agrees may do so by chance or from
    another cause: it takes two numbers to be sure, and without them all of the missed cases.
    """
    best: tuple[Wrong | None, list[int], bool] = (None, [], False)
    most = (len(missed) - 1) // 2
    passed = [n for n in range(len(cases)) if n not in missed]
    for wrong in task.wrong:
        if most == len(missed):  # none can explain more
            break
        theirs = expect(task, wrong.function, cases)

        def is_alike(n: int, wrong: Wrong = wrong, theirs: Sequence[Result] = theirs) -> bool:
            nearby = _Nearby(task, wrong.function, cases, n, expect)
            return bool(theirs[n].arrays) and _difference(results[n], theirs[n], nearby) is None

        if not all(map(is_alike, passed)):
            continue
        explained: list[int] = []
        for place, n in enumerate(missed):
            if len(explained) + len(missed) - place <= most:  # the rest cannot explain enough
                break
            explained += [n] * is_alike(n)
        if len(explained) > most:
            sure = _tells_by_two(theirs, rights, explained)
            if sure or len(explained) == len(missed):
                best, most = (wrong, explained, sure), len(explained)
    return best


def _tells_by_two(theirs: Sequence[Result], rights: Sequence[Result], explained: Sequence[int]) -> bool:
    """Whether a known wrong answer is wrong in two ways at least: by another number, or in the place of another.

    An array that is 0 throughout tells nothing: there are many roads to 0.
    """
    ways: set[str] = set()
    for n in explained:
        for ours, right in zip_longest(_arrays(theirs[n]), _arrays(rights[n])):
            if ours is not None and not np.allclose(ours, 0.0, rtol=0.0, atol=1e-9):
                instead = right if right is not None and ours.shape == right.shape else np.full_like(ours, np.nan)
                off = ~(np.isclose(ours, instead, rtol=1e-9, atol=0.0) | np.isnan(ours))
                ways.update(f"{one:.6g} for {other:.6g}" for one, other in list(zip(ours[off], instead[off], strict=True))[:100])
                if len(ways) > 1:
                    return True
    return False


@dataclass(frozen=True)
class _Nearby:
    """What a trusted function makes of one case whose inputs are a rounding away; asked for only where a result is nearly right."""

    task: Task
    function: Any
    cases: Sequence[Case]
    number: int
    expect: Expected

    def __call__(self) -> list[tuple[np.ndarray, ...]]:
        return [_arrays(self.expect(self.task, self.function, self.cases, nudge)[self.number]) for nudge in NUDGES]


def _difference(result: Result, wanted: Result, nearby: _Nearby, *, exact_zeros: bool = False) -> Miss | None:
    """None if they agree; most right answers do to the last bit, which is quickly seen."""
    ours, theirs = _arrays(result), _arrays(wanted)
    if len(ours) == len(theirs) and all(a.shape == b.shape and (a == b).all() for a, b in zip(ours, theirs, strict=True)):
        return None
    task = nearby.task
    kept = nearby if task.wants_function else None
    return compare(ours, theirs, task.tolerance, kept, exact_zeros=exact_zeros, digits=task.digits)


def _failed(task: Task, message: str, known: Wrong | None = None, *, of_form: bool = False) -> Verdict:
    """A verdict of no points; after an error of form its hint is "", for the task's own hints are about something else."""
    mistake, hint = (known.name, cite(known.hint)) if known else (None, "" if of_form else None)
    return Verdict(task.id, task.title, False, 0, task.points, message, mistake, hint, task.equation, latex=task.wants_latex)


def _in_case(task: Task, case: Case) -> str:
    return f" in the case “{case.name}”" if task.wants_function else ""


def _arrays(result: Result) -> tuple[np.ndarray, ...]:
    return result.arrays or ()
