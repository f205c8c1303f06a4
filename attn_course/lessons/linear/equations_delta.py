"""Attention without softmax: the delta rule, and what softmax does better."""

from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import unit
from attn_course.formulas import column, columns, index, matrices, of, vector
from attn_course.reference import attention, delta_rule_attention, linear_attention

claim = about("K2")


def _pair(rng: np.random.Generator, d_k: int, d_v: int) -> dict[str, Any]:
    """Return a key that is not of length 1, a value and a step size; written again and again they do not blow up."""
    k = rng.uniform(1.1, 1.4) * unit(rng.normal(size=d_k))
    return {"k": column(k), "v": column(rng.normal(size=d_v)), r"\beta": rng.choice([-1, 1]) * rng.uniform(0.2, 0.9)}


def _states(pair: Givens, S: np.ndarray, T: int) -> dict[str, Any]:
    """Return the states S_0 to S_T when a pair is written again and again, and which of them are written."""
    k, v, beta = (np.tile(given, (T, 1)) for given in (pair["k"].raw, pair["v"].raw, pair[r"\beta"]))
    states = [delta_rule_attention(k[:t], k[:t], v[:t], beta[:t], initial_state=S, return_state=True)[1] for t in range(T + 1)]
    return {"S": matrices(states, start=0, states=True), "t": index(1, T)}


# ---- correcting instead of adding
@claim("delta-rule", rests_on="recall-signal-and-interference")
def _(normal, rng, T, d_k, d_v):
    r"""S_t = S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top
    where one step of gradient descent with step size beta
    Least squares online: write what is missing, not the value itself.
        Hebb's rule: S_t = S_{t-1} + \beta\, k\, v^\top
        a step uphill: + -> -
    """
    pair, states = _pair(rng, d_k, d_v), [normal(d_k, d_v)]
    k, v = pair["k"].raw, pair["v"].raw
    steps = np.eye(d_k * d_v).reshape(-1, d_k, d_v)

    def loss(S: np.ndarray) -> Any:
        return sum((S[:, b] @ k - v[b]) ** 2 / 2 for b in range(d_v))

    for _ in range(T):  # of a square the difference of two steps is exact, however long they are
        slope = [(loss(states[-1] + step) - loss(states[-1] - step)) / 2 for step in steps]
        states.append(states[-1] - pair[r"\beta"] * np.reshape(slope, (d_k, d_v)))
    return pair | {"S": matrices(states, start=0, states=True), "t": index(1, T)}


@claim("erase-then-write", rests_on="delta-rule")
def _(normal, rng, d_k, d_v):
    r"""S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = \bigl( I - \beta\, k k^\top \bigr)\, S_{t-1} + \beta\, k v^\top
    Multiply out: first the old entry under k is erased (in part), then the new one is added.
        everything decays, not k alone: \bigl( I - \beta\, k k^\top \bigr)\, -> (1 - \beta)\,
        write, then erase: S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = ( I - \beta\, k k^\top )\, ( S_{t-1} + \beta\, k v^\top )
    """
    return {"S_{t-1}": normal(d_k, d_v)} | _pair(rng, d_k, d_v)


@claim("recall-after-delta-write", rests_on="delta-rule")
def _(normal, rng, T, d_k, d_v):
    r"""S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v
    A mixture of old and new, where Eq. recurrent-linear-attention returns their sum; with a unit key and beta = 1 the old is gone.
        the old and the new value added up: (1 - \beta\, |k|^2)\, S -> S
        as with a unit key: all \beta\, |k|^2 -> \beta
    """
    pair = _pair(rng, d_k, d_v)
    return pair | _states(pair, normal(d_k, d_v), T)


# ---- reading with and without softmax
@claim(
    "linear-and-softmax-slopes",
    serves="L2 K2",
    rests_on="output-derivative-by-query output-derivative-by-score recurrent-linear-attention",
    equivalent={
        "v_{j} - z -> v_{j}": "the centred keys sum to 0, with the weights p",
        "v_{j} - z -> v_{j} + z": "the centred keys sum to 0, with the weights p",
        "z -> o": "the centred keys sum to 0, with the weights p",
        r"k_{j} - \bar{k} -> k_{j} + \bar{k}": "the centred values sum to 0, with the weights p",
    },
    whatever={r"\bar{k}": "the centred values sum to 0, with the weights p, so any vector may be taken from the keys"},
)
def _(normal, T, d_k, d_v):
    r"""\frac{\partial o}{\partial q} = S^\top \quad \text{(linear)}, \qquad
        \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top \quad \text{(softmax)}
    where p = weights of q ;; z = sum_j p_j v_j, k-bar = sum_j p_j k_j
    Linear attention answers each context with one linear map of q; softmax attention answers each query with another.
        softmax attention is linear in q too: \quad \text{(linear)}, \qquad -> = ;; \quad \text{(softmax)} ->
        the product of the means added:
            \frac{\partial o}{\partial q} = S^\top, \qquad \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j\, k_j^\top
            + z\, \bar{k}^\top)
    """
    q, K, V = normal(1, d_k), normal(T, d_k), normal(T, d_v)
    o = of(lambda q: column(linear_attention(q[None], K, V, is_causal=False)[0]), "q")
    z = of(lambda q: column(attention(q[None], K, V)[0]), "q")
    weights = {"p": vector(attention(q, K, V, return_weights=True)[1][0]), r"\bar{k}": column(attention(q, K, K)[0])}
    S = linear_attention(K, K, V, return_state=True)[1]
    return weights | {"q": column(q[0]), "o": o, "z": z, "S": S, "k": columns(K), "v": columns(V), "d_k": d_k}
