"""One class run from beginning to end: find, grade, keep each result, write what the teacher reads."""

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from attn_course import __version__
from attn_course.grading.budget import USUAL
from attn_course.grading.classroom.copies import at_most
from attn_course.grading.classroom.engines import Engine
from attn_course.grading.classroom.hand_ins import Class, HandIn, SubmissionsError, find_submissions, students_folder
from attn_course.grading.classroom.lateness import notes_on_times
from attn_course.grading.classroom.marks import Marked, mark
from attn_course.grading.classroom.outputs import write_outputs
from attn_course.grading.classroom.process import Setup, course_fingerprint
from attn_course.grading.classroom.run import ClassRun
from attn_course.grading.classroom.store import NotebookResult, OtherRun, Store
from attn_course.numbers import lesson_number, lesson_place


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be graded, and how.

    Attributes
    ----------
    submissions, out : Path
        Where the class's notebooks lie; where everything is written.
    engine : Engine
        Where to grade.
    grader : callable
        Makes a grader.
    seed : int or None
        Draws the cases; None draws a new seed, or takes that of the run that goes on.
    lessons : tuple of str or None
        Those asked for; None asks for all that anybody handed in, or for those of the run that goes on.
    due : datetime or None
        When notebooks were due; None takes it from the run that goes on.
    limits : tuple of str
        Those that are not the usual ones, or not those of the run that goes on, as `Budget.changed` takes them.
    resume, allow_unsafe : bool
        Go on with the run in `out`; grade without confinement.
    """

    submissions: Path
    out: Path
    engine: Engine
    grader: Callable[..., Any]
    seed: int | None = None
    lessons: tuple[str, ...] | None = None
    due: datetime | None = None
    limits: tuple[str, ...] = ()
    resume: bool = False
    allow_unsafe: bool = False


@dataclass(frozen=True)
class Started:
    """How a run begins.

    Attributes
    ----------
    total, kept : int
        Notebooks to grade; those of them that an earlier run had graded.
    sandbox : str
        One line on what confines.
    due : datetime or None
        When notebooks were due.
    begun : bool
        Whether it goes on with a run that was there.
    changed, gone : tuple of str
        Notebooks that an earlier run had graded, and that are no longer as they were then; that are no longer there.
    """

    total: int
    kept: int
    sandbox: str
    due: datetime | None = None
    begun: bool = False
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True)
class GradedClass:
    """What a run gave.

    Attributes
    ----------
    marked : tuple of Marked
        The marks.
    found : Class
        What was handed in.
    lessons : tuple of str
        The lessons asked for.
    seconds : float
        Time the run took.
    """

    marked: tuple[Marked, ...]
    found: Class
    lessons: tuple[str, ...]
    seconds: float


def grade_class(
    order: Order,
    *,
    on_start: Callable[[Started], None] = lambda started: None,
    on_result: Callable[[NotebookResult], None] = lambda result: None,
) -> GradedClass:
    """Grade a class and write everything below `order.out`.

    Parameters
    ----------
    order : Order
        What and how.
    on_start : callable, optional
        Called once before the first notebook.
    on_result : callable, optional
        Called with each result.

    Returns
    -------
    graded : GradedClass
        The marks.

    Raises
    ------
    SubmissionsError
        If there is no class to grade.
    LimitError
        If a limit cannot be as it is asked for.
    StoreError
        If `order.out` cannot be used or written.
    ClassError
        If grading cannot go on.
    """
    begun = time.monotonic()
    _apart(order.submissions, order.out)
    store = Store(order.out, resume=order.resume)
    if order.resume and (before := store.started()):
        order = _as_begun(order, before)
    limits = USUAL.changed(order.limits)
    found, lessons = _asked_for(order)
    found = at_most(found, int(limits.copies))
    results: dict[str, NotebookResult] = {}
    with store:
        before = store.started()
        seed = order.seed if order.seed is not None else secrets.randbits(31)
        about = {
            "submissions": str(order.submissions.resolve()),
            "lessons": list(order.lessons) if order.lessons is not None else None,
            "due": order.due.isoformat() if order.due else None,
            "seed": seed,
            "limits": str(limits),
            "version": __version__,
            "course_sha256": course_fingerprint()[:16],
        }
        if before is not None:
            _same_run(order.out, before, about)
        to_grade = [each for each in found.hand_ins if not each.problem and each.lesson in lessons]
        results |= {each.place: kept for each in to_grade if (kept := store.kept(each.key, each.place, each.sha256))}
        waiting = [each for each in to_grade if each.place not in results]
        known, there = store.known(), {each.key for each in found.hand_ins}
        changed = tuple(each.place for each in waiting if each.key in known and known[each.key][1] != each.sha256)
        gone = tuple(sorted(place for key, (place, _) in known.items() if key not in there))
        with contextlib.ExitStack() as opened:
            sandbox = (before or {}).get("sandbox")
            if waiting or before is None:
                run = opened.enter_context(ClassRun(order.engine, Setup(seed, order.allow_unsafe, order.grader, limits)))
                now = run.probe()
                if sandbox not in (None, now):
                    raise OtherRun(f"{order.out}: its first part was graded with “{sandbox}”; now there is “{now}”")
                sandbox = now
                if before is None:
                    store.start(about | {"sandbox": sandbox})
            on_start(Started(len(to_grade), len(results), str(sandbox), order.due, before is not None, changed, gone))

            def keep(hand_in: HandIn, result: NotebookResult) -> None:
                if not result.problem:  # one that was given up gets another chance from --resume
                    store.keep(hand_in.key, result)
                results[hand_in.place] = result
                on_result(result)

            if waiting:
                run.grade(waiting, keep, [(each.student, results[each.place].seconds) for each in to_grade if each.place in results])
        found = replace(found, notes=(*found.notes, *notes_on_times(found.hand_ins, lessons, order.due)))
        marked = mark(found, results, lessons=lessons, due=order.due)
        seconds = time.monotonic() - begun
        write_outputs(
            store,
            found,
            marked,
            about={**{name: about[name] for name in ("seed", "version", "due", "limits")}, "lessons": list(lessons), "sandbox": sandbox},
            times={"grading_s": round(sum(result.seconds for result in results.values()), 3), "last_run_s": round(seconds, 3)},
        )
    return GradedClass(tuple(marked), found, lessons, seconds)


def _apart(submissions: Path, out: Path) -> None:
    """Neither folder may lie in the other: a report is no student, and a submission no result."""
    first, second = students_folder(submissions).resolve(), out.resolve()
    if first == second or first in second.parents or second in first.parents:
        raise OtherRun(f"{out}: must not lie in the folder of the submissions, nor they in it; name another folder")


def _asked_for(order: Order) -> tuple[Class, tuple[str, ...]]:
    from attn_course.tasks.registry import lessons as with_tasks

    there = with_tasks()
    if unknown := sorted(set(order.lessons or ()) - set(there)):
        raise SubmissionsError(f"--chapters: there are no tasks on {', '.join(unknown)}; those with tasks: {_listed(there)}")
    found = find_submissions(order.submissions, lessons=there)
    handed_in = {each.lesson for each in found.hand_ins if each.lesson is not None}
    lessons = tuple(sorted(set(order.lessons) if order.lessons is not None else handed_in, key=lesson_place))
    if not lessons:
        raise SubmissionsError(f"{order.submissions}: nobody handed in a notebook of the course, and --chapters names none")
    if nobody := [lesson for lesson in lessons if lesson not in handed_in]:
        found = replace(found, notes=(*found.notes, f"nobody handed in a notebook on chapter {_listed(nobody)}"))
    return found, lessons


def _as_begun(order: Order, before: Mapping[str, Any]) -> Order:
    """An order to go on, with what it leaves open taken from the run that is there."""
    lessons = order.lessons if order.lessons is not None or before.get("lessons") is None else tuple(map(str, before["lessons"]))
    due = order.due if order.due is not None or not before.get("due") else datetime.fromisoformat(before["due"])
    limits = (*str(before.get("limits", "")).split(), *order.limits)
    return replace(order, lessons=lessons, due=due, limits=limits, seed=int(before["seed"]) if order.seed is None else order.seed)


def _same_run(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to mix two runs: their grades would not compare."""
    words = {
        "submissions": "the class in",
        "seed": "--seed",
        "lessons": "--chapters",
        "due": "--due",
        "limits": "--limit",
        "version": "version",
        "course_sha256": "another state of attn_course (hash",
    }
    for name, what in words.items():
        if before.get(name) != now[name]:
            close = ")" if "(" in what else ""
            raise OtherRun(
                f"{out}: cannot go on, it was begun with {what} {_value(before.get(name))}{close}, and this run has {_value(now[name])}"
            )


def _value(value: Any) -> str:
    return "none" if value is None else _listed(value) if isinstance(value, list) else str(value)[:200]


def _listed(lessons: Sequence[str]) -> str:
    return ", ".join(map(lesson_number, lessons))
