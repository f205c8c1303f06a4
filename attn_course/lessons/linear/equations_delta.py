"""Attention without softmax: the delta rule, its chunked form, and what softmax does better."""

import numpy as np
import sympy

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Limit, Sides
from attn_course.equations.derivatives import jacobian
from attn_course.equations.matrices import matrix_symbols, weights_of
from attn_course.equations.stated import equation
from attn_course.equations.symbols import column, real_symbols

S, k, v = matrix_symbols("s", 2, 2), column(real_symbols("k", 2)), column(real_symbols("v", 2))
beta = sympy.Symbol("beta", positive=True)


def _loss() -> sympy.Expr:
    error = S.T * k - v
    return (error.T * error)[0] / 2


def _pairs(rng: np.random.Generator, length: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return query, unit keys (d_k = 3), values (d_v = 2) and step sizes between 0 and 1."""
    query, key = rng.normal(size=(2, length, 3))
    return query, key / np.linalg.norm(key, axis=-1, keepdims=True), rng.normal(size=(length, 2)), rng.uniform(0.1, 1, size=(length, 1))


# ---- 11.6 correcting instead of adding


@equation(
    "recall-error-gradient",
    r"\frac{\partial}{\partial S}\, \tfrac{1}{2}\, \bigl| S^\top k - v \bigr|^2 = k\, (S^\top k - v)^\top",
    rows=["K2"],
    uses=["recall-signal-and-interference"],
    assumes=["a pair (k, v) that the state S should return"],
    scope="d_k = 2, d_v = 2",
)
def gradient_of_the_recall_error() -> Sides:
    """Reading k should give v: the square of what is missing, differentiated by each entry of the state."""
    return sympy.Matrix(2, 2, lambda a, b: _loss().diff(S[a, b])), k * (S.T * k - v).T


gradient_of_the_recall_error.wrong("transposed")(lambda: (sympy.Matrix(2, 2, lambda a, b: _loss().diff(S[a, b])), (S.T * k - v) * k.T))
gradient_of_the_recall_error.wrong("what is read is forgotten")(lambda: (sympy.Matrix(2, 2, lambda a, b: _loss().diff(S[a, b])), -k * v.T))


@equation(
    "delta-rule",
    r"S_t = S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
    rows=["K2"],
    uses=["recall-error-gradient"],
    assumes=["one step of gradient descent with step size beta"],
    scope="d_k = 2, d_v = 2",
)
def delta_rule() -> Sides:
    """Least squares online: write what is missing, not the value itself."""
    stepped = sympy.Matrix(2, 2, lambda a, b: S[a, b] - beta * _loss().diff(S[a, b]))
    return stepped, S + beta * k * (v - S.T * k).T


delta_rule.wrong("Hebb's rule: the value is added, whatever is there")(
    lambda: (sympy.Matrix(2, 2, lambda a, b: S[a, b] - beta * _loss().diff(S[a, b])), S + beta * k * v.T)
)
delta_rule.wrong("a step uphill")(
    lambda: (sympy.Matrix(2, 2, lambda a, b: S[a, b] - beta * _loss().diff(S[a, b])), S - beta * k * (v - S.T * k).T)
)


@equation(
    "erase-then-write",
    r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top = \bigl( I - \beta\, k k^\top \bigr)\, S_{t-1} + \beta\, k v^\top",
    rows=["K2"],
    follows="delta-rule",
    uses=["delta-rule"],
    scope="d_k = 2, d_v = 2",
)
def erase_then_write() -> Sides:
    """Multiply out: first the old entry under k is erased (in part), then the new one is added."""
    return S + beta * k * (v - S.T * k).T, (sympy.eye(2) - beta * k * k.T) * S + beta * k * v.T


erase_then_write.wrong("everything decays, not only the direction of k")(
    lambda: (S + beta * k * (v - S.T * k).T, (1 - beta) * S + beta * k * v.T)
)


@equation(
    "recall-after-delta-write",
    r"S_t^\top k = (1 - \beta\, |k|^2)\, S_{t-1}^\top k + \beta\, |k|^2\, v",
    rows=["K2"],
    uses=["erase-then-write"],
    scope="d_k = 2, d_v = 2",
)
def reading_back() -> Sides:
    """A mixture of old and new; with a unit key and beta = 1 the old value is gone.

    Where Eq. recurrent-linear-attention would return their sum.
    """
    after = S + beta * k * (v - S.T * k).T
    norm = (k.T * k)[0]
    return after.T * k, (1 - beta * norm) * (S.T * k) + beta * norm * v


reading_back.wrong("the old and the new value added up")(
    lambda: ((S + beta * k * (v - S.T * k).T).T * k, S.T * k + beta * (k.T * k)[0] * v)
)


@equation(
    "orthogonal-keys-left-alone",
    r"k' \cdot k = 0 \;\Rightarrow\; S_t^\top k' = S_{t-1}^\top k'",
    rows=["K2"],
    uses=["erase-then-write"],
    scope="d_k = 2, k' = k turned by a quarter",
)
def other_keys_are_left_alone() -> Sides:
    """What is stored under orthogonal keys is not touched by the correction."""
    other = column([-k[1], k[0]])
    after = S + beta * k * (v - S.T * k).T
    return after.T * other, column(S[0, b] * -k[1] + S[1, b] * k[0] for b in range(2))


other_keys_are_left_alone.wrong("under all keys")(lambda: ((S + beta * k * (v - S.T * k).T).T * v, S.T * v))


@equation(
    "delta-transition-norm",
    r"\| I - \beta\, k k^\top \|_2 = \max\bigl( 1,\; |1 - \beta\, |k|^2| \bigr)",
    rows=["K2"],
    uses=["erase-then-write"],
    assumes=["d_k >= 2"],
    kind="numeric",
    scope="d_k = 2 to 5, |k| and beta from small to large",
)
def stability(rng: np.random.Generator) -> Claims:
    """Eigenvalues: 1 across the key, 1 - beta |k|^2 along it. Unit keys and 0 <= beta <= 1 never blow up; long keys do."""
    for d_k in range(2, 6):
        for length, step in ((0.5, 0.3), (1.0, 1.0), (1.0, 2.0), (3.0, 1.0)):
            key = rng.normal(size=d_k)
            key *= length / np.linalg.norm(key)
            left = np.linalg.norm(np.eye(d_k) - step * np.outer(key, key), 2)
            yield left, max(1, abs(1 - step * sum(key[a] ** 2 for a in range(d_k))))


@stability.wrong("never more than 1")
def _(rng: np.random.Generator) -> Chain:
    key = np.array([3.0, 0.0])
    return Chain(np.linalg.norm(np.eye(2) - np.outer(key, key), 2), "<=", 1)


@equation(
    "chunked-delta-rule",
    r"S_C = S_0 + K^\top U, \qquad U = \bigl( I + \mathrm{strictly\ lower}(B K K^\top) \bigr)^{-1} B\, (V - K S_0)",
    rows=["K2"],
    uses=["delta-rule"],
    assumes=["B = diag(beta_1, ..., beta_C)", "rows of K, V: the pairs of one chunk"],
    kind="numeric",
    scope="C = 7, d_k = 3, d_v = 2, a state from before",
)
def chunked_delta_rule(rng: np.random.Generator) -> Claims:
    """Row t of U is beta_t (v_t - S_{t-1}^T k_t), where S_{t-1} = S_0 + sum of k_j u_j: a triangular system, solved once for a chunk."""
    for _ in range(3):
        _query, key, value, step = _pairs(rng)
        start = rng.normal(size=(3, 2))
        state = start
        for t in range(7):
            state = state + step[t] * np.outer(key[t], value[t] - state.T @ key[t])
        system = np.eye(7) + np.tri(7, k=-1) * (step * (key @ key.T))
        yield state, start + key.T @ np.linalg.solve(system, step * (value - key @ start))


@chunked_delta_rule.wrong("without the inverse: every pair corrected against S_0")
def _(rng: np.random.Generator) -> Sides:
    query, key, value, step = _pairs(rng)
    state = reference.delta_rule_attention(query, key, value, step, return_state=True)[1]
    return state, key.T @ (step * value)


@chunked_delta_rule.wrong("with the diagonal in the system")
def _(rng: np.random.Generator) -> Sides:
    query, key, value, step = _pairs(rng)
    state = reference.delta_rule_attention(query, key, value, step, return_state=True)[1]
    return state, key.T @ np.linalg.solve(np.eye(7) + np.tri(7) * (step * (key @ key.T)), step * value)


@equation(
    "chunked-delta-outputs",
    r"O = Q\, S_0 + \bigl( Q K^\top \odot M \bigr)\, U",
    rows=["K2"],
    uses=["chunked-linear-attention", "chunked-delta-rule"],
    assumes=["M_ij = 1 for j <= i, else 0"],
    kind="numeric",
    scope="C = 7; against the recurrence of the package",
)
def outputs_of_a_chunk(rng: np.random.Generator) -> Claims:
    """With U in the place of V this is Eq. chunked-linear-attention: linear attention over corrected values."""
    for _ in range(3):
        query, key, value, step = _pairs(rng)
        start = rng.normal(size=(3, 2))
        U = np.linalg.solve(np.eye(7) + np.tri(7, k=-1) * (step * (key @ key.T)), step * (value - key @ start))
        output = reference.delta_rule_attention(query, key, value, step, initial_state=start)
        yield output, query @ start + (np.tri(7) * (query @ key.T)) @ U


@outputs_of_a_chunk.wrong("the values themselves, as in plain linear attention")
def _(rng: np.random.Generator) -> Sides:
    query, key, value, step = _pairs(rng)
    return reference.delta_rule_attention(query, key, value, step), (np.tri(7) * (query @ key.T)) @ (step * value)


# ---- 11.7 reading with and without softmax


@equation(
    "corrections-reach-least-squares",
    r"\lim_{n \to \infty} S_n = (K^\top K)^{-1} K^\top V",
    rows=["K2", "L2"],
    uses=["recall-error-gradient", "delta-rule"],
    assumes=["S_n = S_{n-1} + beta K^T (V - K S_{n-1}): all pairs in each step", "K of full column rank", "0 < beta < 2 / |K^T K|_2"],
    kind="numeric",
    scope="5 pairs, d_k = 3, beta = 0.3",
)
def towards_least_squares(rng: np.random.Generator) -> Claims:
    """Corrections end where their sum is 0: least squares (ridge regression without its penalty), linear in q and made from the context."""
    _query, key, value, _step = _pairs(rng, 5)
    states, state = [], np.zeros((3, 2))
    for rounds in range(4000):
        if rounds % 400 == 0:
            states.append(state)
        state = state + 0.3 * key.T @ (value - key @ state)
    yield Limit(np.array([*states, state]), np.linalg.inv(key.T @ key) @ key.T @ value, closeness=1e-8)


@towards_least_squares.wrong("the sum of outer products")
def _(rng: np.random.Generator) -> Limit:
    _query, key, value, _step = _pairs(rng, 5)
    fitted = np.linalg.lstsq(key, value, rcond=None)[0]
    return Limit(np.array([fitted * (1 - 2.0**-step) for step in range(0, 40, 4)]), key.T @ value)


@equation(
    "linear-and-softmax-slopes",
    r"\frac{\partial o}{\partial q} = S^\top \quad \text{(linear)}, \qquad"
    r" \frac{\partial z}{\partial q} = \frac{1}{\sqrt{d_k}} \sum_j p_j\, (v_j - z)\,(k_j - \bar{k})^\top \quad \text{(softmax)}",
    rows=["L2", "K2"],
    uses=["output-derivative-by-query", "linear-map-from-context", "output-derivative-by-score", "recurrent-linear-attention"],
    assumes=["p = weights of q", "z = sum_j p_j v_j, k-bar = sum_j p_j k_j"],
    kind="numeric",
    scope="5 pairs, d_k = 3, d_v = 2",
)
def what_a_query_can_change(rng: np.random.Generator) -> Claims:
    """Linear attention answers each context with one linear map of q; softmax attention answers each query with another."""
    for _ in range(3):
        query, key, value, _step = _pairs(rng, 5)
        q = query[0]
        p = weights_of(key @ q / np.sqrt(3))
        z, mean_key = p @ value, p @ key
        linear = jacobian(lambda moved, keys=key, values=value: moved @ (keys.T @ values), q)  # type: ignore[misc]
        softmax = jacobian(lambda moved, keys=key, values=value: weights_of(keys @ moved / np.sqrt(3)) @ values, q)  # type: ignore[misc]
        yield linear, sum(value[j][:, None] * key[j][None, :] for j in range(5))
        yield softmax, sum(p[j] * (value[j] - z)[:, None] * (key[j] - mean_key)[None, :] for j in range(5)) / np.sqrt(3)


@what_a_query_can_change.wrong("softmax attention is linear in q too")
def _(rng: np.random.Generator) -> Sides:
    query, key, value, _step = _pairs(rng, 5)
    first, second = (reference.attention(query[i : i + 1], key, value) for i in (0, 1))
    return reference.attention(query[:1] + query[1:2], key, value), first + second


@what_a_query_can_change.wrong("one FIXED linear map, whatever the context")
def _(rng: np.random.Generator) -> Sides:
    first, second = _pairs(rng, 5), _pairs(rng, 5)
    return first[0][0] @ (first[1].T @ first[2]), first[0][0] @ (second[1].T @ second[2])


@equation(
    "softmax-recall-bound",
    r"p_i \ge \frac{1}{1 + (n - 1)\, e^{-\beta (1 - \mu)}}, \qquad q = k_i, \quad \mu = \max_{j \ne i} k_i \cdot k_j",
    rows=["K2", "K1"],
    uses=["ratio-of-weights", "recall-signal-and-interference"],
    assumes=["n unit keys", "scores beta q . k"],
    kind="numeric",
    scope="n = 2 to 12 keys in the plane and in general position, beta = 1 to 100, bound attained for equal overlaps",
)
def softmax_recall(rng: np.random.Generator) -> Claims:
    """Recall is as sharp as beta makes it, for many more keys than d_k: what the sum of Eq. recall-signal-and-interference cannot do."""
    for n in range(2, 13):
        angles = 2 * np.pi * np.arange(n) / n
        keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        mu = np.sort(keys @ keys[0])[-2]
        for beta in (1.0, 10.0, 100.0):
            p = weights_of(beta * keys @ keys[0])[0]
            yield Chain(1 / (1 + (n - 1) * np.exp(-beta * (1 - mu))), "<=", p, tight=(n <= 3,))
        unit = rng.normal(size=(n, 4))
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        overlaps = unit[1:] @ unit[0]
        yield Chain(1 / (1 + (n - 1) * np.exp(-10 * (1 - overlaps.max()))), "<=", weights_of(10 * unit @ unit[0])[0])


@softmax_recall.wrong("independent of the number of keys")
def _(rng: np.random.Generator) -> Chain:
    keys = np.eye(6)
    return Chain(1 / (1 + np.exp(-1.0)), "<=", weights_of(keys @ keys[0])[0])
