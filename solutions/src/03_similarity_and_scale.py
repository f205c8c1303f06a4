# %% [markdown] id="title"
# # Exercises 03: similarity and variance scaling
#
# Seven tasks to the lesson [03 Similarity and variance scaling](../notebooks/03_similarity_and_scale.ipynb): 13 points, about 55
# minutes. Each stands for itself.
#
# Write your answer into the cell that says `YOUR CODE HERE`, or behind the `=` sign, run it, then run the check below it. Answers
# are NumPy arrays or torch tensors, computed in float32 or float64 and returned in that type. A function must not
# change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

# %% [markdown] id="task-3-1-text"
# Write `my_scaled_scores(query, key)`: `query` has shape `(..., q_len, d_k)`, `key` `(..., kv_len, d_k)`, with the same leading
# axes (there may be none), both float64. Return the dot product of each query with each key, divided by the square root of
# $d_k$, of shape `(..., q_len, kv_len)`.


# %% id="task-3-1" tags=["task"]
def my_scaled_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> scores (..., q_len, kv_len), Eq. (3.12)."""
    ### BEGIN SOLUTION
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    ### END SOLUTION


# %% id="task-3-1-check" tags=["check"]
check("3.1", my_scaled_scores)

# %% [markdown] id="task-3-1-why" tags=["solution-only"]
# **Why.** A score sums $d_k$ products, so its variance is $d_k$ whatever the lengths of the two sequences are.

# %% [markdown] id="task-3-2-text"
# Entries of $q$ are independent with mean 0 and standard deviation 2, those of $k$ the same with 3, and $q$ is independent of $k$.
# With $d_k = 50$, what is the variance of $q \cdot k / \sqrt{d_k}$? Write the number.

# %% id="task-3-2" tags=["task"]
### BEGIN SOLUTION
my_variance = 2**2 * 3**2
### END SOLUTION

# %% id="task-3-2-check" tags=["check"]
check("3.2", my_variance)

# %% [markdown] id="task-3-2-why" tags=["solution-only"]
# **Why.** Eq. (3.11) gives $50 \cdot 4 \cdot 9$, and the factor $1 / \sqrt{50}$ divides a variance by 50.

# %% [markdown] id="task-3-3-text"
# Entries of $q$ are independent, each with mean $m_q$ and **variance** $v_q$; those of $k$ are independent of them and of each
# other, with mean $m_k$ and variance $v_k$. Write $\mathrm{Var}[q \cdot k]$ with the symbols `d_k`, `m_q`, `m_k`, `v_q` and `v_k`.

# %% id="task-3-3" tags=["task"]
### BEGIN SOLUTION
my_expression = d_k * (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q)
### END SOLUTION

# %% id="task-3-3-check" tags=["check"]
check("3.3", my_expression)

# %% [markdown] id="task-3-3-why" tags=["solution-only"]
# **Why.** In Eq. (3.9), $S_q = v_q I$ and $S_k = v_k I$; the trace counts $d_k$ entries, and $m_q^\top m_q = d_k\, m_q^2$.

# %% [markdown] id="task-3-4-text"
# Write `my_cosine_scores(query, key)` for float64 arrays of shapes `(..., q_len, d_k)` and `(..., kv_len, d_k)`, with the same leading
# axes: the cosine of the angle between each query and each key, of shape `(..., q_len, kv_len)`. A query or a key may be all zeros:
# its cosines are 0, not NaN. Add no small number to the lengths, which may be tiny: it would bend the cosines. No library function for
# cosine similarity, please.


# %% id="task-3-4" tags=["task"]
def my_cosine_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> cosines (..., q_len, kv_len), Eq. (3.2)."""
    ### BEGIN SOLUTION
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.where(lengths == 0, 1.0, lengths)
    ### END SOLUTION


# %% id="task-3-4-check" tags=["check"]
check("3.4", my_cosine_scores)

# %% [markdown] id="task-3-4-why" tags=["solution-only"]
# **Why.** One length for each row; where the product of two lengths is 0 the dot product is 0 as well, so any other divisor will do.

# %% [markdown] id="task-3-5-text"
# The function below should return the weights of several heads that share a model of $d_{\text{model}} = h\, d_k$ features: `query` has
# shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, and each query's weights over the keys come from scores of
# variance 1 (for independent entries of mean 0 and variance 1, Eq. (3.12)). It is wrong in three places. Repair it. Scores may lie
# anywhere between -1000 and 1000, also within one row. No library softmax, please.


# %% id="task-3-5" tags=["task"]
def head_weights(query, key):
    """query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> weights (n_heads, q_len, kv_len)."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    ### END SOLUTION


# %% id="task-3-5-check" tags=["check"]
check("3.5", head_weights)

# %% [markdown] id="task-3-5-why" tags=["solution-only"]
# **Why.** Each score sums $d_k$ products, so the scale is $\sqrt{d_k}$; it belongs before the softmax; and the sum runs over keys.

# %% [markdown] id="task-3-6-text"
# The figure shows the densities of $q \cdot k / \sqrt{d_k}$ for standard normal entries with $d_k$ = 1, 4 and 64, named A, B, C. Run the
# cell, decide which is which, and write the three values of $d_k$ in the order A, B, C.

# %% id="task-3-6-figure"
from attn_course import figures
from attn_course.tasks import figure_data

figures.towards_normal(**figure_data("3.6"))

# %% id="task-3-6" tags=["task"]
### BEGIN SOLUTION
my_widths = (4, 64, 1)
### END SOLUTION

# %% id="task-3-6-check" tags=["check"]
check("3.6", my_widths)

# %% [markdown] id="task-3-6-why" tags=["solution-only"]
# **Why.** By Eq. (3.19) the kurtosis is 9 for C, 4.5 for A, and 3.1 for B, which lies on the normal curve.

# %% [markdown] id="task-3-7-text"
# A layer divides its scores by $d_k$ (not by the root) and is trained by gradient descent with step size `eta`. You drop the divisor
# and start from $W' = W_Q / d_k$ instead, so that the scores are the same. Which step size must $W'$ get so that the scores stay
# the same in training? Write it with `eta` and `d_k`.

# %% id="task-3-7" tags=["task"]
### BEGIN SOLUTION
my_step = eta / d_k**2
### END SOLUTION

# %% id="task-3-7-check" tags=["check"]
check("3.7", my_step)

# %% [markdown] id="task-3-7-why" tags=["solution-only"]
# **Why.** Eq. (3.24) with $c = 1 / d_k$: the step is $c^2 \eta$.
