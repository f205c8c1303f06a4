"""Right answers to the tasks of lesson attention: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import sympy
import torch

# --- scaled dot-product attention ------------------------------------------------------------------


def attention_by_loops(query, key, value):
    output = np.empty((*query.shape[:-1], value.shape[-1]))
    for index in np.ndindex(query.shape[:-1]):
        scores = [sum(query[index] * k) / math.sqrt(len(query[index])) for k in key[index[:-1]]]
        terms = [math.exp(score - max(scores)) for score in scores]
        output[index] = sum(term * v for term, v in zip(terms, value[index[:-1]], strict=True)) / sum(terms)
    return output


def attention_with_einsum(query, key, value):
    scores = np.einsum("...id,...jd->...ij", query * query.shape[-1] ** -0.5, key)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("...ij,...ja->...ia", weights, value)


def attention_in_torch(query, key, value):
    query, key, value = (torch.from_numpy(array) for array in (query, key, value))
    return torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1) @ value


def attention_in_float32(query, key, value):
    scores = (query @ np.swapaxes(key, -2, -1) / np.sqrt(query.shape[-1])).astype(np.float32)
    terms = np.exp(scores - scores.max(-1, keepdims=True))
    return (terms @ value.astype(np.float32)) / terms.sum(-1, keepdims=True)


def attention_with_keys_as_rows(query, key, value):
    # scores with keys in rows and queries in columns: the softmax then runs over axis -2
    scores = key @ query.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    terms = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return (terms / terms.sum(axis=-2, keepdims=True)).swapaxes(-1, -2) @ value


def attention_key_by_key(query, key, value):
    # the softmax in one pass: when a new maximum comes, what has been summed shrinks
    top = np.full((*query.shape[:-1], 1), -np.inf)
    total, output = np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))
    for j in range(key.shape[-2]):
        score = (query * key[..., j : j + 1, :]).sum(-1, keepdims=True) / math.sqrt(query.shape[-1])
        new = np.maximum(top, score)
        old, term = np.exp(top - new), np.exp(score - new)
        top, total, output = new, total * old + term, output * old + term * value[..., j : j + 1, :]
    return output / total


def attention_with_centred_keys(query, key, value):
    # a shift of all keys moves every score of a row alike, and the softmax does not see that
    return attention_in_torch(query, key - key.mean(axis=-2, keepdims=True), value)


# --- weights that point the wrong way --------------------------------------------------------------


def sums_with_matmul(query, key, value):
    scores = query @ key.T / np.sqrt(query.shape[1])
    weights = np.exp(scores - scores.max(axis=1)[:, None])
    return weights / weights.sum(axis=1)[:, None] @ value


def sums_row_by_row(query, key, value):
    rows = []
    for q in query:
        scores = key @ q / math.sqrt(len(q))
        terms = np.exp(scores - scores.max())
        rows.append((terms[:, None] * value).sum(axis=0) / terms.sum())
    return np.stack(rows)


def sums_in_torch(query, key, value):
    query, key, value = (torch.tensor(array, dtype=torch.float64) for array in (query, key, value))
    return torch.einsum("ij,ja->ia", torch.softmax(query @ key.T / math.sqrt(query.shape[1]), 1), value)


def sums_in_float32(query, key, value):
    scores = (query @ key.T / np.sqrt(query.shape[1])).astype("float32")
    terms = np.exp(scores - scores.max(1, keepdims=True))
    return np.float32(terms @ value / terms.sum(1, keepdims=True))


# --- examples that see each other ------------------------------------------------------------------


def batch_example_by_example(query, key, value):
    output = []
    for q, k, v in zip(query, key, value, strict=True):
        scores = q @ k.T / np.sqrt(q.shape[1])
        terms = np.exp(scores - scores.max(axis=1, keepdims=True))
        output.append(terms / terms.sum(axis=1, keepdims=True) @ v)
    return np.array(output)


def batch_with_einsum(query, key, value):
    scores = np.einsum("bid,bjd->bij", query, key) / query.shape[2] ** 0.5
    terms = np.exp(scores - scores.max(2, keepdims=True))
    return np.einsum("bij,bja,bi->bia", terms, value, 1 / terms.sum(2))


def batch_in_torch(query, key, value):
    scores = torch.bmm(torch.tensor(query), torch.tensor(key).transpose(1, 2)) / query.shape[2] ** 0.5
    return torch.bmm(torch.nn.functional.softmax(scores, dim=2), torch.tensor(value))


def batch_with_vmap(query, key, value):
    def one(q, k, v):
        return torch.softmax(q @ k.T / q.shape[1] ** 0.5, -1) @ v

    return torch.vmap(one)(*(torch.tensor(array) for array in (query, key, value)))


def batch_on_the_last_axis(query, key, value):
    # not contiguous
    return np.moveaxis(np.stack(list(batch_example_by_example(query, key, value)), axis=-1), -1, 0)


def batch_with_a_block_diagonal(query, key, value):
    # one long sequence, with the other examples hidden by -inf
    batch, q_len, d_k = query.shape
    scores = query.reshape(-1, d_k) @ key.reshape(-1, d_k).T / np.sqrt(d_k)
    own = np.repeat(np.arange(batch), q_len)[:, None] == np.repeat(np.arange(batch), key.shape[1])
    scores = np.where(own, scores, -np.inf)
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (terms / terms.sum(axis=1, keepdims=True) @ value.reshape(-1, value.shape[2])).reshape(batch, q_len, -1)


def batch_in_float32(query, key, value):
    query, key, value = (array.astype(np.float32) for array in (query, key, value))
    scores = query @ key.transpose(0, 2, 1) / np.float32(query.shape[2] ** 0.5)
    terms = np.exp(scores - scores.max(axis=2, keepdims=True))
    return terms @ value / terms.sum(axis=2, keepdims=True)


# --- your turn, in the lesson -----------------------------------------------------------------------


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


RIGHT = {
    "scaled-attention": [
        attention_by_loops,
        attention_with_einsum,
        attention_in_torch,
        attention_in_float32,
        attention_with_keys_as_rows,
        attention_key_by_key,
        attention_with_centred_keys,
    ],
    "repair-transposed-weights": [sums_with_matmul, sums_row_by_row, sums_in_torch, sums_in_float32],
    "repair-mixed-batch": [
        batch_example_by_example,
        batch_with_einsum,
        batch_in_torch,
        batch_with_vmap,
        batch_on_the_last_axis,
        batch_with_a_block_diagonal,
        batch_in_float32,
    ],
    "read-attention-map": [
        lambda: [1, 2, 0.95],
        lambda: np.array([1.0, 2.0, 0.62 + 0.08 + 0.15 + 0.10]),
        lambda: torch.tensor([1, 2, 0.95]),
    ],
    "query-on-its-key": [lambda: 0.269, lambda: np.exp(1) / (np.exp(1) + np.exp(2)), lambda: torch.sigmoid(torch.tensor(-1.0))],
    "attention-slope": [
        lambda p, v_1, v_2, k_1, k_2: (p - p**2) * (v_2 - v_1) * (k_2 - k_1),
        lambda p, v_1, v_2, k_1, k_2: p * v_1 * k_1 + (1 - p) * v_2 * k_2 - (p * v_1 + (1 - p) * v_2) * (p * k_1 + (1 - p) * k_2),
        lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 * k_1 - v_1 * k_2 - v_2 * k_1 + v_2 * k_2),
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
        r"\frac{n v_1 + e^{s_2 - s_1} v_2}{n + e^{s_2 - s_1}}",
        r"v_2 + \frac{n \exp(s_1)}{n \exp(s_1) + \exp(s_2)} (v_1 - v_2)",
        r"\frac{1}{n e^{s_1} + e^{s_2}} \left( n e^{s_1} v_1 + e^{s_2} v_2 \right)",
    ],
    "length-of-a-query": [
        lambda p, g, n, d: d**0.5 / g * sympy.log((n - 1) * p / (1 - p)),
        lambda p, g, n, d: -(d**0.5) * (sympy.log(1 - p) - sympy.log(p) - sympy.log(n - 1)) / g,
    ],
    "cost-of-new-tokens": [lambda: (600_000, 154_300), lambda: np.array([2.0 * 2 * 1000 * 150, 1002.0 * 150 + 4000])],
    "attention-of-batches": [batches_by_loops, batches_in_torch],
    "all-scores": [scores_by_loops, scores_with_scaled_queries_in_torch],
}
