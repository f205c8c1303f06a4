"""Find calls, in a learner's answer, of library functions that a task forbids."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

DERIVING = (".diff", "sympy.diff", "sympy.Derivative", "sympy.integrate", "sympy.limit")  # forbidden in every derive task


def answer_source(answer: Any, entry: str, cells: Sequence[str]) -> str:
    """Return the text that defines an answer, or "" if it cannot be found.

    Parameters
    ----------
    answer : object
        The learner's function or value.
    entry : str
        The name it is bound to.
    cells : sequence of str
        Texts of the cells run so far, the oldest first.

    Returns
    -------
    source : str
        Python text that parses.
    """
    if inspect.isfunction(answer):
        try:
            source = textwrap.dedent(inspect.getsource(answer))
            ast.parse(source)
            return source
        except (OSError, SyntaxError, TypeError):  # a lambda inside a larger statement, or no file behind it
            pass
    for cell in reversed(cells):
        try:
            tree = ast.parse(cell)
        except SyntaxError:  # a magic
            continue
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if entry in stored | defined:
            return cell
    return ""


def forbidden_calls(source: str, forbid: Sequence[str], names: Mapping[str, Any]) -> list[str]:
    """List the forbidden things that a text uses.

    Parameters
    ----------
    source : str
        The learner's answer.
    forbid : sequence of str
        Dotted names such as "torch.softmax", or ".name" for a method of that name.
    names : mapping
        The learner's global names, to see through `import torch.nn.functional as F`.

    Returns
    -------
    found : list of str
        As they stand in the source, sorted, each once.
    """
    methods = {name[1:] for name in forbid if name.startswith(".")}
    dotted = {name for name in forbid if not name.startswith(".")}
    objects = [found for found in map(_loaded, dotted) if found is not None]
    tree = ast.parse(source) if source else ast.Module([], [])
    known = dict(names)
    for node in ast.walk(tree):  # imports inside the answer itself
        if isinstance(node, ast.Import):
            known.update(
                {(a.asname or a.name.partition(".")[0]): _loaded(a.name if a.asname else a.name.partition(".")[0]) for a in node.names}
            )
        elif isinstance(node, ast.ImportFrom):
            known.update({(a.asname or a.name): _loaded(f"{node.module}.{a.name}") for a in node.names})
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        text = ast.unparse(node)
        value = _resolve(node, known)
        if (value is not None and any(value is item for item in objects)) or (isinstance(node, ast.Attribute) and node.attr in methods):
            found.add(text)
    return sorted(found)


def _loaded(dotted: str) -> Any:
    """The object a dotted name stands for, if its module is already imported; nothing is imported for this."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        value = sys.modules.get(".".join(parts[:cut]))
        if value is not None:
            for part in parts[cut:]:
                value = getattr(value, part, None)
            return value
    return None


def _resolve(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value, known)
        return getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
    return None
