"""Judge an equation between SymPy expressions: look for a counterexample first, then for a proof."""

import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import sympy
from sympy.core.function import AppliedUndef, UndefinedFunction

from attn_course.equations.claims import Claim, Equal
from attn_course.equations.errors import Malformed, Refuted, Unproved

Expr: TypeAlias = Any  # SymPy has no type hints of its own
Point: TypeAlias = dict[Expr, Expr]

DIGITS = 30
POINTS = 4
CLOSE = sympy.Float("1e-20", DIGITS)


def judge(claim: Claim) -> None:
    """Raise `Refuted` with a counterexample, or `Unproved`, unless both sides are the same function."""
    if not isinstance(claim, Equal):
        raise Malformed(f"a symbolic statement gives (left, right); got {type(claim).__name__}")
    pairs = list(paired_entries(claim.left, claim.right))
    screen([(left, right) for _, left, right in pairs], [label for label, _, _ in pairs])
    for label, left, right in pairs:
        if not proves_zero(left - right):
            raise Unproved(f"no counterexample found, but the difference does not simplify to zero{label}")


def paired_entries(left: Any, right: Any) -> Iterator[tuple[str, Expr, Expr]]:
    """Match the entries of two sides; a matrix only matches a matrix of its shape."""
    left, right = sympy.sympify(left), sympy.sympify(right)
    shapes = getattr(left, "shape", None), getattr(right, "shape", None)
    if shapes[0] != shapes[1]:
        raise Malformed(f"the sides differ in shape: {shapes[0] or 'scalar'} and {shapes[1] or 'scalar'}")
    if shapes[0] is None:
        if not isinstance(left, sympy.Expr) or not isinstance(right, sympy.Expr):
            raise Malformed(f"a symbolic side is an expression or a matrix; got {left} and {right}")
        yield "", left, right
        return
    for row, column in ((i, j) for i in range(left.rows) for j in range(left.cols)):
        yield f" at entry ({row}, {column})", left[row, column], right[row, column]


def screen(pairs: list[tuple[Expr, Expr]], labels: list[str], seed: int = 0) -> None:
    """Compare both sides at random points that respect the symbols' assumptions, with 30 digits."""
    rng = random.Random(seed)
    functions = {function for pair in pairs for side in pair for function in _undefined(side)}
    stand_ins = {function: _stand_in(rng) for function in sorted(functions, key=str)}
    ready = [tuple(_evaluated(side, stand_ins) for side in pair) for pair in pairs]
    symbols = sorted({symbol for pair in ready for side in pair for symbol in side.free_symbols}, key=str)
    good = 0
    for _ in range(4 * POINTS):
        point = {symbol: _draw(symbol, rng) for symbol in symbols}
        values = [tuple(_value(side, point) for side in pair) for pair in ready]
        if any(value is None for pair in values for value in pair):
            continue  # a pole: this point says nothing
        for label, (left, right) in zip(labels, values, strict=True):
            if abs(left - right) > CLOSE * max(1, abs(left), abs(right)):
                at = ", ".join(f"{symbol} = {float(value):g}" for symbol, value in point.items())
                raise Refuted(f"left side {_short(left)}, right side {_short(right)}{label}{' where ' + at if at else ''}")
        good += 1
        if good == POINTS or not symbols:
            return
    raise Malformed("no points were found at which both sides are finite numbers")


def proves_zero(difference: Expr) -> bool:
    """Simplify a difference to exactly zero, with the cheapest step that does it."""
    steps = (lambda e: e, sympy.expand, _algebraic, sympy.simplify)
    difference = difference.doit()
    return any(step(difference) == 0 for step in steps)


def _algebraic(expression: Expr) -> Expr:
    """Write every exponent v as log(V), V > 0: exponentials turn into powers, and fractions and logs can be expanded."""
    expression = expression.rewrite([sympy.sinh, sympy.cosh, sympy.tanh], sympy.exp)
    maxima = expression.atoms(sympy.Max, sympy.Min, sympy.Abs)
    expression = expression.xreplace({atom: sympy.Dummy(real=True) for atom in maxima})
    exponents = {symbol for power in expression.atoms(sympy.exp) for symbol in power.args[0].free_symbols if symbol.is_real}
    logs = {symbol: sympy.log(sympy.Dummy(positive=True)) for symbol in sorted(exponents, key=str) if not symbol.is_positive}
    expression = sympy.expand_power_exp(expression.xreplace(logs))
    expression = expression.replace(
        lambda part: isinstance(part, sympy.log),
        lambda part: sympy.expand_log(sympy.log(sympy.factor(sympy.together(part.args[0]))), deep=True),
    )
    numerator, _ = sympy.fraction(sympy.together(sympy.powsimp(expression)))
    return sympy.powsimp(sympy.expand(numerator))


def _undefined(side: Expr) -> set[UndefinedFunction]:
    return {part.func for part in side.atoms(AppliedUndef)}


def _stand_in(rng: random.Random) -> Expr:
    """A smooth positive function with nothing special about it, for a function the statement leaves open."""
    x = sympy.Dummy(real=True)
    a, b, c = (sympy.Rational(rng.randint(20, 90), 100) for _ in range(3))
    return sympy.Lambda(x, sympy.exp(a * x + b * sympy.sin(x) + c))


def _evaluated(side: Expr, stand_ins: dict[UndefinedFunction, Expr]) -> Expr:
    for function, concrete in stand_ins.items():
        side = side.replace(function, concrete)
    return side.doit(integrals=False)  # what is left of integrals is computed numerically


def _draw(symbol: Expr, rng: random.Random) -> Expr:
    if symbol.is_integer:
        return sympy.Integer(rng.randint(1, 6))
    size = sympy.Float(sympy.Rational(rng.randint(21, 199), 100), DIGITS + 10)
    return size if symbol.is_nonnegative or (not symbol.is_negative and rng.random() < 0.5) else -size


def _value(side: Expr, point: Point) -> Expr:
    """Return the number a side has at a point, or None at a pole."""
    value = sympy.N(side.xreplace(point), DIGITS)
    if value.has(sympy.nan, sympy.zoo, sympy.oo):
        return None
    if not value.is_number:
        raise Malformed(f"{value} is not a number: the side holds something that cannot be evaluated")
    return value


def _short(value: Expr) -> str:
    return f"{complex(value):.6g}" if value.has(sympy.I) else f"{float(value):.10g}"
