"""A Transformer at its start, and what it costs: variances of the first weights, parameters, FLOPs."""

import functools

import numpy as np

from attn_course.costs import TransformerSizes, transformer_parameters
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import uncorrelated
from attn_course.formulas import matrices, outcomes, rows

claim = about("M2")


# ---- first weights
@claim("stream-variance-by-depth", rests_on="variance-after-projection stream-is-a-sum")
def _(normal, rng, K, m, d):
    r"""\mathrm{Var}_W\Bigl[ \Bigl( \sum_{l=1}^{K} h_l\, W_l \Bigr)_j \Bigr] = \sigma^2 \sum_{l=1}^{K} \|h_l\|^2
    where K parts, 2 L of L blocks, add h_l W_l to the stream: W_l is the last matrix of a part, h_l what it has computed by then
        ;; entries of the W_l uncorrelated, mean 0, variance sigma^2
    Variances of uncorrelated parts add up.
        the deviations add up: \sum_{l=1}^{K} \|h_l\|^2 -> \Bigl( \sum_{l=1}^{K} \|h_l\| \Bigr)^2
        the same at every depth: \sum_{l=1}^{K} \|h_l -> \, \|h_1
        the deviation for the variance: \sigma^2 -> \sigma
        one part left out: = \sigma^2 \sum_{l=1}^{K} -> = \sigma^2 \sum_{l=2}^{K}
        the mean of the parts: = \sigma^2 \sum -> = \frac{\sigma^2}{K} \sum

    With |h_l|^2 = m and sigma^2 = 1 / (2 L m) the 2 L parts bring 1 to each feature, at any depth: the last matrix of each part is
    divided by sqrt(2 L).
    """
    (points, chances), sigma = uncorrelated(normal, rng, K, m, d), rng.uniform(0.3, 0.8)
    return {"h": rows(normal(K, m)), "W": outcomes(chances, matrices(sigma * points)), r"\sigma": sigma, "K": K}


# ---- what it costs
@claim("feed-forward-flops", rests_on="feed-forward-as-lookup gated-feed-forward")
def _(rng, T, d, m):
    r"""F = 4\,T\,d\,m, \qquad F_{\text{gated}} = 6\,T\,d\,m
    where m hidden units ;; a multiply-add counts 2; activations and the product with the gate do not count
    Three maps instead of two: with two thirds of the units a gate costs no more FLOPs and no more parameters.
        a gate is free: 6\,T\,d\,m -> 4\,T\,d\,m
        two maps more: 6\,T\,d\,m -> 8\,T\,d\,m
        one map: F = 4\,T -> F = 2\,T
    """
    shapes = (T, d), (d, m), (m, d)
    plain = multiplications(lambda x, w_in, w_out: x @ w_in @ w_out, *shapes)
    gated = multiplications(lambda x, w_in, w_out, w_gate: [x @ w_gate, x @ w_in @ w_out], *shapes, (d, m))
    return {"F": 2 * plain, r"F_{\text{gated}}": 2 * gated, "T": T, "d": d, "m": m}


@claim("transformer-parameters", rests_on="multi-head-parameters feed-forward-flops")
def _(rng, n, T, L, d):
    r"""C = (n + T)\, d + L\, (12\, d^2 + 13\, d) + 2\, d
    where n tokens, T learned positions, L blocks with 4 d hidden units ;; biases and layer norms, the norm first, one table of tokens
    4 d^2 for attention and 8 d^2 for the hidden units; 4 d + 5 d biases, 4 d in two norms. The smallest GPT-2: 124 439 808.
        a table for the logits, too: (n + T)\, d -> (2 n + T)\, d
        without the hidden units: 12\, d^2 -> 4\, d^2
        without biases and norms: L\, (12\, d^2 + 13\, d) + 2\, d -> 12\, L\, d^2
        no norm behind the last block: + 2\, d ->
    """
    sizes = TransformerSizes(n_tokens=n, d_model=d, n_heads=1, n_layers=L, n_positions=T, bias=True)
    return {"C": transformer_parameters(sizes), "n": n, "T": T, "L": L, "d": d}


def a_pass(x: np.ndarray, past: np.ndarray, table: np.ndarray, L: int) -> None:
    """Multiply as a Transformer of L blocks with 4 d hidden units does, behind `past` earlier rows; without softmax and norms."""
    w, w_in = np.tile(x[0], (x.shape[1], 1)), np.tile(x[0], (x.shape[1], 4))  # numbers of any value: only products count
    for _ in range(L):
        query, key, value = x @ w, x @ w, x @ w  # heads cut these, which changes no count
        query @ np.vstack([past, key]).T @ np.vstack([past, value])
        query @ w
        x @ w_in @ w_in.T
    x @ table.T


@claim("transformer-flops", rests_on="multi-head-flops feed-forward-flops")
def _(rng, T, L, n, d):
    r"""F_{\text{pass}} = L\, \bigl( 24\, T\, d^2 + 4\, T^2\, d \bigr) + 2\, T\, d\, n
    where T tokens at once, masked pairs computed too ;; 4 d hidden units, n tokens in the table ;; a multiply-add counts 2
    8 T d^2 for the projections, 16 T d^2 for the hidden units, 4 T^2 d for scores and averages: the pairs weigh most from T = 6 d.
        two for each parameter and token: the pairs forgotten:
            + 4\, T^2\, d ->
        the pairs at the cost of a projection: 4\, T^2\, d -> 4\, T^2\, d^2
        the hidden units forgotten: 24\, T\, d^2 -> 8\, T\, d^2
        no logits: + 2\, T\, d\, n ->
    """
    count = multiplications(functools.partial(a_pass, L=L), (T, d), (0, d), (n, d))
    return {r"F_{\text{pass}}": 2 * count, "T": T, "L": L, "d": d, "n": n}


@claim("decoding-flops", rests_on="transformer-flops decoding-equals-full-pass")
def _(rng, t, L, n, d):
    r"""F_{\text{step}} = L\, \bigl( 24\, d^2 + 4\, t\, d \bigr) + 2\, d\, n
    where token t is read behind t - 1 whose keys and values are cached ;; 4 d hidden units, n tokens in the table
    One row of everything: t such steps cost what one pass over t tokens does with the masked pairs left out.
        as without a cache: 24\, d^2 + 4\, t\, d -> 24\, t\, d^2 + 4\, t^2\, d
        the token does not see itself: 4\, t\, d -> 4\, (t - 1)\, d
        the past costs nothing: + 4\, t\, d ->
    """
    count = multiplications(functools.partial(a_pass, L=L), (1, d), (t - 1, d), (n, d))
    return {r"F_{\text{step}}": 2 * count, "t": t, "L": L, "d": d, "n": n}
