r"""The tree of a formula: plain, frozen nodes of one type, and the way back to LaTeX: read(write(tree)) == tree.

kind          value                children
formula                            statements: chain, where, all, implies, given
chain         a remark at it       expression, relation, expression, ...
relation      = \le \in ...        (\xrightarrow only: variable, target, as `to`)
where                              clause, condition, ...             `p = q \quad (i \ne j)`
all                                clauses of a premise or conclusion, joined by commas; conditions
any                                conditions, one of which holds     `[a \lor b]`
implies       \Rightarrow \iff     premise, conclusion
given                              premise, statement, ...            `premise: statement, \qquad statement`
number        0.5
constant      e \pi \infty 1 I \emptyset \mathbb{R}
name          a given or defined name, as the givens spell it
index         a letter
word          rows, columns        (beneath a function)
sum, product  terms (one with a minus is a neg), factors side by side
neg                                one
dot, odot, times, union, intersection, operator (value: \oplus)   two
over          / or \frac           numerator, denominator
power, transpose, factorial        base and exponent; one; one
entry                              base, index, ...                   `s_{ij}`, `W_Q^{(h)}`
slice                              first, last                        `1:t`
call          the function         what stands beneath or none, argument, ...
big           \sum \max \lim ...   domain, body
domain                             index, range(index, from, to), chain, to(variable, target)
integral                           variable, from or none, to or none, body
derivative    \partial or d        numerator, by, ...                 nabla: by or none, body
at                                 body, chain                        `f |_{x = 0}`
bars, norm    (norm: 2 F 1)        one
floor, ceil, iverson, set          one; one; one; index, condition
tuple                              entries                            `(a, b)`
blocks        pmatrix or [         cells                              `[A, B; C, D]`
cells                              expression or run(first, last)
cases                              value, condition, value, condition, ...
none                               nothing stands here
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from attn_course.formulas.errors import NOWHERE, Place

FAMILY = re.compile(r"^(.*)\^\{\((?:[A-Za-z]|\\[a-z]+)\)\}$")  # W_Q^{(h)}: a name whose index stands above it


@dataclass(frozen=True, slots=True)
class Node:
    """One node; `place` is the slice of the LaTeX it was read from and takes no part in comparisons."""

    kind: str
    children: tuple["Node", ...] = ()
    value: str = ""
    place: Place = field(default=NOWHERE, compare=False)
    _letters: frozenset[str] | None = field(default=None, init=False, compare=False, repr=False)  # once they were asked for

    def walk(self) -> Iterator["Node"]:
        """Yield the node and all beneath it, from left to right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children[::-1]

    def map(self, change: Callable[["Node"], "Node"]) -> "Node":
        """Return the tree with every node changed, children first."""
        children = tuple(child.map(change) for child in self.children)
        same = all(map(operator.is_, children, self.children))  # what does not change is kept, and what is known of it
        return change(self if same else Node(self.kind, children, self.value, self.place))

    def with_node(self, old: "Node", new: "Node") -> "Node":
        """Return the tree with one node in the place of every one that equals another."""
        return self.map(lambda node: new if node == old else node)

    def letters(self) -> frozenset[str]:
        """Return the letters of the indices in it that nothing in it binds."""
        if self._letters is None:
            beneath = frozenset[str]().union(*(child.letters() for child in self.children)) - bound_by(self)
            object.__setattr__(self, "_letters", frozenset([self.value]) if self.kind == "index" else beneath)
        return self._letters or frozenset()


def bound_by(node: Node) -> frozenset[str]:
    r"""Return the letters that the node binds: those of \sum_j, \sigma_l(...), a set builder, an integral."""
    if node.kind == "big":
        return frozenset(bound_in(item) for item in node.children[0].children) - {""}
    if node.kind in ("set", "integral") or (node.kind == "call" and node.value in (r"\sigma", "lse")):
        first, *inside = node.children
        runs = first.kind == "index" and (node.kind != "call" or any(first.value in one.letters() for one in inside))  # or it is an entry
        return frozenset([first.value] if runs else [])
    return frozenset()


def bound_in(item: Node) -> str:
    r"""Return the letter that one item of a domain binds: the first in it, or j of 1 \le j \le n; a limit binds none."""
    if item.kind in ("index", "range"):
        return item.value if item.kind == "index" else item.children[0].value
    if is_between(item):
        return item.children[2].value
    return next((node.value for node in item.walk() if node.kind == "index"), "") if item.kind == "chain" else ""


def without_under(call: Node) -> Node:
    """Return a call without what stands beneath its function."""
    return replace(call, children=(Node("none"), *call.children[1:]))


def is_between(item: Node) -> bool:
    r"""Whether a condition puts a letter between two bounds: 1 \le j \le n, but not i \le j \le n, where the first letter is bound."""
    return item.kind == "chain" and len(item.children) == 5 and item.children[2].kind == "index" != item.children[0].kind


def relations(node: Node, conditions: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield the relations that a formula or a statement claims, each with the conditions and premises under which it does."""
    if node.kind == "chain":
        yield node, conditions
    elif node.kind in ("formula", "all"):
        for child in node.children:
            yield from relations(child, conditions)
    elif node.kind == "where":
        yield from relations(node.children[0], (*conditions, *node.children[1:]))
    elif node.kind in ("given", "implies"):
        for child in node.children[1:]:
            yield from relations(child, (*conditions, node.children[0]))


# Back to LaTeX. A level says how tightly a node binds; a child that binds less than its place asks for gets parentheses.
RELATION, SUM, OPERATION, SIDE_BY_SIDE, FACTOR, ATOM, CLOSED, BASE = range(8)  # the last two: see _closed and _base
LEVELS = {
    **dict.fromkeys(("formula", "given", "where", "all", "any", "implies", "chain", "relation", "slice", "to", "cells", "run"), RELATION),
    **dict.fromkeys(("sum", "neg", "union"), SUM),
    **dict.fromkeys(("dot", "odot", "times", "operator", "intersection", "/"), OPERATION),
    **dict.fromkeys(("product", "big", "integral", "nabla"), SIDE_BY_SIDE),
    **dict.fromkeys(("power", "transpose", "factorial", "entry", "at"), FACTOR),
}
COMMANDS = {"Re", "Cov", "KL", "Var", "diag", "erf", "lse", "logit", "sign", "std", "vec", "rank", "softmax", "tr", "strictly lower"}
TEMPLATES: dict[str, tuple[str, tuple[int, ...]]] = {  # by value or kind: the text, and the levels of the children
    "none": ("", ()),
    **dict.fromkeys(("number", "index", "name", "constant", "relation"), ("{value}", ())),
    "word": (r"\text{{{value}}}", ()),
    "dot": (r"{} \cdot {}", (CLOSED, CLOSED)),
    r"\langle": (r"\langle {}, {} \rangle", (RELATION, RELATION)),
    "odot": (r"{} \odot {}", (CLOSED, CLOSED)),
    "times": (r"{} \times {}", (CLOSED, CLOSED)),
    "union": (r"{} \cup {}", (CLOSED, CLOSED)),
    "intersection": (r"{} \cap {}", (CLOSED, CLOSED)),
    "operator": ("{} {value} {}", (CLOSED, CLOSED)),
    "/": ("{} / {}", (CLOSED, FACTOR)),
    r"\frac": (r"\frac{{{}}}{{{}}}", (RELATION, RELATION)),
    "power": ("{}^{{{}}}", (BASE, RELATION)),
    "transpose": (r"{}^\top", (BASE,)),
    "factorial": ("{}!", (BASE,)),
    "at": (r"{} \Big|_{{{}}}", (BASE, RELATION)),
    "bars": (r"\lvert {} \rvert", (RELATION,)),
    "norm": (r"\lVert {} \rVert{value}", (RELATION,)),
    "floor": (r"\lfloor {} \rfloor", (RELATION,)),
    "ceil": (r"\lceil {} \rceil", (RELATION,)),
    "iverson": ("[{}]", (RELATION,)),
    "set": (r"\{{ {} : {} \}}", (RELATION, RELATION)),
    "run": (r"{} \cdots {}", (SIDE_BY_SIDE, SIDE_BY_SIDE)),
    "slice": ("{}:{}", (SUM, SUM)),
    "range": ("{}={}", (RELATION, RELATION)),
    "implies": (r"{} \; {value} \; {}", (RELATION, RELATION)),
    "to": (r"{} \to {}{value}", (RELATION, SUM)),
}
LISTS = {"formula": r", \qquad ", "all": r", \quad ", "any": r" \lor ", "domain": ", "}


def write(node: Node, level: int = RELATION) -> str:
    """Return the LaTeX of a tree; reading it gives the same tree again."""
    if level == BASE:
        return _base(node)
    text = _WRITERS[node.kind](*node.children) if node.kind in _WRITERS else _filled(node)
    if node.kind == "chain" and node.value:
        text = rf"\text{{{node.value}}} \quad {text}" if node.value.endswith(":") else rf"{text} \quad \text{{{node.value}}}"
    own = ATOM if node.value == r"\langle" else LEVELS.get("/" if node.value == "/" else node.kind, ATOM)
    if level == CLOSED:  # the right neighbour of an operand must not be swallowed
        return _parenthesised(text) if own <= OPERATION or _ends_open(node) else text
    return _parenthesised(text) if own < level or (level == FACTOR and _ends_open(node)) else text


def _filled(node: Node) -> str:
    value, children = node.value, node.children
    match node.kind:
        case "formula":
            narrow = [child.kind == "given" and child is not children[-1] and len(child.children) == 2 for child in children]
            written = [_joined(r":\; ", child.children) if near else write(child) for child, near in zip(children, narrow, strict=True)]
            return LISTS["formula"].join(written)
        case "all" | "any" | "domain":
            return _joined(LISTS[node.kind], children)
        case "call":
            return _written_call(value, *children)
        case "big" if value == r"\dots" and children[0].children[0].kind == "range":
            letter, *ends = children[0].children[0].children
            first, last = (write(children[1].with_node(letter, end)) for end in ends)
            return rf"({first}, \dots, {last})"
        case "big":
            above = "".join(f"^{{{write(item.children[2])}}}" for item in children[0].children if item.kind == "range")
            return f"{value}_{{{write(children[0])}}}{above} {write(children[1], OPERATION)}"
        case "derivative":
            return _written_derivative(value, *children)
        case "blocks":
            rows = [row.children for row in children]
            return f"[{'; '.join(_joined(', ', row) for row in rows)}]" if value == "[" else _environment("pmatrix", rows)
        case "constant" if value == "1":
            return r"\mathbf{1}"
        case "relation" if children:
            return rf"\xrightarrow[{write(children[0])}]{{}}"
        case "transpose" if children[0].kind == "power" and write(children[0].children[1]) == "-1":
            return rf"{_base(children[0].children[0])}^{{-\top}}"
        case "norm" | "to" if value:
            value = f"{'_' if node.kind == 'norm' else '^'}{value}"
    template, levels = TEMPLATES[value if value == r"\langle" or node.kind == "over" else node.kind]
    return template.format(*map(write, children, levels), value=value)


def _parenthesised(text: str) -> str:
    tall = r"\frac" in text or r"\begin" in text or r"\sum" in text
    return rf"\left( {text} \right)" if tall else f"({text})"


def _ends_open(node: Node) -> bool:
    """Whether what follows would be read as part of the node: sums and integrals reach to the end of their term."""
    if node.kind in ("big", "integral", "nabla", "neg"):
        return True
    return node.kind in ("product", "dot", "odot", "times", "operator") and node.value != r"\langle" and _ends_open(node.children[-1])


def _base(node: Node) -> str:
    """Write what carries an index, an exponent or a sign of transposition."""
    if "^" in (node.value if node.kind == "name" else node.children[0].value if node.kind == "entry" else ""):
        return f"{{{write(node)}}}"
    if node.kind == "entry" and node.children[0].kind != "power":
        return write(node)
    return (
        _parenthesised(write(node))
        if (LEVELS.get(node.kind, ATOM) <= FACTOR and node.value != r"\langle") or node.value == "/"
        else write(node)
    )


def _joined(separator: str, nodes: Iterable[Node], level: int = RELATION) -> str:
    return separator.join(write(node, level) for node in nodes)


def _write_where(clause: Node, *conditions: Node) -> str:
    return rf"{write(clause)} \quad ({_joined(', ', conditions)})"


def _write_sum(first: Node, *rest: Node) -> str:
    text = _parenthesised(write(first)) if first.kind in ("sum", "union") else write(first)
    for term in rest:
        sign, body = ("-", term.children[0]) if term.kind == "neg" else ("+", term)
        text += f" {sign} {write(body, OPERATION)}"
    return text


def _write_product(*factors: Node) -> str:
    parts: list[str] = []
    for factor in factors:
        written = _parenthesised(write(factor)) if factor.kind == "product" else write(factor, SIDE_BY_SIDE)
        swallows = _ends_open(factor) and factor is not factors[-1]
        parts.append(_parenthesised(write(factor)) if swallows or (parts and written[:1].isdigit()) else written)
    return r"\, ".join(parts)


def _write_entry(base: Node, *indices: Node) -> str:
    family = FAMILY.match(base.value) if base.kind == "name" else None
    apart = base.kind in ("entry", "norm") or (base.kind == "name" and "_" in base.value)  # no index beneath an index: (W_Q)_{ar}
    written = f"({write(base)})" if apart else _base(base)
    if family:
        written, indices = f"{family[1]}^{{({write(indices[0])})}}", indices[1:]
    tight = {index.kind for index in indices} in ({"index"}, {"index", "name"})  # names alone, side by side, are a product
    return f"{written}_{{{_joined(' ' if tight else ', ', indices)}}}" if indices else written


def _written_call(name: str, under: Node, *arguments: Node) -> str:
    if name == r"\sqrt":
        return rf"\sqrt{{{write(arguments[0])}}}"
    function = rf"\mathrm{{{name}}}" if name in COMMANDS else r"\mathbb{E}" if name == "E" else name
    beneath = f"_{{{write(under)}}}" if under.kind != "none" else ""
    inside = _joined(r" \,\|\, " if name == "KL" else ", ", arguments)
    return function + beneath + (f"[{inside}]" if name in ("E", "Var", "Cov") else _parenthesised(inside))


def _write_integral(variable: Node, low: Node, high: Node, body: Node) -> str:
    bounds = f"_{{{write(low)}}}^{{{write(high)}}}" if low.kind != "none" else ""
    return rf"\int{bounds} {write(body, SIDE_BY_SIDE)}\,d{write(variable)}"


def _written_derivative(value: str, numerator: Node, *by: Node) -> str:
    d = r"\partial" if value == r"\partial" else r"\mathrm{d}"
    above = f"{d}^{len(by)}" if len(by) > 1 else d
    below = r"\, ".join(f"{d} {write(one, FACTOR)}" for one in by)
    return rf"\frac{{{above} {write(numerator, CLOSED)}}}{{{below}}}"


def _environment(name: str, rows: Iterable[Sequence[Node]]) -> str:
    written = r" \\ ".join(_joined(" & ", row) for row in rows)
    return rf"\begin{{{name}}} {written} \end{{{name}}}"


_WRITERS: dict[str, Callable[..., str]] = {  # of the children
    "given": lambda premise, *statements: rf"{write(premise)}: \qquad " + _joined(LISTS["formula"], statements),
    "where": _write_where,
    "chain": lambda *parts: " ".join(write(part, RELATION if part.kind == "relation" else SUM) for part in parts),
    "neg": lambda term: "-" + write(term, ATOM if term.kind == "neg" else OPERATION),
    "sum": _write_sum,
    "product": _write_product,
    "entry": _write_entry,
    "nabla": lambda under, body: (rf"\nabla_{{{write(under)}}} " if under.kind != "none" else r"\nabla ") + write(body, FACTOR),
    "integral": _write_integral,
    "tuple": lambda *entries: f"({_joined(', ', entries, SUM)})",
    "cases": lambda *cells: _environment("cases", list(zip(cells[::2], cells[1::2], strict=True))),
}
