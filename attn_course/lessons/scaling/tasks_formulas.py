"""The tasks on the scale that are answered in LaTeX: the variance of a score line by line, and three formulas."""

from typing import Any

import numpy as np

from attn_course.formulas import column, columns, derivative, matrix, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _two_random_vectors(rng: np.random.Generator, d_k: int) -> dict[str, Any]:
    """Every outcome of q and of k with its probability, and their means and covariances."""
    givens: dict[str, Any] = {"d_k": d_k}
    for name, chance, outcomes in (("q", "p", d_k + 1), ("k", "r", d_k + 2)):
        table, weights = 0.6 + rng.normal(size=(outcomes, d_k)), rng.dirichlet(np.full(outcomes, 4.0))
        givens |= {name: columns(table), chance: vector(weights), f"m_{name}": column(np.average(table, axis=0, weights=weights))}
        givens[f"S_{name}"] = np.cov(table, rowvar=False, bias=True, aweights=weights)
    return givens


my_derivation = asked_formula(
    "score-variance-by-lines",
    "The variance of a score, line by line",
    entry="my_derivation",
    asks=r"""
        The lesson wrote the derivation with expectations; here every expectation is a sum, so that you see where independence is used. Let
        $q$ have the outcomes $q_1, q_2, \ldots$ with probabilities $p_a$, and $k$, independent of it, $k_1, k_2, \ldots$ with probabilities
        $r_b$; all are columns, and `q_{ai}` is entry $i$ of $q_a$. We know

        $$\sum_a p_a\, q_{ai} q_{aj} = (S_q)_{ij} + (m_q)_i (m_q)_j, \qquad \sum_b r_b\, k_{bi} k_{bj} = (S_k)_{ij} + (m_k)_i (m_k)_j.$$

        Write at least three lines of your own in LaTeX between the two below, each equal to the one before. The last line is
        {eq}`score-variance-from-covariances`, of the Deeper section {section}`matrices`.
    """,
    equation="score-variance-from-covariances",
    points=3,
    difficulty=4,
    minutes=15,
    trains="squares of sums, and where independence enters",
    answer=[
        r"\sum_a \sum_b p_a r_b \left( \sum_i q_{ai} k_{bi} \right)^2 - (m_q \cdot m_k)^2",
        r"\sum_a \sum_b p_a r_b \sum_i \sum_j q_{ai} k_{bi} q_{aj} k_{bj} - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j \left( \sum_a p_a q_{ai} q_{aj} \right) \left( \sum_b r_b k_{bi} k_{bj} \right) - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j ((S_q)_{ij} + (m_q)_i (m_q)_j) ((S_k)_{ij} + (m_k)_i (m_k)_j) - (m_q \cdot m_k)^2",
        r"\sum_i \sum_j ((S_q)_{ij} (S_k)_{ij} + (m_q)_i (S_k)_{ij} (m_q)_j + (m_k)_i (S_q)_{ij} (m_k)_j)",
        r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
    ],
    symbols=("p", "r", "q", "k", "m_q", "m_k", "S_q", "S_k", "d_k"),
    functions=("tr",),
    cases=at_sizes("d_k", _two_random_vectors),
    least_steps=4,
    slips=r"""
        the square of a sum taken for a sum of squares
            line 2: \sum_i \sum_j q_{ai} k_{bi} q_{aj} k_{bj} -> \sum_i q_{ai}^2 k_{bi}^2
            the square of a sum holds every pair of its terms, not only each with itself: it takes a second index, j
        the mean square
            line 2: - (m_q \cdot m_k)^2 ->
            that is the mean of the square; the square of the mean, which a variance subtracts, is missing here
        mean products taken for covariances
            line 6: + m_q^\top S_k m_q + m_k^\top S_q m_k -> - (m_q \cdot m_k)^2
            the mean of q_i q_j is the covariance plus the product of the two means, and likewise for k
        the means forgotten
            line 6: + m_q^\top S_k m_q + m_k^\top S_q m_k ->
            of the four products, the square of the mean cancels one; two others hold a mean and stay
        only one of the two mixed terms
            line 6: + m_k^\top S_q m_k ->
            there are two mixed terms: the mean of q with the covariance of k, and the mean of k with the covariance of q
        each mean with its own covariance
            line 6: m_q^\top S_k m_q + m_k^\top S_q m_k -> m_q^\top S_q m_q + m_k^\top S_k m_k
            a product of a factor of q and a factor of k pairs the mean of one with the covariance of the other
        the traces multiplied
            line 6: \mathrm{tr}(S_q S_k) -> \mathrm{tr}(S_q)\, \mathrm{tr}(S_k)
            the sum of (S_q)_ij (S_k)_ij over i and j is the trace of the product; the product of traces pairs all i with all j
        only the terms with i = j
            line 5: \sum_i \sum_j -> \sum_i ;; all {ij} -> {ii} ;; all )_j -> )_i
            that would do for uncorrelated entries; here the terms with i other than j do not vanish
    """,
    hints="""
        Write the square of the sum as a double sum over i and j. Which factors of a term depend on a only, and which on b only?
        Take the sums over a and b inside. What they leave are means of products, and the moments say what those are.
        Multiply the two brackets out. One of the four products is the double sum of (m_q)_i (m_k)_i (m_q)_j (m_k)_j: a square.
    """,
    why=r"""
        The square of a sum needs two indices. Independence is the step from the second line to the third: a sum over $a$ of what holds
        $q$ and a sum over $b$ of what holds $k$ come apart. The moments enter, and of the four products one is $(m_q \cdot m_k)^2$, which
        cancels. For independent entries with mean 0 only $i = j$ is left, and the trace is $d_k\, \sigma_q^2\, \sigma_k^2$:
        {eq}`score-variance-from-deviations`.
    """,
)


def _weights_at_a_scale(rng: np.random.Generator, n: int) -> dict[str, Any]:
    s, c = rng.normal(size=n), rng.uniform(0.4, 0.8)
    slope = derivative(lambda scale: softmax(scale * s), c)
    return {"s": column(s), "c": c, "w": column(softmax(c * s)), "n": n, "g": column(slope)}


my_slope = asked_formula(
    "weights-under-a-scale",
    "Which weights grow with the scale",
    entry="my_slope",
    asks=r"""
        The weights of a query are $w = \sigma(c\,s)$: the softmax of its scores $s$, each multiplied by a scale $c > 0$. Write a formula in
        LaTeX for the derivative

        $$g_i = \frac{\partial w_i}{\partial c},$$

        only the right side, between `r"` and `"`, with `w` and `s` (entries `w_i`, `s_j`), and `c` and `n` if needed. Any form that is
        equal counts. Its sign tells which weights grow with $c$. To see how it is understood, `from attn_course import read` and call
        `read("weights-under-a-scale", my_slope)`. What cannot be read is not counted.
    """,
    equation="softmax-derivative",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the chain rule through a softmax",
    answer=r"w_i \left( s_i - \sum_j w_j s_j \right)",
    symbols=("w", "s", "c", "n"),
    functions=("diag", r"\ln"),
    left="g_i",
    cases=at_sizes("n", _weights_at_a_scale),
    slips=r"""
        the denominator forgotten
            \left( s_i - \sum_j w_j s_j \right) -> s_i
            c stands in every term of the sum beneath as well: its derivative is missing
        each weight on its own
            \left( s_i - \sum_j w_j s_j \right) -> (1 - w_i) s_i
            that would be right if c multiplied s_i alone; it multiplies the other scores too, and they push w_i as well
        the scores not weighted
            w_j s_j -> s_j
            the derivative of ln of the sum beneath is the mean of the scores under the weights: each s_j comes with w_j
        the plain mean
            \sum_j w_j s_j -> \frac{1}{n} \sum_j s_j
            it is a mean of the scores, but one under the weights: a score that holds more weight counts more
        a factor c too many
            w_i \left -> c\, w_i \left
            a derivative by a score leaves the factor c; this one is by c, which leaves the scores
        the derivative by the score
            \left( s_i - \sum_j w_j s_j \right) -> (1 - w_i)\, c
            that is the derivative of w_i by its own score s_i; here c varies, and with it all products c s_j
        the derivative of the logarithm
            w_i \left( -> \left(
            that is the derivative of ln w_i; multiply it by w_i
        the sign turned round
            s_i - \sum_j w_j s_j -> \sum_j w_j s_j - s_i
            the largest score gains weight when c grows: its derivative is positive
    """,
    hints="""
        Write ln w_i, {eq}`log-softmax`. In which of its two terms does c stand, and how often?
        In the second term c stands in every exponent: differentiate the logarithm of that sum by the chain rule.
        A derivative of ln w_i becomes one of w_i by a factor. As a test of your result: all g_i together must be 0.
    """,
    why=r"""
        By {eq}`log-softmax`, $\ln w_i = c\,s_i - \ln \sum_j e^{c s_j}$. The derivative by $c$ is $s_i$ minus the mean of the scores under
        the weights; multiply by $w_i$. So a larger scale gives more weight to every key whose score is above this mean, and takes it from
        the others. Unless all scores are equal, the mean itself rises with $c$, until only the largest score lies above it.
    """,
)


def _rows_of_keys(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Equally likely rows of n scores with one mean, one variance and one covariance; and the mean of their variances."""
    v, c, m = rng.uniform(1.0, 2.0), rng.uniform(0.2, 0.7), rng.normal()
    root = np.linalg.cholesky(np.full((n, n), c) + np.diag(np.full(n, v - c)))
    rows = m + np.sqrt(n) * np.vstack([root.T, -root.T])
    return {"n": n, "v": v, "c": c, "r": np.mean([row.var() for row in rows])}


my_spread = asked_formula(
    "sampled-row-spread",
    "What a row of n keys shows",
    entry="my_spread",
    asks=r"""
        A row holds the scores $s_1, \ldots, s_n$ of one query with $n$ random keys. Each score has the mean $m$ and the variance $v$, and
        any two different ones have the covariance $c$: it is 0 for independent keys, and not 0 for keys that share a random part. NumPy
        computes the variance of the row as $\frac{1}{n} \sum_i s_i^2 - \bigl( \frac{1}{n} \sum_i s_i \bigr)^2$. Write a formula in LaTeX
        for what this is on average,

        $$r = \mathbb{E}\Bigl[ \frac{1}{n} \sum_i s_i^2 - \Bigl( \frac{1}{n} \sum_i s_i \Bigr)^2 \Bigr],$$

        with `n`, `v` and `c`. Any form that is equal counts.
    """,
    equation="row-variance-by-query",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the variance of a sample, and what its members share",
    answer=r"\Bigl( 1 - \frac{1}{n} \Bigr) (v - c)",
    symbols=("n", "v", "c"),
    functions=(r"\sqrt",),
    left="r",
    cases=at_sizes("n", _rows_of_keys),
    slips=r"""
        as if the mean were known
            -> v
            the row subtracts its own mean, not that of all scores, and its own mean varies too
        as if the keys were independent
            (v - c) -> v
            that is right for c = 0: the mean square of the row's mean also holds products of different scores
        the row's own mean taken for the true one
            \Bigl( 1 - \frac{1}{n} \Bigr) ->
            what all scores share is gone, but the row's own mean takes a further part away: think of n = 1
        n of the covariances too many
            (v - c) -> v - c
            a double sum over n scores has n terms with i = j and n (n - 1) others; you counted n^2 others
        each pair counted once
            v - c -> v - \frac{c}{2}
            the double sum meets each pair of different scores twice, as (i, j) and as (j, i)
        the sign of the covariance
            v - c -> v + c
            what the scores share makes the row narrower
        the variance of the row's mean
            -> \frac{v + (n - 1) c}{n}
            that is the variance of the row's mean, which is to be subtracted from that of one score
        divided by n - 1
            \Bigl( 1 - \frac{1}{n} \Bigr) -> \frac{n}{n - 1}
            the row's variance is too small, not too large, and here its squares are divided by n
    """,
    hints="""
        Take the mean of each of the two terms. You may set m = 0: why?
        Write the square of the sum as a double sum. How many of its terms are s_i^2, and how many are products of different scores?
        The first term gives v. The second gives the variance of the row's mean: so many terms with v, so many with c, over n^2.
    """,
    why=r"""
        $\mathbb{E}[s_i^2] = v + m^2$. The square of the sum has $n$ terms with the mean $v + m^2$ and $n (n - 1)$ terms with the mean $c +
        m^2$. So $r = v + m^2 - \frac{1}{n^2} (n v + n (n - 1)\, c + n^2 m^2) = (1 - \frac1n)(v - c)$. With $c = 0$, as for
        independent keys, a row of $n$ shows $1 - 1/n$ of the variance. What the scores share, $c$, is a shift of the whole row, and softmax
        sees nothing of it, just as {eq}`row-variance-by-query` holds no mean of the keys.
    """,
)


def _scores_under_a_loss(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Scores Z = c X W_Q K^T under a loss whose gradient by Z is D, and the gradient of that loss by W_Q."""
    T_q, T_k, d_model, d_k = sizes.values()
    X, K, D = rng.normal(size=(T_q, d_model)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_q, T_k))
    c = rng.uniform(0.3, 0.7)
    slope = derivative(lambda weights: np.sum(D * (c * (X @ weights @ K.T))), rng.normal(size=(d_model, d_k)))
    return {"X": matrix(X), "K": matrix(K), "D": matrix(D), "c": c, "G": matrix(slope)}


my_gradient = asked_formula(
    "query-weights-gradient",
    "The gradient that carries the scale",
    entry="my_gradient",
    asks=r"""
        The scores of a layer are $Z = c\, X W_Q K^\top$, where $X$ has a row for each query, $K$ a row for each key, and $c$ is the scale.
        The loss has the gradient $D = \partial \mathcal{L} / \partial Z$ with respect to the scores. Write a formula in LaTeX for the
        gradient by the weights, a matrix of the shape of $W_Q$,

        $$G = \frac{\partial \mathcal{L}}{\partial W_Q},$$

        with `X`, `K`, `D` and `c`.
    """,
    equation="scale-as-reparametrisation",
    points=2,
    difficulty=3,
    minutes=10,
    trains="a matrix product and its gradient, with a factor",
    answer=r"c\, X^\top D K",
    symbols=("X", "K", "D", "c"),
    left="G",
    cases=at_sizes("T_q T_k d_model d_k", _scores_under_a_loss),
    slips=r"""
        the factor forgotten
            c\, ->
            that is the gradient by W', which is multiplied by no c in the scores; W_Q is
        the factor twice
            c\, -> c^2
            c enters a second time only when the change of W_Q is carried over to W'; in the gradient by W_Q it stands once
        divided by the factor
            c\, -> \frac{1}{c}
            a small c makes the scores react less to W_Q, so its gradient is smaller: multiply by c
        the sign turned round
            c\, -> -c\,
            the minus belongs to the step of gradient descent, not to the gradient
    """,
    hints="""
        Which scores does the entry (a, b) of W_Q reach, and with which factor?
        Z_ij holds X_ia (W_Q)_ab K_jb, times c. Multiply by D_ij and sum over i and j.
        `c ... D ...`: which of the two neighbours must be transposed so that the shape is (d_model, d_k)?
    """,
    why=r"""
        $Z_{ij} = c \sum_a \sum_b X_{ia} (W_Q)_{ab} K_{jb}$, so entry $(a, b)$ of the gradient is
        $\sum_i \sum_j D_{ij}\, c\, X_{ia} K_{jb}$, the entry of $c\, X^\top D K$. For $W'$ the factor $c$ is missing: its gradient is $1/c$
        times as long, while $W'$ itself is $c$ times as large. That is why the two learn at different speeds with one step size,
        {eq}`scale-as-reparametrisation`.
    """,
)
