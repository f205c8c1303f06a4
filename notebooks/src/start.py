# %% [markdown] id="title"
# # {lesson}`start` Start here: how the course works, and a dictionary for its letters
#
# Attention is a softmax, two matrix products and a scale. Every text calls them by other letters, and some turn every
# matrix on its side. This lesson tries your installation, shows how the course works, and gives you a dictionary.
#
# **Afterwards you can** work through any chapter, translate a formula from one dialect into another, and tell which
# axis a softmax and which triangle a mask belongs to.
#
# **You need** matrix products and some Python; nothing about attention. **Time:** 25 minutes, without the
# [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="where"
# This is the machine, and the course takes it apart. Each framed part is a link to the lesson about it. The other lessons change
# the machine: [another score]({lesson}`additive`_additive.ipynb), [a second input]({lesson}`cross_attention`_cross_attention.ipynb),
# [two matrices made into one]({lesson}`absorption`_absorption.ipynb), [no softmax]({lesson}`linear`_linear.ipynb), and
# [the same numbers with less traffic]({lesson}`flash`_flash.ipynb). You need not understand the picture yet.

# %% id="machine"
from attn_course.lessons.start import figures

figures.machine()

# %% [markdown] id="move"
# **Move something first.** Below, the same machine is at work on four words with every number in sight. The first three
# tasks need no more than changing a number or two; they show what queries, keys and values do. Then the game begins: beside the
# machine runs a twin with one mistake, and you find it.

# %% id="move-card"
from attn_course.figures.broken import break_the_machine

break_the_machine()

# %% [markdown] id="environment"
# Click into a cell and press **Shift+Enter** to run it. The next one looks at your installation: Python, packages,
# torch, disk. If something is wrong, it says what, and how to mend it.

# %% id="setup"
try:
    from attn_course.commands.course import find_course
    from attn_course.commands.doctor_checks import essentials, examine, verdict

    print(verdict(essentials(find_course())))
except ModuleNotFoundError as missing:
    print(f"{missing}: this kernel is not the course's; start JupyterLab with `make lab` or `attn-course lab`")

# %% [markdown] id="environment-details"
# Versions differ between machines, so the next cell is *live*: its output is not stored with the course. In a terminal,
# `attn-course doctor` prints the same.

# %% id="environment-live" tags=["live"]
for finding in examine(find_course()):
    print(f"{finding.status:8} {finding.name:13} {finding.text}")

# %% [markdown] id="hook"
# ## Two texts, one formula?
#
# One text says: "the output is $\mathrm{softmax}(Q K^\top)\, V$". Another: "the output is $V\, \mathrm{softmax}(K^\top Q)$".
# A **query** asks, a **key** says what a position contains, a **value** is what it passes on; the softmax (chapter {lesson}`softmax`)
# turns numbers into positive **weights** with sum 1, and the output is an average of values under these weights.
#
# Give both the same four queries, keys and values, as rows. **Predict**: do the outputs agree, perhaps after a transposition?

# %% id="hook-code" tags=["predicted"]
import numpy as np

from attn_course.reference import softmax

np.set_printoptions(precision=2, suppress=True)
rng = np.random.default_rng(0)
query = rng.normal(size=(4, 4))
key = rng.normal(size=(4, 4))
value = rng.normal(size=(4, 4))
first = softmax(query @ key.T) @ value
second = value @ softmax(key.T @ query)
print("the same:", np.allclose(first, second), end="  ")
print("the same when turned:", np.allclose(first, second.T))

# %% [markdown] id="hook-answer" tags=["answer"]
# The outputs do not agree, and transposing one of them does not help. No error message warns us, because all shapes fit.

# %% [markdown] id="hook-notice"
# Both texts mean **the same** attention. The second one writes positions as columns, so its $Q$ is not our `query`, and its
# softmax runs along another axis. Section {section}`columns` translates.

# %% [markdown] id="lessons"
# ## How a lesson works
#
# - Where a text says *predict* in bold, commit to an answer before you run the next cell. Its output is
#   folded until you run the cell; the answer below it is folded until you open it.
# - **Numbered equations** are verified in place: `verify` computes both sides and prints one fixed line. `show` puts
#   small numbers into an equation, or refutes a wrong one.
# - **Explorables** are cards with sliders and buttons; by keyboard: Tab, arrows, Space.
# - **Exercises** are your own copies in `work/`.
# - Does something look odd? *Run → Restart Kernel and Run All Cells*.
#
# Here is the first equation. A text may write one query as a **row** $q$ or as a **column** $q_c = q^\top$ (the
# subscript $c$ marks the dialect of columns). Its product with a key is one number, in three spellings:
#
# $$\sum_{a=1}^{d_k} q_a k_a = q\, k^\top = q_c^\top k_c \label{dot-product-in-columns}$$

# %% id="lessons-code"
from attn_course import show, verify

verify("dot-product-in-columns")
q, k = query[:1], key[:1]
print("rows:", (q @ k.T).shape, " columns:", (q.T.T @ k.T).shape, end="  ")
print("mixed up:", (q.T @ k).shape)

# %% [markdown] id="lessons-wrong"
# The transpose stands on the key for rows, on the query for columns. Mixed up, $q^\top k$ of two rows is a table of
# $d_k \times d_k$ products. Each equation carries such mistakes as formulas, and its check must *reject* them. You can
# watch two of them fail. The first has no meaning, and the second meets a counterexample:

# %% id="lessons-wrong-code"
show("dot-product-in-columns", wrong="q^T k of two rows: a table of d_k x d_k products")
show("dot-product-in-columns", wrong="entry by entry, without the sum")

# %% [markdown] id="columns"
# ## Rows or columns
#
# In this course **rows are positions**: queries are the rows of $Q$, shape $(T_q, d_k)$. With columns as positions
# everything is transposed: $Q_c = Q^\top$ and $K_c = K^\top$. The transpose of a product reverses its factors:
#
# $$K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top \label{scores-in-columns}$$
#
# These are the same scores, with keys in rows and queries in columns. **Predict** along which axis the softmax must run
# there, if the weights of one *query* are to sum to 1.

# %% id="columns-axis" tags=["predicted"]
from attn_course.notation import columns_from_rows, rows_from_columns

q_c, k_c, v_c = (columns_from_rows(array) for array in (query, key, value))
for axis in (0, 1):
    sums = softmax(k_c.T @ q_c, axis=axis).sum(axis=0)
    print(f"softmax along axis {axis}: sum of the weights of each query {sums}")

# %% [markdown] id="columns-answer" tags=["answer"]
# It must run down each column, along axis 0, because a column holds the scores of one query.

# %% [markdown] id="columns-attention"
# In every dialect, weights sum to 1 **over the keys**, and the values stand on the side of the keys:
#
# $$V_c\; \mathrm{softmax}_{\text{columns}}\Bigl( \frac{K_c^\top Q_c}{\sqrt{d_k}} \Bigr)
#  = \biggl( \mathrm{softmax}_{\text{rows}}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V \biggr)^{\top} \label{attention-in-columns}$$
#
# (Chapter {lesson}`scaling` explains the scale $\sqrt{d_k}$.) Now we can mend the two texts: `columns_from_rows` has turned our
# arrays into the other dialect, `rows_from_columns` turns the output back.

# %% id="columns-code"
verify("scores-in-columns", "attention-in-columns")
second = v_c @ softmax(k_c.T @ q_c, axis=0)
print("two texts, one attention:", np.allclose(first, rows_from_columns(second)))

# %% [markdown] id="explorable-intro"
# Which way of writing attention turns its tables on their side? Try the five, and watch the outlined pair. Hide the keys after
# the query, and compare. Change the numbers of queries and keys and predict each shape before you look.

# %% id="explorable"
figures.notation_explorable()

# %% [markdown] id="explorable-notice"
# Four of the five tables are the same: those dialects differ in letters (and PyTorch in its masks, section {section}`mask`). *Columns*
# turns every table: the pair (query 2, key 1) moves from row 2, column 1 to row 1, column 2, with the same weight.

# %% [markdown] id="projections"
# Queries are made from tokens by a learned matrix. A row is multiplied from the right, a column from the left:
#
# $$W_c\, x_c = \bigl( x\, W \bigr)^\top, \qquad W_c = W^\top \label{projection-in-columns}$$
#
# So $W$ is (in, out) for rows, and (out, in) for columns. PyTorch mixes the two: positions are rows, but `nn.Linear` stores
# $W_c$ and computes $x\, W_c^\top$. With as many features out as in, a forgotten transpose raises no error.
#
# Chapter {lesson}`absorption` compares tokens directly, $x$ asking and $y$ answering. Put {eq}`projection-in-columns` into
# {eq}`dot-product-in-columns`:
#
# $$(W_{Q,c}\, x_c)^\top (W_{K,c}\, y_c) = x_c^\top \bigl( W_{Q,c}^\top W_{K,c} \bigr)\, y_c
#  = x\, \bigl( W_Q W_K^\top \bigr)\, y^\top \label{absorbed-matrix-in-columns}$$
#
# $W_Q^\top W_K$ in one book and $W_Q W_K^\top$ in another are the same matrix. **Predict** whether $W_K^\top W_Q$, which stands
# inside $K_c^\top Q_c$, is it too.

# %% id="projections-verify"
verify("projection-in-columns", "absorbed-matrix-in-columns")

# %% id="projections-code" tags=["predicted"]
w_query, w_key = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
wq_c, wk_c = columns_from_rows(w_query), columns_from_rows(w_key)
absorbed = w_query @ w_key.T
print("W_Q^T W_K:", np.allclose(wq_c.T @ wk_c, absorbed), end="  ")
print("W_K^T W_Q:", np.allclose(wk_c.T @ wq_c, absorbed))

# %% [markdown] id="projections-notice" tags=["answer"]
# It is not the same matrix but its transpose, because in $K_c^\top Q_c$ the answering token stands on the left.

# %% [markdown] id="mask"
# ## Which triangle is hidden?
#
# A causal mask hides the keys after the query: key $j$ from query $i$ if $j > i$ (chapter {lesson}`masking`). Where that is in the table
# depends on who owns the rows. With $[\,\cdot\,]$ for 1 if true and 0 if not, let $M$ mark the hidden cells where rows are queries, and
# $M_c$ where columns are:
#
# $$M_{ij} = [\,j > i\,], \qquad (M_c)_{ji} = [\,j > i\,], \qquad M = M_c^\top \label{causal-mask-in-columns}$$
#
# **Predict** in which corner the hidden cells lie when columns are queries.

# %% id="mask-verify"
verify("causal-mask-in-columns")

# %% id="mask-figure" tags=["predicted"]
may_attend = np.tril(np.ones((4, 4), dtype=bool))
scores = np.where(may_attend, query @ key.T / 2, -np.inf)
weights = softmax(scores)
figures.two_orientations(weights, may_attend)

# %% [markdown] id="mask-answer" tags=["answer"]
# They lie in the lower left corner, because the transposition turns everything above the diagonal to below it. So
# "minus infinity strictly below the diagonal" is right in one dialect and hides the *past* in the other.

# %% [markdown] id="spot-axis"
# ### Spot the mistake: half a translation
#
# A programmer moves from rows to columns, takes the new triangle, and leaves the softmax at `axis=-1`. **Predict** which test
# notices: the sum of each row, or the sum of the weights of each query?

# %% id="spot-axis-code" tags=["predicted"]
half = softmax(columns_from_rows(scores), axis=-1)
print("sum over each row:  ", half.sum(axis=1))
print("sum for each query: ", half.sum(axis=0))
print("as it should be:    ", np.allclose(half, columns_from_rows(weights)))

# %% [markdown] id="spot-axis-answer" tags=["answer"]
# Only the sum of each query's weights notices, because the softmax has made every *row* sum to 1, and rows are keys here.
# Turn scores, mask and axis together, or none of them.

# %% [markdown] id="spot-polarity"
# ### Spot the mistake: what does True mean?
#
# `True` means *may attend* in this course and in PyTorch's `scaled_dot_product_attention`, but *hide* in its `nn.MultiheadAttention`.
# We load the same weights into that module (`to_torch_weights` transposes and packs them) and pass our mask, first as it
# is, then through `invert_mask`. **Predict** which output is ours.

# %% id="spot-polarity-code" tags=["predicted"]
import torch

from attn_course.notation import invert_mask, to_torch_weights
from attn_course.reference import multi_head_attention

x, names = rng.normal(size=(4, 6)), ("w_query", "w_key", "w_value", "w_output")
square = {name: rng.normal(size=(6, 6)) for name in names}
module = torch.nn.MultiheadAttention(6, num_heads=2, bias=False, dtype=torch.float64)
packed = to_torch_weights(square)
module.load_state_dict({name: torch.tensor(array) for name, array in packed.items()})
ours = multi_head_attention(x, x, **square, n_heads=2, mask=may_attend)
token = torch.tensor(x)
for name, mask in (("our mask", may_attend), ("inverted", invert_mask(may_attend))):
    theirs, _ = module(token, token, token, attn_mask=torch.tensor(mask))
    print(f"{name}: {np.allclose(ours, theirs.detach().numpy())}")

# %% [markdown] id="spot-polarity-notice" tags=["answer"]
# The output with the inverted mask is ours, because True hides in that module. A mask of the wrong polarity hides what it should show and shows what it should hide, the future.
# (The last token is then left with nothing, and PyTorch answers NaN for it.)

# %% [markdown] id="letters"
# ## One letter, several meanings
#
# Letters are worse than shapes, since nothing fails. **Predict** before you read the table: what may $q$ be, besides a
# query? And what may $W$ be, besides a matrix of parameters?

# %% id="letters-code" tags=["predicted"]
from attn_course import notation

print(notation.letters())

# %% [markdown] id="letters-answer" tags=["answer"]
# $q$ may be the *length* of a query, so that $\sqrt q$ is our $\sqrt{d_k}$; and $W$ may be the attention weights, which are
# computed and not learned.

# %% [markdown] id="letters-notice"
# When you open a text, ask: are positions rows or columns? What are the lengths called? Is $Z$ going in or
# coming out? Does True hide? The dictionary for one dialect:

# %% id="table-code"
print(notation.table("points"))

# %% [markdown] id="table-try"
# Change `"points"` to `"columns"`, `"features"`, `"transformer"`, `"sequences"` or `"torch"`, or leave it out for all six. The left
# column holds the words of this course. A line from each dialect:

# %% id="table-lines"
for name in notation.DIALECTS:
    words = {term.term: term.names.get(name, "-") for term in notation.GLOSSARY}
    print(f"{name:11} d_k: {words['d_k']:11} query: {words['query']:9} output: {words['output']:19} w_query: {words['w_query']}")

# %% [markdown] id="tasks"
# ## Tasks, hints, checks and marks
#
# A task has a card (kind, difficulty, minutes, points), three hints that fold out, a cell for your answer and a check. Task
# {task}`dot-product-table`
# asks for the table of dot products, $Q K^\top$. Here is an answer with a mistake:

# %% id="tasks-code"
from attn_course import check
from attn_course.tasks.notebook import CheckFailed


def my_scores(query, key):
    return key @ query.T


try:
    check("dot-product-table", my_scores)
except CheckFailed as failed:
    print("the check has raised", type(failed).__name__)

# %% [markdown] id="tasks-notice"
# The check ran the function on several cases, compared, and **recognised the mistake by its numbers**. Every task knows
# several mistakes by name; for another one you get the first wrong element and the largest error.
#
# Loops, einsum, torch: write as you like. A check that fails stops "Run All"; one that passes prints one fixed line, the
# same on every machine, so that it can be compared:

# %% id="tasks-ok"
from attn_course.tasks import get_task

print(get_task("dot-product-table").ok_line)

# %% [markdown] id="marks"
# **What a check is worth.** In your notebook it is advice: anyone can edit a notebook. Marks for a class come from a
# confined grader, which runs answers on fresh cases and trusts no cell of yours. In a terminal, `attn-course check` runs all your
# exercises afresh with pristine checks, and `attn-course progress` shows what you have passed; that record stays on your machine.

# %% [markdown] id="map"
# ## The map
#
# Each registered equation says which earlier ones it uses. Counted over the whole course, that is a map. **Predict** which
# chapter is used most by the others.

# %% id="map-figure" tags=["predicted"]
from attn_course.equations.links import chapter_map

graph = chapter_map()
figures.map_of_chapters(graph.counts, graph.links, graph.titles)

# %% [markdown] id="map-answer" tags=["answer"]
# Chapter {lesson}`softmax` is used most, because all weights come out of a softmax, and so do their gradients.

# %% [markdown] id="map-notice"
# The usual way through the map leads from top to bottom; before a chapter out of order, read those
# from which thick arcs lead to it. These are the lessons:

# %% id="map-table"
from IPython.display import Markdown, display

from attn_course.authoring.lessons import lesson_table

display(Markdown(lesson_table()))

# %% [markdown] id="limits"
# ## Limits
#
# - Converters turn arrays, not meanings: whether a text's $W$ is learned or computed, only the text can tell.
# - Six dialects are not all; and heads add axes in front, which have dialects too (chapter {lesson}`heads`).
# - `verify` reads the formula as printed and tries it on numbers, at the sizes in its line: strong evidence, no proof.
# - The map counts citations between formulas, not the effort to learn them.

# %% [markdown] id="card"
# ## Formula card
#
# | what | rows are positions | columns are positions |
# |---|---|---|
# | one score, {eq}`dot-product-in-columns` | $q\, k^\top$ | $q_c^\top k_c$ |
# | all scores, {eq}`scores-in-columns` | $Q K^\top$, $(T_q, T_k)$ | $K_c^\top Q_c$, $(T_k, T_q)$ |
# | softmax, {eq}`attention-in-columns` | along each row | down each column |
# | output, {eq}`attention-in-columns` | weights times $V$, $(T_q, d_v)$ | $V_c$ times weights, $(d_v, T_q)$ |
# | projection, {eq}`projection-in-columns` | $x W$, (in, out) | $W_c x_c$, (out, in) |
# | absorbed matrix, {eq}`absorbed-matrix-in-columns` | $W_Q W_K^\top$ | $W_{Q,c}^\top W_{K,c}$ |
# | hidden by a causal mask, {eq}`causal-mask-in-columns` | strictly above the diagonal | strictly below |

# %% [markdown] id="summary"
# ## Summary
#
# - Rows are positions here; a text with columns turns every table, and reverses every product.
# - Weights sum to 1 over the keys, whatever the axis is called.
# - Scores, mask and softmax axis are translated together, or not at all.
# - True may mean "may attend" or "hide"; most letters have two meanings or more.
# - Predict, run, notice; checks advise.
#
# Now the first task, two minutes: the [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the dialect "transformer".
# - M. Phuong and M. Hutter (2022), [arXiv:2207.09238](https://arxiv.org/abs/2207.09238): algorithms for transformers, written
#   with columns as positions.
# - PyTorch, [MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html) and
#   [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html):
#   the two meanings of True.
#
# Next: attention as a lookup in a soft dictionary.
