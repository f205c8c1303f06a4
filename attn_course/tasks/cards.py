"""What a notebook shows of a checked answer: a small green card, or one in sentences that says what is not right.

Cards are plain HTML without scripts. Colours are JupyterLab's own where it has them, so that they suit light and dark pages; it takes
variables out of a notebook that it does not trust, so each has a plain colour before it.
"""

import html
import re
from pathlib import Path

from attn_course.numbers import counted, eq, lesson_number, lesson_of, task_number
from attn_course.tasks.core import Task, Verdict
from attn_course.tasks.slips import CUT
from attn_course.tasks.wording import compared

LESSONS = ("lessons", "../notebooks")  # seen from an exercise
VERDICT_MIME = "application/vnd.attn-course.verdict+json"
SCROLLS = "overflow-x:auto;overflow-y:hidden;padding:.15em 0"  # what is wider than the page
_CARD = "padding:.45em .9em;margin:.3em 0;line-height:1.5;box-sizing:border-box"
_BAR = "border-left:4px solid {0};border-left-color:var(--jp-{1}-color1,{0})"
_GREEN = f"{_BAR.format('#009E73', 'success')};background:rgba(0,158,115,.12);{_CARD};width:fit-content"
_RED = f"border-left:4px solid #D55E00;background:rgba(213,94,0,.08);{_CARD}"
_LATEX = re.compile(r"`[^`]*\\[a-z]{2}")  # a hint that quotes formulas
_LOWER = re.compile(r"(?:this|it|line|every|first|at|for) ")  # how a reason begins that does not begin with a name


def passed(task: Task) -> dict[str, str]:
    """Return what a passed check displays, by MIME type: the same whatever the answer was, so that it can be stored."""
    cases = f" in {counted(task.n_cases, 'case')}" if task.n_cases > 1 else ""
    worth = "" if task.your_turn else f": {task.worth}"
    card = (
        f'<div role="status" class="attn-check-passed" style="{_GREEN}"><b>✓ Task {_inline(task.number)}, {_inline(task.title)}.</b> '
        f"Right{cases}{worth}.</div>"
    )
    return {"text/html": card, "text/plain": task.ok_line}


def plain(verdict: Verdict) -> str:
    """Return the reason of a failed check as plain text."""
    hint = f"\n  Hint: {verdict.hint}" if verdict.hint else ""
    see = f"\n  See {eq(verdict.equation)}." if verdict.equation else ""
    formula = f"\n  {verdict.lead} {verdict.formula}" if verdict.formula else ""
    return f"task {task_number(verdict.task)} ({verdict.title}): {verdict.message}{formula}{hint}{see}"


def rich(verdict: Verdict) -> str:
    """Return the reason of a failed check as HTML: what was read, what is true of the result, the hint, and where to look."""
    said, _, where = verdict.message.partition("\n")
    said, pair, place, after = compared(said)
    width = max((len(name) for name, _ in pair), default=0)
    told = "\n".join(f"{name:{width}}  <b>{html.escape(number)}</b>" for name, number in pair)
    read = f"{verdict.lead} $\\displaystyle {html.escape(verdict.formula)}$." if verdict.formula else ""
    hint = _inline(_sentence(verdict.hint), latex=_LATEX.search(verdict.hint) is not None) if verdict.hint else ""
    parts = [
        f"<b>✗ Task {_inline(task_number(verdict.task))}, {_inline(verdict.title)}: not right yet.</b>",
        f'<div style="{SCROLLS}">{read}</div>' if read else "",
        _said(said, open_end=bool(where), latex=verdict.latex),
        _lines(told),
        _said(place, latex=verdict.latex),
        _said(after, open_end=bool(where), latex=verdict.latex),
        _lines(html.escape(where)),
        f'<div style="margin-top:.4em"><b>Hint:</b> {hint}</div>' if hint else "",
        f'<div style="margin-top:.4em">See {_linked(verdict.equation)}.</div>' if verdict.equation else "",
    ]
    return f'<div role="status" class="attn-check-failed" style="{_RED}">{"".join(parts)}</div>'


def _said(text: str, *, open_end: bool = False, latex: bool = False) -> str:
    return f"<div>{_inline(_sentence(text, open_end=open_end), latex=latex)}</div>" if text else ""


def _lines(markup: str) -> str:
    return f'<pre style="margin:.4em 0;{SCROLLS};white-space:pre;font-family:monospace;background:none">{markup}</pre>' if markup else ""


def _linked(label: str) -> str:
    """How an equation is referred to, as a link to its lesson where that lies beside the notebook that is running."""
    slug, words = lesson_of("labels", label), _inline(eq(label))
    name = f"{lesson_number(slug):0>2}_{slug}.ipynb"
    folder = next((folder for folder in LESSONS if Path(folder, name).is_file()), None)
    return f'<a href="{folder}/{name}">{words}</a>' if folder else words


def _sentence(text: str, *, open_end: bool = False) -> str:
    """The text with a capital where it does not begin with a name, and a full stop unless it goes on."""
    text = text[:1].upper() + text[1:] if _LOWER.match(text) else text
    return text if open_end or text.endswith((".", "!", "?", ":")) else f"{text}."


def _inline(text: str, *, latex: bool = False) -> str:
    """Escaped text, with `code` in its own type, or as a formula if it is one and whole, and *stressed* words in italics."""

    def quoted(found: re.Match[str]) -> str:
        if found[2]:
            return f"<em>{found[2]}</em>"
        return f"${found[1]}$" if latex and CUT not in found[1] else f"<code>{found[1]}</code>"

    return re.sub(r"`([^`]+)`|(?<![\w*])\*([a-z]+)\*(?![\w*])", quoted, html.escape(text))
