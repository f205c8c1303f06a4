"""Tasks on shared heads, the cache and packed weights."""

import math

import numpy as np

from attn_course.reference import attention
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import every


def _sixteen_points(rng):
    return {name: rng.uniform(1.0, 5.0, size=16) for name in ("d", "h", "r", "w", "t")}


@asked(
    "decoding-step-flops",
    "What one step of decoding costs",
    kind="derive",
    equation="multi-head-flops",
    points=2,
    difficulty=2,
    minutes=10,
    trains="counting a layer with shared heads and a cache",
    cases=[_sixteen_points],
    slips="""
        scores counted by key heads
            4 * t * h -> 4 * t * r
            sharing keys saves memory, not scores: every one of the h query heads still has t scores and t weights
        the whole prefix projected again
            4 * d * r -> 4 * t * d * r
            the cache holds the old keys and values: only the new token's are projected
        the new token counted twice
            4 * t * h -> 4 * (t + 1) * h
            the t keys already contain that of the new token
        heads of width d / h
            all h * w -> d
            nothing says that h w = d: the heads have width w
        no output projection
            4 * d * h -> 2 * d * h
            the concatenated heads, h w numbers, are still multiplied by W_O
        keys without values
            4 * d * r -> 2 * d * r
            there are two shared projections, one for the key and one for the value
        scores without output
            4 * t -> 2 * t
            each head makes t scores and then adds up t values: two products of the same size
        a multiply-add counted once
            all 4 -> 2
            a multiplication and its addition count 2
        no sharing
            4 * d * r -> 4 * d * h
            only r heads of keys and values are projected, not h
        the lesson's count of a whole text
            4 * d * h * w + 4 * d * r * w + 4 * t * h * w -> 8 * t * d**2 + 4 * t**2 * d
            {eq}`multi-head-flops` counts t tokens, all heads their own keys, h w = d: here there is one new token, r key heads, and any
            width w
        one token of the lesson's layer
            4 * d * h * w + 4 * d * r * w + 4 * t * h * w -> 8 * d**2 + 4 * t * d
            that is right where r = h and h w = d, as in {eq}`multi-head-flops`; here key heads are shared, and nothing says what h w is
        weighted sums counted by value heads
            4 * t * h * w -> 2 * t * h * w + 2 * t * r * w
            each of the h query heads adds up t values for itself, though several read the same ones
    """,
    hints="""
        List the products of one step: which matrices does the new token meet, and what does each head do with the cache?
        W_Q and W_O have d h w entries each, W_K and W_V have d r w each, and each entry costs 2.
        Each of the h heads: t scores of w terms, and w outputs of t terms. Add 2 for each multiply-add.
    """,
    why="""
        $W_Q$ and $W_O$ have $d h w$ entries each, $W_K$ and $W_V$ have $d r w$, and every entry costs 2. Each of the $h$ query
        heads makes $t$ scores of $w$ terms and adds $t$ values of width $w$. Sharing makes the projections and the cache
        smaller, not the scores.
    """,
)
def my_step_flops(d, h, r, w, t):
    """A causal layer (input and output of width $d$) decodes **one** new token with a cache. It has $h$ query heads, $r$ key heads and $r$
    value heads, all of width $w$. Each key head holds $t$ keys, that of the new token included. Count the FLOPs: four projections of the
    new token, scores, weighted sums of values. A multiply-add counts 2; softmax and scale nothing. Use the symbols `d`, `h`, `r`, `w`, `t`
    with sums, products, powers.
    """
    return 4 * d * h * w + 4 * d * r * w + 4 * t * h * w


@asked(
    "cache-capacity-in-tokens",
    "How long may the text be?",
    kind="predict",
    equation="kv-cache-bytes",
    retired=True,
    points=1,
    difficulty=2,
    minutes=5,
    trains="bytes of a cache",
    variants=every(L=(28, 32, 40), H=(24,), G=(6, 8), d_h=(96, 80, 112), M=(3, 5)),
    digits=3,
    slips="""
        counted with the query heads
            L * G -> L * H
            only the key heads keep something
        keys only
            2 * L -> L
            keys and values are both kept, and a number has 2 bytes
        one layer
            L * G -> G
            each of the layers has a cache of its own
        32-bit numbers
            d_h * 2 -> d_h * 4
            a 16-bit number has 2 bytes, not 4
        bits taken for bytes
            d_h * 2 -> d_h * 16
            memory is given in bytes: 16 bits are 2 of them
        a gibibyte as a billion
            2.0**30 -> 1e9
            1 GiB is 2**30 bytes
    """,
    hints="""
        How many numbers does one layer keep for one token?
        Key and value, key heads, numbers of each, bytes of a number, layers.
        One token takes 2 * L * G * d_h * 2 bytes; divide M * 2**30 by it.
    """,
    why=r"""
        {eq}`kv-cache-bytes`, here $2 \cdot 28 \cdot 6 \cdot 96 \cdot 2 = 64512$ bytes for one token. The query heads keep nothing.
    """,
)
def my_tokens(L, H, G, d_h, M):
    r"""A model has $L$ layers, $H$ query heads and $G$ key heads, all of width $d_h$ (keys and values alike); the cell below prints your
    numbers. It keeps its cache in 16-bit numbers, and $M$ GiB ($M \cdot 2^{30}$ bytes) of memory are free for the cache of one text. How
    many tokens fit at most? Write the number as `my_tokens`.
    """
    return M * 2.0**30 // (2 * L * G * d_h * 2)


def _groups(normal, H, R, q_len, kv_len, d_k, d_v):
    return {"query": normal(H, q_len, d_k), "key": normal(R, kv_len, d_k), "value": normal(R, kv_len, d_v)}


GROUPS = """
six query heads on two: 6 2 5 7 3 11
six query heads on three: 6 3 7 5 2 4
five query heads on one: 5 1 3 2 7 11
three query heads on three: 3 3 2 7 5 4
one query: 4 2 1 5 3 7
"""


@asked(
    "repair-grouped-heads",
    "Repair grouped heads",
    kind="repair",
    equation="grouped-query-attention",
    points=2,
    difficulty=3,
    minutes=10,
    trains="which query head uses which key head",
    judged_by=lambda query, key, value: attention(query, key, value, enable_gqa=True),
    broken=["key heads dealt round", "scale of the whole layer"],
    forbid=(forbidden.ATTENTION,),
    cases=tried(_groups, GROUPS),
    slips="""
        key heads dealt round
            np.repeat(key, group, axis=0), np.repeat(value, group, axis=0) -> np.tile(key, (group, 1, 1)), np.tile(value, (group, 1, 1))
            query head h uses key head h // g, {eq}`grouped-query-attention`: neighbours share. Here it is h mod R, as with `tile`
        scale of the whole layer
            np.sqrt(d_k) -> np.sqrt(n_heads * d_k)
            the groups are right; the scale belongs to one head, the root of its d_k features
        keys repeated, values dealt round
            np.repeat(value, group, axis=0) -> np.tile(value, (group, 1, 1))
            the keys are right, but the values of a head must come from the same key head as its keys
        keys dealt round, values repeated
            np.repeat(key, group, axis=0) -> np.tile(key, (group, 1, 1))
            the values are right, but the keys of a head must come from the same key head as its values
        all on the first key head
            np.repeat(key, group, axis=0), np.repeat(value, group, axis=0) -> key[:1], value[:1]
            each group has a key head of its own; you used the first for all
        key heads averaged
                np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
                ->
                key.mean(axis=0, keepdims=True), value.mean(axis=0, keepdims=True)
            nothing is averaged here: pooling converts trained weights, while this layer keeps R different key heads
    """,
    hints="""
        Write down for 6 query heads and 2 key heads who uses whom, by {eq}`grouped-query-attention` and by the code.
        `np.repeat(key, group, axis=0)` gives 0 0 0 1 1 1; and how many terms has one score?
        Repeat both key and value, and divide by `np.sqrt(d_k)`.
    """,
    why="""
        (1) `tile` deals the key heads round, 0 1 0 1; groups are neighbours, 0 0 1 1. With $R = 1$ or $R = H$ both agree, so test
        in between. (2) A score has $d_k$ terms, however many heads there are.
    """,
)
def grouped_attention(query, key, value):
    r"""Grouped-query attention: (H, q_len, d_k), (R, kv_len, d_k), (R, kv_len, d_v)
    -> (H, q_len, d_v).

    The function below should compute grouped-query attention, {eq}`grouped-query-attention`: `query` has shape `(H, q_len, d_k)`, `key`
    `(R, kv_len, d_k)`, `value` `(R, kv_len, d_v)`, and $R$ divides $H$
    {case}`six query heads on three`. The result has shape `(H, q_len, d_v)`; there is no mask, and
    the scale is $1/\sqrt{d_k}$. It raises no error, and it is wrong in two places. Repair it.
    """
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values


def _stacked(normal, T, d, n_heads):
    return {"x": normal(T, d), "stacked": normal(4 * d, d) / math.sqrt(d), "n_heads": n_heads}


STACKED = """
two heads: 5 6 2
three heads: 7 6 3
five heads: 3 10 5
one head: 2 5 1
one position: 1 6 2
"""


@asked(
    "repair-torch-layer",
    "Repair a reader of torch's weights",
    kind="repair",
    equation="attention-of-one-head",
    retired=True,
    points=2,
    difficulty=3,
    minutes=12,
    trains="packed matrices and transposition",
    broken=["packed head by head", "the output projection not transposed"],
    forbid=(forbidden.ATTENTION,),
    cases=tried(_stacked, STACKED),
    slips="""
        packed head by head
            3, n_heads, d_model -> n_heads, 3, d_model ;; transpose(1, 2, 0, 3) -> transpose(2, 1, 0, 3)
            torch stacks all queries, then all keys, then all values; (heads, 3, d_head) is the order of other libraries
        the output projection not transposed
            @ out_proj_weight.T -> @ out_proj_weight
            a linear layer computes x W^T, also at the end: transpose `out_proj_weight`
        keys and values exchanged
            query, key, value -> query, value, key
            the order is query, key, value; you took the second block for the values
        queries and keys exchanged
            query, key, value -> key, query, value
            the first block belongs to the queries, the second to the keys
        reshaped instead of transposed
            in_proj_weight.T -> in_proj_weight.reshape(d_model, -1)
            (3 d, d) becomes (d, 3 d) by transposition; a reshape puts the numbers elsewhere
        heads split by a bare reshape
                length, 3, n_heads, d_model // n_heads) -> length, 3, d_model).swapaxes(0, 1)
                ;;
                transpose(1, 2, 0, 3) -> reshape(3, n_heads, length, -1)
            reshaped to (n_heads, T, ...) at once, heads are stretches of the sequence: cut the columns, then swap the axes
        heads merged by a bare reshape
            heads.swapaxes(0, 1).reshape -> heads.reshape
            before you flatten, move the head axis back behind the positions: each row must hold the heads of one position
        divided by the root of d_model
            np.sqrt(d_model // n_heads) -> np.sqrt(d_model)
            torch divides by the root of the width of one head
        every n-th column
            length, 3, n_heads, d_model // n_heads) -> length, 3, d_model // n_heads, n_heads).swapaxes(2, 3)
            a head is a block of neighbouring columns of its role, not every n_heads-th column
        merged feature by feature
            heads.swapaxes(0, 1).reshape -> heads.transpose(1, 2, 0).reshape
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
    """,
    hints="""
        Make n_heads = 1 in your mind: which mistake disappears, and which stays?
        `np.split(x @ in_proj_weight.T, 3, axis=1)` gives query, key and value; then split each into heads.
        `.reshape(length, 3, n_heads, -1).transpose(1, 2, 0, 3)` unpacks; and the last factor is `out_proj_weight.T`.
    """,
    why="""
        (1) Torch packs role by role, `(3, n_heads, d_head)`; `(n_heads, 3, d_head)` is the order of GPT-NeoX, and with one
        head the two agree. (2) The output projection is a linear layer too, and $W_O$ is square, so no shape tells.
    """,
)
def torch_layer(x, stacked, n_heads):
    r"""What torch.nn.MultiheadAttention computes from x (T, d); stacked (4 d, d)
    holds in_proj_weight above out_proj.weight.

    The function below should give what `torch.nn.MultiheadAttention` gives, without biases or mask. It takes `x` of shape `(T, d)`,
    the weights of the module `stacked`, shape `(4 * d, d)`, and `n_heads`, which divides $d$. The first $3 d$ rows are torch's
    `in_proj_weight` ($d$ rows for the queries, then $d$ for the keys, then $d$ for the values), the last $d$ rows its
    `out_proj.weight`. Torch's linear layers compute $x W^\top$. The result has shape `(T, d)`. It is wrong in two
    places. Repair it.
    """
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    packed = (x @ in_proj_weight.T).reshape(length, 3, n_heads, d_model // n_heads)
    query, key, value = packed.transpose(1, 2, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(length, d_model) @ out_proj_weight.T


def _cache(normal, H, R, t, d, d_k, d_v):
    """A token, its cache and the weights of its layer; scores of a moderate size."""
    weights = {"w_query": normal(d, H * d_k), "w_key": normal(d, R * d_k), "w_value": normal(d, R * d_v)}
    narrow = {name: each / math.sqrt(d) for name, each in {"x_new": normal(d), **weights}.items()}
    cached = {"keys": normal(R, t, d_k) / math.sqrt(R), "values": normal(R, t, d_v) / math.sqrt(R)}
    return {"x_new": narrow.pop("x_new"), **cached, **narrow, "w_output": normal(H * d_v, d) / math.sqrt(H * d_v)}


CACHE = """
four query heads on two, five tokens in the cache: 4 2 5 7 3 11
multi-query: 3 1 7 5 2 4
multi-head: 3 3 2 11 5 7
six query heads on three, one token in the cache: 6 3 1 5 2 7
an empty cache: 4 2 0 7 3 5
"""


@asked(
    "cached-decoding-step",
    "One step with a cache",
    kind="write",
    equation="decoding-equals-full-pass",
    retired=True,
    points=4,
    difficulty=4,
    minutes=20,
    trains="decoding with grouped heads",
    forbid=(forbidden.ATTENTION,),
    cases=tried(_cache, CACHE),
    slips="""
        the token does not see itself
            repeat(keys -> repeat(keys[:, :-1] ;; repeat(values -> repeat(values[:, :-1] ;; max(axis=-1 -> max(initial=-np.inf, axis=-1
            row t of causal attention includes token t: append the new key and value first, then attend to all
        the token sees itself in an empty cache only
            repeat(keys -> repeat(keys[:, : keys.shape[1] - 1 or 1] ;; repeat(values -> repeat(values[:, : values.shape[1] - 1 or 1]
            row t of causal attention includes token t, also when there are others: append first, then attend to all
        a causal mask from the top left
            repeat(keys -> repeat(keys[:, :1] ;; repeat(values -> repeat(values[:, :1]
            the new query is the last row of the mask, not the first: it sees every key in the cache
        put in front of the cache
            [keys, new_key] -> [new_key, keys] ;; [values, new_value] -> [new_value, values]
            the new key and value go behind the old ones, at the end of the axis of positions
        key heads dealt round
                np.repeat(keys, group, axis=0) -> np.tile(keys, (group, 1, 1))
                ;;
                np.repeat(values, group, axis=0) -> np.tile(values, (group, 1, 1))
            query head h uses key head h // g, {eq}`grouped-query-attention`: repeat each key head, do not tile them
        divided by the root of d / H
            np.sqrt(d_k) -> np.sqrt(len(x_new) * d_k / w_query.shape[1])
            the width of a head need not be d / H: take the last axis of `keys`
        divided by the root of d_v
            np.sqrt(d_k) -> np.sqrt(values.shape[2])
            a score is a dot product of d_k terms, the last axis of `keys`, not of `values`
        no scale
            ` / np.sqrt(d_k)` ->
            divide the scores by the root of d_k, the last axis of `keys`
        divided by the root of d_model
            np.sqrt(d_k) -> np.sqrt(len(x_new))
            the scale is the root of d_k, the last axis of `keys`
        every n-th feature for a key head
            (n_kv_heads, 1, -1) -> (-1, n_kv_heads).T[:, None]
            head r of the new key is a block of neighbouring columns of `x_new @ w_key`, {eq}`heads-are-column-blocks`
        the input added
            return heads -> return x_new + heads
            the layer returns what attention makes; the sum with its input, the residual, stands outside of it
        every n-th feature for a query head
            (x_new @ w_query).reshape(-1, 1, d_k) -> (x_new @ w_query).reshape(d_k, -1).T[:, None]
            query head h is a block of d_k neighbouring columns of `x_new @ w_query`, {eq}`heads-are-column-blocks`
        merged feature by feature
            heads.ravel() -> heads.swapaxes(0, 2).ravel()
            the heads stand side by side, each as a block: yours alternate, one feature of each head after the other
    """,
    hints="""
        Project the one new token three times and cut each result into heads; which array tells how many key heads there are?
        `np.concatenate([keys, new_key[:, None]], axis=1)`, then attention of one query per head over all t + 1 keys.
        `group = n_heads // len(keys)`; repeat keys and values `group` times along axis 0; flatten the heads, times `w_output`.
    """,
    why="""
        No mask is needed: everything in the cache is past or present. For one token, `(H, 1, d_v)` flattened is already
        the concatenation of heads. Only the two small projections of the new token are added to what is kept.
    """,
)
def my_step(x_new, keys, values, w_query, w_key, w_value, w_output):
    r"""One token with a cache: (d,), (R, t, d_k), (R, t, d_v), four weights -> (d,),
    (R, t + 1, d_k), (R, t + 1, d_v).

    Write one step of decoding with grouped heads: `my_step(x_new, keys, values, w_query, w_key, w_value, w_output)`.

    - `x_new` `(d,)` is the new token; the cache holds `keys` `(R, t, d_k)` and `values` `(R, t, d_v)` of the $t$ tokens before
      it; $t$ may be 0 {case}`an empty cache`.
    - `w_query` is `(d, H * d_k)`, `w_key` `(d, R * d_k)`, `w_value` `(d, R * d_v)`, `w_output` `(H * d_v, d)`; $R$ divides
      $H$, and key heads are shared as in {eq}`grouped-query-attention`, with $g = H / R$.

    Return the tuple of the output `(d,)`, all keys `(R, t + 1, d_k)` and all values `(R, t + 1, d_v)`, new ones last, as new
    arrays. As in a causal pass, the token sees itself and all before it; the scale is $1/\sqrt{d_k}$.
    """
    n_kv_heads, _, d_k = keys.shape
    new_key, new_value = ((x_new @ w).reshape(n_kv_heads, 1, -1) for w in (w_key, w_value))
    keys, values = np.concatenate([keys, new_key], axis=1), np.concatenate([values, new_value], axis=1)

    query = (x_new @ w_query).reshape(-1, 1, d_k)  # (H, 1, d_k)
    group = len(query) // n_kv_heads
    scores = query @ np.repeat(keys, group, axis=0).swapaxes(1, 2) / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ np.repeat(values, group, axis=0)
    return heads.ravel() @ w_output, keys, values
