"""The page that shows, side by side, what pairs of submissions share."""

from collections.abc import Mapping, Sequence

from attn_course.grading.page import page, plain
from attn_course.grading.similarity import Pair, Passage

_SIDES = "<style>.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}pre{white-space:pre-wrap;margin:.3rem 0}</style>"
_ADVICE = (
    "Names, layout, comments and annotations were taken away before comparing; code that the exercise shows, and code that a "
    "quarter of the class shares, was left out. Two people can write the same short function, and one teacher's hint can be "
    "seen in many answers: this is a reason to look and to ask, never a proof."
)


def similarity_page(chapters: Mapping[str, Sequence[Pair]], n_submissions: int) -> str:
    """Return the report.

    Parameters
    ----------
    chapters : mapping of str to sequence of Pair
        For each assignment its pairs, the most alike first.
    n_submissions : int
        How many notebooks were compared.

    Returns
    -------
    page : str
        HTML that stands alone; what students wrote is escaped.
    """
    body = ["<h1>Similar submissions</h1>", f'<p class="soft">{n_submissions} notebooks compared. {plain(_ADVICE)}</p>', _SIDES]
    for name, pairs in chapters.items():
        body.append(f"<h2>{plain(name)}</h2>")
        body += [_pair(pair) for pair in pairs] or ["<p>No pair stands out.</p>"]
    return page("Similar submissions", "\n".join(body))


def _pair(pair: Pair) -> str:
    left, right = (plain(student) for student in pair.students)
    heading = f"{left} and {right}: {pair.share:.0%} of the shorter one, {pair.rows} rows of tokens"
    columns = (f"<div><b>{who}</b>{_passages(side)}</div>" for who, side in zip((left, right), pair.passages, strict=True))
    return f'<section class="task other"><h3>{heading}</h3><div class="sides">{"".join(columns)}</div></section>'


def _passages(passages: Sequence[Passage]) -> str:
    return "".join(
        f'<p class="soft">code cell {each.cell + 1}, from line {each.first}</p><pre><code>{plain(each.text)}</code></pre>'
        for each in passages
    )
