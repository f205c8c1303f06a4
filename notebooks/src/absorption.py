# %% [markdown] id="title"
# # {lesson}`absorption` Absorption: a key that nobody makes
#
# DeepSeek-V2, a language model of 2024, has 128 heads in each of its 60 layers. Each head has a key and a value of 128 numbers for every
# token, $2 \cdot 128 \cdot 128 = 32\,768$ numbers in a layer. A layer keeps only 576 for a token, and none of these is among them. All
# keys and values can be made from the 576, but to write a word the model need not make them. **How can a query be compared with a key that
# nobody has made?**
#
# **You need** lessons {lesson}`self_attention` and {lesson}`heads`. **Time:** 60 minutes, without *Deeper* sections and the
# [exercises](../work/ex_{lesson}`absorption`_absorption.ipynb).

# %% [markdown] id="hook"
# ## What is kept, and what it would cost
#
# How much does that save, and what would it cost to make the keys when they are needed? We count for a text of 131,072 tokens, with numbers
# of two bytes:

# %% id="hook-code"
tokens, layers = 131_072, 60
for name, numbers in {"all keys and values": 32_768, "what is kept": 576}.items():
    print(f"{name:20} {2 * numbers * layers * tokens / 2**30:6.1f} GiB")
again = 2 * tokens * 512 * 32_768 * layers  # from 512 of the 576; 64 are for positions
print(f"making them again    {again / 1e12:6.0f} TFLOP, for each new token")

# %% [markdown] id="where"
# The large cache would fill more than six GPUs of 80 GB, and the small one a corner of one. But making all keys and values again would
# take 6,000 times the arithmetic of all the weights that a token passes (21 billion, two operations each, 0.04 TFLOP), for every word that
# is written. So there must be a way around the keys. It begins at the two matrices that lead from $X$ to the scores:

# %% id="machine"
from attn_course.lessons.absorption import figures

figures.machine()

# %% [markdown] id="one-matrix"
# ## One matrix for two
#
# Let us look at a key that we know. In our sentence *the cat sat because it was tired*, "it" found "cat" with a dot product of 8. "It" has
# only the feature `open`, which is 2, so its query is twice that row of $W_Q$, $q = 2 \cdot (1, 0, -1, 1)$. "cat" has only `alive`, also 2,
# so its key is twice that row of $W_K$, $k = 2 \cdot (1, 0, 0, 1)$. (Both have places too, but their rows in $W_Q$ and $W_K$ are 0.) Hence
# $q \cdot k = 2 \cdot 2 \cdot (1 + 0 + 0 + 1) = 8$.
#
# The bracket belongs to no token. It says how much one who is *open* asks for one who is *alive*, and there is such a number for each pair of
# features:

# %% id="table-code"
from attn_course.sentence import FEATURES, TOKENS, W_KEY, W_QUERY, X, labelled

W = W_QUERY[0] @ W_KEY[0].T  # rows ask, columns answer; those of cos and sin are 0
print(labelled(W[:3, :3], rows=FEATURES[:3], columns=FEATURES[:3]))
cat, it = TOKENS.index("cat"), TOKENS.index("it")
print("it asks cat:", X[it] @ W @ X[cat], "  cat asks it:", X[cat] @ W @ X[it])

# %% [markdown] id="score"
# With this table we need neither queries nor keys. In general, with a head's matrices $W_Q$ and $W_K$ ($d \times d_k$),
#
# $$(x_i W_Q)\,(x_j W_K)^\top = x_i\, W\, x_j^\top, \qquad W = W_Q W_K^\top \key{absorbed-score}$$
#
# because $(x_j W_K)^\top = W_K^\top x_j^\top$, and a product of matrices may be bracketed at will. We say that $W_K$ is **absorbed** into
# the query's side. Run the next cell, and on its card give $W_K$ the numbers of $W_Q$. What becomes of the table of scores?

# %% id="score-alive"
import numpy as np

from attn_course import alive, check, verify_lesson

alive("absorbed-score")

# %% [markdown] id="score-notice"
# Then score $(i, j)$ equals score $(j, i)$, because $W = W_Q W_Q^\top$ is its own transpose. With most other matrices it matters which way
# round $W$ stands.

# %% [markdown] id="spot"
# ### Spot the mistake: which way round?
#
# Somebody concludes: "As only the matrix $W = W_K W_Q^\top$ matters, the weights of self-attention without a mask are
# $\mathrm{softmax}(X W X^\top / \sqrt{d_k})$." The scale is right, with $d_k = 4$, the width before absorbing. **Predict** what is wrong;
# the shapes do not show it.

# %% id="spot-code" tags=["predicted"]
from attn_course.reference import softmax

W_Q, W_K = W_QUERY[0], W_KEY[0]
tables = {
    "as somebody says": X @ W_K @ W_Q.T @ X.T / 2,
    "as it should be": X @ W_Q @ W_K.T @ X.T / 2,
}
for name, table in tables.items():
    weights = softmax(table)
    print(f"{name:16} it gives cat {weights[it, cat]:.2f}, ", end="")
    print(f"cat gives it {weights[cat, it]:.2f}")

# %% [markdown] id="spot-answer" tags=["answer"]
# "It" does not find "cat", because the matrix stands the wrong way round: the row of "cat" shares out its weight among the tokens that
# look *for* "cat".

# %% [markdown] id="layer"
# ## A layer is two matrices for each head
#
# Can we do without the values of the tokens too? We can, because $W_V$ and $W_O$ are neighbours as well. $P$ acts from the left and mixes
# tokens; $W_V$ and $W_O$ act from the right and mix features. Hence $(P\,(X W_V))\,W_O = P\,X\,(W_V W_O)$, and the average may be taken of
# the tokens themselves. A layer adds up its heads (lesson {lesson}`heads`), each with its columns of $W_V$ and its rows of $W_O$. Without
# mask, biases, rotation and norms of queries and keys,
#
# $$\begin{gathered}
# \mathrm{MultiHead}(X) = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{X W_h X^\top}{\sqrt{d_k}}\Bigr)\, X\, U_h, \\
# W_h = W_Q^{(h)} W_K^{(h)\top}, \quad U_h = W_V^{(h)} W_O^{(h)} \end{gathered} \key{absorbed-multi-head-attention}$$
#
# $W_h$ says where a head looks, and $U_h$ what it writes. Layer 13 of SmolLM2 has a mask and a rotation, but they act on $P$ only: with the
# model's own $P$, and with what leaves the norm as $X$, nine products $U_h$ return what the layer adds to the stream, up to rounding
# (section {section}`columns`).

# %% [markdown] id="between"
# ## What may stand between?
#
# Real models are not so tidy, and three things can disturb the product $W_Q W_K^\top$. A *bias* of the queries puts a row beside $W$; that of
# the keys adds the same to all scores of a row, which the softmax ignores (section {section}`columns`). Where queries and keys are divided
# by their lengths (*QK-norm*), these are needed too, one number each for a token and head. The third is a *rotation*, and most models have
# it. Layer 13, head 8 of SmolLM2 is the head that gives "cat" the weight 0.94 when "it" asks
# (lesson {lesson}`start`). Its two matrices are stored with the course, and we absorb them:

# %% id="trained-absorbed"
from attn_course.lessons.heads.tasks_real import slices

x, w_query, w_key = (slices()[name] for name in ("x", "w_query", "w_key"))
W_scaled = w_query @ w_key.T / np.sqrt(64)
print("out of the norm", x.shape, " W_Q", w_query.shape, " W", W_scaled.shape)

# %% [markdown] id="trained-predict"
# The model itself uses RoPE: query $i$ is turned by angles that grow with $i$, and key $j$ by the same angles for $j$ (lesson
# {lesson}`self_attention`). In the GGUF file that the course loads, neighbouring columns of $W_Q$ and $W_K$ turn together (in the published
# weights, columns $i$ and $i + 32$). Our $W$ knows nothing of turns. **Predict** which of the 64 scores between the eight tokens are still right.

# %% id="trained-code" tags=["predicted"]
from attn_course.reference import rope

places = np.arange(8)  # the base is 100,000; a pair is two neighbours, as in our file
query, key = (rope(x @ w, places, 100_000.0, "interleaved") for w in (w_query, w_key))
scores = {"turned, as in the model": query @ key.T / 8}
scores["with one matrix"] = x @ W_scaled @ x.T
for name, of_pairs in scores.items():
    weights = softmax(np.where(np.tri(8) > 0, of_pairs, -np.inf))
    print(f"{name}: it gives cat the weight {weights[4, 1]:.2f}")
figures.two_scores(scores, ["The", "cat", "sat", "because", "it", "was", "tired", "."])

# %% [markdown] id="trained-answer" tags=["answer"]
# Only the eight scores of a token with itself are right, because query and key are then turned by the same angles, and a dot product does
# not notice that. The others are wrong, some by more than 1. Yet this head still finds "cat" for "it".

# %% [markdown] id="rotation"
# With $R_t$ for the turn at position $t$, which acts on a row from the right,
#
# $$(x_s W_Q R_s)\,(x_t W_K R_t)^\top = x_s W_Q\, R_{s - t}\, W_K^\top\, x_t^\top \label{rope-blocks-absorption}$$
#
# since $R_s R_t^\top = R_{s - t}$. The rotation stands *between* the two matrices, and it is another one at every distance. So one matrix
# is not enough, and a way around keys has to find a way around rotations too. We come back to that.

# %% [markdown] id="pays"
# ## When does it pay?
#
# So far absorbing costs more. The factors of our trained head hold $2 \cdot 576 \cdot 64 = 73\,728$ numbers, but $W$ holds
# $576^2 = 331\,776$, and scores made with it compare vectors of 576 entries instead of 64. So absorb on paper, to understand a head, and leave
# the factors in the machine.

# %% [markdown] id="cache"
# When a model writes with a cache, this changes, because many tokens answer and one asks. DeepSeek-V2 makes keys and values in two steps.
# A matrix takes a token *down*: its **latent vector** $c_t$ is $x_t W_{DKV}$, normalised, with $d_c = 512$ numbers. It is kept. For each
# head, two matrices take $c_t$ *up*, to the key $c_t W_{UK}$ and the value $c_t W_{UV}$.

# %% [markdown] id="latent"
# Now let one new token ask. Its query $q$ meets all keys:
#
# $$q\,(c_j W_{UK})^\top = \bigl(q\, W_{UK}^\top\bigr)\, c_j^\top \key{absorbed-latent-keys}$$
#
# On the left $W_{UK}$ is applied to every token of the past. On the right the query absorbs it, once, and is then compared with the latent
# vectors themselves. With values it is the same from the other side: $\sum_j p_j\,(c_j W_{UV})$ equals $\bigl(\sum_j p_j\, c_j\bigr) W_{UV}$,
# so the latent vectors are averaged, and only the average goes up. They serve as keys *and* as values, for all heads. What is lost is
# rank: the $32\,768$ numbers of a token depend on 512 numbers, and could else depend on the 5,120 of $x_t$.

# %% [markdown] id="step-turn"
# **Your turn: a step in which no key is made.** {turn}`step-among-latents`

# %% id="step-turn-code" tags=["your-turn"]
my_step = ...  # your function
check("step-among-latents", my_step)

# %% [markdown] id="step-ours" tags=["ours"]
# ```python
# def my_step(query, latent, up_key, up_value):
#     outputs = []
#     for q, up_k, up_v in zip(query, up_key, up_value):  # head by head
#         terms = np.exp(latent @ (up_k @ q) / np.sqrt(len(q)))  # (T,)
#         outputs.append(terms @ latent / terms.sum() @ up_v)
#     return np.array(outputs)
# ```

# %% [markdown] id="weigh"
# We weigh your step against one that makes all keys and values:

# %% id="steps"
from attn_course.lessons.absorption import tasks_turns as ours
from attn_course.reference import attention


def rebuilt(query, latent, up_key, up_value):
    key, value = latent @ up_key, latent @ up_value  # (H, T, d_k), (H, T, d_v)
    return attention(query[:, None], key, value)[:, 0]


step = ours.my_step.answer if my_step is ... else my_step

# %% [markdown] id="weigh-predict"
# The sizes are those of DeepSeek-V2: 128 heads with keys and values of width 128, and latent vectors of 512 numbers, with $T = 1\,024$
# tokens kept. **Predict** about how many times as many products of two numbers `rebuilt` takes as your step.

# %% id="weigh-code" tags=["predicted"]
rng, H, T, d_c, d_k = np.random.default_rng(0), 128, 1024, 512, 128
up_key, up_value = rng.standard_normal((2, H, d_c, d_k), dtype=np.float32) / 20
latent = rng.standard_normal((T, d_c), dtype=np.float32)
query = rng.standard_normal((H, d_k), dtype=np.float32)
inputs = query, latent, up_key, up_value
print("same outputs:", np.allclose(rebuilt(*inputs), step(*inputs), atol=1e-4))
made, met = T * d_c * d_k + T * d_k, d_c * d_k + T * d_c  # for one head's scores
print(f"{made / 1e6:.2f} and {met / 1e6:.2f} million products: factor {made / met:.0f}")

# %% [markdown] id="weigh-answer" tags=["answer"]
# The first takes 114 times as many. For the scores, `rebuilt` has $T\, d_c\, d_k$ products to make the keys and $T\, d_k$ to compare them;
# your step has $d_c\, d_k$ to lift the query, once, and $T\, d_c$ to compare. The values take as many again. With all keys and values kept,
# fewer products would do than in your step, but the cache would hold $32\,768$ numbers for a token instead of 512.

# %% [markdown] id="weigh-prompt"
# Reading a prompt is another matter. If all $T$ tokens ask, each latent vector goes up once for $T$ queries, while the absorbed form
# compares vectors of 512 numbers instead of 128. So it pays to read a prompt with keys, and to write without them.

# %% [markdown] id="decouple"
# ## And the rotation?
#
# A rotation between $q$ and $W_{UK}^\top$ would stand in the way, by {eq}`rope-blocks-absorption`. So DeepSeek-V2 gives the positions
# features of their own. The content is not turned: $q^C$ is the query of before, $k_t^C = c_t W_{UK}$ its key, and the matrix is absorbed.
# Beside it stands a **rotary part** that is not absorbed: each query has 64 more features $q^R$, turned, and each token has *one* key
# $k_t^R = x_t W_{KR}$ of 64, turned. All heads share it, so that it costs 64 numbers, not $128 \cdot 64$. As rows in two parts,
#
# $$[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = q^C \cdot k^C + q^R \cdot k^R \label{decoupled-rope-score}$$
#
# Only $c_t$ and $k_t^R$ are kept, $512 + 64 = 576$ numbers. The scale is the root of both widths together, $\sqrt{128 + 64}$.

# %% [markdown] id="rotary-turn"
# **Your turn: one row for both parts.** Your step needs no new line, if it gets the row $[\,c_t,\, k_t^R\,]$ as the latent vector, a wider
# matrix that makes the key $[\,k_t^C,\, k_t^R\,]$ of it and, for the value, $W_{UV}$ with rows of zeros under it. {turn}`key-with-rotary-part`

# %% id="rotary-turn-code" tags=["your-turn"]
my_wide = ...  # your function
check("key-with-rotary-part", my_wide)

# %% [markdown] id="rotary-ours" tags=["ours"]
# ```python
# def my_wide(up_key, d_rope):
#     n_heads, d_c, d_k = up_key.shape
#     wide = np.zeros((n_heads, d_c + d_rope, d_k + d_rope))
#     wide[:, :d_c, :d_k] = up_key
#     wide[:, d_c:, d_k:] = np.eye(d_rope)
#     return wide
# ```

# %% [markdown] id="together"
# So where queries are $x_t W_Q$, a layer is {eq}`absorbed-multi-head-attention` with the latent vectors $C$ in the place of the second and
# the third $X$, $W_h = W_Q^{(h)} W_{UK}^{(h)\top}$ and $U_h = W_{UV}^{(h)} W_O^{(h)}$, with the rotary scores added and the new scale and
# a mask inside the softmax. (DeepSeek-V2 makes its queries of latent vectors too, section {section}`count`.) Here one token goes through
# one head; of all that grows with the text, only $C$ and $K^R$ are kept:

# %% id="flow-figure"
figures.latent_flow(absorbed=True)

# %% [markdown] id="own"
# ## Your own latent layer
#
# Now let your step work inside a layer that reads one token at a time. It has 8 heads, and keeps the row $[\,c_t,\, k_t^R\,]$ of each of 20
# tokens ($c_t$ is not normalised). `w["rotary"]` holds a matrix for each head's $q^R$ and, last, $W_{KR}$:


# %% id="own-layer"
def write(tokens, w, attend):
    kept, outputs = [], []
    for t, x in enumerate(tokens):
        turned = rope(x @ w["rotary"], np.full(H + 1, t))
        kept.append(np.append(x @ w["down"], turned[-1]))
        query = np.hstack([x @ w["query"], turned[:-1]])
        heads = attend(query, np.array(kept), w["up_key"], w["up_value"])
        outputs.append(heads.ravel() @ w["output"])
    return np.array(outputs)


# %% id="own-weights"
wide = ours.my_wide.answer if my_wide is ... else my_wide
H, d, d_c, d_k, d_rope = 8, 32, 12, 6, 4
shapes = {"down": (d, d_c), "query": (H, d, d_k), "rotary": (H + 1, d, d_rope)}
shapes |= {"up_key": (H, d_c, d_k), "up_value": (H, d_c, d_k), "output": (H * d_k, d)}
w = {name: rng.normal(size=shape) / 4 for name, shape in shapes.items()}
w["up_key"] = wide(w["up_key"], d_rope)
w["up_value"] = np.pad(w["up_value"], [(0, 0), (0, d_rope), (0, 0)])

# %% id="own-compared"
text = rng.normal(size=(20, d))
print("same outputs:", np.allclose(write(text, w, rebuilt), write(text, w, step)))
print("kept of a token:", d_c + d_rope, "numbers; its keys and values:", 2 * H * d_k)

# %% [markdown] id="own-notice"
# Each of the 8 heads has keys and values of its own, 96 numbers for a token. Only 12 others and a rotary key of 4 were kept, and your step
# has made none of the 96. Give the layer more heads: both ways still agree, and with `H = 16` the last line says 16 and 192.

# %% id="verify-lesson"
verify_lesson("absorption")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula |
# |---|---|
# | two into one, {eq}`absorbed-score` | {key}`absorbed-score` |
# | a layer without mask, bias, rotation and QK-norm, {eq}`absorbed-multi-head-attention` | {key}`absorbed-multi-head-attention` |
# | latent keys, {eq}`absorbed-latent-keys` | {key}`absorbed-latent-keys` |

# %% [markdown] id="summary"
# ## Summary
#
# - If nothing disturbs the products, scores need only $W_Q W_K^\top$ and the scale; once the weights are given, outputs need only
#   $W_V W_O$. A bias of the query leaves a row beside $W$; a rotation needs another $W$ at every distance.
# - Against making all keys again, absorbing saves products where few queries meet many tokens: in writing, not in reading. Against keeping
#   all, it saves memory.
#
# How can a query be compared with a key that nobody has made? The matrix that would make the key changes sides: the query takes it along,
# and meets what is kept. Only positions need a key that is there. Lesson {lesson}`linear` gives up the softmax; first come the
# [exercises](../work/ex_{lesson}`absorption`_absorption.ipynb).

# %% [markdown] id="columns"
# ## Deeper: how far does a matrix travel?
#
# Many texts have tokens as columns, with $W_Q$ and $W_K$ of shape $d_k \times d$. There a matrix moves to the other side of an inner
# product as its transpose, and with a softmax down each column the keys stand in rows:
#
# $$\langle W_Q\, z,\; W_K\, z' \rangle = \bigl\langle z,\; W_Q^\top W_K\, z' \bigr\rangle \label{absorbed-inner-product}$$
#
# $$Z = X\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{X^\top W_K^\top W_Q\, X}{\sqrt{d_k}}\Bigr)
# \label{absorbed-attention-in-columns}$$
#
# where the tokens themselves are the values, and $Z$ is the output.

# %% [markdown] id="travel"
# With rows again, $W_V$ passes through every average, because $P$ acts on the other side, and so does the up-projection of latent values:
#
# $$\bigl(P\,(X W_V)\bigr)\, W_O = P X\, (W_V W_O) \label{absorbed-value-projection}$$
#
# $$\Bigl( \sum_j p_j\, (c_j W_{UV}) \Bigr) W_O = \Bigl( \sum_j p_j\, c_j \Bigr) \bigl( W_{UV} W_O \bigr) \label{absorbed-latent-values}$$
#
# Layer 13 of SmolLM2 has three value matrices for nine heads, each used by three. If the model is on your machine, the cell compares nine
# products with the layer:

# %% id="layer-code" tags=["live"]
from attn_course import language_model

model, sentence = language_model(), "The cat sat because it was tired."
if model.is_here:
    layer, P = model.layer(13), model.maps(sentence)[13]
    values = np.split(layer.w_value, 3, axis=1)
    U = np.repeat(values, 3, axis=0) @ np.split(layer.w_output, 9)
    normed, returned = model.around_heads(13, sentence)
    for bits, rows in {16: x, 32: normed}.items():
        error = np.abs((P @ rows @ U).sum(axis=0) - returned).max()
        print(f"tokens in {bits} bits: error {error:.5f}")
    print(f"numbers up to {np.abs(returned).max():.1f}")

# %% [markdown] id="travel-on"
# Here the error was 0.0014 with the tokens that are stored, in 16 bits, and 0.00001 with the model's own, beside numbers up to 11.3.
#
# One text goes on to absorb $U$ into the feed-forward network that follows. But what follows reads $X + P X U$, and even without
# the norm that stands there, the path beside the layer needs $W_1$ as it is:
#
# $$\bigl( X + P X\, U \bigr)\, W_1 = X W_1 + P X\, (U W_1) \label{residual-blocks-absorption}$$

# %% id="travel-code"
from attn_course import show

show("residual-blocks-absorption", wrong="one matrix for both paths")

# %% [markdown] id="between-biases"
# A bias gives a score three more terms. With rows $b_Q$ and $b_K$,
#
# $$\begin{gathered}
# (x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top \\
# = x_i W x_j^\top + x_i W_Q\, b_K^\top + b_Q W_K^\top x_j^\top + b_Q\, b_K^\top \end{gathered} \label{score-with-biases}$$
#
# Behind these scores comes a softmax over the keys $j$, and it ignores what is the same for all keys of a row.

# %% [markdown] id="bias-turn"
# **Your turn: what must be kept?** {turn}`head-with-biases-absorbed`

# %% id="bias-turn-code" tags=["your-turn"]
my_absorbed = ...  # your function
check("head-with-biases-absorbed", my_absorbed)

# %% [markdown] id="bias-ours" tags=["ours"]
# With `root = np.sqrt(w_query.shape[1])` it returns `w_query @ w_key.T / root, b_query @ w_key.T / root`.

# %% [markdown] id="travel-bias"
# So where scores are only scaled and masked before the softmax, the key's bias has no effect, and the query's bias stays as a preference
# for some keys, whoever asks ($l$ runs over the keys):
#
# $$\begin{gathered}
# \sigma_l\bigl((x_i W_Q + b_Q)\,(x_l W_K + b_K)^\top\bigr)_j \\
# = \sigma_l\bigl(x_i W x_l^\top + b_Q W_K^\top x_l^\top\bigr)_j \end{gathered} \label{key-bias-cancels}$$
#
# The value's bias travels as well, if rows of weights sum to 1, as they do not behind dropout or in a row that may look at nothing:
#
# $$P\, (X W_V + \mathbf{1}\, b_V)\, W_O = P X\, W_V W_O + \mathbf{1}\, (b_V W_O) \label{value-bias-becomes-constant}$$
#
# When does a key's bias matter after all: with a causal mask, with a softcap ($c \tanh(s / c)$ instead of $s$), or with RoPE on the biased
# key?

# %% id="travel-biases"
rows, both = rng.normal(size=(5, 4)), rng.normal(size=(2, 4, 2))
b_query, b_key = rng.normal(size=(2, 2))
options = {"causal": {"is_causal": True}, "softcap": {"softcap": 2.0}, "RoPE": {}}
for name, option in options.items():
    place = np.arange(5) * (name == "RoPE")  # the others stand at place 0
    query = rope(rows @ both[0] + b_query, place)
    keys = (rope(rows @ both[1] + b, place) for b in (0, b_key))
    plain, biased = (attention(query, key, rows, **option) for key in keys)
    print(f"{name:8} the key's bias matters: {not np.allclose(plain, biased)}")

# %% [markdown] id="travel-notice"
# A mask takes keys away and leaves the constant alone. A softcap bends large scores more than small ones, and RoPE turns the bias by
# another angle at every key, so there the term is no constant.

# %% [markdown] id="read"
# ## Deeper: what may be read off one matrix?
#
# Does one token look at another as the other looks at it? Split $W$ into a part that its transpose leaves alone, and one whose sign it
# changes, $W = W_+ + W_-$ with $W_+ = \tfrac{1}{2} (W + W^\top)$ and $W_- = \tfrac{1}{2} (W - W^\top)$. The first scores a pair, whoever
# asks, and it is all that a token's score with itself knows:
#
# $$x\, W\, x^\top = x\, W_+\, x^\top \label{self-score-symmetric-part}$$
#
# The second adds to one direction what it takes from the other, and so tells a question from its answer.
# Our trained head finds a noun for a pronoun. Which of the two parts does it use?

# %% id="read-code"
W = W_scaled
parts = {"W": W, "W+": (W + W.T) / 2, "W-": (W - W.T) / 2}
for name, part in parts.items():
    pairs = x @ part @ x.T
    weights = softmax(np.where(np.tri(8) > 0, pairs, -np.inf))
    print(f"{name:2} it asks cat {pairs[4, 1]:5.2f}, cat asks it {pairs[1, 4]:5.2f}")
    print(f"   it gives cat the weight {weights[4, 1]:.2f}")

# %% [markdown] id="read-notice"
# In this score both have nearly equal parts: "it" asks for "cat", but "cat" does not ask for "it". Left to themselves, the parts give "cat" 0.41
# and 0.80.

# %% [markdown] id="gauge"
# If only $W$ acts, what may be read off a query? Put any invertible $G$ ($d_k \times d_k$) between the two matrices, with its inverse:
#
# $$(W_Q\, G)\,\bigl(W_K\, G^{-\top}\bigr)^\top = W_Q\, W_K^\top \label{query-key-gauge-freedom}$$

# %% id="gauge-code"
G = np.random.default_rng(0).normal(size=(4, 4))
query, key = X @ W_QUERY[0] @ G, X @ W_KEY[0] @ np.linalg.inv(G).T
print("the query of it was", (X @ W_QUERY[0])[it], "and is", query[it].round(1))
print("its score with cat is", (query[it] @ key[cat]).round(6))

# %% [markdown] id="gauge-meaning"
# Queries and keys have changed, and no score. In a word borrowed from physics, $G$ is a choice of **gauge**, and "entry 1 of the query asks
# for somebody alive" is true in one gauge and false in the next. What may be read is $W$, of rank at most $d_k$.
#
# But with RoPE $R_{s - t}$ stands between $G$ and its inverse. We gave every key head of SmolLM2 and its queries another gauge, drawn at
# random: for each of the 32 pairs of features that RoPE turns a turn and a stretch (the inverse stretch for the keys), or any orthogonal
# matrix, or any matrix. Here is the perplexity on four texts (roughly,
# between how many next tokens the model hesitates):

# %% id="real-code"
from attn_course.lessons.absorption.experiments_smollm2 import SMOLLM2

gauges = SMOLLM2.load()
print(f"{'as trained':27}", gauges.values("trained").round(1))
for kind in ("pairs turned and stretched", "orthogonal", "any"):
    best = gauges.values(kind, "perplexity").min(axis=1)  # the better of two draws
    print(f"{kind:27}", best.round(1))
print(f"{'trained, without rotations':27}", gauges.values("without rotations").round(1))

# %% [markdown] id="real-answer"
# Only the first kind changes nothing. The rotations forbid nearly all others, and without rotations no gauge moves any logit by more than 0.001. But
# one matrix for each head is, without new training, a worse model, as the last line shows.
#
# For one pair of features, turned by the angle $\theta$, and a $G$ of $2 \times 2$,
#
# $$R_\theta G - G R_\theta = \sin(\theta)\, (J G - G J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}
# \label{rotation-commutator}$$
#
# So for $\sin\theta \ne 0$ a matrix commutes with the turn only if it commutes with the quarter turn $J$, and then it is a turn times a
# number. So of the $64^2 = 4\,096$ numbers of $G$ RoPE leaves 64 free, as all 32 angles differ.

# %% [markdown] id="count"
# ## Deeper: from how many new tokens on is absorbing a loss?
#
# Below, *factored* applies one matrix after the other, as your step does, and *absorbed* has multiplied $W_Q W_K^\top$ out before. For the
# scores of one head and $T$ new tokens, with a multiply-add as 2 FLOPs,
#
# $$F_{\mathrm{factored}} = 4\,T d\, d_k + 2\,T^2 d_k, \qquad F_{\mathrm{absorbed}} = 2\,T d^2 + 2\,T^2 d
# \label{factored-and-absorbed-flops}$$
#
# so without a latent vector absorbing is always a loss, if $d_k \le d / 2$. With latent vectors, from the query to the outputs of $H$ heads,
# one new token takes, if all keys and values are made again (*naive*) or by your step,
#
# $$\begin{gathered}
# F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \\
# F_{\mathrm{factored}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c \end{gathered}
# \label{latent-decoding-flops}$$
#
# Rebuilding is done once for all new tokens, and everything else for each of them.

# %% [markdown] id="count-layer"
# In DeepSeek-V2 the queries come from latent vectors as well, $C^Q = X W_{DQ}$, normalised. With $Q_h^R$ for the turned rows of $C^Q W_{QR}^{(h)}$,
# $K^R$ for the rows $k_t^R$, $M$ for the causal mask, and $d_{\mathrm{head}} = 128$ and $d_R = 64$ for the widths of $q^C$ and $q^R$, a
# layer returns
#
# $$\begin{gathered}
# Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}} + M\Bigr)
# \, C\, U_h, \\
# W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)} \end{gathered} \label{absorbed-latent-attention}$$
#
# Here is one whole layer, projections included, for some of 4,096 tokens:

# %% id="count-code"
from attn_course import costs

widths = {"d_query_latent": 1536, "d_latent": 512, "d_rope": 64}
v2 = costs.LatentSizes(d_model=5120, n_heads=128, d_head=128, d_v=128, **widths)
for form in ("naive", "factored", "absorbed"):
    new = (1, 64, 171, 1024, 4096)
    flops = [costs.latent_attention_flops(v2, n, 4096, form=form) / 1e9 for n in new]
    print(f"{form:9}", *(f"{n:8.1f}" for n in flops))

# %% [markdown] id="count-notice"
# The last line multiplies $W_{UQ} W_{UK}^\top$ and $W_{UV} W_O$ out, and is above the second everywhere, for what saves is
# the order of the products, not a new matrix. Exercise {task}`absorption-break-even` finds where the first two lines cross.
#
# The cache is the same in all three. For each token and layer, with $b$ bytes a number,
#
# $$\begin{gathered}
# \text{bytes}_{\text{latent}} = b\,(d_c + d_R), \\
# \text{bytes}_{\text{keys and values}} = 2\, b\, H_{kv}\, d_{\mathrm{head}} \end{gathered}
# \label{latent-cache-bytes}$$
#
# so 576 numbers are as many as $2.25$ shared key heads and their values would take. But heads that share read the same keys,
# while here all 128 have keys of their own.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - DeepSeek-AI (2024), [arXiv:2405.04434](https://arxiv.org/abs/2405.04434): latent attention (§ 2.1), its sizes; all formulas in appendix C.
# - N. Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": a head as two matrices, where to look and what to write.
# - S. Bhojanapalli et al. (2020), [arXiv:2002.07028](https://arxiv.org/abs/2002.07028): the rank of a head.
# - J. Su et al. (2021), [arXiv:2104.09864](https://arxiv.org/abs/2104.09864): rotary positions.
