"""The tasks of lesson notation: shapes, orientations, masks and stored matrices in another dialect."""

from typing import Any

import numpy as np

from attn_course.tasks.asked import asked, asked_formula, note, tried
from attn_course.tasks.core import Case, at_sizes, every


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    """Weights that sum to 1 along `axis`; a score of -inf gets the weight 0."""
    unnormalised = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


@asked(
    "shapes-in-columns",
    "Shapes when columns are positions",
    kind="predict",
    equation="attention-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="reading shapes off a formula in another dialect",
    variants=every(T_q=(5, 4), T_k=(11, 9, 13), d_k=(7,), d_v=(6, 3, 8)),
    slips="""
        as if rows were positions
            T_k, T_q, d_v, T_q -> T_q, T_k, T_q, d_v
            this text puts positions in columns: Q is features by queries, and everything else is turned too
        the scores not turned
            T_k, T_q, d_v -> T_q, T_k, d_v
            K^T stands on the left, so the rows of the scores are keys; your output is right
        the output not turned
            d_v, T_q) -> T_q, d_v)
            V stands on the left, so the rows of the output are the features of a value; your scores are right
        one output for each key
            d_v, T_q) -> d_v, T_k)
            the inner lengths of V times the weights are the keys, and they vanish: what is left is one column per query
        an output as long as a key
            d_v -> d_k
            an output is an average of values, so it is as long as a value
    """,
    hints="""
        Write the shape under each letter: Q is d_k by queries, K is d_k by keys, V is d_v by keys.
        Transposing exchanges the two numbers; in a product the inner two must agree, and vanish.
        The first product is (keys × d_k)(d_k × queries), and the second begins with (d_v × keys): which lengths are left of each?
    """,
    why=r"""
        $K^\top Q$ is $(T_k \times d_k)(d_k \times T_q)$, and $V$ times the weights is $(d_v \times T_k)(T_k \times T_q)$. Inner lengths
        vanish. In every dialect there is one output for each query, and it is as long as a value.
    """,
)
def my_shapes(T_q, T_k, d_k, d_v):
    r"""A text writes "the output is $V\,\mathrm{softmax}(K^\top Q)$", with **columns as positions**. There are $T_q$ queries and $T_k$
    keys; queries and keys have $d_k$ features, values have $d_v$; the cell below prints your numbers. What are the shapes of $K^\top
    Q$ and of the output? Write four numbers in one tuple, `my_shapes = (a, b, c, d)`: rows `a` and columns `b` of $K^\top Q$, then
    rows `c` and columns `d` of the output.
    """
    return (T_k, T_q, d_v, T_q)


def _columns(normal, q_len, kv_len, d_k, d_v):
    return {"query": normal(d_k, q_len), "key": normal(d_k, kv_len), "value": normal(d_v, kv_len)}


COLUMNS = """
fewer queries than keys: 3 7 5 2
more queries than keys: 11 5 2 3
one feature: 2 5 1 3
one query: 1 5 2 3
one key: 3 1 2 5
one value feature: 3 5 2 1
"""


@asked(
    "columns-to-rows",
    "Translate columns into rows",
    kind="write",
    equation="attention-in-columns",
    points=2,
    difficulty=2,
    minutes=6,
    trains="turning inputs, softmax axis, scale and output together",
    tolerance=3e-7,
    given=(softmax,),
    cases=tried(_columns, COLUMNS),
    slips="""
        the output not turned
            @ value -> @ value).T ;; return softmax -> return (softmax
            the numbers are right, but positions are still columns: the output is asked for with one row per query
        softmax over the queries
            axis=-1 -> axis=0
            weights sum to 1 over the keys; in `key.T @ query` these run down a column, axis 0
        divided by the root of the number of queries
            query.shape[1] -> len(query)
            the last axis holds positions here: d_k is the number of rows, `query.shape[0]`
        divided by the root of the number of keys
            query.shape[1] -> len(key)
            the scale is the root of d_k, the number of rows of `key`; you took its positions
        no scale
            ` / np.sqrt(query.shape[1])` ->
            the scores are not divided by the root of d_k
    """,
    hints="""
        Turn what comes in: `query.T` has one row per query. From there on it is the row form of {eq}`attention-in-columns`.
        With rows, the softmax runs along the last axis, and the values stand on the right.
        In rows, the scores are (q_len, kv_len) and the output is (q_len, d_v); d_k is then the last axis of the turned query.
    """,
    why="""
        Turn the inputs once, at the border, and think in one dialect from there on. To turn the finished output,
        `(value @ softmax(key.T @ query / np.sqrt(len(query)), axis=0)).T`, is just as right. What goes wrong is a mixture:
        `shape[-1]` is $d_k$ in one dialect and a number of positions in the other.
    """,
)
def my_rows(query, key, value):
    r"""query (d_k, q_len), key (d_k, kv_len), value (d_v, kv_len) -> (q_len, d_v).

    A text has positions in columns, and its softmax runs down each column:
    $V\,\mathrm{softmax}\bigl( K^\top Q / \sqrt{d_k} \bigr)$. Write `my_rows(query, key, value)`: it gets float64 arrays **as that
    text has them**, `query` of shape `(d_k, q_len)`, `key` of shape `(d_k, kv_len)`, `value` of shape `(d_v, kv_len)`, and
    returns the output **with rows as positions**, shape `(q_len, d_v)`. Any of these lengths may be 1 {case}`one value feature`. The helper
    `softmax(scores, axis)` is given; you need not use it {case}`any`.
    """
    query, key, value = query.T, key.T, value.T
    scores = query @ key.T / np.sqrt(query.shape[1])
    return softmax(scores, axis=-1) @ value


def _positions(normal, length, d_k):
    return {"query": normal(d_k, length), "key": normal(d_k, length)}


def _at_one_score(rng):
    """Positions whose scores are all this one, a power of two, or its negative, by turns from query to query; exact in any precision."""
    query, key = rng.normal(size=(2, 4, 5))
    query[...] = 0.0
    query[0] = np.where(np.arange(5) % 2, 2.0**20, -(2.0**20))
    key[0] = 2.0 * 2.0**40 / 2.0**20
    return [Case("all scores of a query -2^40 or 2^40", query=query, key=key)]


POSITIONS = """
three positions: 3 2
seven positions: 7 5
one position: 1 5
"""


@asked(
    "repair-column-mask",
    "Repair a mask copied from another dialect",
    kind="repair",
    equation="causal-mask-in-columns",
    points=2,
    difficulty=2,
    minutes=6,
    trains="turning the triangle of the mask and the axis of the softmax together",
    broken=["triangle and axis of the row form"],
    given=(softmax,),
    exact_zeros=True,
    cases=[tried(_positions, POSITIONS), _at_one_score],
    slips="""
        triangle and axis of the row form
            np.tril( -> np.triu( ;; k=-1 -> k=1 ;; axis=0 -> axis=-1
            both lines are those of a table whose rows are queries; in `key.T @ query` the columns are queries
        the triangle of the row form
            np.tril( -> np.triu( ;; k=-1 -> k=1
            the axis is right, but you hide the past: a hidden pair has a key (row) after its query (column), and that lies below
        the axis of the row form
            axis=0 -> axis=-1
            the triangle is right, but your weights sum to 1 over the queries; each column must sum to 1
        the diagonal hidden too
            k=-1 -> k=0
            a position may see itself; with the diagonal hidden, the first query is left with nothing
        masked after the softmax
            np.where(hidden, -np.inf, scores), axis=0) -> scores, axis=0) * ~hidden
            hidden scores become minus infinity before the softmax; zeros put in afterwards leave columns that do not sum to 1
        turned into the row form
            scores), axis=0) -> scores), axis=0).T
            the numbers are right, but the result must keep the dialect of its inputs: columns are queries
    """,
    hints="""
        Name the axes of `key.T @ query`: which one is the key, which one the query?
        Hidden is key j > query i, that is row > column. On which side of the diagonal is that? And what sums to 1?
        Two lines change: the triangle, and the axis. Write a table for three words: which three of its nine cells are hidden?
    """,
    why=r"""
        In $K^\top Q$ the row is the key $j$ and the column the query $i$. Hidden is $j > i$, row greater than column: the lower triangle,
        {eq}`causal-mask-in-columns`. And the keys run down a column, so the softmax does too. With one of the two lines mended, the
        function still runs and still returns weights.
    """,
)
def column_weights(query, key):
    """query and key (d_k, length) -> causal weights (length, length), in columns.

    The function below should return causal weights with **columns as positions**: from `query` and `key`, both float64 of
    shape `(d_k, length)`, a table of shape `(length, length)` with keys in rows and queries in columns. Each column sums
    to 1, and key $j$ has the weight 0, exactly, for query $i$ whenever $j > i$; a position may see itself {case}`any`. Scores may have any
    size and sign {case}`all scores of a query -2^40 or 2^40`. Two lines were copied from a program in which rows are queries. Repair it.
    (`softmax` is given again, and it copes with scores of any size.)
    """
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((length, length), dtype=bool), k=-1)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)


@asked(
    "stored-by-linear",
    "What a layer stores",
    kind="predict",
    equation="projection-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="reading a stored matrix: which axis goes in, which comes out",
    variants=every(d_in=(7, 9), d_out=(5, 6), m=(6, 4), n=(3, 1)),
    slips="""
        our own matrix
            d_out, d_in, n, m -> d_in, d_out, m, n
            that is our W, with what goes in along its rows; the layer stores its transpose
        only the shape turned
            n, m) -> m, n)
            your shape is right; but where the shape is turned, the two indices of an entry change places too
        only the place turned
            d_out, d_in -> d_in, d_out
            your place is right; but it is a place in a matrix of the shape (out, in)
        both places one too far
            n, m) -> n + 1, m + 1)
            all are counted from 0 here, as Python counts, so n and m are taken as they are
    """,
    hints="""
        The layer multiplies a row with the transpose of what it stores. Which shape must the stored matrix have?
        In our matrix each column makes one number that comes out. What makes it in the stored one?
        The stored matrix has one row for each number that comes out, and in this row one entry for each number that goes in.
    """,
    why=r"""
        The layer stores $W_c = W^\top$, {eq}`projection-in-columns`, and computes $x\, W_c^\top$. So what comes out is counted down the
        rows and what goes in along the columns.
    """,
)
def my_place(d_in, d_out, m, n):
    r"""The layer `torch.nn.Linear(d_in, d_out, bias=False)` gets our matrix $W$, so that it computes $x\, W$ for a row $x$ of `d_in`
    numbers. In $W$ the entry $W_{mn}$ says how much number $m$ of the word adds to number $n$ of what comes out, both counted from 0.
    The cell below prints your four numbers. What is the shape of `layer.weight`, and in which row and column of it does this entry
    stand? Write `my_place = (rows, columns, row, column)`, the row and the column counted from 0.
    """
    return (d_out, d_in, n, m)


@asked(
    "row-of-packed-weight",
    "A key in the packed matrix",
    kind="predict",
    equation="projection-in-columns",
    points=1,
    difficulty=2,
    minutes=4,
    trains="finding a head in weights that are packed and turned",
    variants=every(E=(24, 48), H=(4, 6), h=(2, 3), a=(3, 1)),
    slips="""
        a query instead of a key
            E + h -> h
            the first E rows make queries; those of the keys lie below them
        a value instead of a key
            E + h -> 2 * E + h
            you went too far down: the last E rows make the values
        the heads taken for the numbers
            h * (E // H) + a -> a * H + h
            the rows of one head lie together, E / H of them
        no rows of earlier heads
            h * (E // H) + a -> a
            the rows of the heads before this one come first, E / H for each
        too many heads before it
            h * -> (h + 1) *
            all keys lie together, and among them only the h heads before this one, counted from 0
    """,
    hints="""
        The matrix has 3 E rows: first those that make queries, then those that make keys, then those that make values.
        Inside the part of the keys, head 0 has the first E / H rows, head 1 the next ones.
        Add three numbers: the rows of all queries, the rows of the heads that come first, and the place inside this head.
    """,
    why="""
        Above it lie the $E$ rows of the queries, and the rows of the heads before it, $E / H$ for each. In our own matrix the same
        numbers would be a column, since ours is stored as (in, out).
    """,
)
def my_row(E, H, h, a):
    """A `torch.nn.MultiheadAttention` of `embed_dim` $E$ and $H$ heads keeps three matrices below each other in its `in_proj_weight`, of
    shape $(3E, E)$: first the one for queries, then the one for keys, then the one for values, each stored as (out, in). The numbers
    that come out belong to head 0 first, then to head 1, and so on, equally many to each. The cell below prints your numbers. Which
    row makes number $a$ of the keys of head $h$? All are counted from 0. Answer with a whole number, `my_row`.
    """
    return E + h * (E // H) + a


def _column_averages(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> dict[str, Any]:
    weights, value = softmax(rng.normal(size=(T_k, T_q)), 0), rng.normal(size=(d_v, T_k))
    output = np.array([np.average(value, axis=1, weights=column) for column in weights.T]).T
    return {"A": weights, "V": value, "O": output, "T_q": T_q, "T_k": T_k, "d_v": d_v}


my_column_output = asked_formula(
    "output-in-columns",
    "An output in columns",
    entry="my_column_output",
    asks="""
        Lesson {lesson}`start` writes number $a$ of the output of query $i$ as a sum over the keys. Now take a text with columns: its
        table of weights $A$ has the shape $(T_k, T_q)$, its values $V$ have the shape $(d_v, T_k)$, and its outputs $O$ have the shape
        $(d_v, T_q)$. Each column of $A$ sums to 1. Write $O_{ai}$ with $A$ and $V$, in LaTeX.
    """,
    equation="attention-in-columns",
    points=1,
    difficulty=1,
    minutes=3,
    trains="indices where columns are positions",
    answer=r"\sum_{j=1}^{T_k} V_{aj} A_{ji}",
    your_turn=True,
    symbols=("A", "V", "T_q", "T_k", "d_v"),
    left="O_{ai}",
    cases=at_sizes("T_q T_k d_v", _column_averages),
    slips=r"""
        the weights left out
            A_{ji} ->
            each value counts with its weight, which stands in column i of A
        the values left out
            V_{aj} ->
            that is the sum of the weights, which is 1; each of them multiplies a value
        a plain mean
            V_{aj} A_{ji} -> V_{aj} / T_k
            that gives every value the same weight; the weights of query i stand in column i of A
        divided by the number of keys
            \sum -> \frac{1}{T_k} \sum
            each column of A sums to 1 already, so the sum is an average as it stands: do not divide by T_k
    """,
    hints="""
        Each column of A belongs to one query. Which index of A is the query, then, and which one the key?
        A value is a column of V, so the feature a is the first index of V.
        It is a sum over the keys j, from 1 to T_k, of number a of value j times the weight in row j and column i.
    """,
)


@asked(
    "hidden-in-columns",
    "Hidden cells, counted",
    kind="predict",
    equation="causal-mask-in-columns",
    points=1,
    difficulty=1,
    minutes=2,
    trains="reading a causal mask whose columns ask",
    your_turn=True,
    slips="""
        as if rows asked
            4, 3, 1 -> 0, 1, 3
            you counted as if the rows were queries; here the columns ask, and the rows are keys
        the diagonal hidden too
            4, 3, 1 -> 5, 4, 2
            a word may see itself: the diagonal is not hidden
        what may be seen
            4, 3, 1 -> 1, 2, 4
            these cells may be seen; the hidden ones are the rest of the five
    """,
    hints="""
        The first column holds the scores of the first word with all five keys. Which of them may it see?
        Hidden is every key that comes after the query, and nothing else.
        The second row is one key, the second word. Which of the five words come before it, so that it is hidden from them?
    """,
)
def my_hidden():
    """A text with columns hides the words to come in a sentence of five words. How many cells are hidden in the first column of its table
    of scores, how many in the second column, and how many in the second *row*? Answer with three whole numbers.
    """
    return (4, 3, 1)


ORDER = [
    note(
        "title",
        """
        Each stands on its own.

        Answers are NumPy or torch arrays of float32 or float64, made without the course's own functions. A function must not
        change its inputs.
    """,
    ),
    "shapes-in-columns",
    "columns-to-rows",
    "repair-column-mask",
    "stored-by-linear",
    "row-of-packed-weight",
    "output-in-columns",
    "hidden-in-columns",
]
