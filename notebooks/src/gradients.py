# %% [markdown] id="title"
# # {lesson}`gradients` Gradients by hand: the machine read backwards
#
# In *cat saw clock because it was curious*, "it" is the cat, but if it was *broken*, "it" is the clock. Can attention learn this if it never
# reads "curious" or "broken" beside "cat" or "clock"? It learns by gradient steps alone, so we ask: **what does a gradient step teach
# attention to look at?** First PyTorch finds the gradients, then you derive them.
#
# **You need** the chain rule and lesson {lesson}`attention`: scores $S=QK^\top/\sqrt{d_k}$, weights $P$, the softmax of each row of $S$,
# outputs $Z=PV$. **Time:** 57 minutes, without *Deeper* sections and [exercises](../work/ex_{lesson}`gradients`_gradients.ipynb).

# %% id="train-data"
import numpy as np

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
# ## A word that it has never met
#
# "Tired" and "curious" mean the animal, "heavy" and "broken" the thing. "Tired" and "heavy" are read with all four pairs of nouns, "curious"
# and "broken" only with dog and stone.
#
# Each ending has a query, zero at first, with which "it" asks. Each noun has a key, which begins with a 1 in a place of its own and 0
# elsewhere, so no two nouns are alike. The loss is $-\ln p$, where $p$ is the weight of the right noun. PyTorch finds its gradients, and we
# take 500 steps of size 1, one sentence each:

# %% id="train-code"
import torch


def by_pytorch(q, k, wanted):  # one query, two keys
    q, k = (torch.tensor(each, requires_grad=True) for each in (q, k))
    loss = -torch.log_softmax(q @ k.T / 2, dim=1)[0, wanted]
    return [gradient.numpy() for gradient in torch.autograd.grad(loss, (q, k))]


def train(gradients, sentences=read, key_step=1):
    queries, keys = np.zeros((4, 4)), np.eye(4)
    for pair, ending in 500 // len(sentences) * sentences:  # the list, many times
        d_query, d_key = gradients(queries[[ending]], keys[pair], right[ending])
        queries[[ending]] -= d_query
        keys[pair] -= key_step * d_key
    return queries, keys


# %% [markdown] id="train-map-question"
# Here are the scores that each ending then gives to each noun, on the left in a control whose keys stay as they are. Pairs that never met are
# striped:

# %% id="train-map"
from attn_course.lessons.gradients import figures

models = [train(by_pytorch, key_step=0), train(by_pytorch)]
never = [(curious, cat), (curious, clock), (broken, cat), (broken, clock)]
maps = [queries @ keys.T / 2 for queries, keys in models]
figures.learned_scores(endings, nouns, *maps, never)

# %% [markdown] id="hook-time"
# If the keys stay, "curious" scores cat and clock alike. But if the keys learn, it finds the cat and avoids the clock, and it has met
# neither. Who told it? Nothing happened but gradient steps, so the answer must stand in what it read and in the gradients. Here is the map of
# the gradients, attention with its arrows turned round:

# %% id="machine"
from attn_course import check, verify_lesson

figures.machine()

# %% [markdown] id="backward-chain"
# ## Back through a product
#
# In the map $dx$ stands for the gradient with respect to $x$ (not for a small change of it). Let $T_q$ queries meet $T_k$ keys, and let the
# loss $L$ be differentiable and depend on $Q$, $K$ and $V$ only through $Z$. We are given $dZ_{ia} = \partial L / \partial Z_{ia}$ for each
# entry $a$ of each output $i$. For any number $x$ that goes into $Z$, the chain rule says
#
# $$dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x} \label{gradient-collects-all-outputs}$$
#
# So for each entry we ask three questions. **Which outputs does it touch? How fast does it move each of them? What is the sum over all that
# are touched?**

# %% [markdown] id="backward-values"
# We begin where the forward pass ended, at $Z = P V$, in entries $Z_{ia} = \sum_j p_{ij} V_{ja}$. Take one entry of a value, $V_{ja}$. It
# touches entry $a$ of every output $i$ and moves it at the rate $p_{ij}$, so the sum runs over all $i$:
#
# $$dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia} \label{value-gradient-by-entry}$$
#
# A matrix product sums over the second index of its left factor. Here $i$ is the first index of $P$, so $P$ is transposed:
#
# $$dV = P^\top dZ \key{gradient-of-values}$$

# %% [markdown] id="backward-weights"
# Now take one weight, $p_{ij}$. It touches every entry of output $i$ and no other output, and moves $Z_{ia}$ at the rate $V_{ja}$. The sum
# runs over all $a$, so $dP_{ij}$ is the dot product of row $i$ of $dZ$ with value $j$. For all pairs at once:
#
# $$dP = dZ\, V^\top \key{gradient-of-weights}$$
#
# We call $dP_{ij} = dZ_i \cdot v_j$ the **cost** of this weight: it says how fast the loss would grow if this weight alone were raised.

# %% [markdown] id="backward-softmax"
# ## Back through the softmax
#
# But the weights of a row sum to 1, so no weight rises alone. If score $j$ of row $i$ moves, all weights of the row do, and
# $dS_{ij} = \sum_l dP_{il}\, \partial p_{il} / \partial s_{ij}$. That is the derivative of the **mean cost** $\delta_i$ of the row by score
# $j$, with the costs held fixed. By {eq}`weighted-mean-derivative` it is the covariance, under the weights of row $i$, of the costs with the
# rates of the scores: 1 for score $j$ and 0 for the others. So only its term is left, $p_{ij}\, (dP_{ij} - \delta_i) \cdot 1$. For all rows at
# once:
#
# $$dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij} \key{gradient-of-scores}$$
#
# Here $\odot$ multiplies entry by entry, and the row of ones $\mathbf{1}^\top$ copies $\delta_i$ along row $i$. In words: the gradient of
# a score is its weight, times how far the cost of this weight lies above the mean.

# %% [markdown] id="sevenths"
# **By hand.** The first sentence is *cat saw clock because it was tired*. The query is zero, so both weights are $\frac12$. If we give the
# nouns the values $(1, 0)$ and $(0, 1)$, the output $z$ is just the two weights, and $-\ln p$ has the derivative $-1/p$ by the first and 0
# by the second, so $dZ = (-2, 0)$. **Predict** the two costs, their mean, and the gradients of the two scores.

# %% id="sevenths-figure" tags=["predicted"]
figures.row_on_wires(["cat", "clock"], np.zeros(2), np.eye(2), d_output=[-2, 0])

# %% [markdown] id="sevenths-notice" tags=["answer"]
# "Cat" costs $(-2, 0) \cdot (1, 0) = -2$, "clock" costs 0, and the mean is $-1$. So the score of "cat" gets $\frac12 (-2 + 1) = -\frac12$,
# and that of "clock" gets $\frac12 (0 + 1) = +\frac12$. If the weight of "clock" rose alone, the loss would not change, and still the loss
# grows with its score, because this weight can only grow at the expense of the cat. (In the picture the loss is $dZ \cdot Z$, which has the same
# gradient.)

# %% [markdown] id="spot-mean"
# ### Spot the mistake
#
# Somebody forgets the mean: $dS = P \odot dP$. But if all values are equal, the output does not depend on the scores, so $dS$ must be 0, and
# this is usually not. In the true $dS$ each row sums to 0, since raising all scores of a row equally changes no weight,
# {eq}`softmax-shift-invariance`.

# %% [markdown] id="which-gains"
# The mean cost has a shorter form. As $\sum_l p_{il}\, (dZ_i \cdot v_l) = dZ_i \cdot \sum_l p_{il}\, v_l$, and the last sum is the output
# $z_i$, {eq}`gradient-of-scores` becomes
#
# $$\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i) \label{score-gradient-against-mixture}$$
#
# So each value is compared with the present output. Where the loss falls as the output begins to move from $z_i$ towards $v_j$, the
# gradient of this score is negative (unless $p_{ij} = 0$), and a step of the scores against it raises this one.

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
# Last come queries and keys. A score is $s_{ij} = \sum_c Q_{ic} K_{jc} / \sqrt{d_k}$, so $dQ_{ic} = \sum_j dS_{ij} K_{jc} / \sqrt{d_k}$,
# and that is $dQ = dS\, K / \sqrt{d_k}$. And one entry of a key?

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
# Query $i$ and key $j$ meet in both sums with the same factor, $dS_{ij} / \sqrt{d_k}$. If it is negative, a step against the gradient adds
# a piece of the key to the query, and a piece of the query to the key.

# %% [markdown] id="whole"
# ## The whole backward pass
#
# Your two functions and the formulas for $dQ$ and $dV$ make the whole program, with `attention` from lesson {lesson}`attention`.
# (If a turn is still open, our answer is used.)

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
# Is it right? We compare with PyTorch on inputs of different sizes, since with $d_k = d_v$ a wrong division by $\sqrt{d_v}$ would pass.

# %% id="compare-code"
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
# Now your gradients take the place of PyTorch's. We know $dS = (-\frac12, +\frac12)$ for the first sentence, and here $\sqrt{d_k} = 2$.
# **Predict** what the first step moves: the query of "tired", the keys of cat and clock, or all three?


# %% id="first-step-code" tags=["predicted"]
def by_hand(q, k, wanted):
    d_z = np.zeros((1, 2))
    d_z[0, wanted] = -1 / attention(q, k, np.eye(2))[0, wanted]
    return backward(q, k, np.eye(2), d_z)[:2]


d_query, d_key = by_hand(np.zeros((1, 4)), np.eye(4)[[cat, clock]], right[tired])
print("query:", d_query[0])
print("keys of cat and clock:", *d_key)

# %% [markdown] id="first-step-notice" tags=["answer"]
# Only the query moves, towards the key of the cat and away from that of the clock: $dQ$ is $-\frac14$ of the one and $+\frac14$ of the
# other. The keys get no gradient, because a query that is zero teaches no key anything.

# %% [markdown] id="every-step"
# And later steps? For the right noun $dZ$ is $-\frac1p$ and $v - z$ is $1 - p$, so by {eq}`score-gradient-against-mixture` its score gets
# $p \cdot (-\frac1p)(1 - p) = -(1 - p)$, and the other score $+(1 - p)$, since the row sums to 0. So *every* step whose query is not zero
# moves the key of the right noun along the query, and the other key just as far the opposite way.
#
# That suggests a reason. "Tired" comes with the cat and with the dog, and moves both keys along its query, while "heavy" moves both against
# its own. So these two keys become alike, as do those of clock and stone. When "curious" learns to find the dog and avoid the stone, it then
# finds the cat and avoids the clock. Are they alike? At the start all cosines of two keys are 0.

# %% id="train-why-code"
model = train(by_hand)
print("as with PyTorch:", np.allclose(model, models[1]))
unit = model[1] / np.linalg.norm(model[1], axis=1, keepdims=True)
print(f"cosine of cat and dog {unit[cat] @ unit[dog]:.2f}", end=", ")
print(f"of cat and clock {unit[cat] @ unit[clock]:.2f}")

# %% [markdown] id="train-why"
# If this is the reason, it must fail where no ending joins the cat and the dog. So in a second control "tired" and "heavy" come only with
# cat and clock, and "curious" and "broken" only with dog and stone. **Predict**, for this control, the weight of the right noun in the
# sentences that were read and in the two new ones.


# %% id="apart-code" tags=["predicted"]
def ask(pair, ending, queries, keys):  # the weight of the right noun
    return attention(queries[[ending]], keys[pair], np.eye(2))[0, right[ending]]


apart = [([cat, clock], tired), ([cat, clock], heavy)]
apart += [([dog, stone], curious), ([dog, stone], broken)]
for name, sentences in {"joined": read, "apart": apart}.items():
    model = train(by_hand, sentences)
    for kind, asked in {"read": sentences, "new": new}.items():
        lowest = min(ask(*each, *model) for each in asked)
        print(f"{name}, {kind}: lowest weight {lowest:.2f}")

# %% [markdown] id="apart-notice" tags=["answer"]
# What was read is learned in both, with a weight near 1. But where the endings keep apart, it stays $\frac12$ in the new sentences: nothing
# has made the cat like the dog.

# %% [markdown] id="starts"
# Our start was an orderly one. If queries and keys start at random, how often does the right noun get more than half of the weight?

# %% id="starts-code"
for name, sentences in {"joined": read, "apart": apart}.items():
    share = checking.share_found(sentences, new, right, starts=1000)
    print(f"{name}: in {share:.0%} of the new sentences")

# %% [markdown] id="starts-notice"
# Joined endings help here, too. Without them it is a matter of chance.

# %% [markdown] id="limits"
# **Limits.** A gradient says what a small step does, and a large one may do the opposite. While every query gives a key the weight 0, by
# a mask or by rounding, neither the key nor its value learns from this attention. And we told "it" to ask with the query of the ending,
# which a whole model must find out itself.

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
# For each entry ask which outputs it touches and how fast, and sum. The gradient of a score is its weight, times what this weight costs
# above the mean of its row.
#
# What does a step teach attention to look at? At values that cost less than the mean and have some weight: the query gets a piece of
# their keys, and their keys a piece of the query. So keys that answered the same query became alike, and "curious", whose query learned to
# find the dog, found the cat. Lesson {lesson}`self_attention` carries the gradients on to the matrices that make queries, keys and values.

# %% [markdown] id="deeper-vanishes"
# ## Deeper: when a score hardly moves
#
# Entry by entry, a score moves weight $l$ of its row at the rate $p_{il}\, ([l = j] - p_{ij})$, {eq}`softmax-derivative`, where $[l = j]$
# is 1 if $l = j$, and else 0. So
#
# $$dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij}) \label{score-gradient-over-row}$$
#
# The bracket leaves $p_{ij}\, dP_{ij}$ and takes $p_{ij}\, \delta_i$ away, which is {eq}`gradient-of-scores` again.

# %% [markdown] id="deeper-small"
# So $dS_{ij}$ is zero if $p_{ij} = 0$. How small is it *near* a weight of 0 or 1? The weights sum to
# 1, so $dP_{ij} - \delta_i = \sum_l p_{il}\, (dP_{ij} - dP_{il})$. The term with $l = j$ is 0, and the weights of the others sum to
# $1 - p_{ij}$. No difference is larger than the range of the row. Hence
#
# $$|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr) \label{score-gradient-bound}$$
#
# So a score with a very small or a very large weight has hardly any gradient, unless the costs differ very much. Try it: make one score of a row 9,
# and
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
# The factor is $T / (4 d)$. FlashAttention keeps no weights. It computes them again in the backward pass, from queries,
# keys and the normalising sum of each row, which it keeps: lesson {lesson}`flash`.

# %% [markdown] id="deeper-step"
# ## Deeper: which line is wrong?
#
# In each of these two backward passes we planted one wrong line. To find out which gradients are right, we move one entry at a time,
# a little ahead and back, and watch the loss. It is $\sum_{ia} dZ_{ia} Z_{ia}$ with a fixed random $dZ$, for its gradient at the output is this
# $dZ$.

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
