"""Run a few lines in a fresh interpreter that confines itself first, as this user or as nobody."""

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import attn_course.classroom.sandbox as package
from attn_course.classroom.sandbox.layers import LANDLOCK, LIMITS_ONLY, NO_NETWORK_NAMESPACE

HERE = Path(package.__file__).parent
ALL = package.LAYERS
probe = functools.cache(package.probe)  # of this machine, which stays as it is
USERS = ["this user", "nobody"]
CONTAINERS = {"a container": NO_NETWORK_NAMESPACE, "an old container": LIMITS_ONLY}  # and the level of the sandbox there
_START = """
import json, os, sys
sys.path.append({folder!r})
import sandbox
from pathlib import Path
own, outside, port, parent = Path({own!r}), Path({outside!r}), {port}, os.getppid()
def attempt(act):
    try:
        return ["done", repr(act())]
    except BaseException as error:
        return ["refused", type(error).__name__ + ": " + str(error)]
{before}
put_on = sandbox.confine(writable=own, layers={layers!r}, limits=sandbox.Limits({limits}), keep=[])
"""


def python(code: str, *, user: str = "this user", timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, without installed packages (quick)."""
    command = [*command_as(user), sys.executable, "-S", "-I", "-c", code]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "SECRET_TOKEN": "secret", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=variables, cwd="/")


def confined(
    acts: Sequence[str], layers: tuple[str, ...] | None, stage: "Stage", *, before: str = "", limits: str = "", user: str = "this user"
) -> list[tuple[str, str]]:
    """Return what each expression gives in one confined process: "done" and its repr, or "refused" and the error."""
    places = {"folder": str(HERE.parent), "own": str(stage.own), "outside": str(stage.outside), "port": stage.port}
    start = _START.format(**places, before=before, layers=layers, limits=limits)
    tries = "".join(f"answers.append(attempt(lambda: {act}))\n" for act in acts)
    done = python(f"{start}\nanswers = []\n{tries}\nprint(json.dumps(answers), flush=True)", user=user)
    assert done.returncode == 0, done.stderr
    return [(verdict, said) for verdict, said in json.loads(done.stdout.splitlines()[-1])]


class Stage:
    """A folder for the confined process, a readable file outside of it, and a port of this machine that answers."""

    def __init__(self, folder: Path, port: int) -> None:
        self.own, self.outside, self.port = folder / "own", folder / "outside", port
        folder.chmod(0o777)  # for nobody
        self.own.mkdir()
        self.own.chmod(0o777)
        self.outside.write_text("the right answers")
        self.outside.chmod(0o666)


@contextlib.contextmanager
def a_stage() -> Iterator[Stage]:
    """Set a stage where nobody gets to, too: the temporary folders of pytest are private."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield Stage(Path(folder).resolve(), server.getsockname()[1])


def _private(path: Path) -> list[Path]:
    """The folders above a path that are shut for others, the innermost first."""
    return [folder for folder in path.parents if not folder.stat().st_mode & 1]


def need_all_layers() -> None:
    """Skip the test where one cannot be had, as in most containers."""
    found = _sound(probe())
    if not all(layer.holds for layer in found.layers):
        pytest.skip(f"this machine cannot show all layers: {found}")


def need_landlock() -> None:
    """Skip the test where the kernel, or a container, has none."""
    found = _sound(probe())
    if LANDLOCK not in found.holding:
        pytest.skip(f"nothing shuts files on this machine: {found}")


def need_files_and_network_shut(found: package.Probe) -> None:
    """Skip the test of a worker below the level "no network namespace"."""
    if _sound(found).level not in (package.FULL, NO_NETWORK_NAMESPACE):
        pytest.skip(f"files or network are open on this machine: {found}")


def _sound(found: package.Probe) -> package.Probe:
    """A layer may be refused by the machine; one that was put on and does not hold is our fault, and no reason to skip."""
    faults = [layer for layer in found.layers if layer.why.startswith(("a worker still", "an honest worker", "together", "the probe"))]
    assert not faults, f"{faults[0].name} does not hold: {found}"
    return found


def command_as(user: str) -> list[str]:
    """Return the start of a command that runs as a user. Where Python is in a private home, nobody gets a view of the disk without it."""
    if user != "nobody":
        return []
    if os.getuid() != 0 or not all(shutil.which(program) for program in ("unshare", "setpriv")):
        pytest.skip("only root can become nobody, and needs unshare and setpriv for it")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("nobody needs a view of the disk of its own, and there is none in this container")
    if private := _private(Path(__file__).resolve()):
        pytest.skip(f"the course lies in {private[-1].name}, where nobody but root sees anything")
    become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    base = Path(sys.base_prefix).resolve()
    private = _private(base)
    if not private:
        return become
    script = (
        'home=$1; base=$2; shift 2; kept=$(mktemp -d); mount --bind "$base" "$kept"; mount -t tmpfs -o mode=755 none "$home";'
        'mkdir -p "$base"; mount --bind "$kept" "$base"; rmdir "$kept" 2>/dev/null || true; exec "$@"'
    )
    return ["unshare", "-m", "sh", "-ec", script, "sh", str(private[-1]), str(base), *become]


def command_in(container: str) -> list[str]:
    """Return the start of a command that runs as if in one of `CONTAINERS`; the checkout must be on the path."""
    if sys.platform != "linux":
        pytest.skip("only Linux can be told to refuse system calls")
    return [sys.executable, "-m", "tests.classroom.container", *(["--old"] if "old" in container else [])]
