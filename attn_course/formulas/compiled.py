"""A formula made ready for evaluation: what it defines and claims, an axis for each letter, and what is wrong before any number."""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from attn_course.formulas.errors import Malformed
from attn_course.formulas.functions import BUILT_IN
from attn_course.formulas.read import read
from attn_course.formulas.tree import Node, bound_by, without_under, write

OWN = "`"  # behind the letters of a definition, which are its own


@dataclass(frozen=True)
class Definition:
    r"""What a formula defines: `m = ...`, `W_h = ...` (its own letters) or `\kappa(q, k) = ...` (parameters)."""

    own: tuple[str, ...]
    parameters: tuple[str, ...]
    body: Node
    open_letters: frozenset[str]  # free in the body and not its own: taken from where the name stands
    beneath: Node  # what stands beneath a function, here and at each of its calls


class Formula:
    """A tree, analysed once and evaluated on many givens.

    `tree` is what `read` returned, `names` are those of the givens, as for `read`, and `ranges` those of declared ranges of indices;
    `latex` is for messages.
    """

    def __init__(self, tree: Node, names: Iterable[str], ranges: Iterable[str] = (), latex: str = "") -> None:
        self.spare = frozenset[str]()  # names of givens that need not stand in it
        self.tree, self.latex = tree, latex or write(tree)
        self.given = {name.removesuffix("()") for name in names}
        self.ranges = frozenset(ranges)
        self.definitions: dict[str, Definition] = {}
        self._uses: dict[tuple[int, str], list[tuple[Node, int]]] = {}
        try:
            tree = self._with_declared(tree)
            nodes = [*tree.walk()]
            tree = _with_entries(tree, frozenset()) if any(node.value == r"\sigma" and bound_by(node) for node in nodes) else tree
            if any(_is_pair(node) for node in nodes):  # a definition may take free letters of all that there is
                scopes = [tree if self._may_define(one) else one for one in tree.children]
                tree = replace(tree, children=tuple(map(_in_pairs, tree.children, scopes)))
            tree = with_runners(tree, frozenset())
            self.claims = [claim for statement in tree.children for claim in self._claimed(statement)]
            trees = [*self.claims, *(definition.body for definition in self.definitions.values())]
            own = {letter for definition in self.definitions.values() for letter in definition.own}
            self.letters = {letter: axis for axis, letter in enumerate(sorted(own.union(*map(_letters_in, trees))))}
            self._complain(trees, own)
        except Malformed as error:
            raise error.of(self.latex) from None

    @classmethod
    def of(cls, latex: str, names: Iterable[str], ranges: Iterable[str] = (), open_names: Sequence[str] = ()) -> "Formula":
        """Read a formula and make it ready; `open_names` of the names are read as such, and not given."""
        listed = list(names)
        try:
            return cls(read(latex, listed), [name for name in listed if name not in open_names], ranges, latex)
        except RecursionError:
            raise Malformed("the formula is nested too deeply") from None

    def with_tree(self, tree: Node) -> "Formula":
        """Return a changed formula of the same symbols."""
        other = Formula(tree, self.given, self.ranges, " ")
        other.spare = self.spare
        return other

    def uses(self, letter: str, scope: Node) -> list[tuple[Node, int]]:
        """Return where a letter alone is an index within a node, from left to right: of what, and at which position; -1: in that set."""
        key = (id(scope), letter)
        if key not in self._uses:
            self._uses[key] = list(_uses(letter, scope))
        return self._uses[key]

    def looped(self, claim: Node) -> list[str]:
        """Return the free letters that end a slice: each of their values is a case of its own."""
        return sorted(claim.letters() & {letter for node in claim.walk() if node.kind == "slice" for letter in node.letters()})

    def _with_declared(self, tree: Node) -> Node:
        """Return the tree with the one declared letter in the place of the one free letter that stands for it."""
        tree = replace(tree, children=tuple(statement.map(self._with_own_range(statement)) for statement in tree.children))
        unused = self.ranges - {node.value for node in tree.walk()}
        free = frozenset[str]().union(*(statement.letters() for statement in tree.children)) - self.ranges - {r"\delta"}
        if len(unused) != 1 or len(free) != 1:
            return tree
        (declared,), (other,) = unused, free
        return tree.map(lambda node: replace(node, value=declared) if (node.kind, node.value) == ("index", other) else node)

    def _with_own_range(self, statement: Node) -> Callable[[Node], Node]:
        """Let the letter of a set builder stand for the one declared letter that is not free in the statement."""
        left = self.ranges - statement.letters()

        def renamed(node: Node) -> Node:
            letter = node.children[0].value if node.kind == "set" else ""
            if not letter or letter in self.ranges or len(left) != 1:
                return node
            return node.map(lambda one: replace(one, value=min(left)) if (one.kind, one.value) == ("index", letter) else one)

        return renamed

    def _claimed(self, statement: Node) -> list[Node]:
        """Take the definitions out of a statement; what is left is claimed, if anything."""
        if statement.kind in ("all", "given"):
            kept = [claim for child in statement.children for claim in self._claimed(child)]
            governed = statement.kind == "given"
            if governed and kept[:1] != [statement.children[0]]:
                raise Malformed("a premise defines nothing: its symbols must be given", statement.children[0].place)
            if len(kept) < 1 + governed:
                return []
            return kept if len(kept) == 1 else [replace(statement, children=tuple(kept))]
        if statement.kind != "chain" or statement.children[1].value != "=":
            return [statement]
        left, _, body, *more = statement.children
        name, own, parameters = _left_side(left)
        if not name or name in self.given or (left.kind == "call" and name.rstrip("'") in self.given):
            return [statement]
        if name in self.definitions or len(set(own)) < len(own):
            raise Malformed(f"{name} is defined twice" if name in self.definitions else "the indices are the same", statement.place)
        mine = _letters_in(body) - body.letters() | {*own}
        renamed = body.map(lambda node: replace(node, value=node.value + OWN) if node.kind == "index" and node.value in mine else node)
        own = tuple(letter + OWN for letter in own)
        beneath = left.children[0] if left.kind == "call" else Node("none")
        self.definitions[name] = Definition(own, parameters, renamed, renamed.letters() - {*own, *parameters}, beneath)
        return [replace(statement, children=statement.children[2:])] if more else []

    def _may_define(self, statement: Node) -> bool:
        name = _left_side(statement.children[0])[0] if statement.kind == "chain" else ""
        return bool(name) and name not in self.given

    def _complain(self, trees: list[Node], own: set[str]) -> None:
        nodes = [node for tree in trees for node in tree.walk()]
        if not self.claims:
            raise Malformed("nothing is claimed: every left side is a definition", self.tree.place)
        named = frozenset[str]().union(*(self.names_beneath(claim) for claim in self.claims))
        self.named = named | {letter.rstrip(OWN) for letter in self.letters}
        for name in self.definitions:
            if name not in named:
                raise Malformed(f"{name} is defined and no claim uses it: to claim it, give it", self.tree.place)
        running = {name for node in nodes for name in _runs_in(node)}
        for claim in self.claims:
            _refuse_outside(claim, running, frozenset())
        parameters = {name for definition in self.definitions.values() for name in definition.parameters}
        known = self.given | self.definitions.keys() | parameters
        for node in nodes:
            self._complain_of(node)
            called = node.kind == "call" and (node.value.rstrip("'") in known or node.value.rstrip("'") in BUILT_IN)
            if node.kind in ("name", "call") and node.value not in known and not called:
                beneath = [one.value for entry in nodes if node in entry.children[:1] for one in entry.children[1:] if one.kind == "name"]
                taken = f": beneath it stands {beneath[0]}, which is given and no index" if beneath else ""
                raise Malformed(f"{node.value} is not given{taken}", node.place)
        for tree in trees:
            _refuse_reuse(tree, frozenset())
        for chain in (node for node in nodes if node.kind == "chain"):
            _refuse_taken(chain, chain.letters())
        for name, definition in self.definitions.items():
            _refuse_taken(definition.body, frozenset(definition.own))
            for letter in definition.open_letters if definition.own or definition.parameters else ():
                raise Malformed(f"{letter} stands in what {name} is, and not beneath it", definition.body.place)
        indices = own | self.ranges | parameters | {r"\delta"} | {letter for node in nodes for letter in _indices_in(node)}
        for node in nodes:
            if node.kind == "index" and not {node.value, node.value.rstrip(OWN)} & indices:
                beside = [name for name in self.given if name.startswith(f"{node.value}(")]  # O(h^4)
                hint = f": {beside[0]} is given" if beside else " (a definition: name = ...)"
                hint = f": the letter of an index that runs by itself is {min(self.ranges)}" if self.ranges else hint
                raise Malformed(f"{node.value.rstrip(OWN)} is neither given, nor defined, nor an index of anything{hint}", node.place)

    def names_beneath(self, tree: Node, within: tuple[str, ...] = ()) -> frozenset[str]:
        """Return the names in an expression and in the definitions it uses."""
        found = {node.value for node in tree.walk() if node.kind in ("name", "call", "operator")}
        found |= {name.rstrip("'") for name in found}
        for name in found & self.definitions.keys():
            if name in within:
                raise Malformed(f"{name} is defined by itself", tree.place)
            found = found | self.names_beneath(self.definitions[name].body, (*within, name))
        return frozenset(found)

    def _complain_of(self, node: Node) -> None:
        if node.kind == "chain":
            for left, right in zip(node.children[::2], node.children[2::2], strict=False):
                if left == right or _in_order(left) == _in_order(right):
                    raise Malformed("both sides are the same", (left.place[0], right.place[1]))
        elif node.kind in ("big", "set", "integral") and node.value not in (r"\lim", r"\sum", r"\prod"):  # equal terms may be added
            for letter in bound_by(node) - node.children[-1].letters():
                raise Malformed(f"the index {letter.rstrip(OWN)} is not used in what stands behind", node.children[0].place)
        elif node.kind == "call" and node.value in self.definitions and node.children[0] != self.definitions[node.value].beneath:
            raise Malformed(f"what stands beneath {node.value} differs from its definition", node.place)


def _in_order(side: Node) -> Node:
    """Return a sum with its terms in a fixed order, and a dot product however it is written."""
    side = replace(side, value="") if side.kind == "dot" else side
    return replace(side, children=tuple(sorted(side.children, key=write))) if side.kind == "sum" else side


def _runs_in(node: Node) -> set[str]:
    """Return the names that run in a limit: those of its domain, or above an arrow."""
    going = node.children[0].children if node.value == r"\lim" else node.children if node.kind == "relation" else ()
    return {base.value for item in going if item.kind == "to" for base in item.children[0].walk() if base.kind == "name"}


def _refuse_outside(node: Node, running: set[str], inside: frozenset[str]) -> None:
    """What runs in a limit has no value outside of it; before an arrow it may stand."""
    if node.kind == "name" and node.value in running - inside:
        raise Malformed(f"{node.value} runs in a limit, and has no value outside of it", node.place)
    inner = inside | _runs_in(node)
    signs = [_runs_in(child) if child.kind == "relation" else set() for child in node.children]
    before = [frozenset[str]().union(*signs[place:]) for place in range(len(signs))]
    for child, arrows in zip(node.children, before, strict=True):
        _refuse_outside(child, running, inner | arrows if node.kind == "chain" else inner)


def _letters_in(tree: Node) -> frozenset[str]:
    """Return every letter in a tree, free or bound."""
    return frozenset(node.value for node in tree.walk() if node.kind == "index")


def _left_side(node: Node) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return name, own letters and parameters of a left side that may define something; "" if it cannot."""
    first, *rest = node.children or (node,)
    values, kinds = tuple(one.value for one in rest), {one.kind for one in rest}
    if node.kind == "name":
        return node.value, (), ()
    if node.kind == "entry" and first.kind == "name" and kinds == {"index"}:
        return first.value, values, ()
    if node.kind == "call" and node.value.rstrip("'") not in BUILT_IN and kinds <= {"index", "name"}:
        return node.value, (), values
    return "", (), ()


def _indices_in(node: Node) -> Iterator[str]:
    """Yield the letters that a node makes indices: those of an entry, a membership, a slice, or beneath \\sum and its like."""
    membership = node.kind == "chain" and any(child.value in (r"\in", r"\notin") for child in node.children)
    if node.kind == "entry":
        for index in node.children[1:]:
            yield from _letters_in(index)
    elif node.kind == "domain":
        yield from _letters_in(node)
    elif node.kind in ("set", "integral", "call") or membership:
        yield from _letters_in(node.children[0])


def _uses(letter: str, node: Node) -> Iterator[tuple[Node, int]]:
    wanted = Node("index", (), letter)
    if node.kind == "entry":
        base, indices = flattened(node)
        for position, index in enumerate(indices):
            if index == wanted and base.kind != "constant":  # \mathbf{1}_i has any length
                yield base, position
    elif node.kind == "call" and node.children[0] == wanted and letter not in bound_by(node):
        yield without_under(node), 0  # \sigma_i(z)
    elif node.kind == "chain" and node.children[1].value in (r"\in", r"\notin") and node.children[0] == wanted:
        yield node.children[2], -1
    for child in node.children:
        yield from _uses(letter, child)


def flattened(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """Return what carries the indices and all of them: (W_h)_{ij} has three."""
    base, *indices = node.children
    inner, before = flattened(base) if base.kind == "entry" else (base, ())
    return inner, (*before, *indices)


def _with_entries(node: Node, active: frozenset[str], indexed: bool = False) -> Node:
    r"""Return a tree in which p_j = \sigma_j(s_j), with j in use around it, is an entry of the softmax: \sigma_l(s_l)_j."""
    beside = [child.letters() for child in node.children]
    others = [active | bound_by(node).union(*beside[:place], *beside[place + 1 :]) for place in range(len(beside))]
    entered = (node.kind == "entry", *[False] * len(beside))
    children = tuple(map(_with_entries, node.children, others if node.kind != "call" else [active] * len(beside), entered))
    same = all(map(operator.is_, children, node.children))
    found = node if same else replace(node, children=children)
    letter = node.children[0].value if node.kind == "call" and node.value == r"\sigma" and node.children else ""
    if indexed or letter not in active & bound_by(node):
        return found
    own = found.map(lambda one: replace(one, value=letter + OWN + OWN) if (one.kind, one.value) == ("index", letter) else one)
    return Node("entry", (own, node.children[0]), "", node.place)


def _in_pairs(node: Node, scope: Node) -> Node:
    r"""Return a tree in which \sum_{i < j} runs over both letters, where neither is free in the scope and they are in their order."""

    def paired(node: Node, bound: frozenset[str]) -> Node:
        inner = bound | bound_by(node)
        children = tuple(paired(child, inner) for child in node.children)
        node = node if all(map(operator.is_, children, node.children)) else replace(node, children=children)
        if not _is_pair(node):
            return node
        domain, body = node.children
        first, _, second = (one.value for one in domain.children[0].children)
        alone = not {first, second} & bound and not _free(scope, first) and _free(scope, second) == _free(node, second)
        return replace(node, children=(replace(domain, children=(Node("index", (), second), *domain.children)), body)) if alone else node

    return paired(node, frozenset())


def _free(node: Node, letter: str) -> int:
    """Count where a letter stands that nothing around it binds."""
    if letter in bound_by(node):
        return 0
    return int(node == Node("index", (), letter)) + sum(_free(child, letter) for child in node.children)


def _is_pair(node: Node) -> bool:
    r"""Whether a sum stands over i < j, or another relation of two letters in their order."""
    item = node.children[0].children[0] if node.kind == "big" and len(node.children[0].children) == 1 else node
    if item is node or [one.kind for one in item.children] != ["index", "relation", "index"]:
        return False
    first, sign, second = item.children
    return sign.value in _TURNED and first.value < second.value


def with_runners(node: Node, active: frozenset[str]) -> Node:
    r"""Return a tree in which sums run over a letter that is not in use, there or on another side: x_i = \sum_{i \ne j} y_j runs over j."""
    if node.kind == "big":
        items = tuple(one for item in node.children[0].children for one in _turned(item, active))
        if items != node.children[0].children:
            node = replace(node, children=(replace(node.children[0], children=items), *node.children[1:]))
    inner = active | bound_by(node)
    beside = [child.letters() if node.kind == "chain" else frozenset[str]() for child in node.children]
    others = [inner.union(*beside[:place], *beside[place + 1 :]) for place in range(len(beside))]
    children = tuple(map(with_runners, node.children, others))
    return node if all(map(operator.is_, children, node.children)) else replace(node, children=children)


def _turned(item: Node, active: frozenset[str]) -> tuple[Node, ...]:
    """Return a condition beneath a sum so that a letter that is not in use comes first."""
    if item.kind != "chain":
        return (item,)
    first, sign, second, *rest = item.children
    runs = second.kind == "index" and second.value not in active and first.letters() and first.letters() <= active
    if not runs or sign.value not in _TURNED:
        return (item,)
    turned = replace(item, children=(second, replace(sign, value=_TURNED[sign.value]), first))
    return (turned, replace(item, children=(second, *rest))) if rest else (turned,)


_TURNED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\ne": r"\ne"}


def _refuse_reuse(node: Node, active: frozenset[str]) -> None:
    bound = bound_by(node)
    if bound & active:
        raise Malformed(f"the index {min(bound & active).rstrip(OWN)} is in use already: take another letter", node.place)
    inner = active | bound
    for place, child in enumerate(node.children):
        _refuse_reuse(child, inner if place or node.kind != "call" else active)


def _refuse_taken(tree: Node, free: frozenset[str]) -> None:
    r"""Refuse a sum over an index that is free beside it, as in `a_i = \sum_i b_i`; `p_j = \sigma_j(z_j)` is read along j."""
    for node in tree.walk():
        if node.kind in ("big", "set", "integral") and (taken := bound_by(node) & free):
            raise Malformed(f"the index {min(taken).rstrip(OWN)} is in use already: take another letter", node.place)
