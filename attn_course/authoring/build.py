"""Build the notebooks whose inputs changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attn_course import numbers
from attn_course.authoring.check import Gate
from attn_course.authoring.course import Unit, built_notebooks, units
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.imports import ImportGraph
from attn_course.authoring.lessons import write_readme
from attn_course.authoring.numbering import numbering, write_numbers
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import is_untouched, read_text, record_of
from attn_course.authoring.task_cells import TaskLookup, default_lookup
from attn_course.files import write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode


@dataclass(frozen=True)
class Step:
    """What a build is doing: "keep", "run" (with the cell about to run), "write", "same" (built anew, nothing to write) or "remove"."""

    notebook: str
    action: str
    cell: str | None = None
    number: int = 0
    total: int = 0


@dataclass
class BuildReport:
    """Names of the notebooks a build wrote, left as they were, executed, and removed because their lesson moved."""

    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


Execute = Callable[..., None]  # as attn_course.authoring.execute.execute
Progress = Callable[[Step], None]


def build(
    root: Path | str,
    *,
    force: bool = False,
    only: Iterable[str] | None = None,
    progress: Progress | None = None,
    get_task: TaskLookup | None = None,
    execute: Execute | None = None,
    gate: Gate | None = None,
) -> BuildReport:
    """Bring lessons, solutions and exercises up to date with their sources.

    A notebook is left alone, to its time stamp, if neither its source nor a package file it needs has changed since it was built, and
    nobody has changed the notebook. If only prose changed, the stored outputs are kept and nothing runs.

    `force`: run and write everything selected, also over edited exercises. `only`: slugs ("softmax") or numbers ("2"). `progress`:
    told each `Step`. `get_task`, `execute`, `gate`: stand-ins for `attn_course.tasks.get_task`, and for `execute.execute` and
    `gates.lesson_problems` of this room. Returns what was written, kept and executed. Raises AuthoringError if a source cannot be
    built, the gate finds something, a cell fails, or an exercise was edited since the last build (and not `force`). Every source is
    read and judged before anything runs, so a bad one changes no file.
    """
    root = Path(root).resolve()
    tell = progress or (lambda step: None)
    counted = numbering(root)
    fingerprints = Fingerprints(ImportGraph(root, counted.tables), counted)
    report = BuildReport()
    chosen = units(root, only)
    waiting = [unit for unit in chosen if force or not _is_current(unit, fingerprints)]
    with numbers.using(counted.tables):
        rendered = _rendered(waiting, fingerprints, get_task or default_lookup(), gate, force=force) if waiting else []
        write_numbers(root, counted.tables)
        for unit in chosen:
            if unit in waiting:
                _build(unit, rendered[waiting.index(unit)], root, report, tell, force=force, execute=execute)
            else:
                report.kept.append(unit.name)
                tell(Step(unit.name, "keep"))
    if only is None:
        for stale in sorted({*built_notebooks(root)} - {unit.name for unit in chosen}):
            if is_untouched(read_text(root / stale) or ""):
                (root / stale).unlink()  # of a lesson that has another number now, or is gone
                report.removed.append(stale)
                tell(Step(stale, "remove"))
    write_readme(root)
    return report


def _is_current(unit: Unit, fingerprints: Fingerprints) -> bool:
    text = read_text(unit.path)
    return text is not None and record_of(text).sha256 == fingerprints.of(unit) and is_untouched(text)


def _rendered(
    waiting: list[Unit], fingerprints: Fingerprints, get_task: TaskLookup, gate: Gate | None, *, force: bool
) -> list["NotebookNode"]:
    """Read all sources, and refuse what the gate refuses, before anything is run or written."""
    from attn_course.authoring.gates import Written, lesson_problems
    from attn_course.authoring.render import render

    rendered = [render(unit, fingerprints, get_task) for unit in waiting]
    for lesson in dict.fromkeys(unit.lesson for unit in waiting):
        books = {unit.folder: book for unit, book in zip(waiting, rendered, strict=True) if unit.lesson == lesson}
        if problems := [*(gate or lesson_problems)(Written(waiting[0].root, lesson, books))]:
            more = f" (and {len(problems) - 1} more: attn-course notebooks check {lesson.slug})" if len(problems) > 1 else ""
            raise AuthoringError(f"{problems[0]}{more}")
    if not force:
        for unit, notebook in zip(waiting, rendered, strict=True):
            _refuse_if_edited(unit, notebook)
    return rendered


def _build(
    unit: Unit, notebook: "NotebookNode", root: Path, report: BuildReport, tell: Progress, *, force: bool, execute: Execute | None
) -> None:
    """Run and write one notebook."""
    from attn_course.authoring.notebook import to_text

    if unit.is_executed and (force or not _take_outputs(unit, notebook)):
        _run(unit, notebook, root, tell, execute)
        report.executed.append(unit.name)
    written = write_atomically(unit.path, to_text(notebook))
    (report.written if written else report.kept).append(unit.name)
    tell(Step(unit.name, "write" if written else "same"))


def _refuse_if_edited(unit: Unit, notebook: "NotebookNode") -> None:
    """Somebody's answers may stand in an exercise; they are not overwritten."""
    text = read_text(unit.path)
    if unit.is_executed or text is None or is_untouched(text):
        return
    from attn_course.authoring.compare import differences

    cells = [cell for cell, _ in differences(notebook, text) if cell]
    where = f" (see {', '.join(dict.fromkeys(cells))})" if cells else ""
    raise AuthoringError(f"{unit.name}: edited since the last build{where}; move your work to work/, then build again with --force")


def _take_outputs(unit: Unit, notebook: "NotebookNode") -> bool:
    """Copy the outputs of the notebook on disk, if it is as built and its code and all that this needs are the same."""
    from attn_course.authoring.notebook import code_cells, from_text

    text = read_text(unit.path)
    if text is None or not is_untouched(text) or record_of(text).run_sha256 != notebook.metadata.attn_course.run_sha256:
        return False
    old = from_text(text)
    if old is None:
        return False
    for new_cell, old_cell in zip(code_cells(notebook), code_cells(old), strict=True):
        new_cell.outputs, new_cell.execution_count = old_cell.outputs, old_cell.execution_count
    return True


def _run(unit: Unit, notebook: "NotebookNode", package_root: Path, tell: Progress, execute: Execute | None) -> None:
    from attn_course.authoring.execute import execute as run_in_kernel

    run = execute or run_in_kernel
    run(notebook, unit.path.parent, package_root, unit.name, lambda cell, number, total: tell(Step(unit.name, "run", cell, number, total)))
