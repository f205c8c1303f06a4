"""What the benchmark measures: sizes, who computes them, and what the result should be."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from attn_course.costs import attended_pairs, attention_backward_flops, attention_flops
from attn_course.gpu.flash import flash_attention
from attn_course.gpu.varlen import attention_varlen

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Tensors = tuple[torch.Tensor, ...]
OURS = "ours"
TOKENS, FEATURES = 16384, 2048
EAGER_UP_TO = 4096  # beyond it the scores fill the memory
SCORES_AT_ONCE = 2**28  # float32 scores that `expected` holds at a time: 1 GiB
GATES = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-4}  # largest relative error of an output; twice that of a gradient
_SDPA = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa": SDPBackend.MATH,
}


@dataclass(frozen=True)
class Case:
    """One size: `batch` sequences of `length` tokens, heads of d features.

    A query sees `left` keys to its left (None: all). A step of decoding has `q_len` queries, which come last and see the whole
    past, and no backward pass (None: as many queries as keys). With `shortest` the sequences are packed: the first is so long, and
    each is longer than the one before by as much, up to `length`.
    """

    batch: int
    heads: int
    kv_heads: int
    length: int
    d: int
    is_causal: bool
    left: int | None = None
    q_len: int | None = None
    shortest: int | None = None

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return self.length if self.q_len is None else self.q_len

    @property
    def lengths(self) -> list[int]:
        """The tokens of each sequence."""
        first = self.length if self.shortest is None else self.shortest
        return [first + (self.length - first) * index // max(1, self.batch - 1) for index in range(self.batch)]

    @property
    def name(self) -> str:
        """As the table names it."""
        kind = "causal" if self.is_causal else "full"
        window = "" if self.left is None else f" window {self.left}"
        decode = "" if self.q_len is None else f" queries {self.q_len} batch {self.batch}"
        packed = "" if self.shortest is None else f" packed {self.batch} from {self.shortest}"
        return f"d {self.d:3d} {kind:6s} length {self.length:5d} heads {self.heads}/{self.kv_heads}{window}{decode}{packed}"

    @property
    def is_target(self) -> bool:
        """Whether the means count it: heads of 64 or 128 features, none shared, no window, no decoding, not packed."""
        return self.d in (64, 128) and self.heads == self.kv_heads and self.left is self.q_len is self.shortest is None

    @property
    def directions(self) -> tuple[str, ...]:
        """What is timed."""
        return ("forward", "backward") if self.q_len is None else ("decode",)

    def flops(self, direction: str) -> int:
        """Return the matrix FLOPs of the forward or backward pass, or of a step of decoding."""
        window = None if self.left is None else (self.left, 0)
        seen = [attended_pairs(self.q_len or length, length, is_causal=self.is_causal, window=window) for length in self.lengths]
        count = attention_backward_flops if direction == "backward" else attention_flops
        return self.heads * count(sum(seen), self.d, self.d)

    def least_bytes(self, bytes_per_number: int) -> int:
        """Return the bytes of query, key, value and output, each moved once."""
        return 2 * self.batch * self.d * bytes_per_number * (self.heads * self.queries + self.kv_heads * self.length)

    def hidden(self, device: torch.device) -> torch.Tensor | None:
        """Return True where a query may not see a key, (queries, length); None if every query sees every key."""
        if not self.is_causal and self.left is None:
            return None
        ahead = torch.arange(self.length, device=device) - torch.arange(self.queries, device=device)[:, None]
        return (ahead > 0) | (ahead < -(self.length if self.left is None else self.left))

    def tensors(self, device: str, dtype: torch.dtype) -> Tensors:
        """Return normal numbers as query, key, value (which ask for gradients) and the gradient of the output."""
        rows: tuple[int, ...] = (self.batch, self.heads, self.queries)
        kv_rows: tuple[int, ...] = (self.batch, self.kv_heads, self.length)
        if self.shortest is not None:
            rows, kv_rows = (sum(self.lengths), self.heads), (sum(self.lengths), self.kv_heads)
        generator = torch.Generator(device).manual_seed(self.length)
        query, key, value, d_output = (
            torch.randn((*size, self.d), device=device, dtype=dtype, generator=generator) for size in (rows, kv_rows, kv_rows, rows)
        )
        return (*(tensor.requires_grad_() for tensor in (query, key, value)), d_output)


def cases(device: str) -> list[Case]:
    """Return the sizes to measure, most telling first: 16384 tokens of 2048 features and eight extras; on a CPU four small ones."""
    if device != "cuda":
        small = [Case(1, 2, 2, 64, 32, False), Case(1, 2, 2, 64, 32, True), Case(1, 4, 2, 64, 32, False, q_len=1)]
        return [*small, Case(3, 2, 2, 64, 32, True, shortest=2)]
    lengths = [4096, 1024, 16384, 512, 2048, 8192]
    matrix = [(length, d, is_causal) for length in lengths for d in (64, 128) for is_causal in (True, False)]
    plain = [Case(TOKENS // length, FEATURES // d, FEATURES // d, length, d, is_causal) for length, d, is_causal in matrix]
    extras = [Case(4, 32, 8, 4096, 128, True), Case(1, 16, 16, 16384, 128, True, left=1024), Case(4, 8, 8, 4096, 256, True)]
    extras.append(Case(16, 16, 16, 1920, 128, True, shortest=128))
    steps = [(16, 8192, 128, 1), (1, 65536, 128, 1), (16, 8192, 64, 4), (1, 16384, 128, 256)]
    decode = [Case(batch, 32, 8, length, d, False, q_len=q_len) for batch, length, d, q_len in steps]
    return plain + extras + decode


def known_providers(device: str) -> list[str]:
    """Return the names of all who compute attention on a device, ours first."""
    return [OURS, *(["sdpa-flash", "sdpa-cudnn", "sdpa-efficient", "flex"] if device == "cuda" else ["sdpa"]), "eager"]


def takes(provider: str, case: Case) -> bool:
    """Whether a case is of the kind that a provider is made for; packed sequences are SDPA-flash's too, as torch's `varlen_attn`."""
    if case.shortest is not None:
        return provider in (OURS, "sdpa-flash")
    plain = case.left is None
    unshared = case.heads == case.kv_heads
    return {
        "sdpa-flash": plain,
        "sdpa-cudnn": plain,
        "sdpa": plain,
        "sdpa-efficient": plain and unshared,
        "eager": plain and unshared and case.length <= EAGER_UP_TO,
    }.get(provider, True)


def attention(provider: str, case: Case, device: torch.device) -> Attention:
    """Return the function of a provider for a case; it may raise here or when it is first called."""
    shared = case.heads != case.kv_heads
    if case.shortest is not None:
        return _packed(provider, case, device)
    if provider in _SDPA:
        return _pinned(_SDPA[provider], case.is_causal, shared)
    if provider == "flex":
        return _flex(case, device)
    if provider == "eager":
        hidden = case.hidden(device)
        return lambda query, key, value: _eager(query, key, value, hidden)
    window = None if case.left is None else (case.left, 0)
    return lambda q, k, v: flash_attention(q, k, v, is_causal=case.is_causal, window=window, enable_gqa=shared)


def _packed(provider: str, case: Case, device: torch.device) -> Attention:
    starts, longest = torch.tensor([0, *case.lengths], device=device).cumsum(0, dtype=torch.int32), case.length

    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        tensors = (query, key, value, starts, starts)
        if provider == OURS:
            return attention_varlen(*tensors, max_seqlen_q=longest, max_seqlen_k=longest, is_causal=case.is_causal)
        from torch.nn.attention.varlen import varlen_attn

        return varlen_attn(*tensors, longest, longest, window_size=(-1, 0 if case.is_causal else -1))

    return call


def _pinned(kind: SDPBackend, is_causal: bool, enable_gqa: bool) -> Attention:
    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(kind):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=enable_gqa)

    return call


def _flex(case: Case, device: torch.device) -> Attention:
    """FlexAttention, compiled for this case alone; where it is not compiled it raises, and is never timed unfused."""
    from torch._functorch import config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def visible(batch: Any, head: Any, row: Any, column: Any) -> Any:
        near = True if case.left is None else row - column <= case.left
        return (row >= column) & near

    banded = case.is_causal or case.left is not None
    blocks = create_block_mask(visible, None, None, case.queries, case.length, device=str(device)) if banded else None

    def fused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, blocks: Any) -> Any:
        if not torch.compiler.is_compiling():  # never so while dynamo traces; only a fall back to Python comes here
            raise RuntimeError("FlexAttention was not compiled; its unfused form is not measured")
        return flex_attention(query, key, value, block_mask=blocks, enable_gqa=case.heads != case.kv_heads)

    torch._dynamo.reset()  # else the ninth size of one function is not compiled any more
    compiled = torch.compile(fused, dynamic=False, fullgraph=True)

    def call(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        with config.patch(donated_buffer=False):  # the backward pass is timed over and over on one graph
            return compiled(query, key, value, blocks)

    return call


def _eager(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
    scores = (query @ key.mT) * query.shape[-1] ** -0.5
    return (scores if hidden is None else scores.masked_fill(hidden, -torch.inf)).softmax(-1) @ value


def expected(case: Case, tensors: Tensors, *, with_gradients: bool) -> list[torch.Tensor]:
    """Return the output, and if asked for the gradients of query, key and value: eager in float32, a few heads at a time."""
    if case.shortest is not None:
        each = []
        for length, *alone in zip(case.lengths, *(tensor.split(case.lengths) for tensor in tensors), strict=True):
            one = replace(case, batch=1, length=length, shortest=None)
            each.append(expected(one, tuple(part.transpose(0, 1)[None] for part in alone), with_gradients=with_gradients))
        return [torch.cat([one[0].transpose(0, 1) for one in of_each]) for of_each in zip(*each, strict=True)]
    group = case.heads // case.kv_heads
    heads = [tensor.detach().reshape(case.batch * case.kv_heads, -1, *tensor.shape[2:]) for tensor in tensors]  # (n, group or 1, len, d)
    hidden = case.hidden(tensors[0].device)
    some = max(1, SCORES_AT_ONCE // (group * case.queries * case.length))
    parts = []
    for query, key, value, d_output in zip(*(tensor.split(some) for tensor in heads), strict=True):
        wide = [tensor.float().requires_grad_() for tensor in (query, key, value)]
        output = _eager(wide[0], wide[1], wide[2], hidden)
        gradients = torch.autograd.grad(output, wide, d_output.float()) if with_gradients else ()
        parts.append([output.detach(), *gradients])
    shapes = [tensors[3].shape, *(tensor.shape for tensor in tensors[:3])]
    return [torch.cat(part).reshape(shape) for part, shape in zip(zip(*parts, strict=True), shapes, strict=False)]


def relative_error(found: Tensors | list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    """Return the largest of |found - wanted| / |wanted|, in the Frobenius norm, over the tensors; NaN if one holds a NaN."""
    errors = [(ours.detach().float() - right).norm() / right.norm() for ours, right in zip(found, wanted, strict=True)]
    return float(torch.stack(errors).max())
