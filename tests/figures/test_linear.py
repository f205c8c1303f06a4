"""The figures of lesson linear say what their numbers say, and its card writes and reads as Python does."""

from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from attn_course.lessons.linear import figures
from attn_course.reference import delta_rule_attention, linear_attention
from tests.figures.support import Pictures, card_html, described, rows_of_card

SHARES = {"sums": [0.75, 1.0], "delta rule": [0.5, 0.99]}  # the oldest first

DRAWN = [
    (partial(figures.recall_by_age, SHARES), ["for 0 and 1 pairs written since. sums: 1.00 and 0.75. delta rule: 0.99 and 0.50."]),
]
REFUSED = [
    (partial(figures.recall_by_age, {"sums": [0.75, 1.0], "delta rule": [0.5]}), "must have shape"),
    (partial(figures.recall_by_age, {}), "shares must hold at least one"),
]

TestPictures = Pictures


# --- the card ------------------------------------------------------------------------------------------


STORY = [("A", 1), ("B", 1), ("A", -1)]


def read_back(angles, writes, rule, beta) -> dict[str, float]:
    keys = {name: np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))]) for name, angle in angles.items()}
    key, value = np.array([keys[name] for name, _ in writes]), np.array([[float(number)] for _, number in writes])
    if rule == "sums":
        _, state = linear_attention(key, key, value, return_state=True)
    else:
        _, state = delta_rule_attention(key, key, value, np.full((len(writes), 1), beta), return_state=True)
    return {name: float(keys[name] @ state[:, 0]) for name in angles}


def test_the_words_of_the_card_hold_true_numbers():
    rows = rows_of_card("memory")
    assert [angle for angle, _ in rows] == ["90", "60", "30"]
    for angle, cells in rows:
        wanted = []
        for rule in ("sums", "delta"):
            before, after = (read_back({"A": 0, "B": int(angle)}, STORY[:count], rule, 1.0) for count in (2, 3))
            wanted += [before["B"], after["B"], after["A"]]
        np.testing.assert_allclose([float(cell.replace("−", "-")) for cell in cells], wanted, atol=5.01e-3)


@pytest.mark.browser
def test_the_card_writes_and_reads_as_python_does(page):
    page.set_content(card_html("memory"))
    writes = [["A", 1], ["B", 1], ["A", -1], ["C", 1], ["A", 1]]
    for angles in ({"A": 0, "B": 90, "C": 45}, {"A": 0, "B": 25, "C": 170}):
        for rule, beta in (("sums", 1.0), ("delta", 1.0), ("delta", 0.3)):
            for count in (1, 3, 5):
                given = {"angles": angles, "writes": writes[:count], "rule": rule, "beta": beta}
                assert described(page, "memory", given)["read"] == pytest.approx(read_back(**given), abs=1e-12)


@pytest.mark.browser
def test_keys_and_buttons_move_the_card(page):
    page.set_content(card_html("memory"))
    status = page.get_by_role("status")
    before, after = (read_back({"A": 0, "B": 60}, STORY[:count], "delta", 1.0)["B"] for count in (2, 3))
    status.get_by_text("Written by the delta rule: A = 1, B = 1.").wait_for()
    page.get_by_role("button", name="Step on").press("Enter")
    told = f"Writing A last has moved what B reads from {before:.2f} to {after:.2f}.".replace("-", "−")
    status.get_by_text(told).wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Sums").click()
    status.get_by_text("Nothing is written yet").wait_for()
    page.get_by_role("button", name="A = 1").press("Enter")
    page.get_by_role("button", name="A = −1").press("Space")
    status.get_by_text("Written by sums: A = 1, A = −1. A reads 0.00 instead of −1.").wait_for()
    page.get_by_role("button", name="Delta rule").click()
    status.get_by_text("Written by the delta rule: A = 1, A = −1. A reads −1.00 instead of −1.").wait_for()
    page.get_by_role("slider", name="step size beta of the delta rule").press("ArrowLeft")
    status.get_by_text("A reads −0.81 instead of −1.").wait_for()
    page.get_by_role("button", name="C = 1").click()
    page.get_by_role("slider", name="angle of key C, degrees").press("Home")
    assert page.locator(".attn-live tbody tr").nth(0).locator("th, td").all_inner_texts() == ["A", "−1", "−0.81", "0.82", "1.82"]


@pytest.mark.browser
def test_the_writes_play_one_after_the_other_and_a_new_one_replaces_those_still_to_come(stopped_page):
    page = stopped_page
    page.set_content(card_html("memory"))
    steps = page.locator(".attn-tape li")
    assert steps.all_inner_texts() == ["A = 1", "B = 1", "A = −1"]
    expect(steps.nth(2)).to_have_class("attn-next")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(3_000)
    assert page.locator("[data-play]").inner_text() == "Play", "it has stopped at the end"
    expect(steps.nth(2)).to_have_class("attn-last")
    page.get_by_role("button", name="Step back").click()
    page.get_by_role("button", name="Step back").click()
    page.get_by_role("button", name="C = 1").click()
    assert steps.all_inner_texts() == ["A = 1", "C = 1"]
    page.get_by_role("button", name="Play").click()  # from the end it begins anew
    expect(page.get_by_role("status")).not_to_contain_text("Nothing is written yet")
    page.clock.run_for(300)
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(300)
    expect(page.get_by_role("status")).to_contain_text("Nothing is written yet")


@pytest.mark.browser
def test_the_card_says_when_the_state_is_drawn_shorter(page):
    page.set_content(card_html("memory"))
    note = page.get_by_text("drawn shorter than it is")
    assert not note.is_visible()
    page.get_by_role("button", name="Sums").click()
    for _ in range(2):
        page.get_by_role("button", name="A = 1").click()
    note.wait_for()
    page.get_by_role("button", name="Clear").click()
    assert not note.is_visible()
