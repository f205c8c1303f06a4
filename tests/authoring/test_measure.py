"""A lesson of sixty minutes: everything that is bounded is counted, and each bound can fail alone."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from attn_course.authoring import gates, measure
from attn_course.authoring.series import Lesson

KEYS = r"$$\boxed{a = b} \tag{2.1}$$ $$\boxed{b = c} \tag{2.2}$$ $$\boxed{c = d} \tag{2.3}$$"
TURN = ("code", "mine = ...\ncheck('{}', mine)", "your-turn")
CELLS = [
    ("markdown", "# 2 Doubling\nSix words and $x$ more. **Time:** 14 minutes."),
    ("code", "x = 1"),
    ("code", "figures.machine()"),
    ("markdown", f"## 2.1 Sums\nA **sum** has **Two parts** {KEYS}"),
    ("code", "figures.sums(x)", "predicted"),
    ("code", TURN[1].format("first"), "your-turn"),
    ("code", TURN[1].format("second"), "your-turn"),
    ("markdown", "## Formula card\n$$a = b$$"),
    ("markdown", "## Summary\nDone."),
    ("markdown", "## 2.2 Deeper: halves\n" + "word " * 3000 + r"**half** $$x = 2 \tag{2.4}$$"),
    ("code", "figures.halves(x)", "predicted"),
    ("markdown", "## Sources\nOld."),
]
MINUTES = {"first": 4, "second": 5}
LESSON = Lesson("double", "Double", minutes=14, measured=True)  # 25 words, 1 prediction, 9 of turns, 3 lines


def book(*more: tuple[str, ...], change: tuple[str, str] = ("", ""), at: int = 7) -> NotebookNode:
    cells = []
    for kind, source, *tags in [*CELLS[:at], *more, *CELLS[at:]]:
        make = new_code_cell if kind == "code" else new_markdown_cell
        cells.append(make(source.replace(*change) if change[0] else source, metadata={"tags": tags}))
    return new_notebook(cells=cells)


def found(notebook: NotebookNode, lesson: Lesson = LESSON) -> list[str]:
    return [
        message
        for _, message in measure.measured_findings(notebook, lesson, MINUTES.__getitem__)
        if "the minutes of a reader" not in message
    ]


def test_everything_is_counted_in_core_sections_only():
    assert measure.counted(book(), MINUTES.__getitem__) == {
        "words in core sections": 25,
        "numbered equations in core sections": 3,
        "key equations": 3,
        "predictions in core sections": 1,
        "turns in core sections": 2,
        "pictures and cards in core sections": 1,
        "new terms": 1,
        "deeper sections": 1,
        "words before the first code": 10,
        "minutes": 14,
    }
    assert list(measure.measured_findings(book(), LESSON, MINUTES.__getitem__)) == []


FAULTS = {
    "wanted at most 2400 words in core sections, got 2401": [("markdown", "word " * 2376)],
    "wanted at most 10 numbered equations in core sections, got 11": [("markdown", r"$$x = 1 \tag{2.9}$$" * 8)],
    "wanted 3 to 4 key equations, got 5": [("markdown", r"$$\boxed{x = 1} \tag{2.8}$$ $$\boxed{x = 2} \tag{2.9}$$")],
    "wanted at most 5 predictions in core sections, got 6": [("code", "x", "predicted")] * 5,
    "wanted 2 to 3 turns in core sections, got 4": [("code", "check('first', 1)", "your-turn")] * 2,
    "wanted at most 3 pictures and cards in core sections, got 4": [
        ("code", "figures.one(x)\nfigures.two(x)"),
        ("code", "figures.three(x)"),
    ],
    "wanted at most 6 new terms, got 7": [("markdown", " ".join(f"**term {letter}**" for letter in "abcdef"))],
    "wanted at most 60 minutes, got 61": [("markdown", "$$x = 1 " + r"\\ " * 46 + "$$")],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_too_much_of_one_thing_is_found(fault):
    assert found(book(*FAULTS[fault])) == [fault]


def test_too_little_too_late_and_too_deep_are_found():
    deeper = [("markdown", f"## 2.{number} Deeper: more") for number in (3, 4, 5)]
    assert found(book(*deeper, at=11)) == ["wanted at most 3 deeper sections, got 4"]
    assert found(book(("markdown", "word " * 141), at=1)) == ["wanted at most 150 words before the first code, got 151"]
    fewer = book(change=(r"\boxed{a = b}", "a = b"))
    fewer.cells[5].metadata["tags"] = []
    assert found(fewer) == ["wanted 3 to 4 key equations, got 2", "wanted 2 to 3 turns in core sections, got 1"]


@pytest.mark.parametrize(
    ("minutes", "change", "got"),
    [
        (13, ("14 minutes", "13 minutes"), "13 in the list of lessons, 13"),
        (15, ("", ""), "15 in the list of lessons, 14"),
        (14, ("**Time:**", "Time:"), "14 in the list of lessons, nothing"),
    ],
)
def test_minutes_are_one_number_and_at_least_those_that_were_counted(minutes, change, got):
    lesson = Lesson("double", "Double", minutes=minutes, measured=True)
    assert list(measure.measured_findings(book(change=change), lesson, MINUTES.__getitem__)) == [
        (None, f"wanted the minutes of a reader, at least 14 as counted, got {got} behind **Time:**")
    ]
    longer = Lesson("double", "Double", minutes=20, measured=True)
    assert list(measure.measured_findings(book(change=("14 minutes", "20 minutes")), longer, MINUTES.__getitem__)) == []


def test_a_ladder_has_a_turn_for_each_rung():
    ladder = Lesson("double", "Double", minutes=90, measured=True, ladder=True)
    rungs = [("code", "check('first', 1)", "your-turn")]
    assert found(book(*rungs * 5), ladder) == ["wanted 8 to 12 turns in core sections, got 7"]
    assert found(book(*rungs * 6), ladder) == []


def test_other_lessons_are_not_held_to_it():
    assert found(book(*[("code", "x", "predicted")] * 9), Lesson("double", "Double", minutes=90)) == []


@pytest.mark.parametrize("mark", ["", "measured = true\n"])
def test_the_list_of_lessons_says_which_are_held_to_it(course, mark):
    course.edit("notebooks/series.toml", 'slug = "double"\n', f'slug = "double"\n{mark}')
    found = course.check(gate=lambda written: gates.held(written, gates.text_gate))
    assert any(problem.message == "wanted 3 to 4 key equations, got 0" for problem in found) == bool(mark)
