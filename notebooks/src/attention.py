# %% [markdown] id="title"
# # {lesson}`attention` Scaled dot-product attention
#
# In *The cat sat because it was tired*, attention is how "it" finds the cat: it scores how well each word fits, a softmax turns the scores
# into shares, and with these it averages what the words hand on.
#
# In 2022 a reader of annotated papers stopped at this line, for scores with the axes (batch, query, key, head):
#
# ```python
# attn = attn.softmax(dim=1)
# ```
#
# The reader had trained a model that draws pictures, with axis 1 and with axis 2, and reported pictures about equally good.
# **Is the line wrong, and how would you know?**
#
# **You need** matrix products, $e^x$, NumPy. **Time:** 58 minutes.

# %% [markdown] id="who"
# ## A number that we trust
#
# We want a number that no program made. So we say by hand how alive each word is, how much it says about what somebody does or is, and how
# much it waits for another, as "it" does.

# %% id="who-code"
import numpy as np

words = ["the", "cat", "sat", "because", "it", "was", "tired"]
lives = np.array([0.0, 2, 0, 0, 0, 0, 1])  # only "cat", and a little "tired"
tells = np.array([0.0, 0, 2, 0, 0, 1, 2])
waits = np.array([1.0, 0, 0, 0, 2, 0, 0])

X = np.stack([lives, tells, waits], axis=1)  # a word in each row
W_K = np.array([[1.0, 0, 0, 1], [0, 1, 0, -1], [0, 0, 1, 0]])
K = X @ W_K  # a key in each row
q = np.array([0.0, 2, 0, 0])  # what "cat" asks for
for word, key in zip(words, K, strict=True):
    print(f"{word:8}", *(f"{entry:2.0f}" for entry in key), f"   q . k = {q @ key:.0f}")

# %% [markdown] id="who-asks"
# A **key** is what a word shows to those who ask. The matrix $W_K$ makes it from the word: it keeps the three numbers and adds a fourth,
# the first minus the second, because "it" will look for somebody alive and not for a deed. A **query** is what a word asks for. This one
# belongs to "cat", which wants to know what the cat does or is, so it counts the second number twice and ignores the others. The dot
# product says how well a key fits. Of this layer we build the lit part:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.attention import figures

figures.machine()

# %% [markdown] id="who-scale"
# Is a dot product of 4 much? That depends on $d_k$, the number of entries of a key, since so many products are added. If all entries of $q$
# and $k$ are independent, with mean 0 and variance 1, each product $q_a k_a$ has mean 0 and variance 1, too, and variances of independent
# terms add:
#
# $$\mathrm{Var}[q \cdot k] = \sum_{a=1}^{d_k} \mathrm{Var}[q_a k_a] = d_k$$
#
# So the dot product of two such vectors is typically about $\sqrt{d_k}$ in size. We divide by this root, so that chance alone makes no
# larger scores in a wide layer than in a narrow one. Here $d_k = 4$, and **score** from now on means the divided number: 2, 1 or 0.

# %% [markdown] id="by-hand-weights"
# Next, the scores become shares of a whole. The **weight** of a word is $e$ to its score, divided by the sum of all seven powers, where
# $e^2 \approx 7.4$ and $e \approx 2.7$. This step is the **softmax**. No power is negative, and whoever leads by 1 gets $e$ times as much.
# Each word also has a **value**, numbers that it hands on, here its own three, and the output averages the values with these weights.
# **Predict** which share the four words with score 0 get together.

# %% id="by-hand-code" tags=["predicted"]
V = X  # a value in each row
powers = np.exp(K @ q / np.sqrt(4))
weights = powers / powers.sum()
figures.one_query(words, q, K, K @ q, weights, V, weights @ V)

# %% [markdown] id="by-hand-answer" tags=["answer"]
# The four words get 0.19, although they have nothing that "cat" asked for: a score of 0 is not a weight of 0, since $e^0 = 1$. The seven
# powers are 7.4 twice, 2.7 once and 1 four times, in all 21.5, and $4 / 21.5 \approx 0.19$. "Sat" and "tired" get
# $7.4 / 21.5 \approx 0.344$ each, the number that we trust. The output tells $0.344 \cdot 2 + 0.344 \cdot 2 + 0.126 \cdot 1 \approx 1.50$.

# %% [markdown] id="one-query"
# When any query $q$ meets $T_k$ keys $k_1, k_2, \ldots$ with values $v_1, v_2, \ldots$, the rows of $K$ and $V$, the steps read
#
# $$\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k}
#  \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\, v_j \key{attention-of-one-query}$$

# %% [markdown] id="all-queries"
# ## From one query to a batch
#
# The line of 2022 works on many queries of many pictures. A layer makes queries, keys and values as we made the keys: $Q = X W_Q$,
# $K = X W_K$ and $V = X W_V$, with three matrices that it learns. Let $q_i$ be row $i$ of $Q$, which has $T_q$ rows. The columns of
# $K^\top$ are the keys, so one product makes all scores:
#
# $$s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}} \label{scaled-score}$$
#
# A batch puts one more axis in front, and several heads (attentions side by side, each with its own scores) yet another. So here, unlike in
# the line of 2022, positions and features are always the last two axes. NumPy's `@` takes matrix products over the last two and carries
# the leading ones along; `a.swapaxes(-1, -2)` exchanges the last two.

# %% [markdown] id="scores-turn"
# **Your turn: scores for any batch** (task {task}`all-scores` of the exercises). {turn}`all-scores`

# %% id="scores-turn-code" tags=["your-turn"]
my_scores = ...  # your function
check("all-scores", my_scores)

# %% [markdown] id="scores-ours" tags=["ours"]
# ```python
# def my_scores(query, key):
#     return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
# ```

# %% [markdown] id="matrix"
# Row $i$ of the scores belongs to one query, and its softmax is row $i$ of a matrix $P$ of weights. Entry $c$ of output $i$ is row $i$ of
# $P$ times column $c$ of $V$. So all outputs together are $P\,V$, and with a softmax of each row this is the first equation of the
# Transformer paper:
#
# $$Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \key{attention}$$
#
# Here $Q$ is $(T_q, d_k)$, $K$ is $(T_k, d_k)$ and $V$ is $(T_k, d_v)$, so $P$ is $(T_q, T_k)$ and $Z$ is $(T_q, d_v)$.

# %% [markdown] id="batch-turn"
# **Your turn: batched attention** (task {task}`attention-of-batches` of the exercises), which may call your `my_scores`. {turn}`attention-of-batches`

# %% id="batch-turn-code" tags=["your-turn"]
my_batched_attention = ...  # your function
check("attention-of-batches", my_batched_attention)

# %% [markdown] id="batch-ours" tags=["ours"]
# ```python
# def my_batched_attention(query, key, value):
#     powers = np.exp(my_scores(query, key))
#     weights = powers / powers.sum(axis=-1, keepdims=True)
#     return weights @ value
# ```

# %% [markdown] id="spot"
# ## The line on trial
#
# Your function is called `attend` from here on. Two suspects claim to compute the same. In `one` the powers are divided by their sum over
# the queries, which are axis $-2$ here and were axis 1 in the line of 2022. In `two`, batch and positions are joined to one axis.

# %% id="spot-code"
from attn_course.reference import attention

unwritten = my_batched_attention is ...  # then the course's stands in
attend = attention if unwritten else my_batched_attention


def one(q, k, v):
    powers = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return (powers / powers.sum(axis=-2, keepdims=True)) @ v


def two(q, k, v):
    flat = [a.reshape(-1, a.shape[-1]) for a in (q, k, v)]
    return attend(*flat).reshape(len(q), -1, v.shape[-1])


# %% [markdown] id="spot-charge"
# For three axes all return arrays of the same shape, so shapes cannot judge them. But the sum of a softmax must run over the keys:
#
# $$p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1 \label{attention-weights}$$
#
# So output $i$ averages the values:
#
# $$z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j \key{output-of-a-query}$$
#
# And if $b$ stands for all leading axes together, nothing may mix two different $b$:
#
# $$Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b \label{batched-attention}$$

# %% [markdown] id="spot-predict"
# Two tests follow. In the first, for {eq}`attention-weights`, the batch is our sentence alone. All seven words ask, with a $W_Q$ made by
# hand, too. The values are the identity matrix. As $P I = P$, the output is the weights, and "cat" must give "sat" 0.344. The second, for
# {eq}`batched-attention`, takes the sentence twice, changes the keys of the second copy, and checks that the first keeps its outputs.
# **Predict** which function fails which test.

# %% id="spot-table" tags=["predicted"]
W_Q = np.array([[0.0, 1, 0, 0], [1, 0, 0, 1], [1, 0, -1, 1]])
Q = X @ W_Q  # row 1 is q


def by_hand(f):
    P = f(Q[None], K[None], np.eye(7)[None])  # a batch of one
    return abs(P[0, 1, 2] - 0.344) < 0.001  # cat, sat


def alone(f):
    before = f(np.stack([Q, Q]), np.stack([K, K]), np.stack([V, V]))
    after = f(np.stack([Q, Q]), np.stack([K, 3 * K]), np.stack([V, V]))
    return np.allclose(before[0], after[0])


for name, f in {"attend": attend, "one": one, "two": two}.items():
    print(f"{name:6}  by hand: {by_hand(f)!s:5}  alone: {alone(f)}")

# %% [markdown] id="spot-answer" tags=["answer"]
# The number by hand finds `one`, but not `two`, because in a batch of one there is nothing to join. The second test finds `two`, but not
# `one`, which keeps its mistake inside each sentence. So we need both.

# %% [markdown] id="spot-seen"
# Here are the weights of `attend` and of `one`, and beside each row its sum. In the first, "it" has found the cat, with the weight 0.948:

# %% id="spot-figure"
maps = {name: f(Q, K, np.eye(7)) for name, f in {"attend": attend, "one": one}.items()}
figures.weights_by(maps, words)

# %% [markdown] id="spot-story"
# In `one` each key shares out a weight of 1 among the queries, so nothing holds the row of a query to 1: that of "cat" collects 2.18. The
# line of 2022 is wrong, and for this mistake a single number is enough. In that line the keys are axis 2, so `dim=2` is right. "That's a
# typo and a big bug!" answered the author of the annotated papers.

# %% [markdown] id="layer"
# ## Would training have told us?
#
# Then why were the pictures about equally good? We train a small layer, on pictures of four independent, standard normal pixels. A row of
# $X$ is a pixel, then four numbers, 0 except for a 1 at its place. The matrices $W_Q$, $W_K$ and $W_V$ stand side by side in the
# 4 + 4 + 1 columns of `w`.

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
# In one job each place must return the pixel of the opposite place (first and last, second and third), and in
# the other the brightest of the four. The folded cell trains
# from a given start and returns the mean squared error on 100,000 new pictures. **Predict** at which job the wrong axis fails.

# %% id="train-run" tags=["predicted"]
jobs = {"opposite": lambda x: x.flip(1), "brightest": lambda x: x.amax(1, keepdim=True)}
for job, wanted in jobs.items():
    for axis in (-1, -2):
        errors = [error_after(start, axis, wanted) for start in range(3)]
        print(f"{job:9}  axis {axis}:", *(f"{error:.2f}" for error in errors))

# %% [markdown] id="train-answer" tags=["answer"]
# Only at the brightest, and from all three starts. Opposite pixels it can learn: over ten starts the mean error was 0.015 with the wrong
# axis and 0.006 with the right one. There each key is wanted by one query, which can get its whole weight. For the brightest, add up all
# outputs, {eq}`output-of-a-query`. As the weights of each key sum to 1 over the queries, the scores drop out:
#
# $$\sum_i z_i = \sum_j \sum_i p_{ij}\, v_j = \sum_j v_j$$
#
# If all four are to return the value of the same key, the sum must be four times that value, but it is the sum of all values whatever the
# scores.

# %% [markdown] id="train-left"
# Could longer training remove this error? Let $y$ be the brightest pixel and $\bar{z}$ the mean of the outputs. The mean of their squared
# errors is the squared error of $\bar{z}$ plus their spread about it:
#
# $$\frac{1}{4} \sum_i (z_i - y)^2 = (\bar{z} - y)^2 + \frac{1}{4} \sum_i (z_i - \bar{z})^2 \ge (\bar{z} - y)^2$$
#
# Each value is a multiple of its pixel plus a constant of its place. So $\bar{z}$, which is the mean of the values here, is a multiple of
# the mean pixel plus a constant. The best such line, found by least squares, has the error:

# %% id="train-left-code"
four = np.random.default_rng(0).normal(size=(100_000, 4))
mean, brightest = four.mean(axis=1), four.max(axis=1)
line = np.polyfit(mean, brightest, 1)
print(f"{np.mean((np.polyval(line, mean) - brightest) ** 2):.2f}")

# %% [markdown] id="train-story"
# About this much was left, and with the wrong axis no training of this layer gets below it. Perhaps the pictures of 2022 were equally good
# because their pixels wanted different keys; we have not trained that model.

# %% [markdown] id="real"
# ## Does your function run a language model?
#
# SmolLM2-135M has 30 layers with nine heads each. `language_model()` loads it and makes queries, keys and values with the matrices that it
# has learned; each layer then calls the function that we name. Only the newest token, a word or part of one, asks: one query of 64 numbers
# in each head, with heads in the place of the batch, so queries have the shape (9, 1, 64). Keys and values, (9, $T_k$, 64), are kept from
# all tokens so far. The scores stay below 40 in size.

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
# Your four lines (or the course's) wrote this. If the model is not on your machine, the text is a stored one, and your lines were tried on
# one stored step only. And with `one`? Try our sentence first, with a single query, as in the model. **Predict** the seven weights that
# `one` gives.

# %% id="real-break" tags=["predicted"]
it = Q[4:5]  # a single query, that of "it"
print("weights by one:  ", one(it, K, np.eye(7))[0])
print("weights as wanted:", attend(it, K, np.eye(7))[0].round(3))

# %% [markdown] id="real-answer" tags=["answer"]
# All are 1: a column of the scores has a single entry here, so each power of $e$ is divided by itself. The output is the sum of all values,
# whatever the query.

# %% id="real-broken" tags=["live"]
if model.is_here:
    model.attend = one
    print(model.write(start, tokens=5))

# %% [markdown] id="real-broken-notice"
# On our machine `one` wrote ",, the the (". On opposite pixels three trainings hid the wrong axis; this model, trained with the right one,
# shows it at once.

# %% [markdown] id="own"
# ## Try anybody's attention
#
# But can we trust our tests? A third suspect averages the values over the batch before it attends. **Predict** what `by_hand` and `alone`
# say of it.


# %% id="own-third" tags=["predicted"]
def three(q, k, v):
    return attend(q, k, np.broadcast_to(v.mean(axis=0), v.shape))


print(f"three  by hand: {by_hand(three)}  alone: {alone(three)}")

# %% [markdown] id="own-answer" tags=["answer"]
# Both say True, although each sentence now gets the values of all. In a batch of one the mean is the value itself, and `alone` gives the
# second copy the same values.

# %% [markdown] id="own-try"
# Go back to `alone`, change one argument of the second call so that it catches `three`, and run the cells from there again. In our version
# below, which needs only PyTorch, the second copy gets other keys and values. Add the attention of your project, or what a chatbot gives
# you, as a function of queries, keys and values (batch, position, feature). It may pass and still have other mistakes.

# %% id="own-code"
import torch

pytorch = torch.nn.functional.scaled_dot_product_attention
suspects = {  # add any other here
    "PyTorch": pytorch,
    "three": lambda q, k, v: pytorch(q, k, v.mean(0).expand_as(v)),
}
k = torch.tensor([[0.0, 2, 0, 1], [1, 1, 0, 0], [0, 0, 3, 0]])  # three keys, d_k = 4
q = torch.tensor([[0.0, 2, 0, 0], [1, 0, 1, 0]])  # the first has the scores 2, 1, 0
number = 0.665  # by hand: 7.39 / (7.39 + 2.72 + 1), its weight for the first key
twice, same, other = (torch.stack(pair) for pair in ([q, q], [k, k], [k, 3 * k]))
for name, f in suspects.items():
    found = f(q[None], k[None], torch.eye(3)[None])[0, 0, 0].item()
    kept = torch.allclose(f(twice, same, same)[0], f(twice, other, other)[0])
    print(f"{name:7}  by hand: {abs(found - number) < 0.001}  alone: {kept}")

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
# - Attention is scores, a softmax of each row and an average of the values.
# - A number by hand and a second sentence, with other keys and values, find the three mistakes shown here.
# - The softmax runs over the keys. With a softmax over the queries a layer may still learn a job where no two queries want the same key.
#
# Is the line wrong? Yes, and one number made by hand says so, while training may not. But how did the matrices of the language model
# learn? After the [exercises](../work/ex_{lesson}`attention`_attention.ipynb), lesson {lesson}`gradients` runs the machine backwards to
# find out.

# %% [markdown] id="near"
# ## Deeper: can a query find every key, and learn to?
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
# Let the values be $1$, $-1$ and $0.4$. The left picture shows the output for each query of a plane: it has no region for $k_1$. On the
# right all keys are stretched or shrunk to the length 5.

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
# Can training lead a query to another key? A loss says which way to go only through the slope of the output. Keep keys and values, and move
# $q$. Then score $j$ has the slope $k_j / \sqrt{d_k}$. By {eq}`weighted-mean-derivative`, the slope of a weighted mean, that of the output
# is the **covariance** of the values and these slopes under the weights. With vectors as columns it reads
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
# The slope cannot be very large either. A covariance is at most the product of two standard deviations, and each of these at most half of
# the diameter, which is the largest distance between two rows. So its spectral norm is at most $\mathrm{diam}(V)\,\mathrm{diam}(K) / (4 \sqrt{d_k})$. In
# self-attention, where the input moves $K$ and $V$ too, there need be no bound for all inputs (Kim et al., 2021).

# %% [markdown] id="fade"
# ## Deeper: is the right line enough for a book?
#
# Our sentence has seven words, and a book 100,000 tokens. The weights of a query sum to 1, so every further key takes something from the
# others. Let one score lead all others, which are equal, by 7: a factor of $e^7 \approx 1097$. Beside 99 others this key gets
# $1097 / (1097 + 99) \approx 0.92$ of the weight, beside 99,999 about a hundredth.

# %% [markdown] id="fade-read"
# Which lead $\Delta$ would keep the share $p$ among $n$ keys? We solve for $e^\Delta$, which is $(n - 1)\, p / (1 - p)$, and take
# logarithms. For $0 < p < 1$
#
# $$\frac{e^{\Delta}}{e^{\Delta} + n - 1} = p \quad \Longleftrightarrow \quad
#  \Delta = \ln (n - 1) + \ln \frac{p}{1 - p} \label{margin-grows-with-context}$$
#
# For half of the weight the last term is 0. In a book a word then needs a lead of $\ln 99{,}999 \approx 11.5$ over equal others, and with
# each doubling of the text about $\ln 2 \approx 0.7$ more. Where queries and keys keep bounded norms, leads are bounded too, and cannot
# follow (Veličković et al., 2024).

# %% [markdown] id="cost"
# And the price, apart from the softmax? $Q K^\top$ has $T_q T_k$ entries of $d_k$ terms and $P V$ has $T_q d_v$ of $T_k$ terms, each with
# 2 operations (FLOPs), a multiplication and an addition:
#
# $$\text{FLOPs} = 2\, T_q T_k\, (d_k + d_v) \label{attention-flops}$$

# %% [markdown] id="hold"
# ## Deeper: what does one output hold, and what travels for it?
#
# In 2014 translation programs squeezed a sentence into one vector of fixed length. Bahdanau, Cho and Bengio suspected a bottleneck and
# used attention, but its output is such a vector, too. Must it change if a word goes?
#
# Keep the weights. If none is 0, all values but one may change freely, and that one can make up for it, so 18 of our 21 numbers are free.

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

# %% [markdown] id="travel"
# For so little, much travels. $Q$, $K$ and $V$ are read, and $Z$ is written. If scores, softmax and output are three steps, scores and
# weights are each written and read once:
#
# $$\text{numbers moved} = (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \label{attention-traffic}$$
#
# For a single query {eq}`attention-flops` divided by this is below 2 operations for each number moved, while a fast processor could do
# hundreds, so it mostly waits (exercise {task}`cost-of-new-tokens`).

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
