"""Stand in front of library functions that a task forbids, so that they refuse while an answer to it runs.

The syntax tree shows what an answer says; these stubs see what it does: an alias, `getattr`, `importlib`, a name put together
from pieces. Beneath them `_watch` sees what torch runs in the end, by whatever of its many names it was called; it sees one thread,
so no other may work meanwhile. All this is Python in the learner's own process, and one who digs for what lies beneath finds it: a
fence, no wall.
"""

import contextlib
import functools
import inspect
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from time import process_time_ns, thread_time_ns
from types import FrameType
from typing import Any

from attn_course.tasks.forbidden import PLACES, THREADS, WATCHED
from attn_course.tasks.source import BEHIND, if_imported

CELLS = "<code cell "  # how the file names of a learner's cells begin
UFUNC_METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")
DIFFERENTIATING = {".backward", "torch.autograd.grad"}
A_THREAD, NOT_ITS_OWN = "a thread of its own (where a library is forbidden, threads are too)", "what belongs to the grader"


_INHERITED = object()  # stands for an attribute that an owner has not itself


class Refused(BaseException):
    """A forbidden function was called; no Exception, so that `except Exception` does not swallow it."""


class Stubs:
    """The stubs of one worker.

    `caught`: the forbidden function called last while a rule was in force, or "".
    """

    __slots__ = ("_done", "_loaded", "_rules", "caught")

    def __init__(self) -> None:
        self.caught = ""
        self._rules: frozenset[str] = frozenset()
        self._done: dict[tuple[int, str, str], tuple[Any, str, Any]] = {}  # what stood there before
        self._loaded: dict[frozenset[str], list[Any]] = {}  # by rules: their modules, which may be imported anew

    def install(self, forbid: Collection[str]) -> bool:
        """Put a stub before each function of these names whose module is loaded; one that stands already stays.

        `forbid`: as `tasks.forbidden` describes them. Returns whether a stub was put up.
        """
        rules = frozenset(forbid)
        loaded = [sys.modules.get(name) for name in _homes(rules)]
        if self._loaded.get(rules) == loaded:
            return False
        self._loaded[rules] = loaded
        before = len(self._done)
        for rule in sorted(forbid):
            if rule.startswith("."):
                for place in PLACES:
                    self._replace(if_imported(place), rule[1:], rule, direct=place.startswith("sympy"))
            elif rule.endswith(".*"):
                package = if_imported(rule[:-2])
                for name in [name for name, value in vars(package).items() if _home(value).startswith(rule[:-1])] if package else []:
                    self._replace(package, name, rule, direct=True)
            elif "." in rule:
                owner, _, name = rule.rpartition(".")
                self._replace(if_imported(owner), name, rule, direct=rule.startswith("sympy."))
        return len(self._done) > before

    def remove(self) -> None:
        """Put everything back as it was."""
        for owner, name, value in reversed(self._done.values()):
            with contextlib.suppress(TypeError, AttributeError):
                if value is _INHERITED:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)
        self._done.clear()
        self._loaded.clear()

    @contextlib.contextmanager
    def forbidding(self, rules: Sequence[str]) -> Iterator[None]:
        """Let the stubs of these rules, which are as for `install`, refuse, and notice what they refuse."""
        self.caught, self._rules = "", (held := frozenset(rules))
        watched = THREADS in held and hasattr(signal, "SIGALRM")  # without it, a time limit is a thread of our own
        _, most = _worked_elsewhere()
        try:
            with _watch(self, held):
                yield
            if watched and _worked_elsewhere()[0] > most:
                self.caught = self.caught or A_THREAD
            if self._rules is not held:
                self.caught = self.caught or NOT_ITS_OWN
        finally:
            self._rules = frozenset()

    def _replace(self, owner: Any, name: str, rule: str, *, direct: bool) -> None:
        value = getattr(owner, name, None) if owner is not None else None
        if value is None or (id(owner), name, rule) in self._done:
            return
        dotted = f"{getattr(owner, '__module__', '') + '.' if inspect.isclass(owner) else ''}{owner.__name__}.{name}"
        if inspect.isclass(value):  # the class stays itself, for isinstance and subclasses
            self._done[id(owner), name, rule] = value, "__init__", vars(value).get("__init__", _INHERITED)
            with contextlib.suppress(TypeError):
                setattr(value, "__init__", self._stub(value.__init__, rule, dotted, direct))  # noqa: B010  # mypy knows it as a method
            return
        self._done[id(owner), name, rule] = owner, name, vars(owner).get(name, _INHERITED)
        if callable(value):
            with contextlib.suppress(TypeError, AttributeError):
                setattr(owner, name, self._stub(value, rule, dotted, direct))

    def _stub(self, function: Callable[..., Any], rule: str, dotted: str, direct: bool) -> Callable[..., Any]:
        """`direct`: let the library's own functions call each other; SymPy solves and simplifies by derivatives."""
        library = dotted.removeprefix("builtins.").partition(".")[0]

        def stub(*args: Any, **keywords: Any) -> Any:
            if rule in self._rules:
                frame: Any = sys._getframe(1)
                while frame.f_code is stub.__code__:  # a method that is inherited has a stub for each class
                    frame = frame.f_back
                if not _is_called_by(("triton", library) if direct else ("triton",), frame):
                    self.caught = dotted.removeprefix("builtins.")
                    raise Refused(self.caught)
            return function(*args, **keywords)

        functools.update_wrapper(stub, function)
        vars(stub)[BEHIND] = function
        if type(function).__name__ == "ufunc":  # NumPy's have methods of their own
            vars(stub).update({name: self._stub(getattr(function, name), rule, dotted, direct) for name in UFUNC_METHODS})
        return stub


def _is_called_by(libraries: Collection[str], frame: FrameType) -> bool:
    """Whether a call comes from a module of these libraries.

    Triton is such a library: its interpreter computes a kernel's exponentials with NumPy. A file name would prove nothing.
    """
    names = frame.f_globals
    module = str(names.get("__name__"))
    return module.partition(".")[0] in libraries and names is getattr(sys.modules.get(module), "__dict__", None)


def _worked_elsewhere() -> tuple[int, int]:
    """How long all threads but this have worked since the process began, in ns of processor time: at least, and at most.

    It does not matter whose threads they are, when they began and whether they have ended; one that waits does not work.
    """
    before, all_threads, after = thread_time_ns(), process_time_ns(), thread_time_ns()
    return all_threads - after, all_threads - before


def _watch(stubs: Stubs, rules: Collection[str]) -> contextlib.AbstractContextManager[Any]:
    """Refuse what these rules forbid torch to run, in this thread."""
    beginnings = tuple(sorted(rule.removeprefix(WATCHED) for rule in rules if rule.startswith(WATCHED)))
    differentiating = not DIFFERENTIATING.isdisjoint(rules)
    if "torch" not in sys.modules or not (beginnings or differentiating):
        return contextlib.nullcontext()
    return _watching(stubs, beginnings, differentiating)


@contextlib.contextmanager
def _watching(stubs: Stubs, beginnings: tuple[str, ...], differentiating: bool) -> Iterator[None]:
    calls, operators = _watch_classes()
    watches = calls(stubs, beginnings, differentiating), operators(stubs, beginnings, differentiating)
    before = _state(watches)
    with watches[0], watches[1]:
        yield
    if _state(watches) != before:
        stubs.caught = stubs.caught or NOT_ITS_OWN


def _state(watches: Collection[Any]) -> list[dict[str, Any]]:
    return [dict(vars(part)) for watch in watches for part in (watch, *type(watch).__mro__[:2])]


@functools.cache
def _watch_classes() -> Any:
    """One for calls of torch's functions, of which some are made of many operators, and one for the operators that it runs in the end."""
    import torch
    from torch.autograd import forward_ad
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch:
        def __init__(self, stubs: Stubs, beginnings: tuple[str, ...], differentiating: bool) -> None:
            super().__init__()
            self.stubs, self.beginnings, self.differentiating = stubs, beginnings, differentiating

        def refuse(self, name: str) -> None:
            if name.startswith(self.beginnings):
                self.stubs.caught = self.stubs.caught or f"torch.{name}"
            elif self.differentiating and (torch._C._current_graph_task_id() != -1 or forward_ad._current_level >= 0):
                self.stubs.caught = self.stubs.caught or "torch's automatic differentiation"
            else:
                return
            raise Refused(self.stubs.caught)

    class Calls(Watch, TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.refuse(str(getattr(function, "__name__", "")).partition(".")[0])
            return function(*args, **(kwargs or {}))

    class Operators(Watch, TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # it would import torch's compiler, which takes seconds

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.refuse(function._schema.name.partition("::")[2])
            return function(*args, **(kwargs or {}))

    return Calls, Operators


@functools.cache
def _homes(rules: frozenset[str]) -> tuple[str, ...]:
    """Names of modules, any of which may hold what these rules forbid."""
    places = {rule.removesuffix(".*") for rule in rules if "." in rule and not rule.startswith(".")}
    if any(rule.startswith(".") for rule in rules):
        places.update(PLACES)
    return tuple(sorted({".".join(parts[: n + 1]) for parts in (place.split(".") for place in places) for n in range(len(parts))}))


def _home(value: Any) -> str:
    named = inspect.isroutine(value) or inspect.isclass(value)
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}" if named else ""
