# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# In 2022 a reader of a popular collection of annotated papers stopped at one line of an attention layer. The scores had the axes (batch,
# query, key, head):
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# The reader had trained a model around it, which draws pictures, once with axis 1 and once with axis 2, and reported pictures
# about equally good. **Is the line wrong, and how would you know?** To judge it, you write attention for all words of many sentences in four
# lines, which at the end run a language model.
#
# **You need** lessons {lesson}`start`, {lesson}`softmax` and {lesson}`scaling`, and matrix products. **Time:** 60 minutes, without
# *Deeper* sections and the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="who"
# ## A number that we trust
#
# A test needs a number that we trust, so we make one by hand. In *The cat sat because it was tired*, "cat" asks for words that tell
# something about it:

# %% id="who-code"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.lessons.attention import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, labelled

q, keys, values = QUERY[0, 1], KEY[0], VALUE[0]  # "cat" asks; [0] is the first head
names = ("alive", "tells", "open", "alive - tells")
print(labelled([q, *keys], ("cat asks", *TOKENS), columns=names))

# %% [markdown] id="who-asks"
# The lower rows are keys, what each word offers, so their last column is a difference. The first row is a query: how much "cat" wants of
# each column, and it wants only "tells". All were chosen by hand in lesson {lesson}`start`. The dot product says how well a key fits the
# query: 4 for "sat" and "tired", 2 for "was", and 0 for the others. For vectors of $d_k$ independent entries with mean 0 and a fixed
# spread, dot products typically grow like $\sqrt{d_k}$ (lesson {lesson}`scaling`), so we divide by this root, with $d_k = 4$ here. From
# now on **score** means the divided number: 2, 1 and 0. The lit part of this machine is what we build:

# %% id="machine"
figures.machine("attention", QUERY[0], keys, values)

# %% [markdown] id="by-hand-weights"
# The **weight** of a word is $e$ to its score, divided by the sum of all seven powers, where $e^2 \approx 7.4$ and $e \approx 2.7$. Each
# word also has a value, three numbers that it hands on, and the output averages the values with these weights. **Predict** which share of
# the weight the four words with score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
dots = keys @ q
terms = np.exp(dots / np.sqrt(4))
mix = terms / terms.sum()
figures.one_query(TOKENS, q, keys, dots, mix, values, mix @ values)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# The four words get 0.19, although they have nothing that "cat" asked for: a score of 0 is not a weight of 0, since $e^0 = 1$. The seven
# powers are 7.4 twice, 2.7 once and 1 four times, in all 21.5, and $4 / 21.5 \approx 0.19$. "Sat" and "tired" get
# $7.4 / 21.5 \approx 0.344$ each, the number for our test. The second entries of the values are 2 for "sat" and "tired", 1 for "was" and
# 0 for the others, so the second entry of the output is $0.344 \cdot 2 + 0.344 \cdot 2 + 0.126 \cdot 1 \approx 1.50$.

# %% [markdown] id="one-query"
# What "cat" has done, any query can do. When $q$ meets $T_k$ keys $k_1, k_2, \ldots$ with their values $v_1, v_2, \ldots$, the rows of
# $K$ and $V$, the same steps read
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$
#
# The fraction is the weight of key $j$: query and keys decide how much of each value comes out, but only the **values** are averaged.
# If no key fits, and all seven scores are 0, each word still gets $1/7$.

# %% [markdown] id="all-queries"
# ## All scores in one product
#
# All words can ask at the same time. Let $q_i$ be row $i$ of a matrix $Q$ with $T_q$ rows. As an entry of a matrix product is a row times a
# column, and the columns of $K^\top$ are the keys, one product makes all scores:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$

# %% [markdown] id="batch"
# To keep its processor busy, a model in training reads many sentences at a time. Its arrays get an axis in front for the sentences, and
# with several heads one more, for the heads. So let the last two axes be positions and features, and any others stand **before** them.
# NumPy's `@` multiplies the last two axes and carries the leading ones along; `a.swapaxes(-1, -2)` exchanges the last two, while `a.T`
# would reverse the order of all axes.

# %% [markdown] id="scores-turn"
# **Your turn: all scores**, with leading axes. {turn}`all-scores`

# %% id="scores-turn-code" tags=["your-turn"]
my_scores = ...  # your function
check("all-scores", my_scores)

# %% [markdown] id="scores-ours" tags=["ours"]
# ```python
# def my_scores(query, key):
#     return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
# ```

# %% [markdown] id="all-outputs"
# ## The other three lines
#
# Row $i$ of the scores belongs to one query. As the output is an average, the weights must sum to 1. So each row has its own softmax, in
# which the sum runs over the keys:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$
#
# Read $p_{ij}$ as "the weight **of input $j$ in output $i$**": the first index asks, and the second one answers. With the weights of row
# $i$ the values are averaged to output $z_i$ (in lesson {lesson}`softmax` $z$ was a score):
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$
#
# As no weight is negative, and they sum to 1, this is a convex combination of the values.

# %% [markdown] id="matrix"
# The sum over $j$ is once more a row times a column, so all outputs together are the first equation of the Transformer paper:
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# $Z$ has a row of $d_v$ numbers for each query. Of many sentences each has such an equation of its own. With $b$ for all leading axes
# together
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$
#
# and as nothing mixes two different $b$, the sentences know nothing of each other.

# %% [markdown] id="batch-turn"
# **Your turn: batched attention**, the milestone of this lesson, which may call your `my_scores`. {turn}`attention-of-batches`

# %% id="batch-turn-code" tags=["your-turn"]
my_batched_attention = ...  # your function
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="batch-ours" tags=["ours"]
# ```python
# def my_batched_attention(query, key, value):
#     scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
#     terms = np.exp(scores)
#     weights = terms / terms.sum(axis=-1, keepdims=True)
#     return weights @ value
# ```
#
# `keepdims=True` keeps an axis of length 1 for the division.

# %% [markdown] id="spot"
# ## The line on trial
#
# From here on your function is called `attend`. Beside it stand two suspects, which should compute the same. In `one` the softmax
# runs over the queries, on axis $-2$ of (batch, query, key). The line of 2022 does just that, on axis 1 of (batch, query, key, head). In
# `two`, batch and positions are joined to one axis.

# %% id="spot-code"
from attn_course.reference import attention, softmax

# your function, and the course's until it is written
attend = attention if my_batched_attention is ... else my_batched_attention


def one(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s, axis=-2) @ v


def two(q, k, v):
    flat = [a.reshape(-1, a.shape[-1]) for a in (q, k, v)]
    return attention(*flat).reshape(len(q), -1, v.shape[-1])


# %% [markdown] id="spot-predict"
# All three return arrays of the same shape, so shapes cannot judge them. We need two tests. The first takes our sentence as a batch of one,
# with the identity matrix for its values. As $P I = P$, the output is the weights themselves, and "cat" must give "sat" 0.344. The
# second takes the sentence twice, changes the keys of the second copy, and checks that the first copy keeps its outputs. **Predict**
# which function fails which test.


# %% id="spot-table" tags=["predicted"]
def by_hand(f):
    P = f(QUERY[:1], KEY[:1], np.eye(7)[None])  # the first head, as a batch of one
    return abs(P[0, 1, 2] - 0.344) < 0.001  # cat, sat


def alone(f):
    q, k, v = (np.stack([a[0], a[0]]) for a in (QUERY, KEY, VALUE))
    changed = np.stack([KEY[0], 3 * KEY[0]])
    return np.allclose(f(q, k, v)[0], f(q, changed, v)[0])


for name, f in {"attend": attend, "one": one, "two": two}.items():
    print(f"{name:6}  by hand: {by_hand(f)!s:5}  alone: {alone(f)}")

# %% [markdown] id="spot-answer" tags=["answer"]
# The number by hand finds `one`, but not `two`, because in a batch of one there is nothing to join. The second test finds `two` and lets
# `one` through, because `one` keeps its mistake inside each sentence. So we need both.

# %% [markdown] id="spot-seen"
# Here are the weights of `attend` and of `one`, and beside each row its sum:

# %% id="spot-figure"
maps = {"attend": attend, "one": one}
weights = {name: f(QUERY[0], KEY[0], np.eye(7)) for name, f in maps.items()}
figures.weights_by(weights, TOKENS)

# %% [markdown] id="spot-story"
# In `one` each key shares out a weight of 1 among all queries, even if none of them fits, and a query gets whatever comes to it: "cat" more
# than 2, "the" little more than a half. So the line of 2022 is wrong, and a single number says so. "That's a typo and a big bug!" was the
# author's answer. Yet if the reader's report is right, such a mistake need not show in training: the network may learn its way around it,
# or hardly need the layer. One has to read the line, or test it.

# %% [markdown] id="layer"
# ## A layer of your own
#
# So far queries, keys and values were given. In a Transformer attention sits inside a **layer**, where three matrices make them from the
# words, and a fourth mixes what comes out. Here is one in PyTorch, a `Module` whose `forward` computes the output, with your function as
# its single head:

# %% id="layer-code"
import torch


class Layer(torch.nn.Module):
    def __init__(self, w_query, w_key, w_value, w_output):
        super().__init__()
        self.projections, self.w_output = (w_query, w_key, w_value), w_output

    def forward(self, x):
        q, k, v = (x @ w for w in self.projections)
        return torch.from_numpy(attend(q.numpy(), k.numpy(), v.numpy())) @ self.w_output


# %% [markdown] id="layer-torch"
# Does it agree with PyTorch's own? That one keeps its matrices transposed, three of them in one array; `torch_weights` takes them out:

# %% id="layer-compare"
from attn_course.modules.loading import torch_weights

options = {"bias": False, "batch_first": True, "dtype": torch.float64}
theirs = torch.nn.MultiheadAttention(8, 1, **options)  # 8 features, 1 head
mine = Layer(**torch_weights(theirs))

x = torch.tensor(np.random.default_rng(5).normal(size=(3, 5, 8)))
expected = theirs(x, x, x)[0].detach()  # it also returns weights
print("my layer and PyTorch's agree:", torch.allclose(mine(x), expected))

# %% [markdown] id="layer-notice"
# Its matrices are no parameters, and NumPy keeps no gradients, so this layer cannot learn yet: you write its backward pass in lesson
# {lesson}`gradients`.

# %% [markdown] id="real"
# ## Your function writes English
#
# Does your function also run a model that people use? SmolLM2, from lesson {lesson}`start`, has 30 layers. Each layer calls it once for each
# token, with its nine heads on a leading axis. The newest token asks, while the keys and values of all tokens so far are kept in the **KV
# cache** (exercise {task}`step-with-kept-keys`). Later tokens do not exist yet, so none has to be hidden.

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-writes"
starts = (
    "The sun rises in the east and",
    "One, two, three, four,",
    "My favourite animal is the cat because",
)
pytorch = [model.write(start, tokens=5) for start in starts]  # PyTorch's attention
model.attend = attend  # yours, in all 30 layers
yours = [model.write(start, tokens=5) for start in starts]
print(*yours, sep="\n")
print("the same words as with PyTorch's attention:", yours == pytorch)

# %% [markdown] id="real-notice"
# If the model is on your machine, your four lines (or the course's) wrote this. Would the model still write sentences with
# `one`? Try our sentence first, with a single query, as in the model, and seven keys. **Predict** the seven weights that `one` gives.

# %% id="real-break" tags=["predicted"]
it = QUERY[:1, 4:5]  # a single query, that of "it"
print("weights by one:  ", one(it, KEY[:1], np.eye(7)[None])[0, 0])
print("weights as wanted:", attention(it, KEY[:1], np.eye(7)[None])[0, 0].round(3))

# %% [markdown] id="real-answer" tags=["answer"]
# All are 1: a column of the scores has a single entry here, so each power of $e$ is divided by itself. The output is then the sum of all
# values, so `one` has two faults here: it ignores the query, and its weights sum to 7 instead of 1.


# %% id="real-broken" tags=["live"]
def query_ignored(q, k, v):
    return one(q, k, v) / k.shape[-2]  # the mean of the values


def too_large(q, k, v):
    return attention(q, k, v) * k.shape[-2]  # the right weights, times their number


if model.is_here:
    for model.attend in (one, query_ignored, too_large):
        print(model.write(starts[0], tokens=5))

# %% [markdown] id="real-broken-notice"
# On our machine `one` went on with ",, the the (", and each fault alone was enough: `query_ignored` wrote ",,,,,", and `too_large`
# "rewrewrewrewrew". Unlike the model of 2022, this one learned with the right softmax.

# %% [markdown] id="cost"
# ## What it costs
#
# If a multiplication and its addition count as 2 operations, $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms, $P V$ has $T_q d_v$ entries
# of $T_k$ terms, and the two products take
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \key{attention-flops}$$
#
# Numbers travel, too: $Q$, $K$ and $V$ are read, and $Z$ is written. If scores, softmax and output are three separate steps, the scores
# and the weights are each written and read once:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$
#
# For a single query, {eq}`attention-flops` divided by {eq}`attention-traffic` is below 2 operations for each number moved, while a fast
# processor could do hundreds, so it mostly waits (exercise {task}`cost-of-new-tokens`). For the 100,000 tokens of a book the scores take
# 20 GB at 2 bytes each, in one head of one layer. Lesson {lesson}`flash` does not store them.

# %% id="verify-lesson"
verify_lesson("attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | output |
# |---|---|---|
# | one query, {eq}`attention-of-one-query` | {key}`attention-of-one-query` | $(d_v)$ |
# | convex combination, {eq}`output-of-a-query` | {key}`output-of-a-query` | $(d_v)$ for each query |
# | all queries, {eq}`attention` | {key}`attention` | $(\ldots, T_q, d_v)$ |
# | cost of its two products, {eq}`attention-flops` | {key}`attention-flops` | number of operations |

# %% [markdown] id="summary"
# ## Summary
#
# - Attention for many sentences is one formula: scores, a softmax of each row, an average of the values. Leading axes are separate problems.
# - Two tests find the two mistakes shown here: a number by hand, and a second sentence that changes.
# - Operations grow with the product of both lengths, while an output keeps its $d_v$ numbers, however long the text is (section
#   {section}`hold`), and its weights sum to 1 even if no key fits.

# %% [markdown] id="summary-next"
# We began with a line that ran, could be trained, and was wrong. You now have the right one, two tests, and a language model that writes
# with your lines. How did its matrices learn? After the [exercises](../work/ex_{lesson}`attention`_attention.ipynb), lesson
# {lesson}`gradients` runs the machine backwards to find out.

# %% [markdown] id="near"
# ## Deeper: can a query find every key?
#
# One might expect that a query that equals a key returns about the value of that key. Two keys refute it:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# Both keys point in the direction of the query, and the longer one wins. At least the query $-k_1$ finds $k_1$ here. Now let
# $k_1 = (1, 0)$ lie halfway between $k_2 = (4, 3)$ and $k_3 = (-2, -3)$. You may choose any query. **Predict** the largest weight that
# $k_1$ can get.

# %% id="near-code" tags=["predicted"]
plane_keys = np.array([[1.0, 0.0], [4.0, 3.0], [-2.0, -3.0]])
anywhere = 3 * np.random.default_rng(4).normal(size=(10_000, 2))
_, p = attention(anywhere, plane_keys, plane_keys, return_weights=True)
print(f"10,000 queries: the largest weight of k_1 is {p[:, 0].max():.3f}")

# %% [markdown] id="near-answer" tags=["answer"]
# It is a third. Let $k_2$ and $k_3$ have the powers $a$ and $b$ of $e$. The score of $k_1$ lies halfway between theirs, so its power is
# $\sqrt{ab}$. As $(\sqrt a - \sqrt b)^2 \ge 0$, this is at most half of $a + b$, and so at most a third of $a + b + \sqrt{ab}$.

# %% [markdown] id="plane"
# Let the values be $1$, $-1$ and $0.4$. The left picture shows the output for each query of a plane: it has no region for $k_1$. On the right
# all keys are stretched or shrunk to the length 5.

# %% id="plane-figure"
axis = np.linspace(-6.0, 6.0, 121)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
plane_values = np.array([[1.0], [-1.0], [0.4]])
equal = 5 * plane_keys / np.linalg.norm(plane_keys, axis=1, keepdims=True)
maps = {"as they are": plane_keys, "equally long": equal}
for name, k in maps.items():
    maps[name] = attention(plane, k, plane_values).reshape(121, 121), k
figures.query_plane(axis, maps, plane_values[:, 0])

# %% [markdown] id="own-key"
# Why does equal length help? At $q = k_i$ the own key leads another one by
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$
#
# If all keys are equally long, the last bracket is 0, and no other key gets ahead. But the lead may be small. Keys of length 1 are at
# most 2 apart, so none leads by more than 2. After the division by $\sqrt{64}$ another key still has at least $e^{-2/8} \approx 0.78$
# times the weight. Henry et al. (2020), who use such queries and keys, multiply by a learned number instead of dividing.

# %% [markdown] id="slope"
# ## Deeper: why does a sure query stop learning?
#
# Can training lead a query to another key? A loss says which way to go only through the slope of the output. Keep keys and values, and move
# $q$. Then score $j$ has the slope $k_j / \sqrt{d_k}$. By the lemma {eq}`weighted-mean-derivative` the slope of the output is the
# **covariance** of the values and these slopes under the weights. With vectors as columns it reads
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$
#
# We take the three keys as they were, and make the query $(1, 0)$ longer:

# %% id="slope-code"
for length in (1.0, 2.0, 4.0, 8.0):
    q = np.array([[length, 0.0]])
    z, p = attention(q, plane_keys, plane_values, return_weights=True)
    values_off, keys_off = plane_values - z, plane_keys - p @ plane_keys
    slope = (p.T * values_off).T @ keys_off / np.sqrt(2)
    norm = np.linalg.norm(slope)
    print(f"length {length:.0f}: k_1 has the weight {p[0, 0]:.8f}, slope {norm:.8f}")

# %% [markdown] id="slope-read"
# At eight times the length the slope is less than a millionth of what it was. A query of twice the length has twice the scores, so the
# ratio of two weights is squared. Where one key has nearly all the weight, little is left to vary, and a loss can hardly tell the query
# that there are other keys. The division by $\sqrt{d_k}$ is meant to keep a new model out of such flat regions. Make the query longer,
# step by step: where does the output stop moving?

# %% id="near-alive"
from attn_course import alive

alive("attention-of-one-query")

# %% [markdown] id="steepest"
# The slope cannot be very large either. A covariance is at most the product of two standard deviations, and each of these at most half a
# diameter, the largest distance between two rows. So its spectral norm is at most $\mathrm{diam}(V)\,\mathrm{diam}(K) / (4 \sqrt{d_k})$. In
# self-attention, where the input moves $K$ and $V$ too, there need be no bound for all inputs (Kim et al., 2021).

# %% [markdown] id="hold"
# ## Deeper: what does one output hold?
#
# In 2014 translation programs squeezed a sentence into one vector of fixed length. Bahdanau, Cho and Bengio suspected a bottleneck and
# used attention, but its output is such a vector, too. Must it change if a word is erased?
#
# Keep the weights. If none is 0, all values but one may change freely, and that one can make up for it, so 18 of our 21 numbers are free.

# %% [markdown] id="hold-turn"
# **Your turn: another context, the same output.** {turn}`same-output-other-values`

# %% id="hold-turn-code" tags=["your-turn"]
my_values = ...  # your function
check("same-output-other-values", my_values)

# %% [markdown] id="hold-ours" tags=["ours"]
# The output loses $p_1 v_1$, so the last value must grow by $\frac{p_1}{p_{T_k}} v_1$:
#
# ```python
# def my_values(weights, value):
#     other = value.copy()
#     other[0] = 0
#     other[-1] += weights[0] / weights[-1] * value[0]
#     return other
# ```
#
# If $v_1 \ne 0$, a query that weights the two in another ratio notices. Bahdanau's program asked anew for every word that it wrote.

# %% [markdown] id="fade"
# What is left of a word in a long text? Let its score lead those of $n - 1$ others, all equal, by $\Delta$. For
# $0 < p < 1$
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# A lead of 7 is a factor of $e^7 \approx 1100$, much beside 99 other keys and little beside 99,999:

# %% id="fade-code"
for n in (100, 1000, 100_000):
    lead = np.array([7.0] + [0.0] * (n - 1))
    print(f"{n:7d} keys: {softmax(lead)[0]:.2f} of the weight")

# %% [markdown] id="fade-read"
# The lead would have to grow with $\ln n$. If queries and keys have bounded norms, it cannot (Veličković et al., 2024).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): Eq. 1, and the reason for the scale.
# - The wrong axis:
#   [issue 146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146) of
#   labmlai/annotated_deep_learning_paper_implementations (2022).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): queries and keys of norm 1.
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed-length vector.
# - P. Veličković et al. (2024), [arXiv:2410.01104](https://arxiv.org/abs/2410.01104): softmax must disperse.
# - H. Kim, G. Papamakarios and A. Mnih (2021), [arXiv:2006.04710](https://arxiv.org/abs/2006.04710): no Lipschitz constant
#   for the dot product; one for a distance, if queries and keys are made by the same matrix.
