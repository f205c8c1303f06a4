# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one **score** for each. To average the values it needs **weights**, which are not
# negative and sum to 1. Softmax takes $e$ to the power of each score, and divides by the sum of these powers. That looks arbitrary. Yet
# three questions lead to it, one from psychology, one from physics and one from economics, none of them about attention.
#
# **Afterwards you can** derive softmax in three ways, compute it safely, differentiate it, and sum its denominator block by block.
#
# **You need** exponentials and logarithms, partial derivatives, expected value, independence, NumPy. **Time:** 55 minutes, ten more for two
# turns, without *Deeper* sections and the [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="hook"
# ## By hand: where does "it" look?
#
# When you read `the cat sat because it was tired`, you know that "it" is the cat. How much attention should "it" give to each token?
# The scores below are the dot products of its query with the seven keys, divided by 2 (lesson {lesson}`scaling` says why). NumPy
# turns them into weights:

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
scores = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(scores)
weights = amounts / amounts.sum()
for token, weight in zip(tokens, weights, strict=True):
    print(f"{token:8} {weight:.2f}")

# %% [markdown] id="where"
# Nearly all of the attention goes to "cat". In the machine below, this is the lit step: a row of scores goes in, and a row of weights
# comes out.

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="by-hand"
# By hand we need only $e \approx 2.7$ and $e^2 \approx 7.4$. Each token gets an **amount**, $e$ to the power of its score, and its
# weight is its part of the sum of all amounts, $55 + 2 \cdot 1 + 2 \cdot 0.4 + 2 \cdot 0.1 = 58$:
#
# | token | score | amount | weight |
# |---|---|---|---|
# | cat | 4 | $7.4 \cdot 7.4 \approx 55$ | $55 / 58 \approx 0.95$ |
# | because, tired | 0 | 1 | $1 / 58 \approx 0.02$ |
# | the, was | $-1$ | $1 / 2.7 \approx 0.4$ | $0.4 / 58 \approx 0.01$ |
# | sat, it | $-2$ | $1 / 7.4 \approx 0.1$ | $0.1 / 58 \approx 0.00$ |

# %% [markdown] id="factors"
# "Cat" is 4 points ahead of "tired" and gets 55 times the weight, because each point multiplies the amount by $e$. Softmax turns
# differences into factors. The course's own query and keys give the same scores:

# %% id="setup"
from attn_course.sentence import KEY, QUERY, TOKENS

z_it = QUERY[0, TOKENS.index("it")] @ KEY[0].T / 2
assert np.array_equal(z_it, scores)
figures.token_weights(TOKENS, z_it, weights)

# %% [markdown] id="definition"
# In the same way, any scores $z = (z_1, \ldots, z_n)$ become weights:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$
#
# Every weight depends on **all** scores, so we write $\sigma(z)_i$ and not $\sigma(z_i)$. For two or more finite scores, every
# weight is positive, and as they add up to 1, each is below 1:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$

# %% id="definition-show"
import math

from attn_course import check, verify_lesson
from attn_course.reference import logsumexp, softmax

np.set_printoptions(precision=4, suppress=True)
w = softmax(z_it)
print(f"smallest weight {w.min():.4f}, largest {w.max():.4f}, sum {w.sum():.1f}")

# %% [markdown] id="why-exp"
# ## First derivation: odds that ignore the other scores
#
# Why the exponential? The function $x^2 + 1$ is positive everywhere too, so its values, divided by their sum, would make perfectly
# good weights. What sets $e^x$ apart?
#
# Let some positive function $f$ turn each score into an amount, and divide by the sum, $w_i = f(z_i) / \sum_j f(z_j)$. We compare
# two tokens by their **odds** $w_i / w_j$, in which the sum cancels:
#
# $$\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)} \label{ratio-of-weights}$$

# %% [markdown] id="luce"
# So these odds do not care who else is there. In 1959 the psychologist Duncan Luce made this an axiom about people: how much more
# often you choose coffee than tea does not depend on whether there is lemonade. This is **Luce's condition**. It is bold (section
# {section}`odds-predict` shows a contest that breaks it), yet alone it still allows every positive $f$.
#
# So we need a second wish. Let us take scores to say only how much better one key fits than another, so that they have **no natural
# zero**. Then adding the same number $c$ to all of them must change no odds. This is the **shift condition**:
#
# $$\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)}$$

# %% [markdown] id="why-exp-solve"
# The exponential passes, because $e^c$ cancels. But $x^2 + 1$ fails, with the odds $2 : 1$ for the scores 1 and 0, and $5 : 2$ for 2
# and 1. Which functions pass? For the scores $x$ and 0 the condition says $f(x + c) / f(c) = f(x) / f(0)$, or
#
# $$f(x + c) = f(x)\, \frac{f(c)}{f(0)}$$
#
# This holds for every $c$. So if $f$ has a derivative, both sides change at the same rate when we nudge $c$:
#
# $$f'(x + c) = f(x)\, \frac{f'(c)}{f(0)}$$
#
# At $c = 0$ the fraction is just a number, $f'(0) / f(0)$. Let us call it $\beta$:
#
# $$f'(x) = \beta\, f(x)$$

# %% [markdown] id="why-exp-unique"
# Relative to its size, $f$ changes at the same rate everywhere, like money at a fixed rate of interest. Can anything but an
# exponential do that? The product $f(x)\, e^{-\beta x}$ has the derivative $(f'(x) - \beta f(x))\, e^{-\beta x} = 0$, so it is a
# constant, and at $x = 0$ it is $f(0)$. Hence $f(x) = f(0)\, e^{\beta x}$.
#
# In the weights even $f(0)$ cancels. For $\beta > 0$ a larger score gets a larger weight, and we write $\beta = 1 / T$, with the
# **temperature** $T$:
#
# $$w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}
# \label{softmax-with-temperature}$$

# %% id="why-exp-verify"
z = np.array([2.0, 1.0, 0.0])
for temperature in (0.5, 1.0, 2.0):
    w = softmax(z / temperature)
    print(f"T = {temperature}: weights {w}, odds of the first two {w[0] / w[1]:.1f}")

# %% [markdown] id="entropy"
# ## Second derivation: score and entropy in balance
#
# Let us forget these wishes and ask which weights are *best*. They should have a large average score, $p \cdot z = \sum_i p_i z_i$,
# but that is largest with everything on the best token, even if another is only a hair behind. So we choose to reward doubt too, and
# to measure it by the **entropy** $H(p) = -\sum_i p_i \ln p_i$. This is the strong assumption here.
#
# Entropy is 0 if one token has all the weight ($0 \ln 0$ counts as 0), and $\ln n$ if all have the same. Let $T > 0$ be the price that
# we put on one unit of entropy. Which weights have the largest
#
# $$p \cdot z + T\, H(p) \; ?$$

# %% [markdown] id="physics"
# A gas in a closed vessel at temperature $T$ strikes the same balance (in units where Boltzmann's constant is 1). If the score of a state
# is minus its energy, the probabilities of the states maximise this sum.
#
# For the scores $(0, 1, 2)$ and $T = 1$, let us try both extremes and a compromise:

# %% id="entropy-code"
z = np.array([0.0, 1.0, 2.0])
for p in ([0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.3, 0.6]):
    p = np.array(p)
    entropy = (p * np.log(1 / np.where(p > 0, p, 1))).sum()  # 0 ln 0 counts as 0
    print(p, f"score {p @ z:.2f} + entropy {entropy:.2f} = {p @ z + entropy:.3f}")

# %% [markdown] id="identity"
# The compromise wins, but is there a better one? Let $T = 1$, and let $s = \sigma(z)$. The logarithm of a softmax weight is the score
# minus the logarithm of the sum, which is called **log-sum-exp**, $\mathrm{lse}(z) = \ln \sum_j e^{z_j}$:
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# So we put $\mathrm{lse}(z) + \ln s_i$ in the place of $z_i$. As the $p_i$ sum to 1, $\mathrm{lse}(z)$ comes out whole, and the two
# logarithms join:
#
# $$p \cdot z + H(p) = \sum_i p_i\, \bigl(\mathrm{lse}(z) + \ln s_i - \ln p_i\bigr) = \mathrm{lse}(z) + \sum_i p_i \ln \frac{s_i}{p_i}$$
#
# Entries with $p_i = 0$ add nothing. So $p$ changes only the last sum, and for $p = s$ it is 0.

# %% [markdown] id="compromise"
# Can another $p$ make that sum positive? One inequality says no: $\ln x \le x - 1$, with equality only at $x = 1$. (The difference
# $x - 1 - \ln x$ is 0 there, and its slope $1 - 1/x$ is negative before and positive after.) Over the entries with $p_i > 0$,
#
# $$\sum_i p_i \ln \frac{s_i}{p_i} \le \sum_i p_i \Bigl(\frac{s_i}{p_i} - 1\Bigr) = \sum_i (s_i - p_i) \le 0$$
#
# The last step holds because the $p_i$ in it sum to 1, and the $s_i$ to at most 1. So nothing beats softmax. To draw level, $p$ needs
# $s_i = p_i$ in all of these entries, for the first step. Then these $s_i$ sum to 1, and as every $s_i$ is positive, there is no other
# entry, and $p = s$.

# %% [markdown] id="compromise-best"
# So **softmax is the one best compromise**, and its value is $\mathrm{lse}(z)$. (If all scores are 0, only the entropy is left, so no
# entropy exceeds $\mathrm{lse}(0) = \ln n$, that of equal weights.) For another $T$, divide what we maximise by $T$. The scores become
# $z / T$, so the best weights are $\sigma(z / T)$. At $T = 1$ softmax beats our three attempts:

# %% id="identity-verify"
best = softmax(z)
print("best weights", best, f"  score + entropy = lse = {logsumexp(z):.3f}")

# %% [markdown] id="contest"
# ## Third derivation: a contest with noise
#
# Who would take BART, the rail system that opened around San Francisco in the early 1970s? The economist Daniel McFadden and his team
# gave each way of travelling a score, added a random error, and assumed that people take the largest. Among commuters, their model gave
# BART, reached by bus or car, 6.3 percent. It got 6.2. (For those who walk to the train the model was far off.)

# %% [markdown] id="contest-errors"
# The weights in their model are those of softmax. To see why, let each score be read with an error $\xi_j$, and let the largest
# $z_j + \xi_j$ win. The errors are independent, with one continuous distribution of finite mean. In the figure they are normal, and the
# scores are $(x, 0)$. Each best reading stays flat while $x$ loses, and rises with $x$ once it wins.

# %% id="contest-figure"
errors = np.random.default_rng(0).normal(size=(2, 10_000, 2))  # twice 10,000 contests
x = np.linspace(-4.0, 4.0, 81)
readings = np.maximum(x + errors[0, :, :1], errors[0, :, 1:])
share = (x + errors[1, :, :1] > errors[1, :, 1:]).mean(axis=0)
figures.contest(x, readings[:6], readings.mean(axis=0), share)

# %% [markdown] id="contest-slope"
# On the right is a surprise: the slope of the average is close to the share that $x$ wins of 10,000 other contests. Is that an
# accident? The average best reading is
#
# $$M(z) = \mathbb{E}\bigl[\max_j\, (z_j + \xi_j)\bigr]$$
#
# Let us raise one score $z_i$ by a small $h > 0$. Where $i$ wins already, the best reading rises by $h$. Where $i$ loses even after the
# raise, nothing happens. Where $i$ wins only thanks to the raise, the best reading rises by something between 0 and $h$.

# %% [markdown] id="contest-limit"
# Take the mean over all contests, and divide it by $h$. With the vector $u_i$ that has a 1 at entry $i$ and zeros elsewhere,
#
# $$P(i \text{ wins at } z) \;\le\; \frac{M(z + h\, u_i) - M(z)}{h} \;\le\; P(i \text{ wins at } z + h\, u_i)$$
#
# The two chances differ by the contests in which $i$ trails its best rival by at most $h$. Ties have probability 0, because a continuous
# error never hits exactly what a rival's reading would ask for. So as $h$ shrinks, fewer and fewer such contests are left, and the two
# chances meet. A step down by $h$ is a raise that ends at $z$, where the contests between are those in which $i$ leads by at most $h$. It
# gives the same slope, and it was no accident:
#
# $$\frac{\partial M}{\partial z_i} = P(i \text{ wins})$$

# %% [markdown] id="gumbel"
# Which noise gives softmax? The best reading is at most $t$ if *every* reading is, and as the errors are independent, the chances of
# that multiply. With Gumbel's noise, $P(\xi \le t) = \exp(-e^{-t})$, the product is easy:
#
# $$P\bigl(\max_j\, (z_j + \xi_j) \le t\bigr) = \prod_{j=1}^{n} P(\xi_j \le t - z_j) = \prod_{j=1}^{n} \exp\bigl(-e^{z_j - t}\bigr)
# = \exp\Bigl(-e^{-t} \sum_{j=1}^{n} e^{z_j}\Bigr)$$
#
# The sum is $e^{\mathrm{lse}(z)}$, so this is $\exp(-e^{-(t - \mathrm{lse}(z))})$, the distribution of a single error, moved by
# $\mathrm{lse}(z)$. So the mean is moved by $\mathrm{lse}(z)$ too. The mean of a single error is Euler's constant
# $\gamma \approx 0.577$, but its value will not matter:
#
# $$M(z) = \mathrm{lse}(z) + \gamma \label{expected-maximum}$$

# %% [markdown] id="lse"
# The chance to win is the slope of $M$, and $\gamma$ adds nothing to it. By the chain rule the slope of log-sum-exp is one over the
# sum, times the derivative $e^{z_i}$ of the sum:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \key{lse-gradient}$$
#
# So we arrive at softmax a third time. **It is the gradient of log-sum-exp.** Does a contest agree?

# %% id="lse-verify"
z, rng = np.array([2.0, 1.0, 0.5]), np.random.default_rng(2)
noise = rng.gumbel(size=(1_000_000, 3))
wins = np.bincount((z + noise).argmax(axis=1)) / len(noise)
print("share of wins:", wins.round(2), "  softmax:", softmax(z).round(2))
best = (z + noise).max(axis=1).mean()
print(f"mean best:     {best:.2f}   lse + gamma: {logsumexp(z) + np.euler_gamma:.2f}")

# %% [markdown] id="three"
# ## Where the three roads meet
#
# Each road had an assumption: odds that ignore other scores and shifts, entropy as the reward, Gumbel noise. So the weight 0.95 of "cat"
# can be read in three ways. It is 55 times the weight of "tired", whoever else stands in the sentence, while these two keep their scores.
# It belongs to the best balance of score and entropy. And "cat" wins about 95 of 100 contests with Gumbel noise. The last two roads also
# meet in $\mathrm{lse}(z)$, the value of the best compromise at $T = 1$ and, up to $\gamma$, the mean best reading.

# %% [markdown] id="stable"
# ## What a computer makes of it
#
# Can we type in the formula as it stands? The scores below are $(0, 1, 2)$ with 1000 added to each, which on paper changes no weight.
# But the largest float64 is just below $e^{710}$. What is larger becomes `inf`, and inf / inf is NaN:

# %% id="overflow-code"
scores = np.array([1000.0, 1001.0, 1002.0])
with np.errstate(all="ignore"):  # keep NumPy quiet
    print("as in the first cell:   ", np.exp(scores) / np.exp(scores).sum())
shifted = np.exp(scores - scores.max())
print("the maximum subtracted: ", shifted / shifted.sum())

# %% [markdown] id="shift"
# A common shift leaves softmax as it is, so we may choose one that suits the computer. With $\mathbf{1} = (1, \ldots, 1)$,
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# Log-sum-exp moves by the same amount, because for any number $m$, $e^m$ comes out of each term of its sum:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$
#
# The maximum is a safe $m$. No term is then above 1, and the largest is 1, so the sum lies between 1 and $n$:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# In a matrix of scores each row has its own softmax, so maximum and sum run along the **last axis**.

# %% [markdown] id="smooth-maximum"
# The logarithm of that sum lies between 0 and $\ln n$, so $\mathrm{lse}(z)$ is the maximum and at most $\ln n$ more, a **smooth
# maximum**. For the scores $(x, 0)$ its slope is the weight of $x$:

# %% id="lse-figure"
x = np.linspace(-4.0, 4.0, 161)
lower = np.maximum(x, 0.0)
lse = logsumexp(np.stack([x, np.zeros_like(x)], axis=-1))
figures.lse_bounds(x, lse, lower, lower + math.log(2.0))

# %% [markdown] id="jacobian"
# ## The derivative
#
# If the score of "tired" rises a little, its weight grows, and the others have to pay for it. How much does each of them pay?
#
# Write $s = \sigma(z)$ and $s_i = e^{z_i} / Z$ with $Z = \sum_k e^{z_k}$. The score $z_j$ always appears in $Z$, with
# $\partial Z / \partial z_j = e^{z_j}$, but in the numerator only if $j = i$, so the quotient rule gives two cases:
#
# $$j \ne i: \qquad \frac{\partial s_i}{\partial z_j} = \frac{0 \cdot Z - e^{z_i}\, e^{z_j}}{Z^2} = -s_i s_j$$
#
# $$j = i: \qquad \frac{\partial s_i}{\partial z_i} = \frac{e^{z_i} Z - e^{z_i}\, e^{z_i}}{Z^2} = s_i - s_i^2$$
#
# So each of the others pays in proportion to what it has, and "cat" pays nearly all.

# %% [markdown] id="jacobian-matrix"
# The Kronecker delta $\delta_{ij}$, which is 1 if $i = j$ and otherwise 0, makes the two cases one formula. With the entries
# $J_{ij} = \partial s_i / \partial z_j$, the Jacobian matrix is a diagonal matrix minus a column times a row:
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$
#
# $$J = \mathrm{diag}(s) - s\,s^\top \key{softmax-jacobian}$$
#
# Row $i$ has the sum $\sum_j s_i (\delta_{ij} - s_j) = s_i (1 - 1) = 0$, so a common shift moves no weight:
#
# $$J\,\mathbf{1} = 0 \label{softmax-jacobian-annihilates-constants}$$

# %% id="jacobian-figure"
from attn_course.reference import softmax_jacobian

weights = softmax(np.array([1.5, 1.0, 0.0, -1.0]))
jacobian = softmax_jacobian(weights)
assert np.allclose(jacobian, np.diag(weights) - np.outer(weights, weights))
figures.jacobian_heatmap(weights, jacobian)

# %% [markdown] id="spot-elementwise"
# **Spot the mistake.** It is tempting to take $s(1 - s)$ for the derivative. Which experiment with two scores refutes it?
#
# <details><summary>What is wrong</summary>
#
# Take two equal scores, so that both weights are 0.5, and raise both by 0.1. By this formula both weights grow by about
# $0.5 \cdot 0.5 \cdot 0.1 = 0.025$, but two weights that sum to 1 cannot both grow. The formula is only the diagonal of $J$.
#
# </details>

# %% [markdown] id="vjp"
# Must a backward pass build this matrix? It is given the gradient of the loss, $g_i = \partial L / \partial s_i$, and the chain
# rule turns it into the gradient of the scores:
#
# $$\frac{\partial L}{\partial z_j} = \sum_i g_i\, \frac{\partial s_i}{\partial z_j} = \sum_i g_i\, s_i\, (\delta_{ij} - s_j)$$
#
# **Your turn.** {turn}`pull-back-one-row`

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours" tags=["ours"]
# In the sum with $\delta_{ij}$ only the term $i = j$ is left, $g_j s_j$. In the other sum, $s_j$ does not depend on $i$ and comes to
# the front, which gives $s_j \sum_i g_i s_i$. So `my_pull` returns `weights * (gradient - weights @ gradient)`. In vectors, with
# $\odot$ for multiplying entry by entry:
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \key{softmax-vector-jacobian-product}$$

# %% [markdown] id="vjp-result"
# So no matrix is needed, which for a row of 100,000 keys would have $10^{10}$ entries. Both ways agree:

# %% id="vjp-code"
from attn_course.reference import softmax_vjp

gradient = np.array([2.0, -1.0, 0.0, 3.0])
print("with J:   ", jacobian.T @ gradient)
print("without J:", softmax_vjp(weights, gradient))

# %% [markdown] id="cross-entropy"
# ## The loss of a model that is confident and wrong
#
# A language model ends in a softmax, which gives each token of its vocabulary ("word" for short) a chance to come next. In training we
# know the word $y$ that really came, and the model pays the **cross-entropy**, $-\ln s_y$: almost nothing if it was nearly sure of
# $y$, and a lot if it was sure of another word.
#
# By {eq}`log-softmax` this loss is $\mathrm{lse}(z) - z_y$, and on paper we may compute either. Here a model is sure of the second of
# two words, but the first is right:

# %% id="log-trap-code"
z = np.array([0.0, 800.0])
with np.errstate(divide="ignore"):  # keep NumPy quiet
    print("minus the logarithm of the weight:", -np.log(softmax(z))[0])
print("lse(z) - z_y:                     ", logsumexp(z) - z[0])

# %% [markdown] id="log-softmax-safe"
# The weight $e^{-800}$ is too small for a float64 and becomes 0, and one such word makes the loss of a whole text infinite. The
# second way never forms the weight, so PyTorch's `cross_entropy`, for example, takes the scores.
#
# What does the model learn from this loss? The derivative of $\mathrm{lse}(z)$ is {eq}`lse-gradient`, that of $-z_y$ is
# $-\delta_{iy}$:
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# This is the weight minus the truth. A step downhill in the scores lowers that of each wrong word in proportion to its weight, and raises
# that of the right word. Here the third of three words is right:

# %% id="cross-entropy-code"
truth = np.array([0.0, 0.0, 1.0])
weights = softmax(np.array([7.0, 1.0, 0.0]))
print("weights: ", weights)
print("gradient:", weights - truth)

# %% [markdown] id="temperature"
# ## Temperature, and what saturation is
#
# If you have ever set the temperature of a chatbot, you have divided scores by $T$. By {eq}`log-softmax` the log-odds of two tokens
# are the difference of their scores, and $T$ divides them. For "it", the plain dot products are 8 for "cat" and 0 for "tired", so the
# odds are $e^8 \approx 3000$ at $T = 1$ and $e^4 \approx 55$ at $T = 2$. Our division by 2 **was** a temperature.

# %% [markdown] id="card-question"
# When do small changes of the scores hardly reach the weights? In $\sigma(z / T)$, $J$ holds the derivatives with respect to $z / T$,
# so those with respect to $z$ are $J / T$. The card shows the *spectral norm* of $J / T$, the largest factor by which it stretches a
# change of the scores or, as $J$ is symmetric, a gradient on its way back. Find two very different temperatures at which this is below
# 0.02. Then press "+100 to all".

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="saturation"
# <details><summary>What you should see</summary>
#
# For the card's own scores, the norm is below 0.02 up to $T \approx 0.15$ and again from $T \approx 14$ on. At high temperatures $J / T$ is
# small because we divide by $T$. At low ones the largest score (there is no tie here) takes nearly all the weight. Then every entry of $J$,
# $s_i (1 - s_i)$ or $-s_i s_j$, has a factor near 0, and we call the softmax **saturated**. The norm is small too: for $x$ of length 1,
# each entry of $J x$ is a sum of $n$ such entries, each times at most 1. In the end, dividing by a small $T$ does not make up for this. If
# the largest score leads another by $d$, that one has $e^{-d / T}$ times its weight, which falls much faster than $T$ (section
# {section}`temperature-limits`).
#
# </details>

# %% [markdown] id="online"
# ## Log-sum-exp, block by block
#
# FlashAttention (lesson {lesson}`flash`) takes the keys block by block and never keeps a whole row of scores. Yet the sum in
# {eq}`stable-softmax` needs the maximum before its first term. The way out is to correct the sum when the maximum changes (Milakov and
# Gimelshein, 2018).
#
# For each block $A$ of scores, keep the maximum $m_A$ and the sum $\ell_A = \sum_{j \in A} e^{z_j - m_A}$. To join two blocks, bring
# both sums to the larger maximum $m$. Since $e^{z_j - m} = e^{z_j - m_A}\, e^{m_A - m}$, all terms of a block get the same factor:
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \key{merge-of-softmax-sums}$$

# %% [markdown] id="online-predict"
# A single score $x$ is a block with the maximum $x$ and the sum $e^0 = 1$, so score by score
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# Start with $m = -\infty$ and $\ell = 0$, so that the first score brings the factor $e^{-\infty} = 0$. **Predict** roughly the last
# sum for the scores of "it". (The table in section {section}`hook` helps.)

# %% id="online-code" tags=["predicted"]
row_max, row_sum = -math.inf, 0.0
for token, score in zip(TOKENS, z_it, strict=True):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"{token:8} score {score:2.0f}   max {row_max:2.0f}   sum {row_sum:.4f}")

# %% [markdown] id="online-answer" tags=["answer"]
# It is 1.0551, the sum of all amounts over the largest one, and in the table this is $58 / 55 \approx 1.05$. When "cat" arrives, the
# maximum jumps from $-1$ to 4, and the old sum of 1 shrinks to $e^{-5} \approx 0.0067$.

# %% [markdown] id="online-notice"
# On paper neither order nor cuts matter, because $\ell\, e^m$ is always the plain sum.

# %% [markdown] id="blocks"
# **Your turn.** {turn}`lse-over-blocks`

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep $m$ and $\ell$ as the loop above does, with a block's maximum and its sum $\sum_j e^{z_j - m'}$ in the place of a single score.
# At the end return $m + \ln \ell$, by {eq}`shifted-lse`.

# %% id="verify-lesson"
verify_lesson("softmax")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost for $n$ scores |
# |---|---|---|
# | weights, {eq}`softmax` | {key}`softmax` | $O(n)$ |
# | gradient of log-sum-exp, {eq}`lse-gradient` | {key}`lse-gradient` | $O(n)$ |
# | Jacobian, {eq}`softmax-jacobian` | {key}`softmax-jacobian` | $O(n^2)$ |
# | backward pass, {eq}`softmax-vector-jacobian-product` | {key}`softmax-vector-jacobian-product` | $O(n)$ |
# | merge of two blocks, {eq}`merge-of-softmax-sums` | {key}`merge-of-softmax-sums` | $O(1)$ |
#
# Shapes: scores, weights, gradients `(..., q_len, kv_len)`; maxima and sums `(..., q_len, 1)`; $J$ `(..., q_len, kv_len, kv_len)`.

# %% [markdown] id="summary"
# ## Summary
#
# - Three roads lead to softmax: odds that ignore other scores and shifts, the best balance of score and entropy, and the chances to win
#   under Gumbel noise. It is the gradient of log-sum-exp.
# - Subtract the maximum first. No weight changes, and no exponential overflows.
# - A backward pass never needs $J$, which is nearly 0 where one weight takes nearly all.
# - Compute cross-entropy from the scores. Its gradient is the weights minus the truth.
# - The denominator can be summed in blocks.
#
# Next: why did we divide by 2? Lesson {lesson}`scaling` answers; first the [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="shift-fails"
# ## Deeper: how little does the first derivation need?
#
# How badly do other functions fail the shift condition? We try $x^2 + 1$ and *softplus*, $\ln(1 + e^x)$, and shift the scores
# $(3, 0)$ to $(6, 3)$. **Predict** for $f(x) = x^2 + 1$ whether the share of the first entry moves towards one half or away from it.

# %% id="why-exp-figure" tags=["predicted"]
difference = np.linspace(-4.0, 4.0, 161)
maps = {
    "exp(x)": np.exp,
    "x² + 1": lambda x: x**2 + 1,
    "softplus(x)": lambda x: np.log1p(np.exp(x)),
}
shift, shares = 3.0, {}
for name, f in maps.items():
    pairs = [(f(difference + c), f(np.full_like(difference, c))) for c in (0.0, shift)]
    shares[name] = np.stack([first / (first + second) for first, second in pairs])
figures.softmax_maps(difference, shares, shift=shift, mark=3.0)

# %% [markdown] id="why-exp-answer" tags=["answer"]
# It moves towards one half: the share is $10 / 11 \approx 0.91$ before the shift and $37 / 47 \approx 0.79$ after it, the two dots of
# the middle panel. Of the three, only $e^x$ keeps its shares.

# %% [markdown] id="continuity"
# **Must $f$ have a derivative?** Continuity is enough. Let $g(x) = f(x) / f(0)$, so that $g(x + c) = g(x)\, g(c)$. Integrate over $c$
# from 0 to 1, and put $u = x + c$ on the left:
#
# $$\int_x^{x+1} g(u)\, du = g(x) \int_0^1 g(c)\, dc$$
#
# The integral on the right is a positive number, and the one on the left, of a continuous function between moving ends, has a
# derivative in $x$. So $g$ has one too. Task {task}`cauchy-to-exponential` goes another way, over the fractions.

# %% [markdown] id="why-exp-broken"
# **Must all entries share one function?** If entry $i$ has its own $f_i$, the shift condition says for the scores $x$ and $0$
#
# $$\frac{f_i(x + c)}{f_i(x)} = \frac{f_j(c)}{f_j(0)} \qquad (i \ne j)$$
#
# With $x = 0$ we see that all entries share the ratio $g(c) = f_j(c) / f_j(0)$, and then $f_i(x + c) = f_i(x)\, g(c)$, which we have
# solved: $f_i(x) = a_i\, e^{\beta x}$ with $a_i = f_i(0)$. The weights are proportional to $e^{\beta z_i + \ln a_i}$, so a number is
# added to each score, as in ALiBi, where it depends on the distance between query and key.

# %% id="own-functions-code"
z, a = np.array([2.0, 1.0, 0.0]), np.array([1.0, 2.0, 4.0])
for c in (0.0, 3.0):
    values = a * np.exp(z + c)
    print(f"a e^z shifted by {c:.0f}:", values / values.sum())
print("softmax(z + ln a):   ", softmax(z + np.log(a)))

# %% [markdown] id="derivative-turn"
# **Your turn.** {turn}`softmax-derivative`

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # r"..."
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours" tags=["ours"]
# $$\beta\, s_i\,(\delta_{ij} - s_j)$$
#
# Since $s = \sigma(u)$ with $u_i = \beta z_i + \ln a_i$, this is {eq}`softmax-derivative` times the derivative $\beta$ of $u_j$ with
# respect to $z_j$. The $a_i$ change the weights, but not the formula.

# %% [markdown] id="odds-predict"
# ## Deeper: does every contest obey Luce's condition?
#
# Let the scores 2 and 1 compete, first alone and then with a third score of 0. With Gumbel
# noise the weights are those of softmax, so the odds of the first two stay as they are. With normal noise of the same spread they
# change. **Predict** whether the weak third score raises or lowers the odds of the first over the second.


# %% id="contest-code" tags=["predicted"]
def winning_readings(scores, noise):  # of the first, and of the second
    readings = scores + noise[:, : len(scores)]
    best, winner = readings.max(axis=-1), readings.argmax(axis=-1)
    return best[winner == 0], best[winner == 1]


rng, size = np.random.default_rng(1), (1_000_000, 3)
spread = math.pi / math.sqrt(6)  # of Gumbel's noise, so that only the shapes differ
normal, gumbel = rng.normal(scale=spread, size=size), rng.gumbel(size=size)
for name, noise in {"normal": normal, "Gumbel": gumbel}.items():
    for z in ([2.0, 1.0], [2.0, 1.0, 0.0]):
        first, second = winning_readings(z, noise)
        odds, lead = len(first) / len(second), first.mean() - second.mean()
        print(f"{name} {z}: odds {odds:.2f}, winning readings {lead:z.2f} apart")

# %% [markdown] id="contest-answer" tags=["answer"]
# It raises them, from about 2.44 to about 2.51. With normal noise the second score wins with lower readings than the first, by 0.37 on
# average, and the third beats a low reading more easily. With Gumbel noise the two winning readings are equal on average, and the odds
# stay at $e \approx 2.72$.

# %% [markdown] id="noise"
# ## Deeper: where does Gumbel's noise come from?
#
# Take $N$ independent waiting times, exponential with mean 1. The longest of them, less $\ln N$, is at most $t$ with the chance
# $(1 - e^{-t} / N)^N$ for $t \ge -\ln N$. As $N$ grows, this tends to $\exp(-e^{-t})$. So the longest of many such waits has
# Gumbel's noise:

# %% id="noise-code"
rng = np.random.default_rng(0)
longest = rng.exponential(size=(20_000, 200)).max(axis=1) - math.log(200)
for t in (-0.5, 0.0, 2.0):
    share, chance = (longest <= t).mean(), math.exp(-math.exp(-t))
    print(f"at most {t:4.1f}: share {share:.2f}, Gumbel {chance:.2f}")

# %% [markdown] id="average"
# ## Deeper: the average as a condition
#
# Which weights are the most undecided, if all we know is the average score $\sum_i p_i z_i = \mu$ that they must have? For any real
# $\beta$, put $\beta z$ in the place of $z$ into what the second derivation found, and solve for the entropy. Minus the last sum there is
# called the *divergence*, $\mathrm{KL}(p \,\|\, s) = \sum_i p_i \ln (p_i / s_i)$. It is 0 for $p = s$ and positive for every other $p$:
#
# $$H(p) = \mathrm{lse}(\beta z) - \beta\, p \cdot z - \mathrm{KL}(p \,\|\, \sigma(\beta z)) \label{free-energy-identity}$$
#
# Among all $p$ with $p \cdot z = \mu$, the first two terms are the same number. **If** $\sigma(\beta z)$ has the average $\mu$, it is
# therefore the one and only maximum of the entropy.

# %% [markdown] id="multiplier"
# **Lagrange multipliers** find the same form without knowing it before. Suppose that the best $p$ has all $p_i > 0$. Start there, and go a
# tiny step along a direction $d$. It keeps both conditions if $\sum_i d_i = 0$ and $\sum_i z_i d_i = 0$, so if $d$ is perpendicular to
# $\mathbf{1}$ and to $z$. The entropy has no slope along such a $d$, or a step forwards or backwards would raise it. So its gradient is
# perpendicular to every such $d$, and only the combinations of $\mathbf{1}$ and $z$ are. The unknown coefficients are the *multipliers*.

# %% [markdown] id="lagrangian"
# Take $\beta$ for the average and $\lambda$ for the sum, add each condition times its multiplier, and set all derivatives to zero,
# the first term by the product rule:
#
# $$\mathcal{L} = -\sum_i p_i \ln p_i + \beta \Bigl(\sum_i p_i z_i - \mu\Bigr) + \lambda \Bigl(\sum_i p_i - 1\Bigr)$$
#
# $$\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda = 0, \qquad p_i = e^{\lambda - 1}\, e^{\beta z_i}$$
#
# The first factor is the same for every $i$, and the $p_i$ sum to 1, so $p$ is $\sigma(\beta z)$ again. With minus the energy for the
# score this is the Gibbs distribution of physics. Task {task}`multiplier-to-softmax` asks for $\lambda$ itself.

# %% [markdown] id="which-beta"
# **Does some $\beta$ fit?** The average is a quotient, $\mu(\beta) = N / D$ with $N = \sum_i z_i e^{\beta z_i}$ and
# $D = \sum_i e^{\beta z_i}$. Here $D' = N$. With $s = \sigma(\beta z)$, the quotient rule says
#
# $$\mu'(\beta) = \frac{N'}{D} - \frac{N\, D'}{D^2} = \frac{\sum_i z_i^2\, e^{\beta z_i}}{D} - \Bigl(\frac{N}{D}\Bigr)^2
# = \sum_i s_i z_i^2 - \Bigl(\sum_i s_i z_i\Bigr)^2$$
#
# This is the variance of the scores under the weights $s$, which is positive, unless all scores are equal. For $\beta \to \infty$ the
# *terms* of the largest score outgrow all others, for $\beta \to -\infty$ those of the smallest. So $\mu(\beta)$ rises continuously
# and takes each value strictly between the smallest score and the largest **exactly once**.

# %% id="bisection-code"
z, wanted = np.array([1.0, 0.4, 0.0]), 0.8
low, high = -50.0, 50.0
while high - low > 1e-9:  # the average rises with beta, so halve the interval
    middle = (low + high) / 2
    if softmax(middle * z) @ z < wanted:
        low = middle
    else:
        high = middle
print(f"average {wanted} at beta {low:.3f}, weights", softmax(low * z))

# %% [markdown] id="simplex-predict"
# All weights of three entries form a triangle. Take the same $z$ and ask for the average 0.2. At $\beta = 0$ it is 0.47, so here
# $\beta$ is negative. On the dashed line the average is 0.2, and the entropy is largest where the line meets the path of
# $\sigma(\beta z)$:

# %% id="simplex-figure"
scores, wanted = np.array([1.0, 0.4, 0.0]), 0.2
betas = np.linspace(-12.0, 12.0, 2401)
path = softmax(betas[:, None] * scores)
beta = np.interp(wanted, path @ scores, betas)
points = figures.simplex_grid(60)
safe = np.where(points > 0.0, points, 1.0)  # 0 ln 0 counts as 0
entropy = -(points * np.log(safe)).sum(axis=-1)
best = softmax(beta * scores)
print("beta", beta.round(2), "  weights", best)
figures.simplex_entropy(points, entropy, path, best, scores=scores, wanted=wanted)

# %% [markdown] id="multiplier-meaning"
# **What does the multiplier mean?** The largest entropy at the average $\mu$ is $\mathrm{lse}(\beta z) - \beta \mu$, where $\beta$ follows
# $\mu$. The slope of $\mathrm{lse}(\beta z) = \ln D$ in $\beta$ is $D' / D = \mu$, so with $\beta' = d\beta / d\mu$, which exists as the
# slope of $\mu$ in $\beta$ is positive,
#
# $$\frac{dH}{d\mu} = \mu\, \beta' - \beta' \mu - \beta = -\beta$$
#
# So $\beta$ is a **price**, the entropy paid per unit of average score:

# %% id="multiplier-meaning-code"
z, betas = np.array([1.0, 0.4, 0.0]), np.array([-2.001, -1.999])
weights = softmax(betas[:, None] * z)
averages = weights @ z
entropies = -(weights * np.log(weights)).sum(axis=-1)
slope = (entropies[1] - entropies[0]) / (averages[1] - averages[0])
print(f"slope of the entropy at beta = -2: {slope:.3f}")

# %% [markdown] id="limits"
# ## Deeper: what can softmax not do?
#
# - **Give exactly zero**, on paper, to a finite score; only a mask's $-\infty$ gets 0 (lesson {lesson}`masking`). *Sparsemax*
#   (Martins and Astudillo, 2016) can: it rewards undecided weights by $-\frac12 \sum_i p_i^2$ in the place of $H(p)$.
# - **Say "nothing fits".** If all keys fit badly, the least bad one still gets the largest weight.
# - **Notice a duplicate.** If the same key appears twice, beside at least one other, its two copies together get more than it had:

# %% id="duplicate-code"
z = np.array([2.0, 1.0, 0.0])
print("three keys:         ", softmax(z))
print("the first key twice:", softmax(np.array([z[0], *z])))

# %% [markdown] id="temperature-limits"
# ## Deeper: how cold is cold?
#
# Divide numerator and denominator of $\sigma(z / T)_i$ by $e^{\max_j z_j / T}$. As $T \to 0$ from above, every term below the maximum
# vanishes, and the winners, whose terms are 1, share equally. As $T \to \infty$, every term becomes 1, and every weight $1/n$. Here
# two scores tie:

# %% id="temperature-figure"
scores, temperatures = np.array([2.0, 2.0, 1.0, 0.0]), (0.1, 1.0, 10.0)
weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
figures.temperature_bars(scores, weights, temperatures)

# %% [markdown] id="cold-jacobian"
# And $J / T$? Let the largest score be ahead of the second by $g > 0$. Every other weight is at most $e^{-g / T}$ times the largest,
# so together they have at most $(n - 1)\, e^{-g / T}$. Every entry of $J$ has a factor no larger than this, the weight of a smaller
# score or $1 - s_i$ of the largest, and its other factor is at most 1. As $T \to 0$, also $e^{-g / T} / T \to 0$, since
# $u\, e^{-g u} \to 0$ for $u = 1 / T \to \infty$. So $J / T \to 0$. But if $m \ge 2$ scores tie for the largest, their weights tend
# to $1 / m$, the entries $s_i (1 - s_i)$ do not vanish, and $J / T$ grows without bound:

# %% id="cold-jacobian-code"
temperatures = np.array([1.0, 0.3, 0.1, 0.03])
for name, second in {"a lead of 1": 1.0, "a tie": 2.0}.items():
    scores = np.array([2.0, second, 0.0])
    weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
    by_score = softmax_jacobian(weights) / temperatures[:, None, None]
    print(f"{name:12}", np.abs(by_score).max(axis=(-2, -1)))

# %% [markdown] id="formats"
# ## Deeper: what can a number format hold?
#
# Between which scores is the plain $e^x$ neither 0 nor infinite?

# %% id="overflow-figure"
formats = (np.float16, np.float32, np.float64)
highest = [math.log(np.finfo(dtype).max) for dtype in formats]
tiniest = [np.finfo(dtype).smallest_subnormal for dtype in formats]
lowest = [math.log(tiny) - math.log(2) for tiny in tiniest]  # below, exp rounds to 0
figures.overflow_ranges([dtype.__name__ for dtype in formats], lowest, highest)

# %% id="formats-code"
for dtype in formats:
    scores = np.array([1000.0, 1001.0, 1002.0], dtype=dtype)
    shifted = np.exp(scores - scores.max())
    print(f"{dtype.__name__}:", shifted / shifted.sum())
ones = np.ones(4096, dtype=np.float16)
print("4096 float16 ones, added in order:", int(np.add.accumulate(ones)[-1]))

# %% [markdown] id="formats-notice"
# The shift rescues all three formats. But 4096 ones, added in order, make only 2048, because the next float16 after 2048 is 2050, and
# $2048 + 1$ is rounded back. So the sum is best kept in float32.

# %% [markdown] id="axes"
# ## Deeper: is this softmax along the right axis?
#
# A softmax along the wrong axis is easy to miss. Do the row sums give it away, for scores with queries in rows?

# %% id="axes-code"
scores = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]])  # queries by keys
print("row sums along the last axis ", softmax(scores, axis=-1).sum(axis=-1))
print("row sums after the wrong axis", softmax(scores, axis=0).sum(axis=-1))

# %% [markdown] id="axes-notice"
# Here they do, because each *key* handed out a weight of 1, three in all, for two queries. But for `[[0, 1], [1, 0]]` the wrong axis
# even gives the right weights. With more keys than queries the wrong axis cannot make all row sums 1, so test there.

# %% [markdown] id="step"
# ## Deeper: what does one step downhill change?
#
# By {eq}`softmax-vector-jacobian-product`, a step downhill lowers each score whose $g_i$ lies above the average $s \cdot g$. Do the
# weights follow? Take $s = (0.8, 0.1, 0.1)$ and $g = (1, 1, 0)$, with the average 0.9, so that the first two scores fall. **Predict**
# which of the three *weights* grow, if the gradient is subtracted once.

# %% id="step-code" tags=["predicted"]
s, g = np.array([0.8, 0.1, 0.1]), np.array([1.0, 1.0, 0.0])
print("gradient of the scores:", softmax_vjp(s, g))
print("weights after the step:", softmax(np.log(s) - softmax_vjp(s, g)))

# %% [markdown] id="step-answer" tags=["answer"]
# The second and the third grow. The third score rises, so this is no surprise. But the second score falls by 0.01. Yet the first falls
# by 0.08, and as its amount is by far the largest, the sum of all amounts falls by about 5 percent. The second amount falls by only 1
# percent, so its part of the sum grows, from 0.1 to 0.1046.

# %% [markdown] id="norm"
# ## Deeper: how large can the Jacobian be?
#
# Multiply {eq}`softmax-jacobian` by a vector $x$ from both sides. With the average $a = s \cdot x$,
#
# $$x^\top J x = \sum_i s_i x_i^2 - a^2 = \sum_i s_i (x_i - a)^2$$
#
# (Multiply the square out to see the last step.) This is the **variance** of the $x_i$ under the weights $s$. It is never negative,
# and as no $s_i$ is 0, it is 0 only if all $x_i$ are equal.

# %% [markdown] id="rank"
# - **Rank.** If $J x = 0$, then $x^\top J x = 0$, so all $x_i$ are equal, and by {eq}`softmax-jacobian-annihilates-constants` such
#   $x$ do give $J x = 0$. The vectors that $J$ sends to 0 form one line, and its rank is $n - 1$.
# - **Convexity.** By {eq}`lse-gradient`, $J$ holds the second derivatives of log-sum-exp. Along a line $z + t x$ the second
#   derivative in $t$ is $x^\top J x$, never negative, so log-sum-exp is convex.

# %% id="rank-code"
s, x = softmax(np.array([1.5, 1.0, 0.0, -1.0])), np.array([3.0, -1.0, 0.0, 2.0])
jacobian, average = softmax_jacobian(s), s @ x
print(f"x J x = {x @ jacobian @ x:.4f}, variance {s @ (x - average) ** 2:.4f}")
print("rank", np.linalg.matrix_rank(jacobian), "for", len(s), "scores")

# %% [markdown] id="saturation-bound"
# **Recall:** the eigenvalues of a symmetric matrix sum to its trace, the sum of the diagonal, and if none is negative, the largest is
# the spectral norm. For an eigenvector $x$ of length 1 the eigenvalue of $J$ is $x^\top J x$, a variance, so none is negative. Hence
# the norm is at most the trace, $\sum_i s_i (1 - s_i) = 1 - \sum_i s_i^2$. And $\sum_i s_i^2 \ge s_{\max}^2$, where
# $1 - s_{\max}^2 = (1 + s_{\max})(1 - s_{\max}) \le 2\,(1 - s_{\max})$:
#
# $$\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max}) \label{saturated-softmax-jacobian-vanishes}$$
#
# A variance is also at most a quarter of the squared range: the mean squared distance is smallest from the average, so from the
# midpoint it is no smaller, and no distance from there exceeds half the range. No two entries of a vector of length 1 are more than
# $\sqrt{2}$ apart, so always $\|J\|_2 \le (\sqrt{2})^2 / 4 = \frac12$.

# %% [markdown] id="softmax-entropy"
# And how undecided are the weights? Put $p = \sigma(z)$ and $\beta = 1$ into {eq}`free-energy-identity`, where the divergence is then
# 0:
#
# $$H(s) = \mathrm{lse}(z) - \sum_i s_i z_i \label{softmax-entropy}$$
#
# The figure sharpens the scores $(1.5, 1, 0, -1)$, from nearly equal weights at $\beta = 0.1$ to one that has everything.
# **Predict** its course, and sketch the norm of $J$ against $\beta$.

# %% id="saturation-figure" tags=["predicted"]
scores, sharpness = np.array([1.5, 1.0, 0.0, -1.0]), np.geomspace(0.1, 50.0, 600)
sharpened = sharpness[:, None] * scores
rows = softmax(sharpened)
norm = np.linalg.norm(softmax_jacobian(rows), ord=2, axis=(-2, -1))
bound = 1.0 - (rows**2).sum(axis=-1)
entropy = logsumexp(sharpened) - (rows * sharpened).sum(axis=-1)
figures.saturation(sharpness, norm, bound, entropy, max_entropy=math.log(4.0))

# %% [markdown] id="saturation-answer" tags=["answer"]
# It rises first and falls later. Nearly equal weights give a norm of about $1/n$, here one quarter. Where the two largest scores share most
# of the weight, the norm comes closer to one half, which none exceeds. It falls as the largest weight takes more and more. The dotted
# levels are one half above and $\ln 4$, the entropy of equal weights, below.

# %% [markdown] id="squared-error"
# Take the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$ for the loss. Then the weight minus the truth is only $g_i$, and still has
# to pass through $J$. If a model is confident and wrong, almost nothing gets through:

# %% id="squared-error-code"
weights = softmax(np.array([7.0, 1.0, 0.0]))
print("cross-entropy:", weights - truth)
print(f"norm of J: {np.linalg.norm(softmax_jacobian(weights), ord=2):.4f}")
print("squared error:", softmax_vjp(weights, weights - truth))

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - R. D. Luce (2008), [Luce's choice axiom](http://scholarpedia.org/article/Luce%27s_choice_axiom), Scholarpedia.
# - K. Train, *Discrete choice methods with simulation*, chapter 3: softmax in economics, from Luce and Marley to McFadden, who showed
#   in 1974 that under his conditions only Gumbel's noise leads to it; the forecast for BART is in section 3.8.
# - E. T. Jaynes (1957), *Information theory and statistical mechanics*: maximum entropy as a principle.
# - A. F. T. Martins and R. F. Astudillo (2016), [arXiv:1602.02068](https://arxiv.org/abs/1602.02068): sparsemax.
# - O. Press, N. A. Smith and M. Lewis (2021), [arXiv:2108.12409](https://arxiv.org/abs/2108.12409): ALiBi.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
