# %% [markdown] id="title"
# # {lesson}`start` Start here: what one word takes from the others
#
# *The cat sat because it was tired.* Who was tired? You know. How can a machine that only calculates find out what "it" means?
#
# In today's language models, words look at other words. This is called **attention**. The smallest SmolLM2 does this in 270 places, called
# *heads*. In each, every word shares out its attention among itself and the words before it.
#
# **You need** matrix products, powers and a little Python. **Time:** 56 minutes.

# %% [markdown] id="run"
# Run the next two cells: click into a cell and press **Shift+Enter**. (If a `ModuleNotFoundError` appears, start the course with
# `make lab`.)

# %% id="real-load" tags=["live"]
from attn_course import language_model

model = language_model()  # if it is not here, stored answers take its place

# %% id="real-row"
text = "The cat sat because it was tired."
tokens = model.tokens(text)
head = model.maps(text)[13, 8]  # layer 13, head 8, both counted from 0
it = tokens.index(" it")  # the model's token includes the space before the word
for token, share in zip(tokens, head[it], strict=True):
    print(f"{token.strip():8} {share:.2f} {'#' * round(20 * share)}")

# %% [markdown] id="real-notice"
# In this head "it" gives 94 percent of its attention to "cat". No rule about pronouns is built in: the model learned from texts. Is "cat"
# just popular? Which words does each word look at?

# %% id="looks-card"
from attn_course.lessons.start import figures

figures.looks_explorable(head, tokens, first=4)

# %% [markdown] id="real-control"
# Every word after "cat", even the full stop, gives "cat" the largest share. For a test, put a colour in place of "it":

# %% id="real-swap"
for word in ("it", "blue"):
    text = f"The cat sat because {word} was tired."
    tokens = model.tokens(text)
    row = model.maps(text)[13, 8, tokens.index(" " + word)]
    most = tokens[row.argmax()].strip()
    print(f'"{word}" gives "cat" {row[tokens.index(" cat")]:.2f}, and most to "{most}"')

# %% [markdown] id="where"
# "Blue" hardly looks at the cat, though the words before it are the same. So it matters which word asks. (This is one pair, in a
# head we picked; lesson {lesson}`self_attention` tries many.) Now we build a head by hand.

# %% [markdown] id="hook"
# ## What does "it" look for?
#
# To a machine a word is a list of numbers. We choose three: how *alive* a word is, how much it *tells* what somebody does or is, and
# how *open* it is ("it" waits for its noun, and "the" does a little).

# %% id="words"
import numpy as np

from attn_course import check, verify_lesson
from attn_course.sentence import CONTENT, TOKENS, labelled

X = CONTENT[:, :3].astype(int)  # a word in each row
print(labelled(X, columns=("alive", "tells", "open")))

# %% [markdown] id="party"
# Imagine the words at a party. Each has a wish, its **query**, and wears a name badge, its **key**. To see how well a badge fits a wish,
# multiply the two number by number and add up. This dot product is the **score**:

# %% id="machine"
figures.machine("comparison")

# %% [markdown] id="wish"
# Let each badge show the three numbers of its word. And what should "it" wish for? Somebody was tired, so we might try a word that is alive
# and tells something: the wish $(1, 1, 0)$. Then "cat" has the score $1 \cdot 2 + 1 \cdot 0 + 0 \cdot 0 = 2$. **Predict** which word has
# the highest score. Decide first, then run the cell; its output is folded until you do.

# %% id="first-wish" tags=["predicted"]
print(labelled((X @ [1, 1, 0])[:, None], columns=["score"]))  # [:, None]: as a column

# %% [markdown] id="first-wish-answer" tags=["answer"]
# "Tired" wins with $1 \cdot 1 + 1 \cdot 2 = 3$, because it is a little alive and tells much, while "cat" tells nothing. So "it" would
# find "tired", and not the one who was.

# %% [markdown] id="fourth"
# What "tired" has and "cat" has not is *tells*, so our next wish counts *tells* against a word. It also counts *open* against a word, so
# that "it" gives less to itself. The next section divides each score by the square root of how many numbers a query has. To make this
# $\sqrt 4 = 2$, wish and badge get a fourth number. In the badge it is *alive* minus *tells*, which says nothing new. So the wish
# $(2, 0, -2, 2)$ scores 4 times *alive*, minus 2 times *tells*, minus 2 times *open*.

# %% [markdown] id="check-turn"
# **Your turn:** replace the dots, and a check judges your answer. {turn}`scores-by-hand`

# %% id="check-turn-code" tags=["your-turn"]
my_three = ...  # replace the dots by three whole numbers, such as (1, 2, 3)
check("scores-by-hand", my_three)

# %% [markdown] id="check-turn-ours" tags=["ours"]
# With "cat" the score is $2 \cdot 2 + 2 \cdot 2 = 8$. With "it" it is $-2 \cdot 2 = -4$, and with "tired"
# $2 \cdot 1 + 2 \cdot (-1) = 0$.

# %% [markdown] id="fourth-all"
# Here are all seven scores. (Our head also lets a word look ahead; lesson {lesson}`masking` forbids that.)

# %% id="fourth-code"
key = np.column_stack([X, X[:, 0] - X[:, 1]])  # the badges, one in each row
query_of_it = np.array([2, 0, -2, 2])
scores = key @ query_of_it
columns = ("alive", "tells", "open", "alive - tells", "score")
print(labelled(np.column_stack([key, scores]), columns=columns))

# %% [markdown] id="weights"
# ## From scores to shares
#
# "Cat" has the score 8, and the next best have 0. How much of its attention should "it" give to the cat? The shares, called **weights**,
# must sum to 1, and none may be negative. The seven scores sum to $-4$, so if we divided by that, the cat would get $8 / (-4) = -2$. First
# a rule must make each score a number that is not negative. Which rule?
#
# One demand nearly decides it, as lesson {lesson}`softmax` proves. Suppose that every score gets the same bonus. Then nobody has gained on
# anybody, and the shares should stay. We try a bonus of 10 with squares, and with powers of $e \approx 2.72$:

# %% id="rules"
for name, rule in {"squares": np.square, "powers of e": np.exp}.items():
    for bonus in (0, 10):
        made = rule(scores + bonus)
        print(f"{name:11}  all get {bonus:2} more: cat has {made[1] / made.sum():.4f}")

# %% [markdown] id="rules-notice"
# Squares fail. Powers pass, because $e^{s + 10} = e^{10} \cdot e^s$: all seven grow by the same factor, which drops out when they are
# divided by their sum. (Another base above 1 would only multiply all scores by a positive constant.)


# %% id="chance-code" tags=["hide-input"]
def luck(d_k):  # random wishes, each of which meets seven random badges
    draw = np.random.default_rng(0).normal
    scores = (draw(size=(1000, 1, d_k)) * draw(size=(1000, 7, d_k))).sum(axis=2)
    shares = []
    for each in (scores, scores / np.sqrt(d_k)):
        powers = np.exp(each)
        shares.append((powers.max(axis=1) / powers.sum(axis=1)).mean())
    return scores.std(), *shares


# %% [markdown] id="chance"
# A second question: do the shares depend on how many numbers a query has? Call this $d_k$. In ours it is 4, in SmolLM2 it is 64. A score
# adds up $d_k$ products. The folded `luck` lets a wish meet seven badges, a thousand times. All are random numbers with mean 0 and standard
# deviation 1.
#
# **Predict** what happens to the share of the best of the seven if $d_k$ grows. And if all scores are first divided by $\sqrt{d_k}$?

# %% id="chance-run" tags=["predicted"]
for d_k in (4, 64, 1024):
    size, share, divided = luck(d_k)
    print(f"d_k {d_k:4}: size {size:2.0f}, share {share:.2f}, divided {divided:.2f}")

# %% [markdown] id="chance-notice" tags=["answer"]
# The share grows, because the scores do. The standard deviation of such a score, *size* in the table, is about $\sqrt{d_k}$, not $d_k$,
# because products above and below 0 cancel in part. With 1024 numbers the luckiest badge gets nearly everything, though none was made
# to fit: such a model would be sure of itself before it has learned anything. After the division the share is about the same in the
# whole table. Lesson {lesson}`scaling` derives this root.

# %% [markdown] id="steps"
# So three steps lead from scores to weights. Divide each score by $\sqrt{d_k}$, here by $\sqrt 4 = 2$. Raise $e$ to each result. Divide
# each power by the sum of all seven. The last two steps together are called the *softmax*.

# %% id="weights-table"
half = scores / 2
powers = np.exp(half)
weights = powers / powers.sum()
steps = np.array([scores, half, powers, weights])
names = ("score", "half of it", "e to that power", "weight")
print(labelled(steps, names, columns=TOKENS))
print("sum of the powers:", powers.sum().round(2))

# %% [markdown] id="weights-notice"
# The cat gets 54.60 of 57.60, which is 95 percent. Some weights print as 0.00, but none is zero, because no power of $e$ is.

# %% [markdown] id="average"
# ## What "it" takes home
#
# Each word also brings a present to the party, its **value**. Our values are the first two numbers, *alive* and *tells*. From each word
# "it" takes the weight times the value, and adds up. So it takes home an average of all seven values:

# %% id="average-code"
value = X[:, :2]
taken = weights[:, None] * value
print(labelled(taken, columns=("takes alive", "takes tells"), digits=3))
print("the output of it:", taken.sum(axis=0).round(3))

# %% [markdown] id="average-notice"
# This is the output of the head for "it": $(1.91, 0.05)$, almost $(2, 0)$, the value of the cat.

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
# ## Who makes the wishes?
#
# Nobody can think up a wish for every word of a language. So a model calculates: its words are the rows of $X$, and their queries are the
# rows of $Q = X W_Q$. The query of a word is a sum of the rows of $W_Q$, each multiplied by one of the numbers of the word. So the three
# rows of $W_Q$ are what an *alive*, a *telling* and an *open* word look for; "it" is *open* by 2 and asks for twice the third. In the same
# way the rows of $W_K$ say what badge such a word wears, in $K = X W_K$, and those of $W_V$ what it brings, in $V = X W_V$.

# %% id="projections-code"
W_Q = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, -1, 1]])
W_K = np.array([[1, 0, 0, 1], [0, 1, 0, -1], [0, 0, 1, 0]])
W_V = np.eye(3, 2)  # alive and tells, as they are
query = X @ W_Q
print("query of it:   ", query[4])  # Python counts from 0
print("query of tired:", query[6])
print("X W_K are the keys:  ", np.array_equal(X @ W_K, key))
print("X W_V are the values:", np.array_equal(X @ W_V, value))

# %% [markdown] id="projections-notice"
# "Tired" is *alive* by 1 and *tells* by 2, so its query is $(0, 1, 0, 0) + 2 \cdot (1, 0, 0, 1) = (2, 1, 0, 2)$.
#
# In a model nobody chooses these matrices either: they are learned. Here is a simple way to learn $W_Q$. Start with twelve random numbers.
# Pick one, nudge it by 0.1 up or down, and keep the nudge only if "it" now gives more to "cat". Then pick again. The folded `learn` does
# this, and `for_cat` is what each word gives to "cat".


# %% id="learned-code" tags=["hide-input"]
def for_cat(matrix):  # the share of "cat" in the attention of each word
    powers = np.exp(X @ matrix @ key.T / 2)
    return powers[:, 1] / powers.sum(axis=1)


def learn(start, nudges):
    rng = np.random.default_rng(start)
    kept = rng.normal(size=(3, 4))
    for _ in range(nudges):
        tried = kept.copy()
        tried[rng.integers(3), rng.integers(4)] += rng.choice([-0.1, 0.1])
        if for_cat(tried)[4] > for_cat(kept)[4]:  # word 4 is "it"
            kept = tried
    return kept


# %% id="learned-run"
for start in range(3):
    first, last = learn(start, nudges=0), learn(start, nudges=800)
    before, after = for_cat(first)[4], for_cat(last)[4]
    print(f"start {start}: {before:.2f} {after:.2f}  wish", (X[4] @ last).round(1))

# %% [markdown] id="learned-notice"
# These are the shares before and after 800 tries. We said whom "it" means, but not what a pronoun wants, and still "it" has found the cat
# from all three starts, each time with another wish. A real model is at first only shown which word comes next in a text, and calculates
# for all its numbers at once to which side each should move (lesson {lesson}`gradients`).
#
# We kept a nudge only if it helped "it". **Predict** for which words besides "it" the share of "cat" has changed since the start.

# %% id="learned-others" tags=["predicted"]
shares = np.stack([for_cat(learn(0, 0)), for_cat(learn(0, 800))], axis=1)
print(labelled(shares, columns=("random", "learned")))

# %% [markdown] id="learned-others-answer" tags=["answer"]
# It has changed only for "the". A nudge in the first or second row changes nothing for "it", which is neither alive nor telling, so none
# of them was kept. But the third row is the wish of everything open, and "the" is open by 1. So "the" has learned what only "it" was
# taught, because both words are *open* and use the same row.

# %% [markdown] id="formula"
# ## All words at once
#
# Now all seven words ask all seven, again with the $W_Q$ that we chose:

# %% id="formula-table"
S = query @ key.T
powers = np.exp(S / np.sqrt(4))
P = powers / powers.sum(axis=1, keepdims=True)
print(labelled(P, columns=TOKENS))
print(labelled(P @ value, columns=("alive", "tells")))

# %% [markdown] id="spot"
# Five words look mostly at "cat".
#
# **Spot the mistake.** Somebody divides by `powers.sum(axis=0)`. The shares are still positive. What is wrong?
#
# <details><summary>What is wrong</summary>
#
# Now each column sums to 1, and no longer each row. If two equal queries ask a single word, each gives it $\frac12$ instead of 1.
#
# </details>

# %% [markdown] id="formula-scores"
# Books write these lines as follows. Let $T_q$ words ask $T_k$ words, with $Q_{ia}$ for number $a$ of query $i$ and $K_{ja}$ for number $a$
# of key $j$. Column $j$ of $K^\top$ is key $j$, so the line with `S` says
#
# $$\bigl( Q K^\top \bigr)_{ij} = \sum_{a=1}^{d_k} Q_{ia} K_{ja} \key{score-entry-by-entry}$$
#
# With $S$ for the table of all scores, the next two lines are
#
# $$P_{ij} = \frac{e^{S_{ij} / \sqrt{d_k}}}{\sum_l e^{S_{il} / \sqrt{d_k}}} \key{weight-entry-by-entry}$$
#
# where $l$ runs over all words that are asked. And number $a$ of the output is
#
# $$\bigl( P V \bigr)_{ia} = \sum_{j=1}^{T_k} P_{ij} V_{ja} \key{output-entry-by-entry}$$

# %% [markdown] id="formula-whole"
# The second is the softmax of each row of $S / \sqrt{d_k}$, so together the three are the best-known formula of attention,
# $\mathrm{softmax}\bigl( Q K^\top / \sqrt{d_k} \bigr)\, V$. The drawing shows the whole machine, with what you have calculated lit. Each
# blue box links to its lesson:

# %% id="machine-whole"
figures.machine()

# %% [markdown] id="own"
# ## Your own sentence
#
# The next three cells need only NumPy. You give the words their numbers, here *person*, *thing* and *open*, and say in `meant` who is
# meant. The numbers of a word are its badge and its present, too. The folded `train` nudges all nine numbers of $W_Q$ at once, and keeps a
# nudge if the product of the shares that `meant` asks for grows.


# %% id="own-train" tags=["hide-input"]
import numpy as np


def train(table, pairs):
    ask, found = np.transpose(pairs)
    W_Q, P = np.zeros((3, 3)), np.zeros((len(table), len(table)))
    for nudge in np.random.default_rng(0).normal(0, 0.1, (1000, 3, 3)):
        powers = np.exp(table @ (W_Q + nudge) @ table.T / np.sqrt(3))
        tried = powers / powers.sum(axis=1, keepdims=True)
        if tried[ask, found].prod() > P[ask, found].prod():  # the first is kept
            W_Q, P = W_Q + nudge, tried
    return P


def why_missed(table, i, j):
    if train(table, [(i, j)])[i, j] > 0.6:  # as the only pronoun
        return "other pronouns pull its wish away: change numbers, or nudge longer"
    return "give the noun a clear lead in one column, or the pronoun larger numbers"


# %% id="own-places" tags=["hide-input"]
def places(words, meant, numbers):
    for word in [*meant, *meant.values()]:
        if words.count(word) != 1 or word not in numbers:
            raise ValueError(f"{word!r} must be in numbers, and once in words")
    return [(words.index(word), words.index(noun)) for word, noun in meant.items()]


# %% id="own-code"
sentence = "the girl saw the tree and she climbed it"
words = sentence.split()
meant = {"she": "girl", "it": "tree"}
numbers = {"girl": [2, 0, 0], "tree": [0, 2, 0], "she": [1, 0, 1], "it": [1, 0, 1]}
table = np.array([numbers.get(word, [0, 0, 0]) for word in words])
pairs = places(words, meant, numbers)
shares = train(table, pairs)
for i, j in pairs:
    taken = (shares[i] @ table).round(2)
    print(f"{words[i]} gives {words[j]} {shares[i, j]:.2f} and takes", taken)
    if shares[i, j] <= 0.6:
        print("   ", why_missed(table, i, j))

# %% [markdown] id="own-real"
# Both pronouns ask alike here, so neither finds its noun for sure. Change a single number of "it", and run the cell again.
#
# Now write a `sentence` of your own, such as `the cup fell because it was full`, and change `meant` and `numbers`. Give each noun 2
# in a column where no other word has more than 1, and its pronoun 1 in that column and in *open*. If a pronoun misses its noun all the
# same, the cell says why.

# %% [markdown] id="own-bet"
# And the head from the beginning? Where the model is on your machine, the next cell shows it your sentence. **Predict** for each pronoun
# whether it gives its noun more than half of its attention. (This is a bet.)

# %% id="own-real-code" tags=["live", "predicted"]
if model.is_here:
    text = " ".join(words)
    text = text[0].upper() + text[1:]
    word_of = np.cumsum([token[0] == " " for token in model.tokens(text)])
    head = model.maps(text)[13, 8]
    for i, j in pairs:
        share = head[word_of == i][-1, word_of == j].sum()  # of all pieces of the noun
        hidden = " (hidden: it comes later)" if j > i else ""
        print(f'"{words[i]}" gives "{words[j]}" {share:.2f}{hidden}')

# %% [markdown] id="own-answer" tags=["answer"]
# In our sentence "it" gives "tree" 0.93. But "she" gives "girl" only 0.38, and 0.46 to the first word, "the". A head that finds one
# pronoun's noun need not find another's.

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
# - A score is the dot product of a query, what a word looks for, with a key, by which a word is found.
# - The softmax of the scores divided by $\sqrt{d_k}$ makes weights of them.
# - A word takes home the average of all values under its weights. "It" takes almost what "cat" hands over, because its wish fits the badge
#   of "cat". Nobody had to invent such a wish: we said who is meant, and 800 tries found a matrix that makes one. For the head of
#   the real model nobody marked even that.
#
# Now do the [exercises](../work/ex_{lesson}`start`_start.ipynb).

# %% [markdown] id="needle"
# ## Deeper: What can a query find?
#
# Turn the wish of "it" from somebody alive to what somebody does. The slider sets its query to $(s, 0, -2, s)$, from $s = 2$ at the left,
# the wish that you know, to $s = -2$ at the right. Guess: which word leads at the right end? Where does "it" look when it looks for
# neither?

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
# This machine works on four of the words, with queries of two numbers. Change any number of $X$ and its matrices $W$, and the others
# follow. (Its table S holds scores divided by $\sqrt{d_k}$, and it counts from 0.) After six trials comes the game: find the mistake.

# %% id="game-card"
from attn_course.game.card import break_the_machine

break_the_machine()

# %% [markdown] id="deeper-map"
# ## Deeper: The lessons, and which builds on which
#
# Each blue box in the drawing of the whole machine links to one of these lessons:

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
