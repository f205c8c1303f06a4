"""Processes of `tests.gpu.on_a_card`: side by side, started again where one goes down, and killed with their children at a limit."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LOST = 3  # exit code of a process that lost its GPU, the benchmark's too
RESTARTS = 8  # of a process that lost its GPU or was ended by a signal; each goes on behind what took the last one down
OF_FAILURES = 1  # the same for any other exit code


class Job(NamedTuple):
    """A command, the process that runs it, what it says on stderr, and how often it was started again."""

    command: list[str]
    process: subprocess.Popen
    errors: IO[bytes]
    restarts: int


def side_by_side(commands: list[list[str]], limit_s: float) -> bool:
    """Run commands until each has ended, and return whether all ended well; what still runs at the limit is killed."""
    end = time.monotonic() + limit_s
    all_well = True
    with contextlib.ExitStack() as at_last:

        def start(command: list[str], restarts: int) -> Job:
            errors = at_last.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(command, cwd=ROOT, stderr=errors, process_group=0)
            at_last.callback(kill, process)
            return Job(command, process, errors, restarts)

        jobs = [start(command, 0) for command in commands]
        while jobs and time.monotonic() < end:
            time.sleep(0.02)
            for job in [job for job in jobs if job.process.poll() is not None]:
                jobs.remove(job)
                code = job.process.returncode
                if not code:
                    continue
                print(f"{' '.join(job.command[-3:])} ended with {code}: {_last_line(job.errors)}", flush=True)
                if job.restarts < (RESTARTS if code == LOST or code < 0 else OF_FAILURES):
                    jobs.append(start(job.command, job.restarts + 1))
                else:
                    all_well = False
        return all_well and not jobs


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "nothing said"


def kill(process: subprocess.Popen) -> None:
    """Kill a process and its group, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def said_by(command: list[str], limit_s: float, **environment: str) -> tuple[int, str] | None:
    """Return exit code and the last 400 lines of what a tool says; None if it is not done within the limit."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=said, stderr=subprocess.STDOUT, process_group=0
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill(process)
        said.seek(0)
        return code, "\n".join(line.rstrip() for line in said.read().splitlines()[-400:])
