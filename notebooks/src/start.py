# %% [markdown] id="title"
# # {lesson}`start` Start here: what one word takes from the others
#
# *The cat sat because it was tired.* Who was tired? You knew at once. But how can a machine
# find out what "it" means, if it can only calculate? The part of a language model in which words look at each other
# is called **attention**. Here you do it by hand, in small whole numbers.
#
# **Afterwards you can** calculate what one word takes from the others, make a word look where you want or prove that it cannot, and read
# attention as code and as a formula.
#
# **You need** matrix products, $e^x$, a little Python. **Time:** 55 minutes, an hour with the game's whole warm-up, then
# [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="plan"
# ## The first ten minutes
#
# A word can look at other words. Click into the next cell and press **Shift+Enter**. (If it stops with a `ModuleNotFoundError`, start the
# course with `make lab`.) The lines lead from "it" to all words, and a line is thicker where "it" looks more.
# The slider changes what "it" is looking for. What must "it" look for to find the cat?

# %% id="move-card"
from attn_course.lessons.start import figures
from attn_course.sentence import KEY, QUERY, TOKENS

figures.asks_explorable(KEY[0], QUERY[0][4], TOKENS, asks=4)

# %% [markdown] id="where"
# The slider turns one screw of a small machine, and here is the whole of it. Do not try to understand it yet: we are
# going to walk through it with one word, and only the mask waits for lesson {lesson}`masking`. Every framed part is a link to the lesson
# that takes it apart.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ### How does a line get its thickness?
#
# To a machine a word is a list of numbers. A model learns them; ours were chosen so that you can do every product in your head.
# Now imagine that the words meet at a party, and each of them brings three more lists:
#
# - its **query** is a wish: what the word is looking for ("it": *somebody alive, whom I can stand for*),
# - its **key** is a name badge: it describes the word to those who are looking ("cat": *I am alive*),
# - its **value** is a present for all who find it, and it is never used up.
#
# "It" goes from badge to badge and asks how well each fits its wish. Here it meets the cat. Run this cell, and then those below it.

# %% id="cat"
import numpy as np

wish_of_it = np.array([2, 0, -2, 2])
badge_of_cat = np.array([2, 0, 0, 2])

total = 0
for wish, badge in zip(wish_of_it, badge_of_cat, strict=True):
    total += wish * badge
    print(wish, "times", badge, "is", wish * badge, "and the total is", total)

# %% [markdown] id="cat-notice"
# The four numbers say how much a word is **alive**, how much it **tells** what somebody does or is, how **open** it is (it needs another
# word, as a pronoun does), and *alive* minus *tells*. So "it" looks for something alive, which finds the cat, and not for another open
# word.
#
# We multiplied wish and badge number by number, and added up. Two numbers of the same sign speak for a word, two of opposite signs
# against it. This is the **dot product** of two lists, and its result is called the **score**. Here are all seven badges, and the wish
# of "it" once more:

# %% id="keys"
from attn_course import check
from attn_course.lessons.start import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, X, labelled

query, key, value = QUERY[0], KEY[0], VALUE[0]
print(labelled(key, columns=("alive", "tells", "open", "alive - tells")))
print("query of it:", query[4])

# %% [markdown] id="keys-notice"
# One such set of wishes, badges and presents is called a **head**. Our machine has two, and `[0]` takes the first, because Python counts
# from 0. So "it", the fifth word, is `[4]`.
#
# Let us ask "tired". Only the living are tired, so its badge says a little of *alive*, but it tells even more:
#
# $$2 \cdot 1 + 0 \cdot 2 + (-2) \cdot 0 + 2 \cdot (-1) = 0$$
#
# What speaks for "tired" and what speaks against it cancel out.

# %% [markdown] id="hook-predict"
# **Predict.** The key of "sat" is $(0, 2, 0, -2)$, and the key of "it" itself is $(0, 0, 2, 0)$. Which scores does "it" have with
# these two? Write your answer down before you run the cell. Until then its output is folded; the answer below it opens
# with a click.

# %% id="hook-code" tags=["predicted"]
scores = key @ query[4]
print(labelled(scores[:, None], columns=("score",)))

# %% [markdown] id="hook-answer" tags=["answer"]
# Both scores are $-4$. In "sat" the last number counts against it, $2 \cdot (-2)$, because a verb is not alive but tells something.
# The word "it" does not even fit itself, $(-2) \cdot 2$, because it looks for no other open word. Of all seven words only "cat" has a
# positive score.

# %% [markdown] id="check-turn"
# ### Your turn
#
# **Check an answer.** The word "tired" has a wish too, since somebody must be tired. Its query is $(2, 1, 0, 2)$. Calculate its scores
# with "cat", "sat" and "tired" on paper, from the badges above. Then put three whole numbers in the place of the dots, such as
# `(1, 2, 3)`, and run the cell. As long as the dots are there, the check waits.

# %% id="check-turn-code" tags=["your-turn"]
my_three = ...  # three whole numbers
check("scores-by-hand", my_three)

# %% [markdown] id="weights"
# ## From scores to an answer
#
# The cat has 8, and the next best has 0. How much of its attention should "it" give to the cat? We want shares, which are positive and
# sum to 1. They are called **weights**, and are made in three small steps:
#
# 1. Divide each score by 2, the root of 4, since a query has four numbers: longer lists tend to make larger sums
#    (lesson {lesson}`scaling` says why it is the root).
# 2. Raise $e \approx 2.72$ to each result. That is always positive, and whoever leads by 2 in the score gets $e$ times as much.
# 3. Divide by the sum of all seven.
#
# Steps 2 and 3 are the **softmax** (lesson {lesson}`softmax` says why it is $e$). With $s_j$ for the score of word $j$, its weight is
#
# $$p_j = \frac{e^{s_j / 2}}{e^{s_1 / 2} + e^{s_2 / 2} + \dots + e^{s_7 / 2}}$$

# %% id="weights-table"
from attn_course.reference import softmax

scores = key @ query[4]
half = scores / 2
powers = np.exp(half)
weights = powers / powers.sum()
steps = np.array([scores, half, powers, weights])
names = ("score", "half of it", "e to that power", "weight")
print(labelled(steps, names, columns=TOKENS))
print("sum of the powers:", powers.sum().round(2))
print("softmax gives the same:", np.allclose(softmax(half), weights))

# %% [markdown] id="average"
# The cat gets 54.6 of 57.6, which is 95 percent. The smallest weights print as 0.00, but none of them is zero.
#
# Now "it" collects its presents. A value has three numbers here: *alive*, *tells*, and *alive* minus *open*. From every word "it"
# takes as much as the weight says: weight times value, all seven added up. Since the cat counts for 95 percent of this average, the
# result is close to its present:

# %% id="weights-code"
pairs = zip(weights, value, strict=True)
parts = np.array([weight * present for weight, present in pairs])
output = parts.sum(axis=0)
presents = ("alive", "tells", "alive - open")
print(labelled(value, rows=[f"{word} gives" for word in TOKENS], columns=presents))
print("it takes:")
print(labelled([*parts, output], rows=[*TOKENS, "together"], columns=presents))

# %% [markdown] id="meaning"
# And what does "it" do with that? The last step of the machine adds it to what the word was before: five numbers, *alive*,
# *tells*, *open*, and two for its place. The matrix below says where ours go: the first is added to *alive*, the second to *tells*, and the
# third is **subtracted** from *open*. (The second head adds a part of its own, which we leave out.)

# %% id="meaning-code"
from attn_course.sentence import FEATURES, W_OUTPUT

print(labelled(W_OUTPUT[:3, :3], ("1st", "2nd", "3rd"), columns=FEATURES[:3]))
after = X[4] + output @ W_OUTPUT[:3]
rows = ("it, before", "it, after", "cat")
print(labelled([X[4][:3], after[:3], X[1][:3]], rows, columns=FEATURES[:3]))

# %% [markdown] id="meaning-notice"
# Look at what has just happened. Before, "it" was only an open word, and nothing in it said what it stood for. Now it is alive, and
# hardly open any more, since $2 - 1.90 = 0.10$. It has almost the numbers of "cat". The word came to the
# party with a wish, and it goes home with the answer. Here is the whole evening in one picture:

# %% id="step-figure"
figures.one_step(weights, value, X[:, :3], after[:3], TOKENS, asks=4, found=1)

# %% [markdown] id="head"
# Compare, weigh, take the average. That is the whole evening in three lines, for whatever guest comes. No line is about pronouns. The head
# finds the cat because of the numbers in its lists, and these we chose so that it would. A model has to learn them.


# %% id="head-code"
def taken_home(wish, badges, presents):
    """What a word with this wish takes home from the party."""
    powers = np.exp(badges @ wish / np.sqrt(len(wish)))
    weights = powers / powers.sum()
    return weights @ presents


guests = ("it", "tired")
taken = [taken_home(query[TOKENS.index(guest)], key, value) for guest in guests]
print(labelled(taken, [f"{guest} takes" for guest in guests], columns=presents))

# %% [markdown] id="story"
# Pronouns are an old test for machines. In 2012 Levesque, Davis and Morgenstern collected sentences like this: *the
# trophy does not fit in the suitcase because it is too big*. What is too big? Put *small* in the place of *big*, and suddenly "it" is
# the other thing. (Ours is the easy case: it has one candidate.) Five years later the authors of the Transformer
# drew what their model, trained to translate, does at the word "its", and found two heads "apparently involved in anaphora
# resolution" (Vaswani et al., 2017, appendix), which means finding out what a pronoun stands for. Nobody had asked for them.

# %% [markdown] id="because"
# ## Now you ask
#
# What if a word has no wish at all? The query of "because" is $(0, 0, 0, 0)$. **Predict** its seven weights, and the three
# numbers that it takes home. The seven values are printed above.

# %% id="because-code" tags=["predicted"]
shares = softmax(key @ query[3] / 2)
print("weights of because:", shares.round(2))
print("because takes home:", (shares @ value).round(2))

# %% [markdown] id="because-answer" tags=["answer"]
# All seven weights are $1/7$, about 0.14. A query of zeros makes every score 0, and $e^0 = 1$ for every word, so the shares are equal. What
# "because" takes home is therefore the plain average of all values, $(3/7, 5/7, 0)$, which is about $(0.43, 0.71, 0)$. Weights always sum
# to 1, so even a word without a wish has to give its attention to somebody.

# %% [markdown] id="looks"
# Whom does each word look at? Press one of the seven, and follow its lines. Then choose the second
# head, which was made so that each word looks at the one before it. But it tells places apart by a clock with only six hours, and
# the seventh word is back at the hour of the first. For which two of the
# seven words does the second head fail? And what becomes of the lines if the scores are divided by a larger number than 2?

# %% id="looks-card"
figures.looks_explorable(QUERY, KEY, VALUE, TOKENS, first=4)

# %% [markdown] id="looks-notice"
# <details><summary>What you should see</summary>
#
# In the first head five words look mostly at "cat", "because" looks at all alike, and "cat" looks at what is told of it. In the second,
# "the" has no word before it, and looks at "was", which stands at the hour before its own. And "cat" looks at "the" and "tired" alike, the
# first word and the seventh, which share one hour (lesson {lesson}`self_attention` builds better clocks). With a larger divisor the largest
# weight of a word falls and its smallest rises, both towards 1/7. Only the weights of "because" in the first head, which are 1/7 already,
# stay.
#
# </details>

# %% [markdown] id="needle"
# ### A wish of your own
#
# The badges stay as they are, and the wish is yours. Change its four numbers and run the cell again, until "because" gets more than 0.9.
# That sounds hopeless, because its badge is all zeros, and its own score is 0 whatever you ask. Then try the same for "was".

# %% id="needle-code"
my_query = [2, 0, -2, 2]  # alive, tells, open, alive - tells; now as "it" asks
asked = softmax(key @ my_query / 2)
print(labelled([key @ my_query, asked], ("score", "weight"), columns=TOKENS))
print("because has more than 0.9:", asked[TOKENS.index("because")] > 0.9)

# %% [markdown] id="needle-notice"
# <details><summary>What you should see</summary>
#
# For "because", all other scores must be negative: `[-10, -10, -10, 0]` gives it 0.99. For "was" nothing helps. You can bring it close to
# one third, but never there.
#
# </details>

# %% [markdown] id="single"
# ### A word that nobody can single out
#
# Why does "was" never get a third, whatever you wish for? Its badge $(0, 1, 0, -1)$ lies halfway
# between that of "sat", $(0, 2, 0, -2)$, and that of "because", $(0, 0, 0, 0)$. A score adds up multiples of the numbers on the badge, so
# the score of "was" always lies halfway between theirs. It never leads.

# %% [markdown] id="single-root"
# Let $h_j = s_j / 2$ be the half score of word $j$, and $N$ the sum of all seven powers. The half score of "was" lies halfway too, and
# $e^{(a+b)/2} = \sqrt{e^a e^b}$, so
#
# $$p_\text{was} = \frac{e^{(h_\text{sat} + h_\text{because})/2}}{N} = \sqrt{\frac{e^{h_\text{sat}}}{N} \cdot
# \frac{e^{h_\text{because}}}{N}} = \sqrt{p_\text{sat}\; p_\text{because}}$$
#
# For positive $a$ and $b$, $(\sqrt a - \sqrt b)^2 \ge 0$ says that $2 \sqrt{a b} \le a + b$. So $2\, p_\text{was} \le p_\text{sat} +
# p_\text{because}$. These two and "was" leave something to the other four words, so the right side is less than $1 - p_\text{was}$.
# Together, $3\, p_\text{was} < 1$. How close can you come?

# %% id="single-code"
for size in (2, 10, 20):
    asked = softmax(key @ [-size, 0, -size, 0] / 2)
    print("size", size, "gives was", asked[TOKENS.index("was")].round(5))

# %% [markdown] id="limits"
# ## What our head does not see
#
# A word's wish and badge are made from its numbers (section {section}`formula` says how), and this head leaves out the two for the place.
# So it takes no notice of the order of the words. Shuffle the sentence, and "it" finds the cat wherever the cat stands:

# %% id="limits-code"
from attn_course.sentence import W_KEY, W_QUERY

order = np.random.default_rng(0).permutation(7)
moved = np.hstack([X[order, :3], X[:, 3:]])  # the words move, the places stay
wishes, badges = moved @ W_QUERY[0], moved @ W_KEY[0]
shuffled = [TOKENS[j] for j in order]
print("shuffled:", shuffled)
print("weights: ", softmax(badges @ wishes[shuffled.index("it")] / 2).round(2))

# %% [markdown] id="limits-predict"
# Nor can it tell two words apart if they wear the same badge. **Predict**: a second cat comes in at the end of the sentence. Which weight
# does each cat get?

# %% id="limits-second" tags=["predicted"]
two_cats = np.vstack([key, key[1]])
print(softmax(two_cats @ query[4] / 2).round(2))

# %% [markdown] id="limits-answer" tags=["answer"]
# Each cat gets 0.49. Both have the score 8, so they share alike, and only a little is left for the others: 54.6 of the new sum,
# $57.6 + 54.6$. Taken together the two cats get a little more than the one did before.

# %% [markdown] id="limits-notice"
# One caution: we know why this head looks at the cat, for we built it. What a trained head looks at must be measured, and a large weight
# alone does not prove that a word is the reason for what a model says (lesson {lesson}`self_attention`).

# %% [markdown] id="game"
# ## Break the machine
#
# Here is a machine for four of the words, and every number in it can be changed. Its warm-up has six trials. Do the first now: it takes
# two minutes. The other five take six minutes more, now or later. Then comes a game: find the mistake in a broken machine.

# %% id="game-card"
from attn_course.figures.broken import break_the_machine

break_the_machine()

# %% [markdown] id="formula"
# ## One formula for all words
#
# So far one word asked. Let all of them ask at once: write the queries as the rows of a matrix $Q$, and the keys as the
# rows of $K$. Then $Q_{ia}$ is number $a$ of query $i$, and the score of query $i$ with key $j$ is
#
# $$\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja} \key{score-entry-by-entry}$$
#
# where $d_k$ is the length of a query, here 4. A matrix product multiplies rows by columns, and column $j$ of $K^\top$ is key $j$.
# The frame marks a formula to keep. `verify` tries both of its sides on random numbers; `show` puts in
# the numbers of "it" (word 5) and "cat" (word 2).

# %% id="formula-code"
from attn_course import show, verify

verify("score-entry-by-entry")
show("score-entry-by-entry", Q=query, K=key, i=5, j=2)
table = query @ key.T
print("scores at once, Q times K transposed, without the row of tired:")
print(labelled(table[:6], rows=TOKENS[:6], columns=TOKENS))

# %% [markdown] id="formula-turn"
# **Write a formula; your turn.** Let $P_{ij}$ be the weight that query $i$ gives to key $j$, with $T_q$ queries and $T_k$ keys, and let
# $V_{ja}$ be number $a$ of value $j$. Write number $a$ of what query $i$ takes home, called $Z_{ia}$, with $P$ and $V$. Answer in LaTeX,
# as the sum above is written: `r"\sum_{a=1}^{d_k} Q_{ia} K_{ja}"`.

# %% id="formula-turn-code" tags=["your-turn"]
my_output = ...  # r"..."
check("output-as-formula", my_output)

# %% [markdown] id="projections"
# ### Where queries come from
#
# A word's wish is made from its own numbers by a matrix, $Q = X W_Q$, which a model learns. Keys and values are made in the same way,
# $K = X W_K$ and $V = X W_V$. A row times a matrix takes multiples of the rows of that matrix and adds them up. The word "it" is
# $(0, 0, 2, -1, -1)$, with its place at the end. The rows of the place are zero in this $W_Q$, so the query is twice the third row:

# %% id="projections-code"
print(labelled(W_QUERY[0], rows=(*FEATURES[:3], "place", "place")))
print("it:", X[4], " times W_Q:", X[4] @ W_QUERY[0])
print("twice the third row:      ", 2 * W_QUERY[0][2])

# %% [markdown] id="rows"
# ### Rows ask, columns are asked
#
# In this course every word is a row, from the input to the output. So "it" asks "cat" in row 5 and column 2 of the table, and
# the softmax runs along each row. Each row of $P$ sums to 1; a column need not, since many words look at "cat". Your sum is a
# matrix product too, $Z = P V$. So the whole party fits into one line, the best-known formula of attention and the subject of lesson
# {lesson}`attention`:
#
# $$Z = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V$$

# %% id="rows-code"
P = softmax(query @ key.T / np.sqrt(4))
Z = P @ value
print("rows of P sum to   ", P.sum(axis=1))
print("columns of P sum to", P.sum(axis=0).round(1))
arrays = {
    "X, a row is a word": X,
    "Q, a row is a query": query,
    "K, a row is a key": key,
    "P, a row is one word's weights": P,
    "V, a row is a value": value,
    "Z, a row is what one word takes home": Z,
}
for name, array in arrays.items():
    print(f"{name:37} {array.shape}")

# %% [markdown] id="rows-entry"
# The last product, written out for number $a$ of what query $i$ takes home, is the formula of your turn:
#
# $$\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja} \key{output-entry-by-entry}$$

# %% id="rows-entry-code"
verify("output-entry-by-entry")

# %% [markdown] id="turned"
# ### When a text looks turned
#
# Many books write a word as a **column**, $Q_c = Q^\top$ and $K_c = K^\top$ (the $c$ says so). To transpose a product is to
# transpose its factors and to exchange them, so $Q K^\top$ becomes $K Q^\top$. Here $K$ is $K_c^\top$, and $Q^\top$ is $Q_c$:
#
# $$K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top \key{scores-in-columns}$$
#
# The same table is turned over, and now the columns ask. If a formula looks the wrong way round, find out first whether its words
# are rows or columns. Lesson {lesson}`notation` translates the rest; here is a dictionary of six dialects:

# %% id="turned-verify"
from attn_course import notation
from attn_course.figures.folded import folded

verify("scores-in-columns")
turned = key @ query.T
print("it asks cat, row by column:", table[4, 1], "and when turned:", turned[1, 4])
known = "\n".join(f"{name}: {sign}" for name, sign in notation.DIALECTS.items())
folded("A dictionary of six dialects (open)", f"{known}\n\n{notation.table()}")

# %% [markdown] id="map"
# ## How the course works, and the map
#
# <details><summary>Predictions, turns, exercises, and where your work lies</summary>
#
# - `Predict`: decide first, then run the cell. The answer below it opens with a click.
# - `Your turn`: replace the dots. It counts for no points.
# - `Deeper` in a heading: you may leave this out at first.
# - The **exercises** have points, hints and a check, which tries your answer on several cases. It names the mistakes that it
#   knows; otherwise it says what is true of your result, such as which number differs first. Try it: put
#   `\frac{1}{T_k}` in front of your sum above.
#
# Your exercises lie in the folder `work/`, your copies of the lessons in `work/lessons/`, and nothing overwrites them.
# In a terminal, `attn-course` lists what else there is.
#
# </details>
#
# Read the lessons from top to bottom. Beside each stands the question that it answers. In the figure, arcs lead to the lessons that build on
# it.

# %% id="map-table"
from IPython.display import Markdown, display

from attn_course.authoring.lessons import lesson_table

display(Markdown(lesson_table(questions=figures.QUESTIONS)))

# %% id="map-figure"
from attn_course.equations.links import chapter_map

graph = chapter_map()
figures.map_of_chapters(graph.counts, graph.links, graph.titles)

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shapes |
# |---|---|---|
# | all scores, {eq}`score-entry-by-entry` | {key}`score-entry-by-entry` | $(T_q, d_k)$ and $(T_k, d_k)$ make $(T_q, T_k)$ |
# | all outputs, {eq}`output-entry-by-entry` | {key}`output-entry-by-entry` | $(T_q, T_k)$ and $(T_k, d_v)$ make $(T_q, d_v)$ |
# | all in one line, lesson {lesson}`attention` | $\mathrm{softmax}\bigl( Q K^\top / \sqrt{d_k} \bigr)\, V$ | $(T_q, d_v)$ |
# | the scores of a text with columns, {eq}`scores-in-columns` | {key}`scores-in-columns` | $(T_k, T_q)$ |

# %% [markdown] id="summary"
# ## Summary
#
# - A query is a wish, a key is the badge that it is compared with, and a value is what the word hands over.
# - A score is the dot product of a query with a key; divided by $\sqrt{d_k}$ and put through the softmax, scores become weights; the output
#   is the average of the values.
# - Weights sum to 1, even for a word that looks for nothing.
# - A head whose wishes and badges leave out the place does not see the order of the words. No head can tell equal keys apart.
# - Rows ask, columns are asked.
#
# Now the [exercises](../work/ex_{lesson}`start`_start.ipynb): the first takes four minutes.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - H. Levesque, E. Davis and L. Morgenstern (2012), *The Winograd Schema Challenge*, KR 2012.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the formula, and the heads that follow a pronoun.
#
# Next: where do queries, keys and values come from, if one starts with an ordinary dictionary? Lesson {lesson}`lookup`.
