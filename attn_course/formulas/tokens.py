r"""LaTeX cut into tokens, names first.

Before anything is parsed, the names of the givens are cut out of the LaTeX, the longest first, or `dO` would be d times O. Spacing is
dropped (only between blocks in brackets a visible space counts), braces around one token go, an accent makes one token with what it
stands on, `\bigl` and its like only say which side a bar belongs to.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from attn_course.formulas.errors import NOWHERE, Malformed, Place
from attn_course.formulas.tree import FAMILY

LONGEST = 2000  # characters of a formula
DEEPEST = 60  # parentheses, fractions and scripts in each other

_LEXEMES = re.compile(
    r"""(?P<qquad>\\qquad)
    |(?P<wide>\\[;:\ ]|\\quad\b|~)
    |(?P<thin>\s+|\\[,!>]|\\(?:limits|displaystyle|textstyle)(?![A-Za-z]))
    |(?P<size>\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z]))
    |(?P<word>\\(?:text|mathrm|operatorname|textrm|mathit)\s*\{(?P<inside>[^{}]*)\})
    |(?P<style>(?P<face>\\(?:mathcal|mathbb|mathbf|boldsymbol))\s*(?:\{\s*(?P<styled>\w)\s*\}|(?P<bare>\w)))
    |(?P<environment>\\(?:begin|end)\s*\{\w+\})
    |(?P<arg>\\arg(?:\\[,!])?\s*(?P<extreme>\\max|\\min))
    |(?P<command>\\[A-Za-z]+|\\[{}|\#%]|\\\\)
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<letter>[A-Za-z])
    |(?P<mark>[-+*/=<>()\[\]{}|,;:_^'&!.])""",
    re.VERBOSE,
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
LETTERS = frozenset(
    _COMMAND.findall(
        r"\alpha\beta\gamma\delta\epsilon\varepsilon\zeta\eta\theta\iota\kappa\lambda\mu\nu\xi\pi\rho\varrho\sigma\varsigma\tau\phi\varphi"
        r"\chi\psi\omega\upsilon\ell\Gamma\Delta\Theta\Lambda\Xi\Pi\Sigma\Phi\Psi\Omega"
    )
)
ACCENTS = frozenset(_COMMAND.findall(r"\bar\hat\tilde\vec\dot"))
SAME = {
    r"\leq": r"\le",
    r"\geq": r"\ge",
    r"\neq": r"\ne",
    r"\lt": "<",
    r"\gt": ">",
    r"\Longrightarrow": r"\Rightarrow",
    r"\implies": r"\Rightarrow",
    r"\Longleftrightarrow": r"\iff",
    r"\Leftrightarrow": r"\iff",
    r"\intercal": r"\top",
    r"\Vert": r"\|",
    r"\vert": "|",
    r"\ldots": r"\cdots",
    r"\dots": r"\cdots",
    r"\tfrac": r"\frac",
    r"\dfrac": r"\frac",
    r"\varnothing": r"\emptyset",
    r"\ast": "*",
    r"\mid": "|",
    r"\widehat": r"\hat",
    r"\overline": r"\bar",
    r"\widetilde": r"\tilde",
}


_GROUPS = {name: name for name in _LEXEMES.groupindex} | {"inside": "word", "styled": "style", "bare": "style", "extreme": "arg"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the LaTeX: `kind` is name, letter, number, word, command, mark, qquad or end."""

    kind: str
    text: str
    place: Place
    braced: bool = False  # alone in braces: 12 of x^{12}, against the 1 of x^12
    wide: bool = False  # a visible space stands before it


NOTHING = Token("end", "", NOWHERE)


def tokens_of(latex: str, names: Iterable[str] = ()) -> list[Token]:
    """Return the tokens of a formula in which the names are cut out."""
    if len(latex) > LONGEST:
        raise Malformed(f"a formula has at most {LONGEST:,} characters; this one has {len(latex):,}")
    return [*_cut(_settled(_lexed(latex)), names), Token("end", "", (len(latex), len(latex) + 1))]


def _lexed(latex: str) -> list[Token]:
    tokens: list[Token] = []
    place, wide, side = 0, False, ""
    while place < len(latex):
        match = _LEXEMES.match(latex, place)
        if match is None:
            raise Malformed(f"the sign {latex[place]!r} has no meaning here", (place, place + 1), latex)
        kind, text, at = _GROUPS[match.lastgroup or ""], match.group(), match.span()
        place = match.end()
        if kind == "size":
            side = {"l": "l", "r": "r", "m": "m"}.get(text[-1], "") if text not in (r"\left", r"\right") else text[1]
            side = side or "m"
            continue
        if kind in ("wide", "thin"):
            wide = wide or kind == "wide"
            continue
        text = SAME.get(text, text)
        if kind == "word":
            text = " ".join(match["inside"].replace("\\ ", " ").replace("~", " ").split())
        elif kind == "style":
            kind, text = "letter", f"{match['face']}{{{match['styled'] or match['bare']}}}"
        elif kind == "arg":
            kind, text = "command", r"\arg" + match["extreme"]
        elif kind == "environment":
            kind, text = "command", re.sub(r"\s", "", text)
        elif text in ("|", r"\|") and side:
            text = {"l": r"\l", "r": r"\r", "m": r"\m"}[side] + ("vert" if text == "|" else "Vert")
        elif text in LETTERS:
            kind = "letter"
        tokens.append(Token(kind, text, at, wide=wide))
        wide, side = False, ""
    return tokens


def _settled(tokens: list[Token]) -> list[Token]:
    r"""Take away braces around one token, join accents with what they stand on, and write ^{h\top} as ^h^\top."""
    for _ in range(DEEPEST):
        new: list[Token] = []
        i = 0
        while i < len(tokens):
            one, two, three = tokens[i], *(tokens[at] if at < len(tokens) else NOTHING for at in (i + 1, i + 2))
            if one.text == "{" and three.text == "}" and (two.kind != "mark" or two.text in "*+-'") and not _takes(two):
                new.append(replace(two, braced=True, place=(one.place[0], three.place[1]), wide=one.wide))
                i += 3
            elif one.text in ACCENTS and two.kind in ("letter", "word"):
                new.append(Token("letter", f"{one.text}{{{two.text}}}", (one.place[0], two.place[1]), wide=one.wide))
                i += 2
            elif one.text == r"\top" and two.text == "}" and new and new[-1].text != "^" and _ends_what_stands_above(new):
                new += [two, Token("mark", "^", one.place), one]
                i += 2
            else:
                new.append(one)
                i += 1
        if new == tokens:
            return new
        tokens = new
    raise Malformed(f"more than {DEEPEST} braces stand in each other", tokens[0].place)


def _takes(token: Token) -> bool:
    """Whether braces behind the token are its own, so that braces around it say something."""
    return token.text in ACCENTS or token.text.startswith((r"\begin", r"\end"))


def _ends_what_stands_above(before: list[Token]) -> bool:
    r"""Whether a \top and a closing brace end a group that stands above something and holds more than a sign."""
    depth = 0
    for i in range(len(before) - 1, 0, -1):
        if before[i].text == "{" and not depth:
            return before[i - 1].text == "^" and [token.text for token in before[i + 1 :]] not in (["-"], [])
        depth += {"}": 1, "{": -1}.get(before[i].text, 0)
    return False


def _cut(tokens: list[Token], names: Iterable[str]) -> list[Token]:
    patterns: dict[str, list[tuple[list[str], str]]] = {}
    for pattern, name in sorted(((_pattern(name), name) for name in names), key=lambda pair: -len(pair[0])):
        patterns.setdefault(pattern[0], []).append((pattern, name))
    new: list[Token] = []
    while tokens:
        for pattern, name in patterns.get(_spelled(tokens[0]), ()):
            if (found := _match(tokens, pattern, name)) is not None:
                named, tokens = found
                new.append(named)
                break
        else:
            new.append(tokens[0])
            tokens = tokens[1:]
    return new


def _pattern(name: str) -> list[str]:
    """Return the tokens of a name; "" stands for the index of a family."""
    spelled = [_spelled(token) for token in _settled(_lexed(name))]
    return [*spelled[:-3], "", *spelled[-2:]] if FAMILY.match(name) else spelled


def _spelled(token: Token) -> str:
    return rf"\text{{{token.text}}}" if token.kind == "word" else token.text


def _match(tokens: list[Token], pattern: list[str], name: str) -> tuple[Token, list[Token]] | None:
    """Match one name at the front; a part above may follow an index beneath, as in Q_h^R for the name Q^R."""
    i, index, above = 0, [], False
    for text in pattern:
        if text == "^" and i and not above and i < len(tokens) and tokens[i].text == "_":
            end = _argument_end(tokens, i + 1)
            index, i = tokens[i:end], end
        above = above or text == "^"
        if i >= len(tokens):
            return None
        if not text:
            start = i
            while i < len(tokens) and tokens[i].text not in (")", "}"):
                i += 1
            beneath, opens, closes = (Token("mark", sign, tokens[start].place) for sign in "_{}")
            index = [beneath, opens, *tokens[start:i], closes, *index]
        elif _spelled(tokens[i]) == text:
            i += 1
        else:
            return None
    place = (tokens[0].place[0], tokens[i - 1].place[1])
    return Token("name", name, place, braced=tokens[0].braced and i == 1, wide=tokens[0].wide), [*index, *tokens[i:]]


def _argument_end(tokens: list[Token], i: int) -> int:
    """Where the argument that starts here ends: one token, or a group in braces."""
    if i < len(tokens) and tokens[i].text == "{":
        depth = 0
        while i < len(tokens):
            depth += {"{": 1, "}": -1}.get(tokens[i].text, 0)
            i += 1
            if not depth:
                break
        return i
    return i + 1
