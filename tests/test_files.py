"""Files are written whole or not at all, and a lock ends with the process that holds it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attn_course.files import TEMPORARY, WIDTH, Locked, in_short_lines, locked, write_atomically


def test_a_file_is_replaced_whole_and_its_folder_is_made(tmp_path):
    path = tmp_path / "a" / "b.txt"
    assert write_atomically(path, "first")
    assert write_atomically(path, "second \ud800\n", durable=True)
    assert path.read_bytes() == b"second \\ud800\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["b.txt"]
    umask = os.umask(0o022)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_file_that_holds_the_text_already_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text")
    before = path.stat()
    assert not write_atomically(path, "text")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("durable", [False, True])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, durable):
    path = tmp_path / "a.txt"
    path.write_text("old")
    opened = Path.open
    beginning = TEMPORARY
    monkeypatch.setattr(
        Path, "open", lambda path, mode="r": opened(Path("/dev/full"), "wb") if path.name.startswith(beginning) else opened(path, mode)
    )
    with pytest.raises(OSError, match="No space left on device"):
        write_atomically(path, "new", durable=durable)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_lock_is_held_by_one_at_a_time_and_ends_with_its_process_however_that_ends(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from attn_course.files import locked\n"
        "with locked(Path(sys.argv[1]), patience_s=0): print(flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Locked, match="another process is writing"), locked(tmp_path / "lock", patience_s=0):
            pass
        other.kill()
    with locked(tmp_path / "lock", patience_s=60):
        pass


def test_data_stand_in_lines_that_are_filled_and_come_back_as_they_were():
    data = {
        "curve": [0.125] * 40,
        "pairs": [[1, "é, {"]] * 30,
        "none": [],
        "deep": {"a": {str(n): n for n in range(50)}, "b": None},
        "c": ["x" * 200],
    }
    text = in_short_lines(data)
    assert json.loads(text) == data
    assert text.splitlines()[1:4] == [' "curve": [', "  " + "0.125, " * 16 + "0.125,", "  " + "0.125, " * 16 + "0.125,"]
    assert all(len(line) <= WIDTH for line in text.splitlines() if "xxx" not in line)
    assert ' "none": [],' in text.splitlines()
    assert in_short_lines({1: (2, 3)}) == '{"1": [2, 3]}\n'
