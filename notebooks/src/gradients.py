# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# Training moves queries, keys and values against the gradient of a loss. **What does such a step teach attention to look at?** You will
# derive every gradient, and with them teach a small attention whom "it" stands for.
#
# **You need** the chain rule and lesson {lesson}`attention`: scores $S=QK^\top/\sqrt{d_k}$, weights $P$, the softmax of each row of $S$,
# and outputs $Z=PV$. **Time:** 60 minutes, without *Deeper* sections and the [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="hook"
# ## A row of sevenths
#
# In "the cat sat because it was tired" let the query of "because" be zero. Then its scores are 0, so each weight is $\frac17$, and its
# output $z$ is the mean of the values. The loss $L=-z_1+2z_2$ wants a large first and a small second entry. **Predict** for which words
# the loss falls when their score rises and the others stay.

# %% id="hook-code" tags=["predicted"]
import numpy as np

tokens = ["the", "cat", "sat", "because", "it", "was", "tired"]
# the value of each token: how alive it is, how much it tells
value = np.array([[0, 0], [2, 0], [0, 2], [0, 0], [0, 0], [0, 1], [1, 2]], dtype=float)


def loss_of_scores(scores):
    weights = np.exp(scores) / np.exp(scores).sum()
    output = weights @ value
    return -output[0] + 2 * output[1]


for token, nudge in zip(tokens, 1e-3 * np.eye(7), strict=True):
    rate = (loss_of_scores(nudge) - loss_of_scores(-nudge)) / 2e-3
    print(f"{token:8}{7 * rate:+.0f} sevenths")

# %% [markdown] id="hook-notice" tags=["answer"]
# The loss falls for "cat", which has only the feature that the loss wants, and rises for "sat", "was" and "tired". But it also falls for
# "the", "because" and "it", whose values are zero: they add nothing to the output. Why does the loss fall when *their* scores rise?

# %% [markdown] id="hook-time"
# Each of these numbers took two evaluations of the loss, but one sweep back finds all gradients. Here is its map, attention with its
# arrows turned round: $dZ$ stands for the gradient with respect to the output $Z$ (not a small change of it), $dP$ for that with respect
# to the weights, and so on. Here $dS$ will explain the sevenths, and $dQ$ and $dK$ will teach "it".

# %% id="machine"
from attn_course import check, verify_lesson
from attn_course.lessons.gradients import figures

figures.machine()

# %% [markdown] id="backward"
# ## Three questions for every entry
#
# There are $T_q$ queries and $T_k$ keys with $d_k$ entries each, and $T_k$ values with $d_v$ entries. (In the map, $T_q = T_k = T$.)

# %% [markdown] id="backward-chain"
# One rule gives all gradients. Let the loss $L$ be differentiable, and depend on $Q$, $K$ and $V$ only through $Z$. We are given $dZ$,
# with $dZ_{ia} = \partial L / \partial Z_{ia}$ for entry $a$ of output $i$. For the loss above, its row for "because" is $(-1, 2)$. Take
# any number $x$ that goes into $Z$, and write $dx$ for $\partial L / \partial x$. By the chain rule,
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$
#
# An output that $x$ does not touch adds 0. So for each entry we ask three questions. **Which outputs does it touch? How fast does it move
# each of them? What is the sum over all that are touched?**

# %% [markdown] id="backward-values"
# ## Back through a product
#
# We begin where the forward pass ended, at $Z = P V$, in entries $Z_{ia} = \sum_j p_{ij} V_{ja}$. Take **one entry of a value**,
# $V_{ja}$. It touches entry $a$ of every output $i$ and moves it at the rate $p_{ij}$, so the sum runs over all $i$:
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# A matrix product $(A B)_{ja} = \sum_i A_{ji} B_{ia}$ sums over the second index of $A$. Here $A_{ji}$ is $p_{ij}$, so the left factor is
# $P$ transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$
#
# If "because" asks alone, each value gets the same gradient $\frac17 (-1, 2)$.

# %% [markdown] id="backward-weights"
# For the sevenths we need the other factor. Take **one weight**, $p_{ij}$. It touches every entry of output $i$ and no other output, and
# moves $Z_{ia}$ at the rate $V_{ja}$. The sum runs over all $a$, so $dP_{ij}$ is the dot product $dZ_i \cdot v_j$ of row $i$ of $dZ$ with
# row $j$ of $V$. For all pairs at once:
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij}$ the **cost** of this weight: it says how fast the loss would grow if this weight alone were raised. "Cat" with the
# value $(2, 0)$ costs $(-1, 2) \cdot (2, 0) = -2$, "tired" with $(1, 2)$ costs 3, and "the" costs 0.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# The softmax does not allow one weight to rise alone, which will explain the case of "the". So take **one score**, $s_{ij}$. The loss
# depends on the scores only through $P$, so now the weights stand in the place of the outputs. A score touches all weights of its row,
# and no other row. How fast? In $p_{il} = e^{s_{il}} / \sum_m e^{s_{im}}$ it moves the denominator, and if $l = j$ also the numerator.
# The quotient rule gives the rate $p_{il}\, ([l = j] - p_{ij})$, {eq}`softmax-derivative`, where $[l = j]$ is 1 if $l = j$, and else 0.
# So
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$

# %% [markdown] id="backward-softmax-mean"
# The bracket $[l = j]$ leaves one term, $p_{ij}\, dP_{ij}$, and the other part is $-p_{ij}$ times $\sum_l p_{il}\, dP_{il}$, which is the
# **mean cost** $\delta_i$ of the row under its weights. For all rows at once:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$
#
# Here $\odot$ multiplies entry by entry, and the row of ones $\mathbf{1}^\top$ copies $\delta_i$ along row $i$. In words: the gradient of
# a score is its weight, times how far the cost of this weight lies above the mean.

# %% [markdown] id="sevenths"
# Now do the first cell by hand. **Predict**, for "because": the seven costs, their mean $\delta$, and the gradients of the scores of
# "cat" and "the".

# %% id="sevenths-figure" tags=["predicted"]
figures.row_on_wires(tokens, np.zeros(7), value, d_output=[-1, 2])

# %% [markdown] id="sevenths-notice" tags=["answer"]
# The mean cost is $\frac17 (0 - 2 + 4 + 0 + 0 + 2 + 3) = 1$. So "cat" gets $\frac17 (-2 - 1) = -\frac37$, and "the" gets
# $\frac17 (0 - 1) = -\frac17$, as in the first cell. "The" costs 0, and that is *less than the mean*. When its score rises, its weight
# grows at the expense of the six others, which cost more on average, so the loss falls.

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# Somebody forgets the mean: "Each score gets the cost of its weight, times the weight: $dS = P \odot dP$." Test it on one query and two
# keys with equal weights, where both values are the single number 3, and $dZ = 1$. What does it say, and what must $dS$ be?
#
# <details><summary>What is wrong</summary>
#
# Here $dP = (3, 3)$, so it says $dS = (1.5, 1.5)$. But the output is 3 whatever the scores are, so $dS$ must be $(0, 0)$. The mistake
# forgets that one weight can only rise at the expense of the others.
#
# </details>
#
# In the true $dS$ each row sums to 0, since raising all scores of a row equally changes no weight, {eq}`softmax-shift-invariance`.

# %% [markdown] id="which-gains"
# ## What a gradient pays attention to
#
# The mean cost has a shorter form: $\sum_l p_{il}\, (dZ_i \cdot v_l) = dZ_i \cdot \sum_l p_{il}\, v_l$, and the last sum is the output
# $z_i$. With $dP_{ij} = dZ_i \cdot v_j$, {eq}`gradient-of-scores` becomes
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# So each value is compared with the present output. If $dZ_i \cdot (v_j - z_i) < 0$, the weight of $v_j$ costs less than the mean: the
# loss falls when the output begins to move from $z_i$ towards $v_j$. Then, unless $p_{ij} = 0$, the gradient of its score is negative,
# and the loss falls when this score rises. With this line we will teach "it".

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
# Last come queries and keys, which will learn whom "it" means. A score is $s_{ij} = \sum_c Q_{ic} K_{jc} / \sqrt{d_k}$. Take **one entry
# of a query**, $Q_{ic}$. It touches the scores of row $i$ and moves $s_{ij}$ at the rate $K_{jc} / \sqrt{d_k}$. The sum over all $j$ is
# $dQ_{ic} = \sum_j dS_{ij} K_{jc} / \sqrt{d_k}$, and that is $dQ = dS\, K / \sqrt{d_k}$. And one entry of a key?

# %% [markdown] id="key-turn"
# **Your turn.** {turn}`gradient-of-all-keys`

# %% id="key-turn-code" tags=["your-turn"]
my_d_key = ...  # replace this line by your function
check("gradient-of-all-keys", my_d_key)

# %% [markdown] id="key-turn-ours" tags=["ours"]
# $K_{jc}$ touches the scores of column $j$ and moves $s_{ij}$ at the rate $Q_{ic} / \sqrt{d_k}$. The sum runs over all $i$, the first
# index of $dS$, so $dS$ is transposed, as $P$ was in $dV = P^\top dZ$.
#
# ```python
# def my_d_key(d_scores, query):
#     return d_scores.T @ query / np.sqrt(query.shape[1])
# ```

# %% [markdown] id="backward-qk-both"
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$
#
# The gradient of a query is a sum of keys, and the gradient of a key is a sum of queries. Query $i$ and key $j$ meet in both sums with
# the same factor, $dS_{ij} / \sqrt{d_k}$. If it is negative, a step against the gradient adds a piece of the key to the query, and a
# piece of the query to the key.

# %% [markdown] id="whole"
# ## The whole backward pass
#
# Your two functions and the formulas for $dQ$ and $dV$ make the whole program, with `attention` from lesson {lesson}`attention`. (Our
# answer stands in for an open turn.)

# %% id="whole-code"
from attn_course.lessons.gradients import tasks_checking as checking
from attn_course.reference import attention

my_d_scores, my_d_key = checking.or_ours(my_d_scores, my_d_key)


def backward(query, key, value, d_output):
    output, weights = attention(query, key, value, return_weights=True)
    d_scores = my_d_scores(weights, output, value, d_output)
    d_query = d_scores @ key / np.sqrt(query.shape[1])
    return d_query, my_d_key(d_scores, query), weights.T @ d_output


# %% [markdown] id="compare"
# Is it right? PyTorch records every operation and goes back through its record. We compare on inputs of different sizes, since with
# $d_k = d_v$ a wrong division by $\sqrt{d_v}$ would pass.

# %% id="compare-code"
import torch

rng = np.random.default_rng(3)
arrays = [rng.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2))]  # Q, K, V
d_z = rng.normal(size=(3, 2))

tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
output = torch.nn.functional.scaled_dot_product_attention(*tensors)
theirs = torch.autograd.grad(output, tensors, torch.tensor(d_z))
for name, our, their in zip("QKV", backward(*arrays, d_z), theirs, strict=True):
    print(f"d{name} agrees with PyTorch:", np.allclose(our, their))

# %% [markdown] id="train"
# ## Teach "it" whom it stands for
#
# Now let your backward pass teach. In *cat saw clock because it was curious*, "it" is the cat, but if it was *broken*, "it" is the clock.
# Can attention learn this if it never reads "curious" or "broken" together with "cat" or "clock"?
#
# There are four endings: "tired" and "curious" mean the animal, "heavy" and "broken" the thing. The model reads "tired" and "heavy" with
# all four pairs of nouns, but "curious" and "broken" only with dog and stone:

# %% id="train-data"
nouns = ["cat", "dog", "clock", "stone"]
endings = ["tired", "curious", "heavy", "broken"]
cat, dog, clock, stone = range(4)
tired, curious, heavy, broken = range(4)
right = [0, 0, 1, 1]  # an ending means the first noun of a pair, or the second

pairs = [[cat, clock], [cat, stone], [dog, clock], [dog, stone]]
read = [(pair, ending) for pair in pairs for ending in (tired, heavy)]
read += [([dog, stone], curious), ([dog, stone], broken)]
new = [([cat, clock], curious), ([cat, clock], broken)]
print(len(read), "sentences to read,", len(new), "new ones")

# %% [markdown] id="train-loss"
# **The model.** Each ending has a query, zero at first, with which "it" asks. Each noun has a key, which begins with a 1 in a place of
# its own and 0 elsewhere, so no two nouns are alike. Values stay fixed, $(1, 0)$ for the first noun of a pair and $(0, 1)$ for the
# second, so the output $z$ is just the two weights.
#
# **The loss** is $-\ln p$, where $p$ is the weight of the right noun, so it is small if $p$ is near 1. Its derivative by $p$ is $-1/p$,
# so $dZ$ is $-1/p$ at the right noun, and 0 at the other.

# %% [markdown] id="first-step"
# The first sentence is *cat saw clock because it was tired*. Its query is zero, so both weights are $\frac12$, and $dZ = (-2, 0)$.
# **Predict** by hand the gradients of the two scores by {eq}`score-gradient-against-mixture`, and then $dQ$ and $dK$. Here
# $\sqrt{d_k} = 2$.

# %% id="first-step-code" tags=["predicted"]
query, key, value = np.zeros((1, 4)), np.eye(4)[[cat, clock]], np.eye(2)
d_query, d_key, _ = backward(query, key, value, np.array([[-2.0, 0.0]]))
print("query:", d_query[0])
print("keys of cat and clock:", *d_key)

# %% [markdown] id="first-step-notice" tags=["answer"]
# The value of "cat", $(1, 0)$, less the output, $(\frac12, \frac12)$, is $(\frac12, -\frac12)$. So its score gets
# $\frac12 \cdot (-2) \cdot \frac12 = -\frac12$, and that of "clock" gets $+\frac12$. Then $dQ$ is $-\frac14$ of the key of "cat" and
# $+\frac14$ of that of "clock". But $dK = 0$, because a query that is zero teaches no key anything.

# %% [markdown] id="every-step"
# And later steps? By {eq}`score-gradient-against-mixture` the score of the right noun gets $p \cdot (-\frac1p)(1 - p) = -(1 - p)$. The
# other score gets $+(1 - p)$, for the row sums to 0. So *every* step whose query is not zero moves the key of the right noun along the
# query, and the other key just as far the opposite way. Now we take 500 such steps of size 1:


# %% id="train-code"
def train(sentences=read, query_step=1, key_step=1, start=None):
    queries, keys = (np.zeros((4, 4)), np.eye(4)) if start is None else start.copy()
    for pair, ending in 500 // len(sentences) * sentences:
        q, k = queries[[ending]], keys[pair]  # one query, two keys
        d_z = np.zeros((1, 2))
        d_z[0, right[ending]] = -1 / attention(q, k, value)[0, right[ending]]
        d_query, d_key, _ = backward(q, k, value, d_z)
        queries[[ending]] -= query_step * d_query
        keys[pair] -= key_step * d_key
    return queries, keys


def ask(pair, ending, queries, keys):  # the weight of the right noun
    return attention(queries[[ending]], keys[pair], value)[0, right[ending]]


# %% [markdown] id="train-predict"
# Does the right noun win in the new sentences, and must queries and keys both learn for that? In two controls one of them stays as it is.
# **Predict** for each of the three models whether the weight of the right noun is near 1 or $\frac12$, in what was read and in the new
# sentences.

# %% id="train-run" tags=["predicted"]
ways = {"both learn": {}, "keys stay": {"key_step": 0}}
ways["queries stay"] = {"query_step": 0}
for name, steps in ways.items():
    model = train(**steps)
    for kind, sentences in {"read": read, "new": new}.items():
        lowest = min(ask(*sentence, *model) for sentence in sentences)
        print(f"{name}, {kind}: lowest weight {lowest:.2f}")

# %% [markdown] id="train-notice" tags=["answer"]
# If both learn, the weight is 0.99 in the new sentences: "curious" finds the cat without having met it, and "broken" the clock.
#
# If the keys stay, what was read is learned, but the query of "curious" collects only the keys that it meets, those of dog and stone. The
# keys of cat and clock have their 1 in other places, so "curious" gives both the score 0, and the weight $\frac12$. If the queries stay,
# they are zero, so no key has a gradient, and nothing is learned.

# %% [markdown] id="train-map-question"
# ## What the keys learned
#
# How can "curious" find a noun it has never met? Here are the scores where the keys stayed and where they learned, with pairs that never
# met striped. Below stand cosines between keys: 1 means the same direction, and $-1$ the opposite one.

# %% id="train-map"
models = [train(key_step=0), train()]
never = [(curious, cat), (curious, clock), (broken, cat), (broken, clock)]
maps = [queries @ keys.T / 2 for queries, keys in models]
figures.learned_scores(endings, nouns, *maps, never)
for name, (_, keys) in zip(("stay", "learn"), models, strict=True):
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    to_dog, to_clock = unit[cat] @ unit[dog], unit[cat] @ unit[clock]
    print(f"keys that {name}: cat and dog {to_dog:.2f}, cat and clock {to_clock:.2f}")

# %% [markdown] id="train-why"
# Now the keys of cat and dog are alike. Why? No sentence says which nouns are alive, only which noun was right. But "tired" comes with
# cat and with dog and moves both keys along its query, and "heavy" moves both against its query. So the two become alike, and when
# "curious" learns to find the dog, it finds the cat as well.
#
# If this is the reason, it must fail where no ending joins the cat and the dog, since no two keys are alike at first. In this control "tired" and "heavy" come only with cat
# and clock, and "curious" and "broken" only with dog and stone. **Predict** the weight of the right noun in both kinds of sentences.

# %% id="apart-code" tags=["predicted"]
apart = [([cat, clock], tired), ([cat, clock], heavy)]
apart += [([dog, stone], curious), ([dog, stone], broken)]
model = train(apart)
for kind, sentences in {"read": apart, "new": new}.items():
    print(f"{kind}: lowest weight {min(ask(*each, *model) for each in sentences):.2f}")

# %% [markdown] id="apart-notice" tags=["answer"]
# What was read is learned, but in the new sentences the weight stays $\frac12$: nothing has made the cat like the dog.

# %% [markdown] id="starts"
# Our start was an orderly one. How often does the right noun get more than half of the weight if queries and keys start at random?

# %% id="starts-code"
starts = [np.random.default_rng(seed).normal(size=(2, 4, 4)) for seed in range(50)]
for name, sentences in {"joined": read, "apart": apart}.items():
    models = [train(sentences, start=start) for start in starts]
    found = [ask(*each, *model) > 0.5 for model in models for each in new]
    print(f"{name}: in {sum(found)} of {len(found)} new sentences")

# %% [markdown] id="starts-notice"
# Joined endings help here, too. (Without them the two new sentences of a start mostly stand or fall together, so 64 of 100 may be chance.)

# %% [markdown] id="limits"
# **Limits.** A gradient says what a small step does, and a large one may do the opposite. While every query gives a key the weight 0, by
# a mask or by rounding, neither the key nor its value learns from this attention. And we told
# "it" to ask with the query of the ending, which a whole model must find out itself.

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
# - The gradient of a score is its weight, times what this weight costs above the mean of its row.
# - Queries learn from keys and keys from queries, and a query that is zero teaches no key.
#
# What does a step teach attention to look at? At values that cost less than the mean and have some weight: the query gets a piece of
# their keys, and their keys a piece of the query. In our model keys that answered the same query became alike, and so "curious", whose
# query learned too, found the cat. Lesson {lesson}`self_attention` carries the gradients on to the matrices that make queries, keys and
# values.

# %% [markdown] id="deeper-vanishes"
# ## Deeper: when a score hardly moves
#
# By {eq}`score-gradient-against-mixture`, $dS_{ij}$ is zero if $p_{ij} = 0$. How small is it *near* a weight of 0 or 1? The weights sum to
# 1, so $dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$. The term with $l = j$ is 0, and the weights of the others sum to
# $1 - p_{ij}$. No difference is larger than the range of the row. Hence
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$
#
# So a score with a very small or a very large weight has hardly any gradient, unless the costs differ very much. Try it: make one score of a row 9, and
# look at its row of $dS$.

# %% id="backward-softmax-alive"
from attn_course import alive

alive("gradient-of-scores")

# %% [markdown] id="card-question"
# What does this do to learning? Here are four values, $-1, 0, 1, 2$, and the loss $-z$. The card moves the scores against the gradient, in
# steps of size 1. The first three scores begin at 0. Start the fourth at 0, $-1$, $-2$ and $-3$. How many steps does the best value take to
# get more than half of the weight? And which way does its weight go at first?

# %% id="explorable"
figures.steps_explorable()

# %% [markdown] id="explorable-notice"
# <details><summary>What you should see</summary>
#
# It takes 3, 8, 54 and 1108 steps. From $-3$ the score of the best value rises in every step, and yet its weight *falls* from the second
# step to the 346th, from .016 to .0012. A weight grows only if its score rises by more than the scores of its row do on average, under the
# weights. Until then the score of the value 1, which has a large weight, rises faster.
#
# </details>

# %% [markdown] id="cost"
# ## Deeper: what it costs, and what has to be kept
#
# A product of an $m \times n$ and an $n \times r$ matrix takes $2\, m n r$ operations. So the two products of the forward pass take
# $F = 2\, T_q T_k (d_k + d_v)$, {eq}`attention-flops`. Backward there are four, because each product has two factors, and each factor needs
# a gradient:
#
# $$F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F \label{backward-flops-weights-kept}$$
#
# Our program takes two more, since it computes weights and output again. To avoid that, keep them, together with $Q$, $K$ and $V$:
#
# $$\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k \label{numbers-kept-for-gradients}$$
#
# For $T_q = T_k = 8192$ and $d_k = d_v = 64$, $P$ is by far the most of it:

# %% id="cost-code"
T, d = 8192, 64
print("P against Q, K, V and Z:", T * T / (4 * T * d), "times")
print(f"P takes {2 * T * T / 1e6:.0f} MB in 16-bit numbers, in each head of each layer")

# %% [markdown] id="cost-answer"
# The factor is $T / (4 d)$. FlashAttention keeps no weights. It computes them again in the backward pass, from queries and
# keys: lesson {lesson}`flash`.

# %% [markdown] id="deeper-step"
# ## Deeper: which line is wrong?
#
# In each of these two backward passes we planted one wrong line. To find out which gradients are right, we move one entry at a time, as
# in the first cell. The loss is $\sum_{ia} dZ_{ia} Z_{ia}$ with a fixed random $dZ$, for its gradient at the output is this $dZ$.

# %% id="suspects"
suspects = checking.suspects(seed=3)[:2]  # another seed draws others
for name, suspect in zip("AB", suspects, strict=True):
    print(f"{name}: right is", *checking.agreeing(suspect(*arrays, d_z), arrays, d_z))

# %% [markdown] id="check-predict"
# **Predict** for A and for B which line may be the wrong one: that of $dV$, $dP$, $dS$, $dQ$ or $dK$. Name all that fit.

# %% id="check-predict-code" tags=["predicted"]
for name, suspect in zip("AB", suspects, strict=True):
    print(f"{name}: wrong in the line of {suspect.line}: {suspect.told}")

# %% [markdown] id="check-answer" tags=["answer"]
# In A, $dQ$ and $dK$ are wrong and $dV$ is right. So the mistake lies in what $dQ$ and $dK$ share and $dV$ does not use, which is $dP$ or
# $dS$, and here it is $dP$. In B only $dQ$ is wrong, so it can only be the line of $dQ$ itself.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences with a step of $10^{-6}$, made for float64.
