"""What an answer may be: arrays and tuples from a function, numbers, an expression; each becomes plain arrays.

Like `run`, this file knows no right answer and imports nothing of the course.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_CHARACTERS, MOST_LINES = 2_000, 20  # of a line of LaTeX, of a derivation
WIDE_FLOATS = ("float32", "float64", "longdouble", "float128", "float96")


class AnswerError(Exception):
    """The answer is not of the form that was asked for; the text says what was wanted and what came."""


def as_arrays(returned: Any, entry: str) -> tuple[np.ndarray, ...]:
    """Turn what a function returned into a tuple of float32-or-wider arrays.

    `returned`: A NumPy array or scalar, a torch tensor, a Python float, or a tuple or list of these. Returns `arrays`: copies; one
    for each returned item. Raises AnswerError if an item is something else, or of a dtype that is not floating or narrower than
    float32.
    """
    if isinstance(returned, list):  # several results; only the judge knows whether there may be several
        with contextlib.suppress(AnswerError):
            if returned:
                return tuple(_as_array(item, "") for item in returned)
        raise AnswerError(list_refused(entry))
    if not isinstance(returned, tuple):
        return (_as_array(returned, f"{entry} must return"),)
    return tuple(_as_array(item, f"item {n} of the tuple from {entry} must be") for n, item in enumerate(returned))


def list_refused(entry: str) -> str:
    """Return what is said of a list where one array is wanted."""
    return f"{entry} must return a NumPy array or a torch tensor; got list (several results are a tuple)"


def _as_array(value: Any, must: str) -> np.ndarray:
    if _is_torch(value):
        value = value.detach().cpu()
        dtype = str(value.dtype).removeprefix("torch.")
        got = f"a torch tensor of {dtype}"
        value = value.numpy() if dtype in WIDE_FLOATS else value
    elif isinstance(value, (np.ndarray, np.generic, float)) or (type(value) is int and abs(value) < 2**1000):  # a count is a number
        value = np.array(value, np.float64 if type(value) is int else None)
        dtype = value.dtype.name
        got = f"an array of {dtype}"
    else:
        hint = " (is there a return statement?)" if value is None else ""
        raise AnswerError(f"{must} a NumPy array or a torch tensor; got {named(value)}{hint}")
    if dtype not in WIDE_FLOATS:
        raise AnswerError(f"{must} float32 or float64 numbers; got {got}")
    return np.array(value)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _detached(value: Any) -> Any:
    """The value with NumPy arrays in place of its torch tensors."""
    if isinstance(value, (list, tuple)):
        return [_detached(item) for item in value]
    return value.detach().cpu().numpy() if _is_torch(value) else value


def evaluate_value(value: Any, case: Mapping[str, Any], entry: str, symbols: Sequence[str], functions: Sequence[str]) -> np.ndarray:
    """A number, or a list or tuple of numbers; whole numbers are welcome here."""
    try:
        raw = np.asarray(_detached(value))
        if raw.dtype.kind not in "iufO" or any(isinstance(item, (bool, str)) for item in raw.ravel().tolist()):
            raise TypeError
        return np.array([float(item) for item in raw.ravel()]).reshape(raw.shape)
    except (TypeError, ValueError, RuntimeError):
        raise AnswerError(f"{entry} must be a number or a tuple of numbers; got {named(value)}") from None


def evaluate_expression(value: Any, case: Mapping[str, Any], entry: str, symbols: Sequence[str], functions: Sequence[str]) -> np.ndarray:
    """A SymPy expression in the symbols handed out, evaluated at the points of the case by NumPy.

    SymPy's own classes count, not what bears their names: a class derived from one may say what it likes of itself.
    """
    import sympy

    expression = sympy.sympify(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(expression, sympy.Expr):
        raise AnswerError(f"{entry} must be a SymPy expression in {', '.join(symbols)}; got {named(value)}")
    points = {name: np.asarray(case[name], dtype=float) for name in symbols}
    evaluated = _evaluated(expression, points, entry, functions)
    if np.iscomplexobj(evaluated) or np.isnan(evaluated).any():  # NumPy gives NaN for the root of a negative number
        raise AnswerError(f"{entry} is not a real number for some values of its symbols")
    return np.array(np.broadcast_to(evaluated.astype(float), np.broadcast_shapes(*(point.shape for point in points.values()))))


def _evaluated(node: Any, points: Mapping[str, np.ndarray], entry: str, functions: Sequence[str]) -> np.ndarray:
    """An expression at these points, part by part; AnswerError where a part is none that may stand in it."""
    kind, allowed = type(node), sympy_classes(tuple(functions))
    if kind in allowed.symbols:
        if node.name not in points:
            raise AnswerError(f"{entry} must use no symbols but {', '.join(points)}; it holds {node.name}")
        return points[node.name]
    if kind in allowed.numbers:
        return np.asarray(float(node))
    if kind in allowed.operations:
        return np.asarray(allowed.operations[kind](*(_evaluated(part, points, entry, functions) for part in node.args)))
    name = str(kind.__name__)[:60]
    if kind in allowed.questions:
        raise AnswerError(f"{entry} holds a {name}: that restates the question; write the result in {', '.join(points)}")
    made_of = f"arithmetic and {', '.join(functions)}" if functions else "sums, products and powers"
    other = f"a {name} that is not SymPy's own" if any(name == one.__name__ for one in allowed.operations) else name
    raise AnswerError(f"{entry} must be made of {made_of}; it holds {other}")


@dataclass(frozen=True)
class SympyClasses:
    """What an expression may be made of, and what would restate the question; classes derived from these are others."""

    symbols: frozenset[type]
    numbers: frozenset[type]
    operations: Mapping[type, Callable[..., Any]]
    questions: frozenset[type]


@functools.cache
def sympy_classes(functions: tuple[str, ...]) -> SympyClasses:
    """Return SymPy's classes as they are at the first call, to be made before anyone could exchange them.

    `functions`: names of those that may be applied.
    """
    import sympy

    constants = "Zero One NegativeOne Half Infinity NegativeInfinity NaN Pi Exp1 GoldenRatio TribonacciConstant EulerGamma Catalan"
    numbers = [sympy.Integer, sympy.Rational, sympy.Float, *(type(getattr(sympy.S, name)) for name in constants.split())]
    operations = {sympy.Add: lambda *parts: functools.reduce(np.add, parts), sympy.Mul: lambda *parts: functools.reduce(np.multiply, parts)}
    operations |= {sympy.Pow: np.power, **{getattr(sympy, name): getattr(np, name) for name in functions}}
    questions = frozenset([sympy.Derivative, sympy.Integral, sympy.Limit, sympy.Subs])
    return SympyClasses(frozenset([sympy.Symbol, sympy.Dummy]), frozenset(numbers), operations, questions)


def latex_lines(value: Any, entry: str, *, several: bool) -> list[str]:
    """Return the lines of an answer in LaTeX: a text, or with `several` a list of texts; AnswerError if it is none, or too long."""
    lines = list(value) if several and type(value) in (list, tuple) else [value]
    if several and any(line is ... for line in lines):
        raise AnswerError(f"{entry} has no answer yet: your lines go in the place of the dots")
    if (several and type(value) not in (list, tuple)) or any(type(line) is not str for line in lines):
        wrong = next((line for line in lines if type(line) is not str), value)
        wanted = 'a list of lines of LaTeX, [r"...", r"..."]' if several else 'LaTeX between quotation marks, r"..."'
        raise AnswerError(f"{entry} must be {wanted}; got {named(wrong)}")
    if len(lines) > MOST_LINES or any(len(line) > MOST_CHARACTERS for line in lines):
        raise AnswerError(f"{entry} must have at most {MOST_CHARACTERS:,} characters a line, and {MOST_LINES} lines")
    if not all(map(str.strip, lines)) or not lines:
        raise AnswerError(f"{entry} has no answer yet" if not "".join(lines).strip() else f"{entry} holds an empty line")
    return lines


def named(value: Any) -> str:
    """Name a value's type, and a short value itself, for a message."""
    kind = type(value)
    if kind.__module__.partition(".")[0] not in ("builtins", "sympy"):
        return f"{kind.__module__}.{kind.__name__}"
    return f"{kind.__name__} {value!r:.60}" if kind in (bool, int, float, str, bytes) else kind.__name__
