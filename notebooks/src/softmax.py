# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one **score** for each. To average the values it needs **weights**: numbers
# that are not negative and sum to 1. Softmax takes $e$ to the power of each score and divides by the sum. Why that? We give three
# answers, each from a different start.
#
# **Afterwards you can** derive softmax in three ways, compute it safely, differentiate it, and sum its denominator block by
# block.
#
# **You need** exponentials, partial derivatives, expected value, independence, and some NumPy. **Time:** 60 minutes,
# without the [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb) and what is called *Deeper*.

# %% [markdown] id="hook"
# ## By hand: where does "it" look?
#
# In `the cat sat because it was tired`, the token "it" has a query, and every token has a key. The dot products of this one query
# with the seven keys, divided by 2 (chapter {lesson}`scaling` says why by 2), are the scores below. How much attention should each
# token get from "it"? This cell needs NumPy alone:

# %% id="first"
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
scores = np.array([-1.0, 4.0, -2.0, 0.0, -2.0, -1.0, 0.0])
amounts = np.exp(scores)
weights = amounts / amounts.sum()
for token, weight in zip(tokens, weights, strict=True):
    print(f"{token:8} {weight:.2f}")

# %% [markdown] id="where"
# In the whole machine, this step turns each row of scores into a row of weights:

# %% id="machine"
from attn_course.lessons.softmax import figures

figures.machine()

# %% [markdown] id="by-hand"
# Now without a computer, with $e \approx 2.7$ and $e^2 \approx 7.4$. Each token gets an **amount**, $e$ to the power of its score. Its
# weight is its amount over the sum of all amounts, $55 + 2 \cdot 1 + 2 \cdot 0.4 + 2 \cdot 0.1 = 58$:
#
# | token | score | amount | weight |
# |---|---|---|---|
# | cat | 4 | $7.4 \cdot 7.4 \approx 55$ | $55 / 58 \approx 0.95$ |
# | because, tired | 0 | 1 | $1 / 58 \approx 0.02$ |
# | the, was | $-1$ | $1 / 2.7 \approx 0.4$ | $0.4 / 58 \approx 0.01$ |
# | sat, it | $-2$ | $1 / 7.4 \approx 0.1$ | $0.1 / 58 \approx 0.00$ |
#
# The course's own query and keys give the same scores:

# %% id="setup"
from attn_course.sentence import KEY, QUERY, TOKENS, labelled

z_it = QUERY[0, TOKENS.index("it")] @ KEY[0].T / 2
assert np.array_equal(z_it, scores)
figures.token_weights(TOKENS, z_it, weights)

# %% [markdown] id="definition"
# A token whose score is one higher gets 2.7 times the weight. In symbols, for scores $z = (z_1, \ldots, z_n)$:
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \key{softmax}$$
#
# We write $\sigma(z)_i$ and not $\sigma(z_i)$, because every weight depends on **all** scores, through the sum. In this course `show`
# puts small numbers into a numbered equation, and `verify` tries it on random ones.

# %% id="definition-show"
from attn_course import check, show, verify

show("softmax", z=[1, 2, 0], i=2)

# %% [markdown] id="range"
# With two or more finite scores, each weight is one of several positive parts of a whole:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$
#
# A score of $-\infty$ beside a finite one gets no weight, which is how masks work (chapter {lesson}`masking`). And in float32 a score
# 200 below the best gets 0, because $e^{-200}$ is smaller than any positive float32.

# %% id="range-code"
from attn_course.reference import logsumexp, softmax

np.set_printoptions(precision=4, suppress=True)
print("one score:         ", softmax(np.array([3.0])))
print("a score of -inf:   ", softmax(np.array([1.0, 2.0, -np.inf])))
print("float32, far apart:", softmax(np.array([0.0, 200.0], dtype=np.float32)))
verify("softmax", "softmax-inside-the-simplex")

# %% [markdown] id="why-exp"
# ## First derivation: only differences count
#
# Why $e^x$, and not another positive function, such as $x^2 + 1$ or $\ln(1 + e^x)$? Let there be two or more scores. Let one
# continuous positive function $f$ serve every entry, and divide by the sum: $w_i = f(z_i) / \sum_j f(z_j)$. In the ratio of two weights,
# their **odds**, the sum cancels:
#
# $$\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)} \label{ratio-of-weights}$$
#
# Let us agree that a score only says how much better one key fits than another. Then scores have **no natural zero**: adding the same
# number $c$ to all of them must change no weight, and hence no odds. Call this the **shift condition**:
#
# $$\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)}$$

# %% [markdown] id="why-exp-predict"
# The exponential meets the condition: the shift multiplies both of its values by $e^c$, which cancels. Now shift the scores $(3, 0)$
# to $(6, 3)$. **Predict** for $x^2 + 1$ whether the share of the first entry moves towards one half or away from it.

# %% id="why-exp-figure" tags=["predicted"]
difference = np.linspace(-3.0, 3.0, 121)
maps = {
    "exp(x)": np.exp,
    "x² + 1": lambda x: x**2 + 1,
    "softplus(x)": lambda x: np.log1p(np.exp(x)),
}
shift, shares = 3.0, {}
for name, f in maps.items():
    pairs = [(f(difference + c), f(np.full_like(difference, c))) for c in (0.0, shift)]
    shares[name] = np.stack([first / (first + second) for first, second in pairs])
figures.softmax_maps(difference, shares, shift=shift)

# %% [markdown] id="why-exp-answer" tags=["answer"]
# It moves towards one half: the share is $10 / 11 \approx 0.91$ before the shift and $37 / 47 \approx 0.79$ after it. With
# $\ln(1 + e^x)$ it falls from 0.81 to 0.66. Only the two curves of $e^x$ coincide.

# %% [markdown] id="why-exp-solve"
# Which functions meet the shift condition for *every* $c$? Compare each value with the value at zero: let $g(x) = f(x) / f(0)$, so that
# $g(0) = 1$. Then
#
# $$g(x + c) = \frac{f(x + c)}{f(c)} \cdot \frac{f(c)}{f(0)} = \frac{f(x)}{f(0)} \cdot \frac{f(c)}{f(0)} = g(x)\, g(c)$$
#
# The first step multiplies and divides by $f(c)$. The second is the shift condition for the scores $x$ and $0$. So $g$ turns sums into
# products. Suppose that $g$ has a derivative (the Deeper section
# {section}`continuity` shows that continuity is enough), and call its slope at zero $\beta$. Differentiate both sides with respect to
# $c$ and put $c = 0$:
#
# $$g'(x) = \beta\, g(x)$$

# %% [markdown] id="why-exp-unique"
# The function $e^{\beta x}$ solves this equation. To see that nothing else with $g(0) = 1$ does, look at
# $h(x) = g(x)\, e^{-\beta x}$. Its derivative is $(g'(x) - \beta g(x))\, e^{-\beta x} = 0$, so $h$ is a constant, and
# $h(0) = g(0) = 1$. Hence $g(x) = e^{\beta x}$ and $f(x) = f(0)\, e^{\beta x}$. The factor $f(0)$ cancels in the weights, and one
# number is left to choose:
#
# $$w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}
# \label{softmax-with-temperature}$$
#
# For $\beta > 0$ a larger score gets a larger weight, and $T$ is called the **temperature**. Other $\beta$ have none: at $\beta = 0$ all
# weights are equal; a negative $\beta$ prefers small scores.

# %% id="why-exp-verify"
verify("ratio-of-weights", "softmax-with-temperature")

# %% [markdown] id="entropy"
# ## Second derivation: score and entropy in balance
#
# Good weights $p$ have a large average score, $p \cdot z = \sum_i p_i z_i$. But the average is largest with everything on the best token,
# even if the second best is only a little worse. So let us also reward weights that stay undecided. Their **entropy**
# $H(p) = -\sum_i p_i \ln p_i$, with $0 \ln 0 = 0$, is 0 if one has everything, and $\ln n$ if all are equal. Let a number $T > 0$ say
# what entropy is worth, and look for the weights with the largest
#
# $$p \cdot z + T\, H(p)$$
#
# For the scores $(0, 1, 2)$ and $T = 1$, a compromise beats both extremes:

# %% id="entropy-code"
z = np.array([0.0, 1.0, 2.0])
for p in ([0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.3, 0.6]):
    p = np.array(p)
    entropy = (p * np.log(1 / np.where(p > 0, p, 1))).sum()  # 0 ln 0 counts as 0
    print(p, f"score {p @ z:.2f} + entropy {entropy:.2f} = {p @ z + entropy:.3f}")

# %% [markdown] id="identity"
# Which weights are best, and how far behind are others? The logarithm of softmax is a score, less the logarithm of the sum. The latter
# is called **log-sum-exp**, $\mathrm{lse}(z) = \ln \sum_j e^{z_j}$:
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# Take $T = 1$, write $s = \sigma(z)$, and put $z_i = \mathrm{lse}(z) + \ln s_i$ into the sum. The $p_i$ sum to 1, so
#
# $$p \cdot z + H(p) = \sum_i p_i\,(\mathrm{lse}(z) + \ln s_i) - \sum_i p_i \ln p_i = \mathrm{lse}(z) - \sum_i p_i \ln \frac{p_i}{s_i}$$
#
# The first term is the same for all $p$. The second is the **gap** that $p$ leaves, called the *divergence*
# $\mathrm{KL}(p \,\|\, s)$. With $p = s$ every logarithm is 0, and the gap is closed.

# %% [markdown] id="compromise"
# Can the gap be negative? The difference $x - 1 - \ln x$ is 0 at $x = 1$, and its slope $1 - 1/x$ is negative before and positive
# after. So $\ln x \le x - 1$, with equality only at $x = 1$. Take $x = s_i / p_i$, multiply by $p_i$, and sum over the entries with
# $p_i > 0$:
#
# $$-\mathrm{KL}(p \,\|\, s) = \sum_i p_i \ln \frac{s_i}{p_i} \le \sum_i (s_i - p_i) \le 0$$
#
# The last step holds because these $p_i$ sum to 1, and these $s_i$ to at most 1. Equality needs $s_i = p_i$ wherever $p_i > 0$, and
# then these $s_i$ sum to 1 as well. For finite $z$ no $s_i$ is 0, so no entry is left out: $p = s$. So **softmax is the one best
# compromise**, and its value is $\mathrm{lse}(z)$.

# %% [markdown] id="compromise-best"
# And for another $T$? Divide what we maximise by $T$: the scores become $z / T$, so the best weights are $\sigma(z / T)$, and the
# temperature $T$ is what entropy is worth. For any real $\beta$ the same line, with $\beta z$ for $z$ and solved for the entropy, reads
#
# $$H(p) = \mathrm{lse}(\beta z) - \beta\, p \cdot z - \mathrm{KL}(p \,\|\, \sigma(\beta z)) \key{free-energy-identity}$$
#
# For the scores above, the best is a little more than our third attempt had. The difference is its gap:

# %% id="identity-verify"
best = softmax(z)
print("best weights", best, f"  score + entropy = lse = {logsumexp(z):.3f}")
print(f"gap of the third attempt: {(p * np.log(p / best)).sum():.3f}")
verify("log-softmax", "free-energy-identity")

# %% [markdown] id="contest"
# ## Third derivation: a contest with noise
#
# **A story.** Whoever compares two sounds many times does not always choose the louder one. In 1959 the psychologist Duncan Luce
# demanded that the odds of two answers must not depend on the others. Tony Marley found that random errors of one kind lead to such
# weights, and Daniel McFadden (1974) that under his conditions no other kind does. He later shared the Nobel prize in economics.
#
# So let each score be read with an error $\xi_j$, and let the largest $z_j + \xi_j$ win. The errors are independent and share one
# continuous distribution with a finite mean. Below, the scores are $(x, 0)$. Each thin line is one pair of errors: the best reading
# stays flat while $x$ loses, and rises with it once it wins.

# %% id="contest-figure"
errors = np.random.default_rng(0).normal(size=(10_000, 2))
x = np.linspace(-4.0, 4.0, 81)
readings = np.maximum(x + errors[:, :1], errors[:, 1:])
share = (x + errors[:, :1] > errors[:, 1:]).mean(axis=0)
figures.contest(x, readings[:6], readings.mean(axis=0), share)

# %% [markdown] id="contest-slope"
# On the right, the slope of the average is the share of contests that $x$ wins. For any number of scores, let
#
# $$M(z) = \mathbb{E}\bigl[\max_j\, (z_j + \xi_j)\bigr]$$
#
# Raise $z_i$ by a tiny step $h$. Where $i$ wins, say by 3.1 to 3.0, the best reading rises by $h$. Where it loses, 3.0 to 3.1, it
# stays, as long as $h$ is less than the gap of 0.1. Only in a race closer than $h$ does it rise by a part of $h$. The chance of such a
# race goes to 0 with $h$, because a continuous noise makes no ties. (A step down
# goes the same way.) Hence
#
# $$\frac{\partial M}{\partial z_i} = P(i \text{ wins})$$
#
# These are weights, for **any** such noise: none is negative, and they sum to 1, because a tie has chance 0.

# %% [markdown] id="gumbel"
# Which weights they are depends on the noise. We look for one whose maximum is easy to calculate. The best reading is at most $t$ if
# *every* $z_j + \xi_j$ is, and the noises are independent, so the chances multiply. With Gumbel's noise, $P(\xi \le t) = \exp(-e^{-t})$,
# this product becomes a sum in the exponent:
#
# $$P\bigl(\max_j\, (z_j + \xi_j) \le t\bigr) = \prod_{j=1}^{n} P(\xi_j \le t - z_j)$$
#
# $$= \prod_{j=1}^{n} \exp\bigl(-e^{z_j - t}\bigr) = \exp\Bigl(-e^{-t} \sum_{j=1}^{n} e^{z_j}\Bigr)$$
#
# The sum is $e^{\mathrm{lse}(z)}$, so this is $\exp(-e^{-(t - \mathrm{lse}(z))})$: the distribution of a single noise, moved by
# $\mathrm{lse}(z)$. Its mean is that of one noise, $\gamma \approx 0.577$, moved by the same amount:
#
# $$M(z) = \mathrm{lse}(z) + \gamma \label{expected-maximum}$$

# %% [markdown] id="lse"
# The derivative of the constant is 0, so the chance to win is the slope of log-sum-exp. By the chain rule that is one over the sum,
# times the derivative $e^{z_i}$ of the sum:
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \key{lse-gradient}$$
#
# **Softmax is the gradient of log-sum-exp**, and its weights are the chances to win a contest under Gumbel noise. **Predict** for how
# many of 10,000 contests "cat" wins under the scores of "it".

# %% id="contest-code" tags=["predicted"]
rng = np.random.default_rng(0)
noise = rng.gumbel(size=(10_000, len(z_it)))
wins = np.bincount((z_it + noise).argmax(axis=-1), minlength=len(z_it))
print(labelled([wins, 10_000 * softmax(z_it)], ["wins", "softmax"], TOKENS, digits=0))
best = (z_it + noise).max(axis=-1).mean()
print(f"mean best reading {best:.2f}, lse {logsumexp(z_it):.2f}")

# %% [markdown] id="contest-answer" tags=["answer"]
# It wins in 9,490 of them. Its weight times 10,000 is 9,478; by chance such a count is often off by 20 and rarely by more than 50.
# The mean best reading lies 0.58 above $\mathrm{lse}(z)$, close to $\gamma$.

# %% id="lse-verify"
verify("expected-maximum", "lse-gradient")

# %% [markdown] id="three"
# Side by side:
#
# | what we assume | what we find |
# |---|---|
# | one continuous function for all entries; only differences of scores count | $\sigma(\beta z)$, and nothing else |
# | a large $p \cdot z + T\, H(p)$ is good | $\sigma(z / T)$, and nothing better |
# | the best noisy score wins | $\sigma(z)$ for Gumbel's noise; others in general differ (section {section}`noise`) |

# %% [markdown] id="stable"
# ## What a computer makes of it
#
# Our first cell took exponentials and divided by their sum. The two score vectors below have the same differences. A float64 holds
# numbers up to about $e^{709}$, and what is larger becomes `inf`. **Predict** what the second one gives.

# %% id="overflow-code" tags=["predicted"]
with np.errstate(all="ignore"):  # keep NumPy quiet
    for scores in (np.array([0.0, 1.0, 2.0]), np.array([1000.0, 1001.0, 1002.0])):
        unnormalised = np.exp(scores)
        print(scores, "->", unnormalised / unnormalised.sum())

# %% [markdown] id="overflow-answer" tags=["answer"]
# The second gives NaN three times: $e^{1000}$ becomes inf, so the sum is inf too, and inf / inf is NaN.

# %% [markdown] id="shift"
# A common shift changes nothing, for $e^x$ meets the shift condition. With $\mathbf{1} = (1, \ldots, 1)$:
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# Log-sum-exp, $\ln \sum_j e^{z_j}$, is not invariant: it moves by the same amount. Take $e^m$ out of each term of the sum, for any number
# $m$:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$
#
# In a computer the maximum is a safe $m$. For finite scores no term is then above 1, and the largest is 1, so we do not divide by 0.
# With $c = -m$ in {eq}`softmax-shift-invariance`:
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$

# %% id="stable-code"
scores = np.array([1000.0, 1001.0, 1002.0])
shifted = np.exp(scores - scores.max())
print(shifted / shifted.sum())
verify("softmax-shift-invariance", "shifted-lse", "stable-softmax")

# %% [markdown] id="stable-notice"
# In a matrix of scores, with a row for each query and a column for each key, each row is a softmax of its own. So maximum and sum run
# along the **last axis**. The wrong axis raises no error (Deeper, section {section}`axes`).

# %% [markdown] id="jacobian"
# ## The derivative
#
# Softmax takes $n$ scores to $n$ weights, so it has $n \times n$ partial derivatives. Write $s = \sigma(z)$, and $s_i = e^{z_i} / Z$
# with $Z = \sum_k e^{z_k}$. The score $z_j$ always appears in $Z$, with $\partial Z / \partial z_j = e^{z_j}$, but in the numerator
# only if $j = i$. The quotient rule gives two cases.
#
# $$j \ne i: \qquad \frac{\partial s_i}{\partial z_j} = \frac{0 \cdot Z - e^{z_i}\, e^{z_j}}{Z^2} = -s_i s_j$$
#
# $$j = i: \qquad \frac{\partial s_i}{\partial z_i} = \frac{e^{z_i} Z - e^{z_i}\, e^{z_i}}{Z^2} = s_i - s_i^2$$
#
# For the weights $(0.5, 0.3, 0.2)$, raising the first score by a little $h$ moves them by about $0.25\,h$, $-0.15\,h$ and $-0.10\,h$:
# what one gains, the others lose.

# %% id="derivative-code"
z, h = np.log([0.5, 0.3, 0.2]), 1e-6
for j in range(3):
    moved = softmax(z + h * np.eye(3)[j]) - softmax(z)
    print(f"raising score {j + 1} moves the weights by h times", moved / h)

# %% [markdown] id="derivative-turn"
# **Your turn.** Write both cases as *one* formula for $\partial s_i / \partial z_j$, in LaTeX: only the right side, between `r"`
# and `"`. The Kronecker delta, which is 1 if $i = j$ and else 0, is `\delta_{ij}`; the weights are `s_i` and `s_j`.

# %% id="derivative-turn-code" tags=["your-turn"]
my_formula = ...  # r"..."
check("softmax-derivative", my_formula)

# %% [markdown] id="derivative-ours" tags=["ours"]
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$

# %% [markdown] id="jacobian-matrix"
# Collect the entries in the Jacobian matrix, $J_{ij} = \partial s_i / \partial z_j$. One part is a diagonal matrix, the other a column
# times a row:
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$
#
# A shift changes no weight, {eq}`softmax-shift-invariance`, so the derivative along $\mathbf{1}$ is zero:
#
# $$J\,\mathbf{1} = 0 \label{softmax-jacobian-annihilates-constants}$$
#
# **Predict** where the largest entry of $J$ is, for the weights of the scores $(1.5, 1, 0, -1)$. Use $e^{1.5} \approx 4.5$.

# %% id="jacobian-figure" tags=["predicted"]
from attn_course.reference import softmax_jacobian

weights = softmax(np.array([1.5, 1.0, 0.0, -1.0]))
jacobian = softmax_jacobian(weights)
assert np.allclose(jacobian, np.diag(weights) - np.outer(weights, weights))
figures.jacobian_heatmap(weights, jacobian)

# %% [markdown] id="jacobian-answer" tags=["answer"]
# The diagonal is positive, because $s_i (1 - s_i)$ is, and everything else is negative, because $-s_i s_j$ is. The largest entry is
# where $s_i$ is closest to one half, because $s (1 - s)$ is largest there. Here that is the first diagonal entry.

# %% [markdown] id="jacobian-variance"
# Multiply {eq}`softmax-jacobian` by a vector $x$ from both sides:
#
# $$x^\top J x = \sum_i s_i x_i^2 - \Bigl(\sum_i s_i x_i\Bigr)^2$$
#
# This is the variance of the $x_i$ under $s$, never negative. If no $s_i$ is 0, it and $J x$ are 0 only for equal $x_i$: rank $n - 1$. By
# {eq}`lse-gradient`, $J$ holds the second derivatives of log-sum-exp, which is thus convex.

# %% [markdown] id="vjp"
# A backward pass never needs $J$ itself. A loss $L$ reaches us as the gradient $g_i = \partial L / \partial s_i$, and the chain
# rule passes it on to the scores:
#
# $$\frac{\partial L}{\partial z_j} = \sum_i g_i\, \frac{\partial s_i}{\partial z_j} = \sum_i g_i\, s_i\, (\delta_{ij} - s_j)$$
#
# **Your turn.** Split this sum in two. In the one with $\delta_{ij}$ only the term $i = j$ is left; in the other, $s_j$ does not
# depend on $i$. Then write `my_pull(weights, gradient)` for one row, without any matrix: two 1-D float64 arrays of one length go in, $s$
# and $g$, and the gradient of the scores comes out. By hand: $s = (0.5, 0.3, 0.2)$ and $g = (1, 0, 0)$ must give $(0.25, -0.15, -0.10)$.

# %% id="vjp-turn-code" tags=["your-turn"]
my_pull = ...  # your function
check("pull-back-one-row", my_pull)

# %% [markdown] id="vjp-ours" tags=["ours"]
# The two sums are $g_j s_j$ and $s_j \sum_i g_i s_i$, so `my_pull` returns `weights * (gradient - weights @ gradient)`.

# %% [markdown] id="vjp-result"
# In vectors, with $\odot$ for multiplying entry by entry, the gradient of the
# scores is
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \key{softmax-vector-jacobian-product}$$
#
# It takes $O(n)$ steps. For a row of 100,000 keys, $J$ would have $10^{10}$ entries. PyTorch's automatic differentiation agrees:

# %% id="vjp-code"
import torch

from attn_course.reference import softmax_vjp

gradient = np.array([2.0, -1.0, 0.0, 3.0])
z = torch.tensor([1.5, 1.0, 0.0, -1.0], dtype=torch.float64, requires_grad=True)
torch.softmax(z, dim=-1).backward(torch.from_numpy(gradient))
print("with J:   ", jacobian.T @ gradient)
print("without J:", weights * (gradient - weights @ gradient))
print("PyTorch:  ", z.grad.numpy())
assert np.allclose(softmax_vjp(weights, gradient), jacobian.T @ gradient)

# %% [markdown] id="step"
# The gradient with respect to a score is its weight times the difference $g_i - s \cdot g$: positive where $g_i$ lies above the average
# $s \cdot g$, negative below. So a step downhill lowers every score with $g_i$ above the average.
#
# Take $s = (0.8, 0.1, 0.1)$ and $g = (1, 1, 0)$. The average is 0.9, so $g_1$ and $g_2$ lie above it. **Predict**: does a step downhill
# make both of these weights smaller?

# %% id="step-code" tags=["predicted"]
s, g = np.array([0.8, 0.1, 0.1]), np.array([1.0, 1.0, 0.0])
print("gradient of the scores:   ", softmax_vjp(s, g))
print("weights after a step of 1:", softmax(np.log(s) - softmax_vjp(s, g)))

# %% [markdown] id="step-answer" tags=["answer"]
# No. Both *scores* fall, but the first by 0.08 and the second only by 0.01. The first amount is by far the largest, so the sum of all
# amounts falls with it, to 0.947 of what it was. The second amount falls only to 0.990 of its own. So the second *weight* grows, from
# 0.1 to 0.1046.

# %% id="jacobian-verify"
verify("softmax-derivative", "softmax-jacobian")
verify("softmax-jacobian-annihilates-constants", "softmax-vector-jacobian-product")

# %% [markdown] id="temperature"
# ## Temperature, and what saturation is
#
# By {eq}`log-softmax` the log-odds of two tokens are the difference of their scores, so dividing the scores by $T$ divides
# the log-odds too. For "it", the plain dot products are 8 for "cat" and 0 for "tired". At $T = 1$ their odds are $e^8 \approx 3000$, at
# $T = 2$ they
# are $e^4 \approx 55$: our division by 2 **is** a temperature.
#
# Divide numerator and denominator by $e^{\max_j z_j / T}$. As $T \to 0$ from above, every term below the maximum vanishes, and the
# winners, whose terms are 1, share equally. As $T \to \infty$, every term becomes 1, and every weight $1/n$. Here two scores are tied:

# %% id="temperature-figure"
scores, temperatures = np.array([2.0, 2.0, 1.0, 0.0]), (0.1, 1.0, 10.0)
weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
figures.temperature_bars(scores, weights, temperatures)

# %% [markdown] id="card-question"
# When does the softmax stop passing changes on? Find a setting of this card in which every entry of the Jacobian (the derivatives by
# $z / T$) is almost zero, then press "+100 to all".
# (The *spectral norm* is the largest factor by which $J$ stretches a vector.)

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="saturation"
# One weight must have nearly everything: with four scores, every $s_i (1 - s_i)$ is small only if each weight is near 0 or 1, and they
# sum to 1. Adding 100 moves nothing, by {eq}`softmax-shift-invariance`. If the largest weight is $1 - \varepsilon$, every entry of $J$,
# $s_i (1 - s_i)$ or $-s_i s_j$, is at most $\varepsilon$ in size, since one of its factors is at most $\varepsilon$ and the other at
# most 1. Where $\varepsilon$ is small, the softmax is **saturated**: small changes of $z / T$ hardly reach the weights.

# %% [markdown] id="saturation-notice"
# With many equal weights, $1/n$ each, $J$ is small too: no entry is above $1/n$. And a small $J$ in one row at one moment says nothing
# yet about training; chapter {lesson}`scaling` measures it.

# %% [markdown] id="online"
# ## Log-sum-exp, block by block
#
# {eq}`stable-softmax` reads the scores three times: for the maximum, for the sum, and for the weights. The first two readings can be
# one (Milakov and Gimelshein, 2018). Keep the largest score so far, $m$, and the sum measured from it, $\ell = \sum e^{z_j - m}$. A new
# score $x$ may raise the maximum to $m'$. Since $e^{z_j - m'} = e^{z_j - m}\, e^{m - m'}$, all old terms then get the same factor.
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# Neither exponent is positive, so neither power is above 1. Start: $m = -\infty$, $\ell = 0$. At a finite first score the factor is
# $e^{-\infty} = 0$.

# %% id="online-code"
import math

row_max, row_sum = -math.inf, 0.0
for token, score in zip(TOKENS, z_it, strict=True):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"{token:8} score {score:2.0f}   max {row_max:2.0f}   sum {row_sum:.4f}")

# %% [markdown] id="online-notice"
# At "cat" the maximum jumps from $-1$ to 4, and the old sum of 1 shrinks to $e^{-5} = 0.0067$. Whole blocks work the same way: bring
# the sums of two, $(m_A, \ell_A)$ and $(m_B, \ell_B)$, to the larger maximum, then add:
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \key{merge-of-softmax-sums}$$
#
# On paper neither the order of the blocks nor the cuts matter, because $\ell\, e^m$ is always the plain sum. FlashAttention (chapter
# {lesson}`flash`) rests on this line, and on rescaling the weighted sum of values in the same way: blocks of scores are read and dropped.
# Write it yourself in the Deeper section {section}`blocks`.

# %% id="merge-verify"
verify("online-softmax-update", "merge-of-softmax-sums")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost for $n$ scores |
# |---|---|---|
# | weights, {eq}`softmax` | {key}`softmax` | $O(n)$ |
# | entropy of weights $p$, {eq}`free-energy-identity` | {key}`free-energy-identity` | $O(n)$ |
# | gradient of log-sum-exp, {eq}`lse-gradient` | {key}`lse-gradient` | $O(n)$ |
# | backward pass, {eq}`softmax-vector-jacobian-product` | {key}`softmax-vector-jacobian-product` | $O(n)$ |
# | merge of two blocks, {eq}`merge-of-softmax-sums` | {key}`merge-of-softmax-sums` | $O(1)$ |
#
# Shapes: scores, weights, gradients `(..., q_len, kv_len)`; maxima and sums `(..., q_len, 1)`.

# %% [markdown] id="summary"
# ## Summary
#
# - Three roads lead to softmax: differences of scores, a compromise of score and entropy, a contest under Gumbel noise.
# - A common shift changes nothing: subtract the maximum, and no exponential overflows.
# - A backward pass needs $s \odot (g - (s \cdot g)\mathbf{1})$, and never $J$.
# - Where one weight takes nearly all, $J$ nearly vanishes.
# - For the denominator, a maximum and a sum are all that must be kept of the scores read so far.
#
# Next: why did the machine divide by 2? That is chapter {lesson}`scaling`; first the
# [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb). No core section needs those that follow.

# %% [markdown] id="continuity"
# ## Deeper: continuity is enough
#
# The first derivation assumed that $g$ has a derivative. It is enough that $g$ is continuous, positive, and turns sums into
# products. Integrate $g(x + c) = g(x)\, g(c)$ over $c$ from 0 to 1, and put $u = x + c$ on the left:
#
# $$\int_x^{x+1} g(u)\, du = g(x) \int_0^1 g(c)\, dc$$
#
# The integral on the right is a positive number, so $g(x)$ is the left side over that number. The left side is an integral of a
# continuous function between moving ends, so it has a derivative in $x$, and hence so has $g$. Task {task}`cauchy-to-exponential`
# goes another way, over the fractions.

# %% [markdown] id="why-exp-broken"
# ## Deeper: when every entry has its own function
#
# What if entry $i$ has its own $f_i$? With the scores $x$ and $0$ the shift condition says that
#
# $$\frac{f_i(x + c)}{f_i(x)} = \frac{f_j(c)}{f_j(0)} \qquad (i \ne j)$$
#
# Put $x = 0$: then $f_i(c) / f_i(0) = f_j(c) / f_j(0)$, so all entries share one $g$. The condition becomes
# $f_i(x + c) / f_i(x) = g(c)$, hence $g(x + c) = g(x)\, g(c)$ as before, and $f_i(x) = a_i\, e^{\beta x}$ with $a_i = f_i(0)$. The weights
# are proportional to $e^{\beta z_i + \ln a_i}$: a number is added to each score. ALiBi adds its position bias in this way.

# %% id="own-functions-code"
z, a = np.array([2.0, 1.0, 0.0]), np.array([1.0, 2.0, 4.0])
for c in (0.0, 3.0):
    values = a * np.exp(z + c)
    print(f"a e^z shifted by {c:.0f}:", values / values.sum())
print("softmax(z + ln a):   ", softmax(z + np.log(a)))

# %% [markdown] id="spot-printed"
# ## Deeper: a test for printed weights
#
# Suppose a text prints softmax(0.9, 0.1, 0.7) as 0.48, 0.21, 0.31, which sum to 1. But the log-odds must be the differences of the
# scores, 0.8 and 0.2, up to rounding:

# %% id="spot-printed-code"
scores, printed = np.array([0.9, 0.1, 0.7]), np.array([0.48, 0.21, 0.31])
for name, w in (("printed", printed), ("softmax", softmax(scores))):
    print(f"{name}: {w}   log-odds {np.log(w[0] / w[1:])}")

# %% [markdown] id="spot-printed-notice"
# The printed weights have 0.44 where 0.2 should be, and two digits of rounding move that by 0.03 at most. So they are not the softmax
# of these scores.

# %% [markdown] id="noise"
# ## Deeper: another noise, other weights
#
# Where does Gumbel's noise come from? Take $N$ independent waiting times, exponential with mean 1. The longest of them, less $\ln N$,
# is at most $t$ with the chance $(1 - e^{-t} / N)^N$, which tends to $\exp(-e^{-t})$ as $N$ grows.
#
# In general another noise gives other weights: normal noise gives those of the *probit* model. So the third derivation does not say that
# the weights must be softmax. Gumbel noise stretched by $T > 0$ gives $\sigma(z / T)$, because $z_j + T \xi_j$ is largest where
# $z_j / T + \xi_j$ is.

# %% id="other-noise-code"
z, size, rng = np.array([2.0, 1.0, 0.0]), (1_000_000, 3), np.random.default_rng(1)
spread = math.pi / math.sqrt(6)  # the standard deviation of Gumbel's noise
gumbel, normal = rng.gumbel(size=size), rng.normal(scale=spread, size=size)
for name, noise in (("Gumbel", gumbel), ("normal", normal)):
    wins = np.bincount((z + noise).argmax(axis=-1), minlength=3)
    print(f"{name} noise: {wins / len(noise)}")
print("softmax:     ", softmax(z))

# %% [markdown] id="average"
# ## Deeper: the average as a condition
#
# Suppose that we know only the average score that the weights must have, $\sum_i p_i z_i = \mu$. Many choices of $p$ have that
# average. Which of them has the largest entropy? (Jaynes, 1957, made this question a principle.) Without the condition, equal weights
# have it: with $\beta = 0$, {eq}`free-energy-identity` says $H(p) = \ln n - \mathrm{KL}(p \,\|\, \text{equal weights})$.

# %% [markdown] id="multiplier"
# **Lagrange multipliers.** Start at the best $p$, with all $p_i > 0$, and go a tiny step along a direction $d$. The step keeps both
# conditions if $\sum_i d_i = 0$ and $\sum_i z_i d_i = 0$: then $d$ is perpendicular to $\mathbf{1}$ and to $z$. The entropy has no slope
# along such a $d$, for otherwise a step forwards or backwards would raise it. So its gradient is perpendicular to every $d$ of this kind.
# Only the combinations of $\mathbf{1}$ and $z$ are. (With three weights, $d$ points along the dashed line of the figure below.) The
# unknown coefficients are the *multipliers*.

# %% [markdown] id="lagrangian"
# Take $\beta$ for the average and $\lambda$ for the sum, add each condition times its multiplier, and set all derivatives to zero:
#
# $$\mathcal{L} = -\sum_i p_i \ln p_i + \beta \Bigl(\sum_i p_i z_i - \mu\Bigr) + \lambda \Bigl(\sum_i p_i - 1\Bigr)$$
#
# Each $p_i$ appears in three terms. The first needs the product rule:
#
# $$\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda = 0$$

# %% [markdown] id="entropy-solve"
# Solve for $p_i$, which comes out positive:
#
# $$p_i = e^{\lambda - 1}\, e^{\beta z_i}$$
#
# The first factor is the same for every $i$, and the $p_i$ sum to 1. In task {task}`multiplier-to-softmax` you show that $p$ is
# $\sigma(\beta z)$ again, {eq}`softmax-with-temperature`: the Gibbs distribution of physics, with minus the energy for the score.

# %% [markdown] id="entropy-doubts"
# But a zero slope alone promises no maximum, some $p_i$ might be 0, and perhaps no $\beta$ fits. The first two doubts are settled by
# {eq}`free-energy-identity`. Among all $p$ with $p \cdot z = \mu$, its first two terms are the same number, so the entropy is largest
# where KL is smallest. **If** $\sigma(\beta z)$ has the average $\mu$, it is therefore the one and only maximum. The third doubt is
# settled by a derivative.

# %% [markdown] id="which-beta"
# Does some $\beta$ fit? The average is a quotient, $\mu(\beta) = N / D$ with $N = \sum_i z_i e^{\beta z_i}$ and
# $D = \sum_i e^{\beta z_i}$. Here $D' = N$. With $s = \sigma(\beta z)$, the quotient rule says
#
# $$\mu'(\beta) = \frac{N'}{D} - \frac{N\, D'}{D^2} = \frac{\sum_i z_i^2\, e^{\beta z_i}}{D} - \Bigl(\frac{N}{D}\Bigr)^2
# = \sum_i s_i z_i^2 - \Bigl(\sum_i s_i z_i\Bigr)^2$$
#
# This is the variance of the scores under the weights $s$: positive, unless all scores are equal. For $\beta \to \infty$ the terms of
# the largest score outgrow all others, for $\beta \to -\infty$ those of the smallest. So $\mu(\beta)$ is continuous, rises, and runs
# from the smallest score to the largest: it takes each value strictly between them **exactly once**. At the two ends no $\beta$ fits,
# unless all scores are equal: there the weights of all other scores are 0.

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
# All weights of three entries form a triangle: a corner puts everything on one score, the centre is uniform. Take the same
# $z = (1, 0.4, 0)$, whose plain mean is 0.47, and ask for the average $\mu = 0.2$. **Predict** the sign of $\beta$.

# %% id="simplex-figure" tags=["predicted"]
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

# %% [markdown] id="simplex-answer" tags=["answer"]
# It is negative: about $-2$. With $\beta = 0$ the average is the plain mean, 0.47, and the average rises with $\beta$, so an average
# below the plain mean needs a $\beta$ below 0. On the dashed line the average is 0.2, and the entropy is largest where it meets the
# path of $\sigma(\beta z)$.

# %% [markdown] id="multiplier-meaning"
# **What a multiplier means.** By {eq}`free-energy-identity` the largest entropy at the average $\mu$ is
# $\mathrm{lse}(\beta z) - \beta \mu$. How does it change with $\mu$, as $\beta$ follows? The slope of
# $\mathrm{lse}(\beta z) = \ln D$ in $\beta$ is $D' / D = \mu$, so with $\beta' = d\beta / d\mu$
#
# $$\frac{dH}{d\mu} = \mu\, \beta' - \beta' \mu - \beta = -\beta$$
#
# So $\beta$ is a **price**: the entropy paid per unit of average score, for a small rise. Below the plain mean it is negative:

# %% id="multiplier-meaning-code"
z, betas = np.array([1.0, 0.4, 0.0]), np.array([-2.001, -1.999])
weights = softmax(betas[:, None] * z)
averages = weights @ z
entropies = -(weights * np.log(weights)).sum(axis=-1)
slope = (entropies[1] - entropies[0]) / (averages[1] - averages[0])
print(f"slope of the entropy at beta = -2: {slope:.3f}")

# %% [markdown] id="limits"
# ## Deeper: what softmax cannot do
#
# - **Give exactly zero** on paper to a finite score. The small weights of many keys can add up. *Sparsemax* (Martins and
#   Astudillo, 2016) can reach zero.
# - **Say "nothing fits".** Scores have no natural zero: if all keys fit badly, the least bad one still gets the largest weight.
# - **Notice a duplicate.** If a key stands there twice, its two copies together get more than it had, and all others lose:

# %% id="duplicate-code"
z = np.array([2.0, 1.0, 0.0])
print("three keys:         ", softmax(z))
print("the first key twice:", softmax(np.array([z[0], *z])))

# %% [markdown] id="smooth-maximum"
# ## Deeper: log-sum-exp as a smooth maximum
#
# The sum of the exponentials lies between its largest term and $n$ times that. Hence
# $\max_j z_j \le \mathrm{lse}(z) \le \max_j z_j + \ln n$. So log-sum-exp is a **smooth maximum**. For the scores $(x, 0)$ its slope,
# the weight of $x$, goes gently from 0 to 1:

# %% id="lse-figure"
x = np.linspace(-4.0, 4.0, 161)
lower = np.maximum(x, 0.0)
lse = logsumexp(np.stack([x, np.zeros_like(x)], axis=-1))
figures.lse_bounds(x, lse, lower, lower + math.log(2.0))

# %% [markdown] id="formats"
# ## Deeper: what a number format can hold
#
# The bars show where the plain $e^x$ is neither 0 nor infinite.

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
# The shifted sum cannot overflow, as long as the format can hold the number of scores. That does not make it exact. The last line
# adds 4096 ones in order and gets 2048, because the next float16 after 2048 is 2050, and $2048 + 1$ is rounded back. So the sum is
# best kept in float32.

# %% [markdown] id="axes"
# ## Deeper: the wrong axis
#
# For scores with queries in rows, a softmax along the first axis raises no error. Do its row sums tell?

# %% id="axes-code"
scores = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]])  # queries by keys
print("row sums along the last axis ", softmax(scores, axis=-1).sum(axis=-1))
print("row sums after the wrong axis", softmax(scores, axis=0).sum(axis=-1))

# %% [markdown] id="axes-notice"
# Here they give it away: each *key* handed out a weight of 1, three in all, for two queries. They do not always: for the scores
# `[[0, 1], [1, 0]]` the wrong axis even gives the right weights. So test with more keys than queries: then the wrong axis cannot make all
# row sums 1.

# %% [markdown] id="spot-elementwise"
# ## Deeper: spot the mistake in a backward pass
#
# "The derivative of softmax is $s(1 - s)$" is a common answer. That belongs to the *logistic* function of one number. Put it
# into the backward pass, for two equal weights and $g = (1, 1)$:

# %% id="spot-elementwise-code"
s, g = np.array([0.5, 0.5]), np.array([1.0, 1.0])
print("entry by entry:", s * (1 - s) * g)
show("softmax-vector-jacobian-product", s=s, g=g)

# %% [markdown] id="spot-elementwise-notice"
# The weights sum to 1, and this loss adds them up. So it cannot change, and its gradient must be 0.

# %% [markdown] id="norm"
# ## Deeper: the norm of a saturated Jacobian
#
# In the core we saw that each entry of a saturated $J$ is small. For the whole matrix, take the spectral norm $\|J\|_2$, the largest
# factor by which $J$ stretches a vector. **Recall:** if a
# symmetric matrix has no negative eigenvalue, the largest eigenvalue is its norm, and all of them together sum to its trace, the
# sum of the diagonal. For an eigenvector $x$ of length 1, the eigenvalue is $x^\top J x$. In the core we saw that this is the variance of
# the numbers $x_i$ under the weights $s$, so no eigenvalue is negative.

# %% [markdown] id="saturation-bound"
# So the norm is at most the trace, which is $\sum_i s_i (1 - s_i) = 1 - \sum_i s_i^2$. And $\sum_i s_i^2 \ge s_{\max}^2$, where
# $1 - s_{\max}^2 = (1 + s_{\max})(1 - s_{\max}) \le 2\,(1 - s_{\max})$:
#
# $$\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max}) \label{saturated-softmax-jacobian-vanishes}$$
#
# One half bounds it for every softmax. A variance is at most a quarter of the squared range, because all numbers lie within half the
# range of its midpoint. No two entries of a vector of length 1 are more than $\sqrt{2}$ apart, so
# $\|J\|_2 \le (\sqrt{2})^2 / 4 = \frac12$.

# %% [markdown] id="softmax-entropy"
# And how undecided are the weights? Put $p = \sigma(z)$ and $\beta = 1$ into {eq}`free-energy-identity`. The divergence is 0, which
# leaves
#
# $$H(s) = \mathrm{lse}(z) - \sum_i s_i z_i \label{softmax-entropy}$$
#
# The figure sharpens the scores $(1.5, 1, 0, -1)$. Its dotted levels are one half above and $\ln 4$, the entropy of equal weights,
# below.

# %% id="saturation-figure"
verify("saturated-softmax-jacobian-vanishes", "softmax-entropy")
scores, sharpness = np.array([1.5, 1.0, 0.0, -1.0]), np.geomspace(0.1, 50.0, 600)
sharpened = sharpness[:, None] * scores
rows = softmax(sharpened)
norm = np.linalg.norm(softmax_jacobian(rows), ord=2, axis=(-2, -1))
bound = 1.0 - (rows**2).sum(axis=-1)
entropy = logsumexp(sharpened) - (rows * sharpened).sum(axis=-1)
figures.saturation(sharpness, norm, bound, entropy, max_entropy=math.log(4.0))

# %% [markdown] id="cross-entropy"
# ## Deeper: a gradient that saturation does not stop
#
# A classifier is trained to give the right class $y$ a large weight. Its loss is $-\ln s_y = \mathrm{lse}(z) - z_y$, by
# {eq}`log-softmax`. Both terms have derivatives that we know, the first from {eq}`lse-gradient`:
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# (Do task {task}`log-softmax-derivative` first.) With the squared error $\frac12 \sum_i (s_i - \delta_{iy})^2$ the gradient has to pass
# through $J$. A model that is confident and wrong:

# %% id="cross-entropy-code"
verify("cross-entropy-gradient")
truth = np.array([0.0, 0.0, 1.0])
weights = softmax(np.array([7.0, 1.0, 0.0]))
print("weights:      ", weights)
print("cross-entropy:", weights - truth)
print("squared error:", softmax_vjp(weights, weights - truth))

# %% [markdown] id="cross-entropy-notice"
# The cross-entropy gives nearly $(1, 0, -1)$: its logarithm brings a factor $1 / s_y$, which cancels the $s_y$ in
# {eq}`softmax-derivative`. The squared error gives less than 0.005 in every entry, because $J$ is nearly 0.

# %% [markdown] id="blocks"
# ## Deeper: blocks in code
#
# **Your turn.** The scores come in blocks, as FlashAttention reads them. Write `my_lse(blocks)`, which returns $\mathrm{lse}$ of all
# scores as a float and looks at each block once: `blocks` is a list of one or more 1-D float64 arrays, none of them empty; the scores
# are finite, of any size and either sign. Do not join the blocks, though the check cannot see it. The smallest example:
# `[np.array([0.0]), np.array([0.0])]` gives $\ln 2$.

# %% id="lse-turn-code" tags=["your-turn"]
my_lse = ...  # your function
check("lse-over-blocks", my_lse)

# %% [markdown] id="blocks-ours" tags=["ours"]
# Keep the pair of {eq}`merge-of-softmax-sums`; at the end return $m + \ln \ell$.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - R. D. Luce (2008), [Luce's choice axiom](http://scholarpedia.org/article/Luce%27s_choice_axiom), Scholarpedia.
# - K. Train, *Discrete choice methods with simulation*, chapter 3: softmax in economics, from Luce and Marley to McFadden.
# - E. T. Jaynes (1957), *Information theory and statistical mechanics*: maximum entropy as a principle.
# - A. F. T. Martins and R. F. Astudillo (2016), [arXiv:1602.02068](https://arxiv.org/abs/1602.02068): sparsemax.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): maximum and sum in one pass.
