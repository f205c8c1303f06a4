"""What somebody who asks for numbers in a formula gives: values for its symbols, by names that Python takes, and places for its indices."""

import keyword
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attn_course import numbers
from attn_course.equations.core import Equation
from attn_course.equations.small import RELATION
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Function, Given, Outcomes, Range
from attn_course.formulas.tree import FAMILY

SIGNS = {"'": " prime ", "+": " plus ", "-": " minus "}
STYLES = re.compile(r"\\(?:text|mathrm|mathcal|mathbf)\b")


class ShowError(ValueError):
    """The call of `show` cannot be answered; the message says what was wanted and what came."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@dataclass
class Asked:
    """Values for symbols and the places of indices; `given` is what was in the call, `words` how the symbols are named there."""

    givens: dict[str, Any]
    places: Mapping[str, float]
    words: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    sizes: frozenset[str] = frozenset()

    def unknown(self, word: str, letters: Iterable[str]) -> str:
        """Return the complaint about a word that names nothing in the formula."""
        known = ", ".join(sorted(self.words.values()))
        indices = f", and for the indices {', '.join(sorted(letters))}" if letters else ""
        return f"{numbers.eq(self.label)} wants values for {known}{indices}; got one for {word!r}"

    def lacking(self, names: Collection[str]) -> str:
        """Return the complaint about symbols without a value."""
        lacking = ", ".join(sorted(self.words.get(name, name) for name in {*names} - self.sizes or names))
        got = ", ".join(sorted(self.words.get(name, name) for name in self.givens)) or "none"
        return f"{numbers.eq(self.label)} wants values for {lacking} too; got {got}"


def asked(equation: Equation, values: Mapping[str, Any]) -> Asked:
    """Return values as givens of the equation, of its types and orientations; sizes follow from the shapes."""
    kinds = _kinds(equation)
    words = words_of(kinds)
    names = {word: name for name, word in words.items()} | {name: name for name in words}
    question = Asked({}, {}, words, equation.label)
    places, sizes = dict[str, float](), dict[str, tuple[int, str]]()
    axes, is_size = _axes(equation)
    for word, value in values.items():
        name = names.get(word)
        if name is None or isinstance(kinds[name], Range):
            places[word] = _place(word, value)
            continue
        question.givens[name] = _given(words[name], value, kinds[name], axes.get(name, ()))
        if name in is_size:
            sizes[is_size[name]] = (int(question.givens[name].raw), words[name])
    for name, given in question.givens.items():
        if isinstance(given, Given):
            _learn_sizes(sizes, words[name], np.shape(given.raw), axes.get(name, ()))
    _check_relations(equation, sizes)
    given = dict(question.givens)
    for name, letter in is_size.items():
        if letter in sizes:
            question.givens.setdefault(name, Given(float(sizes[letter][0]), "scalar"))
    return replace(question, places=places, given=given, sizes=frozenset(is_size))


def words_of(names: Iterable[str]) -> dict[str, str]:
    r"""Return the name that each symbol has in a call: `\beta` beta, `d_k` d_k, `\bar{x}` bar_x, `\lambda` lambda_, `W_Q^{(h)}` W_Q.

    Where two would have the same name, as `W_O` and `W_O^{(h)}`, the longer one has all its letters: W_O_h.
    """
    found = dict[str, str]()
    for name in sorted(names, key=len):
        family = FAMILY.match(name)
        short, long = _word(family[1] if family else name), _word(name)
        found[name] = next((word for word in (short, long) if word not in found.values()), name)
    return found


def _word(name: str) -> str:
    text = STYLES.sub("", name)
    for sign, spelled in SIGNS.items():
        text = text.replace(sign, spelled)
    word = "_".join(re.findall(r"[A-Za-z0-9]+", text)) or name
    return word + "_" * keyword.iskeyword(word)


def _kinds(equation: Equation) -> dict[str, Any]:
    """Return what each symbol is, from a draw of the equation."""
    draw = Evaluation(equation.read(), equation.draws()[0][0])
    return {name: given if isinstance(given, Outcomes | Range | Function) else draw.given(name) for name, given in draw.givens.items()}


def _axes(equation: Equation) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    """Return the letter of the size along each axis of a given, and which givens are sizes themselves."""
    sets, formula = equation.size_sets(), equation.read()
    every = [Evaluation(formula, draws[0]) for draws in equation.draws()]
    axes, is_size = dict[str, tuple[Any, ...]](), dict[str, str]()
    for name, kind in every[0].givens.items():
        if isinstance(kind, Outcomes | Range):
            continue
        found = [given for evaluation in every if isinstance(given := evaluation.given(name), Given) and given.form != "opaque"]
        if len(found) < len(every):
            continue
        shapes = [np.shape(given.raw) for given in found]
        axes[name] = tuple(_letter(sizes, sets) for sizes in zip(*shapes, strict=False))
        if shapes[0] == ():
            letter = _letter(tuple(np.asarray(given.raw).item() for given in found), sets)
            if isinstance(letter, tuple) and letter[1] == 0:
                is_size[name] = letter[0]
    return axes, is_size


def _letter(lengths: tuple[Any, ...], sets: list[dict[str, int]]) -> Any:
    """Return (letter, how much more) of a length that follows a size, a number that never changes, or None."""
    for more in (0, 1):
        for letter in sets[0]:
            if all(length == sizes[letter] + more for length, sizes in zip(lengths, sets, strict=True)):
                return letter, more
    return lengths[0] if len(set(lengths)) == 1 and len(sets) > 1 and sets[0] else None


def _place(word: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ShowError(f"{word} wants the position of an index, a number; got {value!r}")
    return float(value)


def _given(word: str, value: Any, kind: Any, axes: tuple[Any, ...]) -> Any:
    """Return a value in the type of a given; complain of another one."""
    if isinstance(kind, Outcomes):
        raise ShowError(f"{word} is random here, and takes no value: leave out all values for a draw")
    if isinstance(kind, Function):
        if not callable(value):
            raise ShowError(f"{word} wants a function; got {value!r}")
        return replace(kind, call=value)
    wanted = _described(kind, axes)
    try:
        array = np.asarray(value, dtype=bool if kind.form == "set" else float)
    except (ValueError, TypeError):
        raise ShowError(f"{word} wants {wanted}; got {value!r}") from None
    fixed = [axis for axis in axes if isinstance(axis, int)]
    if array.ndim != np.ndim(kind.raw) or 0 in array.shape:
        raise ShowError(f"{word} wants {wanted}; got {_shape(array)}")
    if fixed and any(isinstance(axis, int) and axis != length for axis, length in zip(axes, array.shape, strict=True)):
        raise ShowError(f"{word} wants {wanted}; got {_shape(array)}")
    return replace(kind, raw=array, noise=0.0)


def _described(kind: Given, axes: tuple[Any, ...]) -> str:
    lengths = ["?" if axis is None else str(axis) if isinstance(axis, int) else f"{axis[0]}{' + 1' * axis[1]}" for axis in axes]
    what = "truth values" if kind.form == "set" else "numbers"
    match len(lengths):
        case 0:
            return "a number"
        case 1:
            return f"a list of {lengths[0]} {what}"
    return f"a table of {' x '.join(lengths)} {what}"


def _shape(array: np.ndarray) -> str:
    return f"the number {array}" if array.ndim == 0 else f"an array of the shape {array.shape}"


def _learn_sizes(sizes: dict[str, tuple[int, str]], word: str, shape: tuple[int, ...], axes: tuple[Any, ...]) -> None:
    for length, axis in zip(shape, axes, strict=True):
        if isinstance(axis, tuple):
            letter, more = axis
            size, where = sizes.setdefault(letter, (length - more, word))
            if size != length - more:
                raise ShowError(f"{word} wants {size + more} numbers along {letter}, as {where} has it; got an array of the shape {shape}")


def _check_relations(equation: Equation, sizes: dict[str, tuple[int, str]]) -> None:
    """Complete sizes that are products of others, and complain of those that break a relation."""
    for bound in equation.sizes.split(",")[1:]:
        match = RELATION.fullmatch(bound.strip())
        if match is None or not {*match[3].split()} <= sizes.keys():
            continue
        right = int(np.prod([sizes[letter][0] for letter in match[3].split()]))
        left = sizes.setdefault(match[1], (right, match[3]))[0] if match[2] == "=" else sizes.get(match[1], (right + 1, ""))[0]
        holds: Callable[[int, int], bool] = {"=": int.__eq__, ">=": int.__ge__, ">": int.__gt__}[match[2]]
        if not holds(left, right):
            raise ShowError(f"{numbers.eq(equation.label)} wants {bound.strip()}; got {match[1]} = {left} and {match[3]} = {right}")
