"""The figures of lesson softmax say what their numbers say, in picture and words, and refuse numbers that contradict the words."""

import math
from functools import partial

import numpy as np
import pytest

from attn_course.figures.words import listed, short
from attn_course.lessons.softmax import figures
from attn_course.lessons.softmax.figures_simplex import on_simplex
from tests.figures.support import Pictures, decode, ink_touches_the_edge


def naive_softmax(scores, temperature=1.0) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests, for scores that cannot overflow."""
    terms = [math.exp(score / temperature) for score in scores]
    return np.array([term / sum(terms) for term in terms])


def naive_jacobian(weights) -> np.ndarray:
    return np.array([[s_i * ((i == j) - s_j) for j, s_j in enumerate(weights)] for i, s_i in enumerate(weights)])


X = np.linspace(-4, 4, 41)
TOP = np.maximum(X, 0)
SCORES = np.array([1.0, 2.0, 0.0])
WEIGHTS = naive_softmax([2.0, 1.0, 0.0, -1.0])
GRID = figures.simplex_grid(30)
ENTROPY = [-sum(p * math.log(p) for p in point if p > 0) for point in GRID]
PATH = [naive_softmax(beta * SCORES) for beta in (-20.0, -1.0, 0.0, 1.0, 20.0)]
BETA = np.geomspace(0.1, 40, 23)
ROWS = [naive_softmax(b * np.array([1.0, 0.6, 0.1])) for b in BETA]
TEMPERATURES = [0.5, 1.0, 4.0]


def shares(f, shift):
    return [f(x + shift) / (f(x + shift) + f(shift)) for x in X]


SIMPLEX = partial(figures.simplex_entropy, GRID, ENTROPY, PATH, PATH[3], wanted=float(PATH[3] @ SCORES))
BARS = partial(figures.temperature_bars, [2.0, 1.0, 0.0, -1.0])
AT_TEMPERATURES = partial(BARS, [naive_softmax([2.0, 1.0, 0.0, -1.0], t) for t in TEMPERATURES], TEMPERATURES)

DRAWN = [
    (
        partial(
            figures.softmax_maps,
            X,
            {name: [shares(f, 0.0), shares(f, 3.0)] for name, f in {"exp(x)": math.exp, "x² + 1": lambda x: x * x + 1}.items()},
            shift=3.0,
            mark=3.0,
        ),
        ["coincide for exp(x)", "x² + 1 by up to 0.82", "shift of both scores by 3", "x² + 1 0.91 and 0.79"],
    ),
    (partial(figures.softmax_maps, X, {"a map": [X, X + 0.25], "one more": [X, 2 * X]}, shift=1.0), ["coincide for no map"]),
    (
        partial(SIMPLEX, scores=SCORES),
        [
            "scores 1.0, 2.0 and 0.0",
            "meets the line at weights 0.24, 0.67 and 0.09",
            "from weights 0.00, 0.00 and 1.00",
            "average score 1.6",
        ],
    ),
    (
        partial(figures.token_weights, ["the", "cat", "it", "was"], [2.0, 1.0, 0.0, -1.0], WEIGHTS),
        ["the 2, cat 1, it 0, was −1", "the 0.644, cat 0.237, it 0.087, was 0.032"],
    ),
    (
        partial(figures.contest, [0.0, 1.0, 2.0], [[1.0, 1.0, 2.0], [0.5, 1.5, 2.5]], [0.5, 1.0, 2.0], [0.5, 0.75, 0.875]),
        ["from 0 to 2", "in 2 contests", "from 0.50 to 1.00", "differ by at most 0.125"],
    ),
    (
        partial(figures.lse_bounds, X, [math.log(math.exp(x) + 1) for x in X], TOP, TOP + math.log(2)),
        ["At x = 0 it lies 0.69 above", "at x = 4 only 0.018 above"],
    ),
    (
        partial(figures.jacobian_heatmap, WEIGHTS, naive_jacobian(WEIGHTS)),
        ["0.64, 0.24, 0.09 and 0.03", "0.23, 0.18, 0.08 and 0.03", "−0.15", "Row sums are 0.00, 0.00, 0.00 and 0.00"],
    ),
    (
        partial(
            figures.saturation,
            BETA,
            [np.linalg.norm(naive_jacobian(s), 2) for s in ROWS],
            [1 - sum(s * s) for s in ROWS],
            [-sum(s * np.log(s)) for s in ROWS],
            max_entropy=math.log(3),
        ),
        ["rises to 0.40 at β = 1.5", "falls to below 10⁻⁶", "from 1.10 to 0.00 nats"],
    ),
    (AT_TEMPERATURES, ["T = 0.5: 0.86, 0.12, 0.02 and 0.00", "T = 4: 0.35, 0.27, 0.21 and 0.17"]),
    (
        partial(figures.overflow_ranges, ["float16", "float64"], [-17.3, -745.1], [11.08, 709.78]),
        ["float16: −17.3 to 11.1", "float64: −745.1 to 709.8"],
    ),
]
REFUSED = [
    (partial(figures.softmax_maps, X, {"f": [X]}, shift=1.0), r"shares\['f'\] must have shape \(2, 41\); got \(1, 41\)"),
    (partial(figures.softmax_maps, X, {}, shift=1.0), r"shares must hold at least one array of shape \(2, 41\); got none"),
    (partial(SIMPLEX, scores=[1.0, 2.0]), r"scores must have shape \(3,\); got \(2,\)"),
    (partial(SIMPLEX, scores=SCORES[::-1]), r"optimum must have the wanted average 1.6; got 1.4"),
    (partial(figures.token_weights, ["a", "b"], [1.0, 2.0], [1.0]), r"weights must have shape \(2,\); got \(1,\)"),
    (partial(figures.contest, X, [X[1:]], X, X), r"readings must have shape \(1, 41\); got \(1, 40\)"),
    (partial(figures.contest, X, [X], X, X[1:]), r"share must have shape \(41,\); got \(40,\)"),
    (partial(figures.lse_bounds, X, X[1:], X, X), r"lse must have shape \(41,\); got \(40,\)"),
    (partial(figures.jacobian_heatmap, WEIGHTS, np.eye(3)), r"jacobian must have shape \(4, 4\); got \(3, 3\)"),
    (partial(BARS, np.ones((2, 3)), [1.0, 2.0]), r"weights must have shape \(2, 4\); got \(2, 3\)"),
    (partial(figures.overflow_ranges, ["float16"], [-1.0], [1.0, 2.0]), r"highest must have shape \(1,\); got \(2,\)"),
    (
        partial(figures.saturation, [1.0, 2.0], [0.3, 0.7], [0.8, 0.9], [1.0, 0.5], max_entropy=1.1),
        r"norm must exceed neither bound nor one half; got a norm of 0.700",  # the words would lie
    ),
]


class TestPictures(Pictures):
    """The map, log-sum-exp, the derivative, temperature."""


def test_the_grid_covers_the_triangle_once():
    points = figures.simplex_grid(7)
    assert points.shape == (36, 3)
    assert len({tuple(point) for point in points.tolist()}) == 36
    np.testing.assert_allclose(points.sum(axis=1), 1.0, rtol=1e-15)
    with pytest.raises(ValueError, match="steps must be at least 1; got 0"):
        figures.simplex_grid(0)


def test_points_off_the_triangle_are_refused():
    np.testing.assert_allclose(on_simplex("points", [[1 / 3, 1 / 3, 1 / 3]]), [[0.5, math.sqrt(3) / 6]])
    with pytest.raises(ValueError, match=r"path must have nonnegative rows that sum to 1; got \[0.5, 0.6, 0.0\]"):
        on_simplex("path", [[0.2, 0.3, 0.5], [0.5, 0.6, 0.0]])
    with pytest.raises(ValueError, match=r"path must have rows of 3 entries; got shape \(1, 2\)"):
        on_simplex("path", [[0.5, 0.5]])


@pytest.mark.parametrize("winner", range(3))
def test_labels_stay_in_the_picture_wherever_the_maximum_lies(shown, winner):
    scores = np.roll([3.0, 0.5, 0.0], winner)
    path = [naive_softmax(beta * scores) for beta in (-20.0, 1.0, 20.0)]
    points = figures.simplex_grid(12)
    figures.simplex_entropy(points, points @ scores, path, path[1], scores=scores, wanted=float(path[1] @ scores))
    assert not ink_touches_the_edge(decode(shown.picture.png))


def test_numbers_in_prose():
    assert listed([1.0]) == "1.00"
    assert listed([1.0, -0.5], 1) == "1.0 and −0.5"
    assert [short(value) for value in (0.0, 0.5, -4.0, 2.04, 123.4, 4.26e-7)] == ["0", "0.5", "−4", "2", "123", "4.3 · 10⁻⁷"]
