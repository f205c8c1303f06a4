"""Writing: the rows that are read, the rows that are kept, and the chance of what is drawn."""

import itertools

import numpy as np

from attn_course.equations.core import about
from attn_course.formulas import function, vector
from attn_course.reference import attention

claim = about("M2")


@claim("rows-read-anew")
def _(n, m):
    r"""R = \sum_{t=n}^{n+m-1} t = m\, n + \frac{m\, (m - 1)}{2}
    where R: rows that are read to write m words behind n
    Without a cache every step reads the whole text so far, which is one word longer each time.
        the last word read too: m - 1)}{2} -> m + 1)}{2}
        every step reads the start only: m\, n + \frac{m\, (m - 1)}{2} -> m\, n
        every step reads the whole result: m\, n + \frac{m\, (m - 1)}{2} -> m\, (n + m)
    """
    text, read = [0] * n, 0
    for _ in range(m):
        read += len(text)
        text.append(0)
    return {"R": read, "n": n, "m": m}


@claim("new-rows-behind-kept", rests_on="decoding-equals-full-pass causal-prefix-invariance")
def _(normal, rng, T, d_k, d_v):
    r"""\mathrm{attention}(Q_{s:T},\, K_{1:T},\, V_{1:T}) = \mathrm{attention}(Q, K, V)_{s:T}
    where causal: query t sees keys 1 to t, on both sides ;; 1 <= s <= T
    The rows from s on need all keys and values, but none of the earlier queries.
        the kept words forgotten: K_{1:T},\, V_{1:T} -> K_{s:T},\, V_{s:T}
        kept keys with new values alone: Q_{s:T},\, K_{1:T} -> Q_{s:T},\, K_{1:s}
        the first rows: (Q, K, V)_{s:T} -> (Q, K, V)_{1:T-s+1}
    """
    Q, K, V = normal(T, d_k), normal(T, d_k), normal(T, d_v)
    behind = function(lambda Q, K, V: attention(Q, K, V, is_causal=True, q_offset=len(K) - len(Q)))
    return {r"\mathrm{attention}": behind, "Q": Q, "K": K, "V": V, "T": T, "s": int(rng.integers(1, T + 1))}


@claim("text-chance-is-product")
def _(rng, T):
    r"""P = \prod_{t=1}^{T} p_t, \qquad -\ln P = \sum_{t=1}^{T} (-\ln p_t)
    where p_t > 0: the probability of word t behind the words before it ;; P: that of the whole text, drawn word by word
    The chances of a chain of draws multiply, and the losses of its words add up.
        the chances added: \prod_{t=1}^{T} p_t, -> \sum_{t=1}^{T} p_t,
        the mean loss: = \sum_{t=1}^{T} (-\ln p_t) -> = \frac{1}{T} \sum_{t=1}^{T} (-\ln p_t)
        the least likely word alone: \prod_{t=1}^{T} p_t, -> \min_t p_t,
    """
    of_all = rng.dirichlet(np.ones(2**T)).reshape((2,) * T)  # what the texts of T words have, of two words
    text = tuple(rng.integers(2, size=T))
    so_far = [of_all[text[:t]].sum() for t in range(T + 1)]
    p = [later / earlier for earlier, later in itertools.pairwise(so_far)]
    return {"p": vector(p), "P": of_all[text], "T": T}
