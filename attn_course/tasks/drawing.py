"""Cases that several lessons draw."""

import numpy as np

FAR_BELOW = -(2.0**40)  # about -10^12


def at_one_score(arrays: dict[str, np.ndarray], score: float = FAR_BELOW) -> dict[str, np.ndarray]:
    """Give all pairs of a query and a key one score, a power of two but for its sign, exactly in every precision.

    `arrays`: with `query` and `key`, whose rows have 4 features, so that the scale is 1/2. They are changed.
    """
    arrays["query"][...] = np.array([2.0**20, 0.0, 0.0, 0.0])
    arrays["key"][..., 0] = 2.0 * score / 2.0**20
    return arrays
