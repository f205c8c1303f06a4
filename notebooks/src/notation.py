# %% [markdown] id="title"
# # {lesson}`notation` Notation: when a text writes attention the other way round
#
# A book says that the output of attention is $V\,\mathrm{softmax}(K^\top Q)$. In this course it is $\mathrm{softmax}(Q K^\top)\, V$.
# (Both leave out the scale here.) Which of the two is wrong? Neither: the book writes a word as a column, and we write it as a row. But
# whoever takes half from the book and half from us may get a program that runs without any error, and whose numbers are wrong.
#
# This is an appendix. No other lesson needs it, and you can read each section on the day when a text or a file of weights looks turned.
#
# **Afterwards you can** translate formulas, matrices and masks between rows and columns, and say what True means in a mask.
# **You need** attention as lesson {lesson}`attention` writes it, and for two sections masks (lesson {lesson}`masking`).
# **Time:** 40 minutes, without the [exercises](../work/ex_{lesson}`notation`_notation.ipynb).

# %% [markdown] id="twice"
# ## One sentence, written twice
#
# In *the cat sat because it was tired*, "it" looks mostly at "cat". In our table of weights this stands in row 5 and column 2, because
# rows ask. A text with columns turns the table, so there it stands in row 2 and column 5:

# %% id="twice-code"
import numpy as np

from attn_course import alive, check, verify_lesson
from attn_course.lessons.notation import figures
from attn_course.reference import softmax
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, W_KEY, W_QUERY, X

query, key, value = QUERY[0], KEY[0], VALUE[0]
P = softmax(query @ key.T / 2)
print("row of it:             ", P[4].round(2))
print("turned, column of it:  ", P.T[:, 4].round(2))
figures.two_orientations(P, tokens=TOKENS)

# %% [markdown] id="where"
# In the machine, this is where each query meets each key, the part that is lit here. In a text with columns not only this table is
# turned, but everything before it and behind it: words, matrices, weights and outputs.

# %% id="machine"
figures.machine()

# %% [markdown] id="explorable-intro"
# Which way of writing attention transposes its tables? Here are ours and four of the six dialects
# which section {section}`dialects` translates. Press *Columns*, and watch the outlined pair.

# %% id="explorable"
figures.notation_explorable()

# %% [markdown] id="explorable-notice"
# <details><summary>What you should see</summary>
#
# Four of the five tables are the same: those dialects differ in their letters, and PyTorch in its masks. *Columns* transposes every
# table, and the pair keeps its weight.
#
# </details>

# %% [markdown] id="projection-columns"
# ## A word and its matrix
#
# We mark what belongs to a text with columns by a $c$, so that a word is $x_c = x^\top$ there. One rule is behind all that follows: to
# transpose a product is to transpose its factors and to exchange them. So $x\, W$ becomes $W^\top x^\top$, and the matrix of a column
# stands on its left:
#
# $$W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W^\top \key{projection-in-columns}$$
#
# Our $W$ has the shape (in, out), and $W_c$ has the shape (out, in). PyTorch mixes the two. Its positions are rows, but the layer
# `nn.Linear` stores $W_c$, and computes $x\, W_c^\top$ (plus a vector of its own, the bias, which we switch off). So our matrix must be
# transposed before it is loaded:

# %% id="projection-torch"
import torch

linear = torch.nn.Linear(5, 4, bias=False, dtype=torch.float64)
print("stored:", tuple(linear.weight.shape))
linear.weight.data = torch.tensor(W_QUERY[0].T)
print("query of it:", linear(torch.tensor(X[4])).detach().numpy())
print("ours:       ", X[4] @ W_QUERY[0])

# %% [markdown] id="order"
# If you mix up the order, NumPy usually complains: the word has 5 numbers, so it fits on the left of $W_Q$, which is (5, 4), but not on
# the right. What if the matrix is square? The smallest example has two features, $x = (1, 0)$, and the matrix
# $$W = \begin{pmatrix} 0 & 1 \\ 0 & 0 \end{pmatrix}$$
# **Predict** $x W$ and $W x$, where NumPy takes $x$ as a column, and whether there is an error.

# %% id="order-code" tags=["predicted"]
x, w = np.array([1, 0]), np.array([[0, 1], [0, 0]])
print("x W =", x @ w, "  W x =", w @ x)

# %% [markdown] id="order-answer" tags=["answer"]
# $x W = (0, 1)$, because the row picks the first row of $W$. $W x = (0, 0)$, because on the right it picks the first column. There is no
# error, since both shapes fit. If a matrix was trained with one order and is loaded into a program with the other, some outputs are wrong
# unless it happens to be symmetric, and nothing complains. So tests in this course give every axis another length wherever the task
# allows it.

# %% [markdown] id="columns-products"
# ## Scores and outputs
#
# One query with one key is a single number, and the dot product has three spellings:
#
# $$\sum_{a=1}^{d_k} q_a k_a = q\, k^\top = q_c^\top k_c \label{dot-product-in-columns}$$
#
# The transpose stands on the key for rows, and on the query for columns. Put on the wrong one, $q^\top k$ of two rows is a whole table
# of products. Press this mistake in the card:

# %% id="columns-alive"
alive("dot-product-in-columns")

# %% [markdown] id="scores-columns"
# All scores together, with $Q_c = Q^\top$ and $K_c = K^\top$, are our table transposed, since $(Q K^\top)^\top = K\, Q^\top$. In it
# rows are keys, and its columns ask:
#
# $$K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top \label{scores-in-columns}$$

# %% [markdown] id="output-turn"
# **Your turn.** {turn}`output-in-columns`

# %% id="output-turn-code" tags=["your-turn"]
my_column_output = ...  # r"..."
check("output-in-columns", my_column_output)

# %% [markdown] id="output-turn-ours" tags=["ours"]
# $O_{ai} = \sum_{j=1}^{T_k} V_{aj} A_{ji}$. The weights of query $i$ stand in column $i$ of $A$, and number $a$ of all values in row $a$
# of $V$. A row times a column is an entry of a product, so $O = V A$, with the values on the left.

# %% [markdown] id="columns-attention"
# The rule of transposition gives the same: $(P V)^\top = V^\top P^\top = V_c\, P^\top$. And what becomes of the softmax? It always runs
# over the keys. These stand along a row of $Q K^\top$ and down a column of its transpose $K_c^\top Q_c$, {eq}`scores-in-columns`, so
# $P^\top$ is the softmax down the columns of the turned scores:
#
# $$V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)
#  = \biggl( \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \biggr)^{\top} \key{attention-in-columns}$$
#
# On our sentence, the two ways agree:

# %% id="attention-alive"
alive("attention-in-columns")

# %% id="columns-code"
from attn_course.notation import columns_from_rows, rows_from_columns

q_c, k_c, v_c = (columns_from_rows(array) for array in (query, key, value))
output = v_c @ softmax(k_c.T @ q_c / 2, axis=0)
print("the same:", np.allclose(rows_from_columns(output), P @ value))

# %% [markdown] id="spot-axis"
# ### Spot the mistake: half a translation
#
# A programmer reads in a book that the output is $V\,\mathrm{softmax}(K^\top Q)$, and sees that positions are columns there. So the
# table of scores is turned, but the softmax still runs along the last axis. Take two words, with the scores
# $$S = \begin{pmatrix} 0 & \ln 3 \\ 0 & 0 \end{pmatrix}$$
# before the table is turned. The first word gives the weights $1/4$ and $3/4$, and the second gives one half to each. **Predict**
# whether after half a translation the rows still sum to 1, and whether the weights do that each word gives.

# %% id="spot-axis-code" tags=["predicted"]
S = np.log([[1, 3], [1, 1]])
mixed = softmax(S.T, axis=-1)
print("each row sums to  ", mixed.sum(axis=1))
print("each word gives   ", mixed.sum(axis=0))
print("as it should be:  ", np.allclose(mixed, softmax(S).T))

# %% [markdown] id="spot-axis-answer" tags=["answer"]
# Each row sums to 1, so a test of the rows notices nothing. But in the turned table the words that ask are the columns, and they
# give 1.25 and 0.75: the first word hands out more attention than it has. Turn the table and the axis of the softmax
# together, or turn neither.

# %% [markdown] id="mask"
# ## Which triangle is hidden
#
# A model that writes must not see the words to come: a causal mask hides key $j$ from query $i$ if $j > i$ (lesson {lesson}`masking`).
# Where these cells lie in the table depends on whether its rows ask or its columns. With $[\,\cdot\,]$ for 1 if true and 0 if not, let $M$
# mark the hidden cells where rows are queries, and $M_c$ where columns are:
#
# $$M_{ij} = [\,j > i\,], \qquad (M_c)_{ji} = [\,j > i\,], \qquad M = M_c^\top \key{causal-mask-in-columns}$$

# %% id="mask-verify"
may_attend = np.tril(np.ones((7, 7), dtype=bool))

# %% [markdown] id="mask-predict"
# **Predict** for the first four words, with columns as queries: in which row are three cells hidden, and in which row none?

# %% id="mask-figure" tags=["predicted"]
four = may_attend[:4, :4]
masked = softmax(np.where(four, query[:4] @ key[:4].T / 2, -np.inf))
figures.two_orientations(masked, four, tokens=TOKENS[:4])

# %% [markdown] id="mask-answer" tags=["answer"]
# In the fourth row, that of "because", three cells are hidden, since the three words before it must not see it. In the first row, that of
# "the", none is. The hidden cells lie in the lower left corner: the transposition has moved them there from the upper right. So "minus
# infinity strictly below the diagonal" is right in one dialect, and in the other it hides the past.

# %% [markdown] id="hidden-turn"
# **Your turn.** {turn}`hidden-in-columns`

# %% id="hidden-turn-code" tags=["your-turn"]
my_hidden = ...  # three whole numbers, such as (1, 2, 3)
check("hidden-in-columns", my_hidden)

# %% [markdown] id="hidden-turn-ours" tags=["ours"]
# The columns ask. The first word may see only itself, so four of its five keys are hidden, and the second word may see two, so three are
# hidden. The second row is the second word as a key: it is hidden only from the first word, which comes before it, so the row has one
# hidden cell.

# %% [markdown] id="spot-polarity"
# ## What True means
#
# True means *may attend* in this course and in PyTorch's `scaled_dot_product_attention`, but *hide* in its `nn.MultiheadAttention`.
# This module stores its matrices as `nn.Linear` does, those for queries, keys and values below each other in one `in_proj_weight`. The
# function `to_torch_weights` transposes ours and packs them in this way.
#
# We put the same weights into the module, and pass our mask, first as it is, then through `invert_mask`. **Predict** what the module gives
# for the last word if the mask is not inverted. In ours, this word may look at all seven.

# %% id="spot-polarity-code" tags=["predicted"]
from attn_course.notation import invert_mask, to_torch_weights
from attn_course.reference import multi_head_attention

rng = np.random.default_rng(0)
x, names = rng.normal(size=(7, 6)), ("w_query", "w_key", "w_value", "w_output")
square = {name: rng.normal(size=(6, 6)) for name in names}
module = torch.nn.MultiheadAttention(6, num_heads=2, bias=False, dtype=torch.float64)
packed = to_torch_weights(square)
module.load_state_dict({name: torch.tensor(array) for name, array in packed.items()})
ours = multi_head_attention(x, x, **square, n_heads=2, mask=may_attend)
token = torch.tensor(x)
for name, mask in (("our mask", may_attend), ("inverted", invert_mask(may_attend))):
    theirs = module(token, token, token, attn_mask=torch.tensor(mask))[0].detach()
    same = np.allclose(ours, theirs.numpy())
    print(f"{name}: as ours {same}, last word {theirs[-1, :2].numpy().round(2)}")

# %% [markdown] id="spot-polarity-answer" tags=["answer"]
# With our mask as it is, the last word gets no number at all (nan). True hides in that module, so the word that may see everything sees
# nothing, and a softmax without any key is 0 divided by 0. All other words see only the future. With the inverted mask the output is ours.

# %% [markdown] id="dialects"
# ## Six dialects
#
# Texts differ in their letters, too. When you open a new one, three questions save most of the trouble:
#
# - What are the lengths called? In one text $d$ is the length of a query, in another that of an output.
# - Does $Z$ come out, or does it go in?
# - Does True in a mask mean "may look", or "is hidden"?
#
# Here are a dictionary of six dialects and a list of letters with several meanings, both folded up. In a terminal,
# `attn-course notation` prints the first, and with `--letters` the second.

# %% id="dialects-table"
from attn_course import notation
from attn_course.figures.folded import folded

known = "\n".join(f"{name}: {sign}" for name, sign in notation.DIALECTS.items())
folded("A dictionary of six dialects (open)", f"{known}\n\n{notation.table()}")
folded("Letters with several meanings (open)", notation.letters())

# %% [markdown] id="absorbed"
# ## One matrix made of two
#
# The last line of the dictionary is a trap. Lesson {lesson}`absorption` compares two words directly, $x$ asking and $y$ answering, with
# one matrix made of two, $W_Q W_K^\top$. Somebody has loaded the stored matrices $W_{Q,c}$ and $W_{K,c}$ from PyTorch. **Predict** which
# of $W_{Q,c}^\top W_{K,c}$ and $W_{K,c}^\top W_{Q,c}$ is our matrix.

# %% id="absorbed-code" tags=["predicted"]
wq_c, wk_c = columns_from_rows(W_QUERY[0]), columns_from_rows(W_KEY[0])
absorbed = W_QUERY[0] @ W_KEY[0].T
print("W_Q^T W_K:", np.allclose(wq_c.T @ wk_c, absorbed))
print("W_K^T W_Q:", np.allclose(wk_c.T @ wq_c, absorbed))

# %% [markdown] id="absorbed-answer" tags=["answer"]
# The first is ours, since $W_{Q,c}^\top$ is $W_Q$ and $W_{K,c}$ is $W_K^\top$. The second is its transpose.

# %% [markdown] id="absorbed-proof"
# Put {eq}`projection-in-columns` into the dot product {eq}`dot-product-in-columns`, and transpose $W_{Q,c}\, x_c$ as a product, to
# $x_c^\top W_{Q,c}^\top$:
#
# $$(W_{Q,c}\, x_c)^\top (W_{K,c}\, y_c) = x_c^\top \bigl( W_{Q,c}^\top W_{K,c} \bigr)\, y_c
#  = x\, \bigl( W_Q W_K^\top \bigr)\, y^\top \label{absorbed-matrix-in-columns}$$
#
# So $W_Q^\top W_K$ in one book and $W_Q W_K^\top$ in another are the same matrix. And why does the dictionary say $W_K^\top W_Q$ for a text
# with columns? It means the matrix inside the turned table, $K_c^\top Q_c = X_c^\top \bigl( W_{K,c}^\top W_{Q,c} \bigr) X_c$, where the
# word that answers stands on the left. That one is the transpose of ours, and gives the same scores.

# %% id="absorbed-verify"
X_c = columns_from_rows(X)
turned = X_c.T @ (wk_c.T @ wq_c) @ X_c
print("it asks cat, in row 2 and column 5 when turned:", turned[1, 4])
print("it asks cat, in row 5 and column 2 of ours:    ", (query @ key.T)[4, 1])

# %% id="verify-lesson"
verify_lesson("notation")

# %% [markdown] id="card"
# ## Formula card
#
# | what, and its shape | formula |
# |---|---|
# | a matrix, (out, in), {eq}`projection-in-columns` | {key}`projection-in-columns` |
# | the output, $(d_v, T_q)$, {eq}`attention-in-columns` | {key}`attention-in-columns` |
# | the hidden cells, $(T_k, T_q)$, {eq}`causal-mask-in-columns` | {key}`causal-mask-in-columns` |

# %% [markdown] id="summary"
# ## Summary
#
# - To translate a text with columns, transpose every table, exchange the factors, and let the softmax run down the columns.
# - If only half is translated, the shapes often fit all the same, and no error says so.
# - `nn.Linear` stores its matrix as (out, in), and computes with its transpose.
# - In columns, what a causal mask hides lies below the diagonal.
# - True means *may attend* in `scaled_dot_product_attention`, and *hide* in `nn.MultiheadAttention`.
#
# Now the [exercises](../work/ex_{lesson}`notation`_notation.ipynb): the first takes three minutes.

# %% [markdown] id="sources"
# ## Sources
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the dialect "transformer".
# - M. Phuong and M. Hutter (2022), [arXiv:2207.09238](https://arxiv.org/abs/2207.09238): algorithms for transformers, written
#   with columns as positions.
# - PyTorch, [Linear](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html): the stored matrix is (out, in).
# - PyTorch, [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html) and
#   [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html):
#   the two meanings of True.
