# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# Chapter {lesson}`attention` computed outputs from queries, keys and values. Training needs the other direction: how does a loss change
# when a query, a key or a value changes a little? This lesson takes the formula apart once more, from the output backwards.
#
# **Afterwards you can** derive the gradient of every matrix of attention from one index, write the backward pass, and test it.
#
# **You need** chapters {lesson}`softmax` and {lesson}`attention`, and the chain rule.
# **Time:** 60 minutes, without the [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% id="setup"
import math

import numpy as np
import torch

from attn_course import check, verify
from attn_course.lessons.gradients import figures
from attn_course.reference import attention, attention_backward, softmax_vjp

# %% [markdown] id="hook"
# ## Five gradients
#
# Every matrix on the way from $Q$, $K$ and $V$ to the output gets a gradient of its own shape.

# %% id="machine"
figures.machine()

# %% id="forward"
rng = np.random.default_rng(4)
query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
output, weights = attention(query, key, value, return_weights=True)

# %% [markdown] id="backward"
# ## The way back, step by step
#
# Let a loss depend on the output, and write $dX$ for its gradient with respect to $X$: same shape as $X$. Given $dO$, the
# gradient at the output $Z$, we go back step by step. **Assume** nothing but the chain rule.
#
# Value $j$ went into output $i$ with the weight $p_{ij}$, {eq}`output-of-a-query`, so it gets back $p_{ij}$ of the gradient there:
#
# $$dV = P^\top dO \label{gradient-of-values}$$
#
# Raising the weight $p_{ij}$ moves output $i$ along $v_j$. The gain is their dot product, $dO_i \cdot v_j$:
#
# $$dP = dO\, V^\top \label{gradient-of-weights}$$

# %% [markdown] id="backward-softmax"
# Weights come from scores by a softmax of each row. Chapter {lesson}`softmax` did that step: {eq}`softmax-vector-jacobian-product`, one row
# at a time, with
# $\delta_i$ for the number $s \cdot g$ of row $i$:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \label{gradient-of-scores}$$
#
# A score gains only by what its weight is worth **above the average**. And since adding a constant to a row of scores
# does nothing, no gradient points that way:
#
# $$\sum_{j=1}^{T_k} dS_{ij} = 0 \label{zero-sum-score-gradients}$$

# %% [markdown] id="which-gains"
# Now put {eq}`gradient-of-weights` into {eq}`gradient-of-scores`. The average of $dO_i \cdot v_j$ under the weights is $dO_i \cdot z_i$,
# because the dot
# product is linear:
#
# $$\delta_i = dO_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dO_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# This is how attention learns. A step against the gradient raises the score of a value that beats the **present
# mixture**, in proportion to the weight it already has. (And $\delta$ costs $T_q d_v$ operations instead of $T_q T_k$:
# FlashAttention's backward pass uses that, chapter {lesson}`flash`.)

# %% [markdown] id="gradient-turn"
# **Your turn.** Write `my_d_scores(weights, output, value, d_output)`: {eq}`score-gradient-against-mixture` for all pairs at once, from
# arrays of the shapes $(T_q, T_k)$, $(T_q, d_v)$, $(T_k, d_v)$ and $(T_q, d_v)$, without a loop.

# %% id="gradient-turn-code" tags=["your-turn"]
my_d_scores = ...  # your function
check("gain-over-mixture", my_d_scores)

# %% [markdown] id="backward-qk"
# Last step: scores are linear in $Q$ and in $K$, {eq}`scaled-score`, and the scale passes through once.
#
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \label{query-and-key-gradients}$$
#
# Shapes prove the transposes: $dK$ has a row for each key, so the query index must be summed. The whole pass is four
# products and one elementwise line. **Predict** the row sums of `d_scores`.

# %% id="backward-code" tags=["predicted"]
d_output = rng.normal(size=(3, 2))
d_value = weights.T @ d_output
d_weights = d_output @ value.T
delta = (d_output * output).sum(axis=1, keepdims=True)
d_scores = weights * (d_weights - delta)
d_query, d_key = d_scores @ key / math.sqrt(4), d_scores.T @ query / math.sqrt(4)

assert np.allclose(d_scores, softmax_vjp(weights, d_weights))
for mine, theirs in zip((d_query, d_key, d_value), attention_backward(query, key, value, d_output), strict=True):
    assert np.allclose(mine, theirs)
print("row sums of d_scores vanish:", np.allclose(d_scores.sum(axis=1), 0.0))

# %% id="backward-verify"
verify("gradient-of-values", "gradient-of-weights")
verify("gradient-of-scores", "zero-sum-score-gradients")
verify("score-gradient-against-mixture", "query-and-key-gradients")

# %% [markdown] id="differences"
# Two witnesses who share no algebra with us. **Finite differences** move one number at a time and look at the loss
# $\sum dO \odot Z$; torch's **autograd** differentiates its own operations.

# %% id="differences-code"
step, differences = 1e-5, np.zeros_like(key)
for index in np.ndindex(key.shape):
    nudge = np.zeros_like(key)
    nudge[index] = step
    rise = attention(query, key + nudge, value) - attention(query, key - nudge, value)
    differences[index] = (d_output * rise).sum() / (2 * step)
print("finite differences agree to 1e-8:", np.abs(differences - d_key).max() < 1e-8)

# %% id="autograd-code"
leaves = [torch.tensor(array, requires_grad=True) for array in (query, key, value)]
z = torch.softmax(leaves[0] @ leaves[1].T / math.sqrt(4), dim=-1) @ leaves[2]
z.backward(torch.tensor(d_output))
for leaf, by_hand in zip(leaves, (d_query, d_key, d_value), strict=True):
    assert np.allclose(leaf.grad.numpy(), by_hand)
print("autograd agrees with all three")

# %% [markdown] id="gains-predict"
# To see {eq}`score-gradient-against-mixture` at work, take one feature, the four values $-1, 0, 1, 2$, weights .4, .3, .2, .1 (so $z = 0$),
# and a loss that
# wants the output larger: $dO = -1$. **Predict** the sign of each $dS_j$, and which score rises fastest in a step against
# the gradient.

# %% id="gains-figure" tags=["predicted"]
p, v = np.array([[0.4, 0.3, 0.2, 0.1]]), np.array([-1.0, 0.0, 1.0, 2.0])
change = p * (v - p @ v)  # minus dS, for dO = -1
figures.gains(v, p[0], change[0])

# %% [markdown] id="gains-notice" tags=["answer"]
# The figure shows steps, which are $-dS$, so the signs of $dS$ are $+, 0, -, -$. The score of the best value, 2, rises no faster than that
# of 1: it is twice as far above the mixture but has half the weight. A key with almost no weight learns almost nothing,
# however good its value: the saturation of {eq}`saturated-softmax-jacobian-vanishes` again.

# %% [markdown] id="limits"
# ## Limits
#
# - **A gradient is local.** It says how the loss changes for a small step, and nothing about a large one.
# - **The weights have to be kept** for the way back, $T_q T_k$ numbers; chapter {lesson}`flash` computes them again instead.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | values | $dV = P^\top dO$, {eq}`gradient-of-values` | as $V$ |
# | scores | $dS_{ij} = p_{ij}\, dO_i \cdot (v_j - z_i)$, {eq}`score-gradient-against-mixture` | as $S$ |
# | queries, keys | $dQ = dS\, K / \sqrt{d_k}$, $dK = dS^\top Q / \sqrt{d_k}$, {eq}`query-and-key-gradients` | as $Q$, $K$ |

# %% [markdown] id="summary"
# ## Summary
#
# - The steps go in reverse, and each gradient has the shape of what it belongs to.
# - A score gains if its value beats the present mixture, times the weight it has.
#
# Now the [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention, whose backward pass uses $\delta_i = dO_i \cdot z_i$.
