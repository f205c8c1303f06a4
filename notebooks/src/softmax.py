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
# score, for now with the factor 1. This is our choice; section {section}`multiplier` needs no entropy. For the scores $(0, 1, 2)$,
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
# of scores. At $T = 2$ its weight is only 0.05. Against the next two alone it would keep 0.7 (0.052 of 0.074), so it is the many others
# that take the rest.

# %% [markdown] id="lemma"
# ## One lemma for every derivative
#
# Training needs many derivatives of softmax weights. One lemma gives them all.
#
# Let three tokens have the softmax weights $s = \sigma(z) = (0.5, 0.3, 0.2)$, and let each carry a number, such as one entry of its value:
# $f = (2, 4, 0)$. The average of $f$ is $2.2$. The scores $z$ begin to move, at the rates $r = (1, 0, -1)$. Does this average rise or
# fall, and how fast?

# %% [markdown] id="lemma-weights"
# **First the weights.** Let scores and numbers be differentiable functions of a number $\theta$. A dot is the derivative with
# respect to it, so $r_j = \dot z_j$, and a bar is an average under $s$. We differentiate $\ln s_j = z_j - \mathrm{lse}(z)$. The left side
# gives $\dot s_j / s_j$. By {eq}`lse-gradient` and the chain rule, $\mathrm{lse}(z)$ changes at the rate $\sum_l s_l\, r_l = \bar r$. So
#
# $$\frac{\dot s_j}{s_j} = r_j - \bar r$$
#
# A weight grows if its score rises faster than the scores do on average. Our average rate is $0.5 - 0.2 = 0.3$. So the second token
# loses weight, although its score rests.

# %% [markdown] id="lemma-proof"
# **Then the average.** By the product rule $\bar f = \sum_j s_j f_j$ changes with its numbers and with its weights:
#
# $$\dot{\bar f} = \sum_j s_j \dot f_j + \sum_j s_j\, (r_j - \bar r)\, f_j$$
#
# We may subtract $\bar f$ from every $f_j$, because the $r_j - \bar r$ have the average 0. So the last sum is the average
# product of two deviations, which is called the **covariance** of $f$ and $r$ under $s$:
#
# $$\mathrm{Cov}_s(f, r) = \sum_j s_j\, (f_j - \bar f)\, (r_j - \bar r)$$
#
# This is the lemma:
#
# $$\frac{d}{d\theta} \sum_{j=1}^{n} s_j f_j = \sum_{j=1}^{n} s_j\, \frac{d f_j}{d\theta}
# + \mathrm{Cov}_s\Bigl(f, \frac{d z}{d\theta}\Bigr) \key{weighted-mean-derivative}$$

# %% [markdown] id="covariance-drawn"
# In the picture each token is a dot, larger for a larger weight. A rectangle joins it to the cross of the two averages. Its
# area is the product of the two deviations, negative at the upper left and the lower right. The weighted average of these areas is the
# covariance:

# %% id="covariance-figure"
s = np.array([0.5, 0.3, 0.2])
rate, f = np.array([1.0, 0.0, -1.0]), np.array([2.0, 4.0, 0.0])
areas = (rate - s @ rate) * (f - s @ f)
print("areas:", areas.round(2), f" weighted average: {s @ areas:.2f}")
later = softmax(np.log(s) + 1e-6 * rate)  # ln s are scores with the softmax s
print(f"slope of the average of f: {(later @ f - s @ f) / 1e-6:.2f}")
figures.covariance(s, rate, f)

# %% [markdown] id="covariance-seen"
# So the average rises, at the rate 0.34. Of the areas the third token's decides: it loses weight, and its $f$ lies far below the average.

# %% [markdown] id="jacobian"
# ### Who pays?
#
# If the score of "tired" rises, its weight grows, and the others have to pay. Raise only $z_j$, at the rate 1, and hold the numbers $f$.
# Then $r_j = 1$, the other rates are 0, and their average is $s_j$. Only the second sum of the product rule is left:
#
# $$\frac{\partial \bar f}{\partial z_j} = \sum_l s_l\, (r_l - s_j)\, f_l = s_j f_j - s_j \bar f = s_j\, (f_j - \bar f)$$

# %% [markdown] id="jacobian-entries"
# Each weight $s_i$ is itself such an average: of the list $f$ with 1 at place $i$ and 0 elsewhere. So $f_j$ is Kronecker's $\delta_{ij}$,
# which is 1 if $i = j$ and else 0, and the slope of $s_i$ is $s_j\, (\delta_{ij} - s_i)$. As $s_j\, \delta_{ij} = s_i\, \delta_{ij}$,
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
# $z_j$ changes, score $j$ changes $\beta$ times as fast, and no other does.

# %% [markdown] id="vjp"
# ### The backward pass
#
# Must a model build $J$ to learn? Training gives it $g_i = \partial L / \partial s_i$, the gradient of its loss $L$ with respect to the
# weights. It needs the gradient with respect to the scores, which by the chain rule is
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
# All exponentials overflow, and inf / inf is NaN. After the subtraction the largest exponent is 0, and the weights are right up to rounding.

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
# - It is the one best compromise between average score and entropy, whose price is the temperature. At the price 1 log-sum-exp is its value,
#   and has softmax for its gradient.
# - An average under softmax weights changes by the average change plus a covariance. If one score moves and the numbers $g$ rest, this is
#   $s_j\, (g_j - s \cdot g)$, so a backward pass needs no Jacobian.
# - First subtract the maximum of each row, if it is finite. On paper this changes no weight, and on a computer no exponential overflows.
#
# Next: why did lesson {lesson}`start` halve its scores? Lesson {lesson}`scaling` answers; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="online"
# ## Deeper: a softmax in blocks
#
# FlashAttention (lesson {lesson}`flash`) takes the keys block by block and never keeps a whole row of scores. Yet {eq}`stable-softmax`
# needs the maximum before its first term. The way out is to correct the sum when the maximum changes (Milakov and Gimelshein, 2018). For
# any $m$, $e^m$ comes out of the sum in log-sum-exp:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$
#
# For each block $A$ keep the maximum $m_A$ and the sum $\ell_A = \sum_{j \in A} e^{z_j - m_A}$. To join two blocks, bring
# both sums to the larger maximum $m$; all terms of a block get the same factor:
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \label{merge-of-softmax-sums}$$

# %% [markdown] id="online-predict"
# A single finite score $x$ is a block with the maximum $x$ and the sum $e^0 = 1$. So, score by score,
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# Start with $m = -\infty$ and $\ell = 0$. **Predict** roughly the last sum for the scores of "it", with two numbers of section
# {section}`hook`.

# %% id="online-code" tags=["predicted"]
import math

row_max, row_sum = -math.inf, 0.0
for token, score in zip(tokens, it, strict=True):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"{token:8} score {score:2.0f}   max {row_max:2.0f}   sum {row_sum:.4f}")

# %% [markdown] id="online-answer" tags=["answer"]
# It is 1.0551, and section {section}`hook` has $58 / 55 \approx 1.05$. When "cat" arrives, the maximum jumps from $-1$ to 4, and the old sum
# of 1 shrinks to $e^{-5} \approx 0.0067$.

# %% [markdown] id="blocks"
# **Your turn.** {turn}`lse-over-blocks`

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep $m$ and $\ell$ as the loop above does, with a block's maximum and its sum $\sum_j e^{z_j - m'}$ in place of a single score.
# At the end return $m + \ln \ell$, by {eq}`shifted-lse`.

# %% [markdown] id="multiplier"
# ## Deeper: two wishes instead of entropy
#
# Softmax is the best compromise because we chose to reward entropy. Can we do without? Let one continuous rule, the same for all, give the **odds**
# $w_i / w_j$ of every two tokens, with two wishes:
#
# 1. They depend on the scores of these two alone. In 1959 the psychologist Duncan Luce made an axiom of this: how much more often you
#    choose coffee than tea does not depend on whether there is lemonade.
# 2. They stay the same if one number is added to all scores.
#
# So $w_i / w_j = g(z_i - z_j)$ for a positive $g$. Now $w_1 / w_3$ is $w_1 / w_2$ times $w_2 / w_3$, and with three tokens or more both
# differences may be any numbers:
#
# $$g(x + y) = g(x)\, g(y)$$

# %% [markdown] id="cauchy"
# The logarithm $L = \ln g$ turns sums into sums, $L(x + y) = L(x) + L(y)$. So $L(-x) = -L(x)$, $L(a x) = a\, L(x)$ for every whole $a$, and
# with $b\, L(\tfrac{1}{b}) = L(1)$ also $L(\tfrac{a}{b}) = \tfrac{a}{b} L(1)$ for every fraction. Every number is a limit of fractions, so by
# continuity $L(x) = \beta x$ with $\beta = L(1)$. The odds are $e^{\beta (z_i - z_j)}$ and the weights $\sigma(\beta z)$, with $\beta > 0$
# if larger scores get larger weights.
#
# Are three tokens really needed? This rule for two tokens fulfils both wishes, although the logarithm of its odds is $(z_1 - z_2)^3$:

# %% id="two-tokens-code"
for first, second in ((1.0, 0.0), (6.0, 5.0), (2.0, 0.0), (7.0, 5.0)):
    cubed = 1 / (1 + np.exp(-((first - second) ** 3)))
    plain = softmax(np.array([first, second]))[0]
    print(f"scores {first:.0f}, {second:.0f}: {cubed:.4f}, softmax {plain:.4f}")

# %% [markdown] id="roads"
# Two more questions lead here. Which weights with a given average score $\mu$ have the largest entropy? By
# {eq}`lse-is-best-compromise` for the scores $\beta z$, such $p$ have $H(p) \le \mathrm{lse}(\beta z) - \beta \mu$ for every $\beta$. If some
# $\sigma(\beta z)$ has the average $\mu$, it alone reaches this bound, and $\beta$ is called a *Lagrange multiplier*.
#
# How do people choose their way to work? In the 1970s Daniel McFadden gave each way a score, and let the largest win after an
# independent error was added to each. If the errors follow Gumbel's standard distribution, the chances are the softmax weights (with normal errors of
# the same deviation they are not):

# %% id="gumbel-code"
rng, z = np.random.default_rng(0), np.array([2.0, 1.0, 0.0])
for errors, deviation in ((rng.gumbel, 1), (rng.normal, np.pi / np.sqrt(6))):
    first = (z + errors(scale=deviation, size=(1_000_000, 3))).argmax(axis=1)
    print(f"errors {errors.__name__}:", (np.bincount(first) / len(first)).round(3))
print("softmax:      ", softmax(z).round(3))

# %% [markdown] id="sure"
# ## Deeper: how sure can it be, and what if it is wrong?
#
# Of two or more finite scores, each amount is positive and smaller than the sum of all. So on paper a softmax is never quite sure:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$
#
# Does every key get a weight near 1 from some query? Not if it is a mixture of other keys, $k_a = \sum_l c_l k_l$, where no $c_l$ is
# negative and their sum is 1. Its score is the same mixture, $z_a = \sum_l c_l z_l$. With $r$ for the log-sum-exp of the others and $c$ for $p$,
# {eq}`lse-is-best-compromise` says $r \ge c \cdot z + H(c) = z_a + H(c)$. As $s_a = e^{z_a} / (e^{z_a} + e^r)$,
#
# $$s_a \le \frac{1}{1 + e^{H(c)}} \label{weight-of-mixed-key}$$
#
# A key halfway between two others, as "was" in lesson {lesson}`start`, has $H(c) = \ln 2$, so no query gives it more than a third:

# %% id="mixed-code"
keys = np.random.default_rng(0).normal(size=(5, 3))
keys[0] = (keys[1] + keys[2]) / 2
queries = 5 * np.random.default_rng(1).normal(size=(100_000, 3))
given = softmax(queries @ keys.T)
print("largest weight of each key, 100,000 queries:", given.max(axis=0).round(3))

# %% [markdown] id="card-question"
# When do small changes of the scores hardly reach the weights? If one weight is near 1, every entry of $J$, $s_i (1 - s_i)$ or $-s_i s_j$, is
# near 0: the softmax is **saturated**. In $\sigma(z / T)$
# the derivatives by $z$ are $J / T$, with $J$ at the scores $z / T$. Does a small $T$ make up for the small $J$? Move $T$ down and see:

# %% id="explorable"
figures.softmax_explorable()

# %% id="saturation-code"
from attn_course.reference import softmax_jacobian

z = np.array([2.0, 1.0, 0.0, -1.0])
for temperature in (1.0, 0.6, 0.25):
    jacobian = softmax_jacobian(softmax(z / temperature)) / temperature
    norm = np.linalg.norm(jacobian, ord=2)  # spectral: the most it stretches a vector
    print(f"T = {temperature}: norm of J / T {norm:.2f}")

# %% [markdown] id="saturation"
# At first it may, but not for long: if the best score leads by $d > 0$, each other weight is at most $e^{-d / T}$, which vanishes much
# faster than $T$.

# %% [markdown] id="loss"
# So how can a model learn that is sure, and wrong? In training a language model pays the *cross-entropy* $-\ln s_y$, where $y$ is the word
# that really came next. As
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# this is $\mathrm{lse}(z) - z_y$, and its slopes are, by {eq}`lse-gradient`,
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# This is the weight minus the truth. For the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$ that is only $g$, and has to pass through
# $J$. Here a model is sure of the first word, but the third is right:

# %% id="squared-error-code"
from attn_course.reference import softmax_vjp

truth, weights = np.array([0.0, 0.0, 1.0]), softmax(np.array([7.0, 1.0, 0.0]))
print("cross-entropy:", (weights - truth).round(4))
print("squared error:", softmax_vjp(weights, weights - truth).round(4))

# %% [markdown] id="loss-answer"
# Cross-entropy teaches at full strength: its slope by $s_y$, $-1 / s_y$, undoes the factor $s_y$ in row $y$ of $J$. But calculate it as
# $\mathrm{lse}(z) - z_y$, or the weight may be too small for the computer:

# %% id="log-trap-code"
z = np.array([0.0, 800.0])
with np.errstate(divide="ignore"):  # keep NumPy quiet
    print("minus the logarithm of the weight:", -np.log(softmax(z))[0])
print("lse(z) - z_y:                     ", logsumexp(z) - z[0])

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - S. Boyd and L. Vandenberghe (2004), *Convex optimization*, § 3.3: log-sum-exp and entropy as a pair.
# - C. E. Shannon (1948), *A mathematical theory of communication*, theorem 2. What von Neumann told him is in M. Tribus and E. C. McIrvine
#   (1971), *Energy and information*, Scientific American 225(3), page 180.
# - R. D. Luce (2008), [Luce's choice axiom](http://scholarpedia.org/article/Luce%27s_choice_axiom), Scholarpedia.
# - K. Train, *Discrete choice methods with simulation*, chapter 3: from Luce to McFadden.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
