# %% [markdown] id="title"
# # Exercises {lesson}`attention`: scaled dot-product attention
#
# Eleven tasks for the lesson [{lesson}`attention` Scaled dot-product attention](../notebooks/{lesson}`attention`_attention.ipynb): 25 points,
# about 115 minutes. Each stands on its own.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or behind the `=` sign, run it, then run
# the check below it. A check that passes prints one line that begins with `ok`; one that fails says what is wrong, and
# stops "Run All". You may add cells, but leave the check cells as they are.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
# Rows are positions: queries $(T_q, d_k)$, keys $(T_k, d_k)$, values $(T_k, d_v)$.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one: numbers that your tasks print depend on it

# %% [markdown] id="scaled-attention-text"
# Write attention: `my_attention(query, key, value)` takes float64 arrays of shape `(..., q_len, d_k)`,
# `(..., kv_len, d_k)` and `(..., kv_len, d_v)` and returns the outputs, `(..., q_len, d_v)`, with the scale
# $1/\sqrt{d_k}$ and a softmax over the keys.
#
# The three arrays have the same leading axes: none, one or several. Scores may lie anywhere between -1000 and 1000, so
# the softmax must be a stable one, row by row; a library's softmax is welcome.


# %% id="scaled-attention" tags=["task"]
def my_attention(query, key, value):
    """(..., q_len, d_k), (..., kv_len, d_k), (..., kv_len, d_v) -> (..., q_len, d_v), {eq}`batched-attention`."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="scaled-attention-check" tags=["check"]
check("scaled-attention", my_attention)

# %% [markdown] id="scaled-attention-why" tags=["solution-only"]
# **Why.** `swapaxes(-1, -2)` touches the last two axes only, so every leading axis is carried along by `@`; `key.T`
# would reverse all axes. The maximum and the sum run over the keys, one of each for every query.

# %% [markdown] id="repair-transposed-weights-text"
# The function below should average the values for each query, {eq}`attention`, in a layer where as many positions ask as
# answer: `query` and `key` have shape `(n, d_k)`, `value` has shape `(n, d_v)`, and the result `(n, d_v)`. It raises
# no error, and it is wrong in two places. Repair it. Scores may lie anywhere between -1000
# and 1000, those of one query far below those of another.


# %% id="repair-transposed-weights" tags=["task"]
def weighted_sums(query, key, value):
    """Output i is the average of the values under the weights of query i."""
    ### BEGIN SOLUTION
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", weights, value)
    ### END SOLUTION


# %% id="repair-transposed-weights-check" tags=["check"]
check("repair-transposed-weights", weighted_sums)

# %% [markdown] id="repair-transposed-weights-why" tags=["solution-only"]
# **Why.** (1) The einsum summed over $i$, the queries: output $j$ collected what *other* queries thought of key $j$. With
# all values equal to 1 the outputs were column sums, not 1. (2) One maximum for all rows turns a row far below it
# into 0 / 0. With as many queries as keys, no shape gives the first mistake away.

# %% [markdown] id="repair-mixed-batch-text"
# The function below should run attention inside each example of a batch: `query` is `(batch, q_len, d_k)`, `key`
# `(batch, kv_len, d_k)`, `value` `(batch, kv_len, d_v)`, the result `(batch, q_len, d_v)`. The shapes are right, the
# numbers are not: the examples see each other. Repair it.


# %% id="repair-mixed-batch" tags=["task"]
def batched_attention(query, key, value):
    """Attention inside each example: the result has shape (batch, q_len, d_v)."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="repair-mixed-batch-check" tags=["check"]
check("repair-mixed-batch", batched_attention)

# %% [markdown] id="repair-mixed-batch-why" tags=["solution-only"]
# **Why.** `reshape(-1, d_k)` glued the examples into one long sequence, and each query scored the keys of all of them.
# A matrix product of arrays with three axes already treats the first as a list of separate problems.

# %% [markdown] id="read-attention-map-text"
# Run the cell below. It shows the weights of four queries over five keys, rows and columns counted from 0. Write three
# numbers as `my_reading = (a, b, c)`:
#
# - `a`: which query gives key 0 the largest weight?
# - `b`: which value counts most in output 0?
# - `c`: every value is the number 1, except value 3, which is 0. The keys and the weights stay as they are. What is
#   output 0?

# %% id="read-attention-map-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-attention-map"))

# %% id="read-attention-map" tags=["task"]
### BEGIN SOLUTION
my_reading = (1, 2, 0.95)
### END SOLUTION

# %% id="read-attention-map-check" tags=["check"]
check("read-attention-map", my_reading)

# %% [markdown] id="read-attention-map-why" tags=["solution-only"]
# **Why.** Column 0 is largest in row 1 (0.46). Row 0 is largest in column 2 (0.62). Output 0 is the sum of row 0
# without the weight 0.05 of value 3. Rows sum to 1; columns need not.

# %% [markdown] id="score-gradient-text"
# One query with weights $p_1, \ldots, p_n$ (the softmax of scores $s_1, \ldots, s_n$) and values that are plain numbers
# gives the output $z = \sum_l p_l v_l$. The loss is $L = \frac12 (z - t)^2$ with a target $t$. Derive
# $\dfrac{\partial L}{\partial s_j}$ and write it with the symbols `p_j`, `v_j`, `z` and `t`. Sums, products and powers of
# them are all you need.

# %% id="score-gradient" tags=["task"]
### BEGIN SOLUTION
my_score_gradient = p_j * (z - t) * (v_j - z)
### END SOLUTION

# %% id="score-gradient-check" tags=["check"]
check("score-gradient", my_score_gradient)

# %% [markdown] id="score-gradient-why" tags=["solution-only"]
# **Why.** The gradient at the output is $dO = z - t$, and {eq}`score-gradient-against-mixture` does the rest. A step *against* the gradient
# raises
# $s_j$ if $v_j$ lies on the same side of $z$ as the target: the scores of helpful values grow.

# %% [markdown] id="attention-backward-text"
# Write the backward pass of attention for one example: `my_attention_backward(query, key, value, d_output)` takes
# `(q_len, d_k)`, `(kv_len, d_k)`, `(kv_len, d_v)` and the gradient of a loss with respect to the output,
# `(q_len, d_v)`. It returns the tuple `(d_query, d_key, d_value)` of gradients, each of the shape of what it belongs
# to. The forward pass has the scale $1/\sqrt{d_k}$ and a softmax over the keys; scores are moderate.


# %% id="attention-backward" tags=["task"]
def my_attention_backward(query, key, value, d_output):
    """Gradients (d_query, d_key, d_value) from d_output (q_len, d_v), section {section}`attention/backward`."""
    ### BEGIN SOLUTION
    scale = 1 / np.sqrt(query.shape[-1])
    scores = query @ key.T * scale
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)

    d_value = weights.T @ d_output
    d_weights = d_output @ value.T
    delta = (weights * d_weights).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - delta)
    return d_scores @ key * scale, d_scores.T @ query * scale, d_value
    ### END SOLUTION


# %% id="attention-backward-check" tags=["check"]
check("attention-backward", my_attention_backward)

# %% [markdown] id="attention-backward-why" tags=["solution-only"]
# **Why.** The steps go in reverse, each with a transposed partner: $V$ and $P$ meet in the output, so each gets $dO$
# times the other; the softmax of each row subtracts $\delta_i$; $Q$ and $K$ meet in the scores, with one scale each.

# %% [markdown] id="query-on-its-key-text"
# A query lies exactly on its own key: $q = k_1$. There is one other key, $k_2$; the cell below prints yours as `key_1` and `key_2`. Which
# weight does attention, {eq}`attention-of-one-query`, give to $k_1$? Work it out on paper, then write the number (three correct digits are
# enough; an expression with `np.exp` is welcome).

# %% id="query-on-its-key" tags=["task"]
### BEGIN SOLUTION
my_weight = 1 / (1 + np.exp((np.dot(key_1, key_2) - np.dot(key_1, key_1)) / 2))
### END SOLUTION

# %% id="query-on-its-key-check" tags=["check"]
check("query-on-its-key", my_weight)

# %% [markdown] id="query-on-its-key-why" tags=["solution-only"]
# **Why.** Here the dot products are $q \cdot k_1 = 2$ and $q \cdot k_2 = 4$; divided by $\sqrt{4} = 2$ they differ by 1. The
# query sits on the first key, at distance 0, and yet the longer key gets about 73 % of the weight.

# %% [markdown] id="attention-slope-text"
# Attention in one dimension ($d_k = d_v = 1$, so the scale is 1): two keys, the numbers $k_1$ and $k_2$, with values
# $v_1$ and $v_2$. A query $q$ gives them the weights $p$ and $1 - p$ and has the output $z = p\,v_1 + (1 - p)\,v_2$.
# Derive the slope $\dfrac{\mathrm{d} z}{\mathrm{d} q}$ and write it with the symbols `p`, `v_1`, `v_2`, `k_1` and `k_2`.
# Sums, products and powers of them are all you need.

# %% id="attention-slope" tags=["task"]
### BEGIN SOLUTION
my_slope = p * (1 - p) * (v_1 - v_2) * (k_1 - k_2)
### END SOLUTION

# %% id="attention-slope-check" tags=["check"]
check("attention-slope", my_slope)

# %% [markdown] id="attention-slope-why" tags=["solution-only"]
# **Why.** This is {eq}`output-derivative-by-query` for two keys: the covariance of value and key under the weights $p$ and $1 - p$. It is
# steepest at $p = \frac12$, where $p(1 - p) = \frac14$: the $4$ in the bound of {eq}`bounded-slope-in-query`.

# %% [markdown] id="gradient-through-the-softmax-text"
# The weights $P$ are the softmax of the scores $S$, row by row, and $dP$ is the gradient of a loss with respect to $P$.
# Write the gradient with respect to $S$ as **one** formula in LaTeX, only the right side, between `r"` and `"`:
#
# $$dS = \ldots$$
#
# The left side has no index, so the right side has none: `\odot` multiplies entry by entry, `\mathbf{1}` is a column of
# ones, `\mathrm{diag}(...)` puts a column on a diagonal. The row sums, $\delta$ in {eq}`gradient-of-scores`, have to be
# written out. Any equal form counts. How it is understood tells `read("gradient-through-the-softmax", my_formula)`, with
# `from attn_course import read`; what cannot be read is no attempt.

# %% id="gradient-through-the-softmax" tags=["task"]
### BEGIN SOLUTION
my_formula = r"P \odot (dP - (P \odot dP) \mathbf{1} \mathbf{1}^\top)"
### END SOLUTION

# %% id="gradient-through-the-softmax-check" tags=["check"]
check("gradient-through-the-softmax", my_formula)

# %% [markdown] id="gradient-through-the-softmax-why" tags=["solution-only"]
# **Why.** $(P \odot dP)\, \mathbf{1}$ is the column of the numbers $\delta_i = \sum_j p_{ij}\, dP_{ij}$, and times $\mathbf{1}^\top$ each of
# them fills its row. In NumPy the two products with ones are `sum(axis=-1, keepdims=True)` and the broadcast behind it.

# %% [markdown] id="gradient-of-one-key-text"
# Every query has a score with key $j$. Write what the key gets back from all, row $j$ of $dK$, as a formula:
#
# $$dK_j = \ldots$$
#
# The scores are $Q K^\top / \sqrt{d_k}$, the outputs $Z$, and `dO` is the gradient at $Z$. Rows are `Q_i`, `V_j`, `Z_i`
# and `dO_i`; put a dot product in parentheses, `(dO_i \cdot ...)`. Any form that is equal counts.

# %% id="gradient-of-one-key" tags=["task"]
### BEGIN SOLUTION
my_key_gradient = r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} (dO_i \cdot (V_j - Z_i)) Q_i"
### END SOLUTION

# %% id="gradient-of-one-key-check" tags=["check"]
check("gradient-of-one-key", my_key_gradient)

# %% [markdown] id="gradient-of-one-key-why" tags=["solution-only"]
# **Why.** By {eq}`query-and-key-gradients`, $dK_j = \sum_i dS_{ij}\, Q_i / \sqrt{d_k}$, and {eq}`score-gradient-against-mixture` says what
# $dS_{ij}$ is. So a step against the gradient moves the key **towards** the queries whose outputs would gain from more of
# its value, and away from the others, each in proportion to the weight it already gives the key. A key to which no
# query gives any weight does not learn.

# %% [markdown] id="from-jacobian-to-output-text"
# By {eq}`softmax-derivative` and the chain rule,
#
# $$dS_{ij} = \sum_l dP_{il}\, p_{il} (\delta_{lj} - p_{ij}).$$
#
# FlashAttention computes $p_{ij} (dP_{ij} - dO_i \cdot z_i)$ instead: what it subtracts needs the output, but no sum over the keys. Show
# that both are the same: a list of lines in LaTeX, each equal to the one before. The first and the last are given; it
# takes three steps or more:
#
# ```python
# my_derivation = [
#     r"\sum_l dP_{il} p_{il} (\delta_{lj} - p_{ij})",
#     # your lines
#     r"p_{ij} (dP_{ij} - dO_i \cdot z_i)",
# ]
# ```
#
# You may use $dP_{il} = dO_i \cdot v_l$, {eq}`gradient-of-weights`, and $z_i = \sum_l p_{il}\, v_l$, {eq}`output-of-a-query`. Let sums run over letters
# other than $i$ and $j$.

# %% id="from-jacobian-to-output" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\sum_l dP_{il} p_{il} (\delta_{lj} - p_{ij})",
    r"\sum_l dP_{il} p_{il} \delta_{lj} - \sum_l dP_{il} p_{il} p_{ij}",
    r"dP_{ij} p_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
    r"p_{ij} \left( dP_{ij} - \sum_l p_{il} (dO_i \cdot v_l) \right)",
    r"p_{ij} \left( dP_{ij} - dO_i \cdot \left( \sum_l p_{il} v_l \right) \right)",
    r"p_{ij} (dP_{ij} - dO_i \cdot z_i)",
]
### END SOLUTION

# %% id="from-jacobian-to-output-check" tags=["check"]
check("from-jacobian-to-output", my_derivation)

# %% [markdown] id="from-jacobian-to-output-why" tags=["solution-only"]
# **Why.** The delta leaves the one term with $l = j$, and $p_{ij}$ does not depend on $l$. What remains is the mean of the $dP_{il}$
# under the weights; since the dot product is linear, it is the dot product with the mean of the values, and
# that is the output: {eq}`score-gradient-against-mixture`. It costs $d_v$ multiplications for each query, whatever the number of keys.
