"""Every numbered equation of the course, as a statement that a machine checks."""

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.errors import EquationError, UnknownEquation
from attn_course.equations.latex import normalise_latex

__all__ = ["Equation", "EquationError", "UnknownEquation", "all_equations", "chapters", "get_equation", "normalise_latex", "verify"]


def verify(tag: str) -> None:
    """Check one numbered equation and print one fixed line.

    Parameters
    ----------
    tag : str
        The number beside the formula, such as "2.20".

    Raises
    ------
    EquationError
        If the equation does not hold.
    UnknownEquation
        If there is no equation of that number.

    Examples
    --------
    >>> verify("2.20")
    Eq. softmax-derivative holds (symbolic, n = 3)
    """
    REGISTRY.verify(tag)


def get_equation(tag: str) -> Equation:
    """Return one registered equation.

    Parameters
    ----------
    tag : str
        The number beside the formula, such as "2.20".

    Returns
    -------
    equation : Equation
        Its LaTeX, rows, traps, assumptions and statement.

    Raises
    ------
    UnknownEquation
        If there is no equation of that number.
    """
    return REGISTRY.get_equation(tag)


def all_equations(chapter: int | None = None) -> list[Equation]:
    """Return all equations by number.

    Parameters
    ----------
    chapter : int, optional
        Only those of this chapter.

    Returns
    -------
    equations : list of Equation
        In the order of their tags.

    Raises
    ------
    UnknownEquation
        If the chapter has no equations.
    """
    return REGISTRY.all_equations(chapter)


def chapters() -> list[int]:
    """Return the numbers of the chapters that have equations.

    Returns
    -------
    numbers : list of int
        In ascending order.
    """
    return REGISTRY.chapters()
