"""The real model against other people's reading of its file, its stored answers, and the lesson in which a reader's function runs it."""

import os
import subprocess
import sys
from pathlib import Path

from attn_course.authoring.nbval import run_nbval


def test_it_says_what_the_library_says_and_what_is_stored(root, with_model):
    program = Path(__file__).with_name("with_the_model.py")
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    assert lines[-1:] == ["all was looked at"], done.stderr[-3000:]
    assert [line for line in lines if line.startswith("wrong")] == []
    assert int(lines[0].removeprefix("memory ")) < 1_500_000  # kB, after loading


def test_a_lesson_gives_with_the_model_what_it_gives_without(root, with_model, quick_start):
    lesson = next((root / "notebooks").glob("[0-9][0-9]_attention.ipynb"))
    run = run_nbval([lesson])
    assert run.passed, f"cells {', '.join(run.failed) or '(none ran)'} differ\n{run.text[-4000:]}"
