"""`attn-course bench`: the table it prints, the files it writes, what it refuses."""

import json

import pytest

from attn_course.gpu import bench, flash_operators
from attn_course.gpu.bench_cases import Case


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """One case, and roofs that take no time."""
    monkeypatch.setattr(bench, "cases", lambda device: [Case(1, 1, 1, 8, 4, True)])
    monkeypatch.setattr(bench, "roofs", lambda device: {"matmul_tflops_per_s": 0.5, "copy_gb_per_s": 10.0, "state": None})


def test_it_prints_each_rate_and_writes_the_report_and_the_lines(attn_course, tmp_path):
    said = attn_course("bench", "--json", str(tmp_path / "whole.json"), "--out", str(tmp_path / "lines"), "--providers", "sdpa,eager")
    assert (said.code, said.err) == (0, "")
    report = json.loads((tmp_path / "whole.json").read_text())
    assert {"device", "date", "versions", "measurements"} <= report.keys()
    assert len(report["measurements"]) == 4
    for line in report["measurements"]:
        (row,) = [text for text in said.out.splitlines() if f" {line['direction']} " in text]
        assert f"{line['provider']} {line['tflops_per_s']:.4g}" in row
    assert sum('"result"' in line for line in (tmp_path / "lines").read_text().splitlines()) == 4 + 2  # and the roofs, before and after


def test_it_goes_on_with_what_it_measured_and_reports_that_without_measuring(attn_course, tmp_path, monkeypatch):
    lines, whole = str(tmp_path / "lines"), str(tmp_path / "whole.json")
    asked = []
    attn_course("bench", "--out", lines, "--providers", "sdpa,eager", "--directions", "forward")
    monkeypatch.setattr(bench, "_measure", lambda case, provider, direction, *rest: asked.append((provider, direction)) or {"error": "x"})
    monkeypatch.setattr(bench, "roofs", None)
    attn_course("bench", "--out", lines, "--json", whole, "--providers", "sdpa,eager")
    assert asked == [("sdpa", "backward"), ("eager", "backward")]
    report = json.loads((tmp_path / "whole.json").read_text())
    monkeypatch.setattr(bench, "device_name", lambda device: "another machine")
    said = attn_course("bench", "--report-from", lines, "--json", whole)
    assert json.loads((tmp_path / "whole.json").read_text()) == report
    assert said.out.splitlines()[0].endswith("backward sdpa failed  eager failed")
    assert asked == [("sdpa", "backward"), ("eager", "backward")]


def test_other_tiles_reach_the_kernels_and_have_a_report_of_their_own(attn_course, tmp_path, monkeypatch):
    chosen = []
    take = flash_operators.configuration
    monkeypatch.setattr(flash_operators, "configuration", lambda *sizes, **options: chosen.append(take(*sizes, **options)) or chosen[-1])
    tiles, lines, whole = tmp_path / "tiles", str(tmp_path / "lines"), tmp_path / "whole.json"
    words = ["bench", "--out", lines, "--json", str(whole), "--providers", "ours", "--directions", "forward"]
    attn_course(*words)
    built = {tuple(tile) for tile in chosen}
    chosen.clear()
    tiles.write_text('{"forward 64": [16, 64, 4, 2]}')
    attn_course(*words, "--tiles", str(tiles))
    assert {tuple(tile) for tile in chosen} == {(16, 64, 4, 2, None)} != built
    report = json.loads(whole.read_text())
    assert report["tiles"] == {"forward 64": [16, 64, 4, 2]}
    assert len(report["measurements"]) == 1
    attn_course("bench", "--report-from", lines, "--json", str(whole))
    assert json.loads(whole.read_text())["tiles"] is None
    for wrong, complaint in (
        ('{"forward 32": [16, 64, 4, 2]}', 'wanted such as "forward 128"'),
        ("{", "is no JSON"),
        ("[1]", "wanted such as"),
    ):
        tiles.write_text(wrong)
        said = attn_course(*words, "--tiles", str(tiles))
        assert said.code == 2
        assert complaint in said.err
    said = attn_course("bench", "--report-from", str(tiles))
    assert (said.code, said.err) == (2, f"attn-course: --report-from: {tiles} holds nothing that was measured with such tiles\n")


def test_a_report_on_standard_output_stands_alone(attn_course):
    said = attn_course("bench", "--json", "-", "--providers", "eager")
    assert len(json.loads(said.out)["measurements"]) == 2
    assert "eager" in said.err


def test_a_gpu_that_was_lost_is_one_line(attn_course, monkeypatch):
    def lost(*args):
        raise bench.DeviceLostError("ours spoilt the GPU")

    monkeypatch.setattr(bench, "measure", lost)
    said = attn_course("bench", "--providers", "ours")
    assert (said.code, said.err) == (1, "attn-course: ours spoilt the GPU\n")
