"""Attention without softmax: the delta rule, its chunked form, and what softmax does better."""

from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, columns, index, matrices, of, row, rows, vector
from attn_course.reference import attention, delta_rule_attention, dot_scores, linear_attention, softmax

equation = about("K2")


def _unit(keys: np.ndarray) -> np.ndarray:
    """Return the keys with length 1."""
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True)


def _pair(rng: np.random.Generator, d_k: int, d_v: int) -> dict[str, Any]:
    """Return a key that is not of length 1, a value and a step size; written again and again they do not blow up."""
    k = rng.uniform(1.1, 1.4) * _unit(rng.normal(size=d_k))
    return {"k": column(k), "v": column(rng.normal(size=d_v)), r"\beta": rng.choice([-1, 1]) * rng.uniform(0.2, 0.9)}


def _states(pair: Givens, S: np.ndarray, T: int) -> dict[str, Any]:
    """Return the states S_0 to S_T when a pair is written again and again, and which of them are written."""
    k, v, beta = (np.tile(given, (T, 1)) for given in (pair["k"].raw, pair["v"].raw, pair[r"\beta"]))
    states = [delta_rule_attention(k[:t], k[:t], v[:t], beta[:t], initial_state=S, return_state=True)[1] for t in range(T + 1)]
    return {"S": matrices(states, start=0, states=True), "t": index(1, T)}


# ---- correcting instead of adding
@equation(
    "recall-error-gradient",
    r"\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = k\, (S^\top k - v)^\top",
    uses=["recall-signal-and-interference"],
    assumes=["a pair (k, v) that the state S should return"],
    wrong={
        "transposed": r"\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = (S^\top k - v)\, k^\top",
        "what is read is forgotten": r"\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = -k\, v^\top",
        "without the half": r"\frac{\partial}{\partial S}\, \bigl| S^\top k - v \bigr|^2 = k\, (S^\top k - v)^\top",
    },
)
def gradient_of_the_recall_error(rng: np.random.Generator, d_k: int, d_v: int) -> Givens:
    """Reading k should give v: the square of what is missing, differentiated by each entry of the state."""
    return {"S": rng.normal(size=(d_k, d_v)), "k": column(rng.normal(size=d_k)), "v": column(rng.normal(size=d_v))}


@equation(
    "delta-rule",
    r"S_t = S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
    uses=["recall-error-gradient"],
    assumes=["one step of gradient descent with step size beta"],
    wrong={"Hebb's rule": r"S_t = S_{t-1} + \beta\, k\, v^\top", "a step uphill": r"S_t = S_{t-1} - \beta\, k\, (v - S_{t-1}^\top k)^\top"},
)
def delta_rule(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Least squares online: write what is missing, not the value itself."""
    pair, states = _pair(rng, d_k, d_v), [rng.normal(size=(d_k, d_v))]
    k, v = pair["k"].raw, pair["v"].raw
    steps = np.eye(d_k * d_v).reshape(-1, d_k, d_v)

    def loss(S: np.ndarray) -> Any:
        return sum((S[:, b] @ k - v[b]) ** 2 / 2 for b in range(d_v))

    for _ in range(T):  # of a square the difference of two steps is exact, however long they are
        slope = [(loss(states[-1] + step) - loss(states[-1] - step)) / 2 for step in steps]
        states.append(states[-1] - pair[r"\beta"] * np.reshape(slope, (d_k, d_v)))
    return pair | {"S": matrices(states, start=0, states=True), "t": index(1, T)}


@equation(
    "erase-then-write",
    r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = \bigl( I - \beta\, k k^\top \bigr)\, S_{t-1} + \beta\, k v^\top",
    uses=["delta-rule"],
    wrong={
        "everything decays, not k alone": r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = (1 - \beta)\, S_{t-1} + \beta\, k v^\top",
        "write, then erase": r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = ( I - \beta\, k k^\top )\, ( S_{t-1} + \beta\, k v^\top )",
    },
)
def erase_then_write(rng: np.random.Generator, d_k: int, d_v: int) -> Givens:
    """Multiply out: first the old entry under k is erased (in part), then the new one is added."""
    return {"S_{t-1}": rng.normal(size=(d_k, d_v))} | _pair(rng, d_k, d_v)


@equation(
    "recall-after-delta-write",
    r"S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v",
    uses=["erase-then-write"],
    wrong={"the old and the new value added up": r"(1 - \beta\, |k|^2)\, S -> S", "as with a unit key": r"\beta\, |k|^2 -> \beta"},
)
def reading_back(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """A mixture of old and new, where Eq. recurrent-linear-attention returns their sum; with a unit key and beta = 1 the old is gone."""
    pair = _pair(rng, d_k, d_v)
    return pair | _states(pair, rng.normal(size=(d_k, d_v)), T)


@equation(
    "orthogonal-keys-left-alone",
    r"k' \cdot k = 0 \;\Rightarrow\; S_t^\top k' = S_{t-1}^\top k'",
    uses=["erase-then-write"],
    wrong={"so are all other keys": r"= 0 -> \ne 0", "the key that is written": r"\top k' -> \top k"},
)
def other_keys_are_left_alone(rng: np.random.Generator, T: int, d_k: int, d_v: int, draw: int) -> Givens:
    """What is stored under orthogonal keys is not touched by the correction."""
    pair = _pair(rng, d_k, d_v)
    k, other, start = pair["k"].raw, rng.normal(size=d_k), rng.normal(size=(d_k, d_v))
    if draw != 1:  # orthogonal, or nearly, or to either side
        other += (draw / 2 * (1e-5, 0.5, -0.5)[T % 3] - (other @ k) / (k @ k)) * k
    if draw == 1:  # nothing is missing, nothing is corrected: at all keys the state answers what it did
        pair["v"] = column(start.T @ k)
    return _states(pair, start, T) | {"k": pair["k"], "k'": column(other)}


@equation(
    "delta-transition-norm",
    r"\| I - \beta\, k k^\top \|_2 = \max\bigl( 1,\; |1 - \beta\, \|k\|^2| \bigr)",
    uses=["erase-then-write"],
    assumes=["d_k >= 2"],
    wrong={"never more than 1": r"\| I - \beta\, k k^\top \|_2 \le 1", "as for a unit key": r"\beta\, \|k\|^2 -> \beta"},
)
def stability(rng: np.random.Generator, d_k: int, draw: int) -> Givens:
    """Eigenvalues: 1 across the key, 1 - beta |k|^2 along it. Unit keys and 0 <= beta <= 1 never blow up; long keys do."""
    length, beta = ((0.6, 0.7), (1.7, -1.3), (4, 0.8))[draw]
    return {"k": column(length * _unit(rng.normal(size=d_k))), r"\beta": beta * rng.uniform(0.9, 1.1)}


def _chunk(rng: np.random.Generator, C: int, d_k: int, d_v: int) -> dict[str, Any]:
    """Return one chunk: its keys, step sizes, what is written and read, and the states, all position by position."""
    Q, K, V, beta = rng.normal(size=(C, d_k)), 0.6 * rng.normal(size=(C, d_k)), rng.normal(size=(C, d_v)), rng.uniform(0.2, 1, size=(C, 1))
    outputs, U, S = [], [], [rng.normal(size=(d_k, d_v))]
    for t in range(C):
        now = slice(t, t + 1)
        o, after = delta_rule_attention(Q[now], K[now], V[now], beta[now], initial_state=S[-1], return_state=True)
        U.append([beta[t, 0] * (V[t, b] - S[-1][:, b] @ K[t]) for b in range(d_v)])
        outputs.append(o[0])
        S.append(after)
    return {"Q": Q, "K": K, "V": V, "B": np.diag(beta[:, 0]), "O": outputs, "U": U, "S_0": S[0], "S_C": S[-1], "M": np.tri(C)}


@equation(
    "chunked-delta-rule",
    r"S_C = S_0 + K^\top U, \qquad U = \bigl( I + \mathrm{strictly\ lower}(B K K^\top) \bigr)^{-1} B\, (V - K S_0)",
    uses=["delta-rule"],
    assumes=["B = diag(beta_1, ..., beta_C)", "rows of K, V: the pairs of one chunk"],
    wrong={
        "every pair corrected against S_0": r"S_C = S_0 + K^\top U, \qquad U = B\, (V - K S_0)",
        "the later pairs in the system": r"S_C = S_0 + K^\top U, \qquad U = \bigl( I + B K K^\top \bigr)^{-1} B\, (V - K S_0)",
    },
)
def chunked_delta_rule(rng: np.random.Generator, C: int, d_k: int, d_v: int) -> Givens:
    """Row t of U is beta_t (v_t - S_{t-1}^T k_t), where S_{t-1} = S_0 + sum of k_j u_j: a triangular system, solved once for a chunk."""
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("S_C", "S_0", "K", "V", "B", "U")}


@equation(
    "chunked-delta-outputs",
    r"O = Q\, S_0 + \bigl( Q K^\top \odot M \bigr)\, U",
    uses=["chunked-linear-attention", "chunked-delta-rule"],
    assumes=["M_ij = 1 for j <= i, else 0", "U as in {eq}`chunked-delta-rule`"],
    wrong={
        "the mask added, as to scores": r"O = Q\, S_0 + \bigl( Q K^\top + M \bigr)\, U",
        "the bracket moved in spite of the mask": r"O = Q\, S_0 + Q\, \bigl( K^\top M\, U \bigr)",
    },
)
def outputs_of_a_chunk(rng: np.random.Generator, C: int, d_k: int, d_v: int) -> Givens:
    """With U in the place of V this is Eq. chunked-linear-attention: linear attention over corrected values."""
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("O", "Q", "S_0", "K", "M", "U")}


# ---- reading with and without softmax
@equation(
    "corrections-reach-least-squares",
    r"\lim_{n \to \infty} S_n = (K^\top K)^{-1} K^\top V",
    sizes="T d_k d_v, T > d_k",
    topics=["K2", "L2"],
    uses=["recall-error-gradient", "delta-rule"],
    assumes=["S_n = S_{n-1} + beta K^T (V - K S_{n-1}): all pairs in each step", "K of full column rank", "0 < beta < 2 / |K^T K|_2"],
    wrong={"the sum of outer products": r"\lim_{n \to \infty} S_n = K^\top V", "after the first round": r"S_n = (K^\top K)^{-1} K^\top V"},
)
def towards_least_squares(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Corrections end where their sum is 0: least squares (ridge regression without its penalty), linear in q and made from the context."""
    K, V = rng.normal(size=(T, d_k)) + 2 * np.eye(T, d_k), rng.normal(size=(T, d_v))
    beta = 1 / np.linalg.norm(K, 2) ** 2
    round_of_all = np.block([[np.eye(d_k) - beta * K.T @ K, beta * K.T @ V], [np.zeros((d_v, d_k)), np.eye(d_v)]])
    start = np.vstack([rng.normal(size=(d_k, d_v)), np.eye(d_v)])
    return {"K": K, "V": V, "n": 3, "S_n": of(lambda n: (np.linalg.matrix_power(round_of_all, int(n)) @ start)[:d_k], "n")}


@equation(
    "linear-and-softmax-slopes",
    r"\frac{\partial o}{\partial q} = S^\top \quad \text{(linear)}, \qquad"
    r" \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top \quad \text{(softmax)}",
    topics=["L2", "K2"],
    uses=["output-derivative-by-query", "linear-map-from-context", "output-derivative-by-score", "recurrent-linear-attention"],
    assumes=["p = weights of q", "z = sum_j p_j v_j, k-bar = sum_j p_j k_j"],
    wrong={
        "softmax attention is linear in q too": r"\frac{\partial o}{\partial q} = S^\top = \frac{\partial z}{\partial q}"
        r" = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top",
        "the product of the means added": r"\frac{\partial o}{\partial q} = S^\top, \qquad \frac{\partial z}{\partial q}"
        r" = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j\, k_j^\top + z\, \bar{k}^\top)",
    },
    equivalent={
        "v_{j} - z -> v_{j}": "the centred keys sum to 0, with the weights p",
        "v_{j} - z -> v_{j} + z": "the centred keys sum to 0, with the weights p",
        "z -> o": "the centred keys sum to 0, with the weights p",
        r"k_{j} - \bar{k} -> k_{j} + \bar{k}": "the centred values sum to 0, with the weights p",
    },
    whatever={r"\bar{k}": "the centred values sum to 0, with the weights p, so any vector may be taken from the keys"},
)
def what_a_query_can_change(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> Givens:
    """Linear attention answers each context with one linear map of q; softmax attention answers each query with another."""
    q, K, V = rng.normal(size=(1, d_k)), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))
    o = of(lambda q: column(linear_attention(q[None], K, V, is_causal=False)[0]), "q")
    z = of(lambda q: column(attention(q[None], K, V)[0]), "q")
    weights = {"p": vector(attention(q, K, V, return_weights=True)[1][0]), r"\bar{k}": column(attention(q, K, K)[0])}
    S = linear_attention(K, K, V, return_state=True)[1]
    return weights | {"q": column(q[0]), "o": o, "z": z, "S": S, "k": columns(K), "v": columns(V), "d_k": d_k}


@equation(
    "softmax-recall-bound",
    r"q = k_i: \qquad p_i \ge \frac{1}{1 + (n - 1)\, e^{-\beta (1 - \mu)}}, \qquad \mu = \max_{j \ne i} k_i \cdot k_j",
    topics=["K2", "K1"],
    uses=["ratio-of-weights", "recall-signal-and-interference"],
    assumes=["n unit keys", "scores beta q . k, beta >= 0"],
    wrong={"the root of n - 1": r"(n - 1) -> \sqrt{n - 1}", "least overlap": r"\max -> \min"},
)
def softmax_recall(rng: np.random.Generator, n: int, d: int, draw: int) -> Givens:
    """Recall is as sharp as beta makes it, for many more keys than d_k: what the sum of Eq. recall-signal-and-interference cannot do."""
    keys, own, beta = _unit(rng.normal(size=(n, d))), rng.integers(n), rng.uniform(1, 4)
    q = keys[own].copy()
    if draw > 0:  # all other keys on a cone around the query: equal overlaps attain the bound
        overlap, others = rng.uniform(0.2, 0.8), np.arange(n) != own
        across = keys[others] - np.outer(keys[others] @ q, q)
        keys[others] = overlap * q + np.sqrt(1 - overlap**2) * _unit(across)
        if draw == 1:  # the query beside its key, nearer to the others
            q += 0.005 * _unit(_unit(across).sum(axis=0))
    return {"q": row(q), "k": rows(keys), "p": vector(softmax(beta * dot_scores(q[None], keys))[0]), "n": n, r"\beta": beta}
