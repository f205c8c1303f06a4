"""What tests of class runs share: an engine of threads, a class, and a folder's content without its times."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attn_course.grading.class_engines import Pool
from attn_course.grading.class_grade import Graded, Order, grade_class
from tests.grading.stand_in import StandIn, notebook


class Threads:
    """Grades in this process: quick, for whatever is not about processes that die."""

    width = 2

    @contextlib.contextmanager
    def open(self) -> Iterator[Executor]:
        with ThreadPoolExecutor(1) as executor:
            yield executor


def order(submissions: Path, out: Path, **changes: Any) -> Order:
    """An order with what a test leaves open."""
    return Order(**{"submissions": submissions, "out": out, "engine": Threads(), "grader": StandIn, "seed": 7} | changes)


def grade(submissions: Path, out: Path, **changes: Any) -> Graded:
    """Grade a class in this process."""
    return grade_class(order(submissions, out, **changes))


def small_class(folder: Path, students: int = 4) -> Path:
    """Students s00, s01, ... who each hand in chapter 2, and get one task more right than the one before."""
    for number in range(students):
        notebook(folder / f"s{number:02d}" / "02_softmax.ipynb", right=" ".join(map(str, range(1, number % 10 + 1))))
    return folder


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


__all__ = ["Pool", "StandIn", "Threads", "grade", "notebook", "order", "small_class", "without_times"]
