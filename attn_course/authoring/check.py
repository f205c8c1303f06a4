"""Everything that is wrong with the lessons: what the gate says of their sources, and where the built notebooks are out of step."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attn_course import numbers
from attn_course.authoring.course import Unit, built_notebooks, chosen_lessons, units, units_of
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.imports import ImportGraph
from attn_course.authoring.lessons import readme_texts
from attn_course.authoring.numbering import as_text, numbering
from attn_course.authoring.problems import REBUILD, AuthoringError, Finding, Problem
from attn_course.authoring.sealed import is_untouched, read_text
from attn_course.authoring.series import Lesson
from attn_course.authoring.task_cells import TaskLookup, default_lookup

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from attn_course.authoring.gates import Written

Gate = Callable[["Written"], Iterable[Problem]]  # as attn_course.authoring.gates.lesson_problems


def check(
    root: Path | str, *, only: Iterable[str] | None = None, get_task: TaskLookup | None = None, gate: Gate | None = None
) -> list[Problem]:
    """Return everything that is wrong with the lessons; none is run, only its equations and the answers to its tasks.

    Stored outputs are compared by running the notebooks under nbval; here they are only held to be there, small, repeatable and described.

    `only`: slugs ("softmax") or numbers ("2"); None checks all, and that no notebook lacks a source. `get_task`, `gate`:
    stand-ins for `attn_course.tasks.get_task` and `attn_course.authoring.gates.lesson_problems`. The list is empty if all is
    well. Raises AuthoringError if the course has no sources, or `only` matches nothing.
    """
    root = Path(root).resolve()
    only = None if only is None else list(only)
    lessons = chosen_lessons(root, only)
    try:
        counted = numbering(root)
    except AuthoringError as error:
        return [Problem.of_error(error)]
    fingerprints = Fingerprints(ImportGraph(root, counted.tables), counted)
    problems: list[Problem] = []
    with numbers.using(counted.tables):
        for lesson in lessons:
            problems += _lesson_problems(root, lesson, fingerprints, get_task or default_lookup(), gate)
    if only is None:
        extra = sorted(set(built_notebooks(root)) - {unit.name for unit in units(root)})
        problems += [Problem(name, None, "no source: wanted one under src/, or the notebook removed") for name in extra]
    stale = {f"attn_course/{numbers.FILE}": (as_text(counted.tables),), "README.md": readme_texts(root)}
    problems += [
        Problem(name, None, f"stale; {REBUILD}", by_build=True) for name, texts in stale.items() if read_text(root / name) not in texts
    ]
    return problems


def _lesson_problems(root: Path, lesson: Lesson, fingerprints: Fingerprints, get_task: TaskLookup, gate: Gate | None) -> Iterator[Problem]:
    """What the gate says, then how the built notebooks differ from those that the sources ask for."""
    from attn_course.authoring.gates import Written, lesson_problems
    from attn_course.authoring.render import render

    books: dict[Unit, NotebookNode] = {}
    found: list[Problem] = []
    for unit in units_of(root, lesson):
        try:
            books[unit] = render(unit, fingerprints, get_task)
        except AuthoringError as error:
            found.append(Problem.of_error(error))
    found += (gate or lesson_problems)(Written(root, lesson, {unit.folder: book for unit, book in books.items()}))
    yield from {str(problem): problem for problem in found}.values()  # once: an exercise has the source of its solution
    for unit, book in books.items():
        yield from _unit_problems(unit, book)


def _unit_problems(unit: Unit, expected: "NotebookNode") -> Iterator[Problem]:
    from attn_course.authoring.compare import differences

    text = read_text(unit.path)
    if text is None:
        yield Problem(unit.name, None, f"missing; {REBUILD}", by_build=True)
        return
    problems = [Problem(unit.name, cell, message, by_build=True) for cell, message in differences(expected, text)]
    problems += [Problem(unit.name, cell, message) for cell, message in _content_problems(unit, text)]
    if not problems and not is_untouched(text):
        problems.append(
            Problem(unit.name, None, f"not the bytes the last build wrote (an output or the layout was edited); {REBUILD}", by_build=True)
        )
    yield from problems


def _content_problems(unit: Unit, text: str) -> Iterator[Finding]:
    """What can be said of the notebook on disk alone: its outputs and links."""
    from attn_course.authoring.links import dead_links
    from attn_course.authoring.notebook import code_cells, from_text
    from attn_course.authoring.outputs import count_findings, findings
    from attn_course.authoring.predictions import spoilt_findings

    notebook = from_text(text)
    if notebook is None:
        return
    for cell in code_cells(notebook):
        if unit.is_executed:
            yield from ((cell.id, finding) for finding in findings(cell))
        elif cell.outputs or cell.execution_count is not None:
            yield cell.id, f"wanted a pristine exercise, got {len(cell.outputs)} outputs and execution count {cell.execution_count}"
    if unit.is_executed:
        yield from count_findings(notebook)
        yield from spoilt_findings(notebook)
    for cell_id, link in dead_links(notebook, unit.path.parent, unit.root):
        yield cell_id, f"wanted links to files that exist, got {link!r}"
