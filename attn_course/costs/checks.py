"""Clear errors for numbers of things, and options."""

from typing import Any

import numpy as np


def require_count(name: str, value: Any, least: int | None = 0) -> int:
    """Return an integer argument as a Python int, which never overflows; TypeError if it is none, ValueError if it is below `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer; got {type(value).__name__} {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be {least} or more; got {value}")
    return int(value)


def require_counts(least: int = 0, **values: Any) -> list[int]:
    """Return integer arguments as Python ints, or raise the error that names the wrong one."""
    return [require_count(name, value, least) for name, value in values.items()]


def require_flag(name: str, value: Any) -> bool:
    """Return an option that is True or False, or raise TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {type(value).__name__} {value!r}")
    return bool(value)


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def require_sides(window: Any) -> tuple[int | None, int | None]:
    """Return a window as (left, right), each None or 0 or more; None opens both sides."""
    if window is None:
        return None, None
    if not isinstance(window, tuple) or len(window) != 2:
        raise TypeError(f"window must be None or a tuple (left, right); got {window!r}")
    left, right = window
    return (
        None if left is None else require_count("window (left)", left),
        None if right is None else require_count("window (right)", right),
    )


def require_groups(n_heads: Any, n_kv_heads: Any) -> tuple[int, int]:
    """Return the numbers of heads; None for the second means as many as the first, else it must divide it."""
    heads = require_count("n_heads", n_heads, 1)
    kv_heads = heads if n_kv_heads is None else require_count("n_kv_heads", n_kv_heads, 1)
    if heads % kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads; got {kv_heads} and {heads}")
    return heads, kv_heads
