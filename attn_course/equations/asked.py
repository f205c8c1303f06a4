"""What somebody who asks for numbers in a formula gives: values for its symbols, by names that Python takes, and places for its indices."""

import keyword
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from attn_course import numbers
from attn_course.equations.core import Equation
from attn_course.formulas.evaluate import Evaluation
from attn_course.formulas.givens import Function, Given, Outcomes, Range
from attn_course.formulas.sizes import parsed
from attn_course.formulas.tree import FAMILY

SIGNS = {"'": " prime ", "+": " plus ", "-": " minus "}
STYLES = re.compile(r"\\(?:text|mathrm|mathcal|mathbf)\b")
Axis: TypeAlias = tuple[str, int] | None  # the letter of its length, and by how much it is longer


class ShowError(ValueError):
    """The call of `show` cannot be answered; the message says what was wanted and what came."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Asked:
    """Values for symbols, and the places of indices; `givens` are those of the call and the sizes that follow, `words` name symbols."""

    given: Mapping[str, Any]
    givens: Mapping[str, Any]
    places: Mapping[str, float]
    words: Mapping[str, str]
    sizes: frozenset[str]
    label: str

    def unknown(self, letters: Iterable[str]) -> str:
        """Return the complaint about a word that names nothing in the formula."""
        return _no_symbol(self.label, min(self.places.keys() - {*letters}), self.words.values(), letters)

    def lacking(self, names: Iterable[str]) -> str:
        """Return the complaint about symbols without a value."""
        wanted, came = (", ".join(sorted(self.words[one] for one in some)) for some in ({*names} - self.sizes or names, self.givens))
        return f"{numbers.eq(self.label)} wants values for {wanted} too; got {came or 'none'}"


def _no_symbol(label: str, word: str, symbols: Iterable[str], letters: Iterable[str] = ()) -> str:
    found = ", ".join([*sorted(symbols), *sorted(letters)])
    return f"{word} is no symbol of {numbers.eq(label)}: in it are {found}"


def asked(equation: Equation, values: Mapping[str, Any]) -> Asked:
    """Return values as givens of the equation, of its types and orientations; sizes follow from the shapes."""
    kinds, axes, is_size = _expected(equation)
    words = words_of(kinds)
    names = {word: name for name, word in words.items()} | {name: name for name in words}
    given, places, sizes = dict[str, Any](), dict[str, float](), dict[str, tuple[int, str]]()
    for word, value in values.items():
        name = names.get(word)
        if name is not None and not isinstance(kinds[name], Range):
            given[name] = _given(word, value, kinds[name], axes[name])
        elif word not in equation.read().letters:
            raise ShowError(_no_symbol(equation.label, word, words.values()))
        elif isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ShowError(f"{word} wants the position of an index, a number; got {value!r}")
        else:
            places[word] = float(value)
    sizes |= {is_size[name]: (int(given[name].raw), words[name]) for name in given.keys() & is_size.keys()}
    for name, one in given.items():
        shape = np.shape(one.raw) if isinstance(one, Given) else ()
        for length, axis in zip(shape, axes[name] if shape else (), strict=True):
            if axis is not None:
                size, where = sizes.setdefault(axis[0], (length - axis[1], words[name]))
                if size != length - axis[1]:
                    wanted = f"{words[name]} wants {size + axis[1]} numbers along {axis[0]}, as {where} has it"
                    raise ShowError(f"{wanted}; got an array of the shape {shape}")
    _check_relations(equation, sizes)
    follow = {name: Given(float(sizes[letter][0]), "scalar") for name, letter in is_size.items() if letter in sizes}
    return Asked(given, follow | given, places, words, frozenset(is_size), equation.label)


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


def _expected(equation: Equation) -> tuple[dict[str, Any], dict[str, tuple[Axis, ...]], dict[str, str]]:
    """Return what each symbol is, the letter of the size along each of its axes, and which symbols are sizes themselves."""
    sets, formula = equation.size_sets(), equation.read()
    every = [Evaluation(formula, draws[0]) for draws in equation.draws()]
    kinds, axes, is_size = dict[str, Any](), dict[str, tuple[Axis, ...]](), dict[str, str]()

    def letter(lengths: Iterable[Any]) -> Axis:
        either = ((one, more) for more in (0, 1) for one in sets[0])
        return next((axis for axis in either if [sizes[axis[0]] + axis[1] for sizes in sets] == list(lengths)), None)

    for name, kind in every[0].givens.items():
        kinds[name], axes[name] = kind, ()
        if not isinstance(kind, Outcomes | Range | Function):
            found: list[Any] = [evaluation.given(name) for evaluation in every]
            kinds[name] = found[0]
            if all(isinstance(one, Given) and one.form != "opaque" for one in found):
                axes[name] = tuple(letter(list(lengths)) for lengths in zip(*(np.shape(one.raw) for one in found), strict=False))
                size = letter([one.raw for one in found]) if not np.shape(found[0].raw) else None
                is_size |= {name: size[0]} if size and not size[1] else {}
    return kinds, axes, is_size


def _given(word: str, value: Any, kind: Any, axes: tuple[Axis, ...]) -> Any:
    """Return a value in the type of a given; complain of another one."""
    if isinstance(kind, Outcomes):
        raise ShowError(f"{word} is random here, and takes no value: leave out all values for a draw")
    if isinstance(kind, Function):
        if not callable(value):
            raise ShowError(f"{word} wants a function; got {value!r}")
        return replace(kind, call=value, names=())
    lengths = ["?" if axis is None else axis[0] + " + 1" * axis[1] for axis in axes]
    what = "truth values" if kind.form == "set" else "numbers"
    wanted = f"a {'list' if len(lengths) == 1 else 'table'} of {' x '.join(lengths)} {what}" if lengths else "a number"
    try:
        array = np.asarray(value, dtype=bool if kind.form == "set" else float)
    except (ValueError, TypeError):
        raise ShowError(f"{word} wants {wanted}; got {value!r}") from None
    if array.ndim != np.ndim(kind.raw) or 0 in array.shape:
        came = f"an array of the shape {array.shape}" if array.ndim else f"the number {array}"
        raise ShowError(f"{word} wants {wanted}; got {came}")
    return replace(kind, raw=array, noise=0.0)


def _check_relations(equation: Equation, sizes: dict[str, tuple[int, str]]) -> None:
    """Complete sizes that are products of others, and complain of those that break a relation."""
    signs = {"=": operator.eq, ">=": operator.ge, ">": operator.gt}
    _, products, orders = parsed(equation.sizes)
    for name, sign, factors in [*((name, "=", " ".join(factors)) for name, factors in products.items()), *orders]:
        if {*factors.split()} <= sizes.keys() and (sign == "=" or name in sizes):
            right = int(np.prod([sizes[letter][0] for letter in factors.split()]))
            left = sizes.setdefault(name, (right, factors))[0]
            if not signs[sign](left, right):
                raise ShowError(f"{numbers.eq(equation.label)} wants {name} {sign} {factors}; got {name} = {left} and {factors} = {right}")
