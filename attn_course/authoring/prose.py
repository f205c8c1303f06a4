"""Rules of style that a machine can hold: headings, measure, chance. Each yields what breaks it."""

import ast
import itertools
import re
import statistics
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from attn_course.authoring.notebook import DEEPER, LIVE, code_cells, markdown_cells, tags_of
from attn_course.authoring.numbering import CLOSING
from attn_course.authoring.problems import Finding

PROSE_PER_CODE = (1.5, 3.0)  # words of text to words of code
MEDIAN_CODE_LINES = 6
MAX_CODE_LINES = 15
MAX_WORDS = 120  # of a Markdown cell ...
LONG_CELLS_ALLOWED = 2  # ... with this many exceptions in a lesson,
MAX_WORDS_EVER = 160  # none of them longer than this
FREE_LENGTH = {"given", "question", "task", "check"}  # tags of cells whose length the task decides
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$", re.MULTILINE)
_CLOCKS = re.compile(r"\b(perf_counter|process_time|monotonic|timeit|time\.time)\b")
_RANDOM = re.compile(
    r"\btorch\.(rand\w*|normal|bernoulli|multinomial|manual_seed|Generator)\b|\.(normal|uniform|bernoulli|random)_\(|\bnn\.init\."
)
_OLD_NUMPY_RANDOM = re.compile(r"\b(np|numpy)\.random\.(?!default_rng\b|Generator\b)\w+")
_DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)  # code that is read, not run
_FOLDED = re.compile(r"<details\b[^>]*>.*?</details>", re.DOTALL)
_CARD = re.compile(r"^<small>(Not allowed: |In `\w+` may stand: ).*$", re.MULTILINE)  # what the builder writes into a task's text
_INLINE = re.compile(r"\$[^$\n]+(?:\n[^$\n]+)?\$")


def heading_findings(book: NotebookNode) -> Iterator[Finding]:
    """The title is the first line and the only H1; no level is skipped on the way down."""
    found = _headings(book)
    yield from ((cell_id, f"wanted one H1, the title; got {title!r}") for cell_id, level, title in found[1:] if level == 1)
    if not book.cells[0].source.startswith("# "):
        yield book.cells[0].id, f"wanted the title first, got {book.cells[0].source.splitlines()[0]!r}"
    for (_, before, _), (cell_id, level, title) in itertools.pairwise(found):
        if level > before + 1:
            yield cell_id, f"wanted a heading of level {before + 1} at most, got {title!r} at level {level}"


def section_findings(book: NotebookNode, lesson: int | None) -> Iterator[Finding]:
    """Sections are numbered N.1, N.2, ... and end in the formula card, the summary, deeper sections if there are any, and the sources."""
    sections = [(cell_id, title) for cell_id, level, title in _headings(book) if level == 2]
    numbered = [(cell_id, title) for cell_id, title in sections if not title.startswith(CLOSING)]
    for number, (cell_id, title) in enumerate(numbered, 1):
        if not title.startswith(f"{lesson}.{number} "):
            yield cell_id, f"wanted a section '{lesson}.{number} ...', got {title!r}"
    deeper = [(cell_id, title) for cell_id, title in numbered if DEEPER.match(title)]
    titles = [title for cell_id, title in sections if (cell_id, title) not in deeper]
    last = titles[-len(CLOSING) :]
    if len(last) != len(CLOSING) or any(not title.startswith(wanted) for title, wanted in zip(last, CLOSING, strict=True)):
        yield None, f"wanted the last sections {', '.join(CLOSING)}; got {', '.join(last)}"
    elif sections[len(titles) - 1 : -1] != deeper:
        yield deeper[0][0], f"wanted deeper sections between the summary and the sources, got {', '.join(title for _, title in deeper)}"


def measure_findings(book: NotebookNode) -> Iterator[Finding]:
    """There is neither too little text for the code nor too much, be it run or only shown."""
    low, high = PROSE_PER_CODE
    texts = [_FOLDED.sub(" ", cell.source) for cell in markdown_cells(book)]
    code = [*(cell.source for cell in code_cells(book)), *(fenced for text in texts for fenced in _FENCED.findall(text))]
    prose = sum(_prose_words(_FENCED.sub(" ", text)) for text in texts)
    ratio = prose / max(1, sum(len(re.findall(r"\w+", each)) for each in code))
    if not low <= ratio <= high:
        yield None, f"wanted {low} to {high} words of prose for each word of code, got {ratio:.2f}"


def length_findings(book: NotebookNode) -> Iterator[Finding]:
    """Cells are short."""
    sizes = {cell.id: _code_lines(cell.source) for cell in code_cells(book) if not FREE_LENGTH & set(tags_of(cell))}
    yield from ((cell_id, f"wanted at most {MAX_CODE_LINES} lines of code, got {n}") for cell_id, n in sizes.items() if n > MAX_CODE_LINES)
    median = statistics.median(sizes.values() or [0])
    if median > MEDIAN_CODE_LINES:
        yield None, f"wanted a median of at most {MEDIAN_CODE_LINES} lines of code to a cell, got {median}"
    words = {cell.id: _prose_words(cell.source) for cell in markdown_cells(book)}
    long = [f"{cell_id} {count}" for cell_id, count in words.items() if count > MAX_WORDS]
    if len(long) > LONG_CELLS_ALLOWED:
        yield None, f"wanted at most {LONG_CELLS_ALLOWED} Markdown cells above {MAX_WORDS} words, got {', '.join(long)}"
    yield from ((cell_id, f"wanted at most {MAX_WORDS_EVER} words, got {n}") for cell_id, n in words.items() if n > MAX_WORDS_EVER)


def chance_findings(book: NotebookNode) -> Iterator[Finding]:
    """Compared output depends on no clock, on no unseeded generator, and on none whose numbers change with the version of a library."""
    for cell in code_cells(book):
        if LIVE in tags_of(cell):
            continue
        if found := _RANDOM.search(cell.source):
            yield cell.id, f"wanted numbers by hand or from default_rng(seed), got torch's {found[0]!r}"
        if found := _OLD_NUMPY_RANDOM.search(cell.source):
            yield cell.id, f"wanted default_rng(seed), got {found[0]!r}"
        if re.search(r"default_rng\(\s*\)", cell.source):
            yield cell.id, "wanted a seed in default_rng()"
        if found := _CLOCKS.search(cell.source):
            yield cell.id, f"wanted timings only in cells tagged live, got {found[0]!r}"


def redefinition_findings(book: NotebookNode, package_names: Collection[str]) -> Iterator[Finding]:
    """A lesson imports the package's functions and defines none of them again."""
    for cell in code_cells(book):
        names = {node.name for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        yield from (
            (cell.id, f"wanted {name} imported from the package, got it defined again") for name in sorted(names & set(package_names))
        )


def _headings(book: NotebookNode) -> list[tuple[str, int, str]]:
    """(cell id, level, text) of every heading."""
    found = []
    for cell in markdown_cells(book):
        text = re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
        found += [(cell.id, len(marks), title) for marks, title in _HEADING.findall(text)]
    return found


def _prose_words(markdown: str) -> int:
    """Count the words a reader meets: an inline formula is one, a displayed one none; what is folded away or on the card does not count."""
    return len(_INLINE.sub(" formula ", _DISPLAY.sub(" ", _CARD.sub(" ", _FOLDED.sub(" ", markdown)))).split())


def _code_lines(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())
