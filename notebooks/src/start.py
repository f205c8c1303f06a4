# %% [markdown] id="title"
# # {lesson}`start` Start here: what one word takes from the others
#
# *The cat sat because it was tired.* Who was tired? You know at once. How can a machine that only calculates find out what "it" means?
#
# In a language model, words look at each other. This is called **attention**, and in this lesson you build it by hand. But see it at work
# first. The language model SmolLM2, in its smallest size, does this in 270 places, called *heads*. In each head every word shares out its
# attention among itself and the words before it. Run the next two cells: click into a cell and press **Shift+Enter**. (If you see a
# `ModuleNotFoundError`, start the course with `make lab`.)

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()

# %% id="real-row"
text = "The cat sat because it was tired."
tokens = model.tokens(text)
head = model.maps(text)[13, 8]  # layer 13, head 8, both counted from 0
it = tokens.index(" it")  # the model's token includes the space before the word
for token, share in zip(tokens, head[it], strict=True):
    print(f"{token.strip():8} {share:.2f} {'#' * round(40 * share)}")

# %% [markdown] id="real-notice"
# In this head "it" gives 94 percent of its attention to "cat". No rule about pronouns is built in: the model has only learned from texts.
#
# But one word proves little. Which words does each word look at? Press one to see its shares.

# %% id="looks-card"
from attn_course.lessons.start import figures

figures.looks_explorable(head, tokens, first=4)

# %% [markdown] id="real-control"
# Every word after "cat" gives its largest share to "cat", even the full stop. So is "cat" just popular, whoever asks? Put a colour in the
# place of "it":

# %% id="real-swap"
for word in ("it", "blue"):
    text = f"The cat sat because {word} was tired."
    tokens = model.tokens(text)
    row = model.maps(text)[13, 8, tokens.index(" " + word)]
    most = tokens[row.argmax()].strip()
    print(f'"{word}" gives "cat" {row[tokens.index(" cat")]:.2f}, and most to "{most}"')

# %% [markdown] id="where"
# "Blue" hardly looks at the cat, so here the word that asks matters. But this is one pair, in a head that we picked. Lesson
# {lesson}`self_attention` tries many pairs, and also the model without this head.
#
# The lit part of this drawing is what a head does. You need not understand it yet: at the end you will have calculated all of it.

# %% id="machine"
figures.machine()

# %% [markdown] id="how"
# Now we build one head, with numbers that you can multiply without paper.
#
# **You need** matrix products, $e^x$ and a little Python. **Time:** 60 minutes, then the
# [exercises](../work/ex_{lesson}`start`_start.ipynb). At *Predict*, decide first, then run the cell; its output is folded until you do.
# At *Your turn*, replace the dots, and a check judges your answer. *Deeper* sections are folded, and nothing else needs them. What you
# change here is kept in `work/lessons/` and never overwritten.

# %% [markdown] id="hook"
# ## What does "it" look for?
#
# To a machine a word is a list of numbers. A model learns them, hundreds for each word; we choose ours, only three: how much the word is
# *alive*, how much it *tells* what somebody does or is, and how *open* it is, which means that it waits for another word, as a pronoun
# waits for its noun.

# %% id="words"
from attn_course.sentence import CONTENT, TOKENS, labelled

X = CONTENT[:, :3].astype(int)  # a word in each row
print(labelled(X, columns=("alive", "tells", "open")))

# %% [markdown] id="party"
# Imagine that the words meet at a party. Each brings three lists:
#
# - its **query** is a wish: what the word looks for,
# - its **key** is a name badge: what it shows to the others,
# - its **value** is a present, never used up, for everybody who finds the word.
#
# The badge shows the three numbers of the word, and as a fourth *alive* minus *tells*, because "tired" is a little alive too but tells
# more. The wish of "it" is $(2, 0, -2, 2)$: somebody alive, please, not open like "it" itself, and more alive than telling. (In section
# {section}`projections` both come from matrices.) How well does the cat fit this wish?

# %% id="cat"
import numpy as np

from attn_course import check, verify_lesson

query_of_it = np.array([2, 0, -2, 2])
key = np.column_stack([X, X[:, 0] - X[:, 1]])  # the badges, one in each row
print("badge of cat:", key[1])  # Python counts from 0, so "cat" is word 1
print("products:    ", query_of_it * key[1])
print("together:    ", (query_of_it * key[1]).sum())

# %% [markdown] id="cat-notice"
# This sum of products is the dot product of the two lists, and here it is called the **score**. A positive product speaks for a word, and
# a negative one against it. The badge of "tired" is $(1, 2, 0, -1)$, and its fourth number takes back what its first gives:
# $2 \cdot 1 + 2 \cdot (-1) = 0$. Here are all seven scores:

# %% id="hook-code"
scores = key @ query_of_it  # all seven dot products at once
print(labelled(scores[:, None], columns=["score"]))

# %% [markdown] id="hook-answer"
# Only "cat" has a positive score. Not even "it" fits its own wish, since it is open by 2, and the wish counts this with $-2$.

# %% [markdown] id="check-turn"
# **Your turn.** {turn}`scores-by-hand`

# %% id="check-turn-code" tags=["your-turn"]
my_three = ...  # replace the dots by three whole numbers, such as (1, 2, 3)
check("scores-by-hand", my_three)

# %% [markdown] id="check-turn-ours" tags=["ours"]
# With "cat" the score is $2 \cdot 2 + 2 \cdot 2 = 8$. With "sat" it is $1 \cdot 2 + 2 \cdot (-2) = -2$, and with "tired" itself it is
# $2 \cdot 1 + 1 \cdot 2 + 2 \cdot (-1) = 2$.

# %% [markdown] id="weights"
# ## From scores to shares
#
# "Cat" has the score 8, and the next best is 0. How much of its attention should "it" give to the cat? The shares, called **weights**,
# are positive and sum to 1, and three steps make them:
#
# 1. Divide each score by $\sqrt{d_k}$, where $d_k$ is how many numbers a query has. Ours have four, so we divide by 2.
# 2. Raise $e \approx 2.72$ to each result. The power is always positive, and a word that leads by 2 in the score gets $e$ times as much.
# 3. Divide each power by the sum of all seven.
#
# Steps 2 and 3 together are called the *softmax*.

# %% id="weights-table"
half = scores / 2
powers = np.exp(half)
weights = powers / powers.sum()
steps = np.array([scores, half, powers, weights])
names = ("score", "half of it", "e to that power", "weight")
print(labelled(steps, names, columns=TOKENS))
print("sum of the powers:", powers.sum().round(2))

# %% [markdown] id="weights-notice"
# The cat gets 54.60 of 57.60, which is 95 percent. (The table is rounded.) Some weights print as 0.00, but none is zero, because no power of
# $e$ is.
#
# Why the power? The seven scores add up to $-4$, so if we divided them by their own sum, the cat would get $8 / (-4) = -2$. A power of $e$ is
# always positive (lesson {lesson}`softmax` says why it is an exponential). And why the root? Two lists of 4 random numbers, of mean 0 and
# variance 1, typically score about 2 in size, and two lists of 400 about 20, though they fit no better. Divided by the root, both score
# about 1 (lesson {lesson}`scaling`).

# %% [markdown] id="average"
# ## What "it" takes home
#
# Now "it" collects the presents. The value of a word is its first two numbers, *alive* and *tells*. From each word "it" takes the weight
# times the value, and adds up, so it takes home an average of all seven values, in which "cat" counts for 95 percent:

# %% id="average-code"
value = X[:, :2]
parts = weights[:, None] * value
output = parts.sum(axis=0)
columns = ("alive", "tells", "takes alive", "takes tells")
print(labelled(np.hstack([value, parts]), columns=columns, digits=3))
print("the output of it:", output.round(3))

# %% [markdown] id="average-notice"
# This is the output of the head for "it": $(1.91, 0.05)$, almost $(2, 0)$, the value of the cat. A model puts the outputs of its heads
# side by side, multiplies them by one more learned matrix, and adds the result to the numbers of the word that asked.
#
# No step here is a rule about pronouns, though we did choose the numbers so that the head finds the cat. The authors of
# the first Transformer, a model that translates, saw two heads "apparently involved in anaphora resolution", which means finding out what
# a pronoun stands for (Vaswani et al., 2017, appendix).

# %% [markdown] id="because"
# And a word that looks for nothing? The query of "because" is $(0, 0, 0, 0)$. **Predict** which weights it gives to the seven words.

# %% id="because-code" tags=["predicted"]
powers = np.exp(key @ np.zeros(4) / 2)
shares = powers / powers.sum()
print("weights of because:", shares.round(2))
print("output of because: ", (shares @ value).round(2))

# %% [markdown] id="because-answer" tags=["answer"]
# Each word gets $1/7$, about 0.14, because every score is 0 and $e^0 = 1$. So the output is the plain average of all values,
# $(3/7, 5/7)$. Weights sum to 1, so even a word that looks for nothing gives its attention to somebody.

# %% [markdown] id="code-turn"
# Every word takes these steps. **Your turn.** {turn}`output-of-one-query`

# %% id="code-turn-code" tags=["your-turn"]
my_answer = ...  # replace this line by your function, def my_answer(query, ...):
check("output-of-one-query", my_answer)

# %% [markdown] id="code-turn-ours" tags=["ours"]
# Three lines do it, because `@` multiplies and adds up:
#
# ```python
# def my_answer(query, key, value):
#     powers = np.exp(key @ query / np.sqrt(len(query)))
#     weights = powers / powers.sum()
#     return weights @ value
# ```

# %% [markdown] id="projections"
# ## Where queries come from
#
# A model calculates the wishes: the words are the rows of a matrix $X$, the queries are the rows of $Q = X W_Q$, and the matrix $W_Q$ is
# learned. In the same way $K = X W_K$ and $V = X W_V$. A row times a matrix adds up multiples of the rows of this matrix, so the three
# numbers of a word say how many times its query takes each row of $W_Q$:

# %% id="projections-code"
W_Q = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, -1, 1]])
query = X @ W_Q
W_K = np.array([[1, 0, 0, 1], [0, 1, 0, -1], [0, 0, 1, 0]])
print("query of tired:", query[6])
print("X W_K are the keys:", np.array_equal(X @ W_K, key))

# %% [markdown] id="projections-predict"
# "Tired" is *alive* by 1 and *tells* by 2, so its query is $(0, 1, 0, 0) + 2 \cdot (1, 0, 0, 1) = (2, 1, 0, 2)$, as in your first turn.
# **Predict** the query of "cat", whose numbers are $(2, 0, 0)$. What does the cat look for?

# %% id="projections-same" tags=["predicted"]
print("query of cat:", query[1])
print("query of it: ", query[4])

# %% [markdown] id="projections-answer" tags=["answer"]
# It is $(0, 2, 0, 0)$, twice the first row, so the cat looks for words that tell something. "It", which is open by 2, takes twice the
# last row, which is the wish $(2, 0, -2, 2)$ that we gave it.

# %% [markdown] id="learned"
# We chose $W_Q$. A model starts with random numbers, and again and again each moves a little to the side that makes the right next word
# likelier (lesson {lesson}`gradients`). Here we move one, the first of the last row of $W_Q$, from 1 to 1.1:

# %% id="learned-code"
moved = query_of_it + 2 * np.array([0.1, 0, 0, 0])  # "it" takes the last row twice
powers = np.exp(key @ moved / 2)
print(f"cat gets {powers[1] / powers.sum():.3f} instead of {weights[1]:.3f}")

# %% [markdown] id="limits"
# Does it matter where a word stands? Let "cat" and "was" change places: `the was sat because it cat tired`. **Predict** what "it" takes
# home now.

# %% id="order-code" tags=["predicted"]
order = [0, 5, 2, 3, 4, 1, 6]  # "cat" and "was" change places
powers = np.exp(key[order] @ query_of_it / 2)
print("before:", output.round(2))
print("after: ", (powers / powers.sum() @ value[order]).round(2))

# %% [markdown] id="order-answer" tags=["answer"]
# The same, because each word keeps its query, key and value: these numbers do not say where it stands, and the order of terms does not
# change a sum. Lesson {lesson}`self_attention` gives words a place.

# %% [markdown] id="formula"
# ## All words at once
#
# Let $T_q$ words ask $T_k$ words; in our sentence all seven ask all seven. Number $a$ of query $i$ is $Q_{ia}$, and number $a$ of key $j$
# is $K_{ja}$. A matrix product multiplies rows by columns, and column $j$ of $K^\top$ is key $j$, so all scores are
#
# $$\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja} \key{score-entry-by-entry}$$
#
# Formulas count from 1 and Python from 0, so "it" is row 5 here and `query[4]` in the code. For "it" and "cat", $i = 5$ and $j = 2$, this
# is $2 \cdot 2 + 0 \cdot 0 + (-2) \cdot 0 + 2 \cdot 2 = 8$.

# %% [markdown] id="formula-weights"
# The frame marks a formula to keep. Call the table of all scores $S$. Its row $i$ belongs to the word that asks, and the weights of this
# word are powers of $e$, divided by their sum over all words that are asked:
#
# $$P_{ij} = \frac{e^{S_{ij} / \sqrt{d_k}}}{\sum_l e^{S_{il} / \sqrt{d_k}}} \key{weight-entry-by-entry}$$
#
# Number $a$ of its output adds up the weights times number $a$ of the values:
#
# $$\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja} \key{output-entry-by-entry}$$
#
# For "it" and *alive*, $i = 5$ and $a = 1$, this is the 1.913 of section {section}`average`. The second formula is the softmax of each
# row of $S / \sqrt{d_k}$, so together the three are the best-known formula of attention,
# $\mathrm{softmax}\bigl( Q K^\top / \sqrt{d_k} \bigr)\, V$. Here is $P$ for our sentence:

# %% id="formula-table"
S = query @ key.T
powers = np.exp(S / np.sqrt(4))
P = powers / powers.sum(axis=1, keepdims=True)
print(labelled(P, columns=TOKENS))
print("sums of the rows:   ", P.sum(axis=1).round(1))
print("sums of the columns:", P.sum(axis=0).round(1))
print(labelled(P @ value, columns=("alive", "tells")))

# %% [markdown] id="spot"
# Each row sums to 1. A column need not: five words look mostly at "cat". You have now calculated every lit part of the drawing.
#
# **Spot the mistake.** Somebody divides by `powers.sum(axis=0)`. Nothing complains, and all numbers are positive. What is wrong?
#
# <details><summary>What is wrong</summary>
#
# Then the columns sum to 1, and no longer the rows. Ask a single word with two equal queries: each must give it the weight 1, but this
# division makes it $\frac12$.
#
# </details>

# %% [markdown] id="own"
# ## Your own sentence
#
# This cell needs nothing but NumPy and runs anywhere. The sentence is new, and so are its numbers: *person*, *thing*, *open*. The rows of
# `W_Q` say what a person, a thing and an open word look for, and a badge shows just the three numbers. Run the cell, then take a sentence
# of your own, such as `the cup fell because it was full`: give numbers to its noun and its pronoun, and make the one find the other.

# %% id="own-code"
import numpy as np

text = "the girl saw the tree and she climbed it"
sentence = text.split()
numbers = {"the": [0, 0, 1], "girl": [2, 0, 0], "tree": [0, 2, 0]}
numbers |= {"she": [1, 0, 1], "it": [0, 1, 1]}  # person, thing, open; else zeros
X = np.array([numbers.get(word, [0, 0, 0]) for word in sentence])
W_Q = np.array([[4, -4, 0], [-4, 4, 0], [0, 0, -2]])
Q, K, V = X @ W_Q, X, X[:, :2]
powers = np.exp(Q @ K.T / np.sqrt(Q.shape[1]))
P = powers / powers.sum(axis=1, keepdims=True)
for i, word in enumerate(sentence):
    if word in ("she", "he", "they", "it"):
        print(word, "finds", sentence[P[i].argmax()], "and takes", (P @ V)[i].round(2))

# %% id="verify-lesson"
verify_lesson("start")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shapes |
# |---|---|---|
# | all scores, {eq}`score-entry-by-entry` | {key}`score-entry-by-entry` | $(T_q, d_k), (T_k, d_k) \to (T_q, T_k)$ |
# | all weights, {eq}`weight-entry-by-entry` | {key}`weight-entry-by-entry` | $(T_q, T_k)$ |
# | all outputs, {eq}`output-entry-by-entry` | {key}`output-entry-by-entry` | $(T_q, T_k), (T_k, d_v) \to (T_q, d_v)$ |

# %% [markdown] id="summary"
# ## Summary
#
# How can a machine that only calculates find out what "it" means?
#
# - A word has a query, which says what it looks for, a key, by which it is found, and a value, which it hands over.
# - A score is the dot product of a query with a key. The softmax of the scores divided by $\sqrt{d_k}$ turns them into weights.
# - The output of a word is the average of all values, each counted with its weight. So "it" takes home almost what "cat" hands over, because the
#   wish of "it" and the badge of "cat" fit. In a model these numbers are learned.
#
# Now do the [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="needle"
# ## Deeper: What can a query find?
#
# Turn the wish of "it" from somebody alive to what somebody does. The slider sets its query to $(s, 0, -2, s)$, from $s = 2$ at the left,
# the wish that you know, to $s = -2$ at the right. Guess: which word leads at the right end? Where does "it" look when it looks for neither?

# %% id="move-card"
figures.asks_explorable(key, query_of_it, TOKENS, asks=4)

# %% [markdown] id="move-notice"
# <details><summary>What you should see</summary>
#
# At the right end "sat" leads. "Tired" tells as much, but the wish is now against the living. In the middle only *open* counts, so the five
# words that are not open get equal shares, and "the" and "it" less.
#
# </details>

# %% [markdown] id="needle-try"
# Change this query until "because" gets more than 0.9. Mind that its key is all zeros, so its score is 0 whatever
# you ask.

# %% id="needle-code"
my_query = [2, 0, -2, 2]  # as "it" asks: change it
powers = np.exp(key @ my_query / 2)
asked = powers / powers.sum()
print(labelled([key @ my_query, asked], ("score", "weight"), columns=TOKENS))
print("because has more than 0.9:", asked[TOKENS.index("because")] > 0.9)

# %% [markdown] id="needle-notice"
# <details><summary>One way</summary>
#
# All other scores must be negative, so that 0 is the largest. The query `[-10, -10, -10, 0]` gives "because" 0.99.
#
# </details>

# %% [markdown] id="single"
# Now try the same with "was". How far do you get?
#
# <details><summary>How far you can get</summary>
#
# No query gives it even a third. Its key $(0, 1, 0, -1)$ lies halfway between that of "sat", $(0, 2, 0, -2)$, and that of "because",
# $(0, 0, 0, 0)$. A score adds up multiples of the numbers in the key, so the score of "was" lies halfway between theirs, whatever the
# query. So one of these two words always gets at least as much as "was". As two weights sum to 1 at most, "was" gets at most half. A
# *Deeper* section of lesson {lesson}`softmax` brings this down to a third.
#
# </details>

# %% [markdown] id="game"
# ## Deeper: A game, break the machine
#
# This machine works on four of the words, with queries of two numbers. Change any number of $X$ and its matrices $W$, and the others follow. (Its table S
# holds scores divided by $\sqrt{d_k}$, and it counts from 0.) After six trials comes the game: find the mistake.

# %% id="game-card"
from attn_course.game.card import break_the_machine

break_the_machine()

# %% [markdown] id="deeper-map"
# ## Deeper: The lessons, and which builds on which
#
# Each frame of the drawing at the beginning leads to one of these lessons:

# %% id="map-table"
from IPython.display import Markdown, display

from attn_course.numbers import lesson_table

display(Markdown(lesson_table(questions=figures.QUESTIONS)))

# %% [markdown] id="map-arcs"
# Each arc leads from a lesson to one below it, which uses its equations.

# %% id="map-figure"
from attn_course.equations.links import chapter_map

graph = chapter_map()
figures.map_of_chapters(graph.counts, graph.links, graph.titles)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - L. Ben Allal et al. (2025), *SmolLM2: When Smol Goes Big*, [arXiv:2502.02737](https://arxiv.org/abs/2502.02737): the model; ours is
#   the smallest, tuned to follow instructions.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the formula, and two heads at a pronoun.
#
# Next: how does an ordinary dictionary become something that can be trained? Lesson {lesson}`lookup`.
