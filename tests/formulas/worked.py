r"""Givens for equations of the course, made independently of their formulas: from the reference, by loops, by differences.

Each maker takes random numbers and the sizes it names, and returns givens. `wrong` lists changes of the LaTeX, old and new, that must be
rejected at one set of sizes at least.
"""

import itertools
import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attn_course.equations.core import REGISTRY
from attn_course.formulas.compiled import Formula
from attn_course.formulas.givens import (
    Given,
    Range,
    as_given,
    column,
    columns,
    derivative,
    function,
    independent,
    index,
    matrices,
    matrix,
    names_of,
    normal_nodes,
    of,
    opaque,
    outcomes,
    powers,
    row,
    rows,
    subset,
    vector,
)
from attn_course.formulas.sizes import size_sets
from attn_course.reference import attention, attention_backward, causal_mask, softmax, split_heads

RESPELLED = json.loads((Path(__file__).parent / "respelled.json").read_text(encoding="utf-8"))


@dataclass
class Worked:
    make: Callable[..., dict[str, Any]]
    sizes: str
    relations: tuple[str, ...]
    wrong: list[tuple[str, str]]


WORKED: dict[str, Worked] = {}


def worked(label, sizes, wrong, *, relations=()):
    def register(make):
        WORKED[label] = Worked(make, sizes, tuple(relations), list(wrong))
        return make

    return register


def latex_of(label: str) -> str:
    return RESPELLED.get(label) or REGISTRY.get_equation(label).latex


def formula_of(latex: str, givens: dict[str, Any]) -> Formula:
    return Formula.of(latex, names_of(givens), [name for name, given in givens.items() if isinstance(as_given(given), Range)])


def draws(label: str) -> list[dict[str, Any]]:
    """Three draws of the givens of an equation at each of the four sets of sizes."""
    entry = WORKED[label]
    rngs = (np.random.default_rng([zlib.crc32(label.encode()), seed]) for seed in itertools.count())
    return [entry.make(next(rngs), **sizes) for sizes in size_sets(entry.sizes, entry.relations) for _ in range(3)]


def simplex(rng, *shape):
    return softmax(rng.normal(size=shape))


# 0 and 1


@worked(
    "dot-product-in-columns", "d_k", [(r"q\, k^\top", r"q^\top k"), ("q_a k_a", "q_a k_1"), ("a=1", "a=2"), ("q_c^\\top k_c", "q_c k_c")]
)
def _(rng, d_k):
    q, k = rng.normal(size=(2, d_k))
    return {"q": row(q), "k": row(k), "q_c": column(q), "k_c": column(k), "d_k": d_k}


@worked(
    "attention-in-columns", "T_q T_k d_k d_v", [("K_c^\\top Q_c", "Q_c^\\top K_c"), (r"\text{columns}", r"\text{rows}"), (r"^{\top}", "")]
)
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    return {"Q": Q, "K": K, "V": V, "Q_c": Q.T.copy(), "K_c": K.T.copy(), "V_c": V.T.copy(), "d_k": d_k}


@worked("causal-mask-in-columns", "T", [("j > i", r"j \ge i"), ("M_c^\\top", "M_c")])
def _(rng, T):
    mask = ~causal_mask(T, T) * 1.0
    return {"M": matrix(mask), "M_c": matrix(mask.T.copy())}


@worked("recurrent-gradient-product", "T", [("t=1", "t=2"), ("1 - h_t^2", "1 + h_t^2"), ("h_t^2", "h_t")])
def _(rng, T):
    w, u, x = 0.8, 0.7, rng.normal(size=T)

    def states(h_0, w):
        h = [h_0]
        for t in range(T):
            h.append(np.tanh(w * h[-1] + u * x[t]))
        return vector(np.array(h), start=0)

    return {"w": w, "h_0": 0.3, "h": of(states, "h_0", "w"), "h_T": of(lambda h_0, w: states(h_0, w).raw[-1], "h_0", "w"), "T": T}


@worked("exact-lookup", "m d", [(r"k_i = q", r"k_i \ne q"), ("v_i", "k_i")])
def _(rng, m, d):
    k, v = rng.normal(size=(m, d)), rng.normal(size=(m, d + 1))
    return {"k": rows(k), "v": rows(v), "q": row(k[1]), "m": m, "D": function(lambda q: v[[np.array_equal(q, one) for one in k]][0])}


@worked("lookup-by-name", "m d", [("m - 1", "m"), (r"\ne", "="), ("+ \\sum", "- \\sum")])
def _(rng, m, d):
    names = rng.permutation(m)
    q, k, v, beta = np.eye(m)[rng.permutation(m)], np.eye(m)[names], rng.normal(size=(m, d)), 1.3
    z = attention(beta * q, k, v, scale=1.0)
    return {"z": rows(z), "v": rows(v), "r": vector([1 + int(np.argmax(k @ one)) for one in q]), "m": m, r"\beta": beta}


@worked("bandwidth-limits", "m d", [(r"\min_j", r"\max_j"), (r"\frac{1}{m}", "1"), ("0^+", r"\infty")])
def _(rng, m, d):
    q, k = rng.normal(size=d), rng.normal(size=(m, d))

    def weights(h):
        return softmax(-((q - k) ** 2).sum(-1) / (2 * h**2))

    return {"q": row(q), "k": rows(k), "m": m, "h": 1.0, r"\alpha": of(weights, "h")}


@worked("nadaraya-watson-regression", "m", [("y^{(i)}", "x^{(i)}"), ("K_h(x - x^{(j)})", "K_h(x + x^{(j)})"), (r"y\, \hat", r"\hat")])
def _(rng, m):
    x_i, y_i, h = rng.normal(size=m), rng.normal(size=m), 0.8

    def kernel(u):
        return np.exp(-(u**2) / (2 * h**2)) / (h * np.sqrt(2 * np.pi))

    def density(a, b):
        return np.mean(kernel(a - x_i) * kernel(b - y_i))

    return {
        r"\hat p": function(density),
        "x": 0.3,
        "x^{(i)}": vector(x_i),
        "y^{(i)}": vector(y_i),
        "m": m,
        "K_h": function(kernel, entrywise=True),
    }


@worked("affine-maps-pass-through", "m d_k d_v", [("(v_i A + b)", "(v_i A - b)"), (r"v_i \Bigr) A", r"v_i^\top \Bigr) A")])
def _(rng, m, d_k, d_v):
    return {
        r"\alpha": simplex(rng, m),
        "v": rows(rng.normal(size=(m, d_k))),
        "A": rng.normal(size=(d_k, d_v)),
        "b": row(rng.normal(size=d_v)),
        "m": m,
    }


@worked(
    "weights-times-values", "T_q T_in d", [("P\\,V", "P^\\top V"), ("p_{ij}", "p_{ji}"), (r"P\,\mathbf{1} = ", r"P^\top \mathbf{1} = ")]
)
def _(rng, T_q, T_in, d):
    P, V = simplex(rng, T_q, T_in), rng.normal(size=(T_in, d))
    Z = np.array([sum(P[i, j] * V[j] for j in range(T_in)) for i in range(T_q)])
    return {"p": matrix(P), "v": rows(V), "z": rows(Z), "Z": Z, "P": P, "V": V, "T_{in}": T_in}


@worked("output-derivative-by-value", "T_q T_k d", [(r"\delta_{ab}", r"\delta_{ij}"), ("p_{ij}", "p_{ji}")])
def _(rng, T_q, T_k, d):
    P = simplex(rng, T_q, T_k)
    return {"p": matrix(P), "v": matrix(rng.normal(size=(T_k, d))), "z": of(lambda v: matrix(np.einsum("ij,ja->ia", P, v)), "v")}


@worked("linear-attention-is-cubic", "T d", [("c^3", "c^2"), (r"X X^\top X", r"X^\top X X"), (r"X X^\top X", r"X X X^\top")])
def _(rng, T, d):
    return {"X": rng.normal(size=(T, d)), "c": 1.7}


# 2


@worked("softmax", "n", [(r"e^{z_i}}", r"e^{-z_i}}"), ("j=1", "j=2"), (r"\sum", r"\max"), ("{n}", "{n - 1}")])
def _(rng, n):
    return {"z": vector(rng.normal(size=n)), "n": n}


@worked("functional-equation-integrated", "n", [("x+1", "x"), ("_0^1", "_0^2")])
def _(rng, n):
    beta = rng.normal()
    return {"g": function(lambda x: np.exp(beta * x)), "x": 0.4 / n}


@worked("exponential-differential-equation", "n", [(r"\beta", r"-\beta"), ("g'(x)", "g''(x)")])
def _(rng, n):
    beta = 0.3 + rng.uniform()
    return {"g": function(lambda x: np.exp(beta * x)), "x": rng.normal(), r"\beta": beta}


@worked("entropy-lagrangian-gradient", "n", [("- 1", "+ 1"), (r"+ \lambda", r"- \lambda"), (r"\ln p_i", "p_i")])
def _(rng, n):
    z, p, beta, lam = rng.normal(size=n), simplex(rng, n), 1.3, 0.7

    def lagrangian(p):
        return -(p * np.log(p)).sum() + beta * (p @ z) + lam * (p.sum() - 1)

    return {"z": z, "p": p, r"\beta": beta, r"\lambda": lam, r"\mathcal{L}": of(lagrangian, "p")}


@worked("free-energy-identity", "n", [(r"+ T\,H", r"- T\,H"), (r"p \,\|\, \sigma(z/T)", r"\sigma(z/T) \,\|\, p"), (r"z_j / T", "z_j")])
def _(rng, n):
    return {"p": simplex(rng, n), "z": rng.normal(size=n), "T": 1.7, "H": function(lambda p: -(p * np.log(p)).sum())}


@worked("lse-gradient", "n", [(r"\sigma(z)_i", r"\sigma(-z)_i")])
def _(rng, n):
    return {"z": rng.normal(size=n)}


@worked("lse-bounds", "n", [(r"\max_j z_j \le \mathrm", r"\min_j z_j + n \le \mathrm"), (r"+ \ln n", ""), (r"\ln n", r"\ln 2")])
def _(rng, n):
    return {"z": np.full(n, 0.3), "n": n}


@worked("softmax-shift-invariance", "n", [(r"z + c\,\mathbf{1}", r"c z"), (r"c\,\mathbf{1}", "c")])
def _(rng, n):
    return {"z": rng.normal(size=n), "c": 1.9}


@worked("stable-softmax", "n", [(r"{z_i - m}", "{z_i + m}"), (r"\max_j", r"\sum_j")][:1])
def _(rng, n):
    return {"z": rng.normal(size=n), "n": n}


@worked("softmax-derivative", "n", [("- s_j", "+ s_j"), ("- s_j", "- s_i"), (r"\delta_{ij}", "1")])
def _(rng, n):
    return {"z": rng.normal(size=n), "s": of(softmax, "z")}


@worked("softmax-jacobian", "n", [("- s", "+ s"), (r"s\,s^\top", r"s^\top s"), (r"s\,s^\top", r"\|s\|^2"), (r"s\,s^\top", r"s \odot s")])
def _(rng, n):
    z = rng.normal(size=n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z)}


@worked("softmax-jacobian-is-variance", "n", [(r"\bar{x})^2", r"\bar{x})"), ("s_j x_j", "x_j"), ("x_i - ", "x_i + ")])
def _(rng, n):
    z = rng.normal(size=n)
    return {"s": vector(softmax(z)), "J": derivative(softmax, z), "x": column(rng.normal(size=n))}


@worked("softmax-vector-jacobian-product", "n", [(r"\odot", r"\cdot"), ("g - ", "g + "), (r"\,\mathbf{1}", "")])
def _(rng, n):
    z, g = rng.normal(size=n), rng.normal(size=n)
    return {"s": column(softmax(z)), "J": derivative(softmax, z), "g": column(g)}


@worked("softmax-entropy-derivative", "n", [(r"-\beta", r"\beta"), (r"_s(z)", "_z(s)")])
def _(rng, n):
    z = rng.normal(size=n)

    def entropy(s):
        return -(s * np.log(s)).sum()

    return {
        "z": z,
        r"\beta": 0.8,
        "s": of(lambda beta: softmax(beta * z), r"\beta"),
        "H": of(lambda beta: entropy(softmax(beta * z)), r"\beta"),
    }


@worked("temperature-limits", "n", [("{k}", "{n}"), (r"\max_j", r"\min_j"), (r"\frac{1}{n}", r"\frac{1}{k}")])
def _(rng, n):
    z = rng.normal(size=n)
    z[1] = z[0] = z.max() + 1
    return {"z": z, "T": 1.0, "k": 2, "n": n}


@worked("softmax-jacobian-norm-bound", "n", [(r"\tfrac{1}{2}", r"\tfrac{1}{4}"), (r"\|J\|_2", r"\|J\|")])
def _(rng, n):
    return {"J": derivative(softmax, np.concatenate([[0.0, 0.0], np.full(n - 2, -40.0)]))}


@worked("cross-entropy-gradient", "n", [("s_i -", "s_i +"), (r"\delta_{iy}", "1"), (r"-\ln", r"\ln")])
def _(rng, n):
    return {"z": rng.normal(size=n), "s": of(softmax, "z"), "y": 2}


@worked("online-softmax-update", "n", [(r"\max", r"\min"), ("m - m'", "m' - m"), ("+ e", "- e")])
def _(rng, n):
    z = rng.normal(size=n)
    m, m_new = z[:-1].max(), z.max()
    sums = [np.exp(part - part.max()).sum() for part in (z[:-1], z)]
    return {"m": m, "x": z[-1], "m'": m_new, r"\ell": sums[0], r"\ell'": sums[1]}


# 3


@worked("dot-product-by-distance", "d", [(r"\tfrac{1}{2}", ""), ("- \\|q - k\\|^2", "- \\|q + k\\|^2")])
def _(rng, d):
    q, k = rng.normal(size=(2, d))
    return {"q": row(q), "k": row(k)}


@worked("equal-length-gaussian-weights", "n d", [("2 h^2", "h^2"), (r"\|q - k_j\|^2", r"\|q - k_j\|")])
def _(rng, n, d):
    k = rng.normal(size=(n, d))
    return {"q": row(rng.normal(size=d)), "k": rows(k / np.linalg.norm(k, axis=-1, keepdims=True)), "h": 0.8}


@worked("score-variance-from-covariances", "d", [(r"S_q S_k", "S_q"), ("+ m_k", "- m_k"), (r"\mathrm{tr}", r"\mathrm{rank}")])
def _(rng, d):
    points, chances = independent([-1.0, 1.0], [0.5, 0.5], 4)
    A, B = rng.normal(size=(2, d)), rng.normal(size=(2, d))
    q, k = 0.3 + points[:, :2] @ A, points[:, 2:] @ B - 0.2
    means = {"m_q": column(np.full(d, 0.3)), "m_k": column(np.full(d, -0.2))}
    return {"q": outcomes(chances, column(q)), "k": outcomes(chances, column(k)), "S_q": A.T @ A, "S_k": B.T @ B, **means}


@worked("variance-of-a-score", "n", [("= d_k", "= 2 d_k"), ("q_i k_i", "d_k q_i")])
def _(rng, n):
    points, chances = independent([-1.0, 1.0], [0.5, 0.5], 6)
    return {"q": outcomes(chances, row(points[:, :3])), "k": outcomes(chances, row(points[:, 3:])), "d_k": 3} if n else {}


@worked("covariance-within-a-row", "n", [("2\\,d_k", "d_k"), ("k')^2", "k')")])
def _(rng, n):
    nodes, weights = normal_nodes(3)
    points, chances = independent(nodes, weights, 6)
    return {name: outcomes(chances, row(points[:, at : at + 2])) for name, at in (("q", 0), ("k", 2), ("k'", 4))} | {"d_k": 2}


@worked("score-normal-given-query", "d", [("t^2", "t"), (r"/ 2", "")])
def _(rng, d):
    points, chances = independent(*normal_nodes(14), 3)
    return {"k": outcomes(chances, row(points)), "q": row(0.5 * rng.normal(size=3)), "t": 0.9 + d / 1000}


@worked("default-initialisation-variances", "d", [("d + 3d", "d + d"), (r"\tfrac{1}{3}", r"\tfrac{1}{2}")])
def _(rng, d):
    nodes, weights = np.polynomial.legendre.leggauss(5)

    def uniform(a, b):
        return outcomes(weights / 2, Given((a + b) / 2 + (b - a) / 2 * nodes, "scalar"))

    return {"U": function(uniform), "d": d}


@worked("scale-as-reparametrisation", "d_k d_v", [("c^2", "c"), ("W' - ", "W' + ")])
def _(rng, d_k, d_v):
    A = rng.normal(size=(d_k, d_v))
    return {"W": rng.normal(size=(d_k, d_v)), "c": 0.7, r"\eta": 0.1, r"\mathcal{L}": function(lambda W: (np.sin(W) * A).sum())}


# 4


@worked("attention-of-one-query", "T_k d_k d_v", [(r"\sqrt{d_k}", "d_k"), ("v_j", "k_j"), (r"\sum_{j=1}", r"\sum_{j=2}")])
def _(rng, T_k, d_k, d_v):
    q, K, V = rng.normal(size=d_k), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    call = function(lambda q, K, V: attention(q[None], K, V)[0])
    return {r"\mathrm{Attention}": call, "q": row(q), "K": K, "V": V, "k": rows(K), "v": rows(V), "T_k": T_k, "d_k": d_k}


@worked("attention", "T_q T_k d_k d_v", [(r"K^\top", "K"), (r"\mathrm{softmax}", ""), ("d_k", "d_v")])
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    Z, P = attention(Q, K, V, return_weights=True)
    return {"Q": Q, "K": K, "V": V, "Z": Z, "P": P, "d_k": d_k}


@worked("batched-attention", "B T_q T_k d_k d_v", [("V_b", "V_1"), (r"K_b^\top", "K_b"), (r"\sqrt{d_k}", "d_k")])
def _(rng, B, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(B, T_q, d_k)), rng.normal(size=(B, T_k, d_k)), rng.normal(size=(B, T_k, d_v))
    return {"Q": matrices(Q), "K": matrices(K), "V": matrices(V), "Z": matrices(attention(Q, K, V)), "d_k": d_k}


@worked("key-shift-invariance", "T_q T_k d_k d_v", [(r"\mathbf{1} u^\top", r"u\mathbf{1}^\top"), (r"K + ", "2 K + ")])
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    return {r"\mathrm{Attention}": function(attention), "Q": Q, "K": K, "V": V, "u": column(rng.normal(size=d_k))}


def backward(rng, T_q, T_k, d_k, d_v):
    Q, K, V, dO = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v)), rng.normal(size=(T_q, d_v))
    S = Q @ K.T / np.sqrt(d_k)

    def of_scores(S):
        return (dO * (softmax(S) @ V)).sum()

    dS = derivative(of_scores, S)
    dP = np.array([[dO[i] @ V[j] for j in range(T_k)] for i in range(T_q)])
    dQ, dK, dV = attention_backward(Q, K, V, dO)
    return {"Q": Q, "K": K, "V": V, "dO": dO, "S": S, "P": softmax(S), "dS": dS, "dP": dP, "dQ": dQ, "dK": dK, "dV": dV}


def chosen(givens, *names, **more):
    return {name: givens[name] for name in names} | more


@worked("gradient-of-values", "T_q T_k d_k d_v", [(r"P^\top", "P"), ("dO", r"dO^\top")])
def _(rng, T_q, T_k, d_k, d_v):
    return chosen(backward(rng, T_q, T_k, d_k, d_v), "dV", "P", "dO")


@worked(
    "gradient-of-scores",
    "T_q T_k d_k d_v",
    [("dP - ", "dP + "), (r"\delta\, \mathbf{1}^\top", r"\mathbf{1} \delta^\top"), (r"P \odot", ""), ("dP_{ij}", "dP_{ji}")],
)
def _(rng, T_q, T_k, d_k, d_v):
    givens = backward(rng, T_q, T_k, d_k, d_v)
    delta = np.array([sum(givens["P"][i, j] * givens["dP"][i, j] for j in range(T_k)) for i in range(T_q)])
    return chosen(givens, "dS", "P", "dP", p=matrix(givens["P"])) | {r"\delta": column(delta)}


@worked(
    "score-gradient-against-mixture",
    "T_q T_k d_k d_v",
    [("v_j - z_i", "v_j + z_i"), (r"dO_i \cdot z_i", r"dO_i \cdot v_i"), ("p_{ij}", "p_{ji}")],
)
def _(rng, T_q, T_k, d_k, d_v):
    givens = backward(rng, T_q, T_k, d_k, d_v)
    z = givens["P"] @ givens["V"]
    delta = [sum(givens["P"][i, j] * givens["dP"][i, j] for j in range(T_k)) for i in range(T_q)]
    return {"dO": rows(givens["dO"]), "dS": givens["dS"], "p": givens["P"], "v": rows(givens["V"]), "z": rows(z), r"\delta": vector(delta)}


@worked("query-and-key-gradients", "T_q T_k d_k d_v", [(r"dS^\top Q", "dS Q"), (r"\sqrt{d_k}", "d_k")])
def _(rng, T_q, T_k, d_k, d_v):
    return chosen(backward(rng, T_q, T_k, d_k, d_v), "dQ", "dK", "dS", "Q", "K", d_k=d_k)


@worked("output-derivative-by-query", "T_k d_k d_v", [("v_j - z", "z - v_j"), (r"- \bar{k}", ""), (r"\sqrt{d_k}", "d_k"), (r"^\top", "")])
def _(rng, T_k, d_k, d_v):
    q, K, V = rng.normal(size=d_k), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    z = of(lambda q: column(attention(q[None], K, V)[0]), "q")
    return {"q": column(q), "k": columns(K), "v": columns(V), "p": softmax(K @ q / d_k**0.5), "z": z, "T_k": T_k, "d_k": d_k}


@worked("query-misses-own-key", "n", [("0.06", "0.05"), ("e^{4", "e^{5"), ("(5, 0)", "(4, 0)")][:2])
def _(rng, n):
    K = np.array([[1.0, 0.0], [5.0, 0.0]])
    return {"q": row(K[0]), "k": rows(K), "p": attention(K[:1], K, np.eye(2))[0]}


@worked("self-attention-not-lipschitz", "n", [(r"\frac{1}{n} + ", ""), ("x_j^2", "x_j"), (r"\Bigr)^2", r"\Bigr)")])
def _(rng, n):
    x = rng.normal(size=n)
    x[0] = 0.0
    return {"x": x, "n": n, "z": of(lambda x: np.array([softmax(one * x) @ x for one in x]), "x")}


@worked("margin-grows-with-context", "n", [("n - 1}", "n}"), (r"+ \ln \frac", r"- \ln \frac")])
def _(rng, n):
    return {r"\Delta": math.log(n - 1) + math.log(0.7 / 0.3), "p": 0.7, "n": n}


@worked("values-from-all-outputs", "T d", [("P^{-1}", "P"), ("P^{-1}", r"P^{-\top}")])
def _(rng, T, d):
    P, V = np.eye(T) + simplex(rng, T, T), rng.normal(size=(T, d))
    return {"P": P, "V": V, "Z": P @ V}


# 5 and 6


@worked("heavy-diagonal-of-scores", "n", [(r"\sqrt{v}", "v"), (r"= 0 \quad (i \ne j)", "= 0"), ("= 1", "= 2")])
def _(rng, n):
    points, chances = independent([-1.0, 1.0], [0.5, 0.5], 12)
    X = points.reshape(-1, 4, 3)
    scores = np.einsum("nia,nja->nij", X, X) / np.sqrt(3)
    return {"s": outcomes(chances, matrix(scores)), "v": 3}


@worked("permutation-equivariance", "T d_model d_k d_v", [(r"\Pi\, Z(X)", "Z(X)"), (r"\Pi\, Z(X)", r"\Pi^\top Z(X)")])
def _(rng, T, d_model, d_k, d_v):
    W_Q, W_K, W_V = rng.normal(size=(d_model, d_k)), rng.normal(size=(d_model, d_k)), rng.normal(size=(d_model, d_v))
    return {
        "X": rng.normal(size=(T, d_model)),
        r"\Pi": np.roll(np.eye(T), 1, axis=0),
        "Z": function(lambda X: attention(X @ W_Q, X @ W_K, X @ W_V)),
    }


@worked("sinusoid-shift-is-linear", "n", [(r"& \sin(\omega\delta)", r"& -\sin(\omega\delta)"), (r"t + \delta)) \\", r"t - \delta)) \\")])
def _(rng, n):
    return {r"\omega": 0.7, "t": 1.0 * n, r"\delta": 1.3}


@worked("sinusoidal-positions", "T h", [(r"\sin", r"\cos"), ("2i/d", "i/d"), ("{t,2i+1}", "{t,2i}")])
def _(rng, T, h):
    from attn_course.reference import sinusoidal_positions

    return {"P": matrix(sinusoidal_positions(T, 2 * h), start=0), "d": 2 * h, "t": index(0, T - 1), "i": index(0, h - 1)}


@worked("rotations-compose", "n", [("u - t", "t - u"), (r"R_t^\top", "R_t"), (r"& -\sin", r"& \sin")])
def _(rng, n):
    def turn(t):
        return np.array([[np.cos(0.7 * t), -np.sin(0.7 * t)], [np.sin(0.7 * t), np.cos(0.7 * t)]])

    return {"R": matrices([turn(t) for t in range(-n, n + 1)], start=-n), r"\omega": 0.7, "t": index(0, n), "u": index(0, n)}


@worked("rope-as-complex-rotation", "n", [("t - u", "u - t"), (r"\hat{q}_m\, \bar{k}_m", r"\hat{q}_m"), (r"\mathrm{Re}", "")])
def _(rng, n):
    from attn_course.reference import rope

    q, k = rng.normal(size=(2, 4))
    frequencies = 10000.0 ** (-np.arange(2) / 2)
    turned = [np.stack([rope(unit[None], np.array([t]), layout="interleaved")[0] for unit in np.eye(4)], axis=1) for t in range(2 * n)]

    def complex_(x):
        return vector(x[::2] + 1j * x[1::2])

    givens = {
        "R": matrices(turned, start=0),
        "q": column(q),
        "k": column(k),
        r"\hat{q}": complex_(q),
        r"\bar{k}": vector(np.conj(complex_(k).raw)),
    }
    return givens | {r"\omega": vector(frequencies), "i": 1j, "c": 2, "t": index(0, n), "u": index(0, n)}


@worked("residual-stream", "L T d", [("l=1", "l=2"), ("X_{l-1} + ", "X_{l-1} - "), ("X_0 + ", "")])
def _(rng, L, T, d):
    A = rng.normal(size=(L, d, d)) / d

    def layer(number, X):
        return np.tanh(X @ A[number - 1])

    X = [rng.normal(size=(T, d))]
    for number in range(1, L + 1):
        X.append(X[-1] + layer(number, X[-1]))
    return {"X": matrices(X, start=0), "Z": function(layer), "L": L, "l": index(1, L)}


@worked("attention-contracts-differences", "T_q T_k", [(r"\min_{i,k}", r"\max_{i,k}"), (r"\min(", r"\max(")])
def _(rng, T_q, T_k):
    P, v = simplex(rng, T_q, T_k), rng.normal(size=T_k)
    return {"p": P, "v": v, "z": P @ v}


@worked("wanted-value-gains-score", "T d", [(r"-\frac", r"\frac"), ("p_n", "p_1"), (r"\tfrac{1}{2}", "")])
def _(rng, T, d):
    V = rng.normal(size=(T, d))
    return {"s": rng.normal(size=T), "p": of(softmax, "s"), "z": of(lambda s: row(softmax(s) @ V), "s"), "v": rows(V), "n": 3}


@worked("other-weights-same-output", "T d", [(r"= 0", r"= V"), ("P + N", "P N")], relations=("T > d",))
def _(rng, T, d):
    V = rng.normal(size=(T, d))
    basis = np.linalg.svd(np.hstack([V, np.ones((T, 1))]).T)[2][d + 1 :] if d + 1 < T else np.zeros((1, T))
    return {"P": simplex(rng, T, T), "N": 0.01 * rng.normal(size=(T, len(basis))) @ basis, "V": V}


@worked("additive-score", "T_q T_k d_q d_k d_h", [(r"\tanh", r"\sin"), (r"+ W_K^\top", r"- W_K^\top"), ("v_r", "v_1")])
def _(rng, T_q, T_k, d_q, d_k, d_h):
    from attn_course.reference import additive_scores

    q, k, W_Q, W_K, v = (rng.normal(size=shape) for shape in ((T_q, d_q), (T_k, d_k), (d_q, d_h), (d_k, d_h), (d_h,)))
    return {"e": additive_scores(q, k, W_Q, W_K, v), "q": columns(q), "k": columns(k), "W_Q": W_Q, "W_K": W_K, "v": column(v), "d_h": d_h}


@worked("additive-derivative-by-query", "d_q d_k d_h", [("1 - t^2", "1 + t^2"), (r"\odot", ""), ("W_Q\\, ", r"W_Q^\top ")])
def _(rng, d_q, d_k, d_h):
    q, k, W_Q, W_K, v = (rng.normal(size=shape) for shape in ((d_q,), (d_k,), (d_q, d_h), (d_k, d_h), (d_h,)))
    e = of(lambda q: v @ np.tanh(q @ W_Q + k @ W_K), "q")
    return {"e": e, "q": column(q), "k": column(k), "W_Q": W_Q, "W_K": W_K, "v": column(v)}


@worked("additive-query-key-interaction", "d_q d_k d_h", [("-2", "2"), ("t_r\\, (", "(")])
def _(rng, d_q, d_k, d_h):
    q, k, W_Q, W_K, v = (rng.normal(size=shape) for shape in ((d_q,), (d_k,), (d_q, d_h), (d_k, d_h), (d_h,)))
    e = of(lambda q, k: v @ np.tanh(q @ W_Q + k @ W_K), "q", "k")
    return {"e": e, "q": q, "k": k, "W_Q": W_Q, "W_K": W_K, "v": v, "t": np.tanh(q @ W_Q + k @ W_K), "d_h": d_h}


@worked("tanh-units-make-products", "n", [("4\\,", "2\\,"), (r"f(q + k) - ", r"f(q + k) + "), (r"\tanh''", r"\tanh'")])
def _(rng, n):
    return {"q": 0.7, "k": -0.4 + n / 100, r"\varepsilon": 0.1, r"\beta": 0.6}


# 7


@worked("minus-infinity-removes-key", "n", [(r"l \notin A", r"l \in A"), (r"[\,j \in A\,]\,", "")])
def _(rng, n):
    members = np.arange(n) % 2 == 0
    return {"a": np.ones(n), "s": rng.normal(size=n), "A": subset(members)}


@worked("masking-renormalises-weights", "n", [(r"w = \sigma(s)", "w = s"), (r"\sum_{l \in A} w_l", r"\sum_{l} w_l")])
def _(rng, n):
    return {"s": rng.normal(size=n), "A": subset(np.arange(n) % 2 == 0)}


@worked("masked-exponential-is-zero", "n", [(r"-\infty", "-800"), (r"j \in A \\", r"j \notin A \\"), (r"-\infty", "-30")])
def _(rng, n):
    members = np.arange(n) % 2 == 0
    return {"s": rng.normal(size=n), "A": subset(members), "M": np.where(members, 0, -np.inf)}


@worked("masked-attention", "T_q T_k d_k d_v", [("+ M", "- M"), (r"\sum_{j \in A_i} e", r"\sum_{j} e"), (r"K^\top", "K")])
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    mask = rng.uniform(size=(T_q, T_k)) < 0.5
    mask[:, 0] = True
    Z = attention(Q, K, V, mask=mask)
    givens = {"Q": Q, "K": K, "V": V, "q": rows(Q), "k": rows(K), "v": rows(V), "d_k": d_k, "A": subset(mask)}
    return givens | {"M": np.where(mask, 0, -np.inf), "Z": Z, "z": rows(Z)}


@worked("finite-fill-leaks", "n", [("r + e", "r - e"), (r"s - c", "s + c")])
def _(rng, n):
    members = np.arange(n) % 2 == 0
    return {"s": rng.normal(size=n), "c": 1.3, "A": subset(members), r"\bar{A}": subset(~members)}


@worked(
    "empty-row-is-zero", "T_q T_k d", [("p_{ij} = 0", "p_{ij} = 1"), ("z_i = 0", "e^{z_{i1}} = 0"), (r"\emptyset", r"\emptyset \cup A_i")]
)
def _(rng, T_q, T_k, d):
    mask = rng.uniform(size=(T_q, T_k)) < 0.6
    mask[1] = False
    Q, K, V = rng.normal(size=(T_q, d)), rng.normal(size=(T_k, d)), rng.normal(size=(T_k, d))
    Z, P, L = attention(Q, K, V, mask=mask, return_weights=True, return_lse=True)
    return {"A": subset(mask), "p": P, "z": rows(Z), "L": L}


@worked(
    "causal-mask", "T_q T_k", [("i + p", "i"), (r"-\infty \iff j >", r"-\infty \iff j \ge"), (r"j \le", "j <")], relations=("T_k >= T_q",)
)
def _(rng, T_q, T_k):
    mask = causal_mask(T_q, T_k, 1)
    return {
        "A": subset(mask, start=(0, 0)),
        "M": matrix(np.where(mask, 0, -np.inf), start=0),
        "p": 1,
        "j": index(0, T_k - 1),
        "i": index(0, T_q - 1),
    }


@worked("causal-prefix-invariance", "T d", [("_{1:t}", "_{1:T}"), ("X_{1:t}", "X")][:1])
def _(rng, T, d):
    return {"Z": function(lambda X: attention(X, X, X, is_causal=True)), "X": rng.normal(size=(T, d)), "t": index(1, T)}


@worked("mask-after-softmax-leaks", "T d", [("-w_{il}", "w_{il}"), (r"(l \notin A_i)", r"(l \in A_i)")])
def _(rng, T, d):
    V, mask = rng.normal(size=(T, d)), causal_mask(T, T)
    z = of(lambda s: rows((softmax(s) * mask) @ V), "s")
    return {"s": rng.normal(size=(T, T)), "w": of(softmax, "s"), "v": rows(V), "A": subset(mask), r"\tilde{z}": z}


@worked("causal-mask-hides-future", "T d", [("j > i", r"j \ge i"), (r"\quad (j > i)", "")])
def _(rng, T, d):
    return {"x": rows(rng.normal(size=(T, d))), "z": of(lambda x: rows(attention(x, x, x, is_causal=True)), "x")}


@worked("added-masks-intersect", "T_q T_k", [(r"\cap", r"\cup"), ("M^{(1)} + ", "M^{(1)} - ")])
def _(rng, T_q, T_k):
    one, two = rng.uniform(size=(2, T_q, T_k)) < 0.6

    def fill(mask):
        return np.where(mask, 0, -np.inf)

    sets = {"A": subset(one & two), "A^{(1)}": subset(one), "A^{(2)}": subset(two)}
    return {"M^{(1)}": fill(one), "M^{(2)}": fill(two), "M": fill(one & two), **sets}


@worked("causal-pair-count", "T_q p T_k", [("T_q + 1", "T_q - 1"), ("T_q - 1}", "T_q - 2}")], relations=("T_k > T_q", "T_k > p"))
def _(rng, T_q, p, T_k):
    return {"A": subset(causal_mask(T_q, T_q + p, p), start=(0, 0)), "T_q": T_q, "p": p}


@worked("reach-of-stacked-windows", "T", [(r"L \cdot w", "L + w"), (r"i - w", "i + w"), (r"j \le i\,", "j < i")])
def _(rng, T):
    n = 3 * T
    band = [np.array([[float(i - w <= j <= i) for j in range(n)] for i in range(n)]) for w in range(2 * 3 + 1)]
    return {"B": matrices(band, start=0), "w": 2, "L": 3}


@worked("packed-documents-stay-apart", "n m d", [("g_j = g_i", r"g_j \ne g_i"), ("X^{(2)}", "X^{(1)}")])
def _(rng, n, m, d):
    first, second = rng.normal(size=(n, d)), rng.normal(size=(m, d))

    def self_attention(X, A=None):
        return attention(X, X, X, mask=A)

    givens = {"X^{(1)}": first, "X^{(2)}": second, "X": np.vstack([first, second]), "g": vector([1] * n + [2] * m)}
    return givens | {"Z": function(self_attention)}


# 8 to 10


@worked("attention-of-one-head", "T d H d_k d_v", [(r"W_V^{(h)}", "W_V^{(1)}"), (r"\bigr)^\top", r"\bigr)"), (r"\sqrt{d_k}", "d_k")])
def _(rng, T, d, H, d_k, d_v):
    X, W_Q, W_K, W_V = rng.normal(size=(T, d)), rng.normal(size=(H, d, d_k)), rng.normal(size=(H, d, d_k)), rng.normal(size=(H, d, d_v))
    Z = [attention(X @ W_Q[h], X @ W_K[h], X @ W_V[h]) for h in range(H)]
    return {"X": X, "W_Q^{(h)}": matrices(W_Q), "W_K^{(h)}": matrices(W_K), "W_V^{(h)}": matrices(W_V), "Z": matrices(Z), "d_k": d_k}


@worked(
    "output-projection-sums-heads",
    "T d H d_v",
    [("W_O^{(h)}", "W_O^{(1)}"), ("h=1", "h=2"), (r"Z_1 \cdots Z_H", r"Z_2 \cdots Z_H")],
    relations=(),
)
def _(rng, T, d, H, d_v):
    Z, W_O = rng.normal(size=(H, T, d_v)), rng.normal(size=(H * d_v, d))
    return {"Z": matrices(Z), "W_O": W_O, "W_O^{(h)}": matrices(W_O.reshape(H, d_v, d)), "H": H}


@worked("heads-are-column-blocks", "T d H d_k", [("W_Q^{(1)}", "W_Q^{(2)}"), (r"X\, W_Q^{(h)}", r"X\, W_Q")])
def _(rng, T, d, H, d_k):
    W_Q = rng.normal(size=(d, H * d_k))
    blocks = [W_Q[:, h * d_k : (h + 1) * d_k] for h in range(H)]
    givens = {"X": rng.normal(size=(T, d)), "W_Q": W_Q, "W_Q^{(h)}": matrices(blocks), "H": H}
    return givens | {r"\mathrm{split}": function(lambda Q: split_heads(Q, H))}


@worked("value-output-rank-bound", "d d_v H", [(r"\le d_v", "< d_v"), (r"\min(", r"\max(")][:1], relations=("d > d_v",))
def _(rng, d, d_v, H):
    W_V, W_O = rng.normal(size=(H, d, d_v)), rng.normal(size=(H, d_v, d))
    whole = {"W_V": np.hstack(list(W_V)), "W_O": np.vstack(list(W_O))}
    return {"W_V^{(h)}": matrices(W_V), "W_O^{(h)}": matrices(W_O), "d": d, "d_v": d_v, "H": H, **whole}


@worked("mean-pooled-key-heads", "g d_k d_v", [(r"\frac{1}{g} ", ""), (r"- W \bigr", r"+ W \bigr")], relations=())
def _(rng, g, d_k, d_v):
    return {"W_K^{(h)}": matrices(rng.normal(size=(g, 3, 2))), "W": np.zeros((3, 2)), "g": g}


@worked(
    "grouped-query-attention",
    "H g H_kv T d",
    [(r"\frac{h}{g}", r"\frac{g}{h + 1}"), ("V_r", "V_h"), (r"H}{H_{kv}}", r"H_{kv}}{H}")],
    relations=("H = g H_kv",),
)
def _(rng, H, g, H_kv, T, d):
    Q, K, V = rng.normal(size=(H, T, d)), rng.normal(size=(H_kv, T, d)), rng.normal(size=(H_kv, T, d))
    Z = attention(Q, K, V, enable_gqa=True)
    lists = {"Z": matrices(Z, start=0), "Q": matrices(Q, start=0), "K": matrices(K, start=0), "V": matrices(V, start=0)}
    return {r"\mathrm{attention}": function(attention), **lists, "H": H, "H_{kv}": H_kv}


@worked("decoding-equals-full-pass", "T d_k d_v", [("K_{1:t}", "K"), (r"V_{1:t}", "V_{1:1}"), ("(Q, K, V)_t", "(Q, K, V)_1")])
def _(rng, T, d_k, d_v):
    Q, K, V = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))

    def causal(Q, K, V):
        return attention(Q[None], K, V)[0] if Q.ndim == 1 else attention(Q, K, V, is_causal=True)

    return {
        r"\mathrm{attention}": function(causal),
        "q": rows(Q),
        "K": K,
        "V": V,
        "Q": Q,
        "z": rows([causal(Q[t], K[: t + 1], V[: t + 1]) for t in range(T)]),
    }


@worked("cross-attention", "T_q T_k d_x d_y d_k d_v", [(r"T_q \times d_v", r"d_v \times T_q"), (r"(Y W_K)^\top", "(Y W_K)")])
def _(rng, T_q, T_k, d_x, d_y, d_k, d_v):
    shapes = {"X": (T_q, d_x), "Y": (T_k, d_y), "W_Q": (d_x, d_k), "W_K": (d_y, d_k), "W_V": (d_y, d_v)}
    givens = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    X, Y, W_Q, W_K, W_V = givens.values()
    return givens | {"Z": attention(X @ W_Q, Y @ W_K, Y @ W_V), "d_k": d_k, "T_q": T_q, "d_v": d_v}


@worked("hard-alignment-limit", "T_q T_k d", [(r"\arg\max", r"\arg\min"), ("v_{r_i}", "v_1")])
def _(rng, T_q, T_k, d):
    e = rng.normal(size=(T_q, T_k))
    return {
        "e": e,
        "v": rows(rng.normal(size=(T_k, d))),
        "r": vector([1 + max(range(T_k), key=lambda j: e[i, j]) for i in range(T_q)]),
        "T": 1.0,
    }


@worked("loss-over-real-tokens", "T V", [(r"p_t - \mathbf", r"p_t + \mathbf"), (r"{\sum_r m_r}", r"{1}"), (r"m_t\, (-\ln", r"(-\ln")])
def _(rng, T, V):
    logits, words, real = rng.normal(size=(T, V)), rng.integers(1, V + 1, size=T), np.arange(T) < T - 1

    def loss(u):
        p = softmax(u)
        return sum(-np.log(p[t, words[t] - 1]) for t in range(T) if real[t]) / real.sum()

    p = of(lambda u: rows(softmax(u)), "u")
    return {"u": rows(logits), "p": p, "w": vector(words), "m": vector(real * 1.0), r"\mathcal{L}": of(loss, "u")}


@worked("effective-query-key-parameters", "d d_k", [("- d_k^2", ""), ("2\\,", "")], relations=("d > d_k",))
def _(rng, d, d_k):
    return {"W_Q": rng.normal(size=(5, 2)), "W_K": rng.normal(size=(5, 2)), "d": 5, "d_k": 2} if d else {}


@worked("key-bias-cancels", "T d d_k", [(r"+ b_Q W_K^\top x_l^\top", ""), ("+ b_Q)", ")")])
def _(rng, T, d, d_k):
    W_Q, W_K = rng.normal(size=(2, d, d_k))
    biases = {"b_Q": row(rng.normal(size=d_k)), "b_K": row(rng.normal(size=d_k))}
    return {"x": rows(rng.normal(size=(T, d))), "W_Q": W_Q, "W_K": W_K, "W": W_Q @ W_K.T, **biases}


@worked("biases-in-one-matrix", "T d d_k", [(r"& W_Q b_K^\top", r"& -W_Q b_K^\top"), (r"[\,x_i,\, 1\,]", r"[\,1,\, x_i\,]")])
def _(rng, T, d, d_k):
    return _bias_givens(rng, T, d, d_k)


def _bias_givens(rng, T, d, d_k):
    W_Q, W_K = rng.normal(size=(2, d, d_k))
    biases = {"b_Q": row(rng.normal(size=d_k)), "b_K": row(rng.normal(size=d_k))}
    return {"x": rows(rng.normal(size=(T, d))), "W_Q": W_Q, "W_K": W_K, "W": W_Q @ W_K.T, **biases}


@worked("joint-key-value-rank", "T d d_c H d_k", [(r"\le d_c", "< d_c")], relations=("T > d_c", "d_k > d_c"))
def _(rng, T, d, d_c, H, d_k):
    C = rng.normal(size=(T, d_c))
    return {
        "K": matrices([C @ rng.normal(size=(d_c, d_k)) for _ in range(H)]),
        "V": matrices([C @ rng.normal(size=(d_c, d_k)) for _ in range(H)]),
        "H": H,
        "d_c": d_c,
    }


@worked("absorption-gain-at-decoding", "H d_c d_k d_v", [("{2\\, d_c}", "{d_c}"), ("d_c + 1", "d_c")])
def _(rng, H, d_c, d_k, d_v):
    def naive(T):
        return 2 * T * H * (d_c + 1) * (d_k + d_v)

    def absorbed(T):
        return 2 * H * d_c * (d_k + d_v) + 4 * T * H * d_c

    counted = {r"F_{\mathrm{naive}}": of(naive, "T"), r"F_{\mathrm{absorbed}}": of(absorbed, "T")}
    return {"T": 3, **counted, "d_c": d_c, "d_k": d_k, "d_v": d_v}


# 11 and 12


@worked(
    "softmax-as-kernel-smoother",
    "T_q T_k d_k d_v",
    [("v_j", "k_j"), (r"\sqrt{d_k}", "d_k"), (r"\kappa(q, k) = e^{q", r"\kappa(q, k) = e^{-q")],
)
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    return {"q": rows(Q), "k": rows(K), "v": rows(V), "z": rows(attention(Q, K, V)), "d_k": d_k}


@worked("power-kernel-features", "d n", [("{n!}", "{n}"), (r"k^\alpha", r"q^\alpha"), (r"|\alpha| = n", r"|\alpha| \le n")])
def _(rng, d, n):
    return {"q": row(rng.normal(size=3)), "k": row(rng.normal(size=3)), "n": 4, r"\alpha": powers(3, 5)}


@worked("exponential-kernel-features", "n", [(r"\le N", "= N"), (r"k^\alpha", r"q^\alpha")])
def _(rng, n):
    return {"q": row(0.5 * rng.normal(size=2)), "k": row(0.5 * rng.normal(size=2)), "N": 8, r"\alpha": powers(2, "N")}


@worked("positive-features-are-unbiased", "n", [(r"|x|^2 / 2", r"|x|^2"), (r"\phi_\omega(k)", r"\phi_\omega(-k)")])
def _(rng, n):
    points, chances = independent(*normal_nodes(40), 2)
    return {r"\omega": outcomes(chances, row(points)), "q": row(0.5 * rng.normal(size=2)), "k": row(0.5 * rng.normal(size=2))}


@worked("recurrent-linear-attention", "T d_k d_v", [(r"v_t^\top,", "v_t,"), (r"j \le t", "j < t"), ("S_{t-1} + ", "S_{t-1} - ")])
def _(rng, T, d_k, d_v):
    Q, K, V = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))

    def phi(x):
        return np.where(x > 0, x + 1, np.exp(x))

    S = [np.zeros((d_k, d_v))]
    for k, v in zip(K, V, strict=True):
        S.append(S[-1] + np.outer(phi(k), v))
    o = [sum((phi(Q[t]) @ phi(K[j])) * V[j] for j in range(t + 1)) for t in range(T)]
    return {
        "S": matrices(S, start=0, states=True),
        "k": columns(K),
        "v": columns(V),
        "q": columns(Q),
        "o": columns(o),
        r"\phi": function(phi),
    }


@worked("linear-attention-with-decay", "T d_k d_v", [("l=j+1", "l=j"), ("a_{l,r}", "a_{j,r}"), (r"\mathrm{diag}(a_t)\, ", "")])
def _(rng, T, d_k, d_v):
    Q, K, V, a = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v)), rng.uniform(0.5, 1, size=(T, d_k))
    S = [np.zeros((d_k, d_v))]
    for t in range(T):
        S.append(np.diag(a[t]) @ S[-1] + np.outer(K[t], V[t]))
    o = [S[t + 1].T @ Q[t] for t in range(T)]
    return {"S": matrices(S, start=0, states=True), "a": columns(a), "k": columns(K), "v": columns(V), "q": columns(Q), "o": columns(o)}


@worked("recall-signal-and-interference", "n d_k d_v", [(r"\ne", "="), ("|k_i|^2", "|k_i|"), (r"S^\top", "S")])
def _(rng, n, d_k, d_v):
    return {"k": columns(rng.normal(size=(n, d_k))), "v": columns(rng.normal(size=(n, d_v)))}


@worked("interference-lower-bound", "n d_k", [("- n", "+ n"), (r"\ge", r"\le")], relations=("n > d_k",))
def _(rng, n, d_k):
    k = rng.normal(size=(n, d_k))
    return {"k": rows(k / np.linalg.norm(k, axis=1, keepdims=True)), "n": n, "d_k": d_k}


@worked("recall-error-gradient", "d_k d_v", [(r"- v)^\top", "- v)"), (r"\tfrac{1}{2}", "")])
def _(rng, d_k, d_v):
    return {"S": rng.normal(size=(d_k, d_v)), "k": column(rng.normal(size=d_k)), "v": column(rng.normal(size=d_v))}


@worked("delta-transition-norm", "d_k", [(r"\max", r"\min"), ("1 - \\beta", "1 + \\beta"), ("_2 =", "_F =")])
def _(rng, d_k):
    return {"k": column(rng.normal(size=d_k)), r"\beta": 1.2}


@worked("chunked-delta-rule", "C d_k d_v", [("I + ", "I - "), (r"^{-1}", ""), ("- K S_0", "+ K S_0")])
def _(rng, C, d_k, d_v):
    K, V, beta, S = rng.normal(size=(C, d_k)), rng.normal(size=(C, d_v)), rng.uniform(size=C), rng.normal(size=(d_k, d_v))
    start = S
    for k, v, b in zip(K, V, beta, strict=True):
        S = S + b * np.outer(k, v - S.T @ k)
    return {"S_C": S, "S_0": start, "K": K, "V": V, "B": np.diag(beta)}


@worked("corrections-reach-least-squares", "n m", [(r"K^\top V", r"V^\top K"), (r"^{-1} ", " ")], relations=("m > n",))
def _(rng, n, m):
    K, V = rng.normal(size=(11, 2)), rng.normal(size=(11, 3))
    beta = 1.0 / np.linalg.norm(K.T @ K, 2)

    def after(n):
        step = np.linalg.matrix_power(np.eye(2) - beta * K.T @ K, int(n))
        S = np.zeros((2, 3))
        return (np.eye(2) - step) @ np.linalg.solve(K.T @ K, K.T @ V) + step @ S

    return {"K": K, "V": V, "n": 3, "S_n": of(after, "n")}


@worked("linear-and-softmax-slopes", "T d_k d_v", [(r"S^\top", "S"), ("v_j - z", "v_1 - z"), (r"^\top \quad \text{(s", r"\quad \text{(s")])
def _(rng, T, d_k, d_v):
    K, V, q, S = rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v)), rng.normal(size=d_k), rng.normal(size=(d_k, d_v))

    def weights(q):
        return softmax(K @ q / d_k**0.5)

    lists = {"k": columns(K), "v": columns(V), "p": weights(q), r"\bar{k}": column(weights(q) @ K)}
    return {
        "q": column(q),
        "S": S,
        "o": of(lambda q: column(S.T @ q), "q"),
        "z": of(lambda q: column(weights(q) @ V), "q"),
        "d_k": d_k,
        **lists,
    }


@worked("softmax-recall-bound", "n d", [(r"\ge", r"\le"), (r"\max_{j", r"\min_{j"), ("n - 1", "n - 2")][:1])
def _(rng, n, d):
    k = rng.normal(size=(n, d))
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    return {"q": row(k[1]), "k": rows(k), "p": softmax(2.5 * k @ k[1]), "n": n, r"\beta": 2.5}


@worked("merging-is-commutative-monoid", "d", [(r"B \oplus A", r"B \oplus B"), (r"(-\infty, 0, 0)", "(0, 0, 0)")])
def _(rng, d):
    def merge(a, b):
        m = max(a[0], b[0])
        factors = [0.0 if np.isneginf(state[0]) else np.exp(state[0] - m) for state in (a, b)]
        return np.concatenate([[m], factors[0] * a[1:] + factors[1] * b[1:]])

    return {name: vector(rng.uniform(size=3) - [2, 0, 0]) for name in "ABC"} | {r"\oplus": function(merge, "vector")}


@worked("tiled-attention-update", "T_q B_k d", [(r"\max(m_i", r"\min(m_i"), ("m_i - m'_i} \\ell", "m'_i - m_i} \\ell"), (" v_j", "")])
def _(rng, T_q, B_k, d):
    S, V = rng.normal(size=(T_q, 2 * B_k)), rng.normal(size=(2 * B_k, d))
    states = []
    for end in (B_k, 2 * B_k):
        top = S[:, :end].max(axis=1)
        weights = np.exp(S[:, :end] - top[:, None])
        states.append((top, weights.sum(axis=1), weights @ V[:end]))
    (m, ell, a), (m_, ell_, a_) = states
    new = {"m'": m_, r"\ell'": ell_, "a'": rows(a_)}
    return {"m": m, r"\ell": ell, "a": rows(a), "s": S[:, B_k:], "v": rows(V[B_k:]), **new}


@worked("exponential-in-base-two", "n", [(r"\log_2", r"\ln"), ("s - m", "s + m")])
def _(rng, n):
    return {"s": rng.normal(), "m": rng.normal() + n / 1000}


@worked("tiled-attention-bytes", "T_q T_k d_k d_v B_q", [(r"\lceil", r"\lfloor"), ("+ 1)", ")")][1:])
def _(rng, T_q, T_k, d_k, d_v, B_q):
    moved = T_q * d_k + T_q * d_v + T_q + sum(T_k * (d_k + d_v) for _ in range(0, T_q, B_q))
    return {r"M_{\mathrm{tiled}}": 2 * moved, "T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v, "B_q": B_q, "b": 2}


@worked(
    "key-gradient-in-blocks",
    "B n T_k d_k d_v",
    [(r"dO_b V^\top - ", r"dO_b V^\top + "), (r"\odot", ""), (r"Q_b", "Q_1"), (r"\,\top}", r"\,}")][:3],
)
def _(rng, B, n, T_k, d_k, d_v):
    Q, K, V, dO = rng.normal(size=(B * n, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v)), rng.normal(size=(B * n, d_v))
    Z, P = attention(Q, K, V, return_weights=True)

    def blocks(x):
        return x.reshape(B, n, *x.shape[1:])

    dK = attention_backward(Q, K, V, dO)[1]
    lists = {"P": matrices(blocks(P)), "dO": matrices(blocks(dO)), "Q": matrices(blocks(Q)), r"\delta": columns(blocks((dO * Z).sum(-1)))}
    return {"dK": dK, "V": V, "d_k": d_k, **lists}


@worked("overlapped-tile-time", "n", [(r"\max", r"\min"), ("+ t_2 \\;", "\\;"), ("<", ">")])
def _(rng, n):
    one, two = 0.7, 0.4

    def total(n):
        ready, free = 0.0, 0.0
        for _ in range(int(n)):
            ready += one
            free = max(ready, free) + two
        return free

    return {"t": function(total), "t_1": one, "t_2": two, "n": n}


# More constructs, one equation each


@worked("soft-lookup", "m d", [(r"\|v_i - o\|^2", r"\|v_i + o\|^2"), (r"\arg\min", r"\arg\max")][:1])
def _(rng, m, d):
    K, V, q = rng.normal(size=(m, d)), rng.normal(size=(m, 2)), rng.normal(size=d)

    def similarity(q, k):
        return np.exp(q @ k)

    def share(q, k):
        return similarity(q, k) / sum(similarity(q, one) for one in K)

    def answer(q, D):
        return attention(q[None], *D, scale=1.0)[0]

    functions = {r"\mathrm{Attention}": function(answer), r"\alpha": function(share), "s": function(similarity)}
    return {"q": row(q), "D": opaque((K, V)), "k": rows(K), "v": rows(V), "m": m, "o": row(np.zeros(2)), **functions}


@worked("bounded-slope-in-query", "T_k d_k d_v", [("4 ", "10000 "), (r"\|_2", r"\|_F")][:1])
def _(rng, T_k, d_k, d_v):
    q, K, V = rng.normal(size=d_k), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))

    def widest(table):
        return max(np.linalg.norm(a - b) for a in table for b in table)

    z = of(lambda q: row(attention(q[None], K, V)[0]), "q")
    return {"z": z, "q": row(q), "K": K, "V": V, r"\mathrm{diam}": function(widest), "d_k": d_k}


@worked("gaussian-finds-own-key", "n d", [(r"(n - 1)\,a}{", r"a}{"), (r"\le (1 - p_i)", r"\le (p_i - 1)"), ("v_i", "v_1")][1:2])
def _(rng, n, d):
    K, V = rng.normal(size=(n, d)), rng.normal(size=(n, 2))
    closest = min(np.linalg.norm(K[0] - k) for k in K[1:])
    p = softmax(-((K - K[0]) ** 2).sum(-1) / (2 * 0.7**2))

    def widest(table):
        return max(np.linalg.norm(a - b) for a in table for b in table)

    known = {"i": 1, "r": closest, "h": 0.7, "n": n, r"\mathrm{diam}": function(widest)}
    return {"z": row(p @ V), "v": rows(V), "V": V, "p": p, **known}


@worked("doubled-context-same-output", "m d", [(r"D \uplus D", r"D \uplus E")][:0])
def _(rng, m, d):
    K, V = rng.normal(size=(m, d)), rng.normal(size=(m, 2))

    def both(one, other):
        return opaque([np.vstack(pair) for pair in zip(one, other, strict=True)])

    answer = function(lambda q, D: attention(q[None], *D)[0])
    return {r"\mathrm{Attention}": answer, "q": row(rng.normal(size=d)), "D": opaque([K, V]), r"\uplus": function(both)}


@worked("angle-proportional-to-position", "n", [(r"= \omega\, t", r"= \omega"), (r"\theta(t)", r"\theta(t) + 1")][:1])
def _(rng, n):
    return {r"\theta": function(lambda t: 0.7 * t), r"\omega": 0.7, "t": index(0, n)}


@worked("normalisers-are-stationary", "T", [("= Z_j", "= Z_i"), ("p_{ij}", "p_{ji}")])
def _(rng, T):
    X = rng.normal(size=(T, 2))
    weights = np.exp(X @ X.T)
    return {"p": weights / weights.sum(1, keepdims=True), "Z": weights.sum(1), "T": T}


@worked("additive-attention", "T_q T_k d d_h", [("s_{i-1}", "s_{i}"), (r"\tanh", r"\cos"), ("h_j,", "h_i,")])
def _(rng, T_q, T_k, d, d_h):
    s, h, W_Q, W_K, v = (rng.normal(size=shape) for shape in ((T_q + 1, d), (T_k, d), (d, d_h), (d, d_h), (d_h,)))
    scores = np.array([[v @ np.tanh(s[i] @ W_Q + h[j] @ W_K) for j in range(T_k)] for i in range(T_q)])
    names = {"s": columns(s, start=0, states=True), "h": columns(h), "W_Q": W_Q, "W_K": W_K, "v": column(v), "T_k": T_k}
    return names | {"c": columns(softmax(scores) @ h), "i": index(1, T_q)}


@worked("masked-attention-in-columns", "T_q T_k d_k d_v", [(r"M^\top", "M"), (r"{columns}", "{rows}"), (r"^{\!\top}", "")])
def _(rng, T_q, T_k, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(T_k, d_k)), rng.normal(size=(T_k, d_v))
    return {"Q": Q, "K": K, "V": V, "M": np.where(rng.uniform(size=(T_q, T_k)) < 0.6, 0, -np.inf), "d_k": d_k}


@worked("softmax-over-queries-leaks", "T", [(r"-\tilde{p}_{ij}", r"\tilde{p}_{ij}"), (r"r \ge j", r"r \le j")])
def _(rng, T):
    def weights(s):
        return np.array([[np.exp(s[i, j]) / sum(np.exp(s[r, j]) for r in range(j, T)) for j in range(T)] for i in range(T)])

    return {"s": rng.normal(size=(T, T)), r"\tilde{p}": of(weights, "s")}


@worked("key-padding-changes-nothing", "T_q n m d_k d_v", [("[V;\\, V']", "[V';\\, V]"), (r"j \ge n", r"j > n")])
def _(rng, T_q, n, m, d_k, d_v):
    Q, K, V = rng.normal(size=(T_q, d_k)), rng.normal(size=(n, d_k)), rng.normal(size=(n, d_v))
    M = np.where(np.arange(n + m) < n, 0, -np.inf) + np.zeros((T_q, 1))
    junk = {"K'": rng.normal(size=(m, d_k)), "V'": rng.normal(size=(m, d_v))}
    masked = function(lambda Q, K, V, M: attention(Q, K, V, mask=M))
    return {r"\mathrm{attention}": masked, "Q": Q, "K": K, "V": V, "M": matrix(M, start=0), "n": n, "d_k": d_k, **junk}


@worked("window-pair-count", "T w", [("w + 1)}", "w - 1)}"), ("T - 1}", "T - 2}")], relations=("T > w",))
def _(rng, T, w):
    mask = np.array([[i - w <= j <= i for j in range(T)] for i in range(T)])
    return {"A": subset(mask, start=(0, 0)), "T": T, "w": w}


@worked("parameters-by-head-width", "d H d_k", [("4\\,d^2", "4\\,d"), ("4\\,H", "4\\,")], relations=("d = H d_k",))
def _(rng, d, H, d_k):
    width = d if rng.uniform() < 0.5 else d_k
    count = sum(table.size for _ in range(H) for table in (np.ones((d, width)),) * 4)
    return {"N": count, "d": d, "H": H, "d_k": width, "d_v": width}


@worked("peaked-scores-become-shift", "T", [(r"t + \Delta\,]", r"t - \Delta\,]"), (r"-\alpha", r"\alpha")])
def _(rng, T):
    return {r"\alpha": 1.0, r"\Delta": 1, "t": index(1, T - 1), "l": index(1, T), "j": index(1, T)}


@worked("context-derivative-by-annotation", "T d d_h", [("I + ", "I - "), ("h_j - c", "c - h_j"), (r"\alpha_j \B", r"\B")])
def _(rng, T, d, d_h):
    W, v = rng.normal(size=(d, d_h)), rng.normal(size=d_h)

    def scores(h):
        return np.tanh(h @ W) @ v

    computed = {"e": of(lambda h: vector(scores(h)), "h"), "c": of(lambda h: column(softmax(scores(h)) @ h), "h")}
    return {"h": columns(rng.normal(size=(T, d))), r"\alpha": of(lambda h: softmax(scores(h)), "h"), **computed}


@worked("cross-attention-by-masking", "T_q T_k d d_k d_v", [("T_k + i", "i"), (r"[\,Y;\, X\,]", r"[\,X;\, Y\,]")])
def _(rng, T_q, T_k, d, d_k, d_v):
    X, Y, W_Q, W_K, W_V = (rng.normal(size=shape) for shape in ((T_q, d), (T_k, d), (d, d_k), (d, d_k), (d, d_v)))
    mask = np.arange(T_k + T_q) < T_k

    def whole(A):
        return attention(A @ W_Q, A @ W_K, A @ W_V, mask=np.broadcast_to(mask, (len(A), len(A))))

    return {r"Z_{\mathrm{self}}": function(whole), "X": X, "Y": Y, "x": rows(X), "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "T_k": T_k, "d_k": d_k}


@worked("one-key-ignores-queries", "T_q d d_v", [("y_1", "y_1^\\top"), ("W_V", "2 W_V")])
def _(rng, T_q, d, d_v):
    T_k = int(rng.integers(1, 3))
    Y, W_V = rng.normal(size=(T_k, d)), rng.normal(size=(d, d_v))
    return {"T_k": T_k, "y": rows(Y), "W_V": W_V, "z": rows(attention(rng.normal(size=(T_q, d)), Y, Y @ W_V))}


@worked("shifted-input-hides-target", "T d", [(r"j \ge t", r"j \ge t - 1"), (r"\quad (j \ge t)", "")])
def _(rng, T, d):
    def logits(w):
        shifted = np.vstack([np.ones((1, d)), w[:-1]])
        return rows(attention(shifted, shifted, shifted, is_causal=True))

    return {"w": rows(rng.normal(size=(T, d))), "u": of(logits, "w")}


@worked("symmetric-and-antisymmetric-scores", "T d", [("s_{ij} - s_{ji}", "s_{ji} - s_{ij}"), ("W_-\\,", "W_+\\,")])
def _(rng, T, d):
    X, W = rng.normal(size=(T, d)), rng.normal(size=(d, d))
    parts = {"W_+": np.array([[(W[a, b] + W[b, a]) / 2 for b in range(d)] for a in range(d)])}
    return {
        "s": X @ W @ X.T,
        "x": rows(X),
        "W": W,
        **parts,
        "W_-": np.array([[(W[a, b] - W[b, a]) / 2 for b in range(d)] for a in range(d)]),
    }


@worked("grouped-heads-as-latent", "T H g H_kv d_h", [("r = ", "r = 0 "), (r"H_{kv} + r", "r")], relations=("H = g H_kv",))
def _(rng, T, H, g, H_kv, d_h):
    k, v = rng.normal(size=(T, H_kv, d_h)), rng.normal(size=(T, H_kv, d_h))
    C = np.concatenate([k.reshape(T, -1), v.reshape(T, -1)], axis=1)
    E = [np.eye(C.shape[1])[:, r * d_h : (r + 1) * d_h] for r in range(2 * H_kv)]
    heads = {"K": matrices([k[:, h // g] for h in range(H)], start=0), "V": matrices([v[:, h // g] for h in range(H)], start=0)}
    lists = {"c": rows(C), "k": rows(k, start=(1, 0)), "v": rows(v, start=(1, 0)), "E": matrices(E, start=0), **heads}
    return lists | {"C": C, "H_{kv}": H_kv, r"d_{\mathrm{head}}": d_h, "d_c": C.shape[1], "g": g}


@worked("rope-blocks-absorption", "n d d_c", [("s - t", "t - s"), (r"W_{UK}^\top", "W_{UK}")][:1])
def _(rng, n, d, d_c):
    def turn(t):
        return np.array([[np.cos(0.7 * t), np.sin(0.7 * t)], [-np.sin(0.7 * t), np.cos(0.7 * t)]])

    turns = {"R": matrices([turn(t) for t in range(-n, n + 1)], start=-n, states=True), "s": index(1, n)}
    return {"q": row(rng.normal(size=2)), "c": rows(rng.normal(size=(n, d_c))), "W_{UK}": rng.normal(size=(d_c, 2)), **turns}


@worked("rotation-commutator", "n", [(r"\sin(\theta)", r"\cos(\theta)"), ("J W - W J", "W J - J W")])
def _(rng, n):
    theta = rng.normal() + n / 100
    turn = np.array([[np.cos(theta), np.sin(theta)], [-np.sin(theta), np.cos(theta)]])
    return {r"R_\theta": turn, r"\theta": theta, "W": rng.normal(size=(2, 2))}


@worked("decoupled-rope-score", "d_k d_v", [("+ q^R", "- q^R"), (r"[\,k^C,\, k^R\,]", r"[\,k^R,\, k^C\,]")])
def _(rng, d_k, d_v):
    return {name: row(rng.normal(size=d_k if name.endswith("C") else d_v)) for name in ("q^C", "k^C", "q^R", "k^R")}


@worked("absorbed-latent-attention", "T H d_c d_q d_R d_h d", [("Q_h^R", "Q_1^R"), (r"K^{R\top}", "K^R"), ("+ M", "- M")])
def _(rng, T, H, d_c, d_q, d_R, d_h, d):
    C_Q, C, Q_R, K_R = (rng.normal(size=shape) for shape in ((T, d_q), (T, d_c), (H, T, d_R), (T, d_R)))
    W_UQ, W_UK, W_UV, W_O = (rng.normal(size=shape) for shape in ((H, d_q, d_h), (H, d_c, d_h), (H, d_c, d_h), (H, d_h, d)))
    query = [np.hstack([C_Q @ W_UQ[h], Q_R[h]]) for h in range(H)]
    Z = sum(attention(query[h], np.hstack([C @ W_UK[h], K_R]), C @ W_UV[h], is_causal=True) @ W_O[h] for h in range(H))
    ups = {"W_{UQ}^{(h)}": W_UQ, "W_{UK}^{(h)}": W_UK, "W_{UV}^{(h)}": W_UV, "W_O^{(h)}": W_O, "Q^R": Q_R}
    plain = {"Z": Z, "C^Q": C_Q, "C": C, "K^R": K_R, "M": np.where(causal_mask(T, T), 0, -np.inf)}
    return {name: matrices(array) for name, array in ups.items()} | plain | {"H": H, r"d_{\mathrm{head}}": d_h, "d_R": d_R}


@worked("chunked-linear-attention", "n C d_k d_v", [(r"\odot M", ""), ("Q_c\\, S_c", "Q_c\\, S_{c+1}"), ("+ K_c", "- K_c")])
def _(rng, n, C, d_k, d_v):
    Q, K, V = rng.normal(size=(n, C, d_k)), rng.normal(size=(n, C, d_k)), rng.normal(size=(n, C, d_v))
    state, S, output = np.zeros((d_k, d_v)), [], np.zeros((n, C, d_v))
    for c in range(n):
        S.append(state)
        for t in range(C):
            state = state + np.outer(K[c, t], V[c, t])
            output[c, t] = Q[c, t] @ state
    lists = {"Q": matrices(Q), "K": matrices(K), "V": matrices(V), "O": matrices(output), "S": matrices([*S, state], states=True)}
    return lists | {"M": np.tri(C)}


@worked("orthogonal-keys-left-alone", "d_k d_v n", [("S_{t-1}^\\top k'", "S_{t-1}^\\top k"), ("S_t^\\top k'", "S_t^\\top k")])
def _(rng, d_k, d_v, n):
    k, other = rng.normal(size=(2, d_k))
    other -= (other @ k) / (k @ k) * k
    S = rng.normal(size=(d_k, d_v))
    states = matrices([S, S + 0.4 * np.outer(k, rng.normal(size=d_v))], start=0, states=True)
    return {"S": states, "k": column(k), "k'": column(other / np.linalg.norm(other)), "t": index(1, 1)}


@worked("roofline", "n", [(r"\min", r"\max"), (r"M / \beta", r"M \beta"), (r"\frac{F}{M}", r"\frac{M}{F}")])
def _(rng, n):
    return {"F": 3.0 * n, "M": 5.0, r"\pi": 2.0, r"\beta": 0.7}


@worked("bytes-by-fast-memory", "B d T", [("8\\,", "4\\,"), ("4\\, B d = N", "B d = N")])
def _(rng, B, d, T):
    return {"B": B, "d": d, "N": 4 * B * d if rng.uniform() < 0.6 else B * d, "b": 2, "T": T}


@worked("causal-tile-share", "n B", [("n + 1}", "n - 1}"), (r"\frac{T}{B}", r"\frac{B}{T}")])
def _(rng, n, B):
    tiles = [(i, j) for i in range(n) for j in range(n)]
    return {r"\text{tiles visited}": sum(j <= i for i, j in tiles), r"\text{tiles}": len(tiles), "T": n * B, "B": B}


@worked("merge-of-softmax-sums", "n m", [("m_A - m", "m - m_A"), (r"\max", r"\min"), ("+ ", "- ")])
def _(rng, n, m):
    a, b = rng.normal(size=n), rng.normal(size=m)

    def total(z):
        return np.exp(z - z.max()).sum()

    maxima = {"m_A": a.max(), "m_B": b.max()}
    return {r"\ell_{A \cup B}": total(np.concatenate([a, b])), r"\ell_A": total(a), r"\ell_B": total(b), **maxima}


@worked("correlated-query-key-moments", "n", [("1 + ", "1 - "), (r"\rho^2", r"\rho")])
def _(rng, n):
    points, chances = independent(*normal_nodes(3), 4)
    q = points[:, :2]
    k = 0.6 * q + 0.8 * points[:, 2:]
    return {"q": outcomes(chances, row(q)), "k": outcomes(chances, row(k)), r"\rho": 0.6, "d_k": 2} if n else {}


@worked("layer-norm-moments", "d", [(r"\varepsilon}", r"\varepsilon^2}"), (r"(x)_i^2", "(x)_i")])
def _(rng, d):
    x = rng.normal(size=d)

    def norm(x):
        return (x - x.mean()) / np.sqrt(x.var() + 0.1)

    return {r"\mathrm{LN}": function(norm), "x": x, "d": d, "v": x.var(), r"\varepsilon": 0.1}


@worked("cosine-weight-bound", "n", [("e^{-2}", "e^{2}"), ("n - 1", "n + 1")][:1])
def _(rng, n):
    return {r"\theta": rng.uniform(0, np.pi, size=n), "n": n}


@worked("two-kernel-backward-flops", "T_q T_k d_k d_v", [("3\\, d_v", "2\\, d_v"), (r"\frac{7}{5}", r"\frac{6}{5}")])
def _(rng, T_q, T_k, d_k, d_v):
    def product(rows, inner, columns):
        return sum(2 for _ in range(rows) for _ in range(inner) for _ in range(columns))

    kernels = {"scores": (T_q, d_k, T_k), "dP": (T_q, d_v, T_k)}
    shared = sum(product(*sizes) for sizes in kernels.values())
    gradients = product(T_k, T_q, d_k) + product(T_k, T_q, d_v) + product(T_q, T_k, d_k)
    counted = {r"F_{\mathrm{two\ kernels}}": 2 * shared + gradients, r"F_{\mathrm{backward}}": shared + gradients}
    return counted | {"T_q": T_q, "T_k": T_k, "d_k": d_k, "d_v": d_v}


@worked("effective-share-of-keys", "n", [("e^{-s^2}", "e^{s^2}"), ("^2}{", "}{")])
def _(rng, n):
    nodes, weights = normal_nodes(60)
    return {"z": outcomes(weights, Given(0.7 * nodes, "scalar")), "s": 0.7} if n else {}
