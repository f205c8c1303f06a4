"""Self-attention without and with projections, and the order of tokens. X holds one token per row."""

import math
from functools import cache

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import normal, normalisers
from attn_course.formulas import derivative, function, independent, matrix, normal_nodes, outcomes, rows
from attn_course.reference import attention, attention_backward, multi_head_attention, scaled_dot_scores, softmax

equation = about("E1")


def projections(rng: np.random.Generator, d_model: int, d_k: int, d_v: int) -> dict[str, np.ndarray]:
    """Return W_Q, W_K and W_V."""
    return dict(zip(("W_Q", "W_K", "W_V"), normal(rng, (d_model, d_k), (d_model, d_k), (d_model, d_v)), strict=True))


def attend(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray) -> np.ndarray:
    """Return what the package computes for one sequence, with one head and no output projection."""
    return np.asarray(multi_head_attention(X, X, W_Q, W_K, W_V, np.eye(W_V.shape[1]), n_heads=1))


def shuffle(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return a permutation matrix that is not its own inverse: a cycle through all places."""
    order = rng.permutation(count)
    return np.eye(count)[order][:, np.roll(order, 1)]


# ---- The plainest form: every token is query, key and value
@equation(
    "self-attention-without-projections",
    r"z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{v}}}\, x_j",
    uses=["attention-of-one-query", "output-of-a-query"],
    assumes=["Q = K = V = X", "v = number of features of a token"],
    wrong={
        "X11: all of X scales": r"z_i = "
        r"\sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{T v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{T v}}} x_j",
        "X22: all other tokens, without the token itself": r"z_i = \sum_{j \ne i} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} ["
        r"\,l \ne i\,]\, e^{x_i \cdot x_l / \sqrt{v}}} x_j",
    },
)
def attention_without_projections(rng: np.random.Generator, T: int, v: int) -> Givens:
    """Eq. attention-of-one-query for each row of X, with X itself as keys and values; the token itself is one of them."""
    X = rng.normal(size=(T, v))
    return {"x": rows(X), "z": rows(attention(X, X, X)), "T": T, "v": v}


@equation(
    "heavy-diagonal-of-scores",
    r"\mathbb{E}[s_{ii}] = \sqrt{v}, \qquad \mathbb{E}[s_{ij}] = 0 \quad (i \ne j), \qquad \mathrm{Var}[s_{ij}] = 1 \quad (i \ne j)",
    topics=["E1", "C1"],
    uses=["scaled-score-variance", "equal-query-key-moments", "self-attention-without-projections"],
    assumes=["entries of X independent, mean 0, variance 1"],
    wrong={
        "X30: the independence argument covers the diagonal: mean 0": r"0 \quad (i \ne j) -> 0",
        "X30: the diagonal has variance 1 too": r"1 \quad (i \ne j) -> 1",
    },
    equivalent={r"s_{i j} -> s_{j i}": "scores of X with itself are symmetric"},
)
def heavy_diagonal(rng: np.random.Generator, v: int) -> Givens:
    """Off the diagonal Eq. scaled-score-variance holds.

    On it query and key are the same vector, Eq. equal-query-key-moments, and the score is |x_i|^2 / sqrt(v).
    """
    a = rng.uniform(1.3, 2.5)  # two values with mean 0 and variance 1, and not symmetric
    entries, chances = independent([a, -1 / a], [1 / (1 + a**2), a**2 / (1 + a**2)], 2 * v)
    X = entries.reshape(-1, 2, v)
    return {"s": outcomes(chances, matrix(scaled_dot_scores(X, X))), "v": v}


@equation(
    "self-weight-grows",
    r"a(4) \approx 0.171, \qquad a(16) \approx 0.507, \qquad a(64) \approx 0.967",
    uses=["heavy-diagonal-of-scores"],
    assumes=["a(v) = E[p_ii] for T = 32 tokens of v standard normal entries"],
    wrong={
        "the same at any width": r"a(4) \approx 0.171, \qquad a(16) \approx 0.171, \qquad a(64) \approx 0.171",
        "each token sees all alike": r"a(4) \approx 0.031, \qquad a(16) \approx 0.031, \qquad a(64) \approx 0.031",
    },
)
def self_weight_grows(rng: np.random.Generator) -> Givens:
    """A lead of sqrt(v) against 31 scores of spread 1: in many dimensions each token sees little but itself."""
    return {"a": function(lambda v: mean_self_weight(float(v)))}


@cache
def mean_self_weight(v: float, others: int = 31) -> float:
    """Return E[p_ii], integrated: p_ii = 1 / (1 + S) = integral of e^{-u (1 + S)}, where S has independent terms, given |x_i|."""
    lengths, logs = np.linspace(0.02, 2 * math.sqrt(v) + 8, 150), np.linspace(-40, 5, 150)
    density, u = lengths ** (v - 1) * np.exp(-(lengths**2) / 2), np.exp(logs)
    nodes, chances = normal_nodes(30)
    terms = np.exp((lengths[:, None] * nodes - lengths[:, None] ** 2) / math.sqrt(v))
    product = (np.exp(-u[:, None] * terms[:, None]) @ chances) ** others
    return float(np.average(product @ (u * np.exp(-u)) * (logs[1] - logs[0]), weights=density))


# ---- Do two tokens see each other alike? The first cause
@equation(
    "detailed-balance-of-weights",
    r"p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}}",
    topics=["E3"],
    uses=["attention-weights", "self-attention-without-projections"],
    assumes=["s_ij = s_ji, as in {eq}`self-attention-without-projections`"],
    wrong={
        "symmetric scores give symmetric weights": r"p_{ij}\, Z_i = p_{ji}\, Z_i, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}}",
        "each weight with the other's normaliser": r"p_{ij}\, Z_j = p_{ji}\, Z_i, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}}",
    },
    equivalent={r"s_{i l} -> s_{l i}": "scores of X with itself are symmetric"},
)
def detailed_balance(rng: np.random.Generator, T: int, v: int) -> Givens:
    """Both sides are e^{s_ij}. Scores are symmetric, weights are not, unless all rows have the same normaliser."""
    X = rng.normal(size=(T, v))
    return {"s": scaled_dot_scores(X, X), "p": attention(X, X, X, return_weights=True)[1], "Z": normalisers(X, X), "T": T}


@equation(
    "normalisers-are-stationary",
    r"\sum_{i=1}^{T} Z_i\, p_{ij} = Z_j",
    topics=["E3"],
    uses=["detailed-balance-of-weights"],
    wrong={"each token is looked at equally: columns sum to 1": "Z_i -> Z_j", "summed over the keys": r"\sum_{i=1}^{T} Z_i\, p_{ji} = Z_j"},
)
def who_is_looked_at(rng: np.random.Generator, T: int, v: int) -> Givens:
    """Sum Eq. detailed-balance-of-weights over i; rows of P sum to 1. Weighted by the normalisers, each token collects its own."""
    X = rng.normal(size=(T, v))
    p = attention(X, X, X, return_weights=True)[1]
    return {"p": p, "Z": normalisers(X, X), "T": T}


# ---- Three projections of one input
@equation(
    "self-attention",
    r"Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V",
    topics=["E1", "A7"],
    uses=["attention", "self-attention-without-projections"],
    assumes=["Q = X W_Q, K = X W_K, V = X W_V"],
    wrong={
        "X1: the value inside the softmax": r"Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}}\, X W_V \Bigr)",
        "X12: W_Q and W_K taken for Q and K": r"Z = \mathrm{softmax}\Bigl( \frac{W_Q\, W_K^\top}{\sqrt{d_k}} \Bigr)\, X W_V",
        "X13: queries and keys one set": r"Z = \mathrm{softmax}\Bigl( \frac{X W_K\, W_Q^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V",
    },
)
def attention_with_projections(rng: np.random.Generator, T: int, d_model: int, d_k: int, d_v: int) -> Givens:
    """Eq. attention with three different views of the same tokens: what each asks, what it answers to, what it passes on."""
    X, weights = rng.normal(size=(T, d_model)), projections(rng, d_model, d_k, d_v)
    return {"X": X, **weights, "Z": attend(X, **weights), "d_k": d_k}


@equation(
    "bilinear-score",
    r"s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}}",
    uses=["scaled-score", "self-attention"],
    wrong={
        "the product the other way round": r"s_{ij} = \frac{x_i\, W_K W_Q^\top\, x_j^\top}{\sqrt{d_k}}",
        "divided by the length, not by its root": r"s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{d_k}",
    },
)
def bilinear_scores(rng: np.random.Generator, T: int, d_model: int, d_k: int) -> Givens:
    """The two projections meet in one product: each feature of token i against each feature of token j, with a learned factor."""
    X, W_Q, W_K = normal(rng, (T, d_model), (d_model, d_k), (d_model, d_k))
    return {"s": scaled_dot_scores(X @ W_Q, X @ W_K), "x": rows(X), "W_Q": W_Q, "W_K": W_K, "d_k": d_k}


@equation(
    "asymmetry-of-scores",
    r"S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top",
    topics=["E3"],
    uses=["bilinear-score"],
    wrong={"scores are symmetric": "W_K W_Q -> W_Q W_K", "the sign": r"W_Q W_K^\top - W_K W_Q -> W_K W_Q^\top - W_Q W_K"},
)
def second_cause_of_asymmetry(rng: np.random.Generator, T: int, d_model: int, d_k: int) -> Givens:
    """Transpose Eq. bilinear-score. With W_Q = W_K the scores are symmetric.

    Otherwise asking and answering differ even before the softmax.
    """
    X, W_Q, W_K = normal(rng, (T, d_model), (d_model, d_k), (d_model, d_k))
    return {"S": scaled_dot_scores(X @ W_Q, X @ W_K), "X": X, "W_Q": W_Q, "W_K": W_K, "d_k": d_k}


@equation(
    "self-attention-parameters",
    r"\#\{\text{parameters}\} = d_{\text{model}}\,(2\,d_k + d_v)",
    uses=["self-attention"],
    assumes=["no biases"],
    wrong={
        "one projection for queries and keys": r"\#\{\text{parameters}\} = d_{\text{model}}\,(d_k + d_v)",
        "the values counted twice": r"\#\{\text{parameters}\} = d_{\text{model}}\,(d_k + 2\,d_v)",
        "with a bias for each feature": r"\#\{\text{parameters}\} = (d_{\text{model}} + 1)\,(2\,d_k + d_v)",
    },
)
def what_is_learned(rng: np.random.Generator, T: int, d_model: int, d_k: int, d_v: int) -> Givens:
    """Three matrices, whatever the number of tokens: the T x T weights are computed anew for every input."""
    weights = projections(rng, d_model, d_k, d_v)
    assert attend(rng.normal(size=(T, d_model)), **weights).shape == (T, d_v), "nothing else is needed"
    counted = {r"\#\{\text{parameters}\}": sum(weight.size for weight in weights.values())}
    return {**counted, r"d_{\text{model}}": d_model, "d_k": d_k, "d_v": d_v}


@equation(
    "gradients-through-projections",
    r"dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top",
    topics=["E1", "D2"],
    uses=["gradient-of-values", "query-and-key-gradients", "self-attention"],
    assumes=["dW_K and dW_V alike"],
    wrong={
        "the values' path alone": r"dW_Q = X^\top dQ, \qquad dX = 0\, dQ\, W_Q^\top + 0\, dK\, W_K^\top + dV\, W_V^\top",
        "queries and keys go each other's way": r"dW_Q = X^\top dQ, \qquad dX = dQ\, W_K^\top + dK\, W_Q^\top + dV\, W_V^\top",
        "the gradient of the keys": r"dW_Q = X^\top dK, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top",
    },
)
def three_paths_back(rng: np.random.Generator, T: int, d_model: int, d_k: int, d_v: int) -> Givens:
    """Each projection is linear; X feeds all three, so three gradients arrive at it and add up."""
    (X, dZ), weights = normal(rng, (T, d_model), (T, d_v)), projections(rng, d_model, d_k, d_v)
    W_Q, W_K, W_V = weights.values()
    dQ, dK, dV = attention_backward(X @ W_Q, X @ W_K, X @ W_V, dZ)

    def loss(X: np.ndarray, W_Q: np.ndarray) -> float:
        return float(np.vdot(dZ, softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(d_k)) @ (X @ W_V)))

    steps = {"dW_Q": derivative(lambda moved: loss(X, moved), W_Q), "dX": derivative(lambda moved: loss(moved, W_Q), X)}
    return {"X": X, **weights, "dQ": dQ, "dK": dK, "dV": dV, **steps}


# ---- A set of tokens: what a permutation does
@equation(
    "permuted-scores",
    r"S(\Pi X) = \Pi\, S(X)\, \Pi^\top",
    uses=["bilinear-score"],
    assumes=["Pi a permutation matrix"],
    wrong={"only the rows move": r"S(\Pi X) = \Pi\, S(X)", "X25: a pair of places keeps its score": r"S(\Pi X) = S(X)"},
)
def permuted_scores(rng: np.random.Generator, T: int, d_model: int, d_k: int) -> Givens:
    """Put Pi X into Eq. bilinear-score: one Pi comes out on each side. A pair of tokens keeps its score wherever the two stand."""
    X, W_Q, W_K = normal(rng, (T, d_model), (d_model, d_k), (d_model, d_k))
    return {"S": function(lambda X: scaled_dot_scores(X @ W_Q, X @ W_K)), r"\Pi": shuffle(rng, T), "X": X}


@equation(
    "permuted-weights",
    r"\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)\, \Pi^\top",
    uses=["attention-weights", "permuted-scores"],
    assumes=["softmax along each row"],
    wrong={
        "X20: weights are learned, and stay as they are": r"\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \mathrm{softmax}(S)",
        "only the rows move": r"\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)",
    },
)
def permuted_weights(rng: np.random.Generator, T: int) -> Givens:
    """Exponentials go entry by entry, and the sum of a row does not depend on the order of its terms."""
    return {"S": rng.normal(size=(T, T)), r"\Pi": shuffle(rng, T)}


@equation(
    "permutation-equivariance",
    r"Z(\Pi X) = \Pi\, Z(X)",
    uses=["pair-order-invariance", "self-attention", "permuted-scores", "permuted-weights"],
    assumes=["no mask, no positions"],
    wrong={"invariant: the output does not change": r"\Pi\, Z -> Z", "X25: where a token stands changes its output": r"= \Pi -> \ne \Pi"},
)
def permutation_equivariance(rng: np.random.Generator, T: int, d_model: int, d_k: int, d_v: int) -> Givens:
    """Pi P Pi^T Pi X W_V, and Pi^T Pi = 1. Outputs move along with their tokens: the order of a sentence is invisible."""
    weights = projections(rng, d_model, d_k, d_v)
    return {"Z": function(lambda X: attend(X, **weights)), r"\Pi": shuffle(rng, T), "X": rng.normal(size=(T, d_model))}


@equation(
    "score-with-added-positions",
    r"(x_i + t_i)\, M\, (x_j + t_j)^\top = x_i M x_j^\top + x_i M t_j^\top + t_i M x_j^\top + t_i M t_j^\top",
    uses=["bilinear-score", "permutation-equivariance"],
    assumes=["t_i = a vector that depends on the position i only", "M = W_Q W_K^T"],
    wrong={
        "content and place do not mix: two terms": r"(x_i + t_i)\, M\, (x_j + t_j)^\top = x_i M x_j^\top + t_i M t_j^\top",
        "the two cross terms are equal": r"(x_i + t_i)\, M\, (x_j + t_j)^\top = x_i M x_j^\top + 2\, x_i M t_j^\top + t_i M t_j^\top",
    },
)
def positions_added(rng: np.random.Generator, T: int, d_model: int) -> Givens:
    """Multiply out: content to content, content to place, place to content, place to place. The last three break the symmetry."""
    x, t = rng.normal(size=(2, T, d_model))
    return {"x": rows(x), "t": rows(t), "M": rng.normal(size=(d_model, d_model))}
