"""Right answers to the tasks of lesson transformer: loops, torch, float32, other algebra."""

import math

import numpy as np
import torch
from torch.nn import functional


def norm_by_length(x, gain, eps):
    d = x.shape[-1]
    return np.sqrt(d) * x / np.sqrt(np.einsum("...i,...i->...", x, x) + d * eps)[..., None] * gain


def norm_in_torch(x, gain, eps):
    x, gain = torch.tensor(x).float(), torch.tensor(gain).float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def units_one_by_one(x, w_gate, w_in, w_out):
    found = np.zeros((*x.shape[:-1], w_out.shape[1]))
    for g, u, v in zip(w_gate.T, w_in.T, w_out, strict=True):
        c = x @ g
        found += (c * (0.5 + 0.5 * np.tanh(c / 2)) * (x @ u))[..., None] * v
    return found


def units_in_torch(x, w_gate, w_in, w_out):
    x, w_gate, w_in, w_out = (torch.tensor(a).float() for a in (x, w_gate, w_in, w_out))
    return torch.einsum("...m,md->...d", functional.silu(x @ w_gate) * (x @ w_in), w_out)


def block_row_by_row(x, gain_attention, gain_hidden, w_query, w_key, w_value, w_output, w_gate, w_in, w_out):
    def normed(row, gain):
        return row * gain / math.sqrt((row @ row) / len(row) + 1e-5)

    read = np.array([normed(row, gain_attention) for row in x])
    found = []
    for place, row in enumerate(read):
        seen = read[: place + 1]
        scores = seen @ w_key @ (row @ w_query) / math.sqrt(w_key.shape[1])
        terms = np.exp(scores - scores.max())
        stream = x[place] + terms @ (seen @ w_value) / terms.sum() @ w_output
        own = normed(stream, gain_hidden)
        z = own @ w_gate
        found.append(stream + (z * (1 + np.tanh(z / 2)) / 2 * (own @ w_in)) @ w_out)
    return np.array(found)


def block_in_torch(*arrays):
    x, gain_attention, gain_hidden, w_query, w_key, w_value, w_output, w_gate, w_in, w_out = (torch.tensor(a).float() for a in arrays)
    read = functional.rms_norm(x, x.shape[-1:], gain_attention, 1e-5)
    scores = (read @ w_query) @ (read @ w_key).T / w_query.shape[1] ** 0.5
    hidden = torch.ones(len(x), len(x)).triu(1).bool()
    x = x + scores.masked_fill(hidden, -torch.inf).softmax(-1) @ (read @ w_value) @ w_output
    read = functional.rms_norm(x, x.shape[-1:], gain_hidden, 1e-5)
    return x + (functional.silu(read @ w_gate) * (read @ w_in)) @ w_out


def backward_by_jacobian(x, gain, eps, d_output):
    d, found = x.shape[-1], np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row, root = x[place], math.sqrt((x[place] ** 2).mean() + eps)
        jacobian = np.eye(d) / root - np.outer(row, row) / (d * root**3)
        found[place] = jacobian @ (gain * d_output[place])
    return found


def backward_in_torch(x, gain, eps, d_output):
    x, gain, d_output = (torch.tensor(a).float() for a in (x, gain, d_output))
    r = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    w = d_output * gain
    return r * w - r**3 * x * (x * w).sum(-1, keepdim=True) / x.shape[-1]


def loss_with_logaddexp(logits, ids):
    lse = np.logaddexp.reduce(logits, axis=1)
    return sum(lse[t] - logits[t, ids[t + 1]] for t in range(len(ids) - 1)) / (len(ids) - 1)


def loss_in_torch(logits, ids):
    rows, targets = torch.from_numpy(logits[:-1]).float(), torch.from_numpy(ids[1:])
    shifted = rows - rows.amax(1, keepdim=True)
    return (shifted.exp().sum(1).log() - shifted.gather(1, targets[:, None])[:, 0]).mean()


RIGHT = {
    "rms-norm-row": [norm_by_length, norm_in_torch],
    "hidden-units-of-rows": [units_one_by_one, units_in_torch],
    "pre-norm-block": [block_row_by_row, block_in_torch],
    "rms-norm-backward": [backward_by_jacobian, backward_in_torch],
    "llama-parameters": [lambda: 134_515_008, lambda: 576 * (49152 + 1) + 30 * 576 * (576 * 8 / 3 + 3 * 1536 + 2)],
    "stream-size-at-depth": [lambda: (7**0.5, (65 / 64) ** 0.5), lambda: [2.646, 1.008]],
    "repair-next-word-loss": [loss_with_logaddexp, loss_in_torch],
}
