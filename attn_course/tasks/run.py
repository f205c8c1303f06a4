"""Run an untrusted answer on cases, and return plain arrays or one sentence about what went wrong.

This file knows no right answer and imports nothing of the course, so that a confined worker can load it alone.
"""

import contextlib
import copy
import ctypes
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TIME_LIMIT_S = 10.0
WIDE_FLOATS = ("float32", "float64", "longdouble", "float128", "float96")


@dataclass(frozen=True)
class Result:
    """What one case gave: arrays, or the problem that kept it from giving any.

    Attributes
    ----------
    arrays : tuple of ndarray or None
        What the answer returned; None if there was a problem.
    problem : str or None
        One sentence for the learner.
    changed : str or None
        The input that the answer wrote to, if any.
    """

    arrays: tuple[np.ndarray, ...] | None = None
    problem: str | None = None
    changed: str | None = None


class AnswerError(Exception):
    """The answer is not of the form that was asked for; the text says what was wanted and what came."""


class TimeIsUp(BaseException):
    """Raised inside an answer that runs too long; no Exception, so that `except Exception` does not swallow it."""


def run(
    answer: Any,
    inputs: Sequence[Mapping[str, Any]],
    *,
    kind: str,
    entry: str,
    symbols: Sequence[str] = (),
    functions: Sequence[str] = (),
    time_limit_s: float = TIME_LIMIT_S,
) -> list[Result]:
    """Put an answer through every case.

    Parameters
    ----------
    answer : object
        The learner's function (kinds write and repair), expression (derive) or value (predict, figure).
    inputs : sequence of mapping
        For each case its inputs by name; functions receive them by position.
    kind, entry, symbols, functions
        Of the task; `entry` is the name used in messages.
    time_limit_s : float, optional
        Longest time for one case, in seconds.

    Returns
    -------
    results : list of Result
        One for each case. Nothing the answer does raises here, except an interrupt from the keyboard.
    """
    if answer is None or answer is Ellipsis:
        return [Result(problem=f"{entry} has no answer yet")] * len(inputs)
    if kind in ("write", "repair"):
        if not callable(answer):
            return [Result(problem=f"{entry} must be a function; got {_named(answer)}")] * len(inputs)
        return [_run_function(answer, case, entry, time_limit_s) for case in inputs]
    evaluate = _evaluate_expression if kind == "derive" else _evaluate_value
    results = []
    for case in inputs:
        try:
            with _time_limit(time_limit_s), _quiet():
                results.append(Result((evaluate(answer, case, entry, symbols, functions),)))
        except AnswerError as error:
            results.append(Result(problem=str(error)))
        except TimeIsUp:
            results.append(Result(problem=f"{entry} could not be evaluated within {time_limit_s:g} s"))
        except Exception as error:
            results.append(Result(problem=f"{entry} could not be evaluated: {type(error).__name__}: {error}"))
    return results


def _run_function(function: Callable[..., Any], case: Mapping[str, Any], entry: str, time_limit_s: float) -> Result:
    given = copy.deepcopy(dict(case))
    try:
        with _time_limit(time_limit_s), _quiet():
            arrays = as_arrays(function(*given.values()), entry)
    except AnswerError as error:
        return Result(problem=str(error))
    except NotImplementedError:
        return Result(problem=f"{entry} has no answer yet: replace `raise NotImplementedError()`")
    except TimeIsUp:
        return Result(problem=f"{entry} did not return within {time_limit_s:g} s: is there a loop that never ends?")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: an answer must not end the kernel
        return Result(problem=f"{entry} raised {type(error).__name__}: {_one_line(error)}{_where(error)}")
    changed = next((name for name, before in case.items() if not _same(before, given[name])), None)
    return Result(arrays, changed=changed)


def as_arrays(returned: Any, entry: str) -> tuple[np.ndarray, ...]:
    """Turn what a function returned into a tuple of float32-or-wider arrays.

    Parameters
    ----------
    returned : object
        A NumPy array or scalar, a torch tensor, a Python float, or a tuple of these.
    entry : str
        The function's name, for messages.

    Returns
    -------
    arrays : tuple of ndarray
        Copies; one for each returned item.

    Raises
    ------
    AnswerError
        If an item is something else, or of a dtype that is not floating or narrower than float32.
    """
    if not isinstance(returned, tuple):
        return (_as_array(returned, f"{entry} must return"),)
    return tuple(_as_array(item, f"item {n} of the tuple from {entry} must be") for n, item in enumerate(returned))


def _as_array(value: Any, must: str) -> np.ndarray:
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        value = value.detach().cpu()
        dtype = str(value.dtype).removeprefix("torch.")
        got = f"a torch tensor of {dtype}"
        value = value.numpy() if dtype in WIDE_FLOATS else value
    elif isinstance(value, (np.ndarray, np.generic, float)):
        value = np.array(value)
        dtype = value.dtype.name
        got = f"an array of {dtype}"
    else:
        hint = " (is there a return statement?)" if value is None else ""
        raise AnswerError(f"{must} a NumPy array or a torch tensor; got {_named(value)}{hint}")
    if dtype not in WIDE_FLOATS:
        raise AnswerError(f"{must} float32 or float64 numbers; got {got}")
    return np.array(value)


def _evaluate_value(value: Any, case: Mapping[str, Any], entry: str, symbols: Sequence[str], functions: Sequence[str]) -> np.ndarray:
    """A number, or a list or tuple of numbers; whole numbers are welcome here."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        raise AnswerError(f"{entry} must be a number or a tuple of numbers; got {_named(value)}") from None
    if isinstance(value, (bool, str, bytes)):
        raise AnswerError(f"{entry} must be a number or a tuple of numbers; got {_named(value)}")
    return array


def _evaluate_expression(value: Any, case: Mapping[str, Any], entry: str, symbols: Sequence[str], functions: Sequence[str]) -> np.ndarray:
    """A SymPy expression in the symbols handed out, evaluated at the points of the case."""
    import sympy

    expression = sympy.sympify(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(expression, sympy.Expr):
        raise AnswerError(f"{entry} must be a SymPy expression in {', '.join(symbols)}; got {_named(value)}")
    arithmetic = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Number, sympy.NumberSymbol)
    for node in sympy.preorder_traversal(expression):
        if isinstance(node, sympy.Symbol):
            if node.name not in symbols:
                raise AnswerError(f"{entry} must use no symbols but {', '.join(symbols)}; it holds {node.name}")
        elif isinstance(node, (sympy.Derivative, sympy.Integral, sympy.Limit, sympy.Subs)):
            raise AnswerError(
                f"{entry} holds a {type(node).__name__}: that restates the question; write the result in {', '.join(symbols)}"
            )
        elif not isinstance(node, arithmetic) and type(node).__name__ not in functions:
            allowed = f"arithmetic and {', '.join(functions)}" if functions else "sums, products and powers"
            raise AnswerError(f"{entry} must be made of {allowed}; it holds {type(node).__name__}")
    plain = expression.xreplace({symbol: sympy.Symbol(symbol.name) for symbol in expression.free_symbols})
    values = [np.asarray(case[name], dtype=float) for name in symbols]
    evaluated = np.asarray(sympy.lambdify([sympy.Symbol(name) for name in symbols], plain, "numpy")(*values))
    if np.iscomplexobj(evaluated):
        raise AnswerError(f"{entry} is not a real number for some values of its symbols")
    return np.array(np.broadcast_to(evaluated.astype(float), np.broadcast_shapes(*(v.shape for v in values))))


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        alike = isinstance(after, np.ndarray) and before.dtype == after.dtype and before.shape == after.shape
        return alike and before.tobytes() == after.tobytes()
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(_same, before, after))
    return bool(before == after)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A warning is no mistake: an overflow shows in the numbers, and stderr would spoil nbval's comparison."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeIsUp in this thread after `seconds`; by a signal where there is one, else from a watching thread."""
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():

        def stop(*_: Any) -> None:
            raise TimeIsUp

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again and again: a bare `except:` swallows the first
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    thread = ctypes.c_ulong(threading.get_ident())
    watch = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (thread, ctypes.py_object(TimeIsUp)))
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _where(error: BaseException) -> str:
    """The learner's own line, the last one on the traceback that is in none of our files or libraries'."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename != __file__ and "site-packages" not in f.filename and f.line]
    return f" in line {own[-1].lineno} of {own[-1].name}: `{own[-1].line}`" if own else ""


def _one_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else "(no message)"


def _named(value: Any) -> str:
    kind = type(value)
    text = repr(value) if isinstance(value, (bool, int, float, str, bytes)) else ""
    return f"{kind.__name__} {text[:60]}".rstrip() if kind.__module__ in ("builtins", "sympy") else f"{kind.__module__}.{kind.__name__}"
