"""Answers of the model that are stored with the course, so that lessons run where the model is not."""

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attn_course.files import in_short_lines, locked, write_atomically
from attn_course.language.getting import HOW, SHA256, ModelMissing

PATH = Path(__file__).with_name("answers.json")
RECORD = "ATTN_COURSE_RECORD"  # set while notebooks are built: what lessons ask is written down


def stored(question: str) -> Any:
    """Return the stored answer to a question of `question_of`.

    Raises ModelMissing if there is none.
    """
    answers = _answers()
    if question not in answers:
        raise ModelMissing(f"the language model is needed for {question}: {HOW}")
    return _read(answers[question])


def is_recording() -> bool:
    """Whether what is asked is to be written down."""
    return bool(os.environ.get(RECORD))


def record(question: str, answer: Any) -> None:
    """Write an answer down; arrays of at most 100 kB."""
    with locked(Path(tempfile.gettempdir(), "attn-course-answers.lock"), patience_s=60.0):  # lessons may be built side by side
        answers = _answers() | {question: _written(answer)}
        content = {"model_sha256": SHA256, "answers": dict(sorted(answers.items()))}
        write_atomically(PATH, in_short_lines(content))


def question_of(method: str, arguments: Mapping[str, Any]) -> str:
    """Return a question as one line, such as `write(text='The cat sat because', tokens=12)`."""
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def questions() -> list[str]:
    """Return all questions with a stored answer."""
    return [*_answers()]


def _answers() -> dict[str, Any]:
    content = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    return content.get("answers", {}) if content.get("model_sha256") == SHA256 else {}


def _written(answer: Any) -> Any:
    if isinstance(answer, np.ndarray):
        data = zlib.compress(np.ascontiguousarray(answer.astype(np.float32)).tobytes(), 9)
        if len(data) > 100_000:
            raise ValueError(f"a stored array must take at most 100 kB; got {len(data):,} bytes for shape {answer.shape}")
        return {"shape": answer.shape, "float32": base64.b64encode(data).decode()}
    if isinstance(answer, tuple | list):
        return [_written(each) for each in answer]
    return answer


def _read(written: Any) -> Any:
    if isinstance(written, dict) and {*written} == {"shape", "float32"}:
        data = zlib.decompress(base64.b64decode(written["float32"]))
        return np.frombuffer(data, np.float32).reshape(written["shape"]).copy()
    if isinstance(written, list):
        return [_read(each) for each in written]
    return written
