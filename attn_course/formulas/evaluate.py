"""Tree and givens to values: the rule for each kind of node. This file knows all rules, and no rule knows it."""

from attn_course.formulas import arithmetic, calculus, calls, sums
from attn_course.formulas.evaluation import Evaluation, Rule
from attn_course.formulas.values import entrywise, transposed

RULES: dict[str, Rule] = {
    "number": arithmetic.literal,
    "constant": arithmetic.constant,
    **dict.fromkeys(("name", "index"), Evaluation.named),
    "entry": Evaluation.entry,
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


class Evaluator(Evaluation):
    """An evaluation by these rules."""

    rules = RULES
