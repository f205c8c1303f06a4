"""Formulas that are alive: every one is opened in a browser, and its numbers are NumPy's, of right and of wrong forms."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.drawing import Normal
from attn_course.equations.written import WrongForm
from attn_course.formulas import Formula, FormulaError, Malformed, sides
from attn_course.formulas.givens import as_given
from attn_course.formulas.javascript import ALGEBRA, MORE
from attn_course.game import alive as room
from attn_course.game.alive import card, chain_source, javascript, life_of
from attn_course.game.living import Life, StaysStill, living
from attn_course.game.sides import chains, formula_with, is_turned, letters_of, values_of, written
from tests.browser.script import scripted, unpacked

CARD = Path(room.__file__).parents[1] / "figures" / "card.js"
ENGINE = "\n".join(part.read_text(encoding="utf-8") for part in (ALGEBRA, MORE, CARD, room.HERE / "alive.js"))
ASKED = """
let LIFE;
const LIVES = {}, CHAINS = {};
const flattened = (found) => found.flatMap(({ cases }) => cases.flatMap((one) => (one ? one.sides.flat() : [])));
const asked = (make) => { try { return packed(make()); } catch (error) { return `! ${error.message}`; } };
"""


@pytest.fixture(scope="module")
def lives(no_shape_checks: None) -> tuple[dict[str, Life], dict[str, str]]:
    """What lives of all equations, and why the others stand still."""
    found, still = dict[str, Life](), dict[str, str]()
    for equation in REGISTRY.all_equations():
        try:
            found[equation.label] = life_of(equation.label)
        except StaysStill as reason:
            still[equation.label] = str(reason)
    return found, still


@pytest.fixture(scope="module")
def page(lives: tuple[dict[str, Life], dict[str, str]]) -> Iterator[Page]:
    with scripted(f"{ENGINE}\n{ASKED}") as page:
        page.add_script_tag(content="".join(f"LIVES[{json.dumps(label)}] = {javascript(life)};\n" for label, life in lives[0].items()))
        yield page


def by_numpy(formula: Formula, givens: Mapping[str, Any]) -> np.ndarray:
    """Return the numbers of all sides of all relations where they are claimed, in the order of `evaluated`."""
    judged, found = iter(sides(formula, givens)), list[np.ndarray]()
    for claim, (letters, some), runs in zip(formula.claims, chains(formula), letters_of(formula, givens), strict=True):
        looped = len(formula.looped(claim))
        tables: list[list[Any]] = [[] for _ in some]
        for _ in itertools.product(*(runs[letter] for letter in letters[:looped])):
            for table, (chain, _) in zip(tables, some, strict=True):
                links = [next(judged) for _ in chain.children[1::2]]
                every = np.broadcast_arrays(links[0].counts, links[0].left, *(link.right for link in links))
                axes = [formula.letters[letter] for letter in letters[looped:]]
                wide = {axis: len(runs[letter]) for axis, letter in zip(axes, letters[looped:], strict=True)}
                for array in every:
                    array = np.broadcast_to(array, [wide.get(axis, size) for axis, size in enumerate(array.shape)])
                    table.append(np.moveaxis(array, axes, range(len(axes))).reshape(int(np.prod([*wide.values()])), -1))
        for table, (chain, _) in zip(tables, some, strict=True):
            width = len(chain.children[::2]) + 1
            for first in range(0, len(table), width):
                counts, *values = table[first : first + width]
                values = values[:: -1 if is_turned(formula, chain) else 1]
                for case in np.flatnonzero(counts.all(axis=1)):
                    found += [side[case] for side in values]
    return np.concatenate([np.zeros(0), *found]).astype(float)


def agree(asked: Mapping[Any, tuple[str, np.ndarray]]) -> list[str]:
    """Return where the browser and NumPy do not agree to 1e-9."""
    found = []
    for name, (text, wanted) in asked.items():
        if text.startswith("! "):
            found.append(f"{name}: {text}")
            continue
        got = unpacked(text)
        if got.shape != wanted.shape:
            found.append(f"{name}: {got.shape}, not {wanted.shape}")
        elif not np.allclose(got, wanted, rtol=1e-9, atol=1e-9, equal_nan=True):
            found.append(f"{name}: {np.nanmax(np.abs(got - wanted)):.2g}")
    return found


def forms_by_numpy(life: Life, givens: Mapping[str, Any]) -> Iterator[tuple[int, Formula, np.ndarray]]:
    """Yield the forms that have numbers for some givens."""
    for place, form in enumerate(life.forms):
        if form.problem:
            continue
        try:
            formula = formula_with(form.latex, givens, life.functions)
            with np.errstate(all="ignore"):
                yield place, formula, by_numpy(formula, givens)
        except FormulaError:
            assert place, life.equation.label


@pytest.mark.browser
def test_every_card_shows_numpys_numbers_on_the_numbers_it_begins_with(page: Page, lives: tuple[dict[str, Life], dict[str, str]]):
    wanted = {}
    for label, life in lives[0].items():
        givens = {name: given for name, given in life.givens.items() if name not in life.scores} | life.made
        wanted |= {(label, place): numbers for place, _, numbers in forms_by_numpy(life, givens)}
    texts = page.evaluate(
        """(pairs) => pairs.map(([label, place]) => asked(() => {
          const life = LIVES[label];
          return flattened(judged(life, life.forms[place], life.values).found);
        }))""",
        list(wanted),
    )
    assert agree({key: (text, wanted[key]) for key, text in zip(wanted, texts, strict=True)}) == []


@pytest.mark.browser
def test_every_form_gives_numpys_numbers_on_draws_of_its_equation(page: Page, lives: tuple[dict[str, Life], dict[str, str]]):
    wanted, script = dict[str, np.ndarray](), list[str]()
    for label, life in lives[0].items():
        for place in (0, 1):  # of the second set of sizes the equation alone
            givens = {name: as_given(given) for name, given in REGISTRY.get_equation(label).draws()[place][place].items()}
            for number, formula, numbers in itertools.islice(forms_by_numpy(life, givens), None if place == 0 else 1):
                try:
                    some = written(formula, givens)
                except Malformed:
                    assert number, label
                    continue
                if life.made or any("o.slope" in side for chain in some for side in chain.sides):
                    continue  # how others follow is written for the sizes of a card: see the next test
                key = f"{label}/{place}/{number}"
                wanted[key] = numbers
                data = room._json(values_of(formula, givens))
                found = list[str]()
                chained = ", ".join(chain_source(chain, found) for chain in some)
                script.append(f"{{ const S = [{', '.join(found)}]; CHAINS[{json.dumps(key)}] = [{{ chains: [{chained}] }}, {data}]; }}")
    page.add_script_tag(content="\n".join(script))
    texts = page.evaluate("(keys) => keys.map((key) => asked(() => flattened(evaluated(null, ...CHAINS[key]))))", list(wanted))
    assert len(wanted) > 900
    assert agree({key: (text, wanted[key]) for key, text in zip(wanted, texts, strict=True)}) == []


MOVED = """(labels) => labels.filter((label) => {
  const life = LIVES[label], random = seeded(7), numbers = Array.from({ length: 12 }, () => others(life, random, NONZERO));
  return !numbers.every((values) => sound(judged(life, life.forms[0], values).found));
})"""


@pytest.mark.browser
def test_derivatives_are_those_of_what_follows_whatever_is_changed(page: Page, lives: tuple[dict[str, Life], dict[str, str]]):
    labels = [label for label, life in lives[0].items() if life.inputs and "o.slope" in javascript(life)]
    assert len(labels) >= 8
    assert page.evaluate(MOVED, labels) == []


MOUNTED = """([labels, CONTROLS]) => labels.flatMap((label) => {
  const root = document.createElement("div");
  root.innerHTML = CONTROLS;
  document.body.append(root);
  LIFE = LIVES[label];
  try { start(root); } catch (error) { return [`${label}: ${error.message}`]; }
  const problems = [], verdict = root.querySelector(".alv-verdict");
  if (verdict.dataset.state !== "held") problems.push(`${label}: ${verdict.textContent}`);
  if (LIFE.inputs.length && !root.querySelector(".alv-given :is(input, button)")) problems.push(`${label}: nothing can be changed`);
  const silent = [];
  for (const cell of Array.from(root.querySelectorAll("tr:last-child > td[data-cell]:last-child"))) {
    cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    if (!root.querySelector(".alv-how b")) silent.push(cell.dataset.cell);
  }
  if (silent.length) problems.push(`${label}: nothing is said of ${silent}`);
  root.remove();
  return problems;
})"""


@pytest.mark.browser
def test_every_card_opens_holds_and_says_what_each_number_is_made_of(page: Page, lives: tuple[dict[str, Life], dict[str, str]]):
    assert page.evaluate(MOUNTED, [list(lives[0]), room.CONTROLS.format(title="", printed="", mistakes="")]) == []


SHOWN = """(labels) => labels.map((label) => LIVES[label].forms.slice(1).map((form) => {
  if (form.problem) return null;
  try { return counted(judged(LIVES[label], form, LIVES[label].values).found).fail; } catch (error) { return error.message; }
}))"""


@pytest.mark.browser
def test_mistakes_show_on_the_numbers_that_a_card_begins_with(page: Page, lives: tuple[dict[str, Life], dict[str, str]]):
    found = page.evaluate(SHOWN, list(lives[0]))
    computed = [one for some in found for one in some if one is not None]
    assert len(computed) > 2.7 * len(lives[0])  # of each card some, so that none is quietly empty
    assert computed.count(0) <= len(computed) // 10  # a bound that is only a little too low, numbers that cannot be changed


@pytest.mark.browser
def test_a_mistake_that_no_numbers_hide_is_told_from_one_that_some_hide(page: Page):
    def toy(normal: Normal) -> dict[str, float]:
        a, b = normal(2)
        return {"a": a, "b": b, "c": a + b}

    wrongs = (WrongForm("one too much", "c = a + b + 1"), WrongForm("the sign", "c = a - b"), WrongForm("the place", "c = a + b a"))
    life = living(Equation("toy", "c = a + b", toy, "", (), wrongs=wrongs))
    page.add_script_tag(content=f"LIVES.toy = {javascript(life)};")
    hidden, shown = (f"[1, 2, 3].map((k) => searched(LIVES.toy, LIVES.toy.forms[k], {hides}))" for hides in ("true", "false"))
    first, second, third = page.evaluate(hidden)
    assert first is None
    assert second["b"] == 0
    assert third["b"] * third["a"] == third["b"]
    assert None not in page.evaluate(shown)


@pytest.mark.browser
def test_what_differs_is_shown_with_digits_in_which_it_does(page: Page):
    assert page.evaluate("[cells([0.12341, 0.12342], [false]), cells([0.5, 0.5], [true])]") == [["0.12341", "0.12342"], ["0.5", "0.5"]]


def test_what_stays_still_has_a_reason_and_most_lives(lives: tuple[dict[str, Life], dict[str, str]]):
    found, still = lives
    assert len(found) + len(still) == len(REGISTRY.all_equations())
    assert len(found) / (len(found) + len(still)) > 0.685  # of 399 there were 274
    assert sum(bool(life.inputs) for life in found.values()) >= 190
    shown = [label for label in (*found, *still) if REGISTRY.get_equation(label).number is not None]
    assert sum(bool(label in found and found[label].inputs) for label in shown) / len(shown) > 0.52  # of 312 there were 165
    assert all(re.search(r"cannot be (written|shown)|no small sizes|range of .* is not known", reason) for reason in still.values()), still


def test_no_card_is_much_larger_than_40_kilobytes(lives: tuple[dict[str, Life], dict[str, str]]):
    largest = sorted(lives[0].values(), key=lambda life: len(javascript(life)))[-3:]
    for life in largest:
        assert len(card(life).encode()) <= 48_000, life.equation.label
