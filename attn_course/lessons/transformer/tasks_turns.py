"""What the lesson on the Transformer asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _rows(rng, scale, *shape):
    return {"x": scale * (rng.normal(size=shape) + 0.5), "gain": rng.normal(size=shape[-1]), "eps": rng.uniform(0.05, 0.3)}


ROWS = """
one row: 1.0 7
a text: 2.0 5 3
a batch of texts: 30.0 2 3 5
one feature: 1.0 3 1
"""


@asked(
    "rms-norm-row",
    "The norm of each row",
    kind="write",
    equation="norm-forgets-scale",
    points=1,
    difficulty=1,
    minutes=5,
    trains="a norm of each row by itself",
    your_turn=True,
    cases=tried(_rows, ROWS),
    slips="""
        no root
            ` ** 0.5` ->
            divide by the root of the mean square, not by the mean square itself
        the sum of squares
            (x**2).mean(-1, keepdims=True) -> (x**2).sum(-1, keepdims=True)
            you divide by the length of the row; the norm divides by the root of the mean of the squares
        one norm for all rows
            .mean(-1, keepdims=True) -> .mean()
            each row has a mean square of its own: take the mean over the last axis only
        the mean taken away
            return x / ((x**2).mean(-1, keepdims=True) -> return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True)
            that is a layer norm: an RMS norm leaves the mean in
        no gain
            ` * gain` ->
            each feature is multiplied by its gain
        epsilon outside the root
            x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 -> x / ((x**2).mean(-1, keepdims=True) ** 0.5 + eps)
            `eps` is added to the mean square, inside the root
        no epsilon
            ` + eps` ->
            `eps` is added to the mean square; without it a row of zeros gives NaN
        the gain stored less 1
            * gain -> * (1 + gain)
            here the gain is the factor itself, and not what is added to 1
    """,
    hints="""
        What is one number for each row, and along which axis is it taken?
        `(x**2).mean(-1, keepdims=True)` keeps its axis, so that it divides row by row.
        Add `eps`, take the root, divide `x` by it, and multiply by the gain.
    """,
)
def my_norm(x, gain, eps):
    r"""Each row divided by the root of its mean square.

    Write `my_norm(x, gain, eps)` for `x` of shape $(\ldots, d)$ and a gain of shape $(d,)$. It divides each row by $\sqrt{\frac1d \sum_i
    x_i^2 + \varepsilon}$, and multiplies each feature by its gain. The check calls it with NumPy arrays and the model below with PyTorch's,
    so use what both have: `**`, `/`, `*` and `.mean(-1, keepdims=True)`.
    """
    return x / ((x**2).mean(-1, keepdims=True) + eps) ** 0.5 * gain


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
