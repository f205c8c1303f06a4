"""The one form in which a built notebook is written: nbformat 4.5, fixed metadata, sorted keys, LF, one space of indent."""

import ast
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.validator import iter_validate

from attn_course.authoring.sealed import NO_SEAL, Record, seal
from attn_course.authoring.source import Cell

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE_INFO = {  # what ipykernel reports, less the interpreter's version
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
LIVE = "live"  # tag of a cell that runs, but whose output is neither stored nor compared
PREDICTED = "predicted"  # tag of a cell whose output is folded until it is run or opened
ANSWER = "answer"  # tag of a text that is folded
OURS = "ours"  # tag of a text that is folded, behind a cell that waits for the reader
HIDDEN = "hide-output"  # what Jupyter Book calls it
SET_UP = "hide-input"  # its name for the tag of a cell whose code is folded: what a reader can pass over
COLLAPSED = "jp-MarkdownHeadingCollapsed"  # JupyterLab's name for a heading whose section is folded
DEEPER = re.compile(r"(?:\d+\.\d+ )?Deeper: ")  # how the title of a section begins that no core section needs


def assemble(cells: list[Cell], record: Record) -> NotebookNode:
    """Return a notebook without outputs.

    `record`: what it says of its own making.
    """
    notebook = nbformat.v4.new_notebook(
        metadata=nbformat.from_dict(metadata_of(record)), cells=[_node(part) for cell in cells for part in _heading_apart(cell)]
    )
    notebook.nbformat_minor = 5
    return notebook


def metadata_of(record: Record) -> dict[str, Any]:
    """Return the metadata that every built notebook has, not sealed."""
    return {"attn_course": {**asdict(record), "built_sha256": NO_SEAL}, "kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO}


def to_text(notebook: NotebookNode) -> str:
    """Return the text of the file, sealed."""
    notebook.metadata.attn_course.built_sha256 = NO_SEAL
    nbformat.validate(notebook)
    return seal(nbformat.v4.writes(notebook, indent=1, sort_keys=True, ensure_ascii=False).rstrip("\n") + "\n")


def from_text(text: str) -> NotebookNode | None:
    """Return the notebook in a text, or None if it is no notebook of format 4.

    A cell without an id gets its number for one; ids that stand twice are left.
    """
    try:
        notebook: NotebookNode = nbformat.v4.reads(text)
        for number, cell in enumerate(notebook.cells, 1):
            cell.setdefault("id", f"number-{number}")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return None if any(iter_validate({**notebook, "nbformat_minor": 5}, version=4, version_minor=5)) else notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the cells of text in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def tags_of(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags", []))


def is_passed_over(code: str, tags: Sequence[str]) -> bool:
    """Whether the code of a cell is folded: what its author folds, and what only imports or shows something.

    >>> is_passed_over("import numpy as np", []), is_passed_over('figures.machine("softmax")', []), is_passed_over("softmax(x)", [])
    (True, True, False)
    """
    return SET_UP in tags or (PREDICTED not in tags and bool(steps := steps_of(code)) and all(map(_only_shows, steps)))


def steps_of(code: str) -> list[ast.stmt]:
    """Return the statements of a cell; none if it has a magic."""
    try:
        return ast.parse(code).body
    except SyntaxError:
        return []


def _only_shows(step: ast.stmt) -> bool:
    called = ast.unparse(step.value.func) if isinstance(step, ast.Expr) and isinstance(step.value, ast.Call) else ""
    return (
        isinstance(step, ast.Import | ast.ImportFrom)
        or called.startswith("figures.")
        or called in ("alive", "show", "verify_lesson", "np.set_printoptions")
    )


def _heading_apart(cell: Cell) -> list[Cell]:
    """The heading of a deeper section is a cell of its own: JupyterLab folds the cells behind it, not the rest of the heading's."""
    heading, _, text = cell.text.partition("\n")
    if not _is_deeper(cell) or not text.strip():
        return [cell]
    return [replace(cell, text=heading), replace(cell, id=f"{cell.id}-more", text=text.strip("\n"))]


def _is_deeper(cell: Cell) -> bool:
    return cell.kind == "markdown" and cell.text.startswith("## ") and bool(DEEPER.match(cell.text.removeprefix("## ")))


def _node(cell: Cell) -> NotebookNode:
    metadata: dict[str, Any] = {}
    if cell.tags:
        metadata["tags"] = list(cell.tags)
    if PREDICTED in cell.tags:
        metadata["tags"].append(HIDDEN)
        metadata["jupyter"] = {"outputs_hidden": True}
    if cell.kind == "code" and is_passed_over(cell.text, cell.tags):
        metadata["jupyter"] = {"source_hidden": True}
    if _is_deeper(cell):
        metadata[COLLAPSED] = True
    if cell.nbgrader:
        metadata["nbgrader"] = cell.nbgrader
    whole: dict[str, Any] = {"id": cell.id, "cell_type": cell.kind, "source": cell.text, "metadata": metadata}
    if cell.kind == "code":
        whole |= {"execution_count": None, "outputs": []}
    node: NotebookNode = nbformat.from_dict(whole)  # the notebook is validated as a whole, once, when it is written
    return node
