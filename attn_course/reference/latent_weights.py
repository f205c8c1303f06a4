"""The matrices of latent attention, and how they must fit each other."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats


@dataclass(frozen=True)
class LatentWeights:
    """The matrices of latent attention, Eq. absorbed-latent-attention; rows are input features, heads stand side by side.

    `w_query_down` (d_model, d_query_latent): compresses a token to the latent vector of its queries; W^DQ.
    `w_query_up` (d_query_latent, n_heads * d_head): queries without position; W^UQ.
    `w_query_rope` (d_query_latent, n_heads * d_rope): queries that RoPE rotates; W^QR.
    `w_latent_down` (d_model, d_latent): compresses a token to the latent vector of its keys and values, which is
    cached; W^DKV.
    `w_key_up` (d_latent, n_heads * d_head): keys without position; W^UK.
    `w_key_rope` (d_model, d_rope): the one rotary key that all heads share, which is cached; W^KR.
    `w_value_up` (d_latent, n_heads * d_v): values; W^UV.
    `w_output` (n_heads * d_v, d_model): output projection; W^O.

    Raises TypeError if a matrix is not floating; ValueError if a matrix has not two axes, or two that meet differ in
    the features they share.

    DeepSeek-V2, section 2.1 and appendix C, Eqs. 37 to 47, arXiv:2405.04434, which writes columns as positions: each
    matrix here is the transpose of the one named there.

    >>> one = np.ones((1, 1))
    >>> LatentWeights(one, one, np.ones((1, 2)), one, one, np.ones((1, 2)), one, one).w_key_rope
    array([[1., 1.]])
    """

    w_query_down: Float[np.ndarray, "d_model d_query_latent"]
    w_query_up: Float[np.ndarray, "d_query_latent heads_d_head"]
    w_query_rope: Float[np.ndarray, "d_query_latent heads_d_rope"]
    w_latent_down: Float[np.ndarray, "d_model d_latent"]
    w_key_up: Float[np.ndarray, "d_latent heads_d_head"]
    w_key_rope: Float[np.ndarray, "d_model d_rope"]
    w_value_up: Float[np.ndarray, "d_latent heads_d_v"]
    w_output: Float[np.ndarray, "heads_d_v d_output"]

    def __post_init__(self) -> None:
        matrices = {field.name: getattr(self, field.name) for field in fields(self)}
        checked_floats(**matrices)
        for name, matrix in matrices.items():
            if matrix.ndim != 2:
                raise ValueError(f"{name} must have two axes; got shape {matrix.shape}")
        for name, axis, other, other_axis in (
            ("w_query_up", 0, "w_query_down", 1),
            ("w_query_rope", 0, "w_query_down", 1),
            ("w_latent_down", 0, "w_query_down", 0),
            ("w_key_up", 0, "w_latent_down", 1),
            ("w_key_up", 1, "w_query_up", 1),
            ("w_key_rope", 0, "w_query_down", 0),
            ("w_value_up", 0, "w_latent_down", 1),
            ("w_output", 0, "w_value_up", 1),
        ):
            got, wanted = matrices[name].shape[axis], matrices[other].shape[other_axis]
            if got != wanted:
                raise ValueError(f"{name} must have {wanted} entries on axis {axis}, as {other} has on axis {other_axis}; got {got}")
