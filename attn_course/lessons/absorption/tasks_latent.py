"""Tasks on latent attention: its cache, its cost, rotary positions, and one step of decoding."""

import numpy as np

from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import every


@asked(
    "latent-cache-size",
    "The cache of a latent layer",
    kind="predict",
    equation="latent-cache-bytes",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what is cached, and in groups of what size",
    variants=every(L=(48, 40, 60), H=(40,), d=(80, 96), d_c=(320, 384), d_q=(960,), d_r=(32, 64)),
    digits=3,
    slips="""
        a latent vector for keys and one for values
            all (d_c + d_r) -> (2 * d_c + d_r)
            keys and values are made from the same latent vector: it is kept once
        no rotary key
            all (d_c + d_r) -> d_c
            the rotary key is no function of the latent vector, so it is kept as well
        a rotary key for each head
            all (d_c + d_r) -> (d_c + H * d_r)
            the rotary queries differ from head to head; the rotary key is shared by all of them
        the latent vector of the query kept
            all (d_c + d_r) -> (d_c + d_r + d_q)
            old queries are never needed again: their latent vector is not kept
        one layer
            (L * -> (
            the ratio is right; but each of the layers has a cache of its own
        1024 bytes
            / 1000 -> / 1024
            the ratio is right; but a kB has 1000 bytes here (1024 are a KiB)
        32-bit numbers
            * 2 / 1000 -> * 4 / 1000
            the ratio is right; but a 16-bit number has 2 bytes
        a group that keeps keys only
            / (2 * d) -> / d
            the bytes are right; but a key head of grouped attention keeps a key and a value, 2 * d numbers
        multi-head attention
            all (d_c + d_r) -> (2 * H * d)
            that is what keeping the keys and values of all heads would cost
        bits for bytes
            d_r) * 2 / 1000 -> d_r) * 16 / 1000
            a 16-bit number takes 2 bytes: you counted bits
    """,
    hints="""
        Which vectors of a past token does a later query need?
        One latent vector and one rotary key, d_c + d_r numbers, in each layer.
        (L * (d_c + d_r) * 2 / 1000, (d_c + d_r) / (2 * d))
    """,
    why="""
        {eq}`latent-cache-bytes`: here $352$ numbers in each of 48 layers, 33.79 kB. A group keeps a key and a value, 160 numbers: 2.2
        groups. Neither heads nor the queries' latent vector play a part.
    """,
)
def my_cache(L, H, d, d_c, d_q, d_r):
    """A model has $L$ layers of latent attention, $H$ heads of width $d$, latent vectors of $d_c$ numbers (keys and values) and $d_q$
    (queries); rotary queries and the shared rotary key have $d_r$ (numbers below). The cache holds 16-bit numbers. Write
    `my_cache = (a, b)`.

    - `a`: how many kB (1000 bytes) does each token add to the cache?
    - `b`: how many groups (key heads of width $d$, with values) would fill as many bytes?
    """
    return (L * (d_c + d_r) * 2 / 1000, (d_c + d_r) / (2 * d))


def _pairs(normal, d, d_k, d_v, rank):
    return {"w_key": normal(d, d_k), "w_value": normal(d, d_v), "d_latent": rank}


PAIRS = """
rank 2: 7 5 3 2
rank 1: 5 3 7 1
rank 3: 11 4 5 3
one column of keys: 5 1 7 2
"""


@asked(
    "joint-key-value-compression",
    "Compress keys and values together",
    kind="write",
    equation="absorbed-latent-keys",
    points=2,
    difficulty=3,
    minutes=12,
    trains="one latent space for both",
    cases=tried(_pairs, PAIRS),
    slips="""
        each compressed for itself
                both = left[:, :d_latent] * singular[:d_latent] @ right[:d_latent]
                ->
                parts = [np.linalg.svd(w, full_matrices=False) for w in (w_key, w_value)]
                both = np.hstack([left[:, :d_latent] * singular[:d_latent] @ right[:d_latent] for left, singular, right in parts])
            two separate latent vectors would have to be kept; put both matrices side by side before you compress
        the first features of the token
                left[:, :d_latent] * singular[:d_latent] @ right[:d_latent]
                ->
                np.hstack([w_key, w_value]) * (np.arange(len(w_key)) < d_latent)[:, None]
            you kept the first features of the token; the latent features are mixtures, the first singular vectors
        the space of the keys
                svd(np.hstack([w_key, w_value]), -> svd(w_key,
                ;;
                * singular[:d_latent] @ right[:d_latent] -> @ left[:, :d_latent].T @ np.hstack([w_key, w_value])
            the directions that matter to the keys alone were kept; the values have a say too: compress [W_K W_V]
        singular values forgotten
            * singular[:d_latent] @ -> @
            the product lacks the singular values: left * values @ right
        the smallest singular values
            left[:, :d_latent] * singular[:d_latent] @ right[:d_latent] -> left[:, -d_latent:] * singular[-d_latent:] @ right[-d_latent:]
            the singular values come in falling order: keep the first d_latent, not the last
        what is lost
            both = left -> both = np.hstack([w_key, w_value]) - left
            you returned what the compression throws away
        the order exchanged
            both[:, : w_key.shape[1]], both[:, w_key.shape[1] :] -> both[:, w_key.shape[1] :], both[:, : w_key.shape[1]]
            both are right, but return the keys' matrix first
    """,
    hints="""
        Both matrices read the same token: which single matrix makes key and value side by side?
        The nearest matrix of rank r keeps the r largest singular values (Eckart and Young): `np.linalg.svd(..., full_matrices=False)`.
        left[:, :d_latent] * singular[:d_latent] @ right[:d_latent], then cut the columns
    """,
    why=r"""
        `left * singular` is a down-projection, the two parts of `right` are up-projections, and the latent vector between
        serves keys and values. With tokens $X$ at hand one would rather compress $X [W_K\; W_V]$, so that only directions that tokens
        have are counted.
    """,
)
def my_joint(w_key, w_value, d_latent):
    r"""(d, n), (d, m) -> the same shapes, side by side the nearest matrix of rank
    d_latent.

    Compress two projections **together**: `my_joint(w_key, w_value, d_latent)` takes `w_key` of shape `(d, n)` and `w_value` of
    shape `(d, m)` (all heads side by side) and returns the tuple of two matrices of the same shapes, such that $[W_K'\; W_V']$,
    side by side, has rank `d_latent` (an integer below $d$ and below $n + m$) and is as near to $[W_K\; W_V]$ as such a matrix
    can be, in the sum of squared differences. `np.linalg` and its counterpart in torch are welcome.
    """
    left, singular, right = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    both = left[:, :d_latent] * singular[:d_latent] @ right[:d_latent]
    return both[:, : w_key.shape[1]], both[:, w_key.shape[1] :]


def _sixteen_points(rng):
    wide = {name: rng.uniform(5.0, 9.0, size=16) for name in ("t", "c")}
    return {**wide, **{name: rng.uniform(1.0, 2.0, size=16) for name in ("k", "v")}}


@asked(
    "absorption-break-even",
    "From how many new tokens on is absorbing a loss?",
    kind="derive",
    equation="latent-decoding-flops",
    points=3,
    difficulty=4,
    minutes=15,
    trains="decoding against prefill",
    cases=[_sixteen_points],
    slips="""
        the limit of long texts
            t * c * (k + v) / (c * (k + v) + t * (2 * c - k - v)) -> c * (k + v) / (2 * c - k - v)
            that is the limit for large t; for finite t the projections of the new tokens count as well
        naive attention forgotten
            2 * c - k - v -> 2 * c
            the naive way attends too, after rebuilding: n t pairs of k + v products
        absorbed values for nothing
            2 * c - k -> c - k
            in the latent space, scores and averages both have c terms: 2 c for each pair
        absorbed scores of width k
            ` + t * (2 * c - k - v)` ->
            with vectors of k and v features the absorbed attention would never lose; its vectors have c features
        keys without values
            all k + v -> k ;; 2 * c - k - v -> c - k
            values are rebuilt and averaged as keys are rebuilt and compared: count both
        upside down
            t * c * (k + v) / (c * (k + v) + t * (2 * c - k - v)) -> (c * (k + v) + t * (2 * c - k - v)) / (t * c * (k + v))
            your fraction is upside down
        the sign of the scores
            - k - v -> + k + v
            the naive pairs stand on the other side of the equation: they change their sign when you collect n
    """,
    hints="""
        Write both counts with n new tokens; drop what they share: 2 and the number of heads.
        naive: t c (k + v) + n t (k + v). Absorbed: n c (k + v) + 2 n t c.
        Put the terms with n on one side: n (c (k + v) + 2 t c - t (k + v)) = ...
    """,
    why=r"""
        $t c (k + v) + n t (k + v) = n c (k + v) + 2 n t c$, solved for $n$. Turned upside down it reads
        $\frac{1}{n} = \frac{1}{t} + \frac{2}{k + v} - \frac{1}{c}$. For DeepSeek-V2 and long texts: $n \approx 171$. Fewer new
        tokens, as in decoding: the latent space. More, as in a prompt: rebuild.
    """,
)
def my_new_tokens(t, c, k, v):
    """A layer has $h$ heads with keys of width $k$ and values of width $v$, and latent vectors of width $c$, no rotary part. Of $t$
    tokens, all with latent vectors, the last $n$ are new. Count from the queries to the outputs of the heads, as in
    {eq}`latent-decoding-flops`,
    with all $n t$ pairs:

    - naive: make keys and values of all $t$ tokens, then scores and averages;
    - in the latent space: lift $n$ queries, scores and averages with the latent vectors, bring $n$ averages back.

    At which $n$ do both take the same number of FLOPs? Write an expression in `t`, `c`, `k`, `v` with sums, products, powers.
    Assume $2 c > k + v$. ($h$ and the 2 for a multiply-add cancel.)
    """
    return t * c * (k + v) / (c * (k + v) + t * (2 * c - k - v))


def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """RoPE: turn the pairs (i, i + d / 2) of x (len, d), d even, by positions (len,)."""
    half = x.shape[1] // 2
    angle = positions[:, None] * 10_000.0 ** (-np.arange(half) / half)
    first, second = x[:, :half], x[:, half:]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.hstack([first * cos - second * sin, first * sin + second * cos])


def _decoupled(normal, new, length, d_head, d_rope, d_latent):
    queries = {"query": normal(new, d_head), "query_rope": normal(new, d_rope)}
    return {**queries, "latent": normal(length, d_latent), "key_rope": normal(length, d_rope), "w_key_up": normal(d_latent, d_head)}


DECOUPLED = """
some new tokens: 3 7 5 4 6
one new token: 1 5 3 2 8
all new: 7 7 11 6 4
"""


@asked(
    "repair-decoupled-scores",
    "Repair the decoupled scores",
    kind="repair",
    equation="decoupled-rope-score",
    points=3,
    difficulty=3,
    minutes=12,
    trains="what RoPE may touch when keys are absorbed",
    broken="""
        content = query @ w_key_up.T @ latent.T
        ->
        absorbed = query @ w_key_up.T
        content = rotate(absorbed, here) @ rotate(latent, there).T
        ;;
        np.sqrt(query.shape[1] -> np.sqrt(absorbed.shape[1]
    """,
    cases=tried(_decoupled, DECOUPLED),
    given=(rotate,),
    slips="""
        the content rotated too
            query @ w_key_up.T @ latent.T -> rotate(query @ w_key_up.T, here) @ rotate(latent, there).T
            the scale is right; but RoPE does not pass through `w_key_up`, {eq}`rope-blocks-absorption`: the content part has no
            positions at all
        the scale of the latent space
            np.sqrt(query.shape[1] -> np.sqrt(latent.shape[1]
            the rotation is right; absorbing changes how a score is computed, not its size: the root of d_head + d_rope
        the scale of the content
            ` + query_rope.shape[1]` ->
            a score has d_head + d_rope terms: the rotary part counts in the scale
        no scale
            ` / np.sqrt(query.shape[1] + query_rope.shape[1])` ->
            the content is right; the scores still need the scale, the root of d_head + d_rope
        new tokens at the beginning
            np.arange(length - new, length) -> np.arange(new)
            the queries are the last tokens of the text: the first of them stands at t - n, as the code had it
        the new tokens n positions too far
            np.arange(length - new, length) -> np.arange(length, length + new)
            the latent vectors hold the new tokens too: t counts them, and the first of them stands at t - n, not at t
        the rotary keys not rotated
            rotate(key_rope, there).T -> key_rope.T
            the distance appears when both are rotated, query and key
        no rotation at all
            rotate(query_rope, here) @ rotate(key_rope, there).T -> query_rope @ key_rope.T
            without any rotation the scores know no positions; the rotary parts keep theirs
    """,
    hints="""
        What would the same score be with the keys written out, [c U, k^R]? Which of its parts is rotated there?
        Content: `absorbed @ latent.T`, without positions. And how many terms has a score before absorbing?
        Divide by `np.sqrt(query.shape[1] + query_rope.shape[1])`.
    """,
    why="""
        (1) A rotation of lifted queries and latent vectors is no rotation of queries and keys, {eq}`rope-blocks-absorption`: the
        content has no positions. (2) Absorbing changes how the score is computed, not how many terms it had.
    """,
)
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    r"""Scores (n, t) of the last n tokens of a text of t with all of it, one head:
    content absorbed, positions decoupled.

    This should give the scores `(n, t)` of **one head**, {eq}`decoupled-rope-score`: the last $n$ tokens of a text of $t$ ask all
    $t$ (no mask; positions count from 0). Inputs: `query` `(n, d_head)`, content; `query_rope` `(n, d_rope)` and `key_rope`
    `(t, d_rope)`, not yet rotated; `latent` `(t, d_latent)`; `w_key_up` `(d_latent, d_head)`, which makes the content of a key. The
    scale is $1/\sqrt{d_{\mathrm{head}} + d_{\mathrm{rope}}}$. `rotate` is right; the function is wrong in two places. Repair it.
    (The check sees only the scores, not how you bracket.)
    """
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])


def _step(normal, H, length, d_head, d_rope, d_latent, d_v, d_model):
    tokens = {"query": normal(H, d_head), "query_rope": normal(H, d_rope), "latent": normal(length, d_latent)}
    up = {"w_key_up": normal(d_latent, H * d_head) / 2, "w_value_up": normal(d_latent, H * d_v) / 2}
    return {**tokens, "key_rope": normal(length, d_rope), **up, "w_output": normal(H * d_v, d_model) / 2}


STEPS = """
two heads: 2 5 3 4 7 11 13
three heads, one token: 3 1 5 2 4 7 11
one head: 1 7 2 6 5 3 4
five heads: 5 3 4 2 6 3 7
values as wide as heads: 2 5 3 4 7 3 11
"""


@asked(
    "latent-decoding-step",
    "One step with latent vectors",
    kind="write",
    equation="absorbed-latent-attention",
    points=3,
    difficulty=5,
    minutes=25,
    trains="everything of this lesson at once",
    cases=tried(_step, STEPS),
    slips="""
        the scale of the latent space
            np.sqrt(d_head + -> np.sqrt(latent.shape[1] +
            the scale is that of the scores before absorbing: the root of d_head + d_rope
        the scale of the content
            ` + query_rope.shape[1]` ->
            the rotary part counts in the scale: the root of d_head + d_rope
        the rotary part left out
            ` + query_rope @ key_rope.T` ->
            the scores lack `query_rope` with `key_rope`, {eq}`decoupled-rope-score`
        key columns dealt round
                lifted = (keys_up
                ->
                keys_up = w_key_up.reshape(len(w_key_up), -1, n_heads).transpose(2, 0, 1)
                lifted = (keys_up
            head h owns the h-th block of neighbouring columns of `w_key_up`; you took every n_heads-th column
        value columns dealt round
                lifted = (keys_up
                ->
                values_up = w_value_up.reshape(len(w_value_up), -1, n_heads).transpose(2, 0, 1)
                lifted = (keys_up
            head h owns the h-th block of neighbouring columns of `w_value_up`; you took every n_heads-th column
        split by a bare reshape
            w.reshape(len(w), n_heads, -1).swapaxes(0, 1) -> w.reshape(n_heads, len(w), -1)
            reshaped to (n_heads, d_latent, ...) at once, a head gets whole rows of the matrices: cut the columns, then swap the axes
        no scale
            ` / np.sqrt(d_head + query_rope.shape[1])` ->
            the scores go into the softmax unscaled: divide them by the root of d_head + d_rope
        softmax over the heads
            all axis=1 -> axis=0
            each head's weights sum to 1 over the cached tokens, not over the heads
        heads averaged
            heads.ravel() @ w_output -> heads.ravel() @ w_output / n_heads
            the heads are added through `w_output`, {eq}`output-projection-sums-heads`, not averaged
        the order exchanged
            lifted, averages, heads -> averages, lifted, heads
            all three are right, but return the lifted queries first, then the averages
        merged feature by feature
            heads.ravel() -> heads.swapaxes(0, 2).ravel()
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
        the scale in the lifted queries
                query[:, :, None])[:, :, 0] -> query[:, :, None])[:, :, 0] / np.sqrt(d_head + query_rope.shape[1])
                ;;
                (lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d_head + query_rope.shape[1])
                ->
                lifted @ latent.T + query_rope @ key_rope.T / np.sqrt(d_head + query_rope.shape[1])
            the lifted queries are returned without the scale: it belongs to the scores
    """,
    hints="""
        Cut `w_key_up` and `w_value_up` into heads, (n_heads, d_latent, width). Then lift, score, average, project up, project out.
        lifted: `np.einsum("hk,hck->hc", query, keys_up)`; its scores are with `latent`, those of `query_rope` with `key_rope`.
        averages = weights @ latent, (n_heads, d_latent); each goes up by its head's `values_up`, then all into `w_output`.
    """,
    why=r"""
        The same few rows of `latent` are keys and values of all heads; what differs from head to head are the small products
        before and after. Nothing of size $t \times H$ but the scores is ever made.
    """,
)
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    r"""One absorbed step -> lifted queries (H, d_latent), averages (H, d_latent),
    output (d,).

    Write one step of decoding in the latent space for $H$ heads, {eq}`absorbed-latent-attention`. The new token brings `query` `(H,
    d_head)`, content, and `query_rope` `(H, d_rope)`, already rotated. The cache, its own token included: `latent` `(t, d_latent)` and
    `key_rope` `(t, d_rope)`, already rotated. Weights: `w_key_up` `(d_latent, H * d_head)`, `w_value_up` `(d_latent, H * d_v)`,
    `w_output` `(H * d_v, d)`.

    Return the tuple of the lifted queries $q_h W_{UK}^{(h)\top}$ `(H, d_latent)` (no scale, no rotary part), the averages of
    latent vectors `(H, d_latent)`, and the output `(d,)`. The scale is $1/\sqrt{d_{\mathrm{head}} + d_{\mathrm{rope}}}$.
    """
    n_heads, d_head = query.shape
    keys_up, values_up = (w.reshape(len(w), n_heads, -1).swapaxes(0, 1) for w in (w_key_up, w_value_up))  # (H, d_latent, width)
    lifted = (keys_up @ query[:, :, None])[:, :, 0]

    scores = (lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d_head + query_rope.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    averages = unnormalised / unnormalised.sum(axis=1, keepdims=True) @ latent

    heads = averages[:, None, :] @ values_up  # (H, 1, d_v)
    return lifted, averages, heads.ravel() @ w_output
