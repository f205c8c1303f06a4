# %% [markdown] id="title"
# # Exercises {lesson}`notation`: notation
#
# Five tasks for the lesson [{lesson}`notation` Notation](../notebooks/{lesson}`notation`_notation.ipynb): 7 points, about 22 minutes. They
# train shapes, the axis of a softmax, the triangle of a mask, and what a layer stores. Each stands on its own.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), because a check that fails stops "Run All". Three hints below each
# question open with a click.
#
# Answers are NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not
# change its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="shapes-in-columns-text"
# A text writes "the output is $V\,\mathrm{softmax}(K^\top Q)$", with **columns as positions**. There are $T_q$ queries and $T_k$ keys;
# queries and keys have $d_k$ features, values have $d_v$; the cell below prints your numbers. What are the shapes of $K^\top Q$ and of the
# output? Write four numbers in one tuple, `my_shapes = (a, b, c, d)`: rows `a` and columns `b` of $K^\top Q$, then rows `c` and columns `d`
# of the output.

# %% id="shapes-in-columns" tags=["task"]
### BEGIN SOLUTION
my_shapes = (T_k, T_q, d_v, T_q)
### END SOLUTION

# %% id="shapes-in-columns-check" tags=["check"]
check("shapes-in-columns", my_shapes)

# %% [markdown] id="shapes-in-columns-why" tags=["solution-only"]
# **Why.** $K^\top Q$ is $(T_k \times d_k)(d_k \times T_q)$, and $V$ times the weights is $(d_v \times T_k)(T_k \times T_q)$. Inner lengths
# vanish. In every dialect there is one output for each query, and it is as long as a value.

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
# `(value @ softmax(key.T @ query / np.sqrt(len(query)), axis=0)).T`, is just as right. What goes wrong is a mixture:
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

# %% [markdown] id="stored-by-linear-text"
# The layer `torch.nn.Linear(d_in, d_out, bias=False)` gets our matrix $W$, so that it computes $x\, W$ for a row $x$ of `d_in` numbers. In
# $W$ the entry $W_{mn}$ says how much number $m$ of the word adds to number $n$ of what comes out, both counted from 0. The cell below
# prints your four numbers. What is the shape of `layer.weight`, and in which row and column of it does this entry stand? Write
# `my_place = (rows, columns, row, column)`, the row and the column counted from 0.

# %% id="stored-by-linear" tags=["task"]
### BEGIN SOLUTION
my_place = (d_out, d_in, n, m)
### END SOLUTION

# %% id="stored-by-linear-check" tags=["check"]
check("stored-by-linear", my_place)

# %% [markdown] id="stored-by-linear-why" tags=["solution-only"]
# **Why.** The layer stores $W_c = W^\top$, {eq}`projection-in-columns`, and computes $x\, W_c^\top$. So what comes out is counted down the
# rows and what goes in along the columns.

# %% [markdown] id="row-of-packed-weight-text"
# A `torch.nn.MultiheadAttention` of `embed_dim` $E$ and $H$ heads keeps three matrices below each other in its `in_proj_weight`, of shape
# $(3E, E)$: first the one for queries, then the one for keys, then the one for values, each stored as (out, in). The numbers that come out
# belong to head 0 first, then to head 1, and so on, equally many to each. The cell below prints your numbers. Which row makes number $a$
# of the keys of head $h$? All are counted from 0. Answer with a whole number, `my_row`.

# %% id="row-of-packed-weight" tags=["task"]
### BEGIN SOLUTION
my_row = E + h * (E // H) + a
### END SOLUTION

# %% id="row-of-packed-weight-check" tags=["check"]
check("row-of-packed-weight", my_row)

# %% [markdown] id="row-of-packed-weight-why" tags=["solution-only"]
# **Why.** Above it lie the $E$ rows of the queries, and the rows of the heads before it, $E / H$ for each. In our own matrix the same
# numbers would be a column, since ours is stored as (in, out).

# %% [markdown] id="turns" tags=["solution-only"]
# ## What the lesson asks its reader

# %% [markdown] id="output-in-columns-text"
# In a text with columns the weights $A$ have the shape $(T_k, T_q)$, the values $V$ the shape $(d_v, T_k)$, and the outputs $O$ the shape
# $(d_v, T_q)$. Each column of $A$ sums to 1. Write number $a$ of the output of query $i$, $O_{ai}$, with $A$ and $V$, in LaTeX.

# %% id="output-in-columns" tags=["task"]
### BEGIN SOLUTION
my_column_output = r"\sum_{j=1}^{T_k} V_{aj} A_{ji}"
### END SOLUTION

# %% id="output-in-columns-check" tags=["check"]
check("output-in-columns", my_column_output)

# %% [markdown] id="hidden-in-columns-text"
# A text with columns hides the words to come in a sentence of five words. How many cells are hidden in the first column of its table of
# scores, how many in the second column, and how many in the second row? Answer with three whole numbers.

# %% id="hidden-in-columns" tags=["task"]
### BEGIN SOLUTION
my_hidden = (4, 3, 1)
### END SOLUTION

# %% id="hidden-in-columns-check" tags=["check"]
check("hidden-in-columns", my_hidden)
