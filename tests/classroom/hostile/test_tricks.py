"""Tricks in an answer cell: nothing on that task, a reason in words, and the notebook graded next is none the worse."""

import pytest

from tests.classroom import toy
from tests.classroom.hostile.support import assert_neighbour_unharmed, grade
from tests.classroom.hostile.tricks import ENDLESS, TRICKS


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_gets_nothing_for_a_reason(request, toy_chapter, tmp_path, trick):
    grader = request.getfixturevalue("hasty" if trick in ENDLESS else "strict")
    source, reason = TRICKS[trick]
    graded = grade(grader, tmp_path / "97_hostile.ipynb", {**toy.RIGHT, "thrice": source})
    first, attacked, _ = graded.verdicts
    assert first.passed, "a task judged before the trick keeps its points"
    assert attacked.points == 0
    assert reason in attacked.message, attacked.message
    assert len(attacked.message.split()) >= 4
    assert attacked.message.isprintable()
    assert len(attacked.message) < 2_500
    assert_neighbour_unharmed(grader, tmp_path)
