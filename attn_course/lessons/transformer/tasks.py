"""The tasks on the Transformer: its block, its sizes and its loss."""

import numpy as np

from attn_course.tasks import forbidden
from attn_course.tasks.asked import asked, cell, note, tried
from attn_course.tasks.core import every


def _block(normal, T, d, m, d_k):
    def weight(rows, columns):
        return normal(rows, columns) / np.sqrt(rows)

    projections = {"w_query": weight(d, d_k), "w_key": weight(d, d_k), "w_value": weight(d, d_k), "w_output": weight(d_k, d)}
    hidden = {"w_gate": weight(d, m), "w_in": weight(d, m), "w_out": weight(m, d)}
    return {"x": 3 * normal(T, d), "gain_attention": normal(d), "gain_hidden": normal(d), **projections, **hidden}


BLOCKS = """
five words: 5 7 11 3
three words, few units: 3 5 2 4
one word: 1 3 5 2
"""


def scores_near_minus_800(rng):
    """A block whose queries and keys point in opposite directions, whatever the words."""
    given = _block(lambda *shape: rng.normal(size=shape), 4, 5, 7, 3)
    ahead = (22 + rng.normal(size=(5, 3))) / 5
    return given | {"x": 1 + 0.1 * rng.normal(size=(4, 5)), "gain_attention": np.ones(5), "w_query": ahead, "w_key": -ahead}


@asked(
    "pre-norm-block",
    "A block, norm first",
    kind="write",
    equation="stream-is-a-sum",
    points=3,
    difficulty=2,
    minutes=15,
    trains="two parts that add to a stream",
    forbid=(forbidden.ATTENTION,),
    cases=[tried(_block, BLOCKS), scores_near_minus_800],
    slips="""
        the normed stream carried on
            x = x + weights @ value -> x = normed + weights @ value
            the norm is for what the part reads; what it found is added to the stream itself, not to its normed copy
        the hidden units do not see what attention found
                x = x + weights @ value @ w_output
                normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain_hidden
                ->
                found = weights @ value @ w_output
                normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain_hidden
                x = x + found
            the hidden units read the stream behind attention, with what it added
        attention reads the stream without the norm
            query, key, value = (normed @ -> query, key, value = (x @
            attention reads the normed stream
        one gain for both norms
            + 1e-5) * gain_hidden -> + 1e-5) * gain_attention
            the two norms have gains of their own
        the mask forgotten
            np.where(np.tri(len(x)) > 0, scores, -np.inf) -> scores
            a word sees itself and the words before it, no later one
        no scale
            ` / np.sqrt(w_query.shape[1])` ->
            the scores are divided by the root of d_k
        the other factor through SiLU
            gate = normed @ w_gate -> gate = normed @ w_in ;; (normed @ w_in) -> (normed @ w_gate)
            SiLU acts on what `w_gate` reads
        no maximum
            ` - scores.max(-1, keepdims=True)` ->
            e to the power -800 is 0 to a computer: subtract the largest score of each row first
        no stream
            return x + -> return
            the hidden units add to the stream, they do not replace it
        ReLU in the place of SiLU
            gate / (1 + np.exp(-gate)) -> np.maximum(gate, 0.0)
            SiLU is z / (1 + e^-z)
    """,
    hints="""
        Twice the same pattern: norm a copy, let a part read it, add what it found. What does the second norm read?
        Attention: scores of the normed rows, the causal mask, softmax of each row, values, `w_output`. Add to `x`.
        Hidden units: `silu(n @ w_gate) * (n @ w_in) @ w_out`, where n is the NEW stream, normed with its own gain.
    """,
    why="""
        The stream itself is touched by two additions only, which is why its gradient passes unchanged.
    """,
)
def my_block(x, gain_attention, gain_hidden, w_query, w_key, w_value, w_output, w_gate, w_in, w_out):
    r"""The stream behind one block, (T, d) -> (T, d).

    Write one block with the norm first, as in {eq}`stream-is-a-sum`: causal attention with one head of width $d_k$, `w_query`, `w_key`,
    `w_value` $(d, d_k)$ and `w_output` $(d_k, d)$, then gated hidden units, {eq}`gated-feed-forward`, with `w_gate`, `w_in` $(d, m)$ and
    `w_out` $(m, d)$. Each part reads an RMS norm with $\varepsilon = 10^{-5}$ and its own gain. There are no positions. Scores may be near
    -800 {case}`scores near minus 800`, but none is below -1000 {lowest}`-1000`.
    """
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain_attention
    query, key, value = (normed @ w for w in (w_query, w_key, w_value))
    scores = query @ key.T / np.sqrt(w_query.shape[1])
    scores = np.where(np.tri(len(x)) > 0, scores, -np.inf)
    terms = np.exp(scores - scores.max(-1, keepdims=True))
    weights = terms / terms.sum(-1, keepdims=True)
    x = x + weights @ value @ w_output
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain_hidden
    gate = normed @ w_gate
    return x + (gate / (1 + np.exp(-gate)) * (normed @ w_in)) @ w_out


def _gradient(rng, *shape):
    given = {"x": rng.normal(size=shape) + 0.5, "gain": rng.normal(size=shape[-1]), "eps": rng.uniform(0.05, 0.3)}
    return given | {"d_output": rng.normal(size=shape)}


GRADIENTS = """
five rows: 5 3
one row: 7
one feature: 2 1
a batch: 2 3 5
"""


@asked(
    "rms-norm-backward",
    "Backward through the norm",
    kind="write",
    equation="rms-norm-jacobian",
    points=2,
    difficulty=3,
    minutes=12,
    trains="the derivative of a norm, with epsilon",
    forbid=(forbidden.AUTOGRAD,),
    cases=tried(_gradient, GRADIENTS),
    slips="""
        the norm taken for a constant factor
            ` - x * (x * wanted).mean(-1, keepdims=True) / square` ->
            the root depends on x as well: a second term takes away the part of the gradient along x
        the sum in the place of the mean
            (x * wanted).mean(-1 -> (x * wanted).sum(-1
            the mean square is a MEAN over d features: so is the product of x and the gradient
        the gain forgotten
            wanted = d_output * gain -> wanted = d_output
            the gradient first passes the gain
        the root in the place of the square
            keepdims=True) / square) -> keepdims=True) / np.sqrt(square))
            the second term is divided by the mean square plus eps, once more than the first by its root
        no epsilon
            keepdims=True) + eps -> keepdims=True)
            `eps` stands in the forward pass, so it stands here
        the second term added
            (wanted - x -> (wanted + x
            a larger x makes the norm divide by more: the second term is subtracted
    """,
    hints="""
        y = x r gain with r = (mean square + eps)^(-1/2). Two factors of it depend on x. Which derivative has r?
        The derivative of r by x_i is -r^3 x_i / d. Let w = d_output * gain: what is the sum of w_j x_j times that?
        r times (w less x times the mean of (x * w), divided by the mean square plus eps).
    """,
    why="""
        With `eps` = 0 this is {eq}`rms-norm-jacobian`: nothing of the gradient is left along $x$.
    """,
)
def my_d_x(x, gain, eps, d_output):
    r"""The gradient of x, (..., d), from that of the norm's output.

    The output is $y = \frac{x}{\sqrt{\frac1d \sum_i x_i^2 + \varepsilon}} \odot g$, row by row, and `d_output` is the gradient of a loss by
    $y$. Write `my_d_x(x, gain, eps, d_output)`, the gradient of the loss by `x`.
    """
    square = (x**2).mean(-1, keepdims=True) + eps
    wanted = d_output * gain
    return (wanted - x * (x * wanted).mean(-1, keepdims=True) / square) / np.sqrt(square)


@asked(
    "llama-parameters",
    "How many numbers",
    kind="predict",
    equation="gated-feed-forward",
    points=2,
    difficulty=2,
    minutes=8,
    trains="counting the weights of a model with shared key heads",
    variants=every(n=(49152, 32000), d=(576, 768), L=(30, 12), m=(1536, 2048)),
    digits=9,
    slips="""
        two tables
            n * d + L -> 2 * n * d + L
            the table is tied: it reads and writes
        a key head for each query head
            2 * d * d // 3 -> 2 * d * d
            keys and values have a third of the heads, so their matrices have a third of the columns
        hidden units without a gate
            3 * d * m -> 2 * d * m
            a gate has a matrix of its own: three of d times m in all
        norms forgotten
            ` + 2 * d) + d` -> )
            each block has two gains of d numbers, and one stands behind the last block
        the last norm forgotten
            ` + 2 * d) + d` -> ` + 2 * d)`
            one more gain stands behind the last block
        queries and output of one head in three
            2 * d * d + 2 * d * d // 3 -> 4 * d * d // 3
            queries and output keep all heads
    """,
    hints="""
        What stands outside the blocks? And in one block: four matrices of attention, three of hidden units, two gains.
        Keys and values have d times d / 3 numbers each; queries and output d times d.
        n d + L (2 d^2 + 2 d^2 / 3 + 3 d m + 2 d) + d
    """,
    why="""
        With SmolLM2's sizes, $n = 49152$, $d = 576$, $L = 30$ and $m = 1536$, it is 134,515,008, of which the table takes a fifth.
    """,
)
def my_numbers(n, d, L, m):
    r"""A model as in section {section}`transformer/model` has $L$ blocks, a stream of width $d$ and a tied table of $n$ words. The heads of
    its queries fill the width $d$ together, and three query heads share each key head. There are $m$ gated hidden units, no biases, and RMS
    norms with gains, one of them behind the last block. The cell below prints your $n$, $d$, $L$ and $m$. How many numbers does the model
    learn? Write `my_numbers`.
    """
    return n * d + L * (2 * d * d + 2 * d * d // 3 + 3 * d * m + 2 * d) + d


@asked(
    "stream-size-at-depth",
    "The size of the stream",
    kind="predict",
    equation="stream-variance-by-depth",
    points=2,
    difficulty=2,
    minutes=8,
    trains="variances that add up with depth",
    variants=every(D=(12, 32), c=(0.25, 0.5), k=(4, 3)),
    digits=4,
    slips="""
        deviations added
            np.sqrt(1 + 2 * D * c) -> 1 + 2 * D * np.sqrt(c)
            variances of uncorrelated parts add, deviations do not
        one part a block
            1 + 2 * D * c) -> 1 + D * c)
            a block has two parts, and each adds
        the word forgotten
            np.sqrt(1 + 2 * D * c) -> np.sqrt(2 * D * c)
            the stream starts with mean square 1
        the mean square itself
            (np.sqrt(1 + 2 * D * c), np.sqrt(1 + c / k**2)) -> (1 + 2 * D * c, 1 + c / k**2)
            asked is the root of the mean square
        the divisor not squared
            c / k**2 -> c / k
            dividing a matrix by a number divides variances by its square
        the parts of the divided model not counted
            1 + c / k**2 -> 1 + c / (2 * D * k**2)
            there are 2 D parts, each with a variance of c / (2 D k^2)
    """,
    hints="""
        What does one part add to the mean square of the stream, if its last matrix has variance c / m?
        2 D parts add c each. If a matrix is divided by s, its variances are divided by s^2.
        First sqrt(1 + 2 D c); second: 2 D parts of c / (2 D k^2).
    """,
    why="""
        The divisor $\\sqrt{2D}$ takes the depth out of the second number altogether.
    """,
)
def my_sizes(D, c, k):
    r"""The stream of a model of $D$ blocks starts with mean square 1. Each part's $h_l$ has $m$ features of mean square 1, and its last
    matrix has independent entries of mean 0 and variance $c / m$. What is the root of the expected mean square of the stream behind all
    blocks? And what is it if these matrices are all divided by $k \sqrt{2D}$? The cell below prints your $D$, $c$ and $k$. Write `my_sizes
    = (a, b)`.
    """
    return (np.sqrt(1 + 2 * D * c), np.sqrt(1 + c / k**2))


def _scores(rng, T, n, spread, offset):
    rows = (-1) ** np.arange(T)[:, None]  # far apart
    return {"logits": spread * rng.normal(size=(T, n)) + offset * rows, "ids": rng.integers(n, size=T)}


SCORES = """
seven words of five: 7 5 1.0 0.0
two words: 2 3 1.0 0.0
scores of several hundred: 5 11 100.0 800.0
"""


@asked(
    "repair-next-word-loss",
    "Repair: a loss that is too good",
    kind="repair",
    equation=None,
    points=2,
    difficulty=2,
    minutes=8,
    trains="which row is about which word",
    forbid=(forbidden.LOSSES, forbidden.SOFTMAX),
    cases=tried(_scores, SCORES),
    broken=["targets not shifted", "no maximum", "the sum"],
    slips="""
        targets not shifted
            rows, targets = logits[:-1], ids[1:] -> rows, targets = logits, ids
            row t is scored on word t, which it has read: it is about word t + 1
        shifted the wrong way
            logits[:-1], ids[1:] -> logits[1:], ids[:-1]
            that asks row t + 1 for word t, which it has read
        no maximum
            ` - rows.max(axis=1, keepdims=True)` ->
            scores of several hundred overflow: subtract the largest of each row first
        one maximum for all rows
            rows.max(axis=1, keepdims=True) -> rows.max()
            below the largest score of ALL rows a row may lie by so much that its exponentials are 0: subtract the largest of each row
        the sum
            -chosen.mean() -> -chosen.sum()
            the loss is the mean over the words
        the sign
            -chosen.mean() -> chosen.mean()
            a loss is the mean of MINUS the logarithm
        one word too many
            -chosen.mean() -> -chosen.sum() / len(ids)
            T words make T - 1 pairs: divide by their number
    """,
    hints="""
        Three things are wrong. Which word does row t of the scores speak about?
        The last row has no target here, and the first word is nobody's target.
        `logits[:-1]` meets `ids[1:]`; the largest score of each row is subtracted before `np.exp`; and the result is a mean.
    """,
    why="""
        A loss on unshifted targets falls to 0, because the word to be named is the word that was read.
    """,
)
def my_loss(logits, ids):
    r"""The mean loss of the next words, in nats.

    The function below was written for `logits` $(T, n)$, of which row $t$ scores what comes *behind* word $t$, and for the words `ids`
    $(T,)$ of the text, $T \ge 2$. Three things are wrong. A model that is trained with it soon has a loss of nearly 0 and writes nonsense.
    The loss grows with the length of the text. And it is NaN or infinite where scores are large. They may be several hundred
    {case}`scores of several hundred`. Repair it: wanted is the mean of $-\ln p$ over the $T - 1$ words that have a row before them.
    """
    rows, targets = logits[:-1], ids[1:]
    shifted = rows - rows.max(axis=1, keepdims=True)
    chosen = shifted[np.arange(len(targets)), targets] - np.log(np.exp(shifted).sum(axis=1))
    return -chosen.mean()


ORDER = [
    note(
        "title",
        """
        Take them in any order. Task {task}`rms-norm-backward` leans on the *Deeper* section {section}`transformer/deep`, the others on
        the core alone.
    """,
    ),
    note(
        "setup-text",
        """
        Answers are NumPy arrays or torch tensors of float32 or float64; inputs are float64 (whole numbers where the text says so) and must
        not be changed. Rows are positions.
    """,
    ),
    cell(
        "setup",
        """
        import numpy as np
        import torch
    """,
    ),
    "pre-norm-block",
    "rms-norm-backward",
    "llama-parameters",
    "stream-size-at-depth",
    "repair-next-word-loss",
    "rms-norm-row",
    "hidden-units-of-rows",
]
