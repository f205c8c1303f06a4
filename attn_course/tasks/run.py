"""Run an untrusted answer on cases, and return plain arrays or one sentence about what went wrong.

This file and those that it imports know no right answer and need nothing else of the course, so that a confined worker can
load them alone.
"""

import contextlib
import copy
import linecache
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.tasks.forbidden import UNLAUNCHED
from attn_course.tasks.forms import AnswerError, as_arrays, evaluate_expression, evaluate_value, list_refused, named
from attn_course.tasks.launches import counted_launches
from attn_course.tasks.shapes import advice_on_shapes, misfit
from attn_course.tasks.time_limit import TimeIsUp, time_limit

TIME_LIMIT_S = 10.0
LIBRARIES = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
OURS = __file__.rpartition("run.py")[0]  # no line of the engine is the learner's


@dataclass(frozen=True)
class Call:
    """How a task's answer is put to a case: all that running it needs to know of the task, and nothing that helps to answer it.

    `entry`: the answer's name, for messages. `kind`, `symbols`, `functions`: as `Task` has them. `forbid`: its rules.
    """

    entry: str
    kind: str
    symbols: Sequence[str] = ()
    functions: Sequence[str] = ()
    forbid: Sequence[str] = ()

    @property
    def wants_function(self) -> bool:
        """Whether the learner defines a function, not a value."""
        return self.kind in ("write", "repair")


@dataclass(frozen=True)
class Result:
    """What one case gave: arrays, or the problem that kept it from giving any.

    `arrays`: what the answer returned; None if there was a problem.
    `problem`: one sentence for the learner.
    `changed`: the input that the answer wrote to, if any.
    `timed_out`: whether the problem is the time limit; the later cases are not run then.
    `advice`: a question to the learner about the problem, if it is a common one.
    `listed`: if the answer returned a list, what is wrong with that where a single array is wanted.
    `after`: the inputs as they are when a function has returned.
    `facts`: what the lines of a derivation look like, as `latex.looks` says.
    """

    arrays: tuple[np.ndarray, ...] | None = None
    problem: str | None = None
    changed: str | None = None
    timed_out: bool = False
    advice: str = ""
    listed: str = ""
    after: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None


def run(
    answer: Any,
    inputs: Sequence[Mapping[str, Any]],
    call: Call,
    *,
    is_ours: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> list[Result]:
    """Put an answer through every case.

    `answer`: the learner's function (kinds write and repair), expression (derive) or value (predict, figure). `inputs`: for each
    case its inputs by name; functions receive them by position. `call`: of the task. `is_ours`: whether it is an answer of the
    task's own, which need not launch a kernel where a learner's must. `time_limit_s`: longest time for one case, in seconds. A loop
    around a bare `except:`, or in compiled code, outlasts it. Returns `results`: one for each case. Nothing the answer does raises
    here, except an interrupt from the keyboard.
    """
    if answer is None or answer is Ellipsis:
        return [Result(problem=f"{call.entry} has no answer yet")] * len(inputs)
    if call.wants_function:
        if not callable(answer):
            return [Result(problem=f"{call.entry} must be a function; got {named(answer)}")] * len(inputs)
        ran: list[Result] = []
        for case in inputs:  # after a time-out the rest is not worth the wait
            ran.append(ran[-1] if ran and ran[-1].timed_out else _run_function(answer, case, call, is_ours, time_limit_s))
        return ran
    evaluate = evaluate_expression if call.kind == "derive" else evaluate_value
    results = []
    for case in inputs:
        try:
            with quiet(), time_limit(time_limit_s):
                results.append(Result((evaluate(answer, case, call.entry, call.symbols, call.functions),)))
        except AnswerError as error:
            results.append(Result(problem=str(error)))
        except TimeIsUp:
            results.append(Result(problem=f"{call.entry} could not be evaluated within {time_limit_s:g} s", timed_out=True))
        except Exception as error:
            results.append(Result(problem=f"{call.entry} could not be evaluated: {type(error).__name__}: {_one_line(error)}"))
    return results


def _run_function(function: Callable[..., Any], case: Mapping[str, Any], call: Call, is_ours: bool, time_limit_s: float) -> Result:
    entry = call.entry
    given = copy.deepcopy(dict(case))
    try:
        with counted_launches() as count, quiet(), time_limit(time_limit_s):
            returned = function(*given.values())
            arrays = as_arrays(returned, entry)
    except AnswerError as error:
        return Result(problem=str(error))
    except TimeIsUp:
        return Result(
            problem=f"{entry} did not return within {time_limit_s:g} s", timed_out=True, advice="is there a loop that never ends?"
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: an answer must not end the kernel
        error = _raised_in_kernel(error)
        if isinstance(error, NotImplementedError) and not error.args:  # the stub's; torch raises its own, with a text
            return Result(problem=f"{entry} has no answer yet: replace `raise NotImplementedError()`")
        text = _one_line(error)
        line, before = _own_line(error)
        told = misfit(text) or f"{entry} raised {type(error).__name__}: {text}"
        return Result(problem=told + line, advice=advice_on_shapes(text, before))
    if UNLAUNCHED in call.forbid and not is_ours and not count["launched"]:
        return Result(problem=f"{entry} launches no kernel: what it returns must be written by one")
    return Result(arrays, changed=changed_input(case, given), listed=list_refused(entry) if isinstance(returned, list) else "", after=given)


def changed_input(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return the name of the first input that is not what it was, bit for bit, or None."""
    return next((name for name, value in before.items() if name not in after or not _same(value, after[name])), None)


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        alike = isinstance(after, np.ndarray) and before.dtype == after.dtype and before.shape == after.shape
        return alike and before.tobytes() == after.tobytes()
    if isinstance(before, Mapping):
        return isinstance(after, Mapping) and before.keys() == after.keys() and all(_same(before[name], after[name]) for name in before)
    if isinstance(before, (list, tuple)):
        return isinstance(after, (list, tuple)) and len(before) == len(after) and all(map(_same, before, after))
    return type(before) is type(after) and (before == after or (before != before and after != after))  # NaN is not equal to itself


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Run without warnings: none is a mistake, an overflow shows in the numbers, and stderr would spoil nbval's comparison."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _raised_in_kernel(error: BaseException) -> BaseException:
    """What was raised in a kernel, if Triton's interpreter has wrapped it: it knows the line."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    return error


def _own_line(error: BaseException) -> tuple[str, str]:
    """The learner's own line, the last one on the traceback that is in none of our files or libraries', and its function up to there."""
    frames = [(frame.f_code, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    own = [(code, number) for code, number in frames if not code.co_filename.startswith((OURS, *LIBRARIES))]
    own = [(code, number) for code, number in own if linecache.getline(code.co_filename, number).strip()]
    if not own:
        return "", ""
    code, number = own[-1]
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : number]
    return f" in line {number} of {code.co_name}: `{lines[-1].strip()}`", "".join(lines)


def _one_line(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # the answer's own exception class may be broken
        text = ""
    return text.splitlines()[0][:200] if text else "(no message)"
