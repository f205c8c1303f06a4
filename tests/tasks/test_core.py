"""What a task says of itself, and which tasks are refused."""

import pytest
import sympy

from attn_course import numbers
from attn_course.tasks import Wrong
from tests.tasks.toys import DERIVATION, DERIVE, FIGURE, FORMULA, PREDICT, REPAIR, WRITE, changed


def test_the_ok_line_is_fixed_and_counts_cases_and_points():
    assert WRITE.ok_line == "ok: task centre-and-scale, centre and scale: 4 cases, 3 points"
    assert changed(PREDICT, points=1).ok_line == "ok: task predict-three-numbers, predict three numbers: 1 case, 1 point"


@pytest.mark.parametrize(
    ("title", "shown"),
    [("VJP by hand", "VJP by hand"), ("A VJP", "a VJP"), ("Softmax", "softmax"), ("X", "x"), ("KL, by hand", "KL, by hand")],
)
def test_the_ok_line_keeps_the_capitals_of_an_acronym(title, shown):
    assert changed(WRITE, title=title).ok_line == f"ok: task centre-and-scale, {shown}: 4 cases, 3 points"


def test_an_id_has_a_lesson_and_a_number_as_the_course_counts(monkeypatch):
    counted = {
        "labels": {"toy": {"softmax": "7.3"}},
        "tasks": {"toy": {"centre-and-scale": "7.12"}},
        "slugs": {"toy": {"number": 7, "title": "Toy"}},
    }
    monkeypatch.setattr(numbers, "tables", lambda: counted)
    assert (WRITE.lesson, WRITE.number) == ("toy", "7.12")
    assert changed(WRITE).ok_line.startswith("ok: task 7.12, centre and scale: ")
    assert WRITE.card.startswith("## Task 7.12: Centre and scale\n")
    assert WRITE.card.endswith(" · Eq.\N{NO-BREAK SPACE}(7.3)*")


def test_the_card_holds_heading_kind_stars_minutes_points_skill_and_equation():
    assert WRITE.card == (
        "## Task centre-and-scale: Centre and scale\n\n*write~a~function · ★★☆☆☆ · 5~minutes · 3~points · trains nothing · "
        f"{numbers.eq('softmax').replace(' ', '~')}*"
    ).replace("~", "\N{NO-BREAK SPACE}")
    assert WRITE.limits == "<small>Not allowed: layer norms and softmax.</small>"
    assert changed(WRITE, forbid=()).limits == ""
    assert "Eq." not in changed(WRITE, equation=None).card


@pytest.mark.parametrize("task", [DERIVE, changed(DERIVE, symbols=("t",), functions=())], ids=["two symbols", "a single one"])
def test_a_derive_task_hands_out_real_symbols_and_its_functions(task):
    names = {}
    exec(task.given_source, names)
    assert {name: names[name] for name in task.symbols} == {name: sympy.Symbol(name, real=True) for name in task.symbols}
    assert {name: names[name] for name in task.functions} == {name: getattr(sympy, name) for name in task.functions}


THREE = [Wrong(name, lambda: 0.0, f"hint {name}") for name in "abc"]


@pytest.mark.parametrize(
    ("task", "fields", "wanted"),
    [
        (WRITE, {"id": "2"}, "an id such as 'stable-softmax'"),
        (WRITE, {"id": "centre-check"}, "an id such as 'stable-softmax'"),
        (WRITE, {"kind": "guess"}, "a kind out of"),
        (WRITE, {"entry": "my softmax"}, "an entry that is a Python name"),
        (WRITE, {"entry": "lambda"}, "an entry that is a Python name"),
        (WRITE, {"points": 0}, "positive points and minutes"),
        (WRITE, {"minutes": -1}, "positive points and minutes"),
        (WRITE, {"difficulty": 0}, "a difficulty from 1 to 5"),
        (WRITE, {"difficulty": 6}, "a difficulty from 1 to 5"),
        (WRITE, {"wrong": THREE[:2]}, "three or more known wrong answers"),
        (WRITE, {"wrong": [*THREE, THREE[0]]}, "names all differ"),
        (WRITE, {"wrong": [*THREE, Wrong("d", abs, "hint a")]}, "hints all differ"),
        (WRITE, {"hints": ("a", "b")}, "three hints"),
        (WRITE, {"symbols": ("s",)}, "symbols if, and only if"),
        (DERIVE, {"symbols": ()}, "symbols if, and only if"),
        (REPAIR, {"broken": None}, "a broken function if, and only if"),
        (PREDICT, {"partial": True}, "a function to be written or repaired, if parts of it count"),
        (WRITE, {"broken": abs}, "a broken function if, and only if"),
        (FIGURE, {"figure_data": None}, "figure data if, and only if"),
        (PREDICT, {"figure_data": dict}, "figure data if, and only if"),
        (FORMULA, {"left": ""}, "a left side if, and only if, it is a formula task"),
        (FORMULA, {"symbols": ()}, "symbols if"),
        (FORMULA, {"answer": abs}, "an answer in LaTeX"),
        (FORMULA, {"given": (abs,)}, "no helper functions"),
        (DERIVATION, {"answer": DERIVATION.answer[::3]}, "lines from the start to the goal"),
        (WRITE, {"variants": [{"T": 1}]}, "variants only if it is a predict or a figure task"),
        (PREDICT, {"variants": [{"T": 1}, {"w": 1}]}, "variants of the same names"),
        (PREDICT, {"variants": []}, "variants of the same names"),
    ],
)
def test_a_task_that_lacks_something_is_refused_with_the_reason(task, fields, wanted):
    with pytest.raises(ValueError, match=f"^task .* needs .*{wanted}"):
        changed(task, **fields)
