"""Cross-attention.

X (T_q, d_x) asks, Y (T_k, d_y) answers; W_Q (d_x, d_k), W_K (d_y, d_k), W_V (d_y, d_v). Every axis has another length.
"""

import math

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import normalisers, one_head, projections, tables
from attn_course.formulas import column, columns, function, of, row, rows, vector
from attn_course.reference import (
    additive_scores,
    attention,
    attention_backward,
    padding_mask,
    scaled_dot_scores,
    softmax,
)

claim = about("I1")


# ---- two sequences
@claim("cross-attention", rests_on="attention masked-attention")
def _(normal, T_q, T_k, d_x, d_y, d_k, d_v):
    r"""Z = \mathrm{softmax}\Bigl(\frac{X W_Q\, (Y W_K)^\top}{\sqrt{d_k}}\Bigr)\, Y W_V \in \mathbb{R}^{T_q \times d_v}
    where W_Q: d_x x d_k ;; W_K: d_y x d_k ;; W_V: d_y x d_v
    Queries from X, keys and values from Y: only d_k must be shared, neither lengths nor widths.
        X15: the source asks: Z = \mathrm{softmax}\Bigl(\frac{Y W_Q (X W_K)^\top}{\sqrt{d_k}}\Bigr) X W_V \in \mathbb{R}^{T_q \times d_v}
        without the root: \sqrt{d_k} -> d_k
    """
    (X, Y), weights = tables(normal, (T_q, d_x), (T_k, d_y)), projections(normal, d_x, d_y, d_k, d_v)
    return {"X": X, "Y": Y, **weights, "Z": one_head(X, Y, **weights), "T_q": T_q, "d_k": d_k, "d_v": d_v}


# ---- from a fixed context to an alignment
@claim("one-key-ignores-queries", serves="A5 I1", rests_on="cross-attention")
def _(normal, rng, T_q, d_x, d_y, d_k, d_v, draw):
    r"""T_k = 1 \;\Rightarrow\; z_i = y_1 W_V
    A softmax over one key is 1: a source summed up in one vector answers every question alike.
        of a longer source too: = 1 -> \ge 1
        the queries share the one answer: z_i -> \sum_i z_i
        each query has an answer of its own: = y_1 -> \ne y_1
    """
    X, weights = normal(T_q, d_x), projections(normal, d_x, d_y, d_k, d_v)
    T_k = (1, *rng.integers(2, 4, size=2))[draw]  # one word, repeated, several
    Y = np.tile(normal(d_y), (T_k, 1)) if draw < 2 else normal(T_k, d_y)
    return {"T_k": len(Y), "y": rows(Y), "W_V": weights["W_V"], "z": rows(one_head(X, Y, **weights))}


CONTEXT, SCORE = r"c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = ", r", \qquad e_{ij} = a(s_{i-1}, h_j)"


@claim("context-from-alignment-model", serves="A5 I1", rests_on="additive-score cross-attention")
def _(normal, T_q, T_k, d_s, d, d_h):
    r"""c_i = \sum_{j=1}^{T_k} \alpha_{ij}\, h_j, \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})}, \qquad
        e_{ij} = a(s_{i-1}, h_j)
    where s_{i-1} = decoder state ;; h_j = annotation of source word j ;; a = additive score
    The first attention: keys and values are both the annotations h_j, and nothing is scaled or projected but inside the score.
        X33: the similarity as a weight, without a softmax:
            \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})} -> \frac{e_{ij}}{\sum_{l=1}^{T_k} e_{il}}
        X33: a database that returns the best match: \frac{\exp(e_{ij})}{\sum_{l=1}^{T_k} \exp(e_{il})} -> [\,e_{ij} = \max_l e_{il}\,]
        the softmax over the states: \sum_{l=1}^{T_k} \exp(e_{il}) -> \sum_l \exp(e_{lj})
    """
    s, h, *weights = tables(normal, (T_q, d_s), (T_k, d), (d_s, d_h), (d, d_h), (d_h,))
    e = additive_scores(s, h, *weights)
    contexts = [np.average(h, axis=0, weights=alpha) for alpha in softmax(e)]
    a = function(lambda state, annotation: additive_scores(state[None], annotation[None], *weights)[0, 0])
    return {"c": rows(contexts), "h": rows(h), "s": rows(s, start=0), "e": e, r"\alpha": softmax(e), "a": a, "T_k": T_k}


@claim("context-derivative-by-annotation", serves="A5", rests_on="output-derivative-by-score context-from-alignment-model")
def _(normal, T_k, d, d_h):
    r"""\frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (h_j - c)\, \Bigl( \frac{\partial e_j}{\partial h_j} \Bigr)^{\!\top} \Bigr)
    where c = sum_j alpha_j h_j ;; e_j depends on h_j only
    Each source word is one step away, with a factor alpha_j: in a recurrent network it is a product of T_k - j Jacobians.
        the weights constant: \frac{\partial c}{\partial h_j} = \alpha_j I + 0\, (h_j - c) \frac{\partial e_j}{\partial h_j}^\top
        turned round: \frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + (c - h_j)\, \frac{\partial e_j}{\partial h_j}^\top \Bigr)
        transposed: \frac{\partial c}{\partial h_j} = \alpha_j \Bigl( I + \frac{\partial e_j}{\partial h_j}\, (h_j - c)^\top \Bigr)
    """
    W, v = tables(normal, (d, d_h), (d_h,))

    def scores(h: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(h @ W) @ v)

    c = of(lambda h, alpha: column(np.average(h, axis=0, weights=alpha)), "h", r"\alpha")
    return {"h": columns(normal(T_k, d)), "e": of(scores, "h"), r"\alpha": of(softmax, "e"), "c": c}


# ---- order, padding and the decoder
@claim("padding-on-both-sides", rests_on="masked-attention cross-attention")
def _(normal, rng, T_q, T_k, n_q, n_k, d_x, d_y, d_k, d_v):
    r"""Z\bigl([\,X;\, X'\,],\, [\,Y;\, Y'\,],\, M\bigr)_{1:T_q} = Z(X, Y), \qquad M_{ij} = -\infty \iff j > T_k
    where X', Y' = padding, of any finite numbers ;; M = 0 elsewhere, or any number that a row has in common
    The mask hides padded keys; padded queries make rows of their own, which nobody reads.
        the padded queries hidden, not the keys: \, M -> M ;; j > -> i >
        without a mask: ,\, M ->
        padding read: \, M -> M ;; 1:T_q -> 2:T_q ;; T_q -> T_q+1
    """
    weights, drawn = projections(normal, d_x, d_y, d_k, d_v), tables(normal, (T_q, d_x), (n_q, d_x), (T_k, d_y), (n_k, d_y))
    common = rng.choice([0, -50, 30], size=(T_q + n_q, 1))
    M = np.where(padding_mask(np.full(T_q + n_q, T_k), T_k + n_k)[:, 0], common, -np.inf)
    Z = function(lambda X, Y, M=None: one_head(X, Y, **weights, mask=M))
    return {"Z": Z, **dict(zip(("X", "X'", "Y", "Y'"), drawn, strict=True)), "M": M, "T_q": T_q, "T_k": T_k}


@claim("loss-over-real-tokens", rests_on="cross-entropy-gradient")
def _(normal, rng, T, V):
    r"""\mathcal{L} = \frac{\sum_t m_t\, (-\ln p_{t, w_t})}{\sum_t m_t}, \qquad
        \frac{\partial \mathcal{L}}{\partial u_t} = \frac{m_t\, (p_t - \mathbf{1}_{w_t})}{\sum_r m_r}
    where m_t = 1 for real tokens of the target, 0 for padding ;; p_t = softmax(u_t), u_t = logits ;; w_t = token t of the target
    The mean over what is there: padded rows get no gradient, and the loss is that of the sequence alone.
        divided by the padded length: {\sum_t m_t} -> {|w|} ;; \sum_r m_r -> |w|
        padding pays too: \sum_t m_t\, -> \sum_t
        a gradient at padding: m_t\, (p_t - \mathbf{1}_{w_t}) -> p_t - \mathbf{1}_{w_t}
    """
    w, real = rng.integers(1, V + 1, size=T), rng.permutation(np.arange(T) < T - rng.integers(1, T - 1))

    def loss(u: np.ndarray) -> float:
        alone = softmax(u[real])  # the padding is cut off
        return float(-np.log(alone[np.arange(len(alone)), w[real] - 1]).mean())

    p = of(lambda u: rows(softmax(u)), "u")
    return {"u": rows(normal(T, V)), "p": p, "w": vector(w), "m": vector(real * 1.0), r"\mathcal{L}": of(loss, "u")}


@claim("shifted-input-hides-target", rests_on="causal-mask-hides-future")
def _(normal, T_q, d, d_v):
    r"""\frac{\partial u_t}{\partial w_j} = 0 \iff j \ge t, \qquad u_t = D(w_{0:T_q - 1})_t
    where D = causal decoder ;; row t has the logits u_t of token w_t ;; w_0 = start token ;; parameters of D in general position
    The causal mask shows row t its own input, so the input must be one step behind the target: what is predicted is not seen.
        the causal mask without the shift: 0:T_q - 1 -> 1:T_q
        the token before is hidden too: t, -> t - 1,
        the past is hidden: \ge -> \le
    """
    W_Q, W_K, W_V = projections(normal, d, d, d, d_v).values()
    embedding, positions = 0.3 * normal(d), 0.3 * normal(T_q, d)

    def decoder(w: np.ndarray) -> np.ndarray:
        x = w[:, None] * embedding + positions
        return np.asarray(attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True))

    return {"w": vector(normal(T_q + 1), start=0), "D": function(decoder), "T_q": T_q}


@claim("output-without-a-key", rests_on="masking-renormalises-weights output-of-a-query")
def _(normal, T_k, d_v):
    r"""z'_j = \frac{z - p_j\, v_j}{1 - p_j}
    where z'_j = output with key j hidden ;; p_j < 1
    A hidden key takes its share out of the output, and the rest is scaled up: where p_j = 0 nothing changes.
        the rest not scaled up: z'_j = z - p_j\, v_j
        divided by what was hidden: {1 - p_j} -> {p_j}
        the value without its weight: p_j\, v_j -> v_j
    """
    V, scores = tables(normal, (T_k, d_v), (T_k,))
    p = softmax(scores)
    hidden = [softmax(np.where(np.arange(T_k) == j, -np.inf, scores)) @ V for j in range(T_k)]
    return {"z'": rows(hidden), "z": row(p @ V), "p": vector(p), "v": rows(V)}


# ---- gradients and costs
@claim(
    "gradient-of-source",
    rests_on="softmax-vector-jacobian-product query-and-key-gradients gradients-through-projections cross-attention",
    sizes="T_q d_v d_k T_k d_y",
)
def _(normal, T_q, T_k, d_y, d_k, d_v):
    r"""\frac{\partial \mathcal{L}}{\partial Y} = dK\, W_K^\top + dV\, W_V^\top, \qquad
        dV = P^\top dZ, \quad dK = \frac{dS^\top Q}{\sqrt{d_k}}
    where dZ, dS: gradients of the loss by output and by scaled scores
    The source learns through its keys and its values, summed over all target positions; queries send it nothing.
        through the values alone: dK\, -> 0\, dK\,
        the keys with a minus: dK\, W_K^\top + dV\, W_V -> dV\, W_V^\top - dK\, W_K
    """
    Q, Y, W_K, W_V, dZ = tables(normal, (T_q, d_k), (T_k, d_y), (d_y, d_k), (d_y, d_v), (T_q, d_v))
    P = attention(Q, Y @ W_K, Y @ W_V, return_weights=True)[1]
    _, dK, dV, dS = attention_backward(Q, Y @ W_K, Y @ W_V, dZ, mask=np.zeros((T_q, T_k)), return_d_mask=True)
    loss = of(lambda Y: float(np.vdot(dZ, softmax(Q @ (Y @ W_K).T / math.sqrt(d_k)) @ (Y @ W_V))), "Y")
    gradients = {r"\mathcal{L}": loss, "dZ": dZ, "dK": dK, "dV": dV, "dS": dS}
    return {"Q": Q, "Y": Y, "W_K": W_K, "W_V": W_V, "P": P, **gradients, "d_k": d_k}


@claim("cross-attention-decoding-flops", rests_on="cross-attention")
def _(rng, T_q, T_k, d_x, d_y, d_k, d_v):
    r"""F = 2\, T_k\, d_y\, (d_k + d_v) + T_q \bigl( 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr)
    where keys and values of the source kept through the T_q steps of decoding ;; a multiply-add counts 2
    The source is projected once; each new target token pays for its query and one row of scores, and this cache does not grow.
        the source at each step: F = T_q \bigl( 2\, T_k\, d_y\, (d_k + d_v) + 2\, d_x d_k + 2\, T_k\, (d_k + d_v) \bigr)
        X15: widths exchanged: d_y\, -> d_x\, ;; 2\, d_x -> 2\, d_y
    """
    source = multiplications(lambda y, w_k, w_v: (y @ w_k, y @ w_v), (T_k, d_y), (d_y, d_k), (d_y, d_v))
    step = multiplications(lambda x, w, k, v: ((x @ w) @ k.T) @ v, (1, d_x), (d_x, d_k), (T_k, d_k), (T_k, d_v))
    return {"F": 2 * (source + sum(step for _ in range(T_q))), "T_q": T_q, "T_k": T_k, "d_x": d_x, "d_y": d_y, "d_k": d_k, "d_v": d_v}


@claim("balance-of-both-directions", rests_on="detailed-balance-of-weights cross-attention")
def _(normal, T_q, T_k, d_k):
    r"""p_{ij}\, N_i = p'_{ji}\, N'_j, \qquad N_i = \sum_{l=1}^{T_k} e^{s_{il}}, \quad N'_j = \sum_{l=1}^{T_q} e^{s_{lj}}
    where P = softmax over the rows of S (X asks) ;; P' = softmax over the rows of S^T (Y asks)
    One matrix of scores serves both directions, but each has its own normaliser: the map back is not the transpose.
        the map back is the transpose: = p'_{ji}\, N'_j -> N'_j = p'_{ji}\, N'_j N_i
        the normalisers exchanged: N_i = p'_{ji}\, N'_j -> N'_j = p'_{ji}\, N_i
    """
    Q, K = tables(normal, (T_q, d_k), (T_k, d_k))
    maps = {"p": attention(Q, K, K, return_weights=True)[1], "p'": attention(K, Q, Q, return_weights=True)[1]}
    return {**maps, "N": normalisers(Q, K), "N'": normalisers(K, Q), "s": scaled_dot_scores(Q, K), "T_q": T_q, "T_k": T_k}
