"""Equations that are stated twice, as LaTeX and as a Python statement; until their lesson is judged as printed."""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from attn_course import numbers
from attn_course.equations import numeric
from attn_course.equations.claims import Chain, Claim, Equal, Limit, Moment, claims_of
from attn_course.equations.core import REGISTRY, Registry
from attn_course.equations.errors import Malformed, Refuted, Unproved

Kind: TypeAlias = Literal["symbolic", "numeric", "statistical"]
Statement: TypeAlias = Callable[..., Any]

CLAIMS_OF_KIND: dict[str, tuple[type, ...]] = {
    "symbolic": (Equal,),
    "numeric": (Equal, Chain, Limit),
    "statistical": (Equal, Chain, Limit, Moment),
}


@dataclass(frozen=True)
class WrongForm:
    """A mistake somebody makes, stated like the equation itself; `trap` is its id in the mission's table of traps."""

    name: str
    statement: Statement
    trap: str | None = None


@dataclass
class Stated:
    """An equation of a lesson: its LaTeX, where it belongs, and a statement that a machine checks."""

    label: str
    latex: str
    statement: Statement
    rows: tuple[str, ...]
    uses: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    kind: Kind = "symbolic"
    scope: str = ""
    wrongs: list[WrongForm] = field(default_factory=list)

    @property
    def topics(self) -> tuple[str, ...]:
        """The rows of the mission it serves."""
        return self.rows

    @property
    def make(self) -> Statement:
        """What makes it."""
        return self.statement

    @property
    def checked(self) -> str:
        """How it is checked."""
        return ", ".join(filter(None, [self.kind, self.scope]))

    @property
    def lesson(self) -> str:
        """The slug of the lesson that shows it; "" if none does."""
        return numbers.lesson_of("labels", self.label) or ""

    @property
    def number(self) -> tuple[int, int] | None:
        """The number of its lesson and its own in that, for people; None while it has none."""
        found = numbers.tables()["labels"].get(self.lesson, {}).get(self.label)
        if found is None:
            return None
        lesson, own = found.split(".")
        return int(lesson), int(own)

    @property
    def name(self) -> str:
        """What the equation is called, in words."""
        return self.statement.__name__.strip("_").replace("_", " ")

    @property
    def doc(self) -> str:
        """Why it holds, in a line."""
        return (self.statement.__doc__ or "").strip().split("\n\n")[0]

    @property
    def traps(self) -> tuple[str, ...]:
        """The traps it rejects: those planted as wrong forms, so that the claim is always backed by a check."""
        return tuple(dict.fromkeys(wrong.trap for wrong in self.wrongs if wrong.trap))

    @property
    def success_line(self) -> str:
        """What `verify` prints, always the same."""
        return f"{numbers.eq(self.label)} holds ({', '.join(filter(None, [self.kind, self.scope]))})"

    def wrong(self, name: str, trap: str | None = None) -> Callable[[Statement], Statement]:
        """Plant a wrong form: the decorated statement is one that the check must refute.

        `trap`: its id in the mission's table of traps, such as "X16".
        """

        def plant(statement: Statement) -> Statement:
            self.wrongs.append(WrongForm(name, statement, trap))
            return statement

        return plant

    def run(self, statement: Statement | None = None) -> Any:
        """Call a statement of this equation (default: its own) with what its kind needs, from a fixed seed."""
        statement = statement or self.statement
        return statement() if self.kind == "symbolic" else statement(self.rng())

    def rng(self) -> np.random.Generator:
        """The random numbers of this equation, the same in every run."""
        return np.random.default_rng(zlib.crc32(self.label.encode()))

    def check(self, statement: Statement | None = None) -> None:
        """Judge a statement of this equation (default: its own).

        `statement`: a wrong form, say.

        Raises Refuted, Unproved, Malformed unless the statement holds; the message starts with the number.
        """
        try:
            found = 0
            with np.errstate(all="ignore"):  # overflow shows in the numbers
                for claim in claims_of(self.run(statement)):
                    self.judge(claim)
                    found += 1
            if not found:
                raise Malformed("the statement claims nothing")
        except (Refuted, Unproved, Malformed) as error:
            raise type(error)(f"{numbers.eq(self.label)} is not confirmed: {error}") from None

    def judge(self, claim: Claim) -> None:
        """Judge one claim in the way of this equation's kind."""
        if not isinstance(claim, CLAIMS_OF_KIND[self.kind]):
            raise Malformed(f"a {self.kind} equation cannot claim a {type(claim).__name__}")
        if self.kind == "symbolic":
            from attn_course.equations import symbolic  # SymPy is slow to import

            symbolic.judge(claim)
        else:
            with np.errstate(all="ignore"):  # NaN is always refuted
                numeric.judge(claim)


def equation(
    label: str,
    latex: str,
    *,
    rows: Iterable[str],
    uses: Iterable[str] = (),
    follows: str | None = None,
    assumes: Iterable[str] = (),
    kind: Kind = "symbolic",
    scope: str = "",
    registry: Registry = REGISTRY,
) -> Callable[[Statement], Stated]:
    """Register the decorated statement under its label."""
    if not isinstance(label, str) or not numbers.NAME.fullmatch(label):
        raise ValueError(f'label wants at most four lower-case words joined by hyphens, such as "softmax-jacobian"; got {label!r}')
    if label in registry._equations:
        raise ValueError(f"label {label} is registered twice")
    if kind not in CLAIMS_OF_KIND:
        raise ValueError(f"kind wants one of {', '.join(CLAIMS_OF_KIND)}; got {kind!r}")
    for name, ids in (("rows", rows), ("uses", uses), ("assumes", assumes)):
        if isinstance(ids, str):
            raise ValueError(f"{name} wants a list of strings; got the string {ids!r}")

    def register(statement: Statement) -> Stated:
        new = Stated(label, latex, statement, tuple(rows), (*uses, *filter(None, [follows])), tuple(assumes), kind, scope)
        registry.add(cast(Any, new))
        return new

    return register
