"""Find the course that a command works on."""

from pathlib import Path

from attn_course.commands.terminal import BadInput


def is_course(folder: Path) -> bool:
    """Return whether a folder holds exercises/ and notebooks/."""
    return (folder / "exercises").is_dir() and (folder / "notebooks").is_dir()


def find_course(start: Path | None = None) -> Path:
    """Return the course's root: the nearest folder upwards from `start`, else the checkout this package runs from.

    Parameters
    ----------
    start : Path, optional
        Where to look first; the default is the working directory.

    Returns
    -------
    root : Path
        A folder that holds exercises/ and notebooks/.

    Raises
    ------
    BadInput
        If there is neither.
    """
    here = (start or Path.cwd()).absolute()
    checkout = Path(__file__).absolute().parents[2]
    for folder in (here, *here.parents, checkout):
        if is_course(folder):
            return folder
    raise BadInput(f"no course here: {here} and the folders above hold no exercises/ and notebooks/; change to the course's folder")


def work_notebooks(root: Path) -> list[Path]:
    """Return the learner's notebooks in work/, in order of their names."""
    return sorted(path for path in (root / "work").glob("*.ipynb") if path.is_file())


def shown(path: Path) -> Path:
    """Return the path relative to the working directory if it lies below, for messages."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
