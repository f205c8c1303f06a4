"""Make the pictures of the README again: `python -m tests.project.pictures`. test_readme.py tells when their words have changed."""

import io
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from attn_course.game.alive import card, life_of
from attn_course.tasks import cards, check
from attn_course.tasks.notebook import CheckFailed
from tests.browser.notebook_page import required_browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
ALIVE, MISTAKE = "attention", "scaled after the softmax"
PAGE = """<!doctype html><meta charset="utf-8">
<body style="width: {width}px; background: #fff; color: #1f2328; font: 14px/1.5 system-ui, 'DejaVu Sans', sans-serif">{body}</body>"""


def weights_of_last(scores: np.ndarray, axis: int) -> np.ndarray:
    """Return the softmax over the last axis, whatever `axis` says: the answer of the red card."""
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)


def refused() -> CheckFailed:
    """Return what the check says to it."""
    try:
        check("stable-softmax", weights_of_last)
    except CheckFailed as failed:
        return failed
    raise AssertionError("the check must refuse it")


def main() -> None:
    """Write both pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=required_browser(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900}, device_scale_factor=1.5)
        page.set_content(PAGE.format(width=1000, body=card(life_of(ALIVE))))
        page.get_by_role("button", name=MISTAKE).click()
        page.mouse.move(0, 0)
        box = page.locator(".attn-explorable").bounding_box()
        told = page.get_by_text("Can you find numbers").bounding_box()
        assert box is not None
        assert told is not None
        _save(page.screenshot(clip=box | {"height": told["y"] + told["height"] + 8 - box["y"]}), "alive.png")
        page.set_content(PAGE.format(width=560, body=cards.rich(refused().verdict)))
        _save(page.locator(".attn-check-failed").screenshot(), "red_card.png")
        browser.close()


def _save(screenshot: bytes, name: str) -> None:
    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(48, dither=Image.Dither.NONE)
    image.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
