"""The gradients of attention: dX is the gradient of a loss with respect to X, made by differences through the whole forward pass."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.formulas import column, derivative, matrix, rows, vector

equation = about("D2")


def inputs(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random queries, keys and values."""
    return rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))


def backward(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int, *wanted: str) -> dict[str, Any]:
    """Return a forward pass, a gradient dO of a loss with respect to its output, and the gradients wanted, by differences."""
    Q, K, V = inputs(rng, T_q, T_k, d_k, d_v)
    S, dO = reference.scaled_dot_scores(Q, K), rng.normal(size=(T_q, d_v))
    Z, P = reference.attention(Q, K, V, return_weights=True)
    outputs: dict[str, tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]] = {
        "dV": (lambda V: reference.attention(Q, K, V), V),
        "dP": (lambda P: P @ V, P),
        "dS": (lambda S: reference.softmax(S) @ V, S),
        "dQ": (lambda Q: reference.attention(Q, K, V), Q),
        "dK": (lambda K: reference.attention(Q, K, V), K),
    }

    def gradient(output: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> Any:
        return derivative(lambda moved: np.vdot(dO, output(moved)), at)

    return {"Q": Q, "K": K, "V": V, "P": P, "Z": Z, "dO": dO, **{name: gradient(*outputs[name]) for name in wanted}}


def some(givens: Givens, *names: str) -> Givens:
    """Return the givens of these names."""
    return {name: givens[name] for name in names}


@equation(
    "gradient-of-values",
    r"dV = P^\top dO",
    uses=["output-derivative-by-value", "attention"],
    assumes=["dO = gradient of the loss with respect to Z"],
    wrong={"P instead of its transpose": r"dV = P\, dO", "the same for every value": r"dV = \mathbf{1} \mathbf{1}^\top P^\top dO"},
)
def gradient_of_values(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Value j went into output i with weight p_ij, so it gets back p_ij of the gradient there."""
    return some(backward(rng, T_q, T_k, 2, d_v, "dV"), "dV", "P", "dO")


@equation(
    "gradient-of-weights",
    r"dP = dO\, V^\top",
    uses=["attention"],
    wrong={
        "summed over the queries": r"dP = \mathbf{1} \mathbf{1}^\top dO\, V^\top",
        "values and gradient exchanged": r"dP = V\, dO^\top",
        "normalised like the weights": r"dP = \mathrm{softmax}(dO\, V^\top)",
    },
)
def gradient_of_weights(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Raising p_ij moves output i towards v_j: the gain is their dot product."""
    return some(backward(rng, T_q, T_k, 2, d_v, "dP"), "dP", "dO", "V")


@equation(
    "gradient-of-scores",
    r"dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}",
    uses=["softmax-vector-jacobian-product", "attention-weights"],
    wrong={
        "the softmax treated entry by entry": r"dS = P \odot dP, \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}",
        "the average over all queries": r"- \delta -> - \mathbf{1} \mathbf{1}^\top \delta",
    },
)
def gradient_of_scores(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Eq. softmax-vector-jacobian-product for each row: a score gains only by what its weight is worth above the average."""
    found = backward(rng, T_q, T_k, 2, d_v, "dS", "dP")
    delta = column([z @ dz for z, dz in zip(found["Z"], found["dO"], strict=True)])
    return {**some(found, "dS", "P", "dP"), "p": matrix(found["P"]), r"\delta": delta}


@equation(
    "zero-sum-score-gradients",
    r"\sum_{j=1}^{T_k} dS_{ij} = 0",
    uses=["softmax-jacobian-annihilates-constants", "gradient-of-scores"],
    wrong={"each column sums to 0": r"\sum_{i=1}^{T_k} dS_{ij} = 0", "the last key left out": r"\sum_{j=1}^{T_k - 1} dS_{ij} = 0"},
)
def score_gradients_sum_to_zero(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Adding the same number to a whole row of scores changes nothing, so no gradient points that way."""
    return {"dS": backward(rng, T_q, T_k, 2, d_v, "dS")["dS"], "T_k": T_k}


@equation(
    "score-gradient-against-mixture",
    r"\delta_i = dO_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dO_i \cdot (v_j - z_i)",
    uses=["gradient-of-weights", "gradient-of-scores"],
    wrong={
        "compared with 0 instead of the mixture": r"\delta_i = dO_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dO_i \cdot v_j",
        "delta taken from the values": r"\delta_i = \sum_{j} dO_i \cdot v_j, \qquad dS_{ij} = p_{ij}\; dO_i \cdot (v_j - z_i)",
        "the mixture beats the value": r"\delta_i = dO_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dO_i \cdot (z_i - v_j)",
    },
)
def which_score_gains(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Put Eq. gradient-of-weights into Eq. gradient-of-scores.

    A step against the gradient raises the score of a value that beats the present mixture.
    """
    found = backward(rng, T_q, T_k, 2, d_v, "dS")
    delta = vector([p @ (found["V"] @ d_output) for p, d_output in zip(found["P"], found["dO"], strict=True)])
    vectors = {"dO": rows(found["dO"]), "v": rows(found["V"]), "z": rows(found["Z"])}
    return {"dS": found["dS"], "p": found["P"], r"\delta": delta, **vectors}


@equation(
    "query-and-key-gradients",
    r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    uses=["scaled-score", "gradient-of-scores"],
    wrong={
        "the scale forgotten on the way back": r"dQ = dS\, K, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
        "the scale applied twice": r"dQ = \frac{dS\, K}{d_k}, \qquad dK = \frac{dS^\top Q}{d_k}",
        "dK without the transpose": r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS\, Q}{\sqrt{d_k}}",
    },
)
def gradients_of_queries_and_keys(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Eq. scaled-score is linear in Q and in K; the scale passes through once. Checked through the whole of Eq. attention."""
    return {**some(backward(rng, T_q, T_k, d_k, 2, "dQ", "dK", "dS"), "dQ", "dK", "dS", "Q", "K"), "d_k": d_k}
