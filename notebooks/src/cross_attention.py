# %% [markdown] id="title"
# # {lesson}`cross_attention` Cross-attention: one sequence asks another
#
# A network reads *the ninth of May 1998* piece by piece, and writes `1998-05-09` sign by sign. Here two sequences meet, of different lengths.
# **How does one sequence ask another, and does a picture of where it looked tell how it found its answer?** You will train this translator
# yourself, draw where it looked, and put the picture to the test.
#
# **You need** lessons {lesson}`attention`, {lesson}`masking` and {lesson}`heads`. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`cross_attention`_cross_attention.ipynb).

# %% [markdown] id="hook"
# ## Two translators
#
# The *reader* of the network makes a row of 48 numbers after each piece. Its *writer* sees every row, or only the last one, which is made when
# the whole sentence has been read. Nothing else differs. We trained each network three times, for 300 steps, and print which share of 1,000
# unseen dates is right to the last sign:

# %% id="hook-code"
from attn_course.lessons.cross_attention.experiments import DATES

record = DATES.load()
for sees in record.results[0]["right"]:
    print(f"{sees:26}", record.values("right", sees, "all"))

# %% [markdown] id="hook-notice"
# The writer that sees every row gets nearly all dates right. The one that sees the last row alone gets a quarter of them at most, and is still
# behind after five times as many steps. Here is the machine of lesson {lesson}`attention` with its two inputs lit:

# %% id="machine"
from attn_course.lessons.cross_attention import figures

figures.machine()

# %% [markdown] id="roles"
# ## Who asks, who answers
#
# Let $Y$ hold a row for each piece that is read, and $X$ a row for each sign that is written. It is the writer that lacks something, so queries
# are made from $X$, and as the source has it, keys **and** values are made from $Y$.

# %% [markdown] id="roles-table"
# We do *the ninth of May* by hand. A key says whether a piece tells the day or the month, and a value brings the two numbers:
#
# | | key | value |
# |---|---|---|
# | the | $(0, 0)$ | $(0, 0)$ |
# | ninth | $(1, 0)$ | $(9, 0)$ |
# | of | $(0, 0)$ | $(0, 0)$ |
# | May | $(0, 1)$ | $(0, 5)$ |
#
# A sign of the month asks with the query $(0, \ln 7)$, in which the division by the root is done.

# %% [markdown] id="roles-hand"
# Its scores are $0, 0, 0, \ln 7$, so the powers of $e$ are 1, 1, 1, 7, which sum to 10. May has seven tenths of the weight and *ninth* one tenth,
# and the sign takes home $0.7 \cdot (0, 5) + 0.1 \cdot (9, 0) = (0.9, 3.5)$. A sign of the day asks the same source with $(\ln 7, 0)$, and
# takes home $(6.3, 0.5)$. For all rows at once:
#
# $$Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}
# \key{cross-attention}$$

# %% [markdown] id="roles-sizes"
# $X$ is $T_q \times d_x$ and $Y$ is $T_k \times d_y$, with any four sizes. Only $d_k$ must be shared, and the projections see to that: $W_Q$ is
# $d_x \times d_k$, $W_K$ is $d_y \times d_k$, and $W_V$ is $d_y \times d_v$. Self-attention is the case $Y = X$. In this card, try the mistake
# *the source asks*: then the output has a row for each piece that was read, and none for a sign.

# %% id="roles-alive"
from attn_course import alive

alive("cross-attention")

# %% [markdown] id="roles-shapes"
# Now with sizes that all differ. The projections and the scores sum over 4, 6 and 7, so these appear in no shape:

# %% id="roles-code"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.reference import attention

rng = np.random.default_rng(9)
x, y = rng.normal(size=(3, 4)), rng.normal(size=(5, 6))  # three signs, five pieces
w_query, w_key = rng.normal(size=(4, 7)), rng.normal(size=(6, 7))
w_value = rng.normal(size=(6, 2))
output, weights = attention(x @ w_query, y @ w_key, y @ w_value, return_weights=True)
print("weights", weights.shape, " output", output.shape)

# %% [markdown] id="padding"
# ## Padding on both sides
#
# A batch is a rectangle, so short sentences are filled up with **padding**, and so are short targets, to a length of their own. Padded *keys*
# would take weight away, so $-\infty$ is added to their scores, and the rows of real signs are what they would be without padding, whatever finite
# numbers it holds. Padded *queries* take nothing from anybody, and their rows are left out of the loss.
#
# In a Transformer source and target attend to themselves as well, so the two paddings meet three tables of scores:

# %% id="padding-figure"
figures.paddings(["9", "May", "1998"], ["19", "98"], padded_to=(5, 4))

# %% [markdown] id="padding-spot"
# ### Spot the mistake: the padding of the wrong side
#
# Two paddings are easily exchanged. In this cell source and target both have five rows, of which three are real in the source, and all in the
# target. **Predict** which of two masks gives the outputs of the source without padding.

# %% id="padding-code" tags=["predicted"]
queries = rng.normal(size=(5, 4)) @ w_query
keys, values = y @ w_key, y @ w_value  # rows 3 and 4 are padding
alone = attention(queries, keys[:3], values[:3])
for name, length in (("source's", 3), ("target's", 5)):
    mask = np.arange(5)[None, :] < length  # the keys that every query sees
    padded = attention(queries, keys, values, mask=mask)
    print(f"with the {name} length:", np.allclose(padded, alone))

# %% [markdown] id="padding-answer" tags=["answer"]
# Only the first one does. The second lets every query read the padding, and as its shape fits, no error is raised. A test that finds the mistake
# changes the padding, and checks that no real output moves.

# %% [markdown] id="ask-turn"
# A weight is a fraction. The power of $e$ of a hidden key is left out of its numerator and denominator, so we may multiply it by 0 instead of
# adding $-\infty$ to the score.
#
# **Your turn: ask the source.** {turn}`ask-the-source`

# %% id="ask-turn-code" tags=["your-turn"]
my_ask = ...  # your function
check("ask-the-source", my_ask)

# %% [markdown] id="ask-ours" tags=["ours"]
# ```python
# def my_ask(x, y, w_query, w_key, w_value, visible):
#     query, key, value = x @ w_query, y @ w_key, y @ w_value
#     scores = query @ key.swapaxes(-1, -2) / key.shape[-1] ** 0.5
#     terms = np.e**scores * visible
#     weights = terms / terms.sum(-1, keepdims=True)
#     return weights @ value, weights
# ```

# %% [markdown] id="one-key"
# ## One key answers everybody alike
#
# What does the writer lack when it sees the last row alone? It attends to a source of *one* key, and a softmax over one score is 1, whatever the
# query is:
#
# $$T_k = 1 \;\Rightarrow\; z_i = y_1 W_V \key{one-key-ignores-queries}$$
#
# So every sign gets the same vector, which must hold the whole date. Early neural translators, too, handed a sentence over in one vector of fixed
# length, until in 2014 Bahdanau, Cho and Bengio suspected a bottleneck there, and let each step ask anew. (As our longer training shows, 48
# numbers can hold most dates.)

# %% [markdown] id="translator"
# ## Your translator
#
# Here it is, in plain PyTorch. Reader and writer are GRUs, networks that make each row from the row before and the piece at this place. So **row
# $j$ of the reader knows pieces 1 to $j$, and none after them**, and padding, which comes last, reaches no row of a real piece. From a row of
# the writer and what this row took home, a linear map makes a score for each sign, a *logit*. `ask` is your function.

# %% id="translator-code"
import torch
from torch import nn

from attn_course.lessons.cross_attention.experiments import ask as ours

ask = ours if my_ask is ... else my_ask


# %% id="translator-class"
class Translator(nn.Module):
    def __init__(self, n_pieces, n_signs, d_x=32, d_y=48, d_k=24):
        super().__init__()
        self.source, self.target = nn.Embedding(n_pieces, 16), nn.Embedding(n_signs, 16)
        self.reader = nn.GRU(16, d_y, batch_first=True)
        self.writer = nn.GRU(16, d_x, batch_first=True)
        shapes = ((d_x, d_k), (d_y, d_k), (d_y, d_y))
        drawn = (rng.normal(size=shape) / shape[0] ** 0.5 for shape in shapes)
        self.w = nn.ParameterList(torch.from_numpy(w).float() for w in drawn)
        self.output = nn.Linear(d_x + d_y, n_signs)

    def forward(self, source, written, visible):
        y, _ = self.reader(self.source(source))  # a row for each piece
        x, _ = self.writer(self.target(written))  # a row for each sign
        z, weights = ask(x, y, *self.w, visible)  # W_Q, W_K and W_V
        return self.output(torch.cat([x, z], -1)), weights


# %% [markdown] id="shift"
# In training the right signs $w_1, w_2, \ldots$ are known, and all rows of the writer are computed at once (*teacher forcing*). Row $t$ has to
# name $w_t$, and must not have read it. So the input is shifted to $w_0, \ldots, w_{T_q - 1}$: a start sign $w_0$ stands in front, and the last
# sign is left out. If $D$ is the network and $u_t$ are its logits for $w_t$:
#
# $$\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t, \qquad u_t = D(w_{0:T_q - 1})_t
# \label{shifted-input-hides-target}$$
#
# Here $\partial w_j$ moves the vector of a sign, and no derivative is 0 by accident. Row $t$ has read $w_0$ to $w_{t-1}$. We change $w_3$ in a
# target of six signs. **Predict** for which $t$ the logits $u_t$ move.

# %% id="shift-code" tags=["predicted"]
from attn_course.lessons.cross_attention.experiments import PIECES, SIGNS, seen, shifted

model, source = Translator(len(PIECES), len(SIGNS)), torch.tensor([[11, 12, 13]])
target, changed = torch.tensor([[4, 5, 6, 7, 8, 2], [4, 5, 9, 7, 8, 2]]).split(1)
before, after = (model(source, shifted(t), seen(source))[0] for t in (target, changed))
moved = (before != after).any(-1)[0].nonzero().flatten() + 1  # counted from 1
print("u_t moves for t =", moved.tolist())

# %% [markdown] id="shift-answer" tags=["answer"]
# The logits $u_4$, $u_5$ and $u_6$ move. Those for $w_3$ itself do not, because $w_3$ enters as the input of row 4. (`seen` marks all pieces but
# padding.)

# %% [markdown] id="train"
# The loss is the mean of $-\ln p$ of the right sign, over signs that are not padding. (Ours have none.) You train on
# four fifths of the days from 1900 to 2099, which are said in six ways: *the ninth of May 1998*; *May the ninth, 1998*; *9 May 1998*;
# *May 9, 1998*; *Saturday, the ninth of May 1998*; *1998, May 9*. It takes some seconds:

# %% id="train-code" tags=["live"]
from torch.nn.functional import cross_entropy

from attn_course.lessons.cross_attention.experiments import batch, split

days, kept_back = split(rng)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(300):
    _, source, target = batch(days, 128, rng)  # texts, and two tables of numbers
    logits, _ = model(source, shifted(target), seen(source))
    loss = cross_entropy(logits.flatten(0, 1), target.flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"the last loss: {loss.item():.2f}")

# %% [markdown] id="write"
# To write without a teacher, we take the likeliest sign, append it, and ask again:


# %% id="write-code"
@torch.no_grad()
def write(model, source, visible):
    written = torch.ones_like(source[:, :1])  # the start
    for _ in range(11):
        logits, weights = model(source, written, visible)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], 1)
    return written[:, 1:], weights


texts, source, target = batch(kept_back, 1000, rng)
written, _ = write(model, source, seen(source))
share = (written == target).all(-1).float().mean().item()
print("more than nine in ten new dates are right:", share > 0.9)

# %% [markdown] id="where"
# ## Where did it look?
#
# The weights of a translation are called its **alignment**: row $i$ says where the writer looked for sign $i$. Here is one date, translated
# without a mistake after each of our three trainings. **Predict** which pieces are read by the `5`, by the `9` of the day and by the hyphens.
# Will the three trainings agree?

# %% id="where-figure" tags=["predicted"]
from attn_course.lessons.cross_attention.experiments import alignment, pieces

told = [result["example"] for result in record.results]
text, date = told[0]["text"], told[0]["written"]
figures.three_alignments(pieces(text), date, [alignment(each) for each in told])

# %% [markdown] id="where-answer" tags=["answer"]
# The `5` reads *May* in all three. A hyphen stands at the same place in every date, but its weights must sum to 1 like any others, so it looks
# somewhere, and not at the same piece in all three. The `9` of the day reads *ninth* in the third training only, and in the two others it reads
# *of*! In those two even the `1` of the year reads the row of the next digit.

# %% [markdown] id="where-row"
# The word *of* is the same in every date of this phrasing, and yet the day is right. How? **A weight belongs to a row of $Y$, not to a word.**
# The third row is what the reader knew after *the ninth of*, and it may tell the day as well as the second one does.
#
# So what does the map rule out? Row $j$ knows no later piece, so a $z$ with all its weight on it takes nothing from later pieces. From which of
# the pieces 1 to $j$ it takes something, no weight tells. Your translator may have found another way:

# %% id="where-yours" tags=["live"]
from attn_course.lessons.cross_attention.experiments import sources

source = sources([text])
written, weights = write(model, source, seen(source))
mine = [SIGNS[n] for n in written[0, :10]]
figures.own_alignment(pieces(text), mine, weights[0, :10])

# %% [markdown] id="test"
# ## What a weight proves
#
# Does a large weight at least say that its row was *needed*? To find out, hide the key and see what changes.
#
# **Your turn: a formula.** {turn}`output-without-a-key`

# %% id="test-turn-code" tags=["your-turn"]
my_hidden = ...  # such as r"z - v_j", which is wrong
check("output-without-a-key", my_hidden)

# %% [markdown] id="test-ours" tags=["ours"]
# It is `r"\frac{z - p_j v_j}{1 - p_j}"`. The share of key $j$ leaves, and the other weights, which sum to $1 - p_j$, are divided by this sum.

# %% [markdown] id="test-formula"
# With $z'_j$ for the output when key $j$ is hidden, and $p_j < 1$:
#
# $$z'_j = \frac{z - p_j\, v_j}{1 - p_j} \key{output-without-a-key}$$
#
# So a map does prove one thing: where $p_j = 0$, hiding row $j$ changes nothing at this step, and where $p_j$ is small, little, unless $v_j$ is
# huge. Where $p_j$ is large, all depends on the other rows, which are scaled up and may say the same.

# %% [markdown] id="test-predict"
# Now the test. From the writer that was trained with every row we hide, at every step, the row of the month, and then the rows that say the day.
# Guessing finds one month in twelve, and one day in thirty. **Predict** what happens to months and days.

# %% id="test-code" tags=["predicted"]
for hidden in ("month", "day"):
    for part in ("month", "day"):
        print(f"{hidden} hidden, {part}s right:", record.values("hidden", hidden, part))

# %% [markdown] id="test-answer" tags=["answer"]
# With the month hidden, months fall to about a tenth, hardly more than guessing, and most days stay. So this row was needed, at least by a writer
# that was trained with it. With the day hidden, 9 to 31 days in a hundred are still right, where guessing finds 3. Something of the day must stand
# in other rows, too.

# %% [markdown] id="swap"
# In which? In texts like *the ninth of May 1998* we give the writer some rows, keys and values, from a text with another day, and all others
# from its own. Does it write its own day, the other one or neither? **Predict** from the three alignments in which training the row of *of*
# alone brings the other day least often.

# %% id="swap-code" tags=["predicted"]
for rows in record.results[0]["exchanged"]:
    other, own = (record.values("exchanged", rows, day) for day in ("other", "own"))
    print(f"{rows:15} other day {other}  own day {own}")

# %% [markdown] id="swap-answer" tags=["answer"]
# In the third, whose `9` read *ninth*: there the row of *of* brings the other day in 4 texts of a hundred, and the row of the day in 80. In the
# first two *of* brings it in 24 and 37. The word says no day, but its row remembers one. With both rows exchanged it is always the other day, and
# with all later rows never. So the day is read from these two rows, which each training uses in its own way.

# %% [markdown] id="real"
# ## The same question to a real model
#
# SmolLM2 of lesson {lesson}`start` has no second sequence. Its source is the beginning of its own text, and its causal mask lets what it writes
# look at what it has read. Does it ask, too? Two examples tell it what we want:

# %% id="real-load" tags=["live"]
from attn_course import language_model

smollm = language_model()

# %% id="real-code"
shots = "March 3, 2021 = 2021-03-03\nAugust 2, 1976 = 1976-08-02\n"
begun = shots + "June 13, 1939 = 1939-0"
for sign, chance in smollm.next_tokens(begun, 1).items():
    print(f"{chance:.2f} for {sign!r}")

# %% [markdown] id="real-head"
# It says 6, for June. Of its 270 heads, head 0 of layer 23 (counted from 0) gives *June* the most weight here, 0.95. We silence it, and for
# control five other heads of layers 21 to 23. Then we give *June*, in all heads of layer 23, the **values** that another month would have in its
# place, and leave the weights there as they are. The control is May in the six layers above. We print the three likeliest signs:

# %% id="real-changed"
others = ((21, 2), (22, 5), (23, 2), (23, 3), (23, 6))
changes = {
    "this head silenced": smollm.silenced((23, 0)),
    "five others silenced": smollm.silenced(*others),
    "layers 24 to 29, May": smollm.exchange_values("June", "May", range(24, 30)),
}
for month in ("February", "April", "May", "July", "September"):
    changes[f"layer 23, {month}"] = smollm.exchange_values("June", month, (23,))
for name, other in changes.items():
    chances = other.next_tokens(begun, 3).items()
    print(f"{name:21}", "  ".join(f"{sign} {chance:.2f}" for sign, chance in chances))

# %% [markdown] id="real-notice"
# Without this head the 6 falls from 0.67 to 0.15, nearly level with other signs. The values of another month in this one layer make the model
# write that month, in all five cases, and the controls leave it at 6. So here, too, the sign that is written asks for the month that was read,
# and takes home its value. We know it from the changes, and not from the weight.

# %% [markdown] id="own"
# ## Ask your own
#
# `Translator`, `write` and your `my_ask` are plain PyTorch. With other tables of numbers (1 is the start) and another length than 11 they learn to
# translate something else. Type a date of your own, in one of the six ways or in a new one. The cell hides its rows one by one. Which
# of them does yours need? (A part may stay right by luck.)

# %% id="own-code" tags=["live"]
text = "the first of April 2042"
source = sources([text])
for j, piece in enumerate(pieces(text)):
    visible = seen(source)
    visible[0, 0, j] = 0  # this row is hidden at every step
    written, _ = write(model, source, visible)
    print(f"without {piece:6}", "".join(SIGNS[n] for n in written[0, :10]))

# %% id="verify-lesson"
verify_lesson("cross_attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | one sequence asks another, {eq}`cross-attention` | {key}`cross-attention` |
# | a source of one row, {eq}`one-key-ignores-queries` | {key}`one-key-ignores-queries` |
# | a key hidden, {eq}`output-without-a-key` | {key}`output-without-a-key` |

# %% [markdown] id="summary"
# ## Summary
#
# - What is written asks, and what is read answers. Of the widths, only $d_k$ must agree.
# - Padding of the source is hidden as keys. Padding of the target is left out of the loss.
# - The writer's input is shifted by one, so that no row sees what it must name.
# - A source of one row answers every query alike.
#
# How does one sequence ask another? By queries from one, and keys and values from the other. Does the picture tell how the answer was found? It
# tells which rows were read, and that a row with weight 0 was not used at this step. It does not tell from which word an answer came, or which
# row was needed. For that, hide rows and exchange them.

# %% [markdown] id="gradient"
# ## Deeper: how does a word learn that it was read?
#
# Padding teaches nothing, on either side. Let rows $X'$ and $Y'$ of padding, with any finite numbers, stand below $X$ and $Y$, and write
# $Z(X, Y, M)$ for {eq}`cross-attention` with a mask $M$ added to the scores, which is 0 where it is not $-\infty$:
#
# $$\begin{gathered}
# Z\bigl([\,X;\, X'\,],\, [\,Y;\, Y'\,],\, M\bigr)_{1:T_q} = Z(X, Y), \\
# M_{ij} = -\infty \iff j > T_k \end{gathered} \label{padding-on-both-sides}$$
#
# With $m_t = 1$ for real signs of the target, 0 for padding, and $p_t = \mathrm{softmax}(u_t)$, the loss and its gradient are
#
# $$\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{\sum_t m_t}, \qquad
#  \frac{\partial \mathcal{L}}{\partial u_t} = \frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r} \label{loss-over-real-tokens}$$

# %% [markdown] id="gradient-source"
# From real rows the gradient reaches the source in two ways, because $Y$ was used twice, for keys and for values.
# With $dZ$ and $dS$ for the gradients at the output and at the scaled scores, lesson {lesson}`gradients` gives
#
# $$\begin{gathered}
# \frac{\partial \mathcal{L}}{\partial Y} = dK\, W_K^\top + dV\, W_V^\top, \\
# dV = P^\top dZ, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \end{gathered} \label{gradient-of-source}$$
#
# The products with $P^\top$ and $dS^\top$ sum over all rows of the target, so a word learns from every sign that asked it. And what does a word
# learn that has the weight 0 everywhere?

# %% id="gradient-code"
from attn_course.reference import attention_backward

unread = np.arange(5) == 4  # nobody may read the last piece
queries, g = x @ w_query, np.ones((3, 2))
back = attention_backward(queries, keys, values, g, mask=~unread[None, :])
for name, gradient in zip(("key", "value"), back[1:], strict=True):
    print(f"its {name} gets", gradient[4], " the first one", gradient[0].round(2))

# %% [markdown] id="gradient-answer"
# It learns nothing. The weight $p_{ij}$ is a factor of what it gets as a value, $dV_j$, and of $dS_{ij}$ too, {eq}`score-gradient-against-mixture`.
# A row that nobody looks at cannot call attention to itself. (Without a mask no weight is exactly 0, so it would learn, but little. And behind a
# recurrent reader, as ours, its word also learns through the rows after it.)

# %% [markdown] id="annotations"
# In the first attention (2014) keys and values were the same vectors, the reader's states $h_j$, called *annotations*. The writer's previous
# state asks, by a score $a$ that is a small network, {eq}`additive-score`:
#
# $$c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})},
#  \qquad e_{ij} = a(s_{i-1}, h_j) \label{context-from-alignment-model}$$
#
# For one step, let score $e_j$ depend on no other annotation than $h_j$. As a value $h_j$ moves $c$ by its weight, and as a key it moves its
# score, which by {eq}`weighted-mean-derivative` moves $c$ at the rate $\alpha_j (h_j - c)$. With columns for vectors:
#
# $$\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (h_j - c)\, \Bigl( \frac{\partial e_j}{\partial h_j} \Bigr)^{\!\top} \Bigr)
# \label{context-derivative-by-annotation}$$
#
# So each row is one step away, with a factor $\alpha_j$. From the last row alone the way back to row $j$ is a product of $T_k - j$ Jacobians.

# %% [markdown] id="cost"
# ## Deeper: what is paid only once?
#
# While it writes, a decoder asks row by row, $T_q$ times, but the source does not change. Its keys and values are computed **once** and kept.
# With 2 operations for a multiplication and its addition:
#
# $$F = 2\, T_k\, d_y\, (d_k + d_v) + T_q \bigl( 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr) \label{cross-attention-decoding-flops}$$
#
# The cache of lesson {lesson}`heads` grows by a row at each step. This one is full from the start. **Predict** how many times cheaper 100 steps
# become for a source of 100 rows, if all widths are 64.

# %% id="cost-code" tags=["predicted"]
source_once, step = 2 * 100 * 64 * 128, 2 * 64 * 64 + 2 * 100 * 128
print(f"the source {source_once / step:.0f} times as dear as a step")
print(f"{100 * (source_once + step) / (source_once + 100 * step):.0f} times cheaper")

# %% [markdown] id="cost-answer" tags=["answer"]
# It becomes 33 times cheaper, since projecting the source costs 48 times as much as the rest of a step. `write` of this lesson saves none of it:
# it reads source and target anew for each sign.

# %% id="cost-alive"
alive("cross-attention-decoding-flops")

# %% [markdown] id="back"
# ## Deeper: may a map be read by columns?
#
# In our example by hand the month gave *May* 0.7 of its weight. If *May* asked, how much would it give to the month? The scores are the same, and
# only the softmax runs the other way, over the two signs. The powers of $e$ in May's column are 7 and 1, so May gives the month
# $7/8 = 0.875$. And *the*, which nobody wants, gives each sign a half. Each direction has normalisers of its own:
#
# $$p_{ij}\, N_i = p'_{ji}\, N'_j, \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}
# \label{balance-of-both-directions}$$
#
# For the month and May, $0.7 \cdot 10 = 0.875 \cdot 8 = 7$. The columns of $P$ do not sum to 1, so a column of an alignment is no translation in
# the other direction:

# %% id="back-alive"
alive("balance-of-both-directions")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed vector as a bottleneck, and soft
#   alignments.
# - M.-T. Luong, H. Pham and C. D. Manning (2015), [arXiv:1508.04025](https://arxiv.org/abs/1508.04025): attention behind the writer's
#   recurrence, as here.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): encoder and decoder without recurrence.
# - S. Jain and B. C. Wallace (2019), [arXiv:1902.10186](https://arxiv.org/abs/1902.10186), and S. Wiegreffe and Y. Pinter (2019),
#   [arXiv:1908.04626](https://arxiv.org/abs/1908.04626): is attention explanation?
