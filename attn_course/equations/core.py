"""The registry of equations: the LaTeX that a lesson prints, the givens it is judged on, and the wrong forms it must be told from."""

import contextlib
import functools
import importlib
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import isfunction, signature
from typing import Any, Literal, TypeAlias

import numpy as np

from attn_course import formulas, numbers
from attn_course.equations import saying
from attn_course.equations.drawing import drawn
from attn_course.equations.errors import EquationError, Malformed, Refuted, UnknownEquation
from attn_course.equations.laws import Seen, complain_of_trivial, is_multiple, world_without
from attn_course.equations.names import name_of
from attn_course.equations.narrowed import complain_of_narrowed
from attn_course.equations.opaque import complain_of_bare, complain_of_lost
from attn_course.equations.reworded import (
    clauses_of,
    is_number,
    plainly,
    readings,
    stands_alone,
    stands_linear,
    transposed_at,
    written_out,
)
from attn_course.equations.same import complain_of_arrows, complain_of_same
from attn_course.equations.special import Special, complain_of_special, draws_that_may_be, special_draws
from attn_course.equations.untested import complain_of_untested
from attn_course.equations.weaker import complain_of_larger, complain_of_weaker
from attn_course.equations.wrapped import complain_of_wrapped
from attn_course.equations.written import WrongForm, told
from attn_course.formulas import Formula, FormulaError, Judged
from attn_course.formulas.arithmetic import TRANSPOSE
from attn_course.formulas.errors import Place
from attn_course.formulas.givens import Given, aliases
from attn_course.formulas.tree import relations

Givens: TypeAlias = Mapping[str, Any]
Maker: TypeAlias = Callable[..., Givens]
Kind: TypeAlias = Literal["claim", "definition", "transcribed"]

DRAWS = 3  # of the givens, at each set of sizes
_PRODUCT = re.compile(r"\w+ = \w+(?:\^T)?(?: \w+(?:\^T)?)+")
_NOT_NEGATIVE = re.compile(r"(\\?[A-Za-z]+)\w* >= 0|0 \\le (\\?[A-Za-z]+)")
_MISSING = re.compile(r"(?:the range of )?(\S+) is (?:not known|neither given|not given)")
SAME = 1e-10  # by which the numbers of a side may differ that is always the same


@dataclass(frozen=True)
class Equation:
    """An equation of a lesson: its LaTeX, what is given for its symbols, and where it belongs."""

    label: str
    latex: str
    make: Maker
    why: str
    topics: tuple[str, ...]
    sizes: str = ""
    uses: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    wrongs: tuple[WrongForm, ...] = ()
    loose: str = ""
    kind: Kind = "claim"
    unread: str = ""
    equivalent: Mapping[str, str] = field(default_factory=dict)
    whatever: Mapping[str, str] = field(default_factory=dict)
    registered: str = ""
    may_be: str = ""
    beside: tuple[str, ...] = ()

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
        return name_of(self.label)

    @property
    def traps(self) -> tuple[str, ...]:
        """The traps it rejects: those of its wrong forms, so that the claim is always backed by a check."""
        return tuple(dict.fromkeys(wrong.trap for wrong in self.wrongs if wrong.trap))

    @property
    def checked(self) -> str:
        """How it is checked, in a few words: as printed, at which sizes; or why it is not."""
        if self.kind == "transcribed":
            return f"transcribed, not read: {self.unread}"
        letters, sets = self.sizes.partition(",")[0].split(), self.size_sets()
        if len(letters) == 1:
            tried = f"{letters[0]} = {', '.join(str(size) for size in sorted({sizes[letters[0]] for sizes in sets}))}"
        elif letters:
            every = [size for sizes in sets for size in sizes.values()]
            tried = f"{', '.join(letters)} from {min(every)} to {max(every)}"
        else:
            tried = f"{len(sets) * DRAWS} draws"
        return f"as printed ({'definition, ' * (self.kind == 'definition')}{tried})"

    @property
    def success_line(self) -> str:
        """What `verify` prints, always the same."""
        return f"{numbers.eq(self.label)} {'is ' if self.kind == 'transcribed' else 'holds '}{self.checked}"

    def size_sets(self) -> list[dict[str, int]]:
        """Return the sets of sizes at which it is tried."""
        return formulas.size_sets(self.sizes)

    def draws(self) -> list[list[Givens]]:
        """Return the givens, for each set of sizes a few draws; the same in every run, whatever the LaTeX says."""
        return _draws(self.make, self.sizes, self.label)

    def read(self, latex: str | None = None) -> Formula:
        """Read the LaTeX, or another formula of the same symbols; raises formulas.Malformed."""
        formula = formulas.formula_of(self.latex if latex is None else latex, self.draws()[0][0])
        if self.registered and formula.latex != self.registered:
            formula.spare = frozenset(self.draws()[0][0])  # another wording may need less: what it does not say is found in other ways
        return formula

    def judge(self, formula: Formula) -> list[Judged]:
        """Judge a formula on all draws of each set of sizes; raises formulas.Refuted or formulas.Malformed."""
        judged = formulas.judge_draws(formula, itertools.chain(*self.draws()))
        if not self.loose:
            sets = [list(itertools.chain(*judged[first : first + DRAWS])) for first in range(0, len(judged), DRAWS)]
            _complain_of_bounds(sets, formula)
        found = list(itertools.chain(*judged))
        try:
            _complain_of_constants(found, formula.latex)
        except formulas.Malformed:
            if self.registered in ("", formula.latex) or not formula.latex:
                raise
            tried = [trial.givens for trial in saying.trials(formula, self.draws()[0][:1]) if trial.fallen is not None]
            _complain_of_constants(itertools.chain(found, *(formulas.sides(formula, givens) for givens in tried)), formula.latex)
        return found

    def check(self, latex: str | None = None) -> None:
        """Judge what the LaTeX says, or another formula of the same symbols; of a transcribed equation, what was measured.

        Raises Refuted (with the counterexample) or Malformed (with the place); the message starts with the number.
        """
        try:
            if self.kind == "transcribed":
                self._compare_measured()
            else:
                self._check_form(latex)
        except (FormulaError, EquationError) as error:
            kind = Refuted if isinstance(error, formulas.Refuted | Refuted) else Malformed
            said = str(error)
            if isinstance(error, formulas.Malformed) and error.latex not in ("", latex or self.latex):
                said = error.problem  # without what it quotes: that was not written
            raise kind(f"{numbers.eq(self.label)} is not confirmed: {said}") from error

    def _check_form(self, latex: str | None) -> None:
        """Judge a formula and what it says; another wording that is refused may have another notation, which says the same."""
        try:
            judged, formula = self._ready(latex)
            judged._complain_of_little(formula)
        except FormulaError as error:
            form = latex or self.latex
            plain = self._plainly(form) if self.registered not in ("", form) else form
            if plain == form:
                raise
            try:
                self._check_form(plain)
            except FormulaError as another:
                raise (another if isinstance(another, formulas.Refuted) else error) from None

    def _plainly(self, latex: str) -> str:
        """Return a form in a notation that says the same and is easier to judge, with the names of what it writes out."""
        givens = self.draws()[0][0]
        plain = plainly(latex, givens)
        for (start, end), same, equality in written_out(plain, givens):
            with contextlib.suppress(FormulaError):
                self._as_written(equality)
                plain = plain[:start] + same + plain[end:]
        return plain

    def _ready(self, latex: str | None) -> "tuple[Equation, Formula]":
        """Read and judge a formula; what is not confirmed as it stands may be meant otherwise."""
        try:
            return self._as_written(latex)
        except FormulaError as error:
            said, form, given = error, latex or self.latex, self.draws()[0][0]
            if self.registered in ("", form):
                raise
            registered, _ = _registered(self.make, self.sizes, self.label, self.registered)
            for other in itertools.chain(readings(form, registered, given), self._solved(form, registered)):
                try:
                    return self._as_written(other)
                except FormulaError as another:  # what it may mean is said to be wrong, where it has no meaning as it stands
                    meant = isinstance(another, formulas.Refuted) or str(error).startswith("the range of")
                    said = another if said is error and meant and not isinstance(error, formulas.Refuted) else said
            raise said from None

    def _as_written(self, latex: str | None) -> "tuple[Equation, Formula]":
        """Read and judge a formula: with what it names besides, a size or P for the matrix of p_ij, and without what it puts in."""
        try:
            formula = self.read(latex)
            ends = [name for name in self.sizes.partition(",")[0].split() if re.search(rf":\s*{name}\s*\}}", latex or self.latex)]
            if ends and formula.latex != self.registered and (larger := self._with_named(ends[0])) is not None:
                return larger._as_written(latex)  # X_{1:T}: a length, and no letter
            for name in formula.definitions if formula.latex != self.registered else ():  # P_ij = ..., where p_ij is given
                if name.swapcase() not in formula.named and len(name) == 1 and (larger := self._with_named(name)) is not None:
                    return larger._as_written(latex)
            judged = self._without(formula)
            formula = formula if judged is self else judged.read(latex)
            judged.judge(formula)
        except formulas.Malformed as error:
            if "attained in no draw" in error.problem and (latex or self.latex) != self.registered != "":
                registered, _ = _registered(self.make, self.sizes, self.label, self.registered or self.latex)
                complain_of_larger(formula, registered, _by_size(self.draws()))
            if error.problem == TRANSPOSE and self.registered and error.latex == latex:
                return self._as_written(transposed_at(latex, error.place))
            if (reworded := self._reworded(latex or self.latex, error.problem)) is not None:
                return reworded
            named = _MISSING.match(error.problem)
            larger = self._with_named(named[1]) if named and (latex or self.latex) != self.registered else None
            if larger is None:
                raise
            return larger._as_written(latex)
        return judged, formula

    def _reworded(self, latex: str, problem: str) -> "tuple[Equation, Formula] | None":
        """Read another wording again: with sizes it names, a definition of the registered formula, or without one that it does not use."""
        if latex == self.registered or not self.registered:
            return None
        given = self.draws()[0][0]
        if problem.startswith("nothing is claimed"):  # S = ... of the matrix of s_ij
            sides = [re.sub(r"_.*", "", clause.partition("=")[0].strip()) for clause in clauses_of(latex)]
            named = next((one for name in sides if len(name) == 1 and (one := self._with_named(name)) is not None), None)
            return named._as_written(latex) if named else None
        sizes = [spelled for name in self.sizes.partition(",")[0].split() if (spelled := _spelled(name, latex)) and spelled not in given]
        larger: Equation | None = self
        for name in sizes:
            larger = larger and larger._with_named(name)
        if sizes and larger is not None:
            return larger._as_written(latex)
        clauses = {
            clause.partition("=")[0].strip(): clause.strip() for clause in re.split(r",?\s*\\q?quad", self.registered) if "=" in clause
        }
        needless = re.match(r"(\S+) is defined and no claim uses it", problem)
        if needless and (clause := clauses.get(needless[1])):
            parts = re.split(r",?\s*\\q?quad\s*", latex)
            own = [part for part in parts if part.partition("=")[0].strip() == needless[1]]
            left = [part for part in parts if part not in own]
            agrees = own and (own[0].strip() == clause or self._holds_beside(own[0], clause, needless[1]))
            return self._as_written(r", \qquad ".join(left)) if agrees and left else None
        return None

    def _solved(self, latex: str, registered: Formula) -> Iterator[str]:
        r"""Yield a form with what the registered formula defines in the place of an equality that says the same, as T = 1 / \beta may."""
        names = formulas.names_of(self.draws()[0][0])
        for clause in clauses_of(registered.latex) if registered.definitions else ():
            for name in stands_alone(clause, names) & registered.definitions.keys():
                parts = clauses_of(latex)
                for place, part in enumerate(parts):
                    if stands_linear(name, part, [*names, name]) and self._determines(part, clause, name):
                        yield r", \qquad ".join([*parts[:place], clause, *parts[place + 1 :]])

    def _determines(self, equality: str, clause: str, name: str) -> bool:
        """Whether an equality says of a number what a clause says that defines it: of no number near it, and whatever is given."""
        left, _, right = clause.rstrip(" .,").partition("=")
        try:
            formula = self.read(rf"{equality}, \qquad {clause}")
            near = self.read(rf"{equality}, \qquad {left} = 1.01 \left( {right} \right)")
            for number, draw in enumerate(itertools.chain(*self.draws())):
                sets = {one: given for one, given in draw.items() if getattr(given, "form", "") == "set"}
                other = {**formulas.unrelated(draw, np.random.default_rng(number)), **sets}
                formulas.judge(formula, other)
                if not is_number(name, formula, other):
                    return False
                with contextlib.suppress(formulas.Refuted):
                    formulas.judge(near, other)
                    return False
        except FormulaError:
            return False
        return True

    def _holds_beside(self, definition: str, clause: str, name: str) -> bool:
        """Whether a definition says of a name what a clause of the registered formula says."""
        first, second = (part.partition("=")[2].strip().rstrip(",") for part in (definition, clause))
        with contextlib.suppress(FormulaError):
            return bool(formulas.judge_draws(self.read(f"{first} = {second}"), itertools.chain(*self.draws())))
        return False

    def _with_named(self, name: str) -> "Equation | None":
        """Return it with one more name, if that is a size of its arrays, or the matrix of entries that are given in small letters."""
        givens, sizes = [*itertools.chain(*self.draws())], self.size_sets()
        if name in givens[0]:
            return None
        if _plain(name) in self.sizes.partition(",")[0].split():
            known = [sizes[place // DRAWS][_plain(name)] in _lengths(draw) for place, draw in enumerate(givens)]
            return replace(self, make=_naming(self.make, name, "")) if all(known) else None
        entries = name.swapcase()
        matrix = [getattr(formulas.as_given(draw[entries]), "form", "") for draw in givens] if entries in givens[0] else []
        return replace(self, make=_naming(self.make, name, entries)) if {*matrix} in ({"matrix"}, {"row"}, {"column"}) else None

    def _without(self, formula: Formula) -> "Equation":
        """Return it without the givens that do not stand in a formula and that the registered one could define: they may be put in."""
        givens = self.draws()[0][0]
        gone = frozenset(
            name for name in formula.given - formula.named if not aliases(name, givens) & formula.named and self._defines({name}, givens)
        )
        return replace(self, make=_making(self.make, gone)) if gone and self._defines(gone, givens) else self

    def _defines(self, names: Set[str], givens: Givens) -> bool:
        """Whether the registered formula is read without these givens, each of them being what it defines."""
        left = {name: formulas.Open() if name in names else given for name, given in givens.items()}
        try:
            formula = formulas.formula_of(self.registered or self.latex, left)
            formula.spare = frozenset(left)
            return names <= formula.definitions.keys() and bool(formulas.judge(formula, left))
        except FormulaError:
            return False

    def _complain_of_little(self, formula: Formula) -> None:
        """Complain of what says nothing, and of what says less than the registered formula."""
        known = self.make, self.sizes, self.label, self.registered or self.latex
        registered, tried = _registered(*known)
        draws, come = _smallest(self.draws()), functools.partial(_made, self.make, self.sizes)

        def special() -> list[Special]:
            return special_draws(self.make, self.sizes, self.label, registered.latex, self.may_be, DRAWS, frozenset(come()))

        if formula.tree == registered.tree:
            for said in self.beside:
                formulas.judge_draws(self.read(said), itertools.chain(*self.draws()))
            draws_that_may_be(self.make, self.sizes, self.label, registered.latex, self.may_be, DRAWS)
            saying.complain_of_nothing(registered, tried, draws[0], self.whatever, come)
        else:
            whole, moved = self._with_what_is_known(formula), _moved(*known)
            saying.complain_of_nothing(whole, saying.trials(whole, draws), draws[0], self.whatever, come)
            assumed = {chain for latex in self._known() for chain, _ in relations(self.read(latex).tree)}
            products = formulas.in_products(self.sizes)
            saying.complain_of_less(formula, whole, registered, [*tried, *moved], draws[0], products)
            others = [_with_other(trial.name, self.draws()[-1][0]) for trial in tried if not trial.whole]
            saying.complain_of_fewer(formula, whole, registered, [*tried, *moved], [draws[0], *others], assumed)
            lawless = _lawless(*known)
            if not lawless or not is_multiple(formula, registered, draws[0]):
                saying.complain_of_missing(whole, registered, [*tried, *moved], draws[0], come)
                saying.complain_of_another(formula, registered, [*tried, *moved], draws)
            saying.complain_of_another_symmetry(formula, registered, draws[0])
            complain_of_arrows(formula, registered)
            complain_of_weaker(formula, registered, _by_size(self.draws()), self._may_vanish())
            if lawless:
                complain_of_trivial(formula, registered, *lawless, draws[0])
            complain_of_narrowed(formula, registered, [*itertools.chain(*self.draws())], come())
            firsts = [first for first, *_ in self.draws()[:3]]
            complain_of_bare(whole, registered, firsts)
            for first in firsts:
                complain_of_lost(whole, registered, first)
            of_its_kind = _kept(*known)
            saying.complain_of_less(formula, whole, registered, of_its_kind, draws[0], products)
            if whole is formula:
                complain_of_same(formula, registered, draws[0])
            if not self.loose:
                complain_of_untested(formula, registered, [*itertools.chain(*self.draws())], come())
            complain_of_special(formula, special())
            complain_of_wrapped(formula, registered, draws[0], special())

    def _with_what_is_known(self, formula: Formula) -> Formula:
        """Return a formula behind what the text says beside it of the givens that do not stand in it."""
        known = [latex for latex in self._known() if self.read(latex).named & formula.given - formula.named]
        return self.read(r", \qquad ".join([*known, formula.latex])) if known else formula

    def _known(self) -> Iterator[str]:
        """Yield what the text says beside the formula: what is registered so, and products such as W = W_Q W_K^T that are assumed."""
        yield from self.beside
        for said in filter(_PRODUCT.fullmatch, self.assumes):
            latex = re.sub(r"_(\w\w+)", r"_{\1}", said.replace("^T", r"^\top"))
            with contextlib.suppress(FormulaError):
                formulas.judge_draws(self.read(latex), itertools.chain(*self.draws()))
                yield latex

    def _may_vanish(self) -> set[str]:
        """Return the names of what the texts of its lesson say that it is 0 or more, unless it comes from a softmax."""
        home = self.make.__module__.rpartition(".")[0]
        said = [text for one in REGISTRY.loaded() if one.make.__module__.startswith(home) for text in (*one.assumes, one.latex)]
        found = {name for text in said for pair in _NOT_NEGATIVE.findall(text) for name in pair if name}
        weights = {name for name, given in self.draws()[0][0].items() if "e^{" in getattr(given, "formula", "")}
        return {name for name in found - weights if not any(re.search(rf"{re.escape(name)}\w* = .*softmax", text) for text in self.assumes)}

    def _compare_measured(self) -> None:
        for draw in itertools.chain(*self.draws()):
            for name, (value, low, high) in draw.items():
                if not low <= value <= high:
                    raise Refuted(f"{name} is {value:.6g}, not from {low:.6g} to {high:.6g}")


@lru_cache(maxsize=512)
def _draws(make: Maker, sizes: str, label: str) -> list[list[Givens]]:
    seeds = ([zlib.crc32(label.encode()), number] for number in itertools.count())
    return [[drawn(make, np.random.default_rng(next(seeds)), draw, given) for draw in range(DRAWS)] for given in formulas.size_sets(sizes)]


@lru_cache(maxsize=512)
def _making(make: Maker, gone: frozenset[str]) -> Maker:
    @functools.wraps(make)
    def without(**sizes: Any) -> Givens:
        return {name: formulas.Open() if name in gone else given for name, given in make(**sizes).items()}

    return without


def _spelled(name: str, latex: str) -> str:
    """Return the name of a size as it stands in a formula; "" if it does not."""
    letter, _, below = name.partition("_")
    end = rf"\s*_\s*\{{?\s*(\\(?:text|mathrm)\s*\{{\s*)?{below}(?![A-Za-z])" if below else r"(?![A-Za-z_])()"
    found = re.search(rf"(?<![A-Za-z\\]){letter}{end}", latex)
    return "" if found is None else rf"{letter}_{{\text{{{below}}}}}" if found[1] else name


def _plain(name: str) -> str:
    r"""Return the name of a size without what sets it upright: d_model for d_{\text{model}}."""
    return re.sub(r"\\text|[{}]", "", name)


@lru_cache(maxsize=512)
def _naming(make: Maker, name: str, entries: str) -> Maker:
    @functools.wraps(make)
    def more(**sizes: Any) -> Givens:
        givens = make(**sizes)
        if not entries:
            return {**givens, name: formulas.Size(sizes[_plain(name)])}
        known = formulas.as_given(givens[entries])
        if isinstance(known, Given) and np.ndim(known.raw) == 2:
            matrix = replace(known, form="matrix")
            return {**givens, entries: known if known.form == "column" else matrix, name: matrix}
        return {**givens, entries: known, name: known}

    return more


def _lengths(givens: Givens) -> set[int]:
    """Return how long the axes of all arrays are."""
    return {length for thing in givens.values() for length in np.shape(getattr(formulas.as_given(thing), "raw", 0))}


def _letters(make: Maker) -> list[str]:
    """Return the sizes that a function takes: its parameters, but for what draws and the number of the draw."""
    parameters = signature(make).parameters.values() if isfunction(make) else ()
    return [one.name for one in parameters if one.kind != one.VAR_KEYWORD and one.name not in ("rng", "normal", "draw")]


def _with_other(name: str, draw: Givens) -> Givens:
    """Return a draw with other numbers in the place of one of its givens."""
    return {**draw, **dict.fromkeys(aliases(name, draw), saying.disturbed(draw[name], np.random.default_rng(11)))}


def _by_size(draws: list[list[Givens]]) -> list[Givens]:
    """Return all draws, those of the largest set of sizes at the end."""
    return list(itertools.chain(*sorted(draws, key=lambda some: sum(formulas.count(given) for given in some[0].values()))))


def _smallest(draws: list[list[Givens]]) -> list[Givens]:
    """Return the draws of the smallest set of sizes."""
    return min(draws, key=lambda some: sum(formulas.count(given) for given in some[0].values()))


@lru_cache(maxsize=512)
def _registered(make: Maker, sizes: str, label: str, latex: str) -> tuple[Formula, list[saying.Trial]]:
    """Return a registered formula, and what becomes of it with other numbers in the place of each given."""
    draws = _draws(make, sizes, label)
    formula = formulas.formula_of(latex, draws[0][0])
    return formula, saying.trials(formula, _smallest(draws))


@lru_cache(maxsize=512)
def _moved(make: Maker, sizes: str, label: str, latex: str) -> list[saying.Trial]:
    """Return what becomes of a registered formula with the numbers of each given in other places, negated, or exchanged."""
    draws = _draws(make, sizes, label)
    formula, first = formulas.formula_of(latex, draws[0][0]), _smallest(draws)[0]
    return [
        *saying.shuffled(formula, first),
        *saying.negated(formula, first, [*itertools.chain(*draws)]),
        *saying.exchanged(formula, first),
    ]


@lru_cache(maxsize=512)
def _kept(make: Maker, sizes: str, label: str, latex: str) -> list[saying.Trial]:
    """Return what becomes of a registered formula with other numbers of the same kind in the place of each given."""
    draws = _draws(make, sizes, label)
    return saying.kept(formulas.formula_of(latex, draws[0][0]), _smallest(draws)[0])


@lru_cache(maxsize=512)
def _lawless(make: Maker, sizes: str, label: str, latex: str) -> tuple[str, Seen] | None:
    """Return the world in which a registered formula falls that otherwise holds whatever is given."""
    formula, tried = _registered(make, sizes, label, latex)
    falls = any(trial.fallen for trial in (*tried, *_moved(make, sizes, label, latex)))
    return None if falls else world_without(formula, _smallest(_draws(make, sizes, label))[0])


@lru_cache(maxsize=512)
def _made(make: Maker, sizes: str) -> set[str]:
    return saying.made(lambda rng: drawn(make, rng, 0, formulas.size_sets(sizes)[0]))


def _links(judged: Iterable[Judged]) -> Iterable[list[Judged]]:
    """Group what was judged by the relation it belongs to."""
    found: dict[Any, list[Judged]] = {}
    for link in judged:
        if link.counted:
            found.setdefault((link.place, link.relation), []).append(link)
    return found.values()


def _complain_of_bounds(sets: Sequence[Sequence[Judged]], formula: Formula) -> None:
    r"""At each set of sizes a bound must be attained in some draw and strict in another; on a side of an equivalence it is a condition.

    Of several bounds of one thing one must be attained, and each at some sizes: a \le b, a \le c say together a \le \min(b, c).
    """
    conditions = [node.place for node in formula.tree.walk() if node.kind == "implies" and node.value == r"\iff"]
    attained, bounds = set[Place](), dict[Place, Judged]()
    for judged in sets:
        here = [links for links in _links(judged) if links[0].relation in (r"\le", r"\ge")]
        here = [links for links in here if not any(start <= links[0].place[0] < end for start, end in conditions)]
        bounds |= {links[0].place: links[0] for links in here}
        reached = [links[0] for links in here if any(link.attained for link in links)]
        reached += [first for first, *_ in here if any(_are_mirrored(first, other) for other in reached)]
        attained |= {first.place for first in reached}
        for first, *others in here:
            if not any((one.relation, one.ends[0]) == (first.relation, first.ends[0]) for one in reached):
                raise _never_attained(first, formula)
            if not any(link.strict for link in (first, *others)):
                raise formulas.Malformed(f"{first.relation} is attained in every draw: = says more", first.place, formula.latex)
    for place, first in bounds.items():
        if place not in attained:
            raise _never_attained(first, formula)


def _are_mirrored(one: Judged, other: Judged) -> bool:
    r"""Whether they are the two bounds of -b \le a \le b, which say |a| \le b."""
    (low, first), (second, high) = sorted((one.ends, other.ends), key=lambda ends: ends[0].kind != "neg")
    return one.relation == other.relation and first == second and low == formulas.Node("neg", (high,))


def _never_attained(first: Judged, formula: Formula) -> formulas.Malformed:
    return formulas.Malformed(
        f"{first.relation} is attained in no draw of ours: a strict sign or a closer bound says more", first.place, formula.latex
    )


def _complain_of_constants(judged: Iterable[Judged], latex: str) -> None:
    """Where no side is a number as printed, both must take more than one value."""
    for links in _links(judged):
        if links[0].relation != "=" or links[0].printed or any(end.value == r"\lim" for end in links[0].ends):
            continue  # where something goes may be one number for all that is given
        for sides in ([link.left for link in links], [link.right for link in links]):
            values = np.concatenate([side.ravel() for side in sides])
            if not values.size or np.all((values == values[0]) | _is_close(values, values[0])):
                said = f"{values[0]:.4g} in every draw" if values.dtype.kind in "fc" else "the same in every draw"
                said = said if values.size else "empty"
                raise formulas.Malformed(f"a side is {said}: it says nothing of what is given", links[0].place, latex)


def _is_close(some: np.ndarray, one: Any) -> np.ndarray:
    """Whether numbers are one number, but for round-off; around 0 too."""
    if some.dtype.kind not in "fc" or not np.isfinite(one):
        return np.zeros(some.shape, bool)
    return np.asarray(np.abs(some - one) <= SAME * max(abs(one), 1.0))


class Registry:
    """All equations, by label; lessons are loaded when they are first asked for."""

    def __init__(self, *, of_the_course: bool = False) -> None:
        self._equations: dict[str, Equation] = {}
        self._of_the_course = of_the_course

    def claim(self, label: str, **facts: Any) -> Callable[[Maker], Equation]:
        """Register the function below as an equation: its docstring claims, and its body makes what the symbols stand for.

        What it says is read by `equations.written`; what else is said of it is told at `add`.
        """
        return lambda make: self.add(label, make.__doc__, make, **facts)

    def add(
        self, label: str, says: str | None, make: Maker, *, serves: str = "", rests_on: str = "", sizes: str = "",
        loose: str = "", kind: Kind = "claim", unread: str = "", equivalent: Mapping[str, str] | None = None,
        whatever: Mapping[str, str] | None = None, may_be: str = "", beside: Sequence[str] = (),
    ) -> Equation:  # fmt: skip
        r"""Register an equation: what it says, and the function that makes its givens.

        `label`: at most four lower-case words joined by hyphens, such as "softmax-jacobian".
        `says`: the formula as lessons show it (docs/formulas.md), without \label, what must hold, why it holds, and the mistakes people
        make, as `equations.written` reads it.
        `serves`: ids of the topics of the syllabus, "A1 B2". `rests_on`: labels of earlier equations that its derivation needs.
        `sizes`: the letters that are drawn, then what binds them: "T_q T_k d_k, T_k >= T_q". If nothing binds them, the parameters of
        the function say which they are. It takes these letters and, by their names, what it needs of three more: `normal`, which draws a
        table of normal numbers, normal(T, d); `rng`, a generator; and `draw` (0, 1 or 2), to make one draw special, such as the one in
        which a bound is attained.
        `loose`: why a bound is not attained in some draw and strict in another, as is otherwise demanded.
        `kind`: a "definition" has nothing to be compared with; "transcribed" is what cannot be read: its function returns
        name -> (measured, lowest, highest), and `unread` says why.
        `equivalent`: a change of the formula that means the same, as the gate prints it ("k_i -> k_j") -> the property it rests on.
        `whatever`: a given whose value comes from the others, although the formula holds for any other value too -> why.
        `may_be`: what its givens may be that they seldom are, "tied, zero, masked, empty, negative": drawn so too, see `special`.
        `beside`: formulas that the text says of its givens too, such as H(s) = -\sum_i s_i \ln s_i: another wording may use them.

        Raises ValueError if the label is malformed or taken, or what it says cannot be read.
        """
        if not isinstance(label, str) or not numbers.NAME.fullmatch(label):
            raise ValueError(f'label wants at most four lower-case words joined by hyphens, such as "softmax-jacobian"; got {label!r}')
        if label in self._equations:
            raise ValueError(f"label {label} is registered twice")
        try:
            latex, assumes, why, wrongs = told(says)
        except ValueError as error:
            raise ValueError(f"Eq. {label}: {error}") from None
        belongs = tuple(serves.split()), sizes or " ".join(_letters(make)), tuple(rests_on.split())
        found = Equation(label, latex, make, why, *belongs, assumes, wrongs, loose, kind, unread, equivalent or {}, whatever or {}, latex)
        found = replace(found, may_be=may_be, beside=tuple(beside))
        self._equations[label] = found
        return found

    def loaded(self) -> Iterable[Equation]:
        """Return the equations that are loaded so far."""
        return self._equations.values()

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
            if lesson in (None, equation.lesson) or equation.make.__module__ in own  # its lesson may not show it yet
        ]
        return sorted(chosen, key=lambda equation: numbers.place("labels", equation.label))

    def get_equation(self, label: str) -> Equation:
        """Return one equation by its label."""
        lesson = numbers.lesson_of("labels", label) if isinstance(label, str) else None
        if lesson is not None:
            self._load(lesson)
        if not isinstance(label, str) or label not in self._equations:
            known = [name for lesson in self.lessons() for name in numbers.names("labels", lesson)]
            raise UnknownEquation(numbers.unknown("eq", label, {*known, *self._equations}))
        return self._equations[label]

    def _load(self, lesson: str) -> None:
        """Import the equations of a lesson."""
        for module in numbers.lesson_modules("equations", lesson) if self._of_the_course else []:
            importlib.import_module(module)


REGISTRY = Registry(of_the_course=True)
"""The course's own equations."""

claim = REGISTRY.claim


def about(*topics: str) -> Callable[..., Callable[[Maker], Equation]]:
    """Return `claim` for a file whose equations serve these topics, but where one names others."""
    return functools.partial(REGISTRY.claim, serves=" ".join(topics))
