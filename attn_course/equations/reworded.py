r"""Another wording as its writer may have meant it, where it is not confirmed as it stands.

Vectors may be columns, so that `q^\top k` is a dot product; what runs in a limit may have another letter; and what the registered formula
defines may be said by an equality that is solved for it, `b + x = \mathrm{lse}(s)`. Each is LaTeX again, and judged like any other form.
"""

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.equations.saying import KNOWN
from attn_course.formulas import Formula, FormulaError, Node, formula_of, names_of, read, read_expression, write
from attn_course.formulas.errors import Place
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Function, Given, Outcomes, as_given
from attn_course.formulas.tree import relations

Givens = Mapping[str, Any]
_TRANSPOSE = re.compile(r"\^\s*(?:\{[^{}]*(?:\{[^{}]*\})?\}|\\top|\\intercal|T)$")
_PARTS = re.compile(r",?\s*\\q?quad\s*")
LINEAR = ("chain", "sum", "neg", "product", "over", "dot")  # what an equality may be solved through for what stands in it
MINUS_ONE = Node("neg", (Node("number", (), "1"),))
ZERO, TWO = Node("number", (), "0"), Node("number", (), "2")
_STATEMENTS, _BOTH = re.compile(r"(,?\s*\\qquad\s*)"), re.compile(r"\\(pm|mp)(?![A-Za-z])")
_WAVE = re.compile(r"(\\(?:sin|cos|tan)\s*)((?:\\[a-z]+|[A-Za-z]|[0-9]+)(?:_\w|_\{\w+\})?)(?=\s*\\[,;:! ]|\s*\()")
_SOFTMAX, _SOME = re.compile(r"\\(?:operatorname|mathrm|text)\{[sS]oftmax\}"), np.array([0.3, -1.1, 2.0])
_MEAN = re.compile(r"^\\[a-z]+\s*\{?\s*E\s*\}?")  # what is written for an expectation, before what it is of
MOST = 20  # dot products of one form


def readings(latex: str, registered: Formula, givens: Givens) -> Iterator[str]:
    """Yield what a form may mean instead: its dummies named as in the registered formula, and with vectors that are columns."""
    for named in (latex, *_renamed(latex, registered, givens)):
        if named != latex:
            yield named
        if (inner := _with_dot_products(named, givens)) != named:
            yield inner


def plainly(latex: str, givens: Givens) -> str:
    """Return a form in a notation that says the same and is easier to judge."""
    plain = _with_variances(_with_nothing_left(_with_arguments(_with_both_signs(latex), givens), givens), givens)
    given = givens.get(r"\sigma")
    if isinstance(given, Function) and np.allclose(given.call(_SOME), KNOWN[r"\sigma"](_SOME)):
        plain = _SOFTMAX.sub(r"\\sigma", plain)
    for name in givens:
        if found := re.fullmatch(r"O\((\w)\^(\d)\)", name):  # what is left over, times 2 h
            plain = plain.replace(f"+ {name}", f"- {name}")  # it has no sign
            plain = re.sub(rf"O\({found[1]}\^{{?{int(found[2]) + 1}}}?\)", rf"2 {found[1]}\\, {name}", plain)
    return plain


def clauses_of(latex: str) -> list[str]:
    """Return the statements of a formula that stand apart."""
    return _PARTS.split(latex)


def _replaced(latex: str, others: Mapping[Place, str]) -> str:
    for (start, end), text in sorted(others.items(), reverse=True):
        latex = latex[:start] + text + latex[end:]
    return latex


def transposed_at(latex: str, place: Place) -> str:
    r"""Return a formula with \top in the place of the T that stands above what is there."""
    start, end = place
    return latex[:start] + _TRANSPOSE.sub(r"^\\top", latex[start:end]) + latex[end:]


def written_out(latex: str, givens: Givens) -> Iterator[tuple[Place, str, str]]:
    r"""Yield each \sum_i p_i \ln p_i where H is given, from the right: its place, what it is if H is the entropy, and that equality."""
    if not isinstance(givens.get("H"), Function):
        return
    try:
        nodes = [*read(latex, names_of(givens)).walk()]
    except FormulaError:
        return
    for node in (one for one in reversed(nodes) if one.value == r"\sum" and one.children[1].kind == "product"):
        one, *others = sorted(node.children[1].children, key=lambda factor: factor.kind == "call")
        if one.kind == "entry" and others == [Node("call", (Node("none"), one), r"\ln")]:
            same = f"(-H({latex[slice(*one.children[0].place)]}))"
            yield node.place, same, f"{latex[slice(*node.place)]} = {same}"


# ---- Two claims in one, arguments without parentheses, equalities said by a norm


def _with_both_signs(latex: str) -> str:
    r"""Return a form with two statements in the place of each in which \pm stands twice."""
    parts = _STATEMENTS.split(latex)
    for place, part in enumerate(parts):
        if len(_BOTH.findall(part)) > 1:
            parts[place] = r", \qquad ".join(_signed(part, signs) for signs in ("+-", "-+"))
    return "".join(parts)


def _signed(statement: str, signs: str) -> str:
    r"""Return a statement with the first sign in the place of \pm, and the second in that of \mp."""
    return _BOTH.sub(lambda sign: signs[sign[1] == "mp"], statement)


def _with_arguments(latex: str, givens: Givens) -> str:
    r"""Return a form with parentheses in \sin\theta\, J W, where J is a matrix, and in \cos \omega(t - u), where t - u is a number."""
    found = [*_WAVE.finditer(latex)]
    try:
        formula = formula_of(_WAVE.sub(r"\1(\2)", latex) if found else "", givens)
    except FormulaError:
        return latex
    for count, match in reversed([*enumerate(found)]):
        start = match.start() + 2 * count
        sides = [node.children for node in formula.tree.walk() if node.kind == "product"]
        behind = [factors[at + 1 :] for factors in sides for at, one in enumerate(factors) if one.kind == "call" and one.place[0] == start]
        if behind and any(_form(factor, formula, givens) not in ("scalar", "") for factor in behind[0]):
            latex = latex[: match.start(2)] + f"({match[2]})" + latex[match.end(2) :]
        elif behind and latex[match.end() :].lstrip().startswith("("):
            end = behind[0][0].place[1] - 2 * (count + 1)
            latex = latex[: match.start(2)] + f"({latex[match.start(2) : end]})" + latex[end:]
    return latex


def _form(node: Node, formula: Formula, givens: Givens) -> str:
    """Return what stands there, such as a matrix; "" if that has no meaning."""
    with contextlib.suppress(FormulaError, ValueError):
        evaluation = Evaluation(formula, givens)
        for letter in evaluation.ordered(node.letters(), node):
            evaluation.enter(letter, node)
        return evaluation.value(node).form
    return ""


def _with_nothing_left(latex: str, givens: Givens) -> str:
    r"""Return a form with A - B = 0 in the place of \|A - B\|_F = 0, or of another sum of what is nowhere negative."""
    try:
        formula = formula_of(latex if "0" in latex else "", givens)
    except FormulaError:
        return latex
    others = dict[Place, str]()
    for chain, conditions in relations(formula.tree):
        ends = chain.children[::2] if chain.children[1].value != r"\ge" else chain.children[::-2]
        if len(ends) == 2 and chain.children[1].value in ("=", r"\le", r"\ge") and ends[1] == ZERO and not conditions:
            inner, where = ends[0], list[str]()
            while (less := _definite(inner, where, formula, givens)) is not None:
                inner = less
            if inner is not ends[0]:
                others[chain.place] = f" {latex[slice(*inner.place)]} = 0" + rf" \quad ({', '.join(where)})" * bool(where)
    return _replaced(latex, others)


def _with_variances(latex: str, givens: Givens) -> str:
    r"""Return a form with Var[x] in the place of E[x^2] - E[x]^2, of which no draw tests the second where the mean is 0."""
    others = dict[Place, str]()
    with contextlib.suppress(FormulaError):
        sums = [node for node in read(latex, names_of(givens)).walk() if node.kind == "sum"] if "E" in latex else []
        for one, other in itertools.chain(*(itertools.pairwise(node.children) for node in sums)):
            mean = other.children[0].children[0] if other.kind == "neg" and other.children[0] == _squared(other.children[0]) else other
            if mean.value == "E" and one == replace(mean, children=(*mean.children[:-1], Node("power", (mean.children[-1], TWO)))):
                others[one.place[0], other.place[1]] = rf"\mathrm{{Var}}{_MEAN.sub('', latex[slice(*mean.place)])}"
    return _replaced(latex, others)


def _squared(node: Node) -> Node:
    return Node("power", (*node.children[:1], TWO))


def _definite(node: Node, where: list[str], formula: Formula, givens: Givens) -> Node | None:
    """Return what is 0 if a norm, an even power, or a sum or the largest of such is; note over what the letters run."""
    if node.kind in ("norm", "bars"):
        return node.children[0]
    if node.kind == "power" and node.children[1] == TWO and _form(node, formula, givens) == "scalar":
        return node.children[0]
    if node.kind == "big" and node.value in (r"\sum", r"\max") and _definite(node.children[1], [], formula, givens) is not None:
        for item in node.children[0].children:
            if item.kind == "range":
                letter, low, high = map(write, item.children)
                where.append(rf"{low} \le {letter} \le {high}")
            elif item.kind != "index":
                return None
        return node.children[1]
    return None


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
