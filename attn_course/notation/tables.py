"""The glossary and the letters as tables to read: plain text of at most 80 columns, or Markdown."""

import textwrap
from collections.abc import Sequence
from typing import Literal

from attn_course.costs.checks import require_choice
from attn_course.notation.glossary import DIALECTS, GLOSSARY
from attn_course.notation.meanings import LETTERS

Style = Literal["text", "markdown"]
COLUMNS = 80
NOTHING = "-"


def table(dialect: str | None = None, *, style: Style = "text") -> str:
    r"""Return the words of the course beside those of one `dialect`, a key of `DIALECTS`, or of all six, three at a time.

    Plain text is wrapped to 80 columns, to be printed; Markdown is for IPython.display.Markdown. An unknown dialect or style
    raises ValueError.

    >>> print("\n".join(table("sequences").splitlines()[:7]))
    sequences: T_in inputs, T_out outputs, weights P
    <BLANKLINE>
    course           meaning                shape                  there
    ---------------  ---------------------  ---------------------  -----------------
    q_len            number of queries                             T_out
    kv_len           number of keys and                            T_in
                     values
    """
    require_choice("style", style, ("text", "markdown"))
    if dialect is None:
        names = list(DIALECTS)
        return "\n\n".join(_all_of(some, style) for some in (names[:3], names[3:]))
    require_choice("dialect", dialect, tuple(DIALECTS))
    rows = [
        (_code(term.term, style), term.meaning, _code(term.shape, style), _code(term.names.get(dialect, NOTHING), style))
        for term in GLOSSARY
    ]
    return f"{dialect}: {DIALECTS[dialect]}\n\n{_drawn(('course', 'meaning', 'shape', 'there'), rows, style)}"


def letters(*, style: Style = "text") -> str:
    r"""Return the letters that mean different things in different texts, a line for each meaning.

    Plain text, wrapped to 80 columns, or Markdown; an unknown `style` raises ValueError.

    >>> print("\n".join(letters().splitlines()[:5]))
    letter  may mean                               course
    ------  -------------------------------------  ---------------------------------
    q       one query, a row in q K^T              query
            one query, a column in q^T k           query
            the length of queries and keys         d_k
    """
    require_choice("style", style, ("text", "markdown"))
    rows = [
        (_code(entry.letter, style) if index == 0 else "", meaning, _code(word, style))
        for entry in LETTERS
        for index, (meaning, word) in enumerate(entry.meanings)
    ]
    return _drawn(("letter", "may mean", "course"), rows, style)


def _all_of(names: Sequence[str], style: Style) -> str:
    rows = [(_code(term.term, style), *(_code(term.names.get(name, NOTHING), style) for name in names)) for term in GLOSSARY]
    return _drawn(("course", *names), rows, style)


def _code(word: str, style: Style) -> str:
    return f"`{word}`" if style == "markdown" and word not in ("", NOTHING) else word


def _drawn(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> str:
    if style == "markdown":
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(line[at]) for line in (header, *rows)) for at in range(len(header))]
    while sum(widths) + 2 * (len(widths) - 1) > COLUMNS:  # the widest gives way, and wraps
        widths[widths.index(max(widths))] -= 1
    rules = ["-" * width for width in widths]
    return "\n".join(line for row in (header, rules, *rows) for line in _wrapped(row, widths))


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Set one row on as many lines as its longest cell needs."""
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    padded = [[*cell, *[""] * (max(map(len, cells)) - len(cell))] for cell in cells]
    return ["  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() for line in zip(*padded, strict=True)]
