"""The layer drawn with its arrays: what is written on its arrows runs, and makes the shapes that are written beside its grids."""

import re
from ast import literal_eval
from itertools import pairwise

import numpy as np
import pytest

from attn_course.figures.machines.layer import layer_tensors
from attn_course.reference import softmax
from tests.figures.diagrams import svg_of

# What each line of code makes, in an order in which each finds what it needs.
MADE = {
    "x @ w_query": "Q",
    "x @ w_key": "K",
    "x @ w_value": "V",
    "Q.": "q",
    "K.": "k",
    "V.": "v",
    "q @ k.": "scores",
    "softmax(scores)": "weights",
    "weights @ v": "heads",
    "heads.": "merged",
    "merged @ w_output": "output",
}


def drawn_layer(shown, *sizes):
    layer_tensors(*sizes)
    return svg_of(shown[0])


@pytest.mark.parametrize("sizes", [(3, 5, 6, 2), (3, 5, 9, 3), (2, 4, 6, 1)])
def test_the_code_on_the_arrows_runs_and_makes_the_shapes_beside_the_grids(shown, sizes):
    written = ["".join(line.itertext()) for line in drawn_layer(shown, *sizes).iter("text")]
    joined = re.sub(r"\n(?=[./])|(?<=,)\n", "", "\n".join(written)).split("\n")  # what goes on in a second line
    known = dict(zip(("batch", "tokens", "d_model", "n_heads", "d_k"), (*sizes, sizes[2] // sizes[3]), strict=True))
    shapes = {}
    for start, (axes, numbers) in enumerate(pairwise(joined)):
        if re.fullmatch(r"\([a-z].*\)", axes):
            name = joined[start - 1]
            shapes[name] = literal_eval(numbers)
            assert shapes[name] == tuple(known[axis] for axis in re.findall(r"\w+", axes)), name
    assert shapes.keys() == {"x", "w_query", "w_key", "w_value", "w_output", *MADE.values()}
    arrays = {name: np.ones(shapes[name]) for name in shapes.keys() - set(MADE.values())}
    for beginning, name in MADE.items():
        code = next(line for line in joined if line.startswith(beginning))
        arrays[name] = eval(code, {"np": np, "softmax": softmax, "d_k": known["d_k"]}, arrays)
        assert arrays[name].shape == shapes[name], code


def test_every_array_is_drawn_with_its_cells_and_copies_and_only_the_call_is_lit(shown):
    svg = drawn_layer(shown, 3, 5, 6, 2)
    grids = [shape for shape in svg.iter("rect") if "attn-matrix" in shape.get("class")]
    behind = [shape for shape in svg.iter("polygon") if "attn-matrix" in shape.get("class")]
    in_heads, in_blocks = 6 * 2, 4 * 2  # q, k, v, scores, weights and heads; Q, K, V and merged
    assert len(grids) == 2 + 4 + in_blocks + in_heads
    assert len(behind) == 2 * (2 + 4 + in_heads)
    lit = [shape.get("fill") for shape in grids if shape.get("class").endswith("attn-lit")]
    assert len(lit) == in_heads
    assert [sum(role in fill for fill in lit) for role in ("query", "key", "value", "scores", "weights", "ink")] == [2] * 6
