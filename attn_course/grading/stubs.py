"""Stand in front of library functions that a task forbids, so that they refuse while an answer to it runs.

The syntax tree shows what an answer says; these stubs see what it does: an alias, `getattr`, `importlib`, a name put together
from pieces. They are Python in the learner's own process, and one who digs for what lies beneath finds it: a fence, no wall.
"""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from attn_course.tasks import module_call

CELLS = "<code cell "  # how the file names of a learner's cells begin
METHODS_OF = (
    *("torch.Tensor", "torch", "torch.nn.functional", "torch.special", "torch.autograd", "scipy.special"),
    *("sympy.Basic", "sympy.Expr", "sympy.Symbol", "sympy.MatrixBase"),
)


OURS = module_call.__file__.rpartition("module_call.py")[0]  # the engine itself takes gradients of a module


class Refused(BaseException):
    """A forbidden function was called; no Exception, so that `except Exception` does not swallow it."""


class Stubs:
    """The stubs of one worker.

    Attributes
    ----------
    caught : str
        The forbidden function called last while a rule was in force, or "".
    """

    def __init__(self) -> None:
        self.caught = ""
        self._rules: frozenset[str] = frozenset()
        self._done: set[tuple[int, str, str]] = set()

    def install(self, forbid: Collection[str]) -> None:
        """Put a stub before each function of these names whose module is loaded; one that stands already stays.

        Parameters
        ----------
        forbid : collection of str
            As in `Task.forbid`: dotted names, ".name" for a method, "package.*".
        """
        for rule in sorted(forbid):
            if rule.startswith("."):
                for place in METHODS_OF:
                    self._replace(_loaded(place), rule[1:], rule, direct=False)
            elif rule.endswith(".*"):
                package = _loaded(rule[:-2])
                for name in [name for name, value in vars(package).items() if _home(value).startswith(rule[:-1])] if package else []:
                    self._replace(package, name, rule, direct=True)
            else:
                owner, _, name = rule.rpartition(".")
                self._replace(_loaded(owner), name, rule, direct=False)

    @contextlib.contextmanager
    def forbidding(self, rules: Sequence[str]) -> Iterator[None]:
        """Let the stubs of these rules refuse, and notice what they refuse."""
        self.caught, self._rules = "", frozenset(rules)
        try:
            yield
        finally:
            self._rules = frozenset()

    def _replace(self, owner: Any, name: str, rule: str, *, direct: bool) -> None:
        value = getattr(owner, name, None) if owner is not None else None
        if value is None or (id(owner), name, rule) in self._done:
            return
        self._done.add((id(owner), name, rule))
        dotted = f"{getattr(owner, '__module__', '') + '.' if inspect.isclass(owner) else ''}{owner.__name__}.{name}"
        if inspect.isclass(value):  # the class stays itself, for isinstance and subclasses
            with contextlib.suppress(TypeError):
                setattr(value, "__init__", self._stub(value.__init__, rule, dotted, direct))  # noqa: B010  # mypy knows it as a method
        elif callable(value):
            with contextlib.suppress(TypeError, AttributeError):
                setattr(owner, name, self._stub(value, rule, dotted, direct))

    def _stub(self, function: Callable[..., Any], rule: str, dotted: str, direct: bool) -> Callable[..., Any]:
        """`direct`: refuse only calls from the learner's cells, for the library's own functions call each other."""

        @functools.wraps(function)
        def stub(*args: Any, **keywords: Any) -> Any:
            caller = sys._getframe(1).f_code.co_filename if rule in self._rules else OURS
            if caller.startswith(CELLS) if direct else not (caller.startswith(OURS) or _is_tritons(caller)):
                self.caught = dotted.removeprefix("builtins.")
                raise Refused(self.caught)
            return function(*args, **keywords)

        return stub


def _is_tritons(file: str) -> bool:
    """Whether a file is Triton's own, whose interpreter computes a kernel's exponentials with NumPy."""
    home = getattr(sys.modules.get("triton"), "__file__", None) or ""
    return bool(home) and file.startswith(home.removesuffix("__init__.py"))


def _home(value: Any) -> str:
    named = inspect.isroutine(value) or inspect.isclass(value)
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}" if named else ""


def _loaded(dotted: str) -> Any:
    """The object a dotted name stands for, if its module is loaded already."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        value = sys.modules.get(".".join(parts[:cut]))
        if value is not None:
            for part in parts[cut:]:
                value = getattr(value, part, None)
            return value
    return None
