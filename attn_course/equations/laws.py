r"""What holds whatever is given rests on laws of arithmetic; where the law of the registered formula fails, another form must fail too.

`(A B) C = A (B C)` is refuted by no numbers, and neither is `(A B) C = A B C`, which says nothing. So both are computed in worlds in which
one law does not hold: sums whose terms are cubed and of which the root is taken, printed numbers that are other numbers, products and
inverses of matrices that are bent. In each of them everything else is as it was, so that a form that still holds has been changed by
other laws only: one side of the registered formula stands on both of its sides.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from attn_course.equations.same import has_equal_terms
from attn_course.formulas import Formula, FormulaError, Judged, Malformed, Node, sides, write
from attn_course.formulas.calls import call
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.tree import relations
from attn_course.formulas.values import FORM_AXES, Value, product, scaled

Givens = Mapping[str, Any]
MINUS_ONE = Node("neg", (Node("number", (), "1"),))


def _cubed(evaluation: "World", node: Node) -> Value:
    value = evaluation.value(node)
    evaluation.touched.add("sums")
    return value.like(value.data**3)


def _root(evaluation: "World", node: Node) -> Value:
    value = evaluation.value(node)
    return value.like(np.cbrt(value.data))


def _bent_product(evaluation: "World", left: Node, right: Node) -> Value:
    first, second = evaluation.value(left), evaluation.value(right)
    found = product(first, second)
    return found if {first.form, second.form} & {"scalar", "identity"} else _bent(evaluation, found)


def _bent_value(evaluation: "World", node: Node) -> Value:
    return _bent(evaluation, evaluation.value(node))


def _fewer_quotients(evaluation: "World", above: Node, below: Node) -> Value:
    """Return what times what is divided by has another root in the place of its inverse."""
    divisor = evaluation.value(below)
    evaluation.touched.add("quotients")
    return scaled(divisor.like(np.sign(divisor.data) * np.sqrt(np.abs(divisor.data))), evaluation.value(above), np.divide)


def _bent(evaluation: "World", value: Value) -> Value:
    """Return a matrix or a vector with other entries: a multiple of it has the multiple of these, and so has its transpose."""
    own = tuple(range(-FORM_AXES[value.form], 0))
    if not own or value.form not in ("matrix", "row", "column", "vector"):
        return value
    evaluation.touched.add("matrices")
    sizes = np.abs(value.data)
    return value.like(value.data * sizes / np.maximum(sizes.max(axis=own, keepdims=True), 1e-300))


OURS: dict[str, Callable[..., Value]] = {"?cubed": _cubed, "?root": _root, "?product": _bent_product, "?bent": _bent_value}
OURS["?over"] = _fewer_quotients


class World(Evaluation):
    """An evaluation with the functions that the worlds below are made of; `touched` tells whether any was met that changes something."""

    def __init__(self, formula: Formula, givens: Givens) -> None:
        super().__init__(formula, givens)
        self.touched = set[str]()

    rules: ClassVar[Mapping[str, Callable[[Any, Node], Value]]] = {
        **Evaluation.rules,
        "call": lambda here, node: OURS[node.value](here, *node.children[1:]) if node.value in OURS else call(here, node),
    }


def _ours(name: str, *arguments: Node) -> Node:
    return Node("call", (Node("none"), *arguments), name, (arguments[0].place[0], arguments[-1].place[1]))


def _cube(node: Node) -> Node:
    if node.kind == "number":
        return Node("number", (), f"{float(node.value) ** 3:.17g}", node.place)
    return Node("neg", (_cube(node.children[0]),), "", node.place) if node.kind == "neg" else _ours("?cubed", node)


def _other_sums(node: Node) -> Node:
    return _ours("?root", replace(node, children=tuple(map(_cube, node.children)))) if node.kind == "sum" else node


def _other_numbers(node: Node) -> Node:
    if node.kind == "power":
        return replace(
            node, children=tuple(_cube(one) if one.kind == "number" and not place else one for place, one in enumerate(node.children))
        )
    if node.kind not in ("sum", "product", "over", "neg", "chain", "times", "dot"):
        return node
    return replace(node, children=tuple(_cube(child) if child.kind == "number" else child for child in node.children))


def _other_products(node: Node) -> Node:
    return functools.reduce(functools.partial(_ours, "?product"), node.children) if node.kind == "product" else node


def _other_inverses(node: Node) -> Node:
    return _ours("?bent", node) if _is_inverse(node) else node


def _other_quotients(node: Node) -> Node:
    if node.kind == "over":
        return _ours("?over", *node.children)
    return _ours("?over", Node("number", (), "1"), node.children[0]) if _is_inverse(node) else node


def _is_inverse(node: Node) -> bool:
    return node.kind == "power" and node.children[1] == MINUS_ONE


WORLDS: dict[str, Callable[[Node], Node]] = {  # those of which an equality is likelier to be the law first
    "inverses": _other_inverses,
    "numbers": _other_numbers,
    "products": _other_products,
    "sums": _other_sums,
    "quotients": _other_quotients,
}


class Seen(NamedTuple):
    """What a formula is in a world, whether that is other than it was, and whether it holds there; no relations: its sides are the same."""

    judged: Sequence[Judged]
    touched: bool

    @property
    def holds(self) -> bool:
        """Whether it holds there."""
        return not any((one.counts & ~one.fulfilled).any() for one in self.judged)


def world_without(registered: Formula, draw: Givens) -> tuple[str, Seen] | None:
    """Return the first world in which an equality falls that else holds whatever is given, and what it is there."""
    nodes = [*registered.tree.walk()]
    if {node.value for node in nodes if node.kind == "relation"} - {r"\in"} == {"="} and not any(node.kind == "implies" for node in nodes):
        for world in WORLDS:
            seen = _seen(world, registered, draw)
            if seen and not seen.holds:
                return world, seen
    return None


def complain_of_trivial(formula: Formula, registered: Formula, world: str, known: Seen, draw: Givens) -> None:
    """Complain of a form that holds in a world in which the registered formula falls, unless that world leaves it as it is.

    Where printed numbers matter and none stands here, equal terms may have been added. In a product without brackets some may be meant.
    """
    seen = _seen(world, formula, draw)
    chains = [chain for chain, _ in relations(formula.tree)]
    if seen is None or not seen.holds or not (seen.touched or (world == "numbers" and not any(map(has_equal_terms, chains)))):
        return
    (chain, _), *_ = relations(registered.tree)
    left, right = write(chain.children[0]), write(chain.children[2])
    first = known.judged[0]
    found = [turned for one in seen.judged for turned, side in enumerate((first.left, first.right)) if _are_close(one.left, side)]
    if world == "products" and seen.judged and not found and any(one.left.any() and one.right.any() for one in seen.judged):
        return
    left, right = (right, left) if found[:1] == [1] else (left, right)
    said = f"both sides are {left if found else 'the same'}, written in two ways: that {left} = {right} is not said"
    raise Malformed(said, formula.tree.place, formula.latex)


def is_multiple(formula: Formula, registered: Formula, draw: Givens) -> bool:
    """Whether the sides of a form are those of the registered formula times a factor, or with a term more, where sums are other sums."""
    known, seen = _seen("sums", registered, draw), _seen("sums", formula, draw)
    if known is None or seen is None or known.holds or len(known.judged) != 1 or len(seen.judged) != 1:
        return False
    (one,), (other,) = known.judged, seen.judged
    left, right, other_left, other_right = (side.ravel() for side in (one.left, one.right, other.left, other.right))
    if len({left.size, right.size, other_left.size, other_right.size}) > 1 or other_left.dtype.kind not in "fc":
        return False
    return _are_close(left * other_right, right * other_left) or _are_close(left - right, other_left - other_right)


def _are_close(some: np.ndarray, others: np.ndarray) -> bool:
    return some.size == others.size and np.allclose(some.ravel(), others.ravel())


def _seen(world: str, formula: Formula, draw: Givens) -> Seen | None:
    """Return what a formula is in a world; None if it has no meaning there."""
    try:
        other = Formula(formula.tree.map(WORLDS[world]), [*formula.given, *OURS], formula.ranges, " ")
        other.spare = frozenset({*draw, *OURS})
        here = World(other, draw)
        judged = sides(other, draw, here)
        return Seen(judged, bool(here.touched) or (world == "numbers" and other.tree != formula.tree))
    except Malformed as error:
        return Seen([], True) if error.problem == "both sides are the same" else None
    except (FormulaError, ValueError):
        return None
