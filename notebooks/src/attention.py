# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# You have already done attention for one word: a query met all the keys, a softmax turned scores into weights, and the values were
# averaged. Now you write it for all words of many sentences at once. It takes four lines, and with them a real language model will write.
#
# **Afterwards you can** write attention for any batch, test it, and let a language model of 30 layers write with it. In exercises
# {task}`layer-around-attention` and {task}`step-with-kept-keys` you build GPT-2's layer and its step with a cache. You can say what a book
# of 100,000 tokens costs.

# %% [markdown] id="needs"
# **You need** lessons {lesson}`start`, {lesson}`lookup`, {lesson}`softmax` and {lesson}`scaling`, and matrix products. **Time:** 60
# minutes, ten more for the two turns, without the deeper sections and the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="who"
# ## Is this line wrong?
#
# In 2022 a reader of a widely read collection of annotated papers stopped at one line of an attention layer. The scores had the axes
# (batch, query, key, head), and the line was
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# The program ran, and the layer could be trained. Is the line wrong all the same, and which test says so in five seconds? One good test
# needs only a number that we trust, so we first make it by hand.

# %% [markdown] id="who-asks"
# In *The cat sat because it was tired*, "cat" asks for words that tell something about it. A key says in numbers whether its word is alive,
# whether it tells what somebody does or is, and whether it is open, still waiting for another word to mean something. Its last number is
# the first minus the second, for queries that want only one.

# %% id="who-code"
import numpy as np

from attn_course.lessons.attention import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, labelled

q, keys, values = QUERY[0, 1], KEY[0], VALUE[0]  # "cat" asks; [0] is the first head
names = ("alive", "tells", "open", "alive - tells")
print(labelled([q, *keys], ("cat asks", *TOKENS), columns=names))

# %% [markdown] id="who-machine"
# We build this part of the machine today:

# %% id="machine"
figures.machine("attention", QUERY[0], keys, values)

# %% [markdown] id="by-hand-dots"
# The dot product says how well a key fits the query of "cat". It is $2 \cdot 2 = 4$ for "sat" and "tired", 2 for "was", and 0 for the
# four other words.

# %% [markdown] id="by-hand"
# We divide these by $\sqrt{d_k}$, where $d_k = 4$ is the number of entries of a key, and so get the scores 2, 1 and 0. Why the root? Even
# if two vectors have nothing to do with each other, their dot product is rarely 0. If their entries are independent, with mean 0 and the
# same variance, its typical size grows like $\sqrt{d_k}$, as [lesson {lesson}`scaling`]({lesson}`scaling`_scaling.ipynb) derives, and the
# division takes that out again.
#
# The weight of a word is $e$ to its score, divided by the sum of all seven powers, where $e^2 \approx 7.4$ and $e \approx 2.7$.
# **Predict** which share of the weight the four words with the score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
dots = keys @ q
terms = np.exp(dots / np.sqrt(4))
mix = terms / terms.sum()
figures.one_query(TOKENS, q, keys, dots, mix, values, mix @ values)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# They get 0.19 together, nearly a fifth, although they have nothing that "cat" asked for. A score of 0 is not a weight of 0, since
# $e^0 = 1$. So the seven powers are 7.4 twice, 2.7 once and 1 four times, which makes 21.5, and $4 / 21.5 \approx 0.19$. "sat" and "tired"
# get $7.4 / 21.5 \approx 0.344$ each. This is the number that our test needs.

# %% [markdown] id="one-query"
# What "cat" has done, any query can do. When a query $q$ meets $T_k$ keys $k_1, k_2, \ldots$ with their values $v_1, v_2, \ldots$, the
# same steps read
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$
#
# The fraction is the weight of key $j$. Only the **values** are averaged, while query and keys decide how much of each comes out.

# %% [markdown] id="all-queries"
# ## All queries at once
#
# Seven words ask seven questions. Must we answer them one after the other? A recurrent network with a nonlinear step has to, since it reads the seventh word
# only after the sixth. In attention no question waits for another, and this was one reason to build the Transformer without recurrence.

# %% [markdown] id="all-scores"
# Let $i$ count the queries, from 1 to $T_q$, and $j$ the keys, from 1 to $T_k$. Queries, keys and values are the rows of $Q$, $K$ and
# $V$. An entry of a matrix product is a row times a column, and the columns of $K^\top$ are the keys, so one product holds all the dot
# products:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$

# %% [markdown] id="all-outputs"
# Row $i$ belongs to one query, which has a weight of 1 in all to give away. So the softmax treats each row by itself, and sums over the
# keys:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$
#
# From now on a **score** is what goes into the softmax, so it is already divided, and a **weight** is what comes out. With the weights of
# row $i$ we average the values, which gives output $i$:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$
#
# No weight is negative, and they sum to 1, so every output is a **convex combination** of the values and stays in their hull (lesson
# {lesson}`lookup`).

# %% [markdown] id="matrix"
# Read $p_{ij}$ as "the weight **of input $j$ in output $i$**". The first index asks, and the second one answers. The sum over $j$ is
# once more a row times a column, so all outputs together are
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# with the softmax taken along each row. This is the first equation of the Transformer paper.
#
# Now let "sat" ask. It gives "cat" the score 4 and "because" the score 0. The query of "was" is half that of "sat". **Predict** how many
# times as much weight "cat" gets as "because", once if "sat" asks and once if "was" asks.

# %% id="matrix-code" tags=["predicted"]
import math

from attn_course import check, verify_lesson
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
# If "sat" asks, "cat" gets $e^4 \approx 55$ times as much as "because", and if "was" asks, only $e^2 \approx 7.4$ times. Half a query makes
# half the scores, and halving an exponent takes the square root of the ratio. So "was" asks the same question as "sat", only less
# decidedly.

# %% [markdown] id="shapes"
# ### Every shape
#
# Our sentence has as many queries as keys, but in general four sizes are free:
#
# | step | product | shapes |
# |---|---|---|
# | scores | $Q K^\top / \sqrt{d_k}$ | $(T_q, d_k)\,(d_k, T_k) \to (T_q, T_k)$ |
# | weights | softmax of each row | $(T_q, T_k) \to (T_q, T_k)$ |
# | output | $P V$ | $(T_q, T_k)\,(T_k, d_v) \to (T_q, d_v)$ |

# %% [markdown] id="shapes-loops"
# Queries and keys meet in a dot product, so they have equally many numbers, while values may have more or fewer. Does the one line really
# do what we did by hand? We let loops do it too, one query and one key at a time:

# %% id="shapes-code"
rng = np.random.default_rng(4)
query, key, value = (rng.normal(size=size) for size in ((3, 4), (5, 4), (5, 2)))
by_loops = np.zeros((3, 2))
for i in range(3):
    row = softmax(np.array([query[i] @ key[j] for j in range(5)]) / math.sqrt(4))
    for j in range(5):
        by_loops[i] += row[j] * value[j]
print("one line and loops agree:", np.allclose(attention(query, key, value), by_loops))

# %% [markdown] id="batch"
# ## Many examples at a time
#
# A model in training reads many sentences at a time, to keep its processor busy. We number them with an index $b$, on one more axis in
# front:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$
#
# Nothing in it mixes two different $b$, so the sentences know nothing of each other. In an array the last two axes are positions and
# features, and $b$ stands for **all** axes before them. They may count examples, or heads (soon), or both.

# %% [markdown] id="batch-turn"
# **Your turn: batched attention**, the milestone of this lesson. {turn}`attention-of-batches`
#
# If you like, write `my_scores(query, key)` first; `check("all-scores", my_scores)` in the same cell tells you whether they are right.

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

# %% id="batch-attend"
attend = my_batched_attention
if attend is ...:  # not written yet, so the course's own stands in
    attend = attention

# %% [markdown] id="batch-own"
# ## What you have built
#
# When the check is green, look at your cell once more. From here on we call it `attend`.

# %% [markdown] id="batch-heads"
# Let us put it to work, on the two heads of our sentence. In the first, "it" asks who is meant, and in the second, which word stands before
# it. With an identity matrix as values the output is $P$ itself. "It" should find "cat" again:

# %% id="batch-sentence"
P = attend(QUERY, KEY, np.stack([np.eye(7)] * 2))  # heads, who asks, who answers
print(labelled(P[:, 4], ("it, first head", "it, second head"), columns=TOKENS))
gets = attend(QUERY, KEY, VALUE)[0, 4]  # the first head with its own values
presents = ("alive", "tells", "alive - open")
print(labelled([gets, VALUE[0, 1]], ("it gets", "cat has"), columns=presents))

# %% [markdown] id="batch-notice"
# In the first head "it" has found "cat", and gets nearly the cat's own value. Added to what "it" was, after $W_O$, this makes the
# pronoun carry what it stands for (lesson {lesson}`start`). Your lines know nothing of pronouns or order.

# %% [markdown] id="layer"
# ### A whole layer around your call
#
# The attention layer of a Transformer makes queries, keys and values from the words with three matrices, cuts them into heads, and uses
# a fourth one to mix what the heads return. This is all that it computes for three sentences of five words:

# %% id="layer-drawn"
figures.layer_tensors(batch=3, tokens=5, d_model=8, n_heads=2)

# %% [markdown] id="layer-torch"
# PyTorch has such a layer. It keeps its matrices transposed, the first three one below the other. We take them out and walk down the
# drawing, with your function in the middle:

# %% id="layer-code"
import torch

options = {"bias": False, "batch_first": True, "dtype": torch.float64}
layer = torch.nn.MultiheadAttention(8, 2, **options)  # 8 features, 2 heads
packed, last = (p.detach().numpy() for p in layer.parameters())  # (24, 8) and (8, 8)
w_query, w_key, w_value = (w.T for w in np.split(packed, 3))
w_output = last.T

x = np.random.default_rng(5).normal(size=(3, 5, 8))
Q, K, V = x @ w_query, x @ w_key, x @ w_value
q, k, v = (a.reshape(3, 5, 2, 4).swapaxes(1, 2) for a in (Q, K, V))
heads = attend(q, k, v)
output = heads.swapaxes(1, 2).reshape(3, 5, 8) @ w_output
t = torch.tensor(x)
theirs, _ = layer(t, t, t)  # it also returns weights
print("my layer and PyTorch's agree:", np.allclose(output, theirs.detach()))

# %% [markdown] id="layer-notice"
# So the rest is matrix products and reshaping around your call. (Reshaping needs care. `Q.reshape(3, 2, 5, 4)` runs too, and mixes the
# words.)

# %% [markdown] id="writer"
# ### A layer that has learned
#
# Those matrices were random. What do your lines do with matrices that have learned something? We trained a small model to name the next
# word in 68 sentences such as *the dog stopped because it was curious*. How a sentence ends depends on its verb and on whether its nouns
# are alive, and both stand several words back.

# %% [markdown] id="writer-steps"
# The model is one such layer, whose output is added to its input, with 12 features and two heads. A word comes in as the sum of two
# vectors, one for the word and one for its place. The model writes word by word. The newest word asks, and all words read so far answer,
# itself included. A key or value is made from its own word and place alone, so it never changes, and we compute it once and **keep** it.
# The next word is the one whose vector has the largest dot product with what comes out.

# %% id="writer-load"
from attn_course.lessons.attention.experiments_writer import WORDS, looks, matrices

# learned and stored: 25 words and 10 places of 12 numbers, four matrices (12, 12)
table, places, w_query, w_key, w_value, w_output = matrices()
vector = dict(zip(WORDS, table, strict=True))


# %% id="writer-code"
def write(text):
    words, keys, values = text.split(), [], []
    while words[-1] != "." and len(keys) < len(places):
        n = len(keys)  # words that have been read; the next one asks
        x = vector[words[n]] + places[n]
        q, k, v = ((x @ w).reshape(2, 1, 6) for w in (w_query, w_key, w_value))
        keys, values = [*keys, k], [*values, v]  # 2 heads, 1 word, 6 features each
        z = attend(q, np.concatenate(keys, axis=1), np.concatenate(values, axis=1))
        x = x + z.reshape(12) @ w_output
        if n + 1 == len(words):  # nothing more to read, so write
            words.append(WORDS[np.argmax(table @ x)])
    return words


# %% id="writer-writes"
words = write("the cat sat because")
print(*words)
figures.who_looked_where(words[:-1], looks(words[:-1]))

# %% [markdown] id="writer-notice"
# It has written the sentence of our course, and never read it: no cat sat in what it learned from. Given the words up to "because", it
# finishes all 28 held-out sentences correctly. The map is a triangle, and our loop hid nothing for it, because a word that has not been
# read yet cannot answer.
#
# When "was" asks, one head gives "cat" 0.75 of its weight, and the other gives "sat" 0.87.

# %% [markdown] id="writer-try"
# If a clock sat, "was" gives "clock" only 0.08 in the first head, and the sentence still ends as it should, with "heavy"; without that head
# it would not. So a small weight does not mean that a head plays no part. The keys and values that are kept here are the **KV cache** of large models; in exercise
# {task}`step-with-kept-keys` you write such a step.

# %% [markdown] id="real"
# ### Your function writes English
#
# Does it also run a model that people use? The smallest SmolLM2 has 135 million learned numbers (most of 4 bits here) and 49,152 pieces of
# words, and was tuned to follow instructions. The course's setup has put it on your machine, unless you left it out.

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% [markdown] id="real-steps"
# It has 30 layers of nine heads, and each layer will call your function for one token at a time, as `write` does. (Places are in
# queries and keys already, as rotations, lesson {lesson}`self_attention`.) What a layer makes of a token never depends on a later one, so
# keys can be kept in every layer. We hand the model your function:

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
# If the model is here (else this compares nothing), your lines were called 330 times for the first sentence, in each of 30 layers for each
# of 11 tokens. Then break them: hand over `lambda q, k, v: attend(8 * q, k, v)`, which takes out the division by $\sqrt{64}$, and let the model write again.
# (It is small: do not trust its facts.)

# %% [markdown] id="padding"
# ## Padding, and three mistakes
#
# Sentences differ in length, but an array has no ragged edge, so short ones are filled up with **padding**. Padded keys must get no
# weight, and we have seen that the score 0 will not do. The right score is $-\infty$. Because $e^{-\infty} = 0$, such a key is gone, and
# each row sums to 1 over the true keys, if there is at least one.
#
# The outputs of a sentence's true queries then come out as if it were computed **alone**. Here are two sentences, and the second has only
# three true keys; the other two are padding:

# %% id="padding-code"
batch = [rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2))]
lengths = np.array([5, 3])
true_key = np.arange(5) < lengths[:, None, None]  # (5,) against (2, 1, 1) is (2, 1, 5)
s = batch[0] @ batch[1].swapaxes(-1, -2) / math.sqrt(4)  # (2, 3, 5)
p = softmax(np.where(true_key, s, -np.inf))
print(p[1].round(2))
alone = attention(batch[0][1], batch[1][1, :3], batch[2][1, :3])
print("the same as alone:", np.allclose((p @ batch[2])[1], alone))

# %% [markdown] id="spot"
# ### Spot the mistake
#
# Back to the line of 2022. Each of these three functions is meant to be batched attention, and each has one mistake. What does each compute
# instead?


# %% id="spot-code"
def one(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(s, axis=-2) @ v


def two(q, k, v):
    return softmax(k @ q.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def three(q, k, v):
    rows = (a.reshape(-1, a.shape[-1]) for a in (q, k, v))
    return attention(*rows).reshape(*q.shape[:-1], v.shape[-1])


# %% [markdown] id="spot-tests"
# How would a test find them? In `equal` all values are 1, so every average must be 1. `by_hand` knows the number from the beginning: "cat"
# must give "sat" the weight 0.344. Both take our sentence as a batch of one.

# %% id="spot-tests-code"
sentence = QUERY[:1], KEY[:1]  # the first head, as a batch of one


def equal(f):
    return np.allclose(f(*sentence, np.ones((1, 7, 1))), 1)


def by_hand(f):
    return abs(f(*sentence, np.eye(7)[None])[0, 1, 2] - 0.344) < 0.001  # cat, sat


# %% [markdown] id="spot-predict"
# **Predict** which of the functions fail the first test, and which pass the second.

# %% id="spot-table" tags=["predicted"]
for f in (attention, one, two, three):
    print(f"{f.__name__:9}  equal: {equal(f)!s:5}  by_hand: {by_hand(f)}")

# %% [markdown] id="spot-answer" tags=["answer"]
# Only `one` fails the first test. It takes the softmax over the queries, while in the others each row of weights still sums to 1. In `two`
# the keys ask. Both are found by the second test, since other scores stand in the fraction. Only `three` passes both. It joins
# batch and positions, and in a batch of one there is nothing to join.
#
# The line of 2022 makes the mistake of `one`, since its axis 1 counts the queries, and both tests find it. "That's a typo and a big bug!"
# was the author's answer. Yet the reader had trained a model with each axis, and found their pictures about equally good. If that report
# is right, such a mistake need not even spoil a training run.

# %% [markdown] id="spot-alone"
# A batch of one cannot show whether examples stay apart. So we take the sentence twice, change the keys of the second copy, and look at the
# first:

# %% id="spot-alone-code"
twice = [np.stack([a[0], a[0]]) for a in (QUERY, KEY, VALUE)]
changed = [twice[0], np.stack([KEY[0], 3 * KEY[0]]), twice[2]]
for f in (attention, one, two, three):
    print(f"{f.__name__:9}  alone: {np.allclose(f(*twice)[0], f(*changed)[0])}")

# %% [markdown] id="function"
# ## Attention as a function of the query
#
# Keep keys and values, and let $q$ be **any** vector. Then {eq}`attention-of-one-query` sends each $q$ to an output $z(q)$.

# %% [markdown] id="function-walk"
# One might expect that a query close to a key returns about the value of that key. Is it so? We take a walk through a plane of queries with
# four keys, $k_1 = (1, 0)$, $k_2 = (5, 2)$, $k_3 = (-2, 3)$ and $k_4 = (-2, -3)$, and their values $1$, $-1$, $0.4$ and $-0.2$. We start
# exactly on $k_1$. **Predict** which key gets the largest weight there, and roughly which output that gives.

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
# On $k_1$ the dot products are 1, 5, $-2$ and $-2$. So the largest weight goes to $k_2$, and the output is about $-0.9$, although we stand
# on a key whose value is 1.
#
# The left map has no region for $k_1$. Since $k_1 = (3 k_2 + k_3 + 3 k_4) / 7$, its score is the same weighted average of theirs, and never
# above all three. On the right the score is **Gaussian**, minus half the squared distance, $-\|q - k_j\|^2 / 2$ (bandwidth $h = 1$), and
# every key wins where it is the nearest.

# %% [markdown] id="own-key"
# ### Standing on a key
#
# So a query can sit exactly on its key and miss the value. What went wrong? Two keys are enough:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# The scores are $1/\sqrt 2$ and $5/\sqrt 2$. Both keys point in the direction of the query, but $k_2$ is five times as long, and among such
# keys the dot product favours the longest. Let us take this advantage away and give all keys the **same norm** (length) $\rho$. Is the
# value found then?

# %% [markdown] id="own-key-lead"
# The trick is to write the dot product as a distance. Since $\|k_1 - k_j\|^2 = 2 \rho^2 - 2\, k_1 \cdot k_j$ and
# $\rho^2 = k_1 \cdot k_1$, the score of $k_1$ at $q = k_1$ leads that of $k_j$ by
#
# $$\text{lead}_j = \frac{k_1 \cdot k_1 - k_1 \cdot k_j}{\sqrt{d_k}} = \frac{\|k_1 - k_j\|^2}{2 \sqrt{d_k}}$$
#
# This is positive for every $k_j \ne k_1$, so now $k_1$ has the largest weight. But is it large? Every other key has $e^{-\text{lead}_j}$
# times as much, and all weights sum to 1, hence
#
# $$p_1 = \frac{1}{1 + \sum_{j \ne 1} e^{-\text{lead}_j}}$$
#
# For $p_1$ near 1 the sum must be small. So every lead must be large, and the more keys there are, the larger the leads must be. If we
# lengthen all keys by the same factor, all leads grow.

# %% [markdown] id="plane-notice"
# What becomes of "On key 1" if you choose "Keys of equal
# length"? Then choose "Reset". The arrow points where the output grows fastest, and the steeper the output, the longer the arrow. Where one
# key has all the weight, it vanishes. Where does the output follow the query most?

# %% id="explorable"
figures.query_explorable()

# %% [markdown] id="explorable-answer"
# <details><summary>What you should see</summary>
#
# With keys of equal length (here 3) $k_1$ wins, with a weight of 0.61, and yet the output, 0.22, is far from its value 1: the lead is too
# small. After "Reset" the slope is largest on the border between $k_2$ and $k_3$: a step there moves much weight from one to the other, and
# their values, $-1$ and $0.4$, lie far apart. On the border between $k_2$ and $k_4$ the same happens with values closer together. Section
# {section}`function-bound` derives the slope.
#
# </details>

# %% [markdown] id="hold"
# ## What one output holds
#
# In 2014 a translation program squeezed a sentence into one vector of fixed length, and wrote the translation from it. Bahdanau, Cho and
# Bengio suspected that this vector was a bottleneck, and they used attention instead. But an output of attention is again a vector of fixed
# length, however long the context is. Has the bottleneck come back?
#
# For a single output it has, if the values may be any numbers. We keep query and keys, and so the weights, and change each value $v_j$ by
# some $\mathrm{d}v_j$. The output changes by $\sum_j p_j\, \mathrm{d}v_j$, so the change is **invisible** if
#
# $$\sum_{j=1}^{T_k} p_j\, \mathrm{d}v_j = 0$$

# %% [markdown] id="hold-count"
# How much of the values can change without leaving a trace? Nearly all of it. Without padding or a mask no weight is 0, so we may change
# all values but one as we please, and that one makes up for it. As $T_k - 1$ values of $d_v$ numbers are free, the invisible changes have
# $(T_k - 1)\, d_v$ dimensions, out of $T_k\, d_v$. In our sentence these are 18 of 21.

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

# %% [markdown] id="together"
# In our sentence, "it" gives "cat" $e^4$ times the weight of "because". So we can erase the value of "cat", $(2, 0, 2)$, and add
# $e^4 (2, 0, 2)$ to that of "because", and "it" does not notice. But "was" does, because it weights the two in the ratio $e^2$. Bahdanau's
# program made use of this: it asked anew for every word that it wrote. Section {section}`experiment` measures how many bits a trained
# network gets back from one output.

# %% [markdown] id="cost"
# ## What it costs
#
# Every query meets every key. What is the price of that, if the context is not a sentence but a book?
#
# We count a multiplication and its addition as 2 operations. $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms each, and $P V$ has $T_q d_v$
# entries of $T_k$ terms each, so the two products take
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \key{attention-flops}$$
#
# if all pairs are computed, also those that a mask hides. The inputs are $T_q d_k + T_k (d_k + d_v)$ numbers, and storing all scores takes
# $T_q T_k$ numbers more.

# %% [markdown] id="cost-cases"
# Take $d_k = d_v = 64$ and numbers of 2 bytes. First 1024 tokens attend to one another, then 8192 do. Last, a **single new token**
# attends to 8192 tokens, as when a model writes text and has kept the keys and values of what came before. **Predict** how many times as
# many operations the second case takes as the first, and about how many the third takes for each byte of its inputs.

# %% id="cost-code" tags=["predicted"]
from attn_course import costs

for q_len, kv_len in ((1024, 1024), (8192, 8192), (1, 8192)):
    flops = costs.attention_flops(q_len * kv_len, 64, 64)
    inputs = 2 * (q_len * 64 + kv_len * (64 + 64))
    sizes = f"T_q = {q_len:4}, T_k = {kv_len:4}: {flops / 1e9:8.4f} GFLOP"
    scores_mb = 2 * q_len * kv_len / 1e6
    print(f"{sizes}, inputs {inputs / 1e6:.2f} MB, scores {scores_mb:6.2f} MB")

# %% [markdown] id="cost-notice" tags=["answer"]
# The second case takes $8 \cdot 8 = 64$ times as many operations, since both lengths enter, and its scores take 134 MB. The third case
# takes only about one operation for each byte. It uses each number of the keys and values, 2 bytes, for one multiplication and one
# addition.

# %% [markdown] id="cost-book"
# And the book? Its 100,000 tokens make $10^{10}$ pairs, and these take 2.6 trillion operations and 20 GB of scores, for one head of one
# layer. With the 144 heads of the smallest GPT-2 that would be 2.9 TB. Lesson {lesson}`flash` shows how to do without storing them.

# %% [markdown] id="limits"
# ## Limits
#
# - **An output is an average of values.** It cannot say that nothing fits, unless the context holds a token for that.
# - **In a long context weights fade** if the scores stay within bounds, as section {section}`counting` shows.

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
# - Leading axes are separate problems; padded keys get the score $-\infty$.
# - Three tests find the mistakes shown here: equal values, a number by hand, examples alone.
# - A query on a key gets roughly that key's value if the $e^{-\text{lead}}$ of the other keys add up to little.
# - A model can write with one query at a time: the newest word asks, and the keys and values of the words so far are kept.
# - One output leaves $(T_k - 1)\, d_v$ dimensions of the values invisible.

# %% [markdown] id="summary-next"
# We began with a line that ran, could be trained, and was wrong. You now have the right one, a number that tells the two apart in five
# seconds, a layer that agrees with PyTorch's, and a language model that writes with your lines. How did its matrices learn? Lesson {lesson}`gradients` runs the
# machine backwards to find out. First come the [exercises](../work/ex_{lesson}`attention`_attention.ipynb).

# %% [markdown] id="break"
# ## Deeper: break the machine
#
# Can you tell a mistake by what it does? No core section needs this or anything below, so take what you like. The card has a small
# attention, made from tokens as in lesson {lesson}`start`, and beside it a twin with one mistake. At the start both give the same output.
# Change as few numbers as you can until they differ, press the lamp that proves it, and say which mistake it is. The first four levels need
# this lesson and lesson {lesson}`scaling`. The card
# appears when you run the cell.

# %% id="break-card" tags=["live"]
from attn_course.game.card import break_the_machine

break_the_machine(1)

# %% [markdown] id="inner"
# ## Deeper: when does a query find its value?
#
# What held for $k_1$ holds for every key in the hull of others, $k_a = \sum_l c_l k_l$ with $c_l \ge 0$ and $\sum_l c_l = 1$. For **every**
# query its score is an average of theirs, $s_a = \sum_l c_l s_l$, so one of them is at least as large. Hence no query gives $k_a$ more than
# half of the weight:

# %% id="inner-code"
anywhere = 3 * rng.normal(size=(10_000, 2))
_, given = attention(anywhere, plane_keys, plane_values, return_weights=True)
c = np.array([3, 1, 3]) / 7
print("k_1 is made of the others:", np.allclose(c @ plane_keys[1:], plane_keys[0]))
print("the largest weight of k_1 for 10,000 queries:", given[:, 0].max().round(3))

# %% [markdown] id="inner-lead"
# And what does the lead look like if norms differ? Multiply $\|k_i - k_j\|^2 = \|k_i\|^2 - 2\, k_i \cdot k_j + \|k_j\|^2$ by $\frac{1}{2}$
# and compare:
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$
#
# A $k_j$ of larger norm makes the last bracket negative, and can overtake $k_i$. How large can a lead be if all norms are alike? Keys of
# norm 1 with $d_k = 64$ are at most 2 apart, so no lead exceeds $4 / 16$, and each other key has at least $e^{-1/4} \approx 0.78$ times
# the weight of $k_i$. Henry et al. (2020), who give all keys and queries the norm 1, do not divide by the root, but multiply by a number
# that the model learns.

# %% [markdown] id="deeper-gaussian"
# With the Gaussian similarity of {eq}`gaussian-score-expansion` we can bound how far a query misses its value, and the bound is small if
# the other keys are far enough away, measured in bandwidths. **Assume** bandwidth $h$, $q = k_i$, and the $n - 1$ other keys at least $r$
# away. The score of $k_i$ is 0 and every other one at most $-r^2 / (2 h^2)$, so each other key has at most $a = e^{-r^2 / (2 h^2)}$ times
# the weight of $k_i$, and $p_i \ge 1 / (1 + (n - 1)\,a)$. Now $z - v_i = \sum_j p_j (v_j - v_i)$, where the term of $i$ is 0 and every
# other difference is at most the **diameter** of $V$, the largest distance between two of its rows:
#
# $$\begin{gathered}
# \|z - v_i\| \le (1 - p_i)\,\mathrm{diam}(V) \le \frac{(n - 1)\,a}{1 + (n - 1)\,a}\; \mathrm{diam}(V), \\
# a = e^{-r^2 / (2 h^2)} \end{gathered} \label{gaussian-finds-own-key}$$

# %% [markdown] id="function-bound"
# ## Deeper: how does the output follow its query?
#
# How does the output change with a small step of the query? A loss can tell the query which way to change only through this slope.
#
# The query moves the scores, the scores move the weights, and the weights move the output. We follow this chain link by link, and at its
# end waits an old friend from statistics, a covariance. The slope has a row for each number of the output and a column for each of the
# query, so in this section single **vectors are columns**.

# %% [markdown] id="function-links"
# The first link is $\partial s_l / \partial q = k_l / \sqrt{d_k}$, because $s_l = q \cdot k_l / \sqrt{d_k}$. The second is the derivative
# of the softmax, {eq}`softmax-derivative`. There $s$ was a weight and $z$ a score; here $p$ is a weight, $s$ a score and $z$ an output.
# In our letters it is $\partial p_j / \partial s_l = p_j (\delta_{jl} - p_l)$, where $\delta_{jl}$ is 1 if $l = j$ and else 0.

# %% [markdown] id="function-weights"
# The chain rule multiplies the two and sums over $l$, and the $\delta$ keeps the one term $l = j$:
#
# $$\frac{\partial p_j}{\partial q} = \sum_l p_j\,(\delta_{jl} - p_l)\,\frac{k_l}{\sqrt{d_k}}
#  = \frac{p_j\, k_j}{\sqrt{d_k}} - \frac{p_j}{\sqrt{d_k}} \sum_l p_l\, k_l
#  = \frac{p_j\,(k_j - \bar{k})}{\sqrt{d_k}}$$
#
# with the **mean key** $\bar{k} = \sum_l p_l k_l$. In words, a weight grows fastest when the query moves in the direction from the mean key
# to its own key.
#
# The third link is the output $z = \sum_j p_j v_j$, in which only the weights depend on $q$. The slope of its number $a$ in number $c$ of
# the query is $\sum_j v_{ja}\, p_j\, (k_j - \bar{k})_c / \sqrt{d_k}$, and all of these together are a sum of columns times rows:
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, v_j\, (k_j - \bar{k})^\top$$

# %% [markdown] id="function-centre"
# The keys stand here with their mean subtracted. Let us subtract the mean of the values too, which is $z$, so that both sides look alike.
# We may, because $z \sum_j p_j (k_j - \bar{k})^\top = z\,(\bar{k} - \bar{k})^\top = 0$. So the slope is
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$

# %% [markdown] id="function-covariance"
# Up to the factor $1/\sqrt{d_k}$ the slope is the **covariance** of values and keys under the weights. As one key takes all the weight,
# nothing is left to vary and the function turns flat. The terms of the other keys vanish with their $p_j$, and the term of that key as
# $z$ approaches its value. This is the flat region that the division by $\sqrt{d_k}$ is meant to avoid.

# %% [markdown] id="function-steepest"
# ### How steep can it be?
#
# Is there a limit to the slope in $q$? There is, and it needs three steps. The norm of a matrix $M$ is the largest $a^\top M\, b$ for
# columns $a$, $b$ of norm 1.
#
# 1. $a^\top \frac{\partial z}{\partial q}\, b$ is the covariance of the numbers $a \cdot v_j$ and $b \cdot k_j$, divided by $\sqrt{d_k}$.
# 2. A covariance is at most the product of the two standard deviations (Cauchy and Schwarz).
# 3. Numbers in an interval of length $D$ are at most $D/2$ away from its middle, and the mean square distance is smallest from the mean, so
#    the standard deviation is at most $D/2$. The $a \cdot v_j$ lie in an interval no longer than the diameter of $V$; likewise for $K$.
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

# %% id="bound-code"
gaps = [[np.linalg.norm(a - b) for a in rows for b in rows] for rows in (key, value)]
bound = max(gaps[0]) * max(gaps[1]) / (4 * math.sqrt(4))
print(f"random example: {np.linalg.norm(slope, 2):.2f}, at most {bound:.2f}")

# %% [markdown] id="deeper-near"
# A Gaussian score has the derivative $(k_j - q) / h^2$, where $-q / h^2$ is the same for all keys. So the same steps go through with
# $1/h^2$ in the place of $1/\sqrt{d_k}$, and a query at the distance $\varepsilon$ **near** $k_i$ misses $v_i$ by at most
# {eq}`gaussian-finds-own-key` plus $\varepsilon\, \mathrm{diam}(V)\,\mathrm{diam}(K) / (4 h^2)$.

# %% [markdown] id="deeper-lipschitz"
# In self-attention the input moves queries, keys and values together, and then there need be no limit for all inputs. **Assume** $d_k = 1$
# and all three equal to $x_1, \ldots, x_n$. A token at $x_1 = 0$ has the scores $x_1 x_j = 0$, so each weight is $1/n$. Move $x_1$. As a
# value it contributes $1/n$ to the slope. As a query it contributes the covariance of values and keys, here the variance of the tokens. As
# a key it enters the score $x_1 x_1$ only, whose whole derivative $2 x_1$ is 0. Together:
#
# $$x_1 = 0: \qquad \frac{\partial z_1}{\partial x_1} = \frac{1}{n} + \frac{1}{n} \sum_{j} x_j^2
#  - \Bigl( \frac{1}{n} \sum_{j} x_j \Bigr)^2 \label{self-attention-not-lipschitz}$$

# %% [markdown] id="deeper-lipschitz-so"
# Spread the other tokens and this grows without bound, so as a map of $X$ this self-attention has no global Lipschitz constant. (For
# bounded inputs and a fixed number of tokens there is one.) It is the idea behind the theorem of Kim, Papamakarios and Mnih (2021).

# %% id="deeper-lipschitz-code"
nudge = 1e-6 * np.eye(3)[:, :1]
for spread in (1.0, 10.0, 100.0):
    tokens = np.array([[0.0], [-spread], [spread]])
    up, down = (attention(x, x, x)[0, 0] for x in (tokens + nudge, tokens - nudge))
    by_formula = 1 / 3 + 2 * spread**2 / 3
    print(f"others at +-{spread:5.0f}: slope {(up - down) / 2e-6:8.2f}", end=", ")
    print(f"formula {by_formula:8.2f}")

# %% [markdown] id="counting"
# ## Deeper: what does an average forget?
#
# It forgets numbers. Let $D$ be the pairs $(k_j, v_j)$ of a context, and let $D \uplus D$ contain each pair twice. In
# {eq}`attention-of-one-query` every term then occurs twice and the denominator doubles, so each weight halves and is counted twice:
#
# $$\mathrm{Attention}(q,\, D \uplus D) = \mathrm{Attention}(q, D) \label{doubled-context-same-output}$$
#
# With a small trick attention can count all the same. Put **one** reference token with the value 1 beside $n$ copies with the value 0, all
# with the same score. The output is the weight of the reference, $z = 1/(1+n)$, hence
#
# $$n = \frac{1}{z} - 1 \label{count-beside-reference}$$
#
# A start token can play this part (Behrens, Biggio and Zdeborová, 2024).

# %% id="hold-verify"
for n in (1, 3, 9):
    same, is_reference = np.ones((n + 1, 1)), np.eye(n + 1)[:, :1]
    print(f"n = {n}: output {attention(same[:1], same, is_reference)[0, 0]:.2f}")

# %% [markdown] id="fade"
# It also forgets single values among many. **Assume** values with variance 1, independent of each other and of the weights. For given
# weights and one entry of $z$ the variances add with squared factors:
#
# $$\mathrm{Var}[z] = \sum_{j=1}^{T_k} p_j^2 \label{variance-of-an-output}$$
#
# Equal weights leave $1/T_k$ of the variance. To keep one value, its weight must stay large.

# %% [markdown] id="fade-margin"
# How far must its score lead for that? Say that it lies $\Delta$ above the $n - 1$ others, which are all equal ($n \ge 2$). Multiply
# $p = e^\Delta / (e^\Delta + n - 1)$ out, collect $e^\Delta (1 - p) = p\,(n - 1)$, and take logarithms. For $0 < p < 1$:
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# Twice as many others need a lead larger by $\ln 2$. If the norms of queries and keys are bounded, so are the scores, and no key keeps a
# fixed share of the weight as the context grows (Veličković et al., 2024). If all scores stay within $\pm B$, no weight exceeds
# $e^{2B} / n$; Hahn (2020) builds on this.

# %% id="fade-verify"
for n in (100, 1000, 100_000):
    lead = np.array([7.0] + [0.0] * (n - 1))
    print(f"{n:7d} keys: a lead of 7 keeps {softmax(lead)[0]:.2f} of the weight")

# %% [markdown] id="traffic"
# ## Deeper: what has to be moved?
#
# Operations are one part of the price, and fetching numbers is the other. How many travel between memory and processor, if scores,
# softmax and output are three separate steps? The first reads $Q$ and $K$ and writes scores, the second reads scores and writes weights,
# and the third reads weights and values and writes the output:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$

# %% id="cost-figure"
for q_len, kv_len in ((1024, 1024), (8192, 8192), (1, 8192)):
    flops = costs.attention_flops(q_len * kv_len, 64, 64)
    moved = costs.materialised_attention_bytes(q_len, kv_len, 64, 64)
    sizes = f"T_q = {q_len:4}, T_k = {kv_len:4}: {moved / 1e6:7.2f} MB moved"
    print(f"{sizes}, {flops / moved:5.1f} FLOP a byte")
lengths = np.geomspace(64, 65536, 31).round()
in_and_out = 2 * lengths * 128 * 2 / 1e6
figures.traffic(lengths, 4 * lengths**2 * 2 / 1e6, in_and_out)

# %% [markdown] id="traffic-notice"
# An H100 can do about 300 operations in 16 bits in the time in which its memory delivers one byte (989 TFLOP/s against 3.35 TB/s), and here
# there are at most 32. So it would mostly wait, if all these numbers went through its memory. FlashAttention (Dao et al., 2022) computes
# the same output without storing scores or weights, lesson {lesson}`flash`.
#
# The next cell measures your own machine, the best of three runs. Each length is twice the one before, so there is four
# times as much to do. Expect about four times as long, and often more for the longest.

# %% id="cost-live" tags=["live"]
from timeit import repeat

for length in (512, 1024, 2048):
    x = np.random.default_rng(0).normal(size=(length, 64)).astype(np.float32)
    _, *seconds = repeat(lambda x=x: attention(x, x, x), number=1, repeat=4)
    print(f"T = {length}: {1e3 * min(seconds):.0f} ms")

# %% [markdown] id="experiment"
# ## Deeper: how many bits does one output hold?
#
# A context has $T$ random bits, one at each position, and each position has a token for bit 0 and one for bit 1. In the first model a
# single query reads them all, and from the $d_v$ numbers of its output (4 or 8) a network with 256 hidden units must recover every bit. In
# the second there are $T$ queries, one for each bit, and a network with 64 hidden units, which all of them share, must recover one bit from
# each output ($d_v = 4$). Both are trained from random numbers with Adam for 500 steps of 64 examples, in three seeds
# (`attn_course/lessons/attention/experiments.py`).

# %% [markdown] id="experiment-predict"
# What can one expect? Let the weights not depend on the bits. Then the first output is $z = c + \sum_t p_t\, b_t\, m_t$, where $b_t$ is
# bit $t$, and $m_t$ is the difference of the values of its two tokens. For $T \le d_v$ the vectors $p_t m_t$ can be independent, and a
# linear map with an offset reads off every bit. Beyond that nothing is sure, and the training must show it.

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
# The figure shows means over the seeds, each tested on 2048 new contexts. For $d_v = 4$ one output gives every bit back at $T = 4$. At
# $T = 6$ the shares of the three seeds are 1, 0.993 and 1, and at $T = 8$ they lie between 0.88 and 0.94. For $d_v = 8$ every bit comes
# back up to
# $T = 8$, and at 16, the next length tried, between 0.83 and 0.86 of them. One output per question recovers all bits up to $T = 8$, and at
# least 0.95 of them beyond.

# %% [markdown] id="experiment-notice"
# This is what training found; it is not a law. In exact arithmetic one number can hold any count of bits in its digits. And the second
# model has $T\,d_v$ numbers to answer with, not $d_v$.

# %% [markdown] id="all-together"
# How much do all the outputs of a layer say together? They can determine the values, for anyone who also knows $P$. If $T_q = T_k$ and $P$
# is invertible, multiply {eq}`attention` by $P^{-1}$:
#
# $$V = P^{-1} Z \label{values-from-all-outputs}$$
#
# An error in $Z$ is multiplied by $P^{-1}$ too, and the norm of that matrix is the most by which it can grow:

# %% id="together-code"
square_query = 2 * rng.normal(size=(5, 4))
mixed, mixing = attention(square_query, key, value, return_weights=True)
print("values recovered:", np.allclose(np.linalg.solve(mixing, mixed), value))
growth = np.linalg.norm(np.linalg.inv(weights), 2)
print(f"for the sentence, an error in Z can grow by a factor of {growth:.0f}")

# %% [markdown] id="deeper-linear"
# ## Deeper: can a linear map depend on the context?
#
# You may read that it cannot. That is half true. Leave out softmax and scale:
#
# $$q\,(K^\top V) = \sum_{j=1}^{T_k} (q \cdot k_j)\, v_j, \qquad K K^\top = I \;\Rightarrow\; k_i\,(K^\top V) = v_i
# \label{linear-map-from-context}$$
#
# $K K^\top = I$ says that the keys are orthonormal, so all terms but $j = i$ vanish for $q = k_i$. The output is **linear in $q$**, with a
# matrix $K^\top V$ made from the context, and it looks values up without error, for at most $d_k$ orthonormal keys. Lesson
# {lesson}`linear` builds on it. What fails is a matrix that is **fixed** before the context is known. When the keys are permuted, it
# returns the old values.

# %% id="deeper-linear-code"
orthonormal = np.linalg.qr(rng.normal(size=(4, 4)))[0]
labels = np.array([[1.0], [2.0], [3.0], [4.0]])
made, moved = orthonormal.T @ labels, orthonormal[[1, 2, 3, 0]]
print("same context: ", (orthonormal @ made).ravel())
print("keys moved on:", (moved @ made).ravel(), "wanted", labels.ravel())

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
# - M. Hahn (2020), [arXiv:1906.06755](https://arxiv.org/abs/1906.06755): what self-attention cannot compute.
# - H. Kim, G. Papamakarios and A. Mnih (2021), [arXiv:2006.04710](https://arxiv.org/abs/2006.04710): no Lipschitz constant
#   for the dot product; one for a distance, if queries and keys are made by the same matrix.
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention.
