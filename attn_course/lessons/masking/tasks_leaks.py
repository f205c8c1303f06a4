"""Tasks on masking: what leaks through a finite fill, the gradient under a mask, and a leak test."""

import numpy as np
from sympy import log

from attn_course.tasks.asked import asked, tried


def _sixteen_points(rng):
    return {"r": rng.uniform(0.2, 9.0, size=16), "epsilon": rng.uniform(0.01, 0.4, size=16)}


@asked(
    "large-enough-fill",
    "How large is large enough?",
    kind="derive",
    equation="finite-fill-leaks",
    points=2,
    difficulty=2,
    minutes=8,
    trains="what a finite number hides",
    functions=("log",),
    cases=[_sixteen_points],
    slips="""
        the visible share taken as 1
            r * (1 - epsilon) / epsilon -> r / epsilon
            the weight is r / (r + e^c), not r / e^c: the hidden terms are in the normaliser too, {eq}`finite-fill-leaks`
        the scores forgotten
            r * (1 -> (1
            that is right for r = 1 only: the larger the hidden scores, the larger c must be
        r turned over
            r * (1 - epsilon) / epsilon -> (1 - epsilon) / (epsilon * r)
            r is hidden over visible: a larger r asks for a larger c
        the sign of c
            r * (1 - epsilon) / epsilon -> epsilon / (r * (1 - epsilon))
            c is what is subtracted, so it is positive for a small weight: you gave the number that is added
        e^c instead of c
            log(r * (1 - epsilon) / epsilon) -> r * (1 - epsilon) / epsilon
            that is e^c: take the logarithm
        the share outside the logarithm
            log(r * (1 - epsilon) / epsilon) -> log(r) * (1 - epsilon) / epsilon
            e^c is r (1 - epsilon) / epsilon: the logarithm is that of the whole product
        the logarithm of the weight alone
            log(r * (1 - epsilon) / epsilon) -> -log(epsilon)
            subtracting c does not divide a weight by e^c, since the rest is renormalised: solve r / (r + e^c) = epsilon
    """,
    hints="""
        Set the weight of {eq}`finite-fill-leaks` equal to epsilon and solve for c.
        Multiply by the denominator: r = epsilon (r + e^c). What is e^c?
        e^c is r (1 - epsilon) / epsilon; take the logarithm.
    """,
    why=r"""
        Solve $\epsilon = r / (r + e^c)$, {eq}`finite-fill-leaks`, for $c$. The answer grows with $\ln r$: no number is large enough
        for all scores, and for $\epsilon \to 0$ it must grow without bound. Hence $-\infty$.
    """,
)
def my_fill(r, epsilon):
    r"""A mask subtracts a finite number $c$ from the scores of the hidden keys. Let `r` be the ratio of the hidden to the visible
    terms before that, $r = \sum_{j \notin A} e^{s_j} / \sum_{j \in A} e^{s_j}$. Derive the $c$ for which all hidden keys
    **together** have the weight `epsilon` ($0 < \epsilon < 1$). Write it with `r`, `epsilon` and `log`.
    """
    return log(r * (1 - epsilon) / epsilon)


def _points(rng):
    total = rng.uniform(0.3, 0.9, size=16)
    share = rng.uniform(0.1, 0.9, size=16)
    v_j, z = rng.normal(size=(2, 16))
    return {"w_j": total * share, "w_all": total, "v_j": v_j, "z": z}


@asked(
    "masked-score-gradient",
    "The gradient of a score that may be seen",
    kind="derive",
    equation="output-derivative-by-score",
    points=2,
    difficulty=3,
    minutes=10,
    trains="renormalised weights and their derivative",
    cases=[_points],
    slips="""
        the weight not renormalised
            w_j / w_all -> w_j
            the weight of key j under the mask is its share among the visible ones, {eq}`masking-renormalises-weights`
        the other weights forgotten
            (v_j - z) -> v_j
            raising one score lowers all other visible weights: what counts is v_j minus the present mixture z
        the hidden weight left in the mixture
            - z -> - w_all * z
            z is already the mixture under the mask; it needs no other factor
        renormalised twice
            w_all -> w_all**2
            one division by the sum of the visible weights turns w_j into the weight under the mask
        the softmax treated entry by entry
            (v_j - z) -> (1 - w_j / w_all) * v_j
            p (1 - p) v_j is the part of key j alone; the other visible weights move as well, {eq}`softmax-derivative`
        the sign turned round
            v_j - z -> z - v_j
            a larger score moves z towards v_j
    """,
    hints="""
        Under the mask, z is an ordinary mixture, of the visible keys only. Which equation gives its derivative by a score?
        {eq}`output-derivative-by-score`: the weight under the mask, times the value minus the mixture.
            {eq}`masking-renormalises-weights` gives that weight.
        The weight under the mask is `w_j / w_all`.
    """,
    why=r"""
        Under the mask the weight of key $j$ is $p_j = w_j / w_{\mathrm{all}}$, {eq}`masking-renormalises-weights`, and
        {eq}`output-derivative-by-score` gives
        $p_j (v_j - z)$. Nothing else is special about a mask: the hidden keys are simply not there.
    """,
)
def my_score_gradient(w_j, w_all, v_j, z):
    r"""One query has unmasked weights, the softmax of all its scores. Let `w_all` be the sum of the weights of all *visible* keys, `w_j`
    the weight of one visible key, and `v_j` its value, a number. Under the mask, put on before the softmax, the output is `z`.
    Derive $\partial z / \partial s_j$, the derivative by the score of that visible key, and write it with the symbols `w_j`,
    `w_all`, `v_j` and `z`. Sums, products and powers of them are all you need.
    """
    return w_j / w_all * (v_j - z)


def layer(x: np.ndarray, kind: int) -> np.ndarray:
    """A layer of seven kinds, 0 to 6, that should be causal: (length, 4) -> (length,
    3). Most are not.
    """
    scores = x[:, :2] @ x[:, 1:3].T
    seen = np.tri(len(x), k=1 if kind == 1 else 0) > 0
    if kind == 2:
        seen = seen.T
    axis = 0 if kind == 3 else 1
    hidden = scores if kind == 4 else np.where(seen, scores, -np.inf)
    unnormalised = np.exp(hidden - hidden.max(axis=axis, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=axis, keepdims=True) * seen
    output = weights @ x[:, 1:]
    if kind == 6:
        output[:, 2] += x[-1, 3]
    return output - output.mean(axis=0) if kind == 5 else output


def _text(normal, length, kind):
    x = 0.8 * normal(length, 4)
    x[length // 2] = 0.0  # a multiple of this token is no move
    return {"x": x, "kind": kind}


def _loud(rng, kind, loud=None):
    """Seven tokens whose scores fall by about 1000 from key to key, but for one key, which wins wherever it is seen."""
    x = rng.normal(size=(7, 4))
    x[:, 0] = 100.0
    x[:, 1] = -10.0 * np.arange(7)
    if loud is not None:
        x[loud, 1] = 20.0
    return {"x": x, "kind": kind}


def _another_mask_and_one_token_that_all_attend_to_who_see_it(rng):
    return _loud(rng, 1, loud=4)


def _another_place_for_the_mask_and_tokens_that_nobody_later_is_drawn_to(rng):
    return _loud(rng, 4)


TEXTS = """
everything in order, or not: 7 0
another mask: 7 1
yet another mask: 7 2
another softmax: 7 3
another place for the mask: 7 4
another end: 7 5
a way round the weights: 7 6
a text of five tokens: 5 3
a single token: 1 2
"""


@asked(
    "leak-test",
    "A leak test",
    kind="write",
    equation="causal-mask-hides-future",
    points=3,
    difficulty=4,
    minutes=15,
    trains="testing what a layer does, not what its code says",
    given=(layer,),
    cases=[
        tried(_text, TEXTS),
        _another_mask_and_one_token_that_all_attend_to_who_see_it,
        _another_place_for_the_mask_and_tokens_that_nobody_later_is_drawn_to,
    ],
    slips="""
        every dependence counted
            np.triu(leaks, k=1) -> leaks
            earlier tokens and the token itself may have influence: a leak is one with j > i
        the token itself counted
            np.triu(leaks, k=1) -> np.triu(leaks)
            output i may depend on token i: the leaks lie strictly above the diagonal
        rows and columns exchanged
            np.triu(leaks, k=1) -> np.triu(leaks, k=1).T
            row i is the output that moves, column j the token that was moved
        the past searched
            np.triu(leaks, k=1) -> np.tril(leaks, k=-1)
            you looked below the diagonal, at tokens that are earlier than the output
        only the last token moved
            range(len(x)) -> [len(x) - 1]
            move every token in turn: each has its own column
        moved tokens not put back
                for j in range(len(x)):
                    moved = x.copy()
                    moved[j] += np.array([1.0, -1.0, 0.8, 1.2])
                ->
                moved = x.copy()
                for j in reversed(range(len(x))):
                    moved[j] += 1.0
            token j is moved together with all later ones, so their leaks are booked on j as well: start from x each time
        one feature of the output watched
            .max(axis=1) > 1e-6 -> [:, 0] > 1e-6 ;; np.array([1.0, -1.0, 0.8, 1.2]) -> 1.0
            a leak may go through one feature only: move all features of the token, and take the largest change over those of the output
        signed changes
                np.abs(layer(moved, kind) - layer(x, kind)) -> (layer(moved, kind) - layer(x, kind))
                ;;
                1.0, -1.0, 0.8, 1.2 -> 0.7, -0.4, 0.9, 0.5
            an output that shrinks has moved too: take absolute values before the maximum
        sizes instead of zeros and ones
            ` > 1e-6` -> ;; 1.0, -1.0, 0.8, 1.2 -> 0.7, -0.4, 0.9, 0.5
            the question is whether there is a leak: return 1 where the change is larger than 1e-6, else 0
        moved by a multiple of itself
            moved[j] += np.array([1.0, -1.0, 0.8, 1.2]) -> moved[j] *= 2.0
            twice a token of zeros is the same token: add about 1 to each feature, up or down, whatever stands there
    """,
    hints="""
        Call the layer once as it is, and once for each token with that token moved. What differs?
        For token j: copy x, add a step to row j, and compare both outputs row by row: that gives column j.
        `leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind)).max(axis=1) > 1e-6`; at the end `np.triu(leaks, k=1)`.
    """,
    why="""
        Only kind 0 passes. Kind 1 is one column too wide, 2 transposed, 3 normalises over the queries, 4 puts the mask after
        the softmax. Kinds 5 and 6 have a perfect mask and leak behind it: the mean over all positions carries the future into every
        row, and so does one number of the last token. Reading the mask would not have shown it; moving a token does.
    """,
)
def my_leaks(x, kind):
    """(length, 4) -> (length, length): 1 where the later token j moves output i of
    layer(x, kind), else 0.

    The cell below holds `layer(x, kind)`: seven layers that should be causal, and most are not. Write the test that tells:
    `my_leaks(x, kind)` takes tokens `x` of shape `(length, 4)` and an integer `kind`, and returns an array of floats (no
    booleans or integers) of shape `(length, length)`. Its entry in row $i$ and column $j$ is 1 if $j > i$ and output $i$
    of `layer` changes by more than $10^{-6}$ in any feature when token $j$ is moved; all other entries are 0.

    Move a token by about 1, up or down, in **each** of its four features: a leak may use only one {case}`any`. Take the layer as a black
    box: call it, do not look inside. Whether a leak is felt depends on the tokens, too.
    """
    leaks = np.zeros((len(x), len(x)))
    for j in range(len(x)):
        moved = x.copy()
        moved[j] += np.array([1.0, -1.0, 0.8, 1.2])
        leaks[:, j] = np.abs(layer(moved, kind) - layer(x, kind)).max(axis=1) > 1e-6
    return np.triu(leaks, k=1)
