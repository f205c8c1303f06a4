"""The gate of a lesson: its text, equations, tasks and stored results. `check` reports what it finds, `build` refuses it."""

import contextlib
import functools
import io
import os
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbformat import NotebookNode

from attn_course import numbers
from attn_course.authoring import cut, formulas, measure, predictions, prose
from attn_course.authoring.course import Unit
from attn_course.authoring.notebook import tags_of
from attn_course.authoring.numbering import deeper_labels
from attn_course.authoring.problems import NO_PYTHON, Finding, Problem
from attn_course.authoring.series import Lesson

if TYPE_CHECKING:
    from attn_course.experiments import Experiment
    from attn_course.tasks import Task

RIGHT_ANSWERS = "tests/exercises/right_answers"
ANSWERS = ("setup", "given", "task")  # tags of the cells that make up a solution


@dataclass(frozen=True)
class Written:
    """A lesson as its author wrote it.

    `books`: folder -> the notebook that its source asks for, without outputs; one that cannot be rendered is not there.
    """

    root: Path
    lesson: Lesson
    books: Mapping[str, NotebookNode]

    @property
    def slug(self) -> str:
        """The lesson's slug."""
        return self.lesson.slug

    def source(self, folder: str) -> str:
        """The source of a notebook, as messages show it."""
        return Unit(self.root, folder, self.lesson).source_name

    def file(self, room: str) -> str:
        """The file of the lesson in a room, as messages show it."""
        return f"attn_course/lessons/{self.slug}/{room}.py"


def lesson_problems(written: Written, every: int = 1) -> list[Problem]:
    """Return what is wrong with a lesson; nothing of it is run but its equations and the answers to its tasks.

    `every`: one in so many small changes of an equation is tried.
    """
    return held(written, text_gate, functools.partial(equation_gate, every=every), task_gate, result_gate)


def held(written: Written, *gates: Callable[[Written], Iterable[Problem]]) -> list[Problem]:
    """Return what some gates find."""
    with _interpreted():
        return [problem for gate in gates for problem in gate(written)]


@contextlib.contextmanager
def _interpreted() -> Iterator[None]:
    """Let NumPy run Triton's kernels here: answers are judged alike with and without a GPU. Triton reads this when it is imported."""
    before = os.environ.get("TRITON_INTERPRET")
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRITON_INTERPRET"]
        else:
            os.environ["TRITON_INTERPRET"] = before


def text_gate(written: Written) -> Iterator[Problem]:
    """Headings, measure, chance and formulas of the notebooks; references in the lesson's part of the package."""
    from attn_course import reference
    from attn_course.tasks.registry import get_task

    for folder, book in written.books.items():
        found = [*prose.heading_findings(book), *prose.length_findings(book), *prose.chance_findings(book), *formulas.item_findings(book)]
        if folder == "notebooks":
            found += [*prose.section_findings(book, written.lesson.number), *prose.measure_findings(book)]
            found += [*prose.redefinition_findings(book, reference.__all__), *formulas.tag_findings(book)]
            found += [*formulas.verify_findings(book, written.slug), *formulas.shown_findings(book), *predictions.asking_findings(book)]
            found += cut.cut_findings(book, deeper_labels(written.root))
            found += measure.measured_findings(book, written.lesson, lambda task: get_task(task).minutes)
        else:
            found += formulas.only_lessons_findings(book)
        yield from _placed(written.source(folder), found)
    for source in dict.fromkeys(map(written.source, written.books)):
        text = (written.root / source).read_text(encoding="utf-8")
        yield from _placed(source, [*formulas.role_findings(text), *formulas.section_number_findings(text)])
    known = {label for labels in numbers.tables()["labels"].values() for label in labels}
    for path in sorted((written.root / "attn_course" / "lessons" / written.slug).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        with contextlib.suppress(SyntaxError):  # whoever loads the file says where
            yield from _placed(written.file(path.stem), [*formulas.role_findings(text), *formulas.reference_findings(text, known)])


def equation_gate(written: Written, every: int = 1) -> Iterator[Problem]:
    """Each equation holds, its check can fail, and the lesson shows it; what the lesson owes to the topics is there."""
    from attn_course.equations import all_equations
    from attn_course.equations.gates import coverage_problems, equation_problems

    file = written.file("equations")
    try:
        equations = all_equations(written.slug) if numbers.lesson_modules("equations", written.slug) else []
        owed = [] if written.lesson.planned else coverage_problems(written.slug)
    except Exception as error:  # an author's file may fail in any way
        yield _not_loaded(written, file, error)
        return
    for equation in equations:
        module = equation.make.__module__.split(".")[-1]
        yield from (Problem(written.file(module), equation.label, message) for message in equation_problems(equation, every=every))
    yield from (Problem(file, None, message) for message in owed)
    if lesson := written.books.get("notebooks"):
        registered = {equation.label: equation.latex for equation in equations}
        yield from _placed(written.source("notebooks"), formulas.registry_findings(lesson, registered))


def task_gate(written: Written) -> Iterator[Problem]:
    """Each task has its cells, its solution and other right answers pass, and each known mistake is told by its name."""
    from attn_course.tasks import gates
    from attn_course.tasks.registry import declared_tasks

    file, labels = written.file("tasks"), [label for known in numbers.tables()["labels"].values() for label in known]
    try:
        tasks = declared_tasks(written.slug)
    except Exception as error:
        yield _not_loaded(written, file, error)
        return
    ids = [task.id for task in tasks]
    yield from (
        Problem(file, each, "wanted an id of its own, got it a second time") for each in sorted({i for i in ids if ids.count(i) > 1})
    )
    yield from (Problem(file, each, message) for each, message in gates.name_problems(tasks))
    yield from (Problem(file, None, message) for message in gates.share_problems(tasks))
    for task in tasks:
        named = list(_tried(gates.text_problems, task, labels))
        yield from (Problem(file, task.id, message) for message in named)
        judged = (
            gates.case_problems,
            gates.retyping_problems,
            gates.sensitivity_problems,
            gates.digit_problems,
            gates.wrong_answer_problems,
        )
        for gate in judged if not named else ():
            yield from (Problem(file, task.id, message) for message in _tried(gate, task))
    yield from _solution_problems(written, tasks)
    yield from _right_answer_problems(written, tasks)


def result_gate(written: Written) -> Iterator[Problem]:
    """Stored results are those of the present source, and each belongs to an experiment."""
    own: dict[Path, Experiment] = {}
    if numbers.lesson_modules("experiments", written.slug):
        from attn_course.experiments import all_experiments

        own = {each.path: each for each in all_experiments() if each.path.parent.parent.name == written.slug}
    yield from (Problem(_shown(path, written.root), None, problem) for path, each in own.items() if (problem := each.problem()))
    for path in sorted((written.root / "attn_course" / "lessons" / written.slug / "results").glob("*")):
        if path not in own:
            yield Problem(_shown(path, written.root), None, "results of no experiment: list it in EXPERIMENTS, or remove the file")


def has_right_answers(root: Path) -> bool:
    """Whether this is a checkout, where right answers written in other ways stand in the tests."""
    return (root / RIGHT_ANSWERS).is_dir()


def _solution_problems(written: Written, tasks: "Sequence[Task]") -> Iterator[Problem]:
    from attn_course.tasks.gates import solution_problems, variant_problems

    source, book = written.source("solutions"), written.books.get("solutions")
    if book is None:  # planned, or what kept it from being rendered is a problem already
        return
    cells = {cell.id: cell for cell in book.cells}
    texts = [cell.source for cell in book.cells if not {*ANSWERS}.isdisjoint(tags_of(cell))]
    if any("attn_course" in text for text in texts):
        yield Problem(
            source, None, f"wanted cells tagged {', '.join(ANSWERS)} that do without attn_course: they are what a learner hands in"
        )
    asked = {f"{task.id}-given": task.numbers for task in tasks}
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in book.cells:
                if "question" in tags_of(cell):
                    names |= asked.get(cell.id, {})
                elif not {*ANSWERS}.isdisjoint(tags_of(cell)):
                    exec(cell.source, names)  # our own solution
    except Exception as error:
        yield Problem(source, None, f"its answers cannot be run: {_named(error)}")
        return
    for task in tasks:
        question = cells[f"{task.id}-text"].source.removeprefix(task.card).partition("<details>")[0].replace(task.limits, "")
        shown = question + cells[task.id].source.partition("### BEGIN SOLUTION")[0]
        yield from (Problem(source, task.id, message) for message in _tried(solution_problems, task, texts, names, shown))
        yield from (Problem(source, task.id, message) for message in _tried(variant_problems, task, cells[task.id].source, names))


def _right_answer_problems(written: Written, tasks: "Sequence[Task]") -> Iterator[Problem]:
    from attn_course.tasks.gates import right_answer_problems

    if not has_right_answers(written.root):
        return
    file = f"{RIGHT_ANSWERS}/{written.slug}.py"
    try:
        found = runpy.run_path(str(written.root / file))["RIGHT"]
    except FileNotFoundError:
        if tasks:
            yield Problem(file, None, "missing; wanted RIGHT = {id of a task: [two or more right answers, ...]}")
        return
    except Exception as error:
        yield _not_loaded(written, file, error)
        return
    for task in tasks:
        yield from (Problem(file, task.id, message) for message in _tried(right_answer_problems, task, found.get(task.id, [])))
    known = {task.id for task in tasks}
    yield from (Problem(file, name, "right answers to no task of this lesson") for name in found if name not in known)


def _tried(gate: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """What a gate says; what an author wrote may also break in any way."""
    try:
        return gate(*arguments)
    except Exception as error:
        return [f"cannot be tried: {_named(error)}"]


def _not_loaded(written: Written, file: str, error: Exception) -> Problem:
    """Why a file cannot be loaded; one that is no Python with the line, as the builder says it."""
    if isinstance(error, SyntaxError):
        return Problem(
            _shown(Path(error.filename or file), written.root), None, f"line {error.lineno}: {NO_PYTHON}{(error.text or '').strip()!r}"
        )
    return Problem.of_loading(file, error)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _placed(file: str, findings: Iterable[Finding]) -> Iterator[Problem]:
    yield from (Problem(file, cell, message) for cell, message in findings)


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
