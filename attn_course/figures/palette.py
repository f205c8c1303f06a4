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
GRID, PALE = INK + "40", INK + "B0"  # shares of the ink: lines to read by, and stripes
LIFT = 0.15

# On a ground of its own ink is dark or light as the ground asks.
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

# A cell of a heatmap tints the page, from not at all where the number is 0 to these: as dark as black letters allow on a light page,
# and as light as white ones allow on a dark one. The tint of weights has their hue, the other two have those of PuOr.
WEIGHT_TINT, PLUS_TINT, MINUS_TINT = "#B3558B", "#8063D2", "#B75D0A"
INK_IN_CELL = "#010101"  # black on light pages, white on dark ones
SIGNED_MAP = "PuOr"  # of level lines, which have a ground of their own

# Curves without a role: colours that mean nothing else in the course, each with its own dash pattern.
NEUTRAL_STYLES = (
    (INK, "-"),
    ("#8468D8", "--"),
    ("#98821A", "-."),
    ("#A0663C", (0, (1, 1.2))),
)
