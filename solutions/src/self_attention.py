# %% [markdown] id="title"
# # Exercises {lesson}`self_attention`: self-attention
#
# Eleven tasks to the lesson [{lesson}`self_attention` Self-attention](../notebooks/{lesson}`self_attention`_self_attention.ipynb): 28
# points, about 105 minutes. Each
# stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong, and names the mistake
# if it is a known one. Three hints fold out below each question. You may add cells, but leave the check cells as they
# are. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs, nor use
# the course's own functions (`attn_course.reference`). Rows are tokens.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="self-attention-text"
# Write self-attention: `my_self_attention(x, w_query, w_key, w_value)` takes tokens `x` of shape `(..., T, d_model)` and the
# projections `(d_model, d_k)`, `(d_model, d_k)` and `(d_model, d_v)`, all float64, and returns the outputs,
# `(..., T, d_v)`: softmax over the keys, scale $1/\sqrt{d_k}$, nothing masked.
#
# There may be none, one or several leading axes; they are separate sentences. Scores may lie beyond a thousand on either
# side, so use a stable softmax; torch's is welcome.


# %% id="self-attention" tags=["task"]
def my_self_attention(x, w_query, w_key, w_value):
    """(..., T, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v) ->
    (..., T, d_v), {eq}`self-attention`."""
    ### BEGIN SOLUTION
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="self-attention-check" tags=["check"]
check("self-attention", my_self_attention)

# %% [markdown] id="self-attention-why" tags=["solution-only"]
# **Why.** One input, three views. Everything after the first line is lesson {lesson}`attention`; the number of tokens appears nowhere in
# the parameters.

# %% [markdown] id="features-for-self-weight-text"
# Self-attention **without** projections over $n$ tokens with $v$ features each. Suppose that every token has the squared
# length $v$, and that different tokens are orthogonal. Then a token's score with itself is $\sqrt{v}$, all others are 0,
# and the weight on itself is some $p$ that grows with $v$.
#
# Derive the $v$ at which a given weight $p$ is reached ($1/n < p < 1$), and write it with the symbols `p` and `n`, with
# arithmetic and `log`, the natural logarithm.

# %% id="features-for-self-weight" tags=["task"]
### BEGIN SOLUTION
my_features = log((n - 1) * p / (1 - p)) ** 2
### END SOLUTION

# %% id="features-for-self-weight-check" tags=["check"]
check("features-for-self-weight", my_features)

# %% [markdown] id="features-for-self-weight-why" tags=["solution-only"]
# **Why.** $p = e^s / (e^s + n - 1)$ with $s = \sqrt v$, so $e^s = (n - 1)\, p / (1 - p)$. For 32 tokens a weight of one half
# is reached at $v = (\ln 31)^2 \approx 12$. (Random tokens need about 16: their other scores are not exactly 0.)

# %% [markdown] id="read-balance-of-weights-text"
# Run the cell below. It shows the weights of self-attention **without** projections for four tokens, rows and columns
# counted from 0; the numbers in the cells are exact. Write three numbers as `my_reading = (a, b, c)`:
#
# - `a`: which token collects the most weight in total, summed over all queries?
# - `b`: how many times as large as $Z_0$ is $Z_3$? ($Z_i$ is the normaliser of row $i$, {eq}`detailed-balance-of-weights`.)
# - `c`: suppose the values were replaced by numbers: 1 for token 2, and 0 for all others, with the weights as they are.
#   What would output 3 be?

# %% id="read-balance-of-weights-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-balance-of-weights"))

# %% id="read-balance-of-weights" tags=["task"]
### BEGIN SOLUTION
my_reading = (2, 0.10 / 0.04, 0.16)
### END SOLUTION

# %% id="read-balance-of-weights-check" tags=["check"]
check("read-balance-of-weights", my_reading)

# %% [markdown] id="read-balance-of-weights-why" tags=["solution-only"]
# **Why.** Column 2 sums to 1.43, more than any other, although token 3 has the largest single weight: that is its own.
# $p_{03} Z_0 = p_{30} Z_3$ gives the ratio $0.10 / 0.04 = 2.5$. Output 3 averages with row 3, and only token 2 counts there.

# %% [markdown] id="repair-residual-stack-text"
# The function below should run several layers of self-attention, each added to the state it read, {eq}`residual-stream`, and return
# the last state, `(T, d_model)`. Layer `n` has the projections `w_query[n]` and `w_key[n]`, each `(d_model, d_k)`; its
# values are the rows of the state that it reads, without a projection. `x` is `(T, d_model)`; all arrays are float64. It
# raises no error, and two things are wrong: what the layers read, and what they leave. Repair it.


# %% id="repair-residual-stack" tags=["task"]
def stacked(x, w_query, w_key):
    """Layers of self-attention one upon the other, each added to what it read."""
    ### BEGIN SOLUTION
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, state @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = state + weights @ state
    return state
    ### END SOLUTION


# %% id="repair-residual-stack-check" tags=["check"]
check("repair-residual-stack", stacked)

# %% [markdown] id="repair-residual-stack-why" tags=["solution-only"]
# **Why.** Every layer read `x`, so all layers but the last did nothing at all; and the last one replaced the state. (`state += ...`
# would change the caller's `x` in the first round.)

# %% [markdown] id="rotary-positions-text"
# Write RoPE: `my_rope(x, positions)` takes queries or keys `x`, float64 of shape `(T, d_k)` with `d_k` even, and integer
# `positions` of shape `(T,)`, in any order, and returns the turned array, `(T, d_k)`. A position may be negative, and up to
# 100 000 in size: compute angles in float64, even for a float32 result.
#
# Pair $m = 0, 1, \ldots$ consists of the **neighbours** $a$ = feature $2m$ and $b$ = feature $2m + 1$. A row at position
# $t$ has it turned by the angle $\omega_m t$ with $\omega_m = 10000^{-2m/d_k}$: feature $2m$ becomes
# $a \cos \omega_m t - b \sin \omega_m t$, feature $2m + 1$ becomes $a \sin \omega_m t + b \cos \omega_m t$.


# %% id="rotary-positions" tags=["task"]
def my_rope(x, positions):
    """(T, d_k), (T,) -> (T, d_k): neighbouring features turned by their position,
    {eq}`rotations-compose`."""
    ### BEGIN SOLUTION
    d_k = x.shape[1]
    frequencies = 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)
    angles = positions[:, None] * frequencies
    first, second = x[:, 0::2], x[:, 1::2]
    turned = np.empty_like(x)
    turned[:, 0::2] = first * np.cos(angles) - second * np.sin(angles)
    turned[:, 1::2] = first * np.sin(angles) + second * np.cos(angles)
    return turned
    ### END SOLUTION


# %% id="rotary-positions-check" tags=["check"]
check("rotary-positions", my_rope)

# %% [markdown] id="rotary-positions-why" tags=["solution-only"]
# **Why.** One angle for each row and each pair. Other code, the `rope` of the lesson included, pairs feature $m$ with
# $m + d_k / 2$: the same pairs under other column numbers.

# %% [markdown] id="projection-gradients-text"
# The gradients `d_query`, `d_key` `(T, d_k)` and `d_value` `(T, d_v)` of a loss with respect to $Q = X W_Q$, $K = X W_K$ and
# $V = X W_V$ are known. Write `my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value)`, which
# returns the tuple `(d_w_query, d_w_key, d_w_value, d_x)` of gradients, each of the shape of what it belongs to: `x` is
# `(T, d_model)`, the matrices are `(d_model, d_k)`, `(d_model, d_k)` and `(d_model, d_v)`, all float64. In class marks each
# of the four gradients that is right in every case counts a quarter of the points.


# %% id="projection-gradients" tags=["task"]
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    """Gradients (d_w_query, d_w_key, d_w_value, d_x), {eq}`gradients-through-projections`."""
    ### BEGIN SOLUTION
    d_x = d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_x
    ### END SOLUTION


# %% id="projection-gradients-check" tags=["check"]
check("projection-gradients", my_projection_gradients)

# %% [markdown] id="projection-gradients-why" tags=["solution-only"]
# **Why.** Each projection is one linear map. The matrices collect over the tokens, and the token collects over the three
# roles it plays.

# %% [markdown] id="attention-and-rnn-counts-text"
# A sentence of $T$ tokens; all widths ($d_{\text{model}}$, $d_k$, $d_v$, hidden size) are $d$, as printed below. Count only
# matrix products, a multiplication with its addition as 2. Self-attention has three projections, scores and output; the
# RNN multiplies input and state by a matrix each, every step. Write `my_counts = (a, b, c, d)`:
#
# - `a`: FLOPs of self-attention; `b`: of the RNN;
# - `c`: products in the longest chain of self-attention, each in need of the one before;
# - `d`: the same for the RNN, one for each step.

# %% id="attention-and-rnn-counts" tags=["task"]
### BEGIN SOLUTION
my_counts = (6 * T * d**2 + 4 * T**2 * d, 4 * T * d**2, 3, T)
### END SOLUTION

# %% id="attention-and-rnn-counts-check" tags=["check"]
check("attention-and-rnn-counts", my_counts)

# %% [markdown] id="attention-and-rnn-counts-why" tags=["solution-only"]
# **Why.** Here 3 604 480 against 1 310 720 FLOPs: nearly three times the work, with 3 products in a row in place of 80.

# %% [markdown] id="attention-between-features-text"
# Write `my_feature_weights(table)`: `table` is float64 of shape `(m, n)`, a row for each of $m$ individuals, a column
# for each of $n \ge 1$ features, none constant. Return the weights `(n, n)` of self-attention **without** projections, with the
# **features** as tokens. Each feature is shifted to mean 0 and scaled to mean square 1 over the individuals (a mean
# divides by $m$). Scores are divided by the root of the number of entries of a token; row $a$ sums to 1 over all features,
# $a$ included. Torch's softmax is welcome.


# %% id="attention-between-features" tags=["task"]
def my_feature_weights(table):
    """(m, n) -> (n, n): softmax of the scaled products of standardised features,
    {eq}`feature-weights-from-correlations`."""
    ### BEGIN SOLUTION
    tokens = ((table - table.mean(axis=0)) / table.std(axis=0)).T
    scores = tokens @ tokens.T / np.sqrt(tokens.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True)
    ### END SOLUTION


# %% id="attention-between-features-check" tags=["check"]
check("attention-between-features", my_feature_weights)

# %% [markdown] id="attention-between-features-why" tags=["solution-only"]
# **Why.** A token is a column, so it has $m$ entries, and $\sqrt m$ is the scale. In the last case two features are exactly opposite:
# each knows everything about the other, and their weight is next to nothing.

# %% [markdown] id="answers-in-latex"
# ## Answers in LaTeX
# The last three answers are LaTeX, between `r"` and `"`: the right side of a formula. Any form counts that has the right value
# in every case. To see how yours is understood, `from attn_course import read` and call
# `read("asymmetry-of-two-scores", my_asymmetry)`; what cannot be read is no attempt. A sum ends at the next plus or minus, so
# put parentheses around several terms, `\sum_m (a_m + b_m)`; a transpose is written `^\top`.

# %% [markdown] id="asymmetry-of-two-scores-text"
# Token $i$ is the row $x_i$ of $X$, a row vector; the scores of self-attention with the projections $W_Q$ and $W_K$ are
# $s_{ij}$, the query of token $i$ against the key of token $j$, divided by $\sqrt{d_k}$. Write a formula in LaTeX for
#
# $$s_{ij} - s_{ji}$$
#
# as it holds for all $i$ and $j$: with tokens, projections and $d_k$, in matrix products or entry by entry.

# %% id="asymmetry-of-two-scores" tags=["task"]
### BEGIN SOLUTION
my_asymmetry = r"\frac{x_i (W_Q W_K^\top - W_K W_Q^\top) x_j^\top}{\sqrt{d_k}}"
### END SOLUTION

# %% id="asymmetry-of-two-scores-check" tags=["check"]
check("asymmetry-of-two-scores", my_asymmetry)

# %% [markdown] id="asymmetry-of-two-scores-why" tags=["solution-only"]
# **Why.** A number is its own transpose: $x_j W_Q W_K^\top x_i^\top = x_i W_K W_Q^\top x_j^\top$. Subtract that from
# {eq}`bilinear-score`. All of {eq}`asymmetry-of-scores` lies in the matrix in the middle, which is the same for every pair of tokens.

# %% [markdown] id="rotary-score-by-offset-text"
# Query and key consist of $h$ pairs of features; pair $m$ of the query is the row $q_m = (q_{m1}, q_{m2})$, and $k_m$ that of the
# key. RoPE turns pair $m$ of a vector at position $t$ by the angle $\omega_m t$, {eq}`rotations-compose`. The query stands at
# position $p + r$ and the key at $p$. Write a formula in LaTeX for the score
#
# $$S_r = \text{dot product of the turned query and the turned key}$$
#
# for every $r$, also a negative one, without $p$.

# %% id="rotary-score-by-offset" tags=["task"]
### BEGIN SOLUTION
my_rotary_score = (
    r"\sum_{m=1}^{h} \left( (q_m \cdot k_m) \cos(\omega_m r)"
    r" + (q_{m1} k_{m2} - q_{m2} k_{m1}) \sin(\omega_m r) \right)"
)
### END SOLUTION

# %% id="rotary-score-by-offset-check" tags=["check"]
check("rotary-score-by-offset", my_rotary_score)

# %% [markdown] id="rotary-score-by-offset-why" tags=["solution-only"]
# **Why.** By {eq}`rotations-compose` only the difference of the angles, $\omega_m r$, is left of each pair, so
# {eq}`rotated-pair-score` holds for each, with $u - t = -r$; different pairs never meet in a dot product. Without $p$ in the
# formula a score cannot depend on where in the text the two stand.

# %% [markdown] id="gradient-of-self-score-text"
# A token, the row $x$, is query and key at once: its score with itself is the dot product of $x W_Q$ and $x W_K$, divided by
# $\sqrt{d_k}$. Write a formula in LaTeX for the gradient of this score,
#
# $$g = \text{the row of its derivatives by the entries of } x$$
#
# with $x$, the projections and $d_k$.

# %% id="gradient-of-self-score" tags=["task"]
### BEGIN SOLUTION
my_self_gradient = r"\frac{1}{\sqrt{d_k}} x (W_Q W_K^\top + W_K W_Q^\top)"
### END SOLUTION

# %% id="gradient-of-self-score-check" tags=["check"]
check("gradient-of-self-score", my_self_gradient)

# %% [markdown] id="gradient-of-self-score-why" tags=["solution-only"]
# **Why.** The gradient of the score by the query is the key over $\sqrt{d_k}$, and the other way round. Through the projections,
# {eq}`gradients-through-projections`, come $x W_K W_Q^\top$ and $x W_Q W_K^\top$, and they add up: the token learns as one that asks and
# as one that is found.
