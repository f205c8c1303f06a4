"""Predictions: what answers one is folded, no question goes without, and no text in view gives an answer away."""

import nbformat
import pytest

from attn_course.authoring.notebook import assemble
from attn_course.authoring.predictions import asking_findings, fold, spoilt_findings, unquoted
from attn_course.authoring.sealed import Record
from attn_course.authoring.source import Cell


def book(*cells):
    """A notebook of (id, kind, text, tag, what it printed)."""
    made = [Cell(name, kind, text, (tag,) if tag else ()) for name, kind, text, tag, _ in cells]
    notebook = assemble([fold(cell) for cell in made], Record("notebooks/src/toy.py", "", ""))
    for cell, (*_, printed) in zip(notebook.cells, cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
    return notebook


ASK = ("ask", "markdown", "Two keys. **Predict** the weight.", "", "")
RUN = ("run", "code", "print(weight)", "predicted", "0.73\n")
TURN = ("turn", "code", 'my_weight = ...\ncheck("weight", my_weight)', "your-turn", "")
OURS = ("ours", "markdown", "Ours is a sum.", "ours", "")
ANSWER = ("told", "markdown", "It is 0.73, because one score is larger.", "answer", "")


def test_output_and_answer_are_folded():
    _, run, told = book(ASK, RUN, ANSWER).cells
    assert run.metadata == {"tags": ["predicted", "hide-output"], "jupyter": {"outputs_hidden": True}}
    assert book(("set-up", "code", "weight = 0.73", "hide-input", "")).cells[0].metadata.jupyter == {"source_hidden": True}
    first, *_, last = told.source.splitlines()
    assert (first, last) == ('<details class="answer"><summary>What came out</summary>', "</details>")
    assert book(TURN, OURS).cells[1].source.startswith('<details class="answer ours"><summary>Our answer</summary>')


def test_a_paragraph_that_asks_has_a_bar_which_the_site_takes_off():
    text = "## 2.1\n\nTwo keys\nand **one** more.\n\nHere. **Predict** the weight.\n\n```\n1\n```\n\n**Your turn.** Write it."
    asked = fold(Cell("ask", "markdown", text, ())).text
    assert asked == text.replace(" **Predict", "\n>**Predict").replace("**Your", ">**Your")
    assert unquoted(asked).split() == text.split()


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ([ASK, RUN, ANSWER], []),
        ([ASK], ["ask"]),
        ([ASK, ("early", "code", "print(weight)", "", "0.73\n"), RUN], ["ask", "run"]),
        ([ASK, ("again", *ASK[1:]), RUN], ["ask"]),
        ([RUN], ["run"]),
        ([ASK, RUN, ("next", "markdown", "Now for more.", "", ""), ANSWER], ["told"]),
        ([ASK, RUN, ("told", "markdown", "It is large. **Predict** more.", "answer", ""), ("run2", *RUN[1:])], ["told"]),
        ([ASK, ("run", "code", "print(weight)", "answer", "")], ["run", "ask"]),
        ([TURN, OURS], []),
        ([TURN, ("next", "markdown", "Now for more.", "", ""), OURS], ["ours"]),
        ([TURN, ("ours", "code", "print(weight)", "ours", "")], ["ours"]),
    ],
)
def test_questions_outputs_and_answers_belong_together(cells, found):
    assert [cell for cell, _ in asking_findings(book(*cells))] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("So 0.73 of the value arrives.", ["later"]),
        ("Eq. (0.73) says so, and arXiv:1706.03762.", []),  # tags count for nothing
        ("So most of the value arrives, 7 of 9 parts.", []),
    ],
)
def test_no_number_of_a_folded_output_stands_in_view(text, found):
    later = ("later", "markdown", text, "", "")
    assert [cell for cell, _ in spoilt_findings(book(ASK, RUN, ANSWER, later))] == found
    assert not [*spoilt_findings(book(ASK, RUN, ANSWER, ("ask2", *ASK[1:]), later))]  # the next question is there
    known = ("ask", "markdown", "A score of 0.73. **Predict** the weight.", "", "")
    assert not [*spoilt_findings(book(known, RUN, ANSWER, later))]  # and here it was told before
