"""Absorption: biases in one matrix, values into the output projection, their bias, and when not to absorb."""

import numpy as np

from attn_course.equations.core import Givens, equation
from attn_course.equations.counting import multiplications
from attn_course.formulas import function, matrices, row
from attn_course.lessons.absorption.equations import biased, drawn
from attn_course.reference import absorb_query_key, absorb_value_output, multi_head_attention, softmax, split_heads

BIASED = (
    r"(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = \tilde{x}_i \begin{pmatrix} W & W_Q b_K^\top \\ b_Q W_K^\top & b_Q b_K^\top \end{pmatrix}"
    r" \tilde{x}_j^\top, \qquad \tilde{x}_i = [\,x_i,\, 1\,]"
)


@equation(
    "biases-in-one-matrix",
    BIASED,
    topics=["J5", "J1"],
    uses=["score-with-biases"],
    assumes=["W = W_Q W_K^T"],
    wrong={
        "the two bias terms exchanged": BIASED.replace("W_Q b_K", "W_K b_Q").replace("b_Q W_K", "b_K W_Q"),
        "the constant in front": BIASED.replace(r"x_i,\, 1", r"1,\, x_i"),
    },
)
def biases_in_one_matrix(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """A constant feature takes the biases into the bilinear form.

    One more row and column, and all that was said of rank, parts and gauge applies.
    """
    return biased(rng, T, d, d_k)


# ---- values into the output projection
@equation(
    "absorbed-value-projection",
    r"\bigl( P\, (X W_V) \bigr)\, W_O = P\, X\, (W_V W_O)",
    topics=["J2"],
    assumes=["one head"],
    wrong={
        "W_V may also move to the left of the average": r"\bigl( P\, (X W_V) \bigr)\, W_O = W_V\, P\, X\, W_O",
        "the factors exchanged": r"\bigl( P\, (X W_V) \bigr)\, W_O = P\, X\, (W_O W_V)",
        "averaged once more": r"\bigl( P\, (X W_V) \bigr)\, W_O = P\, P\, X\, (W_V W_O)",
    },
)
def values_pass_into_the_output_projection(rng: np.random.Generator, T: int, d: int, d_v: int) -> Givens:
    """P mixes rows, W_V mixes columns: the two sides do not meet, and W_V can wait for the next linear map."""
    return {**drawn(rng, X=(T, d), W_V=(d, d_v), W_O=(d_v, d)), "P": softmax(rng.normal(size=(T, T)))}


MULTI_HEAD = (
    r"\mathrm{MultiHead}(X) = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{X W_h X^\top}{\sqrt{d_k}}\Bigr)\, X\, U_h, \qquad"
    r" W_h = W_Q^{(h)} W_K^{(h)\top}, \quad U_h = W_V^{(h)} W_O^{(h)}"
)


@equation(
    "absorbed-multi-head-attention",
    MULTI_HEAD,
    topics=["J2", "J4"],
    uses=["sum-of-head-maps", "absorbed-self-attention", "absorbed-value-projection"],
    wrong={"the keys of one head for all": r"(h)\top -> (1)\top", "the scale of the whole width": "d_k -> H d_k"},
)
def two_matrices_for_each_head(rng: np.random.Generator, T: int, H: int, d: int, d_k: int, d_v: int) -> Givens:
    """All of multi-head attention: W_h says where a head looks, U_h what it writes; products across heads would be wrong."""
    X, *wide = drawn(rng, X=(T, d), W_Q=(d, H * d_k), W_K=(d, H * d_k), W_V=(d, H * d_v), W_O=(H * d_v, d)).values()
    W_Q, W_K, W_V, W_O = wide
    heads = {rf"W_{letter}^{{(h)}}": split_heads(W, H) for letter, W in zip("QKV", wide, strict=False)}
    heads |= {"W_O^{(h)}": W_O.reshape(H, d_v, d), "W": absorb_query_key(W_Q, W_K, H), "U": absorb_value_output(W_V, W_O, H)}
    whole = function(lambda X: multi_head_attention(X, X, *wide, n_heads=H))
    return {name: matrices(W) for name, W in heads.items()} | {r"\mathrm{MultiHead}": whole, "X": X, "H": H, "d_k": d_k}


@equation(
    "residual-blocks-absorption",
    r"\bigl( X + P X\, U \bigr)\, W_1 = X W_1 + P X\, (U W_1)",
    topics=["J2"],
    uses=["absorbed-value-projection"],
    assumes=["W_1 = first matrix of the feed-forward network", "even without the norm that stands before it"],
    wrong={
        "X28: W_V absorbed into a following feed-forward network": r"\bigl( X + P X\, U \bigr)\, W_1 = P X\, (U W_1)",
        "X28: one matrix for both paths": r"\bigl( X + P X\, U \bigr)\, W_1 = (X + P X)\, (U W_1)",
    },
)
def the_residual_stands_between(rng: np.random.Generator, T: int, d: int, d_ff: int) -> Givens:
    """The feed-forward network reads the sum: W_V and W_O cannot disappear into W_1, which the other path needs as it is."""
    return {**drawn(rng, X=(T, d), U=(d, d), W_1=(d, d_ff)), "P": softmax(rng.normal(size=(T, T)))}


@equation(
    "value-bias-becomes-constant",
    r"P\, (X W_V + \mathbf{1}\, b_V)\, W_O = P X\, W_V W_O + \mathbf{1}\, (b_V W_O)",
    topics=["J5"],
    uses=["softmax-inside-the-simplex", "absorbed-value-projection"],
    assumes=["P 1 = 1: every row has something to attend to, and no weight is dropped"],
    wrong={
        "also where half of every weight is dropped": r"P -> \tfrac{1}{2} P",
        "also with squared weights": r"(P \odot P)\, (X W_V + \mathbf{1}\, b_V)\, W_O = (P \odot P)\, X\, W_V W_O + \mathbf{1}\, (b_V W_O)",
    },
)
def value_bias_becomes_a_constant(rng: np.random.Generator, T: int, d: int, d_v: int) -> Givens:
    """Rows of P sum to 1, so the bias comes through every average unchanged, and W_O makes a constant of it."""
    weights = {"P": softmax(rng.normal(size=(T, T))), "b_V": row(rng.normal(size=d_v))}
    return {**drawn(rng, X=(T, d), W_V=(d, d_v), W_O=(d_v, d)), **weights}


# ---- when not to absorb
@equation(
    "absorbed-matrices-are-larger",
    r"N_{\mathrm{absorbed}} = d^2, \qquad N_{\mathrm{factored}} = 2\, d\, d_k, \qquad"
    r" \frac{N_{\mathrm{absorbed}}}{N_{\mathrm{factored}}} = \frac{H}{2}",
    sizes="d H d_k, d = H d_k",
    topics=["J1"],
    uses=["absorbed-score"],
    assumes=["d_k = d / H", "N: numbers to store for each head, W against W_Q and W_K"],
    wrong={
        "against one of the factors": r"N_{\mathrm{absorbed}} = d^2, \qquad N_{\mathrm{factored}} = d\, d_k, \qquad"
        r" \frac{N_{\mathrm{absorbed}}}{N_{\mathrm{factored}}} = H",
        "half as large: one matrix instead of two": r"\frac{N_{\mathrm{absorbed}}}{N_{\mathrm{factored}}} = \frac{d\, d_k}{2\, d\, d_k}"
        r" = \frac{1}{H} \frac{H}{2}",
    },
)
def absorbed_matrices_are_larger(rng: np.random.Generator, d: int, H: int, d_k: int, draw: int) -> Givens:
    """With more than two heads the product is larger than its factors: absorbing saves nothing by itself."""
    H = (1, 2, H)[draw]
    d = H * d_k
    wide = rng.normal(size=(2, d, d))
    absorbed, factored = absorb_query_key(wide[0], wide[1], H)[0], split_heads(wide, H)[:, 0]
    return {r"N_{\mathrm{absorbed}}": absorbed.size, r"N_{\mathrm{factored}}": factored.size, "d": d, "H": H, "d_k": d_k}


@equation(
    "factored-and-absorbed-flops",
    r"F_{\mathrm{factored}} = 4\,T d\, d_k + 2\,T^2 d_k, \qquad F_{\mathrm{absorbed}} = 2\,T d^2 + 2\,T^2 d",
    topics=["J1"],
    uses=["absorbed-self-attention", "absorbed-matrices-are-larger"],
    assumes=["scores of one head for T tokens", "a multiply-add counts 2"],
    wrong={
        "the absorbed form is cheaper: one product less": r"d^2 + 2\,T^2 d -> d\, d_k + 2\,T^2 d_k",
        "only the queries projected": "4 -> 2",
    },
)
def flops_of_both_forms(rng: np.random.Generator, T: int, d: int, d_k: int) -> Givens:
    """Absorbed, vectors of length d are compared instead of d_k: where all tokens are new, that is d / d_k times the work."""
    factored = multiplications(lambda X, W_Q, W_K: (X @ W_Q) @ (X @ W_K).T, (T, d), (d, d_k), (d, d_k))
    absorbed = multiplications(lambda X, W: (X @ W) @ X.T, (T, d), (d, d))
    return {r"F_{\mathrm{factored}}": 2 * factored, r"F_{\mathrm{absorbed}}": 2 * absorbed, "T": T, "d": d, "d_k": d_k}
