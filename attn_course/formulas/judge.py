"""Whether a formula holds for its givens, and if not, where: the counterexample in the formula's own symbols.

`=` is judged to 1e-10 of the larger side, entry by entry, and never finer than round-off of the largest number met; SymPy expressions
exactly. `<` must be strict, `\\le` may be attained, `\\approx` means to the digits printed. Free letters run over all positions; behind
an arrow or beneath a premise only the cases count in which it holds.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from attn_course.formulas.compiled import OWN, Formula
from attn_course.formulas.errors import Malformed, Place, Refuted
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.relations import Comparison, compare, holds, links
from attn_course.formulas.tree import Node, write
from attn_course.formulas.values import lifted


@dataclass(frozen=True)
class Judged:
    """One relation that held: its sides, whether any case counted, and whether one was attained, or strict; a side may be a number."""

    relation: str
    left: np.ndarray
    right: np.ndarray
    counted: bool
    attained: bool
    strict: bool
    printed: bool
    place: Place


Report: TypeAlias = Callable[[Evaluation, Node, Comparison, np.ndarray, Node, tuple[Node, Node]], None]


def judge(formula: Formula, givens: Mapping[str, Any]) -> list[Judged]:
    """Return every relation of a formula with its sides, as they hold for the givens.

    Raises
    ------
    Refuted
        If one does not hold, with the counterexample.
    Malformed
        If it has no meaning for these givens: shapes, orientations, ranges, symbols.
    """
    found: list[Judged] = []

    def report(
        evaluation: Evaluation, relation: Node, compared: Comparison, counts: np.ndarray, chain: Node, ends: tuple[Node, Node]
    ) -> None:
        place = (ends[0].place[0], ends[1].place[1])
        wrong = counts & ~compared.fulfilled
        if wrong.any():
            raise _refuted(evaluation, relation.value, compared, wrong, chain, place)
        attained, strict = (bool((counts & where).any()) for where in (compared.attained, ~compared.attained))
        printed = any(not _symbols(formula, end) for end in ends)
        found.append(Judged(relation.value, compared.left, compared.right, bool(counts.any()), attained, strict, printed, place))

    _judge_all(formula, givens, report)
    return found


def sides(formula: Formula, givens: Mapping[str, Any]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return for every relation where it counts, where it is fulfilled, and both sides; whether it holds or not.

    Raises
    ------
    Malformed
        If it has no meaning for these givens.
    """
    found = []

    def report(
        evaluation: Evaluation, relation: Node, compared: Comparison, counts: np.ndarray, chain: Node, ends: tuple[Node, Node]
    ) -> None:
        found.append((counts, compared.fulfilled, compared.left, compared.right))

    _judge_all(formula, givens, report)
    return found


def _judge_all(formula: Formula, givens: Mapping[str, Any], report: Report) -> None:
    unused = {name for name in givens if name not in formula.named}
    evaluation = Evaluation(formula, givens)
    unused -= evaluation.needed(formula.named)
    if unused:
        raise Malformed(f"{min(unused)} is given and nowhere used")
    try:
        with np.errstate(all="ignore"):  # infinities and NaN show in the numbers
            for claim in formula.claims:
                _judge_claim(evaluation, claim, report)
    except Malformed as error:
        raise error.of(formula.latex) from None


def judge_draws(formula: Formula, draws: Iterable[Mapping[str, Any]]) -> list[list[Judged]]:
    """Judge a formula on several draws of its givens; each of its relations must count in one of them at least.

    Raises
    ------
    Refuted, Malformed
        See `judge`; malformed too if a premise holds in no draw, so that nothing is tested.
    """
    found = [judge(formula, givens) for givens in draws]
    counted = {(one.place, one.relation): False for judged in found for one in judged}
    for one in (one for judged in found for one in judged):
        counted[one.place, one.relation] |= one.counted
    for (place, _), does in counted.items():
        if not does:
            raise Malformed("nothing is tested: the premise or the condition holds in no draw", place, formula.latex)
    return found


def _judge_claim(evaluation: Evaluation, claim: Node, report: Report) -> None:
    looped = evaluation.formula.looped(claim)
    inner = evaluation.here()
    for letter in inner.ordered(claim.letters() - {r"\delta"}, claim):
        inner.enter(letter, claim)
    if not looped:
        _judge(inner, claim, report)
        return
    for values in itertools.product(*(inner.letters[letter].data.ravel() for letter in looped)):
        one = inner.here()
        for letter, value in zip(looped, values, strict=True):
            one.run_over(letter, np.array([value]))
        _judge(one, claim, report)


def _judge(evaluation: Evaluation, node: Node, report: Report) -> None:
    match node.kind:
        case "chain":
            _judge_chain(evaluation, node, report)
        case "where":
            clause, *conditions = node.children
            for condition in conditions:
                evaluation = evaluation.restricted(holds(evaluation, condition))
            _judge(evaluation, clause, report)
        case "all":
            for child in node.children:
                _judge(evaluation, child, report)
        case "given":
            premise, *statements = node.children
            for statement in statements:
                _judge(evaluation.restricted(_for_all(evaluation, premise, statement)), statement, report)
        case "implies":
            left, right = node.children
            _judge(evaluation.restricted(_for_all(evaluation, left, right)), right, report)
            if node.value == r"\iff":
                _judge(evaluation.restricted(_for_all(evaluation, right, left)), left, report)
        case _:
            raise Malformed("expected a relation", node.place)


def _for_all(evaluation: Evaluation, premise: Node, conclusion: Node) -> np.ndarray:
    """Return where a premise holds; letters that only it has are meant for all their values."""
    axes = tuple(evaluation.formula.letters[letter] for letter in premise.letters() - conclusion.letters() - {r"\delta"})
    return np.asarray(holds(evaluation, premise).all(axis=axes, keepdims=True))


def _judge_chain(evaluation: Evaluation, chain: Node, report: Report) -> None:
    evaluation.notes.biggest = 0.0
    for relation, left, right in links(evaluation, chain):
        compared = compare(evaluation, relation, left, right, chain)
        counts = np.ones((1,) * evaluation.axes, bool) if evaluation.mask is None else evaluation.mask
        counts = lifted(counts, compared.fulfilled.ndim - evaluation.axes)
        report(evaluation, relation, compared, counts, chain, (left[0], right[0]))


def _symbols(formula: Formula, side: Node) -> bool:
    return any(node.kind in ("name", "index") or (node.kind == "call" and node.value in formula.given) for node in side.walk())


def _refuted(evaluation: Evaluation, sign: str, compared: Comparison, wrong: np.ndarray, chain: Node, place: Place) -> Refuted:
    left, right, wrong = np.broadcast_arrays(compared.left, compared.right, wrong)
    if left.dtype == object or left.dtype == bool:
        gap = wrong.astype(float)
    else:
        gap = np.where(wrong, np.nan_to_num(np.abs(left - right), nan=np.inf, posinf=1e308), -1.0)
    worst = np.unravel_index(int(np.argmax(gap)), gap.shape)
    at = []
    for letter in sorted(evaluation.letters.keys() & chain.letters()):
        values = evaluation.letters[letter].data.ravel()
        at.append((letter.rstrip(OWN), f"{float(values[worst[evaluation.formula.letters[letter]] % len(values)]):g}"))
    own = [int(place) + 1 for place in worst[evaluation.axes :]]
    axes = {
        "vector": ("entry",),
        "tuple": ("entry",),
        "row": ("", "column"),
        "column": ("row", ""),
        "matrix": ("row", "column"),
        "set": ("member",),
    }
    at += [(name, str(number)) for name, number in zip(axes.get(compared.form, ()), own, strict=False) if name]
    shown = (
        ("shape " + str(tuple(int(size) for size in side.ravel() if size)) for side in (left, right)) if compared.form == "shape" else None
    )
    one, two = shown or _numbers(left[worst], right[worst])
    return Refuted(sign, one, two, at, write(chain), place)


def _numbers(left: Any, right: Any) -> tuple[str, str]:
    """Return two different numbers in as few digits as tell them apart."""
    if not isinstance(left, int | float | complex | np.number | np.bool_):
        return str(left), str(right)
    for digits in (2, 4, 6, 9, 12, 17):
        one, two = f"{left:.{digits}g}", f"{right:.{digits}g}"
        if one != two:
            return one, two
    return f"{left:.4g}", f"{right:.4g}"
