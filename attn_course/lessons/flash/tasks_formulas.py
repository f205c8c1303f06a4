"""The tasks on fast attention that are answered in LaTeX: the merge of two blocks, one turn of the loop, the gradient of a tile."""

from typing import Any

import numpy as np

from attn_course.formulas import derivative, matrix, row, rows, subset, vector
from attn_course.reference import softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _two_parts(rng: np.random.Generator, n_A: int, n_B: int, d_v: int) -> dict[str, Any]:
    scores, values = (rng.normal(size=shape) for shape in (n_A + n_B, (n_A + n_B, d_v)))
    found = {"z": row(softmax(scores) @ values)}
    for name, keys in {"A": slice(n_A), "B": slice(n_A, None)}.items():
        found |= {f"L_{name}": np.logaddexp.reduce(scores[keys]), f"z_{name}": row(softmax(scores[keys]) @ values[keys])}
    return found


my_output = asked_formula(
    "output-of-two-parts",
    "Two finished parts",
    entry="my_output",
    asks=r"""
        Two programs saw the keys $A$ and $B$ of one query, and handed on their outputs $z_A$, $z_B$ and their $L_A$, $L_B$. Write the
        output $z$ over all keys in LaTeX between `r"` and `"`: only the right side, from these four (`z_A`, `L_A` and so on), without $L$.
    """,
    equation="merge-of-finished-outputs",
    points=1,
    difficulty=2,
    minutes=4,
    trains="log-sum-exps as weights",
    answer=r"\frac{e^{L_A} z_A + e^{L_B} z_B}{e^{L_A} + e^{L_B}}",
    symbols=("L_A", "L_B", "z_A", "z_B"),
    functions=(r"\exp",),
    left="z",
    cases=at_sizes("n_A n_B d_v", _two_parts),
    slips=r"""
        the plain mean
            -> \frac{1}{2} (z_A + z_B)
            both parts count alike here; the one with the larger sum of exponentials must count for more
        added
            {e^{L_A} + e^{L_B}} -> {1}
            the shares of the two parts must sum to 1: divide by the sum of both
        weighted by L itself
            -> \frac{L_A z_A + L_B z_B}{L_A + L_B}
            L is the logarithm of a sum of exponentials; the sum itself, by which a part counts, is e^L
        the smaller L counts more
            e^{L_A} z_A + e^{L_B} z_B -> e^{L_B} z_A + e^{L_A} z_B
            the part with the larger L counts more: look at the signs, and at which L stands beside which output
    """,
    hints=r"""
        Which sum does each program hold, if it takes 0 as the reference?
        The denominator of part A is $e^{L_A}$. What is its numerator, when its output is $z_A$?
        Add the two numerators, add the two denominators, and divide.
    """,
    why=r"""
        With the reference 0, part A has the denominator $e^{L_A}$ and the numerator $e^{L_A} z_A$. Numerators add up, and so do
        denominators.
    """,
)


def _two_blocks(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    n_A, n_B, d_v = sizes.values()
    keys = n_A + n_B
    s, v = rng.normal(size=keys), rng.normal(size=(keys, d_v))
    in_a = np.isin(np.arange(keys), rng.permutation(keys)[:n_A])  # the keys of a block need not be neighbours
    given: dict[str, Any] = {"s": vector(s), "v": rows(v), "L": np.logaddexp.reduce(s)}
    for name, block in {"A": in_a, "B": ~in_a}.items():
        given |= {name: subset(block), f"L_{name}": np.logaddexp.reduce(s[block]), f"z_{name}": row(softmax(s[block]) @ v[block])}
    return given


my_merging = asked_formula(
    "merge-of-two-blocks",
    "The merge of two blocks, derived",
    entry="my_merging",
    asks=r"""
        The keys of one query, with scores $s_j$ and rows $v_j$ of values, are split into two sets $A$ and $B$. $L_A$ and $z_A$ are
        the log-sum-exp and the output of $A$ alone, $L_B$ and $z_B$ those of $B$; $L$ is the log-sum-exp of all keys. Derive
        {eq}`merge-of-finished-outputs` as a list of lines, each equal to the one before, in three steps or more. A sum over the keys
        of a block is `\sum_{j \in A}`.
    """,
    equation="merge-of-finished-outputs",
    points=3,
    difficulty=2,
    minutes=12,
    trains="sums over blocks, and log-sum-exps as weights",
    answer=[
        r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
        r"\sum_j e^{s_j - L} v_j",
        r"\sum_{j \in A} e^{s_j - L} v_j + \sum_{j \in B} e^{s_j - L} v_j",
        r"\sum_{j \in A} e^{L_A - L} e^{s_j - L_A} v_j + \sum_{j \in B} e^{L_B - L} e^{s_j - L_B} v_j",
        r"e^{L_A - L} \sum_{j \in A} e^{s_j - L_A} v_j + e^{L_B - L} \sum_{j \in B} e^{s_j - L_B} v_j",
        r"e^{L_A - L} z_A + e^{L_B - L} z_B",
    ],
    symbols=("s", "v", "A", "B", "L", "L_A", "L_B", "z_A", "z_B"),
    functions=(r"\exp", r"\ln"),
    cases=at_sizes("n_A n_B d_v", _two_blocks),
    least_steps=3,
    slips=r"""
        each block normalised by itself
            line 6: e^{L_A - L} -> ;; e^{L_B - L} ->
            in z_A the weights of A already sum to 1, and so do those of B in z_B: added, they sum to 2. A block counts with its share
            of the whole sum of exponentials
        the plain mean
            line 6: e^{L_A - L} z_A + e^{L_B - L} z_B -> \frac{1}{2} (z_A + z_B)
            both blocks count alike here; the one with the larger sum of exponentials must count for more
        the factors turned round
            line 6: L_A - L -> L - L_A ;; L_B - L -> L - L_B
            the share of A is e^{L_A} over e^{L}: the exponent is L_A - L, which is never positive
        a block forgotten
            line 6: + e^{L_B - L} z_B ->
            the keys of B have a part in the output as well
        weighted by L itself
            line 6: -> \frac{L_A z_A + L_B z_B}{L_A + L_B}
            L_A is the logarithm of the sum of exponentials; the sum itself, by which A counts, is e^{L_A}
        divided by L
            line 2: \sum_j e^{s_j - L} -> \frac{1}{L} \sum_j e^{s_j}
            the sum of exponentials beneath is e^{L}; L is its logarithm
        a power of a difference taken for a difference of powers
            line 2: e^{s_j - L} -> (e^{s_j} - e^{L})
            e^{a - b} is e^a divided by e^b, not their difference
        never divided
            line 2: s_j - L -> s_j
            the sum of exponentials beneath, e^{L}, is lost
    """,
    hints="""
        Which of the symbols of the goal is the logarithm of the sum in the denominator? Then split the sum over all keys in two.
        The output of block A is the sum of `e^{s_j - L_A} v_j` over A alone. Which factor turns `e^{s_j - L_A}` into `e^{s_j - L}`?
        `e^{s_j - L}` is a product of `e^{L_A - L}`, which leaves the sum over A, and of a weight of block A; the same for B.
    """,
    why="""
        The sum beneath is $e^{L}$, and every term can be divided by it. Then the sum is split, and each exponent takes a
        detour over its own block: $s_j - L = (s_j - L_A) + (L_A - L)$. The second part does not depend on $j$ and leaves
        the sum; the first makes the weights of block $A$, whose sum of values is $z_A$. The two factors add up to 1, since
        $e^{L_A} + e^{L_B} = e^{L}$.
    """,
)


def _one_turn(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    B_q, B_k, n, d_v = sizes.values()
    scores, values = 1.5 * rng.normal(size=(B_q, n + B_k)), rng.normal(size=(n + B_k, d_v))
    scores[0, n] = scores[0].max() + rng.uniform(0.5, 1.5)  # the maximum of the first query grows
    given: dict[str, Any] = {"s": matrix(scores[:, n:]), "v": rows(values[n:]), "B_k": B_k}
    for mark, keys in {"": slice(n), "'": slice(None)}.items():
        top = scores[:, keys].max(axis=1)
        sums = np.exp(scores[:, keys] - top[:, None]).sum(axis=1)
        given |= {f"m{mark}": vector(top), rf"\ell{mark}": vector(sums), f"z{mark}": rows(softmax(scores[:, keys]) @ values[keys])}
    return given


my_new_output = asked_formula(
    "update-of-divided-outputs",
    "One turn of the loop, with divided outputs",
    entry="my_new_output",
    asks=r"""
        The first FlashAttention (Dao et al., 2022) divided in every turn: after $n$ keys query $i$ has $m_i$ and $\ell_i$ as in
        {eq}`tiled-attention-update` and a finished output, the row $z_i$. A block of $B_k$ keys comes, with scores $s_{ij}$ and
        values $v_j$; $m'_i$ and $\ell'_i$ (type `m'_i`), over all $n + B_k$ keys, are known. Write the right side of

        $$z'_i = \dots$$

        the output over all these keys.
    """,
    equation="tiled-attention-update",
    points=3,
    difficulty=3,
    minutes=10,
    trains="rescaling when the maximum grows",
    answer=r"\frac{\ell_i e^{m_i - m'_i} z_i + \sum_j e^{s_{ij} - m'_i} v_j}{\ell'_i}",
    symbols=("s", "v", "m", "m'", r"\ell", r"\ell'", "z", "B_k"),
    functions=(r"\exp",),
    left="z'_i",
    cases=at_sizes("B_q B_k n d_v", _one_turn),
    slips=r"""
        the old output not multiplied by its sum
            \ell_i e^{m_i -> e^{m_i
            z_i was divided by the old sum: multiply it by that sum before anything is added to it
        no rescale
            e^{m_i - m'_i} z_i -> z_i
            the old terms are measured from the old maximum and the new terms from the new one: only terms with the same reference add
            up
        the factor turned round
            e^{m_i - m'_i} -> e^{m'_i - m_i}
            e^{s - m'} is e^{s - m} times e^{m - m'}: when the maximum grows, the old terms become smaller
        the new block measured from the old maximum
            s_{ij} - m'_i -> s_{ij} - m_i
            the new sum is measured from the new maximum, and so must be the terms of the new block
        the rule for the accumulator
            \ell_i e^{m_i -> e^{m_i ;; {\ell'_i} -> {1}
            so the accumulator is updated, but z_i was divided by the old sum, and what comes out is to be divided by the new one
        not divided
            {\ell'_i} -> {1}
            this is the accumulator of {eq}`tiled-attention-update`; the output is that divided by the new sum
        the old output without its share
            \frac{\ell_i e^{m_i - m'_i} z_i + \sum_j -> e^{m_i - m'_i} z_i + \frac{\sum_j
            the old output is an average over the old keys alone: its part in the new one is the old sum over the new, both measured
            from the new maximum
        outputs accumulated instead of values
            \sum_j e^{s_{ij} - m'_i} v_j -> \frac{\sum_j e^{s_{ij} - m'_i} v_j}{\sum_j e^{s_{ij} - m'_i}}
            the block is divided twice: by its own sum, and by the new one at the end
    """,
    hints="""
        An accumulator that is not divided would be easy to update. How do you get it back from z_i, and what do you do at the end?
        The old accumulator is z_i times the old sum, and is measured from the old maximum; measure the block from the new one.
        It is one fraction: above it the old part, with two factors, plus a sum over the keys of the block; beneath it one symbol.
    """,
    why=r"""
        $\ell_i z_i$ is the old accumulator. It is measured from $m_i$, so it gets the factor $e^{m_i - m'_i}$; the
        block is measured from $m'_i$ at once; the sum is divided by $\ell'_i$. The second version (Dao, 2023) leaves the division
        to the end: GPUs are much slower at arithmetic that is no matrix product.
    """,
)


def _one_tile(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    B_q, B_k, n, d_v = sizes.values()
    scores, values, d_output = rng.normal(size=(B_q, n)), rng.normal(size=(n, d_v)), rng.normal(size=(B_q, d_v))

    def loss(tile: np.ndarray) -> float:
        return float((softmax(np.hstack([tile, scores[:, B_k:]])) @ values * d_output).sum())

    given = {"s": matrix(scores[:, :B_k]), "v": rows(values[:B_k]), "L": vector(np.logaddexp.reduce(scores, axis=1))}
    given |= {"dO": rows(d_output), "z": rows(softmax(scores) @ values)}
    return given | {"dS": derivative(loss, scores[:, :B_k])}


my_gradient = asked_formula(
    "gradient-of-tile-scores",
    "The gradient of a tile, from what is kept",
    entry="my_gradient",
    asks=r"""
        The backward pass rebuilds a tile: $B_q$ queries $i$ and $B_k$ of their $n$ keys, $j$. It has the scores $s_{ij}$ and values
        $v_j$ of the tile, and of each whole row, over all $n$ keys, $L_i$ and the output $z_i$. $dO_i$ is the gradient of the loss
        by $z_i$; vectors are rows, and their dot product is `\cdot`. Write the right side of

        $$dS_{ij} = \dots$$
    """,
    equation="weights-from-lse",
    points=3,
    difficulty=3,
    minutes=10,
    trains="recomputing instead of storing",
    answer=r"e^{s_{ij} - L_i} (dO_i \cdot v_j - dO_i \cdot z_i)",
    symbols=("s", "L", "v", "z", "dO"),
    functions=(r"\exp",),
    left="dS_{ij}",
    cases=at_sizes("B_q B_k n d_v", _one_tile, ["n > B_k"]),
    slips=r"""
        delta summed over the tile
            dO_i \cdot z_i -> \sum_l e^{s_{il} - L_i} (dO_i \cdot v_l)
            delta is a sum over all keys of the row, and a tile has only some of them; {eq}`score-gradient-against-mixture` needs none
        the normaliser forgotten
            - dO_i \cdot z_i ->
            raising one score also lowers every other weight of its row: delta is missing
        delta not weighted
            v_j - dO_i \cdot z_i) -> v_j) - dO_i \cdot z_i
            the weight multiplies delta too, {eq}`gradient-of-scores`
        the weight forgotten
            e^{s_{ij} - L_i} ->
            the weight, recomputed from s and L, is missing in front
        the weights of the tile alone
            e^{s_{ij} - L_i} -> \frac{e^{s_{ij}}}{\sum_l e^{s_{il}}}
            a sum over the keys of the tile is not the sum of the row; the log-sum-exp of the whole row was kept
        divided by L
            e^{s_{ij} - L_i} -> \frac{e^{s_{ij}}}{L_i}
            L is the logarithm of the sum of exponentials: subtract it in the exponent
        the exponential in place of the weight
            s_{ij} - L_i -> s_{ij}
            e^{s} is no weight yet: it is to be divided by the sum over its row, whose logarithm is L
        the sign turned round
            dO_i \cdot v_j - dO_i \cdot z_i -> dO_i \cdot z_i - dO_i \cdot v_j
            a larger score moves the output towards v_j and away from z_i, so v_j comes with the plus
    """,
    hints="""
        Begin with {eq}`gradient-of-scores`, entry by entry. Which of its three symbols does the tile have to compute again, and from what?
        {eq}`weights-from-lse` gives the weight, {eq}`score-gradient-against-mixture` gives delta; dP is the product of a row of dO
            with one of V.
        It is one exponential, times a difference of two dot products with `dO_i`.
    """,
    why=r"""
        In $dS_{ij} = p_{ij} (dP_{ij} - \delta_i)$, {eq}`gradient-of-scores`, put $p_{ij} = e^{s_{ij} - L_i}$, $dP_{ij} = dO_i \cdot v_j$
        and $\delta_i = dO_i \cdot z_i$. Collected, it is $e^{s_{ij} - L_i}\, dO_i \cdot (v_j - z_i)$: the gradient asks how value $j$
        differs from the output, and a key whose value equals the output has none.
    """,
)
