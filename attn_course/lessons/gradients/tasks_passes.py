"""The whole backward pass: written for any batch, repaired where a symmetric input hid three mistakes, and what it keeps in memory."""

import numpy as np

from attn_course.reference import attention_backward
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import every


def _batch(normal, own, q_len, kv_len, d_k, d_v, *leading):
    """Inputs with leading axes; "shared" keys and values have none."""
    shared = () if own == "shared" else leading
    keys = {"key": normal(*shared, kv_len, d_k), "value": normal(*shared, kv_len, d_v)}
    return {"query": normal(*leading, q_len, d_k), **keys, "d_output": normal(*leading, q_len, d_v)}


BATCHES = """
no leading axis: own 3 7 5 2
a batch of two: own 7 5 3 11 2
two leading axes: own 5 11 7 13 2 3
two examples share keys and values: shared 5 2 3 11 2
six examples on two axes share keys and values: shared 7 5 11 13 2 3
one query: own 1 5 2 3 2
"""


@asked(
    "batched-backward",
    "The backward pass of a batch",
    kind="write",
    equation="query-and-key-gradients",
    points=4,
    difficulty=5,
    minutes=20,
    trains="leading axes in the backward pass, and what shared keys collect",
    judged_by=attention_backward,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=tried(_batch, BATCHES),
    slips="""
        what shared keys get is averaged
            d_key.sum(axis=shared), d_value.sum(axis=shared) -> d_key.mean(axis=shared), d_value.mean(axis=shared)
            a shared key touches the outputs of all examples, and contributions add up, {eq}`gradient-collects-all-outputs`: sum, no
            mean
        shared keys learn from the first example only
            d_key.sum(axis=shared), d_value.sum(axis=shared) -> d_key[(0,) * len(shared)], d_value[(0,) * len(shared)]
            keys and values that all examples share get something back from each of them, not from the first one alone
        one delta for an example
            d_weights).sum(axis=-1 -> d_weights).sum(axis=(-2, -1)
            every query has a delta of its own: sum over the keys, axis -1, and keep that axis
        delta summed over the queries
            d_weights).sum(axis=-1 -> d_weights).sum(axis=-2
            delta_i belongs to a query: the sum runs over the keys, the last axis, {eq}`gradient-of-scores`
        nothing subtracted from dP
            d_weights - delta -> d_weights
            the weights of a row sum to 1, so raising one lowers the others: subtract delta_i from row i of dP, {eq}`gradient-of-scores`
        no scale in the backward pass
            (d_weights - delta) / root -> (d_weights - delta)
            the scores are Q K^T / sqrt(d_k), so dQ and dK keep the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
    """,
    hints="""
        First let the formulas of one example carry leading axes. Which two axes does each transposition exchange?
        With shared keys, NumPy carries the axes of the queries along: what shape do you get, and what shape has `key`?
        If `d_key` has more axes than `key`, sum over the surplus ones at the front; for `d_value` do the same.
    """,
    why="""
        Every product carries the leading axes along, as in the forward pass. An entry of a shared key touches the outputs of all examples,
        and {eq}`gradient-collects-all-outputs` sums over everything that is touched. (With no surplus axis, `sum(axis=())` adds nothing up
        and returns the array as it is.) A key that several heads share, lesson {lesson}`heads`, gets its gradient in the same way.
    """,
)
def my_batched_backward(query, key, value, d_output):
    r"""(..., T_q, d_k), (..., T_k, d_k), (..., T_k, d_v), (..., T_q, d_v) -> three
    gradients.

    Write `my_batched_backward(query, key, value, d_output)`. Queries $(\ldots, T_q, d_k)$ and the gradient at the outputs, $(\ldots, T_q,
    d_v)$, have the same leading axes (none, one or several)
    {case}`two leading axes`. Keys $(\ldots, T_k, d_k)$ and values $(\ldots, T_k, d_v)$ have

    - either the same leading axes: then the examples are separate problems;
    - or **none at all**: then all examples share them. (Which outputs does an entry of a shared key touch?)

    Return `(d_query, d_key, d_value)`, each shaped like what it belongs to, for scores divided by $\sqrt{d_k}$ and a softmax over the
    keys. Scores are small enough for `np.exp`. Before you run the check, write your own: move one entry of a *shared* key a step up and a
    step down, and compare the central difference of `(d_output * output).sum()` with `d_key`.
    """
    root = np.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) / root
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)

    d_weights = d_output @ value.swapaxes(-1, -2)
    delta = (weights * d_weights).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - delta) / root

    d_key = d_scores.swapaxes(-1, -2) @ query
    d_value = weights.swapaxes(-1, -2) @ d_output
    shared = tuple(range(query.ndim - key.ndim))
    return d_scores @ key, d_key.sum(axis=shared), d_value.sum(axis=shared)


def _positions(normal, n, d_k, d_v):
    return {"x": normal(n, d_k), "value": normal(n, d_v), "d_output": normal(n, d_v)}


POSITIONS = """
seven positions: 7 5 3
three positions: 3 2 11
two positions: 2 3 5
one position: 1 5 3
"""


@asked(
    "repair-shared-backward",
    "Repair what a symmetric test let through",
    kind="repair",
    equation="gradient-collects-all-outputs",
    points=3,
    difficulty=3,
    minutes=15,
    trains="a matrix in two places of one formula, and an input on which a mistake can be seen",
    broken=["the means of the keys", "twice the gradient of the queries, and no scale"],
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=tried(_positions, POSITIONS),
    slips="""
        the means of the keys
            d_output * (weights @ value) -> value * d_value
            a value times its own gradient sums the costs of a column; delta_i is the mean of a row, {eq}`gradient-of-scores`
        the mean of each column
            (d_output * (weights @ value)).sum(axis=1, keepdims=True) -> (value * d_value).sum(axis=1)
            the softmax runs over the keys, so from row i of dP the mean of row i is subtracted
        twice the gradient of the queries
            (d_scores + d_scores.T) @ x -> 2 * d_scores @ x
            row i of x makes the scores of row i and those of column i, and dS is not symmetric: the two parts differ
        as queries only
            d_scores + d_scores.T -> d_scores
            that is what x gets back as queries; its rows are keys as well, and the two parts add up
        as keys only
            d_scores + d_scores.T -> d_scores.T
            that is what x gets back as keys; its rows are queries as well, and the two parts add up
        no scale in d_x
            d_scores.T) @ x / root -> d_scores.T) @ x
            the scores are divided by the root of d_k, and that factor is missing in d_x
        the means of the keys, and twice the gradient of the queries
            d_output * (weights @ value) -> value * d_value ;; (d_scores + d_scores.T) @ x -> 2 * d_scores @ x
            the factor of d_x is right now; ask of the mean costs over which index they sum, and of x which scores it touches
        twice the gradient of the queries, and no scale
            (d_scores + d_scores.T) @ x / root -> 2 * d_scores @ x
            dS is right now; ask which scores a row of x touches, and how fast
        the means of the keys, and no scale
            d_output * (weights @ value) -> value * d_value ;; d_scores.T) @ x / root -> d_scores.T) @ x
            both parts of d_x are there now; look at the mean costs, and at the factor of d_x
    """,
    hints="""
        What is special about P, about dS and about d_k in that test? Compute them for the example.
        Ask the three questions of one entry of x. Which scores does it touch? Which of them does it touch twice?
        Two mistakes are about rows and columns, and one is about a factor.
    """,
    why=r"""
        Entry $X_{ic}$ touches the scores of row $i$ as part of a query, at the rate $X_{jc} / \sqrt{d_k}$, and those of column $i$ as part
        of a key, at the same rate; the score $s_{ii}$ it touches in both ways. So $dX = (dS + dS^\top)\, X / \sqrt{d_k}$, and $2\, dS\, X$
        is right only if $dS$ is symmetric, as in the example, and $d_k = 1$. The mean costs were $V_j \cdot dV_j = \sum_i p_{ij}\,
        dP_{ij}$, sums of the *columns* of $P \odot dP$, which in the example equal those of the rows. With $d_k = 4$ and all else kept
        symmetric, the factor shows alone.
    """,
)
def shared_backward(x, value, d_output):
    r"""The gradients (d_x, d_value) of attention whose queries and keys are both x.

    Let queries and keys be one matrix $X$, so that the scores are $X X^\top / \sqrt{d_k}$. A backward pass was tried on one example:

    ```python
    x = np.array([[1.0], [-1.0]])
    value = d_output = np.eye(2)
    ```

    Here both gradients are right. On nearly all other examples with $n > 1$, `d_x` is wrong, by **three** mistakes. Find small inputs on
    which they show, and repair the function. (`x` is $(n, d_k)$, `value` and `d_output` are $(n, d_v)$.)
    """
    root = np.sqrt(x.shape[1])
    scores = x @ x.T / root
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)

    d_value = weights.T @ d_output
    mean_costs = (d_output * (weights @ value)).sum(axis=1, keepdims=True)
    d_scores = weights * (d_output @ value.T - mean_costs)
    d_x = (d_scores + d_scores.T) @ x / root
    return d_x, d_value


@asked(
    "memory-of-kept-weights",
    "What the weights take",
    kind="predict",
    equation="numbers-kept-for-gradients",
    points=1,
    difficulty=1,
    minutes=5,
    trains="counting what the backward pass needs",
    variants=every(layers=(24, 32), heads=(20, 12), length=(2048, 4096), batch=(4, 8)),
    digits=2,
    slips="""
        one layer
            layers * heads -> heads
            the backward pass begins when the last layer is done, so the weights of all layers are kept at the same time
        one head
            heads * batch -> batch
            every head has weights of its own
        one sequence
            batch * length -> length
            every sequence of the batch has weights of its own
        four bytes a number
            * 2 / -> * 4 /
            a 16-bit number takes 2 bytes
        bits for bytes
            * 2 / -> * 16 /
            you counted bits: a byte has 8 of them
        half of what is kept
            ` * 2 /` -> ` /`
            each number takes 2 bytes, and all pairs of a query and a key are kept, those that a causal mask hides too
        a gigabyte of 2^30 bytes
            / 1e9 -> / 2**30
            here a gigabyte is 10^9 bytes; 2^30 bytes are a gibibyte
        the length counted once
            length**2 -> length
            there is a weight for each pair of a query and a key: the length counts twice
    """,
    hints="""
        How many weights has one head, for one sequence? There is one for each pair of a query and a key.
        Which of your four numbers counts once, and which counts twice?
        A product of all of them and of the bytes of one number, in units of 10^9 bytes.
    """,
    why="""
        Each head of each layer has $T_q T_k$ weights for each sequence, {eq}`numbers-kept-for-gradients`, and none of them can be thrown
        away before the backward pass has come to its layer. FlashAttention keeps none of them: lesson {lesson}`flash`.
    """,
)
def my_gigabytes(layers, heads, length, batch):
    """A model keeps the weights $P$ of every layer, head and sequence from the forward pass, in 16-bit numbers, until the backward pass
    has used them. The cell below prints your `layers`, `heads`, `length` (queries and keys of a sequence) and `batch` (sequences).
    How many gigabytes, of $10^9$ bytes each, do all the weights take together?
    """
    return layers * heads * batch * length**2 * 2 / 1e9
