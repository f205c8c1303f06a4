"""Hashes over everything a built notebook is made from."""

import hashlib
import re
from dataclasses import dataclass, field

from attn_course.authoring.course import Unit
from attn_course.authoring.imports import PACKAGE, ImportGraph
from attn_course.authoring.lessons import lessons, title_of
from attn_course.authoring.numbering import Numbering
from attn_course.authoring.problems import NO_PYTHON, AuthoringError
from attn_course.authoring.sealed import Record
from attn_course.authoring.source import Cell, is_called
from attn_course.numbers import lesson_modules

BUILDER = 2  # raise it when the builder changes what it writes: every notebook is then stale
TASK_ENGINE = "\nfrom attn_course.tasks import Task, get_task\n"  # what the builder itself asks for cards, hints and given cells
_SHOWN = re.compile(rf"{PACKAGE}/(?:lessons|game)/")  # whose words stand in notebooks; what engines name are examples
_RESTS_ON = re.compile(r'\brests_on="[^"]*"')  # is counted, in the map of chapters, and shown nowhere
_DRAWN = re.compile(r'\bfigure="(\w+)\.(\w+)"')
GAME = "break_the_machine"  # shows a script that is written from formulas of several lessons
LISTINGS = ("lesson_table", "chapter_map")  # who calls them shows which lessons there are: a new one, or a new title, makes it stale


@dataclass
class Fingerprints:
    """Fingerprints of units; package files are read once.

    `graph`: who needs whom in the package. `numbering`: the numbers of the course. A notebook depends on those it cites, not on
    all.
    """

    graph: ImportGraph
    numbering: Numbering
    _package: dict[str, str] = field(default_factory=dict)

    def of(self, unit: Unit) -> str:
        """Return the hash of the unit's source and of every package file its code needs.

        Raises AuthoringError if the source, or a package file, is no Python.
        """
        text = unit.read_source() if unit.is_sheet else self.text(unit)
        return _digest(f"builder {BUILDER}", unit.source_name, text, self._package_digest(unit))

    def text(self, unit: Unit) -> str:
        """Return the unit's source with its numbers written."""
        return self.numbering.of(unit.slug, unit.read_source(), unit.source_name)

    def record(self, unit: Unit, cells: list[Cell]) -> Record:
        """Return the record of a notebook with these cells, not yet sealed."""
        code = [f"{cell.id} {cell.tags}\n{cell.text}" for cell in cells if cell.kind == "code"]
        run_sha256 = _digest(f"builder {BUILDER}", *code, self._package_digest(unit)) if unit.is_executed else ""
        return Record(source=unit.source_link, sha256=self.of(unit), run_sha256=run_sha256)

    def _package_digest(self, unit: Unit) -> str:
        """Hash of the package files alone."""
        if unit.source_name not in self._package:
            text = unit.read_source()
            code = self._sheet_code(unit) if unit.is_sheet else text
            try:
                paths = self.graph.closure(code if unit.folder == "notebooks" else code + TASK_ENGINE)
            except SyntaxError as error:
                where = unit.source_name if error.filename == "<unknown>" else error.filename
                raise AuthoringError(f"{where}: line {error.lineno}: {NO_PYTHON}{(error.text or '').strip()!r}") from None
            names = [path.relative_to(self.graph.package_root).as_posix() for path in paths]
            parts = [part for name, path in zip(names, paths, strict=True) for part in (name, path.read_text("utf-8", "backslashreplace"))]
            shown = [text, *(part for name, part in zip(names, parts[1::2], strict=True) if _SHOWN.match(name))]
            said = {each for part in shown for each in self.numbering.said(unit.slug, _RESTS_ON.sub("", part))}
            parts += [title_of(unit)] if unit.is_sheet else []
            if any(is_called(text, listing) for listing in LISTINGS):
                parts += map(repr, lessons(unit.root))
            parts += [_game()] if is_called(text, GAME) else []
            parts += sorted(said)
            self._package[unit.source_name] = _digest(*parts)
        return self._package[unit.source_name]

    def _sheet_code(self, unit: Unit) -> str:
        """What a sheet needs, as code: all files of the lesson's tasks, and the figures that they draw."""
        modules = lesson_modules("tasks", unit.slug, self.graph.package_root / PACKAGE)
        texts = [(unit.source.parent / f"{module.rpartition('.')[2]}.py").read_text(encoding="utf-8") for module in modules]
        drawn = [found for text in texts for found in _DRAWN.findall(text)]
        homes = {"figures": f"{PACKAGE}.lessons.{unit.slug}"}
        code = [f"from {homes.get(module, f'{PACKAGE}.figures')} import {module}\n{module}.{name}" for module, name in drawn]
        return "\n".join([f"from {PACKAGE} import check", *(f"import {module}" for module in modules), *code])


def _game() -> str:
    from attn_course.game.card import card_of_the_machine  # it reads formulas, which takes its time

    return card_of_the_machine()


def _digest(*parts: str) -> str:
    """SHA-256 over texts whose borders count."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(f"{len(content)}\n".encode() + content)
    return digest.hexdigest()
