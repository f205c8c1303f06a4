"""Several notebooks of one student on one chapter: how many are graded."""

from collections import Counter, defaultdict
from dataclasses import replace

from attn_course.classroom.hand_ins import Class, HandIn
from attn_course.numbers import lesson_number


def at_most(found: Class, copies: int) -> Class:
    """Return the class with a problem for each notebook beyond so many of one student on one chapter, in the order of their names.

    `copies`: how many may be graded; those that have a problem already do not count.
    """
    there = Counter((each.student, each.lesson) for each in found.hand_ins if not each.problem)
    taken: defaultdict[tuple[str, str | None], int] = defaultdict(int)

    def limited(hand_in: HandIn) -> HandIn:
        key = hand_in.student, hand_in.lesson
        if hand_in.problem:
            return hand_in
        taken[key] += 1
        if taken[key] <= copies:
            return hand_in
        which = f"{there[key]} notebooks on chapter {lesson_number(hand_in.lesson)}"
        return replace(hand_in, problem=f"is one of {which}, of which the first {copies} by name are graded")

    return replace(found, hand_ins=tuple(map(limited, found.hand_ins)))
