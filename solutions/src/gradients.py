# %% [markdown] id="title"
# # Exercises {lesson}`gradients`: gradients by hand
#
# Nine tasks for the lesson [{lesson}`gradients` Gradients by hand](../notebooks/{lesson}`gradients`_gradients.ipynb): 20 points, about 101
# minutes. Each stands on its own.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. A check that passes shows a green card in JupyterLab, elsewhere one line; one that fails says what
# is wrong, and stops "Run All". You may add cells, but leave the check cells as they are.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
# Rows are positions: queries $(T_q, d_k)$, keys $(T_k, d_k)$, values $(T_k, d_v)$.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

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
# **Why.** The gradient at the output is $dZ = z - t$, and {eq}`score-gradient-against-mixture` does the rest. A step of the scores *against*
# their gradient raises $s_j$ if $v_j$ lies on the same side of $z$ as the target: the scores of helpful values grow.

# %% [markdown] id="formulas"
# Four tasks want formulas in LaTeX. With `from attn_course import read`, `read("delta-without-weights", my_total)` shows how a formula is
# understood. What cannot be read is no attempt.

# %% [markdown] id="delta-without-weights-text"
# Row $i$ of $dP$ has the weighted mean $\delta_i = \sum_j p_{ij}\, dP_{ij}$. Add these means up over all queries, and write the sum as a
# formula that holds neither weights nor anything of the queries, only the right side, between `r"` and `"`:
#
# $$\sum_i \delta_i = \ldots$$
#
# `V` are the values and `dV` is the gradient there, both $(T_k, d_v)$; their rows are `V_j` and `dV_j`. The left side is a number, so the
# right side has no index left over. Any form that is equal counts.

# %% id="delta-without-weights" tags=["task"]
### BEGIN SOLUTION
my_total = r"\sum_j dV_j \cdot V_j"
### END SOLUTION

# %% id="delta-without-weights-check" tags=["check"]
check("delta-without-weights", my_total)

# %% [markdown] id="delta-without-weights-why" tags=["solution-only"]
# **Why.** $\sum_i \delta_i = \sum_i \sum_j p_{ij} \sum_a dZ_{ia} V_{ja}$. The sum over the queries may go first:
# $\sum_j \sum_a V_{ja} \sum_i p_{ij}\, dZ_{ia}$, and the last sum is $dV_{ja}$, {eq}`value-gradient-by-entry`. There is a meaning in it: both
# are the rate at which the loss changes if all values, and with them all outputs, are multiplied by the same number a little larger than 1.

# %% [markdown] id="gradient-through-the-softmax-text"
# The weights $P$ are the softmax of the scores $S$, row by row, and $dP$ is the gradient of a loss with respect to $P$.
# Write the gradient with respect to $S$ as **one** formula in LaTeX, only the right side, between `r"` and `"`:
#
# $$dS = \ldots$$
#
# The left side has no index, so the right side has none: `\odot` multiplies entry by entry, `\mathbf{1}` is a column of
# ones, `\mathrm{diag}(...)` puts a column on a diagonal. Write out the row sums, not `\delta`. Any equal form counts.

# %% id="gradient-through-the-softmax" tags=["task"]
### BEGIN SOLUTION
my_formula = r"P \odot (dP - (P \odot dP) \mathbf{1} \mathbf{1}^\top)"
### END SOLUTION

# %% id="gradient-through-the-softmax-check" tags=["check"]
check("gradient-through-the-softmax", my_formula)

# %% [markdown] id="gradient-through-the-softmax-why" tags=["solution-only"]
# **Why.** $(P \odot dP)\, \mathbf{1}$ is the column of the numbers $\delta_i = \sum_j p_{ij}\, dP_{ij}$, and times $\mathbf{1}^\top$ each
# of them fills its row. In NumPy the two products with ones are `sum(axis=-1, keepdims=True)` and the broadcast behind it.

# %% [markdown] id="gradient-of-one-key-text"
# Every query has a score with key $j$. Write what key $j$ gets back from all queries, row $j$ of $dK$, as a formula:
#
# $$dK_j = \ldots$$
#
# The scores are $Q K^\top / \sqrt{d_k}$, the outputs $Z$, and `dZ` is the gradient at $Z$. Rows are `Q_i`, `V_j`, `Z_i` and `dZ_i`, and
# the weights are `P_{ij}`. `dS` and `dP` may not stand in it: write out what they are. Put a dot product in parentheses, `(dZ_i \cdot ...)`. Any
# form that is equal counts.

# %% id="gradient-of-one-key" tags=["task"]
### BEGIN SOLUTION
my_key_gradient = r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} (dZ_i \cdot (V_j - Z_i)) Q_i"
### END SOLUTION

# %% id="gradient-of-one-key-check" tags=["check"]
check("gradient-of-one-key", my_key_gradient)

# %% [markdown] id="gradient-of-one-key-why" tags=["solution-only"]
# **Why.** By {eq}`query-and-key-gradients`, $dK_j = \sum_i dS_{ij}\, Q_i / \sqrt{d_k}$, and {eq}`score-gradient-against-mixture` says what
# $dS_{ij}$ is. So a step against the gradient moves the key **towards** the queries whose outputs would gain from more of
# its value, and away from the others, each with the weight that it already gives the key as a factor. A key to which no
# query gives any weight gets no gradient.

# %% [markdown] id="from-jacobian-to-output-text"
# By {eq}`score-gradient-over-row`, $dS_{ij} = \sum_l dP_{il}\, p_{il} ([l = j] - p_{ij})$. In other words, key $j$ is compared with each key
# $l$ of the row, and the pair counts with the weight of $l$. Show it: a list of lines in LaTeX, each equal to the one before. The first and
# the last are given; it takes three steps or more:
#
# ```python
# my_derivation = [
#     r"\sum_l dP_{il} p_{il} ([l = j] - p_{ij})",
#     # your lines
#     r"p_{ij} \sum_l p_{il} \, dZ_i \cdot (v_j - v_l)",
# ]
# ```
#
# You may use $dP_{il} = dZ_i \cdot v_l$, {eq}`gradient-of-weights`, and $z_i = \sum_l p_{il}\, v_l$, {eq}`output-of-a-query`. The weights of
# a row sum to 1. Let sums run over letters other than $i$ and $j$.

# %% id="from-jacobian-to-output" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\sum_l dP_{il} p_{il} ([l = j] - p_{ij})",
    r"\sum_l dP_{il} p_{il} [l = j] - \sum_l dP_{il} p_{il} p_{ij}",
    r"dP_{ij} p_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
    r"p_{ij} \left( \sum_l p_{il} dP_{ij} - \sum_l p_{il} dP_{il} \right)",
    r"p_{ij} \sum_l p_{il} (dP_{ij} - dP_{il})",
    r"p_{ij} \sum_l p_{il} \, dZ_i \cdot (v_j - v_l)",
]
### END SOLUTION

# %% id="from-jacobian-to-output-check" tags=["check"]
check("from-jacobian-to-output", my_derivation)

# %% [markdown] id="from-jacobian-to-output-why" tags=["solution-only"]
# **Why.** The bracket $[l = j]$ leaves the one term with $l = j$, and $p_{ij}$ does not depend on $l$. Since $\sum_l p_{il} = 1$, the single term
# $dP_{ij}$ is $\sum_l p_{il}\, dP_{ij}$, and the two sums become one. So a score says by how much value $j$ beats the others, pair by pair.
# If there are only two keys, the gradients of their scores are equal and opposite. To compute it, one takes the average of the $v_l$ first,
# which is $z_i$: {eq}`score-gradient-against-mixture` needs one comparison for each key, and the line above $T_k$ of them.

# %% [markdown] id="attention-backward-text"
# Let the **queries compete**: the scores are $S = Q K^\top / \sqrt{d_k}$ as always, but the softmax runs down each *column*, over the
# queries. The output is $Z = P V$.
#
# Write the backward pass: `my_attention_backward(query, key, value, d_output)` takes $(T_q, d_k)$, $(T_k, d_k)$, $(T_k, d_v)$ and the
# gradient at the output, $(T_q, d_v)$. It returns `(d_query, d_key, d_value)`, each of the shape of what it belongs to. Scores are
# small enough for `np.exp`. Before you run the check, test `d_key` with central differences of `(d_output * Z).sum()`.


# %% id="attention-backward" tags=["task"]
def my_attention_backward(query, key, value, d_output):
    """Gradients (d_query, d_key, d_value) from d_output (T_q, d_v)."""
    ### BEGIN SOLUTION
    scale = 1 / np.sqrt(query.shape[-1])
    scores = query @ key.T * scale
    unnormalised = np.exp(scores - scores.max(axis=0))
    weights = unnormalised / unnormalised.sum(axis=0)

    d_value = weights.T @ d_output
    d_weights = d_output @ value.T
    mean = (weights * d_weights).sum(axis=0)
    d_scores = weights * (d_weights - mean)
    return d_scores @ key * scale, d_scores.T @ query * scale, d_value
    ### END SOLUTION


# %% id="attention-backward-check" tags=["check"]
check("attention-backward", my_attention_backward)

# %% [markdown] id="attention-backward-why" tags=["solution-only"]
# **Why.** How the weights were made does not matter for $dV$ and $dP$, and how the scores reach the weights does not matter for $dQ$ and
# $dK$: four products stay as they are. But now $s_{ij}$ touches the weights $p_{lj}$ of its *column*, at the rate
# $p_{lj} ([l = i] - p_{ij})$, so $dS_{ij} = \sum_l dP_{lj}\, p_{lj} ([l = i] - p_{ij}) = p_{ij} \bigl( dP_{ij} - \sum_l p_{lj}\,
# dP_{lj} \bigr)$. Every column of $dS$ sums to 0. (Slot attention, [arXiv:2006.15055](https://arxiv.org/abs/2006.15055), lets queries
# compete in this way.)

# %% [markdown] id="repair-shared-backward-text"
# Let queries and keys be one matrix $X$, so that the scores are $X X^\top / \sqrt{d_k}$. A backward pass was tried on one example:
#
# ```python
# x = np.array([[1.0], [-1.0]])
# value = d_output = np.eye(2)
# ```
#
# Here both gradients are right. On nearly all other examples with $n > 1$, `d_x` is wrong, by **three** mistakes. Find small inputs on which
# they show, and repair the function. (`x` is $(n, d_k)$, `value` and `d_output` are $(n, d_v)$.)


# %% id="repair-shared-backward" tags=["task"]
def shared_backward(x, value, d_output):
    """The gradients (d_x, d_value) of attention whose queries and keys are both x."""
    ### BEGIN SOLUTION
    root = np.sqrt(x.shape[1])
    scores = x @ x.T / root
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)

    d_value = weights.T @ d_output
    mean_costs = (d_output * (weights @ value)).sum(axis=1, keepdims=True)
    d_scores = weights * (d_output @ value.T - mean_costs)
    d_x = (d_scores + d_scores.T) @ x / root
    return d_x, d_value
    ### END SOLUTION


# %% id="repair-shared-backward-check" tags=["check"]
check("repair-shared-backward", shared_backward)

# %% [markdown] id="repair-shared-backward-why" tags=["solution-only"]
# **Why.** Entry $X_{ic}$ touches the scores of row $i$ as part of a query, at the rate $X_{jc} / \sqrt{d_k}$, and those of column $i$ as part
# of a key, at the same rate; the score $s_{ii}$ it touches in both ways. So $dX = (dS + dS^\top)\, X / \sqrt{d_k}$, and $2\, dS\, X$ is
# right only if $dS$ is symmetric, as in the example, and $d_k = 1$. The mean costs were $V_j \cdot dV_j = \sum_i p_{ij}\, dP_{ij}$, sums of
# the *columns* of $P \odot dP$, which in the example equal those of the rows. With $d_k = 4$ and all else kept symmetric, the factor shows
# alone.

# %% [markdown] id="memory-of-kept-weights-text"
# A model keeps the weights $P$ of every layer, head and sequence from the forward pass, in 16-bit numbers, until the backward pass has
# used them. The cell below prints your `layers`, `heads`, `length` (queries and keys of a sequence) and `batch` (sequences). How many
# gigabytes, of $10^9$ bytes each, do all the weights take together? Two correct digits are enough; an expression is welcome.

# %% id="memory-of-kept-weights" tags=["task"]
### BEGIN SOLUTION
my_gigabytes = layers * heads * batch * length**2 * 2 / 1e9
### END SOLUTION

# %% id="memory-of-kept-weights-check" tags=["check"]
check("memory-of-kept-weights", my_gigabytes)

# %% [markdown] id="memory-of-kept-weights-why" tags=["solution-only"]
# **Why.** Each head of each layer has $T_q T_k$ weights for each sequence, {eq}`numbers-kept-for-gradients`, and none of them can be thrown
# away before the backward pass has come to its layer. FlashAttention keeps none of them: lesson {lesson}`flash`.

# %% [markdown] id="batched-backward-text"
# Write `my_batched_backward(query, key, value, d_output)`. Queries $(\ldots, T_q, d_k)$ and the gradient at the outputs,
# $(\ldots, T_q, d_v)$, have the same leading axes (none, one or several). Keys $(\ldots, T_k, d_k)$ and values $(\ldots, T_k, d_v)$ have
#
# - either the same leading axes: then the examples are separate problems;
# - or **none at all**: then all examples share them. (Which outputs does an entry of a shared key touch?)
#
# Return `(d_query, d_key, d_value)`, each shaped like what it belongs to, for scores divided by $\sqrt{d_k}$ and a softmax over the
# keys. Scores are small enough for `np.exp`. Before you run the check, write your own: move one entry of a *shared* key a step up and a
# step down, and compare the central difference of `(d_output * output).sum()` with `d_key`.


# %% id="batched-backward" tags=["task"]
def my_batched_backward(query, key, value, d_output):
    """(..., T_q, d_k), (..., T_k, d_k), (..., T_k, d_v), (..., T_q, d_v) -> three
    gradients.
    """
    ### BEGIN SOLUTION
    root = np.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) / root
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)

    d_weights = d_output @ value.swapaxes(-1, -2)
    delta = (weights * d_weights).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - delta) / root

    d_key = d_scores.swapaxes(-1, -2) @ query
    d_value = weights.swapaxes(-1, -2) @ d_output
    shared = tuple(range(query.ndim - key.ndim))
    return d_scores @ key, d_key.sum(axis=shared), d_value.sum(axis=shared)
    ### END SOLUTION


# %% id="batched-backward-check" tags=["check"]
check("batched-backward", my_batched_backward)

# %% [markdown] id="batched-backward-why" tags=["solution-only"]
# **Why.** Every product carries the leading axes along, as in the forward pass. An entry of a shared key touches the outputs of all
# examples, and {eq}`gradient-collects-all-outputs` sums over everything that is touched. (With no surplus axis, `sum(axis=())` adds
# nothing up and returns the array as it is.) A key that several heads share, lesson {lesson}`heads`, gets its gradient in the same way.

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="gain-over-mixture-text"
# Write `my_d_scores(weights, output, value, d_output)`: the gradient at all scores, $(T_q, T_k)$, float64, given weights of that
# shape, values $(T_k, d_v)$, and the output with the gradient there, both $(T_q, d_v)$.


# %% id="gain-over-mixture" tags=["task"]
def my_d_scores(weights, output, value, d_output):
    ### BEGIN SOLUTION
    return weights * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))
    ### END SOLUTION


# %% id="gain-over-mixture-check" tags=["check"]
check("gain-over-mixture", my_d_scores)

# %% [markdown] id="gain-over-mixture-why" tags=["solution-only"]
# **Why.** $dZ_i \cdot (v_j - z_i)$ is $dZ_i \cdot v_j$, an entry of $dZ\, V^\top$, less $dZ_i \cdot z_i$, one number for each query,
# {eq}`score-gradient-against-mixture`.

# %% [markdown] id="key-gradient-by-differences-text"
# Write `my_differences(query, key, value, d_output, step)`: for each entry of `key` the central difference of the `loss` of the next
# cell: the loss one step above the entry minus the loss one step below it, divided by the distance of the two. The shapes are $(T_q,
# d_k)$, $(T_k, d_k)$, $(T_k, d_v)$ and $(T_q, d_v)$, the result has the shape of `key`, and `key` itself must not be changed.


# %% id="key-gradient-by-differences" tags=["task"]
def my_differences(query, key, value, d_output, step):
    ### BEGIN SOLUTION
    quotients = np.empty_like(key)
    for entry in np.ndindex(key.shape):
        nudge = np.zeros_like(key)
        nudge[entry] = step
        rise = loss(query, key + nudge, value, d_output) - loss(query, key - nudge, value, d_output)
        quotients[entry] = rise / (2 * step)
    return quotients
    ### END SOLUTION


# %% id="key-gradient-by-differences-check" tags=["check"]
check("key-gradient-by-differences", my_differences)

# %% [markdown] id="key-gradient-by-differences-why" tags=["solution-only"]
# **Why.** The loss is evaluated twice for each entry, which is slow. But nothing of the formulas that are to be checked goes into it.
