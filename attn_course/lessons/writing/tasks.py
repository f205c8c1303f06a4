"""The tasks on writing: what is read, which rows are enough, and the words that are drawn."""

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, cell, note, tried
from attn_course.tasks.core import every


@asked(
    "rows-to-write",
    "What a cache saves",
    kind="predict",
    equation="rows-read-anew",
    points=2,
    difficulty=1,
    minutes=5,
    trains="counting what is read",
    variants=every(n=(10, 40, 60), m=(25, 100)),
    digits=6,
    slips="""
        the last word read too
            m * (m - 1) // 2 -> m * (m + 1) // 2
            the first step reads the start alone, and the last word that is written is not read any more
        every step reads the start only
            m * n + m * (m - 1) // 2 -> m * n
            the text grows: each step reads one row more than the one before
        the start read once more at each step
            n + m - 1) -> m * n + m - 1)
            with a cache the start is read in the first step only
        the last word read with a cache
            n + m - 1) -> n + m)
            the last word that is written is not read any more
    """,
    hints="""
        How many rows does the first step read, and how many the second, without a cache? And with one?
        Without a cache: n, n + 1, ..., n + m - 1. With one: n, then a single row in each of the m - 1 other steps.
        m n + m (m - 1) / 2, and n + m - 1
    """,
    why="""
        The first number grows with the square of $m$, the second in proportion. (With a cache, a row still meets all kept keys.)
    """,
)
def my_rows(n, m):
    r"""A model writes $m$ words behind a start of $n$ words, one after the other. How many rows does it read in all its steps together,
    first without a cache, then with one? The cell below prints your $n$ and $m$. Write `my_rows = (without, with_cache)`.
    """
    return (m * n + m * (m - 1) // 2, n + m - 1)


def _behind(normal, new, kept, d_k, d_v):
    return {"query": normal(new, d_k), "key": normal(kept + new, d_k), "value": normal(kept + new, d_v)}


BEHIND = """
two behind three: 2 3 5 7
nothing kept: 5 0 3 2
one new word: 1 6 2 3
three behind one: 3 1 7 5
"""


@asked(
    "attention-behind-kept",
    "New queries, all keys",
    kind="write",
    equation="new-rows-behind-kept",
    points=2,
    difficulty=2,
    minutes=8,
    trains="a causal mask for the last rows alone",
    forbid=(forbidden.ATTENTION,),
    cases=tried(_behind, BEHIND),
    slips="""
        the mask at the top left
            total - new + i + 1 -> i + 1
            the first new query stands behind the kept keys, and sees them all
        no mask
            total - new + i + 1 -> total
            a new word must not see the new words behind it
        one place too far
            total - new + i + 1 -> total - new + i + 2
            that shows each word the next one
        not scaled
            ` / np.sqrt(query.shape[1])` ->
            the scores are divided by the root of d_k
    """,
    hints="""
        At which place does the first new query stand, if there are `total` keys and `new` queries?
        The first of the new queries sees all kept keys and its own.
        Go through the new queries: number i, counted from 0, sees the first `total - new + i + 1` keys and values.
    """,
    why="""
        The earlier queries are nowhere needed, so a cache keeps keys and values, and no queries.
    """,
)
def my_attention(query, key, value):
    r"""Causal attention for the newest words, (new, d_v).

    Write `my_attention(query, key, value)`. The keys $(\text{kept} + \text{new}, d_k)$ and values $(\text{kept} + \text{new}, d_v)$ are
    those of the whole text, and the queries $(\text{new}, d_k)$ those of its last words. Each word sees itself and all words before it.
    Scores are divided by $\sqrt{d_k}$. All words may be new {case}`nothing kept`.
    """
    new, total = len(query), len(key)
    scores = query @ key.T / np.sqrt(query.shape[1])
    found = np.zeros((new, value.shape[1]))
    for i in range(new):
        seen = total - new + i + 1
        terms = np.exp(scores[i, :seen] - scores[i, :seen].max())
        found[i] = terms @ value[:seen] / terms.sum()
    return found


def _choice(rng, n, temperature, share, spread, offset=0.0):
    return {"logits": spread * rng.normal(size=n) + offset, "temperature": temperature, "share": share}


CHOICES = """
nine words: 9 1.0 0.8 1.0
a high temperature: 7 2.0 0.6 2.0
a low one: 11 0.5 0.9 1.0
only the likeliest: 5 1.0 0.05 1.0
scores of several hundred: 6 1.5 0.7 300.0
several hundred at a low temperature: 6 0.25 0.7 1.0 400.0
all words: 4 1.0 1.0 1.0
one word: 1 1.0 0.5 1.0
"""


@asked(
    "nucleus-of-next-words",
    "Temperature and nucleus",
    kind="write",
    equation=None,
    points=2,
    difficulty=2,
    minutes=10,
    trains="what a model draws its next word from",
    forbid=(forbidden.SOFTMAX,),
    cases=tried(_choice, CHOICES),
    slips="""
        the word that crosses the share left out
            np.cumsum(p[order]) - p[order] < share -> np.cumsum(p[order]) <= share
            the word with which the sum reaches the share is kept as well, and the likeliest always
        not made to sum to 1
            ` / kept.sum()` ->
            what is kept must sum to 1 again
        temperature behind the softmax
            ` / temperature` -> ;; p = terms / terms.sum() -> p = (terms / terms.sum()) / temperature
            the temperature divides the scores, before the softmax
        multiplied by the temperature
            logits / temperature -> logits * temperature
            a high temperature makes the choices more equal: it divides the scores
        the maximum before the temperature
            scaled - scaled.max() -> scaled - logits.max()
            what is subtracted must be the largest of what is raised to a power: of the scores divided by the temperature
        no temperature
            logits / temperature -> logits
            the scores are divided by the temperature
        no nucleus
            np.cumsum(p[order]) - p[order] < share -> p[order] > -1
            only the likeliest words whose probabilities reach `share` are kept
        the unlikeliest kept
            np.argsort(-p) -> np.argsort(p)
            sort so that the likeliest come first
        left in the order of size
            kept[order] = np.where -> kept[:] = np.where
            the probabilities go back to the places of their words
    """,
    hints="""
        First the probabilities at this temperature. In which order are words let in?
        Sort the likeliest first. A word is let in if the sum of those BEFORE it is below `share`.
        `order = np.argsort(-p)`, `np.cumsum(p[order]) - p[order] < share`, back to their places, divided by the sum.
    """,
    why="""
        Nucleus sampling (Holtzman et al., 2019, arXiv:1904.09751) cuts off the long tail of words, each of which is unlikely, but which
        are drawn often together.
    """,
)
def my_chances(logits, temperature, share):
    r"""The probabilities from which the next word is drawn, (n,).

    Write `my_chances(logits, temperature, share)` for one row of scores. Take the softmax of the scores divided by the temperature, and
    keep of it only the *nucleus*: the fewest words, the likeliest first, whose probabilities sum to `share` or more. All others get 0, and
    those kept are divided by their sum. Scores may be several hundred {case}`scores of several hundred`. No two probabilities are equal,
    and the share is above 0 and at most 1.
    """
    scaled = logits / temperature
    terms = np.exp(scaled - scaled.max())
    p = terms / terms.sum()
    order, kept = np.argsort(-p), np.zeros(len(p))
    kept[order] = np.where(np.cumsum(p[order]) - p[order] < share, p[order], 0.0)
    return kept / kept.sum()


ORDER = [
    note(
        "title",
        """
        Take them in any order. All lean on the core alone.
    """,
    ),
    note(
        "setup-text",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are positions.
    """,
    ),
    cell(
        "setup",
        """
        import numpy as np
        import torch
    """,
    ),
    "rows-to-write",
    "attention-behind-kept",
    "nucleus-of-next-words",
    "causal-mask-behind-kept",
    "chances-at-temperature",
]
