"""What the lesson on attention without softmax asks its reader before it shows its own."""

import numpy as np

from attn_course.reference import delta_rule_attention, linear_attention
from attn_course.tasks.asked import asked, tried


def _chunk(normal, length, d_k, d_v):
    return {"query": normal(length, d_k), "key": normal(length, d_k), "value": normal(length, d_v), "state": normal(d_k, d_v)}


CHUNKS = """
five positions: 5 3 2
wide values: 7 2 5
one position: 1 3 4
more features than positions: 3 7 2
"""


@asked(
    "one-chunk",
    "One chunk",
    kind="write",
    equation="chunked-linear-attention",
    points=1,
    difficulty=2,
    minutes=6,
    trains="what a chunk reads from the state, and what it leaves there",
    your_turn=True,
    judged_by=lambda query, key, value, state: linear_attention(query, key, value, initial_state=state, return_state=True),
    cases=tried(_chunk, CHUNKS),
    slips="""
        the state not read
            `query @ state + ` ->
            the positions before the chunk are missing: each query also reads the state that came in
        no mask inside
            np.tri(len(query)) * (query @ key.T) -> query @ key.T
            inside a chunk a position reads itself and the positions before it: mask the scores
        own key hidden
            np.tri(len(query)) -> np.tri(len(query), k=-1)
            a position reads its own key too: M has ones on its diagonal
        the mask inside transposed
            np.tri(len(query)) -> np.tri(len(query)).T
            row i of the mask keeps the columns up to i: yours lets a position read itself and what comes later
        written before it is read
            query @ state -> query @ (state + key.T @ value)
            read the state as it came in: with the chunk already written into it, its pairs count twice
        the state left as it came
            output, state + key.T @ value -> output, state.copy()
            the output is right; the chunk must also write its own pairs into the state
        the state replaced
            output, state + key.T @ value -> output, key.T @ value
            the output is right; the new state keeps what was written before the chunk
    """,
    hints="""
        There are two products for the output, one for what came before the chunk and one for what is inside it.
        `np.tri(C)` is the mask of a chunk of C rows, and `*` multiplies entry by entry.
        The output is `query @ state` plus the masked scores times `value`; then `key.T @ value` is added to the state.
    """,
)
def my_chunk(query, key, value, state):
    r"""The outputs of one chunk, and the state after it.

    Write `my_chunk(query, key, value, state)` for one chunk of $C$ positions: `query` and `key`, $(C, d_k)$, `value`, $(C, d_v)$, and the
    state that comes in, $(d_k, d_v)$. It returns the outputs $O_c$, $(C, d_v)$, and the new state $S_{c+1}$ as a new array. The feature
    map is the identity.
    """
    output = query @ state + (np.tri(len(query)) * (query @ key.T)) @ value
    return output, state + key.T @ value


def _write(rng, d_k, d_v):
    pair = {"key": rng.normal(size=d_k), "value": rng.normal(size=d_v), "beta": rng.uniform(0.2, 0.9)}
    return {"state": rng.normal(size=(d_k, d_v)), **pair}


STATES = """
three by two: 3 2
two by five: 2 5
one feature: 1 3
one value: 5 1
"""


def _written(state, key, value, beta):
    row, step = key[None], np.array([[beta]])
    return delta_rule_attention(row, row, value[None], step, initial_state=state, return_state=True)[1]


@asked(
    "one-delta-write",
    "One write of the delta rule",
    kind="write",
    equation="delta-rule",
    points=1,
    difficulty=1,
    minutes=4,
    trains="ask the state, then write what is missing",
    your_turn=True,
    judged_by=_written,
    cases=tried(_write, STATES),
    slips="""
        the value itself is written
            value - state.T @ key -> value
            ask the state first: what is written is the value minus what the state returns for the key
        beta forgotten
            beta * (value - state.T @ key) -> value - state.T @ key
            beta multiplies what is written
        beta on the value only
            beta * (value - state.T @ key) -> beta * value - state.T @ key
            beta multiplies the whole difference, not only the value
        the wrong way
            value - state.T @ key -> state.T @ key - value
            what is missing is the value minus what is there, not the other way round
        only what is added
            return state + np.outer -> return np.outer
            return the whole new state, the old one plus what is written
    """,
    hints="""
        What does the state return for this key now? It has one row for each entry of the key.
        `state.T @ key` has as many entries as the value, and an outer product of key and difference has the shape of the state.
        The state plus `np.outer(key, ...)`, with beta times the difference in the place of the dots.
    """,
)
def my_write(state, key, value, beta):
    r"""The state after one write.

    Write `my_write(state, key, value, beta)` for a state $(d_k, d_v)$, one key $(d_k,)$, one value $(d_v,)$ and a number $\beta$. It
    returns the new state as a new array. Nothing is divided by the length of the key.
    """
    return state + np.outer(key, beta * (value - state.T @ key))
