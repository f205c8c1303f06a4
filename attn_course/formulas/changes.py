r"""Every small change of a formula: what a slip of the pen, or of the mind, makes of it.

An index or a name for another of its kind, two of them exchanged; a sign, a term, a factor, a transposition, a bar, a function dropped;
factors in the other order; 1 added to a number or a bound; max for min or sum; rows for columns; another relation, strict or not.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from attn_course.formulas.tree import Node, bound_by, write

RELATIONS = {
    "=": (r"\ne", r"\le", r"\ge"),
    r"\ne": ("=",),
    "<": (r"\le", ">"),
    ">": (r"\ge", "<"),
    r"\le": ("<", r"\ge"),
    r"\ge": (">", r"\le"),
    r"\in": (r"\notin",),
    r"\notin": (r"\in",),
    r"\subset": (r"\supset",),
    r"\subseteq": (r"\supseteq",),
}
TWINS = {r"\max": (r"\min", r"\sum"), r"\min": (r"\max", r"\sum"), r"\sum": (r"\max", r"\prod"), r"\prod": (r"\sum",)}
PAIRS = ((r"\arg\max", r"\arg\min"), (r"\sin", r"\cos"), ("floor", "ceil"), ("union", "intersection"), ("rows", "columns"))
TWINS |= {one: (other,) for pair in PAIRS for one, other in (pair, pair[::-1])}
ONE = Node("number", (), "1")


@dataclass(frozen=True)
class Change:
    """A changed tree, and what was written where, before and after."""

    tree: Node
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.before} -> {self.after}"


def changes(tree: Node, likes: Callable[[str], Iterable[str]]) -> Iterator[Change]:
    """Yield every small change of a formula, each changed tree once; likes(name) tells the other names of its kind."""
    seen = {tree}
    letters = sorted({node.value for node in tree.walk() if node.kind == "index"})
    for change in _within(tree, likes, letters, frozenset()):
        if change.tree not in seen:
            seen.add(change.tree)
            yield change


def _within(node: Node, likes: Callable[[str], Iterable[str]], letters: Iterable[str], bound: frozenset[str]) -> Iterator[Change]:
    if node.kind not in ("formula", "where", "all", "given", "domain", "range"):
        for variant in _variants(node, likes, letters):
            yield Change(variant, write(node), write(variant))
    inner = bound | bound_by(node)
    for place, child in enumerate(node.children):
        if _binds(node, place):
            continue
        for change in _within(child, likes, letters, inner):
            yield replace(change, tree=replace(node, children=_with(node.children, place, change.tree)))


def _binds(node: Node, place: int) -> bool:
    """Whether a child is a letter that its parent binds."""
    return place == 0 and (node.kind in ("range", "set", "integral") or (node.kind == "call" and node.value in (r"\sigma", "lse")))


def _with(children: tuple[Node, ...], place: int, *new: Node) -> tuple[Node, ...]:
    """Return the children with others, or none, in the place of one."""
    return (*children[:place], *new, *children[place + 1 :])


def _variants(node: Node, likes: Callable[[str], Iterable[str]], letters: Iterable[str]) -> Iterator[Node]:
    children, changed = node.children, list[tuple[Node, ...]]()
    match node.kind:
        case "index":
            yield from (replace(node, value=letter) for letter in letters if letter != node.value)
        case "name":
            yield from (replace(node, value=name) for name in likes(node.value))
        case "number":
            yield _one_more(node)
        case "neg" | "transpose" | "bars" | "factorial" | "power":
            yield children[0]
        case "sum" | "product":
            for place, term in enumerate(children):
                rest = _with(children, place)
                yield rest[0] if len(rest) == 1 else replace(node, children=rest)
                if node.kind == "sum":
                    yield replace(node, children=_with(children, place, term.children[0] if term.kind == "neg" else Node("neg", (term,))))
            if node.kind == "product":
                changed = [(*children[:at], children[at + 1], children[at], *children[at + 2 :]) for at in range(len(children) - 1)]
        case "dot" | "odot" | "times" | "operator" | "union" | "intersection":
            yield from children
            changed = [children[::-1]] if node.kind == "operator" else []
        case "over":
            yield children[0]
            changed = [children[::-1]]
        case "entry" if len(children) == 3:
            changed = [(children[0], children[2], children[1])]
        case "norm":
            yield replace(node, value="F" if node.value != "F" else "2")
        case "call":
            if len(children) == 2 and node.value not in ("E", "Var"):
                yield children[1]
            if len(children) == 3 and node.value != "Cov":
                changed = [(children[0], children[2], children[1])]
        case "slice":
            changed = _moved(children, (0, 1))
        case "implies" if node.value == r"\Rightarrow":
            changed = [children[::-1]]
        case "big":
            for place, item in enumerate(children[0].children):
                for bounds in _moved(item.children, (1, 2)) if item.kind == "range" else ():
                    items = _with(children[0].children, place, replace(item, children=bounds))
                    changed.append((replace(children[0], children=items), children[1]))
        case "cases" if len(children) >= 4:
            changed = [(children[2], children[1], children[0], *children[3:])]
    yield from (replace(node, children=others) for others in changed)
    twins = RELATIONS.get(node.value, ()) if node.kind == "relation" and not children else TWINS.get(node.value or node.kind, ())
    for twin in twins:
        yield replace(node, kind=twin) if node.kind in TWINS else replace(node, value=twin)


def _moved(children: tuple[Node, ...], places: Iterable[int]) -> list[tuple[Node, ...]]:
    """Return the children with 1 added to one of those places."""
    return [_with(children, place, _one_more(children[place])) for place in places if children[place].kind != "constant"]


def _one_more(node: Node) -> Node:
    if node.kind == "number":
        return replace(node, value=f"{float(node.value) + 1:g}")
    return Node("sum", (*(node.children if node.kind == "sum" else (node,)), ONE))
