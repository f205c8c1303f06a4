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
# **You need** chapters {lesson}`lookup`, {lesson}`softmax`, {lesson}`scaling` and {lesson}`attention`, complex numbers for one line.
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`self_attention`_self_attention.ipynb).

# %% id="setup"
import numpy as np

from attn_course import costs, show, verify
from attn_course.figures import charts
from attn_course.lessons.self_attention import figures
from attn_course.lessons.self_attention.experiments import MODELS, PRONOUNS
from attn_course.lessons.self_attention.experiments_pairs import KINDS, PAIRS
from attn_course.reference import attention, attention_backward, rope, scaled_dot_scores, sinusoidal_positions, softmax

np.set_printoptions(precision=2, suppress=True)

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
# variance 1 (chapter {lesson}`scaling`), so perhaps $1/32 = 0.03$?

# %% id="plain-code" tags=["predicted"]
verify("self-attention-without-projections")
rng = np.random.default_rng(5)
maps = {}
for v in (4, 16, 64):
    tokens = rng.normal(size=(300, 32, v))
    weights = attention(tokens, tokens, tokens, return_weights=True)[1]
    maps[f"v = {v}"] = weights[0]
    print(f"v = {v:2d}: mean weight on itself {np.diagonal(weights, axis1=1, axis2=2).mean():.2f}")

# %% id="plain-figure"
figures.weight_maps(
    maps,
    title="With more features each token sees little but itself",
    alt="Three maps of 32 by 32 weights of random tokens. With 4 features the weights are spread out, with 16 the diagonal stands out, "
    "with 64 nearly all weight is on the diagonal.",
)

# %% [markdown] id="diagonal"
# The argument of chapter {lesson}`scaling` **assumed** that query and key are independent. On the diagonal they are the same vector, and
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
verify("heavy-diagonal-of-scores", "self-weight-grows")
x = rng.normal(size=(6, 4))
without_itself = attention(x, x, x, mask=~np.eye(6, dtype=bool))  # True: may be seen
print("largest change if a token may not see itself:", np.abs(without_itself - attention(x, x, x)).max().round(2))

# %% [markdown] id="asymmetry"
# ## Do two tokens see each other alike?
#
# $x_i \cdot x_j = x_j \cdot x_i$, so the scores are symmetric. **Predict** whether the weights are: do two tokens look at
# each other equally? Four tokens in the plane, one of them at the origin:

# %% id="asymmetry-code" tags=["predicted"]
plane = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0], [-1.0, 2.0]])
weights = attention(plane, plane, plane, return_weights=True)[1]
charts.heatmap(
    weights,
    rows=["(2, 0)", "(1, 1)", "(0, 0)", "(−1, 2)"],
    columns=["(2, 0)", "(1, 1)", "(0, 0)", "(−1, 2)"],
    title="Scores are symmetric, weights are not: the origin looks at all alike, and the others hardly look back",
    alt="Four by four weights. The row of the token at the origin is 0.25 everywhere; its column holds 0.04, 0.09, 0.25 and 0.03.",
)

# %% [markdown] id="balance"
# They are not. Each row is divided by its **own** sum $Z_i$, so $e^{s_{ij}} = p_{ij} Z_i$; and $s_{ij} = s_{ji}$:
#
# $$p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}} \label{detailed-balance-of-weights}$$
#
# Sum over $i$; on the right, row $j$ of $P$ sums to 1:
#
# $$\sum_{i=1}^{T} Z_i\, p_{ij} = Z_j \label{normalisers-are-stationary}$$
#
# Of two tokens, the one with the larger $Z$ gives the other less than it gets from it. That is the **first** cause of
# asymmetry, and it is there without any parameter.

# %% id="balance-verify"
verify("detailed-balance-of-weights", "normalisers-are-stationary")

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
print("plain:      eats ->", dict(zip(words, plain[0].round(2).tolist(), strict=True)))
print("projected:  eats ->", dict(zip(words, weights[0].round(2).tolist(), strict=True)))

# %% [markdown] id="bilinear"
# $W_Q$ and $W_K$ let a token ask for something it is **not**; $W_V$ lets it pass on something else than it is found by. In a
# score the first two meet in one product:
#
# $$s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}} \label{bilinear-score}$$
#
# a learned factor for each pair of a feature of $i$ and a feature of $j$. Transpose, and subtract:
#
# $$S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top \label{asymmetry-of-scores}$$
#
# For $W_Q \ne W_K$ this is in general not zero: the **second** cause of asymmetry, now in the scores themselves.
# **Predict**: are the weights symmetric if $W_Q = W_K$?

# %% id="bilinear-verify" tags=["predicted"]
verify("self-attention", "bilinear-score", "asymmetry-of-scores")

# %% id="bilinear-code"
x, w = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
tied_scores = scaled_dot_scores(x @ w, x @ w)
print("scores symmetric:", np.allclose(tied_scores, tied_scores.T), " weights:", np.allclose(softmax(tied_scores), softmax(tied_scores).T))

# %% [markdown] id="spot-inside"
# The scores are, the weights are not: the first cause stays.
#
# ### Spot the mistake: one bracket too far
#
# "$\mathrm{softmax}\bigl( (X W_Q W_K^\top X^\top / \sqrt{d})\, X W_V \bigr)$", prints a tutorial. All shapes fit.
# **Predict** what each row of that "output" sums to, for whatever $W_V$.

# %% id="spot-inside-code" tags=["predicted"]
w_query, w_key, w_value = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
scores = scaled_dot_scores(x @ w_query, x @ w_key)
inside = softmax(scores @ x @ w_value)
print("inside: ", inside.sum(axis=1))
show("self-attention", wrong="the value inside the softmax")

# %% [markdown] id="spot-inside-notice"
# To 1: it is a distribution over *features*, and no average of values can be that for all $W_V$. The softmax closes **before**
# $X W_V$. Test with values that are all equal: an average returns them.

# %% [markdown] id="learned"
# What is learned here? "A set of attention weights", you may read. Count the parameters, without biases:
#
# $$\#\{\text{parameters}\} = d_{\text{model}}\,(2\,d_k + d_v) \label{self-attention-parameters}$$
#
# No $T$ in it. The $T^2$ weights are computed anew for each input, and thrown away. **Predict** what the same three matrices do
# with eleven tokens in place of five.

# %% id="learned-code" tags=["predicted"]
verify("self-attention-parameters")
for length in (2, 5, 11):
    sentence = np.random.default_rng(length).normal(size=(length, 4))
    fresh = attention(sentence @ w_query, sentence @ w_key, sentence @ w_value, return_weights=True)[1]
    print(f"T = {length:2d}: weights {fresh.shape}, parameters {w_query.size + w_key.size + w_value.size}")

# %% [markdown] id="paths"
# They simply make an 11 by 11 map. And backwards? Chapter {lesson}`attention` gave $dQ$, $dK$ and $dV$. A projection is a
# product, $Q = X W_Q$, like $Z = P V$ before; so {eq}`gradient-of-values` gives $dW_Q$ (and $dW_K$, $dW_V$ likewise), and
# {eq}`gradient-of-weights` what comes
# back to $X$. As $X$ feeds all three, three gradients come back and **add**:
#
# $$dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top \label{gradients-through-projections}$$
#
# A token learns in three parts: as one that asks, as one that is found, as one that passes on.

# %% id="paths-verify"
verify("gradients-through-projections")

# %% id="paths-code"
d_output = rng.normal(size=(5, 2))
d_query, d_key, d_value = attention_backward(x @ w_query, x @ w_key, x @ w_value, d_output)
for name, part in {"asks": d_query @ w_query.T, "is found": d_key @ w_key.T, "passes on": d_value @ w_value.T}.items():
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

# %% id="permute-verify"
verify("permuted-scores", "permuted-weights", "permutation-equivariance")

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

# %% [markdown] id="set-notice"
# Nothing. Who bites whom cannot be told. Where a trained model prefers neighbours, it got places from
# elsewhere: from positions, or from a mask (chapter {lesson}`masking`). Let a vector
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
charts.lines(
    reach,
    {"t = 10": table[10] @ table[10 + reach].T, "t = 50": table[50] @ table[50 + reach].T},
    title="Likeness of two places depends on their distance only, and it has ripples",
    alt="Dot products of position 10 and of position 50 with others, over the distance from −10 to 50, 64 features. The two curves "
    "coincide. They peak at 32 for distance 0, fall steeply on both sides, and ripple between about 14 and 21 further out.",
    x_label="distance u − t",
    y_label="dot product",
)

# %% id="likeness-code"
verify("score-with-added-positions", "sinusoidal-positions")
verify("sinusoid-shift-is-linear", "sinusoidal-position-similarity")

# %% [markdown] id="turn"
# ## Positions to rotate by: RoPE
#
# They coincide, and they ripple. But a score does not see $P_t \cdot P_u$ alone: {eq}`score-with-added-positions` puts $M$ between, and
# mixes
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
# The first part is even in the distance, the second odd: before and after are told apart. With $d_k / 2$ pairs (neighbours, or
# feature $m$ with $m + d_k/2$, as code has it), each read as a complex number, $\hat{q}_m$ of the query and $\hat{k}_m$ of the key,
# with its own $\omega_m = 10000^{-2m/d_k}$, a turn is a factor $e^{i \omega_m t}$. With $\bar{k}_m$ for the conjugate of $\hat{k}_m$, and
# for any common shift $c$:
#
# $$\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) =
#  \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad \|R_t\, q\| = \|q\| \label{rope-as-complex-rotation}$$
#
# This is RoPE (Su et al., 2021): turn queries and keys **after** their projections, leave the values alone. **Predict**
# which of the two methods below keeps the scores when the sentence moves seven places on.

# %% id="relative-verify" tags=["predicted"]
verify("angle-proportional-to-position", "rotations-compose")
verify("rotated-pair-score", "rope-as-complex-rotation")

# %% id="relative-code"
x, w_query, w_key = rng.normal(size=(5, 8)), rng.normal(size=(8, 6)), rng.normal(size=(8, 6))


def added(start):
    moved = x + sinusoidal_positions(20, 8)[start : start + 5]
    return scaled_dot_scores(moved @ w_query, moved @ w_key)


def turned(start):
    places = np.arange(start, start + 5)
    return scaled_dot_scores(rope(x @ w_query, places), rope(x @ w_key, places))


for method in (added, turned):
    print(f"{method.__name__:6}: a shift by 7 changes a score by up to {np.abs(method(7) - method(0)).max():.2f}")

# %% [markdown] id="relative-notice"
# Only the rotation does. Added sinusoids contain the distance, {eq}`sinusoidal-position-similarity`, and the model may or may not learn to
# use it.
#
# Now move the two tokens yourself. **Predict** first: does the score stay if you press "Both one on"? If you press
# "Exchange"? The base is 100 here, not 10000, so that all three clocks can be seen to run.

# %% id="explorable" tags=["predicted"]
figures.rope_explorable()

# %% [markdown] id="explorable-notice"
# "Both one on" keeps the distance and the score; "Exchange" turns the sign of the distance, and the odd part of {eq}`rotated-pair-score`
# with it. With the clocks stopped we are back in section 5.4.

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
# $$\max_i z_i - \min_i z_i \le \tau\, \bigl( \max_j v_j - \min_j v_j \bigr), \qquad
#  \tau = 1 - \min_{i,k} \sum_{j} \min(p_{ij}, p_{kj}) \label{attention-contracts-differences}$$

# %% [markdown] id="residual-predict"
# Finite scores give positive weights, hence $\tau < 1$. Six layers with random projections, where $W_V$ is orthogonal, so
# that it stretches nothing. Let $\bar X$ hold the mean token in each row; $\|X - \bar X\| / \|X\|$ is the share that
# differs, 0 if all tokens are equal. **Predict** it after six layers, with and without the residual. And without, if $W_Q$
# and $W_K$ are half as large again, so that weights are sharper?

# %% id="residual-verify" tags=["predicted"]
verify("residual-stream", "attention-contracts-differences")


# %% id="residual-code"
def shares(residual, size=2.0, depth=6, d=16):
    x, draw, found = np.random.default_rng(0).normal(size=(20, d)), np.random.default_rng(1), []
    for _ in range(depth + 1):
        found.append(np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x))
        w_query, w_key = size * draw.normal(size=(2, d, d)) / np.sqrt(d)
        output = attention(x @ w_query, x @ w_key, x @ np.linalg.qr(draw.normal(size=(d, d)))[0])
        x = x + output if residual else output
    return np.array(found)


curves = {"X + Z": shares(True), "Z alone": shares(False), "Z alone, sharper": shares(False, size=3.0)}
for name, curve in curves.items():
    print(f"{name:16} share that differs after 6 layers: {curve[-1]:.1g}")

# %% id="residual-figure"
charts.lines(
    np.arange(7),
    curves,
    title="Attention alone can make all tokens equal; the residual keeps them apart",
    alt="Share of the tokens that differs from their mean, after 0 to 6 layers, on a logarithmic axis. With the residual it stays near "
    "0.9. Without it, it falls faster and faster to less than a millionth; with sharper weights it stays above one half.",
    x_label="layers",
    y_label="share that differs",
    y_log=True,
)

# %% [markdown] id="residual-notice"
# Levelling gathers speed: the more alike the tokens, the more alike their rows. Sharp weights, with $\tau$ close to 1,
# put it off. Dong, Cordonnier and Loukas (2021) prove for attention alone, without residuals and without layers between,
# that the output tends to a matrix of rank one, doubly exponentially in the depth.

# %% [markdown] id="pronoun"
# ## "It" and the cat
#
# "the cat chased the owl because **it** was angry": the cat. "... because **it** was slow": the owl. The favourite picture of
# attention shows the row of "it" with its weight on the noun. Nobody writes that row down; what could make it grow?
# **Assume** that the output wanted at "it" is $v_n$, the value of the noun. By {eq}`score-gradient-against-mixture` with $dO = z - v_n$:
#
# $$-\frac{\partial}{\partial s_n}\, \tfrac{1}{2} \|z - v_n\|^2 = p_n\, \|v_n - z\|^2 \label{wanted-value-gains-score}$$
#
# Never negative: a step against the gradient raises the score of the token whose value is needed, as long as $z \ne v_n$.

# %% id="pronoun-verify"
verify("wanted-value-gains-score")

# %% [markdown] id="pronoun-setup"
# **The experiment.** Sentences like those above: ten nouns, three verbs, six adjectives (three fit who acts, three who is
# acted upon), up to two words in front. The output at "it" must name the noun; where to look is not told. Nine of the 45
# pairs of nouns are **held out**; each test sentence comes with its mirror image, nouns exchanged, so "the nearest
# noun" is right in exactly half. Four models (400 steps, three seeds; `attn_course/lessons/self_attention/experiments.py`):
#
# - *free*: two layers, {eq}`residual-stream`, sinusoids added;
# - *words as values*: the same, but the last layer averages the words as they came in, without residual;
# - *one layer*; *no positions*: less than *free*.
#
# **Predict** which of them beat one half.

# %% id="pronoun-figure" tags=["predicted"]
record = PRONOUNS.load()
runs = dict(zip(record.seeds, record.results, strict=True))
accuracy = {f"seed {seed}": [run[kind]["accuracy"] for kind in MODELS] for seed, run in runs.items()}
charts.bars(
    MODELS,
    accuracy,
    title="Two layers and positions are both needed to resolve “it” on pairs of nouns never seen together",
    alt="Share of held-out sentences with the right noun, three seeds each. "
    + " ".join(f"{kind}: {', '.join(f'{row[n]:.2f}' for row in accuracy.values())}." for n, kind in enumerate(MODELS))
    + " The nearest noun is right in 0.50.",
    x_label="model",
    y_label="share right (nearest noun: 0.5)",
)

# %% [markdown] id="pronoun-notice"
# *No positions* could not: mirror images are the same set of words, so by {eq}`permutation-equivariance` "it" gets the same output for
# both,
# and at least one of the two answers is wrong. *One layer* did not pass one half by more than a hundredth: its "it" asks
# before it knows the adjective. With two layers it can read the adjective first, and ask for the right noun then.
#
# Now **predict** the row of "it" in the last layer, for the two models that succeed. The first held-out pair of each seed:

# %% id="pronoun-rows"
rows = {}
for kind in MODELS[1::-1]:
    for ending, adjective in enumerate(("angry", "slow")):
        for seed, run in runs.items():
            rows[f"{kind}, {adjective}, seed {seed}"] = run[kind]["example"]["rows"][ending]
figures.query_rows(
    rows,
    ["the", "noun 1", "chased", "the", "noun 2", "because", "it", "was", "angry / slow"],
    title="The row of “it”: on the noun where nothing else can carry its name, often elsewhere where something can",
)

# %% id="pronoun-numbers"
questions = {"accuracy": "share right", "noun": "weight on the noun meant", "hidden": "share right, that noun hidden"}
for kind in MODELS[1::-1]:
    for name, question in questions.items():
        print(f"{kind:16} {question:30}", record.values(kind, name))

# %% [markdown] id="pronoun-rows-notice"
# *Words as values* does what the picture promises: on average .83 and more of the weight on the noun meant, on held-out
# sentences. There a noun can only come through its own weight, and when that one place is hidden from "it" (a mask in the last
# layer), hardly an answer is right.
#
# *Free* is about as good, and its row is another story. In seed 1 the noun meant gets .01 of the weight on average, and hiding it
# costs nothing. **Predict** where the name is. Here is whom "it" looks at most in layer 2 after "slow" (places count from
# 0; noun 2 is at 4), and whom *that* token had looked at in layer 1:

# %% id="pronoun-relay" tags=["predicted"]
for seed, run in runs.items():
    seen = run["free"]["example"]
    place, first = seen["looked at"][1], np.array(seen["first rows of these"][1])
    second = f"it looks at place {place} ({seen['rows'][1][place]:.2f})"
    print(f"seed {seed}: {second}, which looked at place {first.argmax()} ({first.max():.2f})")

# %% [markdown] id="pronoun-relay-notice"
# In these sentences all three give the largest weight to a third token, the adjective or a "the", which had looked at the noun in
# layer 1. The name comes with it, or partly so: seeds 0 and 2 lose some answers without the noun, seed 1 none. The weight is on
# a place; what that place *holds* in layer 2 is no longer only the word that stands there. Nothing makes training
# prefer the direct way.

# %% [markdown] id="explanation"
# Even in one layer a map need not tell why. The output and the row sums are $d_v + 1$ conditions on $T$ weights; with
# more tokens than that there are changes $N$ that nobody sees:
#
# $$N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad (P + N)\, [\,V \;\; \mathbf{1}\,] = P\, [\,V \;\; \mathbf{1}\,]
# \label{other-weights-same-output}$$
#
# The outputs and the row sums stay. These are weights again, provided $N$ keeps all weights at least 0. **Predict** whether the largest
# weight of a row can lose its lead in this way.

# %% id="explanation-verify" tags=["predicted"]
verify("other-weights-same-output")

# %% id="explanation-code"
value = np.array([[1.0], [0.0], [0.5], [0.5]])
p = np.array([0.10, 0.10, 0.60, 0.20])
change = np.array([0.40, 0.40, -0.60, -0.20])
print("weights", p, "output", p @ value)
print("weights", p + change, "output", (p + change) @ value)

# %% [markdown] id="explanation-notice"
# It can: key 2 falls from .6 to nothing, and the output stays. (Not where nearly all weight is on a value that the others
# cannot mix.)
#
# Is attention an explanation, then? Jain and Wallace (2019) found, in text classifiers, weights that agree poorly with
# gradients, and very different weights with equivalent predictions. Wiegreffe and Pinter (2019) answered that it
# depends on what one calls an explanation, and that the rest of the model counts. They proposed tests (among them
# several seeds) and concluded that its usefulness is not disproved. Both studied
# recurrent models with attention on top. A map shows where values were taken from, a **hypothesis** about the reason. Test
# it: hide the token, compare seeds.

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

# %% id="features-verify" tags=["predicted"]
verify("feature-scores-are-correlations", "feature-weights-from-correlations")

# %% id="features-code"
data = rng.normal(size=(100, 2)) @ np.array([[1.0, -1.0, 0.5], [0.0, 0.0, 1.0]])
standard = ((data - data.mean(axis=0)) / data.std(axis=0)).T  # (features, individuals)
scores = scaled_dot_scores(standard, standard)
assert np.allclose(scores, 10 * np.corrcoef(data.T))
print("feature 0: correlations", np.corrcoef(data.T)[0], " weights", softmax(scores)[0])

# %% [markdown] id="pairs"
# Nothing, although the one tells all about the other. Now a fair contest. A table of 1000 individuals and 20
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
for method in ("correlation", "plain attention", "trained attention", "mutual information"):
    counts = {kind: record.values("found", method, kind).tolist() for kind in KINDS}
    print(f"{method:18} found, of 4:", counts)
for name in ("paired", "paired, most frequent entry", "free"):
    print(f"guessed right, {name:27}: {record.values('accuracy', name)}")

# %% id="pairs-figure"
result = record.results[0]
order = np.array(result["order"])
figures.weight_maps(
    {name: np.array(result["maps"][name])[np.ix_(order, order)] for name in ("correlation", "trained attention")},
    title="Correlation misses the hidden pairs; trained weights show them, but their size says little",
    alt="Two maps of 20 by 20 features, ordered by pair, the diagonal hatched. Left, absolute correlations: eight bright cells for "
    "the alike and opposite pairs, nothing for the hidden ones. Right, mean trained weights: each paired row has its largest cell at "
    "the partner, 0.25 to 0.99; rows of free features have cells of up to 0.37.",
    row_label="features",
    column_label="features",
    hide_diagonal=True,
    blocks=dict.fromkeys(KINDS, 4) | {"free": 8},
    color_label="|r|, weight",
)

# %% [markdown] id="pairs-notice"
# The honest reading. Trained attention found all twelve partners in each seed, and its guesses beat the most frequent entry by
# far. But **mutual information found them too**, with no training, and for what is linear one line of correlation does.
# And the size of a weight is no strength: all *alike* pairs are equally strong, and in the figure their weights go from .25
# to .75. (A count of 1 is the best guess anyway; the layer may look at its partner only when that says otherwise.) Rows of
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
# $$\text{moved}_{\text{attention}} = 3 d^2 + 10\, T d + 4\, T^2, \qquad \text{moved}_{\text{RNN}} = 2\,T d^2 + 7\, T d
# \label{attention-and-rnn-traffic}$$
#
# The RNN reads its matrices again at each step. **Predict** for $T = 1024$, $d = 256$ who wins in work, in traffic, in depth.

# %% id="parallel-verify" tags=["predicted"]
verify("attention-and-rnn-flops", "quadratic-cost-crossover")
verify("attention-and-rnn-depth", "attention-and-rnn-traffic")

# %% id="parallel-code"
T, d = 1024, 256
attention_flops = 3 * costs.projection_flops(T, d, d) + costs.attention_flops(T * T, d, d)
flops = {"attention": attention_flops, "recurrent": costs.recurrent_flops(T, d, d)}
moved = {"attention": 3 * d**2 + 10 * T * d + 4 * T**2, "recurrent": 2 * T * d**2 + 7 * T * d}
depth = {"attention": 3, "recurrent": T}
for layer in ("attention", "recurrent"):
    print(f"{layer:9}: {flops[layer] / 1e6:5.0f} MFLOP, {moved[layer] / 1e6:5.1f} M numbers, {depth[layer]:4d} products in a row")

# %% [markdown] id="parallel-notice"
# The RNN in work, by 5.5; attention in traffic, by 19, and in depth, by 341. The next cell measures the times on your machine.
# Mind that part of what it shows is the price of a loop in Python.

# %% id="parallel-live" tags=["live"]
import time

tokens, w_input, w_hidden = (rng.normal(size=shape) / 16 for shape in ((T, d), (d, d), (d, d)))
start = time.perf_counter()
attention(tokens @ w_input, tokens @ w_hidden, tokens @ w_input)
middle = time.perf_counter()
state, inputs = np.zeros(d), tokens @ w_input
for t in range(T):
    state = np.tanh(inputs[t] + state @ w_hidden)
print(f"attention {1e3 * (middle - start):.0f} ms, RNN {1e3 * (time.perf_counter() - middle):.0f} ms for T = {T}, d = {d}")

# %% [markdown] id="limits"
# ## Limits
#
# - **No order by itself**, {eq}`permutation-equivariance`; how a model does at positions beyond those of training is another question.
# - **Quadratic** in $T$, {eq}`attention-and-rnn-flops`; from $T = \frac32 d$ on that is the larger part.
# - **Levelling**, {eq}`attention-contracts-differences`: without a residual, depth can erase the differences of tokens.
# - **Maps are hypotheses**, {eq}`other-weights-same-output`: hide the token and see; compare seeds; keep a baseline.
# - **Weights are no correlations**: no sign, no zero, no strength.

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
