"""attn-course cards: the file that Anki reads holds what the registry says, under keys that stay."""

import html
import json
import re
import sqlite3
import zipfile
from pathlib import Path

import pytest

from attn_course.equations.core import REGISTRY

ROOT = Path(__file__).parents[2]


def read(path: Path, folder: Path) -> tuple[dict[str, tuple[str, str]], dict[str, bytes], list[str]]:
    """Return what an .apkg holds: front and back of each note by its key, pictures by name, and the names of its decks."""
    with zipfile.ZipFile(path) as packed:
        database = packed.extract("collection.anki2", folder)
        pictures = {name: packed.read(number) for number, name in json.loads(packed.read("media")).items()}
    with sqlite3.connect(database) as opened:
        notes = {guid: tuple(fields.split("\x1f")) for guid, fields in opened.execute("select guid, flds from notes")}
        (decks,) = opened.execute("select decks from col").fetchone()
    return notes, pictures, sorted(deck["name"] for deck in json.loads(decks).values())


def test_the_cards_of_two_lessons_are_those_of_the_registry(attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, out, err = attn_course("cards", "softmax", "8", "--out", str(tmp_path / "two.apkg"))
    assert (code, err) == (0, "")
    notes, pictures, decks = read(tmp_path / "two.apkg", tmp_path)
    assert f"{len(notes)} cards in" in out
    assert decks == ["Default", "Own attention::02 Softmax", "Own attention::08 Masks"]
    equations = [*REGISTRY.all_equations("softmax"), *REGISTRY.all_equations("masking")]
    for asks, count in (("what is the formula?", len(equations)), ("which one holds?", sum(bool(one.wrongs) for one in equations))):
        assert sum(asks in front for front, _ in notes.values()) == count
    assert sum("What follows for" in front for front, _ in notes.values()) > 10
    (asked, told) = next((front, back) for front, back in notes.values() if front.startswith("<b>Softmax Jacobian</b>") and "<ol>" in front)
    forms = dict(zip(*(re.findall(r"<li>(.+?)</li>", side) for side in (asked, told)), strict=True))
    jacobian = REGISTRY.get_equation("softmax-jacobian")
    meant = {form.latex: form.name for form in jacobian.wrongs} | {jacobian.latex: "this one holds"}
    assert {html.unescape(latex).removeprefix(r"<div>\[").removesuffix(r"\]</div>"): words for latex, words in forms.items()} == meant
    assert list(pictures) == ["attn-read-mask.svg"]
    assert pictures["attn-read-mask.svg"].startswith(b"<svg")
    (figure,) = [(front, back) for front, back in notes.values() if "<img" in front]
    assert "The figure shows the weights" in figure[0]
    assert figure[1].startswith("<p>6, 4, 3</p>")
    assert not [text for note in notes.values() for text in note if re.search(r"\{eq\}|\$|\ue000", text)]
    attn_course("cards", "softmax", "--out", str(tmp_path / "one.apkg"))
    assert set(read(tmp_path / "one.apkg", tmp_path)[0]) < set(notes)  # so Anki knows a card again


@pytest.mark.parametrize(("words", "complaint"), [(["--out", "cards.txt"], "ends in .apkg"), (["softmux"], "there is no chapter softmux")])
def test_what_cannot_be_is_one_line(words, complaint, attn_course, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    code, out, err = attn_course("cards", *words)
    assert (code, out) == (2, "")
    assert complaint in err
