r"""What is said of some numbers only: a given is replaced by a function of itself that does not reach them all.

`\sigma(z + e^c \mathbf{1}) = \sigma(z)` is the registered formula with e^c in the place of c: of positive shifts only. A part of
a form stands for a given if the registered formula with the value of that part in its place has the parts that the form has. Then the part
is wanted to reach all numbers: to be linear and invertible, the inverse of the given, or at least to go as far in both directions.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas import Formula, FormulaError, Malformed, Node, parts, sides, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, aliases, as_given

CLOSE = 1e-9  # in parts of the largest number
MOST = 40  # numbers of a given whose derivatives are taken
PLAIN = ("name", "entry", "transpose", "power", "neg")
ABOVE = ("formula", "all", "chain", "given", "implies", "where")
FAR = 1e3  # how far a part must go in both directions where the given goes so far
Givens = Mapping[str, Any]


def complain_of_narrowed(formula: Formula, registered: Formula, draws: Sequence[Givens], made: Set[str]) -> None:
    """Complain of the registered formula with a function of a given in its place that does not reach all that the given may be."""
    draw, known = draws[0], {*registered.tree.walk()}
    trees = [*formula.claims, *(definition.body for definition in formula.definitions.values())]
    for name in sorted(registered.named & formula.named & draw.keys() - made):
        given = as_given(draw[name])
        if not isinstance(given, Given) or given.form in ("opaque", "set") or np.asarray(given.raw).dtype.kind not in "if":
            continue
        mine = [node for node in known if node.kind not in PLAIN and _has(node, name)]
        for part in dict.fromkeys(part for tree in trees for part in _parts(tree, name)):
            if any(_stands_beside(part, tree, name, mine) for tree in trees):
                continue
            if not all(_is_instance(part, formula, registered, one, name) for one in (*draws[:3], draws[-1])):
                continue
            if all(_is_close(_value(part, formula, one, name, raw := _given(one, name).raw), raw) for one in draws[:3]):
                continue
            positive = all(np.all(np.asarray(getattr(one[name], "raw", one[name])) > 0) for one in draws)
            if not _reaches_all(part, formula, draw, name, given.raw, positive):
                said = f"this is weaker: the registered formula says it of every {name}, and here it is said of {write(part)} only"
                raise Malformed(said, part.place, formula.latex)


def _given(draw: Givens, name: str) -> Given:
    given = as_given(draw[name])
    assert isinstance(given, Given), name
    return given


def _has(node: Node, name: str) -> bool:
    return any(one.kind == "name" and one.value == name for one in node.walk())


def _stands_beside(part: Node, tree: Node, name: str, known: Sequence[Node]) -> bool:
    """Whether a name stands in a tree beside a part and not in it: alone, or in what is known."""
    if tree == part or not _has(tree, name):
        return False
    if tree.kind in ("name", "entry") or tree in known:
        return True
    if tree.kind == "product":
        runs = range(len(tree.children) - len(part.children) + 1) if part.kind == "product" else ()
        for first in runs:
            last = first + len(part.children)
            for same in (part.children, tuple(_turned(one) for one in part.children[::-1])):
                if tree.children[first:last] == same:
                    rest = (*tree.children[:first], *tree.children[last:])
                    return any(_stands_beside(part, replace(tree, children=children), name, known) for children in (rest,) if children)
    if not _is_mixed(tree, name) and tree.kind not in ("transpose", "neg", *ABOVE):
        return False  # e^{3 c} for the cube of e^c
    return any(_stands_beside(part, child, name, known) for child in tree.children)


def _turned(node: Node) -> Node:
    return node.children[0] if node.kind == "transpose" else Node("transpose", (node,))


def _parts(tree: Node, name: str) -> Iterator[Node]:
    """Yield what a name stands in: expressions, and some factors of a product side by side."""
    for node in tree.walk():
        if node.kind in (*ABOVE, "name", "big", "domain") or not _has(node, name):
            continue
        yield node
    yield from (run for run in _runs(tree) if _has(run, name))


def _runs(tree: Node) -> Iterator[Node]:
    """Yield what stands side by side in a product, but for the whole."""
    for node in tree.walk():
        count = len(node.children) if node.kind == "product" else 0
        for first, last in itertools.combinations(range(count + 1), 2):
            if 1 < last - first < count:
                yield replace(node, children=node.children[first:last])


def _value(part: Node, formula: Formula, draw: Givens, name: str, raw: Any) -> np.ndarray | None:
    """Return the value of a part, with another value of a given; None if it is not of the form of the given."""
    given = replace(_given(draw, name), raw=raw)
    try:
        with np.errstate(all="ignore"):
            evaluation = Evaluation(formula, {**draw, **dict.fromkeys(aliases(name, draw), given)})
            for letter in evaluation.ordered(part.letters(), part):
                evaluation.enter(letter, part)
            data = np.squeeze(evaluation.value(part).data)
    except (FormulaError, ValueError, IndexError):
        return None
    fits = data.size == np.size(raw) and data.dtype.kind == "f" and len(part.letters()) <= 1 and np.isfinite(data).all()
    return data.reshape(np.shape(raw)) if fits and data.shape == np.squeeze(raw).shape else None


def _is_instance(part: Node, formula: Formula, registered: Formula, draw: Givens, name: str) -> bool:
    """Whether what the registered formula is made of has the values that the form has, once a given has the value of a part.

    A part that has the value of all that the given stands in is another wording of that.
    """
    given = _given(draw, name)
    value = _value(part, formula, draw, name, np.asarray(given.raw))
    if value is None:
        return False
    changed = {**draw, **dict.fromkeys(aliases(name, draw), replace(given, raw=value[()]))}
    try:
        own = [data for _, data in parts(formula, draw)]
        evaluation = Evaluation(formula, draw)
        own += [evaluation.value(run).data for tree in formula.claims for run in _runs(tree) if not run.letters()]
        wanted = parts(registered, changed)
        ends = [[end for one in sides(*judged) for end in (one.left, one.right)] for judged in ((formula, draw), (registered, changed))]
        whole = [data for node, data in parts(registered, draw) if _count(node, name) == _count(registered.tree, name)]
    except (FormulaError, ValueError):
        return False
    if any(data.size == value.size and np.allclose(data.ravel(), value.ravel()) for data in whole if data.dtype.kind == "f"):
        return False
    mixed = [data for node, data in wanted if _has(node, name) and _is_mixed(node, name)]
    return bool(mixed) and _occur(mixed, own) and _occur(ends[1], ends[0])


def _count(node: Node, name: str) -> int:
    return sum(1 for one in node.walk() if one.kind == "name" and one.value == name)


def _is_mixed(node: Node, name: str) -> bool:
    """Whether another symbol stands in it beside that name."""
    return any(one.kind in ("name", "call") and one.value != name for one in node.walk())


def _is_close(value: np.ndarray | None, raw: Any) -> bool:
    return value is not None and np.allclose(value, raw)


def _occur(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether the numbers of each array are those of another, in any order."""
    sizes: dict[int, list[np.ndarray]] = {}
    for data in others:
        if data.dtype.kind in "fi":
            sizes.setdefault(data.size, []).append(np.sort(data.ravel()))
    return all(_occurs(data, sizes.get(data.size, [])) for data in some if data.dtype.kind in "fi")


def _occurs(data: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    wanted = np.sort(data.ravel())
    return bool(np.isfinite(wanted).all()) and any(
        np.allclose(wanted, other, rtol=CLOSE, atol=CLOSE * max(float(np.abs(wanted).max(initial=0.0)), 1e-300)) for other in others
    )


def _reaches_all(part: Node, formula: Formula, draw: Givens, name: str, raw: Any, positive: bool) -> bool:
    """Whether a part takes all values that a given takes."""

    def at(number: Any) -> np.ndarray | None:
        return _value(part, formula, draw, name, number)

    if np.asarray(raw).dtype.kind == "i":
        found = [at(raw + step) for step in range(3)]
        steps = [float(two - one) for one, two in itertools.pairwise(found) if one is not None and two is not None]
        return not np.ndim(raw) and all(abs(step) == 1 for step in steps)
    rng = np.random.default_rng(11)
    one, two = (np.asarray(raw) * np.exp(0.3 * rng.normal(size=np.shape(raw))) + 0.1 * rng.uniform(size=np.shape(raw)) for _ in range(2))
    two = two if positive else -two
    first, second, middle = at(one[()]), at(two[()]), at(((one + two) / 2)[()])
    if first is None or second is None or middle is None:
        return True  # nothing is known of it
    if np.allclose(middle, (first + second) / 2, rtol=1e-9, atol=1e-12):
        origin = at((0 * one)[()])
        if np.size(raw) > MOST or origin is None:
            return True
        moved = [at(step.reshape(np.shape(raw))[()]) for step in np.eye(np.size(raw))]
        slopes = [np.ravel(end - origin) for end in moved if end is not None]
        return int(np.linalg.matrix_rank(np.array(slopes), tol=1e-9)) == len(moved)
    again = at(first[()])
    if again is not None and np.allclose(again, one):
        return True  # an inverse
    far = [float(end) for sign in (-1.0, 1.0) if not np.ndim(raw) and not positive and (end := at(sign * FAR)) is not None]
    return len(far) == 2 and min(far) < -FAR / 2 and max(far) > FAR / 2
