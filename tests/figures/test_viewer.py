"""The attention viewer: what it takes from any model, what it refuses, and that each number it holds is NumPy's."""

import json
import re

import numpy as np
import pytest
import torch

from attn_course.figures.explorable import unpacked
from attn_course.figures.viewer import ZERO, attention_page, attention_viewer, text_of, viewer

TOKENS = ["The", " cat", " sat"]


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    terms = np.tril(np.random.default_rng(seed).exponential(size=shape))
    return terms / terms.sum(axis=-1, keepdims=True)


def data(card: str) -> dict:
    found = re.search(r"let DATA=(\{.*?\});\n?function decimal", card, re.DOTALL)
    return json.loads(found[1].replace("<\\/", "</"))


def letters(text: dict) -> np.ndarray:
    return np.array([ord(letter) - ZERO for letter in text["weights"]])


W = drawn(2, 3, 3, 3)
ROW = np.arange(18).reshape(2, 3, 3, 1)
REFUSED = [
    ("weights must have the shape", (TOKENS, W[..., :2]), {}),
    ("weights must have the shape", (TOKENS, W[0, 0, 0]), {}),
    ("weights must have the shape", ([], np.zeros((1, 1, 0, 0))), {}),
    (r"in each layer; got \(2, 2\), \(3, 3\)", (TOKENS, [np.eye(3), np.eye(2)]), {}),
    ("tokens must be as many as the columns of weights, 3; got 2", (TOKENS[:2], W), {}),
    ("tokens must be texts; got 7", ([*TOKENS[:2], 7], W), {}),
    (r"weights must be finite and 0 or more; got nan in \[1, 2, 0, 0\]", (TOKENS, np.where(ROW == 15, np.nan, W)), {}),
    ("weights must be finite and 0 or more; got -1.0", (TOKENS, W - 2 * np.eye(3)), {}),
    (r"must sum to 1, over the keys; got 1\.500 in \[0, 1, 1\]", (TOKENS, W * np.where(ROW == 4, 1.5, 1)), {}),
    (r"must sum to 1, over the keys", (TOKENS, W.swapaxes(-1, -2)), {}),
    (r"values must have the shape \(2, 3, 3\) or, as vectors, \(2, 3, 3, 'width'\)", (TOKENS, W, np.ones((2, 2, 3))), {}),
    (r"values must have the shape", (TOKENS, W, np.ones((2, 1, 3, 5))), {}),
    ("values must be finite and 0 or more; got inf", (TOKENS, W, np.full((2, 3, 3), np.inf)), {}),
    ("layers must be as many numbers as weights have layers, 2", (TOKENS, W), {"layers": [13]}),
    ("layer must be one of 12, 13; got 0", (TOKENS, W), {"layers": [12, 13], "layer": 0}),
    ("head must be one of 0, 1, 2; got 3", (TOKENS, W), {"head": 3}),
    ("query must be a place among 3 tokens; got 3", (TOKENS, W), {"query": 3}),
    ("3,000,000 numbers at most; got 4,000,000: show some of the layers", ([""] * 2000, np.broadcast_to(1 / 2000, (2000, 2000))), {}),
]


@pytest.mark.parametrize(("message", "given", "where"), REFUSED)
def test_what_does_not_fit_is_one_clear_error(message, given, where):
    with pytest.raises(ValueError, match=message):
        attention_viewer(*given, **where)


def test_models_hand_over_weights_in_many_forms():
    wanted = text_of(TOKENS, W)
    for form in (torch.tensor(W), [torch.tensor(layer)[None] for layer in W], tuple(W), W.tolist()):
        np.testing.assert_allclose(text_of(TOKENS, form).weights, W)
    assert text_of(TOKENS, W[0]).weights.shape == (1, 3, 3, 3)
    assert text_of(TOKENS, W[0, 0]).weights.shape == (1, 1, 3, 3)
    assert text_of(TOKENS, torch.tensor(W).bfloat16()).weights.dtype == np.float64
    assert text_of(["The", "Ġcat", "▁sat"], W).tokens == wanted.tokens
    values = np.random.default_rng(1).normal(size=(2, 3, 3, 5))
    norms = np.sqrt((values**2).sum(axis=-1))
    for given, layer in ((values, ...), (norms, ...), (values[1], 1), (norms[1], 1), (values[1, 2], (1, 2)), (norms[1, 2], (1, 2))):
        found = text_of(TOKENS, W[layer], given).norms
        np.testing.assert_allclose(found.reshape(norms[layer].shape), norms[layer])


def test_a_query_that_may_attend_to_nothing_is_shown():
    weights = drawn(3, 3)
    weights[0] = 0.0
    assert "“The” gives nothing any weight" in repr(viewer([text_of(TOKENS, weights)], query=0))


def test_three_digits_are_those_of_the_weight_and_norms_have_three():
    weights = np.stack([drawn(2, 40, 40, seed=seed) for seed in range(3)])
    weights[0, 0, 5, :4] = [0.0005, 0.00149999, 0.9975, 0.00050001]
    weights[0, 0, 5, 4:] = 0
    norms = np.random.default_rng(2).exponential(size=(3, 2, 40)) * 20
    held = data(viewer([text_of(["x"] * 40, weights, norms)]).html)
    found = letters(held["texts"][0]).reshape(weights.shape)
    np.testing.assert_array_equal((found + 5) // 10, np.rint(weights * 1000))
    assert np.abs(found - weights * 1e4).max() <= 1.0
    assert held["texts"][0]["norms"] == [[float(f"{norm:.3g}") for norm in row] for row in norms.reshape(6, 40)]


def test_the_card_needs_nothing_else_and_says_the_row_where_no_script_runs():
    where = {"layers": [12, 13], "heads": [4, 6, 8], "layer": 13, "head": 8, "query": 2, "title": "A <b> & c"}
    card = viewer([text_of(["The", "</script>", " `${x}`/*"], W, np.full((2, 3, 3), 12.34))], **where)
    held = data(card.html)
    assert (held["layer"], held["head"], held["query"], held["layers"], held["heads"]) == (1, 2, 2, [12, 13], [4, 6, 8])
    assert held["texts"][0]["tokens"] == ["The", "</script>", " `${x}`/*"]
    assert card.html.count("<script") == card.html.count("</script>") == 1
    assert re.findall(r"https?:|src=|@import|url\(|fetch\(", card.html.replace("http://www.w3.org/2000/svg", "")) == []
    words = re.search(r'class="attn-words">(.*?)</div>', card.html, re.DOTALL)[1]
    row = sorted(W[1, 2, 2], reverse=True)
    assert re.findall(r"<td>(0\.\d{3})</td>", words) == [f"{weight:.3f}" for weight in row]
    assert words.count("12.3") == 3
    assert "&lt;/script&gt;" in words
    assert "A &lt;b&gt; &amp; c" in words
    assert "Layer 13, head 8" in repr(card)
    page = attention_page(TOKENS, W, title="mine")
    assert "<title>mine</title>" in page
    assert data(unpacked(page))["texts"][0]["tokens"] == TOKENS


def test_two_viewers_of_one_page_find_their_own_numbers(shown, monkeypatch):
    monkeypatch.setattr("attn_course.figures.viewer.display", shown.append)
    for weights in (W, W, W[:, :2]):
        attention_viewer(TOKENS, weights)
    names = [re.search(r'data-explorable="([\w-]+)"', one.html)[1] for one in shown]
    assert names[0] == names[1] != names[2]
