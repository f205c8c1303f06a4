"""The attention of SmolLM2 as the viewer shows it: weights, and the norm of what each head brings; of some texts stored with the course.

`python -m attn_course.language.maps` writes smollm2_maps.npz anew, with the model of `attn-course model`.
"""

from pathlib import Path
from typing import Any

import numpy as np

from attn_course.language.getting import SHA256

PATH = Path(__file__).with_name("smollm2_maps.npz")
TEXTS = (
    "The cat sat because it was tired.",
    "Mary and John went home. John gave a drink to",
    "The red fox saw a bird. The red fox",
)
EPSILON = 1e-5  # of the RMS norm


def smollm2_maps(text: str) -> dict[str, Any]:
    """Return tokens, weights and values of SmolLM2 on a text, for `attention_viewer(**smollm2_maps(text))`.

    The values are norms of what a head's output would be with all weight on one token: its value times the head's rows of W_O. Those of
    TEXTS are stored; raises ModelMissing for others where the model is not here.
    """
    if text in TEXTS:
        place = TEXTS.index(text)
        with np.load(PATH) as kept:
            if kept["model_sha256"] == SHA256:
                return {name: kept[f"{name}_{place}"] for name in ("tokens", "weights", "values")}
    from attn_course.language.model import language_model

    return computed(language_model(), text)


def computed(model: Any, text: str) -> dict[str, Any]:
    """Return the same from the model itself."""
    weights = model.maps(text)
    stream = model.residual(text).astype(np.float64)
    norms = np.empty(weights.shape[:3])
    for number, (n_heads, _, _) in enumerate(map(np.shape, weights)):
        layer = model.layer(number)
        x = stream[number] / np.sqrt((stream[number] ** 2).mean(axis=-1, keepdims=True) + EPSILON) * layer.gain
        w_output = layer.w_output.reshape(n_heads, -1, layer.w_output.shape[-1])
        value = (x @ layer.w_value).reshape(len(x), -1, w_output.shape[1]).swapaxes(0, 1)
        value = value.repeat(n_heads // len(value), axis=0)  # key heads are shared
        norms[number] = np.linalg.norm(value @ w_output, axis=-1)
    return {"tokens": np.array(model.tokens(text)), "weights": weights, "values": norms.astype(np.float32)}


def kept_of(model: Any) -> dict[str, Any]:
    """Return the arrays of smollm2_maps.npz."""
    found = {f"{name}_{place}": array for place, text in enumerate(TEXTS) for name, array in computed(model, text).items()}
    return found | {"model_sha256": SHA256}


if __name__ == "__main__":
    from attn_course.language.model import language_model

    np.savez_compressed(PATH, **kept_of(language_model()))
