"""The mutants have their places, and the script tells a change that a test notices from one that changes nothing."""

import subprocess

from tests.mutants.__main__ import LISTS, ROOT, read


def test_every_mutant_stands_in_one_place_and_its_tests_are_there():
    mutants = [mutant for path in LISTS.glob("*.txt") for mutant in read(path)]
    assert len(mutants) > 160
    assert [str(mutant) for mutant in mutants if mutant.place() is None] == []
    assert {name for mutant in mutants for name in mutant.tests if not (ROOT / name).exists()} == set()


def test_a_mutant_is_killed_and_a_comment_survives(tmp_path, warm_python):
    listed = tmp_path / "few.txt"
    listed.write_text(
        """room attn_course/formulas/sizes.py
tests tests/formulas/test_sizes.py
orders_left.discard(drawn) => orders_left.discard(drawn)  # as before
equal = dict.fromkeys(free, EQUAL) | {greater: EQUAL + 1 => equal = dict.fromkeys(free, EQUAL) | {greater: EQUAL
no such line => anywhere
""",
        encoding="utf-8",
    )
    command = [warm_python, "-m", "tests.mutants", str(listed)]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout.splitlines()
    fates = dict(line.split(" ", 1) for line in lines[:3])
    assert fates.keys() == {"survived", "killed", "does"}
    assert "as before" in fates["survived"]
    assert "[tests/formulas/test_sizes.py::test_" in fates["killed"]
    assert lines[-1].split() == ["few", "1", "1", "1", "0"]
