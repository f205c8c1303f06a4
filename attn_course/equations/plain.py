"""A formula as one line of plain text, for a terminal: sigma as its letter, fractions with a slash, matrices in brackets."""

import re
from collections.abc import Callable

from attn_course.equations.worked import follows_a_dot
from attn_course.formulas import Node, write
from attn_course.formulas.tree import FAMILY

GREEK = {name: chr(ord("α") + place) for place, name in enumerate(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])}
GREEK |= {name: chr(ord("ι") + place) for place, name in enumerate(["iota", "kappa", "lambda", "mu", "nu", "xi"])}
GREEK |= {"pi": "π", "rho": "ρ", "varsigma": "ς", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "ell": "ℓ"}
GREEK |= {"varepsilon": "ε", "Delta": "Δ", "Pi": "Π", "Sigma": "Σ", "Omega": "Ω", "Phi": "Φ"}
SIGNS = {r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\in": "∈", r"\notin": "∉", r"\approx": "≈", r"\Rightarrow": "⇒", r"\iff": "⇔"}
SIGNS |= {r"\infty": "∞", r"\cdots": "...", r"\cdot": "·", r"\sum": "sum", r"\prod": "prod", r"\top": "T", r"\emptyset": "{}"}
SIGNS |= {r"\subset": "⊂", r"\subseteq": "⊆", r"\xrightarrow": "→", r"\to": "→", r"\oplus": "⊕", r"\uplus": "⊎", r"\cup": "∪"}
SIGNS |= {r"\cap": "∩", r"\partial": "d", r"\ast": "*", r"\sqrt": "sqrt", r"\mathbb{R}": "R"}
COMMANDS = {sign.removeprefix("\\"): text for sign, text in SIGNS.items()} | GREEK
ACCENTS = {"bar": "\N{COMBINING MACRON}", "hat": "\N{COMBINING CIRCUMFLEX ACCENT}", "tilde": "\N{COMBINING TILDE}"}
STYLES = re.compile(r"\\(?:text|mathrm|mathcal|mathbf|mathbb|left|right)(?![A-Za-z])")
OPERATORS = {"dot": "·", "odot": "∘", "times": "x", "union": "∪", "intersection": "∩"}
LOOSE, SUM, PRODUCT, TIGHT = range(4)
LEVELS = {
    **dict.fromkeys(("formula", "given", "where", "all", "implies", "chain", "relation", "slice", "to", "cells", "run"), LOOSE),
    **dict.fromkeys(("sum", "neg"), SUM),
    **dict.fromkeys(("product", "over", "big", "integral", "nabla", *OPERATORS, "operator"), PRODUCT),
}


def plain(node: Node, level: int = LOOSE) -> str:
    """Return a formula in plain text."""
    text = _WRITERS[node.kind](node) if node.kind in _WRITERS else symbol(write(node))
    return f"({text})" if LEVELS.get(node.kind, TIGHT) < level else text


def symbol(latex: str) -> str:
    """Return LaTeX without its commands: Greek letters and signs as such, braces gone."""
    text = re.sub(r"\\[,;:! ]", " ", STYLES.sub("", re.sub(r"\^\{(\(\w+\))\}", r"^\1", latex)))
    text = re.sub(r"\\(bar|hat|tilde)\s*\{?(\w|\\[a-z]+)\}?", lambda found: f"{symbol(found[2])}{ACCENTS[found[1]]}", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda found: COMMANDS.get(found[1], found[1]), text)
    text = text.replace(r"\{", "<").replace(r"\}", ">")
    while (less := re.sub(r"\{([\w.-]*)\}", r"\1", text)) != text:
        text = less
    return text.translate(str.maketrans("{}<>", "(){}"))


def _listed(nodes: tuple[Node, ...], separator: str = ", ", level: int = LOOSE) -> str:
    return separator.join(plain(node, level) for node in nodes)


def _sum(node: Node) -> str:
    first, *rest = node.children
    text = f"({plain(first)})" if first.kind == "sum" else plain(first, SUM)
    for term in rest:
        text += f" - {plain(term.children[0], PRODUCT)}" if term.kind == "neg" else f" + {plain(term, PRODUCT)}"
    return text


def _product(node: Node) -> str:
    text = ""
    for factor in node.children:
        written = plain(factor, TIGHT if factor.kind in ("neg", "product", *OPERATORS) else PRODUCT)
        text += (" · " if follows_a_dot(factor, written) else " ") * bool(text) + written
    return text


def _entry(node: Node) -> str:
    base, *indices = node.children
    family = FAMILY.match(base.value) if base.kind == "name" else None
    base = Node("name", value=family[1]) if family else base
    tight = all(len(plain(index)) == 1 for index in indices)
    beneath = _listed(tuple(indices), "" if tight else ",")
    closed = tight or (len(indices) == 1 and beneath.isalnum())
    return f"{plain(base, TIGHT)}_{beneath if closed else f'({beneath})'}"


def _power(node: Node) -> str:
    base, exponent = node.children
    above = plain(exponent)
    closed = re.fullmatch(r"\w|[\d.]+", above)
    return f"{plain(base, TIGHT)}^{above if closed else f'({above})'}"


def _call(node: Node) -> str:
    under, *arguments = node.children
    beneath = f"_{plain(under)}" if under.kind != "none" else ""
    return f"{symbol(SIGNS.get(node.value, node.value))}{beneath}({_listed(tuple(arguments))})"


def _big(node: Node) -> str:
    domain, body = node.children
    return f"{SIGNS.get(node.value, symbol(node.value))}_({_listed(domain.children)}) {plain(body, PRODUCT)}"


def _derivative(node: Node) -> str:
    above, *by = node.children
    order = f"^{len(by)}" if len(by) > 1 else ""
    return f"d{order} {plain(above, TIGHT)} / {' '.join(f'd{plain(one, TIGHT)}' for one in by)}"


def _chain(node: Node) -> str:
    return " ".join(plain(part) if part.kind == "relation" else plain(part, SUM) for part in node.children)


def _cases(node: Node) -> str:
    pairs = zip(node.children[::2], node.children[1::2], strict=True)
    return "{" + "; ".join(f"{plain(value)} if {plain(condition)}" for value, condition in pairs) + "}"


_WRITERS: dict[str, Callable[[Node], str]] = {
    "formula": lambda node: _listed(node.children, ",   "),
    "chain": _chain,
    "relation": lambda node: SIGNS.get(node.value, node.value),
    "where": lambda node: f"{plain(node.children[0])} ({_listed(node.children[1:])})",
    "all": lambda node: _listed(node.children),
    "implies": lambda node: f"{plain(node.children[0])} {SIGNS[node.value]} {plain(node.children[1])}",
    "given": lambda node: f"{plain(node.children[0])}: {_listed(node.children[1:])}",
    "number": lambda node: node.value,
    "constant": lambda node: symbol(SIGNS.get(node.value, node.value)),
    "name": lambda node: symbol(node.value),
    "index": lambda node: symbol(node.value),
    "sum": _sum,
    "product": _product,
    "neg": lambda node: f"-{plain(node.children[0], PRODUCT)}",
    **dict.fromkeys(OPERATORS, lambda node: _listed(node.children, f" {OPERATORS[node.kind]} ", TIGHT)),
    "operator": lambda node: _listed(node.children, f" {symbol(SIGNS.get(node.value, node.value))} ", TIGHT),
    "over": lambda node: _listed(node.children, " / ", TIGHT),
    "power": _power,
    "transpose": lambda node: f"{plain(node.children[0], TIGHT)}^T",
    "factorial": lambda node: f"{plain(node.children[0], TIGHT)}!",
    "entry": _entry,
    "slice": lambda node: _listed(node.children, ":"),
    "call": _call,
    "big": _big,
    "range": lambda node: f"{plain(node.children[0])} = {plain(node.children[1])}..{plain(node.children[2])}",
    "to": lambda node: f"{_listed(node.children, ' → ')}{node.value}",
    "domain": lambda node: _listed(node.children),
    "derivative": _derivative,
    "bars": lambda node: f"|{plain(node.children[0])}|",
    "norm": lambda node: f"‖{plain(node.children[0])}‖{'_' * bool(node.value)}{node.value}",
    "floor": lambda node: f"⌊{plain(node.children[0])}⌋",
    "ceil": lambda node: f"⌈{plain(node.children[0])}⌉",
    "iverson": lambda node: f"[{plain(node.children[0])}]",
    "tuple": lambda node: f"({_listed(node.children)})",
    "blocks": lambda node: f"[{'; '.join(_listed(line.children, ' ' if node.value != '[' else ', ') for line in node.children)}]",
    "run": lambda node: _listed(node.children, " ... "),
    "cases": _cases,
    "none": lambda _: "",
}
