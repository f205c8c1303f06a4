"""The rules for numbered formulas bite: each planted edit of a lesson is found, and its cell named."""

import copy
import re

import nbformat
import pytest

from attn_course import numbers
from attn_course.authoring import formulas
from attn_course.equations import all_equations
from tests.notebooks.chapters import LESSONS, ROOT, lesson

KNOWN = {equation.label for equation in all_equations()}


def test_references_in_docstrings_and_guides_lead_to_an_equation():
    found = {}
    for path in (path for pattern in ("attn_course/**/*.py", "docs/**/*.md", "*.md") for path in ROOT.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        said = re.sub(r"```.*?```|^\| `` \{.*?$", "", text, flags=re.DOTALL | re.MULTILINE)  # less what a terminal shows, and the roles
        found[path.relative_to(ROOT)] = list(formulas.reference_findings(said, KNOWN))
    assert len(found) > 300
    assert {name: findings for name, findings in found.items() if findings} == {}


def test_a_formula_that_goes_on_in_a_line_which_begins_a_list_is_found():
    fine = "So $a$ is\n- one, $b$,\n- two.\n\n$$a\n- b$$\n\nand `$a` or $(a - b)\n/ 2$"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(fine, id="fine")])
    assert list(formulas.item_findings(book)) == []
    for line in ("- q) / 2", "+ q)", "2. 5)"):
        book.cells.append(nbformat.v4.new_markdown_cell(f"The slope is $(k\n{line}$.", id="broken"))
        (found,) = formulas.item_findings(book)
        assert found[0] == "broken"
        assert line.split()[0] in found[1]
        book.cells.pop()


def registered(slug):
    return {equation.label: equation.latex for equation in all_equations(slug)}


def planted(old, new):
    """The first lesson with one text replaced, and the id of the cell it stood in."""
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell = next(cell for cell in book.cells if cell.cell_type == "markdown" and old in cell.source)
    cell.source = cell.source.replace(old, new, 1)
    return book, cell.id


def compared(book, known=None):
    return list(formulas.registry_findings(book, known or registered(LESSONS[0])))


def first_two():
    return formulas.tagged(lesson(LESSONS[0]))[:2]


def number(label):
    return numbers.eq(label).removeprefix("Eq. (").removesuffix(")")


def test_exchanged_numbers_are_found():
    (_, first, _), (_, second, _) = first_two()
    book, cell_id = planted(rf"\tag{{{number(second)}}}", rf"\tag{{{number(first)}}}")
    findings = compared(book)
    assert findings[0][0] == cell_id
    assert findings[0][1].startswith(f"Eq. {first}: the registry has")
    assert findings[-1] == (None, f"Eq. {second} is registered, but the lesson does not show it")


def test_a_changed_formula_is_found_and_other_white_space_is_not():
    _, label, formula = first_two()[0]
    book, cell_id = planted(formula, formula.replace("=", "= -", 1))
    ((cell, message),) = compared(book)
    assert cell == cell_id
    assert message.startswith(f"Eq. {label}: the registry has")
    book, _ = planted(formula, formula.replace("=", r" \,= ", 1))
    assert compared(book) == []


def test_an_unregistered_equation_is_found():
    cell_id, label, _ = first_two()[0]
    rest = {key: latex for key, latex in registered(LESSONS[0]).items() if key != label}
    assert compared(lesson(LESSONS[0]), rest) == [(cell_id, f"Eq. {label} is not registered in the equations of the lesson")]


def test_two_labels_in_a_formula_and_a_label_outside_one_are_found():
    cell_id, label, formula = first_two()[1]
    book, _ = planted(formula, rf"{formula}\tag{{2.98}}")
    assert (cell_id, "wanted one label to a displayed formula, got 2") in formulas.tag_findings(book)
    book, cell_id = planted(formula, rf"{formula}$$ \tag{{{number(label)}}} $$")
    assert (cell_id, "wanted every label inside $$ ... $$") in formulas.tag_findings(book)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ('show("softmaxx", z=[1, 2])', "there is no equation 'softmaxx'; is it softmax or log-softmax"),
        ('show("softmax", wrong="scores divided")', "wanted one of the wrong forms of Eq. softmax, a function of one entry alone"),
        ('alive("softmaxx")', "there is no equation 'softmaxx'; is it softmax or log-softmax"),
    ],
)
def test_a_call_of_show_that_names_nothing_is_found(call, problem):
    book = copy.deepcopy(lesson(LESSONS[0]))
    cell = next(cell for cell in book.cells if cell.cell_type == "code")
    cell.source = call
    ((place, said),) = formulas.shown_findings(book)
    assert place == cell.id
    assert problem in said


def test_equations_that_cannot_be_loaded_hide_no_other_finding(monkeypatch):
    def broken(label):
        raise ValueError("Eq. softmax: the wrong form “no sum” wanted ... once")

    monkeypatch.setattr(formulas, "get_equation", broken)
    book = copy.deepcopy(lesson(LESSONS[0]))
    next(cell for cell in book.cells if cell.cell_type == "code").source = 'show("softmax", z=[1, 2])'
    assert list(formulas.shown_findings(book)) == []


def test_a_lesson_verifies_its_formulas_once_at_the_end_of_its_core():
    book = copy.deepcopy(lesson(LESSONS[0]))
    slug = LESSONS[0]
    place = next(n for n, cell in enumerate(book.cells) if cell.source == f'verify_lesson("{slug}")')
    assert list(formulas.verify_findings(book, slug)) == []
    cell = book.cells.pop(place)
    ((none, said),) = formulas.verify_findings(book, slug)
    assert (none, said) == (None, f'wanted one cell with verify_lesson("{slug}") alone if formulas have numbers, got 0')
    book.cells.insert(1, cell)
    ((early, said),) = formulas.verify_findings(book, slug)
    assert early == cell.id
    assert said.startswith("wanted it in the last section of the core, before Formula card or Summary or Sources; got it before '## ")
    book.cells.insert(place, book.cells.pop(1))
    first = next(each for each in book.cells if each.cell_type == "code")
    first.source = 'verify("softmax")'
    assert [found for found, _ in formulas.verify_findings(book, slug)] == [first.id]


def test_a_numbered_formula_outside_a_lesson_is_found():
    _, label, _ = first_two()[0]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(rf"$$x = x \tag{{{number(label)}}}$$", id="why")])
    assert list(formulas.only_lessons_findings(book)) == [("why", f"wanted numbered formulas in lessons only, got Eq. {label}")]


def test_a_reference_to_no_equation_is_found_in_each_way_of_writing():
    for text in ("Eq. nowhere", "Eqs. softmax and nowhere", "Eqs. softmax, nowhere and softmax", "Eq.\n# nowhere"):
        assert list(formulas.reference_findings(text, {"softmax"})) == [(None, "Eq. nowhere does not exist")]
    assert list(formulas.reference_findings("Eq. softmax; Eq. 9 there; task (2.9)", {"softmax"})) == []
    assert list(formulas.reference_findings("By Eq. (2.1).", {"softmax"})) == [(None, "Eq. (2.1) is a number; wanted the label")]


def test_a_section_is_cited_by_its_name_and_that_of_another_text_by_its_sign():
    said = [(None, "wanted a section by its name, or § 3.2.1 of another text; got section 3.2.1")]
    assert list(formulas.section_number_findings("as the paper says (section 3.2.1).")) == said
    assert list(formulas.section_number_findings("see {section}`hook`, and § 3.2.1 of the paper")) == []


def test_no_role_stands_in_an_f_string():
    said = [(None, "line 2: wanted no role in an f-string, got {eq}")]
    assert list(formulas.role_findings('a = 1\nprint(f"as {eq}`sum` says")')) == said
    files = [path for pattern in ("attn_course/**/*.py", "notebooks/src/*.py") for path in ROOT.glob(pattern)]
    assert {path.name: found for path in files if (found := [*formulas.role_findings(path.read_text(encoding="utf-8"))])} == {}
