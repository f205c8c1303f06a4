"""`verify("softmax", "log-softmax")`: one line that says what holds, and, opened, at which sizes and what was rejected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attn_course import numbers
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.errors import EquationError
from attn_course.equations.latex import statements
from attn_course.equations.publish import publish


@dataclass(frozen=True)
class Verified:
    """Equations that hold, as they are displayed."""

    equations: Sequence[Equation]

    def __str__(self) -> str:
        mistakes = sum(len(equation.wrongs) for equation in self.equations)
        return self._holds() + (f"; {mistakes} known mistake{' does' if mistakes == 1 else 's do'} not" if mistakes else "")

    def _holds(self) -> str:
        if len(self.equations) == 1:
            return self.equations[0].success_line
        first, *others = [numbers.eq(equation.label).removeprefix("Eq. ") for equation in self.equations]
        return f"Eqs. {', '.join([first, *others[:-1]])} and {others[-1]} hold as printed on random numbers"

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return f"<details><summary>✓ {self}</summary>\n\n" + "\n".join(self._details()) + "\n\n</details>"

    def _details(self) -> Iterator[str]:
        for equation in self.equations:
            yield f"- {equation.success_line}." + " It rejects:" * bool(equation.wrongs)
            yield from (f"  - {numbers.cite(form.name)}: {_inline(form.latex)}" for form in equation.wrongs)


def _inline(formula: str) -> str:
    """Return a formula within a text, where a line may end behind each of its statements."""
    return " \u2003".join(f"${statement}$" for statement in statements(formula))


def verified(*labels: str, registry: Registry = REGISTRY) -> Verified:
    """Check equations; raises EquationError if one does not hold, UnknownEquation if there is none."""
    if not labels:
        raise EquationError("verify wants the name of an equation, or several; got none")
    equations = [registry.get_equation(label) for label in labels]
    for equation in equations:
        equation.check()
    return Verified(equations)


def verify(*labels: str) -> None:
    r"""Check the equations whose names in `\label{...}` these are, and display one fixed line.

    Opened, the line says at which sizes each was tried, and the wrong forms that are rejected.

    Raises EquationError if one does not hold, UnknownEquation if there is none.

    >>> verify("softmax-derivative")  # doctest: +ELLIPSIS
    Eq. (...) holds as printed (n = 3, 5, 6, 7); 3 known mistakes do not
    """
    publish(verified(*labels))
