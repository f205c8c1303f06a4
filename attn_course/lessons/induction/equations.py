"""Induction: a head that looks for what came behind the same token before."""

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import index

claim = about("M2")


@claim("induction-score", rests_on="self-attention stream-is-a-sum")
def _(rng, T, n):
    r"""\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,]
    where rows of X: tokens t as one-hot vectors ;; a head of the block below copies each token to the position behind it: S X ;; j >= 2
    The key of j tells the token before it: who holds the same token now attends to what came next then, and copies it.
        without the block below: the token itself:
            t_{j-1} -> t_j
        the token behind: t_{j-1} -> t_{j+1}
        the queries are copied on, not the keys: X\, (S X)^\top -> (S X)\, X^\top
    """
    t = rng.integers(n, size=T)
    return {"X": np.eye(n)[t], "S": np.eye(T, k=-1), "t": t, "j": index(2, T)}
