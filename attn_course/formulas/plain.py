"""LaTeX as one line of plain text, for a terminal: sigma as its letter, fractions with a slash, matrices in brackets."""

import re
import unicodedata

FIRST = {r"\begin{pmatrix} ": "[", r" \end{pmatrix}": "]", r"\begin{cases} ": "⦃", r" \end{cases}": "⦄", r"\\": ";", r"\,\|\,": "|"}
FIRST |= {r"\mathrm{d} ": "d", r"\partial ": "d", r"\, ": " ", r"\{": "⦃", r"\}": "⦄", r" \times ": " x ", r"\emptyset": "⦃⦄"}
FIRST |= {r"\lvert ": "|", r" \rvert": "|", r"\lVert ": "‖", r" \rVert": "‖", r"\lfloor ": "⌊", r" \rfloor": "⌋", r"\mathbb{R}": "R"}
FIRST |= {r"\#": "#", r"\lceil ": "⌈", r" \rceil": "⌉", r"\left( ": "(", r" \right)": ")"}
SIGNS = {"le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "notin": "∉", "approx": "≈", "Rightarrow": "⇒", "iff": "⇔", "infty": "∞"}
SIGNS |= {"cdots": "...", "cdot": "·", "odot": "∘", "top": "T", "subset": "⊂", "subseteq": "⊆", "to": "→", "xrightarrow": "→"}
SIGNS |= {"oplus": "⊕", "uplus": "⊎", "cup": "∪", "cap": "∩", "partial": "d", "ast": "*", "ell": "ℓ", "qquad": "  ", "quad": " "}
SIGNS |= dict.fromkeys(("left", "right", "Big"), "")
COMMAND = re.compile(r"\\([A-Za-z]+)")
OPENING, CLOSING = (
    re.compile(r"([=(+\-\[{;,<>⦃]|\\[a-z]*approx|\\[gln]e|\\q?quad|\\to|\\cdots)$|^$"),
    re.compile(r"[=)+\-\]};,<>⦄]|\\(approx|[gln]e|q?quad|to)\b|$"),
)
ACCENTS = {"bar": "\N{COMBINING MACRON}", "hat": "\N{COMBINING CIRCUMFLEX ACCENT}", "tilde": "\N{COMBINING TILDE}"}
GROUP = re.compile(  # one without another in it: a range, a fraction, what stands above or below, the argument of a command, any other
    r"_\{([^{}=]*)=([^{}]*)\}\^\{([^{}]*)\}|\\frac\{([^{}]*)\}\{([^{}]*)\}|([_^])\{([^{}]*)\}(?!\^\{[^{}]*\{)"
    r"|\\(?!frac)([A-Za-z]+)\{([^{}]*)\}|(?<!\\frac)(?<![}A-Za-z_^])\{([^{}]*)\}"
)


def plain(latex: str) -> str:
    """Return LaTeX, as the reader of formulas writes it, in plain text."""
    text = re.sub(r"\\begin\{cases\}.*?\\end\{cases\}", lambda found: found[0].replace(" & ", " if "), latex).replace(" & ", " ")
    for command, sign in FIRST.items():
        text = text.replace(command, sign)
    text = re.sub(r"\\(bar|hat|tilde) ?(\w|\\[a-z]+)", r"\\\1{\2}", re.sub(r"\\[,;:! ]", " ", text))
    while (less := GROUP.sub(_opened, text)) != text:
        text = less
    text = re.sub(COMMAND, _sign, text)
    return re.sub(r" {4,}", "   ", text).replace(" ;", ";").translate(str.maketrans("⦃⦄", "{}")).strip()


def _opened(found: re.Match[str]) -> str:
    letter, first, last, above, below, script, attached, command, argument, other = found.groups()
    if letter:
        return f"_({letter.strip()} = {first.strip()}..{last.strip()})"
    if above is not None:
        before, after = found.string[: found.start()].rstrip(), found.string[found.end() :].lstrip()
        alone = OPENING.search(before) and CLOSING.match(after)
        text = f"{_closed(above)} / {_closed(below)}"
        return text if alone else f"({text})"
    if script:
        text = re.sub(COMMAND, _sign, attached).strip()
        if script == "_" and re.fullmatch(r"\w((, | )\w)*|\w+", text):
            return "_" + re.sub(", | ", "", text)
        return script + (text if re.fullmatch(r"\w|[\d.]+|\([^()]*\)", text) else f"({text})")
    if command in ACCENTS:
        return re.sub(COMMAND, _sign, argument) + ACCENTS[command]
    return f"sqrt({argument})" if command == "sqrt" else argument if command else other


def _closed(text: str) -> str:
    """Return a part of a fraction, in parentheses if it has several parts."""
    text = inner = text.strip()
    while (less := re.sub(r"[(\[][^()\[\]]*[)\]]", "x", inner)) != inner:
        inner = less
    return f"({text})" if " " in inner else text


def _sign(found: re.Match[str]) -> str:
    """Return a Greek letter, a sign, or the name of a function."""
    command = found[1]
    if command in SIGNS:
        return SIGNS[command]
    name = command.removeprefix("var").replace("ambda", "amda")
    try:
        return unicodedata.lookup(f"GREEK {'SMALL' if command.islower() else 'CAPITAL'} LETTER {name}")
    except KeyError:
        return command
