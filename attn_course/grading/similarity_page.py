"""The page that shows, side by side, what pairs of submissions share."""

from collections.abc import Mapping, Sequence

from attn_course.grading.page import counted, page, plain
from attn_course.grading.similarity import Common, Comparison, Pair, Passage, groups
from attn_course.numbers import task_number

_SIDES = "<style>.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}pre{white-space:pre-wrap;margin:.3rem 0}</style>"
_ADVICE = (
    "Names, layout, comments and annotations were taken away before comparing, and code that the exercise or its lesson shows was "
    "left out; so was short code that more than a quarter of the class shares, which is listed below each chapter. A "
    "percentage says how much of what then remains of the shorter notebook stands in the other too. Two people can write the same "
    "short function, and one teacher's hint can be seen in many answers: this is a reason to look and to ask, never a proof."
)


def similarity_page(chapters: Mapping[str, Comparison], n_submissions: int, tasks: Mapping[str, Mapping[str, str]]) -> str:
    """Return the report.

    Parameters
    ----------
    chapters : mapping of str to Comparison
        For each assignment what comparing it brought.
    n_submissions : int
        How many notebooks were compared.
    tasks : mapping of str to mapping of str to str
        For each assignment and name of an answer, such as "my_softmax", its task, such as "stable-softmax".

    Returns
    -------
    page : str
        HTML that stands alone; what students wrote is escaped.
    """
    body = ["<h1>Similar submissions</h1>", f'<p class="soft">{n_submissions} notebooks compared. {plain(_ADVICE)}</p>', _SIDES]
    for name, found in chapters.items():
        body.append(f"<h2>{plain(name)}</h2>")
        body += [_group(students, pairs) for students, pairs in groups(found.pairs)] or ["<p>No pair stands out.</p>"]
        if found.left_out:
            body.append(_left_out(found.left_out, tasks.get(name, {})))
    return page("Similar submissions", "\n".join(body))


def _group(students: Sequence[str], pairs: Sequence[Pair]) -> str:
    """The pair, or the most alike of a group."""
    pair = pairs[0]
    left, right = (plain(student) for student in pair.students)
    about = f"{pair.share:.0%} of the shorter one's own code, {counted(pair.lines, 'line')}"
    heading, note = f"{left} and {right}: {about}", ""
    if len(students) > 2:
        heading = f"{len(students)} students are alike: {', '.join(map(plain, students))}"
        note = f'<p class="soft">Of {len(pairs)} pairs among them, the most alike is shown: {left} and {right}, {about}.</p>'
    columns = (f"<div><b>{who}</b>{_passages(side)}</div>" for who, side in zip((left, right), pair.passages, strict=True))
    return f'<section class="task other"><h3>{heading}</h3>{note}<div class="sides">{"".join(columns)}</div></section>'


def _left_out(found: Sequence[Common], tasks: Mapping[str, str]) -> str:
    """The folded list of what many share."""
    items = "".join(
        f"<p>{plain(_answer(each.name, tasks))}: {counted(each.lines, 'line')}, shared by {len(each.students)}: "
        f"{', '.join(map(plain, each.students))}</p><pre><code>{plain(each.text)}</code></pre>"
        for each in found
    )
    pieces, sharing = counted(len(found), "piece"), len(found[0].students)
    summary = f"Not counted because many share it: {pieces} of code, the most common by {sharing} students"
    return f"<details><summary>{summary}</summary>{items}</details>"


def _answer(name: str, tasks: Mapping[str, str]) -> str:
    return f"{name} (task {task_number(tasks[name])})" if name in tasks else name or "other code"


def _passages(passages: Sequence[Passage]) -> str:
    return "".join(
        f'<p class="soft">code cell {each.cell + 1}, from line {each.first}</p><pre><code>{plain(each.text)}</code></pre>'
        for each in passages
    )
