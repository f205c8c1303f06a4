"""The course's own JupyterLab settings: defaults that leave the learner's settings alone, in the hidden folder work/.lab."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_config_dir

from attn_course.commands.lab_files import PROFILE, exercises, write_json
from attn_course.commands.lab_lessons import lesson_copies
from attn_course.commands.progress import PAGE as PROGRESS
from attn_course.files import write_atomically

# Defaults only: what the learner has set in JupyterLab wins. The first line is what keeps the news pop-up away.
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},  # dark where the system is
    "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
    "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},  # README.md opens as a page
}
# Notebooks are not opened from text, and no language server is asked for (the last three are one feature).
DISABLED = (
    "jupyterlab-jupytext",
    "@jupyterlab/lsp-extension",
    "@jupyterlab/fileeditor-extension:language-server",
    "@jupyterlab/notebook-extension:language-server",
)
PAGE = {"buildAvailable": False, "buildCheck": False, "disabledExtensions": dict.fromkeys(DISABLED, True)}

# A glob hides a name in every folder, so the list is closed: a learner's own files stay visible.
HIDDEN = (
    *("attn_course", "docs", "exercises", "notebooks", "solutions", "src", "tests"),
    *("Makefile", "LICENSE", "LICENSE-APACHE", "NOTICE", "constraints.txt", "environment.yml", "pyproject.toml"),
    *("build", "dist", "*.egg-info", "__pycache__", "*.pyc", "*.pyo", ".DS_Store", "*~"),
)
FONTS = Path(__file__).parents[1] / "site" / "katex" / "fonts"
TABLE_OF_CONTENTS = "@jupyterlab/toc:plugin"


def server_options(root: Path, ip: str, port: int) -> list[str]:
    """Return the command line of JupyterLab: this folder, this port, nothing fetched, no question asked on Ctrl-C."""
    options = {
        "ServerApp.root_dir": str(root),
        "ServerApp.ip": ip,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.answer_yes": True,
        "ServerApp.allow_root": True,
        "ServerApp.contents_manager_class": "attn_course.commands.lab_hooks.CourseContents",
        "ContentsManager.pre_save_hook": "attn_course.commands.lab_hooks.keep_built",
        "LabApp.custom_css": True,
        "LabApp.extension_manager": "readonly",
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.handlers.announcements.NeverCheckForUpdate",
    }
    line = [f"--{name}={value}" for name, value in options.items()]
    # jupytext would open lesson sources as notebooks; language servers start slowly and are not used.
    line += [f"--ServerApp.jpserver_extensions={name}=False" for name in ("jupyterlab_jupytext", "jupyter_lsp")]
    return line + [f"--ContentsManager.hide_globs={name}" for name in HIDDEN]


def environment(root: Path, token: str) -> dict[str, str]:
    """Return the environment of the server: the course's configuration, the learner's settings, this Python's kernel."""
    folder = root / PROFILE
    inherited = {name: value for name, value in os.environ.items() if name not in ("JUPYTER_NO_CONFIG", "JUPYTERLAB_WORKSPACES_DIR")}
    settings = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or str(Path(jupyter_config_dir(), "lab", "user-settings"))
    kernels = [str(folder / "share"), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    return inherited | {
        "JUPYTER_CONFIG_DIR": str(folder),
        "JUPYTERLAB_SETTINGS_DIR": settings,
        "JUPYTER_PATH": os.pathsep.join(kernels),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_TOKEN": token,
    }


def write_profile(root: Path) -> None:
    """Write the files that JupyterLab reads at its start: default settings, page options, the kernel, the first layout."""
    folder = root / PROFILE
    write_json(folder / "labconfig" / "default_setting_overrides.json", SETTINGS)
    write_json(folder / "labconfig" / "page_config.json", PAGE)
    write_json(folder / "share" / "kernels" / "python3" / "kernel.json", _kernel())
    write_atomically(folder / "custom" / "custom.css", Path(__file__).with_name("lab.css").read_text(encoding="utf-8"))
    for font in FONTS.glob("*Math-[IR]*.woff2"):  # what lab.css names; a handout has none, and letters as the system has them
        shutil.copy(font, folder / "custom")
    layout = folder / "lab" / "workspaces" / f"default-{hashlib.sha256(b'default').hexdigest()[:4]}.jupyterlab-workspace"
    if not _can_be_restored(layout, root):
        write_json(layout, _first_layout(root))


def _kernel() -> dict[str, Any]:
    """Return the kernel `python3` as this very interpreter: it wins over a user-level kernel of the same name."""
    return {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "metadata": {"debugger": True},
    }


def _first_layout(root: Path) -> dict[str, Any]:
    """Return the layout of a first visit: what is done, in front the first lesson (else exercises), and the table of contents."""
    pages = [path.relative_to(root).as_posix() for path in lesson_copies(root).values()]
    first = pages + [f"work/{path.name}" for path in exercises(root)]
    notebook, page = f"notebook:{first[0]}", f"markdownviewer-widget:{PROGRESS.as_posix()}"
    layout = {
        "main": {"dock": {"type": "tab-area", "currentIndex": 1, "widgets": [page, notebook]}, "current": notebook},
        "left": {"collapsed": False, "visible": True, "current": TABLE_OF_CONTENTS, "widgets": ["filebrowser", TABLE_OF_CONTENTS]},
        "right": {"collapsed": True, "visible": True, "widgets": []},
        "relativeSizes": [0.24, 0.76, 0],
    }
    opened = {"data": {"path": first[0], "factory": "Notebook"}}
    shown = {"data": {"path": PROGRESS.as_posix(), "factory": "Markdown Preview"}}
    data = {"layout-restorer:data": layout, "file-browser-filebrowser:cwd": {"path": ""}, notebook: opened, page: shown}
    return {"data": data, "metadata": {"id": "default"}}


def _can_be_restored(layout: Path, root: Path) -> bool:
    """Tell whether the layout of the last visit is there, and each document in it too: JupyterLab greets a lost one with a dialog."""
    try:
        data = json.loads(layout.read_text(encoding="utf-8"))["data"]
        documents = [item["data"]["path"] for item in data.values() if isinstance(item, dict) and "factory" in item.get("data", {})]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return all((root / path).exists() for path in documents)
