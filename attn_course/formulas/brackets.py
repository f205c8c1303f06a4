"""What stands in brackets: groups, vectors, conditions, blocks, norms, sets, matrices and cases."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

from attn_course.formulas.cursor import CLOSING, Cursor
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node

CONDITIONS = ("chain", "all", "any")


class Brackets(Cursor, ABC):
    """Reads brackets; a subclass reads the expressions in them."""

    @abstractmethod
    def expression(self) -> Node:
        """Read an expression."""

    @abstractmethod
    def chain(self) -> Node:
        """Read an expression, or a relation between several."""

    def conditions_together(self, commas: bool = False) -> Node:
        r"""chain { \lor | \land chain }, of one kind; a comma may stand for \land."""
        first = self.chain()
        for kind, signs in (("any", (r"\lor", r"\text{or}")), ("all", (r"\land", r"\text{and}", *[","] * commas))):
            if self.text in signs:
                parts = [first]
                while self.taken(*signs):
                    parts.append(self.chain())
                return Node(kind, tuple(parts))
        return first

    def entries(self, separators: tuple[str, ...] = (",",)) -> tuple[Node, ...]:
        r"""Read expressions with separators between; first, \dots, last stands for a vector."""
        found = [self.expression()]
        while self.taken(*separators):
            dots = self.taken(r"\cdots") and self.take(",")
            found.append(self.expression())
            if dots:
                found.append(self.dotted(found, r"\dots"))
        return tuple(found)

    def dotted(self, found: list[Node], operator: str) -> Node:
        r"""Take the ends of a run such as a_1, \dots, a_n from a list, and what belongs to it before them; return the sum or the vector."""
        last, first = found.pop(), found.pop()
        ends = {*_differences(first, last)}
        while len(ends) == 1 and found and len(steps := {*_differences(found[-1], first)}) == 1:
            ((low, high),), ((before, after),) = ends, steps
            if after != low:
                break
            first = found.pop()
            ends = {(before, high)} if int(low.value) - int(before.value) == 1 else set()
        if len(ends) != 1:
            raise Malformed(r"the dots want a run such as a_1 + \dots + a_n, in which one number goes up by 1", last.place)
        ((low, high),) = ends
        letter, place = Node("index", (), r"\iota", low.place), (first.place[0], last.place[1])
        domain = Node("domain", (Node("range", (letter, low, high), "", place),), "", place)
        return Node("big", (domain, _along(first, last, letter)), operator, place)

    def parenthesis(self) -> Node:
        """( expression ), or ( entries, of, a vector )."""
        with self.inside("("):
            inner = self.entries()
        return inner[0] if len(inner) == 1 else Node("tuple", inner)

    def bracket(self) -> Node:
        """Read [condition], 1 where it holds and else 0, or blocks: [A, B; C, D], a wide space standing for a comma."""
        with self.inside("[", stop="]"):
            rows = [[self.cell()]]
            while rows[-1][-1].kind not in ("all", "any") and (self.text in (",", ";") or (self.token.wide and self.text != "]")):
                if self.taken(";"):
                    rows.append([])
                else:
                    self.taken(",")
                rows[-1].append(self.cell())
        first, *others = itertools.chain(*rows)
        if not others and first.kind != "run":
            return Node("iverson", (first,)) if first.kind in CONDITIONS else first
        if len(rows) == 1 and {cell.kind for cell in rows[0]} == {"chain"}:
            return Node("iverson", (Node("all", tuple(rows[0])),))
        for cell in (first, *others):
            if cell.kind in CONDITIONS:
                raise Malformed("a condition stands among blocks", cell.place)
        return _blocks(rows, "[")

    def cell(self) -> Node:
        r"""one block, or first \cdots last."""
        start = self.token.place[0]
        first = self.conditions_together()
        comma = self.taken(",")
        if self.taken(r"\cdots"):
            self.taken(",")
            last = self.chain()
            return Node("run", (first, last), place=self.since(start))
        self.at -= comma
        return first

    def bars(self) -> Node:
        """| expression |, or a norm and which one."""
        opening = self.text
        closing = CLOSING[opening]
        with self.inside(opening, stop=closing if closing == opening else ""):
            inner = self.expression()
        twice = opening == "|" and inner.kind == "bars" and self.text == "_"  # ||x||_2
        if twice:
            inner = inner.children[0]
        elif opening in ("|", r"\lvert"):
            return Node("bars", (inner,))
        if not self.taken("_"):
            return Node("norm", (inner,))
        which = self.take()
        if which.text not in ("2", "F", "1", "op", "*", r"\infty"):
            raise self.wrong(r"expected one of the norms 1, 2, \infty, F, *", which)
        return Node("norm", (inner,), {"op": "2"}.get(which.text, which.text))

    def braces(self) -> Node:
        """{ index : condition }, or { first, ..., last }."""
        with self.inside(r"\{"):
            variable = self.expression()
            if r"\cdots" in self.texts(4) and self.taken(","):
                while not self.taken(r"\cdots"):
                    self.expression()
                    self.take(",")
                self.take(",")
                letter, at_most = Node("index", (), r"\iota"), Node("relation", (), r"\le")
                return Node("set", (letter, Node("chain", (variable, at_most, letter, at_most, self.expression()))))
            if not self.taken(":", "|"):
                raise self.wrong("a set wants a colon and a condition: as parentheses write ( and ), bounds as in \\sum_{j=1}^{n}")
            if variable.kind != "index":
                raise Malformed("expected one index before the colon of a set", variable.place)
            condition = self.conditions_together(commas=True)
        return Node("set", (variable, condition))

    def group(self) -> Node:
        r"""{ expression } or { above \over below }."""
        start = self.token.place[0]
        with self.inside("{"):
            inner = self.expression()
            if not self.taken(r"\over"):
                return inner
            below = self.expression()
        return Node("over", (inner, below), r"\frac", self.since(start))

    def rounded(self) -> Node:
        """the floor or the ceiling of an expression."""
        opening = self.text
        with self.inside(opening):
            inner = self.expression()
        return Node(opening.removeprefix(r"\l"), (inner,))

    def angles(self) -> Node:
        """< vector, vector >."""
        start = self.token.place[0]
        with self.inside(r"\langle"):
            both = self.listed(self.expression)
        if len(both) != 2:
            raise Malformed("expected two vectors between the angles", (start, self.token.place[0]))
        if self.text == "_" and self.tokens[self.at + 1].text == "F":
            self.at += 2
        return Node("dot", both, r"\langle")

    def environment(self) -> Node:
        """a pmatrix or cases."""
        opening, start = self.text, self.token.place[0]
        with self.inside(opening, opening.replace("begin", "end")):
            rows = [[self.chain()]]
            self.taken(",")
            while self.text in ("&", r"\\"):
                if self.taken("&"):
                    rows[-1].append(self.condition())
                    self.taken(",")
                elif self.take() and not self.text.startswith(r"\end"):
                    rows.append([self.chain()])
                    self.taken(",")
        if opening == r"\begin{cases}":
            if {len(row) for row in rows} != {2}:
                raise Malformed("each case wants a value & its condition", (start, start + 6))
            return Node("cases", tuple(itertools.chain(*rows)))
        if len({len(row) for row in rows}) > 1:
            raise Malformed("the rows have different lengths", (start, start + 6))
        return _blocks(rows, "pmatrix")

    def condition(self) -> Node:
        r"""a relation, with \text{if} before it or not; or \text{otherwise}."""
        if self.text in (r"\text{otherwise}", r"\text{else}"):
            token = self.take()
            return Node("word", (), "otherwise", token.place)
        self.taken(r"\text{if}", r"\text{for}")
        return self.conditions_together()


def _differences(one: Node, other: Node) -> Iterator[tuple[Node, Node]]:
    """Yield what stands in one tree and in another where they differ: whole numbers in the first one, or the trees are no run."""
    if (one.kind, one.value, len(one.children)) == (other.kind, other.value, len(other.children)):
        for pair in zip(one.children, other.children, strict=True):
            yield from _differences(*pair)
    else:
        yield one, other
        if one.kind != "number" or not one.value.isdigit():
            yield other, one  # two differences, which are no run


def _along(first: Node, last: Node, letter: Node) -> Node:
    """Return a tree with a letter where it differs from another."""
    if first == last:
        return first
    children = tuple(_along(*pair, letter) for pair in zip(first.children, last.children, strict=False))
    return replace(first, children=children) if first.kind == last.kind and first.value == last.value and children else letter


def _blocks(rows: list[list[Node]], value: str) -> Node:
    return Node("blocks", tuple(Node("cells", tuple(row), place=(row[0].place[0], row[-1].place[1])) for row in rows), value)
