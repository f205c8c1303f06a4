"""A page for a student: each task with its points, what is wrong, and what to try."""

from attn_course.classroom.marks import Marked, remarks, status_of
from attn_course.classroom.pages import page
from attn_course.numbers import cite, lesson_called
from attn_course.tasks.core import Verdict

SIGNS = {
    "passed": "✓ passed",
    "partly": "◐ partly right",
    "failed": "✗ not right",
    "unanswered": "○ not answered",
    "not judged": "! not judged",
    "decided": "✎ decided by the teacher",
}


def feedback_page(marked: Marked, site: str = "") -> str:
    """Return the feedback on a notebook that was handed in, as HTML; `site`: where the course's pages are, to link to."""
    judged = marked.verdicts if marked.status != "not judged" else ()
    lines = {kind: [verdict for verdict in judged if _in_a_line(verdict, marked) == kind] for kind in ("unanswered", "passed")}
    return page(
        "feedback.html",
        title=f"{marked.assignment or marked.notebook}: feedback for {marked.who}",
        heading=lesson_called(marked.lesson) if marked.lesson is not None else marked.assignment or marked.notebook,
        site=site.rstrip("/"),
        marked=marked,
        remarks=remarks(marked),
        signs=SIGNS,
        marks=[(verdict, status_of(verdict, marked)) for verdict in judged],
        tasks=[_with_advice(verdict, marked) for verdict in judged if _in_a_line(verdict, marked) is None],
        lines=lines,
        next=next((verdict for verdict in judged if status_of(verdict, marked) not in ("passed", "decided")), None),
        begun=any(status_of(verdict, marked) != "unanswered" for verdict in judged),
    )


def _in_a_line(verdict: Verdict, marked: Marked) -> str | None:
    """What a line says of a task, if it says all: it is passed, or has no answer, and the teacher has decided nothing about it."""
    status = status_of(verdict, marked)
    return status if status in ("passed", "unanswered") and marked.decided_on(verdict.task) is None else None


def _with_advice(verdict: Verdict, marked: Marked) -> tuple[Verdict, str, str, str]:
    """A verdict with its status, the name of the answer, and the hint: its own, else the task's first, but after an error of form."""
    from attn_course.tasks import UnknownTask, get_task

    try:
        task = get_task(verdict.task)
    except UnknownTask:
        return verdict, status_of(verdict, marked), "", verdict.hint or ""
    return verdict, status_of(verdict, marked), task.entry, cite(task.hints[0]) if verdict.hint is None else verdict.hint
