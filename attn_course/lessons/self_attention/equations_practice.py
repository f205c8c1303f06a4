"""Residuals, what attention learns and shows, and how parallel it is."""

from itertools import combinations

import numpy as np
import sympy
from sympy import Matrix, Rational, symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.counting import Traced, multiplications, traced
from attn_course.equations.derivatives import plain_softmax
from attn_course.equations.moments import Expr
from attn_course.equations.stated import equation
from attn_course.equations.symbols import real_symbols, softmax_symbols, total
from attn_course.lessons.self_attention.equations import Weights, self_attention, self_attention_inputs

width, length = symbols("d T", positive=True)


# ---- 5.7 Attention replaces, the residual updates


@equation(
    "residual-stream",
    r"X_L = X_0 + \sum_{l=1}^{L} Z_l(X_{l-1}), \qquad X_l = X_{l-1} + Z_l(X_{l-1})",
    rows=["E5"],
    uses=["self-attention"],
    assumes=["d_v = d_model"],
    kind="numeric",
    scope="L = 1, 2, 3",
)
def residual_stream(rng: np.random.Generator) -> Claims:
    """Unroll the recursion: the input stays in the sum, and each layer adds what it read from the layer below."""
    for depth in (1, 2, 3):
        x, layers = rng.normal(size=(5, 4)), [_square_layer(rng) for _ in range(depth)]
        states = [x]
        for layer in layers:
            states.append(states[-1] + self_attention(states[-1], layer))
        yield states[-1], x + sum(self_attention(states[n], layers[n]) for n in range(depth))


def _square_layer(rng: np.random.Generator) -> Weights:
    return rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 4))


@residual_stream.wrong("attention updates the token by itself: X_l = Z_l")
def _(rng: np.random.Generator) -> Claims:
    x, first, second = rng.normal(size=(5, 4)), _square_layer(rng), _square_layer(rng)
    hidden = x + self_attention(x, first)
    yield hidden + self_attention(hidden, second), self_attention(self_attention(x, first), second)


@residual_stream.wrong("every layer reads the input")
def _(rng: np.random.Generator) -> Claims:
    x, first, second = rng.normal(size=(5, 4)), _square_layer(rng), _square_layer(rng)
    hidden = x + self_attention(x, first)
    yield hidden + self_attention(hidden, second), x + self_attention(x, first) + self_attention(x, second)


@equation(
    "attention-contracts-differences",
    r"\max_i z_i - \min_i z_i \le \tau\, \bigl( \max_j v_j - \min_j v_j \bigr), \qquad"
    r" \tau = 1 - \min_{i,k} \sum_{j} \min(p_{ij}, p_{kj})",
    rows=["E5"],
    uses=["output-in-convex-hull", "output-of-a-query"],
    assumes=["one feature of the values"],
    kind="numeric",
    scope="T = 2 to 6, bound sharp",
)
def attention_alone_levels_out(rng: np.random.Generator) -> Claims:
    """The part of their weights that two rows share moves them alike. With finite scores tau < 1: without a residual, differences die."""
    for count in range(2, 7):
        tokens = rng.normal(size=(count, 3))
        p, plain = reference.attention(tokens, tokens, tokens, return_weights=True)[1], rng.normal(size=count)
        i, j = max(combinations(range(count), 2), key=lambda rows: np.abs(p[rows[0]] - p[rows[1]]).sum())
        for value, sharp in ((plain, False), (np.where(p[i] > p[j], 1.0, 0.0), True)):
            yield Chain(np.ptp(p @ value), "<=", _overlap_bound(p) * np.ptp(value), tight=(sharp,))
            yield Chain(_overlap_bound(p), "<", 1.0)


def _overlap_bound(p: np.ndarray) -> float:
    return 1 - min(float(np.minimum(a, b).sum()) for a, b in combinations(p, 2))


@attention_alone_levels_out.wrong("half of the differences are left at most")
def _(rng: np.random.Generator) -> Claims:
    tokens = 3 * rng.normal(size=(5, 4))
    p = reference.attention(tokens, tokens, tokens, return_weights=True)[1]
    yield Chain(np.ptp(p @ np.eye(5), axis=0), "<=", 0.5)


@attention_alone_levels_out.wrong("the same for X + Z: the residual does not help")
def _(rng: np.random.Generator) -> Claims:
    tokens = rng.normal(size=(5, 3))
    p = reference.attention(tokens, tokens, tokens, return_weights=True)[1]
    yield Chain(np.ptp(tokens + p @ tokens, axis=0), "<=", _overlap_bound(p) * np.ptp(tokens, axis=0))


# ---- 5.8 "It" and "the cat": what is learned, and what may not be concluded


@equation(
    "wanted-value-gains-score",
    r"-\frac{\partial}{\partial s_n}\, \tfrac{1}{2} \|z - v_n\|^2 = p_n\, \|v_n - z\|^2",
    rows=["E2"],
    uses=["score-gradient-against-mixture"],
    assumes=["one row of scores s, z = sum_j p_j v_j", "the output wanted is v_n, the value of the noun"],
    scope="3 tokens, d_v = 2, n = 1",
)
def the_noun_gains() -> Sides:
    """Eq. score-gradient-against-mixture with dO = z - v_n.

    Never negative: each step raises the score of the token whose value is needed, until z = v_n.
    """
    z, p, v = _mixture()
    return -sympy.diff(_loss_of_pronoun(), scores[0]), p[0] * total((v[0, a] - z[a]) ** 2 for a in range(2))


scores = real_symbols("s", 3)


def _mixture() -> tuple[Matrix, Matrix, Matrix]:
    v, p = Matrix(3, 2, real_symbols("v", 6)), softmax_symbols(scores)
    return v.T * p, p, v


def _loss_of_pronoun() -> Expr:
    z, _, v = _mixture()
    return Rational(1, 2) * total((z[a] - v[0, a]) ** 2 for a in range(2))


def _gain_of_noun() -> Expr:
    return -sympy.diff(_loss_of_pronoun(), scores[0])


the_noun_gains.wrong("whatever its weight is")(
    lambda: (_gain_of_noun(), total((_mixture()[2][0, a] - _mixture()[0][a]) ** 2 for a in range(2)))
)
the_noun_gains.wrong("what has weight gains weight, needed or not")(lambda: (_gain_of_noun(), _mixture()[1][0] * (1 - _mixture()[1][0])))


@equation(
    "other-weights-same-output",
    r"(P + N)\, V = P\, V \quad \text{if} \quad N\, [\,V \;\; \mathbf{1}\,] = 0",
    rows=["E2"],
    uses=["attention"],
    assumes=["T > d_v + 1 tokens, so that such N exist", "N small enough to keep P + N >= 0"],
    kind="numeric",
    scope="T = 6, d_v = 2",
)
def other_weights_same_output(rng: np.random.Generator) -> Claims:
    """V and the row sums are d_v + 1 conditions on T weights. A map of weights is one of many that give the output, not its explanation."""
    x, weights = self_attention_inputs(rng, length=6)
    value, p = x @ weights[2], plain_softmax(x @ weights[0] @ (x @ weights[1]).T / np.sqrt(3))
    other = p + _unseen(value, p)
    assert other.min() > -1e-12, "still weights"
    assert np.abs(other - p).max() > 0.05, "and other ones"
    yield (other @ value, other.sum(axis=-1)), (p @ value, np.ones(6))


def _unseen(value: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return a change of the weights that neither the output nor the row sums show, as large as the weights allow."""
    conditions = np.hstack([value, np.ones((len(value), 1))])
    direction = np.linalg.svd(conditions.T)[2][-1]
    room = np.where(direction < 0, p / np.maximum(-direction, 1e-300), np.inf).min(axis=-1, keepdims=True)
    return np.asarray(room * direction)


@other_weights_same_output.wrong("the output tells the weights: solve Z = P V for P", trap="X31")
def _(rng: np.random.Generator) -> Claims:
    x, weights = self_attention_inputs(rng, length=6)
    p = plain_softmax(x @ weights[0] @ (x @ weights[1]).T / np.sqrt(3))
    value = x @ weights[2]
    yield (p @ value) @ np.linalg.pinv(value), p


@other_weights_same_output.wrong("the token with the highest weight is the reason: it stays the highest", trap="X31")
def _(rng: np.random.Generator) -> Claims:
    value, p = np.array([[1.0], [0.0], [0.5], [0.5]]), np.array([[0.1, 0.1, 0.6, 0.2]])
    other = p + np.array([[0.4, 0.4, -0.6, -0.2]])
    assert np.allclose(other @ value, p @ value)
    yield other.argmax(axis=-1) == p.argmax(axis=-1), np.ones(1)


# ---- 5.9 Co-occurrence: features as tokens


@equation(
    "feature-scores-are-correlations",
    r"\frac{x_a \cdot x_b}{\sqrt{m}} = \sqrt{m}\; r_{ab}",
    rows=["E3"],
    uses=["scaled-score", "self-attention-without-projections"],
    assumes=["tokens = features: x_a holds the m observations of feature a", "mean 0 and mean square 1 for each feature"],
    kind="numeric",
    scope="m = 11 observations of 4 features",
)
def scores_between_features(rng: np.random.Generator) -> Claims:
    """QK^T relates the rows it is given. Rows must be features, if features are to be paired; then a score is a correlation r, rescaled."""
    data = rng.normal(size=(11, 4)) @ rng.normal(size=(4, 4))
    features = ((data - data.mean(axis=0)) / data.std(axis=0)).T
    yield reference.scaled_dot_scores(features, features), np.sqrt(11) * np.corrcoef(data, rowvar=False)


@scores_between_features.wrong("tokens = observations, as the table comes")
def _(rng: np.random.Generator) -> Claims:
    data = rng.normal(size=(4, 4)) @ rng.normal(size=(4, 4))
    rows = (data - data.mean(axis=0)) / data.std(axis=0)
    yield reference.scaled_dot_scores(rows, rows), np.sqrt(4) * np.corrcoef(data, rowvar=False)


@scores_between_features.wrong("the raw columns, neither centred nor scaled")
def _(rng: np.random.Generator) -> Claims:
    data = 1 + rng.normal(size=(11, 4))
    yield reference.scaled_dot_scores(data.T.copy(), data.T.copy()), np.sqrt(11) * np.corrcoef(data, rowvar=False)


@equation(
    "feature-weights-from-correlations",
    r"p_{ab} = \frac{e^{\sqrt{m}\, r_{ab}}}{\sum_{c} e^{\sqrt{m}\, r_{ac}}} \ge 0",
    rows=["E3"],
    uses=["attention-weights", "feature-scores-are-correlations"],
    assumes=["as in {eq}`feature-scores-are-correlations`"],
    kind="numeric",
    scope="m = 11 observations of 4 features",
)
def weights_between_features(rng: np.random.Generator) -> Claims:
    """Softmax of Eq. feature-scores-are-correlations: queries against keys.

    Rows sum to 1, an opposite feature gets next to nothing, each feature prefers itself.
    """
    data = rng.normal(size=(11, 4)) @ rng.normal(size=(4, 4))
    features, r = ((data - data.mean(axis=0)) / data.std(axis=0)).T, np.corrcoef(data, rowvar=False)
    p = reference.attention(features, features, features, return_weights=True)[1]
    e = np.exp(np.sqrt(11) * r)
    yield p, np.array([[e[a, b] / sum(e[a]) for b in range(4)] for a in range(4)])


@weights_between_features.wrong("attention weights are correlations", trap="X27")
def _(rng: np.random.Generator) -> Claims:
    data = rng.normal(size=(11, 4)) @ rng.normal(size=(4, 4))
    features = ((data - data.mean(axis=0)) / data.std(axis=0)).T
    yield reference.attention(features, features, features, return_weights=True)[1], np.corrcoef(data, rowvar=False)


@weights_between_features.wrong("co-occurrence between queries and values: other values, other weights", trap="X27")
def _(rng: np.random.Generator) -> Claims:
    query, key = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    one, other = (reference.attention(query, key, rng.normal(size=(7, 2)), return_weights=True)[1] for _ in range(2))
    yield np.abs(one - other).max() > 0, 1.0


# ---- 5.10 All positions at once

SHAPES = ((1, 1), (2, 3), (5, 2), (4, 4))  # T, d


@equation(
    "attention-and-rnn-flops",
    r"\text{FLOPs}_{\text{attention}} = 6\,T d^2 + 4\,T^2 d, \qquad \text{FLOPs}_{\text{RNN}} = 4\,T d^2",
    rows=["E4"],
    uses=["attention-flops", "self-attention"],
    assumes=["d = d_model = d_k = d_v = hidden size", "a multiplication and its addition count 2; matrix products only"],
    kind="numeric",
    scope="counted for four sizes",
)
def operations_of_a_layer(rng: np.random.Generator) -> Claims:
    """Three projections of T tokens and Eq. attention-flops; for the RNN two matrices, applied to T vectors each."""
    for T, d in SHAPES:
        square = (d, d)
        attention = 2 * multiplications(lambda x, a, b, c: (x @ a @ (x @ b).T) @ (x @ c), (T, d), square, square, square)
        recurrent = 2 * multiplications(_recurrent_products, (T, d), square, square)
        yield (attention, recurrent), (6 * T * d**2 + 4 * T**2 * d, 4 * T * d**2)


def _recurrent_products(x: np.ndarray, w_hidden: np.ndarray, w_input: np.ndarray) -> np.ndarray:
    state = x[0]
    for token in x:
        state = state @ w_hidden + token @ w_input
    return state


@operations_of_a_layer.wrong("attention is cheaper because it is parallel")
def _(rng: np.random.Generator) -> Claims:
    square = (3, 3)
    attention = multiplications(lambda x, a, b, c: (x @ a @ (x @ b).T) @ (x @ c), (7, 3), square, square, square)
    yield Chain(attention, "<", multiplications(_recurrent_products, (7, 3), square, square))


@operations_of_a_layer.wrong("linear in T: the projections only")
def _(rng: np.random.Generator) -> Claims:
    square = (3, 3)
    attention = 2 * multiplications(lambda x, a, b, c: (x @ a @ (x @ b).T) @ (x @ c), (7, 3), square, square, square)
    yield attention, 6 * 7 * 3**2


@equation(
    "quadratic-cost-crossover",
    r"4\,T^2 d = 6\,T d^2 \quad \Longleftrightarrow \quad T = \tfrac{3}{2}\, d",
    rows=["E4"],
    uses=["attention-and-rnn-flops"],
    assumes=["T, d > 0"],
    scope="every d",
)
def where_the_quadratic_part_takes_over() -> Sides:
    """Below 1.5 d tokens most of the work is in the projections; beyond, in the T x T weights."""
    return sympy.solve(4 * length**2 * width - 6 * length * width**2, length)[0], Rational(3, 2) * width


def _crossing() -> Expr:
    return sympy.solve(4 * length**2 * width - 6 * length * width**2, length)[0]


where_the_quadratic_part_takes_over.wrong("already at T = d")(lambda: (_crossing(), width))
where_the_quadratic_part_takes_over.wrong("upside down: 2/3 d")(lambda: (_crossing(), Rational(2, 3) * width))


@equation(
    "attention-and-rnn-depth",
    r"\text{depth}_{\text{attention}} = 3, \qquad \text{depth}_{\text{RNN}} = T",
    rows=["E4"],
    uses=["self-attention"],
    assumes=["depth = matrix products that must wait for each other", "softmax and tanh go with the product before them"],
    kind="numeric",
    scope="T = 1 to 12",
)
def sequential_depth(rng: np.random.Generator) -> Claims:
    """Projections, scores, output: three in a row for any length. A state of the RNN needs the one before: more processors do not help."""
    for T in range(1, 13):
        yield (_traced_attention(T, 2)[1], _traced_rnn(T, 2)[1]), (3, T * 1)


def _traced_attention(steps: int, d: int) -> tuple[int, int]:
    def layer(x: Traced, a: Traced, b: Traced, c: Traced) -> Traced:
        return ((x @ a) @ (x @ b).T).elementwise() @ (x @ c)

    return traced(layer, (steps, d), (d, d), (d, d), (d, d))


def _traced_rnn(steps: int, d: int) -> tuple[int, int]:
    def layer(state: Traced, w_hidden: Traced, w_input: Traced, *tokens: Traced) -> Traced:
        for token in tokens:
            state = (state @ w_hidden).elementwise(token @ w_input)
        return state

    return traced(layer, (1, d), (d, d), (d, d), *[(1, d)] * steps)


sequential_depth.wrong("a long sequence makes attention deep too")(lambda rng: (_traced_attention(12, 2)[1], 12))
sequential_depth.wrong("an RNN is parallel over its inputs, hence of depth 1")(lambda rng: (_traced_rnn(12, 2)[1], 1))


@equation(
    "attention-and-rnn-traffic",
    r"\text{moved}_{\text{attention}} = 3 d^2 + 10\, T d + 4\, T^2, \qquad \text{moved}_{\text{RNN}} = 2\,T d^2 + 7\, T d",
    rows=["E4"],
    uses=["attention-traffic", "attention-and-rnn-depth"],
    assumes=[
        "numbers, not bytes",
        "each operation reads its inputs from memory and writes its result there",
        "sizes as in {eq}`attention-and-rnn-flops`",
    ],
    kind="numeric",
    scope="traced for four sizes",
)
def traffic_of_a_layer(rng: np.random.Generator) -> Claims:
    """The RNN reads its matrices again at every step, attention reads its own once and moves the T x T weights four times instead."""
    for T, d in SHAPES:
        yield (_traced_attention(T, d)[0], _traced_rnn(T, d)[0]), (3 * d**2 + 10 * T * d + 4 * T**2, 2 * T * d**2 + 7 * T * d)


traffic_of_a_layer.wrong("the RNN reads its matrices once")(lambda rng: (_traced_rnn(5, 2)[0], 2 * 2**2 + 7 * 5 * 2))
traffic_of_a_layer.wrong("attention moves nothing of size T^2")(lambda rng: (_traced_attention(5, 2)[0], 3 * 2**2 + 10 * 5 * 2))
