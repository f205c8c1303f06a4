"""Run an untrusted answer on cases, and return plain arrays or one sentence about what went wrong.

This file knows no right answer and imports nothing of the course, so that a confined worker can load it alone.
"""

import contextlib
import copy
import ctypes
import signal
import sysconfig
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TIME_LIMIT_S = 10.0
WIDE_FLOATS = ("float32", "float64", "longdouble", "float128", "float96")
LIBRARIES = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))


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
    timed_out : bool
        Whether the problem is the time limit; the later cases are not run then.
    """

    arrays: tuple[np.ndarray, ...] | None = None
    problem: str | None = None
    changed: str | None = None
    timed_out: bool = False


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
        Longest time for one case, in seconds. A loop around a bare `except:`, or in compiled code, outlasts it.

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
        ran: list[Result] = []
        for case in inputs:  # after a time-out the rest is not worth the wait
            ran.append(ran[-1] if ran and ran[-1].timed_out else _run_function(answer, case, entry, time_limit_s))
        return ran
    evaluate = _evaluate_expression if kind == "derive" else _evaluate_value
    results = []
    for case in inputs:
        try:
            with _quiet(), _time_limit(time_limit_s):
                results.append(Result((evaluate(answer, case, entry, symbols, functions),)))
        except AnswerError as error:
            results.append(Result(problem=str(error)))
        except TimeIsUp:
            results.append(Result(problem=f"{entry} could not be evaluated within {time_limit_s:g} s", timed_out=True))
        except Exception as error:
            results.append(Result(problem=f"{entry} could not be evaluated: {type(error).__name__}: {_one_line(error)}"))
    return results


def _run_function(function: Callable[..., Any], case: Mapping[str, Any], entry: str, time_limit_s: float) -> Result:
    given = copy.deepcopy(dict(case))
    try:
        with _quiet(), _time_limit(time_limit_s):
            arrays = as_arrays(function(*given.values()), entry)
    except AnswerError as error:
        return Result(problem=str(error))
    except TimeIsUp:
        return Result(problem=f"{entry} did not return within {time_limit_s:g} s: is there a loop that never ends?", timed_out=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: an answer must not end the kernel
        if isinstance(error, NotImplementedError) and not error.args:  # the stub's; torch raises its own, with a text
            return Result(problem=f"{entry} has no answer yet: replace `raise NotImplementedError()`")
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
        hint = {type(None): " (is there a return statement?)", list: " (several results are a tuple)"}.get(type(value), "")
        raise AnswerError(f"{must} a NumPy array or a torch tensor; got {_named(value)}{hint}")
    if dtype not in WIDE_FLOATS:
        raise AnswerError(f"{must} float32 or float64 numbers; got {got}")
    return np.array(value)


def _evaluate_value(value: Any, case: Mapping[str, Any], entry: str, symbols: Sequence[str], functions: Sequence[str]) -> np.ndarray:
    """A number, or a list or tuple of numbers; whole numbers are welcome here."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "iufO" or any(item is None or isinstance(item, (bool, str)) for item in raw.ravel().tolist()):
            raise TypeError
        return np.array([float(item) for item in raw.ravel()]).reshape(raw.shape)
    except (TypeError, ValueError, RuntimeError):
        raise AnswerError(f"{entry} must be a number or a tuple of numbers; got {_named(value)}") from None


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
    if np.iscomplexobj(evaluated) or np.isnan(evaluated).any():  # NumPy gives NaN for the root of a negative number
        raise AnswerError(f"{entry} is not a real number for some values of its symbols")
    return np.array(np.broadcast_to(evaluated.astype(float), np.broadcast_shapes(*(v.shape for v in values))))


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        alike = isinstance(after, np.ndarray) and before.dtype == after.dtype and before.shape == after.shape
        return alike and before.tobytes() == after.tobytes()
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(_same, before, after))
    return before is after or bool(before == after)  # a NaN is not equal to itself


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

        def disarm() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)

        signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again and again: a bare `except:` swallows the first
    else:
        thread, over = ctypes.c_ulong(threading.get_ident()), threading.Event()

        def watch() -> None:
            wait = seconds
            while not over.wait(wait):
                wait = 0.5
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeIsUp))

        watcher = threading.Thread(target=watch, daemon=True)

        def disarm() -> None:
            over.set()
            watcher.join()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that was sent and has not arrived

        watcher.start()
    try:
        try:
            yield
        finally:
            disarm()
    finally:
        disarm()  # the last alarm may have struck inside the first


def _where(error: BaseException) -> str:
    """The learner's own line, the last one on the traceback that is in none of our files or libraries'."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.line and f.filename != __file__ and not f.filename.startswith(LIBRARIES)]
    return f" in line {own[-1].lineno} of {own[-1].name}: `{own[-1].line}`" if own else ""


def _one_line(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # the answer's own exception class may be broken
        text = ""
    return text.splitlines()[0][:200] if text else "(no message)"


def _named(value: Any) -> str:
    kind = type(value)
    if kind.__module__.partition(".")[0] not in ("builtins", "sympy"):
        return f"{kind.__module__}.{kind.__name__}"
    return f"{kind.__name__} {value!r:.60}" if kind in (bool, int, float, str, bytes) else kind.__name__
