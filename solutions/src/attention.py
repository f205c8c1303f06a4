# %% [markdown] id="title"
# # Exercises {lesson}`attention`: scaled dot-product attention
#
# Twelve tasks for the lesson [{lesson}`attention` Scaled dot-product attention](../notebooks/{lesson}`attention`_attention.ipynb):
# 27 points, about 125 minutes. Each stands on its own.
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

# %% [markdown] id="read-attention-map-text"
# Run the cell below. It shows the weights of four queries over five keys, rows and columns counted from 0. Write three
# numbers as `my_reading = (a, b, c)`:
#
# - `a`: which query gives key 0 the largest weight?
# - `b`: which value has the largest weight in output 0?
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
# **Why.** In the map drawn here column 0 is largest in row 1 (0.46), and row 0 is largest in column 2 (0.62). Output 0 is the sum of row 0
# without the weight 0.05 of value 3. Rows sum to 1; columns need not.

# %% [markdown] id="scaled-attention-text"
# The milestone with padding: `my_attention(query, key, value, is_real)` takes float64 arrays of shape `(batch, q_len, d_k)`,
# `(batch, kv_len, d_k)` and `(batch, kv_len, d_v)`, and a Boolean array `is_real` of shape `(batch, kv_len)`. It returns outputs,
# `(batch, q_len, d_v)`.
#
# Key $j$ of example $b$ is real if `is_real[b, j]` is `True`. The others are padding, finite numbers without meaning, and get no weight.
# They stand anywhere, but no example is all padding. Scores may lie between -1000 and 1000, so write a softmax that is stable, row by
# row.


# %% id="scaled-attention" tags=["task"]
def my_attention(query, key, value, is_real):
    """Return the outputs, of shape (batch, q_len, d_v), {eq}`batched-attention`, without the padding."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    scores = np.where(is_real[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="scaled-attention-check" tags=["check"]
check("scaled-attention", my_attention)

# %% [markdown] id="scaled-attention-why" tags=["solution-only"]
# **Why.** `is_real[:, None, :]` has the shape (batch, 1, kv_len), so all queries of an example share its row. Without the new axis the rows
# would be matched with the queries. The maximum is taken after hiding, because a padded key far above the real ones would turn the row into
# 0 / 0. It and the sum run over the keys, so each query has its own.

# %% [markdown] id="copies-beside-another-text"
# A context holds $n$ copies of one pair, whose score is $s_1$ and whose value is $v_1$, and one other pair with the score
# $s_2$ and the value $v_2$. Write the output of attention as a formula in LaTeX, only the right side, between `r"` and `"`:
#
# $$z = \ldots$$
#
# Powers may be written as `e^{...}` too, and any form that is equal counts. To see how your formula is understood, call
# `read("copies-beside-another", my_output)`, with `from attn_course import read`; what cannot be read is no attempt.

# %% id="copies-beside-another" tags=["task"]
### BEGIN SOLUTION
my_output = r"\frac{n\, e^{s_1} v_1 + e^{s_2} v_2}{n\, e^{s_1} + e^{s_2}}"
### END SOLUTION

# %% id="copies-beside-another-check" tags=["check"]
check("copies-beside-another", my_output)

# %% [markdown] id="copies-beside-another-why" tags=["solution-only"]
# **Why.** Each copy has a term of its own, above and below. Double $n$ **and** the other pair, and everything cancels,
# {eq}`doubled-context-same-output`. Leave the other pair alone, and the output says how large $n$ is: with equal scores,
# $v_1 = 0$ and $v_2 = 1$ it is $1 / (1 + n)$, {eq}`count-beside-reference`.

# %% [markdown] id="repair-transposed-weights-text"
# The function below should average the values for each query, {eq}`attention`, where there are as many queries as
# keys: `query` and `key` have shape `(n, d_k)`, `value` has shape `(n, d_v)`, and the result `(n, d_v)`. It raises
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
# A batch needs no padding if its examples are **packed**, one after the other, into one long sequence. `query` and `key` have shape
# `(n, d_k)`, `value` has shape `(n, d_v)`, and the integers `counts` say how many tokens each example has, in this order. No example is
# empty.
#
# The function below should run attention inside each example and return `(n, d_v)`. It is wrong in two places, and the examples see
# each other. Repair it. Scores may lie anywhere between -1000 and 1000.


# %% id="repair-mixed-batch" tags=["task"]
def batched_attention(query, key, value, counts):
    """Attention inside each example of a packed batch: the result has shape (n, d_v)."""
    ### BEGIN SOLUTION
    example = np.repeat(np.arange(len(counts)), counts)
    together = example[:, None] == example
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores = np.where(together, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    ### END SOLUTION


# %% id="repair-mixed-batch-check" tags=["check"]
check("repair-mixed-batch", batched_attention)

# %% [markdown] id="repair-mixed-batch-why" tags=["solution-only"]
# **Why.** (1) The index of the example was counted as if all examples had the same length. (2) A score of 0 is not hidden: it has the share
# $e^0 = 1$ before the maximum is subtracted, and in a row of negative scores even the largest one. Packing saves the work on padding, but
# this table still computes the pairs of different examples, and hides them. Kernels for packed batches skip them.

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
# **Why.** With $k_1 = (1, 1, 0, 0)$ and $k_2 = (3, 1, 2, 5)$ the dot products are $q \cdot k_1 = 2$ and $q \cdot k_2 = 4$; divided by
# $\sqrt{4} = 2$ they differ by 1. The query sits on the first key, at distance 0, and yet the longer key gets about 73 % of the weight.

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

# %% [markdown] id="centre-the-values-text"
# In one dimension ($d_k = d_v = 1$) the slope of attention is the covariance $\sum_j p_j (v_j - z)(k_j - \bar{k})$. For this sum $z$ and
# $\bar{k}$ must be known first. A program that goes over the keys only **once** can sum $p_j v_j$, $p_j k_j$ and $p_j v_j k_j$ on the way,
# and take $\sum_j p_j v_j k_j - z \bar{k}$ at the end. Show that this is the covariance: a list of lines in LaTeX, each
# equal to the one before. The first and the last are given, and it takes two steps or more:
#
# ```python
# my_derivation = [
#     r"\sum_j p_j v_j k_j - z \bar{k}",
#     # your lines
#     r"\sum_j p_j (v_j - z) (k_j - \bar{k})",
# ]
# ```
#
# You may use $\sum_j p_j = 1$, $\bar{k} = \sum_j p_j k_j$ and $z = \sum_j p_j v_j$.

# %% id="centre-the-values" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\sum_j p_j v_j k_j - z \bar{k}",
    r"\sum_j p_j v_j k_j - z \bar{k} - z \bar{k} + z \bar{k}",
    r"\sum_j p_j v_j k_j - \bar{k} \sum_j p_j v_j - z \sum_j p_j k_j + z \bar{k} \sum_j p_j",
    r"\sum_j p_j (v_j k_j - v_j \bar{k} - z k_j + z \bar{k})",
    r"\sum_j p_j (v_j - z) (k_j - \bar{k})",
]
### END SOLUTION

# %% id="centre-the-values-check" tags=["check"]
check("centre-the-values", my_derivation)

# %% [markdown] id="centre-the-values-why" tags=["solution-only"]
# **Why.** Each of the three products with a mean sums to $z \bar{k}$, since the weights that make $z$ and $\bar{k}$ sum to 1; two of them
# have a minus and one a plus. So the slope, {eq}`output-derivative-by-query`, needs three running sums and one pass over the keys.
# (If $z \bar{k}$ is large beside the slope, the difference loses digits.)

# %% [markdown] id="length-of-a-query-text"
# A query favours one key: its dot product with that key is larger by $g > 0$ than those with the $n - 1$ other keys, which are all
# equal. You may multiply the query by a factor $c$. Which $c$ gives the favoured key the share $p$ of the weight, in scaled
# dot-product attention with queries of $d$ numbers, if $n \ge 2$ and $0 < p < 1$? Write $c$ with the symbols `p`, `g`, `n` and `d`;
# besides sums, products and powers, `log` (natural) and `sqrt`. {eq}`attention-weights` is all you need.

# %% id="length-of-a-query" tags=["task"]
### BEGIN SOLUTION
my_factor = sqrt(d) * (log(n - 1) + log(p / (1 - p))) / g
### END SOLUTION

# %% id="length-of-a-query-check" tags=["check"]
check("length-of-a-query", my_factor)

# %% [markdown] id="length-of-a-query-why" tags=["solution-only"]
# **Why.** The factor multiplies every dot product, so the lead becomes $c\,g$, and the lead of the scores $c\,g / \sqrt{d}$. That must be
# the $\Delta$ of {eq}`margin-grows-with-context`. A wider layer needs a longer query for the same lead of its dot products, and so does a
# longer context.

# %% [markdown] id="cost-of-new-tokens-text"
# A model has read $T_k$ tokens and keeps their keys and values. Now $T_q$ new queries attend to all of them (the keys and values of the new
# tokens are already among the $T_k$). The cell below prints your $T_q$, $T_k$, $d_k$ and $d_v$. Write two numbers as `my_cost = (a, b)`:
#
# - `a`: the operations of the two matrix products, a multiplication and its addition counted as 2;
# - `b`: how many numbers are moved between memory and processor if a first step makes the weights (scores and softmax at once), and a
#   second step the output. Each reads what it needs and writes what it makes.
#
# An expression in the names is welcome.

# %% id="cost-of-new-tokens" tags=["task"]
### BEGIN SOLUTION
my_cost = (2 * T_q * T_k * (d_k + d_v), (T_q + T_k) * (d_k + d_v) + 2 * T_q * T_k)
### END SOLUTION

# %% id="cost-of-new-tokens-check" tags=["check"]
check("cost-of-new-tokens", my_cost)

# %% [markdown] id="cost-of-new-tokens-why" tags=["solution-only"]
# **Why.** For a, {eq}`attention-flops` with two different lengths. For b, the first step reads $T_q d_k + T_k d_k$ numbers and writes
# $T_q T_k$ weights; the second reads these and $T_k d_v$ values, and writes $T_q d_v$. The scores of a query are softmaxed where they are
# made, so the table travels twice, and not four times as in {eq}`attention-traffic`. With so few queries it hardly matters: nearly all of
# the traffic is for keys and values, each used for a few operations only.

# %% [markdown] id="layer-around-attention-text"
# Write the attention layer of GPT-2: `my_layer(x, w_in, b_in, w_out, b_out, n_heads)` takes `x`, `(batch, T, d_model)`, and returns an
# array of the same shape. The columns of `x @ w_in + b_in` are first the queries, then the keys, then the values, one third each.
#
# In each head the scores of **later** positions become minus infinity, after the division by the root of $d_k$. The outputs of the heads,
# side by side in their order, are multiplied by `w_out`, and `b_out` is added. Scores are moderate.

# %% [markdown] id="layer-example"
# Head 0 has the first $d_k$ = `d_model / n_heads` columns of each third, head 1 the next ones. `w_in` is `(d_model, 3 * d_model)`, `b_in`
# `(3 * d_model,)`, `w_out` `(d_model, d_model)` and `b_out` `(d_model,)`, all NumPy arrays. It must work for one head and one position.
# `torch.softmax` is welcome. In GPT-2's files the four arrays are called `c_attn.weight`, `c_attn.bias`, `c_proj.weight` and `c_proj.bias`.
#
# An example with one head: if `x` is `[[[1.0], [2.0]]]`, `w_in` is `[[1.0, 1.0, 1.0]]`, `w_out` is `[[1.0]]` and the biases are 0, the
# result is `[[[1.0], [1.881]]]`. The first position sees only itself, and the second has the scores 2 and 4.


# %% id="layer-around-attention" tags=["task"]
def my_layer(x, w_in, b_in, w_out, b_out, n_heads):
    """Causal self-attention of x (batch, T, d_model) in n_heads heads -> (batch, T, d_model)."""
    ### BEGIN SOLUTION
    batch, length, d_model = x.shape
    query, key, value = (
        part.reshape(batch, length, n_heads, -1).swapaxes(1, 2)  # (batch, T, n_heads, d_k), then swap
        for part in np.split(x @ w_in + b_in, 3, axis=-1)
    )
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(d_model / n_heads)
    position = np.arange(length)
    scores = np.where(position <= position[:, None], scores, -np.inf)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = terms / terms.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(1, 2).reshape(x.shape) @ w_out + b_out
    ### END SOLUTION


# %% id="layer-around-attention-check" tags=["check"]
check("layer-around-attention", my_layer)

# %% [markdown] id="layer-around-attention-why" tags=["solution-only"]
# **Why.** Heads and examples are only leading axes of {eq}`batched-attention`, so one call serves them all, and one mask of shape (T, T)
# serves every head of every example. Nothing overflows and no row is empty, since each position sees at least itself. Two reshapes without
# the swaps would give the right shapes, and heads made of stretches of the text.

# %% [markdown] id="step-with-kept-keys-text"
# To write one more token, a model runs the layer of {task}`layer-around-attention` on that token alone. Write
# `my_step(x, keys, values, w_in, b_in, w_out, b_out, n_heads)`. Here `x` is the new token of each text, `(batch, 1, d_model)`, and `keys`
# and `values` are those of the $n \ge 1$ tokens before it, cut into heads, `(batch, n_heads, n, d_k)`. Scores are moderate.

# %% [markdown] id="step-returns"
# The rest is as there: the columns of `x @ w_in + b_in` are query, key and value, one third each; head 0 has the first $d_k$ =
# `d_model / n_heads` columns of each third; and the outputs of the heads, side by side, are multiplied by `w_out`, and `b_out` is added.
#
# Return three arrays: the output of the layer for the new token, `(batch, 1, d_model)`, and all keys and all values for the next step,
# `(batch, n_heads, n + 1, d_k)`, in the order of the text.


# %% id="step-with-kept-keys" tags=["task"]
def my_step(x, keys, values, w_in, b_in, w_out, b_out, n_heads):
    """One token behind kept keys and values -> its output, all keys, all values."""
    ### BEGIN SOLUTION
    batch, _, d_model = x.shape
    query, key, value = (
        part.reshape(batch, n_heads, 1, -1)  # one token, so there is nothing to swap
        for part in np.split(x @ w_in + b_in, 3, axis=-1)
    )
    keys = np.concatenate([keys, key], axis=2)
    values = np.concatenate([values, value], axis=2)
    scores = query @ keys.swapaxes(-1, -2) / np.sqrt(d_model / n_heads)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = terms / terms.sum(axis=-1, keepdims=True) @ values
    return heads.reshape(x.shape) @ w_out + b_out, keys, values
    ### END SOLUTION


# %% id="step-with-kept-keys-check" tags=["check"]
check("step-with-kept-keys", my_step)

# %% [markdown] id="step-with-kept-keys-why" tags=["solution-only"]
# **Why.** The query of {eq}`attention-of-one-query` stands behind everything that was kept, so the causal mask would hide nothing. The
# keys and values of earlier tokens depend on these tokens and on what came before them, which the mask of the whole layer made sure of, so
# they can be kept. One step costs as many operations as there are tokens so far, instead of their square.

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="all-scores-text"
# Write `my_scores(query, key)`: all scaled scores, for float64 queries $(\ldots, T_q, d_k)$ and keys $(\ldots, T_k, d_k)$ with the same
# leading axes, none or several.


# %% id="all-scores" tags=["task"]
def my_scores(query, key):
    ### BEGIN SOLUTION
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    ### END SOLUTION


# %% id="all-scores-check" tags=["check"]
check("all-scores", my_scores)

# %% [markdown] id="attention-of-batches-text"
# Write `my_batched_attention(query, key, value)` for float64 arrays of the shapes $(\ldots, T_q, d_k)$, $(\ldots, T_k, d_k)$ and
# $(\ldots, T_k, d_v)$ with the same leading axes, none or several. It returns the outputs, $(\ldots, T_q, d_v)$. Scores are moderate, below
# 30 in size. Write the softmax too; functions of the course and a library's softmax or attention are not accepted.


# %% id="attention-of-batches" tags=["task"]
def my_batched_attention(query, key, value):
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    terms = np.exp(scores)
    return terms / terms.sum(axis=-1, keepdims=True) @ value
    ### END SOLUTION


# %% id="attention-of-batches-check" tags=["check"]
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="same-output-other-values-text"
# Write `my_values(weights, value)` for the weights $(T_k,)$ of one query, which are positive and sum to 1, and values $(T_k, d_v)$ with
# $T_k \ge 2$. It returns other values with the same output: the first value is erased, so that all its numbers are 0, the last one makes up
# for that, and those in between stay as they are.


# %% id="same-output-other-values" tags=["task"]
def my_values(weights, value):
    ### BEGIN SOLUTION
    other = value.copy()
    other[0] = 0
    other[-1] += weights[0] / weights[-1] * value[0]
    return other
    ### END SOLUTION


# %% id="same-output-other-values-check" tags=["check"]
check("same-output-other-values", my_values)
