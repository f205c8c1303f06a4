"""What the lesson on gradients asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _passed(normal, q_len, kv_len, d_v):
    """Weights, the output they give, and a gradient there."""
    unnormalised = np.exp(normal(q_len, kv_len))
    weights, value = unnormalised / unnormalised.sum(axis=-1, keepdims=True), normal(kv_len, d_v)
    return {"weights": weights, "output": weights @ value, "value": value, "d_output": normal(q_len, d_v)}


PASSED = """
fewer queries than keys: 3 5 2
more queries than keys: 7 3 5
one query: 1 5 3
values with one entry: 5 3 1
"""


@asked(
    "gain-over-mixture",
    "The gradient of the scores",
    kind="write",
    equation="score-gradient-against-mixture",
    points=1,
    difficulty=2,
    minutes=6,
    trains="from indices to arrays",
    your_turn=True,
    cases=tried(_passed, PASSED),
    slips="""
        nothing subtracted
            weights * (d_weights - delta) -> weights * d_weights
            what counts is what a value costs above the present mixture: subtract what the output costs
        the weight forgotten
            weights * (d_weights -> (d_weights
            the cost above the mixture is multiplied by the weight that the key already has
        the sign turned
            weights * (d_weights -> -weights * (d_weights
            it is the value minus the mixture, v_j - z_i, and not the other way round
        the plain mean for the mixture
            d_output * output -> d_output * value.mean(axis=0)
            the mixture is the output z_i, the average under the weights of row i; you subtracted the plain mean of all values
    """,
    hints="""
        All dot products of a row of dZ with a value are one matrix product.
        What is subtracted is one number for each query: keep its axis, so that it broadcasts over the keys.
        Count the shapes: a matrix of pairs, less a column with a number for each query; and then the weights.
    """,
    why=r"""
        $dZ_i \cdot (v_j - z_i)$ is $dZ_i \cdot v_j$, an entry of $dZ\, V^\top$, less $dZ_i \cdot z_i$, one number for each query,
        {eq}`score-gradient-against-mixture`.
    """,
)
def my_d_scores(weights, output, value, d_output):
    r"""The gradient at all scores, from the weights, the output and the gradient there.

    Write `my_d_scores(weights, output, value, d_output)`, from arrays of the shapes $(T_q, T_k)$, $(T_q, d_v)$, $(T_k, d_v)$ and
    $(T_q, d_v)$, in three lines without a loop: $dP$, then $\delta$ of {eq}`score-gradient-against-mixture` (`keepdims=True` keeps
    it a column), then $dS$ of {eq}`gradient-of-scores`.
    """
    d_weights = d_output @ value.T
    delta = (d_output * output).sum(axis=1, keepdims=True)
    return weights * (d_weights - delta)


def _scored(normal, q_len, kv_len, d_k):
    """A gradient at the scores, whose rows sum to 0 as those of a softmax do, and the queries."""
    d_scores = normal(q_len, kv_len)
    return {"d_scores": d_scores - d_scores.mean(axis=1, keepdims=True), "query": normal(q_len, d_k)}


SCORED = """
fewer queries than keys: 3 5 2
as many queries as keys: 4 4 3
one query: 1 5 3
queries of one number: 5 3 1
"""


@asked(
    "gradient-of-all-keys",
    "The gradient of all keys in one line",
    kind="write",
    equation="query-and-key-gradients",
    points=1,
    difficulty=1,
    minutes=4,
    trains="the summed index says what is transposed",
    your_turn=True,
    cases=tried(_scored, SCORED),
    slips="""
        the scale forgotten
            ` / np.sqrt(query.shape[1])` ->
            the scores are Q K^T / sqrt(d_k), so dK keeps the factor 1 / sqrt(d_k)
        divided by d_k
            np.sqrt(query.shape[1]) -> query.shape[1]
            the scale passes through once, as 1 / sqrt(d_k)
        the root of the number of queries
            query.shape[1] -> query.shape[0]
            d_k is the number of features of a query, the length of its last axis
    """,
    hints="""
        A key touches the scores of its column: the sum runs over the queries.
        The queries are the first index of dS and the first of Q. In a matrix product the last index of the left factor is summed.
        One matrix is transposed, one product is taken, and the scale of the scores is still there.
    """,
    why=r"""
        Key $j$ touches $s_{ij}$ for every $i$, at the rate $Q_i / \sqrt{d_k}$, so $dK_j = \sum_i dS_{ij}\, Q_i / \sqrt{d_k}$,
        {eq}`query-and-key-gradients`. If there are as many queries as keys, `d_scores @ query` has the right shape too, and wrong numbers.
    """,
)
def my_d_key(d_scores, query):
    r"""The gradient at all keys, from the gradient at the scores and the queries.

    Ask the three questions of key $j$. Then write `my_d_key(d_scores, query)`, which returns $dK$, from arrays of the shapes $(T_q, T_k)$
    and $(T_q, d_k)$.
    """
    return d_scores.T @ query / np.sqrt(query.shape[1])


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The output of attention."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True) @ value


def loss(query: np.ndarray, key: np.ndarray, value: np.ndarray, d_output: np.ndarray) -> float:
    """A loss whose gradient at the output of attention is d_output."""
    return (d_output * attention(query, key, value)).sum()


def _steps(normal, step, q_len, kv_len, d_k, d_v):
    shapes = {"query": (q_len, d_k), "key": (kv_len, d_k), "value": (kv_len, d_v), "d_output": (q_len, d_v)}
    return {**{role: normal(*shape) for role, shape in shapes.items()}, "step": step}


STEPS = """
a step of 0.1: 0.1 3 5 2 7
a step of 0.01, more queries than keys: 0.01 7 3 5 2
a step of 0.5, one query: 0.5 1 5 3 2
keys of one number: 0.1 3 7 1 2
"""


@asked(
    "key-gradient-by-differences",
    "The gradient of the keys by differences",
    kind="write",
    equation="query-and-key-gradients",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a check that shares no algebra with what it checks",
    given=(attention, loss),
    tolerance=1e-7,
    cases=tried(_steps, STEPS),
    slips="""
        a difference to one side
            key - nudge -> key ;; (2 * step) -> step
            you went one step ahead and compared with where you were; a central difference goes one step ahead and one behind
        divided by one step
            (2 * step) -> step
            from one step behind to one step ahead are two steps: divide by 2 h
        half a difference to one side
            key - nudge -> key
            the second loss is that of the unchanged key: the entry was put back, not moved a step behind
        all entries moved together
            nudge[entry] = step -> nudge += step
            each entry has a derivative of its own: move one entry, leave all others where they are
    """,
    hints="""
        Two losses for each entry of `key`: one with the entry a step larger, one with it a step smaller.
        `np.ndindex(key.shape)` runs through all entries; work on a copy of `key`, so that nothing stays moved.
        The shape is that of `key`; each entry is the rise of the loss over the way between the two ends.
    """,
    why="""
        The loss is evaluated twice for each entry, which is slow. But nothing of the formulas that are to be checked goes into it.
    """,
)
def my_differences(query, key, value, d_output, step):
    """Central differences of the loss by each entry of `key`.

    A central difference is the loss with one entry a step larger, less the loss with it a step smaller, over the way between the two. Write
    `my_differences(query, key, value, d_output, step)`, which takes it of the function `loss` for each entry of `key`, as an array of the
    shape of `key`. Leave `key` as it was. (`np.ndindex(key.shape)` runs through its entries.)
    """
    quotients = np.empty_like(key)
    for entry in np.ndindex(key.shape):
        nudge = np.zeros_like(key)
        nudge[entry] = step
        rise = loss(query, key + nudge, value, d_output) - loss(query, key - nudge, value, d_output)
        quotients[entry] = rise / (2 * step)
    return quotients
