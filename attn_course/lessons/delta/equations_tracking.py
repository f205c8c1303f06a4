"""Fast weights with steps up to 2: reflections, what they keep track of, and what no step below 1 can."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, columns, vector
from attn_course.reference import delta_product_attention, delta_rule_attention

equation = about("O7")


def _unit(rng: np.random.Generator, d_k: int) -> np.ndarray:
    key = rng.normal(size=d_k)
    return key / np.linalg.norm(key)


# ---- the same key again and again
@equation(
    "powers-of-an-erasure",
    r"\bigl( I - \beta\, k k^\top \bigr)^{n} = I - \bigl( 1 - (1 - \beta)^n \bigr)\, k k^\top",
    uses=["erase-then-write", "delta-transition-norm"],
    assumes=["|k| = 1"],
    wrong={
        "n times as much": r"I - \bigl( 1 - (1 - \beta)^n \bigr)\, k k^\top -> I - n\, \beta\, k k^\top",
        "never past zero": r"(1 - \beta)^n \bigr) -> |1 - \beta|^n \bigr)",
        "erased at once": r"\bigl( 1 - (1 - \beta)^n \bigr)\, k k^\top -> k k^\top",
    },
)
def the_same_key_erased_again(rng: np.random.Generator, n: int, d_k: int, draw: int) -> Givens:
    """Along k each erasure leaves 1 - beta. Below beta = 1 that shrinks; above, it changes its sign; at 2 it never shrinks."""
    return {"k": column(_unit(rng, d_k)), r"\beta": (rng.uniform(0.2, 0.9), rng.uniform(1.1, 1.8), 2.0)[draw], "n": n}


@equation(
    "steps-below-one-settle",
    r"\| A^{n+1} - A^n \|_2 \le \frac{n^n}{(n + 1)^{n+1}}, \qquad A = \alpha\, \bigl( I - \beta\, k k^\top \bigr)",
    uses=["powers-of-an-erasure"],
    assumes=["|k| = 1", "0 <= alpha <= 1, 0 <= beta <= 1"],
    wrong={
        "exponentially fast": r"\frac{n^n}{(n + 1)^{n+1}} -> 2^{-n}",
        "like the square": r"\frac{n^n}{(n + 1)^{n+1}} -> \frac{1}{(n + 1)^2}",
        "it stands still": r"\le \frac{n^n}{(n + 1)^{n+1}} -> = 0",
    },
)
def no_alternation_below_one(rng: np.random.Generator, n: int, d_k: int, draw: int) -> Givens:
    """Eigenvalues x from 0 to 1 give x^n (1 - x), at most at x = n / (n + 1).

    After n or n + 1 equal tokens the state is nearly the same, however gates and steps are learned: it cannot tell even from odd, which
    at beta = 2 it tells by its sign. Below 1 / (e n) for every n, so numbers of few digits soon round the difference away.
    """
    alpha, beta = ((rng.uniform(0.2, 0.7), rng.uniform(0, 1)), (1, 1 / (n + 1)), (n / (n + 1), 1))[draw]
    return {"k": column(_unit(rng, d_k)), r"\alpha": alpha, r"\beta": beta, "n": n}


# ---- steps of 2
@equation(
    "parity-by-reflection",
    r"s_t = (-1)^{\sum_{j \le t} x_j}\, s_0",
    uses=["powers-of-an-erasure"],
    assumes=["x_t is 0 or 1", "d_k = d_v = 1, key 1, value 0, beta_t = 2 x_t"],
    wrong={
        "the last bit alone": r"\sum_{j \le t} x_j -> x_t",
        "erased by the first one, as with steps of 1": r"(-1)^{\sum_{j \le t} x_j}\, -> \Bigl[ \sum_{j \le t} x_j = 0 \Bigr]\,",
        "the bits before t": r"j \le t -> j < t",
    },
)
def parity(rng: np.random.Generator, T: int) -> Givens:
    """Each one turns the state round, for ever and without loss: one number of memory holds the parity of any length."""
    x = rng.permutation(np.arange(T) % 3 > 0).astype(float)
    key, beta, start = np.ones((T, 1)), 2 * x[:, None], rng.normal(size=(1, 1))
    runs = [delta_rule_attention(key[:t], key[:t], 0 * key[:t], beta[:t], initial_state=start, return_state=True)[1] for t in range(T + 1)]
    return {"x": vector(x), "s": vector(np.ravel(runs), start=0, states=True)}


@equation(
    "exchange-by-reflection",
    r"S' = \bigl( I - 2\, k k^\top \bigr)\, S, \qquad k = \frac{e_a - e_b}{\sqrt{2}}",
    uses=["gated-erase-then-write"],
    assumes=["e_a, e_b: columns of the identity", "S': rows a and b of S exchanged"],
    wrong={
        "a step of 1 erases the difference of the two": r"- 2\, k k^\top -> - k k^\top",
        "not of length 1": r"\frac{e_a - e_b}{\sqrt{2}} -> e_a - e_b",
        "the sum of the two places": r"e_a - e_b -> e_a + e_b",
    },
)
def two_rows_change_places(rng: np.random.Generator, d_k: int, d_v: int) -> Givens:
    """A mirror between two axes exchanges them. Exchanges make every permutation: the state follows a game of cups of any length."""
    S, (a, b) = rng.normal(size=(d_k, d_v)), rng.permutation(d_k)[:2]
    places = [{a: b, b: a}.get(row, row) for row in range(d_k)]
    return {"e_a": column(np.eye(d_k)[a]), "e_b": column(np.eye(d_k)[b]), "S": S, "S'": S[places]}


@equation(
    "two-reflections-rotate",
    r"\bigl( I - 2\, k k^\top \bigr) \bigl( I - 2\, h h^\top \bigr) = \begin{pmatrix}"
    r" \cos(2 \theta - 2 \varphi) & -\sin(2 \theta - 2 \varphi) \\ \sin(2 \theta - 2 \varphi) & \cos(2 \theta - 2 \varphi) \end{pmatrix}",
    uses=["exchange-by-reflection"],
    assumes=["k = (cos theta, sin theta), h = (cos phi, sin phi)"],
    wrong={
        "by the angle between them": r"2 \theta - 2 \varphi -> \theta - \varphi",
        "the other way round": r"2 \theta - 2 \varphi -> 2 \varphi - 2 \theta",
        "a mirror again": r"& -\sin(2 \theta - 2 \varphi) \\ \sin(2 \theta - 2 \varphi) & \cos(2 \theta - 2 \varphi)"
        r" -> & \sin(2 \theta - 2 \varphi) \\ \sin(2 \theta - 2 \varphi) & -\cos(2 \theta - 2 \varphi)",
    },
)
def two_mirrors_turn(rng: np.random.Generator) -> Givens:
    """By twice the angle between the mirrors: with pi / m between them a state counts modulo m, which one symmetric step cannot."""
    theta, phi = rng.uniform(-3, 3, size=2)
    unit = {name: column([np.cos(angle), np.sin(angle)]) for name, angle in (("k", theta), ("h", phi))}
    return unit | {r"\theta": theta, r"\varphi": phi}


@equation(
    "two-steps-a-token",
    r"S_t = H_2 H_1\, \mathrm{diag}(a)\, S_{t-1} + \beta_1\, H_2\, k_1 v_1^\top + \beta_2\, k_2 v_2^\top, \qquad"
    r" H_j = I - \beta_j\, k_j k_j^\top",
    uses=["gated-erase-then-write", "two-reflections-rotate"],
    wrong={
        "the steps in the other order": r"H_2 H_1 -> H_1 H_2",
        "the first write left alone": r"\beta_1\, H_2\, k_1 v_1^\top -> \beta_1\, k_1 v_1^\top",
        "a decay at each step": r"H_2 H_1\, \mathrm{diag}(a) -> H_2\, \mathrm{diag}(a)\, H_1\, \mathrm{diag}(a)",
    },
)
def two_corrections_for_one_token(rng: np.random.Generator, d_k: int, d_v: int) -> Givens:
    """A sequence twice as long in which only every other step decays. The product of two erasures need not be symmetric."""
    K, V, beta = rng.normal(size=(1, 2, d_k)) / np.sqrt(d_k), rng.normal(size=(1, 2, d_v)), rng.uniform(0.3, 2, size=(1, 2, 1))
    a, start = rng.uniform(0.3, 1, size=(1, d_k)), rng.normal(size=(d_k, d_v))
    _, S = delta_product_attention(a, K, V, beta, log_decay=np.log(a), initial_state=start, return_state=True)
    lists = {"k": columns(K[0]), "v": columns(V[0]), r"\beta": vector(beta[0, :, 0]), "a": vector(a[0])}
    return lists | {"S_{t-1}": start, "S_t": S}
