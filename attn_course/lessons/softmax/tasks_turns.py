"""What the lesson on softmax asks its reader before it shows its own."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.reference import logsumexp, softmax, softmax_vjp
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, at_sizes


def _weights_and_slopes(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z, a, beta = rng.normal(size=n), rng.uniform(0.3, 3.0, size=n), rng.uniform(0.4, 1.6) * rng.choice([-1.0, 1.0])

    def weights(z: np.ndarray) -> Any:
        amounts = a * np.exp(beta * z)
        return amounts / amounts.sum()

    return {"s": vector(weights(z)), "a": vector(a), r"\beta": beta, "J": derivative(weights, z)}


DERIVATIVE_FORMULA = Task(
    id="softmax-derivative",
    title="The derivative with a factor for every entry",
    entry="my_formula",
    kind="formula",
    equation="softmax",
    points=1,
    difficulty=2,
    minutes=4,
    trains="two cases in one formula",
    your_turn=True,
    symbols=("s", "a", r"\beta"),
    left="J_{ij}",
    cases=at_sizes("n", _weights_and_slopes),
    answer=r"\beta s_i (\delta_{ij} - s_j)",
    wrong=[
        Wrong("beta forgotten", r"s_i (\delta_{ij} - s_j)", "the exponent is beta z_j, and its derivative brings a factor beta"),
        Wrong(
            "the factor once more",
            r"\beta a_i s_i (\delta_{ij} - s_j)",
            "the factor a_i is inside s_i already: write a_i as e to the power ln a_i, and it is a part of the score",
        ),
        Wrong(
            "each weight on its own",
            r"\beta \delta_{ij}\, s_i (1 - s_i)",
            "that is the derivative of the logistic function; here raising z_j also changes every other s_i, through the sum beneath",
        ),
        Wrong(
            "the case i = j for all",
            r"\beta s_i (1 - s_i)",
            "that is the case i = j; for every other j the derivative is minus beta s_i s_j, and the delta has to tell the two apart",
        ),
        Wrong("the derivative of the logarithm", r"\beta (\delta_{ij} - s_j)", "that is the derivative of ln s_i; multiply it by s_i"),
        Wrong("the numerator forgotten", r"-\beta s_i s_j", "the numerator of s_i holds z_j too, when i = j: that term is missing"),
        Wrong("the denominator forgotten", r"\beta \delta_{ij}\, s_i", "the sum beneath holds every z_j: its derivative is missing"),
        Wrong(
            "the delta taken for 1",
            r"\beta s_i (1 - s_j)",
            "that is the derivative where i = j; for every other j the numerator does not move",
        ),
        Wrong("plus for minus", r"\beta s_i (\delta_{ij} + s_j)", "the sum stands beneath, so its derivative comes with a minus"),
        Wrong(
            "s_i for s_j",
            r"\beta s_i (\delta_{ij} - s_i)",
            "the derivative of the sum by z_j is beta a_j e^{beta z_j}: over the sum that is beta s_j, not beta s_i",
        ),
    ],
    hints=[
        "Write a_i as e to the power ln a_i. What are the scores of this softmax?",
        "The softmax of u has the derivative {eq}`softmax-derivative` by u_j. What is the derivative of u_j by z_j?",
        r"A factor, a weight, and a difference of `\delta_{ij}` and a weight.",
    ],
)


def _pull(name: str, scores: np.ndarray, gradient: np.ndarray) -> Case:
    return Case(name, weights=softmax(scores), gradient=gradient)


PULL = Task(
    id="pull-back-one-row",
    title="A gradient through softmax",
    entry="my_pull",
    kind="write",
    equation="softmax-derivative",
    points=1,
    difficulty=2,
    minutes=5,
    trains="from a sum with a delta to two lines of code",
    your_turn=True,
    answer=softmax_vjp,
    forbid=(forbidden.AUTOGRAD,),
    cases=lambda rng: [
        _pull("five weights", rng.normal(size=5), rng.normal(size=5)),
        _pull("a saturated row", 40.0 * rng.normal(size=7), rng.normal(size=7)),
        _pull("a gradient that is the same everywhere", rng.normal(size=3), np.full(3, 2.0)),
        _pull("one weight", np.zeros(1), rng.normal(size=1)),
    ],
    wrong=[
        Wrong(
            "each weight with its own sigmoid",
            lambda weights, gradient: weights * (1.0 - weights) * gradient,
            "that is the term with i = j alone; z_j moves the other weights as well",
        ),
        Wrong(
            "nothing subtracted",
            lambda weights, gradient: weights * gradient,
            "that is the sum with the delta; the other sum, which is s_j times one number, is missing",
        ),
        Wrong(
            "the second sum without s_j",
            lambda weights, gradient: weights * gradient - weights @ gradient,
            "s_j is a factor of the second sum as well",
        ),
        Wrong(
            "the gradient summed without weights",
            lambda weights, gradient: weights * (gradient - gradient.sum()),
            "in the second sum each g_i comes with its own s_i",
        ),
        Wrong(
            "the plain mean subtracted",
            lambda weights, gradient: weights * (gradient - gradient.mean()),
            "what is subtracted is the mean of g under the weights s, not its plain mean",
        ),
        Wrong(
            "the sign turned round",
            lambda weights, gradient: -softmax_vjp(weights, gradient),
            "the delta comes with a plus, and s_j with a minus",
        ),
    ],
    hints=[
        "What is left of the sum with the delta?",
        "In the other sum, s_j comes to the front. What remains is one number for the whole row: a dot product.",
        "An array minus a number, and an array times that: no loop, no matrix.",
    ],
)


def _blockwise(blocks: Sequence[np.ndarray], factor: Callable[[float, float], float]) -> float:
    """Walk over the blocks with a maximum and a sum; `factor` says by what the old sum is multiplied, from old and new maximum."""
    row_max, row_sum = -math.inf, 0.0
    for block in blocks:
        new_max = max(row_max, float(block.max()))
        with np.errstate(over="ignore"):
            kept = row_sum * float(factor(row_max, new_max)) if row_sum else 0.0
        row_max, row_sum = new_max, kept + float(np.exp(block - new_max).sum())
    return row_max + math.log(row_sum)


def _plain_lse(blocks: Sequence[np.ndarray]) -> float:
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.log(sum(np.exp(block).sum() for block in blocks)))


def _in_blocks(name: str, scores: np.ndarray, *cuts: int) -> Case:
    return Case(name, blocks=np.split(scores, cuts))


LSE = Task(
    id="lse-over-blocks",
    title="Log-sum-exp, block by block",
    entry="my_lse",
    kind="write",
    equation="online-softmax-update",
    points=1,
    difficulty=3,
    minutes=8,
    trains="one reading with a running maximum",
    your_turn=True,
    answer=lambda blocks: _blockwise(blocks, lambda old, new: np.exp(old - new)),
    forbid=(forbidden.SOFTMAX, forbidden.JOINING),
    cases=lambda rng: [
        _in_blocks("two blocks, the second with the maximum", np.sort(rng.normal(size=7)), 3),
        _in_blocks("two blocks, the first with the maximum", np.sort(rng.normal(size=7))[::-1].copy(), 3),
        _in_blocks("one block", rng.normal(size=5)),
        _in_blocks("scores near a thousand", 1000.0 + 3.0 * rng.normal(size=11), 2, 7),
        _in_blocks("scores near minus a thousand", -1000.0 + 3.0 * rng.normal(size=11), 5, 6),
        _in_blocks("scores near minus two thousand million", -2e9 + rng.normal(size=5), 2),
        _in_blocks("thousands apart", np.array([-2000.0, -2001.0, 0.5, 1.0, 3000.0]) + rng.normal(size=5), 2, 4),
    ],
    wrong=[
        Wrong(
            "no maximum subtracted",
            _plain_lse,
            "e to a score of a thousand is inf, and to minus a thousand 0: measure every sum from a maximum",
        ),
        Wrong(
            "the old sum not rescaled",
            lambda blocks: _blockwise(blocks, lambda old, new: 1.0),
            "when the maximum grows, the old sum is still measured from the old one: it needs the factor e^(old - new)",
        ),
        Wrong(
            "rescaled the wrong way",
            lambda blocks: _blockwise(blocks, lambda old, new: np.exp(new - old)),
            "the old terms shrink when the maximum grows: the factor is e^(old - new), at most 1",
        ),
        Wrong(
            "the blocks' own log-sum-exps added",
            lambda blocks: sum(float(logsumexp(block)) for block in blocks),
            "the sums of exponentials add up, not their logarithms",
        ),
        Wrong(
            "the largest of the blocks' own",
            lambda blocks: max(float(logsumexp(block)) for block in blocks),
            "that leaves out what the other blocks add to the sum",
        ),
        Wrong(
            "the maximum not added back",
            lambda blocks: float(logsumexp(np.concatenate(blocks))) - max(float(block.max()) for block in blocks),
            "the logarithm of the sum is measured from the maximum, {eq}`shifted-lse`: add it back",
        ),
    ],
    hints=[
        "Which two numbers must be remembered from one block to the next, and what are they before the first?",
        "For each block: the new maximum, the old sum brought to it, and the block's own terms measured from it.",
        "Start with the pair of no scores at all, as the loop above does. At the end one logarithm, and the maximum comes back.",
    ],
)

TURNS = [DERIVATIVE_FORMULA, PULL, LSE]
