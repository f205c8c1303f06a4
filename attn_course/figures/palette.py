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

INK = "#1F2328"
REFERENCE = "#6E7781"
GRID = "#D8DEE4"
PAPER = "#FFFFFF"
MASKED = "#EEF1F4"

ROLES = {
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "weights": WEIGHTS,
    "scores": SCORES,
    "gradient": GRADIENT,
    "output": OUTPUT,
}

WEIGHTS_MAP = "cividis"
SIGNED_MAP = "PuOr"

# Curves without a role: colours that mean none of query, key, value and weights, each with its own dash pattern.
NEUTRAL_STYLES = (
    (INK, "-"),
    (GRADIENT, "--"),
    (SCORES, "-."),
    (REFERENCE, (0, (1, 1.2))),
)
