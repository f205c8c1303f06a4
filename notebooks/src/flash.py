# %% [markdown] id="title"
# # {lesson}`flash` FlashAttention: attention without its tables
#
# Attention over $T$ positions makes a table of $T \times T$ scores, and a second one of as many weights. **Can we get the same output and
# the same gradients, up to rounding, without ever storing these tables?** At the end your own program does, in plain NumPy, and
# trains a layer in PyTorch: FlashAttention.
#
# **You need** lessons {lesson}`softmax`, {lesson}`attention` and {lesson}`gradients`. **Time:** 58 minutes, without *Deeper* sections and
# the [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% [markdown] id="hook"
# ## A small output, and a bet
#
# How much memory does one head take for 2000 positions of 16 features? NumPy reports every array that it makes:

# %% id="hook-code"
import tracemalloc

import numpy as np

from attn_course.reference import attention


def measure(way, *arrays):
    tracemalloc.start()
    results = way(*arrays)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return results, peak


# %% id="hook-run"
rng = np.random.default_rng(12)
Q, K, V = rng.normal(size=(3, 2000, 16))
output, peak = measure(attention, Q, K, V)
print(f"output {output.nbytes / 1e6:.1f} MB, memory at the peak {peak:.0f} MB")

# %% [markdown] id="where"
# One table of $2000 \times 2000$ numbers takes 32 MB, and our `attention` held five of them at once, with those that NumPy makes on the
# way. The machine shows three:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.flash import figures

figures.machine()

# %% [markdown] id="bytes"
# So why not take a few keys at a time, add up their part of the output, and forget their scores? The softmax stands in the way, because
# its denominator needs the whole row before we know a single weight.
#
# Write down a bet all the same: how many MB will your program need at its peak, for the output and all gradients of 2000 positions?
# Section {section}`algorithm` measures it.

# %% [markdown] id="row"
# ## One row: three passes, two, one
#
# Take one query and three keys, with the scores $0, \ln 3, \ln 2$ and the values 8, 4, 2. The weights are $\frac16, \frac36, \frac26$, so
# the output is 4. Attention with the safe softmax of lesson {lesson}`softmax` goes through the row **three times**: for the largest score
# $m$, for the sum $\ell$ of all $e^{s_j - m}$, and for the weighted average.
#
# **Two passes are enough.** The second one sums $a = \sum_j e^{s_j - m}\, v_j$ beside $\ell$, and we divide only once, at the end:
# $z = a / \ell$.

# %% [markdown] id="two-passes"
# **One pass is enough**, if $m$ may change on the way. It may, because any finite $m$ gives the same output: $e^{-m}$ is a factor of both
# $a$ and $\ell$, and cancels in $a / \ell$. We subtract $m$ only so that no exponential overflows, and not all of them become 0. So let $m$
# be the largest score *so far*. When a larger score $m'$ comes along, both sums are multiplied by $e^{m - m'}$. Then each of
# their terms is measured from $m'$, since $e^{s - m}\, e^{m - m'} = e^{s - m'}$.

# %% [markdown] id="one-pass"
# So all we need of the keys so far is the maximum $m$, the sum $\ell$, and the **accumulator** $a$, which has as many features as a value,
# here one. Together they are the **state**. After the first key it is $(0, 1, 8)$. **Predict** it after the second key, whose score is
# $\ln 3$ and whose value is 4.

# %% id="one-pass-code" tags=["predicted"]
s, v = np.log([1.0, 3.0, 2.0]), np.array([8.0, 4.0, 2.0])
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
# shrinks, and the output becomes 4.

# %% [markdown] id="blocks"
# ## Many rows, a block of keys at a time
#
# Does this work for many queries, and several keys at once? Let the next *block* of keys bring scores $s_{ij}$, already divided by
# $\sqrt{d_k}$, and values $v_j$. Each query $i$ has its own state. The factor $e^{m_i - m'_i}$ moves both sums to the
# new maximum $m'_i$, from which the terms of the block are measured, too:
#
# $$\begin{gathered}
# m'_i = \max(m_i, \max_j s_{ij}), \\
# \ell'_i = e^{m_i - m'_i} \ell_i + \sum_j e^{s_{ij} - m'_i}, \quad
#  a'_i = e^{m_i - m'_i} a_i + \sum_j e^{s_{ij} - m'_i} v_j \end{gathered} \key{tiled-attention-update}$$
#
# We start with $m_i = -\infty$, $\ell_i = 0$ and $a_i = 0$, the state of no keys.

# %% [markdown] id="blocks-end"
# After the last block, each query divides, and joins $m$ and $\ell$ into one number (without the index $i$):
#
# $$L = m + \ln \ell = \ln \sum_j e^{s_j}, \qquad z = \frac{a}{\ell} \label{row-lse-and-output}$$
#
# $L$ is the log-sum-exp of the row, so the weight of key $j$ is $e^{s_j} / e^L = e^{s_j - L}$.

# %% [markdown] id="step-turn"
# **Your turn.** {turn}`fold-in-a-block`

# %% id="step-turn-code" tags=["your-turn"]
my_step = ...  # your function
check("fold-in-a-block", my_step)

# %% [markdown] id="step-goes-on"
# Until your function is there, the lesson goes on with ours.


# %% id="step-ours" tags=["hide-input"]
def ours(row_max, row_sum, acc, scores, value):
    new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
    factor, p = np.exp(row_max - new_max), np.exp(scores - new_max)
    row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
    return new_max, row_sum, factor * acc + p @ value


step = ours if my_step is ... else my_step

# %% [markdown] id="tiles"
# ## Tiles, and what they move
#
# A processor has a small fast memory of its own, on the chip, and a large slow one (HBM on an H100). The rows of
# $Q$, or of $K$ and $V$, that are in the fast memory together are a **tile**. A tile of $B_q$ queries stays there, with its states, while
# all keys and values pass by in tiles of $B_k$. If the $B_q \times B_k$ scores fit in, too, no score ever leaves the fast memory.
#
# In training, a language model hides all later keys from a query (lesson {lesson}`masking`). With `causal=True` our tiles do the same:


# %% id="tiles-scores"
def tile_scores(Q, K, i, j, causal):  # row r is query i + r, column c is key j + c
    S = Q @ K.T / np.sqrt(Q.shape[1])  # (B_q, B_k), soon forgotten
    if causal:
        S = np.where(np.tri(*S.shape, k=i - j), S, -np.inf)  # 1 where j + c <= i + r
    return S


# %% id="tiles-code"
def forward(query, key, value, B_q=64, B_k=64, causal=False, step=step):
    outputs, lses = [], []
    for i in range(0, len(query), B_q):
        Q = query[i : i + B_q]  # these queries stay
        m, row_sum = np.full((len(Q), 1), -np.inf), np.zeros((len(Q), 1))
        acc = np.zeros((len(Q), value.shape[1]))
        for j in range(0, len(key), B_k):  # all queries see key 0, so no inf - inf
            if causal and j >= i + len(Q):
                break  # only later keys are left
            K, V = key[j : j + B_k], value[j : j + B_k]  # these pass by
            m, row_sum, acc = step(m, row_sum, acc, tile_scores(Q, K, i, j, causal), V)
        outputs.append(acc / row_sum)  # the softmax divides only here
        lses.append(m + np.log(row_sum))
    return np.concatenate(outputs), np.concatenate(lses)


# %% id="tiles-run"
Q, K, V = (rng.normal(size=shape) for shape in ((24, 8), (30, 8), (30, 5)))
output, lse = forward(Q, K, V, B_q=5, B_k=4)  # the last tiles are shorter
print("the same as attention:", np.allclose(output, attention(Q, K, V)))
masked, _ = forward(Q, K, V, B_q=5, B_k=4, causal=True)
print("with the mask:", np.allclose(masked, attention(Q, K, V, is_causal=True)))

# %% [markdown] id="tiles-bytes"
# What goes through the slow memory, without the mask? Queries are read once, and outputs and $L$ are written once. But unless all keys and
# values fit in at once, they are read again for every tile of queries. With $b$ bytes a number:
#
# $$M_{\mathrm{tiled}} = b\, \Bigl( T_q\, (d_k + d_v + 1) + \Bigl\lceil \frac{T_q}{B_q} \Bigr\rceil\, T_k\, (d_k + d_v) \Bigr)
# \key{tiled-attention-bytes}$$

# %% [markdown] id="tiles-long"
# Take 4096 positions with 16 features, and 4 bytes a number. To write and read its scores and weights, plain attention
# moves 268 MB. One pass over all keys and values moves half a megabyte. **Predict** how many megabytes tiles of 8 queries move.

# %% id="tiles-count" tags=["predicted"]
T, d = 4096, 16
for B_q in (8, 64, 512):
    numbers = T * (2 * d + 1) + T / B_q * T * 2 * d
    print(f"{B_q:3} queries in a tile: {4 * numbers / 1e6:3.0f} MB")

# %% [markdown] id="tiles-answer" tags=["answer"]
# All keys and values pass $4096 / 8 = 512$ times, and this alone moves 268 MB. So tiles of 8 queries save nothing.

# %% [markdown] id="tiles-play"
# Tables cost time, too (section {section}`roof`). Press play. Then put more queries in a tile, and then more keys. Which saves bytes?

# %% id="explorable"
figures.tiles_explorable()

# %% [markdown] id="real"
# ## Does a real model notice?
#
# The course's program feeds a text to SmolLM2 (lesson {lesson}`start`) one token at a time, so each of its 270 heads asks with one query.
# Here are its likeliest next tokens, by its own attention and by `forward` with one key in a tile:

# %% id="real-load" tags=["live", "hide-input"]
from functools import partial

from attn_course import language_model

model = language_model()


def my_flash(query, key, value, step=step):
    heads = zip(query, key, value, strict=True)
    return np.stack([forward(*head, B_q=1, B_k=1, step=step)[0] for head in heads])


def next_tokens(text, count=3):
    found = model.next_tokens(text, count=count)
    return {token: round(probability, 3) for token, probability in found.items()}


# %% id="real-tokens"
text = "The sun rises in the east and"
print(next_tokens(text))
model.attend = my_flash
print(next_tokens(text))

# %% [markdown] id="real-notice"
# All digits agree. (Without the model, you see stored answers here, and the next cell prints nothing: bet, and open its answer.)
#
# Now we break the step. It gets the new maximum in place of the old one, so that its factor is always $e^0 = 1$. Our
# three keys would give $(8 + 4 + \frac43) / (1 + 1 + \frac23) = 5$, not 4. **Predict** for how many of four beginnings this bug changes the
# likeliest next token. Then try beginnings of your own: which one gives the bug away?


# %% id="real-break" tags=["live", "predicted"]
def no_factor(row_max, row_sum, acc, scores, value):
    new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
    return step(new_max, row_sum, acc, scores, value)


beginnings = ["The sun rises in the east and", "The capital of France is"]
beginnings += ["Water boils at 100 degrees", "The opposite of hot is"]  # and yours
for text in beginnings if model.is_here else []:
    for name, fold in {"right": step, "no factor": no_factor}.items():
        model.attend = partial(my_flash, step=fold)
        print(f"{name:10}", text, next_tokens(text, count=1))
model.attend = my_flash  # the right one again

# %% [markdown] id="real-broken" tags=["answer"]
# On our machine it changes one. " sets" falls from 0.651 to 0.172 and " Paris" from 0.773 to 0.576, but both stay first, and " Celsius"
# even rises. Only " cold" loses its place. So the next word can hide a bug in all 270 heads.

# %% [markdown] id="parts"
# ## Finished parts can be merged
#
# When a model writes, each head has one query, so a single tile, and perhaps thousands of keys. Can several processors share its row? Let
# each take a part $c$ of at least one *key*, and hand on its finished output $z^{(c)}$ and its $L^{(c)}$.

# %% [markdown] id="parts-merge"
# Within its part, key $j$ had the weight $e^{s_j - L^{(c)}}$. Among all keys it has $e^{s_j - L}$, which is $e^{L^{(c)} - L}$ times as
# much. This factor is the same for all keys of the part, so it multiplies the output of the part:
#
# $$z = \sum_{c} e^{L^{(c)} - L}\, z^{(c)}, \qquad L = \ln \sum_c e^{L^{(c)}} \key{merge-of-finished-outputs}$$
#
# The factors are the softmax of the $L^{(c)}$. This is *Flash-Decoding* (Dao and others, 2023).
#
# Let the first of two parts have 20 of our 30 keys. Does it always get two thirds of the weight?

# %% id="parts-run"
z1, L1 = forward(Q, K[:20], V[:20], B_q=5, B_k=4)
z2, L2 = forward(Q, K[20:], V[20:], B_q=5, B_k=4)
L = np.logaddexp(L1, L2)  # ln(e^L1 + e^L2), and large L cannot overflow
w1, w2 = np.exp(L1 - L), np.exp(L2 - L)
print("first part, five queries:", w1[:5, 0].round(2))
print("the same as attention:", np.allclose(w1 * z1 + w2 * z2, output))

# %% [markdown] id="backward"
# ## Backward: compute it again
#
# Lesson {lesson}`gradients` took all gradients from the weights $P$, which we never stored. But we kept $L_i$, with
# which any weight comes back from its score:
#
# $$p_{ij} = e^{s_{ij} - L_i}, \qquad L_i = \ln \sum_{j} e^{s_{ij}} \label{weights-from-lse}$$

# %% [markdown] id="backward-scores"
# As in the papers, $dO_i$ is the gradient of output $i$ (in lesson {lesson}`gradients` $dZ_i$). The *cost* of key $j$ is how fast the loss
# grows with its weight, $dP_{ij} = dO_i \cdot v_j$. The gradient of a score, {eq}`gradient-of-scores`, compares it with the
# mean cost $\delta_i$ of the row:
#
# $$dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i), \qquad \delta_i = \sum_l p_{il}\, dP_{il}$$

# %% [markdown] id="backward-mean"
# Take our row once more, with $dO = 1$. The costs are the values, 8, 4 and 2, and their mean is
# $\frac16 \cdot 8 + \frac36 \cdot 4 + \frac26 \cdot 2 = 4$. So $dS = (\frac23, 0, -\frac23)$: the key with the largest weight gets no
# push at all.
#
# The mean is a sum over *all* keys, and a tile has only some. But you have seen this 4 before. Where?

# %% [markdown] id="backward-delta"
# In section {section}`row`: it is the output. Since $\sum_j p_{ij}\, v_j = z_i$, we have $\delta_i = dO_i \cdot z_i$,
# {eq}`score-gradient-against-mixture`: a product of two rows that we have.

# %% [markdown] id="backward-turn"
# **Your turn.** {turn}`gradient-of-a-tile`

# %% id="backward-turn-code" tags=["your-turn"]
my_d_scores = ...  # your function
check("gradient-of-a-tile", my_d_scores)


# %% id="backward-deltas" tags=["hide-input"]
def d_scores_ours(scores, value, d_output, output, lse):
    p = np.exp(scores - lse)
    return p * (d_output @ value.T - (d_output * output).sum(axis=1, keepdims=True))


d_scores = d_scores_ours if my_d_scores is ... else my_d_scores

# %% [markdown] id="backward-sums"
# What is left is three products of lesson {lesson}`gradients`: $dV = P^\top dO$, $dQ = dS\, K / \sqrt{d_k}$ and
# $dK = dS^\top Q / \sqrt{d_k}$, {eq}`query-and-key-gradients`. Each is a sum, so we can take it tile by tile. Now the keys are in the outer
# loop: a tile's $dK$ and $dV$ stay until they are finished, while the queries pass by, and $dQ$ with them. Each exponential is computed
# again, not stored.


# %% id="backward-code"
def backward(Q, K, V, dO, output, lse, B_q=64, B_k=64, causal=False, d_scores=d_scores):
    root = np.sqrt(Q.shape[1])
    dQ, dK, dV = (np.zeros(x.shape) for x in (Q, K, V))
    for j in range(0, len(K), B_k):
        k = slice(j, j + B_k)  # these keys stay
        for i in range(0, len(Q), B_q):
            q = slice(i, i + B_q)  # these queries pass by
            if causal and j >= i + len(Q[q]):
                continue  # they see no key of this tile
            S = tile_scores(Q[q], K[k], i, j, causal)
            dS = d_scores(S, V[k], dO[q], output[q], lse[q])
            dV[k] += np.exp(S - lse[q]).T @ dO[q]  # the weights once more
            dK[k] += dS.T @ Q[q] / root
            dQ[q] += dS @ K[k] / root
    return dQ, dK, dV


# %% [markdown] id="algorithm"
# ## The whole algorithm
#
# `forward` and `backward`, with your two functions in them, are FlashAttention in the version of 2023. They now meet plain attention, and
# so does the bug. A second bug sums $\delta$ over the keys of one tile only:

# %% id="algorithm-run"
from attn_course.reference import attention_backward


def plain(Q, K, V, d_output):
    return attention(Q, K, V), *attention_backward(Q, K, V, d_output)


def tiled(Q, K, V, d_output, step=step, d_scores=d_scores):
    output, lse = forward(Q, K, V, step=step)
    return output, *backward(Q, K, V, d_output, output, lse, d_scores=d_scores)


def tile_mean(scores, value, d_output, output, lse):
    part = np.exp(scores - lse) @ value  # what this tile adds to the output
    return d_scores(scores, value, d_output, part, lse)


# %% [markdown] id="algorithm-predict"
# Your bet is due. We also print the largest error of the output, $dQ$, $dK$ and $dV$. **Predict** which of the four each bug spoils.


# %% id="algorithm-compare" tags=["predicted"]
def compare(name, way, right):
    results, peak = measure(way, *arrays)
    errors = [np.abs(x - y).max() for x, y in zip(results, right, strict=True)]
    print(f"{name:9} {peak:4.0f} MB, errors", np.round(errors, 3))


arrays = rng.normal(size=(4, 2000, 16))  # Q, K, V and dO
right = plain(*arrays)
compare("plain", plain, right)
compare("tiled", tiled, right)
compare("no factor", partial(tiled, step=no_factor), right)
compare("tile mean", partial(tiled, d_scores=tile_mean), right)

# %% [markdown] id="algorithm-answer" tags=["answer"]
# Without the factor all four are wrong, because the backward pass starts from a wrong output and a wrong $L$. The part of the sum in one
# tile spoils $dS$, and with it $dQ$ and $dK$. The output and $dV$ do not depend on $dS$.

# %% [markdown] id="limits"
# So a right output does not prove the gradients: compare every array. And your program needs less than a hundredth of the memory. What does
# that buy? Ten times as many positions, on the same machine:

# %% id="long-run"
long = rng.normal(size=(3, 20_000, 16))
_, peak = measure(partial(forward, B_q=500, B_k=500, causal=True), *long)
table = 20_000**2 * 8 / 1e6
print(f"{peak:.0f} MB at the peak, and one table would take {table:.0f} MB")

# %% [markdown] id="torch"
# ## Your attention in PyTorch
#
# Can your program train a layer? Autograd cannot look into NumPy, but a `Function` tells it what to call. `ctx` keeps what `backward`
# needs: the inputs, the output and $L$, but no table.

# %% id="torch-function"
import torch


class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, causal):
        inputs = [x.detach().numpy() for x in (Q, K, V)]
        output, lse = forward(*inputs, 16, 16, causal)  # yours
        ctx.kept = inputs, output, lse, causal
        return torch.from_numpy(output).to(Q.dtype)

    @staticmethod
    def backward(ctx, d_output):
        inputs, output, lse, causal = ctx.kept
        dO = d_output.numpy()
        grads = backward(*inputs, dO, output, lse, 16, 16, causal)  # yours
        return *map(torch.from_numpy, grads), None  # causal has no gradient


# %% [markdown] id="torch-same"
# Does it agree with PyTorch's attention and autograd, for sizes that no tile divides?


# %% id="torch-compare"
from torch.nn.functional import cross_entropy, scaled_dot_product_attention


def theirs(Q, K, V, causal):
    return scaled_dot_product_attention(Q, K, V, is_causal=causal)


shapes = (131, 16), (203, 16), (203, 5), (131, 5)
*QKV, d_output = (torch.tensor(rng.normal(size=shape)) for shape in shapes)
inputs = [x.requires_grad_() for x in QKV]
for causal in (False, True):
    results = []
    for attend in (Flash.apply, theirs):
        output = attend(*inputs, causal)
        results.append([output, *torch.autograd.grad(output, inputs, d_output)])
    same = [torch.allclose(x, y) for x, y in zip(*results, strict=True)]
    print("causal  " if causal else "all keys", same)

# %% [markdown] id="torch-layer"
# The output, $dQ$, $dK$ and $dV$ agree. Now a layer with one causal head learns a sentence by heart. Take one of your own, longer than a
# tile of 16 letters:

# %% id="torch-text"
text = "A tile of queries stays while all keys pass by, and no table is left behind."
letters, draw = torch.tensor(list(text.encode())), np.random.default_rng(1)
shapes = (256, 32), (len(letters), 32), (32, 96), (32, 256)
start = [torch.tensor(draw.normal(size=shape) / 3) for shape in shapes]


# %% id="torch-train"
def train(attend, steps=100):
    weights = [x.clone().requires_grad_() for x in start]
    letter, position, W_QKV, W_out = weights
    adam = torch.optim.Adam(weights, lr=0.01)
    for _ in range(steps):
        Q, K, V = ((letter[letters] + position) @ W_QKV).chunk(3, dim=1)  # (T, 32)
        logits = attend(Q, K, V, True) @ W_out
        loss = cross_entropy(logits[:-1], letters[1:])  # each names the next letter
        adam.zero_grad()
        loss.backward()  # through your backward
        adam.step()
    return loss.item(), bytes([*letters[:1], *logits[:-1].argmax(dim=1)])


# %% id="torch-run"
for name, attend in {"PyTorch": theirs, "yours": Flash.apply}.items():
    loss, learned = train(attend)
    print(f"{name:8} {loss:.5f}", learned.decode(errors="replace"))

# %% [markdown] id="torch-end"
# For our sentence both have the same loss, and the same one letter wrong.
#
# Now hand `tile_mean` to your `backward`, as the last argument of the second call marked `# yours`, and run this section again. The
# comparison finds $dQ$ and $dK$ wrong, but the loss still falls, for our sentence from 5.80 to 0.70. So a falling loss does not prove a
# gradient, just as a right next word did not prove the output.

# %% [markdown] id="limits-end"
# **Limits:** Your program takes one head at a time, computes all visible scores, and cannot say what lies in which memory. A program for a
# GPU can, and lesson {lesson}`kernels` writes one. Yours needs only NumPy and PyTorch: take it with you.

# %% id="verify-lesson"
verify_lesson("flash")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | one block more, {eq}`tiled-attention-update` | {key}`tiled-attention-update` |
# | bytes moved, without a mask, unless all keys and values fit in, {eq}`tiled-attention-bytes` | {key}`tiled-attention-bytes` |
# | finished parts, {eq}`merge-of-finished-outputs` | {key}`merge-of-finished-outputs` |
# | backward | $p_{ij} = e^{s_{ij} - L_i}$ and $dS_{ij} = p_{ij}\, (dP_{ij} - \delta_i)$, where $\delta_i = dO_i \cdot z_i$ |

# %% [markdown] id="summary"
# ## Summary
#
# - The maximum, the sum and the accumulator are all we need of the keys so far.
# - A tile of queries stays while all keys pass by. Its size sets the traffic.
# - Backward, $L$ rebuilds any weight, and $\delta_i = dO_i \cdot z_i$ replaces the sum over all keys.
#
# So we get the same output and gradients, up to rounding, without storing the tables. Now the
# [exercises](../work/ex_{lesson}`flash`_flash.ipynb).

# %% [markdown] id="roof"
# ## Deeper: how fast can it be?
#
# The course stored how long one CPU thread takes over 4096 positions. *Eager* is the formula step by step,
# `(Q @ K.T * scale).softmax(-1) @ V`, and *eager_in_use* does the same steps, but writes into tables that were allocated before the clock
# started. *Sdpa* is PyTorch's `scaled_dot_product_attention`.

# %% id="roof-times"
from attn_course.lessons.flash.experiments import ROOFLINE

record = ROOFLINE.load()
print("features      16   64   128")
for name in ("eager", "eager_in_use", "sdpa"):
    times = [record.values(f"{name}_s", d)[:, -1] for d in ("16", "64", "128")]
    print(f"{name:12}", (1000 * np.median(times, axis=1)).round(), "ms")

# %% [markdown] id="roof-bytes"
# Most of the difference goes into getting memory for new tables. The rest may be bytes.
#
# Make the scores, the weights and the output in three steps, each of which reads its inputs from memory and writes its result back. Then
# $Q$, $K$, $V$ and the output move once, and each table is written and read. With $b$ bytes for a number:
#
# $$M_{\mathrm{plain}} = b\, \bigl( (T_q + T_k)(d_k + d_v) + 4\, T_q T_k \bigr) \label{plain-attention-bytes}$$
#
# The two products need $d_k$ terms for each score and $d_v$ for each weight. A multiply-add counts 2 FLOPs, exponentials none:
#
# $$F = 2\, T_q T_k\, (d_k + d_v) \label{attention-forward-flops}$$
#
# A machine with $\pi$ FLOPs and $\beta$ bytes a second needs at least $F / \pi$ and $M / \beta$ seconds. Even if both overlap
# completely, it needs the larger of the two. This is the *roofline* (Williams and others, 2009), with the *arithmetic intensity* $I$:
#
# $$t = \max(F / \pi,\; M / \beta), \qquad \frac{F}{t} = \min(\pi,\; I \beta), \qquad I = \frac{F}{M} \label{roofline}$$

# %% [markdown] id="roof-intensity"
# Let all widths be $d$ and all lengths $T$, a multiple of $B_q$. In long texts the plain intensity stops growing, and that of tiles is set
# by their block:
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{plain}}} = \frac{d}{b} \label{plain-attention-intensity}$$
#
# $$\lim_{T \to \infty} \frac{F}{M_{\mathrm{tiled}}} = \frac{2\, B_q}{b} \label{tiled-attention-intensity}$$
#
# So tiles raise it only if $B_q > d / 2$. A model that writes has one query, and $g$ query heads that share each key. Even if everything
# is moved once,
#
# $$\lim_{T \to \infty} \frac{F}{M} = \frac{2\, g}{b} \label{decoding-intensity}$$
#
# An H100 has $\pi / \beta = 295$ FLOPs a byte (989 TFLOP/s in 16 bits, 3.35 TB/s by its data sheet). With $b = 2$ and $g = 1$ the bound
# for decoding is 1 FLOP a byte, a 295th of what would keep its arithmetic busy.

# %% id="roof-figure"
bandwidth = np.median(record.values("copy_bytes_per_s"))
peak = np.median(record.values("product_flops_per_s"))
tables = 3 * 2 * 4 * 4096**2  # three, written and read, 4 bytes a number
print(f"{tables / 1e6:.0f} MB, at copy rate {1000 * tables / bandwidth:.0f} ms")
points = {}
for width in (16, 64):
    flops = 2 * 4096**2 * 2 * width
    once = 4 * 4 * 4096 * width  # inputs and output, 4 bytes each
    for name, moved in (("eager", once + tables), ("sdpa", once)):
        seconds = np.median(record.values(f"{name}_s", str(width))[:, -1])
        points[f"{name}, d = {width}"] = (flops / moved, flops / seconds)
figures.rooflines(points, peak_flops_per_s=peak, bandwidth_bytes_per_s=bandwidth)

# %% [markdown] id="roof-notice"
# These are the times above. With tables that were there before, eager is still about 20 ms slower than sdpa. At the rate of a copy,
# writing and reading its three tables takes 19 ms, about as much. But neither these bytes nor where these 20 ms go was measured: we
# assume that each step reads its inputs and writes its result, and that sdpa moves each input once. (It stores no tables, as its inputs
# have four axes: batch, head, position, feature.) All four points lie below the roof, whose rates are those of a copy and of one product
# of matrices. A program faster than these could lie above it.

# %% [markdown] id="backward-work"
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
# Any finite reference score cancels:
#
# $$\frac{\sum_j e^{s_j - m}\, v_j}{\sum_j e^{s_j - m}} = \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}} \label{reference-score-cancels}$$
#
# Why, then, the *maximum*? With $m$ the largest of $n$ scores so far, one exponent is 0 and none is positive:
#
# $$1 \le \ell \le n \label{running-sum-bounds}$$
#
# So $\ell$ neither overflows nor vanishes, in any format that can hold $n$. We computed attention over 512 positions from 16-bit inputs in
# three ways, with scores of standard deviation 1 and 8. *Stored whole* rounds scores and weights to 16 bits. *In tiles* rounds only
# $e^{S - m}$ for the second product and the output, and keeps the state in 32 bits. The third rounds the state, too. **Predict** which
# one has the smallest error.

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
# Tiles with a state in 32 bits have the smallest error, for both spreads. One likely reason is that an error in a stored score becomes a
# factor $e^{\mathrm{error}}$, and a score of 8 is rounded eight times as coarsely as a score of 1. But stored weights are rounded, too, and
# we did not separate the two.

# %% [markdown] id="blocks-alive-text"
# The card shows one turn of the loop. With "the maximum of the block alone" $z$ is right, since any $m$ cancels, until the factor,
# or a sum that it multiplies, overflows.

# %% id="blocks-alive"
from attn_course import alive

alive("tiled-attention-update")

# %% [markdown] id="states"
# ## Deeper: states and gradients, in formulas
#
# The states of two sets of keys with none in common, and not both empty, merge. Bring both to the larger maximum, and add:
#
# $$\begin{gathered}
# m = \max(m_A, m_B), \\
# \ell = e^{m_A - m} \ell_A + e^{m_B - m} \ell_B, \quad a = e^{m_A - m} a_A + e^{m_B - m} a_B \end{gathered}
# \label{merge-of-attention-states}$$
#
# Finished parts merge likewise. Move their outputs and log-sum-exps:

# %% id="parts-alive"
alive("merge-of-finished-outputs")

# %% [markdown] id="backward-blocks"
# **The backward pass in one formula.** Let $r$ count blocks of queries, and let $\mathbf{1}$ be a column of ones:
#
# $$dK = \frac{1}{\sqrt{d_k}} \sum_{r} \bigl( P_r \odot (dO_r V^\top - \delta_r\, \mathbf{1}^\top) \bigr)^{\!\top} Q_r
# \label{key-gradient-in-blocks}$$
#
# Likewise $dV$ is the sum of all $P_r^\top dO_r$, and $dQ$ is a sum over blocks of keys. For the backward pass, beside $Q$, $K$ and
# $V$, the tiles keep the output and $L$. The plain way keeps all weights, and the output if it takes $\delta$ from the output:
#
# $$N_{\mathrm{stored}}^{\mathrm{tiled}} = T\, (d_v + 1), \qquad N_{\mathrm{stored}}^{\mathrm{plain}} = T\, (d_v + T)
# \label{tiled-training-memory}$$

# %% [markdown] id="d-lse"
# **A loss that reads $L$.** Merged outputs depend on the $L^{(c)}$, too. By {eq}`lse-gradient` the score
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
