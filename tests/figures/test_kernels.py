"""The figures of lesson kernels say what their numbers say, and the table takes the newest GPU."""

import json
from functools import partial

import pytest

from attn_course.lessons.kernels import figures
from tests.figures.support import Pictures

DRAWN = [
    (partial(figures.schedule, 2, 1, tiles=3), ["With overlap: products from 0 to 2, 2 to 4, 4 to 6"]),
    (
        partial(figures.schedule, 3, 2, tiles=2, overlap=False),
        ["products from 0 to 3, 5 to 8; exponentials from 3 to 5, 8 to 10"],
    ),
    (partial(figures.causal_tiles, 10, 14, 4, 3, q_offset=4), ["Whole, without a mask: 8. At the edge: 4. Skipped: 3"]),
]
REFUSED = [
    (partial(figures.schedule, 0, 1), "must be positive; got 0"),
    (partial(figures.causal_tiles, 3, 3, 0, 1), "sizes must be positive"),
]


class TestPictures(Pictures):
    """Schedule and tiles."""


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("t_1", "t_2"), [(2, 1), (1, 3), (1, 1)])
def test_a_schedule_ends_when_the_formula_says(overlap, t_1, t_2):
    end = figures.starts(t_1, t_2, 5, overlap)[-1][1] + t_2
    assert end == (t_1 + 4 * max(t_1, t_2) + t_2 if overlap else 5 * (t_1 + t_2))


# ---- measurements


@pytest.fixture
def table(monkeypatch):
    """Collect the tables that are shown."""
    seen = []
    monkeypatch.setattr("attn_course.lessons.kernels.figures.display", seen.append)
    return seen


def report(device, date, rate):
    line = {"d": 64, "is_causal": True, "length": 512, "heads": 32, "kv_heads": 32, "left": None, "direction": "forward"}
    lines = [{**line, "provider": "ours", "tflops_per_s": rate}, {**line, "provider": "eager", "error": "out of memory"}]
    return {"device": device, "date": date, "matmul_tflops_per_s": [700.4, 690.6], "measurements": lines}


def test_without_a_measurement_it_says_so_and_names_the_command(table, tmp_path):
    figures.gpu_rates("backward", tmp_path / "none")
    assert repr(table[0]) == "backward: not measured on a GPU yet. On a machine that has one, run: attn-course bench --json FILE"


def test_the_newest_gpu_is_shown_and_a_cpu_never(table, tmp_path):
    for name, found in (
        ("a.json", report("GPU A", "2031-01-02", 100.2)),
        ("b.json", report("GPU B", "2031-05-01", 321.4)),
        ("c.json", report("CPU x86_64, Triton's interpreter", "2032-01-01", 0.1)),
    ):
        (tmp_path / name).write_text(json.dumps(found), encoding="utf-8")
    assert figures.newest_measurement(tmp_path)["device"] == "GPU B"
    figures.gpu_rates("forward", tmp_path)
    assert repr(table[0]).splitlines() == [
        "forward, TFLOP/s on GPU B, 2031-05-01; a large product before and after: 700 and 691",
        " d    mask  length  heads  ours   eager",
        "64  causal     512  32/32   321  failed",
    ]
    assert "<td>321</td>" in table[0]._repr_html_()
