"""The graded tasks on multi-head attention that are answered in LaTeX: the layer as a sum over heads, and a row of a grouped head."""

from typing import Any

import numpy as np

from attn_course.formulas import matrices
from attn_course.reference import attention, multi_head_attention, split_heads
from attn_course.tasks.core import Task, Wrong, at_sizes

# ---- the layer as a sum over heads


def _layer(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """What the package returns for the whole layer, which concatenates; and the weights of each head."""
    T, d, H, d_k, d_v = sizes.values()
    X = rng.normal(size=(T, d))
    W = [rng.normal(size=shape) / 2 for shape in ((d, H * d_k), (d, H * d_k), (d, H * d_v), (H * d_v, d))]
    P = attention(*(split_heads(X @ each, H) for each in W[:3]), return_weights=True)[1]
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W[2], H)), "W_O^{(h)}": matrices(np.vsplit(W[3], H))}
    return {"P": matrices(P), "X": X, **blocks, "H": H, "Y": multi_head_attention(X, X, *W, n_heads=H)}


SUM_OVER_HEADS = Task(
    id="layer-without-concatenation",
    title="The layer without concatenation",
    entry="my_layer",
    kind="formula",
    equation="sum-of-head-maps",
    points=2,
    difficulty=2,
    minutes=8,
    trains="block products, and what belongs to which head",
    symbols=("P", "X", "W_V^{(h)}", "W_O^{(h)}", "H"),
    left="Y",
    cases=at_sizes("T d H d_k d_v", _layer),
    answer=r"\sum_{h=1}^{H} P_h X W_V^{(h)} W_O^{(h)}",
    wrong=[
        Wrong(
            "the mean of the heads",
            r"\frac{1}{H} \sum_{h=1}^{H} P_h X W_V^{(h)} W_O^{(h)}",
            "a row of the concatenation times W_O is a sum over all its entries; nothing divides it by the number of heads",
        ),
        Wrong(
            "the same rows of W_O for every head",
            r"\sum_{h=1}^{H} P_h X W_V^{(h)} W_O^{(1)}",
            "head h stands in the h-th block of columns, so it meets the h-th block of rows of W_O",
        ),
        Wrong(
            "the same values for every head",
            r"\sum_{h=1}^{H} P_h X W_V^{(1)} W_O^{(h)}",
            "each head makes values of its own, with its own columns of W_V",
        ),
        Wrong(
            "the product of two sums",
            r"\Bigl( \sum_{h=1}^{H} P_h X W_V^{(h)} \Bigr) \sum_{h=1}^{H} W_O^{(h)}",
            "that lets every head meet the rows of W_O of every other head; one sum over the products is wanted",
        ),
        Wrong(
            "one map for all: the mean of the heads' weights",
            r"\sum_{h=1}^{H} \Bigl( \frac{1}{H} \sum_{r=1}^{H} P_r \Bigr) X W_V^{(h)} W_O^{(h)}",
            "each head looks with its own weights P_h; averaging the maps throws away what several heads are for",
        ),
        Wrong(
            "the weights transposed",
            r"\sum_{h=1}^{H} P_h^\top X W_V^{(h)} W_O^{(h)}",
            "row i of P_h holds the weights of query i, so P_h itself multiplies the values; its transpose sums over the queries",
        ),
        Wrong(
            "the first head alone",
            r"P_1 X W_V^{(1)} W_O^{(1)}",
            "that is what the first head writes; the layer adds what all of them write",
        ),
    ],
    hints=[
        "Cut W_O into blocks of rows, one for each head of the concatenation. What is a row of blocks times a column of blocks?",
        "It is a sum over h of Z_h times the rows of W_O that belong to head h. Of what is Z_h made?",
        r"`\sum_{h=1}^{H}` and behind it four matrices, one on the left of X and two on its right.",
    ],
)

# ---- a row of a grouped head


def _grouped(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """What the package returns for grouped heads, and its weights; heads count from 0, positions from 1."""
    H, g, H_kv, T_q, T_k = sizes.values()
    Q, K, V = (rng.normal(size=(*shape, 2)) for shape in ((H, T_q), (H_kv, T_k), (H_kv, T_k)))
    Z, P = attention(Q, K, V, enable_gqa=True, return_weights=True)
    lists = {name: matrices(each, start=0) for name, each in (("P", P), ("V", V), ("Z", Z))}
    return {**lists, "g": g, "H": H, "H_{kv}": H_kv}


GROUPED_ROW = Task(
    id="row-of-grouped-head",
    title="A row of a grouped head",
    entry="my_row",
    kind="formula",
    equation="grouped-query-attention",
    points=2,
    difficulty=3,
    minutes=8,
    trains="which value head a query head reads, and indices that are computed",
    symbols=("P", "V", "g", "H", "H_{kv}"),
    left="(Z_h)_i",
    cases=at_sizes("H g H_kv T_q T_k", _grouped, ["H = g H_kv"]),
    answer=r"\sum_j (P_h)_{ij} (V_{\lfloor h / g \rfloor})_j",
    wrong=[
        Wrong(
            "tiled instead of repeated",
            r"\sum_j (P_h)_{ij} (V_{h - H_{kv} \lfloor h / H_{kv} \rfloor})_j",
            "that is the remainder of h / H_kv, which deals the value heads round, 0 1 0 1; groups are neighbours, 0 0 1 1",
        ),
        Wrong(
            "one value head for all",
            r"\sum_j (P_h)_{ij} (V_0)_j",
            "that is multi-query attention; here there are H_kv value heads, one for each group",
        ),
        Wrong(
            "the weights shared, too",
            r"\sum_j (P_{\lfloor h / g \rfloor})_{ij} (V_{\lfloor h / g \rfloor})_j",
            "the value head is right; but the heads of a group have queries of their own, and so weights of their own",
        ),
        Wrong(
            "the mean of all value heads",
            r"\frac{1}{H_{kv}} \sum_{r=0}^{H_{kv} - 1} \sum_j (P_h)_{ij} (V_r)_j",
            "a query head reads one value head, that of its group, not the mean of all",
        ),
        Wrong(
            "the output shared out in the group",
            r"\frac{1}{g} \sum_j (P_h)_{ij} (V_{\lfloor h / g \rfloor})_j",
            "the heads of a group read the same values, and each reads them whole: nothing is divided by g",
        ),
        Wrong(
            "the weights forgotten",
            r"\sum_j (V_{\lfloor h / g \rfloor})_j",
            "the value head is right; each value must be multiplied by the weight that query i gives to key j",
        ),
    ],
    hints=[
        "Write the row for the case that each head has values of its own. Which letter changes when heads share them?",
        "With g = 2, heads 0 and 1 read value head 0, heads 2 and 3 read value head 1. What does one do with h to get 0 0 1 1?",
        r"A sum over j of `(P_h)_{ij}` times row j of a value head, whose number is a quotient rounded down, `\lfloor ... \rfloor`.",
    ],
)
