# %% [markdown] id="title"
# # Exercises {lesson}`softmax`: softmax
#
# Ten tasks for the lesson [{lesson}`softmax` Softmax](../notebooks/{lesson}`softmax`_softmax.ipynb): 24 points,
# about 94 minutes. Take them in any order. Tasks {task}`entropy-by-hand`, {task}`entropy-as-scores-sharpen`,
# {task}`multiplier-to-softmax` and {task}`cauchy-to-exponential` lean on *Deeper* sections, the others on the core alone.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong, and names the mistake
# if it is a known one. Three hints fold out below each question. You may add cells, but leave the check cells as they
# are. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.

# %% [markdown] id="latex"
# **Answers in LaTeX.** A function such as `\ln` needs parentheses around an argument of more than one factor: `\ln(x y)`. To see how a
# formula is understood, `from attn_course import read` and call, for instance, `read("cauchy-to-exponential", my_cauchy)`. What cannot
# be read is no attempt.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="stable-softmax-text"
# Write softmax for an array of any number of axes: `my_softmax(scores, axis)` returns weights of the shape of
# `scores` that are not negative and sum to 1 along `axis`.
#
# `scores` is a float64 array of finite numbers and may hold values of a thousand and more, of either sign, also in
# one row only. `axis` is an integer and may be negative.


# %% id="stable-softmax" tags=["task"]
def my_softmax(scores, axis):
    """Weights of the shape of `scores` that sum to 1 along `axis`, {eq}`stable-softmax`."""
    ### BEGIN SOLUTION
    shifted = scores - scores.max(axis=axis, keepdims=True)
    unnormalised = np.exp(shifted)
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %% id="stable-softmax-check" tags=["check"]
check("stable-softmax", my_softmax)

# %% [markdown] id="stable-softmax-why" tags=["solution-only"]
# **Why.** Both reductions run along `axis` and keep it with length 1, so that they broadcast against `scores`
# whatever the axis is. The maximum belongs to each slice: one maximum for the whole array leaves slices far below
# it with 0 / 0.

# %% [markdown] id="entropy-by-hand-text"
# Weights $p$ belong to $n + 1$ scores: $n$ of them are 0 and one is 1. The average score is to be $\sum_i p_i z_i = r / (n + r)$;
# the cell below prints your $n$ and $r$. The lesson's section *The average as a condition* helps.
# What is the largest entropy, in nats, that such weights can have? Work it out on paper, then write the number (three correct
# digits are enough; an expression such as `2 * np.log(7)` is welcome).

# %% id="entropy-by-hand" tags=["task"]
### BEGIN SOLUTION
my_entropy = np.log(n + r) - r / (n + r) * np.log(r)
### END SOLUTION

# %% id="entropy-by-hand-check" tags=["check"]
check("entropy-by-hand", my_entropy)

# %% [markdown] id="entropy-by-hand-why" tags=["solution-only"]
# **Why.** By {eq}`free-energy-identity` the maximum is at $\sigma(\beta z)$ with the $\beta$ that fits. The average is the weight
# of the score 1, $e^\beta / (n + e^\beta)$, so $e^\beta = r$. The divergence is then 0, and
# $H = \mathrm{lse}(\beta z) - \beta \mu = \ln(n + r) - \frac{r}{n + r} \ln r$. With $n = r = 2$ the weights are 1/4, 1/4, 1/2.

# %% [markdown] id="log-softmax-derivative-text"
# Let $s = \sigma(z)$. Derive $\dfrac{\partial \ln s_i}{\partial z_j}$ and write it with the symbols `s_i`, `s_j` and
# `delta_ij` (the Kronecker delta: 1 if $i = j$, else 0). Sums, products and powers of them are all you need. The
# check wants the result of the differentiation.

# %% id="log-softmax-derivative" tags=["task"]
### BEGIN SOLUTION
my_derivative = delta_ij - s_j
### END SOLUTION

# %% id="log-softmax-derivative-check" tags=["check"]
check("log-softmax-derivative", my_derivative)

# %% [markdown] id="log-softmax-derivative-why" tags=["solution-only"]
# **Why.** $\ln s_i = z_i - \mathrm{lse}(z)$ by {eq}`log-softmax`. The first term has the derivative $\delta_{ij}$, the second
# $-s_j$ by {eq}`lse-gradient`. Multiply by $s_i$ and {eq}`softmax-derivative` appears.

# %% [markdown] id="softmax-jacobian-text"
# Let $s = \sigma(z / T)$ along the **last** axis. Write `my_jacobian(scores, temperature)`: for float64 scores $z$ of shape
# `(..., n)` and one positive number $T$ it returns the array of shape `(..., n, n)` whose entry `[..., i, j]` is
# $\partial s_i / \partial z_j$, the derivative by the score itself. There may be no, one or several leading axes, $n$ may be 1, and
# scores may be a thousand and more, of either sign.


# %% id="softmax-jacobian" tags=["task"]
def my_jacobian(scores, temperature):
    """scores (..., n), one temperature -> Jacobian (..., n, n), {eq}`softmax-jacobian`."""
    ### BEGIN SOLUTION
    unnormalised = np.exp((scores - scores.max(axis=-1, keepdims=True)) / temperature)
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    identity = np.eye(weights.shape[-1])
    return weights[..., :, None] * (identity - weights[..., None, :]) / temperature
    ### END SOLUTION


# %% id="softmax-jacobian-check" tags=["check"]
check("softmax-jacobian", my_jacobian)

# %% [markdown] id="softmax-jacobian-why" tags=["solution-only"]
# **Why.** The derivative by $z / T$ is {eq}`softmax-derivative` entry by entry: $s_i$ runs along the second to last axis, $s_j$
# along the last. The inner function $z / T$ brings the factor $1 / T$. `np.diag` and `np.outer` would do for a single row only.

# %% [markdown] id="repair-softmax-temperature-text"
# The function below should return, for a matrix of scores with **queries in rows and keys in columns**, the weights
# of each query over the keys at a given temperature (one positive number for all), {eq}`softmax-with-temperature`. It raises no error, and
# it is wrong in three places. Repair it. Scores may be in the thousands, of either sign, also within one row, and rows
# may lie thousands apart; the temperature may be in the thousands as well.


# %% id="repair-softmax-temperature" tags=["task"]
def tempered_weights(scores, temperature):
    """Weights of each query (row) over the keys (columns); a higher temperature
    flattens them.
    """
    ### BEGIN SOLUTION
    shifted = scores - scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(shifted / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="repair-softmax-temperature-check" tags=["check"]
check("repair-softmax-temperature", tempered_weights)

# %% [markdown] id="repair-softmax-temperature-why" tags=["solution-only"]
# **Why.** (1) The maximum was that of all queries, so a row a thousand below it became 0 / 0. (2) A factor outside the
# exponential cancels against the sum; the temperature must divide the scores. (3) `axis=0` normalised over the
# queries: every *key* handed out a total weight of 1.

# %% [markdown] id="tempered-cross-entropy-gradient-text"
# A classifier uses a temperature $T > 0$: $s = \sigma(z / T)$, with the loss $-\ln s_y$ for the right class $y$. Derive
# $\dfrac{\partial}{\partial z_i}(-\ln s_y)$ and write it with the symbols `s_i`, `delta_iy` (1 if $i = y$, else 0) and
# `T`. Sums, products, quotients and powers are all you need. (The lesson's section
# on cross-entropy helps, but {eq}`log-softmax` and {eq}`lse-gradient` are enough.)

# %% id="tempered-cross-entropy-gradient" tags=["task"]
### BEGIN SOLUTION
my_gradient = (s_i - delta_iy) / T
### END SOLUTION

# %% id="tempered-cross-entropy-gradient-check" tags=["check"]
check("tempered-cross-entropy-gradient", my_gradient)

# %% [markdown] id="tempered-cross-entropy-gradient-why" tags=["solution-only"]
# **Why.** The loss is $\mathrm{lse}(z / T) - z_y / T$, by {eq}`log-softmax` with $z / T$ for $z$. The chain rule puts $1/T$ on
# both terms of {eq}`cross-entropy-gradient`.

# %% [markdown] id="entropy-as-scores-sharpen-text"
# Let $s = \sigma(\beta z)$ for a real number $\beta$. How fast does the entropy $H(s) = -\sum_i s_i \ln s_i$ change as $\beta$
# grows? Write a formula in LaTeX for
#
# $$D = \frac{\mathrm{d} H}{\mathrm{d} \beta}$$
#
# in the symbols `s` and `z` with their indices, and `\beta`, with `\ln` if you like: only the right side, between `r"` and `"`.
# It has to hold for both signs of $\beta$.

# %% id="entropy-as-scores-sharpen" tags=["task"]
### BEGIN SOLUTION
my_cooling = r"-\beta \left( \sum_i s_i z_i^2 - \left( \sum_i s_i z_i \right)^2 \right)"
### END SOLUTION

# %% id="entropy-as-scores-sharpen-check" tags=["check"]
check("entropy-as-scores-sharpen", my_cooling)

# %% [markdown] id="entropy-as-scores-sharpen-why" tags=["solution-only"]
# **Why.** By {eq}`softmax-entropy`, $H = \mathrm{lse}(\beta z) - \beta \bar{z}$ with the average $\bar{z} = \sum_i s_i z_i$. The
# first term has the slope $\bar{z}$; the second has $\bar{z}$ plus $\beta$ times the slope of $\bar{z}$, which is the variance of
# the scores. The two $\bar{z}$ cancel. So moving $\beta$ away from 0, to either side, always makes the weights less undecided,
# unless all scores are equal.

# %% [markdown] id="shift-invariance-of-softmax-text"
# Show that softmax does not change when $c$ is added to every score: a list of lines in LaTeX, each equal to the one
# before. The first and the last are given; it takes two steps or more:
#
# ```python
# my_derivation = [
#     r"\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}",
#     # your lines
#     r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
# ]
# ```

# %% id="shift-invariance-of-softmax" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\frac{e^{z_i + c}}{\sum_j e^{z_j + c}}",
    r"\frac{e^{z_i} e^c}{\sum_j e^{z_j} e^c}",
    r"\frac{e^{z_i} e^c}{e^c \sum_j e^{z_j}}",
    r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
]
### END SOLUTION

# %% id="shift-invariance-of-softmax-check" tags=["check"]
check("shift-invariance-of-softmax", my_derivation)

# %% [markdown] id="shift-invariance-of-softmax-why" tags=["solution-only"]
# **Why.** Each exponential becomes a product, the factor $e^c$ is the same in all terms and so leaves the sum, and it
# cancels. Stable softmax, {eq}`stable-softmax`, is the case where $c$ is minus the largest score.

# %% [markdown] id="multiplier-to-softmax-text"
# Weights $p$ of the largest entropy at a given mean score obey two conditions: the derivative of the Lagrangian vanishes, and
# they sum to 1.
#
# $$-\ln p_i - 1 + \beta z_i + \lambda = 0, \qquad \sum_{j=1}^{n} p_j = 1$$
#
# What is $\lambda$? Solve both conditions for it on paper, and write it as a formula in LaTeX in `z` with its index, `\beta` and, if you
# like, `n`: only the right side, between `r"` and `"`. You may use `\exp`, `\ln` and `\mathrm{lse}`.

# %% id="multiplier-to-softmax" tags=["task"]
### BEGIN SOLUTION
my_multiplier = r"1 - \ln \sum_{j=1}^{n} e^{\beta z_j}"
### END SOLUTION

# %% id="multiplier-to-softmax-check" tags=["check"]
check("multiplier-to-softmax", my_multiplier)

# %% [markdown] id="multiplier-to-softmax-why" tags=["solution-only"]
# **Why.** The first condition, solved for $p_i$, is $p_i = e^{\lambda - 1} e^{\beta z_i}$. Put it into the second:
# $e^{\lambda - 1} \sum_j e^{\beta z_j} = 1$. The logarithm says $\lambda - 1 = -\ln \sum_j e^{\beta z_j}$, so
# $\lambda = 1 - \mathrm{lse}(\beta z)$, and $p_i = e^{\lambda - 1} e^{\beta z_i} = \sigma(\beta z)_i$.

# %% [markdown] id="cauchy-to-exponential-text"
# Cauchy (*Cours d'analyse*, 1821, chapter 5) solved $g(x + c) = g(x)\, g(c)$ without a derivative: for whole
# numbers, then for fractions, then for all numbers by continuity. Here you do the fractions. Let $g_k = g(k / n)$ be the
# value after $k \ge 1$ steps of $1 / n$, so that $g_{k + l} = g_k\, g_l$. All values are positive. You know one of them, the value
# $a = g_m$ after $m \ge 1$ steps.
#
# What is $g_k$? Write it as a formula in LaTeX in `a`, `m` and the index `k`, which stands on the left side and so may stand in the answer
# too: only the right side, between `r"` and `"`. You may use `\exp` and `\ln`.

# %% id="cauchy-to-exponential" tags=["task"]
### BEGIN SOLUTION
my_cauchy = r"a^{k / m}"
### END SOLUTION

# %% id="cauchy-to-exponential-check" tags=["check"]
check("cauchy-to-exponential", my_cauchy)

# %% [markdown] id="cauchy-to-exponential-why" tags=["solution-only"]
# **Why.** The equation, used $k - 1$ times, makes $k$ factors $g_1$ of $g_k$, so $g_k = g_1^k$. In the same way $a = g_m = g_1^m$, so
# $g_1$ is the $m$-th root of $a$, and $g_k = a^{k / m}$. With $m = n$ and $\beta = \ln g(1)$ this is $g(k / n) = e^{\beta k / n}$. As $n$ was
# any whole number, $g(x) = e^{\beta x}$ on all positive fractions; these lie everywhere dense, and so a continuous $g$ has no choice in
# between.

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="softmax-derivative-text"
# Let $s_i = a_i\, e^{\beta z_i} / \sum_k a_k\, e^{\beta z_k}$ with positive numbers $a_k$ and a real number $\beta$. Write a formula in LaTeX for
#
# $$J_{ij} = \frac{\partial s_i}{\partial z_j}$$
#
# as it holds for all $i$ and $j$: only the right side, between `r"` and `"`. You may use `s` and `a` with their indices, `\beta`, and the
# Kronecker delta `\delta_{ij}`; you need not use all of them.

# %% id="softmax-derivative" tags=["task"]
### BEGIN SOLUTION
my_formula = r"\beta s_i (\delta_{ij} - s_j)"
### END SOLUTION

# %% id="softmax-derivative-check" tags=["check"]
check("softmax-derivative", my_formula)

# %% [markdown] id="softmax-derivative-why" tags=["solution-only"]
# **Why.** With $u_i = \beta z_i + \ln a_i$ this is $s = \sigma(u)$. Its derivative by $u_j$ is $s_i (\delta_{ij} - s_j)$, and that of $u_j$ by
# $z_j$ is $\beta$. The $a_i$ change the weights, but not the formula.

# %% [markdown] id="pull-back-one-row-text"
# Write `my_pull(weights, gradient)` for one row: two 1-D float64 arrays of the same length go in, the weights $s$ and the gradient
# $g$ with respect to them; the gradient with respect to the scores comes out.


# %% id="pull-back-one-row" tags=["task"]
def my_pull(weights, gradient):
    ### BEGIN SOLUTION
    return weights * (gradient - weights @ gradient)
    ### END SOLUTION


# %% id="pull-back-one-row-check" tags=["check"]
check("pull-back-one-row", my_pull)

# %% [markdown] id="lse-over-blocks-text"
# Write `my_lse(blocks)`: $\mathrm{lse}$ of all scores in a list of one or more 1-D float64 arrays, none of them empty, as a float.
# The scores are finite, of any size and either sign. Look at each block once; joining the blocks
# is not allowed, nor is a library's log-sum-exp.


# %% id="lse-over-blocks" tags=["task"]
def my_lse(blocks):
    ### BEGIN SOLUTION
    row_max, row_sum = -np.inf, 0.0
    for block in blocks:
        new_max = max(row_max, block.max())
        row_sum = row_sum * np.exp(row_max - new_max) + np.exp(block - new_max).sum()
        row_max = new_max
    return row_max + np.log(row_sum)
    ### END SOLUTION


# %% id="lse-over-blocks-check" tags=["check"]
check("lse-over-blocks", my_lse)
