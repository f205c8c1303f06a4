"""An experiment: a function of a seed, its stored results, and the proof that these belong to the present source.

A lesson's file lists its experiments as ``EXPERIMENTS``. `make experiments` runs each for its seeds and stores what came
out as JSON in results/ beside the file; lessons draw what is stored, and tests run a quick form.
"""

import ast
import hashlib
import importlib
import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attn_course import numbers
from attn_course.files import in_short_lines

PACKAGE = Path(__file__).resolve().parents[1]
HOW = "run `make experiments`"


class ExperimentError(Exception):
    """Stored results are missing, unreadable or older than the source; the text says what to do."""


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    `stored`: where its results lie, seen from the file that defines it, such as "results/scale.json". Written out in
    full there, so that a lesson which imports that file is built again when the results change.
    `run`: takes a seed and returns plain data (numbers, texts, lists, mappings by text).
    `conclude`: takes what `run` returned and gives what must be the same for every seed: rankings and coarsely rounded
    numbers.
    `quick`: takes a seed, does the same at a small size, and returns claims that must all be true. The tests call it; at most 5 s.
    `seeds`: those whose results are stored.
    `needs_model`: whether it measures the language model, which may not be on a machine.
    """

    stored: str
    run: Callable[[int], dict[str, Any]]
    conclude: Callable[[dict[str, Any]], Any]
    quick: Callable[[int], dict[str, bool]]
    seeds: Sequence[int] = (0, 1, 2)
    needs_model: bool = False

    @property
    def name(self) -> str:
        """The name of the results, "scaling_scale": the lesson's, and that of the file."""
        return f"{self.path.parent.parent.name}_{self.path.stem}"

    @property
    def path(self) -> Path:
        """The file of the results."""
        return PACKAGE.parent.joinpath(*self.run.__module__.split(".")[:-1]) / self.stored

    @property
    def place(self) -> str:
        """The file of the results as messages show it."""
        return self.path.relative_to(PACKAGE).as_posix()

    def load(self) -> "Record":
        """Return the stored results.

        Raises ExperimentError if there are none, or the file is not what `save` writes.
        """
        if not self.path.is_file():
            raise ExperimentError(f"no stored results of {self.name}: {HOW} (it writes {self.place})")
        try:
            return Record(**json.loads(self.path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ExperimentError(f"{self.place} is no record of an experiment ({error}): {HOW}") from None

    def measure(self) -> "Record":
        """Run every seed, and return what is to be stored."""
        return Record(
            name=self.name,
            seeds=list(self.seeds),
            versions={"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__},
            device=f"CPU, {torch.get_num_threads()} threads, {platform.machine()}",
            date=date.today().isoformat(),
            source_sha256=self.source_sha256(),
            results=[json.loads(json.dumps(self.run(seed))) for seed in self.seeds],  # plain data, or an error here
        )

    def source_sha256(self) -> str:
        """Return the hash of the file that defines `run` and of every package file it needs, but this one."""
        return hash_of_sources(self.run.__module__)

    def problem(self) -> str | None:
        """Return what is wrong with the stored results in one line, or None if they are those of the present source."""
        try:
            record = self.load()
        except ExperimentError as error:
            return str(error)
        if record.source_sha256 != self.source_sha256():
            return f"{self.place} belongs to an older source: {HOW}"
        if record.seeds != list(self.seeds) or len(record.results) != len(record.seeds):
            return f"{self.place} must hold one result for each of the seeds {list(self.seeds)}; got {record.seeds}: {HOW}"
        return None


@dataclass(frozen=True)
class Record:
    """Stored results: one entry of `results` for each seed, and under what circumstances they were measured."""

    name: str
    seeds: list[int]
    versions: dict[str, str]
    device: str
    date: str
    source_sha256: str
    results: list[dict[str, Any]]

    def save(self, path: Path) -> None:
        """Write the record as JSON that is pleasant to compare."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(in_short_lines(asdict(self)), encoding="utf-8")

    def values(self, *keys: str) -> np.ndarray:
        """Return one number, or array of numbers, for each seed.

        `*keys`: the way to it through the mappings of a result.
        """
        found: list[Any] = list(self.results)
        for key in keys:
            found = [result[key] for result in found]
        return np.asarray(found)


def all_experiments() -> list[Experiment]:
    """Return every experiment of the course, lesson by lesson."""
    modules = [module for lesson in numbers.lessons_with("experiments") for module in numbers.lesson_modules("experiments", lesson)]
    return [experiment for module in map(importlib.import_module, modules) for experiment in getattr(module, "EXPERIMENTS", [])]


def hash_of_sources(module: str) -> str:
    """Return a SHA-256 over a module of the package and all package files it imports, directly or through others.

    Returns `digest`: 64 hexadecimal digits, taken over module names and syntax trees: neither layout nor a comment nor
    a docstring changes a result. This file itself does not count: it stores results and makes none. Nor does the room language: what the
    model says is held to another library's numbers by a test.
    """
    found: set[Path] = set()
    waiting = [_path(module)]
    while waiting:
        path = waiting.pop()
        if path is None or path in found or path == Path(__file__).resolve():
            continue
        found.add(path)
        waiting += _imported(path)
    trees = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): _tree(path) for path in found}
    return hashlib.sha256("\n".join(f"{name} {_written(trees[name])}" for name in sorted(trees)).encode()).hexdigest()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _written(node: object) -> str:
    """A syntax tree as text, without docstrings and other strings that stand alone, and without fields that are empty.

    `ast.dump` writes the same tree differently in different versions of Python.
    """
    if isinstance(node, list):
        return "[" + ", ".join(_written(each) for each in node if not _is_remark(each)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, _written(value)) for name, value in ast.iter_fields(node) if value is not None)
    return f"{type(node).__name__}({', '.join(f'{name}={text}' for name, text in fields if text != '[]')})"


def _is_remark(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _path(module: str) -> Path | None:
    """The file of a module of the package; None for other people's modules, and for names that are no modules."""
    first, *rest = module.split(".")
    base = PACKAGE.joinpath(*rest)
    if first != PACKAGE.name or rest[:1] == ["language"]:
        return None
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def _imported(path: Path) -> Iterator[Path | None]:
    tree = _tree(path)
    types = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.If) and _of_types(node) for inner in ast.walk(node)}
    for node in (node for node in ast.walk(tree) if id(node) not in types):
        if isinstance(node, ast.Import):
            yield from (_path(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield _path(f"{node.module}.{alias.name}") or _origin(node.module, alias.name)


def _of_types(node: ast.If) -> bool:
    """Whether a branch is for type checkers only: what stands there makes no result."""
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _origin(module: str, name: str) -> Path | None:
    """The file that defines a name; an `__init__` that merely hands it on does not count."""
    path = _path(module)
    if path is not None and path.name == "__init__.py":
        for node in _tree(path).body:
            if isinstance(node, ast.ImportFrom) and node.module and name in [alias.asname or alias.name for alias in node.names]:
                return _origin(node.module, name)
    return path
