# %% [markdown] id="title"
# # {lesson}`softmax` Softmax: from scores to weights
#
# Attention compares a query with every key and gets one **score** for each. To average the values it needs
# **weights**: positive numbers that sum to 1. Softmax makes weights out of scores. This lesson takes the
# formula apart until nothing in it is a habit.
#
# **Afterwards you can** derive softmax in three ways, compute it for any finite scores, differentiate it with and
# without its matrix, say when its gradient dies, and find its normaliser in one pass.
#
# **You need** exponentials, partial derivatives, a Lagrange multiplier, a first-order differential equation,
# eigenvalues and quadratic forms of a symmetric matrix, and some NumPy.
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% id="setup"
import math

import numpy as np

from attn_course import show, verify
from attn_course.lessons.softmax import figures
from attn_course.reference import logsumexp, softmax, softmax_jacobian, softmax_vjp

np.set_printoptions(precision=4, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: the scores are there, and each row of them has to become a row of weights.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## Two lines that work, until they do not
#
# Here are the two lines everybody writes first: take exponentials, divide by their sum. Both score vectors
# below hold the same differences. **Predict** what the second call prints.

# %% id="hook-code" tags=["predicted"]
with np.errstate(over="ignore", invalid="ignore"):  # keep NumPy quiet
    for scores in (np.array([0.0, 1.0, 2.0]), np.array([1000.0, 1001.0, 1002.0])):
        unnormalised = np.exp(scores)
        print(scores, "->", unnormalised / unnormalised.sum())

# %% [markdown] id="hook-answer" tags=["answer"]
# The second call prints NaN three times, because $e^{1000}$ is too large for a float: it becomes inf, and inf / inf is NaN.
# The formula is right and the program is wrong.

# %% [markdown] id="hook-notice"
# To mend the program we must know which changes of the scores leave the weights alone, so we begin with the formula
# itself. For scores $z = (z_1, \ldots, z_n)$ it reads
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \label{softmax}$$
#
# We write $\sigma(z)_i$ and not $\sigma(z_i)$: every weight depends on **all** scores, through the sum. In this
# course `verify` checks every numbered equation by machine, and says how; `show` puts small numbers into it, so that you
# can follow it by hand (positions count from 1).

# %% id="definition-verify"
verify("softmax")
show("softmax", z=[1, 2, 0], i=2)

# %% [markdown] id="range"
# Every term of the sum is positive, so for two or more finite scores each weight is a proper fraction:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \label{softmax-inside-the-simplex}$$
#
# Mind the small print, which most texts leave out: *two or more*, *finite*, *in exact arithmetic*. **Predict**
# which of the three inputs below breaks the strict bounds.

# %% id="range-verify"
verify("softmax-inside-the-simplex")

# %% id="range-code" tags=["predicted"]
print("one score:        ", softmax(np.array([3.0])))
print("a score of -inf:  ", softmax(np.array([1.0, 2.0, -np.inf])))
print("float32, far apart:", softmax(np.array([0.0, 200.0], dtype=np.float32)))

# %% [markdown] id="range-notice" tags=["answer"]
# All three break them, because each lacks one of the three assumptions. A single score takes all the weight; a score of
# $-\infty$ gets exactly nothing (that is how masks work, in chapter {lesson}`masking`); and $e^{-200}$ is a positive real
# number, but float32 has no number so small and rounds it to 0.

# %% [markdown] id="range-finite"
# For *finite* scores, and on paper, no weight is ever zero: softmax cannot ignore anything completely.

# %% [markdown] id="why-exp"
# ## Why the exponential?
#
# $x^2 + 1$ is positive too, and so is $\ln(1 + e^x)$. Why do we insist on $e^x$? Let us ask for little. One
# continuous positive function $f$ serves every entry, and we normalise: $w_i = f(z_i) / \sum_j f(z_j)$. The sum
# is common to all weights, so it leaves their ratios alone:
#
# $$\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)} \label{ratio-of-weights}$$
#
# Now one demand more: scores have **no natural zero**. Adding the same constant $c$ to all of them must change
# no weight, hence no ratio.
#
# $$\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)} \label{shift-invariant-ratios}$$

# %% [markdown] id="why-exp-predict"
# **Predict** which of three candidates keeps its weights when we add 3 to both scores. The figure shows the
# share of the first of two entries against the difference of their scores.

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
# Only $e^x$ keeps its weights: its two curves coincide, because the shift gives every entry the same factor $e^3$, which
# cancels. The curves of the two other candidates part.

# %% [markdown] id="why-exp-solve"
# Which maps meet this demand? Put $z_j = 0$ in {eq}`shift-invariant-ratios` and write
# $g(x) = f(x) / f(0)$. Multiplying out gives Cauchy's equation, which turns sums into products:
#
# $$g(x + c) = g(x)\,g(c) \label{exponential-functional-equation}$$
#
# We asked for continuity only. Integrating over $c$ from 0 to 1 shows that differentiability comes for free:
#
# $$g(x) \int_0^1 g(c)\,dc = \int_x^{x+1} g(c)\,dc \label{functional-equation-integrated}$$
#
# The right side is an integral of a continuous function between moving ends, so it is differentiable in $x$;
# the integral on the left is a positive number, so $g$ is differentiable as well.

# %% [markdown] id="why-exp-ode"
# Now differentiate {eq}`exponential-functional-equation` with respect to $c$ at $c = 0$, and call $g'(0) = \beta$:
#
# $$g'(x) = \beta\,g(x) \label{exponential-differential-equation}$$
#
# With $g(0) = 1$ this differential equation has exactly one solution:
#
# $$g(x) = e^{\beta x} \label{exponential-unique-solution}$$
#
# So $f(x) = f(0)\,e^{\beta x}$, the factor $f(0)$ cancels, and one number is left to choose, $\beta$:
#
# $$w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T}
# \label{softmax-with-temperature}$$

# %% id="why-exp-verify"
verify("ratio-of-weights", "shift-invariant-ratios")
verify("exponential-functional-equation", "functional-equation-integrated")
verify("exponential-differential-equation", "exponential-unique-solution")
verify("softmax-with-temperature")

# %% [markdown] id="why-exp-notice"
# Four wishes (positive, normalised, shift-invariant, one continuous map for every entry) leave softmax and
# nothing else, up to the **temperature** $T$. A larger score earns a larger weight if $\beta > 0$; with
# $\beta = 0$ (and no $T$) all weights are equal; a negative $\beta$ would favour the smallest score. Section {section}`temperature`
# turns $T$.

# %% [markdown] id="spot-printed"
# ### Spot the mistake: numbers in print
#
# An introduction works the example softmax(0.9, 0.1, 0.7) and prints the weights .48, .22 and .30. They are
# positive and they sum to 1, so nobody stumbles. By {eq}`ratio-of-weights` with $f = \exp$, the logarithm of a ratio of
# weights must be the difference of the scores: 0.8 for the first pair, 0.2 for the first and third.

# %% id="spot-printed-code"
scores, printed = np.array([0.9, 0.1, 0.7]), np.array([0.48, 0.22, 0.30])
right = softmax(scores)
print("printed", printed, "log-ratios", np.log(printed[0] / printed[1:]))
print("sum of the printed weights", printed.sum())
print("softmax", right, "log-ratios", np.log(right[0] / right[1:]))

# %% [markdown] id="spot-printed-notice"
# The second log-ratio, 0.47 instead of 0.2, gives it away. A sum of 1 proves little; **ratios** are the test.

# %% [markdown] id="entropy"
# ## The least committed weights
#
# A second road to the same formula. Suppose all we ask of weights $p$ is a certain average score
# $\sum_i p_i z_i = \mu$, between the smallest score and the largest. Many $p$ have it. Take the one that commits
# itself least: the one of largest **entropy** $H(p) = -\sum_i p_i \ln p_i$, measured in nats. With multipliers
# $\beta$ for the average and $\lambda$ for the sum,
#
# $$\mathcal{L} = -\sum_i p_i \ln p_i + \beta \Bigl(\sum_i p_i z_i - \mu\Bigr) + \lambda \Bigl(\sum_i p_i - 1\Bigr)$$
#
# Each $p_i$ occurs in three terms, whose derivatives we add:
#
# $$\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda \label{entropy-lagrangian-gradient}$$

# %% [markdown] id="entropy-solve"
# At the optimum this is zero. Solve for $p_i$; positivity comes out by itself:
#
# $$p_i = e^{\lambda - 1}\, e^{\beta z_i} \label{unnormalised-gibbs-form}$$
#
# The first factor is the same for all entries. It must make the sum 1, which fixes it:
#
# $$p_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} \label{gibbs-distribution}$$
#
# This is {eq}`softmax-with-temperature`. The wanted average $\mu$ fixes $\beta$. Physicists call it the Gibbs distribution, with
# energy $-z_i$; the multiplier $\beta$ **is** the inverse temperature. (Jaynes, 1957, made it a principle.)

# %% [markdown] id="free-energy"
# A vanishing derivative might still be a saddle. One identity settles it, for **any** $p$ on the simplex and any
# $T > 0$. The **divergence** $\mathrm{KL}(p \,\|\, q) = \sum_i p_i \ln (p_i / q_i)$ compares two sets of weights
# (with $0 \ln 0 = 0$). By {eq}`softmax-with-temperature`, $T \ln \sigma(z/T)_i = z_i - T \ln \sum_j e^{z_j/T}$. Weight this with
# $p_i$, sum over $i$, and subtract it from $T \sum_i p_i \ln p_i = -T\,H(p)$:
#
# $$\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - T\,\mathrm{KL}(p \,\|\, \sigma(z/T)) \label{free-energy-identity}$$
#
# KL is never negative: $\ln x \le x - 1$ gives $-\mathrm{KL} \le \sum_i (q_i - p_i) = 0$, with equality only at
# $p = q$. So softmax is the one and only maximiser of "average score plus $T$ times entropy".

# %% id="entropy-verify"
verify("entropy-lagrangian-gradient", "unnormalised-gibbs-form")
verify("gibbs-distribution", "free-energy-identity")

# %% [markdown] id="simplex-predict"
# All weights of three entries form a triangle. Its corners put everything on one score; its centre is uniform.
# **Predict** where the path of $\sigma(z/T)$ starts and ends as $T$ grows.

# %% id="simplex-figure" tags=["predicted"]
scores, temperature = np.array([1.0, 0.4, 0.0]), 0.5
points = figures.simplex_grid(60)
safe = np.where(points > 0.0, points, 1.0)  # 0 ln 0 counts as 0
objective = points @ scores - temperature * (points * np.log(safe)).sum(axis=-1)
path = np.stack([softmax(scores, temperature=t) for t in np.geomspace(0.02, 50.0, 80)])
optimum = softmax(scores, temperature=temperature)
figures.simplex_entropy(
    points,
    objective,
    path,
    optimum,
    temperature=temperature,
    scores=scores,
)

# %% [markdown] id="simplex-answer" tags=["answer"]
# The path starts in the corner of the largest score, because for a small $T$ the average score counts for nearly
# everything, and it ends in the centre, because for a large $T$ the entropy does.

# %% id="simplex-check"
best = points[objective.argmax()]
print("best of the grid", best, "  softmax(z / T)", optimum)
assert np.abs(best - optimum).max() < 1 / 60  # as close as the grid allows

# %% [markdown] id="lse"
# ## Log-sum-exp: the number behind the weights
#
# The maximum in {eq}`free-energy-identity` is $T \ln \sum_j e^{z_j/T}$, and this function has a name:
# $\mathrm{lse}(z) = \ln \sum_j e^{z_j}$. Taking the logarithm of {eq}`softmax`,
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \label{log-softmax}$$
#
# A log-weight is a score measured from lse. Now the third derivation, which is one line of chain rule: the outer
# derivative is 1 over the sum, the inner one is $e^{z_i}$.
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \label{lse-gradient}$$
#
# **Softmax is the gradient of log-sum-exp** (Gao and Pavel, 2017, Proposition 1).

# %% [markdown] id="lse-bounds"
# A gradient of what? Of a smooth maximum. The largest term alone is at most the sum, and the sum is at most $n$
# times the largest term. Take logarithms:
#
# $$\max_j z_j \le \mathrm{lse}(z) \le \max_j z_j + \ln n \label{lse-bounds}$$
#
# The gradient of $\max$ picks the winner; the gradient of its smooth version spreads the choice a little. That
# is softmax: a soft arg max. **Predict** where along $z = (x, 0)$ the gap to the maximum is largest.

# %% id="lse-figure" tags=["predicted"]
x = np.linspace(-4.0, 4.0, 161)
lower = np.maximum(x, 0.0)
lse = logsumexp(np.stack([x, np.zeros_like(x)], axis=-1))
figures.lse_bounds(x, lse, lower, lower + math.log(2.0))

# %% [markdown] id="lse-answer" tags=["answer"]
# The gap is largest at $x = 0$, because there both terms of the sum are equal: it is $\ln 2$, the upper bound for two scores.
# Far from the tie, one term is nearly the whole sum, and the gap is almost nothing.

# %% id="lse-verify"
verify("log-softmax", "lse-gradient", "lse-bounds")

# %% [markdown] id="stable"
# ## Numbers that overflow
#
# Back to the failure of section 2.1. Shift invariance was a wish; for softmax it is a fact. With
# $\mathbf{1} = (1, \ldots, 1)$, the factor $e^c$ cancels:
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \label{softmax-shift-invariance}$$
#
# Log-sum-exp is not invariant but moves along, $\mathrm{lse}(z + c\,\mathbf{1}) = \mathrm{lse}(z) + c$. Take
# any number $m$ out of the sum:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \label{shifted-lse}$$

# %% [markdown] id="stable-max"
# On paper every $m$ is as good as any other. In a computer one is best: the maximum. Then no exponent is
# positive, so nothing overflows; and one exponent is 0, so the sum is at least 1 and never vanishes.
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \label{stable-softmax}$$
#
# The smaller the number format, the sooner the plain formula dies. **Predict** the largest score that float16
# can put through `np.exp`.

# %% id="stable-verify"
verify("softmax-shift-invariance", "shifted-lse", "stable-softmax")

# %% id="overflow-figure" tags=["predicted"]
formats = (np.float16, np.float32, np.float64)
highest = [math.log(np.finfo(dtype).max) for dtype in formats]
tiniest = [np.finfo(dtype).smallest_subnormal for dtype in formats]
lowest = [math.log(tiny) - math.log(2) for tiny in tiniest]  # below, exp rounds to 0
figures.overflow_ranges([dtype.__name__ for dtype in formats], lowest, highest)

# %% [markdown] id="overflow-answer" tags=["answer"]
# The largest score is about 11.1, because the largest float16 is 65504 and $\ln 65504 \approx 11.1$. A score of 12 is already
# too much, and scores of 12 are nothing unusual: chapter {lesson}`scaling` shows that unscaled scores grow like $\sqrt{d_k}$.

# %% [markdown] id="overflow-notice"
# Subtracting the maximum costs one pass and no accuracy worth
# mentioning (Blanchard, Higham and Higham, 2019, analyse the rounding errors). Both lines of section {section}`hook`, now
# in all three formats:

# %% id="stable-code"
for dtype in formats:
    scores = np.array([1000.0, 1001.0, 1002.0], dtype=dtype)
    shifted = np.exp(scores - scores.max())
    weights = shifted / shifted.sum()
    assert np.allclose(weights, softmax(scores), rtol=2e-3)
    print(f"{dtype.__name__}:", weights)

# %% [markdown] id="axes"
# Attention has a whole matrix of scores: one row per query, one column per key. Each row is a softmax of its own,
# so both reductions, the maximum and the sum, run along the **last axis**. `keepdims=True` keeps that axis with
# length 1, so that the result lines up with the rows again. **Predict** what a softmax along the other axis does to
# the row sums.

# %% id="axes-code" tags=["predicted"]
scores = np.array([[1000.0, 1001.0, 1002.0], [0.0, 0.0, 5.0]])  # queries by keys
row_max = scores.max(axis=-1, keepdims=True)
flat = scores.max(axis=-1)
print("shape of the maxima", row_max.shape, "  without keepdims", flat.shape)
unnormalised = np.exp(scores - row_max)
weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
assert np.allclose(weights, softmax(scores))
print("row sums along the last axis ", weights.sum(axis=-1))
print("row sums after the wrong axis", softmax(scores, axis=0).sum(axis=-1))

# %% [markdown] id="axes-answer" tags=["answer"]
# The rows no longer sum to 1. Here the sums are 3 and 0, because along the other axis each *column* shares out a weight of 1,
# and the first query wins all three columns: it gets all the weight, and the other query nothing.

# %% [markdown] id="axes-notice"
# A softmax along the wrong axis raises no error and no warning, and its numbers lie between 0 and 1: the mistake shows only
# in the sums. Without `keepdims` NumPy refuses the shapes (2, 3) and (2,), and for a square matrix it would not even do that.

# %% [markdown] id="jacobian"
# ## The derivative
#
# Training needs to know how each weight answers to each score. Write $s = \sigma(z)$. From {eq}`log-softmax`,
# $\ln s_i = z_i - \mathrm{lse}(z)$. Differentiate both sides by $z_j$: on the left $\frac{1}{s_i}\frac{\partial
# s_i}{\partial z_j}$; on the right $\delta_{ij}$ from $z_i$ ($\delta_{ij}$ is 1 if $i = j$, else 0) and, by
# {eq}`lse-gradient`, $-s_j$. Multiply by $s_i$:
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \label{softmax-derivative}$$
#
# Collected in the Jacobian matrix $J_{ij} = \partial s_i / \partial z_j$:
#
# $$J = \mathrm{diag}(s) - s\,s^\top \label{softmax-jacobian}$$

# %% [markdown] id="jacobian-predict"
# It is symmetric, as it must be: softmax is a gradient, so $J$ is the Hessian of lse. **Predict** the sign of
# each entry and the sum of each row before you look.

# %% id="jacobian-figure" tags=["predicted"]
weights = softmax(np.array([1.5, 1.0, 0.0, -1.0]))
jacobian = np.diag(weights) - np.outer(weights, weights)
assert np.allclose(jacobian, softmax_jacobian(weights))
figures.jacobian_heatmap(weights, jacobian)

# %% [markdown] id="jacobian-answer" tags=["answer"]
# The entries on the diagonal are positive and all others are negative, because a raised score takes weight for its own entry
# from all others. Each row sums to 0: it adds up the effects of raising all scores together, and then no weight moves.

# %% [markdown] id="null"
# If all scores are raised together, no weight moves: that is shift invariance, {eq}`softmax-shift-invariance`,
# differentiated by $c$.
#
# $$J\,\mathbf{1} = 0 \label{softmax-jacobian-annihilates-constants}$$
#
# Are there other directions that do nothing? The quadratic form tells. Multiply {eq}`softmax-jacobian` by $x$ from both
# sides, and recognise a variance under the weights $s$:
#
# $$x^\top J\,x = \sum_i s_i\,(x_i - \bar{x})^2, \qquad \bar{x} = \sum_j s_j x_j \label{softmax-jacobian-is-variance}$$
#
# (Between the two sides stands $\sum_i s_i x_i^2 - (\sum_i s_i x_i)^2$: mean square minus squared mean.)

# %% [markdown] id="null-rank"
# It is never negative, so lse is convex; and with all $s_i > 0$ it vanishes only if every $x_i$ equals
# $\bar{x}$. The null space holds the constants and nothing else: $J$ has **rank $n - 1$**.
#
# A backward pass never needs $J$ itself, only its product with an incoming gradient $g$ (how the loss $L$ answers to
# each weight): $\partial L / \partial z_j = \sum_i g_i\, \partial s_i / \partial z_j$, entry $j$ of $J^\top g$. Two
# terms, no matrix ($\odot$ multiplies entry by entry):
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \label{softmax-vector-jacobian-product}$$

# %% id="vjp-code"
rng = np.random.default_rng(2)
gradient = rng.normal(size=4)
print("rank of J:", np.linalg.matrix_rank(jacobian), "of", len(weights))
print("with J:   ", jacobian.T @ gradient)
print("without J:", weights * (gradient - weights @ gradient))
assert np.allclose(softmax_vjp(weights, gradient), jacobian.T @ gradient)

# %% [markdown] id="vjp-notice"
# The same numbers from $O(n)$ work instead of $O(n^2)$. For a row of 100 000 keys the matrix would hold
# $10^{10}$ entries; the product needs only $s$ and $g$. Finite differences agree with both:

# %% id="vjp-differences"
scores, step = np.array([1.5, 1.0, 0.0, -1.0]), 1e-5
moved = [softmax(scores + step * e) - softmax(scores - step * e) for e in np.eye(4)]
error = np.abs(np.stack(moved, axis=1) / (2 * step) - jacobian).max()
print("finite differences agree to 1e-9:", error < 1e-9)

# %% id="jacobian-verify"
verify("softmax-derivative", "softmax-jacobian")
verify("softmax-jacobian-annihilates-constants", "softmax-jacobian-is-variance")
verify("softmax-vector-jacobian-product")

# %% [markdown] id="spot-elementwise"
# ### Spot the mistake: softmax as an elementwise function
#
# "The derivative of softmax is $s(1 - s)$", says many a forum answer. That is the derivative of the *logistic*
# function, which looks at one number. It is tempting because the diagonal of $J$ agrees. Put it into the backward pass:

# %% id="spot-elementwise-code"
show("softmax-vector-jacobian-product", wrong="each weight with its own sigmoid")
show("softmax-vector-jacobian-product", s=[0.5, 0.3, 0.2], g=[1, 1, 1])

# %% [markdown] id="spot-elementwise-notice"
# The second calculation is a test without any arithmetic. The weights always sum to 1, so a loss that counts them all alike
# ($g = \mathbf{1}$) cannot be improved, and the gradient is 0; the elementwise formula still hands every score one.
# Writing $\sigma(z_i)$ for $\sigma(z)_i$ invites this mistake.

# %% [markdown] id="temperature"
# ## Temperature
#
# How concentrated are the weights? Their entropy, with {eq}`log-softmax` inserted for $\ln s_i$:
#
# $$H(s) = \mathrm{lse}(z) - \sum_i s_i z_i \label{softmax-entropy}$$
#
# A weighted mean, say $\bar{z} = \sum_i s_i z_i$, has its variance $\mathrm{Var}_s(z) = \sum_i s_i (z_i - \bar{z})^2$.
# Let $s = \sigma(\beta z)$, so that $H = \mathrm{lse}(\beta z) - \beta \bar{z}$, and turn $\beta$ up. By
# {eq}`lse-gradient` the first term grows at the rate $\bar{z}$. The second grows at the rate
# $\bar{z} + \beta\,\mathrm{d}\bar{z}/\mathrm{d}\beta$; since $\mathrm{d}s/\mathrm{d}\beta = J z$, the mean grows at
# the rate $z^\top J z$, which is that variance by {eq}`softmax-jacobian-is-variance`. The two $\bar{z}$ cancel:
#
# $$\frac{\mathrm{d} H}{\mathrm{d} \beta} = -\beta\, \mathrm{Var}_s(z) \label{softmax-entropy-derivative}$$
#
# For $\beta > 0$ it is never positive, and 0 only if all scores are equal: cooling sharpens, and the larger the
# spread of scores that still carry weight, the faster.

# %% [markdown] id="temperature-limits"
# Where does it end? Divide numerator and denominator by $e^{\max_j z_j / T}$. As $T \to 0^+$ every term below
# the maximum vanishes, and $k$ tied winners share. As $T \to \infty$ all terms become 1. The square bracket is 1
# if its statement holds, else 0:
#
# $$\lim_{T \to 0^+} \sigma(z / T)_i = \frac{[\,z_i = \max_j z_j\,]}{k}, \qquad
# \lim_{T \to \infty} \sigma(z / T)_i = \frac{1}{n} \label{temperature-limits}$$
#
# **Predict** the coldest picture for the scores (2, 2, 1, 0), where two are tied.

# %% id="temperature-figure" tags=["predicted"]
scores, temperatures = np.array([2.0, 2.0, 1.0, 0.0]), (0.1, 1.0, 10.0)
weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
figures.temperature_bars(scores, weights, temperatures)

# %% [markdown] id="temperature-notice" tags=["answer"]
# In the coldest picture the two tied scores have half of the weight each, and the others almost nothing. A tie stays a tie at
# every temperature, because equal scores have equal weights, and no cooling can break that.

# %% id="temperature-verify"
verify("softmax-entropy", "softmax-entropy-derivative", "temperature-limits")

# %% [markdown] id="explorable-before"
# When does the softmax stop passing changes on? Move the scores and the temperature yourself; the card below needs no Python.
# Find a setting where the Jacobian is almost zero, then press "+100 to all".

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="saturation"
# ## Saturation: when the gradient dies
#
# How large is $J$? The sum of its squared entries follows from {eq}`softmax-derivative` by separating $i = j$:
#
# $$\|J\|_F^2 = \sum_i s_i^2\,(1 - 2 s_i) + \Bigl(\sum_i s_i^2\Bigr)^2 \label{softmax-jacobian-frobenius-norm}$$
#
# The spectral norm $\|J\|_2$ is the largest factor by which $J$ can stretch a vector. Since $J$ is symmetric
# and positive semidefinite, it is the largest $x^\top J x$ with $\|x\| = 1$: by {eq}`softmax-jacobian-is-variance`, a variance. The
# variance of numbers in an interval is at most a quarter of its length squared (Popoviciu), and two entries
# $a$, $b$ of a unit vector obey $(a - b)^2 \le 2 (a^2 + b^2) \le 2$:
#
# $$\|J\|_2 \le \tfrac{1}{2} \label{softmax-jacobian-norm-bound}$$

# %% [markdown] id="saturation-bound"
# Softmax never amplifies a gradient; it keeps at most half. (Equality: $s = (\frac12, \frac12)$.) The other end
# matters more. No eigenvalue is negative, so the largest is at most their sum, the trace $\sum_i s_i(1 - s_i)$:
#
# $$\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max}) \label{saturated-softmax-jacobian-vanishes}$$
#
# The last step: $\sum_i s_i^2 \ge s_{\max}^2$, and $1 - s_{\max}^2 = (1 - s_{\max})(1 + s_{\max})$. As one
# weight goes to 1, **the whole Jacobian goes to 0**. **Predict** at which $\beta$ the norm below has fallen under 0.01.

# %% id="saturation-verify"
verify("softmax-jacobian-frobenius-norm", "softmax-jacobian-norm-bound")
verify("saturated-softmax-jacobian-vanishes")

# %% id="saturation-figure" tags=["predicted"]
scores, sharpness = np.array([1.5, 1.0, 0.0, -1.0]), np.geomspace(0.05, 50.0, 600)
rows = softmax(sharpness[:, None] * scores)
norm = np.linalg.norm(softmax_jacobian(rows), ord=2, axis=(-2, -1))
bound = 1.0 - (rows**2).sum(axis=-1)
sharpened = sharpness[:, None] * scores
entropy = logsumexp(sharpened) - (rows * sharpened).sum(axis=-1)
figures.saturation(sharpness, norm, bound, entropy, max_entropy=math.log(4.0))

# %% id="saturation-code" tags=["predicted"]
falling = sharpness > 2.0
reached = np.interp(-0.01, -norm[falling], sharpness[falling])
print("norm below 0.01 from beta =", reached.round(1))

# %% [markdown] id="saturation-answer" tags=["answer"]
# The norm falls under 0.01 at $\beta = 10.6$. The best score leads the second by 0.5, so $1 - s_{\max}$ is about
# $e^{-\beta / 2}$, and the bound $2\,e^{-\beta / 2}$ of {eq}`saturated-softmax-jacobian-vanishes` reaches 0.01 there.

# %% [markdown] id="saturation-notice"
# "The gradient of softmax never vanishes", you may read, because $e^x$ is never zero. The weights are indeed
# never zero; their *derivative* is as good as zero once one score leads by several units of $T$. A model whose
# scores start out large hardly learns from the start. That is the problem chapter {lesson}`scaling` solves with $1 / \sqrt{d_k}$.

# %% [markdown] id="cross-entropy"
# ## A loss that undoes the saturation
#
# A classifier is trained to give the right class $y$ a large weight: its loss is $-\ln s_y$, the
# **cross-entropy**. With {eq}`log-softmax`,
#
# $$-\ln s_y = \mathrm{lse}(z) - z_y \label{cross-entropy}$$
#
# Both terms have derivatives we know, the first from {eq}`lse-gradient`:
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \label{cross-entropy-gradient}$$
#
# Prediction minus truth: $s - e_y$, where the vector $e_y$ is 1 at $y$, else 0. **Predict** the two gradients of a
# model that is badly and confidently wrong: this one, and that of the squared error $\frac12 \|s - e_y\|^2$, which
# goes through $J$.

# %% id="cross-entropy-verify"
verify("cross-entropy", "cross-entropy-gradient")

# %% id="cross-entropy-code" tags=["predicted"]
truth = np.array([0.0, 0.0, 1.0])
weights = softmax(np.array([7.0, 1.0, 0.0]))
print("weights:      ", weights)
print("cross-entropy:", weights - truth)
print("squared error:", softmax_vjp(weights, weights - truth))

# %% [markdown] id="cross-entropy-answer" tags=["answer"]
# The gradient of the cross-entropy is nearly $(1, 0, -1)$, because the logarithm cancels the factor $s_y$ of
# $\partial s_y / \partial z_i$, {eq}`softmax-derivative`: the more wrong the model is, the stronger the signal. That of the
# squared error is below 0.005 in every entry, because $J$ is nearly 0: the same mistake is hardly felt.

# %% [markdown] id="cross-entropy-notice"
# Attention weights have no such loss of their own, so inside a
# network the saturation of {eq}`saturated-softmax-jacobian-vanishes` is there to stay.

# %% [markdown] id="online"
# ## Maximum and sum in one pass
#
# {eq}`stable-softmax` reads the scores three times: for the maximum, for the sum, for the division. Can the first two be
# one? Keep the largest score so far, $m$, and the sum measured from it, $\ell = \sum e^{z_j - m}$.
# A new score $x$ may raise the maximum to $m'$; the old sum is then measured from the wrong place, by the
# factor $e^{m - m'}$:
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \label{online-softmax-update}$$
#
# (Milakov and Gimelshein, 2018.) The factor is at most 1, so nothing overflows.

# %% id="online-code"
row_max, row_sum = -math.inf, 0.0
for score in (1000.0, 1003.0, 1001.0):
    new_max = max(row_max, score)
    row_sum = row_sum * math.exp(row_max - new_max) + math.exp(score - new_max)
    row_max = new_max
    print(f"score {score:.0f}   max {row_max:.0f}   sum {row_sum:.4f}")

# %% [markdown] id="merge"
# The same works for blocks. Two workers hold the pairs $(m_A, \ell_A)$ and $(m_B, \ell_B)$ of their own
# scores, and bring both sums to the larger maximum:
#
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \label{merge-of-softmax-sums}$$
#
# The order of blocks and the places where we cut do not matter. This line is the heart of FlashAttention
# (chapter {lesson}`flash`), where blocks of scores come and go and no full row is ever stored.

# %% id="merge-code"
verify("online-softmax-update", "merge-of-softmax-sums")
scores = rng.normal(size=1000) * 50
blocks = np.split(scores, [130, 700])
maxima = np.array([block.max() for block in blocks])
sums = np.array([np.exp(block - block.max()).sum() for block in blocks])
merged = maxima.max() + math.log((sums * np.exp(maxima - maxima.max())).sum())
equal = math.isclose(merged, logsumexp(scores), rel_tol=1e-12)
print("merged lse equals lse of the whole row:", equal)

# %% [markdown] id="limits"
# ## What softmax cannot do
#
# - **Give an exact zero** to a finite score. Over many thousand keys the many small weights add up.
#   *Sparsemax* (Martins and Astudillo, 2016) projects the scores onto the simplex instead, and does reach zero.
# - **Learn once saturated**, {eq}`saturated-softmax-jacobian-vanishes`: keep scores small, with a scale (chapter {lesson}`scaling`) or
#   normalised vectors.
# - **Be split up** into independent entries: each weight waits for the whole row. This is what linear attention
#   gives up softmax for (chapter {lesson}`linear`), and what {eq}`merge-of-softmax-sums` lives with.
# - **Say "nothing fits"**: the weights sum to 1 even when all scores are poor.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost for $n$ scores |
# |---|---|---|
# | weights | $s = e^{z - m} / \sum_j e^{z_j - m}$, {eq}`stable-softmax` | $O(n)$, three passes |
# | normaliser | $\mathrm{lse}(z) = m + \ln \sum_j e^{z_j - m}$, {eq}`shifted-lse` | $O(n)$ |
# | gradient of lse | $s$, {eq}`lse-gradient` | free |
# | Jacobian | $\mathrm{diag}(s) - s s^\top$, {eq}`softmax-jacobian` | $O(n^2)$ |
# | backward pass | $s \odot (g - (s \cdot g) \mathbf{1})$, {eq}`softmax-vector-jacobian-product` | $O(n)$ |
# | entropy | $\mathrm{lse}(z) - \sum_i s_i z_i$, {eq}`softmax-entropy` | $O(n)$ |
# | loss and gradient | $\mathrm{lse}(z) - z_y$, {eq}`cross-entropy`, and $s - e_y$, {eq}`cross-entropy-gradient` | $O(n)$ |
# | merge of blocks | {eq}`merge-of-softmax-sums` | $O(1)$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Four wishes force the exponential; the temperature is all that is left to choose.
# - Softmax has the largest entropy for its average score, and it is the gradient of log-sum-exp.
# - Only differences of scores matter, so subtract the maximum: same weights, no overflow.
# - $J = \mathrm{diag}(s) - s s^\top$ is symmetric, has rank $n - 1$, and is never needed as a matrix.
# - A dominant weight silences the gradient; cross-entropy undoes this at the output, nothing does inside.
# - A running maximum and a rescaled running sum give maximum and normaliser in one pass.
#
# Now the [exercises](../work/ex_{lesson}`softmax`_softmax.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - J. S. Bridle (1990), *Probabilistic interpretation of feedforward classification network outputs*: the name.
# - E. T. Jaynes (1957), *Information theory and statistical mechanics*: maximum entropy as a principle.
# - B. Gao and L. Pavel (2017), [arXiv:1704.00805](https://arxiv.org/abs/1704.00805): softmax as a gradient map.
# - P. Blanchard, D. J. Higham and N. J. Higham (2019), [arXiv:1909.03469](https://arxiv.org/abs/1909.03469):
#   rounding errors of lse and softmax.
# - A. F. T. Martins and R. F. Astudillo (2016), [arXiv:1602.02068](https://arxiv.org/abs/1602.02068): sparsemax.
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): one-pass softmax.
