"""The delta rule without gates: what a state can hold, where corrections lead and when they blow up, and a chunk of them at once."""

import math
from typing import Any

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import unit
from attn_course.formulas import column, columns, of
from attn_course.reference import delta_rule_attention

claim = about("K2")


@claim("interference-lower-bound", rests_on="recall-signal-and-interference", sizes="n d_k, n >= d_k")
def _(normal, n, d_k, draw):
    r"""\sum_{i} \sum_{j \ne i} (k_i \cdot k_j)^2 \ge \frac{n^2}{d_k} - n
    where n unit keys
    No more than d_k keys are free of interference. The Gram matrix has trace n and rank at most d_k, so its squares sum to n^2 / d_k.
        any number of keys fits without interference: n \ge d_k: \qquad \sum_{i} \sum_{j \ne i} (k_i \cdot k_j)^2 = 0
        the mean of random keys as the bound: n^2 -> n\, (n - 1) ;; - n ->
    """
    n = min(n, d_k - 1) if draw == 1 else n  # fewer keys than features: below 0
    keys = normal(n, d_k)
    if draw == 2:  # evenly spread: d_k orthogonal waves over the n keys
        angles = 2 * np.pi * np.outer(np.arange(n), np.arange(d_k // 2) + (1 + d_k % 2) / 2) / n
        spread = np.hstack([np.cos(angles), np.sin(angles), np.full((n, d_k % 2), math.sqrt(0.5))])
        keys = spread @ np.linalg.qr(normal(d_k, d_k))[0]
    return {"k": columns(keys / np.linalg.norm(keys, axis=1, keepdims=True)), "n": n, "d_k": d_k}


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
