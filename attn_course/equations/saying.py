r"""What a formula says: an equality that holds whatever is given says nothing, and another wording must say as much as the registered one.

A given is *made* if its value comes from others: it is no number that was drawn, and it changes together with another given when one
draw is made again; a function is always made. With other numbers in its place an equality that speaks of it must fall, or it says
nothing of it: `(J - J) \mathbf{1} = 0`. Where one side is a number as printed, some given must matter, or a function that every formula
knows. `Equation.whatever` names the few givens for which an identity holds for good reason.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from attn_course.equations.drawing import Watched
from attn_course.formulas import Formula, FormulaError, Judged, Malformed, Node, has_symbols, parts, sides, write
from attn_course.formulas.errors import Place
from attn_course.formulas.givens import AnyGiven, Function, Given, Of, Outcomes, Range, aliases, as_given
from attn_course.formulas.relations import ORDERS
from attn_course.formulas.tree import relations

ALIKE = 1e-9  # numbers that are closer to each other, in parts of the largest, count as one
MOST_TERMS = 6  # of an equality that are moved across
MOST_DRAWS = 12  # that are made again to see what comes from what
KNOWN: dict[str, Callable[..., Any]] = {r"\ln": np.log, r"\exp": np.exp, r"\tanh": np.tanh, r"\cos": np.cos, r"\sin": np.sin}
KNOWN |= dict.fromkeys((r"\sigma", "softmax"), lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True))
KNOWN |= {"lse": lambda z: np.log(np.exp(z).sum(axis=-1))}
SPACE = Node("constant", (), r"\mathbb{R}")
Givens: TypeAlias = Mapping[str, Any]


# ---- Other numbers in the place of a given


def disturbed(thing: Any, rng: np.random.Generator) -> AnyGiven:
    """Return a given of the same form with other numbers; of a function, one with other values that is as smooth."""
    given = as_given(thing)
    if isinstance(given, Given):
        return given if given.form == "opaque" else replace(given, raw=_other(given.raw, rng))
    if isinstance(given, Outcomes):
        return replace(given, given=replace(given.given, raw=_other(given.given.raw, rng)))
    if isinstance(given, Function | Of):
        return replace(given, call=_otherwise(given.call, isinstance(given, Function) and given.entrywise, rng.uniform(0.5, 1.5)))
    return given


def _other(raw: Any, rng: np.random.Generator) -> Any:
    data = np.asarray(raw)
    if data.dtype == bool:
        return rng.uniform(size=data.shape) < 0.6
    if data.dtype.kind not in "fc":
        return raw + rng.integers(1, 4, size=data.shape) if data.dtype.kind in "iu" else raw
    other = data * np.exp(0.05 * rng.normal(size=data.shape)) + 0.05 * rng.uniform(size=data.shape)
    return np.where(np.isfinite(data), other, data)


def _otherwise(call: Callable[..., Any], entrywise: bool, wave: float) -> Callable[..., Any]:
    def other(*arguments: Any) -> Any:
        place: Any = 0.0
        arrays = [np.asarray(argument) for argument in arguments if not callable(argument)]
        for order, array in enumerate(arrays, start=1):  # unlike for each argument, or it might be symmetric
            if array.dtype.kind in "biufc":
                part = order * np.where(np.isfinite(array), array, 0.0).real
                place = place + (part if entrywise else float((part * np.cos(np.arange(part.size)).reshape(part.shape)).sum()))
        return _changed(call(*arguments), wave * place)

    return other


def _changed(value: Any, place: Any) -> Any:
    if isinstance(value, Outcomes):
        return replace(value, given=_changed(value.given, place))
    if isinstance(value, Given):
        return value if value.form == "opaque" else replace(value, raw=_changed(value.raw, place))
    data = np.asarray(value)
    if data.dtype == bool:
        return ~data
    if data.dtype.kind not in "iufc":
        return value
    along = place if np.ndim(place) else place + np.arange(data.size).reshape(data.shape)
    return data * (1.5 + 0.4 * np.sin(along)) + 0.1 * np.cos(along)


# ---- What is made


class _Tape(Watched):
    """A generator that keeps what it drew, and makes half of one of its draws anew."""

    def __init__(self, anew: int = -1, half: int = 0) -> None:
        super().__init__(np.random.PCG64(0))
        self.drawn: list[np.ndarray] = []
        self._anew, self._half, self._other = anew, half, np.random.default_rng(1)

    def _drew(self, name: str, value: Any, again: Callable[[np.random.Generator], Any]) -> Any:
        if len(self.drawn) == self._anew:
            other, first = again(self._other), np.arange(np.size(value)) < np.size(value) / 2
            kept = first.reshape(np.shape(value)) if self._half else ~first.reshape(np.shape(value))
            value = np.where(kept, value, other) if np.ndim(value) else other
        self.drawn.append(np.ravel(value))
        return value


def made(make: Callable[[np.random.Generator], Givens]) -> set[str]:
    """Return the names of the givens that come from what another given comes from, and were not drawn themselves."""
    tape = _Tape()
    first = {name: as_given(given) for name, given in make(tape).items()}
    drawn = set(np.concatenate(tape.drawn).tolist()) if tape.drawn else set()
    found = {name for name, given in first.items() if isinstance(given, Function | Of)}
    for place, half in itertools.product(range(min(len(tape.drawn), MOST_DRAWS)), (0, 1)):
        try:
            again = {name: as_given(given) for name, given in make(_Tape(place, half)).items()}
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            continue  # a special case no longer fits the other numbers
        moved = {name for name, given in first.items() if not np.array_equal(_numbers(given), _numbers(again[name]))}
        found |= moved if len(moved) > 1 else set()
    return {name for name in found if not (numbers := _numbers(first[name])).size or not {*numbers.ravel().tolist()} <= drawn}


def _numbers(given: AnyGiven) -> np.ndarray:
    inner = given.given if isinstance(given, Outcomes) else given
    return np.asarray(inner.raw) if isinstance(inner, Given) and inner.form != "opaque" else np.zeros(0)


# ---- What matters to a formula


@dataclass(frozen=True)
class Trial:
    """Givens with other numbers in the place of one, and where the formula fell with them: places; None if it lost its meaning.

    It may always lose its meaning with another whole number, such as a bound of a sum: that says nothing of what is claimed.
    """

    name: str
    givens: Givens
    fallen: frozenset[Place] | None
    whole: bool = False
    negated: bool = False

    @property
    def matters(self) -> bool:
        """Whether the formula fell."""
        return self.fallen is None or bool(self.fallen)

    def matters_in(self, chain: Node) -> bool:
        """Whether that part of the formula fell."""
        return not self.whole if self.fallen is None else any(chain.place[0] <= start < chain.place[1] for start, _ in self.fallen)


def trials(formula: Formula, draws: Sequence[Givens]) -> list[Trial]:
    """Try a formula with other numbers in the place of each of its givens, draw by draw until it falls."""
    found = []
    for place, (name, thing) in enumerate(draws[0].items()):
        given = as_given(thing)
        if isinstance(given, Range) or (isinstance(given, Given) and given.form == "opaque"):
            continue
        for number, draw in enumerate(draws):
            givens = {**draw, **dict.fromkeys(aliases(name, draw), disturbed(draw[name], np.random.default_rng([place, number])))}
            trial = Trial(name, givens, fallen(formula, givens), isinstance(given, Given) and isinstance(given.raw, int | np.integer))
            if trial.matters:
                break
        found.append(trial)
    return found


def shuffled(formula: Formula, draw: Givens) -> list[Trial]:
    """Try a formula with the numbers of each of its givens in other places, so that their sum stays as it is."""
    arrays = {
        name: given
        for name, thing in draw.items()
        if isinstance(given := as_given(thing), Given) and given.form != "opaque" and np.ndim(given.raw)
    }
    rolled = [
        (name, replace(given, raw=np.roll(given.raw, 1, axis))) for name, given in arrays.items() for axis in {0, np.ndim(given.raw) - 1}
    ]
    moved = [(name, {**draw, **dict.fromkeys(aliases(name, draw), given)}) for name, given in rolled]
    return [Trial(name, givens, fallen(formula, givens)) for name, givens in moved]


def exchanged(formula: Formula, draw: Givens) -> list[Trial]:
    """Try a formula with the numbers exchanged of two givens that it says outright: their sum and their product do not see it."""
    ends = {side.value for chain, _ in relations(formula.tree) for side in chain.children[::2] if side.kind == "name"}
    given = {name: one for name in sorted(ends & draw.keys()) if isinstance(one := as_given(draw[name]), Given) and one.form != "opaque"}
    found = []
    for (name, one), (other, two) in itertools.combinations(given.items(), 2):
        if one.form == two.form and np.shape(one.raw) == np.shape(two.raw):
            moved = {**dict.fromkeys(aliases(name, draw), two), **dict.fromkeys(aliases(other, draw), one)}
            found.append(Trial(name, {**draw, **moved}, fallen(formula, {**draw, **moved})))
    return found


def negated(formula: Formula, draw: Givens, draws: Sequence[Givens]) -> list[Trial]:
    """Try a formula with each of its givens negated, unless it is positive in all draws: a square or an absolute value does not see it."""
    found = []
    for name, thing in draw.items():
        given = as_given(thing)
        if isinstance(given, Given) and given.form != "opaque" and np.asarray(given.raw).dtype.kind in "fc":
            if all(np.all(np.asarray(getattr(one[name], "raw", one[name])) > 0) for one in draws):
                continue
            givens = {**draw, **dict.fromkeys(aliases(name, draw), replace(given, raw=-np.asarray(given.raw)))}
            found.append(Trial(name, givens, fallen(formula, givens), negated=True))
    return found


def kept(formula: Formula, draw: Givens) -> list[Trial]:
    """Try a formula with other numbers of the same kind: weights that sum to 1, a symmetric matrix, a function with the same odd part.

    What is random is smaller in all outcomes: it is as symmetric, and independent of as much.
    What holds of all that are of a kind says of one of them only that it is of this kind.
    """
    found, functions = list[Trial](), dict[str, Function]()
    for place, (name, thing) in enumerate(draw.items()):
        given, rng = as_given(thing), np.random.default_rng([place, 7])
        others: list[AnyGiven] = []
        if isinstance(given, Given) and given.form != "opaque" and np.asarray(given.raw).dtype.kind == "f":
            others = [replace(given, raw=change(np.asarray(given.raw), rng)) for is_such, change in KINDS if is_such(np.asarray(given.raw))]
        elif isinstance(given, Outcomes) and np.asarray(given.given.raw).dtype.kind == "f":
            others = [replace(given, given=replace(given.given, raw=0.8 * np.asarray(given.given.raw)))]
        elif isinstance(given, Function) and not given.names:
            functions[name] = given
            others = [replace(given, call=_added(given.call, wave)) for wave in (np.sin, np.cos)]
            others += [replace(given, call=change(given.call)) for change in (_other_weights, _wider)]
            others += [replace(given, call=_operation(given.call, change)) for change in OPERATIONS]
        moved = [{**draw, **dict.fromkeys(aliases(name, draw), other)} for other in others]
        found += [Trial(name, givens, fallen(formula, givens)) for givens in moved]
    if len(functions) > 1:
        for wave in (np.sin, np.cos):
            givens = {**draw, **{name: replace(given, call=_added(given.call, wave)) for name, given in functions.items()}}
            found.append(Trial(min(functions), givens, fallen(formula, givens)))
    return found


def _are_symmetric(raw: np.ndarray) -> bool:
    return raw.ndim > 1 and raw.shape[-1] == raw.shape[-2] > 1 and np.allclose(raw, np.swapaxes(raw, -1, -2), rtol=0, atol=ALIKE)


def _weights_again(raw: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    other = raw * np.exp(0.5 * rng.normal(size=raw.shape))
    return np.asarray(other / other.sum(axis=-1, keepdims=True))


def _symmetric_again(raw: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    more = rng.normal(size=raw.shape)
    return np.asarray(raw + more + np.swapaxes(more, -1, -2))


def _added(call: Callable[..., Any], wave: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function with an odd or an even one added to it."""

    def other(*arguments: Any) -> Any:
        value = call(*arguments)
        arrays = [np.asarray(argument) for argument in arguments if not callable(argument)]
        numbers = [array.astype(float) for array in arrays if array.dtype.kind in "iuf"]
        if isinstance(value, Outcomes | Given) or np.asarray(value).dtype.kind != "f" or not numbers:
            return value
        same = [one for one in numbers if one.shape == np.shape(value)]
        total = sum(float(np.where(np.isfinite(one), one, 0.0).sum()) for one in numbers)
        return value + 0.3 * wave(same[0] if same else total)

    return other


def _wider(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that grows with how far the entries of its arguments are apart, unless it takes them one by one."""

    def other(*arguments: Any) -> Any:
        value = call(*arguments)
        spread = sum(float(np.std(one)) for one in map(np.asarray, arguments) if one.dtype.kind == "f" and np.isfinite(one).all())
        if isinstance(value, Outcomes):
            return replace(value, given=replace(value.given, raw=np.asarray(value.given.raw) * (1 + spread)))
        if not isinstance(value, np.ndarray | float) or np.asarray(value).dtype.kind != "f" or not spread:
            return value
        with contextlib.suppress(ValueError, TypeError, IndexError, ArithmeticError):
            if np.allclose(call(*(np.ravel(one)[:1] for one in arguments)), np.ravel(value)[:1]):
                return value
        return value * (1 + spread)

    return other


def _operation(call: Callable[..., Any], change: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Return another operation on two arrays that gives a third of their form."""

    def other(*arguments: Any) -> Any:
        value = call(*arguments)
        if len(arguments) != 2 or not np.ndim(value) or {np.shape(one) for one in arguments} != {np.shape(value)}:
            return value
        return change(value, *map(np.asarray, arguments))

    return other


def _other_weights(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives other weights where it gives weights."""

    def other(*arguments: Any) -> Any:
        value = call(*arguments)
        raw = value.raw if isinstance(value, Given) else value
        if isinstance(value, Outcomes) or not _are_weights(raw):
            return value
        data = np.asarray(raw)
        again = data * (1.5 + np.sin(1 + np.arange(data.size).reshape(data.shape)))
        again = again / again.sum(axis=-1, keepdims=True)
        return replace(value, raw=again) if isinstance(value, Given) else again

    return other


def fallen(formula: Formula, givens: Givens) -> frozenset[Place] | None:
    """Return the places of the relations that do not hold; None if one of them has no meaning."""
    try:
        return frozenset(one.place for one in sides(formula, givens) if (one.counts & ~one.fulfilled).any())
    except FormulaError:
        return None


def complain_of_nothing(formula: Formula, tried: list[Trial], plain: Givens, whatever: Iterable[str], come: Callable[[], set[str]]) -> None:
    """Complain of an equality that holds whatever the made givens in it are, or, if a side is a number as printed, whatever all are."""
    outright = [claim for claim in formula.claims if claim.kind not in ("given", "implies")]
    equalities = [chain for claim in outright for chain, _ in relations(claim) if {sign.value for sign in chain.children[1::2]} == {"="}]
    for chain in equalities:
        beneath = formula.names_beneath(chain)
        here = [trial for trial in tried if trial.name in beneath]
        if not any(trial.matters_in(chain) for trial in here) and (nothing := {trial.name for trial in here} & come() - {*whatever}):
            raise _says_nothing(nothing, formula, chain)
        if is_printed(formula, chain) and not any(trial.matters_in(chain) for trial in here if not trial.whole):
            known = {node.value for node in chain.walk() if node.kind == "call"} & KNOWN.keys()
            if known and not any(_matters(formula, chain, plain, name) for name in known):
                raise _says_nothing(known, formula, chain)
    if len(equalities) == sum(1 for claim in formula.claims for node in claim.walk() if node.kind == "chain"):  # and no condition
        for trial in tried:
            if not trial.matters and trial.name not in whatever and trial.name in come():
                raise _says_nothing({trial.name}, formula, formula.tree)


def is_printed(formula: Formula, chain: Node) -> bool:
    """Whether a side is a number as it is printed."""
    return not all(has_symbols(formula, side) for side in chain.children[::2])


def _matters(formula: Formula, chain: Node, plain: Givens, name: str) -> bool:
    """Whether other values of a function that every formula knows make an equality fall."""
    other = Formula(formula.tree, [*formula.given, name], formula.ranges, formula.latex)
    return Trial(name, {}, fallen(other, {**plain, name: Function(_otherwise(KNOWN[name], False, 1.0))})).matters_in(chain)


def _says_nothing(names: Iterable[str], formula: Formula, node: Node) -> Malformed:
    name = min(names)
    return Malformed(f"whatever {name} is, this holds: it says nothing of {name}", node.place, formula.latex)


# ---- Another wording of a registered formula


def complain_of_less(
    formula: Formula, whole: Formula, registered: Formula, tried: Iterable[Trial], draw: Givens, products: Set[str] = frozenset()
) -> None:
    r"""Complain of a formula that still holds where the registered one falls, has fewer cases, or moves a remark elsewhere.

    `whole`: the formula and what is known beside it. `tried`: the trials of the registered formula, with other numbers, with the same in
    other places, and negated. In a bound weights that sum to 1 stay such, unless it says that they do, and a size that is a
    product of others stays it: `products` names them.
    """
    conditions = [node for node in formula.tree.walk() if node.kind == "where" and {*node.children[1:]} - {*registered.tree.walk()}]
    more = len([*relations(formula.tree)]) - len([*relations(registered.tree)])  # by so many clauses the cases may be shared out
    if conditions and _left_out(formula, draw) - max(0, more) > _left_out(registered, draw) + ALIKE:
        raise Malformed("the condition leaves out cases of the registered formula", conditions[0].place, formula.latex)
    tried = [*tried]
    shapes = registered.given - _spoken_of(registered.tree)
    (equal, bounds), (own_equal, own_bounds) = _kinds(registered), _kinds(formula)
    for trial in tried:
        if trial.whole and trial.name in products:
            continue
        if trial.matters and fallen(whole, trial.givens) == frozenset() and trial.fallen is not None:
            again = kept_as_weights(trial, registered, draw) if bounds and not trial.negated else None
            if again and not (fallen(registered, again) and fallen(whole, again) == frozenset()):
                continue
            again = _together(trial, draw)
            if trial.name in shapes or (again and (fallen(registered, again) == frozenset()) == (fallen(whole, again) == frozenset())):
                continue
            raise Malformed(
                f"with another {trial.name} this holds too, and the registered formula does not", formula.tree.place, formula.latex
            )
    distinctions = _more_distinctions(formula, registered)
    if 0 < own_bounds - bounds < 2 * (equal - own_equal - distinctions):  # a \le b and b \le a say a = b
        raise Malformed("the registered formula claims an equality, and here stands a bound", formula.tree.place, formula.latex)
    remarks, known = _remarks(formula), _remarks(registered)
    for remark in (*known, *remarks):
        if remarks.get(remark) != known.get(remark):
            said = f"{remark} stands where it does not in the registered formula, or the other way round"
            raise Malformed(said, formula.tree.place, formula.latex)


def complain_of_fewer(
    formula: Formula, whole: Formula, registered: Formula, tried: Sequence[Trial], draws: Sequence[Givens], assumed: Set[Node] = frozenset()
) -> None:
    """Complain of fewer relations than the registered formula has; of those that say the same one counts, `assumed` ones claim nothing.

    As many must fall, unless something known (`whole` has it) is put in: W_Q W_K^T, which is no other with another W.
    """
    distinctions, known = _more_distinctions(formula, registered), {chain for chain, _ in relations(registered.tree)}
    needless, implied = _identities(registered, tried), _implied(registered, formula)
    both = (registered, _relations(registered)), (formula, _relations(formula, assumed - known))
    signs, own_signs = (sum(claimed.values()) for _, claimed in both)
    wanted, found = (_different(one, claimed, [*draws, *(trial.givens for trial in tried)]) for one, claimed in both)
    in_letters = [any(claim.letters() for claim in one.claims) for one in (formula, registered)]
    if in_letters == [False, True] and found[0] >= len(registered.claims):
        distinctions += 1  # a matrix for its entries, of which a chain says two things
    for most, own in (
        (signs - needless - implied, own_signs),
        (wanted[0] - needless - implied, found[0]),
        (wanted[1] - implied, found[2 if whole is formula else 0]),
    ):
        if own + distinctions < most:
            said = f"{most} relations are wanted, as in the registered formula; here {'is' if own == 1 else 'are'} {own}"
            said += ": what a definition says is not claimed" * bool(formula.definitions)
            raise Malformed(said, formula.tree.place, formula.latex)


def complain_of_missing(formula: Formula, registered: Formula, tried: Iterable[Trial], draw: Givens, come: Callable[[], set[str]]) -> None:
    """Complain of a special case: a given that may be anything is missing, or a formula sees it only up to its sign."""
    named = {other for name in formula.names_beneath(formula.tree) & draw.keys() for other in aliases(name, draw) or (name,)}
    for trial in tried:
        given = as_given(draw[trial.name])
        if trial.matters or trial.name not in registered.named:
            continue
        if isinstance(given, Function | Of) and trial.name not in named:
            said = f"the registered formula says it of every {trial.name}, and here {trial.name} does not stand"
            raise Malformed(f"this is weaker: {said}", formula.tree.place, formula.latex)
        if not isinstance(given, Given) or np.asarray(given.raw).dtype.kind not in "fi":
            continue
        if trial.name not in named and _together(trial, draw) is None and trial.name not in come():
            said = f"the registered formula says it of every {trial.name}, and here {trial.name} does not stand"
            raise Malformed(f"this is weaker: {said}", formula.tree.place, formula.latex)
        if (
            trial.negated
            and not np.ndim(given.raw)
            and trial.name in named
            and _changes(registered, draw, trial.givens)
            and not _changes(formula, draw, trial.givens)
            and _changes(formula, draw, {**draw, trial.name: replace(given, raw=1.3 * np.asarray(given.raw) + 0.1)})
        ):
            said = f"the registered formula says it of every {trial.name}, and this sees it only up to its sign"
            raise Malformed(f"this is weaker: {said}", formula.tree.place, formula.latex)


def _changes(formula: Formula, draw: Givens, other: Givens) -> bool:
    """Whether a side of a formula has other numbers with other givens, or is a number as printed."""
    before, after = sides(formula, draw), sides(formula, other)
    return any(
        one.printed or not (np.array_equal(end, other) or (end.dtype.kind == "f" and np.allclose(end, other, rtol=ALIKE, atol=0)))
        for one, two in zip(before, after, strict=True)
        for end, other in ((one.left, two.left), (one.right, two.right))
    )


def kept_as_weights(trial: Trial, registered: Formula, draw: Givens) -> Givens | None:
    """Return the givens of a trial with weights that sum to 1 again; None if they did not, or the registered formula says that they do."""
    one, other = as_given(draw[trial.name]), as_given(trial.givens[trial.name])
    if not isinstance(one, Given) or not isinstance(other, Given) or not _are_weights(one.raw):
        return None
    ends = {(side.kind, side.value) for chain, _ in relations(registered.tree) for side in chain.children[::2]}
    if ends & {("number", "1"), ("constant", "1")}:
        return None
    sizes = np.abs(np.asarray(other.raw))
    again = replace(other, raw=sizes / sizes.sum(axis=-1, keepdims=True))
    return {**trial.givens, **dict.fromkeys(aliases(trial.name, draw), again)}


def _are_weights(raw: Any) -> bool:
    data = np.asarray(raw)
    fits = data.dtype.kind == "f" and data.ndim > 0 and data.shape[-1] > 1 and bool((data >= 0).all())
    return fits and bool(np.allclose(data.sum(axis=-1), 1, rtol=0, atol=ALIKE))


def complain_of_another_symmetry(formula: Formula, registered: Formula, draw: Givens) -> None:
    """Complain of a form in which rows or columns alone are permuted: it alone falls with a softmax that knows the diagonal."""
    known = {**draw, "softmax": Function(_with_diagonal)}
    if not any(map(_is_permutation, draw.values())):
        return
    own, other = (fallen(Formula(one.tree, [*one.given, "softmax"], one.ranges, one.latex), known) for one in (formula, registered))
    if own and other == frozenset():
        raise Malformed("the registered formula permutes rows and columns alike, and this does not", formula.tree.place, formula.latex)


def _with_diagonal(z: np.ndarray) -> np.ndarray:
    square = np.ndim(z) == 2 and z.shape[0] == z.shape[1]
    return np.asarray(KNOWN["softmax"](z) + (np.diag(np.diag(z)) if square else 0))


def _is_permutation(thing: Any) -> bool:
    given = as_given(thing)
    raw = np.asarray(given.raw) if isinstance(given, Given) and given.form == "matrix" else np.zeros(0)
    return raw.ndim == 2 and bool(np.isin(raw, (0, 1)).all() and (raw.sum(axis=0) == 1).all() and (raw.sum(axis=1) == 1).all())


def complain_of_another(formula: Formula, registered: Formula, tried: Iterable[Trial], draws: Sequence[Givens]) -> None:
    """Complain of a formula in which no side of the registered one stands, if that holds whatever is given.

    The same change on both sides of an identity gives another identity, which no draw refutes. Numbers are compared whatever their
    order, sign and common factor, so that sides may be transposed, exchanged or multiplied.
    """
    signs = {node.value for node in registered.tree.walk() if node.kind == "relation"}
    limited = any(node.kind in ("where", "given", "implies") or node.value == r"\lim" for node in registered.tree.walk())
    if signs != {"="} or limited or any(trial.fallen for trial in tried):
        return
    found = [parts(formula, draw) for draw in draws]
    for wanted in _ends_of(registered, draws):
        if any(_proportional([_distinct(values) for _, values in part], wanted) for part in zip(*found, strict=False)):
            return
    ends = [*_ends_of(formula, draws)]
    rows = [[_distinct(np.concatenate(one)) for one in zip(*side, strict=True)] for side in (ends[::2], ends[1::2])]  # of a matrix identity
    if any(_proportional(own, wanted) for wanted in _ends_of(registered, draws) for own in rows):
        return
    for other in _rearranged(registered):
        with contextlib.suppress(FormulaError):  # a matrix does not divide
            if any(_proportional(own, wanted) for wanted in _ends_of(other, draws) for own in ends):
                return
    raise Malformed("no side of the registered formula stands in it: it speaks of something else", formula.tree.place, formula.latex)


def _ends_of(formula: Formula, draws: Sequence[Givens]) -> Iterator[list[np.ndarray]]:
    """Yield the numbers of each side of a formula, draw by draw."""
    judged = [[values for one in sides(formula, draw) for values in (one.left, one.right)] for draw in draws]
    yield from ([*map(_distinct, side)] for side in zip(*judged, strict=True))


def _rearranged(formula: Formula) -> Iterator[Formula]:
    """Yield an equality of numbers with some of its terms, or of its factors, on the one side and the others on the other."""
    (chain, _), *others = relations(formula.tree)
    if others or len(chain.children) != 3:
        return
    left, sign, right = chain.children
    for kind, turn in (("sum", _negative), ("product", _inverse)):
        here, there = ([*side.children] if side.kind == kind else [side] for side in (left, right))
        every = [*here, *map(turn, there)]
        for count in range(1, len(every) if len(every) <= MOST_TERMS else 1):
            for chosen in itertools.combinations(range(len(every)), count):
                moved = [Node(kind, tuple(one for place, one in enumerate(every) if place in chosen))]
                moved.append(Node(kind, tuple(turn(one) for place, one in enumerate(every) if place not in chosen)))
                with contextlib.suppress(FormulaError):
                    yield formula.with_tree(formula.tree.with_node(chain, replace(chain, children=(moved[0], sign, moved[1]))))


def _negative(node: Node) -> Node:
    return Node("neg", (node,))


def _inverse(node: Node) -> Node:
    return Node("over", (Node("number", (), "1"), node), "/")  # of a number: a matrix has none


def _distinct(values: np.ndarray) -> np.ndarray:
    """Return the sizes of the finite numbers of an array, each once, in ascending order."""
    numbers = np.sort(np.abs(values[np.isfinite(values)])) if values.dtype.kind in "fc" else np.zeros(0)
    return numbers[np.diff(numbers, prepend=-np.inf) > ALIKE * numbers.max(initial=0.0)]


def _proportional(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether numbers of several draws are those others, but for one factor; a constant is proportional to nothing."""
    if [each.size for each in some] != [each.size for each in others]:
        return False
    one, other = np.concatenate(some), np.concatenate(others)
    if np.ptp(other) <= ALIKE * other.max(initial=0.0):
        return False
    return np.allclose(one * other.max(), other * one.max(), rtol=1e-7, atol=ALIKE * one.max() * other.max())


def _left_out(formula: Formula, draw: Givens) -> float:
    """Return which parts of all cases the clauses of a formula do not speak of, added up."""
    judged = sides(formula, draw)
    firsts = [one for before, one in zip([None, *judged], judged, strict=False) if before is None or one.ends[0] is not before.ends[1]]
    return sum(1 - float(one.counts.mean()) for one in firsts)


def _spoken_of(node: Node) -> frozenset[str]:
    r"""Return the names in a tree, but for those that say a shape only, as in Z \in \mathbb{R}^{m \times n}."""
    if node.children and node.children[0] == SPACE:
        return frozenset()
    return frozenset([node.value] if node.kind in ("name", "call", "operator") else []).union(*map(_spoken_of, node.children))


def _together(trial: Trial, draw: Givens) -> Givens | None:
    """Return the givens of a trial in which all that has the same numbers has the same other ones: the rows k of K."""
    one, other = as_given(draw[trial.name]), as_given(trial.givens[trial.name])
    if not isinstance(one, Given) or not isinstance(other, Given) or np.ndim(one.raw) < 2:
        return None
    found = dict[str, Any]()
    for name, thing in draw.items():
        given = as_given(thing)
        for turned in (np.asarray, np.transpose) if isinstance(given, Given) else ():
            if name not in found and isinstance(given, Given) and np.array_equal(given.raw, turned(one.raw)):
                found[name] = replace(given, raw=turned(other.raw))
    return {**trial.givens, **found} if len(found) > 1 else None


def _identities(registered: Formula, tried: Iterable[Trial]) -> int:
    r"""Count the equalities behind a bound that hold whatever is given, as in e \le \sum_r |v_r| = \|v\|_1: they may be left out."""
    lost = frozenset[Place]().union(*(trial.fallen for trial in tried if trial.fallen is not None))
    found = 0
    for chain, _ in relations(registered.tree):
        ends = [side.place for side in chain.children[::2]]
        bounds = {sign.value for sign in chain.children[1::2]} & ORDERS.keys()
        for sign, left, right in zip(chain.children[1::2], ends, ends[1:], strict=False):
            found += bool(bounds) and sign.value == "=" and (left[0], right[1]) not in lost
    return found


def _implied(registered: Formula, formula: Formula) -> int:
    r"""Count the bounds \alpha_i \le 1 that a form need not say, since it says that no \alpha_i is negative and that their sum is 1."""
    signs, own_signs = ({*_signs(one.tree)} for one in (registered, formula))
    found = 0
    totals = {(side.children[1], total) for side, sign, total in signs & own_signs if sign == "=" and side.value == r"\sum"}
    for small, sign, large in signs - own_signs:
        found += sign in ("<", r"\le") and (Node("number", (), "0"), sign, small) in own_signs and (small, large) in totals
    return found


def _signs(tree: Node) -> Iterator[tuple[Node, str, Node]]:
    """Yield the relations of a formula, the smaller side first, with one letter for the only index of a side."""
    for chain, _ in relations(tree):
        sides = [_with_one_letter(side) for side in chain.children[::2]]
        for sign, left, right in zip(chain.children[1::2], sides, sides[1:], strict=False):
            turned = {">": "<", r"\ge": r"\le"}.get(sign.value, "=" if right.kind == "big" and sign.value == "=" else "")
            yield (right, turned, left) if turned else (left, sign.value, right)


def _with_one_letter(side: Node) -> Node:
    """Return a side in which i stands for the only index, and a sum without its range."""
    letters = {node.value for node in side.walk() if node.kind == "index"}
    plain = replace(side, children=(Node("domain"), *side.children[1:])) if side.kind == "big" else side
    return plain.map(lambda node: replace(node, value="i") if node.kind == "index" else node) if len(letters) == 1 else side


def _relations(formula: Formula, assumed: Set[Node] = frozenset()) -> dict[Place, int]:
    """Return where the signs stand that claim something, with how much each counts: two relations may become one chain."""
    both = [node.children[0] for claim in formula.claims for node in claim.walk() if node.value == r"\iff"]
    chains = [chain.children for part in (*formula.claims, *both) for chain, _ in relations(part) if chain not in assumed]
    links = [link for sides in chains for link in zip(sides[::2], sides[1::2], sides[2::2], strict=False)]
    return {(left.place[0], right.place[1]): _weight(sign, right) for left, sign, right in links}


def _different(formula: Formula, claimed: Mapping[Place, int], draws: Sequence[Givens]) -> tuple[int, int, int]:
    """Count the relations that differ, those of them that fall somewhere, and those that may; where the gaps do, they say the same."""
    gaps, texts, falling, lost = {place: list[np.ndarray]() for place in claimed}, dict[Place, frozenset[str]](), set[Place](), False
    for draw in draws:
        try:
            judged = sides(formula, draw)
        except FormulaError:
            lost = True
            continue
        here = {place: [np.zeros(0)] for place in claimed}
        for one in judged:
            counts = np.broadcast_to(one.counts, one.fulfilled.shape)
            texts[one.place] = frozenset(map(write, one.ends))
            falling |= {one.place} if one.relation != "=" or (counts & ~one.fulfilled).any() else set()
            here.setdefault(one.place, []).append(_gap(one)[counts] if one.equal.shape == counts.shape else _gap(one).ravel())
        for place, found in gaps.items():
            found.append(np.sort(np.concatenate(here[place])))
    kinds = list[Place]()
    for place in claimed:
        if not any(texts[place] == texts[other] or _have_one_gap(gaps[place], gaps[other]) for other in kinds):
            kinds.append(place)
    every, falls = sum(claimed[place] for place in kinds), sum(claimed[place] for place in kinds if place in falling)
    return every, falls, every if lost else falls


def _gap(one: Judged) -> np.ndarray:
    """Return how far apart the sides of a relation are; 1 where they are no numbers and differ, 0 where that is not finite."""
    with np.errstate(invalid="ignore"):
        gap = np.where(one.equal, 0.0, np.abs(one.left - one.right) if one.left.dtype.kind in "iufc" else 1.0)
    return np.where(np.isfinite(gap), gap, 0.0)


def _have_one_gap(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether the gaps of two relations are the same numbers, or proportional if they are several; without a gap nothing is known."""
    if [each.size for each in some] != [each.size for each in others]:
        return False
    one, other = np.concatenate(some), np.concatenate(others)
    if min(np.count_nonzero(one), np.count_nonzero(other)) < 2:
        return bool(other.any()) and np.allclose(one, other)
    return _proportional(some, others)


def _weight(sign: Node, side: Node) -> int:
    """Return for how many relations one counts: an interval has two bounds, and a shape claims nothing of the numbers."""
    if sign.value == r"\in":
        return 2 if side.kind in ("blocks", "tuple") else int(not side.children or side.children[0] != SPACE)
    return 1


def _kinds(formula: Formula) -> tuple[int, int]:
    """Count the chains that claim an equality, and the signs that claim a bound, but for those at an arrow."""
    outright = [claim for claim in formula.claims if claim.kind != "implies"]
    chains = [[sign.value for sign in chain.children[1::2]] for claim in outright for chain, _ in relations(claim)]
    return sum("=" in signs for signs in chains), sum(sign in ORDERS for signs in chains for sign in signs)


def _distinctions(nodes: Iterable[Node]) -> int:
    """Count what lets one relation stand for several: cases, conditions in brackets, deltas, I."""
    found = 0
    for node in nodes:
        found += len(node.children) // 2 if node.kind == "cases" else node.kind == "iverson" or node.value in (r"\delta", "I")
    return found


def _more_distinctions(formula: Formula, registered: Formula) -> int:
    return max(0, _distinctions({*formula.tree.walk()}) - _distinctions(registered.tree.walk()))


def _remarks(formula: Formula) -> dict[str, frozenset[str]]:
    """Return what is remarked at a clause, with the givens in that clause."""
    chains = [node for node in formula.tree.walk() if node.kind == "chain" and node.value]
    return {chain.value: formula.names_beneath(chain) & formula.given for chain in chains}


OPERATIONS: tuple[Callable[[Any, Any, Any], Any], ...] = (  # laws hold in them one by one
    lambda value, one, other: one,  # associative, not commutative; nothing on the right changes anything
    lambda value, one, other: np.ones_like(value),  # associative and commutative
    lambda value, one, other: value + np.where(np.isfinite(one) & np.isfinite(other), one * other, 0.0),  # commutative; 0 changes nothing
)
KINDS: tuple[tuple[Callable[[Any], bool], Callable[[np.ndarray, np.random.Generator], np.ndarray]], ...] = (
    (_are_weights, _weights_again),
    (_are_symmetric, _symmetric_again),
)
