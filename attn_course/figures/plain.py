"""Mathematics that stands in plain text, as the sources of equations have it, as HTML: sum_j p_j, 1 / sqrt(d_k), an n x n matrix."""

import re

GREEK = ["alpha", "beta", "gamma", "epsilon", "theta", "kappa", "lambda", "mu", "nu", "pi", "rho", "sigma", "tau", "phi", "omega"]
LETTERS = dict(zip(GREEK, "αβγεθκλμνπρστφω", strict=True))
SIGNS = {
    rf"(?<![\w-])({'|'.join(GREEK)})(?![a-z-])": lambda found: LETTERS[found[1]],
    r"\bdelta(?=_)": lambda _: "δ",
    r"\bsum(?=_)": lambda _: "Σ",
    r"\bsqrt\((\w+)\)": lambda found: f"√{found[1]}",
    r"\bsqrt\(": lambda _: "√(",
    r"(?<=\w)\.(?=\()|(?<=[\w)\]]) \. (?=[\w(])": lambda found: "·" if len(found[0]) == 1 else " · ",
    r"(?<![\w'])([a-zA-Z](?:_\w+)?'?) x (?=[a-zA-Z](?:_\w+)?'?(?!\w))": lambda found: f"{found[1]} × ",
    r"&lt;=": lambda _: "≤",
    r"&gt;=": lambda _: "≥",
    r" - |(?<![\w)\]'’-])-(?=[\w(√])": lambda found: found[0].replace("-", "−"),
}
BASE = r"(?:(?<=\b[A-Za-zα-ω])|(?<=\bd[a-z])|(?<=[Σ)|\]'])|(?<=log)|(?<=max)|(?<=min)|(?<=lse)|(?<=Var)|(?<=kv))"  # no my_softmax
SCRIPT = re.compile(BASE + r"([_^])(\{((?:[^{}]|\{[^{}]*\})*)\}|\([\w, −-]*\)|[-−]?\w+)")  # x_i, e^{a + b}
INDEX = r"(?<=<sub>)(?:(?!in)[a-z]{2}|a)(?=</sub>)|(?<=[Ee]ntry )a\b|(?<=, )a(?=\))"  # no article, no T_in
VARIABLE = re.compile(rf"({INDEX}|(?<![\w'’&/<])(?:[b-zB-HJ-Zα-ω]|(?:a|d[b-z])(?=<su))(?='?(?:<su|[^\w'’]|$))(?![^<>]*>))")
ADDRESS = re.compile(r"(\]\([^)]*\)|`[^`]*`)")


def mathematics(text: str) -> str:
    """Return plain text, escaped for HTML, with its letters, signs and scripts set; addresses and code stay as they are.

    >>> mathematics("d ln p_j = e^{z_i - 1} / sqrt(d_k), an n x n matrix")
    '<var>d</var> ln <var>p</var><sub><var>j</var></sub> = <var>e</var><sup><var>z</var><sub><var>i</var></sub> − 1</sup> / \
√<var>d</var><sub><var>k</var></sub>, an <var>n</var> × <var>n</var> matrix'
    """
    return "".join(
        part if at % 2 else VARIABLE.sub(r"<var>\1</var>", _scripts(_signs(part))) for at, part in enumerate(ADDRESS.split(text))
    )


def _signs(text: str) -> str:
    for sign, written in SIGNS.items():
        text = re.sub(sign, written, text)
    return text


def _scripts(text: str) -> str:
    tags = {"_": "sub", "^": "sup"}
    return SCRIPT.sub(lambda found: f"<{tags[found[1]]}>{_scripts(found[3] or found[2])}</{tags[found[1]]}>", text)
