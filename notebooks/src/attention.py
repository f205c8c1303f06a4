# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# You have done attention for one word. **How do we write it for all words of many sentences at once, and how do we know that it is
# right?** It takes four lines, and at the end a language model of 30 layers writes English with yours.
#
# **You need** lessons {lesson}`start`, {lesson}`softmax` and {lesson}`scaling`, and matrix products. **Time:** 60 minutes, without
# *Deeper* sections and the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="who"
# ## Is this line wrong?
#
# In 2022 a reader of a popular collection of annotated papers stopped at one line. The scores had the axes (batch, query, key, head):
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# The layer could be trained. Is the line wrong, and which test says so in five seconds? A test needs one number that we trust,
# so we make it by hand. In *The cat sat because it was tired*, "cat" asks for words that tell something about it:

# %% id="who-code"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.lessons.attention import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, labelled

q, keys, values = QUERY[0, 1], KEY[0], VALUE[0]  # "cat" asks; [0] is the first head
names = ("alive", "tells", "open", "alive - tells")
print(labelled([q, *keys], ("cat asks", *TOKENS), columns=names))

# %% [markdown] id="who-asks"
# These are the keys of lesson {lesson}`start`. The dot product says how well a key fits the query: 4 for "sat" and "tired", 2 for "was", and
# 0 for the four other words. We divide by $\sqrt{d_k}$, where $d_k = 4$ is the number of entries of a key, because dot products of unrelated
# vectors grow like this root (lesson {lesson}`scaling`). From now on **score** means the divided number: here 2, 1
# and 0.

# %% [markdown] id="by-hand"
# We build the lit part of this machine:

# %% id="machine"
figures.machine("attention", QUERY[0], keys, values)

# %% [markdown] id="by-hand-weights"
# The **weight** of a word is $e$ to its score, divided by the sum of all seven powers, where $e^2 \approx 7.4$ and $e \approx 2.7$.
# **Predict** which share of the weight the four words with the score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
dots = keys @ q
terms = np.exp(dots / np.sqrt(4))
mix = terms / terms.sum()
figures.one_query(TOKENS, q, keys, dots, mix, values, mix @ values)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# Together they get 0.19, nearly a fifth, although they have nothing that "cat" asked for. A score of 0 is not a weight of 0, since
# $e^0 = 1$. The seven powers are 7.4 twice, 2.7 once and 1 four times, which makes 21.5, and $4 / 21.5 \approx 0.19$. "sat" and "tired"
# get $7.4 / 21.5 \approx 0.344$ each, and this is the number for our test. The output averages the values: its second entry, say, is
# $0.344 \cdot 2 + 0.344 \cdot 2 + 0.126 \cdot 1 \approx 1.50$.

# %% [markdown] id="one-query"
# What "cat" has done, any query can do. When $q$ meets $T_k$ keys $k_1, k_2, \ldots$ with their values $v_1, v_2, \ldots$, the same steps
# read
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$
#
# The fraction is the weight of key $j$. Only the **values** are averaged, while query and keys decide how much of each comes out.

# %% [markdown] id="all-queries"
# ## All queries at once
#
# Seven words ask, and no question waits for the answer to another. So we can ask them all in one matrix product. Let $i$
# count the queries, from 1 to $T_q$, and $j$ the keys, from 1 to $T_k$. Queries, keys and values are the rows of $Q$, $K$ and $V$. An entry
# of a matrix product is a row times a column, and the columns of $K^\top$ are the keys:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$

# %% [markdown] id="all-outputs"
# Row $i$ belongs to one query, and its weights must sum to 1. So the softmax treats each row by itself, and sums over the keys:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$
#
# With the weights of row $i$ we average the values, which gives output $i$:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$
#
# No weight is negative, and they sum to 1, so every output is a weighted average of the values, a convex combination.

# %% [markdown] id="matrix"
# Read $p_{ij}$ as "the weight **of input $j$ in output $i$**". The first index asks, and the second one answers. The sum over $j$ is once
# more a row times a column, so all outputs together are
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# with the softmax taken along each row. This is the first equation of the Transformer paper.

# %% [markdown] id="matrix-predict"
# Now let "sat" ask. It gives "cat" the score 4 and "because" the score 0. The query of "was" is half that of "sat". **Predict** how many
# times as much weight "cat" gets as "because", once if "sat" asks and once if "was" asks.

# %% id="matrix-code" tags=["predicted"]
import math

from attn_course.reference import attention, softmax

scores = QUERY[0] @ KEY[0].T / math.sqrt(4)
weights = softmax(scores)
for token in ("sat", "was"):
    p = weights[TOKENS.index(token)]
    print(f"{token} asks: cat has {p[1] / p[3]:.1f} times the weight of because")
figures.attention_steps(scores, weights, weights @ VALUE[0], TOKENS)

# %% [markdown] id="matrix-answer" tags=["answer"]
# If "sat" asks, "cat" gets $e^4 \approx 55$ times as much as "because", and if "was" asks, only $e^2 \approx 7.4$ times, because half a query
# makes half the scores. So "was" asks the same question as "sat", but less decidedly.

# %% [markdown] id="shapes"
# Our sentence has as many queries as keys, but in general four sizes are free. Queries and keys meet in a dot product, so they have equally
# many numbers, while values may have more or fewer:
#
# | step | product | shapes |
# |---|---|---|
# | scores | $Q K^\top / \sqrt{d_k}$ | $(T_q, d_k)\,(d_k, T_k) \to (T_q, T_k)$ |
# | weights | softmax of each row | $(T_q, T_k) \to (T_q, T_k)$ |
# | output | $P V$ | $(T_q, T_k)\,(T_k, d_v) \to (T_q, d_v)$ |

# %% [markdown] id="batch"
# ## Many sentences at a time
#
# A model in training reads many sentences at a time, to keep its processor busy. We number them with an index $b$, on one more axis in
# front:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$
#
# Nothing in it mixes two different $b$, so the sentences know nothing of each other. In an array the last two axes are positions and
# features, and $b$ stands for **all** axes before them. They may count sentences, or heads, or both. NumPy's `@` multiplies the last two
# axes and carries the leading ones along. To exchange the last two axes, write `a.swapaxes(-1, -2)`; `a.T` would reverse
# the order of all axes.

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
#
# Only the last two axes of the keys are exchanged, positions and features.

# %% [markdown] id="batch-turn"
# **Your turn: batched attention**, the milestone of this lesson, which may call your `my_scores`. {turn}`attention-of-batches`

# %% id="batch-turn-code" tags=["your-turn"]
my_batched_attention = ...  # your function
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="batch-ours" tags=["ours"]
# ```python
# def my_batched_attention(query, key, value):
#     scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
#     terms = np.exp(scores)
#     weights = terms / terms.sum(axis=-1, keepdims=True)
#     return weights @ value
# ```
#
# `keepdims=True` keeps an axis of length 1 for the division.

# %% [markdown] id="spot"
# ## Two mistakes and the tests that find them
#
# Back to the line of 2022. From here on your function is called `attend`. The functions `one` and `two` are meant to compute the same.
# Each has one mistake, and one of them has that of 2022:

# %% id="spot-code"
attend = my_batched_attention
if attend is ...:  # not written yet, so the course's own stands in
    attend = attention
    print("attend is the course's function; write yours above")


def one(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(s, axis=-2) @ v


def two(q, k, v):
    flat = [a.reshape(-1, a.shape[-1]) for a in (q, k, v)]
    return attention(*flat).reshape(len(q), -1, v.shape[-1])


# %% [markdown] id="spot-predict"
# In `one` the softmax runs over the queries, and `two` joins batch and positions. There are two tests. The first takes our sentence as a
# batch of one, with the identity matrix for its values. As $P I = P$, the output is then the weights themselves, and "cat" must give "sat"
# 0.344. The second test takes the sentence twice, changes the keys of the second copy, and checks that the outputs of the first stay
# as they were. **Predict** which function fails which test.


# %% id="spot-table" tags=["predicted"]
def by_hand(f):
    P = f(QUERY[:1], KEY[:1], np.eye(7)[None])  # the first head, as a batch of one
    return abs(P[0, 1, 2] - 0.344) < 0.001  # cat, sat


def alone(f):
    q, k, v = (np.stack([a[0], a[0]]) for a in (QUERY, KEY, VALUE))
    changed = np.stack([KEY[0], 3 * KEY[0]])
    return np.allclose(f(q, k, v)[0], f(q, changed, v)[0])


for name, f in {"yours": attend, "one": one, "two": two}.items():
    print(f"{name:5}  by hand: {by_hand(f)!s:5}  alone: {alone(f)}")

# %% [markdown] id="spot-answer" tags=["answer"]
# The number by hand finds `one`, which divides by the sum of a column. It cannot find `two`, because in a batch of one there is nothing to
# join. The second test finds `two`, and lets `one` through, because `one` keeps its mistake inside each sentence. So we need both, and
# each runs in a moment.

# %% [markdown] id="spot-story"
# The line of 2022 makes the mistake of `one`, since its axis 1 counts the queries. "That's a typo and a big bug!" was the author's answer.
# Yet the layer belonged to a model that draws pictures, and the reader, who had trained it with axis 1 and with axis 2, reported pictures about equally
# good. If that is right, such a mistake need not show in a training run at all. One has to read the line, or test it.

# %% [markdown] id="cost"
# ## What it costs
#
# Every query meets every key. We count a multiplication and its addition as 2 operations. $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms
# each, and $P V$ has $T_q d_v$ entries of $T_k$ terms each, so the two products take
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \key{attention-flops}$$
#
# if all pairs are computed. Eight times as many tokens on both sides take $8 \cdot 8 = 64$ times as many operations. The 100,000 tokens of a
# book make $10^{10}$ pairs, whose scores take 20 GB at 2 bytes each, for one head of one layer. Lesson {lesson}`flash` computes the
# same output without storing them.

# %% [markdown] id="layer"
# ## A layer of your own
#
# In a Transformer attention sits inside a **layer**. Three matrices make queries, keys and values from the words, and a fourth one mixes
# what comes out. PyTorch calls such an object a `Module`: it holds the matrices, and `forward` computes the output from the input. Here is one with your function in
# the middle, as a single head:

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
# Does it agree with PyTorch's own? That one computes $x\,W^\top$ and keeps three of its matrices in one array, so we cut and transpose:

# %% id="layer-compare"
options = {"bias": False, "batch_first": True, "dtype": torch.float64}
theirs = torch.nn.MultiheadAttention(8, 1, **options)  # 8 features, 1 head
packed, last = (p.detach() for p in theirs.parameters())  # (24, 8) and (8, 8)
w_q, w_k, w_v = packed.chunk(3)
mine = Layer(w_q.T, w_k.T, w_v.T, last.T)

x = torch.tensor(np.random.default_rng(5).normal(size=(3, 5, 8)))
expected = theirs(x, x, x)[0].detach()  # it also returns weights
print("my layer and PyTorch's agree:", torch.allclose(mine(x), expected))

# %% [markdown] id="layer-notice"
# NumPy keeps no gradients, and our matrices are not declared as parameters, so this layer cannot learn yet. In lesson {lesson}`gradients` you write its backward pass.

# %% [markdown] id="real"
# ## Your function writes English
#
# Does it also run a model that people use? SmolLM2, which you met in lesson {lesson}`start`, has 30 layers of nine heads. Each layer will call
# your function for one token at a time: the newest token asks, and the keys and values of all tokens so far have been kept.

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
# If the model is on your machine, your lines (or the course's, if you wrote none) ran in each of its 30 layers for every token. Now we break them. A head has queries of 64
# numbers, so your function divides by 8, and a query that is 8 times as long undoes the division. **Predict** what the model writes
# then: the same, other English, or no words at all?

# %% id="real-break" tags=["live", "predicted"]
model.attend = lambda q, k, v: attend(8 * q, k, v)
if model.is_here:
    print(*(model.write(start, tokens=5) for start in starts), sep="\n")

# %% [markdown] id="real-answer" tags=["answer"]
# It writes other English. Here it wrote "The sun rises in the east and goes east in the west", "One, two, three, four, and five-threes" and
# "My favourite animal is the cat because it's not a person". In so few words the grammar nearly holds, but the sense is lost in two of the three. The model
# has learned with softer weights than it gets now.

# %% [markdown] id="limits"
# **Limits.** The weights of an output sum to 1 even if no key fits. And an output has $d_v$ numbers, however long the context is; section
# {section}`hold` shows what is lost.

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
# | cost of its two products, {eq}`attention-flops` | {key}`attention-flops` | scores need memory $T_q T_k$ |

# %% [markdown] id="summary"
# ## Summary
#
# - Attention for many sentences is one formula: scores, a softmax of each row, an average of the values. Leading axes are separate problems.
# - Two tests find the two mistakes shown here: a number by hand, and a second sentence that changes.
# - Operations of the two products grow with the product of both lengths, so eight times the tokens take 64 times the operations.

# %% [markdown] id="summary-next"
# We began with a line that ran, could be trained, and was wrong. You now have the right one, two tests, a layer that agrees with
# PyTorch's, and a language model that writes with your lines. How did its matrices learn? Lesson {lesson}`gradients` runs the machine
# backwards to find out. First come the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="writer"
# ## Deeper: a layer small enough to look into
#
# With several heads a layer cuts queries, keys and values into blocks of columns, and each head attends with its own block. This is all that
# such a layer computes for three sentences of five words:

# %% id="layer-drawn"
figures.layer_tensors(batch=3, tokens=5, d_model=8, n_heads=2)

# %% [markdown] id="writer-trained"
# We trained a layer with 12 features and two heads to name the next word in 68 sentences such as *the dog stopped because it was
# curious*. How a sentence ends depends on its verb and on whether its nouns are alive, and both stand several words back.

# %% [markdown] id="writer-steps"
# A word comes in as the sum of two vectors, one for the word and one for its place. The newest word asks, and all words read so far answer,
# itself included. In this one layer a key or value is made from its own word and place alone, so it never changes, and we compute it once
# and **keep** it. (In higher layers it never changes because no word sees a later one.) The output is added to the input, and the next word
# is the one whose vector has the largest dot product with the sum.

# %% id="writer-load"
from attn_course.lessons.attention.experiments_writer import (
    WORDS,
    looks,
    matrices,
    sentences,
)

# learned and stored: 25 words and 10 places of 12 numbers, four matrices (12, 12)
table, places, w_query, w_key, w_value, w_output = matrices()
vector = dict(zip(WORDS, table, strict=True))


# %% id="writer-code"
def write(words, silent=()):
    words, keys, values = list(words), [], []
    while words[-1] != "." and len(keys) < len(places):
        n = len(keys)  # words that have been read; the next one asks
        x = vector[words[n]] + places[n]
        q, k, v = ((x @ w).reshape(2, 1, 6) for w in (w_query, w_key, w_value))
        keys, values = [*keys, k], [*values, v]  # 2 heads, 1 word, 6 features each
        z = attend(q, np.concatenate(keys, axis=1), np.concatenate(values, axis=1))
        z[list(silent)] = 0
        x = x + z.reshape(12) @ w_output
        if n + 1 == len(words):  # nothing more to read, so write
            words.append(WORDS[np.argmax(table @ x)])
    return words


# %% id="writer-writes"
words = write(["the", "cat", "sat", "because"])
print(*words)
figures.who_looked_where(words[:-1], looks(words[:-1]))

# %% [markdown] id="writer-notice"
# It has written the sentence of our course, and never read it, since no cat sat in what it learned from. When "was" asks, one head gives
# "cat" 0.75 of its weight, and the other gives "sat" 0.87. Do the heads do what they seem to do? We silence one after the other, and let
# the model finish all 28 sentences that were held out:

# %% id="writer-silent"
for name, silent in (("none", []), ("first head", [0]), ("second head", [1])):
    starts = [(s[: s.index("because") + 1], s) for s in sentences(held_out=True)]
    right = sum(write(start, silent) == whole for start, whole in starts)
    print(f"{name:11} silent: {right:2} of 28 sentences end right")

# %% [markdown] id="writer-try"
# So with either head silent the sentences go wrong. This does not say what each of them is for, since most of these sentences fail already at the verb, before
# the ending. Nor does a map alone say it. In *the clock sat because it was*, "was" gives "clock" only 0.08 in the first head, and yet the
# sentence ends as it should, with "heavy". Without that head it would not. The keys and values that are kept here are the
# **KV cache** of large models, and in exercise {task}`step-with-kept-keys` you write such a step.

# %% [markdown] id="traffic"
# **What does such a step cost?** Numbers have to travel. If scores, softmax and output are three separate steps, the first reads $Q$ and
# $K$ once and writes scores, the second reads scores and writes weights, and the third reads weights and values and writes the output:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$

# %% id="traffic-code"
for q_len, kv_len in ((8192, 8192), (1, 8192)):
    flops = 2 * q_len * kv_len * (64 + 64)
    moved = (q_len + kv_len) * (64 + 64) + 4 * q_len * kv_len
    print(f"T_q = {q_len:4}, T_k = {kv_len}: {flops / moved:4.1f} a number moved")

# %% [markdown] id="traffic-notice"
# A single new token takes about 2 operations for each number, because it uses each number of the keys and values once, for one
# multiplication and one addition. A processor that can do hundreds of operations while one number arrives will mostly wait here, and even
# at 60 it waits. Exercise {task}`cost-of-new-tokens` counts such a step.

# %% [markdown] id="near"
# ## Deeper: when does a query find its value?
#
# Keep keys and values, and let $q$ be any vector. One might expect that a query close to a key returns about the value of that key. We take
# a walk through a plane of queries with four keys, $k_1 = (1, 0)$, $k_2 = (5, 2)$, $k_3 = (-2, 3)$ and $k_4 = (-2, -3)$, and their values
# $1$, $-1$, $0.4$ and $-0.2$. On $k_1$ the dot products are 1, 5, $-2$ and $-2$, so there the largest weight goes to $k_2$. In the right
# picture the score is $-\|q - k_j\|^2 / 2$ instead, the **Gaussian** score of bandwidth $h = 1$.

# %% id="plane-figure"
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

# %% [markdown] id="inner"
# The left map has no region for $k_1$ at all. Since $k_1 = (3 k_2 + k_3 + 3 k_4) / 7$, it is a mixture of the others with
# $c = (3, 1, 3) / 7$, and by {eq}`weight-of-mixed-key` **no query** gives it more than $1 / (1 + e^{H(c)})$, here 0.268. (Its score is a mixture of theirs, so it is never the only largest.)

# %% id="inner-code"
rng = np.random.default_rng(4)
anywhere = 3 * rng.normal(size=(10_000, 2))
_, given = attention(anywhere, plane_keys, plane_values, return_weights=True)
c = np.array([3, 1, 3]) / 7
print("k_1 is made of the others:", np.allclose(c @ plane_keys[1:], plane_keys[0]))
print(f"at most {1 / (1 + np.exp(-c @ np.log(c))):.3f}, found {given[:, 0].max():.3f}")

# %% [markdown] id="own-key"
# Two keys are enough to miss the value of the key on which a query stands:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# Both keys point in the direction of the query, but $k_2$ is five times as long. How far $k_i$ leads at $q = k_i$ depends on distance and
# on length, as $\|k_i - k_j\|^2 = \|k_i\|^2 - 2\, k_i \cdot k_j + \|k_j\|^2$ shows:
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$

# %% [markdown] id="own-key-lead"
# With keys of **equal length** the last bracket is 0, and the own key has the largest weight, if no other key equals it. But a key that trails
# by a lead $\ell$ of dot products still has $e^{-\ell / \sqrt{d_k}}$ times as much. Keys of norm 1 are at most 2 apart, so no lead exceeds 2,
# and with $d_k = 64$ each other key has at least $e^{-2/8} \approx 0.78$ times the weight of $k_i$. Henry et al. (2020), who give all keys and queries the norm 1, do not divide by the
# root, but multiply by a number that the model learns.

# %% [markdown] id="slope"
# **How does an output follow its query?** A loss can tell a query which way to change only through the slope of the output. Keep keys and
# values and move $q$. The scores move by
# $\partial s_j / \partial q = k_j / \sqrt{d_k}$, and the values stand still, so lemma {eq}`weighted-mean-derivative`
# applies. (Its weights $s$ are our $p$, and its scores $z$ our $s$; here $z$ is the output.) Entry $a$ of the output has $\partial z_a / \partial q_b = \sum_j p_j
# (v_{ja} - z_a)(k_{jb} - \bar k_b) / \sqrt{d_k}$, with the **mean key** $\bar{k}$. All entries together, with single vectors as columns:
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$

# %% [markdown] id="slope-read"
# So the slope is the **covariance of values and keys under the weights**, divided by the root. Where one key has nearly all the weight, little is
# left to vary, and a small change of the query hardly moves the output. This flat region is what the division by $\sqrt{d_k}$ is meant to
# avoid. We compare the formula with nudges of the query:

# %% id="slope-code"
rng = np.random.default_rng(4)
query, key, value = (rng.normal(size=size) for size in ((3, 4), (5, 4), (5, 2)))
z, p = attention(query[:1], key, value, return_weights=True)
slope = (value - z[0]).T @ np.diag(p[0]) @ (key - p[0] @ key) / math.sqrt(4)
nudges = 1e-5 * np.eye(4)  # one query a row, each nudged along one axis
up, down = (attention(query[0] + step, key, value) for step in (nudges, -nudges))
print("finite differences agree:", np.abs((up - down).T / 2e-5 - slope).max() < 1e-8)

# %% [markdown] id="explorable-question"
# In the formula below every number can be changed. Make the query longer, step by step: unless two keys tie for the lead, the output ends
# near the value of one key, and hardly moves when you change the query a little.

# %% id="near-alive"
from attn_course import alive

alive("attention-of-one-query")

# %% [markdown] id="steepest"
# **How steep can it be?** The norm of a matrix $M$ is the largest $a^\top M\, b$ for columns $a$, $b$ of norm 1. For the slope
# {eq}`output-derivative-by-query` this is the covariance of the numbers $a \cdot v_j$ and $b \cdot k_j$, divided by $\sqrt{d_k}$, and a
# covariance is at most the product of two standard deviations. Numbers in an interval of length $D$ have a standard deviation of at most
# $D/2$, because none is further from the middle, and the mean square deviation is smallest from the mean. The $a \cdot v_j$ lie in an interval no longer
# than the **diameter** of $V$, the largest distance between two rows, and the $b \cdot k_j$ in one no longer than that of $K$:
#
# $$\Bigl\| \frac{\partial z}{\partial q} \Bigr\|_2 \le \frac{\mathrm{diam}(V)\,\mathrm{diam}(K)}{4 \sqrt{d_k}}
# \label{bounded-slope-in-query}$$

# %% id="bound-code"
gaps = [[np.linalg.norm(a - b) for a in rows for b in rows] for rows in (key, value)]
bound = max(gaps[0]) * max(gaps[1]) / (4 * math.sqrt(4))
print(f"random example: {np.linalg.norm(slope, 2):.2f}, at most {bound:.2f}")

# %% [markdown] id="deeper-lipschitz"
# This bound is for a query alone. In self-attention the input moves queries, keys and values together, and then there need be no bound for
# all inputs (Kim, Papamakarios and Mnih, 2021).

# %% [markdown] id="hold"
# ## Deeper: what does one output hold?
#
# In 2014 a translation program squeezed a sentence into one vector of fixed length, and wrote the translation from it. Bahdanau, Cho and
# Bengio suspected a bottleneck, and used attention instead. But an output of attention is again a vector of fixed length. We keep the
# weights and change each value $v_j$ by $\mathrm{d}v_j$. The change is **invisible** if $\sum_j p_j\, \mathrm{d}v_j = 0$. Where no weight
# is 0, we may change all values but one as we please, and that one makes up for it. So the invisible changes have $(T_k - 1)\, d_v$
# dimensions out of $T_k\, d_v$, in our sentence 18 of 21.

# %% [markdown] id="hold-turn"
# **Your turn: another context, the same output.** {turn}`same-output-other-values`

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
# A query that weights the two values in another ratio notices, if the first one was not 0. Bahdanau's program made use of this and asked anew for every word that
# it wrote.

# %% [markdown] id="counting"
# **It forgets numbers.** Let $D$ be the pairs $(k_j, v_j)$ of a context, and let $D \uplus D$ contain each pair twice. In
# {eq}`attention-of-one-query` every term then occurs twice and the denominator doubles:
#
# $$\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D) \label{doubled-context-same-output}$$
#
# Attention can count all the same. Put **one** reference token with the value 1 beside $n$ copies with the value 0, all with the same
# score. The output is the weight of the reference, $z = 1/(1+n)$, hence
#
# $$n = \frac{1}{z} - 1 \label{count-beside-reference}$$
#
# A start token can play this part (Behrens, Biggio and Zdeborová, 2024).

# %% [markdown] id="fade"
# **It forgets single values among many.** **Assume** values with variance 1, independent of each other and of the weights. For given
# weights and one entry of $z$ the variances add with squared factors:
#
# $$\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2 \label{variance-of-an-output}$$
#
# Equal weights leave $1/T_k$ of the variance. To keep one value, its weight must stay large. How far must its score lead for that? Say that
# it lies $\Delta$ above the $n - 1$ others, which are all equal ($n \ge 2$), and solve for $\Delta$. For $0 < p < 1$:
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# If the norms of queries and keys are bounded, so are the scores, and no key keeps a fixed share of the weight as the context grows
# (Veličković et al., 2024).

# %% id="fade-verify"
for n in (100, 1000, 100_000):
    lead = np.array([7.0] + [0.0] * (n - 1))
    print(f"{n:7d} keys: a lead of 7 keeps {softmax(lead)[0]:.2f} of the weight")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): Eq. 1, and the reason for the scale.
# - The wrong axis:
#   [issue 146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146) of
#   labmlai/annotated_deep_learning_paper_implementations (2022).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
# - A. Radford et al. (2019), GPT-2, and its [code](https://github.com/openai/gpt-2/blob/master/src/model.py), `multihead_attn`.
# - A. Henry et al. (2020), [arXiv:2010.04245](https://arxiv.org/abs/2010.04245): queries and keys of norm 1.
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed-length vector.
# - F. Behrens, L. Biggio and L. Zdeborová (2024), [arXiv:2407.11542](https://arxiv.org/abs/2407.11542): counting with attention.
# - P. Veličković et al. (2024), [arXiv:2410.01104](https://arxiv.org/abs/2410.01104): softmax must disperse.
# - H. Kim, G. Papamakarios and A. Mnih (2021), [arXiv:2006.04710](https://arxiv.org/abs/2006.04710): no Lipschitz constant
#   for the dot product; one for a distance, if queries and keys are made by the same matrix.
