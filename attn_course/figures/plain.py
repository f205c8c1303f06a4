"""Mathematics that stands in plain text, as the sources of equations have it, as HTML: sum_j p_j, 1 / sqrt(d_k), an n x n matrix."""

import re

GREEK = ["alpha", "beta", "gamma", "epsilon", "theta", "kappa", "lambda", "mu", "nu", "pi", "rho", "sigma", "tau", "phi", "omega"]
CAPITALS = ["Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"]
LETTERS = dict(zip(GREEK + CAPITALS, "αβγεθκλμνπρστφωΓΔΘΛΞΠΣΦΨΩ", strict=True))
SIGNS = {
    rf"(?<![\w-])({'|'.join(LETTERS)})(?![a-z-]| rule)": lambda found: LETTERS[found[1]],
    r"\bdelta(?=_)": lambda _: "δ",
    r"\bsum(?=_)": lambda _: "Σ",
    r"\bsqrt\((\w+)\)": lambda found: f"√{found[1]}",
    r"\bsqrt\(": lambda _: "√(",
    r"(?<=\w)\.(?=\()|(?<=[\w)\]]) \. (?=[\w(])": lambda found: "·" if len(found[0]) == 1 else " · ",
    r"(?<![\w'])([a-zA-Z](?:_\w+)?'?) x (?=[a-zA-Z](?:_\w+)?'?(?!\w))": lambda found: f"{found[1]} × ",
    r"&lt;=": lambda _: "≤",
    r"&gt;=": lambda _: "≥",
    r"(?<![=\w])([-+])inf\b": lambda found: f"{found[1]}∞",
    r" - |(?<![\w)\]'’-])-(?=[\w(√∞])": lambda found: found[0].replace("-", "−"),
}
WHAT = r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|\([\w, −-]*\)|[-−]?\w+)"
BASE = r"(?:(?<=\b[A-Za-zΑ-ω])|(?<=\bd[A-Za-z])|(?<=[Σ)|\]'])|(?<=\d)(?=\^)|(?<=log)|(?<=max)|(?<=min)|(?<=lse)|(?<=Var)|(?<=kv))"
SCRIPTS = re.compile(rf"{BASE}(?:_(?!_){WHAT}(?:\^{WHAT})?|\^{WHAT})")  # x_i, e^{{a + b}}, W_K^T; no my_softmax
SCRIPT = re.compile(rf"([_^])({WHAT})")
INDEX = r"(?<=<sub>)(?:(?!in)[a-z]{2}|a)(?=</sub>)|(?<=[Ee]ntry )a\b|(?<=, )a(?=\))"  # no article, no T_in
VARIABLE = re.compile(rf"({INDEX}|(?<![\w'’&/<])(?:[b-zB-HJ-ZΓ-Ωα-ω]|(?:a|d[b-zA-Z])(?=<su))(?='?(?:<su|[^\w'’]|$))(?![^<>]*>))")
ADDRESS = re.compile(r"(\]\([^)]*\)|`[^`]*`)")


def mathematics(text: str) -> str:
    """Return plain text, escaped for HTML, with its letters, signs and scripts set; addresses and code stay as they are.

    >>> mathematics("d ln p_j = e^{z_i - 1} / sqrt(d_k), an n x n matrix")
    '<var>d</var> ln <var>p</var><sub><var>j</var></sub> = <var>e</var><sup><var>z</var><sub><var>i</var></sub> − 1</sup> / \
√<var>d</var><sub><var>k</var></sub>, an <var>n</var> × <var>n</var> matrix'
    >>> mathematics("Pi^T W_K^T of the Delta rule, to -inf")
    '<var>Π</var><sup>⊤</sup> <var>W</var><sub><var>K</var></sub><sup>⊤</sup> of the Delta rule, to −∞'
    """
    return "".join(
        part if at % 2 else VARIABLE.sub(r"<var>\1</var>", _scripts(_signs(part))) for at, part in enumerate(ADDRESS.split(text))
    )


def _signs(text: str) -> str:
    for sign, written in SIGNS.items():
        text = re.sub(sign, written, text)
    return text


def _scripts(text: str) -> str:
    return SCRIPTS.sub(lambda found: SCRIPT.sub(_script, found[0]), text)


def _script(found: re.Match[str]) -> str:
    if found[0] == "^T":
        return "<sup>⊤</sup>"
    tag, what = "sub" if found[1] == "_" else "sup", found[2]
    return f"<{tag}>{_scripts(what[1:-1] if what.startswith('{') else what)}</{tag}>"
