"""Fast weights with steps up to 2: reflections, what they keep track of, and what no step below 1 can."""

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import unit
from attn_course.formulas import column, columns, vector
from attn_course.reference import delta_product_attention, delta_rule_attention

claim = about("O7")


# ---- the same key again and again
@claim("powers-of-an-erasure", rests_on="erase-then-write delta-transition-norm", may_be="negative")
def _(normal, rng, n, d_k, draw):
    r"""\bigl( I - \beta\, k k^\top \bigr)^{n} = I - \bigl( 1 - (1 - \beta)^n \bigr)\, k k^\top
    where |k| = 1
    Along k each erasure leaves 1 - beta. Below beta = 1 that shrinks; above, it changes its sign; at 2 it never shrinks.
        n times as much: \bigl( 1 - (1 - \beta)^n \bigr)\, -> n\, \beta\,
        never past zero: (1 - \beta)^n \bigr) -> |1 - \beta|^n \bigr)
        erased at once: \bigl( 1 - (1 - \beta)^n \bigr)\, k k^\top -> k k^\top
    """
    return {"k": column(unit(normal(d_k))), r"\beta": (rng.uniform(0.2, 0.9), rng.uniform(1.1, 1.8), 2.0)[draw], "n": n}


@claim("steps-below-one-settle", rests_on="powers-of-an-erasure")
def _(normal, rng, n, d_k, draw):
    r"""\| A^{n+1} - A^n \|_2 \le \frac{n^n}{(n + 1)^{n+1}}, \qquad A = \alpha\, \bigl( I - \beta\, k k^\top \bigr)
    where |k| = 1 ;; 0 <= alpha <= 1, 0 <= beta <= 1
    Eigenvalues x from 0 to 1 give x^n (1 - x), at most at x = n / (n + 1).
        exponentially fast: \frac{n^n}{(n + 1)^{n+1}} -> 2^{-n}
        like the square: \frac{n^n}{(n + 1)^{n+1}} -> \frac{1}{(n + 1)^2}
        it stands still: \le \frac{n^n}{(n + 1)^{n+1}} -> = 0

    After n or n + 1 equal tokens the state is nearly the same, however gates and steps are learned: it cannot tell even from odd, which
    at beta = 2 it tells by its sign. Below 1 / (e n) for every n, so numbers of few digits soon round the difference away.
    """
    alpha, beta = ((rng.uniform(0.2, 0.7), rng.uniform(0, 1)), (1, 1 / (n + 1)), (n / (n + 1), 1))[draw]
    return {"k": column(unit(normal(d_k))), r"\alpha": alpha, r"\beta": beta, "n": n}


# ---- steps of 2
@claim("parity-by-reflection", rests_on="powers-of-an-erasure")
def _(normal, rng, T):
    r"""s_t = (-1)^{\sum_{j \le t} x_j}\, s_0
    where x_t is 0 or 1 ;; d_k = d_v = 1, key 1, value 0, beta_t = 2 x_t
    Each one turns the state round, for ever and without loss: one number of memory holds the parity of any length.
        the last bit alone: \sum_{j \le t} x_j -> x_t
        erased by the first one, as with steps of 1: (-1)^{\sum_{j \le t} x_j}\, -> \Bigl[ \sum_{j \le t} x_j = 0 \Bigr]\,
        the bits before t: j \le t -> j < t
    """
    x = rng.permutation(np.arange(T) % 3 > 0).astype(float)
    key, beta, start = np.ones((T, 1)), 2 * x[:, None], normal(1, 1)
    runs = [delta_rule_attention(key[:t], key[:t], 0 * key[:t], beta[:t], initial_state=start, return_state=True)[1] for t in range(T + 1)]
    return {"x": vector(x), "s": vector(np.ravel(runs), start=0, states=True)}


@claim("exchange-by-reflection", rests_on="gated-erase-then-write")
def _(normal, rng, d_k, d_v):
    r"""S' = \bigl( I - 2\, k k^\top \bigr)\, S, \qquad k = \frac{e_a - e_b}{\sqrt{2}}
    where e_a, e_b: columns of the identity ;; S': rows a and b of S exchanged
    A mirror between two axes exchanges them. Exchanges make every permutation: the state follows a game of cups of any length.
        a step of 1 erases the difference of the two: - 2\, k k^\top -> - k k^\top
        not of length 1: \frac{e_a - e_b}{\sqrt{2}} -> e_a - e_b
        the sum of the two places: e_a - e_b -> e_a + e_b
    """
    S, (a, b) = normal(d_k, d_v), rng.permutation(d_k)[:2]
    places = [{a: b, b: a}.get(row, row) for row in range(d_k)]
    return {"e_a": column(np.eye(d_k)[a]), "e_b": column(np.eye(d_k)[b]), "S": S, "S'": S[places]}


@claim("two-reflections-rotate", rests_on="exchange-by-reflection")
def _(rng):
    r"""\bigl( I - 2\, k k^\top \bigr) \bigl( I - 2\, h h^\top \bigr)
        = \begin{pmatrix} \cos(2 \theta - 2 \varphi) & -\sin(2 \theta - 2 \varphi) \\
        \sin(2 \theta - 2 \varphi) & \cos(2 \theta - 2 \varphi) \end{pmatrix}
    where k = (cos theta, sin theta), h = (cos phi, sin phi)
    By twice the angle between the mirrors: with pi / m between them a state counts modulo m, which one symmetric step cannot.
        by the angle between them: all 2 \theta - 2 \varphi -> \theta - \varphi
        the other way round: all 2 \theta - 2 \varphi -> 2 \varphi - 2 \theta
        a mirror again: & - -> & ;; & \cos -> & -\cos
    """
    theta, phi = rng.uniform(-3, 3, size=2)
    unit = {name: column([np.cos(angle), np.sin(angle)]) for name, angle in (("k", theta), ("h", phi))}
    return unit | {r"\theta": theta, r"\varphi": phi}


@claim("two-steps-a-token", rests_on="gated-erase-then-write two-reflections-rotate", may_be="negative")
def _(normal, rng, d_k, d_v):
    r"""S_t = H_2 H_1\, \mathrm{diag}(a)\, S_{t-1} + \beta_1\, H_2\, k_1 v_1^\top + \beta_2\, k_2 v_2^\top, \qquad
        H_j = I - \beta_j\, k_j k_j^\top
    A sequence twice as long in which only every other step decays. The product of two erasures need not be symmetric.
        the steps in the other order: H_2 H_1 -> H_1 H_2
        the first write left alone: H_2\, ->
        a decay at each step: = H_2 -> = H_2\, \mathrm{diag}(a)\,
    """
    K, V, beta = normal(1, 2, d_k) / np.sqrt(d_k), normal(1, 2, d_v), rng.uniform(0.3, 2, size=(1, 2, 1))
    a, start = rng.uniform(0.3, 1, size=(1, d_k)), normal(d_k, d_v)
    _, S = delta_product_attention(a, K, V, beta, log_decay=np.log(a), initial_state=start, return_state=True)
    lists = {"k": columns(K[0]), "v": columns(V[0]), r"\beta": vector(beta[0, :, 0]), "a": vector(a[0])}
    return lists | {"S_{t-1}": start, "S_t": S}
