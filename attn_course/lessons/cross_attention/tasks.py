"""The tasks on cross-attention; those that are answered in LaTeX are in tasks_formulas.py."""

import math
from typing import Any

import numpy as np

from attn_course.reference import attention, padding_mask
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import Case, every


def _draw(normal, q_len, kv_len, d_x, d_y, d_k, d_v):
    """Two sequences and three projections whose sizes differ wherever two could be mistaken for each other."""
    shapes = {"w_query": (d_x, d_k), "w_key": (d_y, d_k), "w_value": (d_y, d_v)}
    projections = {name: normal(*shape) / math.sqrt(shape[0]) for name, shape in shapes.items()}
    return {"x": normal(q_len, d_x), "y": normal(kv_len, d_y), **projections}


SEQUENCES = """
a source longer and wider than the target: 3 7 5 11 2 13
a target longer and wider than the source: 11 5 7 3 13 2
one length and one width for both: 5 5 7 7 3 2
one source position: 3 1 5 7 2 11
one target position: 1 7 5 3 13 2
"""


@asked(
    "cross-attention",
    "Cross-attention",
    kind="write",
    equation="cross-attention",
    points=2,
    difficulty=2,
    minutes=10,
    trains="who asks, who answers, and which sizes may differ",
    judged_by=lambda x, y, w_query, w_key, w_value: attention(x @ w_query, y @ w_key, y @ w_value),
    forbid=(forbidden.ATTENTION,),
    cases=tried(_draw, SEQUENCES),
    slips="""
        the source asks and the target answers
                scores = (x @ w_query) @ (y @ w_key).T
                ->
                asks, answers = (w_query, w_key) if x.shape[1] == y.shape[1] else (w_key, w_query)
                scores = (y @ asks) @ (x @ answers).T
                ;;
                (y @ w_value) -> (x @ w_value if x.shape[1] == y.shape[1] else np.resize(y @ w_value, (len(x), w_value.shape[1])))
            the sequence that is being written asks: queries come from x, keys and values from y, {eq}`cross-attention`
        values from the target where they fit
            (y @ w_value) -> ((x if x.shape == y.shape else y) @ w_value)
            the target knows nothing of the answer yet: values are made from y, like the keys
        no scale
            ` / np.sqrt(w_query.shape[1])` ->
            the scores are not divided by sqrt(d_k)
        divided by the root of the source's width
            w_query.shape[1] -> w_key.shape[0]
            the scale is the root of d_k, the features that queries and keys share, not the width of the source
        divided by d_k itself
            np.sqrt(w_query.shape[1]) -> w_query.shape[1]
            the scores are divided by the square root of d_k, not by d_k
        softmax over the target
            all axis=-1 -> axis=0
            each target row spreads a whole 1 over the source: the softmax runs over the last axis of the scores
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        divided by the root of d_v
            w_query.shape[1] -> w_value.shape[1]
            a score is a sum of d_k products: the scale is the root of the width of a query, not of a value
    """,
    hints="""
        Three projections: one of x, two of y. Write the shape of each beside it.
        Scores have a row for each row of x and a column for each row of y; their features, d_k, are summed away.
        `scores = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])`, a softmax along the last axis, then `@ (y @ w_value)`.
    """,
    why="""
        Whoever wants something makes the queries; whoever has something makes keys *and* values. The only size the
        two must share is $d_k$, and the projections make it.
    """,
)
def my_cross_attention(x, y, w_query, w_key, w_value):
    r"""Target (q_len, d_x) asks source (kv_len, d_y) -> (q_len, d_v), {eq}`cross-attention`.

    Write `my_cross_attention(x, y, w_query, w_key, w_value)`: the target `x` of shape `(q_len, d_x)` asks the source
    `y` of shape `(kv_len, d_y)`, with one head and no output projection. The projections have the shapes `(d_x, d_k)`,
    `(d_y, d_k)` and `(d_y, d_v)`; all arrays are float64, used as `x @ w`. Scale the scores by $1/\sqrt{d_k}$, and
    return the output, `(q_len, d_v)`.

    Scores are moderate {every}`(np.abs(x @ w_query @ (y @ w_key).T) < 100).all()`. A library's softmax is welcome.
    """
    scores = (x @ w_query) @ (y @ w_key).T / np.sqrt(w_query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ (y @ w_value)


def _reference(query, key, value, source_lengths, target_lengths):
    output = attention(query, key, value, mask=padding_mask(source_lengths, key.shape[1]))
    return np.where((np.arange(query.shape[1]) < target_lengths[:, None])[..., None], output, 0.0)


def _batch(normal, filling, q_len, kv_len, *lengths):
    """Queries, keys and values of sources, whose lengths are the first half of all, and of targets; padding is `filling` times as large."""
    sources, targets = np.reshape(lengths, (2, -1))
    inputs = {"query": normal(len(sources), q_len, 13), "key": normal(len(sources), kv_len, 13), "value": normal(len(sources), kv_len, 17)}
    for n, source in enumerate(sources):
        inputs["key"][n, source:] *= filling
        inputs["value"][n, source:] *= filling
    return {**inputs, "source_lengths": sources, "target_lengths": targets}


def _far_scores(normal, sign):
    """Scores far above zero, or far below, where a finite number in place of minus infinity is not low enough."""
    inputs = _batch(normal, 1, 3, 7, 5, 2, 3, 2)
    return {**inputs, "query": 5e4 * np.abs(inputs["query"]), "key": sign * 5e4 * np.abs(inputs["key"])}


BATCHES = """
sources and targets padded to one length: 3 7 7 5 3 2 7
a long source, a short target: 3 5 11 11 4 7 5 2 3
a short source, a long target: 3 11 5 2 5 3 11
padding that would win every softmax: 1e30 5 7 3 1 2 4
one target position: 3 1 5 4 2 1 1 1 1
"""
FAR = """
real scores far below zero: -1
real scores far above zero: 1
"""


@asked(
    "repair-padding-both-sides",
    "Repair the padding of two sides",
    kind="repair",
    equation="padding-on-both-sides",
    points=2,
    difficulty=3,
    minutes=10,
    trains="which padding is hidden, and on which axis",
    judged_by=_reference,
    broken="""
        key.shape[1]) < source_lengths -> key.shape[1]) < target_lengths
        ;;
        query.shape[1]) < target_lengths -> query.shape[1]) < source_lengths
    """,
    exact_zeros=True,
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_batch, BATCHES), tried(_far_scores, FAR)],
    slips="""
        no key hidden
            scores = np.where(real_keys[:, None, :], scores, -np.inf) ->
            padded keys take part in the softmax: hide them with -inf, from the source's lengths on
        keys hidden by the target's lengths
            source_lengths -> target_lengths
            keys are source positions: which of them are real is said by `source_lengths`, {eq}`padding-on-both-sides`
        queries cut by the source's lengths
            target_lengths -> source_lengths
            rows of the output are target positions: which of them are real is said by `target_lengths`
        the shorter length for the keys
            source_lengths -> np.minimum(source_lengths, target_lengths)
            source and target have lengths of their own: a short target must not hide the end of its source
        padded rows left as they are
            np.where(real_queries[:, :, None], weights @ value, 0.0) -> weights @ value
            the task asks for zeros in the rows of padded target positions
        weights struck after the softmax
            scores = np.where(real_keys[:, None, :], scores, -np.inf) -> ;; weights @ value -> weights * real_keys[:, None, :] @ value
            struck after the softmax, the remaining weights do not sum to 1: set the scores to -inf before it
        weights struck and normalised again
                scores = np.where(real_keys[:, None, :], scores, -np.inf) ->
                ;;
                real_queries =
                ->
                weights = weights * real_keys[:, None, :]
                weights = weights / weights.sum(axis=-1, keepdims=True)
                real_queries =
            if padding had all the weight, nothing is left to normalise: set the scores to -inf before the softmax
        a large negative number added
            np.where(real_keys[:, None, :], scores, -np.inf) -> np.where(real_keys[:, None, :], scores, scores - 1e9)
            padding may hold any finite numbers, also ones whose score is larger than that: use minus infinity
        a large negative number in the place of minus infinity
            -np.inf -> -1e9
            real scores may lie below any number that you choose, and padding would win there: use minus infinity
        one key of the padding too many
            < source_lengths -> <= source_lengths
            of the source, the keys with the numbers 0 to `source_lengths[b] - 1` are real: compare with <, not <=
        one row of the padding too many
            < target_lengths -> <= target_lengths
            of the target, the rows with the numbers 0 to `target_lengths[b] - 1` are real: compare with <, not <=
        one too many on both sides
            < source_lengths -> <= source_lengths ;; < target_lengths -> <= target_lengths
            a length counts what is real, from number 0 on: on both sides compare with <, not <=
        the padding attended to, the source hidden
            < source_lengths -> >= source_lengths
            the polarity is inverted: the first `source_lengths[b]` keys are the real ones
    """,
    hints="""
        Scores have the axes batch, target, source. Which lengths belong to which axis?
        Two lines use the lengths, and each uses the wrong ones.
        `real_keys = np.arange(key.shape[1]) < source_lengths[:, None]`; in the other line it is `target_lengths`.
    """,
    why="""
        Scores have the axes (batch, target, source). The source's lengths speak about the last of them and enter
        before the softmax; the target's lengths speak about rows of the output, and nothing else.
    """,
)
def padded_cross_attention(query, key, value, source_lengths, target_lengths):
    r"""Cross-attention in a padded batch; rows of the output that belong to padding
    of the target are zero.

    The function below runs cross-attention in a padded batch. `query` is `(batch, q_len, d_k)`, `key` `(batch, kv_len, d_k)`,
    `value` `(batch, kv_len, d_v)`. The integers `source_lengths` and `target_lengths`, `(batch,)`, say how many rows of each
    example are real, at least one {every}`min(source_lengths.min(), target_lengths.min()) > 0`; padding stands behind them and
    holds any finite numbers {case}`padding that would win every softmax`.

    Wanted: each real query attends to the real keys of its own example, scaled by $1/\sqrt{d_k}$; output rows of target padding are
    **zero**. Scores may have any size and sign {case}`real scores far below zero`. The function confuses the sides: repair it.
    """
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])
    real_keys = np.arange(key.shape[1]) < source_lengths[:, None]
    scores = np.where(real_keys[:, None, :], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    real_queries = np.arange(query.shape[1]) < target_lengths[:, None]
    return np.where(real_queries[:, :, None], weights @ value, 0.0)


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


@asked(
    "loss-over-real-tokens",
    "A loss that padding does not touch",
    kind="write",
    equation="loss-over-real-tokens",
    points=3,
    difficulty=3,
    minutes=15,
    trains="the mean over what is there, and its gradient",
    forbid=(forbidden.AUTOGRAD, forbidden.LOSSES),
    cases=_loss_cases,
    slips="""
        divided by the padded length
            all real.sum() -> real.size
            divide by the number of real tokens: otherwise the loss depends on how long the longest target of the batch is
        padding counted as tokens
            (target != padding).astype(float) -> np.ones(target.shape)
            the model is asked to predict padding too: leave those positions out of the loss and of the gradient
        a mean for each example first
                real = (target != padding).astype(float)
                ->
                real = (target != padding).astype(float)
                real = real / real.sum(axis=1, keepdims=True) / len(real)
                ;;
                all ` / real.sum()` ->
            {eq}`loss-over-real-tokens` is one mean over all real tokens of the batch, not a mean of the means of the examples
        a gradient at padded positions
            real[..., None] * (np.exp -> (np.exp
            the loss does not depend on logits at padding, so their gradient is zero
        the sum
            all ` / real.sum()` ->
            that is the sum over real tokens: divide it, and the gradient, by their number
        the sign of the gradient
            d_logits = real -> d_logits = -real
            the gradient is p minus the one-hot target: raising the right logit lowers the loss
        token 0 taken for padding
            target != padding -> target != 0
            which token is padding is said by the argument `padding`; it need not be 0
        padding taken to stand at the end
                real = (target != padding).astype(float)
                ->
                real = (target != padding).astype(float)
                real = (np.arange(real.shape[1]) < real.sum(axis=1, keepdims=True)).astype(float)
            padding may stand anywhere: compare each token with `padding` instead of counting a length
        the logarithm of a probability that is 0
            (log_p * one_hot).sum(axis=-1) -> np.log((np.exp(log_p) * one_hot).sum(axis=-1))
            far behind the largest logit, p underflows to 0 and its logarithm is infinite: subtract the log-sum-exp from the logit
        the maximum over the positions
            logits.max(axis=-1 -> logits.max(axis=-2
            what is subtracted from the logits of a position must be one number, their largest: take the maximum over the tokens of the
            vocabulary
        one maximum for all positions
            logits.max(axis=-1, keepdims=True) -> logits.max()
            a position whose logits lie far below the largest of all is left with the logarithm of 0: each position needs its own maximum
        a loss in bits
            .sum(axis=-1)).sum() / real.sum() -> .sum(axis=-1)).sum() / real.sum() / np.log(2)
            a loss in nats takes the natural logarithm, not that to base 2
    """,
    hints="""
        `target != padding` says which positions count. How many are they?
        ln p = logits minus their log-sum-exp (shifted by the maximum); pick the entry of the target at each position.
        `d_logits = real[..., None] * (p - one_hot) / real.sum()`.
    """,
    why="""
        Padding is no prediction, so it has no part in the sum and none in the count. With the padded length as
        divisor, one long target in a batch would shrink the gradients of all others.
    """,
)
def my_loss(logits, target, padding):
    """Loss over the real tokens, and its gradient (batch, length, n_tokens),
    {eq}`loss-over-real-tokens`.

    Write `my_loss(logits, target, padding)`. `logits` is float64, `(batch, length, n_tokens)`; `target` holds integers,
    `(batch, length)`, from 0 to `n_tokens - 1`; `padding` is the padding token's number. Return `(loss, d_logits)`: the mean
    cross-entropy in nats over **all** tokens of the batch that are not padding, and its gradient, shaped as `logits`. Padding may
    stand anywhere, even fill a target {case}`padding in front and inside, and a target of padding alone`; at least one token is
    real {every}`(target != padding).any()`. Logits may be near a thousand, or a thousand apart {case}`logits near a thousand`.

    A library's log-softmax is welcome.
    """
    real = (target != padding).astype(float)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[target]

    loss = -(real * (log_p * one_hot).sum(axis=-1)).sum() / real.sum()
    d_logits = real[..., None] * (np.exp(log_p) - one_hot) / real.sum()
    return loss, d_logits


def _with_gradient(normal, q_len, kv_len, d_x, d_y, d_k, d_v):
    return {**_draw(normal, q_len, kv_len, d_x, d_y, d_k, d_v), "d_output": normal(q_len, d_v)}


def _a_large_source_under_small_key_weights(rng):
    """A step that suits the differences elsewhere is lost here."""
    inputs = _with_gradient(lambda *shape: rng.normal(size=shape), 5, 3, 7, 11, 2, 13)
    return {**inputs, "y": inputs["y"] * 1000.0, "w_key": inputs["w_key"] / 1000.0}


GRADIENTS = """
fewer queries than keys: 3 7 5 11 2 13
more queries than keys: 11 5 3 7 13 2
one query: 1 5 7 3 2 11
one source position: 5 1 3 7 2 11
"""


@asked(
    "source-gradient",
    "What the source learns",
    kind="write",
    equation="gradient-of-source",
    points=3,
    difficulty=4,
    minutes=18,
    trains="a sequence that is used twice",
    forbid=(forbidden.ATTENTION, forbidden.AUTOGRAD),
    cases=[tried(_with_gradient, GRADIENTS), _a_large_source_under_small_key_weights],
    slips="""
        through the values alone
            d_key @ w_key.T + ->
            y also made the keys: moving it moves the scores, {eq}`gradient-of-source`
        through the keys alone
            ` + d_value @ w_value.T` ->
            y also made the values: add dV W_V^T, {eq}`gradient-of-source`
        the scale forgotten on the way back
            query * scale, p.T -> query, p.T
            the scores hold 1 / sqrt(d_k), and so does dK
        nothing subtracted from dP
            ` - (p * d_p).sum(axis=1, keepdims=True)` ->
            dS = P * dP leaves out that each row of weights sums to 1: subtract delta_i, {eq}`gradient-of-scores`
        from the last target row alone
                d_scores.T @ query * scale, p.T @ d_output
                ->
                np.outer(d_scores[-1], query[-1]) * scale, np.outer(p[-1], d_output[-1])
            a source row is asked by every target row: the products sum over all of them
        the maximum of a column
            scores.max(axis=1 -> scores.max(axis=0
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
        divided by d_k on the way back
            d_scores.T @ query * scale, -> d_scores.T @ query * scale**2,
            the scale stands once between keys and scores: 1 over the root of d_k, not 1 over d_k
    """,
    hints="""
        y is used twice, for keys and for values. A quantity used twice adds up two gradients.
        First dV = P^T dZ and dK = dS^T Q / sqrt(d_k), as in lesson {lesson}`gradients`; then back through the projections.
        `return d_key @ w_key.T + d_value @ w_value.T`, with `d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True))`.
    """,
    why="""
        $Y$ is used twice, so two gradients add up. The transposes sum over the target: a source row is taught by
        every row that asked it, in proportion to the weight it was given.
    """,
)
def my_source_gradient(x, y, w_query, w_key, w_value, d_output):
    r"""Gradient of the loss with respect to the source, (kv_len, d_y), {eq}`gradient-of-source`.

    Write `my_source_gradient(x, y, w_query, w_key, w_value, d_output)`: the gradient of a loss with respect to the
    source $Y$ in cross-attention, {eq}`cross-attention`. The first five arguments are those of task {task}`cross-attention`, with shapes
    `(q_len, d_x)`, `(kv_len, d_y)`, `(d_x, d_k)`, `(d_y, d_k)`, `(d_y, d_v)`; `d_output` is the gradient at the output,
    `(q_len, d_v)`. Return an array of the shape of `y`. The scale is $1/\sqrt{d_k}$, scores are moderate
    {every}`(np.abs(x @ w_query @ (y @ w_key).T) < 100).all()`. The point is
    the formula: nine digits are compared, and a difference quotient has fewer.
    """
    query, key, value = x @ w_query, y @ w_key, y @ w_value
    scale = 1 / np.sqrt(query.shape[1])
    scores = query @ key.T * scale
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = unnormalised / unnormalised.sum(axis=1, keepdims=True)

    d_p = d_output @ value.T
    d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True))
    d_key, d_value = d_scores.T @ query * scale, p.T @ d_output
    return d_key @ w_key.T + d_value @ w_value.T


def _sixteen_points(rng):
    alpha = rng.uniform(0.05, 0.95, size=16)
    h_1, h_2, k, s = rng.normal(size=(4, 16))
    return {"alpha": alpha, "h_1": h_1, "h_2": h_2, "k": k, "s": s}


@asked(
    "context-slope",
    "How a context follows an annotation",
    kind="derive",
    equation="context-derivative-by-annotation",
    points=2,
    difficulty=4,
    minutes=12,
    trains="two ways from an annotation to a context",
    cases=[_sixteen_points],
    slips="""
        the weights taken as constants
            ` * (1 + (1 - alpha) * (h_1 - h_2) * k * s)` ->
            that is the way through the values; h_1 is also the key, so its own weight moves
        the way through the key alone
            1 + (1 - alpha) -> (1 - alpha)
            that is the way through the weights; h_1 is also a value, with the weight alpha
        the factor 1 - alpha forgotten
            (1 - alpha) * ->
            the other weight falls by as much as alpha rises: d alpha / d e_1 = alpha (1 - alpha)
        the other value forgotten
            (h_1 - h_2) -> h_1
            what h_1 gains, h_2 loses: their difference counts
        the sign turned round
            h_1 - h_2 -> h_2 - h_1
            a larger score of h_1 moves the context towards h_1, not away from it
        the score's slope by the state
            k * s -> k * h_1
            e_1 = s k h_1 is to be differentiated by h_1, which leaves s k
    """,
    hints="""
        c = alpha h_1 + (1 - alpha) h_2, and alpha depends on h_1 through e_1.
        The product rule gives alpha, plus d alpha / d h_1 times (h_1 - h_2).
        d alpha / d e_1 = alpha (1 - alpha), and d e_1 / d h_1 = k s: put the two together, `alpha * (1 + ...)`.
    """,
    why=r"""
        This is {eq}`context-derivative-by-annotation`: $h_1 - c = (1 - \alpha)(h_1 - h_2)$ and $\partial e_1 / \partial h_1 = k s$.
        The first term is the way through the value, the second the way through the key. Both carry the factor $\alpha$.
    """,
)
def my_context_slope(alpha, h_1, h_2, k, s):
    r"""Two annotations that are plain numbers, $h_1$ and $h_2$, serve as keys and as values. The decoder's state is a
    number $s$, and the scores are $e_j = s\,k\,h_j$ with a fixed factor $k$. The weight of $h_1$ is
    $\alpha = e^{e_1} / (e^{e_1} + e^{e_2})$, the context $c = \alpha h_1 + (1 - \alpha) h_2$.

    Derive $\dfrac{\partial c}{\partial h_1}$ with $h_2$, $s$ and $k$ held fixed, and write it with the symbols `alpha`,
    `h_1`, `h_2`, `k` and `s`. Sums, products and powers of them are all you need.
    """
    return alpha * (1 + (1 - alpha) * (h_1 - h_2) * k * s)


@asked(
    "source-cache-flops",
    "What the cache of the source saves",
    kind="predict",
    equation="cross-attention-decoding-flops",
    points=1,
    difficulty=2,
    minutes=6,
    trains="what is paid once and what at each step",
    tolerance=1e-6,
    variants=every(T_q=(30, 20), T_k=(40, 50), d_x=(32,), d_y=(48, 64), d_k=(16,), d_v=(24, 20)),
    slips="""
        a multiply-add counted as one
            all 2 * ->
            a multiplication and an addition are 2 operations
        the target's width for the source
            d_y * (d_k -> d_x * (d_k
            the source has rows of d_y features; d_x is the width of the target
        the source projected at each step
            (once, step, once + T_q * step) -> (once, once + step, T_q * (once + step))
            keys and values of the source do not change while the target is written: they are paid once
        no projection of the query
            2 * d_x * d_k + ->
            each step projects its own query, 2 d_x d_k, and then pays for scores and for the sum of values
        scores without the sum of values
            d_k + 2 * T_k * (d_k + d_v) -> d_k + 2 * T_k * d_k
            a step also sums the values: T_k rows of d_v features
        values not projected
            d_y * (d_k + d_v) -> d_y * d_k
            the source is projected twice, to keys and to values
        the query projected once only
            once + T_q * step -> once + 2 * d_x * d_k + T_q * 2 * T_k * (d_k + d_v)
            each step has a new row of the target, and projects it: only the source is projected once
    """,
    hints="""
        Three parts: the source's two projections, one step, and all steps with the source.
        The source: 2 T_k d_y (d_k + d_v). A step: 2 d_x d_k for the query and 2 T_k (d_k + d_v) for the rest.
        The last number is the first plus T_q times the second.
    """,
    why="""
        This is {eq}`cross-attention-decoding-flops`. Without the cache, each step would pay for the source again: here
        153 600 operations, 36 times what the step itself costs.
    """,
)
def my_flops(T_q, T_k, d_x, d_y, d_k, d_v):
    """A decoder writes $T_q$ tokens with a cross-attention layer (one head, no output projection) of $d_x$, $d_y$, $d_k$ and $d_v$
    features, over a source of $T_k$ rows, whose keys and values are computed once and kept (numbers below). A multiply-add counts as
    2 operations, softmax and scale as none. Write `my_flops = (a, b, c)`:

    - `a`: operations for the keys and values of the source;
    - `b`: operations of one step, from the row of the target to the output;
    - `c`: operations altogether.
    """
    once, step = 2 * T_k * d_y * (d_k + d_v), 2 * d_x * d_k + 2 * T_k * (d_k + d_v)
    return (once, step, once + T_q * step)


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


@asked(
    "read-date-alignment",
    "Read an alignment",
    kind="figure",
    equation="context-from-alignment-model",
    points=1,
    difficulty=2,
    minutes=5,
    trains="rows that were written, columns that were read",
    figure="charts.heatmap",
    figure_data=_alignment_to_read,
    digits=3,
    slips="""
        rows and columns exchanged
            (2, -> (3,
            look down column 1 for its largest entry, not along row 1: a column is what was read, a row what was written
        the other hyphen
            3, 0.18, -> 1, 0.18,
            the two rows of hyphens look alike, but one is nearer to a plain average: compare their largest weights
        the weight that is hidden
            3, 0.18, -> 3, 0.82,
            that is the weight on the token itself; the question asks what the other five have together
        struck without normalising again
            0.07 / 0.18 -> 0.07
            a hidden key leaves the softmax, and the rest is renormalised to sum to 1, {eq}`masking-renormalises-weights`
        shared out equally
            0.07 / 0.18 -> 0.07 + 0.82 / 5
            what the hidden key had goes to the others in proportion to their weights, not in equal parts,
            {eq}`masking-renormalises-weights`
        counted from one
            (2, 3, -> (3, 4,
            rows are counted from 0, as the labels of the figure are
    """,
    hints="""
        Rows are written tokens, and each row sums to 1; columns are source tokens and need not.
        For the second number, note the largest weight of each row and compare the five. For the third, 1 minus one weight.
        For the last one, divide the weight of token 0 in row 2 by what all tokens but December have together.
    """,
    why="""
        The written 12 reads December, with 0.82. Both hyphens look everywhere: row 3 has no weight above 0.19. A
        hidden key leaves the softmax, and what is left of row 2, 0.18, is scaled up to 1.
    """,
)
def my_reading():
    """Run the cell below: weights of five written tokens over six source tokens, both counted from 0. Write
    `my_reading = (a, b, c, d)`:

    - `a`: which row gives source token 1 its largest weight?
    - `b`: which row's largest weight is the smallest?
    - `c`: the weight of the five source tokens other than token 1 together, in row 2;
    - `d`: a mask hides source token 1, scores stay. The weight of source token 0 then, in row 2.
    """
    return (2, 3, 0.18, 0.07 / 0.18)


def _text(rng, kv_len, n_tokens, max_len, start, ends):
    """Draw until no step is a close call, and the end token comes where it is to come, or never."""
    shapes = {"y": (kv_len, 3), "w_query": (5, 2), "w_key": (3, 2), "w_value": (3, 5)}
    shapes |= {"embeddings": (n_tokens, 5), "positions": (max_len, 5), "w_output": (5, n_tokens)}
    while True:
        inputs = {**{name: rng.normal(size=shape) for name, shape in shapes.items()}, "start": start}
        logits = my_writer.answer(**inputs, end=-1)
        best = logits.argmax(axis=1).tolist()
        first = {token: best.index(token) for token in best}
        middle = [token for token, step in first.items() if 2 <= step < max_len - 1]
        fit = {
            "at_once": [token for token in best[:1] if token != start],
            "later": [token for token in middle if token != start],
            "at_the_start_token": [token for token in middle if token == start],
            "never": [token for token in range(n_tokens) if token not in first],
        }[ends]
        top = np.sort(logits, axis=1)
        if (top[:, -1] - top[:, -2]).min() > 0.1 and len(first) > 2 and fit:
            return {**inputs, "end": fit[0]}


TEXTS = """
the end token comes in the middle: 7 11 6 1 later
one token is start and end: 4 7 8 3 at_the_start_token
no end token within the positions: 6 11 4 5 never
the end token comes at step 0: 3 7 4 2 at_once
"""


@asked(
    "greedy-decoding",
    "Write a target",
    kind="write",
    equation="shifted-input-hides-target",
    points=3,
    difficulty=4,
    minutes=20,
    trains="the loop of a decoder: read the last token, ask the source, choose the next",
    forbid=(forbidden.ATTENTION,),
    cases=tried(_text, TEXTS),
    slips="""
        the start token at every step
            x = embeddings[token] -> x = embeddings[start]
            each step reads the token that the step before has chosen
        it goes on after the end
            break -> pass
            the step that chooses the end token is the last one
        the last step left out
            break -> return np.stack(rows[: max(len(rows) - 1, 1)])
            the step that chooses the end token belongs to the result
        without the positions
            ` + position` ->
            step t reads embeddings[token] + positions[t]
        without what was there
            (x + z) @ -> z @
            logits are made from x + z: the attention adds to the row that asked
        no scale
            ` / np.sqrt(key.shape[1])` ->
            the scores of the attention are divided by sqrt(d_k), {eq}`cross-attention`
        start token 1 always
            rows = start, [] -> rows = 1, []
            the first step reads the token `start`, whichever it is
        the least likely token
            .argmax() -> .argmin() ;; token == end -> rows[-1].argmax() == end
            choose the token with the largest logit
    """,
    hints="""
        Compute keys and values of the source before the loop. Which three things happen in each step?
        x = embeddings[token] + positions[t]; z = attention of the single query x @ w_query; logits = (x + z) @ w_output.
        `rows.append(logits)`, `token = logits.argmax()`, and `break` if it is `end`; at last `np.stack(rows)`.
    """,
    why="""
        Keys and values stand before the loop: the source does not change. Inside, a step costs one query, one row
        of scores and one sum. The token chosen is read in the next step, so a mistake is carried along; that is the price
        of writing without a teacher.
    """,
)
def my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end):
    r"""Write greedily until `end`; return the logits of every step,
    (n_steps, n_tokens).

    Write `my_writer(y, w_query, w_key, w_value, embeddings, positions, w_output, start, end)`. It returns the logits of
    all steps, `(n_steps, n_tokens)`. Step $t = 0, 1, \ldots$:

    - $x$ = `embeddings[token] + positions[t]`, `token` being `start` first, then the one chosen before;
    - $z$ = cross-attention, {eq}`cross-attention`, of the query $x W_Q$ over keys $Y W_K$ and values $Y W_V$;
    - logits = $(x + z)$ `@ w_output`; the largest chooses the token.

    The step that chooses `end` is the last, and part of the result; without it there are as many steps as rows of
    `positions`. Float64: `y` `(kv_len, d_y)`, `w_query` `(d_x, d_k)`, `w_key` `(d_y, d_k)`, `w_value` `(d_y, d_x)`,
    `embeddings` `(n_tokens, d_x)`, `positions` `(max_len, d_x)`, `w_output` `(d_x, n_tokens)`. `start` and `end` are
    integers, possibly equal {case}`one token is start and end`.
    """
    key, value = y @ w_key, y @ w_value
    token, rows = start, []
    for position in positions:
        x = embeddings[token] + position
        scores = key @ (x @ w_query) / np.sqrt(key.shape[1])
        unnormalised = np.exp(scores - scores.max())
        z = unnormalised @ value / unnormalised.sum()
        rows.append((x + z) @ w_output)
        token = int(rows[-1].argmax())
        if token == end:
            break
    return np.stack(rows)


ORDER = [
    note(
        "title",
        """
        Each stands for itself.
    """,
    ),
    note(
        "conventions",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; the last two answers are LaTeX. A function must not change
        its inputs. Rows are positions: $X$ is the target $(T_q, d_x)$, which asks, and $Y$ the source $(T_k, d_y)$, which answers.
    """,
    ),
    "cross-attention",
    "repair-padding-both-sides",
    "loss-over-real-tokens",
    "source-gradient",
    "context-slope",
    "source-cache-flops",
    "read-date-alignment",
    "greedy-decoding",
    note(
        "latex",
        r"""
        **The last two answers are LaTeX**, typed as text with an `r` in front: the right side of a formula, and the lines of a
        derivation. Every form that is equal counts. One index of a matrix is a row, as in `Q_i`, a transpose is typed `^\top`, and
        a sum reaches as far as its parentheses. To see how a formula is understood, `from attn_course import read` and call
        `read("gradient-of-source-row", my_gradient)`; what cannot be read is no attempt.
    """,
    ),
    "gradient-of-source-row",
    "map-read-backwards",
    "ask-the-source",
    "output-without-a-key",
]
