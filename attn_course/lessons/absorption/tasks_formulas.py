"""The graded tasks on absorption that are answered in LaTeX: biases line by line, a gauge of the values, a score in the latent space."""

from typing import Any

import numpy as np

from attn_course.formulas import matrices, row, rows
from attn_course.reference import absorb_query_key, absorb_value_output, scaled_dot_scores
from attn_course.tasks.core import Task, Wrong, at_sizes

# ---- biases, line by line


def _biased(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Tokens and one head with biases; W and v as the machine would store them, absorbed."""
    T, d, d_k = sizes.values()
    x, W_Q, W_K, b_Q, b_K = (rng.normal(size=shape) for shape in ((T, d), (d, d_k), (d, d_k), (d_k,), (d_k,)))
    W = absorb_query_key(W_Q, W_K)[0]
    v = [sum(b_Q[c] * W_K[a, c] for c in range(d_k)) for a in range(d)]
    return {"x": rows(x), "W_Q": W_Q, "W_K": W_K, "b_Q": row(b_Q), "b_K": row(b_K), "W": W, "v": row(v)}


ABSORBED_BIASES = Task(
    id="absorb-projections-and-biases",
    title="Absorb projections that have biases",
    entry="my_derivation",
    kind="derivation",
    equation="score-with-biases",
    points=3,
    difficulty=2,
    minutes=10,
    trains="multiplying out rows and matrices, and the transpose of a sum",
    symbols=("x", "W_Q", "W_K", "b_Q", "b_K", "W", "v"),
    cases=at_sizes("T d d_k", _biased),
    least_steps=3,
    answer=[
        r"(x_i W_Q + b_Q) (x_j W_K + b_K)^\top",
        r"(x_i W_Q + b_Q) (W_K^\top x_j^\top + b_K^\top)",
        r"(x_i W_Q + b_Q) W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
        r"x_i W_Q W_K^\top x_j^\top + b_Q W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
        r"x_i W x_j^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
    ],
    wrong=[
        Wrong(
            "the mixed terms forgotten",
            r"x_i W x_j^\top + b_Q b_K^\top",
            "two sums of two terms multiply to four products; the two that pair content with a bias are missing",
        ),
        Wrong(
            "the key bias meets the query's bias only",
            r"x_i W x_j^\top + v x_j^\top + b_Q b_K^\top",
            "the key bias meets the whole query: x_i W_Q b_K^T is missing",
        ),
        Wrong(
            "the preference for keys forgotten",
            r"x_i W x_j^\top + (x_i W_Q + b_Q) b_K^\top",
            "the query bias meets the content of the key as well: b_Q W_K^T x_j^T is missing",
        ),
        Wrong(
            "the key bias dropped, as a softmax would",
            r"x_i W x_j^\top + v x_j^\top",
            "what holds b_K is the same for all keys, so a softmax drops it; but this is the score, before any softmax",
        ),
        Wrong(
            "the two biases not multiplied",
            r"x_i W x_j^\top + v x_j^\top + x_i W_Q b_K^\top",
            "two sums of two terms multiply to four products; the one of both biases, b_Q b_K^T, is missing",
        ),
        Wrong(
            "the wrong token asks",
            r"x_j W x_i^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
            "W = W_Q W_K^T has the token that asks, x_i, on its left, {eq}`absorbed-score`; W is not symmetric",
        ),
        Wrong(
            "the preference given to the query",
            r"x_i W x_j^\top + v x_i^\top + (x_i W_Q + b_Q) b_K^\top",
            "v = b_Q W_K^T holds the key's projection, so it meets the key's token, x_j",
        ),
        Wrong(
            "each bias with its own projection",
            r"x_i W_Q W_K^\top x_j^\top + x_i W_Q b_Q^\top + b_K W_K^\top x_j^\top + b_Q b_K^\top",
            "what stands in one bracket never meets its own bracket: x_i W_Q is multiplied by the key's bias, b_K",
        ),
    ],
    hints=[
        "The transpose of a sum is the sum of the transposes, and that of a product turns its factors round.",
        "Multiply by the second bracket first, without opening the first one: the term with b_K stays as the goal has it.",
        r"Behind the start comes `(x_i W_Q + b_Q) (W_K^\top x_j^\top + b_K^\top)`; open it from the right, then put in W and v.",
    ],
)

# ---- a gauge of the values


def _value_gauge(rng: np.random.Generator, d: int, d_v: int) -> dict[str, Any]:
    """W_O' solves (W_V G) W_O' = W_V W_O: least squares with no residual, for the d rows of W_V G are more than its d_v columns."""
    W_V, W_O, *turns = (rng.normal(size=shape) for shape in ((d, d_v), (d_v, d), (d_v, d_v), (d_v, d_v)))
    one, other = (np.linalg.qr(turn)[0] for turn in turns)
    G = one * rng.uniform(0.5, 2, size=d_v) @ other  # far from singular
    solved = np.linalg.lstsq(W_V @ G, absorb_value_output(W_V, W_O)[0])[0]
    return {"W_V": W_V, "W_O": W_O, "G": G, "W_O'": solved}


VALUE_GAUGE = Task(
    id="gauge-of-the-values",
    title="A gauge of the values",
    entry="my_factor",
    kind="formula",
    equation="query-key-gauge-freedom",
    points=2,
    difficulty=2,
    minutes=6,
    trains="where an inverse goes when two factors meet",
    symbols=("W_V", "W_O", "G"),
    left="W_O'",
    cases=at_sizes("d d_v", _value_gauge, ["d > d_v"]),
    answer=r"G^{-1} W_O",
    wrong=[
        Wrong(
            "the inverse transposed, as for the keys",
            r"G^{-\top} W_O",
            "the keys needed a transpose because W_K stands transposed in W_Q W_K^T; in W_V W_O nothing is transposed",
        ),
        Wrong(
            "the transpose for the inverse",
            r"G^\top W_O",
            "G^T undoes G only if G is a rotation or a reflection; here it is any invertible matrix",
        ),
        Wrong("the same G on both", "G W_O", "that gives W_V G G W_O: the second G must undo the first"),
        Wrong(
            "the output left as it was",
            "W_O",
            "that gives W_V G W_O: the G in the middle is still there, so the head writes something else",
        ),
    ],
    hints=[
        "Write down what the changed head multiplies its averages by, and what that product must be.",
        "The two factors meet in the middle: what must stand behind G there, so that nothing is left of it?",
        "It is a square matrix on the left of W_O, made of G alone.",
    ],
)

# ---- the query that asks the cache


def _absorbed_query(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """The absorbed query solves a . [c_j, k_j^R] = s_j for more tokens than it has entries; the scores are those of keys written out."""
    H, d_c, d_k, d_R = sizes.values()
    t = d_c + d_R + 7
    shapes = {"q^C": (H, d_k), "q^R": (H, d_R), "c": (t, d_c), "k^R": (t, d_R), "W": (H, d_c, d_k)}
    q_content, q_rotary, c, k_rotary, W_UK = (rng.normal(size=shape) for shape in shapes.values())
    a = []
    for content, rotary, up in zip(q_content, q_rotary, W_UK, strict=True):
        query, keys = np.concatenate([content, rotary]), np.concatenate([c @ up, k_rotary], axis=1)
        scores = scaled_dot_scores(query[None], keys)[0]
        a.append(np.linalg.lstsq(np.concatenate([c, k_rotary], axis=1), scores)[0])
    given = {"q^C": rows(q_content), "q^R": rows(q_rotary), "W_{UK}^{(h)}": matrices(W_UK)}
    return {**given, "d_c": d_c, "d_k": d_k, "d_R": d_R, "a": rows(np.array(a))}


ABSORBED_QUERY = Task(
    id="query-that-asks-latents",
    title="The query that asks the cache",
    entry="my_query",
    kind="formula",
    equation="absorbed-latent-attention",
    points=3,
    difficulty=3,
    minutes=10,
    trains="absorbing the up-projection, and the scale that stays",
    symbols=("q^C", "q^R", "W_{UK}^{(h)}", "d_c", "d_k", "d_R"),
    functions=(r"\sqrt",),
    left="a_h",
    cases=at_sizes("H d_c d_k d_R", _absorbed_query),
    answer=r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{\sqrt{d_k + d_R}}",
    wrong=[
        Wrong(
            "the scale of the latent space",
            r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{\sqrt{d_c + d_R}}",
            "a_h has d_c + d_R entries, but the score is that of a key of d_k + d_R: absorbing changes how it is computed, not its value",
        ),
        Wrong(
            "the rotary part forgotten in the scale",
            r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{\sqrt{d_k}}",
            "the key that is replaced has d_k + d_R entries, and the scale counts them all",
        ),
        Wrong(
            "each part with a scale of its own",
            r"[\, \frac{q_h^C W_{UK}^{(h)\top}}{\sqrt{d_k}},\, \frac{q_h^R}{\sqrt{d_R}} \,]",
            "both parts belong to one dot product, which is scaled once",
        ),
        Wrong(
            "the rotary part not scaled",
            r"[\, \frac{q_h^C W_{UK}^{(h)\top}}{\sqrt{d_k + d_R}},\, q_h^R \,]",
            "the whole score is scaled, so the rotary part is divided by the root as well",
        ),
        Wrong(
            "no root in the scale",
            r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{d_k + d_R}",
            "the scores are divided by the root of d_k + d_R, not by d_k + d_R",
        ),
        Wrong(
            "no scale",
            r"[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]",
            "both parts are right; but a_h must give the score with its scale, which depends on the width of the key that is replaced",
        ),
        Wrong(
            "the parts in the other order",
            r"\frac{[\, q_h^R,\, q_h^C W_{UK}^{(h)\top} \,]}{\sqrt{d_k + d_R}}",
            "what meets the latent vector must stand first, as c_j does in the cached row",
        ),
        Wrong(
            "the up-projection of one head for all",
            r"\frac{[\, q_h^C W_{UK}^{(1)\top},\, q_h^R \,]}{\sqrt{d_k + d_R}}",
            "each head rebuilds keys of its own from the shared latent vector, so head h needs its own up-projection",
        ),
    ],
    hints=[
        "Write out the score of head h with token j, and its scale. Which factors belong to the cached row, and which to the query?",
        "The content part is q_h^C times the transpose of c_j W_UK, and a transpose turns the factors round: the query meets W_UK^T first.",
        r"A row in two parts, `[\, ... ,\, q_h^R \,]`, divided by the root of a sum of two widths.",
    ],
)
