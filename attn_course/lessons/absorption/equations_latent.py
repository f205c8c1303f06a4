"""Latent attention: a small cache, absorbed projections, decoupled RoPE.

One latent row c_t = x_t W_DKV for each token; k_t = c_t W_UK, v_t = c_t W_UV for each head. Rows are positions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import Givens, about
from attn_course.equations.counting import multiplications
from attn_course.formulas import index, matrices, of, row, rows, vector
from attn_course.lessons.absorption.equations import drawn

equation = about("J3")


# ---- keys and values from one latent vector
@equation(
    "absorbed-latent-keys",
    r"q\,(c_j W_{UK})^\top = \bigl(q\, W_{UK}^\top\bigr)\, c_j^\top",
    topics=["J3", "J1"],
    uses=["absorbed-score"],
    assumes=["k_j = c_j W_UK"],
    wrong={"without the transpose": r"W_{UK}^\top -> W_{UK}", "the key projected as well": r"c_j^\top -> (c_j W_{UK} W_{UK}^\top)^\top"},
)
def keys_absorbed_into_the_query(rng: np.random.Generator, T: int, d_c: int, d_k: int) -> Givens:
    """The up-projection moves to the one new query, and the cached latents serve as keys, for all heads."""
    return {"q": row(rng.normal(size=d_k)), "c": rows(rng.normal(size=(T, d_c))), "W_{UK}": rng.normal(size=(d_c, d_k))}


@equation(
    "absorbed-latent-values",
    r"\Bigl( \sum_j p_j\, (c_j W_{UV}) \Bigr) W_O = \Bigl( \sum_j p_j\, c_j \Bigr) \bigl( W_{UV} W_O \bigr)",
    topics=["J3", "J2"],
    uses=["absorbed-value-projection"],
    assumes=["v_j = c_j W_UV", "W_O = rows of one head"],
    wrong={"the weights leave the sum": r"p_j\, c_j -> c_j", "the weights squared": r"p_j\, c_j -> p_j^2\, c_j"},
)
def values_absorbed_into_the_output(rng: np.random.Generator, T: int, d_c: int, d_v: int, d: int) -> Givens:
    """Average the latents, then project once, instead of projecting each of them."""
    latent = {"p": vector(reference.softmax(rng.normal(size=T))), "c": rows(rng.normal(size=(T, d_c)))}
    return {**latent, "W_{UV}": rng.normal(size=(d_c, d_v)), "W_O": rng.normal(size=(d_v, d))}


@equation(
    "joint-key-value-rank",
    r"\mathrm{rank}\bigl[\, K_1 \cdots K_H\; V_1 \cdots V_H \,\bigr] \le d_c",
    uses=["absorbed-latent-keys", "absorbed-latent-values"],
    assumes=["K_h = C W_UK, V_h = C W_UV with matrices of each head, C: T rows of length d_c"],
    wrong={"each head has a latent of its own": r"\le d_c -> = H\, d_c", "always d_c": r"\le d_c -> = d_c"},
)
def keys_and_values_of_all_heads_share_a_rank(rng: np.random.Generator, draw: int, n: int, H: int, d_k: int) -> Givens:
    """What is assumed: the keys and values of all heads together, one wide matrix, have low rank. That is how the cache can be small."""
    d_c = 2 * H - (n > H)  # each key head and each value head reads one direction of the latents: only all of them read them whole
    rank = (1, d_c - 1, d_c)[draw]
    latent = rng.normal(size=(d_c + n, rank)) @ rng.normal(size=(rank, d_c))
    keys, values = ([latent @ rng.normal(size=(d_c, 1)) @ rng.normal(size=(1, d_k)) for _ in range(H)] for _ in "KV")
    return {"K": matrices(keys), "V": matrices(values), "H": H, "d_c": d_c}


COPIES = (
    r"c_t = [\,k_{t,0} \cdots k_{t,H_{kv}-1},\; v_{t,0} \cdots v_{t,H_{kv}-1}\,], \qquad K_h = C\, E_r, \quad V_h = C\, E_{H_{kv} + r},"
    r" \quad d_c = 2\, H_{kv}\, d_{\mathrm{head}}, \qquad r = \lfloor h / g \rfloor"
)


@equation(
    "grouped-heads-as-latent",
    COPIES,
    sizes="H g H_kv T d_head, H = g H_kv",
    topics=["J3", "H3"],
    uses=["grouped-query-attention", "absorbed-latent-keys"],
    assumes=["C: rows c_t", "E_r = columns r d_head to (r + 1) d_head - 1 of the identity", "g = H / H_kv", "heads counted from 0"],
    wrong={
        "heads tiled, the remainder for the quotient": COPIES.replace(r"r = \lfloor", r"r = h - g \lfloor"),
        "values from the keys' half": COPIES.replace("H_{kv} + r", "r"),
        "the width of the keys alone": COPIES.replace(r"2\, H_{kv}", "H_{kv}"),
    },
)
def grouped_heads_are_a_special_latent(rng: np.random.Generator, H: int, g: int, H_kv: int, T: int, d_head: int) -> Givens:
    """Grouped-query attention is latent attention whose up-projections only copy; learned ones can do more with the same cache."""
    both = rng.normal(size=(2, H_kv, T, d_head))
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


@equation(
    "latent-decoding-flops",
    r"F_{\mathrm{naive}} = 2\, T H (d_c + 1)(d_k + d_v), \qquad F_{\mathrm{absorbed}} = 2\, H d_c\, (d_k + d_v) + 4\, T H d_c",
    uses=["absorbed-latent-keys", "absorbed-latent-values"],
    assumes=["one new token against T cached latents", "from the queries to the outputs of the heads", "a multiply-add counts 2"],
    wrong={
        "the naive way projects the new token only": "T H (d_c + 1) -> H (d_c + T)",
        "the absorbed way compares vectors of length d_k": r"4\, T H d_c -> 2\, T H (d_k + d_v)",
    },
)
def flops_of_a_decoding_step(rng: np.random.Generator, draw: int, T: int, H: int, d_c: int, d_k: int, d_v: int) -> Givens:
    """Naive: every cached latent is projected up again. Absorbed: one query down and one output up, and longer dot products."""
    T = T if draw else 1
    naive, absorbed = step_flops(1, T, H, d_c, d_k, d_v)
    sizes = {"T": T, "H": H, "d_c": d_c, "d_k": d_k, "d_v": d_v}
    return {r"F_{\mathrm{naive}}": naive, r"F_{\mathrm{absorbed}}": absorbed, **sizes}


def flops_by_length(count: Callable[[int], tuple[int, int]]) -> dict[str, Any]:
    """Return both costs as polynomials in T, of degree 2 at most as every product of matrices is: through those counted at 1, 2 and 3."""

    def cost(one: int, two: int, three: int) -> Callable[[float], float]:
        return lambda T: one + (two - one) * (T - 1) + (three - 2 * two + one) * (T - 1) * (T - 2) / 2

    naive, absorbed = zip(*map(count, (1, 2, 3)), strict=True)
    return {r"F_{\mathrm{naive}}": of(cost(*naive), "T"), r"F_{\mathrm{absorbed}}": of(cost(*absorbed), "T")}


@equation(
    "absorption-gain-at-decoding",
    r"\text{decode:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c}",
    uses=["latent-decoding-flops"],
    assumes=["one new token"],
    wrong={
        "upside down": r"\lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{2\, d_c}{(d_c + 1)(d_k + d_v)}",
        "as in prefill": r"\lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}",
    },
)
def gain_at_decoding(rng: np.random.Generator, draw: int, H: int, d_c: int, d_k: int, d_v: int) -> Givens:
    """About (d_k + d_v) / 2, which is 128 for d_k = d_v = 128: the price of rebuilding the past at every step."""
    d_v = d_k if draw == 1 else d_v
    counted = flops_by_length(lambda T: step_flops(1, T, H, d_c, d_k, d_v))
    return {"T": rng.uniform(1, 9), **counted, "d_c": d_c, "d_k": d_k, "d_v": d_v}


@equation(
    "absorption-loss-at-prefill",
    r"\text{prefill:} \quad \lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{d_k + d_v}{2\, d_c}",
    uses=["latent-decoding-flops"],
    assumes=["all T tokens new"],
    wrong={
        "absorbing saves as much as in decoding": r"\lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}}"
        r" = \frac{(d_c + 1)(d_k + d_v)}{2\, d_c}",
        "upside down": r"\lim_{T \to \infty} \frac{F_{\mathrm{naive}}}{F_{\mathrm{absorbed}}} = \frac{2\, d_c}{d_k + d_v}",
    },
)
def loss_at_prefill(rng: np.random.Generator, draw: int, H: int, d_c: int, d_k: int, d_v: int) -> Givens:
    """Each latent is then projected up once for T queries; absorbed dot products are longer, for d_c = 4 d_k = 4 d_v four times."""
    d_v = d_k if draw == 1 else d_v
    counted = flops_by_length(lambda T: step_flops(T, T, H, d_c, d_k, d_v))
    return {"T": rng.uniform(1, 9), **counted, "d_c": d_c, "d_k": d_k, "d_v": d_v}


# ---- rotary positions
def rotations(rng: np.random.Generator, n: int, pairs: int) -> dict[str, Any]:
    """Return R_t for t from -2n to 2n, what RoPE makes of the rows of the identity, and positions s, t from 1 to n."""
    theta, steps = rng.uniform(20, 90), range(-2 * n, 2 * n + 1)
    turned = [reference.rope(np.eye(2 * pairs), np.full(2 * pairs, step), theta) for step in steps]
    return {"R": matrices(turned, start=-2 * n), "s": index(1, n), "t": index(1, n)}


@equation(
    "rope-depends-on-distance",
    r"(q R_s)\,(k R_t)^\top = q\, R_{s - t}\, k^\top",
    uses=["rotations-compose"],
    assumes=["R_t rotates each pair of features by t times its frequency"],
    wrong={"the angles add": r"(q R_s)\,(k R_t)^\top = q\, R_{s + t}\, k^\top", "the query alone is rotated": "R_{s - t} -> R_s"},
)
def rope_depends_on_the_distance(rng: np.random.Generator, n: int, m: int) -> Givens:
    """Rotations add, and the transpose turns back: the score knows the distance only."""
    return {**rotations(rng, n, m), "q": row(rng.normal(size=2 * m)), "k": row(rng.normal(size=2 * m))}


@equation(
    "rope-blocks-absorption",
    r"(q R_s)\,(c_t W_{UK} R_t)^\top = q\, R_{s - t}\, W_{UK}^\top\, c_t^\top",
    uses=["absorbed-latent-keys", "rope-depends-on-distance"],
    wrong={
        "absorbed first, rotated afterwards": r"(q R_s)\,(c_t W_{UK} R_t)^\top = q\, W_{UK}^\top\, R_{s - t}\, c_t^\top",
        "the latents rotated instead of the keys": r"(q R_s)\,(c_t W_{UK} R_t)^\top = (q\, W_{UK}^\top R_s)\, (c_t R_t)^\top",
        "no rotation left": r"(q R_s)\,(c_t W_{UK} R_t)^\top = q\, R_s\, W_{UK}^\top\, c_t^\top",
    },
)
def rope_blocks_absorption(rng: np.random.Generator, n: int, m: int, w: int) -> Givens:
    """The rotation stands between query and up-projection and changes with the distance: q W_UK^T cannot be prepared once."""
    latent = {"c": rows(rng.normal(size=(n, 2 * w))), "W_{UK}": rng.normal(size=(2 * w, 2 * m))}
    return {**rotations(rng, n, m), "q": row(rng.normal(size=2 * m)), **latent}


@equation(
    "rotation-commutator",
    r"R_\theta W - W R_\theta = \sin(\theta)\, (J W - W J), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}",
    uses=["rope-blocks-absorption"],
    assumes=["one pair of features, turned by the angle theta: x R_theta"],
    wrong={
        "they commute": r"\sin(\theta)\, (R_\theta W - W R_\theta) = 0",
        "the other order": r"R_\theta W - W R_\theta = \sin(\theta) (W J - J W), \qquad J = \begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}",
    },
)
def rotation_and_projection_do_not_commute(rng: np.random.Generator, draw: int) -> Givens:
    """R = cos(theta) I + sin(theta) J: only matrices that commute with a quarter turn (rotations times a number) let it pass."""
    theta = rng.uniform(0.2, 3) * (1, -1, 1)[draw]
    return {r"R_\theta": reference.rope(np.eye(2), np.full(2, theta)), r"\theta": theta, "W": rng.normal(size=(2, 2))}


@equation(
    "decoupled-rope-score",
    r"[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = q^C \cdot k^C + q^R \cdot k^R",
    uses=["rope-blocks-absorption"],
    assumes=["C: content, absorbed; R: rotary, with one key that all heads share", "scale 1 / sqrt(d_head + d_R)"],
    wrong={
        "the parts multiplied": r"[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = (q^C \cdot k^C)\, (q^R \cdot k^R)",
        "the parts added first": r"[\,q^C,\, q^R\,] \cdot [\,k^C,\, k^R\,] = (q^C + q^R) \cdot (k^C + k^R)",
    },
)
def decoupled_keys(rng: np.random.Generator, d_head: int, d_R: int) -> Givens:
    """Positions get features of their own: the content part has no rotation in the way, the rotary part nothing to absorb."""
    parts = drawn(rng, **{"q^C": (d_head,), "q^R": (d_R,), "k^C": (d_head,), "k^R": (d_R,)})
    return {name: row(part) for name, part in parts.items()}


ABSORBED = (
    r"Z = \sum_{h=1}^{H} \mathrm{softmax}\Bigl(\frac{C^Q W_h C^\top + Q_h^R K^{R\top}}{\sqrt{d_{\mathrm{head}} + d_R}} + M\Bigr)\,"
    r" C\, U_h, \qquad W_h = W_{UQ}^{(h)} W_{UK}^{(h)\top}, \quad U_h = W_{UV}^{(h)} W_O^{(h)}"
)


@equation(
    "absorbed-latent-attention",
    ABSORBED,
    uses=["absorbed-latent-keys", "absorbed-latent-values", "decoupled-rope-score"],
    assumes=["C^Q, C: latent vectors of queries and of keys and values", "M: causal mask"],
    wrong={
        "one rotary query for all heads": ABSORBED.replace("Q_h^R", "Q_1^R"),
        "each part with a scale of its own": ABSORBED.replace(r"C^\top + ", r"C^\top}{\sqrt{d_{\mathrm{head}}}} + \frac{").replace(
            r"{d_{\mathrm{head}} + d_R}", "{d_R}"
        ),
        "the future seen, the past hidden": ABSORBED.replace("+ M", r"+ M^\top"),
    },
)
def absorbed_latent_attention(
    rng: np.random.Generator, draw: int, T: int, H: int, d: int, d_q: int, d_c: int, d_head: int, d_v: int, m: int
) -> Givens:
    """Eqs. absorbed-latent-keys, absorbed-latent-values and decoupled-rope-score together: no key and no value is ever formed."""
    d_R, positions, X = 2 * m, np.arange(T), rng.normal(size=(T, d))
    shapes = (d, d_q), (d_q, H * d_head), (d_q, H * d_R), (d, d_c), (d_c, H * d_head), (d, d_R), (d_c, H * d_v), (H * d_v, d)
    w = reference.LatentWeights(*(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes))
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


@equation(
    "latent-cache-bytes",
    r"\text{bytes}_{\text{latent}} = b\,(d_c + d_R), \qquad \text{bytes}_{\text{keys and values}} = 2\, b\, H_{kv}\, d_{\mathrm{head}}",
    topics=["J3", "H3"],
    uses=["kv-cache-bytes", "absorbed-latent-attention"],
    assumes=["for each token and layer", "b bytes for one number"],
    wrong={"a rotary key for each head": r"d_R -> H_{kv}\, d_R", "latents twice, once for keys and once for values": r"d_c -> 2\, d_c"},
)
def bytes_of_the_latent_cache(rng: np.random.Generator, draw: int, T: int, d_c: int, d_R: int, H_kv: int, d_head: int) -> Givens:
    """One latent vector and one rotary key, for all heads; multi-head and grouped caches hold a key and a value for each key head."""
    dtype = np.dtype(("float16", "float32", "float64")[draw])
    d_R = d_c if draw == 1 else d_R
    bytes_kept = {"latent": cached(dtype, T, d_c, other=d_R) / T, "keys and values": cached(dtype, H_kv, T, d_head, other=d_head) / T}
    sizes = {"b": dtype.itemsize, "d_c": d_c, "d_R": d_R, "H_{kv}": H_kv, r"d_{\mathrm{head}}": d_head}
    return {**{rf"\text{{bytes}}_{{\text{{{name}}}}}": number for name, number in bytes_kept.items()}, **sizes}


GROUPS = (
    r"\frac{d_c + d_R}{2\, d_{\mathrm{head}}} = \frac{9}{4} = H_{kv}, \qquad d_c = 4\, d_{\mathrm{head}}, \quad"
    r" d_R = \tfrac{1}{2}\, d_{\mathrm{head}}"
)


@equation(
    "latent-cache-equivalent-groups",
    GROUPS,
    topics=["J3", "H3"],
    uses=["latent-cache-bytes"],
    assumes=[
        "H_kv: key heads that would fill the same cache",
        "the sizes of DeepSeek-V2 (arXiv:2405.04434): d_head = 128, d_c = 512, d_R = 64",
    ],
    wrong={"as small as multi-query attention": r"\frac{9}{4} -> 1", "a group holds keys only": r"2\, d -> d"},
)
def as_many_bytes_as_two_groups_and_a_quarter(rng: np.random.Generator, n: int) -> Givens:
    """How many key heads of grouped-query attention would fill the same cache: 2.25, where multi-head attention has 128."""
    d_head, d_c, d_R = (size * n for size in (128, 512, 64))  # and layers that many times as wide
    latent, group = (cached(np.dtype("float16"), 2, key, other=value) for key, value in ((d_c, d_R), (d_head, d_head)))
    return {"H_{kv}": latent / group, r"d_{\mathrm{head}}": d_head, "d_c": d_c, "d_R": d_R}
