"""Right answers to the tasks of lesson heads: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def _softmax(scores):
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return terms / terms.sum(axis=-1, keepdims=True)


def heads_by_slices(query, key, value, n_heads):
    parts = []
    for h in range(n_heads):
        q, k, v = (side[:, h * side.shape[1] // n_heads : (h + 1) * side.shape[1] // n_heads] for side in (query, key, value))
        parts.append(_softmax(q @ k.T / math.sqrt(q.shape[1])) @ v)
    return np.hstack(parts)


def heads_at_once_in_torch(query, key, value, n_heads):
    q, k, v = (torch.from_numpy(side).float().unflatten(-1, (n_heads, -1)).transpose(0, 1) for side in (query, key, value))
    return (torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v).transpose(0, 1).flatten(1)


def layer_less_one_head(heads, w_output, silent):
    rows = w_output[silent * heads.shape[2] : (silent + 1) * heads.shape[2]]
    return np.hstack(list(heads)) @ w_output - heads[silent] @ rows


def layer_with_zeros(heads, w_output, silent):
    muted = torch.from_numpy(heads).float()
    muted[silent] = 0
    return muted.transpose(0, 1).flatten(1) @ torch.from_numpy(w_output).float()


def split_in_torch(x, n_heads):
    return torch.from_numpy(x).unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def heads_by_a_loop(x, w_query, w_key, w_value, w_output, n_heads):
    heads = []
    for w_q, w_k, w_v in zip(*(np.split(w, n_heads, axis=1) for w in (w_query, w_key, w_value)), strict=True):
        heads.append(_softmax(x @ w_q @ (x @ w_k).T / math.sqrt(w_q.shape[1])) @ x @ w_v)
    return np.hstack(heads) @ w_output


def heads_in_torch(x, w_query, w_key, w_value, w_output, n_heads):
    x, w_query, w_key, w_value, w_output = (torch.from_numpy(a).float() for a in (x, w_query, w_key, w_value, w_output))
    query, key, value = ((x @ w).view(len(x), n_heads, -1).transpose(0, 1) for w in (w_query, w_key, w_value))
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return (weights @ value).transpose(0, 1).flatten(1) @ w_output


def groups_by_a_loop(query, key, value):
    group = len(query) // len(key)
    return np.array([_softmax(q @ key[h // group].T / math.sqrt(q.shape[1])) @ value[h // group] for h, q in enumerate(query)])


def groups_in_torch(query, key, value):
    query, key, value = (torch.tensor(a, dtype=torch.float32) for a in (query, key, value))
    group = query.shape[0] // key.shape[0]
    key, value = key.repeat_interleave(group, dim=0), value.repeat_interleave(group, dim=0)
    return torch.softmax(query @ key.mT * query.shape[2] ** -0.5, -1) @ value


def packed_in_torch(x, stacked, n_heads):
    x, stacked = torch.from_numpy(x), torch.from_numpy(stacked)
    *parts, _ = torch.nn.functional.linear(x, stacked).chunk(4, dim=-1)
    query, key, value = (part.unflatten(-1, (n_heads, -1)).transpose(0, 1) for part in parts)
    heads = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), -1) @ value
    return torch.nn.functional.linear(heads.transpose(0, 1).flatten(1), stacked[-x.shape[1] :])


def packed_in_float32(x, stacked, n_heads):
    x, stacked = x.astype(np.float32), stacked.astype(np.float32)
    w, w_o = np.split(stacked, [3 * x.shape[1]])
    query, key, value = (x @ w.T).reshape(len(x), 3, n_heads, -1).transpose(1, 2, 0, 3)
    heads = _softmax(query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[2]))) @ value
    return heads.transpose(1, 0, 2).reshape(len(x), -1) @ w_o.T


def back_by_heads(heads, w_output, d_output):
    blocks = np.split(w_output, len(heads))
    return np.array([d_output @ block.T for block in blocks]), np.vstack([z.T @ d_output for z in heads])


def back_in_torch(heads, w_output, d_output):
    heads, w_output, d_output = (torch.from_numpy(a).float() for a in (heads, w_output, d_output))
    merged = heads.transpose(0, 1).flatten(1)
    return (d_output @ w_output.T).unflatten(1, (len(heads), -1)).transpose(0, 1), merged.T @ d_output


def step_head_by_head(x_new, keys, values, w_query, w_key, w_value, w_output):
    n_kv_heads, past, d_k = keys.shape
    d_v = values.shape[2]
    all_keys, all_values = np.empty((n_kv_heads, past + 1, d_k)), np.empty((n_kv_heads, past + 1, d_v))
    for r in range(n_kv_heads):
        all_keys[r] = np.vstack([keys[r], x_new @ w_key[:, r * d_k : (r + 1) * d_k]])
        all_values[r] = np.vstack([values[r], x_new @ w_value[:, r * d_v : (r + 1) * d_v]])
    n_heads = w_query.shape[1] // d_k
    output = np.zeros(w_output.shape[1])
    for h in range(n_heads):
        r = h // (n_heads // n_kv_heads)
        weights = _softmax(all_keys[r] @ (x_new @ w_query[:, h * d_k : (h + 1) * d_k]) / math.sqrt(d_k))
        output += weights @ all_values[r] @ w_output[h * d_v : (h + 1) * d_v]
    return output, all_keys, all_values


def step_in_torch(x_new, keys, values, w_query, w_key, w_value, w_output):
    x_new, keys, values, w_query, w_key, w_value, w_output = (
        torch.from_numpy(a).float() for a in (x_new, keys, values, w_query, w_key, w_value, w_output)
    )
    keys = torch.cat([keys, (x_new @ w_key).view(keys.shape[0], 1, -1)], dim=1)
    values = torch.cat([values, (x_new @ w_value).view(values.shape[0], 1, -1)], dim=1)
    query = (x_new @ w_query).view(-1, 1, keys.shape[2])
    group = query.shape[0] // keys.shape[0]
    weights = torch.softmax(query @ keys.repeat_interleave(group, 0).mT / keys.shape[2] ** 0.5, -1)
    return (weights @ values.repeat_interleave(group, 0)).flatten() @ w_output, keys, values


def split_in_float32(x, n_heads):
    return x.astype(np.float32).reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)


def before_by_loops(maps):
    return np.array([[np.mean([own[i, i - 1] for i in range(1, len(own))]) for own in layer] for layer in maps])


def before_in_torch(maps):
    return torch.from_numpy(maps).float().diagonal(-1, -2, -1).mean(-1)


def real_scores_by_loops(x, w_query, w_key, theta):
    query, key = x @ w_query, x @ w_key
    half = query.shape[1] // 2
    scores = np.zeros((len(x), len(x)))
    for i, j, pair in np.ndindex(len(x), len(x), half):
        (a, b), (c, d) = query[i, 2 * pair : 2 * pair + 2], key[j, 2 * pair : 2 * pair + 2]
        angle = (i - j) * theta ** (-pair / half)  # only the distance matters
        scores[i, j] += (a * c + b * d) * math.cos(angle) + (a * d - b * c) * math.sin(angle)
    return scores / math.sqrt(2 * half)


def real_scores_in_torch(x, w_query, w_key, theta):
    x, w_query, w_key = (torch.tensor(array, dtype=torch.float32) for array in (x, w_query, w_key))
    angles = torch.arange(len(x))[:, None] * theta ** (-torch.arange(0, w_query.shape[1], 2) / w_query.shape[1])
    cos, sin = angles.cos(), angles.sin()
    sides = []
    for side in (x @ w_query, x @ w_key):
        a, b = side[:, 0::2], side[:, 1::2]
        sides.append(torch.cat([a * cos - b * sin, a * sin + b * cos], dim=1))
    return sides[0] @ sides[1].T / w_query.shape[1] ** 0.5


def word_step_by_groups(query, key, value, keys, values, w_words, rest):
    keys, values = (np.append(kept, new[:, None], axis=1) for kept, new in ((keys, key), (values, value)))
    grouped = query.reshape(len(keys), -1, query.shape[1])
    weights = _softmax(np.einsum("rgd,rnd->rgn", grouped, keys) / math.sqrt(query.shape[1]))
    return rest + np.einsum("rgn,rnv->rgv", weights, values).reshape(-1) @ w_words, keys, values


def word_step_in_torch(query, key, value, keys, values, w_words, rest):
    query, key, value, keys, values, w_words, rest = (
        torch.from_numpy(np.asarray(array, dtype=np.float32)) for array in (query, key, value, keys, values, w_words, rest)
    )
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    group = len(query) // len(keys)
    weights = torch.softmax(query[:, None] @ keys.repeat_interleave(group, 0).mT / query.shape[1] ** 0.5, dim=-1)
    return (weights @ values.repeat_interleave(group, 0)).flatten() @ w_words + rest, keys, values


def by_head_in_torch(side, n_heads):
    return torch.from_numpy(side).unflatten(2, (n_heads, -1)).transpose(1, 2)


def by_head_from_blocks_in_float32(side, n_heads):
    return np.stack(np.split(side.astype(np.float32), n_heads, axis=2), axis=1)


RIGHT = {
    "scores-of-real-head": [real_scores_by_loops, real_scores_in_torch],
    "same-word-from-cache": [word_step_by_groups, word_step_in_torch],
    "heads-by-loop": [heads_by_slices, heads_at_once_in_torch],
    "columns-to-heads": [by_head_in_torch, by_head_from_blocks_in_float32],
    "layer-without-a-head": [layer_less_one_head, layer_with_zeros],
    "split-heads": [split_in_torch, split_in_float32],
    "multi-head-attention": [heads_by_a_loop, heads_in_torch],
    "decoding-step-flops": [
        lambda d, h, r, w, t: 4 * w * (d * (h + r) + t * h),
        lambda d, h, r, w, t: 2 * d * h * w + 2 * (2 * d * r * w) + h * (2 * t * w + 2 * t * w) + 2 * h * w * d,
    ],
    "cache-capacity-in-tokens": [lambda: 49932, lambda: torch.tensor(3 * 2.0**30 / (4 * 28 * 6 * 96))],
    "repair-grouped-heads": [groups_by_a_loop, groups_in_torch],
    "repair-torch-layer": [packed_in_torch, packed_in_float32],
    "output-projection-backward": [back_by_heads, back_in_torch],
    "read-two-heads": [lambda: [4, 1, 0.5], lambda: np.array([4.0, 1.0, 2 * 0.7 - 0.9])],
    "previous-token-head": [before_by_loops, before_in_torch],
    "cached-decoding-step": [step_head_by_head, step_in_torch],
    "layer-without-concatenation": [
        r"\Bigl( \sum_{h=1}^{H} W_O^{(h)\top} W_V^{(h)\top} X^\top P_h^\top \Bigr)^\top",
        r"\sum_{k=0}^{H-1} \left( P_{k+1} X W_V^{(k+1)} \right) W_O^{(k+1)}",
    ],
    "row-of-grouped-head": [
        r"\left( V_{\left\lfloor h / g \right\rfloor}^\top P_h^\top \right)^\top_i",
        r"\sum_{r} [g r \le h] [h < g r + g] (P_h)_i V_r",
    ],
}
