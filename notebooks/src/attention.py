# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# In 2022 a reader of annotated papers stopped at this line of an attention layer:
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# Should `dim`, the axis, be 2? The model, which draws, seemed to work. Trained later with either axis, it scored about the same.
# **Is the line wrong, and how would you know?**
#
# You work attention out by hand, write it for batches, put the line on trial, and let your own function write English.
#
# **You need** matrix products, $e^x$, NumPy. **Time:** 48 minutes.

# %% [markdown] id="who"
# ## A number that we trust
#
# To judge the line we want a number that no program made. In attention a word asks all words of its sentence and averages what they hand
# on, and those that fit its question count most. In *The cat sat because it was tired* we give each word four numbers, and "cat"
# asks: who tells something about me?

# %% id="who-code"
import numpy as np

numbers = {  # alive, tells, open, joins
    "the": [0, 0, 1, 0],
    "cat": [2, 0, 0, 0],
    "sat": [0, 2, 0, 0],
    "because": [0, 0, 0, 2],
    "it": [0, 0, 2, 0],
    "was": [0, 1, 0, 0],
    "tired": [1, 2, 0, 0],
}
words, K = list(numbers), np.array([*numbers.values()], dtype=float)
q = np.array([0.0, 2, 0, 0])  # what "cat" asks for
for word, k in zip(words, K, strict=True):
    print(f"{word:8} fits {q @ k:.0f}")

# %% [markdown] id="who-asks"
# The four numbers of a word are its **key**, what it shows to those who ask. They say how alive the word is, how much it tells about what
# somebody does or is, how open it is, as a pronoun waits for its noun, and how much it joins.
#
# What a word asks for is its **query**. The query of "cat", $q = (0, 2, 0, 0)$, counts the second number of a key twice and ignores the
# others. The dot product, which the cell printed, says how well query and key fit. We build the lit part of this attention layer:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.attention import figures

figures.machine()

# %% [markdown] id="who-scale"
# Is 4 much? A key has $d_k$ entries, so the dot product adds $d_k$ terms $q_a k_a$. Suppose that all entries of $q$ and $k$ are
# independent, with mean 0 and variance 1. Then each term has mean 0, and variance $\mathbb{E}[q_a^2 k_a^2] = \mathbb{E}[q_a^2]\,
# \mathbb{E}[k_a^2] = 1$. As variances of independent terms add, the dot product has variance $d_k$, and its typical size is $\sqrt{d_k}$.
# We divide by this root, so that chance alone makes no larger numbers at a large $d_k$ than at a small one. The result is the **score**.
# Here $d_k = 4$, and the scores are 2, 1 and 0.

# %% [markdown] id="by-hand-weights"
# Next the seven scores become shares of a whole. The **weight** of a word is $e$ to the power of its score, divided by the sum of all seven
# powers. This step is the **softmax**. With $e \approx 2.7$ and $e^2 \approx 7.4$ you can do it on paper.
#
# Each word also has a **value**, the numbers that it hands on. Here the value is the first two numbers of the key. The output for "cat"
# is the average of the seven values with the seven weights.
#
# **Predict** which share the four words with score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
V = K[:, :2]  # a value in each row: alive, tells
scores = K @ q / np.sqrt(4)
powers = np.exp(scores)
weights = powers / powers.sum()
output = weights @ V
figures.one_query(words, q, K, K @ q, weights, V, output)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# The seven powers are 7.4 twice, 2.7 once and 1 four times, in all 21.5. So the four words get $4 / 21.5 \approx 0.19$: a score of 0 is
# not a weight of 0, since $e^0 = 1$. "Sat" and "tired" get $7.4 / 21.5 \approx 0.344$ each,
# and "was" gets $2.7 / 21.5 \approx 0.126$. The second number of the output says how much is told about the cat:
# $0.344 \cdot 2 + 0.344 \cdot 2 + 0.126 \cdot 1 \approx 1.50$. This is the number that we trust.

# %% [markdown] id="one-query"
# These steps (scores, weights, average) work for any query $q$, and for $T_k$ keys $k_1, k_2, \ldots$ with values $v_1, v_2, \ldots$, which
# are the rows of $K$ and $V$:
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$

# %% [markdown] id="all-queries"
# ## Every word asks
#
# The line of 2022 works on many queries at once. From a matrix $X$ with a row for each word a layer makes queries,
# keys and values, with three matrices that it learns: $Q = X W_Q$, $K = X W_K$ and $V = X W_V$. We choose ours by hand. A row of our $X$
# holds the four numbers of a word. $W_K$ hands them on as they are, and $W_V$ keeps the first two. The rows of $W_Q$ say what an alive, a
# telling, an open and a joining word ask for:

# %% id="all-queries-code"
X = K
W_Q = np.array([[0.0, 1, 0, 0], [2, -1, 0, 0], [2, -1, -1, 0], [0, 0, 0, 0]])
W_K, W_V = np.eye(4), np.eye(4, 2)
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
print('the queries of "cat" and "it":', Q[1], Q[4])

# %% [markdown] id="scores"
# "It" is open by 2, so its query is twice the third row of $W_Q$. It asks for somebody alive, not telling and not open.
#
# Let $q_i$ be row $i$ of $Q$, which has $T_q$ rows. One product makes all dot products, and one division all scores:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$

# %% [markdown] id="weights"
# Row $i$ of the scores belongs to query $i$. The softmax of this row gives the weights of the query, which sum to 1 over the keys:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$
#
# For "it" the cat has the score $4 \cdot 2 / 2 = 4$ and every other word at most 0, so the cat gets $e^4 \approx 55$ of a
# sum of at most $55 + 6$, nearly all of the weight. With these weights output $i$ averages the values:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$

# %% [markdown] id="matrix"
# Let $P$ be the matrix of all weights, and $Z$ the matrix whose rows are the outputs. Row $i$ of $P\,V$ is the sum above, so $Z = P\,V$.
# With a softmax of each row this is the first equation of the Transformer paper:
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# Here $Q$ is $(T_q, d_k)$, $K$ is $(T_k, d_k)$ and $V$ is $(T_k, d_v)$, so $P$ is $(T_q, T_k)$ and $Z$ is $(T_q, d_v)$.

# %% [markdown] id="batch"
# ## A batch of sentences
#
# A batch of sentences puts one more axis in front, and the heads of a layer (several attentions side by side) yet another. So we count axes
# from the end: the last two are the words and their numbers, and in the scores the queries and the keys. NumPy's `@` takes matrix products
# over the last two axes and carries the others along. `a.swapaxes(-1, -2)` exchanges the last two.

# %% [markdown] id="scores-turn"
# **Your turn: scores for any batch.** {turn}`all-scores`

# %% id="scores-turn-code" tags=["your-turn"]
my_scores = ...  # your function
check("all-scores", my_scores)

# %% [markdown] id="scores-ours" tags=["ours"]
# ```python
# def my_scores(query, key):
#     return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
# ```

# %% [markdown] id="each-alone"
# Each example $b$ of a batch is a problem of its own, which sees nothing of the others:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$

# %% [markdown] id="batch-turn"
# **Your turn: batched attention,** which may call your `my_scores`. {turn}`attention-of-batches`

# %% id="batch-turn-code" tags=["your-turn"]
my_batched_attention = ...  # your function
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="batch-ours" tags=["ours"]
# ```python
# def my_batched_attention(query, key, value):
#     scores = my_scores(query, key)
#     powers = np.exp(scores)
#     weights = powers / powers.sum(axis=-1, keepdims=True)
#     return weights @ value
# ```

# %% [markdown] id="spot"
# ## The line on trial
#
# From here on `attend` is your function, or the course's as long as yours is not written. Two suspects claim to compute the same as
# `attend`. The first, `softmax_over_queries`, makes the mistake of 2022. The scores of that code had the axes (batch, query, key, head), so
# `dim=1` sums the powers over the queries. In our arrays, $(\ldots, T_q, T_k)$, the queries are axis $-2$. The second, `batch_joined`,
# joins batch and words to one axis, so that two sentences of seven words become one of fourteen.

# %% id="spot-attend" tags=["hide-input"]
from attn_course.reference import attention

attend = attention if my_batched_attention is ... else my_batched_attention


# %% id="spot-code"
def softmax_over_queries(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=-2, keepdims=True)  # over the queries
    return weights @ value


def batch_joined(query, key, value):
    joined = [a.reshape(-1, a.shape[-1]) for a in (query, key, value)]
    return attend(*joined).reshape(len(query), -1, value.shape[-1])


# %% [markdown] id="spot-predict"
# For a batch all three return arrays of the same shape, so shapes cannot judge them. We use two tests. `our_number` takes our sentence as a
# batch of one, and returns the second number of the output for "cat", which should be 1.50. `first_copy_stays` takes a batch of two copies
# of the sentence. Then it triples all queries, keys and values of the second copy. By {eq}`batched-attention` the outputs of the first copy
# must stay as they are. **Predict** which function fails which test.


# %% id="spot-table" tags=["predicted"]
def our_number(f):
    Z = f(Q[None], K[None], V[None])  # a batch of one
    return Z[0, 1, 1]  # first sentence, "cat", tells


def first_copy_stays(f):
    copies = [np.stack([a, a]) for a in (Q, K, V)]
    tripled = [np.stack([a, 3 * a]) for a in (Q, K, V)]
    return np.allclose(f(*copies)[0], f(*tripled)[0])


def judge(name, f):
    print(f"{name:20}  {our_number(f):.2f}  first copy stays: {first_copy_stays(f)}")


judge("attend", attend)
judge("softmax_over_queries", softmax_over_queries)
judge("batch_joined", batch_joined)

# %% [markdown] id="spot-answer" tags=["answer"]
# `softmax_over_queries` fails the first test. Its 2.93 is more than any word tells, so it cannot be an average of what they tell. But it
# passes the second test, because its mistake stays inside each sentence. `batch_joined` fails the second test and passes the first, since
# in a batch of one there is nothing to join. So we need both tests.

# %% [markdown] id="spot-seen"
# With the identity matrix $I$ in the place of the values, a function returns its weights, since $P I = P$:

# %% id="spot-figure"
maps = {
    "softmax over keys": attend(Q, K, np.eye(7)),
    "softmax over queries": softmax_over_queries(Q, K, np.eye(7)),
}
figures.weights_by(maps, words)

# %% [markdown] id="spot-story"
# On the left each row sums to 1, and in the row of "it" the cat has 0.95: the pronoun has found its noun. On the right each column sums to
# 1, because each key shares out a weight of 1 among the queries, and the row of "cat" collects 2.18.
#
# So the line of 2022 is wrong, and one number made by hand shows it. In that code the keys are axis 2, so `dim=2` is right. "That's a typo
# and a big bug!" answered the author. And the pictures? A layer can learn some jobs with the wrong axis, as the first *Deeper* section
# shows.

# %% [markdown] id="third"
# **Your turn: a third suspect.** Take the other side, and change `my_suspect` into a function that is not attention and still passes both
# tests. What do our numbers not show? The cell also compares it with `attend` on random numbers.


# %% id="third-code"
def my_suspect(query, key, value):
    return attend(query, key, value)  # make it wrong


judge("my_suspect", my_suspect)
rng = np.random.default_rng(0)
sizes = ((2, 3, 5), (2, 7, 5), (2, 7, 11))
query, key, value = (rng.normal(size=size) for size in sizes)
same = np.allclose(my_suspect(query, key, value), attend(query, key, value))
print("on random numbers the same as attend:", same)

# %% [markdown] id="third-ours"
# <details><summary>One way</summary>
#
# Our queries have four numbers, so a 2 in the place of the root passes both tests:
#
# ```python
#     return attend(query * np.sqrt(query.shape[-1]) / 2, key, value)
# ```
#
# </details>

# %% [markdown] id="real"
# ## Does your function run a language model?
#
# SmolLM2-135M continues a text, one token (a word or part of one) at a time. Each of its 30 layers makes queries for nine heads, and keys
# and values for three groups of three heads, with matrices that it has learned. Then it calls the function that we name. The heads stand
# where the batch stood. Only the newest token asks, with one query of 64 numbers in each head, so the queries have the shape (9, 1, 64).
# The keys and values of all $T_k$ tokens so far, copied for each head of a group, have the shape (9, $T_k$, 64). With our start the scores
# stay below 21 in size, so no power overflows.

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-writes"
start = "The sun rises in the east and"
pytorch = model.write(start, tokens=5)  # PyTorch's attention
model.attend = attend  # yours, in all 30 layers
yours = model.write(start, tokens=5)
print(yours)
print("the same words as with PyTorch's attention:", yours == pytorch)

# %% [markdown] id="real-notice"
# Your function (or the course's) wrote this. (Without the model on your machine, the text is stored, and your function was tried on
# one stored step only.)
#
# And with the line of 2022? First we let only "it" ask in our sentence, as only the newest token asks in the model. **Predict** the seven
# weights that `softmax_over_queries` gives.

# %% id="real-break" tags=["predicted"]
it = Q[4:5]  # a single query, that of "it"
print("over queries:", softmax_over_queries(it, K, np.eye(7))[0])
print("over keys:   ", attend(it, K, np.eye(7))[0].round(3))

# %% [markdown] id="real-answer" tags=["answer"]
# All seven are 1. The sum over the queries has a single term here, so each power of $e$ is divided by itself. The output is the sum of all
# values, whatever "it" asks for.

# %% [markdown] id="real-bet"
# Now both suspects run in the model. **Predict** which of them still writes English, the line of 2022 or your third one (or ours, a 2 in
# the place of the root, which is 8 here).

# %% id="real-broken" tags=["live", "predicted"]
if model.is_here:
    for suspect in (softmax_over_queries, my_suspect):
        model.attend = suspect
        print(model.write(start, tokens=5))

# %% [markdown] id="real-broken-notice" tags=["answer"]
# With the line of 2022 the model went on with ",, the the (" on our machine. Trained with the right line, it shows the wrong one at once.
# But with our third suspect it wrote "sets in the west,". Only the last token differs from what `attend` wrote, so good English proves
# little. The random numbers showed this suspect, because there $d_k = 5$.

# %% id="verify-lesson"
verify_lesson("attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | output |
# |---|---|---|
# | one query, {eq}`attention-of-one-query` | {key}`attention-of-one-query` | $(d_v)$ |
# | all queries, {eq}`attention` | {key}`attention` | $(\ldots, T_q, d_v)$ |
# | average of the values, {eq}`output-of-a-query` | {key}`output-of-a-query` | $(d_v)$ for each query |

# %% [markdown] id="summary"
# ## Summary
#
# - Attention is scores, a softmax of each row over the keys, and an average of the values.
# - A number made by hand can find a wrong axis, and a changed second sentence a mixed batch. Random numbers, compared with a function that
#   you trust, can find more. Try all three on the attention of your project, or on what a chatbot gives you.
#
# Is the line wrong? Yes, and one number made by hand says so, while good pictures prove little. How did the matrices of the language model
# learn? After the [exercises](../work/ex_{lesson}`attention`_attention.ipynb), lesson {lesson}`gradients` finds out.

# %% [markdown] id="layer"
# ## Deeper: why may training not tell?
#
# We have not trained the model of 2022, but a small layer shows what is possible. Its pictures have four independent, standard normal
# pixels. A row of $X$ is a pixel, then four numbers, 0 except for a 1 at its place. The matrices $W_Q$, $W_K$ and $W_V$ stand side by side
# in the 4 + 4 + 1 columns of `w`.

# %% id="train-code"
import torch

places = torch.eye(4)  # a 1 at each place


def layer(pixels, w, axis):
    X = torch.cat([pixels, places.expand(len(pixels), 4, 4)], dim=2)
    q, k, v = (X @ each for each in w.split((4, 4, 1), dim=1))
    return (q @ k.mT / 2).softmax(axis) @ v


# %% id="train-loop" tags=["hide-input"]
def error_after(start, axis, wanted):
    draw = np.random.default_rng(start).normal
    w = torch.tensor(draw(0, 0.5, (5, 9)), requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)

    def error(count):  # in new pictures
        pixels = torch.tensor(draw(size=(count, 4, 1)))
        return (layer(pixels, w, axis) - wanted(pixels)).square().mean()

    for _ in range(200):
        w.grad = torch.autograd.grad(error(200), w)[0]
        optimizer.step()
    return error(100_000).item()


# %% [markdown] id="train-predict"
# The layer learns one of two jobs. In the first each place must return the pixel of the opposite place (first and last, second and third),
# and in the second all must return the brightest pixel. The folded cell trains from a given start and returns the mean squared error
# on 100,000 new pictures. **Predict** at which job the wrong axis fails.

# %% id="train-run" tags=["predicted"]
jobs = {"opposite": lambda x: x.flip(1), "brightest": lambda x: x.amax(1, keepdim=True)}
for job, wanted in jobs.items():
    for axis in (-1, -2):
        errors = [error_after(start, axis, wanted) for start in range(3)]
        print(f"{job:9}  axis {axis}:", *(f"{error:.2f}" for error in errors))

# %% [markdown] id="train-answer" tags=["answer"]
# Only at the brightest pixel, and from all three starts. Opposite pixels can be learned with the wrong axis, because there each key is
# wanted by one query, which can get its whole weight. Over ten starts the mean error was 0.015 with the wrong axis and 0.006 with the right
# one. For the brightest pixel, add up all outputs, {eq}`output-of-a-query`. As the weights of each key sum to 1 over the queries, the
# scores drop out:
#
# $$\sum_i z_i = \sum_j \sum_i p_{ij}\, v_j = \sum_j v_j$$
#
# Each value is a multiple of its pixel plus a constant of its place. So the sum of the outputs can follow only the sum of the pixels, while
# it would have to be four times the brightest. No training of this layer mends that.

# %% [markdown] id="near"
# ## Deeper: can a query find every key?
#
# One might expect that a query equal to a key returns about the value of that key. Two keys refute it:
#
# $$q = k_1 = (1, 0),\; k_2 = (5, 0): \qquad p_1 = \frac{1}{1 + e^{4 / \sqrt{2}}} \approx 0.06 \label{query-misses-own-key}$$
#
# Both keys point in the direction of the query, and the longer one wins. Here the query $-k_1$ would find $k_1$. But now let $k_1 = (1, 0)$
# lie halfway between $k_2 = (4, 3)$ and $k_3 = (-2, -3)$, and choose any query. **Predict** the largest weight that $k_1$ can get.

# %% id="near-code" tags=["predicted"]
plane_keys = np.array([[1.0, 0.0], [4.0, 3.0], [-2.0, -3.0]])
anywhere = 3 * np.random.default_rng(4).normal(size=(10_000, 2))
_, p = attention(anywhere, plane_keys, plane_keys, return_weights=True)
print(f"10,000 queries: the largest weight of k_1 is {p[:, 0].max():.3f}")

# %% [markdown] id="near-answer" tags=["answer"]
# It is a third. Let $k_2$ and $k_3$ have the powers $a$ and $b$ of $e$. The score of $k_1$ lies halfway between theirs, so its power is
# $\sqrt{ab}$. As $(\sqrt a - \sqrt b)^2 \ge 0$, this is at most half of $a + b$, and so at most a third of $a + b + \sqrt{ab}$.

# %% [markdown] id="plane"
# Let the values be $1$, $-1$ and $0.4$. The pictures show the output for each query of a plane. On the left no output is near 1,
# the value of $k_1$. On the right all keys have the length 5, and each value is nearly reached:

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
# Why does equal length help? At $q = k_i$ the dot product with $k_i$ leads that with another key by
#
# $$k_i \cdot k_i - k_i \cdot k_j = \tfrac{1}{2} \|k_i - k_j\|^2 + \tfrac{1}{2} \bigl( \|k_i\|^2 - \|k_j\|^2 \bigr)
# \label{lead-of-own-key}$$
#
# If all keys are equally long, the last bracket is 0, and no other key gets ahead. But the lead may be small. Keys of length 1 are at
# most 2 apart, so at $q = k_i$ no key leads by more than 2. After the division by $\sqrt{64}$ another key still has at least
# $e^{-2/8} \approx 0.78$ times the weight.

# %% [markdown] id="slope"
# A key within reach must still be found by training. Keep keys and values, and move $q$. Then score $j$ has the slope $k_j / \sqrt{d_k}$,
# and by {eq}`weighted-mean-derivative` the slope of the output is the **covariance** of the values and these slopes under the weights. With
# vectors as columns it reads
#
# $$\frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} p_j\, (v_j - z)\,(k_j - \bar{k})^\top, \qquad
#  \bar{k} = \sum_{j=1}^{T_k} p_j k_j \label{output-derivative-by-query}$$
#
# Where one key has nearly all the weight, all terms are nearly 0: the other weights are small, and $v_j - z$ is small for this key. So the
# output hardly moves with the query, and the gradient of a loss hardly points it to other keys. Make the query longer, step by step: where
# does the output stop moving?

# %% id="near-alive"
from attn_course import alive

alive("attention-of-one-query")

# %% [markdown] id="hold"
# ## Deeper: what does a longer text cost?
#
# For each further word an output pays three times: in detail, in weight and in work.
#
# First, detail. In 2014 translation programs squeezed a sentence into one vector of fixed length. Bahdanau, Cho and Bengio suspected a
# bottleneck and used attention. But one output of attention is a vector of fixed length, too, however long the text. Must it change if the
# value of a word is wiped out?
#
# Keep the weights. If none is 0, all values but one may change freely, and that one makes up for them: 12 of our 14 numbers are free.

# %% [markdown] id="hold-turn"
# **Your turn: another context, the same output** (task {task}`same-output-other-values`). {turn}`same-output-other-values`

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
# If $v_1 \ne 0$, a query that weights the two in another ratio notices. Bahdanau's program asked anew for every word.

# %% [markdown] id="fade"
# Second, weight. How much of one word is left in a book of 100,000 tokens? The weights of a query sum to 1, so every further key takes
# something from the others. Let one score lead all others, which are equal, by 7: a factor of $e^7 \approx 1097$.

# %% id="fade-code"
for n in (100, 1000, 100_000):
    share = np.exp(7) / (np.exp(7) + n - 1)
    print(f"{n:6d} keys: the leading one gets {share:.2f} of the weight")

# %% [markdown] id="fade-lead"
# Which lead $\Delta$ would keep the share $p$ among $n$ keys? We solve for $e^\Delta$ and take logarithms. For $0 < p < 1$
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$

# %% [markdown] id="fade-read"
# For half of the weight the last term is 0. In a book a word then needs a lead of $\ln 99{,}999 \approx 11.5$ over equal others, and with
# each doubling of the text about $\ln 2 \approx 0.7$ more. Where queries and keys keep bounded norms, leads are bounded too, and cannot
# follow (Veličković et al., 2024).

# %% [markdown] id="cost"
# Third, work. Apart from the softmax, $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms, and $P V$ has $T_q d_v$ entries of $T_k$ terms. Each
# term takes 2 operations (FLOPs), a multiplication and an addition:
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \label{attention-flops}$$
#
# $Q$, $K$ and $V$ are read from memory, and $Z$ is written. If scores, softmax and output are three steps, scores and weights are each
# written and read once:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$
#
# For a single query the first divided by the second is below 2 operations for each number moved, while a fast processor could do
# hundreds. So the processor mostly waits (exercise {task}`cost-of-new-tokens`).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): Eq. 1, and the reason for the scale.
# - The wrong axis:
#   [issue 146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146) of
#   labmlai/annotated_deep_learning_paper_implementations (2022).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed-length vector.
# - P. Veličković et al. (2024), [arXiv:2410.01104](https://arxiv.org/abs/2410.01104): softmax must disperse.
