r"""Every small change of a formula: each kind is made, each tree once, and what binds a letter stays."""

import pytest

from attn_course.formulas import changes, read, write

NAMES = ["p", "q", "v", "z", "s", "J", "A", "B", "n", "f()", "x"]
LIKE = {"p": ["q"], "A": ["B"]}


def changed(latex: str) -> set[str]:
    return {write(change.tree) for change in changes(read(latex, NAMES), lambda name: LIKE.get(name, []))}


@pytest.mark.parametrize(
    ("latex", "into"),
    [
        (r"z_i = \sum_{j=1}^{n} p_{ij}\, v_j", [r"z_i = \sum_{j=1}^{n} p_{ji}\, v_j", r"z_i = \sum_{j=1}^{n} q_{ij}\, v_j"]),
        (r"z_i = \sum_{j=1}^{n} p_{ij}\, v_j", [r"z_i = \sum_{j=2}^{n} p_{ij}\, v_j", r"z_i = \sum_{j=1}^{n + 1} p_{ij}\, v_j"]),
        (r"z_i = \sum_{j=1}^{n} p_{ij}\, v_j", [r"z_i = \max_{j=1}^{n} p_{ij}\, v_j", r"z_i = \sum_{j=1}^{n} p_{ij}\, v_i"]),
        (r"J = s - A^\top B", ["J = s + A^\\top B", "J = s - A B", "J = s - B A^\\top", "J = s - A^\\top", "J = -A^\\top B", "J = s"]),
        ("J = A", ["J = B", r"J \le A", r"J \ge A"]),
        (r"x \le 2", ["x < 2", r"x \ge 2", r"x \le 3"]),
        (r"x = \frac{1}{n}", ["x = 1", r"x = \frac{n}{1}", r"x = \frac{2}{n}"]),
        (r"x = f(n)^2", ["x = f(n)", "x = n^2", "x = f(n)^3"]),
        (r"x = |n|", ["x = n"]),
        (r"x = 0 \;\Rightarrow\; n = 1", [r"n = 1 \;\Rightarrow\; x = 0"]),
        (r"x = \max(n, 1)", [r"x = \min(n, 1)", r"x = \max(1, n)"]),
        (r"x = \sin(n)", [r"x = \cos(n)", "x = n"]),
        (r"z_i = 0 \quad (i \ne 1)", [r"z_i = 0 \quad (i = 1)"]),
    ],
)
def test_each_kind_of_slip_is_made(latex, into):
    made = changed(latex)
    assert {write(read(one, NAMES)) for one in into} <= made
    assert write(read(latex, NAMES)) not in made


def test_a_letter_that_is_bound_keeps_its_name_where_it_is_bound():
    assert not any(r"\sum_{i=1}" in one for one in changed(r"z_i = \sum_{j=1}^{n} p_{ij}\, v_j"))


def test_no_tree_comes_twice_and_every_change_says_what_was_written():
    made = list(changes(read("x = n + n", NAMES), lambda name: []))
    assert len({change.tree for change in made}) == len(made)
    assert all(change.before and change.after and str(change) == f"{change.before} -> {change.after}" for change in made)
