"""Stand in front of library functions that a task forbids, so that they refuse while an answer to it runs.

The syntax tree shows what an answer says; these stubs see what it does: an alias, `getattr`, `importlib`, a name put together
from pieces. Beneath them `_watch` sees which kernels torch runs in the end, by whatever of its many names they were called.
Both are Python in the learner's own process, and one who digs for what lies beneath finds it: a fence, no wall.
"""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from attn_course.tasks import module_call
from attn_course.tasks.source import BEHIND

CELLS = "<code cell "  # how the file names of a learner's cells begin
UFUNC_METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")
METHODS_OF = (
    *("torch.Tensor", "torch", "torch.nn.functional", "torch.special", "torch.autograd", "scipy.special"),
    *("sympy.Basic", "sympy.Expr", "sympy.Symbol", "sympy.MatrixBase"),
)


_FUSED = ("_scaled_dot_product", "_safe_softmax", "_flash_attention", "_efficient_attention", "_native_multi_head", "_transformer_encoder")
KERNELS = {  # what torch runs in the end for a function, as the beginnings of names
    "softmax": ("_softmax", "_log_softmax", "_sparse_softmax", "_sparse_log_softmax", "_masked_softmax", *_FUSED),
    "logsumexp": ("logsumexp",),
    "scaled_dot_product_attention": _FUSED,
}
DIFFERENTIATING = {".backward", "torch.autograd.grad"}
OURS = module_call.__file__.rpartition("module_call.py")[0]  # the engine itself takes gradients of a module


_INHERITED = object()  # stands for an attribute that an owner has not itself


class Refused(BaseException):
    """A forbidden function was called; no Exception, so that `except Exception` does not swallow it."""


class Stubs:
    """The stubs of one worker.

    Attributes
    ----------
    caught : str
        The forbidden function called last while a rule was in force, or "".
    """

    __slots__ = ("_done", "_loaded", "_rules", "caught")

    def __init__(self) -> None:
        self.caught = ""
        self._rules: frozenset[str] = frozenset()
        self._done: dict[tuple[int, str, str], tuple[Any, str, Any]] = {}  # what stood there before
        self._loaded: dict[frozenset[str], list[Any]] = {}  # by rules: their modules, which may be imported anew

    def install(self, forbid: Collection[str]) -> bool:
        """Put a stub before each function of these names whose module is loaded; one that stands already stays.

        Parameters
        ----------
        forbid : collection of str
            As in `Task.forbid`: dotted names, ".name" for a method, "package.*".

        Returns
        -------
        new : bool
            Whether a stub was put up.
        """
        rules = frozenset(forbid)
        loaded = [sys.modules.get(name) for name in _homes(rules)]
        if self._loaded.get(rules) == loaded:
            return False
        self._loaded[rules] = loaded
        before = len(self._done)
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
    def forbidding(self, rules: Sequence[str], *, gradients: bool = False) -> Iterator[None]:
        """Let the stubs of these rules refuse, and notice what they refuse.

        Parameters
        ----------
        rules : sequence of str
            As for `install`.
        gradients : bool, optional
            Whether the engine itself takes gradients meanwhile.
        """
        self.caught, self._rules = "", (held := frozenset(rules))
        try:
            with _watch(self, held - DIFFERENTIATING if gradients else held):
                yield
            if self._rules is not held:
                self.caught = self.caught or "what belongs to the grader"
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
        """`direct`: refuse only calls from the learner's cells, for the library's own functions call each other."""

        @functools.wraps(function)
        def stub(*args: Any, **keywords: Any) -> Any:
            caller = sys._getframe(1).f_code.co_filename if rule in self._rules else OURS
            if caller.startswith(CELLS) if direct else not (caller.startswith(OURS) or _is_tritons(caller)):
                self.caught = dotted.removeprefix("builtins.")
                raise Refused(self.caught)
            return function(*args, **keywords)

        vars(stub)[BEHIND] = function
        if type(function).__name__ == "ufunc":  # NumPy's have methods of their own
            vars(stub).update({name: self._stub(getattr(function, name), rule, dotted, direct) for name in UFUNC_METHODS})
        return stub


def _is_tritons(file: str) -> bool:
    """Whether a file is Triton's own, whose interpreter computes a kernel's exponentials with NumPy."""
    home = getattr(sys.modules.get("triton"), "__file__", None) or ""
    return bool(home) and file.startswith(home.removesuffix("__init__.py"))


def _watch(stubs: Stubs, rules: Collection[str]) -> contextlib.AbstractContextManager[Any]:
    """Refuse the kernels that do in torch what these rules forbid, in this thread."""
    words = {rule.rpartition(".")[2] for rule in rules}
    kernels = {name: word for word in KERNELS if word in words for name in KERNELS[word]}
    differentiating = not DIFFERENTIATING.isdisjoint(rules)
    if "torch" not in sys.modules or not (kernels or differentiating):
        return contextlib.nullcontext()
    watch: contextlib.AbstractContextManager[Any] = _watch_class()(stubs, kernels, differentiating)
    return watch


@functools.cache
def _watch_class() -> Any:
    import torch
    from torch.autograd import forward_ad
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __init__(self, stubs: Stubs, kernels: Mapping[str, str], differentiating: bool) -> None:
            super().__init__()
            self.stubs, self.kernels, self.differentiating = stubs, kernels, differentiating

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # it would import torch's compiler, which takes seconds

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = function._schema.name.partition("::")[2]
            if beginning := next((beginning for beginning in self.kernels if name.startswith(beginning)), None):
                self.stubs.caught = self.stubs.caught or f"torch's {self.kernels[beginning]} (torch.{name})"
            elif self.differentiating and (torch._C._current_graph_task_id() != -1 or forward_ad._current_level >= 0):
                self.stubs.caught = self.stubs.caught or "torch's automatic differentiation"
            else:
                return function(*args, **(kwargs or {}))
            raise Refused(self.stubs.caught)

    return Watch


@functools.cache
def _homes(rules: frozenset[str]) -> tuple[str, ...]:
    """Names of modules, any of which may hold what these rules forbid."""
    places = {rule.removesuffix(".*") for rule in rules if not rule.startswith(".")}
    if any(rule.startswith(".") for rule in rules):
        places.update(METHODS_OF)
    return tuple(sorted({".".join(parts[: n + 1]) for parts in (place.split(".") for place in places) for n in range(len(parts))}))


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
