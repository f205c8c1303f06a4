# %% [markdown] id="title"
# # {lesson}`kernels` Kernels: a ladder to causal attention
#
# Lesson {lesson}`flash` wrote FlashAttention in NumPy. **Can you write it for a GPU, if you start from a sum of two arrays?** On this
# ladder of small kernels the first is ours and the next eight are yours. At the end a picture shows which blocks of $V$ your last kernel
# uses.
#
# **You need** lesson {lesson}`flash`, and no GPU. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb). The language is *Triton*, which runs on Linux. Elsewhere the course brings a
# small stand-in.

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
from attn_course import check, verify_lesson
from attn_course.lessons.kernels import figures

figures.machine()

# %% [markdown] id="program"
# ## Many programs, one block each
#
# A **kernel** is a function that a GPU runs many times at once. Each run is called a **program**, and `tl.program_id(0)` is its number. A
# kernel sees an array as a **pointer**, the address of its first number. Triton counts in numbers: the next one stands at the address plus
# 1, so a pointer plus a block of whole numbers is a block of addresses. `tl.load` brings the numbers that stand there into the program, and
# `tl.store` writes numbers back. The **mask** of a load or a store says which addresses count. This kernel adds two arrays:


# %% id="add"
@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, total, mask=i < n)


# %% [markdown] id="grid"
# Each program adds a block of `B` numbers. `tl.constexpr` marks what the compiler must know, such as the length of `tl.arange`, which must
# be a power of 2. As 37 is no multiple of 16, the last program has addresses beyond the end:

# %% id="add-picture"
figures.programs(37, 16)

# %% [markdown] id="launch"
# A kernel is launched as `kernel[(programs,)](...)`. The tuple in the square brackets is the **grid**. Our function `launch` does it, and
# also shows many missing masks: `guarded` copies an array between margins of NaN, `empty` makes an output full of NaN, and `finished`
# complains if a program has stored something in the margins. Arguments given by name, such as `B=16`, go to the `constexpr` parameters.

# %% id="launch-code"
from attn_course.experiments.guarded import empty, finished, guarded


def launch(kernel, programs, arrays, shape, *numbers, **sizes):
    """Run so many programs of a kernel; return its output, which has this shape."""
    out = empty(*shape)
    kernel[(programs,)](*map(guarded, arrays), out, *numbers, **sizes)
    return finished(out)


# %% [markdown] id="launch-add"
# Here three programs add 37 numbers:

# %% id="add-run"
programs = triton.cdiv(37, 16)  # 37 / 16, rounded up
launch(add, programs, [np.arange(37), np.ones(37)], [37], 37, B=16)[-5:].tolist()

# %% [markdown] id="rows"
# ## A row in a loop
#
# Now one program takes a whole row of a table $X$ with $n$ columns, and goes through it in blocks of 16. The rows lie in memory one after
# the other. Counted from 0,
#
# $$X_{ij} = x_{i\,n + j} \key{row-major-address}$$
#
# so $X_{ij}$ stands at `x + i * n + j`, and row `row` begins at `x + row * n`. A load puts `other` where the mask leaves a number out. If
# `other` is missing, anything may stand there; where NumPy plays the GPU, a check puts infinity there, so that the mistake shows.
# `tl.sum(block, 0)` is the sum of a block.

# %% [markdown] id="sum-turn"
# In each rung, replace the dots and run the cell. The function below the kernel launches it. The check calls a task by its number in the
# exercises.
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


def my_row_sum(x):
    r, n = x.shape
    return launch(sum_of_row, r, [x], [r], n, B=16)


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
    ...  # m, before the first block
    for start in range(0, n, B):
        j = start + tl.arange(0, B)
        ...  # load a block of the row
        m = tl.maximum(m, tl.max(block, 0))
    tl.store(out + row, m)


def my_row_max(x):
    r, n = x.shape
    return launch(row_max, r, [x], [r], n, B=16)


check("row-maximum-kernel", my_row_max)

# %% [markdown] id="max-turn-ours" tags=["ours"]
# ```python
#     m = float("-inf")
#
#         block = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
# ```

# %% [markdown] id="spot"
# ## Spot the mistakes
#
# **Your turn.** {turn}`repair-row-softmax`


# %% id="softmax-turn-code" tags=["your-turn"]
@triton.jit
def row_softmax(x, out, n, B: tl.constexpr):
    ...  # mend two mistakes, then delete this line
    row, j = tl.program_id(0), tl.arange(0, B)
    s = tl.load(x + row * n + j, mask=j < n, other=0.0)
    p = tl.exp(s - tl.max(s, 0))
    tl.store(out + row * n + j, p / tl.sum(p, 0))


def my_softmax(x):
    r, n = x.shape
    return launch(row_softmax, r, [x], [r, n], n, B=64)


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
# Now the scores of a row are given, and each key has one number as its value. Lesson {lesson}`flash` kept three numbers: the largest score
# $m$ so far, the sum `row_sum` of $e^{s - m}$, and the sum `acc` of $e^{s - m}\, v$. When the maximum grows to $m'$, both sums are
# multiplied by $e^{m - m'}$.
#
# A first block holds two keys with the scores 0 and 0 and the values 1 and 3. So $m = 0$, `row_sum` is 2 and `acc` is 4. In the second
# block is one key, with the score $\ln 2$ and the value 9.
#
# **Predict** the new state by hand. Divide `acc` by `row_sum`: that must be the average that the cell computes from all three at once.

# %% id="state-by-hand" tags=["predicted"]
from attn_course.reference import softmax

print(f"{softmax(np.array([0, 0, np.log(2)])) @ [1, 3, 9]:.1f}")

# %% [markdown] id="state-answer" tags=["answer"]
# The maximum grows to $\ln 2$, so both sums are multiplied by $e^{0 - \ln 2} = 1/2$. Then the new key adds $e^0 = 1$ to `row_sum`, which is
# $2 / 2 + 1 = 2$, and 9 to `acc`, which is $4 / 2 + 9 = 11$. Their quotient is 5.5.

# %% [markdown] id="average-turn"
# Before the first block $m = -\infty$. So the first factor is $e^{-\infty} = 0$, because the new maximum is finite.
#
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
        factor, p = tl.exp(m - new), tl.exp(s - new)
        ...  # row_sum, acc and m with this block
    tl.store(out + row, acc / row_sum)


def my_average(x, values):
    return launch(average, len(x), [x, values], [len(x)], x.shape[1], B=16)


check("softmax-average-kernel", my_average)

# %% [markdown] id="average-turn-ours" tags=["ours"]
# ```python
#         row_sum = row_sum * factor + tl.sum(p, 0)
#         acc = acc * factor + tl.sum(p * v, 0)
#         m = new
# ```

# %% [markdown] id="tiles"
# ## Tiles
#
# `i[:, None]` is a column and `k[None, :]` a row, as in NumPy. Their sum has two axes, and so has a pointer plus this sum: it is a *tile*
# of addresses. A kernel may call functions that are marked like a kernel. This one loads the rows `i` of an array with rows of `D` numbers,
# and `store_rows(array, i, length, block, D)` in the folded cell stores a block there:


# %% id="load-rows-code"
@triton.jit
def load_rows(array, i, length, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(at, mask=i[:, None] < length, other=0.0)


# %% id="store-rows-code" tags=["hide-input"]
@triton.jit
def store_rows(array, i, length, block, D: tl.constexpr):
    at = array + i[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(at, block, mask=i[:, None] < length)


# %% [markdown] id="dot-turn"
# `tl.dot` multiplies two tiles, and needs at least 16 numbers along the axis that it sums. By default a GPU may round each factor to 11
# binary digits; `input_precision="ieee"` asks for full float32.
#
# **Your turn.** {turn}`first-dot-kernel`


# %% id="dot-turn-code" tags=["your-turn"]
@triton.jit
def product(x, w, out, r, K: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    b = load_rows(w, tl.arange(0, K), K, N)
    ...  # load this program's rows of x, multiply them with b, and store the product


def my_product(x, w):
    (r, k), n = x.shape, w.shape[1]
    return launch(product, triton.cdiv(r, 16), [x, w], [r, n], r, K=k, N=n, B=16)


check("first-dot-kernel", my_product)

# %% [markdown] id="dot-turn-ours" tags=["ours"]
# ```python
#     i = tl.program_id(0) * B + tl.arange(0, B)
#     a = load_rows(x, i, r, K)
#     store_rows(out, i, r, tl.dot(a, b, input_precision="ieee"), N)
# ```

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


def my_scores(q, k):
    (r, d), n = q.shape, len(k)
    programs = triton.cdiv(r, 16)
    return launch(scores, programs, [q, k], [r, n], r, n, d**-0.5, D=d, B=16)


check("tile-of-scores-kernel", my_scores)

# %% [markdown] id="scores-turn-ours" tags=["ours"]
# ```python
#         s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale
# ```

# %% [markdown] id="forward"
# ## Attention
#
# The grid takes the place of the loop over tiles of queries, and the loop over tiles of keys stays in the program. A load brings a tile
# from the large memory of the GPU. What a program computes, like the state, stays on the chip if it fits.

# %% [markdown] id="update"
# A tile of scores changes the state as a block of scores did. Each of the `B` queries has its own state, so `m` and `row_sum` are columns
# of `B` numbers, and `acc` is a tile of `B` by `D`. `no_keys(B, D)`, in a folded cell, is the state before the first tile.


# %% id="update-code"
@triton.jit
def update(m, row_sum, acc, s, v):
    new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
    factor, p = tl.exp(m - new), tl.exp(s - new)
    row_sum = row_sum * factor + tl.sum(p, 1, keep_dims=True)
    return new, row_sum, acc * factor + tl.dot(p, v, input_precision="ieee")


# %% id="no-keys-code" tags=["hide-input"]
@triton.jit
def no_keys(B: tl.constexpr, D: tl.constexpr):
    m = tl.full([B, 1], float("-inf"), tl.float32)
    return m, tl.zeros([B, 1], tl.float32), tl.zeros([B, D], tl.float32)


# %% [markdown] id="one-head"
# `one_head(kernel, query, key, value, B=16)` launches either of the two kernels that follow, with tiles of `B` by `B`:


# %% id="one-head-code" tags=["hide-input"]
def one_head(kernel, query, key, value, B=16):
    (r, d), n, programs = query.shape, len(key), triton.cdiv(len(query), B)
    arrays = [query, key, value]
    return launch(kernel, programs, arrays, [r, d], r, n, d**-0.5, D=d, B=B)


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
        ...  # the scores; keys that are not there; the new state
    store_rows(out, i, r, acc / row_sum, D)


def my_attention(query, key, value):
    return one_head(forward, query, key, value)


check("attention-kernel", my_attention)

# %% [markdown] id="forward-turn-ours" tags=["ours"]
# ```python
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         s = tl.where(j[None, :] < n, s, float("-inf"))
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="causal"
# ## Causal
#
# Let there be as many queries as keys, in square tiles. Under a causal mask a tile is then one of three kinds. In a tile above the diagonal
# no query sees a key, so it is *skipped*. A tile below is *whole*: all queries see all keys, so it needs no mask. Only a tile on the
# diagonal, at the *edge* of what is seen, needs one.
#
# 24 queries and 24 keys make 36 tiles of 4 by 4. **Predict** how many are visited, which means not skipped, and how many need the mask.

# %% id="causal-picture" tags=["predicted"]
figures.causal_tiles(24, 24, 4, 4)

# %% [markdown] id="causal-answer" tags=["answer"]
# The first 4 queries visit one tile, the next 4 visit two, and so on, which makes $1 + 2 + \dots + 6 = 21$. The last tile that they visit
# lies on the diagonal, so 6 need the mask.

# %% [markdown] id="causal-share"
# In general, let the $T$ queries be cut into $N$ blocks of $B$, and the $T$ keys, too, which makes $N^2$ tiles. (If $B$ does not divide
# $T$, round $N$ up.) This share of them is visited, about half for large $N$:
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
    ...  # a loop over the tiles below the diagonal
    k, v = load_rows(key, i, n, D), load_rows(value, i, n, D)
    ...  # the tile on the diagonal: scores, mask, new state
    store_rows(out, i, r, acc / row_sum, D)


def my_causal(query, key, value):
    return one_head(causal, query, key, value)


check("causal-attention-kernel", my_causal)

# %% [markdown] id="causal-turn-ours" tags=["ours"]
# ```python
#     for start in range(0, first, B):
#         j = start + tl.arange(0, B)
#         k, v = load_rows(key, j, n, D), load_rows(value, j, n, D)
#         s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#         m, row_sum, acc = update(m, row_sum, acc, s, v)
#
#     s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
#     s = tl.where(i[None, :] <= i[:, None], s, float("-inf"))
#     m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="use"
# Which tiles of values does your kernel multiply by? NaN can show it, because $0 \cdot \text{NaN}$ is NaN. If one tile of values is NaN, so
# are the results of every program that multiplies by it, even where the weights are 0. The second cell looks at `plain`, which computes all
# scores and then masks them. (It has no programs; read a row as 16 queries.) In its first line, replace `plain` by `my_causal`: the pattern
# must be that of the drawing above.


# %% id="plain" tags=["hide-input"]
def plain(query, key, value):
    scores = query @ key.T / np.sqrt(key.shape[1])
    return softmax(np.where(np.tri(len(key)), scores, -np.inf)) @ value


# %% id="use-traced"
attend = plain
used = np.zeros((6, 6), dtype=bool)  # 6 tiles of 16 queries, 6 of values
for tile in range(6):
    query, key, value = np.ones((3, 96, 16))
    value[16 * tile : 16 * tile + 16] = np.nan
    out = torch.as_tensor(attend(query, key, value))
    used[:, tile] = out[::16, 0].isnan().cpu()
figures.used_tiles(used)

# %% [markdown] id="larger"
# ## Larger tiles
#
# Does our kernel move fewer bytes than plain attention? For each visited tile it loads $B$ keys and $B$ values. If $B$ divides $T$ and a
# number has $b$ bytes, the loads of keys and values of all programs together are
#
# $$M_{\mathrm{causal}} = \frac{N\,(N + 1)}{2}\, B\, (d_k + d_v)\, b, \qquad N = \frac{T}{B} \key{causal-tile-bytes}$$
#
# bytes. Take $T = 128$, widths of 64 and $b = 4$. With $B = 16$ there are $N = 8$ tiles in a row, and $36 \cdot 16 \cdot 128 \cdot 4$ bytes are
# 295 kB. In plain attention, with kernels like `scores` and the same tiles, the two products visit all 64 tiles and load 524 kB. It also writes
# and reads scores and weights, $4 \cdot 128^2$ numbers or 262 kB. That makes 786 kB.
#
# **Predict** the kilobytes of our kernel for $B = 64$.

# %% id="larger-bytes" tags=["predicted"]
for B in (16, 32, 64):
    N = 128 // B
    print(f"B = {B}: {N * (N + 1) // 2 * B * 128 * 4 / 1000:3.0f} kB")

# %% [markdown] id="larger-answer" tags=["answer"]
# With $B = 64$ there are 2 tiles in a row, and 3 are visited: $3 \cdot 64 \cdot 128 \cdot 4$ bytes are 98 kB, a third of what tiles of 16
# load. Twice the tile size makes about a quarter of the visits, and each loads twice as much.

# %% [markdown] id="package-ours"
# For this your kernel needs no new line, as `B` is an argument. Let `mine` be the result of your kernel with tiles of 64, and compare it
# with PyTorch's:

# %% id="agree"
query, key, value = np.random.default_rng(12).normal(size=(3, 100, 16))
mine = plain(query, key, value)  # or one_head(causal, query, key, value, B=64)

tensors = [guarded(each) for each in (query, key, value)]
theirs = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)
print("the same output:", torch.allclose(guarded(mine), theirs, atol=1e-5))

# %% [markdown] id="limits"
# **Limits.** We counted bytes as if nothing were cached, without queries and outputs, which are the same in both, and measured no time. NumPy
# forgives what a GPU does not: it multiplies tiles narrower than 16, rounds no factor to 11 binary digits, and runs the programs one after
# the other, where a GPU runs them in any order. Outside the course, `torch.as_tensor` and `torch.empty`, for float32 on the GPU, take the
# place of our helpers. The last cell checks all formulas, also the four in *Deeper*.

# %% id="verify-lesson"
verify_lesson("kernels")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | rows in memory, {eq}`row-major-address` | {key}`row-major-address` | counted from 0 |
# | tiles under a causal mask, {eq}`causal-tile-share` | {key}`causal-tile-share` | only the diagonal needs the mask |
# | bytes of its keys and values, {eq}`causal-tile-bytes` | {key}`causal-tile-bytes` | for large $N$ half as many for twice the $B$ |

# %% [markdown] id="summary"
# ## Summary
#
# - A program owns a block of the output, and its number tells it which one.
# - A pointer plus a block of numbers is a block of addresses, and a mask leaves out what is not there.
# - `other` must be what changes nothing: 0 for a sum, $-\infty$ for a maximum, and a score of $-\infty$ for a missing key.
# - The state stays in the program while tiles of keys pass by. Only the tile on the diagonal needs the causal mask.
#
# So FlashAttention for a GPU needs little more than the sum of two arrays: a loop, a product, and a state that is kept. Now the
# [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb).

# %% [markdown] id="overlap"
# ## Deeper: how much can two units save?
#
# In a GPU products and exponentials run on different units. Let $N > 1$ tiles take $t_1$ each on the first and $t_2$ on the second, and let
# the products of the next tile not wait for the exponentials of this one. (A product with values waits for its weights, so we count it
# among the products of a later tile. This changes only the first and the last tiles.)
#
# $$t(N) = t_1 + (N - 1)\, \max(t_1, t_2) + t_2 \;<\; N\, (t_1 + t_2) \label{overlapped-tile-time}$$

# %% id="overlap-figure"
figures.schedule(2, 1, tiles=4)

# %% [markdown] id="overlap-notice"
# With many tiles the slower unit alone sets the pace. So at most half of the time is saved, and only if both take the same time. For this
# the package's kernel computes the scores of the next tile before it uses the weights of this one. It also saves one multiplication per
# score:
#
# $$e^{s - m} = 2^{\,s \log_2 e - m \log_2 e} \label{exponential-in-base-two}$$
#
# `tl.exp` multiplies each number by $\log_2 e$ first. For half-precision inputs the package puts this factor into the scale of the scores.

# %% [markdown] id="package-changes"
# The course's own kernel, `flash_forward` in `attn_course/gpu`, is your last rung with a few changes:
#
# | yours | the course's |
# |---|---|
# | tiles of `B` by `B` | at most 128 queries by 64 keys, since all tiles of a program must fit on the chip |
# | `tl.exp(s - new)` | for half-precision inputs `tl.exp2(s - new)`, with the factor in the scale |
# | one tile after the other | the next tile's scores are computed before this tile's product with its values |
# | program 0 takes the first queries | program 0 takes the last ones, which see most keys |
# | one head | the grid counts heads too, and several heads of queries may share one head of keys |

# %% [markdown] id="backward"
# ## Deeper: why may two runs differ in their last bits?
#
# In a backward pass every tile of queries adds to the gradient of a key. If programs add to the same place, they do so in any order, and
# rounding depends on the order. Here the same three numbers have two sums:

# %% id="rounding"
one, large = np.float32(1), np.float32(2**24)
print(one + large - large, large - large + one)

# %% [markdown] id="two-kernels"
# The package has two kernels instead. In one, a program owns a block of keys and lets the queries pass by, {eq}`key-gradient-in-blocks`. In
# the other it owns a block of queries. So no two programs add to the same place, and all runs with the same sizes and tiles on one GPU give
# the same bits. The price is that each kernel computes $S$ and $dP$ for itself, which makes seven products where five are needed:
#
# $$\begin{gathered}
# F_{\mathrm{two\ kernels}} = 2\, T_q T_k\, (4\, d_k + 3\, d_v), \\
# d_k = d_v:\; \frac{F_{\mathrm{two\ kernels}}}{F_{\mathrm{backward}}} = \frac{7}{5} \end{gathered} \label{two-kernel-backward-flops}$$

# %% [markdown] id="any-order"
# ## Deeper: may several programs share one query?
#
# They may, if each takes keys of its own and a last one merges their states. Let $X$ and $Y$ be states of keys, with none in common, and
# $X \oplus Y$ that of all of them. The merge takes the larger maximum $m$ and brings both sums to it: $X \oplus Y$ has
# $\ell = e^{m_X - m} \ell_X + e^{m_Y - m} \ell_Y$, and $a$ alike. A maximum and a sum do not depend on the order of their terms, rounding
# aside. So neither does the merge:
#
# $$(X \oplus Y) \oplus Z = X \oplus (Y \oplus Z), \qquad X \oplus Y = Y \oplus X, \qquad X \oplus (-\infty, 0, 0) = X
# \label{merging-is-commutative-monoid}$$
#
# The last term is the state of no keys. (For two of these, $e^{-\infty - (-\infty)}$ is read as 0.)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - P. Tillet, H. T. Kung and D. Cox (2019), "Triton: an intermediate language and compiler for tiled neural network computations", MAPL.
# - The tutorials of Triton, [triton-lang.org](https://triton-lang.org/main/getting-started/tutorials/index.html): sums, a product, attention.
# - S. Rush, [Triton-Puzzles](https://github.com/srush/Triton-Puzzles): more rungs, in the same interpreter.
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): the algorithm of the last rungs.
# - J. Shah and others (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): products and exponentials at the same time.
