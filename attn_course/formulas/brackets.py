"""What stands in brackets: groups, vectors, conditions, blocks, norms, sets, matrices and cases."""

from abc import ABC, abstractmethod

from attn_course.formulas.cursor import CLOSING, Cursor
from attn_course.formulas.errors import Malformed
from attn_course.formulas.tree import Node


class Brackets(Cursor, ABC):
    """Reads brackets; a subclass reads the expressions in them."""

    @abstractmethod
    def expression(self, one_sided: bool = False) -> Node:
        """Read an expression."""

    @abstractmethod
    def chain(self) -> Node:
        """Read an expression, or a relation between several."""

    def parenthesis(self, start: int) -> Node:
        """( expression ), or ( entries, of, a vector )."""
        self.take("(")
        self.closers.append("")
        inner = self.listed(self.expression, ")")
        self.closers.pop()
        return inner[0] if len(inner) == 1 else self.node("tuple", inner, start=start)

    def bracket(self, start: int) -> Node:
        """Read [condition], 1 where it holds and else 0, or blocks: [A, B; C, D], a wide space standing for a comma."""
        self.take("[")
        self.closers.append("]")
        rows: list[list[Node]] = [[]]
        while True:
            cell = self.cell()
            if cell.kind == "chain":
                self.closers.pop()
                self.take("]")
                if len(rows) > 1 or rows[0]:
                    raise Malformed("a condition stands among blocks", cell.place)
                return self.node("iverson", [cell], start=start)
            rows[-1].append(cell)
            if self.taken(";"):
                rows.append([])
            elif not self.taken(",") and not (self.token.wide and self.text != "]"):
                break
        self.closers.pop()
        self.take("]")
        if len(rows) == len(rows[0]) == 1 and rows[0][0].kind != "run":
            return rows[0][0]
        return self.node("blocks", [Node("cells", tuple(row), place=self.span(row)) for row in rows], "[", start)

    @staticmethod
    def span(nodes: list[Node]) -> tuple[int, int]:
        """Return the place of several nodes."""
        return nodes[0].place[0], nodes[-1].place[1]

    def cell(self) -> Node:
        r"""one block, or first \cdots last."""
        start = self.token.place[0]
        first = self.chain()
        self.taken(",")
        if self.taken(r"\cdots"):
            self.taken(",")
            return self.node("run", (first, self.chain()), start=start)
        self.at -= self.spelled(self.at - 1) == ","
        return first

    def bars(self, start: int) -> Node:
        """| expression |, or a norm and which one."""
        opening = self.token.text
        inner = self.enclosed(opening, self.expression, CLOSING[opening])
        if opening in ("|", r"\lvert"):
            return self.node("bars", [inner], start=start)
        value = ""
        if self.text == "_":
            self.take()
            value = self.take().text
            if value not in ("2", "F", "1"):
                self.fail("expected one of the norms 1, 2, F", self.tokens[self.at - 1])
        return self.node("norm", [inner], value, start)

    def braces(self, start: int) -> Node:
        """{ index : condition }."""
        self.take(r"\{")
        self.closers.append("")
        variable = self.expression()
        if not self.taken(":", "|"):
            self.fail("expected a colon and the condition of the set")
        if variable.kind != "index":
            raise Malformed("expected one index before the colon of a set", variable.place)
        condition = self.chain()
        self.closers.pop()
        self.take(r"\}")
        return self.node("set", (variable, condition), start=start)

    def group(self, start: int) -> Node:
        """{ expression }."""
        return self.enclosed("{", self.expression)

    def rounded(self, start: int) -> Node:
        """the floor or the ceiling of an expression."""
        opening = self.token.text
        return self.node("floor" if opening == r"\lfloor" else "ceil", [self.enclosed(opening, self.expression)], start=start)

    def angles(self, start: int) -> Node:
        """< vector, vector >."""
        self.take(r"\langle")
        both = self.listed(self.expression, r"\rangle")
        if len(both) != 2:
            raise Malformed("expected two vectors between the angles", (start, self.token.place[0]))
        return self.node("dot", both, start=start)

    def environment(self, start: int) -> Node:
        """a pmatrix or cases."""
        kind = self.take().text.removeprefix(r"\begin{").removesuffix("}")
        if kind not in ("pmatrix", "bmatrix", "cases"):
            self.fail("expected pmatrix or cases", self.tokens[self.at - 1])
        self.closers.append("")
        rows = [[self.chain()]]
        while self.text in ("&", r"\\"):
            if self.take().text == "&":
                rows[-1].append(self.chain())
            elif not self.text.startswith(r"\end"):
                rows.append([self.chain()])
        self.closers.pop()
        self.take(rf"\end{{{kind}}}")
        if len({len(row) for row in rows}) > 1 or (kind == "cases" and len(rows[0]) != 2):
            raise Malformed(
                "the rows have different lengths" if kind != "cases" else "each case wants a value & its condition", (start, start + 6)
            )
        if kind == "cases":
            return self.node("cases", [cell for row in rows for cell in row], start=start)
        return self.node("blocks", [Node("cells", tuple(row), place=self.span(row)) for row in rows], "pmatrix", start)
