"""Answers in LaTeX: what is read, what is refused and where, what passes, and what is said of what does not."""

import itertools
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from attn_course.formulas import column, derivative
from attn_course.tasks import Wrong, assess, get_task, latex, mending, progress
from attn_course.tasks.cards import plain, rich
from attn_course.tasks.core import at_sizes
from attn_course.tasks.judge import expected, judge
from attn_course.tasks.latex import Question, answered, evaluate, normal, on_one_line, packed, unpacked
from attn_course.tasks.mending import search
from attn_course.tasks.reading import _read
from attn_course.tasks.slips import slip
from tests.tasks.toys import DERIVATION, FORMULA, changed

START, SPLIT, OUT, GOAL = DERIVATION.answer
MOST_CALLS = 900_000


def said(task, answer):
    verdict = assess(task, answer)
    assert not verdict.passed
    return verdict


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (..., "my_formula has no answer yet"),
        ("  ", "my_formula has no answer yet"),
        (7, 'my_formula must be LaTeX between quotation marks, r"..."; got int 7'),
        (["p_{ij}"], 'my_formula must be LaTeX between quotation marks, r"..."; got list'),
        ("p" * 2001, "my_formula must have at most 2,000 characters a line, and 20 lines"),
        ("p_{ij} (", "my_formula cannot be read: expected a number, a symbol, a function or a parenthesis, the formula ends\n  p_{ij} (\n"),
        ("p_{ij} = 1", "my_formula cannot be read: write only the right side, without =\n  p_{ij} = 1\n         ^"),
        (r"p_{ij} \mathrm{erfi}(g_{ij})", "my_formula cannot be read: erfi is neither given nor known; what may stand here: p, g"),
        (r"p_{ij} \mathrm{softmax}(g)_{ij}", "my_formula cannot be read: softmax may not stand here; what may stand here: p, g"),
        (r"\hat{p}_{ij}", "my_formula cannot be read: \\hat{p} is unknown here: write p\n"),
        (r"\sqrt{= 1}", "my_formula cannot be read: expected a number, a symbol, a function or a parenthesis, found ="),
        (r"\delta_k + \sum_k p_{ik}", "my_formula cannot be read: k is unknown here; what may stand here"),
        (
            r"\sum_k p_{ik} g_{ik} - \delta_k",
            "my_formula cannot be read: k is unknown here: \\sum over k ends before it; put its terms in parentheses\n"
            "  \\sum_k p_{ik} g_{ik} - \\delta_k\n" + " " * 32 + "^",
        ),
        (r"\sum_k p_{ik} l g_{il}", "my_formula cannot be read: l is unknown here; what may stand here"),
        (
            r"p_{ij} \delta(i)",
            "my_formula has no meaning: \\delta is a list, not a function: write \\delta_{i}\n  p_{ij} \\delta(i)\n         ^^^^^^",
        ),
        (
            r"\sum_{k=1}^{1000} \sum_{l=1}^{1000} k l p_{ij}",
            "my_formula has no meaning: l makes 15,000,000 terms; at most 20,000 are computed",
        ),
        (r"p_{ij} g_i", "my_formula has no meaning: the two sides do not fit: left is a number, right is a row (1 x 5): give it indices"),
        ("\frac{1}{2}", "my_formula cannot be read: this is no printable character: is the r in front of the quotation mark missing"),
        (r"D_{ij}", "my_formula cannot be read: D is unknown here; what may stand here: p, g, \\delta, the indices i, j, numbers, sums"),
        (r"p", "my_formula has no meaning: the two sides do not fit: left is a number, right is a 3 x 5 matrix"),
    ],
)
def test_what_cannot_be_read_says_why_and_where_and_is_no_attempt(answer, message):
    verdict = said(FORMULA, answer)
    assert verdict.message.startswith(message)
    assert not verdict.counts


KEY = r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} "


@pytest.mark.parametrize(
    ("task", "answer", "said_of_it"),
    [
        (
            "gradient-of-one-key",
            r"dS^\top Q",
            r"cannot be read: dS is unknown here; what may stand here: P, Q, V, Z, dZ, d_k, T_q, T_k, the index j, the function \sqrt, num",
        ),
        ("gradient-of-one-key", KEY + r"(dZ_i V_j^\top - \delta_i) Q_i", r"cannot be read: \delta_i is not given here; with two indices"),
        ("gradient-through-the-softmax", r"P \odot dP - \delta", r"cannot be read: \delta is not given here; with two indices"),
        ("layer-without-concatenation", r"\sum_h P_h X W_V^h W_O^h", "cannot be read: W_V^h is unknown here: write W_V^{(h)}\n"),
        ("row-of-grouped-head", r"V_{h \pmod g}", r"cannot be read: \pmod is not known: did you mean \prod?"),
        (
            "gradient-of-one-key",
            KEY + r"dZ_i \cdot (V_j - Z_i) Q_i",
            r"has no meaning: a row (1 x 11) times a row (1 x 5): the lengths in the middle differ; a dot product that is one factor",
        ),
    ],
)
def test_a_message_names_what_was_typed_and_marks_all_of_it(task, answer, said_of_it):
    verdict = said(get_task(task), answer)
    assert verdict.message.partition(" ")[2].startswith(said_of_it)
    assert not verdict.counts
    typed = verdict.message.split(": ")[1].split(" is ")[0]
    formula, carets = verdict.message.split("\n")[1:]
    marked = formula[carets.index("^") :][: carets.count("^")]
    assert marked == (typed if "cannot be read" in said_of_it else "(V_j - Z_i) Q_i")


def test_the_place_of_an_index_is_where_it_is_free():
    message = said(FORMULA, r"p_{ij} \sum_k g_{ik} + \sum_k (p_{ik} + g_{ij}) + g_{ik}").message
    formula, carets = message.split("\n")[1:]
    assert formula[: carets.index("^")].endswith("g_{i")
    assert formula[carets.index("^") :] == "k}"


def test_what_cannot_be_read_is_recorded_as_no_attempt(tmp_path):
    (tmp_path / "work").mkdir()
    for answer in ("p_{ij} (", "p_{ij} g_{ij}", "p"):
        progress.record(said(FORMULA, answer), tmp_path)
    assert progress.load(tmp_path)[FORMULA.id]["attempts"] == 1


def test_a_first_line_with_the_factors_in_another_order_is_no_start_where_that_matters():
    def makes(rng, n):
        return {"A": rng.normal(size=(n, n)), "B": rng.normal(size=(n, n))}

    task = changed(DERIVATION, symbols=("A", "B"), functions=(), cases=at_sizes("n", makes), least_steps=1)
    task = changed(task, answer=["(A B)^\\top", "B^\\top A^\\top"])
    assert assess(task, task.answer).passed
    assert said(task, ["(B A)^\\top", "A^\\top B^\\top"]).message.startswith("line 1 of my_derivation must be where")


def test_a_step_to_what_is_no_number_is_explained():
    verdict = said(DERIVATION, [START, r"\frac{e^{z_i} (c - c)}{(c - c) \sum_j e^{z_j}}", GOAL])
    assert "this one nan" in verdict.message
    assert verdict.message.endswith(" That is no number: look for inf - inf, inf / inf, 0 / 0 or 0 * inf.")


def test_the_slope_of_a_known_function_needs_no_long_import():
    code = """
import sys
import numpy as np
from attn_course.tasks.latex import Question, evaluate, packed, unpacked
x = np.array([0.2, 0.5, 1.3])
case = {"x": unpacked(packed("x", x)), "y": unpacked(packed("y", x))}
(result,) = evaluate(Question("a", ("x",), (r"\\tanh",), "y_i", ("y",)), [r"\\tanh''(x_i)"], [case])
assert np.allclose(result.arrays[0], -2 * np.tanh(x) / np.cosh(x) ** 2), result
assert "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_lines_of_a_derivation_are_named():
    assert (
        said(DERIVATION, START).message == 'my_derivation must be a list of lines of LaTeX, [r"...", r"..."]; got str ' + repr(START)[:60]
    )
    assert said(DERIVATION, [START, ..., GOAL]).message == "my_derivation has no answer yet: your lines go in the place of the dots"
    assert said(DERIVATION, [START, " ", GOAL]).message == "my_derivation holds an empty line"
    assert said(DERIVATION, [START, r"e^{z_i + ", GOAL]).message.startswith("line 2 of my_derivation cannot be read: expected")
    without = said(DERIVATION, [START, rf"p_i = {SPLIT}", GOAL]).message
    assert without.startswith("line 2 of my_derivation cannot be read: write one expression a line, without =")
    shape = "line 2 of my_derivation has no meaning: line 1 is a number, this is a vector of 3: give it indices, or sum over them\n  z\n  ^"
    assert said(DERIVATION, [START, "z", GOAL]).message == shape
    assert said(DERIVATION, [START] * 21).message.endswith("20 lines")


def test_a_place_is_quoted_where_there_is_only_one_line_for_it():
    assert on_one_line("expected x\n  a + = b\n      ^") == "expected x, at `=` behind `a +`"
    assert on_one_line("expected x\n  (a\n    ^") == "expected x, behind `(a`"
    assert on_one_line("no place") == "no place"


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        (r"-p_{ij} (g_{ij} - \delta_i)", " Everywhere it is -1 times the right result."),
        (r"3 p_{ij} (g_{ij} - \delta_i)", " Everywhere it is 3 times the right result."),
        (r"g_{ij} (p_{ij} - \delta_i)", " It would be right with g and p exchanged."),
        (r"p_{ij} (p_{ij} - \delta_i)", " It would be right with another symbol in place of `p`."),
        (r"p_{ij} (g_{ij} - 2 \delta_i)", " It would be right with one part left out in `2\\, \\delta_{i}`."),
        (r"g_{ij} - \delta_i", " It would be right with one factor more at `g_{i j} - \\delta_{i}`."),
        (r"p_{ij} (\sum_k g_{ik} - \delta_i)", " Its indices and its shape are right."),
        (r"\frac{p_{ij} - p_{ij}}{p_{ij} - p_{ij}}", " It holds NaN: look for inf - inf, inf / inf, 0 / 0 or 0 * inf."),
    ],
)
def test_what_is_true_of_a_wrong_formula_is_tried_on_its_own_tree(answer, remark):
    verdict = said(FORMULA, answer)
    assert remark in verdict.message
    assert verdict.formula.startswith("D_{ij} = ")


def _states(rng, n, d):
    """One step of the delta rule, by its entries."""
    S, k, v, b = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d), rng.uniform(0.2, 0.8)
    read = [sum(S[i, j] * k[i] for i in range(n)) for j in range(d)]
    after = np.array([[S[i, j] + b * k[i] * (v[j] - read[j]) for j in range(d)] for i in range(n)])
    return {"S": S, "k": column(k), "v": column(v), "b": b, "T": after}


STATES = changed(
    FORMULA,
    symbols=("S", "k", "v", "b"),
    functions=(r"\exp",),
    left="T",
    cases=at_sizes("n d", _states),
    answer=r"S + b k (v^\top - k^\top S)",
    wrong=[Wrong(name, latex, name) for name, latex in (("a", "S"), ("b", "2 S"), ("c", "3 S"))],
)


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        (r"b k (v^\top - k^\top S)", r"one term more at `b\, k\, (v^\top - k^\top\, S)`"),
        (r"S + b k (- k^\top S)", r"one term more at `k^\top\, S`"),
        (r"S + k (v^\top - k^\top S)", r"one factor more at `k\, (v^\top - k^\top\, S)`"),
        (r"S + b (v^\top - k^\top S)", None),
        (r"S + \frac{b^3}{b} k (v^\top - k^\top S)", r"another number in place of `3`"),
        (r"S + b k v^\top - k k^\top S", r"one factor more at `k\, k^\top\, S`"),
    ],
)
def test_what_was_forgotten_in_a_formula_of_matrices_is_told(answer, remark):
    assert assess(STATES, STATES.answer).passed
    verdict = said(STATES, answer)
    if remark is None:
        assert not verdict.counts
    else:
        assert f" It would be right with {remark}" in verdict.message


def test_a_mistake_that_needs_equal_sizes_or_exchanged_indices_is_told():
    mean = changed(
        FORMULA,
        symbols=("X", "n", "d"),
        left="m_j",
        answer=r"\frac{1}{n} \sum_i X_{ij}",
        cases=at_sizes("n d", lambda rng, n, d: {"X": (x := rng.normal(size=(n, d))), "n": n, "d": d, "m": x.mean(axis=0)}),
        wrong=[Wrong(name, latex, name) for name, latex in (("sum", r"\sum_i X_{ij}"), ("one", "1 + 0 m"), ("two", "2"))],
    )
    assert " It is right for sizes that coincide (n = 6, d = 6)." in said(mean, r"\frac{1}{d} \sum_i X_{ij}").message
    verdict = said(mean, r"\frac{1}{n} \sum_{i=1}^{d} X_{ij}")
    first, *place = verdict.message.split("\n")
    assert first.endswith("It is right for sizes that coincide (n = 6, d = 6).")
    assert len(place) == 2
    assert set(place[1]) == {" ", "^"}
    outer = changed(
        FORMULA,
        symbols=("x", "y"),
        left="A_{ij}",
        answer=r"x_i y_j^2",
        cases=at_sizes("n", lambda rng, n: {"x": (x := rng.normal(size=n)), "y": (y := rng.normal(size=n)), "A": np.outer(x, y**2)}),
    )
    assert said(outer, r"x_j y_i^2").message.endswith(" It would be right with the indices i and j exchanged.")


def test_the_counterexample_is_in_the_symbols_of_the_formula():
    message = said(FORMULA, r"p_{ij} g_{ij}").message
    got, wanted = (float(message.split(side)[1].split()[0].rstrip(",")) for side in ("It is ", "should be "))
    case = FORMULA.cases(np.random.default_rng(20_170_612))[0]
    p, g, delta = (case.inputs[name] for name in ("p", "g", r"\delta"))
    assert " at i = 1, j = 1, for n = 3, m = 5." in message
    np.testing.assert_allclose((wanted, got), (p[0, 0] * (g[0, 0] - delta[0]), p[0, 0] * g[0, 0]), rtol=1e-5)


BROKEN = [  # the lines, which of them does not follow, and what else is said
    ([START, r"\frac{e^{z_i} e^c}{\sum_j e^{z_j}}", GOAL], 2, "this is the mistake “lost beneath”"),
    ([START, SPLIT, r"\frac{e^{z_i}}{e^c \sum_j e^{z_j}}", GOAL], 3, "this is the mistake “lost above”"),
    ([START, r"\frac{e^{z_i} + e^c}{\sum_j (e^{z_j} + e^c)}", GOAL], 2, "this is the mistake “a sum of powers”"),
    ([START, SPLIT, OUT, r"\frac{e^{z_i}}{\sum_j e^{2 z_j}}"], 4, "It would follow with one part left out in `2\\, z_{j}`"),
    ([START, r"\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^{-c}}", GOAL], 2, "It would follow with another sign in `-c`"),
    ([START, SPLIT, r"\frac{e^{z_i} e^c}{e^c + \sum_j e^{z_j}}", GOAL], 3, ""),
    ([START, r"\frac{e^{z_i} e^c}{\max_j e^{z_j} e^c}", GOAL], 2, "It would follow with one change in"),
    ([START, r"\frac{e^{z_i - c}}{\sum_j e^{z_j + c}}", GOAL], 2, "It would follow with another sign in `z_{i} - c`"),
]


@pytest.mark.parametrize(("lines", "number", "words"), BROKEN, ids=range(1, 9))
def test_the_first_line_that_does_not_follow_is_named_with_what_would_mend_it(lines, number, words):
    verdict = said(DERIVATION, lines)
    assert verdict.message.startswith(f"line {number} does not follow from line {number - 1}")
    assert words in verdict.message
    assert " at i = " in verdict.message
    assert verdict.counts


def test_a_derivation_begins_ends_and_takes_steps_as_it_is_asked_to():
    assert said(DERIVATION, [SPLIT, GOAL]).message == f"line 1 of my_derivation must be where the derivation begins: `{START}`"
    assert said(DERIVATION, [START, SPLIT, OUT]).message.endswith(f"but the last is not yet `{GOAL}`")
    assert assess(DERIVATION, [START, SPLIT, r"\frac{1}{\sum_j e^{z_j - z_i}}"]).passed, "the goal in other words"
    turned = START.replace("e^{z_i + c}", "e^{z_i + c} / 1")
    assert said(DERIVATION, [turned, SPLIT, GOAL]).message.startswith("line 1 of my_derivation must be where the derivation begins")
    few = "my_derivation gets there, but show 2 steps or more that lead to something new; it has 1"
    assert said(DERIVATION, [START, GOAL]).message == few
    assert said(DERIVATION, [START, START.replace("j", "k"), r"e^{z_i} / \sum_l e^{z_l}"]).message == few
    assert said(DERIVATION, [START, GOAL, START, GOAL]).message == few  # there and back is no derivation
    for idle in ("{} + 1 - 1", "{} + c - 2 - c + 2", r"{} \cdot 1", r"{} \frac{{c}}{{c}}"):
        assert said(DERIVATION, [START, idle.format(f"({START})"), GOAL]).message == few


@pytest.mark.parametrize(
    ("task", "form", "said"),
    [
        ("delta-without-weights", r"\mathrm{tr}(V^\top dV)", "ok: task {number}, "),
        ("delta-without-weights", r"\langle V, dV \rangle_F", "ok: task {number}, "),
        ("gradient-of-one-key", KEY + r"(dZ_i \cdot (V_j - Z_i)) Q_i", "ok: task {number}, "),
        ("gradient-through-the-softmax", r"P \odot (dP - \mathrm{diag}(P dP^\top) \mathbf{1}^\top)", "ok: task {number}, "),
        ("gauge-of-the-values", "G^{-1} W_o", "my_factor cannot be read: W_o is unknown here: given are W_V, W_O\n"),
        (
            "gradient-through-the-softmax",
            "P_{ij} dP_{ij}",
            "my_formula cannot be read: i is unknown here: the left side has no index; what",
        ),
        ("gradient-through-the-softmax", r"P \circ dP", "this is the mistake “nothing subtracted”"),
        ("leave-one-out-error", r"\frac{z_i - y^{(i)}}{1 - p_{ii}}", "ok: task {number}, "),
        ("query-that-asks-latents", r"[q_h^C (W^{(h)}_{UK})^\top, q_h^R] / \sqrt{d_k + d_R}", "ok: task {number}, "),
        ("shift-invariance-of-softmax", r"\frac{e^{z_i + c}}{\sum_{k=1}^n e^{z_k + c}}", "but the last is not yet"),
    ],
)
def test_what_a_learner_writes_in_the_course_is_understood_or_told_how_it_is_written(task, form, said):
    task = get_task(task)
    assert said.replace("{number}", task.number) in assess(task, [form] if task.kind == "derivation" else form).message


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"x_i + y_i", r"y_i + x_i", True),
        (r"\sum_j x_j y_i", r"\sum_k y_i x_k", True),
        (r"\frac{x_i}{y_i}", r"x_i / y_i", True),
        (r"e^{x_i}", r"\exp(x_i)", True),
        (r"(x_i + y_i) + 1", r"1 + y_i + x_i", True),
        (r"\sum_{j=1}^{n} x_j y_i", r"\sum_j x_j y_i", True),
        (r"\sum_{a,b} x_a y_b y_i", r"\sum_a \sum_b x_a y_b y_i", True),
        (r"\sum_j \delta_{ij} x_j", r"\sum_j \delta_{ji} x_j", True),
        (r"\sum_j [j = i] x_j", r"\sum_j \delta_{ij} x_j", True),
        (r"\sum_j [j \ne i] x_j", r"\sum_j \delta_{ij} x_j", False),
        (r"\sum_{j=2}^{n} x_j y_i", r"\sum_j x_j y_i", False),
        (r"\prod_{j=1}^{n} x_1 y_i", r"\prod_{j=1}^{m} x_1 y_i", False),
        (r"\sum_j x_j y_i", r"\sum_j x_i y_j", False),
        (r"x_i (y_i + 1)", r"x_i y_i + x_i", False),
    ],
)
def test_a_step_that_changes_only_the_spelling_changes_nothing(one, other, same):
    question = Question("my_lines", ("x", "y", "n", "m"), (r"\exp",), "x_i")
    assert (normal(question.read(one)) == normal(question.read(other))) is same


@pytest.mark.parametrize(
    "bomb",
    [
        r"\sum_{k=1}^{1000000000} p_{ij}^k",
        r"\sum_{k=1}^{1000} \sum_{l=1}^{1000} \sum_{m=1}^{1000} p_{ij} k l m",
        "(" * 900 + "1" + ")" * 900,
        "p_{ij}" + r"^{p_{ij}" * 150 + "}" * 150,
        "9" * 2000,
        "-" * 1999 + "1",
        r"p_{ij}" + r"^\top" * 300,
        "\u202e\U0001f4a3\ud800",
        r"\input{/etc/passwd}",
        "".join(rf"\sum_{{{letter}=1}}^{{2}} " for letter in "abcfhklmnoqrstuvwxyz") + "p_{ij}",
        r"\sum_{k=1}^{3} " * 50 + "p_{ij}",
        "p" + "'" * 1990,
        r"(g_{ij})^{10^{10^{10}}}",
        "p_{" + "i+" * 900 + "j}",
        "p" + "\u0301" * 1500,
        r"|\{k : p_{ik} > 0\}|" * 30,
        r"\begin{cases} " + r"1 & i = j \\ " * 100 + r"0 & i \ne j \end{cases}",
        r"(p^\top g)^{1000000000}_{ij}",
    ],
    ids=range(18),
)
def test_a_bomb_is_refused_soon(bomb, monkeypatch):
    monkeypatch.setattr(latex, "time_limit", partial(_patient, latex.time_limit))  # refused for its size, not by the clock
    monkeypatch.setattr(mending, "slip", lambda *_, **__: "")  # the search has its own test below
    with at_most_calls(MOST_CALLS):
        verdict = said(FORMULA, bomb)
    assert verdict.message.startswith("my_formula ")
    assert " takes too long " not in verdict.message
    assert verdict.message.replace("\n", "").isprintable()


def _patient(time_limit, seconds, **options):
    return time_limit(20 * seconds, **options)


@contextmanager
def at_most_calls(most):
    """Fail once so many functions were called, of Python or of C: work that takes as much on a busy machine as on an idle one."""
    before, count = sys.getprofile(), itertools.count(1)

    def called(_frame, event, _argument):
        if event in ("call", "c_call") and next(count) > most:
            sys.setprofile(before)
            pytest.fail(f"more than {most:,} calls")

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(before)


def test_a_search_ends_in_time_whatever_it_found():
    cases = FORMULA.cases(np.random.default_rng(1))
    answer = r"p_{ij} (g_{ij} - 2 \delta_i)"
    results = answered(FORMULA.question, answer, FORMULA.blank(cases))
    verdict, rights = judge(FORMULA, cases, results), expected(FORMULA, FORMULA.answer, cases)
    found = search(FORMULA, verdict, results, rights)
    words = slip(FORMULA.question, answer, FORMULA.blank(cases), found.wanted, limit_s=20.0)
    assert found.told(verdict, words).message.endswith(" It would be right with one part left out in `2\\, \\delta_{i}`.")
    many = FORMULA.blank(cases) * 500, [*found.wanted] * 500  # the clock of work ticks every few milliseconds
    assert slip(FORMULA.question, answer, *many, limit_s=1e-5) == ""


def test_what_takes_too_long_is_stopped():
    case = {"x": unpacked(packed("x", np.ones((7, 11))))}
    slow = " + ".join([r"\sum_{a=1}^{90} \sum_{b=1}^{90} e^{a b x_{ij}}"] * 40)
    (result,) = evaluate(Question("my_formula", ("x",), (), "x_{ij}"), [slow], [case], limit_s=0.05)
    assert result.problem == "my_formula takes too long to evaluate" or "terms; at most 20,000 are computed" in result.problem


def test_markup_in_an_answer_is_escaped():
    page = rich(said(FORMULA, "<script>alert(1)</script>"))
    assert "<script" not in page
    assert "<pre" in page
    assert "It was read as $\\displaystyle D_{ij} = p_{i j}\\, g_{i j}$" in rich(said(FORMULA, "p_{ij} g_{ij}"))
    assert "one part left out in $2\\, \\delta_{i}$." in rich(said(FORMULA, r"p_{ij} (g_{ij} - 2 \delta_i)"))
    assert "one part left out in `2\\, \\delta_{i}`." in plain(said(FORMULA, r"p_{ij} (g_{ij} - 2 \delta_i)"))


def test_a_step_that_does_not_hold_is_shown_as_what_it_claims():
    verdict = said(DERIVATION, [START, SPLIT, r"\frac{e^{z_i}}{e^c \sum_j e^{z_j}}", GOAL])
    claimed = r"\frac{e^{z_{i}}\, e^{c}}{\sum_{j} e^{z_{j}}\, e^{c}} = \frac{e^{z_{i}}}{e^{c}\, \sum_{j} e^{z_{j}}}"
    assert f"Line 3 claims $\\displaystyle {claimed}$" in rich(verdict)
    assert f"\n  Line 3 claims {claimed}\n" in plain(verdict)
    assert "claims" not in plain(said(DERIVATION, [START, SPLIT]))


def test_a_long_part_is_quoted_without_its_middle_and_is_no_formula():
    zero = " + ".join(f"{n} (p_{{ij}} - p_{{ij}})" for n in range(2, 9))
    verdict = said(FORMULA, rf"p_{{ij}} (g_{{ij}} - \delta_i) (1 + p_{{ij}} + {zero})")
    (quoted,) = re.findall("`(.+)`", verdict.message)
    assert " ... " in quoted
    assert len(quoted) < 90
    assert f"<code>{quoted}</code>" in rich(verdict)


def test_reading_shows_the_parts_with_their_shapes():
    found = _read(FORMULA, FORMULA.question, [r"p_{ij} (g_{ij} - \sum_k p_{ik} g_{ik})"])
    assert found.problem == ""
    assert found.lines == (r"D_{ij} = p_{i j}\, \left( g_{i j} - \sum_{k} p_{i k}\, g_{i k} \right)",)
    assert dict(found.parts)["p"] == "a 3 x 5 matrix"
    assert dict(found.parts)[r"\sum_{k} p_{i k}\, g_{i k}"] == "a number for each i"
    assert str(found) == "D_ij = p_ij (g_ij - sum_k p_ik g_ik)\na number for each i, j, for n = 3, m = 5"
    assert "<table>" not in found._repr_html_()
    page = replace(found, in_parts=True)._repr_html_()
    assert page.index("for n = 3, m = 5") < page.index(">part<")
    assert page.count("<tr>") == 1 + len(found.parts)
    assert "a 3 x 5 matrix</td>" in page
    broken = _read(DERIVATION, DERIVATION.question, [START, "z_i +"])
    assert len(broken.lines) == 1
    assert broken.problem.startswith("line 2 of my_derivation: expected")
    assert "white-space:pre" in broken._repr_html_()  # else the carets point elsewhere on a narrow page
    assert "line 1 is a number, this is a vector of 3" in _read(DERIVATION, DERIVATION.question, [START, "z"]).problem
    several = replace(_read(DERIVATION, DERIVATION.question, [START, GOAL]), in_parts=True)._repr_html_()
    assert several.count("$\\displaystyle {} = ") == 1
    assert "part of the last line" in several


def test_a_learner_reads_an_answer_by_the_id_of_its_task():
    from attn_course import read

    assert str(read("softmax-derivative", "s_i s_j")) == "J_ij = s_i s_j\na number for each i, j, for n = 3"
    assert "\n  s_i: a number for each i\n" in str(read("softmax-derivative", "s_i s_j", parts=True))
    assert read("softmax-derivative", 3).problem.startswith("my_formula must be LaTeX")
    with pytest.raises(ValueError, match="task stable-softmax is of the kind 'write'"):
        read("stable-softmax", "s_i")


def test_an_answer_never_sees_what_it_is_to_equal():
    case = FORMULA.cases(np.random.default_rng(3))[0]
    (blank,) = FORMULA.blank([case])
    assert not blank["D"].raw.any()
    assert blank["p"].raw is case.inputs["p"]


def test_a_derivative_of_another_kind_of_given_is_sent_whole():
    given = derivative(np.exp, np.arange(3.0))
    again = unpacked(packed("J", given))
    assert (again.form, again.noise, again.start) == (given.form, given.noise, 1)
