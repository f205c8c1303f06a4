"""Pages that stand alone: one file, no scripts, nothing loaded from anywhere, light and dark, and fit for paper.

Their HTML is in templates/, which escape all that they show: no code beside them makes HTML out of text, but for `typeset` and
`mathematics`, which escape it.
"""

import re
from functools import cache
from html import escape
from keyword import kwlist
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from attn_course.numbers import counted, eq, task_number
from attn_course.tasks.wording import compared

TEMPLATES = Path(__file__).with_name("templates")
_MARKER = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[ \t]*$")
_TOKEN = re.compile(  # of Python, also where it is broken off
    r"(?P<text>\b[A-Za-z]{1,2}(?=['\"])|\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?)|(?P<note>#[^\n]*)"
    rf"|(?P<word>\b(?:{'|'.join(kwlist)})\b)|(?P<number>\b\d[\w.]*)",
    re.DOTALL,
)
_CODE = re.compile(r"`([^`\n]+)`")
_FORMULA = re.compile(r'^\w+ *= *r?"([^"\n]*\\[^"\n]*)"$', re.MULTILINE)  # an answer that is a line of LaTeX
_FIRST_WORD = re.compile(r"(a|[a-z]{2,})(?:$|(?=[,:;]|['’]s? )|(?= (?:[^=/+*<>@^-]|-\d)))")  # not d_k, x[0], lse(z) or shares = ...
_IN_LINE = re.compile(r"\bline (?=\d)")
_ROOT = re.compile(r"(?<=√)<var>\w</var>(?:<sub>.*?</sub>)?|(?<=√)\d+")
_NAMES = ("beta", "exp", "ln", "lse", "tanh", "torch")  # small also where a sentence begins


def page(template: str, **values: Any) -> str:
    """Return a whole HTML page: a template, such as "feedback.html", with its values, which are escaped."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return what knows the templates."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"counted": counted, "eq": eq, "sentence": sentence, "task_number": task_number}
    made.filters |= {"typeset": typeset, "mathematics": mathematics, "answered": answered, "split_at_code": _CODE.split}
    made.filters |= {"coloured": coloured, "compared": compared}
    return made


def coloured(code: str) -> str:
    """Return an answer as HTML in which all that it quotes is escaped, with the number of each line as error messages give it.

    A line that is too long goes on further in. What nbgrader reads, the markers around an answer, is empty, and empty lines at its
    ends are left out.

    >>> coloured("if a < 1:\\n    b = 'c'")
    '<span class="line" data-number="1" style="--inside: 0ch"><i class="word">if</i> a &lt; <i class="number">1</i>:\\n</span>\
<span class="line" data-number="2" style="--inside: 4ch">    b = <i class="text">&#x27;c&#x27;</i>\\n</span>'
    """
    parts, at = list[str](), 0
    for found in _TOKEN.finditer(code):
        pieces = (f'<i class="{found.lastgroup}">{escape(piece)}</i>' for piece in found[0].split("\n"))
        parts += [escape(code[at : found.start()]), "\n".join(pieces)]
        at = found.end()
    shown = "".join([*parts, escape(code[at:])]).split("\n")
    lines = [(n, ("", "") if _MARKER.match(pair[0]) else pair) for n, pair in enumerate(zip(code.split("\n"), shown, strict=True), 1)]
    while lines and not lines[-1][1][0].strip():
        lines.pop()
    first = next((place for place, (_, (plain, _)) in enumerate(lines) if plain.strip()), 0)
    return "".join(
        f'<span class="line" data-number="{number}" style="--inside: {len(plain) - len(plain.lstrip(" "))}ch">{line}\n</span>'
        for number, (plain, line) in lines[first:]
    )


def typeset(latex: str, display: bool = True) -> str:
    """Return a formula as MathML, in which all that it quotes is escaped; one that the course does not know as code."""
    from attn_course.figures.mathml import mathml

    try:
        return mathml(latex, display)
    except ValueError:
        return f"<code>{escape(latex)}</code>"


def mathematics(text: str) -> str:
    """Return our own text as HTML, its formulas set: s_i and d_k with their index below, and roots with their bar."""
    from attn_course.figures import plain

    return _ROOT.sub(r'<span class="root">\g<0></span>', plain.mathematics(escape(text, quote=False)))


def answered(code: str) -> str:
    """Return the formula of an answer typeset, as `typeset` does; nothing if it is none that can be read.

    >>> answered('my_gain = r"\\\\ln 2"')
    '<math display=block><mi>ln</mi><mspace width="0.17em"/><mn>2</mn></math>'
    """
    found = _FORMULA.search(code)
    try:
        return typeset(found[1]) if found else ""
    except (IndexError, KeyError, RecursionError):
        return ""  # a brace is missing


def sentence(text: str, entry: str = "") -> str:
    """Return a message or hint with a capital letter in front, unless it begins with code or mathematics; the answer's name is code.

    >>> (
    ...     sentence("rows sum to 1"),
    ...     sentence("exp overflows"),
    ...     sentence("s (1 - s) is small"),
    ...     sentence("my_f raised it in `my_f(x)`", "my_f"),
    ... )
    ('Rows sum to 1', 'exp overflows', 's (1 - s) is small', '`my_f` raised it in `my_f(x)`')
    """
    if entry:
        name = re.compile(rf"(?<![\w.]){re.escape(entry)}(?!\w)")
        text = "`".join(part if at % 2 else name.sub(f"`{entry}`", part) for at, part in enumerate(text.split("`")))
    text = _IN_LINE.sub("line\N{NO-BREAK SPACE}", text)
    word = _FIRST_WORD.match(text)
    is_name = word is None or word[1] in _NAMES
    return text if is_name else text[0].upper() + text[1:]
