"""Find out by trying which layers hold on this machine: never from a version number."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from . import attacks
from .confinement import confine
from .landlock import interpreter_paths
from .layers import LAYERS, SandboxError, level_of
from .limits import MIB, Limits
from .namespaces import fork_alone, leave_for_own_namespaces

PIDS = "pid namespace"  # made by the fork server, not by confine
_SECONDS = 20.0
_RUN = "import sys; sys.path.append(sys.argv[1]); from {package}.probe import report; report(sys.argv[2])"


@dataclass(frozen=True)
class Layer:
    """One layer: whether its attacks were refused and honest acts were not, and if not, why."""

    name: str
    holds: bool
    why: str = ""


@dataclass(frozen=True)
class Probe:
    """What confines a worker on this machine."""

    layers: tuple[Layer, ...]

    @property
    def holding(self) -> tuple[str, ...]:
        """Names of the layers that hold, for the argument `layers` of `confine`."""
        return tuple(layer.name for layer in self.layers if layer.holds and layer.name in LAYERS)

    @property
    def level(self) -> str:
        """One of `LEVELS`: "full", "no network namespace", "limits only", "none"."""
        return level_of(self.holding)

    def __str__(self) -> str:
        """Return one line for a report."""
        reasons = dict.fromkeys(layer.why for layer in self.layers if not layer.holds)
        missing = "; ".join(f"no {', '.join(layer.name for layer in self.layers if layer.why == why)}: {why}" for why in reasons)
        holding = ", ".join(layer.name for layer in self.layers if layer.holds) or "nothing holds"
        return f"sandbox: {self.level} ({holding}{'; ' if missing else ''}{missing})"


def probe(layers: Collection[str] = (*LAYERS, PIDS)) -> Probe:
    """Try each layer alone, then those that hold together, in throw-away processes of a fresh interpreter (about 0.2 s).

    `layers`: layers to try; the others count as missing, so that every level can be tested on one machine. Returns one entry for
    each layer, and one for the pid namespace of the fork server.
    """
    here = Path(__file__).resolve().parent
    command = [sys.executable, "-I", "-S", "-c", _RUN.format(package=here.name), str(here.parent), ",".join(layers)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * _SECONDS, check=False)
        lines = done.stdout.splitlines()
        return Probe(tuple(Layer(*entry) for entry in json.loads(lines[-1])))
    except (OSError, subprocess.SubprocessError, IndexError, ValueError) as error:
        return Probe(tuple(Layer(name, False, f"the probe failed: {error}") for name in (*LAYERS, PIDS)))


def report(wanted: str) -> None:
    """Print the layers as JSON; the part of `probe` that runs in the fresh interpreter."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        stage = _Stage(Path(folder).resolve(), server.getsockname()[1])
        found = [stage.try_layer(name) if name in wanted.split(",") else Layer(name, False, "switched off") for name in LAYERS]
        holding = [layer.name for layer in found if layer.holds]
        together = stage.complaint(holding, tuple(act for name in holding for act in attacks.REFUSED_BY[name])) if holding else ""
        if together:
            found = [Layer(layer.name, False, layer.why or f"together: {together}") for layer in found]
        pids = stage.try_pids() if PIDS in wanted.split(",") else Layer(PIDS, False, "switched off")
        print(json.dumps([[layer.name, layer.holds, layer.why] for layer in (*found, pids)]))


class _Stage:
    """Where the acts are tried: a folder with a secret, and a port that answers."""

    limits = Limits(address_space_bytes=256 * MIB, file_bytes=MIB, open_files=32)

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.secret = folder / "secret"
        self.secret.write_bytes(b"secret")
        self.readable = interpreter_paths()

    def try_layer(self, name: str) -> Layer:
        why = self.complaint([name], attacks.REFUSED_BY[name])
        return Layer(name, not why, why)

    def try_pids(self) -> Layer:
        """A worker of a fork server that left for its own namespaces is number 1, and its parent is nobody."""
        if not hasattr(os, "fork"):
            return Layer(PIDS, False, "this system cannot fork")
        ear, mouth = os.pipe()
        server = os.fork()
        if server == 0:
            why = "the system refuses it"
            if leave_for_own_namespaces():
                worker = fork_alone()
                if worker == 0:
                    os._exit(0 if os.getpid() == 1 and os.getppid() == 0 else 1)
                why = "" if os.waitpid(worker, 0)[1] == 0 else "a worker sees other processes"
            os.write(mouth, why.encode() or b".")
            os._exit(0)
        os.close(mouth)
        why = _listen(ear, server)
        return Layer(PIDS, why == ".", "" if why == "." else why)

    def complaint(self, layers: list[str], forbidden: tuple[attacks.Act, ...]) -> str:
        """Return what is wrong with these layers, tried in a child; empty if nothing is."""
        if not hasattr(os, "fork"):
            return "this system cannot fork"
        own = Path(tempfile.mkdtemp(dir=self.folder))
        parent = os.getpid()
        ear, mouth = os.pipe()
        child = os.fork()
        if child == 0:
            said = "the child broke"
            try:
                confine(readable=self.readable, writable=own, limits=self.limits, layers=layers, keep=[mouth])
                scene = attacks.Scene(self.secret, self.port, parent, own, self.limits)
                said = attacks.verdict(scene, forbidden) or "."
            except SandboxError as error:
                said = str(error)
            except BaseException as error:  # a child must not return from here
                said = f"{type(error).__name__}: {error}"
            finally:
                os.write(mouth, said.encode())
                os._exit(0)
        os.close(mouth)
        said = _listen(ear, child)
        return "" if said == "." else said


def _listen(ear: int, child: int) -> str:
    """Return what a child says before it ends; one that says nothing in time is killed."""
    try:
        ready, _, _ = select.select([ear], [], [], _SECONDS)
        said = os.read(ear, 4000).decode(errors="replace") if ready else f"no answer in {_SECONDS:g} s"
    finally:
        os.close(ear)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    return said or f"the child ended without a word ({os.waitstatus_to_exitcode(status)})"
