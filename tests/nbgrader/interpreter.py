"""Code that runs in nbgrader's environment, piece by piece in one process: importing nbgrader takes longer than an export of marks.

Started as a program, it reads a line of JSON for each piece, [code, folder, arguments], and answers with one: [exit code, stdout, stderr].
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path


class Interpreter:
    """The other end: runs a piece of code, as `python -c` would in that folder."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, code: str, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        print(json.dumps([code, str(cwd), arguments]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "nbgrader's interpreter ended"
        return subprocess.CompletedProcess(code, *json.loads(answer))


def answered(code: str, folder: str, arguments: list[str]) -> tuple[int, str, str]:
    """Run a piece of code, and return its exit code and what it said."""
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    said, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            exec(code, {"__name__": "__main__"})
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception:
            traceback.print_exc()
            status = 1
    return status, said.getvalue(), errors.getvalue()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answered(*json.loads(line))), flush=True)
