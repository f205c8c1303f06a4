r"""The tree of a formula as JavaScript: source that computes with whatever numbers it is given, beside `javascript.js`.

    side = Formula.of(r"z_i = \sum_j p_{ij}\, v_j", ["z", "p", "v"]).claims[0].children[2]
    JavaScript(formula, {"p": Symbol("$.P"), "v": Symbol("$.V")}).written(side)
    # o.sum(n.run(1, n.size($.P, 1)).map((j) => o.times(o.entry(o.given($.P), i - 1, j - 1), o.entry(o.given($.V), j - 1))))

The source calls the operations of an algebra `o` (numbers, or numbers that remember how they are written), and of `n`, plain numbers, for
indices and conditions. Letters are variables of the same name; a definition is written out wherever its name stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from attn_course.formulas.compiled import OWN, Formula, flattened
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node, bound_in

OPERATIONS = {"sum": "add", "product": "times", "neg": "neg", "dot": "dot", "over": "over", "transpose": "transpose", "floor": "floor"}
CALLS = {r"\sqrt": "sqrt", r"\exp": "exp", r"\ln": "ln", r"\max": "max", r"\sigma": "softmax", "softmax": "softmax"}
RUNNING = {r"\sum": "sum", r"\max": "max"}
RELATIONS = {"=": "equal", r"\ne": "unequal", "<": "less", ">": "more", r"\le": "most", r"\ge": "least"}
CONSTANTS = {"e": "Math.E", r"\infty": "Infinity", r"\pi": "Math.PI"}


@dataclass(frozen=True)
class Symbol:
    """What stands for a symbol in the source, and from which number its first axis is counted."""

    source: str
    start: int = 1


class JavaScript:
    """Writes expressions of a formula; `symbols` are its givens, `lengths` says how far a letter runs that subscripts nothing."""

    def __init__(self, formula: Formula, symbols: Mapping[str, Symbol], lengths: Mapping[str, str] | None = None) -> None:
        self.formula, self.symbols, self.lengths = formula, symbols, lengths or {}

    def written(self, node: Node, o: str = "o") -> str:
        """Return the source of an expression in an algebra; raises Malformed, with the place, for what cannot be written."""
        match node.kind:
            case "number":
                return f"{o}.number({node.value})"
            case "constant" if node.value in CONSTANTS:
                return f"{o}.number({CONSTANTS[node.value]})"
            case "index":
                return f"{o}.number({_letter(node.value)})"
            case "name" if node.value in self.formula.definitions:
                return self.written(self._definition(node), o)
            case "name":
                return f"{o}.given({self._symbol(node).source})"
            case "entry":
                return self._entry(node, o)
            case "power" if node.children[0].value == "e" and node.children[0].kind == "constant":
                return f"{o}.exp({self.written(node.children[1], o)})"
            case "call" if node.value in CALLS:
                return self._call(node, o)
            case "big" if node.value in RUNNING:
                return f"{o}.{RUNNING[node.value]}({self._run(node)}.map(({self._bound(node)}) => {self.written(node.children[1], o)}))"
            case "iverson":
                return f"{o}.number({self.condition(node.children[0])} ? 1 : 0)"
            case "cases":
                pairs = list(zip(node.children[::2], node.children[1::2], strict=True))
                tried = [f"{self.condition(condition)} ? {self.written(value, o)} : " for value, condition in pairs]
                return f"({''.join(tried)}{o}.number(NaN))"
            case "set":
                letter = node.children[0].value
                return f"n.run(1, {self._length(node.children[0], node)}).map(({_letter(letter)}) => {self.condition(node.children[1])} ? 1 : 0)"
            case kind if kind in OPERATIONS:
                return f"{o}.{OPERATIONS[kind]}({', '.join(self.written(child, o) for child in node.children)})"
        raise Malformed(f"{node.kind} {node.value} cannot be written as JavaScript", node.place)

    def condition(self, node: Node) -> str:
        """Return the source of a condition: a relation, or several joined by commas."""
        if node.kind == "all":
            return " && ".join(map(self.condition, node.children))
        if node.kind == "word" and node.value == "otherwise":
            return "true"
        if node.kind != "chain":
            raise Malformed("expected a relation", node.place)
        links = zip(node.children[::2], node.children[1::2], node.children[2::2], strict=False)
        return " && ".join(self._link(left, relation, right) for left, relation, right in links)

    def _link(self, left: Node, relation: Node, right: Node) -> str:
        if relation.value in (r"\in", r"\notin"):
            member = f"n.has({self.written(right, 'n')}, {self.written(left, 'n')} - 1)"
            return member if relation.value == r"\in" else f"!{member}"
        if relation.value not in RELATIONS:
            raise Malformed(f"{relation.value} cannot be written as JavaScript", relation.place)
        return f"n.{RELATIONS[relation.value]}({self.written(left, 'n')}, {self.written(right, 'n')})"

    def _entry(self, node: Node, o: str) -> str:
        base, indices = flattened(node)
        start = self._symbol(base).start if base.kind == "name" and base.value not in self.formula.definitions else 1
        starts = [start, *[1] * (len(indices) - 1)]
        places = [self._place(index, first) for index, first in zip(indices, starts, strict=True)]
        return f"{o}.entry({', '.join([self.written(base, o), *places])})"

    def _place(self, index: Node, start: int) -> str:
        return f"{_letter(index.value) if index.kind == 'index' else self.written(index, 'n')} - {start}"

    def _call(self, node: Node, o: str) -> str:
        under, *arguments = node.children
        if under.kind == "index" and node.value == r"\sigma":
            run = f"n.run(1, {self._length(under, arguments[0])})"
            return f"{o}.softmax({run}.map(({_letter(under.value)}) => {self.written(arguments[0], o)}))"
        if under.kind != "none":
            raise Malformed(f"what stands beneath {node.value} cannot be written as JavaScript", under.place)
        written = ", ".join(self.written(argument, o) for argument in arguments)
        return f"{o}.max([{written}])" if node.value == r"\max" else f"{o}.{CALLS[node.value]}({written})"

    def _run(self, node: Node) -> str:
        """Return the source of the values that a sum or a maximum runs over."""
        (item,) = node.children[0].children
        letter = self._bound(node)
        if item.kind == "range":
            first, last = (self.written(end, "n") for end in item.children[1:])
            return f"n.run({first}, {last})"
        run = f"n.run(1, {self._length(Node('index', (), bound_in(item)), node)})"
        return run if item.kind == "index" else f"{run}.filter(({letter}) => {self.condition(item)})"

    def _bound(self, node: Node) -> str:
        (item,) = node.children[0].children
        return _letter(bound_in(item))

    def _length(self, letter: Node, scope: Node) -> str:
        """Return the source of how far a letter runs: over all that it subscripts."""
        if letter.value in self.lengths:
            return self.lengths[letter.value]
        for base, position in self.formula.uses(letter.value, scope):
            if base.kind == "name" and base.value in self.symbols:
                return f"n.size({self.symbols[base.value].source}, {max(position, 0)})"
            if position < 0 or base.kind in ("name", "entry"):
                return f"n.size({self.written(base, 'n')}, {max(position, 0)})"
        raise Malformed(f"the range of {letter.value} is not known", letter.place)

    def _definition(self, node: Node) -> Node:
        definition = self.formula.definitions[node.value]
        if definition.own or definition.parameters:
            raise Malformed(f"{node.value} has indices of its own: it cannot be written as JavaScript", node.place)
        return definition.body

    def _symbol(self, node: Node) -> Symbol:
        if node.value not in self.symbols:
            raise Malformed(f"nothing stands for {node.value}", node.place)
        return self.symbols[node.value]


def _letter(letter: str) -> str:
    return letter.replace(OWN, "_").replace("\\", "")
