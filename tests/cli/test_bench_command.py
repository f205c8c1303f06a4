"""`attn-course bench`: the table it prints, the file it writes, the target it refuses."""

import json

from attn_course.gpu.bench import Case


def test_it_prints_each_measurement_and_writes_them_all(attn_course, monkeypatch, tmp_path):
    monkeypatch.setattr("attn_course.gpu.bench.cases", lambda device: [Case(1, 1, 1, 8, 4, True)])
    said = attn_course("bench", "--json", str(tmp_path / "out.json"))
    assert (said.code, said.err) == (0, "")
    report = json.loads((tmp_path / "out.json").read_text())
    assert {"device", "date", "versions", "measurements"} <= report.keys()
    for line in report["measurements"]:
        assert f" {line['direction']:8s} {line['provider']:14s} " in said.out


def test_a_file_that_cannot_be_written_is_refused_before_any_work(attn_course, tmp_path):
    said = attn_course("bench", "--json", str(tmp_path / "no" / "out.json"))
    assert said == (2, "", f"attn-course: --json: there is no directory {tmp_path / 'no'}\n")
