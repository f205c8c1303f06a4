# %% [markdown] id="title"
# # {lesson}`heads` Multi-head attention: several weights for one position
#
# One head gives each position one row of weights. Yet a layer of a language model has nine heads, or a hundred, usually so narrow that
# together they need no more parameters than one wide head. **What can several narrow heads do that one wide head cannot?**
#
# **You need** lessons {lesson}`attention` and {lesson}`self_attention`. **Time:** 60 minutes, without a list of your own, *Deeper* sections
# and the [exercises](../work/ex_{lesson}`heads`_heads.ipynb).

# %% [markdown] id="hook"
# ## Both neighbours
#
# Eight places stand in a ring, and each gets one of eight colours by lot, which we number from 0 to 7. The task is to name, at each place,
# the colours before and after it. Below the colours of the first ring stand the right answers:

# %% id="hook-task"
import numpy as np
import torch


def draw(rng, count):  # rings of eight places, each with one of eight colours
    return torch.tensor(rng.integers(8, size=(count, 8)))


def neighbours(rings):  # the colours before and after each place
    return torch.stack([rings.roll(1, dims=1), rings.roll(-1, dims=1)], dim=-1)


rings = draw(np.random.default_rng(2), 1024)
print("colours", *rings[0].tolist())
for side, right in zip(("before", "after"), neighbours(rings[:1])[0].T, strict=True):
    print(f"{side:7}", *right.tolist())

# %% [markdown] id="hook-reads"
# One layer of attention gets this task. At each place it reads the sum of two vectors, one for the colour and one for the place. From what
# the layer returns there, a linear map must name both neighbours:

# %% id="hook-code"
from torch import nn
from torch.nn.functional import cross_entropy


class Ring(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.colour = nn.Embedding(8, 32)
        self.place = nn.Embedding(8, 32)
        self.layer = nn.MultiheadAttention(32, n_heads, bias=False, batch_first=True)
        self.names = nn.Linear(32, 2 * 8)  # scores for 8 colours before, and 8 after

    def forward(self, rings):  # (batch, 8)
        x = self.colour(rings) + self.place.weight  # (batch, 8, 32)
        z, self.weights = self.layer(x, x, x, average_attn_weights=False)
        return self.names(z).unflatten(-1, (2, 8))  # (batch, 8, 2, 8)


# %% [markdown] id="hook-starts"
# A *head* is one run of attention. We give the layer one head of width 32, or two of width 16 side by side. $W_O$ merges what they return. On
# our ring, nothing is masked, and $X$ is not added:

# %% id="machine"
from attn_course.lessons.heads import figures

figures.machine()

# %% [markdown] id="hook-fresh"
# The folded cell trains such a model on fresh rings:


# %% id="hook-train" tags=["hide-input"]
def train(model, seed):
    rng = np.random.default_rng(seed)
    free = [w for w in model.parameters() if w.requires_grad]  # what is not frozen
    for w in free:
        w.data = torch.tensor(rng.normal(0, 0.2, w.shape)).float()
    adam = torch.optim.Adam(free, lr=0.01)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 300)
    for new in draw(rng, 300 * 64).split(64):
        adam.zero_grad()
        cross_entropy(model(new).flatten(0, 2), neighbours(new).flatten()).backward()
        adam.step()
        slower.step()
    return model.requires_grad_(False)


# %% [markdown] id="hook-bet"
# **Predict** which model names both neighbours. Does the other one know a little of each, or one of them well?


# %% id="hook-result" tags=["predicted"]
def named(answers, rings):  # how often each neighbour is named right
    right = (answers.argmax(dim=-1) == neighbours(rings)).float()
    return "before {:.2f}, after {:.2f}".format(*right.mean(dim=(0, 1)))


for seed in (2, 1, 0):
    one, two = train(Ring(n_heads=1), seed), train(Ring(n_heads=2), seed)
    answers = one(rings).argmax(dim=-1)  # (1024, 8, 2)
    twice = (answers[..., 0] == answers[..., 1]).float().mean()
    print(f"1 head: {named(one(rings), rings)}, the same answer twice {twice:.2f}")
    print(f"2 heads: {named(two(rings), rings)}")

# %% [markdown] id="hook-answer" tags=["answer"]
# Two heads name both neighbours every time. One head names only one of them. For the other it almost always repeats the same answer, which is
# right at one place of eight.

# %% [markdown] id="hook-notice"
# Where do the heads look? We average their weights on both neighbours, after the last start:

# %% id="hook-maps"
place = torch.arange(8)
weights = torch.cat([one.weights, two.weights], dim=1)  # (1024, 3 heads, 8, 8)
on_before = weights[:, :, place, place - 1]  # (1024, 3, 8), and -1 is the last place
on_after = weights[:, :, place, (place + 1) % 8]
figures.looks(on_before.mean(dim=(0, 2)), on_after.mean(dim=(0, 2)))  # (3,) each

# %% [markdown] id="hook-riddle"
# Each of the two heads looks at one neighbour. The single head looks at both, and the place before, which it names every time, leads by only
# 0.04. In the other starts, too, the neighbour it names has the larger weight.

# %% [markdown] id="why"
# ## How can a lead of 0.04 decide everything?
#
# A head returns a mixture of what it reads. Let red be 0, and blue 1. The card draws the mixtures of the four pairs twice, first in the colour
# before, then in the colour after. Move its slider. Can one threshold on the mixture tell the colour before? And the colour after?

# %% id="mixture-card"
figures.mixture_explorable()

# %% [markdown] id="why-cut"
# A threshold tells only the colour of the place that leads. Say that the place before leads with 0.6 to 0.4, and that a linear map must tell
# the colour *after*. It gives each mixture a score, which must be positive where blue comes after, and negative where red does:
#
# | before, after | mixture | score must be |
# |---|---|---|
# | red, red | $0.6 \cdot 0 + 0.4 \cdot 0 = 0$ | negative |
# | red, blue | $0.6 \cdot 0 + 0.4 \cdot 1 = 0.4$ | positive |
# | blue, red | $0.6 \cdot 1 + 0.4 \cdot 0 = 0.6$ | negative |

# %% [markdown] id="why-wide"
# So the middle row needs the highest score. But its mixture lies between the two others, and a linear score can only rise with the mixture,
# or fall, or stay. So it is never highest in the middle.

# %% [markdown] id="why-both"
# Can a head of width 32 do better? Its mixture is a vector, but a score is one number, and again the middle row ends up in the middle.
#
# Let the weights of the head be the same for all colours, and let $D$ be the score of "blue comes after" minus that of "red comes after".
# Behind the weights, everything is linear. So the colour at a place adds to $D$ a number of its own, $r$ for red or $b$ for blue, times the
# weight of the place. If "red, red" has $D_0$, and nothing else on the ring changes, the three rows of the table have
#
# $$D_0, \qquad D_0 + w_{\mathrm{after}}\, (b - r), \qquad D_0 + w_{\mathrm{before}}\, (b - r)$$

# %% [markdown] id="why-signs"
# Again the second must be above both others. But no weight is negative, so whatever $r$ and $b$ are, it lies between them or equals one of
# them, unless the place after leads, by however little.

# %% [markdown] id="why-two"
# To tell the colour *before*, the place before must lead, in the same way. So one head with fixed weights cannot tell both, but two heads
# can, because a different place may lead in each.
#
# The weights of our single head change a little with the colours, so the proof does not bind it. Does the same place always lead?

# %% id="why-vary"
leads = 100 * (on_before > on_after)[:, 0].float().mean()  # 1024 x 8 cases
print(f"the place before leads in {leads:.0f} of 100 cases")

# %% [markdown] id="why-roughly"
# It nearly always does, and the answers show that our head found no way out. Two heads **return several things separately**, ready for a
# linear map.

# %% [markdown] id="split"
# ## A head is a block of columns
#
# A second head costs no parameters, because $W_Q$, $W_K$, $W_V$ and $W_O$ are 32 by 32 in both layers. The layer of `two` only cuts its
# queries, keys and values, of 32 columns each, into two blocks of 16. A **head** is attention on one block of queries, one of keys and one of
# values:

# %% id="attend"
from attn_course import check, verify_lesson


def attend(query, key, value):  # (q_len, d_k), (kv_len, d_k), (kv_len, d_v)
    scores = query @ key.mT / np.sqrt(query.shape[-1])  # (q_len, kv_len)
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = terms / terms.sum(axis=-1, keepdims=True)
    return weights @ value  # (q_len, d_v)


# %% [markdown] id="loop-goes-on"
# A loop calls it for each head:


# %% id="loop-ours"
def heads_by_loop(query, key, value, n_heads):
    queries = np.split(query, n_heads, axis=-1)  # n_heads blocks, (T, d_k) each
    keys = np.split(key, n_heads, axis=-1)
    values = np.split(value, n_heads, axis=-1)
    outputs = [attend(queries[h], keys[h], values[h]) for h in range(n_heads)]
    return np.concatenate(outputs, axis=-1)  # (T, n_heads * d_v)


# %% [markdown] id="small"
# Let two heads have one column each. In *the cat sat*, "sat" asks with the query $(\ln 8, \ln 8)$:
#
# | | key | value |
# |---|---|---|
# | the | $(0, 1)$ | $(0, 3)$ |
# | cat | $(1, 0)$ | $(2, 0)$ |
# | sat | $(0, 0)$ | $(0, 0)$ |

# %% [markdown] id="small-heads"
# The first head reads the first column. The root of its width is 1, so its scores are $0$, $\ln 8$ and $0$. Therefore "cat" gets the weight
# $\frac{8}{1 + 8 + 1}$, and the head returns $0.8 \cdot 2 = 1.6$. What does the second one return? A single head of width 2 scores "the" and
# "cat" alike, and mixes them.

# %% id="small-code"
query = np.log([[1.0, 1], [1, 1], [8, 8]])  # the last row is that of "sat"
key = np.array([[0.0, 1], [1, 0], [0, 0]])
value = np.array([[0.0, 3], [2, 0], [0, 0]])
print("two heads:", heads_by_loop(query, key, value, 2)[-1].round(2))
print("one head: ", heads_by_loop(query, key, value, 1)[-1].round(2))

# %% [markdown] id="columns"
# What does the cut do to the layer's matrices? With tokens as the rows of $X$, each column of the queries $X W_Q$ is $X$ times one column
# of $W_Q$. So if we cut the queries, we give each of the $H$ heads a narrow matrix of its own, $W_Q^{(h)}$. We write
# $\mathrm{split}(\cdot)_h$ for block $h$ of the columns:
#
# $$\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr] \key{heads-are-column-blocks}$$
#
# The input $X$ is not cut, so every head reads all of its features. With $d_k$ columns in a block of queries or keys, the loop computes for
# head $h$ the weights $P_h$ and the output $Z_h$:
#
# $$Z_h = P_h\, X W_V^{(h)}, \qquad
#  P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr) \key{attention-of-one-head}$$

# %% [markdown] id="thin"
# ## How narrow may a head be?
#
# If heads cost no parameters, why not take 16 of two columns each, or 32 of one? In a head of one column a score is a product of two
# numbers, $q\, k_j$. Each of the eight places asks such a head with its own $q$, and gives one place, its *favourite*, the most weight.

# %% [markdown] id="thin-bet"
# **Predict** how many different favourites a head of one column can have in a ring, whatever it has learned. Can 32 such heads name both
# neighbours?

# %% id="thin-code" tags=["predicted"]
for n_heads in (2, 16, 32):
    model = train(Ring(n_heads), seed=2)
    right = named(model(rings), rings)
    favourites = model.weights.argmax(dim=-1).flatten(0, 1)  # (1024 x n_heads, 8)
    most = max(len(row.unique()) for row in favourites)  # of one head, in one ring
    print(f"{n_heads:2} heads: {right}; at most {most} favourites")

# %% [markdown] id="thin-answer" tags=["answer"]
# Where $q$ is positive, the largest key gets the most weight, and where it is negative, the smallest. So, ties apart, a head of one column
# has at most two favourites in a ring, and cannot follow a neighbour around. With a second column it may have more, here up to seven. Yet 32
# heads of one column, trained from this start, miss only two answers in a hundred. They do it together: from 16 of their outputs, drawn at
# random, a new linear map names only about two thirds, but from eight columns of each wide head it names all.

# %% [markdown] id="at-once"
# ## From the loop to a layer
#
# How does real code run all heads at once? Since `@` and `.mT` work on the last two axes, one call of `attend` is enough, if the arrays have
# the shape $(B, H, T, d_k)$. The shortest way there is one `reshape`.

# %% [markdown] id="at-once-trap"
# **Predict** how often `two` still names its neighbours if its heads are cut in this way, and from which places head 0 gets its eight rows.

# %% id="at-once-trap-code" tags=["predicted"]
x = two.colour(rings) + two.place.weight  # (1024, 8, 32)
w_in = two.layer.in_proj_weight.T  # (32, 96): W_Q, W_K and W_V side by side
query, key, value = np.split((x @ w_in).numpy(), 3, axis=-1)  # (1024, 8, 32) each
looped = np.array([heads_by_loop(query[b], key[b], value[b], 2) for b in range(1024)])

sides = (side.reshape(1024, 2, 8, 16) for side in (query, key, value))  # (B, H, T, d_k)
reshaped = attend(*sides).reshape(1024, 8, 32)
merged = two.layer.out_proj(torch.tensor(reshaped).float())
print(f"by reshape: {named(two.names(merged).unflatten(-1, (2, 8)), rings)}")
blocks = np.arange(16).reshape(8, 2)  # of one ring: two blocks of columns a place
first = blocks.reshape(2, 8)[0], blocks[:, 0]  # head 0 gets: by reshape, in the loop
print("head 0     reshape  loop")
marks = np.hstack([np.where(np.isin(blocks, mine), "■", "□") for mine in first])
for place, row in enumerate(marks):
    print(f"place {place}    {row[0]} {row[1]}     {row[2]} {row[3]}")

# %% [markdown] id="at-once-trap-answer" tags=["answer"]
# The shape fits, but `reshape` keeps all numbers in their order, and only cuts those of a ring in two halves. So head 0 gets both blocks of
# the first four places, while the loop gives it one block of every place. Places 0 and 4 now cannot see the place before them, nor places 3
# and 7 the one after. At six places of eight each neighbour is still named, and at the two others by chance: $\frac68 + \frac28 \cdot
# \frac18 = 0.78$. Nothing else tells of the mistake.

# %% [markdown] id="at-once-axes"
# So we must cut only the columns, and then swap heads and places.

# %% [markdown] id="by-head-turn"
# **Your turn: one line.** {turn}`columns-to-heads`

# %% id="by-head-turn-code" tags=["your-turn"]
my_by_head = ...  # your function, such as lambda side, n_heads: ...
check("columns-to-heads", my_by_head)

# %% [markdown] id="by-head-goes-on"
# Ours is folded.


# %% id="by-head-ours" tags=["hide-input"]
def by_head_ours(side, n_heads):  # (B, T, H d_k)
    blocks = side.reshape(*side.shape[:2], n_heads, -1)  # (B, T, H, d_k)
    return blocks.swapaxes(1, 2)  # (B, H, T, d_k)


by_head = by_head_ours if my_by_head is ... else my_by_head

# %% id="at-once-code"
z = attend(by_head(query, 2), by_head(key, 2), by_head(value, 2))  # (1024, 2, 8, 16)
merged = z.swapaxes(1, 2).reshape(1024, 8, 32)  # side by side again
print("the same as the loop:", np.allclose(merged, looped, atol=1e-5))
unswapped = z.reshape(1024, 8, 32)
print("without the swap back:", np.allclose(unswapped, looped, atol=1e-5))

# %% [markdown] id="at-once-swap"
# Around these lines, we write a class for models of your own, with the projections and a causal mask:


# %% id="layer"
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.project = nn.Linear(d_model, 3 * d_model, bias=False)  # W_Q, W_K, W_V
        self.output = nn.Linear(d_model, d_model, bias=False)  # W_O

    def forward(self, x, causal=False):  # (B, T, d_model)
        sides = self.project(x).chunk(3, dim=-1)  # (B, T, H d_k) each
        q, k, v = (by_head(side, self.n_heads) for side in sides)  # (B, H, T, d_k)
        scores = q @ k.mT / q.shape[-1] ** 0.5  # (B, H, T, T)
        if causal:
            scores = scores + torch.full_like(scores, -torch.inf).triu(1)  # later keys
        z = scores.softmax(dim=-1) @ v  # (B, H, T, d_k)
        return self.output(z.swapaxes(1, 2).flatten(2))  # (B, T, d_model)


# %% [markdown] id="layer-same"
# With the matrices of `two`, our class must agree with PyTorch's layer, with and without the mask:

# %% id="layer-code"
ours, theirs = MultiHeadAttention(d_model=32, n_heads=2), two.layer
ours.project.weight.data = theirs.in_proj_weight
ours.output.weight.data = theirs.out_proj.weight
later = torch.full((8, 8), -torch.inf).triu(1)
for causal, mask in ((False, None), (True, later)):
    right, _ = theirs(x, x, x, attn_mask=mask)
    same = torch.allclose(ours(x, causal), right, atol=1e-5)
    print(f"causal={causal}, the same as PyTorch: {same}")

# %% [markdown] id="merge"
# ## The layer adds up its heads
#
# What does a single head contribute to its layer? $W_O$ maps the $H$ outputs of a position, which stand side by side, back to the width of
# the tokens. We cut it into $H$ blocks of $d_v$ *rows*. In the product, the columns of head $h$ meet only block $h$:
#
# $$\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)} \key{output-projection-sums-heads}$$

# %% [markdown] id="merge-sum"
# So the layer is a **sum over heads**: each head adds a term of its own, and we silence a head by leaving out its term.

# %% [markdown] id="silence-turn"
# **Your turn: silence a head.** {turn}`layer-without-a-head`

# %% id="silence-turn-code" tags=["your-turn"]
my_layer_without = ...  # your function
check("layer-without-a-head", my_layer_without)


# %% [markdown] id="silence-goes-on"
# Ours is folded.


# %% id="silence-ours" tags=["hide-input"]
def layer_without_ours(heads, w_output, silent):
    rows = np.split(w_output, len(heads))  # blocks of d_v rows
    return sum(heads[h] @ rows[h] for h in range(len(heads)) if h != silent)


my_layer_without = layer_without_ours if my_layer_without is ... else my_layer_without

# %% [markdown] id="silence-ring-bet"
# Now your function silences head 0 of `two`, which looks at the place before, and then head 1:

# %% id="silence-ring-code"
w_o = two.layer.out_proj.weight.numpy().T
for silent in (0, 1):
    added = np.array([my_layer_without(heads, w_o, silent) for heads in z])
    answers = two.names(torch.tensor(added).float()).unflatten(-1, (2, 8))
    print(f"without head {silent}: {named(answers, rings)}")

# %% [markdown] id="silence-ring-answer"
# Each time, the colour it looked at is named no better than by chance.

# %% [markdown] id="real"
# ## A head with a job in a real model
#
# The ring was made for two heads. Do heads have such jobs where nobody arranged it? The language model SmolLM2-135M has 30 layers of nine
# heads, all counted from 0. Each head has queries of its own, but every three share keys and values. The model reads a list that begins
# again:

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()
words = "river green paper seven tiger horse gold cup. river green"

# %% [markdown] id="real-look"
# Which of the 270 heads give the most weight, on average, to the token before?

# %% id="real-maps"
p = model.maps(words)  # layer, head, query, key
t = np.arange(2, p.shape[-1])  # from 2 on: many heads favour the first token
back = p[:, :, t, t - 1].mean(axis=-1)  # (30, 9)
for number in np.argsort(-back, axis=None)[:6]:
    layer, head = divmod(int(number), 9)
    weight = back[layer, head]
    print(f"layer {layer:2}, head {head}: {weight:.2f}", "#" * round(20 * weight))

# %% [markdown] id="real-hold"
# Four heads stand out. But weights only show where a head looks, so we silence the first of them.

# %% [markdown] id="real-copy"
# We chose this list ourselves, so we also measured six texts of 50 random tokens, each read twice. How much of the second round does the
# model name right, given all tokens before? For control, we silence the three others that look one back, then the eight others of layer 16.
#
# **Predict** what the model writes without head 0 of layer 16, and in which cases it still names most of the random tokens right.

# %% id="real-copying" tags=["predicted"]
from attn_course.lessons.heads.experiments_smollm2_copying import COPYING

for name, quiet in (("no head", model), ("head 0", model.silenced((16, 0)))):
    print(f"{name} silent:{quiet.write(words, tokens=6).removeprefix(words)}")
texts = COPYING.load()
others = "three others that look one back", "the eight others of layer 16"
choices = "no head", "head 0 of layer 16", *others
figures.silenced({name: 100 * texts.values("silenced", name) for name in choices})

# %% [markdown] id="real-answer" tags=["answer"]
# Without head 0 of layer 16, the model loses the list after one word, and names hardly any random token right. Without the three others, or
# the eight, it still names more than half, on average.

# %% [markdown] id="real-why"
# How does it help to look one token back? Two heads seem to share the work (see Olsson et al., 2022):
#
# ```text
# green   paper   seven  ...  green  ?
#   └── 1 ──┘                   │
#           └──────── 2 ────────┘
# ```
#
# 1. At "paper", head 0 of layer 16 notes that "green" came before.
# 2. At the second "green", a head of layer 17 looks for this note, and finds "paper".
#
# If so, without head 0 the most that a head of layer 17 gives to "paper" must fall:

# %% id="real-why-code"
eight = [(16, head) for head in range(1, 9)]
for name, silent in (("no head", []), ("head 0", [(16, 0)]), ("the others", eight)):
    to_paper = model.silenced(*silent).maps(words, layer=17)[:, -1, 2]  # (9,)
    most = to_paper.max()  # that any of the nine gives
    print(f"{name:10} silent: {most:.2f}", "#" * round(20 * most))

# %% [markdown] id="real-why-still"
# It does, and without the others it does not. Yet the model still writes "paper", and we have not tested why.

# %% [markdown] id="real-own-bet"
# Does every list need head 0? Put in one of yours, and silence a head of your choice. For control, the eight others of layer 16 are silent in
# the last line. If the whole model does not copy your list, it tells nothing about a head.

# %% id="real-own"
my_list, my_head = "tiger blue tree red queen paper stone seven", (16, 0)
read = 2 * f"{my_list}. " + " ".join(my_list.split()[:2])
for name, silent in (("no head", []), ("my head", [my_head]), ("the others", eight)):
    written = model.silenced(*silent).write(read, tokens=8)
    print(f"{name} silent:{written.removeprefix(read)}")

# %% [markdown] id="real-own-end"
# Ours does: without the head it is lost after three words. Can you find one that survives? One finding stands: in six random texts, copying broke without one head
# of 270, and most of it stayed without the eight beside it.

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
# - A head is a block of columns, and the layer adds up what its heads write.
# - A map only suggests what a head is for. Silence the head, and others for control.
#
# One wide head hands over a mixture of all places it reads. Since all go through the same $W_V$, a linear map cannot always
# tell what came from where. Several narrow heads, with no more parameters, can return them separately.
# Next, in lesson {lesson}`cross_attention`, one sequence asks another.

# %% [markdown] id="more"
# ## Deeper: is the other colour lost?
#
# Is the colour after gone from the mixture, or only out of reach for a linear map? Behind the head of `one`, we train a small network in
# place of the map. For control, a second head with the same values gives both places 0.48, and drops the rest:

# %% id="more-chosen" tags=["hide-input"]
from copy import deepcopy


class Even(nn.Module):  # the head of `one`, with the same weight for both neighbours
    def forward(self, x, *_, **options):  # is called as PyTorch's layer is
        value = x @ one.layer.in_proj_weight[64:].T  # X W_V: (batch, 8, 32)
        mixture = 0.48 * value.roll(1, dims=1) + 0.48 * value.roll(-1, dims=1)
        return one.layer.out_proj(mixture), None


def with_network(layer):
    model = deepcopy(one)  # all frozen, but for the network
    model.layer = layer
    model.names = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 16))
    return model


# %% [markdown] id="more-bet"
# **Predict** how often the network names each neighbour with the lead of 0.04, and with none.

# %% id="more-code" tags=["predicted"]
for name, layer in (("0.50 and 0.46", one.layer), ("0.48 and 0.48", Even())):
    net = train(with_network(layer), seed=0)
    print(f"{name}: {named(net(rings), rings)}")

# %% [markdown] id="more-answer" tags=["answer"]
# With the lead, the network names both almost every time: "red, blue" and "blue, red" are different mixtures. At 0.48 and 0.48 they are the
# same. Then every network must guess the order: it can be right where the colours are equal, at one place of eight, and at half of the
# others, $\frac18 + \frac12 \cdot \frac78 \approx 0.56$.

# %% [markdown] id="mixture"
# With equal weights, no linear map could be sure of either colour. The lead picks the one that it can name, and lets a network find the
# other.

# %% [markdown] id="sum"
# ## Deeper: how do several heads do more than one?
#
# With tokens of width $d$ (in the machine, `d_model`), the whole layer is
#
# $$\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
# \label{multi-head-attention}$$

# %% [markdown] id="sum-maps"
# It does more, but not with more parameters. $W_Q$ and $W_K$ have $d$ rows and $H d_k$ columns each, $W_V$ has $H d_v$ columns, and $W_O$
# as many rows. Together they hold
#
# $$N = H\,(2\, d\, d_k + 2\, d\, d_v) \label{multi-head-parameters}$$
#
# numbers, and still do if there are twice as many heads of half the widths. What the heads gain shows when we put
# {eq}`attention-of-one-head` into {eq}`output-projection-sums-heads`:
#
# $$\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr) \label{sum-of-head-maps}$$

# %% [markdown] id="sum-shifts"
# So each head applies its own map of features, $W_V^{(h)} W_O^{(h)}$, at the places that $P_h$ chooses. Suppose that each chooses a single
# place, $\Delta_h$ steps further on. We call such weights $S_h$, so row $t$ of $S_h X$ is $x_{t + \Delta_h}$. (A softmax can come near to
# them, but not to the rows of zeros where a step leads beyond the text.) With $W_h$ for the map of features, the layer returns
# $Y_t = \sum_h x_{t + \Delta_h} W_h$. This is a **convolution**, and each head is one entry of its filter (Cordonnier et al., 2020). The
# two heads of the ring are close to a convolution with the shifts $-1$ and $1$, on a text whose ends meet:
#
# $$\sum_{h=1}^{H} S_h\, X\, W_h = Y, \qquad (S_h)_{tj} = [\,j = t + \Delta_h\,] \label{shifted-heads-convolve}$$

# %% id="sum-maps-seen"
figures.ring_maps(weights.mean(dim=0))

# %% [markdown] id="narrow"
# Narrow heads have a price. The rows of $W_V^{(h)} W_O^{(h)}$ are combinations of the $d_v$ rows of $W_O^{(h)}$, so one head writes into at
# most $d_v$ directions. If all heads had the same weights, they would apply the map $W_V W_O$ together, which writes
# into at most $H d_v$ directions:
#
# $$\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
# \label{value-output-rank-bound}$$
#
# A narrow head cannot form all weights, either. The logarithms of its weights are the scores less one number for each row. The scores have
# at most the rank $d_k$, and these numbers add at most 1 to it. But the logarithms of positive weights for $T$ tokens may have the rank $T$
# (see Bhojanapalli et al., 2020).

# %% [markdown] id="cache"
# ## Deeper: what does a layer keep while it writes?
#
# A model writes one token at a time. With the causal mask (lesson {lesson}`masking`) the weights of later tokens are 0, so they drop out of
# row $t$. What is left is the query of token $t$ with the keys and values of tokens $1$ to $t$. With the mask on the right side:
#
# $$z_t = \mathrm{attention}(q_t,\, K_{1:t},\, V_{1:t}) = \mathrm{attention}(Q, K, V)_t \label{decoding-equals-full-pass}$$
#
# So no later token changes a key or a value, in any layer, and each layer keeps them in a **cache**. What would it take to compute all $T$
# tokens again for each new one? If $H d_k = H d_v = d$, the four projections take $2\, T d^2$ operations each, half of them additions. In
# each head, the scores take $2\, T^2 d_k$ operations, and the averages as many. Without the softmax and the scaling this makes
#
# $$F = 8\,T d^2 + 4\,T^2 d \label{multi-head-flops}$$
#
# With $d = 256$, a model writes 256 tokens with 137 times as many operations without a cache as with one.

# %% [markdown] id="shared"
# A layer that keeps fewer keys and values needs a smaller cache. So let $g$ neighbouring query heads share one key head and one value head
# (Shazeer, 2019; Ainslie et al., 2023). With $H_{kv}$ key heads, where $H_{kv}$ divides $H$, and with heads counted from 0, query head $h$
# uses key head $r$:
#
# $$Z_h = \mathrm{attention}(Q_h,\, K_r,\, V_r), \qquad r = \Bigl\lfloor \frac{h}{g} \Bigr\rfloor, \quad g = \frac{H}{H_{kv}}
# \label{grouped-query-attention}$$
#
# PyTorch computes nine query heads on three key heads for all tokens at once, and we compute them one token after the other:

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
# For each token, each key head of each layer keeps a key and a value, of $d_{\mathrm{head}} = d_k = d_v$ numbers of $b$ bytes:
#
# $$\frac{\text{bytes}}{\text{token}} = 2\, n_{\mathrm{layers}}\, H_{kv}\, d_{\mathrm{head}}\, b \label{kv-cache-bytes}$$
#
# The cell computes the cache of SmolLM2 for 8,192 tokens with its three key heads, and what it would be with nine. (The 135 million numbers
# of the model, of 16 bits, take 257 MiB.)

# %% id="cache-bytes-code"
for key_heads in (3, 9):
    numbers = 2 * key_heads * 64  # a key and a value for each key head
    size = 30 * numbers * 2 * 8192 / 2**20  # 30 layers, 2 bytes a number
    print(f"{key_heads} key heads: {numbers} numbers in a layer, {size:.0f} MiB in all")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): § 3.2.2, heads.
# - J.-B. Cordonnier, A. Loukas and M. Jaggi (2020), [arXiv:1911.03584](https://arxiv.org/abs/1911.03584): heads and convolutions.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): what narrow heads cannot weigh.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150): one key head for all.
# - J. Ainslie et al. (2023), [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): groups.
# - C. Olsson et al. (2022), [arXiv:2209.11895](https://arxiv.org/abs/2209.11895): pairs of heads that copy.
# - P. Michel, O. Levy and G. Neubig (2019), [arXiv:1905.10650](https://arxiv.org/abs/1905.10650), and E. Voita et al. (2019),
#   [arXiv:1905.09418](https://arxiv.org/abs/1905.09418): heads that can be removed.
