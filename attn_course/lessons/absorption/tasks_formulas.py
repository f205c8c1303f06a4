"""The tasks on absorption that are answered in LaTeX: biases line by line, a gauge of the values, a score in the latent space."""

from typing import Any

import numpy as np

from attn_course.formulas import matrices, row, rows
from attn_course.reference import absorb_query_key, absorb_value_output, scaled_dot_scores
from attn_course.tasks.asked import asked_formula
from attn_course.tasks.core import at_sizes


def _biased(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """Tokens and one head with biases; W and v as the machine would store them, absorbed."""
    T, d, d_k = sizes.values()
    x, W_Q, W_K, b_Q, b_K = (rng.normal(size=shape) for shape in ((T, d), (d, d_k), (d, d_k), (d_k,), (d_k,)))
    W = absorb_query_key(W_Q, W_K)[0]
    v = [sum(b_Q[c] * W_K[a, c] for c in range(d_k)) for a in range(d)]
    return {"x": rows(x), "W_Q": W_Q, "W_K": W_K, "b_Q": row(b_Q), "b_K": row(b_K), "W": W, "v": row(v)}


my_derivation = asked_formula(
    "absorb-projections-and-biases",
    "Absorb projections that have biases",
    entry="my_derivation",
    asks=r"""
        Queries and keys have biases, $b_Q$ and $b_K$. Bring the score of token $i$ with token $j$, line by line, to one absorbed
        matrix $W = W_Q W_K^\top$, one absorbed row $v = b_Q W_K^\top$, and a rest with $b_K$. Each line must equal the one before;
        show three steps or more. The last line may also have its terms in another order or its brackets opened.
    """,
    equation="score-with-biases",
    points=3,
    difficulty=2,
    minutes=10,
    trains="multiplying out rows and matrices, and the transpose of a sum",
    answer=[
        r"(x_i W_Q + b_Q) (x_j W_K + b_K)^\top",
        r"(x_i W_Q + b_Q) (W_K^\top x_j^\top + b_K^\top)",
        r"(x_i W_Q + b_Q) W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
        r"x_i W_Q W_K^\top x_j^\top + b_Q W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top",
        r"x_i W x_j^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
    ],
    symbols=("x", "W_Q", "W_K", "b_Q", "b_K", "W", "v"),
    cases=at_sizes("T d d_k", _biased),
    least_steps=3,
    slips=r"""
        the mixed terms forgotten
            line 5: v x_j^\top + (x_i W_Q + b_Q) b_K^\top -> b_Q b_K^\top
            two sums of two terms multiply to four products; the two that pair content with a bias are missing
        the key bias meets the query's bias only
            line 5: (x_i W_Q + b_Q) -> b_Q
            the key bias meets the whole query: x_i W_Q b_K^T is missing
        the preference for keys forgotten
            line 5: + v x_j^\top ->
            the query bias meets the content of the key as well: b_Q W_K^T x_j^T is missing
        the key bias dropped, as a softmax would
            line 5: + (x_i W_Q + b_Q) b_K^\top ->
            what holds b_K is the same for all keys, so a softmax drops it; but this is the score, before any softmax
        the two biases not multiplied
            line 5: (x_i W_Q + b_Q) -> x_i W_Q
            two sums of two terms multiply to four products; the one of both biases, b_Q b_K^T, is missing
        the wrong token asks
            line 5: x_i W x_j^\top -> x_j W x_i^\top
            W = W_Q W_K^T has the token that asks, x_i, on its left, {eq}`absorbed-score`; W is not symmetric
        the preference given to the query
            line 5: v x_j^\top -> v x_i^\top
            v = b_Q W_K^T holds the key's projection, so it meets the key's token, x_j
        each bias with its own projection
            line 4: b_Q W_K^\top x_j^\top + (x_i W_Q + b_Q) b_K^\top -> b_K W_K^\top x_j^\top + x_i W_Q b_Q^\top + b_Q b_K^\top
            what stands in one bracket never meets its own bracket: x_i W_Q is multiplied by the key's bias, b_K
    """,
    hints=r"""
        The transpose of a sum is the sum of the transposes, and that of a product turns its factors round.
        Multiply by the second bracket first, without opening the first one: the term with b_K stays as the goal has it.
        Behind the start comes `(x_i W_Q + b_Q) (W_K^\top x_j^\top + b_K^\top)`; open it from the right, then put in W and v.
    """,
    why=r"""
        The transpose is taken term by term, the right bracket is opened first, and the left one then only where it meets
        $W_K^\top$. That order leaves the rest as one term, $(x_i W_Q + b_Q)\, b_K^\top$, in which no $j$ stands: it is the same for all
        keys, so a softmax over the keys drops it, {eq}`key-bias-cancels`. What stays is the content, $x_i W x_j^\top$, and
        $v x_j^\top$, a preference for some keys whoever asks. A layer that stores $W$ and $v$ needs no $b_K$ at all.
    """,
)


def _value_gauge(rng: np.random.Generator, d: int, d_v: int) -> dict[str, Any]:
    """W_O' solves (W_V G) W_O' = W_V W_O: least squares with no residual, for the d rows of W_V G are more than its d_v columns."""
    W_V, W_O, *turns = (rng.normal(size=shape) for shape in ((d, d_v), (d_v, d), (d_v, d_v), (d_v, d_v)))
    one, other = (np.linalg.qr(turn)[0] for turn in turns)
    G = one * rng.uniform(0.5, 2, size=d_v) @ other  # far from singular
    solved = np.linalg.lstsq(W_V @ G, absorb_value_output(W_V, W_O)[0])[0]
    return {"W_V": W_V, "W_O": W_O, "G": G, "W_O'": solved}


my_factor = asked_formula(
    "gauge-of-the-values",
    "A gauge of the values",
    entry="my_factor",
    asks=r"""
        {eq}`query-key-gauge-freedom` puts a matrix between queries and keys. Values and output have such a freedom too. In one head we
        replace $W_V$ ($d \times d_v$) by $W_V G$, where $G$ ($d_v \times d_v$) may be any invertible matrix. Which matrix $W_O'$ must take
        the place of $W_O$ ($d_v \times d$), so that the head still writes the same whatever it reads? Write the right side of

        $$W_O' = \ldots$$
    """,
    equation="query-key-gauge-freedom",
    points=2,
    difficulty=2,
    minutes=6,
    trains="where an inverse goes when two factors meet",
    answer=r"G^{-1} W_O",
    symbols=("W_V", "W_O", "G"),
    left="W_O'",
    cases=at_sizes("d d_v", _value_gauge, ["d > d_v"]),
    slips=r"""
        the inverse transposed, as for the keys
            -1 -> -\top
            the keys needed a transpose because W_K stands transposed in W_Q W_K^T; in W_V W_O nothing is transposed
        the transpose for the inverse
            ^{-1} -> ^\top
            G^T undoes G only if G is a rotation or a reflection; here it is any invertible matrix
        the same G on both
            ^{-1} ->
            that gives W_V G G W_O: the second G must undo the first
        the output left as it was
            G^{-1} ->
            that gives W_V G W_O: the G in the middle is still there, so the head writes something else
    """,
    hints="""
        Write down what the changed head multiplies its averages by, and what that product must be.
        The two factors meet in the middle: what must stand behind G there, so that nothing is left of it?
        It is a square matrix on the left of W_O, made of G alone.
    """,
    why=r"""
        $W_V G\, G^{-1} W_O = W_V W_O$: the inverse must stand where it meets $G$. The keys needed $G^{-\top}$ only because
        $W_K$ is transposed in $W_Q W_K^\top$. So the entries of a single value mean as little as those of a single key; what a head
        writes is read from $U_h = W_V^{(h)} W_O^{(h)}$, {eq}`absorbed-multi-head-attention`.
    """,
)


def _absorbed_query(rng: np.random.Generator, **sizes: int) -> dict[str, Any]:
    """The absorbed query solves a . [c_j, k_j^R] = s_j for more tokens than it has entries; the scores are those of keys written out."""
    H, d_c, d_k, d_R = sizes.values()
    t = d_c + d_R + 7
    shapes = {"q^C": (H, d_k), "q^R": (H, d_R), "c": (t, d_c), "k^R": (t, d_R), "W": (H, d_c, d_k)}
    q_content, q_rotary, c, k_rotary, W_UK = (rng.normal(size=shape) for shape in shapes.values())
    a = []
    for content, rotary, up in zip(q_content, q_rotary, W_UK, strict=True):
        query, keys = np.concatenate([content, rotary]), np.concatenate([c @ up, k_rotary], axis=1)
        scores = scaled_dot_scores(query[None], keys)[0]
        a.append(np.linalg.lstsq(np.concatenate([c, k_rotary], axis=1), scores)[0])
    given = {"q^C": rows(q_content), "q^R": rows(q_rotary), "W_{UK}^{(h)}": matrices(W_UK)}
    return {**given, "d_c": d_c, "d_k": d_k, "d_R": d_R, "a": rows(np.array(a))}


my_query = asked_formula(
    "query-that-asks-latents",
    "The query that asks the cache",
    entry="my_query",
    asks=r"""
        In latent attention, head $h$ compares its query $[\,q_h^C, q_h^R\,]$ with the key $[\,c_j W_{UK}^{(h)}, k_j^R\,]$ of token $j$
        (already rotated; the parts have widths $d_k$ and $d_R$). But no key is made: the cache holds $[\,c_j, k_j^R\,]$, $d_c + d_R$
        numbers. Write the right side of $a_h = \ldots$, the row for which

        $$a_h \cdot [\,c_j,\, k_j^R\,]$$

        is the score that the softmax gets. A transpose is `W_{UK}^{(h)\top}`; `[a, b]` puts rows side by side.
    """,
    equation="absorbed-latent-attention",
    points=3,
    difficulty=3,
    minutes=10,
    trains="absorbing the up-projection, and the scale that stays",
    answer=r"\frac{[\, q_h^C W_{UK}^{(h)\top},\, q_h^R \,]}{\sqrt{d_k + d_R}}",
    symbols=("q^C", "q^R", "W_{UK}^{(h)}", "d_c", "d_k", "d_R"),
    functions=(r"\sqrt",),
    left="a_h",
    cases=at_sizes("H d_c d_k d_R", _absorbed_query),
    slips=r"""
        the scale of the latent space
            d_k + d_R -> d_c + d_R
            a_h has d_c + d_R entries, but the score is that of a key of d_k + d_R: absorbing changes how it is computed, not its value
        the rotary part forgotten in the scale
            d_k + d_R -> d_k
            the key that is replaced has d_k + d_R entries, and the scale counts them all
        each part with a scale of its own
                q_h^C W_{UK}^{(h)\top} -> \frac{q_h^C W_{UK}^{(h)\top}}{\sqrt{d_k}}
                ;;
                ,\, q_h^R -> ,\, \frac{q_h^R}{\sqrt{d_R}}
                ;;
                {\sqrt{d_k + d_R}} -> {1}
            both parts belong to one dot product, which is scaled once
        the rotary part not scaled
            ,\, q_h^R -> ,\, \sqrt{d_k + d_R}\, q_h^R
            the whole score is scaled, so the rotary part is divided by the root as well
        no root in the scale
            \sqrt{d_k + d_R} -> d_k + d_R
            the scores are divided by the root of d_k + d_R, not by d_k + d_R
        no scale
            {\sqrt{d_k + d_R}} -> {1}
            both parts are right; but a_h must give the score with its scale, which depends on the width of the key that is replaced
        the parts in the other order
            q_h^C W_{UK}^{(h)\top},\, q_h^R -> q_h^R,\, q_h^C W_{UK}^{(h)\top}
            what meets the latent vector must stand first, as c_j does in the cached row
        the up-projection of one head for all
            {(h)\top} -> {(1)\top}
            each head rebuilds keys of its own from the shared latent vector, so head h needs its own up-projection
    """,
    hints=r"""
        Write out the score of head h with token j, and its scale. Which factors belong to the cached row, and which to the query?
        The content part is q_h^C times the transpose of c_j W_UK, and a transpose turns the factors round: the query meets W_UK^T
            first.
        A row in two parts, `[\, ... ,\, q_h^R \,]`, divided by the root of a sum of two widths.
    """,
    why=r"""
        The dot product of two rows in two parts is the sum of two dot products, {eq}`decoupled-rope-score`. In the first,
        $q_h^C (c_j W_{UK}^{(h)})^\top = (q_h^C W_{UK}^{(h)\top})\, c_j^\top$, so the up-projection moves to the query,
        {eq}`absorbed-latent-keys`; the rotary part stays as it is. Now $a_h$ has $d_c + d_R$ numbers, but that is only how the score is
        computed: its value, and so its scale, is that of a key of width $d_k + d_R$.
    """,
)
