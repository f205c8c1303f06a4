# %% [markdown] id="title"
# # 02 Softmax: from scores to weights
#
# Attention compares a query with every key and gets one **score** for each. To average the values it needs
# **weights**: positive numbers that sum to 1. Softmax makes weights out of scores. This lesson takes the
# formula apart until nothing in it is a habit.
#
# **Afterwards you can** derive softmax in three ways, compute it for any floating-point scores, differentiate
# it with and without its matrix, say when its gradient dies, and compute it in one pass.
#
# **You need** exponentials, partial derivatives, a Lagrange multiplier, and some NumPy.
# **Time:** 75 minutes, and as much again for the [exercises](../work/02_softmax.ipynb).

# %% id="setup"
import math

import numpy as np

from attn_course import figures, verify
from attn_course.reference import logsumexp, softmax, softmax_jacobian, softmax_vjp

np.set_printoptions(precision=4, suppress=True)

# %% [markdown] id="hook"
# ## 2.1 Two lines that work, until they do not
#
# Here are the two lines everybody writes first: take exponentials, divide by their sum. Both score vectors
# below hold the same differences. **Predict** what the second call prints.

# %% id="hook-code"
with np.errstate(over="ignore", invalid="ignore"):  # keep NumPy quiet, look at the numbers
    for scores in (np.array([0.0, 1.0, 2.0]), np.array([1000.0, 1001.0, 1002.0])):
        unnormalised = np.exp(scores)
        print(scores, "->", unnormalised / unnormalised.sum())

# %% [markdown] id="hook-notice"
# The formula is right and the program is wrong. To mend it we must know which changes of the scores leave the
# weights alone, so we begin with the formula itself. For scores $z = (z_1, \ldots, z_n)$ it reads
#
# $$\sigma(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{n} e^{z_j}} \tag{2.1}$$
#
# We write $\sigma(z)_i$ and not $\sigma(z_i)$: every weight depends on **all** scores, through the sum.

# %% id="definition-verify"
verify("2.1")

# %% [markdown] id="range"
# Every term of the sum is positive, so for two or more finite scores each weight is a proper fraction:
#
# $$0 < \sigma(z)_i < 1, \qquad \sum_{i=1}^{n} \sigma(z)_i = 1 \tag{2.2}$$
#
# Mind the small print, which most texts leave out: *two or more*, *finite*, *in exact arithmetic*. **Predict**
# which of the three inputs below breaks the strict bounds.

# %% id="range-code"
verify("2.2")
print("one score:        ", softmax(np.array([3.0])))
print("a score of -inf:  ", softmax(np.array([1.0, 2.0, -np.inf])))
print("float32, far apart:", softmax(np.array([0.0, 200.0], dtype=np.float32)))

# %% [markdown] id="range-notice"
# All three do. One score takes all; a score of $-\infty$ gets exactly nothing (that is how masks work, in
# chapter 07); and $e^{-200}$ is a fine real number with no float32 to hold it. For *finite* scores on paper no
# weight is ever zero: softmax cannot ignore anything completely.

# %% [markdown] id="why-exp"
# ## 2.2 Why the exponential?
#
# Squares are positive too, and so is $\ln(1 + e^x)$. Why do we insist on $e^x$? Let us ask for little. One
# continuous positive function $f$ serves every entry, and we normalise: $w_i = f(z_i) / \sum_j f(z_j)$. The sum
# is common to all weights, so it leaves their ratios alone:
#
# $$\frac{w_i}{w_j} = \frac{f(z_i)}{f(z_j)} \tag{2.3}$$
#
# Now one demand more: scores have **no natural zero**. Adding the same constant $c$ to all of them must change
# no weight, hence no ratio.
#
# $$\frac{f(z_i + c)}{f(z_j + c)} = \frac{f(z_i)}{f(z_j)} \tag{2.4}$$

# %% [markdown] id="why-exp-predict"
# **Predict** which of three candidates keeps its weights when we add 3 to both scores. The figure shows the
# share of the first of two entries against the difference of their scores.

# %% id="why-exp-figure"
difference = np.linspace(-3.0, 3.0, 121)
maps = {"exp(x)": np.exp, "x² + 1": lambda x: x**2 + 1, "softplus(x)": lambda x: np.log1p(np.exp(x))}
shift = 3.0
shares = {
    name: np.stack([f(difference + c) / (f(difference + c) + f(np.full_like(difference, c))) for c in (0.0, shift)])
    for name, f in maps.items()
}
figures.softmax_maps(difference, shares, shift=shift)

# %% [markdown] id="why-exp-solve"
# Only one pair of curves coincides. To see that no other map can do it, put $z_j = 0$ in Eq. (2.4) and write
# $g(x) = f(x) / f(0)$. Multiplying out gives Cauchy's equation, which turns sums into products:
#
# $$g(x + c) = g(x)\,g(c) \tag{2.5}$$
#
# We asked for continuity only. Integrating over $c$ from 0 to 1 shows that differentiability comes for free:
#
# $$g(x) \int_0^1 g(c)\,dc = \int_x^{x+1} g(c)\,dc \tag{2.6}$$
#
# The right side is an integral of a continuous function between moving ends, so it is differentiable in $x$;
# the integral on the left is a positive number, so $g$ is differentiable as well.

# %% [markdown] id="why-exp-ode"
# Now differentiate Eq. (2.5) with respect to $c$ at $c = 0$, and call $g'(0) = \beta$:
#
# $$g'(x) = \beta\,g(x) \tag{2.7}$$
#
# With $g(0) = 1$ this differential equation has exactly one solution:
#
# $$g(x) = e^{\beta x} \tag{2.8}$$
#
# So $f(x) = f(0)\,e^{\beta x}$, the factor $f(0)$ cancels, and one number is left to choose, $\beta$:
#
# $$w_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} = \sigma(\beta z)_i, \qquad \beta = \frac{1}{T} \tag{2.9}$$

# %% id="why-exp-verify"
verify("2.3")
verify("2.4")
verify("2.5")
verify("2.6")
verify("2.7")
verify("2.8")
verify("2.9")

# %% [markdown] id="why-exp-notice"
# Four wishes (positive, normalised, shift-invariant, one continuous map for every entry) leave softmax and
# nothing else, up to the **temperature** $T$. A larger score earns a larger weight if $\beta > 0$; with
# $\beta = 0$ all weights are equal; a negative $\beta$ would reward the smallest score. Section 2.7 turns $T$.

# %% [markdown] id="spot-printed"
# ### Spot the mistake: numbers in print
#
# An introduction works the example softmax(0.9, 0.1, 0.7) and prints the weights .48, .22 and .30. They are
# positive and they sum to 1, so nobody stumbles. By Eq. (2.3) with $f = \exp$, the logarithm of a ratio of
# weights must be the difference of the scores: 0.8 for the first pair, 0.2 for the first and third.

# %% id="spot-printed-code"
scores, printed = np.array([0.9, 0.1, 0.7]), np.array([0.48, 0.22, 0.30])
print("sum", printed.sum(), "  log-ratios of the printed weights", np.log(printed[0] / printed[1:]))
print("softmax", softmax(scores), "log-ratios", np.log(softmax(scores)[0] / softmax(scores)[1:]))

# %% [markdown] id="spot-printed-notice"
# The second log-ratio, 0.47 instead of 0.2, gives it away. A sum of 1 proves little; **ratios** are the test.

# %% [markdown] id="entropy"
# ## 2.3 The least committed weights
#
# A second road to the same formula. Suppose all we ask of weights $p$ is a certain average score
# $\sum_i p_i z_i = m$. Many $p$ have it. Take the one that commits itself least: the one of largest **entropy**
# $H(p) = -\sum_i p_i \ln p_i$, measured in nats. With multipliers $\beta$ for the average and $\lambda$ for the sum,
#
# $$\mathcal{L} = -\sum_i p_i \ln p_i + \beta \Bigl(\sum_i p_i z_i - m\Bigr) + \lambda \Bigl(\sum_i p_i - 1\Bigr)$$
#
# Each $p_i$ occurs in three terms, whose derivatives we add:
#
# $$\frac{\partial \mathcal{L}}{\partial p_i} = -\ln p_i - 1 + \beta z_i + \lambda \tag{2.10}$$

# %% [markdown] id="entropy-solve"
# At the optimum this is zero. Solve for $p_i$; positivity comes out by itself:
#
# $$p_i = e^{\lambda - 1}\, e^{\beta z_i} \tag{2.11}$$
#
# The first factor is the same for all entries. It must make the sum 1, which fixes it:
#
# $$p_i = \frac{e^{\beta z_i}}{\sum_{j=1}^{n} e^{\beta z_j}} \tag{2.12}$$
#
# This is Eq. (2.9). Physicists call it the Gibbs distribution, with energy $-z_i$; the multiplier $\beta$ **is**
# the inverse temperature. (Jaynes, 1957, made the argument a principle.)

# %% [markdown] id="free-energy"
# A vanishing derivative might still be a saddle. One identity settles it, for **any** $p$ on the simplex. Take
# logarithms in Eq. (2.9), weight them with $p_i$, and sum:
#
# $$\sum_i p_i z_i + T\,H(p) = T \ln \sum_j e^{z_j / T} - T\,\mathrm{KL}(p \,\|\, \sigma(z/T)) \tag{2.13}$$
#
# The divergence $\mathrm{KL}(p \,\|\, q) = \sum_i p_i \ln (p_i / q_i)$ is never negative, and 0 only at $p = q$.
# So softmax is the one and only maximiser of "average score plus $T$ times entropy".

# %% id="entropy-verify"
verify("2.10")
verify("2.11")
verify("2.12")
verify("2.13")

# %% [markdown] id="simplex-predict"
# All weights of three entries form a triangle. Its corners put everything on one score; its centre is uniform.
# **Predict** where the path of $\sigma(z/T)$ starts and ends as $T$ grows.

# %% id="simplex-figure"
scores, temperature = np.array([1.0, 0.4, 0.0]), 0.5
points = figures.simplex_grid(60)
safe = np.where(points > 0.0, points, 1.0)  # 0 ln 0 counts as 0
objective = points @ scores - temperature * (points * np.log(safe)).sum(axis=-1)
path = np.stack([softmax(scores, temperature=float(t)) for t in np.geomspace(0.02, 50.0, 80)])
optimum = softmax(scores, temperature=temperature)
figures.simplex_entropy(points, objective, path, optimum, temperature=temperature, scores=scores)

# %% id="simplex-check"
best = points[objective.argmax()]
print("best of the grid", best, "  softmax(z / T)", optimum)
assert np.abs(best - optimum).max() < 1 / 60  # as close as the grid allows

# %% [markdown] id="lse"
# ## 2.4 Log-sum-exp: the number behind the weights
#
# The maximum in Eq. (2.13) is $T \ln \sum_j e^{z_j/T}$, and this function has a name:
# $\mathrm{lse}(z) = \ln \sum_j e^{z_j}$. Taking the logarithm of Eq. (2.1),
#
# $$\ln \sigma(z)_i = z_i - \mathrm{lse}(z) \tag{2.14}$$
#
# A log-weight is a score measured from lse. Now the third derivation, which is one line of chain rule: the outer
# derivative is 1 over the sum, the inner one is $e^{z_i}$.
#
# $$\frac{\partial\, \mathrm{lse}(z)}{\partial z_i} = \sigma(z)_i \tag{2.15}$$
#
# **Softmax is the gradient of log-sum-exp** (Gao and Pavel, 2017, Proposition 1).

# %% [markdown] id="lse-bounds"
# A gradient of what? Of a smooth maximum. The largest term alone is at most the sum, and the sum is at most $n$
# times the largest term. Take logarithms:
#
# $$\max_j z_j \le \mathrm{lse}(z) \le \max_j z_j + \ln n \tag{2.16}$$
#
# The gradient of $\max$ picks the winner; the gradient of its smooth version spreads the choice a little. That
# is softmax: a soft arg max. **Predict** where along $z = (x, 0)$ the gap to the maximum is largest.

# %% id="lse-figure"
x = np.linspace(-4.0, 4.0, 161)
lower = np.maximum(x, 0.0)
lse = logsumexp(np.stack([x, np.zeros_like(x)], axis=-1))
figures.lse_bounds(x, lse, lower, lower + math.log(2.0))

# %% id="lse-verify"
verify("2.14")
verify("2.15")
verify("2.16")

# %% [markdown] id="stable"
# ## 2.5 Numbers that overflow
#
# Back to the failure of section 2.1. Shift invariance was a wish; for softmax it is a fact. With
# $\mathbf{1} = (1, \ldots, 1)$, the factor $e^c$ cancels:
#
# $$\sigma(z + c\,\mathbf{1}) = \sigma(z) \tag{2.17}$$
#
# Log-sum-exp is not invariant but moves along, $\mathrm{lse}(z + c\,\mathbf{1}) = \mathrm{lse}(z) + c$. Take
# any number $m$ out of the sum:
#
# $$\mathrm{lse}(z) = m + \ln \sum_{j=1}^{n} e^{z_j - m} \tag{2.18}$$

# %% [markdown] id="stable-max"
# On paper every $m$ is as good as any other. In a computer one is best: the maximum. Then no exponent is
# positive, so nothing overflows; and one exponent is 0, so the sum is at least 1 and never vanishes.
#
# $$\sigma(z)_i = \frac{e^{z_i - m}}{\sum_{j=1}^{n} e^{z_j - m}}, \qquad m = \max_j z_j \tag{2.19}$$
#
# The smaller the number format, the sooner the plain formula dies. **Predict** the largest score that float16
# can put through `np.exp`.

# %% id="stable-verify"
verify("2.17")
verify("2.18")
verify("2.19")

# %% id="overflow-figure"
formats = (np.float16, np.float32, np.float64)
highest = [math.log(np.finfo(dtype).max) for dtype in formats]
lowest = [math.log(np.finfo(dtype).smallest_subnormal) - math.log(2) for dtype in formats]  # below, exp rounds to 0
figures.overflow_ranges([dtype.__name__ for dtype in formats], lowest, highest)

# %% [markdown] id="overflow-notice"
# In float16 a score of 12 is already too much, and scores of 12 are nothing unusual: chapter 03 shows that
# unscaled scores grow like $\sqrt{d_k}$. Subtracting the maximum costs one pass and no accuracy worth
# mentioning (Blanchard, Higham and Higham, 2019, analyse the rounding errors). Both lines of section 2.1, now
# in all three formats:

# %% id="stable-code"
for dtype in formats:
    scores = np.array([1000.0, 1001.0, 1002.0], dtype=dtype)
    shifted = np.exp(scores - scores.max())
    weights = shifted / shifted.sum()
    assert np.allclose(weights, softmax(scores), rtol=2e-3)
    print(f"{dtype.__name__}:", weights)

# %% [markdown] id="jacobian"
# ## 2.6 The derivative
#
# Training needs to know how each weight answers to each score. Write $s = \sigma(z)$. From Eq. (2.14),
# $\ln s_i = z_i - \mathrm{lse}(z)$. Differentiate both sides by $z_j$: on the left $\frac{1}{s_i}\frac{\partial
# s_i}{\partial z_j}$; on the right $\delta_{ij}$ from $z_i$ ($\delta_{ij}$ is 1 if $i = j$, else 0) and, by
# Eq. (2.15), $-s_j$. Multiply by $s_i$:
#
# $$\frac{\partial s_i}{\partial z_j} = s_i\,(\delta_{ij} - s_j) \tag{2.20}$$
#
# Collected in the Jacobian matrix $J_{ij} = \partial s_i / \partial z_j$:
#
# $$J = \mathrm{diag}(s) - s\,s^\top \tag{2.21}$$

# %% [markdown] id="jacobian-predict"
# It is symmetric, as it must be: softmax is a gradient, so $J$ is the Hessian of lse. **Predict** the sign of
# each entry and the sum of each row before you look.

# %% id="jacobian-figure"
weights = softmax(np.array([1.5, 1.0, 0.0, -1.0]))
jacobian = np.diag(weights) - np.outer(weights, weights)
assert np.allclose(jacobian, softmax_jacobian(weights))
figures.jacobian_heatmap(weights, jacobian)

# %% [markdown] id="null"
# Raise one score, and its weight grows at the expense of all others. Raise all scores together, and nothing
# moves: that is shift invariance, Eq. (2.17), differentiated by $c$.
#
# $$J\,\mathbf{1} = 0 \tag{2.22}$$
#
# Are there other directions that do nothing? The quadratic form tells. Multiply Eq. (2.21) by $x$ from both
# sides, and recognise a variance under the weights $s$:
#
# $$x^\top J\,x = \sum_i s_i\,(x_i - \bar{x})^2, \qquad \bar{x} = \sum_j s_j x_j \tag{2.23}$$

# %% [markdown] id="null-rank"
# It is never negative, so lse is convex; and with all $s_i > 0$ it vanishes only if every $x_i$ equals
# $\bar{x}$. The null space holds the constants and nothing else: $J$ has **rank $n - 1$**.
#
# A backward pass never needs $J$ itself, only its product with an incoming gradient $g$ (how the loss answers to
# each weight). Two terms, no matrix ($\odot$ multiplies entry by entry):
#
# $$J^\top g = s \odot \bigl(g - (s \cdot g)\,\mathbf{1}\bigr) \tag{2.24}$$

# %% id="vjp-code"
rng = np.random.default_rng(2)
gradient = rng.normal(size=4)
print("rank of J:", np.linalg.matrix_rank(jacobian), "of", len(weights))
print("with J:   ", jacobian.T @ gradient)
print("without J:", weights * (gradient - weights @ gradient))
assert np.allclose(softmax_vjp(weights, gradient), jacobian.T @ gradient)

# %% [markdown] id="vjp-notice"
# The same numbers from $O(n)$ work instead of $O(n^2)$. For a row of 100 000 keys the matrix would hold
# $10^{10}$ entries; the product needs one row. Finite differences agree with both:

# %% id="vjp-differences"
scores, step = np.array([1.5, 1.0, 0.0, -1.0]), 1e-5
moved = [softmax(scores + step * e) - softmax(scores - step * e) for e in np.eye(4)]
error = np.abs(np.stack(moved, axis=1) / (2 * step) - jacobian).max()
print("finite differences agree to 1e-9:", error < 1e-9)

# %% id="jacobian-verify"
verify("2.20")
verify("2.21")
verify("2.22")
verify("2.23")
verify("2.24")

# %% [markdown] id="spot-elementwise"
# ### Spot the mistake: softmax as an elementwise function
#
# "The derivative of softmax is $s(1 - s)$", says many a forum answer. That is the derivative of the *logistic*
# function, which looks at one number. It is tempting because the diagonal of $J$ agrees. Try the two
# backward passes on a gradient that rewards all weights alike, so that no change of scores can help:

# %% id="spot-elementwise-code"
alike = np.ones(4)
print("s (1 - s) g :", weights * (1 - weights) * alike)
print("Eq. (2.24)  :", softmax_vjp(weights, alike))

# %% [markdown] id="spot-elementwise-notice"
# The weights always sum to 1, so a loss that counts them all alike cannot be improved; the elementwise formula
# still pushes every score upwards. Whoever writes $\sigma(z_i)$ instead of $\sigma(z)_i$ falls into this hole.

# %% [markdown] id="temperature"
# ## 2.7 Temperature
#
# How concentrated are the weights? Their entropy, with Eq. (2.14) inserted for $\ln s_i$:
#
# $$H(s) = \mathrm{lse}(z) - \sum_i s_i z_i \tag{2.25}$$
#
# Let $s = \sigma(\beta z)$, so that $H = \mathrm{lse}(\beta z) - \beta \bar{z}$ with the mean score
# $\bar{z} = \sum_i s_i z_i$, and turn $\beta$ up. By Eq. (2.15) the first term grows at the rate $\bar{z}$. The
# second grows at the rate $\bar{z} + \beta\,\mathrm{d}\bar{z}/\mathrm{d}\beta$, and by Eq. (2.23) the mean itself grows at the rate
# $z^\top J z$, a variance. The two $\bar{z}$ cancel:
#
# $$\frac{\mathrm{d} H}{\mathrm{d} \beta} = -\beta\, \mathrm{Var}_s(z) \tag{2.26}$$
#
# For $\beta > 0$ it is never positive: cooling always sharpens, and the larger the spread of scores that still
# carry weight, the faster.

# %% [markdown] id="temperature-limits"
# Where does it end? Divide numerator and denominator by $e^{\max_j z_j / T}$. As $T \to 0^+$ every term below
# the maximum vanishes, and $k$ tied winners share. As $T \to \infty$ all terms become 1. The square bracket is 1
# if its statement holds, else 0:
#
# $$\lim_{T \to 0^+} \sigma(z / T)_i = \frac{[\,z_i = \max_j z_j\,]}{k}, \qquad
# \lim_{T \to \infty} \sigma(z / T)_i = \frac{1}{n} \tag{2.27}$$
#
# **Predict** the coldest picture for the scores (2, 2, 1, 0), where two are tied.

# %% id="temperature-figure"
scores, temperatures = np.array([2.0, 2.0, 1.0, 0.0]), (0.1, 1.0, 10.0)
weights = np.stack([softmax(scores, temperature=t) for t in temperatures])
figures.temperature_bars(scores, weights, temperatures)

# %% id="temperature-verify"
verify("2.25")
verify("2.26")
verify("2.27")

# %% [markdown] id="temperature-notice"
# A tie stays a tie at every temperature: equal scores have equal weights, and no cooling can break that. Move
# the scores and the temperature yourself; the explorable below needs no Python. Find a setting where the
# Jacobian is almost zero, then press "+100 to all".

# %% id="explorable"
figures.softmax_explorable()

# %% [markdown] id="saturation"
# ## 2.8 Saturation: when the gradient dies
#
# How large is $J$? The sum of its squared entries follows from Eq. (2.20) by separating $i = j$:
#
# $$\|J\|_F^2 = \sum_i s_i^2\,(1 - 2 s_i) + \Bigl(\sum_i s_i^2\Bigr)^2 \tag{2.28}$$
#
# The spectral norm $\|J\|_2$ is the largest factor by which $J$ can stretch a vector. Since $J$ is symmetric
# and positive semidefinite, it is the largest $x^\top J x$ with $\|x\| = 1$: by Eq. (2.23), a variance. The
# variance of numbers in an interval is at most a quarter of its length squared (Popoviciu), and for a unit
# vector that length is at most $\sqrt{2}$:
#
# $$\|J\|_2 \le \tfrac{1}{2} \tag{2.29}$$

# %% [markdown] id="saturation-bound"
# Softmax never amplifies a gradient; it keeps at most half. (Equality: $s = (\frac12, \frac12)$.) The other end
# matters more. No eigenvalue is negative, so the largest is at most their sum, the trace $\sum_i s_i(1 - s_i)$:
#
# $$\|J\|_2 \le 1 - \sum_i s_i^2 \le 2\,(1 - s_{\max}) \tag{2.30}$$
#
# The last step: $\sum_i s_i^2 \ge s_{\max}^2$, and $1 - s_{\max}^2 = (1 - s_{\max})(1 + s_{\max})$. As one
# weight goes to 1, **the whole Jacobian goes to 0**. **Predict** at which $\beta$ the norm below has fallen under 0.01.

# %% id="saturation-figure"
scores, sharpness = np.array([1.5, 1.0, 0.0, -1.0]), np.geomspace(0.05, 50.0, 60)
rows = softmax(sharpness[:, None] * scores)
norm = np.linalg.norm(softmax_jacobian(rows), ord=2, axis=(-2, -1))
bound = 1.0 - (rows**2).sum(axis=-1)
entropy = logsumexp(sharpness[:, None] * scores) - (rows * sharpness[:, None] * scores).sum(axis=-1)
figures.saturation(sharpness, norm, bound, entropy, max_entropy=math.log(4.0))

# %% id="saturation-verify"
verify("2.28")
verify("2.29")
verify("2.30")
print("norm above 0.01 up to beta =", sharpness[norm > 0.01].max().round(1))

# %% [markdown] id="saturation-notice"
# "The gradient of softmax never vanishes", you may read, because $e^x$ is never zero. The weights are indeed
# never zero; their *derivative* is as good as zero once the scores are a few units of $T$ apart. A model whose
# scores start out large starts out deaf. That is the problem chapter 03 solves with $1 / \sqrt{d_k}$.

# %% [markdown] id="cross-entropy"
# ## 2.9 A loss that undoes the saturation
#
# A classifier is trained to give the right class $y$ a large weight: its loss is $-\ln s_y$, the
# **cross-entropy**. With Eq. (2.14),
#
# $$-\ln s_y = \mathrm{lse}(z) - z_y \tag{2.31}$$
#
# Both terms have derivatives we know, the first from Eq. (2.15):
#
# $$\frac{\partial}{\partial z_i}\,(-\ln s_y) = s_i - \delta_{iy} \tag{2.32}$$
#
# Prediction minus truth. **Predict** the two gradients of a model that is badly and confidently wrong: this one,
# and that of the squared error $\frac12 \|s - y\|^2$, which goes through $J$.

# %% id="cross-entropy-code"
verify("2.31")
verify("2.32")
truth = np.array([0.0, 0.0, 1.0])
weights = softmax(np.array([7.0, 1.0, 0.0]))
print("weights:      ", weights)
print("cross-entropy:", weights - truth)
print("squared error:", softmax_vjp(weights, weights - truth))

# %% [markdown] id="cross-entropy-notice"
# The logarithm cancels the factor $s_i$ of Eq. (2.20): the more wrong, the stronger the signal. Through the
# squared error the same mistake is hardly felt. Attention weights have no such loss of their own, so inside a
# network the saturation of Eq. (2.30) is there to stay.

# %% [markdown] id="online"
# ## 2.10 One pass is enough
#
# Eq. (2.19) reads the scores three times: for the maximum, for the sum, for the division. Can we find maximum
# and sum together? Keep the largest score so far, $m$, and the sum measured from it, $\ell = \sum e^{z_j - m}$.
# A new score $x$ may raise the maximum to $m'$; the old sum is then measured from the wrong place, by the
# factor $e^{m - m'}$:
#
# $$m' = \max(m, x), \qquad \ell' = \ell\, e^{m - m'} + e^{x - m'} \tag{2.33}$$
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
# $$\ell_{A \cup B} = \ell_A\, e^{m_A - m} + \ell_B\, e^{m_B - m}, \qquad m = \max(m_A, m_B) \tag{2.34}$$
#
# The order of blocks and the places where we cut do not matter. This line is the heart of FlashAttention
# (chapter 12), where blocks of scores come and go and no full row is ever stored.

# %% id="merge-code"
verify("2.33")
verify("2.34")
scores = rng.normal(size=1000) * 50
blocks = np.split(scores, [130, 700])
maxima = np.array([block.max() for block in blocks])
sums = np.array([np.exp(block - block.max()).sum() for block in blocks])
merged = maxima.max() + math.log((sums * np.exp(maxima - maxima.max())).sum())
print("merged lse equals lse of the whole row:", math.isclose(merged, logsumexp(scores), rel_tol=1e-12))

# %% [markdown] id="limits"
# ## 2.11 What softmax cannot do
#
# - **Give an exact zero** to a finite score. Over many thousand keys the many small weights add up.
#   *Sparsemax* (Martins and Astudillo, 2016) projects the scores onto the simplex instead, and does reach zero.
# - **Learn once saturated**, Eq. (2.30): keep scores small, with a scale (chapter 03) or normalised vectors.
# - **Be split up** into independent entries: each weight waits for the whole row. This is what linear attention
#   gives up softmax for (chapter 11), and what Eq. (2.34) lives with.
# - **Say "nothing fits"**: the weights sum to 1 even when all scores are poor.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost for $n$ scores |
# |---|---|---|
# | weights | $s = e^{z - m} / \sum_j e^{z_j - m}$, Eq. (2.19) | $O(n)$, three passes |
# | normaliser | $\mathrm{lse}(z) = m + \ln \sum_j e^{z_j - m}$, Eq. (2.18) | $O(n)$ |
# | gradient of lse | $s$, Eq. (2.15) | free |
# | Jacobian | $\mathrm{diag}(s) - s s^\top$, Eq. (2.21) | $O(n^2)$ |
# | backward pass | $s \odot (g - (s \cdot g) \mathbf{1})$, Eq. (2.24) | $O(n)$ |
# | entropy | $\mathrm{lse}(z) - \sum_i s_i z_i$, Eq. (2.25) | $O(n)$ |
# | loss and gradient | $\mathrm{lse}(z) - z_y$ and $s - \delta_y$, Eq. (2.32) | $O(n)$ |
# | merge of blocks | Eq. (2.34) | $O(1)$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Four wishes force the exponential; the temperature is all that is left to choose.
# - Softmax has the largest entropy for its average score, and it is the gradient of log-sum-exp.
# - Only differences of scores matter, so subtract the maximum: same weights, no overflow.
# - $J = \mathrm{diag}(s) - s s^\top$ is symmetric, has rank $n - 1$, and is never needed as a matrix.
# - A dominant weight silences the gradient; cross-entropy undoes this at the output, nothing does inside.
# - A running maximum and a rescaled running sum compute softmax in one pass.
#
# Now the [exercises](../work/02_softmax.ipynb): nine tasks, about 85 minutes.

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
