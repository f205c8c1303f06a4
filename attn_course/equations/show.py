r"""`show("softmax", z=[1, 2, 0], i=2)`: an equation, the same with numbers put in, and the result; or a wrong form, refuted.

Nothing is replaced in the LaTeX: the formula is read, its tree is evaluated, and numbers take the place of what has a value.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from attn_course import formulas, numbers
from attn_course.equations.asked import Asked, ShowError, asked
from attn_course.equations.calculation import EQUALS, Row, calculated, refuting
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.plain import plain
from attn_course.equations.small import all_draws, counterexample
from attn_course.equations.worked import MOST_ENTRIES, latex, literal
from attn_course.formulas import Formula, Malformed, Node, Refuted
from attn_course.formulas.givens import Given, as_given
from attn_course.formulas.values import Value

Words: TypeAlias = Sequence["str | Node"]
PUNCTUATION = (",", ".", ":", ";")
BROAD = 60  # characters of a sum that is broken into lines
WIDE = 24  # characters of a left side that gets a line of its own
AXES = ("row", "column", "entry", "member")


@dataclass(frozen=True)
class Display:
    """A formula as it is printed; its tree, if it can be read."""

    latex: str
    tree: Node | None = None


@dataclass(frozen=True)
class Calculation:
    """Lines of a calculation."""

    rows: tuple[Row, ...]


Part: TypeAlias = Words | Display | Calculation


@dataclass(frozen=True)
class Shown:
    """What `show` displays: words, formulas as they are printed, and lines of a calculation."""

    parts: tuple[Part, ...]

    def _repr_markdown_(self) -> str:
        return "\n\n".join(filter(None, map(_typeset, self.parts)))

    def __str__(self) -> str:
        return "\n".join(filter(None, map(_plainly, self.parts)))

    __repr__ = __str__


def show(label: str, /, *, wrong: str | None = None, **values: Any) -> None:
    r"""Display an equation, the same with numbers put in, and the result.

    `values`: a number, list or table for each symbol on the right, by its name without backslash and braces (`beta`, `d_k`, `W_Q`,
    `m_prime`), and a position for each index that should not be the first. Without any, the smallest draw is shown.
    `wrong`: the name of a wrong form of the equation, which is displayed with its smallest counterexample instead.

    Raises ShowError if values are missing, unknown or of another shape; UnknownEquation if there is no such label.

    >>> show("log-softmax", z=[0, 1], i=2)  # doctest: +ELLIPSIS
    Eq. (...), with z = (0, 1) and i = 2:
      ln(σ(z)_i) = z_i - lse(z)
      ln(σ(z)_2) = 1 - lse(0, 1)
                 ≈ -0.313
    """
    found = shown(label, wrong, values)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(found)
    else:
        shell.display_pub.publish({"text/markdown": found._repr_markdown_(), "text/plain": str(found)})


def shown(label: str, wrong: str | None = None, values: Mapping[str, Any] | None = None, registry: Registry = REGISTRY) -> Shown:
    """Return what `show` displays."""
    equation = registry.get_equation(label)
    if equation.kind == "transcribed":
        raise ShowError(f"{numbers.eq(label)} is transcribed, not read: no numbers can be put in")
    with np.errstate(all="ignore"):  # infinities show in the numbers
        if wrong is None:
            return _with_values(equation, values) if values else _drawn(equation)
        if values:
            raise ShowError(f"wrong draws its own numbers: wanted no values beside it, got {', '.join(values)}")
        return _refuted(equation, wrong)


def _with_values(equation: Equation, values: Mapping[str, Any]) -> Shown:
    formula, question = equation.read(), asked(equation, values)
    rows, places = calculated(formula, question)
    return _worked_out(equation, formula, rows, _listed(question.given, places))


def _drawn(equation: Equation) -> Shown:
    small = next(all_draws(equation, least=2))
    rows, places = calculated(small.formula, Asked(dict(small.givens), {}, label=equation.label))
    return _worked_out(equation, small.formula, rows, _listed(small.givens, places))


def _worked_out(equation: Equation, formula: Formula, rows: Sequence[Row], listed: Words) -> Shown:
    lead = (numbers.eq(equation.label), *((", with ", *listed) if listed else ()), ":")
    return Shown((lead, Display(equation.latex, formula.tree), Calculation(tuple(rows))))


# ---- a wrong form, refuted


def _refuted(equation: Equation, name: str) -> Shown:
    form = next((form for form in equation.wrongs if form.name == name), None)
    if form is None:
        names = ", ".join(f'"{form.name}"' for form in equation.wrongs)
        raise ShowError(f'wrong wants one of {names}; got "{name}"')
    title = (f"Not {numbers.eq(equation.label)}: {numbers.cite(form.name)}",)
    found = counterexample(equation, form.latex)
    if found is None:
        raise ShowError(f"{numbers.eq(equation.label)}: no counterexample was found")
    small, formula, error = found
    if formula is None or not isinstance(error, Refuted):
        said = error.problem if isinstance(error, Malformed) else str(error)
        where: list[str | Node] = []
        for letter, size in small.sizes.items() if formula else ():
            where += [", " if where else " for ", _is(_name(letter), Node("number", value=str(size)))]
        tree = None
        with contextlib.suppress(Malformed):
            tree = formulas.read(form.latex, formulas.names_of(small.givens))
        return Shown((title, Display(form.latex, tree), ("This has no meaning" if tree else "This cannot be read", *where, f": {said}.")))
    letters = {letter: float(value) for letter, value in error.at if letter not in AXES}
    rows, sides = refuting(formula, Asked(dict(small.givens), letters), error)
    lead: Words = ("For ", *_listed(small.givens, {}), ":") if _listed(small.givens, {}) else ()
    return Shown((title, Display(form.latex, formula.tree), lead, Calculation(tuple(rows)), _verdict(error, sides)))


def _verdict(error: Refuted, sides: Sequence[Node]) -> Words:
    """Return what is left, right and where, in the formula's own symbols."""
    found = [_entry(side, dict(error.at)) for side in sides]
    told = len(found) == 2 and found[0] != found[1] and all(side.kind in ("number", "neg", "constant") for side in found)
    left, right = found if told else (error.left, error.right)
    words: list[str | Node] = ["left ", left, ", right ", right]
    for number, (place, value) in enumerate(error.at):
        words += [", " if number else " at ", f"{place} = {value}" if place in AXES else _is(_name(place), Node("number", value=value))]
    if error.relation != EQUALS:
        words += ["; claimed: left ", Node("relation", value=error.relation), " right"]
    return (*words, ".")


def _entry(side: Node, at: Mapping[str, str]) -> Node:
    """Return the entry of a written matrix or vector."""
    if side.kind == "blocks":
        return side.children[int(at.get("row", 1)) - 1].children[int(at.get("column", 1)) - 1]
    return side.children[int(at["entry"]) - 1] if side.kind == "tuple" and "entry" in at else side


# ---- words


def _listed(givens: Mapping[str, Any], places: Mapping[str, Node]) -> Words:
    """Return what was put in: symbols with their values, and indices."""
    items = list[Words]()
    for name, thing in givens.items():
        given, symbol = as_given(thing), Node("name", value=name)
        if isinstance(given, Given) and given.form != "opaque":
            written = _written(given)
            items.append((_is(symbol, written),) if written else (symbol, f" ({' x '.join(map(str, np.shape(given.raw)))} numbers)"))
    items += [(_is(Node("name", value=letter), value),) for letter, value in places.items()]
    words = list[str | Node]()
    for place, item in enumerate(items):
        words += ["" if place == 0 else " and " if place == len(items) - 1 else ", ", *item]
    return words


def _name(letter: str) -> Node:
    """Return a letter, or the name of a size such as d_model, as a symbol."""
    first, _, rest = letter.partition("_")
    beneath = rf"_{{\text{{{rest}}}}}" if len(rest) > 1 else f"_{rest}" if rest else ""
    return Node("name", value=first + beneath)


def _is(left: Node, right: Node) -> Node:
    return Node("chain", (left, Node("relation", value=EQUALS), right))


def _written(given: Given) -> Node | None:
    """Return a given as it is written, or None if it is too large; a list of vectors is a list of lists."""
    value = given.value(0, np.asarray(given.raw).dtype == object)
    if value.lists == 1 and len(value.data) <= MOST_ENTRIES and value.form != "opaque":
        flat = value.form in ("row", "column")
        items = [literal(Value(one.ravel(), "vector") if flat else Value(one, value.form, starts=value.starts[1:])) for one in value.data]
        return None if None in items else Node("tuple", tuple(item for item in items if item))
    return literal(value)


def _typeset(part: Part) -> str:
    if isinstance(part, Display):
        return f"$${part.latex}$$"
    if isinstance(part, Calculation):
        text = ""
        for left, sign, right in _lines(part.rows):
            apart = " \\\\[0.6em]\n" if not sign else " \\\\\n"  # a side of its own stands apart
            text += apart * bool(text) + f"{latex(left) if left else ''} &{sign} {latex(right, sign)}"
        return f"$$\\begin{{aligned}}\n{text}\n\\end{{aligned}}$$"
    text, before = "", False
    for word in part:
        if isinstance(word, str):
            mark, rest = (word[:1], word[1:]) if before and word[:1] in PUNCTUATION else ("", word)  # no line may begin with it
            text += (f"{{{mark}}}" if mark else "") + "$" * before + rest
        else:
            text += f"${latex(word)}"
        before = not isinstance(word, str)
    return text + "$" * before


def _plainly(part: Part) -> str:
    if isinstance(part, Display):
        return "  " + (plain(part.tree) if part.tree else part.latex)
    if isinstance(part, Calculation):
        rows = [(plain(left) if left else "", plain(Node("relation", value=sign)), plain(right)) for left, sign, right in _lines(part.rows)]
        width = max(len(left) for left, _, _ in rows)
        return "\n".join(f"  {left:{width}} {sign} {right}" if sign else f"  {right}" for left, sign, right in rows)
    return "".join(word if isinstance(word, str) else plain(word) for word in part)


def _lines(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield lines; where a left side is wide, all begin at the margin, and each term of a broad sum has a line of its own."""
    wide = any(left is not None and len(plain(left)) > WIDE for left, _, _ in rows)
    for left, sign, right in rows:
        if wide and left is not None and len(plain(left)) > WIDE:
            yield None, "", left
            left = None
        elif wide and left is not None:
            yield None, "", Node("chain", (left, Node("relation", value=sign), right))
            continue
        if right.kind != "sum" or len(plain(right)) <= BROAD:
            yield left, sign, right
            continue
        first, *terms = right.children
        yield left, sign, first
        for term in terms:
            yield None, "-" if term.kind == "neg" else "+", term.children[0] if term.kind == "neg" else term
