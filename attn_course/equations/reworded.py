r"""Another wording as its writer may have meant it, where it is not confirmed as it stands.

Vectors may be columns, so that `q^\top k` is a dot product; what runs in a limit may have another letter; and what the registered formula
defines may be said by an equality that is solved for it, `b + x = \mathrm{lse}(s)`. Each is LaTeX again, and judged like any other form.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attn_course.formulas import Formula, FormulaError, Node, names_of, read, read_expression
from attn_course.formulas.errors import Place
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, Outcomes, as_given
from attn_course.formulas.tree import relations

Givens = Mapping[str, Any]
_TRANSPOSE = re.compile(r"\^\s*(?:\{[^{}]*(?:\{[^{}]*\})?\}|\\top|\\intercal|T)$")
_PARTS = re.compile(r",?\s*\\q?quad\s*")
LINEAR = ("chain", "sum", "neg", "product", "over", "dot")  # what an equality may be solved through for what stands in it
MINUS_ONE = Node("neg", (Node("number", (), "1"),))
MOST = 20  # dot products of one form


def readings(latex: str, registered: Formula, givens: Givens) -> Iterator[str]:
    """Yield what a form may mean instead: its dummies named as in the registered formula, and with vectors that are columns."""
    for named in (latex, *_renamed(latex, registered, givens)):
        if named != latex:
            yield named
        if (inner := _with_dot_products(named, givens)) != named:
            yield inner


def clauses_of(latex: str) -> list[str]:
    """Return the statements of a formula that stand apart."""
    return _PARTS.split(latex)


def _replaced(latex: str, others: Mapping[Place, str]) -> str:
    for (start, end), text in sorted(others.items(), reverse=True):
        latex = latex[:start] + text + latex[end:]
    return latex


# ---- Letters that run in a limit, beneath arg min, or over exponents


def _renamed(latex: str, registered: Formula, givens: Givens) -> Iterator[str]:
    """Yield a form in which what runs by itself has the names that it has in the registered formula."""
    wanted = dict.fromkeys(node.value for node in _running(registered.tree))
    try:
        tree = read(latex, names_of(givens)) if wanted else registered.tree
    except FormulaError:
        return
    own = dict.fromkeys(node.value for node in _running(tree))
    standing = {node.value for node in tree.walk() if not node.children}
    letters = [letter for letter in own if letter not in givens]
    names = [name for name in wanted if name not in standing]
    for chosen in itertools.permutations(names, len(letters)) if letters else ():
        new = dict(zip(letters, chosen, strict=True))
        others = {node.place: f"{new[node.value]} " for node in tree.walk() if node.kind == "index" and node.value in new}
        yield _replaced(latex, others)


def _running(tree: Node) -> Iterator[Node]:
    """Yield the symbols that go somewhere, of which something is least, or that are lists of exponents."""
    for node in tree.walk():
        if node.kind == "to":
            yield from itertools.islice((one for one in node.children[0].walk() if one.kind in ("index", "name")), 1)
        elif node.kind == "big":
            for item in node.children[0].children:
                first = item.children[0] if item.kind == "chain" else item
                if first.kind == "bars" or (node.value == r"\arg\min" and first.kind in ("index", "name")):
                    yield from (one for one in first.walk() if one.kind in ("index", "name"))


# ---- Columns


def _with_dot_products(latex: str, givens: Givens) -> str:
    r"""Return a form with a dot product in the place of each a^\top b of two rows, which are columns for its writer."""
    if not re.search(r"top|intercal|T", latex) or any(getattr(given, "form", "") == "column" for given in givens.values()):
        return latex  # here it is said which vectors are columns
    for _ in range(MOST):
        try:
            tree = read(latex, names_of(givens))
        except FormulaError:
            return latex
        said = {chain.children[0]: chain.children[2] for chain, _ in relations(tree) if chain.children[0].kind == "name"}
        pairs = [
            (one, other)
            for node in tree.walk()
            if node.kind == "product"
            for one, other in itertools.pairwise(node.children)
            if one.kind == "transpose" and _is_row(one.children[0], givens, said) and _is_row(other, givens, said)
        ]
        if not pairs:
            return latex
        one, other = pairs[-1]
        first = _TRANSPOSE.sub("", latex[slice(*one.place)])
        between = latex[one.place[1] : other.place[0]]
        end = latex.index(")", other.place[1]) + 1 if "(" in between else other.place[1]
        latex = rf"{latex[: one.place[0]]}({first} \cdot {latex[one.place[1] : end]}){latex[end:]}"
    return latex


def _is_row(node: Node, givens: Givens, said: Mapping[Node, Node]) -> bool:
    """Whether a row stands there, as far as its symbols tell."""
    if node.kind == "entry":
        base, *indices = node.children
        given = as_given(givens[base.value]) if base.value in givens else None
        value = given.value(0) if isinstance(given, Given) and given.form in ("row", "matrix") else None
        return value is not None and value.lists + (value.form == "matrix") == len(indices)
    if node.kind != "name":
        parts = node.children[1:] if node.kind == "call" else node.children if node.kind in ("sum", "neg", "product", "over") else ()
        return any(_is_row(child, givens, said) for child in parts)
    given = as_given(givens[node.value]) if node.value in givens else None
    given = given.given if isinstance(given, Outcomes) else given
    if isinstance(given, Given):
        return given.form == "row"
    return given is None and node in said and _is_row(said[node], givens, {one: other for one, other in said.items() if one != node})


# ---- What the registered formula defines


def stands_alone(clause: str, names: Iterable[str]) -> set[str]:
    """Return the symbol that an equality says outright."""
    try:
        left = read_expression(clause.partition("=")[0], names)
    except FormulaError:
        return set()
    return {left.value} if left.kind in ("index", "name", "constant") else set()


def stands_linear(name: str, clause: str, names: Iterable[str]) -> bool:
    """Whether a symbol stands once in an equality of two sides, which can be solved for it and is not."""
    try:
        (chain,) = read(clause, names).children
    except (FormulaError, ValueError):
        return False
    if chain.kind != "chain" or len(chain.children) != 3 or chain.children[1].value != "=" or chain.children[0].value == name:
        return False
    symbols = [one for one in chain.walk() if one.value == name and not one.children]
    return len(symbols) == 1 and _is_linear(chain, symbols[0])


def _is_linear(node: Node, symbol: Node) -> bool:
    if node is symbol:
        return True
    alone = node.kind == "entry" or (node.kind == "power" and node.children[1] == MINUS_ONE)
    return (alone or node.kind in LINEAR) and any(_is_linear(child, symbol) for child in node.children[: 1 if alone else None])


def is_number(name: str, formula: Formula, draw: Givens) -> bool:
    """Whether what a formula defines is one number."""
    value = Evaluation(formula, draw).value(Node("name", (), name))
    return value.form == "scalar" and not value.lists
