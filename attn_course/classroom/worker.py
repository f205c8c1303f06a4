"""Run one notebook's cells and put its answers to the cases that the grader sends, one call at a time.

This half runs untrusted code and knows no answer. It imports the standard library, NumPy, SymPy, IPython, the sandbox, and those
files of attn_course/tasks that know none either; while the notebook runs, attn_course cannot be imported.
"""

import __future__

import ast
import asyncio
import builtins
import contextlib
import functools
import inspect
import linecache
import operator
import os
import random
import socket
import sys
import time
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import IPython
import numpy as np

from attn_course.checking.magics import History, Shell, to_python
from attn_course.classroom.protocol import LENGTHS, MAX_REPLY_HEADER_BYTES, encode, is_last, lengths, receive
from attn_course.classroom.stubs import CELLS, Refused, Stubs
from attn_course.tasks.forms import AnswerError, latex_lines, sympy_classes
from attn_course.tasks.run import Call, run
from attn_course.tasks.slices import Cells, statements
from attn_course.tasks.source import course_uses, forbidden_calls
from attn_course.tasks.time_limit import TimeIsUp, time_limit

WAIT_S = 0.02  # for more pieces to send at a time
MAX_TEXT = 1_000  # characters of a message to the learner


class Absent:
    """What stands for everything imported from attn_course: it may be called and taken apart, and does nothing."""

    def __call__(self, *_: Any, **__: Any) -> "Absent":
        """Nothing, again."""
        return self

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def keys(self) -> list[str]:
        """No arguments, where it is unpacked as such."""
        return []

    def __getitem__(self, item: Any) -> "Absent":
        return self

    def __iter__(self) -> Any:
        return iter(())


class _WithoutCourse(ast.NodeTransformer):
    """Imports of attn_course become names for something absent."""

    def visit_Import(self, node: ast.Import) -> Any:
        ours = [alias for alias in node.names if _is_course(alias.name)]
        if not ours:
            return node
        kept = [alias for alias in node.names if alias not in ours]
        absent = [_absent(alias.asname or alias.name.partition(".")[0], node) for alias in ours]
        return [*([ast.copy_location(ast.Import(kept), node)] if kept else []), *absent]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if not _is_course(node.module or "") or node.level:
            return node
        return [_absent(alias.asname or alias.name, node, alias.name) for alias in node.names if alias.name != "*"] or ast.copy_location(
            ast.Pass(), node
        )


def _is_course(module: str) -> bool:
    return module.partition(".")[0] == "attn_course"


def _absent(name: str, node: ast.stmt, imported: str = "") -> ast.stmt:
    value: ast.expr = ast.Name("_attn_course_is_absent", ast.Load())
    if imported == "question":  # the one thing that is there
        value = ast.Attribute(value, imported, ast.Load())
    assign = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(assign, node))


class Session:
    """One notebook: its names, its cells, its answers.

    What the exercise gives is run here, before anything of a learner's is known: a fork server makes one session, and each worker that
    is forked from it goes on from there.

    `setup`, `given`: cells of the pristine exercise: imports; helper functions and symbols. `forbid`: rules of all its tasks, as
    in `Task.forbid`.
    """

    def __init__(self, setup: Sequence[str] = (), given: Sequence[str] = (), forbid: Collection[str] = ()) -> None:
        self._module = types.ModuleType("__main__")
        self._module.__dict__["_attn_course_is_absent"] = Absent()
        self._cells: list[types.CodeType | None] = []
        self._problems: list[str] = []
        self._names: list[str] = []
        self._numbers: list[int] = []
        self._tasks: dict[str, Call] = {}
        self._forbid: dict[int, Sequence[str]] = {}
        self._stubs = Stubs()
        self._history = History(self._module.__dict__)
        shell = Shell(self._module.__dict__)
        self._elsewhere = IPython.get_ipython
        self._module.__dict__["get_ipython"] = builtins.__dict__["get_ipython"] = IPython.get_ipython = lambda: shell
        builtins.__dict__["display"] = Absent()
        self._given = statements(given)
        before = dict(os.environ)
        for text in [*setup, *given]:
            exec(compile(text, "<exercise>", "exec", dont_inherit=True), self._module.__dict__)
        self._variables = {name: value for name, value in os.environ.items() if before.get(name) != value}
        for name in self._variables:  # for this exercise only, and a worker begins with few variables
            os.environ.pop(name)
        os.environ.update(before)
        self._stubs.install(forbid)
        forbidden_calls("", [*forbid], {})  # once for all workers

    def discard(self) -> None:
        """Take the stubs and the shell away, for another session in the same process."""
        self._stubs.remove()
        IPython.get_ipython = self._elsewhere
        builtins.__dict__.pop("get_ipython", None)

    def begin(
        self,
        cells: list[str],
        numbers: list[int],
        tasks: Mapping[str, Mapping[str, Any]],
        judged_after: Mapping[str, int],
        answers: Mapping[str, Sequence[int]],
        seed: int,
        questions: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({}),
    ) -> dict[str, Any]:
        """Read the cells, and say what forbidden things the answers' texts use.

        Nothing of the learner's has run when this returns, so what it says can be trusted.

        `cells`: the learner's cells, as they stand in the notebook.
        `numbers`: of these cells, for messages.
        `tasks`: by id of each task its `Call`, as plain data.
        `judged_after`: by task id, the number of cells run before it is put to the cases; without, that is after the last cell
        that defines the entry.
        `answers`: by task id, the cells that are to answer it.
        `seed`: of the random generators that the learner's code may use.
        `questions`: by task id, the numbers of this learner by name: they are there from the start, and `attn_course.question`
        returns them.

        Returns by task id `at`, the number of cells, `refusals` what is forbidden in its text, `defined` the cells that bind its
        entry.
        """
        _seed(seed)
        self._module.__dict__["_attn_course_is_absent"].question = lambda task: tuple(questions[task].values())
        for asked in questions.values():
            self._module.__dict__.update(asked)
        os.environ.update(self._variables)
        trees = [self._read(text, number) for text, number in zip(cells, numbers, strict=True)]
        parsed = Cells(trees, self._given)
        found: dict[str, Any] = {"at": {}, "refusals": {}, "defined": {}}
        for name, data in tasks.items():
            task = self._tasks[name] = Call(**data)
            defined = parsed.binding(task.entry)
            at = judged_after.get(name, max([*defined, *answers[name], -1]) + 1)
            making = parsed.making(task.entry, at)
            found["at"][name], found["defined"][name] = at, defined
            found["refusals"][name] = _refusal(task.entry, making.text, task.forbid, self._module.__dict__)[:MAX_TEXT]
            if task.kind == "derive":
                sympy_classes(tuple(task.functions))  # before the learner's code could exchange them
                self._forbid |= dict.fromkeys([*making.cells, *answers[name]], task.forbid)
        self._compile(trees)
        sys.modules["__main__"] = self._module
        return found

    @property
    def actions(self) -> Mapping[str, Callable[..., Iterable[dict[str, Any]]]]:
        """What the grader may ask for."""
        return {"begin": lambda **message: [self.begin(**message)], "cells": self.cells, "calls": self.calls, "latex": self.latex}

    def cells(self, numbers: list[int], limit: float) -> Iterator[dict[str, Any]]:
        """Run some cells; say of each as it ends what `cell` says."""
        return (self.cell(n, limit) for n in numbers)

    def calls(self, task: str, cases: list[dict[str, Any]], limit: float) -> Iterator[dict[str, Any]]:
        """Put an answer to some cases; say of each as it ends what `call` says."""
        for case in cases:
            try:
                yield self.call(task, case, limit)
            except KeyboardInterrupt:  # no one is at a keyboard: the answer raised it
                yield {"problem": f"{self._tasks[task].entry} raised KeyboardInterrupt"}

    def latex(self, task: str) -> Iterator[dict[str, Any]]:
        """Say what an answer in LaTeX holds: its lines, which are not looked at here."""
        entry = self._tasks[task].entry
        answer = self._module.__dict__.get(entry)
        try:
            if entry not in self._module.__dict__:
                yield {"undefined": True}
            elif answer is None or answer is Ellipsis:
                yield {"problem": f"{entry} has no answer yet"}
            else:
                yield {"lines": latex_lines(answer, entry, several=self._tasks[task].kind == "derivation")}
        except AnswerError as error:
            yield {"problem": str(error)}

    def cell(self, n: int, limit: float) -> dict[str, Any]:
        """Run a cell; return `problem`, one sentence about what went wrong in it, or None."""
        code, problem = self._cells[n], self._problems[n] or None
        if code is None:
            return {"problem": problem}
        self._history.begin(self._numbers[n], "".join(linecache.getlines(self._names[n])))
        try:
            with self._stubs.forbidding(self._forbid.get(n, ())), time_limit(limit):
                if code.co_flags & inspect.CO_COROUTINE:
                    asyncio.run(eval(code, self._module.__dict__))
                else:
                    exec(code, self._module.__dict__)
        except TimeIsUp:
            return {"problem": f"did not finish within {limit:g} s: is there a loop that never ends?"}
        except Refused as refused:
            return {"problem": f"calls {refused}, which would answer the task for you"}
        except BaseException as error:
            return {"problem": _one_line(error)}
        return {"problem": problem}

    def call(self, task: str, case: dict[str, Any], limit: float) -> dict[str, Any]:
        """Put an answer to one case; return what `run` found, with the inputs as they are afterwards."""
        how = self._tasks[task]
        if how.entry not in self._module.__dict__:
            return {"undefined": True}
        forbid = how.forbid if how.wants_function else ()
        for _attempt in range(2):
            with self._stubs.forbidding(forbid):
                (result,) = run(self._module.__dict__[how.entry], [case], how, time_limit_s=limit)
            if self._stubs.caught or not self._stubs.install(forbid):
                break  # else it imported what is forbidden, behind which no stub stood: once more
        return {
            "arrays": result.arrays,
            "problem": result.problem,
            "timed_out": result.timed_out,
            "advice": result.advice,
            "listed": result.listed,
            "after": result.after,
            "refused": self._stubs.caught,
        }

    def _read(self, text: str, number: int) -> ast.Module:
        """The tree of a cell, empty if it does not parse; its text is kept for tracebacks."""
        name = f"{CELLS}{number}>"
        self._names.append(name)
        self._numbers.append(number)
        self._problems.append("")
        try:
            source = to_python(text)
            tree = ast.parse(source, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._problems[-1] = _one_line(error)
            return ast.Module([], [])
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        return tree

    def _compile(self, trees: list[ast.Module]) -> None:
        self._module.__dict__["_attn_course_shown"] = self._history.shown
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for n, tree in enumerate(trees):
            code = None
            if not self._problems[n]:
                text = "".join(linecache.getlines(self._names[n]))
                if "attn_course" in text:  # rarely; going through a tree takes its time
                    tree = _WithoutCourse().visit(tree)
                if "__future__" in text:  # IPython takes one statement after the other: it may stand anywhere, and holds for later cells
                    flags |= _features(tree)
                if tree.body and isinstance(last := tree.body[-1], ast.Expr) and not text.rstrip().endswith(";"):
                    name = ast.copy_location(ast.Name("_attn_course_shown", ast.Load()), last)
                    last.value = ast.copy_location(ast.Call(name, [last.value], []), last)
                code, self._problems[n] = _compiled(tree, self._names[n], flags)
            self._cells.append(code)


def _compiled(tree: ast.Module, name: str, flags: int) -> tuple[types.CodeType | None, str]:
    """The code of a cell; of one with, say, a `return` outside of any function that of what stands above, and what is wrong."""
    try:
        return compile(tree, name, "exec", flags, dont_inherit=True), ""
    except SyntaxError as error:
        sound = [node for node in tree.body if (node.end_lineno or 0) < (error.lineno or 0)]
        return (_compiled(ast.Module(sound, []), name, flags)[0] if sound else None), _one_line(error)
    except (ValueError, RecursionError, MemoryError) as error:
        return None, _one_line(error)


def _features(tree: ast.Module) -> int:
    """Take the imports from __future__ out of a cell; return the compiler's flags for them."""
    found = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level]
    asked = [alias.name for node in found for alias in node.names]
    if not {*asked} <= {*__future__.all_feature_names}:
        return 0  # the compiler says so
    tree.body = [node for node in tree.body if node not in found] or [ast.copy_location(ast.Pass(), tree.body[0])]
    return functools.reduce(operator.or_, (getattr(__future__, name).compiler_flag for name in asked), 0)


def _refusal(entry: str, text: str, forbid: Sequence[str], names: Mapping[str, Any]) -> str:
    """Why an answer is not even called, from its text; "" if it may be. `names`: what the exercise imports and gives."""
    if "attn_course" in text and (found := course_uses(text, {})):
        return f"{entry} uses {', '.join(found)}, the course's own answer: write it yourself"
    if forbid and (found := forbidden_calls(text, forbid, names)):
        return f"{entry} uses {', '.join(found)}, which would answer the task for you: write it yourself"
    return ""


def _one_line(error: BaseException) -> str:
    try:
        text = str(error).strip().partition("\n")[0]
    except Exception:  # the learner's own exception class may be broken
        text = ""
    if isinstance(error, SystemExit):
        return "SystemExit: it leaves Python, which a notebook does not do"
    return f"{type(error).__name__}: {text}".rstrip(": ")[:MAX_TEXT]


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  # what the learner's code may draw from
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)  # torch.manual_seed looks for every other device first


class Serving(Protocol):
    """Whatever answers a grader."""

    @property
    def actions(self) -> Mapping[str, Callable[..., Iterable[dict[str, Any]]]]:
        """By name, what may be asked for; each answers piece by piece."""


def serve(session: Serving, line: socket.socket) -> None:
    """Answer the grader's requests until it hangs up; what is asked in one request is answered piece by piece.

    `session`: where nothing has begun yet. `line`: to the grader. Whatever the learner's code does to it, the grader gets arrays
    and text, or loses the worker.
    """
    while True:
        try:
            request = receive(partial(_exactly, line))
        except EOFError:
            return
        nonce, action = request.pop("nonce"), request.pop("do")
        ready, since = b"", time.monotonic()
        for reply in session.actions[action](**request):
            frame, last = _encoded({"nonce": nonce, **reply})
            ready += frame
            if action == "calls" and last:
                break
            if action == "cells" or time.monotonic() - since > WAIT_S:  # which cell ended Python is to be known
                _send(line, ready)
                ready, since = b"", time.monotonic()
        _send(line, ready)


def _encoded(reply: dict[str, Any]) -> tuple[bytes, bool]:
    """A frame, and whether the grader will take it for the last about its task."""
    try:
        frame = encode(reply)
        if "arrays" in reply:
            lengths(frame[: LENGTHS.size], max_header=MAX_REPLY_HEADER_BYTES)  # the grader takes no more
        return frame, is_last(reply)
    except Exception as error:  # a result of the learner's that no frame holds
        return encode({"nonce": reply["nonce"], "problem": f"its result cannot be sent: {error}"[:MAX_TEXT]}), True


def _send(line: socket.socket, frames: bytes) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    line.sendall(frames)


def _exactly(line: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = line.recv(min(count - len(parts), 2**20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
