"""Find, in a learner's answer, calls of library functions that a task forbids, and uses of the course's own answers."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

from attn_course.tasks.forbidden import LIBRARIES, PLACES, THREADING, THREADS

COURSE = re.compile(r"attn_course\.(reference|tasks|lessons\.\w+\.(?!(figures|experiments)(_|\b))\w+)(\.|$)")  # where the right answers are
HARMLESS = re.compile(
    r"attn_course\.tasks\.((notebook|reading|variants)\.)?(check|read|question|Reading|CheckFailed|_Printed)"
)  # _Printed: what sys.stdout is during a check
BEHIND = "_behind_a_stub"  # where a stub of the grader's keeps the function that it stands in front of


def answer_source(answer: Any, entry: str, cells: Sequence[str], given: Collection[str] = ()) -> str:
    """Return the text that defines an answer, or "" if it cannot be found.

    `cells`: texts of the cells run so far, the oldest first. `given`: names of helper functions that belong to the exercise, not to
    the answer. Returns `source`: Python text that parses: a function with the learner's functions it calls, or the cell that binds
    the name.
    """
    if inspect.isfunction(answer):
        texts: dict[CodeType, str] = {}
        _collect(answer, texts, given)
        if texts:
            return "\n\n".join(texts.values())
    for cell in reversed(cells):
        if binds(cell, entry):
            return f"{cell}\n{entry}"  # the name itself, in case it was imported
    return ""


def binds(cell: str, name: str) -> bool:
    """Return whether a cell gives a meaning to a global name."""
    try:
        return name in _bound(ast.parse(cell))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a magic; a null byte; nested beyond measure
        return False


def has_dots(cell: str) -> bool:
    """Return whether `...` still stands for something in a cell; in square brackets it is an index."""
    nodes = [*ast.walk(ast.parse(cell))]
    indices = {id(node) for each in nodes if isinstance(each, ast.Subscript) for node in ast.walk(each.slice)}
    return any(isinstance(node, ast.Constant) and node.value is ... and id(node) not in indices for node in nodes)


def unread(entry: str, cells: Sequence[str]) -> SyntaxError | None:
    """Return what keeps the newest cell that would define a name from being Python, so that the name still means something older."""
    defines = re.compile(rf"^\s*(async\s+def|def|class)\s+{entry}\b|^\s*{entry}\s*(:[^=\n]*)?=(?!=)", re.MULTILINE)
    for cell in reversed(cells):
        if defines.search(cell):
            try:
                for node in ast.parse(cell).body:  # one after the other, as IPython does: a __future__ may stand behind other lines
                    compile(ast.Module([node], []), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            except SyntaxError as error:
                return error
            except (ValueError, RecursionError, MemoryError):  # a null byte; nested beyond measure
                return None
        if binds(cell, entry):
            return None
    return None


def import_what_is_named(source: str) -> None:
    """Import what a text imports, so that the clock of a case does not run meanwhile: torch may take longer than a case is given."""
    for path in _imports(ast.walk(ast.parse(source))).values():
        with contextlib.suppress(Exception, SystemExit):  # the answer's own import will say it
            importlib.import_module(path.partition(".")[0])


def forbidden_calls(source: str, forbid: Sequence[str], names: Mapping[str, Any]) -> list[str]:
    """List the forbidden things that a text uses.

    `forbid`: rules, as `tasks.forbidden` describes them. `names`: the learner's global names, to see through
    `import torch.nn.functional as F`. Returns `found`: as they stand in the source, sorted, each once; behind a name of the
    learner's own stands the forbidden one.
    """
    methods = {rule[1:] for rule in forbid if rule.startswith(".")}
    packages = (*(rule[:-1] for rule in forbid if rule.endswith(".*")), *(THREADING if THREADS in forbid else ()))
    places = tuple(sys.modules.get(place) for place in PLACES)
    objects: dict[int, tuple[str, Any]] = {}
    for rule in forbid:
        objects |= _objects(rule, places if rule.startswith(".") else (sys.modules.get(rule.partition(".")[0]),))
    nodes = [*ast.walk(ast.parse(source))]  # once: it takes its time
    known = _known(nodes, imports := _imports(nodes), names)
    modules = {name: value.__name__ for name, value in known.items() if inspect.ismodule(value)} | imports
    own = _own_members(nodes, names) & methods
    found = set()
    for node in nodes:
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        text = _dotted(node)
        head, dot, rest = text.partition(".")
        path = modules[head] + dot + rest if head in modules else ""
        value = _behind(_resolve(node, known))
        owner, _, last = path.rpartition(".")
        named = path in forbid or (last in methods and owner in PLACES)
        same = (
            objects[id(value)][0]
            if id(value) in objects
            else path
            if named
            else next((home for home in (_home(value), path) if home.startswith(packages)), None)
        )
        if same is None and not (isinstance(node, ast.Attribute) and node.attr in methods and _may_be_the_librarys(node, modules, own)):
            continue
        found.add(text if same is None or text.rpartition(".")[2] == same.rpartition(".")[2] else f"{text} ({same})")
    return sorted(found)


@functools.cache
def _objects(rule: str, loaded: tuple[Any, ...]) -> dict[int, tuple[str, Any]]:
    """What a rule forbids by being it: its name and itself, by its id. `loaded`: the modules that it may be in."""
    names = [f"{place}{rule}" for place in PLACES] if rule.startswith(".") else [rule]
    found = [(name, item) for name in reversed(names) if (item := _behind(if_imported(name))) is not None]
    return {id(item): (name, item) for name, item in found}  # an id is another's once its owner is gone


def _may_be_the_librarys(node: ast.Attribute, modules: Mapping[str, str], own: Collection[str]) -> bool:
    """Whether an attribute with the name of a forbidden method may be that method, and no function of another library.

    `own`: such names that a class of the learner's has for a member: there only what begins with a library's name counts.
    """
    root: ast.expr = node.value
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    head = modules.get(root.id, "").partition(".")[0] if isinstance(root, ast.Name) else ""
    names_another = head and isinstance(node.value, (ast.Name, ast.Attribute))  # np.diff, tl.exp; np.asarray(x).diff may be anything
    return head in LIBRARIES or not (names_another or node.attr in own)


def _own_members(nodes: Collection[ast.AST], names: Mapping[str, Any]) -> set[str]:
    """What the learner's own classes and objects have as members: methods, properties, fields, attributes that are set."""
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            found |= _bound(ast.Module(node.body, []))
    for value in names.values():
        kind = value if inspect.isclass(value) else type(value)
        if kind.__module__ == "__main__" or kind.__module__ not in sys.modules:
            found |= {*vars(kind), *vars(kind).get("__annotations__", ())}
    return found


def course_uses(source: str, names: Mapping[str, Any]) -> list[str]:
    """List what a text uses of the rooms that hold the course's right answers, however it came by it.

    Returns `found`: as they stand in the source, sorted, each once. `check` is no answer and may be called anywhere.
    """
    tree = ast.parse(source)
    nodes = [*ast.walk(tree)]
    imports = _imports(nodes)
    known = _known(nodes, imports, names)
    found = {ast.unparse(node) for node in _chains(tree) if _is_courses(node, imports, known)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(COURSE.pattern + r"[\w.]*", node.value):
            found.add(ast.unparse(node))  # for import_module
        if isinstance(node, ast.ImportFrom) and COURSE.match(node.module or "") and any(alias.name == "*" for alias in node.names):
            found.add(ast.unparse(node))
    return sorted(found)


def _behind(value: Any) -> Any:
    """The function that stubs stand in front of, which has other names too; anything else is itself."""
    while inspect.isfunction(value) and BEHIND in vars(value):
        value = vars(value)[BEHIND]
    return value


def _dotted(node: ast.expr) -> str:
    """As ast.unparse, which takes its time."""
    names: list[str] = []
    part = node
    while isinstance(part, ast.Attribute):
        names.append(part.attr)
        part = part.value
    return ".".join([part.id, *reversed(names)]) if isinstance(part, ast.Name) else ast.unparse(node)


def _is_courses(node: ast.expr, imports: Mapping[str, str], known: Mapping[str, Any]) -> bool:
    """Whether a dotted name, or the beginning of it, is one of the course's own things."""
    head, dot, rest = ast.unparse(node).partition(".")
    paths = [imports.get(head, "") + dot + rest]
    part: ast.expr = node
    while True:
        paths.append(_home(_resolve(part, known)))
        if not isinstance(part, ast.Attribute):
            break
        part = part.value
    return not any(HARMLESS.fullmatch(path) for path in paths) and any(COURSE.match(path) for path in paths)


def _home(value: Any) -> str:
    """The dotted name of a module, function or class; of anything else that of what it is made by."""
    if inspect.ismodule(value):
        return value.__name__
    if isinstance(value, functools.partial):
        return _home(value.func)
    if inspect.ismethod(value):
        return _home(value.__self__)
    named = value if inspect.isroutine(value) or inspect.isclass(value) else type(value)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__name__', '')}"


def _chains(tree: ast.AST) -> Iterator[ast.expr]:
    """Each name with all the attributes that follow it."""
    if isinstance(tree, (ast.Name, ast.Attribute)):
        yield tree
        while isinstance(tree, ast.Attribute):
            tree = tree.value
        if isinstance(tree, ast.Name):
            return
    for node in ast.iter_child_nodes(tree):
        yield from _chains(node)


def _known(nodes: Collection[ast.AST], imports: Mapping[str, str], names: Mapping[str, Any]) -> dict[str, Any]:
    """What the global and imported names of a text stand for; its own variables hide them."""
    local = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {name: value for name, value in names.items() if name not in local} | {name: if_imported(path) for name, path in imports.items()}


def _collect(function: Any, texts: dict[CodeType, str], given: Collection[str]) -> None:
    """Add the text of a function, and of those functions and methods of classes of the same module that it names."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, SyntaxError, TypeError):  # a lambda inside a larger statement, or no file behind it
        return
    texts[function.__code__] = text
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        helper = function.__globals__.get(name)
        parts = [*vars(helper).values()] if inspect.isclass(helper) else [helper]
        for part in [getattr(part, "fget", None) or getattr(part, "__func__", part) for part in parts]:  # of properties; static methods
            own = inspect.isfunction(part) and part.__module__ == function.__module__ and name not in given
            if own and part.__code__ not in texts:
                _collect(part, texts, given)


def _bound(tree: ast.Module) -> set[str]:
    """The names that the statements of a cell bind, without those inside functions and classes."""
    names: set[str] = set()
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        todo += ast.iter_child_nodes(node)
    return names | set(_imports(tree.body))


def _imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What each imported name stands for, as a dotted path."""
    paths = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            paths.update({a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0] for a in node.names})
        elif isinstance(node, ast.ImportFrom):
            paths.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    return paths


def if_imported(dotted: str) -> Any:
    """Return the object a dotted name stands for, if its module is already imported; nothing is imported for this."""
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
        return getattr(owner, node.attr, None) if inspect.ismodule(owner) or inspect.isclass(owner) else None
    return None
