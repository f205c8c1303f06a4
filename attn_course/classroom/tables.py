"""Read the CSV tables that a teacher writes or a learning platform exports; an error names line, column, what was wanted and what came."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from attn_course.classroom.times import parse_time

MAX_BYTES = 8 * 2**20
_DELIMITERS = (",", ";", "\t")  # where the comma is in numbers, spreadsheets write semicolons
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class TableError(ValueError):
    """A table cannot be used; the text is one line."""


@dataclass(frozen=True)
class Row:
    """One row of a table: the line it begins on, and its cells by the names of the columns, as `plain` gives them."""

    table: str
    line: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        """Return a cell; empty if the table has no such column."""
        return self.cells.get(column, "")

    def wrong(self, column: str, wanted: str) -> NoReturn:
        """Raise TableError about a cell."""
        raise TableError(f"{self.table}, line {self.line}, column {column!r}: wanted {wanted}; got {self[column]!r}")

    def time(self, column: str) -> datetime | None:
        """Return the time that a cell holds, the end of the day if it names none; None if it is empty."""
        try:
            return parse_time(self[column], last_of_day=True) if self[column] else None
        except ValueError:
            self.wrong(column, "a time such as '2026-11-20 23:59 UTC'")

    def points(self, column: str) -> float | None:
        """Return the number of points that a cell holds, 0 or more; None if it is empty."""
        try:
            return tidy(points(self[column])) if self[column] else None
        except ValueError:
            self.wrong(column, "points, such as 3 or 2.5")


@dataclass(frozen=True)
class Table:
    """A table as it stands in its file.

    `name`: what errors call it. `header`: the names of its columns, as they are. `lines`: for each row the line it begins on, and
    its cells as they are, as many as there are columns. Empty lines are left out. `delimiter`: what stands between cells.
    `marked`: whether it begins with the mark of UTF-8.
    """

    name: str
    header: tuple[str, ...]
    lines: tuple[tuple[int, tuple[str, ...]], ...]
    delimiter: str = ","
    marked: bool = False

    def rows(self, *, needed: Sequence[str], known: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows by the names of their columns, in lower case.

        `needed`: columns that must be there. `known`: the only columns that may be there; by default, others are passed over.
        Raises TableError if a column is missing, unknown, or there twice.
        """
        names = [name.strip().lower() for name in self.header]
        where = f"{self.name}, line 1"
        for name in needed:
            if name not in names:
                raise TableError(f"{where}: wanted a column {name!r}; got {', '.join(map(repr, names))}")
        for name in names:
            if name and names.count(name) > 1:
                raise TableError(f"{where}: wanted each column once; got {name!r} {names.count(name)} times")
            if known is not None and name not in (*known, ""):
                raise TableError(f"{where}: wanted columns out of {', '.join(known)}; got {name!r}")
        for line, cells in self.lines:
            yield Row(self.name, line, dict(zip(names, map(plain, cells), strict=True)))


def plain(text: str) -> str:
    """Return a text without blanks at its ends, every sign with its dots and accents as one: as it is compared with others."""
    return unicodedata.normalize("NFC", text).strip()


def points(text: str) -> float:
    """Return a number of points, 0 or more, as people write it: "2.5", "2,5", "1000", "1,000.00", "1.000,00", "1 000", "1'000".

    Raises ValueError if it is none, or may be two: "1.000".

    >>> points("2,5"), points("1,000.00"), points("1.000,00"), points("1,000")
    (2.5, 1000.0, 1000.0, 1000.0)
    """
    text = re.sub(r"(?<=\d)[\s'’](?=\d{3}(?!\d))", "", text.strip())
    for thousands, decimal in ((",", r"\."), (r"\.", ",")):
        if re.fullmatch(rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+(?:{decimal}\d*)?", text) and not re.fullmatch(r"\d+\.\d+", text):
            found = re.sub(thousands, "", text).replace(",", ".")
            break
    else:
        if not re.fullmatch(r"\d+(?:[.,]\d*)?", text) or re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", text):
            raise ValueError(f"wanted points, such as 3 or 2.5; got {text!r}")
        found = text.replace(",", ".")
    if float(found) >= 1e6:
        raise ValueError(f"wanted points, such as 3 or 2.5; got {text!r}")
    return float(found)


def read_text(path: Path) -> str:
    """Return the text of a table.

    Raises TableError if it cannot be read, is huge, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise TableError(f"{path}: is too large for a table ({len(content) / 2**20:.0f} MiB; at most {MAX_BYTES / 2**20:.0f})")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(f"{path}, line {line}: is not UTF-8; save it as “CSV UTF-8”") from None


def parse_table(text: str, name: str) -> Table:
    """Return the table that a text holds: RFC 4180, with commas, semicolons or tabs between cells.

    Raises TableError if it is empty, a row has more cells than there are columns, or quotes do not close.
    """
    marked = text.startswith("\ufeff")
    text = text.removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[int, tuple[str, ...]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                found.append((line, tuple(cells)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"{name}, line {line}: is not CSV: {error}") from None
    if not found:
        raise TableError(f"{name}: is empty; wanted a row with the names of the columns")
    (_, header), *rest = found
    for line, row in rest:
        if any(each.strip() for each in row[len(header) :]):
            raise TableError(f"{name}, line {line}: wanted {len(header)} cells, as many as there are columns; got {len(row)}")
    fitted = [(line, (*cells[: len(header)], *[""] * (len(header) - len(cells)))) for line, cells in rest]
    return Table(name, header, tuple(fitted), delimiter, marked)


def write_table(rows: Sequence[Sequence[Any]], *, delimiter: str = ",", marked: bool = False) -> str:
    """Return rows as CSV with line feeds; cells stand as they are."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return ("\ufeff" if marked else "") + stream.getvalue()


def cell(value: Any) -> Any:
    """Return a value for a CSV cell: text that a spreadsheet would run as a formula gets an apostrophe before it.

    >>> cell("=1+1"), cell("anna"), cell(-1)
    ("'=1+1", 'anna', -1)
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value


def uncell(text: str) -> str:
    """Return a cell's text without the apostrophe that `cell` put before it."""
    return text[1:] if text.startswith("'") and cell(text[1:]) == text else text


def tidy(points: float) -> float:
    """Return points to two digits behind the point, and whole ones as whole numbers.

    >>> tidy(2.0), tidy(0.1 + 0.2), tidy(5)
    (2, 0.3, 5)
    """
    rounded = round(points, 2)
    return int(rounded) if rounded == int(rounded) else rounded
