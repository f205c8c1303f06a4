"""Scripts, styles and markup as they go into a page: without what only their authors read. Each card stands whole in its notebook.

Names and expressions stay as they are, so what a browser reports can be found in the sources. Quotation marks become single ones
where they can: a notebook is JSON, which writes two characters for a double one.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

TOKEN = re.compile(
    r"""(?: \s | //[^\n]* | /\*.*?\*/ )+
    | "(?: [^"\\\n] | \\. )*" | '(?: [^'\\\n] | \\. )*'
    | [\w$]+ | \+\+ | -- | .""",
    re.VERBOSE | re.DOTALL,
)
PATTERN = re.compile(r"/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")  # a regular expression
VALUE = re.compile(r"(?!(?:return|typeof|case|of|in|void|delete|throw|await|yield)$)(?:.*[\w$)\]}\"'`]|\+\+|--)", re.DOTALL)
APART = re.compile(r"[\w$]{2}|\+\+|--|//|<[!/]|\d\.")  # two tokens would become one, or something else
BREAKS = {"return", "break", "continue", "throw", "yield", "async"}  # what a line break behind them cuts off from the rest
KEY = re.compile(r"""(["'])([A-Za-z_$][\w$]*)\1""")
GAP = r"(?:\s|/\*(?:(?!\*/).)*\*/)+"
STYLE = re.compile(rf"""("[^"]*"|'[^']*')|(?:{GAP})?(?:;(?:{GAP})?(?=}})|([{{}};,>]))(?:{GAP})?|(:){GAP}|({GAP})""", re.DOTALL)
SELECTOR = r"(?:[^{},()]|\((?:[^()]|\([^()]*\))*\))*"
RULE = rf"(?P=family){SELECTOR}(?:,(?P=family){SELECTOR})*\{{(?:[^{{}}'\"]|'[^']*'|\"[^\"]*\")*\}}"
FAMILY = re.compile(rf"(?:^|(?<=[{{}};]))(?=(?P<family>\.[\w-]+ ))(?:{RULE}){{2,}}")  # rules whose selectors begin with one class
TAG = re.compile(r"<[^<>']+>")

ARROW = re.compile(r"(?<![\w$])\((\w+)\)=>")  # of one argument


def compact_script(text: str) -> str:
    """Return JavaScript that does the same, without comments and needless space.

    Statements must end with semicolons: where one is missing at the end of a line, a browser refuses the result, or it does what it
    did. No regular expression may follow ")" or "}", behind which "/" divides.

    >>> print(compact_script('const half = (x) => {\\n  return x / 2; // "half"\\n};\\nsay({ "who": `a  ${b}` });'))
    let half=x=>{return x/2;};say({who:`a  ${b}`});
    """
    tokens = [""]
    gap = ""
    for token in chain.from_iterable(map(_tokens_of_block, _blocks(text))):
        if _is_gap(token):
            gap += token
            continue
        last = tokens[-1]
        if token == ":" and tokens[-2:-1] in (["{"], [","]) and (key := KEY.fullmatch(last)):
            tokens[-1] = key[2]
        if gap and (("\n" in gap and last in BREAKS) or APART.match(last[-1:] + token[0])):
            tokens.append("\n" if "\n" in gap else " ")
        tokens.append(_single_quoted(token) if token[0] == '"' else "let" if token == "const" else token)
        gap = ""
    return ARROW.sub(r"\1=>", "".join(tokens))


def compact_style(text: str) -> str:
    """Return CSS that says the same, without comments and needless space; rules for what lies in one class are nested in it.

    >>> print(compact_style('/* Two. */\\n.a p > b, .a i {\\n  color: red;\\n}\\n.a :is(p, b) { font: 1em "A  B"; }\\n'))
    .a{p>b,i{color:red}:is(p,b){font:1em 'A  B'}}
    """
    text = STYLE.sub(_shorter, text).strip()
    while (nested := FAMILY.sub(_nested, text)) != text:
        text = nested
    return text


def compact_markup(text: str) -> str:
    """Return HTML that shows the same, on one line.

    >>> compact_markup('<p class="a">\\n  <b>one</b>\\n  two "three"\\n</p>\\n')
    '<p class=\\'a\\'> <b>one</b> two "three" </p>'
    """
    return TAG.sub(lambda tag: tag[0].replace('"', "'"), re.sub(r"\s+", " ", text).strip())


def _nested(rules: re.Match[str]) -> str:
    family = rules["family"]
    inside = re.sub(rf"(^|[,{{}}]){re.escape(family)}", r"\1", rules[0])
    return f"{family.strip()}{{{inside}}}"


def _shorter(piece: re.Match[str]) -> str:
    string, sign, colon, gap = piece.groups()
    return _single_quoted(string) if string else sign or colon or (" " if gap else "")


def _is_gap(token: str) -> bool:
    return token[0].isspace() or token.startswith(("//", "/*"))


def _blocks(text: str) -> Iterator[str]:
    """Yield a script in pieces that end at an empty line, in no template and in no comment."""
    held = ""
    for block in text.split("\n\n"):
        held += block + "\n\n"
        if held.count("`") % 2 == 0 and held.rfind("/*") <= held.rfind("*/"):
            yield held
            held = ""
    yield held


@lru_cache(maxsize=512)
def _tokens_of_block(text: str) -> tuple[str, ...]:
    """Hundreds of cards are made of the same blocks, but for their data."""
    return tuple(_tokens(text))


def _tokens(text: str, at: int = 0) -> Iterator[str]:
    """Yield what a script consists of, its gaps too."""
    before = ""
    while at < len(text):
        if text[at] == "`":
            end = _template_end(text, at)
        else:
            found = PATTERN.match(text, at) if text[at] == "/" and not VALUE.fullmatch(before) else None
            found = found or TOKEN.match(text, at)
            assert found
            end = found.end()
        yield text[at:end]
        before = before if _is_gap(text[at:end]) else text[at:end]
        at = end


def _template_end(text: str, at: int) -> int:
    """Return where the template ends that begins here; what it computes may hold templates again."""
    at += 1
    while at < len(text) and text[at] != "`":
        if not text.startswith("${", at):
            at += 2 if text[at] == "\\" else 1
            continue
        at += 2
        depth = 1
        for token in _tokens(text, at):
            at += len(token)
            depth += (token == "{") - (token == "}")
            if depth == 0:
                break
    return at + 1


def _single_quoted(string: str) -> str:
    inside = string[1:-1]
    if "'" in inside:
        return string
    return "'" + re.sub(r"\\(.)", lambda escape: '"' if escape[1] == '"' else escape[0], inside) + "'"
