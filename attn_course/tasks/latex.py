r"""What a learner writes as LaTeX: read within bounds, and evaluated to plain arrays on the givens of a case.

The text is data, and this file knows no right answer: of a formula task it sees a left side whose value is blank, of a derivation the
two ends that the learner sees too. It needs nothing of the course but formulas' reader and evaluator and four files like itself, so
that a confined process can load them alone.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from attn_course.formulas.calls import called_list
from attn_course.formulas.compiled import Formula, with_runners
from attn_course.formulas.errors import NOWHERE, Malformed
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.expressions import RELATIONS, SPLIT
from attn_course.formulas.givens import Given, as_given
from attn_course.formulas.read import read_expression
from attn_course.formulas.relations import compare
from attn_course.formulas.tree import FAMILY, Node, bound_by, bound_in, write
from attn_course.formulas.values import Value
from attn_course.tasks.forms import AnswerError, latex_lines
from attn_course.tasks.run import Result, quiet
from attn_course.tasks.simplified import simplified
from attn_course.tasks.time_limit import TimeIsUp, time_limit

MOST_TERMS = 20_000  # of one sum, for all values of the free indices together
LIMIT_S = 0.5  # of work, for all lines in all cases
EQUALS = Node("relation", (), "=")
CALCULUS = {"derivative": r"\partial", "at": r"\partial", "nabla": r"\nabla", "integral": r"\int"}  # what must be allowed by name
SIDES = re.compile(r"^the two sides do not fit: left is (.+), right is (.+)$")
KRONECKER = r"\delta"
DIFFERENTIAL = re.compile(r"d[A-Z]")  # dS: one symbol, though each letter is read for itself
DECORATION = r"[_^](?:\w|\\[A-Za-z]+|\{[^{}]*\})"  # what stands above or below a symbol
ALWAYS = ("tr",)  # an inner product of two matrices is written with it, or in angles


@dataclass(frozen=True)
class Question:
    """What an answer is read and evaluated by: text only, so that it can be sent.

    `entry`: its name, for messages. `symbols`, `functions`: what may stand in it. `left`: the left side of a formula, or where a
    derivation begins; `targets` are names in it that may not stand in the answer. `goal`: where a derivation ends; "" for a
    formula.
    """

    entry: str
    symbols: tuple[str, ...]
    functions: tuple[str, ...]
    left: str
    targets: tuple[str, ...] = ()
    goal: str = ""

    def line(self, number: int) -> str:
        """How a message calls a line of the answer."""
        return f"line {number} of {self.entry}" if self.goal else self.entry

    def told(self, error: Malformed, text: str) -> Malformed:
        """Return what is wrong with a line, with the line; those of a derivation have no sides."""
        problem = SIDES.sub(r"line 1 is \1, this is \2", error.problem) if self.goal else error.problem
        return Malformed(problem, error.place, error.latex or text)

    @cached_property
    def frame(self) -> Node:
        """The tree of the left side; it has no place in what the learner wrote."""
        return read_expression(self.left, [*self.symbols, *self.targets]).map(lambda node: replace(node, place=NOWHERE))

    @cached_property
    def letters(self) -> list[str]:
        """The indices of the left side."""
        return sorted(self.frame.letters() - {KRONECKER})

    def read(self, text: str) -> Node:
        """Return the tree of a line of the answer; Malformed, with the place, if it is none or holds what may not stand in it."""
        strange = next((place for place, sign in enumerate(text) if not (sign.isprintable() or sign == "\n")), None)
        if strange is not None:
            problem = 'this is no printable character: is the r in front of the quotation mark missing, r"..."?'
            raise Malformed(problem, (strange, strange + 1), "".join(sign if sign.isprintable() else "?" for sign in text))
        try:
            tree = with_runners(read_expression(text, self.symbols), frozenset(self.letters))
            for node in tree.walk():
                function = _function(node)
                if function and not {function, function.rstrip("'")} & {*self.functions, *ALWAYS}:
                    raise Malformed(f"{function} may not stand here; {self.allowed}", node.place)
            self._hold_delta(tree, text)
            self._hold_letters(tree, text)
        except Malformed as error:
            raise self._advised(error, text).of(text) from None
        return tree

    def _advised(self, error: Malformed, text: str) -> Malformed:
        """Say what to write instead of an equation, or of a word that nobody knows."""
        before = text[: error.place[0]]
        if text[slice(*error.place)] == "=" and all(before.count(opens) == before.count(closes) for opens, closes in ("()", "[]", "{}")):
            wanted = "write one expression a line, without =" if self.goal else "write only the right side, without ="
            return Malformed(wanted, error.place)
        sign = error.problem.rpartition("found ")[2]
        if error.problem.startswith("expected the end of the formula") and sign in RELATIONS | {r"\to"}:
            return Malformed(f"{'a line' if self.goal else 'the answer'} is one expression, without {sign}", error.place)
        if error.problem.endswith(("is not known", "neither given nor known")):
            return Malformed(f"{error.problem}; {self.allowed}", error.place)
        return error

    def _hold_delta(self, tree: Node, text: str) -> None:
        r"""Refuse a \delta without its two indices, where no list of that name is given."""
        nodes = list(tree.walk())
        entries = {node.children[0].place: node for node in nodes if node.kind == "entry" and _is_kronecker(node.children[0])}
        for node in filter(_is_kronecker, nodes):
            whole = entries.get(node.place, node)
            if len(whole.children) < 3:
                typed = text[slice(*whole.place)]
                raise Malformed(rf"{typed} is not given here; with two indices \delta is 1 where they are equal, else 0", whole.place)

    def _hold_letters(self, tree: Node, text: str) -> None:
        node, strange = tree, tree.letters() - {KRONECKER, *self.letters}
        if not strange:
            return
        while node.kind != "index":  # down to one that is free, not one of the same letter that a sum binds
            node = next(child for child in node.children if child.letters() & strange)
            strange &= node.letters()
        letter = node.value
        closed = [one.value for one in tree.walk() if one.kind == "big" and letter in bound_by(one) and one.place[1] <= node.place[0]]
        if closed:
            raise Malformed(
                f"{letter} is unknown here: {closed[-1]} over {letter} ends before it; put its terms in parentheses", node.place
            )
        plain = letter.rstrip("}").rpartition("{")[2]  # x of \mathbf{x}
        near = [symbol for symbol in self.symbols if re.match(rf"{re.escape(letter)}[_^]", symbol)]  # W_O for W_o
        typed, place = letter, node.place
        if differential := DIFFERENTIAL.match(text, place[0]):
            typed = differential[0]
            known = f"; {self.allowed}"
        elif plain != letter and plain in self.symbols:
            known = f": write {plain}"
        elif near:
            (decorated,) = re.findall(rf"^{re.escape(letter)}(?:{DECORATION})*", text[place[0] :])
            typed = decorated or letter
            meant = [symbol for symbol in near if _undecorated(symbol) == _undecorated(typed)]
            known = f": write {_with_index(meant[0], typed)}" if meant else f": given {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
        else:
            known = f"{': the left side has no index' * (not self.letters)}; {self.allowed}"
        raise Malformed(f"{typed} is unknown here{known}", (place[0], place[0] + len(typed)))

    @property
    def allowed(self) -> str:
        """What may stand in the answer, in words."""
        kinds = (("index", "indices", self.letters), ("function", "functions", self.functions))
        rest = "".join(f", the {one if len(names) == 1 else many} {', '.join(names)}" for one, many, names in kinds if names)
        delta = r", \delta_{ij} (1 where i = j)" if len(self.letters) > 1 and KRONECKER not in self.symbols else ""
        return f"what may stand here: {', '.join(self.symbols)}{rest}{delta}, numbers, sums with indices of their own"


def answered(question: Question, answer: Any, cases: Sequence[Mapping[str, Any]]) -> list[Result]:
    """Put an answer through every case, as `run` does with one of another kind."""
    if answer is None or answer is Ellipsis:
        return [Result(problem=f"{question.entry} has no answer yet")] * len(cases)
    try:
        return evaluate(question, latex_lines(answer, question.entry, several=bool(question.goal)), cases)
    except AnswerError as error:
        return [Result(problem=str(error))] * len(cases)


def evaluate(question: Question, lines: Sequence[str], cases: Sequence[Mapping[str, Any]], *, limit_s: float = LIMIT_S) -> list[Result]:
    """Return for each case the value of each line, for all values of its indices, and of a derivation what its lines look like.

    Nothing in the text raises here, and it ends in time; a line that has no meaning is the case's problem.
    """
    try:
        with quiet(), time_limit(limit_s, of_work=True):
            trees = []
            for number, text in enumerate(lines, 1):
                try:
                    trees.append(question.read(text))
                except Malformed as error:
                    return [Result(problem=f"{question.line(number)} cannot be read: {error}")] * len(cases)
            facts = looks(question, trees) if question.goal else None
            return [replace(_evaluate(question, trees, lines, case), facts=facts) for case in cases]
    except TimeIsUp:
        return [Result(problem=f"{question.entry} takes too long to evaluate", timed_out=True)] * len(cases)
    except (RecursionError, MemoryError):
        return [Result(problem=f"{question.entry} takes too much memory to evaluate")] * len(cases)


def _evaluate(question: Question, trees: Sequence[Node], lines: Sequence[str], case: Mapping[str, Any]) -> Result:
    arrays = []
    for number, (tree, text) in enumerate(zip(trees, lines, strict=True), 1):
        try:
            arrays.append(Line(question, tree, case, text).array)
        except Malformed as error:
            return Result(problem=f"{question.line(number)} has no meaning: {question.told(error, text)}")
    return Result(tuple(arrays))


class Line:
    """One expression beneath the left side, which says what indices are free, on the givens of a case."""

    def __init__(self, question: Question, tree: Node, givens: Mapping[str, Any], latex: str = "") -> None:
        self.formula = _compiled(question.frame, tree, (*question.symbols, *question.targets), latex)
        (self.chain,) = self.formula.tree.children
        self.frame, self.letters, self.tree = self.chain.children[0], question.letters, _beneath(self.chain)
        self.evaluation = _Bounded(self.formula, {name: given for name, given in givens.items() if name in self.formula.named})
        for letter in self.evaluation.ordered(sorted(self.chain.letters() - {KRONECKER}), self.chain):
            self.evaluation.enter(letter, self.chain)

    @cached_property
    def array(self) -> np.ndarray:
        """The value: an axis for each index of the left side, in alphabetical order, then its own."""
        looped = self.formula.looped(self.chain)
        parts = [self._data(one) for one in _one_by_one(self.evaluation, looped)]
        if not looped:
            return parts[0]
        places, sizes = [self.letters.index(letter) for letter in looped], [self.evaluation.letters[letter].data.size for letter in looped]
        whole = np.empty([*sizes, *parts[0].shape])
        whole.reshape(-1, *parts[0].shape)[:] = parts
        shape = list(parts[0].shape)
        for place, size in zip(places, sizes, strict=True):
            shape[place] = size
        ones = tuple(len(sizes) + place for place in places)
        return np.moveaxis(whole.squeeze(ones), range(len(sizes)), places).reshape(shape)

    def positions(self, index: Sequence[int]) -> str:
        """Say at which indices an entry of the array stands: "i = 2, j = 3"."""
        own, lengths = index[len(self.letters) :], self.array.shape[len(self.letters) :]
        said = [f"{letter} = {self.evaluation.letters[letter].data.ravel()[at]:g}" for letter, at in zip(self.letters, index, strict=False)]
        names = ("entry",) if len(own) == 1 else ("row", "column")
        return ", ".join([*said, *(f"{name} {at + 1}" for name, at, length in zip(names, own, lengths, strict=False) if length > 1)])

    @cached_property
    def shapes(self) -> dict[int, str]:
        """What each part of the expression is, by its id."""
        self._data(self.evaluation)
        return self.evaluation.seen

    def parts(self) -> list[tuple[str, str]]:
        """Return the parts of the expression, as they are written back, and what each is."""
        seen, found = self.shapes, []
        for node in self.tree.walk():
            if id(node) in seen and node.kind not in ("index", "number", "constant"):
                letters = ", ".join(sorted(node.letters() - {KRONECKER}))
                found.append((write(node), seen[id(node)] + f" for each {letters}" * bool(letters)))
        return found

    def _data(self, evaluation: Evaluation) -> np.ndarray:
        try:
            return self._computed(evaluation)
        except Malformed as error:
            raise called_list(error, self.tree, self.formula.latex, evaluation.givens) from None

    def _computed(self, evaluation: Evaluation) -> np.ndarray:
        a, b = evaluation.value(self.frame), evaluation.value(self.tree)
        right = compare(evaluation, EQUALS, (self.frame, a), (self.tree, b), self.chain).right
        if right.dtype.kind not in "fb":
            raise Malformed("this is no real number", self.tree.place)
        sizes = [evaluation.letters[letter].data.size for letter in self.letters]
        axes = {self.formula.letters[letter] for letter in self.letters}
        right = right[tuple(slice(None) if axis in axes else 0 for axis in range(evaluation.axes))]
        return np.broadcast_to(right, (*sizes, *right.shape[len(sizes) :])).astype(float)


def _one_by_one(evaluation: Evaluation, looped: Sequence[str]) -> Iterator[Evaluation]:
    """Yield an evaluation for each value of the letters that end a slice."""
    values = [evaluation.letters[letter].data.ravel() for letter in looped]
    for index in np.ndindex(*(len(each) for each in values)):
        one = evaluation.here()
        for letter, each, at in zip(looped, values, index, strict=True):
            one.run_over(letter, each[at : at + 1])
        yield one


class _Bounded(Evaluation):
    """An evaluation that refuses large sums, and remembers what each part was."""

    def __init__(self, formula: Formula, givens: Mapping[str, Any]) -> None:
        super().__init__(formula, givens)
        self.seen: dict[int, str] = {}

    def run_over(self, letter: str, values: np.ndarray) -> None:
        """Put a letter in force, unless that makes too many terms."""
        terms = len(values) * math.prod(value.data.size for key, value in self.letters.items() if key != letter)
        if terms > MOST_TERMS:
            raise Malformed(f"{letter} makes {terms:,} terms; at most {MOST_TERMS:,} are computed")
        super().run_over(letter, values)

    def value(self, node: Node) -> Value:
        """Return the value of a node, and remember what it is."""
        found = super().value(node)
        self.seen.setdefault(id(node), str(found))
        return found


@lru_cache(maxsize=256)  # each line is evaluated in every case, and the right one for every answer
def _compiled(frame: Node, tree: Node, names: tuple[str, ...], latex: str) -> Formula:
    """Return an expression beneath the left side, ready for any givens."""
    twice = Node("neg", (Node("neg", (tree,), place=tree.place),), place=tree.place)  # never the same as the left side
    chain = Node("chain", (frame, EQUALS, twice), place=tree.place)
    return Formula(Node("formula", (chain,)), names, latex=latex)


def _beneath(chain: Node) -> Node:
    """The expression that `_compiled` negated twice; parts are known by their identity, so it must be this very one."""
    return chain.children[2].children[0].children[0]


def _is_kronecker(node: Node) -> bool:
    return node.kind == "index" and node.value == KRONECKER


def _undecorated(symbol: str) -> str:
    """A symbol as it is compared with what was typed: W_V^{(h)} and W_V^h are alike."""
    family = FAMILY.match(symbol)
    return re.sub(r"[{}()]", "", f"{family[1]}^#" if family else re.sub(r"\^(?:[A-Za-z]|\{\(?[A-Za-z]\)?\})$", "^#", symbol))


def _with_index(symbol: str, typed: str) -> str:
    """A symbol with the index above it that was typed: for W_V^l it is W_V^{(l)}, though W_V^{(h)} is given."""
    family, above = FAMILY.match(symbol), re.search(r"\^\{?\(?([A-Za-z])\)?\}?$", typed)
    return f"{family[1]}^{{({above[1]})}}" if family and above else symbol


def on_one_line(problem: str) -> str:
    """Return a problem that shows its place with carets as one line that quotes the place."""
    said, *shown = problem.split("\n")
    if len(shown) != 2:
        return said
    first, last = shown[1].find("^"), shown[1].rfind("^")
    piece = shown[0][first : last + 1].strip()
    before = f" behind `{shown[0][:first].strip()}`" if shown[0][:first].strip() else ""
    return said + (f", at `{piece}`" if piece else ",") + before


# What lines look like


def looks(question: Question, trees: Sequence[Node]) -> dict[str, Any]:
    """Say of a derivation whether it begins and ends as it should, and of each line whether it is new: unlike all lines above it."""
    start, goal = normal(question.frame), normal(read_expression(question.goal, question.symbols))
    forms = [normal(tree) for tree in trees]
    simple = [normal(simplified(form)) for form in forms]
    told_apart = not vocabulary(start) <= vocabulary(goal)  # else what the goal may hold does not say whether it is reached
    return {
        "begins": forms[0] == start,
        "ends": forms[-1] == goal or (told_apart and vocabulary(forms[-1]) <= vocabulary(goal)),
        "changed": [form not in simple[:number] for number, form in enumerate(simple) if number],
    }


def vocabulary(tree: Node) -> set[str]:
    """Return the names and functions of a tree."""
    return {node.value for node in tree.walk() if node.kind == "name"} | {name for node in tree.walk() if (name := _function(node))}


def normal(node: Node, letters: Mapping[str, str] | None = None) -> Node:
    """Return the tree without what changes nothing: order of terms and factors, brackets, letters of sums, other spellings."""
    letters = dict(letters or {})
    if node.kind == "big":
        node = _without_whole_bounds(_one_by_one_index(node))
    if node.kind == "big" or (node.kind == "call" and node.children[0].kind == "index") or node.kind in ("set", "integral"):
        for letter in _bound(node):
            letters[letter] = f"#{len(letters)}"
    if node.kind == "index":
        return Node("index", (), letters.get(node.value, node.value))
    children = [normal(child, letters) for child in node.children]
    match node.kind:
        case "neg":
            return _with_sign(True, children[0])
        case "sum":
            terms = [term for child in children for term in (child.children if child.kind == "sum" else (child,))]
            return _collected("sum", _cancelled(terms))
        case "product" | "odot" | "dot" | "times":
            minus = sum(child.kind == "neg" for child in children) % 2 == 1
            bare = [child.children[0] if child.kind == "neg" else child for child in children]
            factors = [factor for child in bare for factor in (child.children if child.kind == "product" else (child,))]
            return _with_sign(minus, _collected("product" if node.kind != "odot" else "odot", factors))
        case "over":
            return Node("number", (), "1") if children[0] == children[1] else Node("over", tuple(children))
        case "iverson" if _is_equality(children[0]):
            return Node("entry", (Node("index", (), KRONECKER), *sorted(children[0].children[::2], key=repr)))
        case "entry" if children[0].value == KRONECKER:
            return Node("entry", (children[0], *sorted(children[1:], key=repr)))
        case "call" if node.value == r"\exp":
            return Node("power", (Node("constant", (), "e"), children[1]))
    return Node(node.kind, tuple(children), node.value)


def _cancelled(terms: Sequence[Node]) -> list[Node]:
    """Return terms without those that are added and taken away."""
    kept: list[Node] = []
    for term in terms:
        if (opposite := _with_sign(True, term)) in kept:
            kept.remove(opposite)
        else:
            kept.append(term)
    return kept


def _collected(kind: str, parts: Sequence[Node]) -> Node:
    """Return a sum or product with its parts in a fixed order, without a 0 that is added and a 1 that is a factor."""
    nothing = Node("number", (), "0" if kind == "sum" else "1")
    kept = sorted((part for part in parts if part != nothing), key=repr)
    return Node(kind, tuple(kept)) if len(kept) > 1 else kept[0] if kept else nothing


def _without_whole_bounds(node: Node) -> Node:
    r"""Return a sum from 1 to a symbol as one over all of what it indexes: \sum_{j=1}^{n} x_j is \sum_j x_j."""
    (first, *more), body = node.children[0].children, node.children[1]
    if first.kind != "range" or more or first.children[1].value != "1" or first.children[2].kind != "name":
        return node
    if not any(one.kind == "entry" and first.children[0] in one.children[1:] for one in body.walk()):
        return node
    return replace(node, children=(Node("domain", (first.children[0],)), body))


def _one_by_one_index(node: Node) -> Node:
    r"""Return a sum over several letters as sums of sums: \sum_{a, b} is \sum_a \sum_b."""
    first, *others = node.children[0].children
    if not others or node.value not in SPLIT or any(item.kind != "index" for item in (first, *others)):
        return node
    inner = replace(node, children=(Node("domain", tuple(others)), node.children[1]))
    return replace(node, children=(Node("domain", (first,)), inner))


def _is_equality(chain: Node) -> bool:
    """Whether a condition says that two indices are equal."""
    return len(chain.children) == 3 and chain.children[1] == EQUALS and {side.kind for side in chain.children[::2]} == {"index"}


def _with_sign(minus: bool, node: Node) -> Node:
    if not minus:
        return node
    return node.children[0] if node.kind == "neg" else Node("neg", (node,))


def _bound(node: Node) -> list[str]:
    items = node.children[0].children if node.kind == "big" else node.children[:1]
    return [letter for item in items if (letter := bound_in(item))]


def _function(node: Node) -> str:
    """The function or operation that a node applies, if it is one that must be allowed by name."""
    if node.kind == "call":
        return node.value
    if node.kind == "big" and node.value == r"\lim":
        return node.value
    return CALCULUS.get(node.kind, "")


# Givens that can be sent


def packed(name: str, given: Any, *, blank: bool = False) -> dict[str, Any]:
    """Return a given as plain data, with `blank` zeros in place of its numbers; TypeError if it is no array."""
    given = as_given(given)
    if not isinstance(given, Given) or given.form == "opaque" or np.asarray(given.raw).dtype.kind not in "fiub":
        raise TypeError(f"the given {name} of a formula task must be an array of numbers, or one of those in formulas.givens")
    raw = np.asarray(given.raw)
    start = list(given.start) if isinstance(given.start, tuple) else given.start
    return {"raw": np.zeros_like(raw) if blank else raw, "form": given.form, "start": start, "states": given.states, "noise": given.noise}


def unpacked(data: Mapping[str, Any]) -> Given:
    """Return a given from plain data."""
    start = tuple(data["start"]) if isinstance(data["start"], list) else data["start"]
    return Given(data["raw"], data["form"], start, data["states"], data["noise"])
