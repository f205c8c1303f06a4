# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention gives each key a score. To average the values it needs weights: none negative, together 1. Of countless ways to get them,
# standard attention, language models and the physics of heat all begin with an amount $e^z$ for each score $z$. **Why $e^z$?** A single
# wish leaves no other continuous amount that comes from each score alone, up to factor and base. But some
# weights become so tiny that training may stall. You will find a loss against this.
#
# **You need** exponentials, logarithms, partial derivatives, NumPy. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="hook"
# ## Where does "it" look?
#
# In `the cat sat because it was tired`, how much should "it" look at each token? Here are the halved scores of lesson {lesson}`start`. A
# score $z$ gives the amount $e^z$, and a token's weight is its share of all amounts:

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
it = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(it)
weights = amounts / amounts.sum()
for token, score, amount, weight in zip(tokens, it, amounts, weights, strict=True):
    print(f"{token:8} score {score:2.0f}   amount {amount:5.2f}   weight {weight:.2f}")

# %% [markdown] id="definition"
# The weight of "cat" is $54.6 / 57.6$, so 0.95. The *softmax* does the same with any finite scores $z = (z_1, \ldots, z_n)$:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$

# %% id="definition-alive"
from attn_course import alive, check, verify_lesson

alive("softmax")

# %% [markdown] id="where"
# In the machine of lesson {lesson}`start` the softmax turns each row of scores into weights:

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="leads"
# ## Only leads count
#
# What is special about $e^z$? Let us try it beside three other amounts. Suppose that one vector $u$ is added to every key. Then all
# scores of a query change by the same number, here by 5. No key has gained on another, so no weight should change.

# %% id="leads-code"
ways = {
    "e^z": np.exp,
    "2^z": lambda z: 2**z,
    "(z + 9)^2": lambda z: (z + 9) ** 2,
    "1 / (1 + e^-z)": lambda z: 1 / (1 + np.exp(-z)),
}
cat = tokens.index("cat")
for name, amount_of in ways.items():
    before, after = (amount_of(z)[cat] / amount_of(z).sum() for z in (it, it + 5))
    print(f"{name:14}  cat: {before:.2f}, with 5 more for all {after:.2f}")

# %% [markdown] id="cauchy"
# With $e^z$ and with $2^z$ "cat" keeps its weight, and with the other two it does not. Is there anything else that keeps it?
#
# Our wish is that **only leads count**: a number added to all scores must change no weight. Let each amount $g(z_i)$ come from its score
# alone, by one positive function $g$ for all tokens, as here. We subtract $z_j$ from all scores. No weight changes, so no ratio of weights
# does:
#
# $$\frac{w_i}{w_j} = \frac{g(z_i)}{g(z_j)} = \frac{g(z_i - z_j)}{g(0)}$$
#
# The right side depends only on the lead $x = z_i - z_j$, so we write $f(x)$ for it. A lead of $x$ multiplies the weight by $f(x)$:

# %% id="leads-figure"
figures.leads({"it": -2, "because": 0, "cat": 4})

# %% [markdown] id="rule"
# When we climb from one token to the next, leads add up while factors multiply:
#
# $$f(x + y) = f(x)\, f(y)$$

# %% [markdown] id="powers"
# Therefore $f(3) = f(1)^3$, $f(\frac12)$ is the square root of $f(1)$, and $f(-x) = 1 / f(x)$. In this way we get $f(x) = a^x$ with
# $a = f(1)$ for every fraction $x$, and if $f$ is continuous, for every number $x$ (Cauchy, 1821).
#
# The factors fix all ratios of weights, and the sum 1 fixes the weights. So **softmax is the only way to weigh by leads if one continuous
# function gives every score its amount**, up to the base $a$.

# %% [markdown] id="temperature"
# If higher scores are to win, $a$ is above 1, and we write it as $e^{1/T}$ with $T > 0$:
#
# $$p_i = \frac{e^{z_i / T}}{\sum_{j=1}^{n} e^{z_j / T}} = \sigma(z / T)_i \label{softmax-with-temperature}$$
#
# $T$ is called the **temperature**, because the states of a gas in a heat bath of this temperature have such chances, with minus the
# energy as the score (in units that make Boltzmann's constant 1). A
# higher $T$ brings different weights closer together. To halve the scores, as lesson {lesson}`start` did, means $T = 2$.

# %% [markdown] id="stable"
# ## Scores that are too large
#
# That only leads count also helps a computer. After *The capital of France is*, the model SmolLM2 of lesson {lesson}`start`
# gives "Paris" the score 17.37, and $e^{17.37}$ is 35 million. In float16 the largest number is 65,504. What would be
# rounded to more becomes `inf`, and `inf / inf` is `nan`. We weigh the three best tokens alone, with plain scores, and with scores less their maximum:

# %% id="overflow-code"
from attn_course.lessons.softmax.experiments_smollm2 import SMOLLM2

measured = SMOLLM2.load().results[0]["at the end of a start"]  # run once, and stored
best = np.array(measured["scores"], dtype=np.float16)  # of "Paris", "the" and "London"
for name, scores in (("plain", best), ("shifted", best - best.max())):
    with np.errstate(all="ignore"):  # keep NumPy quiet
        shares = np.exp(scores) / np.exp(scores).sum()
    print(f"{name:7}", shares.round(3))

# %% [markdown] id="shift"
# All plain exponentials overflow. After the subtraction the weights are right up to rounding, because all leads stayed. With
# $\mathbf{1} = (1, \ldots, 1)$ and any number $c$
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# With minus the maximum for $c$ no exponent is positive, and the sum lies between 1 and $n$:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# For each row of a matrix:


# %% id="own-code"
def weights_of(scores):
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return terms / terms.sum(axis=-1, keepdims=True)


# %% [markdown] id="race"
# ## A race, and a riddle
#
# Now for the price. If leads become factors, then a token that is behind by 12 has $e^{12} \approx 163{,}000$ times less weight than the
# one in front. Suppose that the token behind is the right one. Can training bring it back?

# %% [markdown] id="two-losses"
# A language model with the weights $s = \sigma(z)$ gives the chance $s_y$ to the token $y$ that really comes next. It is trained with a
# loss called **cross-entropy**, $-\ln s_y$, which is large if this token is a surprise. Why not with the squared error
# $\frac12 \sum_i (s_i - \delta_{iy})^2$, where $\delta_{iy}$ is 1 if $i = y$ and else 0? It, too, is smallest if the right token has all
# the weight.
#
# We let the two losses race. Of three tokens the third is right, but the first leads by 12. Each step moves the scores against the slopes
# of the loss, which we measure with a nudge. (A network moves its parameters instead.)

# %% id="slopes-code"
truth = np.array([0.0, 0.0, 1.0])
losses = {
    "cross-entropy": lambda s: -np.log(s[2]),
    "squared error": lambda s: ((s - truth) ** 2).sum() / 2,
}


def slope(loss, scores, j):
    nudge = 0.001 * np.eye(3)[j]  # moves score j and no other
    return (loss(weights_of(scores + nudge)) - loss(weights_of(scores - nudge))) / 0.002


# %% [markdown] id="own-predict"
# **Predict** how many steps each loss needs until the third weight is a half: a few, about a hundred, or more than ten thousand?


# %% id="own-race" tags=["predicted"]
def race(loss, first, size=1):
    scores, steps = np.array([first, 0.0, 0.0]), 0
    while weights_of(scores)[2] < 0.5:
        scores -= size * np.array([slope(loss, scores, j) for j in range(3)])
        steps += 1
    return steps, scores[2]  # and the last score


for name, loss in losses.items():
    steps, last = race(loss, 12.0)
    print(f"{name}: {steps:,} steps")

# %% [markdown] id="own-answer" tags=["answer"]
# Cross-entropy needs 7 steps, and the squared error 33,923.

# %% [markdown] id="size-bet"
# Unfair, you may say: the steps of the squared error are just too short. So let us multiply them by a *size*. We want one that is quick
# when the wrong token leads by 12, and that does not throw the right score far past the others when nothing leads. Each race becomes a dot: across we see how many steps it took, and
# upwards the *last score* of the right token. Here is the size 50 beside cross-entropy:


# %% id="size-box"
def from_both(loss, size=1):
    return [race(losses[loss], lead, size) for lead in (0.0, 12.0)]


runs = {"cross-entropy": from_both("cross-entropy")}
for size in [50]:  # yours to change
    runs[f"size {size:,}"] = from_both("squared error", size)
figures.bet(runs, [0, 12])

# %% [markdown] id="size-rules"
# From 12 cross-entropy takes 7 steps, and ends at the score 6.43. So the box in the picture allows 7 steps and a last score of 7. It has
# an upper edge because a score that is thrown too far is itself a lead, which must be undone when another token comes next. **The bet:**
# with some size, both dots of the squared error lie in the box.

# %% [markdown] id="size-predict"
# **Predict** whether there is such a size, and then try some.

# %% id="size-race" tags=["predicted"]
for size in (3, 30, 10_000):
    dots = from_both("squared error", size)
    said = (f"steps {steps:,}, last score {last:,.2f}" for steps, last in dots)
    print(f"size {size:,}:", *said, sep="   ")

# %% [markdown] id="size-answer" tags=["answer"]
# There is none. From 0 the size 3 takes one step, to 0.67, so a size above 31.5 throws the score past 7. But up to 31.5 it takes more than
# 1,000 steps from 12.

# %% [markdown] id="size-seen"
# Whatever the size, the first step from 0 moves the score of the right token 18,000 times as far as the first step from 12. Why?

# %% [markdown] id="loss"
# ## Why seven steps
#
# Before we accuse the squared error, let us see what cross-entropy does right. It is made of logarithms of weights, and these are
# simple: $\ln s_i = z_i - \ln \sum_j e^{z_j}$. The last term is called **log-sum-exp**, $\mathrm{lse}(z)$. By the chain rule its slope
# along $z_i$ is $e^{z_i}$ over the sum, which is a weight. So **softmax is the gradient of log-sum-exp**:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \label{lse-gradient}$$

# %% [markdown] id="loss-slopes"
# The cross-entropy is $\mathrm{lse}(z) - z_y$. Therefore each of its slopes is a weight minus the truth:
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \key{cross-entropy-gradient}$$
#
# This explains the seven steps. At $(12, 0, 0)$ the slopes are nearly $(1, 0, -1)$. A step moves the first score down by nearly 1, and the
# third up by nearly 1, so six steps undo nearly all of the lead, and one more wins.
#
# If the next token is $i$ with the chance $p_i$, the slopes are on average $s_i - p_i$. They are all 0 only if **the weights are the true
# chances**.

# %% [markdown] id="gradient"
# ## Who pays?
#
# And what starves the squared error? Its slopes are the same $s_i - \delta_{iy}$, but they are slopes along the *weights*, while a step
# moves scores. So we must ask how the weights follow the scores.
#
# Let us raise the score of "tired" a little in the row of "it". Its weight grows, and since all weights sum to 1, the other tokens pay.
# **Predict** who pays most: "because" with the same score as "tired", "cat" with the weight 0.95, or all the same?

# %% id="jacobian-code" tags=["predicted"]
s = weights_of(it)
raised = it.copy()
raised[tokens.index("tired")] += 0.001
rates = (weights_of(raised) - s) / 0.001
for token, weight, rate in zip(tokens, s, rates, strict=True):
    print(f"{token:8} weight {weight:.4f}, rate {rate:9.6f}")

# %% [markdown] id="jacobian-seen" tags=["answer"]
# "Cat" pays nearly all that "tired" gets.

# %% [markdown] id="jacobian"
# The other six pay in proportion to their weights. To see why, take the logarithm again, $\ln s_i = z_i - \mathrm{lse}(z)$, and raise
# $z_j$. The first term rises only if $i = j$, and the second has the slope $s_j$ by {eq}`lse-gradient`. So the slope of $\ln s_i$ is
# $\delta_{ij} - s_j$. By the chain rule it is also $(\partial s_i / \partial z_j) / s_i$, so
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \key{softmax-derivative}$$
#
# In words: a weight near 0 or near 1 hardly follows even its own score, because $s_j\,(1 - s_j)$ is tiny.

# %% [markdown] id="lemma"
# ## Why the squared error waits
#
# Now we can follow any loss $L$ back to the scores. Let its slopes along the weights be $g_i = \partial L / \partial s_i$. By the chain
# rule its slope along $z_j$ is $\sum_i g_i\, \partial s_i / \partial z_j$. With {eq}`softmax-derivative` the term with $\delta_{ij}$ leaves
# $s_j g_j$, and the other one is minus $s_j$ times the average slope $\bar g$:
#
# $$\frac{\partial L}{\partial z_j} = s_j\, (g_j - \bar g), \qquad \bar g = \sum_{i=1}^{n} s_i\, g_i$$
#
# So a score is moved by how far its $g_j$ is from the average, times its weight. Here are both factors for the squared error, from the
# lead 0 and from the lead 12:

# %% id="two-models-code"
for lead in (0.0, 12.0):
    s = weights_of(np.array([lead, 0.0, 0.0]))
    g = s - truth
    for name, row in {"weights": s, "g - average": g - s @ g}.items():
        print(f"from {lead:2.0f} {name:11}", *(f"{number:9.6f}" for number in row))

# %% [markdown] id="two-models"
# From 0 the third score has the slope $\frac13 \cdot (-\frac23) = -\frac29$. From 12 it has $0.000006 \cdot (-2)$, which is 18,000 times
# smaller, because of the tiny weight. The first score waits, too, and for the other reason: its weight is nearly 1, but its $g_1$ is
# nearly the average.
#
# This solves the riddle. The $g_i$ of the squared error stay between $-1$ and 1, so nothing makes up for the tiny weight in front.

# %% [markdown] id="derivative-turn"
# **Your turn: a formula.** {turn}`softmax-derivative`

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # such as r"\frac{1}{2} (s_i + \delta_{ij})", which is wrong
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours"
# You can test yours: with $\beta = 1$ it must be {eq}`softmax-derivative`, and with $\beta = 0$ it must be 0, because then all weights
# stay equal.
#
# <details><summary>Our answer</summary>
#
# It is `r"\beta s_i (\delta_{ij} - s_j)"`. When $z_j$ changes, the score $\beta z_j$ changes $\beta$ times as fast.
#
# </details>

# %% [markdown] id="own"
# ## A loss of your own
#
# Which loss of $s_y$ alone brings both dots into the box? Before we can try some, we need $s_j\,(g_j - \bar g)$ as code.
#
# **Your turn: code.** {turn}`pull-back-one-row`

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours"
# <details><summary>Our answer</summary>
#
# In `my_pull`, `return weights * (gradient - weights @ gradient)`.
#
# </details>
#
# A loss of $s_y$ alone has only one slope along the weights that may differ from 0, namely $g_y$, so $\bar g = s_y\, g_y$. It has to be
# large where the weight is tiny. So we try $g_y = -1 / s_y^p$ with a power $p$. Along the score of the right token the slope is then
#
# $$s_y\, (g_y - \bar g) = s_y\, g_y\, (1 - s_y) = -s_y^{1 - p}\, (1 - s_y)$$

# %% [markdown] id="own-predict-loss"
# From 0 we begin with $s_y = \frac13$, and from 12 with nearly $e^{-12}$. We also print the *factor* $s_y^{1 - p}$ at these beginnings.
#
# **Predict** which of the powers 1/2, 1, 1.1 and 1.3 bring both dots into the box, and add one of yours.

# %% id="own-waits" tags=["predicted"]
from attn_course.reference import softmax_vjp

pull = softmax_vjp if my_pull is ... else my_pull
runs = {}
for power in (1 / 2, 1, 1.1, 1.3):  # yours to change
    run = runs[f"power {power:g}"] = []
    for lead in (0.0, 12.0):
        scores, steps = np.array([lead, 0.0, 0.0]), 0
        factor = weights_of(scores)[2] ** (1 - power)
        while (s := weights_of(scores))[2] < 0.5 and steps < 10**5:
            scores -= pull(s, -truth / s**power)
            steps += 1
        run.append((steps, scores[2]))
        said = f"factor {factor:6.3f}, steps {steps:3}, last score {scores[2]:5.2f}"
        print(f"power {power:3g} from {lead:2.0f}:", said)
figures.bet(runs, [0, 12])

# %% [markdown] id="own-seen" tags=["answer"]
# The powers 1 and 1.1 do, and 1.1 is even quicker here: it takes 3 steps from 12, against 7. From 12 the power 1/2 has the factor $e^{-6}$,
# so it waits, and the power 1.3 has $e^{3.6}$, which throws the score to 36.6 in one step.

# %% [markdown] id="own-moral"
# The box alone does not choose between the two. Longer leads do: with a power below 1 they make the first step tiny, and with a power
# above 1 huge. With 1.1 a lead of 50 throws the score to 148. Of all powers only 1 has the factor 1 from every lead.
#
# At the power 1 the weight in front cancels, and the slope is $s_y - 1$. Up to a constant only $-\ln s_y$ has $g_y = -1 / s_y$. So you have
# found cross-entropy: **its logarithm undoes the $e^z$ that made the weight tiny**.

# %% [markdown] id="trap"
# One trap is left. What does a computer make of this logarithm at a lead of 800?

# %% id="trap-code"
far = np.array([800.0, 0.0, 0.0])
with np.errstate(all="ignore"):
    print("-ln of the weight:", -np.log(weights_of(far)[2]))
largest = far.max()
lse = largest + np.log(np.exp(far - largest).sum())
print("lse less the score:", lse - far[2])

# %% [markdown] id="trap-seen"
# The weight $e^{-800}$ is rounded to 0, so its logarithm is infinite. But $\mathrm{lse}(z) - z_y$ never makes the weight, and is right.
# PyTorch's `cross_entropy` asks for the scores and not for weights, so it can do the same.

# %% id="verify-lesson"
verify_lesson("softmax")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | weights, {eq}`softmax` | {key}`softmax` |
# | slope of the loss, {eq}`cross-entropy-gradient` | {key}`cross-entropy-gradient` |
# | how a weight follows a score, {eq}`softmax-derivative` | {key}`softmax-derivative` |

# %% [markdown] id="summary"
# ## Summary
#
# - $e^z$ turns leads into factors. If one continuous function gives every score its amount, softmax is the only way to weigh by leads in
#   which higher scores win, up to the base.
# - As only leads count, we subtract the largest score first, and no exponential overflows.
# - $e^z$ makes some weights tiny. Each stands in front of the slope along its score, so the squared error waits. With $-\ln s_y$ the weight
#   cancels along the right token's score, and each slope is a weight minus the truth.
#
# Inside attention the weights mix values, and no logarithm undoes $e^z$ there. So, from the start, its scores should not lie far apart. Is
# this why lesson {lesson}`start` halved them? Lesson {lesson}`scaling` asks; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="compromise"
# ## Deeper: the best compromise
#
# Why $e^z$? A second answer: a chatbot wants good tokens, so a large average score $p \cdot z = \sum_i p_i z_i$, but also variety, which
# Claude Shannon measured in 1948 by
#
# $$H(p) = -\sum_i p_i \ln p_i$$
#
# It is 0 if one token has everything ($0 \ln 0 = 0$), and $\ln n$ if all $n$ have the same. John von Neumann is said to have proposed the
# name **entropy**: "no one knows what entropy really is, so in a debate you will always have the advantage." Let a unit be worth $T$ points
# of score. How large can $p \cdot z + T\, H(p)$ get? For two tokens with the scores 0 and 2 we try all weights:

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
# To see why each hill has its top where the softmax says, let $T$ be 1, and let no $p_i$ be 0. An average of logarithms is at most the
# logarithm of the average (Jensen's inequality), so
#
# $$p \cdot z + H(p) = \sum_i p_i \ln \frac{e^{z_i}}{p_i} \le \ln \sum_i p_i\, \frac{e^{z_i}}{p_i} = \mathrm{lse}(z)$$
#
# They are equal only if all $e^{z_i} / p_i$ are one number, so for $p = \sigma(z)$. If some $p_i$ are 0, the sums run over the others only,
# and the bound is smaller. So **softmax is the one best compromise**:
#
# $$p \cdot z + H(p) \le \mathrm{lse}(z) = \sigma(z) \cdot z + H(\sigma(z)) \label{lse-is-best-compromise}$$
#
# For another price divide by $T$: with $p \cdot (z / T) + H(p)$ it is $\sigma(z / T)$ that wins. For SmolLM2 after
# *The capital of France is*:

# %% id="temperature-code"
for temperature in ("0.5", "1", "2"):
    found = measured[temperature]
    paris, count = found["weights"][0], found["words that hold 90 %"]
    print(f"T = {temperature:3}  Paris: {paris:.2f}, tokens that hold 90 %: {count:,}")

# %% [markdown] id="sure"
# **How near to 1 can a weight get?** For two or more finite scores, on paper every token gets something:
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
# It never gets more than a third. Each other key gets nearly all from some query.

# %% [markdown] id="mixed"
# Why a third? Let a key be a mixture of the others, $k_a = \sum_l c_l k_l$, where no $c_l$ is negative and their sum is 1. Its score is
# the same mixture of theirs, $z_a = c \cdot z$. For these others {eq}`lse-is-best-compromise`, with $c$ for $p$, says
# $\mathrm{lse}(z) \ge z_a + H(c)$. So together they have at least $e^{H(c)}$ times the amount of key $a$. Whatever the query,
#
# $$s_a \le \frac{1}{1 + e^{H(c)}} \label{weight-of-mixed-key}$$
#
# Halfway between two keys $H(c)$ is $\ln 2$, and the bound is a third.

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
# On paper $-\ln s_y$ and $\mathrm{lse}(z) - z_y$ both round to 800 at a lead of 800. With the maximum for $m$:


# %% id="underflow-code"
def lse(z):
    return z.max() + np.log(np.exp(z - z.max()).sum())


far = np.array([800.0, 0.0, 0.0])
with np.errstate(divide="ignore"):
    print(-np.log(weights_of(far)[2]), lse(far) - far[2])

# %% [markdown] id="underflow-seen"
# The weight $e^{-800}$ became 0, and $-\ln 0$ is infinite.
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

# %% [markdown] id="card-question"
# ## Deeper: all slopes at once
#
# How do all weights follow all scores? The slopes of {eq}`softmax-derivative` together are the matrix
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$
#
# With $\odot$ for products entry by entry `my_pull` returns, without building $J$,
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \label{softmax-vector-jacobian-product}$$
#
# Now let all scores move with the time $t$, at the rates $r = dz/dt$. The weights move at the rates $J r$, so the average of fixed numbers
# $g_j$ moves at the rate $g^\top J r = \sum_j s_j g_j r_j - (s \cdot g)(s \cdot r)$. This mean of products less the product of means is
# called the **covariance** of $g$ and $r$ under the weights:
#
# $$\frac{d}{dt} \sum_{j=1}^{n} s_j g_j = \mathrm{Cov}_s\Bigl(g, \frac{d z}{dt}\Bigr) \label{weighted-mean-derivative}$$

# %% [markdown] id="saturation-question"
# If one weight is near 1, every entry of $J$ is near 0: the softmax is **saturated**. Yet in $\sigma(z / T)$ the slopes along $z$ are
# $J / T$. Which wins as $T$ falls, the small $J$ or the large $1 / T$?

# %% id="saturation-code"
from attn_course.reference import softmax_jacobian

z = np.array([2.0, 1.0, 0.0, -1.0])
for temperature in (1.0, 0.6, 0.25):
    jacobian = softmax_jacobian(softmax(z / temperature)) / temperature
    norm = np.linalg.norm(jacobian, ord=2)  # spectral: the most it stretches a vector
    print(f"T = {temperature}: norm of J / T {norm:.2f}")

# %% [markdown] id="saturation"
# First $1 / T$, then $J$: if the best score leads by $d > 0$, each other weight is at most $e^{-d / T}$, which vanishes much faster than
# $T$. Below is a card. At which $T$ do the weights of this card move fastest?

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - S. Boyd and L. Vandenberghe (2004), *Convex optimization*, § 3.3: log-sum-exp and entropy as a pair.
# - A.-L. Cauchy (1821), *Cours d'analyse*, chapter 5.
# - C. E. Shannon (1948), *A mathematical theory of communication*, theorem 2. Von Neumann's advice is told by M. Tribus and E. C. McIrvine
#   (1971), *Energy and information*, Scientific American 225(3), page 180.
# - S. A. Solla, E. Levin and M. Fleisher (1988), *Accelerated learning in layered neural networks*, Complex Systems 2, pages 625 to 640:
#   the race with networks, when the squared error was the custom.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
