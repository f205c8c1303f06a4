"""A pytest plugin, loaded only beside nbval: kernels come from a warm process, and nothing waits longer than it must.

jupyter_client waits until a new kernel has been silent for 0.2 s, and nbval then asks it a second time whether it is there.
One question is enough: a kernel that has answered on both channels is there. And the kernel of the next notebook starts
while the cells of this one run.
"""

import contextlib
import os
import subprocess
import sys
import time
from queue import Empty
from typing import Any

# Before the imports below: jsonschema would load a grammar of web addresses, which takes a second and which no notebook needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: an import raises ImportError

import nbval.plugin  # noqa: E402
from jupyter_client.manager import KernelManager  # noqa: E402
from nbval.kernel import NbvalKernelspecManager, RunningKernel  # noqa: E402

from attn_course.grading.warm_kernels.client import ForkedKernel  # noqa: E402
from attn_course.grading.warm_kernels.provisioner import use_warm_kernels  # noqa: E402
from attn_course.grading.warm_kernels.settings import OFF, SOCKET_VARIABLE  # noqa: E402

_FIRST_TRY_S = 0.1
_WAIT_S = 0.005


def _start(name: str, folder: str | None, **options: Any) -> KernelManager:
    manager = KernelManager(kernel_name=name, kernel_spec_manager=NbvalKernelspecManager())
    manager.start_kernel(stderr=subprocess.DEVNULL, cwd=folder, **options)
    return manager


class Spare:
    """The kernel of the next notebook, if it can be forked.

    Attributes
    ----------
    folders : list of str
        Of the notebooks to come, the next one first.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []
        self._manager: KernelManager | None = None
        self._for: tuple[Any, ...] = ()

    def take(self, name: str, folder: str | None) -> KernelManager:
        """Return a kernel for a notebook of this folder, and start the one after it."""
        manager, self._manager = self._manager, None
        if manager is not None and not (self._for == (name, folder, _environment()) and _is_ready(manager)):
            _end(manager)
            manager = None
        if manager is None:
            manager = _start(name, folder)
        del self.folders[:1]
        if self.folders and os.environ.get(SOCKET_VARIABLE, OFF) != OFF:
            self._for = name, self.folders[0], _environment()
            self._manager = _start(name, self.folders[0], when_forked=True)
        return manager

    def end(self) -> None:
        """There is no next notebook."""
        if self._manager is not None:
            _end(self._manager)
            self._manager = None


def _environment() -> dict[str, str]:
    """The variables that a kernel gets, but for the name of the test that runs."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _is_ready(manager: KernelManager) -> bool:
    """Whether a kernel that was started a while ago is there; wait until that can be told."""
    process = getattr(manager.provisioner, "process", None)
    while isinstance(process, ForkedKernel) and not process.is_ready():
        time.sleep(_WAIT_S)
    return bool(manager.is_alive())


def _end(manager: KernelManager) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        manager.shutdown_kernel(now=True)


_spare = Spare()


class QuickKernel(RunningKernel):  # type: ignore[misc]  # nbval has no types
    """A kernel that is used as soon as it answers."""

    def __init__(self, kernel_name: str, cwd: str | None = None, startup_timeout: float = 60) -> None:
        self.km = _spare.take(kernel_name, cwd)
        self.kc = self.km.client()
        self.kc.start_channels(hb=False)
        try:
            self._wait_until_it_answers(startup_timeout)
        except RuntimeError:
            self.stop()
            raise

    def get_message(self, stream: str, timeout: float | None = None) -> Any:
        """Take a message straight from its channel; nbval goes through an event loop, and prints each message nicely, for nobody."""
        channels = {"iopub": self.kc.iopub_channel, "shell": self.kc.shell_channel}
        return channels[stream].get_msg(timeout=timeout)

    def _wait_until_it_answers(self, limit_s: float) -> None:
        """Ask until both the reply and the news of it have come; news sent before we listened are lost."""
        end, patience_s = time.monotonic() + limit_s, _FIRST_TRY_S
        while time.monotonic() < end:
            question = self.kc.kernel_info()
            try:
                self._await_kernel_info(question, min(end, time.monotonic() + 10 * patience_s))
                self.await_idle(question, patience_s)
                return
            except Empty:
                patience_s *= 2
            if not self.is_alive():
                raise RuntimeError("Kernel died before replying to kernel_info")
        raise RuntimeError(f"Kernel didn't respond in {limit_s:g} seconds")

    def _await_kernel_info(self, question: str, end: float) -> None:
        while True:
            message = self.get_message("shell", timeout=max(0.0, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == question:
                self.kc._handle_kernel_info_reply(message)
                return


def pytest_configure(config: Any) -> None:
    """Let nbval start our kernels, and jupyter_client fork them if there is a warm process."""
    use_kernels(QuickKernel)


def pytest_collection_finish(session: Any) -> None:
    """Note which notebooks are to come."""
    files = dict.fromkeys(item.parent for item in session.items if isinstance(item, nbval.plugin.IPyNbCell))
    _spare.folders = [str(file.fspath.dirname) for file in files]


def pytest_sessionfinish() -> None:
    """End the kernel that nobody took."""
    _spare.end()


def use_kernels(kind: type[QuickKernel]) -> None:
    """Let nbval start kernels of this kind, forked if there is a warm process."""
    nbval.plugin.RunningKernel = kind
    use_warm_kernels()
