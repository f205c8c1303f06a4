"""The tasks on absorption: one matrix for queries and keys; latent attention is in tasks_latent.py, LaTeX in tasks_formulas.py."""

import math
from typing import Any

import numpy as np

from attn_course.reference import absorb_query_key, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import Case


def _reference(w_query, w_key, n_heads):
    return absorb_query_key(w_query, w_key, n_heads) / math.sqrt(w_query.shape[1] // n_heads)  # the package leaves the scale out


def _heads(normal, d_query, d_key, n, d_k):
    return {"w_query": normal(d_query, n * d_k), "w_key": normal(d_key, n * d_k), "n_heads": n}


HEADS = """
two heads: 5 7 2 3
three heads: 7 5 3 2
five heads: 11 13 5 3
one head: 3 2 1 5
"""


@asked(
    "absorbed-head-matrices",
    "One matrix for each head",
    kind="write",
    equation="absorbed-score",
    points=2,
    difficulty=2,
    minutes=8,
    trains="absorbing W_K, and the scale with it",
    judged_by=_reference,
    cases=tried(_heads, HEADS),
    slips="""
        no scale
            ` / np.sqrt(query.shape[2])` ->
            fold the scale in: divide by the root of d_k, the width of one head
        the scale of all heads together
            query.shape[2] -> w_query.shape[1]
            `w_query` has n_heads * d_k columns; the scale belongs to one head, the root of d_k
        the scale of the matrix that comes out
            query.shape[2] -> len(w_query)
            the form is large, but its scale is still that of the d_k terms of a score, {eq}`absorbed-multi-head-attention`
        divided by d_k
            np.sqrt(query.shape[2]) -> query.shape[2]
            divide by the root of d_k, not by d_k
        one form for all heads
            query @ key.swapaxes(1, 2) -> np.repeat((w_query @ w_key.T)[None], n_heads, axis=0)
            `w_query @ w_key.T` is the sum of all heads' forms; each head needs its own block of columns
        columns dealt round
            w.reshape(len(w), n_heads, -1).swapaxes(0, 1) -> w.reshape(len(w), -1, n_heads).transpose(2, 0, 1)
            a head owns neighbouring columns, not every n_heads-th one
        split by a bare reshape
            w.reshape(len(w), n_heads, -1).swapaxes(0, 1) -> w.reshape(n_heads, len(w), -1)
            reshaped to (n_heads, d, d_k) at once, a head gets whole rows of the matrix: cut the columns first, then swap the axes
        W_K W_Q^T: the keys ask
            query @ key.swapaxes(1, 2) -> key @ query.swapaxes(1, 2)
            rows of the form belong to the token that asks: W_Q stands on the left, {eq}`absorbed-score`
    """,
    hints="""
        Cut the columns of both matrices into heads; then each head is a product of two small matrices.
        `w.reshape(d, n_heads, d_k).swapaxes(0, 1)` has a head in front; transpose the last two axes of the keys.
        query @ key.swapaxes(1, 2) / np.sqrt(d_k), with (n_heads, d, d_k) each
    """,
    why="""
        Each head has a product of its own; `w_query @ w_key.T` as a whole would be their sum. The scale knows the $d_k$
        terms of a score before absorbing.
    """,
)
def my_forms(w_query, w_key, n_heads):
    r"""(d_query, n_heads * d_k), (d_key, n_heads * d_k) -> (n_heads, d_query, d_key),
    {eq}`absorbed-score` with the scale.

    Write `my_forms(w_query, w_key, n_heads)`: the bilinear form of every head, **with the scale folded in**. `w_query` has shape
    `(d_query, n_heads * d_k)`, `w_key` `(d_key, n_heads * d_k)`; the integer `n_heads` divides the columns, and head $h$ owns the
    $h$-th block of $d_k$ neighbouring columns of each. Return shape `(n_heads, d_query, d_key)`, so that `x @ forms[h] @ y.T` are
    the scores of head $h$ as the softmax gets them, with the scale $1/\sqrt{d_k}$.
    """
    query, key = (w.reshape(len(w), n_heads, -1).swapaxes(0, 1) for w in (w_query, w_key))
    return query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2])


def _columns(normal, d, length, d_k):
    return {"tokens": normal(d, length), "w_query": normal(d_k, d) / 2, "w_key": normal(d_k, d) / 2}


COLUMNS = """
more positions than features: 3 7 2
more features than positions: 7 3 5
wide queries: 2 5 11
d_k = 1: 5 4 1
one position: 5 1 3
"""


@asked(
    "repair-columns-attention",
    "Repair X softmax(X^T W X)",
    kind="repair",
    equation="absorbed-attention-in-columns",
    points=2,
    difficulty=2,
    minutes=8,
    trains="which product belongs to which convention",
    broken="w_key.T @ w_query -> w_query.T @ w_key ;; ` / np.sqrt(len(w_query))` ->",
    cases=tried(_columns, COLUMNS),
    slips="""
        W transposed, the scale put in
            w_key.T @ w_query -> w_query.T @ w_key
            the scale is right; but entry (j, i) is key j against query i, so the matrix between is W_K^T W_Q,
            {eq}`absorbed-attention-in-columns`
        W right, no scale
            ` / np.sqrt(len(w_query))` ->
            the product is right; the scores still need the scale 1 / sqrt(d_k)
        divided by the root of d
            len(w_query) -> len(tokens)
            W is d x d, but d_k, the rows of `w_query`, sets the scale
        divided by the root of T
            len(w_query) -> tokens.shape[1]
            a score is a sum over features, so the number of positions plays no part in its scale
        softmax over the queries
            all axis=0 -> axis=1
            each column belongs to a query; its weights must sum to 1 down the column, axis 0, as the code had it
        both transposed
            w_key.T @ w_query -> w_query.T @ w_key ;; all axis=0 -> axis=1
            the weights are right but transposed: the tokens stand on the left, so weights of query i must be column i
        the maximum along the other axis
            scores.max(axis=0 -> scores.max(axis=1
            the softmax runs down the columns, so what is subtracted must be one number for a whole column, its largest
    """,
    hints="""
        Write the score of query i with key j, and find its place in the matrix if softmax runs down a column.
        (W_K X)^T (W_Q X) has keys in rows. What stands between X^T and X?
        `tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))`
    """,
    why=r"""
        (1) Softmax runs down a column, so keys must stand in the rows: $(W_K X)^\top (W_Q X)$. (2) The scale. No shape can
        tell, for the absorbed matrix is square.
    """,
)
def columns_attention(tokens, w_query, w_key):
    r"""Self-attention with columns as positions: tokens (d, T), w_query (d_k, d),
    w_key (d_k, d) -> Z (d, T).

    In this task **columns are positions**. The function below should compute self-attention with the tokens as values,
    {eq}`absorbed-attention-in-columns`: `tokens` has shape `(d, T)`, `w_query` and `w_key` have shape `(d_k, d)` and act from the left,
    $W_Q z$; the result has shape `(d, T)`, and the scale is $1/\sqrt{d_k}$. It raises no error, and it is wrong in two places. Repair it.
    """
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights


def _forms(normal, d_query, d_key, d_k):
    return {"w_query": normal(d_query, d_k), "w_key": normal(d_key, d_k), "d_form": normal(d_query, d_key)}


FORMS = """
wide: 5 7 3
narrow: 7 3 1
d_k above both: 2 3 5
a square form: 5 5 3
"""


@asked(
    "absorbed-matrix-backward",
    "Back through the product",
    kind="write",
    equation="absorbed-score",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the gradient that the two factors receive",
    cases=tried(_forms, FORMS),
    forbid=(forbidden.AUTOGRAD,),
    slips="""
        the order exchanged
            d_form @ w_key, d_form.T @ w_query -> d_form.T @ w_query, d_form @ w_key
            both are right, but return the gradient of `w_query` first
        gradients transposed
            d_form @ w_key, d_form.T @ w_query -> (d_form @ w_key).T, (d_form.T @ w_query).T
            a gradient has the shape of what it belongs to; yours are transposed
        a scale that is not there
            w_key, d_form.T @ w_query -> w_key / np.sqrt(w_query.shape[1]), d_form.T @ w_query / np.sqrt(w_query.shape[1])
            this product has no scale: it is W_Q W_K^T itself
        each factor's half
            w_key, d_form.T @ w_query -> w_key / 2, d_form.T @ w_query / 2
            a product has no halves: each factor gets the whole, with the other one held fixed
        the keys held fixed
            d_form.T @ w_query -> np.zeros_like(w_key)
            the gradient of `w_query` is right; `w_key` gets one too, from the other product
        d_form forgotten
                return
                ->
                d_form = np.ones_like(d_form)
                return
            yours is the gradient of the sum of all entries; weigh entry (a, b) with d_form[a, b]
        the wrong sign
            d_form @ w_key, d_form.T -> -d_form @ w_key, -d_form.T
            the sign is turned: a gradient, not a step of descent, is asked for
    """,
    hints="""
        One entry: W[a, b] = sum over c of w_query[a, c] * w_key[b, c]. In which entries does w_query[a, c] appear?
        dL/dw_query[a, c] = sum over b of d_form[a, b] * w_key[b, c]: write it as a matrix product.
        `d_form @ w_key`, and the same with `d_form` transposed and the roles exchanged
    """,
    why=r"""
        $W_{ab} = \sum_c (W_Q)_{ac} (W_K)_{bc}$, so entry $(a, c)$ of $W_Q$ meets $(W_K)_{bc}$ in every entry $(a, b)$. A
        large key matrix makes large gradients for the queries: the gauge changes nothing in the function, but it does change the
        steps of training.
    """,
)
def my_form_backward(w_query, w_key, d_form):
    """Gradients (d_w_query, d_w_key) from d_form (d_query, d_key).

    The forward pass was `form = w_query @ w_key.T`, without a scale: `w_query` has shape `(d_query, d_k)`, `w_key`
    `(d_key, d_k)`. Write the backward pass `my_form_backward(w_query, w_key, d_form)`: from the gradient of a loss with respect
    to the form, `(d_query, d_key)`, it returns the tuple `(d_w_query, d_w_key)`, each of the shape of what it belongs to.
    """
    return d_form @ w_key, d_form.T @ w_query


def _bias_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, q_len, kv_len, d_v, d_model in (
        ("rows sum to 1", 5, 7, 3, 11),
        ("empty rows", 7, 5, 2, 3),
        ("dropped weights", 5, 11, 3, 7),
        ("one query", 1, 5, 7, 3),
        ("only empty rows", 3, 5, 2, 7),
    ):
        weights = softmax(rng.normal(size=(q_len, kv_len)))
        if name == "empty rows":
            weights[[1, 4]] = 0.0
        if name == "only empty rows":
            weights[...] = 0.0
        if name == "dropped weights":  # every third weight of row r, from r on; the others grow
            weights = np.where((np.arange(kv_len) + np.arange(q_len)[:, None]) % 3 > 0, weights * 1.5, 0.0)
            weights[3] = 0.0
        cases.append(Case(name, weights=weights, b_value=rng.normal(size=d_v), w_output=rng.normal(size=(d_v, d_model))))
    return cases


@asked(
    "value-bias-contribution",
    "What the value bias adds",
    kind="write",
    equation="value-bias-becomes-constant",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the assumption behind a constant",
    cases=_bias_cases,
    slips="""
        a constant in every row
            weights.sum(axis=1, keepdims=True) -> np.ones((len(weights), 1))
            b_V W_O arrives undiminished only where the weights of a row sum to 1
        all or nothing
            weights.sum(axis=1, keepdims=True) -> (weights.sum(axis=1, keepdims=True) > 0)
            empty rows are right; but a row with dropped weights may sum to any number, and that is the factor
        the mean of a row
            .sum -> .mean
            the factor is the sum of a row of weights, not its mean
        before W_O
            (b_value @ w_output) -> b_value
            that is what the bias adds to the heads; the output projection still follows
        the largest weight
            .sum -> .max
            every key brings the bias along: add all weights of the row
        one factor for all rows
            weights.sum(axis=1, keepdims=True) -> np.full((len(weights), 1), weights.sum(axis=1).mean())
            each row has a sum of its own; you took one factor for all of them
        the number of keys
            weights.sum(axis=1, keepdims=True) -> np.full((len(weights), 1), 1.0 * weights.shape[1])
            each key adds the bias with its weight: what counts is the sum of the weights of a row, not how many there are
    """,
    hints="""
        Write weights @ (values + b_value) as a sum of two products.
        `np.ones((kv_len, 1)) * b_value` is the second one's matrix of values; multiply the weights by its ones first.
        the sums of the rows, (q_len, 1), times `b_value @ w_output`
    """,
    why=r"""
        $P (V + \mathbf{1} b_V) W_O - P V W_O = (P \mathbf{1})\, b_V W_O$, and $P \mathbf{1}$ are the sums of the rows. Only
        where they are all 1 is it a constant that an output bias could take over.
    """,
)
def my_bias_part(weights, b_value, w_output):
    """(q_len, kv_len), (d_v,), (d_v, d) -> (q_len, d): the bias's part of the
    output.

    Write `my_bias_part(weights, b_value, w_output)`: what a value bias adds to the output of one head, that is, the output with
    the bias minus the output without it. `weights` has shape `(q_len, kv_len)`, entries 0 or more. In some cases rows are all
    zero (nothing may be attended to), or dropout has removed weights and enlarged the rest; take them as they are. `b_value`
    `(d_v,)` is added to every value; `w_output` is `(d_v, d)`. Return shape `(q_len, d)`.
    """
    return weights.sum(axis=1, keepdims=True) * (b_value @ w_output)


_FORM = np.array(
    [
        [0.2, 1.4, -0.6, 0.3, 0.0],
        [-0.8, 0.5, 0.9, 0.1, 1.2],
        [1.0, -0.3, 0.7, -0.5, 0.4],
        [0.6, 0.8, -0.2, -0.9, 1.1],
        [0.3, -0.4, 1.6, 0.2, 0.1],
    ]
)


def _form_to_read() -> dict[str, Any]:
    return {
        "matrix": _FORM,
        "title": "A bilinear form of five features, the scale folded in",
        "alt": "Heatmap of five features that ask, in rows, and five that answer, in columns. "
        + " ".join(f"Row {n}: {', '.join(f'{value:.1f}' for value in row)}." for n, row in enumerate(_FORM)),
        "signed": True,
        "digits": 1,
        "color_label": "score",
        "column_label": "feature that answers",
        "row_label": "feature that asks",
    }


@asked(
    "read-bilinear-form",
    "Read a bilinear form",
    kind="figure",
    equation="self-score-symmetric-part",
    points=2,
    difficulty=2,
    minutes=8,
    trains="asking, answering, and the two parts of a form",
    figure="charts.heatmap",
    tolerance=1e-3,
    figure_data=_form_to_read,
    slips="""
        asked and answering exchanged
            (2, -> (1,
            rows ask: the row of feature 4, not its column, says whom it asks for
        the antisymmetric part
            0.2 -> -0.8
            W_+ takes half of the sum of both entries; half of the difference is W_-
        the sum not halved
            0.2 -> 0.4
            W_+ has a factor 1/2: it is half of the sum of the form and its transpose
        one of the two entries
            0.2 -> -0.6
            entry (0, 2) of W_+ needs entry (0, 2) and entry (2, 0) of the form
        the diagonal only
            1.4 -> 0.6
            x has two features, so its score with itself has four terms; you took the diagonal
        one of the mixed terms
            1.4 -> 1.8
            the mixed terms are two: feature 1 asks feature 4, and feature 4 asks feature 1
        the mixed terms only
            1.4 -> 0.8
            each feature also scores with itself: the two entries on the diagonal are missing
        features counted from 1
            (2, -> (3,
            features are counted from 0, as the axes say
    """,
    hints="""
        Row: who asks. Column: who answers.
        W_+ is half of the sum of the form and its transpose; x W x^T adds all entries in the rows and columns where x is 1.
        Third: entries (1, 1), (1, 4), (4, 1) and (4, 4).
    """,
    why=r"""
        Row 4 is largest in column 2 (1.6). $(-0.6 + 1.0)/2 = 0.2$. And $x W x^\top$ adds four entries:
        $0.5 + 1.2 - 0.4 + 0.1 = 1.4$; {eq}`self-score-symmetric-part` gives the same from $W_+$, $0.5 + 2 \cdot 0.4 + 0.1$.
    """,
)
def my_reading():
    """The cell below shows a bilinear form $W$ of five features, counted from 0, with the scale folded in; features that ask stand
    in rows. The numbers are exact. Write `my_reading = (a, b, c)`:

    - `a`: feature 4 asks. For which feature does it ask most?
    - `b`: what is entry $(0, 2)$ of the symmetric part $W_+$?
    - `c`: a token has the features 1 and 4, each with value 1, and no others. What is its score with itself?
    """
    return (2, 0.2, 1.4)


ORDER = [
    note(
        "conventions",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
        positions, and a projection is `x @ w`, unless the task says otherwise. Heads own neighbouring columns of a projection, and
        neighbouring rows of `w_output`. There are no masks, and all scores are moderate. The last three answers are LaTeX.
    """,
    ),
    "absorbed-head-matrices",
    "repair-columns-attention",
    "absorbed-matrix-backward",
    "value-bias-contribution",
    "read-bilinear-form",
    "latent-cache-size",
    "joint-key-value-compression",
    "absorption-break-even",
    "repair-decoupled-scores",
    "latent-decoding-step",
    note(
        "latex",
        r"""
        **The last three answers are LaTeX**, typed as text with an `r` in front, such as `r"x_i W x_j^\top"`. All vectors are rows, and a
        transpose is typed `^\top`. Every form that is equal counts. To see how yours is understood, `from attn_course import read`
        and call `read("absorb-projections-and-biases", my_derivation)`, and likewise in the other two; what cannot be read is no
        attempt.
    """,
    ),
    "absorb-projections-and-biases",
    "gauge-of-the-values",
    "query-that-asks-latents",
    "head-with-biases-absorbed",
    "step-among-latents",
    "key-with-rotary-part",
]
