"""The public functions and classes of the package, and what `help` of one of them leaves out."""

import ast
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

SHAPED = re.compile(r"jaxtyping\.|(Float|Bool|Int|Integer|Shaped)\[")
ARRAY = re.compile(r"\b(ndarray|Tensor)\b")
SOURCE = re.compile(r"arXiv:\d{4}\.\d{4,5}|\bEq\.\s[a-z]|\(\d{4}\)")
BLOCK = re.compile(r"^[A-Z]\w+( \w+)?\n-{3,}$", re.MULTILINE)  # as "Parameters" above dashes
PLAIN = re.compile(r"(d|n)_|generator$|bytes_per_")  # a size, a source of randomness, a unit: the name says it
ERROR = re.compile(r"\b(ValueError|TypeError)\b")


def modules(room: str) -> Iterator[ModuleType]:
    """Yield a package and all its modules; a module is only itself."""
    package = import_module(room)
    yield package
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), prefix=f"{room}."):
        yield import_module(found.name)


def public_names(room: str) -> list[str]:
    """Return the dotted names of the functions, classes and methods that a room defines and makes public.

    Public is what `__all__` of the package lists; without such a list, everything without a leading underscore.
    """
    found = []
    listed = getattr(import_module(room), "__all__", None)
    for module in modules(room):
        for name, thing in vars(module).items():
            public = not name.startswith("_") if listed is None else name in listed
            if public and getattr(thing, "__module__", None) == module.__name__ and callable(thing):
                found.append(f"{module.__name__}.{name}")
                methods = vars(thing) if inspect.isclass(thing) else {}
                found += [
                    f"{module.__name__}.{name}.{method}" for method in methods if not method.startswith("_") and callable(methods[method])
                ]
    return sorted(found)


def thing_named(name: str) -> Any:
    """Return the function, class or method of a dotted name; a module is looked up first, since a function may have its name."""
    module, _, rest = name.rpartition(".")
    try:
        return getattr(import_module(module), rest)
    except ModuleNotFoundError:
        return getattr(thing_named(module), rest)


def complaints(name: str) -> list[str]:
    """Return what a reader of `help`, signature and docstring, does not learn of a function, class or method."""
    thing = thing_named(name)
    doc = inspect.getdoc(thing) or ""
    if not doc or not vars(thing).get("__doc__", doc):
        return ["has no docstring"]
    found = []
    if "\n" in doc.partition("\n\n")[0] or not doc.partition("\n\n")[0].endswith((".", ":")):
        found.append("does not begin with one sentence on one line")
    silent = inspect.isclass(thing) and issubclass(thing, Exception)  # such a class may have no signature
    for each in () if silent else inspect.signature(thing).parameters.values():
        annotation = str(each.annotation)
        if ARRAY.search(annotation) and not SHAPED.search(annotation) and "Callable" not in annotation:
            if not re.search(rf"\b{each.name}\b`?((, `\w+`)| \w+)*( : (int or )?| )?\(", doc):
                found.append(f"does not say the shape of {each.name}")
        elif each.default is not each.empty and not (PLAIN.match(each.name) or re.search(rf"\b{each.name}\b|those of `", doc)):
            found.append(f"does not say what {each.name} means")
    if re.search(r"^\s*raise (ValueError|TypeError)", _source(thing), re.MULTILINE) and not ERROR.search(doc):
        found.append("does not say what it raises")
    return found


def in_blocks(text: str) -> list[int]:
    """Return the lines of a file's code at which a docstring begins that has blocks under headings, and so repeats a signature."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return sorted(node.body[0].lineno for node in nodes if BLOCK.search(ast.get_docstring(node) or ""))


def _source(thing: Any) -> str:
    """The source of a function, or of a class's `__init__` and `__post_init__`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    if isinstance(tree, ast.ClassDef):
        return "\n".join(ast.unparse(part) for part in tree.body if getattr(part, "name", "") in ("__init__", "__post_init__"))
    return ast.unparse(tree)
