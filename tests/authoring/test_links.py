"""Links in a built notebook lead to files that exist."""

import nbformat
import pytest

from attn_course.authoring.links import dead_links


def dead(markdown, root):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(markdown, id="text")])
    return [link for _, link in dead_links(notebook, root / "notebooks", root)]


@pytest.fixture
def course_folder(tmp_path):
    for name in ("notebooks/02_softmax.ipynb", "exercises/ex_02_softmax.ipynb", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "markdown",
    [
        "[next](02_softmax.ipynb)",
        "[section](02_softmax.ipynb#section-2)",
        "[exercises](../work/ex_02_softmax.ipynb)",
        "[here](#summary)",
        "[paper](https://arxiv.org/abs/1706.03762)",
        "<a href='../README.md'>start</a>",
        "`[code](nowhere.md)` and\n```\n[code](nowhere.md)\n```",
        "the interval [0, 1] (closed)",
    ],
)
def test_a_link_that_leads_somewhere_is_fine(course_folder, markdown):
    assert dead(markdown, course_folder) == []


@pytest.mark.parametrize(
    ("markdown", "link"),
    [
        ("[next](03_scores.ipynb)", "03_scores.ipynb"),
        ("[exercises](../work/03_scores.ipynb)", "../work/03_scores.ipynb"),
        ("<img src=\"figure.png\">", "figure.png"),
        ("[away](../../outside.md)", "../../outside.md"),
        ("[note]: nowhere.md", "nowhere.md"),
    ],
)  # fmt: skip
def test_a_link_that_leads_nowhere_is_found(course_folder, markdown, link):
    assert dead(markdown, course_folder) == [link]


def test_a_dead_link_is_a_problem_of_its_cell(built):
    built.edit("notebooks/src/double.py", "ex_{lesson}`double`_double.ipynb", "ex_03_half.ipynb")
    built.build()
    (problem,) = built.check()
    assert (problem.cell, problem.message) == ("title", "wanted links to files that exist, got '../work/ex_03_half.ipynb'")
