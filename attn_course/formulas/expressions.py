"""Expressions: terms, factors, and all that may begin a factor."""

import re
from collections.abc import Callable, Iterable

from attn_course.formulas.brackets import Brackets
from attn_course.formulas.cursor import CLOSING
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tokens import DEEPEST, LONGEST, Token, tokens_of
from attn_course.formulas.tree import FAMILY, Node, bound_in

RELATIONS = frozenset(["=", "<", ">", r"\le", r"\ge", r"\ne", r"\in", r"\notin", r"\approx", r"\xrightarrow"])
ARROWS = frozenset([r"\Rightarrow", r"\iff"])
OPERATIONS = {r"\cdot": "dot", r"\odot": "odot", r"\times": "times", r"\cap": "intersection", r"\oplus": "operator", r"\uplus": "operator"}
OPERATIONS |= {r"\otimes": "operator", "*": "operator", r"\circ": "operator", r"\cup": "union"}
FUNCTIONS = {name: name for name in (r"\ln", r"\exp", r"\log", r"\cos", r"\sin", r"\tan", r"\tanh", r"\max", r"\min", r"\sigma")}
FUNCTIONS |= {r"\text{" + name + "}": name for name in ("softmax", "lse", "diag", "tr", "rank", "KL", "Var", "Cov", "Re", "strictly lower")}
FUNCTIONS |= {r"\mathbb{E}": "E"}
KNOWN = frozenset([*RELATIONS, *ARROWS, *OPERATIONS, *CLOSING.values(), r"\to", r"\top", r"\cdots", r"\partial"])
LONGEST_NAME = 60
BIG = frozenset([r"\sum", r"\prod", r"\max", r"\min", r"\arg\max", r"\arg\min", r"\lim"])
CONSTANTS = {
    r"\infty": r"\infty",
    r"\emptyset": r"\emptyset",
    r"\pi": r"\pi",
    "e": "e",
    "I": "I",
    r"\mathbf{1}": "1",
    r"\mathbb{R}": r"\mathbb{R}",
}


class Expressions(Brackets):
    """Reads expressions; a subclass reads what stands around them."""

    def __init__(self, latex: str, names: Iterable[str]) -> None:
        listed = list(names)
        self.functions = {name.removesuffix("()") for name in listed if name.endswith("()")}
        cut = {name.removesuffix("()") for name in listed} - OPERATIONS.keys()
        self.depth = 0
        super().__init__(_with_primes(tokens_of(latex, cut), self.functions))

    def chain(self) -> Node:
        """expression { relation expression }."""
        start = self.token.place[0]
        parts = [self.expression()]
        while self.text in RELATIONS:
            token = self.take()
            arrow = []
            if token.text == r"\xrightarrow":
                self.take("[")
                arrow = [self.limit()]
                self.take("]")
                if self.taken("{"):
                    self.take("}")
            parts += [Node("relation", tuple(arrow), token.text, token.place), self.expression()]
        return parts[0] if len(parts) == 1 else self.node("chain", parts, start=start)

    def limit(self) -> Node:
        r"""variable \to expression [ ^ side ]."""
        start = self.token.place[0]
        variable = self.expression()
        self.take(r"\to")
        target, side = self.expression(one_sided=True), ""
        if self.taken("^"):
            side = self.take().text
            if side not in ("+", "-"):
                self.fail("expected + or - for the side from which a limit is approached", self.tokens[self.at - 1])
        return self.node("to", (variable, target), side, start)

    def expression(self, one_sided: bool = False) -> Node:
        """[ sign ] term { sign term }."""
        start = self.token.place[0]
        terms = [self.signed(one_sided)]
        while self.text in ("+", "-"):
            terms.append(self.signed())
        return terms[0] if len(terms) == 1 else self.node("sum", terms, start=start)

    def signed(self, one_sided: bool = False) -> Node:
        """[ sign ] term."""
        start = self.token.place[0]
        if self.taken("-"):
            return self.node("neg", [self.term()], start=start)
        self.taken("+")
        if one_sided and self.token.kind == "number":
            return self.number()
        return self.term()

    def term(self) -> Node:
        """factors [ operation factors ... ], with one kind of operation."""
        start = self.token.place[0]
        left = self.side_by_side()
        first = ""
        for count in range(LONGEST):
            if self.text not in OPERATIONS and self.text != "/":
                break
            sign = self.take()
            if count == DEEPEST:
                self.fail(f"more than {DEEPEST} operations stand in a row", sign)
            if first and (first != sign.text or first == "/") and not (first == r"\cdot" and sign.text == "/"):
                self.fail(f"{first} and {sign.text} stand side by side: put one of them in parentheses", sign)
            first = sign.text
            if first == "/":
                below = self.factor()
                if self.starts_factor():
                    self.fail(r"behind a / comes one factor only: put the rest in parentheses, or use \frac", self.token)
                left = self.node("over", (left, below), "/", start)
            else:
                kind = OPERATIONS[first]
                left = self.node(kind, (left, self.side_by_side()), first if kind == "operator" else "", start)
        return left

    def side_by_side(self) -> Node:
        """factor { factor }."""
        start = self.token.place[0]
        factors = [self.factor()]
        while self.starts_factor():
            if self.token.kind == "number":
                self.fail("a number stands behind a factor: put it first, or in parentheses")
            factors.append(self.factor())
        return factors[0] if len(factors) == 1 else self.node("product", factors, start=start)

    def starts_factor(self) -> bool:
        """Whether the next token begins a factor, not something around it."""
        token, text = self.token, self.text
        if self.closers and text == self.closers[-1]:
            return False
        if self.closers and self.closers[-1] in ("]", "dx"):
            if self.closers[-1] == "]" and token.wide:
                return False
            if self.closers[-1] == "dx" and text in ("d", r"\text{d}") and self.tokens[self.at + 1].kind == "letter":
                return False
        if text == "(":  # a condition behind a clause is no factor
            depth = 0
            for i in range(self.at, self.matching(self.at)):
                depth += self.nesting(i)
                if depth == 1 and self.spelled(i) in RELATIONS:
                    return False
            return True
        if token.kind == "word":
            return text in FUNCTIONS
        return (
            token.kind in ("name", "letter", "number")
            or text in _PRIMARIES
            or text.rstrip("'") in FUNCTIONS
            or text in BIG
            or text in CONSTANTS
        )

    def factor(self) -> Node:
        """primary { _ indices | ^ exponent | ! | | at }."""
        start = self.token.place[0]
        base, raised, indexed = self.primary(), False, False
        for _ in range(DEEPEST):
            if self.text == "_":
                if indexed and not (base.kind == "entry" and len(base.children) == 2 and FAMILY.match(base.children[0].value)):
                    self.fail("an index stands beneath an index: write all of them in one pair of braces")
                base, indexed = self.node("entry", self.with_indices(base, indexed), start=start), True
            elif self.text == "^":
                if raised and self.spelled(self.at + 1) != r"\top":
                    self.fail("a second exponent: put what carries it in parentheses")
                base, raised = self.raised(base, start), True
            elif self.taken("!"):
                base = self.node("factorial", [base], start=start)
            elif self.text == r"\mvert":
                self.take()
                self.take("_")
                base = self.node("at", (base, self.grouped_by_braces(self.chain)), start=start)
            else:
                return base
        self.fail(f"more than {DEEPEST} signs are attached to one factor")
        raise AssertionError

    def with_indices(self, base: Node, again: bool = False) -> list[Node]:
        """Return what carries the indices, and them."""
        self.take("_")
        return [*(base.children if again else [base]), *self.indices()]

    def indices(self) -> list[Node]:
        """Read what stands beneath: letters side by side are indices, else expressions with commas between."""
        if self.text != "{":
            return [self.argument()]
        inside = self.tokens[self.at + 1 : self.matching(self.at)]
        if not inside:
            self.fail("expected an index")
        if inside[0].kind in ("letter", "name") and all(token.kind in ("letter", "name", "number") for token in inside):
            self.take("{")
            found = [self.primary() for _ in inside]
            self.take("}")
            return found
        self.take("{")
        return self.listed(self.index, "}")

    def index(self) -> Node:
        """expression [ : expression ]."""
        start = self.token.place[0]
        first = self.expression()
        return self.node("slice", (first, self.expression()), start=start) if self.taken(":") else first

    def raised(self, base: Node, start: int) -> Node:
        """Read what stands above: a sign of transposition, or an exponent."""
        self.take("^")
        if self.taken(r"\top"):
            return self.node("transpose", [base], start=start)
        if self.text == "{" and [self.spelled(self.at + i) for i in (1, 2, 3)] == ["-", r"\top", "}"]:
            self.at += 4
            minus_one = Node("neg", (Node("number", value="1"),))
            return self.node("transpose", [self.node("power", (base, minus_one), start=start)], start=start)
        if self.token.kind == "letter" and self.token.text == "T":
            self.fail(r"T is not given here; for the transpose write ^\top")
        exponent = self.argument()
        if self.text == "_":  # x^2_i is (x_i)^2
            base = self.node("entry", self.with_indices(base), start=start)
        return self.node("power", (base, exponent), start=start)

    def argument(self) -> Node:
        r"""Read one argument as TeX does: a group in braces, one digit, or one sign; a sign of a function takes its own argument."""
        token = self.token
        if token.kind == "number" and not token.braced and len(token.text) > 1:
            rest = Token("number", token.text[1:], (token.place[0] + 1, token.place[1]))
            self.tokens[self.at : self.at + 1] = [Token("number", token.text[0], (token.place[0], token.place[0] + 1)), rest]
        return self.grouped_by_braces(self.expression) if self.text == "{" else self.primary()

    def grouped_by_braces(self, rule: Callable[[], Node]) -> Node:
        """{ rule }, or the rule alone."""
        if self.text != "{":
            return rule()
        return self.enclosed("{", rule)

    def primary(self) -> Node:
        """Read what a factor begins with, not too deep."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"more than {DEEPEST} parentheses, functions and scripts stand in each other")
        found = self.beginning()
        self.depth -= 1
        return found

    def beginning(self) -> Node:
        """Number, symbol, function, bracket, sum, fraction, ..."""
        token, text = self.token, self.text
        start = token.place[0]
        if token.kind == "number":
            return self.number()
        if token.text == "e" and self.spelled(self.at + 1) == "^":
            return Node("constant", (), self.take().text, token.place)
        if token.kind == "name":
            return self.name()
        if text in _PRIMARIES:
            return _PRIMARIES[text](self, start)
        if text in (r"\max", r"\min") and self.spelled(self.at + 1) != "_":
            return self.call(FUNCTIONS[text], start)
        if text in BIG:
            return self.big(start)
        if text.rstrip("'") in FUNCTIONS:
            return self.call(FUNCTIONS[text.rstrip("'")] + text[len(text.rstrip("'")) :], start)
        if text in CONSTANTS:
            return Node("constant", (), CONSTANTS[self.take().text], token.place)
        if token.kind == "letter":
            return Node("index", (), self.take().text, token.place)
        if token.kind == "word":
            self.fail(f"{token.text} is neither given nor known")
        if token.kind == "command" and re.fullmatch(r"\\[A-Za-z]+", token.text) and text not in KNOWN:
            self.fail(f"{token.text} is not known")
        self.fail("expected a number, a symbol, a function or a parenthesis")
        raise AssertionError

    def number(self) -> Node:
        """a number as it is printed."""
        token = self.take()
        return Node("number", (), token.text, token.place)

    def name(self) -> Node:
        """a name, or a call if it is that of a function."""
        token = self.take()
        if token.text not in self.functions and token.text.rstrip("'") not in self.functions:
            return Node("name", (), token.text, token.place)
        return self.call(token.text, token.place[0], read_name=False)

    def call(self, name: str, start: int, read_name: bool = True) -> Node:
        """function [ _ beneath ] [ ^ power ] ( arguments ), or a function and one factor."""
        function = self.take() if read_name else self.tokens[self.at - 1]
        under, power = Node("none"), None
        while self.text in ("_", "^"):
            if self.text == "_" and under.kind == "none":
                self.take()
                under = self.beneath()
            elif self.text == "^" and power is None and read_name:
                self.take()
                power = self.argument()
            else:
                break
        if self.text == "(" or (self.text == "[" and name in ("E", "Var", "Cov")):
            closing = CLOSING[self.take().text]
            self.closers.append(r"\|" if name == "KL" else "")
            arguments = self.listed(self.expression, closing, (",", r"\|", r"\rVert", r"\lVert") if name == "KL" else (",", ";"))
            self.closers.pop()
        elif not read_name:
            self.fail(f"{function.text} is a function: expected its argument in parentheses")
        else:
            arguments = [self.factor()]
            if self.text == "(" and self.starts_factor():
                self.fail(f"{function.text} takes one factor only: put its whole argument in parentheses")
        called = self.node("call", [under, *arguments], name, start)
        return called if power is None else self.node("power", (called, power), start=start)

    def beneath(self) -> Node:
        """Read what stands beneath a function: an index, a number, a name, or a word such as rows."""
        if self.token.kind == "word" and self.text not in FUNCTIONS:
            return Node("word", (), self.take().text, self.tokens[self.at - 1].place)
        return self.argument()

    def big(self, start: int) -> Node:
        r"""\sum and its like _ { domain } [ ^ last ] term."""
        operator = self.take().text
        if self.text != "_":
            self.fail(f"expected an index beneath {operator}")
        self.take("_")
        first = self.token.place[0]
        if self.text == "{":
            self.take("{")
            items = self.listed(self.limit_or_chain if operator == r"\lim" else self.chain, "}")
        else:
            items = [self.argument()]
        if self.taken("^"):
            upper = self.argument()
            item = items[0]
            if item.kind != "chain" or len(items) > 1 or item.children[1].value != "=" or item.children[0].kind != "index":
                raise Malformed(f"expected one index and where it starts, such as j = 1, beneath {operator}", item.place)
            items = [Node("range", (item.children[0], item.children[2], upper), place=item.place)]
        for item in items:
            if item.kind == "chain" and item.children[0].kind == "index" and item.children[1].value == "=":
                raise Malformed(f"expected where {item.children[0].value} ends, above {operator}", item.place)
            if operator not in (r"\lim", r"\arg\min") and not bound_in(item):
                raise Malformed(f"expected an index beneath {operator}, one that is not given", item.place)
        domain = self.node("domain", items, start=first)
        return self.node("big", (domain, self.term()), operator, start)

    def limit_or_chain(self) -> Node:
        r"""x \to 0, or a condition behind it."""
        inside = [self.spelled(i) for i in range(self.at, len(self.tokens))]
        ends = [i for i, text in enumerate(inside) if text in (",", r"\to", "}")]
        return self.limit() if r"\to" in inside and inside[ends[0]] == r"\to" else self.chain()

    def root(self, start: int) -> Node:
        """the root of one argument."""
        self.take(r"\sqrt")
        return self.node("call", (Node("none"), self.argument()), r"\sqrt", start)

    def fraction(self, start: int) -> Node:
        """a fraction, or a derivative."""
        self.take(r"\frac")
        inside = self.spelled(self.at + 1) if self.text == "{" else self.text
        if inside in (r"\partial", r"\text{d}"):
            return self.derivative(inside, start)
        return self.node("over", (self.argument(), self.argument()), r"\frac", start)

    def derivative(self, d: str, start: int) -> Node:
        """d numerator over d by, or d over d by and a term behind."""
        braced = self.taken("{")
        self.take(d)
        order = 1
        if self.taken("^"):
            self.take("2")
            order = 2
        numerator = None
        if braced and self.text != "}":
            numerator = self.term()
        if braced:
            self.take("}")
        self.take("{")
        by: list[Node] = []
        while self.taken(d):
            one = self.factor()
            twice = one.kind == "power" and one.children[1] == Node("number", (), "2")
            by += [one.children[0]] * 2 if twice else [one]
        closing = self.take("}")
        if len(by) != order:
            self.fail(f"the derivative above has order {order}, the one beneath {len(by)}", closing)
        body = numerator or self.term()
        return self.node("derivative", (body, *by), d.removeprefix(r"\text{").removesuffix("}"), start)

    def gradient(self, start: int) -> Node:
        r"""\nabla [ _ by ] factor."""
        self.take(r"\nabla")
        under = Node("none")
        if self.taken("_"):
            under = self.argument()
        return self.node("nabla", (under, self.factor()), start=start)

    def integral(self, start: int) -> Node:
        r"""\int [ _ low ^ high ] term d variable."""
        self.take(r"\int")
        low = high = Node("none")
        if self.taken("_"):
            low = self.argument()
            self.take("^")
            high = self.argument()
        self.closers.append("dx")
        body = self.term()
        self.closers.pop()
        if not self.taken("d", r"\text{d}"):
            self.fail("expected the d of the variable of integration")
        variable = self.take()
        return self.node("integral", (Node("index", (), variable.text, variable.place), low, high, body), start=start)


_PRIMARIES: dict[str, Callable[[Expressions, int], Node]] = {
    "(": Expressions.parenthesis,
    "[": Expressions.bracket,
    "{": Expressions.group,
    r"\{": Expressions.braces,
    **dict.fromkeys(("|", r"\|", r"\lvert", r"\lVert"), Expressions.bars),
    **dict.fromkeys((r"\lfloor", r"\lceil"), Expressions.rounded),
    r"\langle": Expressions.angles,
    r"\frac": Expressions.fraction,
    r"\sqrt": Expressions.root,
    r"\nabla": Expressions.gradient,
    r"\int": Expressions.integral,
    **dict.fromkeys((r"\begin{pmatrix}", r"\begin{bmatrix}", r"\begin{cases}"), Expressions.environment),
}


def _with_primes(tokens: list[Token], functions: set[str]) -> list[Token]:
    """Join a symbol with the primes behind it: f' is the derivative of a function f, else a symbol of its own."""
    new: list[Token] = []
    for token in tokens:
        if (
            token.text == "'"
            and token.kind == "mark"
            and new
            and (new[-1].kind in ("letter", "name") or new[-1].text.rstrip("'") in FUNCTIONS)
        ):
            before = new.pop()
            is_function = before.text.rstrip("'") in functions | set(FUNCTIONS)
            if len(before.text) > LONGEST_NAME:
                raise Malformed("too many primes", token.place)
            token = Token(before.kind if is_function else "letter", before.text + "'", (before.place[0], token.place[1]), wide=before.wide)
        new.append(token)
    return new
