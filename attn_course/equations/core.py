"""The registry of numbered equations: declare one, plant the mistakes it must reject, verify it."""

import importlib
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

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
_TAG = re.compile(r"(0|[1-9]\d*)\.([1-9]\d*)")


@dataclass(frozen=True)
class WrongForm:
    """A mistake somebody makes, stated like the equation itself; `trap` is its id in the mission's table of traps."""

    name: str
    statement: Statement
    trap: str | None = None


@dataclass
class Equation:
    """A numbered equation of a lesson: its LaTeX, where it belongs, and a statement that a machine checks."""

    tag: str
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
    def chapter(self) -> int:
        """The number before the dot."""
        return int(self.tag.split(".")[0])

    @property
    def number(self) -> int:
        """The number after the dot."""
        return int(self.tag.split(".")[1])

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
        return f"Eq. ({self.tag}) holds ({', '.join(filter(None, [self.kind, self.scope]))})"

    def wrong(self, name: str, trap: str | None = None) -> Callable[[Statement], Statement]:
        """Plant a wrong form: the decorated statement is one that the check must refute.

        Parameters
        ----------
        name : str
            The mistake in a few words.
        trap : str, optional
            Its id in the mission's table of traps, such as "X16".
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
        return np.random.default_rng(zlib.crc32(self.tag.encode()))

    def check(self, statement: Statement | None = None) -> None:
        """Judge a statement of this equation (default: its own).

        Parameters
        ----------
        statement : callable, optional
            A wrong form, say.

        Raises
        ------
        Refuted, Unproved, Malformed
            Unless the statement holds; the message starts with the tag.
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
            raise type(error)(f"Eq. ({self.tag}) is not confirmed: {error}") from None

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
    """All equations, by tag; chapters are loaded when they are first asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self._equations: dict[str, Equation] = {}
        self._folder = folder

    def equation(
        self,
        tag: str,
        latex: str,
        *,
        rows: Iterable[str],
        uses: Iterable[str] = (),
        follows: str | None = None,
        assumes: Iterable[str] = (),
        kind: Kind = "symbolic",
        scope: str = "",
    ) -> Callable[[Statement], Equation]:
        r"""Register the decorated statement as Eq. (tag).

        Parameters
        ----------
        tag : str
            "2.7": chapter and number, without leading zeros.
        latex : str
            The formula as the lesson shows it, without \tag.
        rows : iterable of str
            Ids of the mission rows it serves.
        uses : iterable of str
            Tags of earlier equations its derivation rests on.
        follows : str, optional
            Tag of the earlier equation whose right side is the left side of this one.
        assumes : iterable of str
            What must hold, in words.
        kind : "symbolic", "numeric" or "statistical"
            A symbolic statement takes nothing and gives SymPy sides; the others take `rng` and give or yield claims about float64 arrays.
        scope : str
            What exactly is checked, such as "n = 3".

        Returns
        -------
        decorator : callable
            Turns the statement into an `Equation`; plant wrong forms with its `wrong`.

        Raises
        ------
        ValueError
            If the tag is malformed or taken, the kind unknown, or a list of ids is a bare string.
        """
        if not _TAG.fullmatch(tag):
            raise ValueError(f'tag wants chapter and number without leading zeros, such as "2.7"; got {tag!r}')
        if tag in self._equations:
            raise ValueError(f"tag {tag} is registered twice")
        if kind not in CLAIMS_OF_KIND:
            raise ValueError(f"kind wants one of {', '.join(CLAIMS_OF_KIND)}; got {kind!r}")
        for name, ids in (("rows", rows), ("uses", uses), ("assumes", assumes)):
            if isinstance(ids, str):
                raise ValueError(f"{name} wants a list of strings; got the string {ids!r}")

        def register(statement: Statement) -> Equation:
            new = Equation(tag, latex, statement, tuple(rows), tuple(uses), follows, tuple(assumes), kind, scope)
            self._equations[tag] = new
            return new

        return register

    def chapters(self) -> list[int]:
        """Return the numbers of the chapters that have equations."""
        on_disk = {int(path.stem[2:4]) for path in self._folder.glob("ch[0-9][0-9].py")} if self._folder else set()
        return sorted(on_disk | {equation.chapter for equation in self._equations.values()})

    def all_equations(self, chapter: int | None = None) -> list[Equation]:
        """Return every equation (of one chapter), by number."""
        if chapter is not None and chapter not in self.chapters():
            raise UnknownEquation(f"chapter {chapter} has no equations; those that have: {', '.join(map(str, self.chapters()))}")
        for number in self.chapters() if chapter is None else [chapter]:
            self._load(number)
        chosen = [equation for equation in self._equations.values() if chapter in (None, equation.chapter)]
        return sorted(chosen, key=lambda equation: (equation.chapter, equation.number))

    def get_equation(self, tag: str) -> Equation:
        """Return one equation by its tag."""
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise UnknownEquation(f'an equation is asked for by its tag in quotes, such as "2.7"; got {tag!r}')
        chapter = int(tag.split(".")[0])
        if chapter not in self.chapters():
            raise UnknownEquation(f"there is no Eq. ({tag}): chapter {chapter} has no equations")
        self._load(chapter)
        if tag not in self._equations:
            last = self.all_equations(chapter)[-1].tag
            raise UnknownEquation(f"there is no Eq. ({tag}): the last equation of chapter {chapter} is ({last})")
        return self._equations[tag]

    def verify(self, tag: str) -> None:
        """Check one equation and print one fixed line."""
        equation = self.get_equation(tag)
        equation.check()
        print(equation.success_line)

    def _load(self, chapter: int) -> None:
        """Import chNN.py and, where a chapter needs more than one file, chNN_*.py."""
        for path in sorted(self._folder.glob(f"ch{chapter:02d}*.py")) if self._folder else []:
            importlib.import_module(f"attn_course.equations.{path.stem}")


REGISTRY = Registry(Path(__file__).parent)
"""The course's own equations."""

equation = REGISTRY.equation
