"""What is known of when notebooks came, and from whom."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from attn_course.classroom.hand_ins import Class, HandIn
from attn_course.numbers import counted

SOURCE = "timestamp.txt"
_SHOWN = 5


def notes_on_times(hand_ins: Sequence[HandIn], lessons: Collection[str], due: datetime | None) -> list[str]:
    """Return what a teacher should know of the times: those that are missing, and whose word the others are.

    nbgrader's `submit` writes timestamp.txt in the student's own process (nbgrader/exchange/default/submit.py), and `collect` copies it:
    whoever can write to the exchange can write another time.

    `lessons`: the lessons asked for; other notebooks are passed over. `due`: when notebooks were due; without it times do not
    matter.
    """
    wanted = [each for each in hand_ins if each.lesson in lessons and not each.late] if due is not None else []
    unknown = [each.place for each in wanted if each.handed_in is None]
    notes = []
    if unknown:
        named = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else "")
        which = f"{len(unknown)} of {len(wanted)} notebooks"
        notes.append(f"no {SOURCE} says when {which} came, so none of these can be marked as late: {named}")
    if len(unknown) < len(wanted):
        which = f"{len(wanted) - len(unknown)} of {len(wanted)} notebooks"
        notes.append(f"when {which} came is what {SOURCE} beside them says, which is written in the student's own account")
    return notes


def notes_on_platforms(found: Class, platform_of_gradebook: str, due: datetime | None) -> list[str]:
    """Return what a teacher should know of the hand-ins of learning platforms, which say that a notebook is late, but not when it came."""
    asked = Counter(found.owners[each.student].platform for each in found.hand_ins if each.student in found.owners)
    notes = []
    if asked["canvas"] and due is not None:
        notes.append(f"which of Canvas's {counted(asked['canvas'], 'hand-in')} are late is what Canvas says, by its own due time")
    if asked["moodle"] and platform_of_gradebook != "moodle":
        notes.append(f"no worksheet says which of Moodle's {counted(asked['moodle'], 'hand-in')} are late: give it with --gradebook")
    return notes
