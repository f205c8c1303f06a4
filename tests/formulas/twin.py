"""A second evaluator, independent of the first: plain floats, one index at a time, nested loops; and random formulas it understands."""

import math

from hypothesis import strategies as st

from attn_course.formulas import Node

LENGTHS = {"x": (3,), "y": (3,), "A": (3, 4), "B": (4, 3), "u": (4,)}


def value(node, givens, at):
    """The value of a number-valued tree where the index letters have the values `at` (counted from 1)."""
    children = node.children

    def inner(child, **more):
        return value(child, givens, {**at, **more})

    match node.kind:
        case "number":
            return float(node.value)
        case "index":
            return float(at[node.value])
        case "entry":
            entry = givens[children[0].value]
            for index in children[1:]:
                entry = entry[round(inner(index)) - 1]
            return entry
        case "sum":
            total = 0.0
            for term in children:
                total += inner(term)
            return total
        case "neg":
            return -inner(children[0])
        case "product":
            return math.prod(inner(factor) for factor in children)
        case "dot":
            return inner(children[0]) * inner(children[1])
        case "over":
            return inner(children[0]) / inner(children[1])
        case "power":
            base = math.e if children[0].kind == "constant" else inner(children[0])
            return base ** inner(children[1])
        case "call":
            arguments = [inner(argument) for argument in children[1:]]
            functions = {r"\tanh": math.tanh, r"\cos": math.cos, r"\max": max, r"\min": min}
            return functions[node.value](*arguments)
        case "bars":
            return abs(inner(children[0]))
        case "iverson":
            return float(holds(children[0], givens, at))
        case "cases":
            return next((inner(children[i]) for i in range(0, len(children), 2) if holds(children[i + 1], givens, at)), math.nan)
        case "big":
            return big(node, givens, at)
    raise AssertionError(node.kind)


def holds(chain, givens, at):
    left, relation, right = chain.children
    a, b = value(left, givens, at), value(right, givens, at)
    return {"=": a == b, r"\ne": a != b, r"\le": a <= b, "<": a < b, r"\ge": a >= b, ">": a > b}[relation.value]


def big(node, givens, at):
    domain, body = node.children
    (item,) = domain.children
    condition = None
    if item.kind == "range":
        letter, low, high = item.children
        values = range(round(value(low, givens, at)), round(value(high, givens, at)) + 1)
    else:
        letter = item if item.kind == "index" else item.children[0]
        values = range(1, length_of(letter.value, body) + 1)
        condition = item if item.kind == "chain" else None
    found = []
    for number in values:
        here = {**at, letter.value: number}
        if condition is None or holds(condition, givens, here):
            found.append(value(body, givens, here))
    return {r"\sum": sum, r"\prod": math.prod, r"\max": max, r"\min": min}[node.value](found)


def length_of(letter, node):
    """How many values a letter has: the length of what it subscripts, here by its kind (i and its like have 3, j and its like 4)."""
    for one in node.walk():
        if one.kind == "entry":
            for place, index in enumerate(one.children[1:]):
                if index.value == letter and index.kind == "index":
                    return LENGTHS[one.children[0].value][place]
    raise AssertionError(letter)


def node(kind, *children, value=""):
    return Node(kind, tuple(children), value)


def letter(name):
    return node("index", value=name)


def relation(left, sign, right):
    return node("chain", left, node("relation", value=sign), right)


@st.composite
def scalars(draw, depth=3, threes=("i",), fours=("j",)):
    """A number-valued tree; `threes` are the letters in scope that run to 3, `fours` those that run to 4."""
    three, four = st.sampled_from(threes).map(letter), st.sampled_from(fours).map(letter)

    def entry(name, *indices):
        return node("entry", node("name", value=name), *[draw(index) for index in indices])

    if depth == 0:
        match draw(st.integers(0, 4)):
            case 0:
                return node("number", value=draw(st.sampled_from(["2", "3", "0.5"])))
            case 1:
                return entry(draw(st.sampled_from("xy")), three)
            case 2:
                return entry("A", three, four)
            case 3:
                return entry("B", four, three)
        return entry("u", four)

    def deeper():
        return draw(scalars(depth - 1, threes, fours))

    match draw(st.integers(0, 9)):
        case 0:
            return node("sum", deeper(), draw(st.sampled_from([deeper(), node("neg", deeper())])))
        case 1:
            return node("product", deeper(), node("sum", node("number", value="1"), node("neg", deeper())))
        case 2:
            return node("power", node("constant", value="e"), node("call", node("none"), deeper(), value=r"\cos"))
        case 3:
            return node("call", node("none"), deeper(), value=r"\tanh")
        case 4:
            below = node("sum", node("number", value="2"), node("power", deeper(), node("number", value="2")))
            return node("over", deeper(), below, value=draw(st.sampled_from(["/", r"\frac"])))
        case 5 | 6:
            name = f"{'klm'[len(threes) - 1]}"
            body = draw(scalars(depth - 1, (name, *threes), fours))
            body = node("product", node("entry", node("name", value="x"), letter(name)), body)
            signs = st.sampled_from(["=", r"\ne", r"\le", "<", r"\ge"])
            domain = draw(
                st.sampled_from(
                    [
                        letter(name),
                        node("range", letter(name), node("number", value="1"), node("number", value="3")),
                        node("range", letter(name), letter(threes[0]), node("number", value="3")),
                        relation(letter(name), draw(signs), letter(threes[-1])),
                    ]
                )
            )
            if domain.kind == "chain" and domain.children[1].value == "=":
                domain = relation(letter(name), r"\le", letter(threes[-1]))
            operator = draw(st.sampled_from([r"\sum", r"\prod", r"\max", r"\min"]))
            if operator in (r"\max", r"\min") and domain.kind == "chain":
                domain = letter(name)
            return node("big", node("domain", domain), body, value=operator)
        case 7:
            return node("bars", deeper())
        case 8:
            return node("product", node("iverson", relation(draw(three), draw(st.sampled_from(["=", "<", r"\ge"])), draw(four))), deeper())
    condition = relation(draw(three), draw(st.sampled_from(["<", r"\ge"])), draw(four))
    opposite = relation(condition.children[0], r"\ge" if condition.children[1].value == "<" else "<", condition.children[2])
    return node("cases", deeper(), condition, deeper(), opposite)


@st.composite
def tables(draw, rows, columns, depth=3):
    """A matrix-valued tree of a shape, with what computes it from lists of lists by loops."""
    stored = {(3, 4): "A", (4, 3): "B", (3, 3): "S", (4, 4): "T"}
    if depth == 0:
        name = stored[rows, columns]
        return node("name", value=name), lambda givens: givens[name]
    inner = draw(st.sampled_from([3, 4]))
    match draw(st.integers(0, 5)):
        case 0 | 1:
            (left, one), (right, two) = draw(tables(rows, inner, depth - 1)), draw(tables(inner, columns, depth - 1))

            def product(givens):
                a, b = one(givens), two(givens)
                return [[sum(a[i][k] * b[k][j] for k in range(inner)) for j in range(columns)] for i in range(rows)]

            return node("product", left, right), product
        case 2:
            tree, table = draw(tables(columns, rows, depth - 1))

            def transposed(givens):
                a = table(givens)
                return [[a[j][i] for j in range(columns)] for i in range(rows)]

            return node("transpose", tree), transposed
        case 3:
            (left, one), (right, two) = draw(tables(rows, columns, depth - 1)), draw(tables(rows, columns, depth - 1))

            def difference(givens):
                a, b = one(givens), two(givens)
                return [[a[i][j] - b[i][j] for j in range(columns)] for i in range(rows)]

            return node("sum", left, node("neg", right)), difference
        case 4:
            (left, one), (right, two) = draw(tables(rows, columns, depth - 1)), draw(tables(rows, columns, depth - 1))

            def entrywise(givens):
                a, b = one(givens), two(givens)
                return [[a[i][j] * b[i][j] for j in range(columns)] for i in range(rows)]

            return node("odot", left, right), entrywise
    tree, table = draw(tables(rows, columns, depth - 1))

    def softmax(givens):
        exponentials = [[math.exp(entry - max(line)) for entry in line] for line in table(givens)]
        return [[entry / sum(line) for entry in line] for line in exponentials]

    return node("call", node("none"), tree, value="softmax"), softmax
