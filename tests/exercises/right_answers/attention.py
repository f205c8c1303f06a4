"""Right answers to the tasks of lesson attention: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import sympy
import torch


def attention_with_einsum(query, key, value, is_real):
    hidden = np.zeros(is_real.shape)
    hidden[~is_real] = -np.inf
    scores = np.einsum("bid,bjd->bij", query * query.shape[-1] ** -0.5, key) + hidden[:, None, :]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("bij,bja->bia", weights, value)


def sums_row_by_row(query, key, value):
    rows = []
    for q in query:
        scores = key @ q / math.sqrt(len(q))
        terms = np.exp(scores - scores.max())
        rows.append((terms[:, None] * value).sum(axis=0) / terms.sum())
    return np.stack(rows)


def sums_in_torch(query, key, value):
    query, key, value = (torch.tensor(array, dtype=torch.float64) for array in (query, key, value))
    return torch.einsum("ij,ja->ia", torch.softmax(query @ key.T / math.sqrt(query.shape[1]), 1), value).float()


def packed_example_by_example(query, key, value, counts):
    output, first = [], 0
    for count in counts:
        rows = slice(first, first + count)
        scores = query[rows] @ key[rows].T / np.sqrt(query.shape[1])
        terms = np.exp(scores - scores.max(axis=1, keepdims=True))
        output.append(terms / terms.sum(axis=1, keepdims=True) @ value[rows])
        first += count
    return np.concatenate(output)


def packed_with_a_block_diagonal(query, key, value, counts):
    own = torch.block_diag(*(torch.ones(count, count) for count in counts.tolist())).bool()
    scores = torch.tensor(query) @ torch.tensor(key).T / math.sqrt(query.shape[1])
    return scores.where(own, torch.tensor(-torch.inf)).softmax(-1).float() @ torch.tensor(value).float()


def layer_by_loops(x, w_in, b_in, w_out, b_out, n_heads):
    output = np.zeros_like(x) + b_out
    w_q, w_k, w_v = (np.split(w, n_heads, axis=1) for w in np.split(w_in, 3, axis=1))
    b_q, b_k, b_v = (np.split(b, n_heads) for b in np.split(b_in, 3))
    for h, w_o in enumerate(np.split(w_out, n_heads)):
        for b, i in np.ndindex(x.shape[:2]):
            seen, q = x[b, : i + 1], x[b, i] @ w_q[h] + b_q[h]  # keys that come later are not there
            terms = np.exp((seen @ w_k[h] + b_k[h]) @ q / math.sqrt(len(q)))
            output[b, i] += terms @ (seen @ w_v[h] + b_v[h]) @ w_o / terms.sum()
    return output


def layer_in_torch(x, w_in, b_in, w_out, b_out, n_heads):
    x, w_in, b_in, w_out, b_out = (torch.from_numpy(a).float() for a in (x, w_in, b_in, w_out, b_out))
    query, key, value = (part.unflatten(-1, (n_heads, -1)).transpose(1, 2) for part in (x @ w_in + b_in).chunk(3, dim=-1))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    weights = torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
    return (weights @ value).transpose(1, 2).flatten(2) @ w_out + b_out


def step_by_loops(x, keys, values, w_in, b_in, w_out, b_out, n_heads):
    batch, _, n, d_k = keys.shape
    new = (x[:, 0] @ w_in + b_in).reshape(batch, 3, n_heads, d_k)
    all_keys, all_values = (np.empty((batch, n_heads, n + 1, d_k)) for _ in range(2))
    merged = np.empty((batch, n_heads * d_k))
    for b, h in np.ndindex(batch, n_heads):
        all_keys[b, h], all_values[b, h] = np.vstack([keys[b, h], new[b, 1, h]]), np.vstack([values[b, h], new[b, 2, h]])
        terms = np.array([math.exp(sum(new[b, 0, h] * key) / math.sqrt(d_k)) for key in all_keys[b, h]])
        merged[b, h * d_k : (h + 1) * d_k] = terms @ all_values[b, h] / terms.sum()
    return (merged @ w_out + b_out)[:, None], all_keys, all_values


def step_in_torch(x, keys, values, w_in, b_in, w_out, b_out, n_heads):
    x, keys, values, w_in, b_in, w_out, b_out = (torch.from_numpy(a).float() for a in (x, keys, values, w_in, b_in, w_out, b_out))
    query, key, value = (part.unflatten(-1, (n_heads, -1)).transpose(1, 2) for part in (x @ w_in + b_in).chunk(3, dim=-1))
    keys, values = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
    weights = torch.softmax(torch.einsum("bhik,bhjk->bhij", query, keys) / keys.shape[-1] ** 0.5, dim=-1)
    return (weights @ values).transpose(1, 2).flatten(2) @ w_out + b_out, keys, values


def scores_by_loops(query, key):
    if query.ndim > 2:
        return np.array([scores_by_loops(*pair) for pair in zip(query, key, strict=True)])
    return np.array([[sum(q * k) / math.sqrt(len(q)) for k in key] for q in query])


def scores_with_scaled_queries_in_torch(query, key):
    query, key = (torch.as_tensor(array, dtype=torch.float32) for array in (query, key))
    return (query / query.shape[-1] ** 0.5) @ key.mT


def batches_by_loops(query, key, value):
    if query.ndim > 2:
        return np.array([batches_by_loops(*each) for each in zip(query, key, value, strict=True)])
    terms = np.exp([[sum(q * k) / math.sqrt(len(q)) for k in key] for q in query])
    return np.array([sum(t * v for t, v in zip(row, value, strict=True)) / sum(row) for row in terms])


def batches_in_torch(query, key, value):
    query, key, value = (torch.as_tensor(array, dtype=torch.float32) for array in (query, key, value))
    terms = torch.exp(torch.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5)
    return terms @ value / terms.sum(dim=-1, keepdim=True)


def values_by_solving(weights, value):
    # the last value is what is left of the output when those in between have given their part
    rest = weights @ value - weights[1:-1] @ value[1:-1]
    return np.vstack([np.zeros_like(value[:1]), value[1:-1], rest / weights[-1]])


def values_in_torch(weights, value):
    weights, other = (torch.tensor(array, dtype=torch.float32) for array in (weights, value))
    other[-1] += other[0] * (weights[0] / weights[-1])
    other[0].zero_()
    return other


def attention_in_torch(query, key, value, is_real):
    query, key, value, is_real = (torch.from_numpy(array) for array in (query, key, value, is_real))
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~is_real[:, None], -torch.inf).float()
    terms = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return terms @ value.float() / terms.sum(dim=-1, keepdim=True)


RIGHT = {
    "scaled-attention": [attention_with_einsum, attention_in_torch],
    "repair-transposed-weights": [sums_row_by_row, sums_in_torch],
    "repair-mixed-batch": [packed_example_by_example, packed_with_a_block_diagonal],
    "read-attention-map": [lambda: [1, 2, 0.95], lambda: np.array([1.0, 2.0, 0.62 + 0.08 + 0.15 + 0.10])],
    "query-on-its-key": [lambda: 0.269, lambda: np.exp(1) / (np.exp(1) + np.exp(2))],
    "attention-slope": [
        lambda p, v_1, v_2, k_1, k_2: (p - p**2) * (v_2 - v_1) * (k_2 - k_1),
        lambda p, v_1, v_2, k_1, k_2: p * v_1 * k_1 + (1 - p) * v_2 * k_2 - (p * v_1 + (1 - p) * v_2) * (p * k_1 + (1 - p) * k_2),
    ],
    "centre-the-values": [
        [
            r"\sum_j p_j v_j k_j - z \bar{k}",
            r"\sum_j p_j v_j k_j - \bar{k} \sum_j p_j v_j",
            r"\sum_j p_j v_j (k_j - \bar{k})",
            r"\sum_j p_j v_j (k_j - \bar{k}) - z \sum_j p_j (k_j - \bar{k})",
            r"\sum_j p_j (v_j - z) (k_j - \bar{k})",
        ],
        [
            r"\sum_l p_l v_l k_l - z \bar{k}",
            r"\sum_l p_l v_l k_l - z \sum_l p_l k_l",
            r"\sum_l \left( p_l v_l - p_l z \right) k_l - \bar{k} \left( z - z \sum_l p_l \right)",
            r"\sum_l p_l (v_l - z) (k_l - \bar{k})",
        ],
    ],
    "copies-beside-another": [
        r"v_2 + \frac{n \exp(s_1)}{n \exp(s_1) + \exp(s_2)} (v_1 - v_2)",
        r"\frac{1}{n e^{s_1} + e^{s_2}} \left( n e^{s_1} v_1 + e^{s_2} v_2 \right)",
    ],
    "length-of-a-query": [
        lambda p, g, n, d: d**0.5 / g * sympy.log((n - 1) * p / (1 - p)),
        lambda p, g, n, d: -(d**0.5) * (sympy.log(1 - p) - sympy.log(p) - sympy.log(n - 1)) / g,
    ],
    "cost-of-new-tokens": [lambda: (600_000, 154_300), lambda: np.array([2.0 * 2 * 1000 * 150, 1002.0 * 150 + 4000])],
    "layer-around-attention": [layer_by_loops, layer_in_torch],
    "step-with-kept-keys": [step_by_loops, step_in_torch],
    "attention-of-batches": [batches_by_loops, batches_in_torch],
    "same-output-other-values": [values_by_solving, values_in_torch],
    "all-scores": [scores_by_loops, scores_with_scaled_queries_in_torch],
}
