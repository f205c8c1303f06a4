"""The examinations of `attn-course doctor`: each returns findings, in plain data, and how to mend what is wrong."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import attn_course
from attn_course.commands.lab_files import copy_states, exercises, lessons
from attn_course.commands.lab_trust import notary
from attn_course.files import BROUGHT

Status = Literal["ok", "note", "problem"]
GIGABYTE = 1_000_000_000
DISTRIBUTION = "attn_course"
SHOWN = ("numpy", "torch", "sympy", "matplotlib", "jupyterlab", "ipykernel", "nbval")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    status: Status
    text: str
    mend: str = ""


def examine(root: Path) -> list[Finding]:
    """Examine this Python and the course in `root`.

    They come in the order they are best read: Python, packages, kernel, torch, notebooks, work, the rest.
    """
    slow: list[Callable[[], list[Finding]]] = [lambda: [kernel()], torch_and_triton]
    with ThreadPoolExecutor(len(slow)) as pool:
        waiting = [pool.submit(check) for check in slow]
        first = [python(), course(root), *packages()]
        last = [*notebooks(root), work(root), language_model(), disk(root), browser()]
        return [*first, *(finding for result in waiting for finding in result.result()), *last]


def python() -> Finding:
    """Is this Python one the course supports?"""
    where = f"Python {platform.python_version()} in {sys.prefix}"
    if sys.prefix == sys.base_prefix and "CONDA_PREFIX" not in os.environ:
        return Finding(
            "python", "note", where, "this is no environment of its own: `make lab` makes one, so that nothing else is disturbed"
        )
    return Finding("python", "ok", where)


def course(root: Path) -> Finding:
    """Is the package that notebooks import the one beside them?"""
    home = Path(attn_course.__file__).resolve().parent.parent
    text = f"attn_course {attn_course.__version__} in {home}"
    if home != root.resolve():
        return Finding("attn_course", "problem", f"{text}, but the course is in {root}", f"{_pip()} -e {root}")
    return Finding("attn_course", "ok", text)


def packages() -> Iterator[Finding]:
    """Are the packages that the course needs there, and new enough?"""
    for name, lowest in _requirements().items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, "problem", f"{name} is not installed", f"{_pip()} '{name}>={lowest}'")
            continue
        if _numbers(version) < _numbers(lowest):
            yield Finding(name, "problem", f"{name} {version} is older than {lowest}", f"{_pip()} '{name}>={lowest}'")
        elif name in SHOWN:
            yield Finding(name, "ok", f"{name} {version}")


def _requirements() -> dict[str, str]:
    """Return the lowest version of each package that the course needs to run, as it was installed."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        lines = []
    parts = (re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", line) for line in lines if "extra ==" not in line)
    return {part[1]: part[2] for part in parts if part}


def _numbers(version: str) -> list[int]:
    """Return the leading numbers of a version, for comparison."""
    return [int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3]]


def kernel() -> Finding:
    """Does the kernel `python3` start, and is it this environment?"""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    from jupyter_client.manager import start_new_kernel

    printed: list[str] = []

    def listen(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    try:
        place = KernelSpecManager().get_kernel_spec("python3").resource_dir
        manager, client = start_new_kernel(startup_timeout=60, kernel_name="python3", stderr=subprocess.DEVNULL)
        try:
            client.execute_interactive("import sys; print(sys.prefix)", output_hook=listen, timeout=60)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    except (NoSuchKernel, RuntimeError, TimeoutError, OSError) as error:
        lacks = isinstance(error, NoSuchKernel)
        text = "there is no kernel named python3" if lacks else f"the kernel python3 does not start: {error}"
        return Finding("kernel", "problem", text, f"{_pip()} --force-reinstall ipykernel")
    prefix = "".join(printed).strip()
    if prefix != sys.prefix:
        mend = f"`attn-course lab` uses {sys.prefix} all the same; for other front ends remove the kernel in {place}"
        return Finding("kernel", "problem", f"the kernel python3 runs in {prefix}, not in {sys.prefix}", mend)
    return Finding("kernel", "ok", f"python3 starts in {prefix}")


def torch_and_triton() -> list[Finding]:
    """Does torch compute, on which devices, and can Triton kernels run?"""
    line = [sys.executable, "-m", "attn_course.commands.torch_probe"]
    broken = ""
    try:
        run = subprocess.run(line, capture_output=True, text=True, timeout=180, check=False)
        if run.returncode != 0:
            words = run.stderr.strip().splitlines()[-1:] or [f"it ended with status {run.returncode}"]
            broken = f"torch cannot be used: {words[0]}"
        elif not (found := json.loads(run.stdout))["product_is_right"]:
            broken = "torch gets a product of small matrices wrong"
    except subprocess.TimeoutExpired:
        broken = "torch did not multiply two small matrices within 180 s"
    if broken:
        return [Finding("torch works", "problem", broken, f"{_pip()} --force-reinstall torch")]
    return [Finding("torch works", "ok", "torch multiplies matrices"), *_gpus(found), _triton(found)]


def _gpus(found: dict[str, Any]) -> list[Finding]:
    """Say which GPUs torch can use, or why it can use none."""
    if not found["gpus"]:
        if found["cuda"] is None and shutil.which("nvidia-smi"):
            mend = "https://pytorch.org/get-started/locally/ says how to choose a CUDA build"
            return [Finding("gpu", "note", "an NVIDIA driver is here, but this torch is built for the CPU only", mend)]
        return [Finding("gpu", "note", "no GPU found: the course runs on the CPU")]
    return [
        Finding("gpu", "ok", f"{gpu['name']}, {gpu['memory_bytes'] / GIGABYTE:.0f} GB, CUDA {found['cuda']}")
        if gpu["product_is_right"]
        else Finding(
            "gpu", "problem", f"{gpu['name']} gets a product of small matrices wrong", "update the driver, or install another torch"
        )
        for gpu in found["gpus"]
    ]


def _triton(found: dict[str, Any]) -> Finding:
    """Say how Triton kernels can run."""
    if found["triton"] is None:
        if platform.system() != "Linux":
            return Finding("triton", "note", "Triton runs on Linux only; only the GPU chapters use it")
        return Finding("triton", "note", "not installed; only the GPU chapters use it", f"{_pip()} triton")
    return Finding("triton", "ok", f"triton {found['triton']}, kernels run {'on the GPU' if found['gpus'] else 'in its interpreter'}")


def notebooks(root: Path) -> list[Finding]:
    """Are lessons and exercises there, whole, and trusted?"""
    import nbformat

    mend = "delete it: `attn-course lab` writes it again" if BROUGHT.is_dir() else "git checkout -- notebooks exercises"
    broken, untrusted = [], []
    keeper = notary()
    try:
        for path in [*lessons(root), *exercises(root)]:
            try:
                notebook = nbformat.read(path, as_version=4)
            except Exception as error:  # nbformat raises many kinds
                first_line = (str(error).splitlines() or [type(error).__name__])[0]
                broken.append(Finding("notebooks", "problem", f"{path.relative_to(root)} is no notebook: {first_line}", mend))
            else:
                untrusted += [path.name] if path.parent.name == "notebooks" and not keeper.check_signature(notebook) else []
    finally:
        keeper.store.close()
    if broken:
        return broken
    text = f"{len(lessons(root))} in notebooks/, {len(exercises(root))} in exercises/"
    without_lessons = not (root / "notebooks").is_dir()  # as attn-course release --no-lessons makes it
    if not exercises(root) or not (lessons(root) or without_lessons):
        return [Finding("notebooks", "problem", text, mend)]
    if untrusted:
        mend = "explorables stand still until `attn-course lab` has run once"
        return [Finding("notebooks", "note", f"{text}; not trusted yet: {', '.join(untrusted)}", mend)]
    return [Finding("notebooks", "ok", f"{text}, trusted")]


def work(root: Path) -> Finding:
    """What is in work/, and can it be written?"""
    folder = root / "work"
    if not os.access(folder if folder.exists() else root, os.W_OK):
        return Finding("work", "problem", f"{folder} cannot be written", "change its owner or permissions, or copy the course elsewhere")
    states = copy_states(root)
    counted = {state: [name for name, its in states.items() if its == state] for state in dict.fromkeys(states.values())}
    text = "; ".join(f"{state}: {', '.join(names)}" for state, names in counted.items()) or "no exercises"
    if "unreadable" in counted:
        return Finding("work", "problem", text, "rename what is unreadable; `attn-course lab` then copies a fresh one")
    if {"outdated", "changed"} & set(counted):
        return Finding("work", "note", text, "the course has newer exercises: `attn-course lab` says how to get them")
    if "missing" in counted:
        return Finding("work", "note", text, "`attn-course lab` copies what is missing")
    return Finding("work", "ok", text)


def language_model() -> Finding:
    """Is the language model here, bit by bit, that some lessons run?"""
    from attn_course.language.getting import ModelMissing, checked, model_path

    try:
        return Finding("language model", "ok", f"SmolLM2 in {checked(model_path())}")
    except ModelMissing as error:
        return Finding("language model", "note", str(error), "lessons run without it, on stored answers")


def disk(root: Path) -> Finding:
    """Is there room left for notebooks, caches and results?"""
    free = shutil.disk_usage(root).free
    text = f"{free / GIGABYTE:.1f} GB free"
    if free < GIGABYTE / 5:
        return Finding("disk", "problem", text, "notebooks may fail to save: free some space (`pip cache purge` gives back a few GB)")
    if free < 2 * GIGABYTE:
        return Finding("disk", "note", text, "enough for the course, not for another torch: `pip cache purge` gives back a few GB")
    return Finding("disk", "ok", text)


def browser() -> Finding:
    """Could the browser test of `make test` run?"""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        return Finding("browser test", "note", "no chromium or google-chrome on PATH: `make test` skips one test, the course needs none")
    if find_spec("playwright") is None:
        return Finding("browser test", "note", f"{found}, without playwright: only `make test` needs it", f"{_pip()} playwright")
    return Finding("browser test", "ok", found)


def _pip() -> str:
    """Return how to install into this very environment."""
    return f"{sys.executable} -m pip install"
