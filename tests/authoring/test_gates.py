"""What the gate asks of stored results, and where it asks less: outside a checkout, and of a lesson that is planned."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from attn_course import experiments
from attn_course.authoring import gates
from attn_course.authoring.gates import Written
from attn_course.authoring.series import series
from tests.tasks.toys import RETYPED

OLD = "lessons/scaling/results/scale.json belongs to an older source: run `make experiments`"


@pytest.fixture
def scaling(root) -> Written:
    return Written(root, next(lesson for lesson in series(root) if lesson.slug == "scaling"), {})


def test_results_of_an_older_source_and_of_no_experiment_are_found(scaling, monkeypatch):
    assert list(gates.result_gate(scaling)) == []
    stored = sorted((scaling.root / "attn_course/lessons/scaling/results").iterdir())
    stale = SimpleNamespace(path=stored[0], problem=lambda: OLD)
    monkeypatch.setattr(experiments, "all_experiments", lambda: [stale])
    orphans = [
        f"attn_course/lessons/scaling/results/{path.name}: results of no experiment: list it in EXPERIMENTS, or remove the file"
        for path in stored[1:]
    ]
    assert list(map(str, gates.result_gate(scaling))) == [f"attn_course/lessons/scaling/results/{stored[0].name}: {OLD}", *orphans]


def test_a_lesson_without_experiments_has_no_results_to_ask_for_and_none_to_keep(scaling, monkeypatch):
    monkeypatch.setattr(gates.numbers, "lesson_modules", lambda room, slug: [])
    monkeypatch.setattr(experiments, "all_experiments", lambda: pytest.fail("torch is imported for nothing"))
    assert list(gates.result_gate(Written(scaling.root, series(scaling.root)[0], {}))) == []
    assert all(problem.message.startswith("results of no experiment") for problem in gates.result_gate(scaling))
    assert list(gates.result_gate(scaling))


@pytest.mark.usefixtures("no_shape_check")  # as in the gate of each lesson
def test_where_there_are_no_tests_right_answers_are_not_asked_for(scaling, tmp_path):
    assert gates.has_right_answers(scaling.root)
    assert not gates.has_right_answers(tmp_path)
    released = Written(tmp_path, scaling.lesson, {})
    assert list(gates.task_gate(released)) == []


def test_a_formula_task_that_judges_its_answer_by_the_answer_is_found(scaling, monkeypatch):
    monkeypatch.setattr("attn_course.tasks.registry.declared_tasks", lambda slug: [RETYPED])
    found = [problem.message for problem in gates.task_gate(scaling) if problem.cell == RETYPED.id]
    assert "the given D is only operators on the other givens: take another way, or the answer judges itself" in found


def test_the_environment_is_left_as_it_was(scaling, monkeypatch):
    lesson = replace(scaling.lesson, slug="nowhere", planned=True)  # of which there is nothing to judge
    for before in (None, "0"):
        if before is None:
            monkeypatch.delenv("TRITON_INTERPRET", raising=False)
        else:
            monkeypatch.setenv("TRITON_INTERPRET", before)
        gates.lesson_problems(Written(scaling.root, lesson, {}))
        assert gates.os.environ.get("TRITON_INTERPRET") == before


def test_a_planned_lesson_is_judged_but_neither_numbered_nor_built(built):
    built.edit("notebooks/series.toml", 'slug = "triple"', 'planned = true\nslug = "triple"')
    built.write("attn_course/lessons/triple/equations.py", '@claim("thrice")\ndef _():\n    "3x = x + x + x"\n')
    built.write("attn_course/lessons/triple/tasks.py", 'A = asked_formula(\n    "treble-it",\n)\n@asked("treble-twice")\ndef f(): ...\n')
    built.write("notebooks/src/triple.py", '# %% [markdown] id="title"\n# # {lesson}`triple` Thrice\n')
    judged = []
    built.build(gate=lambda written: judged.append(written.slug) or [])
    assert judged == []
    tables = json.loads(built.read("attn_course/numbers.json"))
    assert tables["slugs"]["triple"] == {"number": None, "title": "Triple", "name": "Thrice"}
    assert (tables["labels"]["triple"], tables["tasks"]["triple"]) == ({"thrice": None}, {"treble-it": None, "treble-twice": None})
    assert built.check(gate=lambda written: judged.append((written.slug, list(written.books))) or []) == []
    assert judged == [("double", ["notebooks", "solutions", "exercises"]), ("triple", [])]
    shutil.rmtree(built.root / "attn_course/lessons/triple")
    assert built.check(only=["triple"], gate=lambda written: []) != [], "numbers.json is stale"
