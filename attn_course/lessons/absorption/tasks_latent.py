"""Tasks on latent attention: its cache, its cost, rotary positions, and one step of decoding; tasks.py lists them."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from attn_course.reference import softmax
from attn_course.tasks.core import Case, Task, Wrong, every

# ---- 10.6 bytes


def _cache(
    L: int,
    H: int,
    d: int,
    d_c: int,
    d_q: int,
    d_r: int,
    *,
    kept: Callable[..., float] = lambda d_c, d_r, H, d_q: d_c + d_r,
    size: float = 2e-3,
) -> tuple[float, float]:
    """The kB that a token adds in L layers if these numbers are kept of it, and as how many groups."""
    count = kept(d_c=d_c, d_r=d_r, H=H, d_q=d_q)
    return size * L * count, count / (2 * d)


BYTES = Task(
    id="latent-cache-size",
    title="The cache of a latent layer",
    entry="my_cache",
    kind="predict",
    equation="latent-cache-bytes",
    points=1,
    difficulty=2,
    minutes=5,
    trains="what is cached, and in groups of what size",
    tolerance=1e-3,
    variants=every(L=(48, 40, 60), H=(40,), d=(80, 96), d_c=(320, 384), d_q=(960,), d_r=(32, 64)),
    answer=_cache,
    wrong=[
        Wrong(
            "a latent vector for keys and one for values",
            partial(_cache, kept=lambda d_c, d_r, H, d_q: 2 * d_c + d_r),
            "keys and values are made from the same latent vector: it is kept once",
        ),
        Wrong(
            "no rotary key",
            partial(_cache, kept=lambda d_c, d_r, H, d_q: d_c),
            "the rotary key is no function of the latent vector, so it is kept as well",
        ),
        Wrong(
            "a rotary key for each head",
            partial(_cache, kept=lambda d_c, d_r, H, d_q: d_c + H * d_r),
            "the rotary queries differ from head to head; the rotary key is shared by all of them",
        ),
        Wrong(
            "the latent vector of the query kept",
            partial(_cache, kept=lambda d_c, d_r, H, d_q: d_c + d_r + d_q),
            "old queries are never needed again: their latent vector is not kept",
        ),
        Wrong(
            "one layer",
            lambda L, **sizes: (_cache(L, **sizes)[0] / L, _cache(L, **sizes)[1]),
            "the ratio is right; but each of the layers has a cache of its own",
        ),
        Wrong("1024 bytes", partial(_cache, size=2 / 1024), "the ratio is right; but a kB has 1000 bytes here (1024 are a KiB)"),
        Wrong("32-bit numbers", partial(_cache, size=4e-3), "the ratio is right; but a 16-bit number has 2 bytes"),
        Wrong(
            "a group that keeps keys only",
            lambda **sizes: (_cache(**sizes)[0], 2 * _cache(**sizes)[1]),
            "the bytes are right; but a key head of grouped attention keeps a key and a value, 2 * d numbers",
        ),
        Wrong(
            "multi-head attention",
            lambda d, **sizes: _cache(d=d, kept=lambda d_c, d_r, H, d_q: 2 * H * d, **sizes),
            "that is what keeping the keys and values of all heads would cost",
        ),
    ],
    hints=[
        "Which vectors of a past token does a later query need?",
        "One latent vector and one rotary key, d_c + d_r numbers, in each layer.",
        "(L * (d_c + d_r) * 2 / 1000, (d_c + d_r) / (2 * d))",
    ],
)

# ---- 10.7 joint compression


def _halves(both: np.ndarray, d_k: int) -> tuple[np.ndarray, np.ndarray]:
    return both[:, :d_k], both[:, d_k:]


def _nearest(matrix: np.ndarray, rank: int) -> np.ndarray:
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left[:, :rank] * singular[:rank] @ right[:rank])


def _joint(w_key: np.ndarray, w_value: np.ndarray, d_latent: int) -> tuple[np.ndarray, np.ndarray]:
    return _halves(_nearest(np.hstack([w_key, w_value]), d_latent), w_key.shape[1])


def _without_singular_values(w_key: np.ndarray, w_value: np.ndarray, d_latent: int) -> tuple[np.ndarray, np.ndarray]:
    left, _, right = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    return _halves(left[:, :d_latent] @ right[:d_latent], w_key.shape[1])


def _smallest(w_key: np.ndarray, w_value: np.ndarray, d_latent: int) -> tuple[np.ndarray, np.ndarray]:
    left, singular, right = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    return _halves(left[:, -d_latent:] * singular[-d_latent:] @ right[-d_latent:], w_key.shape[1])


def _seen_by_keys(w_key: np.ndarray, w_value: np.ndarray, d_latent: int) -> tuple[np.ndarray, np.ndarray]:
    down = np.linalg.svd(w_key, full_matrices=False)[0][:, :d_latent]
    return down @ down.T @ w_key, down @ down.T @ w_value


def _first_features(w_key: np.ndarray, w_value: np.ndarray, d_latent: int) -> tuple[np.ndarray, np.ndarray]:
    kept = np.arange(len(w_key))[:, None] < d_latent
    return w_key * kept, w_value * kept


def _joint_cases(rng: np.random.Generator) -> list[Case]:
    sizes = (("rank 2", 7, 5, 3, 2), ("rank 1", 5, 3, 7, 1), ("rank 3", 11, 4, 5, 3), ("one column of keys", 5, 1, 7, 2))
    return [
        Case(name, w_key=rng.normal(size=(d, d_k)), w_value=rng.normal(size=(d, d_v)), d_latent=rank) for name, d, d_k, d_v, rank in sizes
    ]


JOINT = Task(
    id="joint-key-value-compression",
    title="Compress keys and values together",
    entry="my_joint",
    kind="write",
    equation="joint-key-value-rank",
    points=2,
    difficulty=3,
    minutes=12,
    trains="one latent space for both",
    answer=_joint,
    cases=_joint_cases,
    wrong=[
        Wrong(
            "each compressed for itself",
            lambda w_key, w_value, d_latent: (_nearest(w_key, d_latent), _nearest(w_value, d_latent)),
            "two separate latent vectors would have to be kept; put both matrices side by side before you compress",
        ),
        Wrong(
            "the first features of the token",
            _first_features,
            "you kept the first features of the token; the latent features are mixtures, the first singular vectors",
        ),
        Wrong(
            "the space of the keys",
            _seen_by_keys,
            "the directions that matter to the keys alone were kept; the values have a say too: compress [W_K W_V]",
        ),
        Wrong("singular values forgotten", _without_singular_values, "the product lacks the singular values: left * values @ right"),
        Wrong(
            "the smallest singular values", _smallest, "the singular values come in falling order: keep the first d_latent, not the last"
        ),
        Wrong(
            "what is lost",
            lambda w_key, w_value, d_latent: tuple(
                whole - part for whole, part in zip((w_key, w_value), _joint(w_key, w_value, d_latent), strict=True)
            ),
            "you returned what the compression throws away",
        ),
        Wrong(
            "the order exchanged",
            lambda *inputs: _joint(*inputs)[::-1],
            "both are right, but return the keys' matrix first",
        ),
    ],
    hints=[
        "Both matrices read the same token: which single matrix makes key and value side by side?",
        "The nearest matrix of rank r keeps the r largest singular values (Eckart and Young): `np.linalg.svd(..., full_matrices=False)`.",
        "left[:, :d_latent] * singular[:d_latent] @ right[:d_latent], then cut the columns",
    ],
)

# ---- 10.8 break-even


def _break_even_points(rng: np.random.Generator) -> list[Case]:
    wide = {name: rng.uniform(5.0, 9.0, size=16) for name in ("t", "c")}
    return [Case("16 points", **wide, **{name: rng.uniform(1.0, 2.0, size=16) for name in ("k", "v")})]


BREAK_EVEN = Task(
    id="absorption-break-even",
    title="From how many new tokens on is absorbing a loss?",
    entry="my_new_tokens",
    kind="derive",
    equation="latent-decoding-flops",
    points=3,
    difficulty=4,
    minutes=15,
    trains="decoding against prefill",
    symbols=("t", "c", "k", "v"),
    cases=_break_even_points,
    answer=lambda t, c, k, v: t * c * (k + v) / (c * (k + v) + t * (2 * c - k - v)),
    wrong=[
        Wrong(
            "the limit of long texts",
            lambda t, c, k, v: c * (k + v) / (2 * c - k - v),
            "that is the limit for large t; for finite t the projections of the new tokens count as well",
        ),
        Wrong(
            "naive attention forgotten",
            lambda t, c, k, v: t * (k + v) / (k + v + 2 * t),
            "the naive way attends too, after rebuilding: n t pairs of k + v products",
        ),
        Wrong(
            "absorbed values for nothing",
            lambda t, c, k, v: t * c * (k + v) / (c * (k + v) + t * (c - k - v)),
            "in the latent space, scores and averages both have c terms: 2 c for each pair",
        ),
        Wrong(
            "absorbed scores of width k",
            lambda t, c, k, v: t * 1.0,
            "with vectors of k and v features the absorbed attention would never lose; its vectors have c features",
        ),
        Wrong(
            "keys without values",
            lambda t, c, k, v: t * c * k / (c * k + t * (c - k)),
            "values are rebuilt and averaged as keys are rebuilt and compared: count both",
        ),
        Wrong(
            "upside down",
            lambda t, c, k, v: (c * (k + v) + t * (2 * c - k - v)) / (t * c * (k + v)),
            "your fraction is upside down",
        ),
        Wrong(
            "the sign of the scores",
            lambda t, c, k, v: t * c * (k + v) / (c * (k + v) + t * (2 * c + k + v)),
            "the naive pairs stand on the other side of the equation: they change their sign when you collect n",
        ),
    ],
    hints=[
        "Write both counts with n new tokens; drop what they share: 2 and the number of heads.",
        "naive: t c (k + v) + n t (k + v). Absorbed: n c (k + v) + 2 n t c.",
        "Put the terms with n on one side: n (c (k + v) + 2 t c - t (k + v)) = ...",
    ],
)

# ---- 10.9 decoupled scores


def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """RoPE: turn the pairs (i, i + d / 2) of x (len, d), d even, by positions (len,)."""
    half = x.shape[1] // 2
    angle = positions[:, None] * 10_000.0 ** (-np.arange(half) / half)
    first, second = x[:, :half], x[:, half:]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.hstack([first * cos - second * sin, first * sin + second * cos])


def _decoupled_broken(
    query: np.ndarray,
    query_rope: np.ndarray,
    latent: np.ndarray,
    key_rope: np.ndarray,
    w_key_up: np.ndarray,
) -> np.ndarray:
    """Scores (n, t) of the last n of t tokens, one head, with decoupled positions."""
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    absorbed = query @ w_key_up.T
    content = rotate(absorbed, here) @ rotate(latent, there).T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(absorbed.shape[1] + query_rope.shape[1])


def _decoupled(
    query: np.ndarray,
    query_rope: np.ndarray,
    latent: np.ndarray,
    key_rope: np.ndarray,
    w_key_up: np.ndarray,
    *,
    content_turns: bool = False,
    key_turns: bool = True,
    turns: bool = True,
    first: int | None = None,
    width: str = "head",
) -> np.ndarray:
    """Decoupled scores with one step done differently."""
    here = np.arange(len(query)) + (len(latent) - len(query) if first is None else first)
    there = np.arange(len(latent))
    absorbed = query @ w_key_up.T
    content = rotate(absorbed, here) @ rotate(latent, there).T if content_turns else absorbed @ latent.T
    asking = rotate(query_rope, here) if turns else query_rope
    position = asking @ (rotate(key_rope, there) if turns and key_turns else key_rope).T
    d_head, d_rope, d_latent = query.shape[1], query_rope.shape[1], latent.shape[1]
    divisor = {"head": d_head + d_rope, "latent": d_latent + d_rope, "content": d_head, "none": 1}[width]
    return (content + position) / math.sqrt(divisor)


def _decoupled_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, new, length, d_head, d_rope, d_latent in (
        ("some new tokens", 3, 7, 5, 4, 6),
        ("one new token", 1, 5, 3, 2, 8),
        ("all new", 7, 7, 11, 6, 4),
    ):
        shapes = {
            "query": (new, d_head),
            "query_rope": (new, d_rope),
            "latent": (length, d_latent),
            "key_rope": (length, d_rope),
            "w_key_up": (d_latent, d_head),
        }
        cases.append(Case(name, **{key: rng.normal(size=shape) for key, shape in shapes.items()}))
    return cases


DECOUPLED = Task(
    id="repair-decoupled-scores",
    title="Repair the decoupled scores",
    entry="decoupled_scores",
    kind="repair",
    equation="decoupled-rope-score",
    points=3,
    difficulty=3,
    minutes=12,
    trains="what RoPE may touch when keys are absorbed",
    answer=_decoupled,
    broken=_decoupled_broken,
    cases=_decoupled_cases,
    given=(rotate,),
    wrong=[
        Wrong(
            "the content rotated too",
            lambda *inputs: _decoupled(*inputs, content_turns=True),
            "the scale is right; but RoPE does not pass through `w_key_up`, {eq}`rope-blocks-absorption`: the content part has no "
            "positions at all",
        ),
        Wrong(
            "the scale of the latent space",
            lambda *inputs: _decoupled(*inputs, width="latent"),
            "the rotation is right; absorbing changes how a score is computed, not its size: the root of d_head + d_rope",
        ),
        Wrong(
            "the scale of the content",
            lambda *inputs: _decoupled(*inputs, width="content"),
            "a score has d_head + d_rope terms: the rotary part counts in the scale",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _decoupled(*inputs, width="none"),
            "the content is right; the scores still need the scale, the root of d_head + d_rope",
        ),
        Wrong(
            "new tokens at the beginning",
            lambda *inputs: _decoupled(*inputs, first=0),
            "the queries are the last tokens of the text: the first of them stands at t - n, as the code had it",
        ),
        Wrong(
            "the new tokens n positions too far",
            lambda *inputs: _decoupled(*inputs, first=len(inputs[2])),
            "the latent vectors hold the new tokens too: t counts them, and the first of them stands at t - n, not at t",
        ),
        Wrong(
            "the rotary keys not rotated",
            lambda *inputs: _decoupled(*inputs, key_turns=False),
            "the distance appears when both are rotated, query and key",
        ),
        Wrong(
            "no rotation at all",
            lambda *inputs: _decoupled(*inputs, turns=False),
            "without any rotation the scores know no positions; the rotary parts keep theirs",
        ),
    ],
    hints=[
        "What would the same score be with the keys written out, [c U, k^R]? Which of its parts is rotated there?",
        "Content: `absorbed @ latent.T`, without positions. And how many terms has a score before absorbing?",
        "Divide by `np.sqrt(query.shape[1] + query_rope.shape[1])`.",
    ],
)

# ---- 10.10 one step

Step = tuple[np.ndarray, np.ndarray, np.ndarray]


def _step(
    query: np.ndarray,
    query_rope: np.ndarray,
    latent: np.ndarray,
    key_rope: np.ndarray,
    w_key_up: np.ndarray,
    w_value_up: np.ndarray,
    w_output: np.ndarray,
    *,
    width: str = "head",
    rotary: bool = True,
    dealt: str = "",
    at_once: bool = False,
    axis: int = 1,
    mean: bool = False,
) -> Step:
    """One absorbed step of decoding with one thing done differently."""
    n_heads, d_head = query.shape
    d_latent, d_rope = latent.shape[1], query_rope.shape[1]
    keys_up, values_up = (
        w.reshape(d_latent, -1, n_heads).transpose(2, 0, 1) if name == dealt else w.reshape(d_latent, n_heads, -1).transpose(1, 0, 2)
        for name, w in (("keys", w_key_up), ("values", w_value_up))
    )
    if at_once:
        keys_up, values_up = (w.reshape(n_heads, d_latent, -1) for w in (w_key_up, w_value_up))
    absorbed = np.einsum("hk,hck->hc", query, keys_up)
    scores = absorbed @ latent.T + (query_rope @ key_rope.T if rotary else 0.0)
    divisor = {"head": d_head + d_rope, "latent": d_latent + d_rope, "content": d_head, "none": 1}[width]
    averages = softmax(scores / math.sqrt(divisor), axis=axis) @ latent
    heads = np.einsum("hc,hcv->hv", averages, values_up)
    output = heads.ravel() @ w_output
    return absorbed, averages, output / n_heads if mean else output


def _step_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, n_heads, length, d_head, d_rope, d_latent, d_v, d_model in (
        ("two heads", 2, 5, 3, 4, 7, 11, 13),
        ("three heads, one token", 3, 1, 5, 2, 4, 7, 11),
        ("one head", 1, 7, 2, 6, 5, 3, 4),
        ("five heads", 5, 3, 4, 2, 6, 3, 7),
        ("values as wide as heads", 2, 5, 3, 4, 7, 3, 11),
    ):
        shapes = {
            "query": (n_heads, d_head),
            "query_rope": (n_heads, d_rope),
            "latent": (length, d_latent),
            "key_rope": (length, d_rope),
            "w_key_up": (d_latent, n_heads * d_head),
            "w_value_up": (d_latent, n_heads * d_v),
            "w_output": (n_heads * d_v, d_model),
        }
        cases.append(Case(name, **{key: rng.normal(size=shape) / (2.0 if key.startswith("w") else 1.0) for key, shape in shapes.items()}))
    return cases


STEP = Task(
    id="latent-decoding-step",
    title="One step with latent vectors",
    entry="my_latent_step",
    kind="write",
    equation="absorbed-latent-attention",
    points=3,
    difficulty=5,
    minutes=25,
    trains="everything of this lesson at once",
    answer=_step,
    cases=_step_cases,
    wrong=[
        Wrong(
            "the scale of the latent space",
            lambda *inputs: _step(*inputs, width="latent"),
            "the scale is that of the scores before absorbing: the root of d_head + d_rope",
        ),
        Wrong(
            "the scale of the content",
            lambda *inputs: _step(*inputs, width="content"),
            "the rotary part counts in the scale: the root of d_head + d_rope",
        ),
        Wrong(
            "the rotary part left out",
            lambda *inputs: _step(*inputs, rotary=False),
            "the scores lack `query_rope` with `key_rope`, {eq}`decoupled-rope-score`",
        ),
        Wrong(
            "key columns dealt round",
            lambda *inputs: _step(*inputs, dealt="keys"),
            "head h owns the h-th block of neighbouring columns of `w_key_up`; you took every n_heads-th column",
        ),
        Wrong(
            "value columns dealt round",
            lambda *inputs: _step(*inputs, dealt="values"),
            "head h owns the h-th block of neighbouring columns of `w_value_up`; you took every n_heads-th column",
        ),
        Wrong(
            "split by a bare reshape",
            lambda *inputs: _step(*inputs, at_once=True),
            "reshaped to (n_heads, d_latent, ...) at once, a head gets whole rows of the matrices: cut the columns, then swap the axes",
        ),
        Wrong(
            "no scale",
            lambda *inputs: _step(*inputs, width="none"),
            "the scores go into the softmax unscaled: divide them by the root of d_head + d_rope",
        ),
        Wrong(
            "softmax over the heads",
            lambda *inputs: _step(*inputs, axis=0),
            "each head's weights sum to 1 over the cached tokens, not over the heads",
        ),
        Wrong(
            "heads averaged",
            lambda *inputs: _step(*inputs, mean=True),
            "the heads are added through `w_output`, {eq}`output-projection-sums-heads`, not averaged",
        ),
        Wrong(
            "the order exchanged",
            lambda *inputs: (_step(*inputs)[1], _step(*inputs)[0], _step(*inputs)[2]),
            "all three are right, but return the lifted queries first, then the averages",
        ),
    ],
    hints=[
        "Cut `w_key_up` and `w_value_up` into heads, (n_heads, d_latent, width). Then lift, score, average, project up, project out.",
        'lifted: `np.einsum("hk,hck->hc", query, keys_up)`; its scores are with `latent`, those of `query_rope` with `key_rope`.',
        "averages = weights @ latent, (n_heads, d_latent); each goes up by its head's `values_up`, then all into `w_output`.",
    ],
)
