"""The authors' guide tells the truth: typed in from it alone, its miniature passes the gate and the build, and each fault is told."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

from attn_course import numbers
from attn_course.authoring.course import units

from .chapters import ROOT

GUIDE = (ROOT / "docs/authors-guide.md").read_text(encoding="utf-8")
LESSON, EQUATIONS, FIGURES, TASKS, RIGHT = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
(ENTRY,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
SLUG = tomllib.loads(ENTRY)["lesson"][0]["slug"]
FILES = {path.format(SLUG): text for path, text in {
    "notebooks/src/{}.py": LESSON,
    "attn_course/lessons/{}/equations.py": EQUATIONS,
    "attn_course/lessons/{}/tasks.py": TASKS,
    "attn_course/lessons/{}/figures.py": FIGURES,
    "tests/exercises/right_answers/{}.py": RIGHT,
}.items()}  # fmt: skip
LESSON_PY, EQUATIONS_PY, TASKS_PY, FIGURES_PY, RIGHT_PY = FILES
MAXIMUM = TASKS[: TASKS.index("maximum")].count("\n") + 1  # the line of the last slip
LIST = "notebooks/series.toml"
NUMBER = len([unit for unit in units(ROOT) if unit.folder == "notebooks"])
BUILT = [f"notebooks/{NUMBER}_{SLUG}.ipynb", f"solutions/{NUMBER}_{SLUG}.ipynb", f"exercises/ex_{NUMBER}_{SLUG}.ipynb"]
WRITTEN = ["attn_course/numbers.json", "README.md"]

# Run in a copy of the course: for each set of edits a process of its own (forked, so that libraries are imported once) makes them,
# builds if that is asked for, without a kernel, and checks.
TRIED = """
import json, os, sys
from pathlib import Path
import jupytext, nbformat, sympy, torch
from attn_course import authoring, equations
from attn_course.authoring import gates, render
from attn_course.authoring.imports import parsed
from attn_course.authoring.outputs import settle
from attn_course.tasks import gates

for slug in equations.lessons():
    if slug != sys.argv[1]:
        equations.all_equations(slug)
for path in Path("attn_course").rglob("*.py"):
    parsed(path.read_text(encoding="utf-8"), path.as_posix())

for edits in json.load(sys.stdin):
    before = {name: Path(name).read_text(encoding="utf-8") for name, *_ in edits if name != "build"}
    child = os.fork()
    if child == 0:
        try:
            for name, *change in edits:
                if name == "build":
                    authoring.build(".", only=change, execute=lambda notebook, *rest: settle(notebook, "n"))
                elif change == [None]:
                    Path(name).unlink()
                else:
                    text = Path(name).read_text(encoding="utf-8")
                    assert change[0] in text, change
                    Path(name).write_text(text.replace(*change, 1), encoding="utf-8")
            print(json.dumps([str(problem) for problem in authoring.check(".", only=[sys.argv[1]])]), flush=True)
        except Exception as error:
            print(json.dumps([str(error)]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    if not any(name == "build" for name, *_ in edits):
        for name, text in before.items():
            Path(name).write_text(text, encoding="utf-8")
"""


def in_copy(root: Path, *command: str, given: str = "") -> str:
    """What a command says in a copy of the course, which it also imports; nothing it imports is cached, for files change quickly."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=root, env=environment, input=given, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout


def attn_course(root: Path, *arguments: str) -> list[str]:
    return in_copy(root, "-c", "from attn_course.cli import main; main()", *arguments).splitlines()


def tried(root: Path, *edits: list) -> list[list[str]]:
    return [json.loads(line) for line in in_copy(root, "-c", TRIED, SLUG, given=json.dumps(edits)).splitlines()]


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@pytest.fixture(scope="module", autouse=True)
def quick_start(warm_python):
    """What runs in the copy starts with its libraries imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", warm_python)
        yield


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("guide")
    for folder in ("attn_course", "notebooks", "solutions", "exercises", "docs", "tests/exercises/right_answers"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / LIST).write_text(f"{(root / LIST).read_text(encoding='utf-8')}\n{ENTRY}", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def said_before(course) -> list[str]:
    return attn_course(course, "notebooks", "check", SLUG)


@pytest.fixture(scope="module")
def built(course, said_before) -> tuple[Path, dict[str, bytes]]:
    """The copy with the miniature built by real kernels, and its files before."""
    before = contents(course)
    assert attn_course(course, "notebooks", "build", SLUG) == [
        *(f"wrote {name}" for name in BUILT),
        "3 written, 2 run, 0 left as they were",
    ]
    return course, before


def read(root: Path, name: str):
    return nbformat.read(root / name, as_version=4)


def test_the_guide_names_every_file_that_it_shows():
    assert [name for name in (*FILES, LIST) if f"`{name}`" not in GUIDE] == []


def test_typed_in_from_the_guide_alone_nothing_is_wrong_but_what_the_builder_writes(said_before):
    assert said_before == [f"out of date: {', '.join([*BUILT, *WRITTEN])}; run attn-course notebooks build"]


def test_the_build_writes_that_and_no_more_and_then_nothing_is_wrong(built):
    root, before = built
    assert changed(before, contents(root)) == sorted([*BUILT, *WRITTEN])
    assert attn_course(root, "notebooks", "check", SLUG) == ["nothing is wrong"]


def test_the_readme_and_the_map_of_equations_know_the_new_lesson(built):
    root, _ = built
    row = f"| {NUMBER} | [Centring]({BUILT[0]}) | [1 tasks, 2 points]({BUILT[2]}) | what is left of some numbers when their mean is gone |"
    assert row in (root / "README.md").read_text(encoding="utf-8").splitlines()
    counted = "from attn_course.equations.links import chapter_map as m; print(m().titles[{0}], m().counts[{0}])"
    assert in_copy(root, "-c", counted.format(NUMBER)) == "Centring 1\n"


def test_the_numbers_are_those_of_its_place_in_the_list(built):
    root, _ = built
    tables = json.loads((root / "attn_course/numbers.json").read_text(encoding="utf-8"))
    assert tables["slugs"][SLUG] == {"number": NUMBER, "title": "Centring"}
    assert (tables["labels"][SLUG], tables["tasks"][SLUG]) == ({"centred-sum": f"{NUMBER}.1"}, {"centre-rows": f"{NUMBER}.1"})
    headings = [cell.source.splitlines()[0] for cell in read(root, BUILT[0]).cells if cell.source.startswith("#")]
    assert headings == [f"# {NUMBER} Centring", f"## {NUMBER}.1 Nothing on balance", "## Formula card"]


def test_the_lesson_prints_what_it_claims_and_shows_its_figure(built):
    root, _ = built
    lesson = {cell.id: cell for cell in read(root, BUILT[0]).cells}
    (verified,) = lesson["verify-lesson"].outputs
    assert verified.data["text/plain"] == "The formula of this lesson holds on random numbers, and the wrong version we know of fails."
    printed, picture, _ = lesson["sum-code"].outputs
    assert printed.text == "0.0\n"
    assert lesson["sum-answer"].source.startswith("<details")
    assert picture.metadata["image/svg+xml"]["alt"].startswith("Bars of the numbers 1.00, 2.00 and 6.00, and beside them")
    solution = {cell.id: cell for cell in read(root, BUILT[1]).cells}
    assert solution["centre-rows-check"].outputs[0].data["text/plain"] == f"ok: task {NUMBER}.1, centre the rows: 2 cases, 2 points"


@pytest.mark.parametrize("role", re.findall(r"^\| `` (\{.*?`.*?`) ``.*\| (.*?) \|$", GUIDE, re.MULTILINE))
def test_the_roles_of_the_guide_become_what_it_says(built, role):
    written, shown = role
    text = (built[0] / "attn_course/numbers.json").read_text(encoding="utf-8")
    thirteenth = json.loads(text.replace(f'"{NUMBER}.1"', '"13.1"').replace(f'"number": {NUMBER},', '"number": 13,'))
    assert numbers.cite(written, thirteenth, {"sum": "13.1"}) == shown


SHOWN = r"(x_i - \bar{x}) = 0 \label"
# One fault of each kind that the gate asks about; what else a rule finds is in tests of equations, tasks and authoring.
FAULTS: dict[str, tuple[list, list[str]]] = {  # what: the edits, and the lines that begin like this, stale notebooks aside
    "a sign flipped in the lesson": (
        [(LESSON_PY, SHOWN, SHOWN.replace("-", "+"))],
        [f"{LESSON_PY} [sum]: Eq. centred-sum: the registry has '\\sum_{{i=1}}^{{n}} (x_i - \\bar{{x}}) = 0', the lesson '\\sum_"],
    ),
    "another sum in the equation": (
        [(EQUATIONS_PY, r"(x_i - \bar{x}) = 0", r"(x_i - \bar{x}) = n")],
        [f"{EQUATIONS_PY} [centred-sum]: Eq. ({NUMBER}.1) is not confirmed: left ",
         f"{LESSON_PY} [sum]: Eq. centred-sum: the registry has '\\sum_{{i=1}}^{{n}} (x_i - \\bar{{x}}) = n', the lesson '\\sum_"],
    ),
    "a change of what the equation does not say": (
        [(EQUATIONS_PY, r"(x_i - \bar{x}) ->", r"(x_i + \bar{x}) ->")],
        [f"{EQUATIONS_PY}: cannot be loaded: ValueError: Eq. centred-sum: the wrong form “the mean is subtracted only once” wanted"],
    ),
    "a known wrong answer equal to the right one": (
        [(TASKS_PY, "axis=-1, keepdims=True ->\n", "axis=-1 -> axis=x.ndim - 1\n")],
        [f"{TASKS_PY} [centre-rows]: the known wrong answer “one mean for all” passes: it equals the right one in every case"],
    ),
    "no right answers": (
        [(RIGHT_PY, None)],
        [f"{RIGHT_PY}: missing; wanted RIGHT = {{id of a task: [two or more right answers, ...]}}"],
    ),
    "a change that does not apply": (
        [(TASKS_PY, "x.mean -> x.max", "x.std -> x.max")],
        [f"{TASKS_PY}: line {MAXIMUM}: the slip “maximum” wanted `x.std` once (or all before it) in what it changes, got it not there"],
    ),
    "a solution that is wrong": (
        [(TASKS_PY, "return x - x.mean(axis=-1, keepdims=True)", "return x - x.mean(axis=-1, keepdims=True) + 1")],
        [f"{RIGHT_PY} [centre-rows]: the right answer centred_{how} is refused: task {NUMBER}.1 (Centre the rows): my_centre is not right"
         for how in ("row_by_row", "in_torch")],
    ),
    "a task out of order": (
        [(TASKS_PY, 'ORDER = ["centre-rows"]', "ORDER = []")],
        [f"{TASKS_PY}: cannot be loaded: ValueError: wanted the tasks of the lesson in ORDER, each once; got centre-rows in one of the"],
    ),
    "tasks that are no Python": (
        [(TASKS_PY, "ORDER = [", "ORDER = = [")],
        [f"{TASKS_PY}: line {TASKS.count(chr(10))}: wanted Python, got 'ORDER = = [\"centre-rows\"]'"],
    ),
    "tasks that cannot be loaded": (
        [(TASKS_PY, "tried(_rows, ROWS)", "tried(_rows, RAWS)")],
        [f"{TASKS_PY}: cannot be loaded: NameError: name 'RAWS' is not defined"],
    ),
    "a question that refers to nothing": (
        [(TASKS_PY, "array its mean.", "array its mean, {eq}`nowhere`.")],
        [f"{TASKS_PY} [centre-rows-text]: line 5: {{eq}}`nowhere`: there is no equation 'nowhere'"],
    ),
    "a solution that leans on the course": (
        [(TASKS_PY, "Rows without their mean.", "As attn_course has it.")],
        [f"{TASKS_PY}: wanted cells tagged setup, given, task that do without attn_course: they are what a learner hands in"],
    ),
    "right answers to no task": (
        [(RIGHT_PY, 'RIGHT = {"centre-rows"', 'RIGHT = {"nowhere": [], "centre-rows"')],
        [f"{RIGHT_PY} [nowhere]: right answers to no task of this lesson"],
    ),
    "cases that cannot be drawn": (
        [(TASKS_PY, "normal(*shape)}", "abnormal(*shape)}")],
        [f"{file} [centre-rows]: cannot be tried: NameError: name 'abnormal' is not defined" for file in (TASKS_PY, RIGHT_PY)],
    ),
    "a reference to no equation": (
        [(FIGURES_PY, "Show some numbers,", "Show Eq. nowhere,")],
        [f"{FIGURES_PY}: Eq. nowhere does not exist"],
    ),
    "a planned lesson whose equation does not hold": (
        [(LIST, "minutes = 5\n", "minutes = 5\nplanned = true\n"), (EQUATIONS_PY, "np.mean(x)", "np.sum(x)")],
        [f"{EQUATIONS_PY} [centred-sum]: Eq. centred-sum is not confirmed: left "],
    ),
    "a planned lesson without its notebooks": (
        [(LIST, "minutes = 5\n", "minutes = 5\nplanned = true\n"), (LESSON_PY, None)],
        [],
    ),
    "a title too long for the map": (
        [(LIST, '"Centring"', '"Centring and everything"')],
        [f"{LIST}: wanted a title of at most 22 characters"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def faults(built) -> dict[str, list[str]]:
    return dict(zip(FAULTS, tried(built[0], *(edits for edits, _ in FAULTS.values())), strict=True))


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_one_clear_line_with_its_place(faults, what):
    _, wanted = FAULTS[what]
    stale = [f"{name}: stale; run attn-course notebooks build" for name in WRITTEN]
    found = [line for line in faults[what] if line in wanted or not (line in stale or line.split(" ")[0].rstrip(":") in BUILT)]
    assert len(found) == len(wanted), found
    for line, beginning in zip(found, wanted, strict=True):
        assert line.startswith(beginning)
        assert "\n" not in line


SECOND = r'''
@claim("mean-times-n", serves="B2")
def _(normal, n):
    r"""n \bar{x} = \sum_{i=1}^{n} x_i
    The mean is the sum, divided by n.
        the mean is the sum: n \bar{x} -> \bar{x}
    """
    x = normal(n)
    return {"x": vector(x), r"\bar{x}": np.linalg.lstsq(np.ones((n, 1)), x)[0][0], "n": n}

'''


def test_an_equation_inserted_in_the_middle_changes_two_files_and_what_is_built(built):
    root, _ = built
    before = contents(root)
    insert = [
        [LESSON_PY, "The mean, taken $n$ times, is the sum", "$$n \\bar{x} = \\sum_{i=1}^{n} x_i \\label{mean-times-n}$$\n# It"],
        [EQUATIONS_PY, "\n\n@claim", f"\n{SECOND}\n@claim"],
        ["build", SLUG],
    ]
    assert tried(root, insert) == [[]]
    assert changed(before, contents(root)) == sorted([LESSON_PY, EQUATIONS_PY, *BUILT, "attn_course/numbers.json", "README.md"])
    assert "\\tag{" + f"{NUMBER}.2" + "}" in next(cell for cell in read(root, BUILT[0]).cells if cell.id == "sum").source
