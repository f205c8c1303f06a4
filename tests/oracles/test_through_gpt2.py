"""The layer of lesson attention's exercises, and its step with kept keys, against the library's GPT-2."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("through_gpt2.py")


def test_layer_and_step_of_the_exercises_are_those_of_gpt2(root):
    solution = next((root / "solutions").glob("[0-9][0-9]_attention.ipynb"))
    done = subprocess.run([sys.executable, str(PROGRAM), str(solution)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    errors = json.loads(done.stdout.splitlines()[-1])
    assert len(errors) == 2
    assert max(errors) < 1e-12
