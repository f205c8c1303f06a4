# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# The language model SmolLM2 has queries and keys of $d_k = 64$ numbers, and divides their dot products by $\sqrt{64} = 8$, which looks like
# a detail of bookkeeping. **Why the root of $d_k$, and not $d_k$ itself, or nothing at all?** Let us take the division out of all 30
# layers. The cell prints the perplexity on four texts: roughly, how many next words the model hesitates between.

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
# Without the division the model is lost among thousands of words. But its matrices were trained with it, so this is no fair trial. A
# fair one trains a layer with it and another without, in section {section}`slow`. First: what does the division do to a row of scores?
#
# ## Softmax sees one row
#
# In `the cat sat because it was tired`, "it" has the query $(2, 0, -2, 2)$ and "cat" the key $(2, 0, 0, 2)$, so their dot product is 8,
# and divided by $\sqrt 4 = 2$ it is 4.

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
# Divided by 2, "cat" leads "because" by 4 and gets $e^4 \approx 55$ times its weight; not divided, it leads by 8 and gets
# $e^8 \approx 2981$ times its weight. In general scores $s$, as the softmax gets them, give $w_j / w_l = e^{s_j - s_l}$. So it sees
# nothing but **leads**, the differences of two scores in one row. Just before it stands the division:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.scaling import figures

figures.machine()

# %% [markdown] id="chance"
# "Cat" deserves its lead. But before training queries and keys are random: how large are the leads that chance hands out?

# %% [markdown] id="row"
# ## How far does a drunkard get?
#
# In July 1905 Karl Pearson asked the readers of *Nature* for help. A man walks one stretch, turns in any direction, walks another, and so
# on, $n$ times. How far from his start does he end? A week later Lord Rayleigh replied that he had solved this long ago, for sounds that
# add up: typically the *root* of $n$ stretches, because steps in all directions largely undo each other. (The best single bet, Pearson
# joked, is still the spot where one left the drunkard.) And $q \cdot k = q_1 k_1 + q_2 k_2 + \ldots$ is such a walk on a line.

# %% [markdown] id="coins"
# **By hand.** Let $q = (1, 1, 1)$, and let a key be three tossed coins, each $+1$ or $-1$. Of the eight possible walks one ends at $-3$,
# three at $-1$, three at $1$ and one at $3$, so the mean square is $(9 + 3 + 3 + 9) / 8 = 3$, and its root, $\sqrt 3$, is what we call the
# typical distance.

# %% [markdown] id="row-derived"
# **In general.** Fix one query $q$, and draw its keys from one distribution, independently of $q$ and of each other. Let the entries of a
# key be uncorrelated, each with variance $\sigma_k^2$ and with any mean. (The means add one number to the whole row and so change no lead.)
# The term $q_i k_i$ has the variance $q_i^2\, \sigma_k^2$, and the variances of uncorrelated terms add. So, over the keys of this one
# query,
#
# $$\mathrm{Var}_k[q \cdot k] = \sigma_k^2\, \|q\|^2 \key{row-variance-by-query}$$

# %% [markdown] id="usual"
# Let the query be random too. **The usual assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and variance 1. Then
# each of the $d_k$ terms of $\|q\|^2 = \sum_i q_i^2$ has the mean 1, so $\|q\|^2$ is $d_k$ on average, and a dot product typically
# lies $\sqrt{d_k}$ from the mean of its row: 20 away for $d_k = 400$, and 30 for 900. (So a lead, the difference of two, is typically
# $\sqrt{2 d_k}$.)

# %% id="usual-code"
rng = np.random.default_rng(5)
for d_k in (400, 900):
    query, key = rng.normal(size=(2, 1000, d_k))
    variance = (query @ key.T).var(axis=1).mean()  # within each row, then their mean
    print(f"d_k = {d_k:4d}   typical distance {np.sqrt(variance):.0f}")
figures.walks((query[1] * key[:20]).cumsum(axis=1))  # one row, step by step

# %% [markdown] id="scale"
# ## The scale
#
# Under the usual assumption each row has the mean 0. So over all queries and keys the variance is the mean of
# {eq}`row-variance-by-query`, 1 for each of the $d_k$ terms:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \label{variance-of-a-score}$$
#
# A factor $c$ multiplies a variance by $c^2$, so to bring $d_k$ back to 1 we need $c^2 = 1 / d_k$. There is the root:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$

# %% [markdown] id="card-question"
# Divided by $d_k$, the variance would be $1 / d_k$ under this assumption, so at the start a wide layer would hardly see a lead. And not
# divided? Here 64 random queries meet 64 random keys. What becomes of the largest weight, in the second picture, as $d_k$ grows?

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="strip-notice"
# <details><summary>What you should see</summary>
#
# Not divided, the largest of 64 weights is 0.80 at $d_k = 64$ and 0.95 at 1024: the layer believes in noise. Divided by
# $\sqrt{d_k}$, it is near 0.1 at both. (These are means of the 64 queries.)
#
# </details>

# %% [markdown] id="deviations"
# What if the assumption is wrong? If the entries, still independent and of mean 0, have the deviations $\sigma_q$ and $\sigma_k$, each
# product has the variance $\sigma_q^2\, \sigma_k^2$, so
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \key{score-variance-from-deviations}$$
#
# **Your turn.** {turn}`divisor-for-sparse-entries`

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$, so by {eq}`score-variance-from-deviations` the variance is $d_k\, p^2$, and
# $u = p \sqrt{d_k}$. For $d_k = 64$ and $p = 0.1$ that is 0.8, while the usual divisor, 8, would leave scores of deviation 0.1.

# %% [markdown] id="slow"
# ## A suspicion on trial
#
# Suppose that somebody forgets the division. Can our layer compute anything that theirs cannot? No: give their layer the matrix
# $W_Q / \sqrt{d_k}$, and its scores are those of our layer with $W_Q$. A layer without division that *starts* with $W_Q / \sqrt{d_k}$ is
# the **twin** of ours; the model T5 starts so. Only the training can differ. Vaswani et al. (2017) suspected how: "for large values of
# $d_k$, the dot products grow large in magnitude, pushing the softmax function into regions where it has extremely small gradients." Let us
# put this on trial.

# %% [markdown] id="trial-task"
# **The task.** An example has 16 items, each with 16 random features and a value $v_j$ of four random numbers. The query comes from the
# features of one item, times an orthogonal matrix (here a rotation with a reflection) that is the same in all examples. The layer has no
# $W_V$: from its weights $w$ it makes the output $\sum_j w_j\, v_j$, which should be $v_*$, the value of that item. So it must learn to
# undo the matrix.
#
# **The training.** A step of gradient descent averages over 32 new examples. We stop when the right item wins in more than 90 % of 512
# other examples, or give up after 60 steps. Three folded cells hold the task, the gradients (section
# {section}`unequal` says how) and the steps.

# %% id="trial-examples" tags=["hide-input"]
from attn_course.reference import softmax


def start(seed):  # W_Q and W_K make queries and keys of variance 1
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(16, 16)))[0]  # orthogonal
    w_query, w_key = rng.normal(size=(2, 16, 64)) / 4
    return rng, turn, w_query, w_key


def examples(rng, turn, size):
    items, values = rng.normal(size=(size, 16, 16)), rng.normal(size=(size, 16, 4))
    right, row = rng.integers(16, size=size), np.arange(size)
    off = values - values[row, right][:, None]  # from the value that is wanted
    return items[row, right] @ turn, items, off, right


# %% id="trial-gradients" tags=["hide-input"]
def dots_of(features, items, w_query, w_key):  # q . k for each item, not divided
    return (items @ (features @ w_query @ w_key.T)[:, :, None])[..., 0]


def gradients(scores, off):  # a row for each query
    w = softmax(scores)
    e = (w[:, :, None] * off).sum(axis=1)
    a = (off @ e[:, :, None])[..., 0] / 2
    # A shift of all a changes no g. With 0 at the largest weight, no tiny g drowns.
    a -= a[np.arange(len(a)), w.argmax(axis=1)][:, None]
    return w * (a - (w * a).sum(axis=1, keepdims=True))


# %% id="trial-steps" tags=["hide-input"]
def steps_until_learnt(shrink, divisor, seed, size, way):
    rng, turn, w_query, w_key = start(seed)
    w_query = w_query / shrink
    asked, among, _, wanted = examples(rng, turn, 512)
    for step in range(1, 61):
        features, items, off, _ = examples(rng, turn, 32)
        g = way(gradients(dots_of(features, items, w_query, w_key) / divisor, off))
        # With S for the slope along W_Q W_K^T: S W_K along W_Q, and S^T W_Q along W_K.
        move = size * features.T @ (g[:, None] @ items)[:, 0] / 32 / divisor
        w_query, w_key = w_query - move @ w_key, w_key - move.T @ w_query
        found = dots_of(asked, among, w_query, w_key).argmax(axis=1)
        if (found == wanted).mean() > 0.9:
            return step
    return np.inf


# %% [markdown] id="slow-predict"
# Four layers with $d_k = 64$ start from the same random matrices. The **scaled** one divides by 8, so its scores have variance 1, on
# average over such matrices. The **unscaled** one does not divide, and its scores have variance 64. The twin has its $W_Q$ divided by 8
# instead, and the last layer divides by $d_k$. For each of three seeds we take the best of twelve step sizes. **Predict** which keep up
# with the scaled layer.

# %% id="task-code" tags=["predicted"]
# by what W_Q is divided, and by what the scores
layers = {"scaled": (1, 8), "unscaled": (1, 1), "twin": (8, 1), "by d_k": (1, 64)}


def fewest(layer, way=lambda g: g):  # for each seed, with its best step size
    run, sizes = steps_until_learnt, 0.1 * 2.0 ** np.arange(12)
    return [min(run(*layer, seed, size, way) for size in sizes) for seed in range(3)]


steps = {name: fewest(layer) for name, layer in layers.items()}
for name, needed in steps.items():
    print(f"{name:9s} steps until learnt", *needed)

# %% [markdown] id="task-answer" tags=["answer"]
# The scaled layer needs 4 or 5 steps, the unscaled one 34, 23 and 35. (Seeds 3 to 6 gave 3 to 6 steps beside 19 to 27.) The twin keeps up,
# though it does not divide either, so it is the start that slows the unscaled layer.
#
# The layer that divides by 64 keeps up, too, with larger steps for its smaller gradients. But their best size
# depends on the width. The best is 51 to 102 here, and about four times that at $d_k = 256$, while the scaled layer is best with 6.4
# at both.

# %% [markdown] id="unequal"
# ## Which gradients are small?
#
# Does the softmax, too, shorten all gradients of the unscaled layer by one factor? All that a query teaches goes through $g$, the gradient
# of its error along its 16 scores. Its output is wrong by $e = \sum_j w_j\, v_j - v_*$, and the mean square of the four entries of $e$ has
# the slope $\frac12\, e \cdot v_j$ along $w_j$. The softmax pulls it back as in lesson {lesson}`softmax`:
#
# $$g_j = w_j \Bigl( a_j - \sum_l w_l\, a_l \Bigr), \qquad a_j = \tfrac12\, e \cdot v_j$$
#
# How long is $g$ before the first step? We call a query **silent** if its $g$ is shorter than 0.01.

# %% id="silent-code"
for name, divisor in (("scaled", 8), ("unscaled", 1)):
    found = []
    for seed in range(3):
        rng, turn, w_query, w_key = start(seed)
        features, items, off, _ = examples(rng, turn, 512)
        scores = dots_of(features, items, w_query, w_key) / divisor
        found.append(np.linalg.norm(gradients(scores, off), axis=1))
    length = np.sort(np.concatenate(found))
    loudest = length[-len(length) // 10 :].sum() / length.sum()
    print(f"{name:9s} mean length {length.mean():.2f}", end="   ")
    print(f"silent {(length < 0.01).mean():.2f}   loudest tenth {loudest:.2f}")

# %% [markdown] id="silent"
# Without the scale the mean length falls by a third only, which a step 1.5 times as long would undo. But the gradients have become
# *unequal*. More than a quarter of the queries are silent: chance has given one key nearly all the weight, mostly a wrong one, and then the
# softmax lets almost nothing through. In the loudest tenth, which has 44 % of the length of all, the largest weight is typically two
# thirds.
#
# But all queries share one step size. Hence a better suspicion: a step that is long enough for the silent queries is far too long for the
# loud ones, and with one that suits the loud ones, the layer learns from these few only.

# %% [markdown] id="ways"
# If unequal lengths are the harm, most of it must go away when every $g$ keeps its direction, but gets the mean length of the batch. As a control
# we give each $g$ the length of the query before it, so the lengths stay as unequal as they were. **Predict**, if the suspicion is right,
# in which of the two ways the unscaled layer wins back most of its lost steps.


# %% id="slow-code" tags=["predicted"]
def equal(g):
    length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99  # never 0
    return g / length * length.mean()


def passed_on(g):
    length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99
    return g / length * np.roll(length, 1, axis=0)


for way in (equal, passed_on):
    found = [fewest(layers[name], way) for name in ("unscaled", "scaled")]
    print("{:9s}  unscaled {}   scaled {}".format(way.__name__, *found))
    steps[f"unscaled, {way.__name__}"] = found[0]

# %% [markdown] id="slow-answer" tags=["answer"]
# With equal lengths the unscaled layer needs 10, 8 and 7 steps: 8.3 on average instead of 30.7, where the scaled layer needs 4.7. The
# control, with 22, 22 and 33, keeps four fifths of this delay. (The scaled layer changes by two steps at most.)

# %% [markdown] id="lift"
# But equal lengths lift the silent queries *and* lower the loud ones, beside others in between. Which of the two does more?
#
# **Your turn.** {turn}`lift-the-silent`

# %% id="lift-turn-code" tags=["your-turn"]
my_lift = ...  # your function
check("lift-the-silent", my_lift)

# %% [markdown] id="lift-ours" tags=["ours"]
# ```python
# def my_lift(g):
#     length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99
#     return np.where(length < 0.01, g / length * length.mean(), g)
# ```

# %% [markdown] id="lift-predict"
# Another part, `lowered`, shortens every longer $g$ to the mean length. **Predict** which of the two wins back more steps.


# %% id="lift-code" tags=["predicted"]
def lowered(g):
    length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99
    return g * np.minimum(1, length.mean() / length)


if my_lift is ...:  # not written yet: take ours
    from attn_course.lessons.scaling.tasks_turns import lifted as my_lift

for name, way in (("lifted", my_lift), ("lowered", lowered)):
    steps[f"unscaled, {name}"] = fewest(layers["unscaled"], way)
    print(f"unscaled, {name:7s}", *steps[f"unscaled, {name}"])
figures.trial(steps)

# %% [markdown] id="lift-answer" tags=["answer"]
# Lifting the silent queries alone removes seven tenths of the delay. Lowering the loud ones alone, with 33, 26 and 37 steps, wins nothing.

# %% [markdown] id="culprit"
# So the suspicion of Vaswani et al. was nearly right. With the best step size, what harms most is not that gradients are small, but that
# some are small *beside others*. This is one small task; for equal lengths, section
# {section}`measured` finds much the same at other widths and with Adam.

# %% [markdown] id="own"
# ## Which variance counts?
#
# So the start counts. But nobody promises that the entries of $q$ and $k$ have variance 1, so we had better measure scores.
#
# ### Spot the mistake: "`scores.var()` says how sharp the softmax is"
#
# Here are queries of 16 independent normal entries of variance 1, and keys whose entries have the mean 1 and the deviation 0.2. **Predict**
# the variance of all scores, and that within a row.

# %% id="spot-total-code" tags=["predicted"]
query, key = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
scores = query @ key.T / np.sqrt(16)
print(f"all scores {scores.var():.2f}   within a row {scores.var(axis=1).mean():.2f}")

# %% [markdown] id="spot-total-answer" tags=["answer"]
# The variance of all scores is about 1, and yet no key stands out in any row. By {eq}`row-variance-by-query` a row of $q \cdot k$ has the
# variance $16 \cdot 0.04$ on average, here divided by 16. The rest is how far the rows lie apart, which softmax never sees. So
# measure `scores.var(axis=1)`. (Section {section}`matrices` brings it to 1.)

# %% id="verify-lesson"
verify_lesson("scaling")

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | one row; $q$ fixed, entries of $k$ uncorrelated, of one variance, {eq}`row-variance-by-query` | {key}`row-variance-by-query` |
# | the scale; entries independent, mean 0, variance 1, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | all scores; entries independent, mean 0, {eq}`score-variance-from-deviations` | {key}`score-variance-from-deviations` |

# %% [markdown] id="summary"
# ## Summary
#
# Why the root, then? A random dot product is like Pearson's man: in $d_k$ steps it gets about $\sqrt{d_k}$ far. So, with independent
# entries of mean 0 and variance 1, the root gives scores of variance 1, whatever the width.
#
# Without a divisor, a wide layer whose $q$ and $k$ have such entries starts sure of noise. In our task, with $d_k = 64$, it took several
# times the steps, mostly because some queries are silent beside others. Divided by $d_k$ it kept up, but its best step size changed with
# the width.

# %% [markdown] id="summary-next"
# Next, after the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb), lesson {lesson}`attention` puts all parts together.

# %% [markdown] id="matrices"
# ## Deeper: which assumption does the root need?
#
# Let the entries of a vector have any means, $m_q$ and $m_k$, and move together; only $q$ and $k$ are independent of each other. Split
# both, $q = m_q + \tilde q$ and $k = m_k + \tilde k$, and multiply out:
#
# $$q \cdot k = m_q \cdot m_k + \tilde q \cdot \tilde k + m_q \cdot \tilde k + \tilde q \cdot m_k$$
#
# The first part is the mean. In the product of two different parts of the other three, $\tilde q$ or $\tilde k$ stands once, as a factor of
# mean 0 that is independent of the rest, so the three mean squares add up. With the covariances
# $(S_q)_{ij} = \mathbb{E}[\tilde q_i \tilde q_j]$ and $S_k$, the first of them is
# $\sum_{i,\,j} (S_q)_{ij} (S_k)_{ij} = \mathrm{tr}(S_q S_k)$. With the others,
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$

# %% [markdown] id="turn-correlated"
# **Your turn.** {turn}`correlated-entries-variance`

# %% id="turn-correlated-code" tags=["your-turn"]
my_variance_formula = ...  # r"..."
check("correlated-entries-variance", my_variance_formula)

# %% [markdown] id="turn-correlated-after" tags=["ours"]
# The means are 0, so only the trace is left. Each of its $d_k$ terms with $i = j$ is $1 \cdot 1$, and each of the other $d_k (d_k - 1)$ is
# $\rho \cdot \rho$, so $v = d_k + d_k (d_k - 1)\, \rho^2$.

# %% [markdown] id="kurtosis"
# If each $q_i$ is positively correlated with its $k_i$, as training may make it, $q \cdot k$ gets a mean that grows like $d_k$. That is why
# **muP**, a set of rules for widening a model (Yang et al., 2022), divides by $d_k$ itself. And independent normal entries make no normal
# scores. With $q$ fixed they do, with the fourth moment $3 \|q\|^4$, but $\mathbb{E}[\|q\|^4]$ is $3\,d_k + d_k (d_k - 1)$. So large scores
# are more frequent than on a normal curve, whose ratio is 3:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$

# %% [markdown] id="projected"
# **What does PyTorch's start give?** Layer normalisation gives each token of $d$ entries the squared length $\|x\|^2 = d$ (while
# its learnt gain is 1). Each entry of $x W$ sums $d$ independent terms $x_i W_{ij}$, so over draws of $W$ with mean 0 and variance
# $\sigma_w^2$,
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$
#
# `nn.Linear(d, d_k, bias=False)` draws uniformly between $\pm 1 / \sqrt d$, so $\sigma_w^2 = 1 / (3 d)$: entries have the variance $1/3$,
# and scores $1/9$.

# %% [markdown] id="two-tokens"
# A row varies less if its tokens $y_j$ share a part. Its variance $v$ is the mean of $(s_j - \bar s)^2$, and $s_j - \bar s$ is the score of
# $x$ with $y_j - \bar y$, the token without the mean of all. By {eq}`variance-after-projection` and {eq}`score-variance-from-deviations`
# the mean square of this score, divided by $\sqrt{d_k}$, is $\sigma_Q^2\, \|x\|^2 \cdot \sigma_K^2\, \|y_j - \bar y\|^2$, and the mean of
# $\|y_j - \bar y\|^2$ is $d - \|\bar y\|^2$. So with $\bar c = \|\bar y\|^2 / d$, the mean cosine of all $n^2$ pairs,
#
# $$\mathbb{E}[v] = \bigl( d\, \sigma_Q^2 \bigr) \bigl( d\, \sigma_K^2 \bigr) (1 - \bar c), \qquad
# \bar c = \frac{1}{n^2} \sum_{j,\,l} \frac{y_j \cdot y_l}{d} \label{row-variance-at-initialisation}$$

# %% id="own-tokens"
d, d_k = 512, 64
tokens = rng.normal(size=d) + rng.normal(size=(64, d))
tokens -= tokens.mean(axis=1, keepdims=True)
tokens /= tokens.std(axis=1, keepdims=True)
alike = (tokens.mean(axis=0) ** 2).sum() / d
found = []
for _ in range(100):
    w_query, w_key = rng.uniform(-1, 1, size=(2, d, d_k)) / np.sqrt(d)
    scores = (tokens @ w_query) @ (tokens @ w_key).T / np.sqrt(d_k)
    found.append(scores.var(axis=1).mean())
print(f"derived {(1 - alike) / 9:.3f}   mean of 100 starts {np.mean(found):.3f}")

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

# %% [markdown] id="similar"
# ## Deeper: why not the cosine?
#
# Long vectors have large dot products, while an angle would say how *alike* two vectors are. Why do we not divide the lengths out? Multiply
# out $\|q - k\|^2$ and solve for the mixed term:
#
# $$q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr) \label{dot-product-by-distance}$$
#
# By the law of cosines, the bracket is $2 \|q\| \|k\| \cos\theta$. So
#
# $$\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|} \label{cosine-similarity}$$

# %% id="cosine-code"
from attn_course import reference

query, key = np.array([[1, 0]], float), np.array([[1, 0], [3, 3]], float)
print("q.k / sqrt(d_k)", reference.scaled_dot_scores(query, key)[0].round(2))
print("cosine         ", reference.cosine_scores(query, key)[0].round(2))

# %% [markdown] id="spot-cosine"
# So $q \cdot k / \sqrt{d_k}$ is no cosine: it prefers the longer key, though its angle is larger. But the softmax, written $\sigma$ here,
# makes little of cosines. Let the best of $n$ keys have the cosine 1 and all others $-1$; nothing sharper is possible:
#
# $$\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}} \label{cosine-weight-bound}$$
#
# Among 64 keys, a perfect match gets a weight of at most 0.105.

# %% [markdown] id="trained"
# **After training** a score need not be chance. These are the rows of SmolLM2, which divides by 8:

# %% id="trained-code"
variances = real.values("variance of a row by layer", "all keys").mean(axis=0)
for which in (np.min, np.median, np.max):
    print(f"variance of a row, {which.__name__} of 30 layers: {which(variances):.1f}")

# %% [markdown] id="qk-norm"
# So the division does not hold the variance at 1. **QK-norm** at least bounds each score by $\sqrt{d_k}$, whatever the matrices do. It
# divides $q$ and $k$ by their root mean square, so that a score becomes a cosine times a fixed factor:
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
# In this way Qwen3 and Gemma 3 bound their scores *during* training, where a learnt gain sets the bound. Others cut instead: Gemma 2 turns
# a score $s$ into $50 \tanh(s / 50)$, and Kimi K2 makes a head's $W_Q$ and $W_K$ smaller if its largest score has exceeded 100.

# %% [markdown] id="similar-equal"
# **And the distance?** A Gaussian kernel has the score $-\|q - k\|^2 / (2 h^2)$, with a bandwidth $h > 0$. By
# {eq}`dot-product-by-distance` this is $(q \cdot k) / h^2$, less $\|q\|^2 / (2 h^2)$ and $\|k\|^2 / (2 h^2)$. The second is common to a
# row. If all keys have one length, so is the third, and softmax, here $\sigma$, sees neither:
#
# $$\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i
# \label{equal-length-gaussian-weights}$$

# %% [markdown] id="measured"
# ## Deeper: other widths, Adam, and the twin's step
#
# The trial was also run at other widths, and with Adam, from other random draws and in 32-bit numbers, so some counts differ. Here are the
# mean numbers of steps (at most 100) of three seeds, each with its best step size:

# %% id="widths-code"
from attn_course.lessons.scaling import experiments

record = experiments.SCALE.load()  # stored
columns = ["scaled", "unscaled", *(f"unscaled, {way}" for way in experiments.WAYS)]
print(*columns, sep=" | ")
for optimizer in ("SGD", "Adam"):
    for dim in ("16", "64", "256"):
        steps = [record.values("best", optimizer, dim, each).mean() for each in columns]
        print(f"{optimizer:4s} d_k = {dim:3s}", *(f"{n:5.1f}" for n in steps))

# %% [markdown] id="widths-answer"
# In each single seed of the record, equal lengths win back two thirds of the delay or more, and lengths passed on less than half.

# %% [markdown] id="steps-notice"
# **The twin's step.** Write $W$ for the $W_Q$ of the scaled layer, $c$ for $1 / \sqrt{d_k}$, and $\eta$ for the step size. The loss sees
# $W$ only through $W' = c\,W$, the matrix of the twin. By the chain rule its gradient with respect to $W$ is $c\, \nabla \mathcal{L}(W')$.
# So a step takes $\eta\, c\, \nabla \mathcal{L}(W')$ from $W$, and $c\,W$ loses $c$ times that:
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \label{scale-as-reparametrisation}$$
#
# The twin's own step has no $c^2$. With the same step size, at $d_k = 64$, it is 64 times as long for $W_Q$, and equally long for $W_K$:


# %% id="twins-code"
def stepped(shrink, divisor, size):  # W_Q after one step
    rng, turn, w_query, w_key = start(seed=0)
    features, items, off, _ = examples(rng, turn, 32)
    dots = dots_of(features, items, w_query / shrink, w_key)
    g = gradients(dots / divisor, off)
    slope = features.T @ (g[:, None] @ items)[:, 0] / 32 / divisor
    return w_query / shrink - size * slope @ w_key


ours = stepped(1, 8, 6.4) / 8
for part in (1, 8, 64):
    same = np.allclose(stepped(8, 1, 6.4 / part), ours)
    print(f"step of the twin divided by {part:2d}: the same matrix? {same}")

# %% [markdown] id="twins-answer"
# (Adam's steps hardly notice a common factor of all gradients, so there the twin's $W_Q$ needs $c$ only.)

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
#   Qwen3 ([arXiv:2505.09388](https://arxiv.org/abs/2505.09388)) and Gemma 3
#   ([arXiv:2503.19786](https://arxiv.org/abs/2503.19786)); the soft cap of Gemma 2
#   ([arXiv:2408.00118](https://arxiv.org/abs/2408.00118)); the clipping of Kimi K2
#   ([arXiv:2507.20534](https://arxiv.org/abs/2507.20534)).
