"""Latent attention: a small cache, absorbed projections, decoupled RoPE.

One latent row c_t = x_t W_DKV for each token; k_t = c_t W_UK, v_t = c_t W_UV for each head. Rows are positions.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import sympy
from sympy import symbols

from attn_course import reference
from attn_course.equations.claims import Chain, Claims, Sides
from attn_course.equations.counting import multiplications
from attn_course.equations.matrices import matrix_symbols, minus_infinity_where_hidden, weights_of
from attn_course.equations.stated import equation

q, c = matrix_symbols("q", 1, 2), matrix_symbols("c", 1, 2)
W_UK = matrix_symbols("u", 2, 2)
s, t, theta = symbols("s t theta", real=True)
T, d_c, d_k, d_v = symbols("T d_c d_k d_v", positive=True)
turn = sympy.Matrix([[0, 1], [-1, 0]])  # a quarter turn of a row


def _rotation(angle: sympy.Expr) -> sympy.Matrix:
    """Return R with x R = the row x, rotated by the angle."""
    return sympy.Matrix([[sympy.cos(angle), sympy.sin(angle)], [-sympy.sin(angle), sympy.cos(angle)]]).applyfunc(sympy.expand_trig)


# ---- 10.7 keys and values from one latent vector


@equation(
    "absorbed-latent-keys",
    r"q\,(c_j W_{UK})^\top = \bigl(q\, W_{UK}^\top\bigr)\, c_j^\top",
    rows=["J3", "J1"],
    uses=["absorbed-score"],
    assumes=["k_j = c_j W_UK"],
    scope="d_c = 2, d_k = 2",
)
def keys_absorbed_into_the_query() -> Sides:
    """The up-projection moves to the one new query, and the cached latents serve as keys, for all heads."""
    return (q * (c * W_UK).T)[0], ((q * W_UK.T) * c.T)[0]


keys_absorbed_into_the_query.wrong("without the transpose")(lambda: ((q * (c * W_UK).T)[0], ((q * W_UK) * c.T)[0]))


@equation(
    "absorbed-latent-values",
    r"\Bigl( \sum_j p_j\, (c_j W_{UV}) \Bigr) W_O = \Bigl( \sum_j p_j\, c_j \Bigr) \bigl( W_{UV} W_O \bigr)",
    rows=["J3", "J2"],
    uses=["absorbed-value-projection"],
    assumes=["v_j = c_j W_UV", "W_O = rows of one head"],
    scope="T = 2, d_c = 2, d_v = 1",
)
def values_absorbed_into_the_output() -> Sides:
    """Average the latents, then project once, instead of projecting each of them."""
    p, C, W_UV, W_O = matrix_symbols("p", 1, 2), matrix_symbols("c", 2, 2), matrix_symbols("v", 2, 1), matrix_symbols("o", 1, 2)
    return (p * (C * W_UV)) * W_O, (p * C) * (W_UV * W_O)


@values_absorbed_into_the_output.wrong("the weights leave the sum")
def _() -> Sides:
    p, C, W_UV, W_O = matrix_symbols("p", 1, 2), matrix_symbols("c", 2, 2), matrix_symbols("v", 2, 1), matrix_symbols("o", 1, 2)
    return (p * (C * W_UV)) * W_O, sympy.ones(1, 2) * C * (W_UV * W_O)


@equation(
    "joint-key-value-rank",
    r"\mathrm{rank}\bigl[\, K_1 \cdots K_H\; V_1 \cdots V_H \,\bigr] \le d_c",
    rows=["J3"],
    uses=["absorbed-latent-keys", "absorbed-latent-values"],
    kind="numeric",
    scope="T = 7, d = 6, d_c = 1 to 5, H = 2, bound attained",
)
def keys_and_values_of_all_heads_share_a_rank(rng: np.random.Generator) -> Claims:
    """What is assumed: the keys and values of all heads together, one wide matrix, have low rank. That is how the cache can be small."""
    for d_c in range(1, 6):
        latent = rng.normal(size=(7, 6)) @ rng.normal(size=(6, d_c))
        both = np.hstack([latent @ rng.normal(size=(d_c, 3)) for _ in range(4)])
        yield Chain(np.linalg.matrix_rank(both), "<=", d_c, tight=(True,))


@keys_and_values_of_all_heads_share_a_rank.wrong("H d_c: each head has a latent of its own")
def _(rng: np.random.Generator) -> Sides:
    latent = rng.normal(size=(7, 2))
    return np.linalg.matrix_rank(np.hstack([latent @ rng.normal(size=(2, 3)) for _ in range(4)])), 4 * 2


@equation(
    "grouped-heads-as-latent",
    r"c_t = [\,k_{t,0} \cdots k_{t,H_{kv}-1},\; v_{t,0} \cdots v_{t,H_{kv}-1}\,]: \qquad K_h = C\, E_r, \quad V_h = C\, E_{H_{kv} + r},"
    r" \quad d_c = 2\, H_{kv}\, d_{\mathrm{head}}",
    rows=["J3", "H3"],
    uses=["grouped-query-attention", "absorbed-latent-keys"],
    assumes=["E_r = columns r d_head to (r + 1) d_head - 1 of the identity", "r = floor(h / g), g = H / H_kv", "all counted from 0"],
    kind="numeric",
    scope="H = 6, H_kv = 2, d_head = 3",
)
def grouped_heads_are_a_special_latent(rng: np.random.Generator) -> Claims:
    """Grouped-query attention is latent attention whose up-projections only copy; learned ones can do more with the same cache."""
    keys, values = rng.normal(size=(2, 2, 5, 3))
    latent, identity = np.hstack([*keys, *values]), np.eye(12)
    for h in range(6):
        copied = reference.repeat_key_value(keys, 3)[h], reference.repeat_key_value(values, 3)[h]
        yield copied, tuple(latent @ identity[:, [3 * block + a for a in range(3)]] for block in (h // 3, 2 + h // 3))
    yield latent.shape[1], 2 * 2 * 3


@grouped_heads_are_a_special_latent.wrong("copied with the heads tiled, h mod H_kv")
def _(rng: np.random.Generator) -> Claims:
    keys = rng.normal(size=(2, 5, 3))
    for h in range(6):
        yield reference.repeat_key_value(keys, 3)[h], np.hstack([*keys]) @ np.eye(6)[:, 3 * (h % 2) : 3 * (h % 2) + 3]


# ---- 10.8 what absorbing saves, and when


@equation(
    "latent-decoding-flops",
    r"F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \qquad F_{\mathrm{absorbed}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c",
    rows=["J3"],
    uses=["absorbed-latent-keys", "absorbed-latent-values"],
    assumes=["one new token against T cached latents", "from the queries to the outputs of the heads", "a multiply-add counts 2"],
    kind="numeric",
    scope="three shapes, counted while computing",
)
def flops_of_a_decoding_step(rng: np.random.Generator) -> Claims:
    """Naive: every cached latent is projected up again. Absorbed: one query down and one output up, and longer dot products."""
    for length, n_heads, d_c, d_k, d_v in ((5, 2, 4, 3, 2), (1, 1, 2, 3, 4), (7, 3, 2, 2, 5)):
        naive, absorbed = _step_flops(1, length, n_heads, d_c, d_k, d_v)
        yield naive, 2 * length * n_heads * (d_c + 1) * (d_k + d_v)
        yield absorbed, 2 * n_heads * d_c * (d_k + d_v) + 4 * length * n_heads * d_c


def _step_flops(q_len: int, length: int, n_heads: int, d_c: int, d_k: int, d_v: int) -> tuple[int, int]:
    """Count both ways from the queries to the outputs of the heads, head by head."""
    shapes = (q_len, d_k), (length, d_c), (d_c, d_k), (d_c, d_v)
    naive = multiplications(lambda q, c, u_k, u_v: (q @ (c @ u_k).T) @ (c @ u_v), *shapes)
    absorbed = multiplications(lambda q, c, u_k, u_v: (((q @ u_k.T) @ c.T) @ c) @ u_v, *shapes)
    return 2 * n_heads * naive, 2 * n_heads * absorbed


flops_of_a_decoding_step.wrong("the naive way projects the new token only")(
    lambda rng: (_step_flops(1, 5, 2, 4, 3, 2)[0], 2 * 2 * (4 + 5) * (3 + 2))
)
flops_of_a_decoding_step.wrong("the absorbed way compares vectors of length d_k")(
    lambda rng: (_step_flops(1, 5, 2, 4, 3, 2)[1], 2 * 2 * 4 * (3 + 2) + 2 * 5 * 2 * (3 + 2))
)


def _limit_of_ratio(new_tokens: sympy.Expr) -> sympy.Expr:
    """Return F_naive / F_absorbed for a long past, counted as in Eq. latent-decoding-flops, with so many new tokens."""
    naive = 2 * T * d_c * (d_k + d_v) + 2 * new_tokens * T * (d_k + d_v)
    absorbed = 2 * new_tokens * d_c * (d_k + d_v) + 4 * new_tokens * T * d_c
    return sympy.limit(sympy.cancel(naive / absorbed), T, sympy.oo)


@equation(
    "absorption-gain-at-decoding",
    r"\text{decode:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c}",
    rows=["J3"],
    uses=["latent-decoding-flops"],
    assumes=["one new token"],
    scope="any widths",
)
def gain_at_decoding() -> Sides:
    """About (d_k + d_v) / 2, which is 128 for d_k = d_v = 128: the price of rebuilding the past at every step."""
    return _limit_of_ratio(sympy.Integer(1)), (d_c + 1) * (d_k + d_v) / (2 * d_c)


@gain_at_decoding.wrong("2 d_c / (d_k + d_v)")
def _() -> Sides:
    return _limit_of_ratio(sympy.Integer(1)), 2 * d_c / (d_k + d_v)


@equation(
    "absorption-loss-at-prefill",
    r"\text{prefill:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}",
    rows=["J3"],
    uses=["latent-decoding-flops"],
    assumes=["all T tokens new"],
    scope="any widths",
)
def loss_at_prefill() -> Sides:
    """Each latent is then projected up once for T queries; absorbed dot products are longer, for d_c = 4 d_k = 4 d_v four times."""
    return _limit_of_ratio(T), (d_k + d_v) / (2 * d_c)


@loss_at_prefill.wrong("absorbing saves as much as in decoding")
def _() -> Sides:
    return _limit_of_ratio(T), (d_c + 1) * (d_k + d_v) / (2 * d_c)


# ---- 10.9 rotary positions


@equation(
    "rope-depends-on-distance",
    r"(q R_s)\,(k R_t)^\top = q\, R_{s - t}\, k^\top",
    rows=["J3"],
    uses=["rotations-compose"],
    assumes=["R_t rotates each pair of features by t times its frequency (one pair shown, frequency 1)"],
    scope="one pair, any s, t",
)
def rope_depends_on_the_distance() -> Sides:
    """Rotations add, and the transpose turns back: the score knows the distance only."""
    k = matrix_symbols("k", 1, 2)
    return ((q * _rotation(s)) * (k * _rotation(t)).T)[0], (q * _rotation(s - t) * k.T)[0]


@rope_depends_on_the_distance.wrong("the angles add")
def _() -> Sides:
    k = matrix_symbols("k", 1, 2)
    return ((q * _rotation(s)) * (k * _rotation(t)).T)[0], (q * _rotation(s + t) * k.T)[0]


@rope_depends_on_the_distance.wrong("the query alone is rotated")
def _() -> Sides:
    k = matrix_symbols("k", 1, 2)
    return ((q * _rotation(s)) * (k * _rotation(t)).T)[0], (q * _rotation(s) * k.T)[0]


@equation(
    "rope-blocks-absorption",
    r"(q R_s)\,(c_t W_{UK} R_t)^\top = q\, R_{s - t}\, W_{UK}^\top\, c_t^\top",
    rows=["J3"],
    uses=["absorbed-latent-keys", "rope-depends-on-distance"],
    scope="one pair, d_c = 2",
)
def rope_blocks_absorption() -> Sides:
    """The rotation stands between query and up-projection and changes with the distance: q W_UK^T cannot be prepared once."""
    return ((q * _rotation(s)) * (c * W_UK * _rotation(t)).T)[0], (q * _rotation(s - t) * W_UK.T * c.T)[0]


rope_blocks_absorption.wrong("absorbed first, rotated afterwards")(
    lambda: (((q * _rotation(s)) * (c * W_UK * _rotation(t)).T)[0], (q * W_UK.T * _rotation(s - t) * c.T)[0])
)
rope_blocks_absorption.wrong("the latents rotated instead of the keys")(
    lambda: (((q * _rotation(s)) * (c * W_UK * _rotation(t)).T)[0], ((q * W_UK.T * _rotation(s)) * (c * _rotation(t)).T)[0])
)


@equation(
    "rotation-commutator",
    r"R_\theta W - W R_\theta = \sin\theta\, (J W - W J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}",
    rows=["J3"],
    uses=["rope-blocks-absorption"],
    scope="one pair, any W",
)
def rotation_and_projection_do_not_commute() -> Sides:
    """R = cos(theta) I + sin(theta) J: only matrices that commute with a quarter turn (rotations times a number) let it pass."""
    return _rotation(theta) * W_UK - W_UK * _rotation(theta), sympy.sin(theta) * (turn * W_UK - W_UK * turn)


rotation_and_projection_do_not_commute.wrong("they commute")(lambda: (_rotation(theta) * W_UK - W_UK * _rotation(theta), sympy.zeros(2, 2)))


@equation(
    "decoupled-rope-score",
    r"[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = q^C \cdot k^C + q^R \cdot k^R",
    rows=["J3"],
    uses=["rope-blocks-absorption"],
    assumes=["C: content, absorbed; R: rotary, with one key that all heads share", "scale 1 / sqrt(d_head + d_R)"],
    kind="numeric",
    scope="T = 5, d_head = 3, d_R = 2",
)
def decoupled_keys(rng: np.random.Generator) -> Claims:
    """Positions get features of their own: the content part has no rotation in the way, the rotary part nothing to absorb."""
    content, rotary = rng.normal(size=(2, 5, 3)), reference.rope(rng.normal(size=(2, 5, 2)), np.arange(5))
    whole = np.concatenate([content, rotary], axis=-1)
    weights = reference.attention(whole[0], whole[1], whole[1], return_weights=True)[1]
    scores = content[0] @ content[1].T + rotary[0] @ rotary[1].T
    yield whole[0] @ whole[1].T, content[0] @ content[1].T + rotary[0] @ rotary[1].T
    yield weights, weights_of(scores / np.sqrt(3 + 2))


@decoupled_keys.wrong("the scale of the content part alone")
def _(rng: np.random.Generator) -> Sides:
    whole = rng.normal(size=(2, 5, 5))
    return reference.attention(whole[0], whole[1], whole[1], return_weights=True)[1], weights_of(whole[0] @ whole[1].T / np.sqrt(3))


class _Latent(NamedTuple):
    """A layer of latent attention: 5 tokens, d = 6, 2 heads of d_head = 3 and d_v = 4, d_c = 5, d_R = 2."""

    x: np.ndarray
    weights: reference.LatentWeights
    query_latent: np.ndarray
    latent: np.ndarray
    query_rope: np.ndarray
    key_rope: np.ndarray

    def naive(self) -> np.ndarray:
        """Return what the package computes with keys and values rebuilt."""
        return np.asarray(reference.latent_attention(self.x, self.weights, n_heads=2, positions=np.arange(5)))


def _latent(rng: np.random.Generator) -> _Latent:
    shapes = (6, 7), (7, 6), (7, 4), (6, 5), (5, 6), (6, 2), (5, 8), (8, 6)
    x, weights = rng.normal(size=(5, 6)), reference.LatentWeights(*(rng.normal(size=shape) / 2 for shape in shapes))
    query_latent, positions = x @ weights.w_query_down, np.arange(5)
    query_rope = [reference.rope(query_latent @ weights.w_query_rope[:, 2 * h : 2 * h + 2], positions) for h in range(2)]
    return _Latent(
        x, weights, query_latent, x @ weights.w_latent_down, np.array(query_rope), reference.rope(x @ weights.w_key_rope, positions)
    )


@equation(
    "absorbed-latent-attention",
    r"Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}} + M\Bigr)\,"
    r" C\, U_h, \qquad W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)}",
    rows=["J3"],
    uses=["absorbed-latent-keys", "absorbed-latent-values", "decoupled-rope-score"],
    assumes=["C^Q, C: latent vectors of queries and of keys and values", "M: causal mask"],
    kind="numeric",
    scope="T = 5, H = 2, RoPE on; with keys and values rebuilt and without",
)
def absorbed_latent_attention(rng: np.random.Generator) -> Claims:
    """Eqs. absorbed-latent-keys, absorbed-latent-values and decoupled-rope-score together: no key and no value is ever formed."""
    for _ in range(3):
        layer = _latent(rng)
        w, M = layer.weights, minus_infinity_where_hidden(np.tri(5, dtype=bool))
        W = [w.w_query_up[:, 3 * h : 3 * h + 3] @ w.w_key_up[:, 3 * h : 3 * h + 3].T for h in range(2)]
        U = [w.w_value_up[:, 4 * h : 4 * h + 4] @ w.w_output[4 * h : 4 * h + 4] for h in range(2)]
        scores = [layer.query_latent @ W[h] @ layer.latent.T + layer.query_rope[h] @ layer.key_rope.T for h in range(2)]
        for form in (reference.latent_attention, reference.latent_attention_absorbed):
            output = form(layer.x, w, n_heads=2, positions=np.arange(5))
            yield output, sum(weights_of(scores[h] / np.sqrt(3 + 2) + M) @ layer.latent @ U[h] for h in range(2))


@absorbed_latent_attention.wrong("the rotary part left out")
def _(rng: np.random.Generator) -> Sides:
    layer = _latent(rng)
    still = replace(layer.weights, w_query_rope=0 * layer.weights.w_query_rope)
    return layer.naive(), reference.latent_attention_absorbed(layer.x, still, n_heads=2, positions=np.arange(5))


@absorbed_latent_attention.wrong("all positions the same")
def _(rng: np.random.Generator) -> Sides:
    layer = _latent(rng)
    return layer.naive(), reference.latent_attention_absorbed(layer.x, layer.weights, n_heads=2, positions=np.zeros(5))


# ---- 10.10 bytes


@equation(
    "latent-cache-bytes",
    r"\frac{\text{bytes}}{\text{token and layer}} = b\,(d_c + d_R) \quad \text{against} \quad 2\, b\, H_{kv}\, d_{\mathrm{head}}",
    rows=["J3", "H3"],
    uses=["kv-cache-bytes", "absorbed-latent-attention"],
    assumes=["b bytes for one number"],
    kind="numeric",
    scope="caches filled with 5 tokens; d_c = 5, d_R = 2; H_kv = 2, d_head = 3",
)
def bytes_of_the_latent_cache(rng: np.random.Generator) -> Claims:
    """One latent vector and one rotary key, for all heads; multi-head and grouped caches hold a key and a value for each key head."""
    latent, grouped = reference.KeyValueCache(), reference.KeyValueCache()
    layer = _latent(rng)
    kept = latent.append(layer.latent, layer.key_rope)
    other = grouped.append(*rng.normal(size=(2, 2, 5, 3)))
    yield (sum(array.nbytes for array in kept) / 5, sum(array.nbytes for array in other) / 5), (8 * (5 + 2), 2 * 8 * 2 * 3)


bytes_of_the_latent_cache.wrong("the latents alone, without the rotary key")(
    lambda rng: (_latent(rng).latent.nbytes / 5 + _latent(rng).key_rope.nbytes / 5, 8 * 5)
)
bytes_of_the_latent_cache.wrong("twice, once for keys and once for values")(
    lambda rng: (_latent(rng).latent.nbytes / 5 + _latent(rng).key_rope.nbytes / 5, 2 * 8 * 5 + 8 * 2)
)


@equation(
    "latent-cache-equivalent-groups",
    r"\frac{d_c + d_R}{2\, d_{\mathrm{head}}} = \frac{9}{4}, \qquad d_c = 4\, d_{\mathrm{head}}, \quad"
    r" d_R = \tfrac{1}{2}\, d_{\mathrm{head}}",
    rows=["J3", "H3"],
    uses=["latent-cache-bytes"],
    assumes=["the sizes of DeepSeek-V2 (arXiv:2405.04434): d_head = 128, d_c = 512, d_R = 64"],
    kind="numeric",
    scope="d_head = 128",
)
def as_many_bytes_as_two_groups_and_a_quarter(rng: np.random.Generator) -> Claims:
    """How many key heads of grouped-query attention would fill the same cache: 2.25, where multi-head attention has 128."""
    d_head, d_c, d_R = 128, 512, 64
    assert (d_c, d_R) == (4 * d_head, d_head // 2)
    latent = np.zeros((1, d_c)).nbytes + np.zeros((1, d_R)).nbytes
    group = np.zeros((2, 1, d_head)).nbytes
    yield latent / group, 9 / 4


as_many_bytes_as_two_groups_and_a_quarter.wrong("one: as small as multi-query attention")(lambda rng: ((512 + 64) / (2 * 128), 1.0))
