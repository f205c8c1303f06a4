"""Tree and givens to values, by one rule for each kind of node: this file knows all rules, and no rule knows it."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from attn_course.formulas import arithmetic, calculus, calls, sums
from attn_course.formulas.scope import Scope
from attn_course.formulas.tree import Node
from attn_course.formulas.values import Value, entrywise, transposed


class Evaluation(Scope):
    """A formula with givens; `value` gives the value of any of its nodes for all values of the index letters in force."""

    rules: ClassVar[Mapping[str, Callable[[Any, Node], Value]]] = {
        "number": arithmetic.literal,
        "constant": arithmetic.constant,
        **dict.fromkeys(("name", "index"), Scope.named),
        "entry": Scope.entry,
        "sum": arithmetic.plus,
        "neg": arithmetic.neg,
        "product": arithmetic.times,
        **dict.fromkeys(("dot", "odot", "times"), arithmetic.dotted),
        "over": arithmetic.over,
        "power": arithmetic.raised,
        "transpose": lambda evaluation, node: transposed(evaluation.value(node.children[0])),
        "factorial": arithmetic.factorial,
        **dict.fromkeys(("union", "intersection"), arithmetic.sets),
        **dict.fromkeys(("bars", "norm"), arithmetic.measured),
        "floor": lambda evaluation, node: entrywise("floor", evaluation.value(node.children[0])),
        "ceil": lambda evaluation, node: entrywise("ceil", evaluation.value(node.children[0])),
        "tuple": arithmetic.tuple_of,
        "blocks": arithmetic.block_matrix,
        "cases": arithmetic.cases,
        "iverson": arithmetic.iverson,
        "set": sums.built_set,
        "big": sums.big,
        "integral": sums.integral,
        "call": calls.call,
        "operator": calls.operator,
        "derivative": calculus.partial,
        "nabla": calculus.nabla,
        "at": calculus.at,
    }
