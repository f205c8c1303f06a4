"""Induction: a head that looks for what came behind the same word before, the head that it needs below it, and how both are found."""

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import function, index, matrix, row, rows
from attn_course.reference import rms_norm

claim = about("M2")


@claim("match-of-word-before", rests_on="self-attention stream-is-a-sum")
def _(rng, T, n):
    r"""\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,]
    where rows of X: words t as one-hot vectors ;; S moves each row to the position behind it ;; j >= 2
    The key of j tells the word before it: who holds the same word now attends to what came next then, and copies it.
        without the head below: the word itself:
            t_{j-1} -> t_j
        the word behind: t_{j-1} -> t_{j+1}
        the queries are moved on, not the keys: X\, (S X)^\top -> (S X)\, X^\top
    """
    t = rng.integers(n, size=T)
    return {"X": np.eye(n)[t], "S": np.eye(T, k=-1), "t": t, "j": index(2, T)}


@claim("scores-of-second-layer", rests_on="absorbed-score residual-stream")
def _(normal, rng, T, d):
    r"""X_1\, W X_1^\top = X\, W X^\top + X\, W\, (P X U)^\top + P X U\, W X^\top + P X U\, W\, (P X U)^\top
    where X_1 = X + P X U: behind a head of the first layer with weights P and U = W_V W_O ;; W = W_Q W_K^T of a head of the second
        ;; no norms, no scale
    Multiply out: each of query and key reads the word, or what the first head brought to it.
        only the keys read the first head: + P X U\, W X^\top + P X U\, W\, (P X U)^\top ->
        both or none: X\, W\, (P X U)^\top + P X U\, W X^\top + ->
        weights on the wrong side: all P X U -> X U P
    """
    X, P, W, U = normal(T, d), rng.dirichlet(np.ones(T), size=T), normal(d, d), normal(d, d)
    found = X + np.array([sum(P[i, j] * (X[j] @ U) for j in range(T)) for i in range(T)])
    return {"X": X, "P": P, "W": W, "U": U, "X_1": found}


@claim("score-through-earlier-head", rests_on="scores-of-second-layer")
def _(normal, rng, T, d):
    r"""\bigl( X\, W\, (P X U)^\top \bigr)_{ij} = \sum_{l=1}^{T} P_{jl}\; x_i\, W U^\top x_l^\top
    where rows of X: x_i ;; P, U: weights and W_V W_O of the head of the first layer, W = W_Q W_K^T of that of the second
    Row j of P X U is the mean of the x_l U with weights P_jl: the query is compared with the words at which position j looked.
        what the query looked at: P_{jl} -> P_{il}
        the value matrix turned over: U^\top x_l -> U x_l
        what looked at j: P_{jl} -> P_{lj}
        the key itself: x_l^\top -> x_j^\top
    """
    X, P, W, U = normal(T, d), rng.dirichlet(np.ones(T), size=T), normal(d, d), normal(d, d)
    return {"X": X, "x": rows(X), "P": P, "W": W, "U": U, "T": T}


@claim("induction-score", rests_on="match-of-word-before")
def _(rng, n):
    r"""s = \frac{1}{n} \sum_{i=1}^{n} P_{n+i,\; i+1}
    where P: weights of a causal head on n different words, and the same n once more
    The mean weight that a word of the second round gives to the one behind its first occurrence: 1 for a perfect head.
        on the same word: P_{n+i,\; i+1} -> P_{n+i,\; i}
        on the word before: P_{n+i,\; i+1} -> P_{n+i,\; n+i-1}
        a sum, no mean: \frac{1}{n} \sum -> \sum
        the mean over both rounds: \frac{1}{n} -> \frac{1}{2n}
    """
    P = np.tril(rng.exponential(size=(2 * n, 2 * n)))
    P /= P.sum(axis=1, keepdims=True)
    t = [*rng.permutation(n)] * 2
    found = [P[i, j] for i in range(n, 2 * n) for j in range(1, i + 1) if t[j - 1] == t[i]]
    return {"P": matrix(P), "n": n, "s": np.mean(found)}


@claim("logits-by-part", rests_on="stream-is-a-sum")
def _(normal, L, d, n):
    r"""\mathrm{logits}(X_L) = \frac{1}{r} \sum_{l=0}^{L} z_l\, \mathrm{diag}(g)\, E^\top
    where X_L = sum of the z_l, z_0 the token itself ;; r = root of the mean square of X_L, epsilon = 0 ;; g: gain of the last norm
    The last norm divides by one number; with that number held, each part of the stream has its own share of every logit.
        each part normed by itself: \frac{1}{r} \sum_{l=0}^{L} z_l -> \sum_{l=0}^{L} \mathrm{N}(z_l)
        the token left out: l=0 -> l=1
        the gain behind the table: \mathrm{diag}(g)\, E^\top -> E^\top\, \mathrm{diag}(g)
    """
    z, g, E = normal(L + 1, d), normal(d), normal(n, d)
    logits = function(lambda x: rms_norm(x, g, eps=1e-30) @ E.T)
    r = np.linalg.norm(z.sum(axis=0)) / np.sqrt(d)
    return {r"\mathrm{logits}": logits, "X_L": row(z.sum(axis=0)), "z": rows(z, start=0), "r": r, "g": row(g), "E": E, "L": L}
