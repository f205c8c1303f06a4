"""Sources that cannot be built are refused in one line that names the source and the cell."""

import pytest

from attn_course.authoring import AuthoringError, task_cells
from attn_course.authoring.source import Cell, parse, task_id
from attn_course.authoring.stub import stub
from attn_course.tasks import get_task

from .conftest import LESSON, SOLUTION

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

SOLUTION_REFUSALS = {
    "an unknown task": (
        "half-it",
        "nowhere",
        "cell 'nowhere': wanted the id of a registered task",
    ),
    "no check cell": (
        '# %% id="half-it-check" tags=["check"]\ncheck("half-it", my_half)\n',
        "",
        "task half-it: .*missing half-it-check",
    ),
    "no text cell": (
        'id="half-it-text"',
        'id="mend"',
        "task half-it: .*missing half-it-text",
    ),
    "no answer cell": (
        'id="double-it" tags=["task"]',
        'id="answer" tags=["task"]',
        "cell 'answer': wanted the id of a registered task",
    ),
    "no tag on the answer": (
        'id="double-it" tags=["task"]',
        'id="double-it"',
        r"cell 'double-it': wanted solution markers only in cells tagged \['task'\]",
    ),
    "a tag on another cell": (
        'id="setup"',
        'id="setup" tags=["task"]',
        "cell 'setup': wanted the id of a registered task",
    ),
    "a given cell by hand": (
        '# %% id="slope-of-double" tags=["task"]',
        '# %% id="slope-of-double-given"\ntwo = 2\n\n# %% id="slope-of-double" tags=["task"]',
        "cell 'slope-of-double-given': wanted the builder to write it",
    ),
    "another task's check": (
        'check("half-it", my_half)',
        'check("double-it", my_half)',
        r"cell 'half-it-check': wanted one call check\('half-it', my_half\)",
    ),
    "another name defined": (
        "def my_half(x)",
        "def halve(x)",
        r"cell 'half-it': wanted it to define 'my_half', the task's entry, got \['halve'\]",
    ),
    "no end of the solution": (
        "    return x / 2\n    ### END SOLUTION",
        "    return x / 2",
        "cell 'half-it': wanted '### END SOLUTION' after line 2",
    ),
    "an end without a beginning": (
        "    ### BEGIN SOLUTION\n    return x / 2",
        "    return x / 2",
        "cell 'half-it': line 3: wanted '### BEGIN SOLUTION' first",
    ),
    "a marker in a check cell": (
        'check("half-it", my_half)',
        '### BEGIN SOLUTION\ncheck("half-it", my_half)',
        "cell 'half-it-check': wanted solution markers only in",
    ),
    "a marker elsewhere": (
        "from attn_course import check",
        "### BEGIN SOLUTION\nx = 1\n### END SOLUTION",
        "cell 'setup': wanted solution markers only in",
    ),
}


REFUSALS = [
    pytest.param(f"{folder}/src/double.py", text, *change, id=what)
    for folder, text, changes in (("notebooks", LESSON, LESSON_REFUSALS), ("solutions", SOLUTION, SOLUTION_REFUSALS))
    for what, change in changes.items()
]


@pytest.mark.parametrize(("name", "text", "old", "new", "message"), REFUSALS)
def test_a_lesson_or_a_solution_is_refused(course, name, text, old, new, message):
    assert old in text
    course.write(name, text.replace(old, new))
    with pytest.raises(AuthoringError, match=message) as caught:
        course.build()
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)
    assert course.runs == []


def test_cells_of_a_task_out_of_order_are_refused(course):
    text, check = (
        SOLUTION[SOLUTION.index(start) : SOLUTION.index(end)]
        for start, end in (
            ('# %% [markdown] id="double-it-text', '# %% id="double-it"'),
            ('# %% id="double-it-check', '# %% [markdown] id="why'),
        )
    )
    course.write("solutions/src/double.py", SOLUTION.replace(check, "").replace(text, check + text))
    with pytest.raises(AuthoringError, match=r"task double-it: wanted the order double-it-text, double-it, double-it-check; got"):
        course.build()


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


VARIED = """\
# %% id="setup"
from attn_course import check

STUDENT = ""  # whose numbers

# %% [markdown] id="window-counts-text"
# A text of $T$ tokens.

# %% id="window-counts" tags=["task"]
### BEGIN SOLUTION
my_count = (T, w)
### END SOLUTION

# %% id="window-counts-check" tags=["check"]
check("window-counts", my_count)
"""


def dressed(text):
    """The cells of a solution with a task whose numbers differ from student to student."""
    return task_cells.dress(parse(text, "toy.py"), get_task, "toy.py")


def test_a_locked_cell_prints_and_names_the_numbers_of_a_student():
    cells = dressed(VARIED)
    (asking,) = (cell for cell in cells if cell.id == "window-counts-given")
    assert (asking.text, asking.tags) == ('from attn_course import question\n\nT, w = question("window-counts")', ("question",))
    assert (asking.nbgrader["locked"], asking.nbgrader["solution"], asking.nbgrader["grade"]) == (True, False, False)
    assert [cell.id for cell in cells].index("window-counts-given") == [cell.id for cell in cells].index("window-counts") - 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('STUDENT = ""  # whose numbers', "", 'wanted the line STUDENT = "" once; got it 0 times'),
        ("my_count = (T, w)", 'my_count = (T, w)\nSTUDENT = ""', 'wanted the line STUDENT = "" once; got it 2 times'),
        ("of $T$ tokens", "of 100 tokens", r"'window-counts-text': wanted no number that differs from student to student, got 100"),
    ],
)
def test_a_source_that_one_student_could_not_be_given_is_refused(old, new, message):
    with pytest.raises(AuthoringError, match=message):
        dressed(VARIED.replace(old, new))


def test_a_student_is_asked_for_only_where_numbers_differ(course):
    course.write(
        "solutions/src/double.py", SOLUTION.replace("from attn_course import check", 'from attn_course import check\nSTUDENT = ""')
    )
    with pytest.raises(AuthoringError, match='wanted the line STUDENT = "" only where numbers differ'):
        course.build()
