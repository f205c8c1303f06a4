# %% [markdown] id="title"
# # {lesson}`flash` FlashAttention: running attention fast
#
# The formula of lesson {lesson}`attention` is four lines of code, and on a GPU these four lines leave most of the machine idle. This
# lesson finds out what they wait for, rearranges the sums so that they wait less, takes the same steps for the
# gradients, and ends at a kernel: a program for a GPU, written in Python, that you can follow line by line.
#
# **Afterwards you can** predict the time of a kernel before you measure it, derive softmax over blocks, write the
# forward and the backward pass in tiles, count what they move, split keys over programs, and read and write a Triton
# kernel.
#
# **You need** lessons {lesson}`softmax`, {lesson}`attention`, {lesson}`gradients` and {lesson}`masking`; section
# {section}`heads/cache` of lesson {lesson}`heads` for decoding. Triton needs Linux. No GPU is needed. **Time:** 75
# minutes, without the [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% id="setup"
import inspect
import os

import numpy as np
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # NumPy plays the GPU; set before the import

import triton
import triton.language as tl

from attn_course import costs, show, verify_lesson
from attn_course.lessons.flash import figures
from attn_course.lessons.flash.experiments import ERRORS, LENGTHS, ROOFLINE, WIDTHS
from attn_course.reference import attention, attention_backward, flash_attention
from attn_course.reference import flash_attention_backward, softmax
from attn_course.reference import merge_partial_attention

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: no part of it changes in this lesson. What changes is where the lit matrices are kept while it
# runs.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## The memory wall
#
# One head, $T = 8192$ positions, $d_k = d_v = 64$, 16-bit numbers. An H100 multiplies matrices at up to $989 \cdot
# 10^{12}$ FLOPs a second and moves up to $3.35 \cdot 10^{12}$ bytes a second to and from its memory (NVIDIA's data
# sheet). Plain attention makes the scores with one kernel, the weights with a second, and the output with a third; each
# reads its inputs from memory and writes its result back. **Predict** which takes longer: the arithmetic, or the
# carrying? By what factor?

# %% id="hook-code" tags=["predicted"]
flops = costs.attention_flops(8192**2, 64, 64)
plain = costs.materialised_attention_bytes(8192, 8192, 64, 64)
print(f"arithmetic {flops / 989e12 * 1e6:5.1f} microseconds")
print(f"carrying   {plain / 3.35e12 * 1e6:5.1f} microseconds,", end=" ")
print(f"{plain / 2**20:.0f} MiB for one head")

# %% [markdown] id="hook-answer" tags=["answer"]
# The carrying takes longer, 161.5 microseconds against 17.4: in the time the data takes to move, the arithmetic could be repeated nine times.
# Nearly all of this traffic is scores and weights, which are made, written, read, used once and thrown away.

# %% [markdown] id="hook-notice"
# Now count both, arithmetic and traffic. **Assume** that a multiply-add counts 2
# FLOPs and that exponentials are not counted. Two products, of $d_k$ terms for each score and $d_v$ for each weight:
#
# $$F = 2\, T_q T_k\, (d_k + d_v) \label{attention-forward-flops}$$

# %% [markdown] id="plain-bytes"
# **Assume** three kernels and $b$ bytes for each number. The inputs and the output go once; scores are written and
# read, weights are written and read:
#
# $$M_{\mathrm{plain}} = b\, \bigl( (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \bigr) \label{plain-attention-bytes}$$
#
# A machine with $\pi$ FLOPs and $\beta$ bytes a second needs at least $F / \pi$ and at least $M / \beta$ seconds. If
# both overlap completely, the time $t$ is the larger one. With the **arithmetic intensity** $I$ this is the *roofline*
# (Williams et al., 2009):
#
# $$t = \max(F / \pi,\; M / \beta), \qquad \frac{F}{t} = \min(\pi,\; I \beta), \qquad I = \frac{F}{M} \label{roofline}$$
#
# Below $I = \pi / \beta$, here 295 FLOPs a byte, memory sets the pace.

# %% [markdown] id="intensity"
# Does a longer sequence help? Put {eq}`attention-forward-flops` and {eq}`plain-attention-bytes` together, with $d_k = d_v = d$ and $T_q =
# T_k = T$:
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{plain}}} = \frac{d}{b} \label{plain-attention-intensity}$$
#
# No: 32 FLOPs a byte at $d = 64$, for ever. And decoding, one new token and $g$ query heads that share a key head
# (section {section}`heads/sharing`)? Even if everything is moved only once, each key and value is read for $2g$ FLOPs per number:
#
# $$\lim_{T \to \infty} \frac{F}{M} = \frac{2\, g}{b} \label{decoding-intensity}$$
#
# **Predict** the share of its peak that an H100 can reach in decoding with 16-bit numbers, for $g = 1$ and $g = 8$.

# %% id="intensity-code" tags=["predicted"]
ridge = costs.ridge_point_flops_per_byte(989e12, 3.35e12)
intensities = {"plain, d = 64": 32, "decoding, g = 1": 1, "decoding, g = 8": 8}
for name, intensity in intensities.items():
    print(f"{name:16} at most {min(1, intensity / ridge):6.1%} of the peak")

# %% [markdown] id="intensity-answer" tags=["answer"]
# With $g = 1$ it can reach 0.3 % of its peak, and with $g = 8$ it can reach 2.7 %, because decoding does $g$ FLOPs for each byte, and the
# machine needs 295 of them to be busy.

# %% [markdown] id="measure"
# ## Predicted, then measured
#
# The same argument holds for any machine, so we measured one: a CPU, one thread, 32-bit numbers, CPU time (the stored
# file names the device; the machine was busy with other work). First the two roofs: a copy of 128 MiB gives $\beta$, a
# product of two $1024 \times 1024$ matrices gives $\pi$.

# %% id="roofs"
record = ROOFLINE.load()
bandwidth = np.median(record.values("copy_bytes_per_s"))
peak = np.median(record.values("product_flops_per_s"))
print(f"{record.device}, torch {record.versions['torch']}, {record.date}")
print(f"{bandwidth / 1e9:.0f} GB/s, {peak / 1e9:.0f} GFLOP/s,", end=" ")
print(f"ridge at {peak / bandwidth:.0f} FLOPs per byte")

# %% [markdown] id="measure-predict"
# $T = 4096$, one head, and two ways: *eager*, the formula step by step (`(Q @ K.T * scale).softmax(-1) @ V`), and
# torch's `scaled_dot_product_attention` (*sdpa*), which on a CPU runs tile by tile. The prediction for eager is the
# larger of $F / \pi$ and $M_{\mathrm{plain}} / \beta$ with $b = 4$. **Predict**: at which of the widths 16, 64, 128 is
# eager bound by memory? How far above its bound will it be?

# %% id="measure-table" tags=["predicted"]
for width in WIDTHS:
    flops = costs.attention_flops(4096**2, width, width)
    sizes = 4096, 4096, width, width
    plain = costs.materialised_attention_bytes(*sizes, bytes_per_number=4)
    times = (record.values(name, str(width))[:, -1] for name in ("eager_s", "sdpa_s"))
    eager, sdpa = (1e3 * np.median(seconds) for seconds in times)
    print(f"d = {width:3d}: arithmetic {flops / peak * 1e3:4.0f} ms,", end=" ")
    print(f"carrying {plain / bandwidth * 1e3:4.0f} ms;", end=" ")
    print(f"measured: eager {eager:4.0f} ms, sdpa {sdpa:4.0f} ms")

# %% [markdown] id="measure-answer" tags=["answer"]
# By the bounds eager waits for memory at $d = 16$ alone, and only just; at 64 and 128 the arithmetic takes longer. Yet eager is above
# its bound at **every** width, by a factor of about 10 at $d = 16$ and of 2 at $d = 128$, while sdpa needs less than twice its arithmetic.

# %% [markdown] id="measure-notice"
# A bound is not a prediction: eager takes longer than its bound, so what did we leave out? For one, `* scale` makes an array of its own: six
# times $T^2$ numbers move, not four. That is not enough. Two more suspects are the exponentials, and the memory itself. The arrays of 64 MiB
# are new in each call; a program has to ask for the pages, and gets each one filled with zeros.

# %% id="suspects"
carried = 2 * 4 * 4096**2 / bandwidth
print(f"six times T x T numbers: {1e3 * 3 * carried:.0f} ms")
for name in ("softmax_s", "new_softmax_s"):
    ms = 1e3 * np.median(record.values(name))
    print(f"{name:14} {ms:4.0f} ms, its bytes alone {1e3 * carried:3.0f} ms")
new_copy = np.median(record.values("new_copy_bytes_per_s"))
print(f"copy into new memory: {new_copy / 1e9:.1f} GB/s")

# %% id="roof-figure"
points = {}
for width in (16, 64):
    flops = costs.attention_flops(4096**2, width, width)
    sizes = 4096, 4096, width, width
    plain = costs.materialised_attention_bytes(*sizes, bytes_per_number=4)
    # if scores never leave the cache: inputs and output once
    least = 4 * 4 * 4096 * width
    for name, moved in (("eager", plain), ("sdpa", least)):
        seconds = np.median(record.values(f"{name}_s", str(width))[:, -1])
        points[f"{name}, d = {width}"] = (flops / moved, flops / seconds)
figures.rooflines(points, peak_flops_per_s=peak, bandwidth_bytes_per_s=bandwidth)

# %% [markdown] id="suspects-notice"
# Both suspects are guilty, in all three runs: a softmax takes longer than its bytes, and more than three times as long
# when its result needs new memory. (We measured the second only because the first table surprised us.) The place
# of sdpa on the horizontal axis assumes that each input moves once. **Predict** how the ratio of eager to sdpa depends
# on the length: at $T = 512$ the scores take 1 MiB and fit into a cache.

# %% id="length-figure" tags=["predicted"]
ratios = {}
for d in map(str, WIDTHS):
    ratio = record.values("eager_s", d) / record.values("sdpa_s", d)
    ratios[f"d = {d}"] = np.median(ratio, axis=0)
figures.eager_over_sdpa(LENGTHS, ratios)

# %% [markdown] id="length-answer" tags=["answer"]
# The ratio grows with the length. At 4096 positions the stored scores cost most, above all for the narrowest head, which has the least
# arithmetic to hide them behind. Even in the cache eager makes more passes over its scores (short runs on a busy machine scatter: trust the
# left half for no more than that).

# %% [markdown] id="length-notice"
# The cure is to **never store the scores**. What stands in the way is the softmax: its denominator needs the whole row.

# %% [markdown] id="pieces"
# ## Softmax in pieces
#
# Lesson {lesson}`softmax` subtracted a reference from all scores of a row and nothing changed. Here is the same with values.
# **Assume** any number $m$:
#
# $$\frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}} = \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}} \label{reference-score-cancels}$$
#
# So numerator and denominator can be summed **apart**, without the other, and divided at the end. Take a set $A$ of
# keys and keep three things: the maximum $m_A$ of its scores, $\ell_A = \sum_{j \in A} e^{s_j - m_A}$, and $a_A =
# \sum_{j \in A} e^{s_j - m_A} v_j$: its **state**. Another set $B$ has its own. To add two sums, measure both from the
# same reference: $e^{s - m} = e^{m_A - m}\, e^{s - m_A}$.

# %% [markdown] id="merge"
# With the larger maximum no exponent is positive:
#
# $$\begin{gathered}
# m = \max(m_A, m_B), \\
# \ell = e^{m_A - m} \ell_A + e^{m_B - m} \ell_B, \quad a = e^{m_A - m} a_A + e^{m_B - m} a_B \end{gathered}
# \label{merge-of-attention-states}$$
#
# Section {section}`softmax/online` has the middle part. Write $A \oplus B$ for the merged state. Whatever the grouping, each set ends up with
# the factor $e^{m_A - m}$ to the maximum of all, since factors on the way multiply: $e^{m_A - m_{AB}} e^{m_{AB} - m} =
# e^{m_A - m}$. Hence
#
# $$\begin{gathered}
# (A \oplus B) \oplus C = A \oplus (B \oplus C), \\
# A \oplus B = B \oplus A, \qquad A \oplus (-\infty, 0, 0) = A \end{gathered}
# \label{merging-is-commutative-monoid}$$
#
# One after the other, as a tree, on several machines: all the same. (For empty sets read $e^{-\infty - (-\infty)}$ as
# 0.) **Predict** what the rule gives below for the scores 0 and $\ln 3$ with the values 8 and 4, one key in each set.


# %% id="merge-code" tags=["predicted"]
def merged(A, B):
    m = max(A[0], B[0])
    return m, *(np.exp(A[0] - m) * A[i] + np.exp(B[0] - m) * B[i] for i in (1, 2))


m, row_sum, acc = merged((0.0, 1.0, 8.0), (np.log(3), 1.0, 4.0))
print(f"m {m:.3f}  sum {row_sum:.3f}  acc {acc:.3f}  output {acc / row_sum:.3f}")
print("softmax over both keys:", softmax(np.array([0.0, np.log(3)])) @ [8.0, 4.0])
show("merge-of-attention-states", m_A=1, ell_A=1, a_A=[2, 0], m_B=0, ell_B=2, a_B=[0, 4])

# %% [markdown] id="merge-answer" tags=["answer"]
# The rule gives $m = \ln 3$, $\ell = 4/3$ and $a = 20/3$, because the first key counts with $e^{0 - \ln 3} = 1/3$. So the output is 5: a quarter
# of 8 and three quarters of 4.

# %% [markdown] id="loop"
# ## The loop
#
# Now the keys come in blocks. $s_{ij}$ are the scores of some queries $i$ with the keys $j$ of a block, $v_j$ their
# values; each query starts with $m_i = -\infty$, $\ell_i = 0$, $a_i = 0$. Merge each block into the state, and do not
# build the block's own state first:
#
# $$\begin{gathered}
# m'_i = \max(m_i, \max_j s_{ij}), \\
# \ell'_i = e^{m_i - m'_i} \ell_i + \sum_j e^{s_{ij} - m'_i}, \quad
#  a'_i = e^{m_i - m'_i} a_i + \sum_j e^{s_{ij} - m'_i} v_j \end{gathered} \label{tiled-attention-update}$$
#
# **Induction.** Claim: before each turn, $(m, \ell, a)$ is the state of all keys so far. At the start it is that of the
# empty set. If it holds before a turn, {eq}`merge-of-attention-states` with the block as $B$ says that it holds after it. After the last
# turn it is the state of all keys.

# %% [markdown] id="lse"
# Then two of the three numbers become one, $L$, and the output is finished:
#
# $$L = m + \ln \ell = \ln \sum_j e^{s_j}, \qquad z = \frac{a}{\ell} \label{row-lse-and-output}$$
#
# This is FlashAttention's forward pass for one block of queries (Dao, 2023, Algorithm 1). Below, three blocks print
# their factors $e^{m - m'}$, one for each query. **Predict** what the first block prints, and what it says if a later
# one prints exactly 1.

# %% id="loop-code" tags=["predicted"]
rng = np.random.default_rng(12)
query, key = rng.normal(size=(2, 4)), rng.normal(size=(7, 4))
value = rng.normal(size=(7, 3))
row_max, row_sum, acc = np.full((2, 1), -np.inf), np.zeros((2, 1)), np.zeros((2, 3))
for start in range(0, 7, 3):  # blocks of 3, 3 and 1
    scores = query @ key[start : start + 3].T / np.sqrt(4)
    new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
    factor, p = np.exp(row_max - new_max), np.exp(scores - new_max)
    row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
    acc = factor * acc + p @ value[start : start + 3]
    row_max = new_max
    print("factors", factor.ravel())
output, lse = attention(query, key, value, return_lse=True)
our_lse = (row_max + np.log(row_sum))[:, 0]
print("equal:", np.allclose(acc / row_sum, output), np.allclose(our_lse, lse))

# %% [markdown] id="loop-notice" tags=["answer"]
# The first block prints 0 for both queries, because $e^{-\infty} = 0$: there was nothing to keep. After that a factor of exactly 1 says that
# the maximum stood, and a factor below 1 that the block brought a larger score.

# %% [markdown] id="spot-outputs"
# ### Spot the mistake: $e^{S} o$ instead of $e^{S} v$
#
# "Each block computes its attention output $o$. Rescale what we have, add the new output, and divide by the sum at the
# end." It is found in public kernels: `p` is divided by its row sum before the product. Shapes are right, nothing
# overflows, the results look like outputs. **Predict** what comes out if there is only one block, and whether more
# blocks make it better. Below, one key ($s = -2$) meets the state of an older one, first in the wrong way, then in the right one.

# %% id="spot-outputs-code" tags=["predicted"]
show("tiled-attention-update", wrong="outputs accumulated instead of values")
show("tiled-attention-update", m=[-1], ell=[1], a=[[1]], s=[[-2]], v=[[-1]])

# %% [markdown] id="spot-outputs-answer" tags=["answer"]
# Even a single block comes out too small, because its sum has been divided by its own weights and is divided again at the end. More blocks do
# not make it better: the factors then differ from row to row, and no constant mends it.

# %% [markdown] id="spot-outputs-notice"
# The last sum of {eq}`tiled-attention-update` must not be divided before the end. Test with at least two blocks, a last one that is not full,
# and scores that rise, so that the maximum moves.

# %% [markdown] id="finished"
# ## Finished outputs can be merged too
#
# A program that knows only its chunk $c$ of the keys can still divide, and hand on $z^{(c)}$ and $L^{(c)}$. Its state
# is then $m = L^{(c)}$, $\ell = 1$, $a = z^{(c)}$ (take $L^{(c)}$ as the reference). Merge by
# {eq}`merge-of-attention-states` and divide:
#
# $$z = \sum_{c} e^{L^{(c)} - L}\, z^{(c)}, \qquad L = \ln \sum_c e^{L^{(c)}} \label{merge-of-finished-outputs}$$
#
# Chunks count with softmax weights of their $L^{(c)}$. This is how decoding uses a whole GPU: one query gives one block of
# rows, hence one program, however long the cache is. *Flash-Decoding* (Dao, Haziza, Massa, Sizov, 2023) splits the keys
# over programs and merges; its authors report up to 8 times faster generation for long contexts. **Predict** how the
# chunk with the largest $L^{(c)}$ would fare in a plain mean.

# %% id="finished-code" tags=["predicted"]
chunks = [slice(0, 2), slice(2, 6), slice(6, 7)]
chunked = [(6 * key[chunk], value[chunk]) for chunk in chunks]
parts = [attention(query, *one, return_lse=True) for one in chunked]
outputs, lses = map(np.array, zip(*parts, strict=True))
whole = attention(query, 6 * key, value)
print("weights of the chunks, query by query:")
print(np.exp(lses - np.logaddexp.reduce(lses)).T)
print("merged:", np.allclose(merge_partial_attention(outputs, lses)[0], whole))
print("plain mean, largest error:", np.abs(outputs.mean(axis=0) - whole).max().round(2))

# %% [markdown] id="finished-answer" tags=["answer"]
# In a plain mean the chunk with the largest $L^{(c)}$ would get a third, like every other. It deserves 0.54 for the first query and nearly
# all for the second.

# %% [markdown] id="finished-notice"
# So a program must hand on its $L$ too: it is one number for each query, and without it parts can no longer be put together. With chunks on
# different machines the same line is *ring attention* (arXiv:2310.01889).

# %% [markdown] id="small"
# ## Numbers that stay small
#
# What do we gain from the running **maximum**, if any reference will do? With $m$ the largest of $n$ scores so far, one
# exponent is 0 and none is positive:
#
# $$1 \le \ell \le n \label{running-sum-bounds}$$
#
# Safe in every format that can hold $n$. And one thing for speed: GPUs compute powers of 2. Fold the conversion into
# the scale, which multiplies every score anyway:
#
# $$e^{s - m} = 2^{\,s \log_2 e - m \log_2 e} \label{exponential-in-base-two}$$
#
# Now the rounding. We computed attention with $T = 512$ in several ways from the same 16-bit inputs, and compared with
# float64. Scores have standard deviation 1, or 8. **Predict** the order of the four float16 ways.

# %% id="errors" tags=["predicted"]
stored = ERRORS.load()
ways = list(stored.results[0]["plain scores"])
for way in ways:
    shown = []
    for spread in ("plain scores", "wide scores"):
        errors = [result[spread][way] for result in stored.results]
        shown.append("not finite" if None in errors else f"{max(errors):.0e}")
    print(f"{way:36} scores of 1: {shown[0]}   of 8: {shown[1]}")

# %% id="errors-figure" tags=["predicted"]
kept = [way for way in ways if way.startswith("float16") and "maximum" not in way]
spreads = {"plain scores": 1, "wide scores": 8}
medians = {}
for way in kept:
    medians[way] = [np.median(stored.values(spread, way)) for spread in spreads]
figures.float16_errors(medians, [*spreads.values()])

# %% [markdown] id="errors-notice" tags=["answer"]
# Tiles have the smallest error, then comes no maximum (as long as it works), then stored scores and the state in
# float16, which change places at scores of 8. So tiles are not a compromise: their scores and sums never leave float32; only the shares $e^{S - m}$ are rounded, for the product, and the output. Stored scores are
# rounded where it hurts: an error in $s$ becomes a factor $e^{\mathrm{error}}$, and grows with the scores. Keep the
# state in float16 and the advantage is gone at scores of 1. Without a maximum, $e^s$ overflows float16 from $s = 11.1$
# on. In float32 all is well either way (worst error, three seeds).

# %% [markdown] id="tiles"
# ## Tiles, and what they move
#
# The loop needs only one block of keys at a time, so it fits into the small memories on the chip. In the drawing, each box in the
# large memory on the left is a block of rows, a **tile**; the three arrows in the middle are the traffic that we count. Let it play:
# tile 2 of the queries stays, and all keys and values pass by.

# %% id="tiles-memories"
figures.memory(q_tiles=3, kv_tiles=4, step=(2, 3))

# %% [markdown] id="tiles-bytes"
# Which numbers go through slow memory now? **Assume** a block of $B_q$ queries stays in fast memory while all keys and
# values pass by, then the next block. Queries are read once; output and one $L$ per query are written once; keys and
# values are read once for **each** block:
#
# $$M_{\mathrm{tiled}} = b\, \Bigl( T_q\, (d_k + d_v + 1) + \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, T_k\, (d_k + d_v) \Bigr)
# \label{tiled-attention-bytes}$$
#
# Still a square, but $T_q T_k$ now comes with the factor $(d_k + d_v) / B_q$ instead of 4. **Predict** what happens to
# the bytes if the tile holds twice as many *keys*.


# %% id="tiles-code" tags=["predicted"]
def flash_counted(query, key, value, block_q, block_kv):
    outputs, moved = [], 0
    for i in range(0, len(query), block_q):
        Q, m, row_sum, acc = query[i : i + block_q], -np.inf, 0.0, 0.0
        for j in range(0, len(key), block_kv):
            K, V = key[j : j + block_kv], value[j : j + block_kv]
            moved += K.nbytes + V.nbytes
            S = Q @ K.T / np.sqrt(Q.shape[1])
            m_new = np.maximum(m, S.max(axis=1, keepdims=True))
            p, factor, m = np.exp(S - m_new), np.exp(m - m_new), m_new
            row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
            acc = factor * acc + p @ V
        moved += Q.nbytes + acc.nbytes + m.nbytes  # queries in; outputs, one L each out
        outputs.append(acc / row_sum)
    return np.concatenate(outputs), moved


# %% id="tiles-count" tags=["predicted"]
Q, K, V = rng.normal(size=(23, 8)), rng.normal(size=(29, 8)), rng.normal(size=(29, 5))
sizes = {"bytes_per_number": 8, "bytes_per_statistic": 8}
print("plain:", costs.materialised_attention_bytes(23, 29, 8, 5, bytes_per_number=8))
for block_q, block_kv in ((4, 4), (4, 8), (8, 4), (23, 4)):
    tiled_output, moved = flash_counted(Q, K, V, block_q, block_kv)
    blocks = {"block_q": block_q, "block_kv": block_kv}
    assert np.allclose(tiled_output, flash_attention(Q, K, V, **blocks))
    assert moved == costs.tiled_attention_bytes(23, 29, 8, 5, **blocks, **sizes)
    print(f"{block_q:2d} queries, {block_kv} keys in a tile:", end=" ")
    print(f"{moved} bytes counted,", "as {eq}`tiled-attention-bytes` says")

# %% [markdown] id="tiles-answer" tags=["answer"]
# Nothing happens to the bytes: keys and values are read once for each block of *queries*, in however many pieces, so only $B_q$ counts.

# %% [markdown] id="tiles-limits"
# What do tiles gain? For long sequences ($T_q = T_k = T$, a multiple of $B_q$; $d_k = d_v = d$):
#
# $$\lim_{T \to \infty} \frac{M_{\mathrm{plain}}}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{d} \label{plain-to-tiled-bytes}$$
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{b} \label{tiled-attention-intensity}$$
#
# The intensity is set by the block, not by the width of a head: with $B_q = 128$ in 16 bits it is 128 FLOPs a byte
# instead of 32. And the fast memory limits the block. **Assume** it holds $N$ numbers: blocks of $B$ queries, keys,
# values and outputs. Then the bytes of keys and values that are read, all but a part of order $T d$ of the traffic, are
#
# $$4\, B d = N:\; M_{KV} = b\, \frac{2\, T^2 d}{B} = b\, \frac{8\, T^2 d^2}{N} \label{bytes-by-fast-memory}$$

# %% [markdown] id="tiles-theorem"
# That is the $T^2 d^2 / N$ of Theorem 2 of Dao et al. (2022): twice the fast memory, half the traffic. They also show
# (Proposition 3) that no exact algorithm beats this order for all $N$ between $d$ and $T d$. (128 FLOPs a byte is below
# the 295 of section {section}`hook`. Why can a kernel be near the peak, then? Programs for neighbouring blocks read the same keys
# at about the same time, and the GPU's cache serves them: the formula counts what the *programs* read.) **Predict**
# from which $B_q$ on tiles move less than plain attention, at $d = 64$.

# %% id="tiles-figure" tags=["predicted"]
blocks = [8, 16, 32, 64, 128, 256]
curves = {}
for d in (64, 128):
    dims = 8192, 8192, d, d
    plain = costs.materialised_attention_bytes(*dims)
    tiled = (costs.tiled_attention_bytes(*dims, block_q=n, block_kv=64) for n in blocks)
    curves[f"d = {d}"] = np.array([plain / moved for moved in tiled])
figures.tile_savings(blocks, curves)

# %% [markdown] id="tiles-figure-answer" tags=["answer"]
# Tiles move less from about $B_q = 32$ queries in a block on, which is $d / 2$, as {eq}`plain-to-tiled-bytes` says.

# %% [markdown] id="explore"
# How can one tile at a time give the same output and move fewer bytes? Press Play in the card
# below and watch the factor: when is it 1? Then find the two settings that move as many bytes
# as possible and as few as possible, and see what the fewest cost on the chip.

# %% id="explorable"
figures.tiles_explorable()

# %% [markdown] id="explore-notice"
# The factor is 1 when the last tile brought no larger score. Most bytes, 2544, move with one query in a tile and no
# mask; fewest, 432, with twelve, which need twelve rows of state on the chip. The keys in a tile change the number of steps, what the chip
# holds, and under a mask how much is skipped.

# %% [markdown] id="causal"
# ## Skip what nobody sees
#
# Under a causal mask a tile above the diagonal adds $e^{-\infty} = 0$ to everything. **Assume** square tiles, $n = T /
# B$ blocks, no offset. Row $r$ of the tiles needs $r$ of them:
#
# $$\frac{\text{tiles visited}}{\text{tiles}} = \frac{n\, (n + 1) / 2}{n^2} = \frac{n + 1}{2\, n}, \qquad n = \frac{T}{B}
# \label{causal-tile-share}$$
#
# The useful work, with $A_i$ the keys that query $i$ may see, is
#
# $$F_{\mathrm{causal}} = 2\,(d_k + d_v) \sum_i |A_i| = T\, (T + 1)\, (d_k + d_v) \label{causal-attention-flops}$$
#
# **Predict** how many of the tiles visited need a mask at all.

# %% id="causal-code" tags=["predicted"]
figures.causal_tiles(24, 24, 4, 4)

# %% [markdown] id="causal-answer" tags=["answer"]
# Only one tile in each row of tiles needs a mask, the one on the diagonal: here 6 of the 21 that are visited.

# %% [markdown] id="causal-notice"
# Most tiles need no mask, so kernels have two loops, one over whole tiles without any test, and
# one over the edge (`tile_range` in our kernel computes where each begins). Benchmarks divide {eq}`causal-attention-flops`, often $T^2 /
# 2$ pairs, by the time; what the edge wastes counts against the kernel.

# %% [markdown] id="limits-kernel"
# ## What limits the kernel now
#
# Once memory no longer does, something else must. A GPU consists of many like *multiprocessors* (an H100: 132), and in
# each, matrix products and exponentials run on different units. **Assume** that in one clock tick a multiprocessor does
# $\rho_{\mathrm{matmul}}$ FLOPs of products, or $\rho_{\exp}$ exponentials, and $d_k = d_v = d$. For a tile of $B_q
# B_k$ scores
#
# $$\begin{gathered}
# t_{\exp} = \frac{B_q B_k}{\rho_{\exp}}, \qquad t_{\mathrm{matmul}} = \frac{4\, B_q B_k d}{\rho_{\mathrm{matmul}}}, \\
# \frac{t_{\exp}}{t_{\mathrm{matmul}}} = \frac{\rho_{\mathrm{matmul}}}{4\, d\, \rho_{\exp}} \end{gathered}
# \label{exponential-to-matmul-time}$$

# %% [markdown] id="spot-exponentials"
# ### Spot the mistake: "exponentials do not matter"
#
# "There is one exponential for $4 d$ FLOPs, so at $d = 64$ they cost $1 / 256$ of the time." Tempting: lesson {lesson}`linear` says,
# and rightly, that the *bracketing* of softmax is what makes attention quadratic, not its exponentials. **Predict** the
# true ratio on an H100 with $\rho_{\mathrm{matmul}} = 4096$ (16 bits) and $\rho_{\exp} = 16$.

# %% id="limits-code" tags=["predicted"]
for width in (64, 128):
    products, exponentials = 4 * 128 * 128 * width / 4096, 128 * 128 / 16
    print(f"d = {width:3d}: products {products:.0f} clocks, exponentials {exponentials:.0f}: ratio {exponentials / products}")
    share = products / (products + exponentials)
    print(f"         share of the peak if each waits for the other: {share:.0%}")
show("exponential-to-matmul-time", B_q=128, B_k=128, d=64, rho_exp=16, rho_matmul=4096)

# %% [markdown] id="limits-answer" tags=["answer"]
# The true ratio is 1 at $d = 64$: exponentials take **as long as** the products (Shah et al., 2024, start from the same imbalance). The count
# of the operations is right, but the rates differ by 256. So a kernel that does one after the other ends below a half ($d = 64$) or two thirds
# ($d = 128$) of the peak.

# %% [markdown] id="limits-notice"
# So exponentials do matter, and maximum, sum and conversion of each score come on top. The cure is overlap. **Assume** $n > 1$ tiles, each with $t_1$ for its products on one unit and $t_2$ for its exponentials on the other,
# and that the products of the next tile do not wait for the exponentials of this one:
#
# $$t(n) = t_1 + (n - 1)\, \max(t_1, t_2) + t_2 \;<\; n\, (t_1 + t_2) \label{overlapped-tile-time}$$
#
# **Predict** the largest gain that overlap can bring, and for which ratio.

# %% id="overlap-code" tags=["predicted"]
for t_1, t_2 in ((1, 1), (2, 1), (1, 3)):
    n = 1000
    overlapped = t_1 + (n - 1) * max(t_1, t_2) + t_2
    print(f"t_1 = {t_1}, t_2 = {t_2}: {n * (t_1 + t_2) / overlapped:.2f} times as fast")

# %% id="overlap-figure" tags=["predicted"]
figures.schedule(2, 1, tiles=4)

# %% [markdown] id="overlap-answer" tags=["answer"]
# Overlap gains a factor of 2 at most, at equal times, so $d = 64$ has most to gain.

# %% [markdown] id="overlap-notice"
# FlashAttention-3 overlaps the two on Hopper, with groups of
# threads that take turns, and reports up to 740 TFLOP/s, 75 % of the H100's peak, where FlashAttention-2 reached 35 %.
# Our kernel does it in one group by **skewing** the loop: issue the product $Q K^\top$ of tile $i$, then the product of
# the *old* weights (tile $i - 1$) with their values, and only then take the exponentials of tile $i$.

# %% [markdown] id="backward"
# ## The backward pass: compute again instead of keeping
#
# Training needs gradients, and lesson {lesson}`gradients` took them from the weights $P$, which no longer exist. Keep $L$, one number
# for each query, and any tile of $P$ comes back from its scores:
#
# $$p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{l} e^{s_{il}} \label{weights-from-lse}$$
#
# No second pass over the row, no maximum. **Assume** $O = P V$ and write $dX$ for the gradient of the loss by $X$. As
# in lesson {lesson}`gradients`:
#
# $$dV = P^\top dO, \qquad dP = dO\, V^\top \label{gradients-through-weighted-sum}$$
#
# $$dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \sum_{l} p_{il}\, dP_{il} \label{score-gradient-by-entry}$$

# %% [markdown] id="delta"
# One thing is in the way: $\delta_i$ is a sum over **all** keys, and a tile has few. Insert $dP_{il} = dO_i \cdot v_l$
# and pull $dO_i$, which does not depend on $l$, out of the sum:
#
# $$\delta_i = \sum_{l} p_{il}\, (dO_i \cdot v_l) = dO_i \cdot z_i \label{row-delta-from-output}$$
#
# A dot product of two rows that exist anyway ($z_i$ is row $i$ of $O$): $\delta$ is known before the first tile. Then,
# with $S = Q K^\top / \sqrt{d_k}$,
#
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \label{gradients-through-scaled-scores}$$
#
# **Predict**: if $\delta$ is summed over each tile instead, with two tiles, are the gradients of $V$ still right? Those
# of $Q$?

# %% id="delta-code" tags=["predicted"]
d_output = rng.normal(size=(23, 5))
output, lse = attention(Q, K, V, return_lse=True)
d_query, d_key, d_value = attention_backward(Q, K, V, d_output)
delta = (d_output * output).sum(axis=1, keepdims=True)
right, wrong, values = np.zeros_like(Q), np.zeros_like(Q), []
for tile in (slice(0, 16), slice(16, 29)):
    P = np.exp(Q @ K[tile].T / np.sqrt(8) - lse[:, None])
    d_weights = d_output @ V[tile].T
    values.append(P.T @ d_output)
    right += P * (d_weights - delta) @ K[tile] / np.sqrt(8)
    by_tile = (P * d_weights).sum(axis=1, keepdims=True)
    wrong += P * (d_weights - by_tile) @ K[tile] / np.sqrt(8)
print("dV", np.allclose(np.vstack(values), d_value), end="  ")
print("dQ", np.allclose(right, d_query), end="  ")
print("dQ with delta by tile", np.allclose(wrong, d_query))

# %% [markdown] id="delta-answer" tags=["answer"]
# The gradients of $V$ are still right, because $dV$ needs no $\delta$. Those of $Q$ are wrong: a sum over one tile is not the sum over all
# keys.

# %% [markdown] id="d-lse"
# Now take a loss that reads $L$ too, as every merge by {eq}`merge-of-finished-outputs` does. The gradient
# of a log-sum-exp is the softmax ({eq}`lse-gradient`):
#
# $$\frac{\partial L_i}{\partial s_{ij}} = p_{ij} \label{row-lse-gradient}$$
#
# So $dS_{ij}$ gains $p_{ij}\, dL_i$, with the same factor $p_{ij}$ as the rest. Collect:
#
# $$dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i - dL_i) \bigr) \label{score-gradient-with-lse}$$
#
# The kernel is the same; only $\delta$ is replaced by $\delta - dL$, before it starts.

# %% [markdown] id="blocks-backward"
# For $dK$ one program keeps a block of keys and lets the blocks $b$ of queries pass by:
#
# $$dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b
# \label{key-gradient-in-blocks}$$
#
# and $dV$ likewise. $dQ$ is the other way round: a second kernel, in which a block of queries stays. Each gradient has
# one owner and one order of summation: no two programs add to the same place, and two runs agree to the last bit.
# **Predict** from the shapes how the tiles of the forward and of the backward pass may differ in size.

# %% id="backward-code" tags=["predicted"]
d_lse = rng.normal(size=23)
kept = {"output": output, "lse": lse, "d_lse": d_lse}
for block_q, block_kv in ((4, 8), (8, 29)):
    tiles = {"block_q": block_q, "block_kv": block_kv}
    gradients = flash_attention_backward(Q, K, V, d_output, **tiles, **kept)
    wanted = attention_backward(Q, K, V, d_output, d_lse=d_lse)
    same = [np.allclose(*pair) for pair in zip(gradients, wanted, strict=True)]
    print(f"tiles of {block_q} x {block_kv}: dQ, dK, dV as without tiles: {same}")

# %% [markdown] id="backward-answer" tags=["answer"]
# They may differ freely, because what is kept, $O$ and $L$, knows nothing of tiles.

# %% [markdown] id="backward-cost"
# ## What recomputing costs
#
# The price of keeping so little is five products where the forward pass has two: $S$ again and $dQ$, $dK$ over $d_k$;
# $dP$ and $dV$ over $d_v$:
#
# $$\begin{gathered}
# F_{\mathrm{backward}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \\
# d_k = d_v:\;
#  \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2} \end{gathered}
# \label{attention-backward-flops}$$
#
# With a kernel for $dK, dV$ and one for $dQ$, both rebuild $S$ and $dP$:
#
# $$\begin{gathered}
# F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \\
# d_k = d_v:\;
#  \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5} \end{gathered}
# \label{two-kernel-backward-flops}$$
#
# Benchmarks count five, so such a kernel can show at most $5 / 7$ of what it does.

# %% [markdown] id="backward-memory"
# What is bought? Beside $Q, K, V$ the plain pass keeps $O$ and $P$ for the gradients, the tiled one $O$ and $L$:
#
# $$N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + 1), \qquad N_{\mathrm{stored}}^{\mathrm{plain}} = T\, (d_v + T)
# \label{tiled-training-memory}$$
#
# (That attention needs no $T^2$ of memory: Rabe and Staats, 2021.) **Predict** what the plain pass keeps for 32 heads,
# $T = 8192$, $d_v = 128$, 16 bits, for one layer, and what the tiled one keeps.

# %% id="backward-cost-code" tags=["predicted"]
for name, per_query in (("plain", 128 + 8192), ("tiled", 128 + 1)):
    print(f"{name}: {32 * 8192 * per_query * 2 / 2**20:6.1f} MiB for one layer")

# %% [markdown] id="backward-cost-answer" tags=["answer"]
# The plain pass keeps 4160 MiB for one layer and the tiled one 64.5 MiB, because one number $L$ takes the place of $T$ weights for each query.

# %% [markdown] id="triton"
# ## From NumPy tile to Triton program
#
# Triton compiles Python functions for GPUs. A **program** is one run of the function; thousands run at once, and each
# asks `tl.program_id` which one it is. Values are tiles; `tl.load` brings a tile from memory to the chip, `tl.store`
# takes it back; all else stays there. So our outer loop over blocks of queries becomes the grid of programs, the inner
# loop stays, and each line has its counterpart:

# %% [markdown] id="triton-side-by-side"
# | NumPy, section {section}`tiles` | Triton |
# |---|---|
# | `for i in range(0, len(query), block_q)` | `i = tl.program_id(0) * B_Q` |
# | `key[j : j + block_kv]` | `tl.load(pointers, mask=rows < kv_len, other=0.0)` |
# | `Q @ K.T` | `tl.dot(q, tl.trans(k))` |
# | `S.max(axis=1, keepdims=True)` | `tl.max(s, 1, keep_dims=True)` |
# | the slice ends with the array | scores past the end become $-\infty$ |
# | `x.max()`, `x.sum()` of one row | `tl.max(x, 0)`, `tl.sum(x, 0)` |
# | `np.exp`, `np.exp2`, `np.log` | `tl.exp`, `tl.exp2`, `tl.log` |
# | `outputs.append(...)` | `tl.store(pointers, ..., mask=rows < q_len)` |


# %% id="triton-kernel"
@triton.jit
def forward(q_ptr, k_ptr, v_ptr, o_ptr, q_len, kv_len, scale, D: tl.constexpr, B_Q: tl.constexpr, B_KV: tl.constexpr):
    rows, dims = (tl.program_id(0) * B_Q + tl.arange(0, B_Q))[:, None], tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + rows * D + dims, mask=rows < q_len, other=0.0)
    m, row_sum, acc = tl.full([B_Q, 1], float("-inf"), tl.float32), tl.zeros([B_Q, 1], tl.float32), tl.zeros([B_Q, D], tl.float32)
    for start in range(0, kv_len, B_KV):
        cols = start + tl.arange(0, B_KV)
        k = tl.load(k_ptr + cols[:, None] * D + dims, mask=cols[:, None] < kv_len, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * D + dims, mask=cols[:, None] < kv_len, other=0.0)
        s = tl.where(cols[None, :] < kv_len, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
        p, factor = tl.exp2(s - m_new), tl.exp2(m - m_new)
        m, row_sum = m_new, factor * row_sum + tl.sum(p, 1, keep_dims=True)
        acc = factor * acc + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    tl.store(o_ptr + rows * D + dims, (acc / row_sum).to(o_ptr.dtype.element_ty), mask=rows < q_len)


# %% [markdown] id="triton-launch"
# Read it beside `flash_counted`. A pointer plus a tile of offsets is a tile of addresses: `rows * D + dims` names every
# entry of a block of rows of a matrix that lies row after row in memory. `tl.constexpr` marks what the compiler must
# know: tiles have fixed sizes, powers of 2 (for `tl.dot` on a GPU at least 16). The scale holds $\log_2 e$, {eq}`exponential-in-base-two`,
# so powers are of 2. `input_precision="ieee"` asks for honest float32 products: on GPUs the default is TF32,
# with 10 bits of fraction. Weights are rounded to the dtype of the values for
# the second product, as matrix units want it; the state stays float32 (section {section}`small`).

# %% [markdown] id="triton-predict"
# The launch gives the grid in brackets: one program for each block of queries. We fill the output with NaN first, so
# that a row nobody writes is seen. **Predict**: 37 queries in blocks of 16 make three programs, and the last has 11
# rows that do not exist. What do these rows compute, and where does it go?

# %% id="triton-run" tags=["predicted"]
device = "cuda" if torch.cuda.is_available() else "cpu"
shapes = {"q": (37, 32), "k": (53, 32), "v": (53, 32)}
arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes.values()]
q, k, v = (torch.from_numpy(array).to(device) for array in arrays)
o = torch.full_like(q, torch.nan)
scale = 32**-0.5 * np.log2(np.e)
forward[(triton.cdiv(37, 16),)](q, k, v, o, 37, 53, scale, D=32, B_Q=16, B_KV=16)
exact = attention(*(array.astype(np.float64) for array in arrays))
error = np.abs(o.cpu().numpy() - exact).max()
print("every row written:", bool(o.isfinite().all()), end="  ")
print("largest error below 1e-5:", bool(error < 1e-5))

# %% [markdown] id="triton-answer" tags=["answer"]
# They read zeros, so all their scores are 0 and they compute the mean of the values; the mask of the store throws it away.

# %% [markdown] id="triton-notice"
# Without the mask on `s`, each missing key would count with $e^0$: padding with zeros is right for values and
# wrong for scores. On a CPU Triton's *interpreter* ran these lines with NumPy: it checks the logic of a kernel, and
# says nothing about its speed. It does not check addresses: a load or store outside of an array reads rubbish, or ends
# Python.

# %% [markdown] id="triton-adds"
# What does the kernel of the course add? 64-bit addresses, widths that are no powers of 2, causal and other masks in
# two loops, the skew of section {section}`limits-kernel`, shared key heads, $L$, and the backward pass. Read it beside this page:
# `attn_course/gpu/flash_forward.py`. Its update is this; `UNIT` says whether the scores are products that still lack the
# scale, are counted in units of $\ln 2$, or are natural, as beside a mask of floats:

# %% id="triton-ours"
from attn_course.gpu import attention as fast_attention
from attn_course.gpu import flash_forward

source = inspect.getsource(flash_forward.softmax_step.fn)
print(source[source.index("    largest = ") :].rstrip())

# %% id="triton-gradients"
arrays = rng.normal(size=(3, 2, 19, 16)).astype(np.float32)
heads = [torch.from_numpy(array).to(device).requires_grad_() for array in arrays]
ours = fast_attention(*heads, is_causal=True, backend="triton")
eager = fast_attention(*heads, is_causal=True, backend="eager")
print("output:", torch.allclose(ours, eager, atol=1e-5))
losses = (result.square().sum() for result in (ours, eager))
ours_grads, eager_grads = (torch.autograd.grad(loss, heads) for loss in losses)
pairs = zip(ours_grads, eager_grads, strict=True)
print("gradients:", [torch.allclose(a, b, atol=1e-4) for a, b in pairs])

# %% [markdown] id="measured"
# ## Measured on a GPU
#
# The tables below are made from the newest measurement stored with the course: TFLOP/s by {eq}`causal-attention-flops`, in bfloat16, for
# our kernel, torch's own backends and the compiled FlexAttention, beside a large matrix product as the roof.

# %% id="measured-table"
figures.gpu_rates("forward")
figures.gpu_rates("backward")

# %% [markdown] id="measured-notice"
# If they say so, **no GPU has measured these kernels yet**, and this course prints no number that nobody measured. With
# an NVIDIA GPU at hand, `attn-course bench --json attn_course/gpu/measurements/NAME.json` fills them in minutes. What
# others published, on their machines: FlashAttention-2 reaches 50 to 73 % of an A100's peak (its abstract);
# FlashAttention-3 up to 75 % of an H100's. What is known of our kernels without a GPU (correct in the interpreter, no
# spilled registers in the machine code) stands in `docs/gpu_notes.md`.

# %% [markdown] id="limits"
# ## Limits
#
# - **Still quadratic.** Tiles change the bytes and the memory kept, not the $T^2 d$ FLOPs; lesson {lesson}`linear` does.
# - **The weights never exist.** Who wants to look at them computes them the slow way.
# - **Small batches of decoding** stay bound by memory, {eq}`decoding-intensity`, however good the kernel.
# - **Sums in another order** round differently: tiled and plain results agree to rounding, not to the bit.
# - **The roofline is a bound.** Our CPU stayed a factor of several above it, for reasons it does not count.
# - **Each GPU wants its own tiles**; what is best on one generation may be slow on the next.

# %% id="verify-lesson"
verify_lesson("flash")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | FLOPs | $2\, T_q T_k (d_k + d_v)$, {eq}`attention-forward-flops` | causal: about half |
# | plain bytes | $b\,((T_q + T_k)(d_k + d_v) + 4\, T_q T_k)$, {eq}`plain-attention-bytes` | $I \to d / b$ |
# | roofline | $\min(\pi, I \beta)$, {eq}`roofline` | a bound |
# | merge | $\ell = \sum e^{m_c - m} \ell_c$, $a$ alike, {eq}`merge-of-attention-states` | any order |
# | finish | $z = a / \ell$, $L = m + \ln \ell$, {eq}`row-lse-and-output` | one $L$ per query |
# | merge outputs | $z = \sum_c e^{L^{(c)} - L} z^{(c)}$, {eq}`merge-of-finished-outputs` | decoding, ring |
# | tiled bytes | $b\,(T_q (d_k + d_v + 1) + \lceil T_q / B_q \rceil T_k (d_k + d_v))$, {eq}`tiled-attention-bytes` | $I \to 2 B_q / b$ |
# | weights again | $P = e^{S - L}$, {eq}`weights-from-lse` | |
# | delta | $\delta_i = dO_i \cdot z_i - dL_i$, {eq}`row-delta-from-output` and {eq}`score-gradient-with-lse` | before the first tile |
# | backward | $5 / 2$ of the forward FLOPs, {eq}`attention-backward-flops` | in two kernels $7 / 5$ of that |

# %% [markdown] id="summary"
# ## Summary
#
# - Plain attention waits for memory: scores and weights travel four times.
# - Maximum, sum and accumulator of disjoint sets of keys merge in any order; divide once, at the end.
# - In tiles no score leaves the chip; the block of queries sets the traffic.
# - Tiles round less, not more, if their state is float32.
# - The backward pass rebuilds weights from $L$; $\delta = dO \cdot O$ replaces a sum over all keys.
# - Then exponentials limit the kernel, and overlap hides them.
# - Finished parts merge by their $L$: decoding in splits, rings of machines.
#
# Now the [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): softmax's
#   denominator in one pass.
# - M. Rabe and C. Staats (2021), [arXiv:2112.05682](https://arxiv.org/abs/2112.05682): attention without $T^2$
#   memory.
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): tiles, recomputation, bytes counted.
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): queries outside, one division; the algorithms
#   used here.
# - T. Dao, D. Haziza, F. Massa and G. Sizov (2023), "Flash-Decoding for long-context inference": keys split over
#   programs.
# - J. Shah et al. (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): overlap on Hopper, exponentials
#   against products.
# - H. Liu et al. (2023), [arXiv:2310.01889](https://arxiv.org/abs/2310.01889): the same merge around a ring of
#   machines.
# - S. Williams, A. Waterman and D. Patterson (2009), "Roofline", Communications of the ACM 52(4).
