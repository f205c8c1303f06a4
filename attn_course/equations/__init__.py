"""Every equation of the course, judged by a machine as it is printed."""

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.errors import EquationError, UnknownEquation
from attn_course.equations.latex import normalise_latex
from attn_course.equations.show import show
from attn_course.equations.verified import verify

__all__ = ["Equation", "EquationError", "UnknownEquation", "all_equations", "get_equation", "lessons", "normalise_latex", "show", "verify"]


def get_equation(label: str) -> Equation:
    r"""Return the equation whose name in `\label{...}` this is; raises UnknownEquation if there is none."""
    return REGISTRY.get_equation(label)


def all_equations(lesson: str | None = None) -> list[Equation]:
    """Return all equations by number.

    `lesson`: the slug of the only lesson wanted.

    Returns `equations`: in the order of their numbers.

    Raises UnknownEquation if the lesson has no equations.
    """
    return REGISTRY.all_equations(lesson)


def lessons() -> list[str]:
    """Return the slugs of the lessons that have equations, in their order."""
    return REGISTRY.lessons()
