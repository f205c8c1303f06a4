r"""What does not fix a side of the registered formula: another value in its place, and a form still holds.

Each side of an equality is put as an unknown into both formulas, wherever it stands: `\partial s_i / \partial z_j` is a table of numbers,
whatever it is. With other numbers in it the registered formula falls; a form that holds has lost something: a sign, a constant of
each row, the antisymmetric part. Which numbers a form cannot see is found where it is linear, from its derivatives by them; beyond that
signs, whole numbers, factors and constants of rows and columns are tried. A part of a side gets other numbers too: a form in which they
do not matter holds whatever that part is, as `q \cdot k = x - x + k \cdot q` does.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attn_course.formulas import Formula, FormulaError, Malformed, Node, sides, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, Of, aliases, as_given
from attn_course.formulas.judge import chains
from attn_course.formulas.relations import ORDERS
from attn_course.formulas.tree import relations

UNKNOWN = r"\Lambda^{?}"  # a name that no formula has
MOST, LINEAR = 400, 64  # numbers of an unknown, and of those of it by which derivatives are taken: of more only the last of a list
PLAIN = ("number", "constant", "name", "index", "relation", "word", "none")
POSITIVE = ("bars", "norm", "power", "iverson", "floor", "ceil")
Givens = Mapping[str, Any]


def complain_of_lost(formula: Formula, registered: Formula, draw: Givens) -> None:
    """Complain of a form that holds with other numbers in the place of a side, or of a part of a side, where the registered one falls."""
    whole = {side for side, first in _ends(registered) if first or side.kind in ("name", "entry")}  # others may be written in other ways
    for side in dict.fromkeys([*(side for side, _ in _ends(registered)), *_parts(registered)]):
        for unknown, own, other in _unknowns(side, formula, registered, draw):
            if not _held(other, other.tree, unknown) or not _held(own, own.tree, unknown):
                continue
            for moved in itertools.chain(_anything(unknown), _signed(unknown, side), _changes(other, unknown) if side in whole else ()):
                if _held(other, other.tree, moved) and _held(own, own.tree, moved) is False:
                    raise _lost(side, formula)
    for name, steeper in _other_slopes(formula, registered, draw):
        if _held(formula, formula.tree, steeper) and _held(registered, registered.tree, steeper) is False:
            raise Malformed(f"with another derivative of {name} this holds too", formula.tree.place, formula.latex)
    signs = [one.tree.map(_with_other_sign) for one in (formula, registered)]
    if signs[0] != formula.tree and _held(registered, signs[1], draw) is False and _held(formula, signs[0], draw):
        raise Malformed("with another sign of the derivative this holds too", formula.tree.place, formula.latex)


def complain_of_bare(formula: Formula, registered: Formula, draws: Sequence[Givens]) -> None:
    """Complain of a form that holds in all draws without its softmax too, where the registered one falls."""
    bare, bared = (one.tree.map(_without_softmax) for one in (formula, registered))
    changed = bare != formula.tree and bared != registered.tree and not any(node.value in ORDERS for node in registered.tree.walk())
    if changed and _held(registered, bared, draws[0]) is False and all(_held(formula, bare, draw) for draw in draws):
        raise Malformed("this holds without the softmax too: it says nothing of it", formula.tree.place, formula.latex)


def _lost(side: Node, formula: Formula) -> Malformed:
    said = f"with another value of {write(side)} this holds too, and the registered formula does not"
    return Malformed(said, formula.tree.place, formula.latex)


def _without_softmax(node: Node) -> Node:
    """Return what a softmax is taken of."""
    call = node.children[0] if node.kind == "entry" else node
    if call.kind != "call" or call.value not in (r"\sigma", "softmax"):
        return node
    under, inside = call.children
    if under.kind != "index":
        return inside if call is node else node
    letters = {under.value: node.children[1]} if call is not node and len(node.children) == 2 else {}
    return inside.map(lambda one: letters.get(one.value, one) if one.kind == "index" else one) if letters else node


def _with_other_sign(node: Node) -> Node:
    return Node("neg", (node,)) if node.kind in ("derivative", "nabla") else node


def _held(formula: Formula, tree: Node, draw: Givens) -> bool | None:
    """Whether a formula, or a changed one, holds; None if it has no meaning, or speaks of nothing."""
    try:
        other = formula if tree is formula.tree else formula.with_tree(tree)
        if other is not formula:
            other.spare = frozenset(draw)
        judged = sides(other, draw)
        return not any((one.counts & ~one.fulfilled).any() for one in judged) if any(one.counts.any() for one in judged) else None
    except (FormulaError, ValueError):
        return None


def _ends(formula: Formula) -> Iterator[tuple[Node, bool]]:
    """Yield the sides of the equalities that are claimed outright, but for numbers, and whether it is the first of them."""
    for claim in formula.claims:
        for chain, conditions in relations(claim):
            if not conditions and {sign.value for sign in chain.children[1::2]} == {"="}:
                ends = [side for side in chain.children[::2] if any(one.kind in ("name", "call") for one in side.walk())]
                yield from ((side, side is chain.children[0]) for side in ends)


def _parts(formula: Formula) -> Iterator[Node]:
    for side, _ in _ends(formula):
        yield from (node for node in side.walk() if node.kind in ("dot", "call", "operator", "derivative"))


def _unknowns(side: Node, formula: Formula, registered: Formula, draw: Givens) -> Iterator[tuple[dict[str, Any], Formula, Formula]]:
    """Yield givens with an unknown, and the registered formula and the other of them: a given itself, or what stands for a side."""
    base = side.children[0] if side.kind == "entry" else side
    if base.kind == "name" and base.value in draw:
        given = as_given(draw[base.value])
        if isinstance(given, Given) and given.form not in ("opaque", "set") and np.size(given.raw) <= MOST and _is_finite(given.raw):
            for one in (registered, formula):
                one.spare |= {UNKNOWN}
            yield {**draw, UNKNOWN: given, **dict.fromkeys(aliases(base.value, draw), given)}, registered, formula
        return
    side = side if base.letters() else base  # (Q K^\top)_{ij} is a matrix
    letters = sorted(side.letters())
    valued = None if side.kind in PLAIN else _valued(side, letters, registered, draw)
    for shifted in (True, False) if valued is not None else ():  # S_{t-1}^\top k may reach beyond the range of S_t^\top k
        trees = [_with_unknown(one.tree, side, letters, shifted) for one in (registered, formula)]
        if any(tree == one.tree for tree, one in zip(trees, (registered, formula), strict=True)):
            return
        try:
            found = [Formula(tree, [*registered.given, UNKNOWN], registered.ranges, " ") for tree in trees]
        except Malformed as error:
            if error.problem == "both sides are the same":
                raise _lost(side, formula) from None
            return
        for one in found:
            one.spare = frozenset({*draw, UNKNOWN})
        yield {**draw, UNKNOWN: valued}, found[0], found[1]
        if not letters or _held(found[0], found[0].tree, {**draw, UNKNOWN: valued}) is not None:
            return


def _is_finite(raw: Any) -> bool:
    data = np.asarray(raw)
    return data.dtype.kind == "f" and bool(np.isfinite(data).all())


def _valued(side: Node, letters: Sequence[str], formula: Formula, draw: Givens) -> Given | None:
    """Return the values of a side for all values of its letters, as a list; None if they are no such list."""
    try:
        with np.errstate(all="ignore"):
            evaluation = Evaluation(formula, draw)
            for here, chain in (found for claim in formula.claims for found in chains(evaluation, claim)):
                if any(side in node.walk() for node in chain.children):
                    if not {*letters} <= here.letters.keys():
                        return None
                    value = here.value(side)
                    axes = [formula.letters[letter] for letter in letters]
                    lengths = [here.letters[letter].data.size for letter in letters]
                    own = value.indexed.shape[here.axes :]
                    lead = [length for axis, length in enumerate(value.indexed.shape[: here.axes]) if axis not in axes]
                    if value.lists or value.data.dtype.kind != "f" or max(lead, default=1) > 1 or np.prod([*lengths, *own]) > MOST:
                        return None
                    full = [lengths[axes.index(axis)] if axis in axes else 1 for axis in range(here.axes)]
                    data = np.broadcast_to(value.indexed, (*full, *own))
                    data = np.moveaxis(data, axes, range(len(axes))).reshape((*lengths, *own))
                    starts = [int(here.letters[letter].data.ravel()[0]) for letter in letters]
                    form = value.form if value.form != "scalar" else ("scalar", "vector", "matrix", "matrix")[min(len(letters), 3)]
                    if form not in ("scalar", "vector", "matrix", "row", "column") or not np.isfinite(data).all():
                        return None
                    counted = len(own) if form in ("matrix", "vector") and value.form != "scalar" else 0
                    return Given(data, form, (*starts, *[1] * counted), noise=here.notes.noise)
    except (FormulaError, ValueError, IndexError):
        return None
    return None


def _with_unknown(tree: Node, side: Node, letters: Sequence[str], shifted: bool = True) -> Node:
    """Return a tree with the unknown wherever a side stands, with these letters or others; with expressions such as t - 1 if `shifted`."""

    def put(node: Node) -> Node:
        bound: dict[str, Node] = {}
        if _matches(side, node, letters, bound) and (shifted or all(one.kind == "index" for one in bound.values())):
            return _unknown_at(letters, bound)
        if side.kind == node.kind == "product":
            for first in range(len(node.children) - len(side.children) + 1):
                bound = {}
                last = first + len(side.children)
                same = all(_matches(a, b, letters, bound) for a, b in zip(side.children, node.children[first:last], strict=True))
                if same and (shifted or all(one.kind == "index" for one in bound.values())):
                    return replace(node, children=(*node.children[:first], _unknown_at(letters, bound), *node.children[last:]))
        return node

    return tree.map(put)


def _unknown_at(letters: Sequence[str], bound: Mapping[str, Node]) -> Node:
    name = Node("name", (), UNKNOWN)
    return Node("entry", (name, *(bound[letter] for letter in letters))) if letters else name


def _matches(pattern: Node, node: Node, letters: Sequence[str], bound: dict[str, Node]) -> bool:
    """Whether a node is a side, with others for its letters; which, is kept. Two terms, or factors of a dot product, may change places."""
    if pattern.kind == "index" and pattern.value in letters:
        return bound.setdefault(pattern.value, node) == node
    if (pattern.kind, len(pattern.children)) != (node.kind, len(node.children)):
        return False
    if pattern.kind == "dot" or (pattern.kind == "sum" and len(pattern.children) == 2):
        kept = dict(bound)
        for order in (node.children, node.children[::-1]):
            bound.clear()
            bound.update(kept)
            if all(_matches(one, other, letters, bound) for one, other in zip(pattern.children, order, strict=True)):
                return True
        return False
    alike = pattern.value == node.value or pattern.kind == "over"
    return alike and all(_matches(one, other, letters, bound) for one, other in zip(pattern.children, node.children, strict=True))


def _raw(unknown: Givens) -> np.ndarray:
    return np.asarray(unknown[UNKNOWN].raw, dtype=float)


def _put(unknown: Givens, raw: np.ndarray) -> dict[str, Any]:
    """Return the givens with other numbers for the unknown, and for the given that it is."""
    given = unknown[UNKNOWN]
    return {name: replace(given, raw=raw) if thing is given else thing for name, thing in unknown.items()}


def _anything(unknown: Givens) -> Iterator[dict[str, Any]]:
    """Yield the givens with any other numbers for the unknown."""
    raw, rng = _raw(unknown), np.random.default_rng(5)
    yield _put(unknown, raw * np.exp(0.3 * rng.normal(size=raw.shape)) + 0.2 * rng.uniform(size=raw.shape))


def _signed(unknown: Givens, side: Node) -> Iterator[dict[str, Any]]:
    """Yield the givens with other signs of the unknown, unless it is a size."""
    raw, rng = _raw(unknown), np.random.default_rng(3)
    if side.kind not in POSITIVE and (raw.ndim or raw < 0 or side.kind == "derivative"):  # one positive number may be said by its square
        yield _put(unknown, -raw)
        for signs in (rng.choice([-1, 1], raw.shape), np.where(np.indices(raw.shape)[-1] % 2, 1, -1) if raw.ndim else -1, _last(raw.shape)):
            yield _put(unknown, raw * signs)


def _changes(formula: Formula, unknown: Givens) -> Iterator[dict[str, Any]]:
    """Yield the givens with numbers for the unknown that a form may not tell from those it has."""
    raw, rng = _raw(unknown), np.random.default_rng(3)
    yield _put(unknown, 1.7 * raw)
    yield _put(unknown, 0 * raw)
    yield _put(unknown, raw + rng.integers(1, 4, raw.shape))
    for axis in range(min(raw.ndim, 3)):
        yield _put(unknown, raw + rng.normal(size=[1 if place == axis else size for place, size in enumerate(raw.shape)]))
    if raw.ndim > 1 and raw.shape[-1] == raw.shape[-2]:
        yield _put(unknown, np.swapaxes(raw, -1, -2))
        each = np.exp(0.3 * rng.normal(size=raw.shape[-1]))
        yield _put(unknown, raw * each[:, None] / each)
        yield _put(unknown, raw + each[:, None] - each)
    if unknown[UNKNOWN].form == "matrix":
        left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for size in raw.shape[-2:])
        yield _put(unknown, left @ raw)
        yield _put(unknown, raw @ right)
    scale = max(float(np.abs(raw).max(initial=0)), 1e-3)
    places = _last_of_list(raw, raw.size > LINEAR)
    yield from _unseen(formula, lambda move: _put(unknown, raw + scale * move.reshape(raw.shape)), raw.size, places)


def _other_slopes(formula: Formula, registered: Formula, draw: Givens) -> Iterator[tuple[str, Givens]]:
    """Yield what is computed and differentiated, and givens where its value is the same and its slope one that a form may not tell."""
    derivatives = [node for node in registered.tree.walk() if node.kind == "derivative"]
    by = {one.value for node in derivatives for part in node.children[1:] for one in part.walk()}
    here = Evaluation(registered, draw)
    for name, of in ((name, of) for name, of in draw.items() if isinstance(of, Of) and by.intersection(of.names)):
        with contextlib.suppress(FormulaError, ValueError):
            for other in sorted(by.intersection(of.names)):
                one, start = (np.asarray(here.array(each).raw, dtype=float) for each in (name, other))
                steeper = functools.partial(_steeper, of.call, of.names.index(other), start)
                rows, columns = (_last_of_list(each, one.size * start.size > LINEAR and each.ndim > 1) for each in (one, start))
                places = np.add.outer(rows * start.size, columns).ravel()
                put = functools.partial(lambda name, of, steeper, move: {**draw, name: replace(of, call=steeper(move))}, name, of, steeper)
                yield from ((name, moved) for moved in _unseen(formula, put, one.size * start.size, places, 1e-12))


def _steeper(call: Callable[..., Any], place: int, start: np.ndarray, slopes: np.ndarray) -> Callable[..., Any]:
    """Return a function with the same value where its argument at a place is `start`, and with so much steeper slopes."""

    def other(*arguments: Any) -> Any:
        value = call(*arguments)
        raw = np.asarray(value.raw if isinstance(value, Given) else value)
        more = raw + (slopes.reshape(raw.size, start.size) @ np.ravel(arguments[place] - start)).reshape(raw.shape)
        return replace(value, raw=more) if isinstance(value, Given) else more

    return other


def _last_of_list(raw: np.ndarray, alone: bool) -> np.ndarray:
    """Return the places of all numbers of an array, one after the other; `alone`: of its last row, or of what stands last in a list."""
    places = np.arange(raw.size).reshape(raw.shape)
    return (places[-1] if alone else places).ravel()


def _last(shape: tuple[int, ...]) -> np.ndarray:
    """Return signs that turn the last row only."""
    return np.where(np.arange(shape[0]) == shape[0] - 1, -1, 1).reshape(-1, *[1] * (len(shape) - 1)) if shape else np.asarray(-1)


def _unseen(
    formula: Formula, put: Callable[[np.ndarray], dict[str, Any]], size: int, places: np.ndarray, least: float = 0.0
) -> Iterator[dict[str, Any]]:
    """Yield what is put in where so many numbers are moved at some places without a change of either side, where both are linear in them.

    Something that is seen must change them by more than `least`.
    """
    if not 1 < places.size <= LINEAR:
        return
    moves = np.equal.outer(places, np.arange(size)).astype(float)
    gaps = [gap for move in (np.zeros(size), *moves) if (gap := _gap(formula, put(move))) is not None and np.isfinite(gap).all()]
    if len(gaps) <= places.size or not gaps[0].size or len({gap.shape for gap in gaps}) > 1:
        return
    slopes = np.array([gap - gaps[0] for gap in gaps[1:]])
    values, directions = np.linalg.eigh(slopes @ slopes.T)
    free = directions[:, values <= 1e-18 * max(values.max(), 1e-300)]
    if free.size and values.max() >= least:
        yield put(free @ np.random.default_rng(7).normal(size=free.shape[1]) @ moves)


def _gap(formula: Formula, givens: Givens) -> np.ndarray | None:
    """Return by how much the sides of the equalities of a formula differ, one after the other."""
    try:
        with np.errstate(all="ignore"):
            found = [
                np.where(one.counts, one.left - one.right, 0.0).ravel() for one in sides(formula, givens) if one.left.dtype.kind == "f"
            ]
    except (FormulaError, ValueError):
        return None
    return np.concatenate(found) if found else np.zeros(0)
