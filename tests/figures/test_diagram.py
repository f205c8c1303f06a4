"""The layer for diagrams: what it writes, what it refuses, and that the shared check of diagrams can fail."""

import pytest

from attn_course.figures.diagram import Area, Diagram, publish_diagram
from tests.figures.diagrams import assert_sound_diagram, svg_of

WORDS = {"title": "A box and a matrix", "caption": "W_Q < X & more.", "alt": "One box with a word, an arrow, and one matrix."}


def small(text="box", tip=150.0, label="X_k", at=(170, 30), names="toy", fill=None):
    drawing = Diagram(names, 240, 120)
    box = drawing.box(Area(50, 70, 60, 30), text, role=fill)
    matrix = drawing.matrix((170, 70), 3, 2, cell=10)
    drawing.arrow(box.right, (tip, matrix.y))
    drawing.text(at, label, symbol=True)
    return drawing.finish(**WORDS)


def test_a_diagram_is_sound_and_arrives_with_its_words(shown):
    assert_sound_diagram(lambda: small(tip=160.0))
    publish_diagram(small())
    drawn, words = shown
    assert repr(drawn) == f"[figure] {WORDS['alt']}"
    assert words.alt == WORDS["alt"]
    assert "<var>W</var><sub><var>Q</var></sub> &lt; <var>X</var> &amp; more." in drawn.html


def test_at_rest_a_drawing_shows_the_turn_that_it_is_told_to():
    drawing = Diagram("toy", 240, 120, turns=3, rest=2)
    for turn in (1, 2, 3):
        with drawing.during(turn, turn):
            drawing.dot((60.0 * turn, -0.01), "query")
    turns = drawing.finish(**WORDS).html.split("attn-turn")[-3:]
    assert [turn.startswith(" attn-rest") for turn in turns] == [False, True, False]
    assert all('cy="0"' in turn or "cy='0'" in turn for turn in turns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tip": 150.0}, "an arrow ends at"),
        ({"tip": 160.0, "text": "a long text"}, "'a long text' at 50, 75 leaves its box"),
        ({"tip": 160.0, "at": (170, 62)}, "lies on a matrix"),
        ({"tip": 160.0, "at": (120, 74)}, "lies on a line"),
        ({"tip": 160.0, "at": (235, 30)}, "leaves the drawing"),
    ],
)
def test_the_shared_check_of_diagrams_can_fail(change, message):
    with pytest.raises(AssertionError, match=message):
        assert_sound_diagram(lambda: small(**change))


def test_overlapping_letters_crossed_frames_and_fixed_colours_are_found():
    def overlapping():
        drawing = Diagram("toy", 200, 100)
        drawing.text((100, 50), "one")
        drawing.text((110, 55), "two")
        return drawing.finish(**WORDS)

    def crossing():
        drawing = Diagram("toy", 200, 100)
        drawing.panel(Area(60, 50, 80, 60))
        drawing.text((100, 50), "word")
        return drawing.finish(**WORDS)

    with pytest.raises(AssertionError, match="overlap"):
        assert_sound_diagram(overlapping)
    with pytest.raises(AssertionError, match="crosses a frame"):
        assert_sound_diagram(crossing)
    drawn = small(tip=160.0)
    for sound, spoilt in (
        ('stroke="var(--attn-ink)"', 'stroke="#000"'),
        ('id="attn-toy-title"', 'id="toy"'),
        ('width="60"', 'width="60.25"'),
    ):
        broken = type(drawn)(drawn.html.replace(sound, spoilt), drawn.alt)
        assert broken != drawn
        with pytest.raises(AssertionError):
            assert_sound_diagram(lambda broken=broken: broken)


def test_letters_below_and_above_the_line_are_smaller_and_the_next_letter_is_back_on_it():
    line = svg_of(small(label="X_k^T Y")).find("text[2]")
    assert [(part.text, part.get("dy"), part.get("font-size")) for part in line] == [
        ("X", None, None),
        ("k", "4.5", "14"),
        ("⊤", "-9", "14"),
        (" ", "4.5", None),
        ("Y", None, None),
    ]


def with_code(start=40.0):
    drawing = Diagram("toy", 200, 100)
    front = Area(20, 50, 20, 30)
    drawing.copies(front, 2, step=3)
    drawing.matrix((20, 50), 3, 2, cell=10)
    drawing.text((start, 50), "x @ w", anchor="start", code=True)
    drawing.text((start, 70), "of two", anchor="start", small=True)
    return drawing.finish(**WORDS)


def test_code_and_small_words_have_the_least_size_and_copies_stand_behind():
    assert_sound_diagram(with_code)
    svg = svg_of(with_code())
    assert [(line.get("class"), line.get("font-size")) for line in svg.iter("text")] == [("attn-code attn-lit", "14"), ("attn-lit", "14")]
    assert "monospace" in with_code().html
    assert "monospace" not in small().html
    assert [shape.get("points") for shape in svg.iter("polygon")] == [
        "33,41 36,41 36,71 16,71 16,68 33,68",
        "30,38 33,38 33,68 13,68 13,65 30,65",
    ]
    with pytest.raises(AssertionError, match="'x @ w' at 35, 50 lies on a matrix"):
        assert_sound_diagram(lambda: with_code(35))


def test_what_has_no_name_or_no_words_is_refused():
    with pytest.raises(ValueError, match="name must be lower-case words joined by hyphens, such as 'machine-scores'; got 'My picture'"):
        Diagram("My picture", 10, 10)
    with pytest.raises(ValueError, match="alt must be a text of at least 8 words; got 2"):
        Diagram("toy", 10, 10).finish(title="A small toy", caption="", alt="too short")
