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
# A ring has eight places. On each place stands one of eight symbols, drawn anew for each place, so a symbol may repeat. At each position the
# layer reads a vector for the symbol plus one for the place, and from its output alone a linear map must name the symbol before and the symbol
# after. We train it twice, with one head of width 32 and with two of width 16. Both have $4 \cdot 32^2 = 4096$ parameters.

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
# What does the one head lack? Suppose that it always gives the weight $p$ to the place before and $r$ to the place after, whatever symbols stand
# there. Let $p \ge r$. Then it cannot always name the symbol *after*, as two symbols $a$ and $b$ show.

# %% [markdown] id="why-lead"
# The linear map gives each symbol a number, and the symbol with the largest is the answer. We call the number of $b$ minus that of $a$ the lead
# of $b$. It is linear in the output, which mixes values by their weights. So a symbol $s$ with the weight $w$ adds $w\, u_s$ to the lead, where
# $u_s$ depends on $s$ alone. We change only the symbols before and after; all else then adds one fixed number $c$.

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
# output. Several heads have several rows. (A network behind a single head can learn to take its mixture apart, section {section}`more`.)

# %% [markdown] id="split"
# ## A head is a block of columns
#
# How does one layer get several rows? With $H$ heads of width $d_k$, queries and keys have $H d_k$ columns, and values have $H d_v$. A **head**
# is a block of neighbouring columns of each. Column $c$ of $X W_Q$ is $X$ times column $c$ of $W_Q$, so cutting the queries is the same as
# giving each head a narrow matrix:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \label{heads-are-column-blocks}$$
#
# $X$ itself is not cut: every head reads all of its features.

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
    return terms / terms.sum(axis=-1, keepdims=True) @ value


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
# $\frac{8}{10} \cdot 3 = 2.4$. Each head has found another word.

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
# On the right stands row $t$ with the mask. Row $j$ of keys and values is made from row $j$ of $X$, which the layers before computed with all
# tokens after $j$ hidden. So no later token changes it: keys and values are kept in a **cache**, and each step adds a row.

# %% [markdown] id="groups"
# Every step reads the whole cache. To make it smaller, Shazeer (2019) let all query heads share one key head and one value head. **Grouped
# heads** are a compromise: $g$ neighbouring query heads share one of each. With heads counted from 0 and $H_{kv}$ key heads:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \key{grouped-query-attention}$$
#
# The cache shrinks by the factor $g$. The language model SmolLM2 has nine query heads on three key heads in each layer.

# %% [markdown] id="own"
# ### A class to take home
#
# Here are heads, cache and groups in plain NumPy, for one token at a time, with values as wide as keys. Groups change one line: it has `h // g`
# where a layer without them has `h`.


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
# PyTorch gets a batch of two texts, all tokens and all heads at once, with a causal mask. Our class gets the tokens one by one:

# %% id="own-call"
import torch
from torch.nn.functional import scaled_dot_product_attention

rng = np.random.default_rng(8)
x = rng.normal(size=(2, 4, 6))  # two texts of four tokens
w_q, w_k, w_v, w_o = rng.normal(size=(4, 6, 6))  # three heads of width 2
q, k, v = (torch.tensor(x @ w).reshape(2, 4, 3, 2) for w in (w_q, w_k, w_v))
q, k, v = (side.transpose(1, 2) for side in (q, k, v))  # (2, H, T, d_k)
z = scaled_dot_product_attention(q, k, v, is_causal=True)
theirs = z.transpose(1, 2).reshape(2, 4, 6).numpy() @ w_o  # token first, then heads

for text, wanted in zip(x, theirs, strict=True):
    layer = Heads(w_q, w_k, w_v, w_o, d_k=2)  # with an empty cache
    ours = np.vstack([layer(token) for token in text])
    print("as PyTorch has it:", np.allclose(ours, wanted))

# %% [markdown] id="real"
# ## Your class and a real model
#
# We give the class layer 16 of SmolLM2, counted from 0. This model tells queries and keys their places by a rotation (lesson
# {lesson}`self_attention`), so we add that. If the model is on your machine, the cell compares what class and model return:

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
# Head 0 looks one token back. This can help to copy. Suppose a text has had "red sun" in it, and now comes to "red" again. A head that looks back
# can have written a note into the place of "sun": before this place stands "red". A head in a later layer, at the second "red", can look for this
# note and find "sun", the next word.

# %% [markdown] id="real-question"
# SmolLM2 does copy. It reads 50 random tokens, then the same again. In the second round it names the next one right about three times out of
# four, on average over six draws. In our sentence, head 0 of layer 16 is one of four heads, out of 270, that give more than 0.65 of their weight
# to the token before. Do the four share the work of copying? We silence head 0, then head 3 of the same layer, and then, together, the three
# others. As a control, the model also names the next tokens of a story.
#
# **Predict** which of the three costs the copying most, and whether it costs the story much.

# %% id="real-copying" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING, SILENT

measured = COPYING.load()
for name in SILENT:  # copying: the smallest and the largest share in the six draws
    right, told = measured.values("silenced", name), measured.values("story", name)
    print(f"{name:31} silent: copies {right.min():.2f} to {right.max():.2f}, ", end="")
    print(f"story {told.mean():.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Head 0 costs the copying most: without it at most an eighth is right in any draw. Yet the story falls from 0.35 to 0.33 only, so head 0 is not
# simply needed for everything. Without the three others the model keeps most of its copying: the four do not share the work evenly. Whether head 0
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
# - A head is a block of columns of queries, keys and values. (In groups, heads share those of keys and values.)
# - Cut the last axis first, then move the axis of heads.
# - The layer adds up what its heads write, so a head is silenced by leaving out its term.
# - A cache keeps the keys and values of all tokens. It shrinks where groups of query heads share a key head.
# - A map does not say what a head is for: silence it, with other heads and another text for control.
#
# What can several narrow heads do that one wide head cannot? One head mixes all that it reads by one row of weights. Several heads read several
# things at once and keep them apart, with no more parameters. Next, lesson {lesson}`cross_attention` lets one sequence ask another.

# %% [markdown] id="more"
# ## Deeper: several rows against one
#
# Why are the heads not averaged? If all of them had the same values, their mean would again be one average for each position:
#
# $$\frac{1}{H} \sum_{h=1}^{H} P_h V = \Bigl(\frac{1}{H} \sum_{h=1}^{H} P_h\Bigr) V \label{averaging-heads-averages-weights}$$
#
# and the mean of maps of weights is a map of weights. What makes several heads more is that each has its own $W_V^{(h)} W_O^{(h)}$, as
# {eq}`attention-of-one-head` in {eq}`output-projection-sums-heads` shows:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$
#
# Even the simplest case, multiples $c_h$ of one matrix, leaves the averages behind. Every row of $P_h$ sums to 1, which is
# $P_h \mathbf{1} = \mathbf{1}$, so
#
# $$\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1} \label{signed-mixture-row-sums}$$
#
# With $c = (1, -1)$ the rows sum to 0: this is a *difference* of two averages, which no single softmax can form.

# %% id="merge-alive"
from attn_course import alive

alive("output-projection-sums-heads")

# %% [markdown] id="silent"
# In the card, set all numbers of one head to 0: what is left is the sum of the others. Now back to the ring. Nobody told the two heads to divide
# the work. This is what they looked at after a training of 600 steps:

# %% id="maps-figure"
from attn_course.lessons.heads.experiments import HEADS

record = HEADS.load()
figures.divided_work(record.values("maps")[0])

# %% [markdown] id="silent-predict"
# We silence one of the two, in three trainings:

# %% id="silent-code"
for seed, silent in zip(record.seeds, record.values("without head"), strict=True):
    for head, (before, after, _) in enumerate(silent):
        kept = f"before {before:.1f}, after {after:.1f}"
        print(f"seed {seed}, head {head} silent: {kept}")

# %% [markdown] id="silent-answer"
# Without either head the layer keeps one of its answers, and is down to guessing with the other. Which head carries which answer depends on
# the seed. (The two layers of the first cell also differ in their scale, $\sqrt{32}$ and $\sqrt{16}$, but the proof holds for any.)

# %% [markdown] id="mixture"
# A linear reader behind one head whose weights ignore the symbols cannot name both neighbours. A network can, if the head gives them different
# weights: with 0.6 and 0.4, say, the four mixtures of two symbols are four different vectors. We train that too, with a linear map to 128
# numbers, of which the negative ones become 0. These are the means of three trainings:

# %% id="accuracy-code"
for name in ("one head", "one head, then a network", "two heads"):
    before, after, both = record.values("accuracies", name).mean(axis=0)
    print(f"{name:24}: before {before:.2f}, after {after:.2f}, both {both:.2f}")

# %% [markdown] id="bottleneck"
# What a narrow head lacks is rank. It reads and writes through $d_v$ columns, and it scores with $d_k$ numbers. A product of matrices has at
# most the rank of each factor, so
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$
#
# $$\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) \le d_k \label{score-matrix-rank-bound}$$
#
# If $H d_v \ge d$, the heads together can write into all directions, but with $d_k = d / H$ each table of scores is poorer, the more heads there are. This is the
# *low-rank bottleneck* of Bhojanapalli et al. (2020), who propose to choose $d_k$ by the length of the input and not as $d / H$.

# %% id="bottleneck-code"
tokens = rng.normal(size=(16, 12))
w_q, w_k = rng.normal(size=(2, 12, 12))
for n_heads in (1, 3, 12):
    q, k = ((tokens @ w)[:, : 12 // n_heads] for w in (w_q, w_k))
    rank = np.linalg.matrix_rank(q @ k.T)
    print(f"H = {n_heads:2d}: rank of the scores of head 0 =", rank)

# %% [markdown] id="counts"
# ## Deeper: three definitions, and their costs
#
# Texts define heads in three ways:
#
# | definition | head $h$ asks with | the same as |
# |---|---|---|
# | split $Q = X W_Q$ | columns of $X W_Q$ | own matrices, {eq}`heads-are-column-blocks` |
# | own matrices | $X W_Q^{(h)}$ | a split of the $H d_k$ columns side by side |
# | project $Q$ again | $Q\, W_h^{Q}$ | depends on what $Q$ is |

# %% id="definitions-figure"
figures.three_definitions()

# %% [markdown] id="twice"
# Third row: if "$Q$" means the input $X$, it is the second definition (so in Vaswani et al., 2017). If $Q$ is already $X W_Q$, each head
# projects twice, by $W_Q W_h^Q$ in all. The product of two matrices is one matrix, so the layer has more parameters and more work, and
# computes no function that is new.
#
# Everything depends on the width. $W_Q^{(h)}$ and $W_K^{(h)}$ have $d\, d_k$ entries, and $W_V^{(h)}$ and $W_O^{(h)}$ have $d\, d_v$:
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# For narrow heads, and for heads of full size, this is
#
# $$d_k = d_v = \frac{d}{H}:\; N = 4\,d^2, \qquad d_k = d_v = d:\; N = 4\,H\,d^2 \label{parameters-by-head-width}$$

# %% [markdown] id="twice-flops"
# Operations, for narrow heads: four projections of $T$ rows, $2 T d^2$ each, and in every head
# $4 T^2 d_k$ for scores and output, {eq}`attention-flops`, where $H d_k = d$:
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# The number of heads does not appear in it. In the projections alone, step $t$ without a cache projects $t$ rows, in all
#
# $$F = \sum_{t=1}^{T} 8\, t\, d^2 = 4\, T (T + 1)\, d^2 \label{projection-flops-without-cache}$$
#
# and with it $8 T d^2$, which is $(T + 1) / 2$ times less.

# %% id="cost-code"
from attn_course.costs import multi_head_attention_flops as flops
from attn_course.costs import multi_head_parameters

for n_heads, d_k in ((1, 512), (8, 64), (8, 512)):
    count = multi_head_parameters(512, n_heads=n_heads, d_k=d_k) / 1e6
    work = flops(1024, 1024, 512, n_heads=n_heads, d_k=d_k) / 1e9
    print(f"H = {n_heads}, width {d_k:3d}: {count:4.1f} M weights, {work:5.1f} GFLOP")

# %% [markdown] id="cache-count"
# A cache also saves the attention of all rows but the last. We count both, for 256 tokens, and then take the time:

# %% id="cache-code"
with_cache = without = 0
for t in range(1, 257):
    with_cache += flops(1, t, 256, projected_kv_len=1, n_heads=8)  # one new token
    without += flops(t, t, 256, n_heads=8)  # all of them
print(f"{without / with_cache:.0f} times the operations without a cache")

# %% id="cache-live" tags=["live"]
import time

from attn_course.modules.cache import KeyValueCache
from attn_course.modules.multi_head import MultiHeadAttention

layer = MultiHeadAttention(256, 8, is_causal=True).requires_grad_(False)
text = torch.zeros(1, 256, 256).normal_()


def seconds(with_cache):
    start, cache = time.perf_counter(), KeyValueCache()
    for t in range(256):
        past, new = text[:, : t + 1], text[:, t : t + 1]
        last = layer(new, cache=cache) if with_cache else layer(past)[:, -1:]
    return time.perf_counter() - start, last


(slow, plain), (fast, cached) = seconds(False), seconds(True)
print(f"{slow / fast:.1f} times the time without a cache")
print("same last row:", torch.allclose(plain, cached, atol=1e-5))

# %% [markdown] id="cache-answer"
# The clock is less steady than the count: from run to run and machine to machine we have seen factors from 2.5 to 42. Each step also calls
# functions and reads memory, and a cache saves none of that; we have not measured how much of the difference it explains.

# %% [markdown] id="cache-bytes"
# What a cache keeps for each token, with $b$ bytes for a number:
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# With 32 key heads in each of 32 layers, of width 128 and 16 bits a number, 32,768 tokens take 16 GiB, and with eight key heads 4 GiB.

# %% [markdown] id="filters"
# ## Deeper: taps of a convolution, and heads that are shared later
#
# A **convolution** computes each output from the inputs near it, with the same numbers everywhere; each place of its filter is a tap. Let every
# head look at one fixed shift, $P_h = S_h$ with ones on a diagonal. Then the sum of the heads is a convolution, with one head for each tap:
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$
#
# with $Y = X * W$, that is $Y_t = \sum_h x_{t + \Delta_h} W_h$ with zeros beyond the ends.

# %% [markdown] id="filters-scores"
# Can a softmax produce $S_h$? Cordonnier et al. (2020) give the scores an
# encoding $(\delta^2, \delta)$ of the distance $\delta$ = key position minus query position. With a learned vector, a square can be completed:
#
# $$-\alpha\,(1,\, -2\Delta) \cdot (\delta^2,\, \delta) = -\alpha\,(\delta - \Delta)^2 + \alpha\,\Delta^2 \label{score-peaked-at-shift}$$
#
# The last term is the same for all keys, and the softmax ignores it. What remains is largest at $\delta = \Delta$, and sharp for large
# $\alpha$ ($l$ runs over the keys):
#
# $$\lim_{\alpha \to \infty} \sigma_l\bigl(-\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t + \Delta\,] \label{peaked-scores-become-shift}$$
#
# At finite $\alpha$ the heads come as near to the convolution as one likes. (At the ends a head has no key to look at and takes the nearest one instead
# of a zero.) The converse fails: the weights of a head may depend on the input.

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
    error = np.abs(by_heads - convolved)[1:-1].max()
    print(f"alpha = {alpha:4.1f}: largest error away from the ends {error:.8f}")

# %% [markdown] id="shared-test"
# Your class shares heads too. Six query heads on two key heads must give what a layer gives in which each of these stands three times, side by
# side. (With the order 0 1 0 1 0 1 of the copies the last line would be False.)

# %% id="own-groups"
wide, out = rng.normal(size=(6, 12)), rng.normal(size=(12, 6))  # six query heads
pair = rng.normal(size=(2, 6, 4))  # two key heads, two value heads of width 2
copies = pair[..., [0, 1] * 3 + [2, 3] * 3]
tokens = rng.normal(size=(4, 6))
two, six = Heads(wide, *pair, out, d_k=2), Heads(wide, *copies, out, d_k=2)
print(np.allclose([two(token) for token in tokens], [six(token) for token in tokens]))

# %% [markdown] id="pooling"
# A trained multi-head model can be given shared key heads. Which single matrix stands best for the $g$ key matrices of a group? The nearest one: set the
# derivative of the squared distance by $W$ to zero, $\sum_h (W_K^{(h)} - W) = 0$:
#
# $$\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \frac{1}{g} \sum_{h=1}^{g} W_K^{(h)} \label{mean-pooled-key-heads}$$
#
# Ainslie et al. (2023) start from this mean and train on with 5 % of the original compute. A matrix that is near need not give a function that is
# near. On our ring, four key heads are reduced to one, and the layer is trained on for 5 and 20 % of the steps:

# %% id="pooling-code"
from attn_course.lessons.heads.experiments import SHARING

pooled = SHARING.load()
print("before, with four key heads:", pooled.values("four heads").round(2))
for how in ("mean", "first", "random"):
    shares = pooled.values("one key head", how).round(2)
    for seed, row in zip(pooled.seeds, shares, strict=True):
        print(f"{how:6} seed {seed}: at once, after 5 % and 20 %: {row}")

# %% [markdown] id="pooling-notice"
# At once every conversion fails, the mean included. A little training brings the mean back soonest, then the first head, then random matrices,
# in all three seeds, which is the order that Ainslie et al. report.

# %% [markdown] id="break"
# Last, a game. Beside this machine stands a twin with a mistake in its heads, and all shapes fit. Find the smallest input that shows the
# mistake, and the lamp that proves it. The next two levels hold two more.

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
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups, mean-pooled checkpoints.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed, heads with a role.
