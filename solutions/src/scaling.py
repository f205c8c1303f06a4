# %% [markdown] id="title"
# # Exercises {lesson}`scaling`: similarity and variance scaling
#
# Seven tasks to the lesson [{lesson}`scaling` Similarity and variance scaling](../notebooks/{lesson}`scaling`_scaling.ipynb): 13 points,
# about 55
# minutes. Each stands for itself.
#
# Write your answer into the cell that says `YOUR CODE HERE`, or behind the `=` sign, run it, then run the check below it. Answers
# are NumPy arrays or torch tensors, computed in float32 or float64 and returned in that type. A function must not
# change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

# %% [markdown] id="scaled-scores-text"
# Write `my_scaled_scores(query, key)`: `query` has shape `(..., q_len, d_k)`, `key` `(..., kv_len, d_k)`, with the same leading
# axes (there may be none), both float64. Return the dot product of each query with each key, divided by the square root of
# $d_k$, of shape `(..., q_len, kv_len)`.


# %% id="scaled-scores" tags=["task"]
def my_scaled_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> scores (..., q_len, kv_len), {eq}`scaled-score-variance`."""
    ### BEGIN SOLUTION
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    ### END SOLUTION


# %% id="scaled-scores-check" tags=["check"]
check("scaled-scores", my_scaled_scores)

# %% [markdown] id="scaled-scores-why" tags=["solution-only"]
# **Why.** A score sums $d_k$ products, so its variance is $d_k$ whatever the lengths of the two sequences are.

# %% [markdown] id="score-variance-by-hand-text"
# Entries of $q$ are independent with mean 0 and standard deviation 2, those of $k$ the same with 3, and $q$ is independent of $k$.
# With $d_k = 50$, what is the variance of $q \cdot k / \sqrt{d_k}$? Write the number.

# %% id="score-variance-by-hand" tags=["task"]
### BEGIN SOLUTION
my_variance = 2**2 * 3**2
### END SOLUTION

# %% id="score-variance-by-hand-check" tags=["check"]
check("score-variance-by-hand", my_variance)

# %% [markdown] id="score-variance-by-hand-why" tags=["solution-only"]
# **Why.** {eq}`score-variance-from-deviations` gives $50 \cdot 4 \cdot 9$, and the factor $1 / \sqrt{50}$ divides a variance by 50.

# %% [markdown] id="uncentred-score-variance-text"
# Entries of $q$ are independent, each with mean $m_q$ and **variance** $v_q$; those of $k$ are independent of them and of each
# other, with mean $m_k$ and variance $v_k$. Write $\mathrm{Var}[q \cdot k]$ with the symbols `d_k`, `m_q`, `m_k`, `v_q` and `v_k`.

# %% id="uncentred-score-variance" tags=["task"]
### BEGIN SOLUTION
my_expression = d_k * (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q)
### END SOLUTION

# %% id="uncentred-score-variance-check" tags=["check"]
check("uncentred-score-variance", my_expression)

# %% [markdown] id="uncentred-score-variance-why" tags=["solution-only"]
# **Why.** In {eq}`score-variance-from-covariances`, $S_q = v_q I$ and $S_k = v_k I$; the trace counts $d_k$ entries, and $m_q^\top m_q =
# d_k\, m_q^2$.

# %% [markdown] id="cosine-scores-text"
# Write `my_cosine_scores(query, key)` for float64 arrays of shapes `(..., q_len, d_k)` and `(..., kv_len, d_k)`, with the same leading
# axes: the cosine of the angle between each query and each key, of shape `(..., q_len, kv_len)`. A query or a key may be all zeros:
# its cosines are 0, not NaN. Add no small number to the lengths, which may be tiny: it would bend the cosines. No library function for
# cosine similarity, please.


# %% id="cosine-scores" tags=["task"]
def my_cosine_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> cosines (..., q_len, kv_len), {eq}`cosine-similarity`."""
    ### BEGIN SOLUTION
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.where(lengths == 0, 1.0, lengths)
    ### END SOLUTION


# %% id="cosine-scores-check" tags=["check"]
check("cosine-scores", my_cosine_scores)

# %% [markdown] id="cosine-scores-why" tags=["solution-only"]
# **Why.** One length for each row; where the product of two lengths is 0 the dot product is 0 as well, so any other divisor will do.

# %% [markdown] id="repair-head-weights-text"
# The function below should return the weights of several heads that share a model of $d_{\text{model}} = h\, d_k$ features: `query` has
# shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, and each query's weights over the keys come from scores of
# variance 1 (for independent entries of mean 0 and variance 1, {eq}`scaled-score-variance`). It is wrong in three places. Repair it. Scores
# may lie
# anywhere between -1000 and 1000, also within one row. No library softmax, please.


# %% id="repair-head-weights" tags=["task"]
def head_weights(query, key):
    """query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> weights (n_heads, q_len, kv_len)."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="repair-head-weights-check" tags=["check"]
check("repair-head-weights", head_weights)

# %% [markdown] id="repair-head-weights-why" tags=["solution-only"]
# **Why.** Each score sums $d_k$ products, so the scale is $\sqrt{d_k}$; it belongs before the softmax; and the sum runs over keys.

# %% [markdown] id="read-score-densities-text"
# The figure shows the densities of $q \cdot k / \sqrt{d_k}$ for standard normal entries with $d_k$ = 1, 4 and 64, named A, B, C. Run the
# cell, decide which is which, and write the three values of $d_k$ in the order A, B, C.

# %% id="read-score-densities-figure"
from attn_course.lessons.scaling import figures
from attn_course.tasks import figure_data

figures.towards_normal(**figure_data("read-score-densities"))

# %% id="read-score-densities" tags=["task"]
### BEGIN SOLUTION
my_widths = (4, 64, 1)
### END SOLUTION

# %% id="read-score-densities-check" tags=["check"]
check("read-score-densities", my_widths)

# %% [markdown] id="read-score-densities-why" tags=["solution-only"]
# **Why.** By {eq}`kurtosis-with-normal-entries` the kurtosis is 9 for C, 4.5 for A, and 3.1 for B, which lies on the normal curve.

# %% [markdown] id="reparametrised-step-size-text"
# A layer divides its scores by $d_k$ (not by the root) and is trained by gradient descent with step size `eta`. You drop the divisor
# and start from $W' = W_Q / d_k$ instead, so that the scores are the same. Which step size must $W'$ get so that the scores stay
# the same in training? Write it with `eta` and `d_k`.

# %% id="reparametrised-step-size" tags=["task"]
### BEGIN SOLUTION
my_step = eta / d_k**2
### END SOLUTION

# %% id="reparametrised-step-size-check" tags=["check"]
check("reparametrised-step-size", my_step)

# %% [markdown] id="reparametrised-step-size-why" tags=["solution-only"]
# **Why.** {eq}`scale-as-reparametrisation` with $c = 1 / d_k$: the step is $c^2 \eta$.
