"""The graded tasks on attention as a function of its query, on copies in its context, and on what it costs."""

import math
from functools import partial
from typing import Any

import numpy as np

from attn_course.formulas import row
from attn_course.reference import attention
from attn_course.tasks.core import Case, Task, Wrong, at_sizes, every


def _slope_points(rng: np.random.Generator) -> list[Case]:
    p, (v_1, v_2, k_1, k_2) = rng.uniform(0.05, 0.95, size=16), rng.normal(size=(4, 16))
    return [Case("16 points", p=p, v_1=v_1, v_2=v_2, k_1=k_1, k_2=k_2)]


SLOPE = Task(
    id="attention-slope",
    title="The slope of attention",
    entry="my_slope",
    kind="derive",
    equation="output-derivative-by-query",
    points=2,
    difficulty=3,
    minutes=10,
    trains="attention as a function of its query",
    symbols=("p", "v_1", "v_2", "k_1", "k_2"),
    cases=_slope_points,
    answer=lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 - v_2) * (k_1 - k_2),
    wrong=[
        Wrong(
            "not centred: the mean of v k",
            lambda p, v_1, v_2, k_1, k_2: p * v_1 * k_1 + (1 - p) * v_2 * k_2,
            "the mean of v k is not their covariance: the product of the two means must be subtracted, {eq}`output-derivative-by-query`",
        ),
        Wrong(
            "a linear map",
            lambda p, v_1, v_2, k_1, k_2: v_1 * k_1 + v_2 * k_2,
            "that is the slope without softmax, the same at every q; here it depends on q through p",
        ),
        Wrong(
            "the factor 1 - p forgotten",
            lambda p, v_1, v_2, k_1, k_2: p * (v_1 - v_2) * (k_1 - k_2),
            "p' = p (1 - p) (k_1 - k_2): once the first key has all the weight, nothing can change any more",
        ),
        Wrong(
            "the values added",
            lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 + v_2) * (k_1 - k_2),
            "where the first weight grows, the second shrinks: with equal values nothing moves",
        ),
        Wrong(
            "the keys forgotten",
            lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 - v_2),
            "that is dz / ds_1; the scores are q k_1 and q k_2, so q adds a factor",
        ),
        Wrong(
            "the second key does not move",
            lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 - v_2) * k_1,
            "q moves both scores: their difference changes at the rate k_1 - k_2",
        ),
        Wrong(
            "the sign turned round",
            lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 - v_2) * (k_2 - k_1),
            "a larger q favours the larger key: if k_1 > k_2, the output moves towards v_1",
        ),
    ],
    hints=[
        "z = p v_1 + (1 - p) v_2. Only p depends on q.",
        "p is the logistic function of q (k_1 - k_2); its derivative by its argument is p (1 - p).",
        "By the chain rule there are three factors: one from z, one from the logistic function, and one from its argument.",
    ],
)


def _weights_in_one_dimension(rng: np.random.Generator, T_k: int) -> dict[str, Any]:
    """Weights, keys and values that are plain numbers, the output, and the mean key."""
    q, key, value = rng.normal(), rng.normal(size=(T_k, 1)), rng.normal(size=(T_k, 1))
    both, p = attention(np.array([[q]]), key, np.hstack([value, key]), return_weights=True)
    return {"p": p[0], "v": value[:, 0], "k": key[:, 0], "z": both[0, 0], r"\bar{k}": both[0, 1], "T_k": T_k}


CENTRED = Task(
    id="centre-the-values",
    title="A covariance in one pass",
    entry="my_derivation",
    kind="derivation",
    equation="output-derivative-by-query",
    points=3,
    difficulty=3,
    minutes=10,
    trains="sums that are 1, a mean or an output, and adding terms that cancel",
    symbols=("p", "v", "k", "z", r"\bar{k}", "T_k"),
    cases=at_sizes("T_k", _weights_in_one_dimension),
    least_steps=2,
    answer=[
        r"\sum_j p_j v_j k_j - z \bar{k}",
        r"\sum_j p_j v_j k_j - z \bar{k} - z \bar{k} + z \bar{k}",
        r"\sum_j p_j v_j k_j - \bar{k} \sum_j p_j v_j - z \sum_j p_j k_j + z \bar{k} \sum_j p_j",
        r"\sum_j p_j (v_j k_j - v_j \bar{k} - z k_j + z \bar{k})",
        r"\sum_j p_j (v_j - z) (k_j - \bar{k})",
    ],
    wrong=[
        Wrong(
            "the weights lost from the last term",
            r"\sum_j p_j v_j k_j + (T_k - 2) z \bar{k}",
            "under the sum every term needs its p_j, also the product of the two means: the weights sum to 1, their number is T_k",
        ),
        Wrong(
            "the mean product alone",
            r"\sum_j p_j v_j k_j",
            "the mean of v k is not their covariance: of the three terms that are z times the mean key, two cancel and one stays",
        ),
        Wrong(
            "the product of the means added",
            r"\sum_j p_j v_j k_j + z \bar{k}",
            "two of the terms with a mean have a minus, and one has a plus: in all the product of the means is subtracted once",
        ),
        Wrong(
            "the values summed without weights",
            r"\sum_j p_j v_j k_j - \bar{k} \sum_j v_j",
            "z is made with the weights: when the mean key is taken out of a sum, p_j and v_j both stay inside",
        ),
        Wrong(
            "subtracted twice",
            r"\sum_j p_j v_j k_j - 2 z \bar{k}",
            "the last term of the product of the two brackets is missing: minus z times minus the mean key is a plus",
        ),
    ],
    hints=[
        "Begin at the end: multiply the two brackets out under the sum. Which four terms are there?",
        "A mean can be taken out of a sum. What is left of each term then, and which of these sums have a name?",
        "Three of the four terms are z times the mean key, with signs. So start by adding two terms that cancel.",
    ],
)


def _copies(rng: np.random.Generator, n: int, d_v: int) -> dict[str, Any]:
    """The output over n copies of one pair and one other pair, by the reference."""
    q, keys, values = rng.normal(size=(1, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, d_v))
    rows = [0] * n + [1]
    scores = (keys @ q[0]) / math.sqrt(2)
    z = attention(q, keys[rows], values[rows])[0]
    return {"n": n, "s_1": scores[0], "s_2": scores[1], "v_1": row(values[0]), "v_2": row(values[1]), "z": row(z)}


COPIES = Task(
    id="copies-beside-another",
    title="Many copies and one other",
    entry="my_output",
    kind="formula",
    equation="attention-of-one-query",
    points=2,
    difficulty=2,
    minutes=6,
    trains="what an output says about numbers",
    symbols=("n", "s_1", "s_2", "v_1", "v_2"),
    functions=(r"\exp",),
    left="z",
    cases=at_sizes("n d_v", _copies),
    answer=r"\frac{n\, e^{s_1} v_1 + e^{s_2} v_2}{n\, e^{s_1} + e^{s_2}}",
    wrong=[
        Wrong(
            "copies count once",
            r"\frac{e^{s_1} v_1 + e^{s_2} v_2}{e^{s_1} + e^{s_2}}",
            "each copy is a pair of its own, with its own term in both sums, {eq}`attention-of-one-query`",
        ),
        Wrong(
            "counted above only",
            r"\frac{n\, e^{s_1} v_1 + e^{s_2} v_2}{e^{s_1} + e^{s_2}}",
            "the copies stand in the denominator too: otherwise the weights do not sum to 1",
        ),
        Wrong(
            "counted below only",
            r"\frac{e^{s_1} v_1 + e^{s_2} v_2}{n\, e^{s_1} + e^{s_2}}",
            "each copy brings its value as well as its term below: n of them stand above the line",
        ),
        Wrong(
            "the number inside the exponent",
            r"\frac{e^{n s_1} v_1 + e^{s_2} v_2}{e^{n s_1} + e^{s_2}}",
            "n equal terms add up to n times one of them; a product of terms would add their exponents",
        ),
        Wrong(
            "the scores as weights",
            r"\frac{n\, s_1 v_1 + s_2 v_2}{n\, s_1 + s_2}",
            "a term of the softmax is e to the power of the score",
        ),
    ],
    hints=[
        "Write the numerator with all n + 1 terms, and collect equal ones.",
        "Numerator and denominator have the same terms; above, each is multiplied by its value.",
        "A test: with s_1 = s_2, v_1 = 0 and v_2 = 1 your formula must give 1 / (1 + n), the weight of the other pair.",
    ],
)


def _log(value: Any) -> Any:
    import sympy

    return sympy.log(value)


def _sqrt(value: Any) -> Any:
    import sympy

    return sympy.sqrt(value)


def _lead_points(rng: np.random.Generator) -> list[Case]:
    p, g, n, d = rng.uniform(0.2, 0.95, 16), rng.uniform(0.3, 2.0, 16), rng.uniform(3.0, 60.0, 16), rng.uniform(2.0, 80.0, 16)
    return [Case("16 points", p=p, g=g, n=n, d=d)]


def _factor(p: Any, g: Any, n: Any, d: Any, *, others: int = 1, root: str = "root", turned: bool = False) -> Any:
    """The factor of the query; the switches count the others wrongly, take another scale, or turn the odds over."""
    scale = {"root": _sqrt(d), "none": 1, "whole": d}[root]
    return scale * (_log(n - others) + _log((1 - p) / p if turned else p / (1 - p))) / g


SHARPEN = Task(
    id="length-of-a-query",
    title="How long must a query be?",
    entry="my_factor",
    kind="derive",
    equation="attention-weights",
    points=2,
    difficulty=4,
    minutes=12,
    trains="scale, softmax and length of the context in one question",
    symbols=("p", "g", "n", "d"),
    functions=("log", "sqrt"),
    cases=_lead_points,
    answer=_factor,
    wrong=[
        Wrong("no scale", partial(_factor, root="none"), "a score is the dot product divided by sqrt(d): the lead shrinks by that root"),
        Wrong("the scale squared", partial(_factor, root="whole"), "the scores are divided by the root of d, not by d itself"),
        Wrong("the key counted among the others", partial(_factor, others=0), "n counts all keys; the one that leads has n - 1 others"),
        Wrong(
            "the odds turned over",
            partial(_factor, turned=True),
            "a larger share p needs a longer query: p stands above the line in the odds",
        ),
        Wrong(
            "the others forgotten",
            lambda p, g, n, d: _sqrt(d) * _log(p / (1 - p)) / g + 0 * n,
            "with more keys the same share needs a larger lead: n is missing",
        ),
        Wrong(
            "the lead multiplied",
            lambda p, g, n, d: _sqrt(d) * (_log(n - 1) + _log(p / (1 - p))) * g,
            "a query that leads by more needs a smaller factor: divide by g",
        ),
    ],
    hints=[
        "If the query is multiplied by c, what happens to the lead g between two dot products, and what to the lead between two scores?",
        "Subtract the score of the others from all scores: then the weight is one power of e beside n - 1 powers that are 1.",
        "Set this weight equal to p, solve for the power, and take the logarithm: that is the lead of the scores.",
    ],
)


def _cost(
    T_q: int,
    T_k: int,
    d_k: int,
    d_v: int,
    *,
    operations: int = 2,
    square: bool = False,
    added: bool = False,
    times: int = 2,
    narrow: bool = False,
) -> tuple[int, int]:
    """Operations and numbers moved; the switches make the known mistakes."""
    asking, width = (T_k if square else T_q), (2 * d_k if narrow else d_k + d_v)
    pairs = asking + T_k if added else asking * T_k
    return operations * pairs * width, (asking + T_k) * width + times * pairs


COST = Task(
    id="cost-of-new-tokens",
    title="What new tokens cost",
    entry="my_cost",
    kind="predict",
    equation="attention-flops",
    points=2,
    difficulty=3,
    minutes=8,
    trains="two lengths and two widths in a count",
    tolerance=1e-6,
    variants=every(T_q=(2, 4, 3), T_k=(1000, 2000, 500), d_k=(50, 40), d_v=(100, 60)),
    answer=_cost,
    wrong=[
        Wrong("a multiply-add counted as one", partial(_cost, operations=1), "a multiplication and its addition count as 2 operations"),
        Wrong("all tokens ask", partial(_cost, square=True), "only the new tokens ask: the scores have T_q rows, not T_k"),
        Wrong(
            "lengths added", partial(_cost, added=True), "every query meets every key: the number of pairs is a product of the two lengths"
        ),
        Wrong(
            "values as long as keys", partial(_cost, narrow=True), "the values have their own length d_v; only queries and keys share d_k"
        ),
        Wrong(
            "nothing stored in between",
            partial(_cost, times=0),
            "your operations are right; the first step also writes the weights, and the second reads them",
        ),
        Wrong(
            "weights moved once",
            partial(_cost, times=1),
            "your operations are right; the weights are written by one step and read by the other",
        ),
        Wrong(
            "the scores stored too",
            partial(_cost, times=4),
            "your operations are right; that is the count for three steps, but here the scores never leave the processor",
        ),
    ],
    hints=[
        "How many scores are there, and how many terms does each of them have? The same two questions for the output.",
        "Numbers moved: list for each of the two steps what it reads and what it writes.",
        "For b: only one table with a number for each pair is ever stored. Who writes it, and who reads it?",
    ],
)
