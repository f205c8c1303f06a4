r"""What follows from a registered formula and says less: of a sum of its entries only, of one of them, or under a premise more.

A formula claims so many numbers at once, one for each value of its free letters and each entry of its sides. Another wording claims at
least as many, be it in several clauses, or it has summed them up: `\sum_i a_i = \sum_i b_i` for `a_i = b_i`.
"""

from collections.abc import Mapping
from typing import Any

from attn_course.formulas import Formula, Malformed, Node, sides
from attn_course.formulas.tree import relations

LESS = {r"\le": ((r"\min", 0), (r"\max", -1)), "<": ((r"\min", 0), (r"\max", -1))}
LESS |= dict.fromkeys((r"\ge", ">"), ((r"\max", 0), (r"\min", -1)))


def complain_of_weaker(formula: Formula, registered: Formula, draw: Mapping[str, Any]) -> None:
    """Complain of a formula with fewer cases than the registered one, or with a premise that it does without."""
    known = {*registered.tree.walk()}
    premises = [node for node in formula.tree.walk() if node.kind in ("given", "implies")]
    limited = any(node.kind in ("given", "implies", "where") for node in known)
    for node in premises if len(premises) == 1 and not limited else ():
        if not node.children[0].letters():
            raise _weaker("holds without this premise", node.children[0], formula)
    for chain, _ in relations(formula.tree):
        for sign in chain.children[1::2]:
            for operator, end in LESS.get(sign.value, ()):
                side = chain.children[end]
                if side.kind == "big" and side.value == operator and side not in known:
                    raise _weaker(
                        f"says it of each, and here it is said of the {'least' if operator == chr(92) + 'min' else 'largest'} only",
                        side,
                        formula,
                    )
    wanted, found = _entries(registered, draw), _entries(formula, draw)
    extremes = any(node.kind == "big" and node.value in (r"\max", r"\min") for node in formula.tree.walk())
    if (
        sum(found.values()) < max(wanted.values(), default=0)
        and not limited
        and not (extremes and not any(key.startswith("=") for key in wanted))
    ):
        raise _weaker("says it entry by entry, and here it is said of fewer numbers", formula.tree, formula)


def _weaker(said: str, node: Node, formula: Formula) -> Malformed:
    return Malformed(f"this is weaker: the registered formula {said}", node.place, formula.latex)


def _entries(formula: Formula, draw: Mapping[str, Any]) -> dict[str, int]:
    """Count the numbers that each relation of a formula compares."""
    found = dict[str, int]()
    for one in sides(formula, draw):
        key = f"{one.relation} {one.place}"
        found[key] = found.get(key, 0) + one.fulfilled.size
    return found
