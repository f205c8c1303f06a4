"""A page for a student: each task with its points, what is wrong, and what to try."""

import re
from collections.abc import Sequence

from attn_course.grading.class_marks import Marked, remarks, status_of
from attn_course.grading.page import page, plain, prose
from attn_course.numbers import cite, eq, lesson_number, task_number
from attn_course.tasks.core import Verdict

_SIGNS = {"passed": "✓ passed", "failed": "✗ not right", "unanswered": "○ not answered", "not judged": "! not judged"}
_FIRST_WORD = re.compile(r"(a|[a-z]{2,})(?:$|(?=[,:;]|['’]s? )|(?= (?:[^=/+*<>@^-]|-\d)))")  # not d_k, x[0], lse(z) or shares = ...
_NAMES = ("beta", "exp", "ln", "lse", "tanh", "torch")  # small also where a sentence begins


def feedback_page(marked: Marked) -> str:
    """Return the feedback on one notebook.

    Parameters
    ----------
    marked : Marked
        A notebook that was handed in, with its marks.

    Returns
    -------
    page : str
        HTML that stands alone; everything that a student could have written is escaped.
    """
    title = f"{marked.assignment or marked.notebook}: feedback for {marked.student}"
    chapter = f"chapter {lesson_number(marked.lesson)}" if marked.lesson is not None else "no chapter of the course"
    parts = [
        f"<h1>{plain(marked.assignment or marked.notebook)}</h1>",
        f'<p class="soft">{plain(marked.student)} · {plain(marked.notebook)} · {chapter}</p>',
        f'<p class="total">{marked.points} of {marked.max_points} points</p>',
        *([] if marked.counts else ["<p>This notebook does not count.</p>"]),
        _remarks(marked),
        *(_task(verdict, status_of(verdict, marked)) for verdict in marked.verdicts if marked.status != "not judged"),
    ]
    return page(title, "\n".join(part for part in parts if part))


def _remarks(marked: Marked) -> str:
    said = [text for _, text in remarks(marked)]
    return f"<h2>About this notebook</h2>\n<ul>{''.join(f'<li>{plain(text)}</li>' for text in said)}</ul>" if said else ""


def _task(verdict: Verdict, status: str) -> str:
    kind = status if status in ("passed", "failed") else "other"
    points = f"<div>{verdict.points} of {verdict.max_points}</div>"
    lines: Sequence[str] = [
        f'<section class="task {kind}">',
        f'<div class="head"><h3>{plain(task_number(verdict.task))} {prose(verdict.title)}</h3>{points}</div>',
        f'<p class="word">{_SIGNS.get(status, status)}</p>',
        *([] if verdict.passed else _reasons(verdict)),
        *([f'<p class="soft">{plain(eq(verdict.equation))}</p>'] if verdict.equation else []),
        "</section>",
    ]
    return "\n".join(lines)


def _reasons(verdict: Verdict) -> list[str]:
    entry, hint = _entry_and_first_hint(verdict.task)
    lines = [f'<p class="said">{prose(sentence(verdict.message, entry))}</p>']
    if verdict.mistake and verdict.mistake not in verdict.message:
        lines.append(f"<p><b>Known mistake:</b> {prose(verdict.mistake)}</p>")
    if hint := verdict.hint or hint:
        lines.append(f"<p><b>Hint:</b> {prose(sentence(hint, entry))}</p>")
    return lines


def sentence(text: str, entry: str = "") -> str:
    """Return a text with a capital letter in front, unless it begins with code or mathematics.

    Parameters
    ----------
    text : str
        A message or a hint.
    entry : str, optional
        The name of the answer, which stays as it is.

    Returns
    -------
    text : str
        The sentence.

    Examples
    --------
    >>> sentence("rows sum to 1"), sentence("my_softmax is not right"), sentence("exp overflows"), sentence("s (1 - s) is small")
    ('Rows sum to 1', 'my_softmax is not right', 'exp overflows', 's (1 - s) is small')
    """
    word = _FIRST_WORD.match(text)
    is_name = word is None or word[1] in (entry, *_NAMES)
    return text if is_name else text[0].upper() + text[1:]


def _entry_and_first_hint(task_id: str) -> tuple[str, str]:
    from attn_course.tasks import UnknownTask, get_task

    try:
        task = get_task(task_id)
    except UnknownTask:
        return "", ""
    return task.entry, cite(task.hints[0])
