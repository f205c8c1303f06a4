"""Right answers to the tasks of lesson attention: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
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
    # Eq. key-shift-invariance: a shift of all keys changes nothing
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


# --- backward pass ---------------------------------------------------------------------------------


def _weights(query, key):
    scores = query @ key.T / np.sqrt(query.shape[1])
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def backward_through_the_output(query, key, value, d_output):
    # delta as dO . z, Eq. score-gradient-against-mixture
    p = _weights(query, key)
    delta = np.sum(d_output * (p @ value), axis=1)
    d_scores = p * (d_output @ value.T - delta[:, None]) * query.shape[1] ** -0.5
    return d_scores @ key, d_scores.T @ query, p.T @ d_output


def backward_query_by_query(query, key, value, d_output):
    p, root = _weights(query, key), math.sqrt(query.shape[1])
    d_query, d_key, d_value = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    for i, j in np.ndindex(p.shape):
        d_score = p[i, j] * d_output[i] @ (value[j] - p[i] @ value) / root
        d_query[i] += d_score * key[j]
        d_key[j] += d_score * query[i]
        d_value[j] += p[i, j] * d_output[i]
    return d_query, d_key, d_value


def backward_with_the_jacobian(query, key, value, d_output):
    p = _weights(query, key)
    jacobian = np.einsum("ij,jl->ijl", p, np.eye(len(key))) - np.einsum("ij,il->ijl", p, p)
    d_scores = np.einsum("ijl,ia,la->ij", jacobian, d_output, value) / np.sqrt(query.shape[1])
    return np.einsum("ij,jd->id", d_scores, key), np.einsum("ij,id->jd", d_scores, query), np.einsum("ij,ia->ja", p, d_output)


def backward_by_differences(query, key, value, d_output):
    gradients = []
    for n in range(3):
        arrays = [query.copy(), key.copy(), value.copy()]
        gradient = np.zeros_like(arrays[n])
        for index in np.ndindex(gradient.shape):
            losses, old = [], arrays[n][index]
            for step in (1e-4, -1e-4, 2e-4, -2e-4):
                arrays[n][index] = old + step
                losses.append((_weights(*arrays[:2]) @ arrays[2] * d_output).sum())
            arrays[n][index] = old
            gradient[index] = (8 * (losses[0] - losses[1]) - (losses[2] - losses[3])) / 12e-4
        gradients.append(gradient)
    return gradients  # a list is as good as a tuple


def backward_in_torch(query, key, value, d_output):
    query, key, value, d_output = (torch.tensor(array, dtype=torch.float32) for array in (query, key, value, d_output))
    scale = query.shape[1] ** -0.5
    p = torch.softmax(query @ key.T * scale, dim=1)
    d_p = d_output @ value.T
    d_scores = scale * p * (d_p - (p * d_p).sum(1, keepdim=True))
    return d_scores @ key, d_scores.T @ query, p.T @ d_output


# --- your turn, in the lesson -----------------------------------------------------------------------


def scores_by_loops(query, key):
    if query.ndim > 2:
        return np.array([scores_by_loops(*pair) for pair in zip(query, key, strict=True)])
    return np.array([[sum(q * k) / math.sqrt(len(q)) for k in key] for q in query])


def scores_with_scaled_queries_in_torch(query, key):
    query, key = (torch.as_tensor(array, dtype=torch.float32) for array in (query, key))
    return (query / query.shape[-1] ** 0.5) @ key.mT


def score_gradients_by_loops(weights, output, value, d_output):
    result = np.empty(weights.shape)
    for i, j in np.ndindex(weights.shape):
        result[i, j] = weights[i, j] * d_output[i] @ (value[j] - output[i])
    return result


def score_gradients_in_torch(weights, output, value, d_output):
    weights, output, value, d_output = (torch.as_tensor(array, dtype=torch.float32) for array in (weights, output, value, d_output))
    return weights * torch.einsum("ia,ija->ij", d_output, value[None] - output[:, None])


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
    "score-gradient": [
        lambda p_j, v_j, z, t: (t - z) * p_j * (z - v_j),
        lambda p_j, v_j, z, t: p_j * v_j * (z - t) - p_j * z * (z - t),
        lambda p_j, v_j, z, t: p_j * (z * v_j - z**2 - t * v_j + t * z),
    ],
    "attention-backward": [
        backward_through_the_output,
        backward_query_by_query,
        backward_with_the_jacobian,
        backward_by_differences,
        backward_in_torch,
    ],
    "query-on-its-key": [lambda: 0.269, lambda: np.exp(1) / (np.exp(1) + np.exp(2)), lambda: torch.sigmoid(torch.tensor(-1.0))],
    "attention-slope": [
        lambda p, v_1, v_2, k_1, k_2: (p - p**2) * (v_2 - v_1) * (k_2 - k_1),
        lambda p, v_1, v_2, k_1, k_2: p * v_1 * k_1 + (1 - p) * v_2 * k_2 - (p * v_1 + (1 - p) * v_2) * (p * k_1 + (1 - p) * k_2),
        lambda p, v_1, v_2, k_1, k_2: p * (1 - p) * (v_1 * k_1 - v_1 * k_2 - v_2 * k_1 + v_2 * k_2),
    ],
    "gradient-through-the-softmax": [
        r"P \odot dP - P \odot ((P \odot dP) \mathbf{1} \mathbf{1}^\top)",
        r"P \odot dP - \mathrm{diag}((P \odot dP) \mathbf{1}) P",
        r"-P \odot \left( (dP \odot P) \mathbf{1} \mathbf{1}^{\top} - dP \right)",
        r"\bigl( \mathbf{1} \mathbf{1}^\top (dP \odot P)^\top \bigr)^\top \odot (-P) + dP \odot P",
        r"P \odot \left( dP - \mathrm{diag}(\left( P \odot dP \right) \mathbf 1) \mathbf 1 \mathbf 1^\top \right)",
        r"(dP - ((P \odot dP) \mathbf{1}) \mathbf{1}^\top) \odot P",
    ],
    "gradient-of-one-key": [
        r"\sum_{i=1}^{T_q} \frac{P_{ij}}{\sqrt{d_k}} (dO_i \cdot V_j - dO_i \cdot Z_i) Q_i",
        r"\sum_{n} P_{nj} \tfrac{dO_n (V_j - Z_n)^\top}{\sqrt{d_k}} Q_n",
        r"\frac{\sum_i \left( P_{ij} \sum_a dO_{ia} (V_{ja} - Z_{ia}) \right) Q_i}{\sqrt{d_k}}",
        r"\frac{1}{\sqrt{d_k}} \bigl( \bigl( P \odot (dO\, V^\top - (dO \odot Z) \mathbf{1} \mathbf{1}^\top) \bigr)^\top Q \bigr)_j",
        r"d_k^{-1/2} \sum_i P_{ij} (dO_i \cdot (V_j - \sum_l P_{il} V_l)) Q_i",
        r"\frac{1}{\sqrt{d_k}} \left( \sum_i P_{ij} (V_j \cdot dO_i) Q_i - \sum_i P_{ij} (Z_i \cdot dO_i) Q_i \right)",
    ],
    "from-jacobian-to-output": [
        [
            r"\sum_l dP_{il} p_{il} (\delta_{lj} - p_{ij})",
            r"\sum_l dP_{il} p_{il} \delta_{lj} - p_{ij} \sum_l dP_{il} p_{il}",
            r"p_{ij} dP_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
            r"p_{ij} (dP_{ij} - \sum_l p_{il} dP_{il})",
            r"p_{ij} (dP_{ij} - dO_i \cdot z_i)",
        ],
        [
            r"\sum_{k} dP_{ik}\, p_{ik} (\delta_{kj} - p_{ij})",
            r"p_{ij} (1 - p_{ij}) dP_{ij} - \sum_{k \ne j} dP_{ik} p_{ik} p_{ij}",
            r"p_{ij} dP_{ij} - p_{ij} \left( p_{ij} dP_{ij} + \sum_{k \ne j} p_{ik} dP_{ik} \right)",
            r"p_{ij} dP_{ij} - p_{ij} \sum_k p_{ik} (dO_i \cdot v_k)",
            r"p_{ij} \left( dP_{ij} - dO_i \cdot z_i \right)",
        ],
        [
            r"\sum_l p_{il} (\delta_{lj} - p_{ij}) dP_{il}",
            r"\sum_l p_{il} (\delta_{lj} - p_{ij}) (dO_i \cdot v_l)",
            r"p_{ij} (dO_i \cdot v_j) - p_{ij} \sum_l p_{il} (dO_i \cdot v_l)",
            r"p_{ij} (dO_i \cdot v_j) - p_{ij} (dO_i \cdot z_i)",
            r"p_{ij} dP_{ij} - p_{ij} (dO_i \cdot z_i)",
            r"p_{ij} (dP_{ij} - dO_i \cdot z_i)",
        ],
        [
            r"\sum_l dP_{il} p_{il} (\delta_{lj} - p_{ij})",
            r"\sum_l dP_{il} p_{il} (\delta_{jl} - p_{ij} \sum_m p_{im})",
            r"\sum_l dP_{il} p_{il} \delta_{jl} - \sum_l \sum_m dP_{il} p_{il} p_{ij} p_{im}",
            r"dP_{ij} p_{ij} - p_{ij} \sum_l dP_{il} p_{il}",
            r"(dP_{ij} - \sum_l \sum_a dO_{ia} v_{la} p_{il}) p_{ij}",
            r"(dP_{ij} - z_i \cdot dO_i) p_{ij}",
        ],
        [
            r"\sum_l dP_{il} p_{il} (\delta_{lj} - p_{ij})",
            r"\sum_l [l = j] dP_{il} p_{il} - \sum_l dP_{il} p_{il} p_{ij}",
            r"p_{ij} dP_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
            r"p_{ij} dP_{ij} - p_{ij} dO_i \left( \sum_l p_{il} v_l \right)^\top",
            r"p_{ij} dP_{ij} - p_{ij} dO_i z_i^\top",
            r"p_{ij} (dP_{ij} - dO_i \cdot z_i)",
        ],
    ],
    "all-scores": [scores_by_loops, scores_with_scaled_queries_in_torch],
    "gain-over-mixture": [score_gradients_by_loops, score_gradients_in_torch],
}
