# %% [markdown] id="title"
# # {lesson}`scaling` Similarity and variance scaling
#
# Chapter {lesson}`softmax` turns scores into weights. Where do scores come from, and how large are they? This lesson compares
# three similarities, finds the one number that all of them have to watch, their **variance**, and derives the
# factor $1 / \sqrt{d_k}$ that everybody copies.
#
# **Afterwards you can** compute dot, cosine and Gaussian scores and say when they agree, derive the variance of a
# dot product and tell which assumption it needs, and predict what a missing, doubled or misplaced scale does.
#
# **You need** chapter {lesson}`softmax`, expectations, variances and covariance matrices.
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% id="setup"
import math

import numpy as np

from attn_course import show, verify
from attn_course.lessons.scaling import figures
from attn_course.lessons.scaling.experiments import SCALE, WIDTHS, two_step_sizes
from attn_course.reference import (
    cosine_scores,
    dot_scores,
    gaussian_scores,
    scaled_dot_scores,
    softmax,
    softmax_jacobian,
)

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: between the scores and the softmax stands a box that divides by $\sqrt{d_k}$.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## A softmax that stops learning
#
# Draw a query and eight keys with standard normal entries, and let the dot products be the scores. Only the number
# of entries, $d_k$, changes. **Predict** the largest weight at $d_k = 1024$.

# %% id="hook-code" tags=["predicted"]
rng = np.random.default_rng(5)
for d_k in (4, 64, 1024):
    query, key = rng.normal(size=(1, d_k)), rng.normal(size=(8, d_k))
    print(f"d_k = {d_k:4d}  weights", softmax(dot_scores(query, key))[0])

# %% [markdown] id="hook-answer" tags=["answer"]
# The largest weight is 0.998, because the scores spread further and further as $d_k$ grows. One key takes everything, and it
# was chosen by chance: nothing has been learnt. By {eq}`saturated-softmax-jacobian-vanishes` the Jacobian of these weights is
# almost 0, so little will be.

# %% [markdown] id="hook-notice"
# To see what the number of entries does to the weights, we look at the scores themselves.

# %% [markdown] id="similar-dot"
# ## Three ways to be similar
#
# The **dot product** comes first. Multiply out $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$ and solve for
# the middle term:
#
# $$q \cdot k = \tfrac{1}{2} \bigl( \|q\|^2 + \|k\|^2 - \|q - k\|^2 \bigr) \label{dot-product-by-distance}$$
#
# Near vectors have a large dot product; so have long ones. **Cosine similarity** removes the lengths. The law of
# cosines, $\|q - k\|^2 = \|q\|^2 + \|k\|^2 - 2 \|q\| \|k\| \cos\theta$, put beside {eq}`dot-product-by-distance` gives
#
# $$\cos\theta = \frac{q \cdot k}{\|q\|\,\|k\|} \label{cosine-similarity}$$

# %% [markdown] id="similar-gauss"
# The third is the **Gaussian** score, minus the squared distance in units of a bandwidth $h > 0$. {eq}`dot-product-by-distance`, solved
# for the distance, splits it:
#
# $$-\frac{\|q - k\|^2}{2 h^2} = \frac{q \cdot k}{h^2} - \frac{\|k\|^2}{2 h^2} - \frac{\|q\|^2}{2 h^2} \label{gaussian-score-expansion}$$
#
# The last term is the same for all keys of a row, and softmax ignores a common shift, {eq}`softmax-shift-invariance`. If all keys have
# one length, so is the second. Then only the dot product is left:
#
# $$\sigma_j\Bigl( -\frac{\|q - k_j\|^2}{2 h^2} \Bigr)_i = \sigma_j\Bigl( \frac{q \cdot k_j}{h^2} \Bigr)_i
# \label{equal-length-gaussian-weights}$$
#
# So the dot product *is* a distance kernel, on keys of equal length, with $h^2$ as the temperature. **Predict**
# whether the two rows below still agree when one key becomes longer.

# %% id="similar-gauss-code" tags=["predicted"]
query, key = rng.normal(size=(1, 3)), rng.normal(size=(4, 3))
equal = key / np.linalg.norm(key, axis=-1, keepdims=True)
longer = equal * np.array([[1], [1], [2], [1]])
for name, keys in (("equal keys", equal), ("one twice as long", longer)):
    gaussian, dot = gaussian_scores(query, keys, 1.0), dot_scores(query, keys)
    print(f"{name:18s}", softmax(gaussian)[0], softmax(dot)[0])

# %% [markdown] id="similar-gauss-answer" tags=["answer"]
# They no longer agree, because $\|k_j\|^2 / 2 h^2$ is then no common shift: the Gaussian score of the longer key, the third,
# is lowered by more than those of the others, and its weight is smaller than with the dot product.

# %% id="similar-verify"
verify("dot-product-by-distance", "cosine-similarity")
verify("gaussian-score-expansion", "equal-length-gaussian-weights")
show("cosine-similarity", q=[3, 4], k=[4, 3])

# %% [markdown] id="ranking"
# The dot product and the cosine need not agree on the best key either. For one query, $\|q\|$ is common to its row, so only
# the lengths of the keys tell them apart:
#
# $$\frac{q \cdot k_i}{q \cdot k_j} = \frac{\|k_i\| \cos\theta_i}{\|k_j\| \cos\theta_j} \label{ranking-ignores-query-length}$$
#
# A dot product lets a key say how important it is, by its length; a cosine does not.

# %% [markdown] id="spot-cosine"
# ### Spot the mistake: "scaled cosine similarity"
#
# Some texts call $q \cdot k / \sqrt{d_k}$ a cosine similarity, since both divide something. **Predict** which of the two rows
# below lies between -1 and 1, and whether the two pick the same key.

# %% id="spot-cosine-code" tags=["predicted"]
query, key = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [3.0, 3.0], [-1.0, 0.5]])
print("q.k / sqrt(d_k)", scaled_dot_scores(query, key)[0])
print("cosine         ", cosine_scores(query, key)[0])
assert scaled_dot_scores(query, key).argmax() != cosine_scores(query, key).argmax()
keys, angles = [[3, 3], [1, 0]], [np.pi / 4, 0]
show("ranking-ignores-query-length", q=[1, 0], k=keys, theta=angles, i=1, j=2)

# %% [markdown] id="spot-cosine-notice" tags=["answer"]
# Only the second row, the cosine, lies between -1 and 1, and the two rows do not pick the same key. Dividing by the constant
# $\sqrt{d_k}$ changes no ranking; dividing by the two norms does. The first row prefers the long key at 45 degrees, the second the
# key that points the same way. The last lines compare just these two: the dot product is 3 times as large for the long key, though
# its cosine is the smaller one.

# %% [markdown] id="flat"
# What does a cosine cost, and what does it buy? Scores in $[-1, 1]$ have ratios of weights of at most
# $e^{2}$. Let the best key have score 1 and the $n - 1$ others -1; nothing sharper is possible:
#
# $$\sigma(\cos\theta)_i \le \frac{1}{1 + (n - 1)\,e^{-2}} \label{cosine-weight-bound}$$
#
# For 64 keys that is 0.105: without a temperature, cosine attention is nearly an average. As to cost, $T_q$ queries
# and $T_k$ keys need $(T_q + T_k)\, d_k$ multiplications for norms and $T_q T_k\, d_k$ for dot products:
#
# $$\frac{\text{cost of all norms}}{\text{cost of all dot products}} = \frac{1}{T_q} + \frac{1}{T_k} \label{relative-cost-of-norms}$$

# %% id="flat-verify"
verify("ranking-ignores-query-length", "cosine-weight-bound", "relative-cost-of-norms")
print("largest weight for 64 keys:", round(1 / (1 + 63 * math.exp(-2)), 3))
print("norms at T = 1000:", 1 / 1000 + 1 / 1000)

# %% [markdown] id="flat-notice"
# "The dot product saves the norms" is true, and for a thousand positions it saves 0.2 % of the work. The real
# difference is in the weights.

# %% [markdown] id="mean"
# ## How large is a score?
#
# Let $q$ and $k$ be random, independent of each other, with means $m_q$, $m_k$ and covariance matrices $S_q$,
# $S_k$. Nothing else: no normal distribution. The mean of a product of independent numbers is the product of the
# means; sum over the entries:
#
# $$\mathbb{E}[q \cdot k] = m_q \cdot m_k \label{mean-of-a-score}$$
#
# For the variance we need the mean square. Write $(q \cdot k)^2 = q^\top (k k^\top) q = \mathrm{tr}(q q^\top k k^\top)$; independence
# lets us average both factors apart, with $\mathbb{E}[q q^\top] = S_q + m_q m_q^\top$ and the same for $k$.
# Of the four products, the square
# of {eq}`mean-of-a-score` cancels one:
#
# $$\mathrm{Var}[q \cdot k] = \mathrm{tr}(S_q S_k) + m_q^\top S_k\, m_q + m_k^\top S_q\, m_k \label{score-variance-from-covariances}$$

# %% [markdown] id="variance"
# Now the usual case. **Assume** that all entries are independent with mean 0 and variance 1. Then $S_q = S_k = I$, the means
# vanish, and the trace counts the entries:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{i=1}^{d_k} \mathrm{Var}[q_i k_i] = d_k \label{variance-of-a-score}$$
#
# With other variances, $S_q = \sigma_q^2 I$ and $S_k = \sigma_k^2 I$ (a $\sigma$ that is no function is a standard deviation,
# not the softmax):
#
# $$\mathrm{Var}[q \cdot k] = d_k\,\sigma_q^2\,\sigma_k^2 \label{score-variance-from-deviations}$$
#
# If both deviations are $\sigma$, the variance goes with $\sigma^4$: entries half as large make scores a quarter as large.

# %% [markdown] id="scale"
# So a score is typically as large as $\sqrt{d_k}$: 32 at $d_k = 1024$, which explains the hook. A factor
# $c$ multiplies a variance by $c^2$. Choose $c = 1 / \sqrt{d_k}$:
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = 1 \label{scaled-score-variance}$$
#
# This is the scale of Vaswani et al. (2017), section 3.2.1. Two others are often seen: $d_k$ itself, and
# $\sqrt{d_{\text{model}}}$ where the layer has $h$ heads of $d_k = d_{\text{model}} / h$ entries (chapter {lesson}`heads`):
#
# $$\mathrm{Var}\Bigl[ \frac{q \cdot k}{d_k} \Bigr] = \frac{1}{d_k}, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_{\text{model}}}} \Bigr] = \frac{1}{h} \label{variance-under-wrong-scales}$$
#
# Both start too flat. **Predict** the four deviations printed below, for $d_k = 64$ and $h = 8$.

# %% id="scale-code" tags=["predicted"]
query, key = rng.normal(size=(2, 20_000, 64))
scores = (query * key).sum(axis=-1)
divisors = {"1": 1, "sqrt(d_k)": 8, "d_k": 64, "sqrt(d_model)": math.sqrt(512)}
for name, divisor in divisors.items():
    print(f"divided by {name:13s} deviation {(scores / divisor).std():.2f}")

# %% [markdown] id="scale-answer" tags=["answer"]
# The deviations are about 8, 1, 0.13 and 0.35, because they are the square roots of the variances: $\sqrt{64} = 8$ without a
# divisor, 1 with the scale, $1 / \sqrt{64} = 1/8$ after division by $d_k$, and $1 / \sqrt{8} \approx 0.35$ with
# $\sqrt{d_{\text{model}}}$.

# %% id="scale-verify"
verify("mean-of-a-score", "score-variance-from-covariances")
verify("variance-of-a-score", "score-variance-from-deviations")
verify("scaled-score-variance", "variance-under-wrong-scales")

# %% [markdown] id="correlated"
# ## Break each assumption
#
# **Independence of q and k.** Let standard normal entries be correlated, $k_i = \rho\, q_i + \sqrt{1 - \rho^2}\, e_i$ with
# $e_i$ independent of $q_i$. Each term has mean $\rho$, and with $\mathbb{E}[q_i^4] = 3$ the variance $1 + \rho^2$:
#
# $$\mathbb{E}[q \cdot k] = \rho\,d_k, \qquad \mathrm{Var}[q \cdot k] = (1 + \rho^2)\,d_k \label{correlated-query-key-moments}$$
#
# The extreme is a token that looks at itself with $q = k$. With $\kappa = \mathbb{E}[q_i^4]$, the **kurtosis** of an entry
# (3 if normal, 1 for $\pm 1$):
#
# $$\mathbb{E}[q \cdot q] = d_k, \qquad \mathrm{Var}[q \cdot q] = (\kappa - 1)\,d_k \label{equal-query-key-moments}$$
#
# After the scale, the *mean* is still $\sqrt{d_k}$. Chapter {lesson}`self_attention` meets this heavy diagonal.

# %% [markdown] id="one-row"
# **Independence within a row.** All scores of a row share their query. For standard normal entries and two keys $k$,
# $k'$:
#
# $$\mathrm{Cov}[q \cdot k,\, q \cdot k'] = 0, \qquad
# \mathrm{Cov}\bigl[ (q \cdot k)^2, (q \cdot k')^2 \bigr] = 2\,d_k \label{covariance-within-a-row}$$
#
# Uncorrelated, yet not independent: a long query makes its whole row large. Fix $q$, and the score is a sum of
# normal numbers $q_i k_i$, so it is normal with variance $\|q\|^2$. In terms of $\mathbb{E}[e^{tX}]$, the **moment generating
# function** of a variable $X$, which (where it is finite around $t = 0$) determines the distribution:
#
# $$\mathbb{E}_k\bigl[ e^{t\,q \cdot k} \bigr] = e^{t^2 \|q\|^2 / 2} \label{score-normal-given-query}$$
#
# **Predict** for each panel below whether its mean, its variance, or neither differs from 0 and 1.

# %% id="broken-figure" tags=["predicted"]
n, d_k = 40_000, 16
q, k, e = rng.normal(size=(3, n, d_k))
drawn = {
    "all hold": (q * k).sum(-1),
    "correlated, ρ = 0.5": (q * (0.5 * q + math.sqrt(0.75) * e)).sum(-1),
    "q = k": (q * q).sum(-1),
    "σ = 1.5 for both": (2.25 * q * k).sum(-1),
    "means 0.5": ((q + 0.5) * (k + 0.5)).sum(-1),
    "one long query": k @ (q[0] * math.sqrt(3 * d_k) / np.linalg.norm(q[0])),
}
edges, centres = np.linspace(-8, 12, 81), np.linspace(-7.875, 11.875, 80)
normal = np.exp(-(centres**2) / 2) / math.sqrt(2 * math.pi)
densities = {name: np.histogram(s / 4, edges)[0] / (n / 4) for name, s in drawn.items()}
moments = {name: ((s / 4).mean(), (s / 4).var()) for name, s in drawn.items()}
figures.broken_assumptions(centres, densities, normal, moments)

# %% [markdown] id="broken-answer" tags=["answer"]
# Only the first panel keeps mean 0 and variance 1. Correlation, $q = k$ and means of 0.5 change both: the means are now 2, 4
# and 1. The larger deviations and the long query change the variance alone, to $1.5^4 \approx 5$ and to 3, because the
# entries of the keys still have mean 0 and do not depend on the query.

# %% id="broken-verify"
verify("correlated-query-key-moments", "equal-query-key-moments")
verify("covariance-within-a-row", "score-normal-given-query")

# %% [markdown] id="kurtosis"
# ## Normal only in the limit
#
# ### Spot the mistake: "$q \cdot k$ follows $N(0, d_k)$"
#
# Mean and variance are exact; the *normal* is not. The fourth moment tells. Of the $d_k^4$ products in $(q \cdot k)^4$ only
# those survive in which every index occurs an even number of times: $d_k$ terms with one index, worth $\kappa_q \kappa_k$, and
# $3 d_k (d_k - 1)$ with two pairs, worth 1:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{d_k^2} = 3 + \frac{\kappa_q \kappa_k - 3}{d_k} \label{kurtosis-of-a-score}$$
#
# For standard normal entries both kurtoses are 3:
#
# $$\frac{\mathbb{E}[(q \cdot k)^4]}{\mathbb{E}[(q \cdot k)^2]^2} = 3 + \frac{6}{d_k} \label{kurtosis-with-normal-entries}$$
#
# A normal variable has 3. At $d_k = 1$ the score has 9. So the claim fails as a formula:

# %% id="kurtosis-code"
show("kurtosis-with-normal-entries", wrong="q.k follows N(0, d_k) exactly")

# %% [markdown] id="mgf"
# How fast does the difference vanish? Average {eq}`score-normal-given-query` over a standard normal $q$, at $t / \sqrt{d_k}$. Each entry of
# $q$
# gives the integral $\mathbb{E}[e^{t^2 q_i^2 / (2 d_k)}] = (1 - t^2 / d_k)^{-1/2}$, and there are $d_k$ of them:
#
# $$\mathbb{E}\bigl[ e^{t\,q \cdot k / \sqrt{d_k}} \bigr] = \Bigl( 1 - \frac{t^2}{d_k} \Bigr)^{-d_k / 2}
# \xrightarrow[d_k \to \infty]{} e^{t^2 / 2} \label{scaled-score-approaches-normal}$$
#
# The limit is that of the standard normal distribution. By {eq}`score-normal-given-query` we can even draw the densities: average the
# normal
# density of variance $\|q\|^2 / d_k$ over many queries. **Predict** which curve is highest at 0, and which at 5.

# %% id="normal-figure" tags=["predicted"]
x = np.linspace(-6, 6, 121)
densities = {}
for d_k in (1, 4, 64):
    deviation = np.sqrt(rng.chisquare(d_k, size=(20_000, 1)) / d_k)  # |q| / sqrt(d_k)
    curves = np.exp(-((x / deviation) ** 2) / 2) / deviation
    densities[f"d_k = {d_k}"] = curves.mean(axis=0) / math.sqrt(2 * math.pi)
figures.towards_normal(x, densities, np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))

# %% [markdown] id="normal-answer" tags=["answer"]
# The curve of $d_k = 1$ is the highest at both places. It averages the most different deviations $\|q\| / \sqrt{d_k}$: short
# queries give it a sharp peak at 0, and long ones give it heavy tails. With more entries $\|q\|^2 / d_k$ is nearly 1 for every
# query, and the curve is nearly the normal one.

# %% id="normal-verify"
verify("kurtosis-of-a-score", "kurtosis-with-normal-entries")
verify("scaled-score-approaches-normal")

# %% [markdown] id="ratios"
# ## What the spread does to softmax
#
# Let $w$ be the softmax of the scores $c\, q \cdot k_j$, with independent entries of $q$ and $k$, of mean 0 and variance 1. A log-ratio
# of weights is a difference of two scores, {eq}`log-softmax`, that is $c\, q \cdot (k_i - k_j)$. Entries of $k_i - k_j$ have
# variance 2, so {eq}`score-variance-from-deviations` gives
#
# $$\mathrm{Var}\Bigl[ \ln \frac{w_i}{w_j} \Bigr] = 2\,c^2\,d_k \quad (i \ne j) \label{log-weight-ratio-variance}$$
#
# With $c = 1$ typical ratios grow like $e^{\sqrt{2 d_k}}$; with the scale they stay.

# %% [markdown] id="in-use"
# How many keys matter? If $m$ keys share the weight equally, $1 / \sum_j w_j^2 = m$, so take this number for any
# weights. For many keys with normal scores $z$ of variance $s^2$, sums become means, and $\mathbb{E}[e^{tz}] = e^{t^2 s^2 / 2}$.
# The share of keys in use is about
#
# $$\frac{(\mathbb{E}\,e^{z})^2}{\mathbb{E}\,e^{2z}} = e^{-s^2} \label{effective-share-of-keys}$$
#
# that is 37 % for scaled scores. Likewise {eq}`softmax-entropy`, with means for sums, says how far the entropy lies below $\ln n$:
#
# $$\frac{\mathbb{E}[z\,e^{z}]}{\mathbb{E}[e^{z}]} - \ln \mathbb{E}[e^{z}] = \frac{s^2}{2} \label{entropy-lost-to-spread}$$
#
# Half a nat for $s = 1$. Both hold for many keys and moderate $s$. Unscaled, $s^2 = d_k$ asks for more than there is:
# one key has it all. **Predict** the entropy of 64 keys with the scale ($\ln 64 = 4.16$).

# %% id="spread-figure" tags=["predicted"]
widths = 2 ** np.arange(0, 11, 2)
rows = {"scaled": [], "unscaled": []}
for d_k in widths:
    query, key = rng.normal(size=(100, 1, d_k)), rng.normal(size=(100, 64, d_k))
    rows["scaled"].append(softmax(scaled_dot_scores(query, key)[:, 0]))
    rows["unscaled"].append(softmax(dot_scores(query, key)[:, 0]))
w = {name: np.stack(weights) for name, weights in rows.items()}
# 0 ln 0 counts as 0
safe = {name: np.where(weights > 0, weights, 1.0) for name, weights in w.items()}
entropy = {name: -(w[name] * np.log(safe[name])).sum(-1).mean(-1) for name in w}
largest = {name: weights.max(-1).mean(-1) for name, weights in w.items()}
jacobians = {name: softmax_jacobian(weights) for name, weights in w.items()}
norm = {s: np.linalg.norm(J, 2, axis=(-2, -1)).mean(-1) for s, J in jacobians.items()}
figures.spread_and_softmax(widths, entropy, largest, norm, n_keys=64)

# %% [markdown] id="spread-notice" tags=["answer"]
# With the scale the entropy ends at 3.67, half a nat below $\ln 64$, because the scaled scores have the variance $s^2 = 1$.
# Without the scale, the norm of the Jacobian first grows, for two strong keys compete; then it falls, since one has won. The
# scale keeps all three nearly where they were.

# %% id="spread-verify"
verify("log-weight-ratio-variance", "effective-share-of-keys", "entropy-lost-to-spread")

# %% [markdown] id="explorable-before"
# What happens to the softmax as $d_k$ grows, with and without the scale? In the card below the
# mean norm of the Jacobian is larger *without* the scale up to $d_k = 256$. Find the
# queries that this mean hides.

# %% id="explorable"
figures.scale_explorable()

# %% [markdown] id="reparametrise"
# ## What the scale is not
#
# It is not a new kind of model. The constant can be taken into the weights: $W' = c\, W_Q$ without scale has the same scores as
# $W_Q$ with it. What differs is where $W'$ starts and how far it moves. If the loss $\mathcal{L}$ sees $W$ only through $c W$,
# the chain rule gives its gradient a factor $c$, and the change of $W$ reaches $W'$ with another:
#
# $$c\,\bigl( W - \eta\, \nabla_W \mathcal{L}(c\,W) \bigr) =
# W' - c^2\,\eta\,\nabla \mathcal{L}(W'), \qquad W' = c\,W \label{scale-as-reparametrisation}$$
#
# **Predict** whether two twins, one scaled and one not, give the same attention weights after 20 steps of gradient descent from
# $W' = W_Q / \sqrt{d_k}$, if the second uses the step $\eta / d_k$ for $W'$.

# %% id="twins-verify"
verify("scale-as-reparametrisation")

# %% id="twins-code" tags=["predicted"]
print("step eta / d_k: same weights", two_step_sizes(64, 20) < 1e-9)
print("step eta:       same weights", two_step_sizes(64, 20, matched=False) < 1e-3)

# %% [markdown] id="twins-answer" tags=["answer"]
# They do, because {eq}`scale-as-reparametrisation` with $c^2 = 1 / d_k$ holds for each step: if $W' = c\,W$ before a step, it holds
# after the step too. With the same step $\eta$ for both, the twins part.

# %% [markdown] id="start"
# Whether the scale helps therefore depends on the start and on the steps. Suppose the queries start with variance $1 / d_k$, as with
# $W' = W_Q / \sqrt{d_k}$ above, and the keys with 1. By {eq}`score-variance-from-deviations`,
#
# $$\sigma_q^2 = \frac{1}{d_k}: \qquad \mathrm{Var}[q \cdot k] = 1, \qquad
# \mathrm{Var}\Bigl[ \frac{q \cdot k}{\sqrt{d_k}} \Bigr] = \frac{1}{d_k} \label{scale-in-the-initialisation}$$
#
# The factor is in already; dividing again flattens the weights. We train a layer that must find one of 16 items by
# a turned copy of it (`attn_course/lessons/scaling/experiments.py`), with Adam and the step 0.003,
# for both starts. **Predict** the slow curve.

# %% id="start-verify"
verify("scale-in-the-initialisation")

# %% id="training-figure" tags=["predicted"]
record = SCALE.load()
starts = ("unit variance", "factor in W_Q")
names = ("scaled", "unscaled")
curves = {}
for start in starts:
    right = [record.values(start, name, "256", "accuracy") for name in names]
    curves[start] = dict(zip(names, right, strict=True))
figures.two_trainings(curves, chance=1 / 16, d_k=256)

# %% id="training-steps" tags=["predicted"]
print("steps to learn, three seeds")
for start in starts:
    for d_k in map(str, WIDTHS):
        scaled, unscaled = (record.values(start, name, d_k, "steps") for name in names)
        print(f"{start:13s}  d_k = {d_k:>3s}   scaled {scaled}, unscaled {unscaled}")
assert len({str(SCALE.conclude(result)) for result in record.results}) == 1

# %% [markdown] id="training-answer" tags=["answer"]
# The slow curve is that of the unscaled layer from the start with unit variance, the only one of the four whose scores begin
# with a variance of $d_k$. At $d_k = 16$ it needs up to 1.4 times the steps of the scaled one, at 256 two to four times. From the
# other start the unscaled layer needs no more steps than the scaled one. It does learn in each case: no theorem says that it
# cannot.

# %% [markdown] id="training-notice"
# This is one task, Adam, and one step size. Another step size, or plain gradient descent, where by
# {eq}`scale-as-reparametrisation` the scale also changes the effective step, would be another experiment.

# %% [markdown] id="layer-norm"
# ## What layer normalisation fixes, and what not
#
# Many models normalise each token before attention. $\mathrm{LN}(x)$ subtracts the mean of the entries of $x$ and divides by
# $\sqrt{v + \varepsilon}$, with $v$ their variance and a small $\varepsilon$; gain and bias come later. For every $x$ of length $d$:
#
# $$\sum_{i=1}^{d} \mathrm{LN}(x)_i = 0, \qquad
# \frac{1}{d} \sum_{i=1}^{d} \mathrm{LN}(x)_i^2 = \frac{v}{v + \varepsilon} \label{layer-norm-moments}$$
#
# So $\|\mathrm{LN}(x)\|^2$ is nearly $d$. But the query is $x W_Q$. With independent entries of mean 0 and variance
# $\sigma_w^2$ in $W$, each entry is a sum of $d$ independent terms:
#
# $$\mathrm{Var}_W\bigl[ (x W)_j \bigr] = \sigma_w^2\, \|x\|^2 \label{variance-after-projection}$$

# %% [markdown] id="inits"
# "Layer normalisation gives queries unit variance" therefore holds only if $\sigma_w^2 = 1 / d$. Torch's `nn.Linear` draws
# uniform numbers between $\pm 1 / \sqrt{d}$; `nn.MultiheadAttention` packs three matrices into one and applies Xavier's rule,
# the bound $\sqrt{6 / (\text{inputs} + \text{outputs})}$, to the whole. $U(-b, b)$ has variance $b^2 / 3$:
#
# $$d\;\mathrm{Var}\Bigl[ U\bigl(-\tfrac{1}{\sqrt{d}}, \tfrac{1}{\sqrt{d}}\bigr) \Bigr] = \tfrac{1}{3}, \qquad
# d\;\mathrm{Var}\Bigl[ U\bigl(-\sqrt{\tfrac{6}{d + 3d}},
# \sqrt{\tfrac{6}{d + 3d}}\bigr) \Bigr] = \tfrac{1}{2} \label{default-initialisation-variances}$$
#
# A standard deviation of 0.02, also common, gives $0.0004\, d$. By {eq}`score-variance-from-deviations` a scaled score of two fixed tokens
# has the
# product of the two variances:
#
# $$\mathrm{Var}\Bigl[ \frac{x W_Q W_K^\top y^\top}{\sqrt{d_k}} \Bigr] = \sigma_Q^2\, \sigma_K^2\, \|x\|^2\, \|y\|^2
# \label{score-variance-at-initialisation}$$
#
# that is 1/9 and 1/4 of what "unit variance" promises. **Predict** the third bar for $d = 512$.

# %% id="inits-measured" tags=["predicted"]
d, d_k = 512, 64
x = rng.normal(size=(2, d))
x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
bounds = {
    "nn.Linear": 1 / math.sqrt(d),
    "packed Xavier": math.sqrt(6 / (4 * d)),
    "std 0.02": 0.02 * math.sqrt(3),
}
measured = []
for bound in bounds.values():
    draws = (rng.uniform(-bound, bound, (2, d, d_k)) for _ in range(300))
    scores = [(x[0] @ w_query) @ (x[1] @ w_key) for w_query, w_key in draws]
    measured.append(np.var(scores) / d_k)  # of scores / sqrt(d_k)
expected = [d**2 * (bound**2 / 3) ** 2 for bound in bounds.values()]
figures.initial_variances(list(bounds), expected, measured)

# %% [markdown] id="inits-answer" tags=["answer"]
# The third bar is 0.04 high, because $d\,\sigma_w^2 = 0.0004 \cdot 512 \approx 0.2$ for queries and for keys, and the variance of
# the scores is the product of the two. None of the three starts comes near the variance 1.

# %% id="inits-verify"
verify("layer-norm-moments", "variance-after-projection")
verify("default-initialisation-variances", "score-variance-at-initialisation")

# %% [markdown] id="qk-norm"
# To get unit variance, normalise $q$ and $k$ directly, after the projection (Henry et al., 2020, divide by the norm and learn
# a factor). With the mean square set to 1, the score is a cosine with a fixed factor:
#
# $$\frac{\hat q \cdot \hat k}{\sqrt{d_k}} = \sqrt{d_k}\,\cos\theta, \qquad
# \hat q = \sqrt{d_k}\,\frac{q}{\|q\|}, \qquad \hat k = \sqrt{d_k}\,\frac{k}{\|k\|}
# \label{query-key-normalisation}$$
#
# It lies within $\pm\sqrt{d_k}$ whatever the weights become in training. **Predict** what happens to both scores below when the
# weights grow a hundredfold.

# %% id="qk-norm-verify"
verify("query-key-normalisation")

# %% id="qk-norm-code" tags=["predicted"]
query, key = rng.normal(size=(1, 64)), rng.normal(size=(3, 64))
for factor in (1.0, 100.0):
    print(
        f"weights x {factor:.0f}: scaled dot",
        scaled_dot_scores(factor * query, key)[0],
        " normalised",
        8 * cosine_scores(factor * query, key)[0],
    )

# %% [markdown] id="qk-norm-answer" tags=["answer"]
# The scaled dot products grow a hundredfold with the weights. The normalised scores do not change at all, because the factor
# cancels when $q$ is divided by its norm.

# %% [markdown] id="limits"
# ## Limits
#
# - The scale fixes the variance **at the start**, under assumptions that training breaks: queries and keys are meant to
#   correlate, {eq}`correlated-query-key-moments`. It bounds nothing later; {eq}`query-key-normalisation` does.
# - It is one number for all rows. A long query still has a sharp row, {eq}`score-normal-given-query`.
# - A start that holds the factor does not need it, {eq}`scale-in-the-initialisation`.
# - Unit variance is a good start, not a best one: in section {section}`reparametrise`, dividing again (scores of variance $1 / d_k$) cost
#   some steps
#   at $d_k = 16$ and at most one at 256.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost for $T_q \times T_k$ scores |
# |---|---|---|
# | dot product | $q \cdot k$, {eq}`dot-product-by-distance` | $T_q T_k d_k$ |
# | scaled | $q \cdot k / \sqrt{d_k}$, {eq}`scaled-score-variance` | $T_q T_k d_k$ |
# | cosine | {eq}`cosine-similarity` | $T_q T_k d_k + (T_q + T_k) d_k$ |
# | Gaussian | $-\lVert q - k \rVert^2 / 2 h^2$, {eq}`gaussian-score-expansion` | $T_q T_k d_k$ |
# | variance | $\mathrm{tr}(S_q S_k) + m_q^\top S_k m_q + m_k^\top S_q m_k$, {eq}`score-variance-from-covariances` | |
# | kurtosis | $3 + (\kappa_q \kappa_k - 3) / d_k$, {eq}`kurtosis-of-a-score` | |
# | keys in use, entropy lost | $e^{-s^2}$ and $s^2 / 2$, {eq}`effective-share-of-keys` and {eq}`entropy-lost-to-spread` | |
# | reparametrisation | $W' = c W_Q$ with step $c^2 \eta$, {eq}`scale-as-reparametrisation` | |

# %% [markdown] id="summary"
# ## Summary
#
# - Dot, cosine and Gaussian scores differ by lengths only; on equal keys dot and Gaussian weights agree.
# - Independent entries of variance 1 give scores of mean 0 and variance $d_k$; normal entries are not needed, nor is the score normal.
# - Dividing by $\sqrt{d_k}$ makes the variance 1 for every $d_k$, and keeps entropy and Jacobian nearly the same.
# - Correlation, $q = k$, other variances and a shared query break the argument, each in its own way.
# - The scale is a choice of start and step, not a new model: with the factor in $W_Q$ it did not help our training.
# - Layer normalisation fixes tokens, not queries; QK-norm fixes queries and keys.
#
# Now the [exercises](../work/ex_{lesson}`scaling`_scaling.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762), section 3.2.1: the scale and its reason.
# - J. L. Ba, J. R. Kiros and G. E. Hinton (2016), [arXiv:1607.06450](https://arxiv.org/abs/1607.06450): layer normalisation.
# - R. Xiong et al. (2020), [arXiv:2002.04745](https://arxiv.org/abs/2002.04745): layer normalisation before or after.
# - Q. Wang et al. (2019), [arXiv:1906.01787](https://arxiv.org/abs/1906.01787): deep pre-norm stacks.
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): query-key normalisation.
