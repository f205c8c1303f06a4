"""Lessons keep the shape and the measure that the course's style asks for."""

import copy
from types import SimpleNamespace

import nbformat
import pytest

from attn_course import numbers, reference

from . import style
from .chapters import ALL, EXECUTED, LESSONS, lesson, notebook


def book(*cells):
    """A notebook of (kind, text) cells, with ids a, b, c ..."""
    return SimpleNamespace(
        cells=[
            (nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell)(text, id=chr(97 + number))
            for number, (kind, text) in enumerate(cells)
        ]
    )


@pytest.mark.parametrize("name", ALL)
def test_the_title_is_the_only_h1(name):
    assert style.heading_findings(notebook(name)) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_sections_are_numbered_and_end_in_card_summary_and_sources(slug):
    assert style.section_findings(lesson(slug), int(numbers.lesson_number(slug))) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_text_and_code_are_in_measure(slug):
    assert style.ratio_findings(lesson(slug)) == []


@pytest.mark.parametrize("name", ALL)
def test_cells_are_short(name):
    assert style.length_findings(notebook(name)) == []


@pytest.mark.parametrize("name", ALL)
def test_nothing_depends_on_chance_or_clock(name):
    assert style.chance_findings(notebook(name)) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_a_lesson_defines_no_package_function_again(slug):
    assert style.redefinition_findings(lesson(slug), reference.__all__) == []


@pytest.mark.parametrize("name", EXECUTED)
def test_every_picture_has_words(name):
    assert style.picture_findings(notebook(name)) == []


# The rules above are themselves tested.


def test_a_second_title_a_late_one_and_a_skipped_level_are_found():
    assert style.heading_findings(book(("markdown", "# A"), ("markdown", "## B\n\n# C"))) == ["[b]: wanted one H1, the title; got 'C'"]
    assert style.heading_findings(book(("code", "x = 1"), ("markdown", "# A"))) == ["[a]: wanted the title first, got 'x = 1'"]
    assert style.heading_findings(book(("markdown", "# A\n\n### B"))) == ["[a]: wanted a heading of level 2 at most, got 'B' at level 3"]
    assert style.heading_findings(book(("markdown", "# A\n\n```\n# not a title\n```\n\n## B"))) == []


def test_sections_out_of_number_and_a_missing_ending_are_found():
    ending = ("markdown", "## Formula card\n\n## Summary\n\n## Sources")
    assert style.section_findings(book(("markdown", "## 3.1 One\n\n## 3.3 Two"), ending), 3) == [
        "[a]: wanted a section '3.2 ...', got '3.3 Two'"
    ]
    assert style.section_findings(book(("markdown", "## 3.1 One\n\n## Summary")), 3)[-1].startswith("wanted the last sections Formula card")


def test_too_much_and_too_little_text_are_found_with_the_number():
    assert style.ratio_findings(book(("markdown", "one two three four"), ("code", "a = 1"))) == []
    assert style.ratio_findings(book(("markdown", "one two $x + y$"), ("code", "a = b + c"))) == [
        "wanted 1.5 to 3.0 words of prose for each word of code, got 1.00"
    ]
    assert style.ratio_findings(book(("markdown", "word " * 7), ("code", "a = 1")))[0].endswith("got 3.50")


def test_long_cells_are_found():
    long_code = "\n".join(f"x = {number}" for number in range(16))
    assert style.length_findings(book(("code", long_code), ("code", "x"), ("code", "x"))) == [
        "[a]: wanted at most 15 lines of code, got 16"
    ]
    assert style.length_findings(book(("code", long_code[:41]))) == ["wanted a median of at most 6 lines of code to a cell, got 7"]
    task = book(("code", long_code), ("code", "x"))
    task.cells[0].metadata.tags = ["task"]
    assert style.length_findings(task) == []
    assert style.length_findings(book(("code", "x"), *[("markdown", "word " * 121)] * 2)) == []
    assert style.length_findings(book(("code", "x"), *[("markdown", "word " * 121)] * 3)) == [
        "wanted at most 2 Markdown cells above 120 words, got [b] 121, [c] 121, [d] 121"
    ]
    assert style.length_findings(book(("code", "x"), ("markdown", "word " * 161))) == ["[b]: wanted at most 160 words, got 161"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = torch.randn(3)", "got torch's 'torch.randn'"),
        ("torch.manual_seed(0)", "got torch's 'torch.manual_seed'"),
        ("weight.uniform_(-1, 1)", "got torch's '.uniform_('"),
        ("np.random.seed(0)", "got 'np.random.seed'"),
        ("rng = np.random.default_rng()", "wanted a seed"),
        ("start = time.perf_counter()", "only in cells tagged live, got 'perf_counter'"),
    ],
)
def test_chance_and_clocks_are_found(code, message):
    (finding,) = style.chance_findings(book(("code", code)))
    assert finding.startswith("[a]: ")
    assert message in finding
    live = book(("code", code))
    live.cells[0].metadata.tags = ["live"]
    assert style.chance_findings(live) == []


def test_seeded_numpy_generators_are_fine():
    assert style.chance_findings(book(("code", "rng = np.random.default_rng(2)\nx = rng.normal(size=3)"))) == []


def test_a_function_defined_again_is_found():
    assert style.redefinition_findings(book(("code", "def softmax(x):\n    return x")), {"softmax"}) == [
        "[a]: wanted softmax imported from the package, got it defined again"
    ]


def test_a_picture_without_words_is_found():
    picture = book(("code", "draw()"))
    data = {"image/png": "iVBORw0KGgo=", "text/plain": "[figure] A line rises."}
    picture.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data, metadata={"image/png": {"alt": "A line rises."}})]
    assert style.picture_findings(picture) == []
    other = copy.deepcopy(picture)
    other.cells[0].outputs[0].metadata = nbformat.from_dict({})
    assert style.picture_findings(other) == ["[a]: wanted alt text for its image/png, got none"]
    picture.cells[0].outputs[0].data["text/plain"] = "<Figure>"
    assert style.picture_findings(picture) == ["[a]: wanted the alt text in text/plain too, got '<Figure>'"]
