# %% [markdown] id="title"
# # {lesson}`heads` Multi-head attention: several weights for one position
#
# One head gives each position one row of weights. A real layer has 8, 32 or 128 of them, side by side, with no more weights.
# This lesson cuts the matrices into heads, puts the outputs together again, asks what that buys, and follows the heads to
# where they do cost something: the memory of a model that writes.
#
# **Afterwards you can** split and merge without mixing positions, prove that three definitions of heads agree or do
# not, count parameters and operations, load the weights of torch's own module, share key heads, and decode with a cache.
#
# **You need** lessons {lesson}`attention`, {lesson}`self_attention` and {lesson}`masking` (attention, projections, causal masks).
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% id="setup"
import numpy as np
import torch

from attn_course import costs, show, verify_lesson
from attn_course.lessons.heads import figures
from attn_course.lessons.heads.experiments import HEADS, SHARING
from attn_course.modules.multi_head import MultiHeadAttention
from attn_course.reference import KeyValueCache, attention, multi_head_attention
from attn_course.reference import merge_heads, repeat_key_value, softmax, split_heads

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: so far we were inside one head, and now we look at all $H$ of them and at $W_O$, which mixes
# their outputs.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## One wide head or two narrow ones?
#
# Eight places form a ring; on each stands one of eight symbols, drawn at random. Each position must name the symbol
# **before** it and the symbol **after** it. One layer of attention reads a learned vector of the symbol plus one of the
# place ($d = 32$), and a linear map of its output gives the two answers. Layer A has one head of width 32, layer B two heads
# of width 16. Both layers have exactly $4 d^2 = 4096$ weights. **Predict** how often each names both neighbours after
# training.

# %% id="hook-code" tags=["predicted"]
record = HEADS.load()
for layer, name in (("A", "one head"), ("B", "two heads")):
    before, after, both = record.values("accuracies", name).T.round(2)
    print(f"{layer}: before {before}  after {after}  both {both}   (three seeds)")

# %% [markdown] id="hook-answer" tags=["answer"]
# B names both neighbours every time, in all three seeds. A learns one neighbour perfectly and guesses the other (one in
# eight), so it names both only when the guess is right.

# %% [markdown] id="hook-notice"
# The layers differ by nothing but a cut through the middle of the matrices. What does the cut do? And what could A do with a
# head that is twice as wide? Section {section}`buys` answers; first the machinery.

# %% [markdown] id="split"
# ## Split
#
# **Assume** $X$ of shape $(T, d)$, $H$ heads of width $d_k$, and $W_Q$ of shape $(d, H d_k)$. Project once, then cut the
# *columns* of the result into $H$ blocks. Column $c$ of a product $X W_Q$ is $X$ times column $c$ of $W_Q$, and no
# other column of $W_Q$ has a part in it. So a block of columns of the product comes from the same block of $W_Q$:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \label{heads-are-column-blocks}$$
#
# "Split $Q$ into heads" and "give each head its own matrix $W_Q^{(h)}$" are the **same** layer. The features of $X$
# are not cut: every head reads all of them.

# %% id="split-code"
rng = np.random.default_rng(8)
x = rng.normal(size=(4, 6))
w_query, w_key, w_value, w_output = rng.normal(size=(4, 6, 6)) / np.sqrt(6)
blocks = [x @ w_query[:, 2 * h : 2 * h + 2] for h in range(3)]
assert np.allclose(split_heads(x @ w_query, 3), blocks)
projected = x @ w_query
print("(T, d)", projected.shape, "-> (H, T, d_k)", split_heads(projected, 3).shape)

# %% [markdown] id="split-picture"
# The drawing follows one head through the whole layer, with the sizes of these arrays. The second head takes its two columns of
# $Q$ in every row, attends with keys and values that were cut in the same way, and puts its output back into the same columns.

# %% id="split-figure"
figures.split_and_merge(tokens=4, n_heads=3, d_k=2, head=2)

# %% [markdown] id="spot-reshape"
# ### Spot the mistake: a reshape that comes back
#
# We want $(T, H d_k) \to (H, T, d_k)$. Below, `first` and `second` both have the right shape, and a round-trip test,
# split and undo, passes for both. **Predict** which of them mixes positions.

# %% id="spot-reshape-code" tags=["predicted"]
first = projected.reshape(4, 3, 2).swapaxes(0, 1)
second = projected.reshape(3, 4, 2)
undone = first.swapaxes(0, 1).reshape(4, 6), second.reshape(4, 6)
print("round trips:", [bool((each == projected).all()) for each in undone])
disturbed = projected.copy()
disturbed[3] += 1.0
moved_first = first != disturbed.reshape(4, 3, 2).swapaxes(0, 1)
moved_second = second != disturbed.reshape(3, 4, 2)
print("first: disturbing position 3 moves the heads", moved_first.any(axis=(1, 2)))
print("second: disturbing position 3 moves the heads", moved_second.any(axis=(1, 2)))

# %% id="spot-reshape-figure" tags=["predicted"]
figures.head_split(4, 3, 2)

# %% [markdown] id="spot-reshape-notice" tags=["answer"]
# The second one mixes positions, because memory runs along the rows: the first third of the numbers is all of position 0 and a part of
# position 1. Its "heads" are stretches of the sequence, and a head no longer sees the whole of it. Split the last axis
# first, **then** move the head axis forward. To test it, disturb one position: every head must notice.

# %% [markdown] id="one-head"
# With heads as a leading axis, nothing new is needed: leading axes are separate problems, {eq}`batched-attention`. Head $h$ has its own
# scores, its own softmax, its own values:
#
# $$Z_h = P_h\, X W_V^{(h)}, \qquad
#  P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr) \label{attention-of-one-head}$$
#
# Mind the scale. It undoes the spread of a dot product of $d_k$ terms, and that is the width of **one head**, not $d$. With
# $\sqrt{d}$ and $d_k = d / 64$ the scores of 64 heads would be 8 times too small. **Predict** the shape of all weights for
# $T = 4$ and $H = 3$.

# %% id="one-head-code" tags=["predicted"]
query, key, value = (split_heads(x @ w, 3) for w in (w_query, w_key, w_value))
heads, weights = attention(query, key, value, return_weights=True)
print("weights", weights.shape, " outputs", heads.shape)
print("rows sum to 1:", np.allclose(weights.sum(axis=-1), 1))

# %% [markdown] id="one-head-answer" tags=["answer"]
# The shape is $(3, 4, 4)$, because each of the three heads has a map of its own, with four queries and four keys.

# %% [markdown] id="merge"
# ## Concatenate and project
#
# Now there are $H$ outputs of width $d_v$ for each position. Put them side by side and let one more matrix mix them:
#
# $$\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
# \label{multi-head-attention}$$
#
# Write $W_O$ as $H$ blocks of *rows*, $W_O^{(1)}$ to $W_O^{(H)}$, each of shape $(d_v, d)$. In a product of blocks, block $h$
# of the columns on the left meets block $h$ of the rows on the right:
#
# $$\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)} \label{output-projection-sums-heads}$$
#
# "Concatenate, then project" is a **sum over heads**; heads do not interact in any other way. (Below, the numbers of $W_O$ come twice:
# whole, and cut into its blocks.)

# %% id="merge-verify"
show("output-projection-sums-heads")

# %% [markdown] id="sum-of-maps"
# Put {eq}`attention-of-one-head` in:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$
#
# Each head is a pair: $P_h$, on the left, says *from where*; $W_V^{(h)} W_O^{(h)}$, on the right, says *what* is read and
# into which directions it is written. The second is $(d \times d_v)(d_v \times d)$, and a product has at most the rank of
# its narrowest factor:
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$
#
# A narrow head reads and writes only $d_v$ directions; together they can reach all $d$. **Predict** both ranks for our
# layer, $d = 6$, $d_v = 2$.

# %% id="merge-code" tags=["predicted"]
output = merge_heads(heads) @ w_output
maps = [w_value[:, 2 * h : 2 * h + 2] @ w_output[2 * h : 2 * h + 2] for h in range(3)]
assert np.allclose(output, sum(weights[h] @ x @ maps[h] for h in range(3)))
layer_output = multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=3)
assert np.allclose(output, layer_output)
print("ranks of the heads:", [int(np.linalg.matrix_rank(each)) for each in maps])
print("rank of W_V W_O:   ", np.linalg.matrix_rank(w_value @ w_output))

# %% [markdown] id="merge-answer" tags=["answer"]
# Each head has rank 2, its width $d_v$, and $W_V\, W_O$ has rank 6, because three heads of width 2 have six directions, as many
# as $X$ has features. (These matrices reach both bounds, as random ones almost always do.)

# %% [markdown] id="spot-shapes"
# ### Spot the mistake: shapes that cannot meet
#
# "For each head, $W_V \in \mathbb{R}^{d \times d}$. The heads are concatenated and multiplied by
# $W_O \in \mathbb{R}^{(H d_v) \times d}$." Each sentence alone makes sense.
# **Predict** what happens with $d = 6$, $H = 3$, $d_v = 2$ when both are taken at their word.

# %% id="spot-shapes-code" tags=["predicted"]
square = [weights[h] @ x @ rng.normal(size=(6, 6)) for h in range(3)]
side_by_side = np.hstack(square)
print("concatenated:", side_by_side.shape, " W_O:", w_output.shape)
try:
    side_by_side @ w_output
except ValueError:
    print("rejected:", side_by_side.shape[1], "columns meet", len(w_output), "rows")

# %% [markdown] id="spot-shapes-notice" tags=["answer"]
# The product is rejected: heads of width $d$ make $H d = 18$ columns, so $W_O$ would need $H d$ rows. Either $W_V^{(h)}$ has $d_v$ columns, or
# $W_O$ has $H d$ rows: both layers exist, but the second costs $H$ times more (section {section}`cost`). If $H = 1$ nobody notices;
# test with several heads.

# %% [markdown] id="buys"
# ## What several heads buy
#
# Why concatenate? Suppose the heads shared $V$ and we took the mean of their outputs. Then
#
# $$\frac{1}{H} \sum_{h=1}^{H} P_h V = \Bigl(\frac{1}{H} \sum_{h=1}^{H} P_h\Bigr) V \label{averaging-heads-averages-weights}$$
#
# and a mean of weight matrices is a weight matrix: rows sum to 1, entries are positive. Averaged heads are **one** map of
# weights. What makes heads more than one is that each has its own $W_V^{(h)} W_O^{(h)}$. Even the simplest case, multiples
# $c_h$ of one matrix, leaves the averages behind:
#
# $$\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1} \label{signed-mixture-row-sums}$$
#
# With $c = (1, -1)$ rows sum to 0: a *difference* of two averages, which no single softmax can form.

# %% [markdown] id="why-one-fails"
# Now the two neighbours. **Assume** that the weights depend on places only: $p$ for the place before, $r$ for the place
# after. Take two symbols $a$, $b$, and hold the other places fixed. A linear answer to "is the first one $b$?" adds up: for
# the symbols $(s, s')$ it is $p\,u_s + r\,u_{s'}$ plus a constant, where $u_s$ is what the symbol $s$ contributes. It must be
# larger for $(b, b)$ than for $(a, a)$: $(p + r)(u_b - u_a) > 0$, so $u_b > u_a$. And it must be larger for $(b, a)$ than for
# $(a, b)$: $(p - r)(u_b - u_a) > 0$, so $p > r$. "Is the second one $b$?" has other contributions, but the same argument
# gives $r > p$. **Contradiction**, whatever the width of the head.

# %% [markdown] id="mixture"
# One softmax row can put weight on two places, but it cannot keep them apart: a mixture does not say who came from where.
# Two heads simply use $p = 1$ in one and $r = 1$ in the other.

# %% id="buys-code"
pairs = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
symbols = np.eye(2)
for p in (0.5, 0.6):
    mixtures = p * symbols[pairs[:, 0]] + (1 - p) * symbols[pairs[:, 1]]
    print(f"p = {p}: mixtures of ab, ba, bb, aa (share of b):", mixtures[:, 1])

# %% [markdown] id="honest"
# At $p = 0.5$, $ab$ and $ba$ are the same. At $p = 0.6$ they differ: four distinct numbers! So a *nonlinear* reader could
# tell them all apart: .4 means $ab$. The proof is about a linear answer (and about weights that ignore the
# symbols, which training need not respect). In a Transformer a network follows, so we train that too: one head, then a
# linear map to 128 numbers, of which the negative ones become 0. **Predict** whether that rescues layer A.

# %% id="accuracy-figure" tags=["predicted"]
names = ["one head", "one head, then a network", "two heads"]
means = [record.values("accuracies", name).mean(axis=0) for name in names]
figures.neighbours_named(dict(zip(names, means, strict=True)))

# %% [markdown] id="honest-answer" tags=["answer"]
# It does, in all three seeds, because the network unmixes the two symbols. So in this task heads do not decide what a whole
# model can compute *in principle*; they let a **linear** step move several things at once, unmixed. (Eight symbols are few.
# With more, or with real-valued contents, a mixture of $d$ numbers must at some point lose what two heads keep.)

# %% [markdown] id="honest-notice"
# What did the two heads learn? Nobody told them to divide the work. **Predict** their maps.

# %% id="maps-figure" tags=["predicted"]
figures.divided_work(record.values("maps")[0])

# %% [markdown] id="maps-answer" tags=["answer"]
# One head looks at the place before and the other at the place after: in both maps, each row has practically all its weight
# on one neighbour on the ring. (The figure shows the first seed.)

# %% [markdown] id="maps-notice"
# A map shows where a head looks, not what it is *for*. An experiment can show that: silence one head by zeroing its rows of
# $W_O$, {eq}`output-projection-sums-heads`, and ask again. **Predict** what the layer loses with each head.

# %% id="silent-code" tags=["predicted"]
for seed, silent in zip(record.seeds, record.values("without head"), strict=True):
    for head, (before, after, _) in enumerate(silent):
        kept = f"before {before:.1f}, after {after:.1f}"
        print(f"seed {seed}, head {head} silent: {kept}")

# %% [markdown] id="silent-answer" tags=["answer"]
# With each head the layer loses one of its two answers, completely, and keeps the other. Which head carries which answer
# depends on the seed.

# %% [markdown] id="silent-notice"
# Large trained models look less tidy than such a small layer: many heads can be removed one at a time with little loss (Michel et al., 2019), and a few carry
# recognisable roles (Voita et al., 2019).

# %% [markdown] id="bottleneck"
# What do heads cost, if not weights? **Width.** Head $h$ scores with vectors of $d_k$ entries, so by the rank of a product
#
# $$\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) \le d_k \label{score-matrix-rank-bound}$$
#
# A $T \times T$ table of scores has up to $T$ independent rows; with $d_k = d / H$, more heads make each table poorer. This
# is the *low-rank bottleneck* of Bhojanapalli et al. (2020), who propose to choose $d_k$ by the length of the input
# and not as $d / H$. **Predict** the ranks below for 16 positions and $d = 12$.

# %% id="bottleneck-code" tags=["predicted"]
tokens = rng.normal(size=(16, 12))
w_q, w_k = rng.normal(size=(2, 12, 12))
for n_heads in (1, 3, 12):
    q, k = split_heads(tokens @ w_q, n_heads), split_heads(tokens @ w_k, n_heads)
    rank = np.linalg.matrix_rank(q[0] @ k[0].T)
    print(f"H = {n_heads:2d}: rank of the scores of head 0 =", rank)

# %% [markdown] id="bottleneck-answer" tags=["answer"]
# The ranks are 12, 4 and 1. They equal the width $d_k = d / H$, because that is smaller than the number of positions each time.

# %% [markdown] id="cost"
# ## What it costs: three definitions of heads
#
# Count the weights of {eq}`multi-head-attention`. For each head, $W_Q^{(h)}$ and $W_K^{(h)}$ have $d\, d_k$ entries, $W_V^{(h)}$ and
# $W_O^{(h)}$ have $d\, d_v$:
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# Then everything depends on the width. Narrow heads, or heads of full size:
#
# $$d_k = d_v = \frac{d}{H}:\; N = 4\,d^2, \qquad d_k = d_v = d:\; N = 4\,H\,d^2 \label{parameters-by-head-width}$$
#
# Operations, for narrow heads: four projections of $T$ rows, $2 T d^2$ each, and in every head $4 T^2 d_k$ for scores and
# output, {eq}`attention-flops`; the sum over heads has $H d_k = d$:
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# The number of heads does not appear in it. **Predict** both counts at $d = 512$, $T = 1024$ for 1 and for 8 heads, narrow and full.

# %% id="cost-code" tags=["predicted"]
for n_heads, d_k in ((1, 512), (8, 64), (8, 512)):
    weights_count = costs.multi_head_parameters(512, n_heads=n_heads, d_k=d_k)
    flops = costs.multi_head_attention_flops(1024, 1024, 512, n_heads=n_heads, d_k=d_k)
    print(f"H = {n_heads}, width {d_k:3d}:", end=" ")
    print(f"{weights_count / 1e6:4.1f} M weights, {flops / 1e9:5.1f} GFLOP")

# %% [markdown] id="cost-answer" tags=["answer"]
# Eight narrow heads cost what one head does, about a million weights and 4.3 GFLOP, and eight full ones cost eight times as
# much, because each of them is as large as that one. (Not everything is free with narrow heads:
# there are $H$ maps of $T \times T$ weights, so $H$ times as many exponentials, and, if they are stored, $H$ times the memory.)

# %% [markdown] id="cost-notice"
# Texts define heads in three ways:
#
# | definition | head $h$ asks with | the same as |
# |---|---|---|
# | split $Q = X W_Q$ | columns of $X W_Q$ | own matrices, {eq}`heads-are-column-blocks` |
# | own matrices | $X W_Q^{(h)}$ | a split of the $H d_k$ columns side by side |
# | project $Q$ again | $Q\, W_h^{Q}$ | depends on what $Q$ is |

# %% [markdown] id="definitions"
# Drawn side by side, each with two heads, they differ in where the matrix of a head stands:

# %% id="definitions-figure"
figures.three_definitions()

# %% [markdown] id="twice"
# Third row: if "$Q$" means the input $X$, it is the second definition (so in Vaswani et al., 2017). If $Q$ is already
# $X W_Q$, each head projects twice:
#
# $$Q\, W_h^{Q} = X\, \bigl(W_Q W_h^{Q}\bigr), \qquad Q = X W_Q \label{second-projection-adds-nothing}$$
#
# **Predict** how many weights the extra $W_Q$ adds at $d = 512$, and what it can express that a single matrix for each head
# cannot.

# %% id="twice-code" tags=["predicted"]
again = rng.normal(size=(3, 6, 2))
twice, once = (x @ w_query) @ again, x @ (w_query @ again)
print("equal to one projection:", np.allclose(twice, once))
print("extra weights:", 512 * 512)

# %% [markdown] id="twice-notice" tags=["answer"]
# It adds more than a quarter of a million weights and can express nothing new, because a product of two matrices is one
# matrix. The layer has more weights and more work, and computes the same functions.

# %% [markdown] id="filters"
# ## Heads as the filters of a convolution
#
# "Several heads are like several filters." How far does this go? A **convolution** computes each output from the inputs
# near it, with the same weights everywhere, its **filter**; each place in the filter is a **tap**. Look at {eq}`sum-of-head-maps` with
# heads that each look at one fixed shift: $P_h = S_h$, ones on a diagonal. The sum becomes a convolution, one
# head for each *place* in the filter:
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$
#
# with $Y = X * W$, that is $Y_t = \sum_h x_{t + \Delta_h} W_h$ with zeros beyond the ends. So a filter of width 3 takes three heads: a head
# is like a *tap* of a filter, with all its channels, rather than like a filter.

# %% [markdown] id="filters-scores"
# Can a softmax produce $S_h$? Cordonnier et al. (2020) give the scores a relative encoding of the distance $\delta$ = key
# position minus query position. With $(\delta^2, \delta)$ as encoding and a learned vector, a square can be completed:
#
# $$-\alpha\,(1,\, -2\Delta) \cdot (\delta^2,\, \delta) = -\alpha\,(\delta - \Delta)^2 + \alpha\,\Delta^2 \label{score-peaked-at-shift}$$
#
# The last term is the same for all keys, and the softmax ignores it. What remains is largest at $\delta = \Delta$, and sharp
# for large $\alpha$:
#
# $$\lim_{\alpha \to \infty} \sigma_l\bigl(-\alpha\,(l - t - \Delta)^2\bigr)_j = [\,j = t + \Delta\,] \label{peaked-scores-become-shift}$$
#
# ($l$ runs over the keys). **Predict** the largest error of three such heads against a true
# convolution for $\alpha = 1$ and $\alpha = 20$.

# %% id="filters-code" tags=["predicted"]
signal, kernel = rng.normal(size=12), np.array([0.5, -1.0, 2.0])
position = np.arange(12)
distance = position - position[:, None]
convolved = np.convolve(signal, kernel[::-1], mode="same")
for alpha in (1.0, 5.0, 20.0):
    by_heads = np.zeros(12)
    for shift, tap in zip((-1, 0, 1), kernel, strict=True):
        by_heads += softmax(-alpha * (distance - shift) ** 2) @ signal * tap
    error = np.abs(by_heads - convolved)[1:-1].max()
    print(f"alpha = {alpha:4.1f}: largest error away from the ends {error:.8f}")

# %% [markdown] id="filters-answer" tags=["answer"]
# At $\alpha = 1$ the largest error is 2.8, because each head still blurs its neighbours; at $\alpha = 20$ it is below $10^{-7}$.
# So the heads come as near to the convolution as one likes, but never reach it exactly.

# %% [markdown] id="filters-notice"
# (At the ends a head has no key to look at and takes the nearest one instead of a zero.) Cordonnier et al. prove that with
# one head for each pixel of the filter, wide enough, and such an encoding, self-attention can express any convolution. The
# converse fails: the weights of a head may depend on the input.

# %% [markdown] id="torch"
# ## The same numbers as torch
#
# Is this what `torch.nn.MultiheadAttention` computes? Copy its weights and compare. Three things bite: `in_proj_weight`
# stacks the matrices of queries, keys and values, **in this order, as rows**, $(3d, d)$, since a linear layer computes
# $x W^\top$; the axes are $(T, B, d)$ unless `batch_first=True`; and True in its masks means *hide*.
# `MultiHeadAttention.from_torch` knows all three. We fill the weights by hand (a lesson must not depend on torch's
# random numbers).

# %% id="torch-code"
options = {"bias": False, "batch_first": True, "dtype": torch.float64}
theirs = torch.nn.MultiheadAttention(embed_dim=6, num_heads=3, **options)
packed = np.concatenate([w_query.T, w_key.T, w_value.T])
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.from_numpy(packed))
    theirs.out_proj.weight.copy_(torch.from_numpy(w_output.T))
batch = torch.from_numpy(x)[None]
from_torch = theirs(batch, batch, batch)[0][0].detach().numpy()
from_ours = MultiHeadAttention.from_torch(theirs)(batch)[0].detach().numpy()
print("packed", packed.shape)
same = np.allclose(from_torch, output), np.allclose(from_ours, output)
print("torch equals {eq}`multi-head-attention`:", same[0], " our layer:", same[1])

# %% [markdown] id="torch-axes"
# And without `batch_first`? Torch then takes the first axis for positions. No error: with one sequence in the batch, each
# position becomes a sequence of its own. **Predict** what attention does with a sequence of length 1.

# %% id="torch-axes-code" tags=["predicted"]
theirs.batch_first = False
wrong, wrong_weights = theirs(batch, batch, batch)
all_one, linear = bool((wrong_weights == 1).all()), x @ w_value @ w_output
print("weights", tuple(wrong_weights.shape), "all equal to 1:", all_one)
print("output is X W_V W_O:", np.allclose(wrong[0].detach().numpy(), linear))

# %% [markdown] id="torch-axes-notice" tags=["answer"]
# Attention gives all the weight to the only key there is, so the layer has become a linear map of each position alone, and the shape of its output
# gives nothing away.

# %% [markdown] id="sharing"
# ## Shared keys and values
#
# A model that writes must keep the keys and values of everything so far (section {section}`cache`), for each head. Shazeer (2019) lets all
# query
# heads share **one** key head and one value head: *multi-query* attention. Ainslie et al. (2023) stop between the
# extremes: *grouped-query* attention has $H_{kv}$ key heads (and value heads), each for a group of $g$ neighbouring query
# heads. With heads counted from 0:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \label{grouped-query-attention}$$
#
# Query heads still have their own weights $P_h$, for their queries differ. In code (`enable_gqa=True` as in torch) the key heads
# are repeated: 0 0 1 1, with `repeat`. It is easily mistaken for `tile`, 0 1 0 1:

# %% id="sharing-figure"
figures.group_map(4, 2)

# %% [markdown] id="sharing-predict"
# **Predict** whether a test of shapes can tell one from the other.

# %% id="sharing-code" tags=["predicted"]
queries = rng.normal(size=(4, 5, 3))
shared = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 3))  # keys, values
grouped = attention(queries, *shared, enable_gqa=True)
repeated = attention(queries, *(repeat_key_value(array, 2) for array in shared))
tiled = attention(queries, *(np.tile(array, (2, 1, 1)) for array in shared))
print("same shape:", grouped.shape == tiled.shape)
print("repeat:", np.allclose(grouped, repeated), " tile:", np.allclose(grouped, tiled))

# %% [markdown] id="sharing-answer" tags=["answer"]
# It does not, because the shapes agree; only the numbers differ. Trained with tiles, a model may do as well: it is the same up
# to the order of its query heads. But weights trained with groups, loaded into it, compute another function.

# %% [markdown] id="pooling"
# A trained multi-head model can be converted. Which single matrix stands best for the $g$ key matrices of a group? The
# nearest one: set the derivative of the squared distance by $W$ to zero, $\sum_h (W_K^{(h)} - W) = 0$:
#
# $$\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \frac{1}{g} \sum_{h=1}^{g} W_K^{(h)} \label{mean-pooled-key-heads}$$

# %% [markdown] id="pooling-predict"
# Ainslie et al. start from this mean and train on with 5 % of the original compute. A matrix that is near need not give a
# function that is near: two heads that look in opposite directions may have a mean that looks nowhere. **Predict** how our
# task fares, when four key heads are reduced to one: at once, and after 5 and 20 % more steps.

# %% id="pooling-code" tags=["predicted"]
pooled = SHARING.load()
print("before, with four key heads:", pooled.values("four heads").round(2))
print("one key head, after % of the steps:", 100 * pooled.values("steps")[0] // 600)
for how in ("mean", "first", "random"):
    shares = pooled.values("one key head", how).round(2)
    for seed, row in zip(pooled.seeds, shares, strict=True):
        print(f"{how:6} seed {seed}: {row}")

# %% [markdown] id="pooling-notice" tags=["answer"]
# At once every conversion fails, the mean included. But a little training brings the mean back soonest, then the
# first head, then random matrices, in all three seeds: the order that Ainslie et al. report for their conversions. Here one
# key head ends as good as four (queries can still differ); on a task this small that says little about large ones. They
# found quality close to multi-head with grouped heads and a loss with a single one.

# %% [markdown] id="cache"
# ## The cache
#
# A causal model writes token $t$. Its query is new; the keys and values of the past were all computed before, and under a
# causal mask nothing later can change them. So **keep** them. Row $t$ of the full pass reads only the first $t$ keys,
# {eq}`causal-prefix-invariance`:
#
# $$z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t \label{decoding-equals-full-pass}$$
#
# with the causal mask on the right. Decoding with a cache is the *same function*, row by row. **Predict** whether it also
# holds without the causal mask, and what happens when the single new query gets a causal mask that starts at the top
# left.

# %% id="cache-code" tags=["predicted"]
full = attention(query, key, value, is_causal=True)
cache, rows = KeyValueCache(), []
for t in range(4):
    keys, values = cache.append(key[:, t : t + 1], value[:, t : t + 1])
    new, offset = query[:, t : t + 1], len(cache) - 1
    rows.append(attention(new, keys, values, is_causal=True, q_offset=offset))
decoded = np.concatenate(rows, axis=1)
print("decode = full pass:", np.allclose(decoded, full))
print("without causality: ", np.allclose(decoded, attention(query, key, value)))
top_left = attention(query[:, 3:], key, value, is_causal=True)
print("mask at the top left: sees key 0 only:", np.allclose(top_left, value[:, :1]))

# %% [markdown] id="cache-answer" tags=["answer"]
# It does not hold without the causal mask, because old outputs would then change with every new token. And with a mask that
# starts at the top left, the new query sees key 0 only, because it is taken for the first row and not for the last. So the
# mask must know the offset (lesson {lesson}`masking`).

# %% [markdown] id="cache-bytes"
# What is kept? For each layer and each *key* head one key and one value; with $b$ bytes for a number and $d_k = d_v =
# d_{\mathrm{head}}$:
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# The number of query heads plays no part. **Predict**: 32 layers, 32 heads of width 128, 16-bit numbers. How much
# memory does one token need, and how much do 32 768 tokens need? What changes with 8 key heads, and with 1?

# %% id="cache-bytes-code" tags=["predicted"]
for n_kv_heads in (32, 8, 1):
    per_token = costs.cache_bytes_per_token(n_kv_heads, 128, 128, n_layers=32)
    whole = per_token * 32768 / 2**30
    kib = f"{per_token / 1024:5.0f} KiB per token"
    print(f"{n_kv_heads:2d} key heads: {kib}, {whole:5.1f} GiB for 32768 tokens")

# %% id="cache-figure" tags=["predicted"]
context = np.geomspace(256, 131072, 10)
one_head = costs.cache_bytes_per_token(1, 128, 128, n_layers=32) * context / 2**30
caches = {f"{n} key heads": n * one_head for n in (32, 8)} | {"1 key head": one_head}
model_weights = 32 * 12 * 4096**2 * 2 / 2**30
figures.cache_growth(context, caches, model_weights)

# %% [markdown] id="cache-bytes-answer" tags=["answer"]
# One token takes half a megabyte and 32 768 tokens take 16 GiB; 8 key heads divide both by 4, and 1 key head by 32, because the
# cache is proportional to $H_{kv}$. (The dotted line of the figure counts $12 d^2$ weights a layer at $d = 4096$: $4 d^2$ here,
# $8 d^2$ in the network of two layers that follows in a Transformer.)

# %% [markdown] id="cache-explore"
# Every step of decoding must **read** the whole cache, to do one
# multiply-add with each number, so memory sets the pace (Shazeer's point). Sharing by $g$ divides both the memory and the
# reading. What do heads lose when they share their keys, and how much smaller does the cache get? In the card, four heads made
# by hand read the sentence of lesson {lesson}`attention`, two and two with the same keys. Mute them one by one to see what each
# adds to "it". Then merge the keys of all four into two and into one, by the mean of {eq}`mean-pooled-key-heads`. Last, shorten
# the context of the large model until its cache is smaller than its attention weights.

# %% id="explorable"
figures.heads_explorable()

# %% [markdown] id="cache-work"
# What does the cache save? Without it each step is a full pass: the four projections of the whole prefix, $8 t d^2$
# operations at length $t$, and in all
#
# $$F = \sum_{t=1}^{T} 8\, t\, d^2 = 4\, T (T + 1)\, d^2 \label{projection-flops-without-cache}$$
#
# With it, each token is projected once: $8 T d^2$ in all. The ratio is $(T + 1) / 2$. **Predict** it for $T = 256$. The
# scores save as well: each step needs their last row only, instead of all. Count first, then measure on your own machine;
# expect less than the count, for a step with one row keeps a processor less busy.

# %% id="cache-work-code" tags=["predicted"]
length, d = 256, 256
flops = costs.multi_head_attention_flops
with_cache = without = 0
for t in range(1, length + 1):
    with_cache += flops(1, t, d, projected_kv_len=1, n_heads=8)
    without += flops(t, t, d, n_heads=8)
print("projections alone:", 4 * length * (length + 1) * d**2 / (8 * length * d**2))
print(f"all products: {without / with_cache:.1f} times the operations without a cache")

# %% [markdown] id="cache-work-answer" tags=["answer"]
# The projections take 128.5 times as many operations without a cache. All products together take 137 times as many, because
# a full pass also computes all rows of the scores again at every step, where the cache needs one.

# %% id="cache-live" tags=["live"]
import time

from attn_course.modules.cache import KeyValueCache as TorchCache

layer = MultiHeadAttention(256, 8, is_causal=True).requires_grad_(False)
text = torch.zeros(1, 256, 256).normal_()


def seconds(with_cache):
    start, cache = time.perf_counter(), TorchCache()
    for t in range(256):
        past, new = text[:, : t + 1], text[:, t : t + 1]
        last = layer(new, cache=cache) if with_cache else layer(past)[:, -1:]
    return time.perf_counter() - start, last


(slow, plain), (fast, cached) = seconds(False), seconds(True)
print(f"256 tokens: {slow / fast:.1f} times as long without a cache")
print("same last row:", torch.allclose(plain, cached, atol=1e-5))

# %% [markdown] id="break"
# ### Break the machine
#
# Three mistakes with heads hide in the twin beside this machine, one in each of the next three levels. All shapes fit in each of
# them. Find the smallest input that shows each mistake, and the lamp that proves it.

# %% id="break-card"
from attn_course.game.card import break_the_machine

break_the_machine("heads-tiled")

# %% [markdown] id="limits"
# ## Limits
#
# - **Narrow heads** have poor score tables, {eq}`score-matrix-rank-bound`: more heads at the same $d$ is not always better.
# - **A network behind one head** can unmix what it mixed, as it did in our task; heads help a linear step.
# - **Maps are not reasons.** Silence a head to learn what it is for; in large models many may go.
# - **The cache grows without end**, by {eq}`kv-cache-bytes`. Sharing divides it; latent attention keeps a compressed vector instead
#   (lesson {lesson}`absorption`), linear attention a state of fixed size (lesson {lesson}`linear`).
# - **Sharing must be trained**: converted at once, our model failed.

# %% id="verify-lesson"
verify_lesson("heads")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape or cost |
# |---|---|---|
# | split | $X W_Q^{(h)}$, columns of $X W_Q$, {eq}`heads-are-column-blocks` | $(T, H d_k) \to (H, T, d_k)$ |
# | head | $Z_h = P_h X W_V^{(h)}$, scale $1 / \sqrt{d_k}$, {eq}`attention-of-one-head` | $(H, T, d_v)$ |
# | merge | $[Z_1 \cdots Z_H] W_O = \sum_h Z_h W_O^{(h)}$, {eq}`output-projection-sums-heads` | $(T, d)$ |
# | rank | of $W_V^{(h)} W_O^{(h)}$ at most $d_v$, {eq}`value-output-rank-bound` | |
# | weights | $N = H (2 d\, d_k + 2 d\, d_v)$, {eq}`multi-head-parameters` | $4 d^2$ if narrow |
# | work | $F = 8 T d^2 + 4 T^2 d$, {eq}`multi-head-flops` | no $H$ |
# | sharing | query head $h$ uses key head $\lfloor h / g \rfloor$, {eq}`grouped-query-attention` | $g = H / H_{kv}$ |
# | cache | $2\, n_{\mathrm{layers}} H_{kv}\, d_{\mathrm{head}}\, b$, {eq}`kv-cache-bytes` | bytes per token |

# %% [markdown] id="summary"
# ## Summary
#
# - Splitting $Q$ is giving each head a block of columns; split the features first, then swap axes.
# - Concatenation and $W_O$ are a sum over heads of maps of rank at most $d_v$.
# - Narrow heads cost what one head costs; heads of full size $H$ times as much.
# - One row of weights mixes; two heads keep two things apart for a linear reader.
# - Fixed shifts make heads a convolution, one head for each tap.
# - A causal layer decodes from a cache with the same result; key heads alone set its size, and groups share them.
#
# Now the [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): section 3.2.2, heads and their cost.
# - J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), [arXiv:1911.03584](https://arxiv.org/abs/1911.03584): heads and
#   convolutions, the quadratic encoding.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): the low-rank bottleneck.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): one key head for all, and why decoding waits for memory.
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups, mean-pooled checkpoints.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed, heads with a role.
