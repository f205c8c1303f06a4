"""The names of the layers, the levels they add up to, and the error of a layer that cannot be had."""

LIMITS = "limits"
NAMESPACES = "namespaces"
LANDLOCK = "landlock"
SECCOMP = "seccomp"
LAYERS = (LIMITS, NAMESPACES, LANDLOCK, SECCOMP)  # in the order in which a worker puts them on

FULL = "full"
NO_NETWORK_NAMESPACE = "no network namespace"
LIMITS_ONLY = "limits only"
NONE = "none"
LEVELS = (FULL, NO_NETWORK_NAMESPACE, LIMITS_ONLY, NONE)  # from the safest down


class SandboxError(RuntimeError):
    """A layer that was asked for cannot be put on; the message says which call failed, and how."""


def level_of(holding: tuple[str, ...] | list[str] | set[str]) -> str:
    """Return the level that these layers make.

    `holding`: names of layers that hold. Returns one of `LEVELS`. Files are out of reach at the first two; the network is too,
    since seccomp refuses every socket.

    >>> level_of(["limits", "landlock", "seccomp"])
    'no network namespace'
    """
    if LIMITS not in holding:
        return NONE
    if LANDLOCK not in holding or SECCOMP not in holding:
        return LIMITS_ONLY
    return FULL if NAMESPACES in holding else NO_NETWORK_NAMESPACE
