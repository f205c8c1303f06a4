"""One head of attention: its products, their gradients, and two projections against one absorbed matrix."""

from attn_course.costs.checks import require_counts, require_flag


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


def query_key_flops(q_len: int, kv_len: int, d_query: int, d_key: int, d_k: int, *, absorbed: bool = False) -> int:
    r"""Return the FLOPs of one head's scores, from tokens to scores, by two projections or one absorbed matrix.

    .. math:: 2 \bigl[(T_q d_q + T_k d_y)\, d_k + T_q T_k d_k\bigr], \qquad 2 \bigl[T_q d_q d_y + T_q T_k d_y\bigr] \;\text{ absorbed}

    `d_query` and `d_key` are the features of the tokens that ask and that answer. Absorbed, the query is brought to the
    space of the tokens, x W_Q W_K^T, and compared with them directly: Eq. factored-and-absorbed-flops. This wins where
    few queries meet many tokens whose keys are not stored.

    DeepSeek-V2, section 2.1.2 and appendix C, arXiv:2405.04434.

    >>> [query_key_flops(1, 4096, 512, 512, 64, absorbed=absorbed) for absorbed in (False, True)]
    [269025280, 4718592]
    >>> [query_key_flops(4096, 4096, 512, 512, 64, absorbed=absorbed) for absorbed in (False, True)]
    [2684354560, 19327352832]
    """
    q_len, kv_len, d_query, d_key, d_k = require_counts(q_len=q_len, kv_len=kv_len, d_query=d_query, d_key=d_key, d_k=d_k)
    if require_flag("absorbed", absorbed):
        return 2 * (q_len * d_query * d_key + q_len * kv_len * d_key)
    return 2 * ((q_len * d_query + kv_len * d_key) * d_k + q_len * kv_len * d_k)
