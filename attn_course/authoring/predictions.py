"""What answers a question of a lesson is folded until the reader opens it.

A text that says **Predict** asks. The code behind it, tagged `predicted`, is built with its output folded, which opens when the cell is
run; the text behind that, tagged `answer`, is built into a fold of its own, which pages and the course's JupyterLab join to that of the
output. A text tagged `ours` behind a cell tagged `your-turn` is folded too. What asks is built as a quotation, from the word that asks to
the end of the paragraph: front ends draw a bar beside it. The site and the slides, which have one of their own, take its sign off.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from nbformat import NotebookNode

from attn_course.authoring.notebook import ANSWER, OURS, PREDICTED, tags_of
from attn_course.authoring.problems import Finding
from attn_course.authoring.source import Cell
from attn_course.authoring.turns import YOUR_TURN

FOLDS = {ANSWER: ("answer", "What came out"), OURS: ("answer ours", "Our answer")}  # their class and their line
_ASKS = re.compile(r"\*\*Predict\b")
_ASKING = re.compile(r"""(?:(?P<first>^|(?<=\n\n))|(?<=[.?!:)"])[ \n])(?=\*\*(?:Predict|Your turn|Spot the mistake)\b)""")
_BAR = re.compile(r"^>", re.MULTILINE)  # without a blank, which would make it a word
_UNBENT = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|</?[a-z!][^>]*>|\]\([^)]*\)|[\"']", re.DOTALL)
_BENT = {'"': "“”", "'": "‘’"}
_STRAIGHT = str.maketrans("“”‘’", "\"\"''")
_TAG = re.compile(r"\(\d+\.\d+\)|\d{4}\.\d{5}|^#+ \d+\.\d+", re.MULTILINE)  # of equations, papers and sections
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)+")


def fold(cell: Cell) -> Cell:
    """Return the cell, an answer inside its fold, and what asks as a quotation."""
    for tag in FOLDS.keys() & set(cell.tags):
        look, line = FOLDS[tag]
        return replace(cell, text=f'<details class="{look}"><summary>{line}</summary>\n\n{cell.text}\n\n</details>')
    if cell.kind == "markdown":
        return replace(cell, text=_ASKING.sub(lambda found: ">" if found["first"] is not None else "\n>", cell.text))
    return cell


def unquoted(text: str) -> str:
    """Return a text without the signs of its quotations, and with straight quotation marks."""
    return _BAR.sub("", text).translate(_STRAIGHT)


def curly(text: str) -> str:
    """Return a text with curly quotation marks, but for those of code, formulas, tags and addresses; "Eq." stays beside its number.

    >>> curly('It is *"it"*, and `"it"` is <b class="it">"$x$"</b> ("it").')
    'It is *“it”*, and `"it"` is <b class="it">“$x$”</b> (“it”).'
    """

    def bent(found: re.Match[str]) -> str:
        if found[0] not in _BENT:
            return found[0]
        before, after = text[: found.start()][-1:], text[found.end() :][:1]
        opens = not before or before in " \n[>|-–—/" or (before in "*_(" and (after.isalnum() or after in "$`*"))
        return _BENT[found[0]][not opens]

    return re.sub(r"(?<=\bEq\.) (?=\()", "\N{NO-BREAK SPACE}", _UNBENT.sub(bent, text))


def asking_findings(book: NotebookNode) -> Iterator[Finding]:
    """Every question has its folded outputs, and every answer stands behind some."""
    asked, seen, before = "", False, ""
    for cell in book.cells:
        is_code, tags = cell.cell_type == "code", tags_of(cell)
        if OURS in tags and (is_code or before != YOUR_TURN):
            yield cell.id, f"tagged {OURS}; wanted a text right behind a cell tagged {YOUR_TURN}"
        before = YOUR_TURN if YOUR_TURN in tags else ""
        asks = not is_code and bool(_ASKS.search(cell.source))
        if (PREDICTED in tags and not is_code) or (ANSWER in tags and is_code):
            yield cell.id, f"wanted code tagged {PREDICTED} and text tagged {ANSWER}, got {', '.join(tags)} at {cell.cell_type}"
        elif PREDICTED in tags:
            if not asked:
                yield cell.id, f"tagged {PREDICTED}; wanted a text before it that says **Predict**"
            seen = True
        elif ANSWER in tags:
            if not seen:
                yield cell.id, f"tagged {ANSWER}; wanted it behind a cell tagged {PREDICTED}"
            if asks:
                yield cell.id, f"tagged {ANSWER}, and asks for a prediction: nobody sees the question before the answer is opened"
        elif asked and not seen and (asks or is_code):
            yield asked, f"asks for a prediction; wanted the next code cell tagged {PREDICTED}"
            asked = ""
        if asks or (seen and not is_code and ANSWER not in tags):
            asked, seen = cell.id if asks else "", False
    if asked and not seen:
        yield asked, f"asks for a prediction; wanted a code cell behind it tagged {PREDICTED}"


def spoilt_findings(book: NotebookNode) -> Iterator[Finding]:
    """No text in view gives away a number of a folded output, before the next question."""
    before: set[str] = set()
    secret: dict[str, str] = {}
    for cell in book.cells:
        tags, visible = tags_of(cell), _numbers(cell.source)
        if PREDICTED in tags:
            before |= visible
            told = set().union(*map(_numbers, _texts(cell)))
            secret = {**secret, **dict.fromkeys(told - before, cell.id)}
        elif ANSWER not in tags:
            if _ASKS.search(cell.source):
                secret = {}
            visible |= set().union(*map(_numbers, _alts(cell)))
            yield from ((cell.id, f"gives away {number}, which {secret[number]} prints") for number in sorted(visible & secret.keys()))
            before |= visible


def _numbers(text: str) -> set[str]:
    """The numbers of two digits or more in a text."""
    return {found.replace(",", "") for found in _NUMBER.findall(_TAG.sub("", text))}


def _texts(cell: NotebookNode) -> list[str]:
    """What a cell printed, and what stands for its pictures."""
    return [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]


def _alts(cell: NotebookNode) -> list[str]:
    return [
        described.get("alt", "")
        for output in cell.get("outputs", [])
        for described in output.get("metadata", {}).values()
        if isinstance(described, dict)
    ]
