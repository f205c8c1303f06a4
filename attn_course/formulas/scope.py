"""What a rule of evaluation works with: the givens, the index letters in force, and how names and entries get their values."""

import copy
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from attn_course.formulas.compiled import OWN, Definition, Formula, flattened
from attn_course.formulas.errors import NOWHERE, FormulaError, Malformed, Place
from attn_course.formulas.givens import AnyGiven, Function, Given, Of, Outcomes, Range, as_given
from attn_course.formulas.tree import Node, write
from attn_course.formulas.values import FORM_AXES, Value, fitted, floats, gathered, oriented

ROUND_OFF = 1e-14
MOST_ENTRIES = 1_000_000  # of one array: what a sum over all its indices may need
MOST_STEPS = 30_000  # of one evaluation, each the value of one node


@dataclass
class Notes:
    """What an evaluation learns on its way, shared by all that is derived from it.

    `biggest` is the largest number that was added to another, and a result may be off by `noise` of it; `slack` is by how much a given
    may be off; `weights` are those of the outcomes of each group; `changed` are the names that change with a name.
    """

    biggest: float = 0.0
    noise: float = ROUND_OFF
    slack: float = 0.0
    steps: int = 0
    changed: dict[str, set[str]] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)


class Scope:
    """A formula with givens: what its names, indices and entries are. The `rules`, one for each kind of node, come from outside.

    `letters` are the index letters in force, with their values along their own axes; `mask` tells which combinations of these count:
    conditions of sums and clauses, premises.
    """

    rules: ClassVar[Mapping[str, Callable[[Any, Node], Value]]]

    def __init__(self, formula: Formula, givens: Mapping[str, Any]) -> None:
        self.formula = formula
        self.givens: dict[str, AnyGiven] = {name: as_given(given) for name, given in givens.items()}
        groups = dict.fromkeys(["", *(given.group for given in self.givens.values() if isinstance(given, Outcomes))])
        self.groups = {group: len(formula.letters) + place for place, group in enumerate(groups)}  # the axis of their outcomes
        self.axes = len(formula.letters) + len(groups)
        self.cache: dict[str, Value] = {}
        self.made: dict[str, AnyGiven] = {}
        self.letters: dict[str, Value] = {}
        self.whole: dict[str, tuple[int, int]] = {}  # letters that run over all of what they index: first and count
        self.locals: dict[str, Value] = {}
        self.everywhere = self.mask = np.ones((1,) * self.axes, bool)
        self.notes = Notes()
        self.running: frozenset[str] = frozenset()

    def __copy__(self) -> Self:
        """Return the same evaluation, to be changed: it is copied for every sum and every value of a variable."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def value(self, node: Node) -> Value:
        """Return the value of a node; a complaint names its place."""
        self.notes.steps += 1
        try:
            if self.notes.steps > MOST_STEPS:
                raise Malformed(f"this takes more than {MOST_STEPS:,} steps")
            if node.kind not in self.rules:
                raise Malformed("this has no value")
            return self.rules[node.kind](self, node)
        except Malformed as error:
            if error.place == NOWHERE:
                raise Malformed(error.problem, node.place) from None
            raise
        except (ValueError, IndexError, TypeError, ArithmeticError, MemoryError) as error:
            if isinstance(error, FormulaError):
                raise
            raise Malformed(f"this cannot be computed: {(str(error) or type(error).__name__).splitlines()[0]}", node.place) from error

    def given(self, name: str) -> AnyGiven:
        """Return a given; one that is computed from others is made from them as they are now."""
        if name not in self.givens:
            raise Malformed(f"{name} is not given")
        given = self.givens[name]
        if isinstance(given, Function) and given.names:
            others = [other.call for other in map(self.given, given.names) if isinstance(other, Function)]
            return replace(given, call=functools.partial(given.call, *others))
        if not isinstance(given, Of):
            return given
        if name not in self.made:
            self.made[name] = given.at(self.plain(given.names), name)
        return self.made[name]

    def plain(self, names: Iterable[str]) -> list[Any]:
        """Return the plain arrays of givens, for a function that depends on them."""
        found = []
        for name in names:
            given = self.given(name)
            if not isinstance(given, Given):
                raise Malformed(f"{name} is no array that another given may depend on")
            found.append(given.raw)
        return found

    def array(self, name: str) -> Given:
        """Return a given that may have another value."""
        given = self.given(name)
        if not isinstance(given, Given) or given.form in ("opaque", "set"):
            raise Malformed(f"{name} is no number or array that could vary")
        return given

    def with_given(self, name: str, raw: Any) -> Self:
        """Return the same evaluation in which one given has another value, and all that depends on it is made again."""
        given = self.array(name)
        other = copy.copy(self)
        other.givens = {**self.givens, name: replace(given, raw=raw)}
        changed = self.dependents(name)
        other.made = {key: thing for key, thing in self.made.items() if key not in changed}
        other.cache = {key: kept for key, kept in self.cache.items() if key not in changed and key not in self.formula.definitions}
        return other

    def moved(self, name: str, raw: Any) -> Self:
        """Return the same evaluation with another value of the given that was changed last."""
        other = copy.copy(self)
        other.givens, other.made = {**self.givens, name: replace(self.array(name), raw=raw)}, dict(self.made)
        return other

    def with_many(self, name: str, many: np.ndarray, names: set[str]) -> Self | None:
        """Return the evaluation in which a given, and what of `names` depends on it, have many values, along the axis of outcomes.

        None where there are outcomes, or something else than an array depends on it.
        """
        if any(isinstance(given, Outcomes) for given in self.givens.values()):
            return None
        other = self.with_given(name, many[0])
        for key in self.dependents(name) & names - self.formula.definitions.keys():
            made = [other.moved(name, one).given(key) for one in many]
            arrays = [given for given in made if isinstance(given, Given) and given.form not in ("opaque", "set")]
            if len(arrays) < len(made):
                return None
            other.cache[key] = self.on_axis(replace(arrays[0], raw=np.stack([given.raw for given in arrays])), self.groups[""])
        return other

    def dependents(self, name: str) -> set[str]:
        """Return a name and the names of all that is computed from it."""
        if name not in self.notes.changed:
            self.notes.changed[name] = {key for key in self.givens if name in self.needed([key])}
        return self.notes.changed[name]

    def needed(self, names: Iterable[str]) -> set[str]:
        """Return names, and those of what they are computed from."""
        found = set(names)
        while (
            more := {name for key in found if isinstance(how := self.givens.get(key), Of | Range | Function) for name in how.names} - found
        ):
            found |= more
        return found

    def named(self, node: Node) -> Value:
        """Return the value of a name: an argument, an index in force, a definition, or a given."""
        name = node.value
        for known in (self.locals, self.letters):
            if name in known:
                return known[name]
        if node.kind == "index":
            raise Malformed(f"{name.rstrip(OWN)} has no value here")
        if name not in self.cache:
            if name in self.formula.definitions:
                return self.defined(name, self.formula.definitions[name])
            given = self.given(name)
            if isinstance(given, Outcomes):
                found = self.random(given)
            elif isinstance(given, Given):
                found = given.value(self.axes)
                self.notes.slack = max(self.notes.slack, given.noise)
            else:
                raise Malformed(f"{name} is a function or an index, and stands here alone")
            self.cache[name] = found
        return self.cache[name]

    def random(self, given: Outcomes) -> Value:
        """Put the outcomes of a random given on the axis that all outcomes share."""
        if not np.array_equal(self.notes.weights.setdefault(given.group, given.weights), given.weights):
            raise Malformed("two random givens of one group have different outcomes: enumerate them together")
        return self.on_axis(given.given, self.groups[given.group])

    def on_axis(self, given: Given, axis: int) -> Value:
        """Put the first axis of an array on an axis in front."""
        listed = given.value(self.axes)
        data = np.moveaxis(listed.data, self.axes, axis).squeeze(axis + 1)
        return Value(data, listed.form, listed.lists - 1, listed.starts[1:])

    def note(self, value: Value) -> None:
        """Remember the largest finite number that is added to others: it says what round-off may do."""
        if value.data.dtype.kind in "fc" and value.data.size:
            sizes = np.abs(value.data)
            biggest = float(sizes.max())
            if not math.isfinite(biggest):
                biggest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
            self.notes.biggest = max(self.notes.biggest, biggest)

    def defined(self, name: str, definition: Definition) -> Value:
        """Evaluate a definition: closed, but for letters of the place where it stands if it has no own ones."""
        if definition.parameters:
            raise Malformed(f"{name} is a function: its argument is missing")
        inner = self.within(name)
        inner.locals = {}
        inner.letters = {letter: value for letter, value in self.letters.items() if letter in definition.open_letters}
        if not definition.open_letters:
            inner.mask = self.everywhere
        for letter in inner.ordered(definition.own, definition.body):
            inner.enter(letter, definition.body)
        found = inner.value(definition.body)
        if definition.own:
            found = inner.listed(found, definition.own)
        if not definition.open_letters:
            self.cache[name] = found
        return found

    def listed(self, value: Value, own: tuple[str, ...]) -> Value:
        """Turn the axes of letters into axes of a list: numbers become a vector or a matrix."""
        axes = [self.formula.letters[letter] for letter in own]
        starts = tuple(int(self.letters[letter].data.ravel()[0]) for letter in own)
        shape = list(value.data.shape)
        for axis, letter in zip(axes, own, strict=True):
            shape[axis] = self.letters[letter].data.size
        data = np.moveaxis(np.broadcast_to(value.data, shape), axes, range(self.axes - len(axes), self.axes))
        data = np.expand_dims(data, tuple(axes))
        if value.form == "scalar" and not value.lists and len(own) <= 2:
            return Value(data, "vector" if len(own) == 1 else "matrix", 0, starts)
        return Value(data, value.form, value.lists + len(own), (*starts, *value.starts))

    def ordered(self, letters: Iterable[str], scope: Node) -> list[str]:
        """Order letters so that those with a range of their own come before those that need another's."""
        return sorted(sorted(letters), key=lambda letter: all(base.kind != "name" for base, _ in self.formula.uses(letter, scope)))

    def enter(self, letter: str, scope: Node) -> None:
        """Let a letter run over the lengths of what it indexes in the scope, or over its declared range."""
        declared = self.givens.get(letter.rstrip(OWN))
        if isinstance(declared, Range):
            self.run_over(letter, declared.call(*self.plain(declared.names)))
            return
        spans: dict[tuple[int, int], Node] = {}
        states: list[tuple[int, int]] = []
        for base, position in self.formula.uses(letter, scope):
            if base.kind != "name" and (spans or states):
                continue
            value = self._carrying(base, letter)
            if value is None:
                continue
            if position < 0:
                if value.form == "set":
                    spans.setdefault((value.start(0), value.data.shape[-1]), base)
                continue
            lengths = value.indexed.shape[self.axes :]
            if position >= len(lengths):
                raise _too_many_indices(value, len(lengths), base.place)
            span = (value.start(position), lengths[position])
            if value.states:
                states.append(span)
            else:
                spans.setdefault(span, base)
        if len(spans) > 1:
            said = [f"from {first} to {first + count - 1} in {write(base)}" for (first, count), base in spans.items()]
            raise Malformed(f"{letter.rstrip(OWN)} runs {' and '.join(said)}", list(spans.values())[1].place)
        if not spans and not states and letter.endswith(OWN) and (only := self._only_span()):
            states.append(only)  # N_ij = [i = j + 1] is as long as all that is given
        if not spans and not states:
            unknown = f"the range of {letter.rstrip(OWN)} is not known"
            raise Malformed(f"{unknown}: it is the index of nothing that has a length", scope.place)
        first, count = min(spans or states, key=lambda span: span[1])
        self.run_over(letter, np.arange(first, first + count))
        if spans:
            self.whole[letter] = (first, count)

    def _only_span(self) -> tuple[int, int] | None:
        """Return where all axes of the given arrays start, and how long they are; None if there are several lengths."""
        arrays = [given for given in self.givens.values() if isinstance(given, Given) and given.form not in ("opaque", "set")]
        spans = {span for given in arrays if np.ndim(given.raw) for span in self._spans(given)}
        return spans.pop() if len(spans) == 1 else None

    def _spans(self, given: Given) -> list[tuple[int, int]]:
        value = given.value(self.axes)
        return [(value.start(place), length) for place, length in enumerate(value.indexed.shape[self.axes :])]

    def _carrying(self, base: Node, letter: str) -> Value | None:
        """Return the value of what an index stands at; of its other letters, those that are not in force yet are put in force for it."""
        others = base.letters() - self.letters.keys()
        if not others and (base.kind != "call" or base.value in self.formula.definitions):
            return self.value(base)
        if letter in others:
            return None
        inner = self.here()
        try:
            for other in inner.ordered(others, base):
                inner.enter(other, base)
            return inner.value(base)
        except Malformed:
            return None

    def run_over(self, letter: str, values: np.ndarray) -> None:
        """Put a letter in force, with its values along its own axis."""
        axis = self.formula.letters[letter]
        others = math.prod(max(value.data.shape[: self.axes]) for key, value in self.letters.items() if key != letter)
        if others * len(values) > MOST_ENTRIES:
            raise Malformed(f"{letter.rstrip(OWN)} makes {others * len(values):,} terms; at most {MOST_ENTRIES:,} are computed")
        shape = [1] * self.axes
        shape[axis] = len(values)
        self.whole.pop(letter, None)
        self.letters[letter] = Value(self.number(values).reshape((*shape, *values.shape[1:])), "powers" if values.ndim > 1 else "scalar")

    def number(self, array: Any) -> np.ndarray:
        """Return numbers as they are computed with: floats."""
        array = np.asarray(array)
        return array.astype(float) if array.dtype.kind in "biu" else array

    def restricted(self, condition: np.ndarray) -> Self:
        """Return the same evaluation where only some combinations of indices count."""
        inner = self.here()
        inner.mask = self.mask & condition
        return inner

    def here(self) -> Self:
        """Return the same evaluation with a set of letters of its own."""
        inner = copy.copy(self)
        inner.letters, inner.whole = dict(self.letters), dict(self.whole)
        return inner

    def within(self, name: str) -> Self:
        """Return the evaluation in which the body of a definition is evaluated."""
        if name in self.running:
            raise Malformed(f"{name} is defined by itself")
        inner = self.here()
        inner.running = self.running | {name}
        return inner

    def entry(self, node: Node) -> Value:
        """Return entries of a list, a vector or a matrix for all values of their indices; fewer indices leave a row or an item."""
        base_node, indices = flattened(node)
        if base_node == Node("constant", (), "1"):
            return self.indicator(indices)
        if base_node == Node("index", (), r"\delta"):
            if len(indices) != 2:
                raise Malformed(r"\delta has two indices: 1 where they are equal, else 0")
            left, right, fit = fitted(*(self.value(index) for index in indices))
            return Value(self.number((left == right).all(axis=tuple(range(-FORM_AXES[fit.form], 0))) * 1))
        base = self.value(base_node)
        data = base.indexed
        if indices[0].kind == "slice":
            first, last = (self.whole_number(end) - base.start(0) for end in indices[0].children)
            if len(indices) > 1 or not 0 <= first <= last + 1 <= data.shape[self.axes]:
                raise Malformed(f"the slice reaches beyond {base}")
            return base.like(oriented(data[(slice(None),) * self.axes + (slice(first, last + 1),)], base.form).data)
        taken = self.positions(indices, base, data.shape[self.axes :])
        found, items = gathered(data, self.axes, taken), base.lists - len(taken)
        if items >= 0:
            return Value(oriented(found, base.form).data, base.form, items, base.starts[len(taken) :])
        return oriented(found, "row") if base.form == "matrix" and items == -1 else Value(found)

    def positions(self, indices: Sequence[Node], base: Value, lengths: Sequence[int]) -> list[np.ndarray]:
        """Return where in the axes of a value its indices point."""
        if len(indices) > len(lengths):
            raise _too_many_indices(base, len(lengths))
        return [self.position(index, base.start(axis), lengths[axis], base) for axis, index in enumerate(indices)]

    def position(self, node: Node, start: int, count: int, base: Value) -> np.ndarray:
        """Return where in an axis an index points; beyond its ends is an error where it counts."""
        value = self.value(node)
        if value.form != "scalar" or value.lists:
            raise Malformed(f"an index is a whole number, not {value}", node.place)
        numbers = floats(value)
        places = np.rint(numbers)
        if not np.all(np.abs(numbers - places) < 1e-9):
            raise Malformed("an index is a whole number", node.place)
        if node.kind == "index" and self.whole.get(node.value, (start, count)) != (start, count) and not base.states:
            first, other = self.whole[node.value]
            said = f"{node.value.rstrip(OWN)} runs from {first} to {first + other - 1}, and here from {start} to {start + count - 1}"
            raise Malformed(said, node.place)
        places = places.astype(int) - start
        outside = (places < 0) | (places >= count)
        if outside.any():
            if (outside & self.mask).any():
                asked = int((places + start)[outside].ravel()[0])
                apart = "; side by side they are a product: for two indices put a comma between them" * (node.kind == "product")
                raise Malformed(f"the index reaches {asked}, beyond {start} to {start + count - 1}{apart}", node.place)
            places = np.clip(places, 0, count - 1)
        return places

    def indicator(self, indices: tuple[Node, ...]) -> Value:
        """Return 1 at one position, or at those of a set, and 0 elsewhere."""
        if len(indices) != 1:
            raise Malformed(r"\mathbf{1} has one index at most")
        where = self.value(indices[0])
        if where.form == "set":
            return Value(self.number(where.data * 1), "vector")
        return Value(np.stack([where.data, np.ones_like(where.data)], axis=-1), "unit")

    def whole_number(self, node: Node) -> int:
        """Return the value of an expression that is one whole number."""
        value = self.value(node)
        if value.form != "scalar" or value.data.size != 1 or not float(value.data.item()).is_integer():
            raise Malformed("expected one whole number", node.place)
        return int(value.data.item())


def _too_many_indices(value: Value, most: int, place: Place = NOWHERE) -> Malformed:
    said = ["no index", "1 index at most"][most] if most < 2 else f"{most} indices at most"
    return Malformed(f"{value} has {said}", place)
