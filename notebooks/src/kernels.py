# %% [markdown] id="title"
# # {lesson}`kernels` Kernels: a ladder to causal attention
#
# Lesson {lesson}`flash` wrote FlashAttention in NumPy, which cannot say what lies in which memory. **Can you write it for a GPU, if you start
# from a sum of two arrays?** Here are nine small kernels, each a little more than the one before. The first is ours and eight are yours.
#
# **You need** lesson {lesson}`flash`, and no GPU. **Time:** 90 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb). The language is *Triton*, which runs on Linux. Elsewhere a stand-in of the course
# plays it, and the next cell says so.

# %% id="setup"
import os

import numpy as np
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # NumPy plays the GPU; set before the import

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:  # not on Linux
    from attn_course.experiments.standin import tl, triton

    print("No Triton here: the kernels are run by a stand-in, in NumPy.")

# %% [markdown] id="program"
# ## Many programs, one block each
#
# A **kernel** is a function that runs many times at once on a GPU. Each run is called a **program**, and `tl.program_id` tells it which one
# it is. A kernel sees an array as a **pointer**, the address of its first number. A pointer plus a block of whole numbers is a block of
# addresses. `tl.load` brings what is there onto the chip, where it stays as a variable of the program, and `tl.store` writes
# it back. The address of the next number is one more. This kernel adds two arrays, a block of `B` numbers in each program:

# %% id="add"
from attn_course.experiments.guarded import empty, finished, guarded


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


def my_sum(x, y):
    x, y, out = guarded(x), guarded(y), empty(len(x))
    programs = triton.cdiv(len(x), 16)  # rounded up
    add[(programs,)](x, y, out, len(x), B=16)
    return finished(out)


print(my_sum(np.arange(37), np.ones(37))[-5:].tolist())

# %% [markdown] id="where"
# At the end these parts of the machine are one kernel:

# %% id="machine"
from attn_course import check
from attn_course.lessons.kernels import figures

figures.machine()

# %% [markdown] id="add-how"
# The brackets behind `add` hold the **grid**: how many programs there are. `tl.constexpr` marks what the compiler must know, such as the
# length of `tl.arange`, a power of 2.
#
# The last program has addresses behind the end of the arrays, since 37 is no multiple of 16. So each load and store has a **mask**, and
# leaves out what is not there. A GPU does not tell you that a mask is missing, so three helpers do it here: `guarded` copies an array
# between margins of NaN, `empty` makes an output full of NaN, and `finished` complains if a program has stored something in the margins.

# %% id="add-picture"
figures.programs(37, 16)

# %% [markdown] id="add-predict"
# **Predict**: we load `x` without its mask. How many of the 37 results are wrong?


# %% id="add-unmasked" tags=["predicted"]
@triton.jit
def careless(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + i) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


x, y, out = guarded(np.arange(37)), guarded(np.ones(37)), empty(37)
careless[(3,)](x, y, out, 37, B=16)
print("wrong:", int((finished(out).cpu() != torch.arange(1, 38)).sum()))

# %% [markdown] id="add-answer" tags=["answer"]
# None is wrong, because the last program adds NaN only to numbers that it does not store. But on a GPU a read outside may end the program,
# and in the next kernel, where the numbers of a block are summed, one NaN spoils the result.

# %% [markdown] id="rows"
# ## A row in a loop
#
# Now one program takes a whole row, and goes through it in blocks of 16. The rows of a table lie in memory one after the other, so with `n`
# numbers in each, row `row` begins at `x + row * n`. A load puts `other` in the place of what the mask leaves out. (Without `other` it may put anything
# there, though the interpreter puts 0.) `tl.sum(block, 0)` and `tl.max(block, 0)` make one number of a block with one axis, and `tl.maximum(a, b)` takes the
# larger of two.
#
# In each rung copy the code into the cell below, over the line with `= ...`, and write what is missing.

# %% [markdown] id="sum-turn"
# **Your turn.** {turn}`row-sum-kernel`
#
# ```python
# @triton.jit
# def row_sum(x, out, n, B: tl.constexpr):
#     row = tl.program_id(0)
#     total = 0.0
#     for start in range(0, n, B):
#         j = start + tl.arange(0, B)
#         ...  # your lines
#     tl.store(out + row, total)
#
# def my_row_sum(x):
#     x, out = guarded(x), empty(len(x))
#     row_sum[(len(x),)](x, out, x.shape[1], B=16)
#     return finished(out)
# ```

# %% id="sum-turn-code" tags=["your-turn"]
my_row_sum = ...
check("row-sum-kernel", my_row_sum)

# %% [markdown] id="sum-turn-ours" tags=["ours"]
# ```python
#         block = tl.load(x + row * n + j, mask=j < n, other=0.0)
#         total += tl.sum(block, 0)
# ```

# %% [markdown] id="max-turn"
# **Your turn.** {turn}`row-maximum-kernel`
#
# ```python
# @triton.jit
# def row_max(x, out, n, B: tl.constexpr):
#     ...  # your lines
#
# def my_row_max(x):
#     x, out = guarded(x), empty(len(x))
#     row_max[(len(x),)](x, out, x.shape[1], B=16)
#     return finished(out)
# ```

# %% id="max-turn-code" tags=["your-turn"]
my_row_max = ...
check("row-maximum-kernel", my_row_max)

# %% [markdown] id="max-turn-ours" tags=["ours"]
# ```python
#     row = tl.program_id(0)
#     m = float("-inf")
#     for start in range(0, n, B):
#         j = start + tl.arange(0, B)
#         block = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
#         m = tl.maximum(m, tl.max(block, 0))
#     tl.store(out + row, m)
# ```

# %% [markdown] id="state"
# Now the row of lesson {lesson}`flash`: its state $(m, \ell, a)$ lives in three variables of the program. The exponential is `tl.exp`.

# %% [markdown] id="average-turn"
# **Your turn.** {turn}`softmax-average-kernel`
#
# ```python
# @triton.jit
# def average(x, values, out, n, B: tl.constexpr):
#     row = tl.program_id(0)
#     m, row_sum, acc = float("-inf"), 0.0, 0.0
#     for start in range(0, n, B):
#         j = start + tl.arange(0, B)
#         ...  # your lines
#     tl.store(out + row, acc / row_sum)
#
# def my_average(x, values):
#     x, values, out = guarded(x), guarded(values), empty(len(x))
#     average[(len(x),)](x, values, out, x.shape[1], B=16)
#     return finished(out)
# ```

# %% id="average-turn-code" tags=["your-turn"]
my_average = ...
check("softmax-average-kernel", my_average)

# %% [markdown] id="average-turn-ours" tags=["ours"]
# ```python
#         s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
#         v = tl.load(values + j, mask=j < n, other=0.0)
#         new = tl.maximum(m, tl.max(s, 0))
#         factor, p = tl.exp(m - new), tl.exp(s - new)
#         row_sum = row_sum * factor + tl.sum(p, 0)
#         acc = acc * factor + tl.sum(p * v, 0)
#         m = new
# ```

# %% [markdown] id="spot"
# ## Spot the mistakes
#
# This kernel is somebody else's, and its results are wrong:

# %% [markdown] id="softmax-turn"
# **Your turn.** {turn}`repair-row-softmax`
#
# ```python
# @triton.jit
# def row_softmax(x, out, n, B: tl.constexpr):
#     row, j = tl.program_id(0), tl.arange(0, B)
#     s = tl.load(x + row * n + j, mask=j < n, other=0.0)
#     p = tl.exp(s - tl.max(s, 0))
#     tl.store(out + row * n + j, p / tl.sum(p, 0))
#
# def my_softmax(x):
#     x, out = guarded(x), empty(*x.shape)
#     row_softmax[(len(x),)](x, out, x.shape[1], B=64)
#     return finished(out)
# ```

# %% id="softmax-turn-code" tags=["your-turn"]
my_softmax = ...
check("repair-row-softmax", my_softmax)

# %% [markdown] id="softmax-turn-ours" tags=["ours"]
# ```python
# @triton.jit
# def row_softmax(x, out, n, B: tl.constexpr):
#     row, j = tl.program_id(0), tl.arange(0, B)
#     s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
#     p = tl.exp(s - tl.max(s, 0))
#     tl.store(out + row * n + j, p / tl.sum(p, 0), mask=j < n)
# ```

# %% [markdown] id="tiles"
# ## Tiles
#
# `i[:, None]` is a column and `k[None, :]` a row, as in NumPy. Their sum has two axes, and so has a pointer plus this sum: it is a *tile* of
# addresses. `tl.dot` multiplies two tiles, which on a GPU is done by units made for it. They want at least 16 numbers on each side.
# `input_precision="ieee"` asks for products in full float32: by default a GPU may round each factor to 11 binary digits.

# %% [markdown] id="dot-turn"
# **Your turn.** {turn}`first-dot-kernel`
#
# ```python
# @triton.jit
# def product(x, w, out, r, K: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
#     i = tl.program_id(0) * B + tl.arange(0, B)
#     k, c = tl.arange(0, K), tl.arange(0, N)
#     a = tl.load(x + i[:, None] * K + k[None, :], mask=i[:, None] < r, other=0.0)
#     ...  # your lines
#
# def my_product(x, w):
#     x, w, out = guarded(x), guarded(w), empty(len(x), 16)
#     product[(triton.cdiv(len(x), 16),)](x, w, out, len(x), K=32, N=16, B=16)
#     return finished(out)
# ```

# %% id="dot-turn-code" tags=["your-turn"]
my_product = ...
check("first-dot-kernel", my_product)

# %% [markdown] id="dot-turn-ours" tags=["ours"]
# ```python
#     b = tl.load(w + k[:, None] * N + c[None, :])
#     y = tl.dot(a, b, input_precision="ieee")
#     tl.store(out + i[:, None] * N + c[None, :], y, mask=i[:, None] < r)
# ```

# %% [markdown] id="load-rows"
# A kernel may call another function that is marked like a kernel. These load and store blocks of whole rows. `tl.trans(k)` transposes a tile,
# and two masks are joined by `&`, each in brackets, and not by `and`. `tl.where(mask, a, b)` takes `a` where the mask is true, and `b`
# elsewhere.


# %% id="load-rows-code"
@triton.jit
def load_rows(array, i, length, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(at, mask=i[:, None] < length, other=0.0)


@triton.jit
def store_rows(array, i, length, block, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(at, block, mask=i[:, None] < length)


# %% [markdown] id="scores-turn"
# **Your turn.** {turn}`tile-of-scores-kernel`
#
# ```python
# @triton.jit
# def scores(q, k, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
#     i = tl.program_id(0) * B + tl.arange(0, B)
#     j = tl.program_id(1) * B + tl.arange(0, B)
#     ...  # your lines
#
# def my_scores(x, key):
#     (r, d), n = x.shape, len(key)
#     x, key, out = guarded(x), guarded(key), empty(r, n)
#     grid = triton.cdiv(r, 16), triton.cdiv(n, 16)
#     scores[grid](x, key, out, r, n, d**-0.5, D=d, B=16)
#     return finished(out)
# ```

# %% id="scores-turn-code" tags=["your-turn"]
my_scores = ...
check("tile-of-scores-kernel", my_scores)

# %% [markdown] id="scores-turn-ours" tags=["ours"]
# ```python
#     q_tile, k_tile = load_rows(q, i, r, D), load_rows(k, j, n, D)
#     s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
#     is_there = (i[:, None] < r) & (j[None, :] < n)
#     tl.store(out + i[:, None] * n + j[None, :], s, mask=is_there)
# ```

# %% [markdown] id="forward"
# ## Attention
#
# The grid takes the place of the loop over tiles of queries, and the loop over tiles of keys stays in the program:

# %% id="memory"
figures.memory(q_tiles=3, kv_tiles=4, step=(2, 3))

# %% [markdown] id="update"
# What the loop does with a tile is `step` of lesson {lesson}`flash`. Each query has a row of the state, so `m` and `row_sum` are columns.
# They must be so before the loop, since a GPU's compiler refuses a variable whose shape changes in a loop.


# %% id="update-code"
@triton.jit
def update(m, row_sum, acc, s, v):
    new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
    factor, p = tl.exp(m - new), tl.exp(s - new)
    row_sum = row_sum * factor + tl.sum(p, 1, keep_dims=True)
    return new, row_sum, acc * factor + tl.dot(p, v, input_precision="ieee")


# %% [markdown] id="forward-predict"
# The last tile of keys is padded with zeros, so the scores of keys that are not there are 0 too. **Predict** what one query gets from three
# keys, all with a score of 0 and a value of 16, if nothing else is done about the 13 missing ones.

# %% id="forward-padded" tags=["predicted"]
s, v = np.zeros(16), np.where(np.arange(16) < 3, 16.0, 0.0)
p = np.exp(s) / np.exp(s).sum()
print(p @ v)

# %% [markdown] id="forward-answer" tags=["answer"]
# It gets 3 instead of 16, because each of the 13 missing keys counts with $e^0 = 1$ and brings the value 0. A mask at the load is not
# enough. The scores of what is not there must become $-\infty$ before `update`.

# %% [markdown] id="forward-turn"
# **Your turn.** {turn}`attention-kernel`
#
# ```python
# @triton.jit
# def forward(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
#     i = tl.program_id(0) * B + tl.arange(0, B)
#     q = load_rows(query, i, r, D)
#     m = tl.full([B, 1], float("-inf"), tl.float32)
#     row_sum = tl.zeros([B, 1], tl.float32)
#     acc = tl.zeros([B, D], tl.float32)
#     for start in range(0, n, B):
#         j = start + tl.arange(0, B)
#         ...  # your lines
#     store_rows(out, i, r, acc / row_sum, D)
#
# def my_attention(query, key, value):
#     (r, d), n = query.shape, len(key)
#     out = empty(r, d)
#     arrays = guarded(query), guarded(key), guarded(value), out
#     forward[(triton.cdiv(r, 16),)](*arrays, r, n, d**-0.5, D=d, B=16)
#     return finished(out)
# ```

# %% id="forward-turn-code" tags=["your-turn"]
my_attention = ...
check("attention-kernel", my_attention)

# %% [markdown] id="forward-turn-ours" tags=["ours"]
# ```python
#         k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         s = tl.where(j[None, :] < n, s, float("-inf"))
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="forward-bytes"
# How much does this kernel move? {eq}`tiled-attention-bytes` counts it. With 16 queries in a tile and a width of 64 it is about $2 \cdot 64 /
# 16 = 8$ numbers for each of the $T^2$ pairs. Without tiles, scores and weights are both written and read, which moves 4. So tiles of 16 are too
# small.

# %% [markdown] id="causal"
# ## Causal, in two loops
#
# Under a causal mask a tile of keys is one of three kinds. Above the diagonal no query sees it, so it is not loaded. Below, all queries see
# all of it, so it needs no mask. Only the tiles on the diagonal need one:

# %% id="causal-picture"
figures.causal_tiles(24, 24, 4, 4)

# %% [markdown] id="causal-share"
# With square tiles of $B$ queries and $B$ keys, and $n$ of them in a row, this share is visited ($n$ counts tiles here):
#
# $$\frac{\text{tiles visited}}{\text{tiles}} = \frac{n\, (n + 1) / 2}{n^2} = \frac{n + 1}{2\, n}, \qquad n = \frac{T}{B}
# \key{causal-tile-share}$$
#
# For many tiles it is about half.

# %% [markdown] id="causal-order"
# May one loop take the whole tiles, and another the rest? Yes. Let $X$ and $Y$ be states of keys, with none in common, and $X \oplus Y$
# that of all of them. Their
# merge takes the larger maximum $m$ and brings both sums to it: $X \oplus Y$ has $\ell = e^{m_X - m} \ell_X + e^{m_Y - m} \ell_Y$, and $a$ alike.
# So
#
# $$(X \oplus Y) \oplus Z = X \oplus (Y \oplus Z), \qquad X \oplus Y = Y \oplus X, \qquad X \oplus (-\infty, 0, 0) = X
# \key{merging-is-commutative-monoid}$$
#
# because a maximum and a sum do not depend on the order of their terms, rounding aside. (For two empty states $e^{-\infty - (-\infty)}$ is read as 0.
# `update` makes NaN of it, which does not happen here: each query sees a key in its first tile.)

# %% [markdown] id="causal-turn"
# **Your turn.** {turn}`causal-attention-kernel`
#
# ```python
# @triton.jit
# def causal(query, key, value, out, n, scale, D: tl.constexpr, B: tl.constexpr):
#     first = tl.program_id(0) * B
#     i = first + tl.arange(0, B)
#     q = load_rows(query, i, n, D)
#     m = tl.full([B, 1], float("-inf"), tl.float32)
#     row_sum = tl.zeros([B, 1], tl.float32)
#     acc = tl.zeros([B, D], tl.float32)
#     ...  # two loops
#     store_rows(out, i, n, acc / row_sum, D)
#
# def my_causal(query, key, value):
#     n, d = query.shape
#     out = empty(n, d)
#     arrays = guarded(query), guarded(key), guarded(value), out
#     causal[(triton.cdiv(n, 16),)](*arrays, n, d**-0.5, D=d, B=16)
#     return finished(out)
# ```

# %% id="causal-turn-code" tags=["your-turn"]
my_causal = ...
check("causal-attention-kernel", my_causal)

# %% [markdown] id="causal-turn-ours" tags=["ours"]
# ```python
#     for start in range(0, first, B):
#         j = start + tl.arange(0, B)
#         k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
#     for start in range(first, first + B, B):
#         j = start + tl.arange(0, B)
#         k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         s = tl.where(j[None, :] <= i[:, None], s, float("-inf"))
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="package"
# ## The kernel of the package
#
# `flash_forward` in `attn_course/gpu/` is this kernel, and does more:
#
# | yours | the package's |
# |---|---|
# | `tl.exp(s - new)` | `tl.exp2(s * slope - new)`, with $\log_2 e$ in `slope` |
# | `load_rows`, then `tl.dot`, then `update` | the next tile's scores stand before this tile's product with values |
# | program 0 takes the first queries | program 0 takes the last ones, which see most keys |
# | one head | the grid counts heads too, and `head // GROUP` finds their shared keys |
#
# The first line stands on
#
# $$e^{s - m} = 2^{\,s \log_2 e - m \log_2 e} \key{exponential-in-base-two}$$
#
# A GPU computes powers of 2. If $\log_2 e$ joins the scale, which multiplies each score anyway, no multiplication is added.

# %% [markdown] id="package-ours"
# Do both agree? If you left the last rung open, the formula takes the place of your kernel.

# %% id="agree"
from attn_course import gpu, reference, verify_lesson

rng = np.random.default_rng(12)
arrays = [rng.normal(size=(37, 16)).astype(np.float32) for _ in "qkv"]
formula = reference.attention(*arrays, is_causal=True)
mine = formula if my_causal is ... else my_causal(*arrays)
tensors = [guarded(each)[None, None] for each in arrays]  # one batch, one head
backend = "triton" if hasattr(triton, "__version__") else "eager"
theirs = gpu.attention(*tensors, is_causal=True, backend=backend)[0, 0].cpu()
same = np.allclose(torch.as_tensor(mine).cpu(), theirs, atol=1e-5)
print("the same output:", same)

# %% [markdown] id="limits"
# **Limits.** The interpreter checks what a kernel computes, and says nothing about its speed. It runs the programs one after the other,
# where a GPU runs them in any order.

# %% id="verify-lesson"
verify_lesson("kernels")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | tiles under a causal mask, {eq}`causal-tile-share` | {key}`causal-tile-share` | only the diagonal needs the mask |
# | any order, {eq}`merging-is-commutative-monoid` | {key}`merging-is-commutative-monoid` | whole tiles first |
# | powers of 2, {eq}`exponential-in-base-two` | {key}`exponential-in-base-two` | $\log_2 e$ in the scale |

# %% [markdown] id="summary"
# ## Summary
#
# - A program owns a block of the output, and its number tells it which one.
# - A pointer plus a block of numbers is a block of addresses, and a mask leaves out what is not there.
# - `other` must be what changes nothing: 0 for a sum, $-\infty$ for a maximum, and a score of $-\infty$ for a missing key.
# - The state stays in the program while tiles of keys pass by, in any order.
#
# So FlashAttention for a GPU is a load, a loop, a product and a state with a mask. Now the [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb).

# %% [markdown] id="overlap"
# ## Deeper: two units at once
#
# In a GPU products and exponentials run on different units. Let $n > 1$ tiles take $t_1$ each on the first and $t_2$ on the second, and let
# the products of the next tile not wait for the exponentials of this one:
#
# $$t(n) = t_1 + (n - 1)\, \max(t_1, t_2) + t_2 \;<\; n\, (t_1 + t_2) \label{overlapped-tile-time}$$

# %% id="overlap-figure"
figures.schedule(2, 1, tiles=4)

# %% [markdown] id="overlap-notice"
# So the slower unit alone sets the pace, and with many tiles nearly half of the time is saved, if both take the same time. For this the
# package's kernel computes the scores of the next tile first. If its kernels have been measured on a GPU, their rates follow.

# %% id="overlap-measured"
figures.gpu_rates("forward")

# %% [markdown] id="flops"
# A benchmark divides work by time, and counts the pairs that are seen. $A_i$ holds the keys that query $i$ sees:
#
# $$F_{\mathrm{causal}} = 2\,(d_k + d_v) \sum_i |A_i| = T\, (T + 1)\, (d_k + d_v) \label{causal-attention-flops}$$

# %% [markdown] id="backward"
# ## Deeper: a backward pass that is the same in every run
#
# Programs that add to the same place must take turns, and then the order of a sum, and so its last bits, may differ from run to run. The
# package uses two kernels instead. In one, a program owns a block of keys and lets the queries pass by, {eq}`key-gradient-in-blocks`. In the
# other it owns a block of queries. Each computes $S$ and $dP$ for itself, so there are seven products where five are needed:
#
# $$\begin{gathered}
# F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \\
# d_k = d_v:\; \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5} \end{gathered} \label{two-kernel-backward-flops}$$

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - P. Tillet, H. T. Kung and D. Cox (2019), "Triton: an intermediate language and compiler for tiled neural network computations", MAPL.
# - The tutorials of Triton, [triton-lang.org](https://triton-lang.org/main/getting-started/tutorials/index.html): sums, a product, attention.
# - S. Rush, [Triton-Puzzles](https://github.com/srush/Triton-Puzzles): more rungs, in the same interpreter.
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): the algorithm of the last rungs.
# - J. Shah and others (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): products and exponentials at the same time.
