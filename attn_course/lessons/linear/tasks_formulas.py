"""The graded tasks of lesson linear that are answered in LaTeX: the delta rule, normalised linear attention, a state that fades."""

from typing import Any

import numpy as np

from attn_course.formulas import column, columns, matrices, vector
from attn_course.reference import linear_attention
from attn_course.tasks.core import Task, Wrong, at_sizes


def _one_write(rng: np.random.Generator, d_k: int, d_v: int) -> dict[str, Any]:
    pair = {"k": column(rng.normal(size=d_k)), "v": column(rng.normal(size=d_v))}
    return {"S_{t-1}": rng.normal(size=(d_k, d_v)), **pair, r"\beta": rng.uniform(0.3, 0.8)}


DELTA_DERIVED = Task(
    id="delta-rule-multiplied-out",
    title="The delta rule, multiplied out",
    entry="my_derivation",
    kind="derivation",
    equation="erase-then-write",
    points=2,
    difficulty=2,
    minutes=8,
    trains="transposes of products, and factors that keep their side",
    symbols=("S_{t-1}", "k", "v", r"\beta"),
    cases=at_sizes("d_k d_v", _one_write),
    least_steps=3,
    answer=[
        r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
        r"S_{t-1} + \beta\, k\, \bigl( v^\top - (S_{t-1}^\top k)^\top \bigr)",
        r"S_{t-1} + \beta\, k\, (v^\top - k^\top S_{t-1})",
        r"S_{t-1} + \beta\, k v^\top - \beta\, k k^\top S_{t-1}",
        r"(I - \beta\, k k^\top)\, S_{t-1} + \beta\, k v^\top",
    ],
    wrong=[
        Wrong(
            "plus for minus",
            r"(I + \beta\, k k^\top)\, S_{t-1} + \beta\, k v^\top",
            "what the state has under k is subtracted from v: it keeps its minus when the bracket is multiplied out",
        ),
        Wrong(
            "minus in front of the written part",
            r"(I - \beta\, k k^\top)\, S_{t-1} - \beta\, k v^\top",
            "v stands in the bracket with a plus, and a plus stands in front of the bracket: it is written, not taken away",
        ),
        Wrong(
            "Hebb's rule",
            r"S_{t-1} + \beta\, k v^\top",
            "the second term of the difference is lost: what the state has under k already",
        ),
        Wrong(
            "everything fades",
            r"(1 - \beta)\, S_{t-1} + \beta\, k v^\top",
            "k k^T is a matrix that acts along k alone; it cannot be left out as if it were 1",
        ),
        Wrong(
            "a number in place of the outer product",
            r"(1 - \beta\, |k|^2)\, S_{t-1} + \beta\, k v^\top",
            "k k^T, a column times a row, is a matrix; the number |k|^2 is k^T k, a row times a column",
        ),
        Wrong(
            "write, then erase",
            r"(I - \beta\, k k^\top)\, (S_{t-1} + \beta\, k v^\top)",
            "only the old state is multiplied by k k^T: the term with v does not belong into the same bracket",
        ),
        Wrong(
            "beta on the written part only",
            r"(I - k k^\top)\, S_{t-1} + \beta\, k v^\top",
            "beta stands in front of the bracket, so it multiplies both terms in it",
        ),
        Wrong(
            "the old state lost",
            r"\beta\, k v^\top - \beta\, k k^\top S_{t-1}",
            "this is what is added to the old state; the old state itself stands in front of it",
        ),
    ],
    hints=[
        "The transpose of a difference is the difference of the transposes. What is the transpose of a product?",
        "Its factors change places: S^T k becomes k^T S. Multiply out, and leave every factor on its side.",
        "Two of the three terms end in the old state. Take it out to the right: where nothing stood before it, I is left.",
    ],
)


def _averages(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    T, d_k, d_v = sizes.values()
    q, k = rng.uniform(0.1, 1.5, size=(2, T, d_k))
    v = rng.normal(size=(T, d_v))
    o = linear_attention(q, k, v, feature_map=lambda x: x, normalize=True, form="recurrent")
    return {"q": columns(q), "k": columns(k), "v": columns(v), "o": columns(o)}


AVERAGE = Task(
    id="linear-attention-without-state",
    title="Linear attention as an average",
    entry="my_average",
    kind="formula",
    equation="normalised-linear-attention",
    points=2,
    difficulty=2,
    minutes=8,
    trains="causal sums, and a normaliser that fits them",
    symbols=("q", "k", "v"),
    functions=(r"\exp",),
    left="o_t",
    cases=at_sizes("T d_k d_v", _averages),
    answer=r"\frac{\sum_{j \le t} (q_t \cdot k_j)\, v_j}{\sum_{j \le t} q_t \cdot k_j}",
    wrong=[
        Wrong(
            "not normalised",
            r"\sum_{j \le t} (q_t \cdot k_j)\, v_j",
            "this is the sum; an average is divided by the sum of its weights",
        ),
        Wrong(
            "not causal",
            r"\frac{\sum_j (q_t \cdot k_j)\, v_j}{\sum_j q_t \cdot k_j}",
            "position t may read the keys up to j = t only; these sums run over all positions",
        ),
        Wrong(
            "later keys counted in the normaliser",
            r"\frac{\sum_{j \le t} (q_t \cdot k_j)\, v_j}{\sum_j q_t \cdot k_j}",
            "the sum beneath runs over all positions: its keys must be those above, else the weights sum to less than 1",
        ),
        Wrong(
            "a normaliser that forgets",
            r"\frac{\sum_{j \le t} (q_t \cdot k_j)\, v_j}{q_t \cdot k_t}",
            "beneath stands the newest key alone: the normaliser is a sum over all keys that are read",
        ),
        Wrong(
            "divided by how many",
            r"\frac{1}{t} \sum_{j \le t} (q_t \cdot k_j)\, v_j",
            "the weights sum to 1 if you divide by their sum, not by their number",
        ),
        Wrong(
            "softmax attention",
            r"\frac{\sum_{j \le t} e^{q_t \cdot k_j}\, v_j}{\sum_{j \le t} e^{q_t \cdot k_j}}",
            "q and k are features already: their dot product itself is the weight, without an exponential",
        ),
        Wrong(
            "the newest key left out",
            r"\frac{\sum_{j < t} (q_t \cdot k_j)\, v_j}{\sum_{j < t} q_t \cdot k_j}",
            "position t reads its own key too, j = t; at t = 1 nothing is left to divide by",
        ),
        Wrong(
            "each key read by its own query",
            r"\frac{\sum_{j \le t} (q_j \cdot k_j)\, v_j}{\sum_{j \le t} q_j \cdot k_j}",
            "one query reads all these keys, that of position t",
        ),
    ],
    hints=[
        "The state is a sum over keys, and so is the normaliser. Insert both sums: what does a query do with each term?",
        "Each key j up to t gets the weight of its dot product with the query of position t. What do these weights sum to?",
        "It is a fraction of two sums over the same keys, with the values in the upper one only.",
    ],
)


def _fading(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    T, d_k, d_v = sizes.values()
    a, k, v = rng.uniform(0.4, 0.95, size=T), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))
    states = [rng.normal(size=(d_k, d_v))]
    for t in range(T):
        states.append(a[t] * states[-1] + np.outer(k[t], v[t]))
    lists = {"a": vector(a), "k": columns(k), "v": columns(v)}
    return {**lists, "S_0": states[0], "S": matrices(np.array(states[1:]))}


FADING = Task(
    id="fading-state-unrolled",
    title="A state that fades, unrolled",
    entry="my_state",
    kind="formula",
    equation="linear-attention-with-decay",
    points=3,
    difficulty=3,
    minutes=10,
    trains="products with bounds that depend on two indices",
    symbols=("a", "k", "v", "S_0"),
    left="S_t",
    cases=at_sizes("T d_k d_v", _fading),
    answer=r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top",
    wrong=[
        Wrong(
            "the gate of the step that writes",
            r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j}^{t} a_l \Bigr) k_j v_j^\top",
            "step j fades the state before it writes: its own gate does not touch what it writes",
        ),
        Wrong(
            "the last gate forgotten",
            r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t-1} a_l \Bigr) k_j v_j^\top",
            "step t fades everything that was written before it: its gate belongs to the product of every j below t",
        ),
        Wrong(
            "the gates of the past",
            r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=1}^{j} a_l \Bigr) k_j v_j^\top",
            "what is written at step j meets the gates of the later steps, up to t, not those from before it was there",
        ),
        Wrong(
            "all gates for every term",
            r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) \Bigl( S_0 + \sum_{j=1}^{t} k_j v_j^\top \Bigr)",
            "only the first state meets all gates; what is written at step j meets those of the steps after j",
        ),
        Wrong(
            "the newest gate alone",
            r"a_t S_0 + \sum_{j=1}^{t} a_t k_j v_j^\top",
            "old entries fade at every step, not only at the last: their factors multiply",
        ),
        Wrong(
            "the first state forgotten",
            r"\sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top",
            "the state does not begin at zero: S_0 is there before the first step and fades too",
        ),
        Wrong(
            "the first state never fades",
            r"S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top",
            "every step fades all that the state holds, and S_0 with it",
        ),
        Wrong(
            "nothing fades",
            r"S_0 + \sum_{j=1}^{t} k_j v_j^\top",
            "these are plain sums: each term must carry the gates that it has met",
        ),
    ],
    hints=[
        r"Write out `S_1`, `S_2` and `S_3`. Which gates stand in front of `S_0`, and which in front of each pair?",
        "What is written at step j is multiplied by the gate of each later step, up to t, and by no other.",
        r"It is a product of gates times `S_0`, plus a sum over j of outer products, each with a product of gates that begins behind j.",
    ],
)
