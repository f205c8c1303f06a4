"""The tasks on attention without softmax that are answered in LaTeX: the delta rule, normalised linear attention, a state that fades."""

from typing import Any

import numpy as np

from attn_course.formulas import column, columns, matrices, vector
from attn_course.reference import linear_attention
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _one_write(rng: np.random.Generator, d_k: int, d_v: int) -> dict[str, Any]:
    pair = {"k": column(rng.normal(size=d_k)), "v": column(rng.normal(size=d_v))}
    return {"S_{t-1}": rng.normal(size=(d_k, d_v)), **pair, r"\beta": rng.uniform(0.3, 0.8)}


my_derivation = asked_formula(
    "delta-rule-multiplied-out",
    "The delta rule, multiplied out",
    entry="my_derivation",
    asks=r"""
        The delta rule asks the state what it has under $k$ and writes the difference. Multiply {eq}`delta-rule` out, and show that
        this is *erase, then write*, {eq}`erase-then-write`: a list of lines, each equal to the one before, in three steps or
        more. $k$ and $v$ are columns, $\beta$ is a number.
    """,
    equation="erase-then-write",
    points=2,
    difficulty=2,
    minutes=8,
    trains="transposes of products, and factors that keep their side",
    answer=[
        r"S_{t-1} + \beta\, k\, (v - S_{t-1}^\top k)^\top",
        r"S_{t-1} + \beta\, k\, \bigl( v^\top - (S_{t-1}^\top k)^\top \bigr)",
        r"S_{t-1} + \beta\, k\, (v^\top - k^\top S_{t-1})",
        r"S_{t-1} + \beta\, k v^\top - \beta\, k k^\top S_{t-1}",
        r"(I - \beta\, k k^\top)\, S_{t-1} + \beta\, k v^\top",
    ],
    symbols=("S_{t-1}", "k", "v", r"\beta"),
    cases=at_sizes("d_k d_v", _one_write),
    least_steps=3,
    slips=r"""
        plus for minus
            line 5: I - \beta -> I + \beta
            what the state has under k is subtracted from v: it keeps its minus when the bracket is multiplied out
        minus in front of the written part
            line 5: S_{t-1} + -> S_{t-1} -
            v stands in the bracket with a plus, and a plus stands in front of the bracket: it is written, not taken away
        Hebb's rule
            line 5: (I - \beta\, k k^\top)\, ->
            the second term of the difference is lost: what the state has under k already
        everything fades
            line 5: (I - \beta\, k k^\top) -> (1 - \beta)
            k k^T is a matrix that acts along k alone; it cannot be left out as if it were 1
        a number in place of the outer product
            line 5: k k^\top -> |k|^2 ;; I - -> 1 -
            k k^T, a column times a row, is a matrix; the number |k|^2 is k^T k, a row times a column
        write, then erase
            line 5: S_{t-1} + \beta\, k v^\top -> (S_{t-1} + \beta\, k v^\top)
            only the old state is multiplied by k k^T: the term with v does not belong into the same bracket
        beta on the written part only
            line 5: (I - \beta\, k k -> (I - k k
            beta stands in front of the bracket, so it multiplies both terms in it
        the old state lost
            line 4: S_{t-1} + \beta\, k v -> \beta\, k v
            this is what is added to the old state; the old state itself stands in front of it
    """,
    hints="""
        The transpose of a difference is the difference of the transposes. What is the transpose of a product?
        Its factors change places: S^T k becomes k^T S. Multiply out, and leave every factor on its side.
        Two of the three terms end in the old state. Take it out to the right: where nothing stood before it, I is left.
    """,
    why=r"""
        A transpose reverses a product: $(S_{t-1}^\top k)^\top = k^\top S_{t-1}$. The number $\beta$ may stand anywhere, but
        $k$, $k^\top$ and $S_{t-1}$ keep their order, so that the state can only be taken out to the right, and $I$ is left where
        nothing stood before it.
    """,
)


def _averages(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    T, d_k, d_v = sizes.values()
    q, k = rng.uniform(0.1, 1.5, size=(2, T, d_k))
    v = rng.normal(size=(T, d_v))
    o = linear_attention(q, k, v, feature_map=lambda x: x, normalize=True, form="recurrent")
    return {"q": columns(q), "k": columns(k), "v": columns(v), "o": columns(o)}


my_average = asked_formula(
    "linear-attention-without-state",
    "Linear attention as an average",
    entry="my_average",
    asks=r"""
        Let $q_t$ and $k_t$ be features already, columns of positive numbers, and $v_t$ a column of values. Causal linear attention
        with a normaliser, {eq}`normalised-linear-attention`, carries a state and a normaliser from position to position; both begin
        at zero. Write the right side of

        $$o_t = \dots$$

        without either of them, in queries, keys and values alone. A sum up to $t$ is `\sum_{j \le t}` or `\sum_{j=1}^{t}`.
    """,
    equation="normalised-linear-attention",
    points=2,
    difficulty=2,
    minutes=8,
    trains="causal sums, and a normaliser that fits them",
    answer=r"\frac{\sum_{j \le t} (q_t \cdot k_j)\, v_j}{\sum_{j \le t} q_t \cdot k_j}",
    symbols=("q", "k", "v"),
    functions=(r"\exp",),
    left="o_t",
    cases=at_sizes("T d_k d_v", _averages),
    slips=r"""
        not normalised
            {\sum_{j \le t} q_t \cdot k_j} -> {1}
            this is the sum; an average is divided by the sum of its weights
        not causal
            all \sum_{j \le t} -> \sum_j
            position t may read the keys up to j = t only; these sums run over all positions
        later keys counted in the normaliser
            {\sum_{j \le t} q_t -> {\sum_j q_t
            the sum beneath runs over all positions: its keys must be those above, else the weights sum to less than 1
        a normaliser that forgets
            {\sum_{j \le t} q_t \cdot k_j} -> {q_t \cdot k_t}
            beneath stands the newest key alone: the normaliser is a sum over all keys that are read
        divided by how many
            {\sum_{j \le t} q_t \cdot k_j} -> {t}
            the weights sum to 1 if you divide by their sum, not by their number
        softmax attention
            (q_t \cdot k_j) -> e^{q_t \cdot k_j} ;; {\sum_{j \le t} q_t \cdot k_j} -> {\sum_{j \le t} e^{q_t \cdot k_j}}
            q and k are features already: their dot product itself is the weight, without an exponential
        the newest key left out
            all \le -> <
            position t reads its own key too, j = t; at t = 1 nothing is left to divide by
        each key read by its own query
            all q_t -> q_j
            one query reads all these keys, that of position t
    """,
    hints="""
        The state is a sum over keys, and so is the normaliser. Insert both sums: what does a query do with each term?
        Each key j up to t gets the weight of its dot product with the query of position t. What do these weights sum to?
        It is a fraction of two sums over the same keys, with the values in the upper one only.
    """,
    why=r"""
        $S_t = \sum_{j \le t} k_j v_j^\top$, so $S_t^\top q_t = \sum_{j \le t} v_j\, (k_j \cdot q_t)$; the normaliser is the
        same sum with 1 for every value. It is the soft lookup of {eq}`softmax-as-kernel-smoother` with the dot product of features
        for a kernel: weights that sum to 1.
    """,
)


def _fading(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    T, d_k, d_v = sizes.values()
    a, k, v = rng.uniform(0.4, 0.95, size=T), rng.normal(size=(T, d_k)), rng.normal(size=(T, d_v))
    states = [rng.normal(size=(d_k, d_v))]
    for t in range(T):
        states.append(a[t] * states[-1] + np.outer(k[t], v[t]))
    lists = {"a": vector(a), "k": columns(k), "v": columns(v)}
    return {**lists, "S_0": states[0], "S": matrices(np.array(states[1:]))}


my_state = asked_formula(
    "fading-state-unrolled",
    "A state that fades, unrolled",
    entry="my_state",
    asks=r"""
        A state begins as $S_0$, not zero. Each step multiplies it by **one number** $a_t$, its gate, and then writes a pair of
        columns: {eq}`linear-attention-with-decay` with the same gate for every feature,

        $$S_t = a_t\, S_{t-1} + k_t v_t^\top$$

        Write the right side of $S_t = \dots$ without any state but $S_0$. A product is `\prod_{l=1}^{t}`; without factors it is 1.
        Put brackets around it where something follows: `\left( \prod_{l=1}^{t} a_l \right) S_0`.
    """,
    equation="linear-attention-with-decay",
    points=3,
    difficulty=3,
    minutes=10,
    trains="products with bounds that depend on two indices",
    answer=r"\Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + \sum_{j=1}^{t} \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) k_j v_j^\top",
    symbols=("a", "k", "v", "S_0"),
    left="S_t",
    cases=at_sizes("T d_k d_v", _fading),
    slips=r"""
        the gate of the step that writes
            l=j+1 -> l=j
            step j fades the state before it writes: its own gate does not touch what it writes
        the last gate forgotten
            l=j+1}^{t} -> l=j+1}^{t-1}
            step t fades everything that was written before it: its gate belongs to the product of every j below t
        the gates of the past
            l=j+1}^{t} -> l=1}^{j}
            what is written at step j meets the gates of the later steps, up to t, not those from before it was there
        all gates for every term
            l=j+1 -> l=1
            only the first state meets all gates; what is written at step j meets those of the steps after j
        the newest gate alone
            \Bigl( \prod_{l=1}^{t} a_l \Bigr) -> a_t ;; \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) -> a_t
            old entries fade at every step, not only at the last: their factors multiply
        the first state forgotten
            \Bigl( \prod_{l=1}^{t} a_l \Bigr) S_0 + ->
            the state does not begin at zero: S_0 is there before the first step and fades too
        the first state never fades
            \Bigl( \prod_{l=1}^{t} a_l \Bigr) ->
            every step fades all that the state holds, and S_0 with it
        nothing fades
            \Bigl( \prod_{l=1}^{t} a_l \Bigr) -> ;; \Bigl( \prod_{l=j+1}^{t} a_l \Bigr) ->
            these are plain sums: each term must carry the gates that it has met
    """,
    hints="""
        Write out `S_1`, `S_2` and `S_3`. Which gates stand in front of `S_0`, and which in front of each pair?
        What is written at step j is multiplied by the gate of each later step, up to t, and by no other.
        It is a product of gates times `S_0`, plus a sum over j of outer products, each with a product of gates that begins behind j.
    """,
    why=r"""
        By induction: if the formula holds for $t - 1$, then $a_t$ joins every product, and the new pair $k_t v_t^\top$ has
        the product without factors, which is 1. So a pair meets the gates of the steps after its own. With all $a_t = a$ the
        factors are $a^{t - j}$, an exponential window.
    """,
)
