# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one score for each. To average the values it needs weights, never negative and with
# the sum 1. There are countless ways to make them, yet standard attention, language models and the physics of heat all raise
# $e$ to the power of the score. **Why $e^z$, and what does it buy us?**
#
# **You need** exponentials and logarithms, partial derivatives, NumPy. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="hook"
# ## Where does "it" look?
#
# In `the cat sat because it was tired`, how much attention should "it" give to "cat"? Here are its scores from lesson {lesson}`start`,
# which halved them (lesson {lesson}`scaling` says why):

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
it = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(it)
weights = amounts / amounts.sum()
print(f"cat: {weights[tokens.index('cat')]:.2f}")

# %% [markdown] id="where"
# Here is that step in the machine of lesson {lesson}`start`:

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="definition"
# Each token gets an amount, $e$ to the power of its score, and its weight is its share of all amounts, $55 / 58 \approx 0.95$ for "cat".
# The *softmax* does this with any finite scores $z = (z_1, \ldots, z_n)$:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$
#
# Every weight depends on all scores, so we write $\sigma(z)_i$, not $\sigma(z_i)$.

# %% id="definition-alive"
from attn_course import alive, check, verify_lesson

alive("softmax")

# %% [markdown] id="leads"
# ## Only leads count
#
# Other positive amounts grow with the score, too, such as $1 / (1 + e^{-z})$. Now add one vector to every key. They differ as before,
# and all scores of a query change by the same number, here 5.

# %% id="leads-code"
ways = {"e^z": np.exp, "1 / (1 + e^-z)": lambda z: 1 / (1 + np.exp(-z))}
for name, amount in ways.items():
    before, after = (amount(z)[1] / amount(z).sum() for z in (it, it + 5))
    print(f"{name:14}  cat: {before:.2f}, with 5 more for all {after:.2f}")

# %% [markdown] id="cauchy"
# With $1 / (1 + e^{-z})$ "cat" loses more than half of its weight, while $e^z$ does not notice. Let us demand this in general: if token $i$
# leads token $j$ by $x$ points, so $z_i - z_j = x$, its weight is $f(x)$ times that of $j$, with one positive function $f$ for all pairs
# and scores. "Cat" leads "because" by 4, and "because" leads "it" by 2, so "cat" leads "it" by 6. Leads add up while factors multiply:
#
# $$f(x + y) = f(x)\, f(y)$$
#
# A lead of 3 is three leads of 1, so $f(3) = f(1)^3$. Two halves make 1, so $f(\frac12)$ is the root of $f(1)$, and $f(0) = f(0)^2$ is 1.
# So $f(x) = a^x$ with $a = f(1)$ for every fraction $x$, and if $f$ is continuous, so that no weight jumps, for all $x$ (Cauchy, 1821).

# %% [markdown] id="temperature"
# So **softmax is the only continuous way to weigh three tokens or more by leads**, with $e$ or another positive base $a$. If higher scores
# are to win, $a$ is above 1, and we may write it as $e^{1/T}$ with $T > 0$:
#
# $$p_i = \frac{e^{z_i / T}}{\sum_{j=1}^{n} e^{z_j / T}} = \sigma(z / T)_i \label{softmax-with-temperature}$$
#
# $T$ (not the number of tokens here) is called the **temperature**: in physics the states of a gas that exchanges heat with its
# surroundings have such probabilities, with minus the energy as the score.

# %% [markdown] id="paris"
# A chatbot can draw its next token like this. We let SmolLM2, the model of lesson {lesson}`start`, continue *The capital of France is*,
# with a score for each of its 49,152 tokens. At $T = 1$ "Paris" has 77 percent of the weight, and ten tokens hold 90. **Predict** how many
# do at $T = 0.5$, where each amount $e^{z_i}$ is squared: one, or about five? And at $T = 2$, where it becomes its square root: dozens,
# hundreds, or thousands?

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
# One token is enough at $T = 0.5$, and at $T = 2$ it takes 13,307. "Paris" still comes first, since dividing by $T$ keeps the order, but
# thousands of tokens with a tiny weight each share the rest.

# %% [markdown] id="stable"
# ## Scores that are too large
#
# SmolLM2's score for "Paris" is 17.37, and $e^{17.37}$ is 35 million. In float16 the largest number is 65,504. Beyond it a computer
# writes `inf`, and `inf / inf` is `nan`. Here are the weights of the three best tokens, as if there were no others, with the code of
# section {section}`hook` and with the maximum subtracted first:

# %% id="overflow-code"
best = np.array(measured["scores"], dtype=np.float16)  # of "Paris", "the" and "London"
for name, scores in (("plain", best), ("shifted", best - best.max())):
    with np.errstate(all="ignore"):  # keep NumPy quiet
        shares = np.exp(scores) / np.exp(scores).sum()
    print(f"{name:7}", shares.round(3))

# %% [markdown] id="shift"
# All plain exponentials overflow. After the subtraction the weights are right up to rounding: since only leads count, a number added to
# every score changes nothing. With $\mathbf{1} = (1, \ldots, 1)$
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# With minus the maximum for $c$, no exponent is positive, and the sum lies between 1 and $n$:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# In a matrix each row is one query's, so the maximum and the sum run along the last axis:

# %% id="own-code"
import numpy as np


def weights_of(scores):
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return terms / terms.sum(axis=-1, keepdims=True)


print(weights_of(it).round(4))

# %% [markdown] id="race"
# ## A race, and a riddle
#
# A model learns its scores. A loss says how bad its weights $s = \sigma(z)$ are, and each step moves the scores (here directly) against the
# slopes of the loss. Language models use the **cross-entropy** $-\ln s_y$, where $y$ is the token that really came next. Why
# not the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$, where $\delta_{iy}$ is 1 if $i = y$ and else 0? Let them race. A slope
# can be measured without calculus: nudge a score up and down, and see how the loss changes.

# %% id="slopes-code"
truth = np.array([0.0, 0.0, 1.0])  # of three tokens the third is right
losses = {
    "cross-entropy": lambda s: -np.log(s[:, 2]),
    "squared error": lambda s: ((s - truth) ** 2).sum(axis=1) / 2,
}


def slopes(loss, scores):  # three rows, of which row j nudges score j
    nudge = 0.001 * np.eye(3)
    return (loss(weights_of(scores + nudge)) - loss(weights_of(scores - nudge))) / 0.002


for name, loss in losses.items():
    print(name, slopes(loss, np.zeros(3)).round(3))  # of three equal scores

# %% [markdown] id="own-predict"
# From equal scores the slopes of the squared error are a third of the others. Now let a model be sure of the first token, with the scores
# $(7, 1, 0)$ or even $(12, 1, 0)$, though the third is right. **Predict** how many steps of size 1 each loss needs until the third has half
# the weight: a few, hundreds, thousands, or tens of thousands?

# %% id="own-race" tags=["predicted"]
paths = {}
for first in (7.0, 12.0):
    for name, loss in losses.items():
        scores, path = np.array([first, 1.0, 0.0]), []
        while weights_of(scores)[2] < 0.5:
            scores -= slopes(loss, scores)
            path.append(weights_of(scores)[2])
        paths[f"{name}, {first:.0f}"] = path
        print(f"first score {first}, {name}: {len(path)} steps")
figures.race(paths)

# %% [markdown] id="own-answer" tags=["answer"]
# Cross-entropy takes 4 steps and 7, the squared error 177 and 22,709. Why does the squared error wait, longest where the model is most
# wrong?

# %% [markdown] id="loss"
# ## The logarithm undoes it
#
# First the winner. Its logarithm undoes the exponential: $\ln s_i = z_i - \ln \sum_j e^{z_j}$. The last term is called **log-sum-exp**,
# $\mathrm{lse}(z)$. By the chain rule its slope along $z_i$ is $e^{z_i}$ over the sum, so **softmax is the gradient of log-sum-exp**:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \label{lse-gradient}$$
#
# The cross-entropy is $\mathrm{lse}(z) - z_y$, so each of its slopes is a weight minus the truth:
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \key{cross-entropy-gradient}$$
#
# At $(7, 1, 0)$ the weights are $(0.997, 0.002, 0.001)$ and the slopes $(0.997, 0.002, -0.999)$. A step takes nearly 2 points of the lead
# of 7, so four steps are enough, and six or seven for a lead of 12.

# %% [markdown] id="gradient"
# ## Who pays?
#
# Now the loser, the squared error. Its slopes along the *weights* are $s_i - \delta_{iy}$, just what cross-entropy has along the *scores*.
# But a step moves scores. This is the short answer to the riddle: where a model is sure, the weights hardly follow the scores, and slopes
# that never pass 1 cannot make up for it.
#
# To see how weights follow, raise the score of "tired" in the row of "it" a little. The weights sum to 1, so others have to pay.
# **Predict** who pays most: "because" with the same score, "cat" with the weight 0.95, or all the same?

# %% id="jacobian-code" tags=["predicted"]
s = weights_of(it)
raised = it.copy()
raised[tokens.index("tired")] += 0.001
rates = (weights_of(raised) - s) / 0.001
for token, weight, rate in zip(tokens, s, rates, strict=True):
    print(f"{token:8} weight {weight:.4f}, rate {rate:9.6f}")

# %% [markdown] id="jacobian-seen" tags=["answer"]
# "Cat" pays nearly all, and whoever pays does so in proportion to its weight.

# %% [markdown] id="jacobian"
# Why in proportion? Let all scores move with the time $t$, and write $\mathrm{E}_s[x]$ for the average $\sum_j s_j x_j$ of any numbers. By
# {eq}`lse-gradient` $\mathrm{lse}(z)$ moves at the average rate of the scores. So $\ln s_i = z_i - \mathrm{lse}(z)$ moves as fast as score
# $i$ outruns this average, and as $d \ln s_i / dt = (ds_i / dt) / s_i$, the weight itself moves $s_i$ times as fast:
#
# $$\frac{d s_i}{dt} = s_i\, \Bigl(\frac{d z_i}{dt} - \mathrm{E}_s\Bigl[\frac{dz}{dt}\Bigr]\Bigr)$$
#
# If only $z_j$ rises, at the rate 1, the average is $s_j$, and
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$

# %% [markdown] id="derivative-turn"
# **Your turn: a formula.** {turn}`softmax-derivative`

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # such as r"\frac{1}{2} (s_i + \delta_{ij})", which is wrong
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours" tags=["ours"]
# It is `r"\beta s_i (\delta_{ij} - s_j)"`. When $z_j$ changes, the score $\beta z_j$ changes $\beta$ times as fast, and no other
# score does.

# %% [markdown] id="lemma"
# ## Why the squared error waits
#
# How fast does a loss $L$ move when the scores do? If its slopes along the weights are $g_i = \partial L / \partial s_i$, it moves at the
# rate $\sum_i g_i\, ds_i / dt$ by the chain rule. We put in how the weights follow:
#
# $$\sum_i g_i\, s_i\, \Bigl(\frac{d z_i}{dt} - \mathrm{E}_s\Bigl[\frac{dz}{dt}\Bigr]\Bigr)
# = \mathrm{E}_s\Bigl[g\, \frac{dz}{dt}\Bigr] - \mathrm{E}_s[g]\; \mathrm{E}_s\Bigl[\frac{dz}{dt}\Bigr]$$
#
# The average of the products, less the product of the averages, is called the **covariance** of slopes and rates under the weights. So
# every loss moves at the rate $\mathrm{Cov}_s(g, dz/dt)$. The average of fixed numbers $g_j$ has the slopes $g_j$, and for it this is our
# lemma:
#
# $$\frac{d}{dt} \sum_{j=1}^{n} s_j g_j = \mathrm{Cov}_s\Bigl(g, \frac{d z}{dt}\Bigr) \key{weighted-mean-derivative}$$

# %% [markdown] id="by-hand"
# **By hand.** Of two tokens the second is right, and only its score rises, so the rates are $(0, 1)$. An undecided model has the weights
# $(0.5, 0.5)$, and the squared error the slopes $g = (0.5, -0.5)$. The average product is $0.5 \cdot (-0.5)$ and the average slope 0, so the
# covariance is $-0.25$: the loss falls.
#
# Now let the model be sure, and wrong: $s = (0.99, 0.01)$ and $g = (0.99, -0.99)$. The average product is $-0.0099$, the average slope
# $0.99^2 - 0.01 \cdot 0.99 = 0.9702$, the average rate $0.01$, and the covariance $-0.0099 - 0.9702 \cdot 0.01 = -0.0196$. The slopes have
# doubled, and yet the loss falls 13 times more slowly.
#
# **Predict** the covariance of the sure model for cross-entropy, with $g = (0, -1 / s_2) = (0, -100)$.

# %% id="covariance-code" tags=["predicted"]
right = rates = np.array([0.0, 1.0])  # the second is right, and its score rises
models = np.array([[0.5, 0.5], [0.99, 0.01]])
for s in models:
    for name, g in {"squared error": s - right, "cross-entropy": -right / s}.items():
        covariance = s @ (g * rates) - (s @ g) * (s @ rates)
        print(s, f"{name}: {covariance:.4f}")

# %% [markdown] id="covariance-answer" tags=["answer"]
# The average product is $0.01 \cdot (-100) = -1$, and so is the average slope. The covariance is $-1 + 1 \cdot 0.01 = -0.99$, as
# {eq}`cross-entropy-gradient` says. From $-0.5$ to $-0.99$: cross-entropy falls faster where the model is wrong.

# %% [markdown] id="covariance-drawn"
# A covariance is also an average of areas, $\mathrm{E}_s[(g - \mathrm{E}_s[g])\,(r - \mathrm{E}_s[r])]$ with rates $r$.
# Each dot is a token, as large as its weight, with its rate to the right and its slope upwards. The cross marks the averages, and each dot
# has a rectangle between itself and the cross, negative if it lies at the upper left or the lower right:

# %% id="covariance-figure"
figures.covariance(models, rates, models - right)

# %% [markdown] id="covariance-seen"
# In the sure model the cross lies almost on the large dot, whose rectangle is a speck, and the other one counts with the weight 0.01. With
# cross-entropy the small dot would lie at $-100$, which makes up for its weight. Slopes of at most 1 cannot.

# %% [markdown] id="vjp"
# ## The lemma at work
#
# Now the race. A step needs the slope of the loss along each score $z_j$, so let only $z_j$ rise, at the rate 1.
#
# **Your turn: code.** {turn}`pull-back-one-row`

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours" tags=["ours"]
# The average of the rates is $s_j$, and the average product is $s_j g_j$. So the slope is $s_j g_j - \mathrm{E}_s[g]\, s_j$, and the
# function returns `weights * (gradient - weights @ gradient)`.

# %% [markdown] id="own"
# So the slope along a score is $s_j\,(g_j - \mathrm{E}_s[g])$. At $(12, 1, 0)$ the squared error has about $g = (1, 0, -1)$, with the
# average 1, and a step raises the third score by about $2 s_3 = 0.000012$. For cross-entropy $g_3 = -1 / s_3$, and the average is $-1$, so
# the slope is $s_3\,(-1 / s_3 + 1) = s_3 - 1$: the weight cancels.
#
# Now a loss of your own may race. We begin with $-2 \sqrt{s_y}$, whose slope $-1 / \sqrt{s_y}$ has no bound either. **Predict**: is that as
# quick as cross-entropy, as slow as the squared error, or between?


# %% id="own-waits" tags=["predicted"]
def pull(weights, gradient):
    return weights * (gradient - weights @ gradient)


def mine(s):  # the slopes of a loss along the weights, yours to change
    return -truth / np.sqrt(s)


for first in (7.0, 12.0):
    scores, steps = np.array([first, 1.0, 0.0]), 0
    while (s := weights_of(scores))[2] < 0.5:
        scores -= pull(s, mine(s))
        steps += 1
    print(f"first score {first}: steps {steps:,}, third score {scores[2]:,.0f}")

# %% [markdown] id="own-seen" tags=["answer"]
# It lies between. In a loss of $s_y$ alone the slope has to grow like $1 / s_y$ to cancel the factor $s_y$. With `-truth / s` in `mine` you
# have cross-entropy again, and no slope along the scores passes 1. Yet `-truth / s**2` overshoots: its one step throws the third score to
# 1,099 or 162,758.

# %% id="verify-lesson"
verify_lesson("softmax")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | weights, {eq}`softmax` | {key}`softmax` |
# | slope of the loss, {eq}`cross-entropy-gradient` | {key}`cross-entropy-gradient` |
# | rate of an average of fixed $g_j$, {eq}`weighted-mean-derivative` | {key}`weighted-mean-derivative` |

# %% [markdown] id="summary"
# ## Summary
#
# Why $e^z$, and what does it buy us?
#
# - It turns leads into factors: for three tokens or more no other continuous way that lets higher scores win does, up to the temperature.
# - As only leads count, subtract the largest score first, and no exponential overflows.
# - A logarithm undoes it, so the slopes of cross-entropy along the scores are the weights minus the truth. A loss with bounded slopes along
#   the weights waits where the model is sure and wrong, because it moves by a covariance under the weights.
#
# Next: why did lesson {lesson}`start` halve its scores? Lesson {lesson}`scaling` answers; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="compromise"
# ## Deeper: the best compromise
#
# There is a second answer to why it is $e^z$. A chatbot wants good tokens, so a large average score $p \cdot z = \sum_i p_i z_i$, but also
# variety, which Claude Shannon measured in 1948 by
#
# $$H(p) = -\sum_i p_i \ln p_i$$
#
# It is 0 if one token has everything ($0 \ln 0 = 0$), and $\ln n$ if all $n$ have the same. John von Neumann is said to have told him to
# call it **entropy**: "no one knows what entropy really is, so in a debate you will always have the advantage." Let a unit of it be worth
# $T$ points of score. How large can $p \cdot z + T\, H(p)$ get? For two tokens with the scores 0 and 2 we try all weights:

# %% id="compromise-code"
from attn_course.reference import softmax

z, share = np.array([0.0, 2.0]), np.linspace(0, 1, 1001)[1:-1]  # of the second token
entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
totals = {T: 2 * share + T * entropy for T in (0.5, 1.0, 2.0)}
for T, total in totals.items():
    best_share, ours = share[total.argmax()], softmax(z / T)[1]
    print(f"T = {T}: best share {best_share:.3f}, softmax {ours:.3f}")
figures.compromise(share, totals)

# %% [markdown] id="jensen"
# Each hill has its top where the softmax says. To see why, let $T$ be 1, and let no $p_i$ be 0. An average of logarithms is at most the
# logarithm of the average (Jensen's inequality), so
#
# $$p \cdot z + H(p) = \sum_i p_i \ln \frac{e^{z_i}}{p_i} \le \ln \sum_i p_i\, \frac{e^{z_i}}{p_i} = \mathrm{lse}(z)$$
#
# They are equal only if all $e^{z_i} / p_i$ are one number, so for $p = \sigma(z)$. If some $p_i$ are 0, the sums run over the others only,
# and the bound is smaller. So **softmax is the one best compromise**:
#
# $$p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z + H(\sigma(z)) \label{lse-is-best-compromise}$$
#
# For another price divide by $T$: with $p \cdot (z / T) + H(p)$ it is $\sigma(z / T)$ that wins.

# %% [markdown] id="online"
# ## Deeper: a softmax in blocks
#
# FlashAttention-2 (lesson {lesson}`flash`) takes the keys block by block. For the backward pass it keeps of the softmax of a row
# only $\mathrm{lse}(z)$, which gives each weight back from its score:
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# For any $m$, $e^m$ comes out of the sum:
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

# %% [markdown] id="blocks"
# **Your turn.** {turn}`lse-over-blocks`

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep $m$ and $\ell$ as the loop above does, with a block's maximum and its sum $\sum_j e^{z_j - m'}$ in place of a single score.
# At the end return $m + \ln \ell$, by {eq}`shifted-lse`.

# %% [markdown] id="sure"
# ## Deeper: how near to 1 can a weight get?
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
# $\mathrm{lse}(z) \ge z_a + H(c)$. So together they have at least $e^{H(c)}$ times the amount of key $a$. Whatever the query,
#
# $$s_a \le \frac{1}{1 + e^{H(c)}} \label{weight-of-mixed-key}$$
#
# Halfway between two keys $H(c)$ is $\ln 2$, and the bound is a third.

# %% [markdown] id="card-question"
# How fast do weights near 1 still move? All slopes of {eq}`softmax-derivative` together are the matrix
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$
#
# With $\odot$ for products entry by entry `my_pull` returns, without building $J$,
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \label{softmax-vector-jacobian-product}$$
#
# If one weight is near 1, every entry of $J$ is near 0: the softmax is **saturated**. Yet in $\sigma(z / T)$ the slopes by $z$ are $J / T$.
# Which wins as $T$ falls, the small $J$ or the large $1 / T$?

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
# - C. E. Shannon (1948), *A mathematical theory of communication*, theorem 2. Von Neumann's advice is told by M. Tribus and E. C. McIrvine
#   (1971), *Energy and information*, Scientific American 225(3), page 180.
# - S. A. Solla, E. Levin and M. Fleisher (1988), *Accelerated learning in layered neural networks*, Complex Systems 2, pages 625 to 640:
#   the race with networks, when the squared error was the custom.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
