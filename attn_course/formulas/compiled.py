"""A formula made ready for evaluation: what it defines and claims, an axis for each letter, and what is wrong before any number."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import BUILT_IN
from attn_course.formulas.read import read
from attn_course.formulas.tree import Node, bound_by, write

OWN = "`"  # behind the letters of a definition, which are its own


@dataclass(frozen=True)
class Definition:
    r"""What a formula defines: `m = ...`, `W_h = ...` (its own letters) or `\kappa(q, k) = ...` (parameters)."""

    own: tuple[str, ...]
    parameters: tuple[str, ...]
    body: Node
    open_letters: frozenset[str]  # free in the body and not its own: taken from where the name stands
    beneath: Node  # what stands beneath a function, here and at each of its calls


@dataclass(frozen=True)
class Use:
    """One place where a letter alone is an index: of the base, at a position; position -1 is membership in a set."""

    base: Node
    position: int


class Formula:
    """A tree, analysed once and evaluated on many givens.

    Parameters
    ----------
    tree : Node
        What `read` returned.
    names : iterable of str
        The names of the givens, as for `read`; those of declared ranges of indices follow in `ranges`.
    latex : str
        For messages.
    """

    def __init__(self, tree: Node, names: Iterable[str], ranges: Iterable[str] = (), latex: str = "") -> None:
        self.tree, self.latex = tree, latex or write(tree)
        self.given = {name.removesuffix("()") for name in names}
        self.ranges = frozenset(ranges)
        self.definitions: dict[str, Definition] = {}
        self._uses: dict[tuple[int, str], list[Use]] = {}
        try:
            self.claims = [claim for statement in tree.children if (claim := self._without_definitions(statement)) is not None]
            trees = [*self.claims, *(definition.body for definition in self.definitions.values())]
            self.letters = {letter: axis for axis, letter in enumerate(sorted(_all_letters(trees) | self._own_letters()))}
            self._complain(trees)
        except Malformed as error:
            raise error.of(self.latex) from None

    @classmethod
    def of(cls, latex: str, names: Iterable[str], ranges: Iterable[str] = ()) -> "Formula":
        """Read a formula and make it ready."""
        listed = list(names)
        return cls(read(latex, listed), listed, ranges, latex)

    @cached_property
    def is_random(self) -> bool:
        """Whether it speaks of expectations."""
        return any(node.kind == "call" and node.value in ("E", "Var", "Cov") for node in self.tree.walk())

    def uses(self, letter: str, scope: Node) -> list[Use]:
        """Return where a letter alone is an index within a node, from left to right."""
        key = (id(scope), letter)
        if key not in self._uses:
            self._uses[key] = list(_uses(letter, scope))
        return self._uses[key]

    def looped(self, claim: Node) -> list[str]:
        """Return the free letters that end a slice: each of their values is a case of its own."""
        ends = [node for node in claim.walk() if node.kind == "slice"]
        return sorted(claim.letters() & frozenset[str]().union(*(node.letters() for node in ends)))

    # Definitions

    def _without_definitions(self, statement: Node) -> Node | None:
        """Take the definitions out of a statement; what is left is claimed."""
        if statement.kind in ("all", "given"):
            kept = [claim for child in statement.children if (claim := self._without_definitions(child)) is not None]
            if statement.kind == "given" and (not kept or kept[0] != statement.children[0]):
                raise Malformed("a premise defines nothing: its symbols must be given", statement.children[0].place)
            if len(kept) < 1 + (statement.kind == "given"):
                return None
            return kept[0] if len(kept) == 1 else replace(statement, children=tuple(kept))
        if statement.kind != "chain" or statement.children[1].value != "=":
            return statement
        name, own, parameters = _left_side(statement.children[0])
        if not name or name in self.given or (statement.children[0].kind == "call" and name.rstrip("'") in self.given):
            return statement
        if name in self.definitions or len(set(own)) < len(own):
            raise Malformed(f"{name} is defined twice" if name in self.definitions else "the indices are the same", statement.place)
        body = statement.children[2]
        mine = frozenset(own) | body_letters(body) - body.letters()
        renamed = body.map(lambda node: replace(node, value=node.value + OWN) if node.kind == "index" and node.value in mine else node)
        letters = renamed.letters() - {letter + OWN for letter in own} - frozenset(parameters)
        beneath = statement.children[0].children[0] if parameters else Node("none")
        self.definitions[name] = Definition(tuple(letter + OWN for letter in own), parameters, renamed, letters, beneath)
        rest = statement.children[2:]
        return replace(statement, children=rest) if len(rest) > 1 else None

    def _own_letters(self) -> frozenset[str]:
        return frozenset(letter for definition in self.definitions.values() for letter in definition.own)

    # Complaints

    def _complain(self, trees: list[Node]) -> None:
        nodes = [node for tree in trees for node in tree.walk()]
        named = {node.value for node in nodes if node.kind in ("name", "call", "operator")}
        named |= {name.rstrip("'") for name in named} | {letter.rstrip(OWN) for letter in self.letters}
        self.named = frozenset(named)
        for name in self.definitions:
            if name not in named:
                raise Malformed(f"{name} is defined and nowhere used: to claim it, give it", self.tree.place)
        if not self.claims:
            raise Malformed("nothing is claimed: every left side is a definition", self.tree.place)
        for node in nodes:
            if node.kind == "chain":
                for left, right in zip(node.children[::2], node.children[2::2], strict=False):
                    if left == right:
                        raise Malformed("both sides are the same", (left.place[0], right.place[1]))
            if node.kind in ("big", "set", "integral") and node.value != r"\lim":
                for letter in bound_by(node):
                    if letter not in node.children[-1].letters():
                        raise Malformed(f"the index {letter.rstrip(OWN)} is not used in what stands behind", node.children[0].place)
            if node.kind == "call" and node.value in self.definitions and node.children[0] != self.definitions[node.value].beneath:
                raise Malformed(f"what stands beneath {node.value} differs from its definition", node.place)
            if node.kind in ("name", "call") and not self._is_known(node):
                raise Malformed(f"{node.value} is not given", node.place)
        for tree in trees:
            _refuse_reuse(tree, frozenset())
        indexing = {letter for tree in trees for letter in _index_letters(tree)} | self._own_letters()
        known = indexing | self.ranges | {r"\delta"} | {name for definition in self.definitions.values() for name in definition.parameters}
        for node in nodes:
            if node.kind == "index" and not {node.value, node.value.rstrip(OWN)} & known:
                raise Malformed(f"{node.value.rstrip(OWN)} is neither given, nor defined, nor an index of anything", node.place)

    def _is_known(self, node: Node) -> bool:
        plain = node.value.rstrip("'")
        parameters = {name for definition in self.definitions.values() for name in definition.parameters}
        known = self.given | self.definitions.keys() | parameters | (set(BUILT_IN) if node.kind == "call" else set())
        return node.value in known or (node.kind == "call" and plain in known)


def body_letters(body: Node) -> frozenset[str]:
    """Return every letter in a body, free or bound."""
    return frozenset(node.value for node in body.walk() if node.kind == "index")


def _left_side(node: Node) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return name, own letters and parameters of a left side that may define something; "" if it cannot."""
    first, *rest = node.children or (node,)
    if node.kind == "name":
        return node.value, (), ()
    if node.kind == "entry" and first.kind == "name" and all(index.kind == "index" for index in rest):
        return first.value, tuple(index.value for index in rest), ()
    if node.kind == "call" and node.value.rstrip("'") not in BUILT_IN and all(argument.kind in ("index", "name") for argument in rest):
        return node.value, (), tuple(argument.value for argument in rest)
    return "", (), ()


def _all_letters(trees: list[Node]) -> frozenset[str]:
    return frozenset[str]().union(*(body_letters(tree) for tree in trees))


def _index_letters(tree: Node) -> Iterator[str]:
    """Yield the letters that occur in an index, in a membership, in a slice or beneath \\sum and its like."""
    for node in tree.walk():
        if node.kind == "entry":
            for index in node.children[1:]:
                yield from body_letters(index)
        elif node.kind in ("domain", "set", "integral"):
            yield from body_letters(node.children[0]) if node.kind != "domain" else body_letters(node)
        elif (node.kind == "chain" and any(child.value in (r"\in", r"\notin") for child in node.children)) or (
            node.kind == "call" and node.children[0].kind != "none"
        ):
            yield from body_letters(node.children[0])


def _uses(letter: str, node: Node) -> Iterator[Use]:
    if node.kind == "entry":
        base, indices = flattened(node)
        for position, index in enumerate(indices):
            if index.kind == "index" and index.value == letter:
                yield Use(base, position)
    elif node.kind == "chain" and node.children[1].value in (r"\in", r"\notin") and node.children[0] == Node("index", (), letter):
        yield Use(node.children[2], -1)
    for child in node.children:
        yield from _uses(letter, child)


def flattened(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """Return what carries the indices and all of them: (W_h)_{ij} has three."""
    base, *indices = node.children
    if base.kind == "entry":
        inner, before = flattened(base)
        return inner, (*before, *indices)
    return base, tuple(indices)


def _refuse_reuse(node: Node, active: frozenset[str]) -> None:
    bound = bound_by(node)
    if bound & active:
        raise Malformed(f"the index {min(bound & active).rstrip(OWN)} is in use already: take another letter", node.place)
    inner = active | bound
    for place, child in enumerate(node.children):
        _refuse_reuse(child, inner if place or node.kind != "call" else active)
