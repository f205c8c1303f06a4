"""The registry of equations: declare one, plant the mistakes it must reject, verify it."""

import importlib
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from attn_course import numbers
from attn_course.equations import numeric
from attn_course.equations.claims import Chain, Claim, Equal, Limit, Moment, claims_of
from attn_course.equations.errors import Malformed, Refuted, UnknownEquation, Unproved

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
class Equation:
    """An equation of a lesson: its LaTeX, where it belongs, and a statement that a machine checks."""

    label: str
    latex: str
    statement: Statement
    rows: tuple[str, ...]
    uses: tuple[str, ...] = ()
    follows: str | None = None
    assumes: tuple[str, ...] = ()
    kind: Kind = "symbolic"
    scope: str = ""
    wrongs: list[WrongForm] = field(default_factory=list)

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


class Registry:
    """All equations, by label; lessons are loaded when they are first asked for."""

    def __init__(self, *, of_the_course: bool = False) -> None:
        self._equations: dict[str, Equation] = {}
        self._of_the_course = of_the_course

    def equation(
        self,
        label: str,
        latex: str,
        *,
        rows: Iterable[str],
        uses: Iterable[str] = (),
        follows: str | None = None,
        assumes: Iterable[str] = (),
        kind: Kind = "symbolic",
        scope: str = "",
    ) -> Callable[[Statement], Equation]:
        r"""Register the decorated statement under its label.

        `label`: at most four lower-case words joined by hyphens, such as "softmax-jacobian".
        `latex`: the formula as the lesson shows it, without \label.
        `rows`: ids of the mission rows it serves.
        `uses`: labels of earlier equations its derivation rests on.
        `follows`: label of the earlier equation whose right side is the left side of this one.
        `assumes`: what must hold, in words.
        `kind`: a symbolic statement takes nothing and gives SymPy sides; the others take `rng` and give or yield claims
        about float64 arrays.
        `scope`: what exactly is checked, such as "n = 3".

        Returns `decorator`: turns the statement into an `Equation`; plant wrong forms with its `wrong`.

        Raises ValueError if the label is malformed or taken, the kind unknown, or a list of ids is a bare string.
        """
        if not isinstance(label, str) or not numbers.NAME.fullmatch(label):
            raise ValueError(f'label wants at most four lower-case words joined by hyphens, such as "softmax-jacobian"; got {label!r}')
        if label in self._equations:
            raise ValueError(f"label {label} is registered twice")
        if kind not in CLAIMS_OF_KIND:
            raise ValueError(f"kind wants one of {', '.join(CLAIMS_OF_KIND)}; got {kind!r}")
        for name, ids in (("rows", rows), ("uses", uses), ("assumes", assumes)):
            if isinstance(ids, str):
                raise ValueError(f"{name} wants a list of strings; got the string {ids!r}")

        def register(statement: Statement) -> Equation:
            new = Equation(label, latex, statement, tuple(rows), tuple(uses), follows, tuple(assumes), kind, scope)
            self._equations[label] = new
            return new

        return register

    def lessons(self) -> list[str]:
        """Return the slugs of the lessons that have equations, in their order."""
        with_files = numbers.lessons_with("equations") if self._of_the_course else []
        here = {*with_files, *filter(None, (equation.lesson for equation in self._equations.values()))}
        return sorted(here, key=numbers.lesson_place)

    def all_equations(self, lesson: str | None = None) -> list[Equation]:
        """Return every equation (of one lesson), by number."""
        if lesson is not None and lesson not in self.lessons():
            raise UnknownEquation(f"there are no equations of {lesson!r}; lessons that have some: {', '.join(self.lessons())}")
        for slug in self.lessons() if lesson is None else [lesson]:
            self._load(slug)
        own = numbers.lesson_modules("equations", lesson) if lesson is not None and self._of_the_course else []
        chosen = [
            equation
            for equation in self._equations.values()
            if lesson in (None, equation.lesson) or equation.statement.__module__ in own  # its lesson may not show it yet
        ]
        return sorted(chosen, key=lambda equation: numbers.place("labels", equation.label))

    def get_equation(self, label: str) -> Equation:
        """Return one equation by its label."""
        lesson = numbers.lesson_of("labels", label) if isinstance(label, str) else None
        if lesson is not None:
            self._load(lesson)
        if not isinstance(label, str) or label not in self._equations:
            known = [name for lesson in self.lessons() for name in numbers.names("labels", lesson)]
            raise UnknownEquation(numbers.unknown("eq", label, [*known, *self._equations]))
        return self._equations[label]

    def verify(self, label: str) -> None:
        """Check one equation and print one fixed line."""
        equation = self.get_equation(label)
        equation.check()
        print(equation.success_line)

    def _load(self, lesson: str) -> None:
        """Import the equations of a lesson."""
        for module in numbers.lesson_modules("equations", lesson) if self._of_the_course else []:
            importlib.import_module(module)


REGISTRY = Registry(of_the_course=True)
"""The course's own equations."""

equation = REGISTRY.equation
