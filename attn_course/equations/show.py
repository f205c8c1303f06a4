r"""`show("softmax", z=[1, 2, 0], i=2)`: an equation, the same with numbers put in, and the result; or a wrong form, refuted.

Nothing is replaced in the LaTeX: the formula is read, its tree is evaluated, and numbers take the place of what has a value.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from attn_course import formulas, numbers
from attn_course.equations.asked import ShowError, asked
from attn_course.equations.calculation import EQUALS, Row, calculated, refuting
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.latex import statements
from attn_course.equations.publish import publish
from attn_course.equations.small import all_draws, counterexample
from attn_course.equations.worked import MOST_ENTRIES, latex, literal
from attn_course.formulas import Formula, Malformed, Node, Refuted, write
from attn_course.formulas.givens import Given, as_given
from attn_course.formulas.judge import AXES
from attn_course.formulas.plain import plain
from attn_course.formulas.values import Value

BROAD = 60  # characters of a sum that is broken into lines
OWN_AXES = {axis for axes in AXES.values() for axis in axes}
WIDE = 24  # characters of a left side that gets a line of its own
MATH = re.compile(r"\$([^$]+)\$")
Line: TypeAlias = tuple[str, str, str]  # a row in LaTeX


@dataclass(frozen=True)
class Shown:
    """What `show` displays: words with LaTeX between dollar signs, a formula as it is printed and as it is read, lines."""

    lead: str
    formula: str
    read: str
    lines: Sequence[Line] = ()
    words: str = ""
    end: str = ""

    def _repr_markdown_(self) -> str:
        text = ""
        for left, sign, right in self.lines:
            apart = " \\\\[0.6em]\n" if not sign else " \\\\\n"  # a side of its own stands apart
            text += apart * bool(text) + f"{left} &{sign} {right}"
        lines = f"$$\\begin{{aligned}}\n{text}\n\\end{{aligned}}$$" if text else ""
        words = [re.sub(r"\$([,.:;])", r"{\1}$", words) for words in (self.lead, self.words, self.end)]  # no line may begin with a comma
        return "\n\n".join(filter(None, (words[0], f"$${_on_lines(self.formula)}$$", words[1], lines, words[2])))

    def __str__(self) -> str:
        lines = [(plain(left), plain(sign), plain(right)) for left, sign, right in self.lines]
        width = max((len(left) for left, _, _ in lines), default=0)
        rows = [f"  {left:{width}} {sign} {right}" if sign else f"  {right}" for left, sign, right in lines]
        words = [MATH.sub(lambda found: plain(found[1]), words) for words in (self.lead, self.words, self.end)]
        return "\n".join(filter(None, (words[0], f"  {plain(self.read)}", words[1], *rows, words[2])))

    __repr__ = __str__


def _on_lines(formula: str) -> str:
    """Return a formula for a line of its own, or, if that is broad, with its statements below each other."""
    found = statements(formula)
    if len(found) == 1 or len(plain(formula)) <= BROAD:
        return formula
    return "\\begin{gathered}\n" + " \\\\\n".join(found) + "\n\\end{gathered}"


def show(label: str, /, *, wrong: str | None = None, **values: Any) -> None:
    r"""Display an equation, the same with numbers put in, and the result.

    `values`: a number, list or table for each symbol on the right, by its name without backslash and braces (`beta`, `d_k`, `W_Q`,
    `m_prime`), and a position for each index that should not be the first. Without any, the smallest draw is shown.
    `label`: its name, or its number as messages print it, which may be another equation's tomorrow.
    `wrong`: the name of a wrong form of the equation, which is displayed with its smallest counterexample instead.

    Raises ShowError if values are missing, unknown or of another shape; UnknownEquation if there is no such label.

    >>> show("log-softmax", z=[0, 1], i=2)  # doctest: +ELLIPSIS
    Eq. (...), with z = (0, 1) and i = 2:
      ln(σ(z)_i) = z_i - lse(z)
      ln(σ(z)_2) = 1 - lse(0, 1)
                 ≈ -0.313
    """
    publish(shown(label, wrong, values))


def shown(label: str, wrong: str | None = None, values: Mapping[str, Any] | None = None, registry: Registry = REGISTRY) -> Shown:
    """Return what `show` displays."""
    equation = registry.get_equation(numbers.named("labels", label) or label)
    if equation.kind == "transcribed":
        raise ShowError(f"{numbers.eq(label)} is transcribed, not read: no numbers can be put in")
    if wrong is not None and values:
        raise ShowError(f"wrong draws its own numbers: wanted no values beside it, got {', '.join(values)}")
    with np.errstate(all="ignore"):  # infinities show in the numbers
        if wrong is not None:
            return _refuted(equation, wrong)
        if values:
            question = asked(equation, values)
            return _worked_out(equation, equation.read(), question.given, *calculated(equation.read(), question))
        small = next(all_draws(equation, least=2))
        return _worked_out(equation, small.formula, small.givens, *calculated(small.formula, small.givens))


def _worked_out(equation: Equation, formula: Formula, givens: Mapping[str, Any], rows: list[Row], places: Mapping[str, Node]) -> Shown:
    listed = _listed(givens, places)
    lead = numbers.eq(equation.label) + f", with {listed}" * bool(listed) + ":"
    return Shown(lead, equation.latex, write(formula.tree), list(_lines(rows)))


def _refuted(equation: Equation, name: str) -> Shown:
    """Return a wrong form with the smallest counterexample to it."""
    form = next((form for form in equation.wrongs if form.name == name), None)
    if form is None:
        names = ", ".join(f'"{form.name}"' for form in equation.wrongs)
        raise ShowError(f'wrong wants one of {names}; got "{name}"')
    title = f"Not {numbers.eq(equation.label)}: {numbers.cite(form.name)}"
    found = counterexample(equation, form.latex)
    if found is None:
        raise ShowError(f"{numbers.eq(equation.label)}: no counterexample was found")
    small, formula, error = found
    if formula is None or not isinstance(error, Refuted):
        read, problem = form.latex, "This cannot be read"
        with contextlib.suppress(Malformed):
            read, problem = write(formulas.read(form.latex, formulas.names_of(small.givens))), "This has no meaning"
        sizes = ", ".join(f"${_name(letter)} = {size}$" for letter, size in small.sizes.items()) if formula else ""
        said = error.problem if isinstance(error, Malformed) else str(error)
        return Shown(title, form.latex, read, end=f"{problem}{f' for {sizes}' * bool(sizes)}: {said}.")
    rows, left, right = refuting(formula, small.givens, error)
    at = ", ".join(f"{place} = {value}" if place in OWN_AXES else f"${_name(place)} = {value}$" for place, value in error.at)
    end = f"left ${latex(left)}$, right ${latex(right)}$" + f" at {at}" * bool(at)
    relation = error.relation.replace(r"\xrightarrow", r"\to")  # which is nothing without what stands below it
    end += f"; claimed: left ${relation}$ right" if relation != EQUALS else ""
    listed = _listed(small.givens, {})
    return Shown(title, form.latex, write(formula.tree), list(_lines(rows)), f"For {listed}:" if listed else "", f"{end}.")


def _listed(givens: Mapping[str, Any], places: Mapping[str, Node]) -> str:
    """Return what was put in, in words: symbols with their values, and indices."""
    items = []
    for name, thing in givens.items():
        given = as_given(thing)
        if isinstance(given, Given) and given.form != "opaque":
            written = _written(given)
            items.append(f"${name} = {latex(written)}$" if written else f"${name}$ ({' x '.join(map(str, np.shape(given.raw)))} numbers)")
    items += [f"${letter} = {latex(value)}$" for letter, value in places.items()]
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def _name(letter: str) -> str:
    """Return a letter, or the name of a size such as d_model, in LaTeX."""
    first, _, rest = letter.partition("_")
    return first + (rf"_{{\text{{{rest}}}}}" if len(rest) > 1 else f"_{rest}" if rest else "")


def _written(given: Given) -> Node | None:
    """Return a given as it is written, or None if it is too large; a list of vectors is a list of lists."""
    value = given.value(0)
    if value.lists != 1 or len(value.data) > MOST_ENTRIES:
        return literal(value)
    flat = value.form in ("row", "column")
    items = [literal(Value(one.ravel(), "vector") if flat else Value(one, value.form, starts=value.starts[1:])) for one in value.data]
    return None if None in items else Node("tuple", tuple(item for item in items if item))


def _lines(rows: Sequence[Row]) -> Iterator[Line]:
    """Yield lines; where a left side is wide, all begin at the margin, and each term of a broad sum has a line of its own."""
    lefts = [latex(left) if left else "" for left, _, _ in rows]
    wide = any(len(plain(left)) > WIDE for left in lefts)
    for left, (_, sign, right) in zip(lefts, rows, strict=True):
        before = left
        if wide and left:
            broad = len(plain(left)) > WIDE
            yield "", "", left if broad else f"{left} {sign} {latex(right)}"
            if not broad:
                continue
            before = ""
        if right.kind != "sum" or len(plain(latex(right))) <= BROAD:
            yield before, sign, latex(right)
            continue
        first, *terms = right.children
        yield before, sign, latex(first, "+")
        for term in terms:
            minus = term.kind == "neg"
            yield "", "-" if minus else "+", latex(term.children[0] if minus else term, "+")
