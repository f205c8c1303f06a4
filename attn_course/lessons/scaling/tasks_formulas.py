"""The graded tasks on the scale that are answered in LaTeX: the variance of a score line by line, and three formulas."""

from typing import Any

import numpy as np

from attn_course.formulas import column, columns, derivative, matrix, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _two_random_vectors(rng: np.random.Generator, d_k: int) -> dict[str, Any]:
    """Every outcome of q and of k with its probability, and their means and covariances."""
    givens: dict[str, Any] = {"d_k": d_k}
    for name, chance, outcomes in (("q", "p", d_k + 1), ("k", "r", d_k + 2)):
        table, weights = 0.6 + rng.normal(size=(outcomes, d_k)), rng.dirichlet(np.full(outcomes, 4.0))
        givens |= {name: columns(table), chance: vector(weights), f"m_{name}": column(np.average(table, axis=0, weights=weights))}
        givens[f"S_{name}"] = np.cov(table, rowvar=False, bias=True, aweights=weights)
    return givens


VARIANCE = Task(
    id="score-variance-by-lines",
    title="The variance of a score, line by line",
    entry="my_derivation",
    kind="derivation",
    equation="score-variance-from-covariances",
    points=3,
    difficulty=4,
    minutes=15,
    trains="squares of sums, and where independence enters",
    symbols=("p", "r", "q", "k", "m_q", "m_k", "S_q", "S_k", "d_k"),
    functions=("tr",),
    cases=at_sizes("d_k", _two_random_vectors),
    least_steps=4,
    answer=[
        r"\sum_a \sum_b p_a r_b \bigl( \sum_i q_{ai} k_{bi} \bigr)^2 - (m_q \cdot m_k)^2",
        r"\sum_a \sum_b p_a r_b \sum_i \sum_j q_{ai} k_{bi} q_{aj} k_{bj} - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j \bigl( \sum_a p_a q_{ai} q_{aj} \bigr) \bigl( \sum_b r_b k_{bi} k_{bj} \bigr) - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j \bigl( (S_q)_{ij} + (m_q)_i (m_q)_j \bigr) \bigl( (S_k)_{ij} + (m_k)_i (m_k)_j \bigr) - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (S_k)_{ij} (m_q)_j + (m_k)_i (S_q)_{ij} (m_k)_j \bigr)",
        r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
    ],
    wrong=[
        Wrong(
            "the square of a sum taken for a sum of squares",
            r"\sum_a \sum_b p_a r_b \sum_i q_{ai}^2 k_{bi}^2 - (m_q \cdot m_k)^2",
            "the square of a sum holds every pair of its terms, not only each with itself: it takes a second index, j",
        ),
        Wrong(
            "the mean square",
            r"\sum_a \sum_b p_a r_b \bigl( \sum_i q_{ai} k_{bi} \bigr)^2",
            "that is the mean of the square; the square of the mean, which a variance subtracts, is missing here",
        ),
        Wrong(
            "mean products taken for covariances",
            r"\mathrm{tr}(S_q S_k) - (m_q \cdot m_k)^2",
            "the mean of q_i q_j is the covariance plus the product of the two means, and likewise for k",
        ),
        Wrong(
            "the means forgotten",
            r"\mathrm{tr}(S_q S_k)",
            "of the four products, the square of the mean cancels one; two others hold a mean and stay",
        ),
        Wrong(
            "only one of the two mixed terms",
            r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q",
            "there are two mixed terms: the mean of q with the covariance of k, and the mean of k with the covariance of q",
        ),
        Wrong(
            "each mean with its own covariance",
            r"\mathrm{tr}(S_q S_k) + m_q^\top S_q m_q + m_k^\top S_k m_k",
            "a product of a factor of q and a factor of k pairs the mean of one with the covariance of the other",
        ),
        Wrong(
            "the traces multiplied",
            r"\mathrm{tr}(S_q)\, \mathrm{tr}(S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
            "the sum of (S_q)_ij (S_k)_ij over i and j is the trace of the product; the product of traces pairs all i with all j",
        ),
        Wrong(
            "only the terms with i = j",
            r"\sum_i \bigl( (S_q)_{ii} (S_k)_{ii} + (m_q)_i^2 (S_k)_{ii} + (m_k)_i^2 (S_q)_{ii} \bigr)",
            "that would do for uncorrelated entries; here the terms with i other than j do not vanish",
        ),
    ],
    hints=[
        "Write the square of the sum as a double sum over i and j. Which factors of a term depend on a only, and which on b only?",
        "Take the sums over a and b inside. What they leave are means of products, and the moments say what those are.",
        "Multiply the two brackets out. One of the four products is the double sum of (m_q)_i (m_k)_i (m_q)_j (m_k)_j: a square.",
    ],
)


def _weights_at_a_scale(rng: np.random.Generator, n: int) -> dict[str, Any]:
    s, c = rng.normal(size=n), rng.uniform(0.4, 0.8)
    slope = derivative(lambda scale: softmax(scale * s), c)
    return {"s": column(s), "c": c, "w": column(softmax(c * s)), "n": n, "g": column(slope)}


SCALE_SLOPE = Task(
    id="weights-under-a-scale",
    title="Which weights grow with the scale",
    entry="my_slope",
    kind="formula",
    equation="softmax-derivative",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the chain rule through a softmax",
    symbols=("w", "s", "c", "n"),
    functions=("diag", r"\ln"),
    left="g_i",
    cases=at_sizes("n", _weights_at_a_scale),
    answer=r"w_i \bigl( s_i - \sum_j w_j s_j \bigr)",
    wrong=[
        Wrong(
            "the denominator forgotten",
            r"w_i s_i",
            "c stands in every term of the sum beneath as well: its derivative is missing",
        ),
        Wrong(
            "each weight on its own",
            r"w_i (1 - w_i) s_i",
            "that would be right if c multiplied s_i alone; it multiplies the other scores too, and they push w_i as well",
        ),
        Wrong(
            "the scores not weighted",
            r"w_i \bigl( s_i - \sum_j s_j \bigr)",
            "the derivative of ln of the sum beneath is the mean of the scores under the weights: each s_j comes with w_j",
        ),
        Wrong(
            "the plain mean",
            r"w_i \Bigl( s_i - \frac{1}{n} \sum_j s_j \Bigr)",
            "it is a mean of the scores, but one under the weights: a score that holds more weight counts more",
        ),
        Wrong(
            "a factor c too many",
            r"c\, w_i \bigl( s_i - \sum_j w_j s_j \bigr)",
            "a derivative by a score leaves the factor c; this one is by c, which leaves the scores",
        ),
        Wrong(
            "the derivative by the score",
            r"c\, w_i (1 - w_i)",
            "that is the derivative of w_i by its own score s_i; here c varies, and with it all products c s_j",
        ),
        Wrong(
            "the derivative of the logarithm",
            r"s_i - \sum_j w_j s_j",
            "that is the derivative of ln w_i; multiply it by w_i",
        ),
        Wrong(
            "the sign turned round",
            r"w_i \bigl( \sum_j w_j s_j - s_i \bigr)",
            "the largest score gains weight when c grows: its derivative is positive",
        ),
    ],
    hints=[
        "Write ln w_i, {eq}`log-softmax`. In which of its two terms does c stand, and how often?",
        "In the second term c stands in every exponent: differentiate the logarithm of that sum by the chain rule.",
        "A derivative of ln w_i becomes one of w_i by a factor. As a test of your result: all g_i together must be 0.",
    ],
)


def _rows_of_keys(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Equally likely rows of n scores with one mean, one variance and one covariance; and the mean of their variances."""
    v, c, m = rng.uniform(1.0, 2.0), rng.uniform(0.2, 0.7), rng.normal()
    root = np.linalg.cholesky(np.full((n, n), c) + np.diag(np.full(n, v - c)))
    rows = m + np.sqrt(n) * np.vstack([root.T, -root.T])
    return {"n": n, "v": v, "c": c, "r": np.mean([row.var() for row in rows])}


SAMPLED_ROW = Task(
    id="sampled-row-spread",
    title="What a row of n keys shows",
    entry="my_spread",
    kind="formula",
    equation="spread-within-a-row",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the variance of a sample, and what its members share",
    symbols=("n", "v", "c"),
    functions=(r"\sqrt",),
    left="r",
    cases=at_sizes("n", _rows_of_keys),
    answer=r"\Bigl( 1 - \frac{1}{n} \Bigr) (v - c)",
    wrong=[
        Wrong("as if the mean were known", r"v", "the row subtracts its own mean, not that of all scores, and its own mean varies too"),
        Wrong(
            "as if the keys were independent",
            r"\Bigl( 1 - \frac{1}{n} \Bigr) v",
            "that is right for c = 0: the mean square of the row's mean also holds products of different scores",
        ),
        Wrong(
            "the row's own mean taken for the true one",
            r"v - c",
            "what all scores share is gone, but the row's own mean takes a further part away: think of n = 1",
        ),
        Wrong(
            "n of the covariances too many",
            r"v - \frac{v}{n} - c",
            "a double sum over n scores has n terms with i = j and n (n - 1) others; you counted n^2 others",
        ),
        Wrong(
            "each pair counted once",
            r"v - \frac{v}{n} - \frac{(n - 1) c}{2 n}",
            "the double sum meets each pair of different scores twice, as (i, j) and as (j, i)",
        ),
        Wrong("the sign of the covariance", r"\Bigl( 1 - \frac{1}{n} \Bigr) (v + c)", "what the scores share makes the row narrower"),
        Wrong(
            "the variance of the row's mean",
            r"\frac{v + (n - 1) c}{n}",
            "that is the variance of the row's mean, which is to be subtracted from that of one score",
        ),
        Wrong(
            "divided by n - 1",
            r"\frac{n}{n - 1} (v - c)",
            "the row's variance is too small, not too large, and here its squares are divided by n",
        ),
    ],
    hints=[
        "Take the mean of each of the two terms. You may set m = 0: why?",
        "Write the square of the sum as a double sum. How many of its terms are s_i^2, and how many are products of different scores?",
        "The first term gives v. The second gives the variance of the row's mean: so many terms with v, so many with c, over n^2.",
    ],
)


def _scores_under_a_loss(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Scores Z = c X W_Q K^T under a loss whose gradient by Z is D, and the gradient of that loss by W_Q."""
    T_q, T_k, d_model, d_k = sizes.values()
    X, K, D = rng.normal(size=(T_q, d_model)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_q, T_k))
    c = rng.uniform(0.3, 0.7)
    slope = derivative(lambda weights: np.sum(D * (c * (X @ weights @ K.T))), rng.normal(size=(d_model, d_k)))
    return {"X": matrix(X), "K": matrix(K), "D": matrix(D), "c": c, "G": matrix(slope)}


QUERY_GRADIENT = Task(
    id="query-weights-gradient",
    title="The gradient that carries the scale",
    entry="my_gradient",
    kind="formula",
    equation="scale-as-reparametrisation",
    points=2,
    difficulty=3,
    minutes=10,
    trains="a matrix product and its gradient, with a factor",
    symbols=("X", "K", "D", "c"),
    left="G",
    cases=at_sizes("T_q T_k d_model d_k", _scores_under_a_loss),
    answer=r"c\, X^\top D K",
    wrong=[
        Wrong(
            "the factor forgotten",
            r"X^\top D K",
            "that is the gradient by W', which is multiplied by no c in the scores; W_Q is",
        ),
        Wrong(
            "the factor twice",
            r"c^2 X^\top D K",
            "c enters a second time only when the change of W_Q is carried over to W'; in the gradient by W_Q it stands once",
        ),
        Wrong(
            "divided by the factor",
            r"\frac{1}{c} X^\top D K",
            "a small c makes the scores react less to W_Q, so its gradient is smaller: multiply by c",
        ),
        Wrong(
            "the sign turned round",
            r"-c\, X^\top D K",
            "the minus belongs to the step of gradient descent, not to the gradient",
        ),
    ],
    hints=[
        "Which scores does the entry (a, b) of W_Q reach, and with which factor?",
        "Z_ij holds X_ia (W_Q)_ab K_jb, times c. Multiply by D_ij and sum over i and j.",
        r"`c ... D ...`: which of the two neighbours must be transposed so that the shape is (d_model, d_k)?",
    ],
)
