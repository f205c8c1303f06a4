"""What the lesson on induction asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _words(rng, T, n):
    return {"x": np.eye(n)[rng.integers(n, size=T)]}


TEXTS = """
seven words of three: 7 3
five words of two: 5 2
one word: 1 4
"""


@asked(
    "scores-of-matching-head",
    "Who stands behind the same word",
    kind="write",
    equation="match-of-word-before",
    points=1,
    difficulty=2,
    minutes=6,
    trains="keys that tell of another position",
    your_turn=True,
    cases=tried(_words, TEXTS),
    slips="""
        the word itself
            before = np.eye(len(x), k=-1) @ x -> before = x
            that finds the same word; wanted is the place behind it, so the key tells the word before
        the word behind
            k=-1) @ x -> k=1) @ x
            row j must hold what stood at j - 1: each row moves one place down
        queries moved
            x @ before.T -> before @ x.T
            queries stay where they are; the keys tell of the position before
        all places
            np.tril(x @ before.T) -> x @ before.T
            a word sees itself and those before it only
        the last word comes round
            np.eye(len(x), k=-1) @ x -> np.roll(x, 1, axis=0)
            nothing stands before the first word: its key is a row of zeros, and not the last word
    """,
    hints="""
        What must the key of place j hold, so that its product with a one-hot query is 1 or 0?
        The keys are `before`, the queries `x`.
        Multiply `x` by the transpose of `before`, and keep the lower triangle with `np.tril`.
    """,
)
def my_match(x):
    r"""Entry (i, j) is 1.0 where the word before j is word i, and j is not after i; else 0.0.

    Write `my_match(x)` for $x$ $(T, n)$, one row for each word of a text: 1.0 at the word's number, else 0.0. It returns $(T, T)$: entry
    $(i, j)$ is 1.0 where the word at $j - 1$ is the word at $i$ and $j \le i$, and 0.0 elsewhere. Nothing stands before the first word.
    Begin with `before = np.eye(len(x), k=-1) @ x`, which is $SX$. $T$ may be 1 {case}`one word`.
    """
    before = np.eye(len(x), k=-1) @ x
    return np.tril(x @ before.T)


def _maps(rng, *shape):
    maps = np.tril(rng.exponential(size=shape))
    return {"maps": maps / maps.sum(-1, keepdims=True)}


MAPS = """
one head, five words twice, square: 10 10
three heads of two layers, square: 2 3 14 14
two words twice, square: 5 4 4
one head of a layer, square: 1 1 6 6
"""


@asked(
    "induction-score-of-maps",
    "The induction score",
    kind="write",
    equation="induction-score",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a diagonal of a map, counted right",
    your_turn=True,
    cases=tried(_maps, MAPS),
    slips="""
        on the same word
            np.arange(1, n + 1) -> np.arange(n)
            that is the weight on the first occurrence itself; wanted is the place behind it
        one row too early
            np.arange(n, 2 * n) -> np.arange(n - 1, 2 * n - 1)
            the rows begin at n, the first word of the second round
        on the word before
            np.arange(1, n + 1)] -> np.arange(n - 1, 2 * n - 1)]
            that measures a head that looks one back
        a sum
            .mean(-1) -> .sum(-1)
            the score is a mean: a perfect head has 1
        the mean over both rounds
            .mean(-1) -> .sum(-1) / (2 * n)
            only the n words of the second round are counted
        rows and columns exchanged
            maps[..., np.arange(n, 2 * n), np.arange(1, n + 1)] -> maps[..., np.arange(1, n + 1), np.arange(n, 2 * n)]
            rows are the words that look, columns those at which they look
        one number for all heads
            .mean(-1) -> .mean()
            each map has a score of its own
    """,
    hints="""
        Word i of the second round, counted from 0, is row n + i. Behind its first occurrence stands column i + 1.
        i runs from 0 to n - 1: two arrays of whole numbers pick all these entries at once.
        `maps[..., rows, columns]` has the entries on its last axis: take their mean.
    """,
)
def my_score(maps):
    r"""The mean weight on the word behind the first occurrence, for each map.

    Write `my_score(maps)` for `maps` $(\ldots, 2n, 2n)$: weights of heads that read $n$ different words, and then the same $n$ words again.
    It returns $(\ldots)$, the $s$ of {eq}`induction-score` of each map. The formula counts positions from 1, NumPy from 0.
    """
    n = maps.shape[-1] // 2
    return maps[..., np.arange(n, 2 * n), np.arange(1, n + 1)].mean(-1)


def _output_matrix(rng, n_heads, d_v, d_model, silent):
    return {"w_output": rng.normal(size=(n_heads * d_v, d_model)), "silent": silent, "n_heads": n_heads}


MATRICES = """
the first of three: 3 2 5 0
the last of three: 3 2 5 2
one in the middle of four: 4 3 5 2
one of two: 2 5 3 1
a single column: 3 2 1 1
"""


@asked(
    "output-without-a-head",
    "A matrix that silences",
    kind="write",
    equation="output-projection-sums-heads",
    points=1,
    difficulty=1,
    minutes=4,
    trains="which rows of the output matrix belong to a head",
    your_turn=True,
    cases=tried(_output_matrix, MATRICES),
    slips="""
        the silent head alone
            without[silent * d_v : (silent + 1) * d_v] = 0 -> without[: silent * d_v] = without[(silent + 1) * d_v :] = 0
            only the rows of the head that must be silent are left; wanted are those of all others
        every H-th row
            without[silent * d_v : (silent + 1) * d_v] = 0 -> without[silent::n_heads] = 0
            head h owns d_v neighbouring rows, the h-th block
        columns
            without[silent * d_v : (silent + 1) * d_v] = 0 -> without[:, silent * d_v : (silent + 1) * d_v] = 0
            a head owns rows of W_O: its columns of the outputs side by side meet them
        one row
            without[silent * d_v : (silent + 1) * d_v] = 0 -> without[silent] = 0
            a head owns d_v rows, as many as its output has features
    """,
    hints="""
        Each of the H heads owns equally many rows. How many are there in all?
        The rows of head h begin at h times d_v, with d_v = len(w_output) // n_heads.
        Make a copy with `w_output.copy()`, and put 0 in the rows of the silent head.
    """,
)
def my_without(w_output, silent, n_heads):
    r"""A copy of $W_O$ in which the rows of one head are zeros.

    Write `my_without(w_output, silent, n_heads)`. It returns a copy of `w_output`, the $W_O$ of a layer, in which the rows of head `silent`
    are zeros. The heads, counted from 0, own equally many rows each, one head after the other.
    """
    without, d_v = w_output.copy(), len(w_output) // n_heads
    without[silent * d_v : (silent + 1) * d_v] = 0
    return without
