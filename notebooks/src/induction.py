# %% [markdown] id="title"
# # {lesson}`induction` How a model copies
#
# A trained model meets a name that somebody has just made up. The second time it begins, the model goes on with it. **How does a trained
# model copy what it read before, and where in it does this happen?** You will build the trick by hand, watch it arrive while a small model
# trains, then find it in a real model and switch it off.
#
# **You need** lessons {lesson}`heads`, {lesson}`absorption` and {lesson}`transformer`. **Time:** 56 minutes, without *Deeper* sections and the
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
# Here is a rule that copies: **find a place right after an earlier occurrence of the same word, and say the word that stands there.** At the
# end of *the cat sat because the* it finds *cat*, right after the earlier *the*, and says *cat*.
#
# Let row $i$ of $X$ be a one-hot vector, 1.0 at the number $t_i$ of word $i$ and else 0.0. Two rows have the product 1 if they are the same word,
# and 0 otherwise. The rule compares word $i$ with the word *before* place $j$. So let $S$ move each row one place down: then row $j$ of $SX$ is
# that of word $j - 1$, and for $j \ge 2$
#
# $$\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,] \key{match-of-word-before}$$
#
# The bracket is 1 if the words are the same, and else 0. These are scores with queries $X$ and keys $SX$: the part of the machine that is lit.

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

from attn_course.lessons.induction import tasks_turns as ours

match = ours.my_match.answer if my_match is ... else my_match
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
# Can a head of the first layer follow this rule? Its key at place $j$ is made from word $j$ alone. If we exchange word $j - 1$, the score at $j$
# stays the same for every place $i$ from $j$ on. So it cannot be $[\, t_i = t_{j-1} \,]$. It could be if an earlier head had written word
# $j - 1$ into place $j$:

# %% id="layers-figure"
figures.circuit(["the", "cat", "sat", "because", "the"], found=1)

# %% [markdown] id="layers-derive"
# How does a head read what another one wrote? Let a head of the first layer have the weights $P$. With $U = W_V W_O$ it adds $P X U$ to the
# stream (lesson {lesson}`heads`):
#
# $$X_1 = X + P X U$$
#
# A head of the second layer has the scores $X_1 W X_1^\top$, with $W = W_Q W_K^\top$ (lesson {lesson}`absorption`). We leave out the scale and
# the norm: the norm's gain goes into the matrices, and the rest of the norm divides each query and each key by a number of its own. We also
# leave out other heads, hidden units, and the rotary positions by which the first head can tell which place is one back
# (lesson {lesson}`self_attention`). Query and
# key are sums of two, so the scores are a sum of four:
#
# $$X_1\, W X_1^\top = X\, W X^\top + X\, W\, (P X U)^\top + P X U\, W X^\top + P X U\, W\, (P X U)^\top \label{scores-of-second-layer}$$

# %% [markdown] id="layers-key"
# In the second term the query reads the word itself, and the *key* reads what the first head wrote. Row $j$ of $P X U$ is
# $\sum_l P_{jl}\, x_l U$, so
#
# $$\bigl( X\, W\, (P X U)^\top \bigr)_{ij} = \sum_{l=1}^{T} P_{jl}\; x_i\, W U^\top x_l^\top \key{score-through-earlier-head}$$
#
# Place $j$ is judged by the words at which *it* looked. If the first head looks one back, then $P_{j,\, j-1} = 1$, and only
# $x_i\, W U^\top x_{j-1}^\top$ is left. If $W U^\top$ gives equal words 1 and different ones 0, this is
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
score = ours.my_score.answer if my_score is ... else my_score
x = np.eye(16)[[*range(16)] * 2]  # 16 words, twice
powers = np.tril(np.exp(20 * match(x)))
print(f"the head by hand: {score(powers / powers.sum(-1, keepdims=True)):.2f}")

# %% [markdown] id="arrive"
# ## Watch it arrive
#
# Nobody writes this rule into a model. Does it appear by training? Our model is that of lesson {lesson}`transformer` without hidden units: two
# layers of four heads each. It knows 32 words. Each text repeats a piece of 8 to 24 random words to the length of 48, so it is of little use to
# look a fixed number of places back. The test is 16 different words twice, and we count the second round. This cell trains for 300 steps, in
# less than half a minute. It prints the share of right words, the largest mean weight of a first-layer head on the word before, and the
# largest induction score in the second layer:

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
# For the record we trained for 600 steps, three draws of two layers and three of a single one:

# %% id="arrive-figure"
copies = lab.COPIER.load()
for name in ("one layer", "two layers"):
    print(f"{name}: right {copies.values(name, 'copied')[:, -1].round(2)}")
figures.arrival(copies.results[0]["two layers"])

# %% [markdown] id="arrive-notice"
# One layer is right about once in ten times; who guesses among the 16 words of the text would be right once in 16. Two layers stay below 0.3
# at first. Then, within 75 steps, copying rises above 0.9, and both weights rise with it, from below 0.2 to above 0.7. When this happens
# depends on the draw: in the one shown from step 150 on, in the third from step 250 on.

# %% [markdown] id="cause"
# ## Is it the cause?
#
# Curves that rise together may have a common cause. So we silence heads: they pass on zeros. Try it in the model that you have just trained.
# The cell prints, for each head of both layers, its induction score and its mean weight on the word before. Which single head, put into
# `silent`, breaks the copying? And which three of the second layer?

# %% id="cause-yours" tags=["live"]
for name, layers in lab.head_scores(copier, test).items():
    print(f"{name:9}", *layers)
silent = [(0, 0)]  # (layer, head), both counted from 0
print("right:", lab.tested(copier, test, silent=silent)["copied"])

# %% [markdown] id="cause-record"
# In our run these were head 2 of the first layer, and heads 0, 1 and 3 of the second.
#
# In the three recorded models we silenced the two heads of the first layer with the largest weights on the word before, or the three of the second
# layer with the largest induction scores. As a control, we silenced as many heads of the same layer, those with the smallest. The texts are
# new ones:

# %% id="cause-code"
print(f"{'as it is':35}", copies.values("copied").round(2))
for name in copies.results[0]["silenced"]:
    print(f"{name:35}", copies.values("silenced", name).round(2))

# %% [markdown] id="cause-notice"
# Both kinds are needed: without either, at most 22 % of the words are copied. The controls leave 94 to 97 % in the first layer, and 62 to 82 %
# in the second, where two of the three weakest are induction heads, too.
#
# Now we test the derivation, one role at a time. First only the queries of the second layer read the words $X$ alone, without what the first
# layer added; then only the keys; then only the values. **Predict** which of the three changes breaks the copying.

# %% id="cause-predict" tags=["predicted"]
for role in ("query", "key", "value"):
    shares = copies.values("word only", role)
    print(f"{role} reads the word only: right {shares.round(2)}")

# %% [markdown] id="cause-answer" tags=["answer"]
# The keys do. Without what the first layer added to them, these models copy no better than a single layer. Queries and values can nearly do without
# it, because the word that is looked for and the word that is copied are the words of their own places. So of the four terms of
# {eq}`scores-of-second-layer` the second is the one that copies here, and the model has found K-composition by itself. In your own model, try
# `lab.tested(copier, test, word_only=["key"])`.
#
# A rule by *Q-composition* would have worked, too: an earlier head tells place $i$ where its word stood before, and a later one looks one
# place further.

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
# The eight largest scores belong to heads 3, 4 and 5 of layer 17, 6 and 7 of layer 18, 6 of layer 20, and 2 and 7 of layer 23, all counted
# from 0. Head 6 of layer 18 leads with 0.87. The eighth and the ninth both have 0.36, so to cut at eight is our choice. With 50
# random tokens, in six draws, the same eight lead.
#
# As it is, the model copies 63 to 84 % of these 50 tokens. **Predict** what is left without these eight of 270 heads, without eight
# others of the same layers, and without a single head that looks one token back, head 0 of layer 16.

# %% id="real-silence" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING, SILENT

measured = COPYING.load()
drawn = measured.values("others of these layers", "eight", "mean")
rows = {"the eight": measured.values("silenced", "eight"), "eight others": drawn}
rows |= {name: measured.values("silenced", name) for name in SILENT}
for name, shares in rows.items():
    print(f"without {name:32}", shares.round(2))

# %% [markdown] id="real-answer" tags=["answer"]
# Without the eight, no token is copied in any of the six draws. Without eight others, on average over three sets of them, 48 to 71 % are.
# Without head 0 of layer 16, 2 to 12 % are. Its controls are head 3 of the same layer, which looks mostly at the first token, and three others
# that look one back (lesson {lesson}`heads`): without these, 49 to 82 % are copied. So SmolLM2 needs the eight, and this one head that looks back.

# %% [markdown] id="last"
# ## Switch it off
#
# Back to Brumela. The eight heads were found with lists of words. What does the model expect behind the name without them?

# %% id="last-code"
from attn_course.experiments.copying import EIGHT
from attn_course.experiments.smollm2 import others

silent = {"nothing": [], "the eight": EIGHT, "head 0 of layer 16": [(16, 0)]}
silent |= {f"eight others, set {draw}": others(EIGHT, draw) for draw in range(3)}
silent["head 3 of layer 16"] = [(16, 3)]
for name, heads in silent.items():
    for token, chance in model.silenced(*heads).next_tokens(begun, 1).items():
        print(f"without {name:19} {chance:.2f} for {token!r}")

# %% [markdown] id="last-notice"
# Without the eight, or without head 0 of layer 16, a full stop comes first, as it did without Quistok. Without the controls the name still
# does. Now put other heads into `silent`, or another name into `begun`, such as Halwin Orstead. Not all names behave like this one: Fenna
# Quarl comes back even without head 0 of layer 16, and with some names a full stop comes first as it is.
#
# **Limits.** One sentence is an example; the evidence is in section {section}`real`. To silence a head takes away *all* that it does. That such heads do
# more than copy what repeats is shown for small models, and only made likely for large ones (Olsson et al., 2022).

# %% id="verify-lesson"
verify_lesson("induction")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | the rule, {eq}`match-of-word-before` | {key}`match-of-word-before` | $SX$: the word before |
# | through the keys, {eq}`score-through-earlier-head` | {key}`score-through-earlier-head` | $U = W_V W_O$ of the first head |
# | the score, {eq}`induction-score` | {key}`induction-score` | $n$ words, twice |

# %% [markdown] id="summary"
# ## Summary
#
# - To copy is to find a place right after an earlier occurrence of the same word, and to say the word that stands there.
# - A head of the first layer cannot: its key does not know the word before.
# - A head that looks one back writes it there, and a later head reads it with its keys.
# - In training the two kinds of heads arrive together, quickly. Silencing shows that both are needed.
#
# So our small model copies with two heads in a row. SmolLM2 needs such heads, too: head 0 of layer 16, which looks one token back, and eight
# in layers 17 to 23, without which it copies none of 50 random tokens. That these read with their keys what the first one wrote was tested in
# the small model only. Now the [exercises](../work/ex_{lesson}`induction`_induction.ipynb).

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

# %% [markdown] id="lens"
# ## Deeper: reading the stream on its way
#
# The eight heads sit in layers 17 to 23, but the model speaks behind layer 29. At each place the stream is a sum of parts $z_l$: the token
# itself, $z_0$, and what each of $L$ layers added, its hidden units included. The last norm divides this sum by a number $r$, the root of its
# mean square, so the *logits*, the scores of all tokens, are a sum, too:
#
# $$\mathrm{logits}(X_L) = \frac{1}{r} \sum_{l=0}^{L} z_l\, \mathrm{diag}(g)\, E^\top \label{logits-by-part}$$
#
# with the last gain $g$, the table $E$, and $\varepsilon = 0$. If we stop the sum early, and read $X_l$, with its own $r$, as if it were the
# last, we have the *logit lens* (nostalgebraist, 2020).

# %% [markdown] id="lens-predict"
# For 50 random tokens, read twice, we ask which rank the right one has among all 49,152: the median of the second round, in six draws. By chance
# it would be about 24,577. **Predict** in which layers it moves to the front, and what happens when the eight heads are silenced.

# %% id="lens-figure" tags=["predicted"]
from attn_course.lessons.induction.experiments_smollm2 import LENS

seen = LENS.load()
ranks = {name: seen.values("rank", name) for name in seen.results[0]["rank"]}
print("behind 0, 3, 6, ... 30 layers")
for name, found in ranks.items():
    print(f"{name:20}", np.median(found, axis=0)[::3].astype(int))
figures.depths(ranks)

# %% [markdown] id="lens-answer" tags=["answer"]
# Layer 0 brings the right token from rank 34,000 to rank 17,000. Then it stays between 13,000 and 17,000 up to layer 17, though three of the eight
# heads sit in layer 17. Layer 18 lifts it to about 10,000, and layer 23 from about 6,000 to 800, each with all its heads and hidden units. The last layers
# bring it to rank 1. Without the eight it stays behind rank 9,000, and without eight others it moves nearly as before. This fits a word that
# enters the stream with these heads, in a form that the table reads badly until layer 23. The lens tells where a word can be *read*, and
# not where it was found.

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
# first attention has hardly any share, and without it 28 to 41 % are right. Each of the four parts is the control of the others; the word
# itself, $z_0$, is not among them. A share tells what a part says itself. To learn whether it is needed, we have to silence it.

# %% [markdown] id="sources"
# ## Sources
#
# - N. Elhage et al. (2021), [A Mathematical Framework for Transformer Circuits](https://transformer-circuits.pub/2021/framework/index.html): two
#   layers of attention alone, composition, induction heads.
# - C. Olsson et al. (2022), [arXiv:2209.11895](https://arxiv.org/abs/2209.11895): induction heads arrive at once, and what they may explain.
# - nostalgebraist (2020), [interpreting GPT: the logit lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens).
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
