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
# **You need** chapters {lesson}`attention`, {lesson}`self_attention` and {lesson}`masking` (attention, projections, causal masks).
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% id="setup"
import numpy as np
import torch

from attn_course import costs, show, verify
from attn_course.figures import charts
from attn_course.lessons.heads import figures
from attn_course.lessons.heads.experiments import HEADS, SHARING
from attn_course.modules.multi_head import MultiHeadAttention
from attn_course.reference import KeyValueCache, attention, merge_heads, multi_head_attention
from attn_course.reference import repeat_key_value, softmax, split_heads

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="hook"
# ## One wide head or two narrow ones?
#
# Eight places form a ring; on each stands one of eight symbols, drawn at random. Each position shall name the symbol
# **before** it and the symbol **after** it. One layer of attention reads a learned vector of the symbol plus one of the
# place ($d = 32$), and a linear map of its output gives the two answers. Layer A has one head of width 32, layer B two heads
# of width 16. Both layers have exactly $4 d^2 = 4096$ weights. **Predict** how often each names both neighbours after
# training.

# %% id="hook-code" tags=["predicted"]
record = HEADS.load()
for layer, name in (("A", "one head"), ("B", "two heads")):
    before, after, both = record.values("accuracies", name).T
    print(f"{layer}: before {before.round(2)}  after {after.round(2)}  both {both.round(2)}   (three seeds)")

# %% [markdown] id="hook-notice"
# A learns one neighbour perfectly and guesses the other (one in eight). B has both, in all three seeds. Nothing was added but a
# cut through the middle of the matrices. What does the cut do? And could A have done better, since its head is twice as
# wide? Section {section}`buys` answers; first the machinery.

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
verify("heads-are-column-blocks")
rng = np.random.default_rng(8)
x = rng.normal(size=(4, 6))
w_query, w_key, w_value, w_output = rng.normal(size=(4, 6, 6)) / np.sqrt(6)
blocks = [x @ w_query[:, 2 * h : 2 * h + 2] for h in range(3)]
assert np.allclose(split_heads(x @ w_query, 3), blocks)
print("(T, d)", (x @ w_query).shape, "-> (H, T, d_k)", split_heads(x @ w_query, 3).shape)

# %% [markdown] id="spot-reshape"
# ### Spot the mistake: a reshape that comes back
#
# We want $(T, H d_k) \to (H, T, d_k)$. Below, `first` and `second` both have the right shape, and a round-trip test,
# split and undo, passes for both. **Predict** which of them mixes positions.

# %% id="spot-reshape-code" tags=["predicted"]
projected = x @ w_query
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

# %% id="spot-reshape-figure"
figures.head_split(4, 3, 2)

# %% [markdown] id="spot-reshape-notice"
# The second. Memory runs along the rows, so the first third of the numbers is all of position 0 and a part of
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
verify("attention-of-one-head")
query, key, value = (split_heads(x @ w, 3) for w in (w_query, w_key, w_value))
heads, weights = attention(query, key, value, return_weights=True)
print("weights", weights.shape, " outputs", heads.shape)
print("rows sum to 1:", np.allclose(weights.sum(axis=-1), 1))

# %% [markdown] id="merge"
# ## Concatenate and project
#
# $(3, 4, 4)$: one map for each head. Now $H$ outputs of width $d_v$ for each position. Put them side by side and let one more
# matrix mix them:
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

# %% id="merge-verify" tags=["predicted"]
verify("multi-head-attention", "output-projection-sums-heads")
verify("sum-of-head-maps", "value-output-rank-bound")
show("output-projection-sums-heads")

# %% id="merge-code"
output = merge_heads(heads) @ w_output
maps = [w_value[:, 2 * h : 2 * h + 2] @ w_output[2 * h : 2 * h + 2] for h in range(3)]
assert np.allclose(output, sum(weights[h] @ x @ maps[h] for h in range(3)))
assert np.allclose(output, multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=3))
print("ranks of the heads:", [int(np.linalg.matrix_rank(each)) for each in maps])
print("rank of W_V W_O:   ", np.linalg.matrix_rank(w_value @ w_output))

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
    print("rejected: 18 columns meet 6 rows")

# %% [markdown] id="spot-shapes-notice"
# Heads of width $d$ make $H d = 18$ columns, so $W_O$ would need $H d$ rows. Either $W_V^{(h)}$ has $d_v$ columns, or
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

# %% id="buys-verify"
verify("averaging-heads-averages-weights", "signed-mixture-row-sums")

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
means = np.array([record.values("accuracies", name).mean(axis=0) for name in names])
charts.bars(
    ["symbol before", "symbol after", "both"],
    dict(zip(names, means, strict=True)),
    title="Two heads name both neighbours; one head needs a network behind it",
    alt="Share named right, mean of three seeds, for the symbol before, the symbol after, and both. "
    + " ".join(f"{name}: {row[0]:.2f}, {row[1]:.2f}, {row[2]:.2f}." for name, row in zip(names, means, strict=True)),
    x_label="",
    y_label="share named right",
    y_limits=(0.0, 1.18),
)

# %% [markdown] id="honest-notice"
# It does, in all three seeds: the network unmixes the two symbols. So here heads are no matter of what a whole model can compute
# *in principle*; they let a **linear** step move several things at once, unmixed. (Eight symbols are few. With
# more, or with real-valued contents, a mixture of $d$ numbers must at some point lose what two heads keep.)
#
# What did the two heads learn? Nobody told them to divide the work. **Predict** their maps.

# %% id="maps-figure" tags=["predicted"]
learned = record.values("maps")[0]
title = "Two heads have divided the work: one looks back, the other ahead (first seed)"
figures.head_maps(learned, title=title, annotate=False)

# %% [markdown] id="maps-notice"
# Each row has practically all its weight on one neighbour on the ring. But a map shows where a head looks, not what it is
# *for*. An experiment does: silence one head by zeroing its rows of $W_O$, {eq}`output-projection-sums-heads`, and ask again. **Predict**
# what
# each loses.

# %% id="silent-code" tags=["predicted"]
for seed, silent in zip(record.seeds, record.values("without head"), strict=True):
    for head, (before, after, _) in enumerate(silent):
        print(f"seed {seed}, head {head} silent: before {before:.1f}, after {after:.1f}")

# %% [markdown] id="silent-notice"
# One head carries one answer, completely; which of them carries which is up to the seed. Large trained models look less
# tidy: many heads can be removed one at a time with little loss (Michel et al., 2019), and a few carry
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
verify("score-matrix-rank-bound")
tokens, w_q, w_k = rng.normal(size=(16, 12)), rng.normal(size=(12, 12)), rng.normal(size=(12, 12))
for n_heads in (1, 3, 12):
    q, k = split_heads(tokens @ w_q, n_heads), split_heads(tokens @ w_k, n_heads)
    print(f"H = {n_heads:2d}: rank of the scores of head 0 =", np.linalg.matrix_rank(q[0] @ k[0].T))

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
# No $H$ anywhere. **Predict** both counts at $d = 512$, $T = 1024$ for 1 and for 8 heads, narrow and full.

# %% id="cost-verify" tags=["predicted"]
verify("multi-head-parameters", "parameters-by-head-width", "multi-head-flops")

# %% id="cost-code"
for n_heads, d_k in ((1, 512), (8, 64), (8, 512)):
    weights_count = costs.multi_head_parameters(512, n_heads=n_heads, d_k=d_k)
    flops = costs.multi_head_attention_flops(1024, 1024, 512, n_heads=n_heads, d_k=d_k)
    print(f"H = {n_heads}, width {d_k:3d}: {weights_count / 1e6:4.1f} M weights, {flops / 1e9:5.1f} GFLOP")

# %% [markdown] id="cost-notice"
# Eight narrow heads cost what one does; eight full ones cost eight times as much. (Not everything is free:
# there are $H$ maps of $T \times T$ weights, so $H$ times as many exponentials, and, if they are stored, $H$ times the memory.)
#
# Texts define heads in three ways:
#
# | definition | head $h$ asks with | the same as |
# |---|---|---|
# | split $Q = X W_Q$ | columns of $X W_Q$ | own matrices, {eq}`heads-are-column-blocks` |
# | own matrices | $X W_Q^{(h)}$ | a split of the $H d_k$ columns side by side |
# | project $Q$ again | $Q\, W_h^{Q}$ | depends on what $Q$ is |

# %% [markdown] id="twice"
# Third row: if "$Q$" means the input $X$, it is the second definition (so in Vaswani et al., 2017). If $Q$ is already
# $X W_Q$, each head projects twice:
#
# $$Q\, W_h^{Q} = X\, \bigl(W_Q W_h^{Q}\bigr), \qquad Q = X W_Q \label{second-projection-adds-nothing}$$
#
# **Predict** how many weights the extra $W_Q$ adds at $d = 512$, and what it can express that a single matrix for each head
# cannot.

# %% id="twice-code" tags=["predicted"]
verify("second-projection-adds-nothing")
again = rng.normal(size=(3, 6, 2))
print("equal to one projection:", np.allclose((x @ w_query) @ again, x @ (w_query @ again)))
print("extra weights:", 512 * 512)

# %% [markdown] id="twice-notice"
# A quarter of a million, for nothing: a product of two matrices is one matrix. More weights and more work, no new function.

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

# %% id="filters-verify" tags=["predicted"]
verify("shifted-heads-convolve", "score-peaked-at-shift", "peaked-scores-become-shift")

# %% id="filters-code"
signal, kernel = rng.normal(size=12), np.array([0.5, -1.0, 2.0])
position = np.arange(12)
for alpha in (1.0, 5.0, 20.0):
    by_heads = np.zeros(12)
    for shift, tap in zip((-1, 0, 1), kernel, strict=True):
        by_heads += softmax(-alpha * (position - position[:, None] - shift) ** 2) @ signal * tap
    error = np.abs(by_heads - np.convolve(signal, kernel[::-1], mode="same"))[1:-1].max()
    print(f"alpha = {alpha:4.1f}: largest error away from the ends {error:.8f}")

# %% [markdown] id="filters-notice"
# At $\alpha = 1$ each head blurs its neighbours; at 20 the error is below $10^{-7}$: as near as one likes, never exact. (At
# the ends a head has no key to look at and takes the nearest one instead of a zero.) Their theorem: with one head for
# each pixel of the filter, wide enough, and such an encoding, self-attention can express any convolution. The converse
# fails: the weights of a head may depend on the input.

# %% [markdown] id="torch"
# ## The same numbers as torch
#
# Is this what `torch.nn.MultiheadAttention` computes? Copy its weights and compare. Three things bite: `in_proj_weight`
# stacks the matrices of queries, keys and values, **in this order, as rows**, $(3d, d)$, since a linear layer computes
# $x W^\top$; the axes are $(T, B, d)$ unless `batch_first=True`; and True in its masks means *hide*.
# `MultiHeadAttention.from_torch` knows all three. We fill the weights by hand (a lesson must not depend on torch's
# random numbers).

# %% id="torch-code"
theirs = torch.nn.MultiheadAttention(embed_dim=6, num_heads=3, bias=False, batch_first=True, dtype=torch.float64)
packed = np.concatenate([w_query.T, w_key.T, w_value.T])
with torch.no_grad():
    theirs.in_proj_weight.copy_(torch.from_numpy(packed))
    theirs.out_proj.weight.copy_(torch.from_numpy(w_output.T))
batch = torch.from_numpy(x)[None]
from_torch = theirs(batch, batch, batch)[0][0].detach().numpy()
from_ours = MultiHeadAttention.from_torch(theirs)(batch)[0].detach().numpy()
print("packed", packed.shape)
print("torch equals {eq}`multi-head-attention`:", np.allclose(from_torch, output), " our layer:", np.allclose(from_ours, output))

# %% [markdown] id="torch-axes"
# And without `batch_first`? Torch then takes the first axis for positions. No error: with one sequence in the batch, each
# position becomes a sequence of its own. **Predict** what attention does with a sequence of length 1.

# %% id="torch-axes-code" tags=["predicted"]
theirs.batch_first = False
wrong, wrong_weights = theirs(batch, batch, batch)
print("weights", tuple(wrong_weights.shape), "all equal to 1:", bool((wrong_weights == 1).all()))
print("output is X W_V W_O:", np.allclose(wrong[0].detach().numpy(), x @ w_value @ w_output))

# %% [markdown] id="torch-axes-notice"
# One key gets all the weight: the layer has become a linear map of each position alone, and the shape of its output
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
# are repeated: 0 0 1 1, with `repeat`. Easily mistaken for it: `tile`, 0 1 0 1. **Predict** whether a shape test finds the
# difference.

# %% id="sharing-figure" tags=["predicted"]
figures.group_map(4, 2)

# %% id="sharing-code"
verify("grouped-query-attention")
queries, shared_keys, shared_values = rng.normal(size=(4, 5, 3)), rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 3))
grouped = attention(queries, shared_keys, shared_values, enable_gqa=True)
repeated = attention(queries, repeat_key_value(shared_keys, 2), repeat_key_value(shared_values, 2))
tiled = attention(queries, np.tile(shared_keys, (2, 1, 1)), np.tile(shared_values, (2, 1, 1)))
print("same shape:", grouped.shape == tiled.shape)
print("repeat:", np.allclose(grouped, repeated), " tile:", np.allclose(grouped, tiled))

# %% [markdown] id="pooling"
# The shapes agree, the numbers do not. Trained with tiles, a model may do as well: it is the same up to the order of its query
# heads. But weights trained with groups, loaded into it, compute another function.
#
# A trained multi-head model can be converted. Which single matrix stands best for the $g$ key matrices of a group? The
# nearest one: set the derivative of the squared distance by $W$ to zero, $\sum_h (W_K^{(h)} - W) = 0$:
#
# $$\arg\min_{W} \sum_{h=1}^{g} \bigl\| W_K^{(h)} - W \bigr\|_F^2 = \frac{1}{g} \sum_{h=1}^{g} W_K^{(h)} \label{mean-pooled-key-heads}$$

# %% [markdown] id="pooling-predict"
# Ainslie et al. start from this mean and train on with 5 % of the original compute. Near as a matrix does not
# mean near as a function: two heads that look in opposite directions may have a mean that looks nowhere. **Predict** how our
# task fares, when four key heads are reduced to one: at once, and after 5 and 20 % more steps.

# %% id="pooling-code" tags=["predicted"]
verify("mean-pooled-key-heads")
pooled = SHARING.load()
print("before, with four key heads:", pooled.values("four heads").round(2))
print("one key head, after % of the steps:", 100 * pooled.values("steps")[0] // 600)
for how in ("mean", "first", "random"):
    for seed, row in zip(pooled.seeds, pooled.values("one key head", how).round(2), strict=True):
        print(f"{how:6} seed {seed}: {row}")

# %% [markdown] id="pooling-notice"
# At once all conversions fail, the mean included. But a little training brings the mean back soonest, then the
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

# %% id="cache-verify" tags=["predicted"]
verify("decoding-equals-full-pass")

# %% id="cache-code"
full = attention(query, key, value, is_causal=True)
cache, rows = KeyValueCache(), []
for t in range(4):
    keys, values = cache.append(key[:, t : t + 1], value[:, t : t + 1])
    rows.append(attention(query[:, t : t + 1], keys, values, is_causal=True, q_offset=len(cache) - 1))
print("decode = full pass:", np.allclose(np.concatenate(rows, axis=1), full))
unmasked = attention(query, key, value)
print("without causality: ", np.allclose(np.concatenate(rows, axis=1), unmasked))
top_left = attention(query[:, 3:], key, value, is_causal=True)
print("mask at the top left: sees key 0 only:", np.allclose(top_left, value[:, :1]))

# %% [markdown] id="cache-bytes"
# It needs the causal mask: otherwise old outputs would change with every new token. And the mask must know the
# offset (chapter {lesson}`masking`): the new query is the last row, not the first.
#
# What is kept? For each layer and each *key* head one key and one value; with $b$ bytes for a number and $d_k = d_v =
# d_{\mathrm{head}}$:
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# The number of query heads plays no part. **Predict**: 32 layers, 32 heads of width 128, 16-bit numbers. How much for
# one token, and for 32 768 tokens? What do 8 key heads change, and 1?

# %% id="cache-bytes-code" tags=["predicted"]
verify("kv-cache-bytes")
for n_kv_heads in (32, 8, 1):
    per_token = costs.cache_bytes_per_token(n_kv_heads, 128, 128, n_layers=32)
    whole = per_token * 32768 / 2**30
    print(f"{n_kv_heads:2d} key heads: {per_token / 1024:5.0f} KiB per token, {whole:5.1f} GiB for 32768 tokens")

# %% id="cache-figure"
context = np.geomspace(256, 131072, 10)
one_head = costs.cache_bytes_per_token(1, 128, 128, n_layers=32) * context / 2**30
caches = {"32 key heads": 32 * one_head, "8 key heads": 8 * one_head, "1 key head": one_head}
charts.lines(
    context,
    caches,
    title="With 32 key heads the cache outgrows the weights before 32 768 tokens",
    alt="GiB of cache against tokens of context on two logarithmic axes for 32, 8 and 1 key heads, 32 layers of width 4096, 16-bit. Three "
    "parallel lines: at 32768 tokens 16, 4 and 0.5 GiB; a dotted line at 12 GiB marks the weights of such a model.",
    x_label="tokens of context",
    y_label="GiB of cache",
    x_log=True,
    y_log=True,
    references={"weights": 32 * 12 * 4096**2 * 2 / 2**30},
)

# %% [markdown] id="cache-explore"
# Half a megabyte for every token. (The dotted line counts $12 d^2$ weights a layer at $d = 4096$: $4 d^2$ here, $8 d^2$ in
# the network of two layers that follows in a Transformer.) And every step of decoding must **read** the whole cache, to do one
# multiply-add with each number, so memory sets the pace (Shazeer's point). Sharing by $g$ divides both the memory and the
# reading. Try it: shorten the context until the cache is smaller than the weights of attention alone, then choose grouped
# heads.

# %% id="explorable"
figures.heads_explorable()

# %% [markdown] id="cache-work"
# What does the cache save? Without it each step is a full pass: the four projections of the whole prefix, $8 t d^2$
# operations at length $t$, and in all
#
# $$F = \sum_{t=1}^{T} 8\, t\, d^2 = 4\, T (T + 1)\, d^2 \label{projection-flops-without-cache}$$
#
# With it, each token is projected once: $8 T d^2$ in all. The ratio is $(T + 1) / 2$. **Predict** it for $T = 256$. The
# scores save as well: the last row only, instead of all. Count first, then measure on your own machine; expect less than the
# count, for a step with one row keeps a processor less busy.

# %% id="cache-work-verify" tags=["predicted"]
verify("projection-flops-without-cache")

# %% id="cache-work-code"
length, d_model = 256, 256
steps = range(1, length + 1)
with_cache = sum(costs.multi_head_attention_flops(1, t, d_model, projected_kv_len=1, n_heads=8) for t in steps)
without = sum(costs.multi_head_attention_flops(t, t, d_model, n_heads=8) for t in steps)
print("projections alone:", 4 * length * (length + 1) * d_model**2 / (8 * length * d_model**2))
print(f"all products: {without / with_cache:.1f} times the operations without a cache")

# %% id="cache-live" tags=["live"]
import time

from attn_course.modules.cache import KeyValueCache as TorchCache

layer = MultiHeadAttention(256, 8, is_causal=True).requires_grad_(False)
text = torch.zeros(1, 256, 256).normal_()


def seconds(with_cache):
    start, cache = time.perf_counter(), TorchCache()
    for t in range(256):
        last = layer(text[:, t : t + 1], cache=cache) if with_cache else layer(text[:, : t + 1])[:, -1:]
    return time.perf_counter() - start, last


(slow, plain), (fast, cached) = seconds(False), seconds(True)
print(f"256 tokens: {slow / fast:.1f} times as long without a cache")
print("same last row:", torch.allclose(plain, cached, atol=1e-5))

# %% [markdown] id="limits"
# ## Limits
#
# - **Narrow heads** have poor score tables, {eq}`score-matrix-rank-bound`: more heads at the same $d$ is not always better.
# - **A network behind one head** can unmix what it mixed, as it did in our task; heads help a linear step.
# - **Maps are not reasons.** Silence a head to learn what it is for; in large models many may go.
# - **The cache grows without end**, by {eq}`kv-cache-bytes`. Sharing divides it; latent attention keeps a compressed vector instead
#   (chapter {lesson}`absorption`), linear attention a state of fixed size (chapter {lesson}`linear`).
# - **Sharing must be trained**: converted at once, our model failed.

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
