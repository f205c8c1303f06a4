"""Make the pictures of the README again: `python -m tests.project.pictures`. test_readme.py tells when their words have changed."""

import io
from base64 import b64encode
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from attn_course.game.alive import card, life_of
from attn_course.tasks import cards, check
from attn_course.tasks.notebook import CheckFailed
from tests.browser.notebook_page import required_browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LETTERS = (Path(__file__).parents[2] / "attn_course" / "site" / "katex" / "fonts" / "CourseMath-Regular.woff2").read_bytes()
FACE = f'@font-face {{ font-family: "Latin Modern Math"; src: url(data:font/woff2;base64,{b64encode(LETTERS).decode()}) }}'
ALIVE, MISTAKE = "softmax", "exponentials over the sum of the scores"
PAGE = """<!doctype html><meta charset="utf-8"><style>:root {{ color-scheme: light dark }}</style>
<body style="width: 540px; margin: 8px; background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3);
font: 14px/1.5 system-ui, 'DejaVu Sans', sans-serif">{}</body>"""  # the grounds of GitHub


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
    """Write both pictures, for light pages and for dark ones."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=required_browser(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 556, "height": 900}, device_scale_factor=2)
        for scheme, ending in (("light", ""), ("dark", "_dark")):
            page.emulate_media(color_scheme=scheme)
            page.set_content(PAGE.format(card(life_of(ALIVE))))
            page.get_by_role("button", name=MISTAKE).click()
            page.add_style_tag(content=FACE)
            page.evaluate("document.fonts.ready")
            page.mouse.move(0, 0)
            _save(page.locator(".attn-explorable").screenshot(), f"alive{ending}.png")
            page.set_content(PAGE.format(cards.rich(refused().verdict)))
            _save(page.locator(".attn-check-failed").screenshot(), f"red_card{ending}.png")
        browser.close()


def _save(screenshot: bytes, name: str) -> None:
    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(48, dither=Image.Dither.NONE)
    image.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
