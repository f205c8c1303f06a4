"""The formulas of `formulas`, read and evaluated by NumPy: what the machine's script is held to."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from attn_course import formulas
from attn_course.formulas import Formula, Node, write
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Given, outcomes, subset
from attn_course.formulas.javascript import JavaScript, Symbol
from attn_course.formulas.plain import plain
from attn_course.formulas.tree import relations
from attn_course.game.formulas import DONE, PARTS, TWINS, Part, Rule, Twin

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
        return list(itertools.takewhile(lambda axis: axis in self.rule.loops, AXES.get(source, ())))

    def start(self, symbol: str) -> int:
        """Return from which number the first axis is counted: heads from 0 where one at a time is computed."""
        return 0 if symbol.endswith("^{(h)}") and "head" in self.rule.loops else 1

    def javascript(self) -> str:
        """Return a function of the algebra, the values of all that came before, the head (and the query), and the letters."""
        symbols = {
            symbol: Symbol(
                "head" if source == "head" else f"$.{source}" + "".join(f"[{axis}]" for axis in self.fixed(source)), (self.start(symbol),)
            )
            for symbol, source in self.sources.items()
        }
        source = JavaScript(self.formula, symbols, {letter: f"$.{LENGTHS[letter]}" for letter in self.ranges}).written(self.side)
        loops = ", ".join(loop for loop in ("head", "query") if re.search(rf"\b{loop}\b", source))
        return f"({', '.join(['o', '$', f'{{ {loops} }}' if loops else '_', *self.letters])}) => {source}"

    def html(self, left: str = "") -> str:
        """Return the formula as HTML: the side that counts, and what it defines."""
        usual = {symbol: source.lower() for symbol, source in self.rule.symbols.items() if source in AXES and "'" not in symbol}
        side = self.side.map(lambda one: replace(one, value=usual.get(one.value, one.value)) if one.kind == "name" else one)
        defined = [
            rf"{name} = {write(one.body)}"
            for name, one in self.formula.definitions.items()
            if name in self.formula.names_beneath(self.side)
        ]
        return html(r", \quad ".join([rf"{write(self.left) if self.rule.symbol else left} = {write(side)}", *defined]))

    def value(self, values: Mapping[str, Any], lengths: Iterable[int], loops: Mapping[str, int]) -> np.ndarray:
        """Return what the rule gives for many inputs at once, which lie along the first axis: one array, letters behind it."""
        count, free = len(values["X"]), len(self.formula.letters)
        givens: dict[str, Any] = {letter: formulas.index(1, int(values[LENGTHS[letter]])) for letter in self.ranges}
        for symbol, source in self.sources.items():
            givens[symbol] = loops["head"] if source == "head" else self._given(symbol, source, values[source], loops)
        evaluation = Evaluation(self.formula, givens)
        for letter, length in zip(self.letters, lengths, strict=True):
            evaluation.run_over(letter, np.arange(1, length + 1))
        with np.errstate(all="ignore"):  # of wrong forms too
            found = evaluation.value(self.side).indexed
        first = [free, *(self.formula.letters[letter] for letter in self.letters)]  # behind the letters stands the axis of the inputs
        sizes = dict(zip(first, [count, *lengths], strict=True))
        found = np.broadcast_to(found, [sizes.get(axis, size) for axis, size in enumerate(found.shape)])
        found = np.moveaxis(found, first, range(len(first)))
        return found.reshape(*found.shape[: len(first)], *found.shape[evaluation.axes :]).astype(float)

    def _given(self, symbol: str, source: str, array: Any, loops: Mapping[str, int]) -> Any:
        """Return what stands for a symbol, for one head or query: a size as it is, an array for all inputs."""
        if not np.ndim(array):
            return array
        array = array[(slice(None), *(loops[axis] for axis in self.fixed(source)))]
        start = (1, self.start(symbol), 1, 1) if array.ndim > 3 else 1
        form = ("scalar", "vector", "matrix", "matrix")[array.ndim - 1]
        given = subset(array) if source == "A" else Given(array, form, start)
        return outcomes(np.full(len(array), 1 / len(array)), given)


def _named(node: Node) -> str:
    return node.value if node.kind == "name" else node.children[0].value if node.kind == "entry" else ""


def html(latex: str) -> str:
    """Return LaTeX, as the writer of formulas gives it, as HTML with sub and sup; no line ends inside brackets."""
    text = re.sub(r"\bsum(?=_)", "Σ", plain(latex)).replace("sqrt(", "√(").replace(" - ", " − ").replace("-∞", "−∞")
    text = re.sub(r"⌊\((\([^()]*\)[^()]*|[^()]*)\)⌋", r"⌊\1⌋", text).replace("√(d_k)", "√d_k")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    found, open_tags = "", list[tuple[str, int]]()
    depth, floors, place = 0, 0, 0
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
        floors += (sign in "⌊[") - (sign in "⌋]")
        found, place = found + ("\u00a0" if sign == " " and depth + floors else sign), place + 1
    return found.replace("<sup>T</sup>", "<sup>⊤</sup>")


@cache
def written(rule: Rule) -> Written:
    """Return a rule, read."""
    return Written(rule)


def twin_of(name: str) -> Twin:
    """Return a twin by its id; "" is the machine itself."""
    return next((twin for twin in TWINS if twin.id == name), Twin("", "", ""))


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


def computed(inputs: Mapping[str, Any], name: str = "", known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return all parts of the machine, or of a twin, for many inputs at once; `known`: those of the machine, which a twin begins with."""
    twin, values = twin_of(name), sized(inputs)
    for part in PARTS:
        other = part.name in twin.rules or (part.name == "Z" and bool(twin.update))
        known = None if other else known
        if known:
            values[part.name] = known[part.name]
        elif other and twin.update:
            values[part.name] = _online(values, twin.update)
        else:
            values[part.name] = _part(part, written(twin.rules.get(part.name, part.rule)), values)
    return values


def _part(part: Part, rule: Written, values: Mapping[str, Any]) -> np.ndarray:
    lengths = {"head": values["H"], "query": values["T"], "key": values["T"], "feature": values["d_k"]}
    loops = [lengths[axis] for axis in rule.rule.loops]
    inner = [lengths[axis] for axis in part.axes[len(loops) :]][: len(rule.letters)]
    places = [dict(zip(rule.rule.loops, place, strict=True)) for place in np.ndindex(*loops)]
    each = [rule.value(values, inner, place) for place in places]
    return np.moveaxis(np.reshape(each, (*loops, *each[0].shape)), len(loops), 0)


def _online(values: Mapping[str, Any], update: Mapping[str, Rule]) -> np.ndarray:
    """Return the outputs that an update gives key by key, over those that a query may look at."""
    cases, heads, length, width = values["V"].shape
    found = np.zeros((cases, heads, length, width))
    for head, query in np.ndindex(heads, length):
        state = {"m": np.full((cases, 1), -np.inf), "l": np.zeros((cases, 1)), "a": np.zeros((cases, 1, width))}
        keys = np.flatnonzero(values["A"][0, query])
        for key in keys:
            block = {"s": values["S"][:, head, [query], key : key + 1], "v": values["V"][:, head, key : key + 1]}
            state = {"X": values["X"], **block, **{f"old.{name}": state[name] for name in update}}
            for name, rule in update.items():
                state[name] = written(rule).value(state, [1], {})
        if keys.size:
            done = {"X": values["X"], "a": state["a"][:, 0], "l": state["l"][:, 0]}
            found[:, head, query] = written(DONE).value(done, [], {})
    return found
