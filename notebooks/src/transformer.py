# %% [markdown] id="title"
# # {lesson}`transformer` A Transformer of your own
#
# Attention lets each word look at others. A machine that writes needs more: a norm, hidden units, a loss, a cache. **How do these parts
# become one machine, and can you own every line of it?** You will build it in about seventy lines of PyTorch, train it on stories, and then
# give the same lines the weights of a real model, which writes English.
#
# **You need** lessons {lesson}`self_attention`, {lesson}`masking` and {lesson}`heads`. **Time:** 75 minutes, without *Deeper* sections and
# the [exercises](../work/ex_{lesson}`transformer`_transformer.ipynb).

# %% [markdown] id="stories"
# ## Stories whose chances are known
#
# To judge a model that writes, we want a language of which we know everything. Ours has 10,752 stories:

# %% id="stories-code"
from attn_course.experiments.stories import LENGTH, STORIES

print(STORIES[0])
print(STORIES[-1])
print(len(STORIES), "stories of", LENGTH, "words and stops")

# %% [markdown] id="loss"
# Five choices make a story: two names, a colour, a thing and a deed. All else follows: what somebody *loses* is *found*, and Ann is *she*.
#
# A model gives each next word a probability, and its **loss** is the mean of $-\ln p$ over the words that came. In story $i$ the probabilities
# multiply to that of the story, $p_i$, and so the $-\ln p$ of its words add up to $-\ln p_i$.

# %% [markdown] id="floor"
# All $S = 10752$ stories are drawn equally often. Since $-\ln$ is convex, the mean of $-\ln p_i$ is at least $-\ln$ of the mean of $p_i$. This
# mean is at most $1/S$, because the $p_i$ sum to at most 1:
#
# $$\frac{1}{S} \sum_{i=1}^{S} (-\ln p_i) \ge -\ln\Bigl( \frac{1}{S} \sum_{i=1}^{S} p_i \Bigr) \ge \ln S \key{loss-floor}$$
#
# So no model can have a mean loss below $\ln(10752) / 28 = 0.33$ a word. This is our **floor**: a model that sits on it knows the
# language perfectly.

# %% [markdown] id="stream"
# ## A stream that parts add to
#
# Which machine gets down to the floor? Attention ends with a sum: what the heads found is *added* to $X$.

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.transformer import figures

figures.machine()

# %% [markdown] id="stream-sum"
# A Transformer is built around such sums. It is a pile of $L$ **blocks** with two parts each: attention $A_l$, which moves information
# between positions, and hidden units $H_l$, which work at each position by itself. A part reads a normed copy $\mathrm{N}(X)$ and adds what
# it found:
#
# $$X_L = X_0 + \sum_{l=1}^{L} \bigl( A_l(\mathrm{N}(X_{l-1})) + H_l(\mathrm{N}(Y_l)) \bigr), \qquad
#  Y_l = X_{l-1} + A_l(\mathrm{N}(X_{l-1})) \key{stream-is-a-sum}$$

# %% id="stream-figure"
figures.stream()

# %% [markdown] id="stream-notice"
# The $X_l$ are the *residual stream*, $T$ rows of $d$ numbers. It starts as $X_0$, the rows of the words in a table. Each part reads
# the sum of all that was written before.

# %% [markdown] id="norm"
# ## The norm
#
# The size of the stream changes with all that is added. The parts should not notice, so each reads $\mathrm{N}(x)$, the *RMS norm*: every row divided
# by the root of its mean square, then each feature times a learned gain. A tiny $\varepsilon$ under the root guards against a row of zeros.
#
# By hand: $x = (1, 7)$ has the mean square 25. So without gains, and with $\varepsilon = 0$, $\mathrm{N}(x) = (0.2, 1.4)$. That is also the
# norm of $(10, 70)$: the norm forgets the size of $x$.

# %% [markdown] id="norm-turn"
# **Your turn.** {turn}`rms-norm-row`

# %% id="norm-turn-code" tags=["your-turn"]
my_norm = ...  # your function
check("rms-norm-row", my_norm)

# %% [markdown] id="norm-ours" tags=["ours"]
# ```python
# def my_norm(x, gain, eps):
#     return x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 * gain
# ```


# %% id="norm-code"
import numpy as np


def ours(x, gain, eps):
    return x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 * gain


norm = ours if my_norm is ... else my_norm

# %% [markdown] id="place"
# In 2017 the norm stood behind each sum. In front of the parts it leaves the stream alone, and the gradient, too, has a way from $X_L$ to $X_0$
# that passes no norm. Section {section}`deep` derives and measures what this changes.

# %% [markdown] id="units"
# ## Hidden units
#
# Of the two parts we know attention. In the other one, each of $m$ hidden units multiplies two readings of $x$, the first of them passed
# through a function $\phi$. The product says how much of a row $v_i$ is added:
#
# $$\mathrm{FF}(x) = \sum_{i=1}^{m} \phi(x \cdot g_i)\, (x \cdot u_i)\, v_i \key{gated-feed-forward}$$
#
# This looks like attention to $m$ learned values, the same for every position, but nothing makes the weights sum to 1. Such a unit can store
# a fact: it answers to *loses*, and $v_i$ raises *finds*. The $g_i$ and the $u_i$ are the columns of two matrices, and the $v_i$ are the rows
# of a third. Here $\phi(c) = c / (1 + e^{-c})$, which is called SiLU: $c$ times the **gate** $1 / (1 + e^{-c})$.

# %% [markdown] id="attention"
# ## Every line of attention
#
# That leaves attention, and it still lacks one piece. When a model writes, it reads one new word, while the keys and values of `kept` earlier
# words lie in its cache. Which keys may each new word see?
#
# **Your turn.** {turn}`causal-mask-behind-kept`

# %% id="mask-turn-code" tags=["your-turn"]
my_allowed = ...  # your function
check("causal-mask-behind-kept", my_allowed)

# %% [markdown] id="mask-ours" tags=["ours"]
# ```python
# def my_allowed(new, kept):
#     return np.tri(new, kept + new, kept)  # 1.0 where column <= row + kept
# ```


# %% id="mask-code"
def allowed_ours(new, kept):
    return np.tri(new, kept + new, kept)


allowed = allowed_ours if my_allowed is ... else my_allowed

# %% [markdown] id="model-text"
# Queries and keys are told their places by a rotation (lesson {lesson}`self_attention`), which turns pairs of neighbouring features by
# angles that grow with the place:


# %% id="turned-code"
import torch
from torch import nn
from torch.nn.functional import cross_entropy, silu


def turned(x, first, theta):
    d_k, places = x.shape[-1], first + torch.arange(x.shape[-2])
    angle = places[:, None] * theta ** (-torch.arange(0, d_k, 2) / d_k)
    cos, sin, even, odd = angle.cos(), angle.sin(), x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


# %% [markdown] id="attend-text"
# Attention has heads that may share key heads (lesson {lesson}`heads`), your mask, and a list `cache`. It is empty at first, and then
# holds the keys and values of the earlier words:


# %% id="attend-code"
def heads(x, d_k):  # (..., new, n_heads * d_k) -> (..., n_heads, new, d_k)
    return x.unflatten(-1, (-1, d_k)).swapaxes(-2, -3)


def attend(block, x, cache):  # x: (..., new, d)
    kept = cache[0].shape[-2] if cache else 0
    q = turned(heads(x @ block.w_query, block.d_k), kept, block.theta)
    k = turned(heads(x @ block.w_key, block.d_k), kept, block.theta)  # fewer heads
    v = heads(x @ block.w_value, block.d_k)
    if cache:  # put the earlier words in front
        k, v = torch.cat([cache[0], k], -2), torch.cat([cache[1], v], -2)
    cache[:] = k, v
    k, v = (y.repeat_interleave(block.shared, -3) for y in (k, v))  # as many heads
    unseen = torch.as_tensor(allowed(x.shape[-2], kept)) == 0  # (new, kept + new)
    scores = (q @ k.mT / block.d_k**0.5).masked_fill(unseen, -torch.inf)
    return (scores.softmax(-1) @ v).swapaxes(-2, -3).flatten(-2) @ block.w_output


# %% [markdown] id="attend-pause"
# This was the longest function of the machine, and a good place for a pause.

# %% [markdown] id="model"
# ## The whole model
#
# The hidden units are one line, {eq}`gated-feed-forward`. The last two lines of the block are one step of
# {eq}`stream-is-a-sum`: $Y_l$, and then $X_l = Y_l + H_l(\mathrm{N}(Y_l))$.


# %% id="think-code"
def think(block, x):
    # w_gate, w_in: the columns g_i, u_i; w_out: the rows v_i
    return (silu(x @ block.w_gate) * (x @ block.w_in)) @ block.w_out


# %% id="block-code"
def learned(*size):
    return nn.Parameter(torch.ones(size))


class Block(nn.Module):
    def __init__(self, d, d_k, shared, hidden, theta):
        super().__init__()
        self.d_k, self.shared, self.theta = d_k, shared, theta
        self.gain_attention, self.gain_hidden = learned(d), learned(d)
        self.w_query, self.w_output = learned(d, d), learned(d, d)
        self.w_key, self.w_value = learned(d, d // shared), learned(d, d // shared)
        self.w_gate, self.w_in = learned(d, hidden), learned(d, hidden)
        self.w_out = learned(hidden, d)

    def forward(self, x, cache):
        x = x + attend(self, norm(x, self.gain_attention, 1e-5), cache)
        return x + think(self, norm(x, self.gain_hidden, 1e-5))


# %% [markdown] id="gpt-text"
# The whole model is a table, blocks, one more norm, and the table again. The score of word $w$ is the product of the normed stream with row
# $e_w$ of the table, so one table serves for reading and for writing. It is called **tied**.


# %% id="gpt-code"
class GPT(nn.Module):
    def __init__(self, words, d, blocks, **sizes):
        super().__init__()
        self.table, self.gain = learned(words, d), learned(d)
        self.blocks = nn.ModuleList(Block(d, **sizes) for _ in range(blocks))

    def empty_cache(self):
        return [[] for _ in self.blocks]

    def forward(self, ids, cache=None):
        x = self.table[ids]
        for block, own in zip(self.blocks, cache or self.empty_cache(), strict=True):
            x = block(x, own)
        return norm(x, self.gain, 1e-5) @ self.table.T


# %% [markdown] id="weights-text"
# Its first weights are random, with a variance of 1 over the number of inputs, so that what comes out is about as large as what goes in.
# Because
# $2L$ parts add to the stream, the last matrix of each is divided by $\sqrt{2L}$ as well, which section {section}`deep` derives. The table is
# also the last matrix of the model, and as such it has $d$ inputs.


# %% id="first-weights"
def first_weights(model, rng):
    for name, w in model.named_parameters():
        if w.ndim == 2:  # gains stay 1
            inputs = w.shape[1] if name == "table" else w.shape[0]
            last = name.endswith(("w_output", "w_out"))
            std = 1 / np.sqrt(inputs * (2 * len(model.blocks) if last else 1))
            w.data = torch.from_numpy(rng.normal(size=w.shape) * std).float()


# 48 numbers a word: 4 heads of 12, and every 2 share a key head
sizes = {"d_k": 12, "shared": 2, "hidden": 96, "theta": 100.0}
mine = GPT(words=42, d=48, blocks=2, **sizes)
rng = np.random.default_rng(8)
first_weights(mine, rng)
print(sum(w.numel() for w in mine.parameters()), "numbers to learn")

# %% [markdown] id="train"
# ## Training
#
# A fresh model knows nothing yet. Row $t$ of its scores is about word $t + 1$. So the model reads all words but the last, and its targets
# are all words but the first. We keep 1,000 stories back, and train on the others for 300 steps:

# %% id="loss-code"
from attn_course.experiments.stories import FLOOR, tables

stories, kept_back = tables()  # rows of numbers; a full stop begins each row


def loss_of(model, rows):
    return cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


# %% id="train-code" tags=["live"]
optimiser, losses = torch.optim.AdamW(mine.parameters(), lr=1e-2), []
falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 300)
for _ in range(300):
    loss = loss_of(mine, stories[rng.integers(len(stories), size=32)])
    losses.append(loss.item())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    falling.step()
figures.training(losses, FLOOR)

# %% id="train-loss"
with torch.no_grad():
    loss = loss_of(mine, kept_back).item()
print("less than 0.05 above the floor:", FLOOR < loss < FLOOR + 0.05)

# %% [markdown] id="mistakes"
# ### Spot the mistake: too good
#
# Two friends train the same model, and report lower losses. One wrote `rows[:, :-1]` for the targets, too. The other one forgot the mask. The
# cell prints the loss of kept-back stories in three trainings of each, and the share of 500 stories written by each model that are stories of
# our language. **Predict** what the two friends get.

# %% id="mistakes-code" tags=["predicted"]
from attn_course.lessons.transformer.experiments import STORYTELLERS

record = STORYTELLERS.load()
print(f"the floor: {FLOOR:.4f}")
for name in ("two blocks", "targets not shifted", "mask forgotten"):
    loss, true = record.values("loss", name), record.values("true", name)
    print(f"{name:20} loss {loss}, true stories {true}")

# %% [markdown] id="mistakes-answer" tags=["answer"]
# Even a model made for the 1,000 stories that were kept back would have a loss of at least $\ln 1000 / 28 = 0.25$, unless it sees the answer.
# So both are refuted before a word is written.
# Without the shift the target is the word that was read, and when the model writes, it repeats it. Without the mask the next word stood in
# view, and when the model writes, it is not there yet. So no story is true. Where no floor is known, let the model write, or test for a leak
# (lesson {lesson}`masking`). The right model is 0.006 above the floor, for 28 words 0.17. The proof of the floor, with the chance $q$ of a true
# story in the place of 1, gives $-\ln q \le 0.17$. So $q$ is about 0.84 or more, which leaves room for false stories.

# %% [markdown] id="write"
# ## Writing, with a cache
#
# To write is to read the words so far, take a word from the last row of scores, append it, and go on. With a cache each step reads only the
# new word, since `attend` keeps what it needs of the others:


# %% id="write-code"
@torch.no_grad()
def write(model, ids, count, cached=True):
    cache = model.empty_cache() if cached else None
    unread = ids
    for _ in range(count):
        new = model(unread, cache)[..., -1:, :].argmax(-1)  # the likeliest word
        ids = torch.cat([ids, new], -1)
        unread = new if cached else ids
    return ids


# %% id="write-check"
from attn_course.experiments.stories import text

begun = kept_back[:, :13]  # up to the name of the one who helps
ended, slowly = write(mine, begun, 16), write(mine, begun[:100], 16, cached=False)
print(text(begun[0, 1:]), "...")
print("...", text(ended[0, 13:]))
print("the same words without a cache:", torch.equal(ended[:100], slowly))
share = (ended == kept_back).all(-1).float().mean().item()
print("more than nine in ten of 1000 stories end as they must:", share > 0.9)

# %% [markdown] id="write-notice"
# None of these stories was among those it learned from. Instead of taking the likeliest word, we can also draw one. Write a start of your own,
# from words of the stories:

# %% id="draw-live" tags=["live"]
from attn_course.experiments.stories import numbers

yours = "Mia has a"
for _ in range(3):
    ids = torch.tensor([numbers(". " + yours)])
    while ids.shape[-1] <= LENGTH:
        chances = mine(ids)[:, -1].softmax(-1)
        ids = torch.cat([ids, torch.multinomial(chances, 1)], -1)
    print(text(ids[0, 1:]))

# %% [markdown] id="real"
# ## The real model, in your lines
#
# The stories are easy: in our three trainings a model of a single block told as many right. Do the same lines write English? SmolLM2 was
# trained by others, on far more text than we could read. Here is what it writes, run by the course:

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-words"
start = "A long time ago, in a small village, there lived"
print(model.write(start, tokens=4))

# %% [markdown] id="real-text"
# Its sizes are below: 30 blocks, and 49,152 words or pieces of words. Now put its 134 million numbers into *your* class, of which not a line
# changes. `renamed` gives them your names. The cell compares all scores, and then your `write` goes on with the same words, from your cache:

# %% id="real-own" tags=["live"]
from attn_course.lessons.transformer.experiments_names import renamed

if model.is_here:
    large = {"d_k": 64, "shared": 3, "hidden": 1536, "theta": 100_000.0}
    with torch.device("meta"):  # make no numbers that are about to be replaced
        real = GPT(words=49_152, d=576, blocks=30, **large)
    real.load_state_dict(renamed(model.network.state_dict()), assign=True)
    ids = model.ids(start)
    with torch.no_grad():
        difference = np.abs(real(ids).numpy() - model.logits(start)).max()
    print(f"largest difference of {len(ids)} x 49152 scores: {difference:.5f}")
    print(model.tokenizer.decode(write(real, ids, 4).tolist()))

# %% [markdown] id="real-notice"
# It printed a difference of less than 0.0001 here, and the same sentence. If you wrote the two turns, your norm and your mask ran in each of its 30
# blocks. Between the numbers of its tokens and its scores, these lines leave out nothing. (Only the tokenizer is the course's.)
#
# **Limits.** How such numbers are found, with which texts, at what cost and by whose judgement, does
# not stand in seventy lines.

# %% id="verify-lesson"
verify_lesson("transformer")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | note |
# |---|---|---|
# | floor, {eq}`loss-floor` | {key}`loss-floor` | of $S$ equally likely stories |
# | the stream, {eq}`stream-is-a-sum` | {key}`stream-is-a-sum` | norm first |
# | hidden units, {eq}`gated-feed-forward` | {key}`gated-feed-forward` | each position by itself |

# %% [markdown] id="summary"
# ## Summary
#
# - Every part reads a normed copy of the stream, and adds what it found.
# - A loss far below the floor refutes the model, and not the floor.
# - With a cache, each step reads one word and writes the same words.
#
# So the parts become one machine by addition: a Transformer is a stream that attention and hidden units add to. You own every line of it,
# and the real one has the same lines. Lesson {lesson}`induction` asks how it copies what it read once. Now the
# [exercises](../work/ex_{lesson}`transformer`_transformer.ipynb).

# %% [markdown] id="parts"
# ## Deeper: norms, hidden units and the table
#
# A layer norm (LN) takes away the mean first. Without gains, for $a \ne 0$, $\varepsilon = 0$ and an $x$ that is not 0 (for LN: not
# constant), both forget the size of $x$,
#
# $$\mathrm{LN}(a\, x + b\, \mathbf{1}) = \frac{a}{|a|}\, \mathrm{LN}(x), \qquad \mathrm{RMS}(a\, x) = \frac{a}{|a|}\, \mathrm{RMS}(x)
# \label{norm-forgets-scale}$$
#
# because the root of the mean square of $a x$ is $|a|$ times that of $x$, and $b$ goes with the mean.

# %% [markdown] id="norm-change"
# A layer norm is an RMS norm of the centred row (gains and biases apart):
#
# $$\mathrm{LN}(x) = \mathrm{RMS}\Bigl( x - \frac{1}{d} \sum_{i=1}^{d} x_i\, \mathbf{1} \Bigr) \label{layer-norm-centres-first}$$
#
# How does $y = \mathrm{RMS}(x)$ change with $x$? Write $y = \sqrt{d}\, x / \|x\|$. The derivative of $\|x\|$ is $x^\top / \|x\|$, so the
# rule for quotients gives
#
# $$\frac{\partial y}{\partial x} = \frac{\sqrt{d}}{\|x\|} \Bigl( I - \frac{x\, x^\top}{\|x\|^2} \Bigr) \label{rms-norm-jacobian}$$
#
# and times $x$ this is zero, which is {eq}`norm-forgets-scale` again. If $\mathrm{N}$ is a layer norm with gain $\gamma$ and bias $\beta$, and
# a matrix follows, it can take them over (behind the last norm only if the table is not tied):
#
# $$\mathrm{N}(x)\, W = \mathrm{LN}(x)\, \bigl( \mathrm{diag}(\gamma)\, W \bigr) + \beta\, W \label{norm-gain-folds-away}$$

# %% [markdown] id="units-oldest"
# In their oldest form hidden units have one reading. Then $k_i$ are the columns of a first matrix, and $v_i$ the rows of a second one:
#
# $$\mathrm{FF}(x) = \sum_{i=1}^{m} \phi(x \cdot k_i)\, v_i \label{feed-forward-as-lookup}$$

# %% [markdown] id="gelu"
# GPT-2's units use another gate: the share of a standard normal distribution that lies below $x$.
#
# $$\mathrm{GELU}(x) = x \Bigl( \frac{1}{2} + \frac{1}{\sqrt{2\pi}} \int_{0}^{x} e^{-t^2 / 2}\, dt \Bigr) \label{gelu-as-integral}$$
#
# For both, the gate of $x$ and that of $-x$ sum to 1, so two units together can pass a number on unchanged:
#
# $$x = \mathrm{GELU}(x) - \mathrm{GELU}(-x) = \mathrm{SiLU}(x) - \mathrm{SiLU}(-x) \label{gates-of-opposite-inputs}$$
#
# What do such units do to the variance? For a standard normal $z$, integration by parts gives
#
# $$\mathbb{E}[\mathrm{GELU}(s\,z)] = \frac{s^2}{\sqrt{2\pi\,(1 + s^2)}}, \qquad
#  \mathbb{E}[\mathrm{GELU}(z)^2] = \frac{1}{3} + \frac{1}{2\pi\sqrt{3}} \label{gelu-moments}$$
#
# The second is 0.425. If the entries of $V$ are uncorrelated with variance $\sigma^2$ and mean 0, and the row $c$ holds $m$ such numbers $z$,
#
# $$\mathrm{Var}\bigl[ (\phi(c)\, V)_j \bigr] = m\, \sigma^2\, \mathbb{E}\bigl[ \phi(z)^2 \bigr] \label{variance-after-hidden-units}$$
#
# so for GELU the course's own Transformer divides by $0.425\, m$ and not by $m$. For SiLU the mean square is 0.356. A second reading of mean
# square 1, independent of the first, changes neither.

# %% [markdown] id="tied-text"
# A tied table has a price at the start. The stream still holds the word that was read, and if the entries of the table are uncorrelated, with
# mean 0 and variance $\sigma^2$, then
#
# $$\mathbb{E}[ e_v \cdot e_w ] = \sigma^2\, d\, [\, v = w \,] \label{tied-logit-means}$$
#
# where $[\, v = w \,]$ is 1 if both are the same word, and else 0. So a fresh model expects a word again more often than chance:

# %% id="tied-code"
fresh = GPT(words=42, d=48, blocks=2, **sizes)
first_weights(fresh, np.random.default_rng(8))
ids = torch.arange(42)[:, None]  # each word alone
chance = fresh(ids).softmax(-1).flatten(1).diagonal(dim1=0, dim2=1).mean().item()
print(f"a fresh model expects a word again: {chance:.2f}, and 1/42 = {1 / 42:.2f}")

# %% [markdown] id="deep"
# ## Deeper: why a deep pile can be trained
#
# A part computes $y = x + f(r)$, and reads $r = \mathrm{N}(x)$. When the model is trained, the gradient passes back through all parts. By the
# chain rule
#
# $$\frac{\partial y}{\partial x} = I + \frac{\partial f}{\partial r}\, \frac{\partial r}{\partial x} \label{pre-norm-jacobian}$$
#
# Through $2L$ parts the gradient is a product of such factors. Multiplied out, it has the term $I \cdot I \cdots I = I$. So the gradient at
# the end also reaches the beginning directly, unless other terms cancel it.
#
# With the norm behind, $y = x + f(x)$ and $r = \mathrm{RMS}(y)$ goes on. For $\varepsilon = 0$,
#
# $$\frac{\partial r}{\partial x} = \frac{\sqrt{d}}{\|y\|} \Bigl( I - \frac{y\, y^\top}{\|y\|^2} \Bigr)
#  \Bigl( I + \frac{\partial f}{\partial x} \Bigr) \label{post-norm-jacobian}$$
#
# The first factor is the norm's own derivative, {eq}`rms-norm-jacobian`. It takes away what points along $y$, and divides by the root mean
# square of $y$. The second one may stretch. So the gradient passes $2L$ products that need not be near $I$. A product of many such factors
# usually grows or shrinks.

# %% [markdown] id="start"
# And how much does each part of a fresh model add? Each ends with a matrix $W_l$ of $m$ rows. It adds $h_l W_l$ to the
# stream, where the row $h_l$ holds the $m$ numbers that the part has computed before this matrix. Draw all entries of the $W_l$ without
# correlation, with mean 0 and variance $\sigma^2$, and hold the $h_l$ fixed. Variances of uncorrelated terms add up:
#
# $$\mathrm{Var}[(h_l W_l)_j] = \mathrm{Var}\Bigl[ \sum_{i=1}^{m} (h_l)_i\, (W_l)_{ij} \Bigr]
#  = \sum_{i=1}^{m} (h_l)_i^2\, \sigma^2 = \sigma^2\, \|h_l\|^2$$
#
# Different parts have different matrices, so the variances of what $K$ parts add, add up once more:
#
# $$\mathrm{Var}_W\Bigl[ \Bigl( \sum_{l=1}^{K} h_l\, W_l \Bigr)_j \Bigr] = \sigma^2 \sum_{l=1}^{K} \|h_l\|^2 \label{stream-variance-by-depth}$$

# %% [markdown] id="start-depth"
# If $h_l$ has $m$ features of mean square 1, then $\|h_l\|^2 = m$. With the usual $\sigma^2 = 1/m$ every part adds 1, so the stream grows
# with the depth, and a late part, which still adds 1, matters less and less. If every last matrix is divided by $\sqrt{2L}$, each variance is
# divided by $2L$, and the $2L$ parts of $L$ blocks together add 1, no more than one part did. GPT-2 starts so.
#
# **Predict** the mean square of the stream behind $L = 24$ blocks, with and without the division. (In this
# test it starts at 1, in our model at $1/d$.)

# %% id="start-code" tags=["predicted"]
rng = np.random.default_rng(8)
for divisor in (1.0, np.sqrt(48)):
    x = rng.normal(size=(500, 256))
    for _ in range(48):
        W = rng.normal(size=(256, 256)) / np.sqrt(256)
        x = x + norm(x, 1.0, 1e-5) @ W / divisor
    print(f"divided by {divisor:.1f}: mean square {(x**2).mean():.0f}")

# %% [markdown] id="start-answer" tags=["answer"]
# Without the division it is about $1 + 48 = 49$, because each of the 48 parts adds 1. With it, it is about $1 + 48 \cdot \frac{1}{48} = 2$.
# (The $h_l$ are not held fixed here, since each part reads what the earlier ones wrote. But a fresh $W_l$ is independent of them.)

# %% [markdown] id="deep-four"
# Which of the two counts for the gradient? We compare four models: the norm first or behind the sum, and the last matrices divided or not.
# All have 48 blocks and draw the same numbers. Before any training we measure the gradient of one matrix of each block, `w_in` of its
# hidden units. **Predict** in which of the four the first block gets more than a hundred times the gradient of the last one, or less than a
# hundredth.

# %% id="place-figure" tags=["predicted"]
from attn_course.lessons.transformer.experiments import PLACE, WAYS

place = PLACE.load()
names = [", ".join(way) for way in WAYS]
figures.gradients_by_block({name: place.values("gradients", name) for name in names})

# %% [markdown] id="place-answer" tags=["answer"]
# In one: with the norm behind the sum, undivided. In the other three the ends of the curves differ by a factor of about 21 at most. So the
# place of the norm cannot be judged without the first weights.

# %% [markdown] id="deep-train"
# We train the four models with 12 blocks for 100 steps, at two learning rates, in three draws. The losses are those
# of stories kept back:

# %% id="deep-code"
for name in names:
    for rate in ("0.001", "0.01"):
        loss = place.values("loss", name, rate).round(2)
        print(f"{name:31} rate {rate:5}: loss {loss}")

# %% [markdown] id="deep-notice"
# With the norm behind the sum, undivided, the larger rate learns nothing but how often each word occurs: its loss is then 3.34. Divided,
# the same model learns. With the norm first both rates work, divided or not. At the smaller rate, divided is better in either place, and
# then the norm first is ahead. At the larger rate the best is the norm first, undivided. The usual cure for models with the norm behind is
# to begin with a tiny rate and raise it slowly (Xiong et al., 2020); we have not tried it here.

# %% [markdown] id="cost"
# ## Deeper: what it costs
#
# With $m$ hidden units for each of $T$ positions, a multiply-add counted as 2,
#
# $$F = 4\,T\,d\,m, \qquad F_{\text{gated}} = 6\,T\,d\,m \label{feed-forward-flops}$$
#
# A GPT-2 of $L$ blocks, with $m = 4d$, biases and layer norms, $n$ tokens in a tied table and $T$ learned positions, has
#
# $$C = (n + T)\, d + L\, (12\, d^2 + 13\, d) + 2\, d \label{transformer-parameters}$$
#
# numbers: for the smallest one 124,439,808. A pass over $T$ tokens takes, without norms and softmax and with hidden pairs computed, too,
#
# $$F_{\text{pass}} = L\, \bigl( 24\, T\, d^2 + 4\, T^2\, d \bigr) + 2\, T\, d\, n \label{transformer-flops}$$
#
# operations, and one more token behind $t - 1$ that are kept takes
#
# $$F_{\text{step}} = L\, \bigl( 24\, d^2 + 4\, t\, d \bigr) + 2\, d\, n \label{decoding-flops}$$

# %% id="cost-alive"
from attn_course import alive

alive("transformer-parameters")

# %% id="cost-code"
n, T, L, d = 50_257, 1024, 12, 768
print("numbers:", (n + T) * d + L * (12 * d**2 + 13 * d) + 2 * d)
whole = L * (24 * T * d**2 + 4 * T**2 * d) + 2 * T * d * n
step = L * (24 * d**2 + 4 * T * d) + 2 * d * n
print(f"a pass over {T} tokens: {whole / 1e9:.0f} GFLOP")
print(f"the next token: {step / 1e9:.2f} GFLOP")

# %% [markdown] id="sources"
# ## Sources
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the Transformer, norm behind the sum.
# - R. Xiong et al. (2020), [arXiv:2002.04745](https://arxiv.org/abs/2002.04745): where the norm stands, and gradients at the start.
# - B. Zhang and R. Sennrich (2019), [arXiv:1910.07467](https://arxiv.org/abs/1910.07467): the RMS norm.
# - N. Shazeer (2020), [arXiv:2002.05202](https://arxiv.org/abs/2002.05202): gated hidden units.
# - M. Geva et al. (2020), [arXiv:2012.14913](https://arxiv.org/abs/2012.14913): hidden units as keys and values.
# - O. Press and L. Wolf (2016), [arXiv:1608.05859](https://arxiv.org/abs/1608.05859): tied tables.
# - A. Radford et al. (2019), *Language Models are Unsupervised Multitask Learners*, § 2.3: GPT-2, and its first weights.
# - L. Ben Allal et al. (2025), [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): SmolLM2.
# - A. Karpathy, [nanoGPT](https://github.com/karpathy/nanoGPT): a GPT in one file, to read next.
