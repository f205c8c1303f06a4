# %% [markdown] id="title"
# # Exercises {lesson}`scaling`: the scale of a score
#
# Ten tasks for the lesson [{lesson}`scaling` The scale of a score](../notebooks/{lesson}`scaling`_scaling.ipynb): 21 points, about 95
# minutes. They climb; the last two belong to *Deeper* sections.
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

# %% [markdown] id="start-score-variance-text"
# A head has matrices $W_Q$ and $W_K$ of the shape $(d, d_k)$, started by Xavier's rule: all entries are independent and uniform
# between $-b$ and $b$, with $b = \sqrt{6 / (d + d_k)}$, so each has the variance $b^2 / 3$. Two tokens $x$ and $y$ with $d$ entries come from
# a layer normalisation, so $\|x\|^2 = \|y\|^2 = d$. What is the variance of their score $x W_Q W_K^\top y^\top / \sqrt{d_k}$, over the draws
# of the two matrices? The cell below prints your $d$ and $d_k$ as `inputs` and `outputs`. Write the number.

# %% id="start-score-variance" tags=["task"]
### BEGIN SOLUTION
entry = 6 / (inputs + outputs) / 3
my_variance = (inputs * entry) ** 2
### END SOLUTION

# %% id="start-score-variance-check" tags=["check"]
check("start-score-variance", my_variance)

# %% [markdown] id="start-score-variance-why" tags=["solution-only"]
# **Why.** Entry $j$ of the query is $\sum_i x_i (W_Q)_{ij}$: $d$ independent terms of variance $x_i^2\, b^2 / 3$, so its variance is
# $\|x\|^2\, b^2 / 3 = 2 d / (d + d_k)$. The key's is the same. By {eq}`score-variance-from-deviations` the score has $d_k$ times their
# product, and the scale takes the $d_k$ away. Where $d_k$ is much smaller than $d$ this is nearly 4: this start misses the variance 1 upwards,
# while the two of PyTorch's layers miss it downwards.

# %% [markdown] id="weights-under-a-scale-text"
# The weights of a query are $w = \sigma(c\,s)$: the softmax of its scores $s$, each multiplied by a scale $c > 0$. Write a formula in
# LaTeX for the derivative
#
# $$g_i = \frac{\partial w_i}{\partial c},$$
#
# only the right side, between `r"` and `"`, with `w` and `s` (entries `w_i`, `s_j`), and `c` and `n` if needed. Any form that is equal
# counts. Its sign then tells which weights grow with $c$. To see how it is understood, `from attn_course import read` and call
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

# %% [markdown] id="sampled-row-spread-text"
# A row holds the scores $s_1, \ldots, s_n$ of one query with $n$ random keys. Each score has the mean $m$ and the variance $v$, and any two
# different ones have the covariance $c$: it is 0 for independent keys, and not 0 for keys that share a random part. NumPy computes the
# variance of the row as $\frac{1}{n} \sum_i s_i^2 - \bigl( \frac{1}{n} \sum_i s_i \bigr)^2$. Write a formula in LaTeX for what this is on
# average,
#
# $$r = \mathbb{E}\Bigl[ \frac{1}{n} \sum_i s_i^2 - \Bigl( \frac{1}{n} \sum_i s_i \Bigr)^2 \Bigr],$$
#
# with `n`, `v` and `c`. Any form that is equal counts.

# %% id="sampled-row-spread" tags=["task"]
### BEGIN SOLUTION
my_spread = r"\Bigl( 1 - \frac{1}{n} \Bigr) (v - c)"
### END SOLUTION

# %% id="sampled-row-spread-check" tags=["check"]
check("sampled-row-spread", my_spread)

# %% [markdown] id="sampled-row-spread-why" tags=["solution-only"]
# **Why.** $\mathbb{E}[s_i^2] = v + m^2$. The square of the sum has $n$ terms with the mean $v + m^2$ and $n (n - 1)$ terms with the mean
# $c + m^2$. So $r = v + m^2 - \frac{1}{n^2} (n v + n (n - 1)\, c + n^2 m^2) = (1 - \frac1n)(v - c)$. With $c = 0$ it is the $1 - 1/n$ of
# the lesson. What the scores share, $c$, is a shift of the whole row, and softmax sees nothing of it: {eq}`spread-within-a-row` has no sum
# with the mean of the keys.

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
# **Why.** In {eq}`score-variance-by-entries` all covariances of different entries are 0, so each of the three sums has $d_k$ equal terms, those
# with $i = j$: $v_q v_k$, $m_q^2 v_k$ and $m_k^2 v_q$.

# %% [markdown] id="query-weights-gradient-text"
# The scores of a layer are $Z = c\, X W_Q K^\top$, where $X$ has a row for each query, $K$ a row for each key, and $c$ is the scale. The
# loss has the gradient $D = \partial \mathcal{L} / \partial Z$ with respect to the scores. Write a
# formula in LaTeX for the gradient by the weights, a matrix of the shape of $W_Q$,
#
# $$G = \frac{\partial \mathcal{L}}{\partial W_Q},$$
#
# with `X`, `K`, `D` and `c`.

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

# %% [markdown] id="twin-with-split-factor-text"
# A layer divides its scores by $\sqrt{d_k}$ and learns $W_Q$ and $W_K$ by gradient descent with the step size $\eta$; the cell below
# prints your $d_k$ as `entries`, and $\eta$. A twin does not divide. It shares the factor: it starts from $W_Q' = d_k^{-1/4}\, W_Q$ and
# $W_K' = d_k^{-1/4}\, W_K$, so its first scores are the same. Which step size must it use, for both of its matrices, so that its scores stay
# the same? Write the number.

# %% id="twin-with-split-factor" tags=["task"]
### BEGIN SOLUTION
my_step_size = eta / entries**0.5
### END SOLUTION

# %% id="twin-with-split-factor-check" tags=["check"]
check("twin-with-split-factor", my_step_size)

# %% [markdown] id="twin-with-split-factor-why" tags=["solution-only"]
# **Why.** Take $W_Q$, with $W_K$ held fixed. The loss sees it only through $W_Q' = a\, W_Q$ with $a = d_k^{-1/4}$. So
# {eq}`scale-as-reparametrisation` holds with $a$ in the place of $c$: the twin needs $a^2 \eta = \eta / \sqrt{d_k}$. The same holds for
# $W_K$. The twin of the lesson has the whole factor in $W_Q$ and needs $\eta / d_k$ there, and $\eta$ for $W_K$.

# %% [markdown] id="where-the-scale-helps-text"
# The scale does not help every head. Let $v$ be the variance of a head's plain dot products within a row (the mean of the squares minus
# the square of the mean), averaged over its rows. Divided by $\sqrt{d_k}$, the scores have $v / d_k$ instead. Write `my_divisors(query, key)`: `query` has shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, both float64. Return for each head
# the better divisor, in an array of shape `(n_heads,)`: $\sqrt{d_k}$ if $v / d_k$ is nearer to 1 than $v$ is, and 1 if not. Nearer is meant as
# a ratio: 4 and 1/4 are equally far from 1. No $v$ is 0, and no head is a tie.


# %% id="where-the-scale-helps" tags=["task"]
def my_divisors(query, key):
    """query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> (n_heads,): sqrt(d_k)
    or 1, from the spread within a row, {eq}`spread-within-a-row`.
    """
    ### BEGIN SOLUTION
    d_k = query.shape[-1]
    spread = (query @ key.swapaxes(-1, -2)).var(axis=-1).mean(axis=-1)
    helps = np.abs(np.log(spread / d_k)) < np.abs(np.log(spread))
    return np.where(helps, np.sqrt(d_k), 1.0)
    ### END SOLUTION


# %% id="where-the-scale-helps-check" tags=["check"]
check("where-the-scale-helps", my_divisors)

# %% [markdown] id="where-the-scale-helps-why" tags=["solution-only"]
# **Why.** On a logarithmic axis the division moves $\ln v$ down by $\ln d_k$. That brings it nearer to 0 if $\ln v$ was above half of
# this, so the scale helps where $v > \sqrt{d_k}$. It does not help heads with normalised queries and keys (cosines), with the factor in
# $W_Q$ already, or with keys that differ little, however far they lie from 0.

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

# %% [markdown] id="score-variance-by-lines-text"
# The lesson wrote the derivation with expectations; here every expectation is a sum, so that you see where independence is used. Let $q$
# have the outcomes $q_1, q_2, \ldots$ with probabilities $p_a$, and $k$, independent of it, $k_1, k_2, \ldots$ with probabilities $r_b$;
# all are columns, and `q_{ai}` is entry $i$ of $q_a$. We know
#
# $$\sum_a p_a\, q_{ai} q_{aj} = (S_q)_{ij} + (m_q)_i (m_q)_j, \qquad \sum_b r_b\, k_{bi} k_{bj} = (S_k)_{ij} + (m_k)_i (m_k)_j.$$
#
# Write at least three lines of your own in LaTeX between the two below, each equal to the one before. The last line is
# {eq}`score-variance-from-covariances`, of the Deeper section {section}`matrices`:
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
# variance 1. All draws are independent. What number $u$ should we divide $q \cdot k$ by, so that its variance is 1? Write a formula in
# LaTeX with `d_k` and `p`.

# %% id="divisor-for-sparse-entries" tags=["task"]
### BEGIN SOLUTION
my_divisor = r"p \sqrt{d_k}"
### END SOLUTION

# %% id="divisor-for-sparse-entries-check" tags=["check"]
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="divisor-for-sparse-entries-why" tags=["solution-only"]
# **Why.** The mean square of an entry is $p \cdot 1 + (1 - p) \cdot 0 = p$, and its mean is 0. So {eq}`score-variance-from-deviations`
# gives the variance $d_k\, p\, p$, and $u$ is its root.
