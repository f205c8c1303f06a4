"""The arrays that models.py stores, made once for all workers of a run, without a network."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock

PROGRAM = Path(__file__).with_name("models.py")


def stored(folder: Path) -> Callable[[str], dict[str, np.ndarray]]:
    """Return a function of the name of a model, such as "gpt2", that gives its arrays; the first call makes those of all models."""
    made = folder / "oracles"

    @functools.cache
    def outside(name: str) -> dict[str, np.ndarray]:
        with FileLock(folder / "oracles.lock"):
            if not made.exists():
                make(made)
        with np.load(made / f"{name}.npz") as arrays:
            return dict(arrays)

    return outside


def make(folder: Path) -> None:
    """Run models.py; the folder is there only once all of it is."""
    unfinished = folder.with_suffix(".unfinished")
    unfinished.mkdir(exist_ok=True)
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(unfinished), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(PROGRAM), str(unfinished)], env=os.environ | offline, capture_output=True, text=True)
    assert done.returncode == 0, f"{PROGRAM.name} failed; `make test` installs what it needs:\n{done.stderr[-2000:]}"
    unfinished.rename(folder)
