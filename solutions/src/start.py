# %% [markdown] id="title"
# # Exercises {lesson}`start`: start here
#
# Two small tasks for the lesson [{lesson}`start` Start here](../notebooks/{lesson}`start`_start.ipynb): 2 points, about 9 minutes. They
# train scores, weights, and how to do a task. Each stands on its own.
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
