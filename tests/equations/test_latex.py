"""Two spellings of one formula have one normal form; two formulas have two."""

import re

import pytest

from attn_course.equations import all_equations, normalise_latex


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"$$J\,\mathbf{1} = 0 \label{softmax-jacobian-rows}$$", r"J \mathbf{1}=0"),
        (r"a = b, \qquad c = d", r"a=b,\quad c =  d"),
        ("a\n  = b.", "a = b"),
        (r"\ln p", r"\ln  p"),
        (r"\ln\, p", r"\ln p"),
        (r"x \! y \; z \: w \ v", "xyzwv"),
    ],
)
def test_spacing_dollars_and_the_tag_do_not_matter(one: str, other: str):
    assert normalise_latex(one) == normalise_latex(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"s_i - s_j", r"s_i + s_j"),
        (r"\ln p", r"\lnp"),
        (r"z_i", r"z_{i}"),
        (r"\max z", r"\maxz"),
        (r"\quadratic x", "ratic x"),
        (r"a \\ b", r"a b"),
    ],
)
def test_what_a_reader_would_notice_matters(one: str, other: str):
    assert normalise_latex(one) != normalise_latex(other)


PAIRS = ((r"(?<!\\){", r"(?<!\\)}"), (r"\\{", r"\\}"), (r"\\[bB]igg?l", r"\\[bB]igg?r"), (r"\\begin\{", r"\\end\{"))


def unpaired(latex: str) -> list[str]:
    """Return the kinds of brackets that do not open as often as they close, which MathJax and KaTeX refuse or draw in red."""
    return [opening for opening, closing in PAIRS if len(re.findall(opening, latex)) != len(re.findall(closing, latex))]


def test_brackets_of_every_equation_are_paired():
    assert {equation.label: unpaired(equation.latex) for equation in all_equations() if unpaired(equation.latex)} == {}


@pytest.mark.parametrize("broken", [r"\frac{a}{b", r"\bigl( a )", r"\{ a", r"\begin{pmatrix} a", r"a}"])
def test_a_lone_bracket_is_found(broken: str):
    assert unpaired(broken)
