"""Trust for what the course built: JupyterLab runs the scripts in a notebook's outputs only if it is signed."""

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_core.paths import jupyter_data_dir

from attn_course.commands.lab_files import PROFILE, copy_states, lessons, read_object, write_json
from attn_course.commands.lab_lessons import as_copied

if TYPE_CHECKING:
    from nbformat.sign import NotebookNotary  # a second to import: JupyterLab starts meanwhile

TRUSTED = PROFILE / "trusted.json"


def notary() -> "NotebookNotary":
    """Return the keeper of signatures that JupyterLab asks when it opens a notebook."""
    from nbformat.sign import NotebookNotary

    folder = Path(jupyter_data_dir())
    folder.mkdir(parents=True, exist_ok=True)
    log = logging.getLogger(__name__)
    return NotebookNotary(data_dir=str(folder), log=log)


def built_notebooks(root: Path) -> list[Path]:
    """Return the notebooks that hold nothing but the course's own: lessons, solutions, and copies not changed since."""
    untouched = [root / "work" / name for name, state in copy_states(root).items() if state in ("untouched", "outdated")]
    return [*lessons(root), *sorted((root / "solutions").glob("*.ipynb")), *as_copied(root), *untouched]


def trust_built(root: Path) -> list[str]:
    """Mark what the course built as trusted, and remember it: the next start then has nothing to sign, and is a second quicker.

    Returns one line for each notebook that could not be marked.
    """
    digests = {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in built_notebooks(root)}
    database = Path(jupyter_data_dir(), "nbsignatures.db")
    remembered = read_object(root / TRUSTED)
    signed = remembered if database.is_file() and remembered.get("database") == str(database) else {}
    unsigned = [root / name for name, digest in digests.items() if signed.get(name) != digest]
    problems = trust(unsigned) if unsigned else []
    if unsigned and not problems:
        write_json(root / TRUSTED, digests | {"database": str(database)})
    return problems


def trust(paths: list[Path]) -> list[str]:
    """Mark notebooks as trusted, so that the scripts in their outputs (the explorables) run.

    `paths`: notebooks the course built. Returns one line for each notebook that could not be marked.
    """
    import nbformat

    problems = []
    try:
        keeper = notary()
    except OSError as error:
        return [f"cannot mark notebooks as trusted, explorables will not move: {error.strerror or error}: {error.filename}"]
    for path in paths:
        try:
            keeper.sign(nbformat.read(path, as_version=4))
        except Exception as error:  # nbformat raises many kinds, and one bad file must not keep the course shut
            problems.append(f"cannot mark {path.name} as trusted: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    keeper.store.close()
    return problems
