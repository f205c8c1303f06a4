# %% [markdown] id="title"
# # Exercises {lesson}`start`: start here
#
# Seven small tasks for the lesson [{lesson}`start` Start here](../notebooks/{lesson}`start`_start.ipynb): 11 points, about 37 minutes. For
# most of them a pencil is enough. You follow one word on its whole way, read that way backwards, repair a small head, and find out how
# strong a query must be, and what no query can reach. Each task stands on its own.
#
# **How it works.** Write your answer where it says `YOUR CODE HERE`, or after the `=` sign, and run the cell, then the check below it. Run
# cells one by one (Shift+Enter), because a check that fails stops "Run All". A check says that you passed, or what is wrong. Three hints
# open with a click. In a terminal, `attn-course check` runs the whole notebook afresh.
#
# Answers are numbers, or NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not change
# its inputs.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="scores-from-words-text"
# Here a word is a **column**: column $i$ of `x`, of shape `(d_model, T)`, is word $i$. The two matrices of shape
# `(d_model, d_k)` are made for rows, as in the lesson: a word as a row times `w_query` is its query, and times `w_key` its
# key. All are float64. Write `my_scores(x, w_query, w_key)`: it returns the table of shape `(T, T)` whose row $i$, column $j$ holds the dot
# product of query $i$ with key $j$. No scale, no softmax.


# %% id="scores-from-words" tags=["task"]
def my_scores(x, w_query, w_key):
    """x (d_model, T), w_query and w_key (d_model, d_k) -> (T, T), rows ask."""
    ### BEGIN SOLUTION
    return (x.T @ w_query) @ (x.T @ w_key).T
    ### END SOLUTION


# %% id="scores-from-words-check" tags=["check"]
check("scores-from-words", my_scores)

# %% [markdown] id="scores-from-words-why" tags=["solution-only"]
# **Why.** Turned, the text has a word in each row, and its matrix stands on the right. Row $i$ of the left factor meets column $j$ of the
# right one, and column $j$ of $K^\top$ is row $j$ of $K$. The word that asks stands on the left, so its number is the row. If the text has as
# many words as features, `x @ w_query` does not fail, and is wrong. The two matrices may also meet first,
# `x.T @ (w_query @ w_key.T) @ x`: lesson {lesson}`absorption` lives on that.

# %% [markdown] id="taken-home-by-hand-text"
# No calculator, please. A new word asks four of our words, and no others:
#
# $$\begin{array}{lll}
# & \text{key} & \text{value} \\ \hline
# \text{the} & (0, 0, 1, 0) & (0, 0, -1) \\
# \text{cat} & (2, 0, 0, 2) & (2, 0, 2) \\
# \text{sat} & (0, 2, 0, -2) & (0, 2, 0) \\
# \text{because} & (0, 0, 0, 0) & (0, 0, 0)
# \end{array}$$
#
# Its query is your list `asked` times $\ln b$, where $b$ is your `base`; the cell below prints both. All else is as in the
# lesson: half of each score, $e$ to that power, weights, average. The logarithm makes the powers plain, as in $e^{2 \ln 5} = 25$. What does the
# new word take home, that is, what is its output? Write `my_home = (..., ..., ...)`; fractions such as `2 / 7` are welcome.

# %% id="taken-home-by-hand" tags=["task"]
### BEGIN SOLUTION
keys = np.array([(0, 0, 1, 0), (2, 0, 0, 2), (0, 2, 0, -2), (0, 0, 0, 0)])
values = np.array([(0, 0, -1), (2, 0, 2), (0, 2, 0), (0, 0, 0)])
powers = base ** (keys @ asked / 2)
my_home = powers @ values / powers.sum()
### END SOLUTION

# %% id="taken-home-by-hand-check" tags=["check"]
check("taken-home-by-hand", my_home)

# %% [markdown] id="taken-home-by-hand-why" tags=["solution-only"]
# **Why.** Take `asked = (0, 0, -2, 1)` and `base = 2`. The scores are $-2, 2, -2, 0$ times $\ln 2$, so their halves are $-\ln 2$, $\ln 2$,
# $-\ln 2$ and $0$, and the powers of $e$ are $1/2$, $2$, $1/2$ and $1$. They sum to 4, and the weights are $1/8$, $1/2$, $1/8$ and $1/4$. The
# averages are $\frac12 \cdot 2 = 1$, then $\frac18 \cdot 2 = \frac14$, and $-\frac18 + \frac12 \cdot 2 = \frac78$. No word gets nothing: not "the" and
# "sat", whose scores are negative, and not "because", whose score is 0 and whose weight is larger than theirs.

# %% [markdown] id="what-cat-hands-over-text"
# Suppose that "it" asks *the*, *cat*, *sat* and *tired* only, and gives
# them, in this order, the weights that the cell below prints. Three words keep the values of the lesson: "the" has $(0, 0, -1)$, "sat" has
# $(0, 2, 0)$, and "tired" has $(1, 2, 1)$. Which value must "cat" have, so that the output of "it" is exactly the three numbers in `wanted`? (The
# last one is subtracted from *open*, which is 2 in "it", so that nothing in it stays open.) Write `my_value = (..., ..., ...)`.

# %% id="what-cat-hands-over" tags=["task"]
### BEGIN SOLUTION
the_weight, cat_weight, sat_weight, tired_weight = weights
others = the_weight * np.array([0, 0, -1]) + sat_weight * np.array([0, 2, 0]) + tired_weight * np.array([1, 2, 1])
my_value = (wanted - others) / cat_weight
### END SOLUTION

# %% id="what-cat-hands-over-check" tags=["check"]
check("what-cat-hands-over", my_value)

# %% [markdown] id="what-cat-hands-over-why" tags=["solution-only"]
# **Why.** What arrives is the sum of weight times value, {eq}`output-entry-by-entry`. Subtract what the other three contribute; the rest is the
# weight of "cat" times its value, so divide by that weight. The smaller the weight, the more "cat" has to exaggerate to be heard, and what it
# others say too much of, such as *tells*, it must take back with a minus. In training a model adjusts values and weights together.

# %% [markdown] id="repair-taking-home-text"
# Here is a whole head in four lines. Rows are positions: `query` has the shape `(T_q, d_k)`, `key` has `(T_k, d_k)`, `value` has
# `(T_k, d_v)`, all float64. The function should return what each word that asks takes home, one row for each, of the shape `(T_q, d_v)`. Any
# of these lengths may be 1, and scores are moderate. Two of the four lines are wrong, and if all lengths are equal, nothing complains. Repair
# them.


# %% id="repair-taking-home" tags=["task"]
def take_home(query, key, value):
    """query (T_q, d_k), key (T_k, d_k), value (T_k, d_v) -> (T_q, d_v)."""
    ### BEGIN SOLUTION
    scores = query @ key.T / np.sqrt(query.shape[1])
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ value
    ### END SOLUTION


# %% id="repair-taking-home-check" tags=["check"]
check("repair-taking-home", take_home)

# %% [markdown] id="repair-taking-home-why" tags=["solution-only"]
# **Why.** A row of the table belongs to one word that asks, so the sum that makes its weights runs along the row, `axis=1`. And keys are for
# comparing only: what is averaged is the values. A test whose lengths all differ finds the second mistake by the shape of the result. The
# first leaves every shape as it is; only the sums of the rows give it away.

# %% [markdown] id="share-for-sat-text"
# Now you ask, and you want to hear "sat". In a text of `words` words one is "sat", with the key $(0, 2, 0, -2)$, one is "cat", with
# $(2, 0, 0, 2)$, and all others have the key of "because", $(0, 0, 0, 0)$. Your query is $(c, c, 0, -c)$. Scores are divided by 2, and the
# softmax makes weights of them. For which $c$ does "sat" get exactly the weight `share`? The cell below prints both numbers. Write `my_c`,
# right to six digits, or an expression such as `my_c = np.log(7) / 3`.

# %% id="share-for-sat" tags=["task"]
### BEGIN SOLUTION
my_c = np.log((words - 1) * share / (1 - share)) / 2
### END SOLUTION

# %% id="share-for-sat-check" tags=["check"]
check("share-for-sat", my_c)

# %% [markdown] id="share-for-sat-why" tags=["solution-only"]
# **Why.** "Sat" has the score $2c + 2c = 4c$, "cat" has $2c - 2c = 0$, and so have all the others. Half of $4c$ is $2c$. With $u = e^{2c}$
# and $n$ words, the weight of "sat" is $u / (u + n - 1)$. Set it to $p$, multiply out, and get $u = (n - 1)\, p / (1 - p)$, so that
# $c = \frac12 \ln \frac{(n - 1)\, p}{1 - p}$. A text with twice as many other words needs only $\frac12 \ln 2 \approx 0.35$ more. But no $c$
# gives the weight 1.

# %% [markdown] id="weight-between-two-text"
# Somebody asks our whole sentence with a query that you do not know. But you know the keys of the first head: "because" has
# $(0, 0, 0, 0)$, "the" has $(0, 0, 1, 0)$, and "it" has $(0, 0, 2, 0)$. Scores are divided by 2, and the softmax over all seven words makes
# weights of them. The cell below prints the weights of "because" and "the". Which weight did "it" get? Answer with a number right to six
# digits, or with an expression in these two names, as `my_weight`.

# %% id="weight-between-two" tags=["task"]
### BEGIN SOLUTION
my_weight = the**2 / because
### END SOLUTION

# %% id="weight-between-two-check" tags=["check"]
check("weight-between-two", my_weight)

# %% [markdown] id="weight-between-two-why" tags=["solution-only"]
# **Why.** Let $s$ be the half score of "the". The key of "it" is twice as long, so its half score is $2s$, and that of "because" is 0, whatever the
# query was. With $N$ for the sum of all seven powers, the three weights are $1/N$, $e^s/N$ and $e^{2s}/N$: from each to the next there is the same
# factor $e^s = p_\text{the} / p_\text{because}$. So $p_\text{it} = p_\text{the}^2 / p_\text{because}$. You need neither the query nor the other four
# words.

# %% [markdown] id="key-in-the-middle-text"
# A text has $n$ words with long keys: $(n, 0, \dots, 0)$, then $(0, n, 0, \dots, 0)$, and so on until $(0, \dots, 0, n)$. The word "egg"
# stands in it several times, always with the key $(1, 1, \dots, 1)$, and three more words have keys of zeros. Scores are divided by $\sqrt n$,
# and the softmax over all words makes weights of them. Whatever the query, the weight of a single egg stays below a certain number, and
# some queries bring it as near to that number as you like. Which number is it? The cell below prints $n$ as `corners`, and the number of
# eggs. Write `my_bound`, right to six digits, or as a fraction.

# %% id="key-in-the-middle" tags=["task"]
### BEGIN SOLUTION
my_bound = 1 / (corners + eggs)
### END SOLUTION

# %% id="key-in-the-middle-check" tags=["check"]
check("key-in-the-middle", my_bound)

# %% [markdown] id="key-in-the-middle-why" tags=["solution-only"]
# **Why.** The key of "egg" is the average of the $n$ long keys. So its score is the average of theirs, and its power the $n$-th root of the
# product of their powers. After the division by the sum of all powers, $p_\text{egg} = (p_1 \cdots p_n)^{1/n}$. This geometric mean is at
# most the average, so $n\, p_\text{egg} \le p_1 + \dots + p_n$. All $m$ eggs have the same weight, and three other weights are positive, so the
# right side is less than $1 - m\, p_\text{egg}$. Together, $(n + m)\, p_\text{egg} < 1$. The query $(c, \dots, c)$ with a large $c$ comes near:
# the eggs and the words with long keys have the score $n c$, the three others 0. With $n = 2$ and $m = 1$ this is the third of the lesson.

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
