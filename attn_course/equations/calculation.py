"""The lines of a calculation: each relation of a formula at one value of its indices, with numbers put in, and what comes out."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from attn_course.equations.asked import Asked, ShowError
from attn_course.equations.worked import WHOLE, Numbers, cases, in_force, names_in, number
from attn_course.formulas import Formula, FormulaError, Node, Refuted, write
from attn_course.formulas.compiled import OWN
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given

Row: TypeAlias = tuple[Node | None, str, Node]  # left of the sign, the sign, right of it
Ruled: TypeAlias = tuple[Node, tuple[Node, ...]]  # a relation, and the conditions under which it is claimed
SYMBOLS = ("name", "entry", "index")
EQUALS, ABOUT = "=", r"\approx"
DELTA = {r"\delta"}


def calculated(formula: Formula, question: Asked) -> tuple[list[Row], dict[str, Node]]:
    """Return the lines of a calculation, and the value of each index in it; what one line finds the next ones may use."""
    givens, places = dict(question.givens), dict[str, Node]()
    rows, own, missing = list[Row](), list[list[Row]](), list[set[str]]()
    chains = [found for claim in formula.claims for found in relations(claim)]
    letters = {letter for chain, _ in chains for letter in chain.letters()}
    if strange := question.places.keys() - letters:
        raise ShowError(question.unknown(min(strange), letters))
    for name, definition in formula.definitions.items():
        closed = not (definition.own or definition.parameters or definition.open_letters)
        if closed and not _needs(formula, definition.body) - givens.keys():
            rows += _lines(Evaluation(formula, givens), [Node("name", value=name), definition.body], formula, givens)
    for chain, conditions in _in_order(formula, chains, givens):
        sides = [side for side in chain.children[::2] if has_symbols(side) and not is_space(side)]
        able = [side for side in sides if not _needs(formula, side) - givens.keys()]
        if not able or (len(able) < len(sides) and all(side.kind in SYMBOLS for side in able)):
            missing += [_needs(formula, side) - givens.keys() for side in sides[len(sides) > 1 :] if side not in able]
            continue
        here = placed(Evaluation(formula, givens), chain, able, conditions, question)
        for letter in sorted(letters & here.letters.keys()):
            if here.letters[letter].data.size == 1:
                places[letter] = number(here.letters[letter].data.item())
        for group in _own_rows(here, chain, formula, givens):
            rows += group if group not in own else []
            own.append(group)
        rows += _chain_rows(here, chain, formula, givens)
        _learn(here, chain, able, givens)
    if not rows:
        raise ShowError(question.lacking(min(missing, key=len) if missing else set()))
    return rows, places


def refuting(formula: Formula, question: Asked, error: Refuted) -> tuple[list[Row], list[Node]]:
    """Return both sides of the relation that is refuted with their numbers, and what they are."""
    start, end = error.place
    for chain, conditions in (found for claim in formula.claims for found in relations(claim)):
        ends = [side for side in chain.children[::2] if side.place[0] == start or side.place[1] == end]
        if len(ends) == 2 and chain.place[0] <= start and end <= chain.place[1]:
            sides = [side for side in ends if not is_space(side)]
            here = placed(Evaluation(formula, question.givens), chain, sides, conditions, question)
            rows = [row for side in sides if has_symbols(side) for row in _lines(here, [side, side], formula, question.givens)]
            return rows, [Numbers(()).value(here.value(side)) for side in sides]
    return [], []


def has_symbols(side: Node) -> bool:
    """Whether an expression is more than numbers."""
    return any(node.kind in ("name", "index", "call") for node in side.walk())


def is_space(side: Node) -> bool:
    """Whether a side is a space such as R^n, which has no value."""
    return any(node == Node("constant", value=r"\mathbb{R}") for node in side.walk())


def relations(node: Node, conditions: tuple[Node, ...] = ()) -> Iterator[Ruled]:
    """Yield the relations of a claim, each with the conditions and premises under which it is claimed."""
    first, *rest = node.children
    if node.kind == "chain":
        yield node, conditions
    elif node.kind == "where":
        yield from relations(first, (*conditions, *rest))
    elif node.kind == "all":
        for clause in node.children:
            yield from relations(clause, conditions)
    elif node.kind in ("given", "implies"):
        for clause in rest:
            yield from relations(clause, (*conditions, first))


def placed(evaluation: Evaluation, chain: Node, able: Sequence[Node], conditions: Sequence[Node], question: Asked) -> Evaluation:
    """Return the evaluation at one value of each free index: the first, or the one asked for, at which the formula says something."""
    here = evaluation.here()
    for scope in (*able, chain, *conditions):
        for letter in here.ordered(scope.letters() - here.letters.keys() - DELTA, scope):
            with contextlib.suppress(FormulaError):  # another side may tell its range
                here.enter(letter, scope)
    free = sorted(chain.letters() & here.letters.keys())
    for letter in free:
        if letter in question.places:
            values = here.letters[letter].data.ravel().tolist()
            if question.places[letter] not in values:
                raise ShowError(f"{letter} wants a position from {min(values):g} to {max(values):g}; got {question.places[letter]:g}")
            here.run_over(letter, np.array([question.places[letter]]))
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


def _in_order(formula: Formula, chains: Sequence[Ruled], givens: Mapping[str, Any]) -> Iterator[Ruled]:
    """Yield relations, first those that say what others need; `givens` grow meanwhile."""
    waiting = list(chains)

    def ready(ruled: Ruled) -> bool:
        first, *others = ruled[0].children[::2]
        lacking = set[str]().union(*(_needs(formula, side) for side in others)) - givens.keys()
        return not lacking and (first.kind == "name" or not _needs(formula, first) - givens.keys())

    while waiting:
        chosen = next(filter(ready, waiting), waiting[0])
        waiting.remove(chosen)
        yield chosen


def _needs(formula: Formula, node: Node) -> set[str]:
    """Return the givens in an expression, and in the definitions that it uses."""
    found, waiting, seen = set[str](), [node], set[str]()
    while waiting:
        names = names_in(waiting.pop()) - seen
        seen |= names
        found |= names & formula.given
        waiting += [formula.definitions[name].body for name in names & formula.definitions.keys()]
    return found


def _own_rows(here: Evaluation, chain: Node, formula: Formula, givens: Mapping[str, Any]) -> Iterator[list[Row]]:
    """Yield the lines of the definitions with an index of their own that a relation uses at its own index: L_i = ..."""
    for node in dict.fromkeys(node for node in chain.walk() if node.kind == "entry" and node.children[0].value in formula.definitions):
        name, *indices = node.children
        definition, letters = formula.definitions[name.value], [index.value for index in indices]
        if [letter + OWN for letter in letters] != [*definition.own] or not {*letters} <= chain.letters() & here.letters.keys():
            continue
        if definition.open_letters or _needs(formula, definition.body) - givens.keys():
            continue
        inner = here.here()
        inner.letters, inner.mask = {}, here.everywhere
        for letter in letters:
            inner.run_over(letter + OWN, here.letters[letter].data.ravel())
        own = Node("entry", (name, *(Node("index", value=letter + OWN) for letter in letters)))
        yield _lines(inner, [own, definition.body], formula, givens)


def _chain_rows(here: Evaluation, chain: Node, formula: Formula, givens: Mapping[str, Any]) -> list[Row]:
    """Return the lines of one relation: equal sides beneath each other, others one by one and then compared."""
    sides, signs = chain.children[::2], [sign.value for sign in chain.children[1::2]]
    if {*signs} <= {EQUALS}:
        return _lines(here, sides, formula, givens)
    rows, ends = list[Row](), list[Node]()
    for side in sides:
        worked = Numbers(formula.given - givens.keys())
        if _needs(formula, side) - givens.keys() or is_space(side):
            ends.append(worked.put(here, side) if is_space(side) else in_force(here, side))
            continue
        ends.append(worked.value(here.value(side)))
        rows += _lines(here, [side, side], formula, givens) if has_symbols(side) and side.kind != "index" else []
    if chain.children[1].children:  # a limit: where it goes stands above the arrow
        return rows
    compared = [ends[1]]
    for sign, end in zip(signs[1:], ends[2:], strict=True):
        compared += [Node("relation", value=sign), end]
    return [*rows, (ends[0], signs[0], Node("chain", tuple(compared)) if len(compared) > 1 else ends[1])]


def _lines(here: Evaluation, sides: Sequence[Node], formula: Formula, givens: Mapping[str, Any]) -> list[Row]:
    """Return equal sides beneath each other: the first as a symbol if it is one, the others with numbers, and the result."""
    worked = Numbers(formula.given - givens.keys())
    able = [side for side in sides if not _needs(formula, side) - givens.keys()]
    first, *others = sides
    left = in_force(here, first) if first not in able or _is_symbol(first) else worked.put(here, first)
    rows, before = list[Row](), left
    for side in [side for side in others if has_symbols(side)]:
        worked.lossy = False
        put = worked.put(here, side) if side in able and side.kind not in WHOLE else in_force(here, side)
        if put != before:
            rows.append((None, ABOUT if worked.lossy else EQUALS, put))
            before = put
    result = worked.value(here.value(([side for side in able if has_symbols(side)] or able)[-1]))
    if result != before:
        rows.append((None, ABOUT if worked.lossy else EQUALS, result))
    return [(left, *rows[0][1:]), *rows[1:]] if rows else []


def _is_symbol(side: Node) -> bool:
    """Whether a side is short enough to stay as it is: a symbol, an entry, a function of such, a derivative."""
    if side.value in ("E", "Var", "Cov", r"\lim"):
        return True
    if side.kind in ("call", "entry"):
        return all(part.kind in (*SYMBOLS, "none", "number", "call", "word") and _is_symbol(part) for part in side.children)
    return side.kind in (*SYMBOLS, *WHOLE, "none", "number", "word")


def _learn(here: Evaluation, chain: Node, able: Sequence[Node], givens: dict[str, Any]) -> None:
    """Keep what a relation says of a symbol that has no value yet: later ones may use it."""
    first = chain.children[0]
    if chain.children[1].value != EQUALS or first.kind != "name" or first.value in givens:
        return
    value = here.value(able[-1])
    single = not value.lists and {*value.data.shape[: value.letters]} <= {1}
    if single and value.form in ("scalar", "vector", "row", "column", "matrix"):
        givens[first.value] = Given(value.indexed[(0,) * value.letters], value.form)
