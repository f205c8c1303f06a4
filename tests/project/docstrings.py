"""The public functions and classes of the package, and what is wrong with their docstrings."""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from numpydoc.validate import validate

# Every check of numpydoc but these, each for a reason.
NOT_ASKED = {
    "GL01": "the summary stands on the first line",
    "ES01": "one good line may be enough; an equation or a note follows where it helps",
    "SA01": "functions of a small room find each other without See Also",
    "RT02": "a result has a name, because the name carries its axes",
}


def modules(room: str) -> Iterator[ModuleType]:
    """Yield a package and all its modules."""
    package = import_module(room)
    yield package
    for found in pkgutil.walk_packages(package.__path__, prefix=f"{room}."):
        yield import_module(found.name)


def public_names(room: str) -> list[str]:
    """Return the dotted names of the functions, classes and methods that a room defines and makes public.

    Public is what `__all__` of the package lists; without such a list, everything without a leading underscore.
    """
    found = []
    listed = getattr(import_module(room), "__all__", None)
    for module in modules(room):
        for name, thing in vars(module).items():
            public = not name.startswith("_") if listed is None else name in listed
            if public and getattr(thing, "__module__", None) == module.__name__ and callable(thing):
                found.append(f"{module.__name__}.{name}")
                methods = vars(thing) if inspect.isclass(thing) else {}
                found += [
                    f"{module.__name__}.{name}.{method}" for method in methods if not method.startswith("_") and callable(methods[method])
                ]
    return sorted(found)


def complaints(name: str) -> list[str]:
    """Return what numpydoc finds in the docstring of a function or class, as "NAME: CODE what"."""
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code not in NOT_ASKED]
