"""Places inside a model where one may look at what passes, or put something else in its stead."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from jaxtyping import Shaped
from torch import Tensor, nn

Hook: TypeAlias = Callable[[Tensor], Any]


class Place(nn.Module):
    """Passes a tensor on as it is; a hook sees it, and what the hook returns, unless that is None, goes on in its stead.

    `read_only`: nothing may go on in its stead, because nothing reads it any more.

    >>> import torch
    >>> place, seen = Place(), []
    >>> with hooked(nn.Sequential(place), {"0": seen.append}):
    ...     _ = place(torch.ones(2))
    >>> seen, place.hooks
    ([tensor([1., 1.])], [])
    """

    def __init__(self, *, read_only: bool = False) -> None:
        super().__init__()
        self.read_only = read_only
        self.hooks: list[Hook] = []

    def forward(self, x: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
        """Return the tensor, or what a hook put in its stead.

        Raises ValueError if that is no tensor of this shape, or if the place is for looking only.
        """
        for hook in self.hooks:
            found = hook(x)
            if found is not None and self.read_only:
                raise ValueError(f"a hook must return None where one may only look; got {type(found).__name__}")
            if found is not None and getattr(found, "shape", None) != x.shape:
                what = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
                raise ValueError(f"a hook must return None or a tensor of shape {tuple(x.shape)}; got {what}")
            x = x if found is None else found
        return x


@contextmanager
def hooked(model: nn.Module, hooks: Mapping[str, Hook]) -> Iterator[None]:
    """Let hooks see what passes the places of a model, for as long as the block behind `with` runs.

    `hooks`: name of a place, as in `model.named_modules()`, to a function of its tensor. To look, return None; to ablate, return a
    tensor of the same shape, such as one with a head set to 0, or to its mean.

    Raises ValueError if there is no place of a name; the message lists those there are.
    """
    places = {name: module for name, module in model.named_modules() if isinstance(module, Place)}
    for name in hooks:
        if name not in places:
            raise ValueError(f"hooks must name places of the model, {', '.join(places)}; got {name!r}")
    for name, hook in hooks.items():
        places[name].hooks.append(hook)
    try:
        yield
    finally:
        for name, hook in hooks.items():
            places[name].hooks.remove(hook)
