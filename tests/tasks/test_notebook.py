"""`check` in a learner's notebook: one fixed card if it is right; else one card, one exception, no stack."""

import functools
import json
import os
import warnings
from dataclasses import replace

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from attn_course import numbers
from attn_course.tasks import VERDICT_MIME, CheckFailed, Verdict, all_tasks, assess, check, get_task, progress
from attn_course.tasks.cards import passed, plain, rich
from attn_course.tasks.forbidden import UNLAUNCHED

OK = get_task("stable-softmax").ok_line + "\n"
RIGHT = (
    "    shifted = scores - scores.max(axis=axis, keepdims=True)\n    u = np.exp(shifted)\n    return u / u.sum(axis=axis, keepdims=True)\n"
)
CELLS = {
    "setup": "import sys, warnings\nimport numpy as np\nimport sympy\nfrom attn_course import check",
    "right": f"def my_softmax(scores, axis):\n{RIGHT}check('stable-softmax', my_softmax)",
    "right-and-talkative": f"def my_softmax(scores, axis):\n    print(scores.shape)\n    warnings.warn('careful')\n"
    f"    print('beware', file=sys.stderr)\n{RIGHT}check('stable-softmax', my_softmax)",
    "wrong-and-talkative": "def my_softmax(scores, axis):\n    print('axis', axis)\n    return scores\ncheck('stable-softmax', my_softmax)",
    "unread": f"def my_softmax(scores, axis)\n{RIGHT}",
    "unread-check": "check('stable-softmax', my_softmax)",
    "raises": "def my_softmax(scores, axis):\n    return scores[axis, axis, axis]\ncheck('stable-softmax', my_softmax)",
    "exits": "def my_softmax(scores, axis):\n    sys.exit(1)\ncheck('stable-softmax', my_softmax)",
    "library": "import torch\ndef helper(x):\n    return torch.softmax(x, -1)\ndef my_softmax(scores, axis):\n    return helper(scores)\n"
    "check('stable-softmax', my_softmax)",
    "imported": "from torch import softmax as my_softmax",
    "imported-check": "check('stable-softmax', my_softmax)",
    "markup": "check('entropy-by-hand', '<script>alert(1)</script>')",
    "diff": "s_i, s_j, delta_ij = sympy.symbols('s_i s_j delta_ij')\nmy_derivative = sympy.diff(s_i * (delta_ij - s_j), s_i)",
    "diff-check": "check('log-softmax-derivative', my_derivative)",
    "magic": "%env COURSE=1\nmy_derivative = delta_ij - s_j\ncheck('log-softmax-derivative', my_derivative)",
    "forgetful": f"In = _ih = Out = None\ndef my_softmax(scores, axis):\n{RIGHT}check('stable-softmax', my_softmax)",
    "forgetful-diff": "my_derivative = sympy.diff(s_i * (delta_ij - s_j), s_i)",
    "forgetful-check": "check('log-softmax-derivative', my_derivative)",
    "unknown": "check('stable-sofmax', my_softmax)",
    "alive": "print('alive')",
    "elsewhere": "import os, tempfile\nos.chdir('/')\ncheck('stable-softmax', my_softmax)",
    "nowhere": "lost = tempfile.mkdtemp()\nos.chdir(lost)\nos.rmdir(lost)\ncheck('stable-softmax', my_softmax)",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    (root / "work").mkdir()
    (root / "exercises").mkdir()
    return root


@pytest.fixture(scope="module")
def ran(course, warm_python):
    """The outputs of each cell and the kernel's replies, run in work/ by a real kernel that goes on after errors."""
    cells = [nbformat.v4.new_code_cell(text, id=name) for name, text in CELLS.items()]
    book = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(
        book, timeout=60, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(course / "work")}}
    )
    client.create_kernel_manager().kernel_spec.argv[0] = warm_python  # whatever kernels this machine has
    replies = {}
    client.on_cell_executed = lambda cell, cell_index, execute_reply: replies.update({cell.id: execute_reply["content"]})
    client.execute(env={**os.environ, "IPYTHONDIR": str(course / "profile")})
    return {cell.id: cell.outputs for cell in book.cells}, replies


@pytest.fixture(scope="module")
def outputs(ran):
    return ran[0]


@pytest.fixture(scope="module")
def replies(ran):
    return ran[1]


def kinds(cell_outputs):
    return [output.output_type for output in cell_outputs]


@pytest.mark.parametrize("cell", ["right", "right-and-talkative", "forgetful", "elsewhere", "nowhere"])
def test_a_right_answer_shows_its_card_and_nothing_else_whatever_it_prints_itself(outputs, cell):
    (output,) = outputs[cell]
    assert (output.output_type, output.data) == ("display_data", passed(get_task("stable-softmax")))
    assert output.data["text/plain"] + "\n" == OK


def test_the_card_of_a_passed_check_depends_on_the_task_alone_and_has_its_points():
    task = get_task("stable-softmax")
    card = passed(task)["text/html"]
    assert card == passed(task.variant("ann"))["text/html"]
    assert f"Task {task.number}, {task.title}." in card
    assert f"Right in {task.n_cases} cases: {task.points} points." in card
    assert "script" not in card
    assert " cases" not in passed(get_task("entropy-by-hand"))["text/html"]


def test_the_kernel_replies_that_a_failed_check_is_an_error_and_a_passed_one_is_none(replies):
    statuses = {name: replies[name]["status"] for name in ("right", "wrong-and-talkative", "raises", "markup")}
    assert statuses == {"right": "ok", "wrong-and-talkative": "error", "raises": "error", "markup": "error"}
    assert replies["raises"]["ename"] == "CheckFailed"


def test_what_a_wrong_answer_prints_is_shown_before_the_reason(outputs):
    printed, shown, error = outputs["wrong-and-talkative"]
    assert printed.text.startswith("axis -1\naxis -1\naxis 0\n")
    assert (shown.output_type, error.output_type) == ("display_data", "error")


@pytest.mark.parametrize("cell", ["raises", "exits", "library", "imported-check", "markup", "diff-check"])
def test_a_wrong_answer_shows_one_bundle_and_raises_with_one_line_of_traceback(outputs, cell):
    shown, error = outputs[cell]
    assert set(shown.data) == {"text/html", "text/plain", VERDICT_MIME}
    assert error.ename == "CheckFailed"
    (line,) = error.traceback
    assert line.startswith("\x1b[4mCheckFailed\x1b[24m: task 2.")  # by the underlined name the style sheet of `lab` knows it
    assert line.endswith("; the reason stands above")
    assert shown.data["text/plain"] == error.evalue
    verdict = shown.data[VERDICT_MIME]
    assert (verdict["passed"], verdict["points"]) == (False, 0)
    assert verdict["message"] in error.evalue


UNREAD = "has a syntax error (expected ':', line 1 of the cell), and the answer before it still stands: mend it and run it"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("raises", " in line 2 of my_softmax: `return scores[axis, axis, axis]` in the case “"),
        ("exits", "my_softmax raised SystemExit: 1 in line 2 of my_softmax"),
        ("library", "my_softmax uses torch.softmax, which would answer"),
        ("imported-check", "my_softmax uses my_softmax (torch.softmax), which would answer"),
        ("diff-check", "my_derivative uses sympy.diff, which would answer"),
        ("forgetful-check", "my_derivative uses sympy.diff, which would answer"),  # though the history was overwritten
        ("unread-check", f"the cell with my_softmax {UNREAD}"),
    ],
)
def test_the_reason_goes_by_the_cell_of_the_answer(outputs, cell, words):
    assert words in outputs[cell][-1].evalue


def test_other_cells_are_no_part_of_an_answer_and_the_kernel_lives_on(outputs):
    assert outputs["magic"][-1].data == passed(get_task("log-softmax-derivative"))
    assert "".join(output.text for output in outputs["alive"]) == "alive\n"  # a busy kernel may send it in two messages


@pytest.mark.parametrize("broken", ["my_softmax = (1,\n", "x = 1\nmy_softmax: int = return\n", "class my_softmax(:\n    pass\n"])
def test_only_the_newest_cell_of_an_answer_can_be_unread(broken):
    task, right = get_task("stable-softmax"), lambda scores, axis: np.exp(scores - scores.max(axis)) / 1
    assert "has a syntax error" in assess(task, right, ["my_softmax = 1", broken, "my_softmax == (1"]).message
    assert "has a syntax error" not in assess(task, right, [broken, "import numpy as my_softmax"]).message


def test_an_unknown_task_is_one_clear_error(outputs):
    (error,) = outputs["unknown"]
    assert error.ename == "UnknownTask"
    assert error.evalue.startswith("there is no task 'stable-sofmax'; is it stable-softmax")


def test_checks_of_a_notebook_in_work_are_recorded_wherever_a_cell_went(course, outputs):
    recorded = progress.load(course)
    assert set(recorded) == {"stable-softmax", "entropy-by-hand", "log-softmax-derivative"}
    assert [recorded["stable-softmax"][key] for key in ("passed", "points", "attempts")] == [True, 3, 11]  # elsewhere and nowhere, too
    assert (recorded["entropy-by-hand"]["passed"], recorded["entropy-by-hand"]["points"]) == (False, 0)
    assert {path.name for path in (course / "work").iterdir()} == {".progress.json", ".progress.lock"}


def test_outside_a_notebook_a_right_answer_prints_the_same_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check("entropy-by-hand", np.log(6.0) - 2 / 3 * np.log(4.0)) is None
    assert capsys.readouterr() == (get_task("entropy-by-hand").ok_line + "\n", "")
    assert list(tmp_path.iterdir()) == []


def test_outside_a_notebook_a_wrong_answer_raises_and_prints_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckFailed) as caught:
        check("entropy-by-hand", 1.25)
    assert capsys.readouterr() == ("", "")
    assert isinstance(caught.value, AssertionError)
    task = get_task("entropy-by-hand")
    wrong = next(wrong for wrong in task.wrong if wrong.name == "measured in bits")
    assert str(caught.value) == (
        f"task {task.number} ({task.title}): this may be the mistake “measured in bits”. You gave 1.25.\n  Hint: {wrong.hint}\n"
        f"  See {numbers.eq('lse-is-best-compromise')}."
    )
    assert caught.value.verdict.mistake == "measured in bits"
    assert caught.value._render_traceback_() == [
        f"\x1b[4mCheckFailed\x1b[24m: task {task.number}, “measured in bits”; the reason stands above"
    ]


def test_an_answer_that_prints_without_end_is_cut(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def noisy(scores, axis):
        for _ in range(3000):
            print("a line of a loop")
        return scores

    with pytest.raises(CheckFailed):
        check("stable-softmax", noisy)
    assert 1000 < len(capsys.readouterr().out) < 5000


def test_right_answers_pass_though_the_learner_turned_every_warning_into_an_error():
    refused = []
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for task in all_tasks():
            answer = task.handed_in(task.answer)
            own = functools.partial(_called, answer) if task.wants_function else answer
            refused += [task.id] * (UNLAUNCHED not in task.rules and not assess(task, own).passed)
        assert np.geterr()["under"] == "raise"
    assert refused == []


def _called(answer, *inputs):
    return answer(*inputs)


def test_a_warning_about_the_learners_text_is_no_error():
    cell = "my_entropy = 0.868  # half of it\nprint('a\\s')"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assess(get_task("entropy-by-hand"), np.log(6.0) - 2 / 3 * np.log(4.0), [cell]).passed


NASTY = Verdict(
    "stable-softmax", "<b>title</b>", False, 0, 3, "<img src=x onerror=alert(1)> & “x”", "m", '<a href="j">hint</a>', "a-label<"
)


def test_every_part_of_the_page_is_escaped():
    page = rich(NASTY)
    for raw in ("<b>title", "<img", "<a href", "a-label<"):
        assert raw not in page
    for escaped in ("&lt;b&gt;title", "&lt;img", "&lt;a href=&quot;j&quot;&gt;hint", "a-label&lt;", "&amp; “x”"):
        assert escaped in page
    assert page.count("<div") == page.count("</div>")


def test_backticks_become_code():
    page = rich(replace(NASTY, message="use `axis` and `a < b`, not ` alone"))
    assert "use <code>axis</code> and <code>a &lt; b</code>, not ` alone" in page


def test_a_failed_card_speaks_in_sentences_and_begins_with_what_was_read():
    page = rich(replace(NASTY, message="this is the mistake “no minus”", hint="the minus is gone", formula="J = 1", equation="softmax"))
    parts = [
        "not right yet.",
        "It was read as $\\displaystyle J = 1$.",
        "This is the mistake “no minus”.",
        "<b>Hint:</b> the minus is gone.",
        "See Eq. (2.",
    ]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert "<div>my_f is not right.</div>" in rich(replace(NASTY, message="my_f is not right"))
    apart = rich(
        replace(NASTY, message="my_f is off. The first wrong number, element [0], is -0.5 and should be 10.25; the largest error is 11.")
    )
    assert ">Got        <b>−0.5</b>\nShould be  <b>10.25</b></pre><div>First at element [0]; the largest error is 11.</div>" in apart


def test_where_to_look_is_a_link_where_the_lesson_lies_beside_the_exercise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = replace(NASTY, equation="softmax")
    assert "<a " not in rich(asked)
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "02_softmax.ipynb").touch()
    assert 'See <a href="lessons/02_softmax.ipynb">Eq. (2.1)</a>.' in rich(asked)


def test_hint_and_equation_are_left_out_where_there_are_none():
    bare = Verdict("stable-softmax", "title", False, 0, 3, "not right")
    assert plain(bare) == f"task {get_task(bare.task).number} (title): not right"
    assert "Hint" not in rich(bare)
    assert "Eq." not in rich(bare)
    assert json.loads(json.dumps(bare.to_dict()))["hint"] is None


def test_what_a_lesson_asks_its_reader_waits_while_it_holds_dots_and_counts_for_no_marks(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turn = get_task("gain-over-mixture")
    assert check(turn.id, ...) is None
    assert capsys.readouterr().out == "your turn: replace the dots\n"
    with pytest.raises(CheckFailed):
        check(turn.id, lambda weights, output, value, d_output: weights)
    check(turn.id, lambda weights, output, value, d_output: weights * (d_output @ value.T - (d_output * output).sum(1, keepdims=True)))
    assert capsys.readouterr().out == turn.ok_line + "\n"
    assert turn.ok_line.endswith(": 4 cases, your turn in the lesson")
    assert "point" not in passed(turn)["text/html"] + turn.card
    assert turn not in all_tasks()
    with pytest.raises(CheckFailed, match="has no answer yet"):
        check("entropy-by-hand", ...)


def test_a_cell_that_its_reader_fills_waits_while_it_holds_dots(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = ["def my_row_sum(x):\n    ...  # your lines"]
    monkeypatch.setattr("attn_course.tasks.notebook._notebook_context", lambda: (cells, {}))
    assert check("row-sum-kernel", np.sum) is None
    assert capsys.readouterr().out == "your turn: replace the dots\n"
    cells.append("def my_row_sum(x):\n    return x[..., 0]")
    with pytest.raises(CheckFailed, match="A row, summed in blocks"):
        check("row-sum-kernel", lambda x: x[..., 0])
