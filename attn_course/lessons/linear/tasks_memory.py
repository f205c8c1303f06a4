"""Tasks on gates, interference and the delta rule; tasks.py lists them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from attn_course.reference import delta_rule_attention, linear_attention
from attn_course.tasks.core import Case, Task, Wrong, every


def _gated(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray, *, order: str = "gwr", own: str = "features"
) -> np.ndarray:
    """Gated linear attention whose step gates (g), writes (w) and reads (r) in the given order."""
    state, rows = np.zeros((key.shape[1], value.shape[1])), []
    for t in range(len(query)):
        for step in order:
            if step == "g":
                state = (gate[t][:, None] if own == "features" else gate[t].mean()) * state
            elif step == "w":
                state = state + np.outer(key[t], value[t])
            else:
                rows.append(state.T @ query[t])
    return np.array(rows)


def _gated_broken(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    gate: np.ndarray,
) -> np.ndarray:
    """Gated linear attention: (T, d_k), (T, d_k), (T, d_v), gates (T, d_k) -> (T, d_v)."""
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        output[t] = state.T @ query[t]
        state = state + np.outer(key[t], value[t])
        state = gate[t][:, None] * state
    return output


def _gated_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, length, d_k, d_v in (
        ("five positions", 5, 3, 2),
        ("eleven positions, wide values", 11, 2, 7),
        ("one position", 1, 3, 5),
        ("gates from a thousandth to nearly 1", 7, 2, 3),
        ("gates so small that their product is 0", 7, 3, 5),
    ):
        gate = rng.uniform(0.2, 0.9, size=(length, d_k))
        if "small" in name:
            gate[:, 1] *= 1e-60
        elif name.startswith("gates"):
            gate = np.where(gate < 0.5, 0.005 * gate, 1.0 - 0.001 * gate)
        shapes = {"query": (length, d_k), "key": (length, d_k), "value": (length, d_v)}
        cases.append(Case(name, **{role: rng.normal(size=shape) for role, shape in shapes.items()}, gate=gate))
    return cases


GATES = Task(
    id="repair-decay-gate",
    title="Repair the gate",
    entry="gated_attention",
    kind="repair",
    equation="linear-attention-with-decay",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the order of fading, writing and reading",
    broken=_gated_broken,
    answer=lambda query, key, value, gate: linear_attention(query, key, value, log_decay=np.log(gate)),
    cases=_gated_cases,
    wrong=[
        Wrong(
            "as it was",
            lambda *inputs: _gated(*inputs, order="rwg"),
            "position t reads after it has written, and the gate comes before both",
        ),
        Wrong(
            "gate after the write",
            lambda *inputs: _gated(*inputs, order="wgr"),
            "the gate of step t belongs to the past: it must not weaken what step t writes",
        ),
        Wrong(
            "read before the write",
            lambda *inputs: _gated(*inputs, order="grw"),
            "the order of gate and write is right; position t must see its own key, j <= t",
        ),
        Wrong(
            "gate after the reading",
            lambda *inputs: _gated(*inputs, order="wrg"),
            "a query at t meets the gate of step t: fade first, then write, then read",
        ),
        Wrong(
            "no gate",
            lambda *inputs: _gated(*inputs, order="wr"),
            "the state fades by gate[t] before each write, {eq}`linear-attention-with-decay`",
        ),
        Wrong(
            "one gate for all features",
            lambda *inputs: _gated(*inputs, own="mean"),
            "each feature of the key has a gate of its own: row r of the state is multiplied by gate[t, r]",
        ),
        Wrong(
            "the write gated, too",
            lambda query, key, value, gate: _gated(query, (1.0 - gate) * key, value, gate),
            "{eq}`linear-attention-with-decay` writes the whole key: no factor 1 - gate on it",
        ),
        Wrong(
            "the past forgotten entirely",
            lambda query, key, value, gate: (query * key).sum(axis=1, keepdims=True) * value,
            "the state is carried on from step to step; you return what the own position writes",
        ),
    ],
    hints=[
        "Three things happen at each step: fade, write, read. Which order does {eq}`linear-attention-with-decay` ask for?",
        (
            "In the sum of {eq}`linear-attention-with-decay` key j meets the gates l = j + 1 to t: not its own, but that of the position "
            "that reads."
        ),
        "Fade the state, add the outer product, and only then read it.",
    ],
)

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


OVERLAPS = Task(
    id="read-interference",
    title="Read interference off a figure",
    entry="my_reading",
    kind="figure",
    equation="recall-signal-and-interference",
    points=2,
    difficulty=2,
    minutes=8,
    trains="signal and interference",
    tolerance=1e-6,
    figure_data=_overlaps_to_read,
    answer=lambda: (3.6, 2.0, 0.37),
    wrong=[
        Wrong(
            "the value alone",
            lambda: (2.0, 2.0, 0.37),
            "{eq}`recall-signal-and-interference`: every other value joins in, as far as its key overlaps with key 2",
        ),
        Wrong(
            "interference alone", lambda: (1.6, 2.0, 0.37), "the key itself has length 1: its own value comes on top of the interference"
        ),
        Wrong("signs of the overlaps dropped", lambda: (4.0, 2.0, 0.37), "an overlap may be negative: key 0 takes something away"),
        Wrong("the sign of a value dropped", lambda: (4.8, 2.0, 0.37), "the value of key 1 is -2, and counts with its sign"),
        Wrong(
            "the least disturbed key",
            lambda: (3.6, 0.0, 0.37),
            "you chose the smallest sum of squares in a row (without the 1); the question asks for the largest",
        ),
        Wrong(
            "plain overlaps added",
            lambda: (3.6, 1.0, 0.37),
            "noise comes from the squares of the overlaps: add these up in each row, without the 1",
        ),
        Wrong("the diagonal counted", lambda: (3.6, 2.0, 1.37), "the noise is what the *others* add: leave the key itself out"),
        Wrong(
            "a root taken",
            lambda: (3.6, 2.0, 0.37**0.5),
            "the question asks for the mean square itself, not for its root",
        ),
        Wrong(
            "overlaps not squared",
            lambda: (3.6, 2.0, 0.7),
            "the mean square of a sum of independent values is the sum of the *squared* overlaps",
        ),
    ],
    hints=[
        "Row i of the figure holds k_i . k_j for all j. Which row belongs to the first question?",
        "First: its own value plus the three other values times their overlaps. Then: squares of the off-diagonal entries of a row.",
        "First: 2 + (-0.2)(1) + (0.3)(-2) + (0.6)(4). Third: 0.1^2 + 0^2 + 0.6^2.",
    ],
)


def _after(
    c: float, beta: float, values: Sequence[float], *, rule: str = "delta", step: float | None = None, writes: int = 3, read: str = "b"
) -> float:
    """What is read with b after three values written under a, b and a again, for unit keys with a . b = c."""
    keys = {"a": np.array([1.0, 0.0]), "b": np.array([c, (1 - c**2) ** 0.5])}
    state = np.zeros(2)
    for key, value in list(zip((keys["a"], keys["b"], keys["a"]), values, strict=True))[:writes]:
        state = state + (beta if step is None else step) * key * (value - (key @ state if rule == "delta" else 0.0))
    return float(keys[read] @ state)


DELTA_READ = Task(
    id="three-delta-writes",
    title="Three writes by the delta rule",
    entry="my_read",
    kind="predict",
    equation="delta-rule",
    points=2,
    difficulty=3,
    minutes=8,
    trains="correcting instead of adding",
    tolerance=1e-4,
    variants=every(c=(0.6, 0.4, 0.7), beta=(0.5,), values=((2, -1, 4), (3, -2, 1), (-2, 3, 5))),
    answer=_after,
    wrong=[
        Wrong(
            "Hebb's rule",
            partial(_after, rule="hebb", step=1.0),
            "the delta rule writes what is missing, not the value: ask the state first",
        ),
        Wrong(
            "Hebb's rule with a step size",
            partial(_after, rule="hebb"),
            "a step size alone makes no delta rule: subtract what the state answers to the key",
        ),
        Wrong("a whole step", partial(_after, step=1.0), "the step size is beta: only a part of what is missing is written"),
        Wrong(
            "keys at right angles",
            lambda c, **rest: _after(0.0, **rest),
            "the keys overlap: a . b = c, so a write under a moves what b reads",
        ),
        Wrong("read with a", partial(_after, read="a"), "the question asks what key b reads"),
        Wrong("before the third write", partial(_after, writes=2), "there is a third write, under a, and it disturbs b"),
        Wrong(
            "the value written last under b",
            lambda c, beta, values: values[1],
            "with half steps, and a write under a in between, b does not read its value exactly",
        ),
    ],
    hints=[
        "Keep the state as s_a times a plus s_b times b: each write changes one of the two numbers.",
        "Reading a gives s_a + c s_b, reading b gives c s_a + s_b. The first write makes s_a = beta v_1.",
        "s_b = beta (v_2 - c s_a), then s_a grows by beta (v_3 - (s_a + c s_b)).",
    ],
)


def _delta(query: np.ndarray, key: np.ndarray, value: np.ndarray, beta: np.ndarray, state: np.ndarray, *, how: str = "delta") -> Any:
    state, rows = state.copy(), []
    for t in range(len(query)):
        k, v, b = key[t], value[t], beta[t]
        old, before = state.T @ k, state
        if how == "hebb":
            state = state + np.outer(k, b * v)
        elif how == "erase all":
            state = state + np.outer(k, b * v - old)
        elif how == "whole step":
            state = state + np.outer(k, v - old)
        elif how == "decay":
            state = (1 - b) * state + b * np.outer(k, v)
        elif how == "wrong sign":
            state = state - np.outer(k, b * (v - old))
        elif how == "mean step":
            state = state + np.outer(k, beta.mean() * (v - old))
        elif how == "unit keys":
            k = k / np.linalg.norm(k)
            state = state + np.outer(k, b * (v - state.T @ k))
        elif how == "asked with the query":
            state = state + np.outer(k, b * (v - state.T @ query[t]))
        elif how == "whole value":
            state = state + np.outer(k, v - b * old)
        elif how == "divided":
            state = state + np.outer(k, b * (v - old)) / (k @ k)
        else:
            state = state + np.outer(k, b * (v - old))
        rows.append((before if how == "read first" else state).T @ query[t])
    return np.array(rows).reshape(len(query), value.shape[1]), state


def _one_shot(query: np.ndarray, key: np.ndarray, value: np.ndarray, beta: np.ndarray, state: np.ndarray) -> Any:
    written = beta * (value - key @ state)
    return query @ state + np.tril(query @ key.T) @ written, state + key.T @ written


def _delta_cases(rng: np.random.Generator) -> list[Case]:
    cases = []
    for name, length, d_k, d_v, longest in (
        ("five positions", 5, 3, 2, 0.8),
        ("eleven positions, wide values", 11, 2, 7, 0.8),
        ("two positions", 2, 3, 5, 0.8),
        ("one position", 1, 3, 5, 0.8),
        ("keys shorter and longer than 1", 7, 3, 2, 1.4),
    ):
        shapes = {"query": (length, d_k), "key": (length, d_k), "value": (length, d_v)}
        arrays = {role: rng.normal(size=shape) for role, shape in shapes.items()}
        arrays["key"] *= np.linspace(0.8, longest, length)[:, None] / np.linalg.norm(arrays["key"], axis=1, keepdims=True)
        cases.append(Case(name, **arrays, beta=rng.uniform(0.2, 0.9, size=(length, 1)), state=rng.normal(size=(d_k, d_v))))
    return cases


def _delta_answer(query: np.ndarray, key: np.ndarray, value: np.ndarray, beta: np.ndarray, state: np.ndarray) -> Any:
    return delta_rule_attention(query, key, value, beta, initial_state=state, return_state=True)


def _mistaken(how: str) -> Any:
    return lambda *inputs: _delta(*inputs, how=how)


DELTA = Task(
    id="delta-rule",
    title="The delta rule",
    entry="my_delta_rule",
    kind="write",
    equation="delta-rule",
    points=3,
    difficulty=4,
    minutes=15,
    trains="reading before writing, with a state from before",
    answer=_delta_answer,
    cases=_delta_cases,
    wrong=[
        Wrong("Hebb's rule", _mistaken("hebb"), "you add the value, whatever the state holds under the key: that is Hebb's rule"),
        Wrong(
            "erased entirely, written in part", _mistaken("erase all"), "beta multiplies the whole correction v - S^T k, not only the value"
        ),
        Wrong("beta forgotten", _mistaken("whole step"), "the correction is multiplied by beta[t]"),
        Wrong(
            "everything decays",
            _mistaken("decay"),
            "only what is stored along the key is erased, not the whole state, {eq}`erase-then-write`",
        ),
        Wrong("uphill", _mistaken("wrong sign"), "the correction is value minus answer: yours moves the state away from the value"),
        Wrong("one beta for all positions", _mistaken("mean step"), "each position has its own beta"),
        Wrong(
            "divided by the length of the key",
            _mistaken("divided"),
            "{eq}`delta-rule` does not divide by |k|^2: the keys of the cases are shorter than 1 on purpose",
        ),
        Wrong(
            "keys brought to length 1",
            _mistaken("unit keys"),
            "use the keys as they come: nothing is divided by their length",
        ),
        Wrong(
            "asked with the query",
            _mistaken("asked with the query"),
            "what is missing is the value minus what the state has under the *key*; the query only reads, afterwards",
        ),
        Wrong(
            "beta on the erasing only",
            _mistaken("whole value"),
            "beta multiplies the whole correction v - S^T k, the value too",
        ),
        Wrong(
            "all corrections from the state that came in",
            _one_shot,
            "ask the state of the step before, which holds what the earlier positions wrote, not the one that came in",
        ),
        Wrong(
            "the state left as it came",
            lambda query, key, value, beta, state: (_delta(query, key, value, beta, state)[0], state.copy()),
            "the output is right; return the state after the last position, not the one that came in",
        ),
        Wrong("read before the write", _mistaken("read first"), "position t reads after it has written"),
        Wrong(
            "the state from before ignored",
            lambda query, key, value, beta, state: _delta(query, key, value, beta, np.zeros_like(state)),
            "begin with the given `state`, not with zeros",
        ),
    ],
    hints=[
        "For each position: ask, correct, read.",
        "`answer = state.T @ key[t]` has shape (d_v,); the correction is an outer product of shape (d_k, d_v).",
        "`state = state + np.outer(key[t], beta[t] * (value[t] - answer))`, then `output[t] = state.T @ query[t]`.",
    ],
)
