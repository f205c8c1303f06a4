"""The tasks on additive attention that are answered in LaTeX: two gradients and a limit."""

from typing import Any

import numpy as np

from attn_course.formulas import column, derivative, vector
from attn_course.reference import additive_scores, softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _weights(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw projections that leave the units between straight and saturated, and a score vector."""
    return rng.normal(size=(d_q, d_h)) / np.sqrt(2 * d_q), rng.normal(size=(d_k, d_h)) / np.sqrt(2 * d_k), rng.normal(size=d_h)


def _one_pair(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Draw a query, a key and weights, and return the two and what an answer may hold."""
    q, k, (w_q, w_k, v) = rng.normal(size=d_q), rng.normal(size=d_k), _weights(rng, d_q, d_k, d_h)
    return q, k, {"q": column(q), "k": column(k), "W_Q": w_q, "W_K": w_k, "v": column(v)}


def _score(q: np.ndarray, k: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, v: np.ndarray) -> float:
    return float(additive_scores(q[None], k[None], w_q, w_k, v)[0, 0])


def _projection_gradient(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    q, k, given = _one_pair(rng, d_q, d_k, d_h)
    return {**given, "G": derivative(lambda moved: _score(q, k, moved, given["W_K"], given["v"].raw), given["W_Q"])}


my_entry_gradient = asked_formula(
    "gradient-of-query-projection",
    "One entry of a projection",
    entry="my_entry_gradient",
    asks=r"""
        One query and one key: $e = v^\top \tanh(W_Q^\top q + W_K^\top k)$, with columns $q$, $k$ and $v$, {eq}`additive-score`. Write a
        formula in LaTeX for

        $$G_{ar} = \frac{\partial e}{\partial (W_Q)_{ar}}$$

        as it holds for every row $a$ and every column $r$ of $W_Q$. Entry $r$ of a column in parentheses is `(...)_r`; the same goes for
        `\tanh(...)_r`.
    """,
    equation="additive-derivative-by-query",
    points=2,
    difficulty=2,
    minutes=7,
    trains="the chain rule through tanh",
    answer=r"q_a v_r \left( 1 - \tanh(W_Q^\top q + W_K^\top k)_r^2 \right)",
    symbols=("q", "k", "W_Q", "W_K", "v"),
    functions=(r"\tanh",),
    left="G_{ar}",
    cases=at_sizes("d_q d_k d_h", _projection_gradient),
    slips=r"""
        tanh itself for its derivative
            \left( 1 - \tanh(W_Q^\top q + W_K^\top k)_r^2 \right) -> \tanh(W_Q^\top q + W_K^\top k)_r
            the derivative of tanh is 1 minus its square: it is largest where tanh is 0, and 0 where tanh is near 1 or -1
        the square forgotten
            _r^2 -> _r
            the derivative of tanh is 1 minus its square
        the bend forgotten
            \left( 1 - \tanh(W_Q^\top q + W_K^\top k)_r^2 \right) ->
            v_r multiplies tanh of a sum: the chain rule brings the derivative of tanh
        the score vector forgotten
            v_r ->
            that is the derivative of unit r; the score holds this unit times v_r
        summed over the units
            v_r -> \sum_u v_u ;; _r^2 -> _u^2
            the entry in row a and column r of W_Q stands in the sum of unit r only, so no other unit moves
        the derivative by the query
            q_a -> (W_Q)_{ar}
            that is what unit r gives to the derivative by q_a; here the entry of W_Q moves, and q_a is what it is multiplied by
        the second derivative of tanh
            q_a v_r -> -2 q_a v_r \tanh(W_Q^\top q + W_K^\top k)_r
            that differentiates tanh twice; once is enough here
        the key left out
            + W_K^\top k ->
            the slope is taken where unit r stands, and there the projection of the key counts too
    """,
    hints="""
        In which units does the entry in row a and column r of W_Q stand, and what is it multiplied by there?
        Only unit r moves. The chain rule multiplies the factor in front of it, the slope of tanh, and what the entry is multiplied by.
        A product of three: an entry of the query, an entry of the score vector, and 1 minus the square of a hidden unit.
    """,
    why="""
        The entry $(W_Q)_{ar}$ stands in unit $r$ alone, multiplied by $q_a$. So of the sum over the units one term is left, $v_r$ times the
        slope $1 - t_r^2$ times $q_a$: the same slope as in {eq}`additive-derivative-by-query`. A saturated unit teaches its column nothing.
    """,
)


def _weight_gradient(rng: np.random.Generator, n: int, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    q, keys, (w_q, w_k, v) = rng.normal(size=d_q), rng.normal(size=(n, d_k)), _weights(rng, d_q, d_k, d_h)

    def weights(query: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(additive_scores(query[None], keys, w_q, w_k, v))[0])

    given = {r"\alpha": vector(weights(q)), "t": np.tanh(q @ w_q + keys @ w_k), "W_Q": w_q, "v": column(v), "n": n}
    return {**given, "D": derivative(weights, q)}


my_weight_gradient = asked_formula(
    "query-moves-weight",
    "How the query moves a weight",
    entry="my_weight_gradient",
    asks=r"""
        A query $q$ weighs $n$ keys by additive attention: $\alpha_j$ is the weight of key $j$, and $t_{jr}$ the value of hidden unit $r$
        for it, entry $r$ of $\tanh(W_Q^\top q + W_K^\top k_j)$. Write a formula in LaTeX for

        $$D_{ja} = \frac{\partial \alpha_j}{\partial q_a}$$

        as it holds for every key $j$ and every entry $a$ of the query, with these weights, these units, $W_Q$ and the score vector $v$.
    """,
    equation="additive-derivative-by-query",
    points=3,
    difficulty=4,
    minutes=12,
    trains="two saturations in one gradient",
    answer=r"\alpha_j \sum_r (W_Q)_{ar} v_r \left( \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 \right)",
    symbols=(r"\alpha", "t", "W_Q", "v", "n"),
    left="D_{ja}",
    cases=at_sizes("n d_q d_k d_h", _weight_gradient),
    slips=r"""
        the gradient of the score
            \alpha_j \sum_r -> \sum_r ;; \sum_l \alpha_l t_{lr}^2 -> 1
            that is the derivative of the score of key j; the weight is a softmax of all scores, and all of them move
        the other scores held fixed
            \alpha_j \sum_r -> \alpha_j (1 - \alpha_j) \sum_r ;; \sum_l \alpha_l t_{lr}^2 -> 1
            that moves the score of key j alone; the query moves the scores of all keys, {eq}`softmax-derivative`
        the sum beneath forgotten
            \sum_l \alpha_l t_{lr}^2 -> 1
            the sum beneath the fraction bar of the softmax moves as well: take away the mean of what comes from all keys
        a plain mean
            \sum_l \alpha_l -> \frac{1}{n} \sum_l
            the mean that the softmax takes away is weighted: key l counts with its weight, not with 1 / n
        the weight in front forgotten
            \alpha_j \sum_r -> \sum_r
            that is the derivative of the logarithm of the weight; multiply it by the weight
        the square of the mean
            \sum_l \alpha_l t_{lr}^2 -> \left( \sum_l \alpha_l t_{lr} \right)^2
            the slopes 1 - t^2 of all keys are averaged, so the squares are: square first, then take the mean
        the score vector forgotten
            v_r ->
            a score is the sum of v_r times unit r, so v_r stands in its derivative too
        tanh itself for its derivative
            \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 -> t_{jr} - \sum_l \alpha_l t_{lr}
            t is tanh itself; the query acts through its derivative, 1 - t^2
    """,
    hints="""
        First differentiate the score of key j by one entry of the query. Then: what does a softmax do when all its scores change?
        By {eq}`softmax-derivative` a weight changes by itself times the change of its score, less the weighted mean of all changes.
        The weight times a sum over the units; each term is a projection times v_r times a difference: a mean of squares less one
            square.
    """,
    why=r"""
        By {eq}`softmax-derivative` the weight changes by $\alpha_j (g_j - \sum_l \alpha_l g_l)$, where $g_j$ is the derivative of score
        $j$, {eq}`additive-derivative-by-query`. The 1 of the slope $1 - t_{jr}^2$ is the same for all keys and cancels. So the query acts
        through *differences* of $t^2$: they are tiny where all units are small, and nothing is left of them where all are saturated.
    """,
)


def _saturated(rng: np.random.Generator, d_q: int, d_k: int, d_h: int) -> dict[str, Any]:
    while True:  # until some unit ends at -1, one against its entry of v, one against the query's part, one against the key's part
        q, k, given = _one_pair(rng, d_q, d_k, d_h)
        w_q, w_k, v = given["W_Q"], given["W_K"], given["v"].raw
        sums = q @ w_q + k @ w_k
        if all((sums * side < 0).any() for side in (1, v, q @ w_q, k @ w_k)):
            break
    nearest = float(np.abs(sums).min())
    return {**given, "L": _score(50 / nearest * q, 50 / nearest * k, w_q, w_k, v)}


my_limit = asked_formula(
    "saturated-additive-score",
    "What a saturated score is",
    entry="my_limit",
    asks=r"""
        Let both vectors grow: the score of $c\,q$ and $c\,k$, by {eq}`additive-score` with the columns $q$, $k$ and $v$ and without a bias,
        tends to a limit for $c \to \infty$. Write a formula in LaTeX for

        $$L = \lim_{c \to \infty} e(c\,q, c\,k)$$

        where no entry of $W_Q^\top q + W_K^\top k$ is 0. Bars, `|x|`, are an absolute value; a condition in brackets, `[x > 0]`, is 1 if
        true, else 0.
    """,
    equation="additive-score-bound",
    points=2,
    difficulty=3,
    minutes=8,
    trains="limits of tanh, unit by unit",
    answer=r"\sum_r v_r \frac{(W_Q^\top q + W_K^\top k)_r}{|(W_Q^\top q + W_K^\top k)_r|}",
    symbols=("q", "k", "W_Q", "W_K", "v"),
    left="L",
    cases=at_sizes("d_q d_k d_h", _saturated),
    slips=r"""
        every unit at plus one
            \frac{(W_Q^\top q + W_K^\top k)_r}{|(W_Q^\top q + W_K^\top k)_r|} ->
            a unit goes to -1 where its sum is negative: the sign of the sum decides, unit by unit
        the bound taken for the limit
            v_r \frac{(W_Q^\top q + W_K^\top k)_r}{|(W_Q^\top q + W_K^\top k)_r|} -> |v_r|
            that is the bound of {eq}`additive-score-bound`; it is reached only if each unit goes to the side that v_r has
        nothing left
            v_r \frac -> 0 \frac
            only the gradient goes to 0: the units stay at 1 or -1, and the score is the sum of what v makes of them
        steps from 0 to 1
            \frac{(W_Q^\top q + W_K^\top k)_r}{|(W_Q^\top q + W_K^\top k)_r|} -> [(W_Q^\top q + W_K^\top k)_r > 0]
            where the sum is negative tanh goes to -1, not to 0
        the sign of the whole
            \sum_r v_r \frac{( -> \frac{v^\top ( ;; )_r}{|( -> )}{|v^\top ( ;; )_r|} -> )|}
            each unit is bent before v adds them up: the sign is taken inside the sum over the units
        query and key bent apart
            -> \sum_r v_r \left( \frac{(W_Q^\top q)_r}{|(W_Q^\top q)_r|} + \frac{(W_K^\top k)_r}{|(W_K^\top k)_r|} \right)
            tanh takes the sum of the two projections, so there is one sign for each unit, not two
        not bent at all
            \sum_r v_r \frac{( -> v^\top ( ;; _r}{|(W_Q^\top q + W_K^\top k)_r|} ->
            tanh never leaves the range from -1 to 1, however large its argument becomes
        the key left out
            all + W_K^\top k ->
            the key grows as well, so the sum of both projections decides on which side unit r ends
    """,
    hints="""
        What does tanh(c x) tend to if c grows and x is positive? And if x is negative?
        Every unit ends at the sign of its own sum. A sign can be written as a number divided by its absolute value.
        A sum over the units: `v_r` times a fraction, with the sum of both projections above, and its absolute value below.
    """,
    why=r"""
        Unit $r$ is $\tanh(c\,x_r)$ with $x = W_Q^\top q + W_K^\top k$, and tends to the sign of $x_r$. Far away the score only says on
        which side of each unit the pair lies. The limit stays within the bound of {eq}`additive-score-bound`, and attains it if all signs
        agree with those of $v$.
    """,
)
