"""What positions cost: rotations of queries and keys, penalties on scores."""

from attn_course.costs.checks import require_counts


def rotation_flops(length: int, n_heads: int, d_rotated: int) -> int:
    r"""Return the FLOPs of rotating the vectors of some heads, pairs by 2 x 2 matrices, Eq. rotation-flops.

    .. math:: 4\, T\, h\, d_r

    `n_heads`: query heads and key heads together. `length`: new positions; the whole cache where frequencies change with the length,
    since its keys have to be rotated again. Stretched frequencies cost what the others do. Raises ValueError if `d_rotated` is odd.

    Su et al. (2021), section 3.4.2, arXiv:2104.09864.

    >>> rotation_flops(1, 32 + 8, 128), rotation_flops(4096, 8, 128)
    (20480, 16777216)
    """
    length, heads, width = require_counts(length=length, n_heads=n_heads, d_rotated=d_rotated)
    if width % 2:
        raise ValueError(f"d_rotated must be even; got {width}")
    return 4 * length * heads * width


def alibi_flops(pairs: int, n_heads: int) -> int:
    r"""Return the FLOPs of penalties on distance: a slope times a distance, added to the score of every pair.

    .. math:: 2\, h\, P

    `pairs`: P, those of `attended_pairs`, in each head. Less than a rotation where a query sees fewer than 2 d_k keys.

    Press et al. (2021), section 3, arXiv:2108.12409.

    >>> alibi_flops(16, 8)
    256
    """
    pairs, heads = require_counts(pairs=pairs, n_heads=n_heads)
    return 2 * heads * pairs


def alibi_bias_bytes(q_len: int, kv_len: int, n_heads: int, *, bytes_per_number: int = 2) -> int:
    r"""Return the bytes of penalties that are stored for every pair, as a mask to be added, Eq. alibi-stored-bytes.

    .. math:: b\, h\, T_q T_k

    A kernel that multiplies slopes with distances as it goes reads h numbers. 2 bytes are a number in float16 or bfloat16.

    Press et al. (2021), section 3, arXiv:2108.12409.

    >>> alibi_bias_bytes(4096, 4096, 32) // 2**20
    1024
    """
    q_len, kv_len, heads = require_counts(q_len=q_len, kv_len=kv_len, n_heads=n_heads)
    (size,) = require_counts(1, bytes_per_number=bytes_per_number)
    return size * heads * q_len * kv_len
