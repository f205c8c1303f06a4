# %% [markdown] id="title"
# # Exercises {lesson}`additive`: additive attention
#
# Eleven tasks to [{lesson}`additive` Additive attention](../notebooks/{lesson}`additive`_additive.ipynb): 24 points,
# about 102 minutes. Each stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong, and names the mistake
# if it is a known one. Three hints fold out below each question. You may add cells, but leave the checks as they
# are. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs. Rows are
# positions. `w_query`, `w_key` and `w_score` are $W_Q$, $W_K$ and $v$ of the lesson.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="additive-attention-text"
# Write additive attention: `my_additive_attention(query, key, value, w_query, w_key, w_score)` takes float64 arrays of
# shape `(..., q_len, d_q)`, `(..., kv_len, d_k)`, `(..., kv_len, d_v)`, `(d_q, d_hidden)`, `(d_k, d_hidden)` and
# `(d_hidden,)`, and returns the outputs, `(..., q_len, d_v)`: scores of {eq}`additive-score`, without bias and scale, a softmax over the
# keys, an average of the values.
#
# The first three have the same leading axes: none, one or several. Scores may lie near 1000 for one query
# and near -1000 for another, so the softmax must be stable; a library softmax is welcome.


# %% id="additive-attention" tags=["task"]
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    """(..., q_len, d_q), (..., kv_len, d_k), (..., kv_len, d_v) and weights ->
    (..., q_len, d_v), {eq}`additive-score`."""
    ### BEGIN SOLUTION
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    scores = hidden @ w_score
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    ### END SOLUTION


# %% id="additive-attention-check" tags=["check"]
check("additive-attention", my_additive_attention)

# %% [markdown] id="additive-attention-why" tags=["solution-only"]
# **Why.** Each vector is projected once; the axis of length 1 lets the sum broadcast to all pairs. tanh comes after the
# sum, `w_score` after tanh. Any other order lets the query cancel or leaves more than one number per pair.

# %% [markdown] id="largest-additive-weight-text"
# There are a score vector $v$ and $n$ keys; the cell below prints yours as `score_vector` and `n`. Which number is the largest weight that a key can get, by the
# bound of {eq}`additive-weight-bound`? Three correct digits are enough; an expression with `np.exp` is welcome.

# %% id="largest-additive-weight" tags=["task"]
### BEGIN SOLUTION
my_ceiling = 1 / (1 + (n - 1) * np.exp(-2 * np.abs(score_vector).sum()))
### END SOLUTION

# %% id="largest-additive-weight-check" tags=["check"]
check("largest-additive-weight", my_ceiling)

# %% [markdown] id="largest-additive-weight-why" tags=["solution-only"]
# **Why.** Here $\|v\|_1 = 2.5$: the best score is at most 2.5, the others at least $-2.5$, and 31 keys share what is left.

# %% [markdown] id="query-key-interaction-text"
# One hidden unit, and a query $q$ and a key $k$ that are numbers: $e = v \tanh(a q + b k + c)$. Write $t$ for the tanh. Derive
# $\dfrac{\partial^2 e}{\partial q\, \partial k}$, which says how much a key changes the way the query acts, and write it with the
# symbols `v`, `t`, `a` and `b`. Sums, products and powers of them are all you need.

# %% id="query-key-interaction" tags=["task"]
### BEGIN SOLUTION
my_interaction = -2 * v * t * (1 - t**2) * a * b
### END SOLUTION

# %% id="query-key-interaction-check" tags=["check"]
check("query-key-interaction", my_interaction)

# %% [markdown] id="query-key-interaction-why" tags=["solution-only"]
# **Why.** $\partial e / \partial q = v\,(1 - t^2)\,a$, and $t$ changes with $k$ at the rate $(1 - t^2)\,b$. At $t = 0$ nothing is
# left: a unit that is not bent yet only adds. A bias $c$ moves it away from there.

# %% [markdown] id="concatenated-scores-text"
# Some papers write the score as $v^\top \tanh(W\,[q; k] + b)$, with the pair glued together, query first:
# $W$ is `weight`, $b$ is `bias`, $v$ is `w_score`; the softmax is not part of this task. Write
# `my_concat_scores(query, key, weight, bias, w_score)` for float64 arrays of shape `(q_len, d_q)`, `(kv_len, d_k)`,
# `(d_hidden, d_q + d_k)` (as `torch.nn.Linear` stores its weight), `(d_hidden,)` and `(d_hidden,)`. It returns the scores of all
# pairs, `(q_len, kv_len)`: rows are queries.


# %% id="concatenated-scores" tags=["task"]
def my_concat_scores(query, key, weight, bias, w_score):
    """(q_len, d_q), (kv_len, d_k), (d_hidden, d_q + d_k), (d_hidden,), (d_hidden,)
    -> (q_len, kv_len).

    {eq}`concatenation-adds-projections`.
    """
    ### BEGIN SOLUTION
    d_q = query.shape[1]
    by_query = query @ weight[:, :d_q].T
    by_key = key @ weight[:, d_q:].T
    return np.tanh(by_query[:, None] + by_key[None] + bias) @ w_score
    ### END SOLUTION


# %% id="concatenated-scores-check" tags=["check"]
check("concatenated-scores", my_concat_scores)

# %% [markdown] id="concatenated-scores-why" tags=["solution-only"]
# **Why.** The first $d_q$ columns of $W$ meet the query, the rest the key: the concatenation is the sum of two projections.
# Written so, each vector is projected once; gluing all pairs first would project each query $T_k$ times.

# %% [markdown] id="repair-aligner-padding-text"
# The function below should compute the context of each sentence of a batch, {eq}`additive-attention`: `state` is `(batch, d_q)`,
# `annotations`
# `(batch, length, d_k)`; `lengths` holds the number of real words of each sentence, `(batch,)`, integers from 0 to `length`;
# `w_query`, `w_key` and `w_score` are `(d_q, d_hidden)`, `(d_k, d_hidden)` and `(d_hidden,)`. The result is `(batch, d_k)`. Words
# come first, then padding, which may hold any finite numbers. Scores are moderate.
#
# Padding gets into the averages. Repair it: padding must have no weight, and a sentence **without any
# word** gets zeros.


# %% id="repair-aligner-padding" tags=["task"]
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    """Average the annotations of each sentence under its aligner: (batch, d_q),
    (batch, length, d_k), (batch,) -> (batch, d_k)."""
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


# %% id="repair-aligner-padding-check" tags=["check"]
check("repair-aligner-padding", contexts)

# %% [markdown] id="repair-aligner-padding-why" tags=["solution-only"]
# **Why.** Times 0 gives a *score* of 0, and $e^0 = 1$ is a weight like any other; $-\infty$ gives $e^{-\infty} = 0$. With no
# word at all the row would be $-\infty - (-\infty)$ and then 0 / 0, so both places need a definition: zeros.

# %% [markdown] id="read-padded-alignment-text"
# Run the cell below. It shows the weights of an aligner: rows are steps of the decoder, columns are places of the source, of which
# the last two are padding that was **not** masked. Write three numbers as `my_reading = (a, b, c)`:
#
# - `a`: at which row, counted from 0, does source word 0 get its largest weight?
# - `b`: how much weight goes to padding in the row "end"?
# - `c`: the same model, the same scores, but now padding is hidden before the softmax. What is the weight of word 1 in the
#   row "written 2"?
#
# Take the digits in the cells as exact; three correct digits are enough.

# %% id="read-padded-alignment-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-padded-alignment"))

# %% id="read-padded-alignment" tags=["task"]
### BEGIN SOLUTION
my_reading = (1, 0.22 + 0.18, 0.45 / (0.15 + 0.45 + 0.15))
### END SOLUTION

# %% id="read-padded-alignment-check" tags=["check"]
check("read-padded-alignment", my_reading)

# %% [markdown] id="read-padded-alignment-why" tags=["solution-only"]
# **Why.** Column "word 0" is largest in row 1 (0.55). Padding takes 0.40 of the last row. Hiding keys keeps the ratios of the
# others, so the weight is divided by the sum of the real ones: 0.45 / 0.75 = 0.6.

# %% [markdown] id="additive-training-memory-text"
# A training step: $B$ sentences at a time, $T_q$ target words, $T_k$ source words, $d_h$ hidden units, float32; the cell below prints your
# numbers. How many megabytes (millions of bytes) does the hidden layer of the additive scores of all pairs take, stored once? Three
# correct digits are enough.

# %% id="additive-training-memory" tags=["task"]
### BEGIN SOLUTION
my_megabytes = B * T_q * T_k * d_h * 4 / 1e6
### END SOLUTION

# %% id="additive-training-memory-check" tags=["check"]
check("additive-training-memory", my_megabytes)

# %% [markdown] id="additive-training-memory-why" tags=["solution-only"]
# **Why.** A number for each sentence, pair and unit, {eq}`additive-memory-overhead`: here 9.6 million of them. The scores take a hundredth.

# %% [markdown] id="additive-backward-text"
# Write the backward pass of additive scores for one example:
# `my_additive_backward(query, key, w_query, w_key, w_score, d_scores)` takes `(q_len, d_q)`, `(kv_len, d_k)`,
# `(d_q, d_hidden)`, `(d_k, d_hidden)`, `(d_hidden,)` and the gradient of a loss with respect to the scores of {eq}`additive-score`,
# `(q_len, kv_len)`. It returns the tuple `(d_query, d_key, d_w_query, d_w_key, d_w_score)` of gradients, each of the shape of what
# it belongs to. There is no softmax in this task.


# %% id="additive-backward" tags=["task"]
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    """Gradients (d_query, d_key, d_w_query, d_w_key, d_w_score) from d_scores
    (q_len, kv_len), {eq}`additive-derivative-by-query`."""
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


# %% id="additive-backward-check" tags=["check"]
check("additive-backward", my_additive_backward)

# %% [markdown] id="additive-backward-why" tags=["solution-only"]
# **Why.** What was broadcast forwards is summed backwards: a projected query took part in all pairs of its row, a projected key in
# all pairs of its column, the score vector in all pairs. The factor $1 - t^2$ closes saturated units.

# %% [markdown] id="answers-in-latex"
# ## Answers in LaTeX
# The last three answers are LaTeX, between `r"` and `"`: the right side of a formula. Any form counts that has the right value
# in every case. To see how yours is understood, `from attn_course import read` and call
# `read("gradient-of-query-projection", my_entry_gradient)`; what cannot be read is no attempt. A sum ends at the next plus or minus,
# so put parentheses around several terms, `\sum_r (a_r + b_r)`; a transpose is written `^\top`.

# %% [markdown] id="gradient-of-query-projection-text"
# One query and one key: $e = v^\top \tanh(W_Q^\top q + W_K^\top k)$, with columns $q$, $k$ and $v$, {eq}`additive-score`. Write a formula
# in LaTeX for
#
# $$G_{ar} = \frac{\partial e}{\partial (W_Q)_{ar}}$$
#
# as it holds for every row $a$ and every column $r$ of $W_Q$. Entry $r$ of a column in parentheses is `(...)_r`; the same goes for
# `\tanh(...)_r`.

# %% id="gradient-of-query-projection" tags=["task"]
### BEGIN SOLUTION
my_entry_gradient = r"q_a v_r \left( 1 - \tanh(W_Q^\top q + W_K^\top k)_r^2 \right)"
### END SOLUTION

# %% id="gradient-of-query-projection-check" tags=["check"]
check("gradient-of-query-projection", my_entry_gradient)

# %% [markdown] id="gradient-of-query-projection-why" tags=["solution-only"]
# **Why.** The entry $(W_Q)_{ar}$ stands in unit $r$ alone, multiplied by $q_a$. So of the sum over the units one term is left, $v_r$ times
# the slope $1 - t_r^2$ times $q_a$: the same slope as in {eq}`additive-derivative-by-query`. A saturated unit teaches its column nothing.

# %% [markdown] id="saturated-additive-score-text"
# Let both vectors grow: the score of $c\,q$ and $c\,k$, by {eq}`additive-score` with the columns $q$, $k$ and $v$ and without a bias,
# tends to a limit for $c \to \infty$. Write a formula in LaTeX for
#
# $$L = \lim_{c \to \infty} e(c\,q, c\,k)$$
#
# where no entry of $W_Q^\top q + W_K^\top k$ is 0. Bars, `|x|`, are an absolute value; a condition in brackets, `[x > 0]`, is 1 if
# true, else 0.

# %% id="saturated-additive-score" tags=["task"]
### BEGIN SOLUTION
my_limit = r"\sum_r v_r \frac{(W_Q^\top q + W_K^\top k)_r}{|(W_Q^\top q + W_K^\top k)_r|}"
### END SOLUTION

# %% id="saturated-additive-score-check" tags=["check"]
check("saturated-additive-score", my_limit)

# %% [markdown] id="saturated-additive-score-why" tags=["solution-only"]
# **Why.** Unit $r$ is $\tanh(c\,x_r)$ with $x = W_Q^\top q + W_K^\top k$, and tends to the sign of $x_r$. Far away the score only says on
# which side of each unit the pair lies. The limit stays within the bound of {eq}`additive-score-bound`, and attains it if all signs agree
# with those of $v$.

# %% [markdown] id="query-moves-weight-text"
# A query $q$ weighs $n$ keys by additive attention: $\alpha_j$ is the weight of key $j$, and $t_{jr}$ the value of hidden unit $r$ for it,
# entry $r$ of $\tanh(W_Q^\top q + W_K^\top k_j)$. Write a formula in LaTeX for
#
# $$D_{ja} = \frac{\partial \alpha_j}{\partial q_a}$$
#
# as it holds for every key $j$ and every entry $a$ of the query, with these weights, these units, $W_Q$ and the score vector $v$.

# %% id="query-moves-weight" tags=["task"]
### BEGIN SOLUTION
my_weight_gradient = (
    r"\alpha_j \sum_r (W_Q)_{ar} v_r"
    r" \left( \sum_l \alpha_l t_{lr}^2 - t_{jr}^2 \right)"
)
### END SOLUTION

# %% id="query-moves-weight-check" tags=["check"]
check("query-moves-weight", my_weight_gradient)

# %% [markdown] id="query-moves-weight-why" tags=["solution-only"]
# **Why.** By {eq}`softmax-derivative` the weight changes by $\alpha_j (g_j - \sum_l \alpha_l g_l)$, where $g_j$ is the derivative of
# score $j$, {eq}`additive-derivative-by-query`. The 1 of the slope $1 - t_{jr}^2$ is the same for all keys and cancels. So the query acts through
# *differences* of $t^2$: they are tiny where all units are small, and nothing is left of them where all are saturated.
