"""Work that was saved before two lessons were exchanged: a folder work/ and a class's submissions are graded as before."""

import json

import pytest

from attn_course import numbers
from tests.classroom import toy


def exchanged(tables, first, second):
    """The same tables after two lessons took each other's number, and with it their tasks and equations."""
    tables = json.loads(json.dumps(tables))
    places = {slug: tables["slugs"][slug]["number"] for slug in (first, second)}
    for slug, number in ((first, places[second]), (second, places[first])):
        tables["slugs"][slug]["number"] = number
        for kind in ("labels", "tasks"):
            known = tables[kind].get(slug, {})
            tables[kind][slug] = {name: f"{number}.{old.partition('.')[2]}" for name, old in known.items()}
    order = sorted(tables["slugs"], key=lambda slug: (tables["slugs"][slug]["number"] is None, tables["slugs"][slug]["number"]))
    return tables | {"slugs": {slug: tables["slugs"][slug] for slug in order}}


def test_a_folder_of_work_is_checked_as_before(toy_course, attn_course, monkeypatch):
    answers = {"twice": toy.RIGHT["twice"], "thrice": "def thrice(x):\n    return -3 * x"}
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells(answers))

    def verdicts():
        (notebook,) = json.loads(attn_course("check", "--json", "-").out)["notebooks"]
        return [[task[key] for key in ("id", "status", "points", "mistake", "hint")] for task in notebook["tasks"]]

    before = verdicts()
    assert [points for _, _, points, _, _ in before] == [2, 0, 0]
    assert "97 1/3 2/9" in " ".join(attn_course("progress").out.split())
    monkeypatch.setattr(numbers, "tables", lambda: exchanged(toy.NUMBERS, "another", "toy"))
    for task in toy.TASKS:
        assert task.ok_line.startswith("ok: task 97.")
        monkeypatch.delitem(vars(task), "ok_line")  # each command is a process of its own
    in_the_kernel = toy_course / "work" / "toy.py"
    in_the_kernel.write_text(in_the_kernel.read_text().replace("97", "?").replace("96", "97").replace("?", "96"))
    (toy_course / "exercises" / "ex_97_toy.ipynb").rename(toy_course / "exercises" / "ex_96_toy.ipynb")
    assert numbers.task_number("twice") == "96.1"
    assert "96 1/3 2/9" in " ".join(attn_course("progress").out.split())
    assert verdicts() == before


@pytest.mark.parametrize("options", [(), ("--resume",)])
def test_a_class_is_graded_as_before(options, room, attn_course, monkeypatch):
    room.with_students(4)

    def tables(out, *options):
        said = attn_course("grade", "in", "--out", out, "--seed", "5", *options)
        assert said.code == 0
        assert "graded again" not in said.err
        return [(room / out / name).read_text() for name in ("grades.csv", "summary.csv")]

    before = tables("out")
    assert "s03,softmax,stable-softmax,3,3,passed," in before[0]
    there = numbers.tables()
    monkeypatch.setattr(numbers, "tables", lambda: exchanged(there, "softmax", "masking"))
    assert numbers.task_number("stable-softmax") == f"{there['slugs']['masking']['number']}.1"
    assert tables("out" if options else "again", *options) == before
