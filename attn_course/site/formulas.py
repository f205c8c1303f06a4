r"""Sphinx: formulas typeset while the site is built, by KaTeX inside V8, so that they can be read when a page opens.

A `\tag{2.1}` becomes the anchor of its equation in a column of its own, and a `\qquad` a place where a narrow page may break.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOGGER = logging.getLogger(__name__)
SCRIPT = Path(__file__).with_name("katex") / "katex.min.js"
LONG = 60  # characters of a formula in a line that may have to scroll by itself
_TAG = re.compile(r"\s*\\tag\{([^}]*)\}\s*")
_BOXED = re.compile(r"\\boxed\{(.*)\}", re.DOTALL)  # all of it: the page draws the box, which may break as the formula does
_TOKEN = re.compile(r"\\begin\{\w+\*?\}|\\end\{\w+\*?\}|\\left(?![A-Za-z])|\\right(?![A-Za-z])|\\qquad(?![A-Za-z])|\\.|[{}]", re.DOTALL)
BREAKS = {*"+-=<>", r"\cdot", r"\times", r"\odot", r"\le", r"\ge", r"\in", r"\approx", r"\to"}  # a line may end behind them
# In prose whose letters are marked, as figures.plain.mathematics marks them: what is never part of a formula, a letter with its scripts,
# the name of a function, and what may stand between these.
_APART = re.compile(r"(\[[^\]]*\]\([^)]*\)|`[^`]*`)")
_PIECE = re.compile(
    r"(?P<tag></?(?:var|su[bp])>)|(?P<word>\b(?:ln|log|exp|max|min)\b(?=\s?[(<|])|\b[A-Za-z]+(?=\(|<su[bp]>))|(?P<joint>[-=+/·×≤≥<>−√Σ∞()\[\]|,'\s\d]"
    r"|&[lg]t;|\b[a-z]\b(?='| [/=] )|[A-Za-z](?=</su[bp]>))|(?P<text>.)",
    re.DOTALL,
)
_SIGNS = {
    "\N{NO-BREAK SPACE}": " ",
    "−": "-",
    "∞": r"\infty ",
    "·": r"\cdot ",
    "×": r"\times ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "Σ": r"\sum ",
    "⊤": r"\top ",
    "<sub>": "_{",
    "<sup>": "^{",
}
# By browsers: the LaTeX stands on the page of an equation, and what is 0 is 0 anyway.
UNUSED = re.compile(r' xmlns="[^"]*"|<annotation .*?</annotation>|</?semantics>|margin-left:0em;|(?<=relative;)top:0em;', re.DOTALL)


class Typesetter:
    """KaTeX, each formula once."""

    def __init__(self) -> None:
        from py_mini_racer import MiniRacer

        self._made: dict[tuple[str, bool, bool], str] = {}
        self._engine = MiniRacer()
        self._engine.eval(SCRIPT.read_text(encoding="utf-8"))

    def __call__(self, latex: str, *, display: bool, small: bool = False) -> str:
        """Return a formula as HTML with MathML for screen readers, or `small`, as MathML alone, a fifth of the size.

        Raises ValueError if KaTeX cannot read it.
        """
        key = latex, display, small
        if key not in self._made:
            options: dict[str, Any] = {"displayMode": display, "throwOnError": True, "strict": "error"}
            if small:
                options["output"] = "mathml"
            try:
                self._made[key] = UNUSED.sub("", str(self._engine.call("katex.renderToString", latex, options)))
            except Exception as error:
                said = next((line for line in str(error).splitlines() if line.startswith("ParseError")), str(error))
                raise ValueError(f"cannot set {latex!r}: {said}") from error
        return self._made[key]


def pieces(latex: str) -> list[str]:
    r"""Cut a formula at each \qquad that stands outside of every brace, environment and \left.

    >>> pieces(r"a = b, \qquad \frac{c \qquad d}{e}")
    ['a = b,', '\\frac{c \\qquad d}{e}']
    """
    depth, start, found = 0, 0, []
    for match in _TOKEN.finditer(latex):
        token = match[0]
        if token in ("{", r"\left") or token.startswith(r"\begin"):
            depth += 1
        elif token in ("}", r"\right") or token.startswith(r"\end"):
            depth -= 1
        elif token == r"\qquad" and depth == 0:
            found.append(latex[start : match.start()])
            start = match.end()
    return [piece.strip() for piece in (*found, latex[start:]) if piece.strip()]


def unbroken(latex: str) -> str:
    r"""Return a formula that a line may not break between two brackets.

    >>> unbroken("(a + b)(c - d) + e")
    '(a +\\nobreak  b)(c -\\nobreak  d) + e'
    """
    depth, parts = 0, []
    for token in re.findall(r"\\[A-Za-z]+|\\.|.", latex, re.DOTALL):
        depth += (token in ("(", "[")) - (token in (")", "]"))
        parts.append(f"{token}\\nobreak " if depth > 0 and token in BREAKS else token)
    return "".join(parts)


def in_latex(said: str) -> str:
    r"""Return Markdown whose letters are marked in HTML with formulas in LaTeX in their place.

    >>> in_latex("a factor <var>c</var> = 1 / √<var>d</var><sub><var>k</var></sub>, by [(2.1)](eq/x.md)")
    'a factor $c = 1 / \\sqrt{d_{k}}$, by [(2.1)](eq/x.md)'
    >>> in_latex("<var>E</var>[<var>q</var><sup>2</sup>] = 1.")
    '$\\mathbb{E}[q^{2}] = 1$.'
    >>> in_latex("(−ln <var>s</var><sub>min</sub>) in (rows of 2 |<var>W</var>|<sup>2</sup>)")
    '$(-\\ln  s_{\\min })$ in (rows of $2 |W|^{2}$)'
    """
    return "".join(part if at % 2 else _prose(part) for at, part in enumerate(_APART.split(said)))


def _prose(said: str) -> str:
    """Set each run of marked letters, and of what stands between them."""
    done, run, depth = list[str](), list[re.Match[str]](), 0
    for piece in [*_PIECE.finditer(said), None]:
        if piece and piece["tag"]:
            depth += -1 if piece[0].startswith("</") else 1
        if piece and (depth or not piece["text"]):
            run.append(piece)
            continue
        done += [_formula([(one[0], one.lastgroup or "") for one in run]), piece[0] if piece else ""]
        run = []
    return "".join(done)


def _formula(run: list[tuple[str, str]]) -> str:
    """Return a run as LaTeX between dollars, but for signs at its ends that belong to the sentence; as it is if no letter is marked."""
    tail = list[str]()
    if not any(kind == "tag" for _, kind in run):
        return "".join(text for text, _ in run)
    head = list[str]()
    while run[0][0].isspace() or run[0][0] in ",.)'=/" or (run[0][0] == "(" and _balance(run) > 0):
        head.append(run.pop(0)[0])
    while run[-1][0].isspace() or run[-1][0] in ",.(-=/" or (run[-1][0] == ")" and _balance(run) < 0) or run[-1][1] == "word":
        tail.insert(0, run.pop()[0])
    words = re.split(r"(<[^>]*>)", "".join(f"<{text}>" if kind == "word" else text for text, kind in run))
    latex = ""
    for before, word in pairwise(["", *words]):
        if word in ("<var>", "</var>"):
            continue
        if word in ("</sub>", "</sup>"):
            latex += "}"
        elif word in _SIGNS:
            latex += _SIGNS[word]
        elif word[:1] == "<":
            latex += f"\\{word[1:-1]} " if word[1:-1] in ("ln", "log", "exp", "max", "min") else f"\\operatorname{{{word[1:-1]}}}"
        else:
            signs = unescape(word) if before == "<var>" else re.sub(r"[^\W\d_]{2,}", r"\\mathrm{\g<0>}", unescape(word))
            latex += "".join(_SIGNS.get(sign, sign) for sign in signs)
    latex = re.sub(r"√((?:[^\W_]|\([^()]*\))(?:_\{[^{}]*\})?)", r"\\sqrt{\1}", latex)
    latex = re.sub(r"\bE(?=\[)", r"\\mathbb{E}", latex)
    return f"{''.join(head)}${latex}${''.join(tail)}"


def _balance(run: list[tuple[str, str]]) -> int:
    return sum((text == "(") - (text == ")") for text, _ in run)


def block(latex: str, typeset: Callable[..., str], addresses: dict[str, str], up: str = "") -> str:
    r"""Return a formula on lines of its own. `addresses`: number -> label, of equations that have a page; `up`: "../" below the top."""
    found = _TAG.search(latex)
    formula = _TAG.sub(" ", latex).strip()
    boxed = _BOXED.fullmatch(formula)
    parts = "".join(f'<div class="eq-part">{typeset(part, display=True)}</div>' for part in pieces(boxed[1] if boxed else formula))
    body = f'<div class="eq-body{" eq-key" * bool(boxed)}">{parts}</div>'
    if not found:
        return f'<div class="eq">{body}</div>\n'
    number, label = escape(found[1]), addresses.get(found[1])
    if label is None:
        return f'<div class="eq">{body}<span class="eq-number">({number})</span></div>\n'
    words = f"({number}), the page of this equation"
    link = f'<a class="eq-number" href="{up}eq/{label}.html" data-label="{label}" aria-label="{words}">({number})</a>'
    return f'<div class="eq" id="eq-{label}">{body}{link}</div>\n'


def _visit_inline(translator: Any, node: nodes.Element) -> None:
    parts = pieces(node.astext())
    style = r"\displaystyle " * parts[0].startswith(r"\displaystyle")
    for part in parts:
        kind = "math" + " long" * (len(part) > LONG) + " piece" * (len(parts) > 1)
        with _told(node):
            typeset = translator.builder.app.typeset(f"{style}{part}", display=False, small=_puts_numbers_in(translator))
            translator.body.append(f'<span class="{kind}">{typeset}</span>')
    raise nodes.SkipNode


def _glue(app: "Sphinx", doctree: nodes.document, page: str) -> None:
    """Keep the comma or colon behind a formula on the formula's line."""
    for node in list(doctree.findall(nodes.math)):
        after = node.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and after.astext()[:1] in tuple(",.;:!?)"):
            sign, rest = after.astext()[0], after.astext()[1:]
            siblings = after.parent.children
            place = next(at for at, one in enumerate(siblings) if one is after)  # another one may say the same
            after.parent[place] = nodes.Text(rest)
            glued = nodes.inline(classes=["glued"])
            node.replace_self(glued)
            glued += [node, nodes.Text(sign)]


def _visit_block(translator: Any, node: nodes.Element) -> None:
    app = translator.builder.app
    up = "../" * translator.builder.current_docname.count("/")
    with _told(node):
        small = _puts_numbers_in(translator)
        translator.body.append(block(node.astext(), partial(app.typeset, small=small), app.config.course_numbers, up))
    raise nodes.SkipNode


def _puts_numbers_in(translator: Any) -> bool:
    """Whether this is what follows an equation on its own page: numbers put in, and counterexamples."""
    return translator.builder.current_docname.startswith("eq/") and any(piece.startswith('<div class="eq"') for piece in translator.body)


@contextmanager
def _told(node: nodes.Element) -> Iterator[None]:
    """Let Sphinx tell what cannot be set, with its place."""
    try:
        yield
    except ValueError as error:
        LOGGER.warning("%s", error, location=node)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Tell Sphinx of the renderer."""
    app.add_config_value("course_numbers", {}, "html")
    app.add_html_math_renderer("built", (_visit_inline, None), (_visit_block, None))
    app.connect("doctree-resolved", _glue)
    app.connect("builder-inited", lambda app: setattr(app, "typeset", Typesetter()))
    return {"parallel_read_safe": True, "parallel_write_safe": False}
