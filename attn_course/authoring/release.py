"""Make the folder that a teacher hands out: exercises, lessons, the package with its pins, and instructions; no solutions."""

import ast
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attn_course.authoring.course import Unit, units
from attn_course.authoring.own import build_own
from attn_course.authoring.problems import AuthoringError
from attn_course.authoring.sealed import is_untouched, read_text
from attn_course.authoring.task_cells import STUDENT
from attn_course.tasks.packed import pack

ENVIRONMENT = (
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "LICENSE",
    "NOTICE",
    "LICENSE-APACHE",
)  # with the package they make `pip install` work
README = r"""# Exercises on attention

| chapter | title | notebook | tasks | points |
|---|---|---|---|---|
{rows}

## Install, once

You need Python 3.11 to 3.13. In this folder:

```console
python -m venv .venv
.venv/bin/pip install -c constraints.txt -e .        # Windows: .venv\Scripts\pip
```

On Linux, pip fetches a build of torch for NVIDIA GPUs: several gigabytes. Everything here runs on a CPU too: with the
small build, which this line installs between the two above, it is about 280 MB in all:

```console
.venv/bin/pip install --no-deps -c constraints.txt --index-url https://download.pytorch.org/whl/cpu torch
```

With conda or mamba, instead of all this: `environment.yml`.

## Work

```console
.venv/bin/attn-course lab                            # Windows: .venv\Scripts\attn-course
```

opens JupyterLab and copies the exercises to `work/`, where they are yours: later starts never overwrite them.
{read} in `work/`.{own} Write only into the cells that say so; cells of your own may stand anywhere.
Each task ends with a check that says what is wrong, and has three hints above it, of which one opens the next.

```console
.venv/bin/attn-course check work/{first}.ipynb
```

runs a whole notebook from the top in a fresh kernel, as the grading does, and lists your points. These are advice:
the marks are given on other numbers, and there a task's forbidden library calls do not work.

## Hand in

The notebooks from `work/`, under their own names, saved. Outputs do not matter. A notebook cannot reach files,
the network or the course's package while it is marked, except for what its first cells import.
"""
IN_CLASS = """
An exercise without a number has tasks of this class's own. They are judged in class: what checks them is not in this folder, and
`attn-course check` leaves them out.
"""
OWN_NUMBERS = " Some tasks print numbers that are yours alone, by your id, `STUDENT`: leave it as it is, you are marked by these numbers."
LIMITS = """
While it is marked, this much is allowed:

{table}
"""
_UNWANTED = shutil.ignore_patterns("__pycache__", "*.pyc", "katex")  # 0.6 MB of fonts, for the site that a checkout builds


@dataclass(frozen=True)
class Assignment:
    """One chapter of a release: its exercise, its title, and what it gives.

    `stem`: name of its exercise without suffix, "ex_02_softmax". `title`: as its heading names it. `n_tasks`, `points`: of its
    tasks together.
    """

    stem: str
    title: str
    n_tasks: int
    points: int

    @property
    def number(self) -> str:
        """The number in its name, "02"; empty for tasks of the teacher's own."""
        return self.stem[3:5] if self.stem[3:5].isdigit() else ""


def release(
    root: Path,
    out: Path,
    only: Iterable[str] | None = None,
    *,
    with_lessons: bool = True,
    students: Sequence[str] = (),
    limits: str = "",
    own: Path | None = None,
    model: Path | None = None,
) -> list[Assignment]:
    """Write a folder for students, or one in it for each of them, whole or not at all.

    `out`: the folder to make; it must not exist, or be empty.
    `only`: chapters, as `units` takes them; None means all.
    `with_lessons`: whether the lessons of these chapters come along.
    `students`: ids that can name folders. Each gets a folder of this name, whose exercises say `STUDENT = "<id>"`.
    `limits`: a table in Markdown of what a notebook may use while it is marked, for the instructions.
    `own`: a folder of the teacher's own tasks. Their exercise is built there and handed out; their answers are not.
    `model`: the file of the language model, to be copied into model/ of each folder, where the package looks for it.

    Returns what was handed out, chapter by chapter. Raises AuthoringError if `out` is taken or cannot be written, a chapter has
    no exercise, or a notebook is not as it was built.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise AuthoringError(f"{out} is there already: name a new folder, nothing is overwritten")
    wanted = [unit for unit in units(root, only) if unit.folder == "exercises" or (with_lessons and unit.folder == "notebooks")]
    texts = {unit.name: _pristine(unit) for unit in wanted}
    assignments = [_assignment(unit.slug, unit.stem, texts[unit.name]) for unit in wanted if unit.folder == "exercises"]
    if own is not None:
        slug, path = build_own(own)
        texts[f"exercises/{path.name}"] = path.read_text(encoding="utf-8")
        assignments.append(_assignment(slug, path.stem, texts[f"exercises/{path.name}"]))
    if not assignments:
        raise AuthoringError("these chapters have no exercises")
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.absolute().parent) as name:
            made = Path(name, out.name)
            for student in students or [""]:
                named = {name: made_out(text, student) for name, text in texts.items()}
                instructions = readme(assignments, with_lessons=with_lessons, own=named != texts, limits=limits)
                _fill(made / student, root, named, instructions)
                if model is not None:
                    (made / student / "model").mkdir()
                    shutil.copyfile(model, made / student / "model" / model.name)
            made.replace(out)
    except OSError as error:
        raise AuthoringError(f"cannot write {out}: {error.strerror or error}") from error
    return assignments


def made_out(text: str, student: str) -> str:
    """Return the text of a notebook with a student's id where the exercise asks for it."""
    line, own = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (STUDENT, f"STUDENT = {json.dumps(student, ensure_ascii=False)}"))
    return text.replace(f'"{line}', f'"{own}')  # a line of a cell, as the notebook's JSON has it


def readme(assignments: Sequence[Assignment], *, with_lessons: bool, own: bool = False, limits: str = "") -> str:
    """Return the instructions for students, as Markdown; `own`: whether some numbers are the student's alone."""
    rows = [f"| {a.number} | {a.title} | [exercises](exercises/{a.stem}.ipynb) | {a.n_tasks} | {a.points} |" for a in assignments]
    read = "Read the lesson in `notebooks/`, then answer the tasks" if with_lessons else "Answer the tasks"
    text = README.format(rows="\n".join(rows), read=read, own=OWN_NUMBERS if own else "", first=assignments[0].stem)
    text += IN_CLASS if not all(assignment.number for assignment in assignments) else ""
    return text + (LIMITS.format(table=limits) if limits else "")


def _pristine(unit: Unit) -> str:
    """The built notebook's text, which nobody has touched since."""
    text = read_text(unit.path)
    if text is None:
        raise AuthoringError(f"{unit.name} is not there: attn-course notebooks build makes it")
    if not is_untouched(text):
        raise AuthoringError(f"{unit.name} was changed since it was built: attn-course notebooks build --force {unit.slug} makes it again")
    return text


def _assignment(slug: str, stem: str, exercise: str) -> Assignment:
    from attn_course.tasks import all_tasks

    tasks = all_tasks(slug)
    lines = [line for cell in json.loads(exercise)["cells"] for line in "".join(cell["source"]).splitlines()]
    heading = next((line for line in lines if line.startswith("# ")), "")
    title = heading.partition(": ")[2] or stem  # of "# Exercises 02: softmax"
    return Assignment(stem, title, len(tasks), sum(task.points for task in tasks))


def without_reasons(source: str) -> str:
    """Return the source of tasks without what solutions alone say: why an answer is right."""
    whys = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.keyword) and node.arg == "why"]
    lines = source.encode().splitlines(keepends=True)  # a syntax tree counts bytes
    for why in sorted(whys, key=lambda node: node.lineno, reverse=True):
        first, last = why.lineno - 1, (why.end_lineno or why.lineno) - 1
        lines[first : last + 1] = [lines[first][: why.col_offset] + b'""' + lines[last][why.end_col_offset :]]
    return b"".join(lines).decode()


def _fill(made: Path, root: Path, texts: Mapping[str, str], instructions: str) -> None:
    shutil.copytree(root / "attn_course", made / "attn_course", ignore=_UNWANTED)
    for path in made.glob("attn_course/lessons/*/tasks*.py"):
        path.write_text(pack(without_reasons(path.read_text(encoding="utf-8"))), encoding="utf-8", newline="\n")
    for name in ENVIRONMENT:
        shutil.copyfile(root / name, made / name)
    for name, text in texts.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text, encoding="utf-8", newline="\n")
    (made / "README.md").write_text(instructions, encoding="utf-8", newline="\n")
