r"""LaTeX read into a tree: a recursive-descent parser over tokens in which the names are already cut out.

Hand-written, since the grammar depends on the names (`\phi(x)` is a call if \phi is a function, else a product) and since an error
should say what was expected where. From loose to tight: `\qquad` separates statements, `premise:` governs them up to the next colon,
arrows, commas, relations, sums, one of \cdot \odot \times / (unlike ones need parentheses), factors side by side, and what is
attached to one factor. A function binds the parenthesis behind it; without one it takes exactly one factor. \sum and its like reach to
the end of their term.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from attn_course.formulas.errors import Malformed
from attn_course.formulas.expressions import ARROWS, Expressions
from attn_course.formulas.tree import Node


def read(latex: str, names: Iterable[str] = ()) -> Node:
    r"""Read a formula: relations, joined by commas and arrows.

    Parameters
    ----------
    latex : str
        At most 2,000 characters.
    names : iterable of str
        The names of the givens as they stand in the LaTeX; those of functions end in "()", those of families show an index: `W_Q^{(h)}`.

    Raises
    ------
    Malformed
        With the place, and what was expected there.
    """
    return _whole(latex, names, _Parser.formula)


def read_expression(latex: str, names: Iterable[str] = ()) -> Node:
    """Read one expression, without any relation; see `read`."""
    return _whole(latex, names, _Parser.expression)


def _whole(latex: str, names: Iterable[str], rule: Callable[["_Parser"], Node]) -> Node:
    try:
        parser = _Parser(latex, names)
        tree = rule(parser)
        parser.expect_end()
    except Malformed as error:
        raise error.of(latex) from None
    return tree


class _Parser(Expressions):
    def __init__(self, latex: str, names: Iterable[str]) -> None:
        super().__init__(latex, names)
        self.find_definitions()

    def formula(self) -> Node:
        start, statements, premise = self.token.place[0], list[Node](), list[Node]()
        groups: list[Node] = []
        while True:
            part = self.implication()
            if self.taken(":"):
                groups += self.grouped(premise, statements)
                premise, statements = [part], []
            else:
                statements += part.children if part.kind == "all" else [part]
            self.taken(",")
            while self.token.kind == "qquad":
                self.at += 1
            if self.token.kind == "end" or self.text == "." or not self.starts_clause():
                break
        if not statements:
            self.fail("expected what holds under the premise")
        return self.node("formula", [*groups, *self.grouped(premise, statements)], start=start)

    def starts_clause(self) -> bool:
        return self.spelled(self.at - 1) == ":" or self.spelled(self.at - 1) == "," or self.tokens[self.at - 1].kind == "qquad"

    def grouped(self, premise: list[Node], statements: list[Node]) -> list[Node]:
        if not premise:
            return statements
        return [Node("given", (*premise, *statements), place=(premise[0].place[0], statements[-1].place[1]))] if statements else []

    def implication(self) -> Node:
        start = self.token.place[0]
        left = self.conjunction()
        if self.text not in ARROWS:
            return left
        arrow = self.take().text
        return self.node("implies", (left, self.conjunction()), arrow, start)

    def conjunction(self) -> Node:
        start = self.token.place[0]
        clauses = [self.clause()]
        while self.text == "," and self.tokens[self.at + 1].kind not in ("qquad", "end"):
            self.take()
            clauses.append(self.clause())
        return clauses[0] if len(clauses) == 1 else self.node("all", clauses, start=start)

    def clause(self) -> Node:
        start = self.token.place[0]
        self.skip_remark()
        chain = self.chain()
        if chain.kind != "chain":
            self.fail(r"expected a relation such as = or \le")
        self.skip_remark()
        if self.text == "(":
            self.take()
            conditions = self.listed(self.chain, ")")
            return self.node("where", [chain, *conditions], start=start)
        return chain

    def skip_remark(self) -> None:
        r"""Pass over \text{(linear)} and \text{decode:}, which speak to the reader only."""
        while self.token.kind == "word" and re.fullmatch(r"\(.*\)|.*:", self.token.text):
            self.at += 1

    def find_definitions(self) -> None:
        """Note which letters the formula defines, `m = ...`, `W_h = ...` or `f(x) = ...`, and which of these are functions."""
        depth, fresh = 0, True
        defined: set[str] = set()
        for i, token in enumerate(self.tokens):
            if fresh and token.kind == "letter" and not depth:
                end, is_function = i + 1, False
                if self.spelled(end) == "_":
                    end = self.argument_end(end + 1)
                if self.spelled(end) == "(" and all(
                    t.kind in ("letter", "name") or t.text == "," for t in self.tokens[end + 1 : self.matching(end)]
                ):
                    end, is_function = self.matching(end) + 1, True
                if self.spelled(end) == "=" and token.text not in (r"\mathbf{1}", r"\mathbb{R}"):
                    defined.add(token.text)
                    self.functions |= {token.text} if is_function else set()
            depth += self.nesting(i)
            fresh = token.kind == "qquad" or token.text in (",", ":", *ARROWS)
        self.tokens = [replace(token, kind="name") if token.kind == "letter" and token.text in defined else token for token in self.tokens]
