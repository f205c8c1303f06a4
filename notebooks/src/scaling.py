# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# The language model SmolLM2 has queries and keys of $d_k = 64$ numbers, and divides each score by $\sqrt{64} = 8$. That looks like a
# detail of bookkeeping. **Why the root of $d_k$, and not $d_k$ itself, or nothing at all?** Let us take the division out of all 30
# layers. The cell prints the perplexity on four texts: roughly, between how many next words the model hesitates.

# %% [markdown] id="needs"
# **You need** lesson {lesson}`softmax`, expectations, variances and gradients. **Time:** 60 minutes, without *Deeper* sections and
# [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% id="hook-model"
from attn_course.lessons.scaling.experiments_smollm2 import SMOLLM2

# stored: four texts, read as it is, and with all scores times 8: division undone
real = SMOLLM2.load()
for factor, name in (("1", "divided by 8"), ("8", "not divided")):
    print(f"{name:12s}", real.values("perplexity", factor).round().astype(int))

# %% [markdown] id="hook"
# One division less, and the model is lost among thousands of words. What did that division protect?
#
# ## Softmax sees one row
#
# Look at a row that we can follow by hand. In `the cat sat because it was tired`, "it" has the query $(2, 0, -2, 2)$ and "cat" the key
# $(2, 0, 0, 2)$. Their dot product is 8, and divided by $\sqrt 4 = 2$ it is 4.

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

# %% [markdown] id="leads"
# Divided by 2, "cat" leads "because" by 4 and gets $e^4 \approx 55$ times its weight. Not divided, it leads by 8 and gets
# $e^8 \approx 2981$ times its weight. In general $w_j / w_l = e^{s_j - s_l}$: softmax sees nothing but **leads**, the differences of two
# scores in one row. If we shift the whole row, no lead changes, and no weight.
#
# In the machine, the division stands between the scores and the softmax:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.scaling import figures

figures.machine()

# %% [markdown] id="chance"
# "Cat" deserves its lead. But before training, queries and keys are random numbers. How large are the leads that chance hands out?

# %% [markdown] id="row"
# ## How far does a drunkard get?
#
# In July 1905 Karl Pearson asked the readers of *Nature* for help. A man walks one stretch, turns in any direction, walks another, and so
# on, $n$ times. How far from his start does he end? A week later Lord Rayleigh replied that he had solved this long ago, for sounds that
# add up: typically the *root* of $n$ stretches, because steps in all directions largely undo each other. Pearson concluded that the most
# likely place to find a drunken man is near the spot where one left him. (Each single spot farther out is less likely, but there are many
# more of them.)
#
# A dot product of random numbers is such a walk, on a line: $q \cdot k = q_1 k_1 + q_2 k_2 + \ldots$ takes $d_k$ steps, each forwards or
# backwards.

# %% [markdown] id="coins"
# **By hand.** Let $q = (1, 1, 1)$, and let a key be three tossed coins, each $+1$ or $-1$. Of the eight possible walks one ends at $-3$,
# three at $-1$, three at $1$ and one at $3$. The mean square is $(9 + 3 + 3 + 9) / 8 = 3$. Its root, $\sqrt 3$, is what we call the typical
# distance.

# %% [markdown] id="row-derived"
# **In general.** Take one query $q$, whatever it is, and draw its keys from one distribution, independently of $q$ and of each other. Let
# the entries of a key be uncorrelated, each with variance $\sigma_k^2$ and with any mean. The means shift all scores of the row by the
# same number, so they are in no lead. In $q \cdot k = \sum_i q_i k_i$ the query is fixed, so the term $q_i k_i$ has the variance
# $q_i^2\, \sigma_k^2$. And the variances of uncorrelated terms add. So, over the keys of this one query,
#
# $$\mathrm{Var}_k[q \cdot k] = \sigma_k^2\, \|q\|^2 \key{row-variance-by-query}$$

# %% [markdown] id="usual"
# Now let the query be random too. **The usual assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and variance 1.
# **Predict** how far a score typically lies from the mean of its row, as the root of the variance, for $d_k = 256$ and $d_k = 1024$.

# %% id="usual-code" tags=["predicted"]
rng = np.random.default_rng(5)
for d_k in (256, 1024):
    query, key = rng.normal(size=(2, 1000, d_k))
    variance = (query @ key.T).var(axis=1).mean()  # within each row, then their mean
    print(f"d_k = {d_k:4d}   typical distance {np.sqrt(variance):.0f}")
figures.walks((query[1] * key[:20]).cumsum(axis=1))  # one row, step by step

# %% [markdown] id="usual-answer" tags=["answer"]
# The typical distance is 16 at $d_k = 256$ and 32 at $d_k = 1024$, because $\|q\|^2 = \sum_i q_i^2$ is $d_k$ on average: each of its
# $d_k$ terms has the mean 1. In the picture 20 keys walk away from one query, and 13 of them end between the curves.

# %% [markdown] id="scale"
# ## The scale
#
# We can see the same $d_k$ without fixing the query. Under the usual assumption each product $q_i k_i$ has the mean 0 and the mean square
# $1 \cdot 1$, so its variance is 1. Different products share no entry, so they are independent, and their variances add:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \label{variance-of-a-score}$$
#
# A factor $c$ multiplies a variance by $c^2$. To bring $d_k$ back to 1 we need $c^2 = 1 / d_k$. There is the root:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$

# %% [markdown] id="card-question"
# We divide the walk by the distance that chance alone would cover. If we divided by $d_k$, a longer walk would end ever nearer to 0. And if
# we do not divide? On the card, 64 random queries meet 64 random keys. Raise $d_k$, and watch the largest weight in the second picture.

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="strip-notice"
# <details><summary>What you should see</summary>
#
# Not divided, the largest of 64 weights is 0.80 on average at $d_k = 64$ and 0.95 at 1024, though there is nothing to be sure of: the layer
# believes in noise. Divided by $\sqrt{d_k}$, it is 0.12 and 0.10.
#
# The third picture shows for each query the largest factor by which the Jacobian of its softmax stretches a change of the scores. Not
# divided, the mean even rises at first: a Jacobian is largest where two keys share the weight. So look at the dots near the floor: 11 of the 64 queries lie below 0.01 at $d_k = 64$, and 41 at
# 1024. Their weights hardly move when a score does.
#
# </details>

# %% [markdown] id="deviations"
# What if the assumption is wrong? If the entries, still independent and of mean 0, have the deviations $\sigma_q$ and $\sigma_k$, each
# product has the variance $\sigma_q^2\, \sigma_k^2$, not 1, so
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \key{score-variance-from-deviations}$$
#
# **Your turn.** {turn}`divisor-for-sparse-entries`

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$, so by {eq}`score-variance-from-deviations` the variance is $d_k\, p^2$, and
# $u = p \sqrt{d_k}$. For $d_k = 64$ and $p = 0.1$ that is 0.8. The usual divisor, 8, would leave scores that differ by about 0.1.

# %% [markdown] id="spot-total"
# ### Spot the mistake: "`scores.var()` says how sharp the softmax is"
#
# Here is a layer with $d_k = 16$ and independent normal entries. Those of its queries have mean 0 and deviation 1, those of its keys mean 1
# and deviation 0.2. After the scale, the variance of all its scores is about 1, as it should be. **Predict** the mean variance within a
# row. Start from {eq}`row-variance-by-query`.

# %% id="spot-total-code" tags=["predicted"]
query, key = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
scores = query @ key.T / np.sqrt(16)
print(f"all scores {scores.var():.2f}   within a row {scores.var(axis=1).mean():.2f}")
figures.rows_of_scores(scores[:8, :12])

# %% [markdown] id="spot-total-answer" tags=["answer"]
# The variance within a row is 0.04. The mean of $\|q\|^2$ is 16 and $\sigma_k^2$ is 0.04, and the scale divides their product by 16. The
# other part of the variance, about 1, is how far the rows lie apart, which softmax never sees. So no key stands out in any row, although
# `scores.var()` looks right. What we have to look at is `scores.var(axis=1)`.

# %% [markdown] id="reparametrise"
# ## Could the matrices do it themselves?
#
# Suppose that somebody forgets the division. Is there anything that our layer can compute and theirs cannot? No. Queries are projections,
# $q = x W_Q$ (we leave biases out). If their matrix is $W_Q / \sqrt{d_k}$, their scores are ours. We call such a layer the **twin** of
# ours. T5 is a model that starts in this way.
#
# So the scale is no new ability. What it can change is the training: with which scores a layer starts, and how far a step moves them
# (section {section}`measured` derives the second). Does that matter?

# %% [markdown] id="slow"
# ## A suspicion on trial
#
# Those who introduced the scale wrote (Vaswani et al., 2017): "We suspect that for large values of $d_k$, the dot products grow large in
# magnitude, pushing the softmax function into regions where it has extremely small gradients." Let us put it on trial.
#
# An example has 16 items. Each has 16 random features, and a value of four random numbers. The query is the features of one item, turned
# by a rotation that is the same in all examples, and the output should be that item's value. A layer scores each item by its two matrices
# and a divisor:

# %% id="trial-data"
import torch

from attn_course.lessons.scaling import experiments

task = experiments.Lookups(seed=0)
batches = [task.batch(32) for _ in range(100)]
new_query, new_items, _, new_right = task.batch(512)


def scores_of(w_query, w_key, divisor, query, items):
    return torch.einsum("bk,bnk->bn", query @ w_query, items @ w_key) / divisor


# %% [markdown] id="trial-learnt"
# A layer learns $W_Q$ and $W_K$ from the squared error, by gradient descent (SGD) on 32 new examples a step. It has learnt the task when
# the right item has the largest weight in more than 90 % of 512 new examples.


# %% id="trainer"
def steps_until_learnt(w_query, w_key, divisor, step_size):
    w_query, w_key = (w.clone().requires_grad_() for w in (w_query, w_key))
    sgd = torch.optim.SGD([w_query, w_key], lr=step_size)
    for step, (query, items, value, right) in enumerate(batches, 1):
        weights = scores_of(w_query, w_key, divisor, query, items).softmax(dim=1)
        output = torch.einsum("bn,bnv->bv", weights, value)
        loss = ((output - value[range(32), right]) ** 2).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        best = scores_of(w_query, w_key, divisor, new_query, new_items).argmax(dim=1)
        if (best == new_right).float().mean() > 0.9:
            return step
    return 101  # not learnt


# %% [markdown] id="slow-predict"
# Three layers with $d_k = 64$ are made from the same random matrices. The **scaled** one divides by 8, so its scores have variance 1, on average over such matrices. The
# **unscaled** one does not divide, and its scores have variance 64. The twin does not divide either, but its $W_Q$ is divided by 8. Each
# gets the best of eight step sizes. **Predict**: does the twin keep up with the scaled layer, or with the unscaled one?

# %% id="task-code" tags=["predicted"]
drawn = experiments.initial_layer(64, "scaled", seed=0)
w_query, w_key = drawn.w_query.detach(), drawn.w_key.detach()  # random, for all three
layers = {
    "scaled": (w_query, w_key, 8),
    "unscaled": (w_query, w_key, 1),
    "twin": (w_query / 8, w_key, 1),
}
for name, layer in layers.items():
    needed = min(steps_until_learnt(*layer, 0.1 * 2**n) for n in range(8))
    print(f"{name:9s} steps until learnt {needed:3d}")

# %% [markdown] id="task-answer" tags=["answer"]
# The twin keeps up with the scaled layer: both need 4 steps, and the unscaled one needs 24. The twin does not divide either. So it is the
# start that slows the unscaled layer.
#
# Does it do so by small gradients? Where one key has nearly all the weight, every entry of the Jacobian {eq}`softmax-jacobian` is near 0, and
# a query learns hardly anything, even if its answer is wrong. Section {section}`measured` makes such gradients longer, beside a control. This
# wins back most of the lost steps, but not mainly by the queries whose answers are wrong, and a third of the delay stays unexplained. And
# this was one small task, in which we have not shown that variance 1 is the *best* start.

# %% [markdown] id="own"
# ## A start of your own
#
# The queries and keys of a new layer come out of its
# matrices, and nobody promises that their entries have variance 1. So measure, then mend.

# %% [markdown] id="own-question"
# **Your turn.** {turn}`unit-row-variance`

# %% id="own-turn" tags=["your-turn"]
my_start = ...  # your function
check("unit-row-variance", my_start)

# %% [markdown] id="own-ours" tags=["ours"]
# A divisor of $W_Q$ divides the scores, and their variance by its square. So we divide by the root of the mean variance:
#
# ```python
# def my_start(x, w_query, w_key):
#     scores = (x @ w_query) @ (x @ w_key).T / np.sqrt(w_query.shape[1])
#     return w_query / np.sqrt(scores.var(axis=-1).mean())
# ```

# %% [markdown] id="own-try"
# Let us try it on 64 tokens that share a part, with matrices as PyTorch's `nn.Linear` draws them:

# %% id="own-code"
if my_start is ...:  # not written yet: take ours
    from attn_course.lessons.scaling.tasks_turns import unit_start as my_start

d, d_k = 512, 64
tokens = rng.normal(size=d) + rng.normal(size=(64, d))
tokens -= tokens.mean(axis=1, keepdims=True)
tokens /= tokens.std(axis=1, keepdims=True)
w_query, w_key = rng.uniform(-1, 1, size=(2, d, d_k)) / np.sqrt(d)
for w in (w_query, my_start(tokens, w_query, w_key)):
    rows = (tokens @ w) @ (tokens @ w_key).T / np.sqrt(d_k)
    print(f"variance within a row {rows.var(axis=-1).mean():.2f}")

# %% [markdown] id="own-notice"
# We divided by the root, and still the rows of PyTorch's start hardly vary. Section {section}`matrices` derives this 0.05 from the
# matrices and from how alike the tokens are. Your function needed neither.

# %% [markdown] id="trained"
# **And SmolLM2?** It proves less than it seems. It was trained with the division, so its matrices count on it. And after training the
# variance is not 1:

# %% id="trained-code"
variances = real.values("variance of a row by layer", "all keys").mean(axis=0)
for which in (np.min, np.median, np.max):
    print(f"variance of a row, {which.__name__} of 30 layers: {which(variances):.1f}")

# %% [markdown] id="holds"
# Whatever it was at the start, the division did not hold it at 1. After training a wide row need not be chance. Section
# {section}`similar` tells how today's large models hold their scores *during* training.

# %% id="verify-lesson"
verify_lesson("scaling")

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | one row; $q$ fixed, entries of $k$ uncorrelated, {eq}`row-variance-by-query` | {key}`row-variance-by-query` |
# | the scale; entries independent, mean 0, variance 1, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | all scores; entries independent, mean 0, {eq}`score-variance-from-deviations` | {key}`score-variance-from-deviations` |

# %% [markdown] id="summary"
# ## Summary
#
# - Softmax sees the leads within a row. By chance the variance of a row grows like $\|q\|^2$, which under the usual assumption is $d_k$ on
#   average.
# - The scale is no new ability, for $W_Q$ can hold the factor. It changes the training. In our task a start of variance 64 took SGD six
#   times the steps.

# %% [markdown] id="summary-answer"
# Why the root, then? A random dot product is like Pearson's man: in $d_k$ steps it gets about $\sqrt{d_k}$ far. With independent entries
# of mean 0 and variance 1, the root gives scores of variance 1, whatever the width. In a wide layer, softmax would be sure of noise without
# a divisor, and with the divisor $d_k$ it would hardly see a lead.
#
# Next, after the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb), lesson {lesson}`attention` puts all parts together.

# %% [markdown] id="matrices"
# ## Deeper: a new layer, and entries that move together
#
# **Layer normalisation** subtracts a token's mean and divides by its deviation. Does that make the entries of queries and keys have
# variance 1? Let $x$ be a fixed token with $d$ entries, and let $W$ have independent entries of mean 0 and variance $\sigma_w^2$. Each
# entry of $x W$ sums $d$ independent terms $x_i W_{ij}$, so over the draws of $W$
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$
#
# While its learnt gain is 1 and its bias 0, layer normalisation makes $\|x\|^2 = d$ (but for a tiny $\varepsilon$). The query's entries
# then have the variance $d\, \sigma_w^2$, which need not be 1.

# %% [markdown] id="half-squares"
# How far does a row of such a layer spread? Its keys share one $W_K$, so {eq}`row-variance-by-query` does not apply. But the variance $v$
# of a row is half the mean squared lead over all pairs of its $n$ scores: multiply out the square.
#
# $$\frac{1}{2 n^2} \sum_{j,\,l} (s_j - s_l)^2 = \frac{1}{n} \sum_j s_j^2 - \Bigl( \frac{1}{n} \sum_j s_j \Bigr)^2$$

# %% [markdown] id="two-tokens"
# And a lead can be averaged over the draws of both matrices, of variances $\sigma_Q^2$ and $\sigma_K^2$. The lead of $y_j$ over $y_l$ is
# the dot product of $x W_Q$ and $(y_j - y_l) W_K$, divided by $\sqrt{d_k}$. The entries of each are independent, since the columns of a
# matrix are, and {eq}`variance-after-projection` gives their variances. So {eq}`score-variance-from-deviations` gives the mean square of
# the lead; the $d_k$ cancels, and what is left is $\sigma_Q^2\, \|x\|^2 \cdot \sigma_K^2\, \|y_j - y_l\|^2$. For normalised tokens
# $\|y_j - y_l\|^2 = 2 d\, (1 - \cos)$, with the cosine of the two: tokens that are alike get like scores. So with $\bar c$, the mean cosine
# of all $n^2$ pairs,
#
# $$\mathbb{E}[v] = \bigl( d\, \sigma_Q^2 \bigr) \bigl( d\, \sigma_K^2 \bigr) (1 - \bar c), \qquad
# \bar c = \frac{1}{n^2} \sum_{j,\,l} \frac{y_j \cdot y_l}{d} \label{row-variance-at-initialisation}$$

# %% [markdown] id="inits"
# The first two factors come from the initialisation. Each is $1/3$ for `nn.Linear` (uniform in $\pm 1 / \sqrt d$), $1/2$ for
# `nn.MultiheadAttention` (default sizes), and $0.2$ for normal entries of deviation 0.02 at $d = 512$. So their product is $1/9$, $1/4$ or
# $0.04$. Suppose that this product is 1, so that only the third factor is left. Here is $v$ for 64 tokens of which any two different ones
# have the cosine 0, 0.5 or 0.9:

# %% id="inits-measured"
n = 64
basis = np.sqrt(d) * np.linalg.qr(rng.normal(size=(d, n + 1)))[0].T
for cosine in (0, 0.5, 0.9):
    y = np.sqrt(cosine) * basis[0] + np.sqrt(1 - cosine) * basis[1:]
    found = []
    for _ in range(200):
        w_query, w_key = rng.normal(size=(2, d, d_k)) / np.sqrt(d)
        scores = (y[0] @ w_query) @ (y @ w_key).T / np.sqrt(d_k)
        found.append(scores.var())
    print(f"cosine {cosine:.1f}   variance of the row {np.mean(found):.1f}")

# %% [markdown] id="inits-answer"
# Of the $64^2$ pairs, 64 are a token with itself, whose cosine is 1. So $\bar c$ is 0.016, 0.51 and 0.90, and $v$ is 0.98, 0.49 and 0.10:
# where tokens are alike, a row hardly prefers any key. With `nn.Linear` and the cosine 0.5 it is $\frac19 \cdot 0.49 \approx 0.05$, the
# row that `my_start` had to mend.

# %% [markdown] id="means"
# **Entries with means.** Now let the entries of a vector have any means, $m_q$ and $m_k$, and move together; only $q$ and $k$ are
# independent of each other. Split both, $q = m_q + \tilde q$ and $k = m_k + \tilde k$, and multiply out:
#
# $$q \cdot k = m_q \cdot m_k + \tilde q \cdot \tilde k + m_q \cdot \tilde k + \tilde q \cdot m_k$$
#
# The first part is the mean, and the other three vary: both vectors, the key alone, or the query alone. In the product of two different
# ones, $\tilde q$ or $\tilde k$ stands once, as a factor of mean 0 that is independent of the rest. So these products have mean 0, and
# the three mean squares add up.

# %% [markdown] id="covariances"
# Each of them is a double sum. With the covariances $(S_q)_{ij} = \mathbb{E}[\tilde q_i \tilde q_j]$ and $(S_k)_{ij}$ a term of the first
# has the mean $(S_q)_{ij} (S_k)_{ij}$, and all of them add up to the trace of $S_q S_k$, the sum of its diagonal, because $S_k$ is
# symmetric. The second is $m_q^\top S_k\, m_q = \sum_{i,\,j} (m_q)_i (m_q)_j (S_k)_{ij}$, and the third likewise:
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$
#
# In a row $q$ is fixed, and all keys share the third part. So what softmax sees, for the average query, is the rest:
#
# $$\mathbb{E}_q\bigl[ \mathrm{Var}_k[q \cdot k] \bigr] = \sum_{i,\,j} \bigl( (S_q)_{ij} (S_k)_{ij} + (m_q)_i (m_q)_j (S_k)_{ij} \bigr)
# \label{spread-within-a-row}$$
#
# A row of $n$ independent keys shows $1 - 1/n$ of this on average (task {task}`sampled-row-spread`).

# %% [markdown] id="turn-correlated"
# **Your turn.** {turn}`correlated-entries-variance`

# %% id="turn-correlated-code" tags=["your-turn"]
my_variance_formula = ...  # r"..."
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="turn-correlated-after" tags=["ours"]
# The means are 0, so only $(S_q)_{ij} (S_k)_{ij}$ is left. Each of the $d_k$ terms with $i = j$ is $1 \cdot 1$, and each of the other
# $d_k (d_k - 1)$ is $\rho \cdot \rho$, so $v = d_k + d_k (d_k - 1)\, \rho^2$. After the usual scale, at $d_k = 64$, $\rho = 0.25$
# makes it almost 5.

# %% [markdown] id="broken"
# Here is one assumption broken at a time, with $d_k = 16$ and divided scores, beside the normal curve:

# %% id="broken-code"
n, d_k = 40_000, 16
q, k, e = rng.normal(size=(3, n, d_k))
related_q, related_k = (q + e[:, :1]) / np.sqrt(2), (k + e[:, 1:2]) / np.sqrt(2)
long_query = q[0] * np.sqrt(3 * d_k) / np.linalg.norm(q[0])
drawn = {
    "all hold": (q * k).sum(-1),
    "related entries in q": (related_q * k).sum(-1),
    "related entries in q and in k": (related_q * related_k).sum(-1),
    "σ = 1.5 for both": (2.25 * q * k).sum(-1),
    "means 0.5": ((q + 0.5) * (k + 0.5)).sum(-1),
    "one long query": k @ long_query,
}
scaled = {name: s / np.sqrt(d_k) for name, s in drawn.items()}
figures.broken_assumptions(scaled)

# %% [markdown] id="broken-answer"
# Related entries in $q$ alone do not change the variance, because each of their covariances, 0.5, meets one of $k$ that is 0. In both
# they give $1 + 15 \cdot 0.25 = 4.75$. Deviations of 1.5 give $1.5^4 \approx 5$, and means of 0.5 move the mean to $16 \cdot 0.25 / 4 =
# 1$ and the variance to $1 + 2 \cdot 0.25$. The last query has $\|q\|^2 = 3 \cdot 16$.

# %% [markdown] id="correlated"
# **When $q$ and $k$ depend on each other.** Let standard normal entries be correlated, $k_i = \rho\, q_i + \sqrt{1 - \rho^2}\, e_i$, with
# $e_i$ standard normal and independent of all $q_i$, and different $i$ independent. Then $q_i k_i = \rho\, q_i^2 + \sqrt{1 - \rho^2}\, q_i
# e_i$ has the mean $\rho$. In its square the mixed term has mean 0, because $e_i$ has. The fourth moment of a standard normal number is 3:
# integrate $x^3 \cdot x\, e^{-x^2/2}$ by parts, and 3 times the variance is left. So the mean square is $3 \rho^2 + (1 - \rho^2)$. Subtract
# the square of the mean, and add up $d_k$ independent terms:
#
# $$\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k \label{correlated-query-key-moments}$$

# %% [markdown] id="divisors"
# **Two other divisors** turn up in code: $d_k$ itself, and the root of $d_{\text{model}} = h\, d_k$ with $h$ heads (lesson
# {lesson}`heads`). Under the usual assumption,
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h} \label{variance-under-wrong-scales}$$
#
# The second is usually a slip. The first can be deliberate:

# %% [markdown] id="mup"
# Let $q$ and $k$ be correlated as above. After the scale the mean is $\rho \sqrt{d_k}$, which grows with the width. **muP**, a set of
# rules for widening a model (Yang et al., 2022), therefore divides by $d_k$, so that *learnt* scores stay alike in all widths. The root
# keeps *random* scores alike.
#
# The extreme is $q = k$, with independent entries of mean 0 and variance 1 that all have the same fourth moment $\kappa$ (3 for normal
# entries, 1 for coins). A term is $q_i^2$, with the mean 1 and the mean square $\kappa$, so
#
# $$\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k \label{equal-query-key-moments}$$

# %% [markdown] id="kurtosis"
# **Is a score normal?** Let all entries be independent and standard normal. With $q$ fixed, $q \cdot k$ is normal, with variance
# $\|q\|^2$ and fourth moment $3 \|q\|^4$. Over all queries it is a mixture of such curves, and not normal. With $\mathbb{E}[q_i^4] = 3$
# and $\mathbb{E}[q_i^2 q_j^2] = 1$ for $i \ne j$,
#
# $$\mathbb{E}\bigl[ \|q\|^4 \bigr] = \sum_i \sum_j \mathbb{E}[q_i^2 q_j^2] = 3\,d_k + d_k (d_k - 1) = d_k^2 + 2\,d_k$$
#
# Three times this, divided by the square of the variance $d_k$, is the **kurtosis**, which is 3 for a normal number:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$

# %% id="correlated-code"
q, e = np.random.default_rng(8).normal(size=(2, 40_000, 16))
related = {"independent": e, "ρ = 0.5": 0.5 * q + np.sqrt(0.75) * e, "q = k": q}
for name, k in related.items():
    s = (q * k).sum(-1) / 4
    print(f"{name:12s} mean {s.mean():4.1f}   variance {s.var():.2f}")
s = (q * e).sum(-1)
print(f"kurtosis, independent: {(s**4).mean() / (s**2).mean() ** 2:.1f}")

# %% [markdown] id="similar"
# ## Deeper: other ways to be similar
#
# A distance or an angle also says how alike two vectors are. Multiply out $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$ and
# solve for the middle term:
#
# $$q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr) \label{dot-product-by-distance}$$
#
# The **cosine** removes the lengths. Put the law of cosines,
# $\|q - k\|^2 = \|q\|^2 + \|k\|^2 - 2 \|q\| \|k\| \cos\theta$, into {eq}`dot-product-by-distance`:
#
# $$\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|} \label{cosine-similarity}$$
#
# The **Gaussian** score is minus half the squared distance in units of a bandwidth $h > 0$:
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
# key longer, and they differ:

# %% id="similar-code"
from attn_course import reference, show
from attn_course.reference import dot_scores, scaled_dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)
query, key = rng.normal(size=(1, 3)), rng.normal(size=(4, 3))
equal = key / np.linalg.norm(key, axis=-1, keepdims=True)
longer = equal * np.array([[1], [1], [2], [1]])
for name, keys in (("equal keys", equal), ("third twice as long", longer)):
    gaussian, dot = reference.gaussian_scores(query, keys, 1.0), dot_scores(query, keys)
    print(f"{name:20s}", softmax(gaussian)[0], softmax(dot)[0])
show("cosine-similarity", q=[3, 4], k=[4, 3])

# %% [markdown] id="spot-cosine"
# **Is $q \cdot k / \sqrt{d_k}$ a cosine?** Take the query $(1, 0)$ and the keys $(1, 0)$ and $(3, 3)$. The scaled dot product prefers the
# second key, the cosine the first.
#
# Cosines lie in $[-1, 1]$, which has a price. Let the best of $n$ keys have the score 1 and all others $-1$; nothing sharper is possible:
#
# $$\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}} \label{cosine-weight-bound}$$
#
# For 64 keys that is 0.105: without a temperature, even a perfect match gets no more.

# %% id="spot-cosine-code"
query, key = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 3.0]])
print("q.k / sqrt(d_k)", scaled_dot_scores(query, key)[0])
print("cosine         ", reference.cosine_scores(query, key)[0])
print("largest weight for 64 keys:", round(1 / (1 + (64 - 1) * np.exp(-2)), 3))

# %% [markdown] id="qk-norm"
# **QK-norm** makes scores cosines. If $q$ and $k$ are divided by their root mean square, then before the gains a score is a cosine
# times a fixed factor, whatever the matrices become:
#
# $$\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad
# \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}
# \label{query-key-normalisation}$$

# %% id="qk-norm-code"
query, key = rng.normal(size=(1, 64)), rng.normal(size=(3, 64))
for factor in (1, 100):  # of W_Q
    plain = (factor * query @ key.T / 8)[0].round(2)
    normed = (8 * reference.cosine_scores(factor * query, key)[0]).round(2)
    print(f"W_Q x {factor:3d}   plain {plain}   with QK-norm {normed}")

# %% [markdown] id="held"
# **What holds scores in training.** Several large models keep their scores in bounds in ways of their own:
#
# | way | what is done | in |
# |---|---|---|
# | QK-norm with gain | $q$ and $k$ are normalised and multiplied by learnt gains | ViT-22B, Qwen3, Gemma 3 |
# | clipping | if a head's largest score exceeds 100 after a step, its $W_Q$ and $W_K$ are made smaller | Kimi K2 |
# | soft cap | $s$ becomes $50 \tanh(s / 50)$ | Gemma 2 |

# %% [markdown] id="measured"
# ## Deeper: the training, measured in full
#
# Is it the small gradients that slow the unscaled layer?

# %% [markdown] id="silent"
# Let $g$ be the gradient of one query's loss with respect to its 16
# scores, as softmax gets them. All that this query can teach $W_Q$ and $W_K$ goes through its $g$, and $g$ has come back through the
# Jacobian of the softmax, {eq}`softmax-jacobian`. Where one key has nearly all the weight, every entry of the Jacobian is near 0. So if the
# values are of ordinary size, $g$ is tiny even if the answer is wrong. We call a query **silent** if its $g$ is shorter than 0.01. Here is
# the share of 2,048 queries that are silent before the first step:

# %% id="silent-code"
record = experiments.SCALE.load()  # stored: the trial with three seeds
for kind in ("scaled", "unscaled"):
    silent = record.values("first", "64", kind, "silent").mean()
    print(f"{kind:9s} silent {silent:.2f}")

# %% [markdown] id="ways"
# Without the scale a quarter is silent. So we give these queries a voice, and train the unscaled layer anew. In each batch every silent $g$
# keeps its direction, but gets the mean length of all $g$ in the batch.
#
# But perhaps any longer gradients would help. So there is a control: the $g$ of equally many others, or of all where fewer are left,
# grow instead, by the same length in total. Each way of training gets its own best step size.
#
# In the mean of three seeds the layer needs 29 steps without the scale, and 4 with it. **Predict** for each of the two ways: does it win
# back all of the difference, most, or few?

# %% id="slow-code" tags=["predicted"]
ways = ("scaled", "unscaled", "silent raised", "others lengthened")
needed = {way: record.values("best", "SGD", "64", way) for way in ways}
for way in ways:
    print(f"{way:18s} mean steps of three seeds {needed[way].mean():.1f}")
print("raised before others:", needed["silent raised"] < needed["others lengthened"])

# %% [markdown] id="slow-answer" tags=["answer"]
# The raised silent queries win back most: the mean falls from 29 steps to 13. With the control it falls only to 22, and they are ahead of
# it in each of the three seeds. But the scaled layer needs 4. A third of the delay is left, and we cannot explain it.

# %% [markdown] id="limits"
# **What speaks against it.** If silence does the harm, it should be the silent queries with a *wrong* answer that matter, for they have
# something to learn. Before the first step they are most of the silent ones. Yet raising only these takes 20 steps, and raising only
# those whose largest weight is on the right item takes 16. So raising helps, but not only where there is more
# to learn, and we do not know why.

# %% [markdown] id="optimizers"
# **Both optimizers, three widths.** Adam divides a running average of each entry's gradients by the root of one of their squares. These are
# the steps with the best step size, means of three seeds. The first three rows are our layers; "factor in W_Q" is the twin. Each other
# row has a question of its own. ("Minus log weight" is another loss: minus the logarithm of the right item's weight. Its gradient by the
# scores is $w_j$, less 1 for the right item, and has no factor $J$.)

# %% [markdown] id="measured-rows"
# | row | question |
# |---|---|
# | silent raised | What if the silent queries are heard? |
# | silent right (wrong) raised | Which of them matter, those whose largest score is the right item's, or the others? |
# | silent exchanged | Does it matter what they say? Each gets the length, but the direction of another silent one. |
# | others lengthened | Would any longer gradients do? |
# | minus log weight | And without the Jacobian? |

# %% id="widths-code"
from itertools import product

logs = [f"{experiments.LOG_WEIGHT}, {kind}" for kind in ("scaled", "unscaled")]
columns = [*product(("SGD", "Adam"), ("16", "64", "256"))]
print(" " * 26, *(f"{name} {d_k}".rjust(8) for name, d_k in columns))
for way in (*experiments.LAYERS, *experiments.WAYS, *logs):
    means = (record.values("best", *column, way).mean() for column in columns)
    print(f"{way:26s}", *(f"{mean:8.1f}" for mean in means))
concluded = [experiments.SCALE.conclude(found) for found in record.results]
assert all(all(claims.values()) for claims in concluded)

# %% [markdown] id="widths-notice"
# Adam shows the same picture, and so does the width 256. Exchanged, the silent queries win nothing back. At 16 the control wins back
# half or more of what raising does. Before the first step most silent queries are wrong, but raising the wrong ones helps less, everywhere, than raising
# those that are right already.
#
# Most queries are not silent: at 64 the mean length of $g$ falls by a third only. And the mean norm of $J$, the largest factor by which it
# stretches a change, does not show the harm. Before the first step it is hardly smaller at 64 without the scale, and at 16 it is larger:

# %% id="norms-code"
looked_at = ("mean length", "norm of J", "silent", "silent and right")
print(f"{'':16s}", *(f"{what:>16s}" for what in looked_at))
for d_k, kind in product(("16", "64"), ("scaled", "unscaled")):
    found = [record.values("first", d_k, kind, what).mean() for what in looked_at]
    print(f"{d_k}, {kind:12s}", *(f"{value:16.2f}" for value in found))

# %% [markdown] id="other-loss"
# With the other loss the unscaled layer is at most four steps behind, as one expects if $J$ does the harm; but that is another task,
# which is told the right item.
#
# **Step sizes.** Here are the steps at $d_k = 64$ for each of them, as medians of three seeds; a line stands for more than 100.

# %% id="steps-code"
for name, sizes in experiments.STEP_SIZES.items():
    print(f"{name} step size".ljust(15), *(f"{size:6g}" for size in sizes))
    for kind in experiments.LAYERS:
        steps = np.median(record.values("steps", name, "64", kind), axis=0)
        print(f"{kind:15s}", *(f"{n:6.0f}" if n <= 100 else "     -" for n in steps))

# %% [markdown] id="steps-notice"
# At small step sizes of SGD the scaled layer is slowest. Why does its twin learn so much faster? Write $W$ for the $W_Q$ of the scaled
# layer, $c$ for $1 / \sqrt{d_k}$, and $\eta$ for the step size. The loss sees $W$ only through $W' = c\,W$, the matrix of the twin. By the
# chain rule its gradient with respect to $W$ is $c\, \nabla \mathcal{L}(W')$. So a step takes $\eta\, c\, \nabla \mathcal{L}(W')$ from $W$,
# and $c\,W$ loses $c$ times that:
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \label{scale-as-reparametrisation}$$

# %% [markdown] id="twin-step"
# The twin's own step has no $c^2$. With the same step size, at $d_k = 64$, its step for $W_Q$ is 64 times as long. ($W_K$ meets the same
# queries in both layers, so its steps are alike.)
#
# **A twin under Adam.** Adam moves each entry by $-\eta\, m / (\sqrt v + \varepsilon)$, where $m$ and $v$ are the two averages. We train a
# scaled layer with $d_k = 64$ for 20 steps, and its twin from $W' = W_Q / 8$, whose step for $W'$ is multiplied by a factor:

# %% id="twins-code"
for optimizer in ("SGD", "Adam"):
    for factor in (1, 1 / 8, 1 / 64):
        apart = experiments.two_step_sizes(64, 20, optimizer=optimizer, factor=factor)
        said = "same weights" if apart < 1e-9 else "different weights"
        print(f"{optimizer:4s}  step for W' x {factor:.3f}   {said}")

# %% [markdown] id="twins-answer"
# Gradient descent needs the factor $c^2 = 1/64$, because by {eq}`scale-as-reparametrisation` the gradient and the movement each carry a
# factor $c = 1/8$. Adam needs $c$ alone. Multiply all gradients by $c$, and $m$ and $\sqrt v$ both change by $c$, which cancels (we set
# $\varepsilon$ to $10^{-20}$, so that it plays no part); the factor of the movement stays.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), § 3.2.1, with the variance in a footnote.
# - K. Pearson, *Nature* 72, pages 294 and 342, and Lord Rayleigh, page 318 (1905): the random walk, and where to look for the man.
# - G. Yang et al. (2022), [arXiv:2203.03466](https://arxiv.org/abs/2203.03466): muP, which divides by $d_k$.
# - C. Raffel et al. (2020), [arXiv:1910.10683](https://arxiv.org/abs/1910.10683): T5. Its Mesh TensorFlow code starts $W_Q$ smaller
#   (see [issue 18284](https://github.com/huggingface/transformers/issues/18284)).
# - J. L. Ba, J. R. Kiros and G. E. Hinton (2016), [arXiv:1607.06450](https://arxiv.org/abs/1607.06450): layer normalisation.
# - Scores held in training: query-key normalisation, A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245), in
#   ViT-22B ([arXiv:2302.05442](https://arxiv.org/abs/2302.05442)), Qwen3 ([arXiv:2505.09388](https://arxiv.org/abs/2505.09388)) and Gemma 3
#   ([arXiv:2503.19786](https://arxiv.org/abs/2503.19786)); the soft cap of Gemma 2
#   ([arXiv:2408.00118](https://arxiv.org/abs/2408.00118)); the clipping of Kimi K2
#   ([arXiv:2507.20534](https://arxiv.org/abs/2507.20534)).
