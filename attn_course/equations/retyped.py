"""What an equation claims, whose givens must be made in another way than by the formula itself."""

from attn_course.equations.core import Equation
from attn_course.equations.errors import Malformed
from attn_course.formulas import Node
from attn_course.formulas.retyped import retyped as retyped_names


def retyped(equation: Equation) -> list[str]:
    """Return the names that a formula claims and whose givens are nothing but operators on other givens."""
    try:
        return retyped_names(equation.make, _claimed(equation.read().tree))
    except ValueError as error:
        raise Malformed(str(error)) from None


def _claimed(node: Node) -> set[str]:
    """Return the names that stand alone, or with indices only, on a side of an equality that is claimed."""
    if node.kind == "chain":
        sides = node.children[::2] if any(sign.value == "=" for sign in node.children[1::2]) else ()
        bases = [side.children[0] if side.kind == "entry" else side for side in sides]
        return {base.value for base in bases if base.kind == "name"}
    parts = {"formula": node.children, "all": node.children, "where": node.children[:1], "given": node.children[1:]}
    if node.kind == "implies":
        return _claimed(node.children[1])
    return set[str]().union(*(_claimed(part) for part in parts.get(node.kind, ())))
