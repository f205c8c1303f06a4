"""Every committed output is what the code gives today; nbval runs each notebook in a kernel of its own."""

import json
import re
import shutil

import pytest

from attn_course.authoring.nbval import run_nbval

from .chapters import EXECUTED, ROOT

pytestmark = pytest.mark.usefixtures("quick_start")  # the builder's kernels, which made the outputs, start cold
PARTS = 6  # an nbval takes half a second to start


@pytest.mark.parametrize("part", range(PARTS))
def test_outputs_are_what_the_code_gives(part):
    run = run_nbval([ROOT / name for name in EXECUTED[part::PARTS]])
    assert run.passed, f"cells {', '.join(run.failed) or '(none ran)'} differ\n{run.text[-6000:]}"


def test_one_changed_digit_of_an_output_fails_and_names_the_cell(tmp_path):
    name = next(name for name in EXECUTED if name.startswith("solutions/"))
    path = tmp_path / "copy.ipynb"
    shutil.copy(ROOT / name, path)
    raw = json.loads(path.read_text(encoding="utf-8"))
    cell = next(cell for cell in raw["cells"] if cell["cell_type"] == "code" and cell["outputs"] and "text" in cell["outputs"][0])
    line = cell["outputs"][0]["text"][0]
    cell["outputs"][0]["text"][0] = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), line, count=1)
    path.write_text(json.dumps(raw), encoding="utf-8")
    run = run_nbval([path])
    assert not run.passed
    assert run.failed == [f"{path.parent.name}/copy.ipynb:{cell['id']}"]
