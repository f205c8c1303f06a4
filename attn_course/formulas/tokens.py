r"""LaTeX cut into tokens, names first.

Before anything is parsed, the names of the givens are cut out of the LaTeX, the longest first, or `dO` would be d times O. Spacing is
dropped (only between blocks in brackets a visible space counts), braces around one token go, an accent makes one token with what it
stands on, `\bigl` and its like only say which side a bar belongs to.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from attn_course.formulas.errors import Malformed, Place
from attn_course.formulas.tree import FAMILY

LONGEST = 2000  # characters of a formula
DEEPEST = 60  # parentheses, fractions and scripts in each other
NESTING = {"(": 1, "[": 1, "{": 1, r"\{": 1, ")": -1, "]": -1, "}": -1, r"\}": -1}
NESTING |= {rf"\{end}{{{kind}}}": step for kind in ("cases", "matrix", "pmatrix", "bmatrix") for end, step in (("begin", 1), ("end", -1))}

_LEXEMES = re.compile(
    r"""(?P<qquad>\\qquad)
    |(?P<wide>\\[;:\ ]|\\quad\b|~)
    |(?P<thin>\s+|\\[,!>]|\\(?:limits|nolimits|displaystyle|textstyle|rm|sf|bf|it)(?![A-Za-z]))
    |(?P<size>\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z]))
    |(?P<moment>\\mathbb\s*\{(?P<first>[VC])\}\s*\\(?:text|mathrm|operatorname)\s*\{(?P<rest>ar|ov)\})
    |(?P<word>\\(?:text|mathrm|operatorname\*?|textrm|mathit)\s*\{(?P<inside>[^{}]*)\})
    |(?P<style>(?P<face>\\(?:mathcal|mathbbm?|mathds|mathbf|mathsf|boldsymbol|bm)(?![A-Za-z]))\s*(?:\{\s*(?P<styled>\w)\s*\}|(?P<bare>\w)))
    |(?P<environment>\\(?:begin|end)\s*\{\w+\})
    |(?P<arg>\\arg(?:\\[,!])?\s*(?P<extreme>\\max|\\min))
    |(?P<command>\\not\s*(?:=|\\in(?![A-Za-z]))|\\[A-Za-z]+|\\[{}|\#%]|\\\\)
    |(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)
    |(?P<letter>[A-Za-z])
    |(?P<mark>[<>:]=|[-+*/=<>()\[\]{}|,;:_^'&!.−·×≤≥≠])""",
    re.VERBOSE,
)
_INSTEAD = {"÷": "/", "√": r"\sqrt", "∑": r"\sum", "∏": r"\prod", "∞": r"\infty", "∂": r"\partial", "∈": r"\in", "‖": r"\|", "’": "'"}
_POWER_OF_TEN = re.compile(r"[eE]([-+]?[0-9]+)")  # as programs write it
_COMMAND = re.compile(r"\\[A-Za-z]+")
_EMPHASISED = re.compile(r"\\(?:(?:mathbf|boldsymbol|bm|mathsf|vec)\{(\w|\\[a-z]+)|mathcal\{(O))\}$")
LETTERS = frozenset(
    _COMMAND.findall(
        r"\alpha\beta\gamma\delta\epsilon\varepsilon\zeta\eta\theta\iota\kappa\lambda\mu\nu\xi\pi\rho\varrho\sigma\varsigma\tau\phi\varphi"
        r"\chi\psi\omega\upsilon\ell\Gamma\Delta\Theta\Lambda\Xi\Pi\Sigma\Phi\Psi\Omega"
    )
)
ACCENTS = frozenset(_COMMAND.findall(r"\bar\hat\tilde\vec\dot"))
_SAME = r"""
\leq=\le \geq=\ge \neq=\ne \lt=< \gt=> \Longrightarrow=\Rightarrow \implies=\Rightarrow \Longleftrightarrow=\iff \Leftrightarrow=\iff
\intercal=\top \Vert=\| \vert=| \mid=| \ldots=\cdots \dots=\cdots \tfrac=\frac \dfrac=\frac \varnothing=\emptyset \ast=*
\colon=: \leqslant=\le \geqslant=\ge \rightarrow=\to \leftrightarrow=\iff \wedge=\land \vee=\lor \lnot=\neg \bullet=\cdot
\widehat=\hat \overline=\bar \widetilde=\tilde \cfrac=\frac \sup=\max \inf=\min \not\in=\notin −=- ·=\cdot ×=\times ≤=\le ≥=\ge ≠=\ne
"""
SAME = dict(pair.split("=") for pair in _SAME.split()) | {r"\not=": r"\ne", "<=": r"\le", ">=": r"\ge"}
SAME |= dict.fromkeys((":=", r"\coloneqq", r"\triangleq", r"\equiv"), "=")
COMMANDS = {name: rf"\{name}" for name in ("max", "min", "exp", "ln", "log", "cos", "sin", "tan", "tanh", "sinh", "cosh", "lim")}
COMMANDS |= {"argmax": r"\arg\max", "argmin": r"\arg\min"}
_UPRIGHT = (("word", "T"), ("letter", r"\mathsf{T}"), ("letter", r"\mathbf{T}"))
_GROUPS = {name: name for name in _LEXEMES.groupindex} | {"inside": "word", "styled": "style", "bare": "style", "extreme": "arg"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the LaTeX: `kind` is name, letter, number, word, command, mark, qquad or end."""

    kind: str
    text: str
    place: Place
    braced: bool = False  # alone in braces: 12 of x^{12}, against the 1 of x^12
    wide: bool = False  # a visible space stands before it

    @property
    def spelled(self) -> str:
        """What the token says: words in their braces, names never like a sign, nothing at the end."""
        if self.kind in ("name", "end"):
            return "a name" if self.kind == "name" else ""
        return rf"\text{{{self.text}}}" if self.kind == "word" else self.text


def matching(tokens: Sequence[Token], at: int) -> int:
    """Return where the bracket that opens here closes; the end of the formula if nowhere."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += NESTING.get(tokens[i].spelled, 0)
        if not depth:
            return i
    return len(tokens) - 1


def argument_end(tokens: Sequence[Token], at: int) -> int:
    """Return the position behind the argument that starts here: a group in braces, or one token."""
    return (matching(tokens, at) if at < len(tokens) and tokens[at].text == "{" else at) + 1


def tokens_of(latex: str, names: Iterable[str] = ()) -> list[Token]:
    """Return the tokens of a formula in which the names are cut out."""
    if len(latex) > LONGEST:
        raise Malformed(f"a formula has at most {LONGEST:,} characters; this one has {len(latex):,}")
    listed = [*names]
    return [*_cut(_plain(_settled(_lexed(latex)), listed), listed), Token("end", "", (len(latex), len(latex) + 1))]


def _plain(tokens: list[Token], names: Sequence[str]) -> list[Token]:
    r"""Return tokens with plain letters in the place of \mathbf{x}, \vec{x} and their like, where only x is given."""
    emphasised = {
        token.text: match[1] or match[2] for token in tokens if token.kind == "letter" and (match := _EMPHASISED.match(token.text))
    }
    known = {one.text for name in names for one in _settled(_lexed(name))} if emphasised else set()
    plain = {text: letter for text, letter in emphasised.items() if letter in known and text not in known}
    return [replace(token, text=plain.get(token.text, token.text)) for token in tokens] if plain else tokens


def _lexed(latex: str) -> Iterator[Token]:
    place, wide, side, before = 0, False, "", [""]
    while place < len(latex):
        match = _LEXEMES.match(latex, place)
        if match is None:
            raise Malformed(_unknown(latex[place]), (place, place + 1), latex)
        kind, text, at = _GROUPS[match.lastgroup or ""], match.group(), match.span()
        place = match.end()
        if kind == "number" and (power := _POWER_OF_TEN.match(latex, place)):
            problem = rf"for a power of ten write {text} \cdot 10^{{{power[1].removeprefix('+')}}}"
            raise Malformed(problem, (at[0], power.end()), latex)
        if kind == "size":
            side = {r"\left": "l", r"\right": "r", r"\middle": ""}.get(text, text[-1] if text[-1] in "lrm" else "m")
            continue
        if kind in ("wide", "thin"):
            wide = wide or kind == "wide"
            continue
        text = "0" + text if text[0] == "." and kind == "number" else SAME.get("".join(text.split()), text)
        if kind == "moment":
            kind, text = "word", match["first"] + match["rest"]
        elif kind == "word":
            text = " ".join(re.sub(r"\\[ ,!]|~", " ", match["inside"]).split())
            if text.replace(" ", "") in COMMANDS:
                kind, text = "command", COMMANDS[text.replace(" ", "")]
        elif kind == "style":
            face = r"\mathbb" if match["face"] in (r"\mathbbm", r"\mathds") else match["face"]
            kind, text = "letter", f"{face}{{{match['styled'] or match['bare']}}}"
        elif kind == "arg":
            kind, text = "command", r"\arg" + match["extreme"]
        elif kind == "environment":
            kind, text = "command", re.sub(r"\s", "", text)
        elif text in ("|", r"\|") and side:
            text = rf"\{side}{'vert' if text == '|' else 'Vert'}"
        elif text in LETTERS:
            kind = "letter"
        if (kind, text) in _UPRIGHT and "^" in (before[-1], "".join(before[-2:]).removesuffix("{")):
            kind, text = "command", r"\top"  # ^{\mathsf T}
        before.append(text)
        yield Token(kind, text, at, wide=wide)
        wide, side = False, ""


def _unknown(sign: str) -> str:
    """Say of a sign that begins no token what to write instead of it."""
    if sign == "$" or sign == "\\":
        return "write the formula alone, without what sets it off from a text"
    name = unicodedata.name(sign, "").split()
    if sign in _INSTEAD:
        return f"write {_INSTEAD[sign]}"
    if name[:1] in (["SUPERSCRIPT"], ["SUBSCRIPT"]):
        return f"write {'^' if name[0] == 'SUPERSCRIPT' else '_'}{unicodedata.normalize('NFKC', sign)}"
    if name[:1] == ["GREEK"] and rf"\{name[-1].lower()}" in LETTERS:
        letter = name[-1].capitalize() if "CAPITAL" in name else name[-1].lower()
        return rf"write \{letter}"
    plain = unicodedata.normalize("NFKC", sign)
    return f"write {plain}" if plain != sign and plain.isascii() else f"the sign {sign!r} has no meaning here"


def _settled(tokens: Iterable[Token]) -> list[Token]:
    r"""Take away braces around one token, join accents with what they stand on, and write ^{h\top} as ^h^\top."""
    new: list[Token] = []
    opened: list[int] = []
    for token in tokens:
        new.append(token)
        transposed: list[Token] = []
        if token.text == "{":
            opened.append(len(new) - 1)
        elif token.text == "}" and opened:
            start = opened.pop()
            inside = new[start + 1 : -1]
            texts = [one.text for one in inside]
            if start and new[start - 1].text == "^" and texts[1:] and texts[-1] == r"\top" and texts[-2] != "^" and texts[:-1] != ["-"]:
                top = inside.pop()
                transposed = [Token("mark", "^", top.place), top]
                new[start + 1 :] = [*inside, token]
            if texts[1:] and {*texts} == {r"\prime"} and new[start - 1].text == "^":
                new[start - 1 :] = [Token("mark", "'", one.place) for one in inside]
                continue
            if not inside and start and new[start - 1].text not in ("^", "_") and new[start - 1].kind != "command":  # W_Q{}^\top
                del new[start:]
                continue
            if len(inside) == 1 and (inside[0].kind != "mark" or inside[0].text in "*+-'"):
                new[start:] = [replace(inside[0], braced=True, place=(new[start].place[0], token.place[1]), wide=new[start].wide)]
        if new[-1].text == r"\prime" and len(new) > 1 and new[-2].text == "^":
            above, prime = new[-2:]
            new[-2:] = [Token("mark", "'", (above.place[0], prime.place[1]))]
        while new[-1].kind in ("letter", "word") and len(new) > 1 and new[-2].text in ACCENTS:
            accent, under = new[-2:]
            new[-2:] = [Token("letter", f"{accent.text}{{{under.text}}}", (accent.place[0], under.place[1]), wide=accent.wide)]
        new += transposed
    return new


def _cut(tokens: list[Token], names: Iterable[str]) -> Iterator[Token]:
    names = [*names]
    patterns = sorted(((pattern, name) for name in names for pattern in _patterns(name)), key=lambda pair: -len(pair[0]))
    while tokens:
        first = tokens[0].spelled
        matches = (_match(tokens, pattern, name, first not in names) for pattern, name in patterns if pattern[0] == first)
        token, *tokens = next(filter(None, matches), tokens)
        yield token


def _patterns(name: str) -> list[list[str]]:
    """Return the tokens of a name; "" stands for the index of a family, which may stand in front of what is beneath: W^{(h)}_{UK}."""
    spelled = [token.spelled for token in _settled(_lexed(name))]
    if not FAMILY.match(name):
        return [spelled]
    spelled[-3] = ""
    beneath = spelled.index("_") if "_" in spelled else -6
    return [spelled, [*spelled[:beneath], *spelled[-6:], *spelled[beneath:-6]]]


def _match(tokens: list[Token], pattern: list[str], name: str, alone: bool) -> list[Token] | None:
    """Put one name to the front if it stands there; an index may stand before a part above: Q_h^R for Q^R.

    If no other name begins so, an index may stand beside a part beneath too: m_{q,i} for an entry of m_q.
    """
    i, index = 0, list[Token]()
    texts = [token.spelled for token in tokens[:4]]
    if alone and len(pattern) == 3 and pattern[1] == "_" and texts == [*pattern[:2], "{", pattern[2]] and tokens[4].spelled != "}":
        end, beneath = argument_end(tokens, 2), 4 + (tokens[4].text == ",")
        index, i, pattern = [tokens[1], tokens[2], *tokens[beneath:end]], end, []
    for count, text in enumerate(pattern):
        if text in ("^", "'") and not {"^", "'"} & {*pattern[:count]} and tokens[i:] and tokens[i].text == "_":
            index, i = tokens[i : argument_end(tokens, i + 1)], argument_end(tokens, i + 1)
        if i >= len(tokens):
            return None
        if not text:
            end = next((at for at in range(i, len(tokens)) if tokens[at].text in (")", "}")), len(tokens))
            below, opens, closes = (Token("mark", sign, tokens[i].place) for sign in "_{}")
            index, i = [below, opens, *tokens[i:end], closes, *index], end
        elif tokens[i].spelled != text:
            return None
        else:
            i += 1
    place = (tokens[0].place[0], tokens[i - 1].place[1])
    return [Token("name", name, place, braced=tokens[0].braced and i == 1, wide=tokens[0].wide), *index, *tokens[i:]]
