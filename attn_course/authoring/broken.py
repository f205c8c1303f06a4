"""Builds figures/broken/machine.js, the machine of "Break the machine": each formula of `broken_formulas` written as JavaScript."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attn_course import formulas, sentence
from attn_course.authoring.broken_formulas import PARTS, TWINS, UPDATE, Part, Rule, Twin
from attn_course.equations.plain import plain
from attn_course.files import write_atomically
from attn_course.formulas import Formula, Node, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, outcomes, subset
from attn_course.formulas.javascript import JavaScript, Symbol
from attn_course.formulas.tree import relations

HERE = Path(__file__).parent
MACHINE = HERE.parent / "figures" / "broken" / "machine.js"
ALGEBRA = HERE.parent / "formulas" / "javascript.js"
ENGINE = HERE / "broken_engine.js"
SYMBOLS = {
    **{letter: letter.upper() for letter in "xqkvsbpz"},
    **{letter: letter for letter in "XQKVSAMmPZOY"},
    **{name: name for name in ("d_k", "H", "T", "W_Q", "W_K", "W_V", "W_O")},
    **{f"W_{letter}^{{(h)}}": f"heads.W_{letter}" for letter in "QKVO"},
    "H_{kv}": "H_kv",
    "T_k": "T",
    "h": "head",
}
"""What the symbols of formulas stand for: a part, an input (those with (h): cut into heads), a size, the head."""
AXES = {part.name: part.axes for part in PARTS}
LENGTHS = {"j": "T"}  # of the letter of a set, which subscripts nothing


class Written:
    """A rule, read: the expression that gives the part, and what stands for its symbols."""

    def __init__(self, rule: Rule, symbols: Mapping[str, str] = SYMBOLS) -> None:
        sources = {**symbols, **rule.symbols}
        if "head" not in rule.loops:
            sources.pop("h", None)
        self.rule, self.letters = rule, rule.letters.split()
        self.ranges = [letter for letter in LENGTHS if rf"\{{\, {letter}" in rule.latex]
        self.formula = Formula.of(rule.latex, sources, self.ranges)
        chains = [chain for claim in self.formula.claims for chain, _ in relations(claim)]
        chain = next(chain for chain in chains if not rule.symbol or _named(chain.children[0]) == rule.symbol)
        self.left, self.side = chain.children[0], chain.children[-1]
        used = self.formula.names_beneath(self.side)
        self.sources = {symbol: source for symbol, source in sources.items() if symbol in used or symbol.replace("(h)", "") in used}

    def fixed(self, source: str) -> list[str]:
        """Return the axes of a part along which the rule goes one by one."""
        found = []
        for axis, loop in zip(AXES.get(source, ()), self.rule.loops, strict=False):
            if axis != loop:
                break
            found.append(axis)
        return found

    def start(self, symbol: str) -> int:
        """Return from which number the first axis is counted: heads from 0 where one at a time is computed."""
        return 0 if symbol.endswith("^{(h)}") and "head" in self.rule.loops else 1

    def javascript(self) -> str:
        """Return a function of the algebra, the values of all that came before, the head (and the query), and the letters."""
        symbols = {
            symbol: Symbol(
                "head" if source == "head" else f"$.{source}" + "".join(f"[{axis}]" for axis in self.fixed(source)), self.start(symbol)
            )
            for symbol, source in self.sources.items()
        }
        source = JavaScript(self.formula, symbols, {letter: f"$.{LENGTHS[letter]}" for letter in self.ranges}).written(self.side)
        return f"({', '.join(['o', '$', '{ head, query }', *self.letters])}) => {source}"

    def html(self, left: str = "") -> str:
        """Return the formula as HTML: the side that counts, and what it defines."""
        defined = [
            rf"{name} = {write(one.body)}"
            for name, one in self.formula.definitions.items()
            if name in self.formula.names_beneath(self.side)
        ]
        return html(r", \quad ".join([rf"{left or write(self.left)} = {write(self.side)}", *defined]))

    def value(self, values: Mapping[str, Any], lengths: Iterable[int], loops: Mapping[str, int]) -> np.ndarray:
        """Return what the rule gives for many inputs at once, which lie along the first axis: one array, letters behind it."""
        count = len(values["X"])
        givens: dict[str, Any] = {letter: formulas.index(1, int(values[LENGTHS[letter]])) for letter in self.ranges}
        for symbol, source in self.sources.items():
            raw = loops["head"] if source == "head" else values[source]
            if np.ndim(raw) and np.size(raw):
                raw = raw[(slice(None), *(loops[axis] for axis in self.fixed(source)))]
                form = "set" if source == "A" else ("scalar", "vector", "matrix", "matrix")[raw.ndim - 1]
                given = subset(raw) if form == "set" else Given(raw, form, (1, self.start(symbol), 1, 1) if raw.ndim > 3 else 1)
                raw = outcomes(np.full(count, 1 / count), given)
            givens[symbol] = raw
        evaluation = Evaluation(self.formula, givens)
        for letter, length in zip(self.letters, lengths, strict=True):
            evaluation.run_over(letter, np.arange(1, length + 1))
        found = evaluation.value(self.side).indexed
        own = [self.formula.letters[letter] for letter in self.letters]
        shape = [*found.shape]
        for axis, length in zip([len(self.formula.letters), *own], [count, *lengths], strict=True):
            shape[axis] = length
        found = np.moveaxis(np.broadcast_to(found, shape), [len(self.formula.letters), *own], range(1 + len(own)))
        return found.reshape(*found.shape[: 1 + len(own)], *found.shape[evaluation.axes :]).astype(float)


def _named(node: Node) -> str:
    return node.value if node.kind == "name" else node.children[0].value if node.kind == "entry" else ""


def html(latex: str) -> str:
    """Return LaTeX, as the writer of formulas gives it, as HTML with sub and sup."""
    text = plain(latex).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    found, open_tags = "", list[tuple[str, int]]()
    depth, place = 0, 0
    while place < len(text):
        sign = text[place]
        tag = {"_": "sub", "^": "sup"}.get(sign)
        if tag and text[place + 1 : place + 2] == "(":
            found, place, depth = f"{found}<{tag}>", place + 2, depth + 1
            open_tags.append((tag, depth))
            continue
        if tag:
            end = place + 1
            while end < len(text) and (text[end].isalnum() or text[end] in "'"):
                end += 1
            found, place = f"{found}<{tag}>{text[place + 1 : end]}</{tag}>", end
            continue
        depth += sign == "("
        if sign == ")":
            if open_tags and open_tags[-1][1] == depth:
                found, place, depth = f"{found}</{open_tags.pop()[0]}>", place + 1, depth - 1
                continue
            depth -= 1
        found, place = found + sign, place + 1
    return found


@cache
def written(rule_of: str) -> Written:
    """Return the rule of a part of the machine, "P", or of a twin, "softmax-over-queries/P"."""
    twin, _, part = rule_of.rpartition("/")
    return Written(
        next(one for one in TWINS if one.id == twin).rules[part] if twin else next(one for one in PARTS if one.name == part).rule
    )


AHEAD = {"none": None, "causal": 0, "past": -1}
"""How many keys beyond its own place a query may look at; None: as many as there are."""


def sized(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return many inputs at once, matrices with the cases along their first axis, with the sizes and with matrices cut into heads."""
    heads, length = int(inputs["heads"]), inputs["X"].shape[1]
    ahead = AHEAD[inputs["mask"]]
    d_k = inputs["W_Q"].shape[2] // heads
    key_heads = inputs["W_K"].shape[2] // d_k
    sizes = {"T": length, "H": heads, "H_kv": key_heads, "d_k": d_k, "ahead": length if ahead is None else ahead}
    matrices = {name: np.asarray(inputs[name], float) for name in ("X", "W_Q", "W_K", "W_V", "W_O")}
    cut = {f"heads.{name}": _columns(matrices[name], count) for name, count in (("W_Q", heads), ("W_K", key_heads), ("W_V", key_heads))}
    cases, rows, width = matrices["W_O"].shape
    return {**matrices, **sizes, **cut, "heads.W_O": matrices["W_O"].reshape(cases, heads, rows // heads, width)}


def _columns(matrix: np.ndarray, count: int) -> np.ndarray:
    cases, rows, width = matrix.shape
    return np.moveaxis(matrix.reshape(cases, rows, count, width // count), 2, 1)


def computed(inputs: Mapping[str, Any], twin: str = "", known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return all parts of the machine, or of a twin, for many inputs at once; `known`: those of the machine, which a twin begins with."""
    rules = next(one for one in TWINS if one.id == twin).rules if twin else {}
    values, differs = sized(inputs), not known
    for part in PARTS:
        differs = differs or part.name in rules
        values[part.name] = _part(part, f"{twin}/{part.name}" if part.name in rules else part.name, values) if differs else known[part.name]
    return values


def _part(part: Part, name: str, values: Mapping[str, Any]) -> np.ndarray:
    rule = written(name)
    lengths = {"head": values["H"], "query": values["T"], "key": values["T"], "feature": values["d_k"]}
    loops = [lengths[axis] for axis in rule.rule.loops]
    inner = [lengths[axis] for axis in part.axes[len(loops) :]][: len(rule.letters)]
    with np.errstate(all="ignore"):
        each = [rule.value(values, inner, dict(zip(rule.rule.loops, place, strict=True))) for place in np.ndindex(*loops)]
    return np.moveaxis(np.reshape(each, (*loops, *each[0].shape)), len(loops), 0)


def javascript() -> str:
    """Return machine.js."""
    parts = [_source(asdict(part) | {"label": part.label, "html": written(part.name).html()}, part.name, ("rule",)) for part in PARTS]
    twins = [_twin(twin) for twin in TWINS]
    data = {
        "TOKENS": json.dumps(TOKENS),
        "FEATURES": json.dumps(sentence.FEATURES),
        "INPUTS": json.dumps(_inputs(), ensure_ascii=False),
        "PARTS": f"[\n{''.join(f'  {part},{chr(10)}' for part in parts)}]",
        "TWINS": f"[\n{''.join(f'  {twin},{chr(10)}' for twin in twins)}]",
    }
    consts = "".join(f"const {name} = {value};\n" for name, value in data.items())
    said = "// Built by attn_course/authoring/broken.py from the formulas of broken_formulas.py: change these, not this file.\n"
    inside = "\n".join([ALGEBRA.read_text(encoding="utf-8"), consts, ENGINE.read_text(encoding="utf-8")])
    return f"{said}const MACHINE = (() => {{\n{inside}}})();\n"


def _source(fields: Mapping[str, Any], rule: str, left_out: Iterable[str]) -> str:
    """Return an object with a rule as JavaScript."""
    known = {name: value for name, value in fields.items() if name not in left_out}
    return f"{json.dumps(known, ensure_ascii=False)[:-1]}, rule: {_rule(rule)} }}"


def _rule(name: str) -> str:
    rule = written(name)
    return f"{{ loops: {json.dumps(rule.rule.loops)}, letters: {len(rule.letters)}, value: {rule.javascript()} }}"


def _twin(twin: Twin) -> str:
    first = next(iter(twin.rules))
    about = {"id": twin.id, "part": first, "title": twin.title, "names": twin.label, "html": written(f"{twin.id}/{first}").html()}
    rules = ", ".join(f"{part}: {_rule(f'{twin.id}/{part}')}" for part in twin.rules)
    return f"{json.dumps(about, ensure_ascii=False)[:-1]}, rules: {{ {rules} }} }}"


TOKENS = ("the", "cat", "sat", "it")


def _inputs() -> list[dict[str, Any]]:
    """Return what can be edited, with four tokens of the sentence and its two heads."""
    matrices = {
        "X": ("the tokens", "neutral", sentence.X[[sentence.TOKENS.index(token) for token in TOKENS]]),
        "W_Q": ("what a token asks", "query", np.hstack(list(sentence.W_QUERY))),
        "W_K": ("what a token answers to", "key", np.hstack(list(sentence.W_KEY))),
        "W_V": ("what a token hands on", "value", np.hstack(list(sentence.W_VALUE))),
        "W_O": ("what the heads write", "output", sentence.W_OUTPUT),
    }
    found: list[dict[str, Any]] = [
        {"name": name, "html": html(name), "title": title, "role": role, "value": value.astype(int).tolist()}
        for name, (title, role, value) in matrices.items()
    ]
    found.append({"name": "mask", "title": "the mask", "role": "neutral", "choices": list(AHEAD), "value": "causal"})
    found.append({"name": "heads", "title": "heads", "role": "neutral", "choices": [1, 2], "value": 2})
    return found


def build() -> None:
    """Write machine.js."""
    write_atomically(MACHINE, javascript())
