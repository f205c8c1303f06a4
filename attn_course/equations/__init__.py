"""Every equation of the course, judged by a machine as it is printed."""

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.errors import EquationError, UnknownEquation
from attn_course.equations.latex import normalise_latex
from attn_course.equations.show import show
from attn_course.equations.verified import verify, verify_lesson

__all__ = [
    "Equation",
    "EquationError",
    "UnknownEquation",
    "all_equations",
    "get_equation",
    "lessons",
    "normalise_latex",
    "show",
    "verify",
    "verify_lesson",
]

get_equation, all_equations, lessons = REGISTRY.get_equation, REGISTRY.all_equations, REGISTRY.lessons
