"""`attn-course lab` serves the course, without a display and without asking anything of the world, and leaves nothing running."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from attn_course.commands.lab_profile import HIDDEN
from tests.browser.toy_course import Lab, make_course, quiet_environment, running_lab

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and kernels are looked at through POSIX calls")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """A running lab on a toy course, whose user prefers another kernel called python3 and has settings of their own."""
    folder = tmp_path_factory.mktemp("lab")
    course = make_course(folder / "course")
    home = folder / "home"
    environment = quiet_environment(home, JUPYTER_PATH=str(home / "elsewhere"))
    for place in (home / "elsewhere", home / ".local" / "share" / "jupyter"):
        kernel = place / "kernels" / "python3" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        kernel.write_text(json.dumps({"argv": ["/no/such/python"], "display_name": "Someone else's", "language": "python"}))
    settings = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"theme": "JupyterLab Dark"}')
    (home / ".jupyter" / "jupyter_server_config.json").write_text('{"ServerApp": {"base_url": "/elsewhere/"}}')
    with running_lab(course, environment=environment) as lab:
        yield lab, course


def request(lab: Lab, path: str, data: bytes | None = None, method: str | None = None) -> Any:
    base, token = lab.address.split("/lab?token=")
    asked = urllib.request.Request(f"{base}/{path}", data, {"Authorization": f"token {token}"}, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def save(lab: Lab, path: str, content: dict[str, Any]) -> None:
    request(lab, f"api/contents/{path}", json.dumps({"type": "notebook", "format": "json", "content": content}).encode(), "PUT")


def setting(lab: Lab, plugin: str) -> dict[str, Any]:
    """Return the settings of a plugin as JupyterLab puts them together: defaults, and over them the user's."""
    found = request(lab, f"lab/api/settings/{plugin}")
    defaults = {name: value.get("default") for name, value in found["schema"]["properties"].items()}
    return defaults | found["settings"]


def test_without_a_display_the_address_is_printed_with_its_token(served):
    lab, _ = served
    said = "".join(lab.lines)
    assert re.search(r"^    http://127\.0\.0\.1:\d+/lab\?token=[0-9a-f]{48}$", said, re.MULTILINE)
    assert "copied to work/: ex_02_softmax.ipynb, ex_03_scaling.ipynb" in said
    assert "The first page is work/lessons/02_softmax.ipynb, your own copy of the lesson." in said
    assert "from work/ex_02_softmax.ipynb on" in said


def test_lessons_and_work_are_listed_and_nothing_else_and_the_token_is_asked_for(served):
    lab, _ = served
    for folder, names in (
        ("", {"README.md", "work"}),
        ("work", {"lessons", "progress.md", "ex_02_softmax.ipynb", "ex_03_scaling.ipynb"}),
        ("work/lessons", {"02_softmax.ipynb", "03_scaling.ipynb"}),
    ):
        assert {item["name"] for item in request(lab, f"api/contents/{folder}")["content"]} == names
    assert request(lab, "api/contents/solutions/02_softmax.ipynb")["type"] == "notebook"  # by its name it can still be opened
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{lab.address.split('/lab')[0]}/api/contents", timeout=30)
    assert refused.value.code == 403
    refused.value.close()


def test_a_lesson_is_opened_with_its_scripts_trusted(served):
    lab, _ = served
    for folder in ("notebooks", "work/lessons"):
        cells = request(lab, f"api/contents/{folder}/02_softmax.ipynb")["content"]["cells"]
        assert [cell["metadata"]["trusted"] for cell in cells if cell["cell_type"] == "code"] == [True, True]


def test_no_news_no_update_no_shop_for_extensions_no_question_and_what_the_user_has_set_still_holds(served):
    lab, course = served
    assert setting(lab, "@jupyterlab/apputils-extension:notification")["fetchNews"] == "false"
    assert setting(lab, "@jupyterlab/apputils-extension:themes")["adaptive-theme"] is True
    assert setting(lab, "@jupyterlab/apputils-extension:notification")["checkForUpdates"] is False
    assert setting(lab, "@jupyterlab/extensionmanager-extension:plugin")["enabled"] is False
    with urllib.request.urlopen(lab.address, timeout=30) as answer:
        found = re.search(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', answer.read().decode(), re.DOTALL)
    page = json.loads(found[1])
    assert page["news"] == {"disabled": True}
    assert page["extensionManager"]["name"] == "read-only"
    assert (page["buildAvailable"], page["buildCheck"]) == (False, False)
    assert request(lab, "lab/api/update")["notification"] is None
    assert setting(lab, "@jupyterlab/docmanager-extension:plugin")["defaultViewers"] == {"markdown": "Markdown Preview"}
    assert setting(lab, "@jupyterlab/notebook-extension:tracker")["autoStartDefaultKernel"] is True
    assert setting(lab, "@jupyterlab/apputils-extension:themes")["theme"] == "JupyterLab Dark"
    own = course.parent / "home" / ".jupyter"
    files = {path.relative_to(own).as_posix() for path in own.rglob("*.*")}
    assert files == {"jupyter_server_config.json", "lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"}


def test_the_kernel_is_this_python_whatever_the_user_has_installed_and_the_first_page_the_lowest_lesson(served):
    lab, _ = served
    found = request(lab, "api/kernelspecs")
    assert found["default"] == "python3"
    assert found["kernelspecs"]["python3"]["spec"]["argv"][0] == sys.executable
    layout = request(lab, "lab/api/workspaces/default")["data"]["layout-restorer:data"]
    assert layout["main"]["current"] == "notebook:work/lessons/02_softmax.ipynb"
    assert layout["main"]["dock"]["widgets"] == ["markdownviewer-widget:work/progress.md", layout["main"]["current"]]
    assert request(lab, "api/contents/work/progress.md")["content"].startswith("# Where you are\n\nYou have not passed a task yet.")
    assert layout["left"]["current"] == "@jupyterlab/toc:plugin"  # its table of contents


def test_a_lesson_that_was_only_run_is_saved_as_it_was_built_and_stays_trusted(served):
    lab, course = served
    lesson = course / "notebooks" / "03_scaling.ipynb"
    before = lesson.read_bytes()
    content = request(lab, "api/contents/notebooks/03_scaling.ipynb")["content"]
    content["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
    content["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "of this run"}]
    save(lab, "notebooks/03_scaling.ipynb", content)
    assert lesson.read_bytes() == before
    cells = request(lab, "api/contents/notebooks/03_scaling.ipynb")["content"]["cells"]
    assert cells[2]["metadata"]["trusted"] is True


def test_what_a_learner_writes_is_saved_in_lessons_and_in_work(served):
    lab, course = served
    for path in ("notebooks/03_scaling.ipynb", "work/lessons/03_scaling.ipynb", "work/ex_03_scaling.ipynb"):
        content = request(lab, f"api/contents/{path}")["content"]
        content["cells"][1]["source"] = "6 * 7"
        content["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "of this run"}]
        save(lab, path, content)
        saved = json.loads((course / path).read_text())["cells"][1]
        assert "".join(saved["source"]) == "6 * 7"
        assert saved["outputs"][0]["text"] == ["of this run"]
    save(lab, "notebooks/notes.ipynb", {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    assert json.loads((course / "notebooks" / "notes.ipynb").read_text())["cells"] == []
    (course / "notebooks" / "notes.ipynb").unlink()


def test_a_lost_document_makes_the_layout_begin_anew(served):
    from attn_course.commands.lab_profile import write_profile

    _, course = served
    (layout,) = (course / "work" / ".lab" / "lab" / "workspaces").glob("default-*")
    fresh = layout.read_text()
    mine = fresh.replace("02_softmax", "03_scaling")
    layout.write_text(mine)
    write_profile(course)
    assert layout.read_text() == mine
    for lost in (mine.replace("03_scaling", "99_gone"), "{", '{"data": []}'):
        layout.write_text(lost)
        write_profile(course)
        assert layout.read_text() == fresh


def test_every_folder_and_file_of_the_course_is_shown_or_hidden_on_purpose(root: Path):
    tracked = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    tops = {line.split("/")[0] for line in tracked} - {"README.md"}
    assert {name for name in tops if not name.startswith(".")} <= set(HIDDEN)


def stop(lab: Lab, number: signal.Signals) -> None:
    """Send a signal, and hold the lab to a clean end: server and kernels are gone."""
    request(lab, "api/kernels", b"{}")
    processes = psutil.Process(lab.process.pid).children(recursive=True)
    assert len(processes) >= 2  # the server and a kernel
    lab.process.send_signal(number)
    code, said = lab.finish()
    assert code == 0
    assert said.rstrip().endswith("stopping JupyterLab")
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert alive == []


def test_ctrl_c_stops_the_server_and_its_kernels(tmp_path: Path):
    with running_lab(make_course(tmp_path / "course"), environment=quiet_environment(tmp_path / "home")) as lab:
        stop(lab, signal.SIGINT)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path, int]]:
    """A lab on a chosen port, whose user has named a browser: a script that writes down what it is asked to open."""
    folder = tmp_path_factory.mktemp("chosen")
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {folder}/part && mv {folder}/part {folder}/opened\n')
    browser.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as probe:  # not 8888 on, where other tests start at the same time
        port = probe.getsockname()[1]
    environment = quiet_environment(folder / "home", BROWSER=str(browser))
    with running_lab(make_course(folder / "course"), "--port", str(port), environment=environment) as lab:
        yield lab, folder, port


def test_the_browser_is_opened_on_the_address(chosen):
    lab, folder, port = chosen
    deadline = time.monotonic() + 120
    while not (folder / "opened").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (folder / "opened").read_text().strip() == lab.address
    assert f":{port}/lab" in lab.address


def test_the_same_port_again_is_refused_in_one_line(chosen):
    _, folder, port = chosen
    with running_lab(folder / "course", "--port", str(port), environment=quiet_environment(folder / "home")) as second:
        code, said = second.finish()
    assert code == 2
    assert said == f"attn-course: port {port} is in use: choose another with --port, or leave --port out to get a free one\n"


def test_a_kill_stops_the_server_and_its_kernels(chosen):
    """The last test of this lab."""
    stop(chosen[0], signal.SIGTERM)


def test_an_option_that_jupyterlab_refuses_ends_in_one_line_and_no_server(tmp_path: Path):
    course = make_course(tmp_path / "course")
    environment = quiet_environment(tmp_path / "home")
    with running_lab(course, "--", "--ServerApp.port=many", environment=environment) as lab:
        code, said = lab.finish()
    assert code == 1
    assert "attn-course: JupyterLab did not start: " in said
    assert "Traceback" not in said
