# %% [markdown] id="title"
# # {lesson}`linear` Attention without softmax: a memory of fixed size
#
# Softmax attention compares every query with every key: $T^2$ scores, and a cache that grows with the text. Without the
# softmax, what all these scores give can be read from a matrix of fixed size, written once at each position. This lesson
# shows what blocks the short way, three equal ways to walk it, what such a memory can hold, and why softmax still wins at
# recall.
#
# **Afterwards you can** say in which sense attention is a kernel method, build random features for it, re-bracket, switch
# between parallel, recurrent and chunked form, predict where the state becomes cheaper, explain interference and overwriting,
# and derive the delta rule.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax`, {lesson}`scaling`, {lesson}`attention`, {lesson}`self_attention`,
# {lesson}`masking` and {lesson}`absorption` (similarities, softmax, masks, the product $W_Q W_K^\top$). **Time:** 75 minutes,
# without the [exercises](../work/ex_{lesson}`linear`_linear.ipynb).

# %% id="setup"
import numpy as np

from attn_course import alive, costs, show, verify_lesson
from attn_course.lessons.linear import figures
from attn_course.lessons.linear.experiments import OVERWRITING, RECALL
from attn_course.lessons.linear.experiments_speed import SPEED
from attn_course.reference import attention, delta_rule_attention
from attn_course.reference import draw_projections, elu_features
from attn_course.reference import linear_attention, positive_random_features, softmax

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: at the softmax, which we take out, and at the two matrices of $T \times T$ numbers, which
# are then no longer needed.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## One bracket
#
# Three matrices, $Q$, $K$, $V$, of 65 536 rows and 64 columns each. The product $Q K^\top V$ can be computed from the left,
# $(Q K^\top) V$, or from the right, $Q (K^\top V)$. The result is the same. **Predict** how much cheaper the second is.

# %% id="hook-code" tags=["predicted"]
length, d = 65_536, 64
left = 2 * length * length * d + 2 * length * length * d
right = 2 * d * length * d + 2 * length * d * d
print(f"scores first: {left / 1e9:.0f} GFLOP,", end=" ")
print(f"{length**2 / 1e9:.1f} G numbers in between")
print(f"state first:  {right / 1e9:.1f} GFLOP, {d**2} numbers in between", end="  ")
print(f"({left // right} times fewer FLOPs)")

# %% [markdown] id="hook-answer" tags=["answer"]
# The second order takes 1024 times fewer operations, because $d = 64$ takes the place of $T = 65\,536$ in each product, and in between stand
# 4096 numbers instead of four billion.

# %% [markdown] id="hook-notice"
# Attention is this product with a softmax inside. So why does anybody pay for the first order? What exactly stands in the way of the second,
# and what is lost when it is removed?

# %% [markdown] id="kernel"
# ## The kernel inside the softmax
#
# Attention takes two steps: a similarity $\kappa$ of query and key, then an average normalised by its sum, the smoother of
# {eq}`soft-lookup`. Softmax attention is the choice
#
# $$z_i = \frac{\sum_j \kappa(q_i, k_j)\, v_j}{\sum_j \kappa(q_i, k_j)}, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}
# \label{softmax-as-kernel-smoother}$$
#
# From here on we take queries as already divided by $\sqrt{d_k}$, so that a score is $q \cdot k$. To compare this kernel with
# the Gaussian one of lesson {lesson}`lookup`, complete the square, $2 q \cdot k = |q|^2 + |k|^2 - |q - k|^2$:
#
# $$e^{q \cdot k} = e^{|q|^2 / 2}\; e^{-|q - k|^2 / 2}\; e^{|k|^2 / 2} \label{exponential-and-gaussian-kernel}$$
#
# The first factor is the same along a row and cancels. The last does not. **Predict** which of two keys at the same distance
# from the query gets more weight.

# %% id="kernel-code" tags=["predicted"]
query, keys = np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 0.0]])
gaussian = np.exp(-((query - keys) ** 2).sum(axis=1) / 2)
print("Gaussian:", gaussian / gaussian.sum(), "  softmax:", softmax(keys @ query))

# %% [markdown] id="kernel-answer" tags=["answer"]
# The longer key gets more weight, because the factor $e^{|k|^2 / 2}$ grows with its length: softmax is a Gaussian smoother that favours long
# keys.

# %% [markdown] id="features"
# A **feature map** writes a kernel as a dot product, $\kappa(q, k) = \phi(q) \cdot \phi(k)$. For a power of $q \cdot k$ it is
# the multinomial theorem, with one feature for each monomial:
#
# $$\frac{(q \cdot k)^n}{n!} = \sum_{|\alpha| = n} \frac{q^\alpha}{\sqrt{\alpha!}}\, \frac{k^\alpha}{\sqrt{\alpha!}}
# \label{power-kernel-features}$$
#
# Here $\alpha$ holds one exponent for each feature, $q^\alpha = \prod_a q_a^{\alpha_a}$, $\alpha! = \prod_a \alpha_a!$ and
# $|\alpha| = \sum_a \alpha_a$. Summed over $n$, the left side is the series of the exponential:
#
# $$e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} \frac{q^\alpha}{\sqrt{\alpha!}}\,
# \frac{k^\alpha}{\sqrt{\alpha!}} \label{exponential-kernel-features}$$
#
# **Predict**: to which degree must we go at $q \cdot k = 4$, to be right within one per cent? How many monomials is that for
# $d_k = 64$?

# %% id="features-code" tags=["predicted"]
from math import comb, factorial

for degree in (2, 4, 8, 12):
    share = sum(4.0**n / factorial(n) for n in range(degree + 1)) / np.exp(4.0)
    print(f"degree {degree:2d}: {share:.3f} of the kernel,", end=" ")
    print(f"{comb(64 + degree, degree):.1e} features at d_k = 64")

# %% [markdown] id="features-answer" tags=["answer"]
# Degree 8 still leaves two per cent out, so degree 9 is the first that suffices. It takes about $10^{11}$ monomials, and degree 12 takes
# $10^{13}$.

# %% [markdown] id="mercer"
# So the feature map of the exponential is infinite, and its beginning is far too large to be computed. Still it proves something. A kernel that is a dot product of features is **positive definite**: for any points and any
# coefficients $c_i$,
#
# $$\sum_{i,j} c_i\, c_j\, e^{x_i \cdot x_j} = \Bigl\| \sum_i c_i\, \phi(x_i) \Bigr\|^2 \ge 0 \label{exponential-kernel-positive-definite}$$

# %% [markdown] id="mercer-limits"
# Such a symmetric function is called a Mercer kernel. So "softmax is a kernel" has a true core, with two limits. The
# *exponential* is the kernel; the softmax is its row-normalised smoother, and not even symmetric. And
# {eq}`exponential-kernel-positive-definite` takes both
# arguments from **one** space. Tokens $x$, $y$ meet as $x W_Q$ and $y W_K$, through $W = W_Q W_K^\top$:
#
# $$\ln \kappa(x, y) - \ln \kappa(y, x) = x\, (W - W^\top)\, y^\top, \qquad \kappa(x, y) = e^{x W y^\top}
# \label{token-kernel-is-asymmetric}$$
#
# **Predict** which of the three matrices below are symmetric.

# %% id="mercer-code" tags=["predicted"]
rng = np.random.default_rng(11)
x, w = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
kernel = np.exp(x @ x.T)
matrices = {"exp(X X^T)": kernel, "its softmax": softmax(x @ x.T)}
for name, matrix in (matrices | {"exp(X W X^T)": np.exp(x @ w @ x.T)}).items():
    print(f"{name:13} symmetric: {np.allclose(matrix, matrix.T)}")
smallest = np.linalg.eigvalsh(kernel)[0]
print("all eigenvalues of exp(X X^T) are positive:", bool(smallest > 0))

# %% [markdown] id="mercer-notice" tags=["answer"]
# Only $e^{X X^\top}$ is symmetric: each row of a softmax is divided by its own sum, and this $W$ is not symmetric.

# %% [markdown] id="random"
# ## Random features
#
# Infinitely many features cannot be summed, but they can be **sampled**. Assume $\omega \sim N(0, I)$. Completing the square
# in the exponent of the density gives
#
# $$\mathbb{E}_\omega\bigl[ e^{\omega \cdot x} \bigr] = e^{\|x\|^2 / 2} \label{gaussian-moment-generating-function}$$
#
# Put $x = q + k$: the right side is $e^{|q|^2/2}\, e^{|k|^2/2}\, e^{q \cdot k}$. Divide the first two factors out:
#
# $$\mathbb{E}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{q \cdot k}, \qquad
#  \phi_\omega(x) = e^{\omega \cdot x - |x|^2 / 2} \label{positive-features-are-unbiased}$$
#
# These are the *positive random features* of Choromanski et al. (2020, their Lemma 1): right on average, and never negative.
# How far off is one draw? The square of the product is {eq}`gaussian-moment-generating-function` at $2(q + k)$, and the mean's square comes
# off:
#
# $$\mathrm{Var}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)
# \label{variance-of-positive-features}$$
#
# With the mean of $m$ independent draws it is divided by $m$. **Predict** the relative error (standard deviation over kernel)
# of $m = 256$ features at $q = k$, for $|q| = 1$ and for $|q| = 2$.

# %% id="random-code" tags=["predicted"]
for size in (1.0, 2.0):
    q = np.array([[size, 0.0, 0.0]])
    error = np.sqrt((np.exp(4 * size**2) - 1) / 256)
    print(f"|q| = {size}: relative error {error:.2f}", end=" ")
    print("by {eq}`variance-of-positive-features`")

# %% [markdown] id="random-answer" tags=["answer"]
# At $|q| = 1$ the error is 0.46, about half of the kernel, and at $|q| = 2$ it is 186 times the kernel, because the variance grows
# *exponentially* with $|q + k|^2$.

# %% [markdown] id="trigonometric"
# Since the variance grows *exponentially* with $|q + k|^2$, short queries and keys are a condition of this method, and not a detail.
#
# An older choice uses sines and cosines (Rahimi and Recht, 2007). At an imaginary $x$, {eq}`gaussian-moment-generating-function` turns into
# a cosine:
#
# $$\mathbb{E}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr] = e^{q \cdot k}
# \label{trigonometric-features-are-unbiased}$$
#
# and $\cos(a - b) = \cos a \cos b + \sin a \sin b$ makes features of it. It is unbiased too. So why not?
#
# $$\begin{gathered}
# \mathrm{Var}_\omega\bigl[ e^{(|q|^2 + |k|^2) / 2} \cos\bigl( \omega \cdot (q - k) \bigr) \bigr] \\
# = \tfrac{1}{2}\, e^{|q|^2 + |k|^2} \bigl( 1 - e^{-|q - k|^2} \bigr)^2 \end{gathered} \label{variance-of-trigonometric-features}$$
#
# (Both variances: Choromanski et al., Lemma 2.) **Predict** which of the two is better where $q$ and $k$ point apart, that is, for the
# many keys that should get almost no weight.

# %% id="features-figure" tags=["predicted"]
angle = np.linspace(0, np.pi, 60)
overlap = np.cos(angle)  # |q| = |k| = 1
positive = np.sqrt(np.exp(2 + 2 * overlap) - 1)
waves = np.sqrt(0.5 * np.exp(2 - 2 * overlap)) * (1 - np.exp(-(2 - 2 * overlap)))
figures.feature_errors(np.degrees(angle), positive, waves)

# %% [markdown] id="trigonometric-answer" tags=["answer"]
# Positive features are better there: they are exact for opposite vectors of equal length and worst for $q = k$. With sines and cosines it is
# the other way round.

# %% [markdown] id="signs"
# What does such an error do to attention? Most keys are far away, and their weights should be near 0; with sines and cosines they come out
# with either sign. **Predict** what happens to a row of weights that is then divided by its sum.

# %% id="signs-code" tags=["predicted"]
rng = np.random.default_rng(3)
q, k = rng.normal(size=(200, 8)), rng.normal(size=(200, 8))
omega = draw_projections(8, 64, rng)
grow = [np.exp((a * a).sum(axis=1, keepdims=True) / 2) / 8 for a in (q, k)]
waves = [np.hstack([np.cos(a @ omega.T), np.sin(a @ omega.T)]) for a in (q, k)]
positive = [positive_random_features(a, omega) for a in (q, k)]
for name, estimate in (
    ("sines and cosines", (waves[0] * grow[0]) @ (waves[1] * grow[1]).T),
    ("positive", positive[0] @ positive[1].T),
):
    below, sums_below = (estimate < 0).mean(), (estimate.sum(axis=1) < 0).mean()
    print(f"{name:17} negative: {below:.0%} of the kernel,", end=" ")
    print(f"{sums_below:.0%} of the sums")

# %% [markdown] id="signs-notice" tags=["answer"]
# With sines and cosines such a row is no longer a row of weights: about half of the kernel and of the sums are negative, and a sum near 0
# makes the whole row blow up. Positive features keep every weight positive, however rough. (And rough they are: these vectors are not short.)

# %% [markdown] id="brackets"
# ## Moving the bracket
#
# Now let $\phi$ be *any* map to finitely many features and put it in the place of the exponential. Matrix products are
# associative:
#
# $$\bigl( \phi(Q)\, \phi(K)^\top \bigr)\, V = \phi(Q)\, \bigl( \phi(K)^\top V \bigr) \label{linear-attention-by-associativity}$$
#
# This is **linear attention** (Katharopoulos et al., 2020, with $\phi(x) = \mathrm{elu}(x) + 1$, which is positive). On
# tokens, with $\phi$ the identity, everything between the first $X$ and the output is one matrix made of the data:
#
# $$\begin{gathered}
# (X W_Q)\, (X W_K)^\top X W_V = X\, W(X), \\
# W(X) = W_Q W_K^\top X^\top X\, W_V \end{gathered}
# \label{linear-attention-mixes-features}$$

# %% [markdown] id="mixes"
# Lesson {lesson}`lookup` met three layers. A fixed one, $\phi(X W)$, cannot look at its data. $X\, W(X)$ mixes **features**, by a matrix
# that depends on the data. $P(X)\, X$ mixes **positions**. Linear attention is the second kind *and* the third: read from the
# right it is $X W(X)$, from the left $P X W_V$ with the unnormalised $P = X W_Q W_K^\top X^\top$. **Predict** the shapes of
# the two matrices for 7 tokens of 3 features.

# %% id="mixes-code" tags=["predicted"]
rng = np.random.default_rng(0)
x, w_q, w_k, w_v = rng.normal(size=(7, 3)), *rng.normal(size=(3, 3, 3))
mixes_features = w_q @ w_k.T @ x.T @ x @ w_v
mixes_positions = x @ w_q @ w_k.T @ x.T
print("features:", mixes_features.shape, " positions:", mixes_positions.shape)
print("same output:", np.allclose(x @ mixes_features, mixes_positions @ x @ w_v))
other_data = w_q @ w_k.T @ (2 * x).T @ (2 * x) @ w_v
print("other data, other matrix:", not np.allclose(mixes_features, other_data))

# %% [markdown] id="mixes-answer" tags=["answer"]
# The matrix that mixes features has the shape (3, 3), and the one that mixes positions (7, 7). Both give the same output, because they are
# one product in two brackets. With other data the first is another matrix.

# %% [markdown] id="spot-exp"
# ### Spot the mistake: "the exponential is the main obstacle"
#
# One reads that attention is slow because exponentials are expensive, and that dropping them makes it linear. Count: a score
# takes one exponential. Then look at what stands between the brackets. **Predict** the rank of $QK^\top$ and of $e^{QK^\top}$
# (entry by entry) for 7 queries and keys with 2 features. The last lines put a softmax into {eq}`linear-attention-by-associativity`, with
# one query, one key and $\phi = \mathrm{elu} + 1$, so $\phi(1) = 2$ and $\phi(0.5) = 1.5$.

# %% id="spot-exp-code" tags=["predicted"]
rng = np.random.default_rng(5)
q, k = 2 * rng.normal(size=(2, 7, 2))
print("rank of Q K^T:", np.linalg.matrix_rank(q @ k.T))
print("rank of its exponential:", np.linalg.matrix_rank(np.exp(q @ k.T), rtol=1e-12))
show("linear-attention-by-associativity", wrong="with a softmax")

# %% [markdown] id="spot-exp-answer" tags=["answer"]
# The rank of $Q K^\top$ is 2, because it cannot exceed the number of features; that of its exponential is 7, as large as it can be. And with
# one key a softmax is always 1, so the left bracket returns the value itself, while the right one multiplies it by $\phi(q)\, \phi(k)$.

# %% [markdown] id="rank"
# Take $m$ features, and $T$ different queries and keys in general position. Then
#
# $$\mathrm{rank}\bigl( \phi(Q)\, \phi(K)^\top \bigr) \le m < T = \mathrm{rank}\bigl( e^{Q K^\top} \bigr)
# \label{exponential-scores-full-rank}$$
#
# What blocks the bracket is that **no narrow
# product equals the matrix of exponentials**, and that the normaliser must see a whole row. The price of $\exp$ has nothing
# to do with it. Without any exponential, $(Q K^\top) V$ in this order costs $T^2$ all the same. FLOPs of the two orders, a
# multiply-add counting 2:
#
# $$F_{\mathrm{scores\ first}} = 2\, T^2 (d_k + d_v), \qquad F_{\mathrm{state\ first}} = 4\, T d_k d_v \label{linear-attention-flops}$$
#
# They are equal at the length
#
# $$T^\ast = \frac{2\, d_k d_v}{d_k + d_v} \label{linear-attention-crossover}$$
#
# and the exponentials, one for each score, are
#
# $$\frac{N_{\exp}}{F} = \frac{T^2}{2\, T^2 (d_k + d_v)} = \frac{1}{2\, (d_k + d_v)} \label{exponentials-per-flop}$$

# %% [markdown] id="crossover-predict"
# at $d_k = d_v = 64$ one for 256 FLOPs. (On hardware whose exponentials are slow this can matter; lesson {lesson}`flash` meets it. But it
# changes a factor, not the square.)
#
# **Predict** before you look: at $d_k = d_v = 256$, at which length does state first take less time on a CPU? And when scores
# first carries a softmax?

# %% id="crossover-code" tags=["predicted"]
for width in (128, 256):
    length = costs.linear_attention_crossover_length(width, width, is_causal=False)
    print(f"d = {width}: state first needs fewer FLOPs from T = {length}")

# %% id="crossover-figure" tags=["predicted"]
speed = SPEED.load()
lengths = speed.values("lengths", "256")[0]
ways = ("scores first", "softmax")
ratios = [speed.values(f"{way} / state first", "256") for way in ways]
figures.brackets(lengths, 256, *(np.median(ratio, axis=0) for ratio in ratios))

# %% id="crossover-numbers" tags=["predicted"]
for width in (128, 256):
    brackets, with_softmax = np.median(speed.values("crossing", str(width)), axis=0)
    ratio = np.median(speed.values("scores first / state first", str(width)), axis=0)
    print(f"d = {width}: measured crossing at T = {brackets:.0f},", end=" ")
    print(f"with softmax at {with_softmax:.0f}")
    print(f"         scores first / state first at T = d: {ratio[4]:.2f}")
measured = (speed.values("share of softmax", width) for width in ("128", "256"))
shares = [np.median(values) for values in measured]
print("share of the softmax itself at T = d:", [f"{share:.0%}" for share in shares])
for name in ("softmax", "chunked"):
    doubling = np.median(speed.values("doubling", name))
    print(f"1024 to 2048 positions, {name}: time x{doubling:.1f}")

# %% [markdown] id="crossover-notice" tags=["answer"]
# State first takes less time from about $T = 256$ on, where the FLOPs are equal, and from a little less where scores first carries a softmax,
# because that adds work to one side. At width 128 the crossing with softmax comes earlier still: calls and memory cost what no FLOP count
# sees (our guess; we did not trace it). Twice the length takes about four times as long with scores, about twice in chunks (next section).
#
# These are CPU seconds on a machine that was busy with other work, medians of interleaved runs, three repetitions
# (`attn_course/lessons/linear/results/speed.json`).

# %% [markdown] id="crossover-rule"
# A rule of thumb: scores first for texts shorter than $d$. At $T = 65\,536$ and $d = 64$ it takes a thousand times the FLOPs.

# %% [markdown] id="forms"
# ## Parallel, recurrent, chunked
#
# Assume causality: position $t$ may read keys $j \le t$. With a mask the product is no longer one bracket, but the sum over
# keys still splits off, because $\phi(q_t)$ does not depend on $j$:
#
# $$\begin{gathered}
# S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \\
# o_t = S_t^\top \phi(q_t) = \sum_{j \le t} \bigl( \phi(q_t) \cdot \phi(k_j) \bigr)\, v_j \end{gathered}
# \label{recurrent-linear-attention}$$
#
# with $S_0 = 0$. On the right stands the **parallel** form, all pairs under a mask; on the left the **recurrent** one: a
# network with a state of $d_\phi \times d_v$ numbers, however long the past. Proof by induction: $S_t = \sum_{j \le t}
# \phi(k_j) v_j^\top$. As an average, it needs the sum of the weights, which is the state of a value that is always 1:
#
# $$o_t = \frac{S_t^\top \phi(q_t)}{n_t \cdot \phi(q_t)}, \qquad n_t = n_{t-1} + \phi(k_t) \label{normalised-linear-attention}$$

# %% id="forms-code"
rng = np.random.default_rng(1)
query, key = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
value = rng.normal(size=(6, 2))
state, total, rows = np.zeros((3, 2)), np.zeros(3), []
for q, k, v in zip(elu_features(query), elu_features(key), value, strict=True):
    state, total = state + np.outer(k, v), total + k
    rows.append(state.T @ q / (total @ q))
parallel = np.tri(6) * (elu_features(query) @ elu_features(key).T)
parallel /= parallel.sum(axis=1, keepdims=True)
print("recurrent = parallel:", np.allclose(rows, parallel @ value))
options = {"feature_map": elu_features, "normalize": True}
ours = linear_attention(query, key, value, **options)
print("= the package:", np.allclose(rows, ours))

# %% [markdown] id="spot-normaliser"
# ### Spot the mistake: a normaliser that forgets, or mixes heads
#
# "$n_t = n_t + \phi(k_t)$", printed with $n_t$ on both sides, reads as if each step began at 0. Others sum the normaliser
# over all heads. Both run without error. **Predict** a test that finds them: what must come out if *every value is 1*?
# (In the last lines $\phi = \mathrm{elu} + 1$: $\phi(x) = e^x$ for $x \le 0$, else $x + 1$.)

# %% id="spot-normaliser-code" tags=["predicted"]
q, k = elu_features(rng.normal(size=(2, 3, 6, 4)))  # three heads
sums = np.tri(6) * (q @ k.swapaxes(-1, -2))
right = sums.sum(axis=-1, keepdims=True)
over_heads = right.sum(axis=0, keepdims=True)
for name, normaliser in (("right", right), ("summed over heads", over_heads)):
    output = sums @ np.ones((3, 6, 1)) / normaliser
    print(f"{name:18} an average of ones: {output.min():.2f} to {output.max():.2f}")
show("normalised-linear-attention", wrong="only the last key is counted")

# %% [markdown] id="spot-normaliser-answer" tags=["answer"]
# Ones must come out, because an average of ones is one. With the sum over all heads it is 0.20 to 0.47, and with the last key alone the
# normaliser is too small. The test is cheap; use it on every normaliser.

# %% [markdown] id="chunks"
# The recurrent form has the fewest FLOPs and the worst shape: one tiny product after another. **Chunks** take the middle way.
# Cut the sequence into pieces of $C$ rows; between pieces pass the state on, inside a piece use the parallel form. With
# features in $Q_c$, $K_c$ and $M_{ij} = 1$ for $j \le i$, else 0:
#
# $$O_c = Q_c\, S_c + \bigl( Q_c K_c^\top \odot M \bigr) V_c, \qquad S_{c+1} = S_c + K_c^\top V_c \label{chunked-linear-attention}$$

# %% [markdown] id="orders"
# The drawing shows the three forms for six positions. Count the blue cells, which are scores, and the green blocks, which are
# read from the state: chunks of two make few of the first and need few of the second. When it plays, you see what has to wait: the
# parallel form adds everything in one step, the chunks take three, and the recurrent form takes six.

# %% id="orders-figure"
figures.orders(length=6, chunk=2)

# %% [markdown] id="chunks-proof"
# Proof: split the sum of {eq}`recurrent-linear-attention` at the beginning of the piece. Keys before it are in $S_c$, keys inside it are in
# the
# masked product, none is in both. $C = 1$ is the recurrent form, $C = T$ the parallel one. **Predict**: which of the three is
# fastest at 512 positions of width 64, in chunks of 64?

# %% id="chunks-code" tags=["predicted"]
(query, key), value = rng.normal(size=(2, 13, 3)), rng.normal(size=(13, 2))
start = rng.normal(size=(3, 2))
runs = [{"form": "parallel"}, {"form": "recurrent"}]
runs += [{"form": "chunked", "chunk": chunk} for chunk in (4, 5, 64)]
from_before = {"initial_state": start}
outputs = [linear_attention(query, key, value, **run, **from_before) for run in runs]
equal = all(np.allclose(outputs[0], other) for other in outputs)
print("all equal, with a state from before:", equal)
forms = ("recurrent", "chunked", "parallel")
flops = {form: costs.linear_attention_flops(512, 64, 64, form=form) for form in forms}
print("MFLOP:", {form: round(count / 1e6) for form, count in flops.items()})
times = {form: np.median(speed.values("forms", form)) for form in forms}
print("from fast to slow on the CPU:", sorted(times, key=times.get))

# %% [markdown] id="chunks-notice" tags=["answer"]
# The chunked form is the fastest, and the recurrent form, which has the fewest FLOPs, comes last: it takes 512 dependent steps, each a
# product of one row. FLOPs predict time only among products of similar size. (All three ran in torch, `attn_course.modules.linear`, on one
# thread.)

# %% [markdown] id="decay"
# From here on $q$ and $k$ are features already, and no $\phi$ is written. A sum only adds; it never forgets. A **gate** lets
# the state fade before each write, by a factor for each feature, $0 < a_{t,r} \le 1$:
#
# $$\begin{gathered}
# S_t = \mathrm{diag}(a_t)\, S_{t-1} + k_t v_t^\top, \\
# o_t = \sum_{j \le t} \Bigl( \sum_r q_{t,r}\, k_{j,r} \prod_{l=j+1}^{t} a_{l,r} \Bigr) v_j \end{gathered}
# \label{linear-attention-with-decay}$$
#
# Unroll it: $k_j v_j^\top$ is written at step $j$ and meets the gates of all *later* steps, its own not among them. Constant
# gates make an exponential window, learned gates $a_t = a(x_t)$ are gated linear attention (Yang et al., 2023). **Predict**
# the three outputs below, for keys and queries 1, values 1, 10, 100 and $a = 0.5$; and those if the gate came *after* the
# write.

# %% id="decay-code" tags=["predicted"]
ones, value = np.ones((3, 1)), np.array([[1.0], [10.0], [100.0]])
decayed = linear_attention(ones, ones, value, log_decay=np.log(0.5 * ones)).ravel()
print("before the write:", decayed)
print("after the write: ", 0.5 * decayed)

# %% [markdown] id="decay-notice" tags=["answer"]
# The outputs are 1, 10.5 and 105.25, because every older value has been halved once more. With the gate after the write even the newest value
# is halved, so everything is off by one gate.

# %% [markdown] id="memory"
# ## What a state can hold
#
# Now look at $S$ as a memory. Schlag et al. (2021) read {eq}`recurrent-linear-attention` as a network that writes the weights of another:
# $S$
# holds **fast weights**, and one write is an **outer product** $k v^\top$. Here are three of them and their sum.

# %% id="memory-figure"
keys = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
values = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0], [1.0, -1.0, 1.0]])
figures.outer_products(keys, values)

# %% [markdown] id="interference"
# Read it with one of the keys, and split the sum into the pair asked for and the others:
#
# $$S^\top k_i = |k_i|^2\, v_i + \sum_{j \ne i} (k_j \cdot k_i)\, v_j, \qquad S = \sum_j k_j v_j^\top
# \label{recall-signal-and-interference}$$
#
# Signal plus **interference**:

# %% id="interference-alive"
alive("recall-signal-and-interference")

# %% [markdown] id="overlap"
# Orthonormal keys read back exactly, but there are at most $d_k$ of them. With more, overlap is
# unavoidable: the Gram matrix of $n$ unit keys has trace $n$ and at most $d_k$ eigenvalues that are not 0, and by Cauchy and
# Schwarz the sum of their squares is at least $n^2 / d_k$, so
#
# $$\sum_{i} \sum_{j \ne i} (k_i \cdot k_j)^2 \ge \frac{n^2}{d_k} - n \label{interference-lower-bound}$$
#
# For independent random unit keys the overlap has mean square $1 / d_k$, and with independent values of mean 0 the noise of
# $n - 1$ others adds up:
#
# $$\mathbb{E}\, \Bigl\| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \Bigr\|^2 = \frac{n - 1}{d_k}\, \mathbb{E} \|v_i\|^2
# \label{interference-of-random-keys}$$

# %% [markdown] id="interference-predict"
# Now many random keys. **Predict** at how many pairs the noise is as large as the signal, for $d_k = 16$.

# %% id="interference-errors" tags=["predicted"]
rng = np.random.default_rng(2)
counts, d_k = np.array([1, 2, 4, 8, 12, 16, 24, 32, 48]), 16
errors = {"sums": [], "least squares": []}
errors["{eq}`interference-of-random-keys`"] = np.sqrt((counts - 1) / d_k)
for n in counts:
    k, v = rng.normal(size=(200, n, d_k)), rng.normal(size=(200, n, 4))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    states = {"sums": k.swapaxes(1, 2) @ v, "least squares": np.linalg.pinv(k) @ v}
    for name, state in states.items():
        errors[name].append(np.sqrt(((k @ state - v) ** 2).mean()))

# %% id="interference-figure" tags=["predicted"]
figures.reading_errors(counts, errors, d_k)

# %% [markdown] id="interference-answer" tags=["answer"]
# The noise is as large as the signal at $n = 17$, where $(n - 1) / d_k = 1$. But the curve of least squares shows that the matrix could do
# better: the sum is not the state that returns every value.

# %% [markdown] id="interference-notice"
# Up to $d_k$ independent keys, a state *exists* that returns every value exactly, and with overlapping keys the sum is not it. Can the right
# state be reached by writing, pair by pair?

# %% [markdown] id="delta"
# ## The delta rule: write what is missing
#
# Say what we want: reading $k$ should give $v$. The error is half of $|S^\top k - v|^2$. Differentiate by each entry of $S$:
#
# $$\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = k\, (S^\top k - v)^\top \label{recall-error-gradient}$$
#
# and take one step of gradient descent with step size $\beta$, one number for each position:
#
# $$S_t = S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top \label{delta-rule}$$
#
# This is the **delta rule** (Widrow and Hoff, 1960): ask the memory what it has under $k$, and write the *difference*.
# Writing $k v^\top$ whatever is there is Hebb's rule, which is {eq}`recurrent-linear-attention`; the two are often confused. Multiplied
# out:
#
# $$S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = \bigl( I - \beta\, k k^\top \bigr)\, S_{t-1} + \beta\, k v^\top
# \label{erase-then-write}$$
#
# First erase along $k$, then write. At each position that is three products with the state (ask, correct, read) where sums
# take two: $6\, d_k d_v$ FLOPs against $4\, d_k d_v$.

# %% id="delta-alive"
alive("erase-then-write")

# %% [markdown] id="delta-reads"
# Multiply from the left by $k^\top$ to see what is read afterwards:
#
# $$S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v \label{recall-after-delta-write}$$
#
# With a unit key and $\beta = 1$ the old value is **overwritten**. And a key at a right angle to it reads what it read
# before:
#
# $$k' \cdot k = 0 \;\Rightarrow\; S_t^\top k' = S_{t-1}^\top k' \label{orthogonal-keys-left-alone}$$
#
# Is it stable? $I - \beta k k^\top$ multiplies the state by $1 - \beta |k|^2$ along $k$ and by 1 across it:
#
# $$\| I - \beta\, k k^\top \|_2 = \max\bigl( 1,\; |1 - \beta\, \|k\|^2| \bigr) \label{delta-transition-norm}$$
#
# (for $d_k \ge 2$). Unit keys and $0 \le \beta \le 1$ never blow up; $|k| = 3$ with $\beta = 1$ multiplies by 8 at each
# write. **Predict** what is read after writing 5 and then 7 under the same unit key, by Hebb's rule and by the delta rule
# with $\beta = 1$ and $\beta = 0.5$ (for both writes).

# %% id="delta-code" tags=["predicted"]
key, value = np.ones((2, 1)), np.array([[5.0], [7.0]])
print("Hebb:", linear_attention(key, key, value)[-1])
for beta in (1.0, 0.5):
    betas = np.full((2, 1), beta)
    print(f"delta, beta = {beta}:", delta_rule_attention(key, key, value, betas)[-1])

# %% [markdown] id="delta-answer" tags=["answer"]
# Hebb's rule reads 12, the sum of both. The delta rule reads 7 with $\beta = 1$, because it overwrites, and 4.75 with $\beta = 0.5$: half of
# the 2.5 that the first write left, plus half of 7.

# %% [markdown] id="explore"
# In the card below one value is one number, so the state is a single arrow and reading a key is projecting the arrow on it. What
# happens to B when A is written after it? A = 1 and B = 1 are written, and A = −1 comes next: step on. (At 60 degrees and step
# size 1, A read 1.25 and now reads −1, so B, which read 1, loses half of that way.) Then turn B to 90 degrees, and try sums. At
# last clear the card and write A = 1 and B = 1 by sums: both read 1, and more when you turn B towards A, up to 2.

# %% id="explorable"
figures.memory_explorable()

# %% [markdown] id="spot-beta"
# ### Spot the mistake: one step size for each channel
#
# A gate for each *key feature* looks more general: replace $\beta\, k$ by $b \odot k$, a vector of step sizes. It works for
# many $b$. But the erasing factor becomes $I - (b \odot k)\, k^\top$, which is no longer symmetric. **Predict** whether
# {eq}`delta-transition-norm` still holds for $0 \le b \le 1$ and a unit key.

# %% id="spot-beta-code" tags=["predicted"]
k = np.array([0.6, 0.8])
for b in (np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.2, 1.0])):
    norm = np.linalg.norm(np.eye(2) - np.outer(b * k, k), 2)
    keeps = bool(norm < 1 + 1e-9)
    print(f"b = {b}: norm {norm:.3f}, keeps", "{eq}`delta-transition-norm`:", keeps)

# %% [markdown] id="spot-beta-answer" tags=["answer"]
# It does not hold: with unequal steps the norm is 1.154 and 1.076 here, so the state may grow. The write is then no gradient step on
# {eq}`recall-error-gradient`.

# %% [markdown] id="delta-chunks"
# In the rule of this lesson $\beta$ is one number for each position and head.
#
# The delta rule reads before it writes, so it looks strictly sequential. It is not. Let row $t$ of $U$ be
# what is written at step $t$, $\beta_t (v_t - S_{t-1}^\top k_t)$. Since $S_{t-1} = S_0 + \sum_{j<t} k_j u_j^\top$, each row depends on the
# rows above, *linearly*: a triangular system, solved once for a chunk. With $B = \mathrm{diag}(\beta_1, \dots, \beta_C)$:
#
# $$\begin{gathered}
# S_C = S_0 + K^\top U, \\
# U = \bigl( I + \mathrm{strictly\ lower}(B K K^\top) \bigr)^{-1} B\, (V - K S_0) \end{gathered}
# \label{chunked-delta-rule}$$
#
# The rest is {eq}`chunked-linear-attention` with $U$ in the place of $V$ (Yang et al., 2024a, who build $U$ from products of Householder
# matrices):
#
# $$O = Q\, S_0 + \bigl( Q K^\top \odot M \bigr)\, U \label{chunked-delta-outputs}$$

# %% id="delta-chunks-code"
rng = np.random.default_rng(4)
(query, key), value = rng.normal(size=(2, 13, 3)), rng.normal(size=(13, 2))
beta = rng.uniform(size=(13, 1))
key /= np.linalg.norm(key, axis=1, keepdims=True)
options = {"initial_state": start}
steps = delta_rule_attention(query, key, value, beta, **options)
for chunk in (1, 4, 5, 64):
    options |= {"form": "chunked", "chunk": chunk}
    chunked = delta_rule_attention(query, key, value, beta, **options)
    print(f"chunks of {chunk:2d} equal the recurrence: {np.allclose(steps, chunked)}")

# %% [markdown] id="least-squares"
# ## Reading with softmax, and without
#
# Where does correcting lead? Take all pairs in each step, $S_n = S_{n-1} + \beta K^\top (V - K S_{n-1})$, with $K$ of full
# column rank and $0 < \beta < 2 / \|K^\top K\|_2$. It rests only where $K^\top (V - K S) = 0$, which is least squares:
#
# $$\lim_{n \to \infty} S_n = (K^\top K)^{-1} K^\top V \label{corrections-reach-least-squares}$$

# %% [markdown] id="linear-in-q"
# So a map that is **linear in the query and made from the context** exists: linear regression of values on keys. "A linear
# map cannot depend on the context" is true of a *fixed* one only. What linearity does cost shows in the derivative by the
# query:
#
# $$\begin{gathered}
# \frac{\partial o}{\partial q} = S^\top \quad \text{(linear)}, \\
# \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top \quad \text{(softmax)} \end{gathered}
# \label{linear-and-softmax-slopes}$$

# %% [markdown] id="slopes"
# with the weights $p$ of $q$ (scale written out again), $z = \sum_j p_j v_j$ and $\bar{k} = \sum_j p_j k_j$. On the left no
# $q$: one slope everywhere. Softmax has another slope at each query, and can step from value to value between keys that lie
# close. How sharply? For $n$ unit keys and scores $\beta\, q \cdot k$ (here $\beta$ is a scale, no step size):
#
# $$q = k_i: \qquad p_i \ge \frac{1}{1 + (n - 1)\, e^{-\beta (1 - \mu)}}, \qquad \mu = \max_{j \ne i} k_i \cdot k_j
# \label{softmax-recall-bound}$$
#
# (each other score is at most $\beta \mu$). **Predict** how many keys in a *plane*, $d_k = 2$, softmax can tell apart, and
# how many a state can.

# %% id="reading-code" tags=["predicted"]
angles = 2 * np.pi * np.arange(12) / 12
keys, values = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.eye(12)
sharp = attention(keys, keys, values, scale=60.0)
summed = keys @ (keys.T @ values)
fitted = keys @ np.linalg.pinv(keys) @ values
for name, read in (("softmax", sharp), ("sums", summed), ("least squares", fitted)):
    print(f"{name:13}: own value comes back as {read[0, 0]:.3f},", end=" ")
    print(f"the neighbour's as {read[0, 1]:.3f}")

# %% [markdown] id="reading-answer" tags=["answer"]
# Softmax can tell all the twelve keys apart that we tried: it returns each value almost purely. A state of two rows holds two pairs, and even
# the best one mixes the twelve.

# %% [markdown] id="recall"
# With a scale large enough, {eq}`softmax-recall-bound` has no limit on $n$ but the gaps between keys. The price is
# the cache: softmax keeps all $n$ pairs, a state keeps $d_k d_v$ numbers.

# %% [markdown] id="recall-task"
# **Does training find a way around?** One layer, one head with $d_k = 8$, reads $n$ pairs out of 32 keys and 16 values, then
# is asked for eight of the keys. (The task is associative recall in its simplest form; Arora et al., 2023, argue that it
# explains most of the gap between attention and its cheaper rivals in language.) **Predict** the ranking at 32 pairs of
# softmax, sums with positive features, sums with unit keys, delta rule.

# %% id="recall-figure" tags=["predicted"]
once = RECALL.load()
names = list(once.results[0]["accuracies"])
means = {name: once.values("accuracies", name).mean(axis=0) for name in names}
figures.recall_shares(once.values("pairs")[0], means)

# %% id="recall-code" tags=["predicted"]
for name in names:
    last = once.values("accuracies", name)[:, -1]
    print(f"{name:24} 32 pairs, three seeds:", last.round(1))

# %% [markdown] id="recall-answer" tags=["answer"]
# Softmax comes first: it is right in practically all cases. The states fall, as the overlaps of {eq}`interference-lower-bound` led us to
# expect, and positive features fall farthest; one reason is that vectors with positive entries are never at a right angle to each other. Did
# you expect the delta rule ahead of the plain sums? With unit keys the two are **about equal**. Where each key is written once, nothing needs
# to be overwritten, and every correction also disturbs older pairs.

# %% [markdown] id="recall-notice"
# Where each key is written once, a delta rule has nothing to overwrite. So here is a task that asks for it: each key is written **twice**, and
# the later value counts. **Predict** the ranking now, and what softmax does, which has no positions here.

# %% id="overwriting-figure" tags=["predicted"]
again = OVERWRITING.load()
names = list(again.results[0]["accuracies"])
means = {name: again.values("accuracies", name).mean(axis=0) for name in names}
figures.overwriting_shares(again.values("pairs")[0], means)

# %% [markdown] id="overwriting-answer" tags=["answer"]
# The delta rule beats sums and plain softmax: it knows the later value, until its capacity ends. Sums and softmax are right about half of the
# time, because order plays no part in either; both values come back, and one of them is right. But give softmax one learned number, a bonus
# for nearer keys, and it is ahead everywhere.

# %% [markdown] id="overwriting-notice"
# The state of things is this: a fixed state is cheap, the delta rule uses it well, and **exact recall of much still takes a cache**. Models
# in use mix both kinds of layer; gates and the delta rule together are Gated DeltaNet (Yang et al., 2024b): decay first, then correct.

# %% [markdown] id="limits"
# ## Limits
#
# - **The state is the limit.** $d_k$ rows hold $d_k$ exact pairs. Arora et al. (2024) trade state size against recall and add
#   a sliding window of softmax.
# - **Random features need short vectors**: the variance of {eq}`variance-of-positive-features` is exponential in $|q + k|^2$.
# - **FLOPs are not time.** The recurrent form has the fewest and was the slowest here.
# - **Positive features and a normaliser** keep averages averages, but crowd the keys together.
# - **Our task is tiny**: 32 keys, one layer. It shows a mechanism, not how large models compare.

# %% id="verify-lesson"
verify_lesson("linear")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape or cost |
# |---|---|---|
# | kernel | $e^{q \cdot k}$; softmax is its normalised smoother, {eq}`softmax-as-kernel-smoother` | no finite feature map |
# | random features | $e^{\omega \cdot x - \lvert x \rvert^2 / 2}$, {eq}`positive-features-are-unbiased` | variance {eq}`variance-of-positive-features` / m |
# | bracket | $\phi(Q) (\phi(K)^\top V)$, {eq}`linear-attention-by-associativity` | $4 T d_k d_v$ against $2 T^2 (d_k + d_v)$ |
# | crossover | $T^\ast = 2 d_k d_v / (d_k + d_v)$, {eq}`linear-attention-crossover` | $d$ if equal |
# | recurrent | $S_t = S_{t-1} + k_t v_t^\top$, $o_t = S_t^\top q_t$, {eq}`recurrent-linear-attention` | state $(d_k, d_v)$ |
# | chunked | $Q_c S_c + (Q_c K_c^\top \odot M) V_c$, {eq}`chunked-linear-attention` | large products, still linear |
# | decay | $\mathrm{diag}(a_t) S_{t-1} + k_t v_t^\top$, {eq}`linear-attention-with-decay` | gate before the write |
# | interference | $\sum_{j \ne i} (k_j \cdot k_i) v_j$, {eq}`recall-signal-and-interference` | $(n - 1) / d_k$ of the signal |
# | delta rule | $S_{t-1} + \beta k (v - S_{t-1}^\top k)^\top$, {eq}`delta-rule` | $6 T d_k d_v$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Attention smooths with the kernel $e^{q \cdot k}$; its feature map is infinite, and the softmax itself is no kernel.
# - Random features estimate it; positive ones keep weights positive, cosines do not.
# - The rank, not the price of $\exp$, blocks re-bracketing. With finitely many features, $T^2$ becomes $T$.
# - Parallel, recurrent and chunked form are equal; chunks suit hardware.
# - A state is a sum of outer products: it holds $d_k$ pairs and interferes.
# - The delta rule corrects instead of adding, one step of least squares; softmax with a cache still recalls most.
#
# Now the [exercises](../work/ex_{lesson}`linear`_linear.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Katharopoulos et al. (2020), [arXiv:2006.16236](https://arxiv.org/abs/2006.16236): linear attention, $\mathrm{elu} +
#   1$, "Transformers are RNNs".
# - K. Choromanski et al. (2020), [arXiv:2009.14794](https://arxiv.org/abs/2009.14794): positive random features (Performers).
#   A. Rahimi and B. Recht (2007): random features with sines and cosines.
# - I. Schlag, K. Irie and J. Schmidhuber (2021), [arXiv:2102.11174](https://arxiv.org/abs/2102.11174): fast weights,
#   capacity, the delta rule in attention.
# - S. Yang et al. (2023), [arXiv:2312.06635](https://arxiv.org/abs/2312.06635): gated linear attention, chunks.
# - S. Yang et al. (2024a), [arXiv:2406.06484](https://arxiv.org/abs/2406.06484): the delta rule in parallel; (2024b),
#   [arXiv:2412.06464](https://arxiv.org/abs/2412.06464): with gates.
# - S. Arora et al. (2023), [arXiv:2312.04927](https://arxiv.org/abs/2312.04927): associative recall (Zoology); (2024),
#   [arXiv:2402.18668](https://arxiv.org/abs/2402.18668): recall against state size (Based).
