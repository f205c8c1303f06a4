# %% [markdown] id="title"
# # {lesson}`heads` Multi-head attention: several weights for one position
#
# One head gives each position one row of weights, but a layer of a language model has nine heads, or a hundred, usually so narrow that
# together they need no more parameters than one wide head. **What can several narrow heads do that one wide head cannot?**
#
# **You need** lessons {lesson}`attention` and {lesson}`self_attention`. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% [markdown] id="hook"
# ## Both neighbours
#
# A ring has eight places, and on each stands one of eight symbols, drawn at random, so a symbol may repeat. A layer of attention reads,
# for each place, a vector for its symbol plus one for the place. From what it returns there, a linear map must name the symbol before and
# the symbol after. We train this twice, with one head of width 32 and with two of width 16.

# %% id="hook-code"
from attn_course.experiments.ring import named, trained

rings = {n_heads: trained(n_heads, steps=300, seed=0) for n_heads in (1, 2)}
for n_heads, ring in rings.items():
    before, after, both = named(ring)
    print(f"{n_heads} of width {32 // n_heads}: before {before:.2f}, ", end="")
    print(f"after {after:.2f}, both {both:.2f}")

# %% [markdown] id="hook-notice"
# Two heads name both neighbours every time. One head names one of them every time, but the other in about one case of eight, which is as
# good as guessing. Here is the machine of lesson {lesson}`attention`, with the parts lit that several heads need:

# %% id="machine"
from attn_course.lessons.heads import figures

figures.machine()

# %% [markdown] id="why"
# ### What does the one head lack?
#
# At each place one head returns one mixture, made by one row of weights. Suppose that the row ignores the symbols: the place before
# always has the weight $p$, and the place after $r$. If $p = r$, then *red* before and *blue* after give the same mixture as *blue*
# before and *red* after, and nobody can tell them apart. If $p > r$, the mixtures differ. But the symbol before counts more, and the
# linear map cannot always name the symbol *after*. Here is why.

# %% [markdown] id="why-lead"
# To name the symbol after, the linear map makes a number for each symbol, and its answer is the symbol with the largest. For two symbols
# $a$ and $b$, the **lead** of $b$ is the number of $b$ minus that of $a$. The lead is linear in the mixture, so a place adds its weight
# times a number that belongs to its symbol, $u_a$ or $u_b$. We change only the symbols before and after, so everything else adds one
# fixed number $c$.

# %% [markdown] id="why-after"
# The lead must be positive if $b$ stands after, and negative if $a$ does, also where both places hold the same symbol:
#
# | before | after | lead of $b$ | must be |
# |---|---|---|---|
# | $a$ | $b$ | $p\, u_a + r\, u_b + c$ | positive |
# | $b$ | $a$ | $p\, u_b + r\, u_a + c$ | negative |
# | $b$ | $b$ | $(p + r)\, u_b + c$ | positive |
# | $a$ | $a$ | $(p + r)\, u_a + c$ | negative |
#
# A positive lead minus a negative one is positive. So the third minus the fourth, $(p + r)\,(u_b - u_a)$, says that $u_b > u_a$, while
# the first minus the second, $(p - r)\,(u_a - u_b)$, says that $u_a > u_b$. Both cannot be true.
#
# If $p < r$, the linear map cannot always name the symbol *before*, by the same argument.

# %% [markdown] id="why-both"
# So one row of weights cannot serve both questions every time, however wide the head is, but several heads have several rows. Beside the
# sum of symbol and place, the proof needs two conditions: the row ignores the symbols, and the answers are linear in the output. (Section
# {section}`more` looks at a trained head, and breaks the second condition.)

# %% [markdown] id="split"
# ## A head is a block of columns
#
# How does one layer get several rows of weights? We cut the columns of queries, keys and values into blocks. A **head** is one block of
# each, and attends for itself:

# %% id="attend"
import numpy as np

from attn_course import check, verify_lesson


def attend(query, key, value):  # one head: (q_len, d_k), (kv_len, d_k or d_v)
    scores = query @ key.T / np.sqrt(query.shape[-1])
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = terms / terms.sum(axis=-1, keepdims=True)
    return weights @ value


# %% [markdown] id="small"
# Let two heads have one column each, so that the root of their width is 1. In *the cat sat*, "sat" asks with the query $(\ln 8, \ln 8)$:
#
# | | key | value |
# |---|---|---|
# | the | $(0, 1)$ | $(0, 3)$ |
# | cat | $(1, 0)$ | $(2, 0)$ |
# | sat | $(0, 0)$ | $(0, 0)$ |
#
# The first head reads the first column. The scores of *the*, *cat* and *sat* are $0$, $\ln 8$ and $0$, so the powers of $e$ are 1, 8 and
# 1, with the sum 10: "cat" gets the weight $\frac{8}{10}$, and the head returns $\frac{8}{10} \cdot 2 = 1.6$.
#
# **Predict** what the second head returns. And what would one head of width 2 return that reads both columns: more, less, or the same two
# numbers?

# %% id="small-code" tags=["predicted"]
query = np.log([[8.0, 8.0]])
key = np.array([[0, 1], [1, 0], [0, 0]])
value = np.array([[0, 3], [2, 0], [0, 0]])
readers = {"first head": [0], "second head": [1], "one head of width 2": [0, 1]}
for name, columns in readers.items():
    output = attend(query[:, columns], key[:, columns], value[:, columns])
    print(f"{name}: {output[0].round(2)}")

# %% [markdown] id="small-answer" tags=["answer"]
# The second head gives "the" eight tenths and returns $\frac{8}{10} \cdot 3 = 2.4$. The wide head gives "the" and "cat" the same score
# and so the same weight, less than one half, and returns less of both. Two heads found a word each, while the wide head had to share its
# one row between them.

# %% [markdown] id="columns"
# Now with letters. Each column of $X W_Q$ is $X$ times one column of $W_Q$, so cutting the queries of $H$ heads is the same as giving
# each head a narrow matrix of its own:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \key{heads-are-column-blocks}$$
#
# The input $X$ is not cut: every head reads all of its features. On its block, a head with queries and keys of width $d_k$ and values of
# width $d_v$ is attention as before:
#
# $$Z_h = P_h\, X W_V^{(h)}, \qquad
#  P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr) \key{attention-of-one-head}$$
#
# A dot product of one head has $d_k$ terms, so we divide by the root of $d_k$. (The formulas and the next figure count heads from 1; code
# and names such as "head 0 of layer 16" count from 0.)

# %% id="split-figure"
figures.split_and_merge(tokens=4, n_heads=3, d_k=2, head=2)

# %% [markdown] id="loop-turn"
# **Your turn: a loop over heads.** {turn}`heads-by-loop` `np.split(query, n_heads, axis=-1)` cuts columns
# into blocks. For each head, call `attend`.

# %% id="loop-turn-code" tags=["your-turn"]
my_heads = ...  # your function
check("heads-by-loop", my_heads)

# %% [markdown] id="loop-ours" tags=["ours"]
# ```python
# def my_heads(query, key, value, n_heads):
#     blocks = (np.split(side, n_heads, axis=-1) for side in (query, key, value))
#     return np.concatenate([attend(q, k, v) for q, k, v in zip(*blocks)], axis=-1)
# ```

# %% [markdown] id="reshape"
# ### Spot the mistake: a reshape that comes back
#
# Instead of looping, libraries make the heads a leading axis, $(T, H d_k) \to (H, T, d_k)$. Both cuts below give this shape, but
# `reshape` reads the numbers row by row and fills the new shape in this order. We change the last of four positions, which code calls 3.
# **Predict** which heads notice it in each cut.

# %% id="reshape-code" tags=["predicted"]
queries = np.random.default_rng(8).normal(size=(4, 6))  # T = 4, three heads of width 2
disturbed = queries + np.array([[0], [0], [0], [1]])
cuts = {
    "first": lambda x: x.reshape(4, 3, 2).swapaxes(0, 1),
    "second": lambda x: x.reshape(3, 4, 2),
}
for name, cut in cuts.items():
    moved = (cut(queries) != cut(disturbed)).any(axis=(1, 2))
    print(f"{name}: shape {cut(queries).shape}, heads that notice position 3: {moved}")

# %% [markdown] id="reshape-answer" tags=["answer"]
# Only the first line is right. The second puts all of position 0 and a third of position 1 into its first "head", and only its last
# "head" gets any number of position 3. A test of shapes does not find this mistake. Split the last axis first, and **then** move the axis
# of heads to the front.

# %% [markdown] id="merge"
# ## The layer adds up its heads
#
# Every position now has $H$ outputs of width $d_v$, side by side, and one more matrix maps them back to the width $d$ of the tokens
# ($d_{\mathrm{model}}$ in the machine):
#
# $$\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
# \label{multi-head-attention}$$
#
# What happens to each head? Cut $W_O$ into $H$ blocks of $d_v$ *rows*. In the product, the columns of head $h$ meet block $h$ of the
# rows:
#
# $$\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)} \key{output-projection-sums-heads}$$
#
# So "put side by side, then multiply" is a **sum over heads**. In our sentence "sat" has 1.6 and 2.4. If the rows of $W_O$ are $(1, 0)$
# and $(1, 1)$, the layer returns $1.6 \cdot (1, 0) + 2.4 \cdot (1, 1) = (4.0, 2.4)$. Without the first head it would return $(2.4, 2.4)$.

# %% [markdown] id="silence-turn"
# **Your turn: silence a head.** {turn}`layer-without-a-head` `np.split(w_output, len(heads))` cuts its
# rows into blocks.

# %% id="silence-turn-code" tags=["your-turn"]
my_layer_without = ...  # your function
check("layer-without-a-head", my_layer_without)

# %% [markdown] id="silence-ours" tags=["ours"]
# ```python
# def my_layer_without(heads, w_output, silent):
#     rows = np.split(w_output, len(heads))  # blocks of d_v rows
#     return sum(heads[h] @ rows[h] for h in range(len(heads)) if h != silent)
# ```

# %% [markdown] id="layer"
# Your two functions make a whole layer of heads in plain NumPy:


# %% id="layer-code"
def layer(query, key, value, w_output, n_heads, silent=None):
    z = my_heads(query, key, value, n_heads)
    if silent is None:
        return z @ w_output
    return my_layer_without(np.array(np.split(z, n_heads, axis=-1)), w_output, silent)


if my_heads is ... or my_layer_without is ...:  # not written yet
    from attn_course.experiments.ring import layer

    print("the course's layer stands in; write your functions above")

# %% [markdown] id="silence-ring"
# What have the heads of the ring learned? We give the layer their queries, keys and values and the trained $W_O$, and silence head 0,
# then head 1. Which head has which neighbour nobody can know. **Predict** how often the neighbours are named then.

# %% id="silence-ring-code" tags=["predicted"]
from attn_course.experiments.ring import named_by

for silent in (0, 1):
    before, after, both = named_by(layer, rings[2], silent)
    print(f"head {silent} silent: before {before:.2f}, ", end="")
    print(f"after {after:.2f}, both {both:.2f}")

# %% [markdown] id="silence-ring-answer" tags=["answer"]
# Each head has learned one neighbour: without head 0 the symbol after is still named every time while the symbol before is guessed, and
# without head 1 it is the other way round.

# %% [markdown] id="parameters"
# What do two heads cost? Together $W_Q$, $W_K$, $W_V$ and $W_O$ hold
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# parameters. On the ring $d$ is 32, so one head of width 32 has $4 \cdot 32 \cdot 32 = 4096$, and two of width 16 have
# $2 \cdot 4 \cdot 32 \cdot 16 = 4096$, too: the second row of weights costs no parameter.

# %% [markdown] id="real"
# ## One head of 270
#
# Does your layer do what a layer of a real language model does? SmolLM2, here in its smallest size, has 30 layers of nine heads, and we
# take the queries, keys and values of its layer 16 for a sentence, a block of 64 columns for each head. (Three neighbouring heads share
# keys and values, section {section}`cache`, so these blocks stand there three times.) A causal mask hides later tokens, so we ask for the
# last token. If the model is on your machine, the cell compares what your layer and the model's own layer return:

# %% id="real-layer" tags=["live"]
from attn_course import language_model

model, sentence = language_model(), "The cat sat because it was tired."
if model.is_here:
    query, key, value, returned = model.around_heads(16, sentence)
    ours = layer(query[-1:], key, value, model.layer(16).w_output, n_heads=9)
    print(f"largest difference: {np.abs(ours - returned[-1]).max():.6f}")

# %% [markdown] id="real-look"
# It printed 0.000003 here, for numbers up to 6. Do such heads divide their work, as on the ring? For each of the 270 heads we ask how
# much weight it gives to the token before, on average over the tokens after the first.

# %% id="real-maps"
figures.looking_back(model.maps(sentence), model.tokens(sentence))

# %% [markdown] id="real-copy"
# Four heads give it more than 0.65, and head 0 of layer 16 gives the most. What is such a head good for? Suppose that a text has had "red
# sun" in it, and now comes to "red" again. At "sun", a head that looks back can write a note: "the word before me is red". In a later
# layer, at the second "red", another head can look for this note and find "sun", the word that came next. In this way a model could copy,
# and SmolLM2 does copy:

# %% id="real-text"
words = "lamp seven gold tiger blue. lamp seven"
print(model.write(words, tokens=4))

# %% [markdown] id="real-question"
# Do the four heads share this work? We silence head 0 of layer 16; then, as a control, head 3 of that layer; then the three others of the
# four at once. Each time the model continues our list. It also reads a text of 50 random tokens followed by the same 50, and for six such
# texts we count which share of the second round it names right. As a second control it names the next tokens of a story.
#
# **Predict** which of the three costs the copying most, and whether it costs the story as much. This is a bet: the weights alone do not
# tell.

# %% id="real-copying" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING, SILENT

measured = COPYING.load()
for name, silent in SILENT.items():
    right, told = (measured.values(what, name) for what in ("silenced", "story"))
    text = model.silenced(*silent).write(words, tokens=4)[len(words) :]
    print(f"{name} silent: {text!r}")
    print(f"    copies {right.min():.2f} to {right.max():.2f}, story {told.mean():.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Without head 0 the list stops, and at most an eighth of the random tokens is right in any draw. Without the three others the model keeps
# most of its copying, so the four do not share the work evenly. The story falls from 0.35 to 0.33, about as much as without the three
# others, so head 0 is not simply needed for everything. Whether it works by notes, this does not show; lesson {lesson}`induction` goes
# on.

# %% id="verify-lesson"
verify_lesson("heads")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | block of columns, {eq}`heads-are-column-blocks` | {key}`heads-are-column-blocks` |
# | head, {eq}`attention-of-one-head` | {key}`attention-of-one-head` |
# | layer, {eq}`output-projection-sums-heads` | {key}`output-projection-sums-heads` |

# %% [markdown] id="summary"
# ## Summary
#
# - A head is a block of columns of queries, keys and values, with a map of weights of its own.
# - The layer adds up what its heads write, so a head is silenced by leaving out its term.
# - A map does not say what a head is for. Silence it, and other heads for control.
#
# One wide head mixes all that it reads by one row of weights, while several narrow heads can read several things at once and keep them
# apart for a linear map that reads the layer, with no more parameters. Next, lesson {lesson}`cross_attention` lets one sequence ask
# another.

# %% [markdown] id="more"
# ## Deeper: can one head do it after all?
#
# In section {section}`hook` a linear map read the head. Now a network reads it: a linear map to 128 numbers, of which the negative ones
# become 0, and then the map to the answers. **Predict** whether one head in front of this network can name both neighbours, and with
# which weights for the two places.

# %% id="accuracy-code" tags=["predicted"]
from attn_course.lessons.heads.experiments import HEADS, MODELS

record = HEADS.load()
for name in MODELS:
    before, after, both = record.values("accuracies", name).mean(axis=0)
    print(f"{name}: names before {before:.2f}, after {after:.2f}, both {both:.2f}")
    looks = record.values("looks", name).transpose(1, 2, 0).round(2)
    for head, (before, after) in enumerate(looks):  # a weight for each training
        print(f"    weights of head {head}: before {before}, after {after}")

# %% [markdown] id="mixture" tags=["answer"]
# One head can do it, with weights of about 0.69 and 0.29. They are unequal, so that each pair of symbols gives a mixture of its own. From ring to
# ring a weight differs by less than 0.03 (standard deviation), so the rows hardly depend on the symbols, as our proof supposed.

# %% [markdown] id="sum"
# What, then, do several heads give? By {eq}`attention-of-one-head`, each also has a map of values of its own:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$
#
# The two heads of the ring look at one fixed shift each, with weights near 1. On a text, heads with weights of exactly 1 would be, away from its
# ends, a **convolution**, and each head one entry of its filter (Cordonnier et al., 2020):
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$
#
# with $Y_t = \sum_h x_{t + \Delta_h} W_h$ and zeros beyond the ends of the text. Narrow heads have a price (Bhojanapalli et al., 2020). Each writes
# into $d_v$ directions at most:
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$

# %% [markdown] id="cache"
# ## Deeper: what does a layer keep while it writes?
#
# A model writes one token at a time. With the causal mask (lesson {lesson}`masking`), row $t$ of attention needs only its own query and the
# keys and values of tokens $1$ to $t$:
#
# $$z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t \label{decoding-equals-full-pass}$$
#
# No later token changes a key or a value. So a layer keeps them in a **cache**, and need not compute all $T$ tokens again, which takes
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# operations if $H d_k = H d_v = d$. To keep less, $g$ neighbouring query heads share one key head and one value head (Shazeer, 2019;
# Ainslie et al., 2023). With $H_{kv}$ key heads, and heads counted from 0:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \label{grouped-query-attention}$$
#
# Here PyTorch computes nine query heads on three key heads at once, and we compute one token after the other:

# %% id="cache-code"
import torch
from torch.nn.functional import scaled_dot_product_attention

rng = np.random.default_rng(8)
q = rng.normal(size=(9, 5, 4))  # nine query heads, five tokens
k, v = rng.normal(size=(2, 3, 5, 4))  # three key heads, and three of values
sides = (torch.tensor(side) for side in (q, k, v))
at_once = scaled_dot_product_attention(*sides, is_causal=True, enable_gqa=True).numpy()
for t in range(1, 6):
    z = [attend(q[h, t - 1 : t], k[h // 3, :t], v[h // 3, :t])[0] for h in range(9)]
    assert np.allclose(z, at_once[:, t - 1])
print("the same, token by token")

# %% [markdown] id="cache-bytes"
# With $b$ bytes for a number, the cache grows with each token by
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# SmolLM2 has nine query heads on three key heads of width 64. **Predict** how many numbers one layer keeps for each token, and how many it would
# keep with nine key heads. The whole model has 135 million numbers of 16 bits, 257 MiB. Is the cache of 8,192 tokens larger?

# %% id="cache-bytes-code" tags=["predicted"]
for key_heads in (3, 9):
    numbers = 2 * key_heads * 64  # a key and a value for each key head
    size = 30 * numbers * 2 * 8192 / 2**20  # 30 layers, 2 bytes a number
    print(f"{key_heads} key heads: {numbers} numbers in a layer, {size:.0f} MiB in all")

# %% [markdown] id="cache-answer" tags=["answer"]
# A layer keeps $2 \cdot 3 \cdot 64 = 384$ numbers for each token, and with nine key heads it would keep 1,152. Then the cache of one long text
# would be twice as large as the whole model.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.2, heads.
# - J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), [arXiv:1911.03584](https://arxiv.org/abs/1911.03584): heads and convolutions.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): the rank of narrow heads.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): one key head for all.
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed.
