"""The gradients of attention: dX is the gradient of a loss with respect to X, made by differences through the whole forward pass."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import column, derivative, function, matrix, of, rows, vector

equation = about("D2")


def inputs(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random queries, keys and values."""
    return rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))


def backward(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int, *wanted: str) -> dict[str, Any]:
    """Return a forward pass, a gradient dZ of a loss with respect to its output, and the gradients wanted, by differences."""
    Q, K, V = inputs(rng, T_q, T_k, d_k, d_v)
    S, dZ = reference.scaled_dot_scores(Q, K), rng.normal(size=(T_q, d_v))
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
@equation(
    "gradient-collects-all-outputs",
    r"dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} dZ_{ia}\, \frac{\partial Z_{ia}}{\partial x}",
    uses=["attention"],
    assumes=["x = any one number that Z depends on", "the loss depends on x through Z only"],
    wrong={
        "the changes added up, whatever they are worth": r"dx = \sum_{i=1}^{T_q} \sum_{a=1}^{d_v} \frac{\partial Z_{ia}}{\partial x}",
        "only the first output": r"dx = \sum_{a=1}^{d_v} dZ_{1a}\, \frac{\partial Z_{1a}}{\partial x}",
        "the mean over the outputs": r"\sum_{i=1}^{T_q} -> \frac{1}{T_q} \sum_{i=1}^{T_q}",
    },
)
def chain_rule(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """A small change of x changes every output that it touches; the loss counts each change with its own gradient."""
    at, along = inputs(rng, T_q, T_k, d_k, d_v), inputs(rng, T_q, T_k, d_k, d_v)
    dZ, x = rng.normal(size=(T_q, d_v)), rng.normal()

    def output(x: Any) -> np.ndarray:
        return reference.attention(*(start + x * way for start, way in zip(at, along, strict=True)))

    dx = derivative(lambda x: np.vdot(dZ, output(x)), x)
    return {"x": x, "Z": of(lambda x: matrix(output(x)), "x"), "dZ": dZ, "dx": dx, "T_q": T_q, "d_v": d_v}


@equation(
    "value-gradient-by-entry",
    r"dV_{ja} = \sum_{i=1}^{T_q} p_{ij}\, dZ_{ia}",
    uses=["gradient-collects-all-outputs", "output-derivative-by-value", "output-of-a-query"],
    wrong={
        "the weight of input i in output j": r"dV_{ja} = \sum_{i=1}^{T_q} p_{ji}\, dZ_{ia}",
        "not weighted": r"dV_{ja} = \sum_{i=1}^{T_q} dZ_{ia}",
        "summed over the features": r"dV_{ja} = \sum_{b} \sum_{i=1}^{T_q} p_{ij}\, dZ_{ib}",
    },
)
def gradient_of_one_value(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Entry a of value j enters entry a of every output, output i with the weight p_ij."""
    found = backward(rng, T_q, T_k, 2, d_v, "dV")
    return {"dV": found["dV"], "p": found["P"], "dZ": found["dZ"], "T_q": T_q}


@equation(
    "gradient-of-values",
    r"dV = P^\top dZ",
    uses=["output-derivative-by-value", "attention"],
    assumes=["dZ = gradient of the loss with respect to Z"],
    wrong={"P instead of its transpose": r"dV = P\, dZ", "the same for every value": r"dV = \mathbf{1} \mathbf{1}^\top P^\top dZ"},
)
def gradient_of_values(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Value j went into output i with weight p_ij, so it gets back p_ij of the gradient there."""
    return some(backward(rng, T_q, T_k, 2, d_v, "dV"), "dV", "P", "dZ")


@equation(
    "weight-gradient-by-entry",
    r"dP_{ij} = \sum_{a=1}^{d_v} dZ_{ia}\, V_{ja} = dZ_i \cdot v_j",
    uses=["gradient-collects-all-outputs", "output-of-a-query"],
    assumes=["the weights moved one by one, as if they need not sum to 1"],
    wrong={
        "another value": r"dP_{ij} = \sum_{a=1}^{d_v} dZ_{ia}\, V_{ja} = dZ_i \cdot v_i",
        "all queries": r"dP_{ij} = \sum_l \sum_{a=1}^{d_v} dZ_{la}\, V_{ja} = dZ_i \cdot v_j",
        "the indices exchanged": r"dP_{ij} = \sum_{a=1}^{d_v} dZ_{ja}\, V_{ia} = dZ_i \cdot v_j",
    },
)
def gradient_of_one_weight(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Weight p_ij touches output i only, and moves its entry a at the rate V_ja."""
    found = backward(rng, T_q, T_k, 2, d_v, "dP")
    return {"dP": found["dP"], "dZ": found["dZ"], "V": found["V"], "v": rows(found["V"]), "d_v": d_v}


@equation(
    "gradient-of-weights",
    r"dP = dZ\, V^\top",
    uses=["attention"],
    wrong={
        "summed over the queries": r"dP = \mathbf{1} \mathbf{1}^\top dZ\, V^\top",
        "values and gradient exchanged": r"dP = V\, dZ^\top",
        "normalised like the weights": r"dP = \mathrm{softmax}(dZ\, V^\top)",
    },
)
def gradient_of_weights(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Raising p_ij moves output i towards v_j: the gain is their dot product."""
    return some(backward(rng, T_q, T_k, 2, d_v, "dP"), "dP", "dZ", "V")


@equation(
    "score-gradient-over-row",
    r"dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{il}\, ([l = j] - p_{ij})",
    uses=["softmax-derivative", "attention-weights"],
    wrong={
        "its own weight only": r"dS_{ij} = dP_{ij}\, p_{ij}\, (1 - p_{ij})",
        "p_ij in the place of p_il": r"dS_{ij} = \sum_{l=1}^{T_k} dP_{il}\, p_{ij}\, ([l = j] - p_{ij})",
        "the weights of the other queries": r"dS_{ij} = \sum_{l=1}^{T_q} dP_{lj}\, p_{lj}\, ([l = i] - p_{ij})",
    },
)
def gradient_of_one_score(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Score s_ij touches all the weights of row i, and no other row, Eq. softmax-derivative."""
    found = backward(rng, T_q, T_k, 2, d_v, "dS", "dP")
    return {**some(found, "dS", "dP"), "p": found["P"], "T_k": T_k}


@equation(
    "gradient-of-scores",
    r"dS = P \odot \bigl( dP - \delta\, \mathbf{1}^\top \bigr), \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}",
    uses=["softmax-vector-jacobian-product", "attention-weights"],
    wrong={
        "the softmax treated entry by entry": r"dS = P \odot dP, \qquad \delta_i = \sum_{j} p_{ij}\, dP_{ij}",
        "the deltas of all queries added up": r"- \delta -> - \mathbf{1} \mathbf{1}^\top \delta",
    },
)
def gradient_of_scores(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Eq. softmax-vector-jacobian-product for each row: a score gets what its weight costs above the mean of its row."""
    found = backward(rng, T_q, T_k, 2, d_v, "dS", "dP")
    delta = column([z @ dz for z, dz in zip(found["Z"], found["dZ"], strict=True)])
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
    r"\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i)",
    uses=["gradient-of-weights", "gradient-of-scores"],
    wrong={
        "compared with 0 instead of the mixture": r"\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot v_j",
        "delta taken from the values": r"\delta_i = \sum_{j} dZ_i \cdot v_j, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (v_j - z_i)",
        "the mixture beats the value": r"\delta_i = dZ_i \cdot z_i, \qquad dS_{ij} = p_{ij}\; dZ_i \cdot (z_i - v_j)",
    },
)
def which_score_gains(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Put Eq. gradient-of-weights into Eq. gradient-of-scores.

    A step against the gradient raises the score of a value that beats the present mixture.
    """
    found = backward(rng, T_q, T_k, 2, d_v, "dS")
    delta = vector([p @ (found["V"] @ d_output) for p, d_output in zip(found["P"], found["dZ"], strict=True)])
    vectors = {"dZ": rows(found["dZ"]), "v": rows(found["V"]), "z": rows(found["Z"])}
    return {"dS": found["dS"], "p": found["P"], r"\delta": delta, **vectors}


@equation(
    "score-gradient-bound",
    r"|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr)",
    uses=["gradient-of-scores"],
    wrong={
        "a quarter of that": r"|dS_{ij}| \le \frac{1}{4}\, p_{ij}\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr)",
        "the square of the weight": r"|dS_{ij}| \le p_{ij}^2\, (1 - p_{ij}) \bigl( \max_l dP_{il} - \min_l dP_{il} \bigr)",
        "the largest cost alone": r"|dS_{ij}| \le p_{ij}\, (1 - p_{ij}) \max_l dP_{il}",
    },
)
def small_and_large_weights_learn_little(rng: np.random.Generator, T_q: int, T_k: int, draw: int) -> Givens:
    """In dP_ij - delta_i the term of key j itself cancels: the weights of the others are left, 1 - p_ij in all."""
    S, dP = 1.5 * rng.normal(size=(T_q, T_k)), rng.normal(size=(T_q, T_k))
    if draw == 2:  # one key is worth less than all others, and these are alike
        dP[:, 1:] = dP.max(axis=1, keepdims=True)
        dP[:, 0] -= 1.0
    p, dS = reference.softmax(S), derivative(lambda scores: np.vdot(dP, reference.softmax(scores)), S)
    return {"p": p, "dP": dP, "dS": dS}


@equation(
    "query-key-gradient-entries",
    r"dQ_{ic} = \frac{1}{\sqrt{d_k}} \sum_{j=1}^{T_k} dS_{ij}\, K_{jc}, \qquad"
    r" dK_{jc} = \frac{1}{\sqrt{d_k}} \sum_{i=1}^{T_q} dS_{ij}\, Q_{ic}",
    uses=["scaled-score", "gradient-of-scores"],
    wrong={
        "both with the scores of one row": r"\sum_{i=1}^{T_q} dS_{ij}\, Q_{ic} -> \sum_{i=1}^{T_q} dS_{ji}\, Q_{ic}",
        "queries from queries": r"\sum_{j=1}^{T_k} dS_{ij}\, K_{jc} -> \sum_{j=1}^{T_k} dS_{ij}\, Q_{jc}",
        "divided by d_k": r"dQ_{ic} = \frac{1}{\sqrt{d_k}} -> dQ_{ic} = \frac{1}{d_k}",
    },
)
def gradients_of_one_query_and_key(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """A query takes part in the scores of its row, a key in those of its column. Checked through the whole of Eq. attention."""
    return {**some(backward(rng, T_q, T_k, d_k, 2, "dQ", "dK", "dS"), "dQ", "dK", "dS", "Q", "K"), "d_k": d_k, "T_q": T_q, "T_k": T_k}


@equation(
    "query-and-key-gradients",
    r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
    uses=["scaled-score", "gradient-of-scores"],
    wrong={
        "the scale forgotten in the backward pass": r"dQ = dS\, K, \qquad dK = \frac{dS^\top Q}{\sqrt{d_k}}",
        "the scale applied twice": r"dQ = \frac{dS\, K}{d_k}, \qquad dK = \frac{dS^\top Q}{d_k}",
        "dK without the transpose": r"dQ = \frac{dS\, K}{\sqrt{d_k}}, \qquad dK = \frac{dS\, Q}{\sqrt{d_k}}",
    },
)
def gradients_of_queries_and_keys(rng: np.random.Generator, T_q: int, T_k: int, d_k: int) -> Givens:
    """Eq. scaled-score is linear in Q and in K; the scale passes through once. Checked through the whole of Eq. attention."""
    return {**some(backward(rng, T_q, T_k, d_k, 2, "dQ", "dK", "dS"), "dQ", "dK", "dS", "Q", "K"), "d_k": d_k}


# ---- What it costs
def four_products(q: np.ndarray, k: np.ndarray, v: np.ndarray, d_z: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return what the backward pass multiplies: dV, dP, dQ and dK (a square matrix stands for P and for dS)."""
    return square.T @ d_z, d_z @ v.T, square @ k, square.T @ q


@equation(
    "backward-flops-weights-kept",
    r"F_{\mathrm{back}} = 4\, T_q T_k\, (d_k + d_v) = 2\, F",
    uses=["attention-flops", "query-and-key-gradients"],
    assumes=["a multiplication and its addition count 2", "the weights kept from the forward pass", "the four matrix products"],
    wrong={
        "as much as the forward pass": r"F_{\mathrm{back}} = 2\, T_q T_k\, (d_k + d_v) = F",
        "the scores computed again": r"F_{\mathrm{back}} = 2\, T_q T_k\, (3\, d_k + 2\, d_v) = 2\, F",
        "linear in the lengths": r"F_{\mathrm{back}} = 4\, (T_q + T_k)\, (d_k + d_v) = 2\, F",
    },
)
def flops_of_the_backward_pass(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Two products for each one of the forward pass: one for each of the two matrices that were multiplied."""
    shapes = (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v), (T_q, T_k)
    forward = multiplications(lambda q, k, v: (q @ k.T) @ v, *shapes[:3])
    counted = {r"F_{\mathrm{back}}": 2 * multiplications(four_products, *shapes), "F": 2 * forward}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@equation(
    "numbers-kept-for-gradients",
    r"\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_q T_k",
    uses=["attention", "gradient-of-scores"],
    assumes=["kept: Q, K, V, Z and P"],
    wrong={
        "the weights not counted": r"\text{numbers kept} = (T_q + T_k)(d_k + d_v)",
        "scores kept as well": r"\text{numbers kept} = (T_q + T_k)(d_k + d_v) + 2\, T_q T_k",
        "one row of weights": r"\text{numbers kept} = (T_q + T_k)(d_k + d_v) + T_k",
    },
)
def numbers_kept(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Four thin matrices and one that grows with the product of the lengths."""
    Q, K, V = inputs(rng, T_q, T_k, d_k, d_v)
    kept = sum(array.size for array in (Q, K, V, *reference.attention(Q, K, V, return_weights=True)))
    return {r"\text{numbers kept}": kept, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


# ---- The check by differences
@equation(
    "central-difference-error",
    r"\frac{f(x + h) - f(x - h)}{2\, h} = f'(x) + \frac{h^2}{6}\, f'''(x) + O(h^4)",
    uses=["gradient-collects-all-outputs"],
    assumes=[
        "f has five continuous derivatives near x",
        "tried on polynomials of degree 6, for which O(h^4) is h^4 / 120 times the fifth derivative",
    ],
    wrong={
        "exact but for O(h^4)": r"\frac{f(x + h) - f(x - h)}{2\, h} = f'(x) + 0 f'''(x) + O(h^4)",
        "divided by one step": r"\frac{f(x + h) - f(x - h)}{h} = f'(x) + \frac{h^2}{6}\, f'''(x) + O(h^4)",
        "an error that grows with the step itself": r"\frac{h^2}{6} -> \frac{h}{2}",
    },
)
def error_of_a_central_difference(rng: np.random.Generator, n: int) -> Givens:
    """Expand f(x + h) and f(x - h): even powers of h cancel in the difference, and the first that is left is h^3."""
    f, x, h = np.polynomial.Polynomial(rng.normal(size=7)), rng.normal(), rng.uniform(0.5, 1.5)
    parts = {"f": function(f), "f'": function(f.deriv()), "f'''": function(f.deriv(3))}
    return {**parts, "x": x, "h": h, "O(h^4)": h**4 / 120 * f.deriv(5)(x)}


def zero_of(rising: Callable[[float], float]) -> float:
    """Return where a rising function of a positive number is 0, by halving the interval."""
    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low


@equation(
    "best-difference-step",
    r"E = \frac{M h^2}{6} + \frac{\varepsilon F}{h}: \qquad \frac{\partial E}{\partial h} = 0"
    r" \quad \Longleftrightarrow \quad h = \Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/3}",
    uses=["central-difference-error"],
    assumes=["M = size of the third derivative", "F = size of the loss", "each loss rounded to the share eps of itself"],
    wrong={
        "the square root, as for a difference to one side": r"\Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/3}"
        r" -> \Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/2}",
        "the smaller the better": r"\Bigl( \frac{3\, \varepsilon F}{M} \Bigr)^{1/3} -> \varepsilon",
        "upside down": r"\frac{3\, \varepsilon F}{M} -> \frac{M}{3\, \varepsilon F}",
    },
)
def best_step(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """The error of the expansion falls with the step, that of rounding grows: they are balanced where the slope is 0."""
    M, F, epsilon = rng.uniform(0.5, 2.0, size=3)
    h = zero_of(lambda h: M * h / 3 - epsilon * F / h**2) * (1.0, 1.7, 0.6)[draw]
    return {"M": M, "F": F, r"\varepsilon": epsilon, "h": h, "E": of(lambda h: M * h**2 / 6 + epsilon * F / h, "h")}
