"""Tasks on gates, interference and the delta rule."""

from typing import Any

import numpy as np

from attn_course.reference import delta_rule_attention, linear_attention
from attn_course.tasks.asked import asked, tried
from attn_course.tasks.core import every


def _gated(rng, gates, length, d_k, d_v):
    gate = rng.uniform(0.2, 0.9, size=(length, d_k))
    if gates == "one_tiny":
        gate[:, 1] *= 1e-60
    elif gates == "far_apart":
        gate = np.where(gate < 0.5, 0.005 * gate, 1.0 - 0.001 * gate)
    shapes = {"query": (length, d_k), "key": (length, d_k), "value": (length, d_v)}
    return {**{role: rng.normal(size=shape) for role, shape in shapes.items()}, "gate": gate}


GATED = """
five positions: middling 5 3 2
eleven positions, wide values: middling 11 2 7
one position: middling 1 3 5
gates from a thousandth to nearly 1: far_apart 7 2 3
gates so small that their product is 0: one_tiny 7 3 5
"""


@asked(
    "repair-decay-gate",
    "Repair the gate",
    kind="repair",
    equation="linear-attention-with-decay",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the order of fading, writing and reading",
    judged_by=lambda query, key, value, gate: linear_attention(query, key, value, log_decay=np.log(gate)),
    broken=["as it was"],
    cases=tried(_gated, GATED),
    slips="""
        as it was
                state = gate[t][:, None] * state
                    state = state + np.outer(key[t], value[t])
                    output[t] = state.T @ query[t]
                ->
                output[t] = state.T @ query[t]
                    state = state + np.outer(key[t], value[t])
                    state = gate[t][:, None] * state
            position t reads after it has written, and the gate comes before both
        gate after the write
                gate[t][:, None] * state -> state
                ;;
                state + np.outer(key[t], value[t]) -> gate[t][:, None] * (state + np.outer(key[t], value[t]))
            the gate of step t belongs to the past: it must not weaken what step t writes
        read before the write
                state = state + np.outer(key[t], value[t])
                    output[t] = state.T @ query[t]
                ->
                output[t] = state.T @ query[t]
                    state = state + np.outer(key[t], value[t])
            the order of gate and write is right; position t must see its own key, j <= t
        gate after the reading
                state = gate[t][:, None] * state
                    state = state + np.outer(key[t], value[t])
                    output[t] = state.T @ query[t]
                ->
                state = state + np.outer(key[t], value[t])
                    output[t] = state.T @ query[t]
                    state = gate[t][:, None] * state
            a query at t meets the gate of step t: fade first, then write, then read
        no gate
            gate[t][:, None] * state -> state
            the state fades by gate[t] before each write, {eq}`linear-attention-with-decay`
        one gate for all features
            gate[t][:, None] -> gate[t].mean()
            each feature of the key has a gate of its own: row r of the state is multiplied by gate[t, r]
        the write gated, too
            np.outer(key[t] -> np.outer((1 - gate[t]) * key[t]
            {eq}`linear-attention-with-decay` writes the whole key: no factor 1 - gate on it
        the past forgotten entirely
            gate[t][:, None] -> 0
            the state is carried on from step to step; you return what the own position writes
    """,
    hints="""
        Three things happen at each step: fade, write, read. Which order does {eq}`linear-attention-with-decay` ask for?
        In the sum of {eq}`linear-attention-with-decay` key j meets the gates l = j + 1 to t: not its own, but that of the position that
            reads.
        Fade the state, add the outer product, and only then read it.
    """,
    why="""
        Fade, write, read. In {eq}`linear-attention-with-decay` the product of gates runs from $j + 1$ to $t$: the gate of the
        position that writes is not in it, that of the position that reads is.
    """,
)
def gated_attention(query, key, value, gate):
    """Gated linear attention: (T, d_k), (T, d_k), (T, d_v), gates (T, d_k) ->
    (T, d_v).

    The function below should compute gated linear attention, {eq}`linear-attention-with-decay`: `query`, `key` `(T, d_k)`, `value`
    `(T, d_v)`, and `gate` `(T, d_k)` with entries above 0 and below 1 {every}`0 < gate.min() and gate.max() < 1`, what each key
    feature keeps at each step. It returns `(T, d_v)`; no normaliser, no scale, the state begins at zero. It raises no error, and
    its steps stand in the wrong order. Repair it.
    """
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t][:, None] * state
        state = state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
    return output


_OVERLAPS = np.array([[1.0, 0.5, -0.2, 0.1], [0.5, 1.0, 0.3, 0.0], [-0.2, 0.3, 1.0, 0.6], [0.1, 0.0, 0.6, 1.0]])


def _overlaps_to_read() -> dict[str, Any]:
    names = ["key 0", "key 1", "key 2", "key 3"]
    rows = [f"{name}: {', '.join(f'{overlap:.1f}' for overlap in row)}." for name, row in zip(names, _OVERLAPS, strict=True)]
    return {
        "matrix": _OVERLAPS,
        "title": "Dot products of four unit keys",
        "alt": "Heatmap of the dot products of each of four keys with keys 0 to 3, all exact. " + " ".join(rows),
        "rows": names,
        "columns": names,
        "row_label": "",
        "column_label": "",
        "signed": True,
        "digits": 1,
        "color_label": "dot product",
    }


@asked(
    "read-interference",
    "Read interference off a figure",
    kind="figure",
    equation="recall-signal-and-interference",
    points=2,
    difficulty=2,
    minutes=8,
    trains="signal and interference",
    figure="charts.heatmap",
    tolerance=1e-6,
    figure_data=_overlaps_to_read,
    slips="""
        the value alone
            3.6 -> 2.0
            {eq}`recall-signal-and-interference`: every other value joins in, as far as its key overlaps with key 2
        interference alone
            3.6 -> 1.6
            the key itself has length 1: its own value comes on top of the interference
        signs of the overlaps dropped
            3.6 -> 4.0
            an overlap may be negative: key 0 takes something away
        the sign of a value dropped
            3.6 -> 4.8
            the value of key 1 is -2, and counts with its sign
        the least disturbed key
            2, 0.37 -> 0, 0.37
            you chose the smallest sum of squares in a row (without the 1); the question asks for the largest
        plain overlaps added
            2, 0.37 -> 1, 0.37
            noise comes from the squares of the overlaps: add these up in each row, without the 1
        the diagonal counted
            0.37 -> 1.37
            the noise is what the *others* add: leave the key itself out
        a root taken
            0.37 -> 0.37**0.5
            the question asks for the mean square itself, not for its root
        overlaps not squared
            0.37 -> 0.7
            the mean square of a sum of independent values is the sum of the *squared* overlaps
    """,
    hints="""
        Row i of the figure holds k_i . k_j for all j. Which row belongs to the first question?
        First: its own value plus the three other values times their overlaps. Then: squares of the off-diagonal entries of a row.
        First: 2 + (-0.2)(1) + (0.3)(-2) + (0.6)(4). Third: 0.1^2 + 0^2 + 0.6^2.
    """,
    why=r"""
        $2 - 0.2 \cdot 1 - 0.3 \cdot 2 + 0.6 \cdot 4 = 3.6$. Independent values of mean 0 add their variances, each times
        its squared overlap: .30, .34, .49 and .37 in the four rows, without the diagonal. Key 2 has the largest.
    """,
)
def my_reading():
    """The cell below shows the dot products of four unit keys; the numbers are exact, so nothing needs rounding. A state is the sum of
    outer products $k_j v_j$ with single numbers as values, {eq}`recall-signal-and-interference`. Write `my_reading = (a, b, c)`:

    - `a`: the values of keys 0 to 3 are 1, -2, 2 and 4. What does reading with key 2 return?
    - `b`: now the values are random, independent, of mean 0 and variance 1. For which key is the mean square of the
      interference largest? Write its number, 0 to 3.
    - `c`: how large is that mean square for key 3?
    """
    return (3.6, 2, 0.37)


@asked(
    "three-delta-writes",
    "Three writes by the delta rule",
    kind="predict",
    equation="delta-rule",
    points=2,
    difficulty=3,
    minutes=8,
    trains="correcting instead of adding",
    variants=every(c=(0.6, 0.4, 0.7), beta=(0.5,), values=((2, -1, 4), (3, -2, 1), (-2, 3, 5))),
    digits=4,
    slips="""
        Hebb's rule
                beta * (values[0] - 0) -> values[0]
                ;;
                beta * (values[1] - c * s_a) -> values[1]
                ;;
                beta * (values[2] - (s_a + c * s_b)) -> values[2]
            the delta rule writes what is missing, not the value: ask the state first
        Hebb's rule with a step size
            values[1] - c * s_a -> values[1] ;; values[2] - (s_a + c * s_b) -> values[2]
            a step size alone makes no delta rule: subtract what the state answers to the key
        a whole step
                s_a = beta
                ->
                beta = 1.0
                s_a = beta
            the step size is beta: only a part of what is missing is written
        keys at right angles
                s_a = beta
                ->
                c = 0.0
                s_a = beta
            the keys overlap: a . b = c, so a write under a moves what b reads
        read with a
            return c * s_a + s_b -> return s_a + c * s_b
            the question asks what key b reads
        before the third write
            s_a = s_a + beta * (values[2] - (s_a + c * s_b)) ->
            there is a third write, under a, and it disturbs b
        the value written last under b
            return c * s_a + s_b -> return values[1]
            with half steps, and a write under a in between, b does not read its value exactly
    """,
    hints="""
        Keep the state as s_a times a plus s_b times b: each write changes one of the two numbers.
        Reading a gives s_a + c s_b, reading b gives c s_a + s_b. The first write makes s_a = beta v_1.
        s_b = beta (v_2 - c s_a), then s_a grows by beta (v_3 - (s_a + c s_b)).
    """,
    why="""
        The state is $s_a a + s_b b$: here $s_a = 1$, then $s_b = -0.8$, then $s_a = 2.74$. So $b$ reads $0.844$, far from its value
        $-1$: only half a step was taken, and the write under $a$ came on top.
    """,
)
def my_read(c, beta, values):
    r"""Two unit keys $a$, $b$ have $a \cdot b = c$; values are single numbers. A state that begins at zero is written three times by the
    delta rule, {eq}`delta-rule`, with the step size $\beta$: first $v_1$ under $a$, then $v_2$ under $b$, then $v_3$ under $a$. The
    cell below prints your $c$, $\beta$ and the `values` $(v_1, v_2, v_3)$. What does reading with $b$ return? Write the number.
    """
    s_a = beta * (values[0] - 0)
    s_b = beta * (values[1] - c * s_a)
    s_a = s_a + beta * (values[2] - (s_a + c * s_b))
    return c * s_a + s_b


def _reference(query, key, value, beta, state):
    return delta_rule_attention(query, key, value, beta, initial_state=state, return_state=True)


def _writes(rng, longest, length, d_k, d_v):
    """Keys from 0.8 to `longest` long."""
    shapes = {"query": (length, d_k), "key": (length, d_k), "value": (length, d_v)}
    arrays = {role: rng.normal(size=shape) for role, shape in shapes.items()}
    arrays["key"] *= np.linspace(0.8, longest, length)[:, None] / np.linalg.norm(arrays["key"], axis=1, keepdims=True)
    return {**arrays, "beta": rng.uniform(0.2, 0.9, size=(length, 1)), "state": rng.normal(size=(d_k, d_v))}


WRITES = """
five positions: 0.8 5 3 2
eleven positions, wide values: 0.8 11 2 7
two positions: 0.8 2 3 5
one position: 0.8 1 3 5
keys shorter and longer than 1: 1.4 7 3 2
"""


@asked(
    "delta-rule",
    "The delta rule",
    kind="write",
    equation="delta-rule",
    points=3,
    difficulty=4,
    minutes=15,
    trains="reading before writing, with a state from before",
    judged_by=_reference,
    cases=tried(_writes, WRITES),
    slips="""
        Hebb's rule
            value[t] - answer -> value[t]
            you add the value, whatever the state holds under the key: that is Hebb's rule
        erased entirely, written in part
            beta[t] * (value[t] - answer) -> beta[t] * value[t] - answer
            beta multiplies the whole correction v - S^T k, not only the value
        beta forgotten
            beta[t] * (value[t] - answer) -> value[t] - answer
            the correction is multiplied by beta[t]
        everything decays
            state + np.outer(key[t], beta[t] * (value[t] - answer)) -> (1 - beta[t]) * state + np.outer(key[t], beta[t] * value[t])
            only what is stored along the key is erased, not the whole state, {eq}`erase-then-write`
        uphill
            state + np.outer -> state - np.outer
            the correction is value minus answer: yours moves the state away from the value
        one beta for all positions
            beta[t] -> beta.mean()
            each position has its own beta
        divided by the length of the key
            (value[t] - answer)) -> (value[t] - answer)) / (key[t] @ key[t])
            {eq}`delta-rule` does not divide by |k|^2: the keys of the cases are shorter than 1 on purpose
        keys brought to length 1
                answer = state.T @ key[t]
                ->
                unit = key[t] / np.linalg.norm(key[t])
                    answer = state.T @ unit
                ;;
                np.outer(key[t] -> np.outer(unit
            use the keys as they come: nothing is divided by their length
        asked with the query
            state.T @ key[t] -> state.T @ query[t]
            what is missing is the value minus what the state has under the *key*; the query only reads, afterwards
        beta on the erasing only
            beta[t] * (value[t] - answer) -> value[t] - beta[t] * answer
            beta multiplies the whole correction v - S^T k, the value too
        all corrections from the state that came in
            output = np.zeros -> first, output = state, np.zeros ;; state.T @ key[t] -> first.T @ key[t]
            ask the state of the step before, which holds what the earlier positions wrote, not the one that came in
        the state left as it came
            output = np.zeros -> first, output = state, np.zeros ;; return output, state -> return output, first.copy()
            the output is right; return the state after the last position, not the one that came in
        read before the write
                state = state + np.outer(key[t], beta[t] * (value[t] - answer))
                    output[t] = state.T @ query[t]
                ->
                output[t] = state.T @ query[t]
                    state = state + np.outer(key[t], beta[t] * (value[t] - answer))
            position t reads after it has written
        the state from before ignored
            output = np.zeros -> state, output = np.zeros_like(state), np.zeros
            begin with the given `state`, not with zeros
        beta twice
            beta[t] * (value[t] - answer) -> beta[t] ** 2 * (value[t] - answer)
            the step size stands in front of the correction once
    """,
    hints="""
        For each position: ask, correct, read.
        `answer = state.T @ key[t]` has shape (d_v,); the correction is an outer product of shape (d_k, d_v).
        `state = state + np.outer(key[t], beta[t] * (value[t] - answer))`, then `output[t] = state.T @ query[t]`.
    """,
    why=r"""
        Ask, correct, read. What is written is the difference, times the step size; with $\beta_t = 0$ a position only reads.
    """,
)
def my_delta_rule(query, key, value, beta, state):
    """(T, d_k), (T, d_k), (T, d_v), (T, 1), state (d_k, d_v) -> output (T, d_v),
    state (d_k, d_v), {eq}`delta-rule`.

    Write the delta rule, {eq}`delta-rule`, for one head: `my_delta_rule(query, key, value, beta, state)` takes `query`, `key` `(T,
    d_k)`, `value` `(T, d_v)`, `beta` `(T, 1)`, one step size for each position, and `state` `(d_k, d_v)` from before. Keys need
    not have length 1 {case}`keys shorter and longer than 1`; nothing is divided by their length. Return the tuple of the output `(T, d_v)`
    and the last state `(d_k, d_v)`, as new arrays. Position $t$ reads with `query[t]` after it has written; there is no scale.
    """
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        answer = state.T @ key[t]
        state = state + np.outer(key[t], beta[t] * (value[t] - answer))
        output[t] = state.T @ query[t]
    return output, state
