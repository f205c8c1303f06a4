r"""What follows from a registered formula and says less: of a sum of its entries only, of one of them, or under a premise more.

A formula claims so many numbers at once, one for each value of its free letters and each entry of its sides. Another wording claims at
least as many, be it in several clauses, or it has summed them up: `\sum_i a_i = \sum_i b_i` for `a_i = b_i`. A premise that the
registered formula does without is needless, or it leaves cases out.
"""

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.equations.saying import SPACE, disturbed, fallen
from attn_course.formulas import Formula, FormulaError, Judged, Malformed, Node, judge_draws, sides, values_of, write
from attn_course.formulas.errors import Place
from attn_course.formulas.givens import Given, aliases, as_given
from attn_course.formulas.tree import relations

PREMISES = ("given", "implies")
STRICT = ("<", ">")
WHOLE, TINY = (1.0, -1.0, 2.0, 3.0), 1e-12  # numbers at which something may be 0
ALIKE = 1e-9  # by so much of their size two numbers may differ that count as one
SLACK = 1e-7  # by so much of their size two bounds of one thing may differ
LESS = {r"\le": (r"\min", r"\max"), r"\ge": (r"\max", r"\min")}  # what says less, to the left and to the right of a bound
STEPS, WAVES = ("floor", "ceil", "iverson", "bars"), (r"\cos", r"\sin", r"\arg\max", r"\arg\min")  # they take a value repeatedly
FEWER = "says it entry by entry, and here it is said of fewer numbers"
ENTRIES = ("entry", "call", "big")  # where a letter tells which
LESS |= {"<": LESS[r"\le"], ">": LESS[r"\ge"]}


def complain_of_weaker(
    formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]], vanishing: Set[str] = frozenset()
) -> None:
    """Complain of a formula with fewer cases than the registered one, or with a premise that it does without.

    `vanishing`: the names of what may be 0.
    """
    limited = [node for node in registered.tree.walk() if node.kind in PREMISES]
    _complain_of_premises(formula, registered, limited, draws)
    if not any(_bounded_extremes(registered)):
        for side in _bounded_extremes(formula):
            which = "least" if side.value == r"\min" else "largest"
            raise _weaker(f"says it of each, and here it is said of the {which} only", side, formula)
    coarse = {side.value or side.kind for side in _coarse(registered)}
    coarse |= {side.kind for chain, _ in relations(registered.tree) for side in chain.children[::2] if side.kind == "iverson"}  # 0 or 1
    for side in _coarse(formula):
        if (side.value or side.kind) not in coarse:
            raise _weaker("says it of both sides, and here it is said of something that other numbers have too", side, formula)
    ends = {side for chain, _ in relations(registered.tree) for side in chain.children[::2]}
    for side in (side for chain, _ in relations(formula.tree) for side in chain.children[::2]):
        if side.kind == "power" and side.children[0].kind != "norm" and side.children[0] in ends and side.children[1].value in ("2", "4"):
            raise _weaker("says it itself, and here it is said of its square", side, formula)
    (unequal, claimed), (known_unequal, known_claimed) = map(_outright, (formula, registered))
    if unequal > known_unequal and claimed < known_claimed:
        raise _weaker(r"says more than \ne", formula.tree, formula)
    _complain_of_digits(formula, registered)
    _complain_of_derivatives(formula, registered)
    _complain_of_letters(formula, registered)
    _complain_of_other_bounds(formula, registered, draws)
    complain_of_larger(formula, registered, draws)
    _complain_of_zeros(formula, registered, draws, vanishing)
    if limited:
        _complain_of_cases(formula, registered, draws, any(node.value == r"\iff" for node in limited))
        return
    wanted, found = _entries(registered, draws[-1]), _entries(formula, draws[-1])
    if any(node.kind == "big" and node.value in (r"\max", r"\min") for node in formula.tree.walk()):
        wanted = {place: count for place, count in wanted.items() if place.startswith("=")}  # a bound of the largest is one of each
    pairs = zip(sorted(wanted.values()), sorted(found.values()), strict=False) if len(wanted) == len(found) else ()
    if sum(found.values()) < max(wanted.values(), default=0) or any(some > own for some, own in pairs):
        raise _weaker(FEWER, formula.tree, formula)


def _outright(formula: Formula) -> tuple[int, int]:
    r"""Count the signs \ne, and the others, that are claimed without an arrow."""
    chains = [chain for claim in formula.claims if claim.kind != "implies" for chain, _ in relations(claim)]
    unequal = [sign.value == r"\ne" for chain in chains for sign in chain.children[1::2]]
    return sum(unequal), len(unequal) - sum(unequal)


def _complain_of_cases(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]], both_ways: bool) -> None:
    """Complain of a form with a premise whose relations run over less, or count in fewer cases.

    For A \\iff B stands not A \\iff not B, which counts in others: there `both_ways` are open.
    """
    (axes, shares), (own_axes, own_shares) = (_cases(one, draws) for one in (registered, formula))
    fewer = max(own_axes, default=0) < max(axes, default=0)
    if len(axes) == len(own_axes):
        fewer = fewer or any(some > own for some, own in zip(axes, own_axes, strict=True))
        fewer = fewer or (not both_ways and any(some > own + TINY for some, own in zip(shares, own_shares, strict=True)))
    if fewer:
        raise _weaker(FEWER, formula.tree, formula)


def _cases(formula: Formula, draws: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[float]]:
    """Return for each relation, in ascending order, over how many axes it runs, and in which share of all cases it counts."""
    axes, shares = dict[Place, int](), dict[Place, list[float]]()
    for one in (one for draw in draws for one in sides(formula, draw)):
        axes[one.place] = max(axes.get(one.place, 0), sum(length > 1 for length in one.fulfilled.shape))
        shares.setdefault(one.place, []).append(float(one.counts.mean()))
    return sorted(axes.values()), sorted(float(np.mean(some)) for some in shares.values())


def _complain_of_digits(formula: Formula, registered: Formula) -> None:
    r"""Complain of a number behind \approx with fewer digits than the registered one that it could be."""
    wanted = {*_printed(registered)}
    for node in _printed(formula):
        half, digits = 0.5 * 10.0 ** -_digits(node), _digits(node)
        near = [one for one in wanted if abs(float(one.value) - float(node.value)) <= half and _digits(one) > digits]
        if near and node not in wanted:
            raise _weaker(f"says {near[0].value}, and here stand fewer digits", node, formula)


def _complain_of_derivatives(formula: Formula, registered: Formula) -> None:
    """Complain of two derivatives that are equal, where the registered formula says what one of them is."""
    if not any(_two_derivatives(chain) for chain, _ in relations(registered.tree)):
        for chain, _ in relations(formula.tree):
            if _two_derivatives(chain):
                raise _weaker("says what the derivative is, and here stand two derivatives", chain, formula)


def _complain_of_letters(formula: Formula, registered: Formula) -> None:
    """Complain of an index that stands only where it does not reach all values, such as 2 t, where the registered one has none such."""
    known = {_coarsely(letter, node) for node in registered.tree.walk() if _is_coarse(node) for letter in node.letters()}
    found = [*_coarse_letters(formula)]
    for letter, place in found if len(found) > len([*_coarse_letters(registered)]) else ():
        if _coarsely(letter, place) not in known:
            raise _weaker(f"says it of every index, and here {letter} stands in {write(place)} only", place, formula)


def _coarse_letters(formula: Formula) -> Iterator[tuple[str, Node]]:
    """Yield the free letters that stand in multiples, steps or powers only, each with the first of these."""
    for claim in formula.claims:
        nodes, free = [*claim.walk()], claim.letters()
        for letter in sorted(free):
            coarse = [node for node in nodes if _is_coarse(node) and _count(node, letter, ENTRIES)]
            inside = sum(_count(node, letter, ENTRIES) for node in coarse if not any(node in other.children for other in coarse))
            if coarse and inside == _count(claim, letter):
                yield letter, coarse[0]


def _is_coarse(node: Node) -> bool:
    """Whether an expression of letters does not reach all numbers that its letters reach."""
    if node.kind == "product":
        return any(child.kind == "number" and child.value != "1" for child in node.children) and len(node.children) == 2
    return node.kind in STEPS or node.kind == "power"


def _count(node: Node, letter: str, but: Sequence[str] = ()) -> int:
    """Count how often a letter stands in a node, but for what is beneath nodes of some kinds."""
    if node.kind in but:
        return 0
    return int((node.kind, node.value) == ("index", letter)) + sum(_count(child, letter, but) for child in node.children)


def _coarsely(letter: str, place: Node) -> Node:
    return place.map(lambda node: replace(node, value="") if (node.kind, node.value) == ("index", letter) else node)


def _complain_of_other_bounds(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]]) -> None:
    """Complain of a bound that is attained where the registered one is not, with other numbers given, or the other way round."""
    if {node.value for node in registered.tree.walk() if node.kind == "relation"} & {r"\le", r"\ge"}:
        for draw, name in itertools.product(draws[:3], sorted(draws[0])):
            other = {**draw, **dict.fromkeys({name} | aliases(name, draw), disturbed(draw[name], np.random.default_rng(5)))}
            known, found = (_attained(one, other) for one in (registered, formula))
            if known is not None and found is not None and known != found:
                raise _weaker(f"is attained for other {name}, and this is not so, or the other way round", formula.tree, formula)


def _attained(formula: Formula, draw: Mapping[str, Any]) -> bool | None:
    """Whether a bound is attained; None if one does not hold, or says nothing."""
    try:
        bounds = [one for one in sides(formula, draw) if one.relation in (r"\le", r"\ge")]
    except FormulaError:
        return None
    return any(one.attained for one in bounds) if bounds and all(one.fulfilled.all() for one in bounds) else None


def _complain_of_zeros(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]], vanishing: Set[str]) -> None:
    """Complain of a division by what may be 0 where the registered formula has a value.

    It may if it is negative here and positive there, if the text says of it that it is 0 or more, or if it is 0 at a whole number.
    """
    known = [*_divisors(registered.tree)]
    below = [node for node in _divisors(formula.tree) if node not in known]
    if not below:
        return
    own, others = _numbers_of(formula, below, draws), _numbers_of(registered, known, draws)
    signed = any(_has_both_signs(numbers) for numbers in others.values())
    for node in below:
        same = any(_have_the_same_sizes(own[node], other) for other in others.values())
        said = any(_base(factor) in vanishing for factor in (node.children if node.kind == "product" else (node,)))
        if not same and (said or (_has_both_signs(own[node]) and not signed) or _is_zero_somewhere(node, formula, registered, draws[0])):
            raise Malformed(f"{write(node)} may be 0, and here something is divided by it", node.place, formula.latex)


def _have_the_same_sizes(some: np.ndarray, others: np.ndarray) -> bool:
    one, other = (np.unique(np.round(np.abs(numbers), 9)) for numbers in (some, others))
    return one.shape == other.shape and np.allclose(one, other)


def _base(node: Node) -> str:
    """Return the name of what an entry, a value or a power is one of."""
    return _base(node.children[0]) if node.kind in ("entry", "power") else node.value if node.kind in ("name", "call") else ""


def _is_zero_somewhere(node: Node, formula: Formula, registered: Formula, draw: Mapping[str, Any]) -> bool:
    """Whether it is 0 with a whole number, not 0, in the place of a given, for which the sides of the registered formula are finite.

    A registered bound must hold there too: p <= 1 / 2 says that 1 - p is not 0.
    """
    bounds = any(one.value in LESS for one in registered.tree.walk() if one.kind == "relation")
    for name in {one.value for one in node.walk() if one.kind == "name" and one.value in draw}:
        given = as_given(draw[name])
        if isinstance(given, Given) and np.asarray(given.raw).dtype.kind == "f":
            for number in WHOLE:
                givens = {**draw, name: replace(given, raw=np.full(np.shape(given.raw), number)[()])}
                with contextlib.suppress(FormulaError, ValueError), np.errstate(all="ignore"):
                    values = values_of(formula, givens, [node])[node]
                    if values.size and np.all(np.abs(values) < TINY):
                        judged = sides(registered, givens)
                        ends = [end for one in judged for end in (one.left, one.right) if end.dtype.kind == "f"]
                        true = not bounds or all(one.fulfilled.all() for one in judged)
                        if true and all(np.isfinite(end).all() for end in ends):
                            return True
    return False


def _numbers_of(formula: Formula, nodes: Sequence[Node], draws: Sequence[Mapping[str, Any]]) -> dict[Node, np.ndarray]:
    """Return the finite numbers that nodes are in all draws."""
    found = [values_of(formula, draw, nodes) for draw in draws] if nodes else []
    values = {node: np.concatenate([one[node] for one in found]) for node in nodes}
    return {node: numbers[np.isfinite(numbers)] for node, numbers in values.items()}


def _has_both_signs(numbers: np.ndarray) -> bool:
    return bool(numbers.size) and bool(numbers.min() < 0 < numbers.max())


def _divisors(tree: Node) -> Iterator[Node]:
    for node in tree.walk():
        if node.kind == "over":
            yield node.children[1]
        elif node.kind == "power" and node.children[1].kind == "neg":
            yield node.children[0]


def _two_derivatives(chain: Node) -> bool:
    """Whether derivatives stand on both sides of a relation, or two of them beside 0."""
    counts = [sum(1 for _ in _outer_derivatives(side)) for side in chain.children[::2]]
    zero = any(side == Node("number", (), "0") for side in chain.children[::2])
    return sum(map(bool, counts)) > 1 or (zero and max(counts) > 1)


def _outer_derivatives(node: Node) -> Iterator[Node]:
    if node.kind in ("derivative", "nabla"):
        yield node
    else:
        for child in node.children:
            yield from _outer_derivatives(child)


def complain_of_larger(formula: Formula, registered: Formula, draws: Sequence[Mapping[str, Any]]) -> None:
    """Complain of a bound of the same thing that is larger somewhere than the registered one, or smaller if it bounds from below.

    And of one of the same thing that bounds it from the other side only.
    """
    pairs = [([one for one in sides(registered, draw) if one.relation in LESS], draw) for draw in draws]
    found = [(wanted, [one for one in sides(formula, draw) if one.relation in LESS]) for wanted, draw in pairs if wanted]
    whole = {*formula.tree.walk()} - {end for one in itertools.chain(*(some for _, some in found)) for end in _broken(one)}
    names = _named_as_known(found)
    arrows = any(node.kind == "implies" for one in (formula, registered) for node in one.tree.walk())
    for wanted, some in [] if arrows else found[:1]:
        known_lows, known_highs = map(set, zip(*(_upwards(one, whole)[1] for one in wanted), strict=True))
        lows, highs = ({names.get(ends[place], ends[place]) for ends in (_upwards(one, whole)[1] for one in some)} for place in (0, 1))
        if turned := [*(known_lows - known_highs) & (highs - lows), *(known_highs - known_lows) & (lows - highs)]:
            raise _weaker(f"bounds {write(turned[0])} from the other side", formula.tree, formula)
    for wanted, some in found:
        for one, known in itertools.product(some, wanted):
            (low, high), own_ends = _upwards(one, whole)
            (least, most), known_ends = _upwards(known, whole)
            ends = [names.get(end, end) for end in own_ends]
            both = [other.ends[1] for other in some if _are_opposite(one.right, other.left) and other.ends[1] == one.ends[0]]
            both += [other.ends[0] for other in some if _are_opposite(one.left, other.right) and other.ends[0] == one.ends[1]]
            if (both and both[0] not in known.ends) or len({low.shape, high.shape, least.shape, most.shape}) > 1:
                continue  # -b \le a \le b says |a| \le b
            counts = np.broadcast_to(one.counts & known.counts, low.shape)
            for also in some:  # a \le b, a \le c say together a \le \min(b, c)
                (also_low, also_high), also_ends = _upwards(also, whole)
                if also.fulfilled.shape == one.fulfilled.shape and np.all(also.counts | ~counts):
                    high = np.minimum(high, also_high) if also_ends[0] == own_ends[0] else high
                    low = np.maximum(low, also_low) if also_ends[1] == own_ends[1] else low
            size = np.maximum(np.abs(low), np.abs(high))
            gap = SLACK * np.where(np.isfinite(size), size, 0.0)
            larger = ends[0] == known_ends[0] and np.any(counts & (high > most + gap))
            if larger or (ends[1] == known_ends[1] and np.any(counts & (low < least - gap))):
                said = "the registered formula has a closer bound in a draw of ours"
                raise Malformed(said, one.ends[0].place, formula.latex)


def _named_as_known(found: Iterable[tuple[Sequence[Judged], Sequence[Judged]]]) -> dict[Node, Node]:
    """Return which sides of the bounds of a form have the numbers of a side of the registered bounds in all draws."""
    alike: dict[tuple[Node, Node], bool] = {}
    for wanted, some in found:
        known, own = ([pair for one in bounds for pair in zip(one.ends, (one.left, one.right), strict=True)] for bounds in (wanted, some))
        stands = {end for end, _ in known}
        for (end, side), (other, values) in itertools.product(own, known):
            if end not in stands and "number" not in (end.kind, other.kind):
                same = side.size == values.size and np.allclose(side.ravel(), values.ravel(), rtol=ALIKE, atol=0)
                alike[end, other] = alike.get((end, other), True) and same
    return dict(pair for pair, same in alike.items() if same)


def _broken(one: Judged) -> Iterator[Node]:
    """Yield the sides of a bound that are no whole numbers."""
    yield from (end for end, side in zip(one.ends, (one.left, one.right), strict=True) if np.any(side != np.rint(side)))


def _are_opposite(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.allclose(one, -other)


def _upwards(one: Judged, whole: Set[Node]) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Node, Node]]:
    r"""Return the sides of a bound, the smaller one first: their numbers, and their nodes; of whole numbers n < b says n \le b - 1."""
    up = one.relation in ("<", r"\le")
    low, high = (one.left, one.right) if up else (one.right, one.left)
    ends = one.ends if up else one.ends[::-1]
    if one.relation in STRICT:
        nearer = np.floor(low) + 1, np.ceil(high) - 1
        low, high = nearer[0] if ends[1] in whole else low, nearer[1] if ends[0] in whole else high
    return (low, high), ends


def _printed(formula: Formula) -> Iterator[Node]:
    r"""Yield the numbers behind \approx, without their signs."""
    for chain, _ in relations(formula.tree):
        for sign, side in zip(chain.children[1::2], chain.children[2::2], strict=True):
            if sign.value == r"\approx":
                yield from (node for node in side.walk() if node.kind == "number")


def _digits(number: Node) -> int:
    return len(number.value.partition(".")[2])


def _complain_of_premises(formula: Formula, registered: Formula, limited: list[Node], draws: Sequence[Mapping[str, Any]]) -> None:
    """Complain of a premise without which a formula holds as well, and of the only one where the registered formula has none.

    Where it has some, they may be worded otherwise: only a relation that stands in none of them is another premise.
    """
    known = {*registered.tree.walk()}
    signs = {sign for node in limited for sign in _signs(node.children[0])}
    premises = [node for node in formula.tree.walk() if node.kind in PREMISES]
    for node, own in itertools.product(premises, limited):
        if node.value != r"\iff" and node.children[0] == own.children[0] and _does_without(node, formula, own, registered, draws[0]):
            raise _weaker("needs its premise, and this holds without it", node.children[0], formula)
    for node in premises:
        first = node.children[0]
        for again in {*node.children[1:]} & {first, *first.children} if node.value != r"\iff" else ():
            raise Malformed("this is the premise again: it says nothing", again.place, formula.latex)
        for clause in first.children if first.kind == "all" else (first,):
            if clause in known or _signs(clause) & signs:
                continue
            alone = len(premises) == 1 and not limited and not clause.letters()
            if alone or _holds(formula.tree.map(functools.partial(_without, governing=node, clause=clause)), formula, draws):
                raise _weaker("holds without this premise", clause, formula)


def _does_without(node: Node, formula: Formula, own: Node, registered: Formula, draw: Mapping[str, Any]) -> bool:
    """Whether a formula holds without its premise for other numbers, and the registered one does not."""
    names = {one.value for one in own.children[0].walk() if one.kind == "name"} & draw.keys()
    other = {**draw, **{name: disturbed(draw[name], np.random.default_rng(3)) for name in names}}
    found = list[frozenset[Place] | None]()
    for one, premise in ((formula, node), (registered, own)):
        bare = one.with_tree(one.tree.map(functools.partial(_without, governing=premise, clause=premise.children[0])))
        bare.spare = frozenset(draw)
        found.append(fallen(bare, other))
    return found[0] == frozenset() and bool(found[1])


def _signs(node: Node) -> set[str]:
    return {one.value for one in node.walk() if one.kind == "relation"}


def _without(node: Node, governing: Node, clause: Node) -> Node:
    """Return a node without one clause of the premise of another, or without that premise."""
    if governing not in node.children or node.kind not in ("formula", *PREMISES):
        return node
    first, *rest = governing.children
    left = [one for one in first.children if one != clause] if first.kind == "all" else []
    if left:
        rest = [replace(governing, children=(left[0] if len(left) == 1 else replace(first, children=tuple(left)), *rest))]
    elif governing.value == r"\iff":
        return node
    children = [other for child in node.children for other in (rest if child == governing else [child])]
    return replace(node, children=tuple(children))


def _holds(tree: Node, formula: Formula, draws: Sequence[Mapping[str, Any]]) -> bool:
    if tree == formula.tree:
        return False
    other = formula.with_tree(tree)
    other.spare = formula.spare - formula.named | {*draws[0]}
    try:
        judge_draws(other, draws)
    except FormulaError:
        return False
    return True


def _bounded_extremes(formula: Formula) -> Iterator[Node]:
    """Yield the minima and maxima that are bounded on the side on which that says little."""
    for chain, _ in relations(formula.tree):
        for place, sign in enumerate(chain.children[1::2]):
            ends = chain.children[2 * place], chain.children[2 * place + 2]
            for side, operator in zip(ends, LESS.get(sign.value, ("", "")), strict=True):
                if side.kind == "big" and side.value == operator:
                    yield side


def _coarse(formula: Formula) -> Iterator[Node]:
    """Yield the sides of equalities that are the same function of something as the side before, and one that takes a value repeatedly."""
    for chain, _ in relations(formula.tree):
        ends = [*map(_with_term_moved, zip(chain.children[::2], chain.children[2::2], strict=False))]
        for (one, other), sign in zip(ends, chain.children[1::2], strict=True):
            if sign.value == "=" and (one.kind, one.value) == (other.kind, other.value) and _takes_repeatedly(one, other):
                yield other


def _with_term_moved(ends: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the sides of an equality, those of a - b = 0 as a and b, without a number that they are multiplied by."""
    one, other = sorted(ends, key=lambda end: end.kind == "number")
    if other.value == "0" and one.kind == "sum" and len(one.children) == 2 and one.children[1].kind == "neg":
        return _with_term_moved((one.children[0], one.children[1].children[0]))
    return _without_factor(ends[0]), _without_factor(ends[1])


def _without_factor(end: Node) -> Node:
    found = [child for child in end.children if child.kind != "number"]
    return found[0] if end.kind in ("product", "over") and len(found) == 1 else end


def _takes_repeatedly(one: Node, other: Node) -> bool:
    """Whether two sides are one function of something that has the same value for several numbers: an even power or a part of it too."""
    if one.kind == "power":
        return one.children[1] == other.children[1] == Node("number", (), "2") and {one.children[0].kind, other.children[0].kind} != {
            "norm"
        }
    if one.kind == "call" and one.value in (r"\max", r"\min"):
        return bool({*one.children[1:]} & {*other.children[1:]})
    return one.kind in STEPS or one.value in WAVES or all(map(_is_with_its_size, (one, other)))


def _is_with_its_size(side: Node) -> bool:
    """Whether it is x + |x|, twice the positive part of x."""
    *rest, last = side.children if side.kind == "sum" else [side]
    return last.kind == "bars" and last.children[0] in (*rest, replace(side, children=tuple(rest)))


def _weaker(said: str, node: Node, formula: Formula) -> Malformed:
    return Malformed(f"this is weaker: the registered formula {said}", node.place, formula.latex)


def _entries(formula: Formula, draw: Mapping[str, Any]) -> dict[str, int]:
    """Count the numbers that each relation of a formula compares, where it counts."""
    found = dict[str, int]()
    for one in sides(formula, draw):
        if one.ends[1].children[:1] == (SPACE,):
            continue  # a shape says nothing of the numbers
        key = f"{one.relation} {one.place}"
        found[key] = found.get(key, 0) + int(np.broadcast_to(one.counts, one.fulfilled.shape).sum())
    return found
