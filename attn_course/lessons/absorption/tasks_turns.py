"""What the lesson on absorption asks its reader before it shows its own."""

import numpy as np

from attn_course.tasks.asked import asked, tried


def _biased(normal, d, d_k):
    return {"w_query": normal(d, d_k), "b_query": normal(d_k), "w_key": normal(d, d_k), "b_key": normal(d_k)}


BIASED = """
wide tokens: 7 3
narrow tokens: 3 5
one feature: 1 2
one number in a key: 5 1
"""


@asked(
    "head-with-biases-absorbed",
    "A head with its biases, absorbed",
    kind="write",
    equation="score-with-biases",
    points=1,
    difficulty=2,
    minutes=6,
    trains="which terms of a score the softmax can see",
    your_turn=True,
    cases=tried(_biased, BIASED),
    slips="""
        the scale left out
            ` / root, b_query @ w_key.T / root` -> , b_query @ w_key.T
            both parts must be divided by the root of d_k
        the row without the scale
            b_query @ w_key.T / root -> b_query @ w_key.T
            the matrix is right; the row belongs to the score as well, so it has the same scale
        the scale of the matrix that comes out
            w_query.shape[1] -> len(w_query)
            a score is a sum of d_k terms, however wide the tokens are: divide by the root of d_k
        the key's bias kept
            b_query @ w_key.T / root -> (b_query @ w_key.T + b_query @ b_key) / root
            b_Q b_K^T is the same for every key, so the softmax does not see it
        the bias of the key with the query
            b_query @ w_key.T -> b_key @ w_query.T
            x_i W_Q b_K^T is the same for all keys of query i; what differs from key to key is b_Q with x_j W_K
        the keys ask
            w_query @ w_key.T / root, -> w_key @ w_query.T / root,
            rows of the matrix belong to the token that asks: W_Q stands on the left, {eq}`absorbed-score`
    """,
    hints="""
        Of the four terms in {eq}`score-with-biases`, which change if x_j is another key?
        The first one gives the matrix. The other one has the form v x_j^T; what is v?
        `b_query @ w_key.T`, and both parts are divided by `np.sqrt(w_query.shape[1])`.
    """,
)
def my_absorbed(w_query, b_query, w_key, b_key):
    r"""Two matrices (d, d_k) and their biases (d_k,) -> the matrix W and the row v of a head.

    Write `my_absorbed(w_query, b_query, w_key, b_key)`. It returns the tuple $(W, v)$ of a matrix and a row: with the scores
    $x_i W x_j^\top + v\, x_j^\top$ the softmax gives the same weights as with those of {eq}`score-with-biases` divided by $\sqrt{d_k}$.
    So $W$ and $v$ are both already divided by $\sqrt{d_k}$. Leave out what the softmax does not see. `w_query` and `w_key` are
    $(d, d_k)$, $W$ is $(d, d)$, $v$ is $(d,)$.
    """
    root = np.sqrt(w_query.shape[1])
    return w_query @ w_key.T / root, b_query @ w_key.T / root


def _latent(normal, H, T, d_c, d_k, d_v):
    ups = {"up_key": normal(H, d_c, d_k) / 2, "up_value": normal(H, d_c, d_v)}
    return {"query": normal(H, d_k), "latent": normal(T, d_c), **ups}


LATENT = """
three heads: 3 7 5 2 4
five heads, wide keys: 5 3 2 7 3
one head: 1 5 4 3 2
one token: 2 1 3 5 4
"""


@asked(
    "step-among-latents",
    "A step in which no key is made",
    kind="write",
    equation="absorbed-latent-keys",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the order of the products in a step of decoding",
    your_turn=True,
    cases=tried(_latent, LATENT),
    slips="""
        the scale of what is compared
            np.sqrt(query.shape[1]) -> np.sqrt(latent.shape[1])
            the score is still that of a key of d_k entries, whatever it is computed from: the root of d_k
        no scale
            ` / np.sqrt(query.shape[1])` ->
            the scores go into the softmax undivided: divide them by the root of d_k
        softmax over the heads
            all axis=1 -> axis=0
            the weights of each head sum to 1 over the tokens, the last axis
        the average of the latent vectors returned
            (averages[:, None] @ up_value)[:, 0] -> averages
            these are the averages of the latent vectors; each head's `up_value` makes a value of its own
        one head's matrix for all
            (up_key @ query[:, :, None]) -> (up_key[:1] @ query[:, :, None])
            each head lifts its query by its own `up_key[h]`
    """,
    hints="""
        Which product needs no token of the text: the query's with `up_key`, or the latent vectors' with it?
        A lifted query is (d_c,). Its products with `latent` are (T,): scale, softmax over the tokens, average of `latent`.
        For head h: the scores come from `latent @ (up_key[h] @ query[h])`, and its output is `average @ up_value[h]`.
    """,
)
def my_step(query, latent, up_key, up_value):
    r"""(H, d_k), (T, d_c), (H, d_c, d_k), (H, d_c, d_v) -> outputs of the heads (H, d_v).

    A new token asks with a query, `query[h]`, for each of $H$ heads; `query` is `(H, d_k)`. Of all $T$ tokens, itself included, only the
    latent vectors are kept, `latent`, `(T, d_c)`. Head $h$ would make its keys as `latent @ up_key[h]` and its values as
    `latent @ up_value[h]`, with `up_key` `(H, d_c, d_k)` and `up_value` `(H, d_c, d_v)`. Write `my_step(query, latent, up_key, up_value)`,
    which returns what each head returns, `(H, d_v)`, and makes neither. A loop over the heads will do. The scale is $1/\sqrt{d_k}$. Write
    the softmax with `np.exp`; all scores are moderate, so no maximum needs to be subtracted.
    """
    lifted = (up_key @ query[:, :, None])[:, :, 0]
    scores = lifted @ latent.T / np.sqrt(query.shape[1])
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    averages = terms / terms.sum(axis=1, keepdims=True) @ latent
    return (averages[:, None] @ up_value)[:, 0]


def _wide(normal, H, d_c, d_k, d_rope):
    return {"up_key": normal(H, d_c, d_k), "d_rope": d_rope}


WIDE = """
three heads: 3 5 2 4
one head, wide keys: 1 3 7 2
two heads: 2 4 3 6
"""


@asked(
    "key-with-rotary-part",
    "One row for both parts",
    kind="write",
    equation="decoupled-rope-score",
    points=1,
    difficulty=2,
    minutes=6,
    trains="a key in two parts as one product",
    your_turn=True,
    cases=tried(_wide, WIDE),
    slips="""
        the rotary key lost
            wide[:, d_c:, d_k:] = np.eye(d_rope) -> wide[:, d_c:, d_k:] = 0
            k^R has to come out as it went in, behind the content: the lower right block is no zero
        the rotary key summed
            np.eye(d_rope) -> 1
            with a block of ones each feature of the key is the sum of all of k^R; it has to be one of them
        the rotary key first
                wide[:, :d_c, :d_k] = up_key
                wide[:, d_c:, d_k:] = np.eye(d_rope)
                ->
                wide[:, :d_c, d_rope:] = up_key
                wide[:, d_c:, :d_rope] = np.eye(d_rope)
            the content comes first in the key too, as it does in the query
    """,
    hints="""
        Which columns of the wide matrix make the content, and which rows may they read?
        Two blocks on the diagonal are not 0: one makes k^C of c, the other leaves k^R as it is.
        Start from zeros; `wide[:, :d_c, :d_k] = up_key` and `wide[:, d_c:, d_k:] = np.eye(d_rope)`
    """,
)
def my_wide(up_key, d_rope):
    r"""(H, d_c, d_k) -> (H, d_c + d_rope, d_k + d_rope).

    Write `my_wide(up_key, d_rope)`. It returns `wide`, an array of shape `(H, d_c + d_rope, d_k + d_rope)`: whatever the rows $c$ and
    $k^R$ of $d_c$ and `d_rope` numbers are, $[\,c,\, k^R\,]$ times `wide[h]` is the key $[\,c\,W_{UK},\, k^R\,]$ of head $h$. $W_{UK}$ is
    `up_key[h]`, and $k^R$ is already turned.
    """
    n_heads, d_c, d_k = up_key.shape
    wide = np.zeros((n_heads, d_c + d_rope, d_k + d_rope))
    wide[:, :d_c, :d_k] = up_key
    wide[:, d_c:, d_k:] = np.eye(d_rope)
    return wide
