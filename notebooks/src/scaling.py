# %% [markdown] id="title"
# # {lesson}`scaling` The scale of a score
#
# The language model SmolLM2-135M has queries and keys of $d_k = 64$ numbers, and divides their dot products by $\sqrt{64} = 8$. **Why by
# the root of $d_k$, and not by $d_k$ itself, or not at all?** Let us take the division out of all 30 layers. The cell prints the perplexity
# on four texts: roughly, how many next words the model hesitates between.

# %% [markdown] id="needs"
# **You need** lesson {lesson}`softmax`, expectations, variances and gradients. **Time:** 58 minutes, without *Deeper* sections and
# [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% id="hook-model"
from attn_course.lessons.scaling.experiments_smollm2 import SMOLLM2

# stored: perplexity of four texts, as the model is, and with all scores times 8
real = SMOLLM2.load()
for factor, name in (("1", "divided by 8"), ("8", "not divided")):
    print(f"{name:12s}", real.values("perplexity", factor).round().astype(int))

# %% [markdown] id="hook"
# Without the division the model is lost among thousands of words. But it was trained with the division, so this is no fair trial. A fair
# one follows, and then (section {section}`by-d-k`) the root races a divisor of your own, from the width 64 to 1024. **Place your bet now**:
# write any divisor that is not the root, say `lambda d_k: 20` or `lambda d_k: d_k ** 0.6`.

# %% id="hook-bet"
my_bet = ...  # lambda d_k: your divisor

# %% [markdown] id="one-row"
# ## Softmax sees one row
#
# What does the division do to a row of scores? In `the cat sat because it was tired`, "it" has the query $(2, 0, -2, 2)$, "cat" the key
# $(2, 0, 0, 2)$, and "because" the key $(0, 0, 0, 0)$. The dot products are 8 and 0, and divided by $\sqrt{d_k} = \sqrt 4 = 2$ they are 4
# and 0.

# %% [markdown] id="leads"
# Divided by 2, "cat" leads "because" by 4 and has $e^4 \approx 55$ times its weight. Not divided, it leads by 8 and has
# $e^8 \approx 2981$ times its weight. In general $w_j / w_l = e^{s_j - s_l}$, so the softmax sees nothing but **leads**, the differences of
# two scores in one row. Between the dot products and the softmax stands the division:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.scaling import figures

figures.machine()

# %% [markdown] id="chance"
# "Cat" deserves its lead. But before training, queries and keys are random. How far apart does chance put the scores of a row?

# %% [markdown] id="row"
# ## How far does a drunkard get?
#
# In 1905 Karl Pearson asked in *Nature*: a man walks $n$ equal stretches, each in a random direction. How far from his start does he end? A
# week later Lord Rayleigh replied: typically the *root* of $n$ stretches, because steps in all directions largely undo each other. (The
# best single bet, Pearson joked, is the spot where one left the drunkard.) A dot product $q_1 k_1 + q_2 k_2 + \ldots$ is such a walk, on a
# line.

# %% [markdown] id="coins"
# **By hand.** Let $q = (1, 1)$, and let the key be two tossed coins, each $+1$ or $-1$. Of the four possible walks one ends at $-2$, two at
# 0 and one at $2$. The mean square is $(4 + 0 + 0 + 4) / 4 = 2$, and we call its root, $\sqrt 2$, the typical distance.

# %% [markdown] id="usual"
# **The usual assumption** is that all entries of $q$ and $k$ are independent, with mean 0 and variance 1. Then each term $q_i k_i$ has the
# mean 0 and the variance $\mathbb{E}[q_i^2]\, \mathbb{E}[k_i^2] = 1$. The terms are independent, too, so their variances add:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \key{variance-of-a-score}$$
#
# So a dot product typically lies $\sqrt{d_k}$ from 0. A row holds the dot products of one query with many keys. If $d_k$ is large,
# they spread about as far:

# %% id="usual-code"
import numpy as np

rng = np.random.default_rng(5)
for d_k in (400, 900):
    query, key = rng.normal(size=(2, 1000, d_k))
    spread = (query @ key.T).std(axis=1)  # within each row
    print(f"d_k = {d_k}   mean spread of a row {spread.mean():.0f}")

# %% [markdown] id="usual-after"
# There is the root: chance spreads the dot products of a row by about $\sqrt{d_k}$.

# %% [markdown] id="scale"
# ## The scale
#
# We want leads that do not grow with the width $d_k$, so we bring the variance to 1. A factor $c$ multiplies a variance by $c^2$, and
# $c^2\, d_k = 1$ needs $c = 1 / \sqrt{d_k}$:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \key{scaled-score-variance}$$
#
# And if nobody divides? Here 64 random queries meet 64 random keys. Move $d_k$ to 1024, and watch the weights in the second picture.

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="strip-notice"
# Averaged over the queries, the largest weight is 0.80 at $d_k = 64$ and 0.95 at 1024: the layer believes in noise. Divided by
# $\sqrt{d_k}$, it is near 0.1 at both widths.

# %% [markdown] id="deviations"
# Is it still the root if the entries do not have the variance 1? Let them, still independent and of mean 0, have the standard deviations
# $\sigma_q$ and $\sigma_k$. Then each term $q_i k_i$ has the variance $\sigma_q^2\, \sigma_k^2$, so
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \key{score-variance-from-deviations}$$
#
# **Your turn.** {turn}`divisor-for-sparse-entries`

# %% id="turn-sparse-code" tags=["your-turn"]
my_divisor = ...  # r"..."
check("divisor-for-sparse-entries", my_divisor)

# %% [markdown] id="turn-sparse-ours" tags=["ours"]
# An entry has the mean 0 and the mean square $p$, so by {eq}`score-variance-from-deviations` the variance is $d_k\, p^2$, and
# $u = p \sqrt{d_k}$. The root stays: other deviations only change the factor in front of it.

# %% [markdown] id="slow"
# ## Or nothing at all?
#
# A layer without the division can compute all that ours can, with $W_Q / \sqrt{d_k}$ in the place of our $W_Q$. So only start and training
# can differ. We train both on one small task. In a cloakroom hang 16 items, and a guest describes the first one in a foreign language:

# %% id="trial-drawing"
figures.task()

# %% [markdown] id="trial-rules"
# Features and values are random numbers, and the language is an orthogonal matrix. We train $W_Q$ and $W_K$ by gradient steps on half the
# squared error of the output, until more than 90 % of 512 new guests *find* their item, that is, give it the largest score. (The folded
# cells only draw guests and take slopes; skip them.)

# %% id="trial-examples" tags=["hide-input"]
from attn_course.reference import softmax


def start(seed, d_k):
    rng = np.random.default_rng(seed)
    language = np.linalg.qr(rng.normal(size=(16, 16)))[0]  # orthogonal
    return rng, language, *rng.normal(size=(2, 16, d_k)) / 4  # q and k: variance 1


def guests(rng, language, count):
    items, values = rng.normal(size=(count, 16, 16)), rng.normal(size=(count, 16, 4))
    return items[:, 0] @ language, items, values


def dots_of(x, items, w_query, w_key):  # of each guest with all 16 items
    return (items @ (x @ (w_query @ w_key.T))[:, :, None])[:, :, 0]


def share_found(group, w_query, w_key):  # item 0 is the right one
    x, items, _ = group
    return (dots_of(x, items, w_query, w_key).argmax(axis=1) == 0).mean()


# %% id="trial-gradients" tags=["hide-input"]
def gradients(scores, values):  # (n, 16), (n, 16, 4) -> slopes along the scores
    w = softmax(scores)
    apart = values - values[:, :1]  # from the right value
    error = w[:, None] @ apart  # the output less the right one
    along_w = (error * apart).sum(axis=2)  # slopes of the loss along the weights
    return w * (along_w - (w * along_w).sum(axis=1, keepdims=True))


def slopes_of(g, x, items):  # along W_Q W_K^T, from those along the dot products
    return x.T @ (g[:, None] @ items)[:, 0] / len(x)


def moved(w_query, w_key, slopes):  # one step
    return w_query - slopes @ w_key, w_key - slopes.T @ w_query


# %% id="trial-steps"
def train(divisor, size, seed, d_k=64, change=lambda g: g):  # change: for later
    draws, language, w_query, w_key = start(seed, d_k)  # matrices (16, d_k)
    new_guests = guests(draws, language, 512)
    for step in range(100):
        if share_found(new_guests, w_query, w_key) > 0.9:
            return step
        x, items, values = guests(draws, language, 32)
        scores = dots_of(x, items, w_query, w_key) / divisor  # (32, 16)
        g = change(gradients(scores, values))  # slopes along the scores
        slopes = slopes_of(g / divisor, x, items)  # along W_Q W_K^T
        w_query, w_key = moved(w_query, w_key, size * slopes)
    return 100  # at most


# %% [markdown] id="trial-starts"
# Both layers are trained from the same nine random starts, and each start gets its best of eight step sizes:

# %% id="delay-code"
sizes = 0.05 * 2.0 ** np.arange(8)  # of a step, up to 6.4


def trial(divisor, change=lambda g: g):
    starts = range(9)
    return [min(train(divisor, size, n, 64, change) for size in sizes) for n in starts]


print("with the root: steps", *trial(8))
print("without:       steps", *trial(1))

# %% [markdown] id="delay"
# On average it takes 4 steps with the root, and 28 without. What costs the other 24? No step size would save them: each start had the
# best of eight, and never needed the smallest or the largest.
#
# Vaswani et al. (2017) had a suspect: large dot products push the softmax "into regions where it has extremely small gradients." Here
# is one guest before training:

# %% id="trial-guest"
draws, language, w_query, w_key = start(seed=0, d_k=64)
x, items, _ = guests(draws, language, 1)
dots = dots_of(x, items, w_query, w_key)  # (1, 16)
print("dot products", dots[0].round().astype(int))
for divisor in (8, 1):
    percent = 100 * softmax(dots / divisor)[0]
    print(f"divided by {divisor}", percent.round().astype(int))

# %% [markdown] id="trial-guest-seen"
# The right item is the first, and by chance the ninth leads it by 8. Divided by 8, it leads by 1 and has 22 % of the weight. Not divided,
# it has 81 %, and the right item 0 %.

# %% [markdown] id="wrong-by-hand"
# **By hand.** Let only these two items hang there, the ninth with the value 1 and the right one with the value 0. The output is the weight
# $w$ of the ninth, and should be 0. The loss $\frac12 w^2$ has the slope $w$ along $w$, and $w$ has the slope $w\,(1 - w)$ along the ninth
# score (lesson {lesson}`softmax`). So along this score the loss has the slope $w^2\,(1 - w)$. With a lead of 1 this is
# $0.731^2 \cdot 0.269 \approx 0.144$. With a lead of 8 the error is larger, and yet the slope is only 0.0003, because $1 - w$ is so small.

# %% [markdown] id="lesson-of-a-query"
# We call the slopes along all scores of a guest its $g$. All that $W_Q$ and $W_K$ learn from the guest goes through $g$, so a guest who is
# very sure of a wrong item teaches them hardly anything.

# %% [markdown] id="silent-predict"
# How frequent are guests with hardly any gradient, a few of them sure of the right item? We look at 2000, before training. **Predict**
# what is left of the mean length of $g$ without the division: about 70 %, about 10 %, or about 1 %?


# %% id="silent-code" tags=["predicted"]
def lengths(g):  # of its rows, never 0
    return np.linalg.norm(g, axis=1, keepdims=True) + 1e-99


x, items, values = guests(draws, language, 2000)
dots = dots_of(x, items, w_query, w_key)
for name, divisor in (("divided by 8", 8), ("not divided", 1)):
    length = lengths(gradients(dots / divisor, values))
    print(f"{name:12s} mean length {length.mean():.2f}", end="   ")
    print(f"shorter than 0.01: {(length < 0.01).mean():.0%}")

# %% [markdown] id="silent" tags=["answer"]
# About 70 % is left. And on the way back to $W_Q$ and $W_K$, $g$ is itself divided by the divisor $u$ (chain rule: $s = q \cdot k / u$). So
# without the division their gradients are even *longer*, roughly as 0.43 to $0.62 / 8 \approx 0.08$. The suspect seems innocent. But the
# lengths have become *unequal*: more than a fifth of the guests have hardly any gradient.

# %% [markdown] id="suspect"
# ## Unequal lengths on trial
#
# All guests share one step size, and one that suits guests with hardly any gradient is far too large for the others. So perhaps this is
# what the root is for: **every guest is heard**. If so, it should also help to make all guests of a step equally loud, without the root.

# %% [markdown] id="lift-turn"
# **Your turn.** {turn}`lift-the-silent`

# %% id="lift-turn-code" tags=["your-turn"]
my_lift = ...  # lambda g: ...
check("lift-the-silent", my_lift)

# %% [markdown] id="lift-ours" tags=["ours"]
# `lambda g: g / lengths(g) * lengths(g).mean()`: a row divided by its length has the length 1.

# %% [markdown] id="slow-predict"
# Your function lifts the quiet guests and hushes the loud ones. It becomes the `change` of the loop, and each half of it is tried alone,
# too. **Predict** which half wins back more of the 24 steps, and how many both together win back.

# %% id="slow-code" tags=["predicted"]
if my_lift is ...:  # not written yet: take ours
    from attn_course.lessons.scaling.tasks_turns import lifted as my_lift


def bounded(bound):  # a change that goes only one way
    return lambda g: g / lengths(g) * bound(lengths(g), lengths(g).mean())


halves = {"loud hushed": bounded(np.minimum), "quiet lifted": bounded(np.maximum)}
for title, divisor in (("without the root", 1), ("with the root", 8)):
    print(title)
    for name, change in {"unchanged": lambda g: g, **halves, "both": my_lift}.items():
        mean = np.mean(trial(divisor, change))
        print(f"  {name:12s} {mean:4.1f} {'#' * round(mean)}")

# %% [markdown] id="slow-answer" tags=["answer"]
# Lifting does more: alone it brings 28 steps down to 13. Hushing alone brings them only to 27, but on top of lifting it brings 13 down to
# 9. Together they win back 19 of the 24, or four fifths. With the root, the control, there is little to win.

# %% [markdown] id="culprit-seen"
# So in this trial the suspect was half guilty: gradients cost steps when they were small *beside others*. **On our single task, equal
# lengths win back most of what the root wins.** (What the rest is, we have not measured. The root also changes the directions of the
# gradients.)

# %% [markdown] id="by-d-k"
# ## Your bet against the root
#
# Now the width grows. With a divisor $u$, chance spreads the scores of a row by about
#
# $$r = \frac{\sqrt{d_k}}{u}$$
#
# Work out $r$ for your bet:

# %% [markdown] id="by-d-k-table"
# | divisor | $r$ at 64 | $r$ at 256 | $r$ at 1024 |
# |---|---|---|---|
# | $\sqrt{d_k}$ | 1 | 1 | 1 |
# | 8 | 1 | 2 | 4 |
# | $d_k$ | 1/8 | 1/16 | 1/32 |
# | your bet | | | |

# %% [markdown] id="by-d-k-move"
# All steps have the size 3.2. (In the trial, at the width 64, none of the other seven made the root faster.) If $r$ is small, a step
# moves the scores too little: the divisor shortens the gradient, and then the change of the scores once more. If $r$ is large, scores lie
# far apart, and a layer is sure before it has learnt anything, as in section {section}`slow`.

# %% [markdown] id="by-d-k-predict"
# **Predict** which is slower at 1024, the divisor 8 or the divisor $d_k$, and at which width your bet comes closest to the root
# (if its $r$ is above 1, you have to gamble).


# %% id="by-d-k-bet" tags=["predicted"]
def race(divisor_at):  # at each width the steps from three starts
    needed = {}
    for d_k in (64, 256, 1024):
        needed[d_k] = [train(divisor_at(d_k), 3.2, seed, d_k) for seed in range(3)]
    return needed


bets = {"root": np.sqrt, "8": lambda d_k: 8, "d_k": lambda d_k: d_k}
bets["my bet"] = (lambda d_k: 16) if my_bet is ... else my_bet  # no bet: take ours
figures.races({name: race(bet) for name, bet in bets.items()})

# %% [markdown] id="by-d-k-answer" tags=["answer"]
# At 1024 the divisor $d_k$ takes 79 steps, 8 takes 28, and the root 3. Ours was 16, with $r$ of 1/2, 1 and 2, and takes 5, 4 and 7.
#
# Look up your own $r$. Up to $r = 1$ these widths hardly differ: about 20 steps at 1/8, 9 at 1/4, 5 at 1/2. Beyond 1, guests fall silent
# and steps of 3.2 become too long. There $r$ alone does not decide: half the root has $r = 2$ at each width, and takes 59
# (one start was stopped at 100), 8 and 7 steps.

# %% [markdown] id="by-d-k-verdict"
# **Only multiples of the root have the same $r$ at all widths**, and the root itself keeps it at 1, where one step size served from 64 to
# 1024. (A larger divisor can be saved by longer steps, and a smaller one in part by shorter ones. And Adam wants another divisor. See
# section {section}`measured`.)

# %% [markdown] id="back-to-the-model"
# **And SmolLM2?** Not divided, its scores are 8 times what its matrices were trained for. But with each $W_Q$ divided by 8 it would read as
# before, so the perplexities at the top of this lesson do not show that it needs the division. What the root is worth shows in training.

# %% [markdown] id="card"
# ## Formula card
#
# | what, and when | formula |
# |---|---|
# | a dot product; entries independent, mean 0, variance 1, {eq}`variance-of-a-score` | {key}`variance-of-a-score` |
# | the scale; the same assumption, {eq}`scaled-score-variance` | {key}`scaled-score-variance` |
# | other deviations; entries independent, mean 0, {eq}`score-variance-from-deviations` | {key}`score-variance-from-deviations` |

# %% id="verify-lesson"
verify_lesson("scaling")

# %% [markdown] id="summary"
# ## Summary
#
# Why the root? A random dot product, like Pearson's man, gets about $\sqrt{d_k}$ far in $d_k$ steps. So, with independent entries of mean
# 0 and variance 1, the root gives scores of variance 1 whatever the width, and one step size suited our layer from 64 to 1024. Not
# divided, it took several times the steps on our one task, and most of this delay was won back once all guests were equally loud.
#
# Next, after the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb), lesson {lesson}`attention` puts all parts together.

# %% [markdown] id="matrices"
# ## Deeper: which assumption does the root need?
#
# **Within a row** less is needed. Fix one query $q$, and draw its keys from one distribution that does not depend on $q$, with
# uncorrelated entries of variance $\sigma_k^2$. (Their means add one number to the whole row, which changes no lead.) The term $q_i k_i$
# has the variance $q_i^2\, \sigma_k^2$, so over the keys of this query,
#
# $$\mathrm{Var}_k[q \cdot k] = \sigma_k^2\, \|q\|^2 \label{row-variance-by-query}$$
#
# If $d_k$ is large, $\|q\|^2$ is about $d_k$ under the usual assumption.

# %% [markdown] id="covariances"
# **Over all queries and keys** let the entries of a vector have any means, $m_q$ and $m_k$, and move together; only $q$ and $k$ are
# independent. Split both, $q = m_q + \tilde q$ and $k = m_k + \tilde k$, and multiply out:
#
# $$q \cdot k = m_q \cdot m_k + \tilde q \cdot \tilde k + m_q \cdot \tilde k + \tilde q \cdot m_k$$
#
# The first part is the mean. In a product of two different ones of the others $\tilde q$ or $\tilde k$ stands only once, as a factor of
# mean 0 that is independent of the rest. So their mean squares add up. With the covariances
# $(S_q)_{ij} = \mathbb{E}[\tilde q_i \tilde q_j]$ and $S_k$, the first of these is
# $\sum_{i,\,j} (S_q)_{ij} (S_k)_{ij} = \mathrm{tr}(S_q S_k)$, and
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
# If each $q_i$ has the covariance $\gamma$ with its $k_i$, as training may make it, the mean of $q \cdot k$ grows by $d_k\, \gamma$. That
# is why **muP**, a set of rules for widening a model, divides by $d_k$ (Yang et al., 2022); we have not tried it.
#
# Independent normal entries make no normal scores, for large ones are more frequent. With $q$ fixed the fourth moment is $3 \|q\|^4$, and
# $\mathbb{E}[\|q\|^4] = 3\,d_k + d_k (d_k - 1)$. So this ratio is more than the 3 of a normal curve:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$

# %% [markdown] id="own"
# ### Spot the mistake: "`scores.var()` says how sharp the softmax is"
#
# Let queries have 16 independent normal entries of variance 1, and keys entries of mean 1 and deviation 0.2. **Predict** the variance of
# all scores, and that within a row.

# %% id="spot-total-code" tags=["predicted"]
query, key = rng.normal(size=(2000, 16)), 1 + 0.2 * rng.normal(size=(2000, 16))
scores = query @ key.T / np.sqrt(16)
print(f"all scores {scores.var():.2f}   within a row {scores.var(axis=1).mean():.2f}")

# %% [markdown] id="spot-total-answer" tags=["answer"]
# The variance of all scores is about 1, and yet no key stands out in any row. By {eq}`row-variance-by-query` a row of $q \cdot k$ has the
# variance $16 \cdot 0.04$ on average, here divided by 16. The rest is how far the rows lie apart. Softmax sees only `scores.var(axis=1)`.

# %% [markdown] id="projected"
# **What does PyTorch's start give?** Layer normalisation (with gain 1 and bias 0, and but for its small $\epsilon$) gives a token of $d$
# entries the squared length $\|x\|^2 = d$. Each entry of $x W$ sums $d$ terms $x_i W_{ij}$, so if $W$ has independent entries of mean 0 and
# variance $\sigma_w^2$,
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$
#
# `nn.Linear(d, d_k, bias=False)` draws uniformly between $\pm 1 / \sqrt d$, so $\sigma_w^2 = 1 / (3 d)$: entries have the variance $1/3$,
# and scores $1/9$.

# %% [markdown] id="two-tokens"
# A row varies less if its tokens $y_j$ share a part. Its variance $v$ is the mean of $(s_j - \bar s)^2$, and $s_j - \bar s$ is the score of
# $x$ with $y_j - \bar y$, the token without the mean of all. By {eq}`variance-after-projection` and {eq}`score-variance-from-deviations`
# this score, divided by $\sqrt{d_k}$, has the mean square $\sigma_Q^2\, \|x\|^2 \cdot \sigma_K^2\, \|y_j - \bar y\|^2$. The mean of
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
# An angle would say how *alike* two vectors are, however long. Multiply out $\|q - k\|^2$ and solve for the mixed term:
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
# So $q \cdot k / \sqrt{d_k}$ prefers the longer key, though its angle is larger. But the softmax, written $\sigma$ here, makes little of
# cosines. Nothing is sharper than a cosine of 1 for the best of $n$ keys, and $-1$ for all others:
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
# So the division does not hold the variance at 1. **QK-norm** makes a score a cosine times a fixed factor, so that it is at most
# $\sqrt{d_k}$, whatever the matrices do:
#
# $$\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad
# \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}
# \label{query-key-normalisation}$$

# %% [markdown] id="held"
# Qwen3 and Gemma 3 use it, with a learnt gain that sets the bound. Gemma 2 has a *soft cap*, $50 \tanh(s / 50)$ in place of the score
# $s$. For Kimi K2, *clipping* shrank $W_Q$ and $W_K$ of a head after each step in which its largest score exceeded 100.

# %% [markdown] id="similar-equal"
# **And the distance?** A Gaussian kernel has the score $-\|q - k\|^2 / (2 h^2)$, with a bandwidth $h > 0$. By {eq}`dot-product-by-distance`
# this is $(q \cdot k) / h^2$, less $\|q\|^2 / (2 h^2)$, common to a row, and $\|k\|^2 / (2 h^2)$. If all keys have one length, the last is
# common, too, and softmax, here $\sigma$, sees neither:
#
# $$\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i
# \label{equal-length-gaussian-weights}$$

# %% [markdown] id="measured"
# ## Deeper: more controls, other widths, and the first step of Adam
#
# A guest is **silent** if its $g$ is shorter than 0.01. Without the root, we lift only the silent guests, or *pass on* each length to the
# next guest, so that lengths stay as unequal as they are. With the root we *mute* three of four guests:

# %% id="controls-code"
controls = {
    "silent lifted": (1, lambda g: np.where(lengths(g) < 0.01, my_lift(g), g)),
    "passed on": (1, lambda g: g / lengths(g) * np.roll(lengths(g), 1, axis=0)),
    "root, muted": (8, lambda g: g * (np.arange(len(g)) % 4 == 0)[:, None]),
}
for name, (divisor, change) in controls.items():
    needed = trial(divisor, change)
    print(f"{name:13s} mean {np.mean(needed):4.1f} ({min(needed)} to {max(needed)})")

# %% [markdown] id="controls-answer"
# The silent alone win back about half of the delay, and lengths passed on nothing. With a quarter of its guests the layer with the root
# still learns in 12 to 20 steps, so fewer lessons cost it about 10 steps and not 24. (Measured against the root *with* equal lengths, these
# win back more than three quarters. There 6.4, the largest size, is the best in one start; larger ones did not help.)

# %% [markdown] id="widths"
# **Other widths.** The trial was also run with Adam, from other draws and in 32-bit numbers. "Factor in W_Q" is the **twin**: it does not
# divide, but starts with $W_Q / \sqrt{d_k}$, like T5. Here are mean numbers of steps (at most 100) of three seeds:

# %% id="widths-code"
from attn_course.lessons.scaling import experiments

record = experiments.SCALE.load()  # stored
columns = [*experiments.LAYERS, *(f"unscaled, {way}" for way in experiments.WAYS)]
print(*columns, sep=" | ")
for optimizer in ("SGD", "Adam"):
    for dim in ("16", "64", "256"):
        steps = [record.values("best", optimizer, dim, each).mean() for each in columns]
        print(f"{optimizer:4s} d_k = {dim:3s}", *(f"{n:5.1f}" for n in steps))

# %% [markdown] id="widths-answer"
# In each seed equal lengths win back two thirds of the delay or more, and lengths passed on less than half.

# %% [markdown] id="steps-notice"
# **The twin's step.** Write $W$ for the $W_Q$ of the scaled layer, $c$ for $1 / \sqrt{d_k}$, and $\eta$ for the step size. The loss sees
# $W$ only through the twin's matrix $W' = c\,W$, so its gradient with respect to $W$ is $c\, \nabla \mathcal{L}(W')$. A step takes $\eta$
# times this from $W$, and $c\,W$ loses $c$ times that:
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \label{scale-as-reparametrisation}$$
#
# The twin's own step has no $c^2$, so with the same $\eta$, at $d_k = 64$, it is 64 times as long for $W_Q$ (and equally long for $W_K$):


# %% id="twins-code"
def stepped(shrink, divisor, size):  # W_Q after one step
    rng = np.random.default_rng(0)
    w_query, w_key = rng.normal(size=(2, 16, 64)) / 4
    w_query = w_query / shrink
    x, items, values = guests(rng, np.eye(16), 32)
    g = gradients(dots_of(x, items, w_query, w_key) / divisor, values)
    return moved(w_query, w_key, size * slopes_of(g / divisor, x, items))[0]


ours = stepped(1, 8, 3.2) / 8
for part in (1, 8, 64):
    same = np.allclose(stepped(8, 1, 3.2 / part), ours)
    print(f"step of the twin divided by {part:2d}: the same matrix? {same}")

# %% [markdown] id="twins-answer"
# (Adam hardly notices a common factor of all gradients, so there the twin's $W_Q$ needs $c$ only.)
#
# **Adam's first step** takes $\eta$ times the sign of its slope from each entry. So it moves a score in proportion to $\eta\, d_k / u$,
# which only a multiple of $d_k$ holds still. How far is it on average, with $\eta = 0.01$?


# %% id="adam-code"
def moved_by_adam(d_k, divisor):
    rng = np.random.default_rng(0)
    w_query, w_key = rng.normal(size=(2, 16, d_k)) / 4
    x, items, values = guests(rng, np.eye(16), 512)
    scores = dots_of(x, items, w_query, w_key) / divisor
    slopes = slopes_of(gradients(scores, values), x, items)
    ours = w_query - 0.01 * np.sign(slopes @ w_key)
    theirs = w_key - 0.01 * np.sign(slopes.T @ w_query)
    return abs(dots_of(x, items, ours, theirs) / divisor - scores).mean()


for d_k in (64, 256, 1024):
    moves = [moved_by_adam(d_k, divisor) for divisor in (np.sqrt(d_k), d_k)]
    print(f"d_k = {d_k:4d}   by the root {moves[0]:.2f}   by d_k {moves[1]:.3f}")

# %% [markdown] id="adam-answer"
# At four times the width the move doubles with the root, and stays with $d_k$. So no divisor holds still both the start, which needs the
# root, and this step.

# %% [markdown] id="plain-step"
# **How far a plain step moves a score** $s_j = q \cdot k_j / u$. Let $g_j$ be the slope of the loss along it. Were $q$ itself the
# parameter and $s_j$ its only score, a step of size $\eta$ would take $\eta\, g_j\, k_j / u$ from $q$. As $k_j \cdot k_j$ is about $d_k$,
# the score would fall by
#
# $$\eta\, g_j\, \frac{k_j \cdot k_j}{u^2} \;\approx\; \eta\, g_j\, \frac{d_k}{u^2} = \eta\, g_j\, r^2$$

# %% [markdown] id="plain-step-layer"
# In our layer the step moves $W_Q$, which brings the factor $\|x\|^2$, the same at all widths, and it moves $W_K$. Other keys of the row
# and other queries of the batch count, too. Together these move a score more than its own term does, but they grow like $d_k / u^2$ as
# well.
#
# So with $r$ below 1 the right score has only $r$ times as far to go, but goes $r^2$ times as far in a step, and about $1 / r$ times as
# many steps are needed. The divisor $d_k$ has $r = 1 / \sqrt{d_k}$, and steps that are $\sqrt{d_k}$ times as long make up for it:

# %% id="by-d-k-repaired"
for d_k in (64, 256, 1024):
    size = 3.2 * np.sqrt(d_k)
    needed = [train(d_k, size, seed, d_k) for seed in range(3)]
    print(f"d_k = {d_k:4d}   steps", *needed)

# %% [markdown] id="plain-step-shorter"
# With the constant 8, at 1024, steps are 16 times as long and leads 4 times as large. Let $\eta = 25.6 / \sqrt{d_k}$, so that steps too
# grow only 4 times: the 28 steps become 11. The best of our eight sizes there, 0.4, gives 9. That is still far from the 4 at the width 64.

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
