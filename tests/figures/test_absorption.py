"""The figures of lesson absorption say what their numbers say, and its card counts as Python does."""

import re
from functools import partial

import numpy as np
import pytest

from attn_course import costs
from attn_course.lessons.absorption import figures
from tests.figures.support import Pictures, card_html, described, words_of_card

FORM = np.array([[0.0, 2.0, -1.0], [-0.5, 0.5, 3.0], [1.5, 0.0, 0.2]])
PROJECTIONS = {"as trained": FORM[:, :2], "other gauge": 10 * FORM[:, 1:]}
MODELS = [("Large", "multi-head", 3.0 * 2**20), ("Small", "latent", 69120.0), ("Other", "latent", 2000.0)]
LOGITS = np.array([[0.5, 1.0], [0.2, 1.0], [1.0, -0.8], [9.0, -3.0], [-2.0, 8.0]])  # three names, two colours
FLOPS = {"naive": [138.0, 2597.0], "factored": [1.4, 5895.0], "absorbed": [2.1, 8438.0]}

DRAWN = [
    (partial(figures.form_parts, FORM), ["the largest entry of each row stands in the columns 1, 2 and 0."]),
    (
        partial(figures.two_gauges, PROJECTIONS, FORM),
        [
            "as trained: the column with the largest magnitude in each row is 1, 0 and 0.",
            "other gauge: the column with the largest magnitude in each row is 0, 1 and 1.",
        ],
    ),
    (partial(figures.cache_sizes, MODELS), ["Large (multi-head): 3 MiB. Small (latent): 68 KiB. Other (latent): 2 KiB."]),
    (
        partial(figures.rank_shares, [0.5, 0.7, 0.9, 1.0], [0.6, 0.95]),
        ["then cut: 0.50, 0.70, 0.90 and 1.00. Trained at width 1 to 2: 0.60 and 0.95."],
    ),
    (
        partial(figures.value_circuit, LOGITS, 3),
        ["5 features that are read against 2 colours", "a mean of 8. The rows of the names differ by at most 1.8 in a column."],
    ),
    (
        partial(figures.kept_numbers, {2: 0.05, 16: 1.0}, {16: 0.13, 32: 0.47}),
        ["Latent vector of 2: 0.05, 16: 1.00. Merged key heads, 16: 0.13, 32: 0.47."],
    ),
    (partial(figures.prompt_flops, [1, 4096], FLOPS), ["1 new: 138, 1.4, 2.1. All 4096 new: 2597, 5895, 8438."]),
    (
        partial(figures.step_times, [64, 256], [3.0, 8.25], [1.0, 1.5]),
        ["against 64 and 256 cached tokens", "naive: 3.0 and 8.2. absorbed: 1.0 and 1.5."],
    ),
]
REFUSED = [
    (partial(figures.form_parts, FORM[:, :2]), r"form must be square; got shape \(3, 2\)"),
    (partial(figures.two_gauges, {}, FORM), "projections must hold at least one gauge"),
    (partial(figures.two_gauges, {"short": FORM[:2]}, FORM), r"projections\['short'\] must have 3 rows; got 2"),
    (partial(figures.cache_sizes, [("Empty", "latent", 0.0)]), "models must hold at least one, each with more than 0 bytes"),
    (partial(figures.rank_shares, [0.5], [0.5, 0.6]), "narrow must have at most 1 shares, as cut has; got 2"),
    (partial(figures.value_circuit, LOGITS, 2), "logits must have 4 rows, for 2 names and 2 colours; got 5"),
    (partial(figures.kept_numbers, {}, {16: 0.1}), "latent and merged must each hold at least one share; got 0 and 1"),
    (partial(figures.prompt_flops, [1, 2], {"naive": [1.0, 2.0]}), "it lacks absorbed, factored"),
    (partial(figures.step_times, [64, 256], [3.0, 8.0], [1.0]), "absorbed must have shape"),
]


class TestPictures(Pictures):
    """Forms, gauges, caches."""


# --- the card ------------------------------------------------------------------------------------------

HEIGHT = "bar => bar.height.baseVal.value"


def numbers_of(heads, width, layers, keys, latent, rope, tokens) -> dict[str, dict[str, float]]:
    """What the package counts for one step of writing."""
    cores = costs.LatentSizes(0, heads, 0, latent, width, rope, width)  # no projections: from the queries to the outputs of the heads
    naive, absorbed = (layers * costs.latent_attention_flops(cores, 1, tokens, form=form) for form in ("naive", "factored"))
    small = costs.latent_cache_bytes_per_token(latent, rope, n_layers=layers)
    one_head = costs.cache_bytes_per_token(1, width, width, n_layers=layers)
    rebuilt = tokens * costs.cache_bytes_per_token(heads, width, width)
    lifted = heads * costs.latent_cache_bytes_per_token(latent, 0)  # as long as a latent vector, for each head
    return {
        "kept": {"stored": keys * one_head * tokens, "made": 0, "flops": layers * heads * costs.attention_flops(tokens, width, width)},
        "naive": {"stored": small * tokens, "made": rebuilt, "flops": naive},
        "absorbed": {"stored": small * tokens, "made": lifted, "flops": absorbed},
        "equal": small / one_head,
    }


def test_the_words_of_the_latent_card_hold_true_numbers():
    row = r'<tr><th scope="row">.*?\((\d+) heads of width (\d+), (\d+) layers\)</th>(.*?)</tr>'
    rows = re.findall(row, words_of_card("latent"))
    assert len(rows) == 3
    for heads, width, layers, cells in rows:
        keys = 8 if (heads, layers) == ("32", "32") else int(heads)  # Llama 3
        wanted = numbers_of(int(heads), int(width), int(layers), keys, 512, 64, 4096)
        stored = [f"{wanted[way]['stored'] / 2**30:.2f}" for way in ("kept", "absorbed")]
        flops = [f"{wanted[way]['flops'] / 1e9:.1f}" for way in ("kept", "naive", "absorbed")]
        assert re.findall(r"<td>(.*?)</td>", cells) == stored + flops
        assert wanted["equal"] == 2.25


@pytest.mark.browser
def test_the_numbers_of_the_card_are_those_of_python(page):
    page.set_content(card_html("latent"))
    names = ("heads", "width", "layers", "keys", "latent", "rope", "tokens")
    for sizes in ([128, 128, 60, 128, 512, 64, 1], [71, 64, 32, 1, 64, 0, 33], [4, 16, 1, 2, 1024, 128, 4096]):
        shown, wanted = described(page, "latent", dict(zip(names, sizes, strict=True))), numbers_of(*sizes)
        assert shown.pop("equal") == pytest.approx(wanted.pop("equal"))
        assert shown == wanted


@pytest.mark.browser
def test_the_cache_of_the_card_fills_by_play_and_by_step_and_reset_takes_it_back(page):
    page.set_content(card_html("latent"))
    time = page.get_by_role("slider", name="time, in columns")
    columns = page.locator("[data-way=kept] .attn-kept")
    at_first = columns.count()
    assert time.get_attribute("aria-valuetext") == f"{at_first} of 32"
    page.get_by_role("button", name="Play").press("Enter")
    page.locator(f"[data-way=kept] .attn-kept:nth-of-type({at_first + 2})").wait_for(state="attached")
    page.get_by_role("button", name="Pause").press("Enter")
    reached = columns.count()
    assert reached > at_first
    page.get_by_role("button", name="Step", exact=True).press("Space")
    assert columns.count() == reached + 1 == page.locator("[data-way=absorbed] .attn-kept").count()
    page.get_by_role("button", name="Step back").click()
    page.get_by_role("button", name="Falcon 7B").click()
    page.get_by_role("button", name="Reset").click()
    assert columns.count() == at_first
    assert page.get_by_role("slider", name="key heads that are kept").get_attribute("aria-valuetext") == "128"
    page.get_by_role("status").get_by_text("keys and values of 128 heads").wait_for()


@pytest.mark.browser
def test_who_asks_for_less_motion_gets_one_column_for_each_press_and_the_end_is_followed_by_the_start(page):
    page.emulate_media(reduced_motion="reduce")
    page.set_content(card_html("latent"))
    time = page.get_by_role("slider", name="time, in columns")
    for pressed, reached in (("End", "32 of 32"), ("Enter", "1 of 32"), ("Enter", "2 of 32")):
        (time if pressed == "End" else page.get_by_role("button", name="Play")).press(pressed)
        assert time.get_attribute("aria-valuetext") == reached


@pytest.mark.browser
def test_columns_and_bars_are_to_scale_and_within_their_axes(page):
    page.set_content(card_html("latent"))
    page.get_by_role("slider", name="time, in columns").press("End")
    for model, sizes in (
        ("Llama 3 8B", (32, 128, 32, 8, 512, 64, 32)),
        ("DeepSeek-V2-Lite", (16, 128, 27, 16, 512, 64, 32)),
        ("Falcon 7B", (71, 64, 32, 1, 512, 64, 32)),
    ):
        page.get_by_role("button", name=model).click()
        heads, width, _, keys, latent, rope, _ = sizes
        wanted = numbers_of(*sizes)
        outlined = page.locator("[data-way=naive] .attn-made").evaluate(HEIGHT)  # the keys and values of all heads
        for way, numbers in (("kept", 2 * keys * width), ("naive", latent + rope), ("absorbed", latent + rope)):
            high = page.locator(f"[data-way={way}] .attn-kept").first.evaluate(HEIGHT)
            assert high == pytest.approx(max(1, outlined * numbers / (2 * heads * width)), rel=1e-4)
        for row in ("stored", "flops"):
            bars = page.locator(f"[data-meter={row}] rect").evaluate_all("bars => bars.map(bar => bar.width.baseVal.value)")
            amounts = [wanted[way][row] for way in ("kept", "naive", "absorbed")]
            most = max(amounts)
            assert bars == pytest.approx([max(1, max(bars) * amount / most) for amount in amounts], rel=1e-4)
            assert 192 / 3 < max(bars) <= 192


@pytest.mark.browser
def test_the_questions_of_the_lesson_can_be_answered_with_the_card(page):
    page.set_content(card_html("latent"))
    said = page.get_by_role("status")
    keys = page.get_by_role("slider", name="key heads that are kept")
    keys.press("Home")
    keys.press("ArrowRight")
    said.get_by_text("The latent cache is as large as that of 2.25 key heads.").wait_for()
    assert keys.get_attribute("aria-valuetext") == "2"  # two are smaller, the next division of 128 heads is larger
    keys.press("Home")
    latent = page.get_by_role("slider", name="width of the latent vector")
    for _ in range(5):
        latent.press("ArrowLeft")
    assert latent.get_attribute("aria-valuetext") == "192"
    said.get_by_text("The latent cache is as large as that of 1.00 key heads.").wait_for()
    assert "Tried here: 1 key head and a latent width of 192." in page.locator("[data-fact=source]").inner_text()
    page.get_by_role("button", name="DeepSeek-V2-Lite").click()
    assert latent.get_attribute("aria-valuetext") == "512"
    assert "arXiv:2405.04434" in page.locator("[data-fact=source]").inner_text()
