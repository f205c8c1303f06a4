# %% [markdown] id="title"
# # {lesson}`start` Start here: what one word takes from the others
#
# *The cat sat because it was tired.* Who was tired? How can a machine that only calculates find out what "it" means?
# The part of a language model in which words look at each other is called **attention**. Here you do it by hand, in whole numbers.
#
# **After this lesson you can** calculate what one word takes from the others, single a word out or show that no query can, and read
# attention as code and as a formula. **You need** matrix products, $e^x$, a little Python. **Time:** 60 minutes, ten more for
# the two turns and the rest of the warm-up, then [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="plan"
# ## What does "it" look for?
#
# Lines lead from "it" to all words, thicker ones where "it" looks more. The slider changes what "it" looks for: at the left
# somebody alive, at the right what somebody does. Guess before you move it: which word leads at the right end? Where does "it" look when it
# looks for neither? Click into the next cell and press **Shift+Enter**. (If it stops with a `ModuleNotFoundError`, start the
# course with `make lab`.)
#
# When the page says *Predict*, decide first, then run the cell. Its output is folded until you do. At *Your turn* replace the dots, and
# a check judges your answer.

# %% id="move-card"
from attn_course.lessons.start import figures
from attn_course.sentence import KEY, QUERY, TOKENS

figures.asks_explorable(KEY[0], QUERY[0][4], TOKENS, asks=4)

# %% [markdown] id="where"
# <details><summary>What you should see</summary>
#
# At the right end "sat" leads: "tired" tells as much, but only living things get tired. In the middle five words have equal shares, and
# "the" and "it", which wait for another word, have less.
#
# </details>
#
# The slider changes two numbers in a small machine. Here it is; you need not understand it yet. At the end our numbers go through all of
# it but the mask (lesson {lesson}`masking`).

# %% id="machine"
figures.machine()

# %% [markdown] id="hook"
# ### How does a line get its thickness?
#
# To a machine a word is a list of numbers. A model learns them; we chose ours so that you can do every product in your head.
# Imagine that the words meet at a party, each with three more lists:
#
# - its **query** is a wish: what the word looks for ("it": *somebody alive*),
# - its **key** is a name badge: what it shows to the others ("cat": *I am alive*),
# - its **value** is a present for all who find it, and is never used up.
#
# How well does the badge of the cat fit the wish of "it"? Run this cell, and then those below it.

# %% id="cat"
import numpy as np

wish_of_it = np.array([2, 0, -2, 2])
badge_of_cat = np.array([2, 0, 0, 2])

total = 0
for wish, badge in zip(wish_of_it, badge_of_cat, strict=True):
    total += wish * badge
    print(wish, "times", badge, "is", wish * badge, "and the total is", total)

# %% [markdown] id="cat-notice"
# On a badge the four numbers say how much a word is **alive**, how much it **tells** what somebody does or is, how **open** it is (it waits
# for another word, as a pronoun does), and *alive* minus *tells*. (With this single number a wish can ask for *alive* and against *tells*.)
# In a wish they say how much of each is looked for. The slider set two of them, $(s, 0, -2, s)$.
#
# We multiplied wish and badge number by number, and added up. This is the **dot product** of two lists, and its result is called the
# **score**. Two numbers of the same sign speak for a word, two of opposite signs against it. Here are all seven badges:

# %% id="keys"
from attn_course import check
from attn_course.lessons.start import figures
from attn_course.sentence import KEY, QUERY, TOKENS, VALUE, X, labelled

query, key, value = QUERY[0], KEY[0], VALUE[0]
print(labelled(key, columns=("alive", "tells", "open", "alive - tells")))
print("query of it:", query[4])

# %% [markdown] id="keys-notice"
# The part of the machine that makes such lists and works with them is called a **head**. Ours has two, and `[0]` takes the lists of
# the first. The fifth word is `[4]`, because Python counts from 0.
#
# Now "it" asks "tired". Only living things get tired, so its badge has a little *alive*, but it tells even more:
#
# $$2 \cdot 1 + 0 \cdot 2 + (-2) \cdot 0 + 2 \cdot (-1) = 0$$

# %% [markdown] id="hook-predict"
# **Predict.** The key of "sat" is $(0, 2, 0, -2)$, and the key of "it" itself is $(0, 0, 2, 0)$. Which scores does "it" have with
# these two? Write your answer down, then run the cell. Its `@` makes all seven dot products at once.

# %% id="hook-code" tags=["predicted"]
scores = key @ query[4]
print(labelled(scores[:, None], columns=("score",)))

# %% [markdown] id="hook-answer" tags=["answer"]
# Both scores are $-4$. In "sat" the last number counts against it, $2 \cdot (-2)$, because a verb is not alive but tells something.
# The word "it" does not fit even its own wish, $(-2) \cdot 2$, because the wish counts against open words, and "it" is one. Of all seven
# words only "cat" has a positive score.

# %% [markdown] id="check-turn"
# ### Your turn
#
# **Check an answer.** {turn}`scores-by-hand`
#
# Replace the dots by three whole numbers, such as `(1, 2, 3)`, and run it.

# %% id="check-turn-code" tags=["your-turn"]
my_three = ...  # three whole numbers
check("scores-by-hand", my_three)

# %% [markdown] id="check-turn-ours" tags=["ours"]
# With "cat" the score is $2 \cdot 2 + 0 + 0 + 2 \cdot 2 = 8$, with "sat" it is $0 + 1 \cdot 2 + 0 + 2 \cdot (-2) = -2$, and with "tired"
# itself it is $2 \cdot 1 + 1 \cdot 2 + 0 + 2 \cdot (-1) = 2$.

# %% [markdown] id="weights"
# ## From scores to an answer
#
# The cat's score is 8, and the next best is 0. How much of its attention should "it" give to the cat? The shares
# are called **weights**. They are positive, sum to 1, and are made in three steps:
#
# 1. Divide each score by 2, the root of 4, since a query has four numbers (lesson {lesson}`scaling` says why).
# 2. Raise $e \approx 2.72$ to each result. That is always positive, and a word that leads by 2 in the score gets $e$ times as much.
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
# The cat gets 54.6 of 57.6, which is 95 percent. Some weights print as 0.00, but none is zero.
#
# Now "it" collects its presents. A value has three numbers here: *alive*, *tells*, and *alive* minus *open*. From every word "it"
# takes weight times value, and adds up all seven. The cat counts for 95 percent of this average, and no other present is larger, so the
# result is close to the cat's present:

# %% id="weights-code"
pairs = zip(weights, value, strict=True)
parts = np.array([weight * present for weight, present in pairs])
output = parts.sum(axis=0)
presents = ("alive", "tells", "alive - open")
print(labelled(value, rows=[f"{word} gives" for word in TOKENS], columns=presents))
print("it takes:")
print(labelled([*parts, output], rows=[*TOKENS, "together"], columns=presents))

# %% [markdown] id="meaning"
# A word comes in as five numbers: *alive*, *tells*, *open*, and two for its place. The last step of the machine adds the three new
# numbers to them, and a matrix $W_O$ says where each goes: the first is added to *alive*, the second to *tells*, and the third is
# **subtracted** from *open*. The cat, which is alive and not open, gives 2 there, so subtracting it closes a word that was open by 2.
# (The rest of $W_O$ belongs to the second head and to the place.)

# %% id="meaning-code"
from attn_course.sentence import FEATURES, W_OUTPUT

print(labelled(W_OUTPUT[:3, :3], ("1st", "2nd", "3rd"), columns=FEATURES[:3]))
after = X[4] + output @ W_OUTPUT[:3]
rows = ("it, before", "it, after", "cat")
print(labelled([X[4][:3], after[:3], X[1][:3]], rows, columns=FEATURES[:3]))

# %% [markdown] id="meaning-notice"
# Before, "it" was only open. Now it is alive and hardly open, since $2 - 1.90 = 0.10$: in these three numbers it is almost the cat.
# (In a word that was not open, *open* can become negative, as in "tired"; read that as *has found somebody*.) Here is the whole evening in
# one picture:

# %% id="step-figure"
figures.one_step(weights, value, X[:, :3], after[:3], TOKENS, asks=4, found=1)

# %% [markdown] id="story"
# The steps are the same for every word, and none of them mentions pronouns: we chose the numbers so that the head finds the cat, but a
# model has to learn its own. Pronouns are an old test for machines (Levesque, Davis and Morgenstern, 2012). The authors of the
# Transformer saw that two heads of their model, trained only to translate, were "apparently involved in anaphora resolution", which means
# finding out what a pronoun stands for (Vaswani et al., 2017, appendix).

# %% [markdown] id="projections"
# ## Where queries come from
#
# From here on we use the usual names: **query**, **key**, **value**, and **output** for what a word takes home.
#
# Let the words be the rows of a matrix $X$. Then the queries are the rows of $Q = X W_Q$, and a model learns the matrix $W_Q$. In the same
# way $K = X W_K$ and $V = X W_V$. A row times a matrix adds up multiples of the rows of that matrix, so the five numbers of a word say how
# often its query takes each row of $W_Q$. Here is $X$, and what "tired" takes:

# %% id="projections-code"
from attn_course.sentence import W_KEY, W_QUERY, W_VALUE

names = ("alive", "tells", "open", "place", "place")
print(labelled(X, columns=names))
times = zip(X[6], names, strict=True)
print("rows of W_Q:")
print(labelled(W_QUERY[0], [f"{count:.0f} times {name}" for count, name in times]))

# %% [markdown] id="projections-predict"
# So the query of "tired" is once the first row and twice the second, $(0, 1, 0, 0) + (2, 0, 0, 2) = (2, 1, 0, 2)$, as in your first turn.
# The place leaves no trace, because its two rows are zero. **Predict** the query of "cat". What is the cat looking for?

# %% id="projections-same" tags=["predicted"]
made = X @ W_QUERY[0], X @ W_KEY[0], X @ W_VALUE[0]
print("query of cat:", made[0][1])
same = map(np.array_equal, made, (query, key, value))
print("the same Q, K and V as before:", all(same))
print("W_K, and W_V in the last three columns:")
print(labelled(np.hstack([W_KEY[0], W_VALUE[0]]), names))

# %% [markdown] id="projections-answer" tags=["answer"]
# It is $(0, 2, 0, 0)$, twice the first row, because the cat is *alive* by 2. So the cat looks for words that tell something.

# %% [markdown] id="because"
# ## Now you ask
#
# The query of "because" is $(0, 0, 0, 0)$. **Predict** its seven weights and its output.

# %% id="because-code" tags=["predicted"]
shares = softmax(key @ query[3] / 2)
print("weights of because:", shares.round(2))
print("output of because: ", (shares @ value).round(2))

# %% [markdown] id="because-answer" tags=["answer"]
# All seven weights are $1/7$, about 0.14. A query of zeros makes every score 0, and $e^0 = 1$ for every word, so the shares are equal.
# The output is therefore the plain average of all values, $(3/7, 5/7, 0)$, which is about $(0.43, 0.71, 0)$. Weights always sum
# to 1, so even a word that looks for nothing has to give its attention to somebody.

# %% [markdown] id="looks"
# Which words does each word look at? Press one of the seven, and follow its lines. Then choose the second
# head, in which each word was made to look at the one before it. But places are hours on a clock of six here, so the seventh word has
# the hour of the first, and in $X$ both end with $(2, 0)$. So which word looks most, and equally, at two others? And where does
# "the" look, which has no word before it?

# %% id="looks-card"
figures.looks_explorable(QUERY, KEY, VALUE, TOKENS, first=4)

# %% [markdown] id="looks-notice"
# <details><summary>What you should see</summary>
#
# In the first head five words look mostly at "cat", "because" at all words equally, and "cat" mostly at those that say
# something about it, "sat" and "tired". In the second head "cat" looks equally at "the" and "tired", which share one hour. And "the" looks
# at "was", at the hour before its own (lesson {lesson}`self_attention` builds better clocks).
#
# </details>

# %% [markdown] id="needle"
# ### A query of your own
#
# Change the four numbers of this query until "because" gets more than 0.9. That sounds hopeless, because its key is all zeros, and so its
# own score is 0 whatever you ask.

# %% id="needle-code"
my_query = [2, 0, -2, 2]  # alive, tells, open, alive - tells; now as "it" asks
asked = softmax(key @ my_query / 2)
print(labelled([key @ my_query, asked], ("score", "weight"), columns=TOKENS))
print("because has more than 0.9:", asked[TOKENS.index("because")] > 0.9)

# %% [markdown] id="needle-notice"
# <details><summary>One way</summary>
#
# All other scores must be negative, so that 0 is the best. The query `[-10, -10, -10, 0]` gives "because" 0.99.
#
# </details>

# %% [markdown] id="single"
# ### A key that no query can single out
#
# In the first head, "was" never gets as much as a third of the attention, whatever the query. Its key $(0, 1, 0, -1)$ lies halfway
# between that of "sat", $(0, 2, 0, -2)$, and that of "because", $(0, 0, 0, 0)$. A score adds up multiples of the numbers in the key, so
# the score of "was" lies halfway between theirs.

# %% [markdown] id="single-root"
# Let $h_j = s_j / 2$ be half the score of word $j$, and $N$ the sum of all seven powers. Then $h_\text{was}$ lies halfway, too. Since
# $e^{(x+y)/2} = \sqrt{e^x}\, \sqrt{e^y}$ and $N = \sqrt N\, \sqrt N$,
#
# $$p_\text{was} = \frac{e^{(h_\text{sat} + h_\text{because})/2}}{N} = \sqrt{\frac{e^{h_\text{sat}}}{N}}\;
# \sqrt{\frac{e^{h_\text{because}}}{N}} = \sqrt{p_\text{sat}}\; \sqrt{p_\text{because}}$$
#
# Put $a = p_\text{sat}$ and $b = p_\text{because}$. From $(\sqrt a - \sqrt b)^2 \ge 0$ follows $2 \sqrt a \sqrt b \le a + b$, so
# $2\, p_\text{was} \le p_\text{sat} + p_\text{because}$. All seven weights are positive and sum to 1, so the right side is
# less than $1 - p_\text{was}$. Together, $3\, p_\text{was} < 1$.
#
# How close can you get? Look for such a query in the cell above.
#
# <details><summary>One way</summary>
#
# As close as you like: take $(-c, 0, -c, 0)$ with a large $c$. It gives "sat", "because" and "was" the score 0. All other
# scores are $-c$ or $-2c$, so their four powers go to 0, and the weight of "was" goes to $1/3$.
#
# </details>

# %% id="single-code"
for c in (2, 10, 20):
    asked = softmax(key @ [-c, 0, -c, 0] / 2)
    p_sat, p_because, p_was = asked[[2, 3, 5]].round(5)
    print("c =", c, "gives sat", p_sat, "because", p_because, "was", p_was)

# %% [markdown] id="limits"
# ## What our head does not see
#
# The rows of the place are zero in $W_Q$, $W_K$ and $W_V$ of this head. So a word keeps its query, key and value wherever it stands, and
# the sum over all words does not notice their order (section {section}`order` tries this, and breaks it).
#
# Now put a second cat at the end of the sentence. **Predict** which weight "it" gives to each cat, in the first head.

# %% id="limits-second" tags=["predicted"]
two_cats = np.vstack([key, key[1]])
shares = softmax(two_cats @ query[4] / 2)
print(labelled([shares], ["weight"], columns=(*TOKENS, "cat")))

# %% [markdown] id="limits-answer" tags=["answer"]
# Each cat gets 0.49. Both have the same key, so both have the score 8 and equal weights: 54.6 of the new sum,
# $57.6 + 54.6$.

# %% [markdown] id="limits-notice"
# A head whose keys hold the place, as in our second head, can notice the order, and a mask that hides one cat tells them apart
# (lesson {lesson}`masking`). Our head looks at the cat because we built it so; what a trained head looks at must be measured (lesson
# {lesson}`self_attention`).

# %% [markdown] id="formula"
# ## One formula for all words
#
# Now $T_q$ words ask $T_k$ words at once; in our sentence all seven ask all seven. A query and a key have $d_k$ numbers, here 4, and a
# value has $d_v$, here 3. Let $Q_{ia}$ be number $a$ of query $i$, and $K_{ja}$ number $a$ of key $j$. The score of the two is
#
# $$\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja} \key{score-entry-by-entry}$$
#
# because a matrix product multiplies rows by columns, and column $j$ of $K^\top$ is key $j$. The frame
# marks a formula to keep, a number in brackets means: checked (the last cell before the formula card checks anew, on random numbers).
# `show` puts in "it" and "cat".

# %% id="formula-code"
from attn_course import show, verify_lesson

show("score-entry-by-entry", Q=query, K=key, i=5, j=2)

# %% [markdown] id="formula-turn"
# **Your turn: write a formula.** {turn}`output-as-formula`

# %% id="formula-turn-code" tags=["your-turn"]
my_output = ...  # r"..."
check("output-as-formula", my_output)

# %% [markdown] id="formula-turn-ours" tags=["ours"]
# It is `r"\sum_{j=1}^{T_k} P_{ij} V_{ja}"`: the sum runs over the words that are asked, and each value counts with its weight. Row $i$
# of $P$ meets column $a$ of $V$, so it is an entry of a matrix product:
#
# $$\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja} \key{output-entry-by-entry}$$
#
# The check knows some mistakes by name. Put `\frac{1}{T_k}` in front, and see what it says.

# %% [markdown] id="rows"
# ### Rows and columns
#
# In this course every word is a row. Row $i$ of the scores belongs to the word that asks, and column $j$ to the word that is asked. Our
# `softmax` runs along each row, so each row of $P$ sums to 1, but a column need not. The outputs are the rows of $P V$.

# %% id="rows-code"
P = softmax(query @ key.T / np.sqrt(4))
print(labelled(P, columns=TOKENS))
print("rows of P sum to   ", P.sum(axis=1))
print("columns of P sum to", P.sum(axis=0).round(1))

# %% [markdown] id="turned"
# Many books write a word as a **column**, $Q_c = Q^\top$ and $K_c = K^\top$, and the scores as $K_c^\top Q_c$. Transpose a product by
# transposing both factors and swapping them: $(Q K^\top)^\top = (K^\top)^\top Q^\top = K Q^\top$. So this is our table transposed, and its
# columns ask (section {section}`columns`):
#
# $$K_c^\top Q_c = \bigl( Q\, K^\top \bigr)^\top \key{scores-in-columns}$$

# %% [markdown] id="game"
# ## Break the machine
#
# This machine works on four of the words. You can change every number of $X$ and of its matrices $W$, and all other numbers follow from
# these. (Its table S holds the scores divided by $\sqrt{d_k}$, and it counts from 0.) Do the first of its six trials now. After them
# comes a game: find the
# mistake in a broken machine.

# %% id="game-card"
from attn_course.game.card import break_the_machine

break_the_machine()

# %% [markdown] id="whole"
# ## The whole machine, with our numbers
#
# Scores, softmax and average of one head fit into one line, the best-known formula of attention (lesson {lesson}`attention`):
#
# $$\mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V$$
#
# The figure highlights it, with our sizes in the caption. The rows of $X$ are $T$ words of $d_\text{model}$
# numbers; $W_Q$, $W_K$ and $W_V$ make queries $Q$, keys $K$ and values $V$ from them; $Q K^\top$ holds the scores, $P$ the weights, and
# $P V$ the output of one of $H$ heads; $Z$ holds the outputs of all heads side by side, $W_O$ turns the six numbers of a word into five,
# and $X$ is added.

# %% id="whole-figure"
figures.our_machine()

# %% id="whole-code"
heads = zip(QUERY, KEY, VALUE, strict=True)
Z = np.hstack([softmax(Q @ K.T / 2) @ V for Q, K, V in heads])
S = query @ key.T
table = {"X": X, "Q": query, "Q K^T": S, "P": P, "Z": Z, "new X": X + Z @ W_OUTPUT}
for name, array in table.items():
    print(f"{name:5} {array.shape}  row of it: {array[4].round(4)}")
second = softmax(KEY[1] @ QUERY[1][4] / 2)
print(labelled([second], ["second head"], columns=TOKENS, digits=3))

# %% [markdown] id="whole-notice"
# The first three numbers of $Z$ are the output that you know. The other three come from the second head, which hands on *alive*, *tells*
# and *open*. It gives 0.784 to "because", which has nothing to give, and 0.106 each to "sat", which tells by 2, and to "it", which is open
# by 2. Its rows of $W_O$ **add** $2 \cdot 0.106 \approx 0.21$ of each: *tells* ends at $0.0458 + 0.2145 = 0.2603$, and *open* at
# $2 - 1.9019 + 0.2123 = 0.3104$.

# %% [markdown] id="map"
# ## The lessons
#
# <details><summary>Exercises, deeper sections, and where your work lies</summary>
#
# - The **exercises** have points, hints and a check, which names the mistakes that it knows.
# - A section that is marked *Deeper* is folded, at the end. No other section needs it.
# - Your exercises lie in the folder `work/`, your copies of the lessons in `work/lessons/`, and nothing overwrites them.
# - `verify(r"...", like="softmax")` tries a formula of your own with the numbers of that equation.
#
# </details>

# %% id="map-table"
from IPython.display import Markdown, display

from attn_course.numbers import lesson_table

display(Markdown(lesson_table(questions=figures.QUESTIONS)))

# %% id="verify-lesson"
verify_lesson("start")

# %% [markdown] id="card"
# ## Formula card
#
# | what | formula | shapes | multiplications |
# |---|---|---|---|
# | all scores, {eq}`score-entry-by-entry` | {key}`score-entry-by-entry` | $(T_q, d_k), (T_k, d_k) \to (T_q, T_k)$ | $T_q T_k d_k$ |
# | a weight, from scores $s_{ij}$, lesson {lesson}`softmax` | $P_{ij} = \dfrac{e^{s_{ij} / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{s_{il} / \sqrt{d_k}}}$ | $(T_q, T_k)$ | |
# | all outputs, {eq}`output-entry-by-entry` | {key}`output-entry-by-entry` | $(T_q, T_k), (T_k, d_v) \to (T_q, d_v)$ | $T_q T_k d_v$ |
# | one head | $\mathrm{softmax}\bigl( Q K^\top / \sqrt{d_k} \bigr)\, V$ | $(T_q, d_v)$ | $T_q T_k (d_k + d_v)$ |
# | the last step, $Z$ from $H$ heads side by side | $X + Z\, W_O$ | $(T, d_\text{model})$ | $T H d_v d_\text{model}$ |
# | scores in columns, {eq}`scores-in-columns` | {key}`scores-in-columns` | $(T_k, T_q)$ | $T_q T_k d_k$ |

# %% [markdown] id="summary"
# ## Summary
#
# - A query says what a word looks for, a key what it can be found by, a value what it hands over.
# - A score is the dot product of a query with a key. The softmax of the scores divided by $\sqrt{d_k}$ gives weights that sum to 1, and
#   with them the output is an average of the values.
# - Without a mask, and with scores from $Q K^\top$ alone, equal keys get equal weights, and a key halfway between two others gets
#   at most one third.
# - A head without a mask whose queries, keys and values leave out the place does not see the order of the words.

# %% [markdown] id="after-summary"
# Now the [exercises](../work/ex_{lesson}`start`_start.ipynb). Nothing above needs what follows.

# %% [markdown] id="columns"
# ## Deeper: Words as columns
#
# If a formula looks the wrong way round, find out first whether its words are rows, as ours, or columns, as in {eq}`scores-in-columns`.
# Lesson {lesson}`notation` has a dictionary of six dialects.

# %% id="columns-code"
in_rows, in_columns = query @ key.T, key @ query.T
print("it asks cat:", in_rows[4, 1], "in row 5, column 2 of our table")
print("in the other:", in_columns[1, 4], "in row 2, column 5")

# %% [markdown] id="order"
# ## Deeper: When two words change places
#
# Let "cat" and "was" change places: the output of "it" stays. But if we replace $W_V$ by a matrix that passes on the place, the output
# follows the cat:


# %% id="order-code"
def output_of_it(words, w_value):
    """The output of the fifth word, when the values are made with w_value."""
    weights = softmax((words @ W_KEY[0]) @ (words[4] @ W_QUERY[0]) / 2)
    return (weights @ (words @ w_value)).round(2)


moved = np.hstack([X[[0, 5, 2, 3, 4, 1, 6], :3], X[:, 3:]])  # cat is sixth now
passes_on_place = np.vstack([np.zeros((3, 2)), np.eye(2)])
for name, w_value in {"W_V": W_VALUE[0], "place": passes_on_place}.items():
    print(f"{name:5}", output_of_it(X, w_value), "then", output_of_it(moved, w_value))
print("places of the cat:", X[1, 3:], "then", X[5, 3:])

# %% [markdown] id="deeper-map"
# ## Deeper: Which lesson builds on which
#
# Each arc leads from a lesson down to one whose equations use its own.

# %% id="map-figure"
from attn_course.equations.links import chapter_map

graph = chapter_map()
figures.map_of_chapters(graph.counts, graph.links, graph.titles)

# %% [markdown] id="sources"
# ## Sources, and what to read next
#
# - H. Levesque, E. Davis and L. Morgenstern (2012), *The Winograd Schema Challenge*, KR 2012.
# - A. Vaswani et al. (2017), [arXiv:1706.03762](https://arxiv.org/abs/1706.03762): the formula, and two heads at a pronoun.
#
# Next: how does an ordinary dictionary become something that can be trained? Lesson {lesson}`lookup`.
