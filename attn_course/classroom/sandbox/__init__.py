"""Confine a worker that runs a learner's code, and find out by trying what this machine lets us confine.

Standard library only, and no import of the course: a fork server can load this package alone. Linux on x86_64 and aarch64 has all layers;
elsewhere there are resource limits only.
"""

from .confinement import confine
from .landlock import interpreter_paths
from .layers import FULL, LAYERS, LEVELS, LIMITS_ONLY, NO_NETWORK_NAMESPACE, NONE, SandboxError, level_of
from .limits import Limits
from .namespaces import fork_alone, leave_for_own_namespaces
from .probe import Layer, Probe, probe

__all__ = [
    "FULL",
    "LAYERS",
    "LEVELS",
    "LIMITS_ONLY",
    "NONE",
    "NO_NETWORK_NAMESPACE",
    "Layer",
    "Limits",
    "Probe",
    "SandboxError",
    "confine",
    "fork_alone",
    "interpreter_paths",
    "leave_for_own_namespaces",
    "level_of",
    "probe",
]
