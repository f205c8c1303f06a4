# %% [markdown] id="title"
# # {lesson}`lookup` Attention as a lookup: it finds, and it mixes
#
# A dictionary finds the one entry whose key equals your question. Attention reads *all* entries and returns a mixture of their values. That
# sounds like a worse dictionary. **What is the mixing good for?**
#
# **You need** lesson {lesson}`start`, derivatives and NumPy. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`lookup`_lookup.ipynb).

# %% [markdown] id="hook"
# ## Whose colour was it?
#
# A network reads two names, each with one of four colours, then 32 random symbols, and at last one of the names as a question, whose answer
# is the colour of this name. One layer of attention learns it from examples, 64 in a batch:

# %% id="hook-code"
from attn_course.lessons.lookup.experiments import RECALL, train

batches, right = train("attention", stretch=32, seed=0)
print(f"attention: {right:.2f} right after {batches} batches")

# %% [markdown] id="hook-recurrent"
# Two recurrent networks tried it too, a plain one (RNN) and an LSTM. They read from left to right and keep what they need in a state of 64
# numbers, which the LSTM protects by gates. Each trained three times, until 95 % of its answers were right, or for 1000 batches:

# %% id="hook-table"
record = RECALL.load()  # stored, because these trainings take minutes
for name in ("LSTM", "RNN"):
    batches = record.values("steps", name)[:, -1]
    right = record.values("accuracy", name)[:, -1]
    print(f"{name:4}: {right.round(2)} right after {batches} batches")

# %% [markdown] id="hook-notice"
# The LSTM needs four to ten times as many batches as attention. The RNN does no better than naming one of the two colours at
# random, which is right in 5 of 8 cases. With 2 or 8 symbols all three passed 95 % in every run, so the
# LSTM and the RNN suffer from more symbols.
#
# At the end we write this lookup by hand, for 100,000 symbols and without training. It needs only the lit parts of this drawing:

# %% id="machine"
from attn_course.lessons.lookup import figures

figures.machine()

# %% [markdown] id="dictionary"
# ## A dictionary that always answers
#
# In lesson {lesson}`start` every word wore a badge, its key, and "it" had the wish $(2, 0, -2, 2)$. We ask an ordinary dictionary
# who wears this badge:

# %% id="dictionary-code"
import numpy as np

from attn_course import alive, check, verify_lesson
from attn_course.sentence import KEY, TOKENS, VALUE, labelled

badges = [tuple(badge) for badge in KEY[0].astype(int)]  # [0]: the head you built
words = dict(zip(badges, TOKENS, strict=True))
for wanted in ((2, 0, 0, 2), (2, 0, -2, 2)):
    print(wanted, "is the badge of", words.get(wanted, "nobody"))

# %% [markdown] id="exact"
# The cat's badge nearly fits, but a dictionary knows only *equal* and *not equal*. If it holds pairs of a key $k_i$ and a value $v_i$, with
# distinct keys, its answer is a sum over all pairs, where $[\ldots]$ is 1 if the statement is true and else 0:
#
# $$D(q) = \sum_{i=1}^{m} [\,k_i = q\,]\; v_i \label{exact-lookup}$$
#
# Only the bracket is all or nothing. We replace it by a **similarity** $s(q, k) \ge 0$, which is large if the key fits the query. For "it" we
# take $s = 4 \cdot 2^{q \cdot k / 2}$. The 2 in place of the $e$ of lesson {lesson}`start` and the 4, which will cancel, give whole numbers:

# %% id="by-hand-code"
scores = KEY[0] @ [2, 0, -2, 2]
table = [scores, 4 * 2 ** (scores / 2), VALUE[0][:, 0]]
print(labelled(table, ("score", "similarity", "alive"), columns=TOKENS))

# %% [markdown] id="by-hand"
# How much should each word count? A word that is twice as similar should count twice as much, so the weights are $\alpha_i = c\, s_i$ with one
# $c$ for all, and they should sum to 1. The similarities add up to 78, so $c = 1 / 78$, and "cat" has the weight $64 / 78 \approx 0.82$. In
# general, if at least one similarity is positive,
#
# $$\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)} \key{normalised-similarities}$$

# %% [markdown] id="attention"
# With these weights for the brackets, the entry *alive* of "it" becomes $(64 \cdot 2 + 4 \cdot 1) / 78 \approx 1.69$, and the dictionary
# becomes attention:
#
# $$\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2
# \key{soft-lookup}$$
#
# No word has the value 1.69. In which sense is it right? Of all answers it has the smallest sum of squared distances from the values, each
# counted with its similarity, because the derivative of this sum, $-2 \sum_i s_i\, (v_i - o)$, is zero only there.
#
# That is the first use of mixing: *every query gets an answer.* Later lessons take other similarities, but always similarities
# become weights, and weights average the values.

# %% [markdown] id="dial"
# ## From one entry to the mean of all
#
# Temperatures of 8, 12, 18 and 14 degrees were noted at 6, 9, 12 and 18 o'clock. Let the similarity be a bell over the distance in
# hours, $s = e^{-(q - k)^2 / 2 h^2}$, whose width $h$ we may choose. With $d_i$ for the distance of key $i$ from the query,
#
# $$\frac{\alpha_i}{\alpha_j} = e^{(d_j^2 - d_i^2) / 2h^2}$$
#
# For a small $h$ the exponent is huge, and the nearest key takes everything. For a large $h$ it is nearly 0, and all weights are nearly equal.
# So if a single key is nearest,
#
# $$\lim_{h \to 0^+} \alpha_i = \bigl[\, \|q - k_i\| = \min_j \|q - k_j\| \,\bigr], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}
# \label{bandwidth-limits}$$

# %% [markdown] id="dial-predict"
# The width is a dial between a dictionary, which now answers between its keys too, and a plain average.
#
# "Attention maps a query to its value", people say. At 9 o'clock it was 12 degrees. **Predict** whether the answer to the query 9 is 12, less
# or more, for $h = 2$.

# %% id="dial-code" tags=["predicted"]
hours = np.array([6.0, 9.0, 12.0, 18.0])
degrees = np.array([8.0, 12.0, 18.0, 14.0])


def lookup(query, h):
    s = np.exp(-((query - hours) ** 2) / (2 * h**2))
    return s @ degrees / s.sum()


for h in (0.5, 2.0, 8.0):
    print(f"h = {h}: at 9 o'clock {lookup(9.0, h):.2f} degrees")

# %% [markdown] id="dial-answer" tags=["answer"]
# It is more, 12.39 degrees. The keys 6 and 12 are equally far away, so their values 8 and 18 have equal weights, and their mean of 13 pulls
# the answer up. The saying is true only in the limit $h \to 0$, because for any positive width attention returns a mixture.

# %% [markdown] id="hull"
# Can the answer ever be 20 degrees? No, because an average without negative weights lies between the smallest and the largest of its
# numbers. If the values are vectors and the output is $z$, take any direction $a$. Then $a \cdot z$ is an average of the numbers $a \cdot v_j$:
#
# $$\min_j\, a \cdot v_j \;\le\; a \cdot z \;\le\; \max_j\, a \cdot v_j \label{output-in-convex-hull}$$
#
# So a lookup never leaves the **convex hull** of its values, in a plane the inside of a rubber band around them.

# %% [markdown] id="explorable-before"
# Now turn the dial. The curve on this card holds the answer to every query. When does the answer hardly move with the query?

# %% id="explorable"
figures.lookup_explorable()

# %% [markdown] id="explorable-notice"
# <details><summary>What you should see</summary>
#
# It hardly moves at both ends of the dial. A wide bell makes the curve flat, and a narrow one makes stairs, where the answer stands still
# on each step and jumps between two.
#
# </details>
#
# Training follows slopes. A narrow bell has almost none except at the jumps, and a wide one almost none anywhere, but in between the answer
# moves when a query or a key moves a little. That is the second use of mixing: *it gives queries and keys slopes, so they can be trained.*
# (Section {section}`real` asks where real heads stand on this dial.)

# %% [markdown] id="regression"
# ## An old formula against noise
#
# In 1964 two statisticians, Nadaraya and Watson, asked: given noisy points $(x^{(i)}, y^{(i)})$, what is the mean of $y$ at a given $x$? A
# bell $K_h$ of width $h$ and area 1 on each point estimates the density of the points,
# $\hat p(x, y) = \frac1m \sum_i K_h(x - x^{(i)})\, K_h(y - y^{(i)})$, and the mean of $y$ at $x$ is $\int y\,\hat p\,dy / \int \hat p\,dy$. The
# bell over $y^{(i)}$ has area 1 and mean $y^{(i)}$, so the integrals leave
#
# $$\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy}
#  = \sum_{i=1}^{m} \frac{K_h(x - x^{(i)})}{\sum_{j=1}^{m} K_h(x - x^{(j)})}\, y^{(i)} \label{nadaraya-watson-regression}$$
#
# This *kernel regression* is {eq}`soft-lookup`: $x$ asks, the $x^{(i)}$ are the keys and the $y^{(i)}$ the values.

# %% [markdown] id="miss-turn"
# **Your turn: how good is a width?** {turn}`miss-of-a-width`

# %% id="miss-turn-code" tags=["your-turn"]
my_miss = ...  # your function
check("miss-of-a-width", my_miss)

# %% [markdown] id="miss-ours" tags=["ours"]
# ```python
# def my_miss(x, y, h):
#     s = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2))
#     np.fill_diagonal(s, 0)
#     return np.sqrt(((s @ y / s.sum(axis=1) - y) ** 2).mean())
# ```
#
# A point that is left out has the similarity 0.

# %% [markdown] id="nile-predict"
# Now a real river: the flow of the Nile at Aswan in the 100 years from 1871 (Cobb, 1978). **Predict** which of the widths 0.3, 2 and 50 years
# misses least.

# %% id="nile-code" tags=["predicted"]
from attn_course.lessons.lookup.experiments_nile import FLOW, YEARS, guesses, miss

if my_miss is not ...:
    miss = my_miss
fits = {f"h = {h:g} years": guesses(YEARS, FLOW, h) for h in (0.3, 2.0, 50.0)}
for h in (0.3, 2.0, 50.0):
    print(f"h = {h:g} years: missed by {miss(YEARS, FLOW, h):.0f}")
figures.nile_guesses(YEARS, FLOW, fits)

# %% [markdown] id="nile-answer" tags=["answer"]
# The middle one misses least, by 131 (in $10^8$ cubic metres), against 139 and 161. The narrowest takes over the noise of the two years
# beside the gap. The widest turns the fall of the flow around 1899 into a faint slope.

# %% [markdown] id="nile-notice"
# A dictionary repeats what was noted, noise included. That is the third use of mixing: *it averages noise away*, at the price of smearing
# what really jumps.

# %% [markdown] id="queries"
# ## Every value in one step
#
# Back to the distance. Several queries are several lookups in the same pairs: the weights of query $i$ stand in row $i$ of a matrix $P$, and
# the values in the rows of $V$. With $\mathbf{1}$ for a column of ones,
#
# $$z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \;\Longleftrightarrow\; Z = P\,V, \qquad P\,\mathbf{1} = \mathbf{1}
# \key{weights-times-values}$$
#
# There is one output for each of the $T_{out}$ queries, however many pairs there are:

# %% id="queries-alive"
alive("weights-times-values")

# %% [markdown] id="slope"
# Training asks which outputs notice a small change of entry $b$ of value $j$, while the weights stay. Entry $a$ of output $i$ holds this
# number only if $a = b$, with the factor $p_{ij}$. So with $\delta_{ab} = [a = b]$,
#
# $$\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ab} \key{output-derivative-by-value}$$
#
# The $p_{ij}$ says that position $j$ reaches position $i$ in one step, wherever both stand, as no formula so far uses the row number of a
# pair. The $\delta_{ab}$ says that features are not mixed.

# %% [markdown] id="spot-side"
# ### Spot the mistake: weights on the wrong side
#
# "The attention weights are $W = Q^\top K$, and $Z = V\, W$", somebody writes. If values are as wide as keys, the product exists.
# We change only the last of five values. **Predict** in which of the products $P\, V$ and $V\, W$ the *first* output notices.

# %% id="spot-side-code" tags=["predicted"]
rng = np.random.default_rng(1)
q, k, v = 0.5 * rng.normal(size=(3, 5, 3))
changed = v.copy()
changed[4] += 1
similarity = np.exp(q @ k.T)
P = similarity / similarity.sum(axis=1, keepdims=True)
print("P V: first output moves by", (P @ changed - P @ v)[0].round(2))
print("V W: first output moves by", (changed @ q.T @ k - v @ q.T @ k)[0].round(2))

# %% [markdown] id="spot-side-answer" tags=["answer"]
# Only in $P V$ does it notice, because each output averages all values. Row 1 of $V\,W$ is row 1 of $V$ times $W$, so it meets no other value.

# %% [markdown] id="sides"
# A matrix on the *left* mixes positions, and one on the *right* mixes features. A plain layer $X W$ has a fixed $W$ on the right,
# whereas attention makes its $P$ on the left anew from every input.

# %% [markdown] id="recurrent"
# And a recurrent network? With a single unit its state is $h_t = \tanh(w\, h_{t-1} + x_t)$. The slope of a $\tanh$ is $1 - h_t^2$, so by
# the chain rule
#
# $$\frac{\partial h_T}{\partial h_0} = \prod_{t=1}^{T} w\,(1 - h_t^2) \label{recurrent-gradient-product}$$
#
# With $w = 0.9$ the factors $w$ alone leave $0.9^{50} \approx 0.005$ after 50 steps. **Predict** how much smaller random inputs of size about 1
# make the slope: 10 times, 1000 times or more than a million times.

# %% id="recurrent-code" tags=["predicted"]
inputs = rng.normal(size=50)
state, slope = 0.0, 1.0
for x_t in inputs:
    state = np.tanh(0.9 * state + x_t)
    slope *= 0.9 * (1 - state**2)
print(f"slope after 50 steps: {slope:.0e}")

# %% [markdown] id="recurrent-answer" tags=["answer"]
# It is about $10^{12}$ times smaller, because each factor $1 - h_t^2$ is at most 1, and near 0 whenever an input pushes the unit towards
# $\pm 1$.

# %% [markdown] id="paths"
# In our sentence "cat" is five such steps away from "tired". With attention it is one:

# %% id="paths-figure"
figures.paths(TOKENS, source=1)

# %% [markdown] id="norms"
# How strongly does the loss react to the item asked for, in the three networks of section {section}`hook`, before training?

# %% id="norms-code"
print("symbols between:       2      32     128")
for name in ("attention", "LSTM", "RNN"):
    norms = record.values("gradient", name).mean(axis=0)[[0, 4, 6]]
    print(f"{name:16}", *(f"{norm:7.2g}" for norm in norms))

# %% [markdown] id="norms-notice"
# Across 32 symbols the RNN has a twelfth of attention's slope, and across 128 nearly none, which fits with its failure (Bengio et al.,
# 1994). Attention's falls to about a 26th, which fits with 131 positions sharing the weight in place of 5. In the LSTM, whose gates start
# open, the slope even grows, so these slopes do not explain why attention learns faster than the LSTM.

# %% [markdown] id="roles"
# ## A lookup without training
#
# We write the lookup of section {section}`hook` by hand. A position has twelve numbers in four parts: a name, a colour, the name asked for and
# a symbol, each one-hot, with a single 1, or zero where there is none. The query says what is wanted, so $W_Q$ picks the name asked for. The
# key says what a position offers, so $W_K$ picks its name, and the value is what it hands on, so $W_V$ picks its colour.

# %% [markdown] id="match"
# The dot product of two one-hot names is 1 if they are equal, and else 0. With $s = e^{\beta\, q \cdot k}$ a match counts
# $e^\beta$, and every other pair $e^0 = 1$. If only position $r_i$ among $m$ matches, the answer is
#
# $$z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j \ne r_i} v_j}{e^{\beta} + m - 1} \label{lookup-by-name}$$
#
# So $\beta$ says how loud a match is. **Predict** for $\beta = 3$, where $e^3 \approx 20$: does the right colour win across 10,000 symbols,
# and how large is its entry?

# %% id="own-code" tags=["predicted"]
import numpy as np


def recall_task(n, rng):
    x = np.zeros((n + 3, 12))  # two names with colours, n symbols, the question
    names, colours, asked = rng.permutation(2), rng.integers(4, size=2), rng.integers(2)
    x[:2, :2], x[:2, 2:6] = np.eye(2)[names], np.eye(4)[colours]
    x[2:-1, 8:] = np.eye(4)[rng.integers(4, size=n)]
    x[-1, 6:8] = np.eye(2)[asked]
    return x, colours[names == asked][0]


def answer(x, beta):
    query, key, value = x[-1, 6:8], x[:, :2], x[:, 2:6]  # asked, name, colour
    s = np.exp(beta * key @ query)
    return s @ value / s.sum()


x, colour = recall_task(10_000, np.random.default_rng(0))
z = answer(x, 3.0)
print("entries:", z.round(4), " right:", z.argmax() == colour)

# %% [markdown] id="own-answer" tags=["answer"]
# It wins at any distance, because it counts 20 and the other colour 1. But its entry is only $20 / 10{,}022 \approx 0.002$. Each symbol has
# no colour and yet as much weight as the other name, so together the symbols get nearly all.

# %% [markdown] id="loud-turn"
# **Your turn: a formula.** {turn}`share-of-a-match` The check evaluates the LaTeX, so any equal form counts.

# %% id="loud-turn-code" tags=["your-turn"]
my_beta = ...  # such as r"m - p", which is wrong
check("share-of-a-match", my_beta)

# %% [markdown] id="loud-ours" tags=["ours"]
# It is `r"\ln \frac{p\,(m - 1)}{1 - p}"`. The weight is $p = e^\beta / (e^\beta + m - 1)$, and therefore $e^\beta (1 - p) = p\,(m - 1)$.

# %% [markdown] id="loud"
# So a match has to get louder in a longer text, but only like the logarithm of its length. For a weight of 0.9:

# %% id="loud-code"
rng = np.random.default_rng(0)
for n in (10, 1000, 100_000):
    beta = np.log(0.9 * (n + 2) / 0.1)
    tasks = [recall_task(n, rng) for _ in range(20)]
    entries = [answer(x, beta)[colour] for x, colour in tasks]
    print(f"{n:6} symbols: beta {beta:4.1f}, right entry at least {min(entries):.2f}")

# %% [markdown] id="own-try"
# These functions run anywhere. Now exchange two roles in `answer`, with `x[-1, :2]` for the query and `x[:, 6:8]` for the keys. What does
# the question get?
#
# <details><summary>What it gets</summary>
#
# Now its name asks, and it has none, so all scores are 0, and it gets the plain mean of all values, whoever was asked for. No error says
# that the roles are exchanged.
#
# </details>

# %% id="verify-lesson"
verify_lesson("lookup")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | weights, {eq}`normalised-similarities` | {key}`normalised-similarities` |
# | attention, {eq}`soft-lookup` | {key}`soft-lookup` |
# | many queries, {eq}`weights-times-values` | {key}`weights-times-values` |
# | slope in the values, {eq}`output-derivative-by-value` | {key}`output-derivative-by-value` |

# %% [markdown] id="summary"
# ## Summary
#
# What is the mixing good for?
#
# - Every query gets an answer, also one that equals no key. It lies in the hull of the values.
# - The answer moves with queries and keys, so they can be trained. And each value reaches each output in one step.
# - Noise averages out, as in kernel regression.
# - The price: in a longer text a match must get louder, like the logarithm of the length, or the others drown it.
#
# Next: why should the similarity be an exponential? Lesson {lesson}`softmax` answers; first the
# [exercises](../work/ex_{lesson}`lookup`_lookup.ipynb).

# %% [markdown] id="real"
# ## Deeper: where do real heads stand on the dial?
#
# In each of the 270 heads of SmolLM2, the model of lesson {lesson}`start`, the "it" of our sentence shares out its weight among itself and
# the four tokens before it. How many heads look up one token, and how many mix?

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-code"
text = "The cat sat because it was tired."
it = model.tokens(text).index(" it")
rows = model.maps(text)[:, :, it, : it + 1].reshape(270, 5)
largest, found = rows.max(axis=1), rows.argmax(axis=1)
print("more than 0.9 on one token:    ", (largest > 0.9).sum())
print("    of these, not on the first:", ((largest > 0.9) & (found > 0)).sum())
print("at most 0.5 on every token:    ", (largest <= 0.5).sum())

# %% [markdown] id="real-notice"
# Some heads look up, and others mix. But of the 78 that are nearly dictionaries, 75 have found "The". Weights sum to 1, so unless some pair
# has the value 0, attention cannot answer that nothing fits: ask the card of section {section}`dial` for 24 o'clock with a narrow bell. One
# reading is that a head with nothing to find puts its weight on the first token (an *attention sink*, Xiao et al., 2023).

# %% [markdown] id="set"
# ## Deeper: is a note written twice worth twice as much?
#
# A permutation matrix $\Pi$ puts the pairs into another order. A lookup is made of sums over all pairs, so nothing changes:
#
# $$\mathrm{Attention}(q,\, \Pi K,\, \Pi V) = \mathrm{Attention}(q, K, V) \label{pair-order-invariance}$$
#
# But if the first pair is noted once more below the others, as $[K;\, k_1]$, it has two terms in each sum:
#
# $$\mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr)
#  = \frac{2\,s_1 v_1 + \sum_{i \ge 2} s_i v_i}{2\,s_1 + \sum_{i \ge 2} s_i} \label{duplicated-pair-counts-twice}$$
#
# So the pairs form no set, which would not notice a copy, but a **multiset**. At 10 o'clock and $h = 2$ the pair of 9 o'clock has the weight
# 0.543. **Predict** the weight of both copies together if it is noted twice.

# %% id="set-code" tags=["predicted"]
s = np.exp(-((10.0 - hours) ** 2) / (2 * 2.0**2))
print(f"once: {s[1] / s.sum():.3f}, twice: {2 * s[1] / (s.sum() + s[1]):.3f}")

# %% [markdown] id="set-answer" tags=["answer"]
# They have 0.704, not twice 0.543. The *similarity* is doubled, but the sum grows as well, so $\alpha$ becomes $2\alpha / (1 + \alpha)$.

# %% [markdown] id="linear"
# ## Deeper: can a matrix on the right see other positions?
#
# In section {section}`queries` $V\,W$ showed no position the *value* of another. But let queries, keys and values all be made from $X$, and
# leave out exponential and normalisation (*linear attention*). Then only brackets move:
#
# $$\bigl( X W_Q W_K^\top X^\top \bigr)\, X W_V = X\, \bigl( W_Q W_K^\top X^\top X W_V \bigr) \label{linear-attention-two-readings}$$
#
# On the left a $P(X)$ mixes positions, on the right a $W(X)$ mixes features, and both give the same numbers. So the answer is yes,
# because $X^\top X$ is a sum over all positions.

# %% id="linear-alive"
alive("linear-attention-two-readings")

# %% [markdown] id="linear-notice"
# With an exponential in between, the brackets cannot move, as the second mistake on the card shows. Lesson {lesson}`linear` goes on from here.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): attention, proposed because one vector of
#   fixed length is a bottleneck.
# - Y. Bengio, P. Simard and P. Frasconi (1994), *Learning long-term dependencies with gradient descent is difficult*, IEEE
#   Transactions on Neural Networks 5(2).
# - Y.-H. Tsai et al. (2019), [arXiv:1908.11775](https://arxiv.org/abs/1908.11775): attention through the lens of kernels.
# - G. W. Cobb (1978), *The problem of the Nile*, Biometrika 65, 243-251: the data.
# - G. Xiao et al. (2023), [arXiv:2309.17453](https://arxiv.org/abs/2309.17453): attention sinks.
