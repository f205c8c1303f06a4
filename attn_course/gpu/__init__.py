"""Attention in torch that is fast where it can be and means the same everywhere: one function, several backends.

``from attn_course.gpu import attention`` takes the keywords of `attn_course.reference.attention` on torch tensors;
`attention_varlen` takes sequences of different lengths, packed; `latent_decode` decodes with a cache of latent vectors.
The names below are looked up when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attn_course.gpu.latent import latent_decode
    from attn_course.gpu.ops import attention, explain
    from attn_course.gpu.varlen import attention_varlen

__all__ = ["attention", "attention_varlen", "explain", "latent_decode"]
_PLACES = {"attention": "ops", "attention_varlen": "varlen", "explain": "ops", "latent_decode": "latent"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"attn_course.gpu.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
