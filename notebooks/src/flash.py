# %% [markdown] id="title"
# # {lesson}`flash` FlashAttention: attention without its tables
#
# Attention over $T$ positions makes a table of $T \times T$ scores, and a second one of as many weights. **Can we get exactly the same
# output, and the same gradients, without ever storing these tables?** At the end you will have a program that does, in plain NumPy. The
# algorithm is called FlashAttention.
#
# **You need** lessons {lesson}`softmax`, {lesson}`attention` and {lesson}`gradients`. **Time:** 65 minutes, without *Deeper* sections and
# the [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% [markdown] id="hook"
# ## One result, two running times
#
# Two programs computed the same attention on one thread of a CPU, three times each, and the course stored how long they took. *Eager* is
# the formula step by step, `(Q @ K.T * scale).softmax(-1) @ V`. *Sdpa* is PyTorch's `scaled_dot_product_attention`.

# %% id="hook-code"
import numpy as np

from attn_course.lessons.flash.experiments import ROOFLINE

record = ROOFLINE.load()
for name in ("eager", "sdpa"):  # 4096 positions, 16 features
    milliseconds = 1000 * record.values(f"{name}_s", "16")[:, -1]
    print(f"{name:5}", milliseconds.round(), "ms")

# %% [markdown] id="where"
# Sdpa took about a sixth of the time, though both do the same two matrix products. Eager stores a table of scores and one of weights. (The scale makes a
# third, which we do not count.) Sdpa works through the text in pieces and stores none. Here they are in the machine:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.flash import figures

figures.machine()

# %% [markdown] id="bytes"
# These tables are large. Each has $T^2$ numbers, here 4096 times 4096, which is 67 MB at 4 bytes a number. If eager writes both to memory and reads both
# back, 268 MB move. $Q$, $K$, $V$ and the output have 1 MB together. ({section}`roof` asks how much of the time this explains.)
#
# Why not take a few keys at a time, add up their part of the output, and forget their scores? The softmax stands in the way. Its
# denominator needs the whole row of scores before we know a single weight.

# %% [markdown] id="row"
# ## One row: three passes, two, one
#
# Take one query and three keys, with the scores $0, \ln 3, \ln 2$ and the values 8, 4, 2. The weights are $\frac16, \frac36, \frac26$, so
# the output is 4. The safe softmax of lesson {lesson}`softmax` subtracts the largest score $m$. It goes through the row **three times**:
# for $m$, for the sum $\ell$ of all $e^{s_j - m}$, and for the weighted average.

# %% id="three-passes"
s, v = np.log([1.0, 3.0, 2.0]), np.array([8.0, 4.0, 2.0])
m = max(s)  # first pass
row_sum = sum(np.exp(s - m))  # second pass
output = sum(np.exp(s - m) / row_sum * v)  # third pass
print(f"output {output:.3f}")

# %% [markdown] id="two-passes"
# **Two passes are enough**, because all terms of the average are divided by the same $\ell$. So we can sum $a = \sum_j e^{s_j - m}\, v_j$
# in the second pass, beside $\ell$, and divide once at the end: $z = a / \ell$.
#
# **And one is enough**, because $m$ need not be the maximum. Any number $m$ cancels:
#
# $$\frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}} = \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}} \label{reference-score-cancels}$$
#
# We need it only so that no exponential overflows, and not all of them become 0. So let $m$ be the largest score *so far*. When a larger
# one, $m'$, comes along, all we have summed was measured from $m$. One factor moves it to $m'$, since $e^{s - m}\, e^{m - m'} = e^{s -
# m'}$.

# %% [markdown] id="one-pass"
# So three numbers carry everything the past has to say: the maximum $m$, the sum $\ell$, and the **accumulator** $a$. We call them the
# **state** of the keys so far. After the first key it is $(0, 1, 8)$. **Predict** it after the second key, whose score is $\ln 3$ and
# whose value is 4.

# %% id="one-pass-code" tags=["predicted"]
m, row_sum, acc = -np.inf, 0.0, 0.0
for score, value in zip(s, v, strict=True):  # the only pass
    new_max = max(m, score)
    factor = np.exp(m - new_max)
    row_sum = factor * row_sum + np.exp(score - new_max)
    acc = factor * acc + np.exp(score - new_max) * value
    m = new_max
    print(f"m {m:.3f}  sum {row_sum:.3f}  acc {acc:.3f}  acc / sum {acc / row_sum:.3f}")

# %% [markdown] id="one-pass-answer" tags=["answer"]
# The maximum becomes $\ln 3$, so what we had shrinks by the factor $e^{0 - \ln 3} = \frac13$. The sum is $\frac13 + 1 = \frac43$ and the
# accumulator is $\frac83 + 4 = \frac{20}3$, so these two keys alone would give the output 5. The third key has a smaller score, so nothing
# shrinks, and the output becomes 4. In the first turn the factor was $e^{-\infty} = 0$, because there was nothing to keep.

# %% [markdown] id="blocks"
# ## Many rows, a block of keys at a time
#
# Why one key at a time? Let the next *block* of keys bring scores $s_{ij}$ and values $v_j$, for several queries $i$ at once. Each query
# has its own state. We bring what it has to the new maximum by one factor, and measure the block from there, too:
#
# $$\begin{gathered}
# m'_i = \max(m_i, \max_j s_{ij}), \\
# \ell'_i = e^{m_i - m'_i} \ell_i + \sum_j e^{s_{ij} - m'_i}, \quad
#  a'_i = e^{m_i - m'_i} a_i + \sum_j e^{s_{ij} - m'_i} v_j \end{gathered} \key{tiled-attention-update}$$
#
# We start with $m_i = -\infty$, $\ell_i = 0$ and $a_i = 0$, the state of no keys.

# %% [markdown] id="blocks-end"
# After the last block we divide, and join $m$ and $\ell$ into one number for each query:
#
# $$L = m + \ln \ell = \ln \sum_j e^{s_j}, \qquad z = \frac{a}{\ell} \label{row-lse-and-output}$$
#
# $L$ is the log-sum-exp of the row. We keep it, to merge parts (section {section}`parts`) and for the gradients (section {section}`backward`).

# %% [markdown] id="step-turn"
# **Your turn.** {turn}`fold-in-a-block`

# %% id="step-turn-code" tags=["your-turn"]
my_step = ...  # your function
check("fold-in-a-block", my_step)

# %% [markdown] id="step-turn-ours" tags=["ours"]
# ```python
# def my_step(row_max, row_sum, acc, scores, value):
#     new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
#     factor, p = np.exp(row_max - new_max), np.exp(scores - new_max)
#     row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
#     return new_max, row_sum, factor * acc + p @ value
# ```


# %% id="step-ours"
def ours(row_max, row_sum, acc, scores, value):
    new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
    factor, p = np.exp(row_max - new_max), np.exp(scores - new_max)
    row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
    return new_max, row_sum, factor * acc + p @ value


step = ours if my_step is ... else my_step

# %% [markdown] id="spot"
# ### Spot the mistake
#
# "Each block computes its own attention output. Rescale what we have, add the new output, and divide by the sum at the end." Which is the
# smallest example that refutes it?
#
# <details><summary>What is wrong</summary>
#
# Take a single block of two keys with equal scores, and the value 1 for both. The output must be 1. The block's own output is 1, the sum
# $\ell$ is 2, and at the end this program divides by it: $\frac12$. The block was divided twice. What is added to the accumulator must not
# be divided before the end.
#
# </details>

# %% [markdown] id="tiles"
# ## Tiles, and what they move
#
# A processor has a small fast memory of its own, on the chip, and a large slow one. (A GPU's slow one is called HBM.) A block of rows that fits into the fast memory is called a **tile**.
# We keep a tile of $B_q$ queries there, with its states, and let all keys and values pass by in tiles of $B_k$. If a tile of scores fits
# in, too, no score ever leaves the fast memory.

# %% [markdown] id="tiles-bytes"
# What goes through the slow memory now? Each query is read once, and each output and each $L_i$ is written once. But all keys and values
# are read again for every tile of queries, and there are $T_q / B_q$ of these, rounded up. With $b$ bytes for a number:
#
# $$M_{\mathrm{tiled}} = b\, \Bigl( T_q\, (d_k + d_v + 1) + \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, T_k\, (d_k + d_v) \Bigr)
# \key{tiled-attention-bytes}$$


# %% id="tiles-code"
def forward(query, key, value, B_q, B_k):
    outputs, lses, moved = [], [], 0
    for i in range(0, len(query), B_q):
        Q = query[i : i + B_q]
        m, row_sum = np.full((len(Q), 1), -np.inf), np.zeros((len(Q), 1))
        acc = np.zeros((len(Q), value.shape[1]))
        for j in range(0, len(key), B_k):  # the last tile may be shorter
            K, V = key[j : j + B_k], value[j : j + B_k]
            moved += K.size + V.size
            S = Q @ K.T / np.sqrt(Q.shape[1])
            m, row_sum, acc = step(m, row_sum, acc, S, V)
        outputs.append(acc / row_sum)
        lses.append(m + np.log(row_sum))
        moved += Q.size + outputs[-1].size + lses[-1].size
    return np.concatenate(outputs), np.concatenate(lses), moved


# %% [markdown] id="tiles-predict"
# With 24 queries, 30 keys, $d_k = 8$, $d_v = 5$ and tiles of 4 queries 2676 numbers move. **Predict** how many move with twice as many
# *queries* in a tile, and how many with twice as many *keys*.

# %% id="tiles-count" tags=["predicted"]
from attn_course.reference import attention

rng = np.random.default_rng(12)
Q, K, V = (rng.normal(size=shape) for shape in ((24, 8), (30, 8), (30, 5)))
for B_q, B_k in ((4, 4), (4, 8), (8, 4)):
    output, lse, moved = forward(Q, K, V, B_q, B_k)
    same = np.allclose(output, attention(Q, K, V))
    print(f"{B_q} queries, {B_k} keys: {moved} numbers, attention: {same}")

# %% [markdown] id="tiles-answer" tags=["answer"]
# Only the queries matter. Twice as many of them halve the 2340 numbers of keys and values, which pass by half as often, and 336 stay: 1506.
# With more keys in a tile they pass by as often, only in fewer pieces.

# %% [markdown] id="tiles-long"
# So for long texts with one width $d$, the $4\, T^2$ numbers of two tables, each written and read, become about $2\, T^2 d / B_q$. This is less only if $B_q > d /
# 2$, and $B_q$ is limited by the fast memory. Play the card once. Then compare one query in a tile with twelve. What moves, and what is held
# on the chip?

# %% id="explorable"
figures.tiles_explorable()

# %% [markdown] id="explore-notice"
# <details><summary>What you should see</summary>
#
# With one query in a tile 2544 bytes move and 92 are held on the chip. With twelve only 432 move, but 576 are held. (Tiles have 3 keys. $L$,
# the scores and the state have 4 bytes a number, all else 2.)
#
# </details>

# %% [markdown] id="real"
# ## The same words
#
# Does a real model notice? The smallest SmolLM2, the language model of lesson {lesson}`start`, asks with one query at a time, in 9 heads,
# and now gets its answer from your tiles of four keys:

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()


# %% id="real-writes"
def my_flash(query, key, value):
    heads = zip(query, key, value, strict=True)
    return np.stack([forward(*head, B_q=1, B_k=4)[0] for head in heads])


starts = ("The sun rises in the east and", "One, two, three, four,")
before = [model.write(start, tokens=5) for start in starts]
model.attend = my_flash
after = [model.write(start, tokens=5) for start in starts]
print(*after, sep="\n")
print("the same words as before:", after == before)

# %% [markdown] id="real-notice"
# With the model on this machine, your loop has answered in each of its 30 layers. (Without it both lists are stored answers.)

# %% [markdown] id="parts"
# ## Finished parts can be merged
#
# When a model writes, each head has one query and perhaps thousands of keys. With one tile of queries for each head, most processors of a
# GPU may have nothing to do. So we split the *keys*. Each processor takes a part $c$ of them, divides, and hands on its output $z^{(c)}$
# and its $L^{(c)}$. Can these be put together?

# %% [markdown] id="parts-merge"
# Among all keys the weight of key $j$ is $e^{s_j} / \sum_l e^{s_l} = e^{s_j - L}$. Within its part it was $e^{s_j - L^{(c)}}$. These
# differ by the factor $e^{L^{(c)} - L}$, which is the same for every key of the part. So we multiply the whole output of the part by it:
#
# $$z = \sum_{c} e^{L^{(c)} - L}\, z^{(c)}, \qquad L = \ln \sum_c e^{L^{(c)}} \key{merge-of-finished-outputs}$$
#
# The factors are the softmax of the $L^{(c)}$, and they sum to 1. The first two keys of section {section}`row`, each as a part, have the
# outputs 8 and 4, and the second $L$ is larger by $\ln 3$:

# %% id="parts-code"
z, L = np.array([8.0, 4.0]), np.array([0.0, np.log(3)])
shares = np.exp(L - np.logaddexp.reduce(L))
print("shares", shares.round(3), f" output {shares @ z:.3f}")

# %% [markdown] id="parts-notice"
# The second part has three times the sum of exponentials, so it counts three times as much. This is
# *Flash-Decoding* (Dao and others, 2023).

# %% [markdown] id="backward"
# ## Backward: compute it again
#
# Training needs gradients, and lesson {lesson}`gradients` took them from the weights $P$, which we never stored. But we kept $L$, and with
# it any piece of $P$ comes back from its scores, without the rest of the row, and without a maximum, since $s_{ij} \le L_i$:
#
# $$p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{l} e^{s_{il}} \key{weights-from-lse}$$

# %% [markdown] id="backward-scores"
# Next comes the gradient of the scores. As in the papers, $dO$ is the gradient of the output, which was $dZ$ in lesson
# {lesson}`gradients`. By {eq}`gradient-of-scores` each entry is a weight, times what it costs above the mean cost of its row:
# $dS_{ij} = p_{ij}\, (dO_i \cdot v_j - \delta_i)$ with $\delta_i = \sum_l p_{il}\, dO_i \cdot v_l$, a sum over *all* keys. A tile has only
# some. But $\sum_l p_{il}\, v_l = z_i$, so $\delta_i = dO_i \cdot z_i$, {eq}`score-gradient-against-mixture`: a product of two rows that we
# have anyway.
#
# For the row of three keys, $L = \ln 6$ and $z = 4$. With $dO = 1$, $\delta = 4$, and $dS = (\frac16 \cdot 4,\; \frac36 \cdot 0,\; \frac26
# \cdot (-2)) = (\frac23, 0, -\frac23)$. A tile of the last two keys alone would sum to $\frac83$ instead of 4.

# %% [markdown] id="backward-turn"
# **Your turn.** {turn}`gradient-of-a-tile`

# %% id="backward-turn-code" tags=["your-turn"]
my_d_scores = ...  # your function
check("gradient-of-a-tile", my_d_scores)

# %% [markdown] id="backward-turn-ours" tags=["ours"]
# ```python
# def my_d_scores(scores, value, d_output, output, lse):
#     p = np.exp(scores - lse)
#     return p * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))
# ```


# %% id="backward-deltas"
def d_scores_ours(scores, value, d_output, output, lse):
    p = np.exp(scores - lse)
    return p * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))


d_scores = d_scores_ours if my_d_scores is ... else my_d_scores

# %% [markdown] id="backward-sums"
# What is left are the products of lesson {lesson}`gradients`: $dV = P^\top dO$, and {eq}`query-and-key-gradients` for $dQ$ and $dK$. Each
# is a sum, so we can take it tile by tile:


# %% id="backward-code"
def backward(query, key, value, d_output, output, lse, B_q, B_k):
    root = np.sqrt(query.shape[1])
    d_query, d_key, d_value = (np.zeros(x.shape) for x in (query, key, value))
    for j in range(0, len(key), B_k):
        k = slice(j, j + B_k)
        for i in range(0, len(query), B_q):
            q = slice(i, i + B_q)
            S = query[q] @ key[k].T / root
            dS = d_scores(S, value[k], d_output[q], output[q], lse[q])
            d_value[k] += np.exp(S - lse[q]).T @ d_output[q]
            d_key[k] += dS.T @ query[q] / root
            d_query[q] += dS @ key[k] / root
    return d_query, d_key, d_value


# %% [markdown] id="bought"
# What have we bought? For the backward pass the tiles keep the output and one $L_i$ for each query, and the plain way keeps all $T$ weights
# of its row. For $T = 8192$ and $d_v = 128$ that is about 64 times as much. The price is that scores and weights are computed twice.

# %% [markdown] id="algorithm"
# ## The whole algorithm
#
# This is FlashAttention in the version of 2023, and you have it already.
#
# > **Forward**, for each tile of queries $Q$:
# >
# > 1. Start with $m = -\infty$, $\ell = 0$, $a = 0$.
# > 2. For each tile of keys $K$ and values $V$, compute $S = Q K^\top / \sqrt{d_k}$,
# > 3. and update $m$, $\ell$ and $a$. This is `step`.
# > 4. After the last tile write $z = a / \ell$ and $L = m + \ln \ell$.

# %% [markdown] id="algorithm-rest"
# > **Backward**, for each tile of keys and values, and each tile of queries:
# >
# > 5. Compute $S$ again, and from it $P = e^{S - L}$.
# > 6. Compute $dS = P \odot (dO\, V^\top - \delta\, \mathbf{1}^\top)$ with $\delta_i = dO_i \cdot z_i$. This is `d_scores`.
# > 7. Add $P^\top dO$ to $dV$, $dS^\top Q / \sqrt{d_k}$ to $dK$, and $dS\, K / \sqrt{d_k}$ to $dQ$.

# %% id="algorithm-run"
from attn_course.reference import attention_backward

Q, K, V, d_output = rng.normal(size=(4, 200, 16))
output, lse, _ = forward(Q, K, V, B_q=64, B_k=64)
gradients = backward(Q, K, V, d_output, output, lse, B_q=64, B_k=64)
pairs = zip(gradients, attention_backward(Q, K, V, d_output), strict=True)
print("output:", np.allclose(output, attention(Q, K, V)))
print("dQ, dK, dV:", [np.allclose(*pair) for pair in pairs])

# %% [markdown] id="limits"
# All this needs only NumPy, so take it with you. **Limits:** tiles change what is moved and
# kept, but there are still $T_q T_k$ scores to compute, and in training each one twice. There is no mask: a causal one (lesson
# {lesson}`masking`) puts $-\infty$ into $S$ before `step`, and skips tiles that are hidden whole, which saves work. And
# NumPy cannot say what lies in which memory. A program for a GPU can, and lesson {lesson}`kernels` writes one.

# %% id="verify-lesson"
verify_lesson("flash")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | one block more, {eq}`tiled-attention-update` | {key}`tiled-attention-update` | from $(-\infty, 0, 0)$ |
# | numbers moved, {eq}`tiled-attention-bytes` | {key}`tiled-attention-bytes` | $B_q$ counts, $B_k$ does not |
# | finished parts, {eq}`merge-of-finished-outputs` | {key}`merge-of-finished-outputs` | softmax of the $L^{(c)}$ |
# | weights again, {eq}`weights-from-lse` | {key}`weights-from-lse` | one $L_i$ for each query |

# %% [markdown] id="summary"
# ## Summary
#
# - The maximum, the sum and the accumulator are all we need to know of the keys so far. A factor moves them to a new maximum.
# - A tile of queries stays while all keys pass by. Its size sets the traffic.
# - Outputs that are already divided merge with the softmax of their log-sum-exps.
# - Backward, $L$ rebuilds the weights of any tile, and $\delta_i = dO_i \cdot z_i$ replaces the sum over all keys.
#
# So the same output and gradients can be had without storing the tables. In exact arithmetic nothing differs, and in floating point only
# rounding. Now the [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% [markdown] id="roof"
# ## Deeper: how fast can it be?
#
# Make the scores, the weights and the output in three steps, each of which reads its inputs from memory and writes its result back. Then
# $Q$, $K$, $V$ and the output move once, and each table is written and read. With $b$ bytes for a number:
#
# $$M_{\mathrm{plain}} = b\, \bigl( (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \bigr) \label{plain-attention-bytes}$$
#
# The two products need $d_k$ terms for each score and $d_v$ for each weight. If a multiply-add counts 2 FLOPs, and exponentials are not
# counted:
#
# $$F = 2\, T_q T_k\, (d_k + d_v) \label{attention-forward-flops}$$
#
# A machine with $\pi$ FLOPs and $\beta$ bytes a second needs at least $F / \pi$ and $M / \beta$ seconds. If both overlap completely, the
# time is the larger one. With the *arithmetic intensity* $I$ this is the *roofline* (Williams and others, 2009):
#
# $$t = \max(F / \pi,\; M / \beta), \qquad \frac{F}{t} = \min(\pi,\; I \beta), \qquad I = \frac{F}{M} \label{roofline}$$

# %% [markdown] id="roof-intensity"
# Let all widths be $d$ and all lengths $T$, a multiple of $B_q$. In long texts the plain way has an intensity that does not grow with the
# length, and tiles have one that their block sets:
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{plain}}} = \frac{d}{b} \label{plain-attention-intensity}$$
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{b} \label{tiled-attention-intensity}$$
#
# A model that writes has one query, and $g$ query heads that share each key. Even if everything is moved once,
#
# $$\lim_{T \to \infty} \frac{F}{M} = \frac{2\, g}{b} \label{decoding-intensity}$$
#
# An H100 has $\pi / \beta = 295$ FLOPs a byte (989 TFLOP/s in 16 bits, 3.35 TB/s by its data sheet). With $b = 2$ and $g = 1$ the bound
# for decoding is 1 FLOP a byte, a 295th of what would keep its arithmetic busy.

# %% id="roof-figure"
bandwidth = np.median(record.values("copy_bytes_per_s"))
peak = np.median(record.values("product_flops_per_s"))
points = {}
for width in (16, 64):
    flops = 2 * 4096**2 * 2 * width
    once = 4 * 4 * 4096 * width  # inputs and output, 4 bytes each
    for name, moved in (("eager", once + 4 * 4 * 4096**2), ("sdpa", once)):
        seconds = np.median(record.values(f"{name}_s", str(width))[:, -1])
        points[f"{name}, d = {width}"] = (flops / moved, flops / seconds)
figures.rooflines(points, peak_flops_per_s=peak, bandwidth_bytes_per_s=bandwidth)

# %% [markdown] id="roof-notice"
# These are the times of the first cell and those for 64 features, under the roof of their machine. Where sdpa stands on the horizontal axis
# assumes that each input moves once, and where eager stands, three steps. Nobody measured either. All four stay below the roof, unless
# a program beats the two rates measured here. It does not count exponentials.
#
# How much of eager's time is traffic? A copy moved 20.6 GB a second, so the 269 MB of {eq}`plain-attention-bytes` take 13 ms. For 16
# features eager took 105 ms more than sdpa, so what we counted does not explain it alone.
#
# The backward pass makes $S$ again, and $dP$, $dV$, $dQ$, $dK$, five products instead of two:
#
# $$\begin{gathered}
# F_{\mathrm{backward}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v), \\
# d_k = d_v:\;
#  \frac{F_{\mathrm{backward}}}{F} = \frac{5}{2} \end{gathered}
# \label{attention-backward-flops}$$

# %% [markdown] id="small"
# ## Deeper: what rounding does to tiles
#
# Why the *maximum*, if any reference will do? With $m$ the largest of $n$ scores so far, one exponent is 0 and none is positive:
#
# $$1 \le \ell \le n \label{running-sum-bounds}$$
#
# So $\ell$ neither overflows nor vanishes, in any format that can hold $n$. We computed attention over 512 positions from 16-bit inputs in
# three ways, with scores of standard deviation 1 and 8. *Stored whole* rounds scores and weights to 16 bits, as three programs do. *In
# tiles* rounds only $e^{S - m}$ for the second product and the output, and keeps the state in 32 bits. The third rounds the state to 16
# bits, too. **Predict** which one has the smallest error.

# %% id="errors-figure" tags=["predicted"]
from attn_course.lessons.flash.experiments import ERRORS

stored = ERRORS.load()
spreads = {"plain scores": 1, "wide scores": 8}
ways = ("stored whole", "in tiles", "in tiles, state in float16")
errors = {}
for way in ways:
    found = [stored.values(spread, f"float16, {way}") for spread in spreads]
    errors[way] = [np.median(three) for three in found]
figures.float16_errors(errors, [*spreads.values()])

# %% [markdown] id="errors-notice" tags=["answer"]
# Tiles with a state in 32 bits have the smallest error, for both spreads and in all three runs. An error in a stored score becomes a
# factor $e^{\mathrm{error}}$, and a score of 8 is rounded eight times as coarsely as a score of 1.

# %% [markdown] id="blocks-alive-text"
# The card shows one turn of the loop. In a state of one key or more $\ell \ge 1$, because the largest score gives $e^0$. With "the maximum of
# the block alone" $z$ stays right, since any $m$ cancels, but the factor may overflow.

# %% id="blocks-alive"
from attn_course import alive

alive("tiled-attention-update")

# %% [markdown] id="states"
# ## Deeper: states and gradients, in formulas
#
# The states of two sets of keys with none in common merge. Bring both to the larger maximum, and add:
#
# $$\begin{gathered}
# m = \max(m_A, m_B), \\
# \ell = e^{m_A - m} \ell_A + e^{m_B - m} \ell_B, \quad a = e^{m_A - m} a_A + e^{m_B - m} a_B \end{gathered}
# \label{merge-of-attention-states}$$
#
# Finished parts merge likewise. Move their outputs and log-sum-exps, and see whose share grows:

# %% id="parts-alive"
alive("merge-of-finished-outputs")

# %% [markdown] id="backward-blocks"
# **The backward pass in one formula.** Let $b$ count blocks of queries, and let $\mathbf{1}$ be a column of ones:
#
# $$dK = \frac{1}{\sqrt{d_k}} \sum_{b} \bigl( P_b \odot (dO_b V^\top - \delta_b\, \mathbf{1}^\top) \bigr)^{\!\top} Q_b
# \label{key-gradient-in-blocks}$$
#
# Likewise $dV$ is the sum of all $P_b^\top dO_b$, and $dQ$ is a sum over blocks of keys. Beside $Q$, $K$ and $V$ the tiles keep the output
# and $L$ for it, and the plain way keeps all weights and, if it takes $\delta$ from it, the output:
#
# $$N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + 1), \qquad N_{\mathrm{stored}}^{\mathrm{plain}} = T\, (d_v + T)
# \label{tiled-training-memory}$$

# %% [markdown] id="d-lse"
# **A loss that reads $L$.** Where finished parts are merged, the output depends on their $L^{(c)}$, too. By {eq}`lse-gradient` the score
# $s_{ij}$ moves $L_i$ at the rate $p_{ij}$. So with $dL_i$ for the gradient of $L_i$, the score gains $p_{ij}\, dL_i$:
#
# $$dS_{ij} = p_{ij}\, \bigl( dP_{ij} - (\delta_i - dL_i) \bigr) \label{score-gradient-with-lse}$$

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - M. Milakov and N. Gimelshein (2018), [arXiv:1805.02867](https://arxiv.org/abs/1805.02867): softmax's denominator in one pass.
# - M. Rabe and C. Staats (2021), [arXiv:2112.05682](https://arxiv.org/abs/2112.05682): attention without $T^2$ memory.
# - T. Dao and others (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): tiles, recomputation; keys in the outer loop.
# - T. Dao (2023), [arXiv:2307.08691](https://arxiv.org/abs/2307.08691): queries outside, one division; the algorithm of this lesson.
# - T. Dao, D. Haziza, F. Massa and G. Sizov (2023), "Flash-Decoding for long-context inference": keys split over programs.
# - J. Shah and others (2024), [arXiv:2407.08608](https://arxiv.org/abs/2407.08608): products and exponentials at the same time.
# - S. Williams, A. Waterman and D. Patterson (2009), "Roofline", Communications of the ACM 52(4).
