"""Each rule of style can fail, and names the cell."""

from types import SimpleNamespace

import nbformat
import pytest

from attn_course.authoring import prose


def book(*cells):
    """A notebook of (kind, text) cells, with ids a, b, c ..."""
    return SimpleNamespace(
        cells=[
            (nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell)(text, id=chr(97 + number))
            for number, (kind, text) in enumerate(cells)
        ]
    )


def headings(*cells):
    return list(prose.heading_findings(book(*cells)))


def sections(lesson, *cells):
    return list(prose.section_findings(book(*cells), lesson))


def measure(*cells):
    return list(prose.measure_findings(book(*cells)))


def lengths(*cells):
    return list(prose.length_findings(book(*cells)))


def test_a_second_title_a_late_one_and_a_skipped_level_are_found():
    assert headings(("markdown", "# A"), ("markdown", "## B\n\n# C")) == [("b", "wanted one H1, the title; got 'C'")]
    assert headings(("code", "x = 1"), ("markdown", "# A")) == [("a", "wanted the title first, got 'x = 1'")]
    assert headings(("markdown", "# A\n\n### B")) == [("a", "wanted a heading of level 2 at most, got 'B' at level 3")]
    assert headings(("markdown", "# A\n\n```\n# not a title\n```\n\n## B")) == []


def test_sections_out_of_number_and_a_missing_ending_are_found():
    ending = ("markdown", "## Formula card\n\n## Summary\n\n## Sources")
    assert sections(3, ("markdown", "## 3.1 One\n\n## 3.3 Two"), ending) == [("a", "wanted a section '3.2 ...', got '3.3 Two'")]
    assert sections(3, ("markdown", "## 3.1 One\n\n## Summary")) == [
        (None, "wanted the last sections Formula card, Summary, Sources; got 3.1 One, Summary")
    ]


def test_too_much_and_too_little_text_are_found_with_the_number():
    assert measure(("markdown", "one two three four"), ("code", "a = 1")) == []
    assert measure(("markdown", "one two $x + y$"), ("code", "a = b + c")) == [
        (None, "wanted 1.5 to 3.0 words of prose for each word of code, got 1.00")
    ]
    assert measure(("markdown", "word " * 7), ("code", "a = 1"))[0][1].endswith("got 3.50")
    shown = "one two three four\n\n```\nb = 2\n```\n"
    assert measure(("markdown", shown), ("code", "a = 1"))[0][1].endswith("got 1.00")


def test_long_cells_are_found():
    long_code = "\n".join(f"x = {number}" for number in range(16))
    assert lengths(("code", long_code), ("code", "x"), ("code", "x")) == [("a", "wanted at most 15 lines of code, got 16")]
    assert lengths(("code", long_code[:41])) == [(None, "wanted a median of at most 6 lines of code to a cell, got 7")]
    task = book(("code", long_code), ("code", "x"))
    task.cells[0].metadata.tags = ["task"]
    assert list(prose.length_findings(task)) == []
    assert lengths(("code", "x"), *[("markdown", "word " * 121)] * 2) == []
    assert lengths(("code", "x"), *[("markdown", "word " * 121)] * 3) == [
        (None, "wanted at most 2 Markdown cells above 120 words, got b 121, c 121, d 121")
    ]
    assert lengths(("code", "x"), ("markdown", "word " * 161)) == [("b", "wanted at most 160 words, got 161")]


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
    ((cell, finding),) = prose.chance_findings(book(("code", code)))
    assert cell == "a"
    assert message in finding
    live = book(("code", code))
    live.cells[0].metadata.tags = ["live"]
    assert list(prose.chance_findings(live)) == []


def test_seeded_numpy_generators_are_fine():
    assert list(prose.chance_findings(book(("code", "rng = np.random.default_rng(2)\nx = rng.normal(size=3)")))) == []


def test_a_function_defined_again_is_found():
    assert list(prose.redefinition_findings(book(("code", "def softmax(x):\n    return x")), {"softmax"})) == [
        ("a", "wanted softmax imported from the package, got it defined again")
    ]
