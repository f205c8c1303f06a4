"""Each rule for tasks can fail: a toy task that breaks one at a time."""

from functools import partial

import numpy as np
import pytest
import torch

from attn_course.tasks import Case, Wrong, gates
from attn_course.tasks.core import at_sizes
from tests.tasks.toys import ALL, DERIVATION, FORMULA, LATEX, PAIR, PREDICT, REPAIR, RETYPED, WRITE, changed

LABELS = ["softmax", "softmax-jacobian"]


def alike(task, name, function):
    return changed(task, wrong=[*task.wrong, Wrong(name, function, f"hint of {name}")])


@pytest.mark.parametrize("task", [*ALL, *LATEX], ids=lambda task: task.id)
def test_toys_of_every_kind_pass(task):
    assert gates.text_problems(task, LABELS) == []
    assert gates.case_problems(task) == []
    assert gates.wrong_answer_problems(task) == []
    assert gates.sensitivity_problems(task) == []


def test_an_equation_or_a_role_that_names_nothing_is_reported():
    assert gates.text_problems(changed(WRITE, equation="nowhere"), LABELS) == ["there is no equation 'nowhere'"]
    hints = ("See {eq}`nowhere`.", "b", "c")
    assert gates.text_problems(changed(WRITE, hints=hints), LABELS) == ["{eq}`nowhere`: there is no equation 'nowhere'"]
    task = alike(WRITE, "another", np.sin)
    task.wrong[-1] = Wrong("another", np.sin, "as in {task}`nowhere`")
    assert gates.text_problems(task, LABELS) == ["{task}`nowhere`: there is no task 'nowhere'"]


def test_a_role_where_none_is_read_is_reported():
    """The name of a mistake or a case is a key: records keep it."""
    task = changed(alike(WRITE, "not {eq}`softmax`", np.sin), title="Compute {eq}`softmax`")
    assert gates.text_problems(task, LABELS) == [
        f"wanted no role in a title or in the name of a mistake or a case, got {text!r}"
        for text in ("Compute {eq}`softmax`", "not {eq}`softmax`")
    ]


def test_cases_that_chance_decides_that_share_a_name_or_hold_a_square_are_reported():
    loose = changed(WRITE, cases=lambda rng: [Case("a vector", x=np.random.default_rng().normal(size=3), scale=2.0)])
    assert gates.case_problems(loose) == ["wanted cases that the seed alone decides, got others the second time"]
    twins = changed(WRITE, cases=lambda rng: [Case("a vector", x=rng.normal(size=n), scale=2.0) for n in (3, 5)])
    assert gates.case_problems(twins) == ["wanted cases whose names all differ, got a vector, a vector"]
    for name, problems in (
        ("a table", ["wanted arrays whose axes all differ in length, got (3, 3) in the case “a table”"]),
        ("a square", []),
    ):
        alike = changed(WRITE, cases=lambda rng, name=name: [Case(name, x=rng.normal(size=(3, 3)), scale=2.0)])
        assert gates.case_problems(alike) == problems


def test_a_known_wrong_answer_that_is_right_or_another_is_reported():
    right = alike(PAIR, "right after all", PAIR.answer)
    assert gates.wrong_answer_problems(right) == ["the known wrong answer “right after all” passes: it equals the right one in every case"]
    (problem,) = gates.wrong_answer_problems(alike(PAIR, "the smallest again", PAIR.wrong[0].function))
    assert problem.startswith(
        "the known wrong answer “the smallest again” is not told by its name, but: this is the mistake “the smallest” in the case "
    )


def test_a_known_wrong_answer_that_float32_hides_is_reported():
    nearly = alike(REPAIR, "off by little", lambda x: x.mean(axis=-1) * (1 + 1e-6))
    (problem,) = gates.wrong_answer_problems(nearly)
    assert problem == "the known wrong answer “off by little” passes: it equals the right one in every case"


def test_a_function_to_repair_that_is_right_is_reported():
    assert gates.wrong_answer_problems(changed(REPAIR, broken=REPAIR.answer)) == ["the function to repair passes: it is right as it stands"]


def test_a_message_that_tells_a_number_to_be_found_is_reported():
    hint = changed(PREDICT, wrong=[Wrong("it is 31.4, not 1", lambda: (1.0, 1.0, 1.0), "a"), *PREDICT.wrong[:2]])
    assert gates.wrong_answer_problems(hint) == ["the message about “it is 31.4, not 1” tells the right number 31.4"]


def test_a_task_that_a_constant_or_a_rounded_result_answers_is_reported():
    ones = changed(REPAIR, answer=lambda x: np.ones(x.shape[:-1]))
    assert gates.sensitivity_problems(ones) == ["the constant 1 passes"]
    coarse = changed(REPAIR, tolerance=1e-3)
    assert gates.sensitivity_problems(coarse) == [
        "a result that is off by 1e-06 of itself passes",
        "a float32 result that is off by 0.0001 of itself passes",
    ]
    steep = changed(REPAIR, answer=lambda x: 1e300 * x.mean(axis=-1))
    assert gates.sensitivity_problems(steep)[0] == "its own answer fails in float32: mind the tolerance"


def test_a_task_that_zeros_or_a_squeezed_result_answers_is_reported():
    padded = changed(REPAIR, answer=lambda x: 0.0 * x.sum(axis=-1))
    assert gates.sensitivity_problems(padded)[0] == "the constant 0 passes"
    never_one = changed(REPAIR, cases=lambda rng: REPAIR.cases(rng)[:1])
    assert gates.sensitivity_problems(never_one) == ["its own answer without axes of length 1 passes"]


def test_a_task_whose_first_case_never_changes_is_reported():
    fixed = changed(REPAIR, cases=lambda rng: [Case("always the same", x=np.arange(5.0)[None]), Case("others", x=rng.normal(size=(3, 5)))])
    (problem,) = gates.sensitivity_problems(fixed)
    assert problem.startswith("wanted a first case with other numbers in each draw")


HIDING = changed(
    REPAIR,
    entry="my_mean",
    answer=lambda x: np.exp(np.where(x > 0, x, -np.inf)),
    cases=lambda rng: [Case("both signs", x=rng.normal(size=(3, 5)))],
)
SOLUTION = "def my_mean(x):\n    return np.exp(np.where(x > 0, x, -np.inf))"


def test_a_task_that_a_finite_fill_answers_is_reported():
    problems = gates.fill_problems(HIDING, [SOLUTION], {"np": np}, "")
    assert "its solution passes with -30 in the place of -np.inf, in float32: draw a case in which that is not low enough" in problems
    exact = changed(HIDING, exact_zeros=True)
    passing = [said.partition(" in the place")[0] for said in gates.fill_problems(exact, [SOLUTION], {"np": np}, "")]
    assert sorted({*passing}) == [f"its solution passes with {fill}" for fill in ("-10000", "-1e+09")]
    assert gates.fill_problems(exact, [SOLUTION], {"np": np}, "Scores are moderate {lowest}`-100`.") == []
    assert gates.fill_problems(HIDING, ["def my_mean(x):\n    return np.exp(x) * (x > 0)"], {"np": np}, "") == []


def in_numpy(x):
    return np.array([row.sum() / row.size for row in x])


def in_torch(x):
    return torch.as_tensor(x, dtype=torch.float32).mean(-1)


def in_torch_too(x):
    return torch.as_tensor(x, dtype=torch.float32).mean(-1)


def wrong_at_the_end(x):
    return np.append(x.mean(-1)[:-1], 0.0)


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ([], "wanted 2 or more differently written right answers, got 0"),
        ([in_numpy], "wanted 2 or more differently written right answers, got 1"),
        ([in_numpy, in_torch, in_torch_too], "wanted right answers that are written differently, got one twice"),
        (
            [in_torch, wrong_at_the_end, in_numpy],
            "the right answer wrong_at_the_end is refused: task repair-a-mean (Repair a mean): my_mean",
        ),
        ([in_numpy, REPAIR.answer], "wanted right answers in NumPy and in torch, in float32 and in float64; none gives Tensor or float32"),
    ],
)
def test_right_answers_that_are_too_few_alike_or_refused_are_reported(functions, problem):
    assert gates.right_answer_problems(REPAIR, [in_numpy, in_torch]) == []
    (found,) = gates.right_answer_problems(REPAIR, functions)
    assert found.startswith(problem)
    assert "\n" not in found


def test_a_solution_that_is_missing_or_refused_is_reported():
    assert gates.solution_problems(REPAIR, [], {}, "") == ["the solution defines no my_mean"]
    assert gates.solution_problems(REPAIR, [], {"my_mean": in_numpy}, "") == []
    (found,) = gates.solution_problems(REPAIR, [], {"my_mean": wrong_at_the_end}, "")
    assert found.startswith("the solution is refused: task repair-a-mean (Repair a mean): my_mean is not right in the case “a matrix”")


def test_what_a_task_knows_is_computed_once_for_a_seed():
    calls = []

    def counted(x):
        calls.append(x)
        return x.mean(axis=-1)

    bench = gates.Bench(changed(REPAIR, answer=counted))
    once = len(bench.cases)
    for wrong in REPAIR.wrong:
        assert not bench.verdict(wrong.function).passed
    assert len(calls) == once


def test_givens_that_are_no_arrays_or_are_not_used_are_reported():
    sizes = FORMULA.cases(np.random.default_rng(0))[0].inputs
    opaque = changed(FORMULA, cases=lambda rng: [Case("one", **{**sizes, "g": np.sin})])
    assert gates.case_problems(opaque) == ["the given g of a formula task must be an array of numbers, or one of those in formulas.givens"]
    lacking = changed(FORMULA, symbols=("p", "g", r"\delta", "q"))
    assert gates.case_problems(lacking) == [
        "wanted each case to give p, g, \\delta, q and what stands on the left side; got p, g, \\delta, D"
    ]
    ended = changed(DERIVATION, answer=[r"\frac{e^c}{e^{z_i}}", r"e^c / e^{z_i}"], least_steps=1)
    assert gates.case_problems(ended) == ["the first line of the answer is its last one, but for its spelling"]


def test_what_a_formula_is_to_equal_is_not_the_answer_typed_again():
    assert gates.retyping_problems(FORMULA) == []
    assert gates.retyping_problems(DERIVATION) == []  # its lines are compared with each other
    assert gates.case_problems(RETYPED) == []
    assert gates.wrong_answer_problems(RETYPED) == []
    assert gates.retyping_problems(RETYPED) == [
        "the given D is only operators on the other givens: take another way, or the answer judges itself"
    ]
    for elsewhere in (lambda rng, **sizes: dict(RETYPED.cases.make(rng, **sizes)), partial(RETYPED.cases.make)):
        assert gates.retyping_problems(changed(FORMULA, cases=at_sizes("n m", elsewhere))) == [
            "wanted cases=at_sizes(...) of a function that writes its givens down, to be read there"
        ]
    by_hand = changed(FORMULA, cases=lambda rng: RETYPED.cases(rng)[:1])
    (problem,) = gates.retyping_problems(by_hand)
    assert problem.startswith("wanted cases=at_sizes(...)")
    asked_again = changed(FORMULA, left=r"p_{ij} g_{ij} - p_{ij} \delta_i")
    assert "to write it again is an answer" in gates.retyping_problems(asked_again)[0]


def test_an_answer_in_latex_that_is_wrong_and_a_mistake_that_is_right_are_reported():
    false = gates.wrong_answer_problems(changed(FORMULA, answer=r"g_{ij} (p_{ij} - \delta_i)"))
    assert false[0].startswith("its own answer is refused: my_formula is not right.")
    right = alike(FORMULA, "right after all", r"p_{ij} g_{ij} - p_{ij} \delta_i")
    assert gates.wrong_answer_problems(right) == ["the known wrong answer “right after all” passes: it equals the right one in every case"]
    follows = alike(DERIVATION, "right after all", r"\frac{e^{z_i} e^c}{\sum_k e^{z_k} e^c}")
    (said,) = gates.wrong_answer_problems(follows)
    assert said.startswith("the known wrong answer “right after all” is not told by its name")
