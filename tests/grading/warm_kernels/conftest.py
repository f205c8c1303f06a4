"""A notebook kernel as the tests use it: forked or plain, asked one expression at a time."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from attn_course.grading.warm_kernels.client import ForkedKernel, can_fork
from attn_course.grading.warm_kernels.owner import WarmKernels
from attn_course.grading.warm_kernels.provisioner import use_warm_kernel


class Asked:
    """A kernel, and what its cells print."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self.manager, self.client = manager, client

    @property
    def is_forked(self) -> bool:
        return isinstance(self.manager.provisioner.process, ForkedKernel)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def run(self, code: str, timeout: float = 60) -> str:
        """What a cell prints, or the name and text of its error."""
        said: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(content.get("text") or (f"{content['ename']}: {content['evalue']}" if "ename" in content else ""))

        self.client.execute_interactive(code, output_hook=keep, timeout=timeout, store_history=True, allow_stdin=False)
        return "".join(said).strip()


@contextmanager
def started(warm: WarmKernels | None, cwd: Path, **environment: str) -> Iterator[Asked]:
    """A kernel of this environment, forked if `warm` is given."""
    manager = KernelManager(kernel_name="python3")
    variables = use_warm_kernel(manager, warm)
    environment = {**os.environ, "IPYTHONDIR": str(cwd / "ipython"), **environment, **variables}
    manager.start_kernel(stderr=subprocess.DEVNULL, cwd=str(cwd), env=environment)
    client = manager.client()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=60)
        yield Asked(manager, client)
    finally:
        client.stop_channels()
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(warm: WarmKernels | None, tmp_path: Path) -> Iterator[Callable[..., Asked]]:
    """Start forked kernels, or plain ones with `forked=False`; they end with the test."""
    if not can_fork():
        pytest.skip("kernels cannot be forked on this system; they are plain, and other tests run those")
    with ExitStack() as stack:

        def start(*, forked: bool = True, cwd: Path = tmp_path, **environment: str) -> Asked:
            asked = stack.enter_context(started(warm if forked else None, cwd, **environment))
            assert asked.is_forked == forked
            return asked

        yield start
