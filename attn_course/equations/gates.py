"""Rules that every registered equation obeys, beyond being true. Each gate returns what is wrong, in words."""

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sympy

from attn_course import numbers
from attn_course.equations.claims import Claim, Equal, claims_of
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.errors import EquationError, Malformed, Refuted, UnknownEquation
from attn_course.equations.index import coverage
from attn_course.equations.mutants import mutants
from attn_course.equations.rows import ROWS, TRAPS
from attn_course.equations.sources import calls_a_solver, function_source, local_values, namespace, sites, written_out

_PAIRS = {
    "{ }": (r"(?<!\\){", r"(?<!\\)}"),
    r"\{ \}": (r"\\{", r"\\}"),
    r"\bigl \bigr": (r"\\[bB]igg?l", r"\\[bB]igg?r"),
    r"\begin \end": (r"\\begin\{", r"\\end\{"),
}


def hold_problems(equation: Equation) -> list[str]:
    """The check confirms the equation; if not, an error says why."""
    equation.check()
    return []


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
    """What an equation uses comes before it; its topics and traps exist, and its words and LaTeX are whole."""
    problems = []
    for label in equation.uses:
        try:
            used = registry.get_equation(label)
        except UnknownEquation as error:
            problems.append(f"Eq. {equation.label} uses an unknown equation: {error}")
            continue
        if _place(used) >= _place(equation):
            problems.append(f"Eq. {equation.label} uses Eq. {label}, which does not come before it")
    problems += [
        f"Eq. {equation.label} names the unknown topic {row!r}; topics go from A1 to N1" for row in equation.rows if row not in ROWS
    ]
    problems += [f"Eq. {equation.label} names the unknown trap {trap!r}" for trap in equation.traps if trap not in TRAPS]
    if not equation.rows:
        problems.append(f"Eq. {equation.label} serves no topic: wanted one or more in rows=[...]")
    if "\\tag" in equation.latex or "\\label" in equation.latex:
        problems.append(f"Eq. {equation.label}: the LaTeX holds its own \\tag or \\label; the lesson adds it")
    if not equation.doc:
        problems.append(f"Eq. {equation.label} does not say why it holds: its statement has no docstring")
    if not equation.scope:
        problems.append(f"Eq. {equation.label} does not say what exactly is checked: it has no scope")
    problems += [f"Eq. {equation.label}: the LaTeX opens and closes {kind} unequally often" for kind in unpaired(equation.latex)]
    return problems


def unpaired(latex: str) -> list[str]:
    """Return the kinds of brackets that do not open as often as they close, which MathJax and KaTeX refuse or draw in red."""
    return [kind for kind, (opening, closing) in _PAIRS.items() if len(re.findall(opening, latex)) != len(re.findall(closing, latex))]


def _place(equation: Equation) -> tuple[int, int]:
    return numbers.place("labels", equation.label)


def equation_problems(equation: Equation, registry: Registry = REGISTRY) -> list[str]:
    """Return everything that is wrong with an equation: with what it says of itself, that it does not hold, that its check is blind."""
    found = reference_problems(equation, registry)
    if does_not_hold := _tried(equation, partial(hold_problems, equation)):
        return found + does_not_hold
    for gate in (wrong_form_problems, mutant_problems, same_sides_problems):
        found += _tried(equation, partial(gate, equation))
    return found + _tried(equation, partial(follows_problems, equation, registry))


def _tried(equation: Equation, gate: Callable[[], list[str]]) -> list[str]:
    """What a gate says; a statement may also break in any way."""
    try:
        return gate()
    except EquationError as error:
        return [str(error)]
    except Exception as error:
        return [f"Eq. {equation.label} cannot be evaluated: {type(error).__name__}: {error}"]


def coverage_problems(lesson: str, registry: Registry = REGISTRY) -> list[str]:
    """Each topic and trap of a lesson is dealt with by an equation, once all lessons that share it are written."""
    owed = [entry for entry in coverage(registry) if lesson in entry["lessons"] and entry["state"] == "missing"]
    return [f"no equation deals with {entry['id']} ({entry['about']})" for entry in owed]
