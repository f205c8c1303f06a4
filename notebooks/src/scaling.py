# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# In lesson {lesson}`softmax` we divided the scores of "it" by 2 and promised a reason. The 2 is the root of $d_k = 4$, the number of
# entries in a query. A sum of many random products is large by chance, and softmax takes a large score for certainty. If entries are
# independent, with mean 0 and variance 1, the division lets a new layer start undecided at every width.
#
# How large does chance make a score? We calculate it, then put the division to the test.

# %% [markdown] id="needs"
# **Afterwards you can** derive the variance of a score under assumptions of your own, and tell where the usual scale misses. **You need**
# lesson {lesson}`softmax`, expectations, variances and gradients. **Time:** 60 minutes, ten more for the two turns, without the *Deeper*
# sections and the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% [markdown] id="hook"
# ## One score by hand
#
# In the sentence `the cat sat because it was tired`, "it" asks with the query $q = (2, 0, -2, 2)$, and "cat" answers with the key
# $k = (2, 0, 0, 2)$. Multiply entry by entry and add:
#
# $$q \cdot k = 2 \cdot 2 + 0 \cdot 0 + (-2) \cdot 0 + 2 \cdot 2 = 8, \qquad \frac{q \cdot k}{\sqrt{d_k}} = \frac{8}{\sqrt{4}} = 4$$
#
# So the 8 points of "cat" become 4. Here are all seven scores, and what softmax makes of them.

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
weights = [np.exp(dots / u) / np.exp(dots / u).sum() for u in (2, 1)]
print("key      q . k   weight, divided by 2   not divided")
for row in zip(keys, dots, *weights, strict=True):
    print("{:8s} {:5d} {:16.4f} {:19.4f}".format(*row))

# %% [markdown] id="hook-notice"
# "cat" wins in both columns. Compared with "because", whose score is 0, it has $e^4 \approx 55$ times the weight if we divide, and
# $e^8 \approx 2981$ times if not. Dividing the scores by 2 takes the square root of every ratio of weights.

# %% [markdown] id="where"
# In the machine of the course, the division stands between scores and softmax:

# %% id="setup"
import math

import torch

from attn_course import check, reference, show, verify_lesson
from attn_course.lessons.scaling import experiments, figures
from attn_course.reference import dot_scores, scaled_dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)
rng = np.random.default_rng(5)

# %% id="machine"
figures.machine()

# %% [markdown] id="hook-question"
# We chose these numbers by hand. In a new layer they are random, and there are many more. So first we need to know: **how large is the dot
# product of two random vectors?**

# %% [markdown] id="coins"
# ## Coins
#
# The simplest random vector is a row of tossed coins. Let every entry of $q$ and of $k$ be $+1$ or $-1$, each half of the time, and toss
# all of them independently. A product $q_i k_i$ is then a fair coin as well, because its factors agree half of the time, and so the dot
# product is a sum of $d_k$ independent coins. Three coins have eight outcomes, all equally likely:
#
# | sum | $-3$ | $-1$ | $1$ | $3$ |
# |---|---|---|---|---|
# | outcomes | 1 | 3 | 3 | 1 |

# %% [markdown] id="coins-square"
# The mean is 0. To learn how *far* from 0 a sum lies, we square before we take the mean, and get
# $(9 + 3 \cdot 1 + 3 \cdot 1 + 9) / 8 = 24 / 8 = 3$. One coin has the mean square 1, and two coins, with the sums $-2, 0, 0, 2$, have 2.

# %% [markdown] id="coins-predict"
# The root of the mean square says how far from 0 a typical score lies. **Predict** it for $d_k = 64$ and for $d_k = 1024$.


# %% id="coins-code" tags=["predicted"]
def coin_chances(d_k):
    chances = np.ones(1)
    for _ in range(d_k):  # one coin more: half go up by 1, half go down by 1
        chances = np.convolve(chances, [0.5, 0.0, 0.5])
    return np.arange(-d_k, d_k + 1), chances


for d_k in (1, 3, 64, 1024):
    values, chances = coin_chances(d_k)
    print(f"d_k = {d_k:4d}   typical score {np.sqrt(chances @ values**2):6.3f}")

# %% [markdown] id="coins-answer" tags=["answer"]
# A typical score is 8 at $d_k = 64$, and at $d_k = 1024$ it is 32. Sixteen times as many entries make it only four times as large.
#
# A single coin tells us why. It turns a sum $s$ into $s + 1$ or $s - 1$, each half of the time, and the mean of $(s + 1)^2$ and $(s - 1)^2$
# is $s^2 + 1$. So each coin adds 1 to the mean square, and the typical score is the root of $d_k$.

# %% [markdown] id="strip"
# What does softmax make of such scores? The card draws 64 queries and 64 keys with standard normal entries. Move $d_k$, and watch the
# largest weights in the second picture.

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="strip-notice"
# <details><summary>What you should see</summary>
#
# For the card's draw, one of the 64 keys gets 0.80 of the weight on average at $d_k = 64$ without the division, and 0.95 at 1024, though
# there is nothing to be sure of. Divided by $\sqrt{d_k}$, the largest weight is 0.12 and 0.10.
#
# </details>

# %% [markdown] id="mean"
# ## The variance of a score
#
# Few layers are built from coins, so does this carry over? We used a mean of 0, a mean square of 1, and independence. **The usual
# assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and variance 1, of any distribution.
#
# Two rules are enough. The mean of a sum is the sum of the means, and the mean of a product of *independent* numbers is the product of
# their means.

# %% [markdown] id="one-product"
# **One product.** Its mean is $\mathbb{E}[q_i]\, \mathbb{E}[k_i] = 0 \cdot 0 = 0$, so its variance is its mean square. The squares of
# independent numbers are independent too, so this is $\mathbb{E}[q_i^2]\, \mathbb{E}[k_i^2] = 1 \cdot 1 = 1$.

# %% [markdown] id="mean-sum"
# **Their sum.** Its mean is 0 as well, so again we want the mean square. The trick is to write the square as a product of two sums, each
# with an index of its own, and to judge the pairs one by one:
#
# $$(q \cdot k)^2 = \Bigl( \sum_i q_i k_i \Bigr) \Bigl( \sum_j q_j k_j \Bigr) = \sum_i \sum_j (q_i k_i) (q_j k_j)$$

# %% [markdown] id="usual"
# If $i \ne j$, the two products are independent and have mean 0, so their term has mean 0 and drops out. If $i = j$, the term is the square
# of one product, and its mean is 1. Of the $d_k^2$ pairs only these $d_k$ are left:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \key{variance-of-a-score}$$
#
# So the coins were no special case. For softmax a typical score of 8, at $d_k = 64$, is a lot: the weights of two keys with the scores 8
# and $-8$ stand in the ratio $e^{16}$, nearly nine million, all of it by chance.

# %% [markdown] id="deviations"
# If the entries, still of mean 0, have the standard deviations $\sigma_q$ and $\sigma_k$ instead of 1, each of the $d_k$ terms is
# $\sigma_q^2\, \sigma_k^2$:
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \label{score-variance-from-deviations}$$

# %% id="usual-verify"
draws, size = np.random.default_rng(0), (2, 40_000, 64)
entries = {
    "coins": draws.choice([-1.0, 1.0], size=size),
    "uniform": draws.uniform(-math.sqrt(3), math.sqrt(3), size=size),
    "normal": draws.normal(size=size),
}
for name, (q, k) in entries.items():
    print(f"{name:8s} typical score {(q * k).sum(axis=-1).std():.1f}")

# %% [markdown] id="walk"
# The root is older than attention. In 1905 Karl Pearson asked in *Nature* how far a man gets who walks one stretch after another, all
# equally long, each in a random direction. After $n$ of them he is typically $\sqrt{n}$ stretches away from his start, said Lord
# Rayleigh, who had met the problem 25 years before, in a study of sound. The dot product of coins takes such a walk along a line.

# %% [markdown] id="scale"
# ## The scale
#
# What should we divide by, then? A factor $c$ multiplies a variance by $c^2$, so to bring the variance $d_k$ back to 1 we need
# $c^2 = 1 / d_k$. That is where the root comes from. Under the usual assumption,
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$
#
# With queries of 4 entries a score is divided by 2, with 64 by 8, and the variance no longer depends on the width.

# %% [markdown] id="other-divisors"
# Two other divisors turn up in code. With $h$ heads (lesson {lesson}`heads`), $d_k$ is $d_{\text{model}} / h$. Put $c = 1 / d_k$ and
# $c = 1 / \sqrt{h\, d_k}$ into $c^2 d_k$:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h} \label{variance-under-wrong-scales}$$
#
# Dividing by $\sqrt{d_{\text{model}}}$ is usually a slip. Dividing by $d_k$ can be deliberate (Deeper section {section}`correlated`).

# %% [markdown] id="arrays"
# PyTorch's `scaled_dot_product_attention` divides by $\sqrt{d_k}$ unless you pass a `scale`:

# %% id="arrays-code"
Q, K = rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 5, 7))  # 2 examples, d_k = 7
weights = softmax(Q @ K.swapaxes(-1, -2) / math.sqrt(7))
V = np.stack([np.eye(5), np.eye(5)])  # with these values the output is the weights
theirs = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (Q, K, V)))
print("PyTorch's weights agree with ours:", np.allclose(weights, theirs))

# %% [markdown] id="one-hot"
# **What large scores do to gradients.** A softmax that is sure for no reason may also be hard to correct. By {eq}`softmax-jacobian` the
# derivatives of the weights $w$ with respect to the scores are $J = \mathrm{diag}(w) - w\, w^\top$, with $w_i (1 - w_i)$ on the diagonal
# and $-w_i w_j$ off it. Once one key has nearly all the weight, every $w_i$ is near 0 or 1, and of two weights at least one is near 0.
# So each entry of $J$ has a factor near 0, and a small change of the scores hardly moves the weights.

# %% [markdown] id="one-hot-dots"
# At $d_k = 64$, in the third picture of the card, 11 of 64 queries have a $J$ that stretches no change by more than 0.01 without the
# division, and none with it.

# %% [markdown] id="general"
# ## When entries have means or move together
#
# In a trained layer nothing keeps the entries independent or their means at 0. How much of our result survives?
#
# Not all of it. Let both entries of $q$ be *one* coin $a$, and both entries of $k$ one coin $b$. Then $q \cdot k = 2 a b$ has the variance
# 4, not $d_k = 2$. The terms with $i \ne j$, which used to vanish, are back, and this time we keep them.

# %% [markdown] id="independent"
# **We want** the variance of a score, and ask only that $q$ and $k$ are **independent of each other**, with finite variances. Within a
# vector, the entries may have any means, $(m_q)_i$ and $(m_k)_i$, and may move together. The mean of a score follows from our two rules:
#
# $$\mathbb{E}[q \cdot k] = m_q \cdot m_k \label{mean-of-a-score}$$

# %% [markdown] id="sorted"
# For the variance, split each vector into its mean and the part that varies, $q = m_q + \tilde q$ and $k = m_k + \tilde k$, where
# $\tilde q$ and $\tilde k$ have mean 0. Multiply out:
#
# $$q \cdot k = m_q \cdot m_k + \tilde q \cdot \tilde k + m_q \cdot \tilde k + \tilde q \cdot m_k$$
#
# The first part is the mean. The other three are the **sources of spread**: both vectors vary, or the key alone, or the query alone.

# %% [markdown] id="apart"
# **Do they simply add?** The variance is the mean square of their sum. In the product of two different sources, $\tilde q$ or $\tilde k$
# stands only once, as a factor of mean 0 that is independent of the rest. So these products have mean 0, and the mean squares of the three
# sources add up.

# %% [markdown] id="entries"
# **Each mean square** is a double sum again. A term of the first is $\tilde q_i \tilde q_j$ times $\tilde k_i \tilde k_j$, and because
# these two are independent, its mean is $\mathbb{E}[\tilde q_i \tilde q_j]\, \mathbb{E}[\tilde k_i \tilde k_j]$. The factors are by
# definition the **covariances** $(S_q)_{ij}$ and $(S_k)_{ij}$ (for $i = j$, the variance of an entry). In the second source $m_q$ is fixed,
# so a term has the mean $(m_q)_i (m_q)_j (S_k)_{ij}$, and in the third $m_k$ is. Together,
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} + (m_k)_i (m_k)_j (S_q)_{ij} \bigr)
# \key{score-variance-by-entries}$$
#
# Under the usual assumption only the $d_k$ products $(S_q)_{ii} (S_k)_{ii} = 1$ of the first source are left.

# %% [markdown] id="turn-correlated"
# **Your turn.** {turn}`correlated-entries-variance`

# %% id="turn-correlated-code" tags=["your-turn"]
my_variance_formula = ...  # r"..."
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="turn-correlated-after" tags=["ours"]
# The means are 0, so only $(S_q)_{ij} (S_k)_{ij}$ is left. Each of the $d_k$ terms with $i = j$ is $1 \cdot 1$, and each of the other
# $d_k (d_k - 1)$ is $\rho \cdot \rho$, so $v = d_k + d_k (d_k - 1)\, \rho^2$. After the usual scale, at $d_k = 64$, $\rho = 0.25$
# makes it almost 5.

# %% [markdown] id="row"
# ## What softmax sees: one row
#
# Does softmax notice all of this variance? It takes one row, one query $q$ with all its keys, and a shift of the whole row changes nothing,
# {eq}`softmax-shift-invariance`. So the spread that matters is that **within a row**.
#
# In the smallest example the vectors have one entry. Both keys are 1, and the queries are $1$ and $-1$.

# %% id="row-example"
scores = np.array([[1.0], [-1.0]]) @ np.array([[1.0, 1.0]])  # Q @ K.T
print("scores", *scores, "  weights", *softmax(scores))
within = scores.var(axis=-1).mean()
print(f"variance of all {scores.var():.1f}, within a row {within:.1f}")

# %% [markdown] id="row-fixed"
# The scores vary, but not within a row, so both queries spread their weight evenly. How large is the spread in general?
#
# **One row.** The query is fixed, and its keys vary, drawn independently of each other. A score is $q \cdot m_k$, the same number in the
# whole row, plus $q \cdot \tilde k$. That is the second source with $q$ for $m_q$, so its mean square is
#
# $$\mathrm{Var}_k[q \cdot k] = \sum_{i,\,j} q_i q_j\, (S_k)_{ij}$$

# %% [markdown] id="row-average"
# **The average row.** To average over the queries we need $\mathbb{E}[q_i q_j]$. With $q_i = (m_q)_i + \tilde q_i$, and the same for $j$,
# the mixed terms have mean 0, and $(m_q)_i (m_q)_j + (S_q)_{ij}$ is left. So
#
# $$\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)
# \key{spread-within-a-row}$$
#
# The third source, with $m_k$, is gone. What all keys have in common shifts whole rows, and softmax is blind to that.

# %% [markdown] id="spot-total"
# ### Spot the mistake: "`scores.var()` says how sharp the softmax is"
#
# We try this on two layers with $d_k = 16$ and independent normal entries:
#
# | layer | entries of queries | entries of keys |
# |---|---|---|
# | A | mean 0, deviation 1 | mean 1, deviation 0.2 |
# | B | mean 1, deviation 0.2 | mean 0, deviation 1 |
#
# Covariances of different entries are 0, so each sum over $i$ and $j$ is a sum of 16 equal terms. **Predict** for A and for B, after the
# scale: the variance of all scores, and the variance within a row.

# %% id="spot-total-code" tags=["predicted"]
wide, narrow = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
for name, query, key in (("A", wide, narrow), ("B", narrow, wide)):
    scores = scaled_dot_scores(query, key)
    within = scores.var(axis=1).mean()
    print(f"layer {name}   all scores {scores.var():.2f}   within a row {within:.2f}")
figures.rows_of_scores(scaled_dot_scores(wide[:8], narrow[:12]))  # of layer A

# %% [markdown] id="spot-total-answer" tags=["answer"]
# Over all scores the variance is 1.04 in both layers. (Our sample comes within about 2 percent.)
#
# In A the three sums of {eq}`score-variance-by-entries` are $16 \cdot 1 \cdot 0.04 = 0.64$, then 0, because $m_q = 0$, and
# $16 \cdot 1 = 16$. Divided by 16 they are 0.04, 0 and 1. Softmax sees the first two alone, so A's weights are nearly equal.
#
# In B the second sum is 16 and the third 0, so all of the 1.04 lies within the rows. `scores.var()` cannot tell the layers apart.

# %% [markdown] id="reparametrise"
# ## What the scale is not
#
# Suppose somebody forgets the division. Is there anything that our layer can compute and theirs cannot? No, as long as $W_Q$ feeds straight
# into the dot product, because the factor $c = 1/\sqrt{d_k}$ can be taken into the weights. With $W' = c\, W_Q$, their scores are
# $x W' K^\top = c\, x W_Q K^\top$, the same as ours. The authors of T5 left the division out and started $W_Q$ smaller by a factor
# $\sqrt{d_k}$ instead.
#
# Such a twin begins with the same scores. Does it learn in the same way?

# %% [markdown] id="chain"
# A step of **gradient descent** subtracts from the weights the step size $\eta$ times the gradient of the loss $\mathcal{L}$. Write $W$ for
# $W_Q$. How far does one step of our layer move $c\,W$, which is what the scores see?
#
# **The gradient.** The loss sees $W$ only through $c\,W = W'$. By the chain rule, $\nabla_W \mathcal{L}(c\,W)$ is $c$ times
# $\nabla \mathcal{L}(W')$, the gradient with respect to $W'$. This is one factor $c$.
#
# **The movement.** The step moves $W$ by $-\eta\, c\, \nabla \mathcal{L}(W')$, and so it moves $c\,W$ by $c$ times that. This is the other.

# %% [markdown] id="chain-together"
# In one line,
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \key{scale-as-reparametrisation}$$
#
# The twin moves its $W'$ by $-\eta\, \nabla \mathcal{L}(W')$, without these factors. At $d_k = 64$, where $c^2 = 1/64$, its step is 64
# times as long as ours at the same step size. **The start is the same, but under gradient descent with one step size the training is
# different.** (**Adam** divides an average of each entry's gradients by their recent size, so that the first factor cancels: Deeper section
# {section}`measured`.) So we should look at how layers learn.

# %% [markdown] id="slow"
# ## Is the unscaled start slower, and why?
#
# Where did the division come from? Vaswani et al. (2017) knew a finding that the undivided dot product does worse than another score when
# $d_k$ is large. "We suspect that for large values of $d_k$, the dot products grow large in magnitude, pushing the softmax function into
# regions where it has extremely small gradients", they write, and it stays a suspicion. We can investigate it.

# %% [markdown] id="task"
# **A small task.** An example has 16 items, vectors of 16 random features of variance 1, with a value each. The query is one of the items,
# multiplied by an orthogonal matrix that is always the same, and the output should be that item's value. A layer learns $W_Q$ and $W_K$
# with the squared error, until the right item has the largest weight in more than 90 % of new examples.

# %% [markdown] id="task-predict"
# With $d_k = 64$ we train a layer that divides and one that does not, from the same random matrices. Their entries have variance $1/16$, so
# that an entry of a query or key, a sum of 16 products, has variance 1 over all draws, and a score 64. Each step is one of gradient descent
# on 32 new examples (**SGD**), and each layer gets the best of eight step sizes. **Predict**: which one learns in fewer steps, and by what
# factor?

# %% id="task-code" tags=["predicted"]
record = experiments.SCALE.load()  # stored: three seeds, a number for each
for kind in ("scaled", "unscaled"):
    steps = record.values("best", "SGD", "64", "squared error", kind)
    print(f"{kind:8s}  steps until learnt {steps}")

# %% [markdown] id="task-answer" tags=["answer"]
# The delay is real. The unscaled layer takes 29 steps on average, about seven times as many as the scaled one.

# %% [markdown] id="silent"
# **The suspicion.** A query moves $W_Q$ and $W_K$ only through $g = J a$, where $g$ is the gradient of its loss with respect to its scores,
# and $a$ that with respect to its weights. ($J$ is symmetric, so this is the $J^\top a$ of lesson {lesson}`softmax`.) Where $J$ is near 0,
# so is $g$, unless $a$ is large. And where a query is sure and right, $a$ is near 0 too, since hardly any error is left. In a fresh scaled
# layer $g$ is about 0.3 long on average. We call a query **silent** if its $g$ is shorter than 0.01:

# %% id="silent-code"
for kind in ("scaled", "unscaled"):
    names = ("silent", "silent and right")
    found = [record.values("first", "64", kind, name).mean() for name in names]
    print("{:8s}  silent {:.3f}   silent and right {:.3f}".format(kind, *found))

# %% [markdown] id="slow-predict"
# Without the scale a quarter of the queries (2,048 a seed) are silent, most of them wrong. Does the silence make the delay? We intervene.
# In a new training, again with the best of eight step sizes, we **raise all silent** $g$ to the length 0.3, in their own directions. Then
# we raise only those of queries that are **wrong** at that moment, or only those that are **right**.
#
# **Predict**: does raising all remove most of the delay? And which helps more, the wrong ones or the right ones?

# %% id="slow-code" tags=["predicted"]
best = [{"SGD": found["best"]["SGD"]} for found in record.results]
figures.best_steps(best, widths=(64,), ways=figures.RAISED)

# %% [markdown] id="slow-answer" tags=["answer"]
# **Raising all silent gradients removes most of the delay.** The unscaled layer comes down from 29 steps on average to 7. (The scaled one,
# which starts with hardly any silent queries, still needs 4.) So the silence does matter.
#
# But whose? One thinks first of queries that are sure and *wrong*. Raise only these, and 18 steps remain. Raise only those that are right
# already, and 9 remain.
#
# Does that clear the wrong ones? It does not. A raised query keeps its direction, and that of a wrong query hardly points to the right
# item, which has a tiny weight. Turn the wrong ones towards it as well, and 8 remain (Deeper section {section}`measured`, with Adam and
# other widths).
#
# What do we make of it? Queries as the authors described them, with a large error and a $J$ near 0, do exist, and once they can move the
# right way, most of the delay is gone. But most of it is gone too if we push queries that are right already and are silent partly because
# little error is left. Two cures work, and neither proves the cause. In this task the suspicion is plausible, and it is not proved.

# %% [markdown] id="turn-sparse"
# ## Where the scale misses
#
# What $\sqrt{d_k}$ undoes is the spread of $d_k$ independent products of variance 1. Other entries may need another divisor.
#
# **Your turn.** {turn}`divisor-for-sparse-entries`

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$. By {eq}`score-variance-from-deviations` the variance is therefore $d_k\, p^2$, and
# $u = p \sqrt{d_k}$. For $d_k = 64$ and $p = 0.1$ that is 0.8, so a divisor can be smaller than 1.

# %% [markdown] id="turn-sparse-after"
# We compare the usual divisor, none, and the measured deviation of the scores, near your $u$:

# %% id="turn-sparse-measured"
draw, on = rng.normal(size=(2, 500, 64)), rng.random(size=(2, 500, 64)) < 0.1
query, key = np.where(on, draw, 0.0)
dots = query @ key.T
divisors = {"the usual one": 8, "none": 1, "the deviation": dots.std()}
for name, divisor in divisors.items():
    largest = softmax(dots[:, :16] / divisor).max(axis=-1).mean()
    print(f"{name:14s} largest of 16 weights {largest:.2f}")

# %% [markdown] id="turn-sparse-notice"
# With the usual scale the weights are nearly uniform (1/16 is 0.06). PyTorch's random starts miss the variance 1 as well (Deeper section
# {section}`layer-norm`). Before you train a layer, print the variance within a row, `scores.var(axis=-1).mean()`.

# %% [markdown] id="limits"
# ### Limits
#
# Our assumptions concern **the start** only. Training is meant to make queries and keys dependent, and no fixed divisor bounds the scores
# then, because the weights may grow. Nor have we shown that unit variance is the *best* start.

# %% id="verify-lesson"
verify_lesson("scaling")

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | variance of a score; entries independent, mean 0, variance 1, {eq}`variance-of-a-score` | {key}`variance-of-a-score` |
# | the scale, for the same entries, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | any means and covariances, $q$ independent of $k$, {eq}`score-variance-by-entries` | {key}`score-variance-by-entries` |
# | what softmax sees, $q$ and all keys independent of each other, {eq}`spread-within-a-row` | {key}`spread-within-a-row` |
# | the scale in the weights, one step of gradient descent, {eq}`scale-as-reparametrisation` | {key}`scale-as-reparametrisation` |
#
# Shapes: $Q$ (..., $T_q$, $d_k$), $K$ (..., $T_k$, $d_k$), scores (..., $T_q$, $T_k$). Cost: about $d_k$ multiplications and additions,
# and one division, for each score.

# %% [markdown] id="summary"
# ## Summary
#
# - The dot product of vectors with independent entries of mean 0 and variance 1 has variance $d_k$. Dividing by $\sqrt{d_k}$ makes that 1.
# - Softmax sees only the spread within a row.
# - The scale can be taken into $W_Q$. It changes where $W_Q$ starts and, by $c^2$ under gradient descent, how far a step moves $c\,W_Q$.
# - In our task ($d_k = 64$, squared error) SGD at its best step size took about seven times the steps without the scale. Raising the
#   silent gradients removed most of that delay, and so did raising those of right queries alone.
#
# Next, after the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb), lesson {lesson}`attention` puts all parts together.

# %% [markdown] id="matrices"
# ## Deeper: the variance in matrices, and which broken assumption shows
#
# The **trace** $\mathrm{tr}$ of a square matrix is the sum of its diagonal. Entry $(i, i)$
# of $S_q S_k$ is $\sum_j (S_q)_{ij} (S_k)_{ji}$, and $(S_k)_{ji} = (S_k)_{ij}$. So the first sum of {eq}`score-variance-by-entries` is
# $\mathrm{tr}(S_q S_k)$. A row times a matrix times a column is $m^\top S\, m = \sum_i \sum_j m_i S_{ij} m_j$, and the other two sums have
# this form:
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$
#
# One row has the variance $q^\top S_k\, q$, and the average row $\mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q$. (From a row of $n$
# independent keys it is on average $1 - 1/n$ of this: task {task}`sampled-row-spread`.)

# %% [markdown] id="broken"
# Now we break one assumption at a time, in six panels with normal entries, $d_k = 16$ and divided scores:
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
# Two panels keep mean 0 and variance 1, the first and the second. In the second, each covariance of two entries of $q$ is multiplied by
# one of $k$, which is 0. With related entries in both, the variance is your formula divided by 16, $1 + 15 \cdot 0.25 = 4.75$.
#
# Only means of 0.5 change the mean, to $16 \cdot 0.25 / 4 = 1$. Their variance becomes 1.5, because to the 1 we add
# $m_q^\top S_k\, m_q / 16 = 16 \cdot 0.5^2 / 16 = 0.25$, and the same again for $m_k$. Larger deviations and the long query change the
# variance alone, to $1.5^4 \approx 5$ and, by $q^\top S_k\, q$ with $S_k = I$, to $\|q\|^2 / 16 = 3$.

# %% [markdown] id="measured"
# ## Deeper: the training, measured in full
#
# **Is a twin under Adam different?** Adam moves each entry by $-\eta\, m / (\sqrt v + \varepsilon)$, where $m$ is a running average of its
# gradient, and $v$ one of the square of its gradient (both corrected for their start at 0; $\varepsilon = 10^{-20}$ plays no part here). We
# train a scaled layer with $d_k = 64$ for 20 steps, and its twin from $W' = W_Q / 8$. The step for $W'$ is multiplied by a factor, that for
# $W_K$ stays. **Predict** for each optimizer which factor gives the same attention weights.

# %% id="twins-code" tags=["predicted"]
for optimizer in ("SGD", "Adam"):
    for factor in (1, 1 / 8, 1 / 64):
        apart = experiments.two_step_sizes(64, 20, optimizer=optimizer, factor=factor)
        said = "same weights" if apart < 1e-9 else "different weights"
        print(f"{optimizer:4s}  step for W' x {factor:.3f}   {said}")

# %% [markdown] id="twins-answer" tags=["answer"]
# Plain gradient descent (SGD) needs the factor $c^2 = 1/64$, because by {eq}`scale-as-reparametrisation` the gradient and the movement
# each carry a factor $c = 1/8$. Adam needs $c = 1/8$. Multiply all gradients by $c$, and $m$ and $\sqrt v$ both change by $c$, which
# cancels; the factor of the movement stays.

# %% [markdown] id="alone"
# **Does the softmax alone explain the delay?** The *norm* of its Jacobian is the largest factor by which it stretches a small change of the
# scores, 0 where one key has all the weight and 1/2 where two share it equally. On the card the *mean* norm is larger without the scale
# from $d_k = 2$ to 512, though from 16 on more queries lie below 0.01. And a large gradient of the loss may make up for a small Jacobian,
# which is why we train.

# %% [markdown] id="live"
# **One step size, in code.** The task and its training, shorter than in the experiment:

# %% id="live-layer"
rotation = torch.tensor(np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16)))[0])


def draw(rng, examples):
    item = torch.tensor(rng.normal(size=(examples, 16, 16)))
    return item, torch.tensor(rng.normal(size=(examples, 16, 4)))  # and their values


def lookup(w_query, w_key, divisor, item):
    # The right item is the first, but the layer does not know the order.
    query, key = item[:, :1] @ rotation @ w_query, item @ w_key
    return (query @ key.mT / divisor).softmax(dim=-1)


def squared_error(weights, value):
    return (weights @ value - value[:, :1]).square().mean()


# %% id="live-new"
new_item, _ = draw(np.random.default_rng(1), 1024)  # to test on


# %% id="live-code"
def steps_needed(divisor, step_size):
    rng = np.random.default_rng(0)
    # W_Q and W_K with d_k = 64; a sum of 16 products of variance 1/16 has variance 1
    start = rng.normal(size=(2, 16, 64)) / 4
    both = [torch.tensor(matrix, requires_grad=True) for matrix in start]
    optimizer = torch.optim.SGD(both, step_size)
    for step in range(101):
        chosen = lookup(*both, divisor, new_item).argmax(dim=-1)
        if (chosen == 0).double().mean() > 0.9:
            return step
        item, value = draw(rng, 32)
        optimizer.zero_grad()
        squared_error(lookup(*both, divisor, item), value).backward()
        optimizer.step()
    return "> 100"


# %% id="live-steps"
for size in (0.1, 0.4, 1.6):
    scaled, unscaled = (steps_needed(divisor, size) for divisor in (8, 1))
    print(f"step size {size}   steps: scaled {scaled:>5}, unscaled {unscaled:>5}")

# %% [markdown] id="steps"
# With the smallest step size the unscaled layer is faster, and with the largest it has not learnt after 100 steps. So the experiment tries
# eight for SGD and seven for Adam (with its usual $\varepsilon = 10^{-8}$). Where the best is the smallest or largest that we tried, there
# may be a better one. The third layer is the twin.

# %% id="steps-code"
every = [found["steps"] for found in record.results]
sizes = experiments.STEP_SIZES
figures.steps_against_step_size(every, sizes, most=experiments.STEPS, d_k=64)

# %% [markdown] id="steps-notice"
# Here, at small step sizes of SGD (0.1 or 0.2), the scaled layer is slowest. Its gradients carry the factor $c$, a likely reason. The
# twin's step for $W_Q$ is in effect 64 times as long. At their best step sizes the twin and the scaled layer need the same number of steps,
# give or take two.

# %% [markdown] id="first"
# **What do gradients look like before the first step?** The *pull* is the mean of $-g_r$, where $r$ is the right item. By
# {eq}`softmax-vector-jacobian-product`, $g_r = w_r ( a_r - \sum_l w_l\, a_l )$ has the factor $w_r$, the weight of that item. We also take
# it with every $g$ at the length 0.3.

# %% id="first-code"
kinds = ("scaled", "unscaled")
print(f"{'means of three seeds':34s}", *kinds)
for d_k in ("16", "64", "256"):
    for what in ("mean", "silent", "silent and right", "pull", "pull, equal lengths"):
        pair = [record.values("first", d_k, kind, what).mean() for kind in kinds]
        print(f"d_k = {d_k:>3s}   {what:20s}   {pair[0]:6.3f}  {pair[1]:6.3f}")
figures.gradient_lengths([found["first"] for found in record.results])

# %% [markdown] id="first-notice"
# With the scale hardly a query is silent. Without it their share grows with the width, and at $d_k = 64$ and 256 few of them are right
# already. The pull is about half as strong at 16, and about an eighth at 256.

# %% [markdown] id="ways"
# **All interventions.** Is it the weak pull, or a few **long** $g$, which may force a step size too small for the others? We also tried:
#
# - **long ones cut**: every $g$ longer than 0.3 gets that length;
# - **silent wrong turned**: raised, in the direction of $w$ with 1 subtracted at the right item, which is a strong pull;
# - **equal lengths**: every $g$ gets the length 0.3, so that only the weak pull is left;
# - **log weight**: the loss $-\ln w_1$, with item 1 the right one. Then $a_1 = -1 / w_1$, the other $a_j$ are 0, and $g_1 = w_1 - 1$,
#   $g_j = w_j$. A right item of small weight is pulled with almost full strength.

# %% id="widths-code"
best = [found["best"] for found in record.results]
figures.best_steps(best, widths=(16, 64, 256))
concluded = [experiments.SCALE.conclude(found) for found in record.results]
assert all(all(claims.values()) for claims in concluded)

# %% [markdown] id="widths-notice"
# At $d_k = 64$ the unscaled layer needs 29 steps with SGD and 41 with Adam. With all silent raised, 7 and 8 remain, with the right ones 9
# and 12, with the wrong ones 18 and 25, and with these turned as well 8 and 9. Cutting the long ones leaves 18 and 32.
#
# It needs at least twice the steps of the scaled layer at every width, and at 256 at least nine times. With equal lengths, which leave the
# pull weak, or with minus log weight, it is never more than five steps behind. Cutting the long ones removes 56 % of the delay at 16 with
# SGD, and at most 40 % elsewhere. So neither the weak pull alone nor the long ones alone explain it.

# %% [markdown] id="widths-whose"
# At 16, raising all silent queries removes 71 % of the delay with SGD and 56 % with Adam, raising the right ones 65 % and 53 %. At 256 it
# is 94 % with both, and 94 % and 93 %. Raising only the wrong ones removes about 15 % at 16 and two thirds at 256, and turning them as well
# just under a quarter and 99 %.

# %% [markdown] id="silence-grows"
# **Who is silent during the training?** We train the unscaled layer with $d_k = 64$ again, with SGD at its best step size, and look at
# 2,048 new queries at the start and after each third of the steps:


# %% id="silence-code"
def silent_shares(layer, batch):
    query, item, value, wanted = batch
    scores = experiments.scores(layer, query, item).detach()
    gradients = experiments.score_gradients(scores, value, wanted)
    silent, right = gradients.norm(dim=-1) < 0.01, scores.argmax(dim=-1) == wanted
    both = torch.stack([silent & right, silent & ~right])
    return both.double().mean(dim=-1).round(decimals=2).tolist()


# %% id="silence-trained"
print("silent and right, silent and wrong")
for seed, found in enumerate(every):
    steps = found["SGD"]["64"]["unscaled"]
    third, task = min(steps) // 3, experiments.Lookups(seed)
    layer = experiments.initial_layer(64, "unscaled", seed)
    sgd = experiments.optimizer_for(layer, "SGD", sizes["SGD"][np.argmin(steps)])
    new = task.batch(2048)
    shares = [silent_shares(layer, new)]
    for _ in range(3):
        experiments.train(layer, sgd, [task.batch() for _ in range(third)], new)
        shares.append(silent_shares(layer, new))
    print(*shares, sep="   ")


# %% [markdown] id="silence-notice"
# At the start most of the silent queries are wrong. At the end nearly all of them are right.

# %% [markdown] id="correlated"
# ## Deeper: when query and key are not independent
#
# What happens to a score once a layer has learnt to make $q$ and $k$ dependent? Let standard normal entries be correlated,
# $k_i = \rho\, q_i + \sqrt{1 - \rho^2}\, e_i$, where $e_i$ is standard normal and independent of all $q_i$, and different $i$ are
# independent. (This is not the $\rho$ of your first turn.) Then
#
# $$q_i k_i = \rho\, q_i^2 + \sqrt{1 - \rho^2}\, q_i e_i, \qquad \mathbb{E}[q_i k_i] = \rho$$
#
# Square it. The mixed term $2 \rho \sqrt{1 - \rho^2}\, q_i^3 e_i$ has mean 0, because $e_i$ has mean 0 and is independent of $q_i$. With
# $\mathbb{E}[q_i^4] = 3$ for a standard normal number, the mean square is $3 \rho^2 + (1 - \rho^2) = 1 + 2 \rho^2$; subtract the square
# of the mean, $\rho^2$. The $d_k$ terms are independent of each other, so
#
# $$\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k \label{correlated-query-key-moments}$$

# %% [markdown] id="mup"
# After the scale the mean is $\rho \sqrt{d_k}$, which at the same $\rho$ grows with the width. **muP**, a set of rules for widening a model
# (Yang et al., 2022), therefore divides by $d_k$, so that learnt scores stay alike in narrow and in wide models. The root keeps *random*
# scores alike.

# %% [markdown] id="equal"
# The extreme is $q = k$, again with independent entries of mean 0 and variance 1. Each term is $q_i^2$. Its mean is 1, and its mean
# square is the fourth moment of an entry, which we call $\kappa$ (3 for normal entries, 1 for coins). So its variance is $\kappa - 1$,
# and
#
# $$\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k \label{equal-query-key-moments}$$
#
# Lesson {lesson}`self_attention` meets this on the diagonal of its scores. For $d_k = 16$ we expect, after the scale, the means
# $0.5 \cdot 4 = 2$ and 4, and the variances 1.25 and 2:

# %% id="correlated-code"
draws = np.random.default_rng(8)
q, e = draws.normal(size=(2, 40_000, 16))
related = {"ρ = 0.5": 0.5 * q + math.sqrt(0.75) * e, "q = k": q}
for name, k in related.items():
    scores = (q * k).sum(-1) / 4
    print(f"{name:8s}  mean {scores.mean():.1f}   variance {scores.var():.1f}")

# %% [markdown] id="similar"
# ## Deeper: other ways to be similar
#
# Why a dot product, when a distance or an angle would say how alike two vectors are? Multiply out
# $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$ and solve for the middle term:
#
# $$q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr) \label{dot-product-by-distance}$$
#
# Among vectors of given lengths, nearer ones have the larger dot product. The **cosine** removes the lengths. Put the law of cosines,
# $\|q - k\|^2 = \|q\|^2 + \|k\|^2 - 2 \|q\| \|k\| \cos\theta$, into {eq}`dot-product-by-distance`:
#
# $$\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|} \label{cosine-similarity}$$
#
# The **Gaussian** score is minus the squared distance in units of a bandwidth $h > 0$:
#
# $$-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2} \label{gaussian-score-expansion}$$

# %% [markdown] id="similar-equal"
# The last term is common to a row, and softmax (here written $\sigma$) ignores it. If all keys have one length, the second is common too,
# and only the dot product is left:
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
show("cosine-similarity", q=[3, 4], k=[4, 3])

# %% [markdown] id="spot-cosine"
# **Is $q \cdot k / \sqrt{d_k}$ a cosine?** Both divide a dot product by something. But take the query $(1, 0)$ and the keys $(1, 0)$ and
# $(3, 3)$. The scaled dot product prefers the second key, $3 / \sqrt{2}$ against $1 / \sqrt{2}$, and the cosine the first, 1 against
# $1 / \sqrt{2}$.
#
# The scores of a cosine lie in $[-1, 1]$, which has a price. Let the best of $n$ keys have the score 1 and all others $-1$; nothing sharper
# is possible:
#
# $$\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}} \label{cosine-weight-bound}$$
#
# For 64 keys that is 0.105. Without a temperature, even a perfect match gets about a tenth of the weight at most.

# %% id="spot-cosine-code"
query, key = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 3.0]])
print("q.k / sqrt(d_k)", scaled_dot_scores(query, key)[0])
print("cosine         ", reference.cosine_scores(query, key)[0])
print("largest weight for 64 keys:", round(1 / (1 + (64 - 1) * math.exp(-2)), 3))

# %% [markdown] id="kurtosis"
# ## Deeper: normal only in the limit
#
# Does $q \cdot k$ follow $N(0, d_k)$ if all entries are independent and standard normal? The variance is right, but the score is not
# normal. Fix $q$. Then $q \cdot k$ is a sum of independent normal numbers, so it *is* normal, with variance $\|q\|^2$, and its fourth
# moment is $3 \|q\|^4$. Now average over $q$, with $\mathbb{E}[q_i^4] = 3$ and $\mathbb{E}[q_i^2 q_j^2] = 1$ for $i \ne j$:
#
# $$\mathbb{E}\bigl[ \|q\|^4 \bigr] = \sum_i \sum_j \mathbb{E}[q_i^2 q_j^2] = 3\,d_k + d_k (d_k - 1) = d_k^2 + 2\,d_k$$

# %% [markdown] id="kurtosis-formula"
# Three times this, divided by the square of the variance $d_k$, is the **kurtosis** of a score:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$
#
# A normal number has 3. A score has heavier tails and a sharper peak, because it mixes narrow normal curves of short queries and wide
# ones of long queries.

# %% id="kurtosis-figure"
x = np.linspace(-4, 4, 121)
densities = {}
for d_k in (1, 4, 64):
    deviation = np.sqrt(rng.chisquare(d_k, size=(20_000, 1)) / d_k)  # |q| / sqrt(d_k)
    curves = np.exp(-((x / deviation) ** 2) / 2) / deviation
    densities[f"d_k = {d_k}"] = curves.mean(axis=0) / math.sqrt(2 * math.pi)
figures.towards_normal(x, densities, np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))

# %% [markdown] id="layer-norm"
# ## Deeper: what layer normalisation fixes, and what not
#
# Do queries and keys have variance 1 if each token $x$ is normalised before attention? Layer normalisation subtracts
# the mean of a token and divides by its deviation. While its learnt gain is 1 and its bias 0, that makes $\|x\|^2 = d$, the number of
# entries (nearly: a small $\varepsilon$ is added to the variance). But the query is not $x$; it is $x W_Q$. With independent entries of
# mean 0 and variance $\sigma_w^2$ in $W$, each entry of $x W$ is a sum of $d$ independent terms $x_i W_{ij}$ of variance
# $\sigma_w^2\, x_i^2$:
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$

# %% [markdown] id="two-tokens"
# Two fixed tokens $x$ and $y$ give a query and a key of independent entries, so by {eq}`score-variance-from-deviations` the $d_k$ cancels.
# Over the draws of the two matrices,
#
# $$\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2
# \label{score-variance-at-initialisation}$$

# %% [markdown] id="inits"
# After layer normalisation this is $(d\, \sigma_Q^2)(d\, \sigma_K^2)$, so unit variance needs $\sigma_w^2 = 1/d$ in both matrices. These
# three initialisations give less. A uniform number between $-b$ and $b$ has the variance $b^2 / 3$.
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
# Without a learnt factor it lies within $\pm\sqrt{d_k}$ whatever the weights become. Multiply $W_Q$ by 100, and nothing changes:

# %% id="qk-norm-code"
query, key = rng.normal(size=(1, 64)), rng.normal(size=(3, 64))
for factor in (1, 100):
    dot = scaled_dot_scores(factor * query, key)[0]
    normalised = 8 * reference.cosine_scores(factor * query, key)[0]
    print(f"W_Q x {factor:3d}   scaled dot {dot}   normalised {normalised}")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1: the scale, the suspicion, and in a
#   footnote the variance.
# - K. Pearson, *Nature* 72, page 294, and Lord Rayleigh, page 318 (1905): the random walk.
# - G. Yang et al. (2022), [arXiv:2203.03466](https://arxiv.org/abs/2203.03466): muP, which divides by $d_k$.
# - C. Raffel et al. (2020), [arXiv:1910.10683](https://arxiv.org/abs/1910.10683): T5. Its Mesh TensorFlow code starts $W_Q$ smaller. A
#   comment in transformers says "to avoid scaling before softmax"
#   ([issue 18284](https://github.com/huggingface/transformers/issues/18284)).
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): query-key normalisation.
# - J. L. Ba, J. R. Kiros and G. E. Hinton (2016), [arXiv:1607.06450](https://arxiv.org/abs/1607.06450): layer normalisation.
