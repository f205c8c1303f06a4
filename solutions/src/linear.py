# %% [markdown] id="title"
# # Exercises {lesson}`linear`: attention without softmax
#
# Eleven tasks to the lesson [{lesson}`linear` Attention without softmax](../notebooks/{lesson}`linear`_linear.ipynb): 26 points, about
# 114 minutes. Each stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. A check that passes shows a green card in JupyterLab, elsewhere one line; one that fails names the
# mistake if it knows it, and stops "Run All". Three hints fold out below each question. Leave the checks as they are.
# In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
# positions. A state has one row for each key feature and one column for each value feature.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="positive-random-features-text"
# Write `my_features(x, omega)`: positive random features whose dot products estimate $e^{q \cdot k}$ without bias,
# {eq}`positive-features-are-unbiased`. `x` has shape `(..., T, d)` with none or one leading axis, `omega` holds $m$ draws from $N(0, I)$,
# shape `(m, d)`.
# Return `(..., T, m)`, such that the plain dot product of a row for $q$ and a row for $k$ is the **mean** over the $m$ draws;
# each feature carries the same factor for it. Nothing is divided by $\sqrt{d}$.


# %% id="positive-random-features" tags=["task"]
def my_features(x, omega):
    """(..., T, d) and draws (m, d) -> positive features (..., T, m), {eq}`positive-features-are-unbiased`."""
    ### BEGIN SOLUTION
    half_squares = (x * x).sum(axis=-1, keepdims=True) / 2
    return np.exp(x @ omega.T - half_squares) / np.sqrt(len(omega))
    ### END SOLUTION


# %% id="positive-random-features-check" tags=["check"]
check("positive-random-features", my_features)

# %% [markdown] id="positive-random-features-why" tags=["solution-only"]
# **Why.** A dot product of two rows adds $m$ products of features. With $1/\sqrt{m}$ on each side it is their mean, whose
# expectation is the kernel and whose variance is {eq}`variance-of-positive-features` divided by $m$. One exponential of the whole exponent
# is safer
# than a product of two that may overflow and vanish.

# %% [markdown] id="random-feature-crossover-text"
# Queries and keys of $k$ features are mapped to $m$ random features (a product with an $m \times k$ matrix for each query and
# for each key); then a memory of $m \times v$ numbers works by the **delta rule**: three products with it at every position
# (ask, correct, read), $2 m v$ FLOPs each. At which length $T$ does this take as many FLOPs as softmax attention without a
# mask, $2 T^2 (k + v)$? A multiply-add counts 2, everything else nothing. Write $T$ in the symbols `m`, `k`, `v` with sums,
# products and powers.

# %% id="random-feature-crossover" tags=["task"]
### BEGIN SOLUTION
my_crossover = m * (2 * k + 3 * v) / (k + v)
### END SOLUTION

# %% id="random-feature-crossover-check" tags=["check"]
check("random-feature-crossover", my_crossover)

# %% [markdown] id="random-feature-crossover-why" tags=["solution-only"]
# **Why.** For each position: $2 m k$ for its query, $2 m k$ for its key, $3 \cdot 2 m v$ for the memory. So
# $2 T (k + v) = 4 m k + 6 m v$. With $k = v$ it is $2.5\, m$: 256 random features need fewer FLOPs beyond 640 positions.

# %% [markdown] id="normalised-linear-attention-text"
# Write causal linear attention with a normaliser, {eq}`normalised-linear-attention`: `my_linear_attention(query, key, value)`. `query` and
# `key`,
# both `(H, T, m)`, are already features, all positive, some tiny; `value` is `(H, T, v)`; $H$ heads are separate problems. Return `(H,
# T, v)`. Position $t$ reads the keys $j \le t$. There is no scale.


# %% id="normalised-linear-attention" tags=["task"]
def my_linear_attention(query, key, value):
    """Positive features (H, T, m), (H, T, m) and values (H, T, v) -> averages
    (H, T, v), {eq}`normalised-linear-attention`."""
    ### BEGIN SOLUTION
    kernel = np.tri(query.shape[-2]) * (query @ key.swapaxes(-1, -2))
    return kernel @ value / kernel.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="normalised-linear-attention-check" tags=["check"]
check("normalised-linear-attention", my_linear_attention)

# %% [markdown] id="normalised-linear-attention-why" tags=["solution-only"]
# **Why.** $n_t \cdot \phi(q_t) = \sum_{j \le t} \phi(k_j) \cdot \phi(q_t)$ is the sum of row $t$ of the masked kernel. This
# is the parallel form, which costs $T^2$; `np.cumsum(key[..., :, None] * value[..., None, :], axis=-3)` gives all states, and
# the recurrent form.

# %% [markdown] id="chunked-linear-attention-text"
# Write {eq}`chunked-linear-attention`: `my_chunked(query, key, value, state, chunk)` for one head, without normaliser and without scale.
# `query`, `key` `(T, d)` hold features of any sign, `value` `(T, v)`, `state` `(d, v)` what was written before, and `chunk`
# is a positive integer; the last chunk may be shorter, and `chunk` may exceed $T$. Return the tuple of the output `(T, v)`
# and the state after the last position, `(d, v)`, as new arrays. Position $t$ reads `state` and the pairs $j \le t$.


# %% id="chunked-linear-attention" tags=["task"]
def my_chunked(query, key, value, state, chunk):
    """(T, d), (T, d), (T, v), state (d, v), positions in a chunk -> output (T, v),
    state (d, v), {eq}`chunked-linear-attention`."""
    ### BEGIN SOLUTION
    pieces = []
    for start in range(0, len(query), chunk):
        q, k, v = query[start : start + chunk], key[start : start + chunk], value[start : start + chunk]
        pieces.append(q @ state + (np.tri(len(q)) * (q @ k.T)) @ v)
        state = state + k.T @ v
    return np.concatenate(pieces), state
    ### END SOLUTION


# %% id="chunked-linear-attention-check" tags=["check"]
check("chunked-linear-attention", my_chunked)

# %% [markdown] id="chunked-linear-attention-why" tags=["solution-only"]
# **Why.** Everything before the chunk is in the state, everything inside it in the masked product. `state = state + ...`
# makes a new array; `+=` would change the caller's.

# %% [markdown] id="repair-decay-gate-text"
# The function below should compute gated linear attention, {eq}`linear-attention-with-decay`: `query`, `key` `(T, d_k)`, `value` `(T,
# d_v)`, and
# `gate` `(T, d_k)` with entries above 0 and below 1, what each key feature keeps at each step. It returns `(T, d_v)`; no
# normaliser, no scale, the state begins at zero. It raises no error, and its steps stand in the wrong order. Repair it.


# %% id="repair-decay-gate" tags=["task"]
def gated_attention(query, key, value, gate):
    """Gated linear attention: (T, d_k), (T, d_k), (T, d_v), gates (T, d_k) ->
    (T, d_v)."""
    ### BEGIN SOLUTION
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t][:, None] * state
        state = state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
    return output
    ### END SOLUTION


# %% id="repair-decay-gate-check" tags=["check"]
check("repair-decay-gate", gated_attention)

# %% [markdown] id="repair-decay-gate-why" tags=["solution-only"]
# **Why.** Fade, write, read. In {eq}`linear-attention-with-decay` the product of gates runs from $j + 1$ to $t$: the gate of the position
# that
# writes is not in it, that of the position that reads is.

# %% [markdown] id="read-interference-text"
# The cell below shows the dot products of four unit keys; the numbers are exact, so nothing needs rounding. A state is the
# sum of outer products $k_j v_j$ with single numbers as values, {eq}`recall-signal-and-interference`. Write `my_reading = (a, b, c)`:
#
# - `a`: the values of keys 0 to 3 are 1, -2, 2 and 4. What does reading with key 2 return?
# - `b`: now the values are random, independent, of mean 0 and variance 1. For which key is the mean square of the
#   interference largest? Write its number, 0 to 3.
# - `c`: how large is that mean square for key 3?

# %% id="read-interference-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-interference"))

# %% id="read-interference" tags=["task"]
### BEGIN SOLUTION
my_reading = (3.6, 2, 0.37)
### END SOLUTION

# %% id="read-interference-check" tags=["check"]
check("read-interference", my_reading)

# %% [markdown] id="read-interference-why" tags=["solution-only"]
# **Why.** $2 - 0.2 \cdot 1 - 0.3 \cdot 2 + 0.6 \cdot 4 = 3.6$. Independent values of mean 0 add their variances, each times
# its squared overlap: .30, .34, .49 and .37 in the four rows, without the diagonal. Key 2 has the largest.

# %% [markdown] id="three-delta-writes-text"
# Two unit keys $a$, $b$ have $a \cdot b = c$; values are single numbers. A state that begins at zero is written three times
# by the delta rule, {eq}`delta-rule`, with the step size $\beta$: first $v_1$ under $a$, then $v_2$ under $b$, then $v_3$ under $a$. The
# cell below prints your $c$, $\beta$ and the `values` $(v_1, v_2, v_3)$. What does reading with $b$ return? Write the number (four correct
# digits; an expression is welcome).

# %% id="three-delta-writes" tags=["task"]
### BEGIN SOLUTION
s_a = beta * (values[0] - 0)
s_b = beta * (values[1] - c * s_a)
s_a = s_a + beta * (values[2] - (s_a + c * s_b))
my_read = c * s_a + s_b
### END SOLUTION

# %% id="three-delta-writes-check" tags=["check"]
check("three-delta-writes", my_read)

# %% [markdown] id="three-delta-writes-why" tags=["solution-only"]
# **Why.** The state is $s_a a + s_b b$: here $s_a = 1$, then $s_b = -0.8$, then $s_a = 2.74$. So $b$ reads $0.844$, far from its value
# $-1$: only half a step was taken, and the write under $a$ came on top.

# %% [markdown] id="delta-rule-text"
# Write the delta rule, {eq}`delta-rule`, for one head: `my_delta_rule(query, key, value, beta, state)` takes `query`, `key` `(T,
# d_k)`, `value` `(T, d_v)`, `beta` `(T, 1)`, one step size for each position, and `state` `(d_k, d_v)` from before. Keys need
# not have length 1; nothing is divided by their length. Return the tuple of the output `(T, d_v)` and the last state `(d_k,
# d_v)`, as new arrays. Position $t$ reads with `query[t]` after it has written; there is no scale.


# %% id="delta-rule" tags=["task"]
def my_delta_rule(query, key, value, beta, state):
    """(T, d_k), (T, d_k), (T, d_v), (T, 1), state (d_k, d_v) -> output (T, d_v),
    state (d_k, d_v), {eq}`delta-rule`."""
    ### BEGIN SOLUTION
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        answer = state.T @ key[t]
        state = state + np.outer(key[t], beta[t] * (value[t] - answer))
        output[t] = state.T @ query[t]
    return output, state
    ### END SOLUTION


# %% id="delta-rule-check" tags=["check"]
check("delta-rule", my_delta_rule)

# %% [markdown] id="delta-rule-why" tags=["solution-only"]
# **Why.** Ask, correct, read. What is written is the difference, times the step size; with $\beta_t = 0$ a position only
# reads.

# %% [markdown] id="answers-in-latex"
# The last three answers are written in LaTeX, and any form that is equal counts. To see how an answer is understood, `from
# attn_course import read` and call, for instance, `read("delta-rule-multiplied-out", my_derivation)`; what cannot be read
# is no attempt.

# %% [markdown] id="delta-rule-multiplied-out-text"
# The delta rule asks the state what it has under $k$ and writes the difference. Multiply {eq}`delta-rule` out, and show that
# this is *erase, then write*, {eq}`erase-then-write`: a list of lines, each equal to the one before. $k$ and $v$ are columns,
# $\beta$ is a number.

# %% [markdown] id="delta-rule-multiplied-out-lines"
# The first and the last line are given. It takes three steps or more.
#
# ```python
# my_derivation = [
#     r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
#     # your lines
#     r"(I - \beta\, k k^\top)\, S_{t-1} + \beta\, k v^\top",
# ]
# ```

# %% id="delta-rule-multiplied-out" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
    r"S_{t-1} + \beta\, k\, \bigl( v^\top - (S_{t-1}^\top k)^\top \bigr)",
    r"S_{t-1} + \beta\, k\, (v^\top - k^\top S_{t-1})",
    r"S_{t-1} + \beta\, k v^\top - \beta\, k k^\top S_{t-1}",
    r"(I - \beta\, k k^\top)\, S_{t-1} + \beta\, k v^\top",
]
### END SOLUTION

# %% id="delta-rule-multiplied-out-check" tags=["check"]
check("delta-rule-multiplied-out", my_derivation)

# %% [markdown] id="delta-rule-multiplied-out-why" tags=["solution-only"]
# **Why.** A transpose reverses a product: $(S_{t-1}^\top k)^\top = k^\top S_{t-1}$. The number $\beta$ may stand anywhere, but
# $k$, $k^\top$ and $S_{t-1}$ keep their order, so that the state can only be taken out to the right, and $I$ is left where
# nothing stood before it.

# %% [markdown] id="linear-attention-without-state-text"
# Let $q_t$ and $k_t$ be features already, columns of positive numbers, and $v_t$ a column of values. Causal linear attention
# with a normaliser, {eq}`normalised-linear-attention`, carries a state and a normaliser from position to position; both begin
# at zero. Write the right side of
#
# $$o_t = \dots$$
#
# without either of them, in queries, keys and values alone. A sum up to $t$ is `\sum_{j \le t}` or `\sum_{j=1}^{t}`.

# %% id="linear-attention-without-state" tags=["task"]
### BEGIN SOLUTION
my_average = r"\frac{\sum_{j \le t} (q_t \cdot k_j)\, v_j}{\sum_{j \le t} q_t \cdot k_j}"
### END SOLUTION

# %% id="linear-attention-without-state-check" tags=["check"]
check("linear-attention-without-state", my_average)

# %% [markdown] id="linear-attention-without-state-why" tags=["solution-only"]
# **Why.** $S_t = \sum_{j \le t} k_j v_j^\top$, so $S_t^\top q_t = \sum_{j \le t} v_j\, (k_j \cdot q_t)$; the normaliser is the
# same sum with 1 for every value. It is the soft lookup of {eq}`softmax-as-kernel-smoother` with the dot product of features
# for a kernel: weights that sum to 1.

# %% [markdown] id="fading-state-unrolled-text"
# A state begins as $S_0$, not zero. Each step multiplies it by **one number** $a_t$, its gate, and then writes a pair of
# columns: {eq}`linear-attention-with-decay` with the same gate for every feature,
#
# $$S_t = a_t\, S_{t-1} + k_t v_t^\top$$
#
# Write the right side of $S_t = \dots$ without any state but $S_0$. A product is `\prod_{l=1}^{t}`; without factors it is 1.
# Put brackets around it where something follows: `\left( \prod_{l=1}^{t} a_l \right) S_0`.

# %% id="fading-state-unrolled" tags=["task"]
### BEGIN SOLUTION
my_state = r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top"
### END SOLUTION

# %% id="fading-state-unrolled-check" tags=["check"]
check("fading-state-unrolled", my_state)

# %% [markdown] id="fading-state-unrolled-why" tags=["solution-only"]
# **Why.** By induction: if the formula holds for $t - 1$, then $a_t$ joins every product, and the new pair $k_t v_t^\top$ has
# the product without factors, which is 1. So a pair meets the gates of the steps after its own. With all $a_t = a$ the
# factors are $a^{t - j}$, an exponential window.
