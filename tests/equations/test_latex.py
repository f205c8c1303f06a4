"""Two spellings of one formula have one normal form; two formulas have two."""

import pytest

from attn_course.equations import normalise_latex
from attn_course.equations.gates import unpaired


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


@pytest.mark.parametrize("broken", [r"\frac{a}{b", r"\bigl( a )", r"\{ a", r"\begin{pmatrix} a", r"a}"])
def test_a_lone_bracket_is_found(broken: str):
    assert unpaired(broken)
    assert unpaired(r"\bigl\{ \frac{a}{b} \bigr\}") == []
