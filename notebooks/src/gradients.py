# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# Training nudges queries, keys and values to make a loss fall. **How does the loss react to each number, and what does attention then
# learn to look at?** You will derive the gradient of every query, key and value, and teach "it" whom it stands for.
#
# **You need** lessons {lesson}`softmax` and {lesson}`attention`, and the chain rule. **Time:** 60 minutes, without *Deeper* sections and
# the [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="hook"
# ## A row of sevenths
#
# In "the cat sat because it was tired" the query of "because" is zero. So its scores are 0, its weights are $\frac17$, and its output $z$
# is the mean of the values. A loss wants a large $z_1$ and a small $z_2$: $L = -z_1 + 2 z_2$. The cell moves one score at a time
# and prints how fast the loss changes with it. **Predict** for which words the loss falls when the score rises.

# %% id="hook-code" tags=["predicted"]
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
# two features of each token, from the first lesson: how alive it is, how much it tells
value = np.array([[0, 0], [2, 0], [0, 2], [0, 0], [0, 0], [0, 1], [1, 2]], dtype=float)


def loss_of_scores(scores):
    weights = np.exp(scores) / np.exp(scores).sum()
    output = weights @ value
    return -output[0] + 2 * output[1]


for token, nudge in zip(tokens, 1e-3 * np.eye(7), strict=True):
    rate = (loss_of_scores(nudge) - loss_of_scores(-nudge)) / 2e-3
    print(f"{token:8}{7 * rate:+.0f} sevenths")

# %% [markdown] id="hook-notice" tags=["answer"]
# The loss falls for "cat", which has only the feature that the loss wants. It rises for "sat", "was" and "tired". But it also falls for
# "the", "because" and "it", whose values are zero: they add nothing to the output. Why does the loss fall when *their* scores rise?

# %% [markdown] id="hook-time"
# Moving one number at a time is slow: each takes two evaluations of the loss. One sweep back finds all gradients. Here are attention's steps
# with their arrows turned round. $dZ$ stands for the gradient of the loss with respect to the output $Z$ (not a small change of it), $dP$ for
# that with respect to the weights $P$, and so on:

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.gradients import figures

figures.machine()

# %% [markdown] id="backward"
# ## Three questions for every entry
#
# There are $T_q$ queries and $T_k$ keys with $d_k$ entries each, and $T_k$ values with $d_v$ entries (in the picture $T_q = T_k = T$). From
# here on $z_i$, $dZ_i$ and $v_j$ are rows of $Z$, $dZ$ and $V$, and $Z_{ia}$ is entry $a$ of row $i$.

# %% [markdown] id="backward-chain"
# Let a differentiable loss $L$ depend on $Q$, $K$ and $V$ only through $Z$. What comes after $Z$ hands us $dZ$, with
# $dZ_{ia} = \partial L / \partial Z_{ia}$. For the loss above, its row for "because" is $(-1, 2)$. Now take any one number $x$ that goes
# into $Z$, and write $dx$ for $\partial L / \partial x$. By the chain rule,
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$
#
# If $x$ does not touch an output, the derivative is 0. So for each entry we ask three questions. **Which outputs does it touch? How fast
# does it move each of them? What is the sum over all that are touched?**

# %% [markdown] id="backward-values"
# ## Back through a product
#
# The last step was $Z = P V$, in entries $Z_{ia} = \sum_j p_{ij} V_{ja}$. Take **one entry of a value**, $V_{ja}$. It touches entry $a$ of
# every output $i$. It moves that entry at the rate $p_{ij}$. The sum runs over all $i$:
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# Which matrix product is this? In $(A B)_{ja} = \sum_i A_{ji} B_{ia}$ the sum runs over the second index of $A$, but ours runs over the first
# one of $P$. So the left factor is $P$ transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$

# %% [markdown] id="backward-weights"
# Now take **one weight**, $p_{ij}$. It touches every feature of output $i$, and no other output. It moves $Z_{ia}$ at the rate $V_{ja}$.
# The sum runs over all $a$, so $dP_{ij}$ is the dot product of $dZ_i$ and $v_j$. For all pairs at once:
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij}$ the **cost** of this weight: it says how fast the loss would grow if this weight alone were raised, which
# the softmax does not allow.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# Now take **one score**, $s_{ij}$. The loss depends on the scores only through $P$, so we ask the three questions with the weights in the
# place of the outputs. A score touches all weights of its row, and no other row. It moves $p_{il}$ at the rate
# $p_{il}\, ([l = j] - p_{ij})$, {eq}`softmax-derivative`, where $[l = j]$ is 1 if $l = j$, and else 0. So
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$

# %% [markdown] id="backward-softmax-mean"
# The bracket $[l = j]$ brings $dP_{ij}\, p_{ij}$. The $-p_{ij}$ behind it brings $-p_{ij}$ times $\sum_l p_{il}\, dP_{il}$, the **mean cost**
# of the row under its weights. We call it $\delta_i$. For all rows at once, with a column of ones $\mathbf{1}$ that copies each $\delta_i$ along its row:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$
#
# The gradient of a score is its weight, times how far the cost of this weight lies above the mean.

# %% [markdown] id="sevenths"
# Here is the row of "because". Follow the upper numbers to the loss and the lower ones back: at the left the sevenths of the first cell
# come out. "The" has the cost 0, and that is *less than the mean*. When its score rises, its weight grows at the expense of the six others,
# and they cost more on average. So the loss falls.

# %% id="sevenths-figure"
figures.row_on_wires(tokens, np.zeros(7), value, d_output=[-1, 2])

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# "Each score gets the cost of its weight, times the weight: $dS = P \odot dP$." Test it on two keys with the same value 3, equal weights
# and $dZ = 1$. What does it say, and what must $dS$ be?
#
# <details><summary>What is wrong</summary>
#
# Here $dP = (3, 3)$, so it says $dS = (1.5, 1.5)$. But the output is 3 whatever the scores are, so $dS$ must be $(0, 0)$. The mistake
# forgets that one weight can only rise at the expense of the others.
#
# </details>
#
# Every row of the true $dS$ sums to 0, since raising all its scores equally changes no weight, {eq}`softmax-shift-invariance`.

# %% [markdown] id="which-gains"
# ## What a gradient pays attention to
#
# The mean $\delta_i$ has a shorter form. With $dP_{il} = dZ_i \cdot v_l$ and $z_i = \sum_l p_{il}\, v_l$ it is $dZ_i \cdot z_i$, and
# {eq}`gradient-of-scores` becomes
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# So each value is compared with the **present mixture** $z_i$. A value $v_j$ *beats* it if $dZ_i \cdot (v_j - z_i) < 0$: the loss falls when
# the output begins to move from $z_i$ towards $v_j$. Then $dS_{ij} < 0$, unless $p_{ij} = 0$: the loss falls when this score rises.

# %% [markdown] id="gradient-turn"
# **Your turn.** {turn}`gain-over-mixture`

# %% id="gradient-turn-code" tags=["your-turn"]
my_d_scores = ...  # replace this line by your function
check("gain-over-mixture", my_d_scores)

# %% [markdown] id="gradient-turn-ours" tags=["ours"]
# ```python
# def my_d_scores(weights, output, value, d_output):
#     d_weights = d_output @ value.T
#     delta = (d_output * output).sum(axis=1, keepdims=True)
#     return weights * (d_weights - delta)
# ```

# %% [markdown] id="backward-qk"
# ## Back through the scores
#
# The scores are the product $Q K^\top$, divided by $\sqrt{d_k}$, so an entry of the product moves its score by $1 / \sqrt{d_k}$ as much, and
# the product has the gradient $dS / \sqrt{d_k}$. In $Z = P V$ we found
# $dP = dZ\, V^\top$: the gradient of the left factor is the gradient of the product, times the right factor transposed. Here the left factor
# is $Q$ and the right one is $K^\top$, so $dQ = dS\, K / \sqrt{d_k}$. And $dK$?

# %% [markdown] id="key-turn"
# **Your turn.** {turn}`gradient-of-all-keys`

# %% id="key-turn-code" tags=["your-turn"]
my_d_key = ...  # replace this line by your function
check("gradient-of-all-keys", my_d_key)

# %% [markdown] id="key-turn-ours" tags=["ours"]
# Transposing moves the entries, and their gradients with them. In $K Q^\top$ the left factor is $K$, the right one is $Q^\top$, and the
# gradient of the product is $dS^\top / \sqrt{d_k}$.
#
# ```python
# def my_d_key(d_scores, query):
#     return d_scores.T @ query / np.sqrt(query.shape[1])
# ```

# %% [markdown] id="backward-qk-both"
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$
#
# The gradient of query $i$ is a sum of keys, key $j$ times $dS_{ij} / \sqrt{d_k}$. The gradient of key $j$ is a sum of queries, query $i$
# times the same number.

# %% [markdown] id="one-step"
# **By hand.** What does "because" learn in one step? Its scores are divided by $\sqrt 4$, so each of the sevenths
# $(-1, -3, 3, -1, -1, 1, 2)$ is so many fourteenths of its word's key. The keys are those of lesson {lesson}`start`:
# $(0, 0, 1, 0)$, $(2, 0, 0, 2)$, $(0, 2, 0, -2)$, zero, $(0, 0, 2, 0)$, $(0, 1, 0, -1)$ and $(1, 2, 0, -1)$. Entry by entry,
# $14\, dq = (-6 + 2,\; 6 + 1 + 4,\; -1 - 2,\; -6 - 6 - 1 - 2) = (-4, 11, -3, -15)$. A step against it moves the zero query to a positive
# multiple of $(4, -11, 3, 15)$. With the key of "cat" this makes $8 + 30 = 38$, and no other key gets more than 6. So one step has taught
# "because" to look for "cat". (Its own score should rise, too, but its key is zero, so no query can raise it.)

# %% [markdown] id="whole"
# ## The whole backward pass
#
# Your two functions and the formulas for $dQ$ and $dV$ make the whole program. (If a turn is still open, our answer stands in.)

# %% id="whole-turns"
from attn_course.lessons.gradients import tasks_checking as checking

my_d_scores, my_d_key = checking.or_ours(my_d_scores, my_d_key)

# %% id="whole-code"
import math


def forward(query, key, value):
    scores = query @ key.T / math.sqrt(query.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ value, weights


def backward(query, key, value, d_output):
    output, weights = forward(query, key, value)
    d_scores = my_d_scores(weights, output, value, d_output)
    d_query = d_scores @ key / math.sqrt(query.shape[1])
    return d_scores, d_query, my_d_key(d_scores, query), weights.T @ d_output


# %% [markdown] id="compare"
# Is it right? PyTorch records every operation and goes back through its record, so we can compare every stage. The sizes differ, since with
# $d_k = d_v$ a wrong division by $\sqrt{d_v}$ would pass.

# %% id="compare-code"
import torch

rng = np.random.default_rng(3)
arrays = [rng.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2))]  # Q, K, V
d_z = rng.normal(size=(3, 2))
ours = d_z @ arrays[2].T, *backward(*arrays, d_z)

q, k, v = (torch.tensor(array, requires_grad=True) for array in arrays)
s = q @ k.T / math.sqrt(4)
p = torch.softmax(s, dim=1)
theirs = torch.autograd.grad(p @ v, (p, s, q, k, v), torch.tensor(d_z))
for name, our, their in zip("PSQKV", ours, theirs, strict=True):
    print(f"d{name} agrees with PyTorch:", np.allclose(our, their))

# %% [markdown] id="train"
# ## Teach "it" whom it stands for
#
# In *cat saw clock because it was curious*, "it" is the cat. If it was *broken*, "it" is the clock. Can attention learn this with your
# backward pass, if "curious" and "broken" have met neither "cat" nor "clock" in any sentence that it reads?
#
# The endings *tired*, *curious* and *clumsy* mean the animal, *heavy*, *broken* and *loose* the thing. "It" must know the ending, so in this
# small model it asks with **the query of the last word**. The keys and values are those of the two nouns.

# %% id="train-data"
nouns = ["cat", "dog", "fox", "owl", "clock", "stone", "lamp", "cart"]
lasts = ["tired", "curious", "clumsy", "heavy", "broken", "loose"]
read, new = checking.sentences()  # numbers of an animal, a thing and a last word
print(len(read), "to read, such as", read[0], "and new:", *new)


def meant(animal, thing, last):
    return animal if last < 3 else thing


# %% [markdown] id="train-loss"
# **The model.** Each last word has a query of eight random numbers. Each noun has a key with a 1 at its own number and else 0, so that no two
# keys are alike. Its value has eight entries, one for each noun, at first all 0. So the output $z$ has eight entries, too, and the answer is
# the noun with the largest.
#
# **The loss.** A softmax turns $z$ into probabilities. The loss is minus the logarithm of that of the right noun, $m$:
# $\ln \sum_n e^{z_n} - z_m$. The gradient of the first term is the softmax, {eq}`lse-gradient`, so $dZ$ is the probabilities, with 1
# subtracted at $m$.
#
# **A step** takes a random sentence and subtracts the gradients.


# %% id="train-code"
def train(seed, key_step=1):
    rng = np.random.default_rng(seed)
    queries, keys, values = 0.5 * rng.normal(size=(6, 8)), np.eye(8), np.zeros((8, 8))
    for animal, thing, last in rng.choice(read, size=400):
        pair = [animal, thing]
        arrays = queries[[last]], keys[pair], values[pair]  # Q, K, V: 1, 2 and 2 rows
        d_z = np.exp(forward(*arrays)[0])
        d_z /= d_z.sum()  # the probabilities
        d_z[0, meant(animal, thing, last)] -= 1
        _, d_q, d_k, d_v = backward(*arrays, d_z)
        queries[[last]] -= d_q
        keys[pair] -= key_step * d_k
        values[pair] -= d_v
    return queries, keys, values


# %% [markdown] id="train-predict"
# We train from 20 random starts, and ask each model both new sentences. A model that ignores the last word answers both alike, so at most 20
# of 40 are right. **Predict** how many are right here.


# %% id="train-run" tags=["predicted"]
def exam(sentences, key_step=1):
    return checking.exam(lambda seed: train(seed, key_step), forward, sentences, meant)


print("sentences that were read:", exam(read))
print("the two new sentences:", exam(new))

# %% [markdown] id="train-notice" tags=["answer"]
# All 40 are right: "curious" finds the cat without having met it, and "broken" the clock.

# %% [markdown] id="control"
# Could queries and values do this alone? In the control all keys stay as they are, and the rest learns. **Predict** with
# {eq}`query-and-key-gradients` which entries of the query of "curious" can change now, and how many of the 40 will be right.

# %% id="control-run" tags=["predicted"]
print("sentences that were read:", exam(read, key_step=0))
print("the two new sentences:", exam(new, key_step=0))

# %% [markdown] id="control-notice" tags=["answer"]
# All that was read is answered right, but only 22 of 40 new ones are, about as many as a coin would get. The gradient of the query of
# "curious" is a sum of the keys that it meets, those of three animals and three things. Only the key of "cat", which it never meets, has a 1
# at the number of "cat". So this entry of the query, and with it the score of "cat", keeps its random start. So does that of "clock".

# %% [markdown] id="train-map-question"
# Here are all scores after training from one start. Pairs that never met are striped:

# %% id="train-map"
scores, never = [], [(1, 0), (1, 4), (4, 0), (4, 4)]  # last word, noun
for key_step in (0, 1):
    queries, keys, _ = train(0, key_step)
    scores.append(queries @ keys.T / math.sqrt(8))
figures.learned_scores(lasts, nouns, *scores, never)
alike = np.corrcoef(keys)  # of the model whose keys learned
print(f"two animals: at least {alike[:4, :4].min():.2f}", end=", ")
print(f"an animal and a thing: at most {alike[:4, 4:].max():.2f}")

# %% [markdown] id="train-why"
# Nobody told the keys which nouns are alive. But nearly every step moves the key of the right noun towards the query and that of the other
# noun away from it, and "tired" and "clumsy" should find all four animals. So the keys of the animals become alike, as the correlations
# below the figure show, and "curious", which learned to find three of them, finds the fourth.

# %% [markdown] id="limits"
# **Limits.** A gradient says what a small step does, and a large one may do the opposite. While every query gives a key the weight 0, by a
# mask or by rounding, neither the key nor its value learns from this attention.

# %% id="verify-lesson"
verify_lesson("gradients")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | values, {eq}`gradient-of-values` | {key}`gradient-of-values` | as $V$ |
# | weights, {eq}`gradient-of-weights` | {key}`gradient-of-weights` | as $P$ |
# | scores, {eq}`gradient-of-scores` | {key}`gradient-of-scores` | as $S$ |
# | queries and keys, {eq}`query-and-key-gradients` | {key}`query-and-key-gradients` | as $Q$, $K$ |

# %% [markdown] id="summary"
# ## Summary
#
# - For each entry ask which outputs it touches and how fast, and sum.
# - The gradient of a score is its weight, times what this weight costs above the mean of its row. Each row of $dS$ sums to 0.
# - Test a backward pass stage by stage, on inputs of different sizes.
#
# What does attention learn to look at? Where a value beats the present mixture and has some weight, the loss falls when its score rises. In
# our model nouns that the same endings ask for got keys that are alike, and so "curious", whose query learned too, found the cat. Lesson {lesson}`self_attention` carries
# the gradients on to the matrices that make queries, keys and values.

# %% [markdown] id="deeper-vanishes"
# ## Deeper: when a score hardly moves
#
# By {eq}`score-gradient-against-mixture`, $dS_{ij}$ is zero if $p_{ij} = 0$ or if $dZ_i \cdot v_j = dZ_i \cdot z_i$. How small is it *near*
# a weight of 0 or 1? The weights sum to 1, so $dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$. The term with $l = j$ is 0, no
# other difference is larger than the range of the row, and their weights sum to $1 - p_{ij}$. Hence
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$
#
# So in a plain gradient step of the scores a score hardly moves if its weight is very small or very near 1, unless the costs differ very
# much. Try this in the card, where $P$ is the softmax of $S$: make one score of a row 9, and see what becomes of its row of $dS$. (One
# of the buttons is the mistake of section {section}`backward-softmax`.)

# %% id="backward-softmax-alive"
from attn_course import alive

alive("gradient-of-scores")

# %% [markdown] id="card-question"
# Now four values with one feature, $-1, 0, 1, 2$, and the loss $-z$. The card moves the scores against the gradient, in steps of size 1; the
# first three begin at 0. How much longer does the best value take if it starts with little weight? Start $s_4$ at 0, $-1$, $-2$ and $-3$,
# and count the steps until it has more than half of the weight.

# %% id="explorable"
figures.steps_explorable()

# %% [markdown] id="explorable-notice"
# <details><summary>What you should see</summary>
#
# From 0, $-1$, $-2$ and $-3$ it takes 3, 8, 54 and 1108 steps: the last number is almost 370 times the first. The score of the best value
# rises in every one of these steps, and yet from $-3$ its weight *falls* in all steps from the second to the 346th, from .016 to .0012. A
# weight grows only if its score rises by more than the scores of its row do on average, under the weights, and the value 1, with its large
# weight, keeps that average higher.
#
# </details>

# %% [markdown] id="cost"
# ## Deeper: what it costs, and what has to be kept
#
# Forward, two matrix products take $F = 2\, T_q T_k (d_k + d_v)$ operations, {eq}`attention-flops`. Backward there are four, because
# each product has two factors, and each factor needs a gradient:
#
# $$F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F \label{backward-flops-weights-kept}$$
#
# Our program does a fifth and a sixth, since it computes weights and output again. To avoid that, keep them, together with $Q$, $K$ and
# $V$:
#
# $$\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k \label{numbers-kept-for-gradients}$$

# %% id="cost-code"
T, d = 8192, 64
print("P against Q, K, V and Z:", T * T / (4 * T * d), "times")
print(f"P takes {2 * T * T / 1e6:.0f} MB in 16-bit numbers, in each head of each layer")

# %% [markdown] id="cost-answer"
# FlashAttention keeps no weights. It computes them again in the backward pass, from queries and keys: lesson {lesson}`flash`.

# %% [markdown] id="deeper-step"
# ## Deeper: the wrong line, and the best step of a difference
#
# Without PyTorch one tests by **differences**, as in the first cell: each entry moves a step up and a step down. With the loss
# $\sum_{ia} dZ_{ia} Z_{ia}$ and a fixed random $dZ$, the gradient at the output is this $dZ$.


# %% id="check-entries-code"
def loss():
    return (d_z * forward(*arrays)[0]).sum()


def agrees(array, gradient, step=1e-5):
    for entry in np.ndindex(array.shape):
        kept = array[entry]
        array[entry] = kept + step
        up = loss()
        array[entry] = kept - step
        rate = (up - loss()) / (2 * step)
        array[entry] = kept
        if abs(rate - gradient[entry]) > 1e-6:
            return False
    return True


# %% [markdown] id="deeper-suspects"
# Here are two backward passes, in each of which we have planted one wrong line. What do differences say of them?

# %% id="suspects"
suspects = checking.suspects(seed=3)  # another seed draws others
for name, suspect in zip("AB", suspects, strict=False):
    found = zip("QKV", arrays, suspect(*arrays, d_z), strict=True)
    right = [f"d{which}" for which, array, each in found if agrees(array, each)]
    print(f"{name}: right is", *right)

# %% [markdown] id="check-predict"
# **Predict** for A and for B which line may be the wrong one: that of $dV$, $dP$, $dS$, $dQ$ or $dK$. Name all that fit.

# %% id="check-predict-code" tags=["predicted"]
for name, suspect in zip("AB", suspects, strict=False):
    print(f"{name}: wrong in the line of {suspect.line}: {suspect.told}")

# %% [markdown] id="check-answer" tags=["answer"]
# In A, $dQ$ and $dK$ are wrong and $dV$ is right. So the mistake lies in what $dQ$ and $dK$ share and $dV$ does not use, which is $dP$ or
# $dS$, and here it is $dP$. In B only $dQ$ is wrong, so it can only be the line of $dQ$ itself.

# %% [markdown] id="deeper-step-error"
# How good is a central difference? Let $f$ have five continuous derivatives near $x$, and write $O(h^n)$ for a rest that is at most a
# constant times $h^n$ for all small steps $h$. Taylor's expansion says
#
# $$f(x \pm h) = f(x) \pm h f'(x) + \tfrac{h^2}{2} f''(x) \pm \tfrac{h^3}{6} f'''(x) + \tfrac{h^4}{24} f''''(x) + O(h^5)$$
#
# In the difference of the two the even powers cancel. Divide by $2h$:
#
# $$\frac{f(x + h) - f(x - h)}{2\, h} = f'(x) + \frac{h^2}{6}\, f'''(x) + O(h^4) \label{central-difference-error}$$
#
# So half a small step leaves about a quarter of the error, unless $f'''(x) = 0$.

# %% [markdown] id="deeper-step-rounding"
# But each loss is rounded. Count only the last rounding: a loss of size $F$ is stored with an error up to $\varepsilon F$, where
# $\varepsilon = 2^{-53} \approx 10^{-16}$ in float64 and $2^{-24} \approx 6 \cdot 10^{-8}$ in float32. The errors of both losses together,
# divided by $2h$, can reach $\varepsilon F / h$. With $M > 0$ for the size of $f'''$, and without the roundings on the way to the loss, the
# error is at most about $E = M h^2 / 6 + \varepsilon F / h$. The best step lies where the slope $\frac{M h}{3} - \frac{\varepsilon F}{h^2}$
# is 0:
#
# $$E = \frac{M h^2}{6} + \frac{\varepsilon F}{h}: \qquad \frac{\partial E}{\partial h} = 0
#  \quad \Longleftrightarrow \quad h = \Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/3} \label{best-difference-step}$$

# %% [markdown] id="deeper-step-predict"
# With $F = M = 1$ that is $7 \cdot 10^{-6}$ in float64. **Predict** the best power of ten in float32.

# %% id="step-code" tags=["predicted"]
from attn_course.reference import attention

exact = backward(*arrays, d_z)[2]  # dK


def errors(kind, steps):
    q, k, v = (array.astype(kind) for array in arrays)
    found = []
    for step in steps:  # each entry of the keys is moved in an example of its own
        nudge = (step * np.eye(20)).reshape(20, 5, 4).astype(kind)
        rise = attention(q, k + nudge, v) - attention(q, k - nudge, v)
        # q and v serve all 20; outputs are rounded here, and their sum is in float64
        found.append((d_z * rise).sum(axis=(1, 2)) / (2 * step))
    return np.abs(np.array(found) - exact.ravel()).mean(axis=1)


steps, kinds = 10.0 ** -np.arange(0, 10), ("float64", "float32")
figures.difference_errors(steps, {kind: errors(kind, steps) for kind in kinds})

# %% [markdown] id="step-answer" tags=["answer"]
# It is $10^{-2}$. The estimate $(3 \cdot 6 \cdot 10^{-8})^{1/3}$ is about $0.0056 = 10^{-2.25}$, on the logarithmic axis nearer to
# $10^{-2}$ than to $10^{-3}$. (That fits the curve, but is no proof: here $F$ and $M$ are other numbers, and the outputs are rounded, not
# the loss.)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences with a step of $10^{-6}$, made for float64.
