"""What attention over several devices sends, and how long they wait for each other under a causal mask."""

from itertools import pairwise

from attn_course.costs.checks import require_choice, require_counts, require_flag, require_groups
from attn_course.costs.pairs import attended_pairs

ORDERS = ("contiguous", "striped", "zigzag")


def ring_attention_bytes(
    length: int,
    n_devices: int,
    n_kv_heads: int,
    d_k: int,
    d_v: int,
    *,
    with_backward: bool = False,
    bytes_per_number: int = 2,
    bytes_per_gradient: int = 4,
) -> int:
    r"""Return the bytes that all devices of a ring send, together, Eqs. ring-bytes and ring-training-bytes.

    .. math:: (n - 1)\, T\, H_{kv}\, (d_k + d_v)\, b, \qquad (n - 1)\, T\, H_{kv}\, (d_k + d_v)\, (2\, b + b_g)

    Each block of keys and values visits each other device, a second time for the backward pass (`with_backward`: both passes), and
    then sums of gradients, of `bytes_per_gradient` each, come home from the same n - 1 devices. Exact for parts of any lengths; a
    causal mask saves nothing.

    Liu et al. (2023), arXiv:2310.01889.

    >>> [ring_attention_bytes(2**20, n, 8, 128, 128) // 2**20 for n in (1, 2, 8)]
    [0, 4096, 28672]
    """
    length, heads, d_k, d_v = require_counts(length=length, n_kv_heads=n_kv_heads, d_k=d_k, d_v=d_v)
    devices, number, gradient = require_counts(
        1, n_devices=n_devices, bytes_per_number=bytes_per_number, bytes_per_gradient=bytes_per_gradient
    )
    each = 2 * number + gradient if require_flag("with_backward", with_backward) else number
    return (devices - 1) * length * heads * (d_k + d_v) * each


def head_parallel_bytes(
    length: int,
    n_devices: int,
    n_heads: int,
    d_k: int,
    d_v: int,
    *,
    n_kv_heads: int | None = None,
    with_backward: bool = False,
    bytes_per_number: int = 2,
) -> int:
    r"""Return the bytes that all devices send, together, if each computes some heads, Eq. head-exchange-bytes.

    .. math:: \frac{n - 1}{n}\, T\, (H + H_{kv})\, (d_k + d_v)\, b

    Queries, keys, values and outputs change places; going back, so do their gradients, of the same dtype (`with_backward`: both).
    `n_kv_heads`: heads of keys and values; as many as of queries if left out. Raises ValueError unless the devices divide both.

    Jacobs et al. (2023), arXiv:2309.14509.

    >>> [head_parallel_bytes(2**20, n, 8, 128, 128) // 2**20 for n in (1, 2, 8)]
    [0, 4096, 7168]
    """
    length, d_k, d_v = require_counts(length=length, d_k=d_k, d_v=d_v)
    devices, number = require_counts(1, n_devices=n_devices, bytes_per_number=bytes_per_number)
    heads, kv_heads = require_groups(n_heads, n_kv_heads)
    if kv_heads % devices:
        raise ValueError(f"n_devices must divide the heads of keys; got {devices} and {kv_heads}")
    passes = 1 + int(require_flag("with_backward", with_backward))
    return passes * (devices - 1) * length * (heads + kv_heads) // devices * (d_k + d_v) * number


def ring_step_pairs(length: int, n_devices: int, *, order: str = "zigzag", is_causal: bool = True) -> list[list[int]]:
    r"""Return how many pairs of a query and a key each device computes at each step of a ring: a row for each step.

    At step s device r has the block of device r - s, counted around. `order`: how positions are spread, "contiguous", "striped" or
    "zigzag". `is_causal`: only keys that are not behind the query count. Pairs times 2 (d_k + d_v) are the FLOPs of a head.

    A step takes as long as its slowest device: Eqs. contiguous-causal-time, striped-causal-time and zigzag-causal-pairs.

    >>> ring_step_pairs(8, 2, order="contiguous")
    [[10, 10], [0, 16]]
    >>> ring_step_pairs(8, 2, order="zigzag")
    [[10, 10], [8, 8]]
    """
    (length,), (devices,) = require_counts(length=length), require_counts(1, n_devices=n_devices)
    require_choice("order", order, ORDERS)
    causal = require_flag("is_causal", is_causal)
    steps = [[(rank, (rank - step) % devices) for rank in range(devices)] for step in range(devices)]
    if order == "striped":  # query i of device r sees key j of device o if o + n j <= r + n i
        held = [len(range(rank, length, devices)) for rank in range(devices)]
        return [
            [attended_pairs(held[rank], held[owner], is_causal=causal, q_offset=-int(owner > rank)) for rank, owner in step]
            for step in steps
        ]
    runs = _runs(length, devices if order == "contiguous" else 2 * devices)
    held_runs = [runs[rank : rank + 1] if order == "contiguous" else (runs[rank], runs[-1 - rank]) for rank in range(devices)]
    return [
        [
            sum(
                attended_pairs(len(queries), len(keys), is_causal=causal, q_offset=queries.start - keys.start)
                for queries in held_runs[rank]
                for keys in held_runs[owner]
            )
            for rank, owner in step
        ]
        for step in steps
    ]


def _runs(length: int, count: int) -> list[range]:
    """Cut positions into runs of nearly one length; the first ones have one more if it does not come out even."""
    least, more = divmod(length, count)
    starts = [least * run + min(run, more) for run in range(count + 1)]
    return [range(start, end) for start, end in pairwise(starts)]
