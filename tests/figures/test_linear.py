"""The figures of lesson linear say what their numbers say, and its card writes and reads as Python does."""

import re

import numpy as np
import pytest

from attn_course import figures
from attn_course.figures.explorable import PARTS, explorable_html
from attn_course.reference import delta_rule_attention, linear_attention
from tests.figures.support import decode, ink_touches_the_edge

KEYS = np.array([[1.0, 0.0], [0.6, 0.8]])
VALUES = np.array([[1.0, 0.0, -1.0], [2.0, 0.5, 1.0]])


def draw(*, title="Two pairs overlap in one state", **options):
    figures.outer_products(KEYS, VALUES, title=title, **options)


def test_it_is_small_whole_not_blank_and_the_same_every_time(shown):
    draw()
    draw()
    first, words, second, _ = shown
    pixels = decode(first.png)
    assert first == second
    assert words.alt == first.alt
    assert len(first.png) < 60_000
    assert not ink_touches_the_edge(pixels)
    assert 0.02 < (pixels != 255).any(axis=-1).mean() < 0.9


def test_its_words_hold_the_products_and_their_sum(shown):
    draw()
    assert "pair 1: rows (1.2, 0.3 and 0.6), (1.6, 0.4 and 0.8)." in shown.words.alt
    assert "state: the sum: rows (2.2, 0.3 and −0.4), (1.6, 0.4 and 0.8)." in shown.words.alt


def test_its_words_can_be_replaced_and_pairs_must_fit(shown):
    draw(title="Another finding altogether", alt="One two three four five six seven eight nine.")
    assert shown.words.alt == "One two three four five six seven eight nine."
    with pytest.raises(ValueError, match="keys and values must be as many; got 2 and 1"):
        figures.outer_products(KEYS, VALUES[:1], title="Two pairs overlap in one state")


# --- the card ------------------------------------------------------------------------------------------


def read_back(angles, writes, rule, beta) -> dict[str, float]:
    """What each key reads after the writes, by the reference."""
    keys = {name: np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))]) for name, angle in angles.items()}
    key, value = np.array([keys[name] for name, _ in writes]), np.array([[float(number)] for _, number in writes])
    if rule == "sums":
        _, state = linear_attention(key, key, value, return_state=True)
    else:
        _, state = delta_rule_attention(key, key, value, np.full((len(writes), 1), beta), return_state=True)
    return {name: float(keys[name] @ state[:, 0]) for name in angles}


def test_the_words_of_the_card_hold_true_numbers():
    text = (PARTS / "memory_words.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text)
    assert [angle for angle, _ in rows] == ["90", "60", "30"]
    for angle, cells in rows:
        wanted = []
        for rule in ("sums", "delta"):
            found = read_back({"A": 0, "B": int(angle)}, [("A", 1), ("B", 1)], rule, 1.0)
            wanted += [f"{found['A']:.2f}", f"{found['B']:.2f}"]
        assert re.findall(r"<td>(.*?)</td>", cells) == wanted


@pytest.mark.browser
def test_the_card_writes_and_reads_as_python_does(page):
    page.set_content(explorable_html("memory", "memory"))
    call = "([angles, writes, rule, beta]) => document.getElementById('attn-memory').explorable.describe({angles, writes, rule, beta}).read"
    writes = [["A", 1], ["B", 1], ["A", -1], ["C", 1], ["A", 1]]
    for angles in ({"A": 0, "B": 90, "C": 45}, {"A": 0, "B": 25, "C": 170}):
        for rule, beta in (("sums", 1.0), ("delta", 1.0), ("delta", 0.3)):
            for count in (1, 3, 5):
                found = page.evaluate(call, [angles, writes[:count], rule, beta])
                for name, wanted in read_back(angles, writes[:count], rule, beta).items():
                    np.testing.assert_allclose(found[name], wanted, atol=1e-12, err_msg=name)


@pytest.mark.browser
def test_keys_and_buttons_move_the_card(page):
    page.set_content(explorable_html("memory", "memory"))
    page.get_by_role("status").get_by_text("Written by the delta rule: A = 1, B = 1, C = 1.").wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Sums").click()
    page.get_by_role("status").get_by_text("Nothing is written yet").wait_for()
    page.get_by_role("button", name="A = 1").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="A = −1").press("Space")
    page.get_by_role("status").get_by_text("Written by sums: A = 1, A = −1. A reads 0.00 instead of −1.").wait_for()
    page.get_by_role("button", name="Delta rule").click()
    page.get_by_role("status").get_by_text("Written by the delta rule: A = 1, A = −1. A reads −1.00 instead of −1.").wait_for()
    page.get_by_role("slider", name="step size beta of the delta rule").press("ArrowLeft")
    page.get_by_role("status").get_by_text("A reads −0.81 instead of −1.").wait_for()
    page.get_by_role("button", name="C = 1").click()
    page.get_by_role("slider", name="angle of key C, degrees").press("Home")
    assert page.locator(".attn-live tbody tr").nth(0).locator("th, td").all_inner_texts() == ["A", "−1", "0.82", "1.82"]
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("status").get_by_text("Nothing is written yet").wait_for()


@pytest.mark.browser
def test_the_card_says_when_the_state_is_drawn_shorter(page):
    page.set_content(explorable_html("memory", "memory"))
    note = page.get_by_text("drawn shorter than it is")
    assert not note.is_visible()
    page.get_by_role("button", name="Sums").click()
    for _ in range(2):
        page.get_by_role("button", name="A = 1").click()
    note.wait_for()
    page.get_by_role("button", name="Clear").click()
    assert not note.is_visible()
