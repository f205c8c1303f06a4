"""A grader that executes nothing: a notebook says in words what is to happen, so that class runs are tested apart from the sandbox.

"right stable-softmax" passes that task. "kill" ends the grading process, "kill once FILE" only while FILE is not there, "slow S" waits,
"break" raises, "say TEXT" makes TEXT the diagnosis of every failed task, "note TEXT" is a note for the teacher,
"unreadable TEXT" is why the file cannot be judged, "partly" gives one point for the first task, failed though it is.
"""

import json
import math
import os
import re
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from attn_course.classroom.budget import USUAL, Budget
from attn_course.tasks import all_tasks
from attn_course.tasks.core import Verdict


@dataclass(frozen=True)
class Probe:
    level: str = "full"

    def __str__(self) -> str:
        return "sandbox: full (a stand-in)"


class StandIn:
    def __init__(self, *, seed: int, allow_unsafe: bool = False, limits: Budget = USUAL, variants: bool = False) -> None:
        self.seed = seed
        self.probe = Probe()

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def grade(
        self, path: Path, *, student: str, lesson: str | None = None, tasks: Collection[str] | None = None, within_s: float = math.inf
    ) -> Any:
        asked = [task for task in all_tasks(lesson) if tasks is None or task.id in tasks]
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        if wanted := re.search(r"slow ([\d.]+)", text):
            time.sleep(float(wanted[1]))
        if wanted := re.search(r"kill once (\S+?)[\"\\ ]", text):
            flag = Path(wanted[1])
            if not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        elif "kill" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "break" in text:
            raise ZeroDivisionError("the stand-in broke")
        said = json.loads(f'"{wanted[1]}"') if (wanted := re.search(r"say (.*?)\\n", text)) else f"wrong, with seed {self.seed}"
        notes = tuple(re.findall(r"note (.*?)\\n", text))
        if wanted := re.search(r"unreadable (.*?)\\n", text):
            verdicts = tuple(_verdict(task, False, f"not judged: {wanted[1]}") for task in asked)
            return SimpleNamespace(verdicts=verdicts, notes=(wanted[1],), lesson=lesson, seconds=0.0, problem=wanted[1])
        verdicts = tuple(_verdict(task, f"right {task.id} " in text, said) for task in asked)
        if "partly" in text:
            verdicts = (replace(verdicts[0], points=1), *verdicts[1:])
        return SimpleNamespace(
            verdicts=verdicts, notes=notes, lesson=lesson, seconds=0.0, problem="", answers=dict.fromkeys((task.id for task in asked), said)
        )


class Unsafe(StandIn):
    """Refuses to grade, as the real one does without a sandbox."""

    def __init__(self, *, allow_unsafe: bool = False, **options: Any) -> None:
        super().__init__(**options)
        if not allow_unsafe:
            raise RuntimeError("no sandbox here; --allow-unsafe grades without one")


def _verdict(task: Any, right: bool, said: str) -> Verdict:
    if right:
        return Verdict(task.id, task.title, True, task.points, task.points, task.ok_line, equation=task.equation)
    known = task.wrong[0]
    return Verdict(task.id, task.title, False, 0, task.points, said, known.name, known.hint, task.equation)


def notebook(path: Path, lesson: str = "softmax", *, right: str = "", words: str = "") -> Path:
    """Write a notebook of a lesson that gets these tasks right ("1 3" for the first and the third) and does what the words say."""
    tasks = all_tasks(lesson)
    source = " ".join(f"right {tasks[int(number) - 1].id} " for number in right.split()) + f"{words}\n"
    cells = [{"cell_type": "code", "id": tasks[0].id, "metadata": {}, "source": source, "outputs": [], "execution_count": None}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), encoding="utf-8")
    return path
