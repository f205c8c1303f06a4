# %% [markdown] id="title"
# # Exercises {lesson}`cross_attention`: cross-attention
#
# Ten tasks to the lesson [{lesson}`cross_attention` Cross-attention](../notebooks/{lesson}`cross_attention`_cross_attention.ipynb): 22
# points, about 114 minutes. Each stands for itself.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it, cell by cell (Shift+Enter). A check that passes shows a green card in JupyterLab, elsewhere one
# line; one that fails says what is wrong, and names the mistake if it is a known one. Three hints fold out below each
# question. Leave the check cells as they are. In a terminal, `attn-course check` runs the whole notebook afresh.

# %% [markdown] id="conventions"
# Answers are NumPy arrays or torch tensors of float32 or float64; the last two answers are LaTeX. A function must not change
# its inputs. Rows are positions: $X$ is the target $(T_q, d_x)$, which asks, and $Y$ the source $(T_k, d_y)$, which answers.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="cross-attention-text"
# Write `my_cross_attention(x, y, w_query, w_key, w_value)`: the target `x` of shape `(q_len, d_x)` asks the source
# `y` of shape `(kv_len, d_y)`, with one head and no output projection. The projections have the shapes `(d_x, d_k)`,
# `(d_y, d_k)` and `(d_y, d_v)`; all arrays are float64, used as `x @ w`. Scale the scores by $1/\sqrt{d_k}$, and
# return the output, `(q_len, d_v)`.
#
# Scores are moderate. A library's softmax is welcome.


# %% id="cross-attention" tags=["task"]
def my_cross_attention(x, y, w_query, w_key, w_value):
    """Target (q_len, d_x) asks source (kv_len, d_y) -> (q_len, d_v), {eq}`cross-attention`."""
    ### BEGIN SOLUTION
    scores = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ (y @ w_value)
    ### END SOLUTION


# %% id="cross-attention-check" tags=["check"]
check("cross-attention", my_cross_attention)

# %% [markdown] id="cross-attention-why" tags=["solution-only"]
# **Why.** Whoever wants something makes the queries; whoever has something makes keys *and* values. The only size the
# two must share is $d_k$, and the projections make it.

# %% [markdown] id="repair-padding-both-sides-text"
# The function below runs cross-attention in a padded batch. `query` is `(batch, q_len, d_k)`, `key`
# `(batch, kv_len, d_k)`, `value` `(batch, kv_len, d_v)`. The integers `source_lengths` and `target_lengths`,
# `(batch,)`, say how many rows of each example are real, at least one; padding stands behind them and holds any
# finite numbers.
#
# Wanted: each real query attends to the real keys of its own example, scaled by $1/\sqrt{d_k}$; output rows of
# target padding are **zero**. Scores may have any size and sign. The function confuses the sides: repair it.


# %% id="repair-padding-both-sides" tags=["task"]
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    """Cross-attention in a padded batch; rows of the output that belong to padding
    of the target are zero."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)
    ### END SOLUTION


# %% id="repair-padding-both-sides-check" tags=["check"]
check("repair-padding-both-sides", padded_cross_attention)

# %% [markdown] id="repair-padding-both-sides-why" tags=["solution-only"]
# **Why.** Scores have the axes (batch, target, source). The source's lengths speak about the last of them and enter
# before the softmax; the target's lengths speak about rows of the output, and nothing else.

# %% [markdown] id="loss-over-real-tokens-text"
# Write `my_loss(logits, target, padding)`. `logits` is float64, `(batch, length, n_tokens)`; `target` holds integers,
# `(batch, length)`, from 0 to `n_tokens - 1`; `padding` is the padding token's number. Return
# `(loss, d_logits)`: the mean cross-entropy in nats over **all** tokens of the batch that are not padding, and its
# gradient, shaped as `logits`. Padding may stand anywhere, even fill a target; at least one token is real. Logits may
# be near a thousand, or a thousand apart.
#
# A library's log-softmax is welcome.


# %% id="loss-over-real-tokens" tags=["task"]
def my_loss(logits, target, padding):
    """Loss over the real tokens, and its gradient (batch, length, n_tokens),
    {eq}`loss-over-real-tokens`."""
    ### BEGIN SOLUTION
    real = (target != padding).astype(float)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[target]

    loss = -(real * (log_p * one_hot).sum(axis=-1)).sum() / real.sum()
    d_logits = real[..., None] * (np.exp(log_p) - one_hot) / real.sum()
    return loss, d_logits
    ### END SOLUTION


# %% id="loss-over-real-tokens-check" tags=["check"]
check("loss-over-real-tokens", my_loss)

# %% [markdown] id="loss-over-real-tokens-why" tags=["solution-only"]
# **Why.** Padding is no prediction, so it has no part in the sum and none in the count. With the padded length as
# divisor, one long target in a batch would shrink the gradients of all others.

# %% [markdown] id="source-gradient-text"
# Write `my_source_gradient(x, y, w_query, w_key, w_value, d_output)`: the gradient of a loss with respect to the
# source $Y$ in cross-attention, {eq}`cross-attention`. The first five arguments are those of task {task}`cross-attention`, with shapes
# `(q_len, d_x)`, `(kv_len, d_y)`, `(d_x, d_k)`, `(d_y, d_k)`, `(d_y, d_v)`; `d_output` is the gradient at the output,
# `(q_len, d_v)`. Return an array of the shape of `y`. The scale is $1/\sqrt{d_k}$, scores are moderate. The point is
# the formula: nine digits are compared, and a difference quotient has fewer.


# %% id="source-gradient" tags=["task"]
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    """Gradient of the loss with respect to the source, (kv_len, d_y), {eq}`gradient-of-source`."""
    ### BEGIN SOLUTION
    query, key, value = x @ w_query, y @ w_key, y @ w_value
    scale = 1 / np.sqrt(query.shape[1])
    scores = query @ key.T * scale
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = unnormalised / unnormalised.sum(axis=1, keepdims=True)

    d_p = d_output @ value.T
    d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True))
    d_key, d_value = d_scores.T @ query * scale, p.T @ d_output
    return d_key @ w_key.T + d_value @ w_value.T
    ### END SOLUTION


# %% id="source-gradient-check" tags=["check"]
check("source-gradient", my_source_gradient)

# %% [markdown] id="source-gradient-why" tags=["solution-only"]
# **Why.** $Y$ is used twice, so two gradients add up. The transposes sum over the target: a source row is taught by
# every row that asked it, in proportion to the weight it was given.

# %% [markdown] id="context-slope-text"
# Two annotations that are plain numbers, $h_1$ and $h_2$, serve as keys and as values. The decoder's state is a
# number $s$, and the scores are $e_j = s\,k\,h_j$ with a fixed factor $k$. The weight of $h_1$ is
# $\alpha = e^{e_1} / (e^{e_1} + e^{e_2})$, the context $c = \alpha h_1 + (1 - \alpha) h_2$.
#
# Derive $\dfrac{\partial c}{\partial h_1}$ with $h_2$, $s$ and $k$ held fixed, and write it with the symbols `alpha`,
# `h_1`, `h_2`, `k` and `s`. Sums, products and powers of them are all you need.

# %% id="context-slope" tags=["task"]
### BEGIN SOLUTION
my_context_slope = alpha * (1 + (1 - alpha) * (h_1 - h_2) * k * s)
### END SOLUTION

# %% id="context-slope-check" tags=["check"]
check("context-slope", my_context_slope)

# %% [markdown] id="context-slope-why" tags=["solution-only"]
# **Why.** This is {eq}`context-derivative-by-annotation`: $h_1 - c = (1 - \alpha)(h_1 - h_2)$ and $\partial e_1 / \partial h_1 = k s$. The
# first
# term is the way through the value, the second the way through the key. Both carry the factor $\alpha$.

# %% [markdown] id="source-cache-flops-text"
# A decoder writes $T_q$ tokens with a cross-attention layer (one head, no output projection) of $d_x$, $d_y$, $d_k$ and $d_v$ features,
# over a source of $T_k$ rows, whose keys and values are computed once and kept (numbers below). A multiply-add counts as 2 operations, softmax and scale as none. Write `my_flops = (a, b, c)`:
#
# - `a`: operations for the keys and values of the source;
# - `b`: operations of one step, from the row of the target to the output;
# - `c`: operations altogether.

# %% id="source-cache-flops" tags=["task"]
### BEGIN SOLUTION
once, step = 2 * T_k * d_y * (d_k + d_v), 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
my_flops = (once, step, once + T_q * step)
### END SOLUTION

# %% id="source-cache-flops-check" tags=["check"]
check("source-cache-flops", my_flops)

# %% [markdown] id="source-cache-flops-why" tags=["solution-only"]
# **Why.** This is {eq}`cross-attention-decoding-flops`. Without the cache, each step would pay for the source again: here
# 153 600 operations, 36 times what the step itself costs.

# %% [markdown] id="read-date-alignment-text"
# Run the cell below: weights of five written tokens over six source tokens, both counted from 0. Write
# `my_reading = (a, b, c, d)`, the last with at least three digits:
#
# - `a`: which row gives source token 1 its largest weight?
# - `b`: which row's largest weight is the smallest?
# - `c`: the weight of the five source tokens other than token 1 together, in row 2;
# - `d`: a mask hides source token 1, scores stay. The weight of source token 0 then, in row 2.

# %% id="read-date-alignment-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-date-alignment"))

# %% id="read-date-alignment" tags=["task"]
### BEGIN SOLUTION
my_reading = (2, 3, 0.18, 0.07 / 0.18)
### END SOLUTION

# %% id="read-date-alignment-check" tags=["check"]
check("read-date-alignment", my_reading)

# %% [markdown] id="read-date-alignment-why" tags=["solution-only"]
# **Why.** The written 12 reads December, with 0.82. Both hyphens look everywhere: row 3 has no weight above 0.19. A
# hidden key leaves the softmax, and what is left of row 2, 0.18, is scaled up to 1.

# %% [markdown] id="greedy-decoding-text"
# Write `my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end)`. It returns the logits of
# all steps, `(n_steps, n_tokens)`. Step $t = 0, 1, \ldots$:
#
# - $x$ = `embeddings[token] + positions[t]`, `token` being `start` first, then the one chosen before;
# - $z$ = cross-attention, {eq}`cross-attention`, of the query $x W_Q$ over keys $Y W_K$ and values $Y W_V$;
# - logits = $(x + z)$ `@ w_output`; the largest chooses the token.
#
# The step that chooses `end` is the last, and part of the result; without it there are as many steps as rows of
# `positions`. Float64: `y` `(kv_len, d_y)`, `w_query` `(d_x, d_k)`, `w_key` `(d_y, d_k)`, `w_value` `(d_y, d_x)`,
# `embeddings` `(n_tokens, d_x)`, `positions` `(max_len, d_x)`, `w_output` `(d_x, n_tokens)`. `start` and `end` are
# integers, possibly equal.


# %% id="greedy-decoding" tags=["task"]
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    """Write greedily until `end`; return the logits of every step,
    (n_steps, n_tokens)."""
    ### BEGIN SOLUTION
    key, value = y @ w_key, y @ w_value
    token, rows = start, []
    for position in positions:
        x = embeddings[token] + position
        scores = key @ (x @ w_query) / np.sqrt(key.shape[1])
        unnormalised = np.exp(scores - scores.max())
        z = unnormalised @ value / unnormalised.sum()
        rows.append((x + z) @ w_output)
        token = int(rows[-1].argmax())
        if token == end:
            break
    return np.stack(rows)
    ### END SOLUTION


# %% id="greedy-decoding-check" tags=["check"]
check("greedy-decoding", my_writer)

# %% [markdown] id="greedy-decoding-why" tags=["solution-only"]
# **Why.** Keys and values stand before the loop: the source does not change. Inside, a step costs one query, one row
# of scores and one sum. The token chosen is read in the next step, so a mistake is carried along; that is the price
# of writing without a teacher.

# %% [markdown] id="latex"
# **The last two answers are LaTeX**, typed as text with an `r` in front: the right side of a formula, and the lines of a
# derivation. Every form that is equal counts. One index of a matrix is a row, as in `Q_i`, a transpose is typed `^\top`, and
# a sum reaches as far as its parentheses. To see how a formula is understood, `from attn_course import read` and call
# `read("gradient-of-source-row", my_gradient)`; what cannot be read is no attempt.

# %% [markdown] id="gradient-of-source-row-text"
# What does row $j$ of the source learn in cross-attention, {eq}`cross-attention`? Write row $j$ of
# $\partial \mathcal{L} / \partial Y$,
#
# $$dY_j = \ldots$$
#
# with the weights $P$ ($T_q \times T_k$), the queries $Q$, the gradients $dZ$ at the output and $dS$ at the **scaled** scores, and
# the projections of keys and values. The scale is $1/\sqrt{d_k}$.

# %% id="gradient-of-source-row" tags=["task"]
### BEGIN SOLUTION
my_gradient = r"\sum_i \left( \frac{dS_{ij}}{\sqrt{d_k}} Q_i W_K^\top + P_{ij} dZ_i W_V^\top \right)"
### END SOLUTION

# %% id="gradient-of-source-row-check" tags=["check"]
check("gradient-of-source-row", my_gradient)

# %% [markdown] id="gradient-of-source-row-why" tags=["solution-only"]
# **Why.** This is row $j$ of {eq}`gradient-of-source`. The row $y_j$ makes the value $y_j W_V$, which output $i$ holds with the weight
# $P_{ij}$, and the key $y_j W_K$, whose dot product with $Q_i$, scaled, is score $(i, j)$. Both come back through the transposed
# projection. The sum runs over the target: every row that asks also teaches, and a source row with small weights everywhere
# learns little.

# %% [markdown] id="map-read-backwards-text"
# Let $S$ be the scaled scores, with the target in its rows and the source in its columns. $\sigma(S)$ is the map by which the target
# reads the source, and $\sigma(S^\top)$, from the same scores, the map by which the source reads the target; $\sigma$ normalises rows.
# By what factor do the two weights of the pair $(i, j)$ differ? Derive it line by line, each equal to the one before, in three
# steps or more:
#
# ```python
# my_derivation = [
#     r"\frac{\sigma(S)_{ij}}{\sigma(S^\top)_{ji}}",
#     # your lines
#     r"\frac{\sum_{l=1}^{T_q} e^{S_{lj}}}{\sum_{l=1}^{T_k} e^{S_{il}}}",
# ]
# ```

# %% id="map-read-backwards" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\frac{\sigma(S)_{ij}}{\sigma(S^\top)_{ji}}",
    r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{\sigma(S^\top)_{ji}}",
    r"\frac{e^{S_{ij}} / \sum_{l=1}^{T_k} e^{S_{il}}}{e^{S_{ij}} / \sum_{l=1}^{T_q} e^{S_{lj}}}",
    r"\frac{e^{S_{ij}} \sum_{l=1}^{T_q} e^{S_{lj}}}{e^{S_{ij}} \sum_{l=1}^{T_k} e^{S_{il}}}",
    r"\frac{\sum_{l=1}^{T_q} e^{S_{lj}}}{\sum_{l=1}^{T_k} e^{S_{il}}}",
]
### END SOLUTION

# %% id="map-read-backwards-check" tags=["check"]
check("map-read-backwards", my_derivation)

# %% [markdown] id="map-read-backwards-why" tags=["solution-only"]
# **Why.** Entry $(j, i)$ of $S^\top$ is $S_{ij}$, so both weights have the same exponential above, and it cancels. What differs is the
# normaliser: the first softmax sums over the source, in row $i$ of $S$, the second over the target, in column $j$. This is
# {eq}`balance-of-both-directions` once more. A source token that many ask for has a large column sum, so a column of the map
# cannot be read as a translation in the other direction.
