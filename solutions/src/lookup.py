# %% [markdown] id="title"
# # Exercises {lesson}`lookup`: attention as lookup
#
# Ten tasks for the lesson [{lesson}`lookup` Attention as lookup](../notebooks/{lesson}`lookup`_lookup.ipynb): 22 points,
# about 91 minutes. Each stands on its own, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong, and names the mistake
# if it is a known one. Three hints fold out below each question. You may add cells, but leave the checks as they
# are. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not
# change its inputs. Rows are queries, columns are pairs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="similarities-to-weights-text"
# Write `my_weights(similarity)`: it takes a float64 array of shape `(T_out, T_in)`, the similarity of each query (row)
# with each key (column), and returns the weights of {eq}`normalised-similarities`, in the same shape. Similarities are never negative. A
# row
# may consist of zeros only: give it weights of 0, not NaN.


# %% id="similarities-to-weights" tags=["task"]
def my_weights(similarity):
    """(T_out, T_in) -> (T_out, T_in): rows in the ratios of the similarities that
    sum to 1, or rows of zeros."""
    ### BEGIN SOLUTION
    total = similarity.sum(axis=1, keepdims=True)
    return similarity / np.where(total == 0, 1, total)
    ### END SOLUTION


# %% id="similarities-to-weights-check" tags=["check"]
check("similarities-to-weights", my_weights)

# %% [markdown] id="similarities-to-weights-why" tags=["solution-only"]
# **Why.** Each row is a lookup of its own, so each has its own sum. Where the sum is 0, all numerators are 0, and any
# positive divisor gives the zeros that were asked for. (Without that line NumPy warns and returns NaN.)

# %% [markdown] id="kernel-regression-text"
# Write kernel regression: `my_regression(query, x, y, h)` takes float64 arrays: `query`, `(n,)`, where an estimate is
# wanted, and the points `x` and `y`, both `(m,)`, in any order; and a width `h > 0` (a float). It returns the estimates
# of {eq}`nadaraya-watson-regression`, `(n,)`, with the similarity $e^{-(q - x^{(i)})^2 / 2 h^2}$. All points take part, also one at which a
# query
# stands. No query is so far from all points that its similarities vanish.


# %% id="kernel-regression" tags=["task"]
def my_regression(query, x, y, h):
    """(n,), (m,), (m,), float -> (n,): Nadaraya-Watson, {eq}`nadaraya-watson-regression`."""
    ### BEGIN SOLUTION
    similarity = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))
    return similarity @ y / similarity.sum(axis=1)
    ### END SOLUTION


# %% id="kernel-regression-check" tags=["check"]
check("kernel-regression", my_regression)

# %% [markdown] id="kernel-regression-why" tags=["solution-only"]
# **Why.** A column of queries against a row of keys gives all distances at once, one row per query. Dividing the output
# by the row sum is the same as dividing the weights.

# %% [markdown] id="duplicated-pair-text"
# A query has three `similarities` with the keys of three pairs, and these have three `values`; the cell below prints yours. Now the
# *second* pair is noted a second time. What does attention answer, {eq}`duplicated-pair-counts-twice`? Work it out on paper, then
# write the number (three correct digits are enough; an expression is welcome).

# %% id="duplicated-pair" tags=["task"]
### BEGIN SOLUTION
sums = np.dot(similarities, values), sum(similarities)
my_answer = (sums[0] + similarities[1] * values[1]) / (sums[1] + similarities[1])
### END SOLUTION

# %% id="duplicated-pair-check" tags=["check"]
check("duplicated-pair", my_answer)

# %% [markdown] id="duplicated-pair-why" tags=["solution-only"]
# **Why.** Both sums get one more term: here 60 over 8 instead of 42 over 6. The answer moves from 7 to 7.5, towards the
# value 9, and the weight of the pair from 2/6 to 4/8: not doubled.

# %% [markdown] id="read-lookup-weights-text"
# Run the cell below. It shows a matrix $P$ of weights, rows and columns counted from 0. Write three numbers as
# `my_reading = (a, b, c)`:
#
# - `a`: how many outputs does $Z = P V$ have?
# - `b`: which pair has the largest weight if the weights of all queries are added up?
# - `c`: the values of pairs 3 and 4 are the number 1, all others 0. What is output 0?

# %% id="read-lookup-weights-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-lookup-weights"))

# %% id="read-lookup-weights" tags=["task"]
### BEGIN SOLUTION
my_reading = (3, 4, 0.8)
### END SOLUTION

# %% id="read-lookup-weights-check" tags=["check"]
check("read-lookup-weights", my_reading)

# %% [markdown] id="read-lookup-weights-why" tags=["solution-only"]
# **Why.** One output per query, so three. The columns add up to 0.40, 0.45, 0.45, 0.80 and 0.90: columns need not sum to 1.
# Output 0 is $0.60 \cdot 1 + 0.20 \cdot 1$.

# %% [markdown] id="repair-lookup-roles-text"
# In the function below, each of $T$ tokens asks all tokens, as the four people of the lesson do: row $i$ of the result is
# the average of the values with weights in the ratios of $e^{\beta\, q_i \cdot k_j}$, where the sum runs over the keys
# $j$. `x` has shape `(T, d)`, `w_query` and `w_key` `(d, d_k)`, `w_value` `(d, d_v)`, all float64; `beta` is a positive
# float, the result has shape `(T, d_v)`. The function raises no error and its shapes are right, but each token gets
# something else. Repair it; there is more than one way. (All scores are moderate, so that no exponential overflows. A
# library's softmax is welcome.)


# %% id="repair-lookup-roles" tags=["task"]
def ask_everybody(x, w_query, w_key, w_value, beta):
    """Each token asks with its query, and gets the values of the tokens whose keys
    fit."""
    ### BEGIN SOLUTION
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(query @ key.T) ** beta
    weights = similarity / similarity.sum(axis=1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="repair-lookup-roles-check" tags=["check"]
check("repair-lookup-roles", ask_everybody)

# %% [markdown] id="repair-lookup-roles-why" tags=["solution-only"]
# **Why.** In `key @ query.T`, row $i$ holds what all queries think of key $i$: the keys ask. And `axis=0` makes columns
# sum to 1. (The power `** beta` was right: $(e^s)^\beta = e^{\beta s}$.) Together the two form the transpose of the right
# weights, which is why the result looks so harmless, and why `weights.T @ value` repairs it as well.

# %% [markdown] id="hard-lookup-text"
# Write the limit $h \to 0^+$ of a soft lookup: `my_hard_lookup(query, key, value)` takes float64 arrays of shape `(n, d)`,
# `(m, d)` and `(m, d_v)` and returns `(n, d_v)`: for each query the value of the nearest key (Euclidean distance). If several
# keys are exactly equally near, the limit gives them equal weights, and so should you. Ties occur only where all coordinates
# are small whole numbers, so that squared distances are exact. Elsewhere two distances may differ by only a millionth, and the
# nearer key still takes everything.


# %% id="hard-lookup" tags=["task"]
def my_hard_lookup(query, key, value):
    """(n, d), (m, d), (m, d_v) -> (n, d_v): values of the nearest keys, averaged
    over ties."""
    ### BEGIN SOLUTION
    distance = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    nearest = distance == distance.min(axis=1, keepdims=True)
    return nearest @ value / nearest.sum(axis=1, keepdims=True)
    ### END SOLUTION


# %% id="hard-lookup-check" tags=["check"]
check("hard-lookup", my_hard_lookup)

# %% [markdown] id="hard-lookup-why" tags=["solution-only"]
# **Why.** The ratio of two similarities tends to 0 or infinity if the distances differ, and is 1 at *every* $h$ if they do
# not. {eq}`bandwidth-limits` assumed one nearest key; with $n$ of them each gets $1/n$. `argmin` takes the first instead.

# %% [markdown] id="derivative-by-similarity-text"
# Two pairs have the similarities $s_1, s_2 > 0$ with a query, and values that are plain numbers, $v_1$ and $v_2$. The answer is
# $z = (s_1 v_1 + s_2 v_2) / (s_1 + s_2)$. Derive $\dfrac{\partial z}{\partial s_1}$ and write it with the symbols `s_1`, `s_2`,
# `v_1` and `v_2`. Sums, products and powers of them are all you need.

# %% id="derivative-by-similarity" tags=["task"]
### BEGIN SOLUTION
my_gain = s_2 * (v_1 - v_2) / (s_1 + s_2) ** 2
### END SOLUTION

# %% id="derivative-by-similarity-check" tags=["check"]
check("derivative-by-similarity", my_gain)

# %% [markdown] id="derivative-by-similarity-why" tags=["solution-only"]
# **Why.** It equals $(v_1 - z) / (s_1 + s_2)$: a value above the present answer pulls it up when its pair becomes more
# similar, one below pulls it down. If the first pair has all the weight ($s_2 = 0$), nothing moves any more.

# %% [markdown] id="feature-mixing-matrix-text"
# Linear attention (no exponential, no normalisation) has the output $Z = Q K^\top V$ with $Q = X W_Q$, $K = X W_K$ and
# $V = X W_V$. Write `my_feature_weights(x, w_query, w_key, w_value)`, which returns the matrix $W(X)$ for which
# $Z = X\, W(X)$ holds for every $X$, {eq}`linear-attention-two-readings`. `x` has shape `(m, v)`, `w_query` and `w_key` `(v, d_k)`,
# `w_value` `(v, d_v)`,
# all float64; the result has shape `(v, d_v)`. (Do not solve for it: with fewer positions than features there are other
# solutions.)


# %% id="feature-mixing-matrix" tags=["task"]
def my_feature_weights(x, w_query, w_key, w_value):
    """(m, v), (v, d_k), (v, d_k), (v, d_v) -> (v, d_v): the matrix that mixes
    features, {eq}`linear-attention-two-readings`."""
    ### BEGIN SOLUTION
    return w_query @ w_key.T @ x.T @ x @ w_value
    ### END SOLUTION


# %% id="feature-mixing-matrix-check" tags=["check"]
check("feature-mixing-matrix", my_feature_weights)

# %% [markdown] id="feature-mixing-matrix-why" tags=["solution-only"]
# **Why.** $(X W_Q)(X W_K)^\top X W_V = X \cdot (W_Q W_K^\top X^\top X W_V)$. The middle, $X^\top X$, is a sum over positions: the
# context enters as a matrix whose size does not depend on its length. Lesson {lesson}`linear` lives on that.

# %% [markdown] id="leave-one-out-error-text"
# Let $z_i = \sum_j p_{ij}\, y_j$ be the kernel regression {eq}`nadaraya-watson-regression` at $x^{(i)}$, from all $m$ points,
# and $\hat z_i$ that from all *but* point $i$. The lesson compared widths by the errors
#
# $$r_i = \hat z_i - y_i$$
#
# Write $r_i$ as a formula in LaTeX, only the right side, without another regression. Any form that is equal counts. To see
# how it is read, `from attn_course import read` and call `read("leave-one-out-error", my_error)`; what cannot be read is no
# attempt.

# %% id="leave-one-out-error" tags=["task"]
### BEGIN SOLUTION
my_error = r"\frac{z_i - y_i}{1 - p_{ii}}"
### END SOLUTION

# %% id="leave-one-out-error-check" tags=["check"]
check("leave-one-out-error", my_error)

# %% [markdown] id="leave-one-out-error-why" tags=["solution-only"]
# **Why.** Without point $i$, the sum $z_i - p_{ii}\, y_i$ remains, with weights that sum to $1 - p_{ii}$. Divided by that it is
# an average again: $\hat z_i = (z_i - p_{ii}\, y_i) / (1 - p_{ii})$. Subtract $y_i$, and the terms with $p_{ii}$ cancel. So one
# regression tells all $m$ errors: the more weight a point has in its own estimate, the more its plain error flatters.

# %% [markdown] id="answer-slope-by-query-text"
# A query $q$ asks $m$ pairs with the similarity $s_i = e^{-\|q - k_i\|^2 / 2 h^2}$. Its weights are $\alpha_i = s_i / \sum_j s_j$,
# and its answer is $z = \sum_i \alpha_i v_i$, {eq}`soft-lookup`. When the query moves, how does the answer follow? Write a
# formula in LaTeX for
#
# $$G_{ab} = \frac{\partial z_a}{\partial q_b}$$
#
# as it holds for all $a$ and $b$, the right side only. Entry $b$ of key $i$ is `k_{ib}`, entry $a$ of value $i$ is `v_{ia}`.

# %% id="answer-slope-by-query" tags=["task"]
### BEGIN SOLUTION
my_slope = r"\frac{1}{h^2} \sum_i \alpha_i (v_{ia} - z_a)(k_{ib} - q_b)"
### END SOLUTION

# %% id="answer-slope-by-query-check" tags=["check"]
check("answer-slope-by-query", my_slope)

# %% [markdown] id="answer-slope-by-query-why" tags=["solution-only"]
# **Why.** The derivative of $s_i$ by $q_b$ is $s_i\,(k_{ib} - q_b) / h^2$. With $z_a = \sum_i s_i v_{ia} / \sum_i s_i$ the
# quotient rule gives $\sum_i \alpha_i v_{ia} (k_{ib} - q_b) / h^2 - z_a \sum_i \alpha_i (k_{ib} - q_b) / h^2$, and the two
# sums are one. Since $\sum_i \alpha_i (v_{ia} - z_a) = 0$, any number may stand in the place of $q_b$, the mean key too: the slope
# is the **covariance** of values and keys under the weights, divided by $h^2$.
