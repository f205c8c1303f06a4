# %% [markdown] id="title"
# # {lesson}`heads` Multi-head attention: several weights for one position
#
# One head gives each position one row of weights. Yet a layer of a language model has nine heads, or a hundred, usually so narrow that
# together they need no more parameters than one wide head. **What can several narrow heads do that one wide head cannot?**
#
# **You need** lessons {lesson}`attention` and {lesson}`self_attention`. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% [markdown] id="hook"
# ## Both neighbours
#
# A ring has eight places, each with one of eight colours, drawn at random. PyTorch's layer of attention reads, for each place, a vector for
# its colour plus one for the place. From what it returns there, a linear map must name the colour before and the colour after:

# %% id="hook-code"
import numpy as np
import torch
from torch import nn


class Ring(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.colour, self.place = nn.Embedding(8, 32), nn.Embedding(8, 32)
        self.layer = nn.MultiheadAttention(32, n_heads, bias=False, batch_first=True)
        self.names = nn.Linear(32, 16)  # eight colours before, eight after

    def forward(self, rings):
        x = self.colour(rings) + self.place.weight
        z, weights = self.layer(x, x, x, average_attn_weights=False)
        return self.names(z).unflatten(-1, (2, 8)), weights


# %% [markdown] id="hook-train"
# We train it once with one head of width 32 and once with two of width 16, and `named` counts on other rings how often it names the two
# colours right. (`train` takes 300 steps of Adam, on new rings each time.)

# %% id="hook-result"
from attn_course.lessons.heads.experiments_given import named, train

one, two = train(Ring(n_heads=1)), train(Ring(n_heads=2))
rings = torch.tensor(np.random.default_rng(2).integers(8, size=(1024, 8)))
print("one head:", named(one(rings)[0], rings))
print("two heads:", named(two(rings)[0], rings))

# %% [markdown] id="hook-notice"
# Two heads name both neighbours every time. The one head names one of them every time and guesses the other, right in about one case of
# eight. (So it was in three more trainings, section {section}`more`.) Here are the weights of these heads, averaged over the rings:

# %% id="hook-maps"
from attn_course.lessons.heads import figures

maps = [model(rings)[1].mean(dim=0) for model in (one, two)]
figures.ring_maps(torch.cat(maps))

# %% [markdown] id="why"
# ### What does the one head lack?
#
# The only head mixes what it reads before and after in nearly equal parts, and this one mixture is all that the linear map gets. Two heads
# give it two mixtures, each nearly pure. In the machine of lesson {lesson}`attention`, heads work side by side in the lit boxes. (The ring
# neither masks nor adds $X$.)

# %% id="machine"
figures.machine()

# %% [markdown] id="why-line"
# Why is one mixture not enough? Let a head always give the place before the weight 0.6 and the place after 0.4, and let there be two
# colours, *red* with the number 0 and *blue* with the number 1:
#
# | before | after | mixture |
# |---|---|---|
# | red | red | 0 |
# | red | blue | 0.4 |
# | blue | red | 0.6 |
# | blue | blue | 1 |
#
# A single cut, between 0.4 and 0.6, tells us the colour before. But the colour *after* is blue at 0.4 and 1 and red at 0 and 0.6, and no
# single cut parts these.

# %% [markdown] id="why-both"
# It is the same in a head of any width and with any colours, if the weights do not depend on the colours and a linear map names them. On
# rings that differ in these two places only, take the map's output for one colour minus its output for another. This is the weight before
# times a number of the colour before, plus the weight after times that of the colour after, plus a constant. Its sign decides.

# %% [markdown] id="why-cut"
# Call the colour with the larger number blue. If the place before has the larger weight, the difference grows from *red, red* to *red,
# blue*, *blue, red* and *blue, blue*. There the colour after is red, blue, red, blue, and no single limit parts these. By symmetry, if the
# place after has the larger weight, the colour before cannot always be named; with equal weights, neither can.

# %% [markdown] id="why-conditions"
# The trained head gives the place before 0.50 and the place after 0.46, hardly changing from ring to ring (section {section}`more`), so we
# cannot expect it to name the colour after. Training made it name the one before. (A network behind the head may cut three times, enough
# for this table.)

# %% [markdown] id="split"
# ## A head is a block of columns
#
# How does one layer get several rows of weights? We cut the columns of queries, keys and values into blocks. A **head** is one block of
# each, and attends for itself:

# %% id="attend"
from attn_course import check, verify_lesson


def attend(query, key, value):  # one head: (q_len, d_k), (kv_len, d_k or d_v)
    scores = query @ key.T / np.sqrt(query.shape[-1])
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = terms / terms.sum(axis=-1, keepdims=True)
    return weights @ value


# %% [markdown] id="small"
# Let two heads have one column each. In *the cat sat*, "sat" asks with the query $(\ln 8, \ln 8)$:
#
# | | key | value |
# |---|---|---|
# | the | $(0, 1)$ | $(0, 3)$ |
# | cat | $(1, 0)$ | $(2, 0)$ |
# | sat | $(0, 0)$ | $(0, 0)$ |
#
# The first head reads the first column. Its scores are $0$, $\ln 8$ and $0$, and the root of its width is 1, so the powers of $e$ are 1, 8
# and 1, with the sum 10: "cat" gets the weight $\frac{8}{10}$, and the head returns $\frac{8}{10} \cdot 2 = 1.6$.
#
# **Predict** what the second head returns, and whether one head of width 2 that reads both columns returns more, less, or the same.

# %% id="small-code" tags=["predicted"]
query = np.log([[8.0, 8.0]])
key, value = np.array([[[0, 1], [1, 0], [0, 0]], [[0, 3], [2, 0], [0, 0]]])
readers = {"first head": [0], "second head": [1], "one head of width 2": [0, 1]}
for name, columns in readers.items():
    output = attend(query[:, columns], key[:, columns], value[:, columns])
    print(f"{name}: {output[0].round(2)}")

# %% [markdown] id="small-answer" tags=["answer"]
# The second head gives "the" eight tenths and returns $\frac{8}{10} \cdot 3 = 2.4$. The wide head gives "the" and "cat" the same score, so
# less than one half each, and returns less of both. Two heads found a word each, while the wide head had to share its one row between them.

# %% [markdown] id="columns"
# Each column of $X W_Q$ is $X$ times one column of $W_Q$, so to cut the queries of $H$ heads is to give each head a narrow matrix of its own:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \key{heads-are-column-blocks}$$
#
# The input $X$ is not cut: every head reads all of its features. On its block, a head with queries and keys of width $d_k$ and values of
# width $d_v$ is attention as before:
#
# $$Z_h = P_h\, X W_V^{(h)}, \qquad
#  P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr) \key{attention-of-one-head}$$
#
# (Formulas and the next figure count heads from 1, code and names such as "head 0" or "layer 16" from 0.)

# %% id="split-figure"
figures.split_and_merge(tokens=4, n_heads=3, d_k=2, head=2)

# %% [markdown] id="loop-turn"
# **Your turn: a loop over heads.** {turn}`heads-by-loop` `np.split(query, n_heads, axis=-1)` cuts columns
# into blocks. For each head, call `attend`.

# %% id="loop-turn-code" tags=["your-turn"]
my_heads = ...  # your function
check("heads-by-loop", my_heads)

# %% [markdown] id="loop-goes-on"
# The lesson goes on with yours, or with this one:


# %% id="loop-ours"
def heads_ours(query, key, value, n_heads):
    sides = (np.split(side, n_heads, axis=-1) for side in (query, key, value))
    return np.concatenate([attend(*head) for head in zip(*sides, strict=True)], axis=-1)


my_heads = heads_ours if my_heads is ... else my_heads

# %% [markdown] id="reshape"
# ### Spot the mistake: the right shape, and wrong
#
# Libraries make the heads a leading axis, $(T, H d_k) \to (H, T, d_k)$. Both cuts below give this shape. We change the last of four
# positions. **Predict** in which cut every head notices it.

# %% id="reshape-code" tags=["predicted"]
queries = np.random.default_rng(8).normal(size=(4, 6))  # T = 4, three heads of width 2
changed = queries + np.array([[0], [0], [0], [1]])
cuts = lambda x: x.reshape(4, 3, 2).swapaxes(0, 1), lambda x: x.reshape(3, 4, 2)
for cut in cuts:
    print("heads that notice:", (cut(queries) != cut(changed)).any(axis=(1, 2)))

# %% [markdown] id="reshape-answer" tags=["answer"]
# In the first cut. No test of shapes finds the mistake in the second: `reshape` reads row by row, and puts all of position 0 and a third of
# position 1 into the first "head". Split the last axis first, and **then** move the axis of heads to the front.

# %% [markdown] id="merge"
# ## The layer adds up its heads
#
# Every position now has $H$ outputs of width $d_v$, side by side. One more matrix maps them back to the width $d$ of the tokens:
#
# $$\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
# \label{multi-head-attention}$$
#
# Cut $W_O$ into $H$ blocks of $d_v$ *rows*. In the product, the columns of head $h$ meet block $h$ of the rows:
#
# $$\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)} \key{output-projection-sums-heads}$$
#
# So the layer is a **sum over heads**. If two heads return 3 and 5 at a position, and the rows of $W_O$ are $(1, 0)$ and $(1, 1)$, the layer
# returns $3 \cdot (1, 0) + 5 \cdot (1, 1) = (8, 5)$ there, and without the first head $(5, 5)$.

# %% [markdown] id="silence-turn"
# **Your turn: silence a head.** {turn}`layer-without-a-head` `np.split(w_output, len(heads))` cuts its
# rows into blocks.

# %% id="silence-turn-code" tags=["your-turn"]
my_layer_without = ...  # your function
check("layer-without-a-head", my_layer_without)


# %% id="silence-ours"
def layer_without_ours(heads, w_output, silent):
    rows = np.split(w_output, len(heads))  # blocks of d_v rows
    return sum(heads[h] @ rows[h] for h in range(len(heads)) if h != silent)


my_layer_without = layer_without_ours if my_layer_without is ... else my_layer_without

# %% [markdown] id="layer"
# With matrices to work on, your two functions are a whole layer, in plain NumPy:


# %% id="layer-code"
class MyLayer:
    def __init__(self, w_query, w_key, w_value, w_output, n_heads):
        self.w = w_query, w_key, w_value
        self.w_output, self.n_heads = w_output, n_heads

    def read(self, x):
        return [x @ w for w in self.w]

    def __call__(self, x, silent=None):
        z = my_heads(*self.read(x), self.n_heads)
        if silent is None:
            return z @ self.w_output
        heads = np.array(np.split(z, self.n_heads, axis=-1))
        return my_layer_without(heads, self.w_output, silent)


# %% [markdown] id="silence-ring"
# With the matrices of the ring's layer with two heads, your class should return what this layer does. (`matrices` gives $W_Q$, $W_K$,
# $W_V$ and $W_O$ in NumPy, and `answers` is the linear map behind the layer.) Then we silence head 0, and then head 1. **Predict**
# from their maps in section {section}`hook` which neighbour is still named each time.

# %% id="silence-ring-code" tags=["predicted"]
from attn_course.lessons.heads.experiments_given import answers, matrices

mine = MyLayer(*matrices(two.layer), n_heads=2)
x = two.colour(rings) + two.place.weight
ours, theirs = [mine(each) for each in x.numpy()], two.layer(x, x, x)[0]
print("as PyTorch's layer:", np.allclose(ours, theirs, atol=1e-4))
for silent in (0, 1):
    z = [mine(each, silent) for each in x.numpy()]
    print(f"without head {silent}: {named(answers(two, z), rings)}")

# %% [markdown] id="silence-ring-answer" tags=["answer"]
# Head 0 looks at the place before, so without it the colour before is guessed, and the colour after is still named every time. Without head
# 1 it is the other way round.

# %% [markdown] id="parameters"
# The second row of weights costs no parameter: $W_Q$, $W_K$, $W_V$ and $W_O$ are 32 by 32, for one head of width 32 as for two of width 16.

# %% [markdown] id="real"
# ## Your class holds a layer of a real model
#
# The smallest SmolLM2 has 30 layers of nine heads, which do three things that yours do not do yet: queries and keys are turned by the place
# of their token (lesson {lesson}`self_attention`), three neighbouring query heads share one head of keys and values (section
# {section}`cache`), and a token sees no later one. Where a layer reads, `turned_and_shared` does the first two:

# %% id="real-class"
from attn_course.lessons.heads.experiments_given import differs_by, turned_and_shared


class SmolLayer(MyLayer):
    def read(self, x):
        return turned_and_shared(*super().read(x))


# %% [markdown] id="real-hold"
# For the third, `differs_by` gives your layer the text up to each token, keeps the last row, and compares it with what the heads of layer
# 16 add, if the model is on your machine. (The cells after this one have stored answers.)

# %% id="real-layer" tags=["live"]
from attn_course import language_model

model, sentence = language_model(), "The cat sat because it was tired."
if model.is_here:
    w = model.layer(16)
    mine = SmolLayer(w.w_query, w.w_key, w.w_value, w.w_output, n_heads=9)
    print(f"differs by {differs_by(mine, model, 16, sentence):.5f}")

# %% [markdown] id="real-look"
# For us the largest difference was 0.00001, for numbers up to 15, which is rounding. So your class holds layer 16. Where do its heads look?

# %% id="real-maps"
maps = model.maps(sentence)
back = maps.diagonal(-1, -2, -1).mean(axis=-1)  # the weight on the token before
print("layers and heads that look back:", np.argwhere(back > 0.65).tolist())
figures.two_heads(maps[16], model.tokens(sentence))

# %% [markdown] id="real-copy"
# Head 3 looks mostly at the first token. Head 0 is one of four heads among 270 that give the token before more than 0.65 of their weight,
# on average over this sentence. What is it good for? Where a text has "red sun", it can note at "sun" that "red" came before. When "red"
# comes again, a later layer can look for this note, find "sun", and write it. So a model could copy, and SmolLM2 does:

# %% id="real-text"
words = "lamp seven gold tiger blue. lamp seven"
print(model.write(words, tokens=4))

# %% [markdown] id="real-question"
# We silence head 0 of layer 16; then the eight others of its layer together, which add a longer vector; then the three others that look
# back. The model reads six texts of 50 random tokens followed by the same 50, and six pieces of a story. We count which share of the second
# round, and of the story's next tokens, it names right.
#
# **Predict** which loss costs the copying most: head 0, the eight or the three. Does it cost the story as much? This is a bet: the maps
# alone do not tell.

# %% id="real-copying" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING, SILENT

measured = COPYING.load()
for name in SILENT:
    right, told = (measured.values(what, name) for what in ("silenced", "story"))
    print(f"{name} silent:")
    print(f"    copies {right.min():.2f} to {right.max():.2f}, story {told.mean():.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Without head 0, at most an eighth of the random tokens is right in any text. Without the eight others, or the three that look back, the
# model keeps more than half of its copying. So neither a large loss in layer 16 nor the loss of other heads that look back is enough to
# stop it. (We silenced these in groups, not each alone.) The story falls from 0.35 to 0.32 or 0.33 each time, so head 0 is not simply
# needed for everything. Whether it works by notes, this does not show; lesson {lesson}`induction` goes on. (With the model on your machine,
# let `model.silenced((16, 2))` write our list. It breaks there, too, so one list is poor evidence.)

# %% id="verify-lesson"
verify_lesson("heads")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | block of columns, {eq}`heads-are-column-blocks` | {key}`heads-are-column-blocks` |
# | head, {eq}`attention-of-one-head` | {key}`attention-of-one-head` |
# | layer, {eq}`output-projection-sums-heads` | {key}`output-projection-sums-heads` |

# %% [markdown] id="summary"
# ## Summary
#
# - A head is a block of columns of queries, keys and values, with weights of its own.
# - The layer adds up what its heads write, so a head is silenced by leaving out its term.
# - A map does not say what a head is for. Silence it, and others for control.
#
# One wide head mixes all it reads by one row of weights. Several narrow heads read several things at once and keep them apart for a linear
# map behind the layer, with no more parameters. `MyLayer`, which holds them, needs only NumPy, so take it with you. In lesson
# {lesson}`cross_attention`, one sequence asks another.

# %% [markdown] id="more"
# ## Deeper: can one head do it after all?
#
# In section {section}`hook` a linear map read the head. Now a network reads it: a linear map to 128 numbers, of which the negative ones
# become 0, and then the map to the answers. **Predict** whether one head in front of this network can name both neighbours, and with
# which weights for the two places.

# %% id="accuracy-code" tags=["predicted"]
from attn_course.lessons.heads.experiments import HEADS, MODELS

record = HEADS.load()
for name in MODELS:
    before, after, both = record.values("accuracies", name).mean(axis=0)
    print(f"{name}: names before {before:.2f}, after {after:.2f}, both {both:.2f}")
    looks = record.values("looks", name).transpose(1, 2, 0).round(2)
    for head, (before, after) in enumerate(looks):  # a weight for each training
        print(f"    weights of head {head}: before {before}, after {after}")

# %% [markdown] id="mixture" tags=["answer"]
# One head can do it, with weights of about 0.69 and 0.29. With equal weights two orders could not be told apart; 0.69 and 0.29 are one
# unequal choice. From ring to ring a weight differs by less than 0.03 (standard deviation), so the rows hardly depend on the colours, as
# our proof supposed.

# %% [markdown] id="sum"
# What, then, do several heads give? Not more parameters, for together their matrices hold
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# which does not change if twice as many heads have half the widths. But by {eq}`attention-of-one-head`, each also has a map of values of its own:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$
#
# The two heads of the ring look at one fixed shift each, with weights near 1. On a text, heads with weights of exactly 1 would be, away from its
# ends, a **convolution**, and each head one entry of its filter (Cordonnier et al., 2020):
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$
#
# with $Y_t = \sum_h x_{t + \Delta_h} W_h$ and zeros beyond the ends of the text. Narrow heads have a price. If the width of queries and
# keys is less than $T - 1$, not every matrix of positive weights can be formed (see Bhojanapalli et al., 2020), and each head writes into
# $d_v$ directions at most:
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$

# %% [markdown] id="cache"
# ## Deeper: what does a layer keep while it writes?
#
# A model writes one token at a time. With the causal mask (lesson {lesson}`masking`), row $t$ of attention needs only its own query and the
# keys and values of tokens $1$ to $t$:
#
# $$z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t \label{decoding-equals-full-pass}$$
#
# No later token changes a key or a value. So a layer keeps them in a **cache**. To compute all $T$ tokens again would take
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# multiplications and additions, the softmax not counted, if $H d_k = H d_v = d$. To keep less, $g$ neighbouring query heads share one key
# head and one value head (Shazeer, 2019; Ainslie et al., 2023). With $H_{kv}$ key heads, and heads counted from 0:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \label{grouped-query-attention}$$
#
# Here PyTorch computes nine query heads on three key heads at once, and we compute one token after the other:

# %% id="cache-code"
from torch.nn.functional import scaled_dot_product_attention

rng = np.random.default_rng(8)
q = rng.normal(size=(9, 5, 4))  # nine query heads, five tokens
k, v = rng.normal(size=(2, 3, 5, 4))  # three key heads, and three of values
sides = (torch.tensor(side) for side in (q, k, v))
at_once = scaled_dot_product_attention(*sides, is_causal=True, enable_gqa=True).numpy()
for t in range(1, 6):
    z = [attend(q[h, t - 1 : t], k[h // 3, :t], v[h // 3, :t])[0] for h in range(9)]
    assert np.allclose(z, at_once[:, t - 1])
print("the same, token by token")

# %% [markdown] id="cache-bytes"
# With $b$ bytes for a number and $d_{\mathrm{head}} = d_k = d_v$, the cache grows with each token by
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# SmolLM2 has nine query heads on three key heads of width 64. **Predict** how many numbers one layer keeps for each token, and how many it would
# keep with nine key heads. The whole model has 135 million numbers of 16 bits, 257 MiB. Is the cache of 8,192 tokens larger?

# %% id="cache-bytes-code" tags=["predicted"]
for key_heads in (3, 9):
    numbers = 2 * key_heads * 64  # a key and a value for each key head
    size = 30 * numbers * 2 * 8192 / 2**20  # 30 layers, 2 bytes a number
    print(f"{key_heads} key heads: {numbers} numbers in a layer, {size:.0f} MiB in all")

# %% [markdown] id="cache-answer" tags=["answer"]
# A layer keeps $2 \cdot 3 \cdot 64 = 384$ numbers for each token, and with nine key heads it would keep 1,152. The cache of this text is smaller
# than the model; with nine key heads it would be twice as large as the model.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.2, heads.
# - J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), [arXiv:1911.03584](https://arxiv.org/abs/1911.03584): heads and convolutions.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): what narrow heads cannot weigh.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): one key head for all.
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed.
