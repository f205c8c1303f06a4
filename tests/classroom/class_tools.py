"""What tests of class runs share: an engine of threads, a class, and a folder's content without its times."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attn_course.classroom.grade_class import GradedClass, Order, Started, grade_class
from attn_course.classroom.store import NotebookResult
from attn_course.tasks import all_tasks
from tests.classroom.stand_in import StandIn, notebook

SOFTMAX_POINTS = sum(task.points for task in all_tasks("softmax"))


class Threads:
    """Grades in this process: quick, for whatever is not about processes that die."""

    width = 2

    @contextlib.contextmanager
    def open(self) -> Iterator[Executor]:
        with ThreadPoolExecutor(1) as executor:
            yield executor


def wait_until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass(frozen=True)
class Room:
    """A folder with a class in it, and with what it is graded to."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def hand_in(self, student: str, name: str = "02_softmax.ipynb", lesson: str = "softmax", **words: str) -> Path:
        """Hand in a notebook, `right` and `words` as the stand-in reads them; the name may have folders before it."""
        return notebook(self / "in" / student / name, lesson, **words)

    def with_students(self, count: int, where: str = "in", words: str = "") -> "Room":
        """Students s00, s01, ... hand in chapter 2, each with one task more right than the one before."""
        for number in range(count):
            right = " ".join(map(str, range(1, number % 10 + 1)))
            notebook(self / where / f"s{number:02d}" / "02_softmax.ipynb", right=right, words=words)
        return self

    def grade(
        self,
        out: str = "out",
        *,
        submissions: str = "in",
        on_start: Callable[[Started], None] = lambda started: None,
        on_result: Callable[[NotebookResult], None] = lambda result: None,
        **changes: Any,
    ) -> GradedClass:
        usual = {"submissions": self / submissions, "out": self / out, "engine": Threads(), "grader": StandIn, "seed": 7}
        return grade_class(Order(**usual | changes), on_start=on_start, on_result=on_result)

    def is_as_if_undisturbed(self, out: str = "out") -> bool:
        """Whether what was written is what a quiet run writes."""
        self.grade("undisturbed")
        return without_times(self / out) == without_times(self / "undisturbed")


def without_times(out: Path) -> dict[str, Any]:
    """Every file of a finished run, but for what takes time or locks."""
    files: dict[str, Any] = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file() and path.name != ".lock"):
        name = str(path.relative_to(out))
        files[name] = path.read_bytes()
        if name == "report.json" or name.startswith("results/"):
            data = json.loads(files[name])
            del data["times" if name == "report.json" else "seconds"]
            files[name] = json.dumps(data).encode()
    return files
