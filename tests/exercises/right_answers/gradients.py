"""Right answers to the tasks of lesson gradients: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def _weights(query, key):
    scores = query @ key.T / np.sqrt(query.shape[1])
    terms = np.exp(scores - scores.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def backward_through_the_output(query, key, value, d_output):
    # delta as dZ . z, Eq. score-gradient-against-mixture
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


def backward_in_torch(query, key, value, d_output):
    query, key, value, d_output = (torch.tensor(array, dtype=torch.float32) for array in (query, key, value, d_output))
    scale = query.shape[1] ** -0.5
    p = torch.softmax(query @ key.T * scale, dim=1)
    d_p = d_output @ value.T
    d_scores = scale * p * (d_p - (p * d_p).sum(1, keepdim=True))
    return d_scores @ key, d_scores.T @ query, p.T @ d_output


def _competing(query, key):
    scores = query @ key.T / np.sqrt(query.shape[1])
    terms = np.exp(scores - scores.max(axis=0))
    return terms / terms.sum(axis=0)


def competing_through_the_values(query, key, value, d_output):
    # what is subtracted is a value times its own gradient
    p = _competing(query, key)
    d_value = p.T @ d_output
    d_scores = p * (d_output @ value.T - np.sum(d_value * value, axis=1)) * query.shape[1] ** -0.5
    return d_scores @ key, d_scores.T @ query, d_value


def competing_in_torch(query, key, value, d_output):
    query, key, value, d_output = (torch.tensor(array, dtype=torch.float32) for array in (query, key, value, d_output))
    scale = query.shape[1] ** -0.5
    p = torch.softmax(query @ key.T * scale, dim=0)
    d_p = d_output @ value.T
    d_scores = scale * p * (d_p - (p * d_p).sum(0))
    return d_scores @ key, d_scores.T @ query, p.T @ d_output


def one_matrix_as_query_and_as_key(x, value, d_output):
    d_query, d_key, d_value = backward_through_the_output(x, x, value, d_output)
    return d_query + d_key, d_value


def one_matrix_in_torch(x, value, d_output):
    d_query, d_key, d_value = backward_in_torch(x, x, value, d_output)
    return d_query + d_key, d_value


def batch_example_by_example(query, key, value, d_output):
    if query.ndim == 2:
        return backward_query_by_query(query, key, value, d_output)
    shared = key.ndim == 2
    parts = [
        batch_example_by_example(q, key if shared else key[n], value if shared else value[n], d_output[n]) for n, q in enumerate(query)
    ]
    d_query, d_key, d_value = ([part[n] for part in parts] for n in range(3))
    return np.stack(d_query), *(sum(each) if shared else np.stack(each) for each in (d_key, d_value))


def batch_with_einsum_in_torch(query, key, value, d_output):
    lead = query.shape[:-2]
    full = [np.broadcast_to(array, (*lead, *array.shape[-2:])) for array in (key, value)]
    q, k, v, g = (torch.tensor(np.array(array), dtype=torch.float32) for array in (query, *full, d_output))
    p = torch.softmax(torch.einsum("...ic,...jc->...ij", q, k) / q.shape[-1] ** 0.5, dim=-1)
    delta = torch.einsum("...ij,...ja,...ia->...i", p, v, g)
    d_s = p * (torch.einsum("...ia,...ja->...ij", g, v) - delta[..., None]) / q.shape[-1] ** 0.5
    d_k, d_v = torch.einsum("...ij,...ic->...jc", d_s, q), torch.einsum("...ij,...ia->...ja", p, g)
    while d_k.ndim > key.ndim:
        d_k, d_v = d_k.sum(0), d_v.sum(0)
    return torch.einsum("...ij,...jc->...ic", d_s, k), d_k, d_v


def batch_in_one_long_sequence(query, key, value, d_output):
    # shared keys: all queries of all examples may stand in one sequence
    if key.ndim == query.ndim:
        return batch_with_einsum_in_torch(query, key, value, d_output)
    d_query, d_key, d_value = backward_through_the_output(
        query.reshape(-1, query.shape[-1]), key, value, d_output.reshape(-1, value.shape[-1])
    )
    return d_query.reshape(query.shape), d_key, d_value


def key_gradients_by_loops(d_scores, query):
    found = np.zeros((d_scores.shape[1], query.shape[1]))
    for i, j in np.ndindex(d_scores.shape):
        found[j] += d_scores[i, j] * query[i] / math.sqrt(query.shape[1])
    return found


def key_gradients_in_torch(d_scores, query):
    d_scores, query = (torch.tensor(array, dtype=torch.float32) for array in (d_scores, query))
    return torch.einsum("ij,ic->jc", d_scores, query * query.shape[1] ** -0.5)


def score_gradients_by_loops(weights, output, value, d_output):
    result = np.empty(weights.shape)
    for i, j in np.ndindex(weights.shape):
        result[i, j] = weights[i, j] * d_output[i] @ (value[j] - output[i])
    return result


def score_gradients_in_torch(weights, output, value, d_output):
    weights, output, value, d_output = (torch.as_tensor(array, dtype=torch.float32) for array in (weights, output, value, d_output))
    return weights * torch.einsum("ia,ija->ij", d_output, value[None] - output[:, None])


def _loss(query, key, value, d_output):
    return (d_output * (_weights(query, key) @ value)).sum()


def differences_in_place(query, key, value, d_output, step):
    moved, result = np.array(key), []
    for index in np.ndindex(key.shape):
        losses = []
        for way in (step, -step):
            moved[index] = key[index] + way
            losses.append(_loss(query, moved, value, d_output))
        moved[index] = key[index]
        result.append((losses[0] - losses[1]) / step / 2)
    return np.reshape(result, key.shape)


def differences_all_keys_in_one_batch(query, key, value, d_output, step):
    nudges = torch.tensor(step * np.eye(key.size).reshape(key.size, *key.shape))
    query, key, value, d_output = map(torch.tensor, (query, key, value, d_output))

    def losses(keys):
        return (d_output * (torch.softmax(query @ keys.mT / query.shape[1] ** 0.5, -1) @ value)).sum((-2, -1))

    return ((losses(key + nudges) - losses(key - nudges)) / (2 * step)).reshape(key.shape).float()


RIGHT = {
    "score-gradient": [lambda p_j, v_j, z, t: (t - z) * p_j * (z - v_j), lambda p_j, v_j, z, t: p_j * v_j * (z - t) - p_j * z * (z - t)],
    "attention-backward": [competing_through_the_values, competing_in_torch],
    "gradient-through-the-softmax": [
        r"-P \odot \left( (dP \odot P) \mathbf{1} \mathbf{1}^{\top} - dP \right)",
        r"\bigl( \mathbf{1} \mathbf{1}^\top (dP \odot P)^\top \bigr)^\top \odot (-P) + dP \odot P",
    ],
    "gradient-of-one-key": [
        r"\frac{1}{\sqrt{d_k}} \bigl( \bigl( P \odot (dZ\, V^\top - (dZ \odot Z) \mathbf{1} \mathbf{1}^\top) \bigr)^\top Q \bigr)_j",
        r"\frac{1}{\sqrt{d_k}} \left( \sum_i P_{ij} (V_j \cdot dZ_i) Q_i - \sum_i P_{ij} (Z_i \cdot dZ_i) Q_i \right)",
    ],
    "from-jacobian-to-output": [
        [
            r"\sum_{k} dP_{ik}\, p_{ik} ([k = j] - p_{ij})",
            r"p_{ij} (1 - p_{ij}) dP_{ij} - \sum_{k \ne j} dP_{ik} p_{ik} p_{ij}",
            r"p_{ij} dP_{ij} \sum_{k \ne j} p_{ik} - p_{ij} \sum_{k \ne j} p_{ik} dP_{ik}",
            r"p_{ij} \sum_{k \ne j} p_{ik} (dZ_i \cdot v_j - dZ_i \cdot v_k)",
            r"p_{ij} \sum_k p_{ik} \, dZ_i \cdot (v_j - v_k)",
        ],
        [
            r"\sum_l dP_{il} p_{il} ([l = j] - p_{ij})",
            r"\sum_l [l = j] dP_{il} p_{il} - \sum_l dP_{il} p_{il} p_{ij}",
            r"p_{ij} dP_{ij} - p_{ij} \sum_l p_{il} dP_{il}",
            r"p_{ij} dZ_i v_j^\top - p_{ij} dZ_i \left( \sum_l p_{il} v_l \right)^\top",
            r"p_{ij} \sum_l p_{il} dZ_i (v_j - v_l)^\top",
            r"p_{ij} \sum_l p_{il} \, dZ_i \cdot (v_j - v_l)",
        ],
    ],
    "gradient-of-all-keys": [key_gradients_by_loops, key_gradients_in_torch],
    "gain-over-mixture": [score_gradients_by_loops, score_gradients_in_torch],
    "delta-without-weights": [r"\sum_j V_j \cdot dV_j", r"\mathbf{1}^\top (V \odot dV) \mathbf{1}"],
    "repair-shared-backward": [one_matrix_as_query_and_as_key, one_matrix_in_torch],
    "memory-of-kept-weights": [lambda: 24 * 20 * 4 * 2048**2 * 2 / 10**9, lambda: np.float64(16.1)],
    "batched-backward": [batch_example_by_example, batch_in_one_long_sequence],
    "key-gradient-by-differences": [differences_in_place, differences_all_keys_in_one_batch],
}
