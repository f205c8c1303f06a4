"""What an equation claims, whose givens must be made in another way than by the formula itself."""

from attn_course.equations.core import Equation
from attn_course.equations.errors import Malformed
from attn_course.formulas import Node
from attn_course.formulas.retyped import retyped as retyped_names
from attn_course.formulas.tree import relations


def retyped(equation: Equation) -> list[str]:
    """Return the names that a formula claims and whose givens are nothing but operators on other givens."""
    try:
        return retyped_names(equation.make, _claimed(equation.read().tree))
    except ValueError as error:
        raise Malformed(str(error)) from None


def _claimed(tree: Node) -> set[str]:
    """Return the names that stand alone, or with indices only, on a side of an equality that is claimed."""
    equalities = [chain for chain, _ in relations(tree) if any(sign.value == "=" for sign in chain.children[1::2])]
    sides = [side.children[0] if side.kind == "entry" else side for chain in equalities for side in chain.children[::2]]
    return {side.value for side in sides if side.kind == "name"}
