"""The machine: every part can be lit, alone, and each example's sizes are drawn as they are."""

import importlib
import re
from pathlib import Path

import pytest

from attn_course.authoring.course import units
from attn_course.figures.machines import tall
from attn_course.figures.machines.whole import GROUPS, HEIGHT, PARTS, PLACES, machine, machine_drawing
from attn_course.lessons.start import figures as start
from tests.figures.diagrams import Box, assert_sound_diagram, rectangles, svg_of

LESSONS = [unit for unit in units(Path(__file__).parents[2]) if unit.folder == "notebooks"]
SMALL = dict.fromkeys(("T", "d_model", "d_k", "d_v", "H"), 1)
LARGE = {"T": 12, "d_model": 12, "d_k": 12, "d_v": 2, "H": 12}


@pytest.mark.parametrize("name", [*GROUPS, *PARTS])
def test_the_machine_is_sound_with_each_part_lit(name):
    assert_sound_diagram(lambda: machine_drawing(name, {"T": 7, "d_k": 3}))


def test_it_is_sound_from_top_to_bottom_too_and_its_links_lie_in_the_same_order():
    for name in (*tall.NAMES, *tall.OWN):
        assert_sound_diagram(lambda name=name: tall.tall_drawing(name))
    assert [*tall.PLACES] == [*PLACES]


@pytest.mark.parametrize("sizes", [SMALL, LARGE, {"H": 2, "d_v": 12, "d_model": 1}, {"T": 12, "d_k": 12, "H": 1}])
def test_the_smallest_and_the_largest_example_fit(sizes):
    assert_sound_diagram(lambda: machine_drawing("attention", sizes))


def lit_of(name: str) -> list[bool]:
    return [shape.get("stroke-width") == "2" or "attn-lit" in shape.get("class", "") for shape in svg_of(machine_drawing(name))]


def test_each_part_lights_something_of_its_own_and_the_whole_lights_all():
    alone = {name: lit_of(name) for name in PARTS}
    assert len({tuple(lit) for lit in alone.values()}) == len(PARTS)
    for name, lit in alone.items():
        others = [any(column) for column in zip(*(other for key, other in alone.items() if key != name), strict=True)]
        assert any(mine and not theirs for mine, theirs in zip(lit, others, strict=True)), f"nothing is lit by {name} alone"
    assert lit_of("whole") == [any(column) for column in zip(*alone.values(), strict=True)]


def test_what_is_drawn_alone_is_sound_and_holds_no_shape_and_nothing_that_stands_back():
    for name, sentence in start.SO_FAR.items():
        assert_sound_diagram(lambda name=name, sentence=sentence: machine_drawing(name, {"T": 7, "d_k": 4}, alone=sentence))
        svg = svg_of(machine_drawing(name, {"T": 7, "d_k": 4}, alone=sentence))
        assert not any("attn-unlit" in shape.get("class", "") or "×" in "".join(shape.itertext()) for shape in svg)
        grids = [shape for shape in svg if "stroke-opacity" in shape.attrib]
        assert len(grids) == len(rectangles(svg, "attn-matrix"))


def test_matrices_have_the_cells_of_the_example():
    svg = svg_of(machine_drawing("whole", {"T": 5, "d_model": 7, "d_k": 3, "d_v": 2, "H": 2}))
    sides = [(round(box.bottom - box.top, 1), round(box.right - box.left, 1)) for box in rectangles(svg, "attn-matrix")]
    cell = sides[0][0] / 5
    shapes = [(round(height / cell), round(width / cell)) for height, width in sides]
    assert shapes == [(5, 7), (7, 3), (5, 3), (7, 3), (5, 3), (7, 2), (5, 2), (5, 5), (5, 5), (5, 2), (5, 4), (4, 7), (5, 7)]


def test_the_caption_names_the_sizes_that_were_given_and_no_others(shown):
    machine("softmax", {"T": 4, "d_k": 3})
    caption = re.search("<figcaption>(.*)</figcaption>", shown[0].html)[1].replace("\N{NO-BREAK SPACE}", " ")
    assert caption.endswith("weights that sum to 1. Here <var>T</var> = 4 and <var>d</var><sub><var>k</var></sub> = 3.")
    assert "= " not in machine_drawing("softmax").alt


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("soft", {}, "name must be one of whole, attention, backwards, .*, residual; got 'soft'"),
        ("softmax", {"d_q": 3}, "sizes must be numbers from 1 to 12 for T, d_model, d_k, d_v, H; got 3 for 'd_q'"),
        ("softmax", {"T": 0}, "got 0 for 'T'"),
        ("softmax", {"T": 13}, "got 13 for 'T'"),
        ("softmax", {"H": 5, "d_v": 5}, "sizes must have at most 24 for H times d_v; got 5 times 5"),
    ],
)
def test_parts_and_sizes_that_do_not_exist_are_refused(shown, name, sizes, message):
    with pytest.raises(ValueError, match=message):
        machine(name, sizes)
    assert shown == []


def test_no_two_lessons_light_the_same(shown):
    for lesson in LESSONS:
        figures = importlib.import_module(f"attn_course.lessons.{lesson.slug}.figures")
        figures.machine()
    assert len({drawn.html for drawn in shown[::2]}) == len(LESSONS)


def test_the_first_lesson_leads_from_every_part_to_a_lesson_that_is_there(shown):
    start.machine()
    html = shown[0].html
    links = re.findall(r'<a class="attn-link" href="([^"]*)" style="[^"]*" title="([^"]*)" aria-label="([^"]*)"></a>', html)
    assert len(links) == html.count("<a ") == len(PLACES)
    for address, title, label in links:
        (unit,) = [unit for unit in LESSONS if unit.name == f"notebooks/{address}"]
        assert title == label == f"{unit.lesson.number:02d} {unit.lesson.title}"


def test_a_link_covers_its_part_and_a_place_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"links must be for input, projections, .*; got nowhere"):
        machine_drawing("whole", links={"nowhere": ("a.ipynb", "A")})
    drawn = machine_drawing("whole", links={"softmax": ("a.ipynb?b&c", "A & B")})
    assert 'href="a.ipynb?b&amp;c"' in drawn.html
    left, top, width, height = (
        float(share) / 100 for share in re.findall(r"(?:left|top|width|height):([\d.]+)%", drawn.html.partition("</style>")[2])
    )
    softmax = rectangles(svg_of(drawn), "attn-box")[2]
    covered = Box(left * 656, top * HEIGHT, (left + width) * 656, (top + height) * HEIGHT)
    for side, wanted in zip(covered, softmax, strict=True):
        assert side == pytest.approx(wanted, abs=1)
