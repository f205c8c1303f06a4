"""Rules for numbered formulas and for what refers to them. Each yields what breaks it."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from nbformat import NotebookNode

from attn_course import numbers
from attn_course.authoring.notebook import code_cells, markdown_cells
from attn_course.authoring.numbering import CLOSING
from attn_course.authoring.problems import Finding, shorten
from attn_course.authoring.source import calls, is_called, literal_calls
from attn_course.equations import UnknownEquation, get_equation, normalise_latex

_DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
_TAG = re.compile(r"\\tag\s*\{([^{}]*)\}")
_BOXED = re.compile(r"\s*\\boxed\{(.*)\}\s*[.,]?\s*", re.DOTALL)
_LINES = re.compile(r"\s*\\begin\{gathered\}(.*)\\end\{gathered\}\s*", re.DOTALL)
_LABEL = r"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
_ONE = re.compile(rf"\bEq\.[\s#]+{_LABEL}")
_SEVERAL = re.compile(rf"\bEqs\.[\s#]+((?:{_LABEL},[\s#]+)*{_LABEL}[\s#]+and[\s#]+{_LABEL})")
_INLINE = re.compile(r"\$([^$]*)\$")
_ITEM = re.compile(r"\n[ \t]*([-+*]|\d+[.)])[ \t]")  # where Markdown begins an item of a list
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_SECTION = re.compile(r"\b[Ss]ection[\s#]+(\d+(?:\.\d+)+)")
_NUMBERED = re.compile(r'(?<!")\bEqs?\.[\s#]*\(\d+\.\d+\)(?! holds)')


def tagged(book: NotebookNode) -> list[tuple[str, str, str]]:
    """Return (cell id, label, formula) for each displayed formula that has a number, in order, without the frame of a key equation."""
    return [
        (cell_id, label, _on_one_line(boxed[1] if (boxed := _BOXED.fullmatch(formula)) else formula))
        for cell_id, label, formula in _tagged(book)
    ]


def _on_one_line(formula: str) -> str:
    r"""Return a formula without its lines on the page: in `gathered`, where a line of the source ends with ``\\``, a statement ends."""
    return lines[1].replace("\\\\\n", "\\qquad\n") if (lines := _LINES.fullmatch(formula)) else formula


def keys(book: NotebookNode) -> dict[str, str]:
    """Return label -> formula of the key equations, those with a frame."""
    return {label: boxed[1] for _, label, formula in _tagged(book) if (boxed := _BOXED.fullmatch(formula))}


def labels_by_number() -> dict[str, str]:
    """Return number -> label of all equations that have a number."""
    return {number: label for known in numbers.tables()["labels"].values() for label, number in known.items()}


def tag_findings(book: NotebookNode) -> Iterator[Finding]:
    """Labels stand one to a displayed formula."""
    for cell in markdown_cells(book):
        inside = [len(_TAG.findall(block)) for block in _DISPLAY.findall(cell.source)]
        if any(count > 1 for count in inside):
            yield cell.id, f"wanted one label to a displayed formula, got {max(inside)}"
        if len(_TAG.findall(cell.source)) != sum(inside):
            yield cell.id, "wanted every label inside $$ ... $$"


def item_findings(book: NotebookNode) -> Iterator[Finding]:
    """No formula within a line of text goes on in a line that Markdown takes for an item of a list."""
    for cell in markdown_cells(book):
        for formula in _INLINE.findall(_DISPLAY.sub("", _CODE.sub("", cell.source))):
            if found := _ITEM.search(formula):
                yield cell.id, f"wanted no line that begins with {found[1]!r} within a formula, for it would begin a list; got {formula!r}"


def registry_findings(book: NotebookNode, registered: Mapping[str, str]) -> Iterator[Finding]:
    """Every formula is registered, with the same formula; every registered equation is shown.

    `registered`: label -> LaTeX of the lesson's equations.
    """
    shown = tagged(book)
    for cell_id, label, formula in shown:
        if label not in registered:
            yield cell_id, f"Eq. {label} is not registered in the equations of the lesson"
        elif normalise_latex(formula) != normalise_latex(registered[label]):
            yield cell_id, f"Eq. {label}: the registry has {_quoted(registered[label])}, the lesson {_quoted(formula)}"
    yield from (
        (None, f"Eq. {label} is registered, but the lesson does not show it") for label in registered if label not in {s[1] for s in shown}
    )


def verify_findings(book: NotebookNode, slug: str) -> Iterator[Finding]:
    """A lesson with numbered formulas verifies them in one cell, the last of its core, and nowhere else."""
    wanted = f'verify_lesson("{slug}")'
    found = [cell for cell in code_cells(book) if literal_calls(cell.source, "verify_lesson")]
    for cell in code_cells(book):
        if is_called(cell.source, "verify"):
            yield cell.id, f"wanted no formula verified by itself: {wanted} does it for all, in the last cell of the core"
    if [cell.source for cell in found] != [wanted] * any(tagged(book)):
        yield found[-1].id if found else None, f"wanted one cell with {wanted} alone if formulas have numbers, got {len(found)}"
    for cell in found:
        behind = book.cells[book.cells.index(cell) + 1 :]
        heading = next((each.source for each in behind if each.source.startswith("## ")), "## Sources")
        if not heading.startswith(tuple(f"## {title}" for title in CLOSING)):
            yield cell.id, f"wanted it in the last section of the core, before {' or '.join(CLOSING)}; got it before {shorten(heading)}"


def shown_findings(book: NotebookNode) -> Iterator[Finding]:
    """Every show("label", wrong="...") names an equation, and one of its wrong forms; every alive("label") an equation."""
    for cell in code_cells(book):
        for call in [*calls(cell.source, "show"), *calls(cell.source, "alive")]:
            labels = [str(argument.value) for argument in call.args[:1] if isinstance(argument, ast.Constant)]
            wrongs = [str(word.value.value) for word in call.keywords if word.arg == "wrong" and isinstance(word.value, ast.Constant)]
            for label in labels:
                try:
                    names = [form.name for form in get_equation(label).wrongs]
                except UnknownEquation as error:
                    yield cell.id, str(error)
                    continue
                except ValueError:  # equations that cannot be loaded are said with their file
                    return
                for wrong in {*wrongs} - {*names}:
                    yield cell.id, f"wanted one of the wrong forms of Eq. {label}, {', '.join(names)}; got {wrong}"


def only_lessons_findings(book: NotebookNode) -> Iterator[Finding]:
    """Formulas have numbers in lessons only."""
    yield from ((cell_id, f"wanted numbered formulas in lessons only, got Eq. {label}") for cell_id, label, _ in tagged(book))


def labels_named(text: str) -> list[str]:
    """Return the labels that a text refers to, as "Eq. softmax" or "Eqs. softmax, log-softmax and stable-softmax".

    >>> labels_named("By Eq. softmax and the chain rule; Eqs. log-softmax and stable-softmax, Eq. 1 of the paper")
    ['log-softmax', 'softmax', 'stable-softmax']
    """
    several = [label for group in _SEVERAL.findall(text) for label in re.findall(_LABEL, group[0]) if label != "and"]
    return sorted({*several, *_ONE.findall(text)})


def reference_findings(text: str, known: Collection[str]) -> Iterator[Finding]:
    """Every "Eq. LABEL" of a docstring, a comment or a guide names a registered equation, and none is named by a number."""
    yield from ((None, f"Eq. {label} does not exist") for label in labels_named(text) if label not in known)
    yield from ((None, f"{number} is a number; wanted the label") for number in _NUMBERED.findall(text))


def role_findings(text: str) -> Iterator[Finding]:
    """No role stands in an f-string: braces there mean something else."""
    formatted = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)]
    for node in formatted:
        for value, after in zip(node.values, node.values[1:], strict=False):
            name = value.value.id if isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name) else ""
            if name in ("eq", "key", "task", "lesson", "section") and isinstance(after, ast.Constant) and str(after.value).startswith("`"):
                yield None, f"line {node.lineno}: wanted no role in an f-string, got {{{name}}}"


def section_number_findings(text: str) -> Iterator[Finding]:
    """A section of the course is cited by its name: a number would become wrong, and a number of another text would become a link."""
    for number in _SECTION.findall(text):
        yield None, f"wanted a section by its name, or § {number} of another text; got section {number}"


def _tagged(book: NotebookNode) -> Iterator[tuple[str, str, str]]:
    """(cell id, label, formula as it stands) of each displayed formula that has a number; an unknown number stands for itself."""
    labels = labels_by_number()
    for cell in markdown_cells(book):
        for block in _DISPLAY.findall(cell.source):
            yield from ((cell.id, labels.get(tag, tag), _TAG.sub("", block)) for tag in _TAG.findall(block))


def _quoted(formula: str) -> str:
    r"""A formula in quotes, its backslashes single."""
    return f"'{' '.join(formula.split())}'"
