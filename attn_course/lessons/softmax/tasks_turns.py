"""What the lesson on softmax asks its reader before it shows its own."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.reference import softmax, softmax_vjp
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, asked_formula
from attn_course.tasks.core import Case, at_sizes


def _weights_and_slopes(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z, beta = rng.normal(size=n), rng.uniform(0.4, 1.6) * rng.choice([-1.0, 1.0])

    def weights(z: np.ndarray) -> Any:
        amounts = np.exp(beta * z)
        return amounts / amounts.sum()

    return {"s": vector(weights(z)), r"\beta": beta, "J": derivative(weights, z)}


my_formula = asked_formula(
    "softmax-derivative",
    "The derivative with a factor in every score",
    entry="my_formula",
    asks=r"""
        Let $s = \sigma(\beta z)$, so $s_i = e^{\beta z_i} / \sum_k e^{\beta z_k}$. Write $\partial s_i / \partial z_j$ in LaTeX between
        `r"` and `"`: only the right side. You may use `s` with its indices, `\beta` and `\delta_{ij}`.
    """,
    equation="softmax-derivative",
    points=1,
    difficulty=2,
    minutes=4,
    trains="a factor inside a softmax, and the chain rule",
    answer=r"\beta s_i (\delta_{ij} - s_j)",
    your_turn=True,
    symbols=("s", r"\beta"),
    left="J_{ij}",
    cases=at_sizes("n", _weights_and_slopes),
    slips=r"""
        beta forgotten
            \beta s_i -> s_i
            the exponent is beta z_j, and its derivative brings a factor beta
        each weight on its own
            (\delta_{ij} - s_j) -> \delta_{ij}\, (1 - s_i)
            that is the derivative of the logistic function; here raising z_j also changes every other s_i, through the sum beneath
        the case i = j for all
            \delta_{ij} - s_j -> 1 - s_i
            that is the case i = j; for every other j the derivative is minus beta s_i s_j, and the delta has to tell the two apart
        the derivative of the logarithm
            s_i (\delta -> (\delta
            that is the derivative of ln s_i; multiply it by s_i
        the numerator forgotten
            \delta_{ij} - s_j -> -s_j
            the numerator of s_i holds z_j too, when i = j: that term is missing
        the denominator forgotten
            (\delta_{ij} - s_j) -> \delta_{ij}
            the sum beneath holds every z_j: its derivative is missing
        the delta taken for 1
            \delta_{ij} -> 1
            that is the derivative where i = j; for every other j the numerator does not move
        plus for minus
            \delta_{ij} - -> \delta_{ij} +
            the sum stands beneath, so its derivative comes with a minus
        s_i for s_j
            s_j -> s_i
            the derivative of the sum by z_j is beta e^{beta z_j}: over the sum that is beta s_j, not beta s_i
    """,
    hints=r"""
        Every amount is a power of e. What are the scores of this softmax?
        In {eq}`softmax-derivative` score j changes at the rate 1. How fast does it change here, when z_j does?
        A factor, a weight, and a difference of `\delta_{ij}` and a weight.
    """,
    why=r"""
        With $u = \beta z$ this is $s = \sigma(u)$. Its derivative by $u_j$ is $s_i (\delta_{ij} - s_j)$, and that of $u_j$ by $z_j$ is
        $\beta$.
    """,
)


def _pulled(scores, gradient):
    return {"weights": softmax(scores), "gradient": gradient}


def _five_weights(rng):
    return _pulled(rng.normal(size=5), rng.normal(size=5))


def _a_saturated_row(rng):
    return _pulled(40.0 * rng.normal(size=7), rng.normal(size=7))


def _a_gradient_that_is_the_same_everywhere(rng):
    return _pulled(rng.normal(size=3), np.full(3, 2.0))


def _one_weight(rng):
    return _pulled(np.zeros(1), rng.normal(size=1))


@asked(
    "pull-back-one-row",
    "A gradient through softmax",
    kind="write",
    equation="softmax-derivative",
    points=1,
    difficulty=2,
    minutes=3,
    trains="from a sum with a delta to one line of code",
    judged_by=softmax_vjp,
    your_turn=True,
    forbid=(forbidden.AUTOGRAD,),
    cases=[_five_weights, _a_saturated_row, _a_gradient_that_is_the_same_everywhere, _one_weight],
    slips="""
        each weight with its own sigmoid
            (gradient - weights @ gradient) -> (1.0 - weights) * gradient
            that is the term with i = j alone; z_j moves the other weights as well
        nothing subtracted
            (gradient - weights @ gradient) -> gradient
            that is the sum with the delta; the other sum, which is s_j times one number, is missing
        the second sum without s_j
            (gradient - weights @ gradient) -> gradient - weights @ gradient
            s_j is a factor of the second sum as well
        the gradient summed without weights
            weights @ gradient -> gradient.sum()
            in the second sum each g_i comes with its own s_i
        the plain mean subtracted
            weights @ gradient -> gradient.mean()
            what is subtracted is the mean of g under the weights s, not its plain mean
        the sign turned round
            return weights -> return -weights
            the delta comes with a plus, and s_j with a minus
    """,
    hints="""
        Put {eq}`softmax-derivative` into the sum and multiply out: one sum with the delta, one with s_j. What is left of each?
        The delta keeps one term. In the other sum s_j is the same for all i, so it comes out. What do both have in common?
        An array minus a number, and an array times that: no loop, no matrix.
    """,
)
def my_pull(weights, gradient):
    r"""The gradient with respect to the scores of one row, from its weights and the gradient with respect to them.

    Write `my_pull(weights, gradient)` for one row. It gets $s$ and $g$, two 1-D float64 arrays of the same length, and returns an array of
    the slopes along all scores, $\sum_i g_i\, \partial s_i / \partial z_j$ with {eq}`softmax-derivative`. By hand: $s = (0.5, 0.3, 0.2)$
    and $g = (1, 0, 0)$ must give $(0.25, -0.15, -0.10)$.
    """
    return weights * (gradient - weights @ gradient)


def _in_blocks(name, scores, *cuts):
    return Case(name, blocks=np.split(scores, cuts))


def _blocks(rng):
    far_apart = np.array([-2000.0, -2001.0, 0.5, 1.0, 3000.0]) + rng.normal(size=5)
    return [
        _in_blocks("two blocks, the second with the maximum", np.sort(rng.normal(size=7)), 3),
        _in_blocks("two blocks, the first with the maximum", np.sort(rng.normal(size=7))[::-1].copy(), 3),
        _in_blocks("one block", rng.normal(size=5)),
        _in_blocks("scores near a thousand", 1000.0 + 3.0 * rng.normal(size=11), 2, 7),
        _in_blocks("scores near minus a thousand", -1000.0 + 3.0 * rng.normal(size=11), 5, 6),
        _in_blocks("scores near minus two thousand million", -2e9 + rng.normal(size=5), 2),
        _in_blocks("thousands apart", far_apart, 2, 4),
    ]


@asked(
    "lse-over-blocks",
    "Log-sum-exp, block by block",
    kind="write",
    equation="online-softmax-update",
    points=1,
    difficulty=3,
    minutes=8,
    trains="one reading with a running maximum",
    your_turn=True,
    forbid=(forbidden.SOFTMAX, forbidden.JOINING),
    cases=_blocks,
    slips="""
        no maximum subtracted
            max(row_max, block.max()) -> 0.0
            e to a score of a thousand is inf, and to minus a thousand 0: measure every sum from a maximum
        the old sum not rescaled
            row_sum * np.exp(row_max - new_max) -> row_sum
            when the maximum grows, the old sum is still measured from the old one: it needs the factor e^(old - new)
        rescaled the wrong way
            row_max - new_max -> new_max - row_max if row_sum else 0.0
            the old terms shrink when the maximum grows: the factor is e^(old - new), at most 1
        the blocks' own log-sum-exps added
            -> return sum(np.log(np.exp(block - block.max()).sum()) + block.max() for block in blocks)
            the sums of exponentials add up, not their logarithms
        the largest of the blocks' own
            -> return max(np.log(np.exp(block - block.max()).sum()) + block.max() for block in blocks)
            that leaves out what the other blocks add to the sum
        the maximum not added back
            return row_max + np.log(row_sum) -> return np.log(row_sum)
            the logarithm of the sum is measured from the maximum, {eq}`shifted-lse`: add it back
    """,
    hints="""
        Which two numbers must be remembered from one block to the next, and what are they before the first?
        For each block: the new maximum, the old sum brought to it, and the block's own terms measured from it.
        Start with the pair of no scores at all, as the loop above does. At the end one logarithm, and the maximum comes back.
    """,
)
def my_lse(blocks):
    r"""The log-sum-exp of all scores in a list of blocks.

    Write `my_lse(blocks)`, which returns $\mathrm{lse}$ of all scores in a list of blocks as a float: `[np.array([0.0]), np.array([0.0])]`
    gives $\ln 2$. Look at each block once, without joining blocks and without a library's log-sum-exp.

    - There are one or more blocks, and none is empty.
    - A block is a 1-D float64 array of finite scores, large or small, of either sign
      {case}`scores near minus two thousand million`.
    """
    row_max, row_sum = -np.inf, 0.0
    for block in blocks:
        new_max = max(row_max, block.max())
        row_sum = row_sum * np.exp(row_max - new_max) + np.exp(block - new_max).sum()
        row_max = new_max
    return row_max + np.log(row_sum)
