"""An explorable is one piece of HTML that needs nothing else, says its piece without scripts and labels its controls."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from attn_course.figures.explorable import explorable_html, packed, publish_explorable, unpacked
from attn_course.lessons.softmax import figures
from attn_course.reference.softmax import softmax
from tests.figures.support import CARDS, WITHOUT_SLIDERS, card_html, rows_of_card


class Controls(HTMLParser):
    """Inputs and buttons of a page, each with the words that name it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.inputs: list[dict] = []
        self.buttons: list[str] = []
        self.ids: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.headings += bool(re.fullmatch("h[1-6]", tag))
        if tag == "input":
            self.inputs.append({"labelled": "label" in self.inside and bool(attributes.get("aria-label")), "type": attributes["type"]})
            return
        self.inside.append(tag)
        if tag == "button":
            assert attributes["type"] == "button", "another type would submit a form around the card"
            self.buttons.append("")

    def handle_endtag(self, tag):
        while self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if "button" in self.inside:
            self.buttons[-1] += data.strip()


def controls(name: str) -> Controls:
    parser = Controls()
    parser.feed(CARDS[name].with_suffix(".html").read_text(encoding="utf-8"))
    return parser


@pytest.mark.parametrize("name", CARDS)
def test_it_loads_nothing_and_ends_its_script_once(name):
    html = card_html(name, "x").replace("http://www.w3.org/2000/svg", "")  # a name, which nobody fetches
    for outside in ("http:", "https:", "src=", "href=", "@import", "url(", "//cdn", "fetch(", "import(", "eval("):
        assert outside not in html
    assert html.count("<script") == html.count("</script>") == 1
    assert html.count("<style") == html.count("</style>") == 1
    assert "$" not in html.split("<script>")[0], "a front end would typeset it as mathematics"


@pytest.mark.parametrize("name", CARDS)
def test_the_same_slug_gives_the_same_text_and_another_slug_other_ids(name):
    assert card_html(name, "a") == card_html(name, "a")
    assert card_html(name, "a").replace("attn-a-", "attn-b-").replace('"attn-a"', '"attn-b"') == card_html(name, "b")


@pytest.mark.parametrize("name", CARDS)
def test_every_control_is_native_and_labelled_and_every_id_begins_with_the_slug(name):
    found = controls(name)
    assert (found.inputs and found.buttons) or name in WITHOUT_SLIDERS
    assert all(control["labelled"] and control["type"] == "range" for control in found.inputs)
    assert all(found.buttons)
    assert all(identifier.startswith("{{id}}-") for identifier in found.ids)
    assert len(set(found.ids)) == len(found.ids)
    assert found.headings == 0, "a heading in an output would appear in the table of contents"


@pytest.mark.parametrize("slug", ["", "Softmax", "2x", "a b", "a--b", 'x" onload="', "a_b"])
def test_a_slug_of_another_form_is_refused(slug):
    with pytest.raises(ValueError, match="slug must be lower-case words joined by hyphens"):
        explorable_html(CARDS["softmax"], slug)


def test_an_unknown_card_and_missing_words_are_refused(shown):
    with pytest.raises(ValueError, match=r"card must be one of \['softmax'\]; got 'hardmax'"):
        explorable_html(CARDS["softmax"].with_name("hardmax"), "x")
    with pytest.raises(ValueError, match="alt must be a text of at least 8 words; got 1"):
        publish_explorable(CARDS["softmax"], "short")
    assert shown == []


def test_a_front_end_gets_html_and_a_terminal_gets_words(shown):
    figures.softmax_explorable()
    (card,) = shown
    data, _ = DisplayFormatter().format(card)
    assert set(data) == {"text/html", "text/plain"}
    assert data["text/plain"].startswith("[explorable] Sliders for four scores and a temperature;")
    assert data["text/html"] == packed(card_html("softmax"))


def test_a_notebook_stores_the_script_of_a_card_packed_and_all_else_as_it_is():
    card = card_html("softmax")
    stored = packed(card)
    assert len(stored) < 0.75 * len(card)
    assert unpacked(stored) == card
    assert stored.partition("<script>")[0] == card.partition("<script>")[0]
    for outside in ("http", "src=", "import(", "eval(", "fetch("):
        assert outside not in stored


def test_the_words_of_the_softmax_card_hold_true_numbers():
    rows = rows_of_card("softmax")
    assert [temperature for temperature, _ in rows] == ["0.1", "0.25", "1", "4", "20"]
    for temperature, cells in rows:
        weights = softmax(np.array([2.0, 1.0, 0.0, -1.0]), temperature=float(temperature))
        entropy = -(weights * np.log(weights)).sum()
        norm = np.linalg.norm(np.diag(weights) - np.outer(weights, weights), 2)
        assert cells == [f"{value:.3f}" for value in (*weights, entropy, norm, norm / float(temperature))]
