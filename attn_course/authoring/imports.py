"""Find the package files a notebook's code depends on, by reading import statements; nothing is imported."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from attn_course.authoring.source import is_called, literal_calls
from attn_course.numbers import FILE, Tables, lesson_modules

PACKAGE = "attn_course"
LAZY = {  # names that attn_course/__init__ finds when asked
    "alive": f"{PACKAGE}.game.alive",
    **dict.fromkeys(("check", "read"), f"{PACKAGE}.tasks"),
    **dict.fromkeys(("show", "verify", "verify_lesson"), f"{PACKAGE}.equations"),
}
LESSON_ROOMS = {  # check("stable-softmax") reads lessons/softmax/tasks*.py
    **dict.fromkeys(("check", "read"), ("tasks", "tasks")),
    **dict.fromkeys(("alive", "show", "verify", "verify_lesson"), ("equations", "labels")),
}
EVERY_LESSON = {"chapter_map": "equations"}  # chapter_map() counts in the files of all lessons, which it loads when called
_FILE_NAME = re.compile(r"[\w-]+(/[\w-]+)*(\.[a-z]+)?|[\w-]{2,}\.\*|\*\.[a-z]{2,}")  # "page.css"; "page.*" of f"page.{kind}"


@dataclass
class ImportGraph:
    """The package's files and who needs whom.

    A package's `__init__` that merely hands on a name is not itself a dependency: `from attn_course.reference import softmax` needs
    reference/softmax.py, so a new sibling there makes no notebook stale.

    `package_root`: folder that holds the package. `tables`: which lesson a label or a task belongs to.
    """

    package_root: Path
    tables: Tables
    _parsed: dict[Path, "Parsed"] = field(default_factory=dict)
    _paths: dict[str, Path | None] = field(default_factory=dict)

    def closure(self, text: str) -> list[Path]:
        """Return the package files, sorted, that a piece of notebook code needs directly or through others.

        `text`: Python, for instance a whole percent source.
        """
        found = set(self._every_lesson(text))
        waiting = [*self._uses(parsed(text), package=""), *self._lesson_modules(text)]
        seen = set(waiting)
        followed: set[Path] = set()
        while waiting:
            for path in self._files(*waiting.pop()):
                if path in followed:
                    continue
                followed.add(path)
                found |= {path, *self._assets(path)}
                new = set(self._uses(self._read(path), self._package_of(path))) - seen
                seen |= new
                waiting += sorted(new, key=str)
        return sorted(found)

    def _files(self, module: str, name: str | None) -> Iterator[Path]:
        """Files that hold `name` of `module`; the whole module if name is None. Nothing for other people's modules."""
        path = self._path(module)
        if path is None:
            return
        if path.name != "__init__.py" or name is None:
            yield path
        elif module == PACKAGE and name in LAZY:
            yield from self._files(LAZY[name], name)
        elif (origin := self._origin(path, name)) is not None:
            yield from self._files(*origin)
        elif self._path(f"{module}.{name}") is not None:
            yield from self._files(f"{module}.{name}", None)
        else:
            yield path

    def _origin(self, path: Path, name: str) -> tuple[str, str | None] | None:
        """Where an `__init__` gets a name from, if by a from-import of another file."""
        package = self._package_of(path)
        for node in self._read(path).tree.body:
            if isinstance(node, ast.ImportFrom):
                module = _absolute(node, package)
                for alias in node.names:
                    if (alias.asname or alias.name) == name and self._path(module) is not None and module != package:
                        return module, alias.name
                    if (alias.asname or alias.name) == name and self._path(f"{module}.{alias.name}") is not None:
                        return f"{module}.{alias.name}", None
        return None

    def _uses(self, read: "Parsed", package: str) -> Iterator[tuple[str, str | None]]:
        """(module, name) for every import, refined to module.name where a module is only used as `module.name`."""
        for node in read.imports:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        yield from read.refined(alias.asname or alias.name, alias.name)
            else:
                module = _absolute(node, package)
                if module.split(".")[0] != PACKAGE:
                    continue
                for alias in node.names:
                    inner = f"{module}.{alias.name}"
                    if alias.name == "*":
                        yield module, None
                    elif self._path(inner) is not None and self._origin_of_module(module, alias.name) is None:
                        yield from read.refined(alias.asname or alias.name, inner)
                    else:
                        yield module, alias.name

    def _origin_of_module(self, module: str, name: str) -> tuple[str, str | None] | None:
        """As `_origin`, for a module by name: a function may hide the file of the same name."""
        path = self._path(module)
        return self._origin(path, name) if path is not None and path.name == "__init__.py" else None

    def _lesson_modules(self, text: str) -> Iterator[tuple[str, str | None]]:
        """The modules that check("stable-softmax", ...) and verify_lesson("softmax") read: all files of the lesson in that room."""
        for function, (room, kind) in LESSON_ROOMS.items():
            said = set(literal_calls(text, function))
            for slug, known in self.tables[kind].items():
                if said & {slug, *known}:
                    yield from ((module, None) for module in lesson_modules(room, slug, self.package_root / PACKAGE))

    def _every_lesson(self, text: str) -> Iterator[Path]:
        """Files that a call reads in every lesson; what these need in turn changes nothing that is counted in them."""
        for function, room in EVERY_LESSON.items():
            if is_called(text, function):
                yield from (self.package_root / PACKAGE / "lessons").glob(f"*/{room}*.py")

    def _assets(self, path: Path) -> Iterator[Path]:
        """Files beside a module that it names in a string, by name, by a pattern or by their folder: a page, a stored table."""
        for name in self._read(path).file_names:
            if "*" in name:
                yield from (found for found in path.parent.glob(name) if found.suffix not in (".py", ".pyc"))
                continue
            asset = path.parent / name
            if asset.name == FILE:
                continue  # the numbers that are said count one by one, see Fingerprints
            if asset.is_file():
                yield asset
            elif asset.is_dir() and not any(asset.rglob("*.py")):  # a folder of modules is reached by imports
                yield from (inner for inner in asset.rglob("*") if inner.is_file() and inner.suffix != ".pyc")

    def _path(self, module: str) -> Path | None:
        if module not in self._paths:
            self._paths[module] = self._found(module)
        return self._paths[module]

    def _found(self, module: str) -> Path | None:
        base = self.package_root.joinpath(*module.split("."))
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if module.split(".")[0] == PACKAGE and path.is_file():
                return path
        return None

    def _package_of(self, path: Path) -> str:
        return ".".join(path.relative_to(self.package_root).parent.parts)

    def _read(self, path: Path) -> "Parsed":
        if path not in self._parsed:
            self._parsed[path] = parsed(path.read_text(encoding="utf-8"), path.relative_to(self.package_root).as_posix())
        return self._parsed[path]


@dataclass(frozen=True)
class Parsed:
    """What a piece of Python imports and names."""

    tree: ast.Module
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    file_names: tuple[str, ...]  # strings that may name a file, or files: each hole of an f-string is a *
    attributes: tuple[ast.Attribute, ...]
    names: tuple[ast.Name, ...]

    def refined(self, local: str, module: str) -> Iterator[tuple[str, str | None]]:
        """(module, attribute) for each attribute read from its local name; (module, None) if that is used in another way or not at all."""
        if "." in local:
            yield module, None
            return
        own = [node.attr for node in self.attributes if isinstance(node.value, ast.Name) and node.value.id == local]
        if not own or len(own) < sum(node.id == local for node in self.names):
            yield module, None
        yield from ((module, name) for name in own)


@lru_cache(maxsize=1024)
def parsed(text: str, filename: str = "<unknown>") -> Parsed:
    """Read a piece of Python; what has been read once, by its text, is remembered for all lessons."""
    tree = ast.parse(text, filename=filename)
    nodes = list(ast.walk(tree))
    strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    joined = (node.values for node in nodes if isinstance(node, ast.JoinedStr))
    strings += ["".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts) for parts in joined]
    return Parsed(
        tree,
        tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(filter(_FILE_NAME.fullmatch, strings)),
        tuple(node for node in nodes if isinstance(node, ast.Attribute)),
        tuple(node for node in nodes if isinstance(node, ast.Name)),
    )


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module a from-import names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - node.level + 1]
    return ".".join([*base, *filter(None, [node.module])])
