"""Rules of style that a machine can hold. Each returns what breaks it, one line per finding."""

import ast
import itertools
import re
import statistics
from collections.abc import Collection
from typing import Any

from .chapters import code_cells, code_lines, code_words, markdown_cells, prose_words

PROSE_PER_CODE = (1.5, 3.0)  # words of text to words of code
MEDIAN_CODE_LINES = 6
MAX_CODE_LINES = 15
MAX_WORDS = 120  # of a Markdown cell ...
LONG_CELLS_ALLOWED = 2  # ... with this many exceptions in a lesson,
MAX_WORDS_EVER = 160  # none of them longer than this
CLOSING = ["Formula card", "Summary", "Sources"]
FREE_LENGTH = {"given", "task", "check"}  # tags of cells whose length the task decides
HEADING = re.compile(r"^(#{1,6})\s+(.*)$", re.MULTILINE)
CLOCKS = re.compile(r"\b(perf_counter|process_time|monotonic|timeit|time\.time)\b")
RANDOM = re.compile(
    r"\btorch\.(rand\w*|normal|bernoulli|multinomial|manual_seed|Generator)\b|\.(normal|uniform|bernoulli|random)_\(|\bnn\.init\."
)
OLD_NUMPY_RANDOM = re.compile(r"\b(np|numpy)\.random\.(?!default_rng\b|Generator\b)\w+")


def headings(book: Any) -> list[tuple[str, int, str]]:
    """Return (cell id, level, text) of every heading."""
    found = []
    for cell in markdown_cells(book):
        text = re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
        found += [(cell.id, len(marks), title) for marks, title in HEADING.findall(text)]
    return found


def heading_findings(book: Any) -> list[str]:
    """The title is the first line and the only H1; no level is skipped on the way down."""
    found = headings(book)
    findings = [f"[{cell_id}]: wanted one H1, the title; got {title!r}" for cell_id, level, title in found[1:] if level == 1]
    if not book.cells[0].source.startswith("# "):
        findings.append(f"[{book.cells[0].id}]: wanted the title first, got {book.cells[0].source.splitlines()[0]!r}")
    for (_, before, _), (cell_id, level, title) in itertools.pairwise(found):
        if level > before + 1:
            findings.append(f"[{cell_id}]: wanted a heading of level {before + 1} at most, got {title!r} at level {level}")
    return findings


def section_findings(book: Any, chapter: int) -> list[str]:
    """Sections are numbered N.1, N.2, ... and end in the formula card, the summary and the sources."""
    sections = [(cell_id, title) for cell_id, level, title in headings(book) if level == 2]
    findings = []
    for number, (cell_id, title) in enumerate(sections[: -len(CLOSING)], 1):
        if not title.startswith(f"{chapter}.{number} "):
            findings.append(f"[{cell_id}]: wanted a section '{chapter}.{number} ...', got {title!r}")
    last = [title for _, title in sections[-len(CLOSING) :]]
    if len(last) != len(CLOSING) or any(not title.startswith(wanted) for title, wanted in zip(last, CLOSING, strict=True)):
        findings.append(f"wanted the last sections {', '.join(CLOSING)}; got {', '.join(last)}")
    return findings


def prose_ratio(book: Any) -> float:
    """Return words of text for each word of code."""
    prose = sum(prose_words(cell.source) for cell in markdown_cells(book))
    return prose / max(1, sum(code_words(cell.source) for cell in code_cells(book)))


def ratio_findings(book: Any) -> list[str]:
    """There is neither too little text for the code nor too much."""
    low, high = PROSE_PER_CODE
    ratio = prose_ratio(book)
    return [] if low <= ratio <= high else [f"wanted {low} to {high} words of prose for each word of code, got {ratio:.2f}"]


def length_findings(book: Any) -> list[str]:
    """Cells are short."""
    sizes = {cell.id: code_lines(cell.source) for cell in code_cells(book) if not FREE_LENGTH & set(cell.metadata.get("tags", []))}
    findings = [
        f"[{cell_id}]: wanted at most {MAX_CODE_LINES} lines of code, got {size}"
        for cell_id, size in sizes.items()
        if size > MAX_CODE_LINES
    ]
    median = statistics.median(sizes.values())
    if median > MEDIAN_CODE_LINES:
        findings.append(f"wanted a median of at most {MEDIAN_CODE_LINES} lines of code to a cell, got {median}")
    words = {cell.id: prose_words(cell.source) for cell in markdown_cells(book)}
    long = [f"[{cell_id}] {count}" for cell_id, count in words.items() if count > MAX_WORDS]
    if len(long) > LONG_CELLS_ALLOWED:
        findings.append(f"wanted at most {LONG_CELLS_ALLOWED} Markdown cells above {MAX_WORDS} words, got {', '.join(long)}")
    findings += [
        f"[{cell_id}]: wanted at most {MAX_WORDS_EVER} words, got {count}" for cell_id, count in words.items() if count > MAX_WORDS_EVER
    ]
    return findings


def chance_findings(book: Any) -> list[str]:
    """Compared output depends on no clock, on no unseeded generator, and on none whose numbers change with the version of a library."""
    findings = []
    for cell in code_cells(book):
        if "live" in cell.metadata.get("tags", []):
            continue
        if found := RANDOM.search(cell.source):
            findings.append(f"[{cell.id}]: wanted numbers by hand or from default_rng(seed), got torch's {found[0]!r}")
        if found := OLD_NUMPY_RANDOM.search(cell.source):
            findings.append(f"[{cell.id}]: wanted default_rng(seed), got {found[0]!r}")
        if re.search(r"default_rng\(\s*\)", cell.source):
            findings.append(f"[{cell.id}]: wanted a seed in default_rng()")
        if found := CLOCKS.search(cell.source):
            findings.append(f"[{cell.id}]: wanted timings only in cells tagged live, got {found[0]!r}")
    return findings


def redefinition_findings(book: Any, package_names: Collection[str]) -> list[str]:
    """A lesson imports the package's functions and defines none of them again."""
    findings = []
    for cell in code_cells(book):
        names = {node.name for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        findings += [
            f"[{cell.id}]: wanted {name} imported from the package, got it defined again" for name in sorted(names & set(package_names))
        ]
    return findings


def picture_findings(book: Any) -> list[str]:
    """Every picture has alt text, and its text form (which is compared) holds the same words."""
    findings = []
    for cell in code_cells(book):
        for output in cell.outputs:
            for mime in output.get("data", {}):
                if mime.startswith("image/"):
                    alt = output.metadata.get(mime, {}).get("alt", "")
                    if not alt.strip():
                        findings.append(f"[{cell.id}]: wanted alt text for its {mime}, got none")
                    elif alt not in output.data.get("text/plain", ""):
                        findings.append(f"[{cell.id}]: wanted the alt text in text/plain too, got {output.data.get('text/plain')!r}")
    return findings
