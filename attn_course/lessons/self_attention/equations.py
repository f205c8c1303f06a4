"""Self-attention without and with projections, and the order of tokens. X holds one token per row."""

import math

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import normalisers, one_head, projections, tables
from attn_course.formulas import derivative, function, independent, matrix, outcomes, rows
from attn_course.reference import attention, attention_backward, scaled_dot_scores, softmax

claim = about("E1")


def shuffle(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return a permutation matrix that is not its own inverse: a cycle through all places."""
    order = rng.permutation(count)
    return np.eye(count)[order][:, np.roll(order, 1)]


# ---- The plainest form: every token is query, key and value
@claim("self-attention-without-projections", rests_on="attention-of-one-query output-of-a-query")
def _(normal, T, v):
    r"""z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{v}}}\, x_j
    where Q = K = V = X ;; v = number of features of a token
    Eq. attention-of-one-query for each row of X, with X itself as keys and values; the token itself is one of them.
        X11: all of X scales: z_i = \sum_{j=1}^{T} \frac{e^{x_i \cdot x_j / \sqrt{T v}}}{\sum_{l=1}^{T} e^{x_i \cdot x_l / \sqrt{T v}}} x_j
        X22: all other tokens, without the token itself:
            z_i = \sum_{j \ne i} \frac{e^{x_i \cdot x_j / \sqrt{v}}}{\sum_{l=1}^{T} [\,l \ne i\,]\, e^{x_i \cdot x_l / \sqrt{v}}} x_j
    """
    X = normal(T, v)
    return {"x": rows(X), "z": rows(attention(X, X, X)), "T": T, "v": v}


@claim(
    "heavy-diagonal-of-scores",
    serves="E1 C1",
    rests_on="scaled-score-variance self-attention-without-projections",
    equivalent={r"s_{i j} -> s_{j i}": "scores of X with itself are symmetric"},
)
def _(rng, v):
    r"""\mathbb{E}[s_{ii}] = \sqrt{v}, \qquad \mathbb{E}[s_{ij}] = 0 \quad (i \ne j), \qquad \mathrm{Var}[s_{ij}] = 1 \quad (i \ne j)
    where entries of X independent, mean 0, variance 1
    Off the diagonal Eq. scaled-score-variance holds.
        X30: the independence argument covers the diagonal: mean 0:
            0 \quad (i \ne j) -> 0
        X30: the diagonal has variance 1 too: 1 \quad (i \ne j) -> 1

    On it query and key are the same vector, and the score is |x_i|^2 / sqrt(v), with |x_i|^2 = v on average.
    """
    a = rng.uniform(1.3, 2.5)  # two values with mean 0 and variance 1, and not symmetric
    entries, chances = independent([a, -1 / a], [1 / (1 + a**2), a**2 / (1 + a**2)], 2 * v)
    X = entries.reshape(-1, 2, v)
    return {"s": outcomes(chances, matrix(scaled_dot_scores(X, X))), "v": v}


# ---- Do two tokens see each other alike? The first cause
@claim(
    "detailed-balance-of-weights",
    serves="E3",
    rests_on="attention-weights self-attention-without-projections",
    equivalent={r"s_{i l} -> s_{l i}": "scores of X with itself are symmetric"},
)
def _(normal, T, v):
    r"""p_{ij}\, Z_i = p_{ji}\, Z_j, \qquad Z_i = \sum_{l=1}^{T} e^{s_{il}}
    where s_ij = s_ji, as in {eq}`self-attention-without-projections`
    Both sides are e^{s_ij}. Scores are symmetric, weights are not, unless all rows have the same normaliser.
        symmetric scores give symmetric weights: Z_j -> Z_i
        each weight with the other's normaliser: Z_i = p_{ji}\, Z_j -> Z_j = p_{ji}\, Z_i
    """
    X = normal(T, v)
    return {"s": scaled_dot_scores(X, X), "p": attention(X, X, X, return_weights=True)[1], "Z": normalisers(X, X), "T": T}


# ---- Three projections of one input
@claim("self-attention", serves="E1 A7", rests_on="attention")
def _(normal, T, d_model, d_k, d_v):
    r"""Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}} \Bigr)\, X W_V
    where Q = X W_Q, K = X W_K, V = X W_V
    Eq. attention with three different views of the same tokens: what each asks, what it answers to, what it passes on.
        X1: the value inside the softmax: Z = \mathrm{softmax}\Bigl( \frac{X W_Q\, W_K^\top X^\top}{\sqrt{d_k}}\, X W_V \Bigr)
        X12: W_Q and W_K taken for Q and K: X W_Q\, W_K^\top X -> W_Q\, W_K
        X13: queries and keys one set: W_Q\, W_K -> W_K\, W_Q
    """
    X, weights = normal(T, d_model), projections(normal, d_model, d_model, d_k, d_v)
    return {"X": X, **weights, "Z": one_head(X, X, **weights), "d_k": d_k}


@claim("bilinear-score", rests_on="scaled-score self-attention")
def _(normal, T, d_model, d_k):
    r"""s_{ij} = \frac{x_i\, W_Q W_K^\top\, x_j^\top}{\sqrt{d_k}}
    The two projections meet in one product: each feature of token i against each feature of token j, with a learned factor.
        the product the other way round: W_Q W_K -> W_K W_Q
        divided by the length, not by its root: \sqrt{d_k} -> d_k
    """
    X, W_Q, W_K = tables(normal, (T, d_model), (d_model, d_k), (d_model, d_k))
    return {"s": scaled_dot_scores(X @ W_Q, X @ W_K), "x": rows(X), "W_Q": W_Q, "W_K": W_K, "d_k": d_k}


@claim("asymmetry-of-scores", serves="E3", rests_on="bilinear-score")
def _(normal, T, d_model, d_k):
    r"""S - S^\top = \frac{1}{\sqrt{d_k}}\, X\, \bigl( W_Q W_K^\top - W_K W_Q^\top \bigr)\, X^\top
    Transpose Eq. bilinear-score. With W_Q = W_K the scores are symmetric.
        scores are symmetric: W_K W_Q -> W_Q W_K
        the sign: W_Q W_K^\top - W_K W_Q -> W_K W_Q^\top - W_Q W_K

    Otherwise asking and answering differ even before the softmax.
    """
    X, W_Q, W_K = tables(normal, (T, d_model), (d_model, d_k), (d_model, d_k))
    return {"S": scaled_dot_scores(X @ W_Q, X @ W_K), "X": X, "W_Q": W_Q, "W_K": W_K, "d_k": d_k}


@claim("gradients-through-projections", serves="E1 D2", rests_on="gradient-of-values query-and-key-gradients self-attention")
def _(normal, T, d_model, d_k, d_v):
    r"""dW_Q = X^\top dQ, \qquad dX = dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top
    where dW_K and dW_V alike
    Each projection is linear; X feeds all three, so three gradients arrive at it and add up.
        the values' path alone: dQ\, -> 0\, dQ\, ;; dK\, -> 0\, dK\,
        queries and keys go each other's way: W_Q^\top + dK\, W_K -> W_K^\top + dK\, W_Q
        the gradient of the keys: dQ, -> dK,
    """
    (X, dZ), weights = tables(normal, (T, d_model), (T, d_v)), projections(normal, d_model, d_model, d_k, d_v)
    W_Q, W_K, W_V = weights.values()
    dQ, dK, dV = attention_backward(X @ W_Q, X @ W_K, X @ W_V, dZ)

    def loss(X: np.ndarray, W_Q: np.ndarray) -> float:
        return float(np.vdot(dZ, softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(d_k)) @ (X @ W_V)))

    steps = {"dW_Q": derivative(lambda moved: loss(X, moved), W_Q), "dX": derivative(lambda moved: loss(moved, W_Q), X)}
    return {"X": X, **weights, "dQ": dQ, "dK": dK, "dV": dV, **steps}


# ---- A set of tokens: what a permutation does
@claim("permuted-weights", rests_on="attention-weights bilinear-score")
def _(normal, rng, T):
    r"""\mathrm{softmax}(\Pi\, S\, \Pi^\top) = \Pi\, \mathrm{softmax}(S)\, \Pi^\top
    where softmax along each row
    Pi S Pi^T are the scores of Pi X. Exponentials go entry by entry, and the sum of a row does not depend on the order of its terms.
        X20: weights are learned, and stay as they are: = \Pi\, -> = ;; (S)\, \Pi^\top -> (S)
        only the rows move: (S)\, \Pi^\top -> (S)
    """
    return {"S": normal(T, T), r"\Pi": shuffle(rng, T)}


@claim("permutation-equivariance", rests_on="pair-order-invariance self-attention permuted-weights")
def _(normal, rng, T, d_model, d_k, d_v):
    r"""Z(\Pi X) = \Pi\, Z(X)
    where no mask, no positions
    Pi P Pi^T Pi X W_V, and Pi^T Pi is the identity. Outputs move along with their tokens: the order of a sentence is invisible.
        invariant: the output does not change:
            \Pi\, Z -> Z
        X25: where a token stands changes its output: = \Pi -> \ne \Pi
    """
    weights = projections(normal, d_model, d_model, d_k, d_v)
    return {"Z": function(lambda X: one_head(X, X, **weights)), r"\Pi": shuffle(rng, T), "X": normal(T, d_model)}


@claim("score-with-added-positions", rests_on="bilinear-score permutation-equivariance")
def _(normal, T, d_model):
    r"""(x_t + h_t)\, M\, (x_u + h_u)^\top = x_t M x_u^\top + x_t M h_u^\top + h_t M x_u^\top + h_t M h_u^\top
    where h_t = a vector that depends on the place t only ;; M = W_Q W_K^T
    Multiply out: content to content, content to place, place to content, place to place. The last three break the symmetry.
        content and place do not mix: two terms:
            x_t M h_u^\top + h_t M x_u^\top + ->
        the two cross terms are equal: x_t M h_u^\top + h_t M x -> 2\, x_t M h
    """
    x, h = normal(2, T, d_model)
    return {"x": rows(x), "h": rows(h), "M": normal(d_model, d_model)}
