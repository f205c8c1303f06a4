"""Right answers to the tasks of lesson flash: loops, einsum, torch, float32, other algebra."""

import math

import numpy as np
import torch


def merge_with_zero_for_nan(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.where(m_a > m_b, m_a, m_b)
    first, second = (np.nan_to_num(np.exp(old - m), nan=0.0) for old in (m_a, m_b))
    return m, first * l_a + second * l_b, np.einsum("i,ij->ij", first, a_a) + np.einsum("i,ij->ij", second, a_b)


def merge_in_torch(m_a, l_a, a_a, m_b, l_b, a_b):
    m_a, l_a, a_a, m_b, l_b, a_b = (torch.tensor(x, dtype=torch.float32) for x in (m_a, l_a, a_a, m_b, l_b, a_b))
    m = torch.maximum(m_a, m_b)
    shift = m.masked_fill(m.isneginf(), 0.0)
    first, second = (m_a - shift).exp(), (m_b - shift).exp()
    return m, first * l_a + second * l_b, first.unsqueeze(1) * a_a + second.unsqueeze(1) * a_b


def stream_normalised_as_it_goes(query, key_blocks, value_blocks):
    output, lse = np.zeros((len(query), value_blocks[0].shape[1])), np.full(len(query), -np.inf)
    for key, value in zip(key_blocks, value_blocks, strict=True):
        scores = query @ key.T / math.sqrt(key.shape[1])
        new = np.logaddexp(lse, np.logaddexp.reduce(scores, axis=1))
        output = output * np.exp(lse - new)[:, None] + np.exp(scores - new[:, None]) @ value
        lse = new
    return output, lse


def stream_in_torch(query, key_blocks, value_blocks):
    query = torch.from_numpy(query).to(torch.float32)
    m, total, acc = torch.full((len(query), 1), -torch.inf), 0.0, 0.0
    for key, value in zip(key_blocks, value_blocks, strict=True):
        scores = query @ torch.tensor(key, dtype=torch.float32).T / query.shape[1] ** 0.5
        new = torch.maximum(m, scores.amax(1, keepdim=True))
        p = (scores - new).exp()
        total, acc = total * (m - new).exp() + p.sum(1, keepdim=True), acc * (m - new).exp() + p @ torch.tensor(value, dtype=torch.float32)
        m = new
    return acc / total, (m + total.log())[:, 0]


def loop_that_keeps_lse(query, key, value, block):
    output, lse = 0.0, np.full((len(query), 1), -np.inf)
    for start in range(0, len(key), block):
        scores = query @ key[start : start + block].T / query.shape[1] ** 0.5
        new = np.logaddexp(lse, np.logaddexp.reduce(scores, axis=1, keepdims=True))
        output = output * np.exp(lse - new) + np.exp(scores - new) @ value[start : start + block]
        lse = new
    return output


def loop_in_torch(query, key, value, block):
    query, key, value = (torch.from_numpy(x).float() for x in (query, key, value))
    m, total, acc = torch.full((len(query), 1), -torch.inf), torch.zeros(len(query), 1), torch.zeros(len(query), value.shape[1])
    for keys, values in zip(key.split(block), value.split(block), strict=True):
        scores = query @ keys.T / query.shape[1] ** 0.5
        new = torch.maximum(m, scores.amax(1, keepdim=True))
        p, shrink = (scores - new).exp(), (m - new).exp()
        m, total, acc = new, total * shrink + p.sum(1, keepdim=True), acc * shrink + p @ values
    return acc / total


def tile_with_einsum(scores, value, d_output, output, lse, d_lse):
    p = np.exp((scores.T - lse).T)
    through_lse = np.einsum("i,ij->ij", d_lse, p)
    return np.einsum("ij,ic,jc->ij", p, d_output, value) - np.einsum("ij,ic,ic->ij", p, d_output, output) + through_lse


def tile_in_torch(scores, value, d_output, output, lse, d_lse):
    scores, value, d_output, output, lse, d_lse = (torch.tensor(x).float() for x in (scores, value, d_output, output, lse, d_lse))
    delta = (d_output * output).sum(1, keepdim=True)
    return (scores - lse[:, None]).exp() * (d_output @ value.T - delta + d_lse[:, None])


def step_with_stacked_scores(row_max, row_sum, acc, scores, value):
    top = np.hstack([row_max, scores]).max(axis=1, keepdims=True)
    shrink = np.where(np.isneginf(row_max), 0.0, np.exp(row_max - top))
    return (
        top,
        shrink * row_sum + np.exp(scores - top) @ np.ones((len(value), 1)),
        shrink * acc + np.einsum("ij,jc->ic", np.exp(scores - top), value),
    )


def step_in_torch(row_max, row_sum, acc, scores, value):
    row_max, row_sum, acc, scores, value = (torch.tensor(x).float() for x in (row_max, row_sum, acc, scores, value))
    top = torch.maximum(row_max, scores.amax(1, keepdim=True))
    return (
        top,
        row_sum * (row_max - top).exp() + (scores - top).exp().sum(1, keepdim=True),
        acc * (row_max - top).exp() + (scores - top).exp() @ value,
    )


def tile_against_the_mixture(scores, value, d_output, output, lse):
    return np.exp(scores - lse) * np.einsum("ic,ijc->ij", d_output, value[None] - output[:, None])


def tile_turn_in_torch(scores, value, d_output, output, lse):
    scores, value, d_output, output, lse = (torch.tensor(x).float() for x in (scores, value, d_output, output, lse))
    return (scores - lse).exp() * (d_output @ value.T) - (scores - lse).exp() * (d_output * output).sum(1, keepdim=True)


def splits_one_after_the_other(outputs, lses):
    output, lse = np.zeros(outputs.shape[1:]), np.full(lses.shape[1], -np.inf)
    for z, s in zip(outputs, lses, strict=True):
        new = np.logaddexp(lse, s)
        shift = np.where(np.isneginf(new), 0.0, new)
        output = np.exp(lse - shift)[:, None] * output + np.exp(s - shift)[:, None] * z
        lse = new
    return output, lse


def splits_in_torch(outputs, lses):
    outputs, lses = torch.tensor(outputs, dtype=torch.float32), torch.tensor(lses, dtype=torch.float32)
    top = lses.amax(0).nan_to_num(neginf=0.0)
    shares = (lses - top).exp()
    total = shares.sum(0)
    return (shares / total.clamp(min=1e-30)).unsqueeze(-1).mul(outputs).sum(0), top + total.log()


PLAIN = 4 * 4096 * 128 + 4 * 4096**2

RIGHT = {
    "merge-two-states": [merge_with_zero_for_nan, merge_in_torch],
    "bytes-saved-by-tiles": [
        lambda: [PLAIN / (4096 * 257 + 64 * 4096 * 256), PLAIN / (4096 * 257 + 16 * 4096 * 256)],
        lambda: (1.0153, 3.8815),
    ],
    "shared-key-tile-bytes": [
        lambda t, d, r, g, b: b * t * (g * (2 * d + 1) + 2 * d * t / r),
        lambda t, d, r, g, b: b * g * t * d + b * g * t * d + b * g * t + 2 * b * d * t**2 * r**-1,
    ],
    "streamed-attention": [stream_normalised_as_it_goes, stream_in_torch],
    "repair-tiled-loop": [loop_that_keeps_lse, loop_in_torch],
    "tile-score-gradient": [tile_with_einsum, tile_in_torch],
    "merge-decoding-splits": [splits_one_after_the_other, splits_in_torch],
    "fold-in-a-block": [step_with_stacked_scores, step_in_torch],
    "output-of-two-parts": [
        r"\frac{z_A + e^{L_B - L_A} z_B}{1 + e^{L_B - L_A}}",
        r"\frac{\exp(L_A)}{\exp(L_A) + \exp(L_B)} z_A + \frac{\exp(L_B)}{\exp(L_A) + \exp(L_B)} z_B",
    ],
    "gradient-of-a-tile": [tile_against_the_mixture, tile_turn_in_torch],
    "merge-of-two-blocks": [
        [
            r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
            r"\sum_{k \in A \cup B} \exp(s_k - L)\, v_k",
            r"\sum_{k \in A} \exp(s_k - L_A + L_A - L)\, v_k + \sum_{k \in B} \exp(s_k - L_B + L_B - L)\, v_k",
            r"\exp(L_A - L) \sum_{k \in A} \exp(s_k - L_A)\, v_k + \exp(L_B - L) \sum_{k \in B} \exp(s_k - L_B)\, v_k",
            r"\exp(L_A - L)\, z_A + \exp(L_B - L)\, z_B",
        ],
        [
            r"\frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}}",
            r"\frac{1}{\sum_l e^{s_l}} \Bigl( \sum_{j \in A} e^{s_j} v_j + \sum_{j \in B} e^{s_j} v_j \Bigr)",
            r"\frac{e^{L_A} \sum_{j \in A} e^{s_j} v_j / \sum_{l \in A} e^{s_l} + \sum_{j \in B} e^{s_j} v_j}{\sum_l e^{s_l}}",
            r"\frac{\sum_{l \in A} e^{s_l}}{\sum_l e^{s_l}} z_A + \frac{\sum_{l \in B} e^{s_l}}{\sum_l e^{s_l}} z_B",
            r"\frac{e^{L_A}}{e^L} z_A + \frac{e^{L_B}}{e^L} z_B",
            r"e^{L_A - L} z_A + e^{L_B - L} z_B",
        ],
    ],
    "update-of-divided-outputs": [
        r"\frac{\ell_i \exp(m_i) z_i + \sum_j \exp(s_{ij}) v_j}{\ell'_i \exp(m'_i)}",
        r"\Bigl( \ell_i e^{m_i - m'_i} z_i + \sum_l e^{s_{il} - m'_i} v_l \Bigr) / \ell'_i",
    ],
    "gradient-of-tile-scores": [
        r"\exp(s_{ij} - L_i) \left( dO_i\, v_j^\top - dO_i\, z_i^\top \right)",
        r"\frac{e^{s_{ij}}}{e^{L_i}} (v_j - z_i) \cdot dO_i",
    ],
}
