# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# You have already done attention for one word: it compares its query with all keys, a softmax turns these scores into weights, and with
# them it averages the values. Now you write, test and differentiate it for whole batches.
#
# **Afterwards you can** write attention for any batch and hide padding; find a wrong axis, a wrong scale or a mixed batch with four small
# tests; say when a query finds the value of its key, and what an output loses; and predict operations and memory.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax` and {lesson}`scaling`, matrix products, covariance and partial derivatives.
# **Time:** 60 minutes, ten more for the two turns, without the deeper sections and the
# [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="who"
# ## Is this line wrong?
#
# In 2022 a reader of a widely read collection of annotated papers stopped at one line of an attention layer, whose scores had the axes
# (batch, query, key, head):
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# The code ran, and the layer could be trained. Is the line wrong, and which test says so in five seconds? We find out in section
# {section}`batch`, but the test needs a number that we trust, so we first make one by hand. In *The cat sat because it was tired*, "cat"
# asks here: it looks for words that tell something.

# %% id="who-code"
import numpy as np

from attn_course.lessons.attention import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, labelled

q, keys, values = QUERY[0, 1], KEY[0], VALUE[0]  # "cat" asks; [0] is the first head
names = ("alive", "tells", "open", "alive - tells")
print(labelled([q, *keys], ("cat asks", *TOKENS), columns=names))

# %% [markdown] id="who-machine"
# Here is the machine of the course again, with the part of this lesson lit:

# %% id="machine"
figures.machine("attention", QUERY[0], keys, values)

# %% [markdown] id="by-hand"
# The query of "cat" has the dot product $2 \cdot 2 = 4$ with the keys of "sat" and "tired", 2 with that of "was", and 0 with the four
# others. Divided by $\sqrt{d_k} = 2$, these are the scores. A weight is $e$ to the score, divided by the sum of all seven powers, where
# $e^2 \approx 7.4$ and $e \approx 2.7$. **Predict** which share of the weight the four words with the score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
dots = keys @ q
terms = np.exp(dots / np.sqrt(4))
mix = terms / terms.sum()
figures.one_query(TOKENS, q, keys, dots, mix, values, mix @ values)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# They get 0.19 together, because a score of 0 is not a weight of 0. Since $e^0 = 1$, the seven powers are 7.4 twice, 2.7 once and 1 four
# times, in all 21.5, and $4 / 21.5 \approx 0.19$. "sat" and "tired" get 0.344 each, the number that our test needs.

# %% [markdown] id="one-query"
# What "cat" has done, any query can do. When $q$ meets $T_k$ keys $k_1, k_2, \ldots$ with their values $v_1, v_2, \ldots$, attention
# returns
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$
#
# The fraction is the weight of key $j$. Only the **values** are averaged, while query and keys decide how much of each comes out. We
# divide by $\sqrt{d_k}$ because the dot product of two vectors of $d_k$ independent entries with mean 0 and variance 1 has the variance
# $d_k$ (lesson {lesson}`scaling`). Without the division, a large $d_k$ alone would push nearly all the weight onto one key.

# %% id="one-query-verify"
from attn_course import check, verify

verify("attention-of-one-query")

# %% [markdown] id="all-queries"
# ## All queries at once
#
# Seven tokens ask seven questions, which we want to answer in one step. From here on, $i$ counts the queries, from 1 to $T_q$, and $j$
# the keys, from 1 to $T_k$. Vectors are rows, and as queries, keys and values are the rows of $Q$, $K$ and $V$, all dot products are one
# matrix product (lesson {lesson}`start`):
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$
#
# The softmax treats each row by itself, because it sums over the keys while the query stays the same:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$

# %% [markdown] id="all-outputs"
# We call the numbers before the softmax **scores** and those after it **weights**. (In lesson {lesson}`softmax` a score was called $z$,
# and in {lesson}`start` it was not divided; here $z$ is an output.) Output $i$ is the average of the values with the weights of row $i$:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$
#
# Since no weight is negative and they sum to 1, this is a **convex combination** of the values, and so it lies in their hull (lesson
# {lesson}`lookup`).

# %% [markdown] id="matrix"
# Read $p_{ij}$ as "the weight **of input $j$ in output $i$**", where the first index asks and the second one answers. Since the sum over
# $j$ is again a matrix product, all outputs together are
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# with the softmax taken along each row. This is the first equation of Vaswani et al. (2017), and with it we can let all seven tokens ask.
# For "sat", with the query $(2, 0, 0, 2)$, "cat" has the score 4 and "because" 0, while the query of "was" is half of that,
# $(1, 0, 0, 1)$. **Predict** how many times as much weight "cat" gets as "because", once if "sat" asks and once if "was" asks.

# %% id="matrix-code" tags=["predicted"]
import math

from attn_course.reference import attention, softmax

np.set_printoptions(precision=3, suppress=True)
scores = QUERY[0] @ KEY[0].T / math.sqrt(4)
weights = softmax(scores)
output = weights @ VALUE[0]
for token in ("sat", "was"):
    p = weights[TOKENS.index(token)]
    print(f"{token} asks: cat has {p[1] / p[3]:.1f} times the weight of because")
figures.attention_steps(scores, weights, output, TOKENS)

# %% [markdown] id="matrix-answer" tags=["answer"]
# If "sat" asks, "cat" gets $e^4 \approx 55$ times as much, but if "was" asks, only $e^2 \approx 7.4$ times. Half a query halves the
# scores, and since these stand in an exponent, each ratio of weights is not halved but replaced by its square root. And the query of
# "because" is zero, so all its scores are 0, and its weights are 1/7 each.

# %% [markdown] id="shapes"
# ### Every shape
#
# Our sentence has as many queries as keys, but in general four sizes are free: $T_q$ queries, $T_k$ keys, $d_k$ numbers in a query or
# key, and $d_v$ numbers in a value.
#
# | step | product | shapes |
# |---|---|---|
# | scores | $Q K^\top$ | $(T_q, d_k)\,(d_k, T_k) \to (T_q, T_k)$ |
# | weights | softmax of each row | $(T_q, T_k) \to (T_q, T_k)$ |
# | output | $P V$ | $(T_q, T_k)\,(T_k, d_v) \to (T_q, d_v)$ |
#
# Queries and keys must have the same number of entries, because they meet in a dot product, but values may have more or fewer. Here all
# four sizes differ:

# %% id="shapes-code"
rng = np.random.default_rng(4)
sizes = (3, 4), (5, 4), (5, 2)  # T_q, d_k; T_k, d_k; T_k, d_v
query, key, value = (rng.normal(size=size) for size in sizes)
by_loops = np.zeros((3, 2))
for i in range(3):
    row = softmax(np.array([query[i] @ key[j] for j in range(5)]) / math.sqrt(4))
    for j in range(5):
        by_loops[i] += row[j] * value[j]
assert np.allclose(attention(query, key, value), by_loops)
verify("scaled-score", "attention-weights", "output-of-a-query", "attention")

# %% [markdown] id="batch"
# ## Many examples at a time
#
# So far we had one sequence, but training handles many together, each independent of the others. We number them with an index $b$, on one
# more axis in front:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$
#
# The last two axes are positions and features, and $b$ stands for **all** axes before them: examples now, heads in lesson
# {lesson}`heads`. Nothing in the formula mixes two different $b$.

# %% [markdown] id="batch-turn"
# **Your turn: batched attention**, the milestone of this lesson. Write `my_batched_attention(query, key, value)` for float64 arrays of the
# shapes $(\ldots, T_q, d_k)$, $(\ldots, T_k, d_k)$ and $(\ldots, T_k, d_v)$ with the same leading axes, none or several. It returns the
# outputs, $(\ldots, T_q, d_v)$. Write the softmax yourself; scores are below 30 in size, so no maximum has to be subtracted. Functions of
# the course and a library's softmax or attention are not accepted. (To try the first step alone, write `my_scores(query, key)` and call
# `check("all-scores", my_scores)`.)

# %% id="batch-turn-code" tags=["your-turn"]
my_batched_attention = ...  # your function
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="batch-ours" tags=["ours"]
# ```python
# def my_batched_attention(query, key, value):
#     scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
#     terms = np.exp(scores)
#     return terms / terms.sum(axis=-1, keepdims=True) @ value
# ```
#
# `@` carries leading axes along, and `keepdims=True` keeps an axis of length 1 for the division.

# %% [markdown] id="batch-own"
# The course's own function agrees with PyTorch's on a batch of two:

# %% id="batch-code"
import torch

batch = [rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2))]
by_torch = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, batch))
assert np.allclose(attention(*batch), by_torch)

# %% [markdown] id="padding"
# ### Sentences of unequal length
#
# A batch is one array, so short sentences are filled up with **padding**, and padded keys must get no weight. Since a score of 0 would
# still give them some, we set their scores to $-\infty$: then $e^{-\infty} = 0$, and each row of weights sums to 1 over the true keys. (A
# row without any true key would be 0/0; the course's softmax then returns zeros.) To test this, we let the second example have three true
# keys of five, and compute it **alone**:

# %% id="padding-code"
lengths = np.array([5, 3])
true_key = np.arange(5) < lengths[:, None, None]  # (5,) against (2, 1, 1) is (2, 1, 5)
s = batch[0] @ batch[1].swapaxes(-1, -2) / math.sqrt(4)  # (2, 3, 5)
p = softmax(np.where(true_key, s, -np.inf))
print(p[1].round(2))
alone = attention(batch[0][1], batch[1][1, :3], batch[2][1, :3])
assert np.allclose((p @ batch[2])[1], alone)
verify("batched-attention")

# %% [markdown] id="spot"
# ### Spot the mistake
#
# Now back to the question of the beginning. Each of these four functions is meant to be batched attention, and each has one mistake. Read
# them first, and say for each what it computes instead.


# %% id="spot-code"
def one(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(s, axis=-2) @ v


def two(q, k, v):
    return softmax(k @ q.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def three(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[1])) @ v


def four(q, k, v):
    rows = (a.reshape(-1, a.shape[-1]) for a in (q, k, v))
    return attention(*rows).reshape(*q.shape[:-1], v.shape[-1])


# %% [markdown] id="spot-tests"
# Which tests find them? We try four small ones, three of them on our sentence:
#
# - **equal**: values that are all 1 must come back as 1;
# - **by_hand**: "cat" must give "sat" the weight 0.344 (with the identity matrix as values, the output is $P$ itself);
# - **sizes**: it must run with $T_q \ne T_k$ and $d_k \ne d_v$;
# - **alone**: in a batch that holds the sentence twice, other keys in example 1 must not change example 0.

# %% id="spot-tests-code"
sentence = QUERY[:1], KEY[:1]  # a batch of one
twice = [np.stack([a[0], a[0]]) for a in (QUERY, KEY, VALUE)]
changed = [twice[0], np.stack([KEY[0], 3 * KEY[0]]), twice[2]]


def equal(f):
    return np.allclose(f(*sentence, np.ones((1, 7, 1))), 1)


def by_hand(f):
    return abs(f(*sentence, np.eye(7)[None])[0, 1, 2] - 0.344) < 0.001  # cat, sat


def sizes(f):
    return f(*batch).shape == (2, 3, 2)


def alone(f):
    return np.allclose(f(*twice)[0], f(*changed)[0])


# %% [markdown] id="spot-predict"
# **Predict** which of the four functions fail the first test, and which of them pass the second.


# %% id="spot-table" tags=["predicted"]
def passes(test, f):
    try:
        return test(f)
    except ValueError:  # shapes that do not fit
        return False


for f in (attention, one, two, three, four):
    passed = [t.__name__ for t in (equal, by_hand, sizes, alone) if passes(t, f)]
    print(f"{f.__name__:9} passes:", ", ".join(passed))

# %% [markdown] id="spot-answer" tags=["answer"]
# Only `one` fails the first test, because it takes the softmax over the queries, while in the three others each row of weights sums to 1.
# Only `four` passes the second test, because it joins batch and positions into one long axis, and in a batch of one there is nothing to
# join. In `two` the keys ask, and `three` divides by the root of axis 1, which here is a number of positions.
#
# So the number made by hand finds three of the four, and `three` fails that test only. The line of 2022 makes the mistake of `one`, since
# its axis 1 counts the queries, and either of the first two tests finds it. "That's a typo and a big bug!" was the author's answer, yet
# the reader, who trained a model with each axis, reported that their pictures were about equally good. So such a mistake need not raise
# an error, nor spoil a training run.

# %% [markdown] id="function"
# ## Attention as a function of the query
#
# Now that we can test our code, what does it compute? If $K$ and $V$ are fixed, {eq}`attention-of-one-query` sends **any** vector $q$ to
# an output $z(q)$, so the context has become a function. How fast does it change, and what does it return on a key?

# %% [markdown] id="function-slope"
# ### The slope
#
# The query moves the scores, the scores move the weights, and the weights move the output. (Here **vectors are columns**.) From
# $s_l = q \cdot k_l / \sqrt{d_k}$ we get $\partial s_l / \partial q = k_l / \sqrt{d_k}$. For the weights, the derivative of the softmax,
# {eq}`softmax-derivative`, says in our letters that $\partial p_j / \partial s_l = p_j (\delta_{jl} - p_l)$, where $\delta_{jl}$ is 1 if
# $l = j$ and else 0. The chain rule multiplies the two and sums over $l$, and the $\delta$ keeps the one term $l = j$:
#
# $$\frac{\partial p_j}{\partial q} = \sum_l p_j\,(\delta_{jl} - p_l)\,\frac{k_l}{\sqrt{d_k}}
#  = \frac{p_j\, k_j}{\sqrt{d_k}} - \frac{p_j}{\sqrt{d_k}} \sum_l p_l\, k_l
#  = \frac{p_j\,(k_j - \bar{k})}{\sqrt{d_k}}$$
#
# with the **mean key** $\bar{k} = \sum_l p_l k_l$. So a weight grows fastest when the query moves in the direction from the mean key to
# its own key.

# %% [markdown] id="function-centre"
# Entry $a$ of the output is $z_a = \sum_j p_j\, v_{ja}$, in which only the weights depend on $q$, so
#
# $$\frac{\partial z_a}{\partial q_c} = \sum_j v_{ja} \frac{\partial p_j}{\partial q_c}
#  = \frac{1}{\sqrt{d_k}} \sum_j p_j\, v_{ja}\, (k_j - \bar{k})_c$$
#
# This is entry $(a, c)$ of the matrix $\frac{1}{\sqrt{d_k}} \sum_j p_j\, v_j\, (k_j - \bar{k})^\top$, a sum of columns times rows. We may
# also subtract $z$ from every $v_j$, because what is subtracted adds up to 0:
#
# $$\sum_j p_j\, z\, (k_j - \bar{k})^\top = z \Bigl( \sum_j p_j k_j - \bar{k} \sum_j p_j \Bigr)^\top
#  = z\, \bigl( \bar{k} - \bar{k} \cdot 1 \bigr)^\top = 0$$

# %% [markdown] id="function-covariance"
# So the derivative is
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$
#
# Up to the factor $1/\sqrt{d_k}$ this is the **covariance** of values and keys under the weights. As one key takes all the weight, it
# goes to 0 and the function turns flat, because the terms of the other keys vanish with their $p_j$, and the term of that key vanishes as
# $z$ approaches its value.

# %% [markdown] id="far-predict"
# ### On a key
#
# Our other question is whether attention interpolates: does a query placed exactly on a key return roughly the value of that key? We try
# four keys in the plane, $k_1 = (1, 0)$, $k_2 = (5, 2)$, $k_3 = (-2, 3)$ and $k_4 = (-2, -3)$, with the values $1$, $-1$, $0.4$ and
# $-0.2$. **Predict** which key gets the largest weight when the query sits on $k_1$, and roughly which output that gives.

# %% id="plane-figure" tags=["predicted"]
from attn_course.reference import gaussian_scores

axis = np.linspace(-6.0, 6.0, 121)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
plane_keys = np.array([[1.0, 0.0], [5.0, 2.0], [-2.0, 3.0], [-2.0, -3.0]])
plane_values = np.array([[1.0], [-1.0], [0.4], [-0.2]])
by_distance = softmax(gaussian_scores(plane, plane_keys, 1.0)) @ plane_values
maps = {
    "dot product": attention(plane, plane_keys, plane_values).reshape(121, 121),
    "Gaussian, h = 1": by_distance.reshape(121, 121),
}
figures.query_plane(axis, maps, plane_keys, plane_values[:, 0])

# %% [markdown] id="far-answer" tags=["answer"]
# On $k_1$ the dot products are 1, 5, $-2$ and $-2$, so $k_2$ gets the largest weight, and the output is about $-0.9$, near $v_2 = -1$:
# attention does not interpolate. The left picture has three regions, one each for $k_2$, $k_3$ and $k_4$, but none for $k_1$. This is
# because $k_1 = (3 k_2 + k_3 + 3 k_4) / 7$, so its score is the same average of their scores, and never above all three. On the right the
# score is **Gaussian**, minus half the squared distance, $-\|q - k_j\|^2 / 2$, and there every key wins where it is the nearest.

# %% [markdown] id="own-key"
# So with the dot product a query can miss its value even when it sits exactly on its key. Two keys are enough to show it:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# The scores are $1/\sqrt 2$ and $5/\sqrt 2$, so the longer key wins. Does it help if all keys have the **same norm** (length) $\rho$?
# Then $\|k_1 - k_j\|^2 = 2 \rho^2 - 2\, k_1 \cdot k_j$, and $\rho^2$ is $k_1 \cdot k_1$. So at $q = k_1$ the score of $k_1$ leads that of
# $k_j$ by
#
# $$\text{lead}_j = \frac{k_1 \cdot k_1 - k_1 \cdot k_j}{\sqrt{d_k}} = \frac{\|k_1 - k_j\|^2}{2 \sqrt{d_k}}$$

# %% [markdown] id="own-key-lead"
# This is positive for $k_j \ne k_1$, so now $k_1$ has the largest weight, but that weight need not be large. Since each other key has
# $e^{-\text{lead}_j}$ times as much, and all weights sum to 1,
#
# $$p_1 = \frac{1}{1 + \sum_{j \ne 1} e^{-\text{lead}_j}}$$
#
# Hence $p_1$ is near 1 only if this sum is small, so every lead must be large, and if all are alike, larger the more keys there are. Keys
# of norm 1 with $d_k = 64$, for example, are at most 2 apart, so every lead is at most $4 / 16$, and each other key has at least $e^{-1/4} \approx 0.78$
# times the weight of $k_1$. How do our four keys fare with the norm 3?

# %% id="own-key-verify"
same_norm = 3 * plane_keys / np.linalg.norm(plane_keys, axis=1, keepdims=True)
z, p = attention(same_norm[:1], same_norm, plane_values, return_weights=True)
print(f"on k_1: weight {p[0, 0]:.3f}, output {z[0, 0]:.3f}, and its value is 1")
verify("output-derivative-by-query", "query-misses-own-key")

# %% [markdown] id="plane-notice"
# The card has the keys and values of the picture. Press "On key 1", then "Keys of equal length" and "On key 1" again: now $k_1$ wins, but
# its lead over $k_2$ is small. The arrow is the slope, {eq}`output-derivative-by-query`. Then press "Reset", and move the query. Where
# does the output follow the query most?

# %% id="explorable"
figures.query_explorable()

# %% [markdown] id="explorable-answer"
# <details><summary>What you should see</summary>
#
# With the dot product and the keys of the picture, the slope is largest on the border between $k_2$ and $k_3$, where each of the two has
# half of the weight. Far up on this border, at $q = (0.8, 5.6)$, it reaches 1.75, while on the border between $k_2$ and $k_4$ it stays
# below 1.22. There the two keys are further apart, but their values are closer together, and a covariance needs both.
#
# </details>

# %% [markdown] id="hold"
# ## What one output holds
#
# An output follows its query, but how much does it tell about its values? If these may be any numbers, one output does not determine two
# or more of them, because many changes leave it as it is. For these we keep query and keys, and so the weights, but change each $v_j$ by
# some $\mathrm{d}v_j$. The output changes by $\sum_j p_j\, \mathrm{d}v_j$, so the change is **invisible** if
#
# $$\sum_{j=1}^{T_k} p_j\, \mathrm{d}v_j = 0$$
#
# Without padding all weights are positive, so we can choose all $\mathrm{d}v_j$ but one freely, and that one makes up for the others. In
# each of the $d_v$ features $T_k - 1$ numbers are free, and the invisible changes have $(T_k - 1)\, d_v$ dimensions, out of $T_k\, d_v$.

# %% [markdown] id="hold-turn"
# **Your turn: another context, the same output.** Write `my_values(weights, value)` for the weights $(T_k,)$ of one query, which are
# positive and sum to 1, and values $(T_k, d_v)$ with $T_k \ge 2$. It returns other values with the same output: the first value is erased,
# so that all its numbers are 0, the last one makes up for that, and those in between stay as they are.

# %% id="hold-turn-code" tags=["your-turn"]
my_values = ...  # your function
check("same-output-other-values", my_values)

# %% [markdown] id="hold-ours" tags=["ours"]
# The first value changes by $-v_1$, so the last one must change by $\frac{p_1}{p_{T_k}} v_1$:
#
# ```python
# def my_values(weights, value):
#     other = value.copy()
#     other[0] = 0
#     other[-1] += weights[0] / weights[-1] * value[0]
#     return other
# ```
#
# In our sentence, "it" gives "cat" $e^4$ times the weight of "because". So if you erase the value of "cat", $(2, 0, 2)$, and add
# $e^4 (2, 0, 2)$ to that of "because", the output for "it" is as before.

# %% [markdown] id="together"
# A change that is invisible to one query may be visible to another. If we change the values of "cat" and "because" so that the output for
# "it" stays as it is, then "was" notices, because it weights the two words in the ratio $e^2$ instead of $e^4$. So the outputs of a
# layer, one for each **query**, can hold more between them than a single output. Section {section}`experiment` trains a single output,
# and then one output for each question, to give back random bits.

# %% [markdown] id="cost"
# ## What it costs
#
# Each query meets each key, so how much work is this? We count a multiplication and its addition as 2 operations. $Q K^\top$ has
# $T_q T_k$ entries of $d_k$ terms each, and $P V$ has $T_q d_v$ entries of $T_k$ terms each, so the two products together take
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \key{attention-flops}$$
#
# if all pairs are computed, also those that a mask hides. (The softmax adds a few operations for each score.) The inputs are
# $T_q d_k + T_k (d_k + d_v)$ numbers, and if all scores are stored, these are another $T_q T_k$.

# %% [markdown] id="cost-cases"
# Take $d_k = d_v = 64$ and 16-bit numbers, which take 2 bytes each, in three cases: 1024 tokens that attend to themselves, 8192 tokens
# that do so, and a **single new token** that attends to 8192 tokens, as at every step when a model writes text. **Predict** how many
# times as many operations the second case takes as the first, and about how many operations the third takes for each byte of its inputs.

# %% id="cost-code" tags=["predicted"]
from attn_course import costs

for q_len, kv_len in ((1024, 1024), (8192, 8192), (1, 8192)):
    flops = costs.attention_flops(q_len * kv_len, 64, 64)
    inputs = 2 * (q_len * 64 + kv_len * (64 + 64))
    sizes = f"T_q = {q_len:4}, T_k = {kv_len:4}: {flops / 1e9:8.4f} GFLOP"
    scores_mb = 2 * q_len * kv_len / 1e6
    print(f"{sizes}, inputs {inputs / 1e6:.2f} MB, scores {scores_mb:6.2f} MB")
verify("attention-flops")

# %% [markdown] id="cost-notice" tags=["answer"]
# The second case takes $8 \cdot 8 = 64$ times as many operations, since both lengths enter, and its scores take 134 MB, for one head of
# one layer. The third takes only about one operation for each byte, because it uses each number of the keys and values, 2 bytes, for one
# multiplication and one addition. Section {section}`traffic` says what that means for a processor.

# %% [markdown] id="limits"
# ## Limits
#
# Even attention without a mistake has limits:
#
# - **Similarity is not distance.** A long key can overrule a near one, as in {eq}`query-misses-own-key`. Among keys of the same norm the
#   nearest has the largest weight, but perhaps by very little.
# - **An output is always an average of values.** It cannot leave their hull, and it has no way to say that nothing fits, unless the
#   context holds a token for that.
# - **In a long context weights fade** if the scores stay within bounds, as section {section}`fade` shows.
# - **Work grows with $T_q T_k$**, and so does memory if scores are stored. Lessons {lesson}`linear` and {lesson}`flash` deal with that.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | output |
# |---|---|---|
# | one query, {eq}`attention-of-one-query` | {key}`attention-of-one-query` | $(d_v)$ |
# | convex combination, {eq}`output-of-a-query` | {key}`output-of-a-query` | $(d_v)$ for each query |
# | all queries, {eq}`attention` | {key}`attention` | $(\ldots, T_q, d_v)$ |
# | cost of its two products, {eq}`attention-flops` | {key}`attention-flops` | scores need memory $T_q T_k$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Weights sum to 1 over the keys; outputs are convex combinations of values.
# - Leading axes are separate problems; padded keys get the score $-\infty$.
# - Four tests find the mistakes shown here: equal values, a number by hand, different sizes, examples alone.
# - The slope in $q$ is the covariance of values and keys, divided by $\sqrt{d_k}$.
# - On its own key a query returns roughly its value if the others' $e^{-\text{lead}}$ have a small sum.
# - One output leaves $(T_k - 1)\, d_v$ dimensions of the values invisible.
# - Work grows with $T_q T_k$, and so does the memory if the scores are stored.
#
# Lesson {lesson}`gradients` runs the machine backwards, but first come the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="break"
# ## Deeper: break the machine
#
# No core section needs what follows. The card has a small attention, in which queries, keys and values are made from tokens,
# $Q = X W_Q$ and so on, as in lesson {lesson}`start`. Beside it stands a twin with one mistake. Both get the same numbers, and at the
# start both give the same output. Change as few numbers as you can until they differ. Then press the lamp that proves it (each lamp is a
# test, such as "heads are independent"), and say which mistake it is. The first four levels need this lesson and lesson
# {lesson}`scaling`.

# %% id="break-card"
from attn_course.figures.broken import break_the_machine

break_the_machine(1)

# %% [markdown] id="inner"
# ## Deeper: keys that never win, and the steepest place
#
# Send the query far away, $q = r u$ with $r \to \infty$. Let $k_m$ be the key with the largest $u \cdot k_j$, which reaches furthest in the
# direction $u$. Then $p_j / p_m = e^{-r\, (u \cdot k_m - u \cdot k_j) / \sqrt{d_k}}$ goes to 0 unless $k_j$ reaches as far. So $k_m$ takes
# all the weight in the limit, and keys that tie share it.

# %% [markdown] id="inner-hull"
# Some keys can never win alone. Suppose a key $k_a$ lies in the hull of other keys,
# $k_a = \sum_l c_l k_l$ with $c_l \ge 0$ and $\sum_l c_l = 1$. Then for **every** query $s_a = \sum_l c_l s_l$ is an average of their
# scores, so one of them is at least as large. Hence no query gives $k_a$ more than half of the weight. This is what happens to $k_1$ in
# the plane above:

# %% id="inner-code"
anywhere = 3 * rng.normal(size=(10_000, 2))
_, given = attention(anywhere, plane_keys, plane_values, return_weights=True)
c = np.array([3, 1, 3]) / 7
print("k_1 is made of the others:", np.allclose(c @ plane_keys[1:], plane_keys[0]))
print("the largest weight of k_1 for 10,000 queries:", given[:, 0].max().round(3))

# %% [markdown] id="inner-lead"
# And when does a key win for a query that sits on it? Multiply $\|k_i - k_j\|^2 = \|k_i\|^2 - 2\, k_i \cdot k_j + \|k_j\|^2$ by
# $\frac{1}{2}$ and compare:
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$
#
# If both norms are equal, the bracket is 0, and $k_i$ leads, since the first term is positive for $k_j \ne k_i$. A $k_j$ of larger norm
# makes the bracket negative, and can overtake it.

# %% [markdown] id="function-bound"
# How steep can the output be? The norm of a matrix $M$ is the largest $a^\top M\, b$ for columns $a$, $b$ of norm 1.
#
# 1. $a^\top \frac{\partial z}{\partial q}\, b$ is the covariance of the numbers $a \cdot v_j$ and $b \cdot k_j$, divided by $\sqrt{d_k}$.
# 2. A covariance is at most the product of the two standard deviations (Cauchy and Schwarz).
# 3. Numbers in an interval of size $D$ are at most $D/2$ away from its middle, and their variance is at most their mean square distance
#    from there. So their standard deviation is at most $D/2$. The $a \cdot v_j$ lie in an interval no longer than the **diameter** of $V$, the largest
#    distance between two rows; likewise for $K$.
#
# $$\Bigl\| \frac{\partial z}{\partial q} \Bigr\|_2 \le \frac{\mathrm{diam}(V)\,\mathrm{diam}(K)}{4 \sqrt{d_k}}
# \label{bounded-slope-in-query}$$

# %% id="function-code"
# the slope by its formula, and by finite differences
z, p = attention(query[:1], key, value, return_weights=True)
mean_key = p[0] @ key
terms = zip(p[0], value - z[0], key - mean_key, strict=True)
slope = sum(p_j * np.outer(v, k) for p_j, v, k in terms) / math.sqrt(4)
nudges = 1e-5 * np.eye(4)  # one query a row, each nudged along one axis
up, down = (attention(query[0] + step, key, value) for step in (nudges, -nudges))
error = np.abs((up - down).T / 2e-5 - slope).max()
print("finite differences agree to 1e-8:", error < 1e-8)

# %% id="bound-verify"
verify("lead-of-own-key", "bounded-slope-in-query")
gaps = [[np.linalg.norm(a - b) for a in rows for b in rows] for rows in (key, value)]
bound = max(gaps[0]) * max(gaps[1]) / (4 * math.sqrt(4))
print(f"random example: {np.linalg.norm(slope, 2):.2f}, at most {bound:.2f}")

# %% [markdown] id="explorable-notice"
# On the card, with the dot product and its own keys, the steepest place has the slope 1.75, and {eq}`bounded-slope-in-query` allows
# 3.04.

# %% [markdown] id="counting"
# ## Deeper: counting with attention
#
# Let $D$ be the pairs $(k_j, v_j)$ of a context, and let $D \uplus D$ contain each pair twice. Then every term of the sum in
# {eq}`attention-of-one-query` occurs twice, and its denominator, which runs over twice as many keys, doubles. So each weight halves and is
# counted twice:
#
# $$\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D) \label{doubled-context-same-output}$$
#
# So one output does not change if the whole context is repeated. With a small trick attention can count all the same. Put **one** reference token beside
# $n$ copies, all with the same score, with the value 1 on the reference and 0 on the copies. The output is the weight of the reference,
# $z = 1/(1+n)$, hence
#
# $$n = \frac{1}{z} - 1 \label{count-beside-reference}$$
#
# A start token can play this part (Behrens, Biggio and Zdeborová, 2024).

# %% id="hold-verify"
for n in (1, 3, 9):
    same, is_reference = np.ones((n + 1, 1)), np.eye(n + 1)[:, :1]
    print(f"n = {n}: output {attention(same[:1], same, is_reference)[0, 0]:.2f}")
verify("doubled-context-same-output", "count-beside-reference")

# %% [markdown] id="fade"
# ## Deeper: how weights and values fade
#
# **Assume** values with variance 1, independent of each other and of the
# weights. For given weights and one entry of $z$ the variances add with squared factors:
#
# $$\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2 \label{variance-of-an-output}$$
#
# Equal weights leave $1/T_k$ of the variance.

# %% [markdown] id="fade-margin"
# To keep one value, its weight must stay large. Let $n \ge 2$ be the number of all keys, let
# one score be $\Delta$ above the $n - 1$ others, and let these be equal. Multiply $p = e^\Delta / (e^\Delta + n - 1)$ out, collect
# $e^\Delta (1 - p) = p\,(n - 1)$, and take logarithms. For $0 < p < 1$:
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# Twice as many others need a lead larger by $\ln 2$. If the norms of queries and keys are bounded, the scores are bounded too, and
# then no key keeps a fixed share of the weight as the context grows (Veličković et al., 2024). If all scores stay within $\pm B$,
# no weight exceeds $e^{2B} / n$; Hahn (2020) builds on this.

# %% id="fade-verify"
verify("variance-of-an-output", "margin-grows-with-context")
for n in (100, 1000, 100_000):
    lead = np.array([7.0] + [0.0] * (n - 1))
    print(f"{n:7d} keys: a lead of 7 keeps {softmax(lead)[0]:.2f} of the weight")

# %% [markdown] id="traffic"
# ## Deeper: what has to be moved
#
# How many numbers travel between memory and processor, if scores,
# softmax and output are three separate steps? The first reads $Q$ and $K$ and writes scores; the second reads scores and writes weights;
# the third
# reads weights and values and writes the output:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$
#
# For large $T_q$ and $T_k$ it is nearly all scores and weights:

# %% id="cost-figure"
verify("attention-traffic")
for q_len, kv_len in ((1024, 1024), (8192, 8192), (1, 8192)):
    flops = costs.attention_flops(q_len * kv_len, 64, 64)
    moved = costs.materialised_attention_bytes(q_len, kv_len, 64, 64)
    sizes = f"T_q = {q_len:4}, T_k = {kv_len:4}: {moved / 1e6:7.2f} MB moved"
    print(f"{sizes}, {flops / moved:5.1f} FLOP a byte")
lengths = np.geomspace(64, 65536, 31).round()
in_and_out = 2 * lengths * 128 * 2 / 1e6
figures.traffic(lengths, 4 * lengths**2 * 2 / 1e6, in_and_out)

# %% [markdown] id="traffic-notice"
# An H100 can do about 300 operations in 16 bits in the time in which its memory delivers one byte (989 TFLOP/s against 3.35 TB/s). Here
# there are at most 32 operations for each byte. So it would mostly wait for its memory in all three cases, if all these numbers went
# through it. (The first and the third would fit into its cache of 50 MB.)

# %% [markdown] id="cost-yours"
# FlashAttention (Dao et al., 2022) computes the same output without storing scores or weights, lesson {lesson}`flash`. The next cell
# measures your own machine, the best of three runs after one that warms up. Each length is twice the one before, so expect about four
# times as long each time, and perhaps more for the longest.

# %% id="cost-live" tags=["live"]
from timeit import repeat

for length in (512, 1024, 2048):
    x = np.random.default_rng(0).normal(size=(length, 64)).astype(np.float32)
    _, *seconds = repeat(lambda x=x: attention(x, x, x), number=1, repeat=4)
    print(f"T = {length}: {1e3 * min(seconds):.0f} ms")

# %% [markdown] id="experiment"
# ## Deeper: an experiment with random bits
#
# A context has $T$ random bits, one at each position: each position has a token for bit 0 and one for bit 1. In the first model a single
# query
# reads them all, and from the $d_v$ numbers of its output (4 or 8) a network with 256 hidden units must recover every bit. In the second
# there are
# $T$ queries, one for each bit, and from each output ($d_v = 4$) a network that all of them share, with 64 hidden units, must recover one
# bit.

# %% [markdown] id="experiment-how"
# Everything starts at random and is trained together, with Adam for 500 steps of 64 examples, in three seeds. (Tokens have 32 numbers,
# queries and keys 16; the
# learning rate falls from 0.01 to 0 along a cosine; tokens and questions start with variance 1, the weights of the networks with variance
# 2 over the number of inputs.)
# The figure shows means over the seeds, each tested on 2048 new contexts.

# %% [markdown] id="experiment-predict"
# What can one expect? Let the weights not depend on the bits. Then the first output is $z = c + \sum_t p_t\, b_t\, m_t$, where $b_t$ is
# bit $t$, and $m_t$ is
# the difference of the values of its two tokens. For $T \le d_v$ the vectors $p_t m_t$ can be independent. Then a linear map with an offset
# reads off every bit.

# %% [markdown] id="experiment-pieces"
# For $T > d_v$ let a linear map with a threshold for each bit read $z$. It cannot get all bits right. Take $d_v = 4$ and $T = 6$. Six
# thresholds are six hyperplanes
# in the space of $z$, which cut it into at most $1 + 6 + 15 + 20 + 15 = 57$ pieces. But 6 bits have 64 contexts. So at least 7 contexts
# get a bit wrong, and at
# most $1 - 7 / (64 \cdot 6) \approx 0.98$ of the bits are right. The network, however, is not linear.

# %% id="experiment-figure"
from attn_course.lessons.attention.experiments import CAPACITY

record = CAPACITY.load()
one = record.values("one output").mean(axis=0)
many = record.values("one output per question").mean(axis=0)
shares = {
    "one output, d_v = 4": one[0],
    "one output, d_v = 8": one[1],
    "one output per question": many,
}
figures.bits_held(record.values("lengths")[0], shares)
held = [CAPACITY.conclude(result) for result in record.results]
for name in shares:
    print(f"{name:24}: 95 % recovered up to T =", [of_seed[name] for of_seed in held])

# %% [markdown] id="experiment-answer"
# Up to $T = d_v$ every bit is recovered, in all three seeds. For $d_v = 4$ at least 0.99 of 6 bits are recovered as well, more than the
# 0.98 of any linear map with
# thresholds, so here the hidden units are put to use. At $T = 8$ the share
# falls to between 0.89 and 0.94. For $d_v = 8$ it falls to between 0.83 and 0.86 at $T = 16$. One output per question recovers all bits up to
# $T = 8$ in each seed. Beyond that two trainings end at 0.97 and 0.95, as if one question in 16 and three in 32 had not found their
# position; we
# have not looked at their weights.

# %% [markdown] id="experiment-notice"
# This is what a training found at these lengths; it is not a law. In exact arithmetic one number can hold any count of bits in its
# digits. And the
# outputs of the two models are not of equal size, since the second has $T\,d_v$ numbers to answer with.

# %% [markdown] id="all-together"
# All outputs together can determine the values, for anyone who also knows $P$. If $T_q = T_k$ and $P$ is invertible, multiply
# {eq}`attention` by $P^{-1}$:
#
# $$V = P^{-1} Z \label{values-from-all-outputs}$$
#
# This holds in exact arithmetic. An error in $Z$ is multiplied by $P^{-1}$ too, and the norm of that matrix is the most by which it can
# grow:

# %% id="together-code"
verify("values-from-all-outputs")
square_query = 2 * rng.normal(size=(5, 4))
mixed, mixing = attention(square_query, key, value, return_weights=True)
print("values recovered:", np.allclose(np.linalg.solve(mixing, mixed), value))
growth = np.linalg.norm(np.linalg.inv(weights), 2)
print(f"for the sentence, an error in Z can grow by a factor of {growth:.0f}")

# %% [markdown] id="deeper-gaussian"
# ## Deeper: when a query does find its value
#
# For the Gaussian similarity of {eq}`gaussian-score-expansion` one can prove that a query finds its value. **Assume** bandwidth $h$, $q =
# k_i$, and the
# $n - 1$ other keys at least $r$ away. Its score is 0 and every other one is at most $-r^2 / (2 h^2)$. So each other key has at most the
# share $a = e^{-r^2 / (2 h^2)}$ of the weight of $k_i$. All weights sum to 1, hence $p_i \ge 1 / (1 + (n - 1)\,a)$. Now
# $z - v_i = \sum_j p_j (v_j - v_i)$, where the term of $i$ is 0 and every other difference is at most the diameter:
#
# $$\begin{gathered}
# \|z - v_i\| \le (1 - p_i)\,\mathrm{diam}(V) \le \frac{(n - 1)\,a}{1 + (n - 1)\,a}\; \mathrm{diam}(V), \\
# a = e^{-r^2 / (2 h^2)} \end{gathered} \label{gaussian-finds-own-key}$$

# %% [markdown] id="deeper-near"
# The bound covers only $q = k_i$ exactly. For a query **near** $k_i$ we need a bounded slope as well. A Gaussian score has the derivative
# $(k_j - q) / h^2$, and $-q / h^2$ is the same for all keys, so the derivation of the slope goes through with $1/h^2$ in the place of $1/\sqrt{d_k}$: it is at
# most $\mathrm{diam}(V)\,\mathrm{diam}(K) / (4 h^2)$.
# A query at the distance $\varepsilon$ from $k_i$ misses $v_i$ by at most the bound above plus $\varepsilon$ times this slope.

# %% id="deeper-gaussian-verify"
verify("gaussian-finds-own-key")

# %% [markdown] id="deeper-linear"
# ## Deeper: what a linear map can and cannot do
#
# "A linear map cannot depend on the context", you may read. That is half true. Leave out softmax and scale:
#
# $$q\,(K^\top V) = \sum_{j=1}^{T_k} (q \cdot k_j)\, v_j, \qquad K K^\top = I \;\Rightarrow\; k_i\,(K^\top V) = v_i
# \label{linear-map-from-context}$$
#
# $K K^\top = I$ says that the keys are orthonormal: then all terms but $j = i$ vanish for $q = k_i$. The output is **linear in $q$**,
# with a matrix $K^\top V$ that
# is made from the context, and it looks values up without error, for at most $d_k$ orthonormal keys. (Lesson {lesson}`linear` builds on
# it.) What fails is a
# matrix that is **fixed** before the context is known: when the keys are permuted, it returns the old values.

# %% id="deeper-linear-code"
verify("linear-map-from-context")
orthonormal = np.linalg.qr(rng.normal(size=(4, 4)))[0]
labels = np.array([[1.0], [2.0], [3.0], [4.0]])
made, moved = orthonormal.T @ labels, orthonormal[[1, 2, 3, 0]]
print("same context: ", (orthonormal @ made).ravel())
print("keys moved on:", (moved @ made).ravel(), "wanted", labels.ravel())

# %% [markdown] id="deeper-lipschitz"
# ## Deeper: no bound in the input
#
# In self-attention the input moves queries, keys and values together. **Assume** $d_k = 1$ and all three equal to
# $x_1, \ldots, x_n$, and look at a token at $x_1 = 0$. Its scores $x_1 x_j$ are 0, so each weight is $1/n$. Move $x_1$. As a value it
# contributes $p_1 = 1/n$ to the
# slope. As a query it contributes the covariance of values and keys under equal weights, which is the variance of all $n$ tokens. As a
# key it
# enters the score $x_1 x_1$ only, whose whole derivative $2 x_1$ is 0. Together:
#
# $$x_1 = 0: \qquad \frac{\partial z_1}{\partial x_1} = \frac{1}{n} + \frac{1}{n} \sum_{j} x_j^2
#  - \Bigl( \frac{1}{n} \sum_{j} x_j \Bigr)^2 \label{self-attention-not-lipschitz}$$
#
# Spread the other tokens and this grows without bound: as a map of $X$, this self-attention has no global Lipschitz constant. It is the
# idea behind the
# theorem of Kim, Papamakarios and Mnih (2021). For a fixed number of tokens and bounded inputs there is one, since the map is smooth.

# %% id="deeper-lipschitz-code"
verify("self-attention-not-lipschitz")
nudge = 1e-6 * np.eye(3)[:, :1]
for spread in (1.0, 10.0, 100.0):
    tokens = np.array([[0.0], [-spread], [spread]])
    up, down = (attention(x, x, x)[0, 0] for x in (tokens + nudge, tokens - nudge))
    by_formula = 1 / 3 + 2 * spread**2 / 3
    print(f"others at +-{spread:5.0f}: slope {(up - down) / 2e-6:8.2f}", end=", ")
    print(f"formula {by_formula:8.2f}")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): Eq. 1, and the reason for the scale.
# - The wrong axis:
#   [issue 146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146) of
#   labmlai/annotated_deep_learning_paper_implementations (2022).
# - F. Behrens, L. Biggio and L. Zdeborová (2024), [arXiv:2407.11542](https://arxiv.org/abs/2407.11542): counting with attention.
# - P. Veličković et al. (2024), [arXiv:2410.01104](https://arxiv.org/abs/2410.01104): softmax must disperse.
# - M. Hahn (2020), [arXiv:1906.06755](https://arxiv.org/abs/1906.06755): what self-attention cannot compute.
# - H. Kim, G. Papamakarios and A. Mnih (2021), [arXiv:2006.04710](https://arxiv.org/abs/2006.04710): no Lipschitz constant
#   for the dot product; one for a distance, if queries and keys are made by the same matrix.
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention.
