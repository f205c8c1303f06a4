"""What the lesson on the scale asks its reader before it shows its own: two variances under other assumptions, and a start."""

import itertools
from typing import Any

import numpy as np

from attn_course.tasks.asked import asked, asked_formula, tried
from attn_course.tasks.core import AtSizes, at_sizes


def _correlated_entries(rng: np.random.Generator, d_k: int) -> dict[str, Any]:
    """All pairs of a query and a key whose entries have variance 1 and one correlation; the variance of their dot products."""
    rho = rng.uniform(0.2, 0.7)
    root = np.linalg.cholesky(np.full((d_k, d_k), rho) + np.diag(np.full(d_k, 1 - rho)))
    points = np.sqrt(d_k) * np.vstack([root.T, -root.T])  # equally likely: mean 0, and the covariance wanted
    return {"d_k": d_k, r"\rho": rho, "v": np.var(points @ points.T)}


my_variance_formula = asked_formula(
    "correlated-entries-variance",
    "Entries that move together",
    entry="my_variance_formula",
    asks=r"""
        Each entry has mean 0 and variance 1, but any two *different* entries of $q$ have the covariance $\rho$, and so have those of $k$.
        Still $q$ is independent of $k$. Start from {eq}`score-variance-from-covariances`, write its trace as a double sum, and write a
        formula in LaTeX for $v = \mathrm{Var}[q \cdot k]$ with `d_k` and `\rho`, as a string: `r"..."`. (At $\rho = 1$ and $d_k = 2$ it
        must give 4: each vector then holds one number twice.)
    """,
    equation="score-variance-from-covariances",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a double sum, its diagonal and the rest",
    answer=r"d_k + d_k (d_k - 1) \rho^2",
    your_turn=True,
    symbols=("d_k", r"\rho"),
    left="v",
    cases=at_sizes("d_k", _correlated_entries),
    slips=r"""
        the correlation forgotten
            + d_k (d_k - 1) \rho^2 ->
            the term with rho is missing: d_k counts the terms with i = j only, and the others no longer vanish
        the correlation once
            \rho^2 -> \rho
            the term with rho needs rho^2: a term is an entry of S_q times the same entry of S_k, so rho comes in twice
        the diagonal counted again
            (d_k - 1) -> d_k
            your term with rho^2 counts all d_k^2 pairs; the d_k of them with i = j are in the term without rho already
        only the pairs
            d_k + d_k ( -> d_k (
            the term without rho is missing: the d_k pairs with i = j, each the product of two variances
        each pair counted once
            d_k (d_k - 1) -> \frac{d_k (d_k - 1)}{2}
            half of your term with rho^2 is missing: the double sum meets two different entries twice, as (i, j) and as (j, i)
    """,
    hints=r"""
        Which of the three terms hold a mean? And the trace is the sum of (S_q)_ij (S_k)_ij over i and j.
        Sum the terms with i = j and those with i other than j apart. What is (S_q)_ij in each case?
        `d_k + ... \rho^2`: how many ordered pairs of different entries are there?
    """,
    why=r"""
        The means are 0, so {eq}`score-variance-from-covariances` keeps its trace, $\sum_{i, j} (S_q)_{ij} (S_k)_{ij}$: $d_k$ products of
        two variances, and $d_k (d_k - 1)$ products $\rho \cdot \rho$.
    """,
)


def _sparse_entries(rng: np.random.Generator, d_k: int, p: float) -> dict[str, Any]:
    """Entries that are mostly 0: the variance of one product over its nine outcomes, d_k times, and its root."""
    rare = rng.uniform(0.25, 0.45)
    values = [0.0, np.sqrt((1 - rare) / rare), -np.sqrt(rare / (1 - rare))]
    chances = [1 - p, p * rare, p * (1 - rare)]
    products = [a * b for a, b in itertools.product(values, values)]
    weights = [a * b for a, b in itertools.product(chances, chances)]
    mean = np.average(products, weights=weights)
    variance = sum(np.average((np.array(products) - mean) ** 2, weights=weights) for _ in range(d_k))
    return {"d_k": d_k, "p": p, "u": np.sqrt(variance)}


SPARSE_SIZES = ((3, 0.5), (5, 0.3), (7, 0.65), (6, 0.4))

my_divisor = asked_formula(
    "divisor-for-sparse-entries",
    "A divisor for entries that are mostly 0",
    entry="my_divisor",
    asks=r"""
        A layer sets most entries to 0: each entry of $q$ and of $k$ is 0 with probability $1 - p$, and else drawn from a
        distribution of mean 0 and variance 1, all independently. What number $u$ should we divide $q \cdot k$ by, so that its variance is
        1? Write a formula in LaTeX with `d_k` and `p`.
    """,
    equation="score-variance-from-deviations",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a variance under another assumption",
    answer=r"p \sqrt{d_k}",
    your_turn=True,
    symbols=("d_k", "p"),
    functions=(r"\sqrt",),
    left="u",
    cases=AtSizes({f"d_k = {d_k} and p = {p}": {"d_k": d_k, "p": p} for d_k, p in SPARSE_SIZES}, _sparse_entries),
    slips=r"""
        the usual divisor
            p \sqrt -> \sqrt
            that is right for p = 1; a product of two entries is now mostly 0, and varies less
        one side sparse
            p \sqrt{ -> \sqrt{p\,
            that holds if the entries of q are mostly 0, and those of k are not; here both have the variance p
        the variance itself
            -> p^2 d_k
            that is the variance of the score; a divisor c divides it by c squared
        the root of d_k alone forgotten
            \sqrt{d_k} -> d_k
            the divisor is the root of the whole variance
    """,
    hints=r"""
        What is the mean square of one entry, and so its variance?
        Put the two variances into {eq}`score-variance-from-deviations`. A divisor u divides the variance by u^2.
        `... \sqrt{d_k}`
    """,
    why=r"""
        The mean square of an entry is $p \cdot 1 + (1 - p) \cdot 0 = p$, and its mean is 0. So {eq}`score-variance-from-deviations`
        gives the variance $d_k\, p\, p$, and $u$ is its root.
    """,
)


def _tokens(normal, n, d, d_k):
    """Tokens that share a part, so that whole rows are shifted, and matrices of entries that are not small."""
    return {"x": normal(n, d) + normal(d), "w_query": normal(d, d_k), "w_key": normal(d, d_k)}


TOKENS = """
more tokens than entries: 11 7 3
few tokens: 2 5 3
one entry in a query: 5 3 1
"""


@asked(
    "unit-row-variance",
    "A start with unit variance in the rows",
    kind="write",
    equation="row-variance-by-query",
    points=1,
    difficulty=2,
    minutes=6,
    trains="which variance softmax sees, and where a factor can go",
    your_turn=True,
    cases=tried(_tokens, TOKENS),
    slips="""
        the variance of all scores
            scores.var(axis=-1).mean() -> scores.var()
            the variance of all scores also holds how far the rows lie apart, which softmax does not see: take it along `axis=-1` first
        down the columns
            var(axis=-1) -> var(axis=0)
            a row belongs to one query and runs over the keys, the last axis
        the variance for its root
            np.sqrt(scores.var(axis=-1).mean()) -> scores.var(axis=-1).mean()
            a divisor of the scores divides their variance by its square: take the root
        the mean deviation
            np.sqrt(scores.var(axis=-1).mean()) -> scores.std(axis=-1).mean()
            the mean of the deviations is not the root of the mean variance
        no scale
            ` / np.sqrt(w_query.shape[1])` ->
            the scores that softmax gets are divided by sqrt(d_k) before you measure them
        multiplied
            w_query / -> w_query *
            rows that spread too far need a smaller matrix: divide
    """,
    hints="""
        Compute the scores of every token with every token, divided by sqrt(d_k). Which axis runs along a row?
        A divisor u of W_Q divides the scores by u. By what does it divide their variance?
        w_query / np.sqrt(... .var(axis=-1).mean())
    """,
    why="""
        The scores are linear in $W_Q$, so a divisor of it divides them, and their variance within each row by its square.
    """,
)
def my_start(x, w_query, w_key):
    r"""x (n, d), w_query and w_key (d, d_k) -> w_query times one positive factor.

    Every token of `x` asks every token, with the scores $x_i W_Q W_K^\top x_j^\top / \sqrt{d_k}$. Write `my_start(x, w_query, w_key)`: it
    returns $W_Q$ times the positive number that makes the variance within a row (NumPy's `var`), averaged over all rows, equal to 1. Take
    $d_k$ from the shape of `w_query`. The arrays are float64, there are two tokens or more, and no row has the variance 0.
    """
    scores = (x @ w_query) @ (x @ w_key).T / np.sqrt(w_query.shape[1])
    return w_query / np.sqrt(scores.var(axis=-1).mean())


def _short_and_long(normal, n, d):
    """Gradients of which every third is far shorter than the others, and the fifth is 0."""
    shrink = np.where(np.arange(n) % 3 == 1, 1e-4, 0.5)[:, None]
    shrink[4:5] = 0
    return {"g": shrink * normal(n, d)}


GRADIENTS = """
more queries than keys: 17 7
fewer: 5 11
one short, one long: 2 13
one item: 5 1
"""


@asked(
    "lift-the-silent",
    "Make all guests equally loud",
    kind="write",
    equation="softmax-vector-jacobian-product",
    points=1,
    difficulty=1,
    minutes=2,
    trains="a control that changes one thing",
    your_turn=True,
    cases=tried(_short_and_long, GRADIENTS),
    slips="""
        down the columns
            axis=1 -> axis=0
            the gradient of a guest is a row: take the length along `axis=1`
        entry by entry
            g / length -> np.sign(g)
            a row must keep its direction: divide it by its length, and not each entry by its own size
        multiplied only
            g / length * -> g *
            divide the row by its own length first, so that it gets the mean length
        unit length
            ` * length.mean()` ->
            your rows have the length 1: multiply by the mean length
        the sum
            length.mean() -> length.sum()
            the new length is the mean of the lengths, not their sum
    """,
    hints="""
        `np.linalg.norm(g, axis=1, keepdims=True)` has the length of each row; the lesson's `lengths(g)` is never 0.
        Which row has the direction of a row of `g`, but the length 1?
        g / length * ...
    """,
    why="""
        Only lengths change, and each direction stays, so whatever is won back comes from the lengths.
    """,
)
def my_lift(g):
    r"""g (n, n_items) -> the same shape.

    The rows of `g` are the gradients of some guests. Write `my_lift(g)`: each row keeps its direction and gets the mean length of all
    rows. A row of zeros stays as it is, and counts in the mean.
    """
    length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99
    return g / length * length.mean()


def lifted(g: np.ndarray) -> np.ndarray:
    """Gradients that all have the mean length: what the lesson goes on with if its reader has written none."""
    length = np.linalg.norm(g, axis=1, keepdims=True) + 1e-99
    return g / length * length.mean()
