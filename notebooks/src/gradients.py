# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# In *cat saw clock because it was curious*, "it" is the cat. Can attention find this if it never read "curious" with a cat or a clock?
# It learns by gradient steps. So **what does a step teach attention to look at?**
#
# **You need** the chain rule and lesson {lesson}`attention`: scores $S=QK^\top/\sqrt{d_k}$, weights $P$, the softmax of each row,
# outputs $Z=PV$. **Time:** 60 minutes, without *Deeper* sections and [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="train-map-question"
# ## A word that it has never met
#
# Two endings, "tired" and "curious", ask with a query which of two nouns "it" is. The nouns answer with keys, and the animal should get
# the larger weight. We train on three sentences: "tired" comes with cat and clock, then with dog and stone, and "curious"
# with dog and stone.

# %% id="train-torch"
import torch

cat, dog, clock, stone = range(4)
tired, curious = range(2)
# an ending, and the nouns it comes with, the animal first
read = [(tired, [cat, clock]), (tired, [dog, stone]), (curious, [dog, stone])]


def learn(key_step):
    queries = torch.zeros(2, 4, dtype=float, requires_grad=True)
    keys = torch.eye(4, dtype=float, requires_grad=True)  # a 1 in a place of its own
    for ending, pair in 100 * read:
        loss = -torch.log_softmax(keys[pair] @ queries[ending] / 2, dim=0)[0]
        d_queries, d_keys = torch.autograd.grad(loss, (queries, keys))
        with torch.no_grad():
            queries -= d_queries
            keys -= key_step * d_keys
    return (queries @ keys.T / 2).detach().numpy()


# %% [markdown] id="train-map-shown"
# Each key begins with a 1 in a place of its own, each query at zero, and the loss is minus the logarithm of the animal's weight. After 100
# rounds "curious" scores the dog above 0 and the stone below.
#
# **Predict** the signs of its scores for the cat and the clock (plus, minus, or 0), if the keys stay, and if they learn.

# %% id="train-map" tags=["predicted"]
from attn_course.lessons.gradients import figures

nouns, endings = ["cat", "dog", "clock", "stone"], ["tired", "curious"]
maps = learn(key_step=0), learn(key_step=1)
figures.learned_scores(endings, nouns, *maps, never=[(curious, cat), (curious, clock)])

# %% [markdown] id="train-map-answer" tags=["answer"]
# These two scores are striped. If the keys stay, both are 0: the query of "curious" is made of the keys of dog and stone, which share
# nothing with the others. If the keys learn, it finds the cat and avoids the clock.

# %% [markdown] id="hook-time"
# Who told "curious" about a cat that it never met? Queries and keys change only by what `torch.autograd.grad` returns, so we derive it:
# $dZ$, then $dQ$, $dK$ and $dV$, where $dx$ is the gradient of the loss with respect to $x$. This way back is attention with its arrows
# turned round:

# %% id="machine"
from attn_course import check, verify_lesson

figures.machine()

# %% [markdown] id="forward"
# ## One query, in numbers
#
# What does one step do? We take one query, three nouns and numbers to follow in your head. The query is
# $q = 2\,(\ln 3, \ln 2, 0, 0)$, about $(2.2, 1.39, 0, 0)$. The key of the cat is $(1, 1, 0, 0)$, so with $\sqrt{d_k} = \sqrt 4 = 2$ its
# score is $q \cdot k / 2 = \ln 3 + \ln 2 = \ln 6$. The dog, with $(1, 0, 0, 0)$, gets $\ln 3$, and the clock, with $(0, 0, 1, 0)$, gets 0.
# Now $e$ to these powers is 6, 3 and 1, so the weights are 0.6, 0.3 and 0.1.

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
figures.mixture(["cat", "dog", "clock"], P[0], V, target[0])

# %% [markdown] id="scores-question"
# The output should follow the arrow. If a score rises, its weight grows while the others shrink, and the output moves towards its value.
#
# **Predict** from the picture which of the three scores should rise. The other two do harm if they rise: which does more, that of the cat,
# or that of the clock, whose value lies farther from the target?


# %% id="scores-moved" tags=["predicted"]
def loss_of(scores):
    powers = np.exp(scores)
    return ((powers @ V / powers.sum() - target) ** 2).sum() / 2


for word, nudge in zip(["cat", "dog", "clock"], 0.1 * np.eye(3), strict=True):
    print(f"{word:5} score + 0.1: loss {loss_of(S[0] + nudge):.3f}")

# %% [markdown] id="scores-answer" tags=["answer"]
# Only that of the dog, since only the way to the dog's value goes more along the arrow than against it. The clock lies farther off, and yet
# the cat does about twice the harm. Its weight is 0.6, the clock's 0.1, and a score moves the output in proportion to its weight, as we
# shall see.

# %% [markdown] id="backward-chain"
# ## Back through a product
#
# Each of these trials took a forward pass. The chain rule finds all gradients in one pass back, and a small step against them lowers the
# loss (unless all are 0). It begins at the end: $\partial L / \partial z_a = z_a - t_a$, so $dZ = (1, -1)$.
#
# All other numbers act on the loss through the output. So the chain rule asks of each: **Which entries of the outputs does it touch? How
# fast does it move them? What is the sum over all that are touched**, each rate times the gradient there?

# %% [markdown] id="backward-values"
# Take the cat's value. In $z = 0.6\, v_{\text{cat}} + 0.3\, v_{\text{dog}} + 0.1\, v_{\text{clock}}$ each of its entries touches one entry
# of $z$, at the rate 0.6, so its gradient is $0.6\,(1, -1)$. If there are several queries, value $j$ touches the output of each query $i$,
# and its gradient is the sum of $p_{ij}\, dZ_i$ over $i$. A matrix product sums over the second index of its left factor, but $i$ is the
# first index of $P$. So $P$ is transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$

# %% [markdown] id="backward-weights"
# A weight $p_{ij}$ touches every entry of output $i$ and no other output, and it moves $z_i$ along $v_j$. The sum over the entries is the
# dot product $dZ_i \cdot v_j$, and for all pairs at once
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij} = dZ_i \cdot v_j$ the **cost** of this weight: how fast would the loss grow if this weight alone were raised? The cat
# costs $(1, -1) \cdot (2, 1) = 1$, the dog $(1, -1) \cdot (0, 1) = -1$, and the clock $(1, -1) \cdot (2, 0) = 2$.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# But a weight never rises alone. The weights of a row sum to 1, so when a score rises, its weight takes from the others. If score $j$ rises
# at the rate 1, weight $l$ of its row moves at the rate
#
# $$\frac{\partial p_l}{\partial s_j} = p_l\, ([l = j] - p_j), \qquad \text{where } [l = j] \text{ is 1 if } l = j \text{ and else 0}$$
#
# (this is {eq}`softmax-derivative`). So if the score of the cat rises, the weights 0.6, 0.3 and 0.1 move at the rates
#
# $$0.6\,(1 - 0.6) = 0.24, \qquad 0.3\,(0 - 0.6) = -0.18, \qquad 0.1\,(0 - 0.6) = -0.06$$
#
# The cat gains what the others lose, and they lose in proportion to what they have.

# %% [markdown] id="backward-softmax-cat"
# The cat's score touches three weights at these rates, and we know their costs, so its gradient is
# $0.24 \cdot 1 - 0.18 \cdot (-1) - 0.06 \cdot 2 = 0.3$. For any score of a row the same sum is
#
# $$dS_j = \sum_l dP_l\; p_l\, ([l = j] - p_j) = p_j\, dP_j - p_j \sum_l p_l\, dP_l = p_j\, (dP_j - \delta)$$

# %% [markdown] id="backward-softmax-sum"
# where $\delta = \sum_l p_l\, dP_l$ is the **mean cost** of the row. So the gradient of a score is its weight, times how far its cost
# lies above the mean. For all queries at once, where $\odot$ multiplies entry by entry, and the row of ones $\mathbf{1}^\top$ copies
# $\delta_i$ along row $i$:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$

# %% id="row-by-hand"
dZ = Z - target
dV = P.T @ dZ
dP = dZ @ V.T
delta = (P * dP).sum(axis=1, keepdims=True)
dS = P * (dP - delta)
print("mean cost", delta.round(2), " gradients of the scores", dS.round(2))

# %% [markdown] id="row-by-hand-notice"
# The mean cost is $0.6 \cdot 1 - 0.3 \cdot 1 + 0.1 \cdot 2 = 0.5$. The clock costs most, 1.5 above the mean, but its weight is 0.1. The cat
# lies only 0.5 above, but with a weight of 0.6, and so it did more harm.

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# Somebody forgets the mean: $dS = P \odot dP$. What must $dS$ be if all three values are equal, and what does this formula give?
#
# <details><summary>Answer</summary>
#
# Then the output does not depend on the scores, so $dS$ must be 0. But all costs are the same number $c$, so $P \odot dP = c P$,
# which is not 0 unless $c$ is.
#
# </details>

# %% [markdown] id="which-gains"
# The mean cost has a shorter form. An average of the dot products $dZ_i \cdot v_l$ is the dot product of $dZ_i$ with the average of the
# values, which is the output:
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# This is our picture as a formula, with $-dZ_i$ as the arrow. A step against $dS$ raises score $j$ if the way from the
# output to $v_j$ makes less than a right angle with the arrow (and $p_{ij}$ is not 0).

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
# The dog should get a higher score. Does its key move for that, or the query? Both. The query touches all scores of its row, and as $s_j =
# q \cdot k_j / \sqrt{d_k}$, its entry $a$ moves score $j$ at the rate $k_{ja} / \sqrt{d_k}$. So its gradient is the sum over the keys:
#
# $$dq = \sum_j dS_j\, \frac{k_j}{\sqrt{d_k}} = \frac{0.3\,(1, 1, 0, 0) - 0.45\,(1, 0, 0, 0) + 0.15\,(0, 0, 1, 0)}{2}
#  = (-0.075,\ 0.15,\ 0.075,\ 0)$$
#
# Cat and dog disagree about the first entry, where both have a 1, and the dog prevails: a step against $dq$ raises this entry. For all
# queries at once $dQ = dS\, K / \sqrt{d_k}$. The sum runs over the second index of $dS$, so nothing is transposed. And a key?

# %% [markdown] id="key-turn"
# **Your turn.** {turn}`gradient-of-all-keys`

# %% id="key-turn-code" tags=["your-turn"]
my_d_key = ...  # replace this line by your function
check("gradient-of-all-keys", my_d_key)

# %% [markdown] id="key-turn-ours" tags=["ours"]
# Key $j$ touches $s_{ij}$ for every query $i$. The sum runs over $i$, the first index of $dS$, so $dS$ is transposed, as $P$ was.
#
# ```python
# def my_d_key(d_scores, query):
#     return d_scores.T @ query / np.sqrt(query.shape[1])
# ```

# %% [markdown] id="backward-qk-both"
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$

# %% id="circuit"
dQ = dS @ K / 2
dK = dS.T @ Q / 2
print("query", dQ.round(3))
print("keys", *dK.round(2))

# %% [markdown] id="pieces"
# In both sums query $i$ and key $j$ meet with the factor $dS_{ij} / \sqrt{d_k}$. If it is negative, as for our dog, a step adds a piece of
# each to the other. This exchange solves the riddle.

# %% [markdown] id="whole"
# ## Who told "curious"?
#
# The whole way back in one function, a line for each equation:


# %% id="whole-code"
def forward(Q, K, V):
    powers = np.exp(Q @ K.T / np.sqrt(K.shape[1]))
    P = powers / powers.sum(axis=1, keepdims=True)
    return P, P @ V


def backward(Q, K, V, dZ):
    P, Z = forward(Q, K, V)
    dV = P.T @ dZ
    dP = dZ @ V.T
    dS = P * (dP - (dZ * Z).sum(axis=1, keepdims=True))
    dQ = dS @ K / np.sqrt(K.shape[1])
    dK = dS.T @ Q / np.sqrt(K.shape[1])
    return dQ, dK, dV


# %% [markdown] id="first-step"
# We put it in PyTorch's place and watch. Let the animal have the value 1 and the other noun 0. Then the output is the animal's weight
# $p$, and as the loss is $-\ln p$, $dZ = -1/p$. In the first sentence the query of "tired", still zero, meets the keys of cat and clock.
#
# **Predict** what the first step moves: the query of "tired", the keys of cat and clock, or all three?


# %% id="first-step-code" tags=["predicted"]
def by_hand(query, key):  # the key of the animal comes first
    value = np.array([[1.0], [0.0]])
    _, p = forward(query, key, value)
    d_query, d_key, _ = backward(query, key, value, -1 / p)
    return p, d_query, d_key


_, d_query, d_key = by_hand(np.zeros((1, 4)), np.eye(4)[[cat, clock]])
print("query:", d_query[0])
print("keys of cat and clock:", *d_key)

# %% [markdown] id="first-step-notice" tags=["answer"]
# Only the query moves. With two equal weights $dZ = -2$, and $dS = (-\frac12, \frac12)$. Divided by $\sqrt 4$, this adds a quarter of the
# cat's key to the query and takes away a quarter of the clock's. The gradient of a key is a piece of the query, and the query was zero.

# %% [markdown] id="every-step"
# From now on the query of "tired" is not zero, and it leaves its mark on every key that it meets. The animal always costs less than the
# mean, so each step pulls its key along the query, and pushes the key of the thing just as far the opposite way:

# %% id="train-why-code"
orderly = np.zeros((2, 4)), np.eye(4)  # where queries and keys begin


def train(sentences, rounds=100, start=orderly):
    queries, keys = (each.copy() for each in start)
    for ending, pair in rounds * sentences:
        _, d_query, d_key = by_hand(queries[[ending]], keys[pair])
        queries[[ending]] -= d_query
        keys[pair] -= d_key
    return queries, keys


queries, keys = train(read)
print("as with PyTorch:", np.allclose(queries @ keys.T / 2, maps[1]))

# %% [markdown] id="plane"
# The scores agree. What happened to the keys? The cat's began with its 1 in place 1, and the clock's in place 3, so we draw to the right
# the first entry less the third, more cat than clock, and upwards the second less the fourth, more dog than stone. Queries, dashed, are
# drawn by the same rule. The more a key lies in the direction of a query, the higher its score:

# %% id="plane-code"
figures.learning(endings, nouns, [train(read, rounds) for rounds in (0, 1, 3, 10, 100)])

# %% [markdown] id="train-why"
# Follow the first round. The first sentence sends the query of "tired" to the right, towards the cat. In the second it meets the dog, whose
# key points straight up, and pulls that key along itself: now the dog leans to the right, and the stone, pushed away, to the left. In the
# third "curious" goes after the dog and away from the stone, so its query leans to the right, too, where the cat is.
#
# Meanwhile the dog has drawn the query of "tired" upwards. So from the second round on this query pulls the cat's key upwards, where
# "curious" looks. **"Tired" told "curious", since a key keeps a piece of each query that it met** (if that was not zero).

# %% [markdown] id="apart-question"
# If this is the reason, "curious" must fail where it shares no noun with "tired". So let "tired" meet cat and clock twice, and never the
# dog. **Predict**: when "curious" then meets cat and clock, is the weight of the cat near 0, in the middle, or near 1?


# %% id="apart-code" tags=["predicted"]
def ask(sentences, ending, pair):  # the weight of the animal
    queries, keys = train(sentences)
    return by_hand(queries[[ending]], keys[pair])[0].item()


apart = [(tired, [cat, clock]), (tired, [cat, clock]), (curious, [dog, stone])]
for name, sentences in {"shared": read, "apart": apart}.items():
    known = ask(sentences, curious, [dog, stone])
    new = ask(sentences, curious, [cat, clock])
    print(f"{name}: curious gives the dog {known:.2f}, the cat {new:.2f}")

# %% [markdown] id="apart-notice" tags=["answer"]
# It is in the middle, though "curious" still finds the dog. Queries and keys get pieces only of what they meet. So "tired", cat and clock
# never leave the horizontal line of the picture, and "curious", dog and stone never the vertical one. At right angles scores are 0.

# %% [markdown] id="limits"
# **Limits.** A gradient says what a small step does, and a large one may do the opposite. From random starts "curious" finds the cat mostly,
# not always (*Deeper*). And we let the ending ask in the place of "it"; a whole model must find out itself that the ending matters.

# %% [markdown] id="own-list"
# **Your own sentence.** Can only the dog tell "curious" about the cat? Keep the sentence of "curious", and find one with "tired", without
# the dog, that lifts the cat above 0.6:

# %% id="own-list-code"
mine = [(curious, [dog, stone])]
mine += []  # yours in the brackets; (tired, [cat, clock]) is not enough
print(f"curious, with cat and clock: {ask(mine, curious, [cat, clock]):.2f}")

# %% [markdown] id="own-list-answer"
# <details><summary>Our sentence</summary>
#
# `(tired, [cat, stone])` gives 0.79. It pulls the cat's key along the query of "tired" and pushes the stone's away. "Curious" learns to
# avoid the stone, so its query turns towards that of "tired", and finds the cat there. (`[stone, cat]` gives 0.79, too: "tired" then pulls
# the stone, and the query of "tired" and all that it does change their signs.)
#
# </details>

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
# The gradient of a score is its weight, times what this weight costs above the mean of its row. So a step teaches attention to look at
# words whose weight costs less than the mean and is not tiny: each pulls the query towards its key, and its key towards the query (unless
# others pull harder). That made cat and dog more alike, and "curious", which had learned to find the dog, found the cat.
#
# Lesson {lesson}`self_attention` goes on to the matrices that make queries, keys and values.

# %% [markdown] id="by-entry"
# ## Deeper: entry by entry
#
# Here are the three questions in symbols. Let $T_q$ queries meet $T_k$ keys. If $L$ is differentiable and the number $x$ acts on it through
# $Z$ only,
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$
#
# In $Z_{ia} = \sum_j p_{ij} V_{ja}$ the entry $V_{ja}$ touches entry $a$ of every output $i$, at the rate $p_{ij}$, so
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# A score $s_{ij}$ touches all weights of its row, weight $l$ at the rate $p_{il}\, ([l = j] - p_{ij})$. So
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$

# %% [markdown] id="deeper-vanishes"
# ## Deeper: scores that hardly move, and other starts
#
# How small is $dS_{ij}$ near a weight of 0 or 1? The weights sum to 1, so
# $dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$. The term with $l = j$ is 0, and the weights of the others sum to
# $1 - p_{ij}$. No difference is larger than the range of the row. Hence
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$
#
# So a score with a very small or a very large weight has hardly any gradient, unless the costs differ very much. Try it with one score of
# 9:

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
# weights. Until then the score of the value 1, which has a large weight, lifts this average above it.
#
# </details>

# %% [markdown] id="starts"
# And "curious"? So far its query began at zero, and the keys at right angles. Here they begin at random, 100 times:

# %% id="starts-code"
rng = np.random.default_rng(0)
starts = [(rng.normal(size=(2, 4)), rng.normal(size=(4, 4))) for _ in range(100)]
for name, sentences in {"shared": read, "apart": apart}.items():
    models = [train(sentences, 30, start) for start in starts]
    found = [query[curious] @ (key[cat] - key[clock]) > 0 for query, key in models]
    print(f"{name}: the cat gets more than half in {np.mean(found):.0%} of the starts")

# %% [markdown] id="starts-notice"
# The shared sentence helps here, too. Without it the cat is found by chance.

# %% [markdown] id="cost"
# ## Deeper: what it costs, and what has to be kept
#
# The two products of the forward pass take $F = 2\, T_q T_k (d_k + d_v)$ operations, {eq}`attention-flops`. Backward there are four,
# because each product has two factors, and each factor needs a gradient:
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
# The factor is $T / (4 d)$. FlashAttention keeps no weights and computes them again, from queries, keys and (since its second version) one
# number for each row, the logarithm of its normalising sum: lesson {lesson}`flash`.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences with a step of $10^{-6}$, made for float64.
