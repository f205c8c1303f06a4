# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# In *cat saw clock because it was curious*, "it" is the cat. Can attention find the cat if it never read "curious" together with a cat?
# Attention learns by steps against a gradient. So **what does a step teach attention to look at?**
#
# **You need** the chain rule, and lessons {lesson}`softmax` and {lesson}`attention`: scores $S=QK^\top/\sqrt{d_k}$, weights $P$,
# outputs $Z=PV$. **Time:** 54 minutes, without *Deeper* sections and [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% [markdown] id="train-map-question"
# ## A pair that never met
#
# Our model reads three sentences. Each has an ending, "tired" or "curious", an animal and a thing. A full line joins the ending with the
# animal, a broken line with the thing:

# %% id="train-sentences"
from attn_course.lessons.gradients import figures

nouns, endings = ["cat", "clock", "dog", "stone"], ["tired", "curious"]
cat, clock, dog, stone = range(4)
tired, curious = range(2)
# an ending and its two nouns, the animal first
read = [(tired, [cat, clock]), (tired, [dog, stone]), (curious, [dog, stone])]
figures.sentences(endings, nouns, read, [cat, curious])

# %% [markdown] id="train-set-up"
# No sentence joins "curious" with cat or clock. Only the ending tells "it" what to look for, so in our model the ending itself asks, with a
# query that is zero at first. The nouns answer with keys, at first $(1,0,0,0)$ for the cat, $(0,1,0,0)$ for the clock, and so on: no two
# nouns have anything in common. For each sentence a step subtracts PyTorch's gradient of $-\ln p$, where $p$ is the animal's weight.

# %% id="train-torch" tags=["hide-input"]
import torch


def learn(sentences, key_step=1, rounds=100):  # with key_step=0 the keys stay
    queries = torch.zeros(2, 4, dtype=float, requires_grad=True)
    keys = torch.eye(4, dtype=float, requires_grad=True)
    for ending, pair in rounds * sentences:
        scores = keys[pair] @ queries[ending] / 2  # divided by the root of d_k = 4
        loss = -torch.log_softmax(scores, dim=0)[0]  # the animal is number 0
        d_queries, d_keys = torch.autograd.grad(loss, (queries, keys))
        with torch.no_grad():
            queries -= d_queries
            keys -= key_step * d_keys
    return (queries @ keys.T / 2).detach().numpy()  # a row of scores for each ending


# %% [markdown] id="train-map-shown"
# **Predict** the signs (plus, minus or 0) of the scores of "curious" for cat and clock after 100 rounds: if only the queries learn, and
# if the keys learn, too.

# %% id="train-map" tags=["predicted"]
print("              cat   clock dog   stone")
print("keys stay  ", learn(read, key_step=0)[curious].round(2))
print("keys learn ", learn(read)[curious].round(2))

# %% [markdown] id="train-map-answer" tags=["answer"]
# If the keys stay, both scores are 0: the query of "curious" is made of the keys of dog and stone, which share nothing with the others. If
# the keys learn, "curious" prefers the cat.

# %% [markdown] id="hook-time"
# Who told "curious" about the cat? Queries and keys change only by their gradients, so we derive these. Let $dx$ be the gradient of the loss
# with respect to $x$. The way back is attention with all arrows turned round:

# %% id="machine"
from attn_course import check, verify_lesson

figures.machine()

# %% [markdown] id="forward"
# ## One sentence in numbers
#
# What "curious" knows about the cat must come from an ending that met the cat, and only "tired" did. So we follow "tired" through the first
# sentence, with cat and clock. Its query is still zero, so both scores $q \cdot k / \sqrt{d_k}$ are 0, and "tired" gives cat and clock the
# weight $\frac12$ each.

# %% [markdown] id="forward-output"
# Each noun also has a value. Ours are single numbers that do not learn, 1 for an animal and 0 for a thing. So the output
#
# $$z = \tfrac12 \cdot 1 + \tfrac12 \cdot 0 = \tfrac12$$
#
# is the weight of the animal, and the loss is $L = -\ln z = \ln 2$, about 0.69. As a program:

# %% id="forward-code"
import numpy as np

Q = np.zeros((1, 4))  # the query of "tired"
K = np.eye(4)[[cat, clock]]
V = np.array([[1.0], [0]])

S = Q @ K.T / 2
P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
Z = P @ V
print("weights", P, " output", Z, " loss", -np.log(Z).round(2))

# %% [markdown] id="backward-chain"
# ## Back through a product
#
# How can "tired" find the cat more surely? The chain rule gives all gradients in one pass back, and a small step against them lowers the loss
# (unless they are 0). The pass begins at the output: the derivative of $-\ln z$ is $dZ = -1 / z = -2$, so the output, the cat's weight,
# should rise.
#
# All other numbers act on the loss through the outputs. So we ask of each number: **Which entries of the outputs does it touch? At what
# rate does it move each of them? What is the sum over these entries, rate times gradient?**

# %% [markdown] id="backward-values"
# First the values. The cat's value moves the output $z = \frac12\, v_{\text{cat}} + \frac12\, v_{\text{clock}}$ at the rate $\frac12$, so
# its gradient is $\frac12 \cdot (-2) = -1$. The clock's value has the same gradient: the loss would also fall if the clock became more of an
# animal. This is why our values do not learn.
#
# If there are several queries, value $j$ moves the output of each query $i$ at the rate $p_{ij}$, and its gradient is the sum of
# $p_{ij}\, dZ_i$ over $i$. A matrix product sums over the second index of its left factor, but $i$ is the first index of $P$. So $P$ is
# transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$

# %% [markdown] id="backward-weights"
# Next the weights. If $p_{ij}$ rises, the entries of output $i$ move at the rates that stand in $v_j$. So the sum over these entries is the
# dot product $dZ_i \cdot v_j$, and for all pairs at once
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij}$ the **cost** of the weight $p_{ij}$: how fast would the loss grow if this weight alone were raised? To look at the cat
# costs "tired" $-2 \cdot 1 = -2$, which is a gain. To look at the clock costs it $-2 \cdot 0 = 0$.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# So the clock's weight costs "tired" nothing. But weights are made from scores. The cell raises one score by 0.001, and divides what this
# adds to the loss by 0.001. **Predict** the sign (plus, minus or 0) of the gradient of each score, the cat's and the clock's.


# %% id="nudge-code" tags=["predicted"]
def loss(S):
    return -np.log(np.exp(S[0]) / np.exp(S).sum())  # the cat is number 0


for noun, raised in {"cat": [0.001, 0], "clock": [0, 0.001]}.items():
    print(f"score of the {noun}: {(loss(raised) - loss([0, 0])) / 0.001:+.2f}")

# %% [markdown] id="nudge-answer" tags=["answer"]
# The gradient of the cat's score is negative, so this score should rise. That of the clock's score is positive: it should fall, although the
# clock's weight costs nothing. The weights of a row sum to 1, so what the clock gains, the cat loses.

# %% [markdown] id="backward-softmax-clock"
# We ask the three questions of the clock's score, with weights in the place of outputs. If score $j$ rises at the rate 1, weight $l$ of its
# row moves at the rate
#
# $$\frac{\partial p_l}{\partial s_j} = p_l\, ([l = j] - p_j), \qquad \text{where } [l = j] \text{ is 1 if } l = j \text{ and else 0}$$
#
# (this is {eq}`softmax-derivative`). So if the clock's score rises, the cat's weight moves at the rate $\frac12\,(0 - \frac12) = -\frac14$,
# and the clock's own at $\frac12\,(1 - \frac12) = \frac14$. The sum over both weights, rate times cost, is
# $-\frac14 \cdot (-2) + \frac14 \cdot 0 = \frac12$. The clock does harm by what it takes from the cat.

# %% [markdown] id="backward-softmax-sum"
# For any score of a row the same sum is
#
# $$dS_j = \sum_l dP_l\; p_l\, ([l = j] - p_j) = p_j\, dP_j - p_j \sum_l p_l\, dP_l = p_j\, (dP_j - \delta)$$
#
# where $\delta = \sum_l p_l\, dP_l$ is the **mean cost** of the row. So the gradient of a score is its weight, times how far the cost of
# this weight lies above the mean cost. For all queries at once, where $\odot$ multiplies entry by entry, and $\mathbf{1}^\top$, a row of
# ones, copies $\delta_i$ along row $i$:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$

# %% [markdown] id="row-by-hand"
# For "tired" the mean cost is $\frac12 \cdot (-2) = -1$, so
#
# | | cat | clock |
# |---|---|---|
# | weight | ½ | ½ |
# | cost | −2 | 0 |
# | cost less the mean | −1 | 1 |
# | gradient of the score | −½ | ½ |
#
# And if the clock has another weight, $p$? The cat's weight is then $z = 1 - p$, and costs $-1/z$. So the mean cost is still $-1$, and the
# scores of cat and clock have the gradients $-p$ and $p$: **a step against $dS$ raises the animal's score and lowers the thing's**, and does
# so more strongly, the more the ending looks at the thing.

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# Somebody forgets the mean cost: $dS = P \odot dP$. What must $dS$ be in a sentence of two animals, cat and dog, and what does this formula
# give?
#
# <details><summary>Answer</summary>
#
# Both values are 1, so the output is 1 whatever the scores are, and $dS$ must be 0. But $dZ = -1 / 1 = -1$, so both costs are $-1$, and
# $P \odot dP = -P$, which is not 0.
#
# </details>

# %% [markdown] id="which-gains"
# The mean cost has a shorter form, since the weighted mean of the dot products $dZ_i \cdot v_l$ is the dot product of $dZ_i$ with the
# mixture of the values, the output:
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$

# %% [markdown] id="gradient-turn"
# **Your turn.** Let there be $T_q$ queries and $T_k$ keys. {turn}`gain-over-mixture`

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
# The cat's score should rise. Does the cat's key move for that, or the query of "tired"? Both do. The query touches all scores of its row.
# Since $s_j = q \cdot k_j / \sqrt{d_k}$, entry $a$ of the query moves score $j$ at the rate $k_{ja} / \sqrt{d_k}$, so the gradient of the
# query is a sum over the keys:
#
# $$dq = \sum_j dS_j\, \frac{k_j}{\sqrt{d_k}} = \frac{-\tfrac12\,(1, 0, 0, 0) + \tfrac12\,(0, 1, 0, 0)}{2}
#  = \bigl(-\tfrac14,\ \tfrac14,\ 0,\ 0\bigr)$$
#
# A step subtracts $dq$, so "tired" gains a quarter of the cat's key, and loses a quarter of the clock's: from now on it asks for the cat. For
# all queries at once $dQ = dS\, K / \sqrt{d_k}$. The sum runs over the second index of $dS$, so nothing is transposed. And a key?

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
# Together:
#
# $$dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}} \key{query-and-key-gradients}$$
#
# In both sums query $i$ and key $j$ meet with the factor $dS_{ij} / \sqrt{d_k}$. For an animal beside a thing this factor is negative, so
# in a step the ending's query and the animal's key **each gain a piece of the other** (nothing, if the other is zero). For the thing the
# factor is positive, and each loses a piece of the other. This happens along every line of our picture: a plus along a full line, a minus
# along a broken one.

# %% [markdown] id="whole"
# Here is the whole way back, with a line for each gradient:


# %% id="whole-code"
def backward(Q, K, V):
    S = Q @ K.T / np.sqrt(K.shape[1])
    P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    Z = P @ V
    dZ = -1 / Z  # for our loss: another one changes only this line
    dV = P.T @ dZ
    dP = dZ @ V.T
    dS = P * (dP - (dZ * Z).sum(axis=1, keepdims=True))
    dQ = dS @ K / np.sqrt(K.shape[1])
    dK = dS.T @ Q / np.sqrt(K.shape[1])
    return dQ, dK, dV


dQ, dK, dV = backward(Q, K, V)
print("gradient of the query:", dQ, " of the values:", *dV)

# %% [markdown] id="first-step"
# ## Who told "curious"?
#
# Now `backward` takes PyTorch's place. In the first sentence the query of "tired" is zero, so only this query moves:


# %% id="first-step-code"
def step(queries, keys, ending, pair):
    Q, K = queries[[ending]], keys[pair]
    dQ, dK, _ = backward(Q, K, V)  # V as before: the animal is the first
    queries[[ending]] -= dQ
    keys[pair] -= dK


queries, keys = np.zeros((2, 4)), np.eye(4)
step(queries, keys, *read[0])
print("query of tired:", queries[tired])
print("keys of cat and clock:", *keys[[cat, clock]])

# %% [markdown] id="every-step"
# In the other two sentences both scores are 0, too, so each piece is a quarter again. In the second the query of "tired" is no longer zero,
# so the keys move, too: the dog's key gains a quarter of the query, and the stone's key loses a quarter of it. In the third the query of
# "curious" gains a quarter of the dog's key, and loses a quarter of the stone's.
#
# Watch the first entries. At the beginning only the cat's key had a 1 there. **Predict** the first entry of the query of "curious" after these
# three steps, and say who brought it.

# %% id="round-code" tags=["predicted"]
step(queries, keys, *read[1])
print("key of the dog:  ", keys[dog])
print("key of the stone:", keys[stone])
step(queries, keys, *read[2])
print("query of curious:", queries[curious])
same = np.allclose(queries @ keys.T / 2, learn(read, rounds=1))
print("as with PyTorch: ", same)

# %% [markdown] id="train-why" tags=["answer"]
# A quarter of the 1 went to the query of "tired", a quarter of that to the dog's key, and a quarter of that to the query of "curious":
# $\frac1{64}$. As much came on a second way, through the stone. A piece changes its sign along a broken line, but this way has two broken
# lines, so the sign comes back. Together they are $\frac2{64} = 0.03125$.

# %% [markdown] id="ways"
# So "curious" now scores the cat above 0. **"Tired" told the dog and the stone about the cat, and these told "curious".** Here is the way
# through the dog:

# %% id="ways-code"
figures.sentences(endings, nouns, read, [cat, tired, dog, curious])

# %% [markdown] id="apart-question"
# Is this the reason? We take the way away: "tired" reads the sentence with cat and clock twice, and never the one with dog and stone.
# **Predict** the signs of the scores that "curious" then gives to cat and clock after 100 rounds.

# %% id="apart-code" tags=["predicted"]
apart = [(tired, [cat, clock]), (tired, [cat, clock]), (curious, [dog, stone])]
print("                  cat   clock dog   stone")
for name, sentences in {"with the way   ": read, "without the way": apart}.items():
    print(name, learn(sentences)[curious].round(2))

# %% [markdown] id="apart-notice" tags=["answer"]
# Both are 0, though "curious" still finds the dog. "Tired", cat and clock exchange pieces only among themselves, so no piece of the cat ever
# reaches "curious".

# %% [markdown] id="own-list"
# **Your own sentence.** Keep the sentence of "curious", and add one of "tired" without the dog, so that "curious" prefers the cat. Then
# replace your sentence, so that "curious" prefers the clock. (The first noun of a pair counts as its animal, even if it is a thing.) Look for
# the way first:

# %% id="own-list-code"
mine = [(curious, [dog, stone])]
mine += [(tired, [cat, clock])]  # not enough: put yours in its place
print("  cat   clock dog   stone")
print(learn(mine)[curious].round(2))

# %% [markdown] id="own-list-answer"
# <details><summary>Our sentences</summary>
#
# `(tired, [cat, stone])` gives the cat the score 1.35, and the clock 0. The way leads from the cat through "tired" and the stone, and two of
# its lines are broken, so a piece of the cat arrives with a plus. `(tired, [clock, stone])` gives the clock 1.35: now a piece of the clock
# goes this way. (`[stone, cat]` and `[stone, clock]` do as well.)
#
# </details>

# %% [markdown] id="limits"
# **Limits.** From random starts "curious" finds the cat mostly, not always (*Deeper*). And a whole model must find out itself that "it"
# has to listen to the ending.

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
# The gradient of a score is its weight, times what this weight costs above the mean of its row. Where a weight costs less than the mean,
# query and key each gain a piece of the other. So a step pulls the query towards such words, and the pieces are handed on: "curious" found
# a cat that it had never met.
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
# And "curious"? Let queries and keys begin at random, 100 times:

# %% id="starts-code"
for name, sentences in {"with the way": read, "without the way": apart}.items():
    rng, found = np.random.default_rng(0), 0
    for _ in range(100):
        queries, keys = rng.normal(size=(2, 4)), rng.normal(size=(4, 4))
        for ending, pair in 30 * sentences:
            step(queries, keys, ending, pair)
        found += queries[curious] @ (keys[cat] - keys[clock]) > 0
    print(f"{name}: the cat gets more than half in {found}% of the starts")

# %% [markdown] id="starts-notice"
# The way helps here, too. Without it the cat is found by chance.

# %% [markdown] id="cost"
# ## Deeper: what it costs, and what has to be kept
#
# The two products of the forward pass take $F = 2\, T_q T_k (d_k + d_v)$ operations, {eq}`attention-flops`. Backward there are four,
# because each product has two factors, and each factor needs a gradient:
#
# $$F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F \label{backward-flops-weights-kept}$$
#
# From the forward pass to the backward pass we keep weights and output, with $Q$, $K$ and $V$:
#
# $$\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k \label{numbers-kept-for-gradients}$$
#
# For $T_q = T_k = 8192$ and $d_k = d_v = 64$, $P$ is by far the most of it:

# %% id="cost-code"
T, d = 8192, 64
print("P against Q, K, V and Z:", T * T / (4 * T * d), "times")
print(f"P takes {2 * T * T / 1e6:.0f} MB in 16-bit numbers, in each head of each layer")

# %% [markdown] id="cost-answer"
# The factor is $T / (4 d)$. FlashAttention keeps no weights and computes them again: lesson {lesson}`flash`.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - T. Dao et al. (2022), [arXiv:2205.14135](https://arxiv.org/abs/2205.14135): FlashAttention. Its backward pass takes $\delta$
#   from the output, too.
# - PyTorch, [gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html): finite
#   differences for every entry.
