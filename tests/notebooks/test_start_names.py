"""Who runs the cells of lesson start one after the other never meets a name that nothing has defined."""

import ast
import builtins
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

STORED = {"machine", "move-card"}  # their outputs come with the page: nobody need run them


@pytest.fixture(scope="module")
def cells(root: Path) -> list[NotebookNode]:
    return [cell for cell in nbformat.read(root / "notebooks" / "00_start.ipynb", as_version=4).cells if cell.cell_type == "code"]


def unknown(cells: list[NotebookNode]) -> list[str]:
    """Names that a cell reads though no line before it in these cells has made them; a name that a cell makes is known in all of it."""
    known, missing = set(dir(builtins)), []
    for cell in cells:
        names = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name | ast.alias | ast.FunctionDef | ast.arg)]
        read = {node.id for node in names if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        made = {node.id for node in names if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        made |= {node.asname or node.name for node in names if isinstance(node, ast.alias)}
        made |= {node.name for node in names if isinstance(node, ast.FunctionDef)} | {
            node.arg for node in names if isinstance(node, ast.arg)
        }
        made |= {node.name for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.ExceptHandler) and node.name}
        missing += [f"{cell.id}: {name}" for name in sorted(read - made - known)]
        known |= made
    return missing


def test_no_cell_needs_one_whose_output_is_stored_or_may_be_opened_instead(cells: list[NotebookNode]):
    run = [cell for cell in cells if cell.id not in STORED and "predicted" not in cell.metadata.get("tags", [])]
    assert unknown(run) == []


def test_a_predicted_cell_needs_no_other_predicted_cell(cells: list[NotebookNode]):
    predicted = {cell.id for cell in cells if "predicted" in cell.metadata.get("tags", [])}
    assert predicted
    for one in predicted:
        left_out = predicted - {one} | STORED
        assert unknown([cell for cell in cells if cell.id not in left_out]) == []


def test_a_missing_name_is_found():
    first, second = nbformat.v4.new_code_cell("a = 1", id="first"), nbformat.v4.new_code_cell("b = a + c", id="second")
    assert unknown([first, second]) == ["second: c"]
    assert unknown([second]) == ["second: a", "second: c"]
