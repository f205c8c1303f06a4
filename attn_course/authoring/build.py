"""Build the notebooks whose inputs changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attn_course.authoring.course import Unit, built_notebooks, units
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.imports import ImportGraph
from attn_course.authoring.lessons import write_readme
from attn_course.authoring.numbering import numbering, write_numbers
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import is_untouched, read_text, record_of, write_atomically
from attn_course.authoring.task_cells import TaskLookup, default_lookup

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
) -> BuildReport:
    """Bring lessons, solutions and exercises up to date with their sources.

    A notebook is left alone, to its time stamp, if neither its source nor a package file it needs has changed since it was built, and
    nobody has changed the notebook. If only prose changed, the stored outputs are kept and nothing runs.

    Parameters
    ----------
    root : path
        The course's root.
    force : bool
        Run and write everything selected, also over edited exercises.
    only : iterable of str, optional
        Slugs ("softmax") or numbers ("2").
    progress : callable, optional
        Told each `Step`.
    get_task, execute : callable, optional
        Stand-ins for `attn_course.tasks.get_task` and `attn_course.authoring.execute.execute`.

    Returns
    -------
    report : BuildReport
        What was written, kept and executed.

    Raises
    ------
    AuthoringError
        If a source cannot be built, a cell fails, or an exercise was edited since the last build (and not `force`). Every source is
        read before anything runs, so a bad source changes no notebook.
    """
    root = Path(root).resolve()
    tell = progress or (lambda step: None)
    numbers = numbering(root)
    fingerprints = Fingerprints(ImportGraph(root, numbers.tables), numbers)
    report = BuildReport()
    chosen = units(root, only)
    write_numbers(root, numbers.tables)
    waiting: list[Unit] = []
    for unit in chosen:
        if not force and _is_current(unit, fingerprints):
            report.kept.append(unit.name)
            tell(Step(unit.name, "keep"))
        else:
            waiting.append(unit)
    if waiting:
        _build_all(waiting, fingerprints, report, tell, force=force, get_task=get_task, execute=execute)
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


def _build_all(
    waiting: list[Unit],
    fingerprints: Fingerprints,
    report: BuildReport,
    tell: Progress,
    *,
    force: bool,
    get_task: TaskLookup | None,
    execute: Execute | None,
) -> None:
    """Render all, then run and write each."""
    from attn_course.authoring.notebook import to_text  # nbformat takes a second to import
    from attn_course.authoring.render import render

    lookup = get_task or default_lookup()
    rendered = [(unit, render(unit, fingerprints, lookup)) for unit in waiting]
    if not force:
        for unit, notebook in rendered:
            _refuse_if_edited(unit, notebook)
    for unit, notebook in rendered:
        if unit.is_executed and (force or not _take_outputs(unit, notebook)):
            _run(unit, notebook, fingerprints.graph.package_root, tell, execute)
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
