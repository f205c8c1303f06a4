"""Latent attention: a small cache, absorbed projections, decoupled RoPE.

One latent row c_t = x_t W_DKV for each token; k_t = c_t W_UK, v_t = c_t W_UV for each head. Rows are positions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import by_size, multiplications
from attn_course.equations.drawing import named
from attn_course.formulas import index, matrices, row, rows, vector
from attn_course.formulas.givens import Of

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


@claim("joint-key-value-rank", rests_on="absorbed-latent-keys absorbed-latent-values")
def _(normal, draw, n, H, d_k):
    r"""\mathrm{rank}\bigl[\, K_1 \cdots K_H\; V_1 \cdots V_H \,\bigr] \le d_c
    where K_h = C W_UK, V_h = C W_UV with matrices of each head, C: T rows of length d_c
    What is assumed: the keys and values of all heads together, one wide matrix, have low rank. That is how the cache can be small.
        each head has a latent of its own: \le d_c -> = H\, d_c
        always d_c: \le d_c -> = d_c
    """
    d_c = 2 * H - (n > H)  # each key head and each value head reads one direction of the latents: only all of them read them whole
    rank = (1, d_c - 1, d_c)[draw]
    latent = normal(d_c + n, rank) @ normal(rank, d_c)
    keys, values = ([latent @ normal(d_c, 1) @ normal(1, d_k) for _ in range(H)] for _ in "KV")
    return {"K": matrices(keys), "V": matrices(values), "H": H, "d_c": d_c}


@claim(
    "grouped-heads-as-latent",
    serves="J3 H3",
    rests_on="grouped-query-attention absorbed-latent-keys",
    sizes="H g H_kv T d_head, H = g H_kv",
)
def _(normal, H, g, H_kv, T, d_head):
    r"""c_t = [\,k_{t,0} \cdots k_{t,H_{kv}-1},\; v_{t,0} \cdots v_{t,H_{kv}-1}\,], \qquad
        K_h = C\, E_r, \quad V_h = C\, E_{H_{kv} + r}, \quad d_c = 2\, H_{kv}\, d_{\mathrm{head}}, \qquad r = \lfloor h / g \rfloor
    where C: rows c_t ;; E_r = columns r d_head to (r + 1) d_head - 1 of the identity ;; g = H / H_kv ;; heads counted from 0
    Grouped-query attention is latent attention whose up-projections only copy; learned ones can do more with the same cache.
        heads tiled, the remainder for the quotient: r = -> r = h - g
        values from the keys' half: H_{kv} + ->
        the width of the keys alone: = 2\, -> =
    """
    both = normal(2, H_kv, T, d_head)
    C = reference.merge_heads(both.reshape(2 * H_kv, T, d_head))
    copies = reference.split_heads(np.eye(C.shape[1]), 2 * H_kv)
    heads = {name: matrices(head, start=0) for name, head in zip("KV", reference.repeat_key_value(both, g), strict=True)}
    tokens = {name: rows(head.swapaxes(0, 1), start=(1, 0)) for name, head in zip("kv", both, strict=True)}
    widths = {"d_c": C.shape[1], r"d_{\mathrm{head}}": d_head, "H_{kv}": H_kv, "g": g}
    return {"c": rows(C), "C": C, "E": matrices(copies, start=0), **heads, **tokens, **widths}


# ---- what absorbing saves, and when
def step_flops(new: int, T: int, H: int, d_c: int, d_k: int, d_v: int) -> tuple[int, int]:
    """Count, without and with absorbing, from some new queries over T latents to the outputs of the heads, one head like the other."""
    shapes = (new, d_k), (T, d_c), (d_c, d_k), (d_c, d_v)
    naive = multiplications(lambda q, c, u_k, u_v: (q @ (c @ u_k).T) @ (c @ u_v), *shapes)
    absorbed = multiplications(lambda q, c, u_k, u_v: (((q @ u_k.T) @ c.T) @ c) @ u_v, *shapes)
    return 2 * H * naive, 2 * H * absorbed


@claim("latent-decoding-flops", rests_on="absorbed-latent-keys absorbed-latent-values")
def _(rng, draw, T, H, d_c, d_k, d_v):
    r"""F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \qquad F_{\mathrm{absorbed}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c
    where one new token against T cached latents ;; from the queries to the outputs of the heads ;; a multiply-add counts 2
    Naive: every cached latent is projected up again. Absorbed: one query down and one output up, and longer dot products.
        the naive way projects the new token only: T H (d_c + 1) -> H (d_c + T)
        the absorbed way compares vectors of length d_k: 4\, T H d_c -> 2\, T H (d_k + d_v)
    """
    T = T if draw else 1
    naive, absorbed = step_flops(1, T, H, d_c, d_k, d_v)
    sizes = {"T": T, "H": H, "d_c": d_c, "d_k": d_k, "d_v": d_v}
    return {r"F_{\mathrm{naive}}": naive, r"F_{\mathrm{absorbed}}": absorbed, **sizes}


def flops_by_length(count: Callable[[int], tuple[int, int]]) -> dict[str, Any]:
    """Return both costs as polynomials in T."""

    def cost(way: int) -> Of:
        return by_size(lambda T: count(T)[way], "T")

    return {r"F_{\mathrm{naive}}": cost(0), r"F_{\mathrm{absorbed}}": cost(1)}


@claim("absorption-gain-at-decoding", rests_on="latent-decoding-flops")
def _(rng, draw, H, d_c, d_k, d_v):
    r"""\text{decode:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c}
    where one new token
    About (d_k + d_v) / 2, which is 128 for d_k = d_v = 128: the price of rebuilding the past at every step.
        upside down: \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{2\, d_c}{(d_c + 1)(d_k + d_v)}
        as in prefill: \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}
    """
    d_v = d_k if draw == 1 else d_v
    counted = flops_by_length(lambda T: step_flops(1, T, H, d_c, d_k, d_v))
    return {"T": rng.uniform(1, 9), **counted, "d_c": d_c, "d_k": d_k, "d_v": d_v}


@claim("absorption-loss-at-prefill", rests_on="latent-decoding-flops")
def _(rng, draw, H, d_c, d_k, d_v):
    r"""\text{prefill:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}
    where all T tokens new
    Each latent is then projected up once for T queries; absorbed dot products are longer, for d_c = 4 d_k = 4 d_v four times.
        absorbing saves as much as in decoding:
            \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c}
        upside down: \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{2\, d_c}{d_k + d_v}
    """
    d_v = d_k if draw == 1 else d_v
    counted = flops_by_length(lambda T: step_flops(T, T, H, d_c, d_k, d_v))
    return {"T": rng.uniform(1, 9), **counted, "d_c": d_c, "d_k": d_k, "d_v": d_v}


# ---- rotary positions
def rotations(rng: np.random.Generator, n: int, pairs: int) -> dict[str, Any]:
    """Return R_t for t from -2n to 2n, what RoPE makes of the rows of the identity, and positions s, t from 1 to n."""
    theta, steps = rng.uniform(20, 90), range(-2 * n, 2 * n + 1)
    turned = [reference.rope(np.eye(2 * pairs), np.full(2 * pairs, step), theta) for step in steps]
    return {"R": matrices(turned, start=-2 * n), "s": index(1, n), "t": index(1, n)}


@claim("rope-depends-on-distance", rests_on="rotations-compose")
def _(normal, rng, n, m):
    r"""(q R_s)\,(k R_t)^\top = q\, R_{s - t}\, k^\top
    where R_t rotates each pair of features by t times its frequency
    Rotations add, and the transpose turns back: the score knows the distance only.
        the angles add: - -> +
        the query alone is rotated: R_{s - t} -> R_s
    """
    return {**rotations(rng, n, m), "q": row(normal(2 * m)), "k": row(normal(2 * m))}


@claim("rope-blocks-absorption", rests_on="absorbed-latent-keys rope-depends-on-distance")
def _(normal, rng, n, m, w):
    r"""(q R_s)\,(c_t W_{UK} R_t)^\top = q\, R_{s - t}\, W_{UK}^\top\, c_t^\top
    The rotation stands between query and up-projection and changes with the distance: q W_UK^T cannot be prepared once.
        absorbed first, rotated afterwards: R_{s - t}\, W_{UK}^\top\, -> W_{UK}^\top\, R_{s - t}\,
        the latents rotated instead of the keys: (q R_s)\,(c_t W_{UK} R_t)^\top = (q\, W_{UK}^\top R_s)\, (c_t R_t)^\top
        no rotation left: R_{s - t}\, -> R_s\,
    """
    latent = {"c": rows(normal(n, 2 * w)), "W_{UK}": normal(2 * w, 2 * m)}
    return {**rotations(rng, n, m), "q": row(normal(2 * m)), **latent}


@claim("rotation-commutator", rests_on="rope-blocks-absorption")
def _(normal, rng, draw):
    r"""R_\theta W - W R_\theta = \sin(\theta)\, (J W - W J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}
    where one pair of features, turned by the angle theta: x R_theta
    R = cos(theta) I + sin(theta) J: only matrices that commute with a quarter turn (rotations times a number) let it pass.
        they commute: \sin(\theta)\, (R_\theta W - W R_\theta) = 0
        the other order: \, (J W - W J) -> (W J - J W)
    """
    theta = rng.uniform(0.2, 3) * (1, -1, 1)[draw]
    return {r"R_\theta": reference.rope(np.eye(2), np.full(2, theta)), r"\theta": theta, "W": normal(2, 2)}


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


@claim("absorbed-latent-attention", rests_on="absorbed-latent-keys absorbed-latent-values decoupled-rope-score")
def _(normal, draw, T, H, d, d_q, d_c, d_head, d_v, m):
    r"""Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}}
        + M\Bigr)\, C\, U_h, \qquad W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)}
    where C^Q, C: latent vectors of queries and of keys and values ;; M: causal mask
    Eqs. absorbed-latent-keys, absorbed-latent-values and decoupled-rope-score together: no key and no value is ever formed.
        one rotary query for all heads: Q_h^R -> Q_1^R
        each part with a scale of its own: C^\top -> C^\top}{\sqrt{d_{\mathrm{head}}}} ;; Q_h^R -> \frac{Q_h^R ;; d_{\mathrm{head}} + ->
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


@claim("latent-cache-equivalent-groups", serves="J3 H3", rests_on="latent-cache-bytes")
def _(rng, n):
    r"""\frac{d_c + d_R}{2\, d_{\mathrm{head}}} = \frac{9}{4} = H_{kv}, \qquad
        d_c = 4\, d_{\mathrm{head}}, \quad d_R = \tfrac{1}{2}\, d_{\mathrm{head}}
    where H_kv: key heads that would fill the same cache ;; the sizes of DeepSeek-V2 (arXiv:2405.04434): d_head = 128, d_c = 512, d_R = 64
    How many key heads of grouped-query attention would fill the same cache: 2.25, where multi-head attention has 128.
        as small as multi-query attention: \frac{9}{4} -> 1
        a group holds keys only: 2\, d -> d
    """
    d_head, d_c, d_R = (size * n for size in (128, 512, 64))  # and layers that many times as wide
    latent, group = (cached(np.dtype("float16"), 2, key, other=value) for key, value in ((d_c, d_R), (d_head, d_head)))
    return {"H_{kv}": latent / group, r"d_{\mathrm{head}}": d_head, "d_c": d_c, "d_R": d_R}
