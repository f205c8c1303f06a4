"""The tasks on induction: scores by path, reading the stream, what copying saves, and a control that is one."""

import numpy as np

from attn_course.formulas import matrix
from attn_course.tasks.asked import asked, asked_formula, cell, note, tried
from attn_course.tasks.core import at_sizes, every


def _two_heads(rng, T, d, d_k):
    weights = np.tril(rng.exponential(size=(T, T)))
    made = {name: rng.normal(size=(d, d_k)) / np.sqrt(d) for name in ("w_query", "w_key", "w_value")}
    return (
        {"x": rng.normal(size=(T, d)), "weights": weights / weights.sum(-1, keepdims=True)}
        | made
        | {"w_output": rng.normal(size=(d_k, d)) / np.sqrt(d_k)}
    )


HEADS = """
five words: 5 7 3
three words, wide heads: 3 4 6
one word: 1 5 2
"""


@asked(
    "scores-by-path",
    "Scores by path",
    kind="write",
    equation="scores-of-second-layer",
    points=3,
    difficulty=2,
    minutes=12,
    trains="a score that is a sum over what query and key read",
    cases=tried(_two_heads, HEADS),
    slips="""
        the second and the third exchanged
            [(x, x), (x, found), (found, x), -> [(x, x), (found, x), (x, found),
            in the second the KEY reads the first head, in the third the query
        the weights left out
            found = weights @ x @ -> found = x @
            what the head found at a position is a mean over where it looked: multiply by its weights
            no output matrix is part of it
        scaled by the width of the model
            np.sqrt(w_query.shape[1]) -> np.sqrt(x.shape[1])
            the scale is the root of d_k, the width of the second head
        no scale
            ` / np.sqrt(w_query.shape[1])` ->
            the scores are divided by the root of d_k
        the stream in the place of the part
            found = weights -> found = x + weights
            a path holds one part of the stream, the words or what the head found, not their sum
        the weights transposed
            found = weights @ -> found = weights.T @
            row j of the weights says where position j looked
    """,
    hints="""
        The stream is a sum of two parts. Query and key read one of them each: four pairs.
        The part that the first head added is `weights @ x @ w_value @ w_output`.
        For each pair (a, b): `(a @ w_query) @ (b @ w_key).T`, divided by the root of d_k.
    """,
    why="""
        The sum of the four are the scores of the second head. In a model that copies, the second path is the one that finds the place.
    """,
)
def my_paths(x, weights, w_query, w_key, w_value, w_output):
    r"""The four terms of the scores of the second head, (4, T, T).

    A head of the first layer has the `weights` $(T, T)$ and the matrices `w_value` $(d, d_k)$ and `w_output` $(d_k, d)$. It reads
    `x` $(T, d)$ and adds to it. A head of the second layer, with `w_query` and `w_key` $(d, d_k)$, reads the sum. There are no norms. Its
    scores are divided by $\sqrt{d_k}$. Write `my_paths(...)`: the four terms of {eq}`scores-of-second-layer` in their order there, each
    divided by $\sqrt{d_k}$.
    """
    found = weights @ x @ w_value @ w_output
    pairs = [(x, x), (x, found), (found, x), (found, found)]
    return np.stack([(a @ w_query) @ (b @ w_key).T / np.sqrt(w_query.shape[1]) for a, b in pairs])


def _streams(rng, layers, T, d, n):
    streams = rng.normal(size=(layers + 1, T, d)).cumsum(0)
    return {"streams": streams, "gain": rng.normal(size=d), "table": rng.normal(size=(n, d)), "right": rng.integers(n, size=T)}


STREAMS = """
three layers: 3 5 7 11
one layer, one word: 1 1 4 6
two layers: 2 3 2 5
"""


@asked(
    "rank-of-right-word",
    "The place of the right word",
    kind="write",
    equation="logits-by-part",
    points=2,
    difficulty=2,
    minutes=10,
    trains="the logit lens, and what a rank counts",
    cases=tried(_streams, STREAMS),
    slips="""
        no gain
            ` * gain` ->
            the last norm has a gain, which the table relies on
        counted from 0
            .sum(-1) + 1.0 -> .sum(-1) + 0.0
            the likeliest word has the place 1
        the unlikeliest first
            scores > own -> scores < own
            a place counts the words with a LARGER score
    """,
    hints="""
        The lens: norm each row of each depth, times the gain, times the transpose of the table.
        The score of the right word, with an axis kept: `np.take_along_axis`, or a loop over positions.
        Count the words with a larger score, and add 1.
    """,
    why="""
        A place among all words moves long before the right word is the likeliest one. The norm divides all scores of a position by one
        number, so the places would be the same without it; the gain changes them.
    """,
)
def my_ranks(streams, gain, table, right):
    r"""The place of the right word by depth and position, (L + 1, T).

    `streams` $(L + 1, T, d)$ holds the stream before the first layer and behind each of $L$ layers, `gain` $(d,)$ belongs to the last norm,
    an RMS norm with $\varepsilon = 10^{-5}$, and `table` is $(n, d)$. `right` $(T,)$ holds the number of the word that comes next at each
    position. Read each depth as if it were the last. Write `my_ranks(...)`: 1 where the right word has the largest score, 2 where one word
    has a larger one, and so on. No two scores are equal.
    """
    scores = streams / np.sqrt((streams**2).mean(-1, keepdims=True) + 1e-5) * gain @ table.T
    own = scores[:, np.arange(len(right)), right][..., None]
    return (scores > own).sum(-1) + 1.0


@asked(
    "loss-of-perfect-copier",
    "The loss of a perfect copier",
    kind="predict",
    equation=None,
    points=2,
    difficulty=2,
    minutes=8,
    trains="what can be known, and from which word on",
    variants=every(V=(50, 200), n=(12, 20), R=(3, 5)),
    digits=3,
    slips="""
        it knows where the second round begins
            (n + 1) * np.log(V) -> n * np.log(V)
            at the last word of the first round nothing has repeated yet: one more word is guessed
        nothing is guessed
            (n + 1) * np.log(V) / -> np.log(V) /
            the words of the first round are all new: each is guessed
        only the first round counts
            (n * R) -> n
            the mean is over all words of the text
        two rounds
            (n * R) -> (2 * n)
            there are R rounds
        nats and bits
            np.log(V) -> np.log2(V)
            the loss uses the natural logarithm
    """,
    hints="""
        How many words of the text come before anything has repeated?
        When the reader stands on the last word of the first round, it has not seen that word before.
        (n + 1) words cost ln V each, all others nothing; the mean is over n R words.
    """,
    why="""
        The mean loss falls with the number of rounds: this is how a model that copies uses a longer text.
    """,
)
def my_copier_loss(V, n, R):
    r"""A text has $R$ rounds of the same $n$ words, all different, drawn from $V$ words. A reader knows that words may repeat, but
    not when. While the word that it stands on has not occurred before, it gives each of the $V$ words the same probability to come next.
    If it has occurred, it is certain that the same word follows as last time. The first word of the text is guessed among $V$, too. What
    is the mean loss, in nats a word, over all words of the text? The cell below prints your $V$, $n$ and $R$. Write `my_copier_loss`.
    """
    return (n + 1) * np.log(V) / (n * R)


def _four(rng, d, d_k, d_v):
    sizes = {"W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v), "W_O": (d_v, d)}
    made = {name: rng.normal(size=size) for name, size in sizes.items()}
    queries = made["W_Q"]  # of each unit vector
    keys = np.array([(unit @ made["W_V"]) @ made["W_O"] @ made["W_K"] for unit in np.eye(d)])
    return {name: matrix(each) for name, each in made.items()} | {"M": [[query @ key for key in keys] for query in queries]}


my_matrix = asked_formula(
    "matrix-between-two-heads",
    "The matrix between two heads",
    entry="my_matrix",
    asks=r"""
        A head of the first layer has the value matrix $W_V$ $(d \times d_v)$ and the output matrix $W_O$ $(d_v \times d)$; a head of the
        second has $W_Q$ and $W_K$ $(d \times d_k)$. The second reads with its key what the first has added. So the score of position $i$ at
        position $j$ holds the terms $P_{jl}\; x_i\, M\, x_l^\top$ with the weights $P$ of the first head, {eq}`score-through-earlier-head`.
        Write

        $$M = \ldots$$

        in these four matrices. A model in which $x_i M x_l^\top$ is large for equal words, and small for different ones, can copy.
    """,
    equation="score-through-earlier-head",
    points=2,
    difficulty=2,
    minutes=7,
    trains="transposes of products, and the order of maps",
    answer=r"W_Q W_K^\top W_O^\top W_V^\top",
    symbols=("W_Q", "W_K", "W_V", "W_O"),
    left="M",
    cases=at_sizes("d d_k d_v", _four),
    slips=r"""
        values and output in their forward order
            W_O^\top W_V^\top -> W_V W_O
            the key's word stands on the right as a column: its maps are transposed, and stand in the other order
        the key asks
            W_Q W_K^\top -> W_K W_Q^\top
            x_i is the query: W_Q meets it first
        the query reads the first head
            W_Q W_K^\top W_O^\top W_V^\top -> W_V W_O W_Q W_K^\top
            that is the third term, in which the query, and not the key, reads what the first head added
        the key reads the word
            W_O^\top W_V^\top ->
            this is the first term: what the first head added passes W_V and W_O before W_K
    """,
    hints=r"""
        What is the key of position j, if it reads only what the first head added there?
        Row l of X becomes x_l W_V W_O, and then the key x_l W_V W_O W_K.
        The score is x_i W_Q times the transpose of that key.
    """,
    why=r"""
        $M$ is a $d \times d$ matrix of rank at most the smaller of $d_k$ and $d_v$: no map of weights stands in it.
    """,
)


ORDER = [
    note("title", "Take them in any order. The second leans on the deeper section about the stream, the others on the core alone."),
    note(
        "setup-text",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 (whole numbers where the text says so) and must
        not be changed. Rows are positions.
    """,
    ),
    cell(
        "setup",
        """
        import numpy as np
        import torch
    """,
    ),
    "scores-by-path",
    "rank-of-right-word",
    "loss-of-perfect-copier",
    "matrix-between-two-heads",
    "scores-of-matching-head",
    "induction-score-of-maps",
    "output-without-a-head",
]
