# %% [markdown] id="title"
# # {lesson}`self_attention` Self-attention: a sequence that asks itself
#
# *The cat chased the owl because it was angry.* Who was angry? And who, if it says *slow*? In self-attention every word asks all words at
# once, itself among them, and a small network of such layers can learn to answer. But first it must be repaired, because it cannot see the
# order of the words. **Where does the order get lost, and what brings it back?**
#
# **You need** lessons {lesson}`start`, {lesson}`scaling` and {lesson}`attention`. **Time:** 57 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`self_attention`_self_attention.ipynb).

# %% [markdown] id="hook"
# ## Two networks
#
# We trained such a network with the repair and without it, three times each, to name the animal meant: the first with *angry*, *hungry* or
# *fierce*, the second with *slow*, *loud* or *rude*. Then it read 972 new sentences about new pairs of animals, two thirds beginning with
# *today* or *early today*. Its shares of right answers:

# %% id="hook-code"
from attn_course.lessons.self_attention.experiments import PRONOUNS

record = PRONOUNS.load()
for network in ("with places", "without places"):
    print(f"{network:14}", record.values(network, "accuracy"))

# %% [markdown] id="where"
# With the repair, all answers are right in two trainings, and 88 of 100 in the third. Without it never more than half of them are. We will
# prove that no such network without it, and without a mask, can do better, however deep it is and however long it learns. And yet the
# repair has no parameter.
#
# We begin at the left of the machine, where one matrix $X$ becomes three:

# %% id="machine"
from attn_course.lessons.self_attention import figures

figures.machine()

# %% [markdown] id="views"
# ## Three views of one sequence
#
# In lessons {lesson}`scaling` and {lesson}`attention` queries, keys and values were given. Now all three must come from one matrix $X$,
# with a row of features for each of $T$ tokens. The cheapest way is to let each row play all three parts, $Q = K = V = X$.

# %% [markdown] id="views-hand"
# What does "it" find in this way? Lesson {lesson}`start` gave each word of `the cat sat because it was tired` three numbers: how alive it
# is, how much it tells, and how open it is. "It" is $(0, 0, 2)$, "the" is $(0, 0, 1)$, and no other word is open. So "it" has the dot
# product 4 with itself, 2 with "the", and 0 with the cat. Here are its weights, and below them those of lesson {lesson}`start`, where one
# matrix made the queries and another one the keys:

# %% id="views-code"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.reference import attention
from attn_course.sentence import CONTENT, TOKENS, labelled

X = CONTENT[:, :3]  # alive, tells, open
W_Q = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, -1, 1]])  # 3 features, 4 questions
W_K = np.array([[1, 0, 0, 1], [0, 1, 0, -1], [0, 0, 1, 0]])
plain = attention(X, X, X, return_weights=True)[1]
asked = attention(X @ W_Q, X @ W_K, X[:, :2], return_weights=True)[1]  # of 2 values
print(labelled([plain[4], asked[4]], ("plain", "with W_Q, W_K"), columns=TOKENS))

# %% [markdown] id="views-self"
# Plain self-attention can only ask *who points my way?*, and "it" finds mostly itself. This is not the fault of our numbers: among random
# vectors of 64 features of variance 1 a token's own score leads by about 8 (section {section}`it`).

# %% [markdown] id="views-three"
# A pronoun, however, asks for what it is *not*. So each token gets three views, made by three learned matrices: its row of $Q = X W_Q$ is
# what it asks, its row of $K = X W_K$ what it answers to, and its row of $V = X W_V$ what it passes on. This is **self-attention**:
#
# $$Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V \key{self-attention}$$

# %% [markdown] id="views-two"
# Why must the matrices for asking and answering differ? Because of what a score is made of:
#
# $$s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}} \label{bilinear-score}$$
#
# With $W_Q = W_K$ it would equal $s_{ji}$, and the cat would have to score "it" as high as "it" scores the cat.
#
# In the layer only the three matrices are learned. The weights are made anew for every input, so the same matrices serve nine words or nine
# hundred, and no word has to wait for another one's answer. But look in the formula for the number of a word's place: it is not there.

# %% [markdown] id="shuffle"
# ## Shuffle the words
#
# We hand such a layer the same words in another order. A **permutation matrix** $\Pi$ has a single 1 in each row and column, and $\Pi X$
# holds the rows of $X$ in another order. The queries become $\Pi X W_Q = \Pi Q$, and in the same way we get $\Pi K$ and $\Pi V$. What
# becomes of the scores?
#
# **Your turn.** {turn}`scores-of-shuffled-words`

# %% id="shuffle-turn-code" tags=["your-turn"]
my_shuffled = ...  # such as r"S + \Pi", which is wrong
check("scores-of-shuffled-words", my_shuffled)

# %% [markdown] id="shuffle-ours" tags=["ours"]
# They are `r"\Pi S \Pi^\top"`, because $\Pi Q\, (\Pi K)^\top = \Pi\, Q K^\top\, \Pi^\top$: rows and columns move alike.

# %% [markdown] id="shuffle-weights"
# The softmax takes the exponential of each entry and divides by the sum of its row, for which the order does not matter. So weights move as
# scores do:
#
# $$\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)\, \Pi^\top \label{permuted-weights}$$
#
# The output is weights times values, $\Pi P\, \Pi^\top \cdot \Pi V$. As $\Pi^\top \Pi$ is the identity, $\Pi P V$ is left:
#
# $$Z(\Pi X) = \Pi\, Z(X) \key{permutation-equivariance}$$

# %% [markdown] id="shuffle-means"
# If the words are shuffled, the outputs are shuffled with them, and nothing else changes, which is called **equivariance**. (Under a
# mask it is not so, lesson {lesson}`masking`.)
#
# **Spot the mistake.** Somebody sums up: "Shuffling changes nothing, so $Z(\Pi X) = Z(X)$." Let us try it on a network of two layers, each
# of which adds its output to its input, $X + Z(X)$. We fill it with random numbers, leave out "the", which stands twice, and let cat and owl
# change places. **Predict** which of the old outputs, counted from 0, now stands at each place.

# %% id="shuffle-code" tags=["predicted"]
rng = np.random.default_rng(0)
text = "cat chased owl because it was angry"
mirrored = "owl chased cat because it was angry"
vectors = {word: rng.normal(size=8) for word in text.split()}
layers = rng.normal(size=(2, 3, 8, 8)) / 3


def outputs(text):
    x = np.stack([vectors[word] for word in text.split()])
    for w_query, w_key, w_value in layers:
        x = x + attention(x @ w_query, x @ w_key, x @ w_value)
    return x


old = outputs(text)
same = np.isclose(old, outputs(mirrored)[:, None]).all(axis=-1)
print([np.flatnonzero(row).tolist() for row in same])

# %% [markdown] id="shuffle-answer" tags=["answer"]
# The outputs of cat and owl change places with their words, and the five others stay as they were. "Changes nothing" is true only of a word
# that stays where it is. The outputs of a layer move with its words, as $X$ does, so those of both layers do.

# %% [markdown] id="shuffle-half"
# This proves what the first cell showed. If cat and owl change places, "it" stays where it is, so by {eq}`permutation-equivariance` it gets
# the same output, in one layer after the other. A network that reads its answer there gives the same answer to both sentences. But one of
# them means the cat and the other the owl. Our 972 sentences are 486 such pairs, and of each pair at most one answer is right, whatever the
# depth and the training. ∎

# %% [markdown] id="turn"
# ## Give each word a place, and turn it
#
# So the places must be told. The Transformer of 2017 *added* to each word a vector for the word's place, which works (section
# {section}`added`). But often a head needs to know how *far away* a word stands: the word before me, in line 1 as in line 900. In 2021 Su
# and others asked for scores in which the places enter only through their difference, and most language models now do it so.

# %% [markdown] id="turn-hand"
# Take two features of a query or a key as a point in the plane, and turn it by the same angle at every step to the next place. With the
# cosine $\frac35$ and the sine $\frac45$ we can do it by hand, because then a turn takes $(a, b)$ to $\frac15 (3a - 4b,\; 4a + 3b)$. A
# point that is $(25, 0)$ at place 0 is $(15, 20)$ at place 1, $(-7, 24)$ at place 2 and $(-23.4, 8.8)$ at place 3.
#
# Let every word have the query $(25, 0)$ and the key $(25, 0)$ before they are turned. Places 0 and 1 have the dot product
# $25 \cdot 15 + 0 \cdot 20 = 375$. **Predict** those of places 1 and 2, and of 2 and 3.

# %% id="turn-hand-code" tags=["predicted"]
points = [np.array([25.0, 0.0])]
for _ in range(3):
    points.append(np.array([[3, -4], [4, 3]]) @ points[-1] / 5)
names = [f"place {t}" for t in range(4)]
print(labelled(np.round(np.array(points) @ np.array(points).T), names, columns=names))

# %% [markdown] id="turn-hand-answer" tags=["answer"]
# They are 375, too: $15 \cdot (-7) + 20 \cdot 24$ for places 1 and 2. Each diagonal of the table holds a single number, because a dot
# product depends on two lengths and the angle between, and this angle is that of one step times the distance.

# %% [markdown] id="turn-general"
# This holds for any query, key and angle $\omega$ of a step. To turn back by $\omega t$ and on by $\omega u$ is to turn by the difference:
#
# $$R_t^\top R_u = R_{u - t}, \qquad
#  R_t = \begin{pmatrix} \cos(\omega t) & -\sin(\omega t) \\ \sin(\omega t) & \cos(\omega t) \end{pmatrix} \label{rotations-compose}$$
#
# So a query $q$ at place $t$ and a key $k$ at place $u$, both columns, have the product $q^\top R_t^\top R_u\, k = q^\top R_{u - t}\, k$, or
#
# $$(R_t\, q) \cdot (R_u\, k) = (q \cdot k) \cos(\omega(u - t)) + (q_2 k_1 - q_1 k_2) \sin(\omega(u - t)) \key{rotated-pair-score}$$
#
# Of the places only the difference $u - t$ is left. By the sine a head can tell earlier from later, unless $q$ and $k$ lie on one line, as
# ours do.

# %% [markdown] id="turn-rope"
# One pair of features is a clock with one hand, which shows the same again after a full turn. So $d_k$ features make $d_k / 2$ hands, and
# pair $m = 0, 1, \ldots$ turns at a speed of its own, $\omega_m = 10000^{-2m/d_k}$. This is **RoPE**, rotary position embedding. It turns
# queries and keys *after* their projections. Values are not turned, because the place should decide who is found, and not what is passed
# on.

# %% [markdown] id="turn-turn"
# **Your turn**, for a network of your own. {turn}`turn-of-a-pair`

# %% id="turn-turn-code" tags=["your-turn"]
my_turn = ...  # your function
check("turn-of-a-pair", my_turn)

# %% [markdown] id="turn-ours" tags=["ours"]
# ```python
# def my_turn(a, b, cos, sin):
#     return a * cos - b * sin, a * sin + b * cos
# ```

# %% [markdown] id="turn-card"
# In this card a query and a key have three pairs each. Does the score change when both tokens move on together?
# And when they exchange places?

# %% id="turn-explorable"
figures.rope_explorable()

# %% [markdown] id="turn-card-answer"
# <details><summary>What you should see</summary>
#
# It changes with *Exchange*, as $u - t$ changes its sign, and the sine with it. It stays if both move on together.
#
# </details>

# %% [markdown] id="votes"
# ## Is one layer enough?
#
# Now the words have places. How many layers do we need? Take four sentences: the cat chased the owl, or the owl the cat, because it was
# angry, or slow. The network names the animal whose vector has the larger product with the last vector of "it". So it prefers the cat if
# the product with $d = x_{\mathrm{cat}} - x_{\mathrm{owl}}$ is positive. After one layer, in which "it" has the score $s_j$ with word $j$,
# whose value is $v_j = x_j W_V$, that is
#
# $$\Bigl( x_{\mathrm{it}} + \frac{\sum_j e^{s_j}\, v_j}{\sum_j e^{s_j}} \Bigr) \cdot d > 0, \qquad \text{or} \qquad
#  \sum_j e^{s_j}\, (x_{\mathrm{it}} + v_j) \cdot d > 0,$$
#
# since the sum by which we multiply is positive.

# %% [markdown] id="votes-count"
# So each word casts a vote, for the cat or for the owl, and the votes are added. In all four sentences "it" has the same query, and a value
# does not know its place. So a vote depends only on the word that casts it and, by its key, on its place. Let all words but the last have
# $a$ votes together if the cat chased, and $b$ if the owl did. The last word adds $\alpha$ if it is *angry*, and $\sigma$ if it is *slow*.
# All four answers are right only if
#
# $$\begin{gathered} a + \alpha > 0 > b + \alpha \qquad \text{(angry: who chased)}, \\
#  a + \sigma < 0 < b + \sigma \qquad \text{(slow: who was chased)} \end{gathered}$$
#
# The first line says $a > b$, and the second $a < b$. So one layer with a single head, like ours, gets at most three right.

# %% [markdown] id="votes-two"
# The word *slow* turns the question round, as the *exclusive or* does, on which one layer of perceptrons fails too (Minsky and Papert,
# 1969). In a second layer "it" asks again, and may have read the last word by then. So its query, and with it every vote, can depend on
# that word.
#
# Or a layer has two *heads*, whose outputs are added (lesson {lesson}`heads`). Each divides by its own sum, so the proof fails, and two
# heads can indeed give all four answers. What must each look at, and when must it look away?
#
# <details><summary>One answer</summary>
#
# One looks at who chased, unless *slow*, whose value is 0, draws its weight. The other looks at who was chased, unless *angry* does so.
#
# </details>

# %% [markdown] id="own"
# ## Your own network
#
# Now build the network, in plain PyTorch, with your `my_turn` (ours, until you have written it). Here `placed` turns the pairs of all words.
# It puts first features before second ones, in queries and keys alike, which no dot product notices.

# %% id="own-turn"
import torch

from attn_course.lessons.self_attention import tasks_turns as ours

turn = ours.my_turn.answer if my_turn is ... else my_turn


def placed(rows):
    width = rows.shape[-1]
    speeds = 10_000 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(rows.shape[-2])[:, None] * speeds
    a, b = rows[..., 0::2], rows[..., 1::2]
    return torch.cat(turn(a, b, angles.cos(), angles.sin()), -1)


# %% [markdown] id="own-network-text"
# Each of 25 words begins as a learned vector. At the end the vector at place 6 of the sentence, "it", is multiplied with those of the ten
# animals, numbers 6 to 15 of the word list, and the largest product is the answer. (The two sixes are unrelated.)


# %% id="own-network"
class Network(torch.nn.Module):
    def __init__(self, turned, n_layers, d=32):
        super().__init__()
        self.turned, self.vectors = turned, torch.nn.Parameter(torch.empty(25, d))
        self.layers = torch.nn.ParameterList(torch.empty(n_layers, 3, d, d).unbind())

    def forward(self, texts):
        x = self.vectors[texts]
        for layer in self.layers:
            q, k, v = x @ layer[0], x @ layer[1], x @ layer[2]
            if self.turned:
                q, k = placed(q), placed(k)
            x = x + (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return x[:, 6] @ self.vectors[6:16].T / x.shape[-1] ** 0.5


# %% id="own-answer"
from attn_course.lessons.self_attention import experiments_given as given
from attn_course.lessons.self_attention.experiments import NOUNS, NUMBER


def answer(sentence):
    words = torch.tensor([[NUMBER[word] for word in sentence.split()]])
    return NOUNS[network(words).argmax()]


# %% [markdown] id="own-predict"
# Training and sentences, without *today*, are given. Nine pairs of animals are kept for the test, cat and owl among them. We train two
# layers without places, then one and two with places, and ask each about two mirrored sentences, with *angry* and with *slow*. **Predict**
# which answers of the first network must be alike, and which network can get more than three in four of all new sentences right.

# %% id="own-run" tags=["predicted"]
texts, meant = given.sentences(given.NEW)
halves = "the cat chased the owl", "the owl chased the cat"
for n_layers, turned in ((2, False), (1, True), (2, True)):
    network = given.train(Network(turned, n_layers))
    right = (network(texts).argmax(-1) == meant).float().mean()
    print(f"layers: {n_layers}, places: {turned}, over 3 in 4: {right > 0.75}")
    for end in ("because it was angry", "because it was slow"):
        print(f"  ... {end}:", *(answer(f"{half} {end}") for half in halves))

# %% [markdown] id="own-more" tags=["answer"]
# Without places a sentence and its mirror image get one answer, so at most half are right. One layer with one head is right in at most
# three quarters, because the new sentences fall into fours like ours. Only the last network is right in all four.

# %% [markdown] id="own-ask-text"
# The last network is still in `network`. Ask it questions of your own, with the words in `NUMBER`:

# %% id="own-ask"
print(answer("the owl pushed the cat because it was fierce"))

# %% id="verify-lesson"
verify_lesson("self_attention")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | three views of one sequence, {eq}`self-attention` | {key}`self-attention` |
# | shuffled words, {eq}`permutation-equivariance` | {key}`permutation-equivariance` |
# | places enter by their difference, {eq}`rotated-pair-score` | {key}`rotated-pair-score` |

# %% [markdown] id="summary"
# ## Summary
#
# - Each token asks, answers and passes on, by three learned matrices.
# - In one layer with one head each word votes without regard to the others. In a second layer the question can depend on what was read.
#
# Where does the order get lost? In every step, since each treats all tokens alike: without a mask, shuffled words get their old outputs,
# shuffled, at any depth and after any training. What brings it back? Turn queries and keys by an angle for each step, and scores depend on
# contents and on differences of places.
#
# Lesson {lesson}`masking` hides words, and {lesson}`heads` asks several things at once. First come the
# [exercises](../work/ex_{lesson}`self_attention`_self_attention.ipynb).

# %% [markdown] id="added"
# ## Deeper: what if the place is added? And the clocks of a real model
#
# The first Transformer added a vector $h_t$ for place $t$ to the token, once, before the first layer. With $M = W_Q W_K^\top$, a score
# (before its scale) falls into four parts:
#
# $$(x_t + h_t)\, M\, (x_u + h_u)^\top = x_t M x_u^\top + x_t M h_u^\top + h_t M x_u^\top + h_t M h_u^\top
# \label{score-with-added-positions}$$
#
# Its vectors were clocks, too. Hand $m$ at place $t$ is written down by its sine and cosine:
#
# $$h_{t,2m} = \sin(\omega_m t), \qquad h_{t,2m+1} = \cos(\omega_m t), \qquad \omega_m = 10000^{-2m/d} \label{sinusoidal-positions}$$

# %% [markdown] id="added-predict"
# By $\sin a \sin b + \cos a \cos b = \cos(a - b)$, the dot product $h_t \cdot h_u$ depends on $t - u$ alone. **Predict** whether the scores
# stay, then, if a sentence with added places moves seven places on. And with turned ones?

# %% id="added-code" tags=["predicted"]
from attn_course.reference import rope, scaled_dot_scores, sinusoidal_positions

x, (w_query, w_key) = rng.normal(size=(5, 8)), rng.normal(size=(2, 8, 6))


def added(start):
    moved = x + sinusoidal_positions(20, 8)[start : start + 5]
    return scaled_dot_scores(moved @ w_query, moved @ w_key)


def rotated(start):
    places = np.arange(start, start + 5)
    return scaled_dot_scores(rope(x @ w_query, places), rope(x @ w_key, places))


for method in (added, rotated):
    print(f"{method.__name__:7} changes by {np.abs(method(7) - method(0)).max():.2f}")

# %% [markdown] id="added-answer" tags=["answer"]
# Only the turned ones keep their scores. Added places meet each other through $M$, and meet contents in two more terms. A model may learn
# to use the distance, but nothing makes it.

# %% [markdown] id="added-complex"
# A turn is easiest to write with complex numbers. Read a pair of features as one, $\hat{q}_m$ for the query and $\hat{k}_m$ for the key,
# whose conjugate is $\bar{k}_m$. A turn is a factor $e^{i \omega_m t}$, and the key's conjugate brings $e^{-i \omega_m u}$. So for any
# shift $c$ of both places
#
# $$\bigl( R_{t + c}\, q \bigr) \cdot \bigl( R_{u + c}\, k \bigr) =
#  \mathrm{Re} \sum_{m} \hat{q}_m\, \bar{k}_m\, e^{i \omega_m (t - u)}, \qquad \|R_t\, q\| = \|q\| \label{rope-as-complex-rotation}$$

# %% [markdown] id="real"
# SmolLM2, the model of lesson {lesson}`start`, has RoPE in all its 30 layers. On four texts we added 1,000 to the number of every token's
# place. **Predict** how far the model's logits, its scores of possible next tokens, move. (The largest are about 40.)

# %% id="real-code" tags=["predicted"]
from attn_course.lessons.positions.experiments_smollm2 import SMOLLM2

smollm = SMOLLM2.load()
moved = smollm.values("shifted by 1,000", "largest change of a logit").max()
print(f"1,000 places on: no logit moves by more than {moved:.4f}")

# %% [markdown] id="real-answer" tags=["answer"]
# Only the last digits move, by rounding, because all differences of places stay.

# %% [markdown] id="real-half"
# Head 0 of its layer 16 (counted from 0) gives most of its weight to the token one back. What if all clocks of the model run at half
# speed, for which it was never trained?

# %% id="real-half-code"
head = "layer 16, head 0: weights 0 to 4 back"
speeds = ("trained", "half speed")
figures.looks_back({speed: smollm.values(head, speed).mean(axis=0) for speed in speeds})

# %% [markdown] id="real-half-notice"
# It looks two back, and further, as a head would that looks for an angle, which now takes two steps. (But the layers below it were slowed as
# well.)

# %% [markdown] id="it"
# ## Deeper: does the row of "it" say whom it means?
#
# Nobody told our networks where to look. In a variant, *words as values*, the last layer averages the words as they came in, and its output
# alone names the animal. The easiest way to name an animal is then to give it the weight. In the network of the first cell the name may
# travel through other words. Here is where "it" looks in the last layer of each:

# %% id="it-figure"
rows = {}
for kind in ("words as values", "with places"):
    for ending, adjective in enumerate(("angry", "slow")):
        for seed, run in zip(record.seeds, record.results, strict=True):
            row = run[kind]["example"]["rows"][ending]
            rows[f"{kind}, {adjective}, seed {seed}"] = row
figures.rows_of_it(rows)

# %% [markdown] id="it-answer"
# In *words as values* nearly all of the weight falls on the animal that is meant. The network of the first cell often looks elsewhere.

# %% [markdown] id="it-hidden"
# Is the weight needed? Here is which share of the answers is right if "it" may not look at this animal in the last layer. The last line
# looks one layer down in seed 1 of this network: what had the word fetched that "it" looks at?

# %% id="it-numbers"
for kind in ("words as values", "with places"):
    print(f"{kind:15} hidden, right: {record.values(kind, 'hidden').round(2)}")
told = record.results[1]["with places"]["example"]
text, place = told["words"][0], told["looked at"][0]
below = told["first rows of these"][0]
print(f'"it" looks at "{text[place]}", which gave "{text[1]}" {below[1]:.2f}')

# %% [markdown] id="it-why"
# In *words as values* hardly an answer is right. The network of the first cell manages better, and with seed 1 as well as before: "it"
# looks at "was", and "was" has fetched the fox. So in a second layer a weight names a row, and no longer a word.

# %% [markdown] id="real-it"
# Lesson {lesson}`start` showed the head of SmolLM2 in which "it" gives "cat" 0.94. Does the model need this head? It completes a sentence
# as it is, with the head silenced, and with "cat" having, in layers 22 to 24, the *values* that "dog" would have in its place:

# %% id="real-it-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-it-code"
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

# %% [markdown] id="real-it-notice"
# It does not: without the head it says "cat" a little more surely. The stored results are of ten sentences, those of twelve in which the
# noun got at least a tenth. Which part of its probability does the noun keep, at least and at most?

# %% id="real-it-stored"
from attn_course.lessons.self_attention import experiments_smollm2_answers

stored = experiments_smollm2_answers.SMOLLM2.load()
exchanged = "values exchanged in layers"
ways = {"silenced": ("layer 13, head 8 silenced",), "22 to 24": (exchanged, "22 to 24")}
ways |= {layers: (exchanged, layers) for layers in ("19 to 21", "25 to 27")}
for name, way in ways.items():
    kept = stored.values(*way)[:, 0] / stored.values("as it is")[:, 0]
    print(f"{name:9} {kept.min():.2f} to {kept.max():.2f}")

# %% [markdown] id="real-it-stored-notice"
# Of these, only the exchange in layers 22 to 24 takes much. (Each sentence has one animal, so these answers do not test whether the model
# knows whom "it" means.)

# %% [markdown] id="other"
# Even within one layer the output does not tell the weights. It and the row sums are $d_v + 1$ conditions on $T$ weights, so with more
# tokens there are changes $N$ that the output does not show. (If no weight is 0, a small $N$ leaves weights.)
#
# $$N\, [\,V \;\; \mathbf{1}\,] = 0: \qquad (P + N)\, [\,V \;\; \mathbf{1}\,] = P\, [\,V \;\; \mathbf{1}\,]
# \label{other-weights-same-output}$$
#
# Take the weights $(.1, .1, .6, .2)$ on the values $1, 0, .5, .5$. The weights $(.5, .5, 0, 0)$ give the same output, one half, and the
# largest weight is gone. A map is a hypothesis, to be tested by hiding and exchanging.

# %% [markdown] id="views-self-score"
# Does a plain layer, without the three matrices, find mostly itself? With $v$ features, and over all tokens, $i$ itself among them,
#
# $$z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{v}}}\, x_j
# \label{self-attention-without-projections}$$
#
# Let the entries of $X$ be independent, with mean 0 and variance 1. Then the scores of two different tokens spread by 1 around 0 (lesson
# {lesson}`scaling`). But a token is not independent of itself, and its score with itself is $\|x_i\|^2 / \sqrt{v}$:
#
# $$\mathbb{E}[s_{ii}] = \sqrt{v}, \qquad \mathbb{E}[s_{ij}] = 0 \quad (i \ne j), \qquad \mathrm{Var}[s_{ij}] = 1 \quad (i \ne j)
# \label{heavy-diagonal-of-scores}$$
#
# With the matrices the two directions part. Transpose the table of all scores {eq}`bilinear-score`, and subtract:
#
# $$S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top \label{asymmetry-of-scores}$$

# %% [markdown] id="two-balance"
# But weights differ in the two directions even where scores do not, because each row is divided by its own sum, here called $Z_i$ (it is
# not a row of the output). As $p_{ij}\, Z_i = e^{s_{ij}}$, for $s_{ij} = s_{ji}$
#
# $$p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}} \label{detailed-balance-of-weights}$$
#
# If a first token has the score $\ln 3$ with itself, and the three other scores of two tokens are 0, it gives the second $\frac14$ and gets
# $\frac12$ from it.

# %% [markdown] id="features"
# And is a large weight a strong association? Take a table, say of genes, and let its *columns* be the tokens, each with mean 0 and mean
# square 1 over $m$ individuals. Then $x_a \cdot x_b / \sqrt{m}$ is $\sqrt{m}$ times their correlation $r_{ab}$, and plain attention has the
# weights
#
# $$p_{ab} = \frac{e^{\sqrt{m}\, r_{ab}}}{\sum_{c} e^{\sqrt{m}\, r_{ac}}} > 0 \label{feature-weights-from-correlations}$$
#
# Two exactly opposite columns tell all about each other, and get the smallest weight. A trained layer can do better. We planted pairs of
# columns in tables of counts 0, 1 and 2: *alike*, *opposite*, and *hidden*, where $b = 1$ if $a = 1$, else 0 or 2 by a coin. Which methods
# find the partners of the four columns of each kind, in three tables?

# %% id="features-code"
from attn_course.lessons.self_attention.experiments_pairs import KINDS, PAIRS

planted = PAIRS.load()
ways = ("correlation", "plain attention", "trained attention", "mutual information")
for method in ways:
    found = {kind: planted.values("found", method, kind).tolist() for kind in KINDS}
    print(f"{method:18}", found)

# %% [markdown] id="features-notice"
# The trained layer finds all pairs, and correlation misses the hidden ones. But mutual information, counted from the table without any
# training, finds them all as well. And in the first table the two columns of one *alike* pair give each other .25 and .75, though they have
# a single correlation, so a weight's size does not measure an association.

# %% [markdown] id="layer"
# ## Deeper: what does a layer cost, forward and back?
#
# Attention *replaces* a token by an average of values. What makes it an update is the sum, here for $L$ layers with $d_v =
# d_{\text{model}}$:
#
# $$X_L = X_0 + \sum_{l=1}^{L} Z_l(X_{l-1}), \qquad X_l = X_{l-1} + Z_l(X_{l-1}) \label{residual-stream}$$
#
# Backwards, for readers of lesson {lesson}`gradients`: $Q = X W_Q$ is a product like $Z = P V$ there, so $dW_Q$ follows as $dV$ did ($dW_K$
# and $dW_V$ likewise). $X$ feeds all three projections, so three gradients come back to it, and they add:
#
# $$dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top \label{gradients-through-projections}$$
#
# A token learns as one that asks, as one that is found, and as one that passes on.

# %% [markdown] id="cost"
# Compare with a plain RNN, all widths being $d$, and a multiplication with its addition counting 2:
#
# $$\text{FLOPs}_{\text{attention}} = 6\,T d^2 + 4\,T^2 d, \qquad \text{FLOPs}_{\text{RNN}} = 4\,T d^2 \label{attention-and-rnn-flops}$$
#
# Attention always does more work, and from $T = \frac32 d$ on half of it or more is quadratic. What it saves is waiting. These
# numbers of products must wait for one another:
#
# $$\text{depth}_{\text{attention}} = 3, \qquad \text{depth}_{\text{RNN}} = T \label{attention-and-rnn-depth}$$
#
# And these are the numbers that travel, if each operation reads its inputs and writes its result, and the RNN reads both matrices anew at
# each step:
#
# $$\begin{gathered}
# \text{moved}_{\text{attention}} = 3 d^2 + 10\, T d + 4\, T^2, \\
# \text{moved}_{\text{RNN}} = 2\,T d^2 + 7\, T d \end{gathered} \label{attention-and-rnn-traffic}$$

# %% [markdown] id="cost-predict"
# Who wins in what, for $T = 1024$ and $d = 256$?

# %% id="cost-code"
from attn_course import costs

T, d = 1024, 256
projected = 3 * costs.projection_flops(T, d, d)
flops = projected + costs.attention_flops(T * T, d, d), costs.recurrent_flops(T, d, d)
moved = 3 * d**2 + 10 * T * d + 4 * T**2, 2 * T * d**2 + 7 * T * d
print(f"work:    the RNN does {flops[0] / flops[1]:.1f} times less")
print(f"traffic: attention moves {moved[1] / moved[0]:.0f} times less")
print(f"depth:   attention waits {T / 3:.0f} times less")

# %% [markdown] id="cost-answer"
# The RNN wins in work. Attention wins in traffic, because it reads its matrices once and not at each step, and in depth, because no
# position waits for the one before. The next cell measures the times on your machine. (A part of what it shows is the price of a loop in
# Python.)

# %% id="cost-live" tags=["live"]
import time

tokens, w_input, w_hidden = (rng.normal(size=(n, d)) / 16 for n in (T, d, d))
start = time.perf_counter()
attention(tokens @ w_input, tokens @ w_hidden, tokens @ w_input)
middle = time.perf_counter()
state, inputs = np.zeros(d), tokens @ w_input
for t in range(T):
    state = np.tanh(inputs[t] + state @ w_hidden)
end = time.perf_counter()
print(f"attention {1e3 * (middle - start):.0f} ms, RNN {1e3 * (end - middle):.0f} ms")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): self-attention, sinusoids, and a table of costs.
# - J. Su et al. (2021), [arXiv:2104.09864](https://arxiv.org/abs/2104.09864): RoPE.
# - S. Jain and B. C. Wallace (2019), [arXiv:1902.10186](https://arxiv.org/abs/1902.10186), and S. Wiegreffe and Y. Pinter (2019),
#   [arXiv:1908.04626](https://arxiv.org/abs/1908.04626): is attention explanation?
# - K. Rijal et al. (2025), [arXiv:2504.10388](https://arxiv.org/abs/2504.10388): attention from genotype to phenotype.
