"""The cut of a lesson: a short core, a few key equations and their card, and deeper sections that no core needs.

A lesson is held to the bounds below once it marks an equation with the key mark, see `numbering`; what is said of deeper sections holds
for a lesson with either. Core is all but the deeper sections and the sources. Its words are those of its Markdown, opened answers
included; a formula counts as one word, and markup and addresses as none.
"""

import re
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from attn_course.authoring.formulas import keys, labels_by_number, tagged
from attn_course.authoring.notebook import DEEPER, PREDICTED, code_cells, tags_of
from attn_course.authoring.numbering import inline
from attn_course.authoring.problems import Finding
from attn_course.authoring.source import is_called, literal_calls
from attn_course.authoring.turns import YOUR_TURN

KEYS = (3, 5)
MAX_NUMBERED = 20  # equations
MAX_PREDICTIONS = 6
MIN_TURNS = 2
MAX_COLUMNS = 88  # of a line of code
MAX_WORDS_TO_MACHINE = 300
MAX_CORE_WORDS = 3500
_CITED = re.compile(r"\bEq\.\s\((\d+\.\d+)\)")
_FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+(?:\n[^$\n]+)?\$", re.DOTALL)
_MARKUP = re.compile(r"<[^<>]+>|\]\([^()]*\)")


def cut_findings(book: NotebookNode, deeper: Collection[str]) -> Iterator[Finding]:
    """Return all of this module for a lesson; `deeper` are the labels in deeper sections of the whole course."""
    framed = keys(book)
    if framed or any(DEEPER.match(title) for title, _, _ in parts(book)):
        yield from _core_findings(book, deeper)
    if framed:
        yield from _key_findings(book, framed, deeper)
        yield from _bound_findings(book)


def _core_findings(book: NotebookNode, deeper: Collection[str]) -> Iterator[Finding]:
    """No core section leans on an equation of a deeper one, of whatever lesson."""
    labels = labels_by_number()
    for title, cell, text in parts(book):
        if not is_core(title):
            continue
        named = {labels.get(number, number) for number in _CITED.findall(text)}
        if cell.cell_type == "code":
            named |= {*literal_calls(text, "show"), *literal_calls(text, "alive")}
        for label in sorted(named & {*deeper}):
            yield cell.id, f"Eq. {label} belongs to a deeper section, which no core section needs; wanted at most a link to that section"


def _key_findings(book: NotebookNode, framed: dict[str, str], deeper: Collection[str]) -> Iterator[Finding]:
    """There are a few key equations, all of them core, and the formula card says these and no others."""
    low, high = KEYS
    if not low <= len(framed) <= high:
        yield None, f"wanted {low} to {high} key equations, got {len(framed)}: {', '.join(framed)}"
    for label in sorted(framed.keys() & {*deeper}):
        yield None, f"Eq. {label} is a key equation; wanted it in a core section, got it in a deeper one"
    labels = labels_by_number()
    cards = [(cell.id, text) for title, cell, text in parts(book) if title.startswith("Formula card")]
    place, card = cards[0][0] if cards else None, "\n".join(text for _, text in cards)
    cited = [labels.get(number, number) for number in _CITED.findall(card)]
    for label, formula in framed.items():
        if (card.count(inline(formula)), cited.count(label)) != (1, 1):
            yield place, f"wanted {{key}}`{label}` and {{eq}}`{label}` once each in the formula card"
    for label in sorted({*cited} - framed.keys()):
        yield place, f"wanted key equations alone in the formula card, got Eq. {label}"


def _bound_findings(book: NotebookNode) -> Iterator[Finding]:
    """Equations, predictions, turns, lines of code and words keep in measure."""
    numbered = len(tagged(book))
    if numbered > MAX_NUMBERED:
        yield None, f"wanted at most {MAX_NUMBERED} numbered equations, got {numbered}"
    tags = [tag for cell in book.cells for tag in tags_of(cell)]
    if tags.count(PREDICTED) > MAX_PREDICTIONS:
        yield None, f"wanted at most {MAX_PREDICTIONS} cells tagged {PREDICTED}, got {tags.count(PREDICTED)}"
    if tags.count(YOUR_TURN) < MIN_TURNS:
        yield None, f"wanted at least {MIN_TURNS} cells tagged {YOUR_TURN}, got {tags.count(YOUR_TURN)}"
    for cell in code_cells(book):
        if (widest := max(map(len, cell.source.splitlines()))) > MAX_COLUMNS:
            yield cell.id, f"wanted at most {MAX_COLUMNS} columns of code, got {widest}"
    machine = next((place for place, cell in enumerate(book.cells) if cell.cell_type == "code" and is_called(cell.source, "machine")), None)
    before = sum(len(cell.source.split()) for cell in book.cells[:machine] if cell.cell_type == "markdown")
    if machine is None or before > MAX_WORDS_TO_MACHINE:
        got = "none" if machine is None else f"it behind {before}"
        yield None, f"wanted a call of machine() within the first {MAX_WORDS_TO_MACHINE} words, got {got}"
    said = sum(words(text) for title, cell, text in parts(book) if cell.cell_type == "markdown" and is_core(title))
    if said > MAX_CORE_WORDS:
        yield None, f"wanted at most {MAX_CORE_WORDS} words in core sections, got {said}"


def parts(book: NotebookNode) -> Iterator[tuple[str, NotebookNode, str]]:
    """Each cell with the title of its section, and its text; a cell in which a section begins is cut there."""
    title = ""
    for cell in book.cells:
        for text in re.split(r"^(?=## )", cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else [cell.source]:
            title = text.splitlines()[0].removeprefix("## ") if text.startswith("## ") and cell.cell_type == "markdown" else title
            yield title, cell, text


def is_core(title: str) -> bool:
    """Whether a section of this title is core: neither deeper nor the sources."""
    return not (DEEPER.match(title) or title.startswith("Sources"))


def words(markdown: str) -> int:
    """Count words; a formula is one, markup and addresses are none."""
    return len(re.findall(r"\S*\w\S*", _MARKUP.sub(" ", _FORMULA.sub(" formula ", markdown))))
