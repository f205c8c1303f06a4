"""Tasks that are answered in LaTeX: the layer as a sum over heads, and a row of a grouped head."""

from typing import Any

import numpy as np

from attn_course.formulas import matrices
from attn_course.reference import attention, multi_head_attention, split_heads
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _layer(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """What the package returns for the whole layer, which concatenates; and the weights of each head."""
    T, d, H, d_k, d_v = sizes.values()
    X = rng.normal(size=(T, d))
    W = [rng.normal(size=shape) / 2 for shape in ((d, H * d_k), (d, H * d_k), (d, H * d_v), (H * d_v, d))]
    P = attention(*(split_heads(X @ each, H) for each in W[:3]), return_weights=True)[1]
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W[2], H)), "W_O^{(h)}": matrices(np.vsplit(W[3], H))}
    return {"P": matrices(P), "X": X, **blocks, "H": H, "Y": multi_head_attention(X, X, *W, n_heads=H)}


my_layer = asked_formula(
    "layer-without-concatenation",
    "The layer without concatenation",
    entry="my_layer",
    asks=r"""
        Head $h$ has the weights $P_h$ ($T \times T$), its own columns of $W_V$, `W_V^{(h)}` ($d \times d_v$), and its own rows of $W_O$,
        `W_O^{(h)}` ($d_v \times d$), with $h = 1, \ldots, H$. The layer puts the outputs of the heads side by side and multiplies the
        whole by $W_O$. Write what it returns,

        $$Y = \ldots$$

        for the input $X$, without any concatenation.
    """,
    equation="sum-of-head-maps",
    points=2,
    difficulty=2,
    minutes=8,
    trains="block products, and what belongs to which head",
    answer=r"\sum_{h=1}^{H} P_h X W_V^{(h)} W_O^{(h)}",
    symbols=("P", "X", "W_V^{(h)}", "W_O^{(h)}", "H"),
    left="Y",
    cases=at_sizes("T d H d_k d_v", _layer),
    slips=r"""
        the mean of the heads
            \sum_{h=1}^{H} -> \frac{1}{H} \sum_{h=1}^{H}
            a row of the concatenation times W_O is a sum over all its entries; nothing divides it by the number of heads
        the same rows of W_O for every head
            W_O^{(h)} -> W_O^{(1)}
            head h stands in the h-th block of columns, so it meets the h-th block of rows of W_O
        the same values for every head
            W_V^{(h)} -> W_V^{(1)}
            each head makes values of its own, with its own columns of W_V
        the product of two sums
            \sum_{h=1}^{H} P_h X W_V^{(h)} -> \Bigl( \sum_{h=1}^{H} P_h X W_V^{(h)} \Bigr) \sum_{h=1}^{H}
            that lets every head meet the rows of W_O of every other head; one sum over the products is wanted
        one map for all: the mean of the heads' weights
            P_h -> \Bigl( \frac{1}{H} \sum_{r=1}^{H} P_r \Bigr)
            each head looks with its own weights P_h; averaging the maps throws away what several heads are for
        the weights transposed
            P_h -> P_h^\top
            row i of P_h holds the weights of query i, so P_h itself multiplies the values; its transpose sums over the queries
        the first head alone
            \sum_{h=1}^{H} -> \sum_{h=1}^{1}
            that is what the first head writes; the layer adds what all of them write
    """,
    hints=r"""
        Cut W_O into blocks of rows, one for each head of the concatenation. What is a row of blocks times a column of blocks?
        It is a sum over h of Z_h times the rows of W_O that belong to head h. Of what is Z_h made?
        `\sum_{h=1}^{H}` and behind it four matrices, one on the left of X and two on its right.
    """,
    why=r"""
        A row of blocks times a column of blocks is the sum of the products of blocks, so the concatenation times $W_O$ is $\sum_h Z_h
        W_O^{(h)}$, {eq}`output-projection-sums-heads`. Put in $Z_h = P_h X W_V^{(h)}$, {eq}`attention-of-one-head`. Each head adds a map of
        its own: what mixes positions stands on the left of $X$, what mixes features on its right.
    """,
)


def _grouped(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """What the package returns for grouped heads, and its weights; heads count from 0, positions from 1."""
    H, g, H_kv, T_q, T_k = sizes.values()
    Q, K, V = (rng.normal(size=(*shape, 2)) for shape in ((H, T_q), (H_kv, T_k), (H_kv, T_k)))
    Z, P = attention(Q, K, V, enable_gqa=True, return_weights=True)
    lists = {name: matrices(each, start=0) for name, each in (("P", P), ("V", V), ("Z", Z))}
    return {**lists, "g": g, "H": H, "H_{kv}": H_kv}


my_row = asked_formula(
    "row-of-grouped-head",
    "A row of a grouped head",
    entry="my_row",
    asks=r"""
        In grouped-query attention $H$ query heads share $H_{kv}$ value heads, and $g = H / H_{kv}$ neighbouring query heads make a group,
        {eq}`grouped-query-attention`. Write row $i$ of the output of query head $h$,

        $$(Z_h)_i = \ldots$$

        with its weights $P_h$ and the value heads $V_0, V_1, \ldots$ Heads are counted **from 0**, positions from 1. An entry of $P_h$ is
        typed `(P_h)_{ij}`, row $j$ of a value head `(V_0)_j`. An index may be computed, as in `V_{h - 1}`; `\lfloor ... \rfloor` rounds
        down, `\lceil ... \rceil` up.
    """,
    equation="grouped-query-attention",
    retired=True,
    points=2,
    difficulty=3,
    minutes=8,
    trains="which value head a query head reads, and indices that are computed",
    answer=r"\sum_j (P_h)_{ij} (V_{\lfloor h / g \rfloor})_j",
    symbols=("P", "V", "g", "H", "H_{kv}"),
    left="(Z_h)_i",
    cases=at_sizes("H g H_kv T_q T_k", _grouped, ["H = g H_kv"]),
    slips=r"""
        tiled instead of repeated
            \lfloor h / g \rfloor -> h - H_{kv} \lfloor h / H_{kv} \rfloor
            that is the remainder of h / H_kv, which deals the value heads round, 0 1 0 1; groups are neighbours, 0 0 1 1
        one value head for all
            \lfloor h / g \rfloor -> 0
            that is multi-query attention; here there are H_kv value heads, one for each group
        the weights shared, too
            P_h -> P_{\lfloor h / g \rfloor}
            the value head is right; but the heads of a group have queries of their own, and so weights of their own
        the mean of all value heads
            \sum_j -> \frac{1}{H_{kv}} \sum_{r=0}^{H_{kv} - 1} \sum_j ;; \lfloor h / g \rfloor -> r
            a query head reads one value head, that of its group, not the mean of all
        the output shared out in the group
            \sum_j -> \frac{1}{g} \sum_j
            the heads of a group read the same values, and each reads them whole: nothing is divided by g
        the weights forgotten
            (P_h)_{ij} ->
            the value head is right; each value must be multiplied by the weight that query i gives to key j
    """,
    hints=r"""
        Write the row for the case that each head has values of its own. Which letter changes when heads share them?
        With g = 2, heads 0 and 1 read value head 0, heads 2 and 3 read value head 1. What does one do with h to get 0 0 1 1?
        A sum over j of `(P_h)_{ij}` times row j of a value head, whose number is a quotient rounded down, `\lfloor ... \rfloor`.
    """,
    why="""
        Heads $0$ to $g - 1$ read value head 0, heads $g$ to $2g - 1$ value head 1, and so on: $h / g$ rounded down is the number of
        the group. It is the index that `repeat` makes, 0 0 1 1. The remainder of $h / H_{kv}$ would be that of `tile`, 0 1 0 1, and has the
        same shapes. The weights keep the index $h$, for every query head asks with a query of its own.
    """,
)
