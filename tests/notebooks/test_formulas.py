"""Every numbered formula is registered, shown as registered, verified where it stands, and every reference leads to one."""

import copy

import pytest

from attn_course.equations import all_equations, chapters
from attn_course.tasks import all_tasks

from . import formulas
from .chapters import ALL, LESSONS, ROOT, lesson, notebook

KNOWN = {equation.tag for number in chapters() for equation in all_equations(number)}
TEXTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("attn_course/**/*.py", "docs/**/*.md", "*.md")
    for path in ROOT.glob(pattern)
)  # fmt: skip


def registered(chapter):
    return {equation.tag: equation.latex for equation in all_equations(chapter)}


@pytest.mark.parametrize("stem", LESSONS)
def test_tags_are_unique_ascending_and_one_to_a_formula(stem):
    assert formulas.tag_findings(lesson(stem), int(stem[:2])) == []


@pytest.mark.parametrize("stem", LESSONS)
def test_the_lesson_shows_exactly_the_registered_formulas(stem):
    assert formulas.registry_findings(lesson(stem), registered(int(stem[:2]))) == []


@pytest.mark.parametrize("stem", LESSONS)
def test_every_formula_is_verified_below_itself(stem):
    assert formulas.verify_findings(lesson(stem)) == []


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("notebooks/")])
def test_only_lessons_number_formulas(name):
    assert formulas.tagged(notebook(name)) == []


@pytest.mark.parametrize("name", ALL)
def test_references_in_notebooks_lead_to_an_equation(name):
    found = [f"[{cell.id}]: {finding}" for cell in notebook(name).cells for finding in formulas.reference_findings(cell.source, KNOWN)]
    assert found == []


@pytest.mark.parametrize("name", TEXTS)
def test_references_in_docstrings_and_guides_lead_to_an_equation(name):
    assert formulas.reference_findings((ROOT / name).read_text(encoding="utf-8"), KNOWN) == []


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_the_equation_of_a_task_and_those_its_texts_name_exist(task):
    texts = [task.card, task.hints_markdown, task.given_source, task.broken_source, *(wrong.hint for wrong in task.wrong)]
    assert task.equation is None or task.equation in KNOWN
    assert [finding for text in texts for finding in formulas.reference_findings(text, KNOWN)] == []


# The rules above are themselves tested: each planted edit of the first lesson is found, and its cell named.


def planted(old, new):
    """The first lesson with one text replaced, and the id of the cell it stood in."""
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell = next(cell for cell in book.cells if cell.cell_type == "markdown" and old in cell.source)
    cell.source = cell.source.replace(old, new, 1)
    return book, cell.id


def first_two():
    return formulas.tagged(lesson(LESSONS[0]))[:2]


def test_a_changed_tag_is_found():
    (_, first, _), (_, second, _) = first_two()
    book, cell_id = planted(rf"\tag{{{second}}}", rf"\tag{{{first}}}")
    chapter = int(LESSONS[0][:2])
    assert formulas.tag_findings(book, chapter) == [f"[{cell_id}]: wanted a tag above {first}, got {first}"]
    findings = formulas.registry_findings(book, registered(chapter))
    assert findings[0].startswith(f"[{cell_id}]: Eq. ({first}): the registry has")
    assert findings[-1] == f"Eq. ({second}) is registered, but the lesson does not show it"


@pytest.mark.parametrize("tag", ["99.1", "2", "2.01", "2.a"])
def test_a_tag_of_another_chapter_or_form_is_found(tag):
    book, cell_id = planted(rf"\tag{{{first_two()[0][1]}}}", rf"\tag{{{tag}}}")
    assert f"[{cell_id}]: wanted a tag like" in formulas.tag_findings(book, int(LESSONS[0][:2]))[0]


def test_a_changed_formula_is_found_and_other_white_space_is_not():
    chapter = int(LESSONS[0][:2])
    _, tag, formula = first_two()[0]
    book, cell_id = planted(formula, formula.replace("=", "= -", 1))
    assert formulas.registry_findings(book, registered(chapter))[0].startswith(f"[{cell_id}]: Eq. ({tag}): the registry has")
    book, _ = planted(formula, formula.replace("=", r" \,= ", 1))
    assert formulas.registry_findings(book, registered(chapter)) == []


def test_an_unregistered_equation_is_found():
    chapter = int(LESSONS[0][:2])
    cell_id, tag, _ = first_two()[0]
    rest = {key: latex for key, latex in registered(chapter).items() if key != tag}
    assert formulas.registry_findings(lesson(LESSONS[0]), rest) == [f"[{cell_id}]: Eq. ({tag}) is not registered in attn_course/equations"]


def test_two_tags_in_a_formula_and_a_tag_outside_one_are_found():
    (_, first, _), (cell_id, second, formula) = first_two()
    book, _ = planted(formula, rf"{formula}\tag{{2.98}}")
    assert f"[{cell_id}]: wanted one tag to a displayed formula, got 2" in formulas.tag_findings(book, 2)
    book, cell_id = planted(formula, rf"{formula}$$ \tag{{{second}}} $$")
    assert f"[{cell_id}]: wanted every tag inside $$ ... $$" in formulas.tag_findings(book, int(first.split(".")[0]))


def test_a_formula_that_is_not_verified_below_itself_is_found():
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell_id, tag, _ = first_two()[0]
    cell = next(cell for cell in book.cells if f'verify("{tag}")' in cell.source)
    cell.source = cell.source.replace(f'verify("{tag}")', "pass")
    assert formulas.verify_findings(book) == [f'[{cell_id}]: Eq. ({tag}): wanted verify("{tag}") in a cell below it, got none']
    cell.source = f'verify("{tag}")'
    book.cells.insert(0, book.cells.pop(book.cells.index(cell)))
    assert f"[{cell_id}]: Eq. ({tag}): wanted it verified below the formula, got it above" in formulas.verify_findings(book)


def test_a_reference_to_no_equation_is_found_in_each_way_of_writing():
    known = {"2.1"}
    for text in ("Eq. (2.9)", "Eqs. (2.1) and (2.9)", "Eqs. (2.1), (2.9)", "Eq.\n# (2.9)", "Eqs. (2.1) to (2.9)"):
        assert formulas.reference_findings(text, known) == ["Eq. (2.9) does not exist"]
    assert formulas.reference_findings("Eq. (2.1); Eq. 9 there; task (2.9)", known) == []
