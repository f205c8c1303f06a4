# %% [markdown] id="title"
# # {lesson}`absorption` Absorption: two matrices into one, and a cache that is small
#
# Neighbouring matrices can be multiplied together, or taken apart in another order. What does that reveal about a head? When
# does it save work? And how does a large model keep 576 numbers of a token instead of 32 768?
#
# **Afterwards you can** write self-attention with one matrix in both conventions, say what may be read from trained weights,
# treat biases correctly, count when absorbing pays, and build latent attention with rotary positions.
#
# **You need** lessons {lesson}`attention`, {lesson}`self_attention` and {lesson}`heads` (attention, projections, RoPE, heads, the cache).
# **Time:** 75 minutes, without the [exercises](../work/ex_{lesson}`absorption`_absorption.ipynb).

# %% [markdown] id="where"
# This is where we are in the machine: at $W_Q$ and $W_K$, which together lead from $X$ to the scores. ($W_V$ and $W_O$ are a second
# pair of this kind, and we come to them as well.)

# %% id="machine"
from attn_course.lessons.absorption import figures

figures.machine()

# %% [markdown] id="hook"
# ## One matrix is enough
#
# DeepSeek-V2 has 128 heads of width 128 in each of 60 layers. By {eq}`kv-cache-bytes`, keeping a key and a value for each head takes
# $2 \cdot 128 \cdot 128 = 32\,768$ numbers for one token and layer. The model keeps **576**, and yet each of its 128 heads has
# keys and values of its own. How? **Predict** both caches for a text of 131 072 tokens in 16-bit numbers.

# %% id="hook-code" tags=["predicted"]
from attn_course import costs

many = costs.cache_bytes_per_token(128, 128, 128, n_layers=60)
few = costs.latent_cache_bytes_per_token(512, 64, n_layers=60)
by_way = {"every head keeps its own": many, "576 numbers in each layer": few}
for name, per_token in by_way.items():
    in_all = per_token * 131_072 / 2**30
    print(f"{name}: {per_token / 1024:6.1f} KiB per token, {in_all:5.1f} GiB in all")

# %% [markdown] id="hook-answer" tags=["answer"]
# The usual cache takes 480 GiB, nearly half a terabyte; with 576 numbers in each layer it takes 8.4 GiB. Everything else is the same, so the
# factor is $32\,768 / 576$, about 57.

# %% [markdown] id="hook-notice"
# The trick behind the small cache has two halves: make all keys and values from one short vector, and then *never make
# them*. The second half is the subject of this lesson, and it begins with a line of school algebra: a matrix moves to the
# other side of an inner product as its transpose. With **columns** as positions ($W_Q, W_K$ of shape $d_k \times d$):
#
# $$\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle \label{absorbed-inner-product}$$

# %% [markdown] id="rows"
# With **rows** as positions, as in this course, everything turns about its diagonal ($W_Q, W_K$ of shape $d \times d_k$):
#
# $$(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top \label{absorbed-score}$$
#
# Only the product matters. $W$ is a **bilinear form**: a table in which feature $a$ of the token that asks meets feature $b$
# of the token that answers; {eq}`bilinear-score` used it already.

# %% id="one-matrix-alive"
from attn_course import alive

alive("absorbed-score")

# %% id="one-matrix-code"
import numpy as np

from attn_course.reference import absorb_query_key

rng = np.random.default_rng(10)
x = rng.normal(size=(5, 4))
w_query, w_key, w_value = rng.normal(size=(3, 4, 2))
form = absorb_query_key(w_query, w_key)[0]
equal = np.allclose(x @ w_query @ (x @ w_key).T, x @ form @ x.T)
print("W has shape", form.shape, " equal scores:", equal)

# %% [markdown] id="whole"
# Now for all pairs at once. In columns, entry $(j, i)$ of the scores $S$ is key $j$ against query $i$, so the matrix in the middle
# is the transpose of that in {eq}`absorbed-inner-product`:
#
# $$S = (W_K X)^\top (W_Q X) = X^\top \bigl(W_K^\top W_Q\bigr) X \label{absorbed-scores-in-columns}$$
#
# Self-attention in rows, and the same in columns with the tokens themselves as values:
#
# $$\mathrm{attention}(X W_Q,\, X W_K,\, X W_V)
# = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{X W X^\top}{\sqrt{d_k}}\Bigr)\, X W_V \label{absorbed-self-attention}$$
#
# $$Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)
# \label{absorbed-attention-in-columns}$$
#
# Where the scale stands is a matter of taste: $W / \sqrt{d_k}$ may be stored instead of $W$. But it must be somewhere, and it
# knows $d_k$, the width before absorbing, not the size $d$ of $W$.

# %% [markdown] id="spot-transposed"
# ### Spot the mistake: two lines that do not fit
#
# "Since $\langle W_Q z, W_K z' \rangle = \langle z, W z' \rangle$ with $W = W_Q^\top W_K$, self-attention is
# $X\,\mathrm{softmax}(X^\top W X)$." The first half is {eq}`absorbed-inner-product`. **Predict** what is wrong with the second
# (columns are positions, softmax runs down a column), and whether it is enough to put the scale in, as below.

# %% id="spot-transposed-code" tags=["predicted"]
from attn_course import show, verify_lesson

show("absorbed-attention-in-columns", wrong="W as for the inner product")
unit = [[1, 0], [0, 1]]
show("absorbed-attention-in-columns", X=unit, W_Q=[[1, 0], [0, 0]], W_K=unit[::-1])

# %% [markdown] id="spot-transposed-notice" tags=["answer"]
# The scale alone is not enough, because two things are wrong. The scale is missing; and $X^\top W X$ with $W = W_Q^\top W_K$ has *queries* in its rows, so a softmax down the columns
# normalises over queries. $X^\top W_K^\top W_Q X$, the transpose, has keys there. The shapes never complain, since $W$ is
# square. The second calculation is right: its columns sum to 1. With $W_Q = W_K$ no number shows the transposition, and with a single token none shows either mistake.

# %% [markdown] id="kind"
# ## What kind of matrix
#
# **Assume** nothing about $W_Q$ and $W_K$ but their shapes. A product has at most the rank of its narrowest factor:
#
# $$\mathrm{rank}(W_Q W_K^\top) \le d_k \label{query-key-rank-bound}$$
#
# So a head of width $d_k$ compares two tokens in $d_k$ directions at most, even though $W$ has $d^2$ entries. That is all the
# two factors do to $W$: every matrix of rank $d_k$ or less is such a product.

# %% [markdown] id="parts"
# Does $i$ look at $j$ as $j$ looks at $i$? Write $s_{ij} = x_i W x_j^\top$, and split $W$ into a part that its
# transpose leaves as it is and a part whose sign it changes:
#
# $$\begin{gathered}
# s_{ij} + s_{ji} = 2\, x_i\, W_+\, x_j^\top, \qquad
#  s_{ij} - s_{ji} = 2\, x_i\, W_-\, x_j^\top, \\
# W_+ = \tfrac{1}{2} (W + W^\top), \quad W_- = \tfrac{1}{2} (W - W^\top) \end{gathered} \label{symmetric-and-antisymmetric-scores}$$
#
# $W_+$ scores a *pair*, without regard to who asks: likeness, if its eigenvalues are positive. $W_-$ is all that makes a
# question different from its answer. And a token's score with itself knows only the first:
#
# $$x\, W\, x^\top = x\, W_+\, x^\top \label{self-score-symmetric-part}$$

# %% [markdown] id="asker"
# Let us see both parts at work. A token is one of six names and one of five colours, both one-hot ($d = 11$), and all six
# names stand in random order. Name $n$ must tell the **colour of name $n + 1$**, and the last name that of the first. One
# head ($d_k = 6$, no positions) is trained for it. One-hot features make $W$ readable: with the scale folded in, as in the
# figures, entry $(a, b)$ *is* the score of name $a$ with name $b$. **Predict** what $W$ looks like, and what its two parts
# can do alone.

# %% id="parts-figure" tags=["predicted"]
from attn_course.lessons.absorption.experiments import CIRCUITS

record = CIRCUITS.load()
learned = record.values("form")[0]
figures.form_parts(learned)

# %% id="parts-code" tags=["predicted"]
for name in ("as trained", "symmetric part", "antisymmetric part", "transposed"):
    told = record.values("told", name).round(2)
    print(f"scores from W {name:18}: right in {told}   (three seeds)")

# %% [markdown] id="parts-notice" tags=["answer"]
# Row $n$ of $W$ is largest in column $n + 1$, because name $n$ has to find name $n + 1$. The symmetric part gives the name before and the name after the same score: it guesses
# between two colours, right half the time and sometimes by luck. The antisymmetric part has the direction, and nearly does
# the task; but its peaks are lower (0.8 to 1.0 instead of 1.5 or 1.6), so more weight leaks to the others. Transposed, the
# head looks *back*: right by chance, one in five. (The tables leave out the scores
# with colours.)

# %% [markdown] id="gauge"
# ## Gauge freedom
#
# Different factors may have the same product. Put any invertible $G$ ($d_k \times d_k$) between them, and its inverse behind
# it:
#
# $$(W_Q\, G)\,\bigl(W_K\, G^{-\top}\bigr)^\top = W_Q\, W_K^\top \label{query-key-gauge-freedom}$$
#
# Every score, weight and output stays the same; every query and key changes. Borrowing a word from physics, $G$ is a choice
# of **gauge**: nothing that can be observed depends on it. **Predict** how often our trained head is right after a random
# $G$, and what its queries look like.

# %% id="gauge-figure" tags=["predicted"]
gauges = ("as trained", "other gauge")
queries = {gauge: record.values("w_query", gauge)[0] for gauge in gauges}
figures.two_gauges(queries, learned)

# %% id="gauge-code" tags=["predicted"]
print("right in the other gauge:", record.values("told", "other gauge").round(2))
change = record.values("largest change of the form")
print("largest change of W below 1e-5:", change < 1e-5)

# %% [markdown] id="gauge-answer" tags=["answer"]
# The head is right exactly as often as before, in all three seeds, because $W$ and with it every score is the same. Its queries look
# entirely different.

# %% [markdown] id="gauge-notice"
# So many tables of queries belong to one head. A sentence like "entry 3 of the query detects name 0" says nothing about the head; it holds in one gauge
# and fails in the next. The same goes for the norms of queries and for the angle between two of them. What may be read: $W$,
# its singular values and vectors, and whatever is built from $W$.
#
# How many numbers are idle? **Assume** both factors have full rank $d_k \le d$, and perturb them a little; the changes of $W$
# that this can cause span a space of dimension
#
# $$\mathrm{rank}\, \frac{\partial\, W_Q W_K^\top}{\partial\, (W_Q, W_K)} = 2\, d\, d_k - d_k^2 \label{effective-query-key-parameters}$$
#
# out of $2 d\, d_k$: the $d_k^2$ entries of $G$ do nothing.

# %% [markdown] id="balanced"
# Does training choose a gauge? The loss cannot see it, but **weight decay** can: it charges $\|W_Q\|_F^2 + \|W_K\|_F^2$, which
# $G$ changes. With $\varsigma_r(W)$ the singular values of $W$:
#
# $$\sum_r \varsigma_r(W) \le \tfrac{1}{2} \bigl( \|W_Q\|_F^2 + \|W_K\|_F^2 \bigr) \label{frobenius-bounds-nuclear-norm}$$
#
# with equality in the *balanced* gauge: $W = U\,\mathrm{diag}(\varsigma)\,V^\top$ shared evenly, $W_Q = U \sqrt{\varsigma}$
# and $W_K = V \sqrt{\varsigma}$ (up to a common rotation). So decay of the factors pulls towards balance, and there it
# charges the **sum of singular values** of $W$: a charge that favours low rank. Our head was trained with decay. **Predict**
# the ratio of the left side to the right, as trained and in the other gauge.

# %% id="balanced-code" tags=["predicted"]
for gauge in ("as trained", "other gauge"):
    print(f"{gauge:12}: left over right {record.values('balance', gauge).round(2)}")

# %% [markdown] id="balanced-answer" tags=["answer"]
# As trained the ratio is 1 to two digits, so decay has brought the factors into balance; what freedom remains is a rotation of all queries
# and keys. In the other gauge the ratio is only 0.26 to 0.34, because the random $G$ makes the factors larger and leaves $W$ as it is.

# %% [markdown] id="rank-predict"
# One question is left from {eq}`query-key-rank-bound`: how many directions does *this* task need? There are two ways
# to find out: cut the trained $W$ to its $r$ largest singular values, or train a head of width $d_k = r$. **Predict** which does better at $r = 2$.

# %% id="rank-figure" tags=["predicted"]
cut, narrow = record.values("truncated"), record.values("trained")
figures.rank_shares(cut.mean(axis=0), narrow.mean(axis=0))

# %% [markdown] id="rank-notice" tags=["answer"]
# The head trained at width 2 does better: it is always right, while the wide head cut to rank 2 is right in 0.70 of all cases. Six names
# stand on a circle, and each looks at the next, so two dimensions suffice if training is told to use two. The wide head, which nobody asked
# to be narrow, spreads over five. (Widths 4 and 5 were not trained.) *Low rank is possible* and *this matrix can be cut* are different
# claims. We meet both again when keys and values are compressed.

# %% [markdown] id="biases"
# ## Biases
#
# Linear layers often come with biases. **Assume** rows $b_Q, b_K$, and multiply out:
#
# $$\begin{gathered}
# (x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top \\
# = x_i W x_j^\top + x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + b_Q\, b_K^\top \end{gathered} \label{score-with-biases}$$
#
# Which of the four depend on the key $j$? The first and the third. The terms with $b_K$ are the same for all keys of a row,
# and a softmax ignores such a constant, {eq}`softmax-shift-invariance`:
#
# $$\begin{gathered}
# \sigma_l\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)_j \\
# = \sigma_l\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)_j \end{gathered} \label{key-bias-cancels}$$
#
# (inside $\sigma$, $l$ runs over the keys). The key bias cancels. The query bias stays: $b_Q W_K^\top x_l^\top$ does not look
# at the query, so it is a **preference** for some keys, whoever asks.

# %% [markdown] id="biases-one"
# A form takes both in with a constant feature:
#
# $$\begin{gathered}
# (x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top
# = \tilde{x}_i \begin{pmatrix} W & W_Q b_K^\top \\ b_Q W_K^\top & b_Q b_K^\top \end{pmatrix} \tilde{x}_j^\top, \\
# \tilde{x}_i = [\,x_i,\, 1\,] \end{gathered}
# \label{biases-in-one-matrix}$$
#
# The cancellation needs that scores are only scaled, or added to, before the softmax. **Predict** for which of these the key
# bias *does* matter: a causal mask; a softcap, $c \tanh(s / c)$; RoPE, applied to the biased key.

# %% id="biases-code" tags=["predicted"]
from attn_course.reference import attention, rope

b_query, b_key = rng.normal(size=(2, 2))
places = {"RoPE": np.arange(5)}  # elsewhere all stand at place 0, which turns nothing
options = {"plain": {}, "causal": {"is_causal": True}}
options |= {"softcap": {"softcap": 2.0}, "RoPE": {}}
for name, option in options.items():
    place = places.get(name, np.zeros(5, dtype=int))
    query = rope(x @ w_query + b_query, place)
    keys = (rope(x @ w_key + b, place) for b in (0, b_key))
    plain, biased = (attention(query, key, x, **option) for key in keys)
    print(f"{name:8} b_K matters: {not np.allclose(plain, biased)}")

# %% [markdown] id="biases-notice" tags=["answer"]
# Under a causal mask the key bias does not matter, and with a softcap or with RoPE it does. A mask removes keys and leaves the constant
# alone. A softcap bends large scores more than small ones, so a constant no longer passes. RoPE turns the bias by an angle that depends on
# $j$, so the term is no longer constant. In plain attention a key bias is a parameter without effect (and without gradient).

# %% [markdown] id="values"
# ## Values into the output
#
# The other pair of neighbours, $W_V$ and $W_O$. Weights act from the left, projections from the right, and matrix products may
# be bracketed at will:
#
# $$\bigl(P\,(X W_V)\bigr)\, W_O = P X\, (W_V W_O) \label{absorbed-value-projection}$$

# %% id="values-alive"
alive("absorbed-value-projection")

# %% [markdown] id="circuits"
# With heads, each has its own block of columns of $W_V$ and of rows of $W_O$. All of multi-head attention is then two matrices
# for each head:
#
# $$\begin{gathered}
# \mathrm{MultiHead}(X) = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{X W_h X^\top}{\sqrt{d_k}}\Bigr)\, X\, U_h, \\
# W_h = W_Q^{(h)} W_K^{(h)\top}, \quad U_h = W_V^{(h)} W_O^{(h)} \end{gathered} \label{absorbed-multi-head-attention}$$
#
# Elhage et al. (2021) call them the **QK circuit**, *where to look*, and the **OV circuit**, *what to write*. In both, single
# factors mean nothing by themselves.

# %% id="values-code"
from attn_course.reference import absorb_value_output, multi_head_attention, softmax

heads = [rng.normal(size=shape) / 2 for shape in ((4, 6), (4, 6), (4, 6), (6, 4))]
wide = multi_head_attention(x, x, *heads, n_heads=3)
W, U = absorb_query_key(*heads[:2], 3), absorb_value_output(*heads[2:], 3)
print("W", W.shape, " U", U.shape)
one_by_one = [softmax(x @ W[h] @ x.T / np.sqrt(2)) @ x @ U[h] for h in range(3)]
print("equal:", np.allclose(wide, sum(one_by_one)))

# %% [markdown] id="values-predict"
# **Predict** the OV circuit of our trained head: a row for each of the 11 features that it may read, a column for each of the five colours
# that it may write.

# %% id="ov-figure" tags=["predicted"]
figures.value_circuit(record.values("map")[0], n_names=6)

# %% [markdown] id="ov-notice" tags=["answer"]
# The OV circuit copies the colour and ignores the name: the names' rows are alike, so they add nearly the same to every answer, whoever
# speaks. Compare the QK circuit, which reads names. Together the two tables *are* the head, on one page; the sixty-six numbers of $W_Q$
# were not.

# %% [markdown] id="spot-ffn"
# ### Spot the mistake: how far may we absorb?
#
# "$W_V$ commutes with the weighted average, so it can be absorbed into the feed-forward network that follows." In a
# Transformer a residual connection adds the input: what follows reads $X + P X U$. **Predict** whether $U W_1$, with $W_1$
# the first matrix of that network, can replace both.
#
# $$\bigl( X + P X\, U \bigr)\, W_1 = X W_1 + P X\, (U W_1) \label{residual-blocks-absorption}$$

# %% id="spot-ffn-code" tags=["predicted"]
following = "W_V absorbed into a following feed-forward network"
show("residual-blocks-absorption", wrong=following)
show("residual-blocks-absorption", wrong="one matrix for both paths")

# %% [markdown] id="spot-ffn-notice" tags=["answer"]
# One matrix cannot replace both, because the residual path needs $W_1$ as it is. Besides, a norm usually stands before the network, and no
# matrix passes through it. So $W_V$ goes into $W_O$, head by head, and no further.

# %% [markdown] id="value-bias"
# What of a value bias? It comes through every average unchanged **if the row of weights sums to 1**, and $W_O$ makes a
# constant of it:
#
# $$P\, (X W_V + \mathbf{1}\, b_V)\, W_O = P X\, W_V W_O + \mathbf{1}\, (b_V W_O) \label{value-bias-becomes-constant}$$
#
# So $b_V$ could be dropped and $b_V W_O$ added to the output bias. **Predict** what happens to a row that may attend to
# nothing, and under dropout on the weights (some set to 0, the others enlarged).

# %% id="value-bias-code" tags=["predicted"]
P = softmax(x @ form @ x.T)
b_value, nothing = rng.normal(size=4), P.copy()
nothing[2] = 0.0
dropped = np.where(np.arange(5) % 2 == 0, P * 2.0, 0.0)
for name, weights in (("plain", P), ("row 2 empty", nothing), ("dropped", dropped)):
    share = (weights @ (x + b_value) - weights @ x) @ b_value / (b_value @ b_value)
    print(f"{name:11}: share of b_V that arrives in each row {share.round(3)}")

# %% [markdown] id="value-bias-notice" tags=["answer"]
# A row that may attend to nothing gets no value bias at all, and under dropout every row gets another share of it, because the share is the
# sum of the row's weights. Where such rows occur, folding $b_V$ into the output changes the function.

# %% [markdown] id="when-not"
# ## When not to absorb
#
# One matrix instead of two sounds like a saving. Count the numbers $N$ to store for one head, with $d_k = d / H$:
#
# $$N_{\mathrm{absorbed}} = d^2, \qquad N_{\mathrm{factored}} = 2\, d\, d_k, \qquad
#  \frac{N_{\mathrm{absorbed}}}{N_{\mathrm{factored}}} = \frac{H}{2} \label{absorbed-matrices-are-larger}$$
#
# With more than two heads the product is *larger* than its factors. And the FLOPs of one head's scores, all $T$ tokens new:
#
# $$F_{\mathrm{factored}} = 4\,T d\, d_k + 2\,T^2 d_k, \qquad F_{\mathrm{absorbed}} = 2\,T d^2 + 2\,T^2 d
# \label{factored-and-absorbed-flops}$$
#
# Absorbed, vectors of length $d$ are compared instead of $d_k$. **Predict** both ratios for $d = 5120$ and $d_k = 128$.

# %% id="when-not-code" tags=["predicted"]
print("numbers, absorbed over factored:", 5120**2 / (2 * 5120 * 128))
sizes = 4096, 4096, 5120, 5120, 128
factored = costs.query_key_flops(*sizes, absorbed=False)
absorbed = costs.query_key_flops(*sizes, absorbed=True)
print(f"FLOPs at T = 4096, absorbed over factored: {absorbed / factored:.0f}")

# %% [markdown] id="when-not-answer" tags=["answer"]
# The product takes 20 times the memory and 26 times the work, because it compares vectors of 5120 entries instead of 128.

# %% [markdown] id="when-not-notice"
# So absorb on paper, to understand a head, and keep the factors in the machine. The exception needs two things: the tokens that answer must
# already be *short* vectors, and there must be many of them for few queries. That is a cache.

# %% [markdown] id="latent"
# ## One latent vector for all heads
#
# Start from the problem. A step of decoding reads keys and values of all past tokens; the cache holds $2 H d_k$ numbers for
# each. Grouped heads keep fewer heads (lesson {lesson}`heads`). Another way: keep **one short vector** and make keys and values from it
# when they are needed,
#
# - *down*: $c_t = x_t W_{DKV}$, with $d_c$ numbers; only this is kept;
# - *up*: $k_t = c_t W_{UK}$ and $v_t = c_t W_{UV}$, different for each head.
#
# This is what DeepSeek-V2 does (its § 2.1.2).

# %% [markdown] id="latent-absorb"
# But rebuilding keys of the whole past in every step would be terrible. Here {eq}`absorbed-score` comes in. The up-projection of the
# keys moves to the one new query:
#
# $$q\,(c_j W_{UK})^\top = \bigl(q\, W_{UK}^\top\bigr)\, c_j^\top \label{absorbed-latent-keys}$$
#
# and that of the values behind the average:
#
# $$\Bigl( \sum_j p_j\, (c_j W_{UV}) \Bigr) W_O = \Bigl( \sum_j p_j\, c_j \Bigr) \bigl( W_{UV} W_O \bigr) \label{absorbed-latent-values}$$
#
# The cached vectors themselves serve as keys **and** as values, for all heads. What is lost? All keys and values together, one
# wide matrix, now have a common bound:
#
# $$\mathrm{rank}\bigl[\, K_1 \cdots K_H\; V_1 \cdots V_H \,\bigr] \le d_c \label{joint-key-value-rank}$$
#
# **Predict** the shapes of the keys of all heads, if they are rebuilt, and of the lifted query: 4 heads of width 3, $d_c = 5$, 7 cached
# tokens, one query.

# %% id="latent-code" tags=["predicted"]
latent, query = rng.normal(size=(7, 5)), rng.normal(size=(4, 1, 3))
up_key, up_value = rng.normal(size=(2, 4, 5, 3))
rebuilt = attention(query, latent @ up_key, latent @ up_value)
lifted = query @ up_key.swapaxes(1, 2)
average = attention(lifted, latent, latent, scale=3**-0.5)
print("keys of all heads", (latent @ up_key).shape, end="  ")
print("queries in the latent space", lifted.shape)
print("equal:", np.allclose(average @ up_value, rebuilt))

# %% [markdown] id="latent-answer" tags=["answer"]
# The rebuilt keys have the shape (4, 7, 3): for each head 7 tokens of width 3. The lifted queries have (4, 1, 5): for each head one query, as
# long as a latent vector. The second way gives the same output and makes no key and no value.

# %% [markdown] id="latent-notice"
# Mind the scale: `attention` would take $1/\sqrt{5}$ from the latent vectors it sees, but the score is still one of width 3. Seen from the cache this is multi-query attention with one very wide head. Seen from the heads it is
# more than grouped attention, which is the special case where the up-projections only *copy*:
#
# $$\begin{gathered}
# c_t = [\,k_{t,0} \cdots k_{t,H_{kv}-1},\; v_{t,0} \cdots v_{t,H_{kv}-1}\,], \\
# K_h = C\, E_r, \quad V_h = C\, E_{H_{kv} + r}, \\
# d_c = 2\, H_{kv}\, d_{\mathrm{head}}, \qquad
#  r = \lfloor h / g \rfloor \end{gathered}
# \label{grouped-heads-as-latent}$$
#
# with $E_r$ the columns of the identity that pick block $r$, and $r$ the key head of query head $h$. With the same cache,
# learned matrices can do all that copies can.

# %% [markdown] id="compression"
# Is low rank realistic? Take the four-headed model of lesson {lesson}`heads` (naming both neighbours, 64 numbers of key and value for each
# token), trained without any such idea. Collect the keys and values of all possible tokens in one wide matrix, and keep its
# first $d_c$ singular directions. Compare at the **same number of kept numbers** with merging key heads. Nothing is retrained.
# **Predict** which fares better with 16 numbers.

# %% id="compression-load" tags=["predicted"]
from attn_course.lessons.absorption.experiments import COMPRESSION

squeezed = COMPRESSION.load()
by_latent = {n: squeezed.values("latent", str(n)).mean() for n in (2, 4, 6, 8, 12, 16)}
by_groups = {n: squeezed.values("shared", str(n)).mean() for n in (16, 32)}

# %% id="compression-figure" tags=["predicted"]
figures.kept_numbers(by_latent, by_groups)

# %% id="compression-code" tags=["predicted"]
spectrum = squeezed.values("spectrum")
large = (spectrum > 1e-4).sum(axis=1)
print("directions above 1e-4 of the first:", large, "of", spectrum.shape[1])

# %% [markdown] id="compression-answer" tags=["answer"]
# The latent vector fares better: with 16 numbers it is perfect, and for a plain reason. A token is one of 8 symbols plus one of 8 places,
# which spans 15 directions, so nothing in the 64 numbers was new. Merging heads throws *roles* away instead of repetition. Below 15
# directions the latent vector loses too, and soon: joint compression removes what is redundant, and no more.

# %% [markdown] id="compression-notice"
# Both conversions improve with training, as merged heads did in lesson {lesson}`heads`. Whether large models repeat themselves as much as
# this one is an empirical question; DeepSeek-V2 reports that latent attention, trained from the start, did better than multi-head attention.

# %% [markdown] id="saves"
# ## When absorbing pays
#
# Count from the queries to the outputs of the heads, for one new token against $T$ cached vectors. Naive: rebuild, then
# attend. Absorbed: lift the query, attend in the latent space, bring the average back:
#
# $$\begin{gathered}
# F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \\
# F_{\mathrm{absorbed}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c \end{gathered}
# \label{latent-decoding-flops}$$
#
# The first grows with the product $T d_c (d_k + d_v)$, the second only with $T d_c$:
#
# $$\text{decode:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}}
# = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c} \label{absorption-gain-at-decoding}$$

# %% [markdown] id="saves-prefill"
# With $n$ new tokens among the $T$, rebuilding is done once for all of them, while everything else is done $n$ times:
# $2 H T d_c (d_k + d_v) + 2 H n T (d_k + d_v)$ against $2 H n\, d_c (d_k + d_v) + 4 H n T d_c$. If all are new (a prompt:
# *prefill*):
#
# $$\text{prefill:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}
# \label{absorption-loss-at-prefill}$$
#
# **Predict** both limits for DeepSeek-V2: $d_k = d_v = 128$, $d_c = 512$.

# %% id="saves-code" tags=["predicted"]
print("decode:", 513 * 256 / (2 * 512), " prefill:", 256 / (2 * 512))
latents = {"d_query_latent": 1536, "d_latent": 512, "d_rope": 64}
v2 = costs.LatentSizes(d_model=5120, n_heads=128, d_head=128, d_v=128, **latents)
new = 2 ** np.arange(13)
forms = ("naive", "factored", "absorbed")
flops = {}
for form in forms:
    counts = [costs.latent_attention_flops(v2, int(n), 4096, form=form) for n in new]
    flops[form] = np.array(counts) / 1e9

# %% id="saves-figure" tags=["predicted"]
figures.prompt_flops(new, flops)

# %% [markdown] id="saves-answer" tags=["answer"]
# When decoding, the naive way takes 128 times the FLOPs; for a prompt it takes a quarter of them. Which bracketing is cheaper depends on
# how many tokens are new. (The figure counts all projections too, so at one token the gain is smaller.)

# %% [markdown] id="saves-notice"
# So a claim like "absorption speeds up the model" is incomplete without the phase.
#
# The third curve of the figure multiplies $W_{UQ} W_{UK}^\top$ and $W_{UV} W_O$ out beforehand, and lies above the second everywhere. What
# pays is the *order* of the products: query times one factor, times the other, then the cache.

# %% [markdown] id="rotary"
# ## What RoPE does to it
#
# RoPE (lesson {lesson}`self_attention`) turns queries and keys by angles that grow with the position. In rows, with $R_t$ the rotation by
# $t$ times
# the frequency, one pair of features:
#
# $$(q R_s)\,(k R_t)^\top = q\, R_{s - t}\, k^\top \label{rope-depends-on-distance}$$
#
# Now let the key come from a latent vector, $k_t = c_t W_{UK}$:
#
# $$(q R_s)\,(c_t W_{UK} R_t)^\top = q\, R_{s - t}\, W_{UK}^\top\, c_t^\top \label{rope-blocks-absorption}$$
#
# The rotation stands *between* the query and $W_{UK}^\top$, and it is another one for every distance. The lifted query
# $q W_{UK}^\top$ cannot be made once for all keys. Could the two factors change places?
#
# $$R_\theta W - W R_\theta = \sin(\theta)\, (J W - W J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}
# \label{rotation-commutator}$$

# %% [markdown] id="rotary-predict"
# For one pair, and $\sin\theta \ne 0$, they may only if $W$ commutes with the quarter turn $J$, that is, if $W$ is a rotation times a
# number. A learned $W_{UK}$ is not even square. **Predict** which of these orders gives the right scores: (a) rebuild the keys, then rotate; (b) lift the
# query, then rotate lifted query and latent vectors.

# %% id="rotary-code" tags=["predicted"]
positions, up = np.arange(7), rng.normal(size=(6, 4))
small, asking = rng.normal(size=(7, 6)), rng.normal(size=(7, 4))
rebuilt = rope(asking, positions) @ rope(small @ up, positions).T
swapped = rope(asking @ up.T, positions) @ rope(small, positions).T
print("(b) equals (a):", np.allclose(swapped, rebuilt))
equal = np.argwhere(np.isclose(swapped, rebuilt))
print("pairs (s, t) with equal scores:", [(int(s), int(t)) for s, t in equal])

# %% [markdown] id="rotary-answer" tags=["answer"]
# Order (a) gives the right scores, because it rotates the keys themselves. Order (b) equals it only at distance 0, where the rotations
# cancel: a test with one token, or with all positions the same, would have passed.

# %% [markdown] id="real"
# RoPE also takes most gauge freedom of queries and keys away. SmolLM2 (lesson {lesson}`attention`) turns them. We gave every key head of its 30
# layers, with its queries, another gauge, $W_Q G$ and $W_K G^{-\top}$, and let it guess the tokens 65 to 256 of four texts. A perplexity of 16
# means that a token is as hard to guess as one of 16 equally likely ones. **Predict** for which kinds of $G$ it stays as it was.

# %% id="real-code" tags=["predicted"]
from attn_course.lessons.absorption.experiments_smollm2 import SMOLLM2

gauges = SMOLLM2.load()
print(f"{'as trained':27}", gauges.values("trained").round(1))
for kind in ("pairs turned and stretched", "orthogonal", "any"):
    print(f"{kind:27}", gauges.values(kind, "perplexity").min(axis=1).round(1))

# %% [markdown] id="real-answer" tags=["answer"]
# It stays for the $G$ that turns and stretches each pair by itself, since this commutes with every rotation: no logit moves by more than
# 0.0002. The two other kinds, drawn at random in every layer, ruin the model (the better of two draws is printed). It is the rotations that
# forbid them: with these switched off (a much worse model), none of the three moves its logits by more than 0.001. If all frequencies differ
# and none is 0, a $G$ that commutes with every rotation is one turn and one stretch for each pair. So of the $d_k^2 = 4096$ idle numbers of a key head RoPE leaves
# $d_k = 64$.

# %% [markdown] id="decoupled"
# With RoPE on keys that come from latent vectors, all keys would have to be rebuilt in every step.
#
# The way out in DeepSeek-V2 is to **decouple** the two jobs. The content part has no positions, and is absorbed. Beside it,
# each query gets a few rotary features, and each token *one* rotary key that all heads share,
# $k^R_t = \mathrm{RoPE}(x_t W_{KR})$:
#
# $$[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = q^C \cdot k^C + q^R \cdot k^R \label{decoupled-rope-score}$$
#
# The scale counts all features: $1 / \sqrt{d_{\mathrm{head}} + d_R}$. Kept for each token: $c_t$ and $k^R_t$.

# %% [markdown] id="flow"
# Follow one token through a head. On the left it is projected four times. The framed matrices in the middle are all that is
# kept; from them keys and values of the whole past are rebuilt.

# %% id="flow-figure"
figures.latent_flow(absorbed=False)

# %% [markdown] id="together"
# In DeepSeek-V2 the queries come from a latent vector too, $C^Q = X W_{DQ}$ (for memory in training; old queries are never
# needed). Everything together:
#
# $$\begin{gathered}
# Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}} + M\Bigr)
# \, C\, U_h, \\
# W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)} \end{gathered} \label{absorbed-latent-attention}$$
#
# with the causal mask $M$. The package has both ways, `latent_attention` (rebuild) and `latent_attention_absorbed`.
# **Predict** whether they agree with RoPE on, and with other positions than $0, 1, 2, \dots$

# %% id="together-code" tags=["predicted"]
from attn_course.reference import LatentWeights, latent_attention
from attn_course.reference import latent_attention_absorbed

shapes = (6, 7), (7, 6), (7, 4), (6, 5), (5, 6), (6, 2), (5, 8), (8, 6)
weights = LatentWeights(*(rng.normal(size=shape) / 2 for shape in shapes))
tokens = rng.normal(size=(9, 6))
for name, where in (("in order", np.arange(9)), ("with gaps", np.arange(9) ** 2)):
    naive = latent_attention(tokens, weights, n_heads=2, positions=where)
    short = latent_attention_absorbed(tokens, weights, n_heads=2, positions=where)
    close = np.abs(naive - short).max() < 1e-12
    print(f"positions {name:9}: largest difference below 1e-12: {close}")

# %% [markdown] id="together-answer" tags=["answer"]
# They agree, with both kinds of positions: the content part knows no positions, so it may be absorbed as before, and both forms compute the
# rotary part in the same way.

# %% [markdown] id="flow-absorbed"
# Absorbed, the same head keeps the same matrices, but $W_{UK}$ has moved to the left, where it lifts the one new query, and
# $W_{UV}$ to the far right, behind the average. No matrix with a row for each token is made any more, except the scores.

# %% id="flow-absorbed-figure"
figures.latent_flow(absorbed=True)

# %% [markdown] id="bytes"
# ## What is kept
#
# For each token and layer, with $b$ bytes for a number:
#
# $$\begin{gathered}
# \text{bytes}_{\text{latent}} = b\,(d_c + d_R), \\
# \text{bytes}_{\text{keys and values}} = 2\, b\, H_{kv}\, d_{\mathrm{head}} \end{gathered}
# \label{latent-cache-bytes}$$
#
# The number of heads is gone. DeepSeek-V2 chose
#
# $$\frac{d_c + d_R}{2\, d_{\mathrm{head}}} = \frac{9}{4} = H_{kv}, \qquad
#  d_c = 4\, d_{\mathrm{head}}, \quad d_R = \tfrac{1}{2}\, d_{\mathrm{head}} \label{latent-cache-equivalent-groups}$$
#
# as many bytes as grouped attention with $H_{kv} = 2.25$ groups (its § 2.1.4). **Predict** the order of these models by bytes per
# token, all layers: Llama 2 7B (32 layers, 32 heads of 128, all kept), Llama 3 8B (the same with 8 key heads), Falcon 7B (32
# layers, one key head of 64), DeepSeek 67B (95 layers, 8 key heads of 128), DeepSeek-V2.

# %% id="bytes-figure" tags=["predicted"]
sizes = [("Llama 2 7B", "multi-head", 32, 128, 32)]
sizes += [("DeepSeek 67B", "grouped", 8, 128, 95)]
sizes += [("Llama 3 8B", "grouped", 8, 128, 32)]
sizes += [("Falcon 7B", "multi-query", 1, 64, 32)]
models = []
for name, kind, n, width, n_layers in sizes:
    cache = costs.cache_bytes_per_token(n, width, width, n_layers=n_layers)
    models.append((name, kind, cache))
cache = costs.latent_cache_bytes_per_token(512, 64, n_layers=60)
models.insert(3, ("DeepSeek-V2", "latent", cache))
figures.cache_sizes(models)

# %% [markdown] id="bytes-answer" tags=["answer"]
# From the most bytes to the fewest the order is Llama 2 7B, DeepSeek 67B, Llama 3 8B, DeepSeek-V2, Falcon 7B. V2, with 236 billion
# parameters, keeps about half of what Llama 3 8B keeps.

# %% [markdown] id="bytes-claim-notice"
# What does a latent vector save at each step of writing, and what does it cost? Move the sliders of the card: at how many heads would
# multi-head attention be as small as the latent cache? And which latent width equals multi-query attention?

# %% id="explorable"
figures.latent_explorable()

# %% [markdown] id="explorable-answer"
# Multi-head attention never gets there with more than two heads of that width: the latent cache equals 2.25. And
# $d_c + d_R = 2 d_{\mathrm{head}} = 256$ with $d_R = 64$ leaves $d_c = 192$ for the size of multi-query attention.

# %% [markdown] id="module"
# ## Measured
#
# `LatentAttention` is the trainable layer, with both forms on one set of weights and one cache; its cache holds what
# {eq}`latent-cache-bytes` says. We fill it with our NumPy weights (`norm=False` leaves out the norms of DeepSeek-V2's latent vectors, which
# our formulas do not have), decode token by token, and weigh the cache: `MeasuredCache` adds up the memory its tensors really
# hold. **Predict** the bytes for 9 tokens in float64 ($d_c = 5$, $d_R = 2$).

# %% id="module-code" tags=["predicted"]
import torch

from attn_course.modules import LatentAttention, MeasuredCache

as_tensors = {name: torch.tensor(w) for name, w in vars(weights).items()}
layer = LatentAttention.from_weights(as_tensors, n_heads=2, norm=False)
layer.requires_grad_(False)
cache, text = MeasuredCache(), torch.tensor(tokens)
forms = ["absorbed" if t % 2 else "naive" for t in range(9)]
steps = [layer(text[t : t + 1], cache=cache, form=form) for t, form in enumerate(forms)]
reference = latent_attention(tokens, weights, n_heads=2, positions=np.arange(9))
print("decoded in mixed forms = full pass:", np.allclose(torch.cat(steps), reference))
print("bytes held:", cache.n_bytes, " by {eq}`latent-cache-bytes`:", 9 * 8 * (5 + 2))

# %% [markdown] id="module-answer" tags=["answer"]
# The cache holds 504 bytes: $5 + 2$ numbers of 8 bytes for each of the 9 tokens, as {eq}`latent-cache-bytes` says. Every other step was
# naive and every other absorbed, and still the outputs are those of a full pass, because both forms keep the same cache.

# %% [markdown] id="measured"
# Now the same layer, larger: heads as in DeepSeek-V2
# ($d_{\mathrm{head}} = 128$, $d_c = 512$, $d_R = 64$), but 8 of them, $d = 256$, float32, one thread of a CPU. Stored are the
# bytes held, the FLOPs that torch counts while it runs, and the CPU time. **Predict** from {eq}`absorption-gain-at-decoding` how many
# times as long the naive step behind 1024 tokens is, in FLOPs and in time.

# %% id="measured-code" tags=["predicted"]
from attn_course.lessons.absorption.experiments import DECODING

measured, forms = DECODING.load(), ("naive", "absorbed")
for name, held in measured.results[0]["bytes per token"].items():
    print(f"{name:20} holds {held:6.0f} bytes per token")
ratios = {}
for kind in ("step", "prompt"):
    for unit in ("flops", "ms"):
        naive, absorbed = (measured.values(f"{kind} {unit}", form) for form in forms)
        ratios[kind, unit] = (naive / absorbed)[:, -1]
print("a step behind 1024 tokens, naive over absorbed:", end=" ")
print("FLOPs", ratios["step", "flops"].round(1))
print("a prompt of 1024 tokens, naive over absorbed:", end=" ")
print("FLOPs", ratios["prompt", "flops"].round(2))

# %% id="measured-figure" tags=["predicted"]
step_ms = [measured.values("step ms", form).mean(axis=0) for form in forms]
figures.step_times(measured.results[0]["lengths"], *step_ms)

# %% [markdown] id="measured-notice" tags=["answer"]
# A step takes 100 times fewer FLOPs when absorbed: {eq}`absorption-gain-at-decoding` says 128 in the limit, and the projections that both
# forms share take their part. In **time** it gains only about ten times: a step also reads weights and cache and starts many small
# operations, which no count of products sees. The cache holds 2304 bytes, exactly $4 \cdot 576$.
#
# A prompt takes 2.4 times the FLOPs when absorbed. The ranking at decoding held for every seed.

# %% [markdown] id="limits"
# ## Limits
#
# - **A trained model cannot simply be cut**: our wide head at rank 2 failed, and keys and values compress only as far as they
#   repeat themselves.
# - **RoPE on the content** forbids absorption; models that have it must be changed and trained on.
# - **Biases**: a key bias cancels only without softcap and rotation; a value bias is a constant only in rows that sum to 1.
# - **Heads on several devices** divide a multi-head cache among them; of the latent cache each device needs all.
# - **Circuits** are exact for one layer. With norms, networks and more layers between, the tables say less (Elhage et al.).

# %% id="verify-lesson"
verify_lesson("absorption")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shape or cost |
# |---|---|---|
# | form, rows | $W = W_Q W_K^\top$, {eq}`absorbed-score` | $(d, d)$, rank at most $d_k$ |
# | form, columns | $X^\top W_K^\top W_Q X$, {eq}`absorbed-scores-in-columns` | softmax down the columns |
# | gauge | $W_Q G,\; W_K G^{-\top}$, {eq}`query-key-gauge-freedom` | $d_k^2$ idle numbers |
# | circuits | $W_h = W_Q^{(h)} W_K^{(h)\top}$, $U_h = W_V^{(h)} W_O^{(h)}$, {eq}`absorbed-multi-head-attention` | where to look, what to write |
# | biases | $b_K$ cancels, {eq}`key-bias-cancels`; $b_V$ becomes $b_V W_O$, {eq}`value-bias-becomes-constant` | no softcap, no RoPE; rows that sum to 1 |
# | latent keys | $q\,(c\,W_{UK})^\top = (q\,W_{UK}^\top)\,c^\top$, {eq}`absorbed-latent-keys` | cache $d_c$ |
# | decoupled | content, absorbed, plus rotary, {eq}`decoupled-rope-score` | scale $1/\sqrt{d_{\mathrm{head}} + d_R}$ |
# | gain | decode about $(d_k + d_v)/2$, {eq}`absorption-gain-at-decoding`; prefill $(d_k + d_v)/(2 d_c)$, {eq}`absorption-loss-at-prefill` | naive over absorbed |
# | bytes | $b\,(d_c + d_R)$, {eq}`latent-cache-bytes` | per token and layer |

# %% [markdown] id="summary"
# ## Summary
#
# - Scores need only $W_Q W_K^\top$ (in columns $W_K^\top W_Q$) and the scale; outputs only $W_V W_O$.
# - Queries and keys are defined up to a gauge: read $W$ and $U$, not single entries of a query.
# - The symmetric part of $W$ scores pairs, the antisymmetric part gives the direction.
# - A key bias cancels in plain attention; a value bias becomes a constant where rows sum to 1.
# - Multiplied out, matrices cost more; re-bracketing pays when few queries meet many short cached vectors.
# - Latent attention keeps $c_t$ and one rotary key: in DeepSeek-V2 2.25 groups' worth for 128 heads.
# - RoPE and up-projection do not commute; decoupled features carry the positions.
#
# Now the [exercises](../work/ex_{lesson}`absorption`_absorption.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - DeepSeek-AI (2024), [arXiv:2405.04434](https://arxiv.org/abs/2405.04434): latent attention (§ 2.1), its sizes, the
#   comparison with 2.25 groups; all formulas in appendix C.
# - N. Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": QK and OV circuits.
# - N. Shazeer (2019), [arXiv:1911.02150](https://arxiv.org/abs/1911.02150), and J. Ainslie et al. (2023),
#   [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): shared key heads.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): the rank of a head.
# - J. Su et al. (2021), [arXiv:2104.09864](https://arxiv.org/abs/2104.09864): rotary positions.
# - Sizes of models: the published `config.json` of each (Llama 2 7B, Llama 3 8B, Falcon 7B, DeepSeek 67B, DeepSeek-V2 and
#   V2-Lite).
