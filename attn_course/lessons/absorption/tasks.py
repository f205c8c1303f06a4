"""The graded tasks on absorption: one matrix for queries and keys; those on latent attention are in tasks_latent.py.

Those answered in LaTeX are in tasks_formulas.py.
"""

import math
from typing import Any

import numpy as np

from attn_course.lessons.absorption.tasks_formulas import ABSORBED_BIASES, ABSORBED_QUERY, VALUE_GAUGE
from attn_course.lessons.absorption.tasks_latent import BREAK_EVEN, BYTES, DECOUPLED, JOINT, STEP
from attn_course.reference import absorb_query_key, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.core import Case, Task, Wrong

# ---- 10.1 the forms of all heads


def _blocks(w: np.ndarray, n_heads: int, cut: str = "columns") -> np.ndarray:
    """(d, n_heads * d_k) -> (n_heads, d, d_k), by neighbouring columns; by mistake dealt round, or by rows of memory."""
    rows, width = w.shape[0], w.shape[1] // n_heads
    if cut == "at once":
        return w.reshape(n_heads, rows, width)
    return w.reshape(rows, width, n_heads).transpose(2, 0, 1) if cut == "dealt" else w.reshape(rows, n_heads, width).transpose(1, 0, 2)


def _forms(
    w_query: np.ndarray, w_key: np.ndarray, n_heads: int, *, divisor: float | None = None, cut: str = "columns", turned: bool = False
) -> np.ndarray:
    """The scaled form of each head with one step done differently."""
    query, key = _blocks(w_query, n_heads, cut), _blocks(w_key, n_heads, cut)
    form = query @ key.swapaxes(1, 2) / (divisor or math.sqrt(query.shape[2]))
    return form.swapaxes(1, 2) if turned else form


def _forms_cases(rng: np.random.Generator) -> list[Case]:
    sizes = (("two heads", 5, 7, 2, 3), ("three heads", 7, 5, 3, 2), ("five heads", 11, 13, 5, 3), ("one head", 3, 2, 1, 5))
    return [
        Case(name, w_query=rng.normal(size=(d_query, n * d_k)), w_key=rng.normal(size=(d_key, n * d_k)), n_heads=n)
        for name, d_query, d_key, n, d_k in sizes
    ]


FORMS = Task(
    id="absorbed-head-matrices",
    title="One matrix for each head",
    entry="my_forms",
    kind="write",
    equation="absorbed-score",
    points=2,
    difficulty=2,
    minutes=8,
    trains="absorbing W_K, and the scale with it",
    answer=lambda w_query, w_key, n_heads: (
        absorb_query_key(w_query, w_key, n_heads) / math.sqrt(w_query.shape[1] // n_heads)  # the package leaves the scale out
    ),
    cases=_forms_cases,
    wrong=[
        Wrong(
            "no scale", lambda *inputs: _forms(*inputs, divisor=1.0), "fold the scale in: divide by the root of d_k, the width of one head"
        ),
        Wrong(
            "the scale of all heads together",
            lambda w_query, w_key, n: _forms(w_query, w_key, n, divisor=math.sqrt(w_query.shape[1])),
            "`w_query` has n_heads * d_k columns; the scale belongs to one head, the root of d_k",
        ),
        Wrong(
            "the scale of the matrix that comes out",
            lambda w_query, w_key, n: _forms(w_query, w_key, n, divisor=math.sqrt(len(w_query))),
            "the form is large, but its scale is still that of the d_k terms of a score, {eq}`absorbed-self-attention`",
        ),
        Wrong(
            "divided by d_k",
            lambda w_query, w_key, n: _forms(w_query, w_key, n, divisor=w_query.shape[1] / n),
            "divide by the root of d_k, not by d_k",
        ),
        Wrong(
            "one form for all heads",
            lambda w_query, w_key, n: np.repeat((w_query @ w_key.T / math.sqrt(w_query.shape[1] / n))[None], n, axis=0),
            "`w_query @ w_key.T` is the sum of all heads' forms; each head needs its own block of columns",
        ),
        Wrong(
            "columns dealt round",
            lambda *inputs: _forms(*inputs, cut="dealt"),
            "a head owns neighbouring columns, not every n_heads-th one",
        ),
        Wrong(
            "split by a bare reshape",
            lambda *inputs: _forms(*inputs, cut="at once"),
            "reshaped to (n_heads, d, d_k) at once, a head gets whole rows of the matrix: cut the columns first, then swap the axes",
        ),
        Wrong(
            "W_K W_Q^T: the keys ask",
            lambda *inputs: _forms(*inputs, turned=True),
            "rows of the form belong to the token that asks: W_Q stands on the left, {eq}`absorbed-score`",
        ),
    ],
    hints=[
        "Cut the columns of both matrices into heads; then each head is a product of two small matrices.",
        "`w.reshape(d, n_heads, d_k).swapaxes(0, 1)` has a head in front; transpose the last two axes of the keys.",
        "query @ key.swapaxes(1, 2) / np.sqrt(d_k), with (n_heads, d, d_k) each",
    ],
)

# ---- 10.2 columns


def _columns_broken(
    tokens: np.ndarray,
    w_query: np.ndarray,
    w_key: np.ndarray,
) -> np.ndarray:
    """Columns are positions: tokens (d, T), w_query and w_key (d_k, d) -> Z (d, T)."""
    scores = tokens.T @ (w_query.T @ w_key) @ tokens
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights


def _columns(
    tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, *, form: str = "KQ", divisor: float | None = None, axis: int = 0
) -> Any:
    """Self-attention of columns with one step done differently."""
    W = w_key.T @ w_query if form == "KQ" else w_query.T @ w_key
    return tokens @ softmax(tokens.T @ W @ tokens / (divisor or math.sqrt(len(w_query))), axis=axis)


def _columns_cases(rng: np.random.Generator) -> list[Case]:
    sizes = (
        ("more positions than features", 3, 7, 2),
        ("more features than positions", 7, 3, 5),
        ("wide queries", 2, 5, 11),
        ("d_k = 1", 5, 4, 1),
        ("one position", 5, 1, 3),
    )
    return [
        Case(name, tokens=rng.normal(size=(d, length)), w_query=rng.normal(size=(d_k, d)) / 2, w_key=rng.normal(size=(d_k, d)) / 2)
        for name, d, length, d_k in sizes
    ]


COLUMNS = Task(
    id="repair-columns-attention",
    title="Repair X softmax(X^T W X)",
    entry="columns_attention",
    kind="repair",
    equation="absorbed-attention-in-columns",
    points=2,
    difficulty=2,
    minutes=8,
    trains="which product belongs to which convention",
    answer=_columns,
    broken=_columns_broken,
    cases=_columns_cases,
    wrong=[
        Wrong(
            "W transposed, the scale put in",
            lambda *inputs: _columns(*inputs, form="QK"),
            "the scale is right; but entry (j, i) is key j against query i, so the matrix between is W_K^T W_Q, "
            "{eq}`absorbed-scores-in-columns`",
        ),
        Wrong(
            "W right, no scale",
            lambda *inputs: _columns(*inputs, divisor=1.0),
            "the product is right; the scores still need the scale 1 / sqrt(d_k)",
        ),
        Wrong(
            "divided by the root of d",
            lambda tokens, *rest: _columns(tokens, *rest, divisor=math.sqrt(len(tokens))),
            "W is d x d, but d_k, the rows of `w_query`, sets the scale",
        ),
        Wrong(
            "divided by the root of T",
            lambda tokens, *rest: _columns(tokens, *rest, divisor=math.sqrt(tokens.shape[1])),
            "a score is a sum over features, so the number of positions plays no part in its scale",
        ),
        Wrong(
            "softmax over the queries",
            lambda *inputs: _columns(*inputs, axis=1),
            "each column belongs to a query; its weights must sum to 1 down the column, axis 0, as the code had it",
        ),
        Wrong(
            "both transposed",
            lambda *inputs: _columns(*inputs, form="QK", axis=1),
            "the weights are right but transposed: the tokens stand on the left, so weights of query i must be column i",
        ),
    ],
    hints=[
        "Write the score of query i with key j, and find its place in the matrix if softmax runs down a column.",
        "(W_K X)^T (W_Q X) has keys in rows. What stands between X^T and X?",
        "`tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))`",
    ],
)

# ---- 10.3 the gradient


def _form_backward(w_query: np.ndarray, w_key: np.ndarray, d_form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return d_form @ w_key, d_form.T @ w_query


def _form_cases(rng: np.random.Generator) -> list[Case]:
    return [
        Case(name, w_query=rng.normal(size=(d_query, d_k)), w_key=rng.normal(size=(d_key, d_k)), d_form=rng.normal(size=(d_query, d_key)))
        for name, d_query, d_key, d_k in (("wide", 5, 7, 3), ("narrow", 7, 3, 1), ("d_k above both", 2, 3, 5), ("a square form", 5, 5, 3))
    ]


BACKWARD = Task(
    id="absorbed-matrix-backward",
    title="Back through the product",
    entry="my_form_backward",
    kind="write",
    equation="absorbed-score",
    points=2,
    difficulty=3,
    minutes=8,
    trains="the gradient that the two factors receive",
    answer=_form_backward,
    cases=_form_cases,
    forbid=(forbidden.AUTOGRAD,),
    wrong=[
        Wrong(
            "the order exchanged",
            lambda *inputs: _form_backward(*inputs)[::-1],
            "both are right, but return the gradient of `w_query` first",
        ),
        Wrong(
            "gradients transposed",
            lambda *inputs: tuple(d.T for d in _form_backward(*inputs)),
            "a gradient has the shape of what it belongs to; yours are transposed",
        ),
        Wrong(
            "a scale that is not there",
            lambda w_query, *rest: tuple(d / math.sqrt(w_query.shape[1]) for d in _form_backward(w_query, *rest)),
            "this product has no scale: it is W_Q W_K^T itself",
        ),
        Wrong(
            "each factor's half",
            lambda *inputs: tuple(d / 2 for d in _form_backward(*inputs)),
            "a product has no halves: each factor gets the whole, with the other one held fixed",
        ),
        Wrong(
            "the keys held fixed",
            lambda w_query, w_key, d_form: (d_form @ w_key, np.zeros_like(w_key)),
            "the gradient of `w_query` is right; `w_key` gets one too, from the other product",
        ),
        Wrong(
            "d_form forgotten",
            lambda w_query, w_key, d_form: _form_backward(w_query, w_key, np.ones_like(d_form)),
            "yours is the gradient of the sum of all entries; weigh entry (a, b) with d_form[a, b]",
        ),
        Wrong(
            "the wrong sign",
            lambda *inputs: tuple(-d for d in _form_backward(*inputs)),
            "the sign is turned: a gradient, not a step of descent, is asked for",
        ),
    ],
    hints=[
        "One entry: W[a, b] = sum over c of w_query[a, c] * w_key[b, c]. In which entries does w_query[a, c] appear?",
        "dL/dw_query[a, c] = sum over b of d_form[a, b] * w_key[b, c]: write it as a matrix product.",
        "`d_form @ w_key`, and the same with `d_form` transposed and the roles exchanged",
    ],
)

# ---- 10.4 what a value bias adds


def _bias_part(weights: np.ndarray, b_value: np.ndarray, w_output: np.ndarray) -> np.ndarray:
    return weights.sum(axis=1, keepdims=True) * (b_value @ w_output)


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


BIAS = Task(
    id="value-bias-contribution",
    title="What the value bias adds",
    entry="my_bias_part",
    kind="write",
    equation="value-bias-becomes-constant",
    points=2,
    difficulty=2,
    minutes=8,
    trains="the assumption behind a constant",
    answer=_bias_part,
    cases=_bias_cases,
    wrong=[
        Wrong(
            "a constant in every row",
            lambda weights, b_value, w_output: np.ones((len(weights), 1)) * (b_value @ w_output),
            "b_V W_O arrives undiminished only where the weights of a row sum to 1",
        ),
        Wrong(
            "all or nothing",
            lambda weights, b_value, w_output: (weights.sum(axis=1, keepdims=True) > 0) * (b_value @ w_output),
            "empty rows are right; but a row with dropped weights may sum to any number, and that is the factor",
        ),
        Wrong(
            "the mean of a row",
            lambda weights, b_value, w_output: weights.mean(axis=1, keepdims=True) * (b_value @ w_output),
            "the factor is the sum of a row of weights, not its mean",
        ),
        Wrong(
            "before W_O",
            lambda weights, b_value, w_output: weights.sum(axis=1, keepdims=True) * b_value,
            "that is what the bias adds to the heads; the output projection still follows",
        ),
        Wrong(
            "the largest weight",
            lambda weights, b_value, w_output: weights.max(axis=1, keepdims=True) * (b_value @ w_output),
            "every key brings the bias along: add all weights of the row",
        ),
        Wrong(
            "one factor for all rows",
            lambda weights, b_value, w_output: np.ones((len(weights), 1)) * weights.sum(axis=1).mean() * (b_value @ w_output),
            "each row has a sum of its own; you took one factor for all of them",
        ),
    ],
    hints=[
        "Write weights @ (values + b_value) as a sum of two products.",
        "`np.ones((kv_len, 1)) * b_value` is the second one's matrix of values; multiply the weights by its ones first.",
        "the sums of the rows, (q_len, 1), times `b_value @ w_output`",
    ],
)

# ---- 10.5 read a form

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


READ_FORM = Task(
    id="read-bilinear-form",
    title="Read a bilinear form",
    entry="my_reading",
    kind="figure",
    equation="symmetric-and-antisymmetric-scores",
    points=2,
    difficulty=2,
    minutes=8,
    trains="asking, answering, and the two parts of a form",
    answer=lambda: (2.0, 0.2, 1.4),
    tolerance=1e-3,
    figure_data=_form_to_read,
    wrong=[
        Wrong(
            "asked and answering exchanged",
            lambda: (1.0, 0.2, 1.4),
            "rows ask: the row of feature 4, not its column, says whom it asks for",
        ),
        Wrong(
            "the antisymmetric part", lambda: (2.0, -0.8, 1.4), "W_+ takes half of the sum of both entries; half of the difference is W_-"
        ),
        Wrong("the sum not halved", lambda: (2.0, 0.4, 1.4), "W_+ has a factor 1/2, {eq}`symmetric-and-antisymmetric-scores`"),
        Wrong("one of the two entries", lambda: (2.0, -0.6, 1.4), "entry (0, 2) of W_+ needs entry (0, 2) and entry (2, 0) of the form"),
        Wrong(
            "the diagonal only",
            lambda: (2.0, 0.2, 0.6),
            "x has two features, so its score with itself has four terms; you took the diagonal",
        ),
        Wrong(
            "one of the mixed terms",
            lambda: (2.0, 0.2, 1.8),
            "the mixed terms are two: feature 1 asks feature 4, and feature 4 asks feature 1",
        ),
        Wrong(
            "the mixed terms only",
            lambda: (2.0, 0.2, 0.8),
            "each feature also scores with itself: the two entries on the diagonal are missing",
        ),
        Wrong("features counted from 1", lambda: (3.0, 0.2, 1.4), "features are counted from 0, as the axes say"),
    ],
    hints=[
        "Row: who asks. Column: who answers.",
        "W_+ is half of the sum of the form and its transpose; x W x^T adds all entries in the rows and columns where x is 1.",
        "Third: entries (1, 1), (1, 4), (4, 1) and (4, 4).",
    ],
)

TASKS = [
    FORMS,
    COLUMNS,
    BACKWARD,
    BIAS,
    READ_FORM,
    BYTES,
    JOINT,
    BREAK_EVEN,
    DECOUPLED,
    STEP,
    ABSORBED_BIASES,
    VALUE_GAUGE,
    ABSORBED_QUERY,
]
