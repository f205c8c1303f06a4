"""Attention as a soft lookup: what a recurrent network forgets, weights from similarities, order and copies of pairs.

Similarities s are any non-negative numbers with a positive sum; softmax comes only in lesson softmax.
"""

import numpy as np
import sympy
from sympy import Matrix, symbols, tanh

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.moments import Expr
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, positive_symbols, real_symbols, total

s, v, x = positive_symbols("s", 3), real_symbols("v", 3), real_symbols("x", 3)
w, u, h_0, o = symbols("w u h_0 o", real=True)


# ---- 1.1 Why attention: recall at a distance


def _states() -> list[Expr]:
    """Return h_0 and the states h_1, h_2, h_3 of a recurrent network with one unit, written out."""
    states = [h_0]
    for x_t in x:
        states.append(tanh(w * states[-1] + u * x_t))
    return states


@equation(
    "recurrent-gradient-product",
    r"\frac{\partial h_T}{\partial h_0} = \prod_{t=1}^{T} w\,(1 - h_t^2)",
    rows=["A5"],
    assumes=["h_t = tanh(w h_{t-1} + u x_t)"],
    scope="T = 3, one unit",
)
def memory_of_a_recurrent_network() -> Sides:
    """Chain rule: what stood T steps ago is reached through T factors."""
    h = _states()
    return sympy.diff(h[3], h_0), sympy.prod(w * (1 - h_t**2) for h_t in h[1:])


memory_of_a_recurrent_network.wrong("the factors added")(
    lambda: (sympy.diff(_states()[3], h_0), total(w * (1 - h_t**2) for h_t in _states()[1:]))
)
memory_of_a_recurrent_network.wrong("only the last step counts")(lambda: (sympy.diff(_states()[3], h_0), w * (1 - _states()[3] ** 2)))


@equation(
    "recurrent-gradient-bound",
    r"\Bigl| \frac{\partial h_T}{\partial h_0} \Bigr| \le |w|^T",
    rows=["A5"],
    uses=["recurrent-gradient-product"],
    kind="numeric",
    scope="T = 1 to 8, bound sharp",
)
def memory_fades(rng: np.random.Generator) -> Claims:
    """Each factor of Eq. recurrent-gradient-product is at most |w|, and below |w| once a unit is off zero.

    For |w| < 1 the past fades geometrically.
    """
    for steps in range(1, 9):
        for weight, size in ((0.8, 0.0), (-0.9, 1.0), (1.3, 0.0), (1.3, 2.0)):
            slope = _recurrent_slope(weight, size * rng.normal(size=steps))
            yield Chain(slope, "<=", abs(weight) ** steps, tight=(size == 0,))


def _recurrent_slope(weight: float, inputs: np.ndarray) -> float:
    """Differentiate the last state with respect to the first one, by a step along the imaginary axis."""
    state = 1e-30j
    for x_t in inputs:
        state = np.tanh(weight * state + x_t)
    return abs(float(np.imag(state))) / 1e-30


memory_fades.wrong("it fades in proportion to the distance")(
    lambda rng: Chain(_recurrent_slope(1.3, np.zeros(8)), "<=", 1.3 * 8, tight=(True,))
)
memory_fades.wrong("nothing is lost on the way")(lambda rng: Chain(1.0, "<=", _recurrent_slope(0.8, rng.normal(size=8))))


# ---- 1.2 A dictionary that answers softly


@equation(
    "exact-lookup",
    r"D[q] = \sum_{i=1}^{m} [\,k_i = q\,]\; v_i",
    rows=["A2"],
    assumes=["the keys are distinct", "q is one of them", "[...] = 1 if true, else 0"],
    kind="numeric",
    scope="m = 5, every key",
)
def exact_lookup(rng: np.random.Generator) -> Claims:
    """All terms but one are 0. Written so, a lookup is a sum over all pairs, and only the brackets are hard."""
    keys, values = rng.permutation(5), rng.normal(size=(5, 2))
    dictionary = {int(key): value for key, value in zip(keys, values, strict=True)}
    for query in range(5):
        yield dictionary[query], sum((keys[i] == query) * values[i] for i in range(5))


@exact_lookup.wrong("it answers with the key")
def _(rng: np.random.Generator) -> Claims:
    keys, values = rng.permutation(5), rng.normal(size=5)
    for query in range(5):
        yield dict(zip(keys, values, strict=True))[query], sum((keys[i] == query) * keys[i] for i in range(5))


@exact_lookup.wrong("it answers by place, not by key")
def _(rng: np.random.Generator) -> Claims:
    keys, values = np.array([3, 0, 4, 1, 2]), rng.normal(size=5)
    for query in range(5):
        yield dict(zip(keys, values, strict=True))[query], values[query]


@equation(
    "normalised-similarities",
    r"\alpha(q, k_i) = \frac{s(q, k_i)}{\sum_{j=1}^{m} s(q, k_j)}",
    rows=["A3", "A4"],
    assumes=["similarities s >= 0 with a positive sum"],
    scope="m = 3",
)
def normalised_weights() -> Sides:
    """The only weights with sum 1 that are in the ratios of the similarities."""
    return _weights_by_ratios(), Matrix(3, 1, lambda i, _: s[i] / total(s[j] for j in range(3)))


def _weights_by_ratios() -> Matrix:
    alpha = positive_symbols("alpha", 3)
    ratios = [alpha[i] * s[0] - s[i] * alpha[0] for i in (1, 2)]
    (solution,) = sympy.linsolve([*ratios, total(alpha) - 1], alpha)
    return column(solution)


normalised_weights.wrong("the same letter on both sides: the sum over i of s(q, k_j)", trap="X3")(
    lambda: (_weights_by_ratios(), Matrix(3, 1, lambda i, _: s[i] / total(s[i] for _ in range(3))))
)
normalised_weights.wrong("divided by the number of pairs")(lambda: (_weights_by_ratios(), column(s_i / 3 for s_i in s)))


@equation(
    "weights-on-the-simplex",
    r"0 \le \alpha_i \le 1, \qquad \sum_{i=1}^{m} \alpha_i = 1",
    rows=["A3", "A6"],
    uses=["normalised-similarities"],
    assumes=["s >= 0 with a positive sum"],
    kind="numeric",
    scope="m = 1 to 7, both bounds reached",
)
def weights_of_nonnegative_similarities(rng: np.random.Generator) -> Claims:
    """No term of a sum of non-negative terms exceeds the sum; a similarity of 0 gives weight 0, and if all others are 0, weight 1."""
    for m in range(1, 8):
        for zeros in (0, 1, m - 1):
            similarity = np.append(np.zeros(min(zeros, m - 1)), 3.0 * rng.uniform(0.1, 1.0, size=m - min(zeros, m - 1)))
            tight = (zeros > 0 and m > 1, similarity[similarity > 0].size == 1)
            yield Chain(0.0, "<=", similarity / similarity.sum(), "<=", 1.0, tight=tight)
            yield (similarity / similarity.sum()).sum(), 1.0


def _between(similarity: np.ndarray) -> Chain:
    return Chain(0.0, "<=", similarity / similarity.sum(), "<=", 1.0)


weights_of_nonnegative_similarities.wrong("for similarities of any sign: 2 and -1 give 2 and -1", trap="X3")(
    lambda rng: _between(np.array([2.0, -1.0]))
)
weights_of_nonnegative_similarities.wrong("also when they sum to 0: 1 and -1", trap="X3")(lambda rng: _between(np.array([1.0, -1.0])))
weights_of_nonnegative_similarities.wrong("the similarities themselves lie in [0, 1]")(
    lambda rng: Chain(0.0, "<=", 3.0 * rng.uniform(0.5, 1.0, size=5), "<=", 1.0)
)


@equation(
    "soft-lookup",
    r"\mathrm{Attention}(q, D) = \sum_{i=1}^{m} \alpha(q, k_i)\, v_i = \arg\min_{o} \sum_{i=1}^{m} s(q, k_i)\, \|v_i - o\|^2",
    rows=["A2", "A4"],
    uses=["exact-lookup", "normalised-similarities"],
    assumes=["one entry of the values at a time"],
    scope="m = 3",
)
def soft_lookup() -> Sides:
    """Eq. exact-lookup with weights for brackets: the one answer that is nearest to all values at once, similar pairs counting more."""
    return _best_answer(), total(s[i] * v[i] for i in range(3)) / total(s)


def _best_answer() -> Expr:
    loss = total(s_i * (v_i - o) ** 2 for s_i, v_i in zip(s, v, strict=True))
    (solution,) = sympy.solve(sympy.diff(loss, o), o)
    return solution


soft_lookup.wrong("a query is mapped to one of the values", trap="X32")(lambda: (_best_answer(), v[0]))
soft_lookup.wrong("the sum without normalisation")(lambda: (_best_answer(), total(s[i] * v[i] for i in range(3))))
soft_lookup.wrong("the plain mean of the values")(lambda: (_best_answer(), total(v) / 3))


# ---- 1.3 Who asks, who answers, what is passed on: a lookup built by hand

NAMES, COLOURS = 4, 3
W_QUERY = np.vstack([np.zeros((NAMES + COLOURS, NAMES)), np.eye(NAMES)])  # a token is (its name, its colour, the name it asks for)
W_KEY = np.vstack([np.eye(NAMES), np.zeros((COLOURS + NAMES, NAMES))])
W_VALUE = np.vstack([np.zeros((NAMES, COLOURS)), np.eye(COLOURS), np.zeros((NAMES, COLOURS))])


def _tokens(name: np.ndarray, colour: np.ndarray, asked: np.ndarray) -> np.ndarray:
    return np.hstack([np.eye(NAMES)[name], np.eye(COLOURS)[colour], np.eye(NAMES)[asked]])


@equation(
    "query-matches-key-name",
    r"(x_i W_Q) \cdot (x_j W_K) = [\,\text{name asked for by } i = \text{name of } j\,]",
    rows=["A7"],
    assumes=["x = (name, colour, name asked for), each one-hot", "W_Q picks the last part, W_K the first, W_V the middle one"],
    kind="numeric",
    scope="4 names, 3 colours",
)
def question_meets_label(rng: np.random.Generator) -> Claims:
    """The query says what is wanted, the key what a position has: their dot product compares two names."""
    name, colour, asked = rng.permutation(4), rng.integers(0, 3, size=4), rng.permutation(4)
    tokens = _tokens(name, colour, asked)
    yield (tokens @ W_QUERY) @ (tokens @ W_KEY).T, np.array([[float(asked[i] == name[j]) for j in range(4)] for i in range(4)])


@question_meets_label.wrong("the roles swapped: the name asks, the question answers")
def _(rng: np.random.Generator) -> Claims:
    name, asked = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    tokens = _tokens(name, rng.integers(0, 3, size=4), asked)
    yield (tokens @ W_KEY) @ (tokens @ W_QUERY).T, np.array([[float(asked[i] == name[j]) for j in range(4)] for i in range(4)])


@question_meets_label.wrong("queries compared with values")
def _(rng: np.random.Generator) -> Claims:
    name, colour, asked = np.array([0, 1, 2, 3]), np.array([0, 1, 2, 0]), np.array([1, 2, 3, 0])
    tokens = _tokens(name, colour, asked)
    yield (tokens @ W_QUERY)[:, :3] @ (tokens @ W_VALUE).T, np.array([[float(asked[i] == name[j]) for j in range(4)] for i in range(4)])


@equation(
    "lookup-by-name",
    r"z_i = \frac{e^{\beta}\, v_{\text{match}} + \sum_{j \ne \text{match}} v_j}{e^{\beta} + m - 1}",
    rows=["A7", "A2"],
    uses=["soft-lookup", "query-matches-key-name"],
    assumes=["s = e^{beta q.k}", "one of the m names matches"],
    kind="numeric",
    scope="m = 4, beta = 1, 3 and 20",
)
def colour_by_name(rng: np.random.Generator) -> Claims:
    """Eq. soft-lookup with the scores of Eq. query-matches-key-name: for large beta the colour of the named token comes out."""
    name, colour, asked = rng.permutation(4), np.array([0, 1, 2, 0]), rng.permutation(4)
    for beta in (1.0, 3.0, 20.0):
        output, value = _answers(_tokens(name, colour, asked), W_QUERY, W_KEY, beta), np.eye(COLOURS)[colour]
        for i in range(4):
            match = value[name == asked[i]][0]
            yield output[i], (np.exp(beta) * match + (value.sum(axis=0) - match)) / (np.exp(beta) + 4 - 1)


def _answers(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, beta: float) -> np.ndarray:
    return np.asarray(reference.attention(tokens @ w_query, tokens @ w_key, tokens @ W_VALUE, scale=beta))


@colour_by_name.wrong("with the roles of W_Q and W_K swapped")
def _(rng: np.random.Generator) -> Claims:
    name, colour, asked = np.array([0, 1, 2, 3]), np.array([0, 1, 2, 0]), np.array([1, 2, 3, 0])
    yield _answers(_tokens(name, colour, asked), W_KEY, W_QUERY, 20.0).round(3), np.eye(COLOURS)[colour[asked]]


@colour_by_name.wrong("exactly the matching value, at any beta", trap="X32")
def _(rng: np.random.Generator) -> Claims:
    name, colour, asked = np.array([0, 1, 2, 3]), np.array([0, 1, 2, 0]), np.array([1, 2, 3, 0])
    yield _answers(_tokens(name, colour, asked), W_QUERY, W_KEY, 3.0), np.eye(COLOURS)[colour[asked]]


# ---- 1.4 A set of pairs, or rather a multiset


@equation(
    "pair-order-invariance",
    r"\mathrm{Attention}(q, \{(k_{\pi(i)}, v_{\pi(i)})\}) = \mathrm{Attention}(q, \{(k_i, v_i)\})",
    rows=["A8"],
    uses=["soft-lookup"],
    assumes=["pi a permutation of the pairs"],
    kind="numeric",
    scope="m = 1 to 7",
)
def order_of_pairs(rng: np.random.Generator) -> Claims:
    """Both sums of Eq. soft-lookup run over all pairs, in any order."""
    for m in range(1, 8):
        query, key, value, order = rng.normal(size=(1, 3)), rng.normal(size=(m, 3)), rng.normal(size=(m, 2)), rng.permutation(m)
        similarity = np.exp(key @ query[0])
        yield reference.attention(query, key[order], value[order], scale=1.0)[0], similarity @ value / similarity.sum()


@order_of_pairs.wrong("keys moved without their values")
def _(rng: np.random.Generator) -> Claims:
    query, key, value = rng.normal(size=(1, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    yield reference.attention(query, key[::-1], value), reference.attention(query, key, value)


@order_of_pairs.wrong("near pairs count more")
def _(rng: np.random.Generator) -> Claims:
    query, key, value, decay = rng.normal(size=(1, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), 0.5 ** np.arange(4)
    similarity = np.exp(key @ query[0]) * decay
    yield reference.attention(query, key, value, scale=1.0)[0], similarity @ value / similarity.sum()


@equation(
    "duplicated-pair-counts-twice",
    r"\mathrm{Attention}(q, D \uplus \{(k_1, v_1)\}) = \frac{2\,s_1 v_1 + \sum_{i \ge 2} s_i v_i}{2\,s_1 + \sum_{i \ge 2} s_i}",
    rows=["A8"],
    uses=["soft-lookup"],
    assumes=["s_i = s(q, k_i)"],
    scope="m = 3",
)
def duplicated_pair() -> Sides:
    """A pair that occurs twice has two terms in each sum: a multiset, since a set would not count it again."""
    return _answer_with_duplicate(), (2 * s[0] * v[0] + total(s[i] * v[i] for i in (1, 2))) / (2 * s[0] + total(s[i] for i in (1, 2)))


def _answer_with_duplicate() -> Expr:
    return sympy.solve(sympy.diff(total(a * (b - o) ** 2 for a, b in zip((*s, s[0]), (*v, v[0]), strict=True)), o), o)[0]


duplicated_pair.wrong("a set ignores duplicates")(lambda: (_answer_with_duplicate(), total(s[i] * v[i] for i in range(3)) / total(s)))
duplicated_pair.wrong("counted twice above, once below")(
    lambda: (_answer_with_duplicate(), (2 * s[0] * v[0] + s[1] * v[1] + s[2] * v[2]) / total(s))
)
