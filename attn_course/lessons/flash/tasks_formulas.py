"""The graded tasks of lesson flash that are answered in LaTeX: the merge of two blocks, one turn of the loop, the gradient of a tile."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, matrix, row, rows, subset, vector
from attn_course.reference import softmax
from attn_course.tasks.core import Task, Wrong, at_sizes


def _two_blocks(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    n_A, n_B, d_v = sizes.values()
    keys = n_A + n_B
    s, v = rng.normal(size=keys), rng.normal(size=(keys, d_v))
    in_a = np.isin(np.arange(keys), rng.permutation(keys)[:n_A])  # the keys of a block need not be neighbours
    given: dict[str, Any] = {"s": vector(s), "v": rows(v), "L": np.logaddexp.reduce(s)}
    for name, block in {"A": in_a, "B": ~in_a}.items():
        given |= {name: subset(block), f"L_{name}": np.logaddexp.reduce(s[block]), f"z_{name}": row(softmax(s[block]) @ v[block])}
    return given


MERGE_DERIVED = Task(
    id="merge-of-two-blocks",
    title="The merge of two blocks, derived",
    entry="my_merging",
    kind="derivation",
    equation="merge-of-finished-outputs",
    points=3,
    difficulty=2,
    minutes=12,
    trains="sums over blocks, and log-sum-exps as weights",
    symbols=("s", "v", "A", "B", "L", "L_A", "L_B", "z_A", "z_B"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n_A n_B d_v", _two_blocks),
    least_steps=3,
    answer=[
        r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
        r"\sum_j e^{s_j - L} v_j",
        r"\sum_{j \in A} e^{s_j - L} v_j + \sum_{j \in B} e^{s_j - L} v_j",
        r"\sum_{j \in A} e^{L_A - L} e^{s_j - L_A} v_j + \sum_{j \in B} e^{L_B - L} e^{s_j - L_B} v_j",
        r"e^{L_A - L} \sum_{j \in A} e^{s_j - L_A} v_j + e^{L_B - L} \sum_{j \in B} e^{s_j - L_B} v_j",
        r"e^{L_A - L} z_A + e^{L_B - L} z_B",
    ],
    wrong=[
        Wrong(
            "each block normalised by itself",
            r"z_A + z_B",
            "in z_A the weights of A already sum to 1, and so do those of B in z_B: added, they sum to 2. A block counts with its "
            "share of the whole sum of exponentials",
        ),
        Wrong(
            "the plain mean",
            r"\frac{1}{2} (z_A + z_B)",
            "both blocks count alike here; the one with the larger sum of exponentials must count for more",
        ),
        Wrong(
            "the factors turned round",
            r"e^{L - L_A} z_A + e^{L - L_B} z_B",
            "the share of A is e^{L_A} over e^{L}: the exponent is L_A - L, which is never positive",
        ),
        Wrong(
            "a block forgotten",
            r"e^{L_A - L} z_A",
            "the keys of B have a part in the output as well",
        ),
        Wrong(
            "weighted by L itself",
            r"\frac{L_A z_A + L_B z_B}{L_A + L_B}",
            "L_A is the logarithm of the sum of exponentials; the sum itself, by which A counts, is e^{L_A}",
        ),
        Wrong(
            "divided by L",
            r"\frac{1}{L} \sum_j e^{s_j} v_j",
            "the sum of exponentials beneath is e^{L}; L is its logarithm",
        ),
        Wrong(
            "a power of a difference taken for a difference of powers",
            r"\sum_j (e^{s_j} - e^{L}) v_j",
            "e^{a - b} is e^a divided by e^b, not their difference",
        ),
        Wrong("never divided", r"\sum_j e^{s_j} v_j", "the sum of exponentials beneath, e^{L}, is lost"),
    ],
    hints=[
        "Which of the symbols of the goal is the logarithm of the sum in the denominator? Then split the sum over all keys in two.",
        "The output of block A is the sum of `e^{s_j - L_A} v_j` over A alone. Which factor turns `e^{s_j - L_A}` into `e^{s_j - L}`?",
        r"`e^{s_j - L}` is a product of `e^{L_A - L}`, which leaves the sum over A, and of a weight of block A; the same for B.",
    ],
)


def _one_turn(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    B_q, B_k, n, d_v = sizes.values()
    scores, values = 1.5 * rng.normal(size=(B_q, n + B_k)), rng.normal(size=(n + B_k, d_v))
    scores[0, n] = scores[0].max() + rng.uniform(0.5, 1.5)  # the maximum of the first query grows
    given: dict[str, Any] = {"s": matrix(scores[:, n:]), "v": rows(values[n:]), "B_k": B_k}
    for mark, keys in {"": slice(n), "'": slice(None)}.items():
        top = scores[:, keys].max(axis=1)
        sums = np.exp(scores[:, keys] - top[:, None]).sum(axis=1)
        given |= {f"m{mark}": vector(top), rf"\ell{mark}": vector(sums), f"z{mark}": rows(softmax(scores[:, keys]) @ values[keys])}
    return given


UPDATE_FORMULA = Task(
    id="update-of-divided-outputs",
    title="One turn of the loop, with divided outputs",
    entry="my_new_output",
    kind="formula",
    equation="tiled-attention-update",
    points=3,
    difficulty=3,
    minutes=10,
    trains="rescaling when the maximum grows",
    symbols=("s", "v", "m", "m'", r"\ell", r"\ell'", "z", "B_k"),
    functions=(r"\exp",),
    left="z'_i",
    cases=at_sizes("B_q B_k n d_v", _one_turn),
    answer=r"\frac{\ell_i e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
    wrong=[
        Wrong(
            "the old output not multiplied by its sum",
            r"\frac{e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
            "z_i was divided by the old sum: multiply it by that sum before anything is added to it",
        ),
        Wrong(
            "no rescale",
            r"\frac{\ell_i z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
            "the old terms are measured from the old maximum and the new terms from the new one: only terms with the same reference add up",
        ),
        Wrong(
            "the factor turned round",
            r"\frac{\ell_i e^{m'_i - m_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
            "e^{s - m'} is e^{s - m} times e^{m - m'}: when the maximum grows, the old terms become smaller",
        ),
        Wrong(
            "the new block measured from the old maximum",
            r"\frac{\ell_i e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m_i} v_j}{\ell'_i}",
            "the new sum is measured from the new maximum, and so must be the terms of the new block",
        ),
        Wrong(
            "the rule for the accumulator",
            r"e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j",
            "so the accumulator is updated, but z_i was divided by the old sum, and what comes out is to be divided by the new one",
        ),
        Wrong(
            "not divided",
            r"\ell_i e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j",
            "this is the accumulator of {eq}`tiled-attention-update`; the output is that divided by the new sum",
        ),
        Wrong(
            "the old output without its share",
            r"e^{m_i - m'_i} z_i + \frac{\sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
            "the old output is an average over the old keys alone: its part in the new one is the old sum over the new, both measured "
            "from the new maximum",
        ),
        Wrong(
            "outputs accumulated instead of values",
            r"\frac{1}{\ell'_i} \Bigl( \ell_i e^{m_i - m'_i} z_i + \frac{\sum_j e^{s_{ij} - m'_i} v_j}{\sum_j e^{s_{ij} - m'_i}} \Bigr)",
            "the block is divided twice: by its own sum, and by the new one at the end",
        ),
    ],
    hints=[
        "An accumulator that is not divided would be easy to update. How do you get it back from z_i, and what do you do at the end?",
        "The old accumulator is z_i times the old sum, and is measured from the old maximum; measure the block from the new one.",
        "It is one fraction: above it the old part, with two factors, plus a sum over the keys of the block; beneath it one symbol.",
    ],
)


def _one_tile(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    B_q, B_k, n, d_v = sizes.values()
    scores, values, d_output = rng.normal(size=(B_q, n)), rng.normal(size=(n, d_v)), rng.normal(size=(B_q, d_v))

    def loss(tile: np.ndarray) -> float:
        return float((softmax(np.hstack([tile, scores[:, B_k:]])) @ values * d_output).sum())

    given = {"s": matrix(scores[:, :B_k]), "v": rows(values[:B_k]), "L": vector(np.logaddexp.reduce(scores, axis=1))}
    given |= {"dO": rows(d_output), "z": rows(softmax(scores) @ values)}
    return given | {"dS": derivative(loss, scores[:, :B_k])}


GRADIENT_FORMULA = Task(
    id="gradient-of-tile-scores",
    title="The gradient of a tile, from what is kept",
    entry="my_gradient",
    kind="formula",
    equation="score-gradient-by-entry",
    points=3,
    difficulty=3,
    minutes=10,
    trains="recomputing instead of storing",
    symbols=("s", "L", "v", "z", "dO"),
    functions=(r"\exp",),
    left="dS_{ij}",
    cases=at_sizes("B_q B_k n d_v", _one_tile, ["n > B_k"]),
    answer=r"e^{s_{ij} - L_i} (dO_i \cdot v_j - dO_i \cdot z_i)",
    wrong=[
        Wrong(
            "delta summed over the tile",
            r"e^{s_{ij} - L_i} \Bigl( dO_i \cdot v_j - \sum_l e^{s_{il} - L_i} (dO_i \cdot v_l) \Bigr)",
            "delta is a sum over all keys of the row, and a tile has only some of them; {eq}`row-delta-from-output` needs none",
        ),
        Wrong(
            "the normaliser forgotten",
            r"e^{s_{ij} - L_i} (dO_i \cdot v_j)",
            "raising one score also lowers every other weight of its row: delta is missing",
        ),
        Wrong(
            "delta not weighted",
            r"e^{s_{ij} - L_i} (dO_i \cdot v_j) - dO_i \cdot z_i",
            "the weight multiplies delta too, {eq}`score-gradient-by-entry`",
        ),
        Wrong("the weight forgotten", r"dO_i \cdot v_j - dO_i \cdot z_i", "the weight, recomputed from s and L, is missing in front"),
        Wrong(
            "the weights of the tile alone",
            r"\frac{e^{s_{ij}}}{\sum_l e^{s_{il}}} (dO_i \cdot v_j - dO_i \cdot z_i)",
            "a sum over the keys of the tile is not the sum of the row; the log-sum-exp of the whole row was kept",
        ),
        Wrong(
            "divided by L",
            r"\frac{e^{s_{ij}}}{L_i} (dO_i \cdot v_j - dO_i \cdot z_i)",
            "L is the logarithm of the sum of exponentials: subtract it in the exponent",
        ),
        Wrong(
            "the exponential in place of the weight",
            r"e^{s_{ij}} (dO_i \cdot v_j - dO_i \cdot z_i)",
            "e^{s} is no weight yet: it is to be divided by the sum over its row, whose logarithm is L",
        ),
        Wrong(
            "the sign turned round",
            r"e^{s_{ij} - L_i} (dO_i \cdot z_i - dO_i \cdot v_j)",
            "a larger score moves the output towards v_j and away from z_i, so v_j comes with the plus",
        ),
    ],
    hints=[
        "Begin with {eq}`score-gradient-by-entry`. Which of its three symbols does the tile have to compute again, and from what?",
        "{eq}`weights-from-lse` gives the weight, {eq}`row-delta-from-output` gives delta; dP is the product of a row of dO with one of V.",
        r"It is one exponential, times a difference of two dot products with `dO_i`.",
    ],
)
