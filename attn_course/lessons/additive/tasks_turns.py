"""What the lesson on additive attention asks its reader before it shows its own."""

import numpy as np

from attn_course.reference import softmax
from attn_course.tasks.asked import asked, tried


def _one_query(normal, kv_len, d_q, d_k, d_hidden):
    layer = {"w_query": normal(d_q, d_hidden), "w_key": normal(d_k, d_hidden), "bias": normal(d_hidden), "w_score": normal(d_hidden)}
    return {"query": normal(d_q), "key": normal(kv_len, d_k), **layer}


ONE_QUERY = """
a longer query: 5 4 2 7
longer keys: 3 2 5 11
one key, one unit: 1 3 2 1
as many keys as units: 7 3 5 7
"""


@asked(
    "scores-by-network",
    "A network as the score",
    kind="write",
    equation="additive-score",
    points=1,
    difficulty=1,
    minutes=4,
    trains="query and key met inside the bend",
    your_turn=True,
    cases=tried(_one_query, ONE_QUERY),
    slips="""
        each part bent by itself
            np.tanh(query @ w_query + key @ w_key + bias) -> (np.tanh(query @ w_query) + np.tanh(key @ w_key + bias))
            bend the sum of both projections, not each of them: query and key must meet inside tanh
        no tanh
            np.tanh(query @ w_query + key @ w_key + bias) -> (query @ w_query + key @ w_key + bias)
            nothing bends: without tanh this is a number of the query plus a number of the key
        the bias forgotten
            ` + bias` ->
            the bias is missing: it is added inside tanh
        the bias outside
            + bias) @ w_score -> ) @ w_score + bias @ w_score
            the bias belongs inside tanh; outside it would be the same for all keys
        no score vector
            @ w_score -> @ np.ones_like(w_score)
            the units are added up as they are; each is to be multiplied by its entry of w_score
        tanh of the whole
            np.tanh(query @ w_query + key @ w_key + bias) @ w_score -> np.tanh((query @ w_query + key @ w_key + bias) @ w_score)
            bend each unit first, and let w_score add afterwards
    """,
    hints="""
        The projected query is one row, the projected keys are several. What does NumPy do with their sum?
        Add both projections and the bias, take tanh, and let w_score make one number of each row.
        `np.tanh(...) @ w_score` with the sum of two products and the bias inside.
    """,
)
def my_scores(query, key, w_query, w_key, bias, w_score):
    r"""The score of each key for one query, {eq}`additive-score` with a bias.

    Write `my_scores(query, key, w_query, w_key, bias, w_score)` for one query, $(d_q,)$, and $n$ keys, $(n, d_k)$. `w_query` and `w_key`
    are $W_Q$ and $W_K$, `bias` is added inside $\tanh$, and `w_score` is $v$. It returns the $n$ scores.
    """
    return np.tanh(query @ w_query + key @ w_key + bias) @ w_score


def _near(normal, q_len, kv_len, d):
    return {"query": normal(q_len, d), "key": normal(kv_len, d)}


NEAR = """
three features: 4 7 3
one feature: 5 3 1
one query: 1 5 4
more queries than keys: 7 2 5
"""


def _by_distance(query, key):
    return softmax(-((query[:, None] - key) ** 2).sum(axis=-1) / 2)


@asked(
    "nearest-key-by-product",
    "The nearest key by a product",
    kind="write",
    equation="additive-memory-overhead",
    points=1,
    difficulty=2,
    minutes=4,
    trains="a bend for each key in place of one for each pair",
    your_turn=True,
    judged_by=_by_distance,
    cases=tried(_near, NEAR),
    slips="""
        the plain product
            ` - (key**2).sum(axis=-1) / 2` ->
            this is the dot product alone: half the squared length of each key is still to be subtracted
        the whole square
            (key**2).sum(axis=-1) / 2 -> (key**2).sum(axis=-1)
            only half the squared length of a key is subtracted: the dot product stands twice in the squared distance
        the square added
            - (key**2) -> + (key**2)
            the squared length is subtracted: a long key must not win because it is long
        softmax over the queries
            all axis=-1, keepdims -> axis=0, keepdims
            the weights of one query sum to 1 over the keys, the last axis of the scores
        the length for its square
            (key**2).sum(axis=-1) -> np.sqrt((key**2).sum(axis=-1))
            the *squared* length is subtracted, without a root
    """,
    hints="""
        Which terms of minus half the squared distance depend on the key?
        The term with the query alone is the same for all keys, so the softmax does not see it.
        `query @ key.T` less one number for each key, then the softmax of each row.
    """,
)
def my_nearest(query, key):
    r"""The weights that favour near keys.

    Write `my_nearest(query, key)` for queries $(T_q, d)$ and keys $(T_k, d)$. It returns the weights $(T_q, T_k)$, the softmax of
    $-\tfrac{1}{2} \|q_i - k_j\|^2$ over the keys, without an array of $T_q T_k d$ numbers. For the softmax, use
    `terms = np.exp(scores - scores.max(axis=-1, keepdims=True))` and `terms / terms.sum(axis=-1, keepdims=True)`.
    """
    scores = query @ key.T - (key**2).sum(axis=-1) / 2
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return terms / terms.sum(axis=-1, keepdims=True)
