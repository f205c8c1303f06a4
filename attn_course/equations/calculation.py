"""The lines of a calculation: each relation of a formula at one value of its indices, with numbers put in, and what comes out."""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from attn_course.equations.asked import Asked, ShowError
from attn_course.equations.worked import WHOLE, Numbers, cases, in_force, number, result, round_off
from attn_course.formulas import Formula, FormulaError, Node, Refuted, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given
from attn_course.formulas.relations import is_space
from attn_course.formulas.tree import relations

Row: TypeAlias = tuple[Node | None, str, Node]  # left of the sign, the sign, right of it
SYMBOLS = ("name", "entry", "index")
EQUALS, ABOUT = "=", r"\approx"
DELTA = {r"\delta"}


def calculated(formula: Formula, question: Asked | Mapping[str, Any]) -> tuple[list[Row], dict[str, Node]]:
    """Return the lines of a calculation, and the value of each index in it; what one line finds the next ones may use."""
    asked = question if isinstance(question, Asked) else None
    givens, wanted = dict(question.givens if isinstance(question, Asked) else question), asked.places if asked else {}
    places, rows, missing = dict[str, Node](), list[Row](), list[set[str]]()
    chains = [found for claim in formula.claims for found in relations(claim)]
    letters = {letter for chain, _ in chains for letter in chain.letters()}
    if asked and wanted.keys() - letters:
        raise ShowError(asked.unknown(letters))
    for name, definition in formula.definitions.items():
        closed = not (definition.own or definition.parameters or definition.open_letters)
        if closed and not _lacking(formula, definition.body, givens):
            rows += _lines(Evaluation(formula, givens), [Node("name", value=name), definition.body], givens)
    for chain, conditions in sorted(chains, key=lambda ruled: not _defines(ruled[0], givens)):
        sides = [side for side in chain.children[::2] if _has_symbols(side) and not is_space(side)]
        able = [side for side in sides if not _lacking(formula, side, givens)]
        if not able or (len(able) < len(sides) and all(side.kind in SYMBOLS for side in able)):
            missing += [_lacking(formula, side, givens) for side in sides[len(sides) > 1 :] if side not in able]
            continue
        here = _placed(_entered(Evaluation(formula, givens), chain, able, conditions), chain, able, conditions, wanted)
        for letter in sorted(letters & here.letters.keys()):
            if here.letters[letter].data.size == 1:
                places[letter] = number(here.letters[letter].data.item())
        rows += _chain_rows(here, chain, givens)
        if chain.children[1].value == EQUALS and _defines(chain, givens):
            value = here.value(able[-1])
            if not value.lists and {*value.data.shape[: value.letters]} <= {1} and value.form != "opaque":
                givens[chain.children[0].value] = Given(value.indexed[(0,) * value.letters], value.form)
    if not rows:
        lacking = min(missing, key=len) if missing else set[str]()
        raise ShowError(asked.lacking(lacking) if asked else "nothing is calculated here")
    return rows, places


def refuting(formula: Formula, givens: Mapping[str, Any], error: Refuted) -> tuple[list[Row], Node, Node]:
    """Return both sides of the relation that is refuted with their numbers where they are told to differ, and what they are."""
    (start, end), at, rows, slack = error.place, dict(error.at), list[Row](), 0.0
    for chain, conditions in (found for claim in formula.claims for found in relations(claim)):
        ends = [side for side in chain.children[::2] if side.place[0] == start or side.place[1] == end]
        if not rows and len(ends) == 2 and chain.place[0] <= start and end <= chain.place[1]:
            sides = [side for side in ends if not is_space(side)]
            here = _entered(Evaluation(formula, givens), chain, sides, conditions)
            for letter in at.keys() & here.letters.keys():
                here.run_over(letter, np.array([float(at[letter])]))
            able = [side for side in sides if _has_value(here, side)]  # a limit may be found for all indices together only
            rows = [row for side in able if _has_symbols(side) for row in _lines(here, [side, side], givens)]
            slack = round_off(here)
    if not error.numbers:
        return rows, Node("constant", value=error.left), Node("constant", value=error.right)
    one, two = (0.0 if abs(each) <= slack else each for each in error.numbers)
    digits = next((more for more in range(3, 8) if number(one, more) != number(two, more)), 3)
    return rows, number(one, digits), number(two, digits)


def _has_value(here: Evaluation, side: Node) -> bool:
    """Whether an expression has a value; the evaluation then knows the largest number in it, of which round-off is a part."""
    try:
        here.value(side)
    except FormulaError:
        return False
    return True


def _has_symbols(side: Node) -> bool:
    """Whether an expression is more than numbers."""
    return any(node.kind in ("name", "index", "call") for node in side.walk())


def _entered(evaluation: Evaluation, chain: Node, able: Sequence[Node], conditions: Sequence[Node]) -> Evaluation:
    """Return the evaluation in which the free indices of a relation are in force."""
    here = evaluation.here()
    for scope in (*able, chain, *conditions):
        for letter in here.ordered(scope.letters() - here.letters.keys() - DELTA, scope):
            with contextlib.suppress(FormulaError):  # another side may tell its range
                here.enter(letter, scope)
    return here


def _placed(here: Evaluation, chain: Node, able: Sequence[Node], conditions: Sequence[Node], places: Mapping[str, float]) -> Evaluation:
    """Return the evaluation at one value of each free index: the first, or the one asked for, at which the formula says something."""
    free = sorted(chain.letters() & here.letters.keys())
    for letter in places.keys() & {*free}:
        values = here.letters[letter].data.ravel().tolist()
        if places[letter] not in values:
            raise ShowError(f"{letter} wants a position from {min(values):g} to {max(values):g}; got {places[letter]:g}")
        here.run_over(letter, np.array([places[letter]]))
    problem = ""
    for case in cases(here, free, conditions):
        try:
            for side in able:
                case.value(side)
        except FormulaError as error:
            problem = problem or str(error)
            continue
        return case
    raise ShowError(problem or f"wanted values for which {', '.join(map(write, conditions))} holds; got none")


def _defines(chain: Node, givens: Collection[str]) -> bool:
    """Whether a relation says what a symbol without a value is: others may need it."""
    return chain.children[0].kind == "name" and chain.children[0].value not in givens


def _lacking(formula: Formula, node: Node, givens: Collection[str]) -> set[str]:
    """Return the givens without a value in an expression, and in the definitions that it uses."""
    return {*formula.names_beneath(node) & formula.given} - {*givens}


def _chain_rows(here: Evaluation, chain: Node, givens: Mapping[str, Any]) -> list[Row]:
    """Return the lines of one relation: equal sides beneath each other, others one by one and then compared."""
    sides, signs = chain.children[::2], chain.children[1::2]
    if {sign.value for sign in signs} <= {EQUALS}:
        return _lines(here, sides, givens)
    rows, ends = list[Row](), list[Node]()
    for side in sides:
        worked = Numbers(here.formula.given - givens.keys())
        if is_space(side):
            ends.append(worked.put(here, side))
        elif _lacking(here.formula, side, givens):
            ends.append(in_force(here, side))
        else:
            ends.append(worked.value(result(here, side)))
            rows += _lines(here, [side, side], givens) if _has_symbols(side) and side.kind != "index" else []
    if signs[0].children:  # a limit: where it goes stands above the arrow
        return rows
    compared = [part for sign, end in zip(signs, ends[1:], strict=True) for part in (Node("relation", value=sign.value), end)][1:]
    return [*rows, (ends[0], signs[0].value, Node("chain", tuple(compared)) if len(compared) > 1 else ends[1])]


def _lines(here: Evaluation, sides: Sequence[Node], givens: Mapping[str, Any]) -> list[Row]:
    """Return equal sides beneath each other: the first as a symbol if it is one, the others with numbers, and the result."""
    worked = Numbers(here.formula.given - givens.keys())
    able = [side for side in sides if not _lacking(here.formula, side, givens)]
    first, *others = sides
    left = in_force(here, first) if first not in able or _is_symbol(first) else worked.put(here, first)
    rows, before = list[Row](), left
    for side in filter(_has_symbols, others):
        worked.lossy = False
        put = worked.put(here, side) if side in able and side.kind not in WHOLE else in_force(here, side)
        rows += [(None, ABOUT if worked.lossy else EQUALS, put)] * (put != before)
        before = put
    end = worked.value(result(here, ([*filter(_has_symbols, able)] or able)[-1]))
    rows += [(None, ABOUT if worked.lossy else EQUALS, end)] * (end != before)
    return [(left, *rows[0][1:]), *rows[1:]] if rows else []


def _is_symbol(side: Node) -> bool:
    """Whether a side is short enough to stay as it is: a symbol, an entry, a function of such, a derivative."""
    if side.value in ("E", "Var", "Cov", r"\lim"):
        return True
    if side.kind in ("call", "entry"):
        return all(part.kind in (*SYMBOLS, "none", "number", "call", "word") and _is_symbol(part) for part in side.children)
    return side.kind in (*SYMBOLS, *WHOLE, "none", "number", "word")
