"""What a worker sends is no more than arrays and text, whoever made it: nothing of it stops the grader."""

import json

import numpy as np
import pytest

from attn_course.tasks import all_tasks, judge, lessons
from attn_course.tasks.gates import Bench
from attn_course.tasks.run import Result, changed_input, quiet
from tests.classroom import toy
from tests.classroom.hostile.forged import FRAMES, SENDS
from tests.classroom.hostile.support import assert_neighbour_unharmed, grade


@pytest.mark.parametrize("frame", FRAMES)
def test_a_forged_frame_gets_nothing_and_stops_nobody(strict, toy_chapter, tmp_path, frame):
    sent, reason = FRAMES[frame]
    attack = f"{SENDS}    {sent}\n    {sent}\n    os._exit(0)"  # an answer to each of two calls
    graded = grade(strict, tmp_path / "97_hostile.ipynb", {"twice": toy.RIGHT["twice"], "thrice": attack})
    first, attacked, _ = graded.verdicts
    assert (first.points, attacked.points) == (2, 0)
    assert reason in attacked.message
    assert attacked.message[0] not in "=+-@"
    assert attacked.message.isprintable()
    assert_neighbour_unharmed(strict, tmp_path)


@pytest.mark.parametrize("where", ["in a cell", "in a call"])
@pytest.mark.parametrize("status", [1, 70, 71])
def test_no_exit_status_stops_the_grader(strict, toy_chapter, tmp_path, status, where):
    """71 is what a worker says that could not be confined; then no more is graded. The learner's code may not say so."""
    source = f"import os\n{'def thrice(x): ' if where == 'in a call' else ''}os._exit({status})"
    verdict = grade(strict, tmp_path / "97_hostile.ipynb", {"thrice": source}).verdicts[1]
    assert verdict.points == 0
    assert f"ended Python (exit status {status}: does it call os._exit?)" in verdict.message
    assert_neighbour_unharmed(strict, tmp_path)


@pytest.mark.parametrize("before", [1, 2.0, None, "sum", np.float64(1.0), [1.0], {"w": np.ones(2)}, np.ones(2)])
def test_an_input_that_came_back_as_anything_is_a_changed_input(before):
    for after in (np.ones(3), [np.ones(3)], {"w": np.ones(3)}, (), {"other": 1}):
        assert changed_input({"x": before}, {"x": after}) == "x"


STRANGE = {
    "infinite": lambda right: np.full_like(right, np.inf),
    "not a number": lambda right: np.full_like(right, np.nan),
    "huge": lambda right: np.full_like(right, 1e308),
    "tiny": lambda right: np.full_like(right, 5e-324),
    "wider than float64": lambda right: np.full(right.shape, np.longdouble("1e4000")),
    "too many axes": lambda right: np.ones((1,) * 16),
    "without elements": lambda right: np.ones((0, 7)),
    "another shape": lambda right: np.ones((*right.shape, 2)),
}


@pytest.mark.parametrize("chapter", lessons())
def test_the_judge_has_words_for_every_array(chapter):
    for bench in map(Bench, all_tasks(chapter)):  # it remembers, as the grader does: each known answer runs once
        with quiet():
            rights = [right.arrays for right in bench.expect(bench.task, bench.task.answer, bench.cases)]
            each = [[tuple(map(strange, right)) for right in rights] for strange in STRANGE.values()]
            for arrays in (*each, [()] * len(rights), [(*right, *right) for right in rights]):
                assert not judge(bench.task, bench.cases, [*map(Result, arrays)], expect=bench.expect).passed


@pytest.mark.parametrize(
    ("source", "cell_id"),
    [
        ("1", f"task-{'1' * 5000}-1"),
        (f"check('{'1' * 5000}.1', f)", "own"),
        ("1", "task-٩٧-٢"),
        ("1\0", "\ud800"),
        ("x = " + "(" * 5000 + ")" * 5000, "own"),
        ("x = " + "-" * 90_000 + "1", "own"),
        ("x" + ".a" * 90_000, "own"),
        ("\n" * 900_000 + "%time 1", "own"),
    ],
    ids=["digits", "digits of a check", "other digits", "a null byte", "brackets", "signs", "dots", "empty lines"],
)
def test_an_absurd_cell_costs_its_own_notebook_nothing_else(strict, toy_chapter, tmp_path, source, cell_id):
    cells = [*toy.cells(toy.RIGHT), toy.cell(source, cell_id)]
    graded = strict.grade(toy.write(tmp_path / "97_absurd.ipynb", cells), student="mallory")
    assert [verdict.points for verdict in graded.verdicts] == [2, 3, 4], graded


def test_what_a_file_says_of_itself_is_cut_short(strict, toy_chapter, tmp_path):
    book = {"nbformat": 4, "cells": toy.cells(toy.RIGHT), "metadata": {"language_info": {"name": "R\x1b" * 100_000}}}
    (tmp_path / "97_long.ipynb").write_text(json.dumps(book), encoding="utf-8")
    graded = strict.grade(tmp_path / "97_long.ipynb", student="mallory")
    assert all(len(verdict.message) < 1_100 and verdict.message.isprintable() for verdict in graded.verdicts)
    assert all(len(note) < 1_100 for note in graded.notes)
