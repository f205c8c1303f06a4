# %% [markdown] id="title"
# # {lesson}`linear` Attention without softmax: a memory of fixed size
#
# After a book of 100,000 tokens, a head of attention keeps 100,000 keys and as many values. Without the softmax it would need one matrix
# of 64 times 64 numbers, however long the book. **How can that be, and what does such a memory forget?**
#
# **You need** lessons {lesson}`start`, {lesson}`softmax`, {lesson}`attention` and {lesson}`masking`. **Time:** 60 minutes, without *Deeper*
# sections and the [exercises](../work/ex_{lesson}`linear`_linear.ipynb).

# %% [markdown] id="hook"
# ## One bracket
#
# We leave the softmax out of attention, and compute what remains in two ways, for 2,000 tokens:

# %% id="hook-code"
import numpy as np

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(3, 2000, 64))
scores, state = Q @ K.T, K.T @ V
print("the same outputs:", np.allclose(scores @ V, Q @ state))
print("numbers in between:", scores.size, "and", state.size)

# %% [markdown] id="hook-notice"
# Only a bracket was moved, since matrix products are associative. It can still be moved if one **feature map** $\phi$ is
# applied to every query and every key, each by itself:
#
# $$\bigl( \phi(Q)\, \phi(K)^\top \bigr)\, V = \phi(Q)\, \bigl( \phi(K)^\top V \bigr) \key{linear-attention-by-associativity}$$
#
# This is **linear attention** (Katharopoulos et al., 2020). Here $\phi(x) = x$, unless we say otherwise. The softmax stood between the
# scores and $V$. Once it is gone, the bracket can move, and scores and weights, both $T$ by $T$, are never made:

# %% id="machine"
from attn_course.lessons.linear import figures

figures.machine()

# %% [markdown] id="cost"
# With $d$ entries in keys and values, and a multiplication and its addition counted as 2 operations, the first order takes $4\, T^2 d$ of
# them, and the second $4\, T d^2$. For the book with $d = 64$ that is 1,562 times less. Then why does anybody pay for the first?

# %% [markdown] id="spot-exp"
# ### Spot the mistake: "attention is slow because exponentials are expensive"
#
# A score takes one exponential, and with $d = 64$ it takes $2\,(64 + 64) = 256$ other operations. So if we drop the exponential and move no
# bracket, few operations are saved, and all $T^2$ scores are still there. The softmax is expensive because no bracket can move past it.
#
# So linear attention is *another* layer, not a faster way to compute the same one (section {section}`kernel`).

# %% [markdown] id="memory"
# ## A memory
#
# What is the matrix in the right bracket? A matrix product is a sum over the inner index. Row $j$ of $K$ is $k_j^\top$, and of $V$ it is
# $v_j^\top$, so $K^\top V = \sum_j k_j v_j^\top$. Each token adds an outer product: it writes its value under its key. Say that Ada, with
# the key $(1, 0)$, sits in room 5, and Ben, with $(0, 1)$, in room 2. A value is a single number here, so the matrix $S$ is a column, and
#
# $$S = \binom{1}{0} \cdot 5 + \binom{0}{1} \cdot 2 = \binom{5}{2}$$
#
# We ask with Ada's key as the query, and get $S^\top q = 5 \cdot 1 + 2 \cdot 0 = 5$, her room.

# %% [markdown] id="recurrent"
# In a text, token $t$ may read only what tokens 1 to $t$ have written. So let it write first, and then ask, with $S_0 = 0$:
#
# $$\begin{gathered}
# S_t = S_{t-1} + \phi(k_t)\, v_t^\top, \\
# o_t = S_t^\top \phi(q_t) = \sum_{j \le t} \bigl( \phi(q_t) \cdot \phi(k_j) \bigr)\, v_j \end{gathered}
# \key{recurrent-linear-attention}$$
#
# From state to state, this is the *recurrent* form, a network that goes through the text with a **state** $S_t$ of fixed size. The sum at
# the end is the *parallel* form, all scores at once under a causal mask. They are equal, because $S_t$ is the sum of the first $t$ outer
# products:

# %% id="recurrent-code"
S, outputs = np.zeros((64, 64)), []
for q, k, v in zip(Q, K, V, strict=True):
    S += np.outer(k, v)
    outputs.append(S.T @ q)
print("recurrent and parallel agree:", np.allclose(outputs, np.tril(Q @ K.T) @ V))

# %% [markdown] id="speed-predict"
# Which one is faster? For 8,192 tokens with $d = 64$ the parallel form takes $17.2 \cdot 10^9$ operations, and the recurrent form 128 times
# fewer, but in 8,192 small steps. We ran both in PyTorch, the recurrent form in a loop, on one thread of a processor. **Predict** which is
# the faster one for 8,192 tokens, and which for 512.

# %% id="speed-code" tags=["predicted"]
from attn_course.lessons.linear.experiments_speed import SPEED


def time_of(form):  # ms for 512, 2,048 and 8,192 tokens
    print(f"{form:9}", np.median(SPEED.load().values("ms", form), axis=0))


time_of("parallel")
time_of("recurrent")

# %% [markdown] id="speed-answer" tags=["answer"]
# At 8,192 tokens it is the recurrent form, though by a factor of 4 and not of 128. At 512 tokens it is the parallel form. A small step
# takes 16 µs at each length, although its 16,384 operations would take 0.5 µs at the rate of the parallel form: most of it is the cost of
# the calls. (Medians of three runs.)

# %% [markdown] id="chunks"
# ## In chunks
#
# Few operations or few calls: can we have both? Cut the text into *chunks* of $C$ tokens. What came before a chunk is read from the state,
# and what is inside it in the parallel form, under a mask $M$ with ones on and below its diagonal and zeros above (`np.tri(C)`). Now let
# $S_c$ be the state *before* chunk $c$, with $S_1 = 0$, and let $Q_c$, $K_c$, $V_c$ be the chunk's rows of $\phi(Q)$, $\phi(K)$ and $V$.
# Then
#
# $$O_c = Q_c\, S_c + \bigl( Q_c K_c^\top \odot M \bigr) V_c, \qquad S_{c+1} = S_c + K_c^\top V_c \key{chunked-linear-attention}$$
#
# where $\odot$ multiplies entry by entry.

# %% [markdown] id="orders"
# In the drawing blue cells are scores, and green blocks are read from the state. What would chunks of 6 be, and chunks of 1?

# %% id="orders-figure"
from attn_course import check, verify_lesson

figures.orders(length=6, chunk=2)

# %% [markdown] id="chunk-turn"
# Chunks of 6 are the parallel form, and chunks of 1 the recurrent one, except that a token's own pair is a score.
#
# **Your turn: one chunk.** {turn}`one-chunk`

# %% id="chunk-turn-code" tags=["your-turn"]
my_chunk = ...  # your function
check("one-chunk", my_chunk)

# %% [markdown] id="chunk-ours" tags=["ours"]
# ```python
# def my_chunk(query, key, value, state):
#     output = query @ state + (np.tri(len(query)) * (query @ key.T)) @ value
#     return output, state + key.T @ value
# ```

# %% [markdown] id="chunk-speed"
# Chunks of 64 take twice the operations of the recurrent form (for each token $4 C d$ inside and $4 d^2$ with the state, and $C = d$), but
# only 128 steps for 8,192 tokens. They are the fastest of the three forms:

# %% id="chunk-speed-code"
time_of("chunked")

# %% [markdown] id="holds"
# ## What the memory holds
#
# The memory is fast, but what does it remember? Cy joins Ada and Ben, with the key $(0.6, 0.8)$ and room 10:
#
# $$S = \binom{5}{2} + \binom{0.6}{0.8} \cdot 10 = \binom{11}{10}$$
#
# Now Ada reads 11. Her key and Cy's have the dot product 0.6, so $0.6 \cdot 10 = 6$ came to her 5. In general, read with key $i$, and
# split the sum into this pair and the others:
#
# $$S^\top k_i = |k_i|^2\, v_i + \sum_{j \ne i} (k_j \cdot k_i)\, v_j, \qquad S = \sum_j k_j v_j^\top
# \label{recall-signal-and-interference}$$
#
# For keys of length 1 that is the value asked for, plus **interference**. Only keys at right angles keep out of each other's way, and there
# are at most $d_k$ of them.

# %% [markdown] id="random-keys"
# And if keys of length 1 have random directions? Turn the axes until one of two keys is $(1, 0, \dots, 0)$. Then their dot product is the
# first entry of the other. The squares of the $d_k$ entries of that key sum to 1, and no entry is favoured, so each square is $1 / d_k$ on
# average. Let the values be independent of each other and of the keys, with mean 0 and one distribution. Then products of different terms
# have mean 0, and $n - 1$ squares add up:
#
# $$\mathbb{E}\, \Bigl\| \sum_{j \ne i} (k_j \cdot k_i)\, v_j \Bigr\|^2 = \frac{n - 1}{d_k}\, \mathbb{E} \|v_i\|^2
# \label{interference-of-random-keys}$$
#
# So at $n = d_k + 1$ pairs the interference is, in mean square, as large as the value itself.

# %% [markdown] id="delta"
# ## Write what is missing
#
# There is worse. Back to Ada and Ben, with $S = \binom{5}{2}$. Ada moves to room 7, and the memory adds $\binom{7}{0}$. Now Ada reads 12, a
# room that she was never in: adding the new room does not take the old one away.

# %% [markdown] id="delta-derived"
# How must we write, for a key of length 1, if afterwards it should read $v$? We add $k\, u^\top$ with an unknown $u$. Then the key reads
# $S_{t-1}^\top k + u$, and this is $v$ if $u = v - S_{t-1}^\top k$. So we ask the memory first, and write only what is *missing*, or with a
# step size $\beta$ a part of it. This is the **delta rule** (Widrow and Hoff, 1960):
#
# $$S_t = S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top \key{delta-rule}$$
#
# For Ada $7 - 5 = 2$ is missing, so $S = \binom{7}{2}$. Another key $k'$ reads $(k' \cdot k)\, \beta u$ more, so at a right angle nothing
# changes.

# %% [markdown] id="explore"
# In the next figure the state is one arrow, and reading a key is projecting the arrow on it. By the delta rule A = 1 is written, then B =
# 1, at 60 degrees, and A = −1 comes next. What happens to B when A is written after it? At which angle is B left alone?

# %% id="explorable"
figures.memory_explorable()

# %% [markdown] id="write-turn"
# B falls from 1 to −0.13, as A falls by 2.25 (writing B had lifted it to 1.25) and half of that reaches B. At 90 degrees B is left alone.
#
# **Your turn: one write.** {turn}`one-delta-write`

# %% id="write-turn-code" tags=["your-turn"]
my_write = ...  # your function
check("one-delta-write", my_write)

# %% [markdown] id="write-ours" tags=["ours"]
# ```python
# def my_write(state, key, value, beta):
#     return state + np.outer(key, beta * (value - state.T @ key))
# ```

# %% [markdown] id="recall"
# ## Who forgets what?
#
# Is the delta rule the better memory? We test both on 16 people, with 16 entries in a key and 10 rooms. In random order
# all are written once, or all twice, with each room drawn anew. Then we ask for everybody's last room:


# %% id="recall-code"
def add(state, key, value):
    return state + np.outer(key, value)


def correct(state, key, value):  # the delta rule with beta = 1
    return add(state, key, value - state.T @ key)


def asked(write, keys, times, seed):  # is each answer right?
    rng, state, rooms = np.random.default_rng(seed), np.zeros((16, 10)), {}
    for who in rng.permutation(times * list(range(16))):
        rooms[who] = rng.integers(10)
        state = write(state, keys[who], np.eye(10)[rooms[who]])
    return [(keys[who] @ state).argmax() == rooms[who] for who in rooms]


# %% [markdown] id="recall-predict"
# The keys are the 16 axes, or random directions, which makes four cases. **Predict** in which of them the delta
# rule gives more right answers, and in which sums do.

# %% id="recall-table" tags=["predicted"]
drawn = np.random.default_rng(0).normal(size=(16, 16))
random = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
shares = {}
for name, keys in (("right angles", np.eye(16)), ("random keys", random)):
    for times in (1, 2):
        for write in (add, correct):
            tried = [asked(write, keys, times, seed) for seed in range(200)]
            shares[name, times, write] = np.mean(tried, axis=0)
        sums, delta = (shares[name, times, write].mean() for write in (add, correct))
        print(f"{name:12} written {times}x: sums {sums:.0%}, delta rule {delta:.0%}")

# %% [markdown] id="recall-answer" tags=["answer"]
# At right angles nothing interferes, and all is right, except by sums if people move. Then both rooms stand in the memory equally large,
# and the right one is named about half of the time. With random keys the delta rule wins if people move. But if everybody is written once,
# sums are better, by 94 to 77 percent.

# %% [markdown] id="age"
# We sort the answers of this case by how many people were written since:

# %% id="age-figure"
once = {"sums": shares["random keys", 1, add]}
once["delta rule"] = shares["random keys", 1, correct]
figures.recall_by_age(once)

# %% [markdown] id="age-notice"
# In a sum each pair suffers from all 15 others. By the delta rule each key reads right just after it was written, but the oldest are lost,
# because a write under the key $k$ erases the part $(k' \cdot k)^2$ of what was stored along $k'$, $1/16$ on average. After 15 writes
# $(15/16)^{15} \approx 0.38$ is left, and the noise is no larger than in a sum.

# %% [markdown] id="gate"
# The delta rule erases under a key that comes again, but a person who leaves for good fades only by chance, as others are
# written. So many models let the state fade before each write, by a **gate** that is computed from the token (Yang et al., 2023), and some
# then correct it too (Gated DeltaNet, Yang et al., 2024; formula in section {section}`least-squares`).

# %% [markdown] id="real"
# ## A real model without softmax
#
# Can SmolLM2, from lesson {lesson}`start`, do without? If its keys, with 64 entries, had random directions, interference would reach the
# value at 65 pairs, by {eq}`interference-of-random-keys` and for values as there. For real keys (rotated by position, and brought to length
# 1) we put the mean square of the dot product of two of them in place of $1/64$. **Predict** whether interference reaches the value at more
# than 65 pairs or at fewer.

# %% id="real-code" tags=["predicted"]
from attn_course.lessons.linear.experiments_smollm2 import SMOLLM2


def pairs(keys):  # by the median mean square of all heads, in each of four texts
    return (1 + 1 / SMOLLM2.load().values("overlap", keys)).round()


print("as they are:", pairs("as they are"))
print("mean subtracted:", pairs("less their mean"))

# %% [markdown] id="real-answer" tags=["answer"]
# By the same formula they would hold three or four pairs, because they point much the same way. If we subtract their mean from all keys of
# a text, it would be 25 to 27.

# %% [markdown] id="real-perplexity"
# How well does the model guess the next token with linear attention? We take the positive features $\mathrm{elu}(x) + 1$ ($x + 1$ for $x >
# 0$, else $e^x$) and, as the softmax does, divide each row by the sum of its weights. As a control, all visible values get equal weights:

# %% id="real-perplexity-code"
for way in SMOLLM2.load().results[0]["perplexity"]:
    print(f"{way:29}: perplexity", SMOLLM2.load().values("perplexity", way).round())

# %% [markdown] id="real-notice"
# The model guesses about as badly as with plain averages. So we cannot take the softmax from this trained model, in all layers at once,
# with these features and no further training. A model that is *trained* without is another matter, and some mix both kinds of layer (Kimi
# Team, 2025).

# %% [markdown] id="own"
# ## A memory of your own
#
# With `add` and `correct` we read 5,000 messages such as "person 7 is in the lab" into 64 times 64 numbers, and then ask where
# everybody is:

# %% id="own-code"
import zlib
from functools import cache

PLACES = ["hall", "lab", "roof", "cellar", "garden", "library"]


@cache
def vector(word):  # a random direction that depends on the word alone
    v = np.random.default_rng(zlib.crc32(word.encode())).normal(size=64)
    return v / np.linalg.norm(v)


def memorise(messages, write):
    S = np.zeros((64, 64))
    for who, place in messages:
        S = write(S, vector(who), vector(place))
    return S


# %% id="own-run"
spots = np.array([vector(place) for place in PLACES])


def right(people, write, seed):
    rng = np.random.default_rng(seed)
    names = [f"person {people * seed + n}" for n in range(people)]  # new each run
    told = [(rng.choice(names), rng.choice(PLACES)) for _ in range(5000)]
    S, last = memorise(told, write), dict(told)
    best = {who: PLACES[np.argmax(spots @ S.T @ vector(who))] for who in last}
    return sum(best[who] == last[who] for who in last)


for people in (10, 20, 40):
    for write in (add, correct):
        found = [right(people, write, seed) for seed in range(5)]
        print(people, "people:", found, "right by", write.__name__)

# %% [markdown] id="own-notice"
# One answer in six is right by chance, so the sums know next to nothing, while the delta rule follows 20 people with at most two mistakes
# in a run, and loses 4 to 9 of 40. It keeps more than with 16 entries, as a write under another key erases only $1/64$ on average, and each
# person soon comes again. If nobody moved, soon nothing would be missing, so nothing would be written and nothing forgotten. Change the
# messages to your own.

# %% id="verify-lesson"
verify_lesson("linear")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | cost or size |
# |---|---|---|
# | move the bracket, {eq}`linear-attention-by-associativity` | {key}`linear-attention-by-associativity` | $T$ in place of $T^2$ |
# | step by step, {eq}`recurrent-linear-attention` | {key}`recurrent-linear-attention` | state $(d_k, d_v)$ |
# | in chunks, {eq}`chunked-linear-attention` | {key}`chunked-linear-attention` | the fastest here |
# | overwrite, {eq}`delta-rule` | {key}`delta-rule` | one more read for each token |

# %% [markdown] id="summary"
# ## Summary
#
# - Without the softmax a bracket can be moved, and attention reads a memory that is a sum of outer products, in three equal orders.
# - The keys decide what the memory holds: at right angles $d_k$ pairs are exact, and with keys that point much the same way, almost nothing.

# %% [markdown] id="summary-next"
# What can 64 times 64 numbers keep of 100,000 tokens? A sum keeps a little of everything, and a new value does not
# take the old one away. The delta rule writes what is missing but, unless keys are at right angles, forgets what was written long
# ago, even if it is still true, when other new things are written.
#
# Lesson {lesson}`flash` keeps the softmax and saves memory in another way; first the [exercises](../work/ex_{lesson}`linear`_linear.ipynb).

# %% [markdown] id="kernel"
# ## Deeper: is the softmax a kernel?
#
# Softmax attention is the soft lookup of {eq}`soft-lookup` with one choice of similarity:
#
# $$z_i = \frac{\sum_j \kappa(q_i, k_j)\, v_j}{\sum_j \kappa(q_i, k_j)}, \qquad \kappa(q_i, k_j) = e^{q_i \cdot k_j / \sqrt{d_k}}
# \label{softmax-as-kernel-smoother}$$
#
# In this section and the next, queries are already divided by $\sqrt{d_k}$. Is there a feature map with
# $e^{q \cdot k} = \phi(q) \cdot \phi(k)$? In its series, multiply out each power of $q \cdot k$:
#
# $$e^{q \cdot k} = \lim_{N \to \infty} \sum_{|\alpha| \le N} \frac{q^\alpha}{\sqrt{\alpha!}}\,
# \frac{k^\alpha}{\sqrt{\alpha!}} \label{exponential-kernel-features}$$
#
# Here $\alpha$ holds one exponent for each entry, $q^\alpha = \prod_a q_a^{\alpha_a}$, $\alpha! = \prod_a \alpha_a!$ and
# $|\alpha| = \sum_a \alpha_a$. How far must we go at $q \cdot k = 4$?

# %% id="features-code"
from math import comb, factorial

for degree in (4, 8, 9):
    share = sum(4.0**n / factorial(n) for n in range(degree + 1)) / np.exp(4.0)
    print(f"up to degree {degree}: {share:.3f} of the kernel,", end=" ")
    print(f"{comb(64 + degree, degree):.0e} features at d_k = 64")

# %% [markdown] id="rank"
# For one percent it takes $10^{11}$ features. Is there another map, with few? Here are the ranks of $Q K^\top$ and
# of $e^{Q K^\top}$, entry by entry, for 7 queries and keys of 2 features:

# %% id="spot-exp-code"
rng = np.random.default_rng(5)
q, k = 2 * rng.normal(size=(2, 7, 2))
print("rank of Q K^T:", np.linalg.matrix_rank(q @ k.T))
print("rank of its exponential:", np.linalg.matrix_rank(np.exp(q @ k.T), rtol=1e-12))

# %% [markdown] id="rank-notice"
# All rows of $Q K^\top$ are mixtures of two rows, but after the exponential they are not. In general, with $m$
# features, and $T > m$ different queries and keys in general position,
#
# $$\mathrm{rank}\bigl( \phi(Q)\, \phi(K)^\top \bigr) \le m < T = \mathrm{rank}\bigl( e^{Q K^\top} \bigr)
# \label{exponential-scores-full-rank}$$

# %% [markdown] id="mercer"
# For any points and coefficients $c_i$,
#
# $$\sum_{i,j} c_i\, c_j\, e^{x_i \cdot x_j} = \Bigl\| \sum_i c_i\, \phi(x_i) \Bigr\|^2 \ge 0 \label{exponential-kernel-positive-definite}$$
#
# A symmetric function with this property is a *Mercer kernel*. So the exponential is one. The softmax is not even symmetric. Both arguments
# must come from **one** space, but tokens $x$, $y$ meet as $x W_Q$ and $y W_K$, in $e^{x W y^\top}$ with $W = W_Q W_K^\top$. Unless $W$
# happens to be symmetric, exchanging $x$ and $y$ changes that.

# %% id="mercer-code"
from attn_course.reference import softmax

rng = np.random.default_rng(11)
x, w = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
tables = {"exp(X X^T)": np.exp(x @ x.T), "its softmax": softmax(x @ x.T)}
for name, table in (tables | {"exp(X W X^T)": np.exp(x @ w @ x.T)}).items():
    print(f"{name:12} symmetric: {np.allclose(table, table.T)}")

# %% [markdown] id="normaliser"
# Linear attention with positive features can be normalised in the same way. The sum of the weights is the state of a value that is always
# 1:
#
# $$o_t = \frac{S_t^\top \phi(q_t)}{n_t \cdot \phi(q_t)}, \qquad n_t = n_{t-1} + \phi(k_t) \label{normalised-linear-attention}$$

# %% [markdown] id="random"
# ## Deeper: can the features be sampled?
#
# Features can be drawn at random. Assume $\omega \sim N(0, I)$. Completing the square in the exponent of
# its density gives $\mathbb{E}_\omega [ e^{\omega \cdot x} ] = e^{\|x\|^2 / 2}$. For $x = q + k$ the right side is
# $e^{|q|^2/2}\, e^{|k|^2/2}\, e^{q \cdot k}$. Divide by the first two factors:
#
# $$\mathbb{E}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{q \cdot k}, \qquad
#  \phi_\omega(x) = e^{\omega \cdot x - |x|^2 / 2} \label{positive-features-are-unbiased}$$
#
# These *positive random features* (Choromanski et al., 2020) are right on average. How far off is one draw? Its square is the same mean at
# $x = 2(q + k)$, and the square of the mean comes off:
#
# $$\mathrm{Var}_\omega\bigl[ \phi_\omega(q)\, \phi_\omega(k) \bigr] = e^{2 q \cdot k}\, \bigl( e^{|q + k|^2} - 1 \bigr)
# \label{variance-of-positive-features}$$
#
# A mean of $m$ draws divides it by $m$. For $m = 256$ and $q = k$:

# %% id="random-code"
for size in (1.0, 2.0):
    error = np.sqrt((np.exp(4 * size**2) - 1) / 256)
    print(f"|q| = {size}: standard deviation {error:.2f} of the kernel")

# %% [markdown] id="random-notice"
# At length 2 the error is 186 times the kernel. The variance grows *exponentially* with $|q + k|^2$.
# When does it pay to move the bracket? With $\phi(x) = x$ the two orders take
#
# $$F_{\mathrm{scores\ first}} = 2\, T^2 (d_k + d_v), \qquad F_{\mathrm{state\ first}} = 4\, T d_k d_v \label{linear-attention-flops}$$
#
# operations, equally many at the length
#
# $$T^\ast = \frac{2\, d_k d_v}{d_k + d_v} \label{linear-attention-crossover}$$
#
# Exercise {task}`random-feature-crossover` counts it for $m$ features.

# %% [markdown] id="least-squares"
# ## Deeper: how well can one matrix remember?
#
# Multiplied out, the delta rule erases and then writes:
#
# $$S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = \bigl( I - \beta\, k k^\top \bigr)\, S_{t-1} + \beta\, k v^\top
# \label{erase-then-write}$$
#
# Multiplied by the key, it says what that key reads afterwards. With $|k| = 1$ and $\beta = 1$ the old value is gone:
#
# $$S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v \label{recall-after-delta-write}$$
#
# Each write is a step down the slope of $\tfrac{1}{2} | S^\top k - v |^2$. Repeated for all pairs, small steps end near the least sum of
# squared errors, at the linear regression of values on keys, the best matrix. With gates, each pair meets those of all later steps:
#
# $$\begin{gathered}
# S_t = \mathrm{diag}(a_t)\, S_{t-1} + k_t v_t^\top, \\
# o_t = \sum_{j \le t} \Bigl( \sum_r q_{t,r}\, k_{j,r} \prod_{l=j+1}^{t} a_{l,r} \Bigr) v_j \end{gathered}
# \label{linear-attention-with-decay}$$
#
# where $S_0 = 0$ and $o_t = S_t^\top q_t$. Without $\phi$, linear attention also mixes the features of tokens by a matrix made of the
# tokens:
#
# $$\begin{gathered}
# (X W_Q)\, (X W_K)^\top X W_V = X\, W(X), \\
# W(X) = W_Q W_K^\top X^\top X\, W_V \end{gathered}
# \label{linear-attention-mixes-features}$$

# %% [markdown] id="slopes"
# What linearity costs shows in the derivative by the query:
#
# $$\begin{gathered}
# \frac{\partial o}{\partial q} = S^\top \quad \text{(linear)}, \\
# \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top \quad \text{(softmax)} \end{gathered}
# \label{linear-and-softmax-slopes}$$
#
# with the weights $p$ of $q$, $z = \sum_j p_j v_j$ and $\bar{k} = \sum_j p_j k_j$. A memory has one slope everywhere. The softmax can step
# from value to value between keys that lie close. How purely can each return the values of 12 keys in a *plane*?

# %% id="reading-code"
from attn_course.reference import attention

angles = 2 * np.pi * np.arange(12) / 12
keys, values = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.eye(12)
sharp = attention(keys, keys, values, scale=60.0)
fitted = keys @ np.linalg.pinv(keys) @ values
for name, read in (("softmax", sharp), ("the best matrix", fitted)):
    print(f"{name:15}: own value {read[0, 0]:.3f}, the neighbour's {read[0, 1]:.3f}")

# %% [markdown] id="reading-answer"
# Softmax returns each almost purely, and even the best state of two rows mixes them.

# %% [markdown] id="trained-heads"
# A head that was trained, with 8 entries in a key, writes 16 keys once or 8 twice, and names one of 16 values (three runs). Positive
# features are $\mathrm{elu}(x) + 1$, unit keys have length 1, and "nearer is better" takes a learned multiple of the distance off the
# scores:

# %% id="trained-code"
from attn_course.lessons.linear.experiments import OVERWRITING, RECALL

for what, record in (("once", RECALL), ("twice", OVERWRITING)):
    for name in record.load().results[0]["accuracies"]:
        right = record.load().values("accuracies", name)[:, 2]  # of 4, 8, 16, 32 pairs
        print(f"written {what:5}: {name:26} {right.round(2)}")

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Katharopoulos et al. (2020), [arXiv:2006.16236](https://arxiv.org/abs/2006.16236): linear attention, $\mathrm{elu} +
#   1$, "Transformers are RNNs".
# - K. Choromanski et al. (2020), [arXiv:2009.14794](https://arxiv.org/abs/2009.14794): positive random features (Performers).
# - I. Schlag, K. Irie and J. Schmidhuber (2021), [arXiv:2102.11174](https://arxiv.org/abs/2102.11174): fast weights,
#   capacity, the delta rule in attention.
# - S. Yang et al. (2023), [arXiv:2312.06635](https://arxiv.org/abs/2312.06635): gates, chunks; (2024),
#   [arXiv:2406.06484](https://arxiv.org/abs/2406.06484): the delta rule in chunks, and
#   [arXiv:2412.06464](https://arxiv.org/abs/2412.06464): with gates.
# - S. Arora et al. (2023), [arXiv:2312.04927](https://arxiv.org/abs/2312.04927): associative recall (Zoology).
# - Kimi Team (2025), [arXiv:2510.26692](https://arxiv.org/abs/2510.26692): three layers with a gated delta rule to one with softmax.
