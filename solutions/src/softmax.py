# %% [markdown] id="title"
# # Exercises {lesson}`softmax`: softmax
#
# Fourteen tasks for the lesson [{lesson}`softmax` Softmax](../notebooks/{lesson}`softmax`_softmax.ipynb): 33 points,
# about 125 minutes. Each stands on its own, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes prints one line that begins with `ok`; one that fails says what is wrong, and names the mistake if it is a
# known one. Three hints fold out below each question. You may add cells, but leave the check cells as they are. In a
# terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one: numbers that your tasks print depend on it

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
# The scores $z$ are $n$ times 0 and once $\ln r$; the cell below prints your $n$ and $r$. What is the entropy $H(\sigma(z))$ in nats? Work
# it out on paper, then write the number (three correct digits are enough; an expression such as `2 * np.log(7)` is welcome).

# %% id="entropy-by-hand" tags=["task"]
### BEGIN SOLUTION
my_entropy = np.log(n + r) - r / (n + r) * np.log(r)
### END SOLUTION

# %% id="entropy-by-hand-check" tags=["check"]
check("entropy-by-hand", my_entropy)

# %% [markdown] id="entropy-by-hand-why" tags=["solution-only"]
# **Why.** With $n = r = 2$ the exponentials are 1, 1, 2, so the weights are 1/4, 1/4, 1/2. Their entropy is
# $2 \cdot \frac14 \ln 4 + \frac12 \ln 2 = \ln 2 + \frac12 \ln 2$. {eq}`softmax-entropy` gives the same:
# $\mathrm{lse}(z) = \ln 4$, minus the mean score $\frac12 \ln 2$.

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
# Write `my_jacobian(weights)`: for softmax weights $s = \sigma(z)$ along the **last** axis of an array of shape `(..., n)`, return
# the array of shape `(..., n, n)` whose entry `[..., i, j]` is $\partial s_i / \partial z_j$. There may be no, one or
# several leading axes, and $n$ may be 1.


# %% id="softmax-jacobian" tags=["task"]
def my_jacobian(weights):
    """weights (..., n) -> Jacobian (..., n, n), {eq}`softmax-jacobian`."""
    ### BEGIN SOLUTION
    identity = np.eye(weights.shape[-1])
    return weights[..., :, None] * (identity - weights[..., None, :])
    ### END SOLUTION


# %% id="softmax-jacobian-check" tags=["check"]
check("softmax-jacobian", my_jacobian)

# %% [markdown] id="softmax-jacobian-why" tags=["solution-only"]
# **Why.** This is {eq}`softmax-derivative` entry by entry: $s_i$ runs along the second to last axis, $s_j$ along the last.
# `np.diag` and `np.outer` would do for a single row only.

# %% [markdown] id="repair-softmax-temperature-text"
# The function below should return, for a matrix of scores with **queries in rows and keys in columns**, the weights
# of each query over the keys at a given temperature (one positive number for all), {eq}`softmax-with-temperature`. It raises no error, and
# it is wrong in three places. Repair it. Scores may be in the thousands, of either sign, also within one row, and rows
# may lie thousands apart; the temperature may be in the thousands as well.


# %% id="repair-softmax-temperature" tags=["task"]
def tempered_weights(scores, temperature):
    """Weights of each query (row) over the keys (columns); a higher temperature flattens them."""
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

# %% [markdown] id="softmax-backward-text"
# Write the backward pass of softmax: `my_softmax_vjp(weights, d_weights)` takes weights $s$ of shape `(..., n)`, which
# sum to 1 along the last axis, and the gradient $g$ of a loss with respect to them, of the same shape. It returns
# the gradient with respect to the scores, of that shape too. Though the check cannot
# see it, do it without the $n \times n$ matrix.


# %% id="softmax-backward" tags=["task"]
def my_softmax_vjp(weights, d_weights):
    """weights, d_weights (..., n) -> d_scores (..., n), {eq}`softmax-vector-jacobian-product`."""
    ### BEGIN SOLUTION
    mean_gradient = (weights * d_weights).sum(axis=-1, keepdims=True)
    return weights * (d_weights - mean_gradient)
    ### END SOLUTION


# %% id="softmax-backward-check" tags=["check"]
check("softmax-backward", my_softmax_vjp)

# %% [markdown] id="softmax-backward-why" tags=["solution-only"]
# **Why.** $(\mathrm{diag}(s) - s s^\top)\,g = s \odot g - s\,(s \cdot g)$, and $s \cdot g$ is one number for each row:
# the mean of the gradient under the weights. Only what differs from that mean moves a score.

# %% [markdown] id="read-temperatures-text"
# The figure shows softmax weights of the same four scores, $z = (2, 1, 0, -1)$, at three temperatures: 0.5, 1 and 4.
# Run the cell, decide which panel belongs to which temperature, and write the three temperatures in the order A, B, C.

# %% id="read-temperatures-figure"
from attn_course.lessons.softmax import figures
from attn_course.tasks import figure_data

figures.temperature_bars(**figure_data("read-temperatures"))

# %% id="read-temperatures" tags=["task"]
### BEGIN SOLUTION
my_temperatures = (1.0, 4.0, 0.5)
### END SOLUTION

# %% id="read-temperatures-check" tags=["check"]
check("read-temperatures", my_temperatures)

# %% [markdown] id="read-temperatures-why" tags=["solution-only"]
# **Why.** Neighbouring scores differ by 1, so by {eq}`ratio-of-weights` neighbouring weights have the ratio $e^{1/T}$: about 2.7 in
# panel A ($T = 1$), 1.3 in B ($T = 4$), and 7.4 in C ($T = 0.5$).

# %% [markdown] id="tempered-cross-entropy-gradient-text"
# A classifier uses a temperature $T > 0$: $s = \sigma(z / T)$, with the loss $-\ln s_y$ for the right class $y$. Derive
# $\dfrac{\partial}{\partial z_i}(-\ln s_y)$ and write it with the symbols `s_i`, `delta_iy` (1 if $i = y$, else 0) and
# `T`. Sums, products, quotients and powers are all you need.

# %% id="tempered-cross-entropy-gradient" tags=["task"]
### BEGIN SOLUTION
my_gradient = (s_i - delta_iy) / T
### END SOLUTION

# %% id="tempered-cross-entropy-gradient-check" tags=["check"]
check("tempered-cross-entropy-gradient", my_gradient)

# %% [markdown] id="tempered-cross-entropy-gradient-why" tags=["solution-only"]
# **Why.** The loss is $\mathrm{lse}(z / T) - z_y / T$, by {eq}`cross-entropy` with $z / T$ for $z$. The chain rule puts $1/T$ on
# both terms of {eq}`cross-entropy-gradient`. A hot softmax ($T$ large) learns slowly: its gradients are small.

# %% [markdown] id="blockwise-normaliser-text"
# A row of scores arrives in blocks, and only two numbers are remembered between them: the largest score so far, $m$,
# and the sum measured from it, $\ell = \sum_j e^{z_j - m}$. Write the step that takes in one block:
# `my_update(row_max, row_sum, block)` returns the new pair as the tuple `(row_max, row_sum)`.
#
# `block` is a 1-D float64 array of one or more finite scores, perhaps a thousand and more, of either sign. Before the
# first block the pair is `(-np.inf, 0.0)`. Both results are floats.


# %% id="blockwise-normaliser" tags=["task"]
def my_update(row_max, row_sum, block):
    """(largest score so far, its sum) and a block (n,) -> the same two numbers with the block taken in, {eq}`merge-of-softmax-sums`."""
    ### BEGIN SOLUTION
    new_max = max(row_max, block.max())
    row_sum = row_sum * np.exp(row_max - new_max) + np.exp(block - new_max).sum()
    return new_max, row_sum
    ### END SOLUTION


# %% id="blockwise-normaliser-check" tags=["check"]
check("blockwise-normaliser", my_update)

# %% [markdown] id="blockwise-normaliser-why" tags=["solution-only"]
# **Why.** The old sum was measured from the old maximum; the factor $e^{m - m'}$ moves it to the new one, and is never
# above 1. For the first block it is $e^{-\infty} = 0$, times a sum of 0: no special case. FlashAttention (chapter {lesson}`flash`)
# keeps a third thing, the sum of values, and rescales it in the same way.

# %% [markdown] id="softmax-derivative-text"
# Let $s = \sigma(z)$. Write a formula in LaTeX for
#
# $$J_{ij} = \frac{\partial s_i}{\partial z_j}$$
#
# as it holds for all $i$ and $j$: only the right side, between `r"` and `"`. The Kronecker delta is `\delta_{ij}`. Any
# form that is equal for all weights counts. To see how a formula is understood, `from attn_course import read` and call
# `read("softmax-derivative", my_formula)`; what cannot be read is no attempt.

# %% id="softmax-derivative" tags=["task"]
### BEGIN SOLUTION
my_formula = r"s_i (\delta_{ij} - s_j)"
### END SOLUTION

# %% id="softmax-derivative-check" tags=["check"]
check("softmax-derivative", my_formula)

# %% [markdown] id="softmax-derivative-why" tags=["solution-only"]
# **Why.** With $s_i = e^{z_i} / \sum_k e^{z_k}$ the quotient rule gives
# $\delta_{ij}\, e^{z_i} / \sum_k e^{z_k} - e^{z_i} e^{z_j} / (\sum_k e^{z_k})^2$, which is $\delta_{ij}\, s_i - s_i s_j$.

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

# %% [markdown] id="softmax-backward-derivation-text"
# Let $s = \sigma(z)$ and $J_{ij} = \partial s_i / \partial z_j$, and let $g$ be the gradient of a loss by $s$. Rewrite
# $\sum_{i=1}^{n} J_{ij} g_i$, entry $j$ of $J^\top g$, without the matrix, in lines of LaTeX, each equal to the one before. The
# first and the last are given; take three steps or more. The Kronecker delta is `\delta_{ij}`.
#
# ```python
# my_backward = [
#     r"\sum_{i=1}^{n} J_{ij} g_i",
#     # your lines
#     r"s_j (g_j - \sum_{i=1}^{n} s_i g_i)",
# ]
# ```

# %% id="softmax-backward-derivation" tags=["task"]
### BEGIN SOLUTION
my_backward = [
    r"\sum_{i=1}^{n} J_{ij} g_i",
    r"\sum_{i=1}^{n} s_i (\delta_{ij} - s_j) g_i",
    r"\sum_{i=1}^{n} \delta_{ij} s_i g_i - \sum_{i=1}^{n} s_i s_j g_i",
    r"s_j g_j - \sum_{i=1}^{n} s_i s_j g_i",
    r"s_j g_j - s_j \sum_{i=1}^{n} s_i g_i",
    r"s_j (g_j - \sum_{i=1}^{n} s_i g_i)",
]
### END SOLUTION

# %% id="softmax-backward-derivation-check" tags=["check"]
check("softmax-backward-derivation", my_backward)

# %% [markdown] id="softmax-backward-derivation-why" tags=["solution-only"]
# **Why.** Line 2 inserts {eq}`softmax-derivative`. Of the sum with the delta only the term $i = j$ remains, and in the other sum
# $s_j$ does not depend on $i$. What is left, $\sum_i s_i g_i$, is the same number for all $j$: it is computed once for a
# row, and so the row costs $O(n)$ and not $O(n^2)$.

# %% [markdown] id="multiplier-to-softmax-text"
# Weights $p$ of the largest entropy at a given mean score obey two conditions: the derivative
# {eq}`entropy-lagrangian-gradient` vanishes, and they sum to 1.
#
# $$-\ln p_i - 1 + \beta z_i + \lambda = 0, \qquad \sum_{j=1}^{n} p_j = 1$$
#
# Show that $\lambda$ drops out, in lines of LaTeX, each equal to the one before. The first and the last are given; take
# three steps or more.
#
# ```python
# my_gibbs = [
#     r"p_i",
#     # your lines
#     r"\frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}}",
# ]
# ```

# %% id="multiplier-to-softmax" tags=["task"]
### BEGIN SOLUTION
my_gibbs = [
    r"p_i",
    r"e^{\lambda - 1} e^{\beta z_i}",
    r"\frac{e^{\lambda - 1} e^{\beta z_i}}{\sum_{j=1}^{n} p_j}",
    r"\frac{e^{\lambda - 1} e^{\beta z_i}}{\sum_{j=1}^{n} e^{\lambda - 1} e^{\beta z_j}}",
    r"\frac{e^{\lambda - 1} e^{\beta z_i}}{e^{\lambda - 1} \sum_{j=1}^{n} e^{\beta z_j}}",
    r"\frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}}",
]
### END SOLUTION

# %% id="multiplier-to-softmax-check" tags=["check"]
check("multiplier-to-softmax", my_gibbs)

# %% [markdown] id="multiplier-to-softmax-why" tags=["solution-only"]
# **Why.** Line 2 is the first condition solved for $p_i$, {eq}`unnormalised-gibbs-form`; line 3 divides by 1, which is the second
# condition, and line 4 puts the form of line 2 into each term of that sum. The factor $e^{\lambda - 1}$ is common to all terms
# and cancels. Nobody had to compute $\lambda$, though lines 2 and 6 tell it: $e^{\lambda - 1} = 1 / \sum_j e^{\beta z_j}$, so
# $\lambda = 1 - \mathrm{lse}(\beta z)$.

# %% [markdown] id="cauchy-to-exponential-text"
# Cauchy (*Cours d'analyse*, 1821, chapter 5) solved {eq}`exponential-functional-equation` without a derivative: for whole
# numbers, then for fractions, then for all numbers by continuity. Here you do the fractions. Let $g_k = g(k / n)$ be the
# value after $k$ steps of $1 / n$, so that $g_{k + l} = g_k\, g_l$. All values are positive, and $\beta = \ln g(1) = \ln g_n$.
#
# Show that $g_k$ is an exponential, in lines of LaTeX, each equal to the one before. The first and the last are given; take
# three steps or more. Write products of equal factors as powers; only $g_1, g_2, \ldots$ are given, and $g_0$ is not.
#
# ```python
# my_cauchy = [
#     r"g_k",
#     # your lines
#     r"e^{\beta k / n}",
# ]
# ```

# %% id="cauchy-to-exponential" tags=["task"]
### BEGIN SOLUTION
my_cauchy = [
    r"g_k",
    r"g_1^k",
    r"(g_1^n)^{k / n}",
    r"g_n^{k / n}",
    r"e^{(k / n) \ln g_n}",
    r"e^{\beta k / n}",
]
### END SOLUTION

# %% id="cauchy-to-exponential-check" tags=["check"]
check("cauchy-to-exponential", my_cauchy)

# %% [markdown] id="cauchy-to-exponential-why" tags=["solution-only"]
# **Why.** The equation, used $k - 1$ times, makes $k$ factors $g(1/n)$ of $g(k/n)$. With $k = n$ it says that $g(1)$ is
# $g(1/n)$ to the power $n$, so $g(1/n)$ is a root of $g(1)$, and everything hangs on this one number. As $n$ was any whole
# number, $g(x) = e^{\beta x}$ on all positive fractions; these lie everywhere dense, and so a continuous $g$ has no choice in
# between, {eq}`exponential-unique-solution`.
