# %% [markdown] id="title"
# # Exercises {lesson}`heads`: multi-head attention
#
# Eleven tasks to the lesson [{lesson}`heads` Multi-head attention](../notebooks/{lesson}`heads`_heads.ipynb): 24 points, about 112
# minutes. Each stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. A check that passes shows a green card in JupyterLab, elsewhere one line; one that fails names the
# mistake if it knows it, and stops "Run All". Three hints fold out below each question. Leave the checks as they are.
# In a terminal, `attn-course check` runs the whole notebook afresh.

# %% [markdown] id="conventions"
# Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
# positions, and a projection is `x @ w` unless the task says otherwise. Heads stand side by side in the columns of
# `w_query`, `w_key` and `w_value`, and in the rows of `w_output`. All scores are moderate. The last two answers are LaTeX.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="split-heads-text"
# Write `my_split(x, n_heads)`. It takes projected queries of shape `(..., T, n_heads * d_k)`, with none, one or several
# leading axes, and an integer that divides the last axis. It returns shape `(..., n_heads, T, d_k)`; head $h$ holds the
# $h$-th block of $d_k$ neighbouring columns, {eq}`heads-are-column-blocks`.


# %% id="split-heads" tags=["task"]
def my_split(x, n_heads):
    """(..., T, n_heads * d_k) -> (..., n_heads, T, d_k), {eq}`heads-are-column-blocks`."""
    ### BEGIN SOLUTION
    *leading, length, width = x.shape
    return x.reshape(*leading, length, n_heads, width // n_heads).swapaxes(-2, -3)
    ### END SOLUTION


# %% id="split-heads-check" tags=["check"]
check("split-heads", my_split)

# %% [markdown] id="split-heads-why" tags=["solution-only"]
# **Why.** The last axis is cut first, so each position keeps its own numbers; only then does the head axis move forward.
# Axes counted from the end leave every leading axis alone.

# %% [markdown] id="multi-head-attention-text"
# Write self-attention with several heads: `my_multi_head(x, w_query, w_key, w_value, w_output, n_heads)` takes one example,
# `x` of shape `(T, d)`, with `w_query` and `w_key` of shape `(d, n_heads * d_k)`, `w_value` of shape `(d, n_heads * d_v)` and
# `w_output` of shape `(n_heads * d_v, d)`. It returns {eq}`multi-head-attention`, shape `(T, d)`: no mask, no biases, the scale
# $1/\sqrt{d_k}$ with the width $d_k$ of one head. The width need not be $d / H$. A library's softmax is welcome.


# %% id="multi-head-attention" tags=["task"]
def my_multi_head(x, w_query, w_key, w_value, w_output, n_heads):
    """Self-attention of x (T, d) in n_heads heads -> (T, d), {eq}`multi-head-attention`."""
    ### BEGIN SOLUTION
    query, key, value = (
        (x @ w).reshape(len(x), n_heads, -1).swapaxes(0, 1)  # (T, n_heads, width), then swap
        for w in (w_query, w_key, w_value)
    )
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(len(x), -1) @ w_output
    ### END SOLUTION


# %% id="multi-head-attention-check" tags=["check"]
check("multi-head-attention", my_multi_head)

# %% [markdown] id="multi-head-attention-why" tags=["solution-only"]
# **Why.** The heads are a leading axis, so scores, softmax and output are written as for one head. Before the heads are
# flattened into one row, their axis must stand next to their features again.

# %% [markdown] id="decoding-step-flops-text"
# A causal layer (input and output of width $d$) decodes **one** new token with a cache. It has $h$ query heads, $r$ key heads and $r$ value
# heads, all of width $w$. Each key head holds $t$ keys, that of the new token included. Count the FLOPs:
# four projections of the new token, scores, weighted sums of values. A multiply-add
# counts 2; softmax and scale nothing. Use the symbols `d`, `h`, `r`, `w`, `t` with sums, products, powers.

# %% id="decoding-step-flops" tags=["task"]
### BEGIN SOLUTION
my_step_flops = 4 * d * h * w + 4 * d * r * w + 4 * t * h * w
### END SOLUTION

# %% id="decoding-step-flops-check" tags=["check"]
check("decoding-step-flops", my_step_flops)

# %% [markdown] id="decoding-step-flops-why" tags=["solution-only"]
# **Why.** $W_Q$ and $W_O$ have $d h w$ entries each, $W_K$ and $W_V$ have $d r w$, and every entry costs 2. Each of the $h$ query
# heads makes $t$ scores of $w$ terms and adds $t$ values of width $w$. Sharing makes the projections and the cache
# smaller, not the scores.

# %% [markdown] id="cache-capacity-in-tokens-text"
# A model has $L$ layers, $H$ query heads and $G$ key heads, all of width $d_h$ (keys and values alike); the cell below prints your numbers.
# It keeps its cache in 16-bit numbers, and $M$ GiB ($M \cdot 2^{30}$ bytes) of memory are free for the cache of one text. How many tokens
# fit at most? Write the number (three correct digits are enough; an expression is welcome).

# %% id="cache-capacity-in-tokens" tags=["task"]
### BEGIN SOLUTION
my_tokens = M * 2.0**30 // (2 * L * G * d_h * 2)
### END SOLUTION

# %% id="cache-capacity-in-tokens-check" tags=["check"]
check("cache-capacity-in-tokens", my_tokens)

# %% [markdown] id="cache-capacity-in-tokens-why" tags=["solution-only"]
# **Why.** {eq}`kv-cache-bytes`, here $2 \cdot 28 \cdot 6 \cdot 96 \cdot 2 = 64512$ bytes for one token. The query heads keep nothing.

# %% [markdown] id="repair-grouped-heads-text"
# The function below should compute grouped-query attention, {eq}`grouped-query-attention`: `query` has shape `(H, q_len, d_k)`, `key`
# `(R, kv_len, d_k)`, `value` `(R, kv_len, d_v)`, and $R$ divides $H$. The result has shape `(H, q_len, d_v)`; there is no mask, and
# the scale is $1/\sqrt{d_k}$. It raises no error, and it is wrong in two places. Repair it.


# %% id="repair-grouped-heads" tags=["task"]
def grouped_attention(query, key, value):
    """Grouped-query attention: (H, q_len, d_k), (R, kv_len, d_k), (R, kv_len, d_v)
    -> (H, q_len, d_v)."""
    ### BEGIN SOLUTION
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values
    ### END SOLUTION


# %% id="repair-grouped-heads-check" tags=["check"]
check("repair-grouped-heads", grouped_attention)

# %% [markdown] id="repair-grouped-heads-why" tags=["solution-only"]
# **Why.** (1) `tile` deals the key heads round, 0 1 0 1; groups are neighbours, 0 0 1 1. With $R = 1$ or $R = H$ both agree, so test
# in between. (2) A score has $d_k$ terms, however many heads there are.

# %% [markdown] id="repair-torch-layer-text"
# The function below should give what `torch.nn.MultiheadAttention` gives, without biases or mask. It takes `x` of shape `(T, d)`,
# the weights of the module `stacked`, shape `(4 * d, d)`, and `n_heads`, which divides $d$. The first $3 d$ rows are torch's
# `in_proj_weight` ($d$ rows for the queries, then $d$ for the keys, then $d$ for the values), the last $d$ rows its
# `out_proj.weight`. Torch's linear layers compute $x W^\top$. The result has shape `(T, d)`. It is wrong in two
# places. Repair it.


# %% id="repair-torch-layer" tags=["task"]
def torch_layer(x, stacked, n_heads):
    """What torch.nn.MultiheadAttention computes from x (T, d); stacked (4 d, d)
    holds in_proj_weight above out_proj.weight."""
    ### BEGIN SOLUTION
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    packed = (x @ in_proj_weight.T).reshape(length, 3, n_heads, d_model // n_heads)
    query, key, value = packed.transpose(1, 2, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(length, d_model) @ out_proj_weight.T
    ### END SOLUTION


# %% id="repair-torch-layer-check" tags=["check"]
check("repair-torch-layer", torch_layer)

# %% [markdown] id="repair-torch-layer-why" tags=["solution-only"]
# **Why.** (1) Torch packs role by role, `(3, n_heads, d_head)`; `(n_heads, 3, d_head)` is the order of GPT-NeoX, and with one
# head the two agree. (2) The output projection is a linear layer too, and $W_O$ is square, so no shape tells.

# %% [markdown] id="output-projection-backward-text"
# The forward pass was `output = merge(heads) @ w_output`: `heads` has shape `(H, T, d_v)`, `merge` puts the heads side by side
# into `(T, H * d_v)`, and `w_output` has shape `(H * d_v, d)`, {eq}`output-projection-sums-heads`. Write the backward pass
# `my_merge_backward(heads, w_output, d_output)`: from the gradient of a loss with respect to the output, `(T, d)`, it returns the tuple
# `(d_heads, d_w_output)`, each of the shape of what it belongs to.


# %% id="output-projection-backward" tags=["task"]
def my_merge_backward(heads, w_output, d_output):
    """Gradients (d_heads, d_w_output) from d_output (T, d)."""
    ### BEGIN SOLUTION
    n_heads, length, d_v = heads.shape
    merged = heads.swapaxes(0, 1).reshape(length, n_heads * d_v)
    d_merged = d_output @ w_output.T
    return d_merged.reshape(length, n_heads, d_v).swapaxes(0, 1), merged.T @ d_output
    ### END SOLUTION


# %% id="output-projection-backward-check" tags=["check"]
check("output-projection-backward", my_merge_backward)

# %% [markdown] id="output-projection-backward-why" tags=["solution-only"]
# **Why.** Merging only moves numbers, so its backward pass is the split. Since the output is a sum over heads, each head gets
# the gradient through its own rows of $W_O$, undivided.

# %% [markdown] id="read-two-heads-text"
# The cell below shows the weights of two heads, counted from 0; the numbers are exact. Write
# `my_reading = (a, b, c)`:
#
# - `a`: to which key does query 2 give the largest weight in head 0?
# - `b`: which head (0 or 1) gives key 2 more weight for query 1?
# - `c`: in both heads the value of key 1 is 0, all others are 1. The layer returns 2 times head 0 minus head 1. What is it
#   for query 3?

# %% id="read-two-heads-figure"
from attn_course.lessons.heads import figures
from attn_course.tasks import figure_data

figures.head_maps(**figure_data("read-two-heads"))

# %% id="read-two-heads" tags=["task"]
### BEGIN SOLUTION
my_reading = (4, 1, 0.5)
### END SOLUTION

# %% id="read-two-heads-check" tags=["check"]
check("read-two-heads", my_reading)

# %% [markdown] id="read-two-heads-why" tags=["solution-only"]
# **Why.** Head 0, row 2 is largest in column 4 (0.50). Row 1, column 2 holds 0.05 in head 0 and 0.65 in head 1. Without value 1,
# the heads give query 3 the outputs $1 - 0.30$ and $1 - 0.10$, and $2 \cdot 0.70 - 0.90 = 0.50$. If all values were 1,
# it would be $2 - 1 = 1$, {eq}`signed-mixture-row-sums`.

# %% [markdown] id="cached-decoding-step-text"
# Write one step of decoding with grouped heads: `my_step(x_new, keys, values, w_query, w_key, w_value, w_output)`.
#
# - `x_new` `(d,)` is the new token; the cache holds `keys` `(R, t, d_k)` and `values` `(R, t, d_v)` of the $t$ tokens before
#   it; $t$ may be 0.
# - `w_query` is `(d, H * d_k)`, `w_key` `(d, R * d_k)`, `w_value` `(d, R * d_v)`, `w_output` `(H * d_v, d)`; $R$ divides
#   $H$, and key heads are shared as in {eq}`grouped-query-attention`, with $g = H / R$.
#
# Return the tuple of the output `(d,)`, all keys `(R, t + 1, d_k)` and all values `(R, t + 1, d_v)`, new ones last, as new
# arrays. As in a causal pass, the token sees itself and all before it; the scale is $1/\sqrt{d_k}$.


# %% id="cached-decoding-step" tags=["task"]
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    """One token with a cache: (d,), (R, t, d_k), (R, t, d_v), four weights -> (d,),
    (R, t + 1, d_k), (R, t + 1, d_v)."""
    ### BEGIN SOLUTION
    n_kv_heads, _, d_k = keys.shape
    new_key, new_value = ((x_new @ w).reshape(n_kv_heads, 1, -1) for w in (w_key, w_value))
    keys, values = np.concatenate([keys, new_key], axis=1), np.concatenate([values, new_value], axis=1)

    query = (x_new @ w_query).reshape(-1, 1, d_k)  # (H, 1, d_k)
    group = len(query) // n_kv_heads
    scores = query @ np.repeat(keys, group, axis=0).swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ np.repeat(values, group, axis=0)
    return heads.ravel() @ w_output, keys, values
    ### END SOLUTION


# %% id="cached-decoding-step-check" tags=["check"]
check("cached-decoding-step", my_step)

# %% [markdown] id="cached-decoding-step-why" tags=["solution-only"]
# **Why.** No mask is needed: everything in the cache is past or present. For one token, `(H, 1, d_v)` flattened is already
# the concatenation of heads. Only the two small projections of the new token are added to what is kept.

# %% [markdown] id="latex"
# **The last two answers are LaTeX**: the right side of a formula, typed as text with an `r` in front, such as `r"\sum_j P_j X"`.
# Every form that is equal counts. To see how yours is understood, `from attn_course import read` and call
# `read("layer-without-concatenation", my_layer)`, and likewise in the other task; what cannot be read is no attempt.

# %% [markdown] id="layer-without-concatenation-text"
# Head $h$ has the weights $P_h$ ($T \times T$), its own columns of $W_V$, `W_V^{(h)}` ($d \times d_v$), and its own rows of $W_O$,
# `W_O^{(h)}` ($d_v \times d$), with $h = 1, \ldots, H$. The layer puts the outputs of the heads side by side and multiplies the
# whole by $W_O$. Write what it returns,
#
# $$Y = \ldots$$
#
# for the input $X$, without any concatenation.

# %% id="layer-without-concatenation" tags=["task"]
### BEGIN SOLUTION
my_layer = r"\sum_{h=1}^{H} P_h X W_V^{(h)} W_O^{(h)}"
### END SOLUTION

# %% id="layer-without-concatenation-check" tags=["check"]
check("layer-without-concatenation", my_layer)

# %% [markdown] id="layer-without-concatenation-why" tags=["solution-only"]
# **Why.** A row of blocks times a column of blocks is the sum of the products of blocks, so the concatenation times $W_O$ is
# $\sum_h Z_h W_O^{(h)}$, {eq}`output-projection-sums-heads`. Put in $Z_h = P_h X W_V^{(h)}$, {eq}`attention-of-one-head`. Each head adds
# a map of its own: what mixes positions stands on the left of $X$, what mixes features on its right.

# %% [markdown] id="row-of-grouped-head-text"
# In grouped-query attention $H$ query heads share $H_{kv}$ value heads, and $g = H / H_{kv}$ neighbouring query heads make a group,
# {eq}`grouped-query-attention`. Write row $i$ of the output of query head $h$,
#
# $$(Z_h)_i = \ldots$$
#
# with its weights $P_h$ and the value heads $V_0, V_1, \ldots$ Heads are counted **from 0**, positions from 1. An entry of $P_h$ is
# typed `(P_h)_{ij}`, row $j$ of a value head `(V_0)_j`. An index may be computed, as in `V_{h - 1}`; `\lfloor ... \rfloor` rounds
# down, `\lceil ... \rceil` up.

# %% id="row-of-grouped-head" tags=["task"]
### BEGIN SOLUTION
my_row = r"\sum_j (P_h)_{ij} (V_{\lfloor h / g \rfloor})_j"
### END SOLUTION

# %% id="row-of-grouped-head-check" tags=["check"]
check("row-of-grouped-head", my_row)

# %% [markdown] id="row-of-grouped-head-why" tags=["solution-only"]
# **Why.** Heads $0$ to $g - 1$ read value head 0, heads $g$ to $2g - 1$ value head 1, and so on: $h / g$ rounded down is the number of
# the group. It is the index that `repeat` makes, 0 0 1 1. The remainder of $h / H_{kv}$ would be that of `tile`, 0 1 0 1, and has the
# same shapes. The weights keep the index $h$, for every query head asks with a query of its own.
