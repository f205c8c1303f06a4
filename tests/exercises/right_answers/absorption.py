"""Right answers to the tasks of lesson absorption: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def _softmax(scores, axis=-1):
    terms = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return terms / terms.sum(axis=axis, keepdims=True)


def forms_with_einsum(w_query, w_key, n_heads):
    q, k = (w.reshape(len(w), n_heads, -1) for w in (w_query, w_key))
    return np.einsum("ahc,bhc->hab", q / np.sqrt(q.shape[2]), k)


def forms_in_torch(w_query, w_key, n_heads):
    q, k = (torch.tensor(w, dtype=torch.float32).unflatten(1, (n_heads, -1)).transpose(0, 1) for w in (w_query, w_key))
    return q @ k.mT * q.shape[2] ** -0.5


def columns_by_rows(tokens, w_query, w_key):
    query, key = (w_query @ tokens).T, (w_key @ tokens).T
    return (_softmax(query @ key.T / np.sqrt(len(w_query))) @ tokens.T).T


def columns_in_torch(tokens, w_query, w_key):
    tokens, w_query, w_key = (torch.from_numpy(a).float() for a in (tokens, w_query, w_key))
    return tokens @ torch.softmax((w_key @ tokens).T @ (w_query @ tokens) / len(w_query) ** 0.5, dim=0)


def backward_with_einsum(w_query, w_key, d_form):
    return np.einsum("ab,bc->ac", d_form, w_key), np.einsum("ab,ac->bc", d_form, w_query)


def backward_in_float32(w_query, w_key, d_form):
    w_query, w_key, d_form = (torch.from_numpy(a).float() for a in (w_query, w_key, d_form))
    return d_form.matmul(w_key), (w_query.T @ d_form).T


def bias_by_values(weights, b_value, w_output):
    return weights @ np.tile(b_value, (weights.shape[1], 1)) @ w_output


def bias_in_torch(weights, b_value, w_output):
    weights, b_value, w_output = (torch.from_numpy(a).float() for a in (weights, b_value, w_output))
    return weights.sum(1, keepdim=True) * (b_value @ w_output)


def joint_from_the_right(w_key, w_value, d_latent):
    both = np.hstack([w_key, w_value])
    up = np.linalg.svd(both)[2][:d_latent]
    squeezed = both @ up.T @ up
    return squeezed[:, : w_key.shape[1]], squeezed[:, w_key.shape[1] :]


def joint_in_torch(w_key, w_value, d_latent):
    left, singular, right = torch.linalg.svd(torch.from_numpy(np.hstack([w_key, w_value])).float(), full_matrices=False)
    near = left[:, :d_latent] @ torch.diag(singular[:d_latent]) @ right[:d_latent]
    return near.split([w_key.shape[1], w_value.shape[1]], dim=1)


def _turned(x, position):
    half = len(x) // 2
    turned = np.empty(len(x))
    for i in range(half):
        angle = position / 10_000.0 ** (i / half)
        turned[i] = x[i] * math.cos(angle) - x[half + i] * math.sin(angle)
        turned[half + i] = x[i] * math.sin(angle) + x[half + i] * math.cos(angle)
    return turned


def decoupled_with_keys_written_out(query, query_rope, latent, key_rope, w_key_up):
    past = len(latent) - len(query)
    keys = [np.append(latent[j] @ w_key_up, _turned(key_rope[j], j)) for j in range(len(latent))]
    queries = [np.append(query[i], _turned(query_rope[i], past + i)) for i in range(len(query))]
    return np.array(queries) @ np.array(keys).T / math.sqrt(len(keys[0]))


def decoupled_by_distance(query, query_rope, latent, key_rope, w_key_up):
    past = len(latent) - len(query)
    scores = query @ w_key_up.T @ latent.T
    for i, j in np.ndindex(*scores.shape):
        scores[i, j] += _turned(query_rope[i], past + i - j) @ key_rope[j]
    return scores / np.sqrt(query.shape[1] + query_rope.shape[1])


def decoupled_in_float32(query, query_rope, latent, key_rope, w_key_up):
    scores = decoupled_with_keys_written_out(query, query_rope, latent, key_rope, w_key_up)
    return torch.from_numpy(scores).float()


def step_with_one_wide_key(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    n_heads, d_head = query.shape
    absorbed = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, n_heads, d_head))
    scores = np.hstack([absorbed, query_rope]) @ np.hstack([latent, key_rope]).T
    averages = _softmax(scores * (d_head + query_rope.shape[1]) ** -0.5) @ latent
    maps = np.einsum("chv,hvd->hcd", w_value_up.reshape(latent.shape[1], n_heads, -1), w_output.reshape(n_heads, -1, w_output.shape[1]))
    return absorbed, averages, np.einsum("hc,hcd->d", averages, maps)


def step_in_torch(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    tensors = (torch.from_numpy(a).float() for a in (query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output))
    query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output = tensors
    n_heads = len(query)
    keys_up, values_up = (w.unflatten(1, (n_heads, -1)).transpose(0, 1) for w in (w_key_up, w_value_up))
    absorbed = (keys_up @ query[:, :, None]).squeeze(-1)
    scores = (absorbed @ latent.T + query_rope @ key_rope.T) / math.sqrt(query.shape[1] + query_rope.shape[1])
    averages = scores.softmax(-1) @ latent
    return absorbed, averages, (averages[:, None] @ values_up).flatten() @ w_output


def absorbed_with_a_constant_feature(w_query, b_query, w_key, b_key):
    asks = np.vstack([w_query, b_query]) / math.sqrt(len(b_query))
    both = asks @ w_key.T
    return both[:-1], both[-1]


def absorbed_in_torch(w_query, b_query, w_key, b_key):
    w_query, b_query, w_key = (torch.from_numpy(a).float() for a in (w_query, b_query, w_key))
    return torch.einsum("ac,bc->ab", w_query, w_key) * len(b_query) ** -0.5, w_key @ b_query * len(b_query) ** -0.5


def wide_by_blocks(up_key, d_rope):
    below, right = np.zeros((d_rope, up_key.shape[2])), np.zeros((up_key.shape[1], d_rope))
    return np.array([np.block([[up, right], [below, np.identity(d_rope)]]) for up in up_key])


def wide_in_torch(up_key, d_rope):
    return torch.stack([torch.block_diag(up, torch.eye(d_rope)) for up in torch.from_numpy(up_key).float()])


def step_head_by_head(query, latent, up_key, up_value):
    heads = zip(query, up_key, up_value, strict=True)
    return np.array([_softmax(latent @ (up @ q) / math.sqrt(len(q))) @ latent @ out for q, up, out in heads])


def step_with_keys_made(query, latent, up_key, up_value):
    query, latent, up_key, up_value = (torch.from_numpy(a).float() for a in (query, latent, up_key, up_value))
    return torch.nn.functional.scaled_dot_product_attention(query[:, None], latent @ up_key, latent @ up_value)[:, 0]


RIGHT = {
    "absorbed-head-matrices": [forms_with_einsum, forms_in_torch],
    "repair-columns-attention": [columns_by_rows, columns_in_torch],
    "absorbed-matrix-backward": [backward_with_einsum, backward_in_float32],
    "value-bias-contribution": [bias_by_values, bias_in_torch],
    "read-bilinear-form": [lambda: (2, 0.2, 1.4), lambda: [2.0, (-0.6 + 1.0) / 2, 0.5 + 1.2 - 0.4 + 0.1]],
    "latent-cache-size": [lambda: (48 * 352 * 2 / 1000, 352 / 160), lambda: (33.79, 2.2)],
    "joint-key-value-compression": [joint_from_the_right, joint_in_torch],
    "absorption-break-even": [
        lambda t, c, k, v: t * c * (k + v) / (c * (k + v) + 2 * t * c - t * (k + v)),
        lambda t, c, k, v: 1 / (1 / t + 2 / (k + v) - 1 / c),
    ],
    "repair-decoupled-scores": [decoupled_by_distance, decoupled_in_float32],
    "latent-decoding-step": [step_with_one_wide_key, step_in_torch],
    "head-with-biases-absorbed": [absorbed_with_a_constant_feature, absorbed_in_torch],
    "step-among-latents": [step_head_by_head, step_with_keys_made],
    "key-with-rotary-part": [wide_by_blocks, wide_in_torch],
    "absorb-projections-and-biases": [
        [
            r"(x_i W_Q + b_Q) \, \bigl( x_j W_K + b_K \bigr)^{\top}",
            r"\bigl( x_j W_K + b_K \bigr) \bigl( x_i W_Q + b_Q \bigr)^\top",
            r"x_j W_K (W_Q^\top x_i^\top + b_Q^\top) + b_K (x_i W_Q + b_Q)^\top",
            r"x_j W_K W_Q^\top x_i^\top + x_j W_K b_Q^\top + b_K (x_i W_Q + b_Q)^\top",
            r"x_j W^\top x_i^\top + x_j v^\top + b_K (x_i W_Q + b_Q)^\top",
            r"x_i W x_j^\top + v x_j^\top + (x_i W_Q + b_Q) b_K^\top",
        ],
        [
            r"(x_i W_Q + b_Q)(x_j W_K + b_K)^\top",
            r"(x_i W_Q) \cdot (x_j W_K) + (x_i W_Q) \cdot b_K + b_Q \cdot (x_j W_K) + b_Q \cdot b_K",
            r"(x_i W_Q W_K^\top) \cdot x_j + (x_i W_Q) \cdot b_K + (b_Q W_K^\top) \cdot x_j + b_Q \cdot b_K",
            r"(x_i W) \cdot x_j + v \cdot x_j + (x_i W_Q + b_Q) \cdot b_K",
        ],
    ],
    "gauge-of-the-values": [r"\left( W_O^\top (G^\top)^{-1} \right)^\top", r"\frac{1}{2} G^{-1} (W_O + W_O)"],
    "query-that-asks-latents": [
        r"\left[ \sum_a \frac{(q_h^C)_a (W_{UK}^{(h)\top})_a}{\sqrt{d_k + d_R}}, \frac{q_h^R}{\sqrt{d_k + d_R}} \right]",
        r"\begin{pmatrix} q_h^C W_{UK}^{(h)\top} & q_h^R \end{pmatrix} \frac{1}{\sqrt{d_k + d_R}}",
    ],
}
