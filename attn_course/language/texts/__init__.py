"""Texts that a language model is measured on: a story and a lecture of this course's own, a licence, a program."""

from pathlib import Path

NAMES = ("story", "lecture", "licence", "code")


def text(name: str) -> str:
    """Return one of NAMES: "story", written for this; "lecture", sentences of lessons; "licence", the start of Apache 2.0; "code", Python.

    Each has more than 512 tokens of SmolLM2. The licence is one that such a model has read many times.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    return Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
