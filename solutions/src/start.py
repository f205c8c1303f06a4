# %% [markdown] id="title"
# # Exercises {lesson}`start`: start here
#
# Five small tasks for the lesson [{lesson}`start` Start here](../notebooks/{lesson}`start`_start.ipynb): 7 points, about 24 minutes. They
# train scores, shapes, the axis of a softmax, and how to do a task. Each stands on its own.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), because a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong. Three hints below each
# question open with a click. You may add cells, but leave the check cells as they are. In a terminal, `attn-course
# check` runs the whole notebook afresh.
#
# Answers are NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not
# change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one: numbers that your tasks print depend on it

# %% [markdown] id="scores-from-words-text"
# Rows are positions. Write `my_scores(x, w_query, w_key)`: for words `x` of shape `(T, d_model)` and two matrices of shape
# `(d_model, d_k)`, all float64, it makes the queries with `w_query` and the keys with `w_key`, and returns the table of shape
# `(T, T)` whose row $i$, column $j$ holds the dot product of query $i$ with key $j$. No scale, and no softmax.


# %% id="scores-from-words" tags=["task"]
def my_scores(x, w_query, w_key):
    """x (T, d_model), w_query and w_key (d_model, d_k) -> (T, T): {eq}`score-entry-by-entry` for all pairs."""
    ### BEGIN SOLUTION
    return (x @ w_query) @ (x @ w_key).T
    ### END SOLUTION


# %% id="scores-from-words-check" tags=["check"]
check("scores-from-words", my_scores)

# %% [markdown] id="scores-from-words-why" tags=["solution-only"]
# **Why.** A word is a row, so its matrix stands on the right. Row $i$ of the left factor meets column $j$ of the right one, and column
# $j$ of $K^\top$ is row $j$ of $K$. The word that asks stands on the left, so its number is the row. The two matrices may also meet
# first, `x @ (w_query @ w_key.T) @ x.T`: lesson {lesson}`absorption` lives on that.

# %% [markdown] id="shapes-in-columns-text"
# A text writes "the output is $V\,\mathrm{softmax}(K^\top Q)$", with **columns as positions**. There are $T_q$ queries and $T_k$
# keys; queries and keys have $d_k$ features, values have $d_v$; the cell below prints your numbers. What are the shapes of $K^\top Q$ and of the output? Write four
# numbers in one tuple, `my_shapes = (a, b, c, d)`: rows `a` and columns `b` of $K^\top Q$, then rows `c` and columns `d` of the
# output.

# %% id="shapes-in-columns" tags=["task"]
### BEGIN SOLUTION
my_shapes = (T_k, T_q, d_v, T_q)
### END SOLUTION

# %% id="shapes-in-columns-check" tags=["check"]
check("shapes-in-columns", my_shapes)

# %% [markdown] id="shapes-in-columns-why" tags=["solution-only"]
# **Why.** $K^\top Q$ is $(T_k \times d_k)(d_k \times T_q)$, and $V$ times the weights is $(d_v \times T_k)(T_k \times T_q)$. Inner lengths
# vanish. One output per query, as long as a value: in every dialect.

# %% [markdown] id="weight-between-two-text"
# Somebody asks our sentence with a query that you do not know. The keys of the first head are fixed: "the" has $(0, 0, 1, 0)$, "because" has
# $(0, 0, 0, 0)$, and "it" has $(0, 0, 2, 0)$. Scores are divided by 2, and the softmax makes weights of them. The cell below prints the weights
# that "because" and "it" got. Which weight did "the" get? Answer with a number, `my_weight`, exact to six digits.

# %% id="weight-between-two" tags=["task"]
### BEGIN SOLUTION
my_weight = np.sqrt(because * it)
### END SOLUTION

# %% id="weight-between-two-check" tags=["check"]
check("weight-between-two", my_weight)

# %% [markdown] id="weight-between-two-why" tags=["solution-only"]
# **Why.** The key of "the" is half the sum of the other two, so for every query its score is half the sum of theirs. A power of $e$ turns the
# sum into a product and the half into a root, and the common divisor $N$ fits: $\sqrt{a/N \cdot b/N} = \sqrt{ab}/N$. So the weight is
# $\sqrt{p_\text{because}\, p_\text{it}}$, whatever the query was.

# %% [markdown] id="columns-to-rows-text"
# A text has positions in columns, and its softmax runs down each column:
# $V\,\mathrm{softmax}\bigl( K^\top Q / \sqrt{d_k} \bigr)$. Write `my_rows(query, key, value)`: it gets float64 arrays **as that
# text has them**, `query` of shape `(d_k, q_len)`, `key` of shape `(d_k, kv_len)`, `value` of shape `(d_v, kv_len)`, and
# returns the output **with rows as positions**, shape `(q_len, d_v)`. Any of these lengths may be 1. The helper
# `softmax(scores, axis)` is given; you need not use it.


# %% id="columns-to-rows" tags=["task"]
def my_rows(query, key, value):
    """query (d_k, q_len), key (d_k, kv_len), value (d_v, kv_len) -> (q_len, d_v)."""
    ### BEGIN SOLUTION
    query, key, value = query.T, key.T, value.T
    scores = query @ key.T / np.sqrt(query.shape[1])
    return softmax(scores, axis=-1) @ value
    ### END SOLUTION


# %% id="columns-to-rows-check" tags=["check"]
check("columns-to-rows", my_rows)

# %% [markdown] id="columns-to-rows-why" tags=["solution-only"]
# **Why.** Turn the inputs once, at the border, and think in one dialect from there on. To turn the finished output,
# `(value @ softmax(key.T @ query / np.sqrt(len(query)), axis=0)).T`, is as right. What goes wrong is a mixture:
# `shape[-1]` is $d_k$ in one dialect and a number of positions in the other.

# %% [markdown] id="repair-column-mask-text"
# The function below should return causal weights with **columns as positions**: from `query` and `key`, both float64 of
# shape `(d_k, length)`, a table of shape `(length, length)` with keys in rows and queries in columns. Each column sums
# to 1, and key $j$ has the weight 0, exactly, for query $i$ whenever $j > i$; a position may see itself. Scores may have any
# size and sign. Two lines were copied from a program in which rows are queries. Repair it. (`softmax` is given again, and
# it copes with scores of any size.)


# %% id="repair-column-mask" tags=["task"]
def column_weights(query, key):
    """query and key (d_k, length) -> causal weights (length, length), in columns."""
    ### BEGIN SOLUTION
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((length, length), dtype=bool), k=-1)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
    ### END SOLUTION


# %% id="repair-column-mask-check" tags=["check"]
check("repair-column-mask", column_weights)

# %% [markdown] id="repair-column-mask-why" tags=["solution-only"]
# **Why.** In $K^\top Q$ the row is the key $j$ and the column the query $i$. Hidden is $j > i$, row greater than column: the
# lower triangle, {eq}`causal-mask-in-columns`. And the keys run down a column, so the softmax does too. With one of the two lines mended,
# the function still runs and still returns weights.

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="scores-by-hand-text"
# The query of "tired" is $(2, 1, 0, 2)$. Calculate its scores with "cat", "sat" and "tired", whose keys are $(2, 0, 0, 2)$,
# $(0, 2, 0, -2)$ and $(1, 2, 0, -1)$. Answer with three whole numbers.

# %% id="scores-by-hand" tags=["task"]
### BEGIN SOLUTION
my_three = (8, -2, 2)
### END SOLUTION

# %% id="scores-by-hand-check" tags=["check"]
check("scores-by-hand", my_three)

# %% [markdown] id="output-as-formula-text"
# Let $P_{ij}$ be the weight that query $i$ gives to key $j$, with $T_q$ queries and $T_k$ keys, and $V_{ja}$ number $a$ of value $j$. Write number
# $a$ of the output of query $i$, $Z_{ia}$, with $P$ and $V$, in LaTeX.

# %% id="output-as-formula" tags=["task"]
### BEGIN SOLUTION
my_output = r"\sum_{j=1}^{T_k} P_{ij} V_{ja}"
### END SOLUTION

# %% id="output-as-formula-check" tags=["check"]
check("output-as-formula", my_output)
