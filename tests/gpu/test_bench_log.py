"""The file that keeps what was measured: it survives a kill, and is gone on with."""

import json

from attn_course.gpu.bench_log import Log

RUN = {"device": "GPU A", "versions": {"torch": "2"}}
KEY = {"case": 1, "provider": "ours"}


def test_what_is_finished_is_not_wanted_again_on_the_same_device(tmp_path):
    log = Log(tmp_path / "log", RUN)
    log.begin(KEY)
    line = log.finish(KEY, {"time_ms": 2.5})
    assert line.items() >= {"case": 1, "provider": "ours", "time_ms": 2.5}.items()
    again = Log(tmp_path / "log", RUN)
    assert not again.wants({"provider": "ours", "case": 1})
    assert again.wants({**KEY, "provider": "other"})
    assert again.results == [line]


def test_another_device_or_version_measures_again_and_coming_back_finds_its_own(tmp_path):
    Log(tmp_path / "log", RUN).finish(KEY, {"time_ms": 2.5})
    for run in ({**RUN, "device": "GPU B"}, {**RUN, "versions": {"torch": "3"}}):
        other = Log(tmp_path / "log", run)
        assert other.wants(KEY)
        assert other.results == []
    assert not Log(tmp_path / "log", RUN).wants(KEY)


def test_half_a_line_is_left_aside_and_nothing_is_written_into_it(tmp_path):
    first = Log(tmp_path / "log", RUN)
    first.begin(KEY)
    with (tmp_path / "log").open("a") as file:
        file.write('{"key": {"case": 1, "prov')
    second = Log(tmp_path / "log", RUN)
    assert second.wants(KEY)
    second.finish(KEY, {"time_ms": 1.0})
    assert [line[-1] for line in (tmp_path / "log").read_text().splitlines()] == ["}", "}", "v", "}", "}"]
    assert not Log(tmp_path / "log", RUN).wants(KEY)


def test_what_ended_its_process_twice_is_given_up_with_an_error_in_its_line(tmp_path):
    for _ in range(2):
        log = Log(tmp_path / "log", RUN)
        assert log.wants(KEY)
        log.begin(KEY)
    third = Log(tmp_path / "log", RUN)
    assert not third.wants(KEY)
    assert [line["error"] for line in third.results] == ["its process ended 2 times before it did"]
    fourth = Log(tmp_path / "log", RUN)
    assert not fourth.wants(KEY)
    assert len(fourth.results) == 1


def test_each_line_is_on_disk_with_its_time_before_the_next_begins(tmp_path):
    log = Log(tmp_path / "log", RUN)
    for step in (lambda: log.begin(KEY), lambda: log.note({"roofs": 1}), lambda: log.finish(KEY, {})):
        before = len((tmp_path / "log").read_text().splitlines())
        step()
        lines = (tmp_path / "log").read_text().splitlines()
        assert len(lines) == before + 1
        assert json.loads(lines[-1])["time"].endswith("+00:00")


def test_without_a_file_it_remembers(tmp_path):
    log = Log(None, RUN)
    log.finish(KEY, {})
    assert not log.wants(KEY)
