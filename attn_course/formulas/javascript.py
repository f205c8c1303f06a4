r"""The tree of a formula as JavaScript: source that computes with whatever numbers it gets, beside javascript.js and javascript_more.js.

    side = Formula.of(r"z_i = \sum_j p_{ij}\, v_j", ["z", "p", "v"]).claims[0].children[2]
    JavaScript(formula, {"p": Symbol("$.P"), "v": Symbol("$.V")}).written(side)
    # o.sum(n.run(1, n.size($.P, 1)).map((j) => o.times(o.entry(o.given($.P), i - 1, j - 1), o.entry(o.given($.V), j - 1))))

The source calls the operations of an algebra `o` (numbers, or numbers that remember how they are written), and of `n`, plain numbers, for
indices and conditions. Letters are variables of the same name; a definition is written out wherever its name stands. What is random is a
list of its outcomes, and its letter (`Random`) is a variable too, over which an expectation runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attn_course.formulas.compiled import OWN, Definition, Formula, flattened
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node, bound_in, is_between

ALGEBRA, MORE = (Path(__file__).with_name(name) for name in ("javascript.js", "javascript_more.js"))
OPERATIONS = {"sum": "add", "product": "times", "neg": "neg", "odot": "odot", "times": "times", "over": "over"}
OPERATIONS |= {"transpose": "transpose", "floor": "floor", "ceil": "ceil", "factorial": "factorial", "dot": "dot"}
CALLS = {rf"\{name}": name for name in ("sqrt", "exp", "ln", "cos", "sin", "tan", "tanh")}
CALLS |= {r"\sigma": "softmax", "softmax": "softmax", "lse": "lse", "diag": "diag", "tr": "trace", "logit": "logit"}
CALLS |= {"strictly lower": "strictlyLower", "KL": "divergence"}
EXTREMES = {r"\max": "max", r"\min": "min"}
RUNNING = {r"\sum": "sum", r"\prod": "prod", **EXTREMES}
RELATIONS = {"=": "equal", r"\ne": "unequal", "<": "less", ">": "more", r"\le": "most", r"\ge": "least"}
CONSTANTS = {"e": "Math.E", r"\infty": "Infinity", r"\pi": "Math.PI"}
TAKEN = ("o", "n")  # what a letter is called otherwise in the source


@dataclass(frozen=True)
class Symbol:
    """What stands for a symbol in the source, and from which numbers its first axes are counted, if not from 1.

    `name`: what words remember of where a number comes from. `is_set`: a list of 1 and 0. `states`: there may be one more than steps.
    `random`: the variable of its outcomes, which it is a list of, and `weights` the source of their probabilities.
    """

    source: str
    starts: tuple[int, ...] = ()
    name: str = ""
    is_set: bool = False
    states: bool = False
    random: str = ""
    weights: str = ""

    def first(self, axis: int) -> int:
        """Return from which number an axis is counted."""
        return self.starts[axis] if axis < len(self.starts) else 1


class JavaScript:
    """Writes expressions of a formula; `symbols` are its givens, `lengths` says how far a letter runs that subscripts nothing.

    `runs` says the same by the source of the list of its values.
    """

    def __init__(
        self,
        formula: Formula,
        symbols: Mapping[str, Symbol],
        lengths: Mapping[str, str] | None = None,
        runs: Mapping[str, str] | None = None,
    ) -> None:
        self.formula, self.symbols = formula, symbols
        self.runs = {**{letter: f"n.run(1, {length})" for letter, length in (lengths or {}).items()}, **(runs or {})}
        self.parameters: dict[str, str] = {}  # of the definition that is written, as variables
        self.outcomes = frozenset[str]()  # the variables over which the expectations run that are written

    def written(self, node: Node, o: str = "o") -> str:
        """Return the source of an expression in an algebra; raises Malformed, with the place, for what cannot be written."""
        match node.kind:
            case "number":
                return _number(node.value, o)
            case "constant" if node.value in CONSTANTS:
                return _number(CONSTANTS[node.value], o)
            case "constant" if node.value in ("1", "I"):
                return f"{o}.{'ones' if node.value == '1' else 'identity'}()"
            case "index":
                return self.parameters[node.value] if node.value in self.parameters else _number(letter_of(node.value), o)
            case "name":
                return self._name(node, o)
            case "entry":
                return self._entry(node, o)
            case "power":
                return self._power(node, o)
            case "call":
                return self._call(node, o)
            case "big" if node.value in RUNNING:
                return f"{o}.{RUNNING[node.value]}({self._listed(node.children[0], node.children[1], node, o)})"
            case "iverson":
                return self._truth(node.children[0], o)
            case "cases":
                pairs = zip(node.children[1::2], node.children[::2], strict=True)
                tried = [f"{self.condition(condition)} ? {self.written(value, o)} : " for condition, value in pairs]
                return f"({''.join(tried)}{o}.number(NaN))"
            case "set":
                letter, condition = node.children
                return f"{self._run(letter.value, condition)}.map(({letter_of(letter.value)}) => {self._truth(condition, o)})"
            case "bars" if self._is_set(node.children[0]):
                return f"{o}.sum({self.written(node.children[0], o)})"
            case "bars":
                return f"{o}.bars({self.written(node.children[0], o)})"
            case "norm":
                return f'{o}.norm({self.written(node.children[0], o)}, "{node.value}")'
            case "tuple":
                return f"[{self._all(node.children, o)}]"
            case "blocks":
                return f"{o}.blocks([{', '.join(f'[{self._cells(row, o)}]' for row in node.children)}])"
            case "derivative" if len(node.children) == 2 and node.children[1].kind in ("name", "entry"):
                return self._slope(*node.children, o)
            case "operator" if node.value == r"\otimes":
                return f"{o}.outer({self._all(node.children, o)})"
            case kind if kind in OPERATIONS:
                return f"{o}.{OPERATIONS[kind]}({self._all(node.children, o)})"
        raise Malformed(f"{node.kind} {node.value} cannot be written as JavaScript", node.place)

    def _all(self, nodes: Sequence[Node], o: str) -> str:
        return ", ".join(self.written(node, o) for node in nodes)

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

    def for_all(self, condition: Node, letters: Sequence[str]) -> str:
        """Return the source of whether a condition holds for all values of some letters."""
        source = f"({self.condition(condition)})"
        for letter in letters:
            source = f"{self._run(letter, condition)}.every(({letter_of(letter)}) => {source})"
        return source

    def _truth(self, node: Node, o: str) -> str:
        """Return the source of 1 where a condition holds, else of 0; a single relation is written out."""
        if node.kind == "chain" and len(node.children) == 3 and node.children[1].value in RELATIONS:
            left, relation, right = node.children
            return f'{o}.truth("{RELATIONS[relation.value]}", {self.written(left, o)}, {self.written(right, o)})'
        return f"{o}.number({self.condition(node)} ? 1 : 0)"

    def _link(self, left: Node, relation: Node, right: Node) -> str:
        one, other = self.written(left, "n"), self.written(right, "n")
        if relation.value in (r"\in", r"\notin"):
            base, indices = flattened(right) if right.kind == "entry" else (right, ())
            first = self.symbols[base.value].first(len(indices)) if base.value in self.symbols else 1
            return "!" * (relation.value == r"\notin") + f"n.has({other}, {one} - {first})"
        if relation.value not in RELATIONS:
            raise Malformed(f"{relation.value} cannot be written as JavaScript", relation.place)
        return f"n.{RELATIONS[relation.value]}({one}, {other})"

    def _name(self, node: Node, o: str) -> str:
        name = node.value
        if name in self.parameters:
            return self.parameters[name]
        if name in self.symbols:
            symbol = self.symbols[name]
            if symbol.random and symbol.random not in self.outcomes:
                raise Malformed(f"{name} is random: it stands in an expectation", node.place)
            source = f"{symbol.source}[{symbol.random}]" if symbol.random else symbol.source
            return source if o == "n" else f"{o}.given({source}" + f', "{symbol.name}"' * bool(symbol.name) + ")"
        definition = self._definition(node)
        if definition.parameters:
            raise Malformed(f"{name} is a function: its argument is missing", node.place)
        source = self._inside(definition, {}, o)
        for letter in reversed(definition.own):
            source = f"{self._run(letter, definition.body)}.map(({letter_of(letter)}) => {source})"
        return source

    def _definition(self, node: Node) -> Definition:
        if node.value not in self.formula.definitions:
            raise Malformed(f"{node.kind} {node.value} cannot be written as JavaScript", node.place)
        return self.formula.definitions[node.value]

    def _inside(self, definition: Definition, parameters: dict[str, str], o: str) -> str:
        """Return the source of the body of a definition."""
        outside, self.parameters = self.parameters, parameters
        try:
            return self.written(definition.body, o)
        finally:
            self.parameters = outside

    def _entry(self, node: Node, o: str) -> str:
        base, indices = flattened(node)
        if base == Node("constant", (), "1"):
            return self.written(indices[0], o) if self._is_set(indices[0]) else f"{o}.unit({self._plain(indices[0])})"
        if base == Node("index", (), r"\delta") and len(indices) == 2:
            return f'{o}.truth("equal", {self._all(indices, o)})'
        definition = self.formula.definitions.get(base.value) if base.kind == "name" and base.value not in self.symbols else None
        if definition and definition.own and len(indices) >= len(definition.own) and base.value not in self.parameters:
            own = ", ".join(map(letter_of, definition.own))
            where = ", ".join(map(self._plain, indices[: len(definition.own)]))
            source, indices, axis = f"(({own}) => {self._inside(definition, {}, o)})({where})", indices[len(definition.own) :], 9
        else:
            source, axis = self.written(base, o), 0
        symbol = self.symbols.get(base.value, Symbol("")) if base.kind == "name" and base.value not in self.parameters else Symbol("")
        if indices and indices[0].kind == "slice":
            first, last = (self.written(end, "n") for end in indices[0].children)
            return f"{o}.slice({source}, {first} - {symbol.first(0)}, {last}{_less(symbol.first(0) - 1)})"
        places = [f"{self._plain(index)} - {symbol.first(axis + place)}" for place, index in enumerate(indices)]
        return f"{o}.entry({', '.join([source, *places])})" if places else source

    def _plain(self, index: Node) -> str:
        return letter_of(index.value) if index.kind == "index" and index.value not in self.parameters else self.written(index, "n")

    def _power(self, node: Node, o: str) -> str:
        base, exponent = node.children
        if base == Node("constant", (), "e"):
            return f"{o}.exp({self.written(exponent, o)})"
        return f"{o}.power({self._all((base, exponent), o)})"

    def _call(self, node: Node, o: str) -> str:
        under, *arguments = node.children
        if node.value in self.formula.definitions:
            return self._called(node, arguments, o)
        if node.value in self.formula.given:
            raise Malformed(f"the function {node.value} cannot be written as JavaScript", node.place)
        if node.value in ("E", "Var", "Cov"):
            return self._moment(node.value, under, arguments, o)
        if under.kind == "index" and node.value == r"\sigma":
            return f"{o}.softmax({self._run(under.value, arguments[0])}.map(({letter_of(under.value)}) => {self.written(arguments[0], o)}))"
        written = self._all(arguments, o)
        if node.value == "softmax" and under == Node("word", (), "columns"):
            return f"{o}.columnSoftmax({written})"
        if node.value == r"\log" and under.kind in ("number", "none"):
            return f"{o}.over({o}.ln({written}), {o}.ln({o}.number({under.value})))" if under.value else f"{o}.ln({written})"
        if under.kind != "none" and under != Node("word", (), "rows"):
            raise Malformed(f"what stands beneath {node.value} cannot be written as JavaScript", under.place)
        if node.value in EXTREMES:
            return f"{o}.{EXTREMES[node.value]}([{written}])"
        if node.value not in CALLS:
            raise Malformed(f"{node.kind} {node.value} cannot be written as JavaScript", node.place)
        return f"{o}.{CALLS[node.value]}({written})"

    def _called(self, node: Node, arguments: Sequence[Node], o: str) -> str:
        """Return the source of the call of a function that the formula defines."""
        definition = self._definition(node)
        if not definition.parameters or len(arguments) != len(definition.parameters):
            raise Malformed(f"{node.value} has {len(definition.parameters)} arguments", node.place)
        names = {name: f"{letter_of(name)}_" for name in definition.parameters}
        if o == "n" or not self.parameters.keys() & names.keys():
            names = {name: f"{variable}{len(self.parameters)}" for name, variable in names.items()}
        return f"(({', '.join(names.values())}) => {self._inside(definition, {**self.parameters, **names}, o)})({self._all(arguments, o)})"

    def _moment(self, name: str, under: Node, arguments: Sequence[Node], o: str) -> str:
        """Return the source of an expectation, a variance or a covariance over finitely many outcomes."""
        beneath = self.symbols.get(under.value) if under.kind == "name" else None
        if under.kind != "none" and not (beneath and beneath.random):
            raise Malformed(f"the weights beneath {name} cannot be written as JavaScript", under.place)
        used = frozenset[str]().union(*(self.formula.names_beneath(argument) for argument in arguments))
        some = [self.symbols[one] for one in sorted(used & self.symbols.keys()) if self.symbols[one].random]
        some = [one for one in some if beneath is None or one.random == beneath.random]
        weights = {one.random: one.weights for one in some}
        outside, self.outcomes = self.outcomes, self.outcomes | weights.keys()
        made = [f"({', '.join(weights)}) => {self.written(argument, o)}" for argument in arguments]
        self.outcomes = outside
        return f"{o}.{'mean' if name == 'E' else 'covariance'}([{', '.join(weights.values())}], {', '.join(made)})"

    def _slope(self, body: Node, by: Node, o: str) -> str:
        """Return the source of a derivative, which asks `$` for all numbers as they are when one has moved."""
        base, indices = flattened(by) if by.kind == "entry" else (by, ())
        symbol = self.symbols.get(base.value, Symbol("")) if base.kind == "name" else Symbol("")
        if not symbol.source.startswith("$.") or symbol.random or any(one.kind == "slice" for one in indices):
            raise Malformed("what is differentiated by cannot be written as JavaScript", by.place)
        places = ", ".join(f"{self._plain(index)} - {symbol.first(axis)}" for axis, index in enumerate(indices))
        return f'{o}.slope($, "{symbol.source[2:]}", [{places}], ($) => {self.written(body, "n")})'

    def _cells(self, row: Node, o: str) -> str:
        return ", ".join(self._cell(cell, o) for cell in row.children)

    def _cell(self, cell: Node, o: str) -> str:
        r"""Return the source of a cell; of first \cdots last all that lies between, along the one index in which they differ."""
        if cell.kind != "run":
            return self.written(cell, o)
        first, last = cell.children
        differing = [place for place, (a, b) in enumerate(zip(first.children, last.children, strict=False)) if a != b]
        if not first.kind == last.kind == "entry" or len(first.children) != len(last.children) or len(differing) != 1:
            raise Malformed(r"\cdots cannot be written as JavaScript", cell.place)
        (where,) = differing
        ends = ", ".join(self.written(end.children[where], "n") for end in (first, last))
        letter = Node("index", (), "between_")
        entry = replace(first, children=(*first.children[:where], letter, *first.children[where + 1 :]))
        return f"...n.run({ends}).map((between_) => {self.written(entry, o)})"

    def _listed(self, domain: Node, body: Node, scope: Node, o: str) -> str:
        """Return the source of the list of all values of a body, of which a sum, a product or an extreme is taken."""
        loops: list[tuple[str, str]] = []
        for item in domain.children:
            letter = bound_in(item)
            if not letter:
                raise Malformed("what runs here cannot be written as JavaScript", item.place)
            if letter not in [bound for bound, _ in loops]:
                between = item.kind == "range" or (is_between(item) and not self.formula.uses(letter, body))
                ends = item.children[1:] if item.kind == "range" else item.children[::4]
                run = f"n.run({', '.join(self.written(end, 'n') for end in ends)})" if between else self._run(letter, scope)
                loops.append((letter, run))
            if item.kind == "chain":
                inner, run = loops[-1]
                loops[-1] = (inner, f"{run}.filter(({letter_of(inner)}) => {self.condition(item)})")
        source = self.written(body, o)
        for depth, (letter, run) in enumerate(reversed(loops)):
            source = f"{run}.{'flatMap' if depth else 'map'}(({letter_of(letter)}) => {source})"
        return source

    def _run(self, letter: str, scope: Node) -> str:
        """Return the source of the list of values of a letter: over all that it subscripts."""
        if letter.rstrip(OWN) in self.runs:
            return self.runs[letter.rstrip(OWN)]
        found: list[tuple[int, str]] = []
        for base, position in self.formula.uses(letter, scope):
            axis = max(position, 0)
            if base.kind == "name" and base.value in self.parameters:
                found.append((0, f"n.run(1, n.size({self.parameters[base.value]}, {axis}))"))
            elif base.kind == "name" and base.value in self.symbols:
                symbol = self.symbols[base.value]
                size = f"n.size({symbol.source}{'[0]' * bool(symbol.random)}, {axis})"
                first = symbol.first(axis)
                found.append((1 if symbol.states else 0, f"n.run({first}, {size}{_less(1 - first)})"))
            else:
                rank = 2 if base.kind in ("name", "entry") else 3
                found.append((rank, f"n.run(1, n.size({self.written(base, 'n')}, {axis}))"))
        if not found:
            raise Malformed(f"the range of {letter.rstrip(OWN)} is not known", scope.place)
        return min(found, key=lambda one: one[0])[1]

    def _is_set(self, node: Node) -> bool:
        base = node.children[0] if node.kind == "entry" else node
        body = self.formula.definitions[base.value].body if base.value in self.formula.definitions else base
        return body.kind == "set" or (body.kind == "name" and body.value in self.symbols and self.symbols[body.value].is_set)


def _number(source: str, o: str) -> str:
    """Return a number in an algebra; a plain number stands for itself."""
    return source if o == "n" else f"{o}.number({source})"


def _less(number: int) -> str:
    return f" - {number}" if number > 0 else f" + {-number}" if number < 0 else ""


def letter_of(letter: str) -> str:
    """Return the variable of a letter."""
    plain = "".join(sign if sign.isalnum() else "" if sign == "\\" else "_" for sign in letter)
    return f"{plain}_" if plain in TAKEN else plain
