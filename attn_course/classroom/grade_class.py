"""One class run from beginning to end: find, grade, keep each result, write what the teacher reads."""

import contextlib
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from attn_course import __version__
from attn_course.classroom.budget import USUAL
from attn_course.classroom.copies import at_most
from attn_course.classroom.desk import Decision, Desk, Papers, read_desk
from attn_course.classroom.downloads import SubmissionsError, opened
from attn_course.classroom.engines import Engine
from attn_course.classroom.hand_ins import Class, HandIn, find_submissions, students_folder
from attn_course.classroom.lateness import notes_on_platforms, notes_on_times
from attn_course.classroom.marks import Marked, mark
from attn_course.classroom.outputs import platform_tables, write_outputs
from attn_course.classroom.process import Setup
from attn_course.classroom.run import ClassRun
from attn_course.classroom.store import NotebookResult, OtherRun, Store
from attn_course.numbers import lesson_number, lesson_of, lesson_place, task_number
from attn_course.tasks import registry


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be graded, and how.

    `submissions`, `out`: where the class's notebooks lie, a folder or a zip archive; where everything is written.
    `grader`: makes a grader.
    `seed`: draws the cases; None draws a new seed, or takes that of the run that goes on.
    `lessons`: those asked for; None asks for all that anybody handed in, or for those of the run that goes on.
    `due`: when notebooks were due; None takes it from the run that goes on.
    `tasks`: the tasks asked for; None asks for all, or for those of the run that goes on.
    `papers`: roster, gradebook, decisions and points; what is left out is as in the run that goes on.
    `again`: students of a run that goes on, whose notebooks alone are graded, and graded again; all others stay as they are.
    `variants`: judge each student by numbers of their own; a run that goes on keeps to what it was begun with.
    `own`: the folder of the teacher's own tasks; None takes it from the run that goes on.
    `limits`: those that are not the usual ones, or not those of the run that goes on, as `Budget.changed` takes them.
    `site`: the address of the course's site, which feedback links to, or nothing.
    `resume`, `allow_unsafe`: go on with the run in `out`; grade without confinement.
    """

    submissions: Path
    out: Path
    engine: Engine
    grader: Callable[..., Any]
    seed: int | None = None
    lessons: tuple[str, ...] | None = None
    due: datetime | None = None
    tasks: tuple[str, ...] | None = None
    papers: Papers = field(default_factory=Papers)
    again: tuple[str, ...] = ()
    variants: bool = False
    own: Path | None = None
    limits: tuple[str, ...] = ()
    site: str = ""
    resume: bool = False
    allow_unsafe: bool = False


@dataclass(frozen=True)
class Started:
    """How a run begins.

    `total`, `kept`: notebooks to grade; those of them that an earlier run had graded. `sandbox`: one line on what confines.
    `due`: when notebooks were due. `begun`: whether it goes on with a run that was there. `changed`, `gone`: notebooks that an
    earlier run had graded, and that are no longer as they were then; that are no longer there.
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

    `seconds`: time the run took. `tables`: which tables were written for learning platforms.
    """

    marked: tuple[Marked, ...]
    found: Class
    lessons: tuple[str, ...]
    seconds: float
    tables: tuple[str, ...] = ()


def grade_class(
    order: Order,
    *,
    on_start: Callable[[Started], None] = lambda started: None,
    on_result: Callable[[NotebookResult], None] = lambda result: None,
) -> GradedClass:
    """Grade a class and write everything below `order.out`.

    `order`: what and how. `on_start`: called once before the first notebook. `on_result`: called with each result.

    Raises SubmissionsError if there is no class to grade; TableError if a table of the teacher's cannot be used; LimitError if a
    limit cannot be as it is asked for; OwnTasksError if the folder of the teacher's own tasks holds none; StoreError if
    `order.out` cannot be used or written; ClassError if grading cannot go on.
    """
    begun = time.monotonic()
    _apart(order.submissions, order.out)
    store = Store(order.out, resume=order.resume)
    if order.resume and (before := store.started()):
        order = _as_begun(order, before)
    elif order.again:
        raise OtherRun(f"{order.out}: holds no class run, in which a student could be graded again; leave --student out")
    if order.own is not None:
        own = registry.add_own(order.own)
        exercise = registry.own_exercises()[own]
        if not exercise.is_file():
            raise registry.OwnTasksError(f"{exercise}: missing; attn-course release --own {order.own.name} builds it")
    desk, limits = read_desk(order.papers), USUAL.changed(order.limits)
    with opened(order.submissions) as (folder, left_out):
        found, lessons = _asked_for(order, folder, desk)
        found = at_most(replace(found, notes=(*left_out, *found.notes)), int(limits.copies))
        decisions = desk.decisions(found.students, _most(lessons, order.tasks, desk.worth))
        if nobody := sorted(set(order.again) - set(found.students)):
            raise SubmissionsError(f"--student: wanted a student of this class; got {', '.join(nobody)}")
        seed = order.seed if order.seed is not None else secrets.randbits(31)
        plan = _Plan(
            order,
            found,
            lessons,
            desk,
            decisions,
            Setup(seed, order.allow_unsafe, order.grader, limits, tasks=order.tasks, variants=order.variants, own=order.own),
        )
        with store:
            results, sandbox = _graded(plan, store, on_start, on_result)
            return _written(plan, store, results, sandbox, begun)


@dataclass(frozen=True)
class _Plan:
    """What is to be graded, once hand-ins and tables are read."""

    order: Order
    found: Class
    lessons: tuple[str, ...]
    desk: Desk
    decisions: Sequence[Decision]
    setup: Setup

    @property
    def about(self) -> dict[str, Any]:
        """What makes it this run and no other."""
        order = self.order
        return {
            "submissions": str(order.submissions.resolve()),
            "lessons": list(order.lessons) if order.lessons is not None else None,
            "tasks": list(order.tasks) if order.tasks is not None else None,
            "due": order.due.isoformat() if order.due else None,
            "seed": self.setup.seed,
            "limits": str(self.setup.limits),
            "variants": order.variants,
            "own": str(order.own) if order.own else None,
            "version": __version__,
            "course_sha256": self.setup.course[:16],
        }


def _graded(
    plan: _Plan, store: Store, on_start: Callable[[Started], None], on_result: Callable[[NotebookResult], None]
) -> tuple[dict[str, NotebookResult], str]:
    """Grade what is not graded yet; return all results by place, and what confines."""
    order, found, again = plan.order, plan.found, plan.order.again
    before = store.started()
    known = store.known()
    if before is not None:
        _same_run(order.out, before, plan.about)
        if before.get("submissions") != plan.about["submissions"]:
            _same_class(order.out, str(before.get("submissions")), found, known)
    to_grade = [each for each in found.hand_ins if not each.problem and each.lesson in plan.lessons]
    results = dict(_kept(store, to_grade, again))
    waiting = [each for each in to_grade if each.place not in results and (not again or each.student in again)]
    there = {each.key for each in found.hand_ins}
    changed = tuple(each.place for each in waiting if each.key in known and known[each.key][1] != each.sha256)
    gone = tuple(sorted(place for key, (place, _) in known.items() if key not in there))
    with contextlib.ExitStack() as running:
        sandbox = (before or {}).get("sandbox")
        if waiting or before is None:
            run = running.enter_context(ClassRun(order.engine, plan.setup))
            now = run.probe()
            if sandbox not in (None, now):
                raise OtherRun(f"{order.out}: its first part was graded with “{sandbox}”; now there is “{now}”")
            sandbox = now
        store.start(plan.about | {"sandbox": sandbox, "papers": order.papers.kept()})
        on_start(Started(len(results) + len(waiting), len(results), str(sandbox), order.due, before is not None, changed, gone))

        def keep(hand_in: HandIn, result: NotebookResult) -> None:
            if not result.problem:  # one that was given up gets another chance from --resume
                store.keep(hand_in.key, result)
            results[hand_in.place] = result
            on_result(result)

        if waiting:
            run.grade(waiting, keep, [(each.student, results[each.place].seconds) for each in to_grade if each.place in results])
    return results, str(sandbox)


def _written(plan: _Plan, store: Store, results: Mapping[str, NotebookResult], sandbox: str, begun: float) -> GradedClass:
    """Mark what was graded, and write all tables and pages."""
    order, found, lessons, desk = plan.order, plan.found, plan.lessons, plan.desk
    marked = mark(found, results, lessons=lessons, due=order.due, worth=desk.worth, decisions=plan.decisions, tasks=order.tasks)
    tables, notes = platform_tables(desk, found, marked, lessons, order.papers.assignment)
    of_times = notes_on_times([each for each in found.hand_ins if each.student not in found.owners], lessons, order.due)
    of_times += notes_on_platforms(found, desk.gradebook.platform if desk.gradebook else "", order.due)
    found = replace(found, notes=(*found.notes, *of_times, *notes))
    seconds = time.monotonic() - begun
    write_outputs(
        store,
        found,
        marked,
        about={**{name: plan.about[name] for name in ("seed", "version", "due", "limits")}, "lessons": list(lessons), "sandbox": sandbox},
        times={"grading_s": round(sum(result.seconds for result in results.values()), 3), "last_run_s": round(seconds, 3)},
        tables=tables,
        anonymous=order.papers.anonymous,
        site=order.site,
    )
    return GradedClass(tuple(marked), found, lessons, seconds, tuple(tables))


def _kept(store: Store, to_grade: Sequence[HandIn], again: Collection[str]) -> Iterator[tuple[str, NotebookResult]]:
    """What an earlier run found, by place. Where single students are graded again, that of all others holds, also if they changed."""
    for each in to_grade:
        if each.student not in again and (kept := store.kept(each.key, each.place, None if again else each.sha256)):
            yield each.place, kept


def _most(lessons: Sequence[str], tasks: Collection[str] | None, worth: Mapping[str, float]) -> dict[str, float]:
    """The points of each task that is asked for."""
    asked = [task for lesson in lessons for task in registry.asked_tasks(lesson, tasks)]
    return {task.id: worth.get(task.id, task.points) for task in asked}


def _apart(submissions: Path, out: Path) -> None:
    """Neither folder may lie in the other: a report is no student, and a submission no result."""
    if submissions.is_file():
        return
    first, second = students_folder(submissions).resolve(), out.resolve()
    if first == second or first in second.parents or second in first.parents:
        raise OtherRun(f"{out}: must not lie in the folder of the submissions, nor they in it; name another folder")


def _asked_for(order: Order, folder: Path, desk: Desk) -> tuple[Class, tuple[str, ...]]:
    """What was handed in, and the lessons asked for: those that are named, those of the tasks that are, else all that anybody handed in."""
    there = registry.lessons()
    if unknown := sorted(set(order.lessons or ()) - set(there)):
        raise SubmissionsError(f"--chapters: there are no tasks on {', '.join(unknown)}; those with tasks: {_listed(there)}")
    named, of_tasks = order.lessons, {str(lesson_of("tasks", task)) for task in order.tasks or ()}
    if named is not None and (apart := sorted(of_tasks - set(named))):
        raise SubmissionsError(f"--tasks: names tasks of chapter {_listed(apart)}; --chapters asks for {_listed(named)}")
    found = find_submissions(folder, lessons=there, roster=desk.roster)
    if desk.gradebook is not None:
        late = desk.gradebook.late()
        number = {each.student: found.owners[each.student].number for each in found.hand_ins if each.student in found.owners}
        hand_ins = [replace(each, late=each.late or late.get(number.get(each.student, ""), "")) for each in found.hand_ins]
        found = replace(found, hand_ins=tuple(hand_ins))
    handed_in = {each.lesson for each in found.hand_ins if each.lesson is not None}
    lessons = tuple(sorted(of_tasks or (set(named) if named is not None else handed_in), key=lesson_place))
    if not lessons:
        raise SubmissionsError(f"{order.submissions}: nobody handed in a notebook of the course, and --chapters names none")
    if nobody := [lesson for lesson in lessons if lesson not in handed_in]:
        found = replace(found, notes=(*found.notes, f"nobody handed in a notebook on chapter {_listed(nobody)}"))
    return found, lessons


def _as_begun(order: Order, before: Mapping[str, Any]) -> Order:
    """An order to go on, with what it leaves open taken from the run that is there."""
    lessons = order.lessons if order.lessons is not None or before.get("lessons") is None else tuple(map(str, before["lessons"]))
    due = order.due if order.due is not None or not before.get("due") else datetime.fromisoformat(before["due"])
    tasks = order.tasks if order.tasks is not None or before.get("tasks") is None else tuple(map(str, before["tasks"]))
    seed = int(before["seed"]) if order.seed is None else order.seed
    papers = order.papers.over(before.get("papers", {}))
    limits = (*str(before.get("limits", "")).split(), *order.limits)
    variants = order.variants or bool(before.get("variants"))
    own = Path(before["own"]) if order.own is None and before.get("own") else order.own
    return replace(order, lessons=lessons, tasks=tasks, due=due, limits=limits, seed=seed, papers=papers, variants=variants, own=own)


def _same_run(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to mix two runs: their grades would not compare."""
    words = {
        "seed": "--seed",
        "lessons": "--chapters",
        "tasks": "--tasks",
        "due": "--due",
        "limits": "--limit",
        "variants": "--variants",
        "own": "--own",
        "version": "version",
        "course_sha256": "another state of attn_course (hash",
    }
    for name, what in words.items():
        if before.get(name) != now[name]:
            close = ")" if "(" in what else ""
            raise OtherRun(
                f"{out}: cannot go on, it was begun with {what} {_value(before.get(name))}{close}, and this run has {_value(now[name])}"
            )


def _same_class(out: Path, before: str, found: Class, known: Mapping[str, tuple[str, str]]) -> None:
    """Refuse another class; a newer download of this one holds notebooks that were graded, or none was graded yet."""
    if known and not any(known.get(each.key, ("", ""))[1] == each.sha256 for each in found.hand_ins):
        raise OtherRun(f"{out}: cannot go on, it was begun with the class in {before}, and none of the notebooks graded there is here")


def _value(value: Any) -> str:
    return "none" if value is None else _listed(value) if isinstance(value, list) else str(value)[:200]


def _listed(names: Sequence[str]) -> str:
    """Numbers of lessons or tasks."""
    return ", ".join(task_number(name) if lesson_of("tasks", name) else lesson_number(name) for name in names)
