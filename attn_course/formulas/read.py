r"""LaTeX read into a tree: a recursive-descent parser over tokens in which the names are already cut out.

Hand-written, since the grammar depends on the names (`\phi(x)` is a call if \phi is a function, else a product) and since an error
should say what was expected where. From loose to tight: `\qquad` separates statements, `premise: \qquad` governs them up to the next
colon, `premise:\;` only one, arrows, commas, relations, sums, one of \cdot \odot \times / (unlike ones need parentheses), factors side
by side, and what is attached to one factor. A function binds the parenthesis behind it; without one it takes exactly one factor. \sum
and its like reach to the end of their term.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from attn_course.formulas.cursor import placed
from attn_course.formulas.errors import Malformed
from attn_course.formulas.expressions import ARROW, ARROWS, CONDITIONALS, CONSTANTS, FUNCTIONS, QUANTIFIERS, RELATIONS, Expressions
from attn_course.formulas.tokens import NESTING, argument_end, matching
from attn_course.formulas.tree import Node

REMARKS = ("decode:", "prefill:", "(linear)", "(softmax)")


def read(latex: str, names: Iterable[str] = ()) -> Node:
    r"""Read a formula: relations, joined by commas and arrows.

    `latex` has at most 2,000 characters; `names` are those of the givens as they stand in it: those of functions end in "()", those of
    families show an index, `W_Q^{(h)}`. Raises Malformed, with the place, and what was expected there.
    """
    return _whole(latex, tuple(names), _Parser.formula)


def read_expression(latex: str, names: Iterable[str] = ()) -> Node:
    """Read one expression, without any relation; see `read`."""
    return _whole(latex, tuple(names), _Parser.expression)


@functools.lru_cache(maxsize=4096)
def _whole(latex: str, names: tuple[str, ...], rule: Callable[["_Parser"], Node]) -> Node:
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
        self.turned = set[int]()  # where clauses stand that define from right to left
        self.tokens = [replace(token, kind="qquad") if self.is_where(at) else token for at, token in enumerate(self.tokens)]
        self.find_definitions()

    @placed
    def formula(self) -> Node:
        groups: list[Node] = []
        statements, premise, near = list[Node](), list[Node](), False
        while True:
            part = self.implication()
            if premised := self.taken(":"):
                if premise and not statements:
                    raise self.wrong("expected what holds under the premise before another one comes")
                groups += _governed(premise, statements)
                premise, statements = [part], []
                near = self.token.kind != "qquad"
            else:
                statements += part.children if part.kind == "all" else [part]
            apart = self.taken(",") or premised
            while self.token.kind == "qquad":
                self.at, apart = self.at + 1, True
                if near and statements and premise:
                    groups += _governed(premise, statements)
                    premise, statements = [], []
            if not apart or self.text in ("", "."):
                break
        if not statements and (premise or not groups):
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
        while True:
            ahead = next(at for at in itertools.count(self.at) if self.tokens[at].text != "," and self.tokens[at].kind != "qquad")
            if ahead > self.at and self.is_run(ahead):
                self.at = ahead
                clauses[-1] = _under(clauses[-1], self.chain())
            elif self.tokens[ahead].text in QUANTIFIERS and (behind := self.quantified_at(ahead)) is not None:
                clauses[-1] = _under(clauses[-1], *behind)
            elif self.text == "," and self.tokens[self.at + 1].kind not in ("qquad", "end"):
                self.take()
                clauses.append(self.clause())
            else:
                break
        return clauses[0] if len(clauses) == 1 else Node("all", tuple(clauses))

    @placed
    def clause(self) -> Node:
        remarks = self.remarks()
        quantified = self.quantified() if self.text in QUANTIFIERS else []
        self.taken(*"," * bool(quantified))
        chain = self.chain()
        if chain.kind not in ("chain", "to"):
            raise self.wrong(r"expected a relation such as = or \le")
        children = chain.children[::-1] if chain.place[0] in self.turned else chain.children
        chain = replace(chain, children=children, value=" ".join([*remarks, *self.remarks()]))
        if self.text in QUANTIFIERS:
            quantified += self.quantified()
        elif self.taken(*CONDITIONALS):
            quantified.append(self.conditions_together())
        conditions = tuple(one for one in quantified if one.kind not in ("index", "name"))
        if not conditions and self.text == "(":
            with self.inside("("):
                conditions = self.listed(self.chain, (",", ";"))
        first, *rest = chain.children if chain.kind == "chain" else (chain,)
        if first.kind == "to":  # F \to c \quad (n \to \infty)
            if [one.kind for one in conditions] != ["to"]:
                raise self.wrong(r"expected where what goes, as in (n \to \infty)")
            both = first.children[0], Node("relation", conditions, ARROW, first.place), first.children[1]
            return replace(chain, kind="chain", children=(*both, *rest))
        return _under(chain, *(one for one in conditions if one.kind != "index"))

    def quantified(self) -> list[Node]:
        r"""Read \forall i, j, or for which of them: what the letters run over follows from what they index."""
        self.take()
        found = [self.chain()]
        while self.text == "," and self.tokens[self.at + 1].kind == "letter" and self.texts(2)[1] in (",", ":", ".", ""):
            self.take()
            found.append(self.chain())
        self.taken(":")
        return found

    def quantified_at(self, ahead: int) -> list[Node] | None:
        r"""Read \forall i there, behind what it is said of; None, and nothing is read, if more follows that it may belong to."""
        before, self.at = self.at, ahead
        found = self.quantified()
        if self.text in (",", ".", "") or self.token.kind == "qquad":
            return [one for one in found if one.kind != "index"]
        self.at = before
        return None

    def is_where(self, at: int) -> bool:
        r"""Whether \text{where} stands there before an equality that says what a symbol is, of more than one sign: no condition."""
        if self.tokens[at].kind != "word" or self.tokens[at].text.strip(" ,:") not in ("where", "with"):
            return False
        tokens, behind = [*self.tokens, *self.tokens[-1:] * 4], at + 2
        behind = argument_end(tokens, behind + 1) if tokens[behind].text == "_" else behind
        behind = matching(tokens, behind) + 1 if tokens[behind].text == "(" else behind
        return tokens[at + 1].kind in ("letter", "name") and tokens[behind].text == "=" and tokens[behind + 2].text not in (",", ".", "")

    def remarks(self) -> list[str]:
        """Pass over what speaks to the reader; what nobody knows could say that the formula is false."""
        found = []
        while self.token.kind == "word" and re.fullmatch(r"\(.*\)|.*:", self.token.text):
            if self.token.text not in REMARKS:
                raise self.wrong(f"beside a formula may stand, as \\text: {', '.join(REMARKS)}; got {self.token.text}")
            found.append(self.take().text)
        return found

    def find_definitions(self) -> None:
        """Note which letters the formula defines, `m = ...`, `W_h = ...` or `f(x) = ...`, or from right to left; some are functions."""
        texts, defined, turned = [token.text for token in self.tokens], set[str](), list[tuple[int, str]]()
        for start, end, signs in self.clauses():
            if {*texts[max(start - 1, 0) : start], texts[end]} & ARROWS:
                continue  # what stands at an arrow is no definition
            last = signs[-1] + 1
            needed = texts[last] in [*texts[:start], *texts[end:]] and texts[last] not in [*texts[start:last], *CONSTANTS]
            if self.is_run(start):
                continue
            if texts[signs[0]] == "=" and self.is_symbol(start, signs[0]):
                defined.add(texts[start])
            elif {texts[sign] for sign in signs} == {"="} and texts[end] != ":" and needed and self.is_symbol(last, end):
                turned.append((start, texts[last]))
        for start, letter in turned:
            if letter not in defined:
                defined.add(letter)
                self.turned.add(self.tokens[start].place[0])
        self.tokens = [replace(token, kind="name") if token.kind == "letter" and token.text in defined else token for token in self.tokens]

    def clauses(self) -> Iterator[tuple[int, int, list[int]]]:
        """Yield where each clause that holds a relation starts and ends, and where its relations stand."""
        start, depth, signs = 0, 0, list[int]()
        for at, token in enumerate(self.tokens):
            if not depth and (token.kind in ("qquad", "end") or token.text in (",", ":", ".", *ARROWS)):
                if signs:
                    yield start, at, signs
                start, signs = at + 1, []
            depth += NESTING.get(token.spelled, 0)
            if not depth and token.spelled in RELATIONS:
                signs.append(at)

    def is_symbol(self, at: int, end: int) -> bool:
        """Whether only a letter that is not given stands there, with what is beneath it, or with the parameters of a function."""
        letter, behind = self.tokens[at], at + 1
        if letter.kind != "letter" or letter.text in (r"\mathbf{1}", r"\mathbb{R}"):
            return False
        if self.tokens[behind].spelled == "_":
            behind = argument_end(self.tokens, behind + 1)
        if self.tokens[behind].spelled != "(" or behind >= end:
            return behind == end
        inside = self.tokens[behind + 1 : matching(self.tokens, behind)]
        plain = all(one.kind in ("letter", "name") or one.text == "," for one in inside)
        is_function = plain and matching(self.tokens, behind) == end - 1 and letter.text not in FUNCTIONS
        self.functions |= {letter.text} if is_function else set()
        return is_function


def _under(clause: Node, *conditions: Node) -> Node:
    """Return a clause with conditions, if there are any."""
    before = clause.children if clause.kind == "where" else (clause,)
    place = clause.place[0], max((one.place[1] for one in conditions), default=clause.place[1])
    return Node("where", (*before, *conditions), "", place) if conditions else clause


def _governed(premise: list[Node], statements: list[Node]) -> list[Node]:
    """Return the statements beneath their premise, if there is one."""
    if not premise or not statements:
        return statements
    return [Node("given", (*premise, *statements), place=(premise[0].place[0], statements[-1].place[1]))]
