"""Every equation of the course, as a statement that a machine checks."""

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.errors import EquationError, UnknownEquation
from attn_course.equations.latex import normalise_latex

__all__ = ["Equation", "EquationError", "UnknownEquation", "all_equations", "get_equation", "lessons", "normalise_latex", "verify"]


def verify(label: str) -> None:
    """Check one equation and print one fixed line.

    Parameters
    ----------
    label : str
        Its name in `\\label{...}`, such as "softmax-derivative".

    Raises
    ------
    EquationError
        If the equation does not hold.
    UnknownEquation
        If there is no equation of that label.

    Examples
    --------
    >>> verify("softmax-derivative")  # doctest: +ELLIPSIS
    Eq. (...) holds (symbolic, n = 3)
    """
    REGISTRY.verify(label)


def get_equation(label: str) -> Equation:
    """Return one registered equation.

    Parameters
    ----------
    label : str
        Its name in `\\label{...}`, such as "softmax-derivative".

    Returns
    -------
    equation : Equation
        Its LaTeX, rows, traps, assumptions and statement.

    Raises
    ------
    UnknownEquation
        If there is no equation of that label.
    """
    return REGISTRY.get_equation(label)


def all_equations(lesson: str | None = None) -> list[Equation]:
    """Return all equations by number.

    Parameters
    ----------
    lesson : str, optional
        The slug of the only lesson wanted.

    Returns
    -------
    equations : list of Equation
        In the order of their numbers.

    Raises
    ------
    UnknownEquation
        If the lesson has no equations.
    """
    return REGISTRY.all_equations(lesson)


def lessons() -> list[str]:
    """Return the slugs of the lessons that have equations, in their order."""
    return REGISTRY.lessons()
