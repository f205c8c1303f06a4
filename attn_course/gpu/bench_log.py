"""A file of JSON lines that holds what was measured as soon as it was: a run that dies keeps what it had, the next goes on.

A line is {"run": device and versions}, {"begun": key}, {"key": key, "result": what came out}, or a note, each with its time. What
an earlier run on the same device with the same versions finished is not done again; what was begun twice and never finished took
its process down, and is given up.
"""

import datetime
import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

TRIES = 2
Line = dict[str, Any]


def versions() -> dict[str, str | None]:
    """Return the versions that a time depends on; None for what is not there."""
    try:
        triton = metadata.version("triton")
    except metadata.PackageNotFoundError:
        triton = None
    cudnn = torch.backends.cudnn.version()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton,
        "cuda": torch.version.cuda,
        "cudnn": None if cudnn is None else str(cudnn),
    }


def source_hash(*more: Path) -> str:
    """Return a hash of the kernels, of what launches them, and of more files: a result is that of one source."""
    files = [*sorted(path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("bench")), *more]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def now() -> str:
    """Return the time, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class Log:
    """The lines of one file, or of memory alone where `path` is None; `run` names device and versions (None: the file's last)."""

    def __init__(self, path: Path | None, run: Line | None = None) -> None:
        text = path.read_text(encoding="utf-8") if path is not None and path.exists() else ""
        lines = list(_whole(text))
        self.path = path
        self.run: Line = run or next((line["run"] for line in reversed(lines) if "run" in line), {})
        self.results: list[Line] = []
        self._finished: set[str] = set()
        self._begun: Counter[str] = Counter()
        same = True
        for line in lines:
            if "run" in line:
                same = line["run"] == self.run
            elif same and "begun" in line:
                self._begun[_text(line["begun"])] += 1
            elif same and "key" in line:
                self._finished.add(_text(line["key"]))
                self.results.append({**line["key"], **line["result"], "time": line["time"]})
        if run is not None:
            self.note({"run": run}, before="\n" if text and not text.endswith("\n") else "")

    def wants(self, key: Line) -> bool:
        """Whether something is still to be done; what took its process down twice gets its line here, with an error."""
        text = _text(key)
        if text not in self._finished and self._begun[text] >= TRIES:
            self.finish(key, {"error": f"its process ended {TRIES} times before it did"})
        return text not in self._finished

    def begin(self, key: Line) -> None:
        """Write down that it is about to be done."""
        self._begun[_text(key)] += 1
        self.note({"begun": key})

    def finish(self, key: Line, result: Line) -> Line:
        """Write down what came out, and return it with its key."""
        self._finished.add(_text(key))
        self.results.append({**key, **result, "time": self.note({"key": key, "result": result})})
        return self.results[-1]

    def note(self, line: Line, *, before: str = "") -> str:
        """Write down anything, and return the time it got."""
        time = now()
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:  # one write: several processes may share the file
                file.write(before + json.dumps({**line, "time": time}, allow_nan=False) + "\n")
        return time


def _whole(text: str) -> Iterator[Line]:
    """Yield the lines that are whole; the last line of a process that was killed may be half a line."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _text(key: Line) -> str:
    return json.dumps(key, sort_keys=True)
