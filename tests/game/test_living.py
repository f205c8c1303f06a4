"""What lives of an equation is found, not declared: inputs, what follows from them, and the numbers that it begins with."""

import re

import numpy as np
import pytest

from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.errors import UnknownEquation
from attn_course.figures.explorable import Explorable
from attn_course.formulas import outcomes
from attn_course.game import alive as room
from attn_course.game.alive import alive, card, life_of, still
from attn_course.game.living import Life, StaysStill, living
from attn_course.game.sides import keys_of
from attn_course.numbers import eq


def facts(label: str) -> tuple[list[str], list[str]]:
    life = life_of(label)
    return [one.name for one in life.inputs], [one.name for one in life.derived]


def made(latex: str, make) -> Life:
    return living(Equation("toy", latex, make, "", ()))


@pytest.mark.parametrize(
    ("label", "inputs", "derived"),
    [
        ("attention-weights", ["s"], ["p"]),  # p by the equation itself
        ("scaled-score", ["Q", "K"], ["k", "q", "s"]),  # q and k are the rows of Q and K
        ("attention", ["Q", "K", "V"], ["P", "Z"]),  # both sides end in V: P is what stands before it
        ("log-softmax", ["z"], []),
        ("scores-in-columns", ["Q", "K"], ["K_c", "Q_c"]),
    ],
)
def test_what_may_be_changed_and_what_follows(label: str, inputs: list[str], derived: list[str]):
    found, followed = facts(label)
    assert (sorted(found), sorted(followed)) == (sorted(inputs), sorted(derived))


def test_weights_that_no_equation_gives_are_the_softmax_of_scores_that_may_be_changed():
    life = life_of("output-of-a-query")
    weights = [one for one in life.derived if "softmax" in one.latex]
    assert len(weights) == len(life.scores) == 1
    assert life.scores[0] in [one.name for one in life.inputs]


def test_a_symbol_that_depends_on_another_is_no_input():
    life = made("c = a + b", lambda normal: {"a": (a := normal()), "b": (b := normal()), "c": a + b})
    assert [one.name for one in life.inputs] == ["a", "b"]
    assert [one.name for one in life.derived] == ["c"]


def test_symbols_that_belong_together_are_shown_and_not_changed():
    def circle(normal):
        angle = normal()
        return {"a": np.cos(angle), "b": np.sin(angle)}

    life = made("a^2 + b^2 = 1", circle)
    assert life.inputs == ()
    assert sorted(life.fixed) == ["a", "b"]


def test_the_first_numbers_are_what_the_equation_assumes():
    pairs = {name: given.raw for name, given in life_of("causal-pair-count").givens.items()}
    queries, keys = pairs["A"].shape
    assert pairs["p"] != 0, "else a mistake in it does not show"
    assert np.array_equal(pairs["A"], np.tri(queries, keys, pairs["p"]))
    weights = {name: given.raw for name, given in life_of("other-weights-same-output").givens.items()}
    assert (weights["P"] + weights["N"] > -1e-12).all()


def test_a_random_symbol_of_few_outcomes_may_be_changed():
    def toy(normal):
        return {"x": outcomes([0.5, 0.5], normal(2)), "a": normal()}

    life = made(r"\mathbb{E}[a x] = a\, \mathbb{E}[x]", toy)
    assert [one.name for one in life.inputs] == ["x", "a"]


@pytest.mark.parametrize("label", ["attention-weights", "attention", "gradient-of-scores"])
def test_it_begins_with_small_whole_numbers_that_are_neither_0_nor_1(label: str):
    for one in life_of(label).inputs:
        raw = np.asarray(one.given.raw)
        assert ((raw == np.rint(raw)) & ~np.isin(raw, (0, 1)) & (np.abs(raw) <= 5)).all()
        assert max(raw.shape) <= 3
        assert raw.ndim < 2 or raw.shape[0] != raw.shape[1] or not np.array_equal(raw, raw.T)


def test_kinds_of_numbers_are_those_of_the_draws():
    assert {one.name: one.kind for one in life_of("softmax-with-temperature").inputs} == {"z": "any", "T": "positive"}


REASONS = {"additive-query-key-interaction": "derivative", "gradient-collects-all-outputs": "Z moves", "value-output-rank-bound": "rank"}


@pytest.mark.parametrize(("label", "reason"), REASONS.items())
def test_what_cannot_be_written_stays_still_and_says_why(label: str, reason: str):
    with pytest.raises(StaysStill, match=reason):
        life_of(label)


def test_what_is_differentiated_follows_from_what_may_be_changed():
    life = life_of("output-derivative-by-value")
    assert [one.name for one in life.inputs] == ["v"]
    assert [one.name for one in life.derived] == ["z"]
    assert "p" in life.fixed, "the derivative is taken of weights that do not change"


def test_names_in_javascript_are_all_different():
    assert len({*keys_of(["W_Q", "W^{Q}", "W_+", "W_-", "k", "k'"]).values()}) == 6


def test_a_card_needs_nothing_from_elsewhere_and_says_in_words_what_it_shows():
    html = card(life_of("attention-weights"))
    assert not re.search(r"https?:|import\(|eval\(|new Function", html)
    words = html.partition('<div class="attn-words">')[2].partition("</div>")[0]
    assert "Scripts do not run here" in words
    assert "p_ij" in words
    assert re.search(r"\d", words.partition("This is what it shows")[2])


def test_a_card_has_the_blocks_of_the_algebra_that_it_needs_and_no_others():
    with_norm, without = (card(life_of(label)) for label in ("score-gradient-bound", "attention-weights"))
    assert "norm:" in with_norm or "norm," in with_norm
    assert "const more=" not in without


def test_alive_shows_a_card_or_stands_still(monkeypatch: pytest.MonkeyPatch):
    shown = []
    monkeypatch.setattr(room, "display", shown.append)
    monkeypatch.setattr(room, "publish", shown.append)
    alive("attention-weights")
    alive(number := eq("attention-weights"))
    alive("value-output-rank-bound")
    assert isinstance(shown[0], Explorable)
    assert shown[0].html == shown[1].html
    assert "yours" not in repr(shown[0])
    assert repr(shown[0]).startswith(f"[explorable] {number}: Attention weights as a machine: s can be changed")
    markdown = shown[2]._repr_markdown_()
    wrongs = REGISTRY.get_equation("value-output-rank-bound").wrongs
    assert markdown.count("<details>") == len(wrongs) > 1
    assert all(wrong.name in str(still(REGISTRY.get_equation("value-output-rank-bound"))) for wrong in wrongs)


def test_an_unknown_label_is_one_clear_error():
    with pytest.raises(UnknownEquation, match="attention-wieghts"):
        alive("attention-wieghts")
