# %% [markdown] id="title"
# # {lesson}`induction` How a model copies
#
# A trained model meets a name that somebody has just made up. When it begins a second time, the model completes it. **How does a
# model copy what it read before, and where in it does this happen?** You will build the trick by hand, watch it arrive in a small
# model, then find it in a real one and switch it off, with tools of your own.
#
# **You need** lessons {lesson}`heads`, {lesson}`absorption` and {lesson}`transformer`. **Time:** 60 minutes, without *Deeper* sections
# and the [exercises](../work/ex_{lesson}`induction`_induction.ipynb).

# %% [markdown] id="name"
# ## A name that nobody knows
#
# `model` is SmolLM2 (lesson {lesson}`start`), with 30 layers of nine heads:

# %% id="name-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="name-code"
begun = "Our new teacher is called Brumela Quistok. Everybody likes Brumela"
for text in (begun, "Our new teacher has come. Everybody likes Brumela"):
    for token, chance in model.next_tokens(text, 1).items():
        print(f"{chance:.2f} for {token!r} after: {text}")

# %% [markdown] id="name-answer"
# *Qu* begins *Quistok*. The model can hardly know the name from training: it read it once, a few words ago. Without it, the model expects
# a full stop.
#
# **Bet:** how few of its 270 heads must we silence until *Qu* no longer comes first?

# %% [markdown] id="rule"
# ## Match, then copy
#
# This rule copies: **find a place right after an earlier occurrence of the word you stand at, and say the word that is there.**
# At the end of *the cat sat because the* it finds place 2, and says *cat*.
#
# Let row $i$ of $X$ be one-hot: 1.0 at the number $t_i$ of word $i$, else 0.0. The dot product of two rows is 1 for equal words, else 0.
# The rule compares word $i$ with the word *before* place $j$. So let $S$ move all rows one place down (row 1 becomes zero). Then for
# $j \ge 2$
#
# $$\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,] \key{match-of-word-before}$$
#
# The bracket is 1 if this holds, else 0. Before the scale, a causal head with queries $X$ and keys $SX$
# has these scores where $j \le i$. They arise here:

# %% id="machine"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.lessons.induction import figures

figures.machine()

# %% [markdown] id="rule-turn"
# **Your turn.** {turn}`scores-of-matching-head`

# %% id="rule-turn-code" tags=["your-turn"]
my_match = ...  # your function
check("scores-of-matching-head", my_match)

# %% [markdown] id="rule-ours" tags=["ours"]
# ```python
# def my_match(x):
#     before = np.eye(len(x), k=-1) @ x
#     return np.tril(x @ before.T)
# ```

# %% [markdown] id="rule-predict"
# The head takes a causal softmax of 20 times these scores, so that matches, if there are any, share nearly all of the weight, and mixes
# the words:

# %% id="rule-code"
from attn_course.lessons.induction import tasks_turns as ours

match = ours.my_match.answer if my_match is ... else my_match
names = ["because", "cat", "sat", "the"]
text = ["the", "cat", "sat", "because", "the"]
x = np.eye(4)[[names.index(word) for word in text]]
powers = np.tril(np.exp(20 * match(x)))
weights = powers / powers.sum(-1, keepdims=True)
print("shares of", names)
for place in (4, 3):
    print(f"at place {place + 1}, {text[place]}:", (weights[place] @ x).round(2))

# %% [markdown] id="rule-answer"
# The second *the* gets *cat*. *Because* has not occurred before: all its scores are 0, and it mixes its four places equally.

# %% [markdown] id="layers"
# ## It takes two layers
#
# Can a head of the first layer follow this rule? Its key at place $j$ is made from word $j$ and its place alone. If we exchange word
# $j - 1$, the bracket in {eq}`match-of-word-before` can change, but the score of place $j$ stays the same for every place $i$ from $j$
# on. So these cannot be the scores of this head. A head could have them if an earlier one had written word $j - 1$ into place $j$:

# %% id="layers-figure"
figures.circuit(["the", "cat", "sat", "because", "the"], found=1)

# %% [markdown] id="layers-derive"
# Let that first head have the weights $P$. With $U = W_V W_O$ it adds $P X U$ to the
# stream (lesson {lesson}`heads`): $X_1 = X + P X U$.
#
# A head of the second layer has the scores $X_1 W X_1^\top$, with $W = W_Q W_K^\top$ (lesson {lesson}`absorption`). Here we leave out the
# scale, norms, hidden units and all other heads, and positions enter only through $P$. Query and key are sums of two, so the scores are a
# sum of four:
#
# $$X_1\, W X_1^\top = X\, W X^\top + X\, W\, (P X U)^\top + P X U\, W X^\top + P X U\, W\, (P X U)^\top \label{scores-of-second-layer}$$

# %% [markdown] id="layers-predict"
# Which of the four finds *cat*? We build both heads: a row of the stream has four columns for the word and four for the note. $U$
# moves a word into the note, and $W$ compares the word of a query with the note of a key. **Predict** whether the last *the*
# finds *cat* with $X_1$ on both sides, then if only the query, and then if only the keys, read $X$ instead.

# %% id="layers-code" tags=["predicted"]
zero, one = np.zeros((4, 4)), np.eye(4)
X = np.hstack([x, 0 * x])  # (5, 8): a word, and room for a note
P = np.eye(5, k=-1)  # each place looks one back
P[0, 0] = 1  # the first can only look at itself
U = W = np.block([[zero, one], [zero, zero]])
X1 = X + P @ X @ U  # (5, 8): a word, and the word before it
sides = {"both read X1": (X1, X1), "query reads X": (X, X1), "keys read X": (X1, X)}
for name, (query, keys) in sides.items():
    scores = query @ W @ keys.T
    print(f"{name:13} {scores[-1]}")

# %% [markdown] id="layers-answer" tags=["answer"]
# Without the notes in the *keys* nothing is found; the query needs none. So the second term does all the work. The score at place 1 is 1,
# too: nothing stands before it, so the first head notes its own word there, which is also *the*.

# %% [markdown] id="layers-key"
# In the second term the key reads the note. With $x_l$ for row $l$ of $X$, row $j$ of $PXU$ is $\sum_l P_{jl}\, x_l U$, so
#
# $$\bigl( X\, W\, (P X U)^\top \bigr)_{ij} = \sum_{l=1}^{T} P_{jl}\; x_i\, W U^\top x_l^\top \key{score-through-earlier-head}$$
#
# If the first head looks one back, as its positions allow (lesson {lesson}`self_attention`), then for $j \ge 2$ only
# $x_i\, W U^\top x_{j-1}^\top$ is left. With our $U$ and $W$ this is {eq}`match-of-word-before`. Elhage et al. (2021) call it
# **K-composition**: the first head speaks through the keys of the second.

# %% [markdown] id="score"
# ## A number for it
#
# To find such heads we let a model read $n$ different random words, and the same $n$ words again. At word $i$ of the second round, which is
# place $n + i$, a head that follows the rule looks at place $i + 1$. The **induction score** of a head is its mean weight there:
#
# $$s = \frac{1}{n} \sum_{i=1}^{n} P_{n+i,\; i+1} \key{induction-score}$$
#
# where $P$ are now the weights of this head. Olsson et al. (2022) call a head an *induction head* if it looks there and also raises the
# chance of the word it finds.

# %% [markdown] id="score-turn"
# **Your turn.** {turn}`induction-score-of-maps`

# %% id="score-turn-code" tags=["your-turn"]
my_score = ...  # your function
check("induction-score-of-maps", my_score)

# %% [markdown] id="score-ours" tags=["ours"]
# ```python
# def my_score(maps):
#     n = maps.shape[-1] // 2
#     return maps[..., np.arange(n, 2 * n), np.arange(1, n + 1)].mean(-1)
# ```

# %% [markdown] id="arrive"
# ## Watch it arrive
#
# Does training find it? Our model has two layers of four heads, like those of lesson {lesson}`transformer` but without hidden
# units, and with keys and values for each head. It knows 32 words. A training text repeats a piece of random words until it has 48. The
# length of the piece, 8 to 24, is drawn for each text, so to look a fixed number of places back helps little.
#
# A test text is 16 different words, twice. We measure how many of the last 15 are right (the first word of the second round cannot be
# known), each first-layer head's mean weight on the word before, and the induction scores of the second layer:

# %% id="arrive-measure"
import torch

from attn_course.lessons.induction import experiments as lab

score = ours.my_score.answer if my_score is ... else my_score


@torch.no_grad()
def tested(model):
    maps = []  # takes the weights of each layer
    said = model(test, maps=maps).argmax(-1)
    first, second = (weights.mean(0).numpy() for weights in maps)  # over the texts
    right = (said[:, 16:-1] == test[:, 17:]).float().mean()
    back = np.diagonal(first, -1, 1, 2).mean(-1)  # row i, column i - 1
    return float(right), back, np.array(score(second))


# %% [markdown] id="arrive-run"
# Training takes half a minute, and fills a log:

# %% id="arrive-live" tags=["live"]
test = lab.twice(torch.Generator().manual_seed(9))  # 200 texts of 32 words
draws = torch.Generator().manual_seed(0)
copier = lab.Copier(generator=draws)
optimiser = torch.optim.AdamW(copier.parameters(), lr=0.01)
log = []
for step in range(301):
    if step % 10 == 0:
        right, back, scores = tested(copier)
        log.append((step, right, back.max(), scores.max()))
    optimiser.zero_grad()
    lab.loss_of(copier, lab.repeating(draws)).backward()
    optimiser.step()

# %% [markdown] id="arrive-predict"
# The second head needs the notes of the first. **Predict** which rises first in your log: the largest weight on
# the word before, the largest score, or the share of right words.

# %% id="arrive-figure" tags=["predicted"]
from attn_course.lessons.induction.experiments_maps import MAPS

copies, runs = lab.COPIER.load(), MAPS.load()  # stored runs, three draws of each
one_layer = copies.values("one layer", "copied")[:, -1]
figures.arrival(log, runs.results[0], one_layer.max())

# %% [markdown] id="arrive-notice" tags=["answer"]
# In the first 80 steps copying and the score creep to about 0.15, little more than one layer alone reaches (dotted: the best of three,
# after 600 steps). Then, from step 150, all three rise together, within 50 steps. The weight on the word before passes one half together
# with copying, five to ten steps before the score. Two other draws do the same, one of them 100 steps later.
#
# The maps show where two heads look in the end. On the right, a word of the second round looks 15 places back, right behind its
# first occurrence: in this stripe lie the 16 entries of {eq}`induction-score`.

# %% [markdown] id="cause"
# ## Is it the cause?
#
# What comes together may have a common cause. So we silence heads of your model. The output of a head meets only its own rows of
# $W_O$, {eq}`output-projection-sums-heads`. If these are zeros, nothing that the head found enters the stream.

# %% [markdown] id="cause-turn"
# **Your turn.** {turn}`output-without-a-head`

# %% id="cause-turn-code" tags=["your-turn"]
my_without = ...  # your function
check("output-without-a-head", my_without)

# %% [markdown] id="cause-ours" tags=["ours"]
# ```python
# def my_without(w_output, silent, n_heads):
#     without, d_v = w_output.copy(), len(w_output) // n_heads
#     without[silent * d_v : (silent + 1) * d_v] = 0
#     return without
# ```

# %% [markdown] id="cause-tool"
# The rest of the tool writes your matrix into the model, and puts the old one back afterwards:

# %% id="cause-tool-code"
from contextlib import contextmanager

without = ours.my_without.answer if my_without is ... else my_without


@contextmanager
def silenced(outputs, layer, head, n_heads):  # outputs: the W_O of each layer
    kept = outputs[layer].copy()
    outputs[layer][:] = without(kept, head, n_heads)
    try:
        yield  # here the block under `with` runs
    finally:
        outputs[layer][:] = kept


# %% [markdown] id="cause-bet"
# Back to your model:

# %% id="cause-maps" tags=["live"]
_, back, scores = tested(copier)
print("first layer, one back:", back.round(2))
print("second layer, score:  ", scores.round(2))

# %% [markdown] id="cause-choose"
# Write down which head of each layer copying needs most, and what share of the words stays right without it. The cell tries all eight:

# %% id="cause-own" tags=["live"]
# these arrays share the model's memory
outputs = [matrices[3].detach().numpy() for matrices in copier.layers]
for layer in (0, 1):
    for head in range(4):
        with silenced(outputs, layer, head, n_heads=4):
            right, *_ = tested(copier)
        print(f"without layer {layer}, head {head}: right {right:.2f}")

# %% [markdown] id="cause-own-answer"
# In our run 15 % stay right without the one head that looks back, and at least 86 % without any other. In the second layer three heads have
# scores above 0.75, and none is needed as much.

# %% [markdown] id="cause-roles"
# ## Through the keys
#
# By hand, everything went through the keys. And in a trained model? In our three draws, the second layer reads $X$ instead of $X_1$:
# first with its queries alone, then its keys, then its values. **Predict** what becomes of the largest score and of the copying.

# %% id="cause-predict" tags=["predicted"]
found, right = (runs.values("way", name)[:, -1] for name in ("induction", "copied"))
print(f"as it is:      score {found.round(2)}, right {right.round(2)}")  # three draws
for role in ("query", "key", "value"):
    found = runs.values("word only", role, "induction").round(2)
    right = runs.values("word only", role, "copied").round(2)
    print(f"{role:5} reads X: score {found}, right {right}")

# %% [markdown] id="cause-answer" tags=["answer"]
# If its keys read $X$, the second layer has no induction head left, and copies hardly better than a single layer. Values do not tell a head
# where to look, and need only their own word. So training has found K-composition by itself.
#
# If the queries read $X$, the largest score even rises. This is due to the norm, which divides $X$ by a smaller number than $X_1$: with
# the number of $X_1$, the largest scores are 0.89, 0.87 and 0.60, but at most 0.08 if the keys read $X$ so. So the queries need the
# notes little or not at all.

# %% [markdown] id="real"
# ## In a real model
#
# We let SmolLM2 read 16 English words twice. A *hook* is a function that a model calls with what passes at a place in it. Ours collect
# the weights of each layer. Your function scores the heads:

# %% id="real-words" tags=["hide-input"]
words = " lamp river seven stone green paper cloud horse"
words += " early music table north glass bread story wheel"

# %% id="real-find" tags=["live"]
from attn_course.modules import hooked

if model.is_here:
    maps = []  # of each layer, (9, 32, 32)
    hooks = {f"blocks.{layer}.attention.weights": maps.append for layer in range(30)}
    with torch.no_grad(), hooked(model.network, hooks):
        model.network(model.ids(words + words))
    scores = np.stack([score(weights.numpy()) for weights in maps])

# %% id="real-print" tags=["live", "hide-input"]
if model.is_here:
    for number in np.argsort(-scores, axis=None)[:8]:
        layer, head = divmod(int(number), 9)
        print(f"layer {layer}, head {head}: {scores[layer, head]:.2f}")

# %% [markdown] id="real-notice"
# The eight heads with the largest scores sit in layers 17 to 23. The ninth has 0.36 like the eighth: to cut at eight is our choice.
# With 50 random tokens, read twice, the same eight lead in each of six draws.
#
# In these draws the model is right on 63 to 84 % of the last 49 tokens. **Predict** what is left without the eight,
# and without head 0 of layer 16, which looks one token back; each has a control.

# %% id="real-silence" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING

measured, control = COPYING.load(), "three others that look one back"
right = {
    "the eight": measured.values("silenced", "eight"),
    "eight others": measured.values("others of these layers", "eight", "mean"),
    "head 0 of layer 16": measured.values("silenced", "head 0 of layer 16"),
    control: measured.values("silenced", control),
}
for name, shares in right.items():
    print(f"without {name:31} {shares.min():.2f} to {shares.max():.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Without the eight, no token is copied; without eight others of their layers, at least 48 % are, on average of three sets. Without head 0
# of layer 16, at most 12 % are; without three others that look one back, in earlier layers, at least 49 %. So here copying hangs on this
# one head, and on the eight together. Whether each of the eight is needed, this does not show.

# %% [markdown] id="last"
# ## Switch it off
#
# Back to Brumela and your bet. Here is what the model expects without each of the nine heads of a layer, one at a time:

# %% id="last-code" tags=["live"]
from itertools import product

layers = [17]  # three of the eight sit here; range(30), 0 to 29, takes a minute
first, second = "Brumela", "Quistok"
begun = f"Our new teacher is called {first} {second}. Everybody likes {first}"

if model.is_here:
    begins = model.tokenizer.decode([int(model.ids(" " + second)[0])])
    blocks = model.network.blocks
    outputs = [block.attention.w_output.detach().numpy() for block in blocks]
    for layer, head in product(layers, range(9)):
        with silenced(outputs, layer, head, n_heads=9), torch.no_grad():
            chances = model.network(model.ids(begun), last=True)[0].softmax(-1)
        token = model.tokenizer.decode([int(chances.argmax())])
        if token != begins or len(layers) == 1:
            print(f"without head {(layer, head)}: {chances.max():.2f} for {token!r}")

# %% [markdown] id="last-all"
# We searched all 30 layers for this name and for five others. **Predict** how many of the 270 heads make
# the model forget *Quistok* when one alone is silent, and how many of these are among the eight.

# %% id="last-names" tags=["predicted"]
from attn_course.lessons.induction.experiments_late import HEADS_OF_NAME
from attn_course.lessons.induction.experiments_names import NAMED

for found in NAMED.load().results:
    print(f"{found['name']:15} is forgotten without", *found["forgets without"])
figures.missed(HEADS_OF_NAME.load().results[0])  # a point for each head

# %% [markdown] id="last-notice" tags=["answer"]
# One head is enough. For five of the six names, head 0 of layer 16 is such a head. None of the eight is in any list, but without all eight
# together the model forgets every one of these names.
#
# The surprise is head 2 of layer 28. At the end of Brumela's text it gives nearly half of its weight to *Qu*, but our score misses it: on
# the random tokens of section {section}`real` it hardly looks where the rule looks, and they are copied nearly as well without it. A
# score from one kind of text need not find every head that copying needs in another.

# %% [markdown] id="recipe"
# Now invent a name, put it into the cell above with `range(30)`, and see which heads it needs. (Some names the model does not
# complete even with all heads. Then nearly every head is printed.)

# %% [markdown] id="limits"
# **Limits.** All six names stand in the same sentence. Silencing a head takes away *all* that it does. Olsson et al. (2022) argue that much
# of what a model learns from its context is the work of such heads; for large models their evidence is correlational.

# %% [markdown] id="recipe-own"
# Your `score` and `silenced` need nothing of this course. Here a layer of PyTorch becomes our second head:

# %% id="recipe-code"
layer = torch.nn.MultiheadAttention(32, 1, bias=False)  # one head
outputs = [layer.out_proj.weight.detach().numpy().T]  # stored transposed
word = torch.eye(16).repeat(2, 1)  # 16 words, twice
note = torch.vstack([torch.zeros(1, 16), word[:-1]])  # the word before
x = torch.hstack([word, note])  # (32, 32)
later = torch.ones(32, 32).triu(1).bool()  # no place sees these
with torch.no_grad():
    w_query, w_key, _ = layer.in_proj_weight.chunk(3)  # one upon the other
    w_query[:] = 100 * (torch.arange(32) < 16).diag()  # the word alone
    w_key[:] = torch.eye(32).roll(16, 1)  # the note, then the word
    _, weights = layer(x, x, x, attn_mask=later)
    with silenced(outputs, 0, 0, n_heads=1):
        added, _ = layer(x, x, x, attn_mask=later)
print(f"score {score(weights.numpy()):.2f}, silent it adds {added.abs().max():.2f}")

# %% id="verify-lesson"
verify_lesson("induction")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | the rule, {eq}`match-of-word-before` | {key}`match-of-word-before` | $SX$: the word before; $j \ge 2$ |
# | through the keys, {eq}`score-through-earlier-head` | {key}`score-through-earlier-head` | $U = W_V W_O$ of the first head |
# | the score, {eq}`induction-score` | {key}`induction-score` | $n$ words, twice |

# %% [markdown] id="summary"
# ## Summary
#
# - To copy is to find a place right after an earlier occurrence of the word you stand at, and to say the word that is there.
# - A head of the first layer cannot give such scores: its key does not know the word before. But it can write this word into the place, and a later head reads
#   it with its keys.
#
# So our small model copies with two kinds of heads in a row, which arrive together. In SmolLM2 the copying of random tokens hangs on such
# heads: one in layer 16 that looks one token back, and eight in layers 17 to 23 together. A made-up name may need yet another head. That
# later heads read with their keys was tested in the small model only. Now the
# [exercises](../work/ex_{lesson}`induction`_induction.ipynb).

# %% [markdown] id="every-head"
# ## Deeper: see every head
#
# Here are all heads of SmolLM2 on a short text in which *red* comes twice. The viewer opens at the second *red* and the word that
# followed the first. Press `B` in it to go through the heads, those with the most weight on this pair first. How many of the first seven
# are among the eight? Then press `V`, which shades by what is brought. Many heads give nearly all of their weight to the first word: what
# does it bring?

# %% id="every-head-code"
from attn_course import attention_viewer
from attn_course.language.maps import smollm2_maps

red = smollm2_maps("The red fox saw a bird. The red fox")
attention_viewer(**red, layer=18, head=6, query=8)

# %% [markdown] id="every-head-answer"
# <details><summary>What you should see</summary>
#
# Six of the first seven are. The first word brings little, because its values are short there: to look at it is a way to look
# nowhere. (Lesson {lesson}`softmax` says why a head cannot do without.)
#
# </details>

# %% [markdown] id="lens"
# ## Deeper: reading the stream on its way
#
# The eight heads sit in layers 17 to 23, but the model speaks behind layer 29. At each place the stream is a sum of parts $z_l$: the
# token itself, $z_0$, and what each of $L$ layers added, its hidden units included. The last norm divides this sum by a number $r$, the
# root of its mean square, so the *logits*, the scores of all tokens, are a sum, too:
#
# $$\mathrm{logits}(X_L) = \frac{1}{r} \sum_{l=0}^{L} z_l\, \mathrm{diag}(g)\, E^\top \label{logits-by-part}$$
#
# with the last gain $g$, the table $E$, and $\varepsilon = 0$. If we stop the sum early, and read $X_l$, with its own $r$, as if it were
# the last, we have the *logit lens* (nostalgebraist, 2020).

# %% [markdown] id="lens-predict"
# For 50 random tokens, read twice, we ask which rank the right one has among all 49,152: the median of the second round, in six draws. By
# chance it would be about 24,577. **Predict** in which layers it moves to the front, and what happens when the eight heads are silenced.

# %% id="lens-figure" tags=["predicted"]
from attn_course.lessons.induction.experiments_smollm2 import LENS

seen = LENS.load()
ranks = {name: seen.values("rank", name) for name in seen.results[0]["rank"]}
print("behind 0, 3, 6, ... 30 layers")
for name, found in ranks.items():
    print(f"{name:20}", np.median(found, axis=0)[::3].round().astype(int))
figures.depths(ranks)

# %% [markdown] id="lens-answer" tags=["answer"]
# Layer 0 brings the right token from rank 34,000 to rank 17,000. Then it stays between 13,000 and 17,000 up to layer 17, though three of
# the eight heads sit in layer 17. Layer 18 lifts it to about 10,000, and layer 23 from about 6,000 to 800, each with all its heads and
# hidden units. The last layers bring it to rank 1. Without the eight the median stays behind rank 9,000, and without eight others it
# moves nearly as before. This fits a word that enters the stream with these heads, in a form that the table reads badly until layer 23.
# The lens tells where a word can be *read*, and not where it was found.

# %% [markdown] id="who"
# ## Deeper: who says the next word?
#
# By {eq}`logits-by-part`, every part of the stream has a share in each score, with $r$ held fixed. Here is the formula with numbers that
# you can change:

# %% id="who-alive"
from attn_course import alive

alive("logits-by-part")

# %% [markdown] id="who-predict"
# The storytellers of lesson {lesson}`transformer` read 1000 stories up to the helper's name, as in *Eva has a red cup . she breaks the
# cup . Tom*. The next word is one of four deeds, in this example *mends*. For each part the cell prints how far it puts the right deed
# ahead of the mean of the other three, and how often the right one still wins when this part alone adds nothing. Guessing would be right
# in a quarter.

# %% id="who-code"
from attn_course.lessons.induction.experiments_parts import PARTS, SHARES

measured = SHARES.load()
print("as it is: right", measured.values("deed", "right"))
for part in PARTS:
    ahead = measured.values("deed", "shares", part)
    right = measured.values("deed", "right without", part)
    print(f"{part:15} ahead by {ahead}, without it right {right}")

# %% [markdown] id="who-notice"
# The last hidden units have by far the largest share, and without them the right deed still wins in 78 to 100 % of the stories. The
# first attention has the smallest share in all three models, and without it 28 to 41 % are right. A share tells what a part says itself. To
# learn whether it is needed, we have to silence it.

# %% [markdown] id="sources"
# ## Sources
#
# - N. Elhage et al. (2021), [A Mathematical Framework for Transformer Circuits](https://transformer-circuits.pub/2021/framework/index.html): two
#   layers of attention alone, composition, induction heads.
# - C. Olsson et al. (2022), [arXiv:2209.11895](https://arxiv.org/abs/2209.11895): induction heads arrive suddenly, and what they may explain.
# - nostalgebraist (2020), [interpreting GPT: the logit lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
