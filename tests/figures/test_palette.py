"""Colours keep their meaning and can be told apart."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from attn_course.figures import palette
from attn_course.figures.drawing import contrast
from attn_course.figures.vector import THEMED

# Machado, Oliveira and Fernandes (2009), severity 1.0; they act on linear red, green, blue.
COLOUR_BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}


def lab(linear: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB under D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def seen_distance(first: str, second: str, matrix: np.ndarray) -> float:
    """How far apart two colours look (CIE 1976 distance) through the eyes that `matrix` describes."""
    seen = [
        lab(np.clip(matrix @ np.array([((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(colour)]), 1e-6, 1))
        for colour in (first, second)
    ]
    return float(np.linalg.norm(seen[0] - seen[1]))


@pytest.mark.parametrize("vision", COLOUR_BLINDNESS)
def test_query_key_value_and_weights_look_different_with_any_colour_vision(vision):
    four = (palette.QUERY, palette.KEY, palette.VALUE, palette.WEIGHTS)
    for first, second in itertools.combinations(four, 2):
        assert seen_distance(first, second, COLOUR_BLINDNESS[vision]) > 15


def test_the_distance_can_fail():
    assert seen_distance("#00A000", "#C04000", COLOUR_BLINDNESS["none"]) > 60
    assert seen_distance("#5C7A00", "#A06000", COLOUR_BLINDNESS["deuteranopia"]) < 15


def test_every_role_has_its_own_colour_of_okabe_and_ito():
    assert len(set(palette.ROLES.values())) == len(palette.ROLES)
    assert set(palette.ROLES.values()) <= set(palette.OKABE_ITO.values())
    assert palette.OKABE_ITO["blue"] == palette.QUERY


def test_curves_without_a_role_borrow_the_colour_of_no_role_and_no_dash_pattern_twice():
    colours = {colour for colour, _ in palette.NEUTRAL_STYLES}
    assert not colours & set(palette.ROLES.values())
    assert len({str(dashes) for _, dashes in palette.NEUTRAL_STYLES}) == len(palette.NEUTRAL_STYLES)


@pytest.mark.parametrize("page", ["#FFFFFF", "#111111", "#1C2128"])
def test_ink_and_curves_stand_out_from_a_white_page_and_from_dark_ones(page):
    at = page != "#FFFFFF"
    assert contrast(THEMED[palette.INK.lower()][at], page) >= 6
    for colour in (*(colour for colour, _ in palette.NEUTRAL_STYLES), palette.QUERY, palette.KEY, palette.VALUE, palette.WEIGHTS):
        assert contrast(THEMED[colour.lower()][at], page) >= 3
