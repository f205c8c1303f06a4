"""The figures of lesson softmax say what their numbers say, in picture and words, and refuse numbers that contradict the words."""

import math

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.simplex import on_simplex
from attn_course.figures.words import listed, short
from tests.figures.support import assert_sound, decode, ink_touches_the_edge


def naive_softmax(scores, temperature=1.0) -> np.ndarray:
    """Loops over math.exp: the oracle of these tests, for scores that cannot overflow."""
    terms = [math.exp(score / temperature) for score in scores]
    return np.array([term / sum(terms) for term in terms])


def naive_jacobian(weights) -> np.ndarray:
    return np.array([[s_i * ((i == j) - s_j) for j, s_j in enumerate(weights)] for i, s_i in enumerate(weights)])


X = np.linspace(-4, 4, 41)
SCORES = np.array([1.0, 2.0, 0.0])
WEIGHTS = naive_softmax([2.0, 1.0, 0.0, -1.0])


def shares(f, shift):
    return [f(x + shift) / (f(x + shift) + f(shift)) for x in X]


def draw_maps(**options):
    maps = {"exp(x)": math.exp, "x² + 1": lambda x: x * x + 1}
    figures.softmax_maps(X, {name: [shares(f, 0.0), shares(f, 3.0)] for name, f in maps.items()}, shift=3.0, **options)


def draw_simplex(**options):
    points = figures.simplex_grid(30)
    entropy = [-sum(p * math.log(p) for p in point if p > 0) for point in points]
    path = [naive_softmax(SCORES, t) for t in (0.05, 0.3, 1.0, 5.0, 1000.0)]
    options = {"temperature": 1.0, "scores": SCORES, **options}
    figures.simplex_entropy(points, points @ SCORES + entropy, path, naive_softmax(SCORES), **options)


def draw_lse(**options):
    top = np.maximum(X, 0)
    figures.lse_bounds(X, [math.log(math.exp(x) + 1) for x in X], top, top + math.log(2), **options)


def draw_jacobian(**options):
    figures.jacobian_heatmap(WEIGHTS, naive_jacobian(WEIGHTS), **options)


def draw_saturation(**options):
    beta = np.geomspace(0.1, 40, 23)
    rows = [naive_softmax(b * np.array([1.0, 0.6, 0.1])) for b in beta]
    norm = [np.linalg.norm(naive_jacobian(s), 2) for s in rows]
    bound = [1 - sum(s * s) for s in rows]
    entropy = [-sum(s * np.log(s)) for s in rows]
    figures.saturation(beta, norm, bound, entropy, max_entropy=math.log(3), **options)


def draw_temperatures(**options):
    temperatures = [0.5, 1.0, 4.0]
    z = [2.0, 1.0, 0.0, -1.0]
    figures.temperature_bars(z, [naive_softmax(z, t) for t in temperatures], temperatures, **options)


def draw_ranges(**options):
    figures.overflow_ranges(["float16", "float64"], [-17.3, -745.1], [11.08, 709.78], **options)


FIGURES = [draw_maps, draw_simplex, draw_lse, draw_jacobian, draw_saturation, draw_temperatures, draw_ranges]


@pytest.mark.parametrize("draw", FIGURES)
def test_each_is_small_whole_not_blank_and_the_same_every_time(shown, draw):
    assert_sound(shown, draw)


@pytest.mark.parametrize("draw", FIGURES)
def test_each_takes_its_own_words_and_refuses_poor_ones(shown, draw):
    alt = "Words of the lesson that replace those made from the numbers."
    draw(alt=alt, title="A finding of the lesson")
    assert shown.picture.alt == alt
    with pytest.raises(ValueError, match="alt must be a text of at least 8 words"):
        draw(alt="too few")
    with pytest.raises(ValueError, match="title must be a text of at least 3 words"):
        draw(title="Softmax")


@pytest.mark.parametrize(
    ("draw", "facts"),
    [
        (draw_maps, ["coincide for exp(x)", "x² + 1 by up to 0.82", "shift of both scores by 3"]),
        (draw_simplex, ["scores 1.0, 2.0 and 0.0", "maximum at weights 0.24, 0.67 and 0.09", "from weights 0.00, 1.00 and 0.00"]),
        (draw_lse, ["At x = 0 it lies 0.69 above", "at x = 4 only 0.018 above"]),
        (draw_jacobian, ["0.64, 0.24, 0.09 and 0.03", "0.23, 0.18, 0.08 and 0.03", "−0.15", "Row sums are 0.00, 0.00, 0.00 and 0.00"]),
        (draw_saturation, ["rises to 0.40 at β = 1.5", "falls to below 10⁻⁶", "from 1.10 to 0.00 nats"]),
        (draw_temperatures, ["T = 0.5: 0.86, 0.12, 0.02 and 0.00", "T = 4: 0.35, 0.27, 0.21 and 0.17"]),
        (draw_ranges, ["float16: −17.3 to 11.1", "float64: −745.1 to 709.8"]),
    ],
)
def test_the_words_hold_the_numbers(shown, draw, facts):
    draw()
    for fact in facts:
        assert fact in shown.picture.alt


def test_the_title_about_exp_turns_when_another_map_is_unchanged_too(shown):
    figures.softmax_maps(X, {"a map": [X, X + 0.25], "one more": [X, 2 * X]}, shift=1.0)
    assert "coincide for no map" in shown.picture.alt


def test_the_hidden_variant_gives_no_temperature_away(shown):
    draw_temperatures(hide_temperatures=True)
    assert "T =" not in shown.picture.alt
    assert "A: 0.86, 0.12, 0.02 and 0.00." in shown.picture.alt
    assert "4.0" not in shown.picture.alt
    draw_temperatures()
    assert shown[0].png != shown[2].png


def test_a_norm_above_its_bound_is_refused_because_the_words_would_lie(shown):
    with pytest.raises(ValueError, match=r"norm must exceed neither bound nor one half; got a norm of 0.700"):
        figures.saturation([1.0, 2.0], [0.3, 0.7], [0.8, 0.9], [1.0, 0.5], max_entropy=1.1)
    assert shown == []


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: figures.softmax_maps(X, {"f": [X]}, shift=1.0),
            r"shares must map names to arrays of shape \(2, 41\); got \{'f': \(1, 41\)\}",
        ),
        (lambda: figures.softmax_maps(X, {}, shift=1.0), r"shares must map names to arrays of shape \(2, 41\); got none"),
        (lambda: draw_simplex(scores=[1.0, 2.0]), r"scores must have shape \(3,\); got \(2,\)"),
        (lambda: figures.lse_bounds(X, X[1:], X, X), r"lse must have shape \(41,\); got \(40,\)"),
        (lambda: figures.jacobian_heatmap(WEIGHTS, np.eye(3)), r"weights must have shape \(3,\); got \(4,\)"),
        (lambda: figures.jacobian_heatmap(WEIGHTS, np.ones((4, 5))), r"jacobian must have shape \(4, 4\); got \(4, 5\)"),
        (lambda: figures.temperature_bars([1.0, 2.0], np.ones((2, 3)), [1.0, 2.0]), r"weights must have shape \(2, 2\); got \(2, 3\)"),
        (lambda: figures.overflow_ranges(["float16"], [-1.0], [1.0, 2.0]), r"highest must have shape \(1,\); got \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shown, draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
    assert shown == []


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
    path = [naive_softmax(scores, t) for t in (0.05, 1.0, 1000.0)]
    points = figures.simplex_grid(12)
    figures.simplex_entropy(points, points @ scores, path, path[1], temperature=1.0, scores=scores)
    assert not ink_touches_the_edge(decode(shown.picture.png))


def test_numbers_in_prose():
    assert listed([1.0]) == "1.00"
    assert listed([1.0, -0.5], 1) == "1.0 and −0.5"
    assert [short(value) for value in (0.0, 0.5, -4.0, 2.04, 123.4, 4.26e-7)] == ["0", "0.5", "−4", "2", "123", "4.3 · 10⁻⁷"]
