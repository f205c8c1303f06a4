"""Fast weights: what a state can hold, the delta rule in chunks, and states that decay before they are corrected."""

import math
from typing import Any

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.equations.drawing import unit
from attn_course.formulas import column, columns, index, matrices, of, vector
from attn_course.reference import delta_rule_attention

claim = about("O7")


# ---- without gates
@claim("interference-lower-bound", serves="K2", rests_on="recall-signal-and-interference", sizes="n d_k, n >= d_k")
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


@claim("recall-error-gradient", serves="K2", rests_on="recall-signal-and-interference")
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


@claim("delta-transition-norm", serves="K2", rests_on="erase-then-write")
def _(normal, rng, d_k, draw):
    r"""\| I - \beta\, k k^\top \|_2 = \max\bigl( 1,\; |1 - \beta\, \|k\|^2| \bigr)
    where d_k >= 2
    Eigenvalues: 1 across the key, 1 - beta |k|^2 along it. Unit keys and 0 <= beta <= 1 never blow up; long keys do.
        never more than 1: \| I - \beta\, k k^\top \|_2 \le 1
        as for a unit key: \beta\, \|k\|^2 -> \beta
    """
    length, beta = ((0.6, 0.7), (1.7, -1.3), (4, 0.8))[draw]
    return {"k": column(length * unit(normal(d_k))), r"\beta": beta * rng.uniform(0.9, 1.1)}


def _plain_chunk(rng: np.random.Generator, C: int, d_k: int, d_v: int) -> dict[str, Any]:
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


@claim("chunked-delta-rule", serves="K2", rests_on="delta-rule")
def _(rng, C, d_k, d_v):
    r"""S_C = S_0 + K^\top U, \qquad U = \bigl( I + \mathrm{strictly\ lower}(B K K^\top) \bigr)^{-1} B\, (V - K S_0)
    where B = diag(beta_1, ..., beta_C) ;; rows of K, V: the pairs of one chunk
    Row t of U is beta_t (v_t - S_{t-1}^T k_t), where S_{t-1} = S_0 + sum of k_j u_j: a triangular system, solved once for a chunk.
        every pair corrected against S_0: S_C = S_0 + K^\top U, \qquad U = B\, (V - K S_0)
        the later pairs in the system: \mathrm{strictly\ lower}(B K K^\top) -> B K K^\top
    """
    chunk = _plain_chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("S_C", "S_0", "K", "V", "B", "U")}


@claim("chunked-delta-outputs", serves="K2", rests_on="chunked-linear-attention chunked-delta-rule")
def _(rng, C, d_k, d_v):
    r"""O = Q\, S_0 + \bigl( Q K^\top \odot M \bigr)\, U
    where M_ij = 1 for j <= i, else 0 ;; U = the corrected values, with which S_C = S_0 + K^T U
    With U in the place of V this is Eq. chunked-linear-attention: linear attention over corrected values.
        the mask added, as to scores: \odot -> +
        the bracket moved in spite of the mask: O = Q\, S_0 + Q\, \bigl( K^\top M\, U \bigr)
    """
    chunk = _plain_chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("O", "Q", "S_0", "K", "M", "U")}


def _sequence(rng: np.random.Generator, T: int, d_k: int, d_v: int) -> dict[str, Any]:
    """Return keys not of length 1, values, steps up to 2 and a gate for each feature: written again and again they do not blow up."""
    K = rng.normal(size=(T, d_k))
    K *= rng.uniform(0.7, 1.1, size=(T, 1)) / np.linalg.norm(K, axis=1, keepdims=True)
    return {"K": K, "V": rng.normal(size=(T, d_v)), "beta": rng.uniform(0.3, 2, size=(T, 1)), "a": rng.uniform(0.3, 1, size=(T, d_k))}


def _pairs(given: dict[str, Any], states: list[np.ndarray]) -> Givens:
    lists = {"k": columns(given["K"]), "v": columns(given["V"]), "a": columns(given["a"]), r"\beta": vector(given["beta"][:, 0])}
    return lists | {"S": matrices(states, start=0, states=True), "t": index(1, len(given["K"]))}


# ---- forget, then correct
@claim("gated-delta-step", rests_on="delta-rule linear-attention-with-decay", may_be="negative")
def _(normal, rng, T, d_k, d_v):
    r"""S_t = D_t + \beta_t\, k_t\, (v_t - D_t^\top k_t)^\top, \qquad D_t = \mathrm{diag}(a_t)\, S_{t-1}
    where 0 < a_t <= 1: what each feature keeps; one number for all features, or one for each
    One step of descent on what the decayed state gets wrong: the error that is mended is the one that is left when k_t is asked.
        the error of the state before it decays: D_t^\top -> S_{t-1}^\top
        what is written decays at once: S_t = \mathrm{diag}(a_t)\, D_t, \qquad D_t = S_{t-1} + \beta_t\, k_t\, (v_t - S_{t-1}^\top k_t)^\top
        nothing is taken away: (v_t - D_t^\top k_t)^\top -> v_t^\top
        the gate closes: D_t = -> D_t = S_{t-1} -
    """
    given, states = _sequence(rng, T, d_k, d_v), [normal(d_k, d_v)]
    steps = np.eye(d_k * d_v).reshape(-1, d_k, d_v)
    for t in range(T):
        k, v, left = (
            given["K"][t],
            given["V"][t],
            [[keep * entry for entry in row] for keep, row in zip(given["a"][t], states[-1], strict=True)],
        )

        def loss(S: np.ndarray, k: np.ndarray = k, v: np.ndarray = v) -> Any:
            return sum((S[:, b] @ k - v[b]) ** 2 / 2 for b in range(d_v))

        slope = [(loss(left + step) - loss(left - step)) / 2 for step in steps]  # of a square this is exact
        states.append(left - given["beta"][t, 0] * np.reshape(slope, (d_k, d_v)))
    return _pairs(given, states)


@claim("gated-erase-then-write", rests_on="gated-delta-step erase-then-write", may_be="negative")
def _(normal, rng, T, d_k, d_v):
    r"""S_t = \bigl( I - \beta_t\, k_t k_t^\top \bigr)\, \mathrm{diag}(a_t)\, S_{t-1} + \beta_t\, k_t v_t^\top
    Multiply out. One gate for all features may stand anywhere in the product; gates of their own do not commute with the key's.
        the gate behind the correction:
            \bigl( I - \beta_t\, k_t k_t^\top \bigr)\, \mathrm{diag}(a_t) -> \mathrm{diag}(a_t)\, \bigl( I - \beta_t\, k_t k_t^\top \bigr)
        what is erased is not gated: S_t = \mathrm{diag}(a_t)\, S_{t-1} - \beta_t\, k_t k_t^\top S_{t-1} + \beta_t\, k_t v_t^\top
        as linear attention: \bigl( I - \beta_t\, k_t k_t^\top \bigr)\, ->
    """
    given, start = _sequence(rng, T, d_k, d_v), normal(d_k, d_v)
    K, V, beta, decay = given["K"], given["V"], given["beta"], np.log(given["a"])
    runs = [
        delta_rule_attention(K[:t], K[:t], V[:t], beta[:t], log_decay=decay[:t], initial_state=start, return_state=True)
        for t in range(T + 1)
    ]
    return _pairs(given, [state for _, state in runs])


# ---- a chunk at once
@claim("decay-through-a-midpoint", rests_on="linear-attention-with-decay")
def _(normal, rng, m, n, d_k):
    r"""\sum_r q_{i,r}\, k_{j,r} \prod_{l=j+1}^{i} a_{l,r}
        = \sum_r \Bigl( q_{i,r} \prod_{l=m+1}^{i} a_{l,r} \Bigr) \Bigl( k_{j,r} \prod_{l=j+1}^{m} a_{l,r} \Bigr)
    where j <= m < i: keys of an earlier block, which ends at m, and queries of a later one
    All pairs across m are one matrix product, and no factor is above 1: gates from the start, divided out of the keys, overflow.
        the gate of the midpoint twice: m+1 -> m
        the gate of the midpoint never: \prod_{l=j+1}^{m} -> \prod_{l=j+1}^{m-1}
        the query from the start: \prod_{l=m+1}^{i} -> \prod_{l=1}^{i}
    """
    Q, K, a = normal(n, d_k), normal(m, d_k), rng.uniform(0.2, 1, size=(m + n, d_k))
    return {"q": columns(Q, start=m + 1), "k": columns(K), "a": columns(a), "m": m}


def _chunk(rng: np.random.Generator, C: int, d_k: int, d_v: int) -> dict[str, Any]:
    """Return one chunk, all of it position by position: what is written and read, the states, and keys and queries under their gates."""
    given = _sequence(rng, C, d_k, d_v) | {"Q": rng.normal(size=(C, d_k))}
    Q, K, V, beta, a = (given[name] for name in ("Q", "K", "V", "beta", "a"))
    S, outputs, U = [rng.normal(size=(d_k, d_v))], [], []
    for t in range(C):
        now = slice(t, t + 1)
        o, after = delta_rule_attention(Q[now], K[now], V[now], beta[now], log_decay=np.log(a[now]), initial_state=S[-1], return_state=True)
        U.append([beta[t, 0] * (V[t, b] - sum(a[t] * S[-1][:, b] * K[t])) for b in range(d_v)])
        outputs.append(o[0])
        S.append(after)
    early = {
        f"\\hat{{{name}}}": [[row[r] * np.prod(a[: t + 1, r]) for r in range(d_k)] for t, row in enumerate(given[name])] for name in "QK"
    }
    late = [[row[r] * np.prod(a[t + 1 :, r]) for r in range(d_k)] for t, row in enumerate(K)]
    lists = {"q": columns(Q), "k": columns(K), "a": columns(a), "g": vector([np.prod(a[:, r]) for r in range(d_k)])}
    return lists | early | {r"\check{K}": late, "V": V, "B": np.diag(beta[:, 0]), "O": outputs, "U": U, "S_0": S[0], "S_C": S[-1]}


@claim("gated-chunk-system", rests_on="gated-delta-step chunked-delta-rule")
def _(rng, C, d_k, d_v):
    r"""U = \bigl( I + \mathrm{strictly\ lower}(B P) \bigr)^{-1} B\, (V - \hat{K} S_0), \qquad
        P_{ij} = \sum_r k_{i,r}\, k_{j,r} \prod_{l=j+1}^{i} a_{l,r}
    where B = diag(beta_1, ..., beta_C) ;; row t of K-hat: k_t times a_1 to a_t ;; row t of U: beta_t (v_t - D_t^T k_t)
    D_t = the decayed S_0 and what earlier pairs of the chunk wrote, each decayed since: a triangular system, as without gates.
        keys that do not decay: k_{j,r} \prod_{l=j+1}^{i} a_{l,r} -> k_{j,r}
        the gate of the writer too: \prod_{l=j+1}^{i} -> \prod_{l=j}^{i}
        not yet the gate of the reader: \prod_{l=j+1}^{i} -> \prod_{l=j+1}^{i-1}
        every pair corrected against S_0: U = B\, (V - \hat{K} S_0)
    """
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("U", "B", "k", "a", "V", r"\hat{K}", "S_0")}


@claim("gated-chunk-outputs", rests_on="gated-chunk-system chunked-delta-outputs")
def _(rng, C, d_k, d_v):
    r"""O = \hat{Q}\, S_0 + R\, U, \qquad S_C = \mathrm{diag}(g)\, S_0 + \check{K}^\top U, \qquad
        R_{ij} = [\,j \le i\,] \sum_r q_{i,r}\, k_{j,r} \prod_{l=j+1}^{i} a_{l,r}
    where row t of Q-hat: q_t times a_1 to a_t ;; row t of K-check: k_t times a_{t+1} to a_C ;; g = a_1 to a_C multiplied
    With U in the place of V, linear attention with decay: read the old state and the pairs so far, carry the new state on.
        keys under the gates before them: \check{K}^\top -> \hat{Q}^\top
        the state kept whole: \mathrm{diag}(g)\, S_0 -> S_0
        read before written: j \le i -> j < i
        under a mask of ones: \prod_{l=j+1}^{i} a_{l,r} ->
    """
    chunk = _chunk(rng, C, d_k, d_v)
    return {name: chunk[name] for name in ("O", r"\hat{Q}", "S_0", "U", "S_C", "g", r"\check{K}", "q", "k", "a")}
