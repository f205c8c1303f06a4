# %% [markdown] id="title"
# # {lesson}`kernels` Kernels: a ladder to causal attention
#
# Lesson {lesson}`flash` wrote FlashAttention in NumPy, which cannot say what lies in which memory. **Can you write it for a GPU, if you start
# from a sum of two arrays?** This ladder of small kernels begins with one of ours, and eight are yours.
#
# **You need** lesson {lesson}`flash`, and no GPU. **Time:** 65 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb). The language is *Triton*, which runs on Linux. Elsewhere a stand-in of the course
# plays it.

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

# %% [markdown] id="where"
# At the end one kernel does the work of these parts of the machine:

# %% id="machine"
from attn_course import check
from attn_course.lessons.kernels import figures

figures.machine()

# %% [markdown] id="program"
# ## Many programs, one block each
#
# A **kernel** is a function that a GPU runs many times at once. Each run is called a **program**, and `tl.program_id(0)` is its number. A
# kernel sees an array as a **pointer**, the address of its first number. The next number stands at the address plus 1, so a pointer plus a
# block of whole numbers is a block of addresses. `tl.load` brings the numbers that stand there into the program, and `tl.store` writes
# numbers back. The **mask** of a load or a store says which addresses count. This kernel adds two arrays, a block of `B` numbers in each
# program:


# %% id="add"
@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


# %% [markdown] id="grid"
# `tl.constexpr` marks what the compiler must know, such as the length of `tl.arange`, a power of 2. To run the kernel, write how many
# programs there are as a tuple in square brackets behind its name. They are the **grid**.
#
# Three helpers of ours make many a missing mask visible: `guarded` copies an array between margins of NaN, `empty` makes an output full of
# NaN, and `finished` complains if a program has stored something in the margins.

# %% id="add-run"
from attn_course.experiments.guarded import empty, finished, guarded

x, y, out = guarded(np.arange(37)), guarded(np.ones(37)), empty(37)
programs = triton.cdiv(37, 16)  # 37 / 16, rounded up
add[(programs,)](x, y, out, 37, B=16)
print(finished(out)[-5:].tolist())

# %% [markdown] id="add-how"
# As 37 is no multiple of 16, the last program has addresses behind the end:

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


out = empty(37)
careless[(programs,)](x, y, out, 37, B=16)
print("wrong:", int((finished(out) != x + y).sum()))

# %% [markdown] id="add-answer" tags=["answer"]
# None is wrong, because the last program adds NaN only to numbers that it does not store. But on a GPU a read outside may end the program,
# and in a sum one NaN spoils the result.

# %% [markdown] id="rows"
# ## A row in a loop
#
# Now one program takes a whole row of a table $X$ with $n$ columns, and goes through it in blocks of 16. The rows lie in memory one behind
# the other. Counted from 0,
#
# $$X_{ij} = x_{i\,n + j} \key{row-major-address}$$
#
# so row `row` begins at `x + row * n`. A load puts `other` where the mask leaves a number out. If `other` is missing, anything may stand
# there; where NumPy plays the GPU, `check` puts infinity. `tl.sum(block, 0)` is the sum of a block.
#
# `per_row` launches a kernel that makes one number of each row:

# %% id="per-row"
from functools import partial


def per_row(kernel, x, *more):
    arrays, out = [guarded(each) for each in (x, *more)], empty(len(x))
    kernel[(len(x),)](*arrays, out, x.shape[1], B=16)
    return finished(out)


# %% [markdown] id="sum-turn"
# In each rung, replace the dots and run the cell.
#
# **Your turn.** {turn}`row-sum-kernel`


# %% id="sum-turn-code" tags=["your-turn"]
@triton.jit
def sum_of_row(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        ...  # load a block of the row, and add its sum to the total
    tl.store(out + row, total)


my_row_sum = partial(per_row, sum_of_row)  # per_row for this kernel
check("row-sum-kernel", my_row_sum)

# %% [markdown] id="sum-turn-ours" tags=["ours"]
# ```python
#         block = tl.load(x + row * n + j, mask=j < n, other=0.0)
#         total += tl.sum(block, 0)
# ```

# %% [markdown] id="max-turn"
# `tl.max(block, 0)` is the largest number of a block, and `tl.maximum(a, b)` the larger of two numbers.
#
# **Your turn.** {turn}`row-maximum-kernel`


# %% id="max-turn-code" tags=["your-turn"]
@triton.jit
def row_max(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    m = ...
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        block = tl.load(x + row * n + j, mask=j < n, other=...)
        m = tl.maximum(m, tl.max(block, 0))
    tl.store(out + row, m)


my_row_max = partial(per_row, row_max)
check("row-maximum-kernel", my_row_max)

# %% [markdown] id="max-turn-ours" tags=["ours"]
# ```python
# @triton.jit
# def row_max(x, out, n, B: tl.constexpr):
#     row = tl.program_id(0)
#     m = float("-inf")
#     for start in range(0, n, B):
#         j = start + tl.arange(0, B)
#         block = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
#         m = tl.maximum(m, tl.max(block, 0))
#     tl.store(out + row, m)
# ```

# %% [markdown] id="spot"
# ## Spot the mistakes
#
# Here is the launcher of a kernel that somebody else wrote:


# %% id="whole-rows"
def whole_rows(kernel, x):
    x, out = guarded(x), empty(*x.shape)
    kernel[(len(x),)](x, out, x.shape[1], B=64)
    return finished(out)


# %% [markdown] id="softmax-turn"
# **Your turn.** {turn}`repair-row-softmax`


# %% id="softmax-turn-code" tags=["your-turn"]
@triton.jit
def row_softmax(x, out, n, B: tl.constexpr):
    ...  # mend two mistakes, then delete this line
    row, j = tl.program_id(0), tl.arange(0, B)
    s = tl.load(x + row * n + j, mask=j < n, other=0.0)
    p = tl.exp(s - tl.max(s, 0))
    tl.store(out + row * n + j, p / tl.sum(p, 0))


my_softmax = partial(whole_rows, row_softmax)
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

# %% [markdown] id="state"
# ## The state of a row
#
# Now attention for a row of scores that are known. Lesson {lesson}`flash` kept three numbers: the largest score $m$ so far, the sum `row_sum`
# of $e^{s - m}$, and the sum `acc` of $e^{s - m}\, v$. When the maximum grows to $m'$, both sums are multiplied by $e^{m - m'}$.

# %% [markdown] id="average-turn"
# **Your turn.** {turn}`softmax-average-kernel`


# %% id="average-turn-code" tags=["your-turn"]
@triton.jit
def average(x, values, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    m, row_sum, acc = float("-inf"), 0.0, 0.0
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
        v = tl.load(values + j, mask=j < n, other=0.0)
        new = tl.maximum(m, tl.max(s, 0))
        ...  # row_sum, acc and m with this block; the exponential is tl.exp
    tl.store(out + row, acc / row_sum)


my_average = partial(per_row, average)
check("softmax-average-kernel", my_average)

# %% [markdown] id="average-turn-ours" tags=["ours"]
# ```python
#         factor, p = tl.exp(m - new), tl.exp(s - new)
#         row_sum = row_sum * factor + tl.sum(p, 0)
#         acc = acc * factor + tl.sum(p * v, 0)
#         m = new
# ```

# %% [markdown] id="tiles"
# ## Tiles
#
# `i[:, None]` is a column and `k[None, :]` a row, as in NumPy. Their sum has two axes, and so has a pointer plus this sum: it is a *tile* of
# addresses. `tl.dot` multiplies two tiles, and needs at least 16 numbers along the axis that it sums. By default a GPU may round each
# factor to 11 binary digits; `input_precision="ieee"` asks for full float32.


# %% id="row-blocks"
def row_blocks(kernel, x, w):
    (r, k), n = x.shape, w.shape[1]
    x, w, out = guarded(x), guarded(w), empty(r, n)
    kernel[(triton.cdiv(r, 16),)](x, w, out, r, K=k, N=n, B=16)
    return finished(out)


# %% [markdown] id="dot-turn"
# **Your turn.** {turn}`first-dot-kernel`


# %% id="dot-turn-code" tags=["your-turn"]
@triton.jit
def product(x, w, out, r, K: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    k, c = tl.arange(0, K), tl.arange(0, N)
    a = tl.load(x + i[:, None] * K + k[None, :], mask=i[:, None] < r, other=0.0)
    b = tl.load(w + k[:, None] * N + c[None, :])
    y = tl.dot(a, b, input_precision="ieee")
    ...  # store y


my_product = partial(row_blocks, product)
check("first-dot-kernel", my_product)

# %% [markdown] id="dot-turn-ours" tags=["ours"]
# ```python
#     tl.store(out + i[:, None] * N + c[None, :], y, mask=i[:, None] < r)
# ```

# %% [markdown] id="load-rows"
# A kernel may call functions that are marked like a kernel. These two load and store blocks of whole rows of `D` numbers:


# %% id="load-rows-code"
@triton.jit
def load_rows(array, i, length, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(at, mask=i[:, None] < length, other=0.0)


@triton.jit
def store_rows(array, i, length, block, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(at, block, mask=i[:, None] < length)


# %% [markdown] id="score-rows"
# This launches a kernel that makes scores:


# %% id="score-rows-code"
def score_rows(kernel, q, k):
    (r, d), n = q.shape, len(k)
    q, k, out = guarded(q), guarded(k), empty(r, n)
    kernel[(triton.cdiv(r, 16),)](q, k, out, r, n, d**-0.5, D=d, B=16)
    return finished(out)


# %% [markdown] id="scores-turn"
# `tl.trans(k)` transposes a tile, and `&` joins two masks.
#
# **Your turn.** {turn}`tile-of-scores-kernel`


# %% id="scores-turn-code" tags=["your-turn"]
@triton.jit
def scores(q, k, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    q_tile = load_rows(q, i, r, D)
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        k_tile = load_rows(k, j, n, D)
        ...  # s, the tile of scores
        is_there = (i[:, None] < r) & (j[None, :] < n)
        tl.store(out + i[:, None] * n + j[None, :], s, mask=is_there)


my_scores = partial(score_rows, scores)
check("tile-of-scores-kernel", my_scores)

# %% [markdown] id="scores-turn-ours" tags=["ours"]
# ```python
#         s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
# ```

# %% [markdown] id="forward"
# ## Attention
#
# The grid takes the place of the loop over tiles of queries, and the loop over tiles of keys stays in the program. Our kernels do not store
# the log-sum-exp $L$, which a backward pass needs:

# %% id="memory"
figures.memory(q_tiles=3, kv_tiles=4, step=(2, 3))

# %% [markdown] id="update"
# A tile of scores changes the state as a block of scores did. Each of the `B` queries has its own state, so `m` and `row_sum` are columns of
# `B` numbers, and `acc` is a tile of `B` by `D`. `no_keys` is the state before the first tile:


# %% id="update-code"
@triton.jit
def update(m, row_sum, acc, s, v):
    new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
    factor, p = tl.exp(m - new), tl.exp(s - new)
    row_sum = row_sum * factor + tl.sum(p, 1, keep_dims=True)
    return new, row_sum, acc * factor + tl.dot(p, v, input_precision="ieee")


@triton.jit
def no_keys(B: tl.constexpr, D: tl.constexpr):
    m = tl.full([B, 1], float("-inf"), tl.float32)
    return m, tl.zeros([B, 1], tl.float32), tl.zeros([B, D], tl.float32)


# %% [markdown] id="one-head"
# `one_head` launches both kernels that follow:


# %% id="one-head-code"
def one_head(kernel, query, key, value):
    (r, d), n = query.shape, len(key)
    out = empty(r, d)
    arrays = guarded(query), guarded(key), guarded(value), out
    kernel[(triton.cdiv(r, 16),)](*arrays, r, n, d**-0.5, D=d, B=16)
    return finished(out)


# %% [markdown] id="forward-turn"
# Keys that are not there are loaded as zeros, so each would count like a real key whose score is 0. `tl.where(mask, a, b)` takes `a` where
# the mask is true, and `b` elsewhere.
#
# **Your turn.** {turn}`attention-kernel`


# %% id="forward-turn-code" tags=["your-turn"]
@triton.jit
def forward(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    q = load_rows(query, i, r, D)
    m, row_sum, acc = no_keys(B, D)
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        ...  # scores of keys that are not there; the new state
    store_rows(out, i, r, acc / row_sum, D)


my_attention = partial(one_head, forward)
check("attention-kernel", my_attention)

# %% [markdown] id="forward-turn-ours" tags=["ours"]
# ```python
#         s = tl.where(j[None, :] < n, s, float("-inf"))
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="causal"
# ## Causal
#
# Let there be as many queries as keys, in square tiles. Under a causal mask a tile is then one of three kinds. Above the diagonal no query
# sees a key, so it is not loaded. Below, all queries see all keys, so it needs no mask. Only a tile on the diagonal needs one.
#
# **Predict**: 24 queries and 24 keys make 36 tiles of 4 by 4. How many are loaded, and how many need the mask?

# %% id="causal-picture" tags=["predicted"]
figures.causal_tiles(24, 24, 4, 4)

# %% [markdown] id="causal-answer" tags=["answer"]
# The first 4 queries load one tile of keys, the next 4 load two, and so on, which makes $1 + 2 + \dots + 6 = 21$. The last tile in each row
# lies on the diagonal, at the edge of what is seen, so 6 need the mask.

# %% [markdown] id="causal-share"
# In general let $N$ tiles of $B$ by $B$ stand in a row. This share of all tiles is visited, about half for large $N$:
#
# $$\frac{\text{tiles visited}}{\text{tiles}} = \frac{N\, (N + 1) / 2}{N^2} = \frac{N + 1}{2\, N}, \qquad N = \frac{T}{B}
# \key{causal-tile-share}$$

# %% [markdown] id="causal-turn"
# **Your turn.** {turn}`causal-attention-kernel`


# %% id="causal-turn-code" tags=["your-turn"]
@triton.jit
def causal(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
    first = tl.program_id(0) * B
    i = first + tl.arange(0, B)
    q = load_rows(query, i, r, D)
    m, row_sum, acc = no_keys(B, D)
    for start in range(0, ..., B):
        j = start + tl.arange(0, B)
        k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        m, row_sum, acc = update(m, row_sum, acc, s, v)
    ...  # the tile on the diagonal
    store_rows(out, i, r, acc / row_sum, D)


my_causal = partial(one_head, causal)
check("causal-attention-kernel", my_causal)

# %% [markdown] id="causal-turn-ours" tags=["ours"]
# ```python
# @triton.jit
# def causal(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
#     first = tl.program_id(0) * B
#     i = first + tl.arange(0, B)
#     q = load_rows(query, i, r, D)
#     m, row_sum, acc = no_keys(B, D)
#     for start in range(0, first, B):
#         j = start + tl.arange(0, B)
#         k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
#     k, v = load_rows(key, i, n, D), load_rows(value, i, n, D)
#     s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#     s = tl.where(i[None, :] <= i[:, None], s, float("-inf"))
#     m, row_sum, acc = update(m, row_sum, acc, s, v)
#     store_rows(out, i, r, acc / row_sum, D)
# ```

# %% [markdown] id="package"
# ## The kernel of the package
#
# `flash_forward` in `attn_course/gpu/` is this kernel, and does more:
#
# | yours | the package's |
# |---|---|
# | `tl.exp(s - new)` | in half precision `tl.exp2(s * slope - new)`, where `s` is not scaled |
# | one tile after the other | among whole tiles, the next one's scores are computed before this one's product with values |
# | program 0 takes the first queries | program 0 takes the last ones, which see most keys |
# | one head | the grid counts heads too, and `head // GROUP` finds their shared keys |
#
# The first line rests on
#
# $$e^{s - m} = 2^{\,s \log_2 e - m \log_2 e} \key{exponential-in-base-two}$$
#
# The units for exponentials in a GPU compute powers of 2, so `tl.exp` must multiply by $\log_2 e$ first. Here this is saved: `slope` is the
# scale times $\log_2 e$, and `new` is the maximum of `s * slope`.

# %% [markdown] id="package-ours"
# Here it is beside PyTorch's attention. (Without Triton, PyTorch stands in for it.) In the place of PyTorch's, put `my_causal(*arrays)`.

# %% id="agree"
from attn_course import gpu, verify_lesson

rng = np.random.default_rng(12)
arrays = [guarded(rng.normal(size=(37, 16))) for _ in "qkv"]
mine = torch.nn.functional.scaled_dot_product_attention(*arrays, is_causal=True)
batched = [each[None, None] for each in arrays]  # one batch, one head
backend = "triton" if hasattr(triton, "__version__") else "eager"
theirs = gpu.attention(*batched, is_causal=True, backend=backend)[0, 0]
print("the same output:", torch.allclose(mine, theirs, atol=1e-5))

# %% [markdown] id="limits"
# **Limits.** Without a GPU we see what a kernel computes, but not how fast. Tiles that are too narrow for a GPU pass, factors are not
# rounded to 11 binary digits, and the programs run one after the other, where a GPU runs them in any order. Outside the course,
# `torch.as_tensor` and `torch.empty` take the place of our helpers.

# %% id="verify-lesson"
verify_lesson("kernels")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | rows in memory, {eq}`row-major-address` | {key}`row-major-address` | counted from 0 |
# | tiles under a causal mask, {eq}`causal-tile-share` | {key}`causal-tile-share` | only the diagonal needs the mask |
# | powers of 2, {eq}`exponential-in-base-two` | {key}`exponential-in-base-two` | $\log_2 e$ in the scale |

# %% [markdown] id="summary"
# ## Summary
#
# - A program owns a block of the output, and its number tells it which one.
# - A pointer plus a block of numbers is a block of addresses, and a mask leaves out what is not there.
# - `other` must be what changes nothing: 0 for a sum, $-\infty$ for a maximum, and a score of $-\infty$ for a missing key.
# - The state stays in the program while tiles of keys pass by.
#
# So FlashAttention for a GPU is a load, a loop, a product and a state with a mask. Now the [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb).

# %% [markdown] id="overlap"
# ## Deeper: larger tiles, and two units at once
#
# Tiles of 16 are too small: with 16 queries in a tile and a width of 64, {eq}`tiled-attention-bytes` counts about $2 \cdot 64 / 16 = 8$ numbers
# that are moved for each of the $T^2$ pairs. Without tiles, scores and weights are both written and read, which moves 4.
#
# In a GPU products and exponentials run on different units. Let $n > 1$ tiles take $t_1$ each on the first and $t_2$ on the second, and let
# the products of the next tile not wait for the exponentials of this one:
#
# $$t(n) = t_1 + (n - 1)\, \max(t_1, t_2) + t_2 \;<\; n\, (t_1 + t_2) \label{overlapped-tile-time}$$

# %% id="overlap-figure"
figures.schedule(2, 1, tiles=4)

# %% [markdown] id="overlap-notice"
# So with many tiles the slower unit alone sets the pace, and nearly half of the time is saved if both take the same time. For this the
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

# %% [markdown] id="any-order"
# ## Deeper: tiles in any order
#
# Let $X$ and $Y$ be states of keys, with none in common, and $X \oplus Y$ that of all of them. Their merge takes the larger maximum $m$ and
# brings both sums to it: $X \oplus Y$ has $\ell = e^{m_X - m} \ell_X + e^{m_Y - m} \ell_Y$, and $a$ alike. So
#
# $$(X \oplus Y) \oplus Z = X \oplus (Y \oplus Z), \qquad X \oplus Y = Y \oplus X, \qquad X \oplus (-\infty, 0, 0) = X
# \label{merging-is-commutative-monoid}$$
#
# because a maximum and a sum do not depend on the order of their terms, rounding aside. (For two empty states $e^{-\infty - (-\infty)}$ is read as 0.
# `update` makes NaN of it, which does not happen in our kernels: each query sees a key in its first tile.) So several programs may share the
# keys of one query, and a last one merges their states.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - P. Tillet, H. T. Kung and D. Cox (2019), "Triton: an intermediate language and compiler for tiled neural network computations", MAPL.
# - The tutorials of Triton, [triton-lang.org](https://triton-lang.org/main/getting-started/tutorials/index.html): sums, a product, attention.
# - S. Rush, [Triton-Puzzles](https://github.com/srush/Triton-Puzzles): more rungs, in the same interpreter.
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): the algorithm of the last rungs.
# - J. Shah and others (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): products and exponentials at the same time.
