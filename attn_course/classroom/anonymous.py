"""Pages that name nobody: an alias for each student, and marks without what would tell who it is."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Decided, Marked
from attn_course.numbers import lesson_number

_SHORTEST = 3  # shorter names are not looked for in texts: they stand in too many words


def aliases_of(students: Iterable[str], seed: int) -> dict[str, str]:
    """Return an alias for each student, which stays the same as long as the run goes on; two never share one."""
    found: dict[str, str] = {}
    for student in students:
        digest = hashlib.sha256(f"{seed} {student}".encode("utf-8", "surrogateescape")).hexdigest()
        alias = next(short for length in range(4, 65) if (short := f"student-{digest[:length]}") not in found.values())
        found[student] = alias
    return found


def without_names(found: Class, marked: Sequence[Marked], aliases: Mapping[str, str]) -> tuple[Class, list[Marked]]:
    """Return class and marks as pages may show them: students, their notebooks' names and folders, and notes that hold them.

    What a student prints, or writes into a message, may still tell who it is.
    """
    words: dict[str, str] = {}
    short: dict[str, str] = {}
    for student, alias in aliases.items():
        known, owner = found.roster.get(student), found.owners.get(student)
        said = [student, *((known.name, known.email) if known else ()), *((owner.label, owner.name) if owner else ())]
        words |= {word: alias for word in said if len(word) >= _SHORTEST}
        short |= {student: alias} if len(student) < _SHORTEST else {}
    order = sorted(words, key=len, reverse=True)

    def hidden(text: str) -> str:
        for word in order:
            text = text.replace(word, words[word])
        return text

    masked = []
    for each in marked:
        chapter = f"chapter {lesson_number(each.lesson)}.ipynb" if each.notebook else ""
        mine = {each.notebook: chapter, each.place.partition("/")[2]: chapter} if each.notebook else {}
        texts = []
        for note in each.notes:
            for word in sorted(mine, key=len, reverse=True):
                note = note.replace(word, mine[word])
            texts.append(hidden(note))
        decided = tuple(
            Decided(replace(one.decision, student=aliases[each.student], comment=hidden(one.decision.comment)), one.before)
            for one in each.decided
        )
        alias = aliases[each.student]
        shown = replace(each, student=alias, name="", assignment=each.lesson or "", notebook=chapter, notes=tuple(texts), decided=decided)
        answers = {task: hidden(text) for task, text in each.answers.items()}
        masked.append(replace(shown, place=f"{alias}/{chapter or each.lesson}", answers=answers))
    own_words = re.compile("|".join(rf"(?<!\w){re.escape(student)}(?!\w)" for student in short) or r"(?!)")
    notes = [own_words.sub(lambda name: short[name[0]], hidden(note)) for note in found.notes]  # these are ours, and list ids
    return replace(found, notes=tuple(notes)), masked
