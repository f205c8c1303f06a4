"""Cross-attention.

X (T_q, d_x) asks, Y (T_k, d_y) answers; W_Q (d_x, d_k), W_K (d_y, d_k), W_V (d_y, d_v). Every axis has another length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import sympy
from sympy import Matrix

from attn_course import reference
from attn_course.equations.claims import Claims, Limit, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.derivatives import jacobian
from attn_course.equations.matrices import matrix_symbols, minus_infinity_where_hidden, weights_of
from attn_course.equations.stated import Statement, equation
from attn_course.equations.symbols import column, delta, real_symbols, softmax_symbols, total


class _Cross(NamedTuple):
    """Two sequences and three projections."""

    x: np.ndarray
    y: np.ndarray
    w_query: np.ndarray
    w_key: np.ndarray
    w_value: np.ndarray

    def output(self) -> np.ndarray:
        """Return what the package computes, with one head and no output projection."""
        return np.asarray(reference.multi_head_attention(*self, np.eye(self.w_value.shape[1]), n_heads=1))


def _cross(rng: np.random.Generator, q_len: int = 3, kv_len: int = 5, d_x: int = 4, d_y: int = 6) -> _Cross:
    return _Cross(*(rng.normal(size=shape) for shape in ((q_len, d_x), (kv_len, d_y), (d_x, 7), (d_y, 7), (d_y, 2))))


def _plain(x: np.ndarray, y: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray) -> np.ndarray:
    """Cross-attention from scratch; complex arrays pass, for derivatives."""
    return weights_of((x @ w_query) @ (y @ w_key).T / np.sqrt(w_key.shape[1])) @ (y @ w_value)


# ---- 9.1 two sequences


@equation(
    "cross-attention",
    r"Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}",
    rows=["I1"],
    uses=["attention", "masked-attention"],
    assumes=["W_Q: d_x x d_k", "W_K: d_y x d_k", "W_V: d_y x d_v"],
    kind="numeric",
    scope="T_q = 3, T_k = 5, d_x = 4, d_y = 6, d_k = 7, d_v = 2",
)
def cross_attention(rng: np.random.Generator) -> Claims:
    """Queries from X, keys and values from Y: only d_k must be shared, neither lengths nor widths."""
    for _ in range(3):
        x, y, w_query, w_key, w_value = cross = _cross(rng)
        yield cross.output(), weights_of(x @ w_query @ (y @ w_key).T / np.sqrt(7)) @ (y @ w_value)


cross_attention.wrong("one length m for both sequences", trap="X15")(lambda rng: (len(_cross(rng).output()), len(_cross(rng).y)))
cross_attention.wrong("W_Q and W_K with the same number of rows", trap="X15")(
    lambda rng: (_cross(rng).w_query.shape[0], _cross(rng).w_key.shape[0])
)


@cross_attention.wrong("the source asks and the target answers", trap="X15")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng, kv_len=3, d_y=4)
    return cross.output(), _plain(cross.y, cross.x, *cross[2:])


@cross_attention.wrong("values from X")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng, kv_len=3, d_y=4)
    return cross.output(), weights_of(cross.x @ cross.w_query @ (cross.y @ cross.w_key).T / np.sqrt(7)) @ (cross.x @ cross.w_value)


@equation(
    "rectangular-bilinear-score",
    r"(x\, W_Q)\,(y\, W_K)^\top = x\, A\, y^\top, \qquad A = W_Q W_K^\top \in \mathbb{R}^{d_x \times d_y}",
    rows=["I1"],
    uses=["cross-attention"],
    scope="d_x = 2, d_y = 3, d_k = 2",
)
def scores_between_two_widths() -> Sides:
    """A rectangular matrix compares vectors of two widths; x . y does not even exist."""
    x, y = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 3)
    W_Q, W_K = matrix_symbols("a", 2, 2), matrix_symbols("b", 3, 2)
    return (x * W_Q) * (y * W_K).T, x * (W_Q * W_K.T) * y.T


@scores_between_two_widths.wrong("the raw product of x and the first entries of y", trap="X15")
def _() -> Sides:
    x, y = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 3)
    W_Q, W_K = matrix_symbols("a", 2, 2), matrix_symbols("b", 3, 2)
    return (x * W_Q) * (y * W_K).T, x * y[:, :2].T


@scores_between_two_widths.wrong("A transposed: y asks with W_Q")
def _() -> Sides:
    x, y = matrix_symbols("x", 1, 2), matrix_symbols("y", 1, 2)
    W_Q, W_K = matrix_symbols("a", 2, 2), matrix_symbols("b", 2, 2)
    return (x * W_Q) * (y * W_K).T, x * (W_K * W_Q.T) * y.T


@equation(
    "cross-attention-with-itself",
    r"Z(X, X) = \mathrm{softmax}\Bigl(\frac{X W_Q W_K^\top X^\top}{\sqrt{d_k}}\Bigr)\, X W_V",
    rows=["I1"],
    uses=["self-attention", "cross-attention", "rectangular-bilinear-score"],
    assumes=["Y = X"],
    kind="numeric",
    scope="T = 3, d = 4",
)
def self_attention_is_a_special_case(rng: np.random.Generator) -> Claims:
    """One sequence in both roles: nothing else changes."""
    for _ in range(3):
        x, _y, w_query, w_key, w_value = _cross(rng, d_y=4)
        both = _Cross(x, x, w_query, w_key, w_value)
        yield both.output(), weights_of(x @ w_query @ w_key.T @ x.T / np.sqrt(7)) @ (x @ w_value)


@self_attention_is_a_special_case.wrong("the same projection for queries and keys")
def _(rng: np.random.Generator) -> Sides:
    x, _y, w_query, w_key, w_value = _cross(rng, d_y=4)
    return _Cross(x, x, w_query, w_key, w_value).output(), _plain(x, x, w_query, w_query, w_value)


@equation(
    "cross-attention-by-masking",
    r"Z_{\mathrm{self}}\bigl([\,Y;\, X\,]\bigr)_{T_k + i} = \mathrm{softmax}\Bigl(\frac{x_i W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V",
    rows=["I1"],
    uses=["masked-attention", "cross-attention"],
    assumes=["d_x = d_y", "the mask lets row T_k + i see the rows of Y only"],
    kind="numeric",
    scope="T_q = 3, T_k = 5, d = 4",
)
def cross_attention_is_masked_self_attention(rng: np.random.Generator) -> Claims:
    """Put the source in front of the target: with one set of projections, a mask turns self- into cross-attention."""
    for _ in range(3):
        x, y, w_query, w_key, w_value = _cross(rng, d_y=4)
        both = np.vstack([y, x])
        scores = both @ w_query @ (both @ w_key).T / np.sqrt(7) + minus_infinity_where_hidden(np.arange(8) < 5)
        yield (weights_of(scores) @ (both @ w_value))[5:], weights_of(x @ w_query @ (y @ w_key).T / np.sqrt(7)) @ (y @ w_value)


@cross_attention_is_masked_self_attention.wrong("without the mask")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng, d_y=4)
    both = np.vstack([cross.y, cross.x])
    return _plain(both, both, *cross[2:])[5:], cross.output()


# ---- 9.2 from a fixed context to an alignment


@equation(
    "one-key-ignores-queries",
    r"T_k = 1 \;\Rightarrow\; z_i = y_1 W_V \quad \text{for every } i",
    rows=["A5", "I1"],
    uses=["cross-attention"],
    kind="numeric",
    scope="T_q = 3",
)
def one_context_vector_for_all(rng: np.random.Generator) -> Claims:
    """A softmax over one key is 1: a source summed up in one vector answers every question alike."""
    for _ in range(3):
        cross = _cross(rng, kv_len=1)
        yield cross.output(), np.ones((3, 1)) * sum(cross.y[0, a] * cross.w_value[a] for a in range(6))


@one_context_vector_for_all.wrong("the answer still depends on the query")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng, kv_len=1)
    scores = cross.x @ cross.w_query @ (cross.y @ cross.w_key).T / np.sqrt(7)
    return cross.output(), scores * (cross.y[0] @ cross.w_value)


@equation(
    "context-from-alignment-model",
    r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad"
    r" \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})}, \qquad e_{ij} = a(s_{i-1}, h_j)",
    rows=["A5", "I1"],
    uses=["additive-score", "cross-attention"],
    assumes=["s_{i-1} = decoder state", "h_j = annotation of source word j", "a = additive score"],
    kind="numeric",
    scope="T_q = 3, T_k = 5",
)
def bahdanau_attention(rng: np.random.Generator) -> Claims:
    """The first attention: keys and values are both the annotations h_j, and nothing is scaled or projected but inside the score."""
    for _ in range(3):
        states, h, e = _bahdanau(rng)
        context = [sum(np.exp(e[i, j]) * h[j] for j in range(5)) / sum(np.exp(e[i, j]) for j in range(5)) for i in range(len(states))]
        yield np.array(context), weights_of(e) @ h


def _bahdanau(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return decoder states, annotations and their additive scores."""
    states, h, w_query, w_key, v = (rng.normal(size=shape) for shape in ((3, 4), (5, 6), (4, 7), (6, 7), (7,)))
    return states, h, reference.additive_scores(states, h, w_query, w_key, v)


@bahdanau_attention.wrong("a database of keys with values of their own", trap="X33")
def _(rng: np.random.Generator) -> Sides:
    _states, h, e = _bahdanau(rng)
    return weights_of(e) @ h, weights_of(e) @ rng.normal(size=h.shape)


@bahdanau_attention.wrong("the similarity used as a weight without a softmax", trap="X33")
def _(rng: np.random.Generator) -> Sides:
    _states, h, e = _bahdanau(rng)
    return weights_of(e) @ h, e @ h


@equation(
    "context-derivative-by-annotation",
    r"\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (h_j - c)\, \frac{\partial e_j}{\partial h_j} \Bigr)",
    rows=["A5"],
    uses=["output-derivative-by-score", "context-from-alignment-model"],
    assumes=["c = sum_j alpha_j h_j", "e_j depends on h_j only"],
    scope="two annotations of two features, e_j = (u . h_j)^2",
)
def one_step_to_every_word() -> Sides:
    """Each source word is one step away, with a factor alpha_j: in a recurrent network it is a product of T_k - j Jacobians."""
    u, h = real_symbols("u", 2), matrix_symbols("h", 2, 2)
    e = [(u[0] * h[j, 0] + u[1] * h[j, 1]) ** 2 for j in range(2)]
    alpha = softmax_symbols(e)
    c = column(total(alpha[j] * h[j, a] for j in range(2)) for a in range(2))
    direct = Matrix(2, 2, lambda a, b: alpha[0] * (delta(a, b) + (h[0, a] - c[a]) * e[0].diff(h[0, b])))
    return c.jacobian([h[0, 0], h[0, 1]]), direct


@one_step_to_every_word.wrong("alpha_j I: the weights taken as constants")
def _() -> Sides:
    u, h = real_symbols("u", 2), matrix_symbols("h", 2, 2)
    alpha = softmax_symbols([(u[0] * h[j, 0] + u[1] * h[j, 1]) ** 2 for j in range(2)])
    c = column(total(alpha[j] * h[j, a] for j in range(2)) for a in range(2))
    return c.jacobian([h[0, 0], h[0, 1]]), alpha[0] * sympy.eye(2)


@equation(
    "hard-alignment-limit",
    r"\lim_{T \to 0^+} \sum_{j} \sigma(e_i / T)_j\, v_j = v_{j^\ast(i)}, \qquad j^\ast(i) = \arg\max_j e_{ij}",
    rows=["I1"],
    uses=["temperature-limits", "cross-attention"],
    assumes=["one largest score in each row"],
    kind="numeric",
    scope="T_q = 3, T_k = 5",
)
def hard_alignment(rng: np.random.Generator) -> Claims:
    """Where the weights are nearly one-hot, the output is one source word's value, and the row can be read as an alignment."""
    for _ in range(3):
        e, value = rng.permuted(np.tile(np.arange(5.0), (3, 1)), axis=1), rng.normal(size=(5, 2))
        colder = np.array([weights_of(e * 2.0**step) @ value for step in range(7)])
        yield Limit(colder, value[[max(range(5), key=row.__getitem__) for row in e]], closeness=1e-8)


@hard_alignment.wrong("the mean of the values")
def _(rng: np.random.Generator) -> Limit:
    e, value = rng.permuted(np.tile(np.arange(5.0), (3, 1)), axis=1), rng.normal(size=(5, 2))
    return Limit(np.array([weights_of(e * 2.0**step) @ value for step in range(7)]), np.ones((3, 1)) * value.mean(axis=0))


# ---- 9.3 order, padding and the decoder


@equation(
    "equivariant-target-invariant-source",
    r"Z(\Pi X,\, \Pi' Y) = \Pi\, Z(X, Y)",
    rows=["I1"],
    uses=["permutation-equivariance", "cross-attention"],
    assumes=["Pi, Pi' permutation matrices", "no positions encoded"],
    kind="numeric",
    scope="T_q = 3, T_k = 5",
)
def order_of_both_sequences(rng: np.random.Generator) -> Claims:
    """Equivariant in the target, invariant in the source: word order must come in through positions, on both sides."""
    for _ in range(3):
        cross, first, second = _cross(rng), rng.permutation(np.eye(3)), rng.permutation(np.eye(5))
        moved = cross._replace(x=first @ cross.x, y=second @ cross.y)
        yield moved.output(), first @ _plain(*cross)


@order_of_both_sequences.wrong("invariant in the target too")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng)
    return cross._replace(x=cross.x[::-1]).output(), cross.output()


@order_of_both_sequences.wrong("the order of the source comes back in the output")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng, kv_len=3)
    return cross._replace(y=cross.y[::-1]).output(), cross.output()[::-1]


@equation(
    "padding-on-both-sides",
    r"Z\bigl([\,X;\, \ast\,],\, [\,Y;\, \ast\,]\bigr)_{1:T_q} = Z(X, Y) \quad \text{with } M_{ij} = -\infty \text{ for } j > T_k",
    rows=["I1"],
    uses=["key-padding-changes-nothing", "cross-attention"],
    assumes=["* = padding"],
    kind="numeric",
    scope="two rows of padding on each side",
)
def padding_on_both_sides(rng: np.random.Generator) -> Claims:
    """The mask hides padded keys; padded queries make rows of their own, which nobody reads."""
    for _ in range(3):
        cross = _cross(rng)
        x, y = cross.x, cross.y
        padded = np.vstack([x, rng.normal(size=(2, 4))]), np.vstack([y, rng.normal(size=(2, 6))])
        mask = reference.padding_mask(np.array(5), 7)
        output = reference.multi_head_attention(*padded, *cross[2:], np.eye(2), n_heads=1, mask=mask)
        yield output[:3], weights_of(x @ cross.w_query @ (y @ cross.w_key).T / np.sqrt(7)) @ (y @ cross.w_value)


@padding_on_both_sides.wrong("with the target's padding mask")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng)
    mask = reference.padding_mask(np.array(3), 5)
    return reference.multi_head_attention(*cross, np.eye(2), n_heads=1, mask=mask), cross.output()


@padding_on_both_sides.wrong("without a mask")
def _(rng: np.random.Generator) -> Sides:
    cross = _cross(rng)
    return cross._replace(y=np.vstack([cross.y, np.zeros((2, 6))])).output(), cross.output()


@equation(
    "loss-over-real-tokens",
    r"\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{\sum_t m_t}, \qquad"
    r" \frac{\partial \mathcal{L}}{\partial u_t} = \frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r}",
    rows=["I1"],
    uses=["cross-entropy-gradient"],
    assumes=["m_t = 1 for real tokens of the target, 0 for padding", "p_t = softmax(u_t), u_t = logits", "w_t = token t of the target"],
    kind="numeric",
    scope="3 real tokens of 5, 4 words",
)
def loss_over_real_tokens(rng: np.random.Generator) -> Claims:
    """The mean over what is there: padded rows get no gradient, and the loss is that of the sequence alone."""
    logits, target, m = rng.normal(size=(5, 4)), rng.integers(4, size=5), np.array([1.0, 1, 1, 0, 0])
    alone = -np.log(weights_of(logits[:3])[np.arange(3), target[:3]]).mean()
    p, one_hot = weights_of(logits), np.eye(4)[target]
    by_logits = jacobian(lambda z: _masked_loss(z, target, m), logits)
    yield (alone, by_logits), (np.sum(m * -np.log(p[np.arange(5), target])) / m.sum(), m[:, None] * (p - one_hot) / m.sum())


def _masked_loss(logits: np.ndarray, target: np.ndarray, m: np.ndarray) -> np.ndarray:
    return np.asarray(-(m * np.log(weights_of(logits)[np.arange(5), target])).sum() / m.sum())


@loss_over_real_tokens.wrong("divided by the padded length")
def _(rng: np.random.Generator) -> Sides:
    logits, target, m = rng.normal(size=(5, 4)), rng.integers(4, size=5), np.array([1.0, 1, 1, 0, 0])
    return _masked_loss(logits[:5], target, m), -(m * np.log(weights_of(logits)[np.arange(5), target])).mean()


@loss_over_real_tokens.wrong("the mean over all rows")
def _(rng: np.random.Generator) -> Sides:
    logits, target, m = rng.normal(size=(5, 4)), rng.integers(4, size=5), np.array([1.0, 1, 1, 0, 0])
    return _masked_loss(logits, target, m), -np.log(weights_of(logits)[np.arange(5), target]).mean()


@equation(
    "shifted-input-hides-target",
    r"\frac{\partial u_t}{\partial w_j} = 0 \quad (j \ge t), \qquad \text{decoder input } (w_0, w_1, \ldots, w_{T_q - 1})",
    rows=["I1"],
    uses=["causal-mask-hides-future"],
    assumes=["causal decoder", "row t has the logits u_t of token w_t", "w_0 = start token"],
    kind="numeric",
    scope="T = 5",
)
def shifted_right(rng: np.random.Generator) -> Claims:
    """The causal mask shows row t its own input, so the input must be one step behind the target: what is predicted is not seen."""
    influence = _influence(rng, lambda y: np.vstack([np.zeros((1, 3)), y[:-1]]))
    for t in range(5):
        for j in range(t, 5):
            yield influence[t, j], 0.0
    yield np.sign(influence), np.tri(5, k=-1)


def _influence(rng: np.random.Generator, decoder_input: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the largest influence of target token j on row t of causal self-attention over the decoder's input."""
    y, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 3, 3))
    hidden = minus_infinity_where_hidden(np.tri(5, dtype=bool))

    def layer(target: np.ndarray) -> np.ndarray:
        x = decoder_input(target)
        return weights_of((x @ w[0]) @ (x @ w[1]).T + hidden) @ (x @ w[2])

    return np.asarray(np.abs(jacobian(layer, y)).max(axis=(1, 3)))


def _no_peeking(decoder_input: Callable[[np.ndarray], np.ndarray]) -> Statement:
    def statement(rng: np.random.Generator) -> Sides:
        return _influence(rng, decoder_input) * (1 - np.tri(5, k=-1)), np.zeros((5, 5))

    return statement


shifted_right.wrong("the causal mask alone, without the shift")(_no_peeking(lambda y: y))
shifted_right.wrong("shifted to the left")(_no_peeking(lambda y: np.vstack([y[1:], np.zeros((1, 3))])))


# ---- 9.4 gradients and costs


@equation(
    "gradient-of-source",
    r"\frac{\partial \mathcal{L}}{\partial Y} = dK\, W_K^\top + dV\, W_V^\top, \qquad"
    r" dV = P^\top dZ, \quad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    rows=["I1"],
    uses=["softmax-vector-jacobian-product", "query-and-key-gradients", "gradients-through-projections", "cross-attention"],
    assumes=["dZ, dS: gradients of the loss by output and by scaled scores"],
    kind="numeric",
    scope="T_q = 3, T_k = 5",
)
def what_the_encoder_learns(rng: np.random.Generator) -> Claims:
    """The source learns through its keys and its values, summed over all target positions; queries send it nothing."""
    x, y, w_query, w_key, w_value = _cross(rng)
    dZ = rng.normal(size=(3, 2))
    by_source = jacobian(lambda moved: (_plain(x, moved, w_query, w_key, w_value) * dZ).sum(), y)
    P = weights_of(x @ w_query @ (y @ w_key).T / np.sqrt(7))
    dP = dZ @ (y @ w_value).T
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    yield by_source, dS.T @ (x @ w_query) / np.sqrt(7) @ w_key.T + P.T @ dZ @ w_value.T


@what_the_encoder_learns.wrong("through the values alone")
def _(rng: np.random.Generator) -> Sides:
    x, y, w_query, w_key, w_value = _cross(rng)
    dZ = rng.normal(size=(3, 2))
    P = weights_of(x @ w_query @ (y @ w_key).T / np.sqrt(7))
    return jacobian(lambda moved: (_plain(x, moved, w_query, w_key, w_value) * dZ).sum(), y), P.T @ dZ @ w_value.T


@equation(
    "cross-attention-decoding-flops",
    r"F = 2\, T_k\, d_y\, (d_k + d_v) + T_q \bigl( 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr)",
    rows=["I1"],
    uses=["cross-attention"],
    assumes=["keys and values of the source kept through the T_q steps of decoding", "a multiply-add counts 2"],
    kind="numeric",
    scope="three shapes, counted step by step",
)
def flops_of_decoding(rng: np.random.Generator) -> Claims:
    """The source is projected once; each new target token pays for its query and one row of scores, and this cache does not grow."""
    for q_len, kv_len, d_x, d_y, d_k, d_v in ((3, 5, 4, 6, 7, 2), (1, 4, 2, 3, 2, 5), (6, 2, 3, 3, 4, 4)):
        source = multiplications(lambda y, w_k, w_v: (y @ w_k, y @ w_v), (kv_len, d_y), (d_y, d_k), (d_y, d_v))
        step = multiplications(lambda x, w, k, v: ((x @ w) @ k.T) @ v, (1, d_x), (d_x, d_k), (kv_len, d_k), (kv_len, d_v))
        counted = 2 * source + 2 * sum(step for _ in range(q_len))
        yield counted, 2 * kv_len * d_y * (d_k + d_v) + q_len * (2 * d_x * d_k + 2 * kv_len * (d_k + d_v))


@flops_of_decoding.wrong("the source projected again at each step")
def _(rng: np.random.Generator) -> Sides:
    source = multiplications(lambda y, w_k, w_v: (y @ w_k, y @ w_v), (5, 6), (6, 7), (6, 2))
    step = multiplications(lambda x, w, k, v: ((x @ w) @ k.T) @ v, (1, 4), (4, 7), (5, 7), (5, 2))
    return 2 * source + 3 * 2 * step, 3 * (2 * 5 * 6 * 9 + 2 * 4 * 7 + 2 * 5 * 9)


@equation(
    "balance-of-both-directions",
    r"p_{ij}\, N_i = p'_{ji}\, N'_j, \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}",
    rows=["I1"],
    uses=["detailed-balance-of-weights", "rectangular-bilinear-score"],
    assumes=["P = softmax over the rows of S (X asks)", "P' = softmax over the rows of S^T (Y asks)"],
    kind="numeric",
    scope="T_q = 2, T_k = 3",
)
def both_directions(rng: np.random.Generator) -> Claims:
    """One matrix of scores serves both directions, but each has its own normaliser: the map back is not the transpose."""
    for _ in range(3):
        S = rng.normal(size=(2, 3))
        P, back = weights_of(S), weights_of(S.T)
        N, N_back = np.exp(S).sum(axis=1), np.exp(S).sum(axis=0)
        yield np.array([[P[i, j] * N[i] for j in range(3)] for i in range(2)]), (back * N_back[:, None]).T


@both_directions.wrong("the map back is the transpose")
def _(rng: np.random.Generator) -> Sides:
    S = rng.normal(size=(2, 3))
    return weights_of(S).T, weights_of(S.T)


@both_directions.wrong("the normalisers exchanged")
def _(rng: np.random.Generator) -> Sides:
    S = rng.normal(size=(3, 3))
    return weights_of(S) * np.exp(S).sum(axis=0)[:, None], (weights_of(S.T) * np.exp(S).sum(axis=1)[:, None]).T
