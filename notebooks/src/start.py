# %% [markdown] id="title"
# # {lesson}`start` Start here: what one word takes from the others
#
# *The cat sat because it was tired.* Who was tired? You knew at once. But how can a machine
# find out what "it" means, if all it can do is calculate? The part of a language model in which words look at each other
# is called **attention**. In this lesson you do it by hand, with words made of small whole numbers.
#
# **Afterwards you can** calculate what one word takes from the others, and recognise a formula that was written the other way round.
#
# **You need** matrix products, $e^x$, and a little Python. **Time:** 50 minutes, or an hour with the whole warm-up of the game, and then
# the
# [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="plan"
# ## The first ten minutes
#
# A word can look at other words. Run the next cell (**Shift+Enter**). Lines lead from "it" to all words, and they are thicker where it
# looks more.
# The slider changes what "it" is looking for. What must "it" look for to find the cat?

# %% id="move-card"
from attn_course.lessons.start import figures
from attn_course.sentence import KEY, QUERY, TOKENS

figures.asks_explorable(KEY[0], QUERY[0][4], TOKENS, asks=4)

# %% [markdown] id="where"
# A small machine calculates these lines. Here it is from end to end, and each framed part is a link to the lesson about it.

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ### Who is "it"?
#
# How does a line get its thickness? To a machine a word is a list of numbers. A model learns them; ours were chosen by hand, small and
# whole, so that you can do every product in your head. From them each word gets three more lists, one for each role:
#
# - its **query** says what the word is looking for ("it": *somebody alive, whom I can stand for*),
# - its **key** describes the word to those who are looking ("cat": *I am alive*),
# - its **value** is what the word hands over when it is found.

# %% [markdown] id="head"
# The part of the machine that makes these three lists of every word, and then compares and averages them, is called a **head**. Ours has
# two, and we take the first, which the code calls `[0]`, because Python counts from 0. So "it", the fifth word, is `[4]`. The next cell
# prints all seven keys, and the query of "it".
#
# **Run it**: click into it and press **Shift+Enter**, then run the cells below it one by one. (If one stops with a `ModuleNotFoundError`,
# section {section}`ways` helps.) At the first *Your turn* the ten minutes end, and you will have calculated what decides who is meant.

# %% id="keys"
import numpy as np

from attn_course import check, show, verify
from attn_course.lessons.start import figures
from attn_course.reference import softmax
from attn_course.sentence import FEATURES, KEY, QUERY, TOKENS, VALUE, W_OUTPUT, W_QUERY
from attn_course.sentence import X, labelled

query, key, value = QUERY[0], KEY[0], VALUE[0]
print(labelled(key, columns=("alive", "tells", "open", "alive - tells")))
print("query of it:", query[4])

# %% [markdown] id="keys-notice"
# *Alive* marks a living thing; *tells* marks a word that says what somebody does or is; *open* marks a word that still needs another
# one to mean something, such as a pronoun. ("Tired" is partly *alive*, since only the living are tired.) The query of "it" is
# $(2, 0, -2, 2)$: it looks for something alive, not for another open word, and for something alive rather than telling.
#
# How well does a word fit? Multiply query and key number by number, and add up. Equal signs speak for the word, opposite ones against it.
# This is the dot product, called the **score**. With "tired", whose key is $(1, 2, 0, -1)$, "it" has the score
#
# $$2 \cdot 1 + 0 \cdot 2 + (-2) \cdot 0 + 2 \cdot (-1) = 0.$$
#
# And with "cat", step by step:

# %% id="cat"
total = 0
for asked, found in ((2, 2), (0, 0), (-2, 0), (2, 2)):
    total += asked * found
    print(asked, "times", found, "is", asked * found, "and the total is", total)

# %% [markdown] id="hook-predict"
# **Predict.** The key of "sat" is $(0, 2, 0, -2)$, and the key of "it" itself is $(0, 0, 2, 0)$. Which scores does "it" have with
# these two? Write your answer down before you run the cell. Until then its output is folded, and so is the answer below it.

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
# **Check an answer.** The word "tired" asks too: somebody must be tired. Its query is $(2, 1, 0, 2)$. Calculate its scores with "cat",
# "sat" and "tired" on paper, from the keys printed above. Then put three whole numbers in the place of the dots, such as
# `(1, 2, 3)`, and run the cell. As long as the dots are there, the check waits.

# %% id="check-turn-code" tags=["your-turn"]
my_three = ...  # three whole numbers
check("scores-by-hand", my_three)

# %% [markdown] id="weights"
# ## From scores to an answer
#
# For "it", the score 8 of "cat" against 0 for the next best is a clear lead. How much attention should "cat" get for it? Scores become
# **weights**, which are positive and sum to 1, in two steps. First we divide each score by the square root of 4, since a query has four
# numbers (lesson {lesson}`scaling` says why). Then the **softmax** raises $e \approx 2.72$ to each of these numbers, and divides the
# results
# by their sum. Powers of $e$ are always positive, and a lead of 2 multiplies by $e$, however high both scores are (lesson {lesson}`softmax`
# has more). The smallest weights print as 0.00, but none is zero:

# %% id="weights-table"
scores = key @ query[4]
half = scores / 2
powers = np.exp(half)
weights = powers / powers.sum()
steps = np.array([scores, half, powers, weights])
names = ("score", "half of it", "e to that power", "weight")
print(labelled(steps, names, columns=TOKENS))
print("sum of the powers:", powers.sum().round(2))

# %% [markdown] id="average"
# So "cat" gets 54.6 of 57.6, which is 95 percent of the attention. A value here has three numbers: *alive*, *tells*, and *alive*
# minus *open*. What "it" takes home is the average of all seven values, in which each counts with its weight: weight times value, added
# up. Since "cat" has nearly all the weight, the average is close to the value of "cat":

# %% id="weights-code"
output = sum(weights[j] * value[j] for j in range(7))
print(labelled(value, columns=("alive", "tells", "alive - open")))
print("average:", output.round(2))

# %% [markdown] id="meaning"
# The last step of the machine multiplies the averages of all heads by one more matrix and adds the result to the word's own numbers.
# These are five: *alive*, *tells*, *open*, and two for its place in the sentence. Three rows of the matrix belong to our head, and they say
# where its three numbers go: the first is added to *alive*, the second to *tells*, and the third is **subtracted** from *open*. (The second
# head adds a part of its own, which we leave out.) With our part alone, "it" is:

# %% id="meaning-code"
print(labelled(W_OUTPUT[:3, :3], ("1st", "2nd", "3rd"), columns=FEATURES[:3]))
after = X[4] + output @ W_OUTPUT[:3]
rows = ("it, before", "it, after", "cat")
print(labelled([X[4][:3], after[:3], X[1][:3]], rows, columns=FEATURES[:3]))

# %% [markdown] id="meaning-notice"
# Look at what has just happened. At first "it" was only an open word: it stood for something, and nothing in it said for what. Now it is
# alive, and hardly open any more, since $2 - 1.90 = 0.10$. Its three numbers are almost those of "cat". The word has put a
# question to the whole sentence, and from now on it carries the answer with it. Here is the whole step once more, drawn:

# %% id="step-figure"
figures.one_step(weights, value, X[:, :3], after[:3], TOKENS, asks=4, found=1)

# %% [markdown] id="step-notice"
# With its lists a head compares, weighs and averages. No line of the program mentions pronouns: it found the cat because of the numbers
# in its matrices and in its words. We chose both so that it would; a model learns its own.

# %% [markdown] id="story"
# Pronouns are a famous test for machines. In 2012 Levesque, Davis and Morgenstern studied sentences like this one: *the
# trophy does not fit in the suitcase because it is too big*. What is too big? Put *small* in the place of *big*, and "it" becomes the other
# thing. (Ours is the easy case, since it has only one candidate.) Five years later the authors of the Transformer drew what their model,
# trained to translate, does at the word "its", and found two heads "apparently involved in anaphora resolution" (Vaswani et al., 2017,
# appendix), which is finding out what a pronoun stands for. Nobody had asked for such heads.

# %% [markdown] id="because"
# Now an odd case. The query of "because" is $(0, 0, 0, 0)$: it looks for nothing. **Predict** its seven weights, and the three
# numbers that it takes home. The seven values are printed above.

# %% id="because-code" tags=["predicted"]
shares = softmax(key @ query[3] / np.sqrt(4))
home = shares @ value
print("weights of because:", shares.round(2))
print(labelled([home], ("takes home",), columns=("alive", "tells", "alive - open")))

# %% [markdown] id="because-answer" tags=["answer"]
# All seven weights are $1/7$, about 0.14. A query of zeros makes every score 0, and $e^0 = 1$ for every word, so the shares are equal. What
# "because" takes home is therefore the plain average of all values, $(3/7, 5/7, 0)$, which is about $(0.43, 0.71, 0)$. Weights always sum
# to 1, so a word that looks for nothing cannot decline to pay attention.

# %% [markdown] id="looks"
# Whom does each word look at? Press one of the seven, and follow its lines. Then choose the second
# head. Its queries and keys are made from the two numbers for the place, to make each word look at the one before it. But places go round
# like the hours of a clock with only six, and the seventh word is back at the hour of the first. For which two of the
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
# ### Now you ask
#
# The keys stay, and the query is yours. Change its four numbers and run the cell again, until "because" gets more than 0.9. Its key is all
# zeros, so its own score is 0 whatever you ask. Then try the same for "was".

# %% id="needle-code"
my_query = [2, 0, -2, 2]  # alive, tells, open, alive - tells; now as "it" asks
asked = softmax(key @ my_query / 2)
print(labelled([key @ my_query, asked], ("score", "weight"), columns=TOKENS))
print("because has more than 0.9:", asked[TOKENS.index("because")] > 0.9)

# %% [markdown] id="needle-notice"
# <details><summary>What you should see</summary>
#
# For "because", all other scores must be negative: `[-10, -10, -10, 0]` gives it 0.99. For "was" nothing helps. You can bring it close to
# one third, but never there, and section {section}`single` proves it.
#
# </details>

# %% [markdown] id="game"
# ### Now the machine is yours
#
# You know what a query, a key, a value and a weight are. Here is a machine for four of the words, and every number in it can be changed.
# Its
# warm-up has six trials, each of which asks for one change and says what it did. Do the first now: it takes two minutes. The other
# five take six minutes more, now or later. Then comes a game: find the mistake in a broken machine, with
# what later lessons explain.

# %% id="game-card"
from attn_course.figures.broken import break_the_machine

break_the_machine()

# %% [markdown] id="formula"
# ## A formula for all words
#
# To do all words at once, we write the queries as the rows of a matrix $Q$, and the keys as the
# rows of $K$. Then $Q_{ia}$ is number $a$ of query $i$, and the score of query $i$ with key $j$ is
#
# $$\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja} \key{score-entry-by-entry}$$
#
# where $d_k$ is the length of a query, here 4. A matrix product multiplies rows by columns, and column $j$ of $K^\top$ is key $j$, so
# one product makes all scores. The frame marks a formula to keep. `verify` tries both of its sides on random numbers; `show` puts in
# the numbers of "it" (word 5) and "cat" (word 2).

# %% id="formula-code"
verify("score-entry-by-entry")
show("score-entry-by-entry", Q=query, K=key, i=5, j=2)
print("scores at once, Q times K transposed, without the row of tired:")
table = query @ key.T
print(labelled(table[:6], rows=TOKENS[:6], columns=TOKENS))

# %% [markdown] id="formula-turn"
# **Write a formula; your turn.** Let $P_{ij}$ be the weight that query $i$ gives to key $j$, with $T_q$ queries and $T_k$ keys, and let
# $V_{ja}$ be number $a$ of value $j$. Write number $a$ of the output of query $i$, called $Z_{ia}$, with $P$ and $V$. Answer in LaTeX, as
# the sum above is written: `r"\sum_{a=1}^{d_k} Q_{ia} K_{ja}"`.

# %% id="formula-turn-code" tags=["your-turn"]
my_output = ...  # r"..."
check("output-as-formula", my_output)

# %% [markdown] id="projections"
# ### Where queries come from
#
# A query is made from the numbers of its word by a matrix, $Q = X W_Q$, and a model learns this matrix. Keys and values are made in the
# same
# way, $K = X W_K$ and $V = X W_V$, each with a matrix of its own. A row times a matrix takes multiples of the rows of that
# matrix and adds them. The word "it" is $(0, 0, 2, -1, -1)$. The last two numbers are its place: the six hours of the clock are the corners
# of a hexagon, counted in steps *east* and *north* of its middle (a step north is $\sqrt 3$ times as long, which makes all of them
# whole). The last two rows of $W_Q$ below are zero, so only the 2 counts, and the query of "it" is twice the third row.

# %% id="projections-code"
places = (*FEATURES[:3], "east", "north")
print(labelled(W_QUERY[0], rows=places))
print("it:", X[4], " times W_Q:", X[4] @ W_QUERY[0])
print("the places of all words:")
print(labelled(X[:, 3:], columns=places[3:]))

# %% [markdown] id="rows"
# ## Rows ask, columns are asked
#
# The one convention to remember: in this course **rows are positions**. Every word is a row, from the input to the output.

# %% id="rows-shapes"
P = softmax(query @ key.T / np.sqrt(4))
arrays = {
    "X, a row is a word": X,
    "W_Q, a row is a feature": W_QUERY[0],
    "Q, a row is a query": query,
    "K, a row is a key": key,
    "scores, a row asks": query @ key.T,
    "P, a row is one word's weights": P,
    "V, a row is a value": value,
    "Z, a row is an output": P @ value,
}
for name, array in arrays.items():
    print(f"{name:31} {array.shape}")

# %% [markdown] id="rows-notice"
# In the table of scores, "it" asks "cat" in row 5 and column 2. Rows ask, columns are asked. The softmax runs along each row, so each
# row of $P$ sums to 1. A column need not: many words ask "cat". The average that you wrote as a formula runs along one row of $P$:
#
# $$\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja} \key{output-entry-by-entry}$$
#
# Together with the softmax along each row this is the best-known formula of attention, the subject of lesson
# {lesson}`attention`: $Z = \mathrm{softmax}\bigl( Q K^\top / \sqrt{d_k} \bigr)\, V$. (In the picture of the machine, the $Z$ of
# all heads stand side by side.)

# %% id="rows-code"
verify("output-entry-by-entry")
print("rows of P sum to   ", P.sum(axis=1))
print("columns of P sum to", P.sum(axis=0).round(1))
print("all outputs at once; that of it is", (P @ value)[4].round(2))

# %% [markdown] id="turned"
# ### When a text looks turned
#
# Many books write a word as a **column** instead, so that $Q_c = Q^\top$ and $K_c = K^\top$ (the $c$ says so). Then the table of scores is
# **turned** as well, which in this course means transposed: its rows are keys and its columns are queries. To transpose a product is to
# transpose its factors and to exchange them, so $Q K^\top$ becomes $K Q^\top$. Here $K$ is $K_c^\top$, and $Q^\top$ is $Q_c$:
#
# $$K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top \key{scores-in-columns}$$
#
# So when a formula looks turned, ask first whether its positions are rows or columns. Lesson {lesson}`notation` translates the rest,
# and holds a dictionary of six dialects.

# %% id="turned-verify"
verify("scores-in-columns")
Q_c, K_c = query.T, key.T
turned = K_c.T @ Q_c
print("it asks cat, row by column:", table[4, 1], "and when turned:", turned[1, 4])

# %% [markdown] id="ways"
# ## How the course works
#
# You have met nearly all of it already:
#
# - `Predict`: decide first, then run the cell. The answer below it opens with a click.
# - `Your turn`: replace the dots. It counts for no points.
# - `Deeper` in a heading: read it when you need it.
# - The **exercises** have points, minutes, three hints that you can open, and a check.
#
# A check tries your answer on several cases. Here is a mistaken formula for the output, and then the line that a right one prints:

# %% id="ways-check"
from attn_course.tasks import get_task
from attn_course.tasks.notebook import CheckFailed

turn = "output-as-formula"
mistaken = r"\frac{1}{T_k} \sum_{j=1}^{T_k} P_{ij} V_{ja}"
try:
    check(turn, mistaken)
except CheckFailed as failed:
    print("the check has raised", type(failed).__name__)
print(get_task(turn).ok_line)

# %% [markdown] id="ways-notice"
# The check recognised the mistake by the result. Where it does not know the mistake, it says what is true of your result, such as
# which number differs first. You may write loops or matrix products, in NumPy or in torch.
#
# Your exercises lie in the folder `work/`, and your copies of the lessons in `work/lessons/`. Nothing that you write there is
# overwritten. Section {section}`commands` has the commands for a terminal.

# %% [markdown] id="setup-intro"
# If a cell stops with `ModuleNotFoundError`, this one says what the installation lacks:

# %% id="setup"
try:
    from attn_course.commands.course import find_course
    from attn_course.commands.doctor_checks import essentials, verdict

    print(verdict(essentials(find_course())))
except ModuleNotFoundError as missing:
    print(f"{missing}: this kernel is not the course's; start it with `make lab`")

# %% [markdown] id="map"
# ## The map
#
# Read the lessons from top to bottom. Beside each stands the question that it answers.

# %% id="map-table"
from IPython.display import Markdown, display

from attn_course.authoring.lessons import lesson_table

display(Markdown(lesson_table(questions=figures.QUESTIONS)))

# %% [markdown] id="map-notice"
# If you would rather jump, look at the arcs: the more often a lesson uses equations of an earlier one, the thicker the arc. If a thick
# arc leads from an earlier lesson to yours, read that one first.

# %% id="map-figure"
from attn_course.equations.links import chapter_map

graph = chapter_map()
figures.map_of_chapters(graph.counts, graph.links, graph.titles)

# %% [markdown] id="limits"
# ## Limits
#
# The first head takes no notice of the order of the words, and it cannot tell two words with the same key
# apart. Shuffle the sentence, then add a second cat at its end:

# %% id="limits-code"
order = np.random.default_rng(0).permutation(7)
print("shuffled:", [TOKENS[j] for j in order])
print(softmax(key[order] @ query[4] / 2).round(2))
print("with a second cat at the end:")
print(softmax(np.vstack([key, key[1]]) @ query[4] / 2).round(2))

# %% [markdown] id="limits-notice"
# "It" finds "cat" wherever it stands, and divides its attention between two of them. What a trained head looks at must be measured, and a
# large weight alone does not prove that a word is the reason for what a model says (lesson {lesson}`self_attention`). `verify` tries
# a formula on numbers, which is strong evidence, but no proof. The lessons add proofs.

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shapes |
# |---|---|---|
# | all scores, {eq}`score-entry-by-entry` | {key}`score-entry-by-entry` | $(T_q, d_k)$ and $(T_k, d_k)$ make $(T_q, T_k)$ |
# | all outputs, {eq}`output-entry-by-entry` | {key}`output-entry-by-entry` | $(T_q, T_k)$ and $(T_k, d_v)$ make $(T_q, d_v)$ |
# | the scores of a text with columns, {eq}`scores-in-columns` | {key}`scores-in-columns` | $(T_k, T_q)$ |

# %% [markdown] id="summary"
# ## Summary
#
# - A query asks, a key describes a word to those who are looking, a value is what it hands over.
# - A score is the dot product of a query with a key; the softmax makes weights of scores; the output is the average of the values.
# - The weights of a word sum to 1, even if it looks for nothing.
# - Rows ask, columns are asked, and matrices stand on the right.
# - A text with columns turns the scores: its rows are keys, its columns queries.
#
# Now the [exercises](../work/ex_{lesson}`start`_start.ipynb): the first takes four minutes.

# %% [markdown] id="single"
# ## Deeper: a word that nobody can single out
#
# Whatever you asked, "was" got less than a third. Its key $(0, 1, 0, -1)$ lies halfway between that of "sat", $(0, 2, 0, -2)$, and that of
# "because", $(0, 0, 0, 0)$. A score adds up multiples of the numbers of a key, so for every query the score of "was" is halfway between
# theirs.

# %% [markdown] id="single-root"
# Let $s$ be these scores after the division by 2, and $N$ the sum of all seven powers. Since $e^{a+b} = e^a e^b$,
#
# $$p_\text{was} = \frac{e^{(s_\text{sat} + s_\text{because})/2}}{N} = \sqrt{\frac{e^{s_\text{sat}}}{N} \cdot
# \frac{e^{s_\text{because}}}{N}} = \sqrt{p_\text{sat}\; p_\text{because}}$$
#
# For positive $a$ and $b$, $(\sqrt a - \sqrt b)^2 \ge 0$ says that $2 \sqrt{a b} \le a + b$. So $2\, p_\text{was} \le p_\text{sat} +
# p_\text{because}$.
# These two and "was" leave something to the other four words, so the right side is less than $1 - p_\text{was}$. Together,
# $3\, p_\text{was} < 1$.
#
# With a large $c$, the query $(-c, 0, -c, 0)$ comes as close to a third as you like:

# %% id="single-code"
sizes = (2, 10, 20)
close = [softmax(key @ [-size, 0, -size, 0] / 2) for size in sizes]
print(labelled(close, [str(size) for size in sizes], columns=TOKENS, digits=4))

# %% [markdown] id="commands"
# ## Deeper: commands for a terminal
#
# | command | what it does |
# |---|---|
# | `attn-course lab` | opens the course in JupyterLab |
# | `attn-course check` | runs your exercises afresh, with the original checks, and lists points and hints |
# | `attn-course progress` | shows which tasks you have passed; the record stays on your machine |
# | `attn-course formulas softmax` | finds equations, each with its reason, its assumptions and the mistakes that are known |
# | `attn-course notation` | prints the dictionary of dialects; with `--letters`, what one letter may mean |
# | `attn-course doctor` | says what is wrong with an installation |

# %% [markdown] id="commands-notice"
# In your own notebook a check is advice. Marks for a class come from a separate grader, which
# runs the answers on fresh cases.

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - H. Levesque, E. Davis and L. Morgenstern (2012), *The Winograd Schema Challenge*, Principles of Knowledge Representation and
#   Reasoning (KR 2012): sentences that differ in one word and in what their pronoun means.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): in its appendix the heads that follow a pronoun.
#
# Next: where do queries, keys and values come from, if one starts with an ordinary dictionary? Lesson {lesson}`lookup`.
