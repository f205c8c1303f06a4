r"""Numbers in the place of symbols: the tree of a formula in which every symbol that has a value is that value.

Sums, products and extremes over a few terms are written out; what cannot be written as a number (a given function, a derivative that is
a whole side) stays a symbol, with numbers for its indices. Nothing that is shown hinges on the last bits of a number: what round-off
leaves of 0 is 0, and a number at the edge of rounding is shown with the digit that decides it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas import FormulaError, Malformed, Node, write
from attn_course.formulas.calculus import SECOND_DIFFERENCES
from attn_course.formulas.compiled import OWN, flattened
from attn_course.formulas.evaluation import Evaluation
from attn_course.formulas.relations import holds
from attn_course.formulas.tree import FACTOR, OPERATION, RELATION, bound_in
from attn_course.formulas.values import Value

DIGITS = 3
EXACT = 1e-9  # of a number: what is closer to few digits is shown as these
MOST_TERMS = 4  # of a sum that is written out; of a longer one its first two and its last
MOST_ENTRIES = 6  # of a vector, and in one direction of a matrix
MOST_CASES = 2_000  # values of the letters of one sum
NONE, DOTS = Node("none"), Node("constant", value=r"\cdots")
WHOLE = ("derivative", "nabla", "at", "integral", "set")  # their own symbols are no numbers while they are computed


def rounded(size: float, digits: int = DIGITS) -> str:
    """Return a positive number in the digits in which it is shown: all of a whole one, else three, or four where they are exact."""
    if not 0 < size < np.inf:
        return f"{size:.0f}"
    before = int(np.floor(np.log10(size))) + 1  # digits before the point
    if before <= 7 and abs(size - round(size)) <= EXACT * size:
        return f"{size:.0f}"
    least = max(digits, before) if before <= 7 else digits
    more = f"{size:.{least + 1}g}"
    text = more if abs(float(more) - size) <= EXACT * size else f"{size:.{least}g}"
    return f"{float(text):.0f}" if "e+0" in text and before <= 7 else text


def number(value: Any, digits: int = DIGITS) -> Node:
    """Return a number in few digits."""
    if isinstance(value, complex | np.complexfloating):
        parts = [number(value.real), times([number(value.imag), Node("constant", value="i")])]
        return Node("sum", tuple(parts)) if value.real else parts[1]
    if not isinstance(value, int | float | np.number | np.bool_):
        from sympy import latex as written

        return Node("constant", value=f"({written(value)})" if value.is_Add else written(value))
    if np.isnan(value):
        return Node("constant", value=r"\text{NaN}")
    text = rounded(abs(float(value)), digits)
    figures, _, exponent = text.partition("e")
    if text == "inf":
        found = Node("constant", value=r"\infty")
    elif exponent:
        found = Node("constant", value=rf"{figures} \cdot ".removeprefix(r"1 \cdot ") + f"10^{{{int(exponent)}}}")
    else:
        found = Node("number", value=text)
    return Node("neg", (found,)) if float(value) < 0 and text != "0" else found


def literal(value: Value) -> Node | None:
    """Return a value as it is written; None if it is too large, or depends on what has no single value."""
    if value.lists or value.form in ("opaque", "identity", "powers", "unit") or set(value.data.shape[: value.letters]) - {1}:
        return None
    data = value.data[(0,) * value.letters]
    if max(data.shape, default=0) > MOST_ENTRIES or 0 in data.shape:
        return None
    match value.form:
        case "scalar":
            return number(data[()])
        case "vector" | "tuple":
            return Node("tuple", tuple(map(number, data)))
        case "row" | "column" | "matrix":
            return Node("blocks", tuple(Node("cells", tuple(map(number, line))) for line in data), "(")
        case "set":
            members = ", ".join(str(place + value.start(0)) for place in np.flatnonzero(data))
            return Node("constant", value=rf"\{{{members}\}}")
    return None


def result(here: Evaluation, node: Node) -> Value:
    """Return the value of an expression in which what round-off leaves of 0 is 0."""
    value = here.value(node)
    if value.data.dtype.kind not in "fc":
        return value
    return replace(value, data=np.where(np.abs(value.data) <= round_off(here), 0.0, value.data))


def round_off(here: Evaluation) -> float:
    """Return what round-off, and derivatives by differences, may leave of 0; the error of a limit is no round-off."""
    return min(here.notes.noise, SECOND_DIFFERENCES) * here.notes.biggest + here.notes.slack


def names_in(node: Node) -> set[str]:
    """Return the names in an expression, with and without the primes of derivatives."""
    found = {one.value for one in node.walk() if one.kind in ("name", "call", "operator")}
    return found | {name.rstrip("'") for name in found}


def in_force(here: Evaluation, node: Node) -> Node:
    """Return an expression whose indices are numbers where they have one value, and whose symbols stay."""

    def fixed(one: Node) -> Node:
        known = here.letters.get(one.value) if one.kind == "index" else None
        if known is not None and known.form == "scalar" and known.data.size == 1:
            return number(known.data.item())
        return replace(one, value=one.value.rstrip(OWN)) if one.kind == "index" else one

    return node.map(fixed)


class Numbers:
    """Puts numbers into formulas, and remembers whether one of them was rounded."""

    def __init__(self, unknown: Iterable[str]) -> None:
        self.unknown = frozenset(unknown)
        self.lossy = False

    def put(self, here: Evaluation, node: Node) -> Node:
        """Return an expression with the numbers that hold here."""
        match node.kind:
            case "entry":
                base, indices = flattened(node)
                if base.kind in ("name", "index", "constant"):
                    return self._leaf(here, node)
                if base.kind == "entry" or any(index.kind == "slice" for index in indices):
                    return in_force(here, node)
                return Node("entry", (self.put(here, base), *(self.put(here, index) for index in indices)))
            case "big" if node.value in (r"\sum", r"\prod", r"\max", r"\min"):
                return self._written_out(here, node)
            case "call" if node.value not in ("E", "Var", "Cov"):
                return self._call(here, node)
            case "name" | "index" | "big" | "call":
                return self._leaf(here, node)
            case kind if kind in WHOLE:
                return self._leaf(here, node)
            case "relation" | "word":
                return node
        return replace(node, children=tuple(self.put(here, child) for child in node.children))

    def value(self, value: Value) -> Node:
        """Return a result; one too large to be written is described."""
        return self._noted(value) or Node("constant", value=rf"\text{{{value}}}")

    def _noted(self, value: Value) -> Node | None:
        found = literal(value)
        if found and value.data.dtype.kind == "f":
            sizes = np.abs(value.data[np.isfinite(value.data)])
            self.lossy |= any(abs(float(rounded(size)) - size) > EXACT * size for size in sizes)
        return found

    def _leaf(self, here: Evaluation, node: Node) -> Node:
        """Return the number that something is, or its symbol if it is none."""
        try:
            found = None if self.unknown & names_in(node) else self._noted(result(here, node))
        except FormulaError:
            found = None
        return found or in_force(here, node)

    def _call(self, here: Evaluation, node: Node) -> Node:
        under, *arguments = node.children
        if node.value == r"\sigma" and under.kind == "index":  # a softmax over a running index
            inner = here.here()
            inner.enter(under.value, arguments[0])
            return Node("call", (NONE, *(self.put(case, arguments[0]) for case in cases(inner, [under.value], []))), node.value)
        put = [self.put(here, argument) for argument in arguments]
        if len(put) == 1 and put[0].kind == "tuple":
            put = list(put[0].children)
        return Node("call", (under if under.kind == "word" else self.put(here, under), *put), node.value)

    def _written_out(self, here: Evaluation, node: Node) -> Node:
        """Write a sum, a product or an extreme out, term by term."""
        domain, body = node.children
        inner, letters, conditions = here.here(), list[str](), list[Node]()
        try:
            for item in domain.children:
                letter = bound_in(item)
                if item.kind == "range":
                    low, high = (here.value(bound).data for bound in item.children[1:])
                    inner.run_over(letter, np.arange(int(low.item()), int(high.item()) + 1))
                elif letter not in inner.letters:
                    inner.enter(letter, node)
                if letter not in letters and letter not in here.letters:
                    letters.append(letter)
                conditions += [item] * (item.kind == "chain")
            found = list(itertools.islice(cases(inner, letters, conditions), MOST_CASES))
        except (FormulaError, ValueError, TypeError):
            return self._leaf(here, node)
        extreme = node.value in (r"\max", r"\min")
        long = len(found) > MOST_TERMS + 2 * extreme
        shown = [self.put(case, body) for case in (found[:2] if long else found)]
        if long:
            shown += [DOTS, self.put(found[-1], body)]
        if extreme:
            return Node("call", (NONE, *shown), node.value)
        if len(shown) < 2:
            return shown[0] if shown else number(0 if node.value == r"\sum" else 1)
        return Node("sum", tuple(shown)) if node.value == r"\sum" else times(shown)


def cases(inner: Evaluation, letters: Sequence[str], conditions: Sequence[Node]) -> Iterator[Evaluation]:
    """Yield the evaluation for each combination of values of some letters in which the conditions hold."""
    ranges = [inner.letters[letter] for letter in letters]
    if any(one.form != "scalar" for one in ranges):
        raise Malformed("exponents are not written out")
    for values in itertools.product(*(one.data.ravel() for one in ranges)):
        case = inner.here()
        for letter, value in zip(letters, values, strict=True):
            case.run_over(letter, np.array([value]))
        if all(np.all(holds(case, condition)) for condition in conditions):
            yield case


def times(factors: Sequence[Node]) -> Node:
    """Return factors side by side."""
    return Node("product", tuple(factors)) if len(factors) > 1 else factors[0]


def latex(node: Node, sign: str = "") -> str:
    """Return the LaTeX of a formula with numbers, behind a sign; in a product a dot stands before a number."""
    return write(node.map(_dotted), OPERATION if sign in ("+", "-") else RELATION)


def _dotted(node: Node) -> Node:
    text = ""
    for factor in node.children if node.kind == "product" else ():
        written = write(factor, FACTOR)
        dot = written[:1].isdigit() or factor.kind == "neg" or factor == DOTS
        text += (r" \cdot " if dot else r"\, ") * bool(text) + written
    return Node("product", (Node("constant", value=text),)) if text else node
