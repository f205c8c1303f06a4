"""`attn-course doctor` finds what is broken, says how to mend it, and calls nothing broken that is only missing comfort."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from attn_course import cli
from attn_course.commands import doctor_checks, lab_files, lab_trust
from attn_course.commands.doctor_checks import Finding
from tests.browser.toy_course import write_notebook

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the examination of torch find what a test says, as the probe's output, exit code and last words."""

    def finds(stderr: str = "", returncode: int = 0, **found: Any) -> None:
        usual = {"torch": "2.13.0", "product_is_right": True, "cuda": None, "gpus": [], "triton": None}
        answer = SimpleNamespace(stdout=json.dumps(usual | found), stderr=stderr, returncode=returncode)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)

    return finds


def named(findings: list[Finding], name: str) -> Finding:
    (found,) = (finding for finding in findings if finding.name == name)
    return found


@pytest.fixture(scope="module")
def torch_here() -> list[Finding]:
    """What a process of its own finds out about torch, which takes seconds."""
    return doctor_checks.torch_and_triton()


def test_this_very_environment_has_a_kernel_and_a_torch_that_work(torch_here: list[Finding]):
    assert doctor_checks.kernel() == Finding("kernel", "ok", f"python3 starts in {sys.prefix}")
    assert named(torch_here, "torch works").status == "ok"
    assert {finding.name for finding in torch_here} == {"torch works", "gpu", "triton"}


def test_every_package_the_course_asks_for_is_examined_and_here():
    findings = list(doctor_checks.packages())
    assert [finding for finding in findings if finding.status != "ok"] == []
    assert {finding.name for finding in findings} == set(doctor_checks.SHOWN)
    assert named(findings, "numpy").text == f"numpy {metadata.version('numpy')}"


def test_a_package_that_is_missing_or_too_old_is_a_problem_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor_checks, "_requirements", lambda: {"no-such-package-anywhere": "1.2", "numpy": "999.0"})
    missing, old = doctor_checks.packages()
    assert (missing.status, missing.text) == ("problem", "no-such-package-anywhere is not installed")
    assert missing.mend == f"{sys.executable} -m pip install 'no-such-package-anywhere>=1.2'"
    assert (old.status, old.text) == ("problem", f"numpy {metadata.version('numpy')} is older than 999.0")


@pytest.mark.parametrize("pair", ["2.9 2.10", "1.13.1 2.0", "2.11.0+cpu 2.13.0+cu126", "read-attention-map 4.4.1", "0.9 0.10.2"])
def test_versions_are_compared_as_numbers(pair: str):
    older, newer = map(doctor_checks._numbers, pair.split())
    assert older < newer


def test_the_lowest_versions_are_those_of_pyproject(root: Path):
    import tomllib

    asked = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    lowest = doctor_checks._requirements()
    assert len(lowest) >= 10
    for line in asked:
        name = line.split(">=")[0]
        if name in lowest:
            assert line.split(";")[0].strip().startswith(f"{name}>={lowest[name]}")


def test_a_package_of_another_course_is_a_problem(course: Path, root: Path):
    found = doctor_checks.course(course)
    assert found.status == "problem"
    assert str(course) in found.text
    assert found.mend.endswith(f"-m pip install -e {course}")
    assert doctor_checks.course(root).status == "ok"


LAUNCHER = ("-m", "ipykernel_launcher", "-f", "{connection_file}")


@pytest.mark.parametrize(
    ("argv", "prefix", "said", "mend"),
    [
        (("/no/such/python", "{connection_file}"), sys.prefix, "does not start", "ipykernel"),
        ((sys.executable, *LAUNCHER), "/another/venv", "not in /another/venv", "{place}"),
        ((), sys.prefix, "there is no kernel named python3", "ipykernel"),
    ],
    ids=["that cannot start", "of another environment", "that is not there"],
)
def test_a_kernel_is_a_problem(argv: tuple[str, ...], prefix: str, said: str, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    place = tmp_path / "kernels" / "python3"
    if argv:
        place.mkdir(parents=True)
        (place / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    else:
        monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", mock.Mock(side_effect=NoSuchKernel("python3")))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", prefix)
    found = doctor_checks.kernel()
    assert (found.status, said in found.text, mend.format(place=place) in found.mend) == ("problem", True, True)


DIED = {"returncode": 1, "stderr": "Traceback ...\nOSError: libtorch.so: cannot open shared object file\n"}
GPU = {"name": "Fast One", "memory_bytes": 24_000_000_000, "product_is_right": True}
WRONG = {"product_is_right": False}
FOUND_OUT: dict[str, dict[str, Any]] = {  # name, status and text of a finding, by what the probe finds
    "torch works; problem; torch cannot be used: OSError: libtorch.so: cannot open shared object file": DIED,
    "torch works; problem; torch cannot be used: it ended with status -4": {"returncode": -4},
    "torch works; problem; torch gets a product of small matrices wrong": WRONG,
    "gpu; ok; Fast One, 24 GB, CUDA 12.6": {"cuda": "12.6", "gpus": [GPU]},
    "gpu; problem; Fast One gets a product of small matrices wrong": {"cuda": "12.6", "gpus": [GPU | WRONG]},
    "gpu; note; no GPU found: the course runs on the CPU": {},
    "gpu; note; an NVIDIA driver is here, but this torch is built for the CPU only": {"driver": "/usr/bin/nvidia-smi"},
    "triton; ok; triton 3.7.1, kernels run on the GPU": {"gpus": [GPU], "triton": "3.7.1"},
    "triton; ok; triton 3.7.1, kernels run in its interpreter": {"triton": "3.7.1"},
    "triton; note; not installed": {},
    "triton; note; Triton runs on Linux only": {"system": "Darwin"},
}


@pytest.mark.parametrize("wanted", FOUND_OUT)
def test_what_torch_and_triton_can_do_is_said(wanted: str, probe, monkeypatch: pytest.MonkeyPatch):
    found = {"system": "Linux", "driver": None} | FOUND_OUT[wanted]
    monkeypatch.setattr(doctor_checks.platform, "system", lambda: found["system"])
    monkeypatch.setattr(doctor_checks.shutil, "which", lambda name: found["driver"])
    probe(**{name: value for name, value in found.items() if name not in ("system", "driver")})
    name, status, text = wanted.split("; ")
    said = named(doctor_checks.torch_and_triton(), name)
    assert (said.status, said.text.partition("; only")[0]) == (status, text)
    assert ("pytorch.org" in said.mend) == bool(found["driver"])


def test_a_shared_python_a_full_disk_and_a_missing_browser_are_told(course: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    for prefix, status in (("/a/venv", "ok"), (sys.base_prefix, "note")):
        monkeypatch.setattr(sys, "prefix", prefix)
        assert doctor_checks.python().status == status
    for free, status in ((50_000_000_000, "ok"), (1_500_000_000, "note"), (100_000_000, "problem")):
        monkeypatch.setattr(doctor_checks.shutil, "disk_usage", lambda path, free=free: Usage(free, 0, free))
        assert doctor_checks.disk(course).status == status
    for place, status in ((None, "note"), ("/usr/bin/chromium", "ok")):  # wanted by the tests alone
        monkeypatch.setattr(doctor_checks.shutil, "which", lambda name, place=place: place)
        assert doctor_checks.browser().status == status


def test_lessons_not_yet_trusted_are_a_note_and_fine_after_lab_has_run(course: Path):
    (before,) = doctor_checks.notebooks(course)
    assert before.status == "note"
    assert "02_softmax.ipynb, 03_scaling.ipynb" in before.text
    lab_trust.trust(lab_trust.built_notebooks(course))
    (after,) = doctor_checks.notebooks(course)
    assert after == Finding("notebooks", "ok", "2 in notebooks/, 2 in exercises/, trusted")


@pytest.mark.parametrize("content", ["", '{"cells": [', '{"nbformat": 4}', "[]"], ids=["empty", "truncated", "no cells", "a list"])
def test_a_lesson_that_is_no_notebook_is_a_problem_that_names_it(content: str, course: Path):
    (course / "notebooks" / "03_scaling.ipynb").write_text(content)
    (found,) = doctor_checks.notebooks(course)
    assert found.status == "problem"
    assert found.text.startswith(f"{Path('notebooks', '03_scaling.ipynb')} is no notebook: ")
    assert "git checkout" in found.mend


def test_missing_exercises_are_a_problem_and_so_is_an_empty_folder_of_lessons_but_no_release_without_them(course: Path):
    def without(room: str) -> list[Finding]:
        for path in (course / room).glob("*.ipynb"):
            path.rename(path.with_suffix(".aside"))
        found = doctor_checks.notebooks(course)
        for path in (course / room).glob("*.aside"):
            path.rename(path.with_suffix(".ipynb"))
        return found

    assert [(found.status, found.text) for found in without("exercises")] == [("problem", "2 in notebooks/, 0 in exercises/")]
    assert [(found.status, found.text) for found in without("notebooks")] == [("problem", "0 in notebooks/, 2 in exercises/")]
    shutil.rmtree(course / "notebooks")
    assert doctor_checks.notebooks(course) == [Finding("notebooks", "ok", "0 in notebooks/, 2 in exercises/, trusted")]


def test_work_is_told_as_it_stands(course: Path, monkeypatch: pytest.MonkeyPatch):
    assert doctor_checks.work(course) == Finding(
        "work", "note", "missing: ex_02_softmax.ipynb, ex_03_scaling.ipynb", "`attn-course lab` copies what is missing"
    )
    lab_files.copy_exercises(course)
    write_notebook(course / "work" / "ex_02_softmax.ipynb", "# mine", "42")
    assert doctor_checks.work(course) == Finding("work", "ok", "begun: ex_02_softmax.ipynb; untouched: ex_03_scaling.ipynb")
    write_notebook(course / "exercises" / "ex_03_scaling.ipynb", "# second edition")
    assert doctor_checks.work(course).status == "note"
    (course / "work" / "ex_02_softmax.ipynb").write_text("{")
    found = doctor_checks.work(course)
    assert (found.status, found.text) == ("problem", "unreadable: ex_02_softmax.ipynb; outdated: ex_03_scaling.ipynb")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = doctor_checks.work(course)
    assert (found.status, "cannot be written" in found.text) == ("problem", True)


def test_a_missing_language_model_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ATTN_COURSE_MODEL", str(tmp_path / "model.gguf"))
    found = doctor_checks.language_model()
    assert (found.status, found.mend) == ("note", "lessons run without it, on stored answers")
    assert found.text.startswith("the language model is not here: `attn-course model` fetches it (93 MB)")
    (tmp_path / "model.gguf").write_bytes(b"numbers")
    monkeypatch.setattr("attn_course.language.getting.SHA256", hashlib.sha256(b"numbers").hexdigest())
    assert doctor_checks.language_model() == Finding("language model", "ok", f"SmolLM2 in {tmp_path / 'model.gguf'}")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replace the two slow examinations, so that the command itself is what a test looks at."""

    def finds(status: Any) -> None:
        mend = "reinstall it" if status == "problem" else ""
        monkeypatch.setattr(doctor_checks, "kernel", lambda: Finding("kernel", status, "python3", mend))
        monkeypatch.setattr(doctor_checks, "torch_and_triton", lambda: [Finding("torch works", "ok", "torch multiplies matrices")])
        monkeypatch.setattr(doctor_checks, "course", lambda root: Finding("attn_course", "ok", "attn_course"))

    return finds


@pytest.mark.parametrize(("status", "code", "summary"), [("ok", 0, "no problem"), ("note", 0, "no problem"), ("problem", 1, "1 problem")])
def test_the_exit_code_is_1_only_if_something_is_broken_and_json_says_it_to_a_machine(
    status: str, code: int, summary: str, quick, course: Path, capsys, monkeypatch
):
    quick(status)
    monkeypatch.chdir(course)
    now = shutil.disk_usage(course)
    monkeypatch.setattr("shutil.disk_usage", lambda path: now)  # others write while we look
    assert cli.main(["doctor"]) == code
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == summary
    assert ("reinstall it" in said) == (status == "problem")
    assert cli.main(["doctor", "--json", "-"]) == code
    report = json.loads(capsys.readouterr().out)
    assert (report["version"], report["sound"]) == (1, status != "problem")
    assert {"name": "kernel", "status": status, "text": "python3", "mend": "reinstall it" if code else ""} in report["findings"]
    assert cli.main(["doctor", "--json", "report.json"]) == code
    assert json.loads(Path("report.json").read_text()) == report
