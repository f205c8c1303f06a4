"""What IPython adds to Python is there, or is refused in the same line, in both engines: `check` with a kernel, `grade` without."""

import pytest

from attn_course.checking.cells import Cell
from attn_course.checking.magics import UnknownMagic, for_kernel, to_python
from attn_course.checking.nbval_run import run_nbval
from attn_course.checking.notebook_check import check_notebook
from tests.classroom import toy

ALONE = "UnknownMagic: a %%writefile cell is no Python: a notebook is graded alone, without other files"
RUN = "NotInClass: %run is not there when a notebook is graded: write what it brings into a cell"
FILES = "NotInClass: !ls *.py gives nothing when a notebook is graded, where no command runs: use plain Python"
CELLS = {  # by name: cells of the learner's own, and what the last of them gets
    "display": (["display(np.ones(2))\nimport IPython.display\nIPython.display.display('text')"], None),
    "Out": (["6 * 7", "assert 42 in Out.values() and _oh is Out"], None),
    "In": (["assert In[0] == '' and 'assert In[0]' in In[-1] and _ih is In and _i in In"], None),
    "_": (["40 + 2", "assert _ == 42", "1;", "assert _ == 42"], None),
    "_ of one's own": (["_ = 5", "40 + 3", "assert _ == 5"], None),
    "a working directory": (["import os\npath = %pwd", "assert path == os.getcwd()"], None),
    "names": (["get_ipython().user_ns['by_name'] = 3", "assert by_name == 3 == get_ipython().user_ns['by_name']"], None),
    "annotations behind another line": (["x = 1\nfrom __future__ import annotations\ndef later(x: not_defined): return x"], None),
    "annotations in a later cell": (["def later_still(x: not_defined_either): return x"], None),
    "an unknown magic": (["%tensorflow_version 2.x\nshown = 1", "assert shown == 1"], None),
    "quiet magics": (["%matplotlib inline\n%load_ext autoreload\n%timeit 1\n!pip install nothing\nx = %time 3", "assert x == 3"], None),
    "a page": (["%%html\n<b>bold</b>"], None),
    "a timed cell": (["%%time\ntimed = 1", "assert timed == 1"], None),
    "a shell": (["!true\nget_ipython().kernel"], "NotInClass: get_ipython().kernel is not there when a notebook is graded"),
    "files of a command": (["files = !ls *.py"], FILES),
    "a magic's value": (["names = %who_ls"], "NotInClass: %who_ls gives nothing when a notebook is graded: use plain Python"),
    "another notebook": (["%run other.py"], RUN),
    "a file": (["%%writefile helper.py\ndef help(x): return x"], ALONE),
    "its import": (["import helper"], "ModuleNotFoundError"),
    "another language": (["%%bash\nls"], "UnknownMagic: a %%bash cell is no Python"),
    "an unknown language": (["%%unheard_of\nx"], "UnknownMagic: a %%unheard_of cell is no Python"),
    "a return at the end": (["above = 1\nreturn above"], "SyntaxError: 'return' outside function"),
    "what stands above it": (["assert above == 1"], None),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory, grader):
    """By name of the cells: what `check`, and what `grade` says of the last."""
    with pytest.MonkeyPatch.context() as patch:
        toy.install(patch.setattr)
        course = toy.make_course(tmp_path_factory.mktemp("supplied"))
        (course / "work" / "helper.py").write_text("def help(x): return x", encoding="utf-8")  # as JupyterLab has written it
        cells, last = toy.cells(toy.RIGHT), {}
        for name, (sources, _) in CELLS.items():
            cells += [toy.cell(source, f"own-{name}-{n}".replace(" ", "-")) for n, source in enumerate(sources)]
            last[name] = len(cells)
        path = toy.write(course / "work" / "ex_97_toy.ipynb", cells)
        report = check_notebook(path, exercises=course / "exercises")
        checked = {problem.cell: problem.message for problem in report.problems}
        notes = grader.grade(path, student="ada").notes[1:]  # the toy's own setup cannot be imported in a class
    graded = dict(note.removeprefix("code cell ").split(": ", 1) for note in notes)
    assert {*checked} | {*map(int, graded)} <= {*last.values()}, (checked, graded)
    return {name: (checked.get(number), graded.get(str(number))) for name, number in last.items()}


@pytest.mark.parametrize("name", CELLS)
def test_both_engines_supply_the_same_and_refuse_the_rest_in_one_line(said, name):
    wanted, (checked, graded) = CELLS[name][1], said[name]
    if wanted is None:
        assert (checked, graded) == (None, None)
    else:
        assert checked.partition(" in line ")[0].startswith(wanted)
        assert graded.startswith(wanted)


ANSWERS = {  # of three tasks, each with what IPython supplies in the answer's own cell
    "twice": "%tensorflow_version 2.x\nx = 1\nfrom __future__ import annotations\ndisplay(x)\ndef twice(x: not_defined):\n    return 2 * x",
    "thrice": "files = !ls\ndef thrice(x):\n    return 3 * x",
    "four-times": "_, out, first = get_ipython().user_ns, Out, In[0]\npath = %pwd\ndef four_times(x):\n    return (4 if path else 0) * x",
}


def test_both_engines_give_the_same_verdict_on_answers_with_what_ipython_supplies(toy_course, grader):
    path = toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells(ANSWERS))
    checked, graded = check_notebook(path, exercises=toy_course / "exercises").tasks, grader.grade(path, student="ada").verdicts
    assert [task.points for task in checked] == [verdict.points for verdict in graded] == [2, 0, 4]
    refused = (
        "the answer cell does not run: NotInClass: !ls gives nothing when a notebook is graded, where no command runs: use plain Python"
    )
    assert checked[1].message.partition(" in line ")[0] == graded[1].message == refused


def test_a_usage_error_of_ipython_which_is_no_exception_of_a_kernel_is_one_here(tmp_path):
    (outcome,) = run_nbval([Cell("%unheard_of 1\nx = 2")], folder=tmp_path, cell_timeout_s=60).values()
    assert (outcome.problem, outcome.error_name) == ("exception", "UsageError")
    assert outcome.error_text == "Line magic function `%unheard_of` not found."


@pytest.mark.parametrize("cell", ["x = 5 % 3\n", "print('100 %!')\n", "# what?\nx = 1\n", "def f():\n    return 1", "x = 1\n'%%time'\n"])
def test_what_is_no_magic_is_left_as_it_is(cell):
    assert to_python(cell) == for_kernel(cell) == cell


@pytest.mark.parametrize("cell", ["%%bash\nls", "%%writefile a.py\n", "\n%%time\n%%script x\n"])
def test_a_cell_in_another_language_is_refused(cell):
    with pytest.raises(UnknownMagic, match="is no Python"):
        to_python(cell)
