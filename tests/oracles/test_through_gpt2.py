"""The lines of lesson attention that put the reader's call into GPT-2, and the layer and the step of its exercises, against the library."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("through_gpt2.py")


def test_gpt2_writes_through_the_readers_call_and_its_layer_and_step_are_those_of_the_exercises(root):
    notebooks = [next((root / folder).glob("[0-9][0-9]_attention.ipynb")) for folder in ("notebooks", "solutions")]
    done = subprocess.run([sys.executable, str(PROGRAM), *map(str, notebooks)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ours, theirs, errors = json.loads(done.stdout.splitlines()[-1])
    assert ours == theirs
    assert len(set(theirs[4:])) > 2  # or any attention would do
    assert max(errors) < 1e-12
