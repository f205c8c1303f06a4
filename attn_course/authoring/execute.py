"""Run a notebook in a fresh, deterministic kernel and keep its outputs."""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode, from_dict

from attn_course.authoring.notebook import LANGUAGE_INFO, code_cells
from attn_course.authoring.outputs import settle
from attn_course.authoring.problems import AuthoringError, shorten

CELL_TIMEOUT_S = 300
OnCell = Callable[[str, int, int], None]  # cell id, its number from 1, how many there are
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_KERNEL = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute(notebook: NotebookNode, folder: Path, package_root: Path, name: str, on_cell: OnCell) -> None:
    """Run all cells in order and store outputs and execution counts 1..n in `notebook`.

    `notebook`: changed in place. `folder`: where it runs: the folder it will lie in. `package_root`: folder that holds the
    `attn_course` package the notebook imports. `on_cell`: told before each code cell. Raises AuthoringError if a cell fails,
    takes too long, kills the kernel, or leaves an output that no later run could repeat.
    """
    begun = [""]  # the code cells, the one that runs last

    def start(cell: NotebookNode, cell_index: int) -> None:
        if cell.cell_type == "code":
            begun.append(cell.id)
            on_cell(cell.id, len(begun) - 1, len(code_cells(notebook)))

    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_S, record_timing=False, coalesce_streams=True, store_widget_state=False,
        resources={"metadata": {"path": str(folder)}}, on_cell_start=start,
    )  # fmt: skip
    kernel_spec = client.create_kernel_manager().kernel_spec
    assert kernel_spec is not None  # jupyter_client knows its native kernel without any file
    kernel_spec.argv[:] = _KERNEL
    with tempfile.TemporaryDirectory(prefix="attn-course-") as profile:
        try:
            client.execute(env=environment(package_root, profile))
        except CellExecutionError as error:
            raise AuthoringError(f"{name}: cell {begun[-1]!r} failed: {_reason(error, notebook, begun[-1])}") from None
        except (CellTimeoutError, DeadKernelError, CellControlSignal) as error:
            raise AuthoringError(f"{name}: cell {begun[-1]!r} did not finish: {str(error).strip().splitlines()[0]}") from None
    notebook.metadata.language_info = from_dict(LANGUAGE_INFO)  # nbclient has put the interpreter's version in
    settle(notebook, name)


def environment(package_root: Path, profile: str) -> dict[str, str]:
    """Return the environment of the kernel: inline figures, fixed hashes, one thread, nobody's IPython profile."""
    paths = [str(package_root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": profile,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }  # fmt: skip


def _reason(error: CellExecutionError, notebook: NotebookNode, cell_id: str) -> str:
    """The exception in one line, and the line of the cell it came from."""
    reason = f"{error.ename}: {error.evalue}".splitlines()[0]
    cell = next(cell for cell in notebook.cells if cell.id == cell_id)
    traceback = "\n".join(line for output in cell.outputs if output.output_type == "error" for line in output.traceback)
    arrow = re.search(r"^-+> ?(\d+) (.*)$", _ANSI.sub("", traceback), flags=re.MULTILINE)
    return f"{reason} (line {arrow[1]}: {shorten(arrow[2].strip())})" if arrow else reason
