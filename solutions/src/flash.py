# %% [markdown] id="title"
# # Exercises {lesson}`flash`: FlashAttention
#
# Thirteen tasks to the lesson [{lesson}`flash` FlashAttention](../notebooks/{lesson}`flash`_flash.ipynb): 33 points, about 152 minutes.
# Each stands for itself, so take them in any order.
#
# **How it works.** Write your answer into the cell that says `YOUR CODE HERE`, or after the `=` sign, run it, then run
# the check below it. A check that passes shows a green card in JupyterLab, elsewhere one line; one that fails names the
# mistake if it knows it, and stops "Run All". Three hints fold out below each question. Leave the checks as they are.
# In a terminal, `attn-course check` runs the whole notebook afresh.

# %% [markdown] id="setup-text"
# Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 (whole numbers where the text says
# so) and must not be changed. Rows are queries, columns keys. There is no mask unless the task says so, and the scale
# of scores is $1/\sqrt{d_k}$.
#
# The last task needs Triton (Linux; `pip install triton`). Without a GPU its interpreter runs the kernels, slowly, with
# NumPy. The variable below chooses it, and must be set before Triton is imported. The interpreter does not check
# addresses: if Python dies ("the kernel died"), a load or store left its array. Restart, and look at the mask and at the
# number of programs.

# %% id="setup" tags=["setup"]
import os

import numpy as np
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# %% id="setup-check"
from attn_course import check

STUDENT = ""  # your id, if your course gave you one; your numbers depend on it

# %% [markdown] id="merge-two-states-text"
# Two programs saw disjoint blocks of keys, A and B, for the same $n$ queries. Each kept, measured from its maximum $m$
# `(n,)`: the sum $\ell$ `(n,)` of $e^{s - m}$ and the accumulator $a$ `(n, d_v)`, the same sum times values. Write
# `my_merge(m_a, l_a, a_a, m_b, l_b, a_b)`, which returns the state of both blocks as the tuple `(m, l, a)`,
# {eq}`merge-of-attention-states`,
# not divided.
#
# Maxima may lie hundreds apart. A query that saw no key on one side has $(-\infty, 0, 0)$ there; if on both sides, so
# is the result, without NaN.


# %% id="merge-two-states" tags=["task"]
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    """Two states (n,), (n,), (n, d_v) -> the state of both blocks, {eq}`merge-of-attention-states`."""
    ### BEGIN SOLUTION
    m = np.maximum(m_a, m_b)
    shift = np.where(np.isneginf(m), 0.0, m)  # never -inf - -inf
    factor_a, factor_b = np.exp(m_a - shift), np.exp(m_b - shift)
    return m, factor_a * l_a + factor_b * l_b, factor_a[:, None] * a_a + factor_b[:, None] * a_b
    ### END SOLUTION


# %% id="merge-two-states-check" tags=["check"]
check("merge-two-states", my_merge)

# %% [markdown] id="merge-two-states-why" tags=["solution-only"]
# **Why.** Both sums are moved to the larger maximum, so no exponent is positive. Where both maxima are $-\infty$ we
# subtract 0 instead, and $e^{-\infty} = 0$ does the rest.

# %% [markdown] id="bytes-saved-by-tiles-text"
# One head attends over $T$ positions ($T_q = T_k$) with $d_k = d_v$; all numbers (log-sum-exps too) have the same size, and there is
# no mask. By what factor does tiling reduce the bytes moved: $M_{\mathrm{plain}} / M_{\mathrm{tiled}}$, {eq}`plain-attention-bytes` and
# {eq}`tiled-attention-bytes`? The cell below prints your $T$, $d_v$ and two sizes $B$ of a block of queries. Write `my_factors = (a, b)`,
# one for each size, exact for this length, not the limit (four correct digits are enough; expressions are welcome).

# %% id="bytes-saved-by-tiles" tags=["task"]
### BEGIN SOLUTION
plain = 4 * T * d_v + 4 * T**2
my_factors = tuple(plain / (T * (2 * d_v + 1) + T / block * T * 2 * d_v) for block in B)
### END SOLUTION

# %% id="bytes-saved-by-tiles-check" tags=["check"]
check("bytes-saved-by-tiles", my_factors)

# %% [markdown] id="bytes-saved-by-tiles-why" tags=["solution-only"]
# **Why.** With 64 queries in a block and $d_v = 128$, nearly nothing is saved: what no longer moves as scores moves as
# keys and values that pass by 64 times. Tiles pay when the block is large against the width, {eq}`plain-to-tiled-bytes`: $2 B_q / d_v$
# is 1 and 4.

# %% [markdown] id="shared-key-tile-bytes-text"
# Grouped-query attention in tiles: $g$ query heads share one head of keys and values. Lengths are $t$, widths $d$, a
# number has $b$ bytes, no mask. A program holds a block of $r$ queries **of each** of the $g$ heads ($r$ divides $t$)
# while keys and values pass by once for all of them. Queries are read once; outputs and one log-sum-exp for each query
# and head are written once. Write the bytes moved for all $g$ heads, in `t`, `d`, `r`, `g`, `b`: sums, products,
# powers.

# %% id="shared-key-tile-bytes" tags=["task"]
### BEGIN SOLUTION
my_bytes = b * (g * t * (2 * d + 1) + (t / r) * t * 2 * d)
### END SOLUTION

# %% id="shared-key-tile-bytes-check" tags=["check"]
check("shared-key-tile-bytes", my_bytes)

# %% [markdown] id="shared-key-tile-bytes-why" tags=["solution-only"]
# **Why.** Only the first term of {eq}`tiled-attention-bytes` exists for every head; the passing keys serve $g r$ rows at a time, which
# raises the intensity by $g$. For decoding ($t$ keys, one query) this is all that helps.

# %% [markdown] id="streamed-attention-text"
# Keys and values arrive as a stream: `key_blocks` is a list of arrays `(n_c, d_k)`, `value_blocks` of
# `(n_c, d_v)`, with $n_c \ge 1$; blocks differ in length. Write `my_stream(query, key_blocks,
# value_blocks)` for `query` `(q_len, d_k)`. It goes through the blocks once, keeps the state of {eq}`tiled-attention-update`, and returns
# the tuple `(output, lse)` of shapes `(q_len, d_v)` and `(q_len,)`, {eq}`row-lse-and-output`, natural logarithm.
#
# Scores lie between -20 000 and 20 000, in any order.


# %% id="streamed-attention" tags=["task"]
def my_stream(query, key_blocks, value_blocks):
    """(q_len, d_k) and lists of (n, d_k), (n, d_v) -> output (q_len, d_v), lse
    (q_len,)."""
    ### BEGIN SOLUTION
    row_max = np.full(len(query), -np.inf)
    row_sum = np.zeros(len(query))
    acc = np.zeros((len(query), value_blocks[0].shape[1]))
    for key, value in zip(key_blocks, value_blocks, strict=True):
        scores = query @ key.T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1))
        rescale, p = np.exp(row_max - new_max), np.exp(scores - new_max[:, None])
        row_sum = rescale * row_sum + p.sum(axis=1)
        acc = rescale[:, None] * acc + p @ value
        row_max = new_max
    return acc / row_sum[:, None], row_max + np.log(row_sum)
    ### END SOLUTION


# %% id="streamed-attention-check" tags=["check"]
check("streamed-attention", my_stream)

# %% [markdown] id="streamed-attention-why" tags=["solution-only"]
# **Why.** At the start the maximum is $-\infty$, so the first factor is $e^{-\infty} = 0$: no special case. The
# division comes once, at the end.

# %% [markdown] id="causal-tile-counts-text"
# A causal kernel cuts the scores into tiles: blocks of `block_q` queries from query 0 on, blocks of `block_kv` keys
# from key 0 on; the last block may be smaller, and only pairs that exist count. Query $i$ sees key $j$ if $j \le i + p$
# with $p$ = `q_offset`, which may be negative. Write `my_tiles(q_len, kv_len, block_q, block_kv, q_offset)` (five whole
# numbers). It returns three **floats** `(skipped, whole, edge)`: tiles in which no pair is visible, all are, and the
# others.


# %% id="causal-tile-counts" tags=["task"]
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    """How many tiles are skipped, whole, at the edge."""
    ### BEGIN SOLUTION
    skipped = whole = edge = 0.0
    for first_query in range(0, q_len, block_q):
        last_query = min(first_query + block_q, q_len) - 1
        for first_key in range(0, kv_len, block_kv):
            last_key = min(first_key + block_kv, kv_len) - 1
            if first_key > last_query + q_offset:
                skipped += 1
            elif last_key <= first_query + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge
    ### END SOLUTION


# %% id="causal-tile-counts-check" tags=["check"]
check("causal-tile-counts", my_tiles)

# %% [markdown] id="causal-tile-counts-why" tags=["solution-only"]
# **Why.** The last query of a tile sees most: if it does not see the first key, nobody sees any. The first query sees
# least: if it sees the last key, everybody sees all. Only the edge needs a mask.

# %% [markdown] id="repair-tiled-loop-text"
# The function below should compute attention over blocks of keys: `query` `(q_len, d_k)`, `key` `(kv_len, d_k)`,
# `value` `(kv_len, d_v)`, and `block`, a whole number that need not divide `kv_len` and is at most `kv_len`. The result
# has shape `(q_len, d_v)`; scores lie between -20 000 and 20 000. It is wrong in two places, and a test with one block
# does not notice. Repair it.


# %% id="repair-tiled-loop" tags=["task"]
def tiled_attention(query, key, value, block):
    """Attention over blocks of keys: (q_len, d_k), (kv_len, d_k), (kv_len, d_v),
    block -> (q_len, d_v)."""
    ### BEGIN SOLUTION
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        rescale = np.exp(row_max - new_max)
        row_sum = row_sum * rescale + p.sum(axis=1, keepdims=True)
        acc = acc * rescale + p @ value[tile]
        row_max = new_max
    return acc / row_sum
    ### END SOLUTION


# %% id="repair-tiled-loop-check" tags=["check"]
check("repair-tiled-loop", tiled_attention)

# %% [markdown] id="repair-tiled-loop-why" tags=["solution-only"]
# **Why.** (1) The accumulator is measured from the running maximum, like the sum, and needs the same factor. (2)
# `len(key) // block` rounds down and loses the last keys. If the largest score stands in the first block, (1) does no
# harm at all: test with a maximum that grows.

# %% [markdown] id="tile-score-gradient-text"
# The backward pass sees one tile: $n$ queries and $c$ **of their keys**. Write `my_score_gradient(scores, value,
# d_output, output, lse, d_lse)`:
#
# - `scores` `(n, c)` and `value` `(c, d_v)` belong to the tile, the scores scaled already;
# - `output` `(n, d_v)` and `lse` `(n,)` are what the forward pass kept of the **whole** rows, over all keys;
# - `d_output` `(n, d_v)` and `d_lse` `(n,)` are the gradients of the loss with respect to these two.
#
# Return the gradient of the loss with respect to the scores of the tile, `(n, c)`, {eq}`score-gradient-with-lse`. Scores may be near
# $-900$.


# %% id="tile-score-gradient" tags=["task"]
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    """The gradient of a tile of scores (n, c), {eq}`score-gradient-with-lse`."""
    ### BEGIN SOLUTION
    p = np.exp(scores - lse[:, None])
    delta = (d_output * output).sum(axis=1) - d_lse
    return p * (d_output @ value.T - delta[:, None])
    ### END SOLUTION


# %% id="tile-score-gradient-check" tags=["check"]
check("tile-score-gradient", my_score_gradient)

# %% [markdown] id="tile-score-gradient-why" tags=["solution-only"]
# **Why.** `lse` turns scores into weights without the rest of the row; $dO \cdot O$ is the sum over all keys that the
# tile lacks; and the gradient of $L$ needs the same weights, so it joins $\delta$.

# %% [markdown] id="merge-decoding-splits-text"
# Several programs share the keys of the same queries. Split $c$ returns its finished output and its log-sum-exp:
# `outputs` has shape `(n_splits, n, d_v)`, `lses` `(n_splits, n)`. Write `my_gather(outputs, lses)`. It returns the
# tuple `(output, lse)` for all keys, shapes `(n, d_v)` and `(n,)`, {eq}`merge-of-finished-outputs`.
#
# Log-sum-exps may be near 1000. A split that held no visible key for a query has output 0 and $L = -\infty$ there; if
# that is so in all splits, the result is output 0 and $L = -\infty$, without NaN.


# %% id="merge-decoding-splits" tags=["task"]
def my_gather(outputs, lses):
    """Outputs (n_splits, n, d_v) and log-sum-exps (n_splits, n) -> those of all
    keys, {eq}`merge-of-finished-outputs`."""
    ### BEGIN SOLUTION
    top = lses.max(axis=0)
    shift = np.where(np.isneginf(top), 0.0, top)
    shares = np.exp(lses - shift)
    total = shares.sum(axis=0)
    weights = shares / np.where(total == 0.0, 1.0, total)
    with np.errstate(divide="ignore"):
        lse = shift + np.log(total)
    return (weights[..., None] * outputs).sum(axis=0), lse
    ### END SOLUTION


# %% id="merge-decoding-splits-check" tags=["check"]
check("merge-decoding-splits", my_gather)

# %% [markdown] id="merge-decoding-splits-why" tags=["solution-only"]
# **Why.** A split counts with its share $e^{L^{(c)} - L}$ of the whole sum of exponentials: a softmax over splits.

# %% [markdown] id="read-overlap-schedule-text"
# The cell below shows how the first three tiles of a kernel keep two units busy, **without** overlap: upper row the
# matrix products, lower row the exponentials, in clock ticks. Write `my_schedule = (a, b, c, d)`:
#
# - `a`, `b`: ticks that one tile takes on the matrix unit, and on the unit for exponentials;
# - `c`: ticks that **ten** tiles take if the products of the next tile need not wait for the exponentials of this
#   one, {eq}`overlapped-tile-time`;
# - `d`: how many times as long ten tiles take without overlap (three digits).

# %% id="read-overlap-schedule-figure"
from attn_course.lessons.flash import figures
from attn_course.tasks import figure_data

figures.schedule(**figure_data("read-overlap-schedule"))

# %% id="read-overlap-schedule" tags=["task"]
### BEGIN SOLUTION
my_schedule = (3, 2, 3 + 9 * 3 + 2, 10 * (3 + 2) / (3 + 9 * 3 + 2))
### END SOLUTION

# %% id="read-overlap-schedule-check" tags=["check"]
check("read-overlap-schedule", my_schedule)

# %% [markdown] id="read-overlap-schedule-why" tags=["solution-only"]
# **Why.** With overlap the slower unit, here the products, works without a break; only the exponentials of the last
# tile stick out.

# %% [markdown] id="answers-in-latex"
# The next three answers are written in LaTeX, and any form that is equal counts. To see how an answer is understood, `from
# attn_course import read` and call, for instance, `read("merge-of-two-blocks", my_merging)`; what cannot be read is no
# attempt.

# %% [markdown] id="merge-of-two-blocks-text"
# The keys of one query, with scores $s_j$ and rows $v_j$ of values, are split into two sets $A$ and $B$. $L_A$ and $z_A$ are
# the log-sum-exp and the output of $A$ alone, $L_B$ and $z_B$ those of $B$; $L$ is the log-sum-exp of all keys. Derive
# {eq}`merge-of-finished-outputs` as a list of lines, each equal to the one before.

# %% [markdown] id="merge-of-two-blocks-lines"
# Begin with attention over all keys and end with the merge, in three steps or more. A sum over the keys of a block is
# `\sum_{j \in A}`.
#
# ```python
# my_merging = [
#     r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
#     # your lines
#     r"e^{L_A - L} z_A + e^{L_B - L} z_B",
# ]
# ```

# %% id="merge-of-two-blocks" tags=["task"]
### BEGIN SOLUTION
my_merging = [
    r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
    r"\sum_j e^{s_j - L} v_j",
    r"\sum_{j \in A} e^{s_j - L} v_j + \sum_{j \in B} e^{s_j - L} v_j",
    r"\sum_{j \in A} e^{L_A - L} e^{s_j - L_A} v_j + \sum_{j \in B} e^{L_B - L} e^{s_j - L_B} v_j",
    r"e^{L_A - L} \sum_{j \in A} e^{s_j - L_A} v_j + e^{L_B - L} \sum_{j \in B} e^{s_j - L_B} v_j",
    r"e^{L_A - L} z_A + e^{L_B - L} z_B",
]
### END SOLUTION

# %% id="merge-of-two-blocks-check" tags=["check"]
check("merge-of-two-blocks", my_merging)

# %% [markdown] id="merge-of-two-blocks-why" tags=["solution-only"]
# **Why.** The sum beneath is $e^{L}$, and every term can be divided by it. Then the sum is split, and each exponent takes a
# detour over its own block: $s_j - L = (s_j - L_A) + (L_A - L)$. The second part does not depend on $j$ and leaves
# the sum; the first makes the weights of block $A$, whose sum of values is $z_A$. The two factors add up to 1, since
# $e^{L_A} + e^{L_B} = e^{L}$.

# %% [markdown] id="update-of-divided-outputs-text"
# The first FlashAttention (Dao et al., 2022) divided in every turn: after $n$ keys query $i$ has $m_i$ and $\ell_i$ as in
# {eq}`tiled-attention-update` and a finished output, the row $z_i$. A block of $B_k$ keys comes, with scores $s_{ij}$ and
# values $v_j$; $m'_i$ and $\ell'_i$ (type `m'_i`), over all $n + B_k$ keys, are known. Write the right side of
#
# $$z'_i = \dots$$
#
# the output over all these keys.

# %% id="update-of-divided-outputs" tags=["task"]
### BEGIN SOLUTION
my_new_output = r"\frac{\ell_i e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}"
### END SOLUTION

# %% id="update-of-divided-outputs-check" tags=["check"]
check("update-of-divided-outputs", my_new_output)

# %% [markdown] id="update-of-divided-outputs-why" tags=["solution-only"]
# **Why.** $\ell_i z_i$ is the old accumulator. It is measured from $m_i$, so it gets the factor $e^{m_i - m'_i}$; the
# block is measured from $m'_i$ at once; the sum is divided by $\ell'_i$. The second version (Dao, 2023) leaves the division
# to the end: GPUs are much slower at arithmetic that is no matrix product.

# %% [markdown] id="gradient-of-tile-scores-text"
# The backward pass rebuilds a tile: $B_q$ queries $i$ and $B_k$ of their $n$ keys, $j$. It has the scores $s_{ij}$ and values
# $v_j$ of the tile, and of each whole row, over all $n$ keys, $L_i$ and the output $z_i$. $dO_i$ is the gradient of the loss
# by $z_i$; vectors are rows, and their dot product is `\cdot`. Write the right side of
#
# $$dS_{ij} = \dots$$

# %% id="gradient-of-tile-scores" tags=["task"]
### BEGIN SOLUTION
my_gradient = r"e^{s_{ij} - L_i} (dO_i \cdot v_j - dO_i \cdot z_i)"
### END SOLUTION

# %% id="gradient-of-tile-scores-check" tags=["check"]
check("gradient-of-tile-scores", my_gradient)

# %% [markdown] id="gradient-of-tile-scores-why" tags=["solution-only"]
# **Why.** In {eq}`score-gradient-by-entry` put $p_{ij} = e^{s_{ij} - L_i}$, $dP_{ij} = dO_i \cdot v_j$ and $\delta_i = dO_i
# \cdot z_i$. Collected, it is $e^{s_{ij} - L_i}\, dO_i \cdot (v_j - z_i)$: the gradient asks how value $j$ differs from the
# output, and a key whose value equals the output has none.

# %% [markdown] id="row-lse-kernel-text"
# The log-sum-exp of each row, block by block. One program takes one row of `scores`, goes through its columns in blocks
# of 16, keeps a running maximum and a running sum, and stores $m + \ln \ell$, {eq}`row-lse-and-output`. The number of columns need
# not be a multiple of 16, and may be smaller. Scores lie between $-300$ and 300.
#
# Two gaps: the body of the kernel, and the launch (one program for each row). `my_row_lse` gets an array `(n_rows,
# n_columns)` and returns the float32 tensor `lse`, filled with NaN at first: an entry nobody writes is seen. What float32
# rounds off is fine.


# %% id="row-lse-kernel" tags=["task"]
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    """One program: one row of scores (n_rows, n_columns), contiguous float32 -> one
    entry of lse."""
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    row_max = float("-inf")
    row_sum = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        block = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new_max = tl.maximum(row_max, tl.max(block, 0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(block - new_max), 0)
        row_max = new_max
    tl.store(lse_ptr + row, row_max + tl.log(row_sum))
    ### END SOLUTION


def my_row_lse(scores):
    """(n_rows, n_columns) -> (n_rows,) float32, by the kernel."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    ### BEGIN SOLUTION
    row_lse[(len(scores),)](scores, lse, scores.shape[1], BLOCK=16)
    ### END SOLUTION
    return lse


# %% id="row-lse-kernel-check" tags=["check"]
check("row-lse-kernel", my_row_lse)

# %% [markdown] id="row-lse-kernel-why" tags=["solution-only"]
# **Why.** The pointer plus `row * n_columns` is where the row begins. The mask keeps the load inside the row, and what
# it does not read counts as $-\infty$, whose exponential is 0. The loop carries two numbers; `tl.log` is the natural
# logarithm.
