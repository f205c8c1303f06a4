"""`verify_lesson("softmax")`: one line that says what holds, and, opened, at which sizes and what was rejected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attn_course import numbers
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.errors import EquationError
from attn_course.equations.latex import statements
from attn_course.equations.publish import publish


@dataclass(frozen=True)
class Verified:
    """Equations that hold, as they are displayed; `whole`: they are those of a lesson; `own`: it is a formula like the equation."""

    equations: Sequence[Equation]
    whole: bool = False
    own: str = ""

    def __str__(self) -> str:
        if self.own:
            return f"your formula holds with the numbers of {numbers.eq(self.equations[0].label)}"
        return f"{self._holds()}{self._fails(sum(len(equation.wrongs) for equation in self.equations))}"

    def _holds(self) -> str:
        count = len(self.equations)
        if self.whole:
            hold = "The formula of this lesson holds" if count == 1 else f"All {count} formulas of this lesson hold"
            return f"{hold} on random numbers"
        if count == 1:
            return self.equations[0].success_line
        first, *others = [numbers.eq(equation.label).removeprefix("Eq. ") for equation in self.equations]
        return f"Eqs. {', '.join([first, *others[:-1]])} and {others[-1]} hold as printed on random numbers"

    def _fails(self, mistakes: int) -> str:
        versions = "the wrong version" if mistakes == 1 else f"each of the {mistakes} wrong versions"
        return f", and {versions} we know of fails" * bool(mistakes) + "." * self.whole

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        if self.own:
            return f"✓ {self}: {_inline(self.own)}"
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
    equations = [registry.get_equation(numbers.named("labels", label) or label) for label in labels]
    for equation in equations:
        equation.check()
    return Verified(equations)


def verify(*formulas: str, like: str = "") -> None:
    r"""Check equations by their names, or a formula of one's own, and display one line.

    Opened, the line of an equation says at which sizes it was tried, and the wrong forms that are rejected.

    `formulas`: names as in `\label{...}`, or numbers as printed; or one formula in LaTeX, with `like`: the name of an equation, whose
    symbols it uses and with whose numbers it is tried. A formula that says less than that equation is refused too.

    Raises EquationError with a counterexample, or with the place, if one does not hold; UnknownEquation if there is none of that name.

    >>> verify("softmax-derivative")  # doctest: +ELLIPSIS
    Eq. (...) holds as printed (n = 3, 5, 6, 7), and each of the 3 wrong versions we know of fails
    >>> verify(r"\sigma(z)_i = 1 / \sum_{j=1}^{n} e^{z_j - z_i}", like="softmax")  # doctest: +ELLIPSIS
    your formula holds with the numbers of Eq. (...)
    """
    if not like:
        publish(verified(*formulas))
    elif len(formulas) != 1:
        raise EquationError(f"verify wants one formula beside like={like!r}; got {len(formulas)}")
    else:
        publish(_own(formulas[0], like))


def _own(formula: str, like: str, registry: Registry = REGISTRY) -> Verified:
    """Check a reader's own formula with the numbers of an equation."""
    equation = registry.get_equation(numbers.named("labels", like) or like)
    try:
        equation.check(formula)
    except EquationError as error:
        shown = numbers.eq(equation.label)
        reason = str(error).removeprefix(f"{shown} is not confirmed: ")
        raise type(error)(f"your formula is not confirmed with the numbers of {shown}: {reason}") from None
    return Verified([equation], own=formula)


def verify_lesson(slug: str) -> None:
    """Check all equations of a lesson, and display one line, which opens to each of them with the wrong forms that are rejected.

    `slug`: the lesson's, such as "softmax". Raises EquationError if one does not hold, or the lesson has none.

    >>> verify_lesson("start")  # doctest: +ELLIPSIS
    All 3 formulas of this lesson hold on random numbers, and each of the ... wrong versions we know of fails.
    """
    labels = numbers.names("labels", slug) if slug in numbers.lessons() else []
    if not labels:
        raise EquationError(f"verify_lesson wants the name of a lesson with equations, such as 'softmax'; got {slug!r}")
    publish(replace(verified(*labels), whole=True))
