"""One head of attention: its products, and those of its gradients."""

from attn_course.costs.checks import require_counts


def attention_flops(pairs: int, d_k: int, d_v: int) -> int:
    r"""Return the FLOPs of attention in one head: a score and a weighted value for every pair, Eq. attention-forward-flops.

    .. math:: 2 P (d_k + d_v)

    P are the pairs of `attended_pairs`, or q_len * kv_len where masked scores are computed too; each also takes one exponential.

    With d_k = d_v = d and all pairs this is the 4 T^2 d of FlashAttention-2, section 4.1 (Dao, 2023), arXiv:2307.08691.

    >>> attention_flops(16, 8, 8)
    512
    """
    pairs, d_k, d_v = require_counts(pairs=pairs, d_k=d_k, d_v=d_v)
    return 2 * pairs * (d_k + d_v)


def attention_backward_flops(pairs: int, d_k: int, d_v: int) -> int:
    r"""Return the FLOPs of the gradients of attention in one head, scores computed again, Eq. attention-backward-flops.

    .. math:: 2 P (3 d_k + 2 d_v)

    Products: QK^T again, dO V^T, P^T dO, dS K and dS^T Q. With d_k = d_v five against two, 2.5 times the forward pass:
    FlashAttention-2, section 4.1 (Dao, 2023), arXiv:2307.08691.

    >>> attention_backward_flops(16, 8, 8) / attention_flops(16, 8, 8)
    2.5
    """
    pairs, d_k, d_v = require_counts(pairs=pairs, d_k=d_k, d_v=d_v)
    return 2 * pairs * (3 * d_k + 2 * d_v)
