"""Attention from one query to batches.

Rows are queries, columns are keys: p_ij is the weight of input j in output i. Outputs and weights come from the reference.
"""

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.drawing import inputs
from attn_course.formulas import function, matrices, row, rows

claim = about("D1")


# ---- One query, all queries, all examples
@claim("attention-of-one-query", serves="D1 D3", rests_on="soft-lookup softmax scaled-score-variance")
def _(normal, T_k, d_k, d_v):
    r"""\mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} \frac{e^{q \cdot k_j / \sqrt{d_k}}}{\sum_{l=1}^{T_k} e^{q \cdot k_l / \sqrt{d_k}}}\,
        v_j
    Score each key, Eq. scaled-score-variance; turn scores into weights, Eq. softmax; average the values.
        not normalised: \mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} e^{q \cdot k_j / \sqrt{d_k}}\, v_j
        divided by d_k: \mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} \frac{e^{q \cdot k_j / d_k}}{\sum_l e^{q \cdot k_l / d_k}} v_j
        scores for weights: \mathrm{Attention}(q, K, V) = \sum_{j=1}^{T_k} \frac{q \cdot k_j}{\sqrt{d_k}}\, v_j
    """
    q, K, V = inputs(normal, 1, T_k, d_k, d_v)
    attention = function(lambda q, K, V: reference.attention(q[None], K, V)[0])
    return {r"\mathrm{Attention}": attention, "q": row(q[0]), "K": K, "V": V, "k": rows(K), "v": rows(V), "T_k": T_k, "d_k": d_k}


@claim("scaled-score", serves="D1", rests_on="attention-of-one-query")
def _(normal, T_q, T_k, d_k):
    r"""s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = \frac{(Q K^\top)_{ij}}{\sqrt{d_k}}
    Entry (i, j) of a product is row i of Q times column j of K^T, and that column is row j of K.
        row i of the scores belongs to key i: Q K^\top -> K Q^\top
        features times features: Q K^\top -> Q^\top K
        the scale only once: s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} = (Q K^\top)_{ij}
    """
    Q, K, _ = inputs(normal, T_q, T_k, d_k, 1)
    return {"s": reference.scaled_dot_scores(Q, K), "q": rows(Q), "k": rows(K), "Q": Q, "K": K, "d_k": d_k}


@claim("attention-weights", serves="D1 A6", rests_on="softmax-inside-the-simplex scaled-score")
def _(normal, T_q, T_k, d_k):
    r"""p_{ij} = \frac{e^{s_{ij}}}{\sum_{l=1}^{T_k} e^{s_{il}}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1
    Eq. softmax for each row: the normaliser runs over the keys, with the query held fixed.
        X23: scores sum to 1: p_{ij} = 1 -> s_{ij} = 1
        normalised over the queries: \sum_{l=1}^{T_k} e^{s_{il}} -> \sum_{l} e^{s_{lj}}
        scores divided by their sum: p_{ij} = \frac{s_{ij}}{\sum_{l=1}^{T_k} s_{il}}, \qquad \sum_{j=1}^{T_k} p_{ij} = 1
    """
    Q, K, V = inputs(normal, T_q, T_k, d_k, 1)
    return {"s": reference.scaled_dot_scores(Q, K), "p": reference.attention(Q, K, V, return_weights=True)[1], "T_k": T_k}


@claim("output-of-a-query", serves="D1 A6", rests_on="weights-times-values attention-of-one-query attention-weights")
def _(normal, T_q, T_k, d_v):
    r"""z_i = \sum_{j=1}^{T_k} p_{ij}\, v_j
    Row i of the weights mixes the values into output i: the first index asks, the second answers.
        X2: p_ij read as the weight of input i in output j: ij -> ji
        the plain mean of the weighted values: z_i = -> z_i = \frac{1}{T_k}
        only the heaviest value: p_{ij}\, -> [\,p_{ij} = \max_l p_{il}\,]\,
    """
    Q, K, V = inputs(normal, T_q, T_k, 2, d_v)
    z, p = reference.attention(Q, K, V, return_weights=True)
    return {"z": rows(z), "p": p, "v": rows(V), "T_k": T_k}


@claim("attention", serves="D1", rests_on="attention-of-one-query scaled-score")
def _(normal, T_q, T_k, d_k, d_v):
    r"""Z = P\,V = \mathrm{softmax}\Bigl( \frac{Q K^\top}{\sqrt{d_k}} \Bigr)\, V
    where softmax along the keys, row by row
    Eqs. attention-of-one-query and scaled-score for all rows of Q at once.
        softmax over the other axis: Z = P\,V = \mathrm{softmax}\Bigl( \frac{K Q^\top}{\sqrt{d_k}} \Bigr)^\top V
        scaled after the softmax: Z = P\,V = \frac{\mathrm{softmax}\bigl( Q K^\top \bigr)}{\sqrt{d_k}}\, V
        X26: the average of the keys: P\,V -> P\,K
        no softmax: Z = P\,V = \frac{Q K^\top}{\sqrt{d_k}}\, V

    Shapes: (T_q, d_k) (d_k, T_k) -> (T_q, T_k), times (T_k, d_v) -> (T_q, d_v).
    """
    Q, K, V = inputs(normal, T_q, T_k, d_k, d_v)
    Z, P = reference.attention(Q, K, V, return_weights=True)
    return {"Q": Q, "K": K, "V": V, "Z": Z, "P": P, "d_k": d_k}


@claim("batched-attention", serves="D1", rests_on="attention")
def _(normal, B, T_q, T_k, d_k, d_v):
    r"""Z_b = \mathrm{softmax}\Bigl( \frac{Q_b K_b^\top}{\sqrt{d_k}} \Bigr)\, V_b
    where b = all leading axes: examples, and later heads
    The last two axes are positions and features; every leading axis is a separate problem.
        X19: all examples attend to each other: = -> = \sum_{c} ;; K_b^\top -> K_c^\top ;; V_b -> V_c
        the values of the first example for all: V_b -> V_1
    """
    Q, K, V = (normal(B, rows, features) for rows, features in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    return {"Q": matrices(Q), "K": matrices(K), "V": matrices(V), "Z": matrices(reference.attention(Q, K, V)), "d_k": d_k}
