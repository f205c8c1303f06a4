"""What may be wrong with a formula: it cannot be read or has no meaning (malformed), or it is false (refuted)."""

from collections.abc import Sequence
from typing import Any

Place = tuple[int, int]
NOWHERE: Place = (0, 0)


class FormulaError(ValueError):
    """A formula is malformed or refuted; a Python exception of another kind is a fault of the program."""


class Malformed(FormulaError):
    """The formula cannot be read, or what it says has no meaning; `place` is where, as a slice of the LaTeX."""

    def __init__(self, problem: str, place: Place = NOWHERE, latex: str = "") -> None:
        self.problem, self.place, self.latex = problem, place, latex
        super().__init__(problem + (f"\n{self.excerpt}" if latex and place[1] > place[0] else ""))

    @property
    def excerpt(self) -> str:
        """The LaTeX around the place, and carets beneath it."""
        start, end = self.place[0], min(self.place[1], self.place[0] + 60)
        first, last = max(0, start - 40), min(len(self.latex), end + 40)
        before, line = "..." if first else "", self.latex[first:last].replace("\n", " ")
        return f"  {before}{line}{'...' if last < len(self.latex) else ''}\n  {' ' * (len(before) + start - first)}{'^' * (end - start)}"

    def of(self, latex: str) -> "Malformed":
        """Return the same complaint, with the LaTeX it is about."""
        return Malformed(self.problem, self.place, self.latex or latex)


class Refuted(FormulaError):
    """The formula is false: both `sides` differ where the indices have the values `at`; `numbers` are they in full, if they are some."""

    def __init__(
        self, relation: str, sides: Sequence[str], at: Sequence[tuple[str, str]], place: Place, numbers: Sequence[Any] = (), said: str = ""
    ):
        self.left, self.right = left, right = sides
        self.relation, self.at, self.place, self.numbers = relation, tuple(at), place, numbers
        where = f" at {', '.join(f'{name} = {value}' for name, value in at)}" if at else f" {said}" if said else ""
        super().__init__(f"left {left}, right {right}{where}" + ("" if relation == "=" else f" (wanted left {relation} right)"))
