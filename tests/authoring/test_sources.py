"""Sources that cannot be built are refused in one line that names the source and the cell."""

import pytest

from attn_course.authoring import AuthoringError
from attn_course.authoring.source import Cell, parse, task_id
from attn_course.authoring.stub import stub
from attn_course.authoring.task_cells import answer_cells, question_cell
from attn_course.tasks import get_task

LESSON_REFUSALS = {
    "no id": ('# %% id="try-it"', "# %%", r"cell 4 \('print\(double\(21\)\)'\): wanted an id"),
    "an id twice": ('id="try-it"', 'id="setup"', "cell 4: wanted an id of its own, got 'setup' a second time"),
    "capitals in an id": ('id="try-it"', 'id="Try_it"', "lower-case words joined by '-', at most 64 characters, got 'Try_it'"),
    "too long an id": ('id="try-it"', f'id="{"a" * 65}"', "at most 64 characters"),
    "other header keys": ('id="try-it"', 'id="try-it" editable=false', "only id and tags in the header of cell 'try-it', got editable"),
    "tags that are no list": ('tags=["live"]', 'tags="live"', "wanted cells that nbformat accepts, got one where 'live' is not of type"),
    "an empty cell": ("print(double(21))\n", "\n", "wanted some text in cell 'try-it', got an empty cell"),
    "a raw cell": ('# %% [markdown] id="formula"', '# %% [raw] id="formula"', "markdown or code cell, got 'raw' in cell 'formula'"),
    "no Python": ("print(double(21))", "print(double(21)", r"line 12: wanted Python, got 'print\(double\(21\)'"),
    "a magic": ("print(double(21))", "# %time double(21)", "wanted plain Python in cell 'try-it', got '%time"),
    "a task in a lesson": ('id="try-it"', 'id="double-it" tags=["task"]', "cell 'double-it': wanted no task in a lesson"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), LESSON_REFUSALS.values(), ids=LESSON_REFUSALS)
def test_a_lesson_is_refused(course, old, new, message):
    course.edit("notebooks/src/double.py", old, new)
    with pytest.raises(AuthoringError, match=message) as caught:
        course.build()
    assert str(caught.value).startswith("notebooks/src/double.py: ")
    assert "\n" not in str(caught.value)
    assert course.runs == []


def test_a_course_without_sources_and_a_badly_named_source_are_refused(course, tmp_path_factory):
    from attn_course.authoring import build

    with pytest.raises(AuthoringError, match=r"notebooks/series\.toml: missing; wanted the list of lessons"):
        build(tmp_path_factory.mktemp("empty"))
    course.write("notebooks/src/three.py", "")
    with pytest.raises(AuthoringError, match=r"three: has a source, but no entry in notebooks/series\.toml"):
        course.build()


def test_a_source_that_is_not_utf8_is_refused(course):
    (course.root / "notebooks/src/double.py").write_bytes(b'# %% [markdown] id="title"\n# # na\xefve\n')
    with pytest.raises(AuthoringError, match=r"notebooks/src/double\.py: wanted UTF-8, got byte 0xef at 33"):
        course.build()


def test_a_source_comes_through_as_it_was_written():
    markdown = '# %% [markdown] id="a-b"\n# # Title\n#\n# $$x \\tag{2.1}$$\n\n'
    code = '# %% id="c" tags=["live"]\n# note\nif True:\n\n    x = """\n# %% text\n"""\n'
    cells = parse(markdown + code, "source")
    assert [(cell.id, cell.kind, cell.tags) for cell in cells] == [("a-b", "markdown", ()), ("c", "code", ("live",))]
    assert cells[0].text == "# Title\n\n$$x \\tag{2.1}$$"
    assert cells[1].text == '# note\nif True:\n\n    x = """\n# %% text\n"""'


def test_every_region_of_an_answer_becomes_a_stub():
    text = (
        "def f(x):\n    ### BEGIN SOLUTION\n    y = x\n    ### END SOLUTION\n"
        "    def g():\n        ### BEGIN SOLUTION\n        return y\n        ### END SOLUTION\n    return g"
    )
    assert stub(text, "f", "cell") == (
        "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n    def g():\n"
        "        # YOUR CODE HERE\n        raise NotImplementedError()\n    return g"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(x):\n    ### BEGIN SOLUTION\n    return x\n### END SOLUTION", "line 4: wanted '### END SOLUTION' indented like"),
        ("def f(x):\n    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n    return x", "line 3: wanted '### END SOLUTION', got a second"),
        ("x = 1  ### BEGIN SOLUTION", "line 1: wanted a solution marker on a line of its own"),
        (
            "### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n### BEGIN SOLUTION\ny = 1\n### END SOLUTION",
            "wanted one solution region at column 0",
        ),
        ("x = 1", "got no markers"),
    ],
)
def test_markers_that_do_not_pair_are_refused(text, message):
    with pytest.raises(AuthoringError, match=message):
        stub(text, "x", "source: cell 'double-it'")


def test_only_task_cells_have_a_task():
    tagged = {"double-it": ("task",), "double-it-check": ("check",), "double-it-given": ("given",)}
    ids = ["double-it-text", *tagged, "double-it-other", "a-double-it", "setup"]
    cells = [Cell(cell_id, "code", "1", tagged.get(cell_id, ())) for cell_id in ids]
    assert [task_id(cell, {"double-it"}) for cell in cells] == ["double-it"] * 4 + [""] * 3


def test_a_locked_cell_prints_and_names_the_numbers_of_a_student():
    asking, *_ = answer_cells(get_task("window-counts"), "")
    assert (asking.id, asking.tags) == ("window-counts-given", ("question",))
    assert asking.text == 'from attn_course import question\n\nT, w = question("window-counts")'
    assert (asking.nbgrader["locked"], asking.nbgrader["solution"], asking.nbgrader["grade"]) == (True, False, False)


def test_a_question_that_says_a_number_of_one_student_is_refused():
    said = "task window-counts: wanted no number that differs from student to student, got 100"
    with pytest.raises(ValueError, match=f"^{said}$"):
        question_cell(get_task("window-counts"), "A text of 100 tokens.")
