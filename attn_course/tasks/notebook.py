"""`check("stable-softmax", answer)`: run and judge in the learner's own notebook, for feedback at once."""

import contextlib
import io
import linecache
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from attn_course.numbers import task_number
from attn_course.tasks import progress
from attn_course.tasks.cards import VERDICT_MIME, passed, plain, rich
from attn_course.tasks.core import CHECK_SEED, Task, Verdict
from attn_course.tasks.judge import Expected, expected, judge
from attn_course.tasks.latex import answered
from attn_course.tasks.mending import explained
from attn_course.tasks.registry import get_task
from attn_course.tasks.run import TIME_LIMIT_S, quiet, run
from attn_course.tasks.source import answer_source, binds, course_uses, forbidden_calls, has_dots, import_what_is_named, unread
from attn_course.tasks.variants import shell, student

PRINTED_CHARACTERS = 2_000
WAITING = "your turn: replace the dots"
NOT_RECORDED = "Your progress is not recorded: "


class CheckFailed(AssertionError):
    """The answer to a task is not right; the text says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(plain(verdict))
        self.verdict = verdict

    def _render_traceback_(self) -> list[str]:
        """One line, for IPython: not our stack, and not the whole reason again, which `check` has displayed above.

        The underlined name is how the style sheet of `attn-course lab` knows this strip, which it hides.
        """
        finding = f"“{self.verdict.mistake}”" if self.verdict.mistake else "not right yet"
        return [f"\x1b[4mCheckFailed\x1b[24m: task {task_number(self.verdict.task)}, {finding}; the reason stands above"]


def check(task_id: str, answer: Any) -> None:
    """Check an answer: show that it is right, else raise with the reason.

    `answer`: the function, expression or number that the task asks for. Raises CheckFailed if the answer is not right; the message
    names the mistake if it is a known one; ValueError if there is no such task, or the record of the learner's progress is damaged.

    This check is advice to the learner. Marks for a class are given elsewhere, on fresh cases. What the answer itself
    prints is shown only when it fails, so that a forgotten `print` does not spoil what is stored. Where work/ cannot be
    written to, the verdict stands and one line more says why it is not recorded. A notebook shows a card, with one line
    for front ends without HTML; elsewhere that line is printed. In a lesson, a task that waits for its reader prints one
    fixed line while the answer is `...`, or a cell that is to be filled still holds dots.
    """
    with quiet():  # a first call loads the chapter
        task = get_task(task_id).variant(student())
    cells, names = _notebook_context()
    if task.your_turn and (answer is ... or _is_open(task, [*cells, _cell_of(sys._getframe(1))])):
        print(WAITING)
        return
    printed = _Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        verdict = assess(task, answer, cells, names)
    trouble = _record(verdict)
    if not verdict.passed:
        if printed.getvalue():
            print(printed.getvalue().rstrip("\n"))
        if shell() is not None:
            _display({"text/html": rich(verdict), "text/plain": plain(verdict), VERDICT_MIME: verdict.to_dict()})
        _say_not_recorded(trouble)
        raise CheckFailed(verdict) from (trouble if isinstance(trouble, ValueError) else None)
    if shell() is None:
        print(verdict.message)
    else:
        _display(passed(task))
    _say_not_recorded(trouble)
    if isinstance(trouble, ValueError):  # said last, so that it keeps nobody from the verdict
        raise trouble


def assess(
    task: Task,
    answer: Any,
    cells: Sequence[str] = (),
    names: Mapping[str, Any] | None = None,
    *,
    seed: int = CHECK_SEED,
    time_limit_s: float = TIME_LIMIT_S,
    expect: Expected | None = None,
) -> Verdict:
    """Run and judge an answer in this process.

    `cells`: texts of the notebook's cells run so far, where forbidden calls are looked for. `names`: the notebook's global names.
    `seed`: draws the cases. `time_limit_s`: longest time for one case, in seconds. `expect`: as `judge` takes it.
    """
    with quiet():  # also where a learner turned warnings into errors: neither our cases nor our answers are to raise
        return _assess(task, answer, cells, names, seed, time_limit_s, expect)


def _assess(
    task: Task,
    answer: Any,
    cells: Sequence[str],
    names: Mapping[str, Any] | None,
    seed: int,
    time_limit_s: float,
    expect: Expected | None,
) -> Verdict:
    given = {function.__name__ for function in task.given}
    source = answer_source(answer, task.entry, cells, given)
    own = {name: value for name, value in (names or getattr(answer, "__globals__", {})).items() if name not in given}
    if refusal := _unread(task, cells) or _refusal(task, answer, source, own):
        return Verdict(task.id, task.title, False, 0, task.points, refusal, equation=task.equation)
    cases = task.draw(np.random.default_rng(seed))
    if task.wants_latex:
        results = answered(task.question, answer, task.blank(cases))
        verdict = judge(task, cases, results, expect=expect)
        if verdict.passed:
            return verdict
        return explained(task, answer, cases, verdict, results, (expect or expected)(task, task.answer, cases))
    import_what_is_named(source)
    results = run(answer, [case.inputs for case in cases], task.call, time_limit_s=time_limit_s)
    return judge(task, cases, results, expect=expect)


def _is_open(task: Task, cells: Sequence[str]) -> bool:
    """Whether the newest cell that answers a task, where that is a whole cell, still has dots in it."""
    newest = next((cell for cell in reversed(cells) if binds(cell, task.entry)), "")
    return task.sheet is not None and task.sheet.is_verbatim and has_dots(newest)


def _unread(task: Task, cells: Sequence[str]) -> str:
    """Say that the answer's cell was no Python when it was run, so that what would be judged is an older answer."""
    if (error := unread(task.entry, cells)) is None:
        return ""
    where = f"{error.msg}, line {error.lineno} of the cell"
    return f"the cell with {task.entry} has a syntax error ({where}), and the answer before it still stands: mend it and run it"


def _refusal(task: Task, answer: Any, source: str, names: Mapping[str, Any]) -> str:
    """Why an answer is not even run: it uses what would answer the task, in its text or as the answer itself."""
    itself = {task.entry: answer}
    if found := course_uses(task.entry, itself) or course_uses(source, names):
        return f"{task.entry} uses {', '.join(found)}, the course's own answer: write it yourself"
    if found := forbidden_calls(task.entry, task.rules, itself) or forbidden_calls(source, task.rules, names):
        return f"{task.entry} uses {', '.join(found)}, which would answer the task for you: write it yourself"
    return ""


def _record(verdict: Verdict) -> ValueError | OSError | None:
    """Remember the verdict if we are in a course's work/ folder; return what kept us from it: a damaged record, or the disk."""
    try:
        root = _course()
        if root is not None:
            progress.record(verdict, root)
    except (ValueError, OSError) as error:
        return error
    return None


def _course() -> Path | None:
    """The course whose work/ folder the kernel was started in; where we are now counts only where that is none."""
    running = shell()
    root = progress.course_root(Path(running.starting_dir)) if running is not None else None
    return root or progress.course_root()  # a cell may have left the folder, or deleted it


def _say_not_recorded(trouble: Exception | None) -> None:
    if isinstance(trouble, OSError):
        place = f" ({trouble.filename})" if trouble.filename else ""
        print(f"{NOT_RECORDED}{trouble.strerror or trouble}{place}")


class _Printed(io.StringIO):
    """Keeps the beginning of what an answer prints; a loop may print without end."""

    def write(self, text: str) -> int:
        if self.tell() < PRINTED_CHARACTERS:
            super().write(text[:PRINTED_CHARACTERS])
        return len(text)


def _cell_of(frame: FrameType) -> str:
    """The source of the cell that a frame runs, which IPython also knows where it keeps no history, as under nbval."""
    return "".join(linecache.getlines(frame.f_code.co_filename)) if shell() is not None else ""


def _notebook_context() -> tuple[list[str], dict[str, Any]]:
    """The cells run so far and the global names, if we are inside IPython; `In` may have become something else by now."""
    running = shell()
    if running is None:
        return [], {}
    cells = getattr(getattr(running, "history_manager", None), "input_hist_parsed", None)
    return [cell for cell in cells or [] if isinstance(cell, str)], dict(running.user_ns)


def _display(bundle: dict[str, Any]) -> None:
    from IPython.core.display_functions import publish_display_data

    publish_display_data(bundle)
