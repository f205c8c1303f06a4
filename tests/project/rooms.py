"""Who may import whom: the room table, and a reader of import statements that holds the package to it."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Room:
    """What the files of one room may import besides the standard library and each other."""

    anywhere: tuple[str, ...] = ()  # at the top of a file or in a function, with all they hold
    exactly: tuple[str, ...] = ()  # the same, but not what they hold
    in_functions: tuple[str, ...] = ()  # only where the import waits for a call (or for a type checker)


COURSE = "attn_course"
LAST = ("IPython", "ipykernel", "jupyter_server", "jupyterlab", "matplotlib", "numpy", "sympy", "torch", "triton")
ROOMS = {
    "__init__": Room(in_functions=(COURSE,)),
    "numbers": Room(),
    "files": Room(in_functions=("filelock",)),
    "changes": Room(),
    "sentence": Room(("numpy",)),
    "reference": Room(("numpy", "jaxtyping")),
    "costs": Room(("numpy",)),
    "formulas": Room(("numpy", "sympy")),
    "notation": Room(("numpy", f"{COURSE}.costs.checks")),
    "gpu": Room(("torch", "triton", f"{COURSE}.costs")),  # triton: see kernel files below
    "modules": Room(("torch", "jaxtyping", f"{COURSE}.gpu.ops"), in_functions=("gguf", "numpy")),  # a file of weights is read with NumPy
    "language": Room(
        ("torch", "numpy", "jaxtyping", f"{COURSE}.modules", f"{COURSE}.gpu.ops"), in_functions=("gguf", "tokenizers", "platformdirs")
    ),
    "experiments": Room(("torch", "numpy", f"{COURSE}.modules", f"{COURSE}.reference", f"{COURSE}.gpu.ops", f"{COURSE}.language")),
    "distributed": Room(("torch", f"{COURSE}.gpu.ops")),
    "equations": Room(("sympy", "numpy", f"{COURSE}.formulas", f"{COURSE}.reference", f"{COURSE}.costs")),
    "tasks": Room(
        ("numpy", "sympy", f"{COURSE}.formulas", f"{COURSE}.reference", f"{COURSE}.costs"),
        exactly=(f"{COURSE}.language.stored.stored",),  # maps of the real model, as they lie with the course
        in_functions=("torch", "IPython"),
    ),
    "figures": Room(("numpy", "matplotlib", "PIL", "IPython")),
    "checking": Room(("nbformat", "IPython", "nbval", "pytest", f"{COURSE}.tasks", f"{COURSE}.figures")),
    "classroom": Room(
        (*("nbformat", "IPython", "numpy", "jinja2"), *(f"{COURSE}.{room}" for room in ("checking", "tasks", "figures", "distributed"))),
        exactly=(COURSE, f"{COURSE}.__version__"),
        in_functions=("distributed", "nbgrader", "sqlalchemy"),  # extras: a class on a cluster; the gradebook of nbgrader
    ),
    "game": Room(("numpy", "IPython", *(f"{COURSE}.{room}" for room in ("formulas", "equations", "figures")))),
    "authoring": Room(  # reference and experiments: what a lesson defines again; stored results; numpy: what the built machine is held to
        (
            *("nbformat", "nbclient", "jupytext", "numpy"),
            *(f"{COURSE}.{room}" for room in ("formulas", "equations", "tasks", "figures", "game", "reference", "experiments")),
        )
    ),
    "site": Room(
        ("docutils", "sphinx", *(f"{COURSE}.{room}" for room in ("authoring", "equations", "tasks", "figures", "game", "notation"))),
        exactly=(COURSE, f"{COURSE}.__version__", *(f"{COURSE}.language.maps{name}" for name in ("", ".TEXTS", ".smollm2_maps"))),
        in_functions=("py_mini_racer", "markdown_it", "mdit_py_plugins", "pygments", "sphinx_revealjs"),
    ),
    "cli": Room(
        anywhere=("typer", "click", "rich", "nbformat", "jupyter_client", "jupyter_core", "jupyter_server.services"),  # lab's server
        exactly=(COURSE, f"{COURSE}.__version__"),
        in_functions=(COURSE, *LAST, "genanki", "markdown_it"),  # genanki: an extra
    ),
}
WORKER_HALF = (  # what runs a learner's code knows no answer: these files import but each other and WORKER_NEEDS
    f"{COURSE}.checking.magics",
    *(f"{COURSE}.classroom.{name}" for name in ("protocol", "sandbox", "stubs", "worker", "fork_server")),
    *(f"{COURSE}.tasks.{name}" for name in ("forbidden", "forms", "launches", "run", "shapes", "slices", "source", "time_limit")),
)
FORMULA_HALF = (  # what evaluates a learner's LaTeX knows none either
    f"{COURSE}.classroom.formula_worker",
    *(f"{COURSE}.tasks.{name}" for name in ("compare", "latex", "simplified", "slips")),
)
WORKER_NEEDS = ("numpy", "torch", "sympy", "IPython")
SHARED = tuple(f"{COURSE}.{name}" for name in ("numbers", "files", "sentence", "changes"))  # every room may import these ...
WITHOUT_SHARED = ("reference", "costs", "notation")  # ... but these
DOORS = ("figures/broken.py",)  # to the room game: what learners' copies of lessons import
ONE_ROOM = {"commands": "cli"}  # folders that belong to a room of another name


class Import(NamedTuple):
    """One imported name, with all its dots, and where it stands."""

    name: str
    line: int
    in_function: bool


def violations(package: Path) -> list[str]:
    """Return one line for each import of the package that the room table does not allow."""
    found = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        part = (place.name.split("_")[0] if place.parts[0] == "lessons" else place.parts[0]).removesuffix(".py")  # lessons/*/tasks_word.py
        name = ONE_ROOM.get(part, part)
        if place.as_posix() in DOORS:
            continue
        if name not in ROOMS:
            found.append(f"{place}: {part} is no room of the table; add it to tests/project/rooms.py and to the architecture")
            continue
        text = path.read_text(encoding="utf-8")
        for imported in imports(text, module=(package.name, *place.with_suffix("").parts)):
            module = ".".join((package.name, *place.with_suffix("").parts))
            if _is_within(module, (*WORKER_HALF, *FORMULA_HALF)):
                complaint = _complaint_of_worker(module, imported)
            else:
                lesson = place.parts[1] if place.parts[0] == "lessons" else ""
                complaint = _complaint(name, imported, is_kernel_file="@triton.jit" in text, lesson=lesson)
            if complaint:
                found.append(f"{place}:{imported.line}: {complaint}")
    return found


def imports(text: str, module: tuple[str, ...]) -> Iterator[Import]:
    """Yield every import of a file: statements, and import_module or __import__ of a literal name."""
    tree = ast.parse(text)
    waiting = {id(inner) for node in ast.walk(tree) if _waits(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        for name in _names(node, module):
            yield Import(name, node.lineno, id(node) in waiting)  # type: ignore[attr-defined]  # only statements and calls have names


def _names(node: ast.AST, module: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = [node.module] if node.module else []
        if node.level:
            base = [*module[: len(module) - node.level], *base]
        return [".".join([*base, alias.name]) for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in ("import_module", "__import__"):
            return [str(node.args[0].value)]
    return []


def _waits(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _complaint(room_name: str, imported: Import, *, is_kernel_file: bool, lesson: str) -> str | None:
    if imported.name.split(".")[0] in sys.stdlib_module_names or _is_within(imported.name, _own(room_name)):
        return None
    if room_name not in WITHOUT_SHARED and _is_within(imported.name, SHARED):
        return None
    if lesson and re.match(rf"{COURSE}\.lessons\.{lesson}\.{room_name}(_\w+)?(\.|$)", imported.name):  # what it adds to the same room
        return None
    room = ROOMS[room_name]
    if _is_within(imported.name, ("triton",)) and "triton" in room.anywhere and not is_kernel_file:
        return f"{room_name} may import {imported.name} only in a file that defines a kernel (@triton.jit)"
    if (
        imported.name in room.exactly
        or _is_within(imported.name, room.anywhere)
        or (imported.in_function and _is_within(imported.name, room.in_functions))
    ):
        return None
    if _is_within(imported.name, room.in_functions):
        return f"{room_name} may import {imported.name} only inside a function"
    return f"{room_name} may not import {imported.name}"


def _complaint_of_worker(module: str, imported: Import) -> str | None:
    evaluates = _is_within(module, (*FORMULA_HALF, f"{COURSE}.classroom.fork_server"))  # the fork server makes both
    allowed = (*WORKER_HALF, *WORKER_NEEDS, *((*FORMULA_HALF, f"{COURSE}.formulas") if evaluates else ()))
    known = imported.name.split(".")[0] in sys.stdlib_module_names or _is_within(imported.name, allowed)
    return None if known else f"the worker half of tasks and classroom may not import {imported.name}"


def _own(room_name: str) -> list[str]:
    folders = [folder for folder, room in ONE_ROOM.items() if room == room_name]
    return [f"{COURSE}.{name}" for name in (room_name, *folders)]


def _is_within(name: str, modules: tuple[str, ...] | list[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)
