# %% [markdown] id="title"
# # Exercises 06: additive attention
#
# Eight tasks to [06 Additive attention](../notebooks/06_additive_attention.ipynb): 17 points,
# about 75 minutes. Each stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or behind the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes prints one line that begins with `ok`; one that fails says what is wrong, and names the mistake if it is a
# known one. Three hints fold out below each question. You may add cells, but leave the check cells as they are. In a
# terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs. Rows are
# positions. `w_query`, `w_key` and `w_score` are $W_Q$, $W_K$ and $v$ of the lesson.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

# %% [markdown] id="task-6-1-text"
# Write additive attention: `my_additive_attention(query, key, value, w_query, w_key, w_score)` takes float64 arrays of
# shape `(..., q_len, d_q)`, `(..., kv_len, d_k)`, `(..., kv_len, d_v)`, `(d_q, d_hidden)`, `(d_k, d_hidden)` and
# `(d_hidden,)`, and returns the outputs, `(..., q_len, d_v)`: scores of Eq. (6.2), without bias and scale, a softmax over the
# keys, an average of the values.
#
# The first three have the same leading axes: none, one or several. Scores may lie near 1000 for one query
# and near -1000 for another, so the softmax must be stable; a library softmax is welcome.


# %% id="task-6-1" tags=["task"]
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    """(..., q_len, d_q), (..., kv_len, d_k), (..., kv_len, d_v) and weights -> (..., q_len, d_v), Eq. (6.2)."""
    ### BEGIN SOLUTION
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    scores = hidden @ w_score
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    ### END SOLUTION


# %% id="task-6-1-check" tags=["check"]
check("6.1", my_additive_attention)

# %% [markdown] id="task-6-1-why" tags=["solution-only"]
# **Why.** Each vector is projected once; the axis of length 1 lets the sum broadcast to all pairs. tanh comes after the
# sum, `w_score` after tanh. Any other order lets the query cancel or leaves more than one number per pair.

# %% [markdown] id="task-6-2-text"
# The score vector is $v = (0.5, -1, 1)$ and there are 32 keys. Which number is the largest weight that a key can get, by the
# bound of Eq. (6.5)? Three correct digits are enough; an expression with `np.exp` is welcome.

# %% id="task-6-2" tags=["task"]
### BEGIN SOLUTION
my_ceiling = 1 / (1 + 31 * np.exp(-5))
### END SOLUTION

# %% id="task-6-2-check" tags=["check"]
check("6.2", my_ceiling)

# %% [markdown] id="task-6-2-why" tags=["solution-only"]
# **Why.** $\|v\|_1 = 2.5$: the best score is at most 2.5, the others at least $-2.5$, and 31 keys share what is left.

# %% [markdown] id="task-6-3-text"
# One hidden unit, and a query $q$ and a key $k$ that are numbers: $e = v \tanh(a q + b k + c)$. Write $t$ for the tanh. Derive
# $\dfrac{\partial^2 e}{\partial q\, \partial k}$, which says how much a key changes the way the query acts, and write it with the
# symbols `v`, `t`, `a` and `b`. Sums, products and powers of them are all you need; `diff` and `Derivative` do not count.

# %% id="task-6-3" tags=["task"]
### BEGIN SOLUTION
my_interaction = -2 * v * t * (1 - t**2) * a * b
### END SOLUTION

# %% id="task-6-3-check" tags=["check"]
check("6.3", my_interaction)

# %% [markdown] id="task-6-3-why" tags=["solution-only"]
# **Why.** $\partial e / \partial q = v\,(1 - t^2)\,a$, and $t$ changes with $k$ at the rate $(1 - t^2)\,b$. At $t = 0$ nothing is
# left: a unit that is not bent yet only adds. A bias $c$ moves it away from there.

# %% [markdown] id="task-6-4-text"
# Some papers write the score as $v^\top \tanh(W\,[q; k] + b)$, with the pair glued together, query first:
# $W$ is `weight`, $b$ is `bias`, $v$ is `w_score`; the softmax is not part of this task. Write
# `my_concat_scores(query, key, weight, bias, w_score)` for float64 arrays of shape `(q_len, d_q)`, `(kv_len, d_k)`,
# `(d_hidden, d_q + d_k)` (as `torch.nn.Linear` stores its weight), `(d_hidden,)` and `(d_hidden,)`. It returns the scores of all
# pairs, `(q_len, kv_len)`: rows are queries.


# %% id="task-6-4" tags=["task"]
def my_concat_scores(query, key, weight, bias, w_score):
    """(q_len, d_q), (kv_len, d_k), (d_hidden, d_q + d_k), (d_hidden,), (d_hidden,) -> (q_len, kv_len), Eq. (6.3)."""
    ### BEGIN SOLUTION
    d_q = query.shape[1]
    by_query = query @ weight[:, :d_q].T
    by_key = key @ weight[:, d_q:].T
    return np.tanh(by_query[:, None] + by_key[None] + bias) @ w_score
    ### END SOLUTION


# %% id="task-6-4-check" tags=["check"]
check("6.4", my_concat_scores)

# %% [markdown] id="task-6-4-why" tags=["solution-only"]
# **Why.** The first $d_q$ columns of $W$ meet the query, the rest the key: the concatenation is the sum of two projections.
# Written so, each vector is projected once; gluing all pairs first would project each query $T_k$ times.

# %% [markdown] id="task-6-5-text"
# The function below should compute the context of each sentence of a batch, Eq. (6.16): `state` is `(batch, d_q)`, `annotations`
# `(batch, length, d_k)`; `lengths` holds the number of real words of each sentence, `(batch,)`, integers from 0 to `length`;
# `w_query`, `w_key` and `w_score` are `(d_q, d_hidden)`, `(d_k, d_hidden)` and `(d_hidden,)`. The result is `(batch, d_k)`. Words
# come first, then padding, which may hold any finite numbers.
#
# Padding gets into the averages. Repair it: padding must have no weight, and a sentence **without any
# word** gets zeros.


# %% id="task-6-5" tags=["task"]
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    """Average the annotations of each sentence under its aligner: (batch, d_q), (batch, length, d_k), (batch,) -> (batch, d_k)."""
    ### BEGIN SOLUTION
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    scores = np.where(real, scores, -np.inf)
    highest = scores.max(axis=1, keepdims=True)
    unnormalised = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
    total = unnormalised.sum(axis=1, keepdims=True)
    weights = unnormalised / np.where(total == 0.0, 1.0, total)
    return np.einsum("bj,bja->ba", weights, annotations)
    ### END SOLUTION


# %% id="task-6-5-check" tags=["check"]
check("6.5", contexts)

# %% [markdown] id="task-6-5-why" tags=["solution-only"]
# **Why.** Times 0 gives a *score* of 0, and $e^0 = 1$ is a weight like any other; $-\infty$ gives $e^{-\infty} = 0$. With no
# word at all the row would be $-\infty - (-\infty)$ and then 0 / 0, so both places need a definition: zeros.

# %% [markdown] id="task-6-6-text"
# Run the cell below. It shows the weights of an aligner: rows are steps of the decoder, columns are places of the source, of which
# the last two are padding that was **not** masked. Write three numbers as `my_reading = (a, b, c)`:
#
# - `a`: at which row, counted from 0, does source word 0 get its largest weight?
# - `b`: how much weight goes to padding in the row "end"?
# - `c`: the same model, the same scores, but now padding is hidden before the softmax. What is the weight of word 1 in the
#   row "written 2"?
#
# Take the digits in the cells as exact; three correct digits are enough.

# %% id="task-6-6-figure"
from attn_course import figures
from attn_course.tasks import figure_data

figures.heatmap(**figure_data("6.6"))

# %% id="task-6-6" tags=["task"]
### BEGIN SOLUTION
my_reading = (1, 0.22 + 0.18, 0.45 / (0.15 + 0.45 + 0.15))
### END SOLUTION

# %% id="task-6-6-check" tags=["check"]
check("6.6", my_reading)

# %% [markdown] id="task-6-6-why" tags=["solution-only"]
# **Why.** Column "word 0" is largest in row 1 (0.55). Padding takes 0.40 of the last row. Hiding keys keeps the ratios of the
# others, so the weight is divided by the sum of the real ones: 0.45 / 0.75 = 0.6.

# %% [markdown] id="task-6-7-text"
# A training step: 64 sentences at a time, 30 target words, 50 source words, $d_h = 100$ hidden units, float32. How many megabytes
# (millions of bytes) does the hidden layer of the additive scores of all pairs take, stored once? Three correct digits are enough.

# %% id="task-6-7" tags=["task"]
### BEGIN SOLUTION
my_megabytes = 64 * 30 * 50 * 100 * 4 / 1e6
### END SOLUTION

# %% id="task-6-7-check" tags=["check"]
check("6.7", my_megabytes)

# %% [markdown] id="task-6-7-why" tags=["solution-only"]
# **Why.** A number for each sentence, pair and unit, Eq. (6.13): 9.6 million of them. The scores take a hundredth.

# %% [markdown] id="task-6-8-text"
# Write the backward pass of additive scores for one example:
# `my_additive_backward(query, key, w_query, w_key, w_score, d_scores)` takes `(q_len, d_q)`, `(kv_len, d_k)`,
# `(d_q, d_hidden)`, `(d_k, d_hidden)`, `(d_hidden,)` and the gradient of a loss with respect to the scores of Eq. (6.2),
# `(q_len, kv_len)`. It returns the tuple `(d_query, d_key, d_w_query, d_w_key, d_w_score)` of gradients, each of the shape of what
# it belongs to. There is no softmax in this task. No automatic differentiation, please.


# %% id="task-6-8" tags=["task"]
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    """Gradients (d_query, d_key, d_w_query, d_w_key, d_w_score) from d_scores (q_len, kv_len), Eq. (6.7)."""
    ### BEGIN SOLUTION
    hidden = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d_before = d_scores[..., None] * w_score * (1 - hidden**2)
    d_projected_query, d_projected_key = d_before.sum(axis=1), d_before.sum(axis=0)
    d_w_score = np.einsum("ij,ijr->r", d_scores, hidden)
    return (
        d_projected_query @ w_query.T,
        d_projected_key @ w_key.T,
        query.T @ d_projected_query,
        key.T @ d_projected_key,
        d_w_score,
    )
    ### END SOLUTION


# %% id="task-6-8-check" tags=["check"]
check("6.8", my_additive_backward)

# %% [markdown] id="task-6-8-why" tags=["solution-only"]
# **Why.** What was broadcast forwards is summed backwards: a projected query took part in all pairs of its row, a projected key in
# all pairs of its column, the score vector in all pairs. The factor $1 - t^2$ closes saturated units.
