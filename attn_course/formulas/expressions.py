"""Expressions: terms, factors, and all that may begin a factor."""

import difflib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from attn_course.formulas.brackets import Brackets
from attn_course.formulas.cursor import CLOSING, INSTEAD, placed
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tokens import DEEPEST, LETTERS, NESTING, Token, argument_end, matching, tokens_of
from attn_course.formulas.tree import FAMILY, Node, bound_in

ARROW = r"\xrightarrow"
RELATIONS = frozenset(["=", "<", ">", r"\le", r"\ge", r"\ne", r"\in", r"\notin", r"\approx", ARROW])
GOES = {r"\to": ""} | dict.fromkeys((r"\downarrow", r"\searrow"), "+") | dict.fromkeys((r"\uparrow", r"\nearrow"), "-")
ARROWS = frozenset([r"\Rightarrow", r"\iff"])
OPERATIONS = {r"\cdot": "dot", r"\odot": "odot", r"\times": "times", r"\cap": "intersection", r"\cup": "union"}
OPERATIONS |= dict.fromkeys((r"\bmod", r"\text{mod}"), "mod")
OPERATIONS |= dict.fromkeys((r"\oplus", r"\uplus", r"\otimes", "*", r"\circ"), "operator")
FUNCTIONS = {
    name: name for name in (r"\ln", r"\exp", r"\log", r"\cos", r"\sin", r"\tan", r"\tanh", r"\sinh", r"\cosh", r"\max", r"\min", r"\sigma")
}
FUNCTIONS |= {r"\text{" + name + "}": name for name in ("softmax", "lse", "diag", "tr", "rank", "KL", "Var", "Cov", "Re", "strictly lower")}
FUNCTIONS |= {r"\text{sign}": "sign", r"\text{vec}": "vec"}
_OTHERS = "Softmax=softmax LSE=lse logsumexp=lse LogSumExp=lse Diag=diag Tr=tr trace=tr rk=rank sgn=sign var=Var cov=Cov sd=std"
FUNCTIONS |= {rf"\text{{{name}}}": known for name, known in (pair.split("=") for pair in _OTHERS.split())}
FUNCTIONS |= {
    r"\text{E}": "E",
    r"\mathbb{E}": "E",
    r"\mathbf{E}": "E",
    r"\mathbb{V}": "Var",
    r"\text{std}": "std",
    r"\text{logit}": "logit",
    r"\text{erf}": "erf",
}
BIG = frozenset([r"\sum", r"\prod", r"\max", r"\min", r"\arg\max", r"\arg\min", r"\lim"])
SPLIT = (r"\sum", r"\prod", r"\max", r"\min")  # what may be taken over one index after the other
CONSTANTS = {name: name for name in (r"\infty", r"\emptyset", r"\pi", "e", "I", r"\mathbb{R}")} | dict.fromkeys(
    (r"\mathbf{1}", r"\mathbb{1}"), "1"
)
KNOWN = frozenset([*RELATIONS, *ARROWS, *OPERATIONS, *CLOSING.values(), *GOES, r"\top", r"\cdots", r"\partial", r"\qquad"])
WRITTEN_OUT = (
    r"\text{ReLU}",
    r"\text{relu}",
    r"\text{sigmoid}",
    r"\text{Concat}",
    r"\text{concat}",
    r"\text{logaddexp}",
)  # by what the functions here say
RUN = re.compile(r"(=|\\in \\\{) (0 , 1|1 , 2|[0-9]+) , \\cdots ,")
QUANTIFIERS = (r"\forall", r"\text{for all}", r"\text{for every}", r"\text{for each}", r"\text{for any}")
CONDITIONALS = tuple(rf"\text{{{word}}}" for word in ("for", "if", "where", "when", "whenever"))
TOGETHER = (r"\cos", r"\sin", r"\tan", "tr")  # what is taken of a product of symbols without parentheses too
NONE = Node("none")
ALL = Node("word", (), ":")  # beneath a matrix: all that there are
EVERY = (r"\cdot", "*")  # what may stand for it
SPELLED = {name.removeprefix("\\"): name for name in (*FUNCTIONS, *BIG, r"\sqrt", r"\frac") if re.fullmatch(r"\\[a-z]+", name)}
SPELLED |= {name.removeprefix("\\"): name for name in LETTERS if len(name) > 4}
SPELLED |= {name: rf"\mathrm{{{name}}}" for name in {*FUNCTIONS.values()} - {"std"} if re.fullmatch("[a-z]+", name)}
_ONES = (Node("constant", (), "1"), Node("number", (), "1"))
_COMMANDS = sorted(
    name for name in (*LETTERS, *FUNCTIONS, *BIG, *KNOWN, *CONSTANTS, r"\sqrt", r"\frac", r"\binom") if name.startswith("\\")
)
_ORDER = re.compile(r"\^ \{ \( ([1-9]) \) \}")
_FIRST_LETTERS = {word[0] for word in SPELLED}


class Expressions(Brackets):
    """Reads expressions; a subclass reads what stands around them."""

    def __init__(self, latex: str, names: Iterable[str]) -> None:
        listed = list(names)
        self.functions = {name.removesuffix("()") for name in listed if name.endswith("()")}
        cut = {name.removesuffix("()") for name in listed} - OPERATIONS.keys()
        self.latex, self.depth = latex, 0
        super().__init__(_with_primes(tokens_of(latex, cut), self.functions))

    @placed
    def chain(self) -> Node:
        r"""expression { relation expression }, or variable \to expression [ ^ side ], or i = 1, \dots, n."""
        if self.is_run(self.at):
            return self.run()
        parts = [self.expression()]
        if self.text in GOES:
            side = GOES[self.take().text]
            if self.token.kind == "number" and self.texts(1) == ["^"]:  # 0^+ is no power
                target = self.leaf("number")
                self.take("^")
                side = self.take().text
            else:
                target = self.expression()
            if side not in ("", "+", "-"):
                raise self.wrong("expected + or - for the side from which a limit is approached", self.tokens[self.at - 1])
            parts = [Node("to", (parts[0], target), side, (parts[0].place[0], target.place[1]))]
        while self.text in RELATIONS:
            token = self.take()
            limit: tuple[Node, ...] = ()
            if token.text == ARROW:
                with self.inside("["):
                    limit = (self.chain(),)
                    if limit[0].kind != "to":
                        raise self.wrong(r"expected \to")
                if self.taken("{"):
                    self.take("}")
            parts += [Node("relation", limit, token.text, token.place), self.expression()]
        return parts[0] if len(parts) == 1 else Node("chain", tuple(parts))

    def is_run(self, at: int) -> bool:
        r"""Whether i = 1, \dots, n stands there, or i \in \{1, \dots, n\}."""
        if self.tokens[at].kind != "letter" or self.tokens[at + 1].text not in ("=", r"\in"):
            return False
        return bool(RUN.match(" ".join(one.spelled for one in self.tokens[at + 1 : at + 9])))

    def run(self) -> Node:
        r"""Read i = 1, \dots, n as 1 \le i \le n."""
        letter, opened = self.leaf("index"), self.take().text == r"\in" and self.taken(r"\{")
        low, at_most = self.leaf("number"), Node("relation", (), r"\le", letter.place)
        while not self.taken(r"\cdots"):
            self.take()
        self.take(",")
        found = Node("chain", (low, at_most, letter, at_most, self.expression()))
        if opened:
            self.take(r"\}")
        return found

    @placed
    def expression(self) -> Node:
        """[ sign ] term { sign term }."""
        terms = [self.signed()]
        while self.text in ("+", "-"):
            dots = self.texts(1) == [r"\cdots"] and self.take() and self.take()
            terms.append(self.signed())
            if dots:
                terms.append(self.dotted(terms, r"\sum"))
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    @placed
    def signed(self) -> Node:
        """[ sign ] term."""
        if self.taken("-"):
            return Node("neg", (self.term(),))
        self.taken("+")
        return self.term()

    def term(self) -> Node:
        """factors [ operation factors ... ], with one kind of operation."""
        start, first = self.token.place[0], ""
        left = self.side_by_side()
        for count in range(DEEPEST + 1):
            if self.text not in OPERATIONS and self.text != "/":
                break
            sign = self.take()
            if sign.text == self.text == "*":
                raise self.wrong("for a power write ^{...}", sign)
            if count == DEEPEST:
                raise self.wrong(f"more than {DEEPEST} operations stand in a row", sign)
            if first and (first != sign.text or first == "/") and not (first == r"\cdot" and sign.text == "/"):
                raise self.wrong(f"{first} and {sign.text} stand side by side: put one of them in parentheses", sign)
            first = sign.text
            kind = OPERATIONS.get(first, "over")
            right = self.factor() if kind == "over" else self.side_by_side()
            if kind == "over" and self.starts_factor():
                raise self.wrong(r"behind a / comes one factor only: put the rest in parentheses, or use \frac", self.token)
            if first == r"\circ" and first not in self.functions:
                kind = "odot"
            left = Node(kind, (left, right), first if kind in ("over", "operator") else "", self.since(start))
            if kind == "mod":
                whole = Node("floor", (replace(left, kind="over", value="/"),), "", left.place)
                left = Node("sum", (left.children[0], Node("neg", (Node("product", (right, whole)),))), "", left.place)
        return left

    @placed
    def side_by_side(self) -> Node:
        """factor { factor }."""
        factors = [self.factor()]
        while self.starts_factor():
            if self.token.kind == "number":
                self.refuse_number_behind(self.tokens[self.at - 1])
            factors.append(self.factor())
        return factors[0] if len(factors) == 1 else Node("product", tuple(factors))

    def refuse_number_behind(self, before: Token) -> None:
        r"""Refuse a number right behind a factor, which may be meant for an index or a power: x2, but not x\, 2 or (x) 2 or x 1_{i = j}."""
        space = self.latex[before.place[1] : self.token.place[0]]
        if before.kind == "number" and not space:
            raise self.wrong(f"only {before.text} stands above or beneath: put {before.text}{self.token.text} in braces")
        is_condition = self.token.text == "1" and self.texts(1)[0] in ("_", "[", r"\{")
        if before.kind == "number" or not (is_condition or "\\" in space or before.text in (")", "]")):
            raise self.wrong("a number stands behind a factor: put it first, or in parentheses")

    def starts_factor(self) -> bool:
        """Whether the next token begins a factor, not something around it."""
        token, text, stop = self.token, self.text, self.stops[-1]
        if text == stop or (stop == "]" and token.wide):
            return False
        if stop == "dx" and text in ("d", r"\text{d}") and self.tokens[self.at + 1].kind == "letter":
            return False
        if text == "(":  # a condition behind a clause is no factor
            depth = 0
            for one in self.tokens[self.at : matching(self.tokens, self.at)]:
                depth += NESTING.get(one.spelled, 0)
                if depth == 1 and (one.spelled in RELATIONS or one.spelled in GOES):
                    return False
            return True
        begins = text in _PRIMARIES or text in BIG or text in CONSTANTS or text.rstrip("'") in FUNCTIONS
        return begins or token.kind in ("name", "letter", "number")

    def factor(self) -> Node:
        """primary { _ indices | ^ exponent | ! | | at }."""
        self.refuse_spelled()
        start = self.token.place[0]
        base, raised, indexed, above = self.primary(), False, False, False
        if base in _ONES and (self.is_condition("[") or self.is_condition(r"\{")):
            with self.inside(self.text, stop="]"):
                base = Node("iverson", (self.chain(),), "", self.since(start))
        for _ in range(DEEPEST):
            sign = self.token
            if self.taken("_"):
                family = base.kind == "entry" and len(base.children) == 2 and FAMILY.match(base.children[0].value)
                if indexed and not above and not family:
                    raise self.wrong("an index stands beneath an index: write all of them in one pair of braces", sign)
                if base in _ONES and self.is_condition("{"):
                    with self.inside("{"):
                        base, indexed = Node("iverson", (self.chain(),), "", self.since(start)), True
                    continue
                if self.text == "+" and base.kind != "name":
                    plus = self.take()
                    base = Node("call", (NONE, Node("number", (), "0", plus.place), base), r"\max", self.since(start))
                    continue
                carrier, indices = base.children if indexed else (base,), self.indices()
                if base == Node("constant", (), "e") and len(indices) == 1:
                    carrier = (Node("constant", (), "1"),)
                if ALL in indices:
                    base, indexed, above = self.rows_or_column(carrier, indices, sign, start), True, False
                    continue
                if base == Node("index", (), r"\delta") and len(indices) == 1 and indices[0].kind == "product":
                    indices = indices[0].children  # \delta_{a_i b_j}
                base, indexed, above = Node("entry", (*carrier, *indices), "", self.since(start)), True, False
            elif self.is_index_above(base):
                self.take("^")
                inner, rest = (base.children[0], base.children[1:]) if indexed else (base, ())
                with self.inside("{"):
                    index = self.primary()
                base, above, indexed = Node("entry", (inner, index, *rest), "", self.since(start)), not indexed, True
            elif self.taken("^"):
                if raised and self.text != r"\top":
                    raise self.wrong("a second exponent: put what carries it in parentheses", sign)
                base, raised = self.raised(base, start), True
            elif self.taken("!"):
                base = Node("factorial", (base,), "", self.since(start))
            elif self.taken(r"\mvert"):
                self.take("_")
                with self.inside("{"):
                    where = self.chain()
                base = Node("at", (base, where), "", self.since(start))
            else:
                return base
        raise self.wrong(f"more than {DEEPEST} signs are attached to one factor")

    def is_index_above(self, base: Node) -> bool:
        """Whether a letter in parentheses stands above a symbol, as in x^{(i)} for x_i: such is no power."""
        inside = self.tokens[self.at + 3].kind == "letter" if self.text == "^" and self.texts(2) == ["{", "("] else False
        return inside and self.texts(5)[3:] == [")", "}"] and (base.children[0] if base.kind == "entry" else base).kind == "name"

    def refuse_spelled(self) -> None:
        """Refuse letters that spell a function with its argument: each is read for itself, as a symbol or an index."""
        if self.token.text not in _FIRST_LETTERS or (self.at and self.tokens[self.at - 1].text == "_"):
            return
        end = self.at + 1
        while _is_behind(self.tokens[end - 1], self.tokens[end]) and re.fullmatch("[A-Za-z]", self.tokens[end].text):
            end += 1
        letters, behind = self.tokens[self.at : end], self.tokens[end]
        word, place = "".join(token.text for token in letters), (letters[0].place[0], letters[-1].place[1])
        apart = not _is_behind(letters[-1], behind) and behind.kind in ("name", "letter", "number")
        meant = SPELLED.get(word) in LETTERS or apart or behind.text in ("(", "{", "_", "[", "^")
        if word in SPELLED and meant and any(token.kind != "name" for token in letters):
            raise Malformed(f"write {SPELLED[word]}: each letter of {word} is read for itself", place)

    def is_condition(self, opening: str) -> bool:
        """Whether a relation stands there in a bracket that opens so, and no set by a condition."""
        inside = {token.spelled for token in self.tokens[self.at + 1 : matching(self.tokens, self.at)]} if self.text == opening else set()
        return bool(inside & RELATIONS) and not inside & {":", "|"}

    def indices(self) -> tuple[Node, ...]:
        """Read what stands beneath: letters side by side are indices, but givens alone a product; else expressions with commas between."""
        if self.text != "{":
            return (_as_index(self.argument()),)
        inside = self.tokens[self.at + 1 : matching(self.tokens, self.at)]
        if not inside:
            raise self.wrong("expected an index")
        with self.inside("{"):
            if _stands_for_all(inside):
                return self.indices_with_all(inside)
            if len(inside) > 1 and all(token.kind == "name" for token in inside):
                return (self.side_by_side(),)
            if (inside[0].kind in ("letter", "name") or inside[0].text == "1") and all(
                token.kind in ("letter", "name", "number") for token in inside
            ):
                return tuple([_as_index(self.primary()) for _ in inside])
            return tuple(map(_as_index, self.listed(self.index)))

    def indices_with_all(self, inside: Sequence[Token]) -> tuple[Node, ...]:
        r"""Read i,: or :,j or i\cdot or \cdot j, where a colon or a dot stands for all that there are."""
        if not {",", *EVERY} & {one.text for one in inside}:
            raise self.wrong(r"row i of A is A_i or A_{i,:}, column j is A_{:,j}", inside[0])
        found = list[Node]()
        while self.text != "}":
            found.append(ALL if self.taken(":", *EVERY) else _as_index(self.factor()))
            self.taken(",")
        return tuple(found)

    def rows_or_column(self, carrier: tuple[Node, ...], indices: tuple[Node, ...], sign: Token, start: int) -> Node:
        """Return A_{i,:}, a row, or A_{:,j}, a column; others may stand before."""
        *before, last = carrier + indices
        while before and last == ALL:
            *before, last = before
        if ALL not in before:
            return Node("entry", (*before, last), "", self.since(start)) if before else last
        if before.count(ALL) > 1 or before[-1] != ALL:
            raise self.wrong(r"row i of A is A_i or A_{i,:}, column j is A_{:,j}", sign)
        *before, _ = before
        table = before[0] if len(before) == 1 else Node("entry", tuple(before), "", self.since(start))
        row = Node("entry", (Node("transpose", (table,), "", self.since(start)), last), "", self.since(start))
        return Node("transpose", (row,), "", self.since(start))

    @placed
    def index(self) -> Node:
        """expression [ : expression ]."""
        first = self.expression()
        return Node("slice", (first, self.expression())) if self.taken(":") else first

    def raised(self, base: Node, start: int) -> Node:
        """Read what stands above: a sign of transposition, or an exponent."""
        if self.taken(r"\top"):
            return Node("transpose", (base,), "", self.since(start))
        if self.text == "{" and self.texts(3) == ["-", r"\top", "}"]:
            self.at += 4
            minus_one = Node("neg", (Node("number", value="1"),))
            inverse = Node("power", (base, minus_one), "", self.since(start))
            return Node("transpose", (inverse,), "", self.since(start))
        if (self.token.kind == "letter" and self.token.text == "T") or self.texts(3) == ["-", "T", "}"]:
            if not self.has_transposes():
                raise self.wrong(r"T is not given here; for the transpose write ^\top")
            self.token_as_top()
            return self.raised(base, start)
        if self.text in ("-", "+"):
            raise self.wrong("put the exponent in braces, as in x^{-1}")
        exponent = self.argument()
        if self.text == "_" and base == Node("constant", (), "e"):
            raise self.wrong("put the whole exponent in braces, as in e^{x_i}")
        if self.taken("_"):  # x^2_i is (x_i)^2
            base = Node("entry", (base, *self.indices()), "", self.since(start))
        return Node("power", (base, exponent), "", self.since(start))

    def has_transposes(self) -> bool:
        """Whether T, which is not given, stands in exponents only."""
        places = [at for at, token in enumerate(self.tokens) if (token.kind, token.text) == ("letter", "T")]
        around = [[one.text for one in self.tokens[max(at - 3, 0) : at]] for at in places]
        return all(before[-1:] == ["^"] or before == ["^", "{", "-"] for before in around)

    def token_as_top(self) -> None:
        r"""Read the next T as \top."""
        at = self.at + 2 * (self.text == "{")
        self.tokens[at] = replace(self.tokens[at], kind="command", text=r"\top")

    def argument(self) -> Node:
        r"""Read one argument as TeX does: a group in braces, one digit, or one sign; a sign of a function takes its own argument."""
        token = self.token
        if token.kind == "number" and not token.braced and len(token.text) > 1:
            middle = token.place[0] + 1
            digit, rest = Token("number", token.text[0], (middle - 1, middle)), Token("number", token.text[1:], (middle, token.place[1]))
            self.tokens[self.at : self.at + 1] = [digit, rest]
        return self.group() if self.text == "{" else self.primary()

    def primary(self) -> Node:
        """Read what a factor begins with, not too deep."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.wrong(f"more than {DEEPEST} parentheses, functions and scripts stand in each other")
        found = self.beginning()
        self.depth -= 1
        return found

    @placed
    def beginning(self) -> Node:
        """Number, symbol, function, bracket, sum, fraction, ..."""
        token, text = self.token, self.text
        plain, next_text = token.text.rstrip("'"), self.texts(1)
        if token.text == "e" and next_text == ["^"]:
            return self.leaf("constant")
        if token.kind == "name" and {token.text, plain} & self.functions:
            return self.call(token.text)
        if token.kind in ("number", "name"):
            return self.leaf(token.kind)
        if self.is_divergence():
            self.at = argument_end(self.tokens, self.at + 2) - 1
            return self.call("KL")
        if text in _PRIMARIES:
            return _PRIMARIES[text](self)
        if text in BIG and not (text in FUNCTIONS and next_text != ["_"]):
            return self.big()
        if text.rstrip("'") in FUNCTIONS:
            return self.call(FUNCTIONS[text.rstrip("'")] + "'" * (len(token.text) - len(plain)))
        if text in CONSTANTS:
            return self.leaf("constant", CONSTANTS[text])
        if token.kind == "letter":
            return self.leaf("index")
        if token.kind == "word":
            raise self.wrong(f"{token.text} is neither given nor known")
        if text.startswith(r"\begin{"):
            raise self.wrong(f"write the formula alone, without {text}")
        raise self.wrong("expected a number, a symbol, a function or a parenthesis")

    def wrong(self, problem: str, token: Token | None = None) -> Malformed:
        """Return a complaint about the next token, or another; a command that nobody knows is the problem wherever it stands."""
        text = (token or self.token).text
        if problem.startswith("expected") and re.fullmatch(r"\\[A-Za-z]+", text) and text not in KNOWN | INSTEAD.keys():
            plain = text.removeprefix("\\")
            near = [SPELLED[plain]] if plain in SPELLED else difflib.get_close_matches(text, _COMMANDS, 1, 0.75) if plain[1:] else []
            problem = f"{text} is not known" + "".join(f": did you mean {name}?" for name in near)
        return super().wrong(problem, token)

    def leaf(self, kind: str, value: str = "") -> Node:
        """Read a node of one token."""
        token = self.take()
        return Node(kind, (), value or token.text, token.place)

    def call(self, name: str) -> Node:
        """function [ _ beneath ] [ ^ power ] ( arguments ), or a known function and one factor."""
        function = self.take()
        given, start = function.kind == "name", function.place[0]
        under, power = NONE, None
        while self.text in ("_", "^"):
            if under == NONE and self.taken("_"):
                word = self.token.kind == "word" and self.text not in FUNCTIONS
                under = self.leaf("word") if word else self.drawn() if r"\sim" in self.texts(2) else self.argument()
            elif power is None and not given and self.taken("^"):
                power = self.argument()
            else:
                break
        if under.kind == "drawn":
            return self.weighted_mean(function, under, name)
        if self.text == "(" or (self.text == "[" and name in ("E", "Var", "Cov")):
            with self.inside(self.text, stop=r"\|" if name == "KL" else ""):
                arguments = self.entries((",", r"\|", r"\rVert", r"\lVert") if name == "KL" else (",", ";"))
        elif given:
            raise self.wrong(f"{function.text} is a function: expected its argument in parentheses")
        elif self.text == r"\{" and self.is_set() and name in (r"\max", r"\min"):
            return self.extreme_of_set(function, name)
        elif self.text == r"\{" and not self.is_set():
            with self.inside(r"\{"):
                arguments = self.entries()
        elif self.text == "{" or self.token.braced:
            arguments = (self.argument(),)
        else:
            if not self.starts_factor():
                raise self.wrong(f"{function.text} wants its argument behind it, in parentheses")
            arguments = (self.plain_product(function),)
        if name == "softmax" and not given and under.kind not in ("none", "word"):
            name = r"\sigma"  # \mathrm{softmax}_j
        called = Node("call", (under, *arguments), name, self.since(start))
        return called if power is None else Node("power", (called, power))

    def drawn(self) -> Node:
        r"""Read j \sim p beneath an expectation: an index that comes with these weights."""
        with self.inside("{"):
            letter = self.leaf("index") if self.token.kind == "letter" else self.wrong_draw()
            self.take(r"\sim")
            return Node("drawn", (letter, self.expression()))

    def wrong_draw(self) -> Node:
        """Refuse what is no index before the sign of a draw."""
        raise self.wrong(r"before \sim stands an index, as in \mathbb{E}_{j \sim p}[x_j]; what is random is given")

    def weighted_mean(self, function: Token, under: Node, name: str) -> Node:
        r"""Read what is taken on average with weights: \mathbb{E}_{j \sim p}[x_j] is \sum_j p_j x_j."""
        start, (letter, weights) = function.place[0], under.children
        base, indices = (weights.children[0], weights.children[1:]) if weights.kind == "entry" else (weights, ())
        with self.inside(self.text if self.text in ("(", "[", r"\{") else "["):
            body = self.expression()
        chance = Node("entry", (base, *indices, letter), "", weights.place)

        def mean(inner: Node) -> Node:
            return Node("big", (Node("domain", (letter,)), Node("product", (chance, inner))), r"\sum", self.since(start))

        if name == "E":
            return mean(body)
        if name != "Var":
            raise self.wrong(f"beneath {name} stand weights alone, as in {name}_p")
        two = Node("number", (), "2")
        return Node("sum", (mean(Node("power", (body, two))), Node("neg", (Node("power", (mean(body), two)),))))

    def plain_product(self, function: Token) -> Node:
        r"""Read one factor behind a function without parentheses; behind a few symbols side by side are meant, as in \cos \omega t."""
        start, factors = self.token.place[0], list[Node]()
        while not factors or self.starts_factor():
            if factors and self.text.rstrip("'") in FUNCTIONS and self.token.kind != "name":
                break
            plain = self.token.kind in ("name", "letter", "number") and self.token.text not in self.functions and function.text in TOGETHER
            before = self.tokens[self.at - 1]
            apart = before.kind == "mark" or "\\" in self.latex[before.place[1] : self.token.place[0]]  # \sin\theta\, J: where does it end?
            if factors and (apart or not plain):
                raise self.wrong(f"{function.text} takes one factor only: put its whole argument in parentheses")
            factors.append(self.factor())
        return factors[0] if len(factors) == 1 else Node("product", tuple(factors), "", self.since(start))

    def is_divergence(self) -> bool:
        r"""Whether D_{KL} stands there, and D is not given."""
        return self.token.kind == "letter" and self.text == "D" and self.texts(3) in (["_", r"\text{KL}", "("], ["_", "{", "K"])

    def is_set(self) -> bool:
        """Whether a set by a condition stands there in braces."""
        inside = self.tokens[self.at + 1 : matching(self.tokens, self.at)]
        return any(token.text == ":" for token in inside) or (len(inside) > 1 and inside[0].kind == "letter" and inside[1].text == "|")

    def extreme_of_set(self, function: Token, operator: str) -> Node:
        r"""\max\{ expression : condition, ... }, taken of all for which the conditions hold."""
        start = function.place[0]
        with self.inside(r"\{"):
            body = self.expression()
            self.take(":")
            items = self.listed(self.chain)
        return Node("big", (Node("domain", items), body), operator, self.since(start))

    def written_out(self) -> Node:
        """Return what a function of programs says: ReLU, sigmoid, Concat."""
        function = self.take()
        with self.inside(self.text if self.text in ("(", "[") else "("):
            if function.text in ("Concat", "concat"):
                cells = [self.cell()]
                while self.taken(",", ";"):
                    cells.append(self.cell())
                return Node("blocks", (Node("cells", tuple(cells)),), "[")
            argument, *others = self.listed(self.expression)
        if len(others) != (function.text == "logaddexp"):
            raise self.wrong(f"{function.text} has {'two arguments' if function.text == 'logaddexp' else 'one argument'}", function)
        if others:
            both = Node("sum", tuple(Node("power", (Node("constant", (), "e"), one)) for one in (argument, *others)))
            return Node("call", (NONE, both), r"\ln")
        if function.text == "sigmoid":
            below = Node("sum", (Node("number", (), "1"), Node("power", (Node("constant", (), "e"), Node("neg", (argument,))))))
            return Node("over", (Node("number", (), "1"), below), r"\frac")
        return Node("call", (NONE, Node("number", (), "0"), argument), r"\max")

    def big(self) -> Node:
        r"""\sum and its like _ { domain } [ ^ last ] term."""
        operator = self.take().text
        upper = self.argument() if self.taken("^") else None
        if not self.taken("_"):
            raise self.wrong(f"expected an index beneath {operator}")
        domain = self.domain(operator, upper)
        ranges = [item for item in domain.children if item.kind == "range"]
        found = Node("big", (replace(domain, children=domain.children[max(0, len(ranges) - 1) :]), self.term()), operator)
        for outer in reversed(ranges[:-1]):  # \sum_{i, j = 1}^{n} is a sum of sums
            found = Node("big", (replace(domain, children=(outer,)), found), operator)
        return found

    @placed
    def domain(self, operator: str, upper: Node | None = None) -> Node:
        """{ condition, ... } [ ^ last ]; what stands above may come first."""
        if self.text == "{":
            with self.inside("{"):
                items = self.conditions()
        else:
            items = (self.argument(),)
        items = tuple(_as_index(one) for item in items for one in (item.children if _is_letters(item) else (item,)))
        before = tuple(itertools.takewhile(lambda one: one.kind == "index", items[:-1]))  # i of \sum_{i, j = 1}^{n}
        item = items[len(before)] if upper is not None or self.text == "^" else items[0]
        starts = item.kind == "chain" and item.children[0].kind == "index" and item.children[1].value == "="
        if upper is None and self.taken("^"):
            upper = self.argument()
        conditions = [self.condition_on(item.children[0], other) for other in items[len(before) + 1 :]] if starts else []
        if upper is not None:
            if item.kind == "chain" and item.children[0].kind == "name":
                raise Malformed(f"{item.children[0].value} is given, and no index: take another letter beneath {operator}", item.place)
            if not starts or None in conditions or (before and operator not in SPLIT):
                raise Malformed(f"expected one index and where it starts, such as j = 1, beneath {operator}", item.place)
            between = [Node("range", (letter, item.children[2], upper), place=item.place) for letter in (*before, item.children[0])]
            return Node("domain", (*between, *filter(None, conditions)))
        for item in items:
            if item.kind == "name" and bound_in(item) == "" and operator in (r"\sum", r"\prod"):
                raise Malformed(f"expected an index beneath {operator}, one that is not given: take another letter", item.place)
            if item.kind == "chain" and item.children[0].kind == "factorial" and item.children[1].value == "=":
                raise Malformed(r"this is a factorial: for unequal write \ne", item.place)
            if item.kind == "chain" and item.children[0].kind == "index" and item.children[1].value == "=":
                raise Malformed(f"expected where {item.children[0].value} ends, above {operator}", item.place)
            if operator not in (r"\lim", r"\arg\min") and not bound_in(item):
                raise Malformed(f"expected an index beneath {operator}, one that is not given", item.place)
        return Node("domain", items)

    def conditions(self) -> tuple[Node, ...]:
        r"""Read what stands beneath \sum and its like: parts with commas between, or one beneath the other."""
        if self.taken(r"\substack"):
            with self.inside("{"):
                return self.conditions()
        items = self.listed(self.chain, (",", r"\\"))
        if all(item.kind == "index" for item in items) and self.taken(":", "|"):
            return (*items, *self.listed(self.chain, (",", r"\\", r"\land")))
        if self.text in (":", ".", r"\cdots"):
            raise self.wrong(r"where it ends stands above, as in \sum_{j=1}^{n}")
        return items

    def condition_on(self, letter: Node, item: Node) -> Node | None:
        r"""Return a condition beneath a sum so that the letter of the sum comes first in it, as in j \ne i; None if it is none."""
        if item.kind != "chain" or letter not in item.walk():
            return None
        if item.children[0] != letter and item.children[1:] == (Node("relation", (), r"\ne"), letter):
            return replace(item, children=item.children[::-1])
        return item if bound_in(item) == letter.value else None

    def root(self) -> Node:
        """the root of one argument, or its n-th root as a power."""
        start = self.take().place[0]
        if self.text != "[":
            return Node("call", (NONE, self.argument()), r"\sqrt")
        with self.inside("[", stop="]"):
            degree = self.expression()
        exponent = Node("over", (Node("number", (), "1"), degree), "/")
        return Node("power", (self.argument(), exponent), "", self.since(start))

    def binomial(self) -> Node:
        r"""n over k, which is n! / (k! (n - k)!)."""
        self.take()
        above, below = self.argument(), self.argument()
        if below.kind == "number" and below.value.isdigit() and 0 < int(below.value) < 5:  # n (n - 1) / 2, for every n
            less = [Node("sum", (above, Node("neg", (Node("number", (), str(one)),)))) for one in range(1, int(below.value))]
            total = Node("number", (), str(math.factorial(int(below.value))))
            return Node("over", (Node("product", (above, *less)) if less else above, total), r"\frac")
        rest = Node("factorial", (Node("sum", (above, Node("neg", (below,)))),))
        return Node("over", (Node("factorial", (above,)), Node("product", (Node("factorial", (below,)), rest))), r"\frac")

    def fraction(self) -> Node:
        """a fraction, or a derivative."""
        self.take()
        first = self.at + (self.text == "{")
        d = self.tokens[first].spelled
        if d in (r"\partial", r"\text{d}") or (d == "d" and self.is_differential(argument_end(self.tokens, self.at))):
            return self.derivative(d)
        return Node("over", (self.argument(), self.argument()), r"\frac")

    def is_differential(self, at: int) -> bool:
        """Whether { d symbol ... } stands there, and d is no given."""
        opening, d, symbol = (*self.tokens[at : at + 3], *self.tokens[-1:] * 3)[:3]
        return (opening.text, d.spelled) == ("{", "d") and symbol.kind in ("name", "letter")

    def derivative(self, d: str) -> Node:
        """d numerator over d by, or d over d by and a term behind."""
        braced = self.taken("{")
        self.take(d)
        order, numerator = 1, None
        if self.taken("^"):
            self.take("2")
            order = 2
        if braced:
            numerator = self.term() if self.text != "}" else None
            self.take("}")
        self.take("{")
        by: list[Node] = []
        while self.taken(d):
            one = self.factor()
            twice = one.kind == "power" and one.children[1] == Node("number", (), "2")
            by += [one.children[0]] * 2 if twice else [one]
        closing = self.take("}")
        if len(by) != order:
            raise self.wrong(f"the derivative above has order {order}, the one beneath {len(by)}", closing)
        return Node("derivative", (numerator or self.term(), *by), d.removeprefix(r"\text{").removesuffix("}"))

    def partial(self) -> Node:
        r"""\partial_by factor, or several."""
        by = list[Node]()
        while self.taken(r"\partial"):
            self.take("_")
            by.append(self.argument())
        return Node("derivative", (self.differentiated(), *by), r"\partial")

    def differentiated(self) -> Node:
        """Read a factor, or a number and a term."""
        start, body = self.at, self.factor()
        if all(leaf.kind == "number" for leaf in body.walk() if not leaf.children):
            self.at = start
            body = self.term()
        return body

    def gradient(self) -> Node:
        r"""\nabla [ _ by ] factor, or a number and a term."""
        self.take()
        under = self.argument() if self.taken("_") else NONE
        return Node("nabla", (under, self.differentiated()))

    def integral(self) -> Node:
        r"""\int [ _ low ^ high ] term d variable."""
        self.take()
        low = high = NONE
        if self.taken("_"):
            low = self.argument()
            self.take("^")
            high = self.argument()
        self.stops.append("dx")
        body = self.term()
        self.stops.pop()
        if not self.taken("d", r"\text{d}"):
            raise self.wrong("expected the d of the variable of integration")
        return Node("integral", (self.leaf("index"), low, high, body))


_PRIMARIES: dict[str, Callable[[Expressions], Node]] = {
    "(": Expressions.parenthesis,
    "[": Expressions.bracket,
    "{": Expressions.group,
    r"\{": Expressions.braces,
    **dict.fromkeys(("|", r"\|", r"\lvert", r"\lVert"), Expressions.bars),
    **dict.fromkeys((r"\lfloor", r"\lceil"), Expressions.rounded),
    r"\langle": Expressions.angles,
    r"\frac": Expressions.fraction,
    r"\binom": Expressions.binomial,
    r"\sqrt": Expressions.root,
    r"\nabla": Expressions.gradient,
    r"\partial": Expressions.partial,
    **dict.fromkeys(WRITTEN_OUT, Expressions.written_out),
    r"\int": Expressions.integral,
    **dict.fromkeys([rf"\begin{{{kind}}}" for kind in ("matrix", "pmatrix", "bmatrix", "cases")], Expressions.environment),
}


def _stands_for_all(tokens: Sequence[Token]) -> bool:
    """Whether a colon or a dot stands there and not between two ends, as in K_{1:t}."""
    texts = [",", *(one.text for one in tokens), ","]
    return any(text in (":", *EVERY) and "," in (texts[at - 1], texts[at + 1]) for at, text in enumerate(texts))


def _as_index(node: Node) -> Node:
    """Return e beneath a symbol as the letter of an index: the number e counts nothing."""
    return replace(node, kind="index") if node == Node("constant", (), "e") else node


def _is_letters(node: Node) -> bool:
    r"""Whether letters stand side by side, as beneath \sum_{ja}."""
    return node.kind == "product" and all(_as_index(child).kind == "index" for child in node.children)


def _is_behind(one: Token, other: Token) -> bool:
    return one.place[1] == other.place[0] and not other.braced


def _with_primes(tokens: list[Token], functions: set[str]) -> list[Token]:
    """Join a symbol with the primes behind it: f' is the derivative of a function f, else a symbol of its own."""
    new, rest = tokens[:1], iter(enumerate(tokens[1:], 1))
    for at, token in rest:
        before, plain = new[-1], new[-1].text.rstrip("'")
        order = _ORDER.match(" ".join(one.spelled for one in tokens[at : at + 6])) if before.text in functions else None
        if order and rf"{before.text}^{{({order[1]})}}" not in functions:  # f^{(3)}
            new[-1] = replace(before, text=before.text + "'" * int(order[1]))
            next(itertools.islice(rest, 4, None))
        elif token.text == "'" and token.kind == "mark" and (before.kind in ("letter", "name") or plain in FUNCTIONS):
            if len(before.text) > DEEPEST:
                raise Malformed("too many primes", token.place)
            kind = before.kind if plain in functions or plain in FUNCTIONS else "letter"
            new[-1] = Token(kind, before.text + "'", (before.place[0], token.place[1]), wide=before.wide)
        else:
            new.append(token)
    return new
