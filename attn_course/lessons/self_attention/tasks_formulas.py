"""The tasks on self-attention that are answered in LaTeX: formulas for scores, and for what a token gets back."""

import math
from typing import Any

import numpy as np

from attn_course.formulas import derivative, matrix, row, rows, vector
from attn_course.reference import rope, scaled_dot_scores
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _scores(rng: np.random.Generator, n: int, d_model: int, d_k: int) -> dict[str, Any]:
    X, (W_Q, W_K) = rng.normal(size=(n, d_model)), rng.normal(size=(2, d_model, d_k))
    return {"X": X, "x": rows(X), "W_Q": W_Q, "W_K": W_K, "d_k": d_k, "s": scaled_dot_scores(X @ W_Q, X @ W_K)}


my_asymmetry = asked_formula(
    "asymmetry-of-two-scores",
    "How differently two tokens score each other",
    entry="my_asymmetry",
    asks=r"""
        Token $i$ is the row $x_i$ of $X$, a row vector; the scores of self-attention with the projections $W_Q$ and $W_K$ are
        $s_{ij}$, the query of token $i$ against the key of token $j$, divided by $\sqrt{d_k}$. Write a formula in LaTeX for

        $$s_{ij} - s_{ji}$$

        as it holds for all $i$ and $j$: with tokens, projections and $d_k$, in matrix products or entry by entry.
    """,
    equation="asymmetry-of-scores",
    points=2,
    difficulty=2,
    minutes=7,
    trains="a matrix product, read entry by entry",
    answer=r"\frac{x_i (W_Q W_K^\top - W_K W_Q^\top) x_j^\top}{\sqrt{d_k}}",
    symbols=("x", "X", "W_Q", "W_K", "d_k"),
    functions=(r"\sqrt",),
    left="s_{ij} - s_{ji}",
    cases=at_sizes("n d_model d_k", _scores),
    slips=r"""
        symmetric scores
            W_Q W_K^\top - W_K W_Q^\top -> W_Q W_K^\top - W_Q W_K^\top
            scores are symmetric without projections; here x_i is projected by W_Q in one of the two scores, and by W_K in the other
        the sign
            W_Q W_K^\top - W_K W_Q^\top -> W_K W_Q^\top - W_Q W_K^\top
            in s_ij token i asks: its projection is W_Q, so W_Q W_K^T is the product with the plus
        the score alone
            (W_Q W_K^\top - W_K W_Q^\top) -> W_Q W_K^\top
            that is s_ij; the score s_ji, in which token j asks, is still to be subtracted
        twice the score
            {x_i (W_Q W_K^\top - W_K W_Q^\top) -> {2 x_i W_Q W_K^\top
            s_ji is not -s_ij: exchange the tokens in the score, and see which matrix then stands between x_i and x_j
        a plus between the two
            W_K^\top - W_K -> W_K^\top + W_K
            that is the sum of the two scores, which does not change when the tokens are exchanged; the difference changes its sign
        divided by d_k, not by its root
            \sqrt{d_k} -> d_k
            scores are divided by the root of d_k, {eq}`bilinear-score`
        no scale
            {\sqrt{d_k}} -> {1}
            both scores are divided by the root of d_k, so their difference is too
        each projection with itself
            W_Q W_K^\top - W_K W_Q^\top -> W_Q W_Q^\top - W_K W_K^\top
            in a score a query meets a key, so each of the two products holds one W_Q and one W_K
    """,
    hints=r"""
        Write both scores with {eq}`bilinear-score`. Which token asks in the second one?
        A score is a single number, so it equals its own transpose. Transpose the second score, and x_i stands on the left there too.
        Between `x_i` and `x_j^\top` stands a difference of two products of the projections; the second is the transpose of the first.
    """,
    why=r"""
        A number is its own transpose: $x_j W_Q W_K^\top x_i^\top = x_i W_K W_Q^\top x_j^\top$. Subtract that from
        {eq}`bilinear-score`. All of {eq}`asymmetry-of-scores` lies in the matrix in the middle, which is the same for every pair of tokens.
    """,
)


def _rotary_score(rng: np.random.Generator, h: int) -> dict[str, Any]:
    q, k = rng.normal(size=(2, h, 2))
    theta, pace, p, offsets = rng.uniform(5, 50), rng.uniform(0.4, 0.8), int(rng.integers(4, 30)), np.arange(-4, 5)
    queries = rope(np.tile(q.ravel(), (len(offsets), 1)), pace * (p + offsets), theta, layout="interleaved")
    key = rope(k.reshape(1, -1), pace * np.array([p]), theta, layout="interleaved")
    frequencies = pace * theta ** (-np.arange(h) / h)  # in steps of one position the first is not 1
    return {"q": q, "k": k, r"\omega": vector(frequencies), "h": h, "S": vector((queries @ key.T)[:, 0], start=-4)}


my_rotary_score = asked_formula(
    "rotary-score-by-offset",
    "A rotary score knows the offset only",
    entry="my_rotary_score",
    asks=r"""
        Query and key consist of $h$ pairs of features; pair $m$ of the query is the row $q_m = (q_{m1}, q_{m2})$, and $k_m$ that of the
        key. RoPE turns pair $m$ of a vector at position $t$ by the angle $\omega_m t$, {eq}`rotations-compose`. The query stands at
        position $p + r$ and the key at $p$. Write a formula in LaTeX for the score

        $$S_r = \text{dot product of the turned query and the turned key}$$

        for every $r$, also a negative one, without $p$.
    """,
    equation="rotated-pair-score",
    points=3,
    difficulty=3,
    minutes=10,
    trains="sums of angles",
    answer=r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_m r) + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_m r) \right)",
    symbols=("q", "k", r"\omega", "h"),
    functions=(r"\cos", r"\sin"),
    left="S_r",
    cases=at_sizes("h", _rotary_score),
    slips=r"""
        the cosine alone
            ` + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_m r)` ->
            that holds only where q_m and k_m are parallel; turning one of them also brings in a term with the sine
        turned the other way
            q_{m1} k_{m2} - q_{m2} k_{m1} -> q_{m2} k_{m1} - q_{m1} k_{m2}
            that is the score if the query stands r places before the key; the sine changes its sign when the offset does
        a plus in the cross term
            k_{m2} - q -> k_{m2} + q
            the first row of a rotation holds minus sine, the second plus sine: the two cross products come with opposite signs
        sine and cosine exchanged
            \cos(\omega_m r) -> \sin(\omega_m r) ;; k_{m1}) \sin -> k_{m1}) \cos
            for r = 0 the score must be the plain dot product of q and k: which of the two functions is 1 there?
        no positions
            \cos(\omega_m r) + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_m r) ->
            that is the score for r = 0 only: both are then turned by the same angles
        one frequency for all pairs
            all \omega_m -> \omega_1
            each pair turns at its own speed: the frequency carries the index of the pair
        the pairs without the cross products
            (q_{m1} k_{m2} - q_{m2} k_{m1}) -> (q_m \cdot k_m)
            the sine does not come with the dot product: turn k by a quarter, and see which entries of q and k meet
    """,
    hints="""
        Look at one pair first. Turn the query by an angle a and the key by b, and multiply: on which angle does the product depend?
        Only the difference of the angles counts, so leave the key as it is, turn the query by its frequency times r, and multiply out.
        Each pair gives its dot product times a cosine, plus a difference of two products times a sine. Then sum over the pairs.
    """,
    why=r"""
        By {eq}`rotations-compose` only the difference of the angles, $\omega_m r$, is left of each pair, so
        {eq}`rotated-pair-score` holds for each, with $u - t = -r$; different pairs never meet in a dot product. Without $p$ in the
        formula a score cannot depend on where in the text the two stand.
    """,
)


def _score_with_itself(rng: np.random.Generator, d_model: int, d_k: int) -> dict[str, Any]:
    x, (W_Q, W_K) = rng.normal(size=d_model), rng.normal(size=(2, d_model, d_k))
    slopes = derivative(lambda moved: float((moved @ W_Q) @ (moved @ W_K)) / math.sqrt(d_k), x)
    return {"x": row(x), "W_Q": matrix(W_Q), "W_K": matrix(W_K), "d_k": d_k, "g": row(slopes)}


my_self_gradient = asked_formula(
    "gradient-of-self-score",
    "A token moves its own score twice",
    entry="my_self_gradient",
    asks=r"""
        A token, the row $x$, is query and key at once: its score with itself is the dot product of $x W_Q$ and $x W_K$, divided by
        $\sqrt{d_k}$. Write a formula in LaTeX for the gradient of this score,

        $$g = \text{the row of its derivatives by the entries of } x$$

        with $x$, the projections and $d_k$.
    """,
    equation="gradients-through-projections",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the product rule with rows and matrices",
    answer=r"\frac{1}{\sqrt{d_k}} x (W_Q W_K^\top + W_K W_Q^\top)",
    symbols=("x", "W_Q", "W_K", "d_k"),
    functions=(r"\sqrt",),
    left="g",
    cases=at_sizes("d_model d_k", _score_with_itself),
    slips=r"""
        the query's part alone
            (W_Q W_K^\top + W_K W_Q^\top) -> W_K W_Q^\top
            that is what comes back through the query; the token is the key as well, and that gives a second term
        the key's part alone
            (W_Q W_K^\top + W_K W_Q^\top) -> W_Q W_K^\top
            that is what comes back through the key; the token is the query as well, and that gives a second term
        twice the key's part
            \frac{1} -> \frac{2} ;; (W_Q W_K^\top + W_K W_Q^\top) -> W_Q W_K^\top
            the two parts are equal only where W_Q W_K^T is symmetric; write each of them down for itself
        twice the query's part
            \frac{1} -> \frac{2} ;; (W_Q W_K^\top + W_K W_Q^\top) -> W_K W_Q^\top
            the two parts are equal only where W_Q W_K^T is symmetric: through the key comes back another one
        the difference of the two parts
            W_K^\top + W_K -> W_K^\top - W_K
            the gradients of the two roles add up; the difference belongs to the asymmetry of two scores, {eq}`asymmetry-of-scores`
        each projection with itself
            W_Q W_K^\top + W_K W_Q^\top -> W_Q W_Q^\top + W_K W_K^\top
            what comes back to the query is the key, x W_K, and it returns through W_Q: each product holds one W_Q and one W_K
        no scale
            \frac{1}{\sqrt{d_k}} ->
            the score is divided by the root of d_k, so its gradient is too
    """,
    hints="""
        How often does x stand in the score? Move one occurrence at a time, and hold the other fixed.
        With the key held fixed the score is x times a column; its gradient is that column, written as a row. The same with the query.
        `x` times a sum of two products of the projections, of which one is the transpose of the other, and the scale in front.
    """,
    why=r"""
        The gradient of the score by the query is the key over $\sqrt{d_k}$, and the other way round. Through the projections,
        {eq}`gradients-through-projections`, come $x W_K W_Q^\top$ and $x W_Q W_K^\top$, and they add up: the token learns as one that asks
        and as one that is found.
    """,
)
