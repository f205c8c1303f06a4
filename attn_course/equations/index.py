"""The formula index: which equations there are, and what of the syllabus they cover."""

from typing import Literal, TypedDict

from attn_course import numbers
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.errors import UnknownEquation
from attn_course.equations.rows import ROWS, TRAPS

State = Literal["covered", "missing", "later"]


class Formula(TypedDict):
    """One line of the index."""

    label: str
    number: str
    name: str
    latex: str
    topics: tuple[str, ...]
    traps: tuple[str, ...]
    checked: str
    assumes: tuple[str, ...]
    uses: tuple[str, ...]


class Coverage(TypedDict):
    """What the equations do for one topic or trap of the syllabus."""

    id: str
    about: str
    lessons: tuple[str, ...]
    equations: tuple[str, ...]
    state: State


def formulas_table(lesson: str | None = None, topic: str | None = None, registry: Registry = REGISTRY) -> list[Formula]:
    """Return the index as plain rows, in the order of the numbers.

    `topic`: only what serves this topic ("B1") or rejects this trap ("X16"), in upper or lower case.
    `lesson`: only this lesson. `registry`: where to look; the course's own by default.

    Returns `table`: one dictionary of plain values per equation.

    Raises UnknownEquation if there is no such lesson, topic or trap.
    """
    if topic is not None and topic.upper() not in ROWS | TRAPS:
        raise UnknownEquation(f"there is no topic or trap {topic!r}; topics go from A1 to N1, traps from X1 to X33")
    chosen = registry.all_equations(lesson)
    return [_formula(equation) for equation in chosen if topic is None or topic.upper() in (*equation.topics, *equation.traps)]


def coverage(registry: Registry = REGISTRY) -> list[Coverage]:
    """Tell for each topic and trap which equations deal with it, and whether some should but do not.

    `registry`: where to look; the course's own by default.

    Returns `table`: the state is "missing" if no equation deals with it although all of its lessons exist, "later" if
    one of them does not exist yet.
    """
    equations = registry.all_equations()
    written = {equation.lesson for equation in equations if equation.number}
    table: list[Coverage] = []
    for id_, (lessons, about) in (ROWS | TRAPS).items():
        labels = tuple(equation.label for equation in equations if id_ in (*equation.topics, *equation.traps))
        state: State = "covered" if labels else "missing" if set(lessons) <= written else "later"
        table.append({"id": id_, "about": about, "lessons": lessons, "equations": labels, "state": state})
    return table


def _formula(equation: Equation) -> Formula:
    return {
        "label": equation.label,
        "number": numbers.eq(equation.label),
        "name": equation.name,
        "latex": equation.latex,
        "topics": equation.topics,
        "traps": equation.traps,
        "checked": equation.checked,
        "assumes": tuple(map(numbers.cite, equation.assumes)),
        "uses": equation.uses,
    }
