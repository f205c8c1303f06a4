"""Right answers to the tasks of lesson softmax: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import sympy
import torch


def softmax_by_moving_the_axis(scores, axis):
    rows = np.moveaxis(scores, axis, -1)
    shape, rows = rows.shape, rows.reshape(-1, rows.shape[-1])
    weights = np.empty_like(rows)
    for n, row in enumerate(rows):
        largest = max(row)
        terms = [math.exp(score - largest) for score in row]
        weights[n] = [term / sum(terms) for term in terms]
    return np.moveaxis(weights.reshape(shape), -1, axis)


def softmax_in_float32(scores, axis):
    row_max = scores.max(axis, keepdims=True)
    unnormalised = np.exp((scores - row_max).astype(np.float32))
    return np.divide(unnormalised, np.expand_dims(unnormalised.sum(axis), axis))


def softmax_in_torch(scores, axis):
    scores = torch.as_tensor(scores, dtype=torch.float32)
    shifted = scores - scores.amax(dim=axis, keepdim=True)
    return shifted.exp() / shifted.exp().sum(dim=axis, keepdim=True)


def jacobian_in_torch(scores, temperature):
    z = torch.from_numpy(scores) / temperature
    terms = (z - z.amax(-1, keepdim=True)).exp()
    s = terms / terms.sum(-1, keepdim=True)
    return (torch.diag_embed(s) - s.unsqueeze(-1) @ s.unsqueeze(-2)) / temperature


def jacobian_in_float32(scores, temperature):
    s = softmax_in_float32(scores / temperature, -1).astype(np.float32)
    return s[..., :, None] * (np.eye(s.shape[-1], dtype=np.float32) - s[..., None, :]) / np.float32(temperature)


def tempered_by_powers(scores, temperature):
    ratios = np.exp(1 / temperature) ** (scores - scores.max(axis=1)[:, np.newaxis])
    return ratios / ratios.sum(axis=1)[:, np.newaxis]


def tempered_in_torch(scores, temperature):
    tempered = torch.tensor(scores, dtype=torch.float32) / temperature
    shifted = tempered - tempered.max(dim=-1, keepdim=True).values
    return torch.exp(shifted - shifted.exp().sum(-1, True).log())


def vjp_in_torch(weights, d_weights):
    weights, d_weights = torch.tensor(weights), torch.tensor(d_weights)
    return torch.addcmul(weights * d_weights, weights, (weights * d_weights).sum(-1, keepdim=True), value=-1)


def vjp_in_float32(weights, d_weights):
    s, g = weights.astype("float32"), d_weights.astype("float32")
    return s * (g - (s * g).sum(-1, keepdims=True))


def lse_in_torch(blocks):
    blocks = [torch.as_tensor(block, dtype=torch.float32) for block in blocks]
    top = torch.stack([block.max() for block in blocks]).max()
    return top + sum((block - top).exp().sum() for block in blocks).log()


def lse_score_by_score(blocks):
    row_max, row_sum = -math.inf, 0.0
    for score in (score for block in blocks for score in block.tolist()):
        row_max, old = max(row_max, score), row_max
        row_sum = row_sum * math.exp(old - row_max) + math.exp(score - row_max)
    return row_max + math.log(row_sum)


RIGHT = {
    "stable-softmax": [softmax_by_moving_the_axis, softmax_in_torch],
    "entropy-by-hand": [lambda: 0.868, lambda: sympy.log(6) - sympy.Rational(2, 3) * sympy.log(4)],
    "log-softmax-derivative": [lambda s_i, s_j, delta_ij: -(s_j - delta_ij), lambda s_i, s_j, delta_ij: s_i * (delta_ij - s_j) / s_i],
    "softmax-jacobian": [jacobian_in_torch, jacobian_in_float32],
    "repair-softmax-temperature": [tempered_by_powers, tempered_in_torch],
    "entropy-as-scores-sharpen": [
        r"-\frac{\beta}{2} \sum_i \sum_j s_i s_j (z_i - z_j)^2",
        r"-\beta \sum_i s_i z_i \left( z_i - s \cdot z \right)",
    ],
    "pull-back-one-row": [vjp_in_torch, vjp_in_float32],
    "lse-over-blocks": [lse_in_torch, lse_score_by_score],
    "tempered-cross-entropy-gradient": [
        lambda s_i, delta_iy, t: s_i / t - delta_iy / t,
        lambda s_i, delta_iy, t: (delta_iy * (s_i - 1) + (1 - delta_iy) * s_i) * t**-1,
    ],
    "softmax-derivative": [
        r"\begin{cases} \beta s_i (1 - s_i) & i = j \\ -\beta s_i s_j & i \ne j \end{cases}",
        r"\beta s_i \left( \delta_{ij} \sum_k s_k - s_j \right)",
    ],
    "shift-invariance-of-softmax": [
        [
            r"\frac{e^{c + z_i}}{\sum_j e^{c + z_j}}",
            r"\frac{1}{\sum_j e^{z_j + c} e^{-z_i - c}}",
            r"\frac{1}{\sum_j e^{z_j - z_i}}",
            r"\frac{e^{z_i}}{\sum_j e^{z_j}}",
        ],
        [
            r"\frac{\exp(z_i + c)}{\sum_j \exp(z_j + c)}",
            r"\exp(z_i + c - \ln \left( \sum_j e^{z_j + c} \right))",
            r"\exp(z_i + c - \ln \left( e^c \sum_j e^{z_j} \right))",
            r"\exp(z_i + c - c - \ln \left( \sum_j e^{z_j} \right))",
            r"e^{z_i} / \sum_j e^{z_j}",
        ],
    ],
    "multiplier-to-softmax": [r"1 - \ln \left( \sum_k \exp(\beta z_k) \right)", r"\ln \left( \frac{e}{\sum_j e^{\beta z_j}} \right)"],
    "cauchy-to-exponential": [r"\left( a^k \right)^{\frac{1}{m}}", r"\exp(\frac{k}{m} \ln a)"],
}
