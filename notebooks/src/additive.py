# %% [markdown] id="title"
# # {lesson}`additive` Additive attention: a small network as the score
#
# Attention did not begin with a dot product. In 2014 a small network read each pair of a query and a key and returned its score, until three
# years later the dot product took its place, where it has stayed. **What can such a network do that a dot product cannot, and why did the
# dot product win all the same?**
#
# **You need** lessons {lesson}`start`, {lesson}`softmax`, {lesson}`scaling`, {lesson}`attention` and {lesson}`self_attention`. **Time:** 60
# minutes, without *Deeper* sections and the [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% [markdown] id="hook"
# ## Two words that no query finds
#
# Here are the keys of the first head of lesson {lesson}`start`:
#
# | the | cat | sat | because | it | was | tired |
# |---|---|---|---|---|---|---|
# | $(0,0,1,0)$ | $(2,0,0,2)$ | $(0,2,0,-2)$ | $(0,0,0,0)$ | $(0,0,2,0)$ | $(0,1,0,-1)$ | $(1,2,0,-1)$ |
#
# We ask them 100,000 random queries. **Predict** which words never get more than half of the weight.

# %% id="hook-code" tags=["predicted"]
import numpy as np

from attn_course.reference import softmax
from attn_course.sentence import KEY, TOKENS

queries = 20 * np.random.default_rng(0).normal(size=(100_000, 4))  # long, so sharp
weights = softmax(queries @ KEY[0].T)
for token, largest in zip(TOKENS, weights.max(axis=0), strict=True):
    print(f"{token:8} largest weight {largest:.3f}")

# %% [markdown] id="hook-answer" tags=["answer"]
# "The" and "was" never get more than a third. Each of the other five can get nearly all of the weight, even "because", whose key is zero:
# it wins where the query gives all others a negative score.

# %% [markdown] id="hook-notice"
# In the machine, the lit part makes the scores:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.additive import figures

figures.machine()

# %% [markdown] id="midpoint"
# What is wrong with "the" and "was"? The key of "was" lies halfway between those of "because" and "sat", and a dot product is linear in the
# key: if these two get the scores $s$ and $t$, "was" gets $(s + t) / 2$, whatever the query. So $e$ to its score is a geometric mean, and
# that is at most the ordinary mean:
#
# $$e^{(s + t) / 2} = \sqrt{e^s e^t} \le \tfrac{1}{2} (e^s + e^t)$$
#
# The two others together have at least twice the weight of "was". As the three share at most 1, "was" has at most $\tfrac{1}{3}$.

# %% [markdown] id="must-bend"
# No scale and no further matrix on these keys would help, because "was" stays halfway. (Another $W_K$ could, for the rows of $X$ are not
# halfway.) In the same way every average of other keys, whatever their shares, gets at most half, since its score is never above all of theirs.
# To prefer such a key, a score must not be linear in the key. It has to *bend*.

# %% [markdown] id="tutorial"
# ## A score that bends
#
# The function $\tanh$ bends: it is steep at 0 and flat far away, near $-1$ and $1$. But $\tanh(q + k_j)$ cannot be the weight of value $j$,
# for weights are positive and sum to 1. A softmax must follow, and it needs one number for each key, whereas $\tanh(q + k_j)$ has as many
# entries as $q$ and $k_j$, which must be equally long.

# %% [markdown] id="score"
# So matrices bring both to one length $d_h$, and a vector $v$ makes one number of the $d_h$:
#
# $$e_{ij} = v^\top \tanh\bigl(W_Q^\top q_i + W_K^\top k_j\bigr)
#  = \sum_{r=1}^{d_h} v_r \tanh\bigl( (q_i^\top W_Q)_r + (k_j^\top W_K)_r \bigr) \key{additive-score}$$
#
# Each term of the sum is a **unit**, and most layers also add a learned **bias** inside $\tanh$.

# %% [markdown] id="ridge"
# Two units are enough to find "was". The second feature of its key is 1, and that of every other key is 0 or 2; let the query say which
# number it wants there. With $x$ for the feature minus that number, the score is $4 \tanh(2x + 1) - 4 \tanh(2x - 1)$. (For $2x$, $W_K$
# multiplies the feature by 2, and $W_Q$ the number by $-2$.)
#
# | $x$ | $\tanh(2x + 1)$ | $\tanh(2x - 1)$ | score |
# |---|---|---|---|
# | $-1$ | $-0.76$ | $-1.00$ | 0.9 |
# | 0 | 0.76 | $-0.76$ | 6.1 |
# | 1 | 1.00 | 0.76 | 0.9 |
#
# It is a *ridge*, which stands where the key has what the query wants. The biases are $(1, -1)$, and $v = (4, -4)$.

# %% id="ridge-code"
feature = KEY[0][:, 1]
for wanted in (0, 1, 2):
    units = np.tanh(2 * (feature - wanted)[:, None] + np.array([1, -1]))  # (7, 2)
    found = zip(TOKENS, softmax(units @ [4.0, -4.0]), strict=True)
    print(f"wanted {wanted}:", *(f"{token} {weight:.2f} " for token, weight in found))

# %% [markdown] id="card-question"
# If 1 is wanted, "was" has 0.97 of the weight. The figure below has four keys, each a single number: $-2$, $-0.5$, $1$ and $2.5$. Put
# the query on the third. Which key wins with two such units, and which with the product $q\,k$? Is there any query for which the product
# prefers the second key?

# %% id="explorable"
figures.additive_explorable()

# %% [markdown] id="card-answer"
# <details><summary>What you should see</summary>
#
# With the units the third key wins, with the product the fourth. No query lets the product prefer the second or the third, because both lie
# between others.
#
# </details>

# %% [markdown] id="score-turn"
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
# Without $\tanh$, {eq}`additive-score` is $v^\top W_Q^\top q + v^\top W_K^\top k_j$, a number $a$ of the query plus a number $b_j$ of the key.
# In the softmax $\sigma$ the factor $e^a$ is common to all keys and cancels:
#
# $$\sigma(a\,\mathbf{1} + b)_j = \frac{e^{b_j}}{\sum_{l=1}^{n} e^{b_l}} \label{plain-sum-ignores-query}$$
#
# So the weights ignore the query. Now two programs bend, one with `np.tanh(q @ w_query + k @ w_key) @ v` and the other with `(np.tanh(q @
# w_query) + np.tanh(k @ w_key)) @ v`. Two different queries ask the same five keys. **Predict** for each program whether the two get
# different weights.

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
# The second program runs and trains without an error, for it can still learn which keys matter to *all* queries. But it cannot attend: for
# that, query and key must meet inside the bend.

# %% [markdown] id="first"
# ## Why Bahdanau had a network
#
# In 2014 Dzmitry Bahdanau was an intern in Montreal, where translators were two recurrent networks: one read the sentence into a single
# vector, from which the other wrote the translation. He distrusted that vector. So at every step he let the writer look back at all words
# of the source, as his own eyes had gone back and forth between two texts when he learned English at school.

# %% [markdown] id="first-network"
# How should the writer's state be compared with a word? The state had 1,000 numbers, and the vector $h_j$ of word $j$, its *annotation*,
# had 2,000. A matrix between them gives a product, as Luong et al. (2015) soon showed, but Bahdanau, Cho and Bengio (2014) let a small
# network learn the comparison together with all the rest. The state before word $i$, $s_{i-1}$, asks, and the annotations are both the keys
# and the values:
#
# $$\begin{gathered}
# c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})}, \\
# e_{ij} = v^\top \tanh\bigl(W_Q^\top s_{i-1} + W_K^\top h_j\bigr) \end{gathered} \key{additive-attention}$$

# %% [markdown] id="bounds"
# ## A score with a ceiling
#
# In one respect this network can do *less*. A dot product grows with the length of its vectors, but $\tanh$ stays between $-1$ and $1$, and
# so, whatever the vectors are,
#
# $$|e_{ij}| \le \sum_{r=1}^{d_h} |v_r| = \|v\|_1 \label{additive-score-bound}$$
#
# Two scores differ by at most $2 \|v\|_1$. Divide all terms of the softmax by that of the best key, which becomes 1. With $n = T_k$ keys, each of the
# $n - 1$ others is then at least $e^{-2 \|v\|_1}$:
#
# $$\max_j \alpha_{ij} \le \frac{1}{1 + (n - 1)\, e^{-2 \|v\|_1}} \key{additive-weight-bound}$$
#
# Longer queries or keys cannot lift this ceiling; only a larger $v$ can. For 64 keys it is:

# %% id="bounds-code"
for size in (1, 5):
    print(f"|v|_1 = {size}: at most {1 / (1 + 63 * np.exp(-2 * size)):.3f}")

# %% [markdown] id="cost"
# ## What a network for each pair costs
#
# For every pair and unit the network takes a sum, a $\tanh$, a multiplication and an addition, where a product takes only the last two:
# four against two, if all operations count alike. The memory differs by more. A matrix product adds its $d_h$ terms while it makes them,
# but here each sum $q + k$ must go through $\tanh$ first, so with arrays there is a number for every pair and unit before $v$ adds them up.
# Let $M$ count the numbers in the largest array made for the pairs. With $M_{\mathrm{dot}} = T_q\, T_k$,
#
# $$M_{\mathrm{add}} = T_q\, T_k\, d_h = d_h\, M_{\mathrm{dot}} \key{additive-memory-overhead}$$

# %% id="memory-code"
x = np.ones((128, 64))  # 128 queries and keys, projected
print("additive:   ", np.tanh(x[:, None] + x).shape)
print("dot product:", (x @ x.T).shape)
gigabytes = 4 * 8192**2 / 1e9  # of one number for each pair, in 32 bits
print(f"8,192 tokens: {64 * gigabytes:.0f} GB against {gigabytes:.2f} GB")

# %% [markdown] id="memory-notice"
# The dot product is also "much faster and more space-efficient in practice" (Vaswani et al., 2017, § 3.2.1), as matrix products are highly
# optimized.

# %% [markdown] id="bowl"
# ## Bend the key, not the pair
#
# Must a network look at every pair? The proof in section {section}`hook` needs a key halfway between two others, so let us move it.
# The second feature $f$ of a key is 0, 1 or 2. We add a feature $-\tfrac{1}{2} f^2$:
#
# | | key | score for the query $(1, 1)$ |
# |---|---|---|
# | "the", "cat", "because", "it" | $(0, 0)$ | $0$ |
# | "was" | $(1, -\tfrac{1}{2})$ | $\tfrac{1}{2}$ |
# | "sat", "tired" | $(2, -2)$ | $0$ |
#
# The keys now lie on a parabola, where $(1, -\tfrac{1}{2})$ is not halfway between the others, and a plain dot product puts "was" ahead. We
# ask the three questions of section {section}`tutorial` again, now with a product and a longer query:

# %% id="bowl-code"
bent = np.stack([feature, -(feature**2) / 2], axis=-1)  # (7, 2)
for wanted in (0, 1, 2):
    query = 10 * np.array([wanted, 1])
    found = zip(TOKENS, softmax(bent @ query), strict=True)
    print(f"wanted {wanted}:", *(f"{token} {weight:.2f} " for token, weight in found))

# %% [markdown] id="bowl-general"
# The product gives the weights of the network, within 0.01. For keys of any length we add the feature
# $-\tfrac{1}{2} \|k\|^2$. Expand $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$:
#
# $$q \cdot k - \tfrac{1}{2} \|k\|^2 = \tfrac{1}{2} \|q\|^2 - \tfrac{1}{2} \|q - k\|^2$$
#
# The left side is the dot product of $(q, 1)$ and $(k, -\tfrac{1}{2} \|k\|^2)$. On the right, $\tfrac{1}{2} \|q\|^2$ is the same for all
# keys and cancels. So *the nearest key wins*, and if no two keys are equal, each wins when the query equals it. The bend is now made once
# for each *key*: beside the scores, that is $T_k$ numbers, where the network had $T_q T_k d_h$.

# %% [markdown] id="bowl-turn"
# **Your turn: the nearest key.** {turn}`nearest-key-by-product`

# %% id="bowl-turn-code" tags=["your-turn"]
my_nearest = ...  # your function
check("nearest-key-by-product", my_nearest)

# %% [markdown] id="bowl-ours" tags=["ours"]
# ```python
# def my_nearest(query, key):
#     scores = query @ key.T - (key**2).sum(axis=-1) / 2
#     terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
#     return terms / terms.sum(axis=-1, keepdims=True)
# ```

# %% [markdown] id="won"
# ## Why the dot product won
#
# With few features additive and unscaled dot products do about equally well, but with many the network is ahead, wrote Vaswani et al.
# They suspected the size of the products, whose variance is $d_k$ at the start, {eq}`variance-of-a-score`, and divided them by
# $\sqrt{d_k}$. Additive scores are small without it if the entries of $v$ have variance $1 / d_h$, as in our experiment below.

# %% [markdown] id="won-predict"
# We measure this on a dictionary of 32 words in two languages, whose vectors are learned too. Sixteen words are keys, the query is the
# translation of one of them, and the loss sees only the output, not the weights. Three scores, each at three widths $d_h$, have 450 steps
# to learn to find the right key nine times out of ten. A bar shows how many they took. **Predict** which of the nine do not learn in time.

# %% id="won-figure" tags=["predicted"]
from attn_course.lessons.additive.experiments import KINDS, LOOKUPS, WIDTHS

record = LOOKUPS.load()
steps = {}
for kind in KINDS:
    runs = [record.values(kind, str(width)) for width in WIDTHS]
    steps[kind] = np.median(runs, axis=1)
figures.steps_until_learnt(WIDTHS, steps)

# %% [markdown] id="won-answer" tags=["answer"]
# The unscaled product does not learn in time at $d_h = 64$ and 256. With the scale it does, in 147, 79 and 57 steps, where the additive
# score takes 142, 72 and 45. These are medians of three runs, and at every width the scaled product was the faster one in one of the three.

# %% [markdown] id="real-question"
# ### Are real keys out of reach?
#
# Our sentence has four features, whereas SmolLM2, the model of lesson {lesson}`start`, has 90 key
# heads of 64. From each of four texts we take 256 tokens, and search, for every key of every head, a query that gives it the largest score.
# As controls we search in only the 4 directions in which the keys of the head vary most, and put random keys in place of the real ones.
#
# **Predict** for 64 features whether we find a query for all 256 keys, and whether random keys do better, worse or the same. (A key is out
# of reach if it is an average of others in all features at once.)

# %% id="real-code" tags=["predicted"]
from attn_course.lessons.additive.experiments_smollm2 import SMOLLM2

record = SMOLLM2.load()
for width in (64, 4):
    for kind in ("", "random "):  # of each, the fewest and the most in a head
        found = record.values(f"{kind}{width}")
        print(f"{width:2} features, {kind}keys: {found.min()} to {found.max()} of 256")

# %% [markdown] id="real-answer" tags=["answer"]
# With 64 features we find a query for each of the 92,160 keys of SmolLM2, and for every random key as well. In 4 directions even
# the best head misses 122 of 256 real keys, and of random keys we find at most 70. (The search ends after 1,000 steps, so there may be more
# to find.) So among 256 keys with 64 features none of these needs a bend, trained or random. A midpoint needs one at any width. Our
# sentence has some because its keys were made by hand.

# %% [markdown] id="real-notice"
# That a query exists does not say that the head ever makes it.

# %% [markdown] id="own"
# ## Three scores of your own
#
# Is the bend learned, or only possible? There are sixteen random keys with three features, and the query is one of them, turned by a
# rotation. Which key is it? In plain PyTorch we train the network, the product, and the product with a fourth feature, the sum of the key's
# squares. (A plain sum would not bend.)

# %% id="own-scores"
import numpy as np
import torch

rng = np.random.default_rng(0)


def draw(*shape):
    return torch.tensor(rng.normal(size=shape), dtype=torch.float32)


def network(q, k, v, b):  # projected: (count, 64) and (count, 16, 64)
    return torch.tanh(q[:, None] + k + b) @ v


def product(q, k, *_):
    return (k @ q[..., None])[..., 0] / 8  # the root of 64


# %% id="own-learn"
def learn(score, d=3):  # the share that is right at the end
    parts = [draw(d, 64) / d**0.5, draw(d, 64) / d**0.5, draw(64) / 8, draw(64)]
    w_q, w_k, v, b = (part.requires_grad_() for part in parts)
    turn, optimizer = torch.linalg.qr(draw(3, 3)).Q, torch.optim.Adam(parts, lr=0.01)
    for count in [32] * 300 + [4000]:  # the last ones are counted
        key = draw(count, 16, 3)
        query = key[:, 0] @ turn  # the first key is right; no score sees the order
        if d == 4:
            query = torch.cat([query, torch.ones(count, 1)], dim=-1)
            key = torch.cat([key, (key**2).sum(dim=-1, keepdim=True)], dim=-1)
        scores = score(query @ w_q, key @ w_k, v, b)
        optimizer.zero_grad()
        scores.log_softmax(dim=-1)[:, 0].mean().neg().backward()
        optimizer.step()
    return float((scores.argmax(dim=-1) == 0).float().mean())


# %% [markdown] id="own-predict"
# **Predict** which of the three find nearly every key.

# %% id="own-call" tags=["predicted"]
print(f"a network for each pair: {learn(network):.2f}")
print(f"a product:               {learn(product):.2f}")
print(f"a product with squares:  {learn(product, d=4):.2f}")
key = draw(100_000, 16, 3)
own = product(key[:, 0], key).argmax(dim=-1) == 0
print(f"not trained, not turned: {own.float().mean():.2f}")

# %% [markdown] id="own-answer" tags=["answer"]
# The network and the product with squares find nearly every key. The plain product learns to undo the rotation,
# but is right in 0.43 of the cases: a random key is its own best match only that often (last line), with $\|k\|^2$ above $k \cdot k_j$ for
# the 15 others. The network has learned its bend; for the product we made it by hand.

# %% id="verify-lesson"
verify_lesson("additive")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | score, {eq}`additive-score` | {key}`additive-score` |
# | its first use, {eq}`additive-attention` | {key}`additive-attention` |
# | ceiling for $n$ keys, {eq}`additive-weight-bound` | {key}`additive-weight-bound` |
# | numbers for the pairs, {eq}`additive-memory-overhead` | {key}`additive-memory-overhead` |

# %% [markdown] id="summary"
# ## Summary
#
# - Query and key must meet inside the bend, or the weights ignore the query.
# - Additive scores stay within $\|v\|_1$, and take $d_h$ numbers for every pair.
#
# What can the network do that a dot product cannot? It can prefer a key that is an average of others. Why did the dot product win all the
# same? It is faster (Vaswani et al.), takes one number for each pair, and with its scale learns about as fast. With 64 features it missed
# none of 256 keys, trained or random. Where keys do lie between others, one bent feature of each *key* is enough. Next, lesson
# {lesson}`masking` hides keys from queries; first the [exercises](../work/ex_{lesson}`additive`_additive.ipynb).

# %% [markdown] id="length"
# ## Deeper: what was the first attention for?
#
# Two small translators have a dictionary of 24 words and write each sentence backwards. One has Bahdanau's network as its *aligner*, the
# other must put the whole sentence into a fixed vector of 48 numbers, and both learn from sentences of 2 to 8 words. **Predict** how the
# share of right words falls with the length, up to 16 words.

# %% id="length-code" tags=["predicted"]
from attn_course.lessons.additive.experiments_translation import TRANSLATIONS

record = TRANSLATIONS.load()
print("words       ", *(f"{length:4}" for length in record.values("lengths")[0]))
for name in ("aligner", "fixed vector"):
    print(f"{name:12}", *(f"{share:.2f}" for share in record.values(name).mean(axis=0)))

# %% [markdown] id="length-answer" tags=["answer"]
# The fixed vector loses words early: it has 0.90 right at 4 words, and less than half at 8. The aligner has nearly all up to 8 words, as
# far as it was trained. Beyond that it falls as well, but stays ahead.

# %% [markdown] id="odd"
# ## Deeper: why the units need a bias
#
# The score is an ordinary network with one hidden layer that reads query and key side by side, since the sum inside its $\tanh$ is one
# product (of rows):
#
# $$[\,q,\, k\,] \begin{pmatrix} W_Q \\ W_K \end{pmatrix} = q\,W_Q + k\,W_K \label{concatenation-adds-projections}$$

# %% id="aligner-figure"
figures.aligner()

# %% [markdown] id="odd-bias"
# Such a layer has biases. Without them the ridge of section {section}`tutorial` is
# $4 \tanh(2x) - 4 \tanh(2x) = 0$. Would more units help? As $\tanh(-x) = -\tanh x$, without a bias
#
# $$e(-q, -k) = -e(q, k) \label{additive-score-is-odd}$$
#
# In section {section}`own` query and keys are as likely as the same ones with all signs turned. If the right key has the largest score in
# one case, it has the smallest in the other. So at most half of the answers can be right, with any number of units. Training does not even
# reach that:

# %% id="odd-code"
unbiased = learn(lambda q, k, v, b: network(q, k, v, 0))
print(f"without a bias: {unbiased:.2f}, by guessing {1 / 16:.2f}")

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
# For a dot product this is 1 if $a = b$ and 0 otherwise, everywhere. Here it nearly vanishes where units are flat, $t_r$ near $\pm 1$, and
# also near 0. We make the random queries and keys of *Spot the mistake* a hundred times smaller:

# %% id="small-code"
for factor in (1.0, 0.01):
    scores = np.tanh(factor * (q @ w_query + k @ w_key)) @ v
    apart = np.ptp(softmax(scores), axis=0).max()
    print(f"vectors times {factor}: weights differ by up to {apart:.6f}")

# %% [markdown] id="small-answer"
# Near 0 the graph of $\tanh$ is nearly a straight line, so the score
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
