r"""A part of another wording that makes no difference in any draw is refused: a cut-off at a size that is never drawn."""

import numpy as np
import pytest

from attn_course.equations.core import Equation
from attn_course.equations.errors import Malformed


@pytest.fixture
def total(toy) -> Equation:
    def make(rng, n):
        x = rng.normal(size=n)
        return {"x": x, "n": n, "S": float(np.cumsum(x)[-1])}

    return toy.add("first", r"S = \sum_{j=1}^{n} x_j", make)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (r"S = \sum_{j=1}^{n} x_j\, [n < 100]", "with 1 in the place of [n < 100]"),
        (r"S = \sum_{j=1}^{n} x_j\, [n < 8]", "with 1 in the place of [n < 8]"),
        (r"S = \sum_{j=1}^{n} x_j + \lfloor n / 1000 \rfloor", r"with 0 in the place of \lfloor n / 1000 \rfloor"),
        (r"S = \sum_{j=1}^{\min(n, 50)} x_j", r"without 50 beneath \min"),
        (r"S = \sum_{j=1}^{n} x_j + \max(n - 100, 0)", r"without n - 100 beneath \max"),
        (r"S = \sum_{j=1}^{n} x_j + 10^{-20}", "with 9 or 11 in the place of 10"),
        (r"S = \sum_{j=1}^{n} x_j + 0.00000000000000001", "with 5e-18 or 2e-17 in the place of 0.00000000000000001"),
        (r"S = \sum_{j=1}^{n} x_j + |50 - n| - 50 + n", r"with 50 - n in the place of \lvert 50 - n \rvert"),
        (r"S = \sum_{j=1}^{n} x_j \quad (n < 100)", "without the condition (n < 100)"),
        (r"S = \sum_{j=1}^{n} \begin{cases} x_j & n < 100 \\ 0 & \text{otherwise} \end{cases}", r"without the case \text{otherwise}"),
        (r"n S = n \sum_{j \le 100} x_j", r"without the condition j \le 100"),
    ],
)
def test_what_makes_no_difference_in_any_draw_is_not_tested(total, form, said):
    with pytest.raises(Malformed) as caught:
        total.check(form)
    assert f"{said} it holds in every draw too: nothing tests this" in str(caught.value)


@pytest.mark.parametrize(
    ("form", "part"),
    [
        (r"S = \sum_{j=1}^{n} x_j + (n - 3) (n - 5) (n - 6) (n - 7)", "(n - 3)\\, (n - 5)\\, (n - 6)\\, (n - 7)"),
        (r"S = \sum_{j=1}^{n} x_j + (n - 3) (n - 5) x_1 (n - 6) (n - 7)", "(n - 3)\\, (n - 5)\\, (n - 6)\\, (n - 7)"),
    ],
)
def test_what_is_made_of_sizes_alone_changes_with_them(total, form, part):
    with pytest.raises(Malformed) as caught:
        total.check(form)
    assert "is the same at all sizes that are drawn: nothing tests it" in str(caught.value)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "form",
    [
        r"S = \sum_{1 \le j \le n} x_j",
        r"\frac{S}{2} = \frac{1}{2} \sum_{j=1}^{n} x_j",
        r"S = x_1 + \sum_{j=2}^{n} x_j",
        r"S = \sum_{i=1}^{n} \sum_{j=1}^{n} [i = j]\, x_j",
        r"S\, |x_1|^2 = |x_1|^2 \sum_{j=1}^{n} x_j",
        r"S = \sum_{j=1}^{n} \begin{cases} x_1 & j = 1 \\ x_j & \text{otherwise} \end{cases}",
        r"S = \sum_{j=1}^{n} x_j \, \frac{e^{5 + x_1}}{e^{5} e^{x_1}}",
        r"S = 0\, x_1 + 1\, \sum_{j=1}^{n} x_j",
        r"n S - (n - 1)\, S = \sum_{j=1}^{n} x_j",
        r"S = \sum_j x_j",
    ],
)
def test_what_decides_both_ways_and_numbers_that_matter_may_stand(total, form):
    total.check(form)


def test_what_is_claimed_of_sizes_may_be_moved_to_one_side(toy):
    def make(rng, n):
        return {"F": sum(1 for _ in np.ndindex(n, n)), "n": n}

    equation = toy.add("first", "F = n^2", make)
    for form in ("F - n n = 0", "0 = n^2 - F"):
        equation.check(form)
    with pytest.raises(Malformed, match="nothing tests it"):
        equation.check(r"F = n^2, \qquad (n - 3) (n - 5) (n - 6) (n - 7) = 0")
