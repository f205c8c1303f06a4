"""Masking: orientation of mask and softmax, combined masks, patterns and their counts."""

from attn_course.equations.core import about
from attn_course.formulas import matrices, of, subset
from attn_course.lessons.masking.equations import added, random_mask
from attn_course.reference import attention, causal_mask, softmax, window_mask

claim = about("G1")


# ---- which triangle, which axis
@claim("masked-attention-in-columns", rests_on="masked-attention")
def _(normal, rng, T_q, T_k, d_k, d_v):
    r"""Z = \mathrm{softmax}_{\mathrm{rows}}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V
        = \Bigl( V^\top\, \mathrm{softmax}_{\mathrm{columns}}\Bigl(\frac{K Q^\top}{\sqrt{d_k}} + M^\top\Bigr) \Bigr)^{\!\top}
    where rows of Q, K, V are positions
    Transpose everything: -inf stands above the diagonal of Q K^T and below that of K Q^T; the softmax runs over keys in both.
        X8: the right triangle, but the softmax over the queries: row -> column
        X8: columns as queries, but the softmax still along rows: column -> row
        X8: columns as queries, but the triangle not transposed: M^\top -> M
        X8: Q^T K with a softmax over columns, where queries and keys swap roles: K Q^\top -> Q K^\top
    """
    Q, K, V = normal(T_q, d_k), normal(T_k, d_k), normal(T_k, d_v)
    M = added(random_mask(rng, T_q, T_k)) + normal(T_q, T_k)  # a bias beside the mask
    return {"Q": Q, "K": K, "V": V, "M": M, "Z": attention(Q, K, V, mask=M), "d_k": d_k}


@claim("softmax-over-queries-leaks", rests_on="softmax-derivative masked-attention-in-columns")
def _(normal, T):
    r"""\tilde{p}_{ij} = \frac{[\,i \ge j\,]\,e^{s_{ij}}}{\sum_{r \ge j} e^{s_{rj}}}, \qquad
        \frac{\partial \tilde{p}_{ij}}{\partial s_{lj}} = -\tilde{p}_{ij}\, \tilde{p}_{lj} \quad (l \ne i)
    where causal mask on Q K^T, softmax over the queries
    The sum over queries r >= j holds the future: the mask hides its values, but its scores still move the weights of the past.
        X8: no leak: the mask is above the diagonal:
            -\tilde{p}_{ij}\, \tilde{p}_{lj} -> 0
        the normaliser stops at query i: r \ge j -> r \le i
        the sum over the keys: \sum_{r \ge j} e^{s_{rj}} -> \sum_{r \le i} e^{s_{ir}}
    """
    fill = added(causal_mask(T, T))
    return {"s": normal(T, T), r"\tilde{p}": of(lambda s: softmax(s + fill, axis=0), "s")}


# ---- several masks
@claim("added-masks-intersect", rests_on="masked-exponential-is-zero")
def _(rng, T_q, T_k, draw):
    r"""M^{(1)} + M^{(2)} = M \iff A_i = A_i^{(1)} \cap A_i^{(2)}
    where M, M^(1), M^(2) hold 0 and -inf only
    -inf plus anything below +inf is -inf: what one mask hides stays hidden. Additive masks add, boolean ones combine by `and`.
        a key is hidden only if both masks hide it: \cap -> \cup
        the masks multiplied: + -> \odot
        the second mask subtracted: + -> -
    """
    one, two, three = random_mask(rng, 3, T_q, T_k)
    whole = (one & two, one | two, three)[draw]
    fills = {"M^{(1)}": added(one), "M^{(2)}": added(two), "M": added(whole)}
    return {**fills, "A^{(1)}": subset(one), "A^{(2)}": subset(two), "A": subset(whole)}


# ---- how many pairs are left
@claim("causal-pair-count", rests_on="causal-mask")
def _(rng, T_q, draw):
    r"""\sum_{i=0}^{T_q - 1} |A_i| = T_q\,p + \frac{T_q\,(T_q + 1)}{2}
    where causal ;; -1 <= p ;; p + T_q <= T_k
    Query i sees i + p + 1 keys; for p = 0 this is a little more than half of all pairs, not half.
        half of T^2: T_q\,(T_q + 1) -> T_q^2
        without the diagonal: + 1 -> - 1
        the past forgotten: T_q\,p -> p
    """
    p, T_q = (0, -1, int(rng.integers(1, 9)))[draw], T_q + draw % 2
    mask = causal_mask(T_q, T_q + p + int(rng.integers(3)), p)
    return {"A": subset(mask, start=0), "T_q": T_q, "p": p}


@claim("window-pair-count", rests_on="causal-pair-count")
def _(rng, T, draw):
    r"""\sum_{i=0}^{T - 1} |A_i| = T\,(w + 1) - \frac{w\,(w + 1)}{2}
    where window of w keys to the left and the token itself ;; w < T
    All rows have w + 1 keys but the first w, which lack w, w - 1, ..., 1 of them: the count grows like T, not T^2.
        the token itself forgotten: T\,(w + 1) -> T\,w
        the start of the sequence forgotten: \sum_{i=0}^{T - 1} |A_i| = T\,(w + 1)
    """
    w = (0, T - 1, int(rng.integers(1, T)))[draw]
    return {"A": subset(window_mask(T, T, w, 0), start=0), "T": T, "w": w}


@claim("reach-of-stacked-windows", rests_on="window-pair-count")
def _(rng, T, draw):
    r"""\bigl[\,((B_w)^{L})_{ij} > 0\,\bigr] = (B_{L \cdot w})_{ij}, \qquad (B_w)_{ij} = [\,i - w \le j \le i\,]
    where L layers with windows of w keys to the left
    A path of L steps, each at most w long, reaches L w back: depth buys distance, step by step.
        a window of w never sees further than w: B_{L \cdot w} -> B_w
        w + 1 per layer: \cdot w -> \cdot (w + 1)
        one layer more: L \cdot w -> (L + 1) \cdot w
    """
    w, L = ((2, 3), (1, 3), (4, 1))[draw]
    farthest = (L + 1) * (w + 1)  # the rows are longer than any window looks back
    windows = [window_mask(farthest + T, farthest + T, width, 0) for width in range(farthest)]
    return {"B": matrices(windows, start=0), "w": w, "L": L}
