# %% [markdown] id="title"
# # {lesson}`masking` Masking: what a row may look at
#
# Language models are compared by how well they guess the next token. We took one thing away from SmolLM2, the model of lesson
# {lesson}`start`: in one of its 30 layers, the mask that hides the tokens still to come. Since then it guesses better, in every text that
# we tried. **Have we improved it?**
#
# **You need** lessons {lesson}`softmax`, {lesson}`attention` and {lesson}`self_attention`. **Time:** 60 minutes, without *Deeper*
# sections and the [exercises](../work/ex_{lesson}`masking`_masking.ipynb).

# %% [markdown] id="hook"
# ## A better model?
#
# The cell prints the perplexity on four texts: roughly, between how many next tokens the model hesitates.

# %% id="hook-code"
from attn_course.lessons.masking.experiments_smollm2 import SMOLLM2

record = SMOLLM2.load()  # a story, a lecture, a licence, a program
for way in ("masked", "no mask in layer 20"):
    print(f"{way:20}", record.values("perplexity", way).round(1))

# %% [markdown] id="where"
# Lower is better, and it fell by 18 to 42 percent. (We chose this layer. In layer 19 the same change makes it worse in all four.) Before
# we tell anybody, let us find out what the layer has begun to look at. In the machine of lesson {lesson}`attention`, the mask stands
# between the scores and the softmax:

# %% id="machine"
from attn_course.lessons.masking import figures

figures.machine()

# %% [markdown] id="hide"
# ## Hide a key
#
# In lesson {lesson}`attention` "cat" asked which words tell something about it. It gave "sat" and "tired" the weight 0.344 each, "was"
# 0.126, and the four others, itself and "the" among them, 0.047 each. But suppose the sentence is still being written, and has come to
# "cat". Then "cat" may look at "the" and at itself, and the other five must count as if they were not there.

# %% [markdown] id="hide-score"
# Which score does that? Not 0, because $e^0 = 1$. We need a score $x$ with $e^x = 0$, and that is $-\infty$, for which a computer gives
# exactly 0. So to the scores $s_j$ of a query we add numbers $M_j$. With $A$ for the set of **visible** keys, and a bracket that is 1 if
# it is true, else 0,
#
# $$e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j},
#  \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases} \label{masked-exponential-is-zero}$$

# %% [markdown] id="hide-predict"
# In code, our mask is an array of booleans where True means *may look*. Each word sees itself and all words before it. **Predict** the
# weights that "cat" now gives to "the" and to itself.

# %% id="hide-code" tags=["predicted"]
import numpy as np

from attn_course.reference import softmax
from attn_course.sentence import KEY, QUERY, TOKENS, X

dots, mask = QUERY[0] @ KEY[0].T, np.tri(7) > 0  # True on and below the diagonal
weights = softmax(np.where(mask, dots / 2, -np.inf))
print("cat:", weights[TOKENS.index("cat")])
figures.masked(TOKENS, dots, mask, query=TOKENS.index("cat"))

# %% [markdown] id="hide-answer" tags=["answer"]
# It gives one half to each. They had equal weights before, as both have the dot product 0, and now they share all of it.

# %% [markdown] id="renormalise"
# What happened to the weight of the five hidden words? Write the softmax under the mask, and divide numerator and denominator by the sum
# over *all* keys. With $w = \sigma(s)$, the weights without a mask,
#
# $$\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l},
#  \qquad w = \sigma(s) \key{masking-renormalises-weights}$$
#
# So a mask strikes out the hidden weights and divides the others by their sum: $0.047 / (0.047 + 0.047)$ for "cat".

# %% [markdown] id="masked"
# Every query may have a visible set $A_i$ of its own. With a row of $M$ for each query,
#
# $$\mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z,
#  \qquad
#  z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}
# \key{masked-attention}$$
#
# A mask speaks about *pairs*, so it has the shape of the scores, $(T_q, T_k)$. On this card, two of the three queries see a single key.
# Change $V$ to find out which key each of them sees:

# %% id="masked-alive"
from attn_course import alive, check, verify_lesson

alive("masked-attention")

# %% [markdown] id="causal"
# ## Hide the future
#
# The mask of a model that writes is called **causal**. Token $i$ sees itself and what came before it, $A_i = \{\, j : j \le i \,\}$, so
# $-\infty$ stands above the diagonal of $M$. What does it buy? Let $Z(X)$ be self-attention with this mask, and $X_{1:t}$ the first $t$
# rows of $X$. **Claim:**
#
# $$Z(X_{1:t}) = Z(X)_{1:t} \key{causal-prefix-invariance}$$
#
# Whether or not more text follows, the first $t$ outputs are the same. *Proof.* Each row of queries, keys and values is made from the
# same row of $X$. By {eq}`masked-attention` output $i \le t$ reads query $i$ and the keys and values $j \le i$, and all of them belong to
# the first $t$ rows. ∎ Layers that treat every position by itself keep this, so it holds for a whole model if every attention layer has
# the mask.

# %% [markdown] id="prefix-use"
# So in training, a model can guess all next tokens of a text in one pass, and when it writes, what a cache holds of the earlier tokens
# stays right. We try it without projections, on "the cat sat" and on the whole sentence:


# %% id="prefix-code"
def layer(x, weigh):
    return weigh(x @ x.T / np.sqrt(x.shape[1])) @ x


def before(scores):  # the mask before the softmax
    return softmax(np.where(np.tri(len(scores)), scores, -np.inf))


print(np.allclose(layer(X[:3], before), layer(X, before)[:3]))

# %% [markdown] id="late"
# ## Spot the mistake: a mask behind the softmax
#
# Does it matter *where* the mask stands? It would be simpler to multiply the weights by zeros and ones after a softmax of all scores. The
# future then has weight 0 as well:


# %% id="late-layer"
def after(scores):  # the mask after the softmax
    return softmax(scores) * np.tri(len(scores))


# %% [markdown] id="late-predict"
# We put the row of "sat" in the place of the last row, that of "tired". **Predict** which outputs move: with the mask before the softmax,
# and with the mask after it.

# %% id="late-code" tags=["predicted"]
other = X.copy()
other[6] = X[2]
for weigh in (before, after):
    moved = (layer(other, weigh) != layer(X, weigh)).any(axis=1)
    names = [token for token, moves in zip(TOKENS, moved, strict=True) if moves]
    print(f"mask {weigh.__name__} the softmax: moved are the outputs of", *names)

# %% [markdown] id="late-answer" tags=["answer"]
# With the mask before the softmax only the last output moves. With the mask after it all seven do, because the hidden score still stands
# in the sum by which the visible weights are divided. If it grows, they shrink.

# %% [markdown] id="slope"
# How much do they shrink? By lesson {lesson}`softmax`, if score $l$ rises, the average of numbers $f$ under the weights $w$ changes at
# the rate $w_l\,(f_l - \bar f)$. Each feature of an output is such an average. With the mask in its right place, and $p_{ij}$ for the
# weights,
#
# $$\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(v_j - z_i) \label{output-derivative-by-score}$$
#
# so a key that the mask hides has no influence, neither by its value nor by its score. With the mask after the softmax it has.

# %% [markdown] id="slope-turn"
# **Your turn: a formula.** {turn}`slope-behind-late-mask`

# %% id="slope-turn-code" tags=["your-turn"]
my_slope = ...  # such as r"w_l v_l", which is wrong
check("slope-behind-late-mask", my_slope)

# %% [markdown] id="slope-ours" tags=["ours"]
# It is `r"w_l ([l \in A] v_l - \tilde{z})"`: the number at key $l$ is $[l \in A]\, v_l$, and the average is $\tilde{z}$ itself.

# %% [markdown] id="slope-result"
# At a hidden key the number is 0, and what remains is
#
# $$\tilde{z}_i = \sum_{j \in A_i} w_{ij}\, v_j, \qquad
#  \frac{\partial \tilde{z}_i}{\partial s_{il}} = -w_{il}\,\tilde{z}_i \quad (l \notin A_i) \label{mask-after-softmax-leaks}$$
#
# This slope is 0 only if the hidden token had no weight, or if the output is 0. We call every influence of a hidden token a **leak**.

# %% [markdown] id="leak"
# ## A test that finds leaks
#
# Nothing failed when that mask stood in the wrong place: the shapes were right, and every hidden weight was 0. So instead of reading code
# or weights, we ask for what a mask is meant to achieve between a layer's inputs $x_j$ and outputs $z_i$:
#
# $$\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i) \key{causal-mask-hides-future}$$
#
# In words: move one token, and look which outputs move.

# %% [markdown] id="leak-turn"
# **Your turn: the test.** {turn}`who-moves-whom`

# %% id="leak-turn-code" tags=["your-turn"]
my_influence = ...  # your function
check("who-moves-whom", my_influence)

# %% [markdown] id="leak-ours" tags=["ours"]
# It returns `np.abs(moved - still).max(axis=-1).T`. Before the `.T` the rows belong to the tokens that were moved.


# %% id="influence"
def influence(still, moved):  # until you have written yours, ours stands in
    if my_influence is ...:
        return np.abs(moved - still).max(axis=-1).T
    return my_influence(still, moved)


# %% [markdown] id="leaks-predict"
# Now we plant five mistakes, and move each token by a step drawn at random. Of the pairs of seven tokens 21 have $j > i$. **Predict**
# which of the mistakes leak at all 21, and which at a few only.

# %% id="leaks-figure" tags=["predicted"]
layers = {
    "right": before,
    "one column too wide": lambda s: softmax(np.where(np.tri(7, k=1), s, -np.inf)),
    "transposed": lambda s: softmax(np.where(mask.T, s, -np.inf)),
    "zeros and ones added": lambda s: softmax(s + mask),
    "after the softmax": after,
    "softmax over queries": lambda s: softmax(np.where(mask, s, -np.inf), axis=0),
}
steps, found = np.random.default_rng(0).normal(size=X.shape), {}
for name, weigh in layers.items():
    moved = [layer(X + np.eye(7)[:, [j]] * steps[j], weigh) for j in range(7)]
    found[name] = influence(layer(X, weigh), np.array(moved))
figures.leak_maps(found, mask)

# %% [markdown] id="leaks-answer" tags=["answer"]
# Four of them leak at all 21 pairs. Adding ones hides nothing, and the transposed mask shows the future instead of the past. With the
# mask after the softmax, hidden scores still stand in the sum that divides, and with the softmax over queries the scores of later queries
# do. The mask that is one column too wide leaks at six pairs only, but the worst six, because each shows a row the very token that it
# must guess. In the right layer all numbers above the diagonal are exactly 0.

# %% [markdown] id="leaks-notice"
# Here the test need not even forgive rounding, as both runs add the same numbers in the same order. But it must move the *inputs* of the
# layer. If only its values were moved, the mask after the softmax would pass, because its leak runs through the keys. In exercise
# {task}`leak-test` your test meets leaks that no mask can stop.

# %% [markdown] id="several"
# ## Several masks, and a row that sees nothing
#
# In a batch, short texts are filled up with **padding**, whose columns are hidden from every query. The mask of two documents in one
# sequence has blocks, as they must not see each other. A **window** shows a query itself and the $w$ tokens before it. If several masks
# apply, a pair must pass them all, since $-\infty$ plus 0 or $-\infty$ is $-\infty$:
#
# $$M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)} \label{added-masks-intersect}$$
#
# For booleans this is `&`:

# %% id="several-figure"
document = np.array([0, 0, 0, 0, 1, 1, 1])
figures.combined(
    {
        "causal, two documents": mask & (document[:, None] == document),
        "causal, window of 2": mask & ~np.tri(7, k=-3, dtype=bool),  # k = -(w + 1)
        "causal, padding in front": mask & (np.arange(7) >= 2),
    }
)

# %% [markdown] id="empty"
# In the third mask two tokens of padding stand in front, so that all texts of a batch end together. Its first two rows see nothing, and
# there the formula says $0 / 0$. To avoid this, much code adds $-10^9$ and not $-\infty$.
#
# Take a row with the scores 2, 1 and 0, whose weights without a mask are 0.665, 0.245 and 0.090. We hide all three keys by adding
# $-10^9$, in numbers of 64 bits. **Predict** the weights.

# %% id="empty-code" tags=["predicted"]
scores = np.array([2.0, 1.0, 0.0])
print("-1e9 added, 64 bits:     ", softmax(scores - 1e9).round(3))
print("-1e9 added, 32 bits:     ", softmax(scores.astype(np.float32) - 1e9).round(3))
with np.errstate(invalid="ignore"):
    terms = np.exp(np.full(3, -np.inf) - (-np.inf))  # the maximum is subtracted first
print("-inf, in a plain softmax:", terms / terms.sum())

# %% [markdown] id="empty-answer" tags=["answer"]
# They are the weights without any mask, since a number added to all scores of a row changes no softmax ({eq}`softmax-shift-invariance`).
# In 32 bits the scores are lost in rounding beside $10^9$, and all three get 1/3. Either way, the row attends to what was to be hidden.

# %% [markdown] id="empty-defined"
# NaN, "not a number", is at least honest. But it spreads: in the backward pass 0 times NaN is NaN, so one such row spoils the gradient of
# $W_V$, which all rows share. So we *define* what the formula leaves open. With $L_i$ for the log-sum-exp of the visible scores,
#
# $$A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad e^{L_i} = 0 \label{empty-row-is-zero}$$
#
# A sum over no keys is 0, and $0 / 0$ is read as 0. PyTorch's `scaled_dot_product_attention` does the same, while `torch.softmax` returns
# NaN.

# %% [markdown] id="real"
# ## The better model, tested
#
# The perplexities of SmolLM2 without a mask in layer 20 came from one pass over each text. But when a model *writes* with a cache, each
# token is computed once, before the next one exists. **Predict** the perplexities if it reads the texts in this way, still without that
# mask. Then comes our test, in one pass: we exchange all tokens from the 71st on. Do the earlier logits (the scores of the possible next
# tokens) move, with the mask and without it?

# %% id="real-code" tags=["predicted"]
for way in ("masked", "no mask in layer 20", "no mask in layer 20, token by token"):
    print(f"perplexity, {way:36}", record.values("perplexity", way).round(1))
for way in ("masked", "no mask in layer 20"):
    moves = record.values("earlier logits move by", way)
    print(f"earlier logits move by up to, {way:19}", moves.round(1))

# %% [markdown] id="real-answer" tags=["answer"]
# Token by token, the perplexities are those of the masked model. The cache keeps what each token was when it was read, with no later one
# there, so a mask had nothing to hide. In one pass, each token could look at those behind it, and so at the one that it had to guess. The
# improvement was a leak, and the test finds it. With the mask, no earlier logit moves at all.

# %% [markdown] id="real-notice"
# SmolLM2 was *trained* with its mask, however. A model that is trained with a leak learns to look at the answer, and cannot write when
# there is none (lesson {lesson}`transformer`). And a leak need not lower the loss: with no mask left in any layer, SmolLM2's perplexity
# *rises* in three of the four texts.

# %% [markdown] id="own"
# ## Your own leak test
#
# With your function you can test any layer of PyTorch. Its function for attention and its module both take a boolean mask. What does True
# mean in each? Instead of looking it up, we give both the same mask, True on and below the diagonal:

# %% id="own-code"
import torch
from torch.nn.functional import scaled_dot_product_attention


@torch.no_grad()
def tried(layer, x):  # row i, column j: how far output i moves with token j
    step = torch.linspace(-1, 2, x.shape[1])  # each feature in its own way
    moved = [layer(x + at[:, None] * step).numpy() for at in torch.eye(len(x))]
    return influence(layer(x).numpy(), np.array(moved))


# %% id="own-run"
x = torch.tensor(np.random.default_rng(0).normal(size=(6, 8))).float()
lower = torch.ones(6, 6).tril().bool()
module = torch.nn.MultiheadAttention(8, num_heads=2).eval()  # eval: without dropout
layers = {
    "function": lambda x: scaled_dot_product_attention(x, x, x, attn_mask=lower),
    "module": lambda x: module(x, x, x, attn_mask=lower)[0],
    "nothing but NaN": lambda x: x * np.nan,
}
for name, layer in layers.items():
    leaks = np.triu(tried(layer, x) > 0, 1).sum()
    print(f"{name:15}: leaks at {leaks:2} of 15 pairs with j > i")

# %% [markdown] id="own-notice"
# So in the function True means *may look*, and in the module it means *hide*. No error tells you, and a much read repository had its mask
# [the wrong way round](https://github.com/rasbt/LLMs-from-scratch/issues/1061) until 2026. But the third line is a surprise, since our
# test passes a layer that returns nothing but NaN. Every comparison with NaN is false except `!=`, so we repair the test:

# %% id="own-repaired"
for name, layer in layers.items():
    leaks = np.triu(tried(layer, x) != 0, 1).sum()
    print(f"{name:15}: leaks at {leaks:2} of 15 pairs with j > i")
print("last row of the module:", tried(layers["module"], x)[-1])

# %% [markdown] id="own-limits"
# The module gives NaN as well, in its last row, where it hides every key. Run the repaired test on every layer that you write, after
# `layer.eval()`, because dropout looks like a leak. It tries one input only, and a leak may open at larger scores (section
# {section}`fills`).

# %% id="verify-lesson"
verify_lesson("masking")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | strike out and divide, {eq}`masking-renormalises-weights` | {key}`masking-renormalises-weights` |
# | masked attention, {eq}`masked-attention` | {key}`masked-attention` |
# | later text changes nothing, {eq}`causal-prefix-invariance` | {key}`causal-prefix-invariance` |
# | no leak, {eq}`causal-mask-hides-future` | {key}`causal-mask-hides-future` |

# %% [markdown] id="summary"
# ## Summary
#
# - Adding $-\infty$ to a score before the softmax removes the key, and the other weights are divided by their sum.
# - Under a causal mask, what comes later changes nothing. So a text can be learned in one pass, and written with a cache.
# - Several masks combine by "and". A row that sees nothing is defined to be 0.
#
# Have we improved SmolLM2? No: without the mask it read what it had to guess, and read token by token it is the model it was. A leak can look
# like progress or like harm. To find it, move one token and look which outputs move.
#
# Next, lesson {lesson}`heads` lets a layer look at several things at once. First come the
# [exercises](../work/ex_{lesson}`masking`_masking.ipynb).

# %% [markdown] id="fills"
# ## Deeper: what does a large number hide?
#
# Add $\ln a_j$ with $a_j > 0$ to score $j$. As $e^{s_j + \ln a_j} = a_j\, e^{s_j}$, the key's term is multiplied by $a_j$:
#
# $$\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}} \label{score-bias-is-factor}$$
#
# A mask is the limit in which the factors of the hidden keys go to 0 and the others stay 1:
#
# $$\lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j = \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}
# \label{minus-infinity-removes-key}$$
#
# A fill of $-c$ stops short of it, at $a = e^{-c}$. With $r$ for the ratio of hidden to visible terms, all hidden keys together keep
#
# $$\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = \frac{r}{r + e^{c}},
#  \qquad
#  r = \frac{\sum_{j \notin A} e^{s_j}}{\sum_{j \in A} e^{s_j}} \label{finite-fill-leaks}$$
#
# where $\mathbf{1}_{\bar{A}}$ is 1 at hidden keys, else 0. With $c = 10^4$ and moderate scores this underflows to 0, and the leak test
# passes. But $r$ has no bound: a hidden score may be larger than all visible ones by $c$.

# %% [markdown] id="fills-predict"
# And fills add up. In a row where everything is hidden, one mask hides the first key, and two masks hide each of the others. Every mask
# adds $-10^9$ to the scores 0, 1 and 2. Which key gets the weight?

# %% id="fills-code"
scores = np.array([0, 1, 2]) - 1e9 * np.array([1, 2, 2])
print("hidden once, twice, twice:", softmax(scores))
half = np.array([2, 1, 0], np.float16) + np.float16(-1e4)
print("-1e4 added in 16 bits:    ", softmax(half.astype(float)).round(3))

# %% [markdown] id="fills-answer"
# The key that is hidden only once gets everything, as it leads the others by $10^9$. In 16 bits, numbers near $10^4$ are 8 apart, so the
# scores vanish beside the fill, and all weights are equal. What a finite fill does to such a row depends on the code and on the type of
# its numbers.

# %% [markdown] id="own-gradients"
# Gradients can ask what the leak test asks: `torch.autograd.functional.jacobian` gives $\partial z_i / \partial x_j$ for all pairs. Do
# not shorten this to `output[i].sum().backward()`. Behind a plain layer norm the sum of a row is constant, so every gradient is 0, and
# every leak passes. (The package has the test as `leak_matrix` for functions of arrays, and as `leaks` for modules.)

# %% [markdown] id="axis"
# ## Deeper: which triangle, and which axis?
#
# "Strictly lower triangular", says one text of what a causal mask hides; "upper", says another. Both can be right. (A third adds the mask
# "to the input embeddings", but an embedding belongs to one position and has no pairs.) If tokens are the *columns* of the matrices, the
# scores are $K Q^\top$ in our letters, and everything is transposed, the axis of the softmax too:
#
# $$Z = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V
#  = \Bigl( V^\top\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{K Q^\top}{\sqrt{d_k}} + M^\top\Bigr) \Bigr)^{\!\top}
# \label{masked-attention-in-columns}$$
#
# What never changes: $-\infty$ stands where the *key* is later, and the softmax runs over the *keys*. If it runs over the queries, the
# weight $\tilde{p}_{ij}$ competes with those of the queries $r \ge j$, later ones among them:
#
# $$\tilde{p}_{ij} = \frac{[\,i \ge j\,]\,e^{s_{ij}}}{\sum_{r \ge j} e^{s_{rj}}}, \qquad
#  \frac{\partial \tilde{p}_{ij}}{\partial s_{lj}} = -\tilde{p}_{ij}\, \tilde{p}_{lj} \quad (l \ne i)
# \label{softmax-over-queries-leaks}$$

# %% [markdown] id="axis-predict"
# That is the last map of section {section}`leak`. **Predict** which of these four equal masked attention, and which of the others leak.

# %% id="axis-code" tags=["predicted"]
rng = np.random.default_rng(7)
query, key, value = rng.normal(size=(3, 7, 4))
hidden = np.where(mask, 0.0, -np.inf)
s = query @ key.T / 2
masked = softmax(s + hidden) @ value
for name, weights in {
    "Q K^T, upper, over keys": softmax(s + hidden, axis=1),
    "K Q^T, lower, over keys": softmax(s.T + hidden.T, axis=0).T,
    "Q K^T, upper, over queries": softmax(s + hidden, axis=0),
    "Q K^T read as columns = queries": softmax(s + hidden.T, axis=0).T,
}.items():
    equal = np.allclose(weights @ value, masked)
    print(f"{name:32} {equal!s:6} row 6 sums to {weights[6].sum():.2f}")

# %% [markdown] id="axis-answer" tags=["answer"]
# The first two are equal, and the third leaks. In the last the keys ask: its rows sum to 1, it shows nothing later, and so it passes
# every leak test. Only a comparison with a loop, or a test with $T_q \ne T_k$, finds that queries and keys have changed places.

# %% [markdown] id="lost"
# ## Deeper: what if a mask hides too much?
#
# It leaks nothing, so the leak test is content. A common case: a model that writes has the keys of $p$ earlier tokens in its cache, and a
# few new queries come. Counted from 0, query $i$ stands at position $i + p$:
#
# $$A_i = \{\, j : j \le i + p \,\}, \qquad M_{ij} = -\infty \iff j > i + p \label{causal-mask}$$
#
# The last query stands at the last key, $(T_q - 1) + p = T_k - 1$, so
#
# $$p = T_k - T_q \label{bottom-right-offset}$$
#
# PyTorch's `is_causal=True` takes $p = 0$. What does the new query see then?

# %% id="lost-code"
one = [torch.tensor(part)[None] for part in (query[6:], key, value)]
flagged = scaled_dot_product_attention(*one, is_causal=True)[0, 0]
print("is the oldest value: ", np.allclose(flagged, value[0]))
print("is the last output:  ", np.allclose(flagged, masked[6]))

# %% [markdown] id="lost-notice"
# It sees the oldest key only. So look at the lower half of your map, too: every earlier token should count there.

# %% [markdown] id="window"
# A window hides the past on purpose, to save work. Query $i$ sees $i + p + 1$ keys under a causal mask ($p \ge -1$), at most $w + 1$ in a
# window (summed for $p = 0$, $w < T$):
#
# $$\sum_{i=0}^{T_q - 1} |A_i| = T_q\,p + \frac{T_q\,(T_q + 1)}{2} \label{causal-pair-count}$$
#
# $$\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1) - \frac{w\,(w + 1)}{2} \label{window-pair-count}$$
#
# So for a long text with $p = 0$, skipping what is hidden saves nearly half of the work under a causal mask, and most of it in a narrow
# window. (One query with a cache sees all keys, so the causal mask saves it nothing.) Is a token further back than $w$ lost? Let $B_w$ be
# the window as a matrix of zeros and ones. Its power counts paths of $L$ steps, one for each layer:
#
# $$\bigl[\,((B_w)^{L})_{ij} > 0\,\bigr] = (B_{L \cdot w})_{ij}, \qquad (B_w)_{ij} = [\,i - w \le j \le i\,]
# \label{reach-of-stacked-windows}$$

# %% [markdown] id="reach-predict"
# How many layers does the last of 13 tokens need to hear of the first, with $w = 2$?

# %% id="reach-code"
band = np.tri(13, dtype=int) - np.tri(13, k=-3, dtype=int)
for layers in range(4, 8):
    paths = np.linalg.matrix_power(band, layers)[12, 0]
    print(f"{layers} layers: {paths} paths from the first token to the last")

# %% [markdown] id="reach-answer"
# It needs six layers, as each reaches two further back. There is one path only, so little may get through.

# %% [markdown] id="break"
# Last, a game. This machine has a twin whose mask comes after the softmax. Find the smallest input that shows it, and the lamp that
# proves it. One more level follows, with a large number for $-\infty$.

# %% id="break-card"
from attn_course.game.card import break_the_machine

break_the_machine("mask-after-softmax")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.3, masking inside attention.
# - I. Beltagy, M. Peters and A. Cohan (2020), [arXiv:2004.05150](https://arxiv.org/abs/2004.05150): windows, and how far a stack of them sees.
# - J. Dong et al. (2024), [arXiv:2412.05496](https://arxiv.org/abs/2412.05496): FlexAttention, masks as small functions, and kernels that skip what
#   they hide.
# - PyTorch, issues [#41508](https://github.com/pytorch/pytorch/issues/41508): NaN from rows that see nothing;
#   [#108108](https://github.com/pytorch/pytorch/issues/108108): where the triangle of `is_causal` lies.
# - LLMs-from-scratch, issue [#1061](https://github.com/rasbt/LLMs-from-scratch/issues/1061): a mask of the wrong polarity.
