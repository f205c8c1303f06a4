"""What the server behind `attn-course lab` does when it reads and saves a notebook."""

import json
import platform
from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

BUILT = ("notebooks", "solutions", "exercises")


def keep_built(model: dict[str, Any], path: str, contents_manager: Any, **_: object) -> None:
    """Save a lesson that was only run as the course built it, so that reading the course never changes its files.

    JupyterLab notes the version of Python in each notebook it opens, and saves by itself every two minutes: without this,
    opening a lesson would be an edit, and the next update of the course a conflict. A lesson whose cells were edited is saved as it is.

    `model`: what is about to be saved; its content is replaced if only outputs and metadata differ from the file. `path`: path of
    the notebook below the folder that is served. `contents_manager`: the manager that saves; its `root_dir` is the folder that is
    served. `**_`: what later versions of the server may add.
    """
    if model["type"] != "notebook" or PurePosixPath(path.strip("/")).parts[0] not in BUILT:
        return
    try:
        built = json.loads(Path(contents_manager.root_dir, path.strip("/")).read_text(encoding="utf-8"))
        is_only_run = _sources(built) == _sources(model["content"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # a new file, or one that is no notebook: nothing of the course's to keep
    if is_only_run:
        model["content"] = built


def _sources(notebook: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return what the author of a notebook wrote: id, type and text of each cell."""
    return [(cell.get("id", ""), cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


class CourseContents(AsyncLargeFileManager):
    """Files as they are, but for the version of Python: a notebook that says the kernel's own does not open as unsaved."""

    async def get(self, path: str, content: bool = True, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the model of a file or folder."""
        model: dict[str, Any] = await super().get(path, content, *arguments, **options)
        if content and model["type"] == "notebook":
            language = model["content"]["metadata"].get("language_info", {})
            if language.get("name") == "python":
                language["version"] = platform.python_version()
        return model
