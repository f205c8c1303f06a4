"""LaTeX as MathML: what is typeset is what is printed, and every formula of the course can be."""

from xml.dom import minidom

import pytest

from attn_course.equations.core import REGISTRY
from attn_course.figures.mathml import mathml


def inside(latex: str) -> str:
    return (
        mathml(latex, display=False)
        .removeprefix("<math>")
        .removesuffix("</math>")
        .replace(' stretchy="false"', "")
        .replace(' lspace="0" rspace="0"', " small")
    )


@pytest.mark.parametrize(
    ("latex", "found"),
    [
        (r"\frac{a}{b_i}", "<mfrac><mi>a</mi><msub><mi>b</mi><mi>i</mi></msub></mfrac>"),
        (r"x'_{ij}", "<msubsup><mi>x</mi><mrow><mi>i</mi><mi>j</mi></mrow><mo small>′</mo></msubsup>"),
        (r"\sqrt{d_k} - 0.5", "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt><mo>−</mo><mn>0.5</mn>"),
        (r"\mathrm{softmax}(S)", "<mi>softmax</mi><mo>(</mo><mi>S</mi><mo>)</mo>"),
        (r"\text{if } a < b", "<mi>if </mi><mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (r"\bar{x} \in \mathbb{R}", '<mover accent="true"><mi>x</mi><mo stretchy="false">¯</mo></mover><mo>∈</mo><mi>ℝ</mi>'),
        (r"A^{-\top}", '<msup><mi>A</mi><mrow><mo small>−</mo><mi mathvariant="normal">⊤</mi></mrow></msup>'),
        (r"\bigl( \beta \bigr)_i", "<msub><mrow><mo>(</mo><mi>β</mi><mo>)</mo></mrow><mi>i</mi></msub>"),
        (r"\bigl( \sqrt{2} \bigr)", '<mrow><mo stretchy="true">(</mo><msqrt><mn>2</mn></msqrt><mo stretchy="true">)</mo></mrow>'),
    ],
)
def test_formulas_as_mathml(latex: str, found: str):
    assert inside(latex) == found.replace(' stretchy="false"', "")


def test_limits_stand_beneath_and_above_and_cases_stand_in_lines():
    assert inside(r"\sum_{j}^n z").startswith("<munderover><mo>∑</mo><mi>j</mi><mi>n</mi></munderover>")
    assert inside(r"\begin{cases} 0 & x \\ 1 & y \end{cases}").count("<mtr>") == 2


def test_every_formula_of_the_course_and_every_mistake_can_be_typeset():
    for equation in REGISTRY.all_equations():
        for latex in (equation.latex, *(wrong.latex for wrong in equation.wrongs)):
            minidom.parseString(mathml(latex, display=False))


def test_a_command_that_is_not_known_is_told():
    with pytest.raises(ValueError, match=r"\\oops is not known"):
        mathml(r"a + \oops{b}")
