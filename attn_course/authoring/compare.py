"""Compare a built notebook with the one its source asks for, cell by cell, outputs aside."""

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from nbformat import NotebookNode

from attn_course.authoring.notebook import from_text
from attn_course.authoring.problems import REBUILD, Finding, shorten

WIDTH = 70  # of a line in a finding
LEAD = 30  # characters shown before the first one that differs


def differences(expected: NotebookNode, text: str) -> Iterator[Finding]:
    """Yield (cell id, what differs) for each difference; cell id None stands for the notebook.

    `expected`: as rendered from the source. `text`: the file on disk.
    """
    actual = from_text(text)
    if actual is None:
        yield None, f"wanted a notebook of format 4.5, got {shorten(text.strip(), 40)}"
        return
    yield from _notebook_differences(expected, actual)
    found = {cell.id: cell for cell in actual.cells}
    wanted = {cell.id: cell for cell in expected.cells}
    for cell_id in found:
        if cell_id not in wanted:
            yield cell_id, "a cell that the source does not have"
    for cell_id, cell in wanted.items():
        if cell_id not in found:
            yield cell_id, f"missing; wanted {shorten(_first_line(cell.source))}"
        else:
            yield from ((cell_id, message) for message in _cell_differences(cell, found[cell_id]))
    for cell_id, count in Counter(cell.id for cell in actual.cells).items():
        if count > 1:
            yield cell_id, f"wanted an id of its own, got {count} cells with it"
    yield from _order_differences([cell_id for cell_id in wanted if cell_id in found], [cell_id for cell_id in found if cell_id in wanted])


def _notebook_differences(expected: NotebookNode, actual: NotebookNode) -> Iterator[Finding]:
    version = (actual.nbformat, actual.nbformat_minor)
    if version != (4, 5):
        yield None, f"wanted nbformat 4.5, got {version[0]}.{version[1]}"
    wanted, got = dict(expected.metadata), dict(actual.metadata)
    wanted_record, got_record = wanted.pop("attn_course"), got.pop("attn_course", {})
    for key in sorted({*wanted, *got}):
        if wanted.get(key) != got.get(key):
            yield None, f"metadata {key!r}: wanted {wanted.get(key)!r}, got {shorten(str(got.get(key)))}"
    if got_record.get("source") != wanted_record["source"]:
        yield None, f"metadata 'attn_course': wanted source {wanted_record['source']!r}, got {got_record.get('source')!r}"
    if got_record.get("sha256") != wanted_record["sha256"]:
        yield None, f"stale: its source, or package code it needs, has changed since it was built; {REBUILD}"


def _cell_differences(wanted: NotebookNode, got: NotebookNode) -> Iterator[str]:
    if wanted.cell_type != got.cell_type:
        yield f"wanted a {wanted.cell_type} cell, got a {got.cell_type} cell"
    if wanted.source != got.source:
        yield _line_difference(wanted.source, got.source)
    for key in sorted({*wanted.metadata, *got.metadata}):
        if wanted.metadata.get(key) != got.metadata.get(key):
            yield f"metadata {key!r}: wanted {_shown(wanted.metadata.get(key))}, got {_shown(got.metadata.get(key))}"


def _line_difference(wanted: str, got: str) -> str:
    """The first line that differs."""
    pairs = enumerate(zip_longest(wanted.split("\n"), got.split("\n")), 1)
    number, (wanted_line, got_line) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    same = next((place for place, (a, b) in enumerate(zip(wanted_line or "", got_line or "", strict=False)) if a != b), 0)
    shown = [_window(line, same) if line is not None else "no such line" for line in (wanted_line, got_line)]
    return f"line {number}: wanted {shown[0]}, got {shown[1]}"


def _window(line: str, same: int) -> str:
    """A line in quotes; a long one from a little before the place where it parts from the other."""
    start = max(0, same - LEAD) if len(line) > WIDTH else 0
    return shorten(("..." if start else "") + line[start:], WIDTH)


def _order_differences(wanted: list[str], got: list[str]) -> Iterator[Finding]:
    for wanted_id, got_id in zip(wanted, got, strict=True):
        if wanted_id != got_id:
            yield wanted_id, f"out of order: wanted it where {got_id!r} stands"
            return


def _first_line(text: str) -> str:
    return text.split("\n")[0]


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
