"""Break the right side of an equation in small ways: its check must notice each of them.

A mutant that has the value of the original (sorting the terms of a sum, say) is equivalent and does not count. Nor does one that
cannot be evaluated, or one that only weakens a bound.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attn_course.equations.claims import Chain, Claim, Equal, Limit, Moment, claims_of
from attn_course.equations.errors import Malformed, Refuted, Unproved
from attn_course.equations.mutations import mutations, replaced
from attn_course.equations.sources import Site, function_source, local_values, namespace, sites, written_out
from attn_course.equations.stated import Stated as Equation

Fate = Literal["rejected", "equivalent", "weaker", "invalid", "survived"]


@dataclass(frozen=True)
class Mutant:
    """One changed right side, and what the equation's check made of it."""

    change: str
    fate: Fate
    in_source: bool
    """True if the formula was changed as it is written; False if only its value was (negated, moved, reversed)."""


@dataclass
class _Recorded:
    """A claim as written, with the claims its mutants make at the same point."""

    claims: list[Claim]
    mutants: dict[str, list[Claim] | None]


def mutants(equation: Equation) -> list[Mutant]:
    """Mutate an equation in every way known here and judge each mutant with the equation's own check.

    Returns `judged`: those that "survived" are mistakes the check would miss.
    """
    tried: dict[tuple[str, bool], list[tuple[list[Claim], list[Claim] | None]]] = {}
    for recorded in _run_recorded(equation):
        for change, claims in recorded.mutants.items():
            tried.setdefault((change, True), []).append((recorded.claims, claims))
        for change, changed in _changed_values(recorded.claims):
            tried.setdefault((change, False), []).append((recorded.claims, changed))
    return [Mutant(change, _fate(equation, points), in_source) for (change, in_source), points in tried.items()]


def _fate(equation: Equation, points: list[tuple[list[Claim], list[Claim] | None]]) -> Fate:
    invalid = False
    for _, claims in points:
        try:
            for claim in claims or []:
                equation.judge(claim)
            invalid |= claims is None
        except Refuted:
            return "rejected"
        except Unproved:
            pass  # equivalent, or a survivor: decided below
        except Exception:  # Malformed, or SymPy gives up on an integral over e^x, say
            invalid = True
    if invalid:
        return "invalid"
    pairs = [(old, new) for originals, claims in points for old, new in zip(originals, claims or [], strict=True)]
    if any(isinstance(old, Chain) and _shapes(old) != _shapes(new) for old, new in pairs):
        return "invalid"
    if all(_same(equation, old, new) for old, new in pairs):
        return "equivalent"
    return "weaker" if all(isinstance(old, Chain) and _is_weaker(old, new) for old, new in pairs) else "survived"


def _same(equation: Equation, old: Claim, new: Claim) -> bool:
    """Judge "old right side = new right side"."""
    if isinstance(old, Chain):
        assert isinstance(new, Chain)
        pairs = [Equal(a, b, scale=old.scale) for a, b in zip(old.terms, new.terms, strict=True)]
    elif isinstance(old, Equal):
        assert isinstance(new, Equal)
        pairs = [Equal(old.right, new.right, scale=old.scale)]
    else:
        pairs = [Equal(_expected(old), _expected(new))]
    try:
        for pair in pairs:
            equation.judge(pair)
    except Unproved:
        return True  # equal to 30 digits at random points
    except (Refuted, Malformed):
        return False
    return True


def _expected(claim: Claim) -> Any:
    return claim.target if isinstance(claim, Limit) else claim.expected  # type: ignore[union-attr]


def _shapes(chain: Claim) -> list[tuple[int, ...]]:
    assert isinstance(chain, Chain)
    return [np.shape(term) for term in chain.terms]


def _is_weaker(old: Chain, new: Claim) -> bool:
    """Tell whether the new chain says less: only its outer terms moved, and outwards."""
    assert isinstance(new, Chain)
    middle = all(np.array_equal(a, b) for a, b in zip(old.terms[1:-1], new.terms[1:-1], strict=True))
    return middle and bool(np.all(np.asarray(new.terms[0]) <= old.terms[0]) and np.all(np.asarray(new.terms[-1]) >= old.terms[-1]))


# ---- values: changes that need no source


def _changed_values(claims: list[Claim]) -> Iterator[tuple[str, list[Claim]]]:
    for number, claim in enumerate(claims):
        for change, new in _changed_value(claim):
            yield f"{change} (equation {number + 1} of the line)", [*claims[:number], new, *claims[number + 1 :]]


def _changed_value(claim: Claim) -> Iterator[tuple[str, Claim]]:
    if isinstance(claim, Equal):
        for change, right in _changed_side(claim.right):
            yield change, Equal(claim.left, right, claim.scale)
    elif isinstance(claim, Limit):
        for change, target in _changed_side(claim.target):
            yield change, Limit(claim.values, target, claim.closeness)
    elif isinstance(claim, Moment):
        scale = claim.expected if claim.scale is None else claim.scale
        off = np.asarray(claim.expected) + 10 * claim.resolution * np.abs(scale)
        for change, expected in [*_changed_side(claim.expected), ("moved by ten resolutions", off)]:
            yield change, Moment(claim.samples, expected, claim.resolution, claim.scale)
    else:
        parts = [part for pair in zip(claim.terms[::-1], [*claim.signs, ""], strict=True) for part in pair][:-1]
        yield "bounds in reverse order", Chain(*parts, tight=claim.tight, scale=claim.scale)


def _changed_side(side: Any) -> Iterator[tuple[str, Any]]:
    yield "sign of the right side", -side
    if hasattr(side, "applyfunc"):  # a SymPy matrix
        yield "right side plus one", side.applyfunc(lambda entry: entry + 1)
        yield "entries in reverse order", side[::-1, ::-1]
    else:
        yield "right side plus one", side + 1
        if np.ndim(side):
            yield "entries in reverse order", np.flip(side)


# ---- source: changes in the formula as it is written


def _run_recorded(equation: Equation) -> list[_Recorded]:
    """Run a statement once, with every mutant of every site evaluated beside the original."""
    definition = function_source(equation.statement)
    values = local_values(definition)
    found = sites(definition)
    rng = equation.rng()
    for number, site in enumerate(found):
        new = [(target, change) for target in site.targets for change in mutations(written_out(target, values, deep=False))]
        site.node.value = _record_call(number, site, new)
    module = ast.fix_missing_locations(ast.Module([definition], []))
    scope = {**namespace(equation.statement), "_record": lambda *call: _record(rng, *call)}
    exec(compile(module, f"<mutants of Eq. {equation.label}>", "exec"), scope)  # our own source, changed by our own code
    function = scope[definition.name]
    result = function() if equation.kind == "symbolic" else function(rng)
    return list(result) if not isinstance(result, _Recorded) else [result]


def _record_call(number: int, site: Site, new: list[tuple[ast.expr, tuple[str, ast.expr]]]) -> ast.expr:
    """Write `_record(number, original, ("change", lambda: mutated), ...)`, the left side evaluated once and shared."""
    shared: dict[int, ast.expr] = {id(site.left): ast.Name("_left", ast.Load())} if site.left else {}
    original = _of_left(replaced(site.value, shared))
    thunks: list[ast.expr] = []
    for target, (change, expression) in new:
        body = replaced(site.value, {**shared, id(target): expression})
        thunks.append(ast.Tuple([ast.Constant(change), _of_left(body)], ast.Load()))
    left = site.left or ast.Constant(None)
    return ast.Call(ast.Name("_record", ast.Load()), [ast.Constant(number), left, original, *thunks], [])


def _record(rng: np.random.Generator, number: int, left: Any, original: Callable[..., Any], *thunks: Any) -> _Recorded:
    recorded = _Recorded(list(claims_of(original(left))), {})
    state = rng.bit_generator.state
    for change, thunk in thunks:
        try:
            with np.errstate(all="ignore"):
                claims = list(claims_of(thunk(left)))
            valid = len(claims) == len(recorded.claims)
        except Exception:  # a mutant may fail in any way: a shape, an index, a type
            valid = False
        recorded.mutants[f"{change} (statement {number + 1})"] = claims if valid else None
        rng.bit_generator.state = state
    return recorded


def _of_left(body: ast.expr) -> ast.Lambda:
    left = ast.arguments(posonlyargs=[], args=[ast.arg("_left")], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(left, body)
