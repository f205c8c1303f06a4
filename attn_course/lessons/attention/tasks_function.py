"""The tasks on attention as a function of its query, on copies in its context, and on what it costs."""

import math
from typing import Any

import numpy as np
from sympy import log, sqrt

from attn_course.formulas import row
from attn_course.reference import attention
from attn_course.tasks.asked import asked, asked_formula
from attn_course.tasks.core import at_sizes, every


def _sixteen_points(rng):
    p, (v_1, v_2, k_1, k_2) = rng.uniform(0.05, 0.95, size=16), rng.normal(size=(4, 16))
    return {"p": p, "v_1": v_1, "v_2": v_2, "k_1": k_1, "k_2": k_2}


@asked(
    "attention-slope",
    "The slope of attention",
    kind="derive",
    equation="output-derivative-by-query",
    points=2,
    difficulty=3,
    minutes=10,
    trains="attention as a function of its query",
    cases=[_sixteen_points],
    slips="""
        not centred: the mean of v k
            -> return p * v_1 * k_1 + (1 - p) * v_2 * k_2
            the mean of v k is not their covariance: the product of the two means must be subtracted, {eq}`output-derivative-by-query`
        a linear map
            -> return v_1 * k_1 + v_2 * k_2
            that is the slope without softmax, the same at every q; here it depends on q through p
        the factor 1 - p forgotten
            `(1 - p) * ` ->
            p' = p (1 - p) (k_1 - k_2): once the first key has all the weight, nothing can change any more
        the values added
            v_1 - v_2 -> v_1 + v_2
            where the first weight grows, the second shrinks: with equal values nothing moves
        the keys forgotten
            ` * (k_1 - k_2)` ->
            that is dz / ds_1; the scores are q k_1 and q k_2, so q adds a factor
        the second key does not move
            (k_1 - k_2) -> k_1
            q moves both scores: their difference changes at the rate k_1 - k_2
        the sign turned round
            k_1 - k_2 -> k_2 - k_1
            a larger q favours the larger key: if k_1 > k_2, the output moves towards v_1
    """,
    hints="""
        z = p v_1 + (1 - p) v_2. Only p depends on q.
        p is the logistic function of q (k_1 - k_2); its derivative by its argument is p (1 - p).
        By the chain rule there are three factors: one from z, one from the logistic function, and one from its argument.
    """,
    why=r"""
        This is {eq}`output-derivative-by-query` for two keys: the covariance of value and key under the weights $p$ and $1 - p$. It is
        steepest at $p = \frac12$, where $p(1 - p) = \frac14$, and flat where one key has nearly all the weight.
    """,
)
def my_slope(p, v_1, v_2, k_1, k_2):
    r"""Attention in one dimension ($d_k = d_v = 1$, so the scale is 1): two keys, the numbers $k_1$ and $k_2$, with values
    $v_1$ and $v_2$. A query $q$ gives them the weights $p$ and $1 - p$ and has the output $z = p\,v_1 + (1 - p)\,v_2$.
    Derive the slope $\dfrac{\mathrm{d} z}{\mathrm{d} q}$ and write it with the symbols `p`, `v_1`, `v_2`, `k_1` and `k_2`.
    Sums, products and powers of them are all you need.
    """
    return p * (1 - p) * (v_1 - v_2) * (k_1 - k_2)


def _weights_in_one_dimension(rng: np.random.Generator, T_k: int) -> dict[str, Any]:
    """Weights, keys and values that are plain numbers, the output, and the mean key."""
    q, key, value = rng.normal(), rng.normal(size=(T_k, 1)), rng.normal(size=(T_k, 1))
    both, p = attention(np.array([[q]]), key, np.hstack([value, key]), return_weights=True)
    return {"p": p[0], "v": value[:, 0], "k": key[:, 0], "z": both[0, 0], r"\bar{k}": both[0, 1], "T_k": T_k}


my_derivation = asked_formula(
    "centre-the-values",
    "A covariance in one pass",
    entry="my_derivation",
    asks=r"""
        In one dimension ($d_k = d_v = 1$) the slope of attention is the covariance $\sum_j p_j (v_j - z)(k_j - \bar{k})$. For this sum $z$
        and $\bar{k}$ must be known first. A program that goes over the keys only **once** can sum $p_j v_j$, $p_j k_j$ and $p_j v_j k_j$ on
        the way, and take $\sum_j p_j v_j k_j - z \bar{k}$ at the end. Show that this is the covariance: a list of lines in LaTeX, each
        equal to the one before. The first and the last stand below, and it takes two steps or more. You may use $\sum_j p_j = 1$,
        $\bar{k} = \sum_j p_j k_j$ and $z = \sum_j p_j v_j$.
    """,
    equation="output-derivative-by-query",
    retired=True,
    points=3,
    difficulty=3,
    minutes=10,
    trains="sums that are 1, a mean or an output, and adding terms that cancel",
    answer=[
        r"\sum_j p_j v_j k_j - z \bar{k}",
        r"\sum_j p_j v_j k_j - z \bar{k} - z \bar{k} + z \bar{k}",
        r"\sum_j p_j v_j k_j - \bar{k} \sum_j p_j v_j - z \sum_j p_j k_j + z \bar{k} \sum_j p_j",
        r"\sum_j p_j (v_j k_j - v_j \bar{k} - z k_j + z \bar{k})",
        r"\sum_j p_j (v_j - z) (k_j - \bar{k})",
    ],
    symbols=("p", "v", "k", "z", r"\bar{k}", "T_k"),
    cases=at_sizes("T_k", _weights_in_one_dimension),
    least_steps=2,
    slips=r"""
        the weights lost from the last term
            line 3: z \bar{k} \sum_j p_j -> z \bar{k} T_k
            under the sum every term needs its p_j, also the product of the two means: the weights sum to 1, their number is T_k
        the mean product alone
            line 2: - z \bar{k} - z \bar{k} + z \bar{k} ->
            the mean of v k is not their covariance: of the three terms that are z times the mean key, two cancel and one stays
        the product of the means added
            line 2: - z \bar{k} - z \bar{k} + z \bar{k} -> + z \bar{k}
            two of the terms with a mean have a minus, and one has a plus: in all the product of the means is subtracted once
        the values summed without weights
            line 3: \sum_j p_j v_j - z \sum_j p_j k_j + z \bar{k} \sum_j p_j -> \sum_j v_j
            z is made with the weights: when the mean key is taken out of a sum, p_j and v_j both stay inside
        subtracted twice
            line 2: - z \bar{k} - z \bar{k} + z \bar{k} -> - 2 z \bar{k}
            the last term of the product of the two brackets is missing: minus z times minus the mean key is a plus
    """,
    hints="""
        Begin at the end: multiply the two brackets out under the sum. Which four terms are there?
        A mean can be taken out of a sum. What is left of each term then, and which of these sums have a name?
        Three of the four terms are z times the mean key, with signs. So start by adding two terms that cancel.
    """,
    why=r"""
        Each of the three products with a mean sums to $z \bar{k}$, since the weights that make $z$ and $\bar{k}$ sum to 1; two of them
        have a minus and one a plus. So the slope, {eq}`output-derivative-by-query`, needs three running sums and one pass over the keys.
        (If $z \bar{k}$ is large beside the slope, the difference loses digits.)
    """,
)


def _copies(rng: np.random.Generator, n: int, d_v: int) -> dict[str, Any]:
    """The output over n copies of one pair and one other pair, by the reference."""
    q, keys, values = rng.normal(size=(1, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, d_v))
    rows = [0] * n + [1]
    scores = (keys @ q[0]) / math.sqrt(2)
    z = attention(q, keys[rows], values[rows])[0]
    return {"n": n, "s_1": scores[0], "s_2": scores[1], "v_1": row(values[0]), "v_2": row(values[1]), "z": row(z)}


my_output = asked_formula(
    "copies-beside-another",
    "Many copies and one other",
    entry="my_output",
    asks=r"""
        A context holds $n$ copies of one pair, whose score is $s_1$ and whose value is $v_1$, and one other pair with the score
        $s_2$ and the value $v_2$. Write the output of attention as a formula in LaTeX, only the right side, between `r"` and `"`:

        $$z = \ldots$$

        Powers may be written as `e^{...}` too, and any form that is equal counts. To see how your formula is understood, call
        `read("copies-beside-another", my_output)`, with `from attn_course import read`; what cannot be read is no attempt.
    """,
    equation="attention-of-one-query",
    points=2,
    difficulty=2,
    minutes=6,
    trains="what an output says about numbers",
    answer=r"\frac{n\, e^{s_1} v_1 + e^{s_2} v_2}{n\, e^{s_1} + e^{s_2}}",
    symbols=("n", "s_1", "s_2", "v_1", "v_2"),
    functions=(r"\exp",),
    left="z",
    cases=at_sizes("n d_v", _copies),
    slips=r"""
        copies count once
            all n\, ->
            each copy is a pair of its own, with its own term in both sums, {eq}`attention-of-one-query`
        counted above only
            {n\, e^{s_1} + -> {e^{s_1} +
            the copies stand in the denominator too: otherwise the weights do not sum to 1
        counted below only
            {n\, e^{s_1} v_1 -> {e^{s_1} v_1
            each copy brings its value as well as its term below: n of them stand above the line
        the number inside the exponent
            all n\, e^{s_1} -> e^{n s_1}
            n equal terms add up to n times one of them; a product of terms would add their exponents
        the scores as weights
            all e^{s_1} -> s_1 ;; all e^{s_2} -> s_2
            a term of the softmax is e to the power of the score
        one copy too few
            all n\, e^{s_1} -> (n - 1)\, e^{s_1}
            there are n copies in all, each with a term of its own above and below
        one copy too many
            all n\, e^{s_1} -> (n + 1)\, e^{s_1}
            n counts all pairs that are alike, and the other pair comes on top only with its own term
    """,
    hints="""
        Write the numerator with all n + 1 terms, and collect equal ones.
        Numerator and denominator have the same terms; above, each is multiplied by its value.
        A test: with s_1 = s_2, v_1 = 0 and v_2 = 1 your formula must give 1 / (1 + n), the weight of the other pair.
    """,
    why="""
        Each copy has a term of its own, above and below. Double $n$ **and** the other pair, and everything cancels: a context that stands
        twice gives the same output. Leave the other pair alone, and the output says how large $n$ is: with equal scores,
        $v_1 = 0$ and $v_2 = 1$ it is $1 / (1 + n)$. A start token can play the part of this pair (arXiv:2407.11542).
    """,
)


def _points(rng):
    p, g, n, d = rng.uniform(0.2, 0.95, 16), rng.uniform(0.3, 2.0, 16), rng.uniform(3.0, 60.0, 16), rng.uniform(2.0, 80.0, 16)
    return {"p": p, "g": g, "n": n, "d": d}


@asked(
    "length-of-a-query",
    "How long must a query be?",
    kind="derive",
    equation="attention-weights",
    points=2,
    difficulty=4,
    minutes=12,
    trains="scale, softmax and length of the context in one question",
    functions=("log", "sqrt"),
    cases=[_points],
    slips="""
        no scale
            sqrt(d) * (log -> (log
            a score is the dot product divided by sqrt(d): the lead shrinks by that root
        the scale squared
            sqrt(d) -> d
            the scores are divided by the root of d, not by d itself
        the key counted among the others
            n - 1 -> n
            n counts all keys; the one that leads has n - 1 others
        the odds turned over
            p / (1 - p) -> (1 - p) / p
            a larger share p needs a longer query: p stands above the line in the odds
        the others forgotten
            `log(n - 1) + ` ->
            with more keys the same share needs a larger lead: n is missing
        the lead multiplied
            / g -> * g
            a query that leads by more needs a smaller factor: divide by g
        only one of the two logarithms divided
            (log(n - 1) + log(p / (1 - p))) / g -> log(n - 1) + log(p / (1 - p)) / g
            the lead that is needed is the sum of both logarithms, and all of it is divided by g: put the sum into parentheses
    """,
    hints="""
        If the query is multiplied by c, what happens to the lead g between two dot products, and what to the lead between two scores?
        Subtract the score of the others from all scores: then the weight is one power of e beside n - 1 powers that are 1.
        Set this weight equal to p, solve for the power, and take the logarithm: that is the lead of the scores.
    """,
    why=r"""
        The factor multiplies every dot product, so the lead becomes $c\,g$, and the lead of the scores $c\,g / \sqrt{d}$. That must be the
        $\Delta$ of {eq}`margin-grows-with-context`. A wider layer needs a longer query for the same lead of its dot products, and so does a
        longer context.
    """,
)
def my_factor(p, g, n, d):
    r"""A query favours one key: its dot product with that key is larger by $g > 0$ than those with the $n - 1$ other keys, which are all
    equal. You may multiply the query by a factor $c$. Which $c$ gives the favoured key the share $p$ of the weight, in scaled
    dot-product attention with queries of $d$ numbers, if $n \ge 2$ and $0 < p < 1$? Write $c$ with the symbols `p`, `g`, `n` and `d`;
    besides sums, products and powers, `log` (natural) and `sqrt`. {eq}`attention-weights` is all you need.
    """
    return sqrt(d) * (log(n - 1) + log(p / (1 - p))) / g


@asked(
    "cost-of-new-tokens",
    "What new tokens cost",
    kind="predict",
    equation="attention-flops",
    points=2,
    difficulty=3,
    minutes=8,
    trains="two lengths and two widths in a count",
    tolerance=1e-6,
    variants=every(T_q=(2, 4, 3), T_k=(1000, 2000, 500), d_k=(50, 40), d_v=(100, 60)),
    slips="""
        a multiply-add counted as one
            (2 * T_q -> (T_q
            a multiplication and its addition count as 2 operations
        all tokens ask
            all T_q -> T_k
            only the new tokens ask: the scores have T_q rows, not T_k
        lengths added
            all T_q * T_k -> (T_q + T_k)
            every query meets every key: the number of pairs is a product of the two lengths
        values as long as keys
            all (d_k + d_v) -> (2 * d_k)
            the values have their own length d_v; only queries and keys share d_k
        nothing stored in between
            ` + 2 * T_q * T_k` ->
            your operations are right; the first step also writes the weights, and the second reads them
        weights moved once
            + 2 * T_q -> + T_q
            your operations are right; the weights are written by one step and read by the other
        the scores stored too
            + 2 * -> + 4 *
            your operations are right; that is the count for three steps, but here the scores never leave the processor
    """,
    hints="""
        How many scores are there, and how many terms does each of them have? The same two questions for the output.
        Numbers moved: list for each of the two steps what it reads and what it writes.
        For b: only one table with a number for each pair is ever stored. Who writes it, and who reads it?
    """,
    why="""
        For a, {eq}`attention-flops` with two different lengths. For b, the first step reads $T_q d_k + T_k d_k$ numbers and writes $T_q
        T_k$ weights; the second reads these and $T_k d_v$ values, and writes $T_q d_v$. The scores of a query are softmaxed where they are
        made, so the table travels twice, and not four times as in {eq}`attention-traffic`. With so few queries it hardly matters: nearly
        all of the traffic is for keys and values, each used for a few operations only.
    """,
)
def my_cost(T_q, T_k, d_k, d_v):
    """A model has read $T_k$ tokens and keeps their keys and values. Now $T_q$ new queries attend to all of them (the keys and values of
    the new tokens are already among the $T_k$). The cell below prints your $T_q$, $T_k$, $d_k$ and $d_v$. Write two numbers as
    `my_cost = (a, b)`:

    - `a`: the operations of the two matrix products, a multiplication and its addition counted as 2;
    - `b`: how many numbers are moved between memory and processor if a first step makes the weights (scores and softmax at once), and
      a
      second step the output. Each reads what it needs and writes what it makes.

    An expression in the names is welcome.
    """
    return (2 * T_q * T_k * (d_k + d_v), (T_q + T_k) * (d_k + d_v) + 2 * T_q * T_k)
