r"""Sides that are the same by what everybody knows: the order of terms, transposes, the sum of equal terms, and what lse is short for.

`a b^\top = b a^\top`, `(A B^\top) V = (B A^\top)^\top V` and `\mathrm{lse}(z) + m = m + \ln \sum_j e^{z_j}` hold whatever is given, and say
nothing of the law that a registered formula states. Brackets are kept as they stand, for associativity is such a law.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas import Formula, Malformed, Node, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.judge import chains
from attn_course.formulas.relations import links
from attn_course.formulas.tree import bound_by, relations

NUMBER = ("number", "dot", "bars", "norm", "big")  # what is its own transpose
LETTER = "\N{SUPERSCRIPT ONE}"  # before the letters of sums, which are numbered


def complain_of_same(formula: Formula, registered: Formula, draw: Mapping[str, Any]) -> None:
    """Complain of an equality whose sides are the same, unless there is such a one in the registered formula."""
    for chain, left, right, as_number in _pairs(formula, draw):
        if _are_same(left, right, as_number) and not any(
            _are_same(one, other, is_number) for _, one, other, is_number in _pairs(registered, draw)
        ):
            raise Malformed("both sides are the same: it says nothing", chain.place, formula.latex)


def complain_of_arrows(formula: Formula, registered: Formula) -> None:
    r"""Complain of A \iff A, and of an arrow that solves for nothing where the registered one solves for something."""
    arrows = [node for node in formula.tree.walk() if node.value == r"\iff"]
    for arrow in arrows:
        for (one, _), (other, _) in itertools.product(*map(relations, arrow.children)):
            if _say_the_same(one, other):
                raise Malformed("both sides of the arrow say the same", arrow.place, formula.latex)
    wanted = [node for node in registered.tree.walk() if node.value == r"\iff"]
    names = {name for arrow in wanted for side in arrow.children for chain, _ in relations(side) if (name := _solved_for(chain))}
    ends = [end for arrow in arrows for side in arrow.children for chain, _ in relations(side) for end in _only_ends(chain, names)]
    for name in names - {name for name in names for end in ends if _is_alone(name, end)} if arrows else ():
        raise Malformed(f"this is weaker: the registered formula says what {name} is", arrows[0].place, formula.latex)


def has_equal_terms(chain: Node) -> bool:
    """Whether a term stands more than once in an equality, on one side or on both with another sign."""
    return any(abs(times) > 1.5 for times in _moved_left(chain).values())


def _say_the_same(one: Node, other: Node) -> bool:
    """Whether two equalities are one, but for a factor and terms that are moved across."""
    if any(len(chain.children) != 3 or chain.children[1].value != "=" for chain in (one, other)):
        return False
    first, second = ({term: times for term, times in _moved_left(chain).items() if abs(times) > 1e-12} for chain in (one, other))
    if first.keys() != second.keys():
        return False
    ratios = [first[term] / second[term] for term in first]
    return max(ratios, default=1.0) - min(ratios, default=1.0) < 1e-9


def _moved_left(chain: Node) -> dict[str, float]:
    """Return the terms of a chain with those of its last side moved to the first."""
    return _terms(replace(chain, kind="sum", children=(chain.children[0], Node("neg", chain.children[-1:]))), True)


def _solved_for(chain: Node) -> str:
    """Return the name that an equality or a bound says outright; "" if it does not."""
    left, right = chain.children[0], chain.children[-1]
    return left.value if left.kind == "name" and not _has(right, left.value) and right.kind not in ("name", "number") else ""


def _only_ends(chain: Node, names: Set[str]) -> Iterator[Node]:
    """Yield the sides in which a name stands that does not stand in the others."""
    for end in chain.children[::2]:
        if any(_has(end, name) and sum(_has(other, name) for other in chain.children[::2]) == 1 for name in names):
            yield end


def _is_alone(name: str, end: Node) -> bool:
    """Whether no other symbol stands in a side, or in the one of its terms or factors in which that name stands."""
    mine = [child for child in end.children if _has(child, name)] if end.kind in ("sum", "product", "over", "dot") else [end]
    symbols = {one.value for part in mine for one in part.walk() if one.kind in ("name", "index")}
    return symbols == {name}


def _has(node: Node, name: str) -> bool:
    return any(one.kind == "name" and one.value == name for one in node.walk())


def _pairs(formula: Formula, draw: Mapping[str, Any]) -> Iterator[tuple[Node, Node, Node, bool]]:
    """Yield the equalities of a formula with their sides, and whether these are numbers."""
    evaluation = Evaluation(formula, draw)
    with np.errstate(all="ignore"):
        judged = [(chain, *link) for claim in formula.claims for here, chain in chains(evaluation, claim) for link in links(here, chain)]
    for chain, relation, (one, value), (other, _) in judged:
        if relation.value == "=" and value is not None:
            yield chain, one, other, value.form == "scalar" and not value.lists


def _are_same(one: Node, other: Node, is_number: bool) -> bool:
    left, right = _terms(one, is_number), _terms(other, is_number)
    return all(abs(left[term] - right[term]) < 1e-12 for term in {*left, *right})


def _terms(side: Node, is_number: bool) -> defaultdict[str, float]:
    """Return the terms of a side and how often each stands there; of a number and its transpose the one that comes first is taken."""
    found = defaultdict[str, float](float)
    for times, term in _added(side):
        written = [write(_numbered(one)) for one in (_plain(term), _plain(_turned(term)))[: 1 + is_number]]
        found[min(written)] += times
    return found


def _added(node: Node, times: float = 1.0) -> Iterator[tuple[float, Node]]:
    """Yield the terms of a sum with the numbers before them."""
    if node.kind == "sum":
        for child in node.children:
            yield from _added(child, times)
    elif node.kind == "neg":
        yield from _added(node.children[0], -times)
    elif node.kind == "transpose" and node.children[0].kind in ("sum", "neg"):
        yield from ((much, _turned(term)) for much, term in _added(node.children[0], times))
    elif node.kind == "product" and (first := _as_number(node.children[0])) is not None:
        rest = node.children[1:]
        yield from _added(rest[0] if len(rest) == 1 else replace(node, children=rest), times * first)
    else:
        number = _as_number(node)
        yield (times, node) if number is None else (times * number, Node("number", (), "1"))


def _as_number(node: Node) -> float | None:
    if node.kind == "number":
        return float(node.value)
    if node.kind == "over" and all(child.kind == "number" for child in node.children):
        above, below = (float(child.value) for child in node.children)
        return above / below if below else None
    return None


def _turned(node: Node) -> Node:
    """Return the transpose of a node."""
    match node.kind:
        case "transpose":
            return node.children[0]
        case "product":
            return replace(node, children=tuple(map(_turned, node.children[::-1])))
        case "sum" | "neg":
            return replace(node, children=tuple(map(_turned, node.children)))
        case _ if node.kind in NUMBER:
            return node
    return Node("transpose", (node,))


def _plain(node: Node) -> Node:
    """Return a node with transposes at names only, equal terms added up, and lse written out."""
    if node.kind == "transpose" and node.children[0].kind in ("product", "sum", "neg", "transpose"):
        return _plain(_turned(node.children[0]))
    node = replace(node, children=tuple(map(_plain, node.children)))
    if node.kind == "call" and node.value == "lse" and node.children[0].kind == "none" and node.children[1].kind == "name":
        letter = Node("index", (), LETTER)
        power = Node("power", (Node("constant", (), "e"), Node("entry", (node.children[1], letter))))
        return Node("call", (Node("none"), Node("big", (Node("domain", (letter,)), power), r"\sum")), r"\ln")
    if node.kind == "dot":
        return replace(node, children=tuple(sorted(node.children, key=write)))
    if node.kind == "domain" and [item.kind for item in node.children] == ["range"]:
        return replace(node, children=(node.children[0].children[0],))
    if node.kind in ("sum", "neg"):
        found: dict[str, tuple[float, Node]] = {}
        for times, term in _added(node):
            key = write(_numbered(term))
            found[key] = (found.get(key, (0.0, term))[0] + times, term)
        left = [(key, times, term) for key, (times, term) in sorted(found.items()) if abs(times) > 1e-12]
        if not left:
            return Node("number", (), "0")
        if len(left) == 1 and left[0][1] == 1:
            return left[0][2]
        return Node("sum", tuple(Node("product", (Node("number", (), f"{times:.12g}"), term)) for _, times, term in left))
    return node


def _numbered(node: Node, count: int = 0) -> Node:
    """Return a node with the letters that it binds named by number."""
    names = {letter: f"{LETTER}{count + place}" for place, letter in enumerate(sorted(bound_by(node)))}
    if names:
        node = node.map(lambda one: replace(one, value=names.get(one.value, one.value)) if one.kind == "index" else one)
    return replace(node, children=tuple(_numbered(child, count + len(names)) for child in node.children))
