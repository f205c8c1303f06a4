"""What the lesson on the Transformer asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _rows(rng, scale, *shape):
    return {"x": scale * (rng.normal(size=shape) + 0.5), "gain": rng.normal(size=shape[-1]), "eps": rng.uniform(0.05, 0.3)}


ROWS = """
one row: 1.0 7
a text: 2.0 5 3
a batch of texts: 30.0 2 3 5
one feature: 1.0 3 1
"""


@asked(
    "rms-norm-row",
    "The norm of each row",
    kind="write",
    equation="norm-forgets-scale",
    points=1,
    difficulty=1,
    minutes=5,
    trains="a norm of each row by itself",
    your_turn=True,
    cases=tried(_rows, ROWS),
    slips="""
        no root
            ` ** 0.5` ->
            divide by the root of the mean square, not by the mean square itself
        the sum of squares
            (x**2).mean(-1, keepdims=True) -> (x**2).sum(-1, keepdims=True)
            you divide by the length of the row; the norm divides by the root of the mean of the squares
        one norm for all rows
            .mean(-1, keepdims=True) -> .mean()
            each row has a mean square of its own: take the mean over the last axis only
        the mean taken away
            return x / ((x**2).mean(-1, keepdims=True) -> return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True)
            that is a layer norm: an RMS norm leaves the mean in
        no gain
            ` * gain` ->
            each feature is multiplied by its gain
        epsilon outside the root
            x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 -> x / ((x**2).mean(-1, keepdims=True) ** 0.5 + eps)
            `eps` is added to the mean square, inside the root
        no epsilon
            ` + eps` ->
            `eps` is added to the mean square; without it a row of zeros gives NaN
        the gain stored less 1
            * gain -> * (1 + gain)
            here the gain is the factor itself, and not what is added to 1
    """,
    hints="""
        What is one number for each row, and along which axis is it taken?
        `(x**2).mean(-1, keepdims=True)` keeps its axis, so that it divides row by row.
        Add `eps`, take the root, divide `x` by it, and multiply by the gain.
    """,
)
def my_norm(x, gain, eps):
    r"""Each row divided by the root of its mean square.

    Write `my_norm(x, gain, eps)` for `x` of shape $(\ldots, d)$ and a gain of shape $(d,)$. It divides each row by $\sqrt{\frac1d \sum_i
    x_i^2 + \varepsilon}$, and multiplies each feature by its gain. The check calls it with NumPy arrays and the model below with PyTorch's,
    so use what both have: `**`, `/`, `*` and `.mean(-1, keepdims=True)`.
    """
    return x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 * gain


def _units(normal, scale, m, *shape):
    d = shape[-1]
    return {"x": scale * normal(*shape), "w_gate": normal(d, m), "w_in": normal(d, m), "w_out": normal(m, d)}


UNITS = """
five rows: 1.0 11 5 7
one row: 1.0 5 1 3
one vector: 1.0 5 3
one unit: 1.0 1 3 5
a batch of texts: 0.1 7 2 3 5
"""


@asked(
    "hidden-units-of-rows",
    "Hidden units in three products",
    kind="write",
    equation="gated-feed-forward",
    points=1,
    difficulty=2,
    minutes=5,
    trains="a sum over units as a matrix product",
    your_turn=True,
    cases=tried(_units, UNITS),
    slips="""
        no gate
            gate = 1 / (1 + np.e**-read) -> gate = 1
            the first reading is multiplied by its gate, 1 / (1 + e^-c)
        the gate alone
            gate * read * -> gate *
            SiLU is c times the gate: the first reading itself is missing
        the gate on the other reading
            read = x @ w_gate -> read = x @ w_in ;; (x @ w_in)) -> (x @ w_gate))
            the gate opens by `x @ w_gate`, and the other reading is `x @ w_in`
        the sign in the gate
            np.e**-read -> np.e**read
            the gate is near 1 for large readings: the exponent is minus the reading
        the second reading left out
            gate * read * (x @ w_in)) -> gate * read)
            each unit multiplies two readings of x
        added
            read * (x @ w_in) -> read + (x @ w_in)
            the two readings are multiplied
    """,
    hints="""
        Each column of `w_gate` and `w_in` belongs to a unit, so `x @ w_gate` holds the first reading of every unit for every row.
        With `read = x @ w_gate` the gate is `1 / (1 + np.e ** -read)`.
        Multiply gate, first reading and second reading entry by entry, and then by `w_out`.
    """,
)
def my_units(x, w_gate, w_in, w_out):
    r"""The rows that the hidden units add, of the shape of `x`.

    Write `my_units(x, w_gate, w_in, w_out)` for `x` $(\ldots, d)$, `w_gate` and `w_in` $(d, m)$ and `w_out` $(m, d)$, by
    {eq}`gated-feed-forward` with SiLU for $\phi$. The check calls it with NumPy arrays and the model below with PyTorch's, so write powers
    of $e$ as `np.e ** ...`.
    """
    read = x @ w_gate
    gate = 1 / (1 + np.e**-read)
    return (gate * read * (x @ w_in)) @ w_out
