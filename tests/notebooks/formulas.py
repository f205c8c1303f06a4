"""Rules for numbered formulas. Each returns what breaks it, one line per finding, so that planted edits can show that it bites."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attn_course.authoring.source import literal_calls
from attn_course.equations import normalise_latex

from .chapters import code_cells, markdown_cells

DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
TAG = re.compile(r"\\tag\s*\{([^{}]*)\}")
REFERENCE = re.compile(r"\bEqs?\.[\s#]*(\(\d+\.\d+\)(?:(?:,|[\s#]+(?:and|to|or))*[\s#]*\(\d+\.\d+\))*)")


def tagged(book: Any) -> list[tuple[str, str, str]]:
    """Return (cell id, tag, formula) for each displayed formula that has a tag, in order."""
    found = []
    for cell in markdown_cells(book):
        for block in DISPLAY.findall(cell.source):
            found += [(cell.id, tag, TAG.sub("", block)) for tag in TAG.findall(block)]
    return found


def tag_findings(book: Any, chapter: int) -> list[str]:
    """Tags belong to the chapter, ascend, and stand one to a displayed formula."""
    findings = []
    last = 0
    for cell_id, tag, _ in tagged(book):
        if not re.fullmatch(rf"{chapter}\.[1-9]\d*", tag):
            findings.append(f"[{cell_id}]: wanted a tag like {chapter}.1, got {tag!r}")
            continue
        number = int(tag.split(".")[1])
        if number <= last:
            findings.append(f"[{cell_id}]: wanted a tag above {chapter}.{last}, got {tag}")
        last = max(last, number)
    for cell in markdown_cells(book):
        blocks = DISPLAY.findall(cell.source)
        inside = [len(TAG.findall(block)) for block in blocks]
        if any(count > 1 for count in inside):
            findings.append(f"[{cell.id}]: wanted one tag to a displayed formula, got {max(inside)}")
        if len(TAG.findall(cell.source)) != sum(inside):
            findings.append(f"[{cell.id}]: wanted every tag inside $$ ... $$")
    return findings


def registry_findings(book: Any, registered: Mapping[str, str]) -> list[str]:
    """Every tag is registered, with the same formula; every registered equation is shown.

    Parameters
    ----------
    book : NotebookNode
        A lesson.
    registered : mapping
        Tag -> LaTeX of the chapter's equations.
    """
    findings = []
    shown = tagged(book)
    for cell_id, tag, formula in shown:
        if tag not in registered:
            findings.append(f"[{cell_id}]: Eq. ({tag}) is not registered in attn_course/equations")
        elif normalise_latex(formula) != normalise_latex(registered[tag]):
            findings.append(f"[{cell_id}]: Eq. ({tag}): the registry has {registered[tag]!r}, the lesson {formula.strip()!r}")
    missing = [tag for tag in registered if tag not in {tag for _, tag, _ in shown}]
    return findings + [f"Eq. ({tag}) is registered, but the lesson does not show it" for tag in missing]


def verify_findings(book: Any) -> list[str]:
    """Every tagged formula is verified in a later cell of the lesson, by name; nothing is verified before it is shown."""
    place = {cell.id: number for number, cell in enumerate(book.cells)}
    verified: dict[str, int] = {}
    for cell in code_cells(book):
        for tag in literal_calls(cell.source, "verify"):
            verified.setdefault(tag, place[cell.id])
    findings = []
    for cell_id, tag, _ in tagged(book):
        if tag not in verified:
            findings.append(f'[{cell_id}]: Eq. ({tag}): wanted verify("{tag}") in a cell below it, got none')
        elif verified[tag] < place[cell_id]:
            findings.append(f"[{cell_id}]: Eq. ({tag}): wanted it verified below the formula, got it above")
    return findings


def references(text: str) -> list[str]:
    """Return the tags a text refers to.

    Examples
    --------
    >>> references("Eq. ratio-of-weights, Eqs. shift-invariant-ratios and exponential-functional-equation, and Eq. 1 of the paper")
    ['2.3', '2.4', '2.5']
    """
    return [tag for group in REFERENCE.findall(text) for tag in re.findall(r"\d+\.\d+", group)]


def reference_findings(text: str, known: Iterable[str]) -> list[str]:
    """Every "Eq. (N.k)" names a registered equation."""
    return [f"Eq. ({tag}) does not exist" for tag in references(text) if tag not in set(known)]
