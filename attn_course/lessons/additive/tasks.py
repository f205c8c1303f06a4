"""The tasks on additive attention; those that are answered in LaTeX are in tasks_formulas.py."""

import math
from typing import Any

import numpy as np

from attn_course.reference import additive_scores, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import every


def _reference(query, key, value, w_query, w_key, w_score):
    return softmax(additive_scores(query, key, w_query, w_key, w_score)) @ value


def _weights(normal, d_q, d_k, d_hidden):
    """Projections of variance 1 / size, and a score vector that makes the weights uneven."""
    projections = {"w_query": normal(d_q, d_hidden) / math.sqrt(d_q), "w_key": normal(d_k, d_hidden) / math.sqrt(d_k)}
    return {**projections, "w_score": 2.0 * normal(d_hidden)}


def _draw(normal, q_len, kv_len, d_q, d_k, d_v, d_hidden, *leading):
    inputs = {"query": normal(*leading, q_len, d_q), "key": normal(*leading, kv_len, d_k), "value": normal(*leading, kv_len, d_v)}
    return {**inputs, **_weights(normal, d_q, d_k, d_hidden)}


def _scores_near_minus_and_plus_a_thousand(rng):
    """Unit 0 reads feature 0 of the query only and is saturated: it moves all scores of a query by a thousand, down for query 0.

    One maximum for all queries would let the row of query 0 vanish. The other units tell the keys apart.
    """
    inputs = _draw(lambda *shape: rng.normal(size=shape), 3, 5, 7, 2, 4, 11)
    inputs["w_query"][0], inputs["w_query"][:, 0], inputs["w_query"][0, 0] = 0.0, 0.0, 2.0
    inputs["query"][:, 0], inputs["w_score"][0] = 50.0, 1000.0
    inputs["query"][0, 0] = -50.0
    return inputs


INPUTS = """
fewer queries than keys: 3 7 5 2 11 13
more queries than keys: 7 5 2 3 13 11
a batch of two: 5 7 3 11 13 17 2
two leading axes: 1 5 7 4 11 13 2 3
"""


@asked(
    "additive-attention",
    "Additive attention",
    kind="write",
    equation="additive-score",
    points=3,
    difficulty=2,
    minutes=12,
    trains="a hidden layer for every pair by broadcasting",
    judged_by=_reference,
    cases=[tried(_draw, INPUTS), _scores_near_minus_and_plus_a_thousand],
    slips="""
        tanh outside the sum
                np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
                ->
                np.tanh(query @ w_query)[..., :, None, :] + np.tanh(key @ w_key)[..., None, :, :]
            bend the sum of the projections, not each of them: as it is, the query cancels, {eq}`plain-sum-ignores-query`
        no tanh
            np.tanh( -> (
            without tanh a score is a query part plus a key part, and the softmax does not see the query, {eq}`plain-sum-ignores-query`
        no score vector
            hidden @ w_score -> hidden.sum(axis=-1)
            adding up the hidden units treats all alike: weigh them with w_score
        the projections multiplied
            None, :] + (key -> None, :] * (key
            additive: the two projections are added inside tanh, not multiplied
        scaled like a dot product
            hidden @ w_score -> hidden @ w_score / np.sqrt(len(w_score))
            additive scores are not divided by a root: tanh already keeps them bounded, {eq}`additive-score-bound`
        softmax over the queries
            all axis=-1 -> axis=-2
            the weights of one query sum to 1 over the keys, the last axis of the scores
        no maximum subtracted
            scores - scores.max(axis=-1, keepdims=True) -> scores
            exp overflows for scores near a thousand, and all terms vanish near minus a thousand: subtract the largest score of each row
            first, {eq}`stable-softmax`
        a maximum that is not the row's own
            scores.max(axis=-1, keepdims=True) -> scores.max()
            a query whose scores lie far below what is subtracted is left with 0 / 0: take the maximum of each row, whatever its
            sign, {eq}`stable-softmax`
        a sigmoid for tanh
            np.tanh( -> 1 / (1 + np.exp(-( ;; None, :, :]) -> None, :, :])))
            the hidden units are tanh, between -1 and 1, not sigmoids between 0 and 1
        tanh after the score vector
            np.tanh( -> ( ;; hidden @ w_score -> np.tanh(hidden @ w_score)
            bend each unit first and let w_score add afterwards: tanh(...) @ w_score, not tanh(... @ w_score)
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
    """,
    hints="""
        Which array has an entry for each query, each key and each hidden unit? Write its shape down first.
        Give the projected queries a key axis of length 1 and the projected keys a query axis of length 1; then the sum broadcasts.
        `np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ w_score`, then a stable softmax, then `@ value`.
    """,
    why="""
        Each vector is projected once; the axis of length 1 lets the sum broadcast to all pairs. tanh comes after the
        sum, `w_score` after tanh. Any other order lets the query cancel or leaves more than one number per pair.
    """,
)
def my_additive_attention(query, key, value, w_query, w_key, w_score):
    """(..., q_len, d_q), (..., kv_len, d_k), (..., kv_len, d_v) and weights ->
    (..., q_len, d_v), {eq}`additive-score`.

    Write additive attention: `my_additive_attention(query, key, value, w_query, w_key, w_score)` takes float64 arrays of shape `(...,
    q_len, d_q)`, `(..., kv_len, d_k)`, `(..., kv_len, d_v)`, `(d_q, d_hidden)`, `(d_k, d_hidden)` and `(d_hidden,)`, and returns the
    outputs, `(..., q_len, d_v)`: scores of {eq}`additive-score`, without bias and scale, a softmax over the keys, an average of the
    values.

    The first three have the same leading axes: none, one or several {case}`two leading axes`. Scores may lie near 1000 for one query
    and near -1000 for another {case}`scores near minus and plus a thousand`, so the softmax must be stable; a library softmax is welcome.
    """
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    scores = hidden @ w_score
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value


@asked(
    "largest-additive-weight",
    "How sharp can it be?",
    kind="predict",
    equation="additive-weight-bound",
    points=1,
    difficulty=1,
    minutes=4,
    trains="the bound that the score vector sets",
    variants=every(score_vector=((0.5, -1, 1), (0.75, -0.5, 1), (0.5, -0.75, 1), (0.25, -1, 1)), n=(32, 24, 40)),
    digits=3,
    slips="""
        the length of v
            np.abs(score_vector).sum() -> np.linalg.norm(score_vector)
            the bound has the sum of absolute values, not the root of squares
        the plain sum of v
            np.abs(score_vector).sum() -> sum(score_vector)
            entries of both signs do not cancel: each unit can be at +1 or at -1, so absolute values count
        only the largest score counted
            -2 * -> -
            the best score can be as high as the sum and the others as low as minus the sum: the gap is twice as wide
        the largest entry of v
            np.abs(score_vector).sum() -> max(score_vector)
            all units can work together: the bound adds the absolute values of all entries
        the winner counted among the others
            n - 1 -> n
            there are n - 1 other keys
        the sign of the gap
            -2 -> 2
            the others lie below the winner: the exponent is negative
        no bound at all
            (n - 1) * np.exp(-2 * np.abs(score_vector).sum()) -> 0.0
            the scores are bounded, so no weight can come arbitrarily close to 1
        no parentheses around n - 1
            (n - 1) * -> n - 1 *
            the factor belongs to all n - 1 other keys: put n - 1 into parentheses
    """,
    hints="""
        How large can the score of a key be at most? And how small that of the others?
        Two scores differ by at most twice the sum of the absolute values.
        One key at the top, all others at the bottom: one over one plus (n - 1) times the exponential of minus that difference.
    """,
    why=r"""
        Here $\|v\|_1 = 2.5$: the best score is at most 2.5, the others at least $-2.5$, and 31 keys share what is left.
    """,
)
def my_ceiling(score_vector, n):
    """There are a score vector $v$ and $n$ keys; the cell below prints yours as `score_vector` and `n`. Which number is the largest
    weight that a key can get, by the bound of {eq}`additive-weight-bound`? Write the number, or an expression with `np.exp`.
    """
    return 1 / (1 + (n - 1) * np.exp(-2 * np.abs(score_vector).sum()))


def _sixteen_points(rng):
    t, (v, a, b) = rng.uniform(-0.9, 0.9, size=16), rng.normal(size=(3, 16))
    return {"v": v, "t": t, "a": a, "b": b}


@asked(
    "query-key-interaction",
    "Where query and key meet",
    kind="derive",
    equation="additive-query-key-interaction",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the derivative of tanh, twice",
    cases=[_sixteen_points],
    slips="""
        the first derivative
            -2 * v * t -> v ;; ` * b` ->
            that is the derivative by the query; differentiate the result once more, by the key
        the first derivative by the key
            -2 * v * t -> v ;; a * b -> b
            that is the derivative by the key; differentiate the result once more, by the query
        the product of two first derivatives
            -2 * v * t * (1 - t**2) -> v * (1 - t**2) ** 2
            a second derivative is the derivative of the first one, not a product of two
        twice by the query
            a * b -> a**2
            you differentiated by the query twice; the second derivative is by the key, whose factor is another one
        the sign turned round
            -2 -> 2
            1 - t squared falls when t grows: mind the sign
        the inner derivative of the square forgotten
            ` * (1 - t**2)` ->
            t depends on the key through tanh again, so a second factor 1 - t squared appears
        the factor two forgotten
            -2 * v -> -v
            the derivative of t squared is 2 t times that of t
        as for a dot product
            -2 * v * t * (1 - t**2) -> v
            that would be the product of the two; tanh leaves less, and nothing at t = 0
    """,
    hints="""
        By the query first: tanh has the derivative one minus tanh squared, and the chain rule adds a factor.
        Now differentiate v a (1 - t^2) by the key. Only t depends on it.
        The derivative of t by the key is (1 - t^2) b, and that of -t^2 is -2 t times it.
    """,
    why=r"""
        $\partial e / \partial q = v\,(1 - t^2)\,a$, and $t$ changes with $k$ at the rate $(1 - t^2)\,b$. At $t = 0$ nothing is
        left: a unit that is not bent yet only adds. A bias $c$ moves it away from there.
    """,
)
def my_interaction(v, t, a, b):
    r"""One hidden unit, and a query $q$ and a key $k$ that are numbers: $e = v \tanh(a q + b k + c)$. Write $t$ for the tanh. Derive
    $\dfrac{\partial^2 e}{\partial q\, \partial k}$, which says how much a key changes the way the query acts, and write it with the
    symbols `v`, `t`, `a` and `b`. Sums, products and powers of them are all you need.
    """
    return -2 * v * t * (1 - t**2) * a * b


def _concatenated(normal, q_len, kv_len, d_q, d_k, d_hidden):
    layer = {"weight": normal(d_hidden, d_q + d_k) / math.sqrt(d_q + d_k), "bias": normal(d_hidden)}
    return {"query": normal(q_len, d_q), "key": normal(kv_len, d_k), **layer, "w_score": normal(d_hidden)}


CONCATENATED = """
more query features: 3 7 5 2 11
more key features: 5 3 2 7 13
one query, equal features: 1 5 3 3 7
"""


@asked(
    "concatenated-scores",
    "One matrix, two projections",
    kind="write",
    equation="concatenation-adds-projections",
    points=2,
    difficulty=3,
    minutes=10,
    trains="reading a concatenation as a sum",
    cases=tried(_concatenated, CONCATENATED),
    slips="""
        keys first
            weight[:, :d_q] -> weight[:, key.shape[1] :] ;; weight[:, d_q:] -> weight[:, : key.shape[1]]
            the pair is [query, key]: the first d_q columns of weight belong to the query
        a reshape in place of a transposition
            d_q = query.shape[1] -> d_q, weight = query.shape[1], weight.reshape(weight.shape[::-1]).T
            reshape keeps the order of the numbers in memory; weight.T exchanges its axes
        the bias outside tanh
            ` + bias)` -> `)` ;; @ w_score -> @ w_score + bias @ w_score
            the bias belongs inside tanh: outside it would shift all scores alike and cancel
        the bias twice
            + bias -> + 2 * bias
            the bias is added once per pair: not to the query part and to the key part
        the bias forgotten
            ` + bias` ->
            without the bias the score is odd, {eq}`additive-score-is-odd`: add it inside tanh
        pairs in the wrong order
                return np.tanh(by_query[:, None] + by_key[None] + bias) @ w_score
                ->
                scores = np.tanh(by_query[None] + by_key[:, None] + bias) @ w_score
                return scores.reshape(len(query), len(key))
            the right pairs stand in the wrong places: repeat each query for all keys, and run through the keys for each query
        tanh outside the sum
            np.tanh(by_query[:, None] + by_key[None] + bias) -> (np.tanh(by_query)[:, None] + np.tanh(by_key + bias))
            tanh takes the whole sum; bent apart, the parts only add, and a softmax would not see the query,
            {eq}`plain-sum-ignores-query`
        keys in rows
            by_query[:, None] + by_key[None] -> by_query[None] + by_key[:, None]
            rows are queries, columns are keys
        no score vector
            @ w_score -> @ np.ones_like(w_score)
            weigh the hidden units with w_score instead of adding them up
    """,
    hints="""
        The matrix times the pair is a sum of two products. Which columns meet the query?
        `weight[:, :d_q]` has the shape (d_hidden, d_q); rows of queries need its transpose.
        `np.tanh((query @ weight[:, :d_q].T)[:, None] + (key @ weight[:, d_q:].T)[None] + bias) @ w_score`.
    """,
    why="""
        The first $d_q$ columns of $W$ meet the query, the rest the key: the concatenation is the sum of two projections.
        Written so, each vector is projected once; gluing all pairs first would project each query $T_k$ times.
    """,
)
def my_concat_scores(query, key, weight, bias, w_score):
    r"""(q_len, d_q), (kv_len, d_k), (d_hidden, d_q + d_k), (d_hidden,), (d_hidden,)
    -> (q_len, kv_len), {eq}`concatenation-adds-projections`.

    Some papers write the score as $v^\top \tanh(W\,[q; k] + b)$, with the pair glued together, query first: $W$ is `weight`, $b$ is
    `bias`, $v$ is `w_score`; the softmax is not part of this task. Write `my_concat_scores(query, key, weight, bias, w_score)` for
    float64 arrays of shape `(q_len, d_q)`, `(kv_len, d_k)`, `(d_hidden, d_q + d_k)` (as `torch.nn.Linear` stores its weight),
    `(d_hidden,)` and `(d_hidden,)`. It returns the scores of all pairs, `(q_len, kv_len)`: rows are queries.
    """
    d_q = query.shape[1]
    by_query = query @ weight[:, :d_q].T
    by_key = key @ weight[:, d_q:].T
    return np.tanh(by_query[:, None] + by_key[None] + bias) @ w_score


def _sentences(normal, width, d_q, d_k, d_hidden, *lengths):
    """A batch; padding holds numbers of its own."""
    batch = {"state": normal(len(lengths), d_q), "annotations": normal(len(lengths), width, d_k), "lengths": np.array(lengths)}
    return {**batch, **_weights(normal, d_q, d_k, d_hidden)}


def _padding_up_to_1e12(rng):
    """A batch whose padding shows in the average with the smallest of weights."""
    inputs = _sentences(lambda *shape: rng.normal(size=shape), 5, 7, 2, 11, 3, 5, 1)
    inputs["annotations"][np.arange(5) >= inputs["lengths"][:, None]] *= 1e12
    return inputs


SENTENCES = """
three sentences: 7 4 5 11 7 2 5
every sentence shorter than the batch is wide: 5 3 7 2 3 1
an empty sentence: 6 2 11 7 4 0 2 3 1
one sentence: 5 2 7 4 3
only empty sentences: 3 5 4 7 0 0
"""


@asked(
    "repair-aligner-padding",
    "Repair an aligner that listens to padding",
    kind="repair",
    equation="additive-attention",
    points=3,
    difficulty=3,
    minutes=10,
    trains="hiding keys before the softmax",
    broken="""
        scores = np.where(real, scores, -np.inf)
        highest = scores.max(axis=1, keepdims=True)
        unnormalised = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
        total = unnormalised.sum(axis=1, keepdims=True)
        weights = unnormalised / np.where(total == 0.0, 1.0, total)
        ->
        scores = scores * real
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    """,
    exact_zeros=True,
    cases=[tried(_sentences, SENTENCES), _padding_up_to_1e12],
    slips="""
        padding scored 0
            scores, -np.inf -> scores, 0.0
            a score of 0 is a score like any other: e to the 0 is 1, so padding keeps its weight. Its score must be minus infinity
        weights cut after the softmax
            scores = np.where(real, scores, -np.inf) -> ;; weights, annotations) -> weights * real, annotations)
            the weights of the real words no longer sum to 1: hide padding before the softmax, or divide by what is left
        rows of padding set to zero
                scores = np.tanh(
                ->
                annotations = annotations * (np.arange(annotations.shape[1]) < lengths[:, None])[..., None]
                scores = np.tanh(
                ;;
                scores = np.where(real, scores, -np.inf) ->
            a row of zeros adds nothing to the average, but its score is still a number and takes weight from the words
        a large negative number for minus infinity
            scores, -np.inf -> scores, -1e9
            an empty sentence has equal scores then, and averages its padding: use minus infinity and give it zeros
        an empty sentence gets its first row
            < lengths[:, None] -> < np.maximum(lengths, 1)[:, None]
            a sentence of length 0 has no word to look at: the question asks for zeros there
        the state ignored
            (state @ w_query)[:, None] + ->
            the state asks: its projection belongs inside tanh
        no mask
            scores = np.where(real, scores, -np.inf) ->
            padding takes part: its rows get weight, and what they hold gets into the context
        one row too many
            < lengths -> <= lengths
            places are counted from 0: a sentence of length 3 has the places 0, 1 and 2
        padding taken from the left
            < lengths[:, None] -> >= annotations.shape[1] - lengths[:, None]
            the real words come first and padding follows; you kept the last places
        an empty sentence gives NaN
            np.where(np.isneginf(highest), 0.0, highest) -> highest ;; np.where(total == 0.0, 1.0, total) -> total
            with no word at all the softmax is 0 / 0: the question asks for zeros there
        the padding attended to, the sentence hidden
            < lengths[ -> >= lengths[
            the polarity is inverted: the first `lengths[b]` annotations are the real ones
    """,
    hints="""
        What is e to the power of the score that padding gets? Give all annotations the value 1: does the context come out as 1?
        `np.where(real, scores, -np.inf)` hides a score; its exponential is exactly 0.
        For an empty sentence replace the maximum minus infinity by 0, and a sum of 0 by 1: then 0 / 1 is what is wanted.
    """,
    why=r"""
        Times 0 gives a *score* of 0, and $e^0 = 1$ is a weight like any other; $-\infty$ gives $e^{-\infty} = 0$. With no
        word at all the row would be $-\infty - (-\infty)$ and then 0 / 0, so both places need a definition: zeros.
    """,
)
def contexts(state, annotations, lengths, w_query, w_key, w_score):
    """Average the annotations of each sentence under its aligner: (batch, d_q),
    (batch, length, d_k), (batch,) -> (batch, d_k).

    The function below should compute the context of each sentence of a batch, {eq}`additive-attention`: `state` is `(batch, d_q)`,
    `annotations`
    `(batch, length, d_k)`; `lengths` holds the number of real words of each sentence, `(batch,)`, integers from 0 to `length`;
    `w_query`, `w_key` and `w_score` are `(d_q, d_hidden)`, `(d_k, d_hidden)` and `(d_hidden,)`. The result is `(batch, d_k)`. Words
    come first, then padding, which may hold any finite numbers {case}`padding up to 1e12`. Scores are moderate {lowest}`-100`.

    Padding gets into the averages. Repair it: padding must have no weight, and a sentence **without any word** gets zeros.
    """
    scores = np.tanh((state @ w_query)[:, None] + annotations @ w_key) @ w_score
    real = np.arange(annotations.shape[1]) < lengths[:, None]
    scores = np.where(real, scores, -np.inf)
    highest = scores.max(axis=1, keepdims=True)
    unnormalised = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
    total = unnormalised.sum(axis=1, keepdims=True)
    weights = unnormalised / np.where(total == 0.0, 1.0, total)
    return np.einsum("bj,bja->ba", weights, annotations)


def _alignment_to_read() -> dict[str, Any]:
    weights = np.array(
        [
            [0.06, 0.10, 0.64, 0.08, 0.12],
            [0.55, 0.08, 0.07, 0.16, 0.14],
            [0.15, 0.45, 0.15, 0.13, 0.12],
            [0.30, 0.17, 0.13, 0.22, 0.18],
        ]
    )
    return {
        "matrix": weights,
        "rows": ["written 0", "written 1", "written 2", "end"],
        "columns": ["word 0", "word 1", "word 2", "pad 3", "pad 4"],
        "row_label": "target",
        "column_label": "source",
        "title": "Weights of an aligner that was not told what is padding",
        "alt": "Heatmap of weights; rows are three words written and the end, columns three source words and two rows of padding. "
        + " ".join(f"Row {i}: {', '.join(f'{p:.2f}' for p in row)}." for i, row in enumerate(weights)),
    }


@asked(
    "read-padded-alignment",
    "Read an alignment",
    kind="figure",
    equation="additive-attention",
    points=1,
    difficulty=2,
    minutes=5,
    trains="rows, columns and renormalising",
    figure="charts.heatmap",
    figure_data=_alignment_to_read,
    digits=3,
    slips="""
        rows and columns exchanged, or counted from one
            (1, -> (2,
            the first question goes down the column of source word 0 and names a row, counted from 0
        one column of padding
            0.22 + 0.18 -> 0.22
            two columns are padding: add both
        padding in another row
            0.22 + 0.18 -> 0.25
            the second question is about the last row, “end”
        not renormalised
            0.45 / (0.15 + 0.45 + 0.15) -> 0.45
            hiding padding before the softmax does not leave the other weights as they are: they share what padding had
        padding's weight handed to the largest
            0.45 / (0.15 + 0.45 + 0.15) -> 0.7
            what padding had is shared in proportion, not given to one word: divide by the sum of the real weights
        shared equally
            0.45 / (0.15 + 0.45 + 0.15) -> 0.45 + 0.25 / 3
            the softmax keeps the ratios of the real words: divide by their sum instead of adding equal parts
    """,
    hints="""
        A column belongs to a source word, a row to a step of the decoder.
        Second question: add the two padding columns of the last row.
        A softmax over fewer keys keeps the ratios of the others: divide the weight by the sum of the three real ones.
    """,
    why="""
        Column "word 0" is largest in row 1 (0.55). Padding takes 0.40 of the last row. Hiding keys keeps the ratios of the
        others, so the weight is divided by the sum of the real ones: 0.45 / 0.75 = 0.6.
    """,
)
def my_reading():
    """Run the cell below. It shows the weights of an aligner: rows are steps of the decoder, columns are places of the source, of which
    the last two are padding that was **not** masked. Write three numbers as `my_reading = (a, b, c)`:

    - `a`: at which row, counted from 0, does source word 0 get its largest weight?
    - `b`: how much weight goes to padding in the row "end"?
    - `c`: the same model, the same scores, but now padding is hidden before the softmax. What is the weight of word 1 in the
      row "written 2"?

    Take the digits in the cells as exact.
    """
    return (1, 0.22 + 0.18, 0.45 / (0.15 + 0.45 + 0.15))


@asked(
    "additive-training-memory",
    "What a training step must hold",
    kind="predict",
    equation="additive-memory-overhead",
    points=1,
    difficulty=2,
    minutes=4,
    trains="counting numbers for pairs and units",
    variants=every(B=(64, 48), T_q=(30, 24), T_k=(50, 40, 60), d_h=(100, 80)),
    digits=3,
    slips="""
        numbers instead of bytes
            ` * 4` ->
            a float32 number has 4 bytes
        one sentence only
            B * T_q -> T_q
            the batch has many sentences, and each has a hidden layer of its own
        the scores
            d_h * 4 -> 4
            that is one number per pair; the hidden layer has d_h for each pair
        counted in mebibytes
            1e6 -> 2**20
            a megabyte here is a million bytes, not 2 to the power of 20
        double precision
            4 / -> 8 /
            float32 takes 4 bytes, not 8
        units for positions, not pairs
            T_q * T_k -> (T_q + T_k)
            tanh acts on each pair: the two lengths multiply
        in bytes
            ` / 1e6` ->
            the question asks for millions of bytes
        counted in gigabytes
            / 1e6 -> / 1e9
            a megabyte is a million bytes; you divided by a thousand million
        bits for bytes
            d_h * 4 -> d_h * 32
            a 32-bit number takes 4 bytes: you counted bits
    """,
    hints="""
        The hidden layer has an entry for each sentence, each pair and each unit.
        Sentences, target words times source words, units, and bytes of a number.
        Multiply the five numbers and divide by a million.
    """,
    why="""
        A number for each sentence, pair and unit, {eq}`additive-memory-overhead`: here 9.6 million of them. The scores take a hundredth.
    """,
)
def my_megabytes(B, T_q, T_k, d_h):
    """A training step: $B$ sentences at a time, $T_q$ target words, $T_k$ source words, $d_h$ hidden units, float32; the cell below
    prints your numbers. How many megabytes (millions of bytes) does the hidden layer of the additive scores of all pairs take, stored
    once?
    """
    return B * T_q * T_k * d_h * 4 / 1e6


def _backward(normal, q_len, kv_len, d_q, d_k, d_hidden):
    pairs = {"query": normal(q_len, d_q), "key": normal(kv_len, d_k)}
    return {**pairs, **_weights(normal, d_q, d_k, d_hidden), "d_scores": normal(q_len, kv_len)}


BACKWARD = """
fewer queries than keys: 3 7 5 2 11
more queries than keys: 7 5 2 3 13
one query: 1 5 3 7 2
"""


@asked(
    "additive-backward",
    "The backward pass of additive scores",
    kind="write",
    equation="additive-derivative-by-query",
    points=4,
    difficulty=4,
    minutes=20,
    trains="gradients through a broadcast sum",
    forbid=(forbidden.AUTOGRAD,),
    cases=tried(_backward, BACKWARD),
    slips="""
        the derivative of tanh forgotten
            (1 - hidden**2) -> 1.0
            tanh has the derivative 1 - t^2, {eq}`additive-derivative-by-query`: a saturated unit passes nothing on
        1 - t instead of 1 - t squared
            1 - hidden**2 -> 1 - hidden
            the derivative of tanh is 1 - t^2, with the square
        the square of what goes into tanh
            (1 - hidden**2) -> (1 - ((query @ w_query)[:, None] + (key @ w_key)[None]) ** 2)
            1 - t^2 takes the output of tanh, not its argument
        tanh applied twice
            1 - hidden**2 -> 1 - np.tanh(hidden) ** 2
            t is already tanh of the sum: the slope is 1 - t^2, without another tanh
        ones for the gradient that arrives
                hidden = np.tanh(
                ->
                d_scores = np.ones_like(d_scores)
                hidden = np.tanh(
            every pair has its own d_scores, which multiplies all that flows back through it
        averages instead of sums
                d_before.sum(axis=1), d_before.sum(axis=0) -> d_before.mean(axis=1), d_before.mean(axis=0)
                ;;
                d_scores, hidden) -> d_scores, hidden) / d_scores.size
            what was broadcast forwards is summed backwards, not averaged
        the score vector forgotten on the way back
            * w_score * (1 -> * (1
            unit r reaches the score with the factor v_r, so its gradient carries v_r
        the score vector's gradient from the sums before tanh
            d_scores, hidden) -> d_scores, (query @ w_query)[:, None] + (key @ w_key)[None])
            the score is v times the bent units: the gradient of v collects tanh of the sums
    """,
    hints="""
        Keep the hidden layer (q_len, kv_len, d_hidden). Its gradient is d_scores, spread over the units by w_score, times 1 - t^2.
        A projected query went into all pairs of its row: sum the hidden gradient over the keys; and for keys over the queries.
        With `d_before = d_scores[..., None] * w_score * (1 - hidden**2)`: `d_query = d_before.sum(axis=1) @ w_query.T`, and so on.
    """,
    why="""
        What was broadcast forwards is summed backwards: a projected query took part in all pairs of its row, a projected key in
        all pairs of its column, the score vector in all pairs. The factor $1 - t^2$ closes saturated units.
    """,
)
def my_additive_backward(query, key, w_query, w_key, w_score, d_scores):
    """Gradients (d_query, d_key, d_w_query, d_w_key, d_w_score) from d_scores
    (q_len, kv_len), {eq}`additive-derivative-by-query`.

    Write the backward pass of additive scores for one example:
    `my_additive_backward(query, key, w_query, w_key, w_score, d_scores)` takes `(q_len, d_q)`, `(kv_len, d_k)`,
    `(d_q, d_hidden)`, `(d_k, d_hidden)`, `(d_hidden,)` and the gradient of a loss with respect to the scores of {eq}`additive-score`,
    `(q_len, kv_len)`. It returns the tuple `(d_query, d_key, d_w_query, d_w_key, d_w_score)` of gradients, each of the shape of what
    it belongs to. There is no softmax in this task.
    """
    hidden = np.tanh((query @ w_query)[:, None] + (key @ w_key)[None])
    d_before = d_scores[..., None] * w_score * (1 - hidden**2)
    d_projected_query, d_projected_key = d_before.sum(axis=1), d_before.sum(axis=0)
    d_w_score = np.einsum("ij,ijr->r", d_scores, hidden)
    return (
        d_projected_query @ w_query.T,
        d_projected_key @ w_key.T,
        query.T @ d_projected_query,
        key.T @ d_projected_key,
        d_w_score,
    )


ORDER = [
    note(
        "title",
        """
        Each stands for itself, so take them in any order. Those on derivatives, {task}`query-key-interaction`, {task}`additive-backward`,
        {task}`gradient-of-query-projection` and {task}`query-moves-weight`, lean on the last *Deeper* section, the others on the core.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs. Rows are
        positions. `w_query`, `w_key` and `w_score` are $W_Q$, $W_K$ and $v$ of the lesson.
    """,
    ),
    "additive-attention",
    "largest-additive-weight",
    "query-key-interaction",
    "concatenated-scores",
    "repair-aligner-padding",
    "read-padded-alignment",
    "additive-training-memory",
    "additive-backward",
    note(
        "answers-in-latex",
        r"""
        ## Answers in LaTeX The last three answers are LaTeX, between `r"` and `"`: the right side of a formula. Any form counts that has
        the right value in every case. To see how yours is understood, `from attn_course import read` and call
        `read("gradient-of-query-projection", my_entry_gradient)`; what cannot be read is no attempt. A sum ends at the next plus or
        minus, so put parentheses around several terms, `\sum_r (a_r + b_r)`; a transpose is written `^\top`.
    """,
    ),
    "gradient-of-query-projection",
    "saturated-additive-score",
    "query-moves-weight",
    "scores-by-network",
    "nearest-key-by-product",
]
