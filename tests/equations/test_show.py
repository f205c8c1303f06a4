"""`show`: numbers in a formula are right and few, and a wrong form is refuted where it can first be refuted."""

import contextlib
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest

from attn_course import numbers, show
from attn_course.equations.asked import ShowError, asked, words_of
from attn_course.equations.calculation import calculated
from attn_course.equations.core import REGISTRY, Registry, UnknownEquation
from attn_course.equations.show import shown
from attn_course.equations.small import FewDigits, _drawn, counterexample, small_draws
from attn_course.equations.worked import latex, number
from attn_course.formulas import Formula, Malformed, Refuted, judge, names_of, vector, write
from attn_course.formulas.plain import plain
from attn_course.reference import logsumexp, softmax

pytestmark = pytest.mark.usefixtures("no_shape_check")
SCORES = [1.0, 2.0, 0.0]
READABLE = [equation for equation in REGISTRY.all_equations() if equation.kind != "transcribed"]
LABELS = [equation.label for equation in REGISTRY.all_equations("softmax")]


def test_shows_formula_numbers_and_result():
    text = shown("softmax", values={"z": SCORES, "i": 2})._repr_markdown_()
    assert text.startswith(f"{numbers.eq('softmax')}, with $z = (1, 2, 0)$ and $i = 2{{:}}$")
    assert REGISTRY.get_equation("softmax").latex in text
    assert r"\sigma(z)_{2} &= \frac{e^{2}}{e^{1} + e^{2} + e^{0}}" in text
    assert rf"&\approx {softmax(np.array(SCORES))[1]:.3g}" in text


def test_prints_plain_text_in_a_terminal(capsys):
    show("log-softmax", z=SCORES, i=3)
    text = capsys.readouterr().out
    assert re.search(r"ln\(σ\(z\)_3\) = 0 - lse\(1, 2, 0\)", text)
    assert f"≈ {0 - logsumexp(np.array(SCORES)):.3g}" in text
    assert "\\" not in text
    assert "$" not in text


def test_is_typeset_in_a_notebook():
    code = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
with capture_output() as out:
    shell.run_cell("from attn_course import show; show('softmax', z=[1, 2, 0])")
(shown,) = out.outputs
print(sorted(shown.data), "aligned" in shown.data["text/markdown"], "aligned" in shown.data["text/plain"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "['text/markdown', 'text/plain'] True False"


def test_a_symbol_that_is_found_is_used_by_what_follows():
    text = str(shown("online-softmax-update", values={"m": 1, "x": 3, "ell": 1.5}))
    assert "m' = max(1, 3)" in text
    assert "1.5 e^(1 - 3) + e^(3 - 3)" in text
    assert f"≈ {1.5 * np.exp(-2) + 1:.3g}" in text


def test_what_round_off_leaves_of_zero_is_zero():
    text = str(shown("causal-mask-hides-future"))
    assert "10^(-1" not in text
    assert "(j > i)" in text
    assert re.search(r"= \[0( 0)*(; 0( 0)*)*\]", text)


def test_of_gaps_as_large_as_each_other_the_first_is_told():
    text = str(shown("softmax-over-queries-leaks", "no leak: the mask is above the diagonal"))
    assert text.endswith("at i = 1, j = 1, l = 2.")


def test_a_position_that_could_not_be_another_is_not_told():
    assert str(shown("cross-attention", "the source asks")).endswith("left 0.5, right 1.25.")


def test_a_long_sum_is_shortened():
    text = shown("softmax", values={"z": range(9), "i": 1})._repr_markdown_()
    assert r"e^{0} + e^{1} + \cdots + e^{8}" in text


def test_what_is_too_large_is_described():
    text = str(shown("softmax-jacobian", values={"s": np.full(9, 1 / 9)}))
    assert "a 9 x 9 matrix" in text
    assert "s (9 numbers)" in text


def test_sizes_follow_from_shapes():
    assert "/ sqrt(2)" in str(shown("attention", values={"Q": [[1, 0]], "K": [[1, 0], [0, 1]], "V": [[1], [3]]}))


def read_again(before, sign, result):
    if sign == "=":
        judge(Formula.of(f"x = {latex(before)}", ["x"]), {"x": float(latex(result))})
    else:
        judge(Formula.of(rf"x {sign} {latex(result)}, \qquad x = {latex(before)}", []), {})


def test_numbers_put_in_give_the_result_that_is_shown():
    judged = 0
    for equation in (equation for lesson in ("softmax", "attention", "heads") for equation in REGISTRY.all_equations(lesson)):
        small = next(small_draws(equation, least=2))
        rows, _ = calculated(small.formula, small.givens)
        for (_, exact, before), (left, sign, result) in itertools.pairwise(rows):
            if left is None and exact == "=" and result.kind in ("number", "neg"):
                with contextlib.suppress(Malformed):  # a function that only the givens know, softmax of numbers side by side
                    read_again(before, sign, result)
                    judged += 1
    assert judged > 12


def test_a_result_that_is_wrong_would_be_noticed():
    equation = REGISTRY.get_equation("multi-head-parameters")
    rows, _ = calculated(equation.read(), asked(equation, {"H": 3, "d": 6, "d_k": 2, "d_v": 2}))
    (_, _, before), (_, sign, result) = rows[-2:]
    read_again(before, sign, result)
    with pytest.raises(Refuted):
        read_again(before, sign, number(float(latex(result)) + 1))


@pytest.mark.parametrize("label", LABELS)
def test_each_wrong_form_is_refuted_and_the_equation_holds_there(label):
    equation = REGISTRY.get_equation(label)
    for wrong in equation.wrongs:
        small, formula, error = counterexample(equation, wrong.latex)
        judge(small.formula, small.givens)
        if isinstance(error, Refuted):
            with pytest.raises(Refuted):
                judge(formula, small.givens)
        else:
            with pytest.raises(Malformed):
                judge(Formula.of(wrong.latex, names_of(small.givens), small.formula.ranges), small.givens)
        assert f"Not {numbers.eq(label)}" in str(shown(label, wrong.name))


def test_the_counterexample_has_the_smallest_size():
    equation = REGISTRY.get_equation("softmax")
    wrong = equation.wrongs[0]
    small, _, error = counterexample(equation, wrong.latex)
    assert small.sizes == {"n": 2}
    for smaller in small_draws(equation, least=1):
        if smaller.sizes == small.sizes:
            break
        judge(Formula.of(wrong.latex, names_of(smaller.givens), smaller.formula.ranges), smaller.givens)
    z = small.givens["z"].raw
    assert np.array_equal(z, np.round(2 * z) / 2)
    left, right = softmax(z)[0], np.exp(z[0]) / (np.exp(z[0]) + 1)
    assert str(error) == f"left {left:.2g}, right {right:.2g} at i = 1"
    assert f"left {left:.3g}, right {right:.3g} at i = 1." in str(shown("softmax", wrong.name))


def test_the_same_counterexample_every_time():
    once = str(shown("softmax-jacobian", "the sign of the outer product"))
    _drawn.cache_clear()
    assert str(shown("softmax-jacobian", "the sign of the outer product")) == once


def test_shapes_that_do_not_fit_are_told():
    text = str(shown("dot-product-in-columns", "q^T k of two rows: a table of d_k x d_k products"))
    assert text.endswith("This has no meaning for d_k = 2: the two sides do not fit: left is a number, right is a 2 x 2 matrix.")


def test_what_cannot_be_rounded_is_drawn_as_the_registry_does():
    registry = Registry()

    @registry.claim("toy-difference")
    def toy_difference(normal, n):
        """x_2 - x_1 = d
        The function insists on a premise which rounding breaks.
            the sum: x_2 + x_1 = d
        """
        x = normal(n)
        if n < 2 or np.allclose(x, np.round(x, 1)):
            raise ValueError("wanted numbers of many digits, two or more")
        return {"x": vector(x), "d": np.diff(x)[0]}

    small, _, error = counterexample(toy_difference, r"x_2 + x_1 = d")
    assert small.sizes == {"n": 2}
    assert isinstance(error, Refuted)
    assert not np.allclose(small.givens["x"].raw, np.round(small.givens["x"].raw, 1))
    assert "Not Eq. toy-difference: the sum" in str(shown("toy-difference", "the sum", registry=registry))


def test_few_digits_round_and_are_never_zero():
    rng = FewDigits([1], 0.1)
    for drawn in (rng.normal(size=500), rng.uniform(-1, 1, size=500), np.array([rng.random() for _ in range(50)])):
        assert np.allclose(drawn, np.round(drawn, 1), atol=1e-12)
        assert np.abs(drawn).min() > 0.09
    assert all(len({*rng.normal(size=6).tolist()}) == 6 for _ in range(50))
    weights = rng.dirichlet(np.ones(3), size=50)
    assert np.allclose(weights.sum(axis=-1), 1)
    assert isinstance(rng.normal(), float)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"z": SCORES, "y": 3}, r"^y is no symbol of Eq\. \(2\.1\): in it are n, sigma, z$"),
        ({"x": SCORES}, r"^x is no symbol of Eq\. \(2\.1\): in it are n, sigma, z$"),
        ({"z": SCORES, "k": 1}, r"^k is no symbol of Eq\. \(2\.1\): in it are n, sigma, z$"),
        ({"i": 2}, "wants values for z too; got none"),
        ({"z": [[1.0]]}, r"z wants a list of n numbers; got an array of the shape \(1, 1\)"),
        ({"z": "abc"}, "z wants a list of n numbers; got 'abc'"),
        ({"z": []}, r"z wants a list of n numbers; got an array of the shape \(0,\)"),
        ({"z": SCORES, "n": 4}, r"z wants 4 numbers along n, as n has it; got an array of the shape \(3,\)"),
        ({"z": SCORES, "i": 4}, "i wants a position from 1 to 3; got 4"),
        ({"z": SCORES, "i": "a"}, "i wants the position of an index, a number; got 'a'"),
        ({"z": SCORES, "sigma": 1}, "sigma wants a function; got 1"),
    ],
)
def test_what_was_wanted_and_what_came(values, said):
    with pytest.raises(ShowError, match=said):
        shown("softmax", values=values)


@pytest.mark.parametrize("written", ["{}", "({})", "Eq. ({})"])
def test_an_equation_is_shown_by_the_number_that_messages_print(written):
    label = "softmax-jacobian"
    number = numbers.eq(label).removeprefix("Eq. (").removesuffix(")")
    assert str(shown(written.format(number))) == str(shown(label))


def test_other_errors_in_one_line():
    with pytest.raises(UnknownEquation, match="softmaks"):
        show("softmaks")
    with pytest.raises(ShowError, match=r'wrong wants one of "a function .*"; got "the sign"'):
        show("softmax", wrong="the sign")
    with pytest.raises(ShowError, match="wrong draws its own numbers"):
        show("softmax", wrong="the sign", z=SCORES)
    with pytest.raises(ShowError, match="K wants 2 numbers along d_k, as Q has it"):
        show("attention", Q=[[1, 2]], K=[[1, 2, 3]], V=[[1]])
    with pytest.raises(ShowError, match="wants values for s too; got J"):
        show("softmax-jacobian", J=[[1]])
    assert len(ShowError("one line")._render_traceback_()) == 1


def test_relations_of_sizes_are_checked():
    registry = Registry()

    @registry.claim("toy-relation", sizes="m n, m >= n")
    def _(normal, m, n):
        r"""\sum_i x_i = \sum_j y_j"""
        x, y = normal(m), normal(n)
        return {"x": x, "y": np.append(y[:-1], x.sum() - y[:-1].sum())}

    with pytest.raises(ShowError, match="wants m >= n; got m = 1 and n = 2"):
        shown("toy-relation", values={"x": [1], "y": [0, 1]}, registry=registry)


def test_each_symbol_has_a_name_that_python_takes():
    for equation in READABLE:
        words = words_of(equation.draws()[0][0])
        assert len({*words.values()}) == len(words), equation.label
        strange = [name for name, word in words.items() if not word.isidentifier()]
        assert strange in ([], ["W^{Q}"]), equation.label
    assert words_of([r"\lambda", r"\bar{x}", "m'", "S_{t-1}", "W_O", "W_O^{(h)}"]) == {
        r"\lambda": "lambda_",
        r"\bar{x}": "bar_x",
        "m'": "m_prime",
        "S_{t-1}": "S_t_minus_1",
        "W_O": "W_O",
        "W_O^{(h)}": "W_O_h",
    }


def test_every_formula_has_a_plain_text_without_commands():
    for equation in READABLE:
        text = plain(write(equation.read().tree))
        assert not re.search(r"\\[A-Za-z]|\{\{|\}\}", text), text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3.0, "3"),
        (-0.5, "-0.5"),
        (2 / 3, "0.667"),
        (-1e-17, r"-10^{-17}"),
        (1234567.0, "1234567"),
        (1234.5678, "1235"),
        (1234.5, "1234.5"),
        (1.875, "1.875"),
        (1.875 - 1e-12, "1.875"),
        (0.5 + 1e-13, "0.5"),
        (999.9999999999, "1000"),
        (2.5e8, r"2.5 \cdot 10^{8}"),
        (float("inf"), r"\infty"),
        (float("nan"), r"\text{NaN}"),
        (-0.0, "0"),
        (True, "1"),
    ],
)
def test_numbers_have_few_digits(value, written):
    assert latex(number(value)) == written
