# %% [markdown] id="title"
# # Exercises {lesson}`masking`: masking
#
# Eleven tasks to the lesson [{lesson}`masking` Masking](../notebooks/{lesson}`masking`_masking.ipynb): 23 points, about 106 minutes. Each
# stands for
# itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. Run the cells one by one (Shift+Enter), for a check that fails stops "Run All". A check that
# passes shows a green card in JupyterLab, elsewhere one line; one that fails says what is wrong, and names the mistake
# if it is a known one. Three hints fold out below each question. You may add cells, but leave the check cells as they
# are.
#
# Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs. Rows are queries,
# columns are keys, both counted from 0. A boolean mask is True where the query may attend to the key.

# %% id="setup" tags=["setup"]
import numpy as np

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="masked-weights-text"
# Write `my_masked_weights(scores, mask)`: it takes float64 scores of shape `(..., q_len, kv_len)` and a boolean mask that
# broadcasts to them, perhaps with fewer axes, and returns weights of the shape of the scores: a softmax over the keys
# (last axis).
#
# Hidden keys get the weight 0, exactly, and so does **everything in a row without visible keys**. Visible scores may be near
# 100 000 in one row, near -100 000 in the next; a *hidden* score may be anything, even NaN or infinite, and must not
# matter.


# %% id="masked-weights" tags=["task"]
def my_masked_weights(scores, mask):
    """(..., q_len, kv_len) scores and a mask that broadcasts to them -> weights of
    the shape of the scores."""
    ### BEGIN SOLUTION
    kept = np.where(mask, scores, -np.inf)
    top = kept.max(axis=-1, keepdims=True)
    unnormalised = np.exp(kept - np.where(top == -np.inf, 0.0, top))
    total = unnormalised.sum(axis=-1, keepdims=True)
    return unnormalised / np.where(total == 0.0, 1.0, total)
    ### END SOLUTION


# %% id="masked-weights-check" tags=["check"]
check("masked-weights", my_masked_weights)

# %% [markdown] id="masked-weights-why" tags=["solution-only"]
# **Why.** `where` chooses; it never multiplies what is hidden, so no NaN survives. In a row without keys the maximum is
# $-\infty$, and $-\infty - (-\infty)$ would be NaN: with 0 in its place all exponentials are 0, and dividing by 1 keeps them so.

# %% [markdown] id="read-mask-text"
# Run the cell below. It shows the weights of seven queries over seven keys; the mask was meant to be causal, with some
# padding. Hidden pairs are hatched. Write three numbers as `my_reading = (a, b, c)`:
#
# - `a`: how many pairs leak, that is, let a query attend to a later token?
# - `b`: which key is padding, hidden from all queries?
# - `c`: which query sees nothing at all?

# %% id="read-mask-figure"
from attn_course.figures import charts
from attn_course.tasks import figure_data

charts.heatmap(**figure_data("read-mask"))

# %% id="read-mask" tags=["task"]
### BEGIN SOLUTION
my_reading = (6, 4, 3)
### END SOLUTION

# %% id="read-mask-check" tags=["check"]
check("read-mask", my_reading)

# %% [markdown] id="read-mask-why" tags=["solution-only"]
# **Why.** To the right of the diagonal there are numbers in the rows 0 (twice), 1, 2, 4 and 5. Column 4 and row 3 are hatched from
# end to end. That rows still sum to 1 shows nothing: the leaks were normalised along with the rest.

# %% [markdown] id="combined-masks-text"
# Write `my_masked_scores(scores, past, window, length)`: a copy of the `(q_len, kv_len)` float64 scores with $-\infty$ wherever
# the key is hidden. The other arguments are integers. Query $i$ stands at position $i + \text{past}$ among the keys, and sees
# key $j$ if **all three** hold:
#
# - the key is not later than the query;
# - it is at most `window` positions earlier (0: only the query's own);
# - it is not padding: only keys $0, \ldots, \text{length} - 1$ are real.
#
# A row may end up all hidden: then it is $-\infty$ throughout.


# %% id="combined-masks" tags=["task"]
def my_masked_scores(scores, past, window, length):
    """(q_len, kv_len) scores -> the same with -inf where query i may not attend to
    key j."""
    ### BEGIN SOLUTION
    at = np.arange(scores.shape[0])[:, None] + past
    j = np.arange(scores.shape[1])
    return np.where((j <= at) & (j >= at - window) & (j < length), scores, -np.inf)
    ### END SOLUTION


# %% id="combined-masks-check" tags=["check"]
check("combined-masks", my_masked_scores)

# %% [markdown] id="combined-masks-why" tags=["solution-only"]
# **Why.** A pair must pass every rule, so the conditions are joined by `&`, which is the same as adding three masks of 0 and
# $-\infty$, {eq}`added-masks-intersect`. Position, not row number, decides: `past` is added once, and both comparisons use it.

# %% [markdown] id="window-counts-text"
# A text of $T$ tokens, a causal mask with a window of $w$: each token sees itself and at most the $w$ tokens before it. The cell below
# prints your $T$ and $w$. Write two numbers as `my_count = (a, b)`:
#
# - `a`: how many pairs of query and key are visible in one layer?
# - `b`: how many such layers, stacked, does it take until the last token can depend on the first?

# %% id="window-counts" tags=["task"]
### BEGIN SOLUTION
my_count = (T * (w + 1) - w * (w + 1) // 2, -((1 - T) // w))
### END SOLUTION

# %% id="window-counts-check" tags=["check"]
check("window-counts", my_count)

# %% [markdown] id="window-counts-why" tags=["solution-only"]
# **Why.** Here full rows have 8 keys; the first seven lack $7 + 6 + \dots + 1 = 28$. The first token is 99 positions before the
# last, one layer goes back 7 of them, and $99 / 7 = 14.1$, so fourteen layers do not quite reach it.

# %% [markdown] id="large-enough-fill-text"
# A mask subtracts a finite number $c$ from the scores of the hidden keys. Let `r` be the ratio of the hidden to the visible
# terms before that, $r = \sum_{j \notin A} e^{s_j} / \sum_{j \in A} e^{s_j}$. Derive the $c$ for which all hidden keys
# **together** have the weight `epsilon` ($0 < \epsilon < 1$). Write it with `r`, `epsilon` and `log`.

# %% id="large-enough-fill" tags=["task"]
### BEGIN SOLUTION
my_fill = log(r * (1 - epsilon) / epsilon)
### END SOLUTION

# %% id="large-enough-fill-check" tags=["check"]
check("large-enough-fill", my_fill)

# %% [markdown] id="large-enough-fill-why" tags=["solution-only"]
# **Why.** Solve $\epsilon = r / (r + e^c)$, {eq}`finite-fill-leaks`, for $c$. The answer grows with $\ln r$: no number is large enough for
# all
# scores, and for $\epsilon \to 0$ it must grow without bound. Hence $-\infty$.

# %% [markdown] id="repair-cached-causal-mask-text"
# The function below should decode with a cache: `query`, `(q_len, d_k)`, belongs to the **newest** `q_len` positions,
# `key`, `(kv_len, d_k)`, and `value`, `(kv_len, d_v)`, to all positions so far; `q_len` is at most `kv_len`. Each query may
# see itself and all earlier ones; the result is `(q_len, d_v)`. A row may hold scores near 1000 and near -1000, or only
# scores near $-10^{12}$. Shapes are right, numbers are not: repair two mistakes.


# %% id="repair-cached-causal-mask" tags=["task"]
def cached_attention(query, key, value):
    """Causal attention of the newest q_len positions to all kv_len positions."""
    ### BEGIN SOLUTION
    scores = query @ key.T / np.sqrt(query.shape[1])
    visible = np.tri(len(query), len(key), k=len(key) - len(query)) > 0
    scores = np.where(visible, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value
    ### END SOLUTION


# %% id="repair-cached-causal-mask-check" tags=["check"]
check("repair-cached-causal-mask", cached_attention)

# %% [markdown] id="repair-cached-causal-mask-why" tags=["solution-only"]
# **Why.** (1) `np.tri(q_len, kv_len)` is aligned at the top left; the last query stands at the last key, so the diagonal
# moves by $p = T_k - T_q$, {eq}`bottom-right-offset`. (2) A hidden score of 0 is a score like any other, and so is one of
# $-10^9$ beside visible ones of $-10^{12}$. With `q_len = kv_len` the first mistake is invisible, which is why it survives in
# code that was only tested in training.

# %% [markdown] id="repair-padded-batch-text"
# Attention in a padded batch: `query` is `(batch, q_len, d_k)`, `key` `(batch, kv_len, d_k)`,
# `value` `(batch, kv_len, d_v)`; `lengths`, `(batch,)`, holds integers from 0 to `kv_len`. In example $b$ only the first
# `lengths[b]` keys are real; the others hold any finite numbers, even $10^{30}$. Scores of real keys may be near -30 000. All
# queries are real. **A length may be 0: then all outputs of that example are 0.** The result is `(batch, q_len, d_v)`.
# Repair it.


# %% id="repair-padded-batch" tags=["task"]
def padded_attention(query, key, value, lengths):
    """Attention of each example to its first `lengths[b]` keys; the keys behind are
    padding."""
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    real = np.arange(key.shape[1]) < lengths[:, None, None]
    scores = np.where(real, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = unnormalised.sum(axis=-1, keepdims=True)
    weights = unnormalised / np.where(total == 0.0, 1.0, total)
    return weights @ value
    ### END SOLUTION


# %% id="repair-padded-batch-check" tags=["check"]
check("repair-padded-batch", padded_attention)

# %% [markdown] id="repair-padded-batch-why" tags=["solution-only"]
# **Why.** (1) The mask had the shape `(batch, q_len, 1)` and hid *queries*; with $-10^9$ that even looked harmless, since a row
# that is hidden as a whole attends as if it were not, {eq}`filled-row-hides-nothing`. Padding hides columns: `(batch, 1, kv_len)`. (2)
# $-10^9$
# hides nothing in an empty sequence; with $-\infty$ its row is 0 / 0 and needs the definition of {eq}`empty-row-is-zero`.

# %% [markdown] id="masked-score-gradient-text"
# One query has unmasked weights, the softmax of all its scores. Let `w_all` be the sum of the weights of all *visible* keys, `w_j`
# the weight of one visible key, and `v_j` its value, a number. Under the mask, put on before the softmax, the output is `z`.
# Derive $\partial z / \partial s_j$, the derivative by the score of that visible key, and write it with the symbols `w_j`,
# `w_all`, `v_j` and `z`. Sums, products and powers of them are all you need.

# %% id="masked-score-gradient" tags=["task"]
### BEGIN SOLUTION
my_score_gradient = w_j / w_all * (v_j - z)
### END SOLUTION

# %% id="masked-score-gradient-check" tags=["check"]
check("masked-score-gradient", my_score_gradient)

# %% [markdown] id="masked-score-gradient-why" tags=["solution-only"]
# **Why.** Under the mask the weight of key $j$ is $p_j = w_j / w_{\mathrm{all}}$, {eq}`masking-renormalises-weights`, and
# {eq}`output-derivative-by-score` gives
# $p_j (v_j - z)$. Nothing else is special about a mask: the hidden keys are simply not there.

# %% [markdown] id="leak-test-text"
# The cell below holds `layer(x, kind)`: seven layers that should be causal, and most are not. Write the test that tells:
# `my_leaks(x, kind)` takes tokens `x` of shape `(length, 4)` and an integer `kind`, and returns an array of floats (no
# booleans or integers) of shape `(length, length)`. Its entry in row $i$ and column $j$ is 1 if $j > i$ and output $i$
# of `layer` changes by more than $10^{-6}$ in any feature when token $j$ is moved; all other entries are 0.
#
# Move a token by about 1, up or down, in **each** of its four features: a leak may use only one. Take the layer as a black
# box: call it, do not look inside. Whether a leak is felt depends on the tokens, too.


# %% id="leak-test" tags=["task"]
def my_leaks(x, kind):
    """(length, 4) -> (length, length): 1 where the later token j moves output i of
    layer(x, kind), else 0."""
    ### BEGIN SOLUTION
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += np.array([1.0, -1.0, 0.8, 1.2])
        leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind)).max(axis=1) > 1e-6
    return np.triu(leaks, k=1)
    ### END SOLUTION


# %% id="leak-test-check" tags=["check"]
check("leak-test", my_leaks)

# %% [markdown] id="leak-test-why" tags=["solution-only"]
# **Why.** Only kind 0 passes. Kind 1 is one column too wide, 2 transposed, 3 normalises over the queries, 4 puts the mask after
# the softmax. Kinds 5 and 6 have a perfect mask and leak behind it: the mean over all positions carries the future into every
# row, and so does one number of the last token. Reading the mask would not have shown it; moving a token does.

# %% [markdown] id="answers-in-latex"
# ## Answers in LaTeX
# The last two answers are LaTeX, between `r"` and `"`. Any form counts that has the right value in every case. To see how
# yours is understood, `from attn_course import read` and call `read("masked-softmax", my_derivation)`; what cannot be read is
# no attempt. `[j \in A]` is 1 if $j$ is in the set $A$, else 0. `\sum_{l \in A}` sums over the members of $A$, and
# `\sum_{l \notin A}` over all others.

# %% [markdown] id="masked-softmax-text"
# To the scores $s_1, \ldots, s_n$ of a query we add $M_j = 0$ for the visible keys, the set $A$, and $M_j = -\infty$ for
# all others. Show in two steps or more that this leaves the softmax over the visible keys. Each line must equal the one
# before for every $j$:
#
# ```python
# my_derivation = [
#     r"\frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}",
#     # your lines
#     r"\frac{[j \in A] e^{s_j}}{\sum_{l \in A} e^{s_l}}",
# ]
# ```

# %% id="masked-softmax" tags=["task"]
### BEGIN SOLUTION
my_derivation = [
    r"\frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}",
    r"\frac{e^{s_j} e^{M_j}}{\sum_{l=1}^{n} e^{s_l} e^{M_l}}",
    r"\frac{[j \in A]\, e^{s_j}}{\sum_{l=1}^{n} [l \in A]\, e^{s_l}}",
    r"\frac{[j \in A]\, e^{s_j}}{\sum_{l \in A} e^{s_l}}",
]
### END SOLUTION

# %% id="masked-softmax-check" tags=["check"]
check("masked-softmax", my_derivation)

# %% [markdown] id="masked-softmax-why" tags=["solution-only"]
# **Why.** The exponential turns what is added into a factor, {eq}`score-bias-is-factor`. That factor is $e^0 = 1$ for a visible key and
# $e^{-\infty} = 0$ for a hidden one, exactly, {eq}`masked-exponential-is-zero`. It stands above *and* below the fraction bar, so the hidden
# keys leave the sum as well, and the weights of the visible ones still sum to 1.

# %% [markdown] id="weight-behind-finite-fill-text"
# Without a mask a query has the weights $w_1, \ldots, w_n$, a softmax of its scores. Now a number $c > 0$ is subtracted from the
# scores of all keys outside the set $A$ of visible keys. Write a formula for $H$, the weight that these hidden keys then
# have together: only the right side. The scores are not given, for the old weights $w_l$ suffice.

# %% id="weight-behind-finite-fill" tags=["task"]
### BEGIN SOLUTION
my_leftover = r"\frac{e^{-c} \sum_{l \notin A} w_l}{\sum_{l \in A} w_l + e^{-c} \sum_{l \notin A} w_l}"
### END SOLUTION

# %% id="weight-behind-finite-fill-check" tags=["check"]
check("weight-behind-finite-fill", my_leftover)

# %% [markdown] id="weight-behind-finite-fill-why" tags=["solution-only"]
# **Why.** Each hidden term is multiplied by $e^{-c}$, and then all terms are divided by their new sum. With
# $r = \sum_{l \notin A} w_l / \sum_{l \in A} w_l$ this is $r / (r + e^c)$, {eq}`finite-fill-leaks`: the number by which exponentials and
# weights differ cancels in $r$. If the hidden keys had nearly all the weight before, a moderate $c$ leaves them a good part of it.
