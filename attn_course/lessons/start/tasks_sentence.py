"""The tasks of lesson start that ask our sentence, with a pencil: weights, values and queries of a few of its words."""

import numpy as np

from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import every


@asked(
    "taken-home-by-hand",
    "Home without a calculator",
    kind="predict",
    equation="output-entry-by-entry",
    points=2,
    difficulty=1,
    minutes=7,
    trains="the whole way from a query to what is taken home",
    tolerance=1e-6,
    variants=every(asked=((1, -1, -2, 0), (1, -1, 2, 0), (1, 2, -2, 0), (0, 1, -2, 0)), base=(2, 3)),
    slips="""
        scores not halved
            base ** (keys @ asked / 2) -> float(base) ** (keys @ asked)
            between the score and the power of e stands the division by 2, the root of 4
        powers not divided by their sum
            ` / powers.sum()` ->
            you added powers times values; only after the division by the sum of the powers are these weights, which sum to 1
        a score of 0 gets no weight
            (keys @ asked / 2) -> (keys @ asked / 2) * (keys @ asked != 0)
            a word with the score 0 gets a weight like any other, for e to the power 0 is 1
        a negative score gets no weight
            (keys @ asked / 2) -> (keys @ asked / 2) * (keys @ asked >= 0)
            a negative score makes a small weight, but not 0: e to the power −ln b is 1/b
        a negative score makes a negative power
            base ** (keys @ asked / 2) -> np.where(keys @ asked < 0, -base, base ** (keys @ asked / 2))
            a power of e is always positive: e to the power −ln b is 1/b, not −b
        the plain average
            powers @ values / powers.sum() -> values.mean(axis=0)
            that is the average under equal weights, which only a query of zeros gives; here each value counts with its own weight
    """,
    hints="""
        Leave the logarithm aside: multiply your list by each key, as if it were the query, and write ln b behind the four results.
        Half of 2 ln b is ln b, and e to that power is b. What is e to the power 0, and what is it to the power −ln b?
        You have four powers. Their sum is the common divisor of the weights. Then take the three numbers of the values one by one.
    """,
    why=r"""
        Take `asked = (1, -1, -2, 0)` and `base = 2`. The scores are $-2, 2, -2, 0$ times $\ln 2$, so their halves are $-\ln 2$, $\ln 2$,
        $-\ln 2$ and $0$, and the powers of $e$ are $1/2$, $2$, $1/2$ and $1$. They sum to 4, and the weights are $1/8$, $1/2$, $1/8$ and
        $1/4$. The averages are $\frac12 \cdot 2 = 1$, then $\frac18 \cdot 2 = \frac14$, and $-\frac18 + \frac12 \cdot 2 = \frac78$. No word
        gets nothing: not "the" and "sat", whose scores are negative, and not "because", whose score is 0 and whose weight is larger than
        theirs.
    """,
)
def my_home(asked, base):
    r"""No calculator, please. A new word asks four of our words, and no others:

    $$\begin{array}{lll}
    & \text{key} & \text{value} \\ \hline
    \text{the} & (0, 0, 1, 0) & (0, 0, -1) \\
    \text{cat} & (2, 0, 0, 2) & (2, 0, 2) \\
    \text{sat} & (0, 2, 0, -2) & (0, 2, 0) \\
    \text{because} & (0, 0, 0, 0) & (0, 0, 0)
    \end{array}$$

    (Here values have a third number.) Its query is your list `asked` times $\ln b$, where $b$ is your `base`; the cell below prints
    both. All else is as in the lesson: half of each score, $e$ to that power, weights, average. The logarithm makes the powers plain,
    as in $e^{2 \ln 5} = 25$. What does the new word take home, that is, what is its output? Write `my_home = (..., ..., ...)`;
    fractions such as `2 / 7` are welcome.
    """
    keys = np.array([(0, 0, 1, 0), (2, 0, 0, 2), (0, 2, 0, -2), (0, 0, 0, 0)])
    values = np.array([(0, 0, -1), (2, 0, 2), (0, 2, 0), (0, 0, 0)])
    powers = base ** (keys @ asked / 2)
    return powers @ values / powers.sum()


@asked(
    "what-cat-hands-over",
    "What must the cat hand over?",
    kind="predict",
    equation="output-entry-by-entry",
    points=1,
    difficulty=2,
    minutes=4,
    trains="an average read backwards, one value unknown",
    tolerance=1e-6,
    variants=every(
        weights=((0.1, 0.5, 0.2, 0.2), (0.2, 0.4, 0.3, 0.1), (0.3, 0.4, 0.2, 0.1)),
        wanted=((2, 0, 2), (1, 0, 2), (2, 1, 2), (3, 1, 2)),
    ),
    slips="""
        not divided by the weight of cat
            (wanted - others) / cat_weight -> wanted - others
            that is what “cat” must contribute, its weight times its value; the value itself is larger in size
        multiplied by the weight of cat
            / cat_weight -> * cat_weight
            weight times value is what arrives; to come from that back to the value, divide by the weight
        the other words forgotten
            (wanted - others) -> np.array(wanted)
            the other three hand something over too: subtract what they contribute before you ask what is left for “cat”
        what the others contribute added
            wanted - others -> wanted + others
            what the other words contribute is already there: “cat” must bring what is wanted less that
        all four weights taken as equal
            = weights -> = (0.25, 0.25, 0.25, 0.25)
            that would be right for a plain average; here each value counts with the weight that the cell prints
    """,
    hints="""
        Each of the three numbers is a small problem of its own. Begin with the first, and call what you look for x.
        What do “the”, “sat” and “tired” contribute together, weight times value? What is then missing from what is wanted?
        What is missing must arrive from “cat”, and of the value of “cat” only a part arrives. Which part?
    """,
    why="""
        What arrives is the sum of weight times value, {eq}`output-entry-by-entry`. Subtract what the other three contribute; the rest is
        the weight of "cat" times its value, so divide by that weight. The smaller the weight, the more "cat" has to exaggerate to be heard,
        and what the others say too much of, such as *tells*, it must take back with a minus. In training a model adjusts values and weights
        together.
    """,
)
def my_value(weights, wanted):
    """Suppose that "it" asks *the*, *cat*, *sat* and *tired* only, and gives them, in this order, the weights that the cell below
    prints. A value has three numbers here: "the" has $(0, 0, -1)$, "sat" has $(0, 2, 0)$, and "tired" has $(1, 2, 1)$. Which value
    must "cat" have, so that the output of "it" is exactly the three numbers in `wanted`? Write `my_value = (..., ..., ...)`.
    """
    the_weight, cat_weight, sat_weight, tired_weight = weights
    others = the_weight * np.array([0, 0, -1]) + sat_weight * np.array([0, 2, 0]) + tired_weight * np.array([1, 2, 1])
    return (wanted - others) / cat_weight


def _few_words(normal, T_q, T_k, d_k, d_v):
    return {"query": normal(T_q, d_k), "key": normal(T_k, d_k), "value": normal(T_k, d_v)}


FEW_WORDS = """
values as long as keys: 2 5 3 3
fewer words ask than answer: 3 7 5 2
more words ask than answer: 7 3 2 5
one word asks: 1 5 3 2
one word answers: 3 1 2 5
queries and keys of one number: 2 5 1 3
values of one number: 3 5 2 1
"""


@asked(
    "repair-taking-home",
    "Repair a head of four lines",
    kind="repair",
    equation="output-entry-by-entry",
    points=1,
    difficulty=2,
    minutes=4,
    trains="which sum is 1, and what is averaged",
    broken=["only the values mended", "only the axis mended"],
    tolerance=3e-7,
    cases=tried(_few_words, FEW_WORDS),
    slips="""
        only the values mended
            axis=1 -> axis=0
            you average values now, but the weights still sum to 1 down each column; a row holds the weights of one word that asks
        only the axis mended
            weights @ value -> weights @ key
            each row of your weights sums to 1 now, but they still average the keys: what a word hands over is its value
        one sum for the whole table
            sum(axis=1, keepdims=True) -> sum()
            each word that asks has weights of its own, so each row is divided by its own sum
        powers without any sum
            ` / powers.sum(axis=1, keepdims=True)` ->
            powers of e are positive, but they are weights only after the division by their sum
        the root of the number of keys
            query.shape[1] -> len(key)
            the scale was right as it stood: the root of the length of a query, whatever the number of words
        the scale removed
            ` / np.sqrt(query.shape[1])` ->
            the division by the root belongs there, and was no mistake
    """,
    hints="""
        Draw the table of scores for two words that ask and three that answer. Where in it are the three weights of the first word?
        `axis=0` runs down a column, from one word that asks to the next. Which way does one word look at all the others?
        What does a key say, and what does a word hand over when it is found? Compare the last line with the shape that is promised.
    """,
    why="""
        A row of the table belongs to one word that asks, so the sum that makes its weights runs along the row, `axis=1`. And keys are for
        comparing only: what is averaged is the values. A test whose lengths all differ finds the second mistake by the shape of the result.
        The first leaves every shape as it is; only the sums of the rows give it away.
    """,
)
def take_home(query, key, value):
    """query (T_q, d_k), key (T_k, d_k), value (T_k, d_v) -> (T_q, d_v).

    Here is a whole head in four lines. Rows are positions: `query` has the shape `(T_q, d_k)`, `key` has `(T_k, d_k)`, `value` has `(T_k,
    d_v)`, all float64. The function should return what each word that asks takes home, one row for each, of the shape `(T_q, d_v)`. Any
    of these lengths may be 1 {case}`one word asks`, and scores are moderate
    {every}`(np.abs(query @ key.T) < 100).all()`. Two of the four lines are wrong, and if all lengths are equal, nothing complains.
    Repair them.
    """
    scores = query @ key.T / np.sqrt(query.shape[1])
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ value


@asked(
    "share-for-sat",
    "How strong a query?",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=6,
    trains="the way from a wanted weight back to the query",
    variants=every(words=(13, 19, 26), share=(0.75, 0.9, 0.8)),
    digits=6,
    slips="""
        scores not halved
            / 2 -> / 4
            the score of “sat” is 4c, and it is divided by 2 before e is raised to it
        c taken for the half score
            ` / 2` ->
            you found the half score of “sat”; work out how many times c that is
        sat counted among the others
            words - 1 -> words
            one of the words is “sat” itself; only the others have the power 1
        cat not counted
            words - 1 -> words - 2
            “cat” has the score 0 like the words with keys of zeros, so its power counts in the sum as theirs do
        one rival only
            (words - 1) * share -> share
            “sat” must hold its own against all other words together, not against one of them
        not divided by what is left
            share / (1 - share) -> share
            the power of “sat” stands in the sum below the line too: collect both of its places before you solve
        share and rest exchanged
            share / (1 - share) -> (1 - share) / share
            with this c the other words together get the share that “sat” is to have
    """,
    hints="""
        Which scores do “sat” and “cat” get from this query? And all the other words?
        The power $e^0$ is 1. So the sum of all powers is the one of “sat” and a whole number. Which one?
        Call the power of “sat” $u$, and write its weight with $u$. Solve for $u$ first, and ask only then which $c$ makes it.
    """,
    why=r"""
        "Sat" has the score $2c \cdot 2 = 4c$, "cat" has 0, and so have all the others. Half of $4c$ is $2c$. With $u = e^{2c}$ and
        $n$ words, the weight of "sat" is $u / (u + n - 1)$. Set it to $p$, multiply out, and get $u = (n - 1)\, p / (1 - p)$, so that $c =
        \frac12 \ln \frac{(n - 1)\, p}{1 - p}$. A text with twice as many other words needs only $\frac12 \ln 2 \approx 0.35$ more. But no
        $c$ gives the weight 1.
    """,
)
def my_c(words, share):
    """Now you ask, and you want to hear "sat". In a text of `words` words one is "sat", with the key $(0, 2, 0, -2)$, one is "cat",
    with $(2, 0, 0, 2)$, and all others have the key of "because", $(0, 0, 0, 0)$. Your query is $(0, 2c, 0, 0)$. Scores are halved, and the
    softmax makes weights of them. For which $c$ does "sat" get exactly the weight `share`? The cell below prints both numbers. Write
    `my_c`, such as `np.log(7) / 3`.
    """
    return np.log((words - 1) * share / (1 - share)) / 2


@asked(
    "weight-between-two",
    "Half a key, and a whole one",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=5,
    trains="following a score through the softmax without knowing the query",
    variants=every(because=(0.36, 0.16, 0.25), the=(0.18, 0.12, 0.06)),
    digits=6,
    slips="""
        twice the weight of the
            the**2 / because -> 2 * the
            twice the key makes twice the score, but a weight is not proportional to its score
        one more step of the same size
            the**2 / because -> 2 * the - because
            the scores of “because”, “the” and “it” lie at equal distances; powers of e turn equal distances into equal factors
        the square of the weight
            ` / because` ->
            the power of “it” is the square of the power of “the”, but their common divisor would be squared as well
        the root of the two weights
            the**2 / because -> np.sqrt(because * the)
            that would be the weight of a key halfway between “because” and “the”; “it” lies on the other side of “the”
        because and the exchanged
            the**2 / because -> because**2 / the
            you went on from “the” to “because” and one step beyond; “it” lies beyond “the”
        what the two leave over
            the**2 / because -> 1 - because - the
            what the two leave is shared by five words, and “it” is only one of them
    """,
    hints="""
        Call the half score of “the” $s$. What are the half scores of “because” and “it”, whatever the query was?
        All three weights are powers of $e$ over the same sum. Write them down: which of the three powers do you know?
        By which factor is the weight of “the” larger or smaller than that of “because”? And that of “it” than that of “the”?
    """,
    why=r"""
        Let $s$ be the half score of "the". The key of "it" is twice as long, so its half score is $2s$, and that of "because" is 0,
        whatever the query was. With $N$ for the sum of all seven powers, the three weights are $1/N$, $e^s/N$ and $e^{2s}/N$: from each to
        the next there is the same factor $e^s = p_\text{the} / p_\text{because}$. So $p_\text{it} = p_\text{the}^2 / p_\text{because}$. You
        need neither the query nor the other four words.
    """,
)
def my_weight(because, the):
    """Somebody asks our whole sentence with a query that you do not know. But you know three keys: "because" has $(0, 0, 0, 0)$, "the"
    has $(0, 0, 1, 0)$, and "it" has $(0, 0, 2, 0)$. Scores are divided by 2, and the softmax over all seven words makes
    weights of them. The cell below prints the weights of "because" and "the". Which weight did "it" get? Write `my_weight`.
    """
    return the**2 / because
