"""Check that the built notebooks are what their sources ask for, without running anything."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from attn_course.authoring.course import Unit, built_notebooks, units
from attn_course.authoring.fingerprint import Fingerprints
from attn_course.authoring.imports import ImportGraph
from attn_course.authoring.lessons import readme_texts
from attn_course.authoring.numbering import as_text, numbering
from attn_course.authoring.problems import REBUILD, AuthoringError, Problem
from attn_course.authoring.sealed import is_untouched, read_text
from attn_course.authoring.task_cells import TaskLookup, default_lookup
from attn_course.numbers import FILE


def check(root: Path | str, *, only: Iterable[str] | None = None, get_task: TaskLookup | None = None) -> list[Problem]:
    """Return every difference between the built notebooks and their sources.

    Stored outputs are compared by running the notebooks under nbval; here they are only held to be there, small, repeatable and described.

    Parameters
    ----------
    root : path
        The course's root.
    only : iterable of str, optional
        Slugs ("softmax") or numbers ("2"); None checks all, and that no notebook lacks a source.
    get_task : callable, optional
        Stand-in for `attn_course.tasks.get_task`.

    Returns
    -------
    problems : list of Problem
        Empty if all is well.

    Raises
    ------
    AuthoringError
        If the course has no sources, or `only` matches nothing.
    """
    root = Path(root).resolve()
    found = units(root, only)
    lookup = get_task or default_lookup()
    numbers = numbering(root)
    fingerprints = Fingerprints(ImportGraph(root, numbers.tables), numbers)
    problems = [problem for unit in found for problem in _unit_problems(unit, fingerprints, lookup)]
    if only is None:
        extra = sorted(set(built_notebooks(root)) - {unit.name for unit in found})
        problems += [Problem(name, None, "no source: wanted one under src/, or the notebook removed") for name in extra]
        stale = {f"attn_course/{FILE}": (as_text(numbers.tables),), "README.md": readme_texts(root)}
        problems += [Problem(name, None, f"stale; {REBUILD}") for name, texts in stale.items() if read_text(root / name) not in texts]
    return problems


def _unit_problems(unit: Unit, fingerprints: Fingerprints, get_task: TaskLookup) -> Iterator[Problem]:
    from attn_course.authoring.compare import differences
    from attn_course.authoring.render import render

    try:
        expected = render(unit, fingerprints, get_task)
    except AuthoringError as error:
        yield Problem(unit.name, None, f"its source cannot be built: {error}")
        return
    text = read_text(unit.path)
    if text is None:
        yield Problem(unit.name, None, f"missing; {REBUILD}")
        return
    problems = [Problem(unit.name, cell, message) for cell, message in differences(expected, text)]
    problems += [Problem(unit.name, cell, message) for cell, message in _content_problems(unit, text)]
    if not problems and not is_untouched(text):
        problems.append(Problem(unit.name, None, f"not the bytes the last build wrote (an output or the layout was edited); {REBUILD}"))
    yield from problems


def _content_problems(unit: Unit, text: str) -> Iterator[tuple[str | None, str]]:
    """What can be said of the notebook on disk alone: its outputs and links."""
    from attn_course.authoring.links import dead_links
    from attn_course.authoring.notebook import code_cells, from_text
    from attn_course.authoring.outputs import count_findings, findings

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
    for cell_id, link in dead_links(notebook, unit.path.parent, unit.root):
        yield cell_id, f"wanted links to files that exist, got {link!r}"
