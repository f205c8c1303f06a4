"""Every numbered formula is registered, shown as registered, verified where it stands, and every reference leads to one."""

import copy
import re

import numpy as np
import pytest

from attn_course import numbers
from attn_course.equations import all_equations
from attn_course.tasks import all_tasks

from . import formulas
from .chapters import ALL, LESSONS, ROOT, lesson, notebook

KNOWN = {equation.label for equation in all_equations()}
TEXTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("attn_course/**/*.py", "docs/**/*.md", "*.md")
    for path in ROOT.glob(pattern)
)  # fmt: skip


def registered(slug):
    return {equation.label: equation.latex for equation in all_equations(slug)}


@pytest.mark.parametrize("slug", LESSONS)
def test_labels_stand_one_to_a_formula(slug):
    assert formulas.tag_findings(lesson(slug)) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_the_lesson_shows_exactly_the_registered_formulas(slug):
    assert formulas.registry_findings(lesson(slug), registered(slug)) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_every_formula_is_verified_below_itself(slug):
    assert formulas.verify_findings(lesson(slug)) == []


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("notebooks/")])
def test_only_lessons_number_formulas(name):
    assert formulas.tagged(notebook(name)) == []


@pytest.mark.parametrize("name", TEXTS)
def test_references_in_docstrings_and_guides_lead_to_an_equation(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    said = re.sub(r"```.*?```|^\| `` \{.*?$", "", text, flags=re.DOTALL | re.MULTILINE)  # less what a terminal shows, and the roles
    assert formulas.reference_findings(said, KNOWN) == []


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_the_equation_of_a_task_exists_and_every_role_in_its_texts_names_something(task):
    shown = [task.card, task.hints_markdown, task.given_source, task.broken_source, *(numbers.cite(wrong.hint) for wrong in task.wrong)]
    assert task.equation is None or task.equation in KNOWN
    assert [finding for text in shown for finding in numbers.ROLE.findall(text)] == []


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_no_role_stands_where_none_is_read(task):
    """The name of a mistake or a case is a key: records keep it. What is drawn, defined or trained is shown as it is."""
    kept = [task.title, task.trains, task.entry, *(case.name for case in task.cases(np.random.default_rng(2)))]
    kept += [wrong.name for wrong in task.wrong]
    assert [text for text in kept if numbers.ROLE.search(text)] == []


# The rules above are themselves tested: each planted edit of the first lesson is found, and its cell named.


def planted(old, new):
    """The first lesson with one text replaced, and the id of the cell it stood in."""
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell = next(cell for cell in book.cells if cell.cell_type == "markdown" and old in cell.source)
    cell.source = cell.source.replace(old, new, 1)
    return book, cell.id


def first_two():
    return formulas.tagged(lesson(LESSONS[0]))[:2]


def number(label):
    return numbers.eq(label).removeprefix("Eq. (").removesuffix(")")


def test_exchanged_numbers_are_found():
    (_, first, _), (_, second, _) = first_two()
    book, cell_id = planted(rf"\tag{{{number(second)}}}", rf"\tag{{{number(first)}}}")
    findings = formulas.registry_findings(book, registered(LESSONS[0]))
    assert findings[0].startswith(f"[{cell_id}]: Eq. {first}: the registry has")
    assert findings[-1] == f"Eq. {second} is registered, but the lesson does not show it"


def test_a_changed_formula_is_found_and_other_white_space_is_not():
    _, tag, formula = first_two()[0]
    book, cell_id = planted(formula, formula.replace("=", "= -", 1))
    assert formulas.registry_findings(book, registered(LESSONS[0]))[0].startswith(f"[{cell_id}]: Eq. {tag}: the registry has")
    book, _ = planted(formula, formula.replace("=", r" \,= ", 1))
    assert formulas.registry_findings(book, registered(LESSONS[0])) == []


def test_an_unregistered_equation_is_found():
    cell_id, tag, _ = first_two()[0]
    rest = {key: latex for key, latex in registered(LESSONS[0]).items() if key != tag}
    assert formulas.registry_findings(lesson(LESSONS[0]), rest) == [
        f"[{cell_id}]: Eq. {tag} is not registered in the equations of the lesson"
    ]


def test_two_labels_in_a_formula_and_a_label_outside_one_are_found():
    cell_id, label, formula = first_two()[1]
    book, _ = planted(formula, rf"{formula}\tag{{2.98}}")
    assert f"[{cell_id}]: wanted one label to a displayed formula, got 2" in formulas.tag_findings(book)
    book, cell_id = planted(formula, rf"{formula}$$ \tag{{{number(label)}}} $$")
    assert f"[{cell_id}]: wanted every label inside $$ ... $$" in formulas.tag_findings(book)


def test_a_formula_that_is_not_verified_below_itself_is_found():
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell_id, tag, _ = first_two()[0]
    cell = next(cell for cell in book.cells if f'verify("{tag}")' in cell.source)
    cell.source = cell.source.replace(f'verify("{tag}")', "pass")
    assert formulas.verify_findings(book) == [f'[{cell_id}]: Eq. {tag}: wanted verify("{tag}") in a cell below it, got none']
    cell.source = f'verify("{tag}")'
    book.cells.insert(0, book.cells.pop(book.cells.index(cell)))
    assert f"[{cell_id}]: Eq. {tag}: wanted it verified below the formula, got it above" in formulas.verify_findings(book)


def test_a_reference_to_no_equation_is_found_in_each_way_of_writing():
    for text in ("Eq. nowhere", "Eqs. softmax and nowhere", "Eqs. softmax, nowhere and softmax", "Eq.\n# nowhere"):
        assert formulas.reference_findings(text, {"softmax"}) == ["Eq. nowhere does not exist"]
    assert formulas.reference_findings("Eq. softmax; Eq. 9 there; task (2.9)", {"softmax"}) == []
    assert formulas.reference_findings("By Eq. (2.1).", {"softmax"}) == ["Eq. (2.1) is a number; wanted the label"]
