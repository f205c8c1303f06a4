"""Rules that every registered equation obeys, beyond being true. Each gate returns what is wrong, in words."""

import ast
from collections.abc import Callable
from functools import partial

import sympy

from attn_course.equations.claims import Equal, claims_of
from attn_course.equations.errors import EquationError, Refuted
from attn_course.equations.mutants import mutants
from attn_course.equations.sources import calls_a_solver, function_source, local_values, namespace, sites, written_out
from attn_course.equations.stated import Stated


def hold_problems(equation: Stated) -> list[str]:
    """The check confirms the equation; if not, an error says why."""
    equation.check()
    return []


def wrong_form_problems(equation: Stated) -> list[str]:
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


def mutant_problems(equation: Stated) -> list[str]:
    """The check rejects every mutant that means something else, and the formula as written has at least one."""
    judged = mutants(equation)
    problems = [f"Eq. {equation.label}: the check misses the mutant {mutant.change}" for mutant in judged if mutant.fate == "survived"]
    if not any(mutant.fate == "rejected" and mutant.in_source for mutant in judged):
        problems.append(f"Eq. {equation.label} has no mutant that means something else: spell out its right side")
    return problems


def same_sides_problems(equation: Stated) -> list[str]:
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


def statement_problems(equation: Stated) -> list[str]:
    """What only a statement can have wrong."""
    found = [] if equation.scope else [f"Eq. {equation.label} does not say what exactly is checked: it has no scope"]
    if does_not_hold := _tried(equation, partial(hold_problems, equation)):
        return found + does_not_hold
    for gate in (wrong_form_problems, mutant_problems, same_sides_problems):
        found += _tried(equation, partial(gate, equation))
    return found


def _tried(equation: Stated, gate: Callable[[], list[str]]) -> list[str]:
    """What a gate says; a statement may also break in any way."""
    try:
        return gate()
    except EquationError as error:
        return [str(error)]
    except Exception as error:
        return [f"Eq. {equation.label} cannot be evaluated: {type(error).__name__}: {error}"]
