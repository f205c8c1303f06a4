"""The tasks on gradients that are answered in LaTeX: two gradients and the sum of delta as formulas, and one derivation."""

from typing import Any

import numpy as np

from attn_course.formulas import column, derivative, rows
from attn_course.reference import attention, scaled_dot_scores, softmax
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _random(rng: np.random.Generator, *shapes: tuple[int, int]) -> list[np.ndarray]:
    return [rng.normal(size=shape) for shape in shapes]


def _back_to_the_scores(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Weights, any gradient that reaches them, and what becomes of it at the scores, by differences."""
    T_q, T_k = sizes.values()
    S, dP = _random(rng, (T_q, T_k), (T_q, T_k))
    return {"P": softmax(S), "dP": dP, "dS": derivative(lambda moved: np.vdot(dP, softmax(moved)), S)}


def _totals(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Values, the gradient there by differences, and delta as what a factor on each output would add to the loss."""
    T_q, T_k, d_v = sizes.values()
    S, V, dZ = _random(rng, (T_q, T_k), (T_k, d_v), (T_q, d_v))
    P = softmax(S)
    dV = derivative(lambda moved: np.vdot(dZ, P @ moved), V)
    delta = derivative(lambda factors: np.vdot(dZ, factors[:, None] * (P @ V)), np.ones(T_q))
    return {"V": V, "dV": dV, "T_k": T_k, r"\delta": column(delta)}


my_total = asked_formula(
    "delta-without-weights",
    "All the means together, without a weight",
    entry="my_total",
    asks=r"""
        Row $i$ of $dP$ has the weighted mean $\delta_i = \sum_j p_{ij}\, dP_{ij}$. Add these means up over all queries, and write the sum
        as a formula that holds neither weights nor anything of the queries, only the right side, between `r"` and `"`:

        $$\sum_i \delta_i = \ldots$$

        `V` are the values and `dV` is the gradient there, both $(T_k, d_v)$; their rows are `V_j` and `dV_j`. The left side is a number, so
        the right side has no index left over. Any form that is equal counts.
    """,
    equation="gradient-of-values",
    points=1,
    difficulty=2,
    minutes=6,
    trains="exchanging two sums",
    answer=r"\sum_j dV_j \cdot V_j",
    symbols=("V", "dV", "T_k"),
    left=r"\sum_i \delta_i",
    cases=at_sizes("T_q T_k d_v", _totals),
    slips=r"""
        the mean over the keys
            \sum_j -> \frac{1}{T_k} \sum_j
            nothing was averaged: the sums over queries and over keys only change places
        all pairs of values
            \sum_j -> \sum_j \sum_l ;; \cdot V_j -> \cdot V_l
            each value meets its own gradient only: both stand with the same index j
        the gradients alone
            \cdot V_j -> \cdot dV_j
            that is the squared size of the gradient; one of the two rows must be the value itself
        the values alone
            dV_j -> V_j
            that is the squared size of the values; one of the two rows must be the gradient there
        the sign turned
            \sum_j -> -\sum_j
            delta_i is the mean itself; a minus comes only when it is subtracted
    """,
    hints="""
        Write delta_i out as a sum over keys and features, with weights, the gradient at the output, and values.
        You now have three sums. Do the one over the queries first: what does not depend on i goes in front of it.
        Compare the sum over the queries that is left with {eq}`value-gradient-by-entry`.
    """,
    why=r"""
        $\sum_i \delta_i = \sum_i \sum_j p_{ij} \sum_a dZ_{ia} V_{ja}$. The sum over the queries may go first: $\sum_j \sum_a V_{ja} \sum_i
        p_{ij}\, dZ_{ia}$, and the last sum is $dV_{ja}$, {eq}`value-gradient-by-entry`. There is a meaning in it: both are the rate at
        which the loss changes if all values, and with them all outputs, are multiplied by the same number a little larger than 1.
    """,
)

my_formula = asked_formula(
    "gradient-through-the-softmax",
    "The gradient of all scores as one formula",
    entry="my_formula",
    asks=r"""
        The weights $P$ are the softmax of the scores $S$, row by row, and $dP$ is the gradient of a loss with respect to $P$.
        Write the gradient with respect to $S$ as **one** formula in LaTeX, only the right side, between `r"` and `"`:

        $$dS = \ldots$$

        The left side has no index, so the right side has none: `\odot` multiplies entry by entry, `\mathbf{1}` is a column of
        ones, `\mathrm{diag}(...)` puts a column on a diagonal. Write out the row sums, not `\delta`. Any equal form counts.
    """,
    equation="gradient-of-scores",
    points=2,
    difficulty=2,
    minutes=10,
    trains="row sums in matrix notation",
    answer=r"P \odot (dP - (P \odot dP) \mathbf{1} \mathbf{1}^\top)",
    symbols=("P", "dP"),
    functions=("diag",),
    left="dS",
    cases=at_sizes("T_q T_k", _back_to_the_scores),
    slips=r"""
        nothing subtracted
            (dP - (P \odot dP) \mathbf{1} \mathbf{1}^\top) -> dP
            the weights of a row sum to 1, so raising one score lowers its other weights: subtract the mean of the row from dP
        the softmax treated entry by entry
            (P \odot dP) \mathbf{1} \mathbf{1}^\top -> P \odot dP
            p (1 - p) is only the diagonal of the softmax Jacobian; the other weights of the row move as well, {eq}`softmax-jacobian`
        row sums of dP alone
            (P \odot dP) -> dP\,
            what is subtracted is the mean of the row of dP under its weights: multiply dP by P, entry by entry, before you sum
        column sums
            (P \odot dP) \mathbf{1} \mathbf{1}^\top -> \mathbf{1} \mathbf{1}^\top (P \odot dP)
            ones on the left sum each column, over the queries; the softmax runs along a row, so the ones belong on the right
        no parentheses around the entrywise product
            (P \odot dP) -> P \odot dP\,
            side by side is multiplied first, so the ones sum up dP before P gets there: write `(P \odot dP)`
        the weight of the score forgotten
            P \odot (dP - -> (dP -
            a score moves its own weight in proportion to that weight: multiply by P, entry by entry
        the mean not weighted by P
            P \odot (dP - -> (P \odot dP -
            P multiplies the whole difference: the row sum in the second term needs the factor P as well
        plus for minus
            dP - (P -> dP + (P
            what the other weights lose counts against the score: the row sum comes with a minus
    """,
    hints=r"""
        Write the answer for one row first, with indices, and then look for a matrix that holds all the row sums.
        A product with `\mathbf{1}` sums the rows or the columns of a matrix. On which side must the ones stand here?
        A column has one entry for each row. Another product with ones copies each of them along its row.
    """,
    why=r"""
        $(P \odot dP)\, \mathbf{1}$ is the column of the numbers $\delta_i = \sum_j p_{ij}\, dP_{ij}$, and times $\mathbf{1}^\top$ each
        of them fills its row. In NumPy the two products with ones are `sum(axis=-1, keepdims=True)` and the broadcast behind it.
    """,
)


def _back_to_the_keys(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A forward pass, the gradient at its output, and that of the keys by differences through the whole of it."""
    T_q, T_k, d_k, d_v = sizes.values()
    Q, K, V, dZ = _random(rng, (T_q, d_k), (T_k, d_k), (T_k, d_v), (T_q, d_v))
    Z, P = attention(Q, K, V, return_weights=True)
    dK = derivative(lambda moved: np.vdot(dZ, attention(Q, moved, V)), K)
    return {"P": P, "Q": Q, "V": V, "Z": Z, "dZ": dZ, "d_k": d_k, "T_q": T_q, "T_k": T_k, "dK": dK}


my_key_gradient = asked_formula(
    "gradient-of-one-key",
    "What one key learns from all queries",
    entry="my_key_gradient",
    asks=r"""
        Every query has a score with key $j$. Write what key $j$ gets back from all queries, row $j$ of $dK$, as a formula:

        $$dK_j = \ldots$$

        The scores are $Q K^\top / \sqrt{d_k}$, the outputs $Z$, and `dZ` is the gradient at $Z$. Rows are `Q_i`, `V_j`, `Z_i` and `dZ_i`,
        and the weights are `P_{ij}`. `dS` and `dP` may not stand in it: write out what they are. Put a dot product in parentheses, `(dZ_i
        \cdot ...)`. Any form that is equal counts.
    """,
    equation="query-and-key-gradients",
    points=3,
    difficulty=2,
    minutes=12,
    trains="putting two steps of the backward pass together",
    answer=r"\frac{1}{\sqrt{d_k}} \sum_i P_{ij} (dZ_i \cdot (V_j - Z_i)) Q_i",
    symbols=("P", "Q", "V", "Z", "dZ", "d_k", "T_q", "T_k"),
    functions=(r"\sqrt",),
    left="dK_j",
    cases=at_sizes("T_q T_k d_k d_v", _back_to_the_keys),
    slips=r"""
        the scale forgotten
            \frac{1}{\sqrt{d_k}} ->
            the scores are Q K^T / sqrt(d_k), so dK keeps the factor 1 / sqrt(d_k), {eq}`query-and-key-gradients`
        divided by d_k
            \sqrt{d_k} -> d_k
            the scale passes through once, as 1 / sqrt(d_k); 1 / d_k is its square
        compared with zero instead of the mixture
            (V_j - Z_i) -> V_j
            raising one score lowers the other weights of its row: what counts is value j minus the output of the query that asks
        the mixture beats the value
            V_j - Z_i -> Z_i - V_j
            the sign is turned round: raising s_ij moves the output of query i from Z_i towards V_j
        the weight forgotten
            P_{ij} ->
            a score moves its own weight in proportion to that weight, {eq}`score-gradient-against-mixture`: the factor P_ij is missing
        the weights summed apart
            (dZ_i \cdot (V_j - Z_i)) Q_i -> \sum_l (dZ_l \cdot (V_j - Z_l)) Q_l
            weight, cost and query of one term belong to the same query i: one sum over i holds all three
        the softmax treated entry by entry
            (dZ_i \cdot (V_j - Z_i)) -> (1 - P_{ij}) (dZ_i \cdot V_j)
            p (1 - p) is only the diagonal of the softmax Jacobian; the other weights of the row move as well, {eq}`softmax-jacobian`
    """,
    hints="""
        Which scores does key j take part in? The gradient at the key collects all of these.
        How fast does key j move one of these scores? And what does the loss lose or gain with that score?
        If a dS is left in your formula, which equation writes it with weights, values and outputs?
    """,
    why=r"""
        By {eq}`query-and-key-gradients`, $dK_j = \sum_i dS_{ij}\, Q_i / \sqrt{d_k}$, and {eq}`score-gradient-against-mixture` says what
        $dS_{ij}$ is. So a step against the gradient moves the key **towards** the queries whose outputs would gain from more of
        its value, and away from the others, each with the weight that it already gives the key as a factor. A key to which no
        query gives any weight gets no gradient.
    """,
)


def _weights_and_gains(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """A forward pass, the gradient at its output, and the one at its weights by differences."""
    T_q, T_k, d_v = sizes.values()
    Q, K, V, dZ = _random(rng, (T_q, 2), (T_k, 2), (T_k, d_v), (T_q, d_v))
    p = softmax(scaled_dot_scores(Q, K))
    dP = derivative(lambda moved: np.vdot(dZ, moved @ V), p)
    return {"p": p, "dP": dP, "dZ": rows(dZ), "v": rows(V), "z": rows(attention(Q, K, V)), "T_k": T_k}


my_derivation = asked_formula(
    "from-jacobian-to-output",
    "From the Jacobian to pairs of values",
    entry="my_derivation",
    asks=r"""
        (From the Deeper section {section}`deeper-vanishes`.) By {eq}`score-gradient-over-row`,
        $dS_{ij} = \sum_l dP_{il}\, p_{il} ([l = j] - p_{ij})$. In other words, key $j$ is compared with each key $l$ of the row, and the
        pair counts with the weight of $l$. Show it in a list of lines of LaTeX, each equal to the one before. The first and the last stand
        below; it takes three steps or more.

        You may use $dP_{il} = dZ_i \cdot v_l$, {eq}`gradient-of-weights`, and $z_i = \sum_l p_{il}\, v_l$, {eq}`output-of-a-query`. The
        weights of a row sum to 1. Let sums run over letters other than $i$ and $j$.
    """,
    equation="score-gradient-against-mixture",
    points=2,
    difficulty=3,
    minutes=12,
    trains="sums in which a bracket keeps one term, and a sum of weights put in where it is 1",
    answer=[
        r"\sum_l dP_{il} p_{il} ([l = j] - p_{ij})",
        r"\sum_l dP_{il} p_{il} [l = j] - \sum_l dP_{il} p_{il} p_{ij}",
        r"dP_{ij} p_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
        r"p_{ij} \left( \sum_l p_{il} dP_{ij} - \sum_l p_{il} dP_{il} \right)",
        r"p_{ij} \sum_l p_{il} (dP_{ij} - dP_{il})",
        r"p_{ij} \sum_l p_{il} \, dZ_i \cdot (v_j - v_l)",
    ],
    symbols=("p", "dP", "dZ", "v", "z", "T_k"),
    cases=at_sizes("T_q T_k d_v", _weights_and_gains),
    least_steps=3,
    slips=r"""
        only the diagonal of the Jacobian
            line 3: - p_{ij} \sum_l p_{il} dP_{il} -> (1 - p_{ij})
            the terms with l other than j do not vanish: [l = j] is 0 there, but p_ij is not
        the sum over l done as if only l = j were left
            line 3: - p_{ij} \sum_l p_{il} dP_{il} ->
            [l = j] picks out one term of the first sum only; the sum with p_ij stays
        p_il taken for p_ij
            line 3: p_{ij} \sum_l p_{il} -> \sum_l p_{il} p_{il}
            in each term of the second sum stand p_il and p_ij, once each: p_ij does not depend on l and goes in front
        the term l = j left out
            line 3: \sum_l -> \sum_{l \ne j}
            the difference has two terms where l = j, so the sum with p_ij runs over all l, j among them
        the weight of the second term lost
            line 3: p_{ij} \sum_l -> \sum_l
            the factor p_ij of the second term must stay, in front of the sum
        a sum without its weights
            line 3: \sum_l p_{il} -> \sum_l
            each term of the sum holds its weight p_il: without it the sum is no mean
        the value of key j in every term
            line 3: dP_{il} -> (dZ_i \cdot v_j)
            in dP_il the value is v_l: only dP_ij, without an l, belongs to the value of key j
        plus for minus
            line 6: v_j - v_l -> v_j + v_l
            the second term comes with a minus, from [l = j] - p_ij
        dP_ij once for each key
            line 5: p_{il} (dP_{ij} - dP_{il}) -> (dP_{ij} - p_{il} dP_{il})
            inside a sum over the keys a term is counted T_k times; with the weights p_il, which sum to 1, it is counted once
        the pairs turned round
            line 6: v_j - v_l -> v_l - v_j
            the term with [l = j] is positive and belongs to key j, so v_j comes first
    """,
    hints="""
        Multiply the bracket out. What does a sum over l leave of a term that holds [l = j]?
        Which factors of the other sum do not depend on l? You should now have a single term and a sum, and both hold $p_{ij}$.
        A single term can go into a sum over l if it is multiplied by something that sums to 1. What does, in row i?
    """,
    why=r"""
        The bracket $[l = j]$ leaves the one term with $l = j$, and $p_{ij}$ does not depend on $l$. Since $\sum_l p_{il} = 1$, the single
        term $dP_{ij}$ is $\sum_l p_{il}\, dP_{ij}$, and the two sums become one. So a score says by how much value $j$ beats the others,
        pair by pair. If there are only two keys, the gradients of their scores are equal and opposite. To compute it, one takes the average
        of the $v_l$ first, which is $z_i$: {eq}`score-gradient-against-mixture` needs one comparison for each key, and the line above $T_k$
        of them.
    """,
)
