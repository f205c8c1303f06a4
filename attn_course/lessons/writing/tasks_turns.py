"""What the lesson on writing asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried


def _words(rng, new, kept):
    return {"new": new, "kept": kept}


TEXTS = """
nothing kept: 4 0
one new word: 1 5
three behind two: 3 2
two behind seven: 2 7
the first word: 1 0
"""


@asked(
    "causal-mask-behind-kept",
    "A mask behind a cache",
    kind="write",
    equation="decoding-equals-full-pass",
    points=1,
    difficulty=2,
    minutes=4,
    trains="places of new words behind kept ones",
    your_turn=True,
    cases=tried(_words, TEXTS),
    slips="""
        the kept words forgotten
            , kept) -> )
            the first new word stands at place `kept`, not at 0: it sees all kept words and itself
        words do not see themselves
            , kept) -> , kept - 1)
            each word also sees itself
        one place too far
            , kept) -> , kept + 1)
            that shows each word the next one
        ones hide
            np.tri -> 1 - np.tri
            1 means: may see
        no mask among the new words
            np.tri(new, kept + new, kept) -> np.ones((new, kept + new))
            a new word does not see the new words behind it
        rows and columns exchanged
            np.tri(new, kept + new, kept) -> np.tri(new, kept + new, kept).T
            rows are the new words, and columns all keys
    """,
    hints="""
        At which place does the first new word stand? Which keys are at places up to its own?
        The keys stand at `np.arange(kept + new)`, the new words at `kept + np.arange(new)`.
        Compare the two, one as a row and the other as a column, `[:, None]`; or look up what `np.tri` does with three arguments.
    """,
)
def my_allowed(new, kept):
    r"""Which keys each new word may see: 1.0 where it may, else 0.0.

    Write `my_allowed(new, kept)`: a NumPy array of 1.0 and 0.0, of shape `(new, kept + new)`. Each row belongs to a new word, and the
    columns to all keys, first the kept ones. A word sees itself and all words before it. `kept` may be 0 {case}`nothing kept`.
    """
    return np.tri(new, kept + new, kept)


def _choices(rng, n, temperature, offset, *batch):
    return {"scores": 3 * rng.normal(size=(*batch, n)) + offset, "temperature": temperature}


CHOICES = """
one row: 7 1.0 0.0
three rows: 5 0.5 0.0 3
a high temperature: 3 2.0 0.0 2 5
scores above a thousand: 5 1.5 1300.0 2
one word: 1 1.0 0.0 3
"""


@asked(
    "chances-at-temperature",
    "The chances of the next word",
    kind="write",
    equation="softmax-with-temperature",
    points=1,
    difficulty=1,
    minutes=3,
    trains="from scores to what is drawn from",
    your_turn=True,
    forbid=(forbidden.SOFTMAX,),
    cases=tried(_choices, CHOICES),
    slips="""
        no temperature
            scores / temperature -> scores
            the scores are divided by the temperature
        multiplied by the temperature
            scores / temperature -> scores * temperature
            a high temperature evens the chances out: it divides the scores
        temperature behind the softmax
            scores / temperature -> scores ;; .sum(-1, keepdims=True) -> .sum(-1, keepdims=True) / temperature
            the temperature divides the scores, before the exponential
        one sum for all rows
            terms.sum(-1, keepdims=True) -> terms.sum()
            each row of chances sums to 1: take the sum over the last axis
        no maximum
            ` - scaled.max(-1, keepdims=True)` ->
            scores above a thousand overflow: subtract the largest of each row first
    """,
    hints="""
        What happens to the scores before the softmax, if T is 2?
        Subtract the largest of each row of `scores / temperature` before `np.exp`.
        Divide the exponentials by their sum over the last axis, `keepdims=True`.
    """,
)
def my_p(scores, temperature):
    r"""The probabilities from which the next word is drawn, of the shape of `scores`.

    Write `my_p(scores, temperature)` for scores $(\ldots, n)$ and a temperature above 0: the softmax of the scores over the
    temperature, along the last axis. Scores may be above a thousand {case}`scores above a thousand`.
    """
    scaled = scores / temperature
    terms = np.exp(scaled - scaled.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)
