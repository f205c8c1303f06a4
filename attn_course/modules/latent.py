"""Latent attention in torch: one small vector per token is cached, and keys and values are rebuilt from it, or never built at all."""

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attn_course.gpu.ops import attention
from attn_course.modules.cache import KeyValueCache
from attn_course.modules.positions import Layout, rope
from attn_course.modules.score_masks import and_causal, checked_mask, one_row_for_each_query

Form = Literal["auto", "naive", "absorbed"]
FORMS = ("auto", "naive", "absorbed")
MATRICES = ("w_query_down", "w_query_up", "w_query_rope", "w_latent_down", "w_key_up", "w_key_rope", "w_value_up", "w_output")


class LatentAttention(nn.Module):
    r"""Causal self-attention in several heads whose keys and values are made of one cached latent vector per token.

    .. math:: k_{j,i} = [c_j W^{UK}_i;\; k^R_j], \qquad v_{j,i} = c_j W^{UV}_i, \qquad
              o_{t,i} = \sum_{j \le t} \mathrm{softmax}_j\!\left(\frac{q_{t,i} \cdot k_{j,i}}{\sqrt{d_h + d_h^R}}\right) v_{j,i}

    There are two ways to compute it, with the same weights and the same cache. *Naive*: rebuild keys and values of every
    position for every head, then attend. *Absorbed*: bring each query to the latent space, Eq. absorbed-latent-keys, attend there with
    the latent vectors in the place of keys and of values, and bring the average back, Eq. absorbed-latent-values.

    `d_model`: features of the input and of the output; d.
    `n_heads`: number of heads; n_h.
    `d_latent`: features of the latent vector of keys and values; d_c.
    `d_query_latent`: features of the latent vector of queries; d'_c. If left out, queries are projected from the input
    directly.
    `d_head`: features of a query or key without position, in one head; d_h.
    `d_rope`: features of the rotary part: of each head's query, and of the one key that all heads share; d_h^R. Even; 0
    for none.
    `d_v`: features of a value in one head; `d_head` if left out, as in the paper.
    `norm`: whether an RMSNorm follows each compression: `norm_q` (if queries are compressed) and `norm_kv`.
    `norm_eps`: added to the mean square of these norms.
    `rope_theta`, `rope_layout`: base of the rotary frequencies, and which features a rotation pairs.
    `form`: which way it is computed; "auto" takes the one that needs fewer FLOPs, which is naive for a prompt and
    absorbed for a step of decoding. A call may say otherwise.
    `backend`: who computes: see `attn_course.gpu.attention`.
    `w_query_down` (d_model, d_query_latent): W^DQ, transposed like all that follow; None without compression of the
    queries.
    `w_query_up`, `w_query_rope` (d_query_latent, n_heads * d_head or d_rope): W^UQ and W^QR; they have d_model rows without
    compression.
    `w_latent_down`, `w_key_rope` (d_model, d_latent or d_rope): W^DKV and W^KR. What they make is all that is cached.
    `w_key_up`, `w_value_up` (d_latent, n_heads * d_head or d_v): W^UK and W^UV.
    `w_output` (n_heads * d_v, d_model): W^O.

    Raises ValueError if a size is below 1, `d_rope` is negative or odd, or the form is unknown.

    DeepSeek-V2, section 2.1 and appendix C, Eqs. 37 to 47, arXiv:2405.04434; the norms: section 3.1.2. There positions
    are columns; u_t is `output`, h_t `x`, c^Q_t and c^KV_t the two latent vectors. The names are those of
    `attn_course.reference.LatentWeights`.

    Absorbed, all heads share one key of d_c + d_h^R features, and its first d_c features are the value: multi-query
    attention. The queries of all heads are then rows of one matrix product, and neither a key nor a value of any head
    is ever formed. Neither are the products of Eq. absorbed-latent-attention, W_h and U_h: they have more entries than
    their factors, which are applied one after the other (`attn_course.costs` calls that "factored"). The rotary part is
    not absorbed: Eq. rope-blocks-absorption.

    >>> layer = LatentAttention(d_model=12, n_heads=3, d_latent=5, d_head=4, d_rope=2)
    >>> x, cache = torch.ones(2, 7, 12), KeyValueCache()
    >>> with torch.no_grad():
    ...     prompt = layer(x[:, :6], cache=cache)
    ...     step = layer(x[:, 6:], cache=cache, form="absorbed")
    >>> prompt.shape, step.shape, len(cache)
    (torch.Size([2, 6, 12]), torch.Size([2, 1, 12]), 7)
    """

    w_query_down: nn.Parameter | None

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_latent: int,
        d_query_latent: int | None = None,
        d_head: int,
        d_rope: int,
        d_v: int | None = None,
        norm: bool = True,
        norm_eps: float = 1e-6,
        rope_theta: float = 10_000.0,
        rope_layout: Layout = "halves",
        form: Form = "auto",
        backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.d_v = d_head if d_v is None else d_v
        sizes = {"d_model": d_model, "n_heads": n_heads, "d_latent": d_latent, "d_head": d_head, "d_v": self.d_v}
        if d_query_latent is not None:
            sizes["d_query_latent"] = d_query_latent
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be 1 or more; got {size}")
        if d_rope < 0 or d_rope % 2:
            raise ValueError(f"d_rope must be even and not negative, for a rotation of pairs; got {d_rope}")
        self.d_model, self.n_heads, self.d_latent, self.d_query_latent = d_model, n_heads, d_latent, d_query_latent
        self.d_head, self.d_rope, self.form = d_head, d_rope, _known(form)
        self.rope_theta, self.rope_layout, self.backend = rope_theta, rope_layout, backend
        self.scale = 1.0 / math.sqrt(d_head + d_rope)  # also in the latent space, whose vectors have another width

        def weight(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) / math.sqrt(rows))  # keeps a variance of 1

        d_query = d_model if d_query_latent is None else d_query_latent
        self.register_parameter("w_query_down", None if d_query_latent is None else weight(d_model, d_query))
        self.w_query_up = weight(d_query, n_heads * d_head)
        self.w_query_rope = weight(d_query, n_heads * d_rope)
        self.w_latent_down = weight(d_model, d_latent)
        self.w_key_up = weight(d_latent, n_heads * d_head)
        self.w_key_rope = weight(d_model, d_rope)
        self.w_value_up = weight(d_latent, n_heads * self.d_v)
        self.w_output = weight(n_heads * self.d_v, d_model)
        self.norm_q = nn.RMSNorm(d_query, eps=norm_eps) if norm and d_query_latent is not None else None
        self.norm_kv = nn.RMSNorm(d_latent, eps=norm_eps) if norm else None

    def forward(
        self,
        x: Float[Tensor, "*batch len d_model"],
        *,
        mask: Bool[Tensor, "*#batch #heads #len #kv_len"] | Float[Tensor, "*#batch #heads #len #kv_len"] | None = None,
        lengths: Int[Tensor, "*batch"] | None = None,
        cache: KeyValueCache | None = None,
        positions: Shaped[Tensor, "*#batch len"] | None = None,
        form: Form | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Return the output for new tokens, each of which sees itself and what came before it.

        `mask`: True where the token may attend to the other one, besides the causal rule; or added to the scores. One
        mask for each sequence of a batch has a head axis of length 1: ``mask[:, None]``.
        `lengths`: number of real tokens of each sequence, past ones included; the padding behind them is hidden,
        whatever it holds.
        `cache`: the past, which `x` continues. For each token it holds the latent vector, after `norm_kv`, in the place
        of a key, and the rotated shared key in the place of a value. Either form goes on with what the other one
        stored.
        `positions`: where the rows of `x` stand, for the rotation; behind the past, in order, if left out.
        `form`: as the layer was made, if left out.
        `return_weights`: also return the weights of every head.

        Returns `output` (*batch, len, d_model): the same in both forms, up to rounding; `weights` (*batch, n_heads,
        len, kv_len): only with `return_weights`.

        Raises ValueError if a shape does not fit, or the form is unknown.
        """
        past = 0 if cache is None else len(cache)
        chosen = self._chosen(self.form if form is None else _known(form), x, past)
        scores_shape = (*x.shape[:-2], self.n_heads, x.shape[-2], past + x.shape[-2])
        hidden = checked_mask(mask, lengths, scores_shape)
        where = torch.arange(past, past + x.shape[-2], device=x.device) if positions is None else positions

        query_latent = x if self.w_query_down is None else _normed(self.norm_q, x @ self.w_query_down)  # c^Q
        query_rope = self._rotated(self._heads(query_latent @ self.w_query_rope), where[..., None, :])
        query_content = self._heads(query_latent @ self.w_query_up)
        latent = _normed(self.norm_kv, x @ self.w_latent_down)  # c^KV
        key_rope = self._rotated(x @ self.w_key_rope, where)
        if key_rope.shape[:-1] != x.shape[:-1]:
            raise ValueError(
                f"positions must broadcast to {tuple(x.shape[:-1])}, the axes of x but for its features; got {tuple(where.shape)}"
            )
        if cache is not None:
            latent, key_rope = cache.append(latent, key_rope)
        compute = self._absorbed if chosen == "absorbed" else self._naive
        heads, *weights = compute(query_content, query_rope, latent, key_rope, hidden, past, return_weights)
        output = heads.transpose(-2, -3).flatten(-2) @ self.w_output  # (*batch, len, n_heads, d_v), then side by side
        return (output, *weights) if return_weights else output

    def _naive(
        self, query: Tensor, query_rope: Tensor, latent: Tensor, key_rope: Tensor, mask: Tensor | None, past: int, return_weights: bool
    ) -> tuple[Tensor, ...]:
        """Attend with the keys and values of each head: outputs (*batch, n_heads, len, d_v), and the weights if asked for."""
        key, value = self._heads(latent @ self.w_key_up), self._heads(latent @ self.w_value_up)
        shared = key_rope.unsqueeze(-3).expand(*key.shape[:-1], self.d_rope)
        result = attention(
            torch.cat([query, query_rope], dim=-1),
            torch.cat([key, shared], dim=-1),
            value,
            mask=mask,
            is_causal=True,
            q_offset=past,
            scale=self.scale,
            backend=self.backend,
            return_weights=return_weights,
            guard_non_finite=mask is not None,  # padding may hold anything, Eq. masked-attention
        )
        return result if return_weights else (result,)

    def _absorbed(
        self, query: Tensor, query_rope: Tensor, latent: Tensor, key_rope: Tensor, mask: Tensor | None, past: int, return_weights: bool
    ) -> tuple[Tensor, ...]:
        """Attend in the latent space: the same results, and no key or value of a head."""
        w_key, w_value = (w.unflatten(-1, (self.n_heads, -1)).transpose(0, 1) for w in (self.w_key_up, self.w_value_up))
        rows = torch.cat([query @ w_key.mT, query_rope], dim=-1)  # (*batch, n_heads, len, d_latent + d_rope)
        n_new, n_seen = query.shape[-2], latent.shape[-2]
        result = attention(
            rows.flatten(-3, -2),  # all heads share the keys, so their queries are rows of one matrix: (*batch, n_heads * len, ...)
            torch.cat([latent, key_rope], dim=-1),
            latent,
            mask=one_row_for_each_query(and_causal(mask, n_new, n_seen, past, latent.device), self.n_heads, n_new),
            scale=self.scale,
            backend=self.backend,
            return_weights=return_weights,
            guard_non_finite=mask is not None,  # padding may hold anything, Eq. masked-attention
        )
        averages, *weights = (part.unflatten(-2, (self.n_heads, n_new)) for part in (result if return_weights else (result,)))
        return averages @ w_value, *weights

    def _chosen(self, form: Form, x: Tensor, past: int) -> Form:
        """Check the input; for "auto" compare the FLOPs in which the two forms differ."""
        if x.ndim < 2 or x.shape[-1] != self.d_model:
            raise ValueError(f"x must have the axes (..., len, {self.d_model}); got shape {tuple(x.shape)}")
        if form != "auto":
            return form
        rebuilt = past * self.d_latent * (self.d_head + self.d_v)  # naive projects the past, absorbed the new tokens alone
        longer = x.shape[-2] * (past + x.shape[-2]) * (2 * self.d_latent - self.d_head - self.d_v)
        return "absorbed" if longer < rebuilt else "naive"

    def _heads(self, x: Tensor) -> Tensor:
        """Split: (*batch, len, n_heads * features) -> (*batch, n_heads, len, features)."""
        return x.unflatten(-1, (self.n_heads, x.shape[-1] // self.n_heads)).transpose(-2, -3)

    def _rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        return rope(x, positions, self.rope_theta, self.rope_layout)

    def latent_weights(self) -> dict[str, Tensor]:
        """Return the matrices by the names of `attn_course.reference.LatentWeights`, which has no optional one.

        Returns `weights`: copies without gradient; `w_query_down` is the identity if queries are not compressed. The
        norms are not among them.
        """
        found = {name: getattr(self, name) for name in MATRICES}
        if found["w_query_down"] is None:
            found["w_query_down"] = torch.eye(self.d_model).to(self.w_output)
        return {name: matrix.detach().clone() for name, matrix in found.items()}

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor], *, n_heads: int, **options: Any) -> Self:
        """Return a layer with the matrices of `attn_course.reference.LatentWeights`, as tensors.

        `weights`: by the names of the attributes; without `w_query_down` queries are not compressed.
        `**options`: keywords of the layer that the matrices do not tell. Say ``norm=False`` if the weights belong to a
        layer without norms.

        Returns `layer`: on the same device, in the same dtype; the gains of its norms are 1.

        Raises ValueError if a matrix is missing or unknown, or the shapes do not fit.
        """
        unfit = set(MATRICES[1:]) - set(weights) | set(weights) - set(MATRICES)
        if unfit:
            raise ValueError(f"weights must hold {', '.join(MATRICES)} (the first may be left out); missing or unknown: {sorted(unfit)}")
        shapes = {name: tuple(matrix.shape) for name, matrix in weights.items()}
        layer = cls(
            shapes["w_latent_down"][0],
            n_heads,
            d_latent=shapes["w_latent_down"][1],
            d_query_latent=shapes["w_query_down"][1] if "w_query_down" in shapes else None,
            d_head=shapes["w_query_up"][1] // n_heads,
            d_rope=shapes["w_key_rope"][1],
            d_v=shapes["w_value_up"][1] // n_heads,
            **options,
        )
        for name, shape in shapes.items():
            if shape != (wanted := tuple(getattr(layer, name).shape)):
                raise ValueError(f"{name} must have shape {wanted}, to fit the others and {n_heads} heads; got {shape}")
        layer.to(weights["w_output"]).load_state_dict(dict(weights), strict=False)
        return layer


def _known(form: Form) -> Form:
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}; got {form!r}")
    return form


def _normed(norm: nn.RMSNorm | None, latent: Tensor) -> Tensor:
    return latent if norm is None else norm(latent.to(norm.weight.dtype)).to(latent.dtype)  # autocast narrows one of the two
