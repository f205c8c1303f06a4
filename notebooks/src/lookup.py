# %% [markdown] id="title"
# # {lesson}`lookup` Attention as lookup: ask, compare, average
#
# A dictionary answers a question by finding the one key that equals it. Attention answers by comparing the question
# with *all* keys and averaging what belongs to them. That is the whole idea; this lesson builds it from a dictionary,
# by hand, without a single trained weight.
#
# **Afterwards you can** say what queries, keys and values are for, write attention over a set of pairs, name its two
# limits, recognise kernel regression in it, and tell mixing positions from mixing features.
#
# **You need** matrix products, derivatives and some NumPy.
# **Time:** 60 minutes, without the [exercises](../work/ex_{lesson}`lookup`_lookup.ipynb).

# %% id="setup"
import numpy as np

from attn_course import alive, show, verify_lesson
from attn_course.lessons.lookup import figures
from attn_course.lessons.lookup.experiments import RECALL
from attn_course.reference import attention

np.set_printoptions(precision=3, suppress=True)

# %% [markdown] id="where"
# Here is the machine that this course takes apart, one piece in each lesson. We begin with the parts that are lit: a query asks, keys
# answer, and values are averaged. Where the three come from, and how the weights are made, are questions for later lessons.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ## Why attention: recall at a distance
#
# A recurrent network reads a sequence from left to right and keeps one state: $h_t = \tanh(w\,h_{t-1} + u\,x_t)$, here
# with a single unit, $u = 1$ and $h_0 = 0$. Everything it knows of the past has passed through that state. If somebody
# had changed $h_0$ a little, by how much would $h_T$ differ? **Predict** what is left after 50 steps for $w = 0.9$, and
# whether $w = 1.1$ amplifies.

# %% id="hook-code" tags=["predicted"]
rng = np.random.default_rng(1)
inputs = rng.normal(size=50)
for w in (0.5, 0.9, 1.1):
    state, slope, slopes = 0.0, 1.0, []
    for x_t in inputs:
        state = np.tanh(w * state + x_t)
        slope *= w * (1 - state**2)
        slopes.append(slope)
    shown = (f"{slopes[t]:.0e}" for t in (0, 9, 49))
    print(f"w = {w}: after 1, 10 and 50 steps", *shown)

# %% [markdown] id="hook-answer" tags=["answer"]
# Practically nothing is left: for $w = 0.9$ the slope after 50 steps is about $4 \cdot 10^{-20}$. A factor of 1.1 does not
# amplify it either, because each step multiplies the slope by one more number, and that number is mostly below 1: whenever
# the inputs push the unit towards $\pm 1$, its $\tanh$ is nearly flat.

# %% [markdown] id="product"
# The chain rule shows what happens to the slope. Each step contributes the derivative of a $\tanh$, which is
# $1 - h_t^2$, times $w$:
#
# $$\frac{\partial h_T}{\partial h_0} = \prod_{t=1}^{T} w\,(1 - h_t^2) \label{recurrent-gradient-product}$$
#
# A factor $1 - h_t^2$ is at most 1. Hence
#
# $$\Bigl| \frac{\partial h_T}{\partial h_0} \Bigr| \le |w|^T \label{recurrent-gradient-bound}$$
#
# For $|w| < 1$ the past fades geometrically. A larger $w$ lifts the bound, but inputs that push the unit towards
# $\pm 1$ shrink the other factor. Training sees the past through the same product: what has no slope is
# hardly learnt (Bengio et al., 1994).

# %% [markdown] id="paths"
# Each factor of this product is one step from state to state. The drawing counts the steps for a sentence of seven words: what
# "tired" needs from "cat" passes through five updates in a recurrent network. With attention it takes one step, and it would
# take one if the sentence were a hundred times as long. (Let it play, and follow the two dots.) The rest of the lesson builds that step.

# %% id="paths-figure"
from attn_course.sentence import TOKENS

figures.paths(TOKENS, source=1)

# %% [markdown] id="recall"
# Do larger networks suffer as well? **The experiment.** Two items are named, each with a colour; then comes a stretch of
# random distractions; then one of the names, as a question. The answer is its colour. A recurrent network as above (RNN)
# and an LSTM, with 64 units each (the LSTM has gates, invented against {eq}`recurrent-gradient-bound`), and one layer of attention, which
# compares the question with every position, train on the same task until 95 % of their answers are right, or for 1000
# batches. The recurrent ones start favourably: orthogonal matrices, gates open for a memory of 32 steps; each model has
# the better one of two step sizes.

# %% [markdown] id="recall-predict"
# **Predict** which of the three learn the task with 2, 8 and 32 distractions, and how the gradient at the item asked for
# shrinks with the distance, before any training.

# %% id="recall-figure" tags=["predicted"]
record = RECALL.load()
models = list(record.results[0]["steps"])
steps = {name: np.median(record.values("steps", name), axis=0) for name in models}
norms = {name: record.values("gradient", name).mean(axis=0) for name in models}
stretches, distances = record.values("stretches")[0], record.values("distances")[0]
figures.recall_at_distance(stretches, steps, distances, norms, most_steps=1000)

# %% [markdown] id="recall-why" tags=["answer"]
# The gradient of the RNN shrinks most: it is more than a million times smaller at 128 distractions than at 2, as one
# expects of a product with a factor for each step. In attention the question reaches each position in one step, and the gradient
# falls only as more positions share the weight. In the LSTM, with its gates started open, it even grows.

# %% id="recall-code" tags=["predicted"]
for name in models:
    needed = record.values("steps", name)[:, -1]
    right = record.values("accuracy", name)[:, -1]
    print(f"{name:9}: steps at 32 distractions {needed}, right then {right}")

# %% [markdown] id="recall-notice" tags=["answer"]
# Attention learns the task every time, in 50 to 100 batches whatever the distance. With 2 and 8 distractions both recurrent
# networks learn it too, so it is not beyond them. With 32 the RNN does no better than naming one of the two colours without
# knowing whose it is (right for 5 of 8: half the time it is the one asked for, and of the others 1 in 4 has the same colour),
# and the LSTM needs 400 to 950 batches: gates do help.

# %% [markdown] id="motive"
# Attention was proposed for a related reason. Early translation networks squeezed the whole source sentence into one
# vector of fixed length; Bahdanau, Cho and Bengio (2014) conjectured that this vector is a bottleneck, and let every output word
# search the source for what it needs. Lesson {lesson}`cross_attention` measures that. What "search" means is the subject of this lesson.

# %% [markdown] id="dictionary"
# ## A dictionary that answers softly
#
# Four temperatures were noted: at 6, 9, 12 and 18 o'clock. A dictionary $D$ holds pairs of a key $k_i$ and a value
# $v_i$, and a lookup with the query $q$ can be written as a sum over *all* pairs, where $[\ldots]$ is 1 if the
# statement is true and 0 if not:
#
# $$D(q) = \sum_{i=1}^{m} [\,k_i = q\,]\; v_i \label{exact-lookup}$$
#
# **Assume** that the keys are distinct. For a $q$ that is none of them the sum is 0. What was it like at 10 o'clock?

# %% id="dictionary-code"
keys, values = np.array([6.0, 9.0, 12.0, 18.0]), np.array([8.0, 12.0, 18.0, 14.0])
noted = dict(zip(keys, values, strict=True))
print("at 9:", noted[9.0], "=", ((keys == 9.0) * values).sum())
print("at 10:", noted.get(10.0, "nobody knows"))

# %% [markdown] id="soften"
# Only the bracket is hard. Replace it by a **similarity** $s(q, k) \ge 0$: large if the key fits the query, small if not.
# The answer is to be an average, so the weights must sum to 1; and a pair that is twice as similar should count twice as
# much. Twice for twice means $\alpha_i = c\, s_i$ with one $c$ for all pairs, and the sum of 1 leaves one choice for $c$:
#
# $$\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)} \label{normalised-similarities}$$
#
# **Assume** similarities that are never negative, with a positive sum. A term of such a sum is at most the sum, so
#
# $$0 \le \alpha_i \le 1, \qquad \sum_{i=1}^{m} \alpha_i = 1 \label{weights-on-the-simplex}$$

# %% [markdown] id="attention"
# Put these weights in place of the brackets, and you have attention:
#
# $$\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2
# \label{soft-lookup}$$
#
# The right side says what the average is good for: of all answers $o$ it is nearest to the values, where similar pairs
# have more say. (Set the derivative by $o$ to zero: $\sum_i s_i (v_i - o) = 0$.)
#
# Two steps, then, and every later lesson fills them in anew: *similarity* gives weights, *aggregation* averages the
# values. Let a similarity fall off with the distance of the hours, $s = e^{-(q - k)^2 / 2 h^2}$, with the
# width $h = 2$ (from here on $h$ is a width, no longer a state).
# **Predict** roughly the temperature at 10 o'clock.


# %% id="attention-code" tags=["predicted"]
def closeness(query, key, h):
    return np.exp(-((query - key) ** 2) / (2 * h**2))


similarity = closeness(10.0, keys, h=2.0)
weights = similarity / similarity.sum()
answer = (weights @ values).round(1)
print("similarities", similarity, "  weights", weights, "  answer", answer)

# %% [markdown] id="attention-notice" tags=["answer"]
# It was about 13.9 degrees, because the answer is mostly the value of 9 o'clock, with a good part of that of 12 o'clock and
# a little of the rest. All four pairs take part.
# The weight of 18 o'clock prints as 0.000 and is not zero: an exponential never is, in exact arithmetic. So a sentence like
# "only a few weights are positive" is not true here; only a few are *large*.

# %% [markdown] id="spot-sum"
# ### Spot the mistake: one letter, and a sign
#
# "The weights are $\alpha(q, k_i) \,/\, \sum_{i=1}^m \alpha(q, k_j)$ with $\alpha \in \mathbb{R}$", says a text. It reads
# smoothly. But the sum runs over $i$, and the letter $i$ is already taken; what it adds up does not contain it. And
# $\mathbb{R}$ has negative numbers. **Predict** what is left of the weights if the sum is taken at its word, and what the
# two lines after that print.

# %% id="spot-sum-code" tags=["predicted"]
show("normalised-similarities", wrong="the same letter on both sides, worked out")
signed = np.array([2.0, -1.0])
answer = signed / signed.sum() @ np.array([12.0, 18.0])
print("signs:", signed / signed.sum(), "  answer for the values 12 and 18:", answer)
print("similarities 1 and -1 have the sum", np.array([1.0, -1.0]).sum())

# %% [markdown] id="spot-sum-notice" tags=["answer"]
# Every weight becomes $1/m$, here $1/2$, because the sum then adds the same similarity $m$ times. This holds whatever the
# similarity $s$ is (the check draws a positive one), so the query is ignored. With signs, the weights leave $[0, 1]$ and the
# answer, 6 degrees, lies outside of everything measured; $1$ and $-1$ cannot be normalised at all, since their sum is 0.

# %% [markdown] id="spot-sum-check"
# Any code that computes weights can be checked in three ways: its weights lie in $[0, 1]$, each row sums to 1, and the
# answer changes with the query.

# %% [markdown] id="roles"
# ## Who asks, who answers, what is passed on
#
# So far query and key were both hours. In general the three have different jobs: the **query** says what is wanted, the
# **key** says what a position has to offer, the **value** is what it passes on. Four people show it. Each wears a badge
# with a name, has a colour, and wants to know the colour of one of the others. Ann asks for Cleo, Bob and Cleo ask
# for Ann, Dan asks for Bob.
#
# A token is a row $x$ of three one-hot parts: (name, colour, name asked for). Three matrices pick the parts out: $W_Q$
# the last, $W_K$ the first, $W_V$ the middle one.

# %% id="roles-code"
people = ["Ann", "Bob", "Cleo", "Dan"]
colour = np.array([0, 1, 2, 0])  # of red, green, blue
asked = np.array([2, 0, 0, 1])
tokens = np.hstack([np.eye(4), np.eye(3)[colour], np.eye(4)[asked]])
w_query = np.vstack([np.zeros((7, 4)), np.eye(4)])
w_key = np.vstack([np.eye(4), np.zeros((7, 4))])
w_value = np.vstack([np.zeros((4, 3)), np.eye(3), np.zeros((4, 3))])
print("Ann:", tokens[0].astype(int), "  tokens", tokens.shape)

# %% [markdown] id="match"
# A dot product of two one-hot vectors is 1 if they are equal and 0 if not, so it compares two names: $a_i$, the one that
# token $i$ asks for, and $n_j$, the one on the badge of token $j$.
#
# $$(x_i W_Q) \cdot (x_j W_K) = [\,a_i = n_j\,] \label{query-matches-key-name}$$
#
# This may serve as a score, but not yet as a similarity: scores of real vectors can be negative. The exponential of a score
# never is. So take $s = e^{\beta\, q \cdot k}$, with a number $\beta > 0$ that says how much a match shall count, and
# divide by the sum. (Together this is called *softmax*; lesson {lesson}`softmax` derives why the exponential.) If one of the $m$ names
# matches, that of token $r_i$, its pair
# has the similarity $e^\beta$ and all others $e^0 = 1$:
#
# $$z_i = \frac{e^{\beta}\, v_{r_i} + \sum_{j \ne r_i} v_j}{e^{\beta} + m - 1} \label{lookup-by-name}$$
#
# **Predict** the weight of the match for $\beta = 3$ ($e^3 \approx 20$).

# %% id="match-code" tags=["predicted"]
query, key, value = tokens @ w_query, tokens @ w_key, tokens @ w_value
similarity = np.exp(3.0 * query @ key.T)
weights = similarity / similarity.sum(axis=1, keepdims=True)
print("weights of Ann:", weights[0], "  red, green, blue:", weights[0] @ value)
assert np.allclose(weights @ value, attention(query, key, value, scale=3.0))

# %% [markdown] id="match-answer" tags=["answer"]
# The match has the weight 0.87, because its similarity is about 20 and the three other pairs have 1 each: 20 of 23 parts
# go to Cleo's blue.

# %% [markdown] id="swap"
# The package's `attention` computes the same, as the last line of the cell asserts; its `scale` is our $\beta$.
#
# Now exchange the roles: let the badge ask and the question answer, `tokens @ w_key` as queries and `tokens @ w_query`
# as keys. All shapes fit. **Predict** whose colour Ann gets then, and what happens to Dan, for whom nobody asked.

# %% id="swap-figure" tags=["predicted"]
swapped = np.exp(3.0 * key @ query.T)
swapped /= swapped.sum(axis=1, keepdims=True)
figures.exchanged_roles(people, weights, swapped)

# %% id="swap-code" tags=["predicted"]
names = ["red", "green", "blue"]
print("right:  ", [names[answer] for answer in (weights @ value).argmax(axis=1)])
print("swapped:", (swapped @ value)[0], "for Ann,", (swapped @ value)[3], "for Dan")

# %% [markdown] id="swap-notice" tags=["answer"]
# Ann gets about half green and half blue, the colours of Bob and Cleo, because those two wanted to know *hers*. Dan gets
# the mean of all four colours, since nobody's question matches his badge and all similarities are equal.

# %% [markdown] id="swap-roles"
# The exchange raised no error. Query and key enter a dot product alike; only their matrices, and the axis over which the
# weights are normalised, tell who asks. (Lesson {lesson}`self_attention` learns such matrices instead of writing them.)

# %% [markdown] id="set"
# ## A set of pairs, or rather a multiset
#
# Nothing in {eq}`soft-lookup` says where a pair stands. Write the keys into the rows of $K$ and the values into those of $V$; a
# permutation matrix $\Pi$ puts the rows of both into another order. Numerator and denominator are sums over all pairs, and a sum
# does not depend on the order of its terms:
#
# $$\mathrm{Attention}(q,\, \Pi K,\, \Pi V) = \mathrm{Attention}(q, K, V) \label{pair-order-invariance}$$
#
# That was the proof. So attention by itself knows no order, near or far: this made the recall of section {section}`hook` easy at any
# distance,
# and it is why lesson {lesson}`self_attention` has to *add* positions.

# %% [markdown] id="set-predict"
# But a pair that occurs twice (once more below the others, $[K;\, k_1]$) has two terms in either sum:
#
# $$\mathrm{Attention}\bigl(q,\, [K;\, k_1],\, [V;\, v_1]\bigr)
#  = \frac{2\,s_1 v_1 + \sum_{i \ge 2} s_i v_i}{2\,s_1 + \sum_{i \ge 2} s_i} \label{duplicated-pair-counts-twice}$$
#
# A set would not notice the second copy, so $D$ is a *multiset*; adding to one is written $\uplus$.
#
# **Predict** three things: the answer at 10 o'clock if the pairs are reversed; if only the keys are; and the new
# weight of the 9 o'clock pair, 0.543 now, when it is noted twice. (Is it doubled?)


# %% id="set-code" tags=["predicted"]
def lookup(query, key, value, h=2.0):
    similarity = closeness(query, key, h)
    return similarity @ value / similarity.sum()


print("as noted:     ", lookup(10.0, keys, values).round(2))
print("pairs reversed:", lookup(10.0, keys[::-1], values[::-1]).round(2))
print("keys only:     ", lookup(10.0, keys[::-1], values).round(2))
twice = np.append(keys, 9.0)
share = closeness(10.0, twice, 2.0) / closeness(10.0, twice, 2.0).sum()
print("9 o'clock twice:", lookup(10.0, twice, np.append(values, 12.0)).round(2))
print("its joint weight:", (share[1] + share[4]).round(3))

# %% [markdown] id="set-notice" tags=["answer"]
# Reversed pairs change nothing, because the sums only get their terms in another order; reversed keys change the answer,
# because they meet the wrong values. The weight of the doubled pair is not doubled. Its *similarity* is, but then the sum
# grows as well: the weight goes from $\alpha$ to $2\alpha / (1 + \alpha)$, here from 0.543 to 0.704.

# %% [markdown] id="dial"
# ## Exact lookup and plain average: two ends of one dial
#
# The width is a dial. **Assume** the similarity $s = e^{-|q - k|^2 / 2 h^2}$ and one key that is nearest. Two weights
# have the ratio $e^{(d_j^2 - d_i^2) / 2h^2}$, where $d$ is the distance from the query. For a small $h$ the exponent is
# huge and the nearest key takes all; for a large one it is about 0 and all keys are equal:
#
# $$\lim_{h \to 0^+} \alpha_i = \bigl[\, \|q - k_i\| = \min_j \|q - k_j\| \,\bigr], \qquad \lim_{h \to \infty} \alpha_i = \frac{1}{m}
# \label{bandwidth-limits}$$
#
# At one end stands the dictionary, {eq}`exact-lookup`, which now also answers between its keys; at the other the plain average.
# The divisor $2h^2$ of the exponent is called a **temperature** (no degrees). **Predict** from which $h$ on, at
# 10 o'clock, no pair has more than half of the weight.

# %% id="dial-figure" tags=["predicted"]
widths = np.geomspace(0.2, 50.0, 61)
similarity = np.array([closeness(10.0, keys, h) for h in widths])
shares = similarity / similarity.sum(axis=1, keepdims=True)
figures.dial(keys, 10.0, widths, shares)

# %% [markdown] id="dial-answer" tags=["answer"]
# From about $h = 2.3$ on no pair has more than half of the weight. At $h = 2$ the 9 o'clock pair still had 0.543, and a
# wider hill takes from the lead of the nearest key.

# %% [markdown] id="spot-value"
# ### Spot the mistake: the value that belongs to the query
#
# A common sentence says: "attention maps a query to the corresponding value". Let us ask at a key, $q = 9$, where 12
# degrees were measured. **Predict** whether the answer is 12 for $h = 2$.

# %% id="spot-value-code" tags=["predicted"]
for h in (0.5, 2.0, 8.0):
    print(f"h = {h}: at 9 o'clock {lookup(9.0, keys, values, h):.2f} degrees")

# %% [markdown] id="spot-value-notice" tags=["answer"]
# The answer is not 12 but a little more, because the neighbours have weight too. Attention returns a *mixture*, and a
# single value only in the limit $h \to 0$. That is no defect, as the next section shows: a method that reproduces every
# value also reproduces its noise.

# %% [markdown] id="explorable-before"
# Which width $h$ makes the answer forget what you asked? Move query and width yourself: put the query on key 9 and widen;
# then note the pair twice. At last make the width *narrow* again and go to 24 o'clock: what does a query get that no key
# resembles?

# %% id="explorable"
figures.lookup_explorable()

# %% [markdown] id="explorable-notice"
# The nearest key, 18 o'clock, takes all the weight, though even its similarity is "below 0.001": only ratios count, and
# division by the sum removes the size. "Nothing fits" is an answer that attention does not have.

# %% [markdown] id="regression"
# ## An old friend: kernel regression
#
# Statistics knew {eq}`soft-lookup` long before. Given points $(x^{(i)}, y^{(i)})$, what is the mean of $y$ at a given $x$? **Assume** we estimate
# the density of the points by setting a small Gaussian hill $K_h$ on each, $\hat p(x, y) = \frac1m \sum_i K_h(x - x^{(i)})\, K_h(y - y^{(i)})$.
# A conditional mean is $\int y\,\hat p\,dy / \int \hat p\,dy$. The hill over $y^{(i)}$ has mass 1 and mean $y^{(i)}$, so the
# integrals leave (the constant factor of $K_h$ cancels)
#
# $$\frac{\int y\, \hat p(x, y)\,dy}{\int \hat p(x, y)\,dy}
#  = \sum_{i=1}^{m} \frac{K_h(x - x^{(i)})}{\sum_{j=1}^{m} K_h(x - x^{(j)})}\, y^{(i)} \label{nadaraya-watson-regression}$$
#
# This is the estimator of Nadaraya (1964) and Watson (1964), and attention with $x$ as query, $x^{(i)}$ as keys and $y^{(i)}$ as
# values. Any positive similarity may stand for the hill.

# %% [markdown] id="nile"
# A real curve: the yearly flow of the Nile at Aswan from 1871 to 1970, in $10^8$ cubic metres (Cobb, 1978; the data set
# `Nile` of R).

# %% id="nile-data"
years = np.arange(1871.0, 1971.0)
flow = np.fromstring(
    """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180
    799 958 1140 1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833
    701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768
    845 864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010
    771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918
    986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740""",
    sep=" ",
)

# %% [markdown] id="nile-predict"
# We leave out one year after the other and estimate its flow from all the others. **Predict** which of the widths 0.3, 2
# and 50 years gives the best estimates.

# %% id="nile-figure" tags=["predicted"]
grid = np.linspace(1871.0, 1970.0, 397)
fits = {}
for h in (0.3, 2.0, 50.0):
    similarity = closeness(grid[:, None], years, h)
    fits[f"h = {h:g} years"] = similarity @ flow / similarity.sum(axis=1)
figures.nile_fits(years, flow, grid, fits)

# %% id="nile-code" tags=["predicted"]
for h in (0.3, 2.0, 50.0):
    others = closeness(years[:, None], years, h) * (1 - np.eye(100))
    errors = others @ flow / others.sum(axis=1) - flow
    miss = np.sqrt((errors**2).mean())
    print(f"h = {h:4}: a year left out is missed by {miss:.0f} (root mean square)")

# %% [markdown] id="nile-notice" tags=["answer"]
# The middle width gives the best estimates. The narrowest copies each year, noise included, and estimates a missing one
# from its neighbours only; the widest is nearly one average of all years. With $h = 2$ you see the fall around 1899
# (smeared over some years, because an average cannot jump) and the dry year 1913.

# %% [markdown] id="affine"
# Would the curve change if we measured in other units? Weights that sum to 1 let any affine map of the values through:
#
# $$\sum_{i=1}^{m} \alpha_i\,(v_i A + b) = \Bigl( \sum_{i=1}^{m} \alpha_i v_i \Bigr) A + b \label{affine-maps-pass-through}$$
#
# The factor $A$ passes because a sum is linear, $b$ because $\sum_i \alpha_i b = b$. **Predict** whether squares pass too.

# %% id="affine-code" tags=["predicted"]
weights = closeness(10.0, keys, 2.0) / closeness(10.0, keys, 2.0).sum()
average = weights @ values
for name, f in (("Fahrenheit", lambda t: 1.8 * t + 32), ("square", np.square)):
    averaged = weights @ f(values)
    print(f"{name} of the average {f(average):.2f}, average of {name} {averaged:.2f}")

# %% [markdown] id="affine-answer" tags=["answer"]
# Squares do not pass, because a square is no affine map. The average of the squares is larger than the square of the
# average; the difference is the variance of the values under the weights.

# %% [markdown] id="queries"
# ## Many queries: Z = P V
#
# Several queries are several separate lookups in the same pairs. Collect the weights of query $i$ in row $i$ of a matrix
# $P$ and the $T_{in}$ values in the rows of $V$; $\mathbf{1}$ is a column of ones, so that $P\,\mathbf{1}$ holds the row
# sums:
#
# $$z_i = \sum_{j=1}^{T_{in}} p_{ij}\, v_j \;\Longleftrightarrow\; Z = P\,V, \qquad P\,\mathbf{1} = \mathbf{1}
# \label{weights-times-values}$$
#
# The formula below is alive. You can change its values, and the scores $s$ of which the weights are made; you can point at a number to
# see what it is made of; and you can press a mistake to see which numbers it changes.

# %% id="queries-alive"
alive("weights-times-values")

# %% [markdown] id="queries-rows"
# $P$ has a row for each query and a column for each pair, so the output is as long as the list of the $T_{out}$
# **queries**. Entries lie in $[0, 1]$, and each *row* sums to 1 (such a matrix is called row-stochastic); columns need
# not. So $p_{ij}$ is the weight of input $j$ in output $i$, and what is averaged is the **values**, not the inputs and
# not the keys. Here are 3 queries and 5 pairs with values of 2 numbers:

# %% id="queries-code"
corners = np.array([[0.0, 0.0], [4.0, 0.0], [5.0, 3.0], [2.0, 5.0], [-1.0, 3.0]])
queries, corner_keys = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
similarity = np.exp(queries @ corner_keys.T)
p = similarity / similarity.sum(axis=1, keepdims=True)
z = p @ corners
print("P", p.shape, " Z", z.shape)
print("rows sum to", p.sum(axis=1), " columns to", p.sum(axis=0))

# %% [markdown] id="hull"
# Where can an output lie? Take any direction $a$. Along it, $a \cdot z$ is an average of the numbers $a \cdot v_j$ with weights in
# $[0, 1]$, so it lies between the extremes:
#
# $$\min_j\, a \cdot v_j \;\le\; a \cdot z \;\le\; \max_j\, a \cdot v_j \label{output-in-convex-hull}$$
#
# No direction leads out: the output stays in the **convex hull** of the values, inside the rubber band around them. The
# cross below is made with weights that sum to 1, too, but two of them are negative. **Predict** where it may land.

# %% id="hull-figure" tags=["predicted"]
spoilt = np.array([-0.3, 0.7, 0.9, -0.4, 0.1])
figures.outputs_in_hull(corners, z, outside=spoilt @ corners)

# %% [markdown] id="hull-notice" tags=["answer"]
# It may land anywhere, and here it lands outside of the band: a negative weight pushes the sum away from its value, and
# then $a \cdot z$ is no longer held between the extremes.

# %% [markdown] id="hull-names"
# Attention, whose weights are never negative, can select and blend, but it cannot subtract or extrapolate. The layers
# around it do what needs that.
#
# A word on names. The form $\mathrm{Attention}(q, D)$ is sometimes called Bahdanau's equation. He wrote
# $c_i = \sum_j \alpha_{ij} h_j$: row $i$ of {eq}`weights-times-values`, with the annotations $h_j$ of the source as keys *and* values, and
# weights from a small network (lesson {lesson}`additive`).

# %% [markdown] id="mixing"
# ## What mixes what, and who decides
#
# A plain layer computes $\phi(X W)$ with a matrix $W$ that is **fixed** after training. (Let $\phi$ be the identity from here
# on.) Attention makes its matrix from the data, and there are two sides to multiply from, if $X$ holds $m$ positions in
# rows and $v$ features in columns:
#
# - $P(X)\,X$ with $P$ of size $m \times m$, from the left, mixes **positions**;
# - $X\,W(X)$ with $W$ of size $v \times v'$, from the right, mixes **features**, $v$ into $v'$.
#
# For weights from the left, output $i$ depends on value $j$ through one number, and feature $a$ on feature $a$ only:
#
# $$\frac{\partial z_{ia}}{\partial v_{jb}} = p_{ij}\, \delta_{ab} \label{output-derivative-by-value}$$
#
# ($\delta_{ab} = [a = b]$; **assume** that $P$ is not made from $V$.) Compare {eq}`recurrent-gradient-product`: any position is *one*
# factor away.

# %% [markdown] id="spot-side"
# ### Spot the mistake: weights on the wrong side
#
# "$Z = \phi(V\, W(Q, K))$ with $W \in \mathbb{R}^{v \times v'}$, the attention weights", a text writes, and later uses
# weights of size $m \times m$. Both products exist: $W = Q^\top K$ from the right, $P$ from the left. To see what each mixes,
# change the last value and look at the **first** output. **Predict** which one notices.

# %% id="spot-side-code" tags=["predicted"]
q, k, v = (0.5 * rng.normal(size=(5, 3)) for _ in range(3))
disturbed = v + np.eye(5)[:, 4:]  # position 4 only
p = np.exp(q @ k.T)
p /= p.sum(axis=1, keepdims=True)
print("P V:       first output moves by", (p @ disturbed - p @ v)[0])
print("V W(Q, K): first output moves by", (disturbed @ (q.T @ k) - v @ (q.T @ k))[0])

# %% id="mixing-figure" tags=["predicted"]
p_small = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
w_small = np.array([[0.5, -0.7], [0.8, 0.3]])
left, right = np.kron(p_small, np.eye(2)), np.kron(np.eye(3), w_small.T)
figures.sides(left, right, features=2)

# %% [markdown] id="spot-side-answer" tags=["answer"]
# Only the first output of $P\,V$ notices, because it averages all values, the changed one among them. $V\,W(Q, K)$ lets no
# position see another *value*: in the right half of the figure all entries off the blocks are zero. It mixes features.

# %% [markdown] id="linear"
# A matrix on the right mixes features only. Yet a $W$ that is made from the data does reach all positions, if it has
# gathered them. Leave out exponential and normalisation
# ("linear attention"), and only the brackets move:
#
# $$\bigl( X W_Q W_K^\top X^\top \bigr)\, X W_V = X\, \bigl( W_Q W_K^\top X^\top X W_V \bigr) \label{linear-attention-two-readings}$$
#
# On the left a $P(X)$ of size $m \times m$, on the right a $W(X)$ of size $v \times v'$: the same numbers. The sum over
# positions is done inside $X^\top X$. With the exponential in between, the brackets are stuck, as the second
# mistake in the card shows: lesson {lesson}`linear`.

# %% id="linear-alive"
alive("linear-attention-two-readings")

# %% [markdown] id="flip"
# Who decides how much of each? In a fixed layer, training did. Here the input does, and one input can turn the weights
# over. With $s = e^{q \cdot k}$ a ratio of weights is $e^{q \cdot (k_i - k_j)}$, hence for the opposite query
#
# $$\frac{\alpha(-q, k_i)}{\alpha(-q, k_j)} = \frac{\alpha(q, k_j)}{\alpha(q, k_i)} \label{opposite-query-inverts-ratios}$$
#
# **Predict** the weights for $-q$ if $q$ gives .88 and .12.

# %% id="flip-code" tags=["predicted"]
two_keys = np.array([[1.0, 0.0], [0.0, 1.0]])
for q in (np.array([1.0, -1.0]), np.array([-1.0, 1.0])):
    similarity = np.exp(two_keys @ q)
    print("q =", q, "  weights", similarity / similarity.sum())

# %% [markdown] id="flip-answer" tags=["answer"]
# The weights change places, .12 and .88, because their ratio turns into its inverse. A fixed layer would have kept them.

# %% [markdown] id="cubic"
# In a layer where queries, keys and values all come from $X$, the input enters three times. Leave out all projections, the exponential and the normalisation:
#
# $$Z(c\,X) = c^3\, Z(X), \qquad Z(X) = X X^\top X \label{linear-attention-is-cubic}$$
#
# The output is linear in each role and cubic in the input, so "linear attention" is no linear map of $X$. **Predict** the
# factor for $c = 2$.

# %% id="cubic-code" tags=["predicted"]
x = rng.normal(size=(5, 3))
print("factor:", ((2 * x) @ (2 * x).T @ (2 * x) / (x @ x.T @ x))[0])

# %% [markdown] id="cubic-answer" tags=["answer"]
# The factor is 8, because each of the three places where $X$ stands contributes a factor of 2.

# %% [markdown] id="limits"
# ## Limits
#
# - **All pairs are kept and compared**: $T_{out} \cdot T_{in}$ similarities, and memory that grows with the context. A recurrent
#   state is small and stays so; that is its point.
# - **No order**, {eq}`pair-order-invariance`: positions have to be put into the keys (lesson {lesson}`self_attention`).
# - **No "nothing fits"**: weights sum to 1 however poor all matches are.
# - **No extrapolation**, {eq}`output-in-convex-hull`.
# - **A similarity has to come from somewhere.** By hand it took one-hot names. Lesson {lesson}`scaling` compares the usual ones, and
#   training
#   supplies the matrices.

# %% id="verify-lesson"
verify_lesson("lookup")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape |
# |---|---|---|
# | weights | $\alpha_i = s(q, k_i) / \sum_j s(q, k_j)$, $s \ge 0$, {eq}`normalised-similarities` | $(T_{out}, T_{in})$ |
# | attention | $\sum_i \alpha_i v_i$, {eq}`soft-lookup` | $(T_{out}, d_v)$ |
# | all queries | $Z = P V$, $P \mathbf{1} = \mathbf{1}$, {eq}`weights-times-values` | $(T_{out}, T_{in})\,(T_{in}, d_v)$ |
# | by scores | $s = e^{\beta\, q \cdot k}$, {eq}`lookup-by-name` | |
# | by distance | $s = e^{-\lvert q - k \rvert^2 / 2h^2}$: $h \to 0$ nearest, $h \to \infty$ mean, {eq}`bandwidth-limits` | |
# | order | none, {eq}`pair-order-invariance`; a copy doubles $s_i$, {eq}`duplicated-pair-counts-twice` | |
# | slope in the values | $\partial z_{ia} / \partial v_{jb} = p_{ij} \delta_{ab}$, {eq}`output-derivative-by-value` | |
# | cost | $T_{out} T_{in}$ similarities, $T_{out} T_{in} d_v$ products | |

# %% [markdown] id="summary"
# ## Summary
#
# - A query is compared with all keys; the values are averaged with the normalised similarities.
# - The query asks, the key offers, the value is passed on. Exchange them and nothing crashes.
# - The pairs form a multiset: no order, but copies count.
# - One dial leads from exact lookup to plain average; with hills for similarities it is kernel regression.
# - Rows of $P$ sum to 1, so outputs stay among the values; there is one for each query.
# - Weights from the left mix positions, in one step at any distance, and the data choose them.
#
# Now the [exercises](../work/ex_{lesson}`lookup`_lookup.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - Y. Bengio, P. Simard and P. Frasconi (1994), *Learning long-term dependencies with gradient descent is difficult*, IEEE
#   Transactions on Neural Networks 5(2).
# - D. Bahdanau, K. Cho and Y. Bengio (2014), [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): the fixed-length vector as
#   a bottleneck.
# - E. A. Nadaraya (1964) and G. S. Watson (1964): {eq}`nadaraya-watson-regression`. Y.-H. Tsai et al. (2019),
#   [arXiv:1908.11775](https://arxiv.org/abs/1908.11775): attention through the lens of kernels.
# - G. W. Cobb (1978), *The problem of the Nile*, Biometrika 65, 243-251: the data.
# - R. Jozefowicz, W. Zaremba and I. Sutskever (2015), *An empirical exploration of recurrent network architectures*: the bias of
#   the forget gate.
