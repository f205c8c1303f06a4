"""A jupyter_client kernel provisioner: kernels come from the warm process, or are plain where that is not to be had."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from attn_course.grading.warm_kernels.client import ForkedKernel, NotToBeHad, can_fork
from attn_course.grading.warm_kernels.owner import WarmKernels
from attn_course.grading.warm_kernels.settings import OFF, PROVISIONER, PROVISIONER_CLASS, SOCKET_VARIABLE, tell_once

_KILLED_S = 5.0
_WAIT_S = 0.005


class WarmProvisioner(LocalProvisioner):
    """Fork a Python kernel from the warm process named by the environment variable ATTN_COURSE_WARM_KERNELS.

    Everything but the launch is the local provisioner's, so a plain kernel is exactly what jupyter_client would have started.
    """

    plain_because: str | None = None
    owner: int | None = None  # our parent, if a kernel is wanted only while it lives

    async def launch_kernel(self, cmd: list[str], *, when_forked: bool = False, **kwargs: Any) -> KernelConnectionInfo:
        """Fork the kernel; start a plain one, and say so on stderr, if that cannot be.

        `when_forked`: return at once; whoever wants the kernel asks `process.is_ready` first.
        """
        path = kwargs["env"].pop(SOCKET_VARIABLE, "")
        if path == OFF:
            return await super().launch_kernel(cmd, **kwargs)
        try:
            kernel = self._fork(path, cmd, **kwargs)
        except NotToBeHad as reason:
            if self.owner not in (None, os.getppid()):
                raise RuntimeError("whoever wanted the kernel is gone") from None
            self.plain_because = str(reason)
            tell_once(self.plain_because)
            return await super().launch_kernel(cmd, **kwargs)
        while not (when_forked or kernel.is_ready()):
            await asyncio.sleep(_WAIT_S)
        self.process: Any = kernel  # as good as a Popen
        self.pid = kernel.pid
        self.pgid = None  # signals go through the warm process, which knows whether the pid is still the kernel's
        self.cwd = kwargs.get("cwd") or str(Path.cwd())
        return self.connection_info

    async def kill(self, restart: bool = False) -> None:
        """Kill, and return when the kernel is gone; jupyter_client would look only every 0.1 s."""
        await super().kill(restart=restart)
        for _ in range(round(_KILLED_S / _WAIT_S)):
            if await self.poll() is not None:
                return
            await asyncio.sleep(_WAIT_S)

    def _fork(self, path: str, cmd: list[str], **kwargs: Any) -> ForkedKernel:
        if not path or not can_fork():
            raise NotToBeHad("no warm process was started" if can_fork() else f"kernels cannot be forked on {sys.platform}")
        folder = str(Path(kwargs.get("cwd") or Path.cwd()).absolute())
        with ExitStack() as stack:
            return ForkedKernel(
            path, arguments=_kernel_arguments(cmd), folder=folder, environment=kwargs["env"],
            files=(_file_number(kwargs.get("stdout"), 1, stack), _file_number(kwargs.get("stderr"), 2, stack)),
        )  # fmt: skip


def use_warm_kernels() -> None:
    """If our environment names a warm process, make this the provisioner of all kernels that ask for no other."""
    if SOCKET_VARIABLE in os.environ:
        _register().default_provisioner_name = PROVISIONER


def use_warm_kernel(manager: KernelManager, warm: WarmKernels | None) -> dict[str, str]:
    """Let one manager fork its kernel from a warm process, if there is one; return the variables its environment then needs."""
    if warm is None:
        return {}
    _register()
    assert manager.kernel_spec is not None
    manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": PROVISIONER}
    return warm.variables


def _register() -> KernelProvisionerFactory:
    """Make the provisioner known also where the course is not installed, or was before it had one."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[PROVISIONER] = EntryPoint(PROVISIONER, PROVISIONER_CLASS, KernelProvisionerFactory.GROUP_NAME)
    return factory


def _kernel_arguments(cmd: list[str]) -> list[str]:
    """What follows `python -m ipykernel_launcher`; an option of Python that changes what runs is none of ours."""
    executable, *rest = cmd
    options = [part for part in rest[:1] if part == "-Xfrozen_modules=off"]  # for the debugger only
    if executable != sys.executable or rest[len(options) : len(options) + 2] != ["-m", "ipykernel_launcher"]:
        raise NotToBeHad("the kernel is not this environment's IPython")
    return rest[len(options) + 2 :]


def _file_number(stream: Any, default: int, stack: ExitStack) -> int:
    """The file behind what Popen takes as stdout or stderr."""
    if stream is None:
        return default
    if stream == subprocess.DEVNULL:
        return stack.enter_context(Path(os.devnull).open("wb")).fileno()
    if isinstance(stream, int) and stream >= 0:
        return stream
    if hasattr(stream, "fileno"):
        return int(stream.fileno())
    raise NotToBeHad("the kernel's output is wanted through a pipe")
