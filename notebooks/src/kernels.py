# %% [markdown] id="title"
# # {lesson}`kernels` Kernels: a ladder to causal attention
#
# The second version of FlashAttention exchanged two loops. Its paper names who had done so first: Philippe Tillet, in an example kernel
# for *Triton*, his language for GPUs. **Can you write such a kernel, if you start from a sum of two arrays?**
#
# The ladder has eight rungs of a few lines. At its top your kernel reads a story in all 30 layers of a language model, beside two wrong
# kernels. One of those will look better than yours.
#
# **You need** lesson {lesson}`flash`, and no GPU. **Time:** 70 minutes if you type every rung, without *Deeper* sections and
# the [exercises](../work/ex_{lesson}`kernels`_kernels.ipynb). Triton runs on Linux. Elsewhere the course brings a small stand-in.

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
# A **kernel** is a function that a GPU runs many times at once. Each run is called a **program**. All programs run the same lines, so each
# must find out which part of the data is its own. For this `tl.program_id(0)` gives it its number.

# %% [markdown] id="pointer"
# A kernel sees an array as a **pointer**, the address of its first number. Triton counts in numbers: the next one stands at the address
# plus 1, so a pointer plus a block of whole numbers is a block of addresses. `tl.load` brings the numbers that stand there into the
# program, and `tl.store` writes numbers back. The **mask** says which addresses count. This kernel adds two arrays:


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
# A kernel is launched as `kernel[(programs,)](...)`. The tuple in the square brackets is the **grid**. We give the `constexpr` arguments
# by name, such as `B=16`.
#
# A GPU need not complain when a mask is missing: it may read, or overwrite, whatever lies there. So our `launch` sets a trap that shows
# many such mistakes: `guarded` copies an array between margins of NaN, `empty` makes an output full of NaN, and `finished` complains if a
# program has stored something in the margins.

# %% id="launch-code"
from attn_course.experiments.guarded import empty, finished, guarded


def launch(kernel, programs, arrays, shape, *numbers, **sizes):
    """Run so many programs of a kernel; return its output, which has this shape."""
    out = empty(*shape)
    kernel[(programs,)](*map(guarded, arrays), out, *numbers, **sizes)
    return finished(out)


# %% [markdown] id="launch-add"
# Three programs add 37 numbers:

# %% id="add-run"
programs = triton.cdiv(37, 16)  # 37 / 16, rounded up
launch(add, programs, [np.arange(37), np.ones(37)], [37], 37, B=16)[-5:].tolist()

# %% [markdown] id="rows"
# ## Rungs 1 and 2: a row in a loop
#
# A row may be longer than a block, so a program goes through it in a loop, 16 numbers at a time. In a table $X$
# with $n$ columns the rows lie in memory one after the other. Counted from 0,
#
# $$X_{ij} = x_{i\,n + j} \key{row-major-address}$$
#
# so $X_{ij}$ stands at `x + i * n + j`, and row `row` begins at `x + row * n`.

# %% [markdown] id="other"
# The last block may reach beyond its row. A load puts `other` where the mask leaves a number out. If `other` is missing, anything may stand
# there. Where NumPy plays the GPU, this is 0, and a plain launch may look right. So the `check` below each turn puts infinity there, and
# the mistake shows. `tl.sum(block, 0)` is the sum of a block.

# %% [markdown] id="sum-turn"
# On each rung, replace the dots and run the cell.
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
# What is left out must not change the result, so for a sum `other` was 0. And for a maximum? `tl.max(block, 0)` is the largest number of a
# block, and `tl.maximum(a, b)` the larger of two.
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
# ## Rung 3: spot the mistakes
#
# The next kernel is not yours. What it returns looks like a softmax of each row:


# %% id="broken-code"
@triton.jit
def broken_softmax(x, out, n, B: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, B)
    s = tl.load(x + row * n + j, mask=j < n, other=0.0)
    p = tl.exp(s - tl.max(s, 0))
    tl.store(out + row * n + j, p / tl.sum(p, 0))


# %% [markdown] id="broken-predict"
# We launch it without `finished`, so that nobody complains, on one row of 37 zeros. Each share should be $1/37$, so that they sum to 1.
# **Predict** their sum.

# %% id="broken-run" tags=["predicted"]
shares = empty(1, 37)
broken_softmax[(1,)](guarded(np.zeros((1, 37))), shares, 37, B=64)
print(f"{shares.sum():.2f}")

# %% [markdown] id="broken-answer" tags=["answer"]
# The load fills 27 more places with 0, and each counts, with $e^0 = 1$. So each share is $1/64$, and the 37 shares
# sum to $37/64 \approx 0.58$.

# %% [markdown] id="softmax-turn"
# That was one mistake of two.
#
# **Your turn.** {turn}`repair-row-softmax`


# %% id="softmax-turn-code" tags=["your-turn"]
@triton.jit
def row_softmax(x, out, n, B: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, B)
    ...  # the load, mended
    p = tl.exp(s - tl.max(s, 0))
    ...  # the store, mended


def my_softmax(x):
    r, n = x.shape
    return launch(row_softmax, r, [x], [r, n], n, B=64)


check("repair-row-softmax", my_softmax)

# %% [markdown] id="softmax-turn-ours" tags=["ours"]
# ```python
#     s = tl.load(x + row * n + j, mask=j < n, other=float("-inf"))
#
#     tl.store(out + row * n + j, p / tl.sum(p, 0), mask=j < n)
# ```
#
# Without its mask the store also writes into the rows behind its own, and from the last row into the margin, where our trap sees it. When
# NumPy plays the GPU, the programs of these rows run later, and write over it. But a GPU runs programs in any order.

# %% [markdown] id="state"
# ## Rung 4: the state of a row
#
# A softmax needs the maximum and the sum of the whole row, but a program sees one block at a time. Lesson {lesson}`flash` solved this with
# a state of three numbers. Let the scores of a row be given, and one number $v$ as the value of each key. The state holds the largest score
# $m$ so far, the sum `row_sum` of $e^{s - m}$, and the sum `acc` of $e^{s - m}\, v$. When the maximum grows to $m'$, both sums are
# multiplied by $e^{m - m'}$.

# %% [markdown] id="state-hand"
# By hand: four scores, $0$, $\ln 2$, $\ln 4$ and $0$, have the values 1, 4, 2 and 6, and a block holds two of them.
#
# | after | $m$ | `row_sum` | `acc` |
# |---|---|---|---|
# | the first block | $\ln 2$ | 1.5 | 4.5 |
# | the second block | $\ln 4$ | 2 | 5.75 |
#
# In the last line both sums are halved: $\frac12 \cdot 1.5 + 1 + \frac14$ and $\frac12 \cdot 4.5 + 1 \cdot 2 + \frac14 \cdot 6$.
# The result is $5.75 / 2 = 2.875$, as for all at once, $(1 + 8 + 8 + 6) / 8$.

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
# ## Rungs 5 and 6: tiles
#
# A program with 16 queries loads each key once for all 16. For this it needs addresses with two axes. `i[:, None]` is a column and `k[None, :]` a row, as in NumPy, and a pointer plus their sum is a *tile* of
# addresses.
#
# A kernel may call functions that are marked like it. This one loads the rows `i` of an array with `D` columns, and the folded
# `store_rows(array, i, length, block, D)` stores a block there:


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
    i = tl.program_id(0) * B + tl.arange(0, B)
    ...  # load the rows i of x, multiply them with b, and store the product


def my_product(x, w):
    (r, k), n = x.shape, w.shape[1]
    return launch(product, triton.cdiv(r, 16), [x, w], [r, n], r, K=k, N=n, B=16)


check("first-dot-kernel", my_product)

# %% [markdown] id="dot-turn-ours" tags=["ours"]
# ```python
#     a = load_rows(x, i, r, K)
#     store_rows(out, i, r, tl.dot(a, b, input_precision="ieee"), N)
# ```

# %% [markdown] id="scores-turn"
# Rung 6 puts this product into a loop over the keys. `tl.trans(k)` transposes a tile.
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
# ## Rung 7: attention
#
# Here is Tillet's order of the loops. A tile of queries needs nothing from the others, so the loop over these tiles becomes the grid. The
# loop over tiles of keys stays inside the program, and so does the state, on the chip if it fits. In the other order programs would own
# tiles of keys, and all would have to change the states of the same queries.

# %% [markdown] id="update"
# A tile of scores changes the state as a block did. Each of the `B` queries has its own, so `m` and `row_sum` are columns, and `acc` is a
# tile of `B` by `D`:


# %% id="update-code"
@triton.jit
def update(m, row_sum, acc, s, v):
    new = tl.maximum(m, tl.max(s, 1, keep_dims=True))
    factor, p = tl.exp(m - new), tl.exp(s - new)
    row_sum = row_sum * factor + tl.sum(p, 1, keep_dims=True)
    return new, row_sum, acc * factor + tl.dot(p, v, input_precision="ieee")


# %% [markdown] id="one-head"
# The folded cell holds `no_keys(B, D)`, the state before the first tile, and `one_head(kernel, query, key, value, B=16)`, which launches
# the last two kernels.


# %% id="one-head-code" tags=["hide-input"]
@triton.jit
def no_keys(B: tl.constexpr, D: tl.constexpr):
    m = tl.full([B, 1], float("-inf"), tl.float32)
    return m, tl.zeros([B, 1], tl.float32), tl.zeros([B, D], tl.float32)


def one_head(kernel, query, key, value, B=16):
    (r, d), n, programs = query.shape, len(key), triton.cdiv(len(query), B)
    arrays = [query, key, value]
    return launch(kernel, programs, arrays, [r, d], r, n, d**-0.5, D=d, B=B)


# %% [markdown] id="forward-turn"
# Keys that are not there are loaded as zeros, and would count like keys whose score is 0. `tl.where(mask, a, b)` takes `a` where
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
# ## Rung 8: causal
#
# Let there be as many queries as keys, in square tiles. In a tile above the diagonal no query sees
# a key, so it is *skipped*. A tile below is *whole*: all queries see all keys, so it needs no mask. Only a tile on the diagonal, at the
# *edge* of what is seen, needs one.
#
# 24 queries and 24 keys make 36 tiles of 4 by 4. **Predict** how many are visited, which means not skipped, and how many need the mask.

# %% id="causal-picture" tags=["predicted"]
figures.causal_tiles(24, 24, 4, 4)

# %% [markdown] id="causal-answer" tags=["answer"]
# The first 4 queries visit one tile, the next 4 two, and so on: $1 + 2 + \dots + 6 = 21$. The last one of each lies on the diagonal, so 6
# need the mask.

# %% [markdown] id="causal-share"
# In general, cut $T$ queries and $T$ keys into $N$ blocks of $B$ each. (If $B$ does not divide $T$, round $N$ up.) Of the $N^2$ tiles
# about half are visited for large $N$:
#
# $$\frac{\text{tiles visited}}{\text{tiles}} = \frac{N\, (N + 1) / 2}{N^2} = \frac{N + 1}{2\, N}, \qquad N = \frac{T}{B}
# \key{causal-tile-share}$$

# %% [markdown] id="causal-turn"
# **Your turn.** {turn}`causal-attention-kernel` Do not load tiles above the diagonal: in one case of the check
# their values are NaN, and 0 times NaN is NaN.


# %% id="causal-turn-code" tags=["your-turn"]
@triton.jit
def causal(query, key, value, out, r, n, scale, D: tl.constexpr, B: tl.constexpr):
    first = tl.program_id(0) * B
    i = first + tl.arange(0, B)
    q = load_rows(query, i, r, D)
    m, row_sum, acc = no_keys(B, D)
    ...  # a loop over the tiles below the diagonal
    k, v = load_rows(key, i, n, D), load_rows(value, i, n, D)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    ...  # on the diagonal: the mask, the new state
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
#     s = tl.where(i[None, :] <= i[:, None], s, float("-inf"))
#     m, row_sum, acc = update(m, row_sum, acc, s, v)
# ```

# %% [markdown] id="larger"
# ## Larger tiles
#
# Your kernel takes larger tiles as it is. For each visited tile a program loads $B$ keys and $B$ values. If $B$ divides $T$ and a number
# has $b$ bytes, the loads of keys and values of all programs together are
#
# $$M_{\mathrm{causal}} = \frac{N\,(N + 1)}{2}\, B\, (d_k + d_v)\, b, \qquad N = \frac{T}{B} \key{causal-tile-bytes}$$
#
# bytes. For $T = 128$, widths of 64 and $b = 4$:

# %% id="larger-bytes"
for B in (16, 32, 64):
    N = 128 // B
    print(f"B = {B}: {N * (N + 1) // 2 * B * 128 * 4 / 1000:3.0f} kB")

# %% [markdown] id="package-ours"
# With $B = 64$ three tiles are visited, and a third as many bytes move as with 16. Your kernel must still give what PyTorch gives, for 100
# queries:


# %% id="agree" tags=["live"]
def pytorch(query, key, value):
    tensors = [torch.as_tensor(each) for each in (query, key, value)]
    return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True)


arrays = np.random.default_rng(12).normal(size=(3, 100, 16))
mine = torch.as_tensor(one_head(causal, *arrays, B=64)).cpu().double()
print("the same output:", torch.allclose(mine, pytorch(*arrays), atol=1e-5))

# %% [markdown] id="reads"
# ## Your kernel reads a story
#
# The smallest SmolLM2, with 135 million numbers, has 30 layers with nine heads of queries each, of which three at a time share one head of
# keys and values. `read` lets `attend` do
# the attention of all heads while the model reads a story, and returns scores for the next word behind each of its words. (Without the
# model, these cells print nothing.)

# %% id="reads-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="reads-code"
story = "The lighthouse keeper lit the lamp every evening. One night the storm put "
story += "it out, and the keeper climbed up to light the"


def read(attend):
    def heads(query, key, value, **options):
        found = [attend(q, key[h // 3], value[h // 3]) for h, q in enumerate(query)]
        return torch.stack(found).to(query)

    for block in model.network.blocks:
        block.attention.attend = heads
    with torch.inference_mode():
        return model.network(model.ids(story))


# %% id="reads-yours" tags=["live"]
def tell(name, scores):
    shares, ids = scores[-1].softmax(-1), model.ids(story)
    word = model.tokenizer.decode([int(shares.argmax())])
    loss = torch.nn.functional.cross_entropy(scores[:-1], ids[1:])
    off = (scores - theirs).abs().max()
    print(f"{name}:{word}, {shares.max():.2f}; loss {loss:.2f}; off by {off:.4f}")


if model.is_here:
    theirs = read(pytorch)
    tell("PyTorch", theirs)
    tell("you", read(my_causal))

# %% [markdown] id="reads-notice"
# On our machine both went on with *lamp*, with probability 0.45. The loss, the mean of $-\ln p$ of the words
# that do come next, was 4.49 twice, and no score was off by more than 0.0001.
#
# Does a right word prove a kernel right? `short_sighted` leaves out the loop of rung 8, so that no word sees beyond its own tile of 16. Your kernel of rung 7 has no causal mask. The story has 25 tokens, and *lamp* is the sixth. **Predict**
# which of the two still says *lamp*, and whether a loss falls below yours.


# %% id="reads-broken" tags=["live", "predicted"]
def short_sighted(query, key, value):
    tiles = zip(query.split(16), key.split(16), value.split(16), strict=True)
    return torch.cat([my_causal(*tile) for tile in tiles])


if model.is_here:
    tell("without the loop", read(short_sighted))
    tell("without the mask", read(my_attention))

# %% [markdown] id="reads-answer" tags=["answer"]
# Without the loop the last word cannot look back to *lamp*. Without the mask it sees what it may see anyway, the whole story. But each
# earlier word also sees the next one, which it should guess, and all behind it. So the loss falls, and this wrong kernel looks better
# than yours. The comparison with PyTorch shows the mistake. On our machine:
#
# | kernel | next word | its probability | loss | off by at most |
# |---|---|---|---|---|
# | without the loop | candle | 0.06 | 5.33 | 28.1 |
# | without the mask | lamp | 0.81 | 1.20 | 27.5 |

# %% [markdown] id="limits"
# **Limits.** Here NumPy played the GPU, and no time was measured on one. We counted bytes as if nothing were cached, without queries and
# outputs. NumPy forgives what a GPU does not: it multiplies tiles narrower than 16, rounds no factor to 11 binary digits, and runs programs
# in order. Outside the course, `torch.as_tensor` and `torch.empty` take the place of our helpers.

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
# - A program owns a block of the output. Its number tells it the addresses, and the mask says which of them count.
# - `other` must be what changes nothing: 0 for a sum, $-\infty$ for a maximum and for a missing key's score.
# - The state stays in the program. Only the tile on the diagonal needs the causal mask.
# - A right word proves little. Compare all numbers with those of a kernel that you trust.

# %% [markdown] id="summary-answer"
# So FlashAttention for a GPU needs little more than a sum of two arrays: a loop, a product, and a state that is kept. Now the
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
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): the algorithm of the last rungs; its § 3.2 names Tillet.
# - J. Shah and others (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): products and exponentials at the same time.
