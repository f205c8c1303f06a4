"""Rules that every registered equation obeys, beyond being true. Each gate returns what is wrong, in words."""

import re

from attn_course import numbers
from attn_course.equations.attack import all_changes, mutants
from attn_course.equations.core import REGISTRY, Equation, Registry
from attn_course.equations.errors import EquationError, UnknownEquation
from attn_course.equations.index import coverage
from attn_course.equations.retyped import retyped
from attn_course.equations.rows import ROWS, TRAPS

_PAIRS = {
    "{ }": (r"(?<!\\){", r"(?<!\\)}"),
    r"\{ \}": (r"\\{", r"\\}"),
    r"\bigl \bigr": (r"\\[bB]igg?l", r"\\[bB]igg?r"),
    r"\begin \end": (r"\\begin\{", r"\\end\{"),
}


def hold_problems(equation: Equation) -> list[str]:
    """The equation holds as printed; if not, the counterexample or the place."""
    try:
        equation.check()
    except EquationError as error:
        return [str(error)]
    except Exception as error:
        return [f"Eq. {equation.label} cannot be evaluated: {type(error).__name__}: {error}"]
    return []


def wrong_form_problems(equation: Equation) -> list[str]:
    """Each equation has a planted wrong form, of its own symbols, and all of them are rejected."""
    problems = [] if equation.wrongs or equation.kind == "transcribed" else [f"Eq. {equation.label} has no planted wrong form"]
    for wrong in equation.wrongs:
        try:
            equation.check(wrong.latex)
        except EquationError:
            continue
        problems.append(f'Eq. {equation.label}: the wrong form "{wrong.name}" holds')
    return problems


def mutant_problems(equation: Equation, every: int = 1) -> list[str]:
    """Every small change of the formula, or one in `every`, is rejected, means the same, or is named with the property it rests on."""
    if equation.kind == "transcribed":
        return []
    judged = list(mutants(equation, every))
    survived = {str(mutant.change) for mutant in judged if mutant.fate == "survived"}
    problems = [
        f"Eq. {equation.label}: what is given cannot tell it from the change {change}"
        for change in sorted(survived - {*equation.equivalent})
    ]
    problems += [
        f"Eq. {equation.label}: equivalent={{...}} names {change}, which does not survive"
        for change in equation.equivalent
        if change not in survived
    ]
    if not any(mutant.fate in ("refuted", "malformed") for mutant in judged):
        problems.append(f"Eq. {equation.label}: no change of the formula is rejected")
    return problems


def retyping_problems(equation: Equation) -> list[str]:
    """What is claimed is not computed from the other givens by the operators of the formula."""
    if equation.kind != "claim":
        return []
    try:
        found = retyped(equation)
    except EquationError as error:
        return [f"Eq. {equation.label}: {error}"]
    return [
        f"Eq. {equation.label}: {name} is only operators on the other givens: take another way, or call it a definition" for name in found
    ]


def share_problems(registry: Registry = REGISTRY) -> list[str]:
    """Few equations are definitions or transcribed, and few changes are excused by hand."""
    equations = registry.all_equations()
    changed = sum(1 for equation in equations if equation.kind != "transcribed" for _ in all_changes(equation))
    shares = [
        ("equations are definitions", sum(equation.kind == "definition" for equation in equations), 0.15 * len(equations)),
        ("equations are transcribed", sum(equation.kind == "transcribed" for equation in equations), 0.02 * len(equations)),
        ("changes are excused by hand", sum(len(equation.equivalent) for equation in equations), 0.01 * changed),
    ]
    return [f"{count} {what}; at most {most:.0f} are allowed" for what, count, most in shares if count > most]


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
        f"Eq. {equation.label} names the unknown topic {topic!r}; topics go from A1 to N1" for topic in equation.topics if topic not in ROWS
    ]
    problems += [f"Eq. {equation.label} names the unknown trap {trap!r}" for trap in equation.traps if trap not in TRAPS]
    if not equation.topics:
        problems.append(f"Eq. {equation.label} serves no topic: wanted one or more in serves=")
    if "\\tag" in equation.latex or "\\label" in equation.latex:
        problems.append(f"Eq. {equation.label}: the LaTeX holds its own \\tag or \\label; the lesson adds it")
    if not equation.why:
        problems.append(f"Eq. {equation.label} does not say why it holds: wanted a line below the formula")
    problems += [f"Eq. {equation.label}: the LaTeX opens and closes {kind} unequally often" for kind in unpaired(equation.latex)]
    return problems


def unpaired(latex: str) -> list[str]:
    """Return the kinds of brackets that do not open as often as they close, which MathJax and KaTeX refuse or draw in red."""
    return [kind for kind, (opening, closing) in _PAIRS.items() if len(re.findall(opening, latex)) != len(re.findall(closing, latex))]


def _place(equation: Equation) -> tuple[int, int]:
    return numbers.place("labels", equation.label)


def equation_problems(equation: Equation, registry: Registry = REGISTRY, every: int = 1) -> list[str]:
    """Return everything that is wrong with an equation: with what it says of itself, that it does not hold, that its check is blind.

    `every`: one in so many of its small changes is tried.
    """
    found = reference_problems(equation, registry)
    if does_not_hold := hold_problems(equation):
        return found + does_not_hold
    return found + wrong_form_problems(equation) + mutant_problems(equation, every) + retyping_problems(equation)


def coverage_problems(lesson: str, registry: Registry = REGISTRY) -> list[str]:
    """Each topic and trap of a lesson is dealt with by an equation, once all lessons that share it are written."""
    owed = [entry for entry in coverage(registry) if lesson in entry["lessons"] and entry["state"] == "missing"]
    return [f"no equation deals with {entry['id']} ({entry['about']})" for entry in owed]
