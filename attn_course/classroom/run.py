"""Grade the notebooks of a class side by side, so that no notebook is lost to a process that dies."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from types import TracebackType

from attn_course.classroom.engines import Engine
from attn_course.classroom.hand_ins import HandIn
from attn_course.classroom.process import ClassError, NoGrader, Setup, grade_here, probe_here
from attn_course.classroom.store import NotebookResult
from attn_course.tasks.core import Verdict

OnResult = Callable[[HandIn, NotebookResult], None]
_MOST_GIVEN_UP_IN_A_ROW = 10


class ClassRun:
    """Grades notebooks on an engine; a context manager.

    `setup`: what the grading processes need to know.

    When a process dies, every notebook under way is suspect, because nobody can tell which of them ended it. Suspects
    are graded again one at a time; one that ends its process twice when alone is given up. No notebook pays for another.

    Notebooks of one student are graded one after the other, so that nobody holds more than one process, and for no longer than
    a student's time in all.
    """

    def __init__(self, engine: Engine, setup: Setup) -> None:
        self.engine = engine
        self.setup = setup
        self._executor: Executor | None = None
        self._used: defaultdict[str, float] = defaultdict(float)  # seconds by student
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> "ClassRun":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._opened.__exit__(kind, error, trace)

    def probe(self) -> str:
        """Return one line on what confines learners' code where the class is to be graded.

        Raises NoGrader if no grading process can start there.
        """
        try:
            return self._open().submit(probe_here, self.setup).result()
        except ClassError:
            raise
        except Exception as error:
            raise NoGrader(f"no grading process starts: {_line(error)}") from error

    def grade(self, hand_ins: Sequence[HandIn], on_result: OnResult, used: Iterable[tuple[str, float]] = ()) -> None:
        """Grade notebooks; each result is handed over as it ends.

        `hand_ins`: the notebooks, none with a problem. `on_result`: takes the notebook and its result, in this process. `used`:
        students, and seconds that notebooks of theirs took before. Raises ClassError if grading cannot go on; results handed over
        so far stand.
        """
        waiting = list(hand_ins)
        self._used.clear()
        for student, seconds in used:
            self._used[student] += seconds
        in_a_row = 0
        while waiting:
            for suspect, _ in self._grade_until_a_crash(waiting, self.engine.width, on_result):
                again = self._grade_until_a_crash([suspect], 1, on_result)
                if again:  # it may only now have ended its first process
                    again = self._grade_until_a_crash([suspect], 1, on_result)
                in_a_row = in_a_row + 1 if again else 0
                for _, reason in again:
                    if in_a_row == _MOST_GIVEN_UP_IN_A_ROW:
                        raise ClassError(f"the last {in_a_row} notebooks have no verdict, so the fault is hardly theirs: {reason}")
                    on_result(suspect, given_up(suspect, reason, self.setup.tasks))

    def _grade_until_a_crash(self, waiting: list[HandIn], width: int, on_result: OnResult) -> list[tuple[HandIn, str]]:
        """Grade, and take what is graded out of `waiting`, until all is done or a process dies; return what was under way then."""
        under_way: dict[Future[NotebookResult], HandIn] = {}
        crashed: list[tuple[HandIn, str]] = []
        while under_way or (waiting and not crashed):
            busy = {hand_in.student for hand_in in under_way.values()}
            while not crashed and len(under_way) < max(width, 1) and (free := [each for each in waiting if each.student not in busy][:1]):
                hand_in = free[0]
                waiting.remove(hand_in)
                if self._left_s(hand_in) > 0:
                    under_way[self._submit(hand_in)] = hand_in
                    busy.add(hand_in.student)
                else:
                    problem = f"the {self.setup.limits.student:g} s for all notebooks of a student were used up before it"
                    on_result(hand_in, given_up(hand_in, problem, self.setup.tasks))
            for future in sorted(wait(under_way, return_when=FIRST_COMPLETED).done, key=_failed):
                hand_in = under_way.pop(future)
                try:
                    result = future.result()
                except ClassError:
                    raise
                except CancelledError:
                    raise ClassError("the scheduler has gone; --resume goes on when it is back") from None
                except Exception as error:
                    crashed.append((hand_in, _reason(error)))
                    if isinstance(error, BrokenExecutor):
                        self._executor = None
                else:
                    self._used[hand_in.student] += result.seconds
                    on_result(hand_in, result)
        return crashed

    def _left_s(self, hand_in: HandIn) -> float:
        """Seconds that the student of a notebook has left."""
        return self.setup.limits.student - self._used[hand_in.student]

    def _submit(self, hand_in: HandIn) -> "Future[NotebookResult]":
        try:
            return self._open().submit(grade_here, self.setup, hand_in, self._left_s(hand_in))
        except BrokenExecutor:  # an idle process has died since the last result
            self._executor = None
            return self._open().submit(grade_here, self.setup, hand_in, self._left_s(hand_in))

    def _open(self) -> Executor:
        if self._executor is None:
            self._opened.close()
            self._executor = self._opened.enter_context(self.engine.open())
        return self._executor


def given_up(hand_in: HandIn, problem: str, tasks: Collection[str] | None = None) -> NotebookResult:
    """Return the result of a notebook that could not be judged: no points, and the reason.

    `problem`: why. `tasks`: the tasks asked for; all by default. It has one verdict for each task, if its chapter is known.
    """
    verdicts = no_points(hand_in.lesson, f"not judged: {problem}", tasks)
    return NotebookResult(hand_in.place, hand_in.sha256, verdicts, hand_in.notes, hand_in.lesson, problem=problem)


def no_points(lesson: str | None, message: str, asked: Collection[str] | None = None) -> tuple[Verdict, ...]:
    """Return a verdict of no points for each task of a lesson.

    `lesson`: None has no tasks. `message`: the reason. `asked`: the tasks asked for; all by default. They come in the order of
    the tasks.
    """
    from attn_course.tasks.registry import asked_tasks

    tasks = asked_tasks(lesson, asked) if lesson is not None else []
    return tuple(Verdict(task.id, task.title, False, 0, task.points, message, equation=task.equation) for task in tasks)


def _failed(future: "Future[NotebookResult]") -> bool:
    """Whether a future holds no result; those that do come first, so that an error that ends the run loses none of them."""
    return future.cancelled() or future.exception() is not None


def _reason(error: Exception) -> str:
    """Why a notebook has no result; KilledWorker is dask's word for a worker that died several times."""
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        return "grading it ended the grading process twice, with no other notebook beside it"
    return f"the grader itself failed ({_line(error)})"


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
