"""Find the course that a command works on."""

from pathlib import Path

from attn_course.commands.terminal import BadInput, refusing
from attn_course.files import BROUGHT


def is_course(folder: Path) -> bool:
    """Return whether a folder holds exercises/ and, beside it, notebooks/ or the package: a release may come without lessons."""
    beside = (folder / "notebooks").is_dir() or (folder / "attn_course" / "__init__.py").is_file()
    return beside and (folder / "exercises").is_dir()


def find_course(*starts: Path) -> Path:
    """Return the course's root: the nearest folder upwards from a start, else the checkout this package runs from.

    `*starts`: where to look, in this order, before the working directory. Raises BadInput if there is none.
    """
    for start in (*starts, Path.cwd()):
        here = start.absolute()
        for folder in (here, *here.parents):
            if is_course(folder):
                return folder
    checkout = Path(__file__).absolute().parents[2]
    if is_course(checkout):
        return checkout
    advice = "change to the course's folder" + (", or make an empty one and run attn-course lab in it" if BROUGHT.is_dir() else "")
    raise BadInput(f"no course here: neither {Path.cwd()} nor a folder above holds the course's exercises/; {advice}")


def course_to_read() -> Path:
    """Return the course's root for a command that writes nothing there: what a wheel brings, where nothing here lists the lessons."""
    try:
        root = find_course()
    except BadInput:
        if not BROUGHT.is_dir():
            raise
        return BROUGHT
    return root if (root / "notebooks" / "series.toml").is_file() or not BROUGHT.is_dir() else BROUGHT


def add_own(folder: Path) -> None:
    """Let a command know a teacher's own tasks; BadInput if the folder holds none."""
    from attn_course.tasks import registry

    with refusing(registry.OwnTasksError):
        registry.add_own(folder)


def work_notebooks(root: Path) -> list[Path]:
    """Return the learner's notebooks in work/, in order of their names."""
    return sorted(path for path in (root / "work").glob("*.ipynb") if path.is_file())


def shown(path: Path) -> Path:
    """Return the path relative to the working directory if it lies below, for messages."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
