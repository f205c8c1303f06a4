"""Time class grading side by side with nbgrader and otter-grader on the same submissions: python -m tests.benchmarks.graders --help."""

import argparse
import copy
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests import layered_environment

ROOT = Path(__file__).resolve().parents[2]
LESSON, SEED = "softmax", 7
WRONG = {  # by task id: what some hand in
    "stable-softmax": "def my_softmax(scores, axis):\n    e = np.exp(scores)\n    return e / e.sum(axis=axis, keepdims=True)",
    "entropy-by-hand": "my_entropy = 1.5",
    "softmax-jacobian": "def my_jacobian(weights):\n    return weights[..., None] * np.eye(weights.shape[-1])",
    "repair-softmax-temperature": None,  # not answered
}
REQUIREMENTS = {"nbgrader": ROOT / "tests" / "nbgrader" / "requirements.txt", "otter": Path(__file__).with_name("otter.txt")}

OTHERS = 60  # more in number than the first of as many students with the same mistakes, whose formulas have other blanks

Points = dict[str, int]  # by student


@dataclass
class Run:
    """One pass over all submissions."""

    name: str
    seconds: float
    cpu_s: float
    points: Points = field(default_factory=dict)


# --- submissions ---------------------------------------------------------------------------------------


def built(folder: str) -> dict[str, Any]:
    (path,) = (ROOT / folder).glob(f"*_{LESSON}.ipynb")
    return dict(json.loads(path.read_text("utf-8")))


def submission(number: int) -> dict[str, Any]:
    """Return a notebook as a student hands it in: the exercise, answered, with torch imported; most answers are right.

    Every third student writes formulas with blanks that no other has, so that the text is judged for the first time.
    """
    from attn_course.tasks import all_tasks

    exercise, solution = built("exercises"), built("solutions")
    answers = {cell["id"]: "".join(cell["source"]) for cell in solution["cells"]}
    book = copy.deepcopy(exercise)
    mistakes = list(WRONG)[: number % (len(WRONG) + 1)]
    for task in all_tasks(LESSON):
        cell = next(cell for cell in book["cells"] if cell["id"] == task.id)
        cell["source"] = answers[task.id] if task.id not in mistakes else WRONG[task.id] or cell["source"]
        if task.wants_latex and number % 3 == 0:
            cell["source"] = cell["source"].replace('r"', 'r"' + r"\," * (number // 3 + 1))
    own = {"cell_type": "code", "id": "own", "metadata": {}, "execution_count": None, "outputs": [], "source": "import torch"}
    first = next(place for place, cell in enumerate(book["cells"]) if cell["id"] == "setup")
    book["cells"].insert(first + 1, own)
    book["cells"][-1]["source"] = [*book["cells"][-1]["source"], f"\n# student {number}"]
    return book


def hand_in(folder: Path, count: int, first: int = 0) -> dict[str, Path]:
    """Write folder/student/softmax.ipynb, the first student's number being `first`; return the paths by student."""
    numbers = range(first, first + count)
    paths = {f"s{number:04d}": folder / f"s{number:04d}" / f"{LESSON}.ipynb" for number in numbers}
    for number, path in zip(numbers, paths.values(), strict=True):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(submission(number)), encoding="utf-8")
    return paths


# --- clocks --------------------------------------------------------------------------------------------


def cpu_s() -> float:
    """Seconds of processor time of this process and of all below it, those that have ended among them."""
    total, family = 0.0, {os.getpid()}
    for entry in sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if entry in family or int(fields[1]) in family:
            family.add(entry)
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


@contextmanager
def clock(name: str, into: list[Run]) -> Iterator[Run]:
    run, start, before = Run(name, 0.0, 0.0), time.perf_counter(), cpu_s()
    yield run
    run.seconds, run.cpu_s = time.perf_counter() - start, cpu_s() - before
    into.append(run)
    print(f"{name}: {run.seconds:.2f} s, {run.cpu_s:.2f} s of processor time", file=sys.stderr, flush=True)


def call(command: Sequence[str | Path], *, cwd: Path, python: Path | None = None) -> str:
    """Run a command without what belongs to this process's own environment; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "PYTEST"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    if python is not None:
        environment |= {"PATH": f"{python.parent}{os.pathsep}{environment['PATH']}", "HOME": str(cwd)}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


# --- ours ----------------------------------------------------------------------------------------------


def ours(paths: dict[str, Path], scratch: Path) -> list[Run]:
    """A bare import of torch, a fresh process that grades all and then others, a warm class on two processes, the command."""
    runs: list[Run] = []
    others, many = hand_in(scratch / "others", len(paths), OTHERS), hand_in(scratch / "many", WARM_AFTER * len(paths), 2 * OTHERS)
    with clock("import torch", runs):
        call([sys.executable, "-c", "import torch"], cwd=ROOT)
    with clock("ours, cold", runs) as cold:
        printed = call(
            [sys.executable, "-m", __spec__.name if __spec__ else "tests.benchmarks.graders", "--grade", _listed(paths, others)], cwd=ROOT
        )
    first, again = (Run(**run) for run in json.loads(printed.splitlines()[-1]))
    cold.points = first.points
    cold.seconds -= again.seconds
    cold.cpu_s -= again.cpu_s
    return [*runs, again, warm_class(paths, many), command(paths, scratch)]


def grade_twice(paths: dict[str, Path], others: dict[str, Path]) -> list[Run]:
    """Grade all with one grader, and when it is warm as many others."""
    from attn_course.classroom import fork_server

    fork_server.begin()
    from attn_course.classroom.grader import Grader

    runs: list[Run] = []
    with Grader(seed=SEED) as grader:
        for name, given in (("ours, first pass", paths), ("ours, warm", others)):
            with clock(name, runs) as run:
                graded = [grader.grade(path, student=student, lesson=LESSON) for student, path in given.items()]
                run.points = {
                    student: sum(verdict.points for verdict in each.verdicts) for student, each in zip(paths, graded, strict=True)
                }
    return runs


def warm_class(paths: dict[str, Path], others: dict[str, Path], jobs: int = 2) -> Run:
    """Grade all as a class run does, on processes that have graded others before."""
    from attn_course.classroom.engines import Pool
    from attn_course.classroom.grader import Grader
    from attn_course.classroom.hand_ins import find_submissions
    from attn_course.classroom.process import Setup
    from attn_course.classroom.run import ClassRun

    points: Points = {}
    runs: list[Run] = []
    with ClassRun(Pool(jobs), Setup(SEED, allow_unsafe=False, grader=Grader)) as graders:
        for name, given in (("ours, first pass of a class", others), (WARM.format(jobs=jobs), paths)):
            found = find_submissions(next(iter(given.values())).parents[1], lessons=[LESSON])
            points.clear()
            with clock(name, runs) as run:
                graders.grade(found.hand_ins, lambda given, result: points.update({given.student: sum(v.points for v in result.verdicts)}))
            run.points = dict(points)
    return runs[-1]


WARM, WARM_AFTER = "ours, warm, {jobs} processes", 5  # times as many, after which all is done that is done once


def command(paths: dict[str, Path], scratch: Path, jobs: int = 2) -> Run:
    """`attn-course grade`, from its start to its end."""
    runs: list[Run] = []
    submitted, out = next(iter(paths.values())).parents[1], Path(tempfile.mkdtemp(dir=scratch)) / "out"
    words = ["-c", "from attn_course.cli import main; main()", "grade", submitted, "--out", out, "--seed", str(SEED), "--jobs", str(jobs)]
    with clock(f"attn-course grade --jobs {jobs}", runs) as run:
        call([sys.executable, *words], cwd=ROOT)
    report = json.loads((out / "report.json").read_text("utf-8"))
    run.points = {student["student"]: student["points"] for student in report["students"]}
    return run


def _listed(*classes: dict[str, Path]) -> str:
    return json.dumps([{student: str(path) for student, path in paths.items()} for paths in classes])


# --- the others ----------------------------------------------------------------------------------------


def interpreter(tool: str, cache: Path) -> Path:
    """The Python of a tool's environment, behind which lies that of the course; made once."""
    if named := os.environ.get(f"{tool.upper()}_PYTHON"):
        return Path(named)
    folder = cache / tool
    python, done = folder / "bin" / "python", folder / "done"
    if not done.exists():
        print(f"making the environment of {tool} in {folder} ...", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        layered_environment.main(folder, ["--quiet", "-r", str(REQUIREMENTS[tool])])
        done.touch()
    return python


def nbgrader(paths: dict[str, Path], scratch: Path, python: Path) -> list[Run]:
    """`nbgrader autograde` on the assignment that it generates from our solutions."""
    from attn_course.authoring.nbgrader_source import prepare

    course = scratch / "nbgrader"
    course.mkdir()
    (course / "nbgrader_config.py").write_text('c.CourseDirectory.course_id = "attention"\n', encoding="utf-8")
    prepare(ROOT, course, [LESSON])
    call([python, "-m", "nbgrader", "generate_assignment", LESSON], cwd=course, python=python)
    for student, path in paths.items():
        (course / "submitted" / student / LESSON).mkdir(parents=True)
        shutil.copyfile(path, course / "submitted" / student / LESSON / path.name)
    runs: list[Run] = []
    with clock("nbgrader autograde", runs) as run:
        call([python, "-m", "nbgrader", "autograde", LESSON], cwd=course, python=python)
    query = """select submitted_assignment.student_id, sum(grade.auto_score) from grade
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id group by 1"""
    with closing(sqlite3.connect(course / "gradebook.db")) as database:
        run.points = {student: int(points) for student, points in database.execute(query)}
    return runs


def otter_tests(folder: Path) -> None:
    from attn_course.tasks import all_tasks

    folder.mkdir(parents=True)
    for task in all_tasks(LESSON):
        says = f'>>> from attn_course import check\n>>> check("{task.id}", {task.entry})'  # a card is displayed, and nothing printed
        suite = {"cases": [{"code": says, "hidden": False}], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
        test = {"name": f"q{task.id.replace('-', '_')}", "points": task.points, "suites": [suite]}
        (folder / f"{test['name']}.py").write_text(f"OK_FORMAT = True\ntest = {test!r}\n", encoding="utf-8")


def otter(paths: dict[str, Path], scratch: Path, python: Path) -> list[Run]:
    """`otter run` on each notebook, with a test for each task that calls its check."""
    folder = scratch / "otter"
    otter_tests(folder / "tests")
    call([python, "-m", "otter", "generate", "-t", "tests", "-o", "autograder.zip"], cwd=folder, python=python)
    runs: list[Run] = []
    with clock("otter run", runs) as run:
        for student, path in paths.items():
            (folder / student).mkdir()
            call([python, "-m", "otter", "run", path, "-a", "autograder.zip", "-o", folder / student], cwd=folder, python=python)
    for student in paths:
        tests = json.loads((folder / student / "results.json").read_text("utf-8"))["tests"]
        run.points[student] = int(sum(test.get("score", 0) for test in tests))
    return runs


# --- the table -----------------------------------------------------------------------------------------


def table(runs: Sequence[Run], count: int) -> str:
    """Seconds, processor seconds, how many times ours when warm, and on how many submissions the points are ours."""
    base = next((run for run in runs if run.name == WARM.format(jobs=2)), runs[0])
    lines = [f"{'':<28}{'s':>9}{'s each':>9}{'CPU s':>9}{'CPU x':>8}{'s x':>8}  same points"]
    for run in runs:
        same = sum(run.points.get(student) == points for student, points in base.points.items())
        told = f"{same} of {count}" if run.points else "-"
        ratios = f"{run.cpu_s / base.cpu_s:8.1f}{run.seconds / base.seconds:8.1f}"
        lines.append(f"{run.name:<28}{run.seconds:9.2f}{run.seconds / count:9.3f}{run.cpu_s:9.2f}{ratios}  {told}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.graders", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="submissions (default 12)")
    parser.add_argument("--class", dest="large", type=int, metavar="N", help="instead: N submissions through attn-course grade")
    parser.add_argument("--jobs", type=int, default=2, help="grading processes of that class (default 2)")
    parser.add_argument("--only", default="ours,nbgrader,otter", help="which of ours,nbgrader,otter")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "attn_course_benchmarks", help="where environments are made")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--grade", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if unknown := set(given.only.split(",")) - {"ours", "nbgrader", "otter"}:
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}")
    if given.grade:
        classes = [{student: Path(path) for student, path in paths.items()} for paths in json.loads(given.grade)]
        print(json.dumps([asdict(run) for run in grade_twice(*classes)]))
        return
    others: dict[str, Callable[..., list[Run]]] = {"nbgrader": nbgrader, "otter": otter}
    count = given.large or given.count
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        scratch = Path(folder).resolve()
        paths = hand_in(scratch / "submissions", count)
        runs: list[Run] = []
        if given.large:
            runs.append(command(paths, scratch, given.jobs))
        else:
            for name in given.only.split(","):
                if name not in others:
                    runs += ours(paths, scratch)
                else:
                    given.cache.mkdir(parents=True, exist_ok=True)
                    runs += others[name](paths, scratch, interpreter(name, given.cache))
    print(table(runs, count))
    if given.json:
        about = {"cores": os.cpu_count(), "load": os.getloadavg(), "submissions": count, "runs": [asdict(run) for run in runs]}
        given.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
