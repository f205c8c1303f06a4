"""Sixty minutes: what a lesson may hold that says `measured = true` in the list of lessons, and how long it takes.

All is counted in core sections, as `cut` has them: what is deeper has no bound but the number of its sections. A new term is what is set
in bold, begins with a small letter and has at most three words. A picture is a call of something in `figures`, the machine apart. Minutes
are words / 200, 1.5 a prediction, those of the turns, and 1 a line of displayed formulas outside the formula card.
"""

import math
import re
from collections.abc import Callable, Iterator

from nbformat import NotebookNode

from attn_course.authoring.cut import is_core, parts, words
from attn_course.authoring.formulas import keys
from attn_course.authoring.notebook import DEEPER, PREDICTED, tags_of
from attn_course.authoring.problems import Finding
from attn_course.authoring.series import Lesson
from attn_course.authoring.source import literal_calls
from attn_course.authoring.turns import YOUR_TURN

BOUNDS = {  # what is counted: at least and at most so many
    "words in core sections": (0, 2400),
    "numbered equations in core sections": (0, 10),
    "key equations": (3, 4),
    "predictions in core sections": (0, 5),
    "turns in core sections": (2, 3),
    "pictures and cards in core sections": (0, 3),
    "new terms": (0, 6),
    "deeper sections": (0, 3),
    "words before the first code": (0, 150),
    "minutes": (0, 60),
}
LADDER = {"turns in core sections": (8, 12)}  # where the lesson is a ladder, and each rung a turn
WORDS_A_MINUTE, MINUTES_A_PREDICTION = 200, 1.5
_DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
_BOLD = re.compile(r"\*\*([a-z][^*]*)\*\*")
_PICTURE = re.compile(r"\bfigures\.(?!machine\()\w+\(")
_TIME = re.compile(r"\*\*Time:\*\*\s+(\d+)\s+minutes")


def counted(book: NotebookNode, minutes_of: Callable[[str], int]) -> dict[str, int]:
    """Return how many there are of each thing that is bounded; `minutes_of`: id of a task -> minutes."""
    core = [(title, cell, text) for title, cell, text in parts(book) if is_core(title)]
    texts = [(title, text) for title, cell, text in core if cell.cell_type == "markdown"]
    code = [(cell, text) for _, cell, text in core if cell.cell_type == "code"]
    said = sum(words(text) for _, text in texts)
    turns = [task for cell, text in code if YOUR_TURN in tags_of(cell) for task in literal_calls(text, "check")]
    predicted = sum(PREDICTED in tags_of(cell) for cell, _ in code)
    shown = [formula for title, text in texts if not title.startswith("Formula card") for formula in _DISPLAY.findall(text)]
    bold = [term for _, text in texts for term in _BOLD.findall(text) if len(term.split()) <= 3]
    first = next((place for place, cell in enumerate(book.cells) if cell.cell_type == "code"), len(book.cells))
    lines = sum(1 + formula.count(r"\\") for formula in shown)
    taken = said / WORDS_A_MINUTE + MINUTES_A_PREDICTION * predicted + sum(map(minutes_of, turns)) + lines
    found = (
        said,
        sum(formula.count(r"\tag{") for formula in shown),
        len(keys(book)),
        predicted,
        len(turns),
        sum(len(_PICTURE.findall(text)) for _, text in code),
        len(set(bold)),
        len({title for title, _, _ in parts(book) if DEEPER.match(title)}),
        sum(words(cell.source) for cell in book.cells[:first]),
        math.ceil(taken),
    )
    return dict(zip(BOUNDS, found, strict=True))


def measured_findings(book: NotebookNode, lesson: Lesson, minutes_of: Callable[[str], int]) -> Iterator[Finding]:
    """Return what a measured lesson holds too much of, or too little; it may say that it takes longer than was counted, but no less."""
    if not lesson.measured:
        return
    found = counted(book, minutes_of)
    for what, (low, high) in (BOUNDS | LADDER if lesson.ladder else BOUNDS).items():
        if not low <= found[what] <= high:
            yield None, f"wanted {f'{low} to' if low else 'at most'} {high} {what}, got {found[what]}"
    said = [int(told) for cell in book.cells for told in _TIME.findall(cell.source)][:1]
    if lesson.minutes < found["minutes"] or said != [lesson.minutes]:
        told = f"{lesson.minutes} in the list of lessons, {' '.join(map(str, said)) or 'nothing'} behind **Time:**"
        yield None, f"wanted the minutes of a reader, at least {found['minutes']} as counted, got {told}"
