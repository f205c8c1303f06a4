"""The drawing of lesson writing is sound."""

from attn_course.lessons.writing import figures
from tests.figures.diagrams import assert_sound_diagram


def test_the_arrays_of_attention_are_a_sound_drawing(shown):
    def draw():
        figures.shapes()
        drawn, _ = shown
        shown.clear()
        return drawn

    assert_sound_diagram(draw)
