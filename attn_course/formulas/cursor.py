"""A place in a row of tokens: what stands there, what must follow, and complaints that point at it."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attn_course.formulas.errors import NOWHERE, Malformed, Place
from attn_course.formulas.tokens import ACCENTS, Token
from attn_course.formulas.tree import Node

CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\lvert": r"\rvert", r"\lVert": r"\rVert", "|": "|", r"\|": r"\|"}
CLOSING |= {r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", r"\langle": r"\rangle"}
INSTEAD = {
    r"\over": r"for a fraction write \frac{above}{below}",
    r"\propto": "write an equality, with the factor",
    r"\cdots": r"write out what the dots stand for, with \sum or \prod",
    "<": r"for a dot product write \cdot",
    "'": "a prime stands right behind the symbol or the function",
    **dict.fromkeys("+-", "put what has a second sign in parentheses"),
    "\\\\": "write it on one line",
    **dict.fromkeys(ACCENTS, r"an accent, and \overline too, stands above one symbol"),
}
_SAID = {"}": "a closing brace }", ")": "a closing parenthesis )", "]": "a closing bracket ]"}


class Cursor:
    """The tokens of a formula and the one that is read next."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.stops = [""]  # what would end the innermost bracket although it could begin a factor: a bar, a wide space, a d

    @property
    def token(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.at]

    @property
    def text(self) -> str:
        """What the next token says."""
        return self.tokens[self.at].spelled

    def texts(self, count: int) -> list[str]:
        """Return what the tokens behind the next one say."""
        return [token.spelled for token in self.tokens[self.at + 1 : self.at + 1 + count]]

    def take(self, text: str = "") -> Token:
        """Go past the next token, which must be the one named if one is."""
        token = self.token
        if text and token.spelled != text:
            raise self.wrong(f"expected {_SAID.get(text, text)}")
        self.at += token.kind != "end"
        return token

    def taken(self, *texts: str) -> bool:
        """Go past the next token if it is one of these."""
        found = self.text in texts
        self.at += found
        return found

    def wrong(self, problem: str, token: Token | None = None) -> Malformed:
        """Return a complaint about the next token, or another."""
        token = token or self.token
        if problem.startswith("expected"):
            if token.kind == "word":
                return Malformed(f"{token.text} is neither given nor known", token.place)
            if token.text in INSTEAD and ("number" in problem or token.text not in ("<", "-", "+")):
                return Malformed(f"{problem}, found {token.text}; {INSTEAD[token.text]}", token.place)
            if token.text == "," and token.place[0] in {one.place[1] for one in self.tokens if one.kind == "number"}:
                return Malformed("write a decimal number with a point", token.place)
        found = "the formula ends" if token.kind == "end" else f"found {token.text}"
        return Malformed(f"{problem}, {found}" if problem.startswith("expected") else problem, token.place)

    def since(self, start: int) -> Place:
        """Return the place from there to the last token read."""
        return start, max(start, self.tokens[max(self.at - 1, 0)].place[1])

    @contextmanager
    def inside(self, opening: str, closing: str = "", stop: str = "") -> Iterator[None]:
        """Take a bracket, what is read within, and what closes it."""
        self.take(opening)
        self.stops.append(stop)
        yield
        self.stops.pop()
        self.take(closing or CLOSING[opening])

    def listed(self, rule: Callable[[], Node], separators: tuple[str, ...] = (",",)) -> tuple[Node, ...]:
        """Read several, with separators between."""
        found = [rule()]
        while self.taken(*separators):
            found.append(rule())
        return tuple(found)


def placed(rule: Callable[..., Node]) -> Callable[..., Node]:
    """Let the node that a rule returns reach from where the rule starts to the last token read."""

    @functools.wraps(rule)
    def read(self: Any, *arguments: Any) -> Node:
        start = self.token.place[0]
        node = rule(self, *arguments)
        return node if node.place != NOWHERE else replace(node, place=self.since(start))

    return read
