# %% [markdown] id="title"
# # {lesson}`self_attention` Self-attention: a sequence that asks itself
#
# So far we were handed queries, keys and values. Now one sequence plays all three parts: each token asks, each token
# answers, each token passes something on. That raises new questions. Why does a token see mostly itself? Who told it what
# to ask? And where did the order of the words go?
#
# **Afterwards you can** write self-attention with its projections and their gradients, prove that it cannot see
# order, give it positions in two ways, say why it needs a residual, and read a map of weights without believing too much.
#
# **You need** lessons {lesson}`lookup`, {lesson}`softmax`, {lesson}`scaling`, {lesson}`attention` and {lesson}`gradients`,
# complex numbers for one line. **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`self_attention`_self_attention.ipynb).

# %% id="setup"
import numpy as np

from attn_course import alive, costs, language_model, show, verify_lesson
from attn_course.lessons.self_attention import figures
from attn_course.lessons.self_attention.experiments import MODELS, PRONOUNS
from attn_course.lessons.self_attention.experiments_pairs import KINDS, PAIRS
from attn_course.reference import attention, attention_backward, rope, softmax
from attn_course.reference import scaled_dot_scores, sinusoidal_positions

np.set_printoptions(precision=2, suppress=True)

# %% [markdown] id="where"
# This is where we are in the machine: at its left end, where one matrix $X$ becomes $Q$, $K$ and $V$.

# %% id="machine"
figures.machine()

# %% [markdown] id="plain"
# ## Every token is query, key and value
#
# Let $X$ hold one token per row, $T$ of them with $v$ features each. The plainest self-attention takes $X$ for everything,
# $Q = K = V = X$, and has no parameter at all. {eq}`attention-of-one-query` with each row as the query:
#
# $$z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{v}}}\, x_j
# \label{self-attention-without-projections}$$
#
# The scale is the root of $v$, the length of the vectors that are compared. And the sum runs over **all** tokens, the token $i$
# itself included. ("All other tokens", as one reads, would be a mask on the diagonal, and another output.)
#
# **Predict**: 32 random tokens with 4, 16 or 64 features. Which weight does a token give itself on average? Scores have
# variance 1 (lesson {lesson}`scaling`), so perhaps $1/32 = 0.03$?

# %% id="plain-code" tags=["predicted"]
rng = np.random.default_rng(5)
maps = {}
for v in (4, 16, 64):
    tokens = rng.normal(size=(300, 32, v))
    weights = attention(tokens, tokens, tokens, return_weights=True)[1]
    maps[f"v = {v}"] = weights[0]
    itself = np.diagonal(weights, axis1=1, axis2=2)
    print(f"v = {v:2d}: mean weight on itself {itself.mean():.2f}")

# %% id="plain-figure" tags=["predicted"]
figures.random_maps(maps)

# %% [markdown] id="plain-answer" tags=["answer"]
# A token gives itself far more than its share, and the more features it has, the more: 0.17 of the weight with 4 features, 0.51
# with 16, and 0.97 with 64. The reason is that the query and the key on the diagonal are not independent, but the same vector.

# %% [markdown] id="diagonal"
# The argument of lesson {lesson}`scaling` **assumed** that query and key are independent. On the diagonal they are the same vector, and
# $s_{ii} = \|x_i\|^2 / \sqrt{v}$. For entries that are independent with mean 0 and variance 1, as before:
#
# $$\mathbb{E}[s_{ii}] = \sqrt{v}, \qquad \mathbb{E}[s_{ij}] = 0 \quad (i \ne j), \qquad \mathrm{Var}[s_{ij}] = 1 \quad (i \ne j)
# \label{heavy-diagonal-of-scores}$$
#
# A lead of $\sqrt{v}$ against a spread of 1. Let $a(v)$ be the mean weight $\mathbb{E}[p_{ii}]$ of a token on
# itself, for 32 tokens of $v$ normal entries:
#
# $$a(4) \approx 0.171, \qquad a(16) \approx 0.507, \qquad a(64) \approx 0.967 \label{self-weight-grows}$$
#
# The scale keeps the *other* scores calm and lets the diagonal grow. Plain self-attention on wide tokens is close to the
# identity.

# %% id="diagonal-code"
x = rng.normal(size=(6, 4))
without_itself = attention(x, x, x, mask=~np.eye(6, dtype=bool))  # True: may be seen
change = np.abs(without_itself - attention(x, x, x)).max()
print("largest change if a token may not see itself:", change.round(2))

# %% [markdown] id="transposed"
# ## Do two tokens see each other alike?
#
# $x_i \cdot x_j = x_j \cdot x_i$, so the scores are symmetric. **Predict** whether the weights are: do two tokens look at
# each other equally? Four tokens in the plane, one of them at the origin:

# %% id="asymmetry-code" tags=["predicted"]
plane = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 2.0]])
weights = attention(plane, plane, plane, return_weights=True)[1]
figures.plane_weights(plane, weights)

# %% [markdown] id="asymmetry-answer" tags=["answer"]
# The weights are not symmetric, because each row of scores is divided by a sum of its own. The token at the origin has the score 0
# with every token, so it looks at all four alike, with 0.25 each. The others have larger scores elsewhere, so they give it
# 0.09 at most.

# %% [markdown] id="balance"
# Write $Z_i$ for the sum by which the softmax divides row $i$. Then $e^{s_{ij}} = p_{ij} Z_i$, and with $s_{ij} = s_{ji}$:
#
# $$p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}} \label{detailed-balance-of-weights}$$
#
# Sum over $i$; on the right, row $j$ of $P$ sums to 1:
#
# $$\sum_{i=1}^{T} Z_i\, p_{ij} = Z_j \label{normalisers-are-stationary}$$
#
# Of two tokens, the one with the larger $Z$ gives the other less than it gets from it. That is the **first** cause of
# asymmetry, and it is there without any parameter.

# %% id="balance-code"
Z = np.exp(scaled_dot_scores(plane, plane)).sum(axis=1)
print("normalisers:", Z, " weighted column sums:", Z @ weights)

# %% [markdown] id="projections"
# ## Three projections of one input
#
# Plain self-attention can only ask "who is like me?". A verb that looks for its object needs another question. So each
# token gets three learned views: what it asks, what it answers to, what it passes on. With $Q = X W_Q$, $K = X W_K$,
# $V = X W_V$, {eq}`attention` reads
#
# $$Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V \label{self-attention}$$
#
# Mind what multiplies what. The matrices are $W_Q, W_K, W_V$; $Q$, $K$ and $V$ are results. Queries, keys and values come from
# one $X$, but they are **three different** sets of vectors. And the sum averages the values $X W_V$, not the input.

# %% id="projections-code"
words = ["eats", "cat", "fish"]
x = np.eye(3)  # features: verb, animal, food
w_query = np.array([[0.0, 5.0], [0.0, 0.0], [0.0, 0.0]])  # a verb asks for food
w_key = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # keys: (animal, food)
w_value = np.array([[0.0], [1.0], [2.0]])
plain = attention(x, x, x, return_weights=True)[1]
output, weights = attention(x @ w_query, x @ w_key, x @ w_value, return_weights=True)
for name, row in (("plain:     ", plain[0]), ("projected: ", weights[0])):
    print(name, "eats ->", dict(zip(words, row.round(2).tolist(), strict=True)))

# %% [markdown] id="bilinear"
# $W_Q$ and $W_K$ let a token ask for something it is **not**; $W_V$ lets it pass on something else than it is found by. In a
# score the first two meet in one product:
#
# $$s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}} \label{bilinear-score}$$
#
# a learned factor for each pair of a feature of $i$ and a feature of $j$. Point at a score to see the products:

# %% id="bilinear-alive"
alive("bilinear-score")

# %% [markdown] id="asymmetry"
# Transpose, and subtract:
#
# $$S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top \label{asymmetry-of-scores}$$
#
# For $W_Q \ne W_K$ this is in general not zero: the **second** cause of asymmetry, now in the scores themselves.
# **Predict**: are the weights symmetric if $W_Q = W_K$?

# %% id="bilinear-code" tags=["predicted"]
x, w = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
tied_scores = scaled_dot_scores(x @ w, x @ w)
for name, matrix in (("scores", tied_scores), ("weights", softmax(tied_scores))):
    print(f"{name} symmetric:", np.allclose(matrix, matrix.T))

# %% [markdown] id="bilinear-answer" tags=["answer"]
# The weights are not symmetric even then. With $W_Q = W_K$ the scores are, but the first cause stays: the softmax still divides each
# row by its own sum.

# %% [markdown] id="spot-inside"
# ### Spot the mistake: one bracket too far
#
# "$\mathrm{softmax}\bigl( (X W_Q W_K^\top X^\top / \sqrt{d})\, X W_V \bigr)$", prints a tutorial. All shapes fit.
# **Predict** what each row of that "output" sums to, for whatever $W_V$.

# %% id="spot-inside-code" tags=["predicted"]
w_query, w_key = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
w_value = rng.normal(size=(4, 2))
scores = scaled_dot_scores(x @ w_query, x @ w_key)
inside = softmax(scores @ x @ w_value)
print("inside: ", inside.sum(axis=1))
show("self-attention", wrong="the value inside the softmax")

# %% [markdown] id="spot-inside-notice" tags=["answer"]
# Each row sums to 1, because the softmax comes last: the row is a distribution over *features*. No average of values can be that
# for every $W_V$.

# %% [markdown] id="spot-inside-mend"
# The softmax closes **before** $X W_V$. To test for this mistake, make all values equal: an average returns them.

# %% [markdown] id="learned"
# What is learned here? "A set of attention weights", you may read. Count the parameters, without biases:
#
# $$\#\{\text{parameters}\} = d_{\text{model}}\,(2\,d_k + d_v) \label{self-attention-parameters}$$
#
# No $T$ in it. The $T^2$ weights are computed anew for each input, and thrown away. **Predict** what the same three matrices do
# with eleven tokens in place of five.

# %% id="learned-code" tags=["predicted"]
parameters = w_query.size + w_key.size + w_value.size
for length in (2, 5, 11):
    tokens = np.random.default_rng(length).normal(size=(length, 4))
    views = (tokens @ matrix for matrix in (w_query, w_key, w_value))
    fresh = attention(*views, return_weights=True)[1]
    print(f"T = {length:2d}: weights {fresh.shape}, parameters {parameters}")

# %% [markdown] id="learned-answer" tags=["answer"]
# They make an 11 by 11 map of weights, without any change: the projections work on each token alone, so the same 32 parameters
# serve every length.

# %% [markdown] id="paths"
# And backwards? Lesson {lesson}`gradients` gave $dQ$, $dK$ and $dV$. A projection is a
# product, $Q = X W_Q$, like $Z = P V$ before; so {eq}`gradient-of-values` gives $dW_Q$ (and $dW_K$, $dW_V$ likewise), and
# {eq}`gradient-of-weights` what comes
# back to $X$. As $X$ feeds all three, three gradients come back and **add**:
#
# $$dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top \label{gradients-through-projections}$$
#
# A token learns in three parts: as one that asks, as one that is found, as one that passes on.

# %% id="paths-code"
d_output = rng.normal(size=(5, 2))
projections = {"asks": w_query, "is found": w_key, "passes on": w_value}
gradients = attention_backward(*(x @ w for w in projections.values()), d_output)
for (name, w), gradient in zip(projections.items(), gradients, strict=True):
    part = gradient @ w.T
    print(f"token 0 as one that {name:9}: gradient {part[0]}")

# %% [markdown] id="permute"
# ## A set of tokens, not a sequence
#
# Shuffle the rows of $X$ by a permutation matrix $\Pi$. In {eq}`bilinear-score` one $\Pi$ comes out on each side:
#
# $$S(\Pi X) = \Pi\, S(X)\, \Pi^\top \label{permuted-scores}$$
#
# The exponential acts entry by entry, and the sum of a row does not depend on the order of its terms:
#
# $$\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)\, \Pi^\top \label{permuted-weights}$$
#
# The values move too, $V \to \Pi V$, and $\Pi^\top \Pi = I$:
#
# $$Z(\Pi X) = \Pi\, Z(X) \label{permutation-equivariance}$$
#
# Outputs move along with their tokens: **equivariance**. ({eq}`pair-order-invariance` was the invariance of one output.)

# %% [markdown] id="spot-near"
# ### Spot the mistake: the neighbours
#
# "Attention looks at the neighbouring words first." It sounds natural, and in trained models one often sees it. **Predict**
# what happens to the output of "dog" if we shuffle "dog bites man today".

# %% id="spot-near-code" tags=["predicted"]
vocabulary = {word: rng.normal(size=4) for word in ("dog", "bites", "man", "today")}
for order in ("dog bites man today", "man bites dog today", "today man dog bites"):
    sentence = np.stack([vocabulary[word] for word in order.split()])
    z = attention(sentence @ w_query, sentence @ w_key, sentence @ w_value)
    print(f"{order:20} output of dog {z[order.split().index('dog')]}")

# %% [markdown] id="spot-near-answer" tags=["answer"]
# The output of "dog" does not change at all, because by {eq}`permutation-equivariance` it only moves along with its token. So this
# layer cannot tell who bites whom.

# %% [markdown] id="set-notice"
# Where a trained model prefers neighbours, it got places from
# elsewhere: from positions, or from a mask (lesson {lesson}`masking`). Let a vector
# $t_i$ that depends on the place only be **added** to token $i$. With $M = W_Q W_K^\top$, multiply out:
#
# $$(x_i + t_i)\, M\, (x_j + t_j)^\top = x_i M x_j^\top + x_i M t_j^\top + t_i M x_j^\top + t_i M t_j^\top
# \label{score-with-added-positions}$$
#
# Content meets content, content meets place, place meets content, place meets place. The last three terms
# know places, and break the equivariance.

# %% [markdown] id="sinusoids"
# ## Positions to add: sines and cosines
#
# Which vectors? They should differ for all places, stay bounded, and show how far apart two places are. Take a clock with
# $d/2$ hands, from fast to slow, and note each hand by sine and cosine:
#
# $$P_{t,2i} = \sin(\omega_i t), \qquad P_{t,2i+1} = \cos(\omega_i t), \qquad \omega_i = 10000^{-2i/d} \label{sinusoidal-positions}$$
#
# (Vaswani et al., 2017; $i = 0, \ldots, d/2 - 1$ counts hands and $t$ positions, from 0.) Going on by $\delta$ places turns
# each hand by the same angle, wherever it was. By the addition theorems
#
# $$\begin{pmatrix} \sin(\omega(t + \delta)) \\ \cos(\omega(t + \delta)) \end{pmatrix} =
#  \begin{pmatrix} \cos(\omega\delta) & \sin(\omega\delta) \\ -\sin(\omega\delta) & \cos(\omega\delta) \end{pmatrix}
#  \begin{pmatrix} \sin(\omega t) \\ \cos(\omega t) \end{pmatrix} \label{sinusoid-shift-is-linear}$$
#
# one linear map, without $t$ in it.

# %% [markdown] id="likeness"
# How alike are two places? For each hand $\sin a \sin b + \cos a \cos b = \cos(a - b)$:
#
# $$P_t \cdot P_u = \sum_{i} \cos(\omega_i (t - u)) \label{sinusoidal-position-similarity}$$
#
# **Predict** whether the curve of $P_{10} \cdot P_u$ over $u - 10$ differs from that of $P_{50} \cdot P_u$ over $u - 50$,
# and whether it falls all the way.

# %% id="likeness-figure" tags=["predicted"]
table = sinusoidal_positions(101, 64)
reach = np.arange(-10, 51)
likeness = {f"t = {t}": table[t] @ table[t + reach].T for t in (10, 50)}
figures.position_likeness(reach, likeness)

# %% [markdown] id="likeness-answer" tags=["answer"]
# The two curves coincide, because {eq}`sinusoidal-position-similarity` holds the distance $t - u$ only. They do not fall all the way:
# the sum has its largest value, 32, at distance 0, falls steeply on both sides, and then ripples, because the fast hands come round
# again.

# %% [markdown] id="turn"
# ## Positions to rotate by: RoPE
#
# A score does not see $P_t \cdot P_u$ alone: {eq}`score-with-added-positions` puts $M$ between, and mixes
# places with contents. Can the score itself depend on the distance alone? **Demand** it. Turn the pair of features
# $(q_1, q_2)$ at place $t$ by an angle $\theta(t)$, and that of a key at $u$ by $\theta(u)$. A score sees the difference
# $\theta(u) - \theta(t)$, and if it may depend on $u - t$ only, all steps are equal, for every $s$:
#
# $$\theta(0) = 0,\;\; \theta(s + 1) - \theta(s) = \omega \quad \Longrightarrow \quad \theta(t) = \omega\, t
# \label{angle-proportional-to-position}$$
#
# So the angle is **proportional** to the position. To turn back by $\omega t$ and on by $\omega u$ is to turn by the
# difference:
#
# $$R_t^\top R_u = R_{u - t}, \qquad
#  R_t = \begin{pmatrix} \cos(\omega t) & -\sin(\omega t) \\ \sin(\omega t) & \cos(\omega t) \end{pmatrix} \label{rotations-compose}$$

# %% [markdown] id="relative"
# Then, with $q$ and $k$ as columns, $(R_t q) \cdot (R_u k) = q^\top R_t^\top R_u\, k = q^\top R_{u - t}\, k$, written out:
#
# $$(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t)) + (q_2 k_1 - q_1 k_2) \sin(\omega(u - t)) \label{rotated-pair-score}$$
#
# The first part is even in the distance, the second odd: before and after are told apart.

# %% id="relative-alive"
alive("rotated-pair-score")

# %% [markdown] id="relative-pairs"
# With $d_k / 2$ pairs (neighbours, or
# feature $m$ with $m + d_k/2$, as code has it), each read as a complex number, $\hat{q}_m$ of the query and $\hat{k}_m$ of the key,
# with its own $\omega_m = 10000^{-2m/d_k}$, a turn is a factor $e^{i \omega_m t}$. With $\bar{k}_m$ for the conjugate of $\hat{k}_m$, and
# for any common shift $c$:
#
# $$\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) =
#  \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad \|R_t\, q\| = \|q\| \label{rope-as-complex-rotation}$$
#
# This is RoPE (Su et al., 2021): turn queries and keys **after** their projections, leave the values alone. **Predict**
# which of the two methods below keeps the scores when the sentence moves seven places on.

# %% id="relative-code" tags=["predicted"]
x = rng.normal(size=(5, 8))
w_query, w_key = rng.normal(size=(8, 6)), rng.normal(size=(8, 6))


def added(start):
    moved = x + sinusoidal_positions(20, 8)[start : start + 5]
    return scaled_dot_scores(moved @ w_query, moved @ w_key)


def turned(start):
    places = np.arange(start, start + 5)
    return scaled_dot_scores(rope(x @ w_query, places), rope(x @ w_key, places))


for method in (added, turned):
    change = np.abs(method(7) - method(0)).max()
    print(f"{method.__name__:6}: a shift by 7 changes a score by up to {change:.2f}")

# %% [markdown] id="relative-answer" tags=["answer"]
# Only the rotation keeps the scores, because by {eq}`rope-as-complex-rotation` they depend on the distance alone. Added sinusoids
# contain the distance as well, {eq}`sinusoidal-position-similarity`, but next to three other terms, and a model may or may not learn
# to use it.

# %% [markdown] id="relative-notice"
# Now move the two tokens yourself: press Play, and watch the hands. **Predict** first: Does the score change when both tokens
# move on together? And does it change if you press "Exchange"? The base is 100 here, not 10000, so that all three clocks can be
# seen to run.

# %% id="explorable" tags=["predicted"]
figures.rope_explorable()

# %% [markdown] id="explorable-notice" tags=["answer"]
# The score stays if you press "Both one on", because the distance does. It changes if you press "Exchange": that turns the sign of the
# distance, and the odd part of {eq}`rotated-pair-score` with it. With the clocks stopped we are back in section {section}`permute`.

# %% [markdown] id="residual"
# ## Attention replaces, the residual updates
#
# "Attention updates the token", one says. Look at {eq}`self-attention`: it **replaces** the token by an average of values. What the
# token was is gone, unless it looked at itself. An update is a sum. With $d_v = d_{\text{model}}$, each layer reads the
# layer below and adds:
#
# $$X_L = X_0 + \sum_{l=1}^{L} Z_l(X_{l-1}), \qquad X_l = X_{l-1} + Z_l(X_{l-1}) \label{residual-stream}$$
#
# What if we only replace? Two outputs share the part of their weights that both rows give to the same tokens, so they
# cannot differ as much as the values do. For one feature of the values:
#
# $$\begin{gathered}
# \max_i z_i - \min_i z_i \le \tau\, \bigl( \max_j v_j - \min_j v_j \bigr), \\
# \tau = 1 - \min_{i,k} \sum_{j} \min(p_{ij}, p_{kj}) \end{gathered} \label{attention-contracts-differences}$$

# %% [markdown] id="residual-predict"
# Finite scores give positive weights, hence $\tau < 1$. Six layers with random projections, where $W_V$ is orthogonal, so
# that it stretches nothing. Let $\bar X$ hold the mean token in each row; $\|X - \bar X\| / \|X\|$ is the share that
# differs, 0 if all tokens are equal. **Predict** this share after six layers with the residual, without it, and without it but with
# $W_Q$ and $W_K$ half as large again, so that the weights are sharper.


# %% id="residual-code" tags=["predicted"]
def shares(residual, size=2.0, depth=6, d=16):
    x, found = np.random.default_rng(0).normal(size=(20, d)), []
    draw = np.random.default_rng(1)
    for _ in range(depth + 1):
        found.append(np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x))
        w_query, w_key = size * draw.normal(size=(2, d, d)) / np.sqrt(d)
        w_value = np.linalg.qr(draw.normal(size=(d, d)))[0]
        output = attention(x @ w_query, x @ w_key, x @ w_value)
        x = x + output if residual else output
    return np.array(found)


curves = {"X + Z": shares(True), "Z alone": shares(False)}
curves["Z alone, sharper"] = shares(False, size=3.0)
for name, curve in curves.items():
    print(f"{name:16} share that differs after 6 layers: {curve[-1]:.1g}")

# %% id="residual-figure" tags=["predicted"]
figures.levelling(curves)

# %% [markdown] id="residual-answer" tags=["answer"]
# With the residual 0.9 of the tokens still differs after six layers, and without it less than a millionth: the layers have made all
# tokens practically equal. This levelling gathers speed, because the more alike the tokens are, the more alike are their rows of weights. With
# sharper weights 0.7 is left, because sharp rows share little, so $\tau$ is close to 1 and puts the levelling off.

# %% [markdown] id="residual-notice"
# Dong, Cordonnier and Loukas (2021) prove for attention alone, without residuals and without layers between,
# that the output tends to a matrix of rank one, doubly exponentially in the depth.

# %% [markdown] id="pronoun"
# ## "It" and the cat
#
# "the cat chased the owl because **it** was angry": the cat. "... because **it** was slow": the owl. The favourite picture of
# attention shows the row of "it" with its weight on the noun. Nobody writes that row down; what could make it grow?
# **Assume** that the output wanted at "it" is $v_n$, the value of the noun. By {eq}`score-gradient-against-mixture` with $dZ = z - v_n$:
#
# $$-\frac{\partial}{\partial s_n}\, \tfrac{1}{2} \|z - v_n\|^2 = p_n\, \|v_n - z\|^2 \label{wanted-value-gains-score}$$
#
# Never negative: a step of the scores raises that of the token whose value is needed, if $z \ne v_n$ and $p_n > 0$. (Others may rise more.)

# %% [markdown] id="pronoun-setup"
# **The experiment.** Sentences like those above: ten nouns, three verbs, six adjectives (three fit who acts, three who is
# acted upon), up to two words in front. The output at "it" must name the noun; where to look is not told. Nine of the 45
# pairs of nouns are **held out**; each test sentence comes with its mirror image, nouns exchanged, so "the nearest
# noun" is right in exactly half. Four models (400 steps, three seeds):
#
# - *free*: two layers, {eq}`residual-stream`, sinusoids added;
# - *words as values*: the same, but the last layer averages the words as they came in, without residual;
# - *one layer*; *no positions*: less than *free*.
#
# **Predict** which of them beat one half.

# %% id="pronoun-figure" tags=["predicted"]
record = PRONOUNS.load()
runs = dict(zip(record.seeds, record.results, strict=True))
figures.pronouns_right(
    MODELS,
    {seed: [run[kind]["accuracy"] for kind in MODELS] for seed, run in runs.items()},
)

# %% [markdown] id="pronoun-answer" tags=["answer"]
# *Free* and *words as values* beat one half in every seed, and the other two do not. *No positions* cannot: mirror images are the same
# set of words, so by {eq}`permutation-equivariance` "it" gets the same output for both, and at least one of the two answers is wrong.
# *One layer* did not pass one half by more than a hundredth. Its "it" cannot choose where to look by the adjective, and so is right in at most
# three of the four of a sentence, its mirror image and both endings; that it stays near one half is only measured. With two layers "it" can read the adjective first, and ask for the right noun then.

# %% [markdown] id="pronoun-notice"
# Now look inside *free* and *words as values*. **Predict** the row of "it" in the last layer of each of them: how much of its weight
# falls on the noun that is meant? The code takes the first held-out pair of each seed.

# %% id="pronoun-rows" tags=["predicted"]
rows = {}
for kind in MODELS[1::-1]:
    for ending, adjective in enumerate(("angry", "slow")):
        for seed, run in runs.items():
            row = run[kind]["example"]["rows"][ending]
            rows[f"{kind}, {adjective}, seed {seed}"] = row
figures.rows_of_it(rows)

# %% id="pronoun-numbers" tags=["predicted"]
questions = {
    "accuracy": "share right",
    "noun": "weight on the noun meant",
    "hidden": "share right, that noun hidden",
}
for kind in MODELS[1::-1]:
    for name, question in questions.items():
        print(f"{kind:16} {question:30}", record.values(kind, name))

# %% [markdown] id="pronoun-rows-answer" tags=["answer"]
# In *words as values* nearly all of the weight falls on the noun meant, as the picture promises: .83 and more on average, on held-out
# sentences. There a noun can only come through its own weight, and when that one place is hidden from "it" (a mask in the last
# layer), hardly an answer is right. *Free* is about as good, but its weight is often elsewhere. In seed 1 the noun meant gets
# .01 of the weight on average, and hiding it costs nothing.

# %% [markdown] id="real"
# ### In a real model
#
# So in its last layer *free* may name the noun without giving it weight, because another word has fetched it. And SmolLM2 (lesson {lesson}`attention`), with its 30 layers of nine heads? What does
# "it" see in the head, of all 270, that gives "cat" most (layer 13, head 8, counted from 0)?

# %% id="real-load" tags=["live"]
model = language_model()

# %% id="real-map"
text = "The cat sat because it was tired."
tokens = model.tokens(text)
row = model.maps(text)[13, 8, tokens.index(" it")]
print(*(f"{token} {weight:.2f}" for token, weight in zip(tokens[:5], row[:5], strict=True)), sep=",")

# %% [markdown] id="real-predict"
# That is the favourite picture. (In this head every later word gives "cat" 0.8 or more.) Is the head the reason for what the model says?
# Below, the model completes a sentence: as it is, with this head silenced, and with "cat" having, in layers 22 to 24, the *values* that
# "dog" would have in its place. **Predict** what becomes of "cat".

# %% id="real-code" tags=["predicted"]
question = "The cat ran to the kitchen because it was hungry. "
question += "The animal that was hungry was the"
views = {
    "as it is": model,
    "layer 13, head 8 silenced": model.silenced((13, 8)),
    "values of dog": model.exchange_values("cat", "dog", (22, 23, 24)),
}
for name, view in views.items():
    p = view.next_tokens(question, 5)
    print(f"{name:26} cat {p[' cat']:.2f}  dog {p[' dog']:.2f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Without the head the model says "cat" a little more surely. With the exchanged values "dog" leads, and it still leads, 0.30 to 0.08, if all
# weights are held as they were. We tried twelve such sentences and kept the ten in which the noun got at least a tenth. Silencing the head
# never cost the noun more than 3 percent of its probability, and raised it by about a third in three of them. The exchange cost it
# something in all ten, two thirds and more in nine, and the other noun was then the likelier in eight. Layers 1 to 27 make nine groups of
# three; in the eight others the exchange never cost more than 18 percent. So the answer hangs on values that are read late. The head it
# hardly needs: no other animal is there, so nobody must know what "it" is.

# %% [markdown] id="explanation"
# Even in one layer a map need not tell why. The output and the row sums are $d_v + 1$ conditions on $T$ weights; with
# more tokens than that there are changes $N$ that nobody sees:
#
# $$N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad (P + N)\, [\,V \;\; \mathbf{1}\,] = P\, [\,V \;\; \mathbf{1}\,]
# \label{other-weights-same-output}$$
#
# The outputs and the row sums stay. These are weights again, provided $N$ keeps all weights at least 0. **Predict** whether the largest
# weight of a row can lose its lead in this way.

# %% id="explanation-code" tags=["predicted"]
value = np.array([[1.0], [0.0], [0.5], [0.5]])
p = np.array([0.10, 0.10, 0.60, 0.20])
change = np.array([0.40, 0.40, -0.60, -0.20])
print("weights", p, "output", p @ value)
print("weights", p + change, "output", (p + change) @ value)

# %% [markdown] id="explanation-answer" tags=["answer"]
# The largest weight can lose its lead: key 2 falls from .6 to 0 (a softmax would come as close as we like), and the output stays, because keys 0 and 1 together mix its
# value.

# %% [markdown] id="explanation-notice"
# Is attention an explanation, then? In recurrent text classifiers Jain and Wallace (2019) found weights that agree poorly with gradients,
# and other weights with nearly the same predictions; Wiegreffe and Pinter (2019) answered that this depends on what one calls an explanation. A
# map is a **hypothesis** about the reason. Test it: hide the token, exchange its values, compare seeds.

# %% [markdown] id="features"
# ## Co-occurrence: features as tokens
#
# In biology weights are read as "which genes go together". First, $Q K^\top$ relates the **rows** it is given. A table has
# one row per individual; for pairs of features the tokens must be its *columns*. **Assume** each feature has mean 0 and
# mean square 1 over $m$ individuals. Then a score is a correlation, rescaled:
#
# $$\frac{x_a \cdot x_b}{\sqrt{m}} = \sqrt{m}\; r_{ab} \label{feature-scores-are-correlations}$$
#
# Second, weights are not correlations:
#
# $$p_{ab} = \frac{e^{\sqrt{m}\, r_{ab}}}{\sum_{c} e^{\sqrt{m}\, r_{ac}}} > 0 \label{feature-weights-from-correlations}$$
#
# They compare queries with **keys** (not "with values"), have no sign, and each row sums to 1 even if nothing goes
# together. **Predict** the weight of two perfectly opposite features.

# %% id="features-code" tags=["predicted"]
data = rng.normal(size=(100, 2)) @ np.array([[1.0, -1.0, 0.5], [0.0, 0.0, 1.0]])
standard = ((data - data.mean(axis=0)) / data.std(axis=0)).T  # (features, individuals)
scores = scaled_dot_scores(standard, standard)
assert np.allclose(scores, 10 * np.corrcoef(data.T))
print("feature 0: correlations", np.corrcoef(data.T)[0], " weights", softmax(scores)[0])

# %% [markdown] id="features-answer" tags=["answer"]
# The weight is practically nothing, although each of the two features tells all about the other. Their correlation is $-1$, which
# makes the score of the pair the smallest of the row, and a softmax turns a very negative score into no weight at all.

# %% [markdown] id="pairs"
# Now a fair contest. A table of 1000 individuals and 20
# features, each a count 0, 1 or 2, as geneticists have it. Two pairs of each kind are planted; 15 % of the entries of $b$
# are noise:
#
# - *alike*: $b = a$; *opposite*: $b = 2 - a$;
# - *hidden*: $b = 1$ where $a = 1$, otherwise 0 or 2 by a coin. Its correlation is zero.

# %% [markdown] id="pairs-methods"
# One layer over features learns to guess an entry from the other 19 (800 steps, three seeds;
# `attn_course/lessons/self_attention/experiments_pairs.py`). Its mean weights on 2000 new individuals compete with $|r|$, with
# {eq}`feature-weights-from-correlations`,
# untrained, and with mutual information, $H(a) + H(b) - H(a, b)$: the entropies of both less that of the pair, from counts,
# 0 if they are independent. Each of the four features of a kind has a partner; it is *found* if it is the largest of the
# row, the feature itself left out. **Predict** which methods find the hidden pairs.

# %% id="pairs-code" tags=["predicted"]
record = PAIRS.load()
trained, information = "trained attention", "mutual information"
print("partners found, of 4:")
for method in ("correlation", "plain attention", trained, information):
    counts = {kind: record.values("found", method, kind).tolist() for kind in KINDS}
    print(f"{method:18}", counts)
for name in ("paired", "paired, most frequent entry", "free"):
    print(f"guessed right, {name:27}: {record.values('accuracy', name)}")

# %% id="pairs-figure" tags=["predicted"]
result = record.results[0]
by_pair = np.ix_(result["order"], result["order"])
names = ("correlation", trained)
maps = {name: np.array(result["maps"][name])[by_pair] for name in names}
figures.pair_maps(maps, dict.fromkeys(KINDS, 4) | {"free": 8})

# %% [markdown] id="pairs-answer" tags=["answer"]
# Trained attention and mutual information find the hidden pairs, all four partners of every kind in each seed. Correlation and plain
# attention miss them, because the correlation of a hidden pair is zero, and plain attention misses the opposite pairs as well. The
# guesses of trained attention beat the most frequent entry by far. But **mutual information** needs no training, and for what
# is linear one line of correlation does. In the figure the weights of *alike* pairs go from .25 to .75, although all are
# equally strong.

# %% [markdown] id="pairs-notice"
# A weight's size does not measure how strong an association is. Rows of
# free features sum to 1 as well. For attention on real genotypes see Rijal et al. (2025).

# %% [markdown] id="parallel"
# ## All positions at once
#
# The reason for self-attention was not only quality. **Assume** $d = d_{\text{model}} = d_k = d_v$, and a plain RNN of
# hidden size $d$. A multiplication with its addition counts 2, as in {eq}`attention-flops`:
#
# $$\text{FLOPs}_{\text{attention}} = 6\,T d^2 + 4\,T^2 d, \qquad \text{FLOPs}_{\text{RNN}} = 4\,T d^2 \label{attention-and-rnn-flops}$$
#
# Attention does **more** work, for every $T$. Its quadratic part takes over where
#
# $$4\,T^2 d = 6\,T d^2 \quad \Longleftrightarrow \quad T = \tfrac{3}{2}\, d \label{quadratic-cost-crossover}$$
#
# What it saves is waiting. Matrix products that must wait for one another:
#
# $$\text{depth}_{\text{attention}} = 3, \qquad \text{depth}_{\text{RNN}} = T \label{attention-and-rnn-depth}$$
#
# Projections, scores, output, whatever the length; a state of the RNN needs the state before.

# %% [markdown] id="traffic"
# And traffic, in numbers moved, if each operation reads its inputs and writes its result (a $\tanh$ and the sum
# in it are one):
#
# $$\begin{gathered}
# \text{moved}_{\text{attention}} = 3 d^2 + 10\, T d + 4\, T^2, \\
# \text{moved}_{\text{RNN}} = 2\,T d^2 + 7\, T d \end{gathered} \label{attention-and-rnn-traffic}$$
#
# The RNN reads its matrices again at each step. **Predict** who wins in work, in traffic and in depth for $T = 1024$ and $d = 256$.

# %% id="parallel-code" tags=["predicted"]
T, d = 1024, 256
projections = 3 * costs.projection_flops(T, d, d)
flops = projections + costs.attention_flops(T * T, d, d), costs.recurrent_flops(T, d, d)
moved = 3 * d**2 + 10 * T * d + 4 * T**2, 2 * T * d**2 + 7 * T * d
for at, layer in enumerate(("attention", "recurrent")):
    work, traffic = flops[at] / 1e6, moved[at] / 1e6
    print(f"{layer:9}: {work:5.0f} MFLOP, {traffic:5.1f} M numbers,", end=" ")
    print(f"{(3, T)[at]:4d} products in a row")

# %% [markdown] id="parallel-answer" tags=["answer"]
# The RNN wins in work, by a factor of 5.5, because attention does half as much again for each token and has
# its quadratic part on top. Attention wins in traffic, by 19, because it reads its
# matrices only once, and in depth, by 341, because nothing waits for the position before.

# %% [markdown] id="parallel-notice"
# The next cell measures the times on your machine.
# Mind that part of what it shows is the price of a loop in Python.

# %% id="parallel-live" tags=["live"]
import time

shapes = ((T, d), (d, d), (d, d))
tokens, w_input, w_hidden = (rng.normal(size=shape) / 16 for shape in shapes)
start = time.perf_counter()
attention(tokens @ w_input, tokens @ w_hidden, tokens @ w_input)
middle = time.perf_counter()
state, inputs = np.zeros(d), tokens @ w_input
for t in range(T):
    state = np.tanh(inputs[t] + state @ w_hidden)
attention_ms, recurrent_ms = 1e3 * (middle - start), 1e3 * (time.perf_counter() - middle)
print(f"attention {attention_ms:.0f} ms, RNN {recurrent_ms:.0f} ms for T = {T}, d = {d}")

# %% [markdown] id="limits"
# ## Limits
#
# - **No order by itself**, {eq}`permutation-equivariance`; how a model does at positions beyond those of training is another question.
# - **Quadratic** in $T$, {eq}`attention-and-rnn-flops`; from $T = \frac32 d$ on that is the larger part.
# - **Levelling**, {eq}`attention-contracts-differences`: without a residual, depth can erase the differences of tokens.
# - **Maps are hypotheses**, {eq}`other-weights-same-output`: hide the token and see; compare seeds; keep a baseline.
# - **Weights are no correlations**: no sign, no zero, no strength.

# %% id="verify-lesson"
verify_lesson("self_attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | self-attention | $\mathrm{softmax}(X W_Q W_K^\top X^\top / \sqrt{d_k})\, X W_V$, {eq}`self-attention` | $(\ldots, T, d_v)$ |
# | parameters | $d_{\text{model}} (2 d_k + d_v)$, {eq}`self-attention-parameters` | |
# | backward | $dW_Q = X^\top dQ$, $dX$: three parts, {eq}`gradients-through-projections` | as $W_Q$, $X$ |
# | balance, $S = S^\top$ | $p_{ij} Z_i = p_{ji} Z_j$, {eq}`detailed-balance-of-weights` | |
# | equivariance | $Z(\Pi X) = \Pi Z(X)$, {eq}`permutation-equivariance` | |
# | sinusoids | $\sin \omega_i t$, $\cos \omega_i t$, {eq}`sinusoidal-positions` | $(T, d_{\text{model}})$ |
# | RoPE | pair $m$ turned by $\omega_m t$, {eq}`rope-as-complex-rotation` | as $Q$, $K$ |
# | residual | $X + Z(X)$, {eq}`residual-stream` | $(\ldots, T, d_{\text{model}})$ |
# | cost | $6 T d^2 + 4 T^2 d$ FLOPs, {eq}`attention-and-rnn-flops`; depth 3, {eq}`attention-and-rnn-depth` | |

# %% [markdown] id="summary"
# ## Summary
#
# - In plain self-attention wide tokens look mostly at themselves; projections let tokens ask for what they are not.
# - Maps are asymmetric for two reasons: rows have their own sums, and $W_Q \ne W_K$.
# - Learned are three matrices; weights are made anew for each input.
# - Order is invisible: outputs move with their tokens. Sinusoids are added, RoPE turns queries and keys.
# - Attention replaces; the residual makes it an update, and keeps tokens apart.
# - A row shows where values came from; what they carried, and why, needs a test.
#
# Now the [exercises](../work/ex_{lesson}`self_attention`_self_attention.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): self-attention, sinusoids, Table 1.
# - J. Su et al. (2021), [arXiv:2104.09864](https://arxiv.org/abs/2104.09864): RoPE.
# - Y. Dong, J.-B. Cordonnier and A. Loukas (2021), [arXiv:2103.03404](https://arxiv.org/abs/2103.03404): attention alone loses rank.
# - S. Jain and B. C. Wallace (2019), [arXiv:1902.10186](https://arxiv.org/abs/1902.10186): attention is not explanation.
# - S. Wiegreffe and Y. Pinter (2019), [arXiv:1908.04626](https://arxiv.org/abs/1908.04626): attention is not not explanation.
# - K. Rijal et al. (2025), [arXiv:2504.10388](https://arxiv.org/abs/2504.10388): attention from genotype to phenotype.
