"""The tasks on softmax about derivatives: of ln s, the Jacobian, cross-entropy."""

import numpy as np

from attn_course.reference import softmax, softmax_jacobian
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried


def _sixteen_points(rng):
    """Points that honour the symbols: where delta_ij is 1, i and j are the same entry."""
    s_i, s_j = rng.uniform(0.05, 0.95, size=(2, 16))
    delta = np.repeat([0.0, 1.0], 8)
    return {"s_i": s_i, "s_j": np.where(delta == 1.0, s_i, s_j), "delta_ij": delta}


@asked(
    "log-softmax-derivative",
    "Differentiate the logarithm of a weight",
    kind="derive",
    equation="log-softmax",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the chain rule through log-sum-exp",
    cases=[_sixteen_points],
    slips="""
        the derivative of s_i itself
            delta_ij - s_j -> s_i * (delta_ij - s_j)
            that is the derivative of s_i; the logarithm divides it by s_i
        the Kronecker delta forgotten
            delta_ij - s_j -> -s_j
            z_i itself depends on z_j when i = j: that term is missing
        the normaliser forgotten
            ` - s_j` ->
            lse(z) depends on every z_j, with derivative s_j: that term is missing
        the sign turned round
            delta_ij - s_j -> s_j - delta_ij
            ln s_i = z_i - lse(z): the term from z_i is positive
        s_i where s_j belongs
            s_j -> s_i
            you differentiate by z_j, and lse(z) has derivative s_j there
        the delta times s_j
            delta_ij -> s_j * delta_ij
            the derivative of z_i by z_j is delta_ij alone, with no weight on it
        divided by s_i once too often
            delta_ij - s_j -> (delta_ij - s_j) / s_i
            the s_i of d s_i / d z_j cancels against the 1 / s_i of the logarithm: nothing is left to divide
        a weight too many in the second term
            s_j -> s_i * s_j
            lse(z) has the derivative s_j, not s_i s_j
        the case i = j alone
            delta_ij -> 1
            that is the derivative where i = j; for every other j the first term is 0, and delta_ij says so
    """,
    hints="""
        Start from {eq}`log-softmax`, which writes the logarithm as a difference of two terms.
        The derivative of z_i by z_j is delta_ij; {eq}`lse-gradient` has the derivative of lse(z).
        Keep the index j in mind: which score is raised, and whose weight does the second term bring?
    """,
    why=r"""
        $\ln s_i = z_i - \mathrm{lse}(z)$ by {eq}`log-softmax`. The first term has the derivative $\delta_{ij}$, the second
        $-s_j$ by {eq}`lse-gradient`. Multiply by $s_i$ and {eq}`softmax-derivative` appears.
    """,
)
def my_derivative(s_i, s_j, delta_ij):
    r"""Let $s = \sigma(z)$. Derive $\dfrac{\partial \ln s_i}{\partial z_j}$ and write it with the symbols `s_i`, `s_j` and
    `delta_ij` (the Kronecker delta: 1 if $i = j$, else 0). Sums, products and powers of them are all you need. The
    check wants the result of the differentiation.
    """
    return delta_ij - s_j


def _reference(scores, temperature):
    return softmax_jacobian(softmax(scores, temperature=temperature)) / temperature


def _rows(normal, temperature, spread, *shape):
    return {"scores": spread * normal(*shape), "temperature": temperature}


def _one_row_near_1000_and_one_near_minus_1000(rng):
    return {"scores": rng.normal(size=(2, 7)) + np.array([[1000.0], [-1000.0]]), "temperature": 0.5}


ROWS = """
one row of scores: 1.5 1 5
three rows, cold: 0.4 1 3 7
two leading axes, hot: 3.0 1 2 3 5
a nearly saturated row: 2.0 10 7
one score only: 0.7 1 3 1
"""


@asked(
    "softmax-jacobian",
    "The Jacobian at a temperature",
    kind="write",
    equation="softmax-jacobian",
    points=3,
    difficulty=3,
    minutes=12,
    trains="the chain rule through a temperature, with leading axes",
    judged_by=_reference,
    forbid=(forbidden.SOFTMAX, forbidden.AUTOGRAD),
    cases=[tried(_rows, ROWS), _one_row_near_1000_and_one_near_minus_1000],
    slips="""
        the derivative by z / T
            None, :]) / temperature -> None, :])
            that is the derivative by z / T, which is what the softmax sees; by z itself the chain rule brings one more factor
        multiplied by T
            None, :]) / temperature -> None, :]) * temperature
            the derivative of z / T by z is 1 / T, not T
        divided by T twice
            None, :]) / temperature -> None, :]) / temperature**2
            the chain rule brings 1 / T once
        the temperature forgotten
            all ` / temperature` ->
            the weights are those of the scores divided by T, {eq}`softmax-with-temperature`
        the off-diagonal terms forgotten
            (identity - weights[..., None, :]) -> identity * (1 - weights[..., None, :])
            a softmax couples its entries: raising z_j lowers every other s_i, off the diagonal
        the diagonal term forgotten
            identity - weights -> -weights
            only the product s_i s_j is there; the delta_ij s_i of {eq}`softmax-derivative` adds s_i on the diagonal
        the outer product added
            identity - weights -> identity + weights
            the outer product enters with a minus: rows of J sum to 0, since a shift of all scores moves no weight; yours do not
        the sign turned round
            (identity - weights[..., None, :]) -> (weights[..., None, :] - identity)
            raising z_i raises s_i: the diagonal is positive
        the derivative of ln s_i
            weights[..., :, None] * (identity -> (identity
            that is the derivative of ln s_i by z_j; multiply row i by s_i
        no maximum subtracted
            (scores - scores.max(axis=-1, keepdims=True)) -> scores
            exp overflows to inf (or every term underflows to 0), and NaN is left: subtract the maximum first, {eq}`stable-softmax`
    """,
    hints="""
        There are two functions, one inside the other: z / T, and the softmax of that. What does the chain rule say?
        First the weights, stably; then the two terms of {eq}`softmax-jacobian` for each row; then the factor of the inner function.
        weights (..., n) give a diagonal and an outer product, both (..., n, n): which axes have to be made?
    """,
    why="""
        The derivative by $z / T$ is {eq}`softmax-derivative` entry by entry: $s_i$ runs along the second to last axis, $s_j$
        along the last. The inner function $z / T$ brings the factor $1 / T$. `np.diag` and `np.outer` would do for a single row only.
    """,
)
def my_jacobian(scores, temperature):
    r"""scores (..., n), one temperature -> Jacobian (..., n, n), {eq}`softmax-jacobian`.

    Let $s = \sigma(z / T)$ along the **last** axis. Write `my_jacobian(scores, temperature)`: for float64 scores $z$ of shape
    `(..., n)` and one positive number $T$ it returns the array of shape `(..., n, n)` whose entry `[..., i, j]` is
    $\partial s_i / \partial z_j$, the derivative by the score itself. There may be no, one or several leading axes
    {case}`two leading axes, hot`, $n$ may be 1 {case}`one score only`, and
    scores may be a thousand and more, of either sign {case}`one row near 1000 and one near minus 1000`.
    """
    unnormalised = np.exp((scores - scores.max(axis=-1, keepdims=True)) / temperature)
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    identity = np.eye(weights.shape[-1])
    return weights[..., :, None] * (identity - weights[..., None, :]) / temperature


def _points(rng):
    s_i, temperature = rng.uniform(0.05, 0.95, size=16), rng.uniform(0.3, 3.0, size=16)
    return {"s_i": s_i, "delta_iy": np.repeat([0.0, 1.0], 8), "T": temperature}


@asked(
    "tempered-cross-entropy-gradient",
    "Cross-entropy at a temperature",
    kind="derive",
    equation="log-softmax",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the gradient that training starts from",
    cases=[_points],
    slips="""
        the temperature forgotten
            (s_i - delta_iy) / T -> s_i - delta_iy
            z enters as z / T, so the chain rule leaves a factor 1 / T
        multiplied by T
            / T -> * T
            the derivative of z / T by z is 1 / T, not T
        the sign turned round
            s_i - delta_iy -> delta_iy - s_i
            that is the gradient of ln s_y; the loss is -ln s_y
        the label forgotten
            (s_i - delta_iy) -> s_i
            the term -z_y / T of the loss depends on z_i when i = y
        one term without its 1 / T
            (s_i - delta_iy) / T -> s_i / T - delta_iy
            both terms of the loss hold z / T: lse(z / T) and -z_y / T
        a factor s_i too many
            (s_i - -> s_i * (s_i -
            the logarithm's 1 / s_y cancels the weight in front of the Jacobian: no factor s_i is left
        only the right class considered
            delta_iy -> 1
            for i other than y nothing is subtracted: delta_iy is 0 there
        divided by T twice
            / T -> / T**2
            the chain rule gives one factor 1 / T, not two
    """,
    hints="""
        The loss is minus the logarithm of a weight, {eq}`log-softmax`, with z / T in place of z.
        Which two terms does the loss have, and in which of them does z_i stand? What does the inner function z / T add?
        First differentiate as if T were 1, with {eq}`lse-gradient`. Then ask in which places T stands.
    """,
    why=r"""
        The loss is $\mathrm{lse}(z / T) - z_y / T$, by {eq}`log-softmax` with $z / T$ for $z$. The chain rule puts $1/T$ on
        both terms of {eq}`cross-entropy-gradient`.
    """,
)
def my_gradient(s_i, delta_iy, T):
    r"""A classifier uses a temperature $T > 0$: $s = \sigma(z / T)$, with the loss $-\ln s_y$ for the right class $y$. Derive
    $\dfrac{\partial}{\partial z_i}(-\ln s_y)$ and write it with the symbols `s_i`, `delta_iy` (1 if $i = y$, else 0) and
    `T`. Sums, products, quotients and powers are all you need, and of the lesson only {eq}`log-softmax` and {eq}`lse-gradient`.
    """
    return (s_i - delta_iy) / T
