# %% [markdown] id="title"
# # {lesson}`induction` How a model copies
#
# A trained model meets a name that somebody has just made up. The second time it begins, the model goes on with it. **How does a trained
# model copy what it read before, and where in it does this happen?** You will build the trick by hand, watch it arrive while a small model
# trains, then find it in a real model and switch it off.
#
# **You need** lessons {lesson}`heads`, {lesson}`absorption` and {lesson}`transformer`. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`induction`_induction.ipynb).

# %% [markdown] id="name"
# ## A name that nobody knows

# %% id="name-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="name-code"
begun = "Our new teacher is called Brumela Quistok. Everybody likes Brumela"
for text in (begun, "Our new teacher has come. Everybody likes Brumela"):
    for token, chance in model.next_tokens(text, 1).items():
        print(f"{chance:.2f} for {token!r} behind: {text}")

# %% [markdown] id="name-answer"
# The token *Qu* begins *Quistok*. No text that the model learned from can have told it that Quistok follows Brumela: it read this once, a few
# words ago. Without that sentence it expects a full stop.

# %% [markdown] id="rule"
# ## Match, then copy
#
# Here is a rule that copies: **look for an earlier place right after the same word, and say the word that stands there.** At
# the end of *the cat sat because the* it looks for a place after an earlier *the*, finds *cat*, and says *cat*.
#
# Let row $i$ of $X$ be a one-hot vector, 1.0 at the number $t_i$ of word $i$ and else 0.0. Two rows have the product 1 if they are the same word,
# and 0 otherwise. The rule compares word $i$ with the word *before* place $j$. So let $S$ move each row one place down: then row $j$ of $SX$ is
# that of word $j - 1$, and for $j \ge 2$
#
# $$\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,] \key{match-of-word-before}$$
#
# The bracket is 1 if the words are the same, and else 0. These are scores, with queries $X$ and keys $SX$.

# %% id="machine"
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
# Now take a causal softmax of 20 times these scores, and the mean of the words with these weights. **Predict** what is said behind the second
# *the*, and behind *because*.


# %% id="rule-code" tags=["predicted"]
import numpy as np


def match_ours(x):
    return np.tril(x @ (np.eye(len(x), k=-1) @ x).T)


match = match_ours if my_match is ... else my_match
names = ["because", "cat", "sat", "the"]
text = ["the", "cat", "sat", "because", "the"]
x = np.eye(4)[[names.index(word) for word in text]]
powers = np.tril(np.exp(20 * match(x)))
weights = powers / powers.sum(-1, keepdims=True)
print("shares of", names)
for place in (4, 3):
    print(f"behind place {place + 1}, {text[place]}:", (weights[place] @ x).round(2))

# %% [markdown] id="rule-answer" tags=["answer"]
# Behind the second *the* it says *cat*, because place 2 is the only one behind a *the*. *Because* has not occurred before, so all
# scores are 0. The weights of its four places are equal, and it says a bit of each word. The rule knows something only where something repeats.

# %% [markdown] id="layers"
# ## It takes two layers
#
# Can a head of the first layer follow this rule? Its key at place $j$ is made from word $j$ alone. If we exchange word $j - 1$, the score of
# $i$ at $j$ stays the same for every later word $i$. So it cannot be $[\, t_i = t_{j-1} \,]$. It could be if an earlier
# head had written word $j - 1$ into place $j$. (Or an earlier head tells place $i$ *where* its word stood before, and this one looks one place
# further. Section {section}`cause` tests which way a model takes.)

# %% id="layers-figure"
figures.circuit(["the", "cat", "sat", "because", "the"], found=1)

# %% [markdown] id="layers-derive"
# How does a head read what another one wrote? Let a head of the first layer have the weights $P$. With $V = W_V W_O$ it adds $P X V$ to the
# stream (lesson {lesson}`heads`):
#
# $$X_1 = X + P X V$$
#
# A head of the second layer has the scores $X_1 W X_1^\top$, with $W = W_Q W_K^\top$ (lesson {lesson}`absorption`). We leave out
# the scale and the norm: the norm's gain goes into the matrices, and all else multiplies a query or a key by a number. We also leave out
# rotary positions, other heads and hidden units. Query and key are sums of two, so the scores are a sum of four:
#
# $$X_1\, W X_1^\top = X\, W X^\top + X\, W\, (P X V)^\top + P X V\, W X^\top + P X V\, W\, (P X V)^\top \label{scores-of-second-layer}$$

# %% [markdown] id="layers-key"
# In the second term the query reads the word itself, and the *key* reads what the first head wrote. Row $j$ of $P X V$ is
# $\sum_l P_{jl}\, x_l V$, so
#
# $$\bigl( X\, W\, (P X V)^\top \bigr)_{ij} = \sum_{l=1}^{T} P_{jl}\; x_i\, W V^\top x_l^\top \key{score-through-earlier-head}$$
#
# Place $j$ is judged by the words at which *it* looked. If the first head looks one back, then $P_{j,\, j-1} = 1$, and only
# $x_i\, W V^\top x_{j-1}^\top$ is left. If $W V^\top$ gives equal words 1 and different ones 0, this is
# {eq}`match-of-word-before`. Elhage et al. (2021) call it **K-composition**: the first head speaks through the keys of the second.

# %% [markdown] id="score"
# ## A number for it
#
# To find such heads we let a model read $n$ different random words, and the same $n$ words again. At word $i$ of the second round, which is
# place $n + i$, a head that follows the rule looks at place $i + 1$. The **induction score** of a head is its mean weight there:
#
# $$s = \frac{1}{n} \sum_{i=1}^{n} P_{n+i,\; i+1} \key{induction-score}$$
#
# where $P$ are now the weights of this head. Olsson et al. (2022) call a head that does this an *induction head*.

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


# %% id="score-code"
def score_ours(maps):
    n = maps.shape[-1] // 2
    return maps[..., np.arange(n, 2 * n), np.arange(1, n + 1)].mean(-1)


score = score_ours if my_score is ... else my_score
x = np.eye(16)[[*range(16)] * 2]  # 16 words, twice
powers = np.tril(np.exp(20 * match(x)))
print(f"the head by hand: {score(powers / powers.sum(-1, keepdims=True)):.2f}")

# %% [markdown] id="arrive"
# ## Watch it arrive
#
# Nobody writes this rule into a model. Does it appear by training? Our model is that of lesson {lesson}`transformer` without hidden units: two
# layers of four heads each. It knows 32 words. Each text repeats a piece of 8 to 24 random words to the length of 48, so it is of little use to
# look a fixed number of places back. The test is 16 different words twice, and we count the second round. This cell trains for 300 steps, in
# less than half a minute. It prints the largest weight on the word before in the first layer, and the largest induction score in the second:

# %% id="arrive-live" tags=["live"]
import torch

from attn_course.lessons.induction import experiments as lab

draws = torch.Generator().manual_seed(0)
copier, test = lab.Copier(generator=draws), lab.twice(torch.Generator().manual_seed(9))
optimiser = torch.optim.AdamW(copier.parameters(), lr=0.01)
for step in range(301):
    if step % 25 == 0:
        maps = []
        right = lab.tested(copier, test, maps=maps)["copied"]  # and fills maps
        first, second = (weights.mean(0).numpy() for weights in maps)
        back, best = np.diagonal(first, -1, 1, 2).mean(-1).max(), score(second).max()
        print(f"{step:3}: right {right:.2f}, one back {back:.2f}, score {best:.2f}")
    optimiser.zero_grad()
    lab.loss_of(copier, lab.repeating(draws)).backward()
    optimiser.step()

# %% [markdown] id="arrive-predict"
# For the record we trained for 600 steps, three draws of two layers and three of a single one. Whoever knows only which 16 words there
# are is right once in 16 times.

# %% id="arrive-figure"
copies = lab.COPIER.load()
for name in ("one layer", "two layers"):
    print(f"{name}: right {copies.values(name, 'copied')[:, -1].round(2)}")
figures.arrival(copies.results[0]["two layers"])

# %% [markdown] id="arrive-notice"
# One layer is right about once in ten times: it knows which words the text holds, and little of their order. Two layers first learn just that,
# too. Then, within 75 steps, copying rises from about a fifth to more than nine tenths, and both weights rise with it, from below 0.2 to above
# 0.7. When this happens depends on the draw: in the one shown from step 150 on, in the third from step 250 on.

# %% [markdown] id="cause"
# ## Is it the cause?
#
# Curves that rise together may have a common cause. So we silence heads of the three trained models: they pass on zeros. Then we count
# again, on new texts. In the first layer we silence the two that look at the word before most; in the second, the three with the largest induction
# scores. The control is to silence those that are left in the same layer.

# %% id="cause-code"
print(f"{'as it is':35}", copies.values("copied").round(2))
for name in copies.results[0]["silenced"]:
    print(f"{name:35}", copies.values("silenced", name).round(2))

# %% [markdown] id="cause-notice"
# Both kinds are needed: without either at most about a fifth of the words is copied, and without the heads that are left, nearly all.
# (Three against one is no even control, but with two against two, one of the control's heads would be an induction head.)
#
# Now we test the derivation. We let the queries of the second layer read the words $X$ alone, without what the first layer added; then its keys;
# then its values. **Predict** which of the three changes breaks the copying.

# %% id="cause-predict" tags=["predicted"]
for role in ("query", "key", "value"):
    shares = copies.values("word only", role)
    print(f"{role} reads the word only: right {shares.round(2)}")

# %% [markdown] id="cause-answer" tags=["answer"]
# The keys do. Without what the first layer added to them, these models copy no better than a single layer. Queries and values can do without it, because
# the word that is looked for and the word that is copied are the words of their own places. So of the four terms of
# {eq}`scores-of-second-layer` the second is the one that copies here, and the model has found K-composition by itself.

# %% [markdown] id="real"
# ## In a real model
#
# SmolLM2 has 30 layers of nine heads. We let it read 16 English words twice. Which heads have the largest scores?

# %% id="real-find" tags=["live"]
from attn_course.experiments.smollm2 import maps as maps_of

words = " lamp river seven stone green paper cloud horse"
words += " early music table north glass bread story wheel"
if model.is_here:
    layers = maps_of(model.ids(words + words))  # of each layer, (9, 32, 32)
    scores = np.stack([score(maps.numpy()) for maps in layers])
    for number in np.argsort(-scores, axis=None)[:8]:
        layer, head = divmod(int(number), 9)
        print(f"layer {layer}, head {head}: {scores[layer, head]:.2f}")

# %% [markdown] id="real-notice"
# All eight sit in layers 17, 18, 20 and 23 of 30, counted from 0. Head 6 of layer 18 leads with 0.87. With 50 random tokens, in six draws, the
# same eight heads have the largest scores.
#
# **Predict** what share of the 50 tokens is still copied when these eight of 270 heads are silenced, and when eight others of the same layers are.

# %% id="real-silence" tags=["predicted"]
from attn_course.experiments.copying import EIGHT
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING

measured = COPYING.load()
print("as it is            ", measured.values("copied").round(2))
print("without the eight   ", measured.values("silenced", "eight").round(2))
control = measured.values("others of these layers", "eight", "mean")
print("without eight others", control.round(2))

# %% [markdown] id="real-answer" tags=["answer"]
# Without the eight, no token is copied in any of the six draws. Without eight others, on average over three sets of them, 48 to 71 % are. And the
# first head of the pair? Lesson {lesson}`heads` silenced head 0 of layer 16, which looks one token back: then an eighth or less was right.

# %% [markdown] id="lens"
# ## Reading the stream on its way
#
# The eight heads sit in layers 17 to 23, but the model speaks behind layer 29. What happens in between? The stream is a sum of
# parts $z_l$: the word itself, $z_0$, and what each layer added. The last norm divides this sum by one number $r$, the root of its mean square, so the
# *logits*, the scores of all tokens, are a sum, too:
#
# $$\mathrm{logits}(X_L) = \frac{1}{r} \sum_{l=0}^{L} z_l\, \mathrm{diag}(g)\, E^\top \key{logits-by-part}$$
#
# with the last gain $g$, the table $E$, and $\varepsilon = 0$. We may stop the sum early, and read $X_l$, with its own $r$, as if it were the
# last. That is the *logit lens* (nostalgebraist, 2020).

# %% [markdown] id="lens-predict"
# For 50 random tokens, read twice, we ask at which place among all 49,152 tokens the right one stands: the median of the second round, in six draws.
# **Predict** in which layers it comes forward, and what happens when the eight heads are silenced.

# %% id="lens-figure" tags=["predicted"]
from attn_course.lessons.induction.experiments_smollm2 import LENS

seen = LENS.load()
ranks = {name: seen.values("rank", name) for name in seen.results[0]["rank"]}
for name, found in ranks.items():
    middle = np.median(found, axis=0)  # entry 18: after layer 17
    middle = middle[[18, 23, 24, 30]].astype(int)
    print(f"{name:22} behind layers 17, 22, 23, 29: {middle}")
figures.depths(ranks)

# %% [markdown] id="lens-answer" tags=["answer"]
# Up to layer 17 the right token stands somewhere in the crowd, though three of the eight sit in layer 17. From layer 18 on it moves, and layer 23
# alone lifts it from about place 6,000 to place 800. The last layers bring it to the first place. Without the eight it never comes near, and
# without eight others it moves nearly as before. This fits a word that enters the stream with these heads, in a form that the table reads badly until the
# last layers. The lens tells where a word can be *read*, and not where it was found.

# %% [markdown] id="last"
# ## Switch it off
#
# Back to Brumela. The eight heads were found with random tokens. What does the model expect behind the name without them, and without eight others?

# %% id="last-code"
from attn_course.experiments.smollm2 import others

versions = {"as it is": model, "without the eight": model.silenced(*EIGHT)}
versions["without eight others"] = model.silenced(*others(EIGHT, 0))  # a first set
for name, version in versions.items():
    for token, chance in version.next_tokens(begun, 1).items():
        print(f"{name:20} {token}: {chance:.2f}")

# %% [markdown] id="last-notice"
# Without the eight a full stop comes first, as it did in the text without Quistok. Without eight others the name still does. Put another name into `begun`,
# such as Halwin Orstead. (With some names a full stop comes first even with all heads.)
#
# **Limits.** One sentence is an example; the numbers above are the evidence. To silence a head takes away *all* that it does. That such heads do
# more than copy what repeats is shown for small models, and only made likely for large ones (Olsson et al., 2022).

# %% id="verify-lesson"
verify_lesson("induction")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | the rule, {eq}`match-of-word-before` | {key}`match-of-word-before` | $SX$: the word before |
# | through the keys, {eq}`score-through-earlier-head` | {key}`score-through-earlier-head` | $V = W_V W_O$ of the first head |
# | the score, {eq}`induction-score` | {key}`induction-score` | $n$ words, twice |
# | the lens, {eq}`logits-by-part` | {key}`logits-by-part` | stop the sum early |

# %% [markdown] id="summary"
# ## Summary
#
# - To copy is to find the place behind the same word, and to say the word that stands there.
# - A head of the first layer cannot: its key does not know the word before.
# - A head that looks one back writes it there, and a later head reads it with its keys.
# - In training the two kinds of heads arrive together, quickly; each kind is needed, as silencing shows beside its control.
# - The logit lens shows where the table can read a word. The word may have come earlier.
#
# So our small model copies with two heads in a row. SmolLM2 has such heads, too: head 0 of layer 16, and eight in layers 17 to 23, without which
# it copies none of 50 random tokens. That these read with their keys what the first one wrote was tested in the small model only. Now the
# [exercises](../work/ex_{lesson}`induction`_induction.ipynb).

# %% [markdown] id="every-head"
# ## Deeper: see every head
#
# Here are all heads of SmolLM2 on a short text in which *red* comes twice. The viewer opens at the second *red* and the word that
# followed the first. Press `B` in it to go through the heads, those with the most weight on this pair first. How many of them are among the eight?
# Then press `V`, which shades by what is brought. Many heads give nearly all of their weight to the first word: what does it bring?

# %% id="every-head-code"
from attn_course import attention_viewer
from attn_course.language.maps import smollm2_maps

red = smollm2_maps("The red fox saw a bird. The red fox")
attention_viewer(**red, layer=18, head=6, query=8)

# %% [markdown] id="every-head-answer"
# <details><summary>What you should see</summary>
#
# Most of the first seven are. The first word brings little, because its values are short there: to look at it is a way to look
# nowhere. (Lesson {lesson}`softmax` says why a head cannot do without.)
#
# </details>

# %% [markdown] id="who"
# ## Deeper: who says the next word?
#
# By {eq}`logits-by-part`, every part of the stream has a share in each score, with $r$ held. The storytellers of lesson {lesson}`transformer` read
# 1000 stories up to the helper's name, as in *Eva has a red cup . she breaks the cup . Tom*. The next word is one of four deeds, in this example
# *mends*. For each part the cell prints how far it puts the right deed ahead of the mean of the other three, and how often the right
# one still wins when this part alone adds nothing. Guessing would be right in a quarter.

# %% id="who-alive"
from attn_course import alive

alive("logits-by-part")

# %% id="who-code"
from attn_course.lessons.induction.experiments_parts import PARTS, SHARES

measured = SHARES.load()
for part in PARTS:
    ahead = measured.values("deed", "shares", part)
    right = measured.values("deed", "right without", part)
    print(f"{part:15} ahead by {ahead}, without it right {right}")

# %% [markdown] id="who-notice"
# The last hidden units have by far the largest share, and without them the right deed still wins in 78 to 100 % of the stories. The
# first attention has hardly any share, and without it 28 to 41 % are right. Each part is the control of the others: one of four is silenced each time. A
# share tells what a part says itself. What is needed has to be silenced.

# %% [markdown] id="sources"
# ## Sources
#
# - N. Elhage et al. (2021), [A Mathematical Framework for Transformer Circuits](https://transformer-circuits.pub/2021/framework/index.html): two
#   layers of attention alone, composition, induction heads.
# - C. Olsson et al. (2022), [arXiv:2209.11895](https://arxiv.org/abs/2209.11895): induction heads arrive at once, and what they may explain.
# - nostalgebraist (2020), [interpreting GPT: the logit lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
