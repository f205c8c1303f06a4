"""What may be in the repository. The tests read every tracked file; `python -m tests.project.hygiene FILE ...` is the pre-commit hook."""

import re
import subprocess
import sys
from pathlib import Path

LARGEST_BYTES = 400_000
ROOT = Path(__file__).resolve().parents[2]

# Written with a one-letter class each, so that this file does not match itself. /home/someone and /home/you are nobody's.
HOME = re.compile(r"(?<![\w.])/(?:home|Users)/(?!someone/|you/)[a-z][\w.-]*/|\b[A-Z]:\\Users\\|(?<![\w.])/[r]oot/")
REGISTRY = re.compile(r"\b(?:[p]ypi\.org|[p]ythonhosted\.org|[n]pmjs\.org|[d]ebian\.org|[a]naconda\.org)\b")
UNTRACKED = re.compile(r"(?:^|/)(?:work|\.venv|__pycache__|\.ipynb_checkpoints|\.progress[^/]*|\.DS_Store)(?:/|$)")


def tracked_files(root: Path) -> list[Path]:
    """Return what git knows of, staged files too, as far as it is still there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := root / name).is_file()]


def complaints(path: Path, root: Path) -> list[str]:
    """Return what should not be in a committed file, each as "file:line: what"."""
    name = path.relative_to(root).as_posix()
    found = [f"{name}: belongs to one machine or one learner; keep it out of git"] if UNTRACKED.search(name) else []
    content = path.read_bytes()
    if len(content) >= LARGEST_BYTES:
        found.append(f"{name}: {len(content)} bytes; the limit is {LARGEST_BYTES}")
    if b"\0" in content:
        return found  # a picture
    if b"\r" in content:
        found.append(f"{name}: has carriage returns; lines end with LF")
    if content and not content.endswith(b"\n"):
        found.append(f"{name}: does not end with a line feed")
    for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
        if HOME.search(line) or str(root) in line:
            found.append(f"{name}:{number}: holds a path of one machine")
        if REGISTRY.search(line):
            found.append(f"{name}:{number}: names a package registry; pip's own configuration decides where packages come from")
    return found


def main(names: list[str]) -> int:
    """Print the complaints about the named files; the exit code is 1 if there is any."""
    found = [line for name in names for line in complaints(Path(name).resolve(), ROOT)]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
