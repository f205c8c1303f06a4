"""Rules for numbered formulas. Each returns what breaks it, one line per finding, so that planted edits can show that it bites."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attn_course import numbers
from attn_course.authoring.source import literal_calls
from attn_course.equations import normalise_latex
from tests.project.formula_references import labels_named

from .chapters import code_cells, markdown_cells

DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
TAG = re.compile(r"\\tag\s*\{([^{}]*)\}")


def tagged(book: Any) -> list[tuple[str, str, str]]:
    """Return (cell id, label, formula) for each displayed formula that has a number, in order; an unknown number stands for itself."""
    labels = {number: label for known in numbers.tables()["labels"].values() for label, number in known.items()}
    found = []
    for cell in markdown_cells(book):
        for block in DISPLAY.findall(cell.source):
            found += [(cell.id, labels.get(tag, tag), TAG.sub("", block)) for tag in TAG.findall(block)]
    return found


def tag_findings(book: Any) -> list[str]:
    """Numbers stand one to a displayed formula."""
    findings = []
    for cell in markdown_cells(book):
        blocks = DISPLAY.findall(cell.source)
        inside = [len(TAG.findall(block)) for block in blocks]
        if any(count > 1 for count in inside):
            findings.append(f"[{cell.id}]: wanted one label to a displayed formula, got {max(inside)}")
        if len(TAG.findall(cell.source)) != sum(inside):
            findings.append(f"[{cell.id}]: wanted every label inside $$ ... $$")
    return findings


def registry_findings(book: Any, registered: Mapping[str, str]) -> list[str]:
    """Every formula is registered, with the same formula; every registered equation is shown.

    Parameters
    ----------
    book : NotebookNode
        A lesson.
    registered : mapping
        Label -> LaTeX of the lesson's equations.
    """
    findings = []
    shown = tagged(book)
    for cell_id, label, formula in shown:
        if label not in registered:
            findings.append(f"[{cell_id}]: Eq. {label} is not registered in the equations of the lesson")
        elif normalise_latex(formula) != normalise_latex(registered[label]):
            findings.append(f"[{cell_id}]: Eq. {label}: the registry has {registered[label]!r}, the lesson {formula.strip()!r}")
    missing = [label for label in registered if label not in {label for _, label, _ in shown}]
    return findings + [f"Eq. {label} is registered, but the lesson does not show it" for label in missing]


def verify_findings(book: Any) -> list[str]:
    """Every tagged formula is verified in a later cell of the lesson, by name; nothing is verified before it is shown."""
    place = {cell.id: number for number, cell in enumerate(book.cells)}
    verified: dict[str, int] = {}
    for cell in code_cells(book):
        for label in literal_calls(cell.source, "verify"):
            verified.setdefault(label, place[cell.id])
    findings = []
    for cell_id, label, _ in tagged(book):
        if label not in verified:
            findings.append(f'[{cell_id}]: Eq. {label}: wanted verify("{label}") in a cell below it, got none')
        elif verified[label] < place[cell_id]:
            findings.append(f"[{cell_id}]: Eq. {label}: wanted it verified below the formula, got it above")
    return findings


def reference_findings(text: str, known: Iterable[str]) -> list[str]:
    """Every "Eq. label" names a registered equation, and none is named by a number."""
    found = [f"Eq. {label} does not exist" for label in labels_named(text) if label not in set(known)]
    return found + [f"{number} is a number; wanted the label" for number in re.findall(r'(?<!")\bEqs?\.[\s#]*\(\d+\.\d+\)(?! holds)', text)]
