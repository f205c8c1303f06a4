"""The tasks on softmax; derivatives are in tasks_derivatives.py, answers in LaTeX in tasks_formulas.py and tasks_derivations.py."""

import numpy as np

from attn_course.reference import softmax
from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, note, tried
from attn_course.tasks.core import every


def _scores(normal, axis, centre, spread, *shape):
    return {"scores": centre + spread * normal(*shape), "axis": axis}


def _one_row_near_1000_and_one_near_minus_1000(rng):
    return {"scores": rng.normal(size=(2, 7)) + np.array([[1000.0], [-1000.0]]), "axis": -1}


def _a_wide_spread_within_each_row(rng):
    return {"scores": rng.normal(size=(3, 7)) + 1500.0 * np.array([-1, -1, -1, -1, 1, 1, 1]), "axis": -1}


SCORES = """
rows of a matrix: -1 0 1 3 5
columns of a matrix: 0 0 1 3 5
the middle one of three axes: 1 0 1 2 5 3
scores near a thousand: -1 1000 10 5 7
scores near minus a thousand: -1 -1000 10 5 7
an axis counted from the end: -3 0 1 2 5 3
a single axis: 0 0 1 5
a single entry to share among: 1 0 1 7 1
"""


@asked(
    "stable-softmax",
    "Stable softmax on any axis",
    kind="write",
    equation="stable-softmax",
    points=3,
    difficulty=2,
    minutes=10,
    trains="axes and the maximum trick",
    judged_by=softmax,
    forbid=(forbidden.SOFTMAX,),
    cases=[tried(_scores, SCORES), _one_row_near_1000_and_one_near_minus_1000, _a_wide_spread_within_each_row],
    slips="""
        no maximum subtracted
            scores - scores.max(axis=axis, keepdims=True) -> scores
            exp overflows to inf (or every term underflows to 0), and inf / inf or 0 / 0 is NaN: subtract the maximum first,
            {eq}`stable-softmax`
        the maximum of the whole array subtracted
            scores.max(axis=axis, keepdims=True) -> scores.max()
            a row far below the largest score of the array underflows to 0 / 0: take the maximum along `axis`, with keepdims=True
        softmax over the last axis, whatever `axis` says
            all axis=axis -> axis=-1
            the argument `axis` says along which axis the weights sum to 1; you always used the last
        softmax over the first axis, whatever `axis` says
            all axis=axis -> axis=0
            the argument `axis` says along which axis the weights sum to 1; you always used the first
        softmax over all entries at once
            scores.max(axis=axis, keepdims=True) -> scores.max() ;; unnormalised.sum(axis=axis, keepdims=True) -> unnormalised.sum()
            your weights sum to 1 over the whole array; they must sum to 1 along `axis`
        NaN replaced by 0
                scores - scores.max(axis=axis, keepdims=True) -> scores
                ;;
                return unnormalised / -> return np.nan_to_num(unnormalised /
                ;;
                sum(axis=axis, keepdims=True) -> sum(axis=axis, keepdims=True))
            the NaN came from an overflow, and the weights behind it are lost: subtract the maximum, and no NaN arises
        the logarithm of the weights
                unnormalised / unnormalised.sum -> shifted - np.log(unnormalised.sum
                ;;
                sum(axis=axis, keepdims=True) -> sum(axis=axis, keepdims=True))
            that is ln s, {eq}`log-softmax`, a log-softmax: take its exponential
        not normalised
            ` / unnormalised.sum(axis=axis, keepdims=True)` ->
            the exponentials are right, but nothing divides them by their sum
    """,
    hints="""
        Two reductions run along `axis`: a maximum and a sum. What do `keepdims=True` results broadcast against?
        A slice may lie anywhere, and its exponentials must neither overflow nor all vanish. Which number may you subtract from it?
        For scores of shape (2, 5, 3) and `axis=1`, the maximum and the sum both have the shape (2, 1, 3).
    """,
    why="""
        Both reductions run along `axis` and keep it with length 1, so that they broadcast against `scores`
        whatever the axis is. The maximum belongs to each slice: one maximum for the whole array leaves slices far below
        it with 0 / 0.
    """,
)
def my_softmax(scores, axis):
    """Weights of the shape of `scores` that sum to 1 along `axis`, {eq}`stable-softmax`.

    Write softmax for an array of any number of axes
    {case}`the middle one of three axes`: `my_softmax(scores, axis)` returns weights of the shape of
    `scores` that are not negative and sum to 1 along `axis`.

    `scores` is a float64 array of finite numbers and may hold values of a thousand and more, of either sign, also in
    one row only {case}`one row near 1000 and one near minus 1000`. `axis` is an integer and may be negative
    {case}`an axis counted from the end`.
    """
    shifted = scores - scores.max(axis=axis, keepdims=True)
    unnormalised = np.exp(shifted)
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)


@asked(
    "entropy-by-hand",
    "The most undecided weights",
    kind="predict",
    equation="lse-is-best-compromise",
    points=1,
    difficulty=3,
    minutes=8,
    trains="finding beta, and with it the largest entropy",
    variants=every(n=(2, 3, 5), r=(4, 7, 6)),
    digits=3,
    slips="""
        measured in bits
            all np.log -> np.log2
            that is the entropy in bits; with the natural logarithm the unit is the nat
        the entropy of equal weights
            n + r) - r / (n + r) * np.log(r) -> n + 1)
            equal weights have the largest entropy of all, but their average score is another: here it is given
        the minus sign forgotten
            np.log(n + r) - r -> -np.log(n + r) + r
            every ln p_i is negative, so an entropy is not: H = -sum p_i ln p_i
        the logarithms not weighted
            np.log(n + r) - r / (n + r) * -> (n + 1) * np.log(n + r) -
            you added -ln p_i with weight 1 each; the entropy weights each of them with p_i
        the mean score forgotten
            ` - r / (n + r) * np.log(r)` ->
            that is lse(beta z), which {eq}`lse-is-best-compromise` gives for the scores beta z; beta times the average must be subtracted
        one of the equal weights left out
            np.log(n + r) - -> (1 - 1 / (n + r)) * np.log(n + r) -
            each of the n equal weights adds its part
        beta taken for one
            np.log(n + r) -> np.log(n + np.e) ;; ` * np.log(r)` ->
            that is lse(z) less the average score, the entropy if beta were one; the average asks for another beta
    """,
    hints="""
        Which weights have the largest entropy among all with a given average? One number in them is unknown.
        They are softmax(beta z). With one score 1 and n scores 0, their average is the weight of the score 1.
        Set that weight equal to the given average, which tells e^beta. What does {eq}`lse-is-best-compromise` say for the scores beta z?
    """,
    why=r"""
        By {eq}`lse-is-best-compromise` the maximum is at $\sigma(\beta z)$ with the $\beta$ that fits, where both sides are equal. The
        average is the weight of the score 1, $e^\beta / (n + e^\beta)$, so $e^\beta = r$, and
        $H = \mathrm{lse}(\beta z) - \beta \mu = \ln(n + r) - \frac{r}{n + r} \ln r$. For $n = 2$, $r = 4$ the weights are 1/6, 1/6, 2/3.
    """,
)
def my_entropy(n, r):
    r"""Weights $p$ belong to $n + 1$ scores: $n$ of them are 0 and one is 1. The average score is to be $\sum_i p_i z_i = r / (n + r)$;
    the cell below prints your $n$ and $r$. What is the largest entropy, in nats, that such weights can have? Work
    it out on paper, then write the number, or an expression such as `2 * np.log(7)`.
    """
    return np.log(n + r) - r / (n + r) * np.log(r)


def _tempered(normal, temperature, centre, spread, *shape):
    return {"scores": centre + spread * normal(*shape), "temperature": temperature}


def _one_row_near_1000_and_one_near_minus_1000_cold(rng):
    return {"scores": rng.normal(size=(2, 5)) + np.array([[1000.0], [-1000.0]]), "temperature": 0.4}


TEMPERED = """
a cold softmax: 0.4 0 1 3 5
a hot softmax: 3.0 0 1 5 7
scores near minus four thousand, hot: 3.0 -4000 1 3 7
thousands within each row, very hot: 1000.0 0 2000 3 5
one query: 2.0 0 1 1 5
"""


@asked(
    "repair-softmax-temperature",
    "Repair a softmax with temperature",
    kind="repair",
    equation="softmax-with-temperature",
    points=2,
    difficulty=3,
    minutes=10,
    trains="finding mistakes that raise no error",
    judged_by=lambda scores, temperature: softmax(scores, temperature=temperature),
    broken=["not repaired yet"],
    forbid=(forbidden.SOFTMAX,),
    cases=[tried(_tempered, TEMPERED), _one_row_near_1000_and_one_near_minus_1000_cold],
    slips="""
        not repaired yet
                scores.max(axis=-1, keepdims=True) -> scores.max()
                ;;
                np.exp(shifted / temperature) -> np.exp(shifted) / temperature
                ;;
                sum(axis=-1, keepdims=True) -> sum(axis=0)
            each of the three lines holds one mistake: an axis twice, and once a place
        the temperature outside the exponential
            shifted / temperature -> shifted
            a factor outside the exponential cancels against the sum: the temperature must divide the scores
        softmax over the queries
            all axis=-1 -> axis=0
            each query's weights must sum to 1: sum along the keys, the last axis
        the maximum of all queries
            scores.max(axis=-1, keepdims=True) -> scores.max()
            a row far below the largest score of the array becomes 0 / 0: each row needs its own maximum
        the temperature multiplied
            shifted / temperature -> shifted * temperature
            a higher temperature must flatten the weights: divide the scores by it
    """,
    hints="""
        Three lines, three mistakes. Try the function on two rows whose scores differ by a thousand, and at two temperatures.
        Which reductions must run along the keys? What becomes of a factor that stands in both numerator and denominator?
        Both reductions belong to a row, one number for each; and a factor can act only where it does not cancel.
    """,
    why="""
        (1) The maximum was that of all queries, so a row a thousand below it became 0 / 0. (2) A factor outside the
        exponential cancels against the sum; the temperature must divide the scores. (3) `axis=0` normalised over the
        queries: every *key* handed out a total weight of 1.
    """,
)
def tempered_weights(scores, temperature):
    """Weights of each query (row) over the keys (columns); a higher temperature
    flattens them.

    The function below should return, for a matrix of scores with **queries in rows and keys in columns**, the weights of each query over
    the keys at a given temperature (one positive number for all), {eq}`softmax-with-temperature`. It raises no error, and it is wrong in
    three places. Repair it. Scores may be in the thousands, of either sign, also within one row
    {case}`thousands within each row, very hot`, and rows may lie thousands apart
    {case}`one row near 1000 and one near minus 1000 cold`; the
    temperature may be in the thousands as well {case}`thousands within each row, very hot`.
    """
    shifted = scores - scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(shifted / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)


ORDER = [
    note(
        "title",
        """
        Take them in any order. Tasks {task}`log-softmax-derivative`, {task}`softmax-jacobian` and {task}`tempered-cross-entropy-gradient`
        lean on *Deeper* sections, the others on the core alone.

        Answers are NumPy arrays or torch tensors of float32 or float64. A function must not change its inputs.
    """,
    ),
    note(
        "latex",
        r"""
        **Answers in LaTeX.** A function such as `\ln` needs parentheses around an argument of more than one factor: `\ln(x y)`. To see
        how a formula is understood, `from attn_course import read` and call, for instance, `read("cauchy-to-exponential", my_cauchy)`.
        What cannot be read is no attempt.
    """,
    ),
    "stable-softmax",
    "entropy-by-hand",
    "log-softmax-derivative",
    "softmax-jacobian",
    "repair-softmax-temperature",
    "tempered-cross-entropy-gradient",
    "entropy-as-scores-sharpen",
    "shift-invariance-of-softmax",
    "multiplier-to-softmax",
    "cauchy-to-exponential",
    "softmax-derivative",
    "pull-back-one-row",
    "lse-over-blocks",
]
