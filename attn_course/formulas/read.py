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

from attn_course.formulas.cursor import placed
from attn_course.formulas.errors import Malformed
from attn_course.formulas.expressions import ARROWS, Expressions
from attn_course.formulas.tokens import NESTING, argument_end, matching
from attn_course.formulas.tree import Node


def read(latex: str, names: Iterable[str] = ()) -> Node:
    r"""Read a formula: relations, joined by commas and arrows.

    `latex` has at most 2,000 characters; `names` are those of the givens as they stand in it: those of functions end in "()", those of
    families show an index, `W_Q^{(h)}`. Raises Malformed, with the place, and what was expected there.
    """
    return _whole(latex, names, _Parser.formula)


def read_expression(latex: str, names: Iterable[str] = ()) -> Node:
    """Read one expression, without any relation; see `read`."""
    return _whole(latex, names, _Parser.expression)


def _whole(latex: str, names: Iterable[str], rule: Callable[["_Parser"], Node]) -> Node:
    try:
        parser = _Parser(latex, names)
        tree = rule(parser)
        parser.taken(".")
        if parser.text:
            raise parser.wrong("expected the end of the formula or an operator")
    except Malformed as error:
        raise error.of(latex) from None
    return tree


class _Parser(Expressions):
    def __init__(self, latex: str, names: Iterable[str]) -> None:
        super().__init__(latex, names)
        self.find_definitions()

    @placed
    def formula(self) -> Node:
        groups: list[Node] = []
        statements, premise = list[Node](), list[Node]()
        while True:
            part = self.implication()
            if premised := self.taken(":"):
                groups += _governed(premise, statements)
                premise, statements = [part], []
            else:
                statements += part.children if part.kind == "all" else [part]
            apart = self.taken(",") or premised
            while self.token.kind == "qquad":
                self.at, apart = self.at + 1, True
            if not apart or self.text in ("", "."):
                break
        if not statements:
            raise self.wrong("expected what holds under the premise")
        return Node("formula", (*groups, *_governed(premise, statements)))

    @placed
    def implication(self) -> Node:
        left = self.conjunction()
        if self.text not in ARROWS:
            return left
        arrow = self.take().text
        return Node("implies", (left, self.conjunction()), arrow)

    @placed
    def conjunction(self) -> Node:
        clauses = [self.clause()]
        while self.text == "," and self.tokens[self.at + 1].kind not in ("qquad", "end"):
            self.take()
            clauses.append(self.clause())
        return clauses[0] if len(clauses) == 1 else Node("all", tuple(clauses))

    @placed
    def clause(self) -> Node:
        remarks = self.remarks()
        chain = self.chain()
        if chain.kind != "chain":
            raise self.wrong(r"expected a relation such as = or \le")
        chain = replace(chain, value=" ".join([*remarks, *self.remarks()]))
        if self.text != "(":
            return chain
        with self.inside("("):
            return Node("where", (chain, *self.listed(self.chain)))

    def remarks(self) -> list[str]:
        r"""Pass over \text{(linear)} and \text{decode:}, which speak to the reader."""
        found = []
        while self.token.kind == "word" and re.fullmatch(r"\(.*\)|.*:", self.token.text):
            found.append(self.take().text)
        return found

    def find_definitions(self) -> None:
        """Note which letters the formula defines, `m = ...`, `W_h = ...` or `f(x) = ...`, and which of these are functions."""
        depth, fresh = 0, True
        defined: set[str] = set()
        texts = [*(token.spelled for token in self.tokens), ""]
        for i, token in enumerate(self.tokens):
            if fresh and token.kind == "letter" and not depth and token.text not in (r"\mathbf{1}", r"\mathbb{R}"):
                end, is_function = i + 1, False
                if texts[end] == "_":
                    end = min(argument_end(self.tokens, end + 1), len(self.tokens))
                closing = matching(self.tokens, end)
                if texts[end] == "(" and all(one.kind in ("letter", "name") or one.text == "," for one in self.tokens[end + 1 : closing]):
                    end, is_function = closing + 1, True
                if texts[end] == "=":
                    defined.add(token.text)
                    self.functions |= {token.text} if is_function else set()
            depth += NESTING.get(texts[i], 0)
            fresh = token.kind == "qquad" or token.text in (",", ":", *ARROWS)
        self.tokens = [replace(token, kind="name") if token.kind == "letter" and token.text in defined else token for token in self.tokens]


def _governed(premise: list[Node], statements: list[Node]) -> list[Node]:
    """Return the statements beneath their premise, if there is one."""
    if not premise or not statements:
        return statements
    return [Node("given", (*premise, *statements), place=(premise[0].place[0], statements[-1].place[1]))]
