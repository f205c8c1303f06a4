"""A pytest plugin, loaded only beside nbval: kernels come from a warm process, and nothing waits longer than it must.

jupyter_client waits until a new kernel has been silent for 0.2 s, and nbval then asks it a second time whether it is there.
One question is enough: a kernel that has answered on both channels is there.
"""

import subprocess
import sys
import time
from queue import Empty
from typing import Any

# jsonschema would load a grammar of web addresses, which takes a second and which no notebook needs; it does without.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: an import raises ImportError

import nbval.plugin  # noqa: E402
from jupyter_client.manager import KernelManager  # noqa: E402
from nbval.kernel import NbvalKernelspecManager, RunningKernel  # noqa: E402

from attn_course.grading.warm_kernels.provisioner import use_warm_kernels  # noqa: E402

_FIRST_TRY_S = 0.1


class QuickKernel(RunningKernel):  # type: ignore[misc]  # nbval has no types
    """A kernel that is used as soon as it answers."""

    def __init__(self, kernel_name: str, cwd: str | None = None, startup_timeout: float = 60) -> None:
        self.km = KernelManager(kernel_name=kernel_name, kernel_spec_manager=NbvalKernelspecManager())
        self.km.start_kernel(stderr=subprocess.DEVNULL, cwd=cwd)
        self.kc = self.km.client()
        self.kc.start_channels(hb=False)
        try:
            self._wait_until_it_answers(startup_timeout)
        except RuntimeError:
            self.stop()
            raise

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
            message = self.kc.get_shell_msg(timeout=max(0.0, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == question:
                self.kc._handle_kernel_info_reply(message)
                return


def pytest_configure(config: Any) -> None:
    """Let nbval start our kernels, and jupyter_client fork them if there is a warm process."""
    use_kernels(QuickKernel)


def use_kernels(kind: type[QuickKernel]) -> None:
    """Let nbval start kernels of this kind, forked if there is a warm process."""
    nbval.plugin.RunningKernel = kind
    use_warm_kernels()
