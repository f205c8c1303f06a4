"""A place in a row of tokens: what stands there, what must follow, and complaints that point at it."""

from collections.abc import Callable, Iterable

from attn_course.formulas.errors import Malformed
from attn_course.formulas.tokens import Token
from attn_course.formulas.tree import Node

CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\lvert": r"\rvert", r"\lVert": r"\rVert"}
CLOSING |= {r"\lfloor": r"\rfloor", r"\lceil": r"\rceil", r"\langle": r"\rangle", "|": "|", r"\|": r"\|"}
OPENING, ENDING = ("(", "[", "{", r"\{"), (")", "]", "}", r"\}")


class Cursor:
    """The tokens of a formula and the one that is read next."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.closers: list[str] = []  # the bar that would close the innermost pair, "" inside other brackets

    @property
    def token(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.at]

    @property
    def text(self) -> str:
        """What the next token says; see `spelled`."""
        return self.spelled(self.at)

    def spelled(self, at: int) -> str:
        """Return what a token says: words in their braces, names never like a sign."""
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return {"word": rf"\text{{{token.text}}}", "name": "a name", "end": ""}.get(token.kind, token.text)

    def take(self, text: str = "") -> Token:
        """Go past the next token, which must be the one named if one is."""
        token = self.token
        if text and self.text != text:
            self.fail(f"expected {_said(text)}")
        self.at += token.kind != "end"
        return token

    def taken(self, *texts: str) -> bool:
        """Go past the next token if it is one of these."""
        if self.text in texts:
            self.at += 1
            return True
        return False

    def fail(self, problem: str, token: Token | None = None) -> None:
        """Complain about the next token, or another."""
        token = token or self.token
        found = "the formula ends" if token.kind == "end" else f"found {token.text}"
        raise Malformed(f"{problem}, {found}" if problem.startswith("expected") else problem, token.place)

    def expect_end(self) -> None:
        """Complain unless all is read; a full stop may end it."""
        if self.text == "." and self.spelled(self.at + 1) == "":
            self.at += 1
        if self.token.kind != "end":
            self.fail("expected the end of the formula or an operator")

    def node(self, kind: str, children: Iterable[Node] = (), value: str = "", start: int = 0) -> Node:
        """Return a node that reaches from where it starts to the last token read."""
        end = self.tokens[max(self.at - 1, 0)].place[1]
        return Node(kind, tuple(children), value, (start, max(start, end)))

    def matching(self, at: int) -> int:
        """Where the bracket that opens here closes; the end of the formula if nowhere."""
        depth = 0
        for i in range(at, len(self.tokens)):
            depth += self.nesting(i)
            if not depth:
                return i
        return len(self.tokens) - 1

    def nesting(self, at: int) -> int:
        """Return 1 for a token that opens a bracket, -1 for one that closes one, else 0."""
        return (self.spelled(at) in OPENING) - (self.spelled(at) in ENDING)

    def argument_end(self, at: int) -> int:
        """Return the position behind the argument that starts here: a group in braces, or one token."""
        return self.matching(at) + 1 if self.spelled(at) == "{" else at + 1

    def enclosed(self, opening: str, rule: Callable[[], Node], closing: str = "") -> Node:
        """Read what stands between brackets or bars."""
        self.take(opening)
        self.closers.append(closing if closing in ("|", r"\|") else "")
        inner = rule()
        self.closers.pop()
        self.take(closing or CLOSING[opening])
        return inner

    def listed(self, rule: Callable[[], Node], closing: str, separators: tuple[str, ...] = (",",)) -> list[Node]:
        """Read several, with separators between, up to what closes them."""
        found = [rule()]
        while self.taken(*separators):
            found.append(rule())
        self.take(closing)
        return found


def _said(text: str) -> str:
    return {"": "the end", "}": "a closing brace }", ")": "a closing parenthesis )", "]": "a closing bracket ]"}.get(text, text)
