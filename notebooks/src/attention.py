# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention: one formula, taken apart
#
# We have the parts: a similarity with a scale (chapter {lesson}`scaling`), a softmax (chapter {lesson}`softmax`), an average of values
# (chapter {lesson}`lookup`). Put together they fill one line. This lesson writes the line out index by index,
# looks at it as a function, asks how much it can carry, and counts what it costs. (Its gradients are chapter {lesson}`gradients`.)
#
# **Afterwards you can** implement attention for any batch, find a wrong axis without a debugger,
# say when a query does *not* find its own key, and predict time and memory.
#
# **You need** chapters {lesson}`lookup`, {lesson}`softmax` and {lesson}`scaling`, matrix products and partial derivatives.
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% id="setup"
import math

import numpy as np

from attn_course import check, costs, show, verify
from attn_course.lessons.attention import figures
from attn_course.lessons.attention.experiments import CAPACITY
from attn_course.reference import attention, gaussian_scores, scaled_dot_scores, softmax

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="hook"
# ## One line that everybody copies
#
# Here it is, with as many queries as keys, so every product fits. Two programmers wrote it; both get rows
# of the right shape, and both outputs are honest averages, with weights that sum to 1. **Predict** which one is attention.

# %% id="hook-code" tags=["predicted"]
rng = np.random.default_rng(4)
query, key, value = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
first = softmax(query @ key.T / math.sqrt(3), axis=0).T @ value
second = softmax(query @ key.T / math.sqrt(3), axis=1) @ value
print("first: ", first[0], "\nsecond:", second[0])

# %% [markdown] id="hook-answer" tags=["answer"]
# The second one is attention. In the first one the *keys* ask and the *queries* answer, and no error message will ever say
# so, because every shape still fits.

# %% [markdown] id="hook-notice"
# To tell such twins apart we need to know, for each index, what it stands for. Here is the machine again, drawn with the
# sizes of these arrays. This lesson puts together the part that is lit; the projections on its left and the
# heads around it have lessons of their own ({lesson}`self_attention` and {lesson}`heads`).

# %% id="machine"
figures.machine("attention", query, key, value)

# %% [markdown] id="machine-notice"
# Follow a row of $Q$: it stays a row in the scores, in the weights and in the output. The columns change their meaning on the
# way, from features to keys and back to features. We begin with one query and no matrices.

# %% [markdown] id="one-query"
# A query $q$ meets $T_k$ pairs of a key $k_j$ and a value $v_j$. Score each key by the scaled dot product, {eq}`scaled-score-variance`;
# turn scores into weights by the softmax, {eq}`softmax`; average the values:
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \label{attention-of-one-query}$$
#
# The average runs over the **values**. Keys decide how much of each, and never appear in the output themselves.

# %% id="one-query-code"
verify("attention-of-one-query")
query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
terms = [math.exp(query[0] @ k / math.sqrt(4)) for k in key]
print("output of query 0:", sum(term * v for term, v in zip(terms, value, strict=True)) / sum(terms))

# %% [markdown] id="sentence"
# The same line by hand, for the sentence "the cat sat because it was tired". All its numbers are whole, $d_k = 4$, and the scale
# is 1/2. The query asks who "it" is. Before you run the cell, take its dot product with the key of "cat": it is
# $2 \cdot 2 + 2 \cdot 2 = 8$.

# %% id="sentence-code"
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, labelled

it, cat = TOKENS.index("it"), TOKENS.index("cat")
dots = KEY[0] @ QUERY[0, it]
mix = softmax(dots / math.sqrt(4))
print(f"query of it: {QUERY[0, it]}, and the keys:\n{labelled(KEY[0])}\n")
print(labelled([dots, dots / 2, mix], ["dot product", "score", "weight"], TOKENS))
print("\noutput of it:", mix @ VALUE[0], " value of cat:", VALUE[0, cat])

# %% [markdown] id="sentence-notice"
# "cat" has the score 4, "because" and "tired" have 0: $e^4$ is about 55, so "cat" weighs 55 times as much as either. The output of "it" is
# nearly the value of "cat", and still an average of all seven.

# %% [markdown] id="all-queries"
# ## All queries at once
#
# Several queries are several separate problems. Give the queries the index $i$ and the keys the index $j$, for good.
# The score of the pair is an entry of a matrix product, since row $i$ of $Q$ meets column $j$ of $K^\top$, which is row
# $j$ of $K$:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$
#
# The softmax treats each row alone. It sums over the keys, with the query held fixed:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$

# %% [markdown] id="all-outputs"
# Mind the names: *scores* before the softmax, any numbers; *weights* after it, and only these sum to 1. Then output $i$
# collects from every $j$:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \label{output-of-a-query}$$
#
# So $p_{ij}$ is the weight **of input $j$ in output $i$**: the first index asks, the second answers. Sums over a common
# inner index are a matrix product once more:
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \label{attention}$$
#
# with softmax row by row. This is Eq. 1 of Vaswani et al. (2017).

# %% id="matrix-verify"
verify("scaled-score", "attention-weights", "output-of-a-query", "attention")
show("attention-weights", s=[[1, 2, 0]], j=2)
show("output-of-a-query", p=[[0.5, 0.25, 0.25]], v=[[4, 0], [0, 4], [2, 2]])

# %% [markdown] id="shapes"
# Every shape, once and for all:
#
# | step | product | shapes |
# |---|---|---|
# | scores | $Q K^\top$ | $(T_q, d_k)\,(d_k, T_k) \to (T_q, T_k)$ |
# | weights | softmax over the last axis | $(T_q, T_k)$ |
# | output | $P V$ | $(T_q, T_k)\,(T_k, d_v) \to (T_q, d_v)$ |
#
# Inner lengths meet and vanish: first $d_k$, then $T_k$. What is left is one output per query, each as long as a value.
# **Predict** the shapes of weights and output for 3 queries, 5 keys, $d_k = 4$ and $d_v = 2$.

# %% id="loops-code" tags=["predicted"]
by_loops = np.zeros((3, 2))
for i in range(3):
    row = np.array([query[i] @ key[j] for j in range(5)]) / math.sqrt(4)
    for j in range(5):
        by_loops[i] += softmax(row)[j] * value[j]

weights = softmax(query @ key.T / math.sqrt(4))
output = weights @ value
print("weights", weights.shape, " output", output.shape, " rows sum to", weights.sum(axis=1))
assert np.allclose(by_loops, output)
assert np.allclose(attention(query, key, value), output)

# %% id="steps-figure"
scores = scaled_dot_scores(query, key)
figures.attention_steps(scores, weights, output)

# %% [markdown] id="spot-transposed"
# ### Spot the mistake: the weight that points the wrong way
#
# "Let $p_{ij}$ be the weight of input $i$ in output $j$. Then $z_i = \sum_j p_{ij} v_j$", says a tutorial. With as
# many queries as keys both readings run, and the sentence sounds harmless. **Predict** what the two weights in the sum
# below should add up to, and whether they do.

# %% id="spot-transposed-code" tags=["predicted"]
show("output-of-a-query", wrong="p_ij read as the weight of input i in output j")

# %% [markdown] id="spot-transposed-notice" tags=["answer"]
# They should sum to 1, and they do not. Sentence and sum contradict each other, and the sum is right. With the other reading, an output adds up *columns*, and
# no column sums to 1, so it is no average: if all values are equal, it does not return that value. Test with
# $T_q \ne T_k$ as well: most transpositions then refuse to run.

# %% [markdown] id="batch"
# ## Many examples: positions are not a batch
#
# Training handles many sequences at a time. They are separate problems, so they get an axis of their own, in front:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$
#
# The last two axes are positions and features; $b$ stands for **all** leading axes, examples now and heads in
# chapter {lesson}`heads`. NumPy's `@` multiplies the last two axes and carries the others along. Only the transposition needs care:
# `key.T` reverses all axes, `swapaxes(-1, -2)` exchanges two.

# %% [markdown] id="batch-turn"
# **Your turn.** Write `my_scores(query, key)`, which returns the scaled scores of all pairs, {eq}`scaled-score`, for queries
# $(\ldots, T_q, d_k)$ and keys $(\ldots, T_k, d_k)$ with the same leading axes, none or several. Put your function in the place of the
# first line below, and run the cell.

# %% id="batch-turn-code" tags=["your-turn"]
my_scores = ...  # your function
check("all-scores", my_scores)

# %% id="batch-code"
verify("batched-attention")
queries, keys, values = (rng.normal(size=(2, *shape)) for shape in ((3, 4), (5, 4), (5, 2)))
batched = softmax(queries @ keys.swapaxes(-1, -2) / math.sqrt(4)) @ values
assert np.allclose(batched[1], attention(queries[1], keys[1], values[1]))
assert np.allclose(batched, attention(queries, keys, values))
print("output", batched.shape)

# %% [markdown] id="spot-flat"
# ### Spot the mistake: rows as data points
#
# "The rows of $X$ are the data points", some texts say, and out of habit from other layers one flattens: a linear layer
# gives the same numbers on `(batch, length, d)` and on `(batch * length, d)`. Attention mixes rows, so it does not.
# The check is to disturb one example and to look at **another**. **Predict** the two numbers.

# %% id="spot-flat-code" tags=["predicted"]
disturbed = keys.copy()
disturbed[1] += rng.normal(size=(5, 4))


def flattened(keys):
    return attention(queries.reshape(6, 4), keys.reshape(10, 4), values.reshape(10, 2))[:3]


print("batched:  example 0 moves by", np.abs(attention(queries, disturbed, values)[0] - batched[0]).max())
print("flattened: example 0 moves by", np.abs(flattened(disturbed) - flattened(keys)).max().round(2))

# %% [markdown] id="spot-flat-notice" tags=["answer"]
# In the batched version example 0 does not move at all. In the flattened one it moves, because your sentence now attends to
# a stranger's. Rows are **positions of one sequence**; the batch is another axis.
# (No error stops you from training it; it just gives other answers whenever it is served with another batch.)

# %% [markdown] id="shift"
# One last look at the rows. Add the same vector $u$ to every key. Row $i$ of the scores moves by $q_i \cdot u / \sqrt{d_k}$,
# the same amount for all keys, and a softmax does not see that, {eq}`softmax-shift-invariance`:
#
# $$\mathrm{Attention}(Q,\, K + \mathbf{1} u^\top,\, V) = \mathrm{Attention}(Q, K, V) \label{key-shift-invariance}$$
#
# **Predict** whether the same holds for a shift of all queries, and for one of all values.

# %% id="shift-verify"
verify("key-shift-invariance")

# %% id="shift-code" tags=["predicted"]
shift = np.array([3.0, -2.0, 1.0, 4.0])
for name, moved in (
    ("keys", attention(query, key + shift, value)),
    ("queries", attention(query + shift, key, value)),
    ("values", attention(query, key, value + shift[:2])),
):
    print(f"{name:8} shifted: output moves by {np.abs(moved - output).max():.2f}")

# %% [markdown] id="shift-notice" tags=["answer"]
# It holds for the keys only. A shifted query adds $u \cdot k_j$, which differs from key to key; shifted values shift the output, by
# 3 and $-2$ here, because the weights sum to 1. (So a bias on the keys is wasted, as chapter {lesson}`absorption` uses.)

# %% [markdown] id="function"
# ## Attention as a function of the query
#
# Fix $K$ and $V$. Then {eq}`attention-of-one-query` maps **any** vector $q$ to an output: a smooth function, made by the context. How
# steep is it? The weights change by {eq}`softmax-derivative`, the scores by $k_j / \sqrt{d_k}$, and the chain rule collects
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$
#
# That is a **covariance** of values and keys under the weights. Where one key has all the weight nothing varies, and the
# function is flat.

# %% [markdown] id="function-bound"
# A covariance is at most the product of two standard deviations, and each of these is at most half a diameter
# (the largest distance between two rows). Hence
#
# $$\Bigl\| \frac{\partial z}{\partial q} \Bigr\|_2 \le \frac{\mathrm{diam}(V)\,\mathrm{diam}(K)}{4 \sqrt{d_k}}
# \label{bounded-slope-in-query}$$
#
# with equality for two keys of equal weight. So for a fixed context the output is continuous, bounded, and has a
# bounded slope in $q$.

# %% id="function-code"
z, p = attention(query[:1], key, value, return_weights=True)
slope = ((value - z) * p.T).T @ (key - p @ key) / math.sqrt(4)
nudges = 1e-5 * np.eye(4)
rise = attention(query[0] + nudges, key, value) - attention(query[0] - nudges, key, value)
print("finite differences agree to 1e-8:", np.abs(rise.T / 2e-5 - slope).max() < 1e-8)
verify("output-derivative-by-query", "bounded-slope-in-query")

# %% [markdown] id="line-predict"
# Draw it. In one dimension queries and keys are numbers. Four pairs: keys $-2, -0.5, 1, 2.5$, values $1, -1, 2, 0$. Is
# attention an interpolation, so that a query near $k_j$ returns about $v_j$? **Predict** the output at $q = 1$ for the
# dot product, and for the Gaussian similarity of {eq}`gaussian-score-expansion`.

# %% id="line-figure" tags=["predicted"]
line = np.linspace(-6.0, 6.0, 241)[:, None]
line_keys, line_values = np.array([[-2.0], [-0.5], [1.0], [2.5]]), np.array([[1.0], [-1.0], [2.0], [0.0]])
curves = {
    "dot product": attention(line, line_keys, line_values)[:, 0],
    "Gaussian, h = 0.4": (softmax(gaussian_scores(line, line_keys, 0.4)) @ line_values)[:, 0],
}
figures.function_of_query(line[:, 0], curves, line_keys[:, 0], line_values[:, 0])

# %% [markdown] id="line-answer" tags=["answer"]
# At $q = 1$ the outputs are 0.3 and 2.0. The dot product never gets near $v_2$ and $v_3$, wherever the query is: a larger
# $q$ favours the larger key, so only the two extreme keys can win.

# %% [markdown] id="counterexample"
# "A query near a key returns about its value" is **false** in general for the dot product. A small counterexample in the plane puts the query exactly *on* a key:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# The scores are $1/\sqrt 2$ and $5/\sqrt 2$: the longer key wins by .94. Attention does not "map a query to its value";
# it returns a mixture, and here a mixture of mostly the other value.

# %% [markdown] id="lead"
# When does the own key win? Take the lead of $k_i$ over $k_j$ for $q = k_i$, and write the dot product by lengths,
# {eq}`dot-product-by-distance`:
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$
#
# Among keys of **equal length** the own key always leads, by half the squared distance. A longer key can overtake it. The
# Gaussian similarity has the first term only, so there the claim becomes a theorem.

# %% [markdown] id="gaussian"
# **Assume** Gaussian similarity of bandwidth $h$, $q = k_i$, and $n - 1$ other keys at least $r$ away. Each of them has at most
# the share $a = e^{-r^2 / (2 h^2)}$ of the weight of $k_i$; and the output misses $v_i$ by at most the weight of the others
# times the diameter:
#
# $$\|z - v_i\| \le (1 - p_i)\,\mathrm{diam}(V) \le \frac{(n - 1)\,a}{1 + (n - 1)\,a}\; \mathrm{diam}(V), \qquad
#  a = e^{-r^2 / (2 h^2)} \label{gaussian-finds-own-key}$$
#
# Small bandwidth, separated keys: then near queries do give near values. The plane below has four keys, with the second
# of {eq}`query-misses-own-key` moved to $(5, 2)$, which changes none of its scores. **Predict** where the dot product gives $k_1$ (value 1,
# ringed) the say.

# %% id="plane-figure" tags=["predicted"]
axis = np.linspace(-6.0, 6.0, 121)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
plane_keys = np.array([[1.0, 0.0], [5.0, 2.0], [-2.0, 3.0], [-2.0, -3.0]])
plane_values = np.array([[1.0], [-1.0], [0.4], [-0.2]])
maps = {
    "dot product": attention(plane, plane_keys, plane_values).reshape(121, 121),
    "Gaussian, h = 1": (softmax(gaussian_scores(plane, plane_keys, 1.0)) @ plane_values).reshape(121, 121),
}
figures.query_plane(axis, maps, plane_keys, plane_values[:, 0], mark=(1.0, 0.0))

# %% [markdown] id="plane-answer" tags=["answer"]
# There is no such place. $k_1$ lies inside the triangle of the other three, so in every direction another key reaches further.

# %% id="lead-verify"
verify("query-misses-own-key", "lead-of-own-key", "gaussian-finds-own-key")
print("p for q = k1:", attention(plane_keys[:1], plane_keys[:2], np.eye(2))[0].round(2))

# %% [markdown] id="plane-notice"
# Where does the output follow the query most? The card has the keys and values of this picture, and keeps the steepest place you
# visited. Start on key 1, press "Keys of equal length" and see which key wins before and after; then press it again, and look
# for the place where the Jacobian is largest.

# %% id="explorable"
figures.query_explorable()

# %% [markdown] id="explorable-notice"
# The slope is steepest on the border between $k_2$ and $k_3$, far up at $q = (0.8, 5.6)$: each has half of the weight, and the norm
# reaches 1.75 of at most 3.04, {eq}`bounded-slope-in-query`. Between $k_2$ and $k_4$ it reaches only 1.20: these keys lie further apart,
# but their values are closer together, and the slope is a covariance of both. Inside a cone it is practically zero.

# %% [markdown] id="linear"
# ## What a linear map could not do, and what it could
#
# "A linear map cannot depend on the context", you may read. Half true. Leave out the softmax:
#
# $$q\,(K^\top V) = \sum_{j=1}^{T_k} (q \cdot k_j)\, v_j, \qquad K K^\top = I \;\Rightarrow\; k_i\,(K^\top V) = v_i
# \label{linear-map-from-context}$$
#
# $K K^\top = I$ says that the keys are orthonormal. The output is **linear in $q$**, with a matrix $K^\top V$ made from the
# context, and it looks values up perfectly as long as there are no more keys than features. (Linear attention,
# chapter {lesson}`linear`, is this.) What fails is a linear map that is **fixed**. **Predict** what a matrix made for one context
# returns in another.

# %% id="linear-verify"
verify("linear-map-from-context")

# %% id="linear-code" tags=["predicted"]
orthonormal = np.linalg.qr(rng.normal(size=(4, 4)))[0]
labels = np.array([[1.0], [2.0], [3.0], [4.0]])
made = orthonormal.T @ labels
print("same context: ", (orthonormal @ made).ravel())
print("keys rotated: ", (orthonormal[[1, 2, 3, 0]] @ made).ravel(), "but wanted", labels.ravel())

# %% [markdown] id="lipschitz"
# One more limit. In $q$ alone the slope is bounded, {eq}`bounded-slope-in-query`, but in self-attention the input $X$ moves queries, keys
# and values together. **Assume** $d_k = 1$ and all three equal to $x_1, \ldots, x_n$. A token at 0 weighs all alike; yet
#
# $$x_1 = 0: \qquad \frac{\partial z_1}{\partial x_1} = \frac{1}{n} + \frac{1}{n} \sum_{j} x_j^2
#  - \Bigl( \frac{1}{n} \sum_{j} x_j \Bigr)^2 \label{self-attention-not-lipschitz}$$
#
# the variance of all $n$ tokens, plus $1/n$ for its own value. Spread the others and the slope grows without bound: as a map
# of $X$, dot-product attention has no global Lipschitz constant (Kim, Papamakarios and Mnih, 2021).

# %% id="lipschitz-code"
verify("self-attention-not-lipschitz")
for spread in (1.0, 10.0, 100.0):
    tokens = np.array([[0.0], [-spread], [spread]])
    up, down = tokens + 1e-6 * np.eye(3)[:, :1], tokens - 1e-6 * np.eye(3)[:, :1]
    rise = attention(up, up, up)[0, 0] - attention(down, down, down)[0, 0]
    print(
        f"others at +-{spread:5.0f}: slope {rise / 2e-6:8.2f},", "{eq}`self-attention-not-lipschitz`", f"{1 / 3 + 2 * spread**2 / 3:8.2f}"
    )

# %% [markdown] id="hold"
# ## What one output can hold
#
# A context of $T_k$ values, an output of $d_v$ numbers: the size of the output is $O(1)$, however long the context. Is
# that a loss? An average certainly forgets. Write $D$ for the pairs $(k_j, v_j)$ and let every pair occur twice:
#
# $$\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D) \label{doubled-context-same-output}$$
#
# Numerator and denominator both double: attention **cannot count**. And what is left of each value? **Assume** values
# independent of each other and of the weights, with variance 1. For one entry of $z$, variances add with squared factors:
#
# $$\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2 \label{variance-of-an-output}$$
#
# Uniform weights leave $1/T_k$: the more is averaged, the fainter the result.

# %% [markdown] id="margin"
# So the weights must be sharp, and a longer context makes that harder. Let one score be $\Delta$ above $n - 1$ equal ones.
# To keep the share $p$ of the weight,
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# Twice the context needs $\ln 2$ more. If scores are bounded, as they are for queries and keys of bounded length, any key
# loses its weight at last (Veličković et al., 2024, prove it; Nakanishi, 2025, multiplies the scores by a learnt multiple of $\ln n$).
# **Predict** the weight that a lead of 7 keeps among a hundred keys, and among a hundred thousand.

# %% id="hold-verify"
verify("doubled-context-same-output", "variance-of-an-output")
verify("margin-grows-with-context")

# %% id="hold-code" tags=["predicted"]
for n in (100, 1000, 100_000):
    print(f"{n:7d} keys: a lead of 7 keeps {softmax(np.array([7.0] + [0.0] * (n - 1)))[0]:.2f}")

# %% [markdown] id="together"
# The usual argument stops here. Its answer: self-attention does not give one output, but **as many as inputs**, and
# together they can hold everything. With $T_q = T_k$ and an invertible $P$,
#
# $$V = P^{-1} Z \label{values-from-all-outputs}$$
#
# Nothing is lost; it is spread over rows. What one output holds is a question for an experiment.

# %% id="together-code"
verify("values-from-all-outputs")
square_query = 2 * rng.normal(size=(5, 4))
mixed, mixing = attention(square_query, key, value, return_weights=True)
print("values recovered from all outputs:", np.allclose(np.linalg.solve(mixing, mixed), value))

# %% [markdown] id="experiment"
# **The experiment.** $T$ random bits, one per position. *One output*: a single trained query reads them all, and from its
# $d_v$ numbers a small network must tell every bit. *One output per question*: $T$ queries, one for each position, and each
# output ($d_v = 4$) tells one bit. Everything is trained (600 steps, three seeds; `attn_course/lessons/attention/experiments.py`).
# **Predict** at which $T$ the single output breaks for $d_v = 4$ and for $d_v = 16$.

# %% id="experiment-figure" tags=["predicted"]
record = CAPACITY.load()
one, many = record.values("one output").mean(axis=0), record.values("one output per question").mean(axis=0)
shares = {"one output, d_v = 4": one[0], "one output, d_v = 16": one[1], "one output per question": many}
figures.bits_held(record.values("lengths")[0], shares)

# %% id="experiment-code" tags=["predicted"]
for name in CAPACITY.conclude(record.results[0]):
    held = [CAPACITY.conclude(result)[name] for result in record.results]
    print(f"{name:24}: 99 % right up to T =", held)

# %% [markdown] id="experiment-notice" tags=["answer"]
# The single output breaks where $T$ passes $d_v$, in all three seeds: too few numbers to keep the bits apart. An output per
# question (with $d_v = 4$) holds to the end. (In theory one
# real number can hold any count of bits in its digits; our training did not find that, and rounding limits it.) The
# loss is real for one output, and no loss for a layer that asks once for each thing it wants to know.

# %% [markdown] id="cost"
# ## What it costs
#
# Count a multiplication with its addition as 2 operations. $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms, $P V$ has
# $T_q d_v$ entries of $T_k$ terms:
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \label{attention-flops}$$
#
# Memory traffic: three steps, each of which reads its inputs and writes its result. The score matrix is written, read by the
# softmax, and written as weights, which the last product reads:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$
#
# **Predict** by which factor both grow from $T = 1024$ to $T = 8192$, with $d_k = d_v = 64$.

# %% id="cost-verify"
verify("attention-flops", "attention-traffic")

# %% id="cost-code" tags=["predicted"]
for length in (1024, 8192, 65536):
    flops = costs.attention_flops(length * length, 64, 64)
    moved_bytes = costs.materialised_attention_bytes(length, length, 64, 64)
    moved, stored = moved_bytes / 1e6, 2 * length**2 / 1e6
    print(f"T = {length:5d}: {flops / 1e9:7.1f} GFLOP  {moved:8.1f} MB moved  {stored:7.1f} MB of scores")

# %% id="cost-figure" tags=["predicted"]
lengths = np.geomspace(64, 65536, 31).round()
in_and_out = 2 * lengths * 128 * 2 / 1e6
score_traffic = 4 * lengths**2 * 2 / 1e6
figures.traffic(lengths, score_traffic, in_and_out)

# %% [markdown] id="cost-notice" tags=["answer"]
# The operations grow by 64, which is the square of eight times the length, and the traffic by 61. At $T = 65536$ the scores of
# **one** head fill 8.6 GB, though the result has 8 MB. And only about 64 operations are done for each number moved, where
# an accelerator could do some hundreds meanwhile: memory sets the pace. FlashAttention (Dao et al., 2022) never stores
# the matrix: chapter {lesson}`flash`.

# %% [markdown] id="cost-yours"
# The next cell measures your own machine.

# %% id="cost-live" tags=["live"]
import time

for length in (512, 1024, 2048):
    x = np.random.default_rng(0).normal(size=(length, 64)).astype(np.float32)
    start = time.perf_counter()
    attention(x, x, x)
    print(f"T = {length}: {1e3 * (time.perf_counter() - start):.0f} ms")

# %% [markdown] id="break"
# ### Break the machine
#
# Four mistakes of this lesson hide in twins of a small attention: one at a time runs beside the machine, and on the numbers it
# starts with both agree. Change as few numbers as you can until they differ, press the lamp that proves it, and say which
# mistake it is.

# %% id="break-card"
from attn_course.figures.broken import break_the_machine

break_the_machine("softmax-over-queries")

# %% [markdown] id="limits"
# ## Limits
#
# - **Similarity is not distance**: a long key overrules a near one, {eq}`query-misses-own-key`. Normalised queries and keys mend it.
# - **No answer "nothing fits"**, and no count, {eq}`doubled-context-same-output`: an output is always a full average.
# - **Sharpness fades with length**, {eq}`margin-grows-with-context`. If scores stay within $\pm B$, no weight exceeds $e^{2B} / n$, so
#   exchanging one
#   key and its value (bounded too) moves an output by at most a constant over $n$; Hahn (2020) builds on this.
# - **Slope without bound** in $X$, {eq}`self-attention-not-lipschitz`; on bounded inputs it is finite.
# - **Quadratic** time and, if stored, memory: tiling saves the memory (chapter {lesson}`flash`), linear attention both (chapter
#   {lesson}`linear`).

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | scores | $S = Q K^\top / \sqrt{d_k}$, {eq}`scaled-score` | $(\ldots, T_q, T_k)$ |
# | weights | $P = \mathrm{softmax}(S)$ over keys, {eq}`attention-weights` | $(\ldots, T_q, T_k)$ |
# | output | $Z = P V$, {eq}`attention` | $(\ldots, T_q, d_v)$ |
# | slope in $q$ | $\mathrm{Cov}_p(v, k) / \sqrt{d_k}$, {eq}`output-derivative-by-query` | $(d_v, d_k)$ |
# | margin | $\Delta = \ln(n-1) + \ln \frac{p}{1-p}$, {eq}`margin-grows-with-context` | a score |
# | cost | $2 T_q T_k (d_k + d_v)$ FLOPs, {eq}`attention-flops` | |

# %% [markdown] id="summary"
# ## Summary
#
# - The first index asks, the second answers: softmax over keys, sum over keys.
# - Leading axes are separate problems; rows are positions of one sequence, never a batch.
# - As a function of $q$, attention is smooth, with a covariance as its slope; it need not find the nearest key.
# - One trained output held about $d_v$ bits; as many outputs as questions held them all.
# - Work and traffic grow with $T_q T_k$, and the traffic hurts first.
#
# Now the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): Eq. 1, and the reason for the scale.
# - H. Kim, G. Papamakarios and A. Mnih (2021), [arXiv:2006.04710](https://arxiv.org/abs/2006.04710): no Lipschitz constant
#   for the dot product, one for a distance.
# - M. Hahn (2020), [arXiv:1906.06755](https://arxiv.org/abs/1906.06755): what self-attention cannot compute.
# - P. Veličković et al. (2024), [arXiv:2410.01104](https://arxiv.org/abs/2410.01104): softmax must disperse.
# - K. M. Nakanishi (2025), [arXiv:2501.19399](https://arxiv.org/abs/2501.19399): scores that grow with $\ln n$.
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention.
