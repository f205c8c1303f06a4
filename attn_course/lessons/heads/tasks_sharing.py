"""Tasks on shared heads, the cache and packed weights; tasks.py lists them."""

import math
from functools import partial
from typing import Any

import numpy as np

from attn_course.reference import attention, merge_heads, softmax, split_heads
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _flops_points(rng: np.random.Generator) -> list[Case]:
    return [Case("16 points", **{name: rng.uniform(1.0, 5.0, size=16) for name in ("d", "h", "r", "w", "t")})]


STEP_FLOPS = Task(
    id="decoding-step-flops",
    title="What one step of decoding costs",
    entry="my_step_flops",
    kind="derive",
    equation="multi-head-flops",
    points=2,
    difficulty=2,
    minutes=10,
    trains="counting a layer with shared heads and a cache",
    symbols=("d", "h", "r", "w", "t"),
    cases=_flops_points,
    answer=lambda d, h, r, w, t: 4 * d * h * w + 4 * d * r * w + 4 * t * h * w,
    wrong=[
        Wrong(
            "scores counted by key heads",
            lambda d, h, r, w, t: 4 * d * h * w + 4 * d * r * w + 4 * t * r * w,
            "sharing keys saves memory, not scores: every one of the h query heads still has t scores and t weights",
        ),
        Wrong(
            "the whole prefix projected again",
            lambda d, h, r, w, t: 4 * d * h * w + 4 * t * d * r * w + 4 * t * h * w,
            "the cache holds the old keys and values: only the new token's are projected",
        ),
        Wrong(
            "the new token counted twice",
            lambda d, h, r, w, t: 4 * d * h * w + 4 * d * r * w + 4 * (t + 1) * h * w,
            "the t keys already contain that of the new token",
        ),
        Wrong(
            "heads of width d / h",
            lambda d, h, r, w, t: 4 * d * d + 4 * d * r * w + 4 * t * d,
            "nothing says that h w = d: the heads have width w",
        ),
        Wrong(
            "no output projection",
            lambda d, h, r, w, t: 2 * d * h * w + 4 * d * r * w + 4 * t * h * w,
            "the concatenated heads, h w numbers, are still multiplied by W_O",
        ),
        Wrong(
            "keys without values",
            lambda d, h, r, w, t: 4 * d * h * w + 2 * d * r * w + 4 * t * h * w,
            "there are two shared projections, one for the key and one for the value",
        ),
        Wrong(
            "scores without output",
            lambda d, h, r, w, t: 4 * d * h * w + 4 * d * r * w + 2 * t * h * w,
            "each head makes t scores and then adds up t values: two products of the same size",
        ),
        Wrong(
            "a multiply-add counted once",
            lambda d, h, r, w, t: 2 * d * h * w + 2 * d * r * w + 2 * t * h * w,
            "a multiplication and its addition count 2",
        ),
        Wrong(
            "no sharing",
            lambda d, h, r, w, t: 8 * d * h * w + 4 * t * h * w,
            "only r heads of keys and values are projected, not h",
        ),
    ],
    hints=[
        "List the products of one step: which matrices does the new token meet, and what does each head do with the cache?",
        "W_Q and W_O have d h w entries each, W_K and W_V have d r w each, and each entry costs 2.",
        "Each of the h heads: t scores of w terms, and w outputs of t terms. Add 2 for each multiply-add.",
    ],
)


def _capacity(L: int, H: int, G: int, d_h: int, M: int, *, kept: int = 2, size: float = 2.0, gibi: float = 2.0**30) -> float:
    """How many tokens M GiB hold, of which each keeps keys and values of G heads in L layers."""
    return M * gibi // (kept * L * G * d_h * size)


CACHE = Task(
    id="cache-capacity-in-tokens",
    title="How long may the text be?",
    entry="my_tokens",
    kind="predict",
    equation="kv-cache-bytes",
    points=1,
    difficulty=2,
    minutes=5,
    trains="bytes of a cache",
    tolerance=1e-3,
    variants=every(L=(28, 32, 40), H=(24,), G=(6, 8), d_h=(96, 80, 112), M=(3, 5)),
    answer=_capacity,
    wrong=[
        Wrong(
            "counted with the query heads",
            lambda H, G, **sizes: _capacity(H=H, G=H, **sizes),
            "only the key heads keep something",
        ),
        Wrong("keys only", partial(_capacity, kept=1), "keys and values are both kept, and a number has 2 bytes"),
        Wrong("one layer", lambda L, **sizes: _capacity(L=1, **sizes), "each of the layers has a cache of its own"),
        Wrong("32-bit numbers", partial(_capacity, size=4), "a 16-bit number has 2 bytes, not 4"),
        Wrong("bits taken for bytes", partial(_capacity, size=16), "memory is given in bytes: 16 bits are 2 of them"),
        Wrong("a gibibyte as a billion", partial(_capacity, gibi=1e9), "1 GiB is 2**30 bytes"),
    ],
    hints=[
        "How many numbers does one layer keep for one token?",
        "Key and value, key heads, numbers of each, bytes of a number, layers.",
        "One token takes 2 * L * G * d_h * 2 bytes; divide M * 2**30 by it.",
    ],
)


def _groups_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
) -> np.ndarray:
    """Grouped-query attention: (H, q_len, d_k), (R, kv_len, d_k), (R, kv_len, d_v) ->
    (H, q_len, d_v).
    """
    n_heads, _, d_k = query.shape
    group = n_heads // key.shape[0]
    keys, values = np.tile(key, (group, 1, 1)), np.tile(value, (group, 1, 1))
    scores = query @ keys.swapaxes(1, 2) / np.sqrt(n_heads * d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ values


def _grouped(query: np.ndarray, key: np.ndarray, value: np.ndarray, serve_key: str, serve_value: str, divisor: float) -> np.ndarray:
    group = len(query) // len(key)

    def heads(x: np.ndarray, how: str) -> np.ndarray:
        chosen = {
            "repeat": np.repeat(x, group, axis=0),
            "tile": np.tile(x, (group, 1, 1)),
            "first": x[:1],
            "mean": x.mean(axis=0, keepdims=True),
        }
        return chosen[how]

    return softmax(query @ heads(key, serve_key).swapaxes(1, 2) / divisor) @ heads(value, serve_value)


def _groups_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_heads, n_kv_heads, q_len, kv_len, d_k, d_v in (
        ("six query heads on two", 6, 2, 5, 7, 3, 11),
        ("six query heads on three", 6, 3, 7, 5, 2, 4),
        ("five query heads on one", 5, 1, 3, 2, 7, 11),
        ("three query heads on three", 3, 3, 2, 7, 5, 4),
        ("one query", 4, 2, 1, 5, 3, 7),
    ):
        shapes = {"query": (n_heads, q_len, d_k), "key": (n_kv_heads, kv_len, d_k), "value": (n_kv_heads, kv_len, d_v)}
        cases.append(Case(name, **{key: rng.normal(size=shape) for key, shape in shapes.items()}))
    return cases


GROUPS = Task(
    id="repair-grouped-heads",
    title="Repair grouped heads",
    entry="grouped_attention",
    kind="repair",
    equation="grouped-query-attention",
    points=2,
    difficulty=3,
    minutes=10,
    trains="which query head uses which key head",
    answer=lambda query, key, value: attention(query, key, value, enable_gqa=True),
    broken=_groups_broken,
    forbid=(forbidden.ATTENTION,),
    cases=_groups_cases,
    wrong=[
        Wrong(
            "key heads dealt round",
            lambda query, key, value: _grouped(query, key, value, "tile", "tile", math.sqrt(query.shape[2])),
            "query head h uses key head h // g, {eq}`grouped-query-attention`: neighbours share. `tile` gives it h mod R",
        ),
        Wrong(
            "scale of the whole layer",
            lambda query, key, value: _grouped(query, key, value, "repeat", "repeat", math.sqrt(query.shape[0] * query.shape[2])),
            "the groups are right; the scale belongs to one head, the root of its d_k features",
        ),
        Wrong(
            "keys repeated, values dealt round",
            lambda query, key, value: _grouped(query, key, value, "repeat", "tile", math.sqrt(query.shape[2])),
            "the keys are right, but the values of a head must come from the same key head as its keys",
        ),
        Wrong(
            "keys dealt round, values repeated",
            lambda query, key, value: _grouped(query, key, value, "tile", "repeat", math.sqrt(query.shape[2])),
            "the values are right, but the keys of a head must come from the same key head as its values",
        ),
        Wrong(
            "all on the first key head",
            lambda query, key, value: _grouped(query, key, value, "first", "first", math.sqrt(query.shape[2])),
            "each group has a key head of its own; you used the first for all",
        ),
        Wrong(
            "key heads averaged",
            lambda query, key, value: _grouped(query, key, value, "mean", "mean", math.sqrt(query.shape[2])),
            "nothing is averaged here: pooling converts trained weights, while this layer keeps R different key heads",
        ),
    ],
    hints=[
        "Write down for 6 query heads and 2 key heads who uses whom, by {eq}`grouped-query-attention` and by the code.",
        "`np.repeat(key, group, axis=0)` gives 0 0 0 1 1 1; and how many terms has one score?",
        "Repeat both key and value, and divide by `np.sqrt(d_k)`.",
    ],
)


def _packed_broken(x: np.ndarray, stacked: np.ndarray, n_heads: int) -> np.ndarray:
    """What torch.nn.MultiheadAttention computes from x (T, d); stacked (4 d, d) holds
    in_proj_weight above out_proj.weight.
    """
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    packed = (x @ in_proj_weight.T).reshape(length, n_heads, 3, d_model // n_heads)
    query, key, value = packed.transpose(2, 1, 0, 3)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(d_model // n_heads)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
    return heads.swapaxes(0, 1).reshape(length, d_model) @ out_proj_weight


def _packed(
    x: np.ndarray,
    stacked: np.ndarray,
    n_heads: int,
    *,
    order: tuple[int, int, int] = (0, 1, 2),
    interleaved: bool = False,
    turned: bool = False,
    reshaped: bool = False,
    at_once: str = "",
    divisor: float | None = None,
) -> np.ndarray:
    """Torch's layer with one step done differently; `at_once` is split, or merged, by a bare reshape."""
    length, d_model = x.shape
    in_proj_weight, out_proj_weight = stacked[: 3 * d_model], stacked[3 * d_model :]
    projected = x @ (in_proj_weight.reshape(d_model, -1) if reshaped else in_proj_weight.T)
    if interleaved:
        parts = list(projected.reshape(length, n_heads, 3, -1).transpose(2, 1, 0, 3))
    else:
        parts = [
            part.reshape(n_heads, length, -1) if at_once == "split" else split_heads(part, n_heads)
            for part in np.split(projected, 3, axis=1)
        ]
    query, key, value = (parts[place] for place in order)
    weights = softmax(query @ key.swapaxes(1, 2) / (divisor or math.sqrt(query.shape[2])))
    merged = (weights @ value).reshape(length, -1) if at_once == "merge" else merge_heads(weights @ value)
    return merged @ (out_proj_weight if turned else out_proj_weight.T)


def _packed_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, length, d_model, n_heads in (
        ("two heads", 5, 6, 2),
        ("three heads", 7, 6, 3),
        ("five heads", 3, 10, 5),
        ("one head", 2, 5, 1),
        ("one position", 1, 6, 2),
    ):
        cases.append(
            Case(
                name,
                x=rng.normal(size=(length, d_model)),
                stacked=rng.normal(size=(4 * d_model, d_model)) / math.sqrt(d_model),
                n_heads=n_heads,
            )
        )
    return cases


PACKED = Task(
    id="repair-torch-layer",
    title="Repair a reader of torch's weights",
    entry="torch_layer",
    kind="repair",
    equation="attention-of-one-head",
    points=2,
    difficulty=3,
    minutes=12,
    trains="packed matrices and transposition",
    answer=_packed,
    broken=_packed_broken,
    forbid=(forbidden.ATTENTION,),
    cases=_packed_cases,
    wrong=[
        Wrong(
            "packed head by head",
            lambda *inputs: _packed(*inputs, interleaved=True),
            "torch stacks all queries, then all keys, then all values; (heads, 3, d_head) is the order of other libraries",
        ),
        Wrong(
            "the output projection not transposed",
            lambda *inputs: _packed(*inputs, turned=True),
            "a linear layer computes x W^T, also at the end: transpose `out_proj_weight`",
        ),
        Wrong(
            "keys and values exchanged",
            lambda *inputs: _packed(*inputs, order=(0, 2, 1)),
            "the order is query, key, value; you took the second block for the values",
        ),
        Wrong(
            "queries and keys exchanged",
            lambda *inputs: _packed(*inputs, order=(1, 0, 2)),
            "the first block belongs to the queries, the second to the keys",
        ),
        Wrong(
            "reshaped instead of transposed",
            lambda *inputs: _packed(*inputs, reshaped=True),
            "(3 d, d) becomes (d, 3 d) by transposition; a reshape puts the numbers elsewhere",
        ),
        Wrong(
            "heads split by a bare reshape",
            lambda *inputs: _packed(*inputs, at_once="split"),
            "reshaped to (n_heads, T, ...) at once, heads are stretches of the sequence: cut the columns, then swap the axes",
        ),
        Wrong(
            "heads merged by a bare reshape",
            lambda *inputs: _packed(*inputs, at_once="merge"),
            "before you flatten, move the head axis back behind the positions: each row must hold the heads of one position",
        ),
        Wrong(
            "divided by the root of d_model",
            lambda x, *rest: _packed(x, *rest, divisor=math.sqrt(x.shape[1])),
            "torch divides by the root of the width of one head",
        ),
    ],
    hints=[
        "Make n_heads = 1 in your mind: which mistake disappears, and which stays?",
        "`np.split(x @ in_proj_weight.T, 3, axis=1)` gives query, key and value; then split each into heads.",
        "`.reshape(length, 3, n_heads, -1).transpose(1, 2, 0, 3)` unpacks; and the last factor is `out_proj_weight.T`.",
    ],
)

Step = tuple[np.ndarray, np.ndarray, np.ndarray]


def _step(
    x_new: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    w_output: np.ndarray,
    *,
    sees: str = "all",
    front: bool = False,
    serve: str = "repeat",
    divisor: float | None = None,
    turned: bool = False,
) -> Step:
    """One step of decoding, with one thing done differently."""
    n_kv_heads, past, d_k = keys.shape
    key, value = (x_new @ w_key), (x_new @ w_value)
    new_key, new_value = ((v.reshape(-1, n_kv_heads).T if turned else v.reshape(n_kv_heads, -1))[:, None] for v in (key, value))
    pairs = ((keys, new_key), (values, new_value))
    all_keys, all_values = (np.concatenate([new, old] if front else [old, new], axis=1) for old, new in pairs)
    query = (x_new @ w_query).reshape(-1, 1, d_k)
    group = len(query) // n_kv_heads
    seen = {"all": slice(None), "past": slice(0, past), "past, if any": slice(0, past or 1), "first": slice(0, 1)}[sees]
    head_keys, head_values = (
        (np.repeat(x, group, axis=0) if serve == "repeat" else np.tile(x, (group, 1, 1)))[:, seen] for x in (all_keys, all_values)
    )
    weights = softmax(query @ head_keys.swapaxes(1, 2) / (divisor or math.sqrt(d_k)))
    return (weights @ head_values).ravel() @ w_output, all_keys, all_values


def _step_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_heads, n_kv_heads, past, d_model, d_k, d_v in (
        ("four query heads on two, five tokens in the cache", 4, 2, 5, 7, 3, 11),
        ("multi-query", 3, 1, 7, 5, 2, 4),
        ("multi-head", 3, 3, 2, 11, 5, 7),
        ("six query heads on three, one token in the cache", 6, 3, 1, 5, 2, 7),
        ("an empty cache", 4, 2, 0, 7, 3, 5),
    ):
        shapes: dict[str, Any] = {
            "x_new": (d_model,),
            "keys": (n_kv_heads, past, d_k),
            "values": (n_kv_heads, past, d_v),
            "w_query": (d_model, n_heads * d_k),
            "w_key": (d_model, n_kv_heads * d_k),
            "w_value": (d_model, n_kv_heads * d_v),
            "w_output": (n_heads * d_v, d_model),
        }
        cases.append(Case(name, **{key: rng.normal(size=shape) / math.sqrt(shape[0]) for key, shape in shapes.items()}))
    return cases


STEP = Task(
    id="cached-decoding-step",
    title="One step with a cache",
    entry="my_step",
    kind="write",
    equation="decoding-equals-full-pass",
    points=4,
    difficulty=4,
    minutes=20,
    trains="decoding with grouped heads",
    answer=_step,
    forbid=(forbidden.ATTENTION,),
    cases=_step_cases,
    wrong=[
        Wrong(
            "the token does not see itself",
            lambda *inputs: _step(*inputs, sees="past"),
            "row t of causal attention includes token t: append the new key and value first, then attend to all",
        ),
        Wrong(
            "the token sees itself in an empty cache only",
            lambda *inputs: _step(*inputs, sees="past, if any"),
            "row t of causal attention includes token t, also when there are others: append first, then attend to all",
        ),
        Wrong(
            "a causal mask from the top left",
            lambda *inputs: _step(*inputs, sees="first"),
            "the new query is the last row of the mask, not the first: it sees every key in the cache",
        ),
        Wrong(
            "put in front of the cache",
            lambda *inputs: _step(*inputs, front=True),
            "the new key and value go behind the old ones, at the end of the axis of positions",
        ),
        Wrong(
            "key heads dealt round",
            lambda *inputs: _step(*inputs, serve="tile"),
            "query head h uses key head h // g, {eq}`grouped-query-attention`: repeat each key head, do not tile them",
        ),
        Wrong(
            "divided by the root of d / H",
            lambda x, keys, values, w_q, *rest: _step(
                x, keys, values, w_q, *rest, divisor=math.sqrt(len(x) * keys.shape[2] / w_q.shape[1])
            ),
            "the width of a head need not be d / H: take the last axis of `keys`",
        ),
        Wrong(
            "divided by the root of d_v",
            lambda x_new, keys, values, *rest: _step(x_new, keys, values, *rest, divisor=math.sqrt(values.shape[2])),
            "a score is a dot product of d_k terms, the last axis of `keys`, not of `values`",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _step(*inputs, divisor=1.0),
            "divide the scores by the root of d_k, the last axis of `keys`",
        ),
        Wrong(
            "divided by the root of d_model",
            lambda x_new, *rest: _step(x_new, *rest, divisor=math.sqrt(len(x_new))),
            "the scale is the root of d_k, the last axis of `keys`",
        ),
        Wrong(
            "every n-th feature for a key head",
            lambda *inputs: _step(*inputs, turned=True),
            "head r of the new key is a block of neighbouring columns of `x_new @ w_key`, {eq}`heads-are-column-blocks`",
        ),
    ],
    hints=[
        "Project the one new token three times and cut each result into heads; which array tells how many key heads there are?",
        "`np.concatenate([keys, new_key[:, None]], axis=1)`, then attention of one query per head over all t + 1 keys.",
        "`group = n_heads // len(keys)`; repeat keys and values `group` times along axis 0; flatten the heads, times `w_output`.",
    ],
)
