"""What the grader makes of honest notebooks: whatever is right gets full marks, whatever is not says why."""

import json

import pytest

from attn_course.classroom.marks import Marked, status_of
from attn_course.tasks import all_tasks, get_task, lessons
from attn_course.tasks.registry import declared_tasks
from tests.classroom import notebooks, toy
from tests.classroom.conftest import beside
from tests.classroom.toy import cell


@pytest.fixture
def grade(grader, tmp_path):
    """Grades a notebook given as a dict or as bytes; None is a link to one."""

    def graded(book, name="ex_97_toy.ipynb", **keywords):
        path = tmp_path / name
        if book is None:
            path.symlink_to(toy.write(tmp_path / "elsewhere.ipynb", toy.cells(toy.RIGHT)))
        else:
            path.write_bytes(book if isinstance(book, bytes) else json.dumps(book).encode())
        return grader.grade(path, student="ada", **keywords)

    return graded


def points(graded):
    return {verdict.task: verdict.points for verdict in graded.verdicts}


def full(chapter):
    return {task.id: task.points for task in all_tasks(chapter)}


def book(*cells):
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


@pytest.mark.parametrize("chapter", lessons())
def test_every_solution_gets_full_marks_and_no_note_also_without_the_cells_that_the_exercise_gives(grade, root, chapter):
    solved = notebooks.load(root, "solutions", chapter)
    graded = grade(solved, f"{chapter}_solved.ipynb")
    assert points(graded) == full(chapter), [verdict.message for verdict in graded.verdicts if not verdict.passed]
    assert (graded.lesson, graded.notes) == (chapter, ())
    solved["cells"] = [old for old in solved["cells"] if not {"setup", "given"}.intersection(old["metadata"].get("tags", ()))]
    assert points(grade(solved, f"{chapter}_cut.ipynb")) == full(chapter)


def test_what_earlier_exercises_asked_is_graded_if_it_is_named(grade, root):
    solved = notebooks.load(root, "solutions", "attention")
    retired = {task.id: task.points for task in declared_tasks("attention") if task.retired}
    assert points(grade(solved, "attention.ipynb", tasks=retired)) == retired
    (repair,) = (cell for cell in solved["cells"] if cell["id"] == "repair-mixed-batch")
    repair["source"] = get_task("repair-mixed-batch").handed_out
    (verdict,) = grade(solved, "attention.ipynb", tasks=["repair-mixed-batch"]).verdicts
    assert verdict.message.startswith("batched_attention has no answer yet")


@pytest.mark.parametrize("chapter", lessons())
def test_every_pristine_exercise_gets_nothing_and_is_unanswered(grade, root, chapter):
    graded = grade(notebooks.load(root, "exercises", chapter), f"{chapter}_untouched.ipynb")
    marked = Marked("ada", "", "", chapter, "graded")
    for task, verdict in zip(all_tasks(chapter), graded.verdicts, strict=True):
        assert (verdict.task, verdict.points, verdict.mistake, verdict.hint) == (task.id, 0, None, None)
        assert verdict.message.startswith(f"{task.entry} has no answer yet")
        assert status_of(verdict, marked) == "unanswered"


def test_a_repair_is_looked_for_in_every_cell_that_defines_its_name(grade, root):
    right = notebooks.text_of(notebooks.load(root, "solutions", "softmax"), "repair-softmax-temperature")
    exercise = notebooks.load(root, "exercises", "softmax")

    def judged(book):
        return grade(book, "02_softmax.ipynb").verdicts[4]

    assert judged(notebooks.with_cells(exercise, after={"repair-softmax-temperature": right})).passed
    wrong = judged(notebooks.with_cells(exercise, after={"repair-softmax-temperature": "tempered_weights = 3"}))
    assert wrong.message.startswith("tempered_weights must be a function")
    assert judged(notebooks.unmarked(exercise)).message.startswith("tempered_weights has no answer yet")


def test_a_solution_gets_full_marks_on_other_cases_too(root, tmp_path, grader):
    path = notebooks.save(notebooks.load(root, "solutions", "softmax"), tmp_path / "02.ipynb")
    other = beside(grader, seed=12)
    assert points(other.grade(path, student="ada")) == full("softmax")
    first, second = (who.cases(all_tasks("softmax")[0])[0].inputs["scores"] for who in (grader, other))
    assert (first != second).all()


def test_what_one_chapter_forbids_is_untouched_in_the_next(grade, root):
    rules = {
        chapter: {rule for task in all_tasks(chapter) for rule in task.rules if rule[0] != "." and "." in rule} for chapter in lessons()
    }
    few, many = (choose(rules, key=lambda chapter: len(rules[chapter])) for choose in (min, max))
    only_there = sorted(rule for rule in rules[many] - rules[few] if not rule.endswith(".*"))
    assert only_there
    own = f"""
import importlib, sys
import numpy, torch
for rule in {only_there}:
    place, _, name = rule.rpartition(".")
    stub = getattr(getattr(sys.modules.get(place), name, None), "__code__", None)
    assert getattr(stub, "co_name", "") != "stub", rule
"""
    assert points(grade(notebooks.load(root, "solutions", many), f"{many}_solved.ipynb")) == full(many)
    graded = grade(notebooks.with_cells(notebooks.load(root, "solutions", few), first=own), f"{few}_solved.ipynb")
    assert (points(graded), graded.notes) == (full(few), ())


def test_a_result_of_no_form_costs_its_task_and_no_later_one(grade, root):
    tampering = """
import sys
frame = sys._getframe()
while "_WithoutCourse" not in frame.f_globals:
    frame = frame.f_back
frame.f_globals["run"].__globals__["as_arrays"] = lambda returned, name: (np.arange(3),)
"""
    graded = grade(notebooks.with_cells(notebooks.load(root, "solutions", "softmax"), first=tampering), "02_softmax.ipynb")
    functions = {task.id for task in all_tasks("softmax") if task.kind in ("write", "repair")}
    assert points(graded) == {task: 0 if task in functions else most for task, most in full("softmax").items()}
    assert {verdict.message.partition(" in the case")[0] for verdict in graded.verdicts if verdict.task in functions} == {
        "the answer came back in no form that can be judged"
    }


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("return np.zeros((10_000, 1_000))", "its result cannot be sent: a frame may hold"),
        ("raise type('A' * 400_000, (Exception,), {})", "its result cannot be sent: a frame may hold"),
        ("raise KeyboardInterrupt", "my_softmax raised KeyboardInterrupt"),
        ('weights = right(scores, axis)\n    scores.dtype = "V8"\n    return weights', "its result cannot be sent"),
        (f"return torch.tensor([{'0, ' * 100_000}]).softmax(axis)", "my_softmax uses torch.tensor([0, 0"),
    ],
    ids=["a large array", "a long name", "an interrupt", "an input made into what no frame holds", "a long text that is forbidden"],
)
def test_a_result_that_cannot_be_taken_costs_its_task_and_no_later_one(grade, root, source, reason):
    own = f"import torch\nright = my_softmax\ndef my_softmax(scores, axis):\n    {source}"
    graded = grade(notebooks.with_cells(notebooks.load(root, "solutions", "softmax"), after={"stable-softmax": own}), "02_softmax.ipynb")
    assert points(graded) == {**full("softmax"), "stable-softmax": 0}
    assert graded.verdicts[0].message.startswith(reason)


@pytest.mark.usefixtures("toy_chapter")
def test_of_tasks_that_are_not_asked_for_nothing_is_called_or_said(grade):
    answers = {
        "twice": "def twice(x):\n    global called\n    called = True",
        "thrice": "def thrice(x):\n    return x if 'called' in globals() else 3 * x",
    }
    cells = [each for each in toy.cells(answers) if not each["id"].startswith(("setup", "four-times"))]
    graded = grade(book(*cells), tasks=("thrice",))
    assert (points(graded), graded.notes) == ({"thrice": 3}, ())
    assert points(grade(b"no notebook", tasks=("thrice",), lesson="toy")) == {"thrice": 0}


def test_deleted_check_cells_cost_nothing_but_a_note(grade, root):
    graded = grade(notebooks.without(notebooks.load(root, "solutions", "softmax"), "-check"), "02_softmax.ipynb")
    assert points(graded) == full("softmax")
    assert graded.notes == ("no check cell is left; each task is judged after the last cell that defines its answer",)
    graded = grade(notebooks.without(notebooks.load(root, "exercises", "softmax"), "stable-softmax-check"), "02_softmax.ipynb")
    assert graded.notes[0] == "the check cell of task 2.1 is gone; it is judged after the last cell that defines the answer"


def test_a_notebook_that_lost_every_mark_is_judged_by_its_names(grade, root):
    solved = notebooks.without(notebooks.load(root, "solutions", "softmax"), "-check")
    stripped = notebooks.unmarked(solved | {"cells": [old for old in solved["cells"] if "given" not in old["metadata"].get("tags", ())]})
    graded = grade(stripped, "02_softmax.ipynb")
    assert points(graded) == full("softmax")
    assert graded.notes[0] == "no cell is marked as an answer; what is defined at each check counts"
    assert sum("marked" in note for note in graded.notes) == 1


def test_the_answer_is_what_its_name_stands_for_where_its_last_check_stands(grade, toy_chapter):
    cells = toy.cells(toy.RIGHT)
    later = [*cells, cell("def twice(x):\n    return x", "own")]
    sooner = [*cells[:2], cell("def twice(x):\n    return x", "own"), *cells[2:]]
    assert points(grade(book(*later)))["twice"] == 2
    assert points(grade(book(*sooner)))["twice"] == 0
    assert points(grade(book(*later, dict(cells[2]))))["twice"] == 0


def test_edited_checks_duplicated_cells_and_changed_points_do_not_matter(grade, toy_chapter):
    cells = toy.cells({**toy.RIGHT, "thrice": "def thrice(x):\n    return x"})
    cells.insert(2, dict(cells[1]))
    for old in cells:
        if old["id"] == "thrice-check":
            old["source"], old["metadata"]["nbgrader"]["points"] = "thrice = lambda x: 3 * x\nprint('ok: task 97.2')", 1000
    graded = grade(book(*cells, cell("1 / 0", "scratch")))
    assert points(graded) == {"twice": 2, "thrice": 0, "four-times": 4}
    assert "code cell 9: ZeroDivisionError: division by zero" in graded.notes
    assert graded.notes[:2] == (
        "code cell 6, the check of task 97.2, was edited; it does not run here",
        "task 97.1 has 2 answer cells (code cells 2 and 3); what stands at its check counts",
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def twice(x)\n    return x", "the answer cell does not run: SyntaxError: expected ':' (<code cell 2>, line 1)"),
        ("1 / 0", "the answer cell does not run: ZeroDivisionError: division by zero"),
        ("doubled = 3", "the answer cell does not define twice"),
        ("%%bash\necho", "the answer cell does not run: UnknownMagic: a %%bash cell is no Python"),
        ("def twice(x):\n    return 2 * y", "twice raised NameError: name 'y' is not defined in line 2 of twice: `return 2 * y`"),
    ],
)
def test_a_wrong_answer_says_why(grade, toy_chapter, source, message):
    verdict = grade(book(*toy.cells({**toy.RIGHT, "twice": source}))).verdicts[0]
    assert verdict.points == 0
    assert message in verdict.message


def test_known_mistakes_are_named_and_a_byte_order_mark_is_no_obstacle(grade, toy_chapter):
    wrong = {"twice": "twice = lambda x: -2 * x", "thrice": "thrice = lambda x: 3 * x + 1", "four-times": "four_times = lambda x: x"}
    verdicts = grade(b"\xef\xbb\xbf" + json.dumps(book(*toy.cells(wrong))).encode()).verdicts
    assert [verdict.mistake for verdict in verdicts] == ["lost the sign", "added one", "forgot the factor"]
    assert verdicts[0].hint == "hint: you lost the sign"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not judged: the file is empty"),
        (None, "the file is a symbolic link, which is not followed"),
        (b"{", "the file is cut short or damaged"),
        (b"[" * 100_000, "the file is not a notebook: its JSON is nested too deep"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b" " * (16 * 2**20 + 1), "the file is too large (16 MiB; at most 16)"),
        (json.dumps(book(*[cell("1", f"c{n}") for n in range(2001)])).encode(), "the notebook holds more than 2000 code cells"),
        (json.dumps(book(cell("", "of-another"))).encode(), "not of chapter 97"),
    ],
    ids=["empty", "link", "cut", "deep", "encoding", "large", "cells", "chapter"],
)
def test_a_file_that_is_no_notebook_gets_nothing_with_a_reason_for_every_task(grade, toy_chapter, content, reason):
    graded = grade(content, lesson="toy")
    assert points(graded) == {"twice": 0, "thrice": 0, "four-times": 0}
    assert all(reason in verdict.message for verdict in graded.verdicts)
    assert all(verdict.message == f"not judged: {graded.problem}" for verdict in graded.verdicts)
    assert graded.notes == (graded.problem,)


def test_grading_twice_gives_the_same(grade, root):
    scratch = "import random\nmy_entropy = np.log(2) * random.choice([1.5, 1.0, 2.0]) + np.random.normal()"
    noisy = notebooks.answered(root, "softmax", {"entropy-by-hand": scratch})
    assert grade(noisy, "02.ipynb").verdicts == grade(noisy, "02.ipynb").verdicts


ADAS = {"n": 3, "r": 4}
OWN = "from attn_course import question\nn, r = question('entropy-by-hand')\nmy_entropy = np.log(n + r) - r / (n + r) * np.log(r)"


@pytest.fixture
def entropy(grade, grader, root, monkeypatch):
    """The verdict on an answer to a task with variants, and the notes; each student has numbers of their own."""
    monkeypatch.setattr(grader, "_variants", True)

    def judged(text, **keywords):
        graded = grade(notebooks.answered(root, "softmax", {"entropy-by-hand": text}), "softmax.ipynb", **keywords)
        return next(verdict for verdict in graded.verdicts if verdict.task == "entropy-by-hand"), graded.notes

    return judged


def test_each_student_is_judged_by_numbers_of_their_own(entropy, grader, monkeypatch):
    assert get_task("entropy-by-hand").variant("ada").numbers == ADAS
    for place in ("attn_course import question", "attn_course.tasks import question"):
        assert entropy(OWN.replace("attn_course import question", place))[0].passed  # what it asks for is what the grader sends
    assert entropy(OWN.replace("from attn_course import question", "import attn_course").replace("= q", "= attn_course.q"))[0].passed
    right = f"my_entropy = np.log({ADAS['n'] + ADAS['r']}) - {ADAS['r'] / (ADAS['n'] + ADAS['r'])} * np.log({ADAS['r']})"
    assert entropy(right)[0].passed
    copied, _ = entropy("my_entropy = np.log(6) - 2 / 3 * np.log(4)")  # the solution's
    assert (copied.passed, copied.mistake) == (False, None)
    bits, _ = entropy(f"{right}\nmy_entropy /= np.log(2)")
    assert bits.mistake == "measured in bits"
    monkeypatch.setattr(grader, "_variants", False)
    assert entropy("my_entropy = np.log(6) - 2 / 3 * np.log(4)")[0].passed
    assert not entropy(right)[0].passed


def test_the_notebook_does_not_say_by_whose_numbers_it_is_judged_and_where_it_tries_that_is_said(entropy, grader, monkeypatch):
    other = "it is judged by those of 'ada'"
    assert entropy(f'STUDENT = "ada"\n{OWN}')[1] == ()
    for name, said in (("bob", "'bob'"), ("", "''")):
        verdict, notes = entropy(f'STUDENT = "{name}"\n{OWN}')
        assert verdict.passed
        assert notes == (f"the notebook asks for the numbers of {said} (STUDENT); {other}",)
    monkeypatch.setattr(grader, "_variants", False)
    verdict, (said,) = entropy(f'STUDENT = "ada"\n{OWN}')
    assert verdict.passed
    assert said.endswith("it is judged by those that all have (attn-course grade --variants judges each student by their own)")


def test_the_numbers_are_there_where_their_task_is_not_asked_for(grade, root):
    book = notebooks.answered(root, "softmax", {"entropy-by-hand": OWN})
    assert grade(book, "softmax.ipynb", tasks=["stable-softmax"]).notes == ()
