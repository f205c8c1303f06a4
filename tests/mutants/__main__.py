"""Change one thing in an engine and see whether a test fails: `python -m tests.mutants`, with `--only judge`, `--jobs 2`, `--to-the-end`.

The lists are the text files here. In them `room` says which folder (or file) is changed, `tests` which tests are to notice, run in that
order until one fails; a line `old => new` is a mutant, and `old` must stand exactly once in the Python files of the room, wherever that is
(`<br>` in it is a line break with the indent of the next line).
Nothing is written: one process imports the heavy libraries and forks for every mutant, where loading a module compiles the changed text.
Before all, the tests run without a change. A change that means the same does not belong in a list.
"""

import argparse
import contextlib
import importlib
import io
import json
import linecache
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from types import CodeType
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent
HEAVY = ("numpy", "torch", "sympy", "pytest", "hypothesis.extra.numpy", "jaxtyping", "beartype.claw", "nbformat", "jupytext", "nbclient")
SECONDS = 240  # of processor time; who needs more hangs
KILLED, SURVIVED, MISPLACED, BROKEN = "killed", "survived", "does not apply", "not run"


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a room, the tests that are to notice it, and the list that it stands in."""

    list: str
    room: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.old} => {self.new}"

    def place(self) -> Path | None:
        """Return the one file in which the old text stands, once; None if there is no such."""
        room = ROOT / self.room
        paths = [room] if room.is_file() else sorted(room.rglob("*.py"))
        found = [path for path in paths for _ in self.pattern.findall(path.read_text(encoding="utf-8"))]
        return found[0] if len(found) == 1 else None

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds the old text, and each of its line breaks."""
        return re.compile(r"(\n\s*)".join(map(re.escape, self.old.split("<br>"))))

    def changed(self, text: str) -> str:
        """Return a text that holds the old one with the new one in its place."""
        return self.pattern.sub(
            lambda found: "".join(map("".join, zip_longest(self.new.split("<br>"), found.groups(), fillvalue=""))), text
        )


def read(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a list."""
    said = {"room": "", "tests": ""}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if word in said:
            said[word] = rest
        elif " => " in f"{line} " and not line.startswith("# "):
            old, _, new = f"{line} ".partition(" => ")
            yield Mutant(path.stem, said["room"], old.strip(), new.strip(), tuple(said["tests"].split()))


def _load_changed(mutant: Mutant, place: Path) -> None:
    """Let one file come with its change, to whatever loads it (jaxtyping's hook too) and to who reads its source (Triton)."""
    unchanged = SourceFileLoader.get_code

    def get_code(loader: Any, fullname: str) -> CodeType | None:
        if loader.get_filename(fullname) != str(place):
            return unchanged(loader, fullname)
        text = mutant.changed(place.read_text(encoding="utf-8"))
        linecache.cache[str(place)] = len(text), None, text.splitlines(keepends=True), str(place)
        code: CodeType = loader.source_to_code(text.encode(), str(place))
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


class _Failures:
    """A plugin of pytest that keeps the names of the tests that fail."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def _in_fork(mutant: Mutant, place: Path, said: IO[str], to_the_end: bool) -> None:
    """Run the tests of a mutant in this process, which is a fork, and say which of them fail."""
    import pytest

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    os.environ["CI"] = "1"  # hypothesis draws the same examples every time
    _load_changed(mutant, place)
    failures = _Failures()
    with Path(os.devnull).open("w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
    options = [*mutant.tests, "-q", "-p", "no:cacheprovider", "-n0", "--tb=no", *([] if to_the_end else ["-x"])]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are imported already
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main(options, plugins=[failures])
    names = failures.names or ([] if code == pytest.ExitCode.OK else [f"pytest: {code!r}"])
    json.dump(names, said)


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: the tests that failed, or a word that none could."""

    mutant: Mutant
    word: str
    tests: tuple[str, ...] = ()
    seconds: float = 0.0


def tried(mutants: Iterable[Mutant], jobs: int = 1, *, to_the_end: bool = False) -> Iterator[Fate]:
    """Try mutants, so many at a time; `to_the_end` goes on when a test has failed."""
    for name in HEAVY:
        importlib.import_module(name)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    running: dict[int, tuple[Mutant, IO[str], float]] = {}
    for mutant in mutants:
        place = mutant.place()
        if place is None:
            yield Fate(mutant, MISPLACED)
            continue
        if len(running) == jobs:
            yield _ended(running)
        said = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- it is closed when its fork has ended
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                _in_fork(mutant, place, said, to_the_end)
            except BaseException as error:  # even an exit that a test asks for: a fork must never return
                json.dump(f"{type(error).__name__}: {error}", said)
            finally:
                said.flush()
                os._exit(0)
        running[child] = mutant, said, time.monotonic()
    while running:
        yield _ended(running)


def _ended(running: dict[int, tuple[Mutant, IO[str], float]]) -> Fate:
    """Wait for the fork that ends first; what it has started ends with it."""
    child, _ = os.wait()
    mutant, said, start = running.pop(child)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with said:
        said.seek(0)
        tests = json.loads(said.read() or '["out of time"]')
    seconds = time.monotonic() - start
    return (
        Fate(mutant, BROKEN, (tests,), seconds)
        if isinstance(tests, str)
        else Fate(mutant, KILLED if tests else SURVIVED, tuple(tests), seconds)
    )


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants, print a line for each and a table of the lists; return how many survive or do not apply."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="TEXT", help="mutants whose line or list holds this text")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--to-the-end", action="store_true", help="run all tests of a mutant, and list all that fail")
    parser.add_argument("lists", nargs="*", type=Path, default=sorted(LISTS.glob("*.txt")), metavar="LIST")
    chosen = parser.parse_args(arguments)
    os.chdir(ROOT)
    mutants = [mutant for path in chosen.lists for mutant in read(path)]
    if chosen.only:
        mutants = [mutant for mutant in mutants if chosen.only in f"{mutant.list} {mutant}"]
    for fate in tried([replace(mutant, new=mutant.old) for mutant in {mutant.tests: mutant for mutant in mutants}.values()], chosen.jobs):
        if fate.word == KILLED:
            print(f"these fail as it is: {', '.join(fate.tests)}")
            return 1
    counted: Counter[tuple[str, str]] = Counter()
    for fate in tried(mutants, chosen.jobs, to_the_end=chosen.to_the_end):
        counted[fate.mutant.list, fate.word] += 1
        print(f"{fate.word:14} {fate.seconds:5.1f} s  {fate.mutant.list}: {fate.mutant}  [{', '.join(fate.tests)}]", flush=True)
    words = (KILLED, SURVIVED, MISPLACED, BROKEN)
    print(f"\n{'list':12}" + "".join(f"{word:>16}" for word in words))
    for name in dict.fromkeys(mutant.list for mutant in mutants):
        print(f"{name:12}" + "".join(f"{counted[name, word]:16}" for word in words))
    return sum(number for (_, word), number in counted.items() if word != KILLED)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
