"""Numbers are made from the order of the list and of the sources; names are what everything else says."""

import json
from pathlib import Path

import pytest

from attn_course import numbers
from attn_course.authoring import AuthoringError
from attn_course.authoring.numbering import Numbering, as_text, numbering

ROOT = Path(__file__).parents[2]
KNOWN = {
    "labels": {"toy": {"sum": "7.1", "mean": "7.2"}, "later": {"planned-one": None}},
    "tasks": {"toy": {"add-up": "7.1"}, "later": {}},
    "slugs": {"toy": {"number": 7, "title": "Toy"}, "later": {"number": None, "title": "Later"}},
}


def test_the_committed_numbers_are_those_of_the_sources():
    assert (ROOT / "attn_course" / "numbers.json").read_text(encoding="utf-8") == as_text(numbering(ROOT).tables)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see {eq}`mean`, and {eq}`sum`", "see Eq. (7.2), and Eq. (7.1)"),
        ("task {task}`add-up` of chapter {lesson}`toy`", "task 7.1 of chapter 07"),
        ("section {section}`begin`", "section 7.3"),
        ("no role: {eq}, `sum`, {other}`sum`", "no role: {eq}, `sum`, {other}`sum`"),
    ],
)
def test_a_role_becomes_a_number(text, shown):
    assert numbers.cite(text, KNOWN, {"begin": "7.3"}) == shown


def test_what_a_text_says_with_a_number_makes_it_stale_when_the_number_changes():
    counted = Numbering(KNOWN, {("toy", "begin"): "7.3", ("later", "end"): "8.1"}, {})
    text = "{eq}`mean`, {section}`begin`, {section}`later/end`, {section}`toy/nowhere`"
    assert counted.said("toy", text) == ["mean=7.2", "section later/end=8.1", "section toy/begin=7.3"]
    assert counted.said("later", "{section}`begin`") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{eq}`means`", "there is no equation 'means'; is it mean?"),
        ("{task}`sum`", "there is no task 'sum'"),
        ("{lesson}`joy`", "there is no lesson 'joy'; is it toy?"),
        ("{section}`end`", "there is no section 'end'"),
        ("{eq}`7.1`", "7.1 is a number, and numbers change: the name of equation 7.1 is sum"),
        ("{eq}`7.9`", "no equation has the number 7.9 today; equations are asked for by name"),
        ("{section}`7.3`", "7.3 is a number; sections are asked for by name"),
        ("{eq}`planned-one`", "planned-one is planned and has no number yet"),
        ("{lesson}`later`", "later is planned and has no number yet"),
    ],
)
def test_a_role_that_names_nothing_is_one_clear_error(text, said):
    with pytest.raises(numbers.UnknownName) as caught:
        numbers.cite(text, KNOWN)
    assert str(caught.value) == f"{text}: {said}"


def test_a_role_that_names_nothing_is_refused_by_the_builder_with_its_line(course):
    course.edit("notebooks/src/double.py", "# Twice is a sum:", "# As {eq}`nowhere` says, twice is a sum:")
    with pytest.raises(AuthoringError, match=r"^notebooks/src/double\.py: line 9: \{eq\}`nowhere`: there is no equation 'nowhere'$"):
        course.build()


def test_a_role_that_is_broken_across_lines_is_refused_with_its_line(course):
    course.edit("notebooks/src/double.py", "# Twice is a sum:", "# As {eq}`twice-is-\n# a-sum` says, twice is a sum:")
    with pytest.raises(AuthoringError, match=r"double\.py: line 9: wanted a role on one line, got '\{eq\}`twice-is-' at its end$"):
        course.build()


def test_a_lesson_that_moves_takes_its_numbers_its_name_and_nothing_else_along(course):
    course.edit("notebooks/src/double.py", "# Twice is a sum:", "# {eq}`twice-is-a-sum`, in chapter {lesson}`double`:")
    course.build()
    assert "Eq.\xa0(2.1), in chapter 02: $$2x = x + x \\tag{2.1}$$" in course.cell("notebooks/02_double.ipynb", "formula").source
    entries = course.read("notebooks/series.toml").split("\n\n")
    course.write("notebooks/series.toml", "\n\n".join([entries[2], entries[0], entries[1], entries[3]]))
    course.build()
    assert "Eq.\xa0(0.1), in chapter 00: $$2x = x + x \\tag{0.1}$$" in course.cell("notebooks/00_double.ipynb", "formula").source
    assert [path.name for path in (course.root / "exercises").iterdir()] == ["ex_00_double.ipynb"]
    assert json.loads(course.read("attn_course/numbers.json"))["tasks"]["double"] == {
        "double-it": "0.1", "slope-of-double": "0.2", "half-it": "0.3",
    }  # fmt: skip
    assert course.check() == []


def test_an_equation_in_the_middle_changes_two_files_of_its_lesson_and_what_is_built(course):
    equations = "attn_course/lessons/double/equations.py"
    course.write(equations, '@claim("twice-is-a-sum")\ndef _():\n    """2x = x + x"""\n    return {}\n')
    course.edit("notebooks/src/double.py", "print(double(21))", 'verify("twice-is-a-sum")\nprint(double(21))')
    course.write("notebooks/src/triple.py", '# %% [markdown] id="title"\n# # Thrice\n# More than {eq}`twice-is-a-sum`.\n')
    course.write("notebooks/src/one.py", '# %% [markdown] id="title"\n# # Once\n# Before all of it.\n')
    course.build()
    course.runs.clear()
    before = {path: path.read_bytes() for path in course.root.rglob("*") if path.is_file()}
    course.edit("notebooks/src/double.py", "# Twice is a sum:", "# $$x = x \\label{itself}$$ and\n# twice is a sum:")
    course.write(equations, '@claim("itself")\ndef _():\n    """x = x"""\n    return {}\n\n\n' + course.read(equations))
    report = course.build()
    changed = {path.relative_to(course.root).as_posix() for path, old in before.items() if path.read_bytes() != old}
    assert changed == {
        equations, "notebooks/src/double.py", "attn_course/numbers.json", "notebooks/02_double.ipynb", "notebooks/03_triple.ipynb",
    }  # fmt: skip
    assert sorted(before) == sorted(path for path in course.root.rglob("*") if path.is_file())
    assert "notebooks/02_double.ipynb" in course.runs, "its output says the number"
    assert sorted(report.kept) == ["exercises/ex_02_double.ipynb", "notebooks/01_one.ipynb", "solutions/02_double.ipynb"]
    assert "More than Eq.\xa0(2.2)." in course.cell("notebooks/03_triple.ipynb", "title").source
    assert course.check() == []


def test_a_label_outside_a_lesson_is_refused_with_its_line(course):
    with pytest.raises(AuthoringError, match=r"^tasks\.py: line 2: wanted labels in lessons only, got \\label\{twice-is-a-sum\}$"):
        numbering(course.root).of("double", "Because\n$$x + x = 2x \\label{twice-is-a-sum}$$", "tasks.py")


@pytest.mark.parametrize("label", ["2.1", "Twice", "a-b-c-d-e", "two words"])
def test_a_label_that_is_no_few_words_with_hyphens_is_refused(course, label):
    course.edit("notebooks/src/double.py", "twice-is-a-sum", label)
    with pytest.raises(AuthoringError, match="double: wanted a label of at most four lower-case words"):
        course.build()
