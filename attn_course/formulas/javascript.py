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
            case "name" if node.value in self.symbols:
                return f"{o}.given({self.symbols[node.value].source})"
            case "name" if node.value in self.formula.definitions:
                definition = self.formula.definitions[node.value]
                if definition.own or definition.parameters:
                    raise Malformed(f"{node.value} has indices of its own: it cannot be written as JavaScript", node.place)
                return self.written(definition.body, o)
            case "entry":
                return self._entry(node, o)
            case "power" if node.children[0].value == "e" and node.children[0].kind == "constant":
                return f"{o}.exp({self.written(node.children[1], o)})"
            case "call" if node.value in CALLS:
                return self._call(node, o)
            case "big" if node.value in RUNNING:
                letter, run = self._run(node)
                return f"{o}.{RUNNING[node.value]}({run}.map(({letter}) => {self.written(node.children[1], o)}))"
            case "iverson":
                return self._truth(node.children[0], o)
            case "cases":
                pairs = zip(node.children[1::2], node.children[::2], strict=True)
                tried = [f"{self.condition(condition)} ? {self.written(value, o)} : " for condition, value in pairs]
                return f"({''.join(tried)}{o}.number(NaN))"
            case "set":
                run = f"n.run(1, {self._length(node.children[0], node)})"
                return f"{run}.map(({_letter(node.children[0].value)}) => {self._truth(node.children[1], o)})"
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

    def _truth(self, node: Node, o: str) -> str:
        """Return the source of 1 where a condition holds, else of 0; a single relation is written out."""
        if node.kind == "chain" and len(node.children) == 3 and node.children[1].value in RELATIONS:
            left, relation, right = node.children
            return f'{o}.truth("{RELATIONS[relation.value]}", {self.written(left, o)}, {self.written(right, o)})'
        return f"{o}.number({self.condition(node)} ? 1 : 0)"

    def _link(self, left: Node, relation: Node, right: Node) -> str:
        one, other = self.written(left, "n"), self.written(right, "n")
        if relation.value in (r"\in", r"\notin"):
            return "!" * (relation.value == r"\notin") + f"n.has({other}, {one} - 1)"
        if relation.value not in RELATIONS:
            raise Malformed(f"{relation.value} cannot be written as JavaScript", relation.place)
        return f"n.{RELATIONS[relation.value]}({one}, {other})"

    def _entry(self, node: Node, o: str) -> str:
        base, indices = flattened(node)
        starts = [self.symbols[base.value].start if base.value in self.symbols else 1, *[1] * (len(indices) - 1)]
        places = [f"{self._plain(index)} - {start}" for index, start in zip(indices, starts, strict=True)]
        return f"{o}.entry({', '.join([self.written(base, o), *places])})"

    def _plain(self, index: Node) -> str:
        return _letter(index.value) if index.kind == "index" else self.written(index, "n")

    def _call(self, node: Node, o: str) -> str:
        under, *arguments = node.children
        if under.kind == "index" and node.value == r"\sigma":
            run = f"n.run(1, {self._length(under, arguments[0])})"
            return f"{o}.softmax({run}.map(({_letter(under.value)}) => {self.written(arguments[0], o)}))"
        if under.kind != "none":
            raise Malformed(f"what stands beneath {node.value} cannot be written as JavaScript", under.place)
        written = ", ".join(self.written(argument, o) for argument in arguments)
        return f"{o}.max([{written}])" if node.value == r"\max" else f"{o}.{CALLS[node.value]}({written})"

    def _run(self, node: Node) -> tuple[str, str]:
        """Return the letter of a sum or a maximum, and the source of the values that it runs over."""
        if len(node.children[0].children) != 1:
            raise Malformed("several indices at once cannot be written as JavaScript", node.children[0].place)
        (item,) = node.children[0].children
        letter = bound_in(item)
        if item.kind == "range":
            first, last = (self.written(end, "n") for end in item.children[1:])
            return _letter(letter), f"n.run({first}, {last})"
        run = f"n.run(1, {self._length(Node('index', (), letter), node)})"
        kept = f".filter(({_letter(letter)}) => {self.condition(item)})" if item.kind == "chain" else ""
        return _letter(letter), run + kept

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


def _letter(letter: str) -> str:
    return letter.replace(OWN, "_").replace("\\", "")
