"""Every picture and every explorable of the course: one look, one meaning per colour, words for each."""

from attn_course.figures.base import publish
from attn_course.figures.charts import bars, heatmap, lines
from attn_course.figures.palette import GRADIENT, KEY, OUTPUT, QUERY, REFERENCE, SCORES, VALUE, WEIGHTS

__all__ = [
    "GRADIENT",
    "KEY",
    "OUTPUT",
    "QUERY",
    "REFERENCE",
    "SCORES",
    "VALUE",
    "WEIGHTS",
    "bars",
    "heatmap",
    "lines",
    "publish",
]
