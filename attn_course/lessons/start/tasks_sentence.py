"""The tasks of lesson start that ask our sentence, with a pencil: weights, values and queries of a few of its words."""

import math
from functools import partial

import numpy as np

from attn_course.sentence import KEY, TOKENS, VALUE
from attn_course.tasks.core import Case, Task, Wrong, every

ASKED = ("the", "cat", "sat", "because")
KNOWN = ("the", "sat", "tired")


def _of(table: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
    return np.asarray(table[0, [TOKENS.index(word) for word in words]])


def _home(asked: tuple[int, ...], base: int, *, divisor: int = 2, below: str = "", zero: float = 1.0, shared: bool = True) -> list[float]:
    """What is taken home with the query asked * ln(base); the switches make the known mistakes."""
    exponents = _of(KEY, ASKED) @ asked / divisor
    powers = base**exponents
    powers[exponents == 0] = zero
    if below:
        powers[exponents < 0] = {"nothing": 0.0, "negative": -base}[below]
    home = powers @ _of(VALUE, ASKED)
    return list(home / powers.sum() if shared else home)


HOME = Task(
    id="taken-home-by-hand",
    title="Home without a calculator",
    entry="my_home",
    kind="predict",
    equation="output-entry-by-entry",
    points=2,
    difficulty=1,
    minutes=7,
    trains="the whole way from a query to what is taken home",
    tolerance=1e-6,
    variants=every(asked=((0, 0, -2, 1), (0, 0, 2, 1), (2, 1, -2, -1), (0, 1, -2, 0)), base=(2, 3)),
    answer=_home,
    wrong=[
        Wrong(
            "scores not halved", partial(_home, divisor=1), "between the score and the power of e stands the division by 2, the root of 4"
        ),
        Wrong(
            "powers not divided by their sum",
            partial(_home, shared=False),
            "you added powers times values; only after the division by the sum of the powers are these weights, which sum to 1",
        ),
        Wrong(
            "a score of 0 gets no weight",
            partial(_home, zero=0.0),
            "a word with the score 0 gets a weight like any other, for e to the power 0 is 1",
        ),
        Wrong(
            "a negative score gets no weight",
            partial(_home, below="nothing"),
            "a negative score makes a small weight, but not 0: e to the power −ln b is 1/b",
        ),
        Wrong(
            "a negative score makes a negative power",
            partial(_home, below="negative"),
            "a power of e is always positive: e to the power −ln b is 1/b, not −b",
        ),
        Wrong(
            "the plain average",
            lambda asked, base: list(_of(VALUE, ASKED).mean(axis=0)),
            "that is the average under equal weights, which only a query of zeros gives; here each value counts with its own weight",
        ),
    ],
    hints=[
        "Leave the logarithm aside: multiply your list by each key, as if it were the query, and write ln b behind the four results.",
        "Half of 2 ln b is ln b, and e to that power is b. What is e to the power 0, and what is it to the power −ln b?",
        "You have four powers. Their sum is the common divisor of the weights. Then take the three numbers of the values one by one.",
    ],
)


def _cat(weights: tuple[float, ...], wanted: tuple[int, ...], *, sign: int = -1, over: bool = True) -> list[float]:
    """What cat must hand over, so that the average is what is wanted; the switches make the known mistakes."""
    the, cat, *others = weights
    rest = np.array(wanted) + sign * (np.array([the, *others]) @ _of(VALUE, KNOWN))
    return list(rest / cat if over else rest)


def _cat_times_weight(weights: tuple[float, ...], wanted: tuple[int, ...]) -> list[float]:
    return [weights[1] * number for number in _cat(weights, wanted, over=False)]


def _cat_under_equal_weights(weights: tuple[float, ...], wanted: tuple[int, ...]) -> list[float]:
    return list(4 * np.array(wanted) - _of(VALUE, KNOWN).sum(axis=0))


HANDS_OVER = Task(
    id="what-cat-hands-over",
    title="What must the cat hand over?",
    entry="my_value",
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
    answer=_cat,
    wrong=[
        Wrong(
            "not divided by the weight of cat",
            partial(_cat, over=False),
            "that is what “cat” must contribute, its weight times its value; the value itself is larger in size",
        ),
        Wrong(
            "multiplied by the weight of cat",
            _cat_times_weight,
            "weight times value is what arrives; to come from that back to the value, divide by the weight",
        ),
        Wrong(
            "the other words forgotten",
            lambda weights, wanted: [number / weights[1] for number in wanted],
            "the other three hand something over too: subtract what they contribute before you ask what is left for “cat”",
        ),
        Wrong(
            "what the others contribute added",
            partial(_cat, sign=1),
            "what the other words contribute is already there: “cat” must bring what is wanted less that",
        ),
        Wrong(
            "all four weights taken as equal",
            _cat_under_equal_weights,
            "that would be right for a plain average; here each value counts with the weight that the cell prints",
        ),
    ],
    hints=[
        "Each of the three numbers is a small problem of its own. Begin with the first, and call what you look for x.",
        "What do “the”, “sat” and “tired” contribute together, weight times value? What is then missing from what is wanted?",
        "What is missing must arrive from “cat”, and of the value of “cat” only a part arrives. Which part?",
    ],
)


def _take_home_broken(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """query (T_q, d_k), key (T_k, d_k), value (T_k, d_v) -> (T_q, d_v)."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=0, keepdims=True)
    return weights @ key


def _taken(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, axis: int | None = 1, root: float | None = None) -> np.ndarray:
    powers = np.exp(query @ key.T / (math.sqrt(query.shape[1]) if root is None else root))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True) @ value)


def _few_words(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    return {"query": rng.normal(size=(T_q, d_k)), "key": rng.normal(size=(T_k, d_k)), "value": rng.normal(size=(T_k, d_v))}


REPAIR = Task(
    id="repair-taking-home",
    title="Repair a head of four lines",
    entry="take_home",
    kind="repair",
    equation="output-entry-by-entry",
    points=1,
    difficulty=2,
    minutes=4,
    trains="which sum is 1, and what is averaged",
    tolerance=3e-7,  # a root taken in float32 is none of the two mistakes
    answer=_taken,
    broken=_take_home_broken,
    cases=lambda rng: [
        Case("values as long as keys", **_few_words(rng, 2, 5, 3, 3)),
        Case("fewer words ask than answer", **_few_words(rng, 3, 7, 5, 2)),
        Case("more words ask than answer", **_few_words(rng, 7, 3, 2, 5)),
        Case("one word asks", **_few_words(rng, 1, 5, 3, 2)),
        Case("one word answers", **_few_words(rng, 3, 1, 2, 5)),
        Case("queries and keys of one number", **_few_words(rng, 2, 5, 1, 3)),
        Case("values of one number", **_few_words(rng, 3, 5, 2, 1)),
    ],
    wrong=[
        Wrong(
            "only the values mended",
            partial(_taken, axis=0),
            "you average values now, but the weights still sum to 1 down each column; a row holds the weights of one word that asks",
        ),
        Wrong(
            "only the axis mended",
            lambda query, key, value: _taken(query, key, key),
            "each row of your weights sums to 1 now, but they still average the keys: what a word hands over is its value",
        ),
        Wrong(
            "one sum for the whole table",
            partial(_taken, axis=None),
            "each word that asks has weights of its own, so each row is divided by its own sum",
        ),
        Wrong(
            "powers without any sum",
            lambda query, key, value: np.exp(query @ key.T / math.sqrt(query.shape[1])) @ value,
            "powers of e are positive, but they are weights only after the division by their sum",
        ),
        Wrong(
            "the root of the number of keys",
            lambda query, key, value: _taken(query, key, value, root=math.sqrt(len(key))),
            "the scale was right as it stood: the root of the length of a query, whatever the number of words",
        ),
        Wrong(
            "the scale removed",
            lambda query, key, value: _taken(query, key, value, root=1.0),
            "the division by the root belongs there, and was no mistake",
        ),
    ],
    hints=[
        "Draw the table of scores for two words that ask and three that answer. Where in it are the three weights of the first word?",
        "`axis=0` runs down a column, from one word that asks to the next. Which way does one word look at all the others?",
        "What does a key say, and what does a word hand over when it is found? Compare the last line with the shape that is promised.",
    ],
)


def _size(words: int, share: float, *, per_c: int = 2, others: int = -1) -> float:
    """The c at which sat has its share; `per_c`: how far it leads for each c. The switches make the known mistakes."""
    return math.log((words + others) * share / (1 - share)) / per_c


SHARE = Task(
    id="share-for-sat",
    title="How strong a query?",
    entry="my_c",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=6,
    trains="the way from a wanted weight back to the query",
    tolerance=1e-6,
    variants=every(words=(13, 19, 26), share=(0.75, 0.9, 0.8)),
    answer=_size,
    wrong=[
        Wrong("scores not halved", partial(_size, per_c=4), "the score of “sat” is 4c, and it is divided by 2 before e is raised to it"),
        Wrong(
            "c taken for the half score", partial(_size, per_c=1), "you found the half score of “sat”; work out how many times c that is"
        ),
        Wrong(
            "sat counted among the others",
            partial(_size, others=0),
            "one of the words is “sat” itself; only the others have the power 1",
        ),
        Wrong(
            "cat not counted",
            partial(_size, others=-2),
            "“cat” has the score 0 like the words with keys of zeros, so its power counts in the sum as theirs do",
        ),
        Wrong(
            "one rival only",
            lambda words, share: math.log(share / (1 - share)) / 2,
            "“sat” must hold its own against all other words together, not against one of them",
        ),
        Wrong(
            "not divided by what is left",
            lambda words, share: math.log((words - 1) * share) / 2,
            "the power of “sat” stands in the sum below the line too: collect both of its places before you solve",
        ),
        Wrong(
            "share and rest exchanged",
            lambda words, share: math.log((words - 1) * (1 - share) / share) / 2,
            "with this c the other words together get the share that “sat” is to have",
        ),
    ],
    hints=[
        "Which scores do “sat” and “cat” get from this query? And all the other words?",
        "The power $e^0$ is 1. So the sum of all powers is the one of “sat” and a whole number. Which one?",
        "Call the power of “sat” $u$, and write its weight with $u$. Solve for $u$ first, and ask only then which $c$ makes it.",
    ],
)


def _it(because: float, the: float) -> float:
    return the**2 / because


TWICE = Task(
    id="weight-between-two",
    title="Half a key, and a whole one",
    entry="my_weight",
    kind="predict",
    equation="score-entry-by-entry",
    points=2,
    difficulty=3,
    minutes=5,
    trains="following a score through the softmax without knowing the query",
    tolerance=1e-6,
    variants=every(because=(0.36, 0.16, 0.25), the=(0.18, 0.12, 0.06)),
    answer=_it,
    wrong=[
        Wrong(
            "twice the weight of the",
            lambda because, the: 2 * the,
            "twice the key makes twice the score, but a weight is not proportional to its score",
        ),
        Wrong(
            "one more step of the same size",
            lambda because, the: 2 * the - because,
            "the scores of “because”, “the” and “it” lie at equal distances; powers of e turn equal distances into equal factors",
        ),
        Wrong(
            "the square of the weight",
            lambda because, the: the**2,
            "the power of “it” is the square of the power of “the”, but their common divisor would be squared as well",
        ),
        Wrong(
            "the root of the two weights",
            lambda because, the: math.sqrt(because * the),
            "that would be the weight of a key halfway between “because” and “the”; “it” lies on the other side of “the”",
        ),
        Wrong(
            "because and the exchanged",
            lambda because, the: because**2 / the,
            "you went on from “the” to “because” and one step beyond; “it” lies beyond “the”",
        ),
        Wrong(
            "what the two leave over",
            lambda because, the: 1 - because - the,
            "what the two leave is shared by five words, and “it” is only one of them",
        ),
    ],
    hints=[
        "Call the half score of “the” $s$. What are the half scores of “because” and “it”, whatever the query was?",
        "All three weights are powers of $e$ over the same sum. Write them down: which of the three powers do you know?",
        "By which factor is the weight of “the” larger or smaller than that of “because”? And that of “it” than that of “the”?",
    ],
)

SENTENCE = [HOME, HANDS_OVER, REPAIR, SHARE, TWICE]
