"""Masking: what minus infinity does, causal masks, leaks."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.drawing import inputs
from attn_course.formulas import function, index, matrix, of, rows, subset
from attn_course.reference import attention, softmax

claim = about("G1")


def random_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw which keys may be attended to: in each row at least one, and not all."""
    order = rng.random(shape).argsort(axis=-1)
    return np.asarray(order < rng.integers(1, shape[-1], size=(*shape[:-1], 1)))


def added(mask: np.ndarray) -> np.ndarray:
    """Return what is added to the scores: ln 1 = 0 where a key is allowed, ln 0 = minus infinity where it is hidden."""
    with np.errstate(divide="ignore"):
        return np.log(mask.astype(float))


# ---- what adding minus infinity does
@claim("score-bias-is-factor", rests_on="softmax")
def _(normal, rng, n, draw):
    r"""\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}}
    where a > 0
    What is added to a score multiplies its key's share before normalisation.
        the factor multiplies the weight, which is not renormalised: a_l\,e -> e
        a itself is added, as with a mask of zeros and ones: + \ln -> +
    """
    return {"s": normal(n), "a": np.ones(n) * rng.uniform(0.2, 3, size=n if draw else 1), "n": n}


@claim("minus-infinity-removes-key", rests_on="score-bias-is-factor")
def _(normal, rng, n):
    r"""\lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j = \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}
    where a_l = 1 for l in A ;; A not empty
    ln a goes to minus infinity; in Eq. score-bias-is-factor the key's term leaves the numerator and the sum.
        the key keeps its place in the sum: l \in A -> l
        the score is multiplied by zero:
            \lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j = \frac{e^{[\,j \in A\,]\,s_j}}{\sum_{l} e^{[\,l \in A\,]\,s_l}}
    """
    return {"s": normal(n), "a": np.ones(n), "A": subset(random_mask(rng, n))}


@claim("masking-renormalises-weights", rests_on="softmax masked-exponential-is-zero")
def _(normal, rng, n):
    r"""\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l}, \qquad w = \sigma(s)
    where A not empty
    Divide both by the sum over all keys: the weights of the unmasked softmax, given that the key is in A.
        the mask after the softmax, not renormalised: \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l} -> [\,j \in A\,]\,w_j
        the weight of the removed keys is shared out equally:
            \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = [\,j \in A\,]\,\Bigl(w_j + \frac{\sum_{l \notin A} w_l}{|A|}\Bigr),
            \qquad w = \sigma(s)
    """
    return {"s": normal(n), "A": subset(random_mask(rng, n))}


@claim("masked-exponential-is-zero")
def _(normal, rng, n):
    r"""e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j}, \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases}
    where s finite
    s + (-inf) = -inf and e^{-inf} = 0, exactly, in floating point too.
        M = (1 - mask) * (-inf), where 0 * (-inf) is NaN:
            e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j}, \qquad M_j = (1 - [\,j \in A\,])\,(-\infty)
        the scores multiplied by a mask of zeros and ones: e^0 is 1:
            s_j + M_j -> [\,j \in A\,]\,s_j
        a large finite number: -\infty -> -10000
    """
    mask = random_mask(rng, n)
    return {"s": normal(n), "A": subset(mask), "M": added(mask)}


@claim("masked-attention", rests_on="attention masked-exponential-is-zero")
def _(normal, rng, T_q, T_k, d_k, d_v):
    r"""\mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z, \qquad
        z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}
    where no A_i empty ;; M_ij = 0 for j in A_i, else -inf
    Eq. masked-exponential-is-zero for each row: M belongs to the scores, and each query has its own set of keys.
        X7: minus infinity added to the embeddings:
            \mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z
            -> \sum_j \sigma_l\Bigl(\frac{Q_i \cdot (K_l + M_{il}\,\mathbf{1}^\top)}{\sqrt{d_k}}\Bigr)_j V_j = Z_i
        the mask of ones and zeros added to the scores: M -> e^{M}
        inverted polarity: True hides:
            all \in -> \notin
        the sum below runs over all keys: {\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}} -> {\sum_j e^{q_i \cdot k_j / \sqrt{d_k}}}
    """
    Q, K, V, mask = (*inputs(normal, T_q, T_k, d_k, d_v), random_mask(rng, T_q, T_k))
    Z = attention(Q, K, V, mask=mask)
    as_rows = {"q": rows(Q), "k": rows(K), "v": rows(V), "z": rows(Z)}
    return {"Q": Q, "K": K, "V": V, "Z": Z, "M": added(mask), "A": subset(mask), "d_k": d_k, **as_rows}


# ---- nothing to attend to, and masks that are merely large
@claim("finite-fill-leaks", serves="G1 G2", rests_on="score-bias-is-factor")
def _(normal, rng, n):
    r"""\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = \frac{r}{r + e^{c}}, \qquad
        r = \frac{\sum_{j \notin A} e^{s_j}}{\sum_{j \in A} e^{s_j}}
    where c finite ;; A not empty
    Eq. score-bias-is-factor with a = e^{-c}: hidden keys keep some weight, and much of it where their scores are larger by about c.
        X21: a finite c hides the keys completely: \sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = 0
        their weight shrinks by e^-c: \sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = e^{-c} \sum_{j \notin A} \sigma(s)_j
    """
    mask = random_mask(rng, n)
    return {"s": normal(n), "c": 2 * normal(), "A": subset(mask), r"\bar{A}": subset(~mask)}


@claim(
    "empty-row-is-zero",
    serves="G2",
    rests_on="masked-attention",
    equivalent={
        r"A_{i} = \emptyset \; \Rightarrow \; p_{i j} = 0, \quad z_{i} = 0, \quad e^{L_{i}} = 0"
        r" -> p_{i j} = 0, \quad z_{i} = 0, \quad e^{L_{i}} = 0 \; \Rightarrow \; A_{i} = \emptyset": "a sum of exponentials is 0 if empty"
    },
)
def _(normal, rng, T_q, T_k, d_k, d_v):
    r"""A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad e^{L_i} = 0
    where a definition: the sums of {eq}`masked-attention` are empty, and 0 / 0 is read as 0 ;; L_i = ln of the sum in the denominator
    No key, no weight, no output: the other rows, and the sums over blocks of keys, stay right.
        the formula as it stands: 0 / 0:
            p_{ij} = 0 -> p_{ij} = \frac{0}{0}
        the weights still sum to 1, as with a finite fill: p_{ij} = 0 -> \sum_j p_{ij} = 1
        the log-sum-exp is 0: e^{L_i} -> L_i
    """
    mask = random_mask(rng, T_q, T_k)
    mask[rng.integers(T_q)] = False
    Z, P, L = attention(*inputs(normal, T_q, T_k, d_k, d_v), mask=mask, return_weights=True, return_lse=True)
    return {"A": subset(mask), "p": P, "z": rows(Z), "L": L}


# ---- the causal mask
@claim("causal-mask")
def _(normal, rng, T_q, T_k, draw):
    r"""A_i = \{\, j : j \le i + p \,\}, \qquad M_{ij} = -\infty \iff j > i + p
    where positions count from 0 ;; p = position of the first query among the keys ;; M may hold any finite numbers elsewhere
    Query i stands at position i + p and sees itself and what came before.
        X8: transposed: the past is hidden:
            \le -> \ge ;; > -> <
        off by one: the token itself is hidden:
            : j \le -> : j < ;; > -> \ge
        the cached keys forgotten: \le i + p -> \le i
    """
    p = (0, int(rng.integers(1, T_k - 1)), -int(rng.integers(1, T_q)))[draw]
    mask = reference.causal_mask(T_q, T_k, p)
    M = matrix(added(mask) + normal(*mask.shape), start=0)
    return {"A": subset(mask, start=0), "M": M, "p": p, "j": index(0, T_k - 1)}


@claim("bottom-right-offset", rests_on="causal-mask")
def _(rng, T_q, T_k):
    r"""p = T_k - T_q
    where the last query stands at the last key, as in decoding with a cache
    The last query, i = T_q - 1, stands at position T_k - 1: aligned at the bottom right, not at the top left.
        top left: a single new query sees the first key only:
            p = \min(T_k - T_q,\, 0)
        off by one, past the last key: p = T_k - T_q + 1
        the lengths exchanged: p = T_q - T_k
    """
    first = next(
        p for p in range(-T_q, T_k) if reference.causal_mask(T_q, T_k, p)[-1, -1]
    )  # the first offset with which it sees the last key
    return {"p": first, "T_q": T_q, "T_k": T_k}


@claim("causal-prefix-invariance", rests_on="masked-attention")
def _(normal, T, d, d_k, d_v):
    r"""Z(X_{1:t}) = Z(X)_{1:t}
    where causal mask, p = 0 ;; Z = self-attention of the rows
    Row i <= t reads keys up to i only, and all of them are in the prefix: what comes later changes nothing.
        the newest token alone, without what it has seen: all 1 -> t
        the row of the first token: Z(X_{1:t})_t = Z(X)_1
        off by one: the row of the next token:
            Z(X_{1:t})_t = Z(X)_{t+1}
    """
    W_Q, W_K, W_V = inputs(normal, d, d, d_k, d_v)
    layer = function(lambda X: attention(X @ W_Q, X @ W_K, X @ W_V, is_causal=True))
    return {"Z": layer, "X": normal(T, d), "t": index(1, T - 1)}


# ---- leaks, and how to find them
@claim("output-derivative-by-score", rests_on="softmax-derivative")
def _(normal, T_q, T_k, d_v):
    r"""\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(v_j - z_i)
    where z_i = sum_j p_ij v_j ;; P_i = softmax of s_i
    Eq. softmax-derivative, summed over the values: a key of weight 0 has no influence, not even on the gradient.
        the normaliser forgotten: P v:
            (v_j - z_i) -> v_j
        the weight squared: p_{ij} -> p_{ij}^2
        the sign: v_j - z_i -> z_i - v_j
    """
    V = normal(T_k, d_v)
    z = of(lambda s: rows(softmax(s) @ V), "s")
    return {"s": normal(T_q, T_k), "p": of(softmax, "s"), "v": rows(V), "z": z}


@claim("mask-after-softmax-leaks", rests_on="softmax-derivative output-derivative-by-score")
def _(normal, rng, T_q, T_k, d_v):
    r"""\tilde{z}_i = \sum_{j \in A_i} w_{ij}\, v_j, \qquad
        \frac{\partial \tilde{z}_i}{\partial s_{il}} = -w_{il}\,\tilde{z}_i \quad (l \notin A_i)
    where w = softmax of all scores, the mask applied afterwards
    The hidden score is still in the normaliser: the output tells how large it was.
        no gradient, hence no leak: -w_{il}\,\tilde{z}_i -> 0
        what leaks is the hidden value: -w_{il}\,\tilde{z}_i -> w_{il}\,(v_l - \tilde{z}_i)
    """
    V, mask = normal(T_k, d_v), random_mask(rng, T_q, T_k)
    leaky = of(lambda s: rows(np.where(mask, softmax(s), 0) @ V), "s")
    return {"s": normal(T_q, T_k), "w": of(softmax, "s"), "v": rows(V), "A": subset(mask), r"\tilde{z}": leaky}


@claim("causal-mask-hides-future", rests_on="causal-prefix-invariance output-derivative-by-score")
def _(normal, T, d, d_v):
    r"""\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i)
    where causal self-attention, p = 0
    Queries, keys and values of later tokens enter no earlier row: the leak test, exact to the last bit.
        the token itself hidden too: > -> \ge
        the past hidden: > -> <
        no token has any influence: \quad (j > i) ->
    """
    W_Q, W_K, W_V = normal(3, d, d_v)
    z = of(lambda x: rows(attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True)), "x")
    return {"x": rows(normal(T, d)), "z": z}
