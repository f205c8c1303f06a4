"""Whether a formula holds for its givens, and if not, where: the counterexample in the formula's own symbols.

`=` is judged to 1e-10 of the larger side, entry by entry, and never finer than round-off of the largest number met. `<` must be strict,
`\\le` may be attained, `\\approx` means to the digits printed. Free letters run over all positions; behind an arrow or beneath a premise
only the cases count in which it holds.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.formulas.compiled import OWN, Formula
from attn_course.formulas.errors import Malformed, Place, Refuted
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Open, Size, aliases, is_range, names_of
from attn_course.formulas.relations import Comparison, compare, holds, links
from attn_course.formulas.tree import Node
from attn_course.formulas.values import Value, lifted

AXES = {"vector": ("entry",), "tuple": ("entry",), "set": ("member",), "matrix": ("row", "column")}
AXES |= {"row": ("", "column"), "column": ("row", "")}
EVEN = 1e-9  # of the largest gap: of gaps that are closer to it than that the first is told


@dataclass(frozen=True)
class Judged:
    """One relation: both sides, where it counts and is fulfilled, and where they are equal; a side may be a number as `printed`."""

    relation: str
    left: np.ndarray
    right: np.ndarray
    counts: np.ndarray
    fulfilled: np.ndarray
    equal: np.ndarray
    printed: bool
    ends: tuple[Node, Node]

    @property
    def place(self) -> Place:
        """Where the relation stands."""
        return self.ends[0].place[0], self.ends[1].place[1]

    @property
    def counted(self) -> bool:
        """Whether any case counted."""
        return bool(self.counts.any())

    @property
    def attained(self) -> bool:
        """Whether a bound was attained in some case."""
        return bool((self.counts & self.equal).any())

    @property
    def strict(self) -> bool:
        """Whether a bound was not attained in some case."""
        return bool((self.counts & ~self.equal).any())


def formula_of(latex: str, givens: Mapping[str, Any]) -> Formula:
    """Read a formula of the symbols that are given; raises Malformed."""
    open_names = [name for name, given in givens.items() if isinstance(given, Open)]
    return Formula.of(latex, names_of(givens), [name for name, given in givens.items() if is_range(given)], open_names)


def judge(formula: Formula, givens: Mapping[str, Any]) -> list[Judged]:
    """Return every relation of a formula with its sides, as they hold for the givens.

    Raises Refuted if one does not hold, with the counterexample, and Malformed if it has no meaning for these givens: shapes,
    orientations, ranges, symbols.
    """
    return _judged(Evaluation(formula, givens), refute=True)


def sides(formula: Formula, givens: Mapping[str, Any], evaluation: Evaluation | None = None) -> list[Judged]:
    """Return every relation of a formula with its sides, whether it holds or not. Raises Malformed as `judge`."""
    return _judged(evaluation or Evaluation(formula, givens), refute=False)


def parts(formula: Formula, givens: Mapping[str, Any]) -> list[tuple[Node, np.ndarray]]:
    """Return all parts of a formula with their values, in the order in which they are evaluated. Raises Malformed as `judge`."""
    evaluation = _Noting(formula, givens)
    _judged(evaluation, refute=False)
    return evaluation.parts


def values_of(formula: Formula, givens: Mapping[str, Any], nodes: Sequence[Node]) -> dict[Node, np.ndarray]:
    """Return the numbers that some nodes of a formula are, one after the other. Raises Malformed as `judge`."""
    evaluation = _Noting(formula, givens)
    evaluation.wanted = {node: [] for node in nodes}
    _judged(evaluation, refute=False)
    return {node: np.concatenate([np.zeros(0), *(found.ravel() for found in some)]) for node, some in evaluation.wanted.items()}


class _Noting(Evaluation):
    """An evaluation that keeps the value of every node."""

    def __init__(self, formula: Formula, givens: Mapping[str, Any]) -> None:
        super().__init__(formula, givens)
        self.parts: list[tuple[Node, np.ndarray]] = []
        self.wanted: dict[Node, list[np.ndarray]] = {}

    def value(self, node: Node) -> Value:
        """Return the value of a node, and keep it."""
        found = super().value(node)
        self.parts.append((node, found.data))
        if self.wanted and node in self.wanted and found.form == "scalar" and found.data.dtype.kind == "f":
            self.wanted[node].append(found.data)
        return found


def judge_draws(formula: Formula, draws: Iterable[Mapping[str, Any]]) -> list[list[Judged]]:
    """Judge a formula on several draws of its givens; each of its relations must count in one of them at least.

    Raises Refuted and Malformed as `judge`; malformed too if a premise holds in no draw, so that nothing is tested.
    """
    found = [judge(formula, givens) for givens in draws]
    every = [one for judged in found for one in judged]
    counted = {(one.place, one.relation) for one in every if one.counted}
    for one in every:
        if (one.place, one.relation) not in counted:
            raise Malformed("nothing is tested: the premise or the condition holds in no draw", one.place, formula.latex)
    return found


def _judged(evaluation: Evaluation, refute: bool) -> list[Judged]:
    formula, givens = evaluation.formula, evaluation.givens
    used = formula.named | evaluation.needed(formula.named)
    unused = {
        name
        for name in givens.keys() - used
        if not aliases(name, givens, any_form=True) & used and not isinstance(getattr(givens[name], "raw", None), Size | Open)
    } - formula.spare
    if unused:
        declared = " as an index: its letter is declared, and no other may stand for it" if is_range(givens[min(unused)]) else ""
        raise Malformed(f"{min(unused)} is given and nowhere used{declared}", formula.tree.place, formula.latex)
    found = []
    try:
        with np.errstate(all="ignore"):  # infinities and NaN show in the numbers
            for here, chain in itertools.chain.from_iterable(chains(evaluation, claim) for claim in formula.claims):
                here.notes.biggest = 0.0
                for relation, left, right in links(here, chain):
                    compared = compare(here, relation, left, right, chain)
                    counts = lifted(here.mask, compared.fulfilled.ndim - here.axes)
                    ends = (left[0], right[0])
                    place = (ends[0].place[0], ends[1].place[1])
                    wrong = counts & ~compared.fulfilled
                    if refute and wrong.any():
                        raise _refuted(here, relation.value, compared, wrong, chain, place)
                    alike = {sign.value for sign in chain.children[1::2]} == {"="}  # a = b = 1 says a = 1
                    printed = not all(has_symbols(formula, end) for end in (chain.children[::2] if alike else ends))
                    sides = (compared.left, compared.right, counts, compared.fulfilled, compared.equal)
                    found.append(Judged(relation.value, *sides, printed, ends))
    except Malformed as error:
        raise error.of(formula.latex) from None
    except RecursionError:
        raise Malformed("the formula is nested too deeply") from None
    return found


def chains(evaluation: Evaluation, claim: Node) -> Iterator[tuple[Evaluation, Node]]:
    """Yield the relations of a claim, each with the cases in which it counts; a letter that ends a slice is tried value by value."""
    inner = evaluation.here()
    for letter in inner.ordered(claim.letters() - {r"\delta"}, claim):
        inner.enter(letter, claim)
    looped = evaluation.formula.looped(claim)
    for values in itertools.product(*(inner.letters[letter].data.ravel() for letter in looped)):
        one = inner.here() if looped else inner
        for letter, value in zip(looped, values, strict=True):
            one.run_over(letter, np.array([value]))
        yield from _within(one, claim)


def _within(evaluation: Evaluation, node: Node) -> Iterator[tuple[Evaluation, Node]]:
    first, *rest = node.children
    match node.kind:
        case "chain":
            yield evaluation, node
        case "where":
            for condition in rest:
                evaluation = evaluation.restricted(holds(evaluation, condition))
            yield from _within(evaluation, first)
        case "all":
            for child in node.children:
                yield from _within(evaluation, child)
        case "given" | "implies":
            for conclusion in rest:
                yield from _within(evaluation.restricted(_for_all(evaluation, first, conclusion)), conclusion)
            if node.value == r"\iff":
                yield from _within(evaluation.restricted(_for_all(evaluation, rest[0], first)), first)
        case _:
            raise Malformed("expected a relation", node.place)


def _for_all(evaluation: Evaluation, premise: Node, conclusion: Node) -> np.ndarray:
    """Return where a premise holds; letters that only it has are meant for all their values."""
    axes = tuple(evaluation.formula.letters[letter] for letter in premise.letters() - conclusion.letters() - {r"\delta"})
    return np.asarray(holds(evaluation, premise).all(axis=axes, keepdims=True))


def has_symbols(formula: Formula, side: Node) -> bool:
    """Whether an expression is more than a number as it is printed."""
    return any(node.kind in ("name", "index") or (node.kind == "call" and node.value in formula.given) for node in side.walk())


def _refuted(evaluation: Evaluation, sign: str, compared: Comparison, wrong: np.ndarray, chain: Node, place: Place) -> Refuted:
    left, right, wrong = np.broadcast_arrays(compared.left, compared.right, wrong)
    if left.dtype in (object, bool):
        gap = wrong.astype(float)
    else:
        gap = np.where(wrong, np.nan_to_num(np.abs(left - right), nan=np.inf, posinf=1e308), -1.0)
    worst = np.unravel_index(int(np.argmax(gap >= gap.max() * (1 - EVEN))), gap.shape)
    at = []
    for letter in sorted(evaluation.letters.keys() & chain.letters()):
        values = evaluation.letters[letter].data.ravel()
        at.append((letter.rstrip(OWN), f"{float(values[worst[evaluation.formula.letters[letter]] % len(values)]):g}"))
    own = zip(AXES.get(compared.form, ()), worst[evaluation.axes :], gap.shape[evaluation.axes :], strict=False)
    at += [(axis, str(place + 1)) for axis, place, length in own if axis and length > 1]
    if compared.form == "shape":
        return Refuted(sign, [f"shape {tuple(int(size) for size in side.ravel() if size)}" for side in (left, right)], at, place)
    ends = left[worst], right[worst]
    alike = sign != "=" and bool(np.broadcast_to(compared.equal, wrong.shape)[worst])  # but for round-off
    return Refuted(sign, (f"{ends[0]:.6g}",) * 2 if alike else _numbers(*ends), at, place, ends)


def _numbers(left: Any, right: Any) -> tuple[str, str]:
    """Return two different numbers in as few digits as tell them apart."""
    if not isinstance(left, int | float | complex | np.number | np.bool_):
        return str(left), str(right)
    for digits in (2, 4, 6, 9, 12, 17):
        one, two = f"{left:.{digits}g}", f"{right:.{digits}g}"
        if one != two:
            return one, two
    return f"{left:.4g}", f"{right:.4g}"
