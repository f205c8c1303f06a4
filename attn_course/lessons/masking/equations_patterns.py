"""Masking: orientation of mask and softmax, combined masks, patterns and their counts."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import function, index, matrices, of, subset, vector
from attn_course.lessons.masking.equations import added, random_mask
from attn_course.reference import attention, causal_mask, softmax, window_mask

equation = about("G1")


# ---- which triangle, which axis
@equation(
    "masked-attention-in-columns",
    r"Z = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V"
    r" = \Bigl( V^\top\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{K Q^\top}{\sqrt{d_k}} + M^\top\Bigr) \Bigr)^{\!\top}",
    uses=["masked-attention", "causal-mask"],
    assumes=["rows of Q, K, V are positions"],
    wrong={
        "X8: the right triangle, but the softmax over the queries": "row -> column",
        "X8: columns as queries, but the softmax still along rows": "column -> row",
        "X8: columns as queries, but the triangle not transposed": r"M^\top -> M",
        "X8: Q^T K with a softmax over columns, where queries and keys swap roles": r"K Q^\top -> Q K^\top",
    },
)
def two_orientations(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Transpose everything: -inf stands above the diagonal of Q K^T and below that of K Q^T; the softmax runs over keys in both."""
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    M = added(random_mask(rng, T_q, T_k)) + rng.normal(size=(T_q, T_k))  # a bias beside the mask
    return {"Q": Q, "K": K, "V": V, "M": M, "Z": attention(Q, K, V, mask=M), "d_k": d_k}


@equation(
    "softmax-over-queries-leaks",
    r"\tilde{p}_{ij} = \frac{[\,i \ge j\,]\,e^{s_{ij}}}{\sum_{r \ge j} e^{s_{rj}}}, \qquad"
    r" \frac{\partial \tilde{p}_{ij}}{\partial s_{lj}} = -\tilde{p}_{ij}\, \tilde{p}_{lj} \quad (l \ne i)",
    uses=["softmax-derivative", "masked-attention-in-columns"],
    assumes=["causal mask on Q K^T, softmax over the queries"],
    wrong={
        "X8: no leak: the mask is above the diagonal": r"-\tilde{p}_{ij}\, \tilde{p}_{lj} -> 0",
        "the normaliser stops at query i": r"r \ge j -> r \le i",
        "the sum over the keys": r"\sum_{r \ge j} e^{s_{rj}} -> \sum_{r \le i} e^{s_{ir}}",
    },
)
def leak_through_the_normaliser(rng: np.random.Generator, T: int) -> Givens:
    """The sum over queries r >= j holds the future: the mask hides its values, but its scores still move the weights of the past."""
    fill = added(causal_mask(T, T))
    return {"s": rng.normal(size=(T, T)), r"\tilde{p}": of(lambda s: softmax(s + fill, axis=0), "s")}


# ---- several masks
@equation(
    "added-masks-intersect",
    r"M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)}",
    uses=["masked-exponential-is-zero"],
    assumes=["M, M^(1), M^(2) hold 0 and -inf only"],
    wrong={
        "a key is hidden only if both masks hide it": r"M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cup A_i^{(2)}",
        "the masks multiplied": r"M^{(1)} \odot M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)}",
        "the second mask subtracted": r"M^{(1)} - M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)}",
    },
)
def masks_combine(rng: np.random.Generator, T_q: int, T_k: int, draw: int) -> Givens:
    """-inf plus anything below +inf is -inf: what one mask hides stays hidden. Additive masks add, boolean ones combine by `and`."""
    one, two, three = random_mask(rng, 3, T_q, T_k)
    whole = (one & two, one | two, three)[draw]
    fills = {"M^{(1)}": added(one), "M^{(2)}": added(two), "M": added(whole)}
    return {**fills, "A^{(1)}": subset(one), "A^{(2)}": subset(two), "A": subset(whole)}


PADDED = (
    r"\mathrm{attention}\bigl(Q,\, [K;\, K'],\, [V;\, V'],\, M\bigr) = \mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}}\Bigr) V,"
    r" \qquad M_{ij} = \begin{cases} 0 & j < n \\ -\infty & j \ge n \end{cases}"
)


@equation(
    "key-padding-changes-nothing",
    PADDED,
    uses=["masked-attention"],
    assumes=["K, V hold the n real rows, counted from 0", "K', V' = padding, any finite numbers at all"],
    wrong={
        "rows of zeros need no mask": PADDED.replace("K'", r"0\,K'").replace("V'", r"0\,V'").replace(" M", r" 0\,M", 1),
        "hiding the rows of queries instead of the columns of keys": PADDED.replace("j <", "i <").replace(r"j \ge", r"i \ge"),
        "off by one: the first row of padding is seen": PADDED.replace("j <", r"j \le").replace(r"j \ge", "j >"),
        "a large finite number": PADDED.replace(r"-\infty", "-30"),
    },
)
def padding_changes_nothing(rng: np.random.Generator, T_q: int, n: int, m: int, d_k: int, d_v: int, draw: int) -> Givens:
    """Hidden rows leave the sums, so a padded batch gives each sequence what it gets alone."""
    size = (1, 1e2, 1e13)[draw]  # a score of padding may be beyond any fill
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(n, d_k)), rng.normal(size=(n, d_v))
    padding = {"K'": size * rng.normal(size=(m, d_k)), "V'": 100 * rng.normal(size=(m, d_v))}
    counted = {"i": index(0, T_q - 1), "j": index(0, n + m - 1)}
    masked = function(lambda Q, K, V, M: attention(Q, K, V, mask=M))
    return {r"\mathrm{attention}": masked, "Q": Q, "K": K, "V": V, "n": n, "d_k": d_k, **padding, **counted}


@equation(
    "packed-documents-stay-apart",
    r"Z(X,\, A) = \bigl[\, Z(X^{(1)});\; Z(X^{(2)}) \,\bigr], \qquad A_i = \{\, j : g_j = g_i \,\}",
    uses=["masked-attention"],
    assumes=[
        "g_i = number of the document that token i belongs to",
        "X = [X^(1); X^(2)]",
        "Z(X, A) = self-attention, causal or not, in which token i sees A_i only",
    ],
    wrong={
        "a causal mask alone keeps documents apart": r"= g_i -> \le g_i",
        "inverted polarity: other documents are seen": r"= g_i -> \ne g_i",
    },
)
def packed_documents(rng: np.random.Generator, n: int, m: int, d: int, d_k: int, d_v: int, draw: int) -> Givens:
    """A block-diagonal mask: documents packed into one sequence do not see each other."""
    first, second, causal = rng.normal(size=(n, d)), rng.normal(size=(m, d)), draw == 1
    W_Q, W_K, W_V = rng.normal(size=(d, d_k)), rng.normal(size=(d, d_k)), rng.normal(size=(d, d_v))
    layer = function(lambda X, A=None: attention(X @ W_Q, X @ W_K, X @ W_V, mask=A, is_causal=causal))
    numbers = int(rng.integers(9)) + np.array([(0, 1), (1, 0), (2, 5)][draw])  # neighbours, too
    packed = {"X^{(1)}": first, "X^{(2)}": second, "X": np.vstack([first, second])}
    return {"Z": layer, **packed, "g": vector(np.repeat(numbers, [n, m]))}


# ---- how many pairs are left
@equation(
    "causal-pair-count",
    r"\sum_{i=0}^{T_q - 1} |A_i| = T_q\,p + \frac{T_q\,(T_q + 1)}{2}",
    uses=["causal-mask"],
    assumes=["causal", "-1 <= p", "p + T_q <= T_k"],
    wrong={"half of T^2": r"T_q\,(T_q + 1) -> T_q^2", "without the diagonal": "+ 1 -> - 1", "the past forgotten": r"T_q\,p -> p"},
)
def causal_pairs(rng: np.random.Generator, T_q: int, draw: int) -> Givens:
    """Query i sees i + p + 1 keys; for p = 0 this is a little more than half of all pairs, not half."""
    p, T_q = (0, -1, int(rng.integers(1, 9)))[draw], T_q + draw % 2
    mask = causal_mask(T_q, T_q + p + int(rng.integers(3)), p)
    return {"A": subset(mask, start=0), "T_q": T_q, "p": p}


@equation(
    "window-pair-count",
    r"\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1) - \frac{w\,(w + 1)}{2}",
    uses=["causal-pair-count"],
    assumes=["window of w keys to the left and the token itself", "w < T"],
    wrong={
        "the token itself forgotten": r"\sum_{i=0}^{T - 1} |A_i| = T\,w - \frac{w\,(w + 1)}{2}",
        "the start of the sequence forgotten": r"\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1)",
    },
)
def window_pairs(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """All rows have w + 1 keys but the first w, which lack w, w - 1, ..., 1 of them: the count grows like T, not T^2."""
    w = (0, T - 1, int(rng.integers(1, T)))[draw]
    return {"A": subset(window_mask(T, T, w, 0), start=0), "T": T, "w": w}


@equation(
    "reach-of-stacked-windows",
    r"\bigl[\,((B_w)^{L})_{ij} > 0\,\bigr] = (B_{L \cdot w})_{ij}, \qquad (B_w)_{ij} = [\,i - w \le j \le i\,]",
    uses=["window-pair-count"],
    assumes=["L layers with windows of w keys to the left"],
    wrong={
        "a window of w never sees further than w": r"B_{L \cdot w} -> B_w",
        "w + 1 per layer": r"\cdot w -> \cdot (w + 1)",
        "one layer more": r"L \cdot w -> (L + 1) \cdot w",
    },
)
def reach_of_stacked_windows(rng: np.random.Generator, T: int, draw: int) -> Givens:
    """A path of L steps, each at most w long, reaches L w back: depth buys distance, step by step."""
    w, L = ((2, 3), (1, 3), (4, 1))[draw]
    farthest = (L + 1) * (w + 1)  # the rows are longer than any window looks back
    windows = [window_mask(farthest + T, farthest + T, width, 0) for width in range(farthest)]
    return {"B": matrices(windows, start=0), "w": w, "L": L}
