"""Rules that every registered equation obeys, beyond being true. Each gate returns what is wrong, in words."""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from attn_course import numbers
from attn_course.equations.claims import Claim, Equal, claims_of
from attn_course.equations.core import Equation, Registry
from attn_course.equations.errors import EquationError, Malformed, Refuted, UnknownEquation
from attn_course.equations.mutants import mutants
from attn_course.equations.rows import ROWS, TRAPS
from attn_course.equations.sources import calls_a_solver, function_source, local_values, namespace, sites, written_out


def wrong_form_problems(equation: Equation) -> list[str]:
    """Each equation has a planted wrong form, and the check refutes them all with a counterexample."""
    problems = [] if equation.wrongs else [f"Eq. {equation.label} has no planted wrong form"]
    for wrong in equation.wrongs:
        try:
            equation.check(wrong.statement)
        except Refuted:
            continue
        except EquationError as error:
            problems.append(f'Eq. {equation.label}: the wrong form "{wrong.name}" is not refuted but fails otherwise: {error}')
        else:
            problems.append(f'Eq. {equation.label}: the wrong form "{wrong.name}" passes the check')
    return problems


def mutant_problems(equation: Equation) -> list[str]:
    """The check rejects every mutant that means something else, and the formula as written has at least one."""
    judged = mutants(equation)
    problems = [f"Eq. {equation.label}: the check misses the mutant {mutant.change}" for mutant in judged if mutant.fate == "survived"]
    if not any(mutant.fate == "rejected" and mutant.in_source for mutant in judged):
        problems.append(f"Eq. {equation.label} has no mutant that means something else: spell out its right side")
    return problems


def same_sides_problems(equation: Equation) -> list[str]:
    """The two sides are not the same expression, neither as written nor, unless the left one is computed, as values."""
    definition = function_source(equation.statement)
    values = local_values(definition)
    computed = True
    problems = []
    for site in sites(definition):
        left_nodes = [site.left] if site.left is not None else list(site.targets[:-1])
        right_nodes = list(site.targets) if site.left is not None else list(site.targets[1:])
        if site.left is not None and len(site.targets) > 1:  # several equations in a line; the left side may be one call
            left_nodes = list(site.left.elts) if isinstance(site.left, ast.Tuple) else left_nodes * len(site.targets)
        for left, right in zip(left_nodes, right_nodes, strict=True):
            left, right = written_out(left, values), written_out(right, values)
            computed &= calls_a_solver(left, namespace(equation.statement))
            if ast.dump(left) == ast.dump(right):
                problems.append(f"Eq. {equation.label}: both sides are {ast.unparse(left)}")
    if equation.kind == "symbolic" and not computed:
        claims = [claim for claim in claims_of(equation.run()) if isinstance(claim, Equal)]
        alike = [claim.right for claim in claims if sympy.sympify(claim.left) == sympy.sympify(claim.right)]
        problems += [f"Eq. {equation.label}: both sides are the expression {side}; compute the left one independently" for side in alike]
    return problems


def follows_problems(equation: Equation, registry: Registry) -> list[str]:
    """The left side of an equation is the right side of the one it follows."""
    if equation.follows is None:
        return []
    try:
        followed = registry.get_equation(equation.follows)
    except UnknownEquation as error:
        return [f"Eq. {equation.label} follows an unknown equation: {error}"]
    if _place(followed) >= _place(equation):
        return [f"Eq. {equation.label} follows Eq. {followed.label}, which does not come before it"]
    ends, starts = _first_sides(followed)[1], _first_sides(equation)[0]
    say = f"Eq. {equation.label} follows Eq. {followed.label}, but its left side is not the right side of that one"
    if followed.kind != equation.kind or len(ends) != len(starts):
        return [f"{say}: {len(ends)} entries ({followed.kind}) against {len(starts)} ({equation.kind})"]
    try:
        for end, start in zip(ends, starts, strict=True):
            if equation.kind == "symbolic" and _canonical(end) != _canonical(start):
                return [f"{say}: {end} against {start}"]
            equation.judge(Equal(start, end))
    except EquationError as error:
        return [f"{say}: {error}"]
    return []


def _first_sides(equation: Equation) -> tuple[list[Any], list[Any]]:
    """Return the entries of the left and of the right side of an equation's first claim."""
    claim: Claim = next(iter(claims_of(equation.run())))
    if not isinstance(claim, Equal):
        raise Malformed(f"Eq. {equation.label} has no left and right side to follow")
    if equation.kind == "symbolic":
        left, right = (list(side) if hasattr(side, "applyfunc") else [side] for side in (claim.left, claim.right))
    else:
        left, right = (list(np.ravel(side)) for side in (claim.left, claim.right))
    return left, right


def _canonical(side: Any) -> Any:
    """Multiply out and do what is left undone, no more: algebra that a reader does not notice."""
    return sympy.expand(sympy.sympify(side).doit(), power_exp=False)


def reference_problems(equation: Equation, registry: Registry) -> list[str]:
    """What an equation uses comes before it; its rows and traps exist."""
    problems = []
    for label in equation.uses:
        try:
            used = registry.get_equation(label)
        except UnknownEquation as error:
            problems.append(f"Eq. {equation.label} uses an unknown equation: {error}")
            continue
        if _place(used) >= _place(equation):
            problems.append(f"Eq. {equation.label} uses Eq. {label}, which does not come before it")
    problems += [f"Eq. {equation.label} names the unknown row {row!r}" for row in equation.rows if row not in ROWS]
    problems += [f"Eq. {equation.label} names the unknown trap {trap!r}" for trap in equation.traps if trap not in TRAPS]
    if not equation.rows:
        problems.append(f"Eq. {equation.label} serves no row of the mission")
    if "\\tag" in equation.latex or "\\label" in equation.latex:
        problems.append(f"Eq. {equation.label}: the LaTeX holds its own \\tag or \\label; the lesson adds it")
    if not equation.doc:
        problems.append(f"Eq. {equation.label} does not say why it holds: its statement has no docstring")
    return problems


def _place(equation: Equation) -> tuple[int, int]:
    return numbers.place("labels", equation.label)


EQUATION_GATES: dict[str, Callable[[Equation], list[str]]] = {
    "wrong forms are refuted": wrong_form_problems,
    "mutants are rejected": mutant_problems,
    "the sides differ": same_sides_problems,
}
REFERENCE_GATES: dict[str, Callable[[Equation, Registry], list[str]]] = {
    "follows": follows_problems,
    "uses, rows and traps": reference_problems,
}
