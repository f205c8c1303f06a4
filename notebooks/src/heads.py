# %% [markdown] id="title"
# # {lesson}`heads` Multi-head attention: several weights for one position
#
# One head gives each position one row of weights. A layer of a language model has nine heads, or a hundred, usually so narrow that together they
# need no more parameters than one wide head. **What can several narrow heads do that one wide head cannot?**
#
# **You need** lessons {lesson}`attention`, {lesson}`self_attention` and {lesson}`masking`. **Time:** 60 minutes, without *Deeper* sections
# and the [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% [markdown] id="hook"
# ## Both neighbours
#
# A ring has eight places. On each stands one of eight symbols, drawn anew for each place, so a symbol may repeat. At each position the layer
# reads a vector for the symbol plus one for the place, and from its output alone a linear map must name the symbols before and after. We train
# it twice, with one head of width 32 and with two of width 16. Both have four matrices of 32 by 32.

# %% id="hook-code"
from attn_course.experiments.ring import trained

for n_heads in (1, 2):
    before, after, both = trained(n_heads, steps=300, seed=0)
    print(f"{n_heads} of width {32 // n_heads}: before {before:.2f}, ", end="")
    print(f"after {after:.2f}, both {both:.2f}")

# %% [markdown] id="hook-notice"
# Two heads name both neighbours every time. One head learns one neighbour perfectly, and names the other in about one case of eight, which is as
# good as guessing. Here is the machine of lesson {lesson}`attention`, with the parts lit that several heads need:

# %% id="machine"
from attn_course.lessons.heads import figures

figures.machine()

# %% [markdown] id="why"
# What does the one head lack? Take one position, and suppose that its row of weights ignores the symbols: the place before always has the
# weight $p$, the place after the weight $r$. Let $p \ge r$. Then the head cannot always name the symbol *after*, as two symbols $a$ and $b$ show.

# %% [markdown] id="why-lead"
# For this question the linear map gives each symbol a number, and the symbol with the largest is the answer. We call the number of $b$ minus that of $a$ the lead
# of $b$. It is linear in the output, which mixes values by their weights. So a symbol $s$ with the weight $w$ adds $w\, u_s$ to the lead, where
# $u_s$ depends on $s$ alone. We change only the symbols before and after. The other symbols, the places and all weights stay the same, so they
# add one fixed number $c$.

# %% [markdown] id="why-after"
# If $b$ stands after, its lead must be positive, and if $a$ does, negative, whatever stands before:
#
# | before | after | lead of $b$ | must be |
# |---|---|---|---|
# | $a$ | $b$ | $p\, u_a + r\, u_b + c$ | positive |
# | $a$ | $a$ | $p\, u_a + r\, u_a + c$ | negative |
# | $b$ | $a$ | $p\, u_b + r\, u_a + c$ | negative |
#
# The first lead minus the second is $r\,(u_b - u_a)$ and must be positive, so $u_b > u_a$. The third minus the first is
# $(p - r)\,(u_b - u_a)$, so it is at least 0. But a negative number minus a positive one is negative. If $r \ge p$, the head cannot always name
# the symbol *before*, by the same argument.

# %% [markdown] id="why-both"
# One row of weights cannot serve both questions, however wide the head is, if the row ignores the symbols and the answers are linear in the
# output. Several heads have several rows. A network behind one head can learn to take its mixture apart (section {section}`more`, which also
# shows the rows that trained heads learned).

# %% [markdown] id="split"
# ## A head is a block of columns
#
# How does one layer get several rows? With $H$ heads of width $d_k$, queries and keys have $H d_k$ columns, and values have $H d_v$. A **head**
# is a block of neighbouring columns of each. Column $c$ of $X W_Q$ is $X$ times column $c$ of $W_Q$, so cutting the queries is the same as
# giving each head a narrow matrix:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \label{heads-are-column-blocks}$$
#
# $X$ itself is not cut: every head reads all of its features. (Formulas and figures count heads from 1, code counts from 0.)

# %% [markdown] id="one-head"
# On its block, a head is attention as before, with a map of weights $P_h$ of its own:
#
# $$Z_h = P_h\, X W_V^{(h)}, \qquad
#  P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr) \key{attention-of-one-head}$$
#
# The dot products of one head have $d_k$ terms, so the root is that of $d_k$, the width of one head.

# %% id="split-figure"
figures.split_and_merge(tokens=4, n_heads=3, d_k=2, head=2)

# %% id="attend"
import numpy as np

from attn_course import check, verify_lesson


def attend(query, key, value):  # one head: (q_len, d_k), (kv_len, d_k or d_v)
    scores = query @ key.T / np.sqrt(query.shape[-1])
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = terms / terms.sum(axis=-1, keepdims=True)
    return weights @ value


# %% [markdown] id="small"
# In *the cat sat*, "sat" asks, with two heads of width 1, so that the root is 1. Its query is $\ln 8$ in both heads. Keys and values have one
# column for each head:
#
# | | key | value |
# |---|---|---|
# | the | $(0, 1)$ | $(0, 3)$ |
# | cat | $(1, 0)$ | $(2, 0)$ |
# | sat | $(0, 0)$ | $(0, 0)$ |
#
# In the first head the scores are $0$, $\ln 8$ and $0$, so the powers of $e$ are 1, 8 and 1, which sum to 10. "Cat" has eight tenths of the
# weight, and "sat" takes home $\frac{8}{10} \cdot 2 = 1.6$. In the second head "the" has the eight tenths, and "sat" takes home
# $\frac{8}{10} \cdot 3 = 2.4$. The two heads have found different words.

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
# In place of a loop we can make the heads a leading axis, $(T, H d_k) \to (H, T, d_k)$. Both lines below have the right shape, and both can be
# undone. `reshape` reads the numbers row by row and fills the new shape in this order. We change the last of four positions, which code calls 3.
# **Predict** which heads notice it in each of the two.

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
# Only the first line is right. The second puts all of position 0 and a third of position 1 into its first "head", and only its last "head" gets
# any number of position 3. Split the last axis first, and **then** move the axis of heads to the front. A test of shapes does not find this
# mistake. Disturbing the last position does.

# %% [markdown] id="merge"
# ## The heads add up
#
# Now every position has $H$ outputs of width $d_v$. They stand side by side, and one more matrix maps them back to the width of the tokens:
#
# $$\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
# \label{multi-head-attention}$$
#
# Cut $W_O$ into $H$ blocks of $d_v$ *rows*. In the product, block $h$ of the columns on the left meets block $h$ of the rows on the right:
#
# $$\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)} \key{output-projection-sums-heads}$$
#
# So "concatenate, then project" is a **sum over heads**. In our sentence "sat" has taken home 1.6 and 2.4. If the rows of $W_O$ are
# $(1, 0)$ and $(1, 1)$, its output is $1.6 \cdot (1, 0) + 2.4 \cdot (1, 1) = (4.0, 2.4)$.
#
# Leave out one term, and you see what the layer does without that head.

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

# %% [markdown] id="cache"
# ## What a layer keeps: the cache
#
# A model that writes gets one token at a time. What must a layer keep of the earlier ones? The causal mask hides all later keys from token $t$.
# So row $t$ of attention needs its own query, and the keys and values of tokens $1$ to $t$:
#
# $$z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t \label{decoding-equals-full-pass}$$
#
# On the right, attention has the causal mask, and we take its row $t$. Row $j$ of keys and values is made from row $j$ of $X$, which the layers before computed with all
# tokens after $j$ hidden. So no later token changes it: keys and values are kept in a **cache**, and each step adds a row.

# %% [markdown] id="groups"
# Every step reads the whole cache. To make it smaller, Shazeer (2019) let all blocks of queries, the query heads, share one block of keys, the
# key head, and one of values.
# **Grouped heads** are a compromise: $g$ neighbouring query heads share a key head and a value head. With heads counted from 0 and $H_{kv}$
# key heads:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \key{grouped-query-attention}$$
#
# The cache shrinks by the factor $g$. The language model SmolLM2 (here its smallest size, of 135 million parameters) has nine query heads on
# three key heads in each layer.

# %% [markdown] id="own"
# ### A class to take home
#
# Here are heads, cache and groups in plain NumPy, for one token at a time, with values as wide as keys. For the groups it has `g`, and `h // g`
# where a layer without groups has `h`.


# %% id="own-class"
class Heads:
    def __init__(self, w_query, w_key, w_value, w_output, d_k):
        self.projections, self.w_output = (w_query, w_key, w_value), w_output
        self.d_k, self.keys, self.values = d_k, [], []  # the cache: no token yet

    def cut(self, x):  # queries, keys and values of one token, with a head in each row
        return [(x @ w).reshape(-1, self.d_k) for w in self.projections]

    def __call__(self, x):  # the next token, (d,)
        q, k, v = self.cut(x)
        self.keys.append(k)
        self.values.append(v)
        keys, values = np.array(self.keys), np.array(self.values)  # (t, H_kv, d_k)
        heads, g = range(len(q)), len(q) // len(k)
        z = [attend(q[h : h + 1], keys[:, h // g], values[:, h // g]) for h in heads]
        return np.hstack(z) @ self.w_output  # (1, d)


# %% [markdown] id="own-tests"
# PyTorch gets all tokens and all heads at once, with a causal mask: four query heads on two key heads. Our class gets the tokens one by one:

# %% id="own-call"
import torch
from torch.nn.functional import scaled_dot_product_attention

rng = np.random.default_rng(8)
x = rng.normal(size=(5, 6))  # five tokens
w_q, w_o = rng.normal(size=(6, 8)), rng.normal(size=(8, 6))  # four heads of width 2
w_k, w_v = rng.normal(size=(2, 6, 4))  # two heads of width 2
q, k, v = (torch.tensor(x @ w).reshape(5, -1, 2) for w in (w_q, w_k, w_v))
q, k, v = (side.transpose(0, 1) for side in (q, k, v))  # heads first, then tokens
z = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
theirs = z.transpose(0, 1).reshape(5, 8).numpy() @ w_o  # tokens first, then heads

layer = Heads(w_q, w_k, w_v, w_o, d_k=2)  # with an empty cache
print("as PyTorch has it:", np.allclose([layer(token)[0] for token in x], theirs))

# %% [markdown] id="real"
# ## Your class and a real model
#
# We give the class layer 16 of SmolLM2, counted from 0. This model tells queries and keys their places by a rotation (lesson
# {lesson}`self_attention`), so we add that with `rope`, where `layout` says which columns turn as a pair. A token's place is the number of tokens
# in the cache before it joins. If the model is on your machine, the cell gives the class what the layer's heads read, `read`, and compares what
# both return:

# %% id="real-layer" tags=["live"]
from attn_course import language_model
from attn_course.reference import rope

model, sentence = language_model(), "The cat sat because it was tired."


class Turned(Heads):
    def cut(self, x):
        q, k, v = super().cut(x)
        turns = {"theta": 100_000.0, "layout": "interleaved"}
        q, k = (rope(z, np.full(len(z), len(self.keys)), **turns) for z in (q, k))
        return q, k, v


if model.is_here:
    read, returned = model.around_heads(16, sentence)  # (8, 576) each: eight tokens
    it = model.layer(16)
    layer = Turned(it.w_query, it.w_key, it.w_value, it.w_output, d_k=64)
    ours = np.vstack([layer(token) for token in read.astype(float)])
    print(f"largest difference: {np.abs(ours - returned).max():.6f}")

# %% [markdown] id="real-look"
# It printed 0.000009 here, for numbers up to 15. Now look at two heads of this layer:

# %% id="real-maps"
maps = model.maps(sentence)
figures.real_heads([maps[16, 0], maps[16, 3]], model.tokens(sentence))

# %% [markdown] id="real-copy"
# Head 0 looks one token back. This can help to copy. Suppose a text has had "red sun" in it, and now comes to "red" again. At "sun", a head that
# looks back can write a note: "the word before this place is red". In a later layer, at the second "red", another head can look for this note.
# There it finds "sun", the word that came next. SmolLM2 does copy: it reads 50 random tokens, then the same again, and in the second round it
# names the next one right about three times out of four, on average over six draws.

# %% [markdown] id="real-question"
# In our sentence, head 0 of layer 16 is one of four heads, out of 270, that give more than 0.65 of their weight to the token before, on average
# over the queries after the first. Do the four share the work of copying? We silence
#
# - head 0,
# - as a control head 3 of the same layer, which looks mostly at the first token,
# - the other three of the four, which are in other layers, at once.
#
# As a second control the model also names the next tokens of a story. **Predict** which of the three costs the copying most, and whether it
# costs the story much. This is a bet: the maps alone do not tell.

# %% id="real-copying" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING, SILENT

measured = COPYING.load()
for name in SILENT:  # copying: the smallest and the largest share in the six draws
    right, told = measured.values("silenced", name), measured.values("story", name)
    print(f"{name:31} silent: copies {right.min():.2f} to {right.max():.2f}, ", end="")
    print(f"story {told.mean():.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Head 0 costs the copying most: without it at most an eighth is right in any draw. Yet the story falls from 0.35 to 0.33 only, about as much as
# without the three others, so head 0 is not simply needed for everything. Without the three others the model keeps most of its copying: the four do not share the work evenly. Whether head 0
# works by notes, this does not show (lesson {lesson}`induction` goes on).

# %% id="verify-lesson"
verify_lesson("heads")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | head, {eq}`attention-of-one-head` | {key}`attention-of-one-head` |
# | layer, {eq}`output-projection-sums-heads` | {key}`output-projection-sums-heads` |
# | groups, {eq}`grouped-query-attention` | {key}`grouped-query-attention` |

# %% [markdown] id="summary"
# ## Summary
#
# - A head is a block of columns of queries, keys and values. In a group, several blocks of queries use one block of keys and one of values.
# - Cut the last axis first, then move the axis of heads.
# - The layer adds up what its heads write, so a head is silenced by leaving out its term.
# - A cache keeps the keys and values of all tokens. It shrinks where groups of query heads share a key head.
# - A map does not say what a head is for: silence it, with other heads and another text for control.
#
# What can several narrow heads do that one wide head cannot? One head mixes all that it reads by one row of weights. Several heads can read
# several things at once and keep them apart for what reads the layer linearly, with no more parameters. Next, lesson {lesson}`cross_attention` lets one sequence ask another.

# %% [markdown] id="more"
# ## Deeper: can one head do it after all?
#
# In section {section}`hook` a linear map stood behind the head that failed. In a language model a network stands there. Our network is a linear map
# to 128 numbers, of which the negative ones become 0, and then the map to the answers. Both symbols can be named if each pair gives a mixture
# of its own. **Predict** the weights that one head in front of this network learns for the places before and after.

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
# So one head can do it, with weights of about 0.69 and 0.29. Equal ones would give $(a, b)$ and $(b, a)$ the same mixture. Without the network
# the head names the symbol with the larger weight; the proof says that it cannot always name the other. From ring to ring a weight differs by
# less than 0.03 (standard deviation), so the rows hardly depend on the symbols.

# %% [markdown] id="sum"
# What, then, do several heads give? Each has its own map of values, by {eq}`attention-of-one-head` and {eq}`output-projection-sums-heads`:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$
#
# Let the products $W_V^{(h)} W_O^{(h)}$ be multiples $c_h$ of one matrix. The rows of $P_h$ sum to 1, so
#
# $$\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1} \label{signed-mixture-row-sums}$$
#
# With $c = (1, -1)$ the rows sum to 0: two heads can *subtract* one neighbour from the other. One softmax has no negative weights. In the card,
# choose $c$ so that the rows of its three heads sum to 0.

# %% id="merge-alive"
from attn_course import alive

alive("signed-mixture-row-sums")

# %% [markdown] id="bottleneck"
# Narrow heads pay with rank. A product of matrices has at most the rank of each factor:
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$
#
# In the same way a head's table of scores has at most rank $d_k$: the *low-rank bottleneck* of Bhojanapalli et al. (2020).

# %% [markdown] id="counts"
# ## Deeper: do more heads cost more?
#
# Texts define heads in three ways. They cut $Q = X W_Q$ into columns, give each head a matrix of its own, or project $Q$ again:

# %% id="definitions-figure"
figures.three_definitions()

# %% [markdown] id="twice"
# The first two are the same, {eq}`heads-are-column-blocks`. The third is the second if its "$Q$" means the input (so in Vaswani et al., 2017).
# If $Q$ is $X W_Q$, each head projects by $W_Q W_h^Q$, which is one matrix: more parameters and no new function. The first two have
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# parameters, $4 d^2$ if $H d_k = H d_v = d$. Then four projections of $T$ rows, scores and outputs, {eq}`attention-flops`, take
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# operations. We count one wide head, eight narrow ones, and eight wide ones:

# %% id="cost-code"
from attn_course.costs import multi_head_attention_flops as flops
from attn_course.costs import multi_head_parameters

for n_heads, d_k in ((1, 512), (8, 64), (8, 512)):
    count = multi_head_parameters(512, n_heads=n_heads, d_k=d_k) / 1e6
    work = flops(1024, 1024, 512, n_heads=n_heads, d_k=d_k) / 1e9
    print(f"H = {n_heads}, width {d_k:3d}: {count:4.1f} M weights, {work:5.1f} GFLOP")

# %% [markdown] id="cache-bytes"
# In parameters, these products and the cache eight narrow heads cost what one wide head costs; only their eight maps take more. Without a cache
# step $t$ projects $t$ rows, with it one. The cache keeps for each token, with $b$ bytes for a number,
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# whatever the number of query heads is. In 32 layers with 32 key heads of width 128, at 16 bits a number, 32,768 tokens take 16 GiB, and with
# eight key heads 4 GiB.

# %% [markdown] id="filters"
# ## Deeper: is a layer of heads a convolution?
#
# A **convolution** computes each output from the inputs near it, with the same numbers everywhere. If each head looks at one fixed shift,
# $P_h = S_h$ with ones on a diagonal, the sum of the heads is a convolution:
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$
#
# with $Y_t = \sum_h x_{t + \Delta_h} W_h$ and zeros beyond the ends. Can a softmax make $S_h$? Cordonnier et al. (2020) encode the distance
# $\delta$ from query to key as $(\delta^2, \delta)$. A learned vector $-\alpha\,(1, -2\Delta)$ then gives the score
# $-\alpha\,(\delta - \Delta)^2 + \alpha\,\Delta^2$, whose last term the softmax ignores. As $\alpha$ grows, the weight at $\delta = \Delta$ tends to
# 1, if there is such a key. Three heads imitate a filter of three numbers:

# %% id="filters-code"
from attn_course.reference import softmax

signal, kernel = rng.normal(size=12), np.array([0.5, -1.0, 2.0])
place = np.arange(12)
convolved = np.convolve(signal, kernel[::-1], mode="same")
for alpha in (1.0, 5.0, 20.0):
    by_heads = np.zeros(12)
    for shift, tap in zip((-1, 0, 1), kernel, strict=True):
        scores = -alpha * (place - place[:, None] - shift) ** 2
        by_heads += softmax(scores) @ signal * tap
    error = np.abs(by_heads - convolved)
    print(f"alpha = {alpha:4.1f}: error inside {error[1:-1].max():.8f}", end=", ")
    print(f"at the two ends {error[[0, -1]].round(2)}")

# %% [markdown] id="filters-ends"
# In the middle the heads come as near to the filter as one likes, but not at the ends. There the filter reads a zero, but a softmax
# must give its weight to some key, and the nearest one gets it.

# %% [markdown] id="break"
# Last, a game. This machine has a twin with a mistake in its heads. Find the smallest input that shows it, and the lamp that proves it. Two more
# levels follow.

# %% id="break-card"
from attn_course.game.card import break_the_machine

break_the_machine("heads-tiled")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.2, heads and their cost.
# - J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), [arXiv:1911.03584](https://arxiv.org/abs/1911.03584): heads and
#   convolutions, the quadratic encoding.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): the low-rank bottleneck.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): one key head for all, and why decoding waits for memory.
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups, and trained models that are given them later.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed, heads with a role.
