# %% [markdown] id="title"
# # {lesson}`writing` Writing: each word is read once
#
# A language model reads words, and scores which word comes next. To write, it reads, chooses a word, appends it, and reads again. If it
# really reads all of its text again for every word, a long text gets slow. **What must a model keep, so that it reads each word only
# once?**
#
# You will give a model this memory, and find out how a wrong one hides. Then a real model writes with your lines.
#
# **You need** lesson {lesson}`transformer`, whose model we go on with. **Time:** 50 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`writing`_writing.ipynb).

# %% [markdown] id="again"
# ## Reading it all again
#
# Here is the model of lesson {lesson}`transformer` once more. Only the function that makes the weights of attention is left for us to
# write, as `Block.weigh`. It is also handed a `cache`, which this one does not use:

# %% id="weigh-anew"
import numpy as np
import torch

from attn_course.experiments.own_gpt import GPT, Block, train, turned


def weigh_anew(block, x, cache):  # x: (..., T, d)
    queries, keys, values = block.sides(x)  # (..., heads or key heads, T, d_k)
    at = torch.arange(x.shape[-2])  # the places
    queries, keys = turned(queries, at, block.theta), turned(keys, at, block.theta)
    scores = block.scores(queries, keys)  # (..., heads, T, T)
    later = at > at[:, None]
    return scores.masked_fill(later, -torch.inf).softmax(-1), values


Block.weigh = weigh_anew

# %% [markdown] id="train"
# It learns the stories of lesson {lesson}`transformer`, of 28 words and stops each, but for 1,000 that are kept back. Here is one of these:

# %% id="train-code"
from attn_course.experiments.stories import LENGTH, STORIES, numbers, tables, text

stories, kept_back = tables()  # each word a number; a full stop begins each row
mine = GPT(words=42, d=48, depth=2, d_k=12, shared=2, hidden=96, theta=100.0)
train(mine, stories, steps=300)
print(text(kept_back[47, 1:]))

# %% [markdown] id="write-anew"
# Now it writes. `write_anew` takes the likeliest word each time, and counts the rows that the model reads:


# %% id="write-anew-code"
def write_anew(model, ids, count):
    rows = 0
    for _ in range(count):
        scores = model(ids)  # (words, words of the language)
        rows += len(ids)
        ids = torch.cat([ids, scores[-1:].argmax(-1)])
    return ids, rows


# %% id="write-anew-run"
begun = kept_back[47, :13]  # up to the helper's name
written, rows = write_anew(mine, begun, 16)
print(text(written[1:]))
print(f"{rows} rows read to write 16 words")

# %% [markdown] id="rows"
# The first step reads 13 rows, the next one 14, and the last one 28. To write $m$ words behind $n$ takes
#
# $$R = \sum_{t=n}^{n+m-1} t = m\, n + \frac{m\, (m - 1)}{2} \key{rows-read-anew}$$
#
# rows, $16 \cdot 13 + 120 = 328$ here. For an answer of 1,000 words to a question of 100 it is 599,500. In the machine, these two parts
# will spare us nearly all of it:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.writing import figures

figures.machine()

# %% [markdown] id="changes"
# ## What changes, and what stays?
#
# Is all this reading needed? We let the model read the first 13 words, and then all 29. On the way each block gets rows of its stream, and
# makes queries, keys and values of them. **Predict** which of the first 13 rows change, in the first block and in the second, now that
# 16 more words stand behind them.


# %% id="changes-code" tags=["predicted"]
def streams(model, ids):  # the rows that each block gets
    found, x = [], model.table[ids]
    for block in model.blocks:
        found.append(x)
        x = block(x, {})
    return found


pairs = zip(streams(mine, begun), streams(mine, written), strict=True)
for depth, (short, long) in enumerate(pairs):
    changed = (short - long[:13]).abs().amax(-1) > 1e-5
    print(f"block {depth}: {changed.sum().item()} of 13 rows change")

# %% [markdown] id="changes-answer" tags=["answer"]
# None does. In the first block the rows are those of the words in the table. And no word sees a later one, so what attention adds to
# these rows is the same, and so is all that follows.

# %% [markdown] id="kept"
# So the keys and values of earlier words stay, in every block, and can be kept in a **cache**. Their queries are not needed any more, because
# each query serves only its own row. So behind 13 kept words one new word needs a single row of 14 scores in each head, and not a table of
# 14 by 14. For the queries from word $s$ on, with the causal mask on both sides,
#
# $$\mathrm{attention}(Q_{s:T},\, K_{1:T},\, V_{1:T}) = \mathrm{attention}(Q, K, V)_{s:T} \key{new-rows-behind-kept}$$
#
# Without the mask the earlier rows would change with each new word, and nothing could be kept but the first block's keys and values.

# %% [markdown] id="memory"
# ## A memory for attention
#
# A step with a cache reads only its `new` words. It finds the keys and values of the `kept` ones in the cache, and puts its own behind
# them. Here are two new words behind three kept ones:

# %% id="attend-shapes"
figures.shapes()

# %% [markdown] id="kept-text"
# What must change in `weigh_anew`? The two new words stand at the `places` 3 and 4, and their queries and keys are turned by these. A key is
# turned by its own place only, and this place never changes, so it can be kept turned. `remembered` puts the kept keys and values before
# the new ones, and keeps them all for the next step. The cache is a dictionary with an entry for each block:


# %% id="kept-code"
def places(new, kept):
    return kept + torch.arange(new)


def remembered(block, cache, keys, values):  # each (..., key heads, new, d_k)
    if block in cache:
        kept_keys, kept_values = cache[block]
        keys = torch.cat((kept_keys, keys), -2)  # (..., key heads, kept + new, d_k)
        values = torch.cat((kept_values, values), -2)
    cache[block] = keys, values
    return keys, values


# %% [markdown] id="mask-turn"
# The mask changes, too: a new word sees all kept words, itself, and the new words before it.
#
# **Your turn.** {turn}`causal-mask-behind-kept`

# %% id="mask-turn-code" tags=["your-turn"]
my_allowed = ...  # your function
check("causal-mask-behind-kept", my_allowed)


# %% [markdown] id="mask-turn-ours"
# Until you fill it in, the model uses our answer, which is folded.


# %% id="our-mask" tags=["hide-input"]
def allowed_ours(new, kept):
    return np.tri(new, kept + new, kept)  # 1.0 where column <= row + kept


allowed = allowed_ours if my_allowed is ... else my_allowed

# %% [markdown] id="weigh-text"
# With these three, `weigh_new` takes the place of `weigh_anew`. Two lines are the same as before, and the others say `kept`:


# %% id="weigh-kept"
def weigh_new(block, x, cache):  # x: (..., new, d), the rows of the new words
    queries, keys, values = block.sides(x)
    new = x.shape[-2]
    kept = cache[block][0].shape[-2] if block in cache else 0

    at = places(new, kept)
    queries, keys = turned(queries, at, block.theta), turned(keys, at, block.theta)
    keys, values = remembered(block, cache, keys, values)  # now kept + new of each
    scores = block.scores(queries, keys)  # (..., heads, new, kept + new)
    masked = torch.as_tensor(allowed(new, kept)) == 0  # (new, kept + new)
    return scores.masked_fill(masked, -torch.inf).softmax(-1), values


Block.weigh = weigh_new


# %% [markdown] id="write"
# `write` reads all words of the start at once, and then only the word that it has just chosen. How it chooses is an argument:


# %% id="write-code"
def likeliest(scores):
    return scores.argmax(-1, keepdim=True)


@torch.no_grad()
def write(model, ids, count, choose=likeliest):
    new, cache, rows = ids, {}, 0  # first all words are new, and none is kept
    for _ in range(count):
        scores = model(new, cache)  # (..., new, words of the language)
        rows += new.shape[-1]
        new = choose(scores[..., -1, :])
        ids = torch.cat([ids, new], -1)
    return ids, rows


# %% id="write-run"
again, rows = write(mine, begun, 16)
print("the same words:", torch.equal(again, written), f"with {rows} rows read")

# %% [markdown] id="write-notice"
# It reads $13 + 15 = 28$ rows instead of 328, each word but the last once. (A row still meets all kept keys, so a step behind a
# long text takes longer.)

# %% [markdown] id="wrong"
# ## Three wrong memories
#
# The same words came out. Is that proof enough? We break the memory in three ways, inside `with patch`, where `weigh_new` finds the wrong
# function in the place of the right one:


# %% id="wrong-code"
from unittest.mock import patch

wrong = {
    "places from 0": ("places", lambda new, kept: torch.arange(new)),
    "mask without kept": ("allowed", lambda new, kept: np.tri(new)),
    "no mask": ("allowed", lambda new, kept: np.ones((new, kept + new))),
}
endings, _ = write(mine, kept_back[:, :13], 16)

# %% [markdown] id="wrong-predict"
# With each of them the model writes the endings of the 1,000 kept-back stories. **Predict** which wrong memory still writes the same words
# as the right one, each time.

# %% id="wrong-run" tags=["predicted"]
for name, (helper, function) in wrong.items():
    with patch(f"__main__.{helper}", function):
        found, _ = write(mine, kept_back[:, :13], 16)
    same = (found == endings).all(-1).float().mean().item()
    print(f"{name:18} {same:.2f} of the endings are the same")

# %% [markdown] id="wrong-answer" tags=["answer"]
# The mask without `kept` does. `write` reads the start at once, when nothing is kept, and then single words. For these the mask is a single
# 1, which PyTorch spreads over all keys, and that is right. Even without any mask more than a third of the endings are the same.

# %% [markdown] id="pieces"
# So writing alone cannot show this mistake. Reading in pieces can, because then several new words stand behind kept ones:


# %% id="pieces-code"
def in_pieces(model, ids, size=7):  # ids: (..., words)
    cache = {}
    return torch.cat([model(piece, cache) for piece in ids.split(size, -1)], -2)


def differs(model, ids):
    try:
        apart = (model(ids) - in_pieces(model, ids)).abs().max().item()
    except RuntimeError:
        return "PyTorch stops"
    return f"{apart:.3f} apart"


# %% id="pieces-run"
print(f"{'right':18}", differs(mine, kept_back))
for name, (helper, function) in wrong.items():
    with patch(f"__main__.{helper}", function):
        print(f"{name:18}", differs(mine, kept_back))

# %% [markdown] id="pieces-notice"
# The right memory gives the same scores up to rounding, and each wrong one is caught. With places from 0 the new words are turned as if they
# stood at the beginning, so their distances to the kept ones are wrong. For seven words behind seven the mask without `kept` is $7 \times 7$
# for $7 \times 14$ scores, which PyTorch cannot match. And without a mask a word sees the later words of its piece, but not of the next one,
# while at once it sees all. So test a cache by scores, and in pieces of several words.

# %% [markdown] id="draw"
# ## Stories of its own
#
# To take the likeliest word each time gives one text for each start. Let the model *draw* each word with its probability instead, at a
# temperature $T$ (lesson {lesson}`softmax`). $T = 1$ draws with the model's own probabilities, a small $T$ nearly always takes the likeliest
# word, and a large one makes all words nearly alike.
#
# **Your turn.** {turn}`chances-at-temperature`

# %% id="draw-turn-code" tags=["your-turn"]
my_p = ...  # your function
check("chances-at-temperature", my_p)


# %% [markdown] id="draw-ours"
# Ours is folded again.


# %% id="our-chances" tags=["hide-input"]
def chances_ours(scores, temperature):
    terms = np.exp((scores - scores.max(-1, keepdims=True)) / temperature)
    return terms / terms.sum(-1, keepdims=True)


chances = chances_ours if my_p is ... else my_p

# %% [markdown] id="product"
# How often is a drawn story true, that is, one of our language? The probability of a whole text is the product of those of its words, each
# behind the words before it, and so the losses add up:
#
# $$P = \prod_{t=1}^{T} p_t, \qquad -\ln P = \sum_{t=1}^{T} (-\ln p_t) \key{text-chance-is-product}$$
#
# If at each of 28 words a model draws a possible one with probability 0.99, its story is true with $0.99^{28} = 0.75$. So small risks add up.
#
# We draw 500 stories behind *Mia has a* (yours to change). Some come out *untrue*. **Predict** at which word the untrue ones go wrong
# most often.


# %% id="draw-live" tags=["live", "predicted"]
def drawn(scores, temperature=1.0):  # scores: (..., words of the language)
    p = np.asarray(chances(scores.numpy(), temperature))
    return torch.multinomial(torch.as_tensor(p), 1)


yours = "Mia has a"
ids = torch.tensor(numbers(". " + yours)).expand(500, -1)
told, _ = write(mine, ids, LENGTH + 1 - ids.shape[-1], drawn)
told = [text(row[1:]) for row in told]
untrue = sorted(set(told) - set(STORIES))
print(told[0], f"{len(untrue)} untrue stories, such as", *untrue[::8], sep="\n")

# %% [markdown] id="draw-answer" tags=["answer"]
# At the helper's name. In our run the owner helps in more than half of the untrue stories:
#
# > Mia has a red book . she loses the book . Mia finds the red book . she gives it to Mia . now she is glad .
#
# It is the one free choice that must *differ* from an earlier one, which may be harder than a copy. A few others lose their way altogether:
#
# > Mia has a black ball . she breaks the ball . Kim mends the black ball . she Ben . she gives it to finds the black ball

# %% [markdown] id="real"
# ## The real model writes
#
# Does your memory serve English? SmolLM2 has 30 blocks, a table of 49,152 words and pieces of words, and places up to 8,192:

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% [markdown] id="real-text"
# Its numbers go into the same class, as in lesson {lesson}`transformer`. We compare all scores, read in pieces, with those of the course's
# own code. Then your `write` continues `start`, or a sentence of yours, and we count the rows:

# %% id="real-own" tags=["live"]
from attn_course.lessons.transformer.experiments_names import renamed

start = "A long time ago, in a small village, there lived"
if model.is_here:
    large = {"d_k": 64, "shared": 3, "hidden": 1536, "theta": 100_000.0}
    real = GPT(words=49_152, d=576, depth=30, **large)
    real.load_state_dict(renamed(model.network.state_dict()))
    ids = model.ids(start)
    found = in_pieces(real, ids).detach().numpy()
    difference = np.abs(found - model.logits(start)).max()
    print(f"largest difference of {len(ids)} x 49152 scores: {difference:.5f}")
    written, rows = write(real, ids, 25)
    print(model.tokenizer.decode(written.tolist()), f"({rows} rows read)")

# %% [markdown] id="real-notice"
# On our machine the difference was less than 0.0001. Your model read 36 rows instead of 600, and went on:
#
# > ... there lived a wise old man named Thorpe. He was a skilled craftsman, and he had a special gift: he could create

# %% [markdown] id="real-bet"
# **Predict** what the other two wrong memories do to this sentence.


# %% id="real-broken" tags=["live", "predicted"]
if model.is_here:
    for name in ("places from 0", "no mask"):
        with patch(f"__main__.{wrong[name][0]}", wrong[name][1]):
            found, _ = write(real, ids, 25)
        print(f"{name}:", model.tokenizer.decode(found.tolist()), "\n")

# %% [markdown] id="real-answer" tags=["answer"]
# With places from 0 it writes another sentence, which soon repeats a name, and without a mask no sentence at all. On our machine the first
# one wrote
#
# > ... there lived a man named Ery, named Ery, a man named Ery
#
# and the other one *a man namedA.*, then only *A.A.A.A.* All 134.5 million numbers were right each time.

# %% [markdown] id="limits"
# **Limits.** We counted rows and no seconds. A machine reads many rows at once with less effort for each, so less time is saved than rows. A cache also takes room, which lesson {lesson}`heads` counts, and it helps only where earlier
# rows cannot change.

# %% id="verify-lesson"
verify_lesson("writing")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | rows read without a cache, {eq}`rows-read-anew` | {key}`rows-read-anew` | with one, $n + m - 1$ |
# | new words behind kept ones, {eq}`new-rows-behind-kept` | {key}`new-rows-behind-kept` | causal |
# | a text drawn word by word, {eq}`text-chance-is-product` | {key}`text-chance-is-product` | losses add up |

# %% [markdown] id="summary"
# ## Summary
#
# - Under a causal mask no later word changes an earlier row. So a model that keeps the keys and values of all blocks reads each word once.
# - New words need their true places, and a mask that counts the kept words.
# - Right words do not prove a cache right. Compare scores, in pieces of several words.
#
# So a model must keep two rows for each word, block and key head, and no queries. Lesson {lesson}`induction` asks how a model uses what it
# keeps to copy. Now the [exercises](../work/ex_{lesson}`writing`_writing.ipynb).

# %% [markdown] id="sources"
# ## Sources
#
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): writing word by word, and why keys and values are worth sharing.
# - R. Pope et al. (2022), [arXiv:2211.05102](https://arxiv.org/abs/2211.05102): what writing costs, with a cache.
# - A. Holtzman et al. (2019), [arXiv:1904.09751](https://arxiv.org/abs/1904.09751): how likely and how drawn texts differ.
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
