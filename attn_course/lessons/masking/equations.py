"""Masking: what minus infinity does, causal masks, leaks."""

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.formulas import function, index, matrix, of, rows, subset
from attn_course.reference import attention, softmax

equation = about("G1")


def random_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw which keys may be attended to: in each row at least one, and not all."""
    order = rng.random(shape).argsort(axis=-1)
    return np.asarray(order < rng.integers(1, shape[-1], size=(*shape[:-1], 1)))


def added(mask: np.ndarray) -> np.ndarray:
    """Return what is added to the scores: ln 1 = 0 where a key is allowed, ln 0 = minus infinity where it is hidden."""
    with np.errstate(divide="ignore"):
        return np.log(mask.astype(float))


# ---- what adding minus infinity does
@equation(
    "score-bias-is-factor",
    r"\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}}",
    uses=["softmax"],
    assumes=["a > 0"],
    wrong={
        "the factor multiplies the weight, which is not renormalised": r"\sigma(s + \ln a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} e^{s_l}}",
        "a itself is added, as with a mask of zeros and ones": r"\sigma(s + a)_j = \frac{a_j\,e^{s_j}}{\sum_{l=1}^{n} a_l\,e^{s_l}}",
    },
)
def bias_is_a_factor(rng: np.random.Generator, n: int, draw: int) -> Givens:
    """What is added to a score multiplies its key's share before normalisation."""
    return {"s": rng.normal(size=n), "a": np.ones(n) * rng.uniform(0.2, 3, size=n if draw else 1), "n": n}


@equation(
    "minus-infinity-removes-key",
    r"\lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j = \frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}",
    uses=["score-bias-is-factor"],
    assumes=["a_l = 1 for l in A", "A not empty"],
    wrong={
        "the key keeps its place in the sum": r"l \in A -> l",
        "the score is multiplied by zero": r"\lim_{a_l \to 0^+,\; l \notin A} \sigma(s + \ln a)_j"
        r" = \frac{e^{[\,j \in A\,]\,s_j}}{\sum_{l} e^{[\,l \in A\,]\,s_l}}",
    },
)
def minus_infinity_removes_a_key(rng: np.random.Generator, n: int) -> Givens:
    """ln a goes to minus infinity; in Eq. score-bias-is-factor the key's term leaves the numerator and the sum."""
    return {"s": rng.normal(size=n), "a": np.ones(n), "A": subset(random_mask(rng, n))}


@equation(
    "masking-renormalises-weights",
    r"\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}} = \frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l}, \qquad w = \sigma(s)",
    uses=["softmax", "minus-infinity-removes-key"],
    assumes=["A not empty"],
    wrong={
        "the mask after the softmax, not renormalised": r"\frac{[\,j \in A\,]\,w_j}{\sum_{l \in A} w_l} -> [\,j \in A\,]\,w_j",
        "the weight of the removed keys is shared out equally": r"\frac{[\,j \in A\,]\,e^{s_j}}{\sum_{l \in A} e^{s_l}}"
        r" = [\,j \in A\,]\,\Bigl(w_j + \frac{\sum_{l \notin A} w_l}{|A|}\Bigr), \qquad w = \sigma(s)",
    },
)
def masking_renormalises(rng: np.random.Generator, n: int) -> Givens:
    """Divide both by the sum over all keys: the weights of the unmasked softmax, given that the key is in A."""
    return {"s": rng.normal(size=n), "A": subset(random_mask(rng, n))}


@equation(
    "masked-exponential-is-zero",
    r"e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j}, \qquad M_j = \begin{cases} 0 & j \in A \\ -\infty & j \notin A \end{cases}",
    assumes=["s finite"],
    wrong={
        "M = (1 - mask) * (-inf), where 0 * (-inf) is NaN": r"e^{s_j + M_j} = [\,j \in A\,]\,e^{s_j},"
        r" \qquad M_j = (1 - [\,j \in A\,])\,(-\infty)",
        "the scores multiplied by a mask of zeros and ones: e^0 is 1": r"s_j + M_j -> [\,j \in A\,]\,s_j",
        "a large finite number": r"-\infty -> -10000",
    },
)
def arithmetic_of_minus_infinity(rng: np.random.Generator, n: int) -> Givens:
    """s + (-inf) = -inf and e^{-inf} = 0 exactly: in floating point the limit of Eq. minus-infinity-removes-key is attained."""
    mask = random_mask(rng, n)
    return {"s": rng.normal(size=n), "A": subset(mask), "M": added(mask)}


@equation(
    "masked-attention",
    r"\mathrm{softmax}\Bigl(\frac{Q K^\top}{\sqrt{d_k}} + M\Bigr) V = Z, \qquad"
    r" z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}",
    uses=["attention", "minus-infinity-removes-key"],
    assumes=["no A_i empty", "M_ij = 0 for j in A_i, else -inf"],
    wrong={
        "X7: minus infinity added to the embeddings": r"\sum_j \sigma_l\Bigl(\frac{Q_i \cdot (K_l + M_{il}"
        r"\,\mathbf{1}^\top)}{\sqrt{d_k}}\Bigr)_j V_j = Z_i, \qquad"
        r" z_i = \frac{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}\, v_j}{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}}",
        "the mask of ones and zeros added to the scores": "M -> e^{M}",
        "inverted polarity: True hides": r"\in -> \notin",
        "the sum below runs over all keys": r"{\sum_{j \in A_i} e^{q_i \cdot k_j / \sqrt{d_k}}} -> {\sum_j e^{q_i \cdot k_j / \sqrt{d_k}}}",
    },
)
def masked_attention(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """Eq. minus-infinity-removes-key for each row: M belongs to the scores, and each query has its own set of keys."""
    Q, K, V, mask = (*_qkv(rng, T_q, T_k, d_k, d_v), random_mask(rng, T_q, T_k))
    Z = attention(Q, K, V, mask=mask)
    as_rows = {"q": rows(Q), "k": rows(K), "v": rows(V), "z": rows(Z)}
    return {"Q": Q, "K": K, "V": V, "Z": Z, "M": added(mask), "A": subset(mask), "d_k": d_k, **as_rows}


def _qkv(rng: np.random.Generator, q_len: int, kv_len: int, d_k: int, d_v: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw queries, keys and values."""
    return rng.normal(size=(q_len, d_k)), rng.normal(size=(kv_len, d_k)), rng.normal(size=(kv_len, d_v))


# ---- nothing to attend to, and masks that are merely large
@equation(
    "finite-fill-leaks",
    r"\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = \frac{r}{r + e^{c}}, \qquad"
    r" r = \frac{\sum_{j \notin A} e^{s_j}}{\sum_{j \in A} e^{s_j}}",
    topics=["G1", "G2"],
    uses=["score-bias-is-factor"],
    assumes=["c finite", "A not empty"],
    wrong={
        "X21: a finite c hides the keys completely": r"\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = 0",
        "their weight shrinks by e^-c": r"\sum_{j \notin A} \sigma(s - c\,\mathbf{1}_{\bar{A}})_j = e^{-c} \sum_{j \notin A} \sigma(s)_j",
    },
)
def finite_fill_leaks(rng: np.random.Generator, n: int) -> Givens:
    """Eq. score-bias-is-factor with a = e^{-c}: hidden keys keep some weight, and much of it where their scores are larger by about c."""
    mask = random_mask(rng, n)
    return {"s": rng.normal(size=n), "c": 2 * rng.normal(), "A": subset(mask), r"\bar{A}": subset(~mask)}


@equation(
    "filled-row-hides-nothing",
    r"\sigma(s - c\,\mathbf{1})_j = \frac{e^{s_j}}{\sum_{l=1}^{n} e^{s_l}}",
    topics=["G2"],
    uses=["softmax-shift-invariance"],
    assumes=["c finite", "every key hidden", "exact numbers: in floating point a large c swallows the scores"],
    wrong={
        "the weights are 0": r"\sum_{j=1}^{n} \sigma(s - c\,\mathbf{1})_j = 0",
        "the weights are equal (true where c replaces the scores)": r"\sigma(s - c\,\mathbf{1})_j = \frac{1}{n}",
        "the fill stays in the numerator": r"\sigma(s - c\,\mathbf{1})_j = \frac{e^{s_j - c}}{\sum_{l=1}^{n} e^{s_l}}",
    },
)
def finite_fill_of_a_whole_row_hides_nothing(rng: np.random.Generator, n: int) -> Givens:
    """The shift cancels: a row in which all keys are hidden attends as if none were, as long as its scores survive beside c."""
    return {"s": rng.normal(size=n), "c": 9 * rng.normal(), "n": n}


@equation(
    "empty-row-is-zero",
    r"A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad e^{L_i} = 0",
    topics=["G2"],
    uses=["masked-attention"],
    assumes=[
        "a definition: the sums of {eq}`masked-attention` are empty, and 0 / 0 is read as 0",
        "L_i = ln of the sum in the denominator",
    ],
    wrong={
        "the formula as it stands: 0 / 0": r"A_i = \emptyset \;\Rightarrow\; p_{ij} = \frac{0}{0}, \quad z_i = 0, \quad e^{L_i} = 0",
        "the weights still sum to 1, as with a finite fill": r"p_{ij} = 0 -> \sum_j p_{ij} = 1",
        "the log-sum-exp is 0": r"A_i = \emptyset \;\Rightarrow\; p_{ij} = 0, \quad z_i = 0, \quad L_i = 0",
    },
    equivalent={
        r"A_{i} = \emptyset \; \Rightarrow \; p_{i j} = 0, \quad z_{i} = 0, \quad e^{L_{i}} = 0"
        r" -> p_{i j} = 0, \quad z_{i} = 0, \quad e^{L_{i}} = 0 \; \Rightarrow \; A_{i} = \emptyset": "a sum of exponentials is 0 if empty"
    },
)
def nothing_to_attend_to(rng: np.random.Generator, T_q: int, T_k: int, d_k: int, d_v: int) -> Givens:
    """No key, no weight, no output: the other rows, and the sums over blocks of keys, stay right."""
    mask = random_mask(rng, T_q, T_k)
    mask[rng.integers(T_q)] = False
    Z, P, L = attention(*_qkv(rng, T_q, T_k, d_k, d_v), mask=mask, return_weights=True, return_lse=True)
    return {"A": subset(mask), "p": P, "z": rows(Z), "L": L}


# ---- the causal mask
@equation(
    "causal-mask",
    r"A_i = \{\, j : j \le i + p \,\}, \qquad M_{ij} = -\infty \iff j > i + p",
    assumes=["positions count from 0", "p = position of the first query among the keys", "M may hold any finite numbers elsewhere"],
    wrong={
        "X8: transposed: the past is hidden": r"A_i = \{\, j : j \ge i + p \,\}, \qquad M_{ij} = -\infty \iff j < i + p",
        "off by one: the token itself is hidden": r"A_i = \{\, j : j < i + p \,\}, \qquad M_{ij} = -\infty \iff j \ge i + p",
        "the cached keys forgotten": r"A_i = \{\, j : j \le i \,\}, \qquad M_{ij} = -\infty \iff j > i + p",
    },
)
def causal_mask(rng: np.random.Generator, T_q: int, T_k: int, draw: int) -> Givens:
    """Query i stands at position i + p and sees itself and what came before."""
    p = (0, int(rng.integers(1, T_k - 1)), -int(rng.integers(1, T_q)))[draw]
    mask = reference.causal_mask(T_q, T_k, p)
    M = matrix(added(mask) + rng.normal(size=mask.shape), start=0)
    return {"A": subset(mask, start=0), "M": M, "p": p, "j": index(0, T_k - 1)}


@equation(
    "bottom-right-offset",
    r"p = T_k - T_q",
    uses=["causal-mask"],
    assumes=["the last query stands at the last key, as in decoding with a cache"],
    wrong={
        "top left: a single new query sees the first key only": r"p = \min(T_k - T_q,\, 0)",
        "off by one, past the last key": r"p = T_k - T_q + 1",
        "the lengths exchanged": r"p = T_q - T_k",
    },
)
def offset_of_the_last_queries(rng: np.random.Generator, T_q: int, T_k: int) -> Givens:
    """The last query, i = T_q - 1, stands at position T_k - 1: aligned at the bottom right, not at the top left."""
    first = next(
        p for p in range(-T_q, T_k) if reference.causal_mask(T_q, T_k, p)[-1, -1]
    )  # the first offset with which it sees the last key
    return {"p": first, "T_q": T_q, "T_k": T_k}


@equation(
    "causal-prefix-invariance",
    r"Z(X_{1:t}) = Z(X)_{1:t}",
    uses=["masked-attention", "causal-mask"],
    assumes=["causal mask, p = 0", "Z = self-attention of the rows"],
    wrong={
        "the newest token alone, without what it has seen": r"Z(X_{t:t}) = Z(X)_{t:t}",
        "the row of the first token": r"Z(X_{1:t})_t = Z(X)_1",
        "off by one: the row of the next token": r"Z(X_{1:t})_t = Z(X)_{t+1}",
    },
)
def prefix_invariance(rng: np.random.Generator, T: int, d: int, d_k: int, d_v: int) -> Givens:
    """Row i <= t reads keys up to i only, and all of them are in the prefix: what comes later changes nothing."""
    W_Q, W_K, W_V = _qkv(rng, d, d, d_k, d_v)
    layer = function(lambda X: attention(X @ W_Q, X @ W_K, X @ W_V, is_causal=True))
    return {"Z": layer, "X": rng.normal(size=(T, d)), "t": index(1, T - 1)}


# ---- leaks, and how to find them
@equation(
    "output-derivative-by-score",
    r"\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(v_j - z_i)",
    uses=["softmax-derivative"],
    assumes=["z_i = sum_j p_ij v_j", "P_i = softmax of s_i"],
    wrong={
        "the normaliser forgotten: P v": r"\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,v_j",
        "the weight squared": r"\frac{\partial z_i}{\partial s_{ij}} = p_{ij}^2\,(v_j - z_i)",
        "the sign": r"\frac{\partial z_i}{\partial s_{ij}} = p_{ij}\,(z_i - v_j)",
    },
)
def output_by_score(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """Eq. softmax-derivative, summed over the values: a key of weight 0 has no influence, not even on the gradient."""
    V = rng.normal(size=(T_k, d_v))
    z = of(lambda s: rows(softmax(s) @ V), "s")
    return {"s": rng.normal(size=(T_q, T_k)), "p": of(softmax, "s"), "v": rows(V), "z": z}


@equation(
    "mask-after-softmax-leaks",
    r"\tilde{z}_i = \sum_{j \in A_i} w_{ij}\, v_j, \qquad"
    r" \frac{\partial \tilde{z}_i}{\partial s_{il}} = -w_{il}\,\tilde{z}_i \quad (l \notin A_i)",
    uses=["softmax-derivative", "output-derivative-by-score"],
    assumes=["w = softmax of all scores, the mask applied afterwards"],
    wrong={
        "no gradient, hence no leak": r"-w_{il}\,\tilde{z}_i -> 0",
        "what leaks is the hidden value": r"-w_{il}\,\tilde{z}_i -> w_{il}\,(v_l - \tilde{z}_i)",
    },
)
def leak_of_a_mask_after_the_softmax(rng: np.random.Generator, T_q: int, T_k: int, d_v: int) -> Givens:
    """The hidden score is still in the normaliser: the output tells how large it was."""
    V, mask = rng.normal(size=(T_k, d_v)), random_mask(rng, T_q, T_k)
    leaky = of(lambda s: rows(np.where(mask, softmax(s), 0) @ V), "s")
    return {"s": rng.normal(size=(T_q, T_k)), "w": of(softmax, "s"), "v": rows(V), "A": subset(mask), r"\tilde{z}": leaky}


@equation(
    "causal-mask-hides-future",
    r"\frac{\partial z_i}{\partial x_j} = 0 \quad (j > i)",
    uses=["causal-prefix-invariance", "output-derivative-by-score"],
    assumes=["causal self-attention, p = 0"],
    wrong={
        "the token itself hidden too": r"\frac{\partial z_i}{\partial x_j} = 0 \quad (j \ge i)",
        "the past hidden": r"\frac{\partial z_i}{\partial x_j} = 0 \quad (j < i)",
        "no token has any influence": r"\frac{\partial z_i}{\partial x_j} = 0",
    },
)
def no_leak(rng: np.random.Generator, T: int, d: int, d_v: int) -> Givens:
    """Queries, keys and values of later tokens enter no earlier row: the leak test, exact to the last bit."""
    W_Q, W_K, W_V = rng.normal(size=(3, d, d_v))
    z = of(lambda x: rows(attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True)), "x")
    return {"x": rows(rng.normal(size=(T, d))), "z": z}
