"""The tasks on attention without softmax; gates and the delta rule are in tasks_memory.py, LaTeX in tasks_formulas.py."""

import numpy as np

from attn_course.reference import linear_attention, positive_random_features
from attn_course.tasks.asked import asked, note, tried


def _draws(normal, size, m, *shape):
    return {"x": size * normal(*shape), "omega": normal(m, shape[-1])}


DRAWS = """
five rows, seven draws: 1 7 5 3
a batch: 1 11 2 7 5
one draw: 1 1 3 2
long vectors: 6 5 3 2
one row: 1 5 1 3
"""


@asked(
    "positive-random-features",
    "Positive random features",
    kind="write",
    equation="positive-features-are-unbiased",
    points=2,
    difficulty=2,
    minutes=10,
    trains="features whose product is the kernel on average",
    judged_by=positive_random_features,
    cases=tried(_draws, DRAWS),
    slips="""
        without the length of x
            ` - half_squares` ->
            the mean of e^{w . x} is e^{|x|^2 / 2}: half of the squared length must come off the exponent
        the whole squared length
            ` / 2` ->
            half of the squared length comes off, {eq}`positive-features-are-unbiased`
        the length of omega
            - half_squares -> - (omega * omega).sum(axis=1) / 2
            it is the length of x, not that of omega, that comes off the exponent
        the length, not its square
            (x * x).sum(axis=-1, keepdims=True) -> np.linalg.norm(x, axis=-1, keepdims=True)
            the *squared* length comes off the exponent
        not averaged
            ` / np.sqrt(len(omega))` ->
            a product of two rows adds m terms: divide each feature by the root of m, so that the sum becomes a mean
        divided by m
            np.sqrt(len(omega)) -> len(omega)
            a product holds two features: divided by m each, it is divided by m squared. Use the root of m
        the root of d_k
            len(omega) -> x.shape[-1]
            m counts the draws, rows of `omega`, not the features of x
        x divided by the fourth root of d
                half_squares =
                ->
                x = x / x.shape[-1] ** 0.25
                half_squares =
            nothing is divided by a root of d here: the kernel is e^{q . k}
        one length for all rows
            sum(axis=-1, keepdims=True) -> sum()
            each row has a length of its own: sum over the last axis only, with `keepdims=True`
        shifted by the largest exponent
            - half_squares -> - (x @ omega.T).max(axis=-1, keepdims=True)
            no row may be scaled: taking the largest exponent off changes the product, which is to be e^{q . k} on average
        cosines
            np.exp(x @ omega.T - half_squares) -> np.cos(x @ omega.T) * np.exp(half_squares)
            these features can be negative: the task asks for the positive ones, {eq}`positive-features-are-unbiased`
        plus for minus
            omega.T - half_squares -> omega.T + half_squares
            half of the squared length is subtracted: it takes away what the mean over the draws adds
    """,
    hints="""
        Two parts: the exponent of {eq}`positive-features-are-unbiased`, and what turns a sum over m draws into a mean.
        `x @ omega.T` has shape (..., T, m); the squared length of each row of x needs `keepdims=True`.
        `np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(omega))`.
    """,
    why=r"""
        A dot product of two rows adds $m$ products of features. With $1/\sqrt{m}$ on each side it is their mean, whose expectation is the
        kernel and whose variance is {eq}`variance-of-positive-features` divided by $m$. One exponential of the whole exponent is safer than
        a product of two that may overflow and vanish.
    """,
)
def my_features(x, omega):
    r"""(..., T, d) and draws (m, d) -> positive features (..., T, m), {eq}`positive-features-are-unbiased`.

    Write `my_features(x, omega)`: positive random features whose dot products estimate $e^{q \cdot k}$ without bias,
    {eq}`positive-features-are-unbiased`. `x` has shape `(..., T, d)` with none or one leading axis, `omega` holds $m$ draws from $N(0,
    I)$, shape `(m, d)`. Return `(..., T, m)`, such that the plain dot product of a row for $q$ and a row for $k$ is the **mean** over the
    $m$ draws; each feature carries the same factor for it. Nothing is divided by $\sqrt{d}$.
    """
    half_squares = (x * x).sum(axis=-1, keepdims=True) / 2
    return np.exp(x @ omega.T - half_squares) / np.sqrt(len(omega))


def _sixteen_points(rng):
    return {name: rng.uniform(1.0, 5.0, size=16) for name in ("m", "k", "v")}


@asked(
    "random-feature-crossover",
    "When do random features pay?",
    kind="derive",
    equation="linear-attention-crossover",
    points=2,
    difficulty=2,
    minutes=10,
    trains="counting both orders, features included",
    cases=[_sixteen_points],
    slips="""
        the lesson's crossover as it stands
            m * (2 * k + 3 * v) -> 2 * k * v
            {eq}`linear-attention-crossover` is for k features without a map and two products with the state; count this layer anew
        the feature map forgotten
            2 * k + 3 * v -> 3 * v
            the projections of queries and keys are products too: 2 m k for each row of each
        the third product forgotten
            3 * v -> 2 * v
            this memory takes three products with the state for each position: the delta rule asks, corrects and reads
        only queries projected
            2 * k -> k
            queries and keys are both mapped to features
        the state with k rows
            m * (2 * k + 3 * v) -> (2 * m * k + 3 * k * v)
            after the feature map queries and keys have m features: the state is m by v
        scores of m features
            / (k + v) -> / (m + v)
            softmax attention works with the k features as they are: T^2 products of k and of v terms
        turned over
            m * (2 * k + 3 * v) / (k + v) -> (k + v) / (m * (2 * k + 3 * v))
            solve for T: one power of T is left on the side of the scores
        scores counted once
            m * -> 2 * m *
            a multiply-add counts 2 on both sides
    """,
    hints="""
        Write both counts with T, set them equal, and divide by T.
        Softmax: 2 T^2 (k + v). The other side: 2 T m k for the queries, as much for the keys, and three products of 2 T m v.
        2 T (k + v) = 4 m k + 6 m v.
    """,
    why=r"""
        For each position: $2 m k$ for its query, $2 m k$ for its key, $3 \cdot 2 m v$ for the memory. So
        $2 T (k + v) = 4 m k + 6 m v$. With $k = v$ it is $2.5\, m$: 256 random features need fewer FLOPs beyond 640 positions.
    """,
)
def my_crossover(m, k, v):
    r"""Queries and keys of $k$ features are mapped to $m$ random features (a product with an $m \times k$ matrix for each query and
    for each key); then a memory of $m \times v$ numbers works by the **delta rule**: three products with it at every position
    (ask, correct, read), $2 m v$ FLOPs each. At which length $T$ does this take as many FLOPs as softmax attention without a
    mask, $2 T^2 (k + v)$? A multiply-add counts 2, everything else nothing. Write $T$ in the symbols `m`, `k`, `v` with sums,
    products and powers.
    """
    return m * (2 * k + 3 * v) / (k + v)


def _heads(rng, largest, n_heads, length, m, d_v):
    query, key = rng.uniform(0.05 * largest, largest, size=(2, n_heads, length, m))
    return {"query": query, "key": key, "value": rng.normal(size=(n_heads, length, d_v))}


def _first_keys_of_1e_12(rng):
    """What later keys add must not touch the sums of earlier ones, not even by rounding."""
    inputs = _heads(rng, 2.0, 2, 7, 3, 5)
    inputs["key"][:, :3] *= 1e-12
    return inputs


HEADS = """
two heads: 2 2 5 3 7
three heads, wide features: 2 3 7 11 2
one head: 2 1 11 2 5
one position: 2 3 1 5 2
features of a millionth: 2e-6 2 7 3 5
"""


@asked(
    "normalised-linear-attention",
    "Linear attention, normalised",
    kind="write",
    equation="normalised-linear-attention",
    points=3,
    difficulty=3,
    minutes=12,
    trains="a state and its normaliser, head by head",
    judged_by=lambda query, key, value: linear_attention(query, key, value, feature_map=np.abs, normalize=True),
    cases=[tried(_heads, HEADS), _first_keys_of_1e_12],
    slips="""
        only the last key counted
            kernel.sum(axis=-1, keepdims=True) -> (query * key).sum(axis=-1, keepdims=True)
            the normaliser adds up: n_t = n_{t-1} + phi(k_t), not the last key alone
        summed over heads
            sum(axis=-1, keepdims=True) -> sum(axis=-1, keepdims=True).sum(axis=0, keepdims=True)
            each head has a normaliser of its own; yours is summed over the heads
        a normaliser one key behind
                return kernel @ value / kernel.sum(axis=-1, keepdims=True)
                ->
                behind = kernel.sum(axis=-1, keepdims=True) - (query * key).sum(axis=-1, keepdims=True)
                return kernel @ value / np.where(behind == 0, 1, behind)
            n_t holds the key of position t too: add it before you divide
        features of features
            (query @ key.swapaxes(-1, -2)) -> ((query + 1) @ (key + 1).swapaxes(-1, -2))
            `query` and `key` are features already: no elu(x) + 1 here
        softmax
            (query @ key.swapaxes(-1, -2)) -> np.exp(query @ key.swapaxes(-1, -2))
            no exponential here: the weights are the products of the features, divided by their sum
        not normalised
            ` / kernel.sum(axis=-1, keepdims=True)` ->
            divide by n_t . phi(q_t), {eq}`normalised-linear-attention`
        divided by the number of keys
            kernel.sum(axis=-1, keepdims=True) -> np.arange(1, query.shape[-2] + 1)[:, None]
            divide by the sum of the weights, not by how many there are
        a normaliser of all keys
            kernel.sum(axis=-1, keepdims=True) -> (query @ key.sum(axis=-2)[..., None])
            the normaliser is causal too: position t sums the keys up to t
        not causal
            np.tri(query.shape[-2]) * (query -> (query
            position t reads the keys j <= t only
        read before the write
            np.tri(query.shape[-2]) -> np.tri(query.shape[-2], k=-1)
            position t sees its own key as well: j <= t
        turned in time
            np.tri(query.shape[-2]) -> np.tri(query.shape[-2]).T
            you let position t read the keys from t on; it reads those up to t
        an inverted mask
            np.tri(query.shape[-2]) -> (1 - np.tri(query.shape[-2]))
            kept is the triangle of the keys up to the query; yours keeps the keys behind it
        one position too many
            np.tri(query.shape[-2]) -> np.tri(query.shape[-2], k=1)
            the last key that a query sees is its own; yours sees the next one, too
        each key divided by its own sum
            kernel @ value / kernel.sum(axis=-1, keepdims=True) -> kernel @ (value / key.sum(axis=-1, keepdims=True))
            the normaliser is the sum of the kernel over the keys that a query reads: it belongs to the query, not to a key
    """,
    hints="""
        Which test did the lesson use for a normaliser? Put ones for the values.
        Parallel: weights (H, T, T), masked with `np.tri(T)`, divided by their row sums. Recurrent: S and n for each head.
        `kernel = np.tri(T) * (query @ key.swapaxes(-1, -2))`, then `kernel @ value / kernel.sum(-1, keepdims=True)`.
    """,
    why=r"""
        $n_t \cdot \phi(q_t) = \sum_{j \le t} \phi(k_j) \cdot \phi(q_t)$ is the sum of row $t$ of the masked kernel. This
        is the parallel form, which costs $T^2$; `np.cumsum(key[..., :, None] * value[..., None, :], axis=-3)` gives all states, and
        the recurrent form.
    """,
)
def my_linear_attention(query, key, value):
    r"""Positive features (H, T, m), (H, T, m) and values (H, T, v) -> averages
    (H, T, v), {eq}`normalised-linear-attention`.

    Write causal linear attention with a normaliser, {eq}`normalised-linear-attention`: `my_linear_attention(query, key, value)`. `query`
    and `key`, both `(H, T, m)`, are already features, all positive, some tiny
    {case}`features of a millionth` {every}`key.min() > 0`; `value` is `(H, T, v)`; $H$ heads are separate problems.
    Return `(H, T, v)`. Position $t$ reads the keys $j \le t$. There is no scale.
    """
    kernel = np.tri(query.shape[-2]) * (query @ key.swapaxes(-1, -2))
    return kernel @ value / kernel.sum(axis=-1, keepdims=True)


def _text(normal, length, d_k, d_v, chunk):
    return {
        "query": normal(length, d_k),
        "key": normal(length, d_k),
        "value": normal(length, d_v),
        "state": normal(d_k, d_v),
        "chunk": chunk,
    }


TEXTS = """
seven positions by threes: 7 3 2 3
eleven by fours: 11 2 5 4
one at a time: 5 3 7 1
a chunk longer than the text: 5 2 3 13
one position: 1 3 2 4
"""


@asked(
    "chunked-linear-attention",
    "Chunk by chunk",
    kind="write",
    equation="chunked-linear-attention",
    points=3,
    difficulty=3,
    minutes=15,
    trains="passing a state from chunk to chunk",
    judged_by=lambda query, key, value, state, chunk: linear_attention(query, key, value, initial_state=state, return_state=True),
    cases=tried(_text, TEXTS),
    slips="""
        the state not read
            `q @ state + ` ->
            each chunk also reads the state: Q_c S_c is missing
        only the given state is read
            pieces = [] -> first, pieces = state, [] ;; q @ state -> q @ first
            the state must grow: later chunks read what earlier chunks have written
        the state replaced
            state + k.T @ v -> k.T @ v
            S_{c+1} = S_c + K_c^T V_c: yours keeps the last chunk only
        written before it is read
            q @ state -> q @ (state + k.T @ v)
            read S_c first: with the chunk already written in, its pairs count twice and the future leaks in
        no mask inside
            np.tri(len(q)) * (q @ k.T) -> q @ k.T
            inside a chunk position t reads j <= t only: mask the scores
        own key hidden
            np.tri(len(q)) -> np.tri(len(q), k=-1)
            M has ones on its diagonal: position t sees its own key
        positions left over dropped
                range(0, len(query), chunk) -> range(0, len(query) // chunk * chunk, chunk)
                ;;
                np.concatenate(pieces) -> np.concatenate([*pieces, np.zeros((len(query) % chunk, value.shape[1]))])
            the last chunk may be shorter than the others, and counts all the same
        the state left as it came
            pieces = [] -> first, pieces = state, [] ;; pieces), state -> pieces), first.copy()
            the output is right; return the state after the last position, not the one that came in
        what came in is missing from the state
            pieces), state -> pieces), key.T @ value
            the output is right; the state that is returned holds what was written before, too
        divided by the root of d
            np.concatenate(pieces), state -> np.concatenate(pieces) / np.sqrt(key.shape[1]), state
            there is no scale in this task
        the mask inside transposed
            np.tri(len(q)) -> np.tri(len(q)).T
            within a chunk a position reads itself and what is before it: row i of the triangle keeps the columns up to i
        one position too many inside
            np.tri(len(q)) -> np.tri(len(q), k=1)
            within a chunk the last key that a position reads is its own; yours reads the next one, too
        the given state forgotten
            pieces = [] -> pieces, state = [], np.zeros_like(state)
            `state` holds what was written before: position 0 reads it, and it is part of what is returned
    """,
    hints="""
        A loop over `range(0, T, chunk)`. What does a chunk read, and what does it leave behind?
        Slices beyond the end are simply shorter. The mask of a chunk of C rows is `np.tri(C)`.
        `q @ state + (np.tri(len(q)) * (q @ k.T)) @ v`, and only then `state = state + k.T @ v`.
    """,
    why="""
        Everything before the chunk is in the state, everything inside it in the masked product. `state = state + ...`
        makes a new array; `+=` would change the caller's.
    """,
)
def my_chunked(query, key, value, state, chunk):
    r"""(T, d), (T, d), (T, v), state (d, v), positions in a chunk -> output (T, v),
    state (d, v), {eq}`chunked-linear-attention`.

    Write {eq}`chunked-linear-attention`: `my_chunked(query, key, value, state, chunk)` for one head, without normaliser and without
    scale. `query`, `key` `(T, d)` hold features of any sign {case}`seven positions by threes`, `value` `(T, v)`, `state` `(d, v)`
    what was written before, and `chunk` is a positive integer; the last chunk may be shorter {case}`eleven by fours`, and `chunk`
    may exceed $T$ {case}`a chunk longer than the text`. Return the tuple of the output `(T, v)` and the state after the last
    position, `(d, v)`, as new arrays. Position $t$ reads `state` and the pairs $j \le t$.
    """
    pieces = []
    for start in range(0, len(query), chunk):
        q, k, v = query[start : start + chunk], key[start : start + chunk], value[start : start + chunk]
        pieces.append(q @ state + (np.tri(len(q)) * (q @ k.T)) @ v)
        state = state + k.T @ v
    return np.concatenate(pieces), state


ORDER = [
    note(
        "title",
        """
        Each stands for itself, so take them in any order. {task}`positive-random-features`, {task}`random-feature-crossover`,
        {task}`normalised-linear-attention` and the first two answers in LaTeX lean on *Deeper* sections, the others on the core.

        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 and must not be changed. Rows are
        positions. A state has one row for each key feature and one column for each value feature.
    """,
    ),
    "positive-random-features",
    "random-feature-crossover",
    "normalised-linear-attention",
    "chunked-linear-attention",
    "repair-decay-gate",
    "read-interference",
    "three-delta-writes",
    "delta-rule",
    note(
        "answers-in-latex",
        """
        The last three answers are written in LaTeX, and any form that is equal counts. To see how an answer is understood, `from
        attn_course import read` and call, for instance, `read("delta-rule-multiplied-out", my_derivation)`; what cannot be read
        is no attempt.
    """,
    ),
    "delta-rule-multiplied-out",
    "linear-attention-without-state",
    "fading-state-unrolled",
    "one-chunk",
    "one-delta-write",
]
