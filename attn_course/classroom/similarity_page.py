"""The page that shows, side by side, what pairs of submissions share."""

from collections.abc import Mapping

from attn_course.classroom.pages import page
from attn_course.classroom.similarity import Comparison, groups


def similarity_page(chapters: Mapping[str, Comparison], n_submissions: int, tasks: Mapping[str, Mapping[str, str]]) -> str:
    """Return the report as HTML.

    `chapters`: for each assignment what comparing it brought. `n_submissions`: how many notebooks were compared. `tasks`: for
    each assignment and name of an answer, such as "my_softmax", its task, such as "stable-softmax".
    """
    found = [(name, groups(comparison.pairs), comparison.left_out) for name, comparison in chapters.items()]
    return page("similarity.html", title="Similar submissions", n_submissions=n_submissions, chapters=found, tasks=tasks)
