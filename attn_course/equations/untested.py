"""What no draw tests: a number, a bracket, a condition or an argument without which a formula holds as well, at all sizes tried.

A cut-off such as [n < 100] holds at every size that is drawn, and nobody knows what becomes of it beyond. So what decides something must
decide both ways in some draw. A number that is not idle must matter: the formula must fall with one near it in its place. And what is made
of sizes alone must change with them: (n - 3) (n - 5) (n - 7) is 0 wherever it is tried. An absolute value must be that of a negative number
once, if other signs of what was drawn make it one.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from attn_course.formulas import Formula, FormulaError, Malformed, Node, judge_draws, values_of, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, aliases, as_given
from attn_course.formulas.tree import bound_in, is_between, relations

EXACT = 6  # digits of a number with a point: more have been rounded, and no draw can tell
ZERO = Node("number", (), "0")
NUMBERS = [Node("number", (), "0"), Node("number", (), "1")]
NO_NUMBER = Node("over", (NUMBERS[0], NUMBERS[0]), "/")  # falls wherever it counts


class Part(NamedTuple):
    """A part of a formula, what is said of it, and what is tried in its place; `far` from it the formula falls, unless it is idle."""

    node: Node
    said: str
    near: Sequence[Node]
    far: Sequence[Node] = ()


def complain_of_untested(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]], come: Set[str] = frozenset()) -> None:
    """Complain of a part of a formula that makes no difference in any draw, unless the registered formula has it too.

    `come`: the names of what comes from other givens, and so has the sign that it has.
    """
    known = {*registered.tree.walk()}
    for node in formula.tree.walk():
        if node.kind == "number" and node not in known and len(node.value.replace(".", "").strip("0")) > EXACT and "." in node.value:
            raise Malformed(f"{node.value} has more than {EXACT} digits, so it is rounded: write what it is", node.place, formula.latex)
    for part in _parts(formula.tree):
        if part.node in known or not all(_holds(other, formula, draws) for other in part.near):
            continue
        if part.node.kind == "where" and all(_is_whole(one, part.node, formula, draws) for one in part.node.children[1:]):
            continue
        if not part.far or not all(_holds(other, formula, draws) for other in part.far):
            raise Malformed(f"{part.said} it holds in every draw too: nothing tests this", part.node.place, formula.latex)
    _complain_of_signs(formula, registered, draws, come)
    registered_sides = {side for chain, _ in relations(registered.tree) for side in chain.children[::2]}
    moved = {
        side
        for chain, _ in relations(formula.tree)
        if ZERO in chain.children
        for side in chain.children
        if {*side.children} & registered_sides
    }
    same = next((part for part in _constants(formula, draws) if part not in moved), None)
    if same and not any(_constants(registered, draws)):
        raise Malformed(f"{write(same)} is the same at all sizes that are drawn: nothing tests it", same.place, formula.latex)


def _is_whole(condition: Node, scope: Node, formula: Formula, draws: Sequence[Mapping[str, Any]]) -> bool:
    r"""Whether a condition such as 1 \le i \le n says of a letter in all draws from where to where it runs anyway."""
    if not is_between(condition) or len(condition.letters()) > 1:
        return False
    low, _, letter, _, high = condition.children
    for draw in draws:
        here = Evaluation(formula, draw)
        here.enter(letter.value, scope)
        runs = here.letters[letter.value].data
        if (here.value(low).data.item(), here.value(high).data.item()) != (runs.min(), runs.max()):
            return False
    return True


def _complain_of_signs(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]], come: Set[str]) -> None:
    """Complain of the absolute value of what is never negative, and would be with the other sign of a given."""
    own, known = ({node: inner for node in _nodes(one) if (inner := _of_which_a_size(node))} for one in (formula, registered))
    for node, inner in own.items():
        if node in known or _is_negative(inner, formula, draws):
            continue
        for name in sorted((formula.names_beneath(inner) & draws[0].keys()) - come):
            given = as_given(draws[0][name])
            if isinstance(given, Given) and given.form not in ("opaque", "set") and np.asarray(given.raw).dtype.kind == "f":
                other = {**draws[0], **dict.fromkeys(aliases(name, draws[0]), replace(given, raw=-np.asarray(given.raw)))}
                if _is_negative(inner, formula, [other]):
                    inside, whole = (formula.latex[slice(*one.place)].strip() for one in (inner, node))
                    raise Malformed(f"{inside} is negative in no draw: nothing tests {whole}", node.place, formula.latex)


def _nodes(formula: Formula) -> Iterator[Node]:
    """Yield what a formula is made of, with the letters that definitions have as their own."""
    for tree in (*formula.claims, *(definition.body for definition in formula.definitions.values())):
        yield from tree.walk()


def _of_which_a_size(node: Node) -> Node | None:
    r"""Return x of |x|, \sqrt{x^2} and \max(x, -x)."""
    if node.kind == "bars":
        return node.children[0]
    if node.kind == "call" and node.value == r"\sqrt" and node.children[1].kind == "power":
        base, exponent = node.children[1].children
        return base if exponent == Node("number", (), "2") else None
    return node.children[1] if node.kind == "call" and node.value == r"\max" and _is_size(node.children[1:]) else None


def _is_negative(node: Node, formula: Formula, draws: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a number is negative in some draw."""
    return any(bool(np.any(values_of(formula, draw, [node])[node] < 0)) for draw in draws)


def _constants(formula: Formula, draws: Sequence[Mapping[str, Any]]) -> Iterator[Node]:
    """Yield what is made of sizes alone and does not change with them."""
    whole = {name: given for name, given in draws[0].items() if isinstance(given, int | np.integer)}
    varies = {name for name, given in whole.items() if any(draw[name] != given for draw in draws)}
    evaluations = [Evaluation(formula, draw) for draw in draws]
    for part in filter(None, (_made_of(node, varies) for node in formula.tree.walk())):
        if len({round(float(one.value(part).data.item()), 9) for one in evaluations}) == 1:
            yield part


def _made_of(node: Node, sizes: set[str]) -> Node | None:
    """Return what is made of sizes and numbers alone: an expression, or some terms of a sum, or factors of a product."""
    if node.kind not in ("sum", "product", "power", "over", "dot", "times", "neg", "factorial", "call"):
        return None
    alone = [child for child in node.children if _is_made_of(child, sizes)]
    if node.kind not in ("sum", "product") and len(alone) < len(node.children):
        return None
    part = replace(node, children=tuple(alone))
    return part if len(alone) > 1 and any(one.kind == "name" for one in part.walk()) else None


def _is_made_of(node: Node, sizes: set[str]) -> bool:
    leaves = [one for one in node.walk() if not one.children]
    return all(leaf.kind in ("number", "none") or (leaf.kind == "name" and leaf.value in sizes) for leaf in leaves)


def _holds(tree: Node, formula: Formula, draws: Sequence[Mapping[str, Any]]) -> bool:
    try:
        other = formula.with_tree(tree)
        other.spare = formula.spare - formula.named  # what stood in it must stand in it
        judge_draws(other, draws)
    except FormulaError:
        return False
    return True


def _parts(node: Node) -> Iterator[Part]:
    """Yield the parts of a tree that decide something, each with the trees that have something else in its place."""
    yield from _own(node)
    for place, child in enumerate(node.children):
        for part in _parts(child):
            here, far = part.node, part.far
            if here is child and child.kind == "number":  # a number is told by what it stands in; as factor or exponent it must matter
                here, far = node, [] if node.kind in ("power", "product") else far
            yield Part(here, part.said, *([_with(node, place, other) for other in others] for others in (part.near, far)))


def _with(node: Node, place: int, *new: Node) -> Node:
    """Return a node with others, or none, in the place of one child."""
    return replace(node, children=(*node.children[:place], *new, *node.children[place + 1 :]))


def _own(node: Node) -> Iterator[Part]:
    children = node.children
    match node.kind:
        case "number" if node not in NUMBERS:
            value = float(node.value)
            near = (value - 1, value + 1) if value.is_integer() else (value / 2, value * 2)
            low, high = (Node("number", (), f"{other:g}") for other in near)
            yield Part(node, f"with {write(low)} or {write(high)} in the place of {node.value}", [low, high], NUMBERS)
        case "iverson" | "floor" | "ceil":
            yield from (Part(node, f"with {write(one)} in the place of {write(node)}", [one]) for one in NUMBERS)
        case "bars" if _has_numbers(node):
            for one in (children[0], Node("neg", children)):
                yield Part(node, f"with {write(one)} in the place of {write(node)}", [one])
        case "call" if node.value in (r"\max", r"\min") and len(children) > 2 and not _is_size(children[1:]):
            for place in range(1, len(children)):
                yield Part(node, f"without {write(children[place])} beneath {node.value}", [_with(node, place)])
        case "cases":
            for place in range(0, len(children), 2):
                yield Part(node, f"without the case {write(children[place + 1])}", [_with(node, place, NO_NUMBER)])
        case "where":
            yield Part(node, f"without the condition ({', '.join(map(write, children[1:]))})", [children[0]])
        case "domain":
            for place, item in enumerate(children):
                if item.kind == "chain" and _has_numbers(item) and (letter := bound_in(item)):
                    yield Part(node, f"without the condition {write(item)}", [_with(node, place, Node("index", (), letter))])


def _is_size(arguments: Sequence[Node]) -> bool:
    """Whether they are a number and that number negated: the larger is its absolute value."""
    return len(arguments) == 2 and any(one == Node("neg", (other,)) for one, other in (arguments, arguments[::-1]))


def _has_numbers(node: Node) -> bool:
    """Whether another number than 0 and 1 stands in it."""
    return any(one.kind == "number" and one not in NUMBERS for one in node.walk())
