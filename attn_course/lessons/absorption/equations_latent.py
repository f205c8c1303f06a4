"""Latent attention: a small cache, absorbed projections, decoupled RoPE.

One latent row c_t = x_t W_DKV for each token; k_t = c_t W_UK, v_t = c_t W_UV for each head. Rows are positions.
"""

from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import named
from attn_course.formulas import index, matrices, row, rows, vector

claim = about("J3")


# ---- keys and values from one latent vector
@claim("absorbed-latent-keys", serves="J3 J1", rests_on="absorbed-score")
def _(normal, T, d_c, d_k):
    r"""q\,(c_j W_{UK})^\top = \bigl(q\, W_{UK}^\top\bigr)\, c_j^\top
    where k_j = c_j W_UK
    The up-projection moves to the one new query, and the cached latents serve as keys, for all heads.
        without the transpose: W_{UK}^\top -> W_{UK}
        the key projected as well: c_j^\top -> (c_j W_{UK} W_{UK}^\top)^\top
    """
    return {"q": row(normal(d_k)), "c": rows(normal(T, d_c)), "W_{UK}": normal(d_c, d_k)}


@claim("absorbed-latent-values", serves="J3 J2", rests_on="absorbed-value-projection")
def _(normal, T, d_c, d_v, d):
    r"""\Bigl( \sum_j p_j\, (c_j W_{UV}) \Bigr) W_O = \Bigl( \sum_j p_j\, c_j \Bigr) \bigl( W_{UV} W_O \bigr)
    where v_j = c_j W_UV ;; W_O = rows of one head
    Average the latents, then project once, instead of projecting each of them.
        the weights leave the sum: p_j\, c_j -> c_j
        the weights squared: p_j\, c_j -> p_j^2\, c_j
    """
    latent = {"p": vector(reference.softmax(normal(T))), "c": rows(normal(T, d_c))}
    return {**latent, "W_{UV}": normal(d_c, d_v), "W_O": normal(d_v, d)}


# ---- what absorbing saves, and when
def step_flops(new: int, T: int, H: int, d_c: int, d_k: int, d_v: int) -> tuple[int, int]:
    """Count, without and with absorbing, from some new queries over T latents to the outputs of the heads, one head like the other."""
    shapes = (new, d_k), (T, d_c), (d_c, d_k), (d_c, d_v)
    naive = multiplications(lambda q, c, u_k, u_v: (q @ (c @ u_k).T) @ (c @ u_v), *shapes)
    absorbed = multiplications(lambda q, c, u_k, u_v: (((q @ u_k.T) @ c.T) @ c) @ u_v, *shapes)
    return 2 * H * naive, 2 * H * absorbed


@claim("latent-decoding-flops", rests_on="absorbed-latent-keys absorbed-latent-values")
def _(rng, draw, T, H, d_c, d_k, d_v):
    r"""F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \qquad F_{\mathrm{factored}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c
    where one new token against T cached latents ;; from the queries to the outputs of the heads ;; a multiply-add counts 2
    Naive: every cached latent is projected up again. Factored: one query lifted and one output up, and longer dot products.
        the naive way projects the new token only: T H (d_c + 1) -> H (d_c + T)
        the factored way compares vectors of length d_k: 4\, T H d_c -> 2\, T H (d_k + d_v)
    """
    T = T if draw else 1
    naive, factored = step_flops(1, T, H, d_c, d_k, d_v)
    sizes = {"T": T, "H": H, "d_c": d_c, "d_k": d_k, "d_v": d_v}
    return {r"F_{\mathrm{naive}}": naive, r"F_{\mathrm{factored}}": factored, **sizes}


# ---- rotary positions
def rotations(rng: np.random.Generator, n: int, pairs: int) -> dict[str, Any]:
    """Return R_t for t from -2n to 2n, what RoPE makes of the rows of the identity, and positions s, t from 1 to n."""
    theta, steps = rng.uniform(20, 90), range(-2 * n, 2 * n + 1)
    turned = [reference.rope(np.eye(2 * pairs), np.full(2 * pairs, step), theta) for step in steps]
    return {"R": matrices(turned, start=-2 * n), "s": index(1, n), "t": index(1, n)}


@claim("rope-blocks-absorption", rests_on="absorbed-score rotations-compose")
def _(normal, rng, n, m, d):
    r"""(x_s W_Q R_s)\,(x_t W_K R_t)^\top = x_s W_Q\, R_{s - t}\, W_K^\top\, x_t^\top
    where R_t rotates each pair of features by t times its frequency
    The rotation stands between the two matrices and changes with the distance: there is no one matrix for all pairs of tokens.
        one matrix for all distances: R_{s - t}\, ->
        the angles add: - t -> + t
        the query alone is rotated: R_{s - t}\, -> R_s\,
    """
    return {**rotations(rng, n, m), "x": rows(normal(n, d)), **named(normal, W_Q=(d, 2 * m), W_K=(d, 2 * m))}


@claim("rotation-commutator", rests_on="rope-blocks-absorption")
def _(normal, rng, draw):
    r"""R_\theta G - G R_\theta = \sin(\theta)\, (J G - G J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}
    where one pair of features, turned by the angle theta: x R_theta
    R = cos(theta) I + sin(theta) J: only matrices that commute with a quarter turn (rotations times a number) let it pass.
        they commute: \sin(\theta)\, (R_\theta G - G R_\theta) = 0
        the other order: \, (J G - G J) -> (G J - J G)
    """
    theta = rng.uniform(0.2, 3) * (1, -1, 1)[draw]
    return {r"R_\theta": reference.rope(np.eye(2), np.full(2, theta)), r"\theta": theta, "G": normal(2, 2)}


@claim("decoupled-rope-score", rests_on="rope-blocks-absorption")
def _(normal, d_head, d_R):
    r"""[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = q^C \cdot k^C + q^R \cdot k^R
    where C: content, absorbed; R: rotary, with one key that all heads share ;; scale 1 / sqrt(d_head + d_R)
    Positions get features of their own: the content part has no rotation in the way, the rotary part nothing to absorb.
        the parts multiplied: [\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = (q^C \cdot k^C)\, (q^R \cdot k^R)
        the parts added first: [\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = (q^C + q^R) \cdot (k^C + k^R)
    """
    parts = named(normal, **{"q^C": (d_head,), "q^R": (d_R,), "k^C": (d_head,), "k^R": (d_R,)})
    return {name: row(part) for name, part in parts.items()}


@claim("absorbed-latent-attention", rests_on="absorbed-latent-keys decoupled-rope-score")
def _(normal, draw, T, H, d, d_q, d_c, d_head, d_v, m):
    r"""Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}}
        + M\Bigr)\, C\, U_h, \qquad W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)}
    where C^Q, C: latent vectors of queries and of keys and values ;; M: causal mask
    Eqs. absorbed-latent-keys, absorbed-latent-values and decoupled-rope-score together: no key and no value is ever formed.
        one rotary query for all heads: Q_h^R -> Q_1^R
        each part with a scale of its own:
            \frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}}
            -> \frac{C^Q W_h C^\top}{\sqrt{d_{\mathrm{head}}}} + \frac{Q_h^R K^{R\top}}{\sqrt{d_R}}
        the future seen, the past hidden: M -> M^\top
    """
    d_R, positions, X = 2 * m, np.arange(T), normal(T, d)
    shapes = (d, d_q), (d_q, H * d_head), (d_q, H * d_R), (d, d_c), (d_c, H * d_head), (d, d_R), (d_c, H * d_v), (H * d_v, d)
    w = reference.LatentWeights(*(normal(*shape) / np.sqrt(shape[0]) for shape in shapes))
    rebuilt_or_not = reference.latent_attention_absorbed if draw == 1 else reference.latent_attention
    C_Q, C, K_R = X @ w.w_query_down, X @ w.w_latent_down, reference.rope(X @ w.w_key_rope, positions)
    ups = {"W_{UQ}^{(h)}": w.w_query_up, "W_{UK}^{(h)}": w.w_key_up, "W_{UV}^{(h)}": w.w_value_up, "Q^R": C_Q @ w.w_query_rope}
    heads = {name: reference.split_heads(up, H) for name, up in ups.items()}
    heads |= {"W_O^{(h)}": w.w_output.reshape(H, d_v, d), "Q^R": reference.rope(heads["Q^R"], positions)}
    tokens = {"C^Q": C_Q, "C": C, "K^R": K_R, "M": np.where(reference.causal_mask(T, T), 0, -np.inf)}
    sizes = {"H": H, r"d_{\mathrm{head}}": d_head, "d_R": d_R}
    Z = rebuilt_or_not(X, w, n_heads=H, positions=positions)
    return {"Z": Z, **tokens, **sizes, **{name: matrices(head) for name, head in heads.items()}}


# ---- bytes
def cached(dtype: np.dtype[Any], *shape: int, other: int) -> int:
    """Return the bytes that a cache of keys of this shape keeps, with values (or a second part) of another width."""
    key, value = np.ones(shape, dtype), np.ones((*shape[:-1], other), dtype)
    return sum(array.nbytes for array in reference.KeyValueCache().append(key, value))


@claim("latent-cache-bytes", serves="J3 H3", rests_on="kv-cache-bytes absorbed-latent-attention")
def _(rng, draw, T, d_c, d_R, H_kv, d_head):
    r"""\text{bytes}_{\text{latent}} = b\,(d_c + d_R), \qquad \text{bytes}_{\text{keys and values}} = 2\, b\, H_{kv}\, d_{\mathrm{head}}
    where for each token and layer ;; b bytes for one number
    One latent vector and one rotary key, for all heads; multi-head and grouped caches hold a key and a value for each key head.
        a rotary key for each head: d_R -> H_{kv}\, d_R
        latents twice, once for keys and once for values: d_c -> 2\, d_c
    """
    dtype = np.dtype(("float16", "float32", "float64")[draw])
    d_R = d_c if draw == 1 else d_R
    bytes_kept = {"latent": cached(dtype, T, d_c, other=d_R) / T, "keys and values": cached(dtype, H_kv, T, d_head, other=d_head) / T}
    sizes = {"b": dtype.itemsize, "d_c": d_c, "d_R": d_R, "H_{kv}": H_kv, r"d_{\mathrm{head}}": d_head}
    return {**{rf"\text{{bytes}}_{{\text{{{name}}}}}": number for name, number in bytes_kept.items()}, **sizes}
