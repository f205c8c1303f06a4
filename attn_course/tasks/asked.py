"""A task is its solution: a function whose docstring asks, whose body answers, and whose slips are what people type instead.

`lessons/SLUG/tasks.py` and `tasks_WORD.py` hold them, and ORDER in tasks.py their order, with the cells that stand between:

    ORDER = [note("conventions", "Rows are positions."), "split-heads", "merge-heads"]
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from attn_course.changes import ChangeError, blocks, changed
from attn_course.tasks.changed import Definition, Slips, definition, mistakes, place_of
from attn_course.tasks.core import Case, Note, Sheet, Task, Wrong

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
Known: TypeAlias = str | Slips | Wrong
Draw: TypeAlias = Callable[[np.random.Generator], Any]


class TaskError(ValueError):
    """A task that cannot be made of what is written; the text begins with the file and the line."""


def note(cell_id: str, text: str) -> Note:
    """Return a text between tasks: Markdown with roles."""
    return Note(cell_id, inspect.cleandoc(text))


def cell(cell_id: str, source: str) -> Note:
    """Return a cell of code between tasks."""
    return Note(cell_id, inspect.cleandoc(source), is_code=True)


def tried(make: Callable[..., Mapping[str, Any]], table: str) -> Callable[[np.random.Generator], list[Case]]:
    """Return the cases of a table, a line for each: `name: sizes`.

    `make`: returns the inputs; its first parameter is called `rng` and gets the generator, or `normal` and gets what draws standard
    normal numbers of a shape. Behind it come the sizes of the line: whole numbers, other numbers, or words. Raises ValueError if a
    line has other sizes than `make` takes.
    """
    rows = [line.rpartition(":") for line in textwrap.dedent(table).strip().splitlines()]
    named = [(name.strip(), [_size(word) for word in sizes.split()]) for name, _, sizes in rows]
    for name, sizes in named:
        try:
            inspect.signature(make).bind(None, *sizes)
        except TypeError as error:
            raise ValueError(f"the case “{name}” does not fit {make.__name__}: {error}") from None

    def cases(rng: np.random.Generator) -> list[Case]:
        draw = rng if next(iter(inspect.signature(make).parameters)) == "rng" else lambda *shape: rng.normal(size=shape)
        return [Case(name, **make(draw, *sizes)) for name, sizes in named]

    return cases


def asked(
    task_id: str, title: str, *, kind: str, slips: Known | Sequence[Known], hints: str, why: str = "", judged_by: Any = None,
    broken: str | Sequence[str] = (), cases: Draw | Sequence[Draw] | None = None, figure: str = "", then: Note | None = None, **facts: Any,
) -> Callable[[Callable[..., Any]], Task]:  # fmt: skip
    """Make a task of the function below: its name is the entry, its docstring the question, its body the solution.

    Of a function that is to be written or repaired the docstring's first paragraph stays in the answer cell. A value that is to be given is
    what the function returns; its parameters are the symbols that the task hands out, or the numbers that a student gets.

    `slips`: known mistakes, as `tasks.changed` reads them; `slips(text, of=...)` and `Wrong(...)` may stand among them.
    `hints`: three, each beginning on a line of its own, and going on in deeper indented ones.
    `judged_by`: what says what is right, if not the solution itself.
    `broken`: repair tasks: the names of the slips that are in the function to repair, or a change of its own.
    `cases`: as a `Task` has them, or several: a function of the generator that returns inputs is a case, named like it.
    `figure`: the call that draws what is to be read: "figures.head_maps" of the lesson, or "charts.heatmap".
    `then`: a cell between the question and the answer.
    Everything else is said as `Task` says it.

    Raises TaskError if a change does not apply, or something is missing.
    """

    def task(function: Callable[..., Any]) -> Task:
        place = function.__code__.co_filename, function.__code__.co_firstlineno
        try:
            right = definition(function)
            known = _known(right, slips)
            wants_function = kind in ("write", "repair")
            first, _, rest = right.doc.partition("\n\n")
            shown = _function_cell(right, first) if wants_function else _value_cell(right)
            if kind == "derive":
                facts["symbols"] = right.parameters
            if kind == "repair":
                facts["broken"] = _broken(right, broken, known, first)
            sheet = Sheet(rest if wants_function else right.doc, shown, inspect.cleandoc(why), figure, then, place[0])
            answer = judged_by or function
            return _task(task_id, title, right.name, kind, answer, known, hints, sheet, cases, facts)
        except (ValueError, TypeError) as error:
            raise _placed(error, *place) from None

    return task


def asked_formula(
    task_id: str, title: str, *, entry: str, asks: str, answer: str | Sequence[str], slips: Known | Sequence[Known], hints: str,
    why: str = "", then: Note | None = None, **facts: Any,
) -> Task:  # fmt: skip
    """Return a task that is answered in LaTeX: the right side of `left`, or a derivation if the answer is a list of lines.

    `asks`: the question. Slips are changes of the LaTeX; in a derivation each begins with the line it changes, `line 2: old -> new`.
    Everything else is said as for `asked`, and as `Task` says it.

    Raises TaskError if a change does not apply, or something is missing.
    """
    caller = sys._getframe(1)
    kind = "formula" if isinstance(answer, str) else "derivation"
    try:
        known = _known(answer, slips)
        value = _raw(answer) if isinstance(answer, str) else "".join(["[\n", *(f"    {_raw(line)},\n" for line in answer), "]"])
        solution = f"{BEGIN}\n{entry} = {value}\n{END}"
        sheet = Sheet(inspect.cleandoc(asks), solution, inspect.cleandoc(why), "", then, caller.f_code.co_filename)
        return _task(task_id, title, entry, kind, answer, known, hints, sheet, None, facts)
    except (ValueError, TypeError) as error:
        raise _placed(error, caller.f_code.co_filename, caller.f_lineno) from None


def asked_cell(
    task_id: str, title: str, *, kind: str, entry: str, asks: str, solution: str, slips: Sequence[Wrong], hints: str, judged_by: Any,
    why: str = "", then: Note | None = None, **facts: Any,
) -> Task:  # fmt: skip
    """Return a task whose answer is a whole cell with marked gaps, such as imports, a kernel and its launcher.

    `solution`: the cell as the solution shows it. `judged_by`: a function that says what is right. Else as for `asked_formula`.
    """
    file = sys._getframe(1).f_code.co_filename
    sheet = Sheet(inspect.cleandoc(asks), inspect.cleandoc(solution), inspect.cleandoc(why), "", then, file, is_verbatim=True)
    return _task(task_id, title, entry, kind, judged_by, slips, hints, sheet, None, facts)


def _task(
    task_id: str, title: str, entry: str, kind: str, answer: Any, known: Sequence[Wrong], hints: str, sheet: Sheet,
    cases: Any, facts: Mapping[str, Any],
) -> Task:  # fmt: skip
    told = [" ".join(map(str.strip, lines)) for lines in blocks(hints)]
    given: dict[str, Any] = {} if cases is None else {"cases": _all_cases(cases)}
    return Task(id=task_id, title=title, entry=entry, kind=kind, answer=answer, wrong=known, hints=told, sheet=sheet, **given, **facts)


def _known(right: Any, told: Known | Sequence[Known]) -> list[Wrong]:
    found: list[Wrong] = []
    for each in [told] if isinstance(told, str | Slips | Wrong) else told:
        if isinstance(each, Wrong):
            found.append(each)
        else:
            text, of = (each, None) if isinstance(each, str) else (each.text, each.of)
            found += mistakes(right, text, of)
    return found


def _all_cases(cases: Draw | Sequence[Draw]) -> Draw:
    """One function that draws all cases; what draws the inputs of a case gives it its own name."""
    if callable(cases):
        return cases

    def drawn(rng: np.random.Generator) -> list[Case]:
        return [case for draw in cases for case in _as_cases(draw, draw(rng))]

    return drawn


def _as_cases(draw: Draw, found: Any) -> Iterator[Case]:
    if isinstance(found, Mapping):
        yield Case(draw.__name__.strip("_").replace("_", " "), **found)
    else:
        yield from found


def _function_cell(right: Definition, doc: str) -> str:
    return right.text(f"{BEGIN}\n{right.body}\n{END}", doc).rstrip("\n")


def _value_cell(right: Definition) -> str:
    """The body of a function as a cell: what it returns is given its name."""
    last = ast.parse(f"def f():\n{textwrap.indent(right.body, ' ')}").body[0]
    if not isinstance(last, ast.FunctionDef) or [isinstance(node, ast.Return) for node in ast.walk(last)].count(True) != 1:
        raise ValueError(f"{right.name}: wanted one return, behind all else")
    body, count = re.subn(r"^return\b", f"{right.name} =", right.body, flags=re.MULTILINE)
    if not count:
        raise ValueError(f"{right.name}: wanted one return, behind all else")
    return f"{BEGIN}\n{body}\n{END}"


def _broken(right: Definition, broken: str | Sequence[str], known: Sequence[Wrong], doc: str) -> Callable[..., Any]:
    """The function to repair, with all that is wrong with it."""
    by_name = {wrong.name: wrong.change for wrong in known}
    body = right.body
    for each in [inspect.cleandoc(broken)] if isinstance(broken, str) else broken:
        if "->" not in each and each not in by_name:
            raise ValueError(f"{right.name} is broken by “{each}”, which is no slip of its own")
        body = changed(body, by_name.get(each, each))
    if body == right.body:
        raise ValueError(f"{right.name}: wanted broken=, the slips that are in it or a change")
    return right.with_body(body, "broken", doc)


def _raw(latex: str) -> str:
    return f'r"{latex}"'


def _size(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _placed(error: Exception, file: str, line: int) -> TaskError:
    slip = error.slip if isinstance(error, ChangeError) else None
    return TaskError(f"{place_of(slip, file, line)}: {error.args[0]}")
