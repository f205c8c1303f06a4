"""What the lesson absorption gives its reader: the weights of a small latent layer, and matrices that take a rotary part along."""

import numpy as np


def drawn_weights(n_heads: int, d_model: int, d_latent: int, d_head: int, d_rope: int) -> dict[str, np.ndarray]:
    """Draw the weights of a latent layer: one rotary key for all heads, and everything else but `down` and `output` a matrix for each."""
    rng = np.random.default_rng(0)
    shapes = {"down": (d_model, d_latent), "key_rope": (1, d_model, d_rope)}
    shapes |= {"query": (n_heads, d_model, d_head), "query_rope": (n_heads, d_model, d_rope)}
    shapes |= dict.fromkeys(("up_key", "up_value"), (n_heads, d_latent, d_head))
    shapes["output"] = (n_heads * d_head, d_model)
    return {name: rng.normal(size=shape) / 4 for name, shape in shapes.items()}


def widened(up_key: np.ndarray, up_value: np.ndarray, d_rope: int) -> tuple[np.ndarray, np.ndarray]:
    """Widen both for latent vectors with a rotary key behind them: the key hands it on as it is, the value drops it.

    (H, d_c, d_k) and (H, d_c, d_v) -> (H, d_c + d_rope, d_k + d_rope) and (H, d_c + d_rope, d_v).
    """
    key = np.pad(up_key, ((0, 0), (0, d_rope), (0, d_rope)))
    key[:, -d_rope:, -d_rope:] = np.eye(d_rope)
    return key, np.pad(up_value, ((0, 0), (0, d_rope), (0, 0)))
