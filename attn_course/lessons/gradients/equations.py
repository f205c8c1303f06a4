"""The gradients of attention: dX is the gradient of a loss with respect to X, made by differences through the whole forward pass."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import Normal, inputs
from attn_course.formulas import column, derivative, matrix, of, rows, vector

claim = about("D2")


def backward(normal: Normal, T_q: int, T_k: int, d_k: int, d_v: int, *wanted: str) -> dict[str, Any]:
    """Return a forward pass, a gradient dZ of a loss with respect to its output, and the gradients wanted, by differences."""
    Q, K, V = inputs(normal, T_q, T_k, d_k, d_v)
    S, dZ = reference.scaled_dot_scores(Q, K), normal(T_q, d_v)
    Z, P = reference.attention(Q, K, V, return_weights=True)
    outputs: dict[str, tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]] = {
        "dV": (lambda V: reference.attention(Q, K, V), V),
        "dP": (lambda P: P @ V, P),
        "dS": (lambda S: reference.softmax(S) @ V, S),
        "dQ": (lambda Q: reference.attention(Q, K, V), Q),
        "dK": (lambda K: reference.attention(Q, K, V), K),
    }

    def gradient(output: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> Any:
        return derivative(lambda moved: np.vdot(dZ, output(moved)), at)

    return {"Q": Q, "K": K, "V": V, "P": P, "Z": Z, "dZ": dZ, **{name: gradient(*outputs[name]) for name in wanted}}


def some(givens: Givens, *names: str) -> Givens:
    """Return the givens of these names."""
    return {name: givens[name] for name in names}


# ---- One entry at a time, then all at once
@claim("gradient-collects-all-outputs", rests_on="attention")
def _(normal, T_q, T_k, d_k, d_v):
    r"""dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x}
    where x = any one number that Z depends on ;; the loss depends on x through Z only
    A small change of x changes every output that it touches; the loss counts each change with its own gradient.
        the changes added up, whatever they are worth: dZ_{ia}\, ->
        only the first output: dx = \sum_{a=1}^{d_v} dZ_{1a}\, \frac{\partial Z_{1a}}{\partial x}
        the mean over the outputs: \sum_{i=1}^{T_q} -> \frac{1}{T_q} \sum_{i=1}^{T_q}
    """
    at, along = inputs(normal, T_q, T_k, d_k, d_v), inputs(normal, T_q, T_k, d_k, d_v)
    dZ, x = normal(T_q, d_v), normal()

    def output(x: Any) -> np.ndarray:
        return reference.attention(*(start + x * way for start, way in zip(at, along, strict=True)))

    dx = derivative(lambda x: np.vdot(dZ, output(x)), x)
    return {"x": x, "Z": of(lambda x: matrix(output(x)), "x"), "dZ": dZ, "dx": dx, "T_q": T_q, "d_v": d_v}


@claim("value-gradient-by-entry", rests_on="gradient-collects-all-outputs output-derivative-by-value output-of-a-query")
def _(normal, T_q, T_k, d_v):
    r"""dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia}
    Entry a of value j enters entry a of every output, output i with the weight p_ij.
        the weight of input i in output j: ij -> ji
        not weighted: p_{ij}\, ->
        summed over the features: dV_{ja} = \sum_{b} \sum_{i=1}^{T_q} p_{ij}\, dZ_{ib}
    """
    found = backward(normal, T_q, T_k, 2, d_v, "dV")
    return {"dV": found["dV"], "p": found["P"], "dZ": found["dZ"], "T_q": T_q}


@claim("gradient-of-values", rests_on="output-derivative-by-value attention")
def _(normal, T_q, T_k, d_v):
    r"""dV = P^\top dZ
    where dZ = gradient of the loss with respect to Z
    Value j went into output i with weight p_ij, so it gets back p_ij of the gradient there.
        P instead of its transpose: dV = P\, dZ
        the same for every value: dV = \mathbf{1} \mathbf{1}^\top P^\top dZ
    """
    return some(backward(normal, T_q, T_k, 2, d_v, "dV"), "dV", "P", "dZ")


@claim("gradient-of-weights", rests_on="attention")
def _(normal, T_q, T_k, d_v):
    r"""dP = dZ\, V^\top
    Raising p_ij moves output i towards v_j: the gain is their dot product.
        summed over the queries: dP = \mathbf{1} \mathbf{1}^\top dZ\, V^\top
        values and gradient exchanged: dP = V\, dZ^\top
        normalised like the weights: dP = \mathrm{softmax}(dZ\, V^\top)
    """
    return some(backward(normal, T_q, T_k, 2, d_v, "dP"), "dP", "dZ", "V")


@claim("score-gradient-over-row", rests_on="softmax-derivative attention-weights")
def _(normal, T_q, T_k, d_v):
    r"""dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij})
    Score s_ij touches all the weights of row i, and no other row, Eq. softmax-derivative.
        its own weight only: dS_{ij} = dP_{ij}\, p_{ij}\, (1 - p_{ij})
        p_ij in the place of p_il: p_{il}\, -> p_{ij}\,
        the weights of the other queries: dS_{ij} = \sum_{l=1}^{T_q} dP_{lj}\, p_{lj}\, ([l = i] - p_{ij})
    """
    found = backward(normal, T_q, T_k, 2, d_v, "dS", "dP")
    return {**some(found, "dS", "dP"), "p": found["P"], "T_k": T_k}


@claim("gradient-of-scores", rests_on="softmax-vector-jacobian-product attention-weights")
def _(normal, T_q, T_k, d_v):
    r"""dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}
    Eq. softmax-vector-jacobian-product for each row: a score gets what its weight costs above the mean of its row.
        the softmax treated entry by entry: dS = P \odot dP, \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}
        the deltas of all queries added up: - \delta -> - \mathbf{1} \mathbf{1}^\top \delta
    """
    found = backward(normal, T_q, T_k, 2, d_v, "dS", "dP")
    delta = column([z @ dz for z, dz in zip(found["Z"], found["dZ"], strict=True)])
    return {**some(found, "dS", "P", "dP"), "p": matrix(found["P"]), r"\delta": delta}


@claim("score-gradient-against-mixture", rests_on="gradient-of-weights gradient-of-scores")
def _(normal, T_q, T_k, d_v):
    r"""\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i)
    Put Eq. gradient-of-weights into Eq. gradient-of-scores.
        compared with 0 instead of the mixture: (v_j - z_i) -> v_j
        delta taken from the values: dZ_i \cdot z_i -> \sum_{j} dZ_i \cdot v_j
        the mixture beats the value: v_j - z_i -> z_i - v_j

    A step against the gradient raises the score of a value that beats the present mixture.
    """
    found = backward(normal, T_q, T_k, 2, d_v, "dS")
    delta = vector([p @ (found["V"] @ d_output) for p, d_output in zip(found["P"], found["dZ"], strict=True)])
    vectors = {"dZ": rows(found["dZ"]), "v": rows(found["V"]), "z": rows(found["Z"])}
    return {"dS": found["dS"], "p": found["P"], r"\delta": delta, **vectors}


@claim("score-gradient-bound", rests_on="gradient-of-scores")
def _(normal, T_q, T_k, draw):
    r"""|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr)
    In dP_ij - delta_i the term of key j itself cancels: the weights of the others are left, 1 - p_ij in all.
        a quarter of that: \le -> \le \frac{1}{4}\,
        the square of the weight: p_{ij}\, -> p_{ij}^2\,
        the largest cost alone: |dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \max_l dP_{il}
    """
    S, dP = 1.5 * normal(T_q, T_k), normal(T_q, T_k)
    if draw == 2:  # one key is worth less than all others, and these are alike
        dP[:, 1:] = dP.max(axis=1, keepdims=True)
        dP[:, 0] -= 1.0
    p, dS = reference.softmax(S), derivative(lambda scores: np.vdot(dP, reference.softmax(scores)), S)
    return {"p": p, "dP": dP, "dS": dS}


@claim("query-and-key-gradients", rests_on="scaled-score gradient-of-scores")
def _(normal, T_q, T_k, d_k):
    r"""dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}
    Eq. scaled-score is linear in Q and in K; the scale passes through once. Checked through the whole of Eq. attention.
        the scale forgotten in the backward pass: \frac{dS\, K}{\sqrt{d_k}} -> dS\, K
        the scale applied twice: dQ = \frac{dS\, K}{d_k}, \qquad dK = \frac{dS^\top Q}{d_k}
        dK without the transpose: dS^\top -> dS\,
    """
    return {**some(backward(normal, T_q, T_k, d_k, 2, "dQ", "dK", "dS"), "dQ", "dK", "dS", "Q", "K"), "d_k": d_k}


# ---- What it costs
def four_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_z: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what the backward pass multiplies: dV, dP, dQ and dK (a square matrix stands for P and for dS)."""
    return square.T @ d_z, d_z @ v.T, square @ k, square.T @ q


@claim("backward-flops-weights-kept", rests_on="attention-flops query-and-key-gradients")
def _(rng, T_q, T_k, d_k, d_v):
    r"""F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F
    where a multiplication and its addition count 2 ;; the weights kept from the forward pass ;; the four matrix products
    Two products for each one of the forward pass: one for each of the two matrices that were multiplied.
        as much as the forward pass: 4\, -> 2\, ;; 2\, F -> F
        the scores computed again: F_{\mathrm{back}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v) = 2\, F
        linear in the lengths: T_q T_k\, -> (T_q + T_k)\,
    """
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    forward = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes[:3])
    counted = {r"F_{\mathrm{back}}": 2 * multiplications(four_products, *shapes), "F": 2 * forward}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@claim("numbers-kept-for-gradients", rests_on="attention gradient-of-scores")
def _(normal, T_q, T_k, d_k, d_v):
    r"""\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k
    where kept: Q, K, V, Z and P
    Four thin matrices and one that grows with the product of the lengths.
        the weights not counted: + T_q T_k ->
        scores kept as well: + T_q -> + 2\, T_q
        one row of weights: T_q T_k -> T_k
    """
    Q, K, V = inputs(normal, T_q, T_k, d_k, d_v)
    kept = sum(array.size for array in (Q, K, V, *reference.attention(Q, K, V, return_weights=True)))
    return {r"\text{numbers kept}": kept, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}
