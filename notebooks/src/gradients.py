# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# Training makes a loss fall by nudging the numbers that queries, keys and values are computed from. So it must know how the loss reacts
# to each of them. For every entry of queries, keys and values we ask which outputs it touches and how fast, and add up.
#
# **Afterwards you can** derive every gradient of attention from three questions, write the backward pass of attention and of its
# relatives, say what a step does to the scores, and track down a wrong line.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax` and {lesson}`attention`, and the chain rule.
# **Time:** 60 minutes, ten more for the two turns, without the deeper sections and the
# [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="hook"
# ## A row of sevenths
#
# In "the cat sat because it was tired" the query of "because" is zero (head 0). So all its scores are 0, its seven weights
# are $\frac17$, and its output $z$ is the plain mean of the values in the next cell. Suppose that a loss wants more of the first feature
# and less of the second: $L = -z_1 + 2 z_2$. To see which scores should rise, the cell moves one score at a time, a thousandth up and a
# thousandth down, and prints how fast the loss changes.

# %% id="hook-code"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
alive = [0, 2, 0, 0, 0, 0, 1]
tells = [0, 0, 2, 0, 0, 1, 2]
alive_minus_open = [-1, 2, 0, 0, -2, 0, 1]
value = np.array([alive, tells, alive_minus_open], dtype=float).T  # rows: tokens


def loss_of_scores(scores):
    weights = np.exp(scores) / np.exp(scores).sum()
    output = weights @ value
    return -output[0] + 2 * output[1]


for token, nudge in zip(tokens, 1e-3 * np.eye(7), strict=True):
    rate = (loss_of_scores(nudge) - loss_of_scores(-nudge)) / 2e-3
    print(f"{token:8}{7 * rate:+.1f} sevenths")

# %% id="setup"
import math

import torch

from attn_course import check, costs, verify_lesson
from attn_course.lessons.gradients import figures
from attn_course.lessons.gradients import tasks_checking as checking
from attn_course.reference import attention, attention_backward, padding_mask, softmax
from attn_course.sentence import KEY, QUERY, TOKENS, labelled

np.set_printoptions(precision=3, suppress=True)

# %% id="machine"
figures.machine()

# %% [markdown] id="hook-notice"
# Each rate is a whole number of sevenths, and a minus sign means that the loss falls when the score rises. Four are no surprise: "cat" has
# the feature that the loss wants, and "sat", "was" and "tired" have more of the other one. But "the", "because" and "it" contribute
# nothing to this loss, since their first two features are 0. Why does the loss fall when *their* scores rise, and why by a seventh each?

# %% [markdown] id="hook-time"
# Moving one number at a time is slow: it takes two evaluations of the loss for each of the $28 + 28 + 21 = 77$ numbers of queries, keys and
# values here. In the machine above all arrows are turned round: the gradient comes in at the
# output, and one sweep back finds all the others.

# %% [markdown] id="backward"
# ## Three questions for every entry
#
# Let a differentiable loss $L$ depend on the output $Z$, and on everything before $Z$ only through $Z$. Write $dX$ for the matrix of all
# derivatives of the loss with respect to the entries of $X$, $dX_{ia} = \partial L / \partial X_{ia}$. What comes after $Z$ gives us $dZ$.
# For the loss above, the row of "because" in $dZ$ is $(-1, 2, 0)$, and all other rows are 0.

# %% [markdown] id="collect"
# Now let $x$ be any one number that goes into $Z$, and move it by a tiny $\varepsilon$. To first order, every entry $Z_{ia}$ moves by
# $\varepsilon\, \partial Z_{ia} / \partial x$, and that changes the loss by $dZ_{ia}$ times as much. Small changes add up. So
# $dx = \partial L / \partial x$ is
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$

# %% [markdown] id="collect-questions"
# This is the chain rule. What $x$ does not touch has the derivative 0 and drops out of the sum. So for each entry we ask:
#
# 1. Which outputs does this entry touch?
# 2. How fast does it move each of them?
# 3. What is the sum over all that are touched?
#
# Any stage that all effects of $x$ must pass through can take the place of $Z$. Scores, for example, reach the loss only through the
# weights, so once $dP$ is known, the gradient of a score is a sum over the weights that it touches.

# %% [markdown] id="backward-values"
# ## Back through the average
#
# The last step was $Z = P V$, in entries $Z_{ia} = \sum_j p_{ij} V_{ja}$. Take **one entry of a value**, $V_{ja}$.
#
# 1. It touches entry $a$ of the output of every query that gives value $j$ any weight, and no other feature.
# 2. It moves $Z_{ia}$ at the rate $p_{ij}$, {eq}`output-derivative-by-value`.
# 3. The touched outputs differ in $i$, so the sum runs over $i$:
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# A matrix product sums over the *last* index of its left factor and the *first* of its right one. Here $i$ is the first index of
# both, so $P$ has to be transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$

# %% [markdown] id="backward-weights"
# The summed index says so. The shapes do not: if $T_q = T_k$, then $P\, dZ$ fits as well.
#
# Now **one weight**, $p_{ij}$.
#
# 1. It may touch every feature of output $i$, and nothing else.
# 2. It moves $Z_{ia}$ at the rate $V_{ja}$.
# 3. The touched entries differ in $a$, so the sum runs over $a$, and it is a dot product:
#
# $$dP_{ij} = \sum_{a=1}^{d_v} dZ_{ia}\, V_{ja} = dZ_i \cdot v_j \label{weight-gradient-by-entry}$$
#
# This time the summed index is the last one of both factors, so the right one is transposed:
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$

# %% [markdown] id="sevenths-weights"
# We call $dP_{ij}$ the **cost** of this weight: to first order it is what one more unit of the weight adds to the loss. (Each weight is
# moved alone, as if a row need not sum to 1; the softmax comes next.)
#
# For "because", $dP_j$ is minus the first feature of $v_j$ plus twice the second: 0 for "the", $-2$ for "cat", $2 \cdot 2 = 4$ for "sat",
# and $-1 + 2 \cdot 2 = 3$ for "tired". Each value gets back a seventh of this row of $dZ$.

# %% id="sevenths-weights-code"
weights, d_output = np.full((1, 7), 1 / 7), np.array([[-1.0, 2.0, 0.0]])
d_weights = d_output @ value.T
print(labelled(d_weights, rows=["dP"], columns=TOKENS))
print(labelled(7 * weights.T @ d_output, columns=("7 dV", "", "")))

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# Take **one score**, $s_{ij}$, an entry of $S = Q K^\top / \sqrt{d_k}$. Write $[l = j]$ for a number that is 1 if $l = j$, and 0
# otherwise.
#
# 1. It touches weights of row $i$, which share one normaliser, and no weight of another row.
# 2. It moves $p_{il} = e^{s_{il}} / N$, with $N = \sum_m e^{s_{im}}$, in two places: the numerator only if $l = j$, the denominator
#    always, at the rate $e^{s_{ij}}$. By the quotient rule the rate of $p_{il}$ is
#    $([l = j]\, e^{s_{il}} N - e^{s_{il}} e^{s_{ij}}) / N^2 = p_{il} ([l = j] - p_{ij})$, as in {eq}`softmax-derivative`.
# 3. The touched weights differ in $l$, so the sum runs over $l$:
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$

# %% [markdown] id="backward-softmax-sum"
# Multiply the bracket out. Of the terms with $[l = j]$ only $p_{ij}\, dP_{ij}$ is left. In the others $p_{ij}$ does not depend on $l$ and
# goes in front of the sum: $-p_{ij} \sum_l p_{il}\, dP_{il}$. That sum is the **mean of row $i$ of $dP$ under the weights of row $i$**.
# Call it $\delta_i$. Then $dS_{ij} = p_{ij} (dP_{ij} - \delta_i)$, and for all entries at once, where $\mathbf{1}$ is a column of ones that
# copies $\delta_i$ along its row,
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$
#
# Each row of this is {eq}`softmax-vector-jacobian-product`.

# %% [markdown] id="sevenths"
# Here are the sevenths. The costs are $0, -2, 4, 0, 0, 2, 3$, and their mean is $\delta = 1$. Subtract 1 from each and divide by 7:
# $-1, -3, 3, -1, -1, 1, 2$ sevenths, the numbers of the first cell. "The" has the cost 0, and that is *less than the mean*. Let its score
# rise by a small $\varepsilon$. Its weight grows, which adds nothing to the loss, and each of the six others shrinks by
# $p_{il}\, p_{ij}\, \varepsilon = \frac1{49}\, \varepsilon$. Their costs sum to 7, so to first order the loss falls by
# $\frac{7}{49}\, \varepsilon$, which is the seventh. The same holds for "because" and "it", whose cost is 0 as well.

# %% id="sevenths-figure"
cost = d_weights[0]
d_scores = (cost - cost.mean()) / 7  # all seven weights are equal
print("7 dS:", *(7 * d_scores).round(9))
print("sum: ", np.abs(d_scores.sum()).round(9))
figures.row_of_gains(TOKENS, cost, weights[0])

# %% [markdown] id="zero-sum"
# The seven numbers sum to 0, and so does every row of $dS$:
#
# $$\sum_{j=1}^{T_k} dS_{ij} = 0 \label{zero-sum-score-gradients}$$
#
# The sum is $\sum_j p_{ij}\, dP_{ij} - \delta_i \sum_j p_{ij} = \delta_i - \delta_i$, because the weights sum to 1. The softmax gives
# another reason. If all scores of a row rise by $\varepsilon$, the loss changes by $\varepsilon \sum_j dS_{ij}$ to first order; but the
# weights do not change, {eq}`softmax-shift-invariance`, so the loss does not either, and the sum is 0.

# %% [markdown] id="spot-mean"
# ### Spot the mistake: the cost of a weight
#
# "Each score gets the cost of its weight, times the weight: $dS = P \odot dP$." Take two keys with the same value 3, equal weights and
# $dZ = 1$. Then $dP = (3, 3)$, and this says $dS = (1.5, 1.5)$. But the output is 3 whatever the scores are, so $dS$ must be $(0, 0)$. The
# mistake forgets that one weight can only rise at the expense of the others.

# %% [markdown] id="which-gains"
# ## What a gradient pays attention to
#
# The mean $\delta_i$ has a shorter form. Put $dP_{il} = dZ_i \cdot v_l$ into it. The dot product is linear, so the sum over $l$ may move
# inside, and there it makes the output:
#
# $$\sum_l p_{il}\, (dZ_i \cdot v_l) = dZ_i \cdot \sum_l p_{il}\, v_l = dZ_i \cdot z_i$$
#
# So $dP_{ij} - \delta_i = dZ_i \cdot v_j - dZ_i \cdot z_i$, and {eq}`gradient-of-scores` becomes
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \key{score-gradient-against-mixture}$$

# %% [markdown] id="which-gains-mixture"
# So each value is compared with the **present mixture** $z_i$. If the output moves from $z_i$ towards $v_j$, by $t\, (v_j - z_i)$ with a
# small $t$, the loss changes by $t\, dZ_i \cdot (v_j - z_i)$ to first order. If this is negative and $p_{ij} > 0$, then a small step of the
# scores against their gradient raises $s_{ij}$.
#
# For "because", $z = (\frac37, \frac57, 0)$, and $dZ \cdot z = -\frac37 + \frac{10}7 = 1$, the mean found above.

# %% id="which-gains-code"
z = weights @ value
print("7 z:", (7 * z[0]).round(9), "  dZ . z:", (d_output[0] @ z[0]).round(9))

# %% [markdown] id="gradient-turn"
# **Your turn.** {turn}`gain-over-mixture`

# %% id="gradient-turn-code" tags=["your-turn"]
my_d_scores = ...  # your function
check("gain-over-mixture", my_d_scores)

# %% [markdown] id="gradient-turn-ours" tags=["ours"]
# ```python
# def my_d_scores(weights, output, value, d_output):
#     mixture_costs = (d_output * output).sum(axis=1, keepdims=True)
#     return weights * (d_output @ value.T - mixture_costs)
# ```

# %% [markdown] id="backward-qk"
# ## Back through the scores
#
# A score is a scaled dot product, {eq}`scaled-score`: $s_{ij} = \frac{1}{\sqrt{d_k}} \sum_c Q_{ic} K_{jc}$. Queries and keys reach the loss
# only through the scores, so $S$ takes the place of $Z$ in {eq}`gradient-collects-all-outputs`:
# $dx = \sum_{ij} dS_{ij}\, \partial s_{ij} / \partial x$.
#
# | | an entry of a query, $Q_{ic}$ | an entry of a key, $K_{jc}$ |
# |---|---|---|
# | 1. touches | the scores of its row, $s_{ij}$ for every $j$ | the scores of its column, $s_{ij}$ for every $i$ |
# | 2. moves $s_{ij}$ at the rate | $K_{jc} / \sqrt{d_k}$ | $Q_{ic} / \sqrt{d_k}$ |
# | 3. so the sum runs over | $j$ | $i$ |

# %% [markdown] id="backward-qk-sums"
# $$dQ_{ic} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} dS_{ij}\, K_{jc}, \qquad
#  dK_{jc} = \frac{1}{\sqrt{d_k}} \sum_{i=1}^{T_q} dS_{ij}\, Q_{ic} \label{query-key-gradient-entries}$$
#
# In the first sum $j$ is the last index of $dS$, as in a product; in the second $i$ is the first, so $dS$ is transposed:
#
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$
#
# So the gradient of a query is a sum of keys, each times its entry of $dS$ and $1 / \sqrt{d_k}$, and the gradient of a key is a sum of
# queries in the same way. A step against $dK$ adds to $k_j$ a multiple of each $q_i$, and a positive one where $dS_{ij} < 0$. The query
# of "because" is 0, so its row moves no key. Here are the keys, and the gradient of the query of "because":

# %% id="sevenths-keys"
query, key = QUERY[0], KEY[0]
print(labelled(key, columns=("alive", "tells", "open", "alive - tells")))
print("14 dq:", (14 * d_scores @ key / math.sqrt(4)).round(9))

# %% [markdown] id="sevenths-query"
# In the column "alive" the sum is $-3 \cdot 2 + 2 \cdot 1 = -4$, and times $\frac17$ and $\frac{1}{\sqrt 4}$ it is $-\frac4{14}$. A step
# against $dq$ moves the zero query to a multiple of $(4, -11, 3, 15)$. The query then begins to look for tokens that are alive and do not
# tell, above all for "cat", since $4 \cdot 2 + 15 \cdot 2 = 38$.

# %% [markdown] id="whole"
# ## The whole backward pass
#
# Read from the output to the input, the key formulas are the program:


# %% id="whole-code"
def backward(query, key, value, d_output):
    root = math.sqrt(query.shape[1])
    weights = softmax(query @ key.T / root)
    d_value = weights.T @ d_output
    d_weights = d_output @ value.T
    delta = (weights * d_weights).sum(axis=1, keepdims=True)
    d_scores = weights * (d_weights - delta)
    d_query = d_scores @ key / root
    d_key = d_scores.T @ query / root
    return d_query, d_key, d_value


# %% [markdown] id="batch"
# **A batch.** Attention never mixes two examples of a batch, so each has its own backward pass. But a key that all examples share touches
# the scores of all of them, so its gradient sums over the examples $b$, too:
# $dK_{jc} = \frac{1}{\sqrt{d_k}} \sum_b \sum_i dS^{(b)}_{ij}\, Q^{(b)}_{ic}$.
#
# Let two examples with one query each, $q^{(1)} = 1$ and $q^{(2)} = 3$, share two keys, both 0, and two values, 0 and 1. Then all weights
# are $\frac12$, and both outputs too. With $dZ^{(1)} = 4$ and $dZ^{(2)} = -8$, $dS$ for the first key is
# $\frac12 \cdot 4 \cdot (0 - \frac12) = -1$ and $\frac12 \cdot (-8) \cdot (0 - \frac12) = 2$, and the gradient of this key is
# $-1 \cdot 1 + 2 \cdot 3 = 5$.

# %% id="batch-code"
keys, values = np.zeros((2, 1)), np.array([[0.0], [1.0]])
for q, d_z in ((1, 4), (3, -8)):
    _, d_keys, _ = backward(np.array([[q]]), keys, values, np.array([[d_z]]))
    print("from this example the first key gets", d_keys[0])

# %% [markdown] id="fall"
# ### What a step does
#
# We take random whole numbers for $dZ$, but keep the row of "because". The loss $L = \sum_{ia} dZ_{ia} Z_{ia}$ has this $dZ$ as its
# gradient at $Z$. Each of the 77 numbers moves by $-0.1\, dx$, and so changes the loss by $-0.1\, dx \cdot dx$ to first order. Does the
# loss fall by a tenth of the sum of all squared gradients?

# %% id="fall-code"
d_output = np.random.default_rng(1).integers(-2, 3, size=(7, 3)).astype(float)
d_output[TOKENS.index("because")] = [-1, 2, 0]


def loss(query, key, value, d_output):
    return (d_output * attention(query, key, value)).sum()


ours = backward(query, key, value, d_output)
stepped = [a - 0.1 * g for a, g in zip((query, key, value), ours, strict=True)]
now = loss(query, key, value, d_output)
print(f"loss now:            {now:.2f}")
print(f"to first order:      {now - 0.1 * sum((g**2).sum() for g in ours):.2f}")
print(f"after the step:      {loss(*stepped, d_output):.2f}")

# %% [markdown] id="fall-notice"
# It does, to within .04, and the rest comes from higher-order terms. And the scores? This was a step of queries and keys, not of the
# scores. In $s_{ij} = q_i \cdot k_j / \sqrt{d_k}$ both factors move, $q_i$ by $-0.1\, dq_i$ and $k_j$ by $-0.1\, dk_j$. Multiply out: to
# first order the score changes by
#
# $$\Delta s_{ij} = -0.1\, \frac{dq_i \cdot k_j + q_i \cdot dk_j}{\sqrt{d_k}}$$

# %% [markdown] id="fall-predict"
# **Predict** for the row of "because", whose $dS$ is $-1, -3, 3, -1, -1, 1, 2$ sevenths: to first order, does every score with a minus rise
# in this step, and every score with a plus fall? Look at the keys above.

# %% id="fall-scores" tags=["predicted"]
i = TOKENS.index("because")
first_order = -0.1 * (ours[0] @ key.T + query @ ours[1].T) / 2
changes = (stepped[0] @ stepped[1].T - query @ key.T) / 2
rows = [first_order[i], changes[i]]
print(labelled(rows, ("first order", "in full"), TOKENS, digits=3))

# %% [markdown] id="fall-answer" tags=["answer"]
# In the row "first order" six scores follow their signs, and the score of "because" with itself, whose $dS$ is $-\frac17$, stands at 0: its
# query and its key are both 0. (In full it rises by .001: after the step neither is 0, and this is their product, of second order.) A step
# has only queries and keys to move, and each of them belongs to many scores. Section {section}`deeper-fall` shows scores that rise although
# their entry of $dS$ is positive.

# %% [markdown] id="differences"
# ## Checking a gradient by differences
#
# The same mistake can sit in a formula and in its program. **Differences** need the forward pass only. As in the first cell, move one
# number $x$ a step $h$ up and a step $h$ down, and look at the loss $f$:
#
# $$f'(x) \approx \frac{f(x + h) - f(x - h)}{2 h}$$
#
# As a rule, halving the step divides the error by about four, until rounding takes over. With numbers of size 1 in float64, $10^{-5}$ is a
# good step. Section {section}`deeper-step` derives both.

# %% [markdown] id="differences-turn"
# **Your turn.** {turn}`key-gradient-by-differences`

# %% id="differences-turn-code" tags=["your-turn"]
my_differences = ...  # your function
check("key-gradient-by-differences", my_differences)

# %% [markdown] id="differences-turn-ours" tags=["ours"]
# ```python
# def my_differences(query, key, value, d_output, step):
#     found = np.empty_like(key)
#     for entry in np.ndindex(key.shape):
#         up, down = key.copy(), key.copy()
#         up[entry] += step
#         down[entry] -= step
#         rise = loss(query, up, value, d_output) - loss(query, down, value, d_output)
#         found[entry] = rise / (2 * step)
#     return found
# ```

# %% [markdown] id="check-gradient"
# `check_gradient` runs such a loop over queries, keys and values with the step $10^{-5}$, and reports for each gradient whether it agrees
# to within a millionth of its largest entry. Here it checks `backward`, and then two passes with one wrong line each, drawn from the
# known mistakes.

# %% id="check-all"
rng = np.random.default_rng(3)
arrays = [rng.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2))]
d_z = rng.normal(size=(3, 2))
suspects = checking.suspects(seed=3)  # another seed draws others
for name, each in (("ours", backward), ("A", suspects[0]), ("B", suspects[1])):
    print(f"{name:5}{checking.check_gradient(each, arrays, d_z)}")

# %% [markdown] id="check-predict"
# **Predict** for A and B: in which lines of `backward` can the one mistake be? Name all that fit.

# %% id="check-predict-code" tags=["predicted"]
for name, suspect in zip("AB", suspects, strict=False):
    print(f"{name}: wrong in the line of {suspect.line}: {suspect.mistake}")

# %% [markdown] id="check-answer" tags=["answer"]
# In A, $dQ$ and $dK$ are wrong and $dV$ is right. So look at what $dQ$ and $dK$ share and $dV$ does not: `d_weights`, `delta` and
# `d_scores`. Each of the three could do this, and here it is the first; section {section}`deeper-lines` says how far they can be told
# apart. In B only $dQ$ is wrong, so it can only be the line of `d_query`.

# %% [markdown] id="check-inputs"
# Choose the inputs with care: sizes that all differ, so that no transposition fits by accident, no symmetric matrices, and more than one
# example in a batch. In July 2026 somebody found that a backward pass in the library diffusers transposed keys and values that the forward
# pass had already transposed. The outputs were right. With as many heads as positions, all shapes fitted, and the gradients were wrong by
# more than their own size ([pull request 14341](https://github.com/huggingface/diffusers/pull/14341)).

# %% [markdown] id="limits"
# ## Limits
#
# - **A gradient is about small steps.** Even if a small rise of a score lowers the loss, a rise by 5 may raise it. (Not if the loss is
#   linear in the output: with all other scores held, the other weights keep their ratios, so $z_i$ moves on the straight line towards $v_j$,
#   and a linear loss does not turn there.)
# - **What gets no weight gets no gradient**, {eq}`score-gradient-against-mixture` and {eq}`gradient-of-values`. If every query gives a key
#   weight 0 (by a mask, or by rounding), then neither the key nor its value gets a gradient.

# %% id="verify-lesson"
verify_lesson("gradients")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | values, {eq}`gradient-of-values` | {key}`gradient-of-values` | as $V$ |
# | weights, {eq}`gradient-of-weights` | {key}`gradient-of-weights` | as $P$ |
# | scores, {eq}`gradient-of-scores` | {key}`gradient-of-scores` | as $S$ |
# | one score, {eq}`score-gradient-against-mixture` | {key}`score-gradient-against-mixture` | a number |
# | queries and keys, {eq}`query-and-key-gradients` | {key}`query-and-key-gradients` | as $Q$, $K$ |

# %% [markdown] id="summary"
# ## Summary
#
# - For each entry ask which outputs it touches and how fast, and sum. The summed index says what is transposed.
# - The gradient of a score is its weight, times what this weight costs above the mean of its row. Each row of $dS$ sums to 0.
# - So a value is compared with the present mixture: $dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i)$.
# - The gradient of a query is a sum of keys, each times its entry of $dS / \sqrt{d_k}$, and the gradient of a key is a sum of
#   queries in the same way. A step moves queries and keys, so not every score follows its own gradient.
# - Differences check every gradient, in float64, on inputs without any symmetry.
#
# Now the [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb): another softmax, and batches whose keys are shared. Lesson
# {lesson}`self_attention` carries the gradients on to the matrices that make queries, keys and values.

# %% [markdown] id="deeper-fall"
# ## Deeper: a score that rises against its gradient
#
# In the step of section {section}`whole`, take the row of "it": its $dS$, the change of its scores, and
# the two parts of that change to first order.

# %% id="deeper-fall-code"
output, weights = attention(query, key, value, return_weights=True)
mixtures = (d_output * output).sum(axis=1)  # dZ_i . z_i
d_scores = weights * (d_output @ value.T - mixtures[:, None])
by_query, by_keys = -0.1 * ours[0] @ key.T / 2, -0.1 * query @ ours[1].T / 2
i = TOKENS.index("it")
parts = [d_scores[i], changes[i], by_query[i], by_keys[i]]
print(labelled(parts, ("dS", "change", "by query", "by keys"), TOKENS, digits=3))

# %% [markdown] id="deeper-fall-notice"
# The scores of "the", "because" and "it" have a plus and rise. The query would lower the first and the last a little, but each key serves
# seven queries, and the move of the keys raises all three.

# %% [markdown] id="deeper-vanishes"
# ## Deeper: when a score hardly moves
#
# By {eq}`score-gradient-against-mixture`, $dS_{ij}$ is zero if $p_{ij} = 0$ or if $dZ_i \cdot v_j = dZ_i \cdot z_i$, and in no other case.
# The second holds if $p_{ij} = 1$, because then $z_i = v_j$. How small is $dS_{ij}$ *near* these weights, 0 and 1? The weights sum to 1, so
# $dP_{ij} = \sum_l p_{il}\, dP_{ij}$, and
#
# $$dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$$
#
# The term with $l = j$ is 0. In the others no difference is larger in size than the range of the row, from its smallest entry to its
# largest, and their weights sum to $1 - p_{ij}$. So the size of the sum is at most $1 - p_{ij}$ times the range, and with the factor
# $p_{ij}$ of $dS_{ij}$
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$

# %% [markdown] id="vanishes-notice"
# So in a plain gradient step of the scores a score hardly moves if its weight is very small or very near 1, unless the range of $dP$
# makes up for it. Here are all rows of the sentence, with the $dZ$ of the step above.

# %% id="all-rows-figure"
print(labelled([*d_output.T], rows=("dZ 1", "dZ 2", "dZ 3"), columns=TOKENS))
print(labelled([mixtures], rows=["dZ . z"], columns=TOKENS, digits=3))
figures.all_rows(TOKENS, weights, d_scores)

# %% [markdown] id="all-rows-notice"
# The weight alone does not decide. In the row of "was", "tired" has a weight of only .08 and gets .14, almost as much in size as "cat" with
# its weight of .60. In the row of "sat", "cat" has the weight .92, and its $dS$ rounds to 0: its cost is 2, and that of the mixture 2.005.

# %% [markdown] id="gains-predict"
# Now four values with one feature, $-1, 0, 1, 2$, and weights .4, .3, .2, .1, so that $z = 0$. The loss wants the output larger: $dZ = -1$.
# **Predict** the sign of each $dS_j$, and which score or scores rise fastest in a step of the scores against the gradient.

# %% id="gains-figure" tags=["predicted"]
p, v = np.array([0.4, 0.3, 0.2, 0.1]), np.array([-1.0, 0.0, 1.0, 2.0])
figures.gains(v, p, p * (v - p @ v))  # the steps are minus dS, for dZ = -1

# %% [markdown] id="gains-answer" tags=["answer"]
# The figure shows steps, which are $-dS$, so the signs of $dS$ are $+, 0, -, -$. Two scores rise equally fast, those of 1 and 2: the
# value 2 is twice as far above the mixture, but it has half the weight.

# %% [markdown] id="card-question"
# The card takes these four values and the loss $-z$, in steps of size 1; the first three scores begin at 0. How much longer does the best
# value take if it starts with little weight? Start $s_4$ at 0, $-1$, $-2$ and $-3$, and count the steps until it has more than half of
# the weight.

# %% id="explorable"
figures.steps_explorable()

# %% [markdown] id="explorable-notice"
# <details><summary>What you should see</summary>
#
# From 0, $-1$, $-2$ and $-3$ it takes 3, 8, 54 and 1108 steps: the last number is almost 370 times the first. The score of the best value
# rises in every one of these steps, and yet from $-3$ its weight *falls* in all steps from the second to the 346th, from .016 to .0012. A
# weight grows only if its score rises by more than the mean of its row, and the value 1, with its large weight, keeps that mean higher.
#
# </details>

# %% [markdown] id="autograd"
# ## Deeper: the same by autograd
#
# The autograd of torch records every operation that a tensor with `requires_grad=True` goes into, and then goes back through the record,
# with a rule for each.

# %% id="autograd-code"
leaves = [torch.tensor(array, requires_grad=True) for array in (query, key, value)]
p = torch.softmax(leaves[0] @ leaves[1].T / math.sqrt(4), dim=1)
(p @ leaves[2]).backward(torch.tensor(d_output))
for name, tensor, gradient in zip("QKV", leaves, ours, strict=True):
    print(f"autograd agrees on d{name}:", np.allclose(tensor.grad, gradient))
theirs = attention_backward(query, key, value, d_output)
print("and so does the package:", all(map(np.allclose, ours, theirs)))

# %% [markdown] id="touched-question"
# ## Deeper: what an entry touches, seen
#
# The next cell moves one entry of $V$, of $K$ and of $Q$, and marks which features of the seven outputs change.

# %% id="touched"
before = attention(query, key, value)
cat, it = TOKENS.index("cat"), TOKENS.index("it")
for name, place, token in (("V", 2, cat), ("K", 1, cat), ("Q", 0, it)):
    moved = [query.copy(), key.copy(), value.copy()]
    moved[place][token, 0] += 0.1
    changed = attention(*moved) != before
    print(f"entry 0 of {name} of {TOKENS[token]} touches:")
    for reader, features in zip(TOKENS, changed, strict=True):
        print(f"   {reader:8}", *np.where(features, "x", "."))
print("the queries:")
print(labelled(query, columns=("entry 0", "1", "2", "3")))

# %% [markdown] id="touched-notice"
# One entry of a value touches one column of $Z$, one entry of a query touches one row, and one entry of a key may touch all of $Z$: here
# all but two rows, whose queries have a 0 in that entry.

# %% [markdown] id="by-index"
# With three loops, one for each index, $dK$ comes out as the product says:

# %% id="by-index-code"
by_index = np.zeros((7, 4))
for j in range(7):
    for c in range(4):
        for i in range(7):  # the touched scores: those of column j
            by_index[j, c] += d_scores[i, j] * query[i, c] / math.sqrt(4)
print("dK, index by index, agrees:", np.allclose(by_index, ours[1]))

# %% [markdown] id="deeper-covariance"
# ## Deeper: the gradient of a query is a covariance
#
# Put {eq}`score-gradient-against-mixture` into {eq}`query-key-gradient-entries`. With $\bar k = \sum_j p_{ij} k_j$,
#
# $$dq_i = \frac{1}{\sqrt{d_k}} \sum_j p_{ij}\, (k_j - \bar k)\, \bigl( (v_j - z_i) \cdot dZ_i \bigr)$$
#
# because $\sum_j p_{ij} (v_j - z_i) = 0$, so $\bar k$ may be subtracted from each key. It is the covariance of keys and values under row
# $i$, applied to $dZ_i$ and divided by $\sqrt{d_k}$: the transpose of the slope {eq}`output-derivative-by-query`, applied to $dZ_i$.

# %% id="deeper-covariance-code"
row = TOKENS.index("it")
p, mixture = weights[row], output[row]
mean_key = p @ key
covariance = np.zeros((4, 3))
for j in range(7):
    covariance += p[j] * np.outer(key[j] - mean_key, value[j] - mixture)
print("by the covariance:", covariance @ d_output[row] / math.sqrt(4))
print("by the program:   ", ours[0][row])

# %% [markdown] id="cost"
# ## Deeper: what it costs, and what has to be kept
#
# Forward, two matrix products take $F = 2\, T_q T_k (d_k + d_v)$ operations, {eq}`attention-flops`. Backward there are four, because
# each product has two factors, and each factor needs a gradient. $dQ = dS\, K$ and $dK = dS^\top Q$ take $2\, T_q T_k d_k$ each, as much as
# $Q K^\top$; $dP$ and $dV$ take $2\, T_q T_k d_v$ each, as much as $P V$:
#
# $$F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F \label{backward-flops-weights-kept}$$
#
# Our program does a fifth product, since it computes the weights again. To avoid that, keep them, together with $Q$, $K$ and $V$, and with
# $Z$ if $\delta_i$ is computed as $dZ_i \cdot z_i$:
#
# $$\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k \label{numbers-kept-for-gradients}$$
#
# For $T_q = T_k = T$ and $d_k = d_v = d$, $P$ has $T^2$ numbers, $T / (4 d)$ times as many as $Q$, $K$, $V$ and $Z$
# together.

# %% id="cost-code"
T, d = 8192, 64
print("P against Q, K, V and Z:", T * T / (4 * T * d), "times")
gflop = costs.attention_flops(T * T, d, d) / 1e9
print(f"forward {gflop:.0f} GFLOP, and twice that backward")
print(f"P takes {2 * T * T / 1e6:.0f} MB in 16-bit numbers, in each head of each layer")

# %% [markdown] id="cost-answer"
# FlashAttention keeps no weights. It computes them again in the backward pass, from queries and keys: lesson {lesson}`flash`.

# %% [markdown] id="deeper-mask"
# ## Deeper: hidden keys, and what is added to the scores
#
# Lesson {lesson}`masking` hides a key from a query by setting the score of the pair to $-\infty$. If the query sees some other key, then
# $p_{ij} = 0$, whatever finite numbers this key and its value hold, and so $dS_{ij} = 0$ exactly. A key that is hidden from all queries
# has $dK_j = dV_j = 0$. But a gradient that *comes out* as 0 does not prove that there is no influence: a score 800 below the largest gives
# a weight that is rounded to 0.

# %% id="deeper-mask-code"
seen = padding_mask(np.array(5), 7)  # the last two keys are hidden
_, d_key, d_value = attention_backward(query, key, value, d_output, mask=seen)
for token, of_key, of_value in zip(TOKENS, d_key, d_value, strict=True):
    print(f"{token:8} gradient of key: {of_key.any()}   of value: {of_value.any()}")

# %% [markdown] id="deeper-bias"
# Each entry of a **bias** $B$ that is added to the scores touches one score, at the rate 1, so $dB = dS$. If one number of $B$ is used
# for many pairs, such as one for each distance, it touches all of them, and its gradient is the sum of their $dS_{ij}$.

# %% [markdown] id="deeper-lines"
# ## Deeper: which of three lines
#
# A mistake in `d_weights`, `delta` or `d_scores` spoils $dQ$ and $dK$ and leaves $dV$ right. The rows of $dK$ tell more. Every row of $dS$
# sums to 0, {eq}`zero-sum-score-gradients`, and so the rows of $dK$ add up to 0 as well:
#
# $$\sum_j dK_j = \frac{1}{\sqrt{d_k}} \sum_i \Bigl( \sum_j dS_{ij} \Bigr)\, q_i = 0$$
#
# Here is this sum for A and for a third pass, C.

# %% id="deeper-lines-code"
for name, each in (("A", suspects[0]), ("C", suspects[2])):
    total = np.abs(each(*arrays, d_z)[1].sum(axis=0)).max()  # the rows of dK, added up
    print(f"{name}: {checking.check_gradient(each, arrays, d_z)}, sum {total:.1f}")

# %% [markdown] id="deeper-lines-predict"
# **Predict** for C: in which lines of `backward` can the mistake be?

# %% id="deeper-lines-answer-code" tags=["predicted"]
print(f"C: wrong in the line of {suspects[2].line}: {suspects[2].mistake}")

# %% [markdown] id="deeper-lines-answer" tags=["answer"]
# It can be `delta` or `d_scores`, but not `d_weights`: whatever stands in $dP$, the rows of $dS$ sum to 0 if the two lines behind it are
# right. Differences cannot tell `delta` and `d_scores` apart, since only the line of `d_scores` uses `delta`. For A the sum 0 points to
# `d_weights`, but does not prove it: if the sign of all of `d_scores` is turned round, the sum is 0 as well.

# %% [markdown] id="deeper-step"
# ## Deeper: the best step of a difference
#
# How good is a central difference? Let $f$ have five continuous derivatives near $x$, and write $O(h^n)$ for a rest that is at most a
# constant times $h^n$ for all small steps $h$. Taylor's expansion says
#
# $$f(x \pm h) = f(x) \pm h f'(x) + \tfrac{h^2}{2} f''(x) \pm \tfrac{h^3}{6} f'''(x) + \tfrac{h^4}{24} f''''(x) + O(h^5)$$
#
# In the difference of the two the even powers cancel. Divide by $2h$:
#
# $$\frac{f(x + h) - f(x - h)}{2\, h} = f'(x) + \frac{h^2}{6}\, f'''(x) + O(h^4) \label{central-difference-error}$$
#
# So half a small step leaves about a quarter of the error, unless $f'''(x) = 0$.

# %% [markdown] id="deeper-step-rounding"
# But each loss is rounded. Count only the last rounding: a loss of
# size $F$ is stored with an error up to $\varepsilon F$, where $\varepsilon = 2^{-53} \approx 10^{-16}$ in float64 and $2^{-24} \approx 6
# \cdot 10^{-8}$ in float32. The errors of both losses together, divided by $2h$, can reach $\varepsilon F / h$. With $M > 0$ for the size
# of $f'''$, and without the roundings on the way to the loss, the error is at most about $E = M h^2 / 6 + \varepsilon F / h$. The best
# step lies where the slope $\frac{M h}{3} - \frac{\varepsilon F}{h^2}$ is 0:
#
# $$E = \frac{M h^2}{6} + \frac{\varepsilon F}{h}: \qquad \frac{\partial E}{\partial h} = 0
#  \quad \Longleftrightarrow \quad h = \Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/3} \label{best-difference-step}$$

# %% [markdown] id="deeper-step-predict"
# With $F = M = 1$ that is $7 \cdot 10^{-6}$ in float64. **Predict** the best power of ten in float32.

# %% id="step-code" tags=["predicted"]
exact = attention_backward(*arrays, d_z)[1]


def errors(kind, steps):
    q, k, v = (array.astype(kind) for array in arrays)
    found = []
    for step in steps:  # each entry of the keys is moved in an example of its own
        nudge = (step * np.eye(20)).reshape(20, 5, 4).astype(kind)
        rise = attention(q, k + nudge, v) - attention(q, k - nudge, v)
        # q and v serve all 20; outputs are rounded here, and their sum is in float64
        found.append((d_z * rise).sum(axis=(1, 2)) / (2 * step))
    return np.abs(np.array(found) - exact.ravel()).mean(axis=1)


steps, kinds = 10.0 ** -np.arange(0, 10), ("float64", "float32")
figures.difference_errors(steps, {kind: errors(kind, steps) for kind in kinds})

# %% [markdown] id="step-answer" tags=["answer"]
# It is $10^{-2}$. The estimate $(3 \cdot 6 \cdot 10^{-8})^{1/3}$ is about $0.0056 = 10^{-2.25}$, on the logarithmic axis nearer to
# $10^{-2}$ than to $10^{-3}$. (That fits the curve, but is no proof: here $F$ and $M$ are other numbers, and the outputs are rounded, not
# the loss.)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - S. Linnainmaa (1976), *Taylor expansion of the accumulated rounding error*, BIT. Collecting from the end is called *reverse mode*, first in
#   his master's thesis of 1970. He asked how much each rounding error of a
#   long calculation adds to the error of the result: our question, with a rounding error in the place of $\varepsilon$.
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences with a step of $10^{-6}$, made for float64.
