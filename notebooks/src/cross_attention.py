# %% [markdown] id="title"
# # {lesson}`cross_attention` Cross-attention: one sequence asks another
#
# Until now one sequence talked to itself. A translator has two: it writes one while it reads the other. So attention
# began, in 2014, and the same layer joins text to images or sound today.
#
# **Afterwards you can** write attention between sequences of different lengths and widths, put each of two paddings
# where it belongs, follow the gradient into the source, decode with keys and values computed once, and say what an
# alignment shows and what it does not.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax`, {lesson}`attention`, {lesson}`gradients`, {lesson}`self_attention`,
# {lesson}`additive`, {lesson}`masking` and {lesson}`heads` (recurrence, softmax, attention, gradients, projections, the additive
# score, masks, heads). **Time:** 70 minutes, without the [exercises](../work/ex_{lesson}`cross_attention`_cross_attention.ipynb).

# %% id="setup"
import numpy as np
import torch

from attn_course import alive, show, verify_lesson
from attn_course.lessons.cross_attention import figures
from attn_course.lessons.cross_attention.experiments import DATES, KINDS
from attn_course.lessons.cross_attention.experiments import alignment, pieces
from attn_course.modules import SequenceToSequence
from attn_course.reference import attention, attention_backward, padding_mask, softmax

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: at its left end again, but now it has two inputs. $X$ still makes the queries; the keys and
# the values come from $Y$.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## Two translators
#
# "the ninth of May 1998" is to become `1998-05-09`. Two networks learn it from examples, 300 steps each. Both read
# the sentence with the same recurrent encoder and write the date sign by sign with the same recurrent decoder. One
# hands its decoder the encoder's last states, 48 numbers; the other lets the decoder **look at all positions again**,
# with one layer of attention, before each sign. **Predict** the share of unseen dates that each translates without a
# mistake.

# %% id="hook-code" tags=["predicted"]
record = DATES.load()
for kind, name in (("fixed vector", "48 numbers"), ("additive", "looks again")):
    print(f"{name:12}", record.values("new dates", kind), " (three trainings)")

# %% [markdown] id="hook-answer" tags=["answer"]
# The one with 48 numbers gets about a third of them right, and the one that looks again practically all. A day out of two centuries is about 16 bits, so forty-eight numbers should be room enough. Yet in 300 steps the
# network has not learnt to pack a date and to take it apart again; with attention it need not be packed.

# %% [markdown] id="hook-notice"
# We build the layer first, and return to the dates in section {section}`dates`.

# %% [markdown] id="roles"
# ## Who asks, who answers
#
# Let $X$ hold the sequence that is being written, $T_q$ rows of $d_x$ features, and $Y$ the one that is read, $T_k$
# rows of $d_y$. **Assume** nothing about these four numbers. The writer needs something, so $X$ makes the queries;
# the source has it, so $Y$ makes keys *and* values. Put that into {eq}`attention`:
#
# $$Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}
# \label{cross-attention}$$
#
# Only one size must be shared, and the projections see to it: $W_Q$ is $d_x \times d_k$, $W_K$ is $d_y \times d_k$,
# and $W_V$ is $d_y \times d_v$.

# %% id="roles-alive"
alive("cross-attention")

# %% [markdown] id="roles-predict"
# Nothing else changes: rows of weights belong to the target and sum to 1 over the *source*, the output has one row
# for each row of $X$. **Predict** the shapes of weights and output below, and which of the six sizes appear in
# neither.

# %% id="roles-code" tags=["predicted"]
rng = np.random.default_rng(9)
x, y = rng.normal(size=(3, 4)), rng.normal(size=(5, 6))  # target 3 x 4, source 5 x 6
w_query, w_key = rng.normal(size=(4, 7)), rng.normal(size=(6, 7))
w_value = rng.normal(size=(6, 2))

weights = softmax(x @ w_query @ (y @ w_key).T / np.sqrt(7))
output = weights @ (y @ w_value)
assert np.allclose(output, attention(x @ w_query, y @ w_key, y @ w_value))
print("weights", weights.shape, " output", output.shape)

# %% [markdown] id="roles-answer" tags=["answer"]
# The weights have the shape $(3, 5)$ and the output has $(3, 2)$. Both widths, 4 and 6, and $d_k = 7$ appear in neither, because
# the projections and the score sum over them.

# %% [markdown] id="widths"
# The two widths meet inside the score:
#
# $$(x\, W_Q)\,(y\, W_K)^\top = x\, A\, y^\top, \qquad A = W_Q W_K^\top \in \mathbb{R}^{d_x \times d_y} \label{rectangular-bilinear-score}$$
#
# A *rectangular* matrix compares a vector of 4 features with one of 6. Without it there is nothing to compute. (In the card both have 3.)

# %% id="widths-alive"
alive("rectangular-bilinear-score")

# %% [markdown] id="spot-raw"
# ### Spot the mistake: the raw product, and one length for both
#
# "Given $X$ of $m \times v$ and $Y$ of $m \times l$, the weight of $y_j$ for $x_i$ is the softmax of $x_i \cdot y_j$;
# in translation the source asks, since it comes first." These are three mistakes, all from public texts. **Predict**
# what NumPy says to the raw product, and the shape of the output if the source asks.

# %% id="spot-raw-code" tags=["predicted"]
try:
    x @ y.T
except ValueError:
    print("x . y: 4 features against 6, no product")
asking, answering = rng.normal(size=(5, 7)), rng.normal(size=(3, 7))
swapped = attention(asking, answering, rng.normal(size=(3, 2)))
print("source asks:", swapped.shape, " wanted:", output.shape)

# %% id="spot-raw-form" tags=["predicted"]
show("cross-attention", wrong="the source asks")

# %% [markdown] id="spot-raw-notice" tags=["answer"]
# NumPy rejects the raw product, because the widths are unequal; and a source that asks gets an output for each *source*
# position. With equal lengths and widths both mistakes run silently, as in the last formula, so test
# with sizes that all differ. And the reason for the direction is not who comes first: a query stands for **what is still
# missing**, and that is the target.

# %% [markdown] id="special"
# ## Self-attention is the case Y = X
#
# Let one sequence play both parts. Then {eq}`cross-attention` becomes the layer of lesson {lesson}`self_attention`:
#
# $$Z(X, X) = \mathrm{softmax}\Bigl(\frac{X W_Q W_K^\top X^\top}{\sqrt{d_k}}\Bigr)\, X W_V \label{cross-attention-with-itself}$$
#
# There is also a way back. **Assume** $d_x = d_y$, write source and target into one sequence, and let a mask allow
# the rows of $X$ to see the rows of $Y$ only:
#
# $$Z_{\mathrm{self}}\bigl([\,Y;\, X\,]\bigr)_{T_k + i} =
#  \mathrm{softmax}\Bigl(\frac{x_i W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \label{cross-attention-by-masking}$$

# %% id="special-code"
source, target = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
w_k, w_v = rng.normal(size=(4, 7)), rng.normal(size=(4, 2))
both = np.vstack([source, target])
sees = np.arange(8) < 5  # the rows of the source
as_self = attention(both @ w_query, both @ w_k, both @ w_v, mask=sees[None, :])[5:]
as_cross = attention(target @ w_query, source @ w_k, source @ w_v)
print("one masked self-attention:", np.allclose(as_self, as_cross))

# %% [markdown] id="special-notice"
# So a model that only *continues* text can translate as well: the source stands in front, as a prompt. Its causal
# mask lets the target see source and target together, with one softmax and one set of projections for both.
# Cross-attention keeps them apart.

# %% [markdown] id="alignment"
# ## From one vector to an alignment
#
# What does the translator without attention do? It attends to a source of **one** row, the summary. A softmax over
# one score is 1, whatever the query:
#
# $$T_k = 1 \;\Rightarrow\; z_i = y_1 W_V \label{one-key-ignores-queries}$$
#
# Each step gets the same vector. Bahdanau et al. (2014) gave each step its own instead, {eq}`additive-attention`. Again, $h_j$, an
# *annotation*, is the encoder's state at source position $j$, and $s_{i-1}$ the decoder's state before it writes sign
# $i$; $a$ is now any score, in our experiment the additive one of {eq}`additive-score`:
#
# $$c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})},
#  \qquad e_{ij} = a(s_{i-1}, h_j) \label{context-from-alignment-model}$$

# %% [markdown] id="alignment-dictionary"
# Read it with {eq}`cross-attention` in mind: the state asks, annotations answer, and here keys and values are **the same
# vectors**. There is no database of keys with values of their own yet; that came later.

# %% [markdown] id="alignment-gradient"
# Why should it train faster? Follow the gradient from the context $c$ of one step back to one annotation, both (and the
# gradient of a score) taken as columns. **Assume** that, of all annotations, score $e_j$ depends on $h_j$ only. By the product rule $h_j$ moves
# $c$ as a value, with the weight $\alpha_j$, and as a key, where {eq}`softmax-derivative` gives
# $\partial c / \partial e_j = \sum_l \alpha_l (\delta_{lj} - \alpha_j)\, h_l = \alpha_j (h_j - c)$. Together:
#
# $$\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (h_j - c)\, \Bigl( \frac{\partial e_j}{\partial h_j} \Bigr)^{\!\top} \Bigr)
# \label{context-derivative-by-annotation}$$
#
# One step to *every* position, with the factor $\alpha_j$: direct, but weak where little is read. From the last state
# of an encoder that reads left to right, the way to $h_j$ is a product of $T_k - j$ Jacobians, as in {eq}`recurrent-gradient-product`.

# %% id="alignment-code"
one_row = attention(x @ w_query, y[:1] @ w_key, y[:1] @ w_value)
print("one key, three queries:\n", one_row)

# %% [markdown] id="hard"
# The matrix $\alpha$ is called an **alignment**: row $i$ says where the writer looked. If one score of a row leads
# clearly, we get a lookup of a single source position:
#
# $$\lim_{T \to 0^+} \sum_{j} \sigma(e_i / T)_j\, v_j = v_{r_i}, \qquad r_i \in \arg\max_j e_{ij} \label{hard-alignment-limit}$$
#
# ($T$ without an index is the temperature of {eq}`softmax-with-temperature`.) Only then "looked at" has a plain meaning; a row of halves is a
# mixture.

# %% id="hard-code"
scores = x @ w_query @ (y @ w_key).T
for temperature in (100.0, 1.0, 0.01):
    largest = softmax(scores / temperature).max(axis=1)
    print(f"T = {temperature:6}: largest weights {largest}")

# %% [markdown] id="order"
# ## Order, and padding on two sides
#
# Shuffle the source, and keys and values move together, so every sum stays the same. Shuffle the target, and the
# outputs are shuffled. With permutation matrices $\Pi$ and $\Pi'$, as in {eq}`permutation-equivariance`:
#
# $$Z(\Pi X,\, \Pi' Y) = \Pi\, Z(X, Y) \label{equivariant-target-invariant-source}$$
#
# Without positions, "the ninth of May 1998" and "1998 May of ninth the" are one source, and the digits 1, 9, 9, 8 a
# heap. So both sides need positions, {eq}`sinusoidal-positions`, or a recurrent network that puts order into its states.

# %% id="order-code"
shuffled = rng.permutation(5)
again = attention(x @ w_query, y[shuffled] @ w_key, y[shuffled] @ w_value)
print("source shuffled, same output:", np.allclose(output, again))

# %% [markdown] id="padding"
# Batches need rectangles, so both sequences are padded, to lengths of their own. Padded **keys** would take weight
# away; hide them, for every query. Padded **queries** take nothing from anybody: their rows are computed and ignored.
# With padding $X'$ and $Y'$, whatever it holds, and a mask $M$ that is 0 elsewhere,
#
# $$\begin{gathered}
# Z\bigl([\,X;\, X'\,],\, [\,Y;\, Y'\,],\, M\bigr)_{1:T_q} = Z(X, Y), \\
# M_{ij} = -\infty \iff j > T_k \end{gathered} \label{padding-on-both-sides}$$
#
# **Predict**: a batch of two, sources of 5 and 3 pieces padded to 5, targets of 2 and 4 signs padded to 4. Which
# cells of the two masks are hidden?

# %% id="padding-figure" tags=["predicted"]
visible = padding_mask(np.array([5, 3]), 5)  # (batch, 1, source_len)
triple = (rng.normal(size=(2, *shape)) for shape in ((4, 7), (5, 7), (5, 2)))
_, batched = attention(*triple, mask=visible, return_weights=True)
figures.padded_batch(batched, visible, [2, 4])

# %% [markdown] id="padding-answer" tags=["answer"]
# Only the last two columns of the second example are hidden, in all of its rows, because its source has three real pieces of
# five. The padded signs of the targets hide nothing.

# %% [markdown] id="spot-padding"
# ### Spot the mistake: the padding of the wrong side
#
# Two paddings, two lengths, one mask argument: it is easily given the wrong one. (A public repository made the mask
# of its *target* with the padding token of the *source*; hyunwoongko/transformer, issue 11.) With sequences padded to
# one common length everything runs. Below, the source has 3 real rows of 5, the target 5 of 5. **Predict** which
# masks return the outputs that the source has without its padding.

# %% id="spot-padding-code" tags=["predicted"]
queries = rng.normal(size=(5, 4)) @ w_query
keys, values = y @ w_key, y @ w_value  # rows 3 and 4 of y: padding
alone = attention(queries, keys[:3], values[:3])
masks = {
    "source, on keys": padding_mask(np.array(3), 5),
    "target, on keys": padding_mask(np.array(5), 5),
    "source, on queries": np.arange(5)[:, None] < 3,
}
for name, mask in masks.items():
    print(f"{name:19}", np.allclose(attention(queries, keys, values, mask=mask), alone))

# %% [markdown] id="spot-padding-answer" tags=["answer"]
# Only the mask of the source's lengths on the axis of keys does. The second one lets every query read the filling; the third
# lets queries 0 to 2 read it and takes all keys from queries 3 and 4. No error is raised. The test that finds the mistake:
# **change what stands in the padding** and see whether a real output moves.

# %% [markdown] id="spot-padding-notice"
# The target's own lengths have a place too, behind the last layer. There, each position $t$ has a *logit* for each
# sign of the vocabulary, $u_t$, and probabilities $p_t = \mathrm{softmax}(u_t)$. With $w_t$ for the right sign, and
# $m_t = 1$ if it is real, 0 if padding:
#
# $$\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{\sum_t m_t}, \qquad
#  \frac{\partial \mathcal{L}}{\partial u_t} = \frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r} \label{loss-over-real-tokens}$$

# %% [markdown] id="loss-notice"
# The gradient, weights minus truth (section {section}`softmax/sure`), is that at real positions and zero elsewhere. Divide by the number of real signs, not by
# the padded length: else the loss depends on who shares your batch.

# %% [markdown] id="decoder"
# ## The decoder, and the way back to the source
#
# In training, all signs of the target are known, and the right ones are given as input (*teacher forcing*). So a
# decoder without recurrence computes all rows at once. Then row $t$ must not see the sign that it is to predict. A
# causal mask hides the rows after $t$, but row $t$ sees **its own input**. So the input is shifted right by one, with
# a start token $w_0$ in front. Of the decoder $D$, row $t$ then sees the signs before $w_t$ and nothing else:
#
# $$\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t, \qquad u_t = D(w_{0:T_q - 1})_t
# \label{shifted-input-hides-target}$$
#
# ($\partial w_j$ moves the embedding of the sign $w_j$. That it reaches $u_t$ for $j < t$ holds for parameters in general position: a
# derivative may also be 0 by accident.) Mask *and* shift. The causal mask belongs to the decoder's
# self-attention only; cross-attention hides padding and nothing else, for the source is known to its end.

# %% [markdown] id="decoder-picture"
# This drawing puts the three layers and both paddings together, for a date of three pieces and a target of two signs in a batch
# that is longer. Each of the two paddings hides *columns* where its tokens would be keys: the source's in the first and
# the third table, the target's in the second.

# %% id="decoder-figure"
figures.paddings(["9", "May", "1998"], ["19", "98"], padded_to=(5, 4))

# %% [markdown] id="decoder-predict"
# `SequenceToSequence` is such a model, here untrained: self-attention over the source, causal self-attention over the
# target, which it shifts itself, and cross-attention between them. **Predict** which of the six rows of logits move
# when `target[0, 2]` is changed (counted from 0, as in code).

# %% id="decoder-code" tags=["predicted"]
model = SequenceToSequence(n_source=20, n_target=14)
read, target = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[5, 6, 7, 8, 9, 2]])
changed = target.clone()
changed[0, 2] = 12
with torch.no_grad():
    difference = model(read, changed)[0] - model(read, target)[0]
moved = difference.abs().amax(dim=-1)[0] > 1e-6
print("rows that moved:", moved.nonzero().flatten().tolist())

# %% [markdown] id="decoder-answer" tags=["answer"]
# Rows 3 to 5 move, three of the six, because sign 2 is predicted by row 2 and enters as the input of row 3.

# %% [markdown] id="gradient"
# How does the *encoder* learn? The loss reaches $Y$ on two ways, because $Y$ was used twice: as keys and as values.
# With $dZ$ and $dS$ for the gradients at output and scaled scores, {eq}`gradient-of-values`, {eq}`gradient-of-scores` and
# {eq}`query-and-key-gradients`, and the projections on top:
#
# $$\begin{gathered}
# \frac{\partial \mathcal{L}}{\partial Y} = dK\, W_K^\top + dV\, W_V^\top, \\
# dV = P^\top dZ, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \end{gathered} \label{gradient-of-source}$$
#
# The products with $P^\top$ and $dS^\top$ **sum over all target rows**: one source word learns from everybody who
# asked it. And the query way is missing: queries come from $X$. **Predict** whether a source word with weight zero
# everywhere learns anything.

# %% id="gradient-code" tags=["predicted"]
queries, d_output = x @ w_query, rng.normal(size=(3, 2))
d_query, d_key, d_value = attention_backward(queries, keys, values, d_output)
leaf = torch.tensor(y, requires_grad=True)
scaled = torch.tensor(queries) @ (leaf @ torch.tensor(w_key)).T / 7**0.5
read_out = torch.softmax(scaled, dim=-1) @ (leaf @ torch.tensor(w_value))
read_out.backward(torch.tensor(d_output))
by_hand = d_key @ w_key.T + d_value @ w_value.T
print("autograd agrees:", np.allclose(leaf.grad.numpy(), by_hand))
unread = np.arange(5) == 4  # nobody reads word 4
masked = attention_backward(queries, keys, values, d_output, mask=~unread[None, :])
print("its key and value get:", masked[1][unread], masked[2][unread])

# %% [markdown] id="gradient-notice" tags=["answer"]
# It learns nothing, because $p_{ij}$ is a factor both of what it gets as a value, $dV_j$, and of $dS_{ij}$,
# {eq}`score-gradient-against-mixture`. A source word that nobody looks at cannot call attention to itself.

# %% [markdown] id="cost"
# ## What it costs, and what is computed once
#
# Scores and output cost $2\,T_q T_k (d_k + d_v)$, {eq}`attention-flops`: no square, but a product of two lengths. While it
# writes, the decoder asks row by row, $T_q$ times. The source does not change meanwhile, so its keys and values are
# projected **once** and kept:
#
# $$F = 2\, T_k\, d_y\, (d_k + d_v) + T_q \bigl( 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr) \label{cross-attention-decoding-flops}$$
#
# Compare the cache of lesson {lesson}`heads`: that of self-attention grows by a row at each step, this one is full from the
# start. **Predict** the factor that this saves for $T_q = T_k = 100$ and all widths 64.

# %% id="cost-figure" tags=["predicted"]
steps, width, source_len = np.arange(1, 101), 64, 100
project = 2 * source_len * width * 2 * width
ask = 2 * width**2 + 4 * source_len * width
once, again = project + steps * ask, steps * (project + ask)
figures.decoding_cost(steps, again / 1e6, once / 1e6)

# %% [markdown] id="cost-answer" tags=["answer"]
# It saves a factor of 33, because projecting the source costs 48 times as much as all the rest of a step, and the decoder does
# it once instead of a hundred times.

# %% [markdown] id="cost-notice"
# `SequenceToSequence` follows the formula: `encode` prepares keys and values once for each source,
# `write` asks them at each step, and writing sign by sign gives the numbers of the parallel pass (1 is the start token).

# %% id="cost-code"
prepared = model.encode(read)
first = torch.cat([torch.tensor([[1]]), target[:, :-1]], dim=1)
with torch.no_grad():
    rows = [model.write(first[:, t : t + 1], prepared)[0] for t in range(6)]
    same = torch.allclose(torch.cat(rows, dim=1), model(read, target)[0], atol=1e-5)
print("sign by sign = all at once:", same)

# %% [markdown] id="dates"
# ## Dates
#
# **The experiment** (`attn_course/lessons/cross_attention/experiments.py`). The days from 1900 to 2099, each said in one of six
# phrasings; a source is cut into words, single digits and signs, a target into ten signs. Twenty whole years and a
# fifth of all other days are kept back. Three translators see 300 batches of 128 sentences:
#
# - *additive*: recurrent on both sides (48 features), {eq}`context-from-alignment-model` between them;
# - *fixed vector*: the same, with the encoder's last states in place of $c_i$ and no scorer;
# - *no recurrence*: `SequenceToSequence`, 64 features. Self-attention over the source, causal self-attention over the
#   target, cross-attention in between with two heads, sinusoidal positions on both sides, each part added to what was
#   there.

# %% id="dates-code"
for example in record.results[0]["examples"]["additive"]:
    print(example["written"], " <- ", example["text"])

# %% [markdown] id="dates-predict"
# A translation counts if all ten signs are right. **Predict** the ranking; and whether the days of years that were
# never seen are harder than new days of known years.

# %% id="dates-figure" tags=["predicted"]
splits = ("new dates", "new years")
right = {}
for split in splits:
    right[split] = [100 * record.values(split, kind).mean() for kind in KINDS]
figures.exact_translations(KINDS, right)

# %% id="dates-parts" tags=["predicted"]
for kind in KINDS:
    print(f"{kind:14}", end="")
    for part in ("year", "month", "day"):
        print(f" {part} {record.values('parts', kind, part).mean():.2f}", end="")
    print()

# %% [markdown] id="dates-notice" tags=["answer"]
# The additive translator is first, and the fixed vector is far behind; unseen years are harder for the fixed vector, and
# without recurrence in two of three trainings. With attention, at least 99.3 % of the new dates are right in every training,
# whole new years included for the recurrent one; without recurrence new years reach 98.2 to 99.6 %. Telling the digits of a
# year apart by sinusoids, from only 300 batches, seems to be the harder way. (It also has more parameters, 89 000 against
# 32 000.) The fixed vector gets most years and months right but only four days in ten, and fewer in new years.

# %% [markdown] id="dates-after"
# What the fixed vector reaches is its state **after 300 steps**, not a proof that 48 numbers cannot hold a date; lesson
# {lesson}`additive` looked at what happens as sentences grow.

# %% [markdown] id="maps"
# Now look at an alignment: rows are written, columns are read, and the weights come from a date that no training has
# seen. **Predict** which piece the row of the `5` picks, and what the two hyphens do. Are the heads of the translator without
# recurrence, in the second figure, as easy to read?

# %% id="maps-figure" tags=["predicted"]
example = record.results[0]["examples"]["additive"][0]
source, written = pieces(example["text"]), example["written"]
figures.recurrent_alignment(source, written, alignment(example))

# %% id="heads-figure" tags=["predicted"]
example = record.results[0]["examples"]["no recurrence"][4]
source, written = pieces(example["text"]), example["written"]
figures.head_alignments(source, written, [alignment(example, head) for head in (0, 1)])

# %% [markdown] id="maps-answer" tags=["answer"]
# The `5` reads May, with 98 %. The year reads its four digits in turn, equal ones included: an annotation knows its
# place. The day `09` reads "the ninth". The hyphens read "ninth" and May and more: they are the same in every date,
# whatever they read.
#
# Without recurrence the maps are stranger. The day `21` comes out right. For the `2`, head 1 reads "twenty" but head
# 0 the hyphen; for the `1`, both read the *comma* most, and neither reads "first". Self-attention has mixed the
# source before: position $j$ of the memory need not be about word $j$.

# %% [markdown] id="maps-notice"
# In which order does the translator read its source? Press Play, and compare the six dates and the three sets of weights.

# %% id="explorable"
shown = record.results[0]["examples"]


def cards(kind, head):
    """What one head read while it wrote the six dates."""
    made = []
    for date in shown[kind]:
        percent = (100 * alignment(date, head)).round().astype(int).tolist()
        made.append({**date, "pieces": pieces(date["text"]), "rows": percent})
    return made


heads = {"head 0": cards("no recurrence", 0), "head 1": cards("no recurrence", 1)}
figures.alignment_explorable({"recurrent": cards("additive", 0), **heads})

# %% [markdown] id="reading"
# ## What an alignment says
#
# How much weight lies on the pieces that *say* what is written? Over a thousand new dates:

# %% id="reading-code"
for kind in ("additive", "no recurrence"):
    for result in record.results:
        heads = []
        for head in result["read"][kind]:
            shares = [f"{part} {share:.2f}" for part, share in head.items()]
            heads.append(" ".join(shares))
        print(f"{kind:14}", " | ".join(heads))

# %% [markdown] id="hidden"
# The recurrent model puts three quarters of its weight there or more, the heads of the other between two fifths and four
# fifths. And here is the trap: a map *suggests* what the output depends on, but a weight is not a reason. The encoder reads both ways, so
# the annotation of "of" or "1998" might know the month as well. To find out, **intervene**: hide the month's position
# from the decoder at every step, leave the encoder alone, and let it write. **Predict** the share of right months.

# %% id="hidden-code" tags=["predicted"]
print("months right:           ", record.values("parts", "additive", "month"))
print("month not to be attended:", record.values("month hidden"))

# %% [markdown] id="hidden-answer" tags=["answer"]
# It falls from 1 to between .07 and .10; guessing among twelve gives about .083. So for the month this map can be trusted: without that one position the decoder does about as well as by guessing. It was the intervention
# that showed it, not the colours.

# %% [markdown] id="hidden-notice"
# A hyphen stands at the same places of every date and needs nothing from the source; yet its row sums to 1 like any other.

# %% [markdown] id="back"
# A last temptation: to read the map by columns. "May is read by 05" is not "05 is the translation of May" with the
# same number. One matrix of scores serves both directions, but each has a normaliser of its own:
#
# $$p_{ij}\, N_i = p'_{ji}\, N'_j, \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}
# \label{balance-of-both-directions}$$
#
# $P$ sums to 1 over the source, $P'$ over the target; one is not the transpose of the other, {eq}`detailed-balance-of-weights`.

# %% id="back-code"
scores = (x @ w_query) @ (y @ w_key).T / np.sqrt(7)
print("column sums of P:", softmax(scores).sum(axis=0))
print("row sums of P':  ", softmax(scores.T).sum(axis=1))

# %% [markdown] id="limits"
# ## Limits
#
# - **The product $T_q T_k$** hurts for long sources, and the source's keys and values stay in memory while the target
#   is written.
# - **No "nothing fits"**: a row sums to 1, so a hyphen must look somewhere.
# - **A row is not a reason.** Jain and Wallace (2019) found other weights with equal predictions; Wiegreffe and
#   Pinter (2019) answer that it depends on what counts as an explanation. Intervene, as in section {section}`reading`, before you
#   claim.
# - **Our dates are easy**: ten signs, about sixty words, one order of writing. In real translation words have no
#   partner, or several.
# - **Many models do without**: a causal model reads the source as a prompt, {eq}`cross-attention-by-masking`.

# %% id="verify-lesson"
verify_lesson("cross_attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | cross-attention | $\mathrm{softmax}(X W_Q (Y W_K)^\top / \sqrt{d_k})\, Y W_V$, {eq}`cross-attention` | $(T_q, d_v)$ |
# | projections | $W_Q$, $W_K$, $W_V$ | $(d_x, d_k)$, $(d_y, d_k)$, $(d_y, d_v)$ |
# | Bahdanau's context | $c_i = \sum_j \alpha_{ij} h_j$, {eq}`context-from-alignment-model` | keys = values = annotations |
# | order | $Z(\Pi X, \Pi' Y) = \Pi Z(X, Y)$, {eq}`equivariant-target-invariant-source` | positions on both sides |
# | padding | $-\infty$ for source columns $j > T_k$, {eq}`padding-on-both-sides` | $(T_q, T_k)$, one row for all |
# | loss | mean over real target tokens, {eq}`loss-over-real-tokens` | |
# | decoder | causal *and* shifted right, {eq}`shifted-input-hides-target` | |
# | to the source | $dK\, W_K^\top + dV\, W_V^\top$, {eq}`gradient-of-source` | as $Y$ |
# | decoding | source projected once, {eq}`cross-attention-decoding-flops` | |

# %% [markdown] id="summary"
# ## Summary
#
# - What is being written asks; what is read answers, with keys and values. Lengths and widths are free, $d_k$ is
#   shared.
# - Self-attention is the case $Y = X$; a mask turns it back into cross-attention.
# - Source padding is hidden as keys, target padding is left out of the loss; never the other way round.
# - The source learns through keys and values, from all target rows, in proportion to its weights.
# - Keys and values of the source are computed once and serve every step.
# - A sharp alignment can be read; what the output depends on is told by an intervention.
#
# Now the [exercises](../work/ex_{lesson}`cross_attention`_cross_attention.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed vector as
#   a bottleneck, and soft alignments.
# - M.-T. Luong, H. Pham and C. D. Manning (2015), [arXiv:1508.04025](https://arxiv.org/abs/1508.04025): global and
#   local attention for translation.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the encoder-decoder without
#   recurrence.
# - S. Jain and B. C. Wallace (2019), [arXiv:1902.10186](https://arxiv.org/abs/1902.10186), and S. Wiegreffe and Y.
#   Pinter (2019), [arXiv:1908.04626](https://arxiv.org/abs/1908.04626): is attention explanation?
