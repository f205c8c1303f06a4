"""Answers in LaTeX in a class: taken from the learner's process as text, evaluated in another that knows no answer, judged here."""

import numpy as np
import pytest

from attn_course.classroom.feedback import feedback_page
from attn_course.classroom.grader import FORMULA_LIMITS, Grader
from attn_course.classroom.marks import Marked
from attn_course.classroom.supervisor import Worker, WorkerGone
from attn_course.tasks import assess, get_task
from tests.classroom import notebooks
from tests.tasks.toys import FORMULA

RIGHT = {
    "entropy-as-scores-sharpen": "my_cooling = " + repr(get_task("entropy-as-scores-sharpen").answer),
    "shift-invariance-of-softmax": "my_derivation = [" + ", ".join(map(repr, get_task("shift-invariance-of-softmax").answer)) + "]",
}
LOST = (
    r"my_derivation = [r'\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}', r'\frac{e^{z_i} e^c}{\sum_j e^{z_j}}', r'\frac{e^{z_i}}{\sum_j e^{z_j}}']"
)
BOMBS = (
    "9" + "!" * 1900,
    "p_{ij} \0 \u202e g_{ij}",
    "[i=j]" * 300,
    "p_{ij}" * 330,
    "+".join(["p_{ij}"] * 280),
    r"\prod_{k=1}^{1300} p_{ij}" * 60,
)


@pytest.fixture
def grade(grader, root, tmp_path):
    """Grades the two answers in LaTeX; those not told are right. Nothing is remembered of other tests."""
    grader._right.clear()

    def graded(formula=RIGHT["entropy-as-scores-sharpen"], derivation=RIGHT["shift-invariance-of-softmax"]):
        answers = {"entropy-as-scores-sharpen": formula, "shift-invariance-of-softmax": derivation}
        path = notebooks.save(notebooks.answered(root, "softmax", answers), tmp_path / "02_softmax.ipynb")
        return grader.grade(path, student="ada")

    return graded


def the_two(graded):
    by_task = {verdict.task: verdict for verdict in graded.verdicts}
    return [by_task[task] for task in RIGHT]


def said_of_the_two(graded):
    return [(verdict.points, verdict.message) for verdict in the_two(graded)]


def test_right_answers_get_full_marks_and_wrong_ones_their_name_and_what_is_shown_of_them_is_escaped(grade):
    assert [points for points, _ in said_of_the_two(grade())] == [3, 2]
    (formula, derivation) = the_two(grade("my_cooling = r'\\sum_i s_i z_i'", LOST))
    assert (formula.points, formula.mistake) == (0, "only the slope of the log-sum-exp")
    assert formula.message.startswith("this is the mistake “only the slope of the log-sum-exp”. It is ")
    assert (derivation.points, derivation.mistake) == (0, "the shift lost in the denominator only")
    said = "line 2 does not follow from line 1: this is the mistake “the shift lost in the denominator only”. The line before is "
    assert derivation.message.startswith(said)
    graded = grade("my_cooling = '<script>alert(1)</script>'")
    page = feedback_page(Marked("ada", "", "", graded.lesson, "graded", verdicts=graded.verdicts))
    assert "<script>alert" not in page
    assert "found &lt;" in page


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("my_cooling = ...", "my_cooling has no answer yet"),
        ("pass", "the answer cell does not define my_cooling"),
        ("my_cooling = 1 / 0", "the answer cell does not run: ZeroDivisionError: division by zero"),
        ("my_cooling = 3", 'my_cooling must be LaTeX between quotation marks, r"..."; got int 3'),
        ("class S(str): pass\nmy_cooling = S('s_i')", 'my_cooling must be LaTeX between quotation marks, r"..."; got __main__.S'),
        ("my_cooling = 's_i' * 10**7", "my_cooling must have at most 2,000 characters a line, and 20 lines"),
        ("import numpy as np\nnp.abs = lambda *_: 0.0\nmy_cooling = '0 s_1 z_1'", "my_cooling is not right."),
    ],
)
def test_an_answer_that_is_none_costs_its_own_task_only(grade, answer, message):
    (points, said), neighbour = said_of_the_two(grade(answer))
    assert points == 0
    assert said.startswith(message)
    assert neighbour[0] == 2


@pytest.fixture
def worker(grader):
    started = grader._workers.start(FORMULA_LIMITS, {"setup": [], "given": [], "forbid": []}, formulas=True)
    yield started
    grader._workers.end(started)


def test_bombs_do_not_end_the_process_and_what_is_said_of_them_is_plain(grader, worker):
    for bomb in BOMBS:
        verdict, found = grader._judge_latex(FORMULA, [bomb], worker)
        words = grader._slip(FORMULA, [bomb], found, worker) if found else ""
        assert verdict.points == 0
        assert (verdict.message + words).isprintable()
    assert grader._judge_latex(FORMULA, [FORMULA.answer], worker)[0].points == FORMULA.points


def test_answers_given_before_the_notebook_ends_python_count(grade):
    assert [points for points, _ in said_of_the_two(grade(derivation="import os\nos._exit(0)"))] == [3, 0]


@pytest.fixture
def told(monkeypatch):
    """What workers are told: to which, what to do, and the message."""
    found, tell = [], Worker.tell

    def watched(self, do, within_s, **message):
        found.append((self, do, message))
        tell(self, do, within_s, **message)

    monkeypatch.setattr(Worker, "tell", watched)
    return found


def test_the_process_that_evaluates_holds_no_answer_and_is_fresh_for_each_submission(grade, grader, told):
    grade()
    grader._right.clear()
    grade()
    (first, second, third, fourth), sent = zip(*((worker, message) for worker, do, message in told if do == "formula"), strict=True)
    assert first is second is not third is fourth
    for message in sent:
        assert message["lines"] == [get_task("entropy-as-scores-sharpen").answer] or len(message["lines"]) == 4  # the learner's own
        assert not any(np.any(case["D"]["raw"]) for case in message["cases"] if "D" in case)
    secret = grader.cases(get_task("entropy-as-scores-sharpen"))[0].inputs
    assert np.array_equal(sent[0]["cases"][0]["s"]["raw"], secret["s"].raw)
    assert np.any(secret["D"].raw)


def test_the_search_runs_in_a_process_of_its_own_after_all_answers_are_judged(grade, told):
    grade(f"my_cooling = {WHAT_WOULD_MEND[0][0]!r}")
    assert [do for _, do, _ in told][-3:] == ["formula", "formula", "slip"]
    assert told[-1][0] is not told[-2][0]
    told.clear()
    grade("my_cooling = r'-s_i s_j'", LOST)  # mistakes with a name, and what cannot be read, are searched for nothing
    grade("my_cooling = '('", LOST)
    assert "slip" not in {do for _, do, _ in told}


def test_a_text_that_was_right_is_right_in_the_next_notebook_and_not_evaluated_again(grade, monkeypatch):
    asked, judge = [], Grader._judge_latex

    def watched(self, task, lines, worker):
        asked.append(task.kind)
        return judge(self, task, lines, worker)

    monkeypatch.setattr(Grader, "_judge_latex", watched)
    first = grade("my_cooling = r'-s_i s_j'")
    assert (asked, [points for points, _ in said_of_the_two(first)]) == (["formula", "derivation"], [0, 2])
    assert grade("my_cooling = r'-s_i s_j'").verdicts == first.verdicts
    assert asked == ["formula", "derivation", "formula"]  # a wrong one is


WHAT_WOULD_MEND = [
    (r"-\beta^2 (\sum_i s_i z_i^2 - (\sum_i s_i z_i)^2)", r"It would be right with one part left out in `\beta^{2}`."),
    (r"-\beta (\sum_i s_i z_i^3 - (\sum_i s_i z_i)^2)", "It would be right with another number in place of `3`."),
]


@pytest.mark.parametrize(("formula", "words"), WHAT_WOULD_MEND)
def test_what_would_mend_a_wrong_formula_or_line_is_said_as_in_the_notebook(grade, formula, words):
    start, split, out, goal = get_task("shift-invariance-of-softmax").answer
    lines = [start, split, out, r"\frac{e^{z_i}}{\sum_j e^{2 z_j}}", goal]
    verdict, of_line = the_two(grade(f"my_cooling = {formula!r}", f"my_derivation = {lines!r}"))
    assert verdict.points == 0
    assert verdict.message.endswith(words)
    assert assess(get_task("entropy-as-scores-sharpen"), formula).message.endswith(words)
    assert of_line.message.startswith("line 4 does not follow from line 3. The line before is ")
    assert of_line.message.endswith(r" It would follow with one part left out in `2\, z_{j}`.")


@pytest.mark.parametrize("words", ["x" * 10**5, "<script>\u202e=1\n2\0", 7, None, "lost"])
def test_what_the_search_says_changes_no_points_and_is_short_and_plain(grade, monkeypatch, words):
    hear = Worker.hear

    def forged(self, within_s):
        heard = hear(self, within_s)
        if "words" not in heard:
            return heard
        if words == "lost":
            raise WorkerGone("ended Python")
        return {"words": words}

    monkeypatch.setattr(Worker, "hear", forged)
    graded = grade(f"my_cooling = {WHAT_WOULD_MEND[0][0]!r}")
    formula, derivation = the_two(graded)
    assert (formula.points, derivation.points) == (0, 2)
    assert formula.message.startswith("my_cooling is not right. It is ")
    assert len(formula.message) < 600
    assert formula.message.isprintable()
    assert "<script>" not in feedback_page(Marked("ada", "", "", graded.lesson, "graded", verdicts=graded.verdicts))


def test_a_process_that_is_lost_costs_one_answer_and_a_fresh_one_follows(grade, monkeypatch):
    judge = Grader._judge_latex

    def lost(self, task, lines, worker):
        if task.kind == "formula":
            raise WorkerGone("ended Python")
        return judge(self, task, lines, worker)

    monkeypatch.setattr(Grader, "_judge_latex", lost)
    assert said_of_the_two(grade()) == [
        (0, "my_cooling could not be evaluated: its process ended Python"),
        (2, get_task("shift-invariance-of-softmax").ok_line),
    ]


def test_answers_in_latex_are_not_judged_when_the_time_for_the_notebook_is_over(grade, monkeypatch):
    sit = Grader._sit

    def slow(self, *arguments):
        sitting, ended = sit(self, *arguments)
        sitting.seconds = 1_000.0
        return sitting, ended

    monkeypatch.setattr(Grader, "_sit", slow)
    assert said_of_the_two(grade()) == [(0, "not judged: the time for the notebook was over")] * 2


@pytest.mark.parametrize(
    "reply",
    [
        {"arrays": (np.ones(3),), "facts": {"begins": True, "ends": True, "changed": [True] * 3}},
        {"arrays": (np.ones(3),) * 4, "facts": {"begins": True, "ends": True, "changed": []}},
        {"arrays": (np.ones(3),) * 4, "facts": 7},
        {"arrays": (np.ones(3),) * 4, "facts": {"begins": True, "ends": True, "changed": [{}] * 3}},
        {"arrays": ("x",) * 4, "facts": None},
        {},
    ],
    ids=["too few lines", "too few steps", "no facts", "strange facts", "text", "nothing"],
)
def test_what_comes_back_in_no_form_gets_nothing(grade, monkeypatch, reply):
    hear = Worker.hear

    def forged(self, within_s):
        heard = hear(self, within_s)
        return reply if isinstance(heard.get("facts"), dict) else heard

    monkeypatch.setattr(Worker, "hear", forged)
    points, message = said_of_the_two(grade())[1]
    assert points == 0
    assert message.endswith(" came back in no form that can be judged")
