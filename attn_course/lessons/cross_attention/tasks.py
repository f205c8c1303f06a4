"""The graded tasks on cross-attention."""

import math
from functools import partial
from typing import Any

import numpy as np

from attn_course.lessons.cross_attention.tasks_formulas import BOTH_DIRECTIONS, SOURCE_ROW
from attn_course.reference import attention, padding_mask, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong, every


def _draw(rng: np.random.Generator, q_len: int, kv_len: int, d_x: int, d_y: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Return two sequences and three projections whose sizes differ wherever two could be mistaken for each other."""
    shapes = {"x": (q_len, d_x), "y": (kv_len, d_y), "w_query": (d_x, d_k), "w_key": (d_y, d_k), "w_value": (d_y, d_v)}
    return {name: rng.normal(size=shape) / math.sqrt(shape[0] if name.startswith("w") else 1) for name, shape in shapes.items()}


# --- 9.1 cross-attention -------------------------------------------------------------------------------


def _cross(x: np.ndarray, y: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray) -> np.ndarray:
    return np.asarray(attention(x @ w_query, y @ w_key, y @ w_value))


def _cross_by(scores: np.ndarray, value: np.ndarray, axis: int = -1) -> np.ndarray:
    return softmax(scores, axis) @ value


CROSS = Task(
    id="cross-attention",
    title="Cross-attention",
    entry="my_cross_attention",
    kind="write",
    equation="cross-attention",
    points=2,
    difficulty=2,
    minutes=10,
    trains="who asks, who answers, and which sizes may differ",
    answer=_cross,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("a source longer and wider than the target", **_draw(rng, 3, 7, 5, 11, 2, 13)),
        Case("a target longer and wider than the source", **_draw(rng, 11, 5, 7, 3, 13, 2)),
        Case("one length and one width for both", **_draw(rng, 5, 5, 7, 7, 3, 2)),
        Case("one source position", **_draw(rng, 3, 1, 5, 7, 2, 11)),
        Case("one target position", **_draw(rng, 1, 7, 5, 3, 13, 2)),
    ],
    wrong=[
        Wrong(
            "the source asks and the target answers",
            lambda x, y, w_query, w_key, w_value: (
                _cross(y, x, w_query, w_key, w_value)
                if x.shape[1] == y.shape[1]
                else attention(y @ w_key, x @ w_query, np.resize(y @ w_value, (len(x), w_value.shape[1])))
            ),
            "the sequence that is being written asks: queries come from x, keys and values from y, {eq}`cross-attention`",
        ),
        Wrong(
            "values from the target where they fit",
            lambda x, y, w_query, w_key, w_value: _cross_by(
                x @ w_query @ (y @ w_key).T / math.sqrt(w_key.shape[1]), (x if x.shape == y.shape else y) @ w_value
            ),
            "the target knows nothing of the answer yet: values are made from y, like the keys",
        ),
        Wrong(
            "no scale",
            lambda x, y, w_query, w_key, w_value: _cross_by(x @ w_query @ (y @ w_key).T, y @ w_value),
            "the scores are not divided by sqrt(d_k)",
        ),
        Wrong(
            "divided by the root of the source's width",
            lambda x, y, w_query, w_key, w_value: _cross_by(x @ w_query @ (y @ w_key).T / math.sqrt(len(w_key)), y @ w_value),
            "the scale is the root of d_k, the features that queries and keys share, not the width of the source",
        ),
        Wrong(
            "divided by d_k itself",
            lambda x, y, w_query, w_key, w_value: _cross_by(x @ w_query @ (y @ w_key).T / w_key.shape[1], y @ w_value),
            "the scores are divided by the square root of d_k, not by d_k",
        ),
        Wrong(
            "softmax over the target",
            lambda x, y, w_query, w_key, w_value: _cross_by(x @ w_query @ (y @ w_key).T / math.sqrt(w_key.shape[1]), y @ w_value, 0),
            "each target row spreads a whole 1 over the source: the softmax runs over the last axis of the scores",
        ),
    ],
    hints=[
        "Three projections: one of x, two of y. Write the shape of each beside it.",
        "Scores have a row for each row of x and a column for each row of y; their features, d_k, are summed away.",
        "`scores = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])`, a softmax along the last axis, then `@ (y @ w_value)`.",
    ],
)

# --- 9.2 padding on the wrong side ---------------------------------------------------------------------


def _batch(
    rng: np.random.Generator, q_len: int, kv_len: int, sources: list[int], targets: list[int], filling: float = 3.0
) -> dict[str, Any]:
    size, d_k, d_v = len(sources), 13, 17
    inputs = {
        "query": rng.normal(size=(size, q_len, d_k)),
        "key": rng.normal(size=(size, kv_len, d_k)),
        "value": rng.normal(size=(size, kv_len, d_v)),
    }
    for n, source in enumerate(sources):
        inputs["key"][n, source:] *= filling
        inputs["value"][n, source:] *= filling
    return {**inputs, "source_lengths": np.array(sources), "target_lengths": np.array(targets)}


def _far_scores(rng: np.random.Generator, sign: float) -> dict[str, Any]:
    """Scores far above zero, or far below, where a finite number in place of minus infinity is not low enough."""
    inputs = _batch(rng, 3, 7, [5, 2], [3, 2], filling=1.0)
    return {**inputs, "query": 5e4 * np.abs(inputs["query"]), "key": sign * 5e4 * np.abs(inputs["key"])}  # scores near 6e9


def _translate(query: np.ndarray, key: np.ndarray, value: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    output = attention(query, key, value, mask=padding_mask(source_lengths, key.shape[1]))
    real = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real[..., None], output, 0.0)


def _translate_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
) -> np.ndarray:
    """Cross-attention in a padded batch; rows of the output that belong to padding of
    the target are zero.
    """
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < target_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < source_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)


def _translate_with(mask: str, zero: str) -> Any:
    def answer(query: Any, key: Any, value: Any, source_lengths: Any, target_lengths: Any) -> np.ndarray:
        lengths = {"source": source_lengths, "target": target_lengths, "both": np.minimum(source_lengths, target_lengths)}
        visible = None if mask == "none" else padding_mask(np.minimum(lengths[mask], key.shape[1]), key.shape[1])
        output = attention(query, key, value, mask=visible)
        if zero == "none":
            return np.asarray(output)
        real = np.arange(query.shape[1]) < lengths[zero][:, None]
        return np.where(real[..., None], output, 0.0)

    return answer


def _zeroed_after(query: Any, key: Any, value: Any, source_lengths: Any, target_lengths: Any) -> np.ndarray:
    """Weights of padding set to 0 after the softmax, so that rows no longer sum to 1."""
    weights = softmax(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[2])) * padding_mask(source_lengths, key.shape[1])
    real = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real[..., None], weights @ value, 0.0)


def _normalised_again(query: Any, key: Any, value: Any, source_lengths: Any, target_lengths: Any) -> np.ndarray:
    """Weights of padding set to 0 after the softmax, and the rest divided by its sum, which may be 0."""
    weights = softmax(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[2])) * padding_mask(source_lengths, key.shape[1])
    real = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real[..., None], weights / weights.sum(axis=-1, keepdims=True) @ value, 0.0)


def _finite_mask(
    query: Any, key: Any, value: Any, source_lengths: Any, target_lengths: Any, *, kept: float, number: float = -1e9
) -> np.ndarray:
    """A large negative number added to the scores of padding, or, if nothing of them is kept, in their place."""
    scores, visible = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[2]), padding_mask(source_lengths, key.shape[1])
    weights = softmax(np.where(visible, scores, kept * scores + number))
    real = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real[..., None], weights @ value, 0.0)


PADDING = Task(
    id="repair-padding-both-sides",
    title="Repair the padding of two sides",
    entry="padded_cross_attention",
    kind="repair",
    equation="padding-on-both-sides",
    points=2,
    difficulty=3,
    minutes=10,
    trains="which padding is hidden, and on which axis",
    answer=_translate,
    broken=_translate_broken,
    exact_zeros=True,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        Case("sources and targets padded to one length", **_batch(rng, 7, 7, [5, 3], [2, 7])),
        Case("a long source, a short target", **_batch(rng, 5, 11, [11, 4, 7], [5, 2, 3])),
        Case("a short source, a long target", **_batch(rng, 11, 5, [2, 5], [3, 11])),
        Case("padding that would win every softmax", **_batch(rng, 5, 7, [3, 1], [2, 4], filling=1e30)),
        Case("real scores far below zero", **_far_scores(rng, -1.0)),
        Case("one target position", **_batch(rng, 1, 5, [4, 2, 1], [1, 1, 1])),
        Case("real scores far above zero", **_far_scores(rng, 1.0)),
    ],
    wrong=[
        Wrong(
            "no key hidden",
            _translate_with("none", "target"),
            "padded keys take part in the softmax: hide them with -inf, from the source's lengths on",
        ),
        Wrong(
            "keys hidden by the target's lengths",
            _translate_with("target", "target"),
            "keys are source positions: which of them are real is said by `source_lengths`, {eq}`padding-on-both-sides`",
        ),
        Wrong(
            "queries cut by the source's lengths",
            _translate_with("source", "source"),
            "rows of the output are target positions: which of them are real is said by `target_lengths`",
        ),
        Wrong(
            "the shorter length for the keys",
            _translate_with("both", "target"),
            "source and target have lengths of their own: a short target must not hide the end of its source",
        ),
        Wrong(
            "padded rows left as they are",
            _translate_with("source", "none"),
            "the task asks for zeros in the rows of padded target positions",
        ),
        Wrong(
            "weights struck after the softmax",
            _zeroed_after,
            "struck after the softmax, the remaining weights do not sum to 1: set the scores to -inf before it",
        ),
        Wrong(
            "weights struck and normalised again",
            _normalised_again,
            "if padding had all the weight, nothing is left to normalise: set the scores to -inf before the softmax",
        ),
        Wrong(
            "a large negative number added",
            lambda *inputs: _finite_mask(*inputs, kept=1.0),
            "padding may hold any finite numbers, also ones whose score is larger than that: use minus infinity",
        ),
        Wrong(
            "a large negative number in the place of minus infinity",
            lambda *inputs: _finite_mask(*inputs, kept=0.0),
            "real scores may lie below any number that you choose, and padding would win there: use minus infinity",
        ),
    ],
    hints=[
        "Scores have the axes batch, target, source. Which lengths belong to which axis?",
        "Two lines use the lengths, and each uses the wrong ones.",
        "`real_keys = np.arange(key.shape[1]) < source_lengths[:, None]`; in the other line it is `target_lengths`.",
    ],
)

# --- 9.3 the loss over real tokens ---------------------------------------------------------------------


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _loss(logits: np.ndarray, target: np.ndarray, padding: int, *, mean: str = "real", grad: str = "real") -> tuple[np.ndarray, np.ndarray]:
    """Return loss and gradient, right by default; `mean` and `grad` say what the mistakes do."""
    log_p, real = _log_softmax(logits), (target != padding).astype(float)
    one_hot = np.eye(logits.shape[-1])[target]
    picked = -(log_p * one_hot).sum(axis=-1)
    weight = np.ones_like(real) if mean == "all rows" else real
    count = {"real": real.sum(), "padded": real.size, "all rows": real.size}.get(mean, real.sum())
    if mean == "examples":
        weight = real / real.sum(axis=1, keepdims=True) / len(real)
        count = 1.0
    if mean == "sum":
        count = 1.0
    if mean == "filled up":  # as if padding stood at the end alone
        weight = (np.arange(real.shape[1]) < real.sum(axis=1, keepdims=True)).astype(float)
    if mean == "log of p":
        picked = -np.log((np.exp(log_p) * one_hot).sum(axis=-1))
    part = one_hot if grad == "one-hot" else np.exp(log_p) - one_hot
    slope = (np.ones_like(real) if grad == "all rows" else weight)[..., None] * part / count
    return np.asarray(np.where(weight > 0, weight * picked, 0.0).sum() / count), -slope if grad == "negative" else slope


def _loss_cases(rng: np.random.Generator) -> list[Case]:
    def case(name: str, lengths: list[int], width: int, vocabulary: int, spread: float = 1.0) -> Case:
        target = rng.integers(1, vocabulary, size=(len(lengths), width))
        for row, length in zip(target, lengths, strict=True):
            row[length:] = 0
        return Case(name, logits=spread * rng.normal(size=(len(lengths), width, vocabulary)), target=target, padding=0)

    far = case("logits near a thousand", [2, 4, 1], 4, 5)
    far.inputs["logits"] += np.array([1000.0, 0.0, 1000.0])[:, None, None]  # no maximum serves all positions
    far.inputs["logits"][0, 0, far.inputs["target"][0, 0]] = 0.0  # its probability underflows
    other = case("another token for padding", [4, 2], 5, 7)
    other.inputs["target"] = np.where(other.inputs["target"] == 0, 6, other.inputs["target"] - 1)
    other.inputs["padding"] = 6
    inside = case("padding in front and inside, and a target of padding alone", [5, 0, 5], 5, 7)
    inside.inputs["target"][0, :2] = inside.inputs["target"][2, 3] = 0
    return [case("two targets of different lengths", [5, 2], 5, 7), far, other, inside, case("one target without padding", [3], 3, 11)]


LOSS = Task(
    id="loss-over-real-tokens",
    title="A loss that padding does not touch",
    entry="my_loss",
    kind="write",
    equation="loss-over-real-tokens",
    points=3,
    difficulty=3,
    minutes=15,
    trains="the mean over what is there, and its gradient",
    answer=_loss,
    forbid=(forbidden.AUTOGRAD, forbidden.LOSSES),
    cases=_loss_cases,
    wrong=[
        Wrong(
            "divided by the padded length",
            lambda logits, target, padding: _loss(logits, target, padding, mean="padded"),
            "divide by the number of real tokens: otherwise the loss depends on how long the longest target of the batch is",
        ),
        Wrong(
            "padding counted as tokens",
            lambda logits, target, padding: _loss(logits, target, padding, mean="all rows"),
            "the model is asked to predict padding too: leave those positions out of the loss and of the gradient",
        ),
        Wrong(
            "a mean for each example first",
            lambda logits, target, padding: _loss(logits, target, padding, mean="examples"),
            "{eq}`loss-over-real-tokens` is one mean over all real tokens of the batch, not a mean of the means of the examples",
        ),
        Wrong(
            "a gradient at padded positions",
            lambda logits, target, padding: _loss(logits, target, padding, grad="all rows"),
            "the loss does not depend on logits at padding, so their gradient is zero",
        ),
        Wrong(
            "the sum",
            lambda logits, target, padding: _loss(logits, target, padding, mean="sum"),
            "that is the sum over real tokens: divide it, and the gradient, by their number",
        ),
        Wrong(
            "the sign of the gradient",
            lambda logits, target, padding: _loss(logits, target, padding, grad="negative"),
            "the gradient is p minus the one-hot target: raising the right logit lowers the loss",
        ),
        Wrong(
            "token 0 taken for padding",
            lambda logits, target, padding: _loss(logits, target, 0),
            "which token is padding is said by the argument `padding`; it need not be 0",
        ),
        Wrong(
            "padding taken to stand at the end",
            lambda logits, target, padding: _loss(logits, target, padding, mean="filled up"),
            "padding may stand anywhere: compare each token with `padding` instead of counting a length",
        ),
        Wrong(
            "the logarithm of a probability that is 0",
            lambda logits, target, padding: _loss(logits, target, padding, mean="log of p"),
            "far behind the largest logit, p underflows to 0 and its logarithm is infinite: subtract the log-sum-exp from the logit",
        ),
    ],
    hints=[
        "`target != padding` says which positions count. How many are they?",
        "ln p = logits minus their log-sum-exp (shifted by the maximum); pick the entry of the target at each position.",
        "`d_logits = real[..., None] * (p - one_hot) / real.sum()`.",
    ],
)

# --- 9.4 the gradient of the source --------------------------------------------------------------------


def _source_gradient(
    x: np.ndarray, y: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, d_output: np.ndarray, *, mistake: str = ""
) -> np.ndarray:
    query, key, value = x @ w_query, y @ w_key, y @ w_value
    root = math.sqrt(query.shape[1])
    p, d_p = softmax(query @ key.T / root), d_output @ value.T
    d_s = p * (d_p - (0.0 if mistake == "delta" else (p * d_p).sum(axis=1, keepdims=True)))
    d_key, d_value = d_s.T @ query / (1.0 if mistake == "scale" else root), p.T @ d_output
    through_key, through_value = d_key @ w_key.T, d_value @ w_value.T
    if mistake == "last":  # only the last target position
        through_key = np.outer(d_s[-1], query[-1]) / root @ w_key.T
        through_value = np.outer(p[-1], d_output[-1]) @ w_value.T
    return np.asarray({"values": through_value, "keys": through_key}.get(mistake, through_key + through_value))


def _gradient_cases(rng: np.random.Generator) -> list[Case]:
    sizes = {
        "fewer queries than keys": (3, 7, 5, 11, 2, 13),
        "more queries than keys": (11, 5, 3, 7, 13, 2),
        "one query": (1, 5, 7, 3, 2, 11),
        "one source position": (5, 1, 3, 7, 2, 11),
    }
    cases = []
    for name, (q_len, *rest) in sizes.items():
        inputs = _draw(rng, q_len, *rest)
        cases.append(Case(name, **inputs, d_output=rng.normal(size=(q_len, rest[-1]))))
    far = Case("a large source under small key weights", **_draw(rng, 5, 3, 7, 11, 2, 13), d_output=rng.normal(size=(5, 13)))
    far.inputs["y"] *= 1000.0  # a step that suits the differences elsewhere is lost here
    far.inputs["w_key"] /= 1000.0
    return [*cases, far]


def _gradient_wrong(name: str, mistake: str, hint: str) -> Wrong:
    return Wrong(name, lambda *inputs: _source_gradient(*inputs, mistake=mistake), hint)


SOURCE_GRADIENT = Task(
    id="source-gradient",
    title="What the source learns",
    entry="my_source_gradient",
    kind="write",
    equation="gradient-of-source",
    points=3,
    difficulty=4,
    minutes=18,
    trains="a sequence that is used twice",
    answer=_source_gradient,
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=_gradient_cases,
    wrong=[
        _gradient_wrong("through the values alone", "values", "y also made the keys: moving it moves the scores, {eq}`gradient-of-source`"),
        _gradient_wrong("through the keys alone", "keys", "y also made the values: add dV W_V^T, {eq}`gradient-of-source`"),
        _gradient_wrong("the scale forgotten on the way back", "scale", "the scores hold 1 / sqrt(d_k), and so does dK"),
        _gradient_wrong(
            "nothing subtracted from dP",
            "delta",
            "dS = P * dP leaves out that each row of weights sums to 1: subtract delta_i, {eq}`gradient-of-scores`",
        ),
        _gradient_wrong(
            "from the last target row alone", "last", "a source row is asked by every target row: the products sum over all of them"
        ),
    ],
    hints=[
        "y is used twice, for keys and for values. A quantity used twice adds up two gradients.",
        "First dV = P^T dZ and dK = dS^T Q / sqrt(d_k), as in lesson {lesson}`gradients`; then back through the projections.",
        "`return d_key @ w_key.T + d_value @ w_value.T`, with `d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True))`.",
    ],
)

# --- 9.5 which way back --------------------------------------------------------------------------------


def _context_points(rng: np.random.Generator) -> list[Case]:
    alpha = rng.uniform(0.05, 0.95, size=16)
    h_1, h_2, k, s = rng.normal(size=(4, 16))
    return [Case("16 points", alpha=alpha, h_1=h_1, h_2=h_2, k=k, s=s)]


CONTEXT_SLOPE = Task(
    id="context-slope",
    title="How a context follows an annotation",
    entry="my_context_slope",
    kind="derive",
    equation="context-derivative-by-annotation",
    points=2,
    difficulty=4,
    minutes=12,
    trains="two ways from an annotation to a context",
    symbols=("alpha", "h_1", "h_2", "k", "s"),
    cases=_context_points,
    answer=lambda alpha, h_1, h_2, k, s: alpha * (1 + (1 - alpha) * (h_1 - h_2) * k * s),
    wrong=[
        Wrong(
            "the weights taken as constants",
            lambda alpha, h_1, h_2, k, s: alpha + 0 * h_1,
            "that is the way through the values; h_1 is also the key, so its own weight moves",
        ),
        Wrong(
            "the way through the key alone",
            lambda alpha, h_1, h_2, k, s: alpha * (1 - alpha) * (h_1 - h_2) * k * s,
            "that is the way through the weights; h_1 is also a value, with the weight alpha",
        ),
        Wrong(
            "the factor 1 - alpha forgotten",
            lambda alpha, h_1, h_2, k, s: alpha * (1 + (h_1 - h_2) * k * s),
            "the other weight falls by as much as alpha rises: d alpha / d e_1 = alpha (1 - alpha)",
        ),
        Wrong(
            "the other value forgotten",
            lambda alpha, h_1, h_2, k, s: alpha * (1 + (1 - alpha) * h_1 * k * s),
            "what h_1 gains, h_2 loses: their difference counts",
        ),
        Wrong(
            "the sign turned round",
            lambda alpha, h_1, h_2, k, s: alpha * (1 + (1 - alpha) * (h_2 - h_1) * k * s),
            "a larger score of h_1 moves the context towards h_1, not away from it",
        ),
        Wrong(
            "the score's slope by the state",
            lambda alpha, h_1, h_2, k, s: alpha * (1 + (1 - alpha) * (h_1 - h_2) * k * h_1),
            "e_1 = s k h_1 is to be differentiated by h_1, which leaves s k",
        ),
    ],
    hints=[
        "c = alpha h_1 + (1 - alpha) h_2, and alpha depends on h_1 through e_1.",
        "The product rule gives alpha, plus d alpha / d h_1 times (h_1 - h_2).",
        "d alpha / d e_1 = alpha (1 - alpha), and d e_1 / d h_1 = k s: put the two together, `alpha * (1 + ...)`.",
    ],
)

# --- 9.6 operations of decoding ------------------------------------------------------------------------


def _flops(
    T_q: int,
    T_k: int,
    d_x: int,
    d_y: int,
    d_k: int,
    d_v: int,
    *,
    size: int = 2,
    source: float = 1,
    query: float = 1,
    values: float = 1,
    mixed: float = 1,
    again: bool = False,
) -> tuple[float, ...]:
    """Operations for the source, of a step, and altogether; a switch scales one part, `again` pays for the source at each step."""
    once = size * T_k * d_y * source * (d_k + values * d_v)
    step = size * (query * d_x * d_k + T_k * (d_k + mixed * d_v))
    return (once, step, once + T_q * step) if not again else (once, once + step, T_q * (once + step))


PREDICT_COST = Task(
    id="source-cache-flops",
    title="What the cache of the source saves",
    entry="my_flops",
    kind="predict",
    equation="cross-attention-decoding-flops",
    points=1,
    difficulty=2,
    minutes=6,
    trains="what is paid once and what at each step",
    tolerance=1e-6,
    variants=every(T_q=(30, 20), T_k=(40, 50), d_x=(32,), d_y=(48, 64), d_k=(16,), d_v=(24, 20)),
    answer=_flops,
    wrong=[
        Wrong("a multiply-add counted as one", partial(_flops, size=1), "a multiplication and an addition are 2 operations"),
        Wrong(
            "the target's width for the source",
            lambda d_x, d_y, **sizes: _flops(d_x=d_x, d_y=d_y, source=d_x / d_y, **sizes),
            "the source has rows of d_y features; d_x is the width of the target",
        ),
        Wrong(
            "the source projected at each step",
            partial(_flops, again=True),
            "keys and values of the source do not change while the target is written: they are paid once",
        ),
        Wrong(
            "no projection of the query",
            partial(_flops, query=0),
            "each step projects its own query, 2 d_x d_k, and then pays for scores and for the sum of values",
        ),
        Wrong(
            "scores without the sum of values",
            partial(_flops, mixed=0),
            "a step also sums the values: T_k rows of d_v features",
        ),
        Wrong(
            "values not projected",
            partial(_flops, values=0),
            "the source is projected twice, to keys and to values",
        ),
    ],
    hints=[
        "Three parts: the source's two projections, one step, and all steps with the source.",
        "The source: 2 T_k d_y (d_k + d_v). A step: 2 d_x d_k for the query and 2 T_k (d_k + d_v) for the rest.",
        "The last number is the first plus T_q times the second.",
    ],
)

# --- 9.7 read an alignment -----------------------------------------------------------------------------


def _alignment_to_read() -> dict[str, Any]:
    source = ["24", "December", "of", "the", "year", "1905"]
    written = ["1905", "-", "12", "-", "24"]
    weights = np.array(
        [
            [0.02, 0.05, 0.04, 0.06, 0.11, 0.72],
            [0.12, 0.14, 0.22, 0.31, 0.13, 0.08],
            [0.07, 0.82, 0.05, 0.03, 0.02, 0.01],
            [0.16, 0.13, 0.18, 0.17, 0.19, 0.17],
            [0.64, 0.21, 0.06, 0.05, 0.03, 0.01],
        ]
    )
    rows = " ".join(
        f"Row {n} “{name}”: {', '.join(f'{p:.2f}' for p in row)}." for n, (name, row) in enumerate(zip(written, weights, strict=True))
    )
    return {
        "matrix": weights,
        "rows": [f"{n}: {name}" for n, name in enumerate(written)],
        "columns": [f"{n}:\n{name}" for n, name in enumerate(source)],
        "row_label": "written",
        "column_label": "source",
        "limits": (0.0, 1.0),
        "title": "Weights of five written tokens over six source tokens",
        "alt": f"Heatmap of weights, written tokens in rows, source tokens {', '.join(source)} in columns. {rows}",
    }


READ_ALIGNMENT = Task(
    id="read-date-alignment",
    title="Read an alignment",
    entry="my_reading",
    kind="figure",
    equation="context-from-alignment-model",
    points=1,
    difficulty=2,
    minutes=5,
    trains="rows that were written, columns that were read",
    answer=lambda: (2.0, 3.0, 0.18, 0.07 / 0.18),
    tolerance=1e-3,
    figure_data=_alignment_to_read,
    wrong=[
        Wrong(
            "rows and columns exchanged",
            lambda: (3.0, 3.0, 0.18, 0.07 / 0.18),
            "look down column 1 for its largest entry, not along row 1: a column is what was read, a row what was written",
        ),
        Wrong(
            "the other hyphen",
            lambda: (2.0, 1.0, 0.18, 0.07 / 0.18),
            "the two rows of hyphens look alike, but one is nearer to a plain average: compare their largest weights",
        ),
        Wrong(
            "the weight that is hidden",
            lambda: (2.0, 3.0, 0.82, 0.07 / 0.18),
            "that is the weight on the token itself; the question asks what the other five have together",
        ),
        Wrong(
            "struck without normalising again",
            lambda: (2.0, 3.0, 0.18, 0.07),
            "a hidden key leaves the softmax, and the rest is renormalised to sum to 1, {eq}`masking-renormalises-weights`",
        ),
        Wrong(
            "shared out equally",
            lambda: (2.0, 3.0, 0.18, 0.07 + 0.82 / 5),
            "what the hidden key had goes to the others in proportion to their weights, not in equal parts, "
            "{eq}`masking-renormalises-weights`",
        ),
        Wrong("counted from one", lambda: (3.0, 4.0, 0.18, 0.07 / 0.18), "rows are counted from 0, as the labels of the figure are"),
    ],
    hints=[
        "Rows are written tokens, and each row sums to 1; columns are source tokens and need not.",
        "For the second number, note the largest weight of each row and compare the five. For the third, 1 minus one weight.",
        "For the last one, divide the weight of token 0 in row 2 by what all tokens but December have together.",
    ],
)

# --- 9.8 write a target --------------------------------------------------------------------------------


def _write(
    y: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
    w_value: np.ndarray,
    embeddings: np.ndarray,
    positions: np.ndarray,
    w_output: np.ndarray,
    start: int,
    end: int,
    *,
    mistake: str = "",
) -> np.ndarray:
    """Return the logits of every step; `mistake` names what a wrong answer does instead."""
    key, value = y @ w_key, y @ w_value
    token, rows = 1 if mistake == "start 1" else start, []
    for position in np.zeros_like(positions) if mistake == "positions" else positions:
        x = (embeddings[token] + position)[None]
        found = attention(x @ w_query, key, value, scale=1.0 if mistake == "scale" else None)
        row = (found if mistake == "residual" else x + found) @ w_output
        rows.append(row[0])
        best = int(row.argmax())
        if best == end and mistake != "goes on":
            return np.stack(rows[:-1] if mistake == "end left out" and len(rows) > 1 else rows)
        token = start if mistake == "start again" else int(row.argmin()) if mistake == "least" else best
    return np.stack(rows)


def _writer_case(rng: np.random.Generator, name: str, sizes: tuple[int, int, int], start: int, ends: str) -> Case:
    """Draw until no step is a close call, and the end token comes where it is to come, or never."""
    kv_len, n_tokens, max_len = sizes
    d_x, d_y, d_k = 5, 3, 2
    while True:
        inputs: dict[str, Any] = {
            "y": rng.normal(size=(kv_len, d_y)),
            "w_query": rng.normal(size=(d_x, d_k)),
            "w_key": rng.normal(size=(d_y, d_k)),
            "w_value": rng.normal(size=(d_y, d_x)),
            "embeddings": rng.normal(size=(n_tokens, d_x)),
            "positions": rng.normal(size=(max_len, d_x)),
            "w_output": rng.normal(size=(d_x, n_tokens)),
            "start": start,
        }
        logits = _write(**inputs, end=-1)
        best = logits.argmax(axis=1).tolist()
        first = {token: best.index(token) for token in best}
        middle = [token for token, step in first.items() if 2 <= step < max_len - 1]
        never = [token for token in range(n_tokens) if token not in first]
        top = np.sort(logits, axis=1)
        clear = (top[:, -1] - top[:, -2]).min() > 0.1
        fit = {
            "at once": [n for n in best[:1] if n != start],
            "later": [n for n in middle if n != start],
            "at the start token": [n for n in middle if n == start],
            "never": never,
        }[ends]
        if clear and len(first) > 2 and fit:
            return Case(name, **inputs, end=fit[0])


def _writer_wrong(name: str, mistake: str, hint: str) -> Wrong:
    return Wrong(name, lambda *inputs: _write(*inputs, mistake=mistake), hint)


WRITER = Task(
    id="greedy-decoding",
    title="Write a target",
    entry="my_writer",
    kind="write",
    equation="shifted-input-hides-target",
    points=3,
    difficulty=4,
    minutes=20,
    trains="the loop of a decoder: read the last token, ask the source, choose the next",
    answer=_write,
    forbid=(forbidden.ATTENTION,),
    cases=lambda rng: [
        _writer_case(rng, "the end token comes in the middle", (7, 11, 6), 1, "later"),
        _writer_case(rng, "one token is start and end", (4, 7, 8), 3, "at the start token"),
        _writer_case(rng, "no end token within the positions", (6, 11, 4), 5, "never"),
        _writer_case(rng, "the end token comes at step 0", (3, 7, 4), 2, "at once"),
    ],
    wrong=[
        _writer_wrong("the start token at every step", "start again", "each step reads the token that the step before has chosen"),
        _writer_wrong("it goes on after the end", "goes on", "the step that chooses the end token is the last one"),
        _writer_wrong("the last step left out", "end left out", "the step that chooses the end token belongs to the result"),
        _writer_wrong("without the positions", "positions", "step t reads embeddings[token] + positions[t]"),
        _writer_wrong("without what was there", "residual", "logits are made from x + z: the attention adds to the row that asked"),
        _writer_wrong("no scale", "scale", "the scores of the attention are divided by sqrt(d_k), {eq}`cross-attention`"),
        _writer_wrong("start token 1 always", "start 1", "the first step reads the token `start`, whichever it is"),
        _writer_wrong("the least likely token", "least", "choose the token with the largest logit"),
    ],
    hints=[
        "Compute keys and values of the source before the loop. Which three things happen in each step?",
        "x = embeddings[token] + positions[t]; z = attention of the single query x @ w_query; logits = (x + z) @ w_output.",
        "`rows.append(logits)`, `token = logits.argmax()`, and `break` if it is `end`; at last `np.stack(rows)`.",
    ],
)

TASKS = [CROSS, PADDING, LOSS, SOURCE_GRADIENT, CONTEXT_SLOPE, PREDICT_COST, READ_ALIGNMENT, WRITER, SOURCE_ROW, BOTH_DIRECTIONS]
