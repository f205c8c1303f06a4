# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one score for each. To average the values it needs weights, which are never
# negative and sum to 1. There are countless ways to make such weights, yet attention, language models and the physics of heat all use the
# same one. What is special about it?
#
# **You need** exponentials and logarithms, partial derivatives, NumPy. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="hook"
# ## Where does "it" look?
#
# In `the cat sat because it was tired`, how much attention should "it" give to "cat"? Here are its scores of lesson {lesson}`start`, halved:

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
it = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(it)
weights = amounts / amounts.sum()
print(f"cat: {weights[tokens.index('cat')]:.2f}")

# %% [markdown] id="where"
# Here is that step in the machine of lesson {lesson}`start`, where $T$ and $H$ count tokens and heads:

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="definition"
# Each token gets an amount, $e$ to the power of its score, and its weight is its share of all amounts, $55 / 58 \approx 0.95$ for "cat".
# The *softmax* does this with any finite scores $z = (z_1, \ldots, z_n)$:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$
#
# Every weight depends on all scores, so we write $\sigma(z)_i$ and not $\sigma(z_i)$.

# %% id="definition-alive"
from attn_course import alive, check, verify_lesson

alive("softmax")

# %% [markdown] id="leads"
# Why $e^z$ and not $z^2$? Suppose that a lead decides how two weights compare: a token that leads another by $x$ points has $g(x)$ times
# the weight of the other, whatever the rest of the scores. "Cat" leads "because" by 4, and "because" leads "it" by 2, so "cat" leads "it"
# by 6. Leads add up while factors multiply, $g(4 + 2) = g(4)\, g(2)$, and so for all leads:
#
# $$g(x + y) = g(x)\, g(y)$$
#
# A continuous positive $g$ must then be an exponential, $g(x) = a^x$, as Cauchy showed in 1821 (see the exercises). So **among three tokens
# or more only softmax compares weights by leads**, with $e$ or another positive number as the base $a$. (Two tokens have one
# lead only.)

# %% [markdown] id="compromise"
# ## The best compromise
#
# Softmax is also the best at something. Let $p$ be any weights. To make the average score $p \cdot z = \sum_i p_i z_i$ as large as possible,
# give the best token everything, even if another is only a hair behind. So we also reward doubt, for which Claude Shannon found a measure in 1948:
#
# $$H(p) = -\sum_i p_i \ln p_i$$
#
# It is 0 if one token has everything ($0 \ln 0 = 0$), and $\ln n$ if all $n$ have the same.

# %% [markdown] id="entropy"
# As Shannon told it, John von Neumann advised the name that the formula had in physics, **entropy**: "no one knows what entropy really is,
# so in a debate you will always have the advantage."
#
# Now add entropy to the average score, for three choices of weights and the scores $(0, 1, 2)$:

# %% id="compromise-code"
z = np.array([0.0, 1.0, 2.0])
for p in ([0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.3, 0.6]):
    p = np.array(p)
    entropy = (p * np.log(1 / np.where(p > 0, p, 1))).sum()  # 0 ln 0 counts as 0
    print(f"average {p @ z:.2f} + entropy {entropy:.2f} = {p @ z + entropy:.3f}")

# %% [markdown] id="jensen"
# The choice in between wins. How large can $p \cdot z + H(p)$ get? Suppose first that no $p_i$ is 0. Both terms are averages
# under $p$, so we join them:
#
# $$p \cdot z + H(p) = \sum_i p_i\, (z_i - \ln p_i) = \sum_i p_i \ln \frac{e^{z_i}}{p_i}$$
#
# Because the graph of $\ln$ bends downwards, an average of logarithms is at most the logarithm of the average (Jensen's inequality), and
# they are equal only if all the numbers are the same:
#
# $$\sum_i p_i \ln \frac{e^{z_i}}{p_i} \le \ln \sum_i p_i\, \frac{e^{z_i}}{p_i} = \ln \sum_i e^{z_i}$$
#
# The right side, free of $p$, is called **log-sum-exp**, $\mathrm{lse}(z)$. If some $p_i$ are 0, the sums run over the other tokens only,
# and the bound is smaller.

# %% [markdown] id="winner"
# So $\mathrm{lse}(z)$ is reached only if all $e^{z_i} / p_i$ are the same number $N$. Then $p_i = e^{z_i} / N$, and as weights sum to 1,
# $N = \sum_j e^{z_j}$. **Softmax is the one best compromise** between score and entropy, and log-sum-exp is its value:
#
# $$p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z + H(\sigma(z)) \key{lse-is-best-compromise}$$

# %% id="winner-code"
from attn_course.reference import logsumexp, softmax

p = softmax(z)
print("softmax:", p.round(3), f" score + entropy = {p @ z - p @ np.log(p):.3f}")
print(f"log-sum-exp:                   {logsumexp(z):.3f}")

# %% [markdown] id="gradient"
# How fast does $\mathrm{lse}(z)$ grow with one score? By the chain rule the slope of $\ln \sum_j e^{z_j}$ is $e^{z_i} / \sum_j e^{z_j}$, so
# **softmax is the gradient of log-sum-exp**:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \label{lse-gradient}$$

# %% [markdown] id="temperature"
# ## Temperature is a price
#
# Why should a unit of entropy be worth one point of score? Let it be worth $T > 0$ points, and maximise $p \cdot z + T\, H(p)$. Divided by
# $T$, this is the old question with the scores $z / T$, so the best weights are
#
# $$p_i = \frac{e^{z_i / T}}{\sum_{j=1}^{n} e^{z_j / T}} = \sigma(z / T)_i \label{softmax-with-temperature}$$
#
# The price $T$ is called the **temperature**, because in physics the states of a gas in a heat bath have just such probabilities, with
# minus the energy as the score. A lead of one point now gives $e^{1/T}$ times the weight, so at a low temperature the best score takes
# nearly everything, while at a high one all weights are nearly equal.

# %% [markdown] id="paris"
# A chatbot draws its next token with such weights as probabilities. Let SmolLM2, the model of lesson {lesson}`start`, continue *The capital
# of France is*: it gives each of its 49,152 tokens a score. At $T = 1$ "Paris" comes first, and the ten largest weights add up to 90
# percent. **Predict** how many it takes for 90 percent at $T = 0.5$, where each amount $e^{z_i}$ is squared, and at $T = 2$, where it
# becomes its root: fewer than ten, dozens, or thousands? Does "Paris" stay first?

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
# One token is enough at $T = 0.5$, ten at 1, and 13,307 at 2. "Paris" stays first, since dividing by $T$ keeps the order of scores.
# At $T = 2$ the first three together have less than 0.1, and thousands of tokens with a tiny weight each share the rest.

# %% [markdown] id="lemma"
# ## One lemma for every derivative
#
# When scores move, as in training, how do the weights follow? Let three tokens have the weights $s = \sigma(z) = (0.5, 0.3, 0.2)$, while
# their scores depend on some number $\theta$ and move at the rates $r = dz / d\theta = (1, 0, -1)$.
#
# We differentiate $\ln s_j = z_j - \mathrm{lse}(z)$ by $\theta$. The left side gives $\frac{1}{s_j} \frac{d s_j}{d\theta}$. By
# {eq}`lse-gradient` and the chain rule, $\mathrm{lse}(z)$ moves at the rate $\sum_l s_l\, r_l$, the average rate under $s$, written
# $\bar r$. So
#
# $$\frac{d s_j}{d\theta} = s_j\, (r_j - \bar r)$$
#
# **Predict** with a pencil: what is $\bar r$, and at which rates do the weights move? Does the second one rest, as its score does?

# %% id="lemma-code" tags=["predicted"]
s, rates = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, -1.0])
later = softmax(np.log(s) + 1e-6 * rates)  # ln s are scores with the softmax s
print("measured:", ((later - s) / 1e-6).round(2))

# %% [markdown] id="lemma-answer" tags=["answer"]
# The average rate is $0.5 - 0.2 = 0.3$, so the weights move at the rates $0.5 \cdot 0.7 = 0.35$, $0.3 \cdot (-0.3) = -0.09$ and
# $0.2 \cdot (-1.3) = -0.26$. The second one shrinks although its score rests, because a weight grows only if its score rises faster than
# the average. Together the three rates are 0.

# %% [markdown] id="lemma-proof"
# Attention takes averages under such weights. Let three values stand still, with the first entries $f = (2, 4, 0)$. The average
# $\bar f = \sum_j s_j f_j = 2.2$ moves because the weights do, at the rate
#
# $$\sum_j s_j\, (r_j - \bar r)\, f_j = \sum_j s_j\, (r_j - \bar r)\, (f_j - \bar f)$$
#
# We may subtract $\bar f$, as the rates of the weights sum to 0. The right side, an average product of two deviations, is the
# **covariance** of $f$ and $r$ under $s$. That is the lemma, for numbers $f_j$ that do not depend on $\theta$:
#
# $$\frac{d}{d\theta} \sum_{j=1}^{n} s_j f_j = \mathrm{Cov}_s\Bigl(f, \frac{d z}{d\theta}\Bigr) \key{weighted-mean-derivative}$$

# %% [markdown] id="covariance-drawn"
# In the picture each token is a dot, larger for a larger weight, and a rectangle joins it to the cross of the two averages. The sides are
# the two deviations, and the area counts as negative if one of them is:

# %% id="covariance-figure"
f = np.array([2.0, 4.0, 0.0])
print(f"measured rate of the average: {(later - s) @ f / 1e-6:.2f}")
figures.covariance(s, rates, f)

# %% [markdown] id="covariance-seen"
# The average rises, and the third token decides: its score falls while its $f$ is far below average. So an entry of
# an output of attention rises when, on average under the weights, scores rise more where the values are large.

# %% [markdown] id="jacobian"
# ### Who pays?
#
# Raise only the score $z_j$, at the rate 1. Then the average rate is $s_j$, and the rate of score $i$, written $\delta_{ij}$, is 1 if
# $i = j$ and else 0. So weight $i$ moves at the rate
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$
#
# Back to `the cat sat because it was tired`, with the scores $-1, 4, -2, 0, -2, -1, 0$. If the score of "tired" rises, its weight grows,
# and the others pay:

# %% id="jacobian-code"
s = softmax(it)
raised = it.copy()
raised[tokens.index("tired")] += 0.001
for token, change in zip(tokens, (softmax(raised) - s) / 0.001, strict=True):
    print(f"{token:8} {change:9.6f}")

# %% [markdown] id="jacobian-answer"
# "Cat" pays nearly all, while "sat" and "it" pay least, because each other token pays in proportion to its weight.

# %% [markdown] id="derivative-turn"
# **Your turn: a formula**, for a softmax with factors. {turn}`softmax-derivative` Any equal form counts.

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # such as r"\frac{1}{2} (s_i + \delta_{ij})", which is wrong
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours" tags=["ours"]
# It is `r"\beta s_i (\delta_{ij} - s_j)"`. With $a_i = e^{\ln a_i}$, $s$ is the softmax of the scores $\beta z_i + \ln a_i$. When
# $z_j$ changes, score $j$ changes $\beta$ times as fast, and no other does.

# %% [markdown] id="vjp"
# ### The backward pass
#
# Training gives the slopes of a loss $L$ along the weights, $g_i = \partial L / \partial s_i$, while a model needs those along the scores.
# By the chain rule they are $\partial L / \partial z_j = \sum_i g_i\, \partial s_i / \partial z_j$: the rate of the average
# $\sum_i s_i g_i$ when only $z_j$ moves and $g$ stands still.
#
# **Your turn: code.** {turn}`pull-back-one-row`

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours" tags=["ours"]
# By {eq}`softmax-derivative` the sum is $\sum_i g_i s_i\, (\delta_{ij} - s_j) = s_j\, (g_j - \bar g)$, where the average $\bar g$ is
# $s \cdot g$. So the function returns `weights * (gradient - weights @ gradient)`.

# %% [markdown] id="loss"
# ## Sure, and wrong
#
# For a language model in training, $L$ is the **cross-entropy** $-\ln s_y$, where $y$ is the token that really came next. As
# $\ln s_y = z_y - \mathrm{lse}(z)$, its slopes along the scores are, by {eq}`lse-gradient`,
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# Each is a weight minus the truth. If $L$ is the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$, the same difference is only the
# slope along a *weight*, $g_i$, and must still go through your `my_pull`. With the matrix $J$ of all $\partial s_i / \partial z_j$, $\odot$
# for products entry by entry, and $\mathbf{1} = (1, \ldots, 1)$, `my_pull` returns
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \key{softmax-vector-jacobian-product}$$
#
# It never builds $J$, which for a row of 100,000 keys would have $10^{10}$ entries.

# %% [markdown] id="loss-predict"
# Try both losses on the scores $(7, 1, 0)$: a model is sure of the first token, but the third comes. **Predict** for each loss how large the third
# slope is: about 1, about 0.1, or less than 0.01?

# %% id="squared-error-code" tags=["predicted"]
from attn_course.reference import softmax_vjp

truth, weights = np.array([0.0, 0.0, 1.0]), softmax(np.array([7.0, 1.0, 0.0]))
print("cross-entropy:", (weights - truth).round(4))
print("squared error:", softmax_vjp(weights, weights - truth).round(4))

# %% [markdown] id="loss-answer" tags=["answer"]
# Cross-entropy teaches at full strength: the third slope is $-0.9991$. For the squared error that slope is only $-0.0018$, because it has
# the third weight, 0.0009, as a factor.

# %% [markdown] id="stable"
# ## What a computer makes of it
#
# A computer cannot hold every exponential: beyond the largest float64, about $e^{709.8}$, stands `inf`, and `inf / inf` is `nan`, not a
# number. **Predict** what the code of section {section}`hook` gives for the scores 1000, 1001 and 1002, and what if 1002 is subtracted from
# each first.

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
# All exponentials overflow. After the subtraction the largest exponent is 0, and the weights are right up to rounding. (Each
# format holds these scores exactly.)

# %% [markdown] id="shift"
# On paper the subtraction changes nothing, because a common factor $e^c$ cancels:
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# With minus the maximum for $c$, no exponent is positive, and the sum lies between 1 and $n$:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# In a matrix of scores each query, a row, has its own softmax, so maximum and sum run along the last axis. A mask puts $-\infty$ in the
# place of a score, whose weight becomes $e^{-\infty} = 0$ if another score of the row is finite (lesson {lesson}`masking`).

# %% [markdown] id="own"
# ## Your own softmax, forwards and backwards
#
# These cells run anywhere: softmax and your `my_pull` for all rows, and a stable cross-entropy for one row. Then the losses race: a sure
# and wrong model takes gradient steps of size 1 until the right token has half the weight.

# %% id="own-code"
import numpy as np


def weights_of(scores):
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return terms / terms.sum(axis=-1, keepdims=True)


def pull(weights, gradient):
    return weights * (gradient - (weights * gradient).sum(axis=-1, keepdims=True))


def cross_entropy(scores, right):  # lse(z) - z_y: finite, however small the weight is
    shifted = scores - scores.max()
    return np.log(np.exp(shifted).sum()) - shifted[right]


# %% [markdown] id="own-predict"
# **Predict** the steps that each loss needs, a few, hundreds or thousands, if the wrong token begins with the score 7, and if with 12.

# %% id="own-race" tags=["predicted"]
truth = np.array([0.0, 0.0, 1.0])
for first in (7.0, 12.0):
    paid = cross_entropy(np.array([first, 1.0, 0.0]), right=2)
    print(f"first score {first}, cross-entropy {paid:.1f}")
    for loss in ("cross-entropy", "squared error"):
        scores, steps = np.array([first, 1.0, 0.0]), 0
        while weights_of(scores)[2] < 0.5:
            weights = weights_of(scores)
            slope = weights - truth
            scores -= slope if loss == "cross-entropy" else pull(weights, slope)
            steps += 1
        print(f"    {loss}: {steps} steps")

# %% [markdown] id="own-answer" tags=["answer"]
# Cross-entropy takes 4 steps and 7, the squared error 177 and 22,709: the surer the model, the smaller the weight that multiplies its slope.

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
# - Among three tokens or more only softmax compares weights by leads, up to its base, as long as no weight jumps.
# - It is the one best compromise between average score and entropy, and the temperature is the price of entropy. At the price 1 log-sum-exp
#   is its value, and has softmax for its gradient.
# - An average of fixed numbers under softmax weights moves at the rate of a covariance, so a backward pass needs no Jacobian.
# - Cross-entropy also teaches a model that is sure and wrong: each slope is the weight minus the truth.
# - Subtract a finite maximum first. No weight changes, and no exponential overflows.
#
# Next: why did lesson {lesson}`start` halve its scores? Lesson {lesson}`scaling` answers; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="online"
# ## Deeper: a softmax in blocks
#
# FlashAttention (lesson {lesson}`flash`) takes the keys block by block, and of a row it keeps only $\mathrm{lse}(z)$, which gives each
# weight back from its score:
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# Is one look at each block enough? For any $m$, $e^m$ comes out of the sum:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$
#
# For each block $A$ keep the maximum $m_A$ and the sum $\ell_A = \sum_{j \in A} e^{z_j - m_A}$. To join two blocks, bring both sums to the
# larger maximum (Milakov and Gimelshein, 2018):
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \label{merge-of-softmax-sums}$$

# %% [markdown] id="online-predict"
# A single finite score $x$ is a block with the maximum $x$ and the sum $e^0 = 1$. So, score by score,
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# We start with $m = -\infty$ and $\ell = 0$, and take the scores of "it":

# %% id="online-code"
import math

row_max, row_sum = -math.inf, 0.0
for token, score in zip(tokens, it, strict=True):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"{token:8} score {score:2.0f}   max {row_max:2.0f}   sum {row_sum:.4f}")

# %% [markdown] id="online-answer"
# When "cat" arrives, the maximum jumps from $-1$ to 4, and the old sum of 1 shrinks to $e^{-5} \approx 0.0067$.

# %% [markdown] id="blocks"
# **Your turn.** {turn}`lse-over-blocks`

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep $m$ and $\ell$ as the loop above does, with a block's maximum and its sum $\sum_j e^{z_j - m'}$ in place of a single score.
# At the end return $m + \ln \ell$, by {eq}`shifted-lse`.

# %% [markdown] id="sure"
# ## Deeper: can every token win?
#
# On paper every token gets something, for two or more finite scores:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$
#
# But who can get nearly all? Five random keys meet 100,000 random queries. The first key is moved halfway between the second and the
# third. **Predict** the largest weight that it ever gets: about 1, a half, or less?

# %% id="mixed-code" tags=["predicted"]
keys = np.random.default_rng(0).normal(size=(5, 3))
keys[0] = (keys[1] + keys[2]) / 2
queries = 5 * np.random.default_rng(1).normal(size=(100_000, 3))
given = softmax(queries @ keys.T)
print("largest weight of each key, 100,000 queries:", given.max(axis=0).round(3))

# %% [markdown] id="mixed-answer" tags=["answer"]
# It never gets more than a third, and each other key gets nearly all from some query.

# %% [markdown] id="mixed"
# Why a third? Let a key be a mixture of the others, $k_a = \sum_l c_l k_l$, where no $c_l$ is negative and their sum is 1. Its score is
# the same mixture of theirs, $z_a = c \cdot z$. For these others {eq}`lse-is-best-compromise`, with $c$ for $p$, says
#
# $$\mathrm{lse}(z) \ge c \cdot z + H(c) = z_a + H(c)$$
#
# So together they have at least $e^{H(c)}$ times the amount of key $a$. Whatever the query,
#
# $$s_a \le \frac{1}{1 + e^{H(c)}} \label{weight-of-mixed-key}$$
#
# Halfway between two keys $H(c)$ is $\ln 2$, and the bound is a third.

# %% [markdown] id="card-question"
# ## Deeper: do colder weights move faster?
#
# All slopes of {eq}`softmax-derivative` together are the matrix
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$
#
# If one weight is near 1, every entry of $J$, $s_i (1 - s_i)$ or $-s_i s_j$, is near 0. The softmax is **saturated**: small changes of the
# scores hardly reach the weights. Yet in $\sigma(z / T)$ the slopes by $z$ are $J / T$. Which wins
# as $T$ falls, the small $J$ or the large $1 / T$?

# %% id="saturation-code"
from attn_course.reference import softmax_jacobian

z = np.array([2.0, 1.0, 0.0, -1.0])
for temperature in (1.0, 0.6, 0.25):
    jacobian = softmax_jacobian(softmax(z / temperature)) / temperature
    norm = np.linalg.norm(jacobian, ord=2)  # spectral: the most it stretches a vector
    print(f"T = {temperature}: norm of J / T {norm:.2f}")

# %% [markdown] id="saturation"
# Here $1 / T$ wins first, and then $J$. If the best score leads by $d > 0$, each other weight is at most $e^{-d / T}$, which vanishes much
# faster than $T$. At which $T$ do the weights of this card move fastest?

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - S. Boyd and L. Vandenberghe (2004), *Convex optimization*, § 3.3: log-sum-exp and entropy as a pair.
# - C. E. Shannon (1948), *A mathematical theory of communication*, theorem 2. What von Neumann told him is in M. Tribus and E. C. McIrvine
#   (1971), *Energy and information*, Scientific American 225(3), page 180.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
