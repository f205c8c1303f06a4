# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# In *cat saw clock because it was curious*, "it" is the cat. Attention can find this without ever reading "curious" with a cat or a
# clock. So **what does a gradient step teach attention to look at?**
#
# **You need** the chain rule and lesson {lesson}`attention`: scores $S=QK^\top/\sqrt{d_k}$, weights $P$, the softmax of each row,
# outputs $Z=PV$. **Time:** 60 minutes, without *Deeper* sections and [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="train-map-question"
# ## A word that it has never met
#
# Here "curious" asks with its query, cat and clock answer with their keys, and the cat should get the larger weight. "Tired" means the
# animal too, "heavy" and "broken" the thing. Attention reads ten sentences: "tired" and "heavy" with each animal (cat, dog) and thing
# (clock, stone), "curious" and "broken" only with dog and stone. These are the scores that it learns; pairs that never met are striped:

# %% id="train-map"
from attn_course.lessons.gradients import figures
from attn_course.lessons.gradients import tasks_checking as given

maps = [given.scores_by_torch(key_step) for key_step in (0, 1)]
figures.learned_scores(given.ENDINGS, given.NOUNS, *maps, given.NEVER)

# %% [markdown] id="hook-time"
# On the left, as a control, only queries learn, and "curious" scores cat and clock alike. If keys learn too, it finds the cat and avoids the
# clock, and it has met neither. Who told it? At the end you train this table with gradients of your own.
#
# The way there is attention with its arrows turned round. Here $dx$ means the gradient of the loss with respect to $x$, not a small change
# of it. We begin at $dZ$ and explain each arrow when we come to it:

# %% id="machine"
from attn_course import check, verify_lesson

figures.machine()

# %% [markdown] id="forward"
# ## One query, in numbers
#
# First we go forward, with one query, three nouns and numbers to follow in your head. The query is
# $q = 2\,(\ln 3, \ln 2, 0, 0)$, about $(2.2, 1.39, 0, 0)$. The key of the cat is $(1, 1, 0, 0)$, so with $\sqrt{d_k} = \sqrt 4 = 2$ its
# score is $q \cdot k / 2 = \ln 3 + \ln 2 = \ln 6$. The dog, with $(1, 0, 0, 0)$, gets $\ln 3$, and the clock, with $(0, 0, 1, 0)$, gets 0.
# Now $e$ to these powers is 6, 3 and 1, together 10, so the weights are 0.6, 0.3 and 0.1.

# %% [markdown] id="forward-output"
# The values are $(2, 1)$, $(0, 1)$ and $(2, 0)$, and their average with these weights is
#
# $$z = 0.6\,(2, 1) + 0.3\,(0, 1) + 0.1\,(2, 0) = (1.4,\ 0.9)$$
#
# Suppose that $t = (0.4, 1.9)$ would have been right, and let the loss be half the squared distance, $L = \frac12 |z - t|^2$. Both entries
# are wrong by 1, so $L = 1$. As a program:

# %% id="forward-code"
import numpy as np

Q = 2 * np.array([[np.log(3), np.log(2), 0, 0]])
K = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])  # cat, dog, clock
V = np.array([[2.0, 1], [0, 1], [2, 0]])
target = np.array([[0.4, 1.9]])

S = Q @ K.T / 2
P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
Z = P @ V
L = ((Z - target) ** 2).sum() / 2
print("weights", P.round(2), " output", Z.round(2), f" loss {L:.2f}")

# %% [markdown] id="backward-chain"
# ## Back through a product
#
# How should each number $x$ change so that the loss falls? The gradient $dx = \partial L / \partial x$ tells us. We begin at the end:
# $\partial L / \partial z_a = z_a - t_a$, so $dZ = (1, -1)$.
#
# Everything else acts on the loss through $Z$ only. Let $T_q$ queries meet $T_k$ keys. If $L$ is differentiable, the chain rule says for any
# number $x$ that goes into $Z$
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$
#
# So of each number we ask three questions. **Which outputs does it touch? How fast does it move each of them? What is the sum over all that
# are touched?**

# %% [markdown] id="backward-values"
# Ask them of one entry of a value. In $Z_{ia} = \sum_j p_{ij} V_{ja}$ the entry $V_{ja}$ touches entry $a$ of every output $i$, and moves it
# at the rate $p_{ij}$, so the sum runs over all $i$:
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# A matrix product sums over the second index of its left factor. Here $i$ is the first index of $P$, so $P$ is transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$
#
# With one query the sum has one term, and the value of the cat gets $0.6\,(1, -1)$.

# %% [markdown] id="backward-weights"
# Now take one weight, $p_{ij}$. It touches every entry of output $i$ and no other output, and moves $Z_{ia}$ at the rate $V_{ja}$. The sum
# runs over all $a$, so $dP_{ij}$ is the dot product of row $i$ of $dZ$ with value $j$. For all pairs at once:
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij} = dZ_i \cdot v_j$ the **cost** of this weight: it says how fast the loss would grow if this weight alone were raised. The
# cat costs $(1, -1) \cdot (2, 1) = 1$, the dog $(1, -1) \cdot (0, 1) = -1$, and the clock $(1, -1) \cdot (2, 0) = 2$.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# But a weight never rises alone, because the weights of a row sum to 1. So we ask the three questions of one score instead. Write the
# weights of its row as $p_l = e^{s_l} / N$, with $N$ for the sum of all powers. Score $j$ stands in $N$, so it touches every weight of
# the row. If $l \ne j$, the numerator rests while $N$ moves at the rate $e^{s_j}$, and the quotient rule gives
#
# $$\frac{\partial p_l}{\partial s_j} = -\frac{e^{s_l}\, e^{s_j}}{N^2} = -\,p_l\, p_j$$
#
# If $l = j$, the numerator moves too, which adds $e^{s_j} / N = p_j$. Both cases in one: the rate is $p_l\,([l = j] - p_j)$, where
# $[l = j]$ is 1 if $l = j$ and else 0, as in {eq}`softmax-derivative`.

# %% [markdown] id="backward-softmax-sum"
# The last question asks for the sum over all weights of row $i$, each with its cost:
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$
#
# The bracket has two parts. Its 1 stands only at $l = j$ and leaves $p_{ij}\, dP_{ij}$. Its $p_{ij}$ stands in every term, so we may take it
# out of the sum:
#
# $$dS_{ij} = p_{ij}\, dP_{ij} - p_{ij} \sum_{l} p_{il}\, dP_{il} = p_{ij}\, (dP_{ij} - \delta_i)$$
#
# Here $\delta_i = \sum_l p_{il}\, dP_{il}$ is the **mean cost** of the row. For all rows at once, where $\odot$ multiplies entry by entry,
# and the row of ones $\mathbf{1}^\top$ copies $\delta_i$ along row $i$:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$
#
# In words: the gradient of a score is its weight, times how far the cost of this weight lies above the mean.

# %% [markdown] id="row-by-hand-question"
# **Predict** from the weights 0.6, 0.3, 0.1 and the costs $1, -1, 2$: what is the mean cost, and what are the gradients of the scores?

# %% id="row-by-hand" tags=["predicted"]
dZ = Z - target
dV = P.T @ dZ
dP = dZ @ V.T
delta = (P * dP).sum(axis=1, keepdims=True)
dS = P * (dP - delta)
print("mean cost", delta.round(2), " gradients of the scores", dS.round(2))

# %% [markdown] id="row-by-hand-notice" tags=["answer"]
# The mean cost is $0.6 - 0.3 + 0.2 = 0.5$. So the scores get $0.6\,(1 - 0.5) = 0.3$ and $0.3\,(-1 - 0.5) = -0.45$ and
# $0.1\,(2 - 0.5) = 0.15$, which sum to 0. If the scores took a step against them, only that of the dog would rise.

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# Somebody forgets the mean: $dS = P \odot dP$. Our numbers become $(0.6, -0.3, 0.2)$, with the right signs. What must $dS$ be if all three
# values are equal, and what does this give?
#
# <details><summary>Answer</summary>
#
# Then the output does not depend on the scores, so $dS$ must be 0. But $P \odot dP$ is 0 only if all costs are 0.
#
# </details>
#
# In the true $dS$ each row sums to 0, since raising all scores of a row equally changes no weight, {eq}`softmax-shift-invariance`.

# %% [markdown] id="which-gains"
# The mean cost has a shorter form. As $\sum_l p_{il}\, (dZ_i \cdot v_l) = dZ_i \cdot \sum_l p_{il}\, v_l$, and the last sum is the output
# $z_i$, {eq}`gradient-of-scores` becomes
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# So each value is compared with the present output. If the loss falls at a nonzero rate when output $i$ begins to move from
# $z_i$ towards $v_j$, then $dS_{ij}$ is negative (unless $p_{ij} = 0$). A step of the scores against their gradients then raises this one.

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
# The dog should get a higher score. Will its key do that, or the query? Both, and the three questions say how. In
# $s_{ij} = \sum_c Q_{ic} K_{jc} / \sqrt{d_k}$ an entry $Q_{ic}$ of query $i$ touches the scores of row $i$, one for each key, and moves
# $s_{ij}$ at the rate $K_{jc} / \sqrt{d_k}$. So the sum runs over the keys:
#
# $$dQ_{ic} = \sum_{j=1}^{T_k} dS_{ij}\, \frac{K_{jc}}{\sqrt{d_k}}$$
#
# Here $j$ is the second index of $dS$ and the first of $K$, so nothing is transposed, and $dQ = dS\, K / \sqrt{d_k}$. And one entry of a
# key?

# %% [markdown] id="key-turn"
# **Your turn.** {turn}`gradient-of-all-keys`

# %% id="key-turn-code" tags=["your-turn"]
my_d_key = ...  # replace this line by your function
check("gradient-of-all-keys", my_d_key)

# %% [markdown] id="key-turn-ours" tags=["ours"]
# $K_{jc}$ touches the scores of column $j$, one for each query, and moves $s_{ij}$ at the rate $Q_{ic} / \sqrt{d_k}$. The sum runs over all
# $i$, the first index of $dS$, so $dS$ is transposed, as $P$ was in $dV = P^\top dZ$.
#
# ```python
# def my_d_key(d_scores, query):
#     return d_scores.T @ query / np.sqrt(query.shape[1])
# ```

# %% [markdown] id="backward-qk-both"
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$
#
# **Predict** from $dS = (0.3, -0.45, 0.15)$ the gradient of the query, and to whose key a step against the gradient *adds* a piece of the
# query.

# %% id="circuit" tags=["predicted"]
dQ = dS @ K / 2
dK = dS.T @ Q / 2
print("query", dQ.round(3))
print("keys", *dK.round(2))
figures.row_on_wires(["cat", "dog", "clock"], Q[0], K, V, target[0])

# %% [markdown] id="circuit-notice" tags=["answer"]
# Half of $0.3\,(1, 1, 0, 0) - 0.45\,(1, 0, 0, 0) + 0.15\,(0, 0, 1, 0)$ is $dQ = (-0.075, 0.15, 0.075, 0)$. Each key gets a multiple of
# $q / 2 = (1.1, 0.69, 0, 0)$, and only that of the dog a negative one, $-0.45$. So a step adds a piece of the query to the key of the
# dog, and takes pieces away from the other two.

# %% [markdown] id="pieces"
# Query $i$ and key $j$ meet in both sums with the same factor, $dS_{ij} / \sqrt{d_k}$. If it is negative, a step against the gradient adds
# a piece of each to the other.

# %% [markdown] id="whole"
# ## The whole backward pass
#
# With your two functions the program has a line for each equation. (If a turn is still open, our answer is used.)

# %% id="whole-code"
from attn_course.reference import attention

my_d_scores, my_d_key = given.or_ours(my_d_scores, my_d_key)


def backward(Q, K, V, dZ):
    Z, P = attention(Q, K, V, return_weights=True)
    dV = P.T @ dZ
    dS = my_d_scores(P, Z, V, dZ)
    dQ = dS @ K / np.sqrt(K.shape[1])
    dK = my_d_key(dS, Q)
    return dQ, dK, dV


# %% [markdown] id="compare"
# One check needs no calculus. Compute the loss with the first entry of the dog's key a little larger and with it as much smaller, and
# divide the difference of the losses by that of the entries:


# %% id="differences-code"
def loss(key):
    return ((attention(Q, key, V) - target) ** 2).sum() / 2


nudge = np.zeros((3, 4))
nudge[1, 0] = 1e-4
slope = (loss(K + nudge) - loss(K - nudge)) / 2e-4
_, dK, _ = backward(Q, K, V, dZ)
print(f"by differences {slope:.4f}, by your program {dK[1, 0]:.4f}")

# %% [markdown] id="autograd"
# The other check is PyTorch, with different sizes, since with $d_k = d_v$ a wrong division by $\sqrt{d_v}$ would pass:

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

# %% [markdown] id="first-step"
# ## Who told "curious"?
#
# Now your gradients take the place of PyTorch's. In the first sentence, *cat saw clock because it was tired*, the query of "tired" meets the
# keys of cat and clock, and a step of size 1 changes these themselves. All queries begin at zero, and each key with a 1 in a place of its
# own, so the keys are at right angles to each other.
#
# The right noun, here the cat, gets the value 1 and the other 0, so the output is its weight $p$. The loss is $-\ln p$, so $dZ = -1/p$.
# **Predict** what the first step moves: the query of "tired", the keys of cat and clock, or all three?

# %% id="first-step-code" tags=["predicted"]
cat, dog, clock, stone = range(4)
tired, curious, heavy, broken = range(4)
right = [0, 0, 1, 1]  # an ending means the first noun of a pair, or the second


def by_hand(query, key, ending):
    value = np.zeros((2, 1))  # a column, in which the target sits:
    value[right[ending]] = 1
    p = attention(query, key, value)
    return p, *backward(query, key, value, -1 / p)[:2]


_, d_query, d_key = by_hand(np.zeros((1, 4)), np.eye(4)[[cat, clock]], tired)
print("query:", d_query[0])
print("keys of cat and clock:", *d_key)

# %% [markdown] id="first-step-notice" tags=["answer"]
# Only the query moves. With two equal weights $dZ = -2$, the costs are $-2$ and 0, and $dS = (-\frac12, \frac12)$. So $dQ$ is $-\frac14$ of
# the cat's key and $+\frac14$ of the clock's, and a step goes towards the cat. The keys get no gradient, because theirs is a piece of the
# query, and the query is zero.

# %% [markdown] id="every-step"
# And later steps? For the right noun $dZ = -\frac1p$ and $v - z = 1 - p$, so by {eq}`score-gradient-against-mixture` its score gets
# $p \cdot (-\frac1p)(1 - p) = -(1 - p)$, and the other score $+(1 - p)$, since the row sums to 0. As $p < 1$, *every* step whose query is
# not zero moves the key of the right noun along the query, and the other key just as far the opposite way.
#
# "Tired" comes with cat and with dog. It moves both keys along its query, and those of clock and stone against it. "Heavy" does the reverse.
# So cat and dog may become alike, and so may clock and stone. Then "curious", which learns to find the dog and to avoid the stone, finds the
# cat and avoids the clock. Do they become alike?


# %% id="train-why-code"
def train(sentences):
    queries, keys = np.zeros((4, 4)), np.eye(4)
    for pair, ending in sentences * (500 // len(sentences)):  # the list, many times
        _, d_query, d_key = by_hand(queries[[ending]], keys[pair], ending)
        queries[[ending]] -= d_query
        keys[pair] -= d_key
    return queries, keys


queries, keys = train(given.READ)
print("as with PyTorch:", np.allclose(queries @ keys.T / 2, maps[1]))
figures.learned_keys(given.NOUNS, np.eye(4), keys)

# %% [markdown] id="train-why"
# They do. If shared endings and nouns are the reason, "curious" must fail after sentences in two halves that share neither. So we train anew,
# on four: "tired" and "heavy" with cat and clock, "curious" and "broken" with dog and stone.
#
# **Predict** for the ten and for the four: when "curious" and "broken" then meet cat and clock, is the weight of the right noun near 0, in
# the middle or near 1?


# %% id="apart-code" tags=["predicted"]
def ask(sentences, queries, keys):  # the weights of the right nouns
    found = [by_hand(queries[[e]], keys[pair], e)[0] for pair, e in sentences]
    return np.ravel(found).round(2)


new = [([cat, clock], curious), ([cat, clock], broken)]
apart = [([cat, clock], tired), ([cat, clock], heavy)]
apart += [([dog, stone], curious), ([dog, stone], broken)]
model = train(apart)
print("after the ten:", ask(new, queries, keys))
print("after the four:", ask(new, *model), " what they read:", ask(apart, *model))

# %% [markdown] id="apart-notice" tags=["answer"]
# After the four it is $\frac12$, though they are learned. A query gets pieces only of keys that it meets, and a key only of queries that it
# meets. So the halves stay at right angles, and "curious" keeps the score 0 with cat and clock.

# %% [markdown] id="limits"
# **Limits.** A gradient says what a small step does, and a large one may do the opposite. A key to which every query gives the weight 0, as
# under a mask, learns nothing here, nor does its value. From random starts the new sentences come out right mostly, not always (*Deeper*).
# And we chose the ending's query for "it", which a whole model must find out itself.

# %% id="verify-lesson"
verify_lesson("gradients")

# %% [markdown] id="card"
# ## Formula card
#
# | gradient of | formula |
# |---|---|
# | values, {eq}`gradient-of-values` | {key}`gradient-of-values` |
# | weights, {eq}`gradient-of-weights` | {key}`gradient-of-weights` |
# | scores, {eq}`gradient-of-scores` | {key}`gradient-of-scores` |
# | queries and keys, {eq}`query-and-key-gradients` | {key}`query-and-key-gradients` |

# %% [markdown] id="summary"
# ## Summary
#
# The gradient of a score is its weight, times what this weight costs above the mean of its row.
#
# What does a step teach attention to look at? At values that cost less than the mean and have some weight: each pulls the query
# towards its key, and its key towards the query (unless others pull harder). So through shared endings and nouns the cat became like the dog and the clock like the
# stone, and "curious", which had learned to find the dog and avoid the stone, found the cat and avoided the clock. Lesson
# {lesson}`self_attention` carries the gradients on to the matrices that make queries, keys and values.

# %% [markdown] id="starts"
# ## Deeper: other lists, other starts
#
# From random queries and keys, how often does the right noun of the two new sentences get more than half of the weight?

# %% id="starts-code"
for name, sentences in {"ten": given.READ, "four": apart}.items():
    share = given.share_found(sentences, new, right, starts=1000)
    print(f"after the {name}: in {share:.0%} of the new sentences")

# %% [markdown] id="starts-notice"
# Shared endings and nouns help here too; without them it is chance.

# %% [markdown] id="own-list"
# **Your own list.** From the orderly start, keep the sentences of "curious" and "broken", and add as few others with "tired" or "heavy" as
# lift both new weights above 0.6. One rule: in the whole list, no ending may come with cat in one sentence and with dog in another.

# %% id="own-list-code"
mine = [([dog, stone], curious), ([dog, stone], broken)]
mine += []  # yours, such as ([cat, clock], tired)
print("curious and broken, with cat and clock:", ask(new, *train(mine)))

# %% [markdown] id="own-list-answer"
# <details><summary>Our list</summary>
#
# One is enough: "tired" with cat and stone gives 0.77. So does "tired" with dog and clock, and that moves no key of the cat at all: "curious"
# does not find the cat, it only avoids the clock. Without the rule, "tired" with cat and clock, and with dog and stone, gives 0.97.
#
# </details>

# %% [markdown] id="deeper-vanishes"
# ## Deeper: when a score hardly moves
#
# How small is $dS_{ij}$ near a weight of 0 or 1? The weights sum to 1, so
# $dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$. The term with $l = j$ is 0, and the weights of the others sum to
# $1 - p_{ij}$. No difference is larger than the range of the row. Hence
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$
#
# So a score with a very small or a very large weight has hardly any gradient, unless the costs differ very much. Try it with one score of 9:

# %% id="backward-softmax-alive"
from attn_course import alive

alive("gradient-of-scores")

# %% [markdown] id="card-question"
# What does this do to learning? The card has four values, $-1, 0, 1, 2$, the loss $-z$, and steps of size 1. Three scores begin at 0.
# Start that of the best value at 0, $-1$, $-2$ and $-3$. How many steps does the best value take to get more than half of the weight? And
# which way does its weight go at first?

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
# The two products of the forward pass take $F = 2\, T_q T_k (d_k + d_v)$ operations, {eq}`attention-flops`. Backward there are four, because
# each product has two factors, and each factor needs a gradient:
#
# $$F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F \label{backward-flops-weights-kept}$$
#
# Our program computes weights and output again. To avoid that, keep them, with $Q$, $K$ and $V$:
#
# $$\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k \label{numbers-kept-for-gradients}$$
#
# For $T_q = T_k = 8192$ and $d_k = d_v = 64$, $P$ is by far the most of it:

# %% id="cost-code"
T, d = 8192, 64
print("P against Q, K, V and Z:", T * T / (4 * T * d), "times")
print(f"P takes {2 * T * T / 1e6:.0f} MB in 16-bit numbers, in each head of each layer")

# %% [markdown] id="cost-answer"
# The factor is $T / (4 d)$. FlashAttention keeps no weights. It computes them again in the backward pass, from queries,
# keys and the logarithm of the normalising sum of each row, which it keeps: lesson {lesson}`flash`.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences with a step of $10^{-6}$, made for float64.
