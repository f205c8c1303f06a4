"""A page for a student: each task with its points, what is wrong, and what to try."""

from attn_course.classroom.marks import Marked, remarks, status_of
from attn_course.classroom.pages import page
from attn_course.numbers import cite, lesson_number
from attn_course.tasks.core import Verdict

_SIGNS = {
    "passed": "✓ passed",
    "partly": "◐ partly right",
    "failed": "✗ not right",
    "unanswered": "○ not answered",
    "not judged": "! not judged",
    "decided": "✎ decided by the teacher",
}


def feedback_page(marked: Marked) -> str:
    """Return the feedback on a notebook that was handed in, as HTML."""
    return page(
        "feedback.html",
        title=f"{marked.assignment or marked.notebook}: feedback for {marked.who}",
        chapter=f"chapter {lesson_number(marked.lesson)}" if marked.lesson is not None else "no chapter of the course",
        marked=marked,
        remarks=remarks(marked),
        signs=_SIGNS,
        tasks=[_with_advice(verdict, marked) for verdict in marked.verdicts if marked.status != "not judged"],
    )


def _with_advice(verdict: Verdict, marked: Marked) -> tuple[Verdict, str, str, str]:
    """A verdict with its status, the name of the answer, and the hint: its own, else the task's first, but after an error of form."""
    from attn_course.tasks import UnknownTask, get_task

    try:
        task = get_task(verdict.task)
    except UnknownTask:
        return verdict, status_of(verdict, marked), "", verdict.hint or ""
    return verdict, status_of(verdict, marked), task.entry, cite(task.hints[0]) if verdict.hint is None else verdict.hint
