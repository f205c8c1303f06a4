"""Every picture and every explorable of the course: one look, one meaning per colour, words for each."""

from attn_course.figures.absorption import cache_sizes, form_parts, latent_explorable, two_gauges
from attn_course.figures.additive import accuracy_by_length, additive_explorable, score_surfaces
from attn_course.figures.attention import attention_steps, bits_held, function_of_query, query_explorable, query_plane
from attn_course.figures.base import publish
from attn_course.figures.charts import bars, heatmap, lines
from attn_course.figures.cross_attention import alignment_explorable, alignments
from attn_course.figures.explorable import softmax_explorable
from attn_course.figures.flash import causal_tiles, gpu_rates, rooflines, schedule, tiles_explorable
from attn_course.figures.heads import group_map, head_maps, head_split, heads_explorable
from attn_course.figures.linear import memory_explorable, outer_products
from attn_course.figures.lookup import kernel_fits, lookup_explorable, maps_side_by_side, outputs_in_hull, recall_at_distance
from attn_course.figures.masking import leak_maps, mask_explorable, mask_patterns
from attn_course.figures.palette import GRADIENT, KEY, OUTPUT, QUERY, REFERENCE, SCORES, VALUE, WEIGHTS
from attn_course.figures.scaling import broken_assumptions, scale_explorable, spread_and_softmax, towards_normal, two_trainings
from attn_course.figures.self_attention import query_rows, rope_explorable, weight_maps
from attn_course.figures.simplex import simplex, simplex_grid
from attn_course.figures.softmax import lse_bounds, overflow_ranges, simplex_entropy, softmax_maps
from attn_course.figures.softmax_jacobian import jacobian_heatmap, saturation, temperature_bars
from attn_course.figures.start import map_of_chapters, notation_explorable, two_orientations

__all__ = [
    "GRADIENT",
    "KEY",
    "OUTPUT",
    "QUERY",
    "REFERENCE",
    "SCORES",
    "VALUE",
    "WEIGHTS",
    "accuracy_by_length",
    "additive_explorable",
    "alignment_explorable",
    "alignments",
    "attention_steps",
    "bars",
    "bits_held",
    "broken_assumptions",
    "cache_sizes",
    "causal_tiles",
    "form_parts",
    "function_of_query",
    "gpu_rates",
    "group_map",
    "head_maps",
    "head_split",
    "heads_explorable",
    "heatmap",
    "jacobian_heatmap",
    "kernel_fits",
    "latent_explorable",
    "leak_maps",
    "lines",
    "lookup_explorable",
    "lse_bounds",
    "map_of_chapters",
    "maps_side_by_side",
    "mask_explorable",
    "mask_patterns",
    "memory_explorable",
    "notation_explorable",
    "outer_products",
    "outputs_in_hull",
    "overflow_ranges",
    "publish",
    "query_explorable",
    "query_plane",
    "query_rows",
    "recall_at_distance",
    "rooflines",
    "rope_explorable",
    "saturation",
    "scale_explorable",
    "schedule",
    "score_surfaces",
    "simplex",
    "simplex_entropy",
    "simplex_grid",
    "softmax_explorable",
    "softmax_maps",
    "spread_and_softmax",
    "temperature_bars",
    "tiles_explorable",
    "towards_normal",
    "two_gauges",
    "two_orientations",
    "two_trainings",
    "weight_maps",
]
