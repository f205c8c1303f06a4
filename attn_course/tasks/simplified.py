r"""The tree of a line without what adds nothing to it: a factor 2/2, a power 1, e^0, e^{\ln x}, a zero added, an indicator said twice.

What a derivation is asked to show stays: a power of a sum, a factor taken out of a sum, a product multiplied out, a factor like e^c that
cancels, a quotient of quotients. It reads what `latex.normal` gives, and it only says which lines are alike: their values are compared
elsewhere, so that a rule may leave out a condition (|x| is x, an indicator before the whole line is 1) that equal values imply.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from attn_course.formulas.tree import Node

ONE, ZERO, E = Node("number", (), "1"), Node("number", (), "0"), Node("constant", (), "e")
OPPOSITE = {r"\notin": r"\in", r"\ne": "="}
BARE = ("name", "entry", "number")  # a factor that may be put above and below a line of fraction by hand

Factors = Mapping[Node, float]  # with their powers


def simplified(line: Node) -> Node:
    """Return the tree of a line, as `latex.normal` gives it, without what adds nothing."""
    value, above, below = _quotient(_simple(line))
    return _times(value, {one: power for one, power in above.items() if one.kind != "iverson"}, below)


def _simple(node: Node) -> Node:
    children = tuple(map(_simple, node.children))
    match node.kind:
        case "number":
            return _number(float(node.value))
        case "sum":
            return _total(children)
        case "product":
            return _times(1.0, _together(*({child: 1.0} for child in children)))
        case "over":
            return _over(*children)
        case "power":
            return _power(*children)
        case "bars":
            return children[0]
        case "transpose" if children[0].kind == "transpose":
            return children[0].children[0]
        case "call" if node.value == r"\sqrt":
            return _power(children[1], _number(0.5))
        case "call" if node.value == r"\ln" and children[1].kind == "power" and children[1].children[0] == E:
            return children[1].children[1]
        case "iverson" if len(children[0].children) == 3 and (opposite := OPPOSITE.get(children[0].children[1].value)):
            left, right = children[0].children[::2]
            chain = Node("chain", (left, Node("relation", (), opposite), right))
            return _total([ONE, Node("neg", (Node("iverson", (chain,)),))])
        case "big" if node.value == r"\sum":
            return _sum(*children)
    return Node(node.kind, children, node.value)


def _number(value: float) -> Node:
    return Node("neg", (_number(-value),)) if value < 0 else Node("number", (), f"{value:.12g}")


def _value(node: Node) -> float | None:
    """The number that a node is, if it is one."""
    if node.kind == "neg":
        inner = _value(node.children[0])
        return None if inner is None else -inner
    return float(node.value) if node.kind == "number" else None


def _quotient(node: Node) -> tuple[float, dict[Node, float], dict[Node, float]]:
    """A simple node as a number times factors over factors, each with its power."""
    if (value := _value(node)) is not None:
        return value, {}, {}
    match node.kind:
        case "neg":
            value, above, below = _quotient(node.children[0])
            return -value, above, below
        case "over":
            (value, above, over), (_, below, under) = map(_quotient, node.children)
            return (1.0, {node: 1.0}, {}) if over or under else (value, above, below)  # a quotient of quotients is one factor
        case "product":
            values, tops, bottoms = zip(*map(_quotient, node.children), strict=True)
            return math.prod(values), _together(*tops), _together(*bottoms)
        case "power" if (power := _value(node.children[1])) is not None:
            return 1.0, {node.children[0]: power}, {}
    return 1.0, {node: 1.0}, {}


def _times(value: float, factors: Factors, divisors: Factors | None = None) -> Node:
    """A number times factors over others, whatever those are made of."""
    parts = [_quotient(factor) if power == 1 else (1.0, {factor: power}, {}) for factor, power in factors.items()]
    above, below = _together(*(more for _, more, _ in parts)), _together(divisors or {}, *(less for _, _, less in parts))
    value *= math.prod(times for times, _, _ in parts)
    for one in [*above]:
        if one.kind == "iverson":
            above[one] = 1.0
        if one in below and (one.kind in BARE or above[one] > below[one]):
            common = min(above[one], below[one])
            above[one] -= common
            below[one] -= common
        if one.kind == "sum" and one.children[0].kind == "neg" and above[one] == 1:  # (b - a)(d - c) is (a - b)(c - d)
            value = -value
            above = _together(above, {_total(Node("neg", (term,)) for term in one.children): above.pop(one)})
    if value == 0:
        return ZERO
    top, bottom = ([one if power == 1 else Node("power", (one, _number(power))) for one, power in sorted(side.items(), key=repr) if power]
                   for side in (above, below))  # fmt: skip
    sized = [_number(abs(value))] * (abs(value) != 1)
    whole = _side_by_side([*sized, *top])
    if bottom:
        whole = _side_by_side([*sized, Node("over", (_side_by_side(top), _side_by_side(bottom)))])
    return Node("neg", (whole,)) if value < 0 else whole


def _together(*sides: Factors) -> dict[Node, float]:
    """Factors side by side: the powers of equal ones are added."""
    found: defaultdict[Node, float] = defaultdict(float)
    for side in sides:
        for one, power in side.items():
            found[one] += power
    return dict(found)


def _side_by_side(factors: list[Node]) -> Node:
    return Node("product", tuple(factors)) if len(factors) > 1 else factors[0] if factors else ONE


def _over(above: Node, below: Node) -> Node:
    """A quotient; one of quotients stays what it is."""
    if above.kind == "power" and above.children[0] == below and (power := _value(above.children[1])):
        return _power(below, _number(power - 1))
    if (number := _value(above)) is not None and below.kind == "over" and below.children[0] == ONE:  # over 1 over x
        return _times(number, {below.children[1]: 1.0})
    (value, factors, divisors), (by, others, over) = _quotient(above), _quotient(below)
    if by == 0:
        return Node("over", (above, below))
    for one in [*others]:
        if one in factors and (one.kind in BARE or not (len(others) > 1 or over or divisors)):
            common = min(factors[one], others[one])
            factors, others = ({**side, one: side[one] - common} for side in (factors, others))
    others = {one: power for one, power in others.items() if power}
    if not over and (not divisors or all(one.kind in BARE for one in others)):
        return _times(value / by, factors, _together(divisors, others))
    top, bottom = _times(1.0, factors, divisors), _times(1.0, others, over)
    return _number(value / by) if top == bottom else _times(value / by, {Node("over", (top, bottom)): 1.0})


def _power(base: Node, exponent: Node) -> Node:
    power, number = _value(exponent), _value(base)
    if power == 0 or number == 1:
        return ONE
    if base == E and exponent.kind == "call" and exponent.value == r"\ln":
        return exponent.children[1]
    if power is None:
        return Node("power", (base, exponent))
    if number is not None and 1e-6 < number < 1e6 and abs(power) < 10:
        return _number(number**power)
    if base.kind == "power" and (inner := _value(base.children[1])) is not None:
        return _power(base.children[0], _number(inner * power))
    if power < 0:
        return _over(ONE, _power(base, _number(-power)))
    return base if power == 1 else Node("power", (base, exponent))


def _total(terms: Iterable[Node]) -> Node:
    """A sum with equal terms counted together, and times a number so that its first term stands there once."""
    counts: defaultdict[Node, float] = defaultdict(float)
    for term in terms:
        value, above, below = _quotient(term)
        inner = next(iter(above)) if len(above) == 1 and not below else ONE
        for part in inner.children if inner.kind == "sum" and above[inner] == 1 else [_times(1.0, above, below)]:
            times, more, less = _quotient(part)
            counts[_times(1.0, more, less)] += value * times
    kept = [(term, value) for term, value in sorted(counts.items(), key=lambda count: repr(count[0])) if value]
    if len(kept) < 2:
        return _times(kept[0][1], {kept[0][0]: 1.0}) if kept else ZERO
    first = abs(kept[0][1])
    return _times(first, {Node("sum", tuple(_times(value / first, {term: 1.0}) for term, value in kept)): 1.0})


def _sum(domain: Node, body: Node) -> Node:
    r"""A sum without a condition that its domain says, and of what does not depend on its letter as a product."""
    value, above, below = _quotient(body)
    above = {one: power for one, power in above.items() if one.kind != "iverson" or one.children[0] not in domain.children}
    inner, (first, *more) = _times(1.0, above, below), domain.children
    if first.kind == "range" and not more and first.children[1] == ONE and first.children[0].value not in inner.letters():
        return _times(value, _together({first.children[2]: 1.0}, {inner: 1.0}))
    return _times(value, {Node("big", (domain, inner), r"\sum"): 1.0})
