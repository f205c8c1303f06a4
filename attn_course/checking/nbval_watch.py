"""A pytest plugin, loaded only beside nbval: it writes down how each cell went, and notices a dead kernel at once.

Four things nbval itself does not do: run a copy of a notebook in the folder of the original, keep the history that
`check` reads, stop waiting for a kernel that is gone (it would wait for the whole cell timeout), and end, with its kernel
and its files, when it is told to or when whoever wanted it is gone.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from queue import Empty
from typing import Any

import nbval.plugin

VERDICT_MIME = "application/vnd.attn-course.verdict+json"
_POLL_S = 0.5
_CLEAN_UP_S = 5.0
_MAX_TEXT = 20_000
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_USAGE = re.compile(r"UsageError: (.*)")  # the whole of what IPython says of a magic's wrong use: no error, for a kernel
_OWN_LINE = re.compile(r"Cell In\[\d*\s*\][^\n]*?line (\d+)")
_SYNTAX_FILE = re.compile(r"\s*\((?:[^()\s]+\.py|<[^<>]*>|[^(),]*), line (\d+)\)$")


class KernelDied(RuntimeError):
    """The process that runs the cells has ended."""


class WatchedKernel(nbval.plugin.RunningKernel):  # type: ignore[misc]  # nbval has no types
    """A kernel that works in a folder of our choice and whose death is noticed within half a second.

    After `exit()` a kernel still replies, lives for a moment and may even run the next cells; `exiting` tells at once.
    """

    folder: str
    exiting = False

    def __init__(self, kernel_name: str, cwd: str | None = None, startup_timeout: float = 60) -> None:
        try:
            super().__init__(kernel_name, cwd=self.folder, startup_timeout=startup_timeout)
        except RuntimeError:  # once more, on other ports: between the choice of a port and its use another program may take it
            super().__init__(kernel_name, cwd=self.folder, startup_timeout=startup_timeout)

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Send a cell as a front end does, so that `check` finds the cells run so far in `In`; nbval keeps no history."""
        return str(self.kc.execute(cell_input, store_history=True, allow_stdin=bool(allow_stdin), stop_on_error=False))

    def get_message(self, stream: str, timeout: float | None = None) -> Any:
        """Take a message, and see in the reply to a cell whether it called exit or quit; wait in short turns, for none comes from the dead.

        Straight from its channel: nbval goes through an event loop, and prints each message nicely, for nobody.
        """
        channel = self.kc.iopub_channel if stream == "iopub" else self.kc.shell_channel
        end = float("inf") if timeout is None else time.monotonic() + timeout
        gone = False
        while True:
            try:
                message = channel.get_msg(timeout=max(0.0, min(_POLL_S, end - time.monotonic())))
                break
            except Empty:
                if gone:  # and what it had sent before has been taken
                    self.stop()
                    raise KernelDied("the kernel has ended") from None
                gone = not self.is_alive()
                if not gone and time.monotonic() >= end:
                    raise
        payload = message["content"].get("payload") or []
        self.exiting |= stream == "shell" and any(item.get("source") == "ask_exit" for item in payload)
        return message

    def stop(self) -> None:
        """End the kernel and what it started; nobody else ends what a kernel that has died leaves in its group."""
        group = getattr(self.km.provisioner, "pgid", None)
        super().stop()
        if group:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)


def pytest_addoption(parser: Any) -> None:
    """Add what this plugin needs to know."""
    group = parser.getgroup("attn_course")
    group.addoption("--kernel-folder", required=True, help="folder in which the cells run")
    group.addoption("--cell-log", required=True, help="file that receives one JSON line for each cell; its folder is that of the run")
    group.addoption("--owner", required=True, type=int, help="process id of our parent: without it nothing is to run")


def pytest_configure(config: Any) -> None:
    """Let nbval start our kernel in place of its own; end with our parent."""
    place = Path(config.option.cell_log).parent
    tempfile.tempdir = str(place)  # of our own files only: the kernel's connection file, with its key
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # pytest cleans up after a KeyboardInterrupt
    if os.name == "posix":  # elsewhere a virtual environment's Python stands between us and our parent
        threading.Thread(target=_end_with, args=(config.option.owner, place), daemon=True).start()
    WatchedKernel.folder = config.option.kernel_folder
    nbval.plugin.RunningKernel = WatchedKernel


def _end_with(owner: int, place: Path) -> None:
    """Wait until our parent is gone, whatever ended it; then end, and remove what it would have removed."""
    while os.getppid() == owner:
        time.sleep(_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_CLEAN_UP_S)  # if it has not ended by then, it never will
    shutil.rmtree(place, ignore_errors=True)
    os._exit(1)


def pytest_unconfigure(config: Any) -> None:
    """Remove the folder of the run if nobody else is there to do it."""
    if os.name == "posix" and os.getppid() != config.option.owner:
        shutil.rmtree(Path(config.option.cell_log).parent, ignore_errors=True)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run every cell: a skip marker in a learner's cell would make its answer vanish."""
    for item in items:
        item.options["skip"] = False


def pytest_runtest_setup(item: Any) -> None:
    """Forget an earlier timeout; nbval would expect all later cells to fail."""
    item.parent.timed_out = False


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Write one line for each cell; return None, so that pytest makes its own report."""
    if call.when == "teardown" or (call.when == "setup" and call.excinfo is None):
        return
    line = {"cell": item.cell_num, "seconds": call.duration, **_outputs(item)}
    if line.get("error_name") == "UsageError":
        line["problem"] = "exception"
    if call.excinfo is not None:
        line["problem"] = _problem(call.when, call.excinfo.value)
        line["alive"] = item.parent.kernel is not None and item.parent.kernel.is_alive()
    if item.parent.kernel is not None and item.parent.kernel.exiting and item.parent.kernel.is_alive():
        item.parent.kernel.stop()  # no later cell is to run by luck
        line |= {"problem": "died", "alive": False}
    with Path(item.config.option.cell_log).open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def _problem(when: str, error: BaseException) -> str:
    if when == "setup":
        return "no kernel"
    if isinstance(error, KernelDied):
        return "died"
    if "Kernel dead" in str(error):
        return "gone"  # before this cell began
    if str(error).startswith("Timeout"):
        return "timeout"
    return "differs" if str(error).startswith("Cell outputs differ") else "exception"


def _outputs(item: Any) -> dict[str, Any]:
    """What a report needs of the cell's outputs: printed text, the verdict of check, the error."""
    found: dict[str, Any] = {"stdout": ""}
    for output in item.test_outputs or []:
        if output.output_type == "stream" and output.name == "stdout":
            found["stdout"] = (found["stdout"] + output.text)[-_MAX_TEXT:]
        elif output.output_type == "stream" and (usage := _USAGE.match(_ANSI.sub("", output.text))):
            found |= {"error_name": "UsageError", "error_text": usage[1]}
        elif output.output_type == "display_data" and VERDICT_MIME in output.data:
            found["verdict"] = output.data[VERDICT_MIME]
        elif output.output_type == "display_data":
            found["stdout"] = f"{found['stdout']}{output.data.get('text/plain', '')}\n"[-_MAX_TEXT:]
        elif output.output_type == "error":
            found["error_name"] = str(output.ename)
            found["error_text"] = _one_line(str(output.evalue), output.traceback)
    return found


def _one_line(text: str, traceback: list[str]) -> str:
    """The error's first line, with the line of the learner's cell where it happened."""
    first = _ANSI.sub("", text).strip().splitlines()[0:1]
    message, in_syntax = _SYNTAX_FILE.subn(r" in line \1 of the cell", first[0][:300] if first else "")
    own_lines = _OWN_LINE.findall(_ANSI.sub("", "\n".join(traceback)))
    return message if in_syntax or not own_lines else f"{message} in line {own_lines[0]} of the cell".strip()
