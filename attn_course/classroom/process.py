"""What runs in a grading process: one grader for each thread, made when the first notebook comes."""

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import attn_course
from attn_course.checking.cells import exercise_files, read_code_cells
from attn_course.classroom.budget import USUAL, Budget
from attn_course.classroom.hand_ins import HandIn
from attn_course.classroom.store import NotebookResult

_OWN = ("budget", "fork_server", "formula_worker", "grader", "hand_ins", "protocol", "stubs", "submission", "supervisor", "worker")
_OF_GRADES = (  # what a grade depends on; how it is shown is none of these
    *("tasks/*.py", "reference/*.py", "costs/*.py", "lessons/*/tasks*.py"),
    *("checking/cells.py", "checking/magics.py", "checking/untouched.py", "classroom/sandbox/*.py"),
    *(f"classroom/{name}.py" for name in _OWN),
)
_own = threading.local()  # a dask worker may grade in several threads


class ClassError(Exception):
    """The class cannot be graded, or not further; the text is one line."""


class NoGrader(ClassError):
    """A process that is to grade cannot: no sandbox, another version of the course, or it does not see the files."""


@cache
def course_fingerprint(own: Path | None = None) -> str:
    """Return a hash of the files of the course that grades depend on, and of those in the folder of a teacher's own tasks."""
    root = Path(attn_course.__file__).parents[1]
    package = root / "attn_course"
    paths = [path for pattern in _OF_GRADES for path in package.glob(pattern)]
    hashed = hashlib.sha256(attn_course.__version__.encode())
    for path in [own / "tasks.py", own / f"ex_{own.name}.ipynb"] if own else []:
        hashed.update(path.read_bytes() + b"\0")
    for path in sorted(paths):
        hashed.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for lesson, path in sorted(exercise_files(root / "exercises").items()):  # a lesson may be moved, and then has another number
        hashed.update(repr((lesson, [(cell.tags, cell.source) for cell in read_code_cells(path)])).encode())
    return hashed.hexdigest()


@dataclass(frozen=True)
class Setup:
    """What every grading process needs to know; it travels between processes.

    `seed`: draws the cases. `allow_unsafe`: grade without confinement. `grader`: makes a grader: `Grader` of
    attn_course.classroom.grader, or a stand-in with the same methods. `limits`: what a cell, a notebook and a student may use.
    `course`: fingerprint of the course in the process that asks. `tasks`: the tasks asked for; None for all. `variants`: whether
    each student has numbers of their own. `own`: the folder of the teacher's own tasks.
    """

    seed: int
    allow_unsafe: bool
    grader: Callable[..., Any]
    limits: Budget = USUAL
    course: str = field(default="")
    tasks: tuple[str, ...] | None = None
    variants: bool = False
    own: Path | None = None

    def __post_init__(self) -> None:
        if not self.course:
            object.__setattr__(self, "course", course_fingerprint(self.own))


def probe_here(setup: Setup) -> str:
    """Return one line on what confines learners' code in this process: the level, what does not hold, and why."""
    return str(_grader(setup).probe)


def grade_here(setup: Setup, hand_in: HandIn, within_s: float) -> NotebookResult:
    """Grade one notebook in this process.

    `within_s`: seconds that its student has left. Returns one verdict for each task of its chapter. Raises NoGrader if this
    process cannot grade, whatever the notebook.
    """
    from attn_course.classroom.grader import Unconfined
    from attn_course.tasks.registry import asked_tasks

    grader = _grader(setup)
    if not hand_in.path.exists():
        raise NoGrader(f"{hand_in.place} is not to be seen (any more) where it is to be graded; workers need the same file system")
    start = time.perf_counter()
    try:
        graded = grader.grade(hand_in.path, student=hand_in.student, lesson=hand_in.lesson, tasks=setup.tasks, within_s=within_s)
    except Unconfined as error:
        raise NoGrader(str(error)) from error
    seconds = round(time.perf_counter() - start, 3)
    wanted = [task.id for task in asked_tasks(str(hand_in.lesson), setup.tasks)]
    got = [verdict.task for verdict in graded.verdicts]
    if wanted != got:
        raise RuntimeError(f"wanted verdicts on {wanted}; got {got}")
    if graded.problem:  # nothing of it ran
        result = NotebookResult(hand_in.place, hand_in.sha256, graded.verdicts, hand_in.notes, hand_in.lesson, problem=graded.problem)
    else:
        notes = tuple(dict.fromkeys([*hand_in.notes, *graded.notes]))
        level = str(grader.probe.level)
        result = NotebookResult(
            hand_in.place, hand_in.sha256, tuple(graded.verdicts), notes, hand_in.lesson, level, answers=dict(graded.answers)
        )
    return replace(result, seconds=seconds).cleaned()


def _grader(setup: Setup) -> Any:
    """Return this thread's grader."""
    if setup.own:
        from attn_course.tasks.registry import add_own

        add_own(setup.own)
    if setup.course != course_fingerprint(setup.own):
        raise NoGrader("a worker has another version of attn_course than this machine: install the same everywhere")
    if getattr(_own, "setup", None) != setup:
        if getattr(_own, "close", None) is not None:
            _own.close()
        try:
            made = setup.grader(seed=setup.seed, allow_unsafe=setup.allow_unsafe, limits=setup.limits, variants=setup.variants)
            made.__enter__()
        except Exception as error:
            raise NoGrader(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__) from error
        _own.grader, _own.setup = made, setup
        _own.close = Finalize(None, made.__exit__, (None, None, None), exitpriority=10)  # the processes of a pool run no atexit
    return _own.grader
