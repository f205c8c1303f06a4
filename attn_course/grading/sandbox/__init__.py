"""Stand-in until the sandbox is merged: resource limits only."""

import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    address_space_bytes: int = 1536 * 2**20
    cpu_s: float = 60.0
    wall_s: float = 90.0
    file_bytes: int = 16 * 2**20
    processes: int = 0
    output_bytes: int = 2**20


@dataclass(frozen=True)
class Probe:
    level: str = "limits only"

    def __str__(self) -> str:
        return f"sandbox: {self.level}"


def probe() -> Probe:
    return Probe()


def confine(*, readable: Sequence[Path], writable: Path, limits: Limits, layers: object = None) -> None:
    for name, value in (
        ("RLIMIT_AS", limits.address_space_bytes),
        ("RLIMIT_CPU", int(limits.cpu_s)),
        ("RLIMIT_FSIZE", limits.file_bytes),
        ("RLIMIT_CORE", 0),
    ):
        resource.setrlimit(getattr(resource, name), (value, value))
