"""The graded tasks on attention without softmax; gates and the delta rule are in tasks_memory.py, formulas in tasks_formulas.py."""

import math
from typing import Any

import numpy as np

from attn_course.lessons.linear.tasks_formulas import AVERAGE, DELTA_DERIVED, FADING
from attn_course.lessons.linear.tasks_memory import DELTA, DELTA_READ, GATES, OVERLAPS
from attn_course.reference import linear_attention, positive_random_features
from attn_course.tasks.core import Case, Task, Wrong


def _squares(x: np.ndarray) -> np.ndarray:
    return (x * x).sum(axis=-1, keepdims=True)


def _exponents(x: np.ndarray, omega: np.ndarray) -> np.ndarray:
    return x @ omega.T - _squares(x) / 2


FEATURES = Task(
    id="positive-random-features",
    title="Positive random features",
    entry="my_features",
    kind="write",
    equation="positive-features-are-unbiased",
    points=2,
    difficulty=2,
    minutes=10,
    trains="features whose product is the kernel on average",
    answer=positive_random_features,
    cases=lambda rng: [
        Case("five rows, seven draws", x=rng.normal(size=(5, 3)), omega=rng.normal(size=(7, 3))),
        Case("a batch", x=rng.normal(size=(2, 7, 5)), omega=rng.normal(size=(11, 5))),
        Case("one draw", x=rng.normal(size=(3, 2)), omega=rng.normal(size=(1, 2))),
        Case("long vectors", x=6 * rng.normal(size=(3, 2)), omega=rng.normal(size=(5, 2))),
        Case("one row", x=rng.normal(size=(1, 3)), omega=rng.normal(size=(5, 3))),
    ],
    wrong=[
        Wrong(
            "without the length of x",
            lambda x, omega: np.exp(x @ omega.T) / math.sqrt(len(omega)),
            "the mean of e^{w . x} is e^{|x|^2 / 2}: half of the squared length must come off the exponent",
        ),
        Wrong(
            "the whole squared length",
            lambda x, omega: np.exp(x @ omega.T - _squares(x)) / math.sqrt(len(omega)),
            "half of the squared length comes off, {eq}`positive-features-are-unbiased`",
        ),
        Wrong(
            "the length of omega",
            lambda x, omega: np.exp(x @ omega.T - _squares(omega)[:, 0] / 2) / math.sqrt(len(omega)),
            "it is the length of x, not that of omega, that comes off the exponent",
        ),
        Wrong(
            "the length, not its square",
            lambda x, omega: np.exp(x @ omega.T - np.sqrt(_squares(x)) / 2) / math.sqrt(len(omega)),
            "the *squared* length comes off the exponent",
        ),
        Wrong(
            "not averaged",
            lambda x, omega: np.exp(x @ omega.T - _squares(x) / 2),
            "a product of two rows adds m terms: divide each feature by the root of m, so that the sum becomes a mean",
        ),
        Wrong(
            "divided by m",
            lambda x, omega: np.exp(x @ omega.T - _squares(x) / 2) / len(omega),
            "a product holds two features: divided by m each, it is divided by m squared. Use the root of m",
        ),
        Wrong(
            "the root of d_k",
            lambda x, omega: np.exp(x @ omega.T - _squares(x) / 2) / math.sqrt(x.shape[-1]),
            "m counts the draws, rows of `omega`, not the features of x",
        ),
        Wrong(
            "x divided by the fourth root of d",
            lambda x, omega: positive_random_features(x / x.shape[-1] ** 0.25, omega),
            "nothing is divided by a root of d here: the kernel is e^{q . k}",
        ),
        Wrong(
            "one length for all rows",
            lambda x, omega: np.exp(x @ omega.T - (x * x).sum() / 2) / math.sqrt(len(omega)),
            "each row has a length of its own: sum over the last axis only, with `keepdims=True`",
        ),
        Wrong(
            "shifted by the largest exponent",
            lambda x, omega: np.exp(_exponents(x, omega) - _exponents(x, omega).max(axis=-1, keepdims=True)) / math.sqrt(len(omega)),
            "no row may be scaled: taking the largest exponent off changes the product, which is to be e^{q . k} on average",
        ),
        Wrong(
            "cosines",
            lambda x, omega: np.cos(x @ omega.T) * np.exp(_squares(x) / 2) / math.sqrt(len(omega)),
            "these features can be negative: the task asks for the positive ones, {eq}`positive-features-are-unbiased`",
        ),
    ],
    hints=[
        "Two parts: the exponent of {eq}`positive-features-are-unbiased`, and what turns a sum over m draws into a mean.",
        "`x @ omega.T` has shape (..., T, m); the squared length of each row of x needs `keepdims=True`.",
        "`np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(omega))`.",
    ],
)

CROSSOVER = Task(
    id="random-feature-crossover",
    title="When do random features pay?",
    entry="my_crossover",
    kind="derive",
    equation="linear-attention-crossover",
    points=2,
    difficulty=2,
    minutes=10,
    trains="counting both orders, features included",
    symbols=("m", "k", "v"),
    cases=lambda rng: [Case("16 points", **{name: rng.uniform(1.0, 5.0, size=16) for name in ("m", "k", "v")})],
    answer=lambda m, k, v: (2 * m * k + 3 * m * v) / (k + v),
    wrong=[
        Wrong(
            "the lesson's crossover as it stands",
            lambda m, k, v: 2 * k * v / (k + v),
            "{eq}`linear-attention-crossover` is for k features without a map and two products with the state; count this layer anew",
        ),
        Wrong(
            "the feature map forgotten",
            lambda m, k, v: 3 * m * v / (k + v),
            "the projections of queries and keys are products too: 2 m k for each row of each",
        ),
        Wrong(
            "the third product forgotten",
            lambda m, k, v: (2 * m * k + 2 * m * v) / (k + v),
            "this memory takes three products with the state for each position: the delta rule asks, corrects and reads",
        ),
        Wrong(
            "only queries projected",
            lambda m, k, v: (m * k + 3 * m * v) / (k + v),
            "queries and keys are both mapped to features",
        ),
        Wrong(
            "the state with k rows",
            lambda m, k, v: (2 * m * k + 3 * k * v) / (k + v),
            "after the feature map queries and keys have m features: the state is m by v",
        ),
        Wrong(
            "scores of m features",
            lambda m, k, v: (2 * m * k + 3 * m * v) / (m + v),
            "softmax attention works with the k features as they are: T^2 products of k and of v terms",
        ),
        Wrong(
            "turned over",
            lambda m, k, v: (k + v) / (2 * m * k + 3 * m * v),
            "solve for T: one power of T is left on the side of the scores",
        ),
        Wrong(
            "scores counted once",
            lambda m, k, v: 2 * (2 * m * k + 3 * m * v) / (k + v),
            "a multiply-add counts 2 on both sides",
        ),
    ],
    hints=[
        "Write both counts with T, set them equal, and divide by T.",
        "Softmax: 2 T^2 (k + v). The other side: 2 T m k for the queries, as much for the keys, and three products of 2 T m v.",
        "2 T (k + v) = 4 m k + 6 m v.",
    ],
)


def _heads(rng: np.random.Generator, n_heads: int, length: int, d_phi: int, d_v: int, largest: float = 2.0) -> dict[str, Any]:
    positive = rng.uniform(0.05 * largest, largest, size=(2, n_heads, length, d_phi))
    return {"query": positive[0], "key": positive[1], "value": rng.normal(size=(n_heads, length, d_v))}


def _smoother(query: np.ndarray, key: np.ndarray, value: np.ndarray, *, mask: str = "causal", divisor: str = "sum") -> np.ndarray:
    length = query.shape[-2]
    seen = {"causal": np.tri(length), "none": np.ones((length, length)), "strict": np.tri(length, k=-1), "future": np.tri(length).T}[mask]
    kernel = seen * (query @ key.swapaxes(-1, -2))
    total = kernel.sum(axis=-1, keepdims=True)
    divided_by = {
        "sum": total,
        "one": np.ones_like(total),
        "heads": total.sum(axis=0, keepdims=True),
        "last": (query * key).sum(axis=-1, keepdims=True),
        "count": np.arange(1.0, length + 1)[:, None],
        "all": (query @ key.sum(axis=-2)[..., None]),
        "one behind": total - (query * key).sum(axis=-1, keepdims=True),
    }[divisor]
    return kernel @ value / np.where(divided_by == 0.0, 1.0, divided_by)


def _softmax_features(query: np.ndarray, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make the kernel of `_smoother` the exponential: rows of it as queries, unit vectors as keys."""
    return np.exp(query @ key.swapaxes(-1, -2)), np.broadcast_to(np.eye(key.shape[-2]), (len(key), key.shape[-2], key.shape[-2]))


def _first_keys_tiny(rng: np.random.Generator) -> Case:
    """What later keys add must not touch the sums of earlier ones, not even by rounding."""
    case = Case("first keys of 1e-12", **_heads(rng, 2, 7, 3, 5))
    case.inputs["key"][:, :3] *= 1e-12
    return case


NORMALISED = Task(
    id="normalised-linear-attention",
    title="Linear attention, normalised",
    entry="my_linear_attention",
    kind="write",
    equation="normalised-linear-attention",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a state and its normaliser, head by head",
    answer=lambda query, key, value: linear_attention(query, key, value, feature_map=np.abs, normalize=True),
    cases=lambda rng: [
        Case("two heads", **_heads(rng, 2, 5, 3, 7)),
        Case("three heads, wide features", **_heads(rng, 3, 7, 11, 2)),
        Case("one head", **_heads(rng, 1, 11, 2, 5)),
        Case("one position", **_heads(rng, 3, 1, 5, 2)),
        Case("features of a millionth", **_heads(rng, 2, 7, 3, 5, 2e-6)),
        _first_keys_tiny(rng),
    ],
    wrong=[
        Wrong(
            "only the last key counted",
            lambda *qkv: _smoother(*qkv, divisor="last"),
            "the normaliser adds up: n_t = n_{t-1} + phi(k_t), not the last key alone",
        ),
        Wrong(
            "summed over heads",
            lambda *qkv: _smoother(*qkv, divisor="heads"),
            "each head has a normaliser of its own; yours is summed over the heads",
        ),
        Wrong(
            "a normaliser one key behind",
            lambda *qkv: _smoother(*qkv, divisor="one behind"),
            "n_t holds the key of position t too: add it before you divide",
        ),
        Wrong(
            "features of features",
            lambda query, key, value: _smoother(query + 1.0, key + 1.0, value),
            "`query` and `key` are features already: no elu(x) + 1 here",
        ),
        Wrong(
            "softmax",
            lambda query, key, value: _smoother(*_softmax_features(query, key), value),
            "no exponential here: the weights are the products of the features, divided by their sum",
        ),
        Wrong("not normalised", lambda *qkv: _smoother(*qkv, divisor="one"), "divide by n_t . phi(q_t), {eq}`normalised-linear-attention`"),
        Wrong(
            "divided by the number of keys",
            lambda *qkv: _smoother(*qkv, divisor="count"),
            "divide by the sum of the weights, not by how many there are",
        ),
        Wrong(
            "a normaliser of all keys",
            lambda *qkv: _smoother(*qkv, divisor="all"),
            "the normaliser is causal too: position t sums the keys up to t",
        ),
        Wrong("not causal", lambda *qkv: _smoother(*qkv, mask="none"), "position t reads the keys j <= t only"),
        Wrong("read before the write", lambda *qkv: _smoother(*qkv, mask="strict"), "position t sees its own key as well: j <= t"),
        Wrong(
            "turned in time",
            lambda *qkv: _smoother(*qkv, mask="future"),
            "you let position t read the keys from t on; it reads those up to t",
        ),
    ],
    hints=[
        "Which test did the lesson use for a normaliser? Put ones for the values.",
        "Parallel: weights (H, T, T), masked with `np.tri(T)`, divided by their row sums. Recurrent: S and n for each head.",
        "`kernel = np.tri(T) * (query @ key.swapaxes(-1, -2))`, then `kernel @ value / kernel.sum(-1, keepdims=True)`.",
    ],
)


def _chunks(query: np.ndarray, key: np.ndarray, value: np.ndarray, state: np.ndarray, chunk: int, *, how: str = "right") -> Any:
    first, state, pieces = state, state.copy(), []
    for start in range(0, len(query), chunk):
        q, k, v = (array[start : start + chunk] for array in (query, key, value))
        if how == "written first":
            state = state + k.T @ v
        inside = {"no mask": np.ones((len(q), len(q))), "strict": np.tri(len(q), k=-1)}.get(how, np.tri(len(q))) * (q @ k.T) @ v
        held = {"forgotten": np.zeros_like(state), "the first only": first}.get(how, state)
        pieces.append(inside if how == "inside only" else q @ held + inside)
        if how == "overwritten":
            state = k.T @ v
        elif how != "written first":
            state = state + k.T @ v
    return np.concatenate(pieces), state


def _whole_chunks(query: np.ndarray, key: np.ndarray, value: np.ndarray, state: np.ndarray, chunk: int) -> Any:
    """Eq. chunked-linear-attention for whole chunks only; the output of the others stays zero."""
    whole = len(query) // chunk * chunk
    output = np.zeros_like(value)
    if whole:
        output[:whole], state = _chunks(query[:whole], key[:whole], value[:whole], state, chunk)
    return output, state.copy()


def _chunk_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, length, d_k, d_v, chunk in (
        ("seven positions by threes", 7, 3, 2, 3),
        ("eleven by fours", 11, 2, 5, 4),
        ("one at a time", 5, 3, 7, 1),
        ("a chunk longer than the text", 5, 2, 3, 13),
        ("one position", 1, 3, 2, 4),
    ):
        shapes = {"query": (length, d_k), "key": (length, d_k), "value": (length, d_v), "state": (d_k, d_v)}
        cases.append(Case(name, **{role: rng.normal(size=shape) for role, shape in shapes.items()}, chunk=chunk))
    return cases


def _chunk_mistake(how: str) -> Any:
    return lambda *inputs: _chunks(*inputs, how=how)


CHUNKED = Task(
    id="chunked-linear-attention",
    title="Chunk by chunk",
    entry="my_chunked",
    kind="write",
    equation="chunked-linear-attention",
    points=3,
    difficulty=3,
    minutes=15,
    trains="passing a state from chunk to chunk",
    answer=lambda query, key, value, state, chunk: linear_attention(query, key, value, initial_state=state, return_state=True),
    cases=_chunk_cases,
    wrong=[
        Wrong("the state not read", _chunk_mistake("forgotten"), "each chunk also reads the state: Q_c S_c is missing"),
        Wrong(
            "only the given state is read",
            _chunk_mistake("the first only"),
            "the state must grow: later chunks read what earlier chunks have written",
        ),
        Wrong("the state replaced", _chunk_mistake("overwritten"), "S_{c+1} = S_c + K_c^T V_c: yours keeps the last chunk only"),
        Wrong(
            "written before it is read",
            _chunk_mistake("written first"),
            "read S_c first: with the chunk already written in, its pairs count twice and the future leaks in",
        ),
        Wrong("no mask inside", _chunk_mistake("no mask"), "inside a chunk position t reads j <= t only: mask the scores"),
        Wrong("own key hidden", _chunk_mistake("strict"), "M has ones on its diagonal: position t sees its own key"),
        Wrong(
            "positions left over dropped",
            _whole_chunks,
            "the last chunk may be shorter than the others, and counts all the same",
        ),
        Wrong(
            "the state left as it came",
            lambda query, key, value, state, chunk: (_chunks(query, key, value, state, chunk)[0], state.copy()),
            "the output is right; return the state after the last position, not the one that came in",
        ),
        Wrong(
            "what came in is missing from the state",
            lambda query, key, value, state, chunk: (_chunks(query, key, value, state, chunk)[0], key.T @ value),
            "the output is right; the state that is returned holds what was written before, too",
        ),
        Wrong(
            "divided by the root of d",
            lambda query, key, value, state, chunk: (
                _chunks(query, key, value, state, chunk)[0] / math.sqrt(key.shape[1]),
                state + key.T @ value,
            ),
            "there is no scale in this task",
        ),
    ],
    hints=[
        "A loop over `range(0, T, chunk)`. What does a chunk read, and what does it leave behind?",
        "Slices beyond the end are simply shorter. The mask of a chunk of C rows is `np.tri(C)`.",
        "`q @ state + (np.tri(len(q)) * (q @ k.T)) @ v`, and only then `state = state + k.T @ v`.",
    ],
)

TASKS = [FEATURES, CROSSOVER, NORMALISED, CHUNKED, GATES, OVERLAPS, DELTA_READ, DELTA, DELTA_DERIVED, AVERAGE, FADING]
