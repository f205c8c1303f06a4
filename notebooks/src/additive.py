# %% [markdown] id="title"
# # {lesson}`additive` Additive attention: a small network as the similarity
#
# Attention did not begin with a dot product. In 2014 a small network compared the state of a translator with each word
# of the sentence before it. Such scores are called *additive*, for they add where we multiplied. This lesson derives them,
# finds what they can and cannot express, measures their price, and puts them back where they came from.
#
# **Afterwards you can** build a score for vectors of different lengths, spot scores that ignore the query, say why the
# dot product won, and show with an experiment what a fixed-length context costs.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax`, {lesson}`scaling`, {lesson}`attention` and {lesson}`self_attention`.
# **Time:** 60 minutes, without the [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% id="setup"
import numpy as np
import torch

from attn_course import alive, costs, show, verify_lesson
from attn_course.lessons.additive import figures
from attn_course.lessons.additive.experiments import LOOKUPS, TRANSLATIONS
from attn_course.modules import AdditiveAttention
from attn_course.modules import attention as dot_attention
from attn_course.reference import additive_scores, dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: where a query and a key become a score. The lesson puts a small network in the place of the
# product $Q K^\top$, and leaves everything behind it as it is.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## A score for two vectors that do not fit
#
# A translator asks with 4 numbers, and each source word answers with 2. A dot product refuses. "Then use the additive
# similarity $\tanh(q + k_i)$", says a tutorial, "as the weight of value $i$." Suppose the lengths were equal.
# **Predict** the shape of the weights for one query, five keys and $d = 4$, and what `weights @ value` does with them.

# %% id="hook-code" tags=["predicted"]
rng = np.random.default_rng(6)
query, key, value = rng.normal(size=4), rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
weights = np.tanh(query + key)
print("weights", weights.shape, " one number per key:", weights.shape == (5,))
try:
    weights @ value
except ValueError:
    print("cannot average five values with them")

# %% [markdown] id="hook-answer" tags=["answer"]
# The weights have the shape (5, 4): $\tanh(q + k_i)$ has as many entries as the key, so there are four candidates for one weight, and
# nobody says which of them counts. (They can even be negative.) `weights @ value` raises an error, because a matrix product with five
# values needs five columns.

# %% [markdown] id="hook-notice"
# ### Spot the mistake: a vector is no score
#
# Could we add the entries of $\tanh(q + k_i)$ up? That gives a number, but a score without anything to learn, and
# $q + k$ still needs equal lengths. A score must turn **a pair into one number**. The two repairs, projections before
# the sum and a vector $v$ after tanh, are the subject of this lesson. We take them one at a time.

# %% [markdown] id="plain-sum"
# **First try: no tanh.** Give the query a number $a = u \cdot q$ and each key a number $b_j = w \cdot k_j$. Lengths may
# differ now, and the score is $a + b_j$. The softmax sees only
# differences, {eq}`softmax-shift-invariance`, so
#
# $$\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}} \label{plain-sum-ignores-query}$$
#
# **Predict** how the weights change when the query does.

# %% id="plain-sum-code" tags=["predicted"]
key = rng.normal(size=(5, 2))
u, w = rng.normal(size=4), rng.normal(size=2)
for name, asked in (("q", query), ("-3 q", -3 * query)):
    print(f"{name:4}:", softmax(asked @ u + key @ w))

# %% [markdown] id="plain-sum-answer" tags=["answer"]
# The weights do not change at all, because the number $a$ of the query is the same for every key, and so it cancels.

# %% [markdown] id="derive"
# A score made of a query part **plus** a key part is no attention, however the parts were computed.
# The two must meet inside something that is not linear. So: project both to $d_h$ numbers, add them, **bend** the sum,
# and only then let a vector $v$ make one number of it.
#
# $$e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr)
#  = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i^\top W_Q)_r + (k_j^\top W_K)_r \bigr) \label{additive-score}$$
#
# (First with columns, as Bahdanau et al., 2014, write it; then with rows $q_i^\top$ and $k_j^\top$, as in our arrays.)

# %% id="derive-alive"
alive("additive-score")

# %% [markdown] id="concatenate"
# The sum of two projections is one
# projection of the pair, written side by side:
#
# $$[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K \label{concatenation-adds-projections}$$

# %% [markdown] id="network"
# So {eq}`additive-score` is a small **network**. It reads the pair $(q, k)$ and has one output; the $d_h$ values of tanh in between are its
# **hidden layer**, each a **unit**: a weighted sum, then bent. In the two
# steps of lesson {lesson}`lookup` it is only another *similarity*; softmax and average stay as they are.
#
# | array | shape |
# |---|---|
# | $W_Q$, $W_K$, $v$ | $(d_q, d_h)$, $(d_k, d_h)$, $(d_h)$ |
# | hidden layer of all pairs | $(T_q, T_k, d_h)$ |
# | scores $e$ | $(T_q, T_k)$ |

# %% [markdown] id="pair"
# In the machine, this network stands where the product $Q K^\top$ was. The drawing follows one pair through it, a query of 4 numbers
# and a key of 2.

# %% id="pair-figure"
figures.aligner()

# %% id="loops-code"
queries = rng.normal(size=(3, 4))
w_query, w_key, v = rng.normal(size=(4, 7)), rng.normal(size=(2, 7)), rng.normal(size=7)
scores = np.zeros((3, 5))
for i in range(3):
    for j in range(5):
        scores[i, j] = v @ np.tanh(queries[i] @ w_query + key[j] @ w_key)
hidden = np.tanh((queries @ w_query)[:, None] + (key @ w_key)[None])
assert np.allclose(hidden @ v, scores)
assert np.allclose(additive_scores(queries, key, w_query, w_key, v), scores)
print("hidden", hidden.shape, " scores", scores.shape)

# %% [markdown] id="spot-outside"
# ### Spot the mistake: tanh outside the sum
#
# This version runs, trains and looks almost the same: `(np.tanh(queries @ w_query)[:, None] + np.tanh(key @ w_key)) @ v`.
# The check: two different queries must be able to weigh the same keys differently. **Predict** for both versions
# whether the rows of weights differ.

# %% id="spot-outside-code" tags=["predicted"]
outside = (np.tanh(queries @ w_query)[:, None] + np.tanh(key @ w_key)) @ v
for name, e in (("tanh of the sum", scores), ("sum of the tanh", outside)):
    weights = softmax(e)
    print(f"{name}: rows differ by up to {np.ptp(weights, axis=0).max():.2f}")
show("additive-score", wrong="tanh of each projection")

# %% [markdown] id="spot-outside-answer" tags=["answer"]
# The rows differ with the tanh of the sum, and with the sum of the tanh they do not. If each part is bent for itself, the two are added
# afterwards, and {eq}`plain-sum-ignores-query` applies: all queries get the same weights.

# %% [markdown] id="spot-outside-notice"
# A model with this mistake can
# still learn which keys are important to all queries, so its loss can fall, and the mistake may live for long.

# %% [markdown] id="bounds"
# ## What such a score can say
#
# **It is bounded.** tanh lies between $-1$ and $1$. Whatever the vectors,
#
# $$|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1 \label{additive-score-bound}$$
#
# Two scores differ by at most $2 \|v\|_1$. Divide the softmax of the best key by its own term: each of the $n - 1$ others leaves
# at least $e^{-2 \|v\|_1}$ in the denominator, hence
#
# $$\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}} \label{additive-weight-bound}$$
#
# Long keys cannot take over, as they do with dot products, {eq}`query-misses-own-key`. In exchange a small $v$ keeps attention flat: its
# size acts as one over a temperature. **Predict** the largest possible weight among 64 keys for $\|v\|_1 = 1$, and for 5.

# %% id="bounds-code" tags=["predicted"]
for size in (1, 5):
    largest = 1 / (1 + 63 * np.exp(-2 * size))
    print(f"|v|_1 = {size}: no weight among 64 exceeds {largest:.3f}")

# %% [markdown] id="bounds-answer" tags=["answer"]
# The largest possible weight is 0.105 for $\|v\|_1 = 1$ and 0.997 for 5, by {eq}`additive-weight-bound` with $n = 64$. We met 0.105
# for cosines, {eq}`cosine-weight-bound`, because those scores lie between $-1$ and $1$ as well.

# %% [markdown] id="odd"
# **It is odd.** $\tanh(-x) = -\tanh x$, hence for the score of {eq}`additive-score`
#
# $$e(-q, -k) = -e(q, k) \label{additive-score-is-odd}$$
#
# A dot product does not change when both vectors turn round, and neither does the statement "query and key agree". So
# take a task where the right key is the one that **equals** the query, and where $(q, K)$ and $(-q, -K)$ are equally
# likely. The largest score in one is the smallest in the other: the right key can win in at most **half** of the cases.
# No training helps. A **bias** does: a learnt
# vector of $d_h$ numbers, added inside tanh.

# %% [markdown] id="ridge"
# Take numbers for $q$ and $k$, and two units with opposite biases: $e = a \tanh(q - k + b) - a \tanh(q - k - b)$. It is
# {eq}`additive-score` with $W_Q = (1, 1)$, $W_K = (-1, -1)$, $v = (a, -a)$, and the bias $(b, -b)$. Near $q = k$ both terms add; far away
# they cancel: a **ridge** along the diagonal.
#
# **Predict** what is left of the ridge for $b = 0$, and which of the four panels below are odd as in {eq}`additive-score-is-odd`: the
# sum, tanh without a bias, two units with a bias, or the product.
# (Purple is above zero, orange below, and each panel has its own scale.)

# %% id="surfaces-figure" tags=["predicted"]
axis = np.linspace(-4, 4, 81)
q, k = axis[:, None], axis[None, :]
surfaces = {
    "sum, no tanh": 0.5 * q - 0.5 * k,
    "tanh, no bias": 2 * np.tanh(q - 0.5 * k) - 1.5 * np.tanh(0.5 * q + k),
    "two units with a bias": 2 * np.tanh(q - k + 1) - 2 * np.tanh(q - k - 1),
    "product": q * k,
}
figures.score_surfaces(axis, surfaces)

# %% [markdown] id="surfaces-answer" tags=["answer"]
# Nothing is left of the ridge for $b = 0$, because the two units cancel everywhere. The first two panels are odd: there a score at
# $(q, k)$ is minus the one at $(-q, -k)$. In the third and fourth the two are the same.

# %% [markdown] id="surfaces-notice"
# The ridge is a bounded cousin of the Gaussian similarity: it rewards being near, where
# the product rewards being large with the same sign.
#
# Move the query below. Which key wins: the nearest one, or the largest one? **Predict** what "No bias" and "Far away" do to the
# weights; then start on key 3 and press them.

# %% id="explorable" tags=["predicted"]
figures.additive_explorable()

# %% [markdown] id="explorable-answer" tags=["answer"]
# "No bias" makes all weights .250, because without a bias these two units score 0 everywhere. "Far away" makes them practically equal
# too, because there all additive curves are flat. With the query on key 3 and the bias on, the units give this key .756, while the
# product prefers key 4, which is larger.

# %% [markdown] id="explorable-notice"
# Far from all keys
# the units are **saturated**, and a flat score has no gradient. To see it, differentiate. The chain rule gives
#
# $$\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t^2) \bigr), \qquad
#  t = \tanh\bigl(W_Q^\top q + W_K^\top k\bigr) \label{additive-derivative-by-query}$$
#
# Where $t_r = \pm 1$, unit $r$ passes nothing on. (So additive attention meets saturation twice: in its units, and again in
# the softmax.)

# %% [markdown] id="interaction"
# How much does a key change the way the query acts? Differentiate once more, by the key:
#
# $$\frac{\partial^2 e}{\partial q_a\, \partial k_b} = -2 \sum_{r=1}^{d_h} v_r\, t_r\, (1 - t_r^2)\,
#  (W_Q)_{ar}\, (W_K)_{br} \label{additive-query-key-interaction}$$
#
# For a dot product it is 1 for $a = b$, everywhere. Here, without a bias, it is **0** at $q = k = 0$, where $t = 0$: for small
# vectors tanh is a straight line, the score is a sum, and by {eq}`plain-sum-ignores-query` sums do not attend. **Predict** how strongly
# the weights depend on the query if all vectors are a hundred times smaller.

# %% id="interaction-code" tags=["predicted"]
for factor in (1.0, 0.01):
    e = additive_scores(factor * queries, factor * key, w_query, w_key, v)
    apart = np.ptp(softmax(e), axis=0).max()
    print(f"vectors times {factor}: rows differ by up to {apart:.6f}")

# %% [markdown] id="interaction-answer" tags=["answer"]
# The weights practically do not depend on the query then: the rows differ by less than a hundred-thousandth. In the small, tanh is
# a straight line, so the score is a query part plus a key part.

# %% [markdown] id="imitate"
# Between "small" and "saturated" the units do their work. Can they do all that a dot product
# can? Squares could:
#
# $$q \cdot k = \tfrac{1}{4} \sum_{a=1}^{d} (q_a + k_a)^2 - \tfrac{1}{4} \sum_{a=1}^{d} (q_a - k_a)^2 \label{square-units-make-products}$$
#
# That is the form of {eq}`additive-score` with squares in place of tanh, $2d$ units and $v = \pm\frac14$. And tanh units with a bias make
# squares. Around $\beta \ne 0$, $\tanh(\beta + \varepsilon x)$ is a constant, a term in $\varepsilon x$, one in
# $(\varepsilon x)^2$, and smaller ones; with $\pm\varepsilon$ the odd terms cancel, and a difference takes the constant away:
#
# $$\begin{gathered}
# q\,k = \lim_{\varepsilon \to 0} \frac{f(q + k) - f(q - k)}{4\,\varepsilon^2 \tanh''(\beta)}, \\
# f(x) = \tanh(\beta + \varepsilon x) + \tanh(\beta - \varepsilon x) \end{gathered} \label{tanh-units-make-products}$$

# %% id="imitate-product"
beta = 0.5
curvature = -2 * np.tanh(beta) * (1 - np.tanh(beta) ** 2)
for epsilon in (0.5, 0.1, 0.02):
    steps = epsilon * np.array([2.0 + 3.0, 2.0 - 3.0])
    at_sum, at_difference = np.tanh(beta + steps) + np.tanh(beta - steps)
    product = (at_sum - at_difference) / (4 * epsilon**2 * curvature)
    print(f"epsilon {epsilon:4}: 2 times 3 is {product:.3f}")

# %% [markdown] id="vectors"
# On bounded vectors four units with biases for each feature come as close as we like, with huge entries in $v$. That is what
# can be *expressed*; what is *learnt* is another question. **The experiment**: 16 keys of 4 normal numbers; the query is one of
# them, turned by a fixed rotation; the layer is trained by its output alone (300 steps, three seeds, $d_h = 64$). **Predict**
# the order of three scores: additive without bias, additive with bias, scaled dot product.

# %% id="vectors-figure" tags=["predicted"]
record = LOOKUPS.load()
kinds = ("additive", "additive without bias", "scaled dot")
found = {kind: record.values("vectors", kind, "accuracy") for kind in kinds}
curves = {kind: array.mean(axis=0) for kind, array in found.items()}
figures.right_key(curves)

# %% id="vectors-code" tags=["predicted"]
for kind, curve in curves.items():
    print(f"{kind:22}: {curve[-50:].mean():.2f} in the last 50 steps")
keys = np.random.default_rng(0).normal(size=(4000, 16, 4))
own = (keys @ keys.swapaxes(-1, -2)).argmax(axis=-1) == np.arange(16)
print(f"product with the right rotation given: {own.mean():.2f}")

# %% [markdown] id="vectors-answer" tags=["answer"]
# Additive with bias comes first and finds the right key every time; then come the scaled dot product with 0.55 and additive without
# bias with 0.44. The bound by {eq}`additive-score-is-odd` holds, and the bias removes it. The dot product fails for a reason of
# its own: with few features a longer key overtakes, {eq}`lead-of-own-key`, even if the right rotation is given.

# %% [markdown] id="vectors-notice"
# This task was chosen to show the difference; with
# the 16 features of lesson {lesson}`scaling` products did well.

# %% [markdown] id="cost"
# ## What it costs
#
# Count 2 for a multiplication with its addition, 1 for a sum, 1 for a tanh. **Assume** that each vector is projected once,
# not once for each pair. Then per pair and unit: a sum, a tanh, and a multiply-add with $v$.
#
# $$F_{\mathrm{add}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 4\, T_q\, T_k\, d_h \label{additive-score-flops}$$
#
# A dot product of the same projections takes one multiply-add per pair and feature:
#
# $$F_{\mathrm{dot}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 2\, T_q\, T_k\, d_h \label{dot-score-flops}$$
#
# "Additive is much more expensive" cannot be meant here: it is a factor of 2.

# %% [markdown] id="memory"
# But tanh stands between the sum and $v$. A matrix product adds up as it goes; written with arrays, additive scores first make
# a number for **each pair and unit**, and then let $v$ add them. Let $M$ count the numbers in the largest array made for the pairs:
#
# $$M_{\mathrm{add}} = T_q\, T_k\, d_h = d_h\, M_{\mathrm{dot}} \label{additive-memory-overhead}$$
#
# (A loop over units needs less, in many small steps; a training step would have to compute them again.) Training keeps them
# for the backward pass, and Torch tells us what it keeps. **Predict** how many numbers it keeps for each pair: for additive scores
# with $d_h = 64$, and for dot products.


# %% id="memory-code" tags=["predicted"]
def largest_kept(call):
    """Numbers in the largest array that torch keeps for the backward pass."""
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        call()
    return max(kept)


layer, x = AdditiveAttention(64, 64, 64), torch.ones(128, 64, requires_grad=True)
calls = {"additive": lambda: layer(x, x), "dot": lambda: dot_attention(x, x, x)}
for name, call in calls.items():
    print(f"{name:8}: {largest_kept(call) / 128**2:.1f} numbers for each pair")

# %% [markdown] id="memory-answer" tags=["answer"]
# Torch keeps 64 numbers for each pair of additive scores and one for each pair of dot products, as {eq}`additive-memory-overhead` says:
# additive attention keeps its hidden layer, the dot product keeps weights.

# %% [markdown] id="memory-notice"
# The largest arrays in bytes, for float32 and $d_h = 64$:

# %% id="memory-data"
lengths = np.array([64, 128, 256, 512, 1024, 2048, 4096])
hidden = [costs.additive_intermediate_bytes(int(n), int(n), 64) / 1e6 for n in lengths]
scores_megabytes = 4 * lengths**2 / 1e6

# %% id="memory-figure"
figures.memory(lengths, hidden, scores_megabytes)

# %% [markdown] id="time"
# Time need not follow FLOPs: sums and tanh run over a large array, while hardware is built for matrix products. Vaswani et
# al. (2017) say just this: similar in theory, but the dot product is faster and saves space in practice. Measure it on your
# machine; the FLOPs predict a ratio of at most 2.

# %% id="time-live" tags=["live"]
import time


def milliseconds(call):
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


x = np.random.default_rng(0).normal(size=(512, 64)).astype(np.float32)
w, v64 = np.eye(64, dtype=np.float32), np.ones(64, dtype=np.float32)
additive_ms = milliseconds(lambda: additive_scores(x, x, w, w, v64))
dot_ms = milliseconds(lambda: dot_scores(x @ w, x @ w))
print(f"T = 512, d_h = 64: additive {additive_ms:.0f} ms, dot {dot_ms:.1f} ms", end=" ")
print(f"ratio {additive_ms / dot_ms:.0f}")

# %% [markdown] id="spread"
# ## When was it ahead, and why no longer?
#
# Vaswani et al. (2017, § 3.2.1) report: similar for small $d_k$, but additive ahead of the *unscaled* dot product for
# large $d_k$. We can derive what happens at the start. **Assume** $d_q = d_k = d_h = d$, independent standard normal vectors,
# and independent weights of mean 0 and variance $1/d$, in $v$ too. Each unit then sees a sum of variance 2, nearly normal for
# large $d$; $d$ units with $v_r$ of variance $1/d$ add up to the variance of one:
#
# $$\mathrm{Var}[e] \xrightarrow[d \to \infty]{} \mathbb{E}\bigl[\tanh^2(g)\bigr] < 1 \label{additive-score-variance}$$
#
# with $g \sim N(0, 2)$. The dot product has no such brake, {eq}`variance-of-a-score`, unless it is given one:
#
# $$\mathrm{Var}[\,q \cdot k\,] = d, \qquad \mathrm{Var}\Bigl[\frac{q \cdot k}{\sqrt{d}}\Bigr] = 1 \label{unscaled-and-scaled-variance}$$

# %% id="spread-code"
widths = [4, 16, 64, 256]
spread = {"unscaled dot": [], "scaled dot": [], "additive": []}
for d in widths:
    e = []
    for _ in range(40):  # new vectors and new weights each time
        a, b = rng.normal(size=(2, 40, d))
        w_a, w_b = rng.normal(size=(2, d, d)) / d**0.5
        e.append(additive_scores(a, b, w_a, w_b, rng.normal(size=d) / d**0.5))
    spread["additive"].append(np.std(e))
    spread["unscaled dot"].append(dot_scores(a, b).std())
    spread["scaled dot"].append(dot_scores(a, b).std() / d**0.5)

# %% id="spread-figure"
figures.spread_of_scores(widths, spread)

# %% [markdown] id="words"
# So the story should go: no difference in principle, but a bad start for unscaled products. **The experiment**: a dictionary.
# 16 of 32 words are keys, the query is the translation of one of them, each word of both languages is a vector that is learnt
# as well, and only the output is corrected. All three scores get the same budget (450 steps of Adam, one step size, three
# seeds). A run counts as learnt when the right key has the largest weight in over 90 % of the lookups of the last 10 batches.
# **Predict** the order of the nine bars, three scores at each of the widths $d_h = 8$, 64 and 256.

# %% id="words-figure" tags=["predicted"]
widths = (8, 64, 256)
steps = {}
for kind in ("additive", "scaled dot", "unscaled dot"):
    runs = [record.values("words", kind, str(width)) for width in widths]
    steps[kind] = np.median(runs, axis=1)
figures.steps_until_learnt(widths, steps)

# %% id="words-code" tags=["predicted"]
concluded = [LOOKUPS.conclude(result) for result in record.results]
for claim in concluded[0]:
    if claim.startswith("words"):
        print(f"{claim[7:]:54}", [said[claim] for said in concluded])

# %% [markdown] id="words-answer" tags=["answer"]
# Additive and the scaled product learn about equally fast at every width ("as fast" means: within a factor of two), and both learn
# faster the wider they are. The unscaled product comes last: already at $d_h = 8$ it needs about twice the steps, so "similar" is
# generous here, and at 64 and 256 it does not learn within the budget. What fails is a *start*, not a function: a smaller
# $W_Q$ with a smaller step is the same as the scale (section {section}`scaling/measured`). (With the scale the product is a little
# slower than the additive score in all three medians; we claim no more than the factor.)

# %% [markdown] id="words-notice"
# In large translation models Britz et al. (2017) found additive attention slightly but
# consistently ahead of the (unscaled) product, with little effect of the dimension. The scale takes nearly all
# of the gap in our dictionary away, and the price of section {section}`cost` remains.

# %% [markdown] id="aligner"
# ## Bahdanau's aligner
#
# Now the original setting. A recurrent **encoder** (lesson {lesson}`lookup`) reads the source in both directions; its states
# $h_1, \ldots, h_{T_k}$, one for each word, are called annotations. A recurrent **decoder** with state $s_i$ writes the
# translation. Before attention, the decoder got one **fixed-length vector**: the encoder's last states. Bahdanau et al. (2014)
# let it look again at every step:
#
# $$\begin{gathered}
# c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{e^{e_{ij}}}{\sum_{l=1}^{T_k} e^{e_{il}}}, \\
# e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr) \end{gathered} \label{additive-attention}$$
#
# The *old* state asks, for the new one is computed from $c_i$.

# %% id="aligner-alive"
alive("additive-attention")

# %% [markdown] id="aligner-names"
# Some texts write attention over pairs $(k_j, v_j)$ and call **that** Bahdanau's equation. It is not: here keys and values are
# the **same** annotations $h_j$; values of their own are a generalisation. The check is short. Change what the values would be,
# and in {eq}`additive-attention` the scores must change too. **Predict** for each of two layers whether its weights change if the
# values are doubled: in the first, keys and values are the same; the second has separate values.

# %% id="aligner-code" tags=["predicted"]
state = torch.tensor(rng.normal(size=(1, 4)), dtype=torch.float32)
annotations = torch.tensor(rng.normal(size=(5, 2)), dtype=torch.float32)
aligner = AdditiveAttention(4, 2, 7)
_, before = aligner(state, annotations)
_, keys_are_values = aligner(state, 2 * annotations)
_, pairs = aligner(state, annotations, value=2 * annotations)
changed = [not torch.equal(before, after) for after in (keys_are_values, pairs)]
print("keys = values, doubled: weights change:", changed[0])
print("separate values, doubled: weights change:", changed[1])

# %% [markdown] id="aligner-answer" tags=["answer"]
# The weights change in the first layer, because there doubled values are doubled keys, and the scores are made of keys. They stay as
# they are in the second, because no score depends on a separate value. So {eq}`additive-attention` is the first layer.

# %% [markdown] id="spot-padding"
# ### Spot the mistake: padding that answers
#
# Sentences of a batch are filled up with padding to equal length. "The rows of padding are zero, so they add nothing to
# the sum", says a forum answer. The check: a sentence must get the same context whether its batch is wide or narrow. **Predict** the
# score and the weight of a zero row.

# %% id="spot-padding-code" tags=["predicted"]
padded = torch.cat([annotations, torch.zeros(3, 2)])[None]
alone, _ = aligner(state, annotations)
unmasked, weights = aligner(state[None], padded)
masked, _ = aligner(state[None], padded, kv_lengths=torch.tensor([5]))
print("weight on padding, no mask: above 0:", bool((weights[..., 5:] > 0).all()))
for name, context in (("no mask", unmasked), ("mask", masked)):
    same = torch.allclose(context[0], alone, atol=1e-6)
    print(f"same context as alone, {name}:", same)

# %% [markdown] id="spot-padding-answer" tags=["answer"]
# The score of a zero row is $e_{ij} = v^\top \tanh(W_Q^\top s_{i-1})$, which is in general not zero, and its weight is above 0. The row
# adds zero to the numerator, but $e^{e_{ij}}$ to the denominator, so it takes weight away from the words.

# %% [markdown] id="spot-padding-notice"
# The score of padding must be $-\infty$ (lesson {lesson}`masking` makes a theory of that).

# %% [markdown] id="translation"
# **The experiment**: sentences of 2 to 8 different words (24 in all); the translation looks each up in a dictionary and writes
# them **backwards**. Two models: an encoder that reads both ways, a decoder (both GRU, a recurrent network with gates), 48
# numbers per state; one with the aligner, one with the fixed vector of 48 numbers; 350 steps each, three seeds. Then both
# translate fresh sentences, also longer ones than any they saw. **Predict** for both models how the share of right words changes with
# the length of the sentence.

# %% id="translation-figure" tags=["predicted"]
record = TRANSLATIONS.load()
shares = {"aligner": record.values("additive"), "fixed vector": record.values("none")}
figures.accuracy_by_length(record.values("lengths")[0], shares, longest_trained=8)

# %% id="translation-code" tags=["predicted"]
concluded = [TRANSLATIONS.conclude(result) for result in record.results]
for claim in concluded[0]:
    print(f"{claim:48}", [said[claim] for said in concluded])

# %% [markdown] id="translation-notice" tags=["answer"]
# The curve of the fixed vector starts well and falls with each word. That of the aligner stays near 1 up to the 8 words of the
# training, because the aligner leaves the words where they are and fetches one at a time. Two warnings. Beyond 8 words **both** fall:
# encoder and decoder are still recurrent, and have never seen such positions. And the curve of the fixed vector is no law of
# capacity: 8 words out of 24 are about 35 bits, and lesson {lesson}`attention` got about one bit into each number. It is what
# 350 steps find; we compare equal budgets.

# %% [markdown] id="alignment"
# Where does the aligner look? Here are its weights for one fresh sentence.

# %% id="alignment-figure"
figures.alignment(record.results[0]["alignment"])

# %% [markdown] id="alignment-notice"
# Alignments were never shown in training; they are a by-product of having to fetch the right annotation. They are not sharp,
# and at the fourth word the neighbour is ahead: an annotation has also read its neighbours, so one can stand in for another. (A
# weight is no proof of a reason: Jain and Wallace, 2019.)

# %% [markdown] id="limits"
# ## Limits
#
# - **Memory** $d_h$ times that of scores, {eq}`additive-memory-overhead`, and no matrix product that adds up as it goes.
# - **Saturation** twice, in tanh and in the softmax, {eq}`additive-derivative-by-query`.
# - **Without a bias** it is odd and cannot recognise equality, {eq}`additive-score-is-odd`, and small inputs hardly interact,
#   {eq}`additive-query-key-interaction`.
# - **One number for each pair** is still all that comes out: everything in lessons {lesson}`softmax` and {lesson}`attention` about weights
#   and averages applies.
# - The decoder is **recurrent**: step $i$ needs $s_{i-1}$, so targets cannot be computed in parallel, not even in training. Lesson
#   {lesson}`cross_attention`
#   removes that.

# %% id="verify-lesson"
verify_lesson("additive")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost or shape |
# |---|---|---|
# | score | $e_{ij} = v^\top \tanh(W_Q^\top q_i + W_K^\top k_j)$, {eq}`additive-score` | $(T_q, T_k)$ |
# | bound | $\lvert e \rvert \le \lVert v \rVert_1$, {eq}`additive-score-bound` | |
# | symmetry | $e(-q, -k) = -e(q, k)$, {eq}`additive-score-is-odd` | mended by a bias |
# | gradient | $W_Q (v \odot (1 - t^2))$, {eq}`additive-derivative-by-query` | $(d_q)$ |
# | FLOPs of the pairs | $4\, T_q T_k d_h$, {eq}`additive-score-flops`; dot $2\, T_q T_k d_h$ | |
# | numbers kept for the pairs | $T_q T_k d_h$, {eq}`additive-memory-overhead`; dot $T_q T_k$ | |
# | aligner | $c_i = \sum_j \alpha_{ij} h_j$, {eq}`additive-attention` | keys = values = $h_j$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Additive attention scores a pair by a network with one hidden layer; lengths may differ.
# - The sum must be bent **before** $v$ adds it up, or the query cancels; without $v$ there is no score.
# - Scores are bounded by $\|v\|_1$ and, without a bias, odd.
# - FLOPs are at most twice those of the dot product, numbers kept for the pairs $d_h$ times.
# - In our dictionary it was far ahead of the wide dot product only while that had no scale.
# - Bahdanau: keys = values = annotations. The fixed vector faded with each word; the aligner held on as far as it was trained.
#
# Now the [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): Eqs. 4 to 6, the aligner.
# - K. Cho et al. (2014), [arXiv:1406.1078](https://arxiv.org/abs/1406.1078): the fixed-length vector; and
#   [arXiv:1409.1259](https://arxiv.org/abs/1409.1259): its quality falls with the length of the sentence.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.1, additive against dot product.
# - D. Britz et al. (2017), [arXiv:1703.03906](https://arxiv.org/abs/1703.03906): additive against multiplicative, at scale.
# - M.-T. Luong, H. Pham and C. Manning (2015), [arXiv:1508.04025](https://arxiv.org/abs/1508.04025): multiplicative scores.
# - S. Jain and B. Wallace (2019), [arXiv:1902.10186](https://arxiv.org/abs/1902.10186): attention is not explanation.
