r"""Formulas in the browser: symbols, numbers and both sides of every relation, as JavaScript has them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from attn_course.formulas import Formula, Malformed, Node, names_of, read
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.functions import BUILT_IN
from attn_course.formulas.givens import Given, Of, Outcomes, Range
from attn_course.formulas.javascript import JavaScript, Symbol, letter_of
from attn_course.formulas.relations import is_space

SIGNS = {"=": "equal", r"\ne": "unequal", "<": "less", ">": "more", r"\le": "most", r"\ge": "least"}
SPELLED = str.maketrans({"'": "_prime", "+": "_plus", "-": "_minus", "~": "_tilde"})


@dataclass(frozen=True)
class Chain:
    """Sides with relations between them, for all values of some letters where a condition holds; sources of JavaScript."""

    letters: tuple[str, ...]
    runs: tuple[tuple[int, ...], ...]
    signs: tuple[str, ...]
    sides: tuple[str, ...]
    nodes: tuple[Node, ...]
    where: str
    turned: bool  # its last side stands first on the page


# ---- Symbols and values, as JavaScript has them
def keys_of(names: Iterable[str]) -> dict[str, str]:
    """Return what symbols are called in JavaScript, each in its own way."""
    found = dict[str, str]()
    for name in names:
        key = re.sub(r"\W+", "_", name.translate(SPELLED)).strip("_")
        while key in found.values():
            key += "_"
        found[name] = key
    return found


def symbols_of(givens: Mapping[str, Any]) -> dict[str, Symbol]:
    """Return what stands for the arrays among the givens of a formula, as `values_of` hands them to JavaScript."""
    found = {}
    for name, key in keys_of(givens).items():
        given = givens[name]
        if isinstance(given, Outcomes):
            found[name] = Symbol(f"$.{key}", name=key, random=f"of_{given.group}", weights=f"$.of_{given.group}")
        elif isinstance(given, Given) and given.form != "opaque":
            found[name] = Symbol(f"$.{key}", given.value(0).starts, key, given.form == "set", given.states)
    return found


def runs_of(formula: Formula, givens: Mapping[str, Any]) -> dict[str, str]:
    """Return the source of the values of each letter whose range is declared; lists of exponents are none."""
    evaluation, keys = Evaluation(formula, givens), keys_of(givens)
    ranges = {name: given for name, given in givens.items() if isinstance(given, Range)}
    return {name: f"$.run_{keys[name]}" for name, given in ranges.items() if given.call(*evaluation.plain(given.names)).ndim == 1}


def values_of(formula: Formula, givens: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of givens for JavaScript: lists, and columns under a name; what is no real number is left out."""
    evaluation, found = Evaluation(formula, givens), dict[str, Any]()
    for name, key in keys_of(givens).items():
        given = evaluation.given(name)
        if isinstance(given, Range):
            found[f"run_{key}"] = given.call(*evaluation.plain(given.names)).tolist()
        elif isinstance(given, Outcomes):
            found[key] = [value_of(replace(given.given, raw=one)) for one in given.given.raw]
            found[f"of_{given.group}"] = given.weights.tolist()
        elif isinstance(given, Given) and given.form != "opaque":
            found[key] = value_of(given)
    return found


def value_of(given: Given) -> Any:
    """Return an array as JavaScript takes it: lists, and a column as a list under a name; None if it is not of real numbers."""
    try:
        raw = np.asarray(given.raw)
    except ValueError:
        return None
    if raw.dtype.kind not in "fbiu":
        return None
    return _columns(raw.astype(float), raw.ndim - 1) if given.form == "column" else raw.astype(float).tolist()


def _columns(raw: np.ndarray, lists: int) -> Any:
    return [_columns(one, lists - 1) for one in raw] if lists else {"column": raw.tolist()}


# ---- Formulas, with definitions in the place of Python functions
def formula_with(latex: str, givens: Mapping[str, Any], functions: Mapping[str, str]) -> Formula:
    """Read a formula in which some functions are defined beside it, and stand on the right of what is claimed; raises Malformed."""
    ranges = tuple(name for name, given in givens.items() if isinstance(given, Range))
    return _formula_with(latex, tuple(names_of(givens)), ranges, tuple(functions.items()))


@lru_cache(maxsize=4096)
def _formula_with(latex: str, names: tuple[str, ...], ranges: tuple[str, ...], defined: tuple[tuple[str, str], ...]) -> Formula:
    functions = dict(defined)
    kept = [name for name in names if name.removesuffix("()") not in functions]
    statements = list(map(without_space, read(latex, names).children))
    used = {node.value for statement in statements for node in statement.walk()}
    texts = dict.fromkeys(text for name, text in defined if text and name in used)
    beside = [statement for text in texts for statement in read(text, names).children]
    beside = [one for one in beside if one not in statements or defined_in(one) & functions.keys()]
    turned = tuple(_turned(statement, functions) for statement in statements)
    formula = Formula(Node("formula", (*turned, *beside)), kept, ranges, latex)
    formula.spare = frozenset([*kept, *ranges])
    return formula


def _turned(statement: Node, functions: Iterable[str]) -> Node:
    """Return an equality that would define a function from right to left, so that it claims."""
    left, *rest = statement.children or (statement,)
    defines = statement.kind == "chain" and {sign.value for sign in rest[::2]} == {"="} and left.kind == "call"
    defines = defines and left.value in functions and {one.kind for one in left.children[1:]} <= {"index", "name"}
    return replace(statement, children=statement.children[::-1]) if defines and left.value not in BUILT_IN else statement


def without_space(statement: Node) -> Node:
    """Return a relation without what it says at its end of shapes alone: that a side lies in R^n."""
    *front, last = statement.children or (statement,)
    return replace(statement, children=tuple(front[:-1])) if statement.kind == "chain" and len(front) > 2 and is_space(last) else statement


def is_turned(formula: Formula, chain: Node) -> bool:
    """Whether a relation stands the other way round on the page, as it would define a function there."""
    return _turned(replace(chain, children=chain.children[::-1]), formula.definitions) == chain


def chains(formula: Formula) -> Iterator[tuple[list[str], list[tuple[Node, list[tuple[Node, Node]]]]]]:
    """Yield for each claim its free letters, those that end slices first, and its relations with their premises (and what follows)."""
    for claim in formula.claims:
        looped = formula.looped(claim)
        yield [*looped, *sorted(claim.letters() - {r"\delta", *looped})], list(_within(claim, []))


def _within(node: Node, premises: list[tuple[Node, Node]]) -> Iterator[tuple[Node, list[tuple[Node, Node]]]]:
    first, *rest = node.children
    match node.kind:
        case "chain":
            yield node, premises
        case "where":
            yield from _within(first, [*premises, *((condition, condition) for condition in rest)])
        case "all":
            for child in node.children:
                yield from _within(child, premises)
        case "given" | "implies":
            for conclusion in rest:
                yield from _within(conclusion, [*premises, (first, conclusion)])
            if node.value == r"\iff":
                yield from _within(first, [*premises, (rest[0], first)])


def letters_of(formula: Formula, givens: Mapping[str, Any]) -> list[dict[str, tuple[int, ...]]]:
    """Return for each claim the values over which its free letters run."""
    evaluation, found = Evaluation(formula, givens), []
    for claim in formula.claims:
        inner, letters = evaluation.here(), claim.letters() - {r"\delta"}
        for letter in inner.ordered(letters, claim):
            inner.enter(letter, claim)
        if any(inner.letters[letter].form != "scalar" for letter in letters):
            raise Malformed("exponents cannot be written as JavaScript", claim.place)
        found.append({letter: tuple(map(int, inner.letters[letter].data.ravel())) for letter in letters})
    return found


def written(formula: Formula, givens: Mapping[str, Any]) -> list[Chain]:
    """Return all relations of a formula; raises Malformed for what cannot be written."""
    writer = JavaScript(formula, symbols_of(made_of(formula, givens)), runs=runs_of(formula, givens))
    found = []
    for (letters, some), values in zip(chains(formula), letters_of(formula, givens), strict=True):
        for chain, premises in some:
            where = [writer.for_all(premise, sorted(premise.letters() - of.letters() - {r"\delta"})) for premise, of in premises]
            for sign in chain.children[1::2]:
                if sign.value not in SIGNS:
                    raise Malformed(f"{sign.value} cannot be written as JavaScript", sign.place)
            nodes = chain.children[::2]
            signs = tuple(SIGNS[sign.value] for sign in chain.children[1::2])
            sides, runs = tuple(map(writer.written, nodes)), tuple(values[letter] for letter in letters)
            found.append(Chain(tuple(map(letter_of, letters)), runs, signs, sides, nodes, " && ".join(where), is_turned(formula, chain)))
    return found


def made_of(formula: Formula, givens: Mapping[str, Any]) -> dict[str, Any]:
    """Return givens in which those that are computed from others are arrays."""
    evaluation = Evaluation(formula, givens)
    return {name: evaluation.given(name) if isinstance(given, Of) else given for name, given in givens.items()}


def named_by(node: Node) -> str:
    """Return the symbol, or the function, that an equality with such a left side gives."""
    first, *rest = node.children or (node,)
    if node.kind == "name":
        return node.value
    letters = [one.value for one in rest if one.kind in ("index", *["name"] * (node.kind == "call"))]
    if len(letters) < len(rest) or len({*letters}) < len(letters):
        return ""
    if node.kind == "entry" and first.kind == "name":
        return first.value
    return node.value if node.kind == "call" and first.kind == "none" and node.value not in BUILT_IN else ""


def defined_in(statement: Node) -> set[str]:
    """Return the symbol that a statement gives, if it gives one."""
    return {named_by(statement.children[0])} if statement.kind == "chain" else set()
