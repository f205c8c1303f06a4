# %% [markdown] id="title"
# # Exercises 02: softmax
#
# Nine tasks to the lesson [02 Softmax](../notebooks/02_softmax.ipynb): 20 points, about 85 minutes. Each stands
# for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or behind the `=` sign, run it, then run
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

# %% [markdown] id="task-2-1-text"
# Write softmax for an array of any number of axes: `my_softmax(scores, axis)` returns weights of the shape of
# `scores` that are positive and sum to 1 along `axis`.
#
# `scores` is a float64 array of finite numbers and may hold values of a thousand and more, of either sign, also in
# one row only. `axis` is an integer and may be negative. No library softmax or logsumexp, please.


# %% id="task-2-1" tags=["task"]
def my_softmax(scores, axis):
    """Weights of the shape of `scores` that sum to 1 along `axis`, Eq. (2.19)."""
    ### BEGIN SOLUTION
    shifted = scores - scores.max(axis=axis, keepdims=True)
    unnormalised = np.exp(shifted)
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %% id="task-2-1-check" tags=["check"]
check("2.1", my_softmax)

# %% [markdown] id="task-2-1-why" tags=["solution-only"]
# **Why.** Both reductions run along `axis` and keep it with length 1, so that they broadcast against `scores`
# whatever the axis is. The maximum belongs to each slice: one maximum for the whole array leaves slices far below
# it with 0 / 0.

# %% [markdown] id="task-2-2-text"
# Three scores: $z = (0, 0, \ln 2)$. What is the entropy $H(\sigma(z))$ in nats? Work it out on paper, then write
# the number (three correct digits are enough; an expression such as `2 * np.log(3)` is welcome).

# %% id="task-2-2" tags=["task"]
### BEGIN SOLUTION
my_entropy = 1.5 * np.log(2)
### END SOLUTION

# %% id="task-2-2-check" tags=["check"]
check("2.2", my_entropy)

# %% [markdown] id="task-2-2-why" tags=["solution-only"]
# **Why.** The exponentials are 1, 1, 2, so the weights are 1/4, 1/4, 1/2. Their entropy is
# $2 \cdot \frac14 \ln 4 + \frac12 \ln 2 = \ln 2 + \frac12 \ln 2$. Eq. (2.25) gives the same:
# $\mathrm{lse}(z) = \ln 4$, minus the mean score $\frac12 \ln 2$.

# %% [markdown] id="task-2-3-text"
# Let $s = \sigma(z)$. Derive $\dfrac{\partial \ln s_i}{\partial z_j}$ and write it with the symbols `s_i`, `s_j` and
# `delta_ij` (the Kronecker delta: 1 if $i = j$, else 0). Sums, products and powers of them are all you need. The
# check wants the result of the differentiation, so SymPy's `diff` and `Derivative` do not count.

# %% id="task-2-3" tags=["task"]
### BEGIN SOLUTION
my_derivative = delta_ij - s_j
### END SOLUTION

# %% id="task-2-3-check" tags=["check"]
check("2.3", my_derivative)

# %% [markdown] id="task-2-3-why" tags=["solution-only"]
# **Why.** $\ln s_i = z_i - \mathrm{lse}(z)$ by Eq. (2.14). The first term has the derivative $\delta_{ij}$, the second
# $-s_j$ by Eq. (2.15). Multiply by $s_i$ and Eq. (2.20) appears.

# %% [markdown] id="task-2-4-text"
# Write `my_jacobian(weights)`: for softmax weights $s$ along the **last** axis of an array of shape `(..., n)`, return
# the array of shape `(..., n, n)` whose entry `[..., i, j]` is $\partial s_i / \partial z_j$. There may be no, one or
# several leading axes, and $n$ may be 1. No automatic differentiation, please.


# %% id="task-2-4" tags=["task"]
def my_jacobian(weights):
    """weights (..., n) -> Jacobian (..., n, n), Eq. (2.21)."""
    ### BEGIN SOLUTION
    identity = np.eye(weights.shape[-1])
    return weights[..., :, None] * (identity - weights[..., None, :])
    ### END SOLUTION


# %% id="task-2-4-check" tags=["check"]
check("2.4", my_jacobian)

# %% [markdown] id="task-2-4-why" tags=["solution-only"]
# **Why.** This is Eq. (2.20) entry by entry: $s_i$ runs along the second to last axis, $s_j$ along the last.
# `np.diag` and `np.outer` would do for a single row only.

# %% [markdown] id="task-2-5-text"
# The function below should return, for a matrix of scores with **queries in rows and keys in columns**, the weights
# of each query over the keys at a given temperature (one positive number for all), Eq. (2.9). It raises no error, and
# it is wrong in three places. Repair it. Rows may lie a thousand apart. No library softmax, please.


# %% id="task-2-5" tags=["task"]
def tempered_weights(scores, temperature):
    """Weights of each query (row) over the keys (columns); a higher temperature flattens them."""
    ### BEGIN SOLUTION
    shifted = scores - scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(shifted / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="task-2-5-check" tags=["check"]
check("2.5", tempered_weights)

# %% [markdown] id="task-2-5-why" tags=["solution-only"]
# **Why.** (1) The maximum was that of all queries, so a row a thousand below it became 0 / 0. (2) A factor outside the
# exponential cancels against the sum; the temperature must divide the scores. (3) `axis=0` normalised over the
# queries: every *key* handed out a total weight of 1.

# %% [markdown] id="task-2-6-text"
# Write the backward pass of softmax: `my_softmax_vjp(weights, d_weights)` takes weights $s$ of shape `(..., n)`, which
# sum to 1 along the last axis, and the gradient $g$ of a loss with respect to them, of the same shape. It returns
# the gradient with respect to the scores, of that shape too. Do it without the $n \times n$ matrix and without
# automatic differentiation.


# %% id="task-2-6" tags=["task"]
def my_softmax_vjp(weights, d_weights):
    """weights, d_weights (..., n) -> d_scores (..., n), Eq. (2.24)."""
    ### BEGIN SOLUTION
    mean_gradient = (weights * d_weights).sum(axis=-1, keepdims=True)
    return weights * (d_weights - mean_gradient)
    ### END SOLUTION


# %% id="task-2-6-check" tags=["check"]
check("2.6", my_softmax_vjp)

# %% [markdown] id="task-2-6-why" tags=["solution-only"]
# **Why.** $(\mathrm{diag}(s) - s s^\top)\,g = s \odot g - s\,(s \cdot g)$, and $s \cdot g$ is one number for each row:
# the mean of the gradient under the weights. Only what differs from that mean moves a score.

# %% [markdown] id="task-2-7-text"
# The figure shows softmax weights of the same four scores, $z = (2, 1, 0, -1)$, at three temperatures: 0.5, 1 and 4.
# Run the cell, decide which panel belongs to which temperature, and write the three temperatures in the order A, B, C.

# %% id="task-2-7-figure"
from attn_course import figures
from attn_course.tasks import figure_data

figures.temperature_bars(**figure_data("2.7"))

# %% id="task-2-7" tags=["task"]
### BEGIN SOLUTION
my_temperatures = (1.0, 4.0, 0.5)
### END SOLUTION

# %% id="task-2-7-check" tags=["check"]
check("2.7", my_temperatures)

# %% [markdown] id="task-2-7-why" tags=["solution-only"]
# **Why.** Neighbouring scores differ by 1, so by Eq. (2.3) neighbouring weights have the ratio $e^{1/T}$: about 2.7 in
# panel A ($T = 1$), 1.3 in B ($T = 4$), and 7.4 in C ($T = 0.5$).

# %% [markdown] id="task-2-8-text"
# A classifier uses a temperature: $s = \sigma(z / T)$, with the loss $-\ln s_y$ for the right class $y$. Derive
# $\dfrac{\partial}{\partial z_i}(-\ln s_y)$ and write it with the symbols `s_i`, `delta_iy` (1 if $i = y$, else 0) and
# `T`. Sums, products, quotients and powers are all you need; `diff` and `Derivative` do not count.

# %% id="task-2-8" tags=["task"]
### BEGIN SOLUTION
my_gradient = (s_i - delta_iy) / T
### END SOLUTION

# %% id="task-2-8-check" tags=["check"]
check("2.8", my_gradient)

# %% [markdown] id="task-2-8-why" tags=["solution-only"]
# **Why.** The loss is $\mathrm{lse}(z / T) - z_y / T$, by Eq. (2.31) with $z / T$ for $z$. The chain rule puts $1/T$ on
# both terms of Eq. (2.32). A hot softmax ($T$ large) learns slowly: its gradients are small.

# %% [markdown] id="task-2-9-text"
# A row of scores arrives in blocks, and you may not keep old blocks. Write `my_online_normaliser(blocks)`: `blocks` is
# a list of one or more 1-D float64 arrays, none empty, of any lengths; all scores are finite. Return the pair $(m, \ell)$
# after the last block: the largest score $m$, and the sum $\ell = \sum_j e^{z_j - m}$ over all scores.
#
# Scores may be near $\pm 1000$, and the maximum may come in any block. Two numbers (NumPy or Python floats) are the
# answer, in this order. No library softmax or logsumexp, please.


# %% id="task-2-9" tags=["task"]
def my_online_normaliser(blocks):
    """List of 1-D arrays -> (largest score, sum of exp(score - largest score)), Eq. (2.34)."""
    ### BEGIN SOLUTION
    row_max, row_sum = -np.inf, 0.0
    for block in blocks:
        new_max = max(row_max, block.max())
        row_sum = row_sum * np.exp(row_max - new_max) + np.exp(block - new_max).sum()
        row_max = new_max
    return row_max, row_sum
    ### END SOLUTION


# %% id="task-2-9-check" tags=["check"]
check("2.9", my_online_normaliser)

# %% [markdown] id="task-2-9-why" tags=["solution-only"]
# **Why.** The old sum was measured from the old maximum; the factor $e^{m - m'}$ moves it to the new one, and is never
# above 1. For the first block it is $e^{-\infty} = 0$, times a sum of 0: no special case. FlashAttention (chapter 12)
# keeps a third number for each output entry, rescaled in the same way.
