"""Colours of the course: one meaning each, told apart by readers with any kind of colour vision.

The eight hues are those of Okabe and Ito, "Color Universal Design" (2008). A role keeps its colour in every chapter,
so a reader who has learnt that queries are blue never has to look at a legend for it again.
"""

OKABE_ITO = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky blue": "#56B4E9",
    "bluish green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "reddish purple": "#CC79A7",
}

QUERY = OKABE_ITO["blue"]
KEY = OKABE_ITO["vermillion"]
VALUE = OKABE_ITO["bluish green"]
WEIGHTS = OKABE_ITO["reddish purple"]
SCORES = OKABE_ITO["sky blue"]
GRADIENT = OKABE_ITO["orange"]
OUTPUT = OKABE_ITO["black"]

# What stands on the page itself is drawn on no ground of its own. Ink has a colour for light pages and one for dark ones; curves keep
# theirs, and dark pages add a share of white (vector.py).
INK = "#72777D"
INK_ON_LIGHT, INK_ON_DARK = "#535A63", "#B4BCC6"
GRID = INK + "48"  # a share of the ink: faint on every page
SHADE = INK + "2A"
LIFT = 0.15

# On a ground of its own, such as the cell of a heatmap, ink is dark or light as the ground asks.
DARK = "#000000"
LIGHT = "#FFFFFF"

ROLES = {
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "weights": WEIGHTS,
    "scores": SCORES,
    "gradient": GRADIENT,
    "output": OUTPUT,
}

# From 0 to the largest weight: dark like a dark page and not white on it, through the colour of weights, to nearly white.
WEIGHTS_MAP = ("#2B1125", "#7A3A61", WEIGHTS, "#F9E3EF")
SIGNED_MAP = "PuOr"

# Curves without a role: colours that mean nothing else in the course, each with its own dash pattern.
NEUTRAL_STYLES = (
    (INK, "-"),
    ("#8468D8", "--"),
    ("#98821A", "-."),
    ("#A0663C", (0, (1, 1.2))),
)
