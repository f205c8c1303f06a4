"""Multi-head attention: splitting, sums of maps, ranks, costs.

`EXAMPLE` is one layer with 2 heads, d_model = 5, d_k = 3, d_v = 2 and 4 positions: every axis has another length.
"""

from dataclasses import dataclass

import numpy as np
import sympy
from sympy import symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import matrix_symbols, row_softmax_symbols, weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import total


@dataclass(frozen=True)
class _Layer:
    """Weights with the heads side by side."""

    x: np.ndarray
    w_query: np.ndarray
    w_key: np.ndarray
    w_value: np.ndarray
    w_output: np.ndarray

    def maps(self) -> np.ndarray:
        """Return P_h for each head, computed head by head from the column blocks."""
        queries = [self.x @ self.w_query[:, 3 * h : 3 * h + 3] for h in range(2)]
        keys = [self.x @ self.w_key[:, 3 * h : 3 * h + 3] for h in range(2)]
        return np.array([weights_of(query @ key.T / np.sqrt(3)) for query, key in zip(queries, keys, strict=True)])

    def heads(self) -> np.ndarray:
        """Return Z_h for each head."""
        values = np.array([self.x @ self.w_value[:, 2 * h : 2 * h + 2] for h in range(2)])
        return self.maps() @ values

    def output(self) -> np.ndarray:
        """Return what the package computes."""
        return np.asarray(reference.multi_head_attention(self.x, self.x, self.w_query, self.w_key, self.w_value, self.w_output, n_heads=2))


def _layer(rng: np.random.Generator) -> _Layer:
    return _Layer(*(rng.normal(size=shape) for shape in ((4, 5), (5, 6), (5, 6), (5, 4), (4, 5))))


EXAMPLE = _layer(np.random.default_rng(8))


# ---- 8.1 split and attend


@equation(
    "heads-are-column-blocks",
    r"\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr]",
    rows=["H1", "H4"],
    assumes=["W_Q^(h) = columns (h - 1) d_k + 1 to h d_k of W_Q"],
    kind="numeric",
    scope="H = 1, 2, 3; d_k = 2, 3",
)
def splitting_is_taking_column_blocks(rng: np.random.Generator) -> Claims:
    """A column of the product reads one column of W_Q: to split Q, K, V and to give each head its own matrices is the same."""
    for n_heads, width in ((1, 3), (2, 3), (3, 2)):
        x, w_query = rng.normal(size=(4, 5)), rng.normal(size=(5, n_heads * width))
        (rows, heads, columns), split = np.indices((4, n_heads, width)), reference.split_heads(x @ w_query, n_heads)
        yield split.swapaxes(0, 1), (x[rows] * w_query.T[width * heads + columns]).sum(axis=-1)


@splitting_is_taking_column_blocks.wrong("reshaped to (heads, positions, d_k) at once: positions are mixed")
def _(rng: np.random.Generator) -> Sides:
    queries = EXAMPLE.x @ EXAMPLE.w_query
    return reference.split_heads(queries, 2), queries.reshape(2, 4, 3)


@splitting_is_taking_column_blocks.wrong("every second column")
def _(rng: np.random.Generator) -> Sides:
    queries = EXAMPLE.x @ EXAMPLE.w_query
    return reference.split_heads(queries, 2), np.array([queries[:, 0::2], queries[:, 1::2]])


@splitting_is_taking_column_blocks.wrong("the input is split before it is projected")
def _(rng: np.random.Generator) -> Sides:
    x, w_query = rng.normal(size=(4, 6)), rng.normal(size=(6, 6))
    return reference.split_heads(x @ w_query, 2), np.array([x[:, 3 * h : 3 * h + 3] @ w_query[:3, 3 * h : 3 * h + 3] for h in range(2)])


@equation(
    "attention-of-one-head",
    r"Z_h = P_h\, X W_V^{(h)}, \qquad P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr)",
    rows=["H1"],
    uses=["batched-attention", "heads-are-column-blocks"],
    assumes=["d_k = width of one head"],
    kind="numeric",
    scope="H = 2",
)
def one_head(rng: np.random.Generator) -> Claims:
    """Attention as before on the columns of one head; its vectors have d_k entries, so that is what the scale must undo."""
    layer = _layer(rng)
    query, key, value = (reference.split_heads(layer.x @ w, 2) for w in (layer.w_query, layer.w_key, layer.w_value))
    for h in range(2):
        scores = layer.x @ layer.w_query[:, 3 * h : 3 * h + 3] @ layer.w_key[:, 3 * h : 3 * h + 3].T @ layer.x.T
        yield reference.attention(query, key, value)[h], weights_of(scores / np.sqrt(3)) @ (layer.x @ layer.w_value[:, 2 * h : 2 * h + 2])


@one_head.wrong("divided by sqrt(d_model)")
def _(rng: np.random.Generator) -> Sides:
    scores = EXAMPLE.x @ EXAMPLE.w_query[:, :3] @ EXAMPLE.w_key[:, :3].T @ EXAMPLE.x.T
    return EXAMPLE.heads()[0], weights_of(scores / np.sqrt(5)) @ (EXAMPLE.x @ EXAMPLE.w_value[:, :2])


@one_head.wrong("one map for all heads, from the whole width")
def _(rng: np.random.Generator) -> Sides:
    scores = EXAMPLE.x @ EXAMPLE.w_query @ EXAMPLE.w_key.T @ EXAMPLE.x.T
    return EXAMPLE.heads()[0], weights_of(scores / np.sqrt(6)) @ (EXAMPLE.x @ EXAMPLE.w_value[:, :2])


# ---- 8.2 merge and project


@equation(
    "multi-head-attention",
    r"\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}",
    rows=["H1", "H2"],
    uses=["attention-of-one-head"],
    kind="numeric",
    scope="H = 2, d_v = 2, d = 5",
)
def concatenate_and_project(rng: np.random.Generator) -> Claims:
    """The heads' outputs stand side by side, and one more matrix mixes them."""
    for layer in (EXAMPLE, _layer(rng)):
        yield layer.output(), np.hstack([layer.heads()[0], layer.heads()[1]]) @ layer.w_output


@concatenate_and_project.wrong("W_V in R^{v x v} for each head, although W_O has H d_v rows", trap="X18")
def _(rng: np.random.Generator) -> Sides:
    square = [EXAMPLE.maps()[h] @ EXAMPLE.x @ rng.normal(size=(5, 5)) for h in range(2)]
    return float(np.hstack(square).shape[1]), float(EXAMPLE.w_output.shape[0])


@concatenate_and_project.wrong("the heads are averaged")
def _(rng: np.random.Generator) -> Sides:
    return EXAMPLE.output(), EXAMPLE.heads().mean(axis=0) @ EXAMPLE.w_output[:2]


@concatenate_and_project.wrong("merged without moving the head axis back")
def _(rng: np.random.Generator) -> Sides:
    return EXAMPLE.output(), EXAMPLE.heads().reshape(4, 4) @ EXAMPLE.w_output


@equation(
    "output-projection-sums-heads",
    r"\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)}",
    rows=["H2"],
    follows="multi-head-attention",
    uses=["multi-head-attention"],
    assumes=["W_O^(h) = rows (h - 1) d_v + 1 to h d_v of W_O"],
    kind="numeric",
    scope="H = 2",
)
def sum_over_heads(rng: np.random.Generator) -> Claims:
    """A product of blocks: each head owns the rows of W_O that its columns meet."""
    for layer in (EXAMPLE, _layer(rng)):
        z = layer.heads()
        yield np.hstack([z[0], z[1]]) @ layer.w_output, z[0] @ layer.w_output[:2] + z[1] @ layer.w_output[2:]


@sum_over_heads.wrong("the same rows of W_O for every head")
def _(rng: np.random.Generator) -> Sides:
    return EXAMPLE.output(), (EXAMPLE.heads()[0] + EXAMPLE.heads()[1]) @ EXAMPLE.w_output[:2]


@sum_over_heads.wrong("every second row of W_O")
def _(rng: np.random.Generator) -> Sides:
    return EXAMPLE.output(), EXAMPLE.heads()[0] @ EXAMPLE.w_output[0::2] + EXAMPLE.heads()[1] @ EXAMPLE.w_output[1::2]


@equation(
    "sum-of-head-maps",
    r"\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr)",
    rows=["H2"],
    follows="output-projection-sums-heads",
    uses=["attention-of-one-head", "output-projection-sums-heads"],
    kind="numeric",
    scope="H = 2",
)
def sum_of_maps(rng: np.random.Generator) -> Claims:
    """Put Eq. attention-of-one-head in: what mixes positions, P_h, stands on the left of X, and what mixes features on the right."""
    for layer in (EXAMPLE, _layer(rng)):
        z, P, v, o = layer.heads(), layer.maps(), layer.w_value, layer.w_output
        yield (
            z[0] @ layer.w_output[:2] + z[1] @ layer.w_output[2:],
            P[0] @ layer.x @ (v[:, :2] @ o[:2]) + P[1] @ layer.x @ (v[:, 2:] @ o[2:]),
        )


@sum_of_maps.wrong("one map for all: the mean of the P_h")
def _(rng: np.random.Generator) -> Sides:
    return EXAMPLE.output(), EXAMPLE.maps().mean(axis=0) @ EXAMPLE.x @ (EXAMPLE.w_value @ EXAMPLE.w_output)


@equation(
    "value-output-rank-bound",
    r"\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)",
    rows=["H2"],
    uses=["sum-of-head-maps"],
    kind="numeric",
    scope="d = 5, d_v = 2, H = 1 to 3, both bounds attained",
)
def heads_have_low_rank(rng: np.random.Generator) -> Claims:
    """A product has at most the rank of its narrowest factor: one head writes into d_v directions, all heads together into all."""
    for n_heads in range(1, 4):
        w_value, w_output = rng.normal(size=(5, 2 * n_heads)), rng.normal(size=(2 * n_heads, 5))
        yield Chain(np.linalg.matrix_rank(w_value[:, :2] @ w_output[:2]), "<=", 2, tight=(True,))
        yield Chain(np.linalg.matrix_rank(w_value @ w_output), "<=", min(5, 2 * n_heads), tight=(True,))


heads_have_low_rank.wrong("each head can write into all directions")(
    lambda rng: (np.linalg.matrix_rank(EXAMPLE.w_value[:, :2] @ EXAMPLE.w_output[:2]), 5.0)
)
heads_have_low_rank.wrong("so can no number of heads")(
    lambda rng: Chain(np.linalg.matrix_rank(EXAMPLE.w_value @ EXAMPLE.w_output), "<=", 2)
)


@equation(
    "averaging-heads-averages-weights",
    r"\frac{1}{H} \sum_{h=1}^{H} P_h V = \Bigl(\frac{1}{H} \sum_{h=1}^{H} P_h\Bigr) V",
    rows=["H1"],
    assumes=["the heads share V and their outputs are averaged"],
    scope="H = 2, T = 2, d_v = 1",
)
def averaged_heads_are_one_head() -> Sides:
    """The mean of weight matrices is a weight matrix: averaging throws away what several heads are for."""
    P = [row_softmax_symbols(matrix_symbols(letter, 2, 2)) for letter in "st"]
    V = matrix_symbols("v", 2, 1)
    return (P[0] * V + P[1] * V) / 2, (P[0] + P[1]) / 2 * V


@averaged_heads_are_one_head.wrong("the mean of the scores would do")
def _() -> Sides:
    scores = [matrix_symbols(letter, 2, 2) for letter in "st"]
    P = [row_softmax_symbols(each) for each in scores]
    V = matrix_symbols("v", 2, 1)
    return (P[0] * V + P[1] * V) / 2, row_softmax_symbols((scores[0] + scores[1]) / 2) * V


@equation(
    "signed-mixture-row-sums",
    r"\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1}",
    rows=["H1"],
    uses=["softmax-inside-the-simplex", "sum-of-head-maps"],
    assumes=["V shared", "W_V^(h) W_O^(h) = c_h times one matrix"],
    scope="H = 2, T = 2",
)
def signed_mixtures() -> Sides:
    """With c = (1, -1) rows sum to 0: a difference of two averages, such as previous minus next token, which one head cannot form."""
    P = [row_softmax_symbols(matrix_symbols(letter, 2, 2)) for letter in "st"]
    c = symbols("c_1 c_2", real=True)
    return (c[0] * P[0] + c[1] * P[1]) * sympy.ones(2, 1), total(c) * sympy.ones(2, 1)


@signed_mixtures.wrong("rows of the whole always sum to 1")
def _() -> Sides:
    P = [row_softmax_symbols(matrix_symbols(letter, 2, 2)) for letter in "st"]
    return (P[0] - P[1]) * sympy.ones(2, 1), sympy.ones(2, 1)


@equation(
    "score-matrix-rank-bound",
    r"\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) \le d_k",
    rows=["H1", "H4"],
    uses=["attention-of-one-head"],
    kind="numeric",
    scope="T = 7, d = 5, d_k = 1 to 3, bound attained",
)
def scores_have_low_rank(rng: np.random.Generator) -> Claims:
    """More heads at a fixed d_model make each of them narrower, and its T x T scores poorer."""
    for width in range(1, 4):
        x, w_query, w_key = rng.normal(size=(7, 5)), rng.normal(size=(5, width)), rng.normal(size=(5, width))
        yield Chain(np.linalg.matrix_rank(x @ w_query @ w_key.T @ x.T), "<=", width, tight=(True,))


@scores_have_low_rank.wrong("any T x T matrix of scores can be reached")
def _(rng: np.random.Generator) -> Sides:
    x, w_query, w_key = rng.normal(size=(7, 5)), rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    return np.linalg.matrix_rank(x @ w_query @ w_key.T @ x.T), 7.0


# ---- 8.3 what it costs


@equation(
    "multi-head-parameters",
    r"N = H\,(2\, d\, d_k + 2\, d\, d_v)",
    rows=["H2", "H4"],
    uses=["multi-head-attention"],
    assumes=["no biases"],
    kind="numeric",
    scope="three layers that run",
)
def parameter_count(rng: np.random.Generator) -> Claims:
    """W_Q and W_K have d rows and H d_k columns, W_V d rows and H d_v columns, W_O H d_v rows and d columns."""
    for n_heads, width, value_width, d_model in ((2, 3, 2, 5), (1, 4, 7, 6), (3, 2, 2, 6)):
        heads, values = n_heads * width, n_heads * value_width
        weights = [rng.normal(size=shape) for shape in ((d_model, heads), (d_model, heads), (d_model, values), (values, d_model))]
        output = reference.multi_head_attention(np.ones((4, d_model)), np.ones((4, d_model)), *weights, n_heads=n_heads)
        assert output.shape == (4, d_model), "the shapes fit"
        yield sum(weight.size for weight in weights), n_heads * (2 * d_model * width + 2 * d_model * value_width)


parameter_count.wrong("W_V in R^{d x d} for each head", trap="X18")(
    lambda rng: (sum(w.size for w in (EXAMPLE.w_query, EXAMPLE.w_key, EXAMPLE.w_value, EXAMPLE.w_output)), 2 * (2 * 5 * 3 + 5 * 5 + 2 * 5))
)
parameter_count.wrong("W_O forgotten")(
    lambda rng: (sum(w.size for w in (EXAMPLE.w_query, EXAMPLE.w_key, EXAMPLE.w_value, EXAMPLE.w_output)), 2 * (2 * 5 * 3 + 5 * 2))
)


@equation(
    "parameters-by-head-width",
    r"d_k = d_v = \frac{d}{H}:\; N = 4\,d^2, \qquad d_k = d_v = d:\; N = 4\,H\,d^2",
    rows=["H1", "H4"],
    uses=["multi-head-parameters"],
    kind="numeric",
    scope="d = 6, H = 1, 2, 3, 6",
)
def narrow_heads_cost_as_much_as_one(rng: np.random.Generator) -> Claims:
    """In Eq. multi-head-parameters the number of heads cancels if they share the width; heads of full size cost H times more."""
    d = 6
    for H in (1, 2, 3, 6):
        yield (_parameters(d, H, d // H), _parameters(d, H, d)), (4 * d**2, 4 * H * d**2)


def _parameters(d_model: int, n_heads: int, width: int) -> int:
    shapes = [(d_model, n_heads * width)] * 3 + [(n_heads * width, d_model)]
    return sum(np.zeros(shape).size for shape in shapes)


narrow_heads_cost_as_much_as_one.wrong("H heads of width d / H cost H times as much")(lambda rng: (_parameters(6, 3, 2), 4 * 3 * 6**2))
narrow_heads_cost_as_much_as_one.wrong("full-size heads cost as much as one")(lambda rng: (_parameters(6, 3, 6), 4 * 6**2))


@equation(
    "multi-head-flops",
    r"F = 8\,T d^2 + 4\,T^2 d",
    rows=["H1", "H2"],
    uses=["attention-and-rnn-flops", "multi-head-attention"],
    assumes=["d_k = d_v = d / H", "a multiply-add counts 2", "softmax not counted"],
    kind="numeric",
    scope="T = 1 to 5, d = 6, H = 1, 2, 3, 6",
)
def flops_do_not_depend_on_the_number_of_heads(rng: np.random.Generator) -> Claims:
    """Four projections of T rows cost 2 T d^2 each; scores and output cost 2 T^2 d_k for each of H heads, and H d_k = d."""
    d_model = 6
    for n_heads in (1, 2, 3, 6):
        for length in range(1, 6):
            yield 2 * _multiplications(length, d_model, n_heads), 8 * length * d_model**2 + 4 * length**2 * d_model


def _multiplications(length: int, d_model: int, n_heads: int) -> int:
    def layer(x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        q, k, v = ((x @ w).reshape(length, n_heads, d_model // n_heads).swapaxes(0, 1) for w in weights[:3])
        return ((q @ k.swapaxes(1, 2)) @ v).swapaxes(0, 1).reshape(length, d_model) @ weights[3]

    return multiplications(layer, (length, d_model), *4 * [(d_model, d_model)])


flops_do_not_depend_on_the_number_of_heads.wrong("H maps of T x T cost H times as much as one")(
    lambda rng: (2 * _multiplications(5, 6, 3), 8 * 5 * 6**2 + 3 * 4 * 5**2 * 6)
)
flops_do_not_depend_on_the_number_of_heads.wrong("the projection of the output forgotten")(
    lambda rng: (2 * _multiplications(5, 6, 3), 6 * 5 * 6**2 + 4 * 5**2 * 6)
)


@equation(
    "second-projection-adds-nothing",
    r"Q\, W_h^{Q} = X\, \bigl(W_Q W_h^{Q}\bigr), \qquad Q = X W_Q",
    rows=["H4"],
    uses=["heads-are-column-blocks"],
    assumes=["each head projects what is already projected"],
    scope="T = 2, d = 2, d_k = 1",
)
def projecting_twice() -> Sides:
    """The product of two matrices is one matrix: the second projection adds parameters, but no function that the first lacks."""
    X, W, W_h = matrix_symbols("x", 2, 2), matrix_symbols("w", 2, 2), matrix_symbols("u", 2, 1)
    return (X * W) * W_h, X * (W * W_h)


@projecting_twice.wrong("the same as projecting X once by the second matrix")
def _() -> Sides:
    X, W, W_h = matrix_symbols("x", 2, 2), matrix_symbols("w", 2, 2), matrix_symbols("u", 2, 1)
    return (X * W) * W_h, X * W_h


@projecting_twice.wrong("the matrices in the other order")
def _() -> Sides:
    X, W, W_h = matrix_symbols("x", 2, 2), matrix_symbols("w", 2, 2), matrix_symbols("u", 2, 2)
    return (X * W) * W_h, X * (W_h * W)
