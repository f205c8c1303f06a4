r"""LaTeX as MathML, which browsers typeset by themselves: `mathml(r"\frac{a}{b_i}")`. Only what the formulas of the course use is known."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape

WORDS = "mathrm|text|operatorname|textbf|textit|mathit|mathsf|mathbf|boldsymbol|mathtt|texttt|textrm"
TOKEN = re.compile(rf"\\(?:{WORDS})\s*{{[^{{}}]*}}|\\[A-Za-z]+|\\.|\d+(?:[.]\d+)?|[A-Za-z]|\S", re.ASCII)
SPACES = {r"\,": 0.17, r"\:": 0.22, r"\>": 0.22, r"\;": 0.28, r"\ ": 0.3, "~": 0.3, r"\quad": 1, r"\qquad": 2, r"\!": 0}
SIGNS = {r"\cdot": "·", r"\odot": "⊙", r"\circ": "∘", r"\otimes": "⊗", r"\oplus": "⊕", r"\uplus": "⊎", r"\times": "×", r"\pm": "±"}
SIGNS |= {r"\le": "≤", r"\leq": "≤", r"\ge": "≥", r"\geq": "≥", r"\ne": "≠", r"\neq": "≠", r"\approx": "≈", r"\in": "∈", r"\notin": "∉"}
SIGNS |= {
    r"\cup": "∪",
    r"\cap": "∩",
    r"\subset": "⊂",
    r"\subseteq": "⊆",
    r"\to": "→",
    r"\Rightarrow": "⇒",
    r"\iff": "⟺",
    r"\Longleftrightarrow": "⟺",
    r"\Longrightarrow": "⟹",
    r"\ast": "∗",
}
SIGNS |= {r"\partial": "∂", r"\nabla": "∇", r"\cdots": "⋯", r"\ldots": "…", r"\dots": "…", r"\mid": "|", r"\ll": "≪", r"\gg": "≫", "-": "−"}
SIGNS |= {r"\setminus": "∖", r"\colon": ":", r"\&": "&", r"\%": "%", r"\#": "#", r"\_": "_", r"\star": "⋆", r"\int": "∫", "*": "∗"}
FENCES = {r"\lVert": "‖", r"\rVert": "‖", r"\|": "‖", r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\lfloor": "⌊", r"\rfloor": "⌋"}
FENCES |= {r"\lceil": "⌈", r"\rceil": "⌉", r"\langle": "⟨", r"\rangle": "⟩", r"\{": "{", r"\}": "}", "(": "(", ")": ")", "[": "[", "]": "]"}
FENCES |= {"|": "|", r"\Vert": "‖"}
SIZED = re.compile(r"\\(left|right|(big|Big|bigg|Bigg)[lrm]?)$")
OPENING = re.compile(r"\\(left|[bB]igg?l)$")
TALL = re.compile("<m(?:frac|under|sqrt|root|table)")
CLOSING = (r"\right", r"\bigr", r"\Bigr", r"\biggr", r"\Biggr")
NAMES = {r"\infty": "∞", r"\ell": "ℓ", r"\emptyset": "∅", r"\varnothing": "∅", r"\hbar": "ℏ"}
FUNCTIONS = {
    "exp",
    "ln",
    "log",
    "cos",
    "sin",
    "tan",
    "tanh",
    "arg",
    "det",
    "dim",
    "deg",
    "sup",
    "inf",
    "max",
    "min",
    "lim",
    "argmax",
    "argmin",
}
BENEATH = {r"\sum": "∑", r"\prod": "∏", r"\max": "max", r"\min": "min", r"\lim": "lim", r"\sup": "sup", r"\inf": "inf"}
BENEATH |= {r"\bigoplus": "⨁", r"\biguplus": "⨄", r"\bigcup": "⋃"}
ACCENTS = {"bar": "¯", "overline": "¯", "hat": "^", "widehat": "^", "tilde": "~", "widetilde": "~", "check": "ˇ", "vec": "→", "dot": "˙"}
BOLD = str.maketrans("01", "𝟎𝟏")
ALPHABETS = {"mathbb": "DOUBLE-STRUCK", "mathcal": "SCRIPT", "mathscr": "SCRIPT"}
TABLES = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "cases": "{", "aligned": "", "gathered": "", "matrix": "", "array": ""}


def mathml(latex: str, display: bool = True) -> str:
    """Return a formula as one `<math>` element; raises ValueError for a command that is not known."""
    inside = _Reader(TOKEN.findall(latex)).row()
    return f"<math{' display=block' * display}>{inside}</math>"


_WORDS = re.compile(rf"({WORDS})\s*{{(.*)}}", re.DOTALL)


class _Reader:
    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def token(self) -> str:
        """The next token, "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        self.at += 1
        return self.tokens[self.at - 1]

    def row(self, *stops: str) -> str:
        """Return all up to one of some tokens, or to the end."""
        return "".join(self.items(*stops))

    def items(self, *stops: str) -> Iterator[str]:
        """Yield what stands side by side, each with what is attached to it."""
        while self.token and self.token not in stops:
            yield self.scripted()

    def scripted(self) -> str:
        """Return one thing with its index and its exponent."""
        below = self.token in BENEATH or self.tokens[self.at : self.at + 2] == [r"\arg", r"\max"]
        base = self.atom() if self.token not in ("_", "^", "'") else "<mrow></mrow>"
        lower, upper = list[str](), list[str]()
        while self.token in ("_", "^", "'"):
            sign = self.take()
            if sign == "'":
                upper.append("<mo>′</mo>")
            elif sign == "_":
                lower.append(self.argument())
            else:
                upper.append(self.argument())
        if not lower and not upper:
            return base
        rows = [_row(part).replace("<mo>", '<mo lspace="0" rspace="0">') for part in (lower, upper) if part]  # small signs stand close
        kind = {(True, True): "subsup", (True, False): "sub", (False, True): "sup"}[bool(lower), bool(upper)]
        kind = kind.replace("sub", "under").replace("sup", "over") if below else kind
        return f"<m{kind}>{base}{''.join(rows)}</m{kind}>"

    def argument(self) -> str:
        """Return what a command or a script takes: a group or one thing."""
        if self.token == "{":
            self.take()
            found = list(self.items("}"))
            self.take()
            return _row(found)
        return self.atom()

    def words(self) -> str:
        """Return the tokens of a group as they stand."""
        if self.token != "{":
            return self.take()
        self.take()
        found = []
        while self.token != "}":
            found.append(self.take())
        self.take()
        return "".join(found).replace(r"\ ", " ").replace(r"\_", "_").replace("~", " ")

    def atom(self) -> str:
        """Return one thing without what is attached to it."""
        if self.token == "{":
            return self.argument()
        token = self.take()
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token in SPACES:
            return f'<mspace width="{SPACES[token]}em"/>'
        if token in BENEATH:
            return f"<mo>{BENEATH[token]}</mo>"
        if token in FENCES:
            return f'<mo stretchy="false">{escape(FENCES[token])}</mo>'
        if SIZED.match(token):
            return self.sized(token)
        if token in SIGNS:
            return f"<mo>{escape(SIGNS[token])}</mo>"
        if token == r"\top":
            return '<mi mathvariant="normal">⊤</mi>'
        if token in NAMES:
            return f"<mi>{NAMES[token]}</mi>"
        if re.fullmatch("[A-Za-z]", token):
            return f"<mi>{token}</mi>"
        if not token.startswith("\\"):
            return f"<mo>{escape(token)}</mo>"
        return self.command(token[1:])

    def sized(self, token: str) -> str:
        """Return a large bracket; with all up to the one that closes it, as one thing, which carries what is attached to that."""
        first = self.fence()
        if not OPENING.match(token):
            return first
        inside = self.row(*CLOSING)
        last = self.fence() if self.token and self.take() else ""
        if not TALL.search(inside):  # a larger bracket has more room at its sides
            first, last = (each.replace('"true"', '"false"') for each in (first, last))
        return f"<mrow>{first}{inside}{last}</mrow>"

    def fence(self) -> str:
        """Return a bracket that grows with what it holds."""
        sign = self.take()
        return "" if sign == "." else f'<mo stretchy="true">{escape(FENCES.get(sign, SIGNS.get(sign, sign)))}</mo>'

    def command(self, name: str) -> str:
        """Return what a command makes."""
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            if self.token == "[":
                self.take()
                degree = self.row("]")
                self.take()
                return f"<mroot>{self.argument()}<mrow>{degree}</mrow></mroot>"
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in ACCENTS:
            wide = str(name.startswith(("over", "wide"))).lower()
            return f'<mover accent="true">{self.argument()}<mo stretchy="{wide}">{ACCENTS[name]}</mo></mover>'
        if name in ALPHABETS:
            return f"<mi>{''.join(_in_alphabet(letter, ALPHABETS[name]) for letter in self.words())}</mi>"
        if found := _WORDS.fullmatch(name):
            if found[1] == "mathbf" and found[2].isdigit():
                return f"<mn>{found[2].translate(BOLD)}</mn>"
            bold = ' style="font-weight:bold"' * (found[1] in ("mathbf", "boldsymbol", "textbf"))
            said = found[2].replace("\\ ", " ").replace(r"\_", "_").replace("~", " ").replace("--", "–")
            upright = ' mathvariant="normal"' * (len(said) == 1)
            return f"<mi{upright}{bold}>{escape(said)}</mi>"
        if name in FUNCTIONS:
            apart = self.token[:1].isalnum() or self.token[:1] == "\\"
            return f"<mi>{name}</mi>" + '<mspace width="0.17em"/>' * apart
        if name == "begin":
            return self.table()
        if name == "substack":
            self.take()
            lines = list(self.lines("}"))
            self.take()
            return _table(lines)
        if name == "xrightarrow":
            below = ""
            if self.token == "[":
                self.take()
                below = self.row("]")
                self.take()
            self.argument()
            return f"<munder><mo>→</mo><mrow>{below}</mrow></munder>"
        spelled = name.removeprefix("var").replace("ambda", "amda")
        size = "SMALL" if name.islower() else "CAPITAL"
        try:
            return f"<mi>{unicodedata.lookup(f'GREEK {size} LETTER {spelled}')}</mi>"
        except KeyError:
            raise ValueError(rf"\{name} is not known") from None

    def lines(self, stop: str) -> Iterator[list[str]]:
        """Yield the lines of a table, each a list of cells."""
        line = list[str]()
        while True:
            line.append(self.row("&", r"\\", stop))
            if self.token == "&":
                self.take()
                continue
            if any(line):
                yield line
            line = []
            if self.token != r"\\":
                return
            self.take()
            if self.token == "[":  # the room below a line
                while self.take() != "]":
                    pass

    def table(self) -> str:
        """Return an environment."""
        name = self.words()
        fences = TABLES[name]
        lines = list(self.lines(r"\end"))
        self.take()
        self.words()
        ends = [f'<mo stretchy="true">{sign}</mo>' for sign in fences]
        return f"<mrow>{''.join(ends[:1])}{_table(lines, name == 'cases')}{''.join(ends[1:])}</mrow>"


def _row(parts: Sequence[str]) -> str:
    """Return what stands side by side as one thing."""
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _table(lines: Sequence[Sequence[str]], cases: bool = False) -> str:
    look = ' style="text-align:left"' * cases
    rows = ["<mtr>" + "".join(f"<mtd{look}>{cell}</mtd>" for cell in line) + "</mtr>" for line in lines]
    return f"<mtable>{''.join(rows)}</mtable>"


def _in_alphabet(letter: str, alphabet: str) -> str:
    for kind in ("MATHEMATICAL " + alphabet, alphabet):
        try:
            return unicodedata.lookup(f"{kind} CAPITAL {letter}")
        except KeyError:
            continue
    return letter
