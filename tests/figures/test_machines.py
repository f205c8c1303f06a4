"""The machines: sound at their smallest and largest, true to their numbers, and refused where they would not fit."""

import re
from functools import partial
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from attn_course.figures.diagram import Drawn
from attn_course.figures.machines.aligner import aligner
from attn_course.figures.machines.latent import latent_flow
from attn_course.figures.machines.masked import masked
from attn_course.figures.machines.memory import memory
from attn_course.figures.machines.orders import orders
from attn_course.figures.machines.paddings import paddings
from attn_course.figures.machines.paths import paths
from attn_course.figures.machines.programs import programs
from attn_course.lessons.softmax.figures import leads
from attn_course.lessons.transformer.figures import machine as stream
from tests.figures.diagrams import assert_sound_diagram, svg_of, views

SENTENCE = ["the", "cat", "sat", "because", "it", "was", "tired"]
WHOLE = np.arange(49).reshape(7, 7) - 24
CAUSAL = np.tri(7, dtype=bool)
DATE = ["3", "May", "1999"], ["99", "05"]

DRAWN = [
    (aligner, "the rows q of length 4 and k of length 2"),
    (partial(paths, SENTENCE, 1), "“cat” reaches the last position through 5 updates of the state"),
    (partial(paths, ["a", "b"], 0), "“a” reaches the last position through 1 update of the state"),
    (partial(paths, ["because"] * 8, 6), "1 update"),
    (
        partial(paddings, *DATE, (5, 4)),
        "reads 3 tokens and 2 of padding and hands keys and values to a decoder, which reads 2 tokens and 2 of padding",
    ),
    (partial(paddings, ["house"] * 5, ["house"] * 5, (5, 5)), "reads 5 tokens and 0 of padding"),
    (partial(paddings, ["a"], ["b"], (1, 1)), "reads 1 token and 0 of padding"),
    (partial(memory, 3, 5, (2, 3)), "the turn of tile 3 of 5"),
    (partial(memory, 1, 1, (1, 1)), "tile 1 of 1"),
    (partial(memory, 5, 4, (5, 4)), "Tile 5 of the queries"),
    (stream, "a norm and the table again"),
    (partial(programs, 37, 16), "program 2 has 32 to 36"),
    (partial(programs, 12, 4), "program 2 has 8 to 11"),
    (partial(orders, 6, 2), "Parallel: 21 pairs one by one. Chunks of 2: 9 pairs within chunks, and 2 states"),
    (partial(orders, 7, 3), "13 pairs within chunks, and 2 states"),
    (partial(orders, 2, 1), "Chunks of 1: 2 pairs within chunks, and 1 state read"),
    (partial(latent_flow, absorbed=False), "rebuilt from the latents by W_UK and W_UV"),
    (partial(latent_flow, absorbed=True), "meets the latents themselves"),
    (partial(orders, 8, 8), "36 pairs within chunks, and 0 states"),
    (partial(masked, SENTENCE, WHOLE, CAUSAL, query=4), "21 of its 49 cells striped. “it” may not read “was” or “tired”."),
    (partial(masked, ["because"] * 8, np.full((8, 8), -99), np.ones((8, 8)), query=0), "“because” may read every token."),
    (partial(masked, ["a", "b"], np.eye(2), np.zeros((2, 2)), query=1), "“b” may not read “a” or “b”."),
    (partial(leads, {"it": -2, "because": 0, "cat": 4}), "add up, 2 + 4 = 6, and the factors below multiply, f(6) = f(2) · f(4)."),
]

REFUSED = [
    (partial(paths, ["alone"], 0), "tokens must be 2 to 8 words of at most 7 letters; got"),
    (partial(paths, ["attention", "is"], 0), "tokens must be 2 to 8 words of at most 7 letters"),
    (partial(paths, SENTENCE, 6), "source must be from 0 to 5; got 6"),
    (partial(paddings, *DATE, (2, 4)), "source must be 1 to 5 tokens of at most 5 letters, and not longer than with its padding; got"),
    (partial(paddings, *DATE, (5, 6)), "target must be 1 to 5 tokens"),
    (partial(programs, 60, 16), "at most 48 numbers in all blocks, and blocks that can be read; got 60 and 16"),
    (partial(memory, 6, 2, (1, 1)), "q_tiles must be from 1 to 5; got 6"),
    (partial(memory, 2, 0, (1, 1)), "kv_tiles must be from 1 to 5; got 0"),
    (partial(memory, 2, 3, (3, 1)), r"step must be a tile of queries from 1 to 2 and one of keys from 1 to 3; got \(3, 1\)"),
    (partial(masked, ["alone"], [[1]], [[True]], query=0), "tokens must be 2 to 8 words of at most 7 letters; got"),
    (partial(masked, SENTENCE, WHOLE[:6], CAUSAL, query=0), r"scores must have the shape \(7, 7\); got \(6, 7\)"),
    (partial(masked, SENTENCE, WHOLE, CAUSAL[:, :6], query=0), r"mask must have the shape \(7, 7\); got \(7, 6\)"),
    (partial(masked, SENTENCE, WHOLE / 2, CAUSAL, query=0), "scores must be whole numbers from -99 to 99"),
    (partial(masked, SENTENCE, WHOLE * 9, CAUSAL, query=0), "scores must be whole numbers from -99 to 99"),
    (partial(masked, SENTENCE, WHOLE, CAUSAL, query=7), "query must be from 0 to 6; got 7"),
    (partial(orders, 9, 2), "length must be from 2 to 8; got 9"),
    (partial(orders, 4, 5), "chunk must be from 1 to 4; got 5"),
]


def drawing_of(call, shown) -> Drawn:
    """Return what a call shows; nothing is left of it in `shown`."""
    call()
    drawn, words = shown
    assert words.alt == drawn.alt
    shown.clear()
    return drawn


@pytest.mark.parametrize(("call", "fact"), DRAWN)
def test_each_diagram_is_sound_and_says_what_its_numbers_say(shown, call, fact):
    assert_sound_diagram(lambda: drawing_of(call, shown))
    assert fact in drawing_of(call, shown).alt


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_would_not_fit_is_refused(shown, call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert shown == []


def covered(length: int, svg: Element) -> np.ndarray:
    """Return how often each pair is drawn as a score or within a block, for each of the three orders."""
    grids = np.zeros((3, length, length), dtype=int)
    cell = 176 / length
    for shape in svg.iter("rect"):
        if "attn-matrix" in shape.get("class") and re.search("scores|value", shape.get("fill")):
            x, y, width, height = (float(shape.get(name)) for name in ("x", "y", "width", "height"))
            grid = int(x // 220)
            row, column = round((y - 38) / cell), round((x - 22 - 220 * grid) / cell)
            grids[grid, row : row + round(height / cell), column : column + round(width / cell)] += 1
    return grids


@pytest.mark.parametrize(("length", "chunk"), [(6, 2), (7, 3), (5, 1), (4, 4)])
def test_all_three_orders_add_each_pair_of_the_past_once_and_none_of_the_future(shown, length, chunk):
    grids = covered(length, views(svg_of(drawing_of(partial(orders, length, chunk), shown)))[-1])
    np.testing.assert_array_equal(grids, np.broadcast_to(np.tri(length, dtype=int), grids.shape))


def letters(svg) -> list[str]:
    return ["".join(line.itertext()) for line in svg.iter("text")]


def test_step_by_step_the_word_walks_through_the_states_and_the_tiles_walk_past(shown):
    path = views(svg_of(drawing_of(partial(paths, SENTENCE, 1), shown)))
    dots = [[(float(dot.get("cx")), float(dot.get("cy"))) for dot in turn.iter("circle")] for turn in path]
    across, down = zip(*(state for state, _ in dots), strict=True)
    assert len(path) == 6
    assert (np.diff(across) > 0).all()
    assert len(set(down)) == 1
    assert [dots[0][1] == other for _, other in dots] == [True] + [False] * 5
    assert len({other for _, other in dots[1:]}) == 1
    for turn, seen in enumerate(views(svg_of(drawing_of(partial(memory, 3, 4, (2, 3)), shown))), 1):
        assert f"Q2 K{turn}⊤" in letters(seen)
        assert f"K{turn}, V{turn}" in letters(seen)


def test_step_by_step_each_order_adds_what_its_step_allows(shown):
    drawn = drawing_of(partial(orders, 6, 2), shown)
    for turn, seen in enumerate(views(svg_of(drawn)), 1):
        grids = covered(6, seen)
        for size, grid in zip((6, 2, 1), grids, strict=True):
            np.testing.assert_array_equal(grid, np.tri(6) * (np.arange(6) < turn * size)[:, None])


def test_at_rest_all_orders_are_complete_and_the_asked_tile_is_there(shown):
    resting = re.findall('class="attn-turn(.*?)" style="--attn-name:attn-(.*?)"', drawing_of(partial(memory, 3, 4, (2, 3)), shown).html)
    assert [name for rest, name in resting if rest] == ["3-3-of-4"]
    assert 'class="attn-turn"' not in drawing_of(partial(orders, 6, 2), shown).html


def test_padding_and_future_are_hidden_and_nothing_else_is(shown):
    svg = svg_of(drawing_of(partial(paddings, *DATE, (5, 4)), shown))
    encoder = np.tile(np.arange(5) < 3, (5, 1))
    decoder = np.tril(np.tile(np.arange(4) < 2, (4, 1)))
    crossed = np.tile(np.arange(5) < 3, (4, 1))
    open_cells = [shape for shape in svg.iter("rect") if "attn-matrix" in shape.get("class") and "scores" in shape.get("fill")]
    hidden = [shape for shape in svg.iter("path") if shape.get("class") == "attn-hatch"]
    assert len(open_cells) == encoder.sum() + decoder.sum() + crossed.sum()
    assert len(hidden) == (~encoder).sum() + (~decoder).sum() + (~crossed).sum()
