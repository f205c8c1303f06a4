"""Cross-attention.

X (T_q, d_x) asks, Y (T_k, d_y) answers; W_Q (d_x, d_k), W_K (d_y, d_k), W_V (d_y, d_v). Every axis has another length.
"""

import math

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import normal, normalisers
from attn_course.formulas import column, columns, function, of, row, rows, vector
from attn_course.reference import (
    additive_scores,
    attention,
    attention_backward,
    multi_head_attention,
    padding_mask,
    scaled_dot_scores,
    softmax,
)

equation = about("I1")


def attend(X: np.ndarray, Y: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Return what the package computes for two sequences, with one head and no output projection."""
    return np.asarray(multi_head_attention(X, Y, W_Q, W_K, W_V, np.eye(W_V.shape[1]), n_heads=1, mask=mask))


def projections(rng: np.random.Generator, d_x: int, d_y: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Return W_Q, W_K and W_V."""
    return dict(zip(("W_Q", "W_K", "W_V"), normal(rng, (d_x, d_k), (d_y, d_k), (d_y, d_v)), strict=True))


# ---- two sequences
@equation(
    "cross-attention",
    r"Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}",
    uses=["attention", "masked-attention"],
    assumes=["W_Q: d_x x d_k", "W_K: d_y x d_k", "W_V: d_y x d_v"],
    wrong={
        "X15: the source asks": r"Z = \mathrm{softmax}\Bigl(\frac{Y W_Q (X W_K)^\top}{\sqrt{d_k}}\Bigr)"
        r" X W_V \in \mathbb{R}^{T_q \times d_v}",
        "without the root": r"Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{d_k}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}",
    },
)
def cross_attention(rng: np.random.Generator, T_q: int, T_k: int, d_x: int, d_y: int, d_k: int, d_v: int) -> Givens:
    """Queries from X, keys and values from Y: only d_k must be shared, neither lengths nor widths."""
    (X, Y), weights = normal(rng, (T_q, d_x), (T_k, d_y)), projections(rng, d_x, d_y, d_k, d_v)
    return {"X": X, "Y": Y, **weights, "Z": attend(X, Y, **weights), "T_q": T_q, "d_k": d_k, "d_v": d_v}


@equation(
    "rectangular-bilinear-score",
    r"(x\, W_Q)\,(y\, W_K)^\top = x\, A\, y^\top, \qquad A = W_Q W_K^\top \in \mathbb{R}^{d_x \times d_y}",
    uses=["cross-attention"],
    wrong={
        "X15: widths exchanged": r"(x\, W_Q)(y\, W_K)^\top = x\, A\, y^\top, \qquad A = W_Q W_K^\top \in \mathbb{R}^{d_y \times d_x}",
        "the query with itself": r"(x\, W_Q)\,(x\, W_Q)^\top = x\, A\, y^\top, \qquad A = W_Q W_K^\top \in \mathbb{R}^{d_x \times d_y}",
    },
)
def scores_between_two_widths(rng: np.random.Generator, d_x: int, d_y: int, d_k: int) -> Givens:
    """A rectangular matrix compares vectors of two widths; x . y does not even exist."""
    x, y, W_Q, W_K = normal(rng, (d_x,), (d_y,), (d_x, d_k), (d_y, d_k))
    return {"x": row(x), "y": row(y), "W_Q": W_Q, "W_K": W_K, "d_x": d_x, "d_y": d_y}


@equation(
    "cross-attention-with-itself",
    r"Z(X, X) = \mathrm{softmax}\Bigl(\frac{X W_Q W_K^\top X^\top}{\sqrt{d_k}}\Bigr)\, X W_V",
    uses=["self-attention", "cross-attention", "rectangular-bilinear-score"],
    assumes=["Y = X"],
    wrong={"the projections exchanged": "W_Q W_K -> W_K W_Q", "without the root": r"\sqrt{d_k} -> d_k"},
)
def self_attention_is_a_special_case(rng: np.random.Generator, T: int, d: int, d_k: int, d_v: int) -> Givens:
    """One sequence in both roles: nothing else changes."""
    weights = projections(rng, d, d, d_k, d_v)
    return {"Z": function(lambda X, Y: attend(X, Y, **weights)), "X": rng.normal(size=(T, d)), **weights, "d_k": d_k}


@equation(
    "cross-attention-by-masking",
    r"Z_{\mathrm{self}}\bigl([\,Y;\, X\,]\bigr)_{T_k + i} = \mathrm{softmax}\Bigl(\frac{x_i W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V",
    uses=["masked-attention", "cross-attention"],
    assumes=["d_x = d_y", "the mask lets row T_k + i see the rows of Y only"],
    wrong={
        "the target in front": (
            r"Z_{\mathrm{self}}\bigl([X;\, Y]\bigr)_{T_k + i} = \mathrm{softmax}\Bigl(\frac{x_i W_Q (Y W_K)^\top}{\sqrt{d_k}}\Bigr) Y W_V"
        ),
        "without the mask": (
            r"Z_{\mathrm{self}}(A)_{T_k + i} = \mathrm{softmax}\Bigl(\frac{x_i W_Q (A W_K)^\top}{\sqrt{d_k}}\Bigr) A W_V, \qquad A = [Y; X]"
        ),
    },
)
def cross_attention_is_masked_self_attention(rng: np.random.Generator, T_q: int, T_k: int, d: int, d_k: int, d_v: int) -> Givens:
    """Put the source in front of the target: with one set of projections, a mask turns self- into cross-attention."""
    (X, Y), weights = normal(rng, (T_q, d), (T_k, d)), projections(rng, d, d, d_k, d_v)
    masked = function(lambda both: attend(both, both, **weights, mask=(np.arange(len(both)) < T_k)[None]))
    return {r"Z_{\mathrm{self}}": masked, "X": X, "Y": Y, "x": rows(X), **weights, "T_k": T_k, "d_k": d_k}


# ---- from a fixed context to an alignment
@equation(
    "one-key-ignores-queries",
    r"T_k = 1 \;\Rightarrow\; z_i = y_1 W_V",
    topics=["A5", "I1"],
    uses=["cross-attention"],
    wrong={
        "of a longer source too": r"T_k \ge 1 \;\Rightarrow\; z_i = y_1 W_V",
        "the queries share the one answer": r"T_k = 1 \;\Rightarrow\; \sum_i z_i = y_1 W_V",
        "each query has an answer of its own": r"T_k = 1 \;\Rightarrow\; z_i \ne y_1 W_V",
    },
)
def one_context_vector_for_all(rng: np.random.Generator, T_q: int, d_x: int, d_y: int, d_k: int, d_v: int, draw: int) -> Givens:
    """A softmax over one key is 1: a source summed up in one vector answers every question alike."""
    X, weights = rng.normal(size=(T_q, d_x)), projections(rng, d_x, d_y, d_k, d_v)
    T_k = (1, *rng.integers(2, 4, size=2))[draw]  # one word, repeated, several
    Y = np.tile(rng.normal(size=d_y), (T_k, 1)) if draw < 2 else rng.normal(size=(T_k, d_y))
    return {"T_k": len(Y), "y": rows(Y), "W_V": weights["W_V"], "z": rows(attend(X, Y, **weights))}


CONTEXT, SCORE = r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = ", r", \qquad e_{ij} = a(s_{i-1}, h_j)"


@equation(
    "context-from-alignment-model",
    r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad"
    r" \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})}, \qquad e_{ij} = a(s_{i-1}, h_j)",
    topics=["A5", "I1"],
    uses=["additive-score", "cross-attention"],
    assumes=["s_{i-1} = decoder state", "h_j = annotation of source word j", "a = additive score"],
    wrong={
        "X33: the similarity as a weight, without a softmax": CONTEXT + r"\frac{e_{ij}}{\sum_{l=1}^{T_k} e_{il}}" + SCORE,
        "X33: a database that returns the best match": CONTEXT + r"[\,e_{ij} = \max_l e_{il}\,]" + SCORE,
        "the softmax over the states": CONTEXT + r"\frac{\exp(e_{ij})}{\sum_l \exp(e_{lj})}" + SCORE,
    },
)
def bahdanau_attention(rng: np.random.Generator, T_q: int, T_k: int, d_s: int, d: int, d_h: int) -> Givens:
    """The first attention: keys and values are both the annotations h_j, and nothing is scaled or projected but inside the score."""
    s, h, *weights = normal(rng, (T_q, d_s), (T_k, d), (d_s, d_h), (d, d_h), (d_h,))
    e = additive_scores(s, h, *weights)
    contexts = [np.average(h, axis=0, weights=alpha) for alpha in softmax(e)]
    a = function(lambda state, annotation: additive_scores(state[None], annotation[None], *weights)[0, 0])
    return {"c": rows(contexts), "h": rows(h), "s": rows(s, start=0), "e": e, r"\alpha": softmax(e), "a": a, "T_k": T_k}


@equation(
    "context-derivative-by-annotation",
    r"\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (h_j - c)\, \Bigl( \frac{\partial e_j}{\partial h_j} \Bigr)^{\!\top} \Bigr)",
    topics=["A5"],
    uses=["output-derivative-by-score", "context-from-alignment-model"],
    assumes=["c = sum_j alpha_j h_j", "e_j depends on h_j only"],
    wrong={
        "the weights constant": r"\frac{\partial c}{\partial h_j} = \alpha_j I + 0\, (h_j - c) \frac{\partial e_j}{\partial h_j}^\top",
        "turned round": r"\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (c - h_j)\, \frac{\partial e_j}{\partial h_j}^\top \Bigr)",
        "transposed": r"\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + \frac{\partial e_j}{\partial h_j}\, (h_j - c)^\top \Bigr)",
    },
)
def one_step_to_every_word(rng: np.random.Generator, T_k: int, d: int, d_h: int) -> Givens:
    """Each source word is one step away, with a factor alpha_j: in a recurrent network it is a product of T_k - j Jacobians."""
    W, v = normal(rng, (d, d_h), (d_h,))

    def scores(h: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(h @ W) @ v)

    c = of(lambda h, alpha: column(np.average(h, axis=0, weights=alpha)), "h", r"\alpha")
    return {"h": columns(rng.normal(size=(T_k, d))), "e": of(scores, "h"), r"\alpha": of(softmax, "e"), "c": c}


@equation(
    "hard-alignment-limit",
    r"\lim_{T \to 0^+} \sum_{j} \sigma(e_i / T)_j\, v_j = v_{r_i}, \qquad r_i \in \arg\max_j e_{ij}",
    uses=["softmax-with-temperature", "cross-attention"],
    assumes=["one largest score in each row"],
    wrong={"the hot end": r"\lim_{T \to 0^+} -> \lim_{T \to \infty}", "the worst score": r"\max_j -> \min_j"},
)
def hard_alignment(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Where the weights are nearly one-hot, the output is one source word's value, and the row can be read as an alignment."""
    e = rng.permuted(np.tile(np.arange(T_k) * 0.7, (T_q, 1)), axis=1) - rng.uniform(0, T_k, size=(T_q, 1))
    best = vector([1 + max(range(T_k), key=scores.__getitem__) for scores in e])
    return {"e": e, "v": rows(rng.normal(size=(T_k, d_v))), "r": best, "T": 1.3}


# ---- order, padding and the decoder
@equation(
    "equivariant-target-invariant-source",
    r"Z(\Pi X,\, \Pi' Y) = \Pi\, Z(X, Y)",
    uses=["permutation-equivariance", "cross-attention"],
    assumes=["Pi, Pi' permutation matrices", "no positions encoded"],
    wrong={
        "invariant in the target too": r"Z(\Pi X,\, \Pi' Y) = Z(X, Y)",
        "the order of the source comes back": r"Z(\Pi X,\, \Pi' Y) = \Pi'\, Z(X, Y)",
        "moved back": r"Z(\Pi X,\, \Pi' Y) = \Pi^\top Z(X, Y)",
    },
)
def order_of_both_sequences(rng: np.random.Generator, T_q: int, T_k: int, d_x: int, d_y: int, d_k: int, d_v: int) -> Givens:
    """Equivariant in the target, invariant in the source: word order must come in through positions, on both sides."""
    (X, Y), weights = normal(rng, (T_q, d_x), (T_k, d_y)), projections(rng, d_x, d_y, d_k, d_v)
    moves = {r"\Pi": np.roll(np.eye(T_q), 1, axis=0), r"\Pi'": np.roll(np.eye(T_k), 2, axis=0)}
    return {"Z": function(lambda X, Y: attend(X, Y, **weights)), "X": X, "Y": Y, **moves}


PADDED = r"Z\bigl([\,X;\, X'\,],\, [\,Y;\, Y'\,]"


@equation(
    "padding-on-both-sides",
    r"Z\bigl([\,X;\, X'\,],\, [\,Y;\, Y'\,],\, M\bigr)_{1:T_q} = Z(X, Y), \qquad M_{ij} = -\infty \iff j > T_k",
    uses=["key-padding-changes-nothing", "cross-attention"],
    assumes=["X', Y' = padding, with any content", "M = 0 elsewhere, or any number that a row has in common"],
    wrong={
        "the padded queries hidden, not the keys": PADDED + r", M\bigr)_{1:T_q} = Z(X, Y), \qquad M_{ij} = -\infty \iff i > T_k",
        "without a mask": PADDED + r"\bigr)_{1:T_q} = Z(X, Y), \qquad M_{ij} = -\infty \iff j > T_k",
        "padding read": PADDED + r", M\bigr)_{2:T_q+1} = Z(X, Y), \qquad M_{ij} = -\infty \iff j > T_k",
    },
)
def padding_on_both_sides(
    rng: np.random.Generator, T_q: int, T_k: int, n_q: int, n_k: int, d_x: int, d_y: int, d_k: int, d_v: int
) -> Givens:
    """The mask hides padded keys; padded queries make rows of their own, which nobody reads."""
    weights, drawn = projections(rng, d_x, d_y, d_k, d_v), normal(rng, (T_q, d_x), (n_q, d_x), (T_k, d_y), (n_k, d_y))
    common = rng.choice([0, -50, 30], size=(T_q + n_q, 1))
    M = np.where(padding_mask(np.full(T_q + n_q, T_k), T_k + n_k)[:, 0], common, -np.inf)
    Z = function(lambda X, Y, M=None: attend(X, Y, **weights, mask=M))
    return {"Z": Z, **dict(zip(("X", "X'", "Y", "Y'"), drawn, strict=True)), "M": M, "T_q": T_q, "T_k": T_k}


MEAN_LOSS = r"\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{%s}, \qquad \frac{\partial \mathcal{L}}{\partial u_t} = "


@equation(
    "loss-over-real-tokens",
    r"\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{\sum_t m_t}, \qquad"
    r" \frac{\partial \mathcal{L}}{\partial u_t} = \frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r}",
    uses=["cross-entropy-gradient"],
    assumes=["m_t = 1 for real tokens of the target, 0 for padding", "p_t = softmax(u_t), u_t = logits", "w_t = token t of the target"],
    wrong={
        "divided by the padded length": MEAN_LOSS % r"|w|" + r"\frac{m_t\, (p_t - \mathbf{1}_{w_t})}{|w|}",
        "padding pays too": MEAN_LOSS.replace("m_t\\, (", "(") % r"\sum_t m_t" + r"\frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r}",
        "a gradient at padding": MEAN_LOSS % r"\sum_t m_t" + r"\frac{p_t - \mathbf{1}_{w_t}}{\sum_r m_r}",
    },
)
def loss_over_real_tokens(rng: np.random.Generator, T: int, V: int) -> Givens:
    """The mean over what is there: padded rows get no gradient, and the loss is that of the sequence alone."""
    w, real = rng.integers(1, V + 1, size=T), rng.permutation(np.arange(T) < T - rng.integers(1, T - 1))

    def loss(u: np.ndarray) -> float:
        alone = softmax(u[real])  # the padding is cut off
        return float(-np.log(alone[np.arange(len(alone)), w[real] - 1]).mean())

    p = of(lambda u: rows(softmax(u)), "u")
    return {"u": rows(rng.normal(size=(T, V))), "p": p, "w": vector(w), "m": vector(real * 1.0), r"\mathcal{L}": of(loss, "u")}


@equation(
    "shifted-input-hides-target",
    r"\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t, \qquad u_t = D(w_{0:T_q - 1})_t",
    uses=["causal-mask-hides-future"],
    assumes=["D = causal decoder", "row t has the logits u_t of token w_t", "w_0 = start token", "parameters of D in general position"],
    wrong={
        "the causal mask without the shift": r"\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t, \qquad u_t = D(w_{1:T_q})_t",
        "the token before is hidden too": r"\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t - 1, \qquad u_t = D(w_{0:T_q - 1})_t",
        "the past is hidden": r"\frac{\partial u_t}{\partial w_j} = 0 \iff j \le t, \qquad u_t = D(w_{0:T_q - 1})_t",
    },
)
def shifted_right(rng: np.random.Generator, T_q: int, d: int, d_v: int) -> Givens:
    """The causal mask shows row t its own input, so the input must be one step behind the target: what is predicted is not seen."""
    W_Q, W_K, W_V = projections(rng, d, d, d, d_v).values()
    embedding, positions = 0.3 * rng.normal(size=d), 0.3 * rng.normal(size=(T_q, d))

    def decoder(w: np.ndarray) -> np.ndarray:
        x = w[:, None] * embedding + positions
        return np.asarray(attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True))

    return {"w": vector(rng.normal(size=T_q + 1), start=0), "D": function(decoder), "T_q": T_q}


# ---- gradients and costs


KEYS_AND_VALUES = r", \qquad dV = P^\top dZ, \quad dK = \frac{dS^\top Q}{\sqrt{d_k}}"


@equation(
    "gradient-of-source",
    r"\frac{\partial \mathcal{L}}{\partial Y} = dK\, W_K^\top + dV\, W_V^\top, \qquad"
    r" dV = P^\top dZ, \quad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    sizes="T_q d_v d_k T_k d_y",
    uses=["softmax-vector-jacobian-product", "query-and-key-gradients", "gradients-through-projections", "cross-attention"],
    assumes=["dZ, dS: gradients of the loss by output and by scaled scores"],
    wrong={
        "through the values alone": r"\frac{\partial \mathcal{L}}{\partial Y} = 0\, dK\, W_K^\top + dV\, W_V^\top" + KEYS_AND_VALUES,
        "the keys with a minus": r"\frac{\partial \mathcal{L}}{\partial Y} = dV\, W_V^\top - dK\, W_K^\top" + KEYS_AND_VALUES,
    },
)
def what_the_encoder_learns(rng: np.random.Generator, T_q: int, T_k: int, d_y: int, d_k: int, d_v: int) -> Givens:
    """The source learns through its keys and its values, summed over all target positions; queries send it nothing."""
    Q, Y, W_K, W_V, dZ = normal(rng, (T_q, d_k), (T_k, d_y), (d_y, d_k), (d_y, d_v), (T_q, d_v))
    P = attention(Q, Y @ W_K, Y @ W_V, return_weights=True)[1]
    _, dK, dV, dS = attention_backward(Q, Y @ W_K, Y @ W_V, dZ, mask=np.zeros((T_q, T_k)), return_d_mask=True)
    loss = of(lambda Y: float(np.vdot(dZ, softmax(Q @ (Y @ W_K).T / math.sqrt(d_k)) @ (Y @ W_V))), "Y")
    gradients = {r"\mathcal{L}": loss, "dZ": dZ, "dK": dK, "dV": dV, "dS": dS}
    return {"Q": Q, "Y": Y, "W_K": W_K, "W_V": W_V, "P": P, **gradients, "d_k": d_k}


@equation(
    "cross-attention-decoding-flops",
    r"F = 2\, T_k\, d_y\, (d_k + d_v) + T_q \bigl( 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr)",
    uses=["cross-attention"],
    assumes=["keys and values of the source kept through the T_q steps of decoding", "a multiply-add counts 2"],
    wrong={
        "the source at each step": r"F = T_q \bigl( 2\, T_k\, d_y\, (d_k + d_v) + 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr)",
        "X15: widths exchanged": r"F = 2\, T_k\, d_x\, (d_k + d_v) + T_q \bigl( 2\, d_y d_k + 2\, T_k\, (d_k + d_v) \bigr)",
    },
)
def flops_of_decoding(rng: np.random.Generator, T_q: int, T_k: int, d_x: int, d_y: int, d_k: int, d_v: int) -> Givens:
    """The source is projected once; each new target token pays for its query and one row of scores, and this cache does not grow."""
    source = multiplications(lambda y, w_k, w_v: (y @ w_k, y @ w_v), (T_k, d_y), (d_y, d_k), (d_y, d_v))
    step = multiplications(lambda x, w, k, v: ((x @ w) @ k.T) @ v, (1, d_x), (d_x, d_k), (T_k, d_k), (T_k, d_v))
    return {"F": 2 * (source + sum(step for _ in range(T_q))), "T_q": T_q, "T_k": T_k, "d_x": d_x, "d_y": d_y, "d_k": d_k, "d_v": d_v}


NORMALISERS = r", \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}"


@equation(
    "balance-of-both-directions",
    r"p_{ij}\, N_i = p'_{ji}\, N'_j, \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}",
    uses=["detailed-balance-of-weights", "rectangular-bilinear-score"],
    assumes=["P = softmax over the rows of S (X asks)", "P' = softmax over the rows of S^T (Y asks)"],
    wrong={
        "the map back is the transpose": r"p_{ij}\, N_i N'_j = p'_{ji}\, N'_j N_i" + NORMALISERS,
        "the normalisers exchanged": r"p_{ij}\, N'_j = p'_{ji}\, N_i" + NORMALISERS,
    },
)
def both_directions(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """One matrix of scores serves both directions, but each has its own normaliser: the map back is not the transpose."""
    Q, K = normal(rng, (T_q, d_k), (T_k, d_k))
    maps = {"p": attention(Q, K, K, return_weights=True)[1], "p'": attention(K, Q, Q, return_weights=True)[1]}
    return {**maps, "N": normalisers(Q, K), "N'": normalisers(K, Q), "s": scaled_dot_scores(Q, K), "T_q": T_q, "T_k": T_k}
