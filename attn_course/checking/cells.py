"""Read a notebook that anyone may have edited, and say what each of its cells is for."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_course.numbers import lesson_in, lesson_of, lesson_place, named

MAX_BYTES = 64 * 2**20  # a course notebook with all its figures stays far below
_CHECK_CALL = re.compile(r"""check\(\s*(["'])([a-z0-9.-]{1,100})\1\s*,[^\n]*\)\s*;?""", re.ASCII)
_CONFLICT = re.compile(r"^<{7}(?: .*)?$", re.MULTILINE)
_NUMBER = re.compile(r"task-(\d{1,3})-(\d{1,3})(?:-check)?|(\d{1,3})\.(\d{1,3})", re.ASCII)  # in the place of a task's name


class NotebookError(ValueError):
    """A file is not a notebook that can be judged; the text is one line that names the file."""


class NoTasks(NotebookError):
    """A sound notebook, but none of the course's: it holds no task."""


MOVED = {  # tasks by the lesson that asked them earlier: work saved there is judged with them
    "causal-mask-behind-kept": "transformer",
    "nucleus-of-next-words": "transformer",
}


@dataclass(frozen=True)
class Cell:
    """One code cell.

    `role`: "check", "answer" or "other". `task`: id of the task it belongs to, such as "stable-softmax". `number`: its place
    among the notebook's code cells, from 1; 0 if it stands in no notebook. `expected`: what it must display under nbval, by MIME
    type; None compares nothing.
    """

    source: str
    role: str = "other"
    task: str | None = None
    tags: tuple[str, ...] = ()
    number: int = 0
    expected: Mapping[str, str] | None = None

    @property
    def first_line(self) -> str:
        """The first line that is no comment, shortened, to name the cell by."""
        lines = [line.strip() for line in self.source.splitlines() if line.strip()]
        line = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
        return line if len(line) <= 40 else line[:39] + "…"


def exercise_files(folder: Path, names: str = "ex_*.ipynb") -> dict[str, Path]:
    """Return the exercises in a folder by the slugs of their lessons; the numbers in their names do not count, copies neither.

    Raises NotebookError if two are named for one lesson.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob(names)):
        lesson = lesson_in(path.name) if re.fullmatch("[a-z0-9_]+", path.stem) else None
        if lesson in found:
            raise NotebookError(f"{folder}: {found[lesson].name} and {path.name} are both for the lesson {lesson}: keep one")
        if lesson is not None:
            found[lesson] = path
    return found


def read_code_cells(path: Path, *, max_bytes: int = MAX_BYTES) -> list[Cell]:
    """Return the code cells of a notebook, each with its role.

    `path`: a notebook of format 4, as JupyterLab, VS Code and Colab write it. `max_bytes`: largest size of the file. They come in
    the notebook's order. Raises NotebookError if the file is missing, too large, or not a Python notebook of format 4.
    """
    notebook = _read_json(path, max_bytes)
    version = notebook.get("nbformat")
    if not isinstance(version, int) or not isinstance(notebook.get("cells", []), list):
        raise NotebookError(f"{path}: is JSON, but not a notebook (no nbformat number, or no list of cells)")
    if version != 4:
        advice = "open it in JupyterLab and save it" if version < 4 else "update attn_course"
        raise NotebookError(f"{path}: is in notebook format {version}; format 4 is needed: {advice}")
    language = _language(notebook)
    if language != "python":
        raise NotebookError(f"{path}: is a notebook in {language}; the course is in Python")
    raw_cells = notebook.get("cells", [])
    if not raw_cells:
        raise NoTasks(f"{path}: is a notebook without cells")
    cells = [_code_cell(raw, place, path) for place, raw in enumerate(raw_cells, 1) if _kind(raw, place, path) == "code"]
    return [replace(cell, number=number) for number, cell in enumerate(cells, 1)]


def strayed_answers(path: Path, *, max_bytes: int = MAX_BYTES) -> dict[str, str]:
    """Return the tasks whose answer stands in a cell that is no code any more, each with what is said of it."""
    found = {}
    for raw in _read_json(path, max_bytes).get("cells", []):
        kind = _mapping(raw).get("cell_type")
        if kind in ("markdown", "raw"):
            role, task = _role("", _mapping(raw.get("metadata")), raw.get("id"))
            if role == "answer":
                now = f"the answer cell is a {kind.capitalize()} cell now, which does not run"
                found[str(task)] = f"{now}: make it code again (in JupyterLab: Esc, then Y)"
    return found


def _read_json(path: Path, max_bytes: int) -> dict[str, Any]:
    try:
        if path.is_dir():
            raise NotebookError(f"{path}: is a directory; name a notebook (.ipynb)")
        if not path.exists():
            raise NotebookError(f"{path}: no such file")
        if not path.is_file():
            raise NotebookError(f"{path}: is not a regular file")
        size = path.stat().st_size
        if size > max_bytes:
            raise NotebookError(f"{path}: is too large ({size / 2**20:.0f} MiB; at most {max_bytes / 2**20:.0f}): clear its outputs")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotebookError(f"{path}: is not a notebook: byte {error.start} is not UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        if isinstance(error, NotebookError):
            raise
        raise NotebookError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not text.strip():
        raise NotebookError(f"{path}: is empty")
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        if conflict := _CONFLICT.search(text):
            line = text.count("\n", 0, conflict.start()) + 1
            advice = "keep one side, say with git checkout --ours or --theirs and the file's name"
            raise NotebookError(f"{path}: holds conflict markers of git (line {line}: {conflict[0].strip()[:40]}): {advice}") from None
        where = f"line {error.lineno}, column {error.colno}"
        problem = "is cut short or damaged" if text.lstrip().startswith("{") else "is not a notebook"
        raise NotebookError(f"{path}: {problem}: not valid JSON at {where}") from None
    except (RecursionError, ValueError):  # ValueError: an integer of thousands of digits
        raise NotebookError(f"{path}: is not a notebook: its JSON is nested too deep or holds absurd numbers") from None
    if not isinstance(notebook, dict):
        raise NotebookError(f"{path}: is JSON, but not a notebook")
    return notebook


def _language(notebook: dict[str, Any]) -> str:
    metadata = _mapping(notebook.get("metadata"))
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        language = _mapping(metadata.get(key)).get(name)
        if isinstance(language, str) and language:
            return language.lower()
    return "python"


def _kind(raw: Any, number: int, path: Path) -> str:
    kind = _mapping(raw).get("cell_type")
    if kind not in ("code", "markdown", "raw"):
        raise NotebookError(f"{path}: is damaged: cell {number} is no code, markdown or raw cell")
    return str(kind)


def _code_cell(raw: dict[str, Any], number: int, path: Path) -> Cell:
    source = raw.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise NotebookError(f"{path}: is damaged: cell {number} has no text")
    metadata = _mapping(raw.get("metadata"))
    role, task = _role(source, metadata, raw.get("id"))
    tags = metadata.get("tags")
    text = source.encode("utf-8", "replace").decode()  # JSON can hold half a sign, which no kernel accepts
    return Cell(text, role, task, tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ())


def _role(source: str, metadata: dict[str, Any], cell_id: Any) -> tuple[str, str | None]:
    """By nbgrader's id, else the cell's id (Colab keeps it in the metadata), else a lone call of check."""
    for name in (_mapping(metadata.get("nbgrader")).get("grade_id"), cell_id, metadata.get("id")):
        if isinstance(name, str):
            task = name.removesuffix("-check")
            if lesson_of("tasks", task) or _NUMBER.fullmatch(name):
                return ("answer" if task == name else "check"), task
    statements = "\n".join(line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    call = _CHECK_CALL.fullmatch(statements.strip())
    return ("check", call[2]) if call and (lesson_of("tasks", call[2]) or _NUMBER.fullmatch(call[2])) else ("other", None)


def lesson_of_cells(cells: Iterable[Cell], path: Path) -> Counter[str]:
    """Return how many cells belong to tasks of each lesson.

    Raises NotebookError if a number stands where the name of a task belongs: numbers change.
    """
    tasks = [cell.task for cell in cells if cell.task]
    if number := next(filter(None, map(_NUMBER.fullmatch, tasks)), None):
        today = named("tasks", ".".join(filter(None, number.groups())))
        write = f"check({today!r}, ...)" if today else "the name that stands in the exercise"
        raise NotebookError(f"{path}: a number, {number[0]}, is not accepted in the place of a task's name: write {write}")
    return Counter(lesson for lesson in (lesson_of("tasks", task) for task in tasks) if lesson)


def moved(lesson: str, cells: Iterable[Cell]) -> list[str]:
    """Return the tasks that a lesson asked earlier and another one asks now, of those that the cells belong to."""
    held = {cell.task for cell in cells}
    return [task for task, earlier in MOVED.items() if earlier == lesson and task in held]


def at_home(cells: Sequence[Cell], path: Path) -> list[str]:
    """Return the lessons whose tasks the cells belong to, in their order; a task that moved stays where others of its old lesson are."""
    found = lesson_of_cells(cells, path)
    for lesson in list(found):
        found -= lesson_of_cells([cell for cell in cells if cell.task in moved(lesson, cells)], path)
    return sorted(found, key=lesson_place)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
