"""Small tasks, one of each kind, that the tests of the engine judge with."""

from dataclasses import replace

import numpy as np

from attn_course.formulas import derivative, vector
from attn_course.tasks import Case, Task, Wrong
from attn_course.tasks.core import at_sizes
from attn_course.tasks.forbidden import Forbidden

COMMON = {"equation": "softmax", "points": 3, "difficulty": 2, "minutes": 5, "trains": "nothing", "hints": ("a", "b", "c")}


def _centre(x, scale):
    return (x - x.mean(axis=-1, keepdims=True)) * scale


WRITE = Task(
    id="centre-and-scale",
    title="Centre and scale",
    entry="my_centre",
    kind="write",
    answer=_centre,
    cases=lambda rng: [
        Case("a matrix", x=rng.normal(size=(3, 5)), scale=2.0),
        Case("three axes", x=rng.normal(size=(2, 3, 7)), scale=0.5),
        Case("a vector", x=rng.normal(size=11), scale=-1.5),
        Case("one row", x=rng.normal(size=(1, 5)), scale=3.0),
    ],
    wrong=[
        Wrong("not scaled", lambda x, scale: _centre(x, 1.0), "multiply by scale"),
        Wrong("not centred", lambda x, scale: x * scale, "subtract the mean"),
        Wrong("centred over all", lambda x, scale: (x - x.mean()) * scale, "each row has its own mean"),
        Wrong("no number at all", lambda x, scale: np.full_like(x, np.nan), "that is NaN"),
    ],
    forbid=(Forbidden("layer norms and softmax", ("torch.nn.functional.layer_norm", ".softmax")),),
    **COMMON,
)

PAIR = Task(
    id="largest-and-sum",
    title="Largest and sum of blocks",
    entry="my_pair",
    kind="write",
    answer=lambda blocks: (np.concatenate(blocks).max(), np.concatenate(blocks)),
    cases=lambda rng: [
        Case("three blocks", blocks=[rng.normal(size=n) for n in (2, 3, 5)]),
        Case("one number", blocks=[rng.normal(size=1)]),
    ],
    wrong=[
        Wrong("the smallest", lambda blocks: (np.concatenate(blocks).min(), np.concatenate(blocks)), "max, not min"),
        Wrong("the first block", lambda blocks: (blocks[0].max(), blocks[0]), "all blocks"),
        Wrong("turned round", lambda blocks: (np.concatenate(blocks), np.concatenate(blocks).max()), "max first"),
    ],
    **COMMON,
)

DERIVE = Task(
    id="derive-a-product",
    title="Derive a product",
    entry="my_slope",
    kind="derive",
    answer=lambda s_i, s_j: s_i * (1 - s_j),
    symbols=("s_i", "s_j"),
    functions=("log",),
    cases=lambda rng: [Case("7 points", s_i=rng.uniform(0.1, 0.9, size=7), s_j=rng.uniform(0.1, 0.9, size=7))],
    wrong=[
        Wrong("plus", lambda s_i, s_j: s_i * (1 + s_j), "minus"),
        Wrong("no s_i", lambda s_i, s_j: 1 - s_j, "times s_i"),
        Wrong("only s_i", lambda s_i, s_j: s_i, "one term is missing"),
    ],
    **COMMON,
)

PREDICT = Task(
    id="predict-three-numbers",
    title="Predict three numbers",
    entry="my_numbers",
    kind="predict",
    answer=lambda: (2.71828, 31.4159, 577.215),
    tolerance=1e-5,
    wrong=[
        Wrong("sorted downwards", lambda: (577.215, 31.4159, 2.71828), "upwards"),
        Wrong("all zero", lambda: (0.0, 0.0, 0.0), "none is zero"),
        Wrong("all one", lambda: (1.0, 1.0, 1.0), "none is one"),
    ],
    **COMMON,
)

REPAIR = Task(
    id="repair-a-mean",
    title="Repair a mean",
    entry="my_mean",
    kind="repair",
    answer=lambda x: x.mean(axis=-1),
    broken=lambda x: x.sum(axis=-1),
    cases=lambda rng: [Case("a matrix", x=rng.normal(size=(3, 5))), Case("a row", x=rng.normal(size=(1, 7)))],
    wrong=[
        Wrong("the sum", lambda x: x.sum(axis=-1), "divide by the number of entries"),
        Wrong("over columns", lambda x: x.mean(axis=0), "the last axis"),
        Wrong("the median", lambda x: np.median(x, axis=-1), "not the median"),
    ],
    **COMMON,
)

FIGURE = Task(
    id="read-a-height",
    title="Read a height",
    entry="my_height",
    kind="figure",
    answer=lambda: 4.0,
    tolerance=0.05,
    figure_data=lambda: {"heights": [4.0]},
    wrong=[
        Wrong("twice", lambda: 8.0, "look again at the axis"),
        Wrong("half", lambda: 2.0, "look at the axis again"),
        Wrong("zero", lambda: 0.0, "it is above the axis"),
    ],
    **COMMON,
)


def _backward(rng, n, m):
    """One backward step of attention: probabilities p, their gradient g, that of the scores by differences."""
    scores, g = rng.normal(size=(n, m)), rng.normal(size=(n, m))

    def softmax_rows(scores):
        return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)

    p = softmax_rows(scores)
    slopes = derivative(lambda scores: (softmax_rows(scores) * g).sum(), scores)
    return {"p": p, "g": g, r"\delta": (p * g).sum(axis=-1), "D": slopes}


FORMULA = Task(
    id="gradient-of-scores",
    title="Gradient of the scores",
    entry="my_formula",
    kind="formula",
    symbols=("p", "g", r"\delta"),
    left="D_{ij}",
    cases=at_sizes("n m", _backward),
    answer=r"p_{ij} (g_{ij} - \delta_i)",
    wrong=[
        Wrong("no delta", r"p_{ij} g_{ij}", "subtract it"),
        Wrong("delta not weighted", r"p_{ij} g_{ij} - \delta_i", "both terms carry p"),
        Wrong("plus", r"p_{ij} (g_{ij} + \delta_i)", "minus"),
    ],
    **COMMON,
)

DERIVATION = Task(
    id="shift-of-a-softmax",
    title="Shift of a softmax",
    entry="my_derivation",
    kind="derivation",
    symbols=("z", "c"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n", lambda rng, n: {"z": vector(rng.normal(size=n)), "c": 0.7}),
    least_steps=2,
    answer=[
        r"\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}",
        r"\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^c}",
        r"\frac{e^{z_i} e^c}{e^c \sum_j e^{z_j}}",
        r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
    ],
    wrong=[
        Wrong("lost beneath", r"\frac{e^{z_i} e^c}{\sum_j e^{z_j}}", "every term has it"),
        Wrong("lost above", r"\frac{e^{z_i}}{e^c \sum_j e^{z_j}}", "it has it too"),
        Wrong("a sum of powers", r"\frac{e^{z_i} + e^c}{\sum_j (e^{z_j} + e^c)}", "a product of powers"),
    ],
    **COMMON,
)


ALL = (WRITE, PAIR, DERIVE, PREDICT, REPAIR, FIGURE)


def _typed_again(rng, n, m):
    p, g = rng.uniform(size=(n, m)), rng.normal(size=(n, m))
    delta = np.einsum("ij,ij->i", p, g)
    return {"p": p, "g": g, r"\delta": delta, "D": p * (g - delta[:, None])}


RETYPED = replace(FORMULA, cases=at_sizes("n m", _typed_again))  # judges its answer by the answer itself

LATEX = (FORMULA, DERIVATION)


def changed(task, **fields):
    return replace(task, **fields)
