# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one score for each. To average the values it needs weights, which are never
# negative and sum to 1. There are countless ways to make such weights, yet attention, some chess ratings and the physics of heat all use the same
# one. What is special about it?
#
# **You need** exponentials and logarithms, partial derivatives, NumPy. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="hook"
# ## Where does "it" look?
#
# In `the cat sat because it was tired`, how much attention should "it" give to "cat"? These are its scores of
# lesson {lesson}`start`, after they were halved:

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
it = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(it)
weights = amounts / amounts.sum()
print(f"cat: {weights[tokens.index('cat')]:.2f}")

# %% [markdown] id="where"
# This is the lit step in the machine of lesson {lesson}`start`, where $T$ and $H$ count tokens and heads:

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="definition"
# Each token gets an amount, $e$ to the power of its score, and its weight is its share of all amounts. For "cat" this is
# $55 / 58 \approx 0.95$. A token that is $d$ points ahead of another gets $e^d$ times its weight.
#
# The *softmax* turns any finite scores $z = (z_1, \ldots, z_n)$ into weights:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$
#
# Every weight depends on all scores, so we write $\sigma(z)_i$ and not $\sigma(z_i)$. On this card you can change the
# scores.

# %% id="definition-alive"
from attn_course import alive

alive("softmax")

# %% [markdown] id="met"
# For the two scores $x$ and 0 the first weight is the logistic function, $1 / (1 + e^{-x})$. Some chess ratings use it, with a score for
# every $400 / \ln 10 \approx 174$ rating points: a player with $x = 1$ is expected to win 73 % of the points.

# %% [markdown] id="compromise"
# ## The best compromise
#
# Which weights $p$ are best for given scores? If all we want is a large average score, $p \cdot z = \sum_i p_i z_i$, everything
# goes to the best token, even if another is only a hair behind. So we reward doubt as well, which is how evenly weights are spread.
#
# In 1948 Claude Shannon asked three things of a measure of doubt. It is continuous. If all weights are equal, it grows with their
# number. And if a choice is made in two stages, first of a group and then within it, the whole doubt is that about the group plus the
# average doubt within the groups. Up to a positive factor, only one formula does all three:
#
# $$H(p) = -\sum_i p_i \ln p_i$$

# %% [markdown] id="entropy"
# Shannon looked for a name. As he told it later, John von Neumann advised **entropy**, for two reasons. Physics used the
# formula already, under that name. "In the second place, and more important, no one knows what entropy really is, so in a debate you will
# always have the advantage."
#
# The entropy is 0 if one token has everything ($0 \ln 0$ counts as 0), and $\ln n$ if all $n$ have the same. We add it to the average
# score, for now with the factor 1. This is our choice; section {section}`multiplier` has other roads. For the scores $(0, 1, 2)$,
# weights in between beat both extremes:

# %% id="compromise-code"
z = np.array([0.0, 1.0, 2.0])
for p in ([0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.3, 0.6]):
    p = np.array(p)
    entropy = (p * np.log(1 / np.where(p > 0, p, 1))).sum()  # 0 ln 0 counts as 0
    print(f"average {p @ z:.2f} + entropy {entropy:.2f} = {p @ z + entropy:.3f}")

# %% [markdown] id="jensen"
# How large can $p \cdot z + H(p)$ get? Suppose first that no $p_i$ is 0. Both terms are averages under $p$, so we join them:
#
# $$p \cdot z + H(p) = \sum_i p_i\, (z_i - \ln p_i) = \sum_i p_i \ln \frac{e^{z_i}}{p_i}$$
#
# The graph of $\ln$ bends downwards, so an average of logarithms is at most the logarithm of the average (Jensen's inequality), and
# equal exactly if all the numbers are the same:
#
# $$\sum_i p_i \ln \frac{e^{z_i}}{p_i} \le \ln \sum_i p_i\, \frac{e^{z_i}}{p_i} = \ln \sum_i e^{z_i}$$
#
# The last expression is called **log-sum-exp**, $\mathrm{lse}(z)$. If some $p_i$ are 0, all these sums run over the other tokens only.
# Then the right side has fewer terms and is smaller than $\mathrm{lse}(z)$.

# %% [markdown] id="winner"
# When is $\mathrm{lse}(z)$ reached? No $p_i$ may be 0, and all $e^{z_i} / p_i$ must be the same number $N$.
# Then $p_i = e^{z_i} / N$, and as weights sum to 1, $N = \sum_j e^{z_j}$. So **softmax is the one best compromise** between score and
# entropy, and log-sum-exp is its value:
#
# $$p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z + H(\sigma(z)) \key{lse-is-best-compromise}$$

# %% id="winner-code"
from attn_course import check, verify_lesson
from attn_course.reference import logsumexp, softmax

p = softmax(z)
print("softmax:", p.round(3), f" score + entropy = {p @ z - p @ np.log(p):.3f}")
print(f"log-sum-exp:                   {logsumexp(z):.3f}")

# %% [markdown] id="envelope"
# For the scores $(x, 0)$, each choice $p = (p_1, 1 - p_1)$ makes $p \cdot z + H(p)$ a straight line in $x$, with the slope $p_1$. No line
# rises above log-sum-exp, and each with $0 < p_1 < 1$ touches it, where $p$ is the softmax of $(x, 0)$:

# %% id="envelope-figure"
x, first = np.linspace(-4.0, 4.0, 161), np.array([0.1, 0.3, 0.5, 0.7, 0.9])
heights = -first * np.log(first) - (1 - first) * np.log(1 - first)
lines = first[:, None] * x + heights[:, None]
figures.envelope(x, lines, first, lse=np.log(np.exp(x) + 1))

# %% [markdown] id="gradient"
# Where a line touches a smooth curve from below, both have the same slope. So for the scores $(x, 0)$ the slope of log-sum-exp is
# the first softmax weight. For $n$ scores the chain rule gives the same: the slopes of $\ln \sum_j e^{z_j}$ are
# $e^{z_i} / \sum_j e^{z_j}$. So **softmax is the gradient of log-sum-exp**:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \label{lse-gradient}$$

# %% [markdown] id="temperature"
# ## Temperature is a price
#
# Why should a unit of entropy be worth just one point of score? Let it be worth $T > 0$ points, and maximise $p \cdot z + T\, H(p)$.
# Divided by $T$, this is the old question with the scores $z / T$. So the best weights are
#
# $$w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}
# \label{softmax-with-temperature}$$
#
# The price $T$ is called the **temperature**, and von Neumann's first reason comes back. A gas in equilibrium with a heat bath is in
# each of its states with just such a probability, with minus its energy for the score of a state. If $T$ is small, the best
# token, or those that tie, take nearly everything. If $T$ is large, all weights are nearly equal.

# %% [markdown] id="paris"
# Whoever sets the temperature of a chatbot divides scores by $T$. SmolLM2, the model of lesson {lesson}`start`, is to
# continue *The capital of France is*, with a score for each of 49,152 tokens. At $T = 1$ the ten largest weights add up to 90 percent.
# **Predict** for $T = 0.5$ and for $T = 2$ how many are needed: fewer than ten, dozens, or thousands? (At $T = 2$ each amount
# becomes its root.) Does "Paris" stay first?

# %% id="temperature-code" tags=["predicted"]
from attn_course.lessons.softmax.experiments_smollm2 import SMOLLM2

measured = SMOLLM2.load().results[0]["at the end of a start"]
print("The capital of France is")
for temperature in ("0.5", "1", "2"):
    found = measured[temperature]
    paris, *others = np.round(found["weights"], 3)
    print(f"T = {temperature}: Paris {paris}, the next two {others[0]}, {others[1]}")
    print("  tokens that hold 90 %:", found["words that hold 90 %"])

# %% [markdown] id="temperature-answer" tags=["answer"]
# One token is enough at $T = 0.5$, ten at 1, and 13,307 at 2. "Paris" always stays first, since dividing by $T$ does not change the order
# of scores. At $T = 2$ its weight is only 0.05. Against the next two alone it would keep 0.71 (0.052 of 0.074), so it is the many others
# that take the rest.

# %% [markdown] id="lemma"
# ## One lemma for every derivative
#
# Training needs many derivatives of softmax weights. One lemma gives them all.
#
# Let three tokens have the softmax weights $p = \sigma(z) = (0.5, 0.3, 0.2)$, and let each carry a number, such as one entry of its value:
# $f = (2, 4, 0)$. The average of $f$ is $2.2$. The scores $z$ begin to move, at the rates $r = (1, 0, -1)$. Does this average rise or
# fall? The lemma will say how fast.

# %% [markdown] id="lemma-weights"
# **First the weights.** Let scores and numbers be differentiable functions of a number $\theta$. A dot is the derivative with
# respect to it, so $r_j = \dot z_j$, and a bar is an average under $p$. We differentiate $\ln p_j = z_j - \mathrm{lse}(z)$. The left side
# gives $\dot p_j / p_j$. By {eq}`lse-gradient` and the chain rule, $\mathrm{lse}(z)$ changes at the rate $\sum_l p_l\, r_l = \bar r$. So
#
# $$\frac{\dot p_j}{p_j} = r_j - \bar r$$
#
# A weight grows if its score rises faster than the average of the scores, under $p$. Our average rate is $0.5 - 0.2 = 0.3$. So the second token
# loses weight, although its score rests.

# %% [markdown] id="lemma-proof"
# **Then the average.** By the product rule $\bar f = \sum_j p_j f_j$ changes with its numbers and with its weights:
#
# $$\dot{\bar f} = \sum_j p_j \dot f_j + \sum_j p_j\, (r_j - \bar r)\, f_j$$
#
# We may subtract $\bar f$ from every $f_j$, because the $r_j - \bar r$ have the average 0. So the last sum is the average
# product of two deviations, which is called the **covariance** of $f$ and $r$ under $p$:
#
# $$\mathrm{Cov}_p(f, r) = \sum_j p_j\, (f_j - \bar f)\, (r_j - \bar r)$$
#
# This is the lemma:
#
# $$\frac{d}{d\theta} \sum_{j=1}^{n} p_j f_j = \sum_{j=1}^{n} p_j\, \frac{d f_j}{d\theta}
# + \mathrm{Cov}_p\Bigl(f, \frac{d z}{d\theta}\Bigr) \key{weighted-mean-derivative}$$

# %% [markdown] id="covariance-drawn"
# In the picture each token is a dot, larger for a larger weight. A rectangle joins it to the cross of the two averages. Its
# area is the product of the two deviations, negative at the upper left and the lower right. The weighted average of these areas is the
# covariance:

# %% id="covariance-figure"
p = np.array([0.5, 0.3, 0.2])
rate, f = np.array([1.0, 0.0, -1.0]), np.array([2.0, 4.0, 0.0])
areas = (rate - p @ rate) * (f - p @ f)
print("areas:", areas.round(2), f" weighted average: {p @ areas:.2f}")
later = softmax(np.log(p) + 1e-6 * rate)  # ln p are scores with the softmax p
print(f"slope of the average of f: {(later @ f - p @ f) / 1e-6:.2f}")
figures.covariance(p, rate, f)

# %% [markdown] id="covariance-seen"
# So the average rises, at the rate 0.34. The third token decides: it loses weight, and its $f$ lies far below the average.

# %% [markdown] id="jacobian"
# ### Who pays?
#
# If the score of "tired" rises, its weight grows, and the others have to pay. Raise only $z_j$, at the rate 1, and hold the numbers $f$.
# Then $r_j = 1$, the other rates are 0, and their average is $p_j$. Only the second sum of the product rule is left:
#
# $$\frac{\partial \bar f}{\partial z_j} = \sum_l p_l\, (r_l - p_j)\, f_l = p_j f_j - p_j \bar f = p_j\, (f_j - \bar f)$$

# %% [markdown] id="jacobian-entries"
# Each weight $p_i$ is itself such an average: of the list $f$ with 1 at place $i$ and 0 elsewhere. So $f_j$ is Kronecker's $\delta_{ij}$,
# which is 1 if $i = j$ and else 0, and the slope of $p_i$ is $p_j\, (\delta_{ij} - p_i)$. This does not change if $i$ and $j$ change places.
# It is usually written the other way round, with $s$ for the weights $\sigma(z)$, and so we do from here on:
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$
#
# As a matrix with the entries $J_{ij} = \partial s_i / \partial z_j$ this is
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$

# %% [markdown] id="jacobian-predict"
# The scores of `the cat sat because it was tired` were $-1, 4, -2, 0, -2, -1, 0$. **Predict** who pays most when the score of "tired"
# rises, and which two tokens pay least.

# %% id="jacobian-code" tags=["predicted"]
s = softmax(it)
raised = it.copy()
raised[tokens.index("tired")] += 0.001
for token, change in zip(tokens, (softmax(raised) - s) / 0.001, strict=True):
    print(f"{token:8} {change:9.6f}")

# %% [markdown] id="jacobian-answer" tags=["answer"]
# "Cat" pays nearly all, because each other token pays in proportion to its weight. "Sat" and "it" pay least, as they have the smallest
# weights.

# %% [markdown] id="derivative-turn"
# **Your turn: a formula.** {turn}`softmax-derivative` The check evaluates the LaTeX, so any equal form counts.

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # such as r"\frac{1}{2} (s_i + \delta_{ij})", which is wrong
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours" tags=["ours"]
# It is `r"\beta s_i (\delta_{ij} - s_j)"`. With $a_i = e^{\ln a_i}$, $s$ is the softmax of the scores $\beta z_i + \ln a_i$. When
# $z_j$ changes, score $j$ changes $\beta$ times as fast, and no other does. The $a_i$ change the weights, but not the formula.

# %% [markdown] id="vjp"
# ### The backward pass
#
# Must a model build $J$ to learn? Training gives it $g_i = \partial L / \partial s_i$, the gradient of its loss $L$ with respect to the
# weights. It needs the gradient with respect to the scores, which the chain rule says is
# $\partial L / \partial z_j = \sum_i g_i\, \partial s_i / \partial z_j$, or $J^\top g$. Hold $g$ fixed: then this is the slope of the
# average of $g$ when only $z_j$ moves, and we have just calculated such a slope.
#
# **Your turn: code.** {turn}`pull-back-one-row`

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours" tags=["ours"]
# With $g$ for $f$ the slope is $s_j\, (g_j - \bar g)$, and the average $\bar g$ is $s \cdot g$. So the function returns
# `weights * (gradient - weights @ gradient)`.

# %% [markdown] id="vjp-result"
# For all scores at once, with $\odot$ for multiplying entry by entry:
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \key{softmax-vector-jacobian-product}$$
#
# No matrix is needed. For a row of 100,000 keys it would have $10^{10}$ entries.

# %% [markdown] id="stable"
# ## What a computer makes of it
#
# The largest float64 is about $e^{709.8}$, and what is larger becomes `inf`; shorter formats overflow sooner. **Predict** what the code of
# section {section}`hook` gives for the scores 1000, 1001 and 1002, and what it gives if 1002 is subtracted from each first.

# %% id="overflow-code" tags=["predicted"]
for dtype in (np.float16, np.float32, np.float64):
    large = np.array([1000.0, 1001.0, 1002.0], dtype=dtype)
    with np.errstate(all="ignore"):  # keep NumPy quiet
        plain = np.exp(large) / np.exp(large).sum()
    shifted = np.exp(large - large.max())
    limit = np.log(np.finfo(dtype).max)
    print(f"{dtype.__name__}: e^x up to x = {limit:.1f}, plain {plain},", end=" ")
    print(f"shifted {(shifted / shifted.sum()).round(3)}")

# %% [markdown] id="overflow-answer" tags=["answer"]
# All exponentials overflow, and inf / inf is NaN. After the subtraction the largest exponent is 0, and the weights are right.

# %% [markdown] id="shift"
# On paper the subtraction changes nothing, because a common factor $e^c$ cancels. With $\mathbf{1} = (1, \ldots, 1)$,
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# With minus the maximum for $c$, no exponent is positive, and the sum lies between 1 and $n$:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# In a matrix of scores each query, a row, has its own softmax, so maximum and sum run along the last axis. A mask puts
# $-\infty$ in the place of a score. If another score of the row is finite, the weight becomes $e^{-\infty} = 0$ (lesson {lesson}`masking`).

# %% [markdown] id="own"
# ## Your own softmax, forwards and backwards
#
# This cell runs anywhere: softmax along any axis, and `pull`, your `my_pull` along any axis. The scores lie near 1000. We raise one a
# little, and compare the slope of $\sum_i g_i s_i$ with what `pull` gives.

# %% id="own-code"
import numpy as np


def weights_of(scores, axis):
    terms = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return terms / terms.sum(axis=axis, keepdims=True)


def pull(weights, gradient, axis):
    return weights * (gradient - (weights * gradient).sum(axis=axis, keepdims=True))


rng = np.random.default_rng(0)
table, gradient = 1000 + rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
moved = table.copy()
moved[0, 0] += 1e-5
for axis in (0, 1):
    before, after = weights_of(table, axis), weights_of(moved, axis)
    slope = (gradient * (after - before)).sum() / 1e-5
    pulled = pull(before, gradient, axis)
    print(f"axis {axis}: pulled {pulled[0, 0]:.3f}, slope {slope:.3f}")

# %% id="verify-lesson"
verify_lesson("softmax")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | weights, {eq}`softmax` | {key}`softmax` |
# | the best compromise, {eq}`lse-is-best-compromise` | {key}`lse-is-best-compromise` |
# | slope of an average, {eq}`weighted-mean-derivative` | {key}`weighted-mean-derivative` |
# | backward pass, {eq}`softmax-vector-jacobian-product` | {key}`softmax-vector-jacobian-product` |

# %% [markdown] id="summary"
# ## Summary
#
# What is special about softmax?
#
# - It is the one best compromise between average score and entropy. Log-sum-exp is the value of this compromise and has softmax for its
#   gradient; the temperature is the price of entropy.
# - An average under softmax weights changes by the average change plus a covariance. If one score moves and the numbers $g$ rest, this is
#   $s_j\, (g_j - s \cdot g)$, so a backward pass needs no Jacobian.
# - Subtract the maximum of each row, if it is finite, first. On paper no weight changes, and no exponential overflows.
#
# Next: why did lesson {lesson}`start` halve its scores? Lesson {lesson}`scaling` answers; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="online"
# ## Deeper: a softmax in blocks
#
# FlashAttention (lesson {lesson}`flash`) takes the keys block by block and never keeps a whole row of scores. Yet {eq}`stable-softmax`
# needs the maximum before its first term. The way out is to correct the sum when the maximum changes (Milakov and Gimelshein, 2018). For
# any $m$, $e^m$ comes out of each term of the sum in log-sum-exp:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$
#
# For each block $A$ keep the maximum $m_A$ and the sum $\ell_A = \sum_{j \in A} e^{z_j - m_A}$. To join two blocks, bring
# both sums to the larger maximum $m$. Since $e^{z_j - m} = e^{z_j - m_A}\, e^{m_A - m}$, all terms of a block get the same factor:
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \label{merge-of-softmax-sums}$$

# %% [markdown] id="online-predict"
# A single finite score $x$ is a block with the maximum $x$ and the sum $e^0 = 1$, so score by score
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# Start with $m = -\infty$ and $\ell = 0$, so that the first score brings the factor $e^{-\infty} = 0$. (Leave out masked scores until a
# finite one comes: $-\infty$ minus $-\infty$ is NaN.) **Predict** roughly the last sum for the scores of
# "it", with two numbers of section {section}`hook`.

# %% id="online-code" tags=["predicted"]
import math

row_max, row_sum = -math.inf, 0.0
for token, score in zip(tokens, it, strict=True):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"{token:8} score {score:2.0f}   max {row_max:2.0f}   sum {row_sum:.4f}")

# %% [markdown] id="online-answer" tags=["answer"]
# It is 1.0551, the sum of all amounts over the largest one, and in section {section}`hook` this is $58 / 55 \approx 1.05$. When "cat"
# arrives, the maximum jumps from $-1$ to 4, and the old sum of 1 shrinks to $e^{-5} \approx 0.0067$.

# %% [markdown] id="blocks"
# **Your turn.** {turn}`lse-over-blocks`

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep $m$ and $\ell$ as the loop above does, with a block's maximum and its sum $\sum_j e^{z_j - m'}$ in the place of a single score.
# At the end return $m + \ln \ell$, by {eq}`shifted-lse`.

# %% [markdown] id="multiplier"
# ## Deeper: more roads to the same weights
#
# Sometimes an average is given instead of a price. Which weights with a given average score $\mu$ have the largest entropy? By
# {eq}`lse-is-best-compromise` for the scores $\beta z$, all of them have $H(p) \le \mathrm{lse}(\beta z) - \beta \mu$, for every $\beta$.
# If some $\sigma(\beta z)$ has the average $\mu$, it alone reaches this bound. Here $\beta$ is called a *Lagrange multiplier*.

# %% [markdown] id="odds"
# Without entropy we can start from two wishes for the **odds** $w_i / w_j$ of two tokens:
#
# 1. They depend on the scores of these two alone. In 1959 the psychologist Duncan Luce made an axiom of this: how much more often you
#    choose coffee than tea does not depend on whether there is lemonade.
# 2. They stay the same if one number is added to all scores.
#
# Let one continuous rule give the odds of all pairs. Then they are a positive function of the difference, $w_i / w_j = g(z_i - z_j)$. If
# there are three tokens or more, $w_1 / w_3$ is $w_1 / w_2$ times $w_2 / w_3$, and both differences may be any numbers:
#
# $$g(x + y) = g(x)\, g(y)$$

# %% [markdown] id="cauchy"
# The logarithm $L = \ln g$ turns sums into sums, $L(x + y) = L(x) + L(y)$. So $L(-x) = -L(x)$, $L(a x) = a\, L(x)$ for every whole $a$, and
# with $b\, L(\tfrac{1}{b}) = L(1)$ also $L(\tfrac{a}{b}) = \tfrac{a}{b} L(1)$ for every fraction. Every number is a limit of fractions, so by
# continuity $L(x) = \beta x$ with $\beta = L(1)$, and the odds are
#
# $$\frac{w_i}{w_j} = e^{\beta (z_i - z_j)}$$
#
# Weights sum to 1, so they are $\sigma(\beta z)$. As a larger score should get a larger weight, $\beta$ is positive.
#
# Are three tokens really needed? These weights of two tokens fulfil both wishes, although the logarithm of their odds is $(z_1 - z_2)^3$:

# %% id="two-tokens-code"
for first, second in ((1.0, 0.0), (6.0, 5.0), (2.0, 0.0), (7.0, 5.0)):
    cubed = 1 / (1 + np.exp(-((first - second) ** 3)))
    plain = softmax(np.array([first, second]))[0]
    print(f"scores {first:.0f}, {second:.0f}: {cubed:.4f}, softmax {plain:.4f}")

# %% [markdown] id="contest"
# In the 1970s the economist Daniel McFadden gave each way of travelling to work a score, added a random error, and assumed that people take
# the largest. Is there an error for which their shares are those of softmax? Let $z_j + \xi_j$ be the reading of score $j$,
# where the errors $\xi_j$ are independent, with one continuous distribution of finite mean. The largest reading wins. In the figure the
# errors are normal, and the scores are $(x, 0)$.

# %% id="contest-figure"
import math

errors = np.random.default_rng(0).normal(size=(2, 10_000, 2))  # twice 10,000 contests
x = np.linspace(-4.0, 4.0, 81)
readings = np.maximum(x + errors[0, :, :1], errors[0, :, 1:])
share = (x + errors[1, :, :1] > errors[1, :, 1:]).mean(axis=0)
figures.contest(x, readings[:6], readings.mean(axis=0), share)

# %% [markdown] id="contest-slope"
# Let $M(z)$ be the mean of $\max_j (z_j + \xi_j)$, and raise one score $z_i$ by a small $h > 0$. Where $i$ wins already, the best reading
# rises by $h$; where it loses even then, not at all; else by something between. With $u_i$ for the list with 1 at place $i$,
#
# $$P(i \text{ wins at } z) \;\le\; \frac{M(z + h\, u_i) - M(z)}{h} \;\le\; P(i \text{ wins at } z + h\, u_i)$$
#
# Ties have probability 0, so as $h$ shrinks the two chances meet; in the same way for $h < 0$. So $\partial M / \partial z_i =
# P(i \text{ wins})$, whatever the noise.

# %% [markdown] id="gumbel"
# With Gumbel's noise, $P(\xi \le t) = \exp(-e^{-t})$, we can calculate $M$. The best reading is at most $t$ if every reading is:
#
# $$P\bigl(\max_j\, (z_j + \xi_j) \le t\bigr) = \prod_{j=1}^{n} P(\xi_j \le t - z_j) = \prod_{j=1}^{n} \exp\bigl(-e^{z_j - t}\bigr)
# = \exp\Bigl(-e^{-t} \sum_{j=1}^{n} e^{z_j}\Bigr)$$
#
# The sum is $e^{\mathrm{lse}(z)}$, so this is the distribution of a single error, moved by $\mathrm{lse}(z)$. The mean of a single error
# is Euler's constant $\gamma \approx 0.577$:
#
# $$M(z) = \mathrm{lse}(z) + \gamma \label{expected-maximum}$$
#
# Its slope, the chance to win, is $\sigma(z)_i$ by {eq}`lse-gradient`.

# %% [markdown] id="odds-predict"
# Does every contest obey Luce's wish? Let the scores 2 and 1 compete, and then add a third score of 0:

# %% id="contest-code"
rng, size, z = np.random.default_rng(1), (1_000_000, 3), np.array([2.0, 1.0, 0.0])
spread = math.pi / math.sqrt(6)  # of Gumbel's noise; its mean moves every score alike
normal, gumbel = rng.normal(scale=spread, size=size), rng.gumbel(size=size)
for name, noise in {"normal": normal, "Gumbel": gumbel}.items():
    of_two = (z + noise)[:, :2].argmax(axis=1)
    of_three = (z + noise).argmax(axis=1)
    before, after = np.bincount(of_two), np.bincount(of_three)
    print(f"{name}: odds {before[0] / before[1]:.2f}", end=", ")
    taken = [(of_three[of_two == i] == 2).mean() for i in (0, 1)]
    print(f"with the third {after[0] / after[1]:.2f};", end=" ")
    print(f"it takes {taken[0]:.1%}, {taken[1]:.1%} of their wins")

# %% [markdown] id="contest-answer"
# With normal noise the third score takes a larger share of the wins of the second, and raises the odds. With Gumbel noise they stay at
# $e \approx 2.72$.

# %% [markdown] id="cross-entropy"
# ## Deeper: what else the lemma gives, and how sure a softmax can be
#
# ### Colder weights score higher
#
# Take $\theta = \beta$, the scores $\beta z$ and $f = z$. The scores change at the rates $z$, so the average score of $\sigma(\beta z)$
# has the slope $\mathrm{Cov}_p(z, z)$, which is the variance of the scores. If they are not all equal, it is positive. So a lower
# temperature gives a higher average score:

# %% id="which-beta-code"
z = np.array([0.0, 1.0, 2.0])
for temperature in (2.0, 1.0, 0.5):
    p = softmax(z / temperature)
    average, variance = p @ z, p @ z**2 - (p @ z) ** 2
    print(f"T = {temperature}: average score {average:.2f}, variance {variance:.2f}")

# %% [markdown] id="card-question"
# ### Saturation
#
# When do small changes of the scores hardly reach the weights? If one weight is near 1, the others are near 0, and so is every entry of
# $J$, $s_i (1 - s_i)$ or $-s_i s_j$: the softmax is **saturated**. In $\sigma(z / T)$ the derivatives with respect to $z$ are $J / T$, with
# $J$ at the scores $z / T$.
# When it gets colder, does the small $T$ make up for the small $J$? Move $T$ down and see. The card measures a matrix by its *spectral
# norm*, the largest factor by which it stretches a vector.

# %% id="explorable"
figures.softmax_explorable()

# %% id="saturation-code"
from attn_course.reference import softmax_jacobian

z = np.array([2.0, 1.0, 0.0, -1.0])
for temperature in (1.0, 0.6, 0.25):
    jacobian = softmax_jacobian(softmax(z / temperature)) / temperature
    print(f"T = {temperature}: norm of J / T {np.linalg.norm(jacobian, ord=2):.2f}")

# %% [markdown] id="saturation"
# At first it may: for the scores $(2, 1, 0, -1)$ the norm grows until $T$ is about 0.6. In the end it does not. If the best
# score leads by $d > 0$ or more, each other weight is at most $e^{-d / T}$, and this vanishes much faster than $T$. (If two scores tie for
# the first place, $J / T$ grows instead.)

# %% [markdown] id="sure"
# ### How sure can it be?
#
# Of two or more finite scores, each amount is positive and smaller than the sum of all. So on paper
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$
#
# So a query cannot look at nothing. Trained models often put much weight on the first token, which is then called a sink (Xiao, 2023).

# %% [markdown] id="mixed"
# Can every key get as close to 1 as we like? Not if it is a mixture of other keys, $k_a = \sum_l c_l k_l$, where no $c_l$ is negative and
# their sum is 1. Then every query gives it the mixture of their scores, $z_a = \sum_l c_l z_l$. Let $r$ be the log-sum-exp of the others.
# By {eq}`lse-is-best-compromise`, with $c$ for $p$, $r \ge c \cdot z + H(c) = z_a + H(c)$. As
# $p_a = e^{z_a} / (e^{z_a} + e^r) = 1 / (1 + e^{r - z_a})$,
#
# $$p_a \le \frac{1}{1 + e^{H(c)}} \label{weight-of-mixed-key}$$
#
# A key halfway between two others, as "was" in lesson {lesson}`start`, has $H(c) = \ln 2$, so no query gives it more than a third:

# %% id="mixed-code"
keys = np.random.default_rng(0).normal(size=(5, 3))
keys[0] = (keys[1] + keys[2]) / 2
queries = 5 * np.random.default_rng(1).normal(size=(100_000, 3))
given = softmax(queries @ keys.T)
print("largest weight of each key, 100,000 queries:", given.max(axis=0).round(3))

# %% [markdown] id="loss"
# ### What if it is wrong?
#
# In training a language model pays the *cross-entropy* $-\ln s_y$, where $y$ is the word that really came next. As
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# this is $\mathrm{lse}(z) - z_y$. Here a model is sure of the second word, but the first is right:

# %% id="log-trap-code"
z = np.array([0.0, 800.0])
with np.errstate(divide="ignore"):  # keep NumPy quiet
    print("minus the logarithm of the weight:", -np.log(softmax(z))[0])
print("lse(z) - z_y:                     ", logsumexp(z) - z[0])

# %% [markdown] id="log-softmax-safe"
# The weight $e^{-800}$ is too small for a float64 and becomes 0. The second way never forms the weight.
# By {eq}`lse-gradient`,
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# This is the weight minus the truth. With the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$ for the loss, the weight minus the truth
# is only $g$, and has to pass through $J$. A number that is added to all entries of $g$ is lost there:
#
# $$J\,\mathbf{1} = 0 \label{softmax-jacobian-annihilates-constants}$$
#
# If a model is confident and wrong, almost nothing of $g$ is left:

# %% id="squared-error-code"
from attn_course.reference import softmax_vjp

truth, weights = np.array([0.0, 0.0, 1.0]), softmax(np.array([7.0, 1.0, 0.0]))
print("cross-entropy:", (weights - truth).round(4))
print("squared error:", softmax_vjp(weights, weights - truth).round(4))

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - S. Boyd and L. Vandenberghe (2004), *Convex optimization*, § 3.3: log-sum-exp and entropy as a pair.
# - C. E. Shannon (1948), *A mathematical theory of communication*, theorem 2. What von Neumann told him is in M. Tribus and E. C. McIrvine
#   (1971), *Energy and information*, Scientific American 225(3), page 180.
# - E. T. Jaynes (1957), *Information theory and statistical mechanics*: maximum entropy as a principle.
# - R. D. Luce (2008), [Luce's choice axiom](http://scholarpedia.org/article/Luce%27s_choice_axiom), Scholarpedia.
# - K. Train, *Discrete choice methods with simulation*, chapter 3: from Luce to McFadden.
# - G. Xiao et al. (2023), [arXiv:2309.17453](https://arxiv.org/abs/2309.17453): attention sinks.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
