"""The sources for nbgrader: solutions without explanations, and nothing of the teacher's overwritten."""

import json
from pathlib import Path

import pytest

from attn_course.authoring import AuthoringError
from attn_course.authoring.nbgrader_source import prepare

ROOT = Path(__file__).parents[2]


def test_explanations_are_left_out_and_a_repair_shows_the_broken_function_first(tmp_path):
    (path,) = prepare(ROOT, tmp_path, ["2"])
    assert path == tmp_path / "source" / "softmax" / "softmax.ipynb"
    cells = {cell["id"]: cell["source"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    assert not [name for name in cells if name.endswith("-why")]
    broken, right = cells["repair-softmax-temperature"].split("### BEGIN SOLUTION\n")
    assert broken.count("def tempered_weights") == right.count("def tempered_weights") == 1
    assert right.endswith("\n### END SOLUTION")


def test_it_can_be_run_again_but_overwrites_nothing_of_another_making(tmp_path):
    (path,) = prepare(ROOT, tmp_path, ["2"])
    assert prepare(ROOT, tmp_path, ["2"]) == [path]
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(AuthoringError, match="was not made by this command"):
        prepare(ROOT, tmp_path, ["2"])
    assert path.read_text(encoding="utf-8") == "{}"
