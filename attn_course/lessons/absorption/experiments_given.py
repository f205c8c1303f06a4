"""What the lesson absorption gives its reader: the weights of a small latent layer, and matrices that take a rotary part along."""

import numpy as np
from jaxtyping import Float


def drawn_weights(n_heads: int, d_model: int, d_latent: int, d_head: int, d_rope: int) -> dict[str, np.ndarray]:
    """Draw the weights of a latent layer: one rotary key for all heads, and everything else but `down` and `output` a matrix for each."""
    rng = np.random.default_rng(0)
    shapes = {"down": (d_model, d_latent), "key_rope": (1, d_model, d_rope)}
    shapes |= {"query": (n_heads, d_model, d_head), "query_rope": (n_heads, d_model, d_rope)}
    shapes |= dict.fromkeys(("up_key", "up_value"), (n_heads, d_latent, d_head))
    shapes["output"] = (n_heads * d_head, d_model)
    return {name: rng.normal(size=shape) / 4 for name, shape in shapes.items()}


def widened(
    up_key: Float[np.ndarray, "n_heads d_latent d_head"], up_value: Float[np.ndarray, "n_heads d_latent d_v"], d_rope: int
) -> tuple[Float[np.ndarray, "n_heads wide d_query"], Float[np.ndarray, "n_heads wide d_v"]]:
    """Widen both for latent vectors with a rotary key behind them: the key hands it on as it is, the value drops it."""
    key = np.pad(up_key, ((0, 0), (0, d_rope), (0, d_rope)))
    key[:, -d_rope:, -d_rope:] = np.eye(d_rope)
    return key, np.pad(up_value, ((0, 0), (0, d_rope), (0, 0)))
