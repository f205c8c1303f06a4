# %% [markdown] id="title"
# # {lesson}`additive` Additive attention: a small network as the score
#
# Attention did not begin with a dot product. In 2014 a small network read each pair of a query and a key, and returned its score. Three years
# later the dot product took its place, and it has stayed. **What can such a network do that a dot product cannot, and why did the dot product
# win all the same?**
#
# **You need** lessons {lesson}`start`, {lesson}`softmax`, {lesson}`scaling`, {lesson}`attention` and {lesson}`self_attention`. **Time:** 60
# minutes, without *Deeper* sections and the [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% [markdown] id="hook"
# ## Two words that no query finds
#
# We take the keys of the first head of lesson {lesson}`start`, for `the cat sat because it was tired`, and 100,000 random queries. What is
# the largest weight that each word ever gets?

# %% id="hook-code"
import numpy as np

from attn_course.reference import softmax
from attn_course.sentence import KEY, TOKENS

queries = 20 * np.random.default_rng(0).normal(size=(100_000, 4))  # long, so sharp
weights = softmax(queries @ KEY[0].T)
for token, key, largest in zip(TOKENS, KEY[0], weights.max(axis=0), strict=True):
    print(f"{token:8} key {key.astype(int)}  largest weight {largest:.3f}")

# %% [markdown] id="hook-notice"
# Five words can get all the weight. "The" and "was" never get more than a third. In the machine, the lit part makes these scores:

# %% id="machine"
from attn_course.lessons.additive import figures

figures.machine()

# %% [markdown] id="midpoint"
# Would other queries do better? The key of "was" lies halfway between those of "because" and "sat". (Between which two lies "the"?) A dot
# product is linear in the key. So if "because" and "sat" get the scores $a$ and $b$, "was" gets $(a + b) / 2$, whatever the query. Its power of
# $e$ is the geometric mean of theirs, and that is at most the ordinary mean:
#
# $$e^{(a + b) / 2} = \sqrt{e^a e^b} \le \tfrac{1}{2} (e^a + e^b)$$
#
# So the two others together have at least twice the weight of "was". The three share at most 1, so "was" has at most $\tfrac{1}{3}$.

# %% [markdown] id="must-bend"
# Neither a scale nor training helps, because any $W_K$ leaves the key halfway. Every key that is a mixture of other keys is held down
# like this (section {section}`softmax/sure`). To find "was", the score must not be linear in the key. It has to *bend*.

# %% [markdown] id="tutorial"
# ## A score that bends
#
# The function $\tanh$ bends: it is steep at 0 and flat far away, near $-1$ and $1$. "Use $\tanh(q + k_i)$ as the weight of value $i$", says
# a tutorial. But if $q$ and $k_i$ have four entries, so has this, and a weight is one number. Nor can we add them if one has four entries and the
# other two.

# %% [markdown] id="score"
# Two repairs help. Matrices bring both to one length $d_h$, and a vector $v$ makes one number of the $d_h$:
#
# $$e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr)
#  = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i^\top W_Q)_r + (k_j^\top W_K)_r \bigr) \key{additive-score}$$
#
# Each term of the sum is a **unit**. Most layers also add a learned **bias** $b_r$ inside $\tanh$.

# %% id="score-alive"
from attn_course import alive, check, verify_lesson

alive("additive-score")

# %% [markdown] id="ridge"
# Two units are enough to find "was". The second feature of its key is 1, and those of all others are 0 or 2. Let the query say which number
# it wants there. With $x$ for a key's feature minus that number, take the score $e = 4 \tanh(2x + 1) - 4 \tanh(2x - 1)$:
#
# | $x$ | $\tanh(2x + 1)$ | $\tanh(2x - 1)$ | $e$ |
# |---|---|---|---|
# | $-1$ | $-0.76$ | $-1.00$ | 0.9 |
# | 0 | 0.76 | $-0.76$ | 6.1 |
# | 1 | 1.00 | 0.76 | 0.9 |
#
# So the score is a *ridge* that stands where the key has what the query wants. The biases are $(1, -1)$, and $v = (4, -4)$.

# %% id="ridge-code"
feature = KEY[0][:, 1]
for wanted in (0, 1, 2):
    units = np.tanh(2 * (feature - wanted)[:, None] + np.array([1, -1]))  # (7, 2)
    found = zip(TOKENS, softmax(units @ [4.0, -4.0]), strict=True)
    print(f"wanted {wanted}:", *(f"{token} {weight:.2f} " for token, weight in found))

# %% [markdown] id="card-question"
# "Was" has 0.97 of the weight if 1 is wanted. The card has four keys that are numbers, $-2$, $-0.5$, $1$ and $2.5$, and two such units
# beside the product $q\,k$. Put the query on key 3. Which key wins on either side? Is there any query for which the product prefers
# key 2?

# %% id="explorable"
figures.additive_explorable()

# %% [markdown] id="score-turn"
# No query lets the product prefer key 2 or key 3, because both lie between others.
#
# **Your turn: a network as the score.** {turn}`scores-by-network`

# %% id="score-turn-code" tags=["your-turn"]
my_scores = ...  # your function
check("scores-by-network", my_scores)

# %% [markdown] id="score-ours" tags=["ours"]
# ```python
# def my_scores(query, key, w_query, w_key, bias, w_score):
#     return np.tanh(query @ w_query + key @ w_key + bias) @ w_score
# ```

# %% [markdown] id="sum"
# ### Spot the mistake: two bends
#
# What if nothing bends? Then a score is a number $a$ of the query plus a number $b_j$ of the key. The factor $e^a$ is common to all keys and
# cancels:
#
# $$\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}} \label{plain-sum-ignores-query}$$
#
# So the weights ignore the query. Now two programs bend. One takes `np.tanh(q @ w_query + k @ w_key) @ v`, the other
# `(np.tanh(q @ w_query) + np.tanh(k @ w_key)) @ v`. Two different queries ask the same five keys. **Predict** for both programs whether their
# weights differ.

# %% id="sum-code" tags=["predicted"]
rng = np.random.default_rng(6)
q, k = rng.normal(size=(2, 1, 4)), rng.normal(size=(5, 2))  # two queries, five keys
w_query, w_key, v = rng.normal(size=(4, 7)), rng.normal(size=(2, 7)), rng.normal(size=7)
first = np.tanh(q @ w_query + k @ w_key) @ v
second = (np.tanh(q @ w_query) + np.tanh(k @ w_key)) @ v
for name, scores in (("first", first), ("second", second)):
    apart = np.ptp(softmax(scores), axis=0).max()
    print(f"{name} program: weights differ by up to {apart:.2f}")

# %% [markdown] id="sum-answer" tags=["answer"]
# They differ in the first program only. The second bends each part by itself and then adds, so its score is again a query's number plus a
# key's number, and {eq}`plain-sum-ignores-query` holds.

# %% [markdown] id="sum-notice"
# The second program runs and trains without an error, for it can still learn which keys matter to *all* queries. Query and key must meet
# inside the bend.

# %% [markdown] id="first"
# ## Why Bahdanau had a network
#
# In 2014 Dzmitry Bahdanau was an intern in Montreal, where translators were two recurrent networks: one read the sentence into
# a single vector, and the other wrote the translation from it. He distrusted that vector. His first plan, two cursors that move through both
# sentences, was too hard for the five weeks that were left. So he let the writer look back at all words of the source at every step. He
# remembered how his own eyes went back and forth between two texts when he learned English at school.

# %% [markdown] id="first-network"
# How should the writer's state be compared with a word? The state had 1,000 numbers, and the vector $h_j$ of word $j$, its *annotation*,
# had 2,000, so they have no dot product. He let a network learn to compare them, together with all the rest (Bahdanau, Cho and Bengio, 2014). It
# reads the two side by side, since the sum inside its $\tanh$ is one product:
#
# $$[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K \label{concatenation-adds-projections}$$
#
# The state before word $i$, $s_{i-1}$, asks, and the annotations are both the keys and the values:
#
# $$\begin{gathered}
# c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{e^{e_{ij}}}{\sum_{l=1}^{T_k} e^{e_{il}}}, \\
# e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr) \end{gathered} \key{additive-attention}$$

# %% id="aligner-figure"
figures.aligner()

# %% [markdown] id="bounds"
# ## A score with a ceiling
#
# In one respect this network can do *less*. A dot product grows with the length of its vectors. But $\tanh$ stays between $-1$ and $1$, so
# whatever the vectors are,
#
# $$|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1 \label{additive-score-bound}$$
#
# Two scores differ by at most $2 \|v\|_1$. In the softmax, divide all terms by that of the best key. It becomes 1, and each of the $n - 1$
# others is at least $e^{-2 \|v\|_1}$:
#
# $$\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}} \key{additive-weight-bound}$$
#
# No key wins merely because it is long, but sharp weights need a large $v$. There are 64 keys. **Predict** roughly the largest possible weight for $\|v\|_1 = 1$ and for $\|v\|_1 = 5$. ($e^2 \approx 7.4$ and $e^{10} \approx 22{,}000$.)

# %% id="bounds-code" tags=["predicted"]
for size in (1, 5):
    print(f"|v|_1 = {size}: at most {1 / (1 + 63 * np.exp(-2 * size)):.3f}")

# %% [markdown] id="bounds-answer" tags=["answer"]
# It is 0.105 for $\|v\|_1 = 1$, because the 63 others keep $63 / 7.4 \approx 8.5$ against 1. For 5 it is 0.997, because they keep only
# $63 / 22{,}000 \approx 0.003$.

# %% [markdown] id="cost"
# ## What a network for each pair costs
#
# Count 2 for a multiplication with its addition, and 1 for a sum or a $\tanh$. Queries and keys are projected once each. Then every pair and
# unit takes a sum, a $\tanh$, and a multiplication by $v_r$ with its addition:
#
# $$F_{\mathrm{add}} = 2\, d_h\, (T_q\, d_q + T_k\, d_k) + 4\, T_q\, T_k\, d_h \label{additive-score-flops}$$
#
# A dot product of the same projections has $2\, T_q T_k d_h$ in the last place, half as much. So it was not the
# operations that decided.

# %% [markdown] id="memory"
# But a matrix product adds up as it goes, while here $\tanh$ stands between the sum and $v$. Written with arrays, there is a number for
# every pair and unit before $v$ adds them up. Let $M$ count the numbers in the largest array made for the pairs:
#
# $$M_{\mathrm{add}} = T_q\, T_k\, d_h = d_h\, M_{\mathrm{dot}} \key{additive-memory-overhead}$$
#
# Training keeps what the backward pass needs, and PyTorch can tell us what. **Predict** how many numbers for each pair its largest array
# holds, with $d_h = 64$: for additive attention, and for dot products.

# %% id="memory-code" tags=["predicted"]
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.ones(128, 64, requires_grad=True)  # 128 queries and keys, projected
ways = {
    "additive": lambda: torch.tanh(x[:, None] + x) @ torch.ones(64),
    "dot product": lambda: x @ x.T,
}
kept = []  # how many numbers each kept array has
for name, scores in ways.items():
    kept.clear()
    with saved_tensors_hooks(lambda array: kept.append(array.numel()), lambda _: None):
        scores().softmax(dim=-1)
    print(f"{name}: {max(kept) / 128**2:.0f} for each pair")

# %% [markdown] id="memory-answer" tags=["answer"]
# It holds 64 for each pair of additive scores, the units, and one for each pair of dot products, the weight. This is
# {eq}`additive-memory-overhead`.

# %% [markdown] id="memory-notice"
# Bahdanau had 1,000 units. For two sentences of 50 words that is 10 MB. But for one head with 8,192 tokens and 64 units it is 17 GB, where
# the scores take 0.27 GB. (A loop over units needs less, but the backward pass has to compute them again.) And time need not follow the
# count of operations, because hardware is built for matrix products. Measure yours:

# %% id="time-live" tags=["live"]
from time import perf_counter


def milliseconds(call):
    start = perf_counter()
    call()
    return 1000 * (perf_counter() - start)


with torch.no_grad():
    x = torch.ones(1024, 64)
    for name, scores in ways.items():
        print(f"{name}: {min(milliseconds(scores) for _ in range(5)):.1f} ms")

# %% [markdown] id="bowl"
# ## Bend the key, not the pair
#
# Must a network look at every pair? The proof in section {section}`hook` needs a key that lies halfway between two others. Let us move it.
# The second feature $f$ of a key is 0, 1 or 2. We add a feature $-\tfrac{1}{2} f^2$:
#
# | | key | score for the query $(1, 1)$ |
# |---|---|---|
# | "the", "cat", "because", "it" | $(0, 0)$ | $0$ |
# | "was" | $(1, -\tfrac{1}{2})$ | $\tfrac{1}{2}$ |
# | "sat", "tired" | $(2, -2)$ | $0$ |
#
# A plain dot product puts "was" ahead. Ten times this query gives it the weight $e^5 / (e^5 + 6) \approx 0.96$. The keys now lie on a
# parabola, and $(1, -\tfrac{1}{2})$ is not halfway between the others.

# %% [markdown] id="bowl-general"
# In every dimension minus half the squared length does the same. Expand $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$:
#
# $$q \cdot k - \tfrac{1}{2} \|k\|^2 = \tfrac{1}{2} \|q\|^2 - \tfrac{1}{2} \|q - k\|^2$$
#
# The left side is the dot product of $(q, 1)$ and $(k, -\tfrac{1}{2} \|k\|^2)$. On the right, $\tfrac{1}{2} \|q\|^2$ is the same for all
# keys and cancels. So *the nearest key wins*, and if no two keys are equal, each is the nearest to some query. The bend is now made once for
# each *key*. That is $T_k$ numbers, where the network had $T_q T_k d_h$.
#
# In a language model nobody adds this feature by hand. But between two layers of attention stands a network that bends every *token*, once
# (lesson {lesson}`transformer`).

# %% [markdown] id="bowl-turn"
# **Your turn: the nearest key.** {turn}`nearest-key-by-product`

# %% id="bowl-turn-code" tags=["your-turn"]
my_nearest = ...  # your function
check("nearest-key-by-product", my_nearest)

# %% [markdown] id="bowl-ours" tags=["ours"]
# ```python
# def my_nearest(query, key):
#     return softmax(query @ key.T - (key**2).sum(axis=-1) / 2)
# ```

# %% [markdown] id="won"
# ## Why the dot product won
#
# One doubt remained. With few features both scores did about equally well, but with many the network was ahead of the product. Vaswani et al.
# (2017, § 3.2.1) suspected the size of the products, whose variance is $d_k$ at the start, {eq}`variance-of-a-score`, and divided them by
# $\sqrt{d_k}$. Additive scores have no need of it.

# %% [markdown] id="won-predict"
# We measure it on a dictionary of 32 words in two languages, each word a vector that is learned too. Sixteen words are keys, the query is
# the translation of one of them, and only the output is corrected. Three scores, each at three widths $d_h$, have 450 steps to learn to find
# the right key nine times out of ten. A bar shows how many steps it took. **Predict** which of the nine bars are tall.

# %% id="won-figure" tags=["predicted"]
from attn_course.lessons.additive.experiments import KINDS, LOOKUPS, WIDTHS

record = LOOKUPS.load()
steps = {}
for kind in KINDS:
    runs = [record.values(kind, str(width)) for width in WIDTHS]
    steps[kind] = np.median(runs, axis=1)
figures.steps_until_learnt(WIDTHS, steps)

# %% [markdown] id="won-answer" tags=["answer"]
# The bars of the unscaled product are tall. It is slowest already at $d_h = 8$, and at 64 and 256 it does not learn within the budget. With the scale, the
# product needs between half and twice the steps of the additive score, at every width and in each of three runs.

# %% [markdown] id="real-question"
# In large translators the network's lead was small even without the scale (Britz et al., 2017). But what about keys that no query finds?
# Our sentence has four features. SmolLM2, the model of lesson {lesson}`start`, has 90 key heads of 64 features. From each of four texts we
# take 256 tokens, and search, for every key of every head, a query with which it has the largest score. As a control we also search
# in only the 16, and the 4, directions in which the keys of the head vary most.
#
# **Predict** for how many of 256 keys we find a query, with 64 features and with 4. (A mixture must agree with the key in every feature.)

# %% id="real-code" tags=["predicted"]
from attn_course.lessons.additive.experiments_smollm2 import SMOLLM2

record = SMOLLM2.load()
for width in (64, 16, 4):
    found = record.values(str(width))  # of the fewest and the most, in each text
    print(f"{width:2} features: {found.min()} to {found.max()} of 256 keys in a head")

# %% [markdown] id="real-answer" tags=["answer"]
# With 64 features we find a query for each of the 92,160 keys. In 16 directions we miss a few, and in 4 at least 122 of 256. (The search
# ends after 1,000 steps, so there may be more to find.) In our sentence 2 of 7 keys were out of reach; of the real ones, none.

# %% [markdown] id="real-notice"
# That a query exists does not say that the head ever makes it. But no key of these is hidden from a dot product.

# %% [markdown] id="own"
# ## Three scores of your own
#
# Is all this learned, or only possible? There are sixteen random keys with three features, and the query is one of them, turned by a rotation.
# Which one? In plain PyTorch we train the network, the product, and the product with a fourth feature: the sum of the key's features, which
# does not bend, and the sum of their squares, which does.

# %% id="own-lookups"
import numpy as np
import torch

rng = np.random.default_rng(0)


def draw(*shape):
    return torch.tensor(rng.normal(size=shape), dtype=torch.float32)


def lookups(count, turn, fourth):  # queries, keys, and which key is right
    key, right = draw(count, 16, 3), torch.tensor(rng.integers(16, size=count))
    query = key[torch.arange(count), right] @ turn
    if fourth:  # for the query it is 1
        query = torch.cat([query, torch.ones(count, 1)], dim=-1)
        key = torch.cat([key, fourth(key).sum(dim=-1, keepdim=True)], dim=-1)
    return query, key, right


# %% id="own-scores"
def network(q, k, b, v):  # projected: (count, 64) and (count, 16, 64)
    return torch.tanh(q[:, None] + k + b) @ v


def product(q, k, b, v):  # needs neither b nor v
    return (k @ q[..., None])[..., 0] / 8  # the root of 64


# %% id="own-learn"
def learn(score, fourth=None, bias=True):  # the share that is right at the end
    d, turn = 4 if fourth else 3, torch.linalg.qr(draw(3, 3)).Q
    w_q, w_k = draw(d, 64) / d**0.5, draw(d, 64) / d**0.5
    v, b = draw(64) / 8, bias * draw(64)
    parts = (w_q, w_k, v, b) if bias else (w_q, w_k, v)
    optimizer = torch.optim.Adam([part.requires_grad_() for part in parts], lr=0.01)
    for count in [32] * 300 + [4000]:  # the last ones are counted
        query, key, right = lookups(count, turn, fourth)
        scores = score(query @ w_q, key @ w_k, b, v)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, right).backward()
        optimizer.step()
    return float((scores.argmax(dim=-1) == right).float().mean())


# %% id="own-call"
print(f"a network for each pair:          {learn(network):.2f}")
print(f"a product:                        {learn(product):.2f}")
print(f"with the sum as fourth feature:   {learn(product, lambda key: key):.2f}")
print(f"with squares as fourth feature:   {learn(product, lambda key: key**2):.2f}")

# %% [markdown] id="own-notice"
# The product is right in four cases of ten, and a feature that does not bend does not help. With one bent feature of each key, it learns
# what the network learns.

# %% id="verify-lesson"
verify_lesson("additive")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | score, {eq}`additive-score` | {key}`additive-score` |
# | its first use, {eq}`additive-attention` | {key}`additive-attention` |
# | ceiling, {eq}`additive-weight-bound` | {key}`additive-weight-bound` |
# | numbers for the pairs, {eq}`additive-memory-overhead` | {key}`additive-memory-overhead` |

# %% [markdown] id="summary"
# ## Summary
#
# - Query and key must meet inside the bend, or the weights ignore the query.
# - Additive scores stay within $\|v\|_1$, and take $d_h$ numbers for every pair.
# - They led wide dot products only while these had no scale.
#
# What can the network do that a dot product cannot? It prefers a key that is a mixture of others. Why did the dot product win all the same? The
# bend need not be made for every pair. Made once for each token, it moves keys to where a product finds them, and for the pairs
# a matrix product is enough. Next, lesson {lesson}`masking` hides keys from queries; first the
# [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% [markdown] id="length"
# ## Deeper: what was the first attention for?
#
# The vector that Bahdanau distrusted had to hold a whole sentence. Two small translators have a dictionary of 24 words and write each sentence
# backwards. One has his aligner, the other a fixed vector of 48 numbers, and both learn from sentences of 2 to 8 words. **Predict** how the share
# of right words falls with the length, up to 16 words.

# %% id="length-code" tags=["predicted"]
from attn_course.lessons.additive.experiments_translation import TRANSLATIONS

record = TRANSLATIONS.load()
print("words       ", *(f"{length:4}" for length in record.values("lengths")[0]))
for name in ("aligner", "fixed vector"):
    print(f"{name:12}", *(f"{share:.2f}" for share in record.values(name).mean(axis=0)))

# %% [markdown] id="length-answer" tags=["answer"]
# The fixed vector loses words early: it has 0.90 right at 4 words, and less than half at 8. The aligner has nearly all up to 8 words, as
# far as it was trained. Beyond that it falls as well, for reader and writer are still recurrent and have never met so late a word.

# %% [markdown] id="odd"
# ## Deeper: why the units need a bias
#
# Without its biases the ridge of section {section}`tutorial` is $4 \tanh(2x) - 4 \tanh(2x) = 0$. Would more units help? As
# $\tanh(-x) = -\tanh x$, without a bias
#
# $$e(-q, -k) = -e(q, k) \label{additive-score-is-odd}$$
#
# In section {section}`own` query and keys are as likely as the same ones with all signs turned. If the right key has the largest score in one
# case, it has the smallest in the other. So at most half of the answers can be right, with any number of units. Training does not even reach that:

# %% id="odd-code"
print(f"without a bias: {learn(network, bias=False):.2f}, by guessing {1 / 16:.2f}")

# %% [markdown] id="small"
# ## Deeper: vectors that are too small, and too large
#
# How much does a key change the way in which the query acts? By the chain rule, with $t$ for the units,
#
# $$\frac{\partial e}{\partial q} = W_Q\, \bigl( v \odot (1 - t^2) \bigr), \qquad
#  t = \tanh\bigl(W_Q^\top q + W_K^\top k\bigr) \label{additive-derivative-by-query}$$
#
# and once more, by the key,
#
# $$\frac{\partial^2 e}{\partial q_a\, \partial k_b} = -2 \sum_{r=1}^{d_h} v_r\, t_r\, (1 - t_r^2)\,
#  (W_Q)_{ar}\, (W_K)_{br} \label{additive-query-key-interaction}$$
#
# For a dot product this is 1 if $a = b$, everywhere. Here it vanishes where units are flat, $t_r = \pm 1$, and also where they are 0. We make
# all vectors of section {section}`tutorial` a hundred times smaller:

# %% id="small-code"
for factor in (1.0, 0.01):
    scores = np.tanh(factor * (q @ w_query + k @ w_key)) @ v
    apart = np.ptp(softmax(scores), axis=0).max()
    print(f"vectors times {factor}: weights differ by up to {apart:.6f}")

# %% [markdown] id="small-answer"
# The two queries have the same weights up to about a hundred-thousandth. Near 0 the graph of $\tanh$ is nearly a straight line, so the score
# is a query's number plus a key's number, and {eq}`plain-sum-ignores-query` holds. A bias helps, since it moves the units away from 0.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): § 3.1 and appendix A.1.2. How it came
#   about, Bahdanau told in a [letter](https://frontiermag.net/the-origin-story-of-transformers) that A. Karpathy published in 2024.
# - K. Cho et al. (2014), [arXiv:1409.1259](https://arxiv.org/abs/1409.1259): the fixed vector fails as sentences grow.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.1, additive against dot product.
# - D. Britz et al. (2017), [arXiv:1703.03906](https://arxiv.org/abs/1703.03906): additive ahead of the unscaled product, by little.
# - M.-T. Luong, H. Pham and C. Manning (2015), [arXiv:1508.04025](https://arxiv.org/abs/1508.04025): multiplicative scores.
