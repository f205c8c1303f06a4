# %% [markdown] id="title"
# # {lesson}`masking` Masking: who may see whom
#
# So far every query saw every key. Often it must not: a model that writes must not read the next word, a short sentence
# must not attend to the padding behind it, two documents in one sequence must not mix. The tool is one addition,
# $+(-\infty)$, and it is easily put in the wrong place.
#
# **Afterwards you can** prove what adding $-\infty$ does, build causal, padding, window and block masks and combine
# them, say what becomes of a query that sees nothing, and test a layer for leaks in four lines.
#
# **You need** lessons {lesson}`softmax`, {lesson}`attention` and {lesson}`self_attention` (softmax, attention, projections). **Time:** 75
# minutes, without the
# [exercises](../work/ex_{lesson}`masking`_masking.ipynb).

# %% id="setup"
from functools import partial

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from attn_course import alive, show, verify_lesson
from attn_course.lessons.masking import figures
from attn_course.lessons.masking.experiments import HONEST_LOSS, LEAKS, MASKS
from attn_course.lessons.masking.experiments_smollm2 import SMOLLM2
from attn_course.notation import from_torch_masks, invert_mask
from attn_course.reference import attention, leak_matrix, scaled_dot_scores, softmax
from attn_course.reference import causal_mask, padding_mask, window_mask

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: between the scores and the softmax, in the box that hides keys.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## Which model would you ship?
#
# Two models are trained to continue texts of 16 symbols, alike but for one character in the code of the mask. The first
# 8 symbols are random; the other 8 translate them by a fixed code. Model A ends with a training loss of practically
# zero, model B does not. Then both get 8 symbols as a prompt and *write* the translation, one symbol at a time.
# **Predict** who writes better.

# %% id="hook-code" tags=["predicted"]
record = LEAKS.load()
for model, kind in (("A", MASKS[1]), ("B", MASKS[0])):
    loss, written = record.values(kind, "loss"), record.values(kind, "written")
    print(f"model {model}: training loss {loss} nats")
    print(f"  translation written right {100 * written} %")

# %% [markdown] id="hook-answer" tags=["answer"]
# Model B writes better, in all three trainings. A is at the level of guessing among 8 symbols, 12.5 %. It never learnt the code,
# because it did not have to: through a mask that is one column too wide, each position *saw* the symbol it had to predict.

# %% [markdown] id="hook-notice"
# We return to both in section {section}`count`, with a tool that finds A's mistake in a second.

# %% [markdown] id="factor"
# ## Adding minus infinity removes a key
#
# Add $\ln a_j$ to score $j$ of one query, for some $a_j > 0$. Since $e^{s_j + \ln a_j} = a_j e^{s_j}$, the softmax of
# {eq}`softmax` becomes
#
# $$\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}} \label{score-bias-is-factor}$$
#
# What is **added** to a score **multiplies** its share before the normalisation.

# %% id="factor-alive"
alive("score-bias-is-factor")

# %% [markdown] id="limit"
# Now let $a_l \to 0$ for all keys
# outside a set $A$ of allowed keys, and keep $a_l = 1$ inside. Their terms leave the numerator *and the sum*:
#
# $$\lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j = \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}
# \label{minus-infinity-removes-key}$$
#
# (the bracket $[\,\cdot\,]$ is 1 if true, else 0). This is the softmax over $A$ alone: the other keys might as well not
# exist.

# %% [markdown] id="renormalise"
# Divide numerator and denominator by the sum over *all* keys, and the same thing is said in weights:
#
# $$\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l},
#  \qquad w = \sigma(s) \label{masking-renormalises-weights}$$
#
# Take the unmasked weights, strike out the forbidden ones, **renormalise**: a conditional probability. What the removed
# key had is not lost and not shared out equally; it goes to the others in proportion. The scores $(2, 1, 0)$ have the weights
# .665, .245 and .090. **Predict** the weights when the first key is hidden.

# %% id="renormalise-code" tags=["predicted"]
scores = np.array([2.0, 1.0, 0.0])
print("all keys:          ", softmax(scores))
for a in (0.1, 0.001):
    print(f"a = {a:5}:         ", softmax(scores + np.log([a, 1.0, 1.0])))
print("minus infinity:    ", softmax(scores + np.array([-np.inf, 0.0, 0.0])))
print("struck, normalised:", softmax(scores)[1:] / softmax(scores)[1:].sum())

# %% [markdown] id="renormalise-answer" tags=["answer"]
# The weights become 0, .731 and .269, because the two that are left, .245 and .090, are divided by their sum. The second key stays
# $e$ times as heavy as the third.

# %% [markdown] id="arithmetic"
# The limit is attained, even in floating point: IEEE arithmetic has $s + (-\infty) = -\infty$ and $e^{-\infty} = 0$,
# exactly.
#
# $$e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j},
#  \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases} \label{masked-exponential-is-zero}$$
#
# But infinity takes part in other sums too, and there it is dangerous. **Predict** the result of three lines: a mask made as
# $(1 - \text{mask}) \cdot (-\infty)$, the shift by the row maximum if every key is hidden, and a weight of 0 on a value
# that is infinite.

# %% id="arithmetic-code" tags=["predicted"]
with np.errstate(invalid="ignore"):
    print("(1 - mask) * -inf:", (1 - np.array([1.0, 0.0])) * -np.inf)
    print("-inf - (-inf):    ", np.float64(-np.inf) - np.float64(-np.inf))
    print("0 * inf:          ", np.float64(0.0) * np.inf)
print("np.where:         ", np.where([True, False], 0.0, -np.inf))

# %% [markdown] id="arithmetic-answer" tags=["answer"]
# Each of the three lines gives NaN, not a number, because $0 \cdot \infty$ and $\infty - \infty$ are undefined. In the first line it
# stands at the key that is *not* hidden.

# %% [markdown] id="arithmetic-notice"
# So choose with `where`, never multiply, and expect trouble from rows in which everything is hidden.
#
# Each query may have its own set $A_i$. One row of $M$ for each query, and the masked attention is complete:
#
# $$\mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z,
#  \qquad
#  z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}
# \label{masked-attention}$$
#
# In code a mask is boolean, True = may attend, and $M$ is made from it.

# %% id="masked-alive"
alive("masked-attention")

# %% id="masked-code"
rng = np.random.default_rng(7)
x = rng.normal(size=(5, 5))
w_query, w_key, w_value = rng.normal(size=(3, 5, 4))
query, key, value = x @ w_query, x @ w_key, x @ w_value
mask = np.tri(5, dtype=bool)
masked = softmax(scaled_dot_scores(query, key) + np.where(mask, 0.0, -np.inf)) @ value
assert np.allclose(masked, attention(query, key, value, mask=mask))
alone = attention(query[1:2], key[:2], value[:2])
print("row 1 from the keys 0 and 1 alone:", np.allclose(masked[1], alone))

# %% [markdown] id="spot-embeddings"
# ### Spot the mistake: a mask for the embeddings
#
# "To prevent positions from attending to later ones, a mask with $-\infty$ above the diagonal is added to the input
# embeddings", one can read. Our input above has 5 tokens and 5 features, so we can even try it. **Predict** what
# happens, and what would happen with 6 features.

# %% id="spot-embeddings-code" tags=["predicted"]
for size in (np.inf, 1e4):
    hidden = x + np.where(mask, 0.0, -size)
    with np.errstate(invalid="ignore"):
        weights = softmax((hidden @ w_query) @ (hidden @ w_key).T / 2)
        wrong = weights @ (hidden @ w_value)
    same, broken = np.allclose(wrong, masked), np.isnan(wrong).any()
    print(f"minus {size}: equals masked attention: {same}, NaN: {broken}")

# %% [markdown] id="spot-embeddings-answer" tags=["answer"]
# The output is not that of masked attention: with $-\infty$ there are NaN in it, and with $-10^4$ other numbers. With 6 features there
# would be an error, because the shapes of tokens and mask would not fit.

# %% [markdown] id="spot-embeddings-notice"
# A mask speaks about **pairs** of positions and has the shape of the scores, $(T_q, T_k)$; an
# embedding belongs to one position.

# %% [markdown] id="finite"
# ## Merely large, and nothing at all
#
# Much code adds $-10^4$ or $-10^9$ instead. What does a finite $-c$ do? It is {eq}`score-bias-is-factor` with $a = e^{-c}$. Let $r$ be
# the ratio of the hidden to the visible terms. All hidden keys together keep the weight
#
# $$\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = \frac{r}{r + e^{c}},
#  \qquad
#  r = \frac{\sum_{j \notin A} e^{s_j}}{\sum_{j \in A} e^{s_j}} \label{finite-fill-leaks}$$
#
# ($\mathbf{1}_{\bar{A}}$ is 1 at the hidden keys, else 0.) On paper finite scores give positive weights only: "hidden"
# now means small *as long as* no hidden score is larger by about $c$. For $c = 10^4$ and moderate scores the rest
# underflows to 0. But what if **every** key is hidden? Then $c$ is a
# shift of the whole row, and {eq}`softmax-shift-invariance` says what that does:
#
# $$\sigma(s - c\,\mathbf{1})_j = \frac{e^{s_j}}{\sum_{l=1}^{n} e^{s_l}} \label{filled-row-hides-nothing}$$

# %% [markdown] id="finite-predict"
# On paper the row attends **as if nothing were hidden**; in floating point the scores must survive beside $c$, and in float32,
# whose numbers near $10^9$ are 64 apart, every key gets $1 / n$. No error, no NaN, honest-looking weights on padding or on the future.
# **Predict**, for scores $(2, 1, 0)$ with everything hidden: the weights if $-10^9$ is *added*, if the scores are
# *replaced* by $-10^9$, and if $-10^4$ is added in 16-bit numbers, which near $10^4$ are 8 apart.

# %% id="finite-code" tags=["predicted"]
half = scores.astype(np.float16) + np.float16(-1e4)
print("added in float64:", softmax(scores - 1e9))
print("replaced:        ", softmax(np.full(3, -1e9)))
print("added in float16:", softmax(half.astype(np.float64)))
with np.errstate(over="ignore"):
    print("-1e9 in float16: ", np.float16(-1e9))
try:
    torch.zeros(3, dtype=torch.float16).masked_fill(torch.tensor(True), -1e9)
except RuntimeError:
    print("masked_fill:      RuntimeError")

# %% [markdown] id="finite-answer" tags=["answer"]
# If $-10^9$ is added, the weights are untouched, because a shift of the whole row changes nothing and float64 has digits enough for
# the scores beside it. If the scores are replaced, they are all equal, and each key gets a third. In 16-bit numbers each key gets a third
# as well, because the scores vanish beside $-10^4$. And $-10^9$ does not exist in float16, whose largest number is 65504: NumPy makes
# it $-\infty$, and torch's `masked_fill` raises an error. So one line of code has four behaviours.

# %% [markdown] id="finite-notice"
# What a finite fill does to such a row depends on the code and on the type of its numbers. So we write $-\infty$ and **define** the
# case that it leaves open:
#
# $$A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad e^{L_i} = 0 \label{empty-row-is-zero}$$
#
# ($L_i$ is the log-sum-exp of the row.) A definition, but not an arbitrary one: the sums in {eq}`masked-attention` are empty, 0/0 is
# read as 0, gradients are 0, and results over blocks of keys can still be merged by their $L_i$ (lesson {lesson}`flash`). What do
# libraries do?

# %% id="empty-code"
nothing = mask.copy()
nothing[2] = False
q, k, v = (torch.tensor(part) for part in (query, key, value))
hidden_scores = (q @ k.T / 2).masked_fill(~torch.tensor(nothing), -torch.inf)
plain = torch.softmax(hidden_scores, dim=-1) @ v
fused = scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(nothing))
print("torch.softmax:                ", plain[2].numpy())
print("scaled_dot_product_attention: ", fused[2].numpy())
print("ours:                         ", attention(query, key, value, mask=nothing)[2])

# %% [markdown] id="empty-notice"
# The NaN comes from $-\infty - (-\infty)$, and it is worse than it looks. Let the loss leave the empty row out. **Predict** whether the
# gradients of the projections are clean then, once with `masked_fill` and once with $M$ added.

# %% id="empty-gradient-code" tags=["predicted"]
visible = torch.tensor(nothing)
for name, hidden in {
    "masked_fill": lambda s: s.masked_fill(~visible, -torch.inf),
    "M added": lambda s: s + torch.where(visible, 0.0, -torch.inf),
}.items():
    matrices = [torch.tensor(w).requires_grad_() for w in (w_query, w_key, w_value)]
    q, k, v = (torch.tensor(x) @ w for w in matrices)
    rows = torch.softmax(hidden(q @ k.T / 2), dim=-1) @ v
    rows[[0, 1, 3, 4]].sum().backward()
    spoilt = [bool(w.grad.isnan().any()) for w in matrices]
    print(f"{name:12} NaN in the gradient of W_Q, W_K, W_V:", spoilt)

# %% [markdown] id="empty-gradient-answer" tags=["answer"]
# The gradients are not clean, because in the backward pass $0 \cdot \mathrm{NaN} = \mathrm{NaN}$. One empty row that no loss looks at
# spoils the gradient of $W_V$, which **all** rows share. If $M$ was added, those of $W_Q$ and $W_K$ are spoilt too, while `masked_fill`
# passes the gradient 0 to what it hid.

# %% [markdown] id="empty-gradient-notice"
# The trap is known (pytorch #41508, open since 2020). In torch 2.13 `nn.MultiheadAttention` returned NaN with `need_weights=True`, the
# default, and zeros with `need_weights=False` (#160064 reports such a case). The next cell asks your own version.

# %% id="empty-live" tags=["live"]
layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
hide = invert_mask(nothing)  # True = hide: see section {section}`several`
tokens = torch.tensor(x[None, :, :4], dtype=torch.float32)
for need_weights in (True, False):
    options = {"attn_mask": torch.tensor(hide), "need_weights": need_weights}
    row = layer(tokens, tokens, tokens, **options)[0][0, 2]
    print(torch.__version__, f"need_weights={need_weights}: row 2 is", row.tolist())

# %% [markdown] id="causal"
# ## The causal mask
#
# Positions count from 0. Query $i$ stands at position $i + p$ among the keys, where $p$ keys came before the first
# query. It may see itself and the past:
#
# $$A_i = \{\, j : j \le i + p \,\}, \qquad M_{ij} = -\infty \iff j > i + p \label{causal-mask}$$
#
# With $p = 0$ and rows as queries, $-\infty$ stands strictly **above** the diagonal. But a model
# that writes keeps the keys and values of the text so far (a **cache**) and computes queries for the new tokens only:
# many keys, few queries. The last query stands at the last key, $(T_q - 1) + p = T_k - 1$, so
#
# $$p = T_k - T_q \label{bottom-right-offset}$$
#
# The triangle is aligned at the **bottom right**. **Predict** what a single new query sees if the triangle is aligned
# at the top left.

# %% id="causal-figure" tags=["predicted"]
top_left, bottom_right = causal_mask(2, 6), causal_mask(2, 6, q_offset=4)
figures.aligned({"top left, p = 0": top_left, "bottom right, p = 4": bottom_right})

# %% id="causal-code" tags=["predicted"]
newest = (query[4:], key, value)
q, k, v = (torch.tensor(part)[None] for part in newest)
flagged = scaled_dot_product_attention(q, k, v, is_causal=True)
print("torch, is_causal:", flagged.numpy()[0, 0])
print("value 0:         ", value[0])
print("with p = 4:      ", attention(*newest, is_causal=True, q_offset=4)[0])
print("row 4 in full:   ", masked[4])

# %% [markdown] id="causal-answer" tags=["answer"]
# The new query sees one key, the oldest, because the first row of the triangle has only its first entry. Whatever the query asks, the
# output is value 0. With $p = 4$ it sees all five keys, and the output is row 4 of the full pass.

# %% [markdown] id="causal-sentence"
# On our sentence the mask can be read off. In head 0 "the" looks for its noun, and without a mask it finds "cat", with a dot
# product of 4 against 0 at most elsewhere. The causal mask hides "cat" from it. "it" also wants "cat", which stands earlier, so the
# mask takes nothing from it that it needs.

# %% id="causal-sentence-figure"
from attn_course.sentence import KEY, QUERY, TOKENS

figures.masked(TOKENS, QUERY[0] @ KEY[0].T, causal_mask(7, 7), query=4)

# %% [markdown] id="causal-notice"
# A triangle at the wrong corner raises no error, and every test with $T_q =
# T_k$ passes. torch's `is_causal` is aligned at the top left; the proposal to change it (pytorch #108108) is open since
# 2023, and `torch.nn.attention.bias.causal_lower_right` asks for the other one. FlashAttention changed over to the
# bottom right in its version 2.1. With unequal lengths, do not trust a flag: say $p$.

# %% [markdown] id="prefix"
# Why does a cache give what the full pass gives? **Claim:** under the causal mask, what comes later changes
# nothing:
#
# $$Z(X_{1:t}) = Z(X)_{1:t} \label{causal-prefix-invariance}$$
#
# ($X_{1:t}$: rows 1 to $t$). **Assume** self-attention with $p = 0$, where $q_i$, $k_i$ and $v_i$
# are made from $x_i$ alone. *Proof.* By {eq}`masked-attention`,
# row $i \le t$ is made from $q_i$ and from the $k_j, v_j$ with $j \le i \le t$. All of these belong to the prefix and
# are the same in both. ∎ Layers that treat each position alone keep this: it holds for whole stacks.
#
# Two things live on it: training predicts **all** next tokens in one pass; and cached keys and values stay right while
# the text grows. **Predict** whether {eq}`causal-prefix-invariance` needs the mask.

# %% id="prefix-code" tags=["predicted"]
agrees, steps = [], []
for t in range(1, 6):
    prefix = attention(query[:t], key[:t], value[:t], is_causal=True)
    agrees.append(np.allclose(prefix, masked[:t]))
    last = query[t - 1 : t], key[:t], value[:t]
    steps.append(attention(*last, is_causal=True, q_offset=t - 1))
print("every prefix agrees:  ", all(agrees))
print("token by token agrees:", np.allclose(np.vstack(steps), masked))
unmasked, start = attention(query, key, value), attention(query[:3], key[:3], value[:3])
print("without mask agrees:  ", np.allclose(start, unmasked[:3]))

# %% [markdown] id="prefix-answer" tags=["answer"]
# It does need the mask: without one, the first three rows of the full pass are not the output of the first three tokens alone, because
# they average over the later tokens too. With the mask every prefix agrees, and so does a pass token by token.

# %% [markdown] id="leak"
# ## How to find a leak
#
# A mask can be wrong without any error, and the training looks *better* than before. So test for what it must achieve.
# Which inputs does output $i$ depend on? By {eq}`softmax-derivative`, with $z_i = \sum_j p_{ij} v_j$,
#
# $$\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(v_j - z_i) \label{output-derivative-by-score}$$
#
# A key of weight exactly 0 has no influence, neither through its value nor through its score. Now the tempting variant:
# a softmax over **all** scores, and the mask multiplied onto the weights *afterwards*. The forbidden weights are 0 as
# well. Do future scores still have an influence?

# %% [markdown] id="leak-after"
# They do, because the hidden score stands in the normaliser: all visible weights shrink when it grows.
#
# $$\tilde{z}_i = \sum_{j \in A_i} w_{ij}\, v_j, \qquad
#  \frac{\partial \tilde{z}_i}{\partial s_{il}} = -w_{il}\,\tilde{z}_i \quad (l \notin A_i) \label{mask-after-softmax-leaks}$$
#
# Rows do not sum to 1, and what is missing is the weight of the future. What we want instead, for tokens $x_j$ and any
# causal layer, is
#
# $$\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i) \label{causal-mask-hides-future}$$
#
# That is a **test**: move one token, and look which outputs move. It takes four lines. **Predict** at how many of the ten pairs
# $j > i$ of five tokens the output moves if the mask comes after the softmax.


# %% id="leak-code" tags=["predicted"]
def self_attention(x, put_on):
    return put_on((x @ w_query) @ (x @ w_key).T / 2) @ (x @ w_value)


def after(s):
    return softmax(s) * mask


influence, step = np.zeros((5, 5)), rng.normal(size=5)
for j in range(5):
    moved = x + step * (np.arange(5) == j)[:, None]
    change = self_attention(moved, after) - self_attention(x, after)
    influence[:, j] = np.abs(change).max(axis=1)
print(influence)

# %% [markdown] id="leak-answer" tags=["answer"]
# The output moves at all ten pairs: every entry above the diagonal is a leak, although all the weights there are 0. Row 0, for example,
# should depend on column 0 only.

# %% [markdown] id="leak-notice"
# Our package has these lines as `leak_matrix`. Let us put it to work on six layers: the right one, and five with
# common mistakes. **Predict** which of them leak everywhere, and which at a few pairs only.

# %% id="leaks-figure" tags=["predicted"]
layers = {
    "right": lambda s: softmax(np.where(mask, s, -np.inf)),
    "one column too wide": lambda s: softmax(np.where(np.tri(5, k=1) > 0, s, -np.inf)),
    "transposed": lambda s: softmax(np.where(mask.T, s, -np.inf)),
    "zeros and ones added": lambda s: softmax(s + mask),
    "after the softmax": after,
    "softmax over queries": lambda s: softmax(np.where(mask, s, -np.inf), axis=0),
}
found = {}
for name, put_on in layers.items():
    found[name] = leak_matrix(partial(self_attention, put_on=put_on), x)
figures.leak_maps(found, mask)

# %% [markdown] id="leaks-answer" tags=["answer"]
# Four of the wrong layers leak at all ten pairs of the future. "One column too wide", the mask of model A, leaks at four pairs only,
# one for each row that has a successor, and these are the ones that matter, because each of them shows the next symbol.

# %% [markdown] id="leaks-notice"
# The right layer's numbers in the future are **exactly** 0, since no operation mixes it in. The same test finds padding that is visible: ask
# for the columns behind the end.

# %% id="leaks-padding"
assert (found["right"][~mask] == 0.0).all()
real = padding_mask(np.array(3), 5)  # 3 real tokens, 2 of padding


def without_padding(s):
    return softmax(np.where(real, s, -np.inf))


for name, weigh in (("visible", softmax), ("hidden", without_padding)):
    leaks = leak_matrix(partial(self_attention, put_on=weigh), x)[:3, 3:]
    print(f"influence of {name} padding: {leaks.max().round(2)}")

# %% [markdown] id="gradient"
# The gradient asks the same question: autograd gives $\partial z_i / \partial x_j$ for all pairs at once. It can be
# fooled in other ways. It is blind to functions that are flat almost everywhere (rounding, an argmax), where a moved
# token still shows the jump. And people test with `output[i].sum().backward()`: behind a layer that shifts each row to the
# mean 0 (a LayerNorm does) the sum is constant, so every gradient is 0 and any leak passes. Take the whole Jacobian.
#
# **Predict** whether the test finds the mask after the softmax if it moves only the *values*.


# %% id="gradient-code" tags=["predicted"]
def layer_in_torch(rows):
    q, k, v = (rows @ torch.tensor(w) for w in (w_query, w_key, w_value))
    return torch.softmax(q @ k.T / 2, dim=-1) * torch.tensor(mask) @ v


jacobian = torch.autograd.functional.jacobian(layer_in_torch, torch.tensor(x))
# (5, 4, 5, 5): row, feature of the output, row, feature of the input
by_gradient = jacobian.abs().amax(dim=(1, 3)).numpy()
print("same pairs:", np.array_equal(by_gradient > 0, found["after the softmax"] > 0))
weights = softmax(scaled_dot_scores(query, key)) * mask
by_values = leak_matrix(lambda rows: weights @ rows, value)
print("moving values only, leaks:", (by_values[~mask] > 0).sum())

# %% [markdown] id="gradient-answer" tags=["answer"]
# The test does not find it then, because with fixed weights the future values are multiplied by 0. The leak runs through the *keys*.

# %% [markdown] id="gradient-notice"
# So move the
# **tokens**, the input of the layer, and nothing further inside.

# %% [markdown] id="axis"
# ## Which triangle, which axis
#
# "Strictly lower triangular", says one text; "upper", says the next. Both can be right. If the tokens are the *columns* of the
# matrices, the scores are $K Q^\top$ in our letters, queries run along the columns, and everything is transposed, the axis of the
# softmax too:
#
# $$Z = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V
#  = \Bigl( V^\top\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{K Q^\top}{\sqrt{d_k}} + M^\top\Bigr) \Bigr)^{\!\top}
# \label{masked-attention-in-columns}$$
#
# What never changes: $-\infty$ where **key index > query index**, and a softmax over the **keys**. Two choices must fit
# each other, and with as many queries as keys no shape tells if they do.

# %% [markdown] id="spot-axis"
# ### Spot the mistake: the right triangle, the wrong axis
#
# Take the right mask on $Q K^\top$, and let the softmax run down the columns. Every future weight is 0; can anything
# leak? Weight $\tilde{p}_{ij}$ now competes with the *queries* $r \ge j$ that may see key $j$, later ones among them:
#
# $$\tilde{p}_{ij} = \frac{[\,i \ge j\,]\,e^{s_{ij}}}{\sum_{r \ge j} e^{s_{rj}}}, \qquad
#  \frac{\partial \tilde{p}_{ij}}{\partial s_{lj}} = -\tilde{p}_{ij}\, \tilde{p}_{lj} \quad (l \ne i)
# \label{softmax-over-queries-leaks}$$
#
# The future, $l > i$, leaks through the normaliser again. **Predict** which of the four ways below equal masked attention.

# %% id="axis-code" tags=["predicted"]
added = np.where(mask, 0.0, -np.inf)
scores_qk, scores_kq = query @ key.T / 2, key @ query.T / 2
for name, weights in {
    "Q K^T, upper, over keys (axis 1)": softmax(scores_qk + added, axis=1),
    "K Q^T, lower, over keys (axis 0)": softmax(scores_kq + added.T, axis=0).T,
    "Q K^T, upper, over queries (axis 0)": softmax(scores_qk + added, axis=0),
    "Q K^T read as columns = queries": softmax(scores_qk + added.T, axis=0).T,
}.items():
    equal = np.allclose(weights @ value, masked)
    print(f"{name:36} {equal!s:6} sums of row 4: {weights[4].sum():.2f}")
show("softmax-over-queries-leaks", wrong="no leak: the mask is above the diagonal")

# %% [markdown] id="axis-notice" tags=["answer"]
# The first two equal masked attention, because in both the softmax runs over the keys and hides those later than the query. The
# third is the leak of {eq}`softmax-over-queries-leaks`, rejected also by `leak_matrix` above. In the last, every single
# choice looks consistent, rows sum to 1, and nothing leaks; but queries and keys have **swapped roles**: the keys ask.
# It takes a comparison with loops, or a test with $T_q \ne T_k$, to find that one.

# %% [markdown] id="several"
# ## Several masks at once
#
# Causal *and* padded *and* windowed: a pair must pass every rule. Additive masks add, since $-\infty$ plus anything
# finite is $-\infty$; boolean ones combine by `and`:
#
# $$M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)} \label{added-masks-intersect}$$
#
# Finite fills break here too. In a row where everything is hidden, a key hidden by *both* masks gets $-2c$, one hidden
# by only one gets $-c$. **Predict** where the weight goes, for scores $(2, 1, 0)$ if two masks hide the first key and one hides each of
# the others.

# %% id="several-code" tags=["predicted"]
fills = np.array([-2e9, -1e9, -1e9])
print("hidden by two masks, by one, by one:", softmax(scores + fills))

# %% [markdown] id="several-answer" tags=["answer"]
# All weight goes to the keys that are hidden only once, because they lead by $c$ over the key that is hidden twice. Between the two of
# them the scores decide.

# %% [markdown] id="padding"
# **Padding** hides columns, for all queries. Then the padding $K'$, $V'$ behind $n$ real rows may hold anything, and a padded
# batch gives each sequence what it gets alone:
#
# $$\begin{gathered}
# \mathrm{attention}\bigl(Q,\, [K;\, K'],\, [V;\, V'],\, M\bigr) = \mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}}\Bigr) V, \\
# M_{ij} = \begin{cases} 0 & j < n \\ -\infty & j \ge n \end{cases} \end{gathered} \label{key-padding-changes-nothing}$$
#
# In floating point $0 \cdot \mathrm{NaN}$ is the old trap: our `attention` drops hidden rows, a plain product $P V$ does
# not. Keep padding finite.

# %% [markdown] id="documents"
# **Packed documents** share one sequence, so that no padding is needed. Let $g_i$ be the number of the document of
# token $i$. Self-attention $Z$ of the packed tokens in which token $i$ sees only $A_i$ is that of the documents one by one:
#
# $$Z(X,\, A) = \bigl[\, Z(X^{(1)});\; Z(X^{(2)}) \,\bigr], \qquad A_i = \{\, j : g_j = g_i \,\} \label{packed-documents-stay-apart}$$
#
# A block-diagonal mask; a causal mask alone would let the second document read the first. And a **window** lets each
# query see its own position and the $w$ before it. **Predict** how many of 49 pairs the causal mask leaves, for seven
# tokens.

# %% id="several-figure" tags=["predicted"]
causal, near = causal_mask(7, 7), window_mask(7, 7, left=2, right=0)
short = np.broadcast_to(padding_mask(np.array(5), 7), (7, 7))
document = np.array([0, 0, 0, 0, 1, 1, 1])
patterns = {
    "causal": causal,
    "padding, 5 are real": short,
    "causal and padding": causal & short,
    "window, w = 2": near,
    "two documents": document[:, None] == document,
    "documents and causal": (document[:, None] == document) & causal,
}
figures.combined(patterns)

# %% [markdown] id="several-figure-answer" tags=["answer"]
# The causal mask leaves 28 pairs, because the rows see 1, 2, ..., 7 keys: half of the square, and half of the diagonal on top.

# %% [markdown] id="polarity"
# Mind what
# padding does to its own *queries*: with 5 real tokens of 7, the rows 5 and 6 still attend to real keys. That is harmless, because
# nobody reads their outputs; hiding these rows instead of the columns is a classic mistake.
#
# **Which way round is True?** Here, and in `scaled_dot_product_attention`, True means *may attend*. In
# `nn.MultiheadAttention`, of the same library, True means *hide*. An inverted mask raises no error; a much read
# repository had one until 2026 (LLMs-from-scratch #1061). **Predict** how much of the past and of the future a query sees if a causal
# mask has the wrong polarity.

# %% id="polarity-code" tags=["predicted"]
hide = np.triu(np.ones((5, 5), dtype=bool), k=1)  # for nn.MultiheadAttention
keep = from_torch_masks(hide)
print("kept:", np.array_equal(keep, mask), "  back:", np.array_equal(invert_mask(keep), hide))
q, k, v = (torch.tensor(part) for part in (query, key, value))
wrong = scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(hide)).numpy()
print("wrong polarity: row 0 is", wrong[0].round(2), " last row is", wrong[4])

# %% [markdown] id="polarity-answer" tags=["answer"]
# A query sees all of the future and nothing else, because exactly the hidden pairs are shown. The last row sees nothing at all, so its
# output is 0 here, and NaN from a plain softmax: a sign worth noticing. (With the diagonal left in, `triu` without `k=1`, there is not
# even that.)

# %% [markdown] id="polarity-notice"
# Now paint masks yourself, over the tokens of our sentence. **Predict** first: Can a hidden cell leak while the mask stands before the softmax?

# %% id="explorable" tags=["predicted"]
figures.mask_explorable()

# %% [markdown] id="explorable-notice" tags=["answer"]
# A hidden cell cannot leak: before the softmax, and over the keys, a hidden key has weight 0 and by {eq}`output-derivative-by-score` no influence. Only
# visible cells above the diagonal leak.

# %% [markdown] id="count"
# ## What is left, and what it costs
#
# Query $i$ sees $i + p + 1$ keys, if $p \ge -1$. Summed over the queries, with $\sum_i i = T_q (T_q - 1) / 2$:
#
# $$\sum_{i=0}^{T_q - 1} |A_i| = T_q\,p + \frac{T_q\,(T_q + 1)}{2} \label{causal-pair-count}$$
#
# A little more than half of the square for $p = 0$: a program that skips hidden blocks of pairs can save almost half of
# the work, not more. A window of $w$ earlier keys has $w + 1$ in each row, but the first $w$ rows lack some:
#
# $$\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1) - \frac{w\,(w + 1)}{2} \label{window-pair-count}$$
#
# Linear in $T$. And is a token further back than $w$ lost?

# %% [markdown] id="reach"
# Not in a stack. Let $B_w$ be the window as a matrix of zeros and ones. A token reaches another through $L$ layers if
# there is a path of $L$ steps, each allowed by the mask, and $(B_w)^L$ counts the paths:
#
# $$\bigl[\,((B_w)^{L})_{ij} > 0\,\bigr] = (B_{L \cdot w})_{ij}, \qquad (B_w)_{ij} = [\,i - w \le j \le i\,]
# \label{reach-of-stacked-windows}$$
#
# $L$ layers reach $L w$ back. (That a path exists does not say that much gets
# through.) **Predict** how many layers the last of 13 tokens needs to see the first, with $w = 2$.

# %% id="reach-figure" tags=["predicted"]
band = window_mask(13, 13, left=2, right=0).astype(int)
powers = {layers: np.linalg.matrix_power(band, layers) for layers in (1, 2, 4, 6)}
figures.reach({f"L = {layers}": paths > 0 for layers, paths in powers.items()})

# %% [markdown] id="reach-answer" tags=["answer"]
# It needs six layers, because the first token is twelve places back and each layer reaches two.

# %% [markdown] id="experiment"
# Back to the two models of section {section}`hook` (one head, a small network behind it; 500 steps; three seeds). Nobody can know a random symbol before it is there. The 7 random symbols to
# predict cost an honest model $\ln 8$ each on average, the other 8 nothing once the code is learnt, so its loss is at
# least $\frac{7}{15} \ln 8 = 0.970$ nats.
#
# Three more models have masks that leak in the ways of this lesson: transposed, after the softmax, and a softmax over the queries.
# **Predict** for each of the five whether it tells the random symbols in advance, and whether it can write.

# %% id="experiment-figure" tags=["predicted"]
told = [record.values(kind, "first half").mean() for kind in MASKS]
written = [record.values(kind, "written").mean() for kind in MASKS]
figures.told_and_written(MASKS, told, written)

# %% id="experiment-code" tags=["predicted"]
print(f"honest loss: at least {HONEST_LOSS:.3f}")
for kind in MASKS:
    loss, random_half = record.values(kind, "loss"), record.values(kind, "first half")
    print(f"{kind:24} loss {loss}  random half {random_half}")

# %% [markdown] id="experiment-answer" tags=["answer"]
# Only the right mask does what it should: it writes faultlessly and tells no more random symbols than chance (.125). *One column too
# wide* and *transposed* tell every random symbol and cannot write. Their loss of 0, where no honest model can be below .970, catches
# them, **if** you know the bound. *After the softmax* is subtle: in two of three trainings it tells more than a quarter of the random symbols, so
# there the model uses the leak through the normaliser, and still writes faultlessly. *Softmax over the queries* tells next to nothing, yet
# writes worse: a weight depends on how many later queries there are, so {eq}`causal-prefix-invariance` fails, and training and writing
# are different functions.

# %% [markdown] id="real"
# And in a real model? SmolLM2 (lesson {lesson}`attention`) guesses the tokens 65 to 512 of four texts. A perplexity of 13 means that a token
# is as hard to guess as one of 13 equally likely ones. **Predict** which helps it more: no mask in any of its 30 layers, or none in layer 20
# alone? (*Next token visible* means in every layer, so 30 tokens ahead in all.)

# %% id="real-code" tags=["predicted"]
real = SMOLLM2.load()
for way in ("masked", "next token visible", "no mask"):
    print(f"{way:22}", real.values(way, "perplexity").round(1))
alone = real.values("no mask in one layer", "20")
print(f"{'none in layer 20':22}", alone.round(1))

# %% [markdown] id="real-answer" tags=["answer"]
# Without a mask in layer 20 the perplexity of every text falls, by 18 to 42 percent (we picked this layer; in eight others it rises in every
# text). Without any mask it rises in three of the four, and with the next token visible it falls most. So a leak can look like progress,
# although no later token will be there when the model writes, and it can look like harm. Where no bound is known, a loss cannot show a leak.
# The leak test of section {section}`leak` can.

# %% [markdown] id="break"
# ### Break the machine
#
# Two mistakes of this lesson hide in the twin beside this machine, one in each of the next two levels: what is hidden after the
# softmax, and what is hidden by a large number only. Find the smallest input that shows each, and the lamp that proves it.

# %% id="break-card"
from attn_course.game.card import break_the_machine

break_the_machine("mask-after-softmax")

# %% [markdown] id="limits"
# ## Limits
#
# - **The test is for one input.** A fill of $-10^9$ passes it until a score is large enough, {eq}`finite-fill-leaks`. Read the code
#   too.
# - **Masks stop attention only.** Whatever else mixes positions leaks past them: statistics over a whole sequence or
#   batch, a convolution that is not causal, a target that stands in the input.
# - **A mask saves nothing by itself.** Hidden pairs are computed and thrown away, unless the kernel skips whole blocks
#   (lesson {lesson}`flash`; FlexAttention, Dong et al., 2024).
# - **A weight must go somewhere.** A query that sees any key spends a whole unit of weight. Models park it on the first
#   token; cut that one off by a window, and quality collapses (Xiao et al., 2023).

# %% id="verify-lesson"
verify_lesson("masking")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | masked attention | $\mathrm{softmax}(Q K^\top / \sqrt{d_k} + M)\, V$, {eq}`masked-attention` | $M$ is 0 or $-\infty$, $(T_q, T_k)$ |
# | meaning | $p_j = [\,j \in A\,]\, w_j / \sum_{l \in A} w_l$, {eq}`masking-renormalises-weights` | strike and renormalise |
# | nothing visible | $p = 0$, $z = 0$, $e^{L} = 0$, {eq}`empty-row-is-zero` | a definition |
# | causal | $-\infty$ where $j > i + p$, {eq}`causal-mask` | with a cache $p = T_k - T_q$ |
# | finite fill | leaks $r / (r + e^c)$, {eq}`finite-fill-leaks` | an empty row: all of it |
# | leak test | $\partial z_i / \partial x_j = 0$ for $j > i$, {eq}`causal-mask-hides-future` | move tokens |
# | combined | `and`, or the sum of $M$, {eq}`added-masks-intersect` | |
# | pairs | causal $T(T+1)/2$, window $T(w+1) - w(w+1)/2$ | {eq}`causal-pair-count` and {eq}`window-pair-count` |

# %% [markdown] id="summary"
# ## Summary
#
# - Adding $-\infty$ to a score removes the key; the rest is renormalised. Before the softmax, or not at all.
# - A finite fill hides nothing in a row where all is hidden; $-\infty$ needs a definition there: zero.
# - $-\infty$ stands where the key is later than the query; the softmax runs over keys; with a cache, mind $p$.
# - Causal attention is prefix invariant: training in one pass equals writing token by token.
# - Move one token, and see which outputs move: this finds every leak of this lesson.
# - A loss that is too good is a bug until proven otherwise.
#
# Now the [exercises](../work/ex_{lesson}`masking`_masking.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.3, masking inside
#   attention.
# - R. Child et al. (2019), [arXiv:1904.10509](https://arxiv.org/abs/1904.10509): sparse patterns.
# - I. Beltagy, M. Peters and A. Cohan (2020), [arXiv:2004.05150](https://arxiv.org/abs/2004.05150): sliding windows,
#   and how far a stack of them sees.
# - G. Xiao et al. (2023), [arXiv:2309.17453](https://arxiv.org/abs/2309.17453): attention sinks.
# - J. Dong et al. (2024), [arXiv:2412.05496](https://arxiv.org/abs/2412.05496): FlexAttention, masks as small
#   functions.
# - PyTorch, issues [#41508](https://github.com/pytorch/pytorch/issues/41508),
#   [#103963](https://github.com/pytorch/pytorch/issues/103963),
#   [#108108](https://github.com/pytorch/pytorch/issues/108108) and
#   [#160064](https://github.com/pytorch/pytorch/issues/160064).
# - LLMs-from-scratch, issue [#1061](https://github.com/rasbt/LLMs-from-scratch/issues/1061): a mask of the wrong
#   polarity.
