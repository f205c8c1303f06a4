"""What draws: one look, one meaning per colour, words for each picture. A lesson's own pictures are in its `figures.py`."""

from attn_course.figures.charts import bars, heatmap, lines

__all__ = ["bars", "heatmap", "lines"]
