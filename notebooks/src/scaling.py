# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# Chapter {lesson}`softmax` divided the scores of "it" by 2 and promised a reason. In short:
#
# - A score is a sum of $d_k$ products, one for each entry of the query.
# - If all entries are independent, with mean 0 and variance 1, the variances add: the score has the variance $d_k$.
# - At large $d_k$, softmax usually gives one key most of the weight.
# - Dividing by $\sqrt{d_k}$ brings the variance back to 1.
# - Does training gain from it? We measure that in one small task.
#
# **Afterwards you can** derive this, and tell when the scale helps. **You need** chapter {lesson}`softmax`, expectations, variances and
# gradient descent. **Time:** 60 minutes, without *Deeper* sections and [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

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
# Divided or not, "it" means the cat. But take "because", which has the score 0. With the division, the weight of
# "cat" is $e^{4} \approx 55$ times that of "because"; without it, it is $e^{8} \approx 2981$ times as large. Dividing the scores by 2
# takes the square root of every ratio of weights.

# %% [markdown] id="where"
# In the machine of the course, the division is a small box between the dot products and the softmax.

# %% id="setup"
import math

import torch

from attn_course import check, reference, show, verify
from attn_course.lessons.scaling import experiments, figures
from attn_course.reference import dot_scores, scaled_dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)

# %% id="machine"
figures.machine()

# %% [markdown] id="hook-question"
# The numbers above were chosen by hand. In a fresh layer they are random, and a query often has 64 or 128 entries. So we ask: **how large
# is the dot product of two random vectors?**

# %% [markdown] id="coins"
# ## Coins
#
# Start with the simplest random vectors: each entry of $q$ and of $k$ is a fair coin, $+1$ or $-1$, and all are thrown independently. A
# product $q_i k_i$ is then a fair coin too: it is $+1$ when the two agree, half of the time. So $q \cdot k$ is a sum
# of $d_k$ independent coins. For $d_k = 3$, eight throws are equally likely:
#
# | sum | $-3$ | $-1$ | $1$ | $3$ |
# |---|---|---|---|---|
# | throws | 1 | 3 | 3 | 1 |
#
# The mean is 0. The mean square is $(9 + 3 \cdot 1 + 3 \cdot 1 + 9) / 8 = 24 / 8 = 3$. Do the same for $d_k = 1$ (sums $-1, 1$) and for
# $d_k = 2$ (sums $-2, 0, 0, 2$): you find 1 and 2.

# %% [markdown] id="coins-predict"
# The root of the mean square says how far from 0 a typical score lies. **Predict** it for $d_k = 1024$.


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
# A typical score is 32 at $d_k = 1024$, because the mean square is 1024. A further coin turns a sum $s$ into $s + 1$ or $s - 1$, each half
# of the time, and the mean of $(s + 1)^2$ and $(s - 1)^2$ is $s^2 + 1$. Without coins the sum is 0, and each coin adds 1 to the mean
# square: after 1024 coins it is 1024. Between two keys with the scores 32 and $-32$ the ratio of weights is $e^{64}$.

# %% id="coins-figure"
figures.coin_scores({d_k: coin_chances(d_k) for d_k in (4, 16, 64)})

# %% [markdown] id="strip"
# What does softmax make of such scores? We draw 64 queries and 64 keys with standard normal entries, and look at the largest weight in
# each row, on average.

# %% id="strip-code"
rng = np.random.default_rng(5)
largest = {"not divided": {}, "divided by √d_k": {}}
for d_k in (1, 16, 64, 1024):
    query, key = rng.normal(size=(2, 64, d_k))
    scores = dot_scores(query, key)
    for name, divisor in zip(largest, (1, math.sqrt(d_k)), strict=True):
        largest[name][d_k] = softmax(scores / divisor).max(axis=1).mean()
figures.largest_weights(largest)

# %% [markdown] id="strip-notice"
# Not divided, one of the 64 keys, chosen by chance, gets 0.59 of the weight on average at $d_k = 16$, and 0.92 at 1024. Divided by
# $\sqrt{d_k}$, the largest weight is 0.10 to 0.12 at the widths 16, 64 and 1024: a soft choice. Why the root?

# %% [markdown] id="mean"
# ## The variance of a score
#
# Coins were only an example. **The usual assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and variance 1, of
# any distribution. We need two rules. The mean of a sum is the sum of the means. And the mean of a product of *independent*
# numbers is the product of their means.
#
# **One product.** Its mean is $\mathbb{E}[q_i]\, \mathbb{E}[k_i] = 0 \cdot 0 = 0$, so its variance is its mean square,
# $\mathbb{E}[q_i^2]\, \mathbb{E}[k_i^2] = 1 \cdot 1 = 1$.
#
# **Their sum.** Its mean is 0 too, so its variance is also its mean square. Write the square with a second index, so that every pair of
# products occurs:
#
# $$(q \cdot k)^2 = \Bigl( \sum_i q_i k_i \Bigr) \Bigl( \sum_j q_j k_j \Bigr) = \sum_i \sum_j (q_i k_i) (q_j k_j)$$

# %% [markdown] id="usual"
# For $i \ne j$ the two products are independent of each other, and each has mean 0. So this term has the mean $0 \cdot 0 = 0$. For
# $i = j$ it is the square of one product, with mean 1. Only these $d_k$ ones are left, as with coins:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \key{variance-of-a-score}$$
#
# If the entries have the standard deviations $\sigma_q$ and $\sigma_k$ instead of 1, each of the $d_k$ terms is $\sigma_q^2\, \sigma_k^2$
# (a $\sigma$ without an argument is a deviation here, not the softmax):
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \label{score-variance-from-deviations}$$

# %% id="usual-verify"
verify("variance-of-a-score", "score-variance-from-deviations")

# %% [markdown] id="scale"
# ## The scale
#
# A factor $c$ multiplies a variance by $c^2$. To bring the variance $d_k$ back to 1 we need $c^2 = 1 / d_k$: the root enters because a
# variance is quadratic. Under the usual assumption, then,
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$
#
# In the words of chapter {lesson}`softmax`, $\sqrt{d_k}$ is a temperature. And other divisors? In chapter {lesson}`heads` a model of
# $d_{\text{model}}$ features is cut into $h$ parts, the heads, with $d_k = d_{\text{model}} / h$ entries each. Put $c = 1 / d_k$ and
# $c = 1 / \sqrt{h\, d_k}$ into $c^2 d_k$:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h} \label{variance-under-wrong-scales}$$
#
# The second is a mistake where $\sqrt{d_k}$ was meant. The first can be meant: the Deeper section {section}`correlated` gives its reason.

# %% [markdown] id="arrays"
# In arrays, $Q$ has the shape (..., $T_q$, $d_k$) and $K$ the shape (..., $T_k$, $d_k$), and all scores are one product. In NumPy, `K.T`
# reverses *all* axes, while `K.swapaxes(-1, -2)` exchanges the last two and leaves a batch in front alone. PyTorch's attention divides by
# $\sqrt{d_k}$ unless you pass another `scale`.

# %% id="arrays-code"
Q = np.linspace(-2, 2, 42).reshape(2, 3, 7)  # 2 examples, 3 queries, d_k = 7
K = np.linspace(-1, 3, 70).reshape(2, 5, 7)  # 2 examples, 5 keys
print("K.T", K.T.shape, "  K.swapaxes(-1, -2)", K.swapaxes(-1, -2).shape)
weights = softmax(scaled_dot_scores(Q, K))
identity = np.stack([np.eye(5), np.eye(5)])  # as values: the output is the weights
tensors = [torch.tensor(array) for array in (Q, K, identity)]
theirs = torch.nn.functional.scaled_dot_product_attention(*tensors)
assert np.allclose(weights, theirs)
print("the weights of PyTorch are ours", weights.shape)

# %% id="scale-verify"
verify("scaled-score-variance", "variance-under-wrong-scales")

# %% [markdown] id="general"
# ## When entries have means or move together
#
# Let both entries of $q$ be *one* coin $a$, and both entries of $k$ one coin $b$. Then $q \cdot k = 2 a b$ is $2$ or $-2$, and its variance
# is 4, not $d_k = 2$. The terms with $i \ne j$ no longer vanish.
#
# So keep only this: $q$ and $k$ are **independent of each other**, with finite variances. Call the means of the entries $(m_q)_i$ and
# $(m_k)_i$. The two rules give
#
# $$\mathbb{E}[q \cdot k] = m_q \cdot m_k \label{mean-of-a-score}$$
#
# In the double sum, put together what belongs to $q$ and what belongs to $k$: each term is $q_i q_j$ times $k_i k_j$. These two are
# independent, so its mean is $\mathbb{E}[q_i q_j]\, \mathbb{E}[k_i k_j]$.

# %% [markdown] id="entries"
# What is $\mathbb{E}[q_i q_j]$? The **covariance** of two entries is defined as
# $(S_q)_{ij} = \mathbb{E}[q_i q_j] - (m_q)_i (m_q)_j$; for $i = j$ it is the variance of the entry. So
#
# $$\mathbb{E}[q_i q_j]\, \mathbb{E}[k_i k_j] = \bigl( (S_q)_{ij} + (m_q)_i (m_q)_j \bigr) \bigl( (S_k)_{ij} + (m_k)_i (m_k)_j \bigr)$$
#
# Multiply out: four products. The last one, summed over $i$ and $j$, is
# $\sum_i (m_q)_i (m_k)_i \sum_j (m_q)_j (m_k)_j = (m_q \cdot m_k)^2$. That is the square of the mean, and
# $\mathrm{Var}[x] = \mathbb{E}[x^2] - \mathbb{E}[x]^2$ subtracts it. Three products are left:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} + (m_k)_i (m_k)_j (S_q)_{ij} \bigr)
# \key{score-variance-by-entries}$$
#
# Under the usual assumption the means are 0, and $(S_q)_{ij} (S_k)_{ij}$ is 1 for $i = j$ and 0 otherwise: $d_k$ again.

# %% [markdown] id="turn-correlated"
# **Your turn.** Each entry still has mean 0 and variance 1, but the entries of $q$ move together: any two *different* ones have the
# covariance $\rho$. The same holds for $k$, and $q$ is still independent of $k$. Start from {eq}`score-variance-by-entries` and write a
# formula in LaTeX for $v = \mathrm{Var}[q \cdot k]$ with `d_k` and `\rho`, as a string: `r"..."`. (At $\rho = 1$ and $d_k = 2$ it must
# give the 4 above.)

# %% id="turn-correlated-code" tags=["your-turn"]
my_variance_formula = ...  # r"..."
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="turn-correlated-after" tags=["ours"]
# The means are 0, so only $(S_q)_{ij} (S_k)_{ij}$ is left. The $d_k$ terms with $i = j$ are $1 \cdot 1$. The other $d_k (d_k - 1)$ terms
# are $\rho \cdot \rho$. Together $v = d_k + d_k (d_k - 1)\, \rho^2$, so $v / d_k = 1 + (d_k - 1)\, \rho^2$ grows with $d_k$. A
# measurement with $\rho = 0.5$, where the formula says 1.75 and 16.75:

# %% id="turn-correlated-measured"
for d_k in (4, 64):  # measured, with rho = 0.5
    own, shared = rng.normal(size=(2, 20_000, d_k)), rng.normal(size=(2, 20_000, 1))
    query, key = math.sqrt(0.5) * (own + shared)  # variance 1, covariance 0.5
    variance = (query * key).sum(axis=-1).var()
    print(f"d_k = {d_k:2d}   variance / d_k: {variance / d_k:4.1f}")

# %% id="mean-verify"
verify("mean-of-a-score", "score-variance-by-entries")

# %% [markdown] id="row"
# ## What softmax sees: one row
#
# Softmax never compares the scores of two queries. It takes one row, one query $q$ with all its keys, and a shift of the whole row changes
# nothing, {eq}`softmax-shift-invariance`. So the spread that matters is that **within a row**.
#
# The smallest example has vectors of one entry. Both keys are 1; the queries are $1$ and $-1$. The scores are 1, 1 in the first row and
# $-1$, $-1$ in the second. The variance of all four is 1, as it should be. Yet within a row it is 0, and both rows of weights are
# (0.5, 0.5).

# %% [markdown] id="row-fixed"
# **One row** of independent keys, $q$ fixed: in {eq}`score-variance-by-entries` its covariance is 0 and its mean $q$. One sum is left:
#
# $$\mathrm{Var}_k[q \cdot k] = \sum_{i,\,j} q_i q_j\, (S_k)_{ij}$$
#
# **The average row.** Average over the queries, with $\mathbb{E}[q_i q_j] = (S_q)_{ij} + (m_q)_i (m_q)_j$ as before:
#
# $$\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)$$
#
# Compare with {eq}`score-variance-by-entries`: the sum with $m_k$ is missing. What all keys have in common shifts whole rows, and softmax
# is blind to that.

# %% [markdown] id="spot-total"
# ### Spot the mistake: "`scores.var()` is as it should be, so the softmax starts well"
#
# A larger example. The queries have $d_k = 16$ independent standard normal entries. The keys have mean 1 in each entry, and independent
# deviations of 0.2. So all covariances of different entries are 0, and each sum over $i$ and $j$ is a sum of 16 equal terms. **Predict**
# the two variances printed below, after the scale: of all scores, and within a row.

# %% id="spot-total-code" tags=["predicted"]
query, key = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
scores = scaled_dot_scores(query, key)
print(f"all scores {scores.var():.2f}   within a row {scores.var(axis=1).mean():.2f}")
print("weights of 4 keys for 2 queries, in percent")
print((100 * softmax(scaled_dot_scores(query[:2], key[:4]))).round(0))
figures.rows_of_scores(scores[:8, :12])  # 8 of the 2,000 queries, 12 of the keys

# %% [markdown] id="spot-total-answer" tags=["answer"]
# The variance of all scores is about 1, and within a row it is about 0.04. Before the scale, the three sums of
# {eq}`score-variance-by-entries` are $16 \cdot 1 \cdot 0.04 = 0.64$, then 0, because $m_q = 0$, and $16 \cdot 1 \cdot 1 \cdot 1 = 16$.
# Divided by 16 they are 0.04, 0 and 1. Together that is 1.04, and a sample of 2,000 queries comes near it. Softmax sees the first two
# alone, 0.04, so its weights are nearly equal.

# %% [markdown] id="row-matrices"
# **The same in matrices.** The **trace** $\mathrm{tr}$ of a square matrix is the sum of its diagonal. Entry $(i, i)$ of $S_q S_k$ is
# $\sum_j (S_q)_{ij} (S_k)_{ji}$, and $(S_k)_{ji} = (S_k)_{ij}$. So the first sum is $\mathrm{tr}(S_q S_k)$. The second, in
# matrices, is $m_q^\top S_k\, m_q$. So {eq}`score-variance-by-entries` reads
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$
#
# and the spread within a row
#
# $$\mathrm{Var}_k[q \cdot k] = q^\top S_k\, q, \quad \mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr]
# = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q
# \key{spread-within-a-row}$$

# %% id="row-verify"
verify("score-variance-from-covariances", "spread-within-a-row")

# %% [markdown] id="reparametrise"
# ## What the scale is not
#
# The scale is not a new kind of model. The constant can be taken into the weights: with $W' = c\, W_Q$, scores without a scale are those
# of $W_Q$ with it, $x W' K^\top = c\, x W_Q K^\top$. Some models do just that. The authors of T5 left the division out and started $W_Q$
# smaller by a factor $\sqrt{d_k}$; in the Hugging Face code a comment still says "to avoid scaling before softmax".

# %% [markdown] id="chain"
# Such a twin has the same scores at the start. Does it learn in the same way? Write $W$ for $W_Q$. The loss $\mathcal{L}$ sees $W$
# only through $c W$. By the chain rule its gradient with respect to $W$ carries a factor $c$:
# $\nabla_W \mathcal{L}(c W) = c\, \nabla \mathcal{L}(W')$. And when $W$ moves, $W' = c W$ moves $c$ times as far. Together:
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \key{scale-as-reparametrisation}$$
#
# At $d_k = 64$ we have $c^2 = 1/64$. So with one step size for both, a step of the twin's $W'$ has the effect of one 64 times as long for
# $W_Q$: **the same start, and another training.** (With Adam, a common refinement of gradient descent, the factor is $c$:
# the Deeper section {section}`twins`.)

# %% id="twins-verify"
verify("scale-as-reparametrisation")

# %% [markdown] id="slow"
# ## Is the unscaled start slower, and why?
#
# Vaswani et al. (2017) gave a reason for their division, with care: "We *suspect* that for large values of $d_k$, the
# dot products grow large in magnitude, pushing the softmax function into regions where it has extremely small gradients" (our italics).
#
# First look at the softmax alone. The card draws 64 queries and 64 keys. Its third picture has a dot for each query: the *norm of the
# Jacobian*, the largest factor by which softmax stretches a small change of the scores. Move $d_k$. How many of the 64 queries have a norm
# below 0.01, and does one key hold their weight?

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="explorable-notice"
# Without the scale more and more queries lie near 0 as $d_k$ grows. At 1024 most of them do: one key has won, and a small change of the
# scores does not matter. Divided by $\sqrt{d_k}$, no query is below 0.01 even there.
#
# That fits the suspicion, but it proves nothing about learning. The *mean* norm is even larger without the scale from $d_k = 2$ to 256;
# where two keys share the weight, it can be near 1/2. And a small Jacobian may be multiplied by a large gradient of the loss. So
# we train.

# %% [markdown] id="live"
# **A small task.** An example has 16 items of 16 random numbers, each with a value of 4 numbers. The query is the first item,
# multiplied by an orthogonal matrix that is the same in all examples, and the output should be the value of that item. (The layer does
# not know the order of the items.) It learns $W_Q$ and $W_K$ with the squared error. We count steps until the right item has the largest
# score in more
# than 90 % of a new batch. The two layers start alike; only the divisor differs.

# %% id="live-layer"
rotation = torch.tensor(np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16)))[0])


def lookup(w_query, w_key, divisor, rng):
    item = torch.tensor(rng.normal(size=(32, 16, 16)))  # a new batch of 32
    value = torch.tensor(rng.normal(size=(32, 16, 4)))
    query, key = item[:, :1] @ rotation @ w_query, item @ w_key
    scores = query @ key.mT / divisor
    weights = scores.softmax(dim=-1)
    loss = (weights @ value - value[:, :1]).square().mean()
    right = (scores.argmax(dim=-1) == 0).double().mean()
    return loss, right


# %% id="live-code"
def steps_needed(divisor, step_size, d_k=64):
    rng = np.random.default_rng(0)
    both = [torch.tensor(rng.normal(size=(16, d_k)) / 4).requires_grad_() for _ in "QK"]
    optimizer = torch.optim.SGD(both, lr=step_size)
    for step in range(60):
        loss, right = lookup(*both, divisor, rng)
        if right > 0.9:
            return f"{step} steps"
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return "not in 60"


for step_size in (0.4, 1.6, 6.4):
    scaled, unscaled = steps_needed(8, step_size), steps_needed(1, step_size)
    print(f"step size {step_size}   scaled: {scaled:9s}   unscaled: {unscaled}")

# %% [markdown] id="live-notice"
# In this one run the unscaled layer is faster at 0.4, and of these steps longer ones help only the scaled one. With the best of the three
# for each, it is 4 against 17. Why?

# %% [markdown] id="pull"
# **One query.** From {eq}`softmax-vector-jacobian-product`, the gradient of one query's loss with respect to its scores (after the
# division) is
#
# $$g_j = w_j \Bigl( a_j - \sum_l w_l\, a_l \Bigr), \qquad a_j = \frac{\partial \mathcal{L}}{\partial w_j}$$
#
# Let the output be $o = \sum_j w_j v_j$, and let item 1 be the right one. For the **squared error** $(o - v_1)^2$,
# $a_j = 2\,(o - v_1)\,v_j$. For **minus log weight**, $-\ln w_1$, we have $a_1 = -1 / w_1$ and the other $a_j$ are 0; so
# $\sum_l w_l\, a_l = -1$, and $g_1 = w_1 - 1$, $g_j = w_j$ for the others.
#
# Take three items with the values 1, 0 and $-1$. By chance the right one has the smallest score.

# %% id="pull-code"
dots, value = np.array([0.0, 8.0, 7.0]), np.array([1.0, 0.0, -1.0])
for name, divisor in (("unscaled", 1), ("scaled", 8)):  # d_k = 64
    w = softmax(dots / divisor)
    a = 2 * (w @ value - value[0]) * value
    print(f"{name:8s}  weights {w}")
    print("   squared error     g", w * (a - w @ a))
    print("   minus log weight  g", w - [1, 0, 0])

# %% [markdown] id="pull-notice"
# Unscaled, the squared error moves almost only the two wrong items against each other. The right one gets next to nothing: its bracket is
# made of outputs and values, which do not grow when $w_1$ shrinks, and the factor $w_1$ makes the product tiny. So **with squared error an
# item with a small weight is hardly pulled.** Minus log weight pulls it with almost full strength, for there the factor cancels.

# %% [markdown] id="slow-predict"
# Is that why the layer was slow? We train again, with more step sizes and three seeds, by gradient descent (SGD) and by Adam, in two
# other ways. The first helps queries with a tiny $g$, the second items that are hardly pulled:
#
# - with **equal lengths**: squared error, but every query's gradient $g$ is brought to one length and keeps its direction;
# - with minus log weight.
#
# This takes minutes, so the numbers are stored. Each bar is the fewest steps of all step sizes, a mean of three seeds. **Predict** for
# each of the two: is the layer without the scale still far behind, or only a few steps?

# %% id="slow-code" tags=["predicted"]
record = experiments.SCALE.load()
figures.best_steps([found["best"] for found in record.results], d_k=64)

# %% [markdown] id="slow-answer" tags=["answer"]
# Only a few: at most three in every seed, from the *same* large scores. With squared error it takes 29 steps against 4
# with SGD, and 41 against 5 with Adam. So large scores alone did not make this layer so slow. That fits a narrower account: with squared
# error, queries whose weight has nearly all gone to one item teach the layer almost nothing.
#
# It is no proof. Equal lengths also shorten long gradients, and change no direction. Minus log weight is told which item is right. We
# measured no large model. (Try it yourself: put `loss = -weights[:, 0, 0].log().mean()` into `lookup`. Other widths and all step sizes are
# in the Deeper section {section}`measured`.)

# %% [markdown] id="turn-sparse"
# ## Where the scale does not help
#
# **Your turn.** Some layers keep a few entries of each vector and set the others to 0. Suppose each entry of $q$ and of $k$ is 0 with
# probability $1 - p$, and with probability $p$ it is drawn from a distribution of mean 0 and variance 1, all independently. By which
# number $u$ must $q \cdot k$ be divided to have variance 1? Write a formula in LaTeX with `d_k` and `p`.

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$. By {eq}`score-variance-from-deviations` the variance is $d_k\, p^2$, so
# $u = p \sqrt{d_k}$.

# %% [markdown] id="turn-sparse-after"
# Here are the usual divisor and none at all, for $d_k = 64$ and $p = 0.1$:

# %% id="turn-sparse-measured"
draw, on = rng.normal(size=(2, 500, 64)), rng.random(size=(2, 500, 64)) < 0.1
query, key = np.where(on, draw, 0.0)
for name, divisor in (("sqrt(d_k)", 8.0), ("nothing", 1.0)):
    scores = query @ key.T / divisor
    largest = softmax(scores[:, :16]).max(axis=-1).mean()
    print(f"divided by {name:9s}  within a row {scores.var(axis=1).mean():.2f}")
    print(f"{'':21s} largest of 16 weights {largest:.2f}")

# %% [markdown] id="turn-sparse-notice"
# The usual scale leaves a variance near 0.01, a deviation of 0.1 instead of 1, and nearly uniform weights (1/16 is 0.06). Nor does the
# scale help where the factor is in $W_Q$ already, as in T5: dividing again would flatten the
# rows. And it is right only on average: by {eq}`spread-within-a-row`, a query multiplied by 3 has nine times the variance in its row.
# For a layer of your own, print `scores.var(axis=-1).mean()` before the training.

# %% [markdown] id="limits"
# ### Limits
#
# - The scale sets the variance **at the start**, under assumptions that training breaks: queries and keys are meant to become dependent.
#   It bounds nothing later.
# - We have not shown that unit variance is the *best* start. A variance near $d_k$ was slower in one task with
#   squared error, each start at the best of our step sizes.

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | variance of a score; entries independent, mean 0, variance 1, {eq}`variance-of-a-score` | {key}`variance-of-a-score` |
# | the scale, for the same entries, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | any means and covariances, $q$ independent of $k$, {eq}`score-variance-by-entries` | {key}`score-variance-by-entries` |
# | what softmax sees, all independent, {eq}`spread-within-a-row` | {key}`spread-within-a-row` |
# | the scale in the weights, one step of gradient descent, {eq}`scale-as-reparametrisation` | {key}`scale-as-reparametrisation` |
#
# Shapes: $Q$ (..., $T_q$, $d_k$), $K$ (..., $T_k$, $d_k$), scores (..., $T_q$, $T_k$). Cost: about $d_k$ multiplications and additions,
# and one division, for each score.

# %% [markdown] id="summary"
# ## Summary
#
# - The dot product of vectors with independent entries of mean 0 and variance 1 has variance $d_k$.
# - Dividing by $\sqrt{d_k}$ makes that 1. Other assumptions can need other divisors.
# - Softmax sees the spread within a row, and not what the keys have in common.
# - The scale is no new model, but another start of $W_Q$ and, with gradient descent, a step size $c^2$ times as large for it.
# - In our task ($d_k = 64$, best of our step sizes), SGD without it took about seven times as many steps with squared error, and
#   three times with minus log weight.
#
# Next, chapter {lesson}`attention` puts scores, scale, softmax and values together. Now the
# [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% [markdown] id="broken"
# ## Deeper: one assumption broken at a time
#
# No core section needs what follows.
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
# is 0. With related entries in both, the variance is your formula over 16, $1 + 15 \cdot 0.25 = 4.75$. Only means of 0.5 change the mean,
# to $16 \cdot 0.25 / 4 = 1$. By {eq}`score-variance-from-covariances` the variance becomes 1.5: to the 1 we add
# $m_q^\top S_k\, m_q / 16 = 16 \cdot 0.5^2 / 16 = 0.25$, and the same again for $m_k$. Larger deviations and the long query change the
# variance alone, to $1.5^4 \approx 5$ and, by {eq}`spread-within-a-row` with $S_k = I$, to $\|q\|^2 / 16 = 3$.

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
        said = "same weights" if apart < 1e-9 else "other weights"
        print(f"{optimizer:4s}  step for W' x {factor:.3f}   {said}")

# %% [markdown] id="twins-answer" tags=["answer"]
# Plain gradient descent (SGD) needs the factor $c^2 = 1/64$: by {eq}`scale-as-reparametrisation` the gradient and the movement each carry
# a factor $c = 1/8$. Adam needs $c = 1/8$. Multiply all gradients by $c$, and $m$ and $\sqrt v$ both change by $c$, which cancels; the
# factor of the movement stays. With the other factors the twins part: the same start is not the same training.

# %% [markdown] id="measured"
# ## Deeper: the training, measured in full
#
# **The task.** An example holds 16 items of 16 standard normal entries, and for each item a value of 4 such numbers. The query is one of
# the items, multiplied by an orthogonal matrix that is the same in all examples; the answer is the value of that item. The output is the
# mean of the values under the softmax weights, and the loss its squared error, averaged over the 4 numbers. A batch has 32 examples.
# Both matrices start with entries of variance 1/16, and so queries and keys with variance 1.

# %% [markdown] id="first"
# **Before the first step** we look at 2,048 queries of a fresh layer, each alone: at the *mean* length of the gradient $g$ with respect to
# the scores; at the *silent* share, with a length below 0.01; and at the *pull*, the mean of $-g_r$ with $r$ the right item.

# %% id="first-code"
kinds = ("scaled", "unscaled")
print("means of three seeds  ", *kinds)
for d_k in ("16", "64", "256"):
    for what in ("mean", "silent", "pull"):
        pair = [record.values("first", d_k, kind, what).mean() for kind in kinds]
        print(f"d_k = {d_k:>3s}   {what:7s}   {pair[0]:6.3f}  {pair[1]:6.3f}")
figures.gradient_lengths([found["first"] for found in record.results])

# %% [markdown] id="first-notice"
# At $d_k = 16$ the mean length is nearly the same with and without the scale, 0.31 and 0.32, so it does not show why this layer is slow.
# The other two differ at every $d_k$. With the scale hardly a query is silent; without it 6.5, 26 and 53 percent are. (A query whose right
# item has won is silent too, but no fresh layer ranks it first for more than one query in seven.) The pull on the right item is about half
# as strong at 16, and about an eighth at 256.

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
# with the scale, the gradients with respect to $W_Q$ and $W_K$ carry the factor $c$. The twin is far faster at these steps: by
# {eq}`scale-as-reparametrisation`, its step for $W_Q$ has the effect of one that is 64 times as long. With the best of our step sizes for
# each, twin and scaled layer are equally fast, within two steps, and the unscaled layer is slower.
#
# **All widths.** The fewest steps of any step size, for each of three seeds:

# %% id="widths-code"
best = [found["best"] for found in record.results]
print(f"{'':38s}", *(f"{kind:>9s}" for kind in kinds))
for loss in experiments.LOSSES:
    shown = loss.replace("each query alike", "equal lengths")
    for name in sizes:
        for d_k in ("16", "64", "256"):
            seeds = [found[name][d_k][loss] for found in best]
            cells = [" ".join(f"{seed[kind]:2d}" for seed in seeds) for kind in kinds]
            row = f"{shown:16s}  {name:4s}  d_k = {d_k:>3s}"
            print(f"{row:38s} {cells[0]:>9s} {cells[1]:>9s}")
concluded = [experiments.SCALE.conclude(found) for found in record.results]
assert all(all(claims.values()) for claims in concluded)

# %% [markdown] id="widths-notice"
# With squared error the unscaled layer needs more than twice the steps at $d_k = 16$ and at least nine times as many at 256, with either
# optimizer. With equal lengths, and with minus log weight, it is at most five steps behind, but up to four times as slow.
#
# The equal lengths need care. Where one key has nearly all the weight, the gradient is a difference of almost equal numbers, and in
# float32 its direction can be rounding error. In a first run in float32, Adam needed 11 or 12 steps at $d_k = 256$. Now the gradient is
# computed in float64, from sums of differences, and Adam needs 5 to 8.

# %% [markdown] id="correlated"
# ## Deeper: when query and key are not independent
#
# A layer learns to make $q$ and $k$ dependent. Let standard normal entries be correlated:
# $k_i = \rho\, q_i + \sqrt{1 - \rho^2}\, e_i$, where $e_i$ is standard normal and independent of all $q_i$, and different $i$ are
# independent. (This $\rho$ couples a query with its key; in your first turn it coupled the entries of one vector.) Then
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
# Chapter {lesson}`self_attention` meets this: there the scores on the diagonal are the largest on average. For $d_k = 16$ we expect,
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
# key longer, and the two part:

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
# **Is $q \cdot k / \sqrt{d_k}$ a cosine?** Some texts call it so, since both divide. The smallest counterexample has two entries: the query
# $(1, 0)$, and the keys $(1, 0)$ and $(3, 3)$. The scaled dot product prefers the second key, $3 / \sqrt{2}$ against $1 / \sqrt{2}$, and
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
# Many texts say that $q \cdot k$ "follows $N(0, d_k)$". The variance is right, but the score is not normal. Let all entries be
# independent and standard normal, and fix $q$. Then $q \cdot k$ is a sum of independent normal numbers, so it *is* normal, with variance
# $\|q\|^2$, and its fourth moment is $3 \|q\|^4$. Now average over $q$, with $\mathbb{E}[q_i^4] = 3$ and $\mathbb{E}[q_i^2 q_j^2] = 1$ for
# $i \ne j$:
#
# $$\mathbb{E}\bigl[ \|q\|^4 \bigr] = \sum_i \sum_j \mathbb{E}[q_i^2 q_j^2] = 3\,d_k + d_k (d_k - 1) = d_k^2 + 2\,d_k$$
#
# Three times this, divided by the square of the variance $d_k$, is the **kurtosis** of a score:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$
#
# A normal number has 3. A score has heavier tails and a sharper peak because it mixes narrow normal curves of short queries and wide
# ones of long queries.

# %% id="kurtosis-figure"
x = np.linspace(-6, 6, 121)
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
# {eq}`score-variance-from-deviations` the $d_k$ cancels:
#
# $$\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2
# \label{score-variance-at-initialisation}$$

# %% [markdown] id="inits"
# After layer normalisation this is $(d\, \sigma_Q^2)(d\, \sigma_K^2)$. With one $\sigma_w$ for both matrices, unit variance needs
# $\sigma_w^2 = 1/d$, and these three starts have less. A uniform number between $-b$ and $b$ has the variance $b^2 / 3$.
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
    draws = (rng.uniform(-bound, bound, (2, d, d_k)) for _ in range(300))
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
# It lies within $\pm\sqrt{d_k}$ whatever the weights become: multiply $W_Q$ by 100, and nothing changes.

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
#   dividing; the comment is quoted in [transformers issue 18284](https://github.com/huggingface/transformers/issues/18284).
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): query-key normalisation.
# - J. L. Ba, J. R. Kiros and G. E. Hinton (2016), [arXiv:1607.06450](https://arxiv.org/abs/1607.06450): layer normalisation.
