"""Absorption: values into the output projection, their bias, and when not to absorb."""

from attn_course.equations.core import claim
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import named
from attn_course.formulas import function, matrices, row
from attn_course.reference import absorb_query_key, absorb_value_output, multi_head_attention, softmax, split_heads


# ---- values into the output projection
@claim("absorbed-value-projection", serves="J2")
def _(normal, T, d, d_v):
    r"""\bigl( P\, (X W_V) \bigr)\, W_O = P\, X\, (W_V W_O)
    where one head
    P mixes rows, W_V mixes columns: the two sides do not meet, and W_V can wait for the next linear map.
        W_V may also move to the left of the average: P\, X\, (W_V W_O) -> W_V\, P\, X\, W_O
        the factors exchanged: W_V W_O -> W_O W_V
        averaged once more: X\, -> P\, X\,
    """
    return {**named(normal, X=(T, d), W_V=(d, d_v), W_O=(d_v, d)), "P": softmax(normal(T, T))}


@claim("absorbed-multi-head-attention", serves="J2 J4", rests_on="sum-of-head-maps absorbed-score")
def _(normal, T, H, d, d_k, d_v):
    r"""\mathrm{MultiHead}(X) = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{X W_h X^\top}{\sqrt{d_k}}\Bigr)\, X\, U_h, \qquad
        W_h = W_Q^{(h)} W_K^{(h)\top}, \quad U_h = W_V^{(h)} W_O^{(h)}
    All of multi-head attention: W_h says where a head looks, U_h what it writes; products across heads would be wrong.
        the keys of one head for all: (h)\top -> (1)\top
        the scale of the whole width: d_k -> H d_k
    """
    X, *wide = named(normal, X=(T, d), W_Q=(d, H * d_k), W_K=(d, H * d_k), W_V=(d, H * d_v), W_O=(H * d_v, d)).values()
    W_Q, W_K, W_V, W_O = wide
    heads = {rf"W_{letter}^{{(h)}}": split_heads(W, H) for letter, W in zip("QKV", wide, strict=False)}
    heads |= {"W_O^{(h)}": W_O.reshape(H, d_v, d), "W": absorb_query_key(W_Q, W_K, H), "U": absorb_value_output(W_V, W_O, H)}
    whole = function(lambda X: multi_head_attention(X, X, *wide, n_heads=H))
    return {name: matrices(W) for name, W in heads.items()} | {r"\mathrm{MultiHead}": whole, "X": X, "H": H, "d_k": d_k}


@claim("residual-blocks-absorption", serves="J2", rests_on="absorbed-value-projection")
def _(normal, T, d, d_ff):
    r"""\bigl( X + P X\, U \bigr)\, W_1 = X W_1 + P X\, (U W_1)
    where W_1 = first matrix of the feed-forward network ;; even without the norm that stands before it
    The feed-forward network reads the sum: W_V and W_O cannot disappear into W_1, which the other path needs as it is.
        X28: W_V absorbed into a following feed-forward network: X W_1 + ->
        X28: one matrix for both paths: X W_1 + P X\, -> (X + P X)\,
    """
    return {**named(normal, X=(T, d), U=(d, d), W_1=(d, d_ff)), "P": softmax(normal(T, T))}


@claim("value-bias-becomes-constant", serves="J5", rests_on="softmax-inside-the-simplex absorbed-value-projection")
def _(normal, T, d, d_v):
    r"""P\, (X W_V + \mathbf{1}\, b_V)\, W_O = P X\, W_V W_O + \mathbf{1}\, (b_V W_O)
    where P 1 = 1: every row has something to attend to, and no weight is dropped
    Rows of P sum to 1, so the bias comes through every average unchanged, and W_O makes a constant of it.
        also where half of every weight is dropped: all P -> \tfrac{1}{2} P
        also with squared weights: (P \odot P)\, (X W_V + \mathbf{1}\, b_V)\, W_O = (P \odot P)\, X\, W_V W_O + \mathbf{1}\, (b_V W_O)
    """
    weights = {"P": softmax(normal(T, T)), "b_V": row(normal(d_v))}
    return {**named(normal, X=(T, d), W_V=(d, d_v), W_O=(d_v, d)), **weights}


# ---- when not to absorb


@claim("factored-and-absorbed-flops", serves="J1", rests_on="absorbed-score")
def _(rng, T, d, d_k):
    r"""F_{\mathrm{factored}} = 4\,T d\, d_k + 2\,T^2 d_k, \qquad F_{\mathrm{absorbed}} = 2\,T d^2 + 2\,T^2 d
    where scores of one head for T tokens ;; a multiply-add counts 2
    Absorbed, vectors of length d are compared instead of d_k: where all tokens are new, that is d / d_k times the work.
        the absorbed form is cheaper: one product less:
            d^2 + 2\,T^2 d -> d\, d_k + 2\,T^2 d_k
        only the queries projected: 4 -> 2
    """
    factored = multiplications(lambda X, W_Q, W_K: (X @ W_Q) @ (X @ W_K).T, (T, d), (d, d_k), (d, d_k))
    absorbed = multiplications(lambda X, W: (X @ W) @ X.T, (T, d), (d, d))
    return {r"F_{\mathrm{factored}}": 2 * factored, r"F_{\mathrm{absorbed}}": 2 * absorbed, "T": T, "d": d, "d_k": d_k}
