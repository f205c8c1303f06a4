"""The names of the weights in the lesson's own model."""

from collections.abc import Mapping

from torch import Tensor

NAMES = {
    "attention.w_": "w_",
    "feed_forward.w_": "w_",
    "w_tokens": "table",
    "norm_attention.weight": "gain_attention",
    "norm_feed_forward.weight": "gain_hidden",
    "norm.weight": "gain",
}


def renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of the course's Transformer under the names that the lesson's model gives them."""
    found = {}
    for name, tensor in state.items():
        for course, own in NAMES.items():
            name = name.replace(course, own)
        found[name] = tensor
    return found
