"""Every picture and every explorable of the course: one look, one meaning per colour, words for each."""

from attn_course.figures.base import publish
from attn_course.figures.ch02 import lse_bounds, overflow_ranges, simplex_entropy, softmax_maps
from attn_course.figures.ch02_jacobian import jacobian_heatmap, saturation, temperature_bars
from attn_course.figures.ch03 import broken_assumptions, scale_explorable, spread_and_softmax, towards_normal, two_trainings
from attn_course.figures.ch04 import attention_steps, bits_held, function_of_query, query_explorable, query_plane
from attn_course.figures.ch09 import alignment_explorable, alignments
from attn_course.figures.charts import bars, heatmap, lines
from attn_course.figures.explorable import softmax_explorable
from attn_course.figures.palette import GRADIENT, KEY, OUTPUT, QUERY, REFERENCE, SCORES, VALUE, WEIGHTS
from attn_course.figures.simplex import simplex, simplex_grid

__all__ = [
    "GRADIENT",
    "KEY",
    "OUTPUT",
    "QUERY",
    "REFERENCE",
    "SCORES",
    "VALUE",
    "WEIGHTS",
    "alignment_explorable",
    "alignments",
    "attention_steps",
    "bars",
    "bits_held",
    "broken_assumptions",
    "function_of_query",
    "heatmap",
    "jacobian_heatmap",
    "lines",
    "lse_bounds",
    "overflow_ranges",
    "publish",
    "query_explorable",
    "query_plane",
    "saturation",
    "scale_explorable",
    "simplex",
    "simplex_entropy",
    "simplex_grid",
    "softmax_explorable",
    "softmax_maps",
    "spread_and_softmax",
    "temperature_bars",
    "towards_normal",
    "two_trainings",
]
