"""The lines of lesson attention that put the reader's call into GPT-2: the text they write is the library's own."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("through_gpt2.py")


def test_gpt2_writes_through_the_readers_call_what_it_writes_by_itself(root):
    (lesson,) = (root / "notebooks").glob("[0-9][0-9]_attention.ipynb")
    done = subprocess.run([sys.executable, str(PROGRAM), str(lesson)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ours, theirs = json.loads(done.stdout.splitlines()[-1])
    assert ours == theirs
    assert len(set(theirs[4:])) > 2  # or any attention would do
