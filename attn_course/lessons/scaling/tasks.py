"""The tasks on similarity and the scale; those that are answered in LaTeX are in tasks_formulas.py."""

import math

import numpy as np

from attn_course.reference import cosine_scores, scaled_dot_scores, softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import every


@asked(
    "start-score-variance",
    "The scores of a fresh head",
    kind="predict",
    equation="score-variance-from-deviations",
    points=1,
    difficulty=2,
    minutes=7,
    trains="one rule for a variance, used for entries and then for scores",
    variants=every(inputs=(768, 384, 640), outputs=(64, 32, 48)),
    digits=3,
    slips="""
        the scale forgotten
            (inputs * entry) -> outputs * (inputs * entry)
            that is the variance of the plain dot product; the question divides it by the root of d_k
        divided by d_k
            ** 2 -> ** 2 / outputs
            you divided the score by d_k, not by its root
        b squared for the variance
            ` / 3` ->
            a uniform number between -b and b has the variance b^2 / 3
        one of the two matrices
            (inputs * entry) ** 2 -> inputs * entry
            that is the variance of an entry of the query; a score multiplies it by that of an entry of the key
        the entries of the matrices for those of the query
            inputs * entry -> entry
            that multiplies the variances of two entries of the matrices; an entry of the query sums d of them, each times an entry of x
        the sum over d_k entries
            inputs * entry -> outputs * entry
            an entry of x W_Q is a sum over the entries of x, and there are d of those
        a square matrix
            inputs + outputs -> inputs + inputs
            the matrix of one head has d inputs and only d_k outputs: put both into b
        three matrices packed into one
            inputs + outputs -> inputs + 3 * inputs
            that is what `nn.MultiheadAttention` does, for all heads at once; here the matrix of one head is started by itself
        no parentheses around what is squared
            (inputs * entry) ** 2 -> inputs * entry ** 2
            a power binds before a product: the query and the key both have the variance `inputs * entry`, so the whole product is squared
        no parentheses around the sum
            (inputs + outputs) -> inputs + outputs
            6 is divided by the sum of `inputs` and `outputs`: without parentheses it is divided by the first of them alone
    """,
    hints="""
        First the query alone: entry j of x W_Q is a sum of d independent terms. What is the variance of one of them?
        Together these terms hold the sum of all x_i^2, which is d. The key has the same variance, with entries of y.
        Now you have the two deviations that {eq}`score-variance-from-deviations` asks for; the scale comes last.
    """,
    why=r"""
        Entry $j$ of the query is $\sum_i x_i (W_Q)_{ij}$: $d$ independent terms of variance $x_i^2\, b^2 / 3$, so its variance is
        $\|x\|^2\, b^2 / 3 = 2 d / (d + d_k)$. The key's is the same. By {eq}`score-variance-from-deviations` the score has $d_k$ times
        their product, and the scale takes the $d_k$ away. Where $d_k$ is much smaller than $d$ this is nearly 4: this start misses the
        variance 1 upwards, while the two of PyTorch's layers miss it downwards.
    """,
)
def my_variance(inputs, outputs):
    r"""(From the Deeper section {section}`matrices`.) Xavier's rule starts $W_Q$ and $W_K$ of a head, both $(d, d_k)$,
    with independent entries, uniform between $-b$ and $b$ for $b = \sqrt{6 / (d + d_k)}$, so that each has the variance $b^2 / 3$.
    Layer normalisation gives two tokens $x$ and $y$ the lengths $\|x\|^2 = \|y\|^2 = d$. What is the variance of their score $x W_Q
    W_K^\top y^\top / \sqrt{d_k}$, over draws of $W_Q$ and $W_K$? The cell below prints your $d$ and $d_k$ as `inputs` and `outputs`.
    """
    entry = 6 / (inputs + outputs) / 3
    return (inputs * entry) ** 2


def _sixteen_points(rng):
    m_q, m_k = rng.uniform(-2.0, 2.0, size=(2, 16))
    v_q, v_k = rng.uniform(0.3, 3.0, size=(2, 16))
    return {"d_k": rng.uniform(2.0, 50.0, size=16), "m_q": m_q, "m_k": m_k, "v_q": v_q, "v_k": v_k}


@asked(
    "uncentred-score-variance",
    "Entries that are not centred",
    kind="derive",
    equation="score-variance-from-covariances",
    points=2,
    difficulty=3,
    minutes=10,
    trains="the general form of the variance",
    cases=[_sixteen_points],
    slips="""
        the means forgotten
            v_q * v_k + m_q**2 * v_k + m_k**2 * v_q -> v_q * v_k
            two terms of {eq}`score-variance-from-covariances` hold the means
        each mean with its own variance
            m_q**2 * v_k + m_k**2 * v_q -> m_q**2 * v_q + m_k**2 * v_k
            the mean of q goes with the covariances of k
        the mean square
            (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q) -> (v_q + m_q**2) * (v_k + m_k**2)
            the squared mean of each term, (m_q m_k)^2, has to be subtracted
        means not squared
            m_q**2 -> m_q ;; m_k**2 -> m_k
            each mean comes twice in a term of {eq}`score-variance-from-covariances`, once with i and once with j: it is squared
        variances squared
            all v_q -> v_q**2 ;; all v_k -> v_k**2
            v_q and v_k are variances already: only the means are squared
        the means counted once
            (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q) -> v_q * v_k + m_q**2 * v_k + m_k**2 * v_q
            each of the three terms is a sum over d_k entries, also the two with a mean
        one entry only
            d_k * (v_q -> (v_q
            variances of independent terms add: there are d_k of them
        only the query's mean
            ` + m_k**2 * v_q` ->
            there are two mixed terms: the key's mean meets the spread of the query just as the query's mean meets that of the key
        only the key's mean
            ` + m_q**2 * v_k` ->
            there are two mixed terms: the query's mean meets the spread of the key just as the key's mean meets that of the query
    """,
    hints="""
        Here S_q and S_k of {eq}`score-variance-from-covariances` have zeros off the diagonal. What stands on it?
        The trace, and each of the other two terms, is then a sum over the d_k entries. What is one of its terms?
        Each of those two pairs a squared mean with a variance: of the same vector, or of the other one?
    """,
    why="""
        In {eq}`score-variance-from-covariances` all covariances of different entries are 0, so each of the three terms is a sum of $d_k$
        equal numbers: $v_q v_k$, $m_q^2 v_k$ and $m_k^2 v_q$.
    """,
)
def my_expression(d_k, m_q, m_k, v_q, v_k):
    r"""(From the Deeper section {section}`matrices`.) Entries of $q$ are independent, each with mean $m_q$ (a number here, the same for all
    entries) and **variance** $v_q$; those of $k$ are independent of them and of each other, with mean $m_k$ and variance $v_k$. Write
    $\mathrm{Var}[q \cdot k]$ with the symbols `d_k`, `m_q`, `m_k`, `v_q` and `v_k`.
    """
    return d_k * (v_q * v_k + m_q**2 * v_k + m_k**2 * v_q)


@asked(
    "twin-with-split-factor",
    "A twin that shares the factor",
    kind="predict",
    equation="scale-as-reparametrisation",
    points=1,
    difficulty=3,
    minutes=5,
    trains="what a factor in the weights does to a step",
    variants=every(entries=(16, 256, 81), eta=(0.8, 1.2, 2.4)),
    digits=3,
    slips="""
        the whole factor in one matrix
            **0.5 ->
            that is the step of the lesson's twin, whose query matrix takes the whole factor; here it takes only the root of it
        the gradient or the movement, not both
            0.5 -> 0.25
            the factor comes in twice: once in the gradient, and once because the product moves by as much less
        the same step
            ` / entries**0.5` ->
            with the same step the twin moves too far
        the wrong way
            eta / -> eta *
            the twin's weights are the smaller ones, and so must be its steps
        the wrong way, with the whole factor
            / entries**0.5 -> * entries
            the twin's weights are the smaller ones, and so must be its steps; and each matrix takes only the root of the factor
    """,
    hints="""
        Hold the other matrix fixed. By which factor do the two query matrices differ?
        {eq}`scale-as-reparametrisation` holds for any factor that the loss sees only together with W.
        Put that factor in the place of c. How large is its square?
    """,
    why=r"""
        Take $W_Q$, with $W_K$ held fixed. The loss sees it only through $W_Q' = a\, W_Q$ with $a = d_k^{-1/4}$. So
        {eq}`scale-as-reparametrisation` holds with $a$ in the place of $c$: the twin needs $a^2 \eta = \eta / \sqrt{d_k}$. The same holds
        for $W_K$. The twin of the lesson has the whole factor in $W_Q$ and needs $\eta / d_k$ there, and $\eta$ for $W_K$.
    """,
)
def my_step_size(entries, eta):
    r"""(From the Deeper section {section}`measured`.) A layer divides its scores by $\sqrt{d_k}$ and learns $W_Q$ and $W_K$ by gradient
    descent with the step size $\eta$; the cell below prints your $d_k$ as `entries`, and $\eta$. A twin does not divide. It shares the
    factor: it starts from $W_Q' = d_k^{-1/4}\, W_Q$ and $W_K' = d_k^{-1/4}\, W_K$, so its first scores are the same. Which step size must
    it use, for both of its matrices, so that its scores stay the same?
    """
    return eta / entries**0.5


def _pairs(normal, q_len, kv_len, d_k, *leading):
    return {"query": normal(*leading, q_len, d_k), "key": normal(*leading, kv_len, d_k)}


def _keys_of_very_different_lengths(rng):
    return {"query": rng.normal(size=(3, 7)), "key": rng.normal(size=(5, 7)) * np.geomspace(0.01, 100, 5)[:, None]}


def _tiny_lengths(rng):
    return {"query": 1e-9 * rng.normal(size=(3, 7)), "key": 1e-9 * rng.normal(size=(5, 7))}


def _a_key_of_zeros(rng):
    key = rng.normal(size=(5, 7))
    key[2] = 0.0
    return {"query": rng.normal(size=(3, 7)), "key": key}


def _a_query_of_zeros(rng):
    query = rng.normal(size=(2, 3, 7))
    query[1, 2] = 0.0
    return {"query": query, "key": rng.normal(size=(2, 5, 7))}


def _only_queries_of_zeros(rng):
    return {"query": np.zeros((2, 7)), "key": rng.normal(size=(3, 7))}


COSINES = """
more keys than queries: 3 11 7
two batch axes: 3 7 5 2 4
one query: 1 7 5
"""


@asked(
    "cosine-scores",
    "Cosine scores",
    kind="write",
    equation="cosine-similarity",
    points=3,
    difficulty=2,
    minutes=10,
    trains="norms along the right axis, and vectors of length 0",
    judged_by=cosine_scores,
    forbid=(forbidden.COSINE,),
    cases=[
        tried(_pairs, COSINES),
        *(_keys_of_very_different_lengths, _tiny_lengths, _a_key_of_zeros, _a_query_of_zeros, _only_queries_of_zeros),
    ],
    slips="""
        the scaled dot product
            np.where(lengths == 0, 1.0, lengths) -> np.sqrt(query.shape[-1])
            sqrt(d_k) is a constant; a cosine divides by the length of each query and each key
        only the keys normalised
            np.linalg.norm(query, axis=-1)[..., :, None] -> 1.0
            the query has a length too: divide by both
        only the queries normalised
            ` * np.linalg.norm(key, axis=-1)[..., None, :]` ->
            the keys have lengths too: divide by both
        squared lengths
            1.0, lengths) -> 1.0, lengths**2)
            the length is the square root of the sum of squares
        lengths of columns
                return query @ key.swapaxes(-1, -2) / np.where(lengths == 0, 1.0, lengths)
                ->
                sizes = [np.linalg.norm(x, axis=-2, keepdims=True) for x in (query, key)]
                queries, keys = (x / np.where(size == 0, 1.0, size) for x, size in zip((query, key), sizes))
                return queries @ keys.swapaxes(-1, -2)
            the length of a query runs along its own entries, the last axis; yours runs over the positions
        one length for the whole matrix
                np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
                ->
                np.linalg.norm(query) * np.linalg.norm(key)
                ;;
                np.where(lengths == 0, 1.0, lengths) -> lengths
            each row has a length of its own: `axis=-1`
        0 / 0 for a row of zeros
            np.where(lengths == 0, 1.0, lengths) -> lengths
            a row of zeros has length 0, and 0 / 0 is NaN: divide by 1 there, for the dot product is 0 already
    """,
    hints="""
        Every query row and every key row has a length: `np.linalg.norm(..., axis=-1, keepdims=True)`.
        Divide the dot products by the lengths of queries (a column) and of keys (a row).
        Where a length is 0, the dot product is 0 already. So which divisors would do there?
    """,
    why="""
        One length for each row; where the product of two lengths is 0 the dot product is 0 as well, so any other divisor will do.
    """,
)
def my_cosine_scores(query, key):
    """query (..., q_len, d_k), key (..., kv_len, d_k) -> cosines (..., q_len,
    kv_len), {eq}`cosine-similarity`.

    (From the Deeper section {section}`similar`.) Write `my_cosine_scores(query, key)` for float64 arrays of shapes `(..., q_len, d_k)`
    and `(..., kv_len, d_k)`, with the same leading axes: the cosine of the angle between each query and each key, of shape `(..., q_len,
    kv_len)`. A query or a key may be all zeros
    {case}`a key of zeros`: its cosines are 0, not NaN. Other lengths may be tiny, about $10^{-9}$ {case}`tiny lengths`, and still count:
    add no small number to them, and take none for 0.
    """
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.where(lengths == 0, 1.0, lengths)


def _heads_of_spread(normal, spread, n_heads, q_len, kv_len, d_k):
    return {"query": spread * normal(n_heads, q_len, d_k), "key": spread * normal(n_heads, kv_len, d_k)}


def _scores_from_minus_a_thousand_to_a_thousand(rng):
    """Rows of scores near a thousand, near minus a thousand, and with both kinds, so that each needs its own maximum."""
    query, key = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 7, 5))
    query[..., :2] = [[100.0, 0.0], [0.0, -100.0], [0.0, 100.0]]
    key[..., 0], key[..., 1] = -22.0, 22.0 + 0.02 * key[..., 1]
    key[:, 1, 0] = 22.0
    return {"query": query, "key": key}


HEADS = """
two heads: 1 2 3 5 7
five heads, long vectors: 3 5 2 7 11
one head: 1 1 3 7 5
one query: 1 2 1 7 5
"""


@asked(
    "repair-head-weights",
    "Repair the weights of several heads",
    kind="repair",
    equation="scaled-score-variance",
    points=2,
    difficulty=3,
    minutes=10,
    trains="where the scale goes, and which one it is",
    judged_by=lambda query, key: softmax(scaled_dot_scores(query, key)),
    broken="""
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
        ->
        n_heads, _, d_k = query.shape
        d_model = n_heads * d_k
        scores = query @ key.swapaxes(-1, -2)
        ;;
        sum(axis=-1, keepdims=True) -> sum(axis=-2, keepdims=True) / np.sqrt(d_model)
    """,
    forbid=(forbidden.SOFTMAX,),
    cases=[tried(_heads_of_spread, HEADS), _scores_from_minus_a_thousand_to_a_thousand],
    slips="""
        no scale
            ` / np.sqrt(query.shape[-1])` ->
            the scores are not scaled before the softmax
        the scale after the softmax
            ` / np.sqrt(query.shape[-1])` -> ;; sum(axis=-1, keepdims=True) -> sum(axis=-1, keepdims=True) / np.sqrt(query.shape[-1])
            weights must sum to 1: the scale divides the scores, before the softmax
        sqrt(d_model)
            np.sqrt(query.shape[-1]) -> np.sqrt(query.shape[0] * query.shape[-1])
            each score sums d_k products, not d_model: with sqrt(d_model) the variance is d_k / d_model = 1 / n_heads
        divided by d_k
            np.sqrt(query.shape[-1]) -> query.shape[-1]
            the root of d_k is missing: the variance would be 1 / d_k, {eq}`scaled-score-variance`
        softmax over the queries
            all axis=-1 -> axis=-2
            the weights of one query sum to 1: normalise over the keys, the last axis
        the sum still runs over the queries
            sum(axis=-1 -> sum(axis=-2
            the maximum is taken over the keys, the sum over the queries: both belong to the keys of one query, axis -1
        the scale still stands behind the softmax
                ` / np.sqrt(query.shape[-1])` ->
                ;;
                sum(axis=-1, keepdims=True) -> sum(axis=-1, keepdims=True) / np.sqrt(query.shape[0] * query.shape[-1])
            dividing weights makes rows that do not sum to 1: divide the scores, before their maximum is taken, and by sqrt(d_k)
        a maximum that is not the row's own
            scores.max(axis=-1, keepdims=True) -> scores.max()
            a row far below what is subtracted becomes 0 / 0: each query needs the largest score of its own row, whatever its sign
        the maximum of a column
            scores.max(axis=-1 -> scores.max(axis=-2
            what is subtracted from a row of scores must be one number for the whole row, its largest: take the maximum over the keys, the
            axis of the softmax
    """,
    hints="""
        Three mistakes: which number is the scale, where does it stand, and over which axis does the sum run?
        The scale divides the scores before their maximum is taken.
        `d_model` is not needed at all. And look at the two reductions: do they run over the same axis?
    """,
    why=r"""
        Each score sums $d_k$ products, so the scale is $\sqrt{d_k}$; it belongs before the softmax; and the sum runs over keys.
    """,
)
def head_weights(query, key):
    r"""query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> weights (n_heads,
    q_len, kv_len).

    The function below should return the weights of several heads that share a model of $d_{\text{model}} = h\, d_k$ features: `query` has
    shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, and each query's weights over the keys come from scores of variance 1
    (for independent entries of mean 0 and variance 1, {eq}`scaled-score-variance`). It is wrong in three places. Repair it. Scores may
    lie anywhere between -1000 and 1000, also within one row {case}`scores from minus a thousand to a thousand`.
    """
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)


def _row_spread(query, key):
    """The variance of the dot products within a row, the mean over the rows, for each head."""
    return np.array([np.mean([row.var() for row in scores]) for scores in query @ key.swapaxes(-1, -2)])


def _divisors(query, key):
    """The root of d_k for heads of which the spread is larger than that root, and 1 for the others."""
    root = math.sqrt(query.shape[-1])
    return np.where(_row_spread(query, key) > root, root, 1.0)


def _heads(rng, apart, q_len, kv_len, d_k, *spreads):
    """Heads whose mean variance within a row is exactly as given, in any order; `apart`: how far keys lie from 0 (shifts whole rows)."""
    query, key = rng.normal(size=(len(spreads), q_len, d_k)), rng.normal(size=(len(spreads), kv_len, d_k))
    now = _row_spread(query, key)
    key = key * np.sqrt(rng.permutation(spreads) / now)[:, None, None] + apart * np.sign(rng.normal(size=d_k))
    return {"query": query, "key": key}


def _fresh_heads_of_independent_entries(rng):
    return {"query": rng.normal(size=(2, 40, 31)), "key": rng.normal(size=(2, 50, 31))}


def _queries_and_keys_of_length_1(rng):
    pair = {"query": rng.normal(size=(2, 5, 13)), "key": rng.normal(size=(2, 7, 13))}
    return {name: each / np.linalg.norm(each, axis=-1, keepdims=True) for name, each in pair.items()}


def _the_factor_is_in_the_queries_already(rng):
    return {"query": rng.normal(size=(3, 11, 17)) / math.sqrt(17), "key": rng.normal(size=(3, 7, 17))}


SPREADS = """
keys with a large mean: 3.0 5 11 19 0.5 60.0
small spreads and large ones: 0 7 5 64 0.2 1.7 2.5 7.6 7.75 7.8 7.9 8.1 8.2 8.3 8.45 12.0 40.0 90.0
one head: 0 3 11 29 3.0
one query: 3.0 1 7 13 2.0 9.0
"""


@asked(
    "where-the-scale-helps",
    "Find the heads that the scale does not help",
    kind="write",
    equation="row-variance-by-query",
    points=3,
    difficulty=3,
    minutes=12,
    trains="what softmax sees of a spread, and when to leave the scale out",
    judged_by=_divisors,
    cases=[
        *(_fresh_heads_of_independent_entries, _queries_and_keys_of_length_1, _the_factor_is_in_the_queries_already),
        tried(_heads, SPREADS),
    ],
    slips="""
        the scale always helps
            np.where(helps, np.sqrt(d_k), 1.0) -> np.full(len(query), np.sqrt(d_k))
            the rule of thumb rests on assumptions, and not all of these heads keep them: measure each
        the variance of all scores
            .var(axis=-1).mean(axis=-1) -> .var(axis=(-2, -1))
            the variance of all scores of a head also holds how far its rows lie apart, which softmax does not see
        down the columns
            .var(axis=-1) -> .var(axis=-2)
            a row belongs to one query and runs over the keys: the variance within it is taken along the last axis
        all heads together
            .mean(axis=-1) -> .mean() + np.zeros(len(query))
            each head has a spread of its own: average over its rows, not over the heads
        nearer as a difference
            np.abs(np.log(spread / d_k)) < np.abs(np.log(spread)) -> np.abs(spread / d_k - 1) < np.abs(spread - 1)
            nearer as a ratio: a variance of 1/4 is as far from 1 as 4 is, while its difference from 1 is a quarter as large
        whatever lies above 1
            np.abs(np.log(spread / d_k)) < np.abs(np.log(spread)) -> spread > 1
            a variance a little above 1 would become much smaller than 1: compare the two ratios
        divided by the root of d_k
            spread / d_k -> spread / np.sqrt(d_k)
            the scores are divided by the root of d_k, so their variance is divided by d_k
        turned round
            np.sqrt(d_k), 1.0 -> 1.0, np.sqrt(d_k)
            these are the two divisors exchanged: the root of d_k is for heads whose rows are wide
        d_k for its root
            np.sqrt(d_k) -> d_k
            the right heads are divided, but by d_k: the divisor of the scores is its root
        the mean not subtracted
                (query @ key.swapaxes(-1, -2)).var(axis=-1).mean(axis=-1)
                ->
                ((query @ key.swapaxes(-1, -2)) ** 2).mean(axis=(-2, -1))
            a variance is the mean of the squares without the square of the row's mean; yours leaves the mean, or more of it, inside
        n - 1 in the variance, or the widest row
            .var(axis=-1) -> .var(axis=-1, ddof=1)
            v is a mean over the rows of variances that divide by n (the mean of the squares minus the square of the mean)
        whatever lies above d_k
            np.abs(np.log(spread / d_k)) < np.abs(np.log(spread)) -> spread > d_k
            a variance below d_k may still be nearer to d_k than to 1, as a ratio; and v is a variance, not its root
    """,
    hints="""
        Softmax gets one row at a time. Which axis of the scores runs along a row, and over which axis do you average then?
        With and without the division you have two variances. As a ratio, x is as far from 1 as 1 / x: which function makes both alike?
        Compare `abs(log(...))` of the two variances; or work out on paper how large v must be.
    """,
    why=r"""
        On a logarithmic axis the division moves $\ln v$ down by $\ln d_k$. That brings it nearer to 0 if $\ln v$ was above half of this, so
        the scale helps where $v > \sqrt{d_k}$. It does not help heads with normalised queries and keys (cosines), with the factor in $W_Q$
        already, or with keys that differ little, however far they lie from 0.
    """,
)
def my_divisors(query, key):
    r"""query (n_heads, q_len, d_k), key (n_heads, kv_len, d_k) -> (n_heads,): sqrt(d_k)
    or 1, from the spread within a row, {eq}`row-variance-by-query`.

    The scale does not help every head. Let $v$ be the variance of a head's plain dot products within a row (the mean of the squares minus
    the square of the mean), averaged over its rows. Divided by $\sqrt{d_k}$, the scores have $v / d_k$ instead. Write `my_divisors(query,
    key)`: `query` has shape `(n_heads, q_len, d_k)`, `key` `(n_heads, kv_len, d_k)`, both float64. Return for each head the better
    divisor, in an array of shape `(n_heads,)`: $\sqrt{d_k}$ if $v / d_k$ is nearer to 1 than $v$ is, and 1 if not. Nearer is meant as a
    ratio: 4 and 1/4 are equally far from 1. No $v$ is 0, and no head is a tie.
    """
    d_k = query.shape[-1]
    spread = (query @ key.swapaxes(-1, -2)).var(axis=-1).mean(axis=-1)
    helps = np.abs(np.log(spread / d_k)) < np.abs(np.log(spread))
    return np.where(helps, np.sqrt(d_k), 1.0)


ORDER = [
    note(
        "title",
        """
        They climb. Those that name a *Deeper* section belong to it.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
    """,
    ),
    "start-score-variance",
    "weights-under-a-scale",
    "sampled-row-spread",
    "repair-head-weights",
    "uncentred-score-variance",
    "query-weights-gradient",
    "twin-with-split-factor",
    "where-the-scale-helps",
    "cosine-scores",
    "score-variance-by-lines",
    "correlated-entries-variance",
    "divisor-for-sparse-entries",
    "unit-row-variance",
    "lift-the-silent",
]
