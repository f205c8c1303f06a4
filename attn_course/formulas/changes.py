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
TWINS = {
    r"\max": (r"\min", r"\sum"),
    r"\min": (r"\max", r"\sum"),
    r"\sum": (r"\max", r"\prod"),
    r"\prod": (r"\sum",),
    r"\arg\max": (r"\arg\min",),
    r"\arg\min": (r"\arg\max",),
    r"\sin": (r"\cos",),
    r"\cos": (r"\sin",),
    "floor": ("ceil",),
    "ceil": ("floor",),
    "union": ("intersection",),
    "intersection": ("union",),
    "rows": ("columns",),
    "columns": ("rows",),
}
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
    """Yield every small change of a formula, each changed tree once.

    Parameters
    ----------
    likes : callable
        likes(name) tells the other names of its kind.
    """
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
            children = (*node.children[:place], change.tree, *node.children[place + 1 :])
            yield replace(change, tree=replace(node, children=children))


def _binds(node: Node, place: int) -> bool:
    """Whether a child is a letter that its parent binds."""
    return place == 0 and (node.kind in ("range", "set", "integral") or (node.kind == "call" and node.value == r"\sigma"))


def _variants(node: Node, likes: Callable[[str], Iterable[str]], letters: Iterable[str]) -> Iterator[Node]:
    children = node.children
    match node.kind:
        case "index":
            yield from (replace(node, value=letter) for letter in letters if letter != node.value)
        case "name":
            yield from (replace(node, value=name) for name in likes(node.value))
        case "number":
            yield replace(node, value=f"{float(node.value) + 1:g}")
        case "neg" | "transpose" | "bars" | "factorial":
            yield children[0]
        case "sum":
            for place, term in enumerate(children):
                rest = (*children[:place], *children[place + 1 :])
                yield rest[0] if len(rest) == 1 else replace(node, children=rest)
                flipped = term.children[0] if term.kind == "neg" else Node("neg", (term,))
                yield replace(node, children=(*children[:place], flipped, *children[place + 1 :]))
        case "product":
            for place in range(len(children)):
                rest = (*children[:place], *children[place + 1 :])
                yield rest[0] if len(rest) == 1 else replace(node, children=rest)
            for place in range(len(children) - 1):
                yield replace(node, children=(*children[:place], children[place + 1], children[place], *children[place + 2 :]))
        case "dot" | "odot" | "times" | "operator" | "union" | "intersection":
            yield from children
            if node.kind == "operator":
                yield replace(node, children=children[::-1])
        case "over":
            yield children[0]
            yield replace(node, children=children[::-1])
        case "power":
            yield children[0]
        case "entry" if len(children) == 3:
            yield replace(node, children=(children[0], children[2], children[1]))
        case "norm":
            yield replace(node, value="F" if node.value != "F" else "2")
        case "call":
            if len(children) == 2 and node.value not in ("E", "Var"):
                yield children[1]
            if len(children) == 3 and node.value != "Cov":
                yield replace(node, children=(children[0], children[2], children[1]))
        case "slice":
            yield from (replace(node, children=moved) for moved in _moved(children, (0, 1)))
        case "implies" if node.value == r"\Rightarrow":
            yield replace(node, children=children[::-1])
        case "big":
            for place, item in enumerate(children[0].children):
                if item.kind == "range":
                    for bounds in _moved(item.children, (1, 2)):
                        items = (*children[0].children[:place], replace(item, children=bounds), *children[0].children[place + 1 :])
                        yield replace(node, children=(replace(children[0], children=items), children[1]))
        case "cases" if len(children) >= 4:
            yield replace(node, children=(children[2], children[1], children[0], *children[3:]))
    twins = RELATIONS.get(node.value, ()) if node.kind == "relation" and not children else TWINS.get(node.value or node.kind, ())
    for twin in twins:
        yield replace(node, kind=twin) if node.kind in TWINS else replace(node, value=twin)


def _moved(children: tuple[Node, ...], places: Iterable[int]) -> Iterator[tuple[Node, ...]]:
    """Yield the children with 1 added to one of those places."""
    for place in places:
        bound = children[place]
        if bound.kind == "number":
            more = replace(bound, value=f"{float(bound.value) + 1:g}")
        elif bound.kind == "constant":
            continue
        else:
            more = Node("sum", (*(bound.children if bound.kind == "sum" else (bound,)), ONE))
        yield (*children[:place], more, *children[place + 1 :])
