"""Start a warm process, and end it with its owner."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from attn_course.grading.warm_kernels.client import NotToBeHad, can_fork
from attn_course.grading.warm_kernels.settings import IMPORTS, OFF, SOCKET_VARIABLE, tell_once

_PACKAGE_ROOT = Path(__file__).resolve().parents[3]
_MAIN = """
import sys
sys.path[0] = sys.argv.pop(1)
from attn_course.grading.warm_kernels import forked, warm_process
job = warm_process.main()
if job is not None:
    forked.become(job)
"""
_END_S = 10.0


class WarmKernels:
    """A warm process; kernels whose environment holds `variables` are forked from it.

    Parameters
    ----------
    environment : mapping of str to str, optional
        What kernels will have; ours if None. Variables that libraries read when they are imported are fixed by it.
    imports : sequence of str
        Modules to import beforehand; those that are not installed are left out.
    idle_s : float
        Without a kernel for so long, it ends by itself.

    Raises
    ------
    NotToBeHad
        On entering, where kernels cannot be forked.
    """

    def __init__(self, *, environment: Mapping[str, str] | None = None, imports: Sequence[str] = IMPORTS, idle_s: float = 600.0) -> None:
        self.environment = environment
        self.imports = imports
        self.idle_s = idle_s
        self.process: subprocess.Popen[bytes] | None = None
        self.folder = ""

    @property
    def socket_path(self) -> str:
        """Where it listens."""
        return str(Path(self.folder) / "kernels")

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which a provisioner finds it."""
        return {SOCKET_VARIABLE: self.socket_path}

    def __enter__(self) -> "WarmKernels":
        """Start it; it answers requests when its imports are done."""
        if not can_fork():
            raise NotToBeHad(f"kernels cannot be forked on {sys.platform}")
        self.folder = tempfile.mkdtemp(prefix="attn-course-warm-")  # nobody else may enter it
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(self.socket_path)
                listener.listen(64)
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _MAIN, str(_PACKAGE_ROOT), str(listener.fileno()), f"{self.idle_s:g}", *self.imports],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
                    env=dict(os.environ if self.environment is None else self.environment),
                    pass_fds=[listener.fileno()], start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise NotToBeHad(f"the warm process does not start ({error.strerror or error})") from None
        return self

    def wait_until_ready(self) -> None:
        """Return when the imports are done and a kernel would be forked at once; nobody needs to wait for it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(self.socket_path)
            client.shutdown(socket.SHUT_WR)
            client.recv(4096)  # it refuses an empty request

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End it and all its kernels."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.terminate()  # at once, also while it imports
        self.process.stdin.close()  # it sees this, and so it sees our death
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def warm_kernels_or_none() -> Iterator[WarmKernels | None]:
    """Start a warm process for kernels with our environment; say on stderr why there is none, and give None.

    The environment variable ATTN_COURSE_WARM_KERNELS=off asks for plain kernels, without a word.
    """
    if os.environ.get(SOCKET_VARIABLE) == OFF:
        yield None
        return
    with contextlib.ExitStack() as stack:
        warm = None
        try:
            warm = stack.enter_context(WarmKernels())
        except NotToBeHad as reason:
            tell_once(str(reason))
        yield warm
