# %% [markdown] id="title"
# # Exercises {lesson}`absorption`: absorption
#
# Thirteen tasks to the lesson [{lesson}`absorption` Absorption](../notebooks/{lesson}`absorption`_absorption.ipynb): 30 points, about
# 135 minutes, in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. A check that passes shows a green card in JupyterLab, elsewhere one line; one that fails names the
# mistake if it knows it, and stops "Run All". Three hints fold out below each question. Leave the checks as they are.
# In a terminal, `attn-course check` runs the whole notebook afresh.

# %% [markdown] id="conventions"
# Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
# positions, and a projection is `x @ w`, unless the task says otherwise. Heads own neighbouring columns of a projection, and
# neighbouring rows of `w_output`. There are no masks, and all scores are moderate. The last three answers are LaTeX.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="absorbed-head-matrices-text"
# Write `my_forms(w_query, w_key, n_heads)`: the bilinear form of every head, **with the scale folded in**. `w_query` has shape
# `(d_query, n_heads * d_k)`, `w_key` `(d_key, n_heads * d_k)`; the integer `n_heads` divides the columns, and head $h$ owns the
# $h$-th block of $d_k$ neighbouring columns of each. Return shape `(n_heads, d_query, d_key)`, so that `x @ forms[h] @ y.T` are
# the scores of head $h$ as the softmax gets them, with the scale $1/\sqrt{d_k}$.


# %% id="absorbed-head-matrices" tags=["task"]
def my_forms(w_query, w_key, n_heads):
    """(d_query, n_heads * d_k), (d_key, n_heads * d_k) -> (n_heads, d_query, d_key),
    {eq}`absorbed-score` with the scale."""
    ### BEGIN SOLUTION
    query, key = (w.reshape(len(w), n_heads, -1).swapaxes(0, 1) for w in (w_query, w_key))
    return query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    ### END SOLUTION


# %% id="absorbed-head-matrices-check" tags=["check"]
check("absorbed-head-matrices", my_forms)

# %% [markdown] id="absorbed-head-matrices-why" tags=["solution-only"]
# **Why.** Each head has a product of its own; `w_query @ w_key.T` as a whole would be their sum. The scale knows the $d_k$
# terms of a score before absorbing.

# %% [markdown] id="repair-columns-attention-text"
# In this task **columns are positions**. The function below should compute self-attention with the tokens as values,
# {eq}`absorbed-attention-in-columns`: `tokens` has shape `(d, T)`, `w_query` and `w_key` have shape `(d_k, d)` and act from the left, $W_Q
# z$; the result
# has shape `(d, T)`, and the scale is $1/\sqrt{d_k}$. It raises no error, and it is wrong in two places. Repair it.


# %% id="repair-columns-attention" tags=["task"]
def columns_attention(tokens, w_query, w_key):
    """Self-attention with columns as positions: tokens (d, T), w_query (d_k, d),
    w_key (d_k, d) -> Z (d, T)."""
    ### BEGIN SOLUTION
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights
    ### END SOLUTION


# %% id="repair-columns-attention-check" tags=["check"]
check("repair-columns-attention", columns_attention)

# %% [markdown] id="repair-columns-attention-why" tags=["solution-only"]
# **Why.** (1) Softmax runs down a column, so keys must stand in the rows: $(W_K X)^\top (W_Q X)$. (2) The scale. No shape can
# tell, for the absorbed matrix is square.

# %% [markdown] id="absorbed-matrix-backward-text"
# The forward pass was `form = w_query @ w_key.T`, without a scale: `w_query` has shape `(d_query, d_k)`, `w_key`
# `(d_key, d_k)`. Write the backward pass `my_form_backward(w_query, w_key, d_form)`: from the gradient of a loss with respect
# to the form, `(d_query, d_key)`, it returns the tuple `(d_w_query, d_w_key)`, each of the shape of what it belongs to.


# %% id="absorbed-matrix-backward" tags=["task"]
def my_form_backward(w_query, w_key, d_form):
    """Gradients (d_w_query, d_w_key) from d_form (d_query, d_key)."""
    ### BEGIN SOLUTION
    return d_form @ w_key, d_form.T @ w_query
    ### END SOLUTION


# %% id="absorbed-matrix-backward-check" tags=["check"]
check("absorbed-matrix-backward", my_form_backward)

# %% [markdown] id="absorbed-matrix-backward-why" tags=["solution-only"]
# **Why.** $W_{ab} = \sum_c (W_Q)_{ac} (W_K)_{bc}$, so entry $(a, c)$ of $W_Q$ meets $(W_K)_{bc}$ in every entry $(a, b)$. A
# large key matrix makes large gradients for the queries: the gauge changes nothing in the function, but it does change the
# steps of training.

# %% [markdown] id="value-bias-contribution-text"
# Write `my_bias_part(weights, b_value, w_output)`: what a value bias adds to the output of one head, that is, the output with
# the bias minus the output without it. `weights` has shape `(q_len, kv_len)`, entries 0 or more. In some cases rows are all
# zero (nothing may be attended to), or dropout has removed weights and enlarged the rest; take them as they are. `b_value`
# `(d_v,)` is added to every value; `w_output` is `(d_v, d)`. Return shape `(q_len, d)`.


# %% id="value-bias-contribution" tags=["task"]
def my_bias_part(weights, b_value, w_output):
    """(q_len, kv_len), (d_v,), (d_v, d) -> (q_len, d): the bias's part of the
    output."""
    ### BEGIN SOLUTION
    return weights.sum(axis=1, keepdims=True) * (b_value @ w_output)
    ### END SOLUTION


# %% id="value-bias-contribution-check" tags=["check"]
check("value-bias-contribution", my_bias_part)

# %% [markdown] id="value-bias-contribution-why" tags=["solution-only"]
# **Why.** $P (V + \mathbf{1} b_V) W_O - P V W_O = (P \mathbf{1})\, b_V W_O$, and $P \mathbf{1}$ are the sums of the rows. Only
# where they are all 1 is it a constant that an output bias could take over.

# %% [markdown] id="read-bilinear-form-text"
# The cell below shows a bilinear form $W$ of five features, counted from 0, with the scale folded in; features that ask stand
# in rows. The numbers are exact. Write `my_reading = (a, b, c)`:
#
# - `a`: feature 4 asks. For which feature does it ask most?
# - `b`: what is entry $(0, 2)$ of the symmetric part $W_+$?
# - `c`: a token has the features 1 and 4, each with value 1, and no others. What is its score with itself?

# %% id="read-bilinear-form-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-bilinear-form"))

# %% id="read-bilinear-form" tags=["task"]
### BEGIN SOLUTION
my_reading = (2, 0.2, 1.4)
### END SOLUTION

# %% id="read-bilinear-form-check" tags=["check"]
check("read-bilinear-form", my_reading)

# %% [markdown] id="read-bilinear-form-why" tags=["solution-only"]
# **Why.** Row 4 is largest in column 2 (1.6). $(-0.6 + 1.0)/2 = 0.2$. And $x W x^\top$ adds four entries:
# $0.5 + 1.2 - 0.4 + 0.1 = 1.4$; {eq}`self-score-symmetric-part` gives the same from $W_+$, $0.5 + 2 \cdot 0.4 + 0.1$.

# %% [markdown] id="latent-cache-size-text"
# A model has $L$ layers of latent attention, $H$ heads of width $d$, latent vectors of $d_c$ numbers (keys and values) and $d_q$
# (queries); each rotary query and the shared rotary key have $d_r$ (numbers below). The cache holds 16-bit numbers. Write
# `my_cache = (a, b)`, each to within 0.02.
#
# - `a`: by how many kB (1000 bytes) does the model's cache grow with each token?
# - `b`: how many groups (key heads of width $d$, with values) would fill as many bytes (not rounded)?

# %% id="latent-cache-size" tags=["task"]
### BEGIN SOLUTION
my_cache = (L * (d_c + d_r) * 2 / 1000, (d_c + d_r) / (2 * d))
### END SOLUTION

# %% id="latent-cache-size-check" tags=["check"]
check("latent-cache-size", my_cache)

# %% [markdown] id="latent-cache-size-why" tags=["solution-only"]
# **Why.** {eq}`latent-cache-bytes`: here $352$ numbers in each of 48 layers, 33.79 kB. A group keeps a key and a value, 160 numbers: 2.2 groups.
# Neither heads nor the queries' latent vector play a part.

# %% [markdown] id="joint-key-value-compression-text"
# Compress two projections **together**: `my_joint(w_key, w_value, d_latent)` takes `w_key` of shape `(d, n)` and `w_value` of
# shape `(d, m)` (all heads side by side) and returns the tuple of two matrices of the same shapes, such that $[W_K'\; W_V']$,
# side by side, has rank `d_latent` (an integer below $d$ and below $n + m$) and is as near to $[W_K\; W_V]$ as such a matrix
# can be, in the sum of squared differences. `np.linalg` and its counterpart in torch are welcome.


# %% id="joint-key-value-compression" tags=["task"]
def my_joint(w_key, w_value, d_latent):
    """(d, n), (d, m) -> the same shapes, side by side the nearest matrix of rank
    d_latent."""
    ### BEGIN SOLUTION
    left, singular, right = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    both = left[:, :d_latent] * singular[:d_latent] @ right[:d_latent]
    return both[:, : w_key.shape[1]], both[:, w_key.shape[1] :]
    ### END SOLUTION


# %% id="joint-key-value-compression-check" tags=["check"]
check("joint-key-value-compression", my_joint)

# %% [markdown] id="joint-key-value-compression-why" tags=["solution-only"]
# **Why.** `left * singular` is a down-projection, the two parts of `right` are up-projections, and the latent vector between
# serves keys and values. The lesson did better still: it compressed $X [W_K\; W_V]$, so that only directions that tokens have
# were counted.

# %% [markdown] id="absorption-break-even-text"
# A layer has $h$ heads with keys of width $k$ and values of width $v$, and latent vectors of width $c$, no rotary part. Of $t$
# tokens, all with latent vectors, the last $n$ are new. Count from the queries to the outputs of the heads, as in
# {eq}`latent-decoding-flops`,
# with all $n t$ pairs:
#
# - naive: make keys and values of all $t$ tokens, then scores and averages;
# - in the latent space: lift $n$ queries, scores and averages with the latent vectors, bring $n$ averages back.
#
# At which $n$ do both take the same number of FLOPs? Write an expression in `t`, `c`, `k`, `v` with sums, products, powers.
# Assume $2 c > k + v$. ($h$ and the 2 for a multiply-add cancel.)

# %% id="absorption-break-even" tags=["task"]
### BEGIN SOLUTION
my_new_tokens = t * c * (k + v) / (c * (k + v) + t * (2 * c - k - v))
### END SOLUTION

# %% id="absorption-break-even-check" tags=["check"]
check("absorption-break-even", my_new_tokens)

# %% [markdown] id="absorption-break-even-why" tags=["solution-only"]
# **Why.** $t c (k + v) + n t (k + v) = n c (k + v) + 2 n t c$, solved for $n$. Turned upside down it reads
# $\frac{1}{n} = \frac{1}{t} + \frac{2}{k + v} - \frac{1}{c}$. For DeepSeek-V2 and long texts: $n \approx 171$. Fewer new
# tokens, as in decoding: the latent space. More, as in a prompt: rebuild.

# %% [markdown] id="repair-decoupled-scores-text"
# This should give the scores `(n, t)` of **one head**, {eq}`decoupled-rope-score`: the last $n$ tokens of a text of $t$ ask all $t$ (no
# mask;
# positions count from 0). Inputs: `query` `(n, d_head)`, content; `query_rope` `(n, d_rope)` and `key_rope` `(t, d_rope)`, not
# yet rotated; `latent` `(t, d_latent)`; `w_key_up` `(d_latent, d_head)`, which makes the content of a key. The scale is
# $1/\sqrt{d_{\mathrm{head}} + d_{\mathrm{rope}}}$. `rotate` is right; the function is wrong in two places. Repair it. (The
# check sees only the scores, not how you bracket.)


# %% id="repair-decoupled-scores" tags=["task"]
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    """Scores (n, t) of the last n tokens of a text of t with all of it, one head:
    content absorbed, positions decoupled."""
    ### BEGIN SOLUTION
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
    ### END SOLUTION


# %% id="repair-decoupled-scores-check" tags=["check"]
check("repair-decoupled-scores", decoupled_scores)

# %% [markdown] id="repair-decoupled-scores-why" tags=["solution-only"]
# **Why.** (1) A rotation of lifted queries and latent vectors is no rotation of queries and keys, {eq}`rope-blocks-absorption`: the content
# has
# no positions. (2) Absorbing changes how the score is computed, not how many terms it had.

# %% [markdown] id="latent-decoding-step-text"
# Write one step of decoding in the latent space for $H$ heads, {eq}`absorbed-latent-attention`. The new token brings `query` `(H, d_head)`,
# content, and `query_rope` `(H, d_rope)`, already rotated. The cache, its own token included: `latent` `(t, d_latent)` and
# `key_rope` `(t, d_rope)`, already rotated. Weights: `w_key_up` `(d_latent, H * d_head)`, `w_value_up` `(d_latent, H * d_v)`,
# `w_output` `(H * d_v, d)`.
#
# Return the tuple of the lifted queries $q_h W_{UK}^{(h)\top}$ `(H, d_latent)` (no scale, no rotary part), the averages of
# latent vectors `(H, d_latent)`, and the output `(d,)`. The scale is $1/\sqrt{d_{\mathrm{head}} + d_{\mathrm{rope}}}$.


# %% id="latent-decoding-step" tags=["task"]
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    """One absorbed step -> lifted queries (H, d_latent), averages (H, d_latent),
    output (d,)."""
    ### BEGIN SOLUTION
    n_heads, d_head = query.shape
    keys_up, values_up = (w.reshape(len(w), n_heads, -1).swapaxes(0, 1) for w in (w_key_up, w_value_up))  # (H, d_latent, width)
    lifted = (keys_up @ query[:, :, None])[:, :, 0]

    scores = (lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d_head + query_rope.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    averages = unnormalised / unnormalised.sum(axis=1, keepdims=True) @ latent

    heads = averages[:, None, :] @ values_up  # (H, 1, d_v)
    return lifted, averages, heads.ravel() @ w_output
    ### END SOLUTION


# %% id="latent-decoding-step-check" tags=["check"]
check("latent-decoding-step", my_latent_step)

# %% [markdown] id="latent-decoding-step-why" tags=["solution-only"]
# **Why.** The same few rows of `latent` are keys and values of all heads; what differs from head to head are the small products
# before and after. Nothing of size $t \times H$ but the scores is ever made.

# %% [markdown] id="latex"
# **The last three answers are LaTeX**, typed as text with an `r` in front, such as `r"x_i W x_j^\top"`. All vectors are rows, and a
# transpose is typed `^\top`. Every form that is equal counts. To see how yours is understood, `from attn_course import read`
# and call `read("absorb-projections-and-biases", my_derivation)`, and likewise in the other two; what cannot be read is no
# attempt.

# %% [markdown] id="absorb-projections-and-biases-text"
# Queries and keys have biases, $b_Q$ and $b_K$. Bring the score of token $i$ with token $j$, line by line, to one absorbed
# matrix $W = W_Q W_K^\top$, one absorbed row $v = b_Q W_K^\top$, and a rest with $b_K$. Each line must equal the one before;
# show three steps or more:
#
# ```python
# my_derivation = [
#     r"(x_i W_Q + b_Q) (x_j W_K + b_K)^\top",
#     # your lines
#     r"x_i W x_j^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
# ]
# ```
#
# The last line may also have its terms in another order or its brackets opened.

# %% id="absorb-projections-and-biases" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"(x_i W_Q + b_Q) (x_j W_K + b_K)^\top",
    r"(x_i W_Q + b_Q) (W_K^\top x_j^\top + b_K^\top)",
    r"(x_i W_Q + b_Q) W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
    r"x_i W_Q W_K^\top x_j^\top + b_Q W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
    r"x_i W x_j^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
]
### END SOLUTION

# %% id="absorb-projections-and-biases-check" tags=["check"]
check("absorb-projections-and-biases", my_derivation)

# %% [markdown] id="absorb-projections-and-biases-why" tags=["solution-only"]
# **Why.** The transpose is taken term by term, the right bracket is opened first, and the left one then only where it meets
# $W_K^\top$. That order leaves the rest as one term, $(x_i W_Q + b_Q)\, b_K^\top$, in which no $j$ stands: it is the same for all
# keys, so a softmax over the keys drops it, {eq}`key-bias-cancels`. What stays is the content, $x_i W x_j^\top$, and
# $v x_j^\top$, a preference for some keys whoever asks. A layer that stores $W$ and $v$ needs no $b_K$ at all.

# %% [markdown] id="gauge-of-the-values-text"
# {eq}`query-key-gauge-freedom` puts a matrix between queries and keys. Values and output have such a freedom too. In one head we
# replace $W_V$ ($d \times d_v$) by $W_V G$, where $G$ ($d_v \times d_v$) may be any invertible matrix. Which matrix $W_O'$ must take
# the place of $W_O$ ($d_v \times d$), so that the head still writes the same whatever it reads? Write the right side of
#
# $$W_O' = \ldots$$

# %% id="gauge-of-the-values" tags=["task"]
### BEGIN SOLUTION
my_factor = r"G^{-1} W_O"
### END SOLUTION

# %% id="gauge-of-the-values-check" tags=["check"]
check("gauge-of-the-values", my_factor)

# %% [markdown] id="gauge-of-the-values-why" tags=["solution-only"]
# **Why.** $W_V G\, G^{-1} W_O = W_V W_O$: the inverse must stand where it meets $G$. The keys needed $G^{-\top}$ only because
# $W_K$ is transposed in $W_Q W_K^\top$. So the entries of a single value mean as little as those of a single key; what a head
# writes is read from $U_h = W_V^{(h)} W_O^{(h)}$, {eq}`absorbed-multi-head-attention`.

# %% [markdown] id="query-that-asks-latents-text"
# In latent attention, head $h$ compares its query $[\,q_h^C, q_h^R\,]$ with the key $[\,c_j W_{UK}^{(h)}, k_j^R\,]$ of token $j$ (already
# rotated; the parts have widths $d_k$ and $d_R$). But no key is made: the cache holds $[\,c_j, k_j^R\,]$, $d_c + d_R$
# numbers. Write the right side of $a_h = \ldots$, the row for which
#
# $$a_h \cdot [\,c_j,\, k_j^R\,]$$
#
# is the score that the softmax gets. A transpose is `W_{UK}^{(h)\top}`; `[a, b]` puts rows side by side.

# %% id="query-that-asks-latents" tags=["task"]
### BEGIN SOLUTION
my_query = r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{\sqrt{d_k + d_R}}"
### END SOLUTION

# %% id="query-that-asks-latents-check" tags=["check"]
check("query-that-asks-latents", my_query)

# %% [markdown] id="query-that-asks-latents-why" tags=["solution-only"]
# **Why.** The dot product of two rows in two parts is the sum of two dot products, {eq}`decoupled-rope-score`. In the first,
# $q_h^C (c_j W_{UK}^{(h)})^\top = (q_h^C W_{UK}^{(h)\top})\, c_j^\top$, so the up-projection moves to the query,
# {eq}`absorbed-latent-keys`; the rotary part stays as it is. Now $a_h$ has $d_c + d_R$ numbers, but that is only how the score is
# computed: its value, and so its scale, is that of a key of width $d_k + d_R$.
