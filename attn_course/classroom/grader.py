"""Grade one untrusted notebook after the other: workers run them, this process judges the arrays that come back."""

import hashlib
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from attn_course.checking.untouched import is_untouched, untouched_message
from attn_course.classroom.budget import USUAL, Budget
from attn_course.classroom.fork_server import CAN_FORK
from attn_course.classroom.protocol import is_last
from attn_course.classroom.sandbox import Limits, Probe, probe
from attn_course.classroom.sandbox.limits import MIB
from attn_course.classroom.submission import EXERCISES, Submission, SubmissionError, read_exercise, read_submission
from attn_course.classroom.supervisor import ENDED, KILLED, UNCONFINED, ForkServer, OutOfTime, PlainProcesses, Worker, WorkerGone
from attn_course.numbers import lesson_in
from attn_course.tasks import Case, Result, Task, Verdict, get_task, judge, registry
from attn_course.tasks.forbidden import THREADS
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.judge import expected
from attn_course.tasks.mending import SEARCH_S, Search, search
from attn_course.tasks.run import changed_input, quiet

END_S = 0.5  # for a worker that has hung up to be gone
FORMULA_LIMITS, LATEX_S = Limits(cpu_s=20.0), 5.0  # of a process that evaluates LaTeX, for one answer
FOR_LATEX = 0.25  # of a notebook's time
GRACE_S = 3.0  # a worker stops its own code; the rest of this time is for saying so
SETTLE_S = 1.0  # for threads of the learner's that are about to sleep, before an answer that may have none
MAX_TEXT, MAX_WORDS = 1_000, 300  # of what a worker says in all, of what would mend a formula


class Unconfined(RuntimeError):
    """This machine cannot confine untrusted work."""


@dataclass(frozen=True)
class Graded:
    """What the grader found in one submission.

    `verdicts`: one for each task that is asked for, in order, whatever became of the submission. `notes`: what a teacher should
    know. `lesson`: the lesson; None if it cannot be told, and there are no verdicts then. `seconds`: time taken. `problem`: why
    the file could not be judged at all; empty if it was. `answers`: what was handed in for each task, by its id.
    """

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    lesson: str | None
    seconds: float
    problem: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)


class Grader:
    """Grades notebooks; a context manager that owns the process its workers are forked from, and must be closed.

    `seed`: draws the cases, the same for every student, so that a run can be repeated.
    `allow_unsafe`: grade where nothing confines the work.
    `limits`: what a cell, a call and a notebook may use: whatever passes in the learner's notebook is to pass here.
    `exercises`: folder of the pristine exercises.
    `variants`: whether each student has numbers of their own where a task's numbers differ, by the name that `grade` is given;
    else all have those of the solution.
    `fork`: whether workers are forked from a warm process; by default wherever that is to be had.

    Raises Unconfined if the sandbox is below "limits only" and `allow_unsafe` is not given.
    """

    def __init__(
        self,
        *,
        seed: int,
        allow_unsafe: bool = False,
        limits: Budget = USUAL,
        exercises: Path = EXERCISES,
        variants: bool = False,
        fork: bool | None = None,
    ) -> None:
        self._seed, self._limits, self._exercises = seed, limits, exercises
        self._variants = variants
        self._workers: ForkServer | PlainProcesses = ForkServer() if (CAN_FORK if fork is None else fork) else PlainProcesses()
        self._workers.prepare()  # it takes seconds; the rest is done meanwhile
        self.probe: Probe = probe()
        self._workers.layers = self.probe.holding
        if self.probe.level == "none" and not allow_unsafe:
            self.close()
            raise Unconfined(f"untrusted work is not run here: {self.probe}; --allow-unsafe runs it all the same")
        self._cases: dict[str, list[Case]] = {}
        self._expected: dict[tuple[str, str, int, str], list[Result]] = {}
        self._right: dict[tuple[str, ...], Verdict] = {}  # by task, its numbers and the lines: the same text is right in every notebook

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that workers are forked from."""
        self._workers.close()

    def grade(
        self, path: Path, *, student: str, lesson: str | None = None, tasks: Collection[str] | None = None, within_s: float = math.inf
    ) -> Graded:
        """Grade one notebook.

        `path`: the submitted file. `student`: whose it is; seeds the random generators of the learner's own code, and chooses the
        numbers where they differ. `lesson`: whose tasks to judge, if the notebook is not to say it. `tasks`: which of them to
        judge; all by default. `within_s`: time that the student has left for this and all further notebooks, in seconds, above 0.

        A task is judged on what its name stands for where its check cell stands; a function to repair that is as it was handed
        out counts as unanswered, not as a mistake. If the notebook ends Python or runs too long, the tasks judged until then keep
        their points, and the later ones get none.
        """
        start = time.monotonic()
        try:
            key = student if self._variants else ""
            submission = read_submission(path, lesson=lesson, exercises=self._exercises, tasks=tasks, key=key)
        except SubmissionError as error:
            slug = lesson if lesson is not None else lesson_in(path.name)
            there = registry.asked_tasks(slug, tasks) if slug in registry.lessons() else []
            problem = _text(str(error))
            verdicts = tuple(_failed(task, f"not judged: {problem}") for task in there)
            return Graded(verdicts, (problem,), slug if there else None, time.monotonic() - start, problem)
        within_s = min(within_s, self._limits.notebook)
        cells_s = (1 - FOR_LATEX) * within_s
        sitting, ended = self._sit(submission, student, cells_s)
        taken_s = sitting.seconds
        if ended == KILLED and taken_s < cells_s / 2:  # perhaps from outside, or for want of memory: no student pays for that
            sitting, _ = self._sit(submission, student, cells_s - taken_s)
            taken_s += sitting.seconds
        self._evaluate(sitting, time.monotonic() + within_s - taken_s)
        verdicts = tuple(sitting.verdicts[task.id] for task in submission.tasks)
        notes = (*submission.notes, *sitting.notes)
        return Graded(verdicts, notes, submission.lesson, time.monotonic() - start, answers=submission.answered)

    def _sit(self, submission: Submission, student: str, within_s: float) -> "tuple[_Sitting, int | None]":
        """Go through a submission once; return also how the worker ended, if by itself."""
        pristine = read_exercise(submission.lesson, self._exercises)
        for task in submission.tasks:
            self._remembered(task, task.answer, self.cases(task))
        with self._at_work(self._limits.of_worker, submission) as worker:
            sitting = _Sitting(submission, worker, self, pristine.answers, within_s)
            sitting.hold(_number(f"{self._seed} {student}"))
        sitting.seconds = time.monotonic() - sitting.begun_at
        if worker.gone:
            sitting.broken_off(worker.fate)
        return sitting, worker.ended if worker.gone else None

    @contextmanager
    def _at_work(self, limits: Limits, submission: Submission, *, formulas: bool = False, until: float = math.inf) -> Iterator[Worker]:
        """Give out a worker for one submission, and end it, whatever happens.

        A worker that goes early leaves the block: `gone` then says why, and `ended` with which exit status, None if it was killed.
        Raises Unconfined if it went because it could not be confined; once it has answered, that status is the learner's.
        """
        worker = self._workers.start(limits, self._given(submission), formulas=formulas)
        worker.until = until
        try:
            yield worker
        except WorkerGone as error:
            worker.gone = str(error)
        finally:
            worker.ended = self._workers.end(worker, wait_s=END_S if worker.gone == ENDED else 0.0)
        if worker.ended == UNCONFINED and worker.gone and not worker.has_answered:
            raise Unconfined(f"a worker could not be confined: {worker.first_words.decode(errors='replace')}")

    def _given(self, submission: Submission) -> dict[str, Any]:
        """What the worker's session is made from."""
        pristine = read_exercise(submission.lesson, self._exercises)
        forbid = sorted({rule for task in submission.tasks for rule in task.rules})
        return {"setup": pristine.setup, "given": pristine.given, "forbid": forbid}

    def _evaluate(self, sitting: "_Sitting", until: float) -> None:
        """Judge the answers in LaTeX of a submission; a process that is lost over one of them is followed by a fresh one."""
        asked = [task for task in sitting.submission.tasks if task.id in sitting.latex]
        texts = {task.id: (task.id, repr(task.numbers), *sitting.latex[task.id]) for task in asked}
        sitting.verdicts |= {task_id: self._right[text] for task_id, text in texts.items() if text in self._right}
        left = [task for task in asked if texts[task.id] not in self._right]
        while left:
            if time.monotonic() >= until:
                sitting.verdicts |= {task.id: _failed(task, "not judged: the time for the notebook was over") for task in left}
                break
            with self._at_work(FORMULA_LIMITS, sitting.submission, formulas=True, until=until) as worker:
                while left:
                    task = left[0]
                    sitting.verdicts[task.id], found = self._judge_latex(task, sitting.latex[task.id], worker)
                    sitting.searches |= {task.id: found} if found else {}
                    left.pop(0)
            if worker.gone:
                task = left.pop(0)
                sitting.verdicts[task.id] = _failed(task, f"{task.entry} could not be evaluated: its process {worker.gone}")
        self._right |= {text: sitting.verdicts[task_id] for task_id, text in texts.items() if sitting.verdicts[task_id].passed}
        self._explain(sitting, until)

    def _judge_latex(self, task: Task, lines: Sequence[str], worker: Worker) -> tuple[Verdict, Search | None]:
        cases = self.cases(task)
        worker.tell("formula", LATEX_S, question=asdict(task.question), lines=[*lines], cases=task.sent(cases))
        results = [_latex_result(case, worker.hear(LATEX_S), len(lines)) for case in cases]
        verdict = self.judge(task, results)
        return verdict, search(task, verdict, results, self._remembered(task, task.answer, cases))

    def _explain(self, sitting: "_Sitting", until: float) -> None:
        """Say what would mend wrong answers in LaTeX, once all are judged: a process that is told what they should have given looks for it.

        No points depend on what it says, and if it is lost, nothing is said.
        """
        left = [*sitting.searches.items()]
        while left:
            with self._at_work(FORMULA_LIMITS, sitting.submission, formulas=True, until=until) as worker:
                while left:
                    task_id, found = left.pop(0)
                    words = self._slip(get_task(task_id), sitting.latex[task_id], found, worker)
                    sitting.verdicts[task_id] = found.told(sitting.verdicts[task_id], words)

    def _slip(self, task: Task, lines: Sequence[str], found: Search, worker: Worker) -> str:
        asked = {
            "question": asdict(task.question),
            "line": lines[found.line],
            "cases": task.sent(self.cases(task)),
            "wanted": [*found.wanted],
        }
        worker.tell("slip", LATEX_S, tolerance=task.tolerance, limit_s=SEARCH_S, **asked)
        return _text(worker.hear(LATEX_S).get("words"))[:MAX_WORDS].strip()

    def cases(self, task: Task) -> list[Case]:
        """Return the secret cases of a task."""
        if task.id not in self._cases:
            self._cases[task.id] = task.draw(np.random.default_rng([self._seed, _number(task.id)]))
        return self._cases[task.id]

    def judge(self, task: Task, results: Sequence[Result]) -> Verdict:
        """Return the verdict on what came back for the cases of a task."""
        with quiet():
            return judge(task, self.cases(task), results, expect=self._remembered)

    def _remembered(self, task: Task, function: Callable[..., Any], cases: Sequence[Case], nudge: str = "") -> list[Result]:
        key = task.id, repr(task.numbers), id(function), nudge
        if key not in self._expected:
            self._expected[key] = expected(task, function, cases, nudge)
        return self._expected[key]


class _Sitting:
    """One submission before the grader, from the first cell to the last."""

    def __init__(self, submission: Submission, worker: Worker, grader: Grader, asked: Mapping[str, str], within_s: float) -> None:
        self.submission, self.worker, self.asked, self.grader, self.limits = submission, worker, asked, grader, grader._limits
        self.verdicts: dict[str, Verdict] = {}
        self.notes: list[str] = []
        self.latex: dict[str, list[str]] = {}  # answers that another process is to evaluate
        self.searches: dict[str, Search] = {}  # for what would mend the wrong ones
        self._problems: dict[int, str] = {}
        self._defined: Mapping[str, list[int]] = {}
        self._task: Task | None = None
        self._where = "the notebook"
        self._flooded = False
        self.begun_at = time.monotonic()
        self._within_s, self.seconds = within_s, 0.0

    def hold(self, seed: int) -> None:
        """Run the cells in order, and judge each task where its check stands."""
        submission, limit = self.submission, self.limits.cell + GRACE_S
        self._tell(
            "begin",
            limit,
            cells=[cell.source for cell in submission.cells],
            numbers=[cell.number for cell in submission.cells],
            tasks={task.id: asdict(task.call) for task in submission.tasks},
            judged_after=submission.judged_after,
            answers=submission.answers,
            seed=seed,
            questions=submission.questions,
        )
        found = self._hear(limit)
        self._defined = found["defined"]  # said before anything of the learner's ran: it can be trusted
        ran = 0
        for position, tasks in groupby(
            sorted(submission.tasks, key=lambda task: found["at"][task.id]), key=lambda task: found["at"][task.id]
        ):
            self._run(range(ran, position))
            ran = position
            for task in tasks:
                self._judge(task, found["refusals"][task.id])
        self._run(range(ran, len(submission.cells)))

    def broken_off(self, reason: str) -> None:
        """The worker is gone: what is not judged by now gets no points."""
        self._heed_output()
        if self._task is not None:
            self.verdicts[self._task.id] = _failed(self._task, f"{self._task.entry} {reason}")
        self.notes.append(f"{self._where} {reason}")
        for task in (task for task in self.submission.tasks if task.id not in self.latex):
            self.verdicts.setdefault(task.id, _failed(task, f"not judged: {self._where} {reason}"))

    def _run(self, positions: Sequence[int]) -> None:
        limit = self.limits.cell
        if positions:
            self._where = f"code cell {self.submission.cells[positions[0]].number}"
            self._tell("cells", limit + GRACE_S, numbers=[*positions], limit=limit)
        for position in positions:
            cell = self.submission.cells[position]
            self._where = f"code cell {cell.number}"
            if problem := _text(self._hear(limit + GRACE_S).get("problem")):
                self._problems[position] = problem
                if cell.role == "other":
                    self.notes.append(f"code cell {cell.number}: {problem}")

    def _judge(self, task: Task, refusal: str) -> None:
        self._where, self._task = f"task {task.number}", task
        verdict = self._latex(task) if task.wants_latex and not refusal else self._verdict(task, refusal)
        self._task = None
        if verdict is None:
            return
        if task.kind == "repair" and not verdict.passed and self._is_untouched(task):
            verdict = _failed(task, untouched_message(task.entry))
        self.verdicts[task.id] = verdict

    def _verdict(self, task: Task, refusal: str) -> Verdict:
        if refusal:
            return _failed(task, refusal)
        cases, limit = self.grader.cases(task), self.limits.call
        results: list[Result] = []
        if THREADS in task.rules:
            self.worker.settle(SETTLE_S)
        self._tell("calls", limit + GRACE_S, task=task.id, cases=[dict(case.inputs) for case in cases], limit=limit)
        for case in cases:
            reply = self._hear(limit + GRACE_S)
            if reply.get("undefined") is True:
                return _failed(task, self._undefined(task))
            if refused := _text(reply.get("refused")):
                return _failed(task, f"{task.entry} calls {refused}, which would answer the task for you: write it yourself")
            if not (results and results[-1].problem):  # the judge looks no further
                results.append(_result(case, reply))
            if is_last(reply):
                break
        return self.grader.judge(task, [*results, *[results[-1]] * (len(cases) - len(results))])

    def _latex(self, task: Task) -> Verdict | None:
        """Take an answer in LaTeX down; a verdict if there is none."""
        limit = self.limits.call + GRACE_S
        self._tell("latex", limit, task=task.id)
        reply = self._hear(limit)
        if reply.get("undefined") is True:
            return _failed(task, self._undefined(task))
        lines = reply.get("lines")
        try:
            self.latex[task.id] = latex_lines(lines, task.entry, several=True)
        except AnswerError:
            return _failed(task, _text(reply.get("problem")).lstrip("=+-@") or f"{task.entry} came back in no form that can be judged")
        return None

    def _is_untouched(self, task: Task) -> bool:
        places = {*self.submission.answers[task.id], *self._defined[task.id]}
        return is_untouched([self.submission.cells[place].source for place in places], self.asked.get(task.id))

    def _undefined(self, task: Task) -> str:
        """The answer's name does not exist where it is judged."""
        answers = self.submission.answers[task.id]
        if failed := next((self._problems[position] for position in answers if position in self._problems), None):
            return f"the answer cell does not run: {failed}"
        if self._defined[task.id]:
            return f"{task.entry} is defined only below its check: a notebook is graded from top to bottom"
        if answers:
            return f"the answer cell does not define {task.entry}"
        return self.submission.strayed.get(task.id) or f"the answer cell is gone: a cell must define {task.entry}"

    def _tell(self, do: str, within_s: float, **message: Any) -> None:
        with self._within(within_s) as left:
            self.worker.tell(do, left, **message)

    def _hear(self, within_s: float) -> dict[str, Any]:
        with self._within(within_s) as left:
            reply = self.worker.hear(left)
        self._heed_output()
        return reply

    def _heed_output(self) -> None:
        """Tell once of a flood: nothing that is printed is kept, so that it costs no task."""
        if not self._flooded and self.worker.printed_bytes() > self.limits.output * MIB:
            self._flooded = True
            self.notes.append(f"{self._where} printed past the {self.limits.output:g} MiB of a notebook: the rest was thrown away")

    @contextmanager
    def _within(self, within_s: float) -> Iterator[float]:
        """How long something may take, so that the notebook keeps within its time."""
        left = max(0.0, self.begun_at + self._within_s - time.monotonic())
        try:
            yield min(within_s, left)
        except OutOfTime:
            if within_s < left:
                raise
            raise WorkerGone(f"was running when the time for the notebook was over ({self._within_s:.3g} s for its cells)") from None


def _result(case: Case, reply: Mapping[str, Any]) -> Result:
    """What a worker says of one case, taken as no more than arrays and text."""
    arrays, after = reply.get("arrays"), reply.get("after")
    problem = _text(reply.get("problem")).lstrip("=+-@")  # no formula in a spreadsheet
    if problem or not isinstance(arrays, tuple) or not all(_is_result(array) for array in arrays):
        problem = problem or "the answer came back in no form that can be judged"
        return Result(problem=problem, timed_out=reply.get("timed_out") is True, advice=_text(reply.get("advice")))
    changed = changed_input(case.inputs, after) if isinstance(after, dict) else None
    return Result(arrays, changed=changed, listed=_text(reply.get("listed")))


def _latex_result(case: Case, reply: Mapping[str, Any], lines: int) -> Result:
    """What comes back for one case of an answer in LaTeX: an array for each line, and of a derivation what its lines look like."""
    result, facts = _result(case, reply), reply.get("facts")
    if result.problem:
        return result
    if len(result.arrays or ()) != lines or not (facts is None or _are_facts(facts)):
        return Result(problem="the answer came back in no form that can be judged")
    return replace(result, facts=facts)


def _are_facts(facts: Any) -> bool:
    if not isinstance(facts, dict) or not isinstance(facts.get("changed"), list):
        return False
    return all(type(one) is bool for one in (facts.get("begins"), facts.get("ends"), *facts["changed"]))


def _is_result(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.dtype.itemsize >= 4


def _text(value: Any) -> str:
    """A text of the learner's making: short, on one line, without control characters."""
    text = value if isinstance(value, str) else ""
    return "".join(sign if sign.isprintable() else " " for sign in text[:MAX_TEXT])


def _failed(task: Task, message: str) -> Verdict:
    return Verdict(task.id, task.title, False, 0, task.points, message, equation=task.equation)


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:4], "big")
