"""Attention without softmax: the delta rule, its chunked form, and what softmax does better."""

from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import unit
from attn_course.formulas import column, columns, index, matrices, of, row, rows, vector
from attn_course.reference import attention, delta_rule_attention, dot_scores, linear_attention, softmax

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
@claim("recall-error-gradient", rests_on="recall-signal-and-interference")
def _(normal, d_k, d_v):
    r"""\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = k\, (S^\top k - v)^\top
    where a pair (k, v) that the state S should return
    Reading k should give v: the square of what is missing, differentiated by each entry of the state.
        transposed: k\, (S^\top k - v) -> (S^\top k - v)\, k
        what is read is forgotten: k\, (S^\top k - v) -> -k\, v
        without the half: \tfrac{1}{2}\, ->
    """
    return {"S": normal(d_k, d_v), "k": column(normal(d_k)), "v": column(normal(d_v))}


@claim("delta-rule", rests_on="recall-error-gradient")
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


@claim("recall-after-delta-write", rests_on="erase-then-write")
def _(normal, rng, T, d_k, d_v):
    r"""S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v
    A mixture of old and new, where Eq. recurrent-linear-attention returns their sum; with a unit key and beta = 1 the old is gone.
        the old and the new value added up: (1 - \beta\, |k|^2)\, S -> S
        as with a unit key: all \beta\, |k|^2 -> \beta
    """
    pair = _pair(rng, d_k, d_v)
    return pair | _states(pair, normal(d_k, d_v), T)


@claim("orthogonal-keys-left-alone", rests_on="erase-then-write")
def _(normal, rng, T, d_k, d_v, draw):
    r"""k' \cdot k = 0 \;\Rightarrow\; S_t^\top k' = S_{t-1}^\top k'
    What is stored under orthogonal keys is not touched by the correction.
        so are all other keys: = 0 -> \ne 0
        the key that is written: all \top k' -> \top k
    """
    pair = _pair(rng, d_k, d_v)
    k, other, start = pair["k"].raw, normal(d_k), normal(d_k, d_v)
    if draw != 1:  # orthogonal, or nearly, or to either side
        other += (draw / 2 * (1e-5, 0.5, -0.5)[T % 3] - (other @ k) / (k @ k)) * k
    if draw == 1:  # nothing is missing, nothing is corrected: at all keys the state answers what it did
        pair["v"] = column(start.T @ k)
    return _states(pair, start, T) | {"k": pair["k"], "k'": column(other)}


@claim("delta-transition-norm", rests_on="erase-then-write")
def _(normal, rng, d_k, draw):
    r"""\| I - \beta\, k k^\top \|_2 = \max\bigl( 1,\; |1 - \beta\, \|k\|^2| \bigr)
    where d_k >= 2
    Eigenvalues: 1 across the key, 1 - beta |k|^2 along it. Unit keys and 0 <= beta <= 1 never blow up; long keys do.
        never more than 1: \| I - \beta\, k k^\top \|_2 \le 1
        as for a unit key: \beta\, \|k\|^2 -> \beta
    """
    length, beta = ((0.6, 0.7), (1.7, -1.3), (4, 0.8))[draw]
    return {"k": column(length * unit(normal(d_k))), r"\beta": beta * rng.uniform(0.9, 1.1)}


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


@claim("chunked-delta-rule", rests_on="delta-rule")
def _(rng, C, d_k, d_v):
    r"""S_C = S_0 + K^\top U, \qquad U = \bigl( I + \mathrm{strictly\ lower}(B K K^\top) \bigr)^{-1} B\, (V - K S_0)
    where B = diag(beta_1, ..., beta_C) ;; rows of K, V: the pairs of one chunk
    Row t of U is beta_t (v_t - S_{t-1}^T k_t), where S_{t-1} = S_0 + sum of k_j u_j: a triangular system, solved once for a chunk.
        every pair corrected against S_0: S_C = S_0 + K^\top U, \qquad U = B\, (V - K S_0)
        the later pairs in the system: \mathrm{strictly\ lower}(B K K^\top) -> B K K^\top
    """
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("S_C", "S_0", "K", "V", "B", "U")}


@claim("chunked-delta-outputs", rests_on="chunked-linear-attention chunked-delta-rule")
def _(rng, C, d_k, d_v):
    r"""O = Q\, S_0 + \bigl( Q K^\top \odot M \bigr)\, U
    where M_ij = 1 for j <= i, else 0 ;; U as in {eq}`chunked-delta-rule`
    With U in the place of V this is Eq. chunked-linear-attention: linear attention over corrected values.
        the mask added, as to scores: \odot -> +
        the bracket moved in spite of the mask: O = Q\, S_0 + Q\, \bigl( K^\top M\, U \bigr)
    """
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("O", "Q", "S_0", "K", "M", "U")}


# ---- reading with and without softmax
@claim("corrections-reach-least-squares", serves="K2 L2", rests_on="recall-error-gradient delta-rule", sizes="T d_k d_v, T > d_k")
def _(normal, T, d_k, d_v):
    r"""\lim_{n \to \infty} S_n = (K^\top K)^{-1} K^\top V
    where S_n = S_{n-1} + beta K^T (V - K S_{n-1}): all pairs in each step ;; K of full column rank ;; 0 < beta < 2 / |K^T K|_2
    Corrections end where their sum is 0: least squares (ridge regression without its penalty), linear in q and made from the context.
        the sum of outer products: (K^\top K)^{-1} ->
        after the first round: S_n = (K^\top K)^{-1} K^\top V
    """
    K, V = normal(T, d_k) + 2 * np.eye(T, d_k), normal(T, d_v)
    beta = 1 / np.linalg.norm(K, 2) ** 2
    round_of_all = np.block([[np.eye(d_k) - beta * K.T @ K, beta * K.T @ V], [np.zeros((d_v, d_k)), np.eye(d_v)]])
    start = np.vstack([normal(d_k, d_v), np.eye(d_v)])
    return {"K": K, "V": V, "n": 3, "S_n": of(lambda n: (np.linalg.matrix_power(round_of_all, int(n)) @ start)[:d_k], "n")}


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


@claim("softmax-recall-bound", serves="K2 K1", rests_on="softmax recall-signal-and-interference")
def _(normal, rng, n, d, draw):
    r"""q = k_i: \qquad p_i \ge \frac{1}{1 + (n - 1)\, e^{-\beta (1 - \mu)}}, \qquad \mu = \max_{j \ne i} k_i \cdot k_j
    where n unit keys ;; scores beta q . k, beta >= 0
    Recall is as sharp as beta makes it, for many more keys than d_k: what the sum of Eq. recall-signal-and-interference cannot do.
        the root of n - 1: (n - 1) -> \sqrt{n - 1}
        least overlap: \max -> \min
    """
    keys, own, beta = unit(normal(n, d)), rng.integers(n), rng.uniform(1, 4)
    q = keys[own].copy()
    if draw > 0:  # all other keys on a cone around the query: equal overlaps attain the bound
        overlap, others = rng.uniform(0.2, 0.8), np.arange(n) != own
        across = keys[others] - np.outer(keys[others] @ q, q)
        keys[others] = overlap * q + np.sqrt(1 - overlap**2) * unit(across)
        if draw == 1:  # the query beside its key, nearer to the others
            q += 0.005 * unit(unit(across).sum(axis=0))
    return {"q": row(q), "k": rows(keys), "p": vector(softmax(beta * dot_scores(q[None], keys))[0]), "n": n, r"\beta": beta}
