"""A state that is written, decays and is read: a whole chunk of positions at once, for linear attention and the delta rule."""

import numpy as np

from attn_course.reference.arrays import weighted_sum


def decay_between(log_decay: np.ndarray) -> np.ndarray:
    """Return what is left at position i of what position j wrote: exp of the sum of log_decay over j < t <= i; 0 where j > i.

    (..., len, d) gives (..., len, len, d). Sums, not differences of sums, so that nothing cancels and -inf forgets.

    >>> decay_between(np.log(np.array([[0.1], [0.5], [0.2]])))[..., 0].round(2)
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [0.1, 0.2, 1. ]])
    """
    length = log_decay.shape[-2]
    earlier = np.tri(length, k=-1, dtype=bool)[:, :, None]  # j < i
    between = np.where(earlier, log_decay[..., :, None, :], np.zeros((), log_decay.dtype)).cumsum(axis=-3)
    return np.where(np.tri(length, dtype=bool)[:, :, None], np.exp(between), np.zeros((), log_decay.dtype))


@np.errstate(over="ignore", invalid="ignore")  # a key of the future may hold anything
def decayed_scores(query: np.ndarray, key: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the product of query i with what is left of key j at i, (..., len, len); 0 where j > i, whatever the key holds.

    >>> decayed_scores(np.array([[2.0], [3.0]]), np.array([[5.0], [7.0]]), np.array([[[1.0], [0.0]], [[0.5], [1.0]]]))
    array([[10. ,  0. ],
           [ 7.5, 21. ]])
    """
    if left.shape[-1] == 1:
        scores = (query @ key.swapaxes(-1, -2)) * left[..., 0]
    else:
        scores = np.einsum("...if,...ijf,...jf->...ij", query, left, key)
    return np.where(np.tri(query.shape[-2], dtype=bool), scores, np.zeros((), scores.dtype))


@np.errstate(over="ignore", invalid="ignore")
def read_write(
    state: np.ndarray, query: np.ndarray, key: np.ndarray, value: np.ndarray, log_decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Write a chunk of values into a decaying state, all at once; return what each of its queries reads, and the state after it.

    .. math:: o_i = (q_i \odot \gamma_i)^\top S + \sum_{j \le i} \bigl(q_i^\top \Gamma_{ij} k_j\bigr)\,v_j, \qquad
              S' = \mathrm{diag}(\gamma_n)\,S + \sum_j \Gamma_{nj}\,k_j v_j^\top

    Here gamma_i is the decay from the start of the chunk to i, and Gamma_ij that from j to i. Compare gated
    linear attention: Yang et al. (2023), arXiv:2312.06635.

    >>> one = np.ones((2, 1))
    >>> read_write(np.zeros((1, 1)), one, one, one, np.log(0.5 * one))
    (array([[1. ],
           [1.5]]), array([[1.5]]))
    """
    left = decay_between(log_decay)
    since_start = np.exp(log_decay.cumsum(axis=-2))
    output = (query * since_start) @ state + weighted_sum(decayed_scores(query, key, left), value)
    written = (key * left[..., -1, :, :]).swapaxes(-1, -2) @ value
    return output, since_start[..., -1, :, None] * state + written
