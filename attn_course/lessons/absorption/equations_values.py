"""Absorption: values into the output projection, their bias, and when not to absorb."""

import numpy as np
import sympy

from attn_course import reference
from attn_course.equations.claims import Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import matrix_symbols, weights_of
from attn_course.equations.stated import equation

W_Q, W_K = matrix_symbols("a", 2, 2), matrix_symbols("b", 2, 2)
x, y = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 2)


@equation(
    "biases-in-one-matrix",
    r"(x_i W_Q + b_Q)\,(x_j W_K + b_K)^\top = \tilde{x}_i \begin{pmatrix} W & W_Q b_K^\top \\ b_Q W_K^\top & b_Q b_K^\top \end{pmatrix}"
    r" \tilde{x}_j^\top, \qquad \tilde{x} = [\,x,\, 1\,]",
    rows=["J5", "J1"],
    uses=["score-with-biases"],
    assumes=["W = W_Q W_K^T"],
    scope="d = 2, d_k = 2",
)
def biases_in_one_matrix() -> Sides:
    """A constant feature takes the biases into the bilinear form.

    One more row and column, and all that was said of rank, parts and gauge applies.
    """
    b_Q, b_K = matrix_symbols("p", 1, 2), matrix_symbols("r", 1, 2)
    whole = sympy.Matrix(sympy.BlockMatrix([[W_Q * W_K.T, W_Q * b_K.T], [b_Q * W_K.T, b_Q * b_K.T]]))
    one = sympy.ones(1, 1)
    return ((x * W_Q + b_Q) * (y * W_K + b_K).T)[0], (x.row_join(one) * whole * y.row_join(one).T)[0]


@biases_in_one_matrix.wrong("the two bias terms exchanged")
def _() -> Sides:
    b_Q, b_K = matrix_symbols("p", 1, 2), matrix_symbols("r", 1, 2)
    whole = sympy.Matrix(sympy.BlockMatrix([[W_Q * W_K.T, W_K * b_Q.T], [b_K * W_Q.T, b_Q * b_K.T]]))
    one = sympy.ones(1, 1)
    return ((x * W_Q + b_Q) * (y * W_K + b_K).T)[0], (x.row_join(one) * whole * y.row_join(one).T)[0]


# ---- 10.5 values into the output projection


@equation(
    "absorbed-value-projection",
    r"\bigl( P\, (X W_V) \bigr)\, W_O = P\, X\, (W_V W_O)",
    rows=["J2"],
    assumes=["one head"],
    scope="T = 2, d = 2, d_v = 1",
)
def values_pass_into_the_output_projection() -> Sides:
    """P mixes rows, W_V mixes columns: the two sides do not meet, and W_V can wait for the next linear map."""
    P, X = matrix_symbols("p", 2, 2), matrix_symbols("x", 2, 2)
    W_V, W_O = matrix_symbols("v", 2, 1), matrix_symbols("o", 1, 2)
    return (P * (X * W_V)) * W_O, P * (X * (W_V * W_O))


@values_pass_into_the_output_projection.wrong("W_V may also move to the left of the average")
def _() -> Sides:
    P, X = matrix_symbols("p", 2, 2), matrix_symbols("x", 2, 2)
    W_V, W_O = matrix_symbols("v", 2, 2), matrix_symbols("o", 2, 2)
    return (P * (X * W_V)) * W_O, W_V * P * X * W_O


@values_pass_into_the_output_projection.wrong("the factors exchanged")
def _() -> Sides:
    P, X = matrix_symbols("p", 2, 2), matrix_symbols("x", 2, 2)
    W_V, W_O = matrix_symbols("v", 2, 2), matrix_symbols("o", 2, 2)
    return (P * (X * W_V)) * W_O, P * (X * (W_O * W_V))


def _heads(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return X (4, 5) and the weights of 2 heads with d_k = 3 and d_v = 2."""
    return tuple(rng.normal(size=shape) for shape in ((4, 5), (5, 6), (5, 6), (5, 4), (4, 5)))


@equation(
    "absorbed-multi-head-attention",
    r"\mathrm{MultiHead}(X) = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{X W_h X^\top}{\sqrt{d_k}}\Bigr)\, X\, U_h, \qquad"
    r" W_h = W_Q^{(h)} W_K^{(h)\top}, \quad U_h = W_V^{(h)} W_O^{(h)}",
    rows=["J2", "J4"],
    uses=["sum-of-head-maps", "absorbed-self-attention", "absorbed-value-projection"],
    kind="numeric",
    scope="H = 2, T = 4, d = 5",
)
def two_matrices_for_each_head(rng: np.random.Generator) -> Claims:
    """All of multi-head attention: W_h says where a head looks, U_h what it writes; products across heads would be wrong."""
    for _ in range(3):
        X, w_query, w_key, w_value, w_output = _heads(rng)
        W = [w_query[:, 3 * h : 3 * h + 3] @ w_key[:, 3 * h : 3 * h + 3].T for h in range(2)]
        U = [w_value[:, 2 * h : 2 * h + 2] @ w_output[2 * h : 2 * h + 2] for h in range(2)]
        left = reference.multi_head_attention(X, X, w_query, w_key, w_value, w_output, n_heads=2)
        yield left, sum(weights_of(X @ W[h] @ X.T / np.sqrt(3)) @ X @ U[h] for h in range(2))
        yield (
            (reference.absorb_query_key(w_query, w_key, 2), reference.absorb_value_output(w_value, w_output, 2)),
            (np.array(W), np.array(U)),
        )


@two_matrices_for_each_head.wrong("one W for all heads, from the whole width")
def _(rng: np.random.Generator) -> Sides:
    X, w_query, w_key, w_value, w_output = _heads(rng)
    left = reference.multi_head_attention(X, X, w_query, w_key, w_value, w_output, n_heads=2)
    return left, weights_of(X @ w_query @ w_key.T @ X.T / np.sqrt(3)) @ X @ (w_value @ w_output)


@equation(
    "residual-blocks-absorption",
    r"\bigl( X + P X\, U \bigr)\, W_1 = X W_1 + P X\, (U W_1)",
    rows=["J2"],
    uses=["absorbed-value-projection"],
    assumes=["W_1 = first matrix of the feed-forward network", "even without the norm that stands before it"],
    scope="T = 2, d = 2",
)
def the_residual_stands_between() -> Sides:
    """The feed-forward network reads the sum: W_V and W_O cannot disappear into W_1, which the other path needs as it is."""
    P, X, U, W_1 = (matrix_symbols(letter, 2, 2) for letter in "pxuw")
    return (X + P * X * U) * W_1, X * W_1 + P * X * (U * W_1)


@the_residual_stands_between.wrong("W_V absorbed into a following feed-forward network", trap="X28")
def _() -> Sides:
    P, X, U, W_1 = (matrix_symbols(letter, 2, 2) for letter in "pxuw")
    return (X + P * X * U) * W_1, P * X * (U * W_1)


@the_residual_stands_between.wrong("one matrix for both paths", trap="X28")
def _() -> Sides:
    P, X, U, W_1 = (matrix_symbols(letter, 2, 2) for letter in "pxuw")
    return (X + P * X * U) * W_1, (X + P * X) * (U * W_1)


@equation(
    "value-bias-becomes-constant",
    r"P\, (X W_V + \mathbf{1}\, b_V)\, W_O = P X\, W_V W_O + \mathbf{1}\, (b_V W_O)",
    rows=["J5"],
    uses=["softmax-inside-the-simplex", "absorbed-value-projection"],
    assumes=["P 1 = 1: every row has something to attend to, and no weight is dropped"],
    kind="numeric",
    scope="T = 5, d = 4, d_v = 2",
)
def value_bias_becomes_a_constant(rng: np.random.Generator) -> Claims:
    """Rows of P sum to 1, so the bias comes through every average unchanged, and W_O makes a constant of it."""
    for _ in range(3):
        X, scores, w_value, b_value, w_output = (rng.normal(size=shape) for shape in ((5, 4), (5, 5), (4, 2), (2,), (2, 4)))
        P = weights_of(scores)
        yield P @ (X @ w_value + b_value) @ w_output, P @ X @ w_value @ w_output + np.ones((5, 1)) * (b_value @ w_output)


def _with_value_bias(rng: np.random.Generator, weights: np.ndarray) -> Sides:
    X, w_value, b_value, w_output = (rng.normal(size=shape) for shape in ((5, 4), (4, 2), (2,), (2, 4)))
    return weights @ (X @ w_value + b_value) @ w_output, weights @ X @ w_value @ w_output + b_value @ w_output


value_bias_becomes_a_constant.wrong("also with dropout on the weights")(
    lambda rng: _with_value_bias(rng, weights_of(rng.normal(size=(5, 5))) * (rng.random((5, 5)) < 0.8) / 0.8)
)
value_bias_becomes_a_constant.wrong("also in a row that may attend to nothing")(
    lambda rng: _with_value_bias(rng, weights_of(rng.normal(size=(5, 5))) * (np.arange(5) != 2)[:, None])
)


# ---- 10.6 when not to absorb


@equation(
    "absorbed-matrices-are-larger",
    r"\frac{d^2}{2\, d\, d_k} = \frac{d}{2\, d_k} = \frac{H}{2}",
    rows=["J1"],
    uses=["absorbed-score"],
    assumes=["d_k = d / H", "numbers to store for each head: W against W_Q and W_K"],
    kind="numeric",
    scope="d = 12, H = 1, 2, 3, 4, 6",
)
def absorbed_matrices_are_larger(rng: np.random.Generator) -> Claims:
    """With more than two heads the product is larger than its factors: absorbing saves nothing by itself."""
    for n_heads in (1, 2, 3, 4, 6):
        w_query, w_key = rng.normal(size=(2, 12, 12))
        factors = w_query[:, : 12 // n_heads].size + w_key[:, : 12 // n_heads].size
        yield reference.absorb_query_key(w_query, w_key, n_heads)[0].size / factors, n_heads / 2


@absorbed_matrices_are_larger.wrong("half as large: one matrix instead of two")
def _(rng: np.random.Generator) -> Sides:
    w_query, w_key = rng.normal(size=(2, 12, 12))
    return reference.absorb_query_key(w_query, w_key, 4)[0].size / (2 * w_query[:, :3].size), 1 / 2


@equation(
    "factored-and-absorbed-flops",
    r"F_{\mathrm{factored}} = 4\,T d\, d_k + 2\,T^2 d_k, \qquad F_{\mathrm{absorbed}} = 2\,T d^2 + 2\,T^2 d",
    rows=["J1"],
    uses=["absorbed-self-attention", "absorbed-matrices-are-larger"],
    assumes=["scores of one head for T tokens", "a multiply-add counts 2"],
    kind="numeric",
    scope="T = 1, 3, 5; d = 6; d_k = 2, 3",
)
def flops_of_both_forms(rng: np.random.Generator) -> Claims:
    """Absorbed, vectors of length d are compared instead of d_k: where all tokens are new, that is d / d_k times the work."""
    for length in (1, 3, 5):
        for d_k in (2, 3):
            factored, absorbed = _flops(length, 6, d_k)
            yield (factored, absorbed), (4 * length * 6 * d_k + 2 * length**2 * d_k, 2 * length * 6**2 + 2 * length**2 * 6)


def _flops(length: int, d: int, d_k: int) -> tuple[int, int]:
    factored = multiplications(lambda X, w_q, w_k: (X @ w_q) @ (X @ w_k).T, (length, d), (d, d_k), (d, d_k))
    return 2 * factored, 2 * multiplications(lambda X, W: (X @ W) @ X.T, (length, d), (d, d))


flops_of_both_forms.wrong("the absorbed form is cheaper: one product less")(lambda rng: (_flops(5, 6, 2)[1], 2 * 5 * 6 * 2 + 2 * 5**2 * 2))
