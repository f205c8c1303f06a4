"""`attn-course model` says what it did, does nothing twice, and never replaces a good file by a bad one."""

import hashlib
import subprocess

import pytest

from attn_course.language import getting


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small file that is the model here, and the place where it is to lie."""
    path = tmp_path / "download.gguf"
    path.write_bytes(b"numbers")
    monkeypatch.setattr(getting, "SHA256", hashlib.sha256(b"numbers").hexdigest())
    monkeypatch.setenv(getting.SETTING, str(tmp_path / "model.gguf"))
    monkeypatch.setattr(subprocess, "run", None)  # nothing is fetched
    monkeypatch.chdir(tmp_path)
    return path


def test_a_file_is_taken_and_then_it_is_there(attn_course, source):
    said = attn_course("model", "--file", "download.gguf")
    assert (said.code, said.out, said.err) == (0, "took model.gguf from download.gguf\n", "")
    said = attn_course("model")
    assert (said.code, said.out, said.err) == (0, "the language model is here: model.gguf\n", "")
    source.write_bytes(b"others")
    said = attn_course("model", "--file", "download.gguf")
    assert said.code == 1
    assert said.err.startswith("attn-course: download.gguf is not SmolLM2")
    assert said.err.count("\n") == 1
    assert source.with_name("model.gguf").read_bytes() == b"numbers"


def test_a_place_may_be_named_by_its_folder(attn_course, source, tmp_path):
    (tmp_path / "stick").mkdir()
    assert attn_course("model", "--file", "download.gguf", "--to", "stick").code == 0
    assert (tmp_path / "stick" / getting.NAME).read_bytes() == b"numbers"


def test_a_broken_file_is_fetched_anew_and_the_reason_is_said(attn_course, source, tmp_path, monkeypatch):
    (tmp_path / "model.gguf").write_bytes(b"numb")
    monkeypatch.setattr(getting, "fetch", lambda target: target.write_bytes(b"numbers"))
    said = attn_course("model")
    assert said.code == 0
    assert "what is there will be replaced" in " ".join(said.out.split())
    assert said.out.endswith("the language model is here now: model.gguf\n")


def test_where_it_is_switched_off_a_line_says_so(attn_course, source, monkeypatch):
    monkeypatch.setenv(getting.SETTING, "no")
    said = attn_course("model")
    assert (said.code, said.out, said.err) == (1, "", "attn-course: the language model is switched off by ATTN_COURSE_MODEL=no\n")
