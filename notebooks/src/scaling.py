# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# Lesson {lesson}`softmax` divided the scores of "it" by 2 and promised a reason. The reason is how large the dot product of two random
# vectors becomes. We compute that, give up the assumptions one after the other, and see which part of it softmax notices. At the end we
# train a small layer with the division and without, and ask why the second is slower.
#
# **Afterwards you can** derive the variance of a score under assumptions of your own, and tell where the usual scale misses. **You need**
# lesson {lesson}`softmax`, expectations, variances and gradient descent. **Time:** 60 minutes, ten more for the two turns, without the
# *Deeper* sections and the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% [markdown] id="hook"
# ## One score by hand
#
# In the sentence `the cat sat because it was tired`, "it" asks with the query $q = (2, 0, -2, 2)$, and "cat" answers with the key
# $k = (2, 0, 0, 2)$. Multiply entry by entry and add:
#
# $$q \cdot k = 2 \cdot 2 + 0 \cdot 0 + (-2) \cdot 0 + 2 \cdot 2 = 8, \qquad \frac{q \cdot k}{\sqrt{d_k}} = \frac{8}{\sqrt{4}} = 4$$
#
# There are $d_k = 4$ entries, so the divisor is 2. Here are all scores of "it", and what softmax makes of them.

# %% id="hook-code"
import numpy as np

keys = {
    "the": [0, 0, 1, 0],
    "cat": [2, 0, 0, 2],
    "sat": [0, 2, 0, -2],
    "because": [0, 0, 0, 0],
    "it": [0, 0, 2, 0],
    "was": [0, 1, 0, -1],
    "tired": [1, 2, 0, -1],
}
dots = np.array([*keys.values()]) @ [2, 0, -2, 2]  # with the query of "it"
weights = [np.exp(dots / c) / np.exp(dots / c).sum() for c in (2, 1)]
print("key      q . k   weight, divided by 2   not divided")
for row in zip(keys, dots, *weights, strict=True):
    print("{:8s} {:5d} {:16.4f} {:19.4f}".format(*row))

# %% [markdown] id="hook-notice"
# With or without the division, "cat" gets almost all the weight of "it". The difference shows in "because", whose score is 0: the weight of
# "cat" is $e^{4} \approx 55$ times that of "because" with the division, and $e^{8} \approx 2981$ times without. So dividing the scores by 2
# takes the square root of every ratio of weights.

# %% [markdown] id="where"
# In the machine of the course, the division is a small box before the softmax.

# %% id="setup"
import math

import torch

from attn_course import check, reference, show, verify
from attn_course.lessons.scaling import experiments, figures
from attn_course.reference import dot_scores, scaled_dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(5)

# %% id="machine"
figures.machine()

# %% [markdown] id="hook-question"
# We chose these numbers by hand. In a fresh layer they are random, and a query often has 64 or 128 entries, so the question becomes: **how
# large is the dot product of two random vectors?**

# %% [markdown] id="coins"
# ## Coins
#
# We start with the simplest random vectors: each entry of $q$ and of $k$ is a fair coin, $+1$ or $-1$, and all are tossed independently. A
# product $q_i k_i$ is then a fair coin too, because the two entries agree half of the time, and so $q \cdot k$ is a sum of $d_k$
# independent coins. For $d_k = 3$, the eight outcomes are equally likely:
#
# | sum | $-3$ | $-1$ | $1$ | $3$ |
# |---|---|---|---|---|
# | outcomes | 1 | 3 | 3 | 1 |
#
# The mean is 0, and the mean square is $(9 + 3 \cdot 1 + 3 \cdot 1 + 9) / 8 = 24 / 8 = 3$. In the same way you find 1 for $d_k = 1$ and 2
# for $d_k = 2$ (sums $-2, 0, 0, 2$).

# %% [markdown] id="coins-predict"
# The root of the mean square says how far from 0 a typical score lies. **Predict** it for $d_k = 16$ and for $d_k = 1024$.


# %% id="coins-code" tags=["predicted"]
def coin_chances(d_k):
    chances = np.ones(1)
    for _ in range(d_k):  # one coin more: half go up by 1, half go down by 1
        chances = np.convolve(chances, [0.5, 0.0, 0.5])
    return np.arange(-d_k, d_k + 1), chances


for d_k in (1, 3, 16, 1024):
    values, chances = coin_chances(d_k)
    print(f"d_k = {d_k:4d}   typical score {np.sqrt(chances @ values**2):6.3f}")

# %% [markdown] id="coins-answer" tags=["answer"]
# A typical score is 4 at $d_k = 16$, and at $d_k = 1024$ it is only 8 times as large, 32, because one more coin turns a sum $s$ into
# $s + 1$ or $s - 1$, each half of the time, and the mean of $(s + 1)^2$ and $(s - 1)^2$ is $s^2 + 1$. So each coin adds exactly 1 to the
# mean square. Yet for softmax 32 is a lot, since two keys with the scores 32 and $-32$ have weights in the ratio $e^{64}$.

# %% [markdown] id="strip"
# What does softmax make of such scores? The card draws 64 queries and 64 keys with standard normal entries. Move $d_k$, and watch the
# largest weights in the second picture.

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="strip-notice"
# <details><summary>What you should see</summary>
#
# Without the division, one of the 64 keys gets 0.64 of the weight on average at $d_k = 16$ and 0.97 at 1024, and chance alone decides
# which. Divided by $\sqrt{d_k}$, the largest weight is 0.11 on average at both widths, a soft choice.
#
# </details>

# %% [markdown] id="mean"
# ## The variance of a score
#
# But why does the divisor have a root? **The usual assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and
# variance 1, of any distribution. Two rules are enough: the mean of a sum is the sum of the means, and the mean of a product of
# *independent* numbers is the product of their means.
#
# **One product.** Its mean is $\mathbb{E}[q_i]\, \mathbb{E}[k_i] = 0 \cdot 0 = 0$, so its variance is its mean square. The squares of
# independent numbers are independent too, so this is $\mathbb{E}[q_i^2]\, \mathbb{E}[k_i^2] = 1 \cdot 1 = 1$.
#
# **Their sum.** Its mean is 0 too, so again we need the mean square. With a second index, every pair of products occurs:
#
# $$(q \cdot k)^2 = \Bigl( \sum_i q_i k_i \Bigr) \Bigl( \sum_j q_j k_j \Bigr) = \sum_i \sum_j (q_i k_i) (q_j k_j)$$

# %% [markdown] id="usual"
# For $i \ne j$ the two products are independent and have mean 0, so the mean of their term is 0, while for $i = j$ it is 1, the mean square
# of one product. As with coins, only these $d_k$ terms are left:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \key{variance-of-a-score}$$
#
# If the entries have the standard deviations $\sigma_q$ and $\sigma_k$ instead of 1, each of the $d_k$ terms is $\sigma_q^2\, \sigma_k^2$:
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \label{score-variance-from-deviations}$$

# %% id="usual-verify"
verify("variance-of-a-score", "score-variance-from-deviations")

# %% [markdown] id="scale"
# ## The scale
#
# Now we can choose the divisor. A factor $c$ multiplies a variance by $c^2$, so to bring the variance $d_k$ back to 1 we need
# $c^2 = 1 / d_k$, and this is where the root comes from. Under the usual assumption, then,
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$
#
# What would other divisors do? In a model of $d_{\text{model}}$ features with $h$ heads (lesson {lesson}`heads`),
# $d_k = d_{\text{model}} / h$. Put $c = 1 / d_k$ and $c = 1 / \sqrt{h\, d_k}$ into $c^2 d_k$:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h} \label{variance-under-wrong-scales}$$
#
# Taking $d_{\text{model}}$ for $d_k$ is a mistake, but leaving out the root can be deliberate (Deeper section {section}`correlated`).

# %% [markdown] id="arrays"
# In arrays, all scores are `Q @ K.swapaxes(-1, -2)`. (`K.T` would reverse the batch axes too.) PyTorch's `scaled_dot_product_attention`
# divides by $\sqrt{d_k}$ unless you pass a `scale`.

# %% id="arrays-code"
Q, K = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 5, 7))  # 2 examples, d_k = 7
weights = softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(7))
V = np.stack([np.eye(5), np.eye(5)])  # with these values the output is the weights
theirs = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (Q, K, V)))
print("PyTorch's weights agree with ours:", np.allclose(weights, theirs))

# %% id="scale-verify"
verify("scaled-score-variance", "variance-under-wrong-scales")

# %% [markdown] id="one-hot"
# **What large scores do to gradients.** By {eq}`softmax-jacobian` the derivatives of the weights $w$ with respect to the scores are
# $J = \mathrm{diag}(w) - w\, w^\top$, with the entries $w_i (1 - w_i)$ on the diagonal and $-w_i w_j$ beside it. Once one key has nearly
# all the weight, every $w_i$ is near 0 or 1, and of two weights at least one is near 0, so all entries of $J$ have a factor near 0. The
# dots in the third picture of the card (section {section}`coins`) show how much $J$ can stretch a change: at $d_k = 1024$, 46 of 64 lie
# below 0.01 without the division, and none with it.

# %% [markdown] id="general"
# ## When entries have means or move together
#
# Does the variance stay $d_k$ if the entries are not independent? Let both entries of $q$ be *one* coin $a$, and both entries of $k$ one
# coin $b$. Then $q \cdot k = 2 a b$ is $2$ or $-2$, so its variance is 4, not $d_k = 2$, because the terms with $i \ne j$ no longer vanish.
#
# So we keep only that $q$ and $k$ are **independent of each other**, with finite variances. If their entries have the means $(m_q)_i$ and
# $(m_k)_i$, the two rules give
#
# $$\mathbb{E}[q \cdot k] = m_q \cdot m_k \label{mean-of-a-score}$$
#
# For the variance, write each term of the double sum as $q_i q_j$ times $k_i k_j$. These two are independent, so the term has the mean
# $\mathbb{E}[q_i q_j]\, \mathbb{E}[k_i k_j]$.

# %% [markdown] id="entries"
# What is $\mathbb{E}[q_i q_j]$? The **covariance** of two entries is defined as $(S_q)_{ij} = \mathbb{E}[q_i q_j] - (m_q)_i (m_q)_j$, which
# for $i = j$ is the variance of the entry. So
#
# $$\mathbb{E}[q_i q_j]\, \mathbb{E}[k_i k_j] = \bigl( (S_q)_{ij} + (m_q)_i (m_q)_j \bigr) \bigl( (S_k)_{ij} + (m_k)_i (m_k)_j \bigr)$$
#
# Multiplied out, these are four products. The last one, summed over $i$ and $j$, is
# $\sum_i (m_q)_i (m_k)_i \sum_j (m_q)_j (m_k)_j = (m_q \cdot m_k)^2$. That is the square of the mean, which
# $\mathrm{Var}[x] = \mathbb{E}[x^2] - \mathbb{E}[x]^2$ subtracts, so three products are left:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} + (m_k)_i (m_k)_j (S_q)_{ij} \bigr)
# \key{score-variance-by-entries}$$
#
# Under the usual assumption only the $d_k$ products $(S_q)_{ii} (S_k)_{ii} = 1$ are left.

# %% id="mean-verify"
verify("mean-of-a-score", "score-variance-by-entries")

# %% [markdown] id="turn-correlated"
# **Your turn.** Each entry still has mean 0 and variance 1, but the entries of $q$ move together: any two *different* ones have the
# covariance $\rho$. The same holds for $k$, and $q$ is still independent of $k$. Start from {eq}`score-variance-by-entries` and write a
# formula in LaTeX for $v = \mathrm{Var}[q \cdot k]$ with `d_k` and `\rho`, as a string: `r"..."`. (At $\rho = 1$ and $d_k = 2$ it must
# give the 4 above.)

# %% id="turn-correlated-code" tags=["your-turn"]
my_variance_formula = ...  # r"..."
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="turn-correlated-after" tags=["ours"]
# The means are 0, so only $(S_q)_{ij} (S_k)_{ij}$ is left. Each of the $d_k$ terms with $i = j$ is $1 \cdot 1$, and each of the other
# $d_k (d_k - 1)$ is $\rho \cdot \rho$, so together $v = d_k + d_k (d_k - 1)\, \rho^2$. Hence $v / d_k = 1 + (d_k - 1)\, \rho^2$, which
# grows with $d_k$ unless $\rho = 0$.

# %% [markdown] id="row"
# ## What softmax sees: one row
#
# Does softmax notice all of this variance? It never compares the scores of two queries, but takes one row, one query $q$ with all its keys,
# and a shift of the whole row changes nothing, {eq}`softmax-shift-invariance`. So the spread that matters is that **within a row**.
#
# In the smallest example the vectors have one entry. Both keys are 1 and the queries $1$ and $-1$, so the rows of scores are (1, 1) and
# $(-1, -1)$. The variance of all four is 1, yet within a row it is 0, and both rows of weights are (0.5, 0.5).

# %% [markdown] id="row-fixed"
# **One row.** Here $q$ is fixed and only the key is random. If we treat $q$ as a random vector that never varies, with covariance 0 and
# mean $q$, one sum of {eq}`score-variance-by-entries` is left:
#
# $$\mathrm{Var}_k[q \cdot k] = \sum_{i,\,j} q_i q_j\, (S_k)_{ij}$$
#
# **The average row.** Average over the queries, with $\mathbb{E}[q_i q_j] = (S_q)_{ij} + (m_q)_i (m_q)_j$ as before:
#
# $$\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)
# \key{spread-within-a-row}$$
#
# The sum with $m_k$ is gone, because what all keys have in common shifts whole rows, and softmax is blind to that.

# %% id="row-verify"
verify("spread-within-a-row")

# %% [markdown] id="spot-total"
# ### Spot the mistake: "`scores.var()` says how sharp the softmax is"
#
# All entries are independent, and $d_k = 16$. In layer A the queries are standard normal, and the keys have mean 1 and standard deviation
# 0.2. Layer B has A's keys for queries, and A's queries for keys. So covariances of different entries are 0, and each sum over $i$ and $j$
# is a sum of 16 equal terms. **Predict** for A and for B, after the scale: the variance of all scores, and the variance within a row.

# %% id="spot-total-code" tags=["predicted"]
wide, narrow = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
for name, query, key in (("A", wide, narrow), ("B", narrow, wide)):
    scores = scaled_dot_scores(query, key)
    within = scores.var(axis=1).mean()
    print(f"layer {name}   all scores {scores.var():.2f}   within a row {within:.2f}")
figures.rows_of_scores(scaled_dot_scores(wide[:8], narrow[:12]))  # of layer A

# %% [markdown] id="spot-total-answer" tags=["answer"]
# Over all scores the variance is 1.04 in both layers (our sample of 2,000 comes within 2 percent). For A, the three sums of
# {eq}`score-variance-by-entries` are $16 \cdot 1 \cdot 0.04 = 0.64$, then 0, because $m_q = 0$, and $16 \cdot 1 \cdot 1 \cdot 1 = 16$.
# Divided by 16 they are 0.04, 0 and 1, of which softmax sees the first two alone, so A's weights are nearly equal. In B the means belong to
# the queries, so the second sum is 16, the third is 0, and all of the 1.04 lies within the rows. `scores.var()` cannot tell A from B.

# %% [markdown] id="reparametrise"
# ## What the scale is not
#
# Does the scale make a new kind of model? It does not if only the dot product follows $W_Q$, because the factor can be taken into the
# weights: with $W' = c\, W_Q$, scores without a scale are those of $W_Q$ with it, $x W' K^\top = c\, x W_Q K^\top$. (A bias takes the
# factor too.) The authors of T5 did just that when they left the division out and started $W_Q$ smaller by a factor $\sqrt{d_k}$.

# %% [markdown] id="chain"
# Such a twin has the same scores at the start, but does it learn in the same way? Take one step of gradient descent, and write $W$ for
# $W_Q$. Since the loss $\mathcal{L}$ sees $W$ only through $c W = W'$, the chain rule gives
# $\nabla_W \mathcal{L}(c W) = c\, \nabla \mathcal{L}(W')$. Put that into the step:
#
# $$c\,\bigl( W - \eta\, c\, \nabla \mathcal{L}(W') \bigr) = c\,W - c^2\, \eta\, \nabla \mathcal{L}(W')$$

# %% [markdown] id="chain-together"
# One factor $c$ comes from the gradient, and the other is there because $cW$ moves $c$ times as far as $W$. In one line,
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \key{scale-as-reparametrisation}$$
#
# The twin, however, moves its $W'$ by $\eta\, \nabla \mathcal{L}(W')$. At $d_k = 64$, where $c^2$ is $1/64$, its step is 64 times as long
# at the same step size. **The start is the same, but under gradient descent with one step size the training is different.** (Adam behaves
# differently: the Deeper section {section}`twins`.)

# %% id="twins-verify"
verify("scale-as-reparametrisation")

# %% [markdown] id="slow"
# ## Is the unscaled start slower, and why?
#
# We looked at one step, but what does the division do over a whole training run? Vaswani et al. (2017) gave their reason with care: "We suspect
# that for large values of $d_k$, the dot products grow large in magnitude, pushing the softmax function into regions where it has extremely
# small gradients".

# %% [markdown] id="task"
# **A small task.** An example has 16 items of 16 random numbers, each with a value of 4 numbers. The query is one of the items, multiplied
# by an orthogonal matrix that is the same in all examples, and the output should be the value of that item. A layer learns $W_Q$ and $W_K$
# with the squared error, and it has learnt once the right item has the largest weight in more than 90 % of new examples.

# %% id="live-layer"
rotation = torch.tensor(np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16)))[0])


def lookup(w_query, w_key, divisor, rng):
    # The right item is the first, but the layer does not know the order.
    item = torch.tensor(rng.normal(size=(32, 16, 16)))  # 32 new examples
    value = torch.tensor(rng.normal(size=(32, 16, 4)))
    query, key = item[:, :1] @ rotation @ w_query, item @ w_key
    return (query @ key.mT / divisor).softmax(dim=-1), value


def squared_error(weights, value):
    return (weights @ value - value[:, :1]).square().mean()


# %% id="live-code"
def steps_needed(divisor, step_size, loss=squared_error):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(2, 16, 64)) / 4  # of W_Q and W_K, with d_k = 64
    w_query, w_key = (torch.tensor(one, requires_grad=True) for one in start)
    optimizer = torch.optim.SGD([w_query, w_key], step_size)
    for step in range(60):
        weights, value = lookup(w_query, w_key, divisor, rng)
        if (weights.argmax(dim=-1) == 0).double().mean() > 0.9:
            return step
        optimizer.zero_grad()
        loss(weights, value).backward()
        optimizer.step()
    return "> 60"


# %% id="live-steps"
for size in (0.4, 1.6, 6.4):
    scaled, unscaled = (steps_needed(divisor, size) for divisor in (8, 1))
    print(f"step size {size}   steps: scaled {scaled:>4}, unscaled {unscaled:>4}")

# %% [markdown] id="live-notice"
# Within 60 steps, the unscaled layer learns at the step size 0.4 only, but there it is the faster one. A fair comparison therefore gives
# each layer its best step size. We tried eight step sizes for SGD and seven for Adam, and tested on 512 examples. For each of
# three seeds, these are the fewest steps that any of them needed:

# %% id="task-code"
record = experiments.SCALE.load()  # stored
for name in ("SGD", "Adam"):
    for kind in ("scaled", "unscaled"):
        steps = record.values("best", name, "64", "squared error", kind)
        print(f"{name:4s}  d_k = 64  {kind:8s}  steps {steps}")

# %% [markdown] id="task-notice"
# So with the best step size for each, the unscaled layer is slower in this task. Why?

# %% [markdown] id="pull"
# **One query.** By {eq}`softmax-vector-jacobian-product`, the gradient $g = J a$ of one query's loss with respect to its scores (after the
# division) is
#
# $$g_j = w_j \Bigl( a_j - \sum_l w_l\, a_l \Bigr), \qquad a_j = \frac{\partial \mathcal{L}}{\partial w_j}$$
#
# Let the values be single numbers, $o = \sum_j w_j v_j$ the output, and item 1 the right one, so that the loss is $(o - v_1)^2$. Since
# $\partial o / \partial w_j = v_j$, we have $a_j = 2\,(o - v_1)\,v_j$. Take the values 1, 0 and $-1$, and two examples in which the right
# item has, by chance, the smallest dot product.

# %% id="pull-code"
value = np.array([1.0, 0.0, -1.0])
for dots in ([0, 8, 7], [0, 12, 4]):
    for name, divisor in (("unscaled", 1), ("scaled", 8)):  # d_k = 64
        w = softmax(np.array(dots) / divisor)
        a = 2 * (w @ value - value[0]) * value
        g = w * (a - w @ a)
        length = np.linalg.norm(g)
        print(f"{dots!s:10} {name:8s}  length {length:.4f}  direction {g / length}")

# %% [markdown] id="pull-notice"
# The **part** of $g$ that pulls the right item up is $-g_1 / \lVert g \rVert$, the first entry of the direction with its sign turned.
# Unscaled, this part is tiny, because $w_1$ is small even beside the second largest weight, $w_3$. We call that a **weak pull**. The first
# query still has a long $g$, which mostly pushes the two wrong items apart, but the second is also **silent**: one item has nearly all the
# weight, so $J$ is near 0, and all of $g$ with it.

# %% [markdown] id="silent"
# How common is that? We call a query silent if its $g$ is shorter than 0.01, and look at 2,048 queries of fresh layers with $d_k = 64$. The
# last column is the mean of the part $-g_r / \lVert g \rVert$, where $r$ is the right item.

# %% id="silent-code"
for kind in ("scaled", "unscaled"):
    names = ("silent", "silent and right", "pull, equal lengths")
    found = [record.values("first", "64", kind, name).mean() for name in names]
    found[2] /= experiments.LENGTH  # stored with this length; now the part of g
    said = "{:8s}   silent {:.3f}   silent and right {:.3f}   part {:.3f}"
    print(said.format(kind, *found))

# %% [markdown] id="slow-suspects"
# So there are three suspects: **the weak pull, the silence,** and a few **long** $g$, which may force a step size that is too small for all
# the others. To tell them apart, we train again and change the lengths, but no direction, so a weak pull stays weak:
#
# - **long ones cut**: a $g$ longer than 0.3 gets the length 0.3;
# - **silent ones raised**: a $g$ shorter than 0.01 gets the length 0.3;
# - **equal lengths**: every $g$ gets the length 0.3, so that only the weak pull is left.

# %% [markdown] id="slow-predict"
# **Predict** for each, at $d_k = 64$: does the unscaled layer stay far behind the scaled one, or does it nearly catch up? (Remember that
# more than 90 % of the queries must become right, and compare with the shares above.)

# %% id="slow-code" tags=["predicted"]
figures.best_steps([found["best"] for found in record.results], widths=(64,))

# %% [markdown] id="slow-answer" tags=["answer"]
# **At $d_k = 64$ most of the delay comes from the silence, and the weak pull can account for little of it.** With equal lengths the
# directions are as before, yet only about 7 % of the delay is left, so the weak pull by itself costs no more than that. Raising the silent
# queries alone does most of it: on average the unscaled layer then needs 7 steps instead of 29 with SGD, and 8 instead of 41 with Adam,
# while the scaled one needs about 4. That fits the 90 %, because 23 % of the queries are silent and wrong before the first step, and at
# most 10 % may stay wrong. Cutting the long $g$ helps too, but less, to 18 and 32 steps.
#
# At $d_k = 16$, too, raising the silent ones removes more than half of the delay, but there only 4 % are silent and wrong before the
# first step, so the 90 % alone do not explain it, and we do not know what does (section {section}`measured`). All this is one task with
# squared error, and no large model.

# %% [markdown] id="turn-sparse"
# ## Where the scale misses
#
# Where the usual assumption fails, you may need another divisor.
#
# **Your turn.** Some layers keep a few entries of each vector and set the others to 0. Suppose each entry of $q$ and of $k$ is 0 with
# probability $1 - p$, and with probability $p$ it is drawn from a distribution of mean 0 and variance 1, all independently. What number $u$
# should we divide $q \cdot k$ by, so that its variance is 1? Write a formula in LaTeX with `d_k` and `p`.

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$. By {eq}`score-variance-from-deviations` the variance is therefore $d_k\, p^2$, and
# $u = p \sqrt{d_k}$. For $d_k = 64$ and $p = 0.1$ that is 0.8, so a divisor can be smaller than 1.

# %% [markdown] id="turn-sparse-after"
# For $d_k = 64$ and $p = 0.1$ we try the usual divisor, none at all, and the deviation of these scores, which your $u$ should be near:

# %% id="turn-sparse-measured"
draw, on = rng.normal(size=(2, 500, 64)), rng.random(size=(2, 500, 64)) < 0.1
query, key = np.where(on, draw, 0.0)
dots = query @ key.T
print("divisor   within a row   largest of 16 weights")
for divisor in (8, 1, dots.std()):
    scores = dots / divisor
    largest = softmax(scores[:, :16]).max(axis=-1).mean()
    print(f"{divisor:7.2f} {scores.var(axis=1).mean():14.2f} {largest:23.2f}")

# %% [markdown] id="turn-sparse-notice"
# The usual scale leaves a deviation of 0.1 instead of 1, and so the weights are nearly uniform (1/16 is 0.06). In other cases, too, the
# variance is not 1. For two fixed layer-normalised tokens, PyTorch's random starts give 1/9 (`nn.Linear` without bias) or 1/4
# (`nn.MultiheadAttention`), see the Deeper section {section}`layer-norm`. And if you multiply a query by 3, its row has nine times the
# variance.
#
# For a layer of your own, print the variance within a row, `scores.var(axis=-1).mean()`, before you train.

# %% [markdown] id="limits"
# ### Limits
#
# - The assumptions concern **the start** only. Training is meant to make queries and keys dependent, and then the scale bounds nothing.
# - We have not shown that unit variance is the *best* start.

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | variance of a score; entries independent, mean 0, variance 1, {eq}`variance-of-a-score` | {key}`variance-of-a-score` |
# | the scale, for the same entries, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | any means and covariances, $q$ independent of $k$, {eq}`score-variance-by-entries` | {key}`score-variance-by-entries` |
# | what softmax sees, $q$ independent of $k$, {eq}`spread-within-a-row` | {key}`spread-within-a-row` |
# | the scale in the weights, one step of gradient descent, {eq}`scale-as-reparametrisation` | {key}`scale-as-reparametrisation` |
#
# Shapes: $Q$ (..., $T_q$, $d_k$), $K$ (..., $T_k$, $d_k$), scores (..., $T_q$, $T_k$). Cost: about $d_k$ multiplications and additions,
# and one division, for each score.

# %% [markdown] id="summary"
# ## Summary
#
# - The dot product of vectors with independent entries of mean 0 and variance 1 has variance $d_k$, and dividing by $\sqrt{d_k}$ makes that
#   1.
# - Softmax sees only the spread within a row.
# - The scale can be taken into $W_Q$. It changes where $W_Q$ starts and, under gradient descent, how long its steps are.
# - In our task ($d_k = 64$, squared error) SGD at its best step size took about seven times the steps without the scale. Lengthening only
#   the silent gradients removed most of the delay.
#
# Next, after the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb), lesson {lesson}`attention` puts all parts together.

# %% [markdown] id="matrices"
# ## Deeper: the variance in matrices
#
# No core section needs what follows.
#
# The **trace** $\mathrm{tr}$ of a square matrix is the sum of its diagonal. Entry $(i, i)$ of $S_q S_k$ is $\sum_j (S_q)_{ij} (S_k)_{ji}$,
# and $(S_k)_{ji} = (S_k)_{ij}$. So the first sum of {eq}`score-variance-by-entries` is $\mathrm{tr}(S_q S_k)$. A row times a matrix times a
# column is $m^\top S\, m = \sum_i \sum_j m_i S_{ij} m_j$, and the other two sums have this form:
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$
#
# In the same way one row has the variance $q^\top S_k\, q$, and the average row, {eq}`spread-within-a-row`, has
# $\mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q$. (Computed from a row of $n$ independent keys, the variance is on average $1 - 1/n$ of this,
# which you derive in task {task}`sampled-row-spread`.)

# %% id="matrices-verify"
verify("score-variance-from-covariances")

# %% [markdown] id="broken"
# ## Deeper: one assumption broken at a time
#
# The figure has six panels, for normal entries, $d_k = 16$ and divided scores:
#
# 1. all assumptions hold;
# 2. any two entries of $q$ have the covariance 0.5;
# 3. the same in $q$ and in $k$;
# 4. all entries have the deviation 1.5;
# 5. all entries have the mean 0.5;
# 6. one fixed query with $\|q\|^2 = 3 \cdot 16$ meets keys that satisfy all assumptions.
#
# **Predict** for each panel whether its mean, its variance, both or neither differ from 0 and 1.

# %% id="broken-code" tags=["predicted"]
n, d_k = 40_000, 16
q, k, e = rng.normal(size=(3, n, d_k))
related_q, related_k = (q + e[:, :1]) / math.sqrt(2), (k + e[:, 1:2]) / math.sqrt(2)
long_query = q[0] * math.sqrt(3 * d_k) / np.linalg.norm(q[0])
drawn = {
    "all hold": (q * k).sum(-1),
    "related entries in q": (related_q * k).sum(-1),
    "related entries in q and in k": (related_q * related_k).sum(-1),
    "σ = 1.5 for both": (2.25 * q * k).sum(-1),
    "means 0.5": ((q + 0.5) * (k + 0.5)).sum(-1),
    "one long query": k @ long_query,
}
scaled = {name: s / math.sqrt(d_k) for name, s in drawn.items()}
figures.broken_assumptions(scaled)

# %% [markdown] id="broken-answer" tags=["answer"]
# The first *two* panels keep mean 0 and variance 1. In the second, each covariance of two entries of $q$ is multiplied by one of $k$, which
# is 0. With related entries in both, the variance is your formula divided by 16, $1 + 15 \cdot 0.25 = 4.75$. Only means of 0.5 change the
# mean, to $16 \cdot 0.25 / 4 = 1$. By {eq}`score-variance-from-covariances` the variance becomes 1.5: to the 1 we add
# $m_q^\top S_k\, m_q / 16 = 16 \cdot 0.5^2 / 16 = 0.25$, and the same again for $m_k$. Larger deviations and the long query change the
# variance alone, to $1.5^4 \approx 5$ and, by $q^\top S_k\, q$ with $S_k = I$, to $\|q\|^2 / 16 = 3$.

# %% [markdown] id="twins"
# ## Deeper: the twin under Adam
#
# Gradient descent moves $W$ by $-\eta$ times the gradient. **Adam** moves each entry by $-\eta\, m / (\sqrt v + \varepsilon)$, where $m$ is
# a running average of its gradient, and $v$ one of the square of its gradient (both corrected for their start at 0). Here $\varepsilon$ is
# $10^{-20}$, so it plays no part.
#
# We train a scaled layer with $d_k = 64$ for 20 steps, and its twin from $W' = W_Q / 8$. The step for $W'$ is multiplied by a factor; the
# step for $W_K$ stays, for $W_K$ meets the same product $c\,W_Q$ in both layers. **Predict** for each optimizer which factor gives the
# same attention weights.

# %% id="twins-code" tags=["predicted"]
for optimizer in ("SGD", "Adam"):
    for factor in (1, 1 / 8, 1 / 64):
        apart = experiments.two_step_sizes(64, 20, optimizer=optimizer, factor=factor)
        said = "same weights" if apart < 1e-9 else "different weights"
        print(f"{optimizer:4s}  step for W' x {factor:.3f}   {said}")

# %% [markdown] id="twins-answer" tags=["answer"]
# Plain gradient descent (SGD) needs the factor $c^2 = 1/64$: by {eq}`scale-as-reparametrisation` the gradient and the movement each carry
# a factor $c = 1/8$. Adam needs $c = 1/8$. Multiply all gradients by $c$, and $m$ and $\sqrt v$ both change by $c$, which cancels; the
# factor of the movement stays. With the other factors the twins no longer agree, although they started alike.

# %% [markdown] id="alone"
# ## Deeper: the softmax alone
#
# The suspicion of Vaswani et al. is about the softmax. The *norm* of its Jacobian is the largest factor by which it stretches a small
# change of the scores. Where one key has all the weight it is 0 (section {section}`scale`). Two keys that share the weight have
# $J = \frac14 \bigl( \begin{smallmatrix} 1 & -1 \\ -1 & 1 \end{smallmatrix} \bigr)$, which takes $(1, -1)$ to half of itself, so the norm
# is 1/2. Does the *mean* of the norms on the card shrink as $d_k$ grows?
#
# <details><summary>What you should see</summary>
#
# No. Without the scale it first grows with $d_k$, and it is larger than with the scale from $d_k = 2$ to 256. But more and more queries lie
# below 0.01, which fits the suspicion, and in each of these one key has nearly all the weight.
#
# </details>
#
# And a small Jacobian may be multiplied by a large gradient of the loss. That is why section {section}`slow` trains.

# %% [markdown] id="measured"
# ## Deeper: the training, measured in full
#
# **The task** is that of section {section}`slow`: items and values are standard normal numbers, the output is the mean of the values under
# the softmax weights, and the loss its squared error, averaged over the 4 numbers. A batch has 32 examples. Both matrices start with
# entries of variance 1/16, and so queries and keys with variance 1.

# %% [markdown] id="first"
# **Before the first step** we look at 2,048 queries of a fresh layer, each alone: at the *mean* length of the gradient $g$ with respect to
# the scores; at the *silent* share, with a length below 0.01, and those of them that are right already; and at the *pull*, the mean of
# $-g_r$ with $r$ the right item, as it is and with all lengths equal to 0.3 (then it is 0.3 times the part of section {section}`slow`).

# %% id="first-code"
kinds = ("scaled", "unscaled")
print(f"{'means of three seeds':34s}", *kinds)
for d_k in ("16", "64", "256"):
    for what in ("mean", "silent", "silent and right", "pull", "pull, equal lengths"):
        pair = [record.values("first", d_k, kind, what).mean() for kind in kinds]
        print(f"d_k = {d_k:>3s}   {what:20s}   {pair[0]:6.3f}  {pair[1]:6.3f}")
figures.gradient_lengths([found["first"] for found in record.results])

# %% [markdown] id="first-notice"
# At $d_k = 16$ the mean length is nearly the same with and without the scale, but the other numbers differ at every $d_k$. With the scale
# hardly a query is silent; without it 6.5, 26 and 53 percent are. Some of these are right already and need no gradient: 2.1, 3.5 and 5.6
# percent of all queries. The pull on the right item is about half as strong at 16, and about an eighth at 256. With equal lengths it is
# about a third of the scaled layer's at 64 and 256.

# %% [markdown] id="steps"
# **Steps against step sizes.** A layer has learnt when the right item has the largest score in more than 90 % of 512 new lookups; it gets
# 100 steps at most. The third layer is the twin of section {section}`reparametrise`: no scale, the factor in $W_Q$. (Adam has its usual
# $\varepsilon = 10^{-8}$ here.)

# %% id="steps-code"
every = [found["steps"] for found in record.results]
sizes = experiments.STEP_SIZES
figures.steps_against_step_size(every, sizes, most=experiments.STEPS, d_k=64)

# %% [markdown] id="steps-notice"
# At a small step size of SGD, the same for both (0.1 or 0.2, at the left), the unscaled layer is the faster of the two. A likely reason:
# with the scale, the gradients with respect to $W_Q$ and $W_K$ carry the factor $c$. The twin is far faster at these steps, because its
# step for $W_Q$ is in effect 64 times as long, {eq}`scale-as-reparametrisation`. With the best of our step sizes for each, twin and scaled
# layer are equally fast, within two steps, and the unscaled layer is slower.

# %% [markdown] id="log-weight"
# **Minus log weight.** For the loss $-\ln w_1$, with item 1 the right one, $a_1 = -1 / w_1$ and the other $a_j$ are 0. So
# $\sum_l w_l\, a_l = -1$, and $g_1 = w_1 - 1$, $g_j = w_j$ for the others. The factor $w_1$ cancels: an item with a small weight is pulled
# with almost full strength.
#
# **All widths.** The fewest steps of any step size, for each of three seeds:

# %% id="widths-code"
best = [found["best"] for found in record.results]
print(f"{'':38s}", *(f"{kind:>9s}" for kind in kinds))
for loss in experiments.LOSSES:
    for name in sizes:
        for d_k in ("16", "64", "256"):
            seeds = [found[name][d_k][loss] for found in best]
            cells = [" ".join(f"{seed[kind]:2d}" for seed in seeds) for kind in kinds]
            row = f"{loss:18s}  {name:4s}  d_k = {d_k:>3s}"
            print(f"{row:38s} {cells[0]:>9s} {cells[1]:>9s}")
concluded = [experiments.SCALE.conclude(found) for found in record.results]
assert all(all(claims.values()) for claims in concluded)

# %% [markdown] id="widths-notice"
# With squared error the unscaled layer needs more than twice the steps at $d_k = 16$ and at least nine times as many at 256, with either
# optimizer. With the silent queries raised it is at most six steps behind at 64 and 256, and with equal lengths or minus log weight at most
# five everywhere.

# %% [markdown] id="widths-sixteen"
# At $d_k = 16$ raising the silent queries removes 71 % of the delay with SGD and 56 % with Adam, and cutting the long ones 56 % and 16 %.
# Only $6.5 - 2.1 = 4.4$ % of the queries are silent and wrong before the first step, fewer than may stay wrong, so the 90 % alone are
# not the reason.
#
# The equal lengths need care. Where one key has nearly all the weight, the gradient is a difference of almost equal numbers, and in
# float32 its direction can be rounding error. So it is computed in
# float64, from sums of differences.

# %% [markdown] id="live"
# **Train it yourself.** The loop of section {section}`slow` takes this loss as well:


# %% id="live-run"
def minus_log_weight(weights, value):
    return -weights[:, 0, 0].log().mean()


for size in (0.4, 1.6, 6.4):
    needed = [steps_needed(divisor, size, minus_log_weight) for divisor in (8, 1)]
    print(f"step size {size}   steps: scaled {needed[0]:>4}, unscaled {needed[1]:>4}")

# %% [markdown] id="live-after"
# The best of the three step sizes needs a single step in both layers. No training can need fewer, so in the table above, where SGD at
# $d_k = 64$ needs one step with the scale and three or four without, the ratio says little.

# %% [markdown] id="correlated"
# ## Deeper: when query and key are not independent
#
# A layer learns to make $q$ and $k$ dependent. Let standard normal entries be correlated: $k_i = \rho\, q_i + \sqrt{1 - \rho^2}\, e_i$,
# where $e_i$ is standard normal and independent of all $q_i$, and different $i$ are independent. (This $\rho$ couples a query with its key;
# in your first turn it coupled the entries of one vector.) Then
#
# $$q_i k_i = \rho\, q_i^2 + \sqrt{1 - \rho^2}\, q_i e_i, \qquad \mathbb{E}[q_i k_i] = \rho$$
#
# Square it. The mixed term $2 \rho \sqrt{1 - \rho^2}\, q_i^3 e_i$ has mean 0, because $e_i$ has mean 0 and is independent of $q_i$. With
# $\mathbb{E}[q_i^4] = 3$ for a standard normal number, the mean square is $3 \rho^2 + (1 - \rho^2) = 1 + 2 \rho^2$; subtract the square
# of the mean, $\rho^2$. The $d_k$ terms are independent of each other, so
#
# $$\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k \label{correlated-query-key-moments}$$

# %% [markdown] id="mup"
# After the scale the mean is $\rho \sqrt{d_k}$: at the same $\rho$ it grows with the width. **muP**, a set of rules for widening a model
# (Yang et al., 2022), therefore divides by $d_k$, so that learnt scores stay alike in narrow and in wide models. The root keeps *random*
# scores alike.

# %% [markdown] id="equal"
# The extreme is $q = k$, again with independent entries of mean 0 and variance 1. Each term is $q_i^2$. Its mean is 1, and its mean
# square is the fourth moment of an entry, which we call $\kappa$ (3 for normal entries, 1 for coins). So its variance is $\kappa - 1$,
# and
#
# $$\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k \label{equal-query-key-moments}$$
#
# Lesson {lesson}`self_attention` meets this: there the scores on the diagonal are the largest on average. For $d_k = 16$ we expect,
# after the scale, the means $0.5 \cdot 4 = 2$ and 4, and the variances 1.25 and 2:

# %% id="correlated-code"
draws = np.random.default_rng(8)
q, e = draws.normal(size=(2, 40_000, 16))
related = {"ρ = 0.5": 0.5 * q + math.sqrt(0.75) * e, "q = k": q}
for name, k in related.items():
    scores = (q * k).sum(-1) / 4
    print(f"{name:8s}  mean {scores.mean():.1f}   variance {scores.var():.1f}")

# %% id="correlated-verify"
verify("correlated-query-key-moments", "equal-query-key-moments")

# %% [markdown] id="similar"
# ## Deeper: other ways to be similar
#
# Why a dot product? Multiply out $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$ and solve for the middle term:
#
# $$q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr) \label{dot-product-by-distance}$$
#
# Among vectors of given lengths, nearer ones have the larger dot product; at a given distance, longer ones have it. The **cosine** removes
# the lengths. Put the law of cosines, $\|q - k\|^2 = \|q\|^2 + \|k\|^2 - 2 \|q\| \|k\| \cos\theta$, into {eq}`dot-product-by-distance`:
#
# $$\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|} \label{cosine-similarity}$$
#
# The **Gaussian** score is minus the squared distance in units of a bandwidth $h > 0$:
#
# $$-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2} \label{gaussian-score-expansion}$$

# %% [markdown] id="similar-equal"
# The last term is common to a row, and softmax ignores it. If all keys have one length, the second is common too, and only the dot
# product is left:
#
# $$\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i
# \label{equal-length-gaussian-weights}$$
#
# So on keys of equal length the softmax of dot products gives the weights of a Gaussian kernel, with $h^2$ as the temperature. Make one
# key longer, and the two no longer agree:

# %% id="similar-code"
query, key = rng.normal(size=(1, 3)), rng.normal(size=(4, 3))
equal = key / np.linalg.norm(key, axis=-1, keepdims=True)
longer = equal * np.array([[1], [1], [2], [1]])
for name, keys in (("equal keys", equal), ("third twice as long", longer)):
    gaussian, dot = reference.gaussian_scores(query, keys, 1.0), dot_scores(query, keys)
    print(f"{name:20s}", softmax(gaussian)[0], softmax(dot)[0])

# %% id="similar-verify"
verify(
    "dot-product-by-distance",
    "cosine-similarity",
    "gaussian-score-expansion",
    "equal-length-gaussian-weights",
)
show("cosine-similarity", q=[3, 4], k=[4, 3])

# %% [markdown] id="spot-cosine"
# **Is $q \cdot k / \sqrt{d_k}$ a cosine?** Both divide a dot product by something. But take the query $(1, 0)$ and the keys $(1, 0)$ and
# $(3, 3)$. The scaled dot product prefers the second key, $3 / \sqrt{2}$ against $1 / \sqrt{2}$, and
# the cosine the first, 1 against $1 / \sqrt{2}$. In a dot product a longer key gets a higher score from queries on its
# side and a lower one from those on the other.

# %% [markdown] id="cosine-bound"
# The scores of a cosine lie in $[-1, 1]$. Let the best of $n$ keys have the score 1 and all others $-1$; nothing sharper
# is possible:
#
# $$\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}} \label{cosine-weight-bound}$$
#
# For 64 keys that is 0.105: without a temperature, even a perfect match gets about a tenth of the weight at most.

# %% id="spot-cosine-code"
query, key = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 3.0]])
print("q.k / sqrt(d_k)", scaled_dot_scores(query, key)[0])
print("cosine         ", reference.cosine_scores(query, key)[0])
print("largest weight for 64 keys:", round(1 / (1 + (64 - 1) * math.exp(-2)), 3))

# %% id="spot-cosine-verify"
verify("cosine-weight-bound")

# %% [markdown] id="kurtosis"
# ## Deeper: normal only in the limit
#
# Does $q \cdot k$ follow $N(0, d_k)$ if all entries are independent and standard normal? The variance is right, but the score is not
# normal. Fix $q$. Then $q \cdot k$ is a sum of independent normal numbers, so it *is* normal, with variance $\|q\|^2$, and its fourth
# moment is $3 \|q\|^4$. Now average over $q$, with $\mathbb{E}[q_i^4] = 3$ and $\mathbb{E}[q_i^2 q_j^2] = 1$ for $i \ne j$:
#
# $$\mathbb{E}\bigl[ \|q\|^4 \bigr] = \sum_i \sum_j \mathbb{E}[q_i^2 q_j^2] = 3\,d_k + d_k (d_k - 1) = d_k^2 + 2\,d_k$$
#
# Three times this, divided by the square of the variance $d_k$, is the **kurtosis** of a score:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$
#
# A normal number has 3. Such a score has heavier tails and a sharper peak because it mixes narrow normal curves of short queries and wide
# ones of long queries. (For $d_k = 1$ the density has no finite peak; the picture cuts it off.)

# %% id="kurtosis-figure"
x = np.linspace(-4, 4, 121)
densities = {}
for d_k in (1, 4, 64):
    deviation = np.sqrt(rng.chisquare(d_k, size=(20_000, 1)) / d_k)  # |q| / sqrt(d_k)
    curves = np.exp(-((x / deviation) ** 2) / 2) / deviation
    densities[f"d_k = {d_k}"] = curves.mean(axis=0) / math.sqrt(2 * math.pi)
figures.towards_normal(x, densities, np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))

# %% id="kurtosis-verify"
verify("kurtosis-with-normal-entries")

# %% [markdown] id="layer-norm"
# ## Deeper: what layer normalisation fixes, and what not
#
# Many models normalise each token $x$ before attention: subtract its mean and divide by its deviation. While its learnt
# gain is 1 and its bias 0, that makes $\|x\|^2 = d$, the number of entries (nearly: a small $\varepsilon$ is added to the variance). But
# the query is not $x$; it is $x W_Q$. With independent entries of mean 0 and variance $\sigma_w^2$ in $W$, each entry of $x W$ is a sum of
# $d$ independent terms $x_i W_{ij}$ of variance $\sigma_w^2\, x_i^2$:
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$
#
# Two fixed tokens $x$ and $y$ give a query and a key of independent entries (other columns of other matrices), so by
# {eq}`score-variance-from-deviations` the $d_k$ cancels. Over the draws of the two matrices,
#
# $$\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2
# \label{score-variance-at-initialisation}$$

# %% [markdown] id="inits"
# After layer normalisation this is $(d\, \sigma_Q^2)(d\, \sigma_K^2)$. With one $\sigma_w$ for both matrices, unit variance needs
# $\sigma_w^2 = 1/d$, and these three initialisations give less. (A row shows only that part by which its keys differ: if all tokens of a
# sentence were equal, its rows would have no spread.) A uniform number between $-b$ and $b$ has the variance $b^2 / 3$.
#
# - `torch.nn.Linear` draws with $b = 1 / \sqrt{d}$: $d\, \sigma_w^2 = 1/3$, and the scores have variance $1/9$.
# - `nn.MultiheadAttention` packs three matrices into one and applies Xavier's rule $b = \sqrt{6 / (\text{inputs} + \text{outputs})}$ to
#   the whole: $b^2 = 6 / (d + 3d)$, $d\, \sigma_w^2 = 1/2$, and the scores have variance $1/4$.
# - A deviation of 0.02, with $d = 512$, gives $d\, \sigma_w^2 = 0.0004 \cdot 512 \approx 0.2$, and 0.04 for the scores.

# %% id="inits-measured"
d, d_k = 512, 64
x = rng.normal(size=(2, d))
x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
bounds = {
    "nn.Linear": 1 / math.sqrt(d),
    "packed Xavier": math.sqrt(6 / (4 * d)),
    "std 0.02": 0.02 * math.sqrt(3),
}
measured = []
for bound in bounds.values():
    draws = (rng.uniform(-bound, bound, (2, d, d_k)) for _ in range(1000))
    scores = [(x[0] @ w_query) @ (x[1] @ w_key) for w_query, w_key in draws]
    measured.append(np.var(scores) / d_k)  # of scores / sqrt(d_k)
expected = [d**2 * (bound**2 / 3) ** 2 for bound in bounds.values()]
figures.initial_variances(list(bounds), expected, measured)

# %% [markdown] id="qk-norm"
# To hold the size of scores in training as well, normalise $q$ and $k$ themselves, after the projection (Henry et al., 2020, divide by
# the norm and learn a factor). With the mean square of the entries set to 1, the score is a cosine with a fixed factor:
#
# $$\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad
# \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}
# \label{query-key-normalisation}$$
#
# Without a learnt factor it lies within $\pm\sqrt{d_k}$ whatever the weights become: multiply $W_Q$ by 100, and nothing changes.

# %% id="qk-norm-code"
query, key = rng.normal(size=(1, 64)), rng.normal(size=(3, 64))
for factor in (1, 100):
    dot = scaled_dot_scores(factor * query, key)[0]
    normalised = 8 * reference.cosine_scores(factor * query, key)[0]
    print(f"W_Q x {factor:3d}   scaled dot {dot}   normalised {normalised}")

# %% id="inits-verify"
verify(
    "variance-after-projection",
    "score-variance-at-initialisation",
    "query-key-normalisation",
)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1: the scale, the suspicion, and in a
#   footnote the variance.
# - G. Yang et al. (2022), [arXiv:2203.03466](https://arxiv.org/abs/2203.03466): muP, which divides by $d_k$.
# - C. Raffel et al. (2020), [arXiv:1910.10683](https://arxiv.org/abs/1910.10683): T5, whose code starts $W_Q$ smaller instead of
#   dividing; its comment "to avoid scaling before softmax" is quoted in
#   [transformers issue 18284](https://github.com/huggingface/transformers/issues/18284).
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): query-key normalisation.
# - J. L. Ba, J. R. Kiros and G. E. Hinton (2016), [arXiv:1607.06450](https://arxiv.org/abs/1607.06450): layer normalisation.
