"""The machine of "Break the machine": the browser's numbers are NumPy's, its levels hide their twins, its lamps prove them."""

import ast
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from attn_course import costs, reference
from attn_course.equations.core import REGISTRY
from attn_course.game import build as broken
from attn_course.game.formulas import PARTS, TWINS, Twin
from attn_course.game.levels import LEVELS, MATRICES, TRIED, changed, differs, exposed
from attn_course.game.rules import AHEAD, _online, _part, computed, sized, twin_of, written
from tests.browser.script import scripted, unpacked

NAMES = ["", *(twin.id for twin in TWINS)]
EACH = 25
GROUPS = [  # tokens, d_model, heads, key heads, d_k, d_v, mask, kind: 8 times 25 inputs
    (3, 5, 2, 1, 2, 4, "none", "normal"),
    (4, 3, 4, 2, 1, 2, "causal", "normal"),
    (1, 2, 2, 2, 3, 1, "causal", "normal"),
    (1, 3, 1, 1, 1, 2, "past", "normal"),
    (3, 2, 2, 2, 3, 1, "causal", "ties"),
    (2, 3, 2, 2, 2, 2, "past", "ties"),
    (4, 2, 1, 1, 4, 3, "none", "large"),
    (4, 3, 2, 1, 4, 2, "past", "large"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with scripted(broken.javascript()) as page:
        yield page


def drawn(rng: np.random.Generator, group: tuple[Any, ...]) -> dict[str, Any]:
    tokens, width, heads, key_heads, d_k, d_v, mask, kind = group
    shapes = ((tokens, width), (width, heads * d_k), (width, key_heads * d_k), (width, key_heads * d_v), (heads * d_v, width))
    draw = {
        "normal": lambda shape: rng.normal(size=shape),
        "ties": lambda shape: rng.integers(-1, 2, shape).astype(float),
        "large": lambda shape: 8 * rng.normal(size=shape),  # scores of thousands
    }[kind]
    return {name: draw((EACH, *shape)) for name, shape in zip(MATRICES, shapes, strict=True)} | {"mask": mask, "heads": heads}


def one(many: dict[str, Any], case: int) -> dict[str, Any]:
    return {name: value[case].tolist() if name in MATRICES else value for name, value in many.items()}


EVERYTHING = """([inputs, names]) => names.map((name) =>
  packed(inputs.flatMap((one) => Object.values(MACHINE.compute(one, name || null)).flat(9))))"""


@pytest.mark.browser
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_machine_and_twins_are_numpys(page: Page, group: tuple[Any, ...]):
    many = drawn(np.random.default_rng(GROUPS.index(group)), group)
    found = page.evaluate(EVERYTHING, [[one(many, case) for case in range(EACH)], NAMES])
    machine = computed(many)
    for name, text in zip(NAMES, found, strict=True):
        twin = computed(many, name, machine)
        wanted = np.concatenate([twin[part.name][case].ravel() for case in range(EACH) for part in PARTS])
        np.testing.assert_allclose(unpacked(text), wanted, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_the_machine_is_the_reference_with_a_residual(group: tuple[Any, ...]):
    many = drawn(np.random.default_rng(1), group)
    ahead = AHEAD[group[6]]
    mask = np.tri(group[0], k=group[0] if ahead is None else ahead, dtype=bool)
    weights = [many[name] for name in MATRICES[1:]]
    outputs = computed(many)["Y"]
    for case, x in enumerate(many["X"]):
        found = reference.multi_head_attention(x, x, *(w[case] for w in weights), n_heads=group[2], n_kv_heads=group[3], mask=mask)
        np.testing.assert_allclose(outputs[case], x + found, rtol=1e-9, atol=1e-9)


def test_all_but_a_few_wrong_forms_are_the_registrys():
    known = {form.latex for equation in REGISTRY.all_equations() for form in (equation, *equation.wrongs)}
    tails = {latex.partition(r"\qquad ")[2] for latex in known}
    rules = {twin.id: [*twin.rules.values(), *twin.update.values()] for twin in TWINS}
    own = {
        name
        for name, some in rules.items()
        if any(r.latex not in known and r.latex.partition(r"\qquad ")[2] not in tails - {""} for r in some)
    }
    assert own == {"softmax-over-queries", "scaled-by-length", "scaled-by-width", "finite-fill", "heads-reshaped"}


READS = """([inputs, name]) => MACHINE.parts.flatMap((part) => {
  const found = [], value = MACHINE.compute(inputs, name || null)[part.name];
  const walk = (inner, index) => Array.isArray(inner) ? inner.forEach((x, place) => walk(x, [...index, place]))
    : found.push([[part.name, ...index].join(), MACHINE.reads(part.name, index, inputs, name || null).map((one) => one.flat().join())]);
  walk(value, []);
  return found;
})"""


def read_by_numpy(inputs: dict[str, Any], name: str) -> dict[str, set[str]]:
    """Return for each number of each part which numbers before it change it when they change, one at a time."""
    twin, found = twin_of(name), {}
    known = {key: np.array([value], float) for key, value in inputs.items() if key in MATRICES}
    known |= computed({**inputs, **known}, name)
    for n, part in enumerate(PARTS):
        places = [(key, *place) for key in (*MATRICES, *(one.name for one in PARTS[:n])) for place in np.ndindex(known[key].shape[1:])]
        many = {key: np.repeat(value, len(places) + 1, axis=0) for key, value in known.items()}
        for case, (key, *place) in enumerate(places):
            spot = (case, *place)
            many[key][spot] = 1 - many[key][spot] if key == "A" else np.nan
        values = {**sized({**inputs, **many}), **{one.name: many[one.name] for one in PARTS[:n]}}
        values["A"] = many["A"]
        with np.errstate(invalid="ignore"):
            if part.name == "Z" and twin.update:
                made = np.concatenate([_online({**values, **_only(values, case)}, twin.update) for case in range(len(places) + 1)])
            else:
                made = _part(part, written(twin.rules.get(part.name, part.rule)), values)
        for place in np.ndindex(made.shape[1:]):
            numbers = made[(slice(None), *place)]
            moved = ~((numbers == numbers[-1]) | (np.isnan(numbers) & np.isnan(numbers[-1])))
            found[",".join(map(str, (part.name, *place)))] = {",".join(map(str, places[case])) for case in np.flatnonzero(moved)}
    return found


def _only(values: dict[str, Any], case: int) -> dict[str, Any]:
    return {key: value[case : case + 1] for key, value in values.items() if np.ndim(value)}


@pytest.mark.browser
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("name", ["", "keys-ask", "weights-transposed", "softmax-over-queries", "mask-after-softmax", "accumulator-kept"])
def test_a_number_is_made_of_those_that_change_it(page: Page, name: str, mask: str):
    """NumPy asks each number by itself, and the numbers that the page outlines are the same."""
    inputs = one(drawn(np.random.default_rng(11), (3, 2, 2, 1, 2, 2, mask, "normal")), 0)
    found = {made: set(read) for made, read in page.evaluate(READS, [inputs, name])}
    assert found == read_by_numpy(inputs, name)


@pytest.mark.parametrize("twin", [twin for twin in TWINS if twin.beside], ids=lambda twin: twin.id)
@pytest.mark.parametrize("group", [GROUPS[1], GROUPS[5]], ids=str)
def test_what_stands_beside_a_twins_formula_is_what_the_machine_computes(twin: Twin, group: tuple[Any, ...]):
    many = drawn(np.random.default_rng(2), group)
    machine = computed(many)
    (name,) = twin.rules
    part = next(part for part in PARTS if part.name == name)
    beside = _part(part, written(twin.beside), {**sized(many), **machine})
    np.testing.assert_allclose(beside, machine[name], rtol=1e-9, atol=1e-9)


WORDS = """([inputs, names]) => names.flatMap((name) => MACHINE.parts.flatMap((part) => {
  const value = MACHINE.compute(inputs, name || null)[part.name], found = [];
  const walk = (inner, index) => Array.isArray(inner) ? inner.forEach((x, place) => walk(x, [...index, place]))
    : found.push([part.name, inner, MACHINE.explain(part.name, index, inputs, name || null)]);
  walk(value, []);
  return found;
}))"""


def said(text: str) -> float:
    """Return what a text such as "√4 · exp(−∞ − 1)" comes to."""
    text = re.sub(r"√([\d.]+)", r"√(\1)", text.replace("−", "-").replace("·", "*").replace("∞", "inf"))
    text = re.sub(r"\[(.*?)\]", lambda found: f"float({found[1].replace('≤', '<=').replace('≥', '>=')})", text.replace("√", "sqrt"))
    return eval(text, {"exp": math.exp, "sqrt": math.sqrt, "inf": math.inf, "max": max, "float": float})


@pytest.mark.browser
def test_every_number_is_what_its_words_come_to(page: Page):
    inputs = {each["name"]: each["value"] for each in broken.inputs()}
    checked = set()
    for part, value, text in page.evaluate(WORDS, [inputs, ["", "mask-after-softmax", "keys-ask", "accumulator-kept"]]):
        shown, equals, words = text.partition(" = ")
        assert said(shown) == pytest.approx(value, abs=6e-4)
        if equals and "…" not in words:
            assert said(words) == pytest.approx(value, abs=6e-3, rel=6e-3), (part, text)  # of numbers in three digits
            checked.add(part)
    assert checked >= {"Q", "K", "V", "S", "A", "B", "m", "P", "Z", "O", "Y"}


SAME = """([level, inputs]) => {
  const [machine, twin] = [null, level.twin].map((name) => Object.values(MACHINE.compute(inputs, name)).flat(9));
  return machine.every((x, place) => x === twin[place] || Math.abs(x - twin[place]) <= 1e-9 * Math.max(1, Math.abs(x)));
}"""


@pytest.fixture(scope="module")
def solved_levels() -> list[dict[str, Any]]:
    return broken.levels()


@pytest.fixture(params=LEVELS, ids=lambda level: level.twin)
def level(request: pytest.FixtureRequest, solved_levels: list[dict[str, Any]]) -> dict[str, Any]:
    return solved_levels[LEVELS.index(request.param)]


def answered(level: dict[str, Any]) -> dict[str, Any]:
    inputs = json.loads(json.dumps(level["start"]))
    for change in level["answer"]:
        place = change["place"]
        if place:
            inputs[change["name"]][place[0]][place[1]] = change["value"]
        else:
            inputs[change["name"]] = change["value"]
    return inputs


LAMPS = "([inputs, name]) => Object.fromEntries(MACHINE.lamps.map((lamp) => [lamp.id, lamp.measure(inputs, name).on]))"


@pytest.mark.browser
def test_a_level_hides_its_twin_until_par_and_its_lamp_proves_it(page: Page, level: dict[str, Any]):
    answer = answered(level)
    assert page.evaluate(SAME, [level, level["start"]])
    assert not page.evaluate(SAME, [level, answer])
    assert len(level["answer"]) == level["par"] >= 1
    for inputs in (level["start"], answer):
        assert all(page.evaluate(LAMPS, [inputs, None]).values())
    assert not page.evaluate(LAMPS, [answer, level["twin"]])[level["lamp"]]


@pytest.mark.parametrize("level", [level for level in LEVELS if level.twin == "no-scale"], ids=lambda level: level.twin)
def test_where_par_is_two_no_single_number_is_enough(level: Any):
    """Not only those that the search tried: any number, here a hundred for each place, or another mask."""
    for mask in AHEAD:
        assert not differs(changed(level.start, [(("mask", (), mask),)]), level.twin).any()
    rng = np.random.default_rng(3)
    for name, place in [(name, cell) for name in MATRICES for cell in np.ndindex(2, 2)]:
        values = [*TRIED, *(100 * rng.normal(size=91))]
        assert not differs(changed(level.start, [((name, place, value),) for value in values]), level.twin).any()


@pytest.mark.browser
@pytest.mark.parametrize("mask", AHEAD)
def test_every_lamp_is_lit_for_the_machine_and_every_twin_puts_one_out(page: Page, mask: str):
    """Three twins are right where a head has keys of its own, where nothing is hidden, or where no row is empty."""
    inputs = {each["name"]: each["value"] for each in broken.inputs()} | {"mask": mask}
    assert all(page.evaluate(LAMPS, [inputs, None]).values())
    lit = {name for name in NAMES[1:] if all(page.evaluate(LAMPS, [inputs, name]).values())}
    assert lit == {"heads-tiled", *{"none": ("self-hidden", "finite-fill"), "causal": ("finite-fill",), "past": ()}[mask]}


@pytest.mark.browser
def test_what_is_no_number_before_and_after_puts_no_lamp_out(page: Page):
    """With a score that is too large the twin finds no number; but which token's numbers matter to it has not changed."""
    level = next(level for level in LEVELS if level.twin == "maximum-kept")
    inputs = json.loads(json.dumps(level.start))
    inputs["X"][0][0] = 99
    many = {name: np.array([value], float) if name in MATRICES else value for name, value in inputs.items()}
    before = computed(many, level.twin)["Y"]
    many["X"][0, 1] += 1
    assert np.isnan(before[0, 0]).all()
    assert np.isnan(computed(many, level.twin)["Y"][0, 0]).all()
    lit = page.evaluate(LAMPS, [inputs, level.twin])
    assert {lamp for lamp in lit if not lit[lamp]} == {"rows", "shift"}
    assert all(page.evaluate(LAMPS, [inputs, None]).values())


@pytest.mark.browser
def test_a_leak_is_told_of_the_mask_that_was_tested(page: Page):
    inputs = {each["name"]: each["value"] for each in broken.inputs()} | {"mask": "past"}
    says = "([inputs, name]) => MACHINE.lamps.find(({ id }) => id === 'leak').measure(inputs, name).says"
    assert page.evaluate(says, [inputs, "finite-fill"]).startswith("Where only earlier tokens are seen, the output of `the` changes with")
    assert page.evaluate(says, [inputs | {"mask": "none"}, None]) == "With a causal mask, no output depends on a later token."


REPLAYS = """(inputs) => MACHINE.orders.map((order) => {
  const { steps, output, bytes } = order.replay(inputs), counted = steps.reduce((sum, step) => sum + step.bytes, 0);
  return [order.id, steps.length, counted, bytes, packed(output.flat(9)), steps.map((step) => step.says)];
})"""


@pytest.mark.browser
@pytest.mark.parametrize("mask", AHEAD)
def test_each_order_gives_the_same_output_and_counts_its_bytes(page: Page, mask: str):
    group = (5, 3, 4, 2, 2, 3, mask, "normal")
    many = drawn(np.random.default_rng(7), group)
    Z = computed(many)["Z"][0]
    tokens, width, heads, key_heads, d_k, d_v, *_ = group
    hidden = {"none": {}, "causal": {"is_causal": True}, "past": {"is_causal": True, "q_offset": -1}}[mask]
    tiled = [
        costs.tiled_attention_bytes(tokens, tokens, d_k, d_v, block_q=rows, block_kv=columns, bytes_per_number=4, **hidden)
        for rows, columns in ((2, 2), (tokens, 1))
    ]
    whole = costs.materialised_attention_bytes(tokens, tokens, d_k, d_v, bytes_per_number=4)
    absorbed = whole + 4 * (width * width + tokens * width - 2 * tokens * d_k)  # scores read X and a product instead of queries and keys
    projected = 4 * (tokens * width + (width + tokens) * (heads * d_k + key_heads * (d_k + d_v)))
    product = 4 * (width * d_k * (heads + key_heads) + heads * width * width + tokens * width + (width + tokens) * key_heads * d_v)
    wanted = {
        "whole": projected + heads * whole,
        "tiled": projected + heads * (tiled[0] - 4 * tokens),  # no logarithms of sums are written
        "recurrent": projected + heads * (tiled[1] - 4 * tokens),
        "absorbed": product + heads * absorbed,
    }
    for name, count, summed, told, output, says in page.evaluate(REPLAYS, one(many, 0)):
        np.testing.assert_allclose(unpacked(output), Z.ravel(), rtol=1e-9, atol=1e-9, err_msg=name)
        assert summed == told == wanted[name], name
        assert count == len(says) > 2


CELL = "([inputs, twin]) => MACHINE.test(inputs, twin)"
QUIET = {"print": lambda *_: None, "attention": reference.attention, "multi_head_attention": reference.multi_head_attention}


@pytest.mark.browser
@pytest.mark.parametrize("mask", AHEAD)
def test_the_exported_cell_passes_what_is_right(page: Page, mask: str):
    for inputs in ({each["name"]: each["value"] for each in broken.inputs()}, LEVELS[6].start):
        for twin in TWINS:
            exec(page.evaluate(CELL, [inputs | {"mask": mask}, twin.id]), dict(QUIET))


@pytest.mark.browser
def test_the_exported_cell_says_first_which_function_it_calls_and_with_what(page: Page):
    inputs = {each["name"]: each["value"] for each in broken.inputs()}
    for twin in TWINS:
        for mask in ("none", "causal"):
            cell = page.evaluate(CELL, [inputs | {"mask": mask}, twin.id])
            told = cell.partition("import numpy")[0]
            assert told.startswith("# This test calls a function of your own.")
            (got,) = [node for node in ast.parse(cell).body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "got"]
            call = got.value
            assert isinstance(call, ast.Call)
            assert f"{ast.unparse(call.func)}(" in told
            wanted = [keyword.arg for keyword in call.keywords]
            names = re.findall(r"\w+|\*", told.partition("(")[2].partition(")")[0])
            assert names[len(call.args) :] == ["*", *wanted]


def unscaled(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return reference.attention(query, key, value, mask=mask, scale=1.0)


def over_the_queries(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> Any:
    weights = reference.softmax(np.where(mask, reference.scaled_dot_scores(query, key), -np.inf), axis=-2)
    return weights @ value


def off_by_one(query: np.ndarray, key: np.ndarray, value: np.ndarray, is_causal: bool) -> np.ndarray:
    return reference.attention(query, key, value, is_causal=is_causal, q_offset=-1)


def mixed_heads(x: np.ndarray, y: np.ndarray, w_query: np.ndarray, *others: np.ndarray, n_heads: int, **options: Any) -> np.ndarray:
    swapped = np.concatenate(np.split(w_query, n_heads, axis=1)[::-1], axis=1)
    return reference.multi_head_attention(x, y, swapped, *others, n_heads=n_heads, **options)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("twin", "mistaken"),
    [
        ("no-scale", {"attention": unscaled}),
        ("softmax-over-queries", {"attention": over_the_queries}),
        ("self-hidden", {"attention": off_by_one}),
        ("heads-reshaped", {"multi_head_attention": mixed_heads}),
    ],
)
def test_the_exported_cell_fails_a_mistake_and_names_it(page: Page, twin: str, mistaken: dict[str, Any]):
    inputs = {each["name"]: each["value"] for each in broken.inputs()}
    with pytest.raises(AssertionError, match=next(one.title for one in TWINS if one.id == twin)):
        exec(page.evaluate(CELL, [inputs, twin]), QUIET | mistaken)


TRIES = """([twin, cases]) => cases.map((inputs) => (
  { exposed: MACHINE.exposed(inputs, twin), cell: MACHINE.test(inputs, twin) }
))"""
TRIED_INPUTS = 25


def moved(level: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the start of a level, or its answer, with one to three numbers changed, little or much, and at times another mask."""
    inputs = answered(level) if rng.random() < 0.5 else json.loads(json.dumps(level["start"]))
    for _ in range(rng.integers(1, 4)):
        matrix = inputs[str(rng.choice(MATRICES))]
        row = matrix[rng.integers(len(matrix))]
        row[rng.integers(len(row))] = float(rng.choice([*TRIED, 0.01, 1.01, round(float(rng.normal()), 2)]))
    inputs["mask"] = str(rng.choice([inputs["mask"], inputs["mask"], *AHEAD]))
    if "heads" not in level["locked"]:
        inputs["heads"] = int(rng.integers(1, 3))
    return inputs


@pytest.mark.browser
def test_what_counts_as_found_fails_the_exported_cell_for_the_twin_and_passes_it_for_the_machine(page: Page, level: dict[str, Any]):
    twin, rng = level["twin"], np.random.default_rng(len(level["title"]))
    cases = [moved(level, rng) for _ in range(TRIED_INPUTS)]
    accepted = 0
    for inputs, tried in zip(cases, page.evaluate(TRIES, [twin, cases]), strict=True):
        many = {name: np.array([value], float) if name in MATRICES else value for name, value in inputs.items()}
        assert bool(exposed(many, twin)[0]) is tried["exposed"], inputs
        if not tried["exposed"]:
            continue
        accepted += 1
        exec(tried["cell"], dict(QUIET))
        made = computed(many, twin)
        parts = {"attention": made["Z"][0], "multi_head_attention": made["O"][0]}
        mistaken = {name: lambda *_, part=part, **__: part for name, part in parts.items()}
        with pytest.raises(AssertionError, match="with these numbers this mistake shows"), np.errstate(invalid="ignore"):
            exec(tried["cell"], QUIET | mistaken)
    assert accepted > 2


@pytest.mark.browser
def test_labels_fit_inputs_of_any_size(page: Page):
    for inputs in ({each["name"]: each["value"] for each in broken.inputs()}, LEVELS[6].start):
        found = page.evaluate(
            "(inputs) => [...MACHINE.parts.map((part) => part.name), 'X', 'W_Q', 'W_O'].map((name) => MACHINE.labels(name, inputs))", inputs
        )
        many = {name: np.array([value], float) if name in MATRICES else value for name, value in inputs.items()}
        shapes = [computed(many)[part.name].shape[1:] for part in PARTS]
        assert [tuple(map(len, labels)) for labels in found[: len(PARTS)]] == shapes
        for name, labels in zip(("X", "W_Q", "W_O"), found[len(PARTS) :], strict=True):
            assert (len(labels["rows"]), len(labels["columns"])) == np.shape(inputs[name])
