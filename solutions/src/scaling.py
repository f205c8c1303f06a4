# %% [markdown] id="title"
# # Exercises {lesson}`scaling`: the scale of a score
#
# Ten tasks for the lesson [{lesson}`scaling` The scale of a score](../notebooks/{lesson}`scaling`_scaling.ipynb): 20 points, about 90
# minutes. Take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run the check below it.
# Run the cells one by one (Shift+Enter), because a check that fails stops "Run All". A check says that you passed, or what is wrong. Three
# hints open with a click. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="scaled-scores-text"
# Write `my_scaled_scores(query, key)`: `query` has shape `(..., q_len, d_k)`, `key` `(..., kv_len, d_k)`, with the same leading axes
# (there may be none), both float64. Return the dot product of each query with each key, divided by the square root of $d_k$, of shape
# `(..., q_len, kv_len)`.


# %% id="scaled-scores" tags=["task"]
def my_scaled_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> scores (..., q_len, kv_len),
    {eq}`scaled-score-variance`.
    """
    ### BEGIN SOLUTION
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    ### END SOLUTION


# %% id="scaled-scores-check" tags=["check"]
check("scaled-scores", my_scaled_scores)

# %% [markdown] id="scaled-scores-why" tags=["solution-only"]
# **Why.** A score sums $d_k$ products. So under the usual assumption its variance is $d_k$, whatever the lengths of the two sequences are.

# %% [markdown] id="score-variance-by-hand-text"
# Entries of $q$ are independent with mean 0 and standard deviation $\sigma_q$, those of $k$ the same with $\sigma_k$, and $q$ is
# independent of $k$; each has $d_k$ of them, `d` in the cell below, which prints your numbers. What is the variance of
# $q \cdot k / \sqrt{d_k}$? Write the number.

# %% id="score-variance-by-hand" tags=["task"]
### BEGIN SOLUTION
my_variance = sigma_q**2 * sigma_k**2
### END SOLUTION

# %% id="score-variance-by-hand-check" tags=["check"]
check("score-variance-by-hand", my_variance)

# %% [markdown] id="score-variance-by-hand-why" tags=["solution-only"]
# **Why.** {eq}`score-variance-from-deviations` gives $d_k \sigma_q^2 \sigma_k^2$, and the factor $1 / \sqrt{d_k}$ divides a variance by
# $d_k$.

# %% [markdown] id="uncentred-score-variance-text"
# Entries of $q$ are independent, each with mean $m_q$ (a number here, the same for all entries) and **variance** $v_q$; those of $k$ are
# independent of them and of each other, with mean $m_k$ and variance $v_k$. Write $\mathrm{Var}[q \cdot k]$ with the symbols `d_k`, `m_q`,
# `m_k`, `v_q` and `v_k`.

# %% id="uncentred-score-variance" tags=["task"]
### BEGIN SOLUTION
my_expression = d_k * (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q)
### END SOLUTION

# %% id="uncentred-score-variance-check" tags=["check"]
check("uncentred-score-variance", my_expression)

# %% [markdown] id="uncentred-score-variance-why" tags=["solution-only"]
# **Why.** In {eq}`score-variance-from-covariances`, $S_q = v_q I$ and $S_k = v_k I$; the trace counts $d_k$ entries, and
# $m_q^\top m_q$ is $d_k\, m_q^2$, where the $m_q$ on the right is the number.

# %% [markdown] id="cosine-scores-text"
# (From the Deeper section {section}`similar`.) Write `my_cosine_scores(query, key)` for float64 arrays of shapes `(..., q_len, d_k)` and
# `(..., kv_len, d_k)`, with the same leading axes: the cosine of the angle between each query and each key, of shape
# `(..., q_len, kv_len)`. A query or a key may be all zeros: its cosines are 0, not NaN. Other lengths may be tiny, about $10^{-9}$, and
# still count: add no small number to them, and take none for 0.


# %% id="cosine-scores" tags=["task"]
def my_cosine_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> cosines (..., q_len,
    kv_len), {eq}`cosine-similarity`.
    """
    ### BEGIN SOLUTION
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.where(lengths == 0, 1.0, lengths)
    ### END SOLUTION


# %% id="cosine-scores-check" tags=["check"]
check("cosine-scores", my_cosine_scores)

# %% [markdown] id="cosine-scores-why" tags=["solution-only"]
# **Why.** One length for each row; where the product of two lengths is 0 the dot product is 0 as well, so any other divisor will do.

# %% [markdown] id="repair-head-weights-text"
# The function below should return the weights of several heads that share a model of $d_{\text{model}} = h\, d_k$ features: `query` has
# shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, and each query's weights over the keys come from scores of variance 1
# (for independent entries of mean 0 and variance 1, {eq}`scaled-score-variance`). It is wrong in three places. Repair it. Scores may lie
# anywhere between -1000 and 1000, also within one row.


# %% id="repair-head-weights" tags=["task"]
def head_weights(query, key):
    """query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> weights (n_heads,
    q_len, kv_len).
    """
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="repair-head-weights-check" tags=["check"]
check("repair-head-weights", head_weights)

# %% [markdown] id="repair-head-weights-why" tags=["solution-only"]
# **Why.** Each score sums $d_k$ products, so the scale is $\sqrt{d_k}$; it belongs before the softmax; and the sum runs over keys.

# %% [markdown] id="row-and-total-spread-text"
# Write `my_spreads(scores)`: `scores` is a float64 array of shape `(..., q_len, kv_len)`, a row for each query, with leading axes (there
# may be none). For each example, return two numbers in an array of shape `(..., 2)`: first the variance of the scores within a row,
# averaged over the rows, then the variance of all its scores. Here a variance is the mean of the squares minus the square of the mean.


# %% id="row-and-total-spread" tags=["task"]
def my_spreads(scores):
    """scores (..., q_len, kv_len) -> (..., 2): mean variance within a row, variance
    of all scores, {eq}`spread-within-a-row`.
    """
    ### BEGIN SOLUTION
    within = scores.var(axis=-1).mean(axis=-1)
    return np.stack([within, scores.var(axis=(-2, -1))], axis=-1)
    ### END SOLUTION


# %% id="row-and-total-spread-check" tags=["check"]
check("row-and-total-spread", my_spreads)

# %% [markdown] id="row-and-total-spread-why" tags=["solution-only"]
# **Why.** Softmax takes a row at a time and ignores a shift of the whole row. The variance of all scores also holds how far the means of
# the rows lie apart, so it is never the smaller of the two.

# %% [markdown] id="score-variance-by-lines-text"
# The lesson wrote the derivation with expectations; here every expectation is a sum, so that you see where independence is used. Let $q$
# have the outcomes $q_1, q_2, \ldots$ with probabilities $p_a$, and $k$, independent of it, $k_1, k_2, \ldots$ with probabilities $r_b$;
# all are columns, and `q_{ai}` is entry $i$ of $q_a$. We know
#
# $$\sum_a p_a\, q_{ai} q_{aj} = (S_q)_{ij} + (m_q)_i (m_q)_j, \qquad \sum_b r_b\, k_{bi} k_{bj} = (S_k)_{ij} + (m_k)_i (m_k)_j.$$
#
# Write lines in LaTeX, each equal to the one before, in four steps or more, from the mean square minus the squared mean to
# {eq}`score-variance-from-covariances`:
#
# ```python
# my_derivation = [
#     r"\sum_a \sum_b p_a r_b \left( \sum_i q_{ai} k_{bi} \right)^2 - (m_q \cdot m_k)^2",
#     # your lines
#     r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
# ]
# ```

# %% id="score-variance-by-lines" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\sum_a \sum_b p_a r_b \left( \sum_i q_{ai} k_{bi} \right)^2 - (m_q \cdot m_k)^2",
    r"\sum_a \sum_b p_a r_b \sum_i \sum_j q_{ai} k_{bi} q_{aj} k_{bj} - (m_q \cdot m_k)^2",
    r"\sum_i \sum_j \left( \sum_a p_a q_{ai} q_{aj} \right) \left( \sum_b r_b k_{bi} k_{bj} \right) - (m_q \cdot m_k)^2",
    r"\sum_i \sum_j ((S_q)_{ij} + (m_q)_i (m_q)_j) ((S_k)_{ij} + (m_k)_i (m_k)_j) - (m_q \cdot m_k)^2",
    r"\sum_i \sum_j ((S_q)_{ij} (S_k)_{ij} + (m_q)_i (S_k)_{ij} (m_q)_j + (m_k)_i (S_q)_{ij} (m_k)_j)",
    r"\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k",
]
### END SOLUTION

# %% id="score-variance-by-lines-check" tags=["check"]
check("score-variance-by-lines", my_derivation)

# %% [markdown] id="score-variance-by-lines-why" tags=["solution-only"]
# **Why.** The square of a sum needs two indices. Independence is the step from the second line to the third: a sum over $a$ of what holds
# $q$ and a sum over $b$ of what holds $k$ come apart. The moments enter, and of the four products one is $(m_q \cdot m_k)^2$, which
# cancels. For independent entries with mean 0 only $i = j$ is left, and the trace is $d_k\, \sigma_q^2\, \sigma_k^2$:
# {eq}`score-variance-from-deviations`.

# %% [markdown] id="weights-under-a-scale-text"
# The weights of a query are $w = \sigma(c\,s)$: the softmax of its scores $s$, each multiplied by a scale $c > 0$. Write a formula in
# LaTeX for the derivative
#
# $$g_i = \frac{\partial w_i}{\partial c},$$
#
# only the right side, between `r"` and `"`, with `w` and `s` (entries `w_i`, `s_j`), and `c` and `n` if needed. Any form that is equal
# counts. Which weights grow? To see how it is understood, `from attn_course import read` and call
# `read("weights-under-a-scale", my_slope)`; what cannot be read is no attempt.

# %% id="weights-under-a-scale" tags=["task"]
### BEGIN SOLUTION
my_slope = r"w_i \left( s_i - \sum_j w_j s_j \right)"
### END SOLUTION

# %% id="weights-under-a-scale-check" tags=["check"]
check("weights-under-a-scale", my_slope)

# %% [markdown] id="weights-under-a-scale-why" tags=["solution-only"]
# **Why.** By {eq}`log-softmax`, $\ln w_i = c\,s_i - \ln \sum_j e^{c s_j}$. The derivative by $c$ is $s_i$ minus the mean of the scores
# under the weights; multiply by $w_i$. So a larger scale gives more weight to every key whose score is above this mean, and takes it from
# the others. Unless all scores are equal, the mean itself rises with $c$, until only the largest score lies above it.

# %% [markdown] id="spread-of-one-row-text"
# Softmax sees one row of scores at a time. Row $i$ of $Q K^\top / \sqrt{d_k}$ holds the scores of one query with all keys. Let $v_i$ be
# their variance over the keys: the mean of the squares minus the square of the mean. The keys have the covariance matrix $S$, a mean that
# is not 0, and correlated entries. Write a formula in LaTeX for
#
# $$v_i = \ldots$$
#
# with the queries `Q`, the matrix `S` and `d_k`. `Q_i` is row $i$ and `Q_{ia}` one of its entries; `S_{ab}` is the covariance of entries
# $a$ and $b$ over the same keys, divided by their number (`np.cov(..., bias=True)`). Matrices or sums, any form that is equal counts; the
# trace is `\mathrm{tr}(...)`.

# %% id="spread-of-one-row" tags=["task"]
### BEGIN SOLUTION
my_spread = r"\frac{Q_i S Q_i^\top}{d_k}"
### END SOLUTION

# %% id="spread-of-one-row-check" tags=["check"]
check("spread-of-one-row", my_spread)

# %% [markdown] id="spread-of-one-row-why" tags=["solution-only"]
# **Why.** Within a row the query is fixed: its covariance is 0 and its mean is the query, so {eq}`score-variance-from-covariances` keeps
# the term $m_q^\top S_k m_q$ alone. The mean of the keys does not matter, for it shifts all scores of the row alike, and softmax does not
# see that, {eq}`softmax-shift-invariance`. The variance is 1 on average if the keys have $S = I$ and the queries independent entries of
# mean 0 and variance 1; for a single long query it is larger: {eq}`spread-within-a-row`.

# %% [markdown] id="query-weights-gradient-text"
# The scores of a layer are $Z = c\, X W_Q K^\top$, where $X$ has a row for each query, $K$ a row for each key, and $c$ is the scale. The
# loss has the gradient $D = \partial \mathcal{L} / \partial Z$ with respect to the scores. Write a
# formula in LaTeX for the gradient by the weights, a matrix of the shape of $W_Q$,
#
# $$G = \frac{\partial \mathcal{L}}{\partial W_Q},$$
#
# with `X`, `K`, `D` and `c`. Then look at your formula: what would it be for $W' = c\, W_Q$, in scores without a factor (not checked)?

# %% id="query-weights-gradient" tags=["task"]
### BEGIN SOLUTION
my_gradient = r"c\, X^\top D K"
### END SOLUTION

# %% id="query-weights-gradient-check" tags=["check"]
check("query-weights-gradient", my_gradient)

# %% [markdown] id="query-weights-gradient-why" tags=["solution-only"]
# **Why.** $Z_{ij} = c \sum_a \sum_b X_{ia} (W_Q)_{ab} K_{jb}$, so entry $(a, b)$ of the gradient is
# $\sum_i \sum_j D_{ij}\, c\, X_{ia} K_{jb}$, the entry of $c\, X^\top D K$. For $W'$ the factor $c$ is missing: its gradient is $1/c$
# times as long, while $W'$ itself is $c$ times as large. That is why the two learn at different speeds with one step size,
# {eq}`scale-as-reparametrisation`.

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="correlated-entries-variance-text"
# All entries of $q$ have mean 0 and variance 1, and any two different entries have the covariance $\rho$. The same holds for $k$, which
# is independent of $q$. Write a formula in LaTeX for $v = \mathrm{Var}[q \cdot k]$ with `d_k` and `\rho`.

# %% id="correlated-entries-variance" tags=["task"]
### BEGIN SOLUTION
my_variance_formula = r"d_k + d_k (d_k - 1) \rho^2"
### END SOLUTION

# %% id="correlated-entries-variance-check" tags=["check"]
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="correlated-entries-variance-why" tags=["solution-only"]
# **Why.** The means are 0, so {eq}`score-variance-by-entries` keeps its first term: $d_k$ products of two variances, and $d_k (d_k - 1)$
# products $\rho \cdot \rho$.

# %% [markdown] id="divisor-for-sparse-entries-text"
# Each entry of $q$ and of $k$ is 0 with probability $1 - p$; with probability $p$ it is drawn from a distribution of mean 0 and
# variance 1. All draws are independent. By which number $u$ must $q \cdot k$ be divided to have variance 1? Write a formula in LaTeX with
# `d_k` and `p`.

# %% id="divisor-for-sparse-entries" tags=["task"]
### BEGIN SOLUTION
my_divisor = r"p \sqrt{d_k}"
### END SOLUTION

# %% id="divisor-for-sparse-entries-check" tags=["check"]
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="divisor-for-sparse-entries-why" tags=["solution-only"]
# **Why.** The mean square of an entry is $p \cdot 1 + (1 - p) \cdot 0 = p$, and its mean is 0. So {eq}`score-variance-from-deviations`
# gives the variance $d_k\, p\, p$, and $u$ is its root.
