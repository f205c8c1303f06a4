"""Make the pictures of the README again: `python -m tests.project.pictures`. test_readme.py tells when their words have changed."""

import inspect
import io
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from attn_course.figures.machines.whole import machine_drawing
from attn_course.game.alive import card, life_of
from attn_course.site.sources import LOOKS
from attn_course.tasks import cards, check
from attn_course.tasks.notebook import CheckFailed
from tests.browser.notebook_page import required_browser

IMAGES = Path(__file__).parents[2] / "docs" / "images"
FONTS = Path(__file__).parents[2] / "attn_course" / "site" / "katex" / "fonts"
NAMES = {"Latin Modern Math": "CourseMath-Regular", "KaTeX_Math": "KaTeX_Math-Italic", "KaTeX_Main": "KaTeX_Main-Regular"}
FACE = "".join(
    f'@font-face {{ font-family: "{name}"; font-style: {"italic" if "Italic" in file else "normal"}; '
    f"src: url(data:font/woff2;base64,{b64encode((FONTS / f'{file}.woff2').read_bytes()).decode()}) }}"
    for name, file in NAMES.items()
)
TASK = "stable-softmax"
ALIVE, MISTAKE = "softmax", "exponentials over the sum of the scores"
LOOK = """:root { color-scheme: light dark; background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3) }  /* of GitHub */
body { width: max-content; margin: 0; display: flex; gap: 14px; zoom: 1.1389; font: 15px/1.6 system-ui, "DejaVu Sans", sans-serif }
body > div { width: 359.9px; padding-bottom: 12px; display: flex; flex-direction: column; gap: 8px }  /* two of one height */
.highlight { padding: 0 12px; border: 1px solid #8884; border-radius: 6px; font-size: 11.5px }
.highlight span[class] { font-weight: 400 !important; font-style: normal !important }
.attn-check-failed { flex: 1; margin: 0 !important; padding-block: 12px !important; border-radius: 0 6px 6px 0 }  /* and as in lab.css */
.attn-check-failed > b { display: block; margin-bottom: 5px } .attn-check-failed pre b { color: light-dark(#00664a, #4fd1a5) }
.attn-check-failed pre b:first-of-type { color: light-dark(#a33f00, #ff9a5c) }
.attn-explorable { flex: 1; box-sizing: border-box; margin: 0 !important; padding: 14px !important }
.attn-explorable :is(.attn-buttons, p.alv-layer, .alv-how, [data-form="0"], .attn-summary) { display: none }
.alv-forms button { min-height: 28px !important; padding-block: 1px !important } .alv-said { min-height: 0 !important }
.alv-mine { display: flex; align-items: center; gap: 10px } .alv-chain { flex-wrap: nowrap !important; gap: 5px !important }
.alv-side { gap: 5px !important } .alv-side td { min-width: 42px !important; padding-inline: 3px !important; font-size: 11.5px !important }
body.narrow { flex-direction: column }
body.wide { zoom: 1 } .wide > div { display: block; width: 656px; padding: 0 } .wide.narrow > div { width: 384px }
.wide .attn-explorable, .wide .attn-explorable > div { display: block; max-width: none } .wide .attn-explorable { padding: 16px }
.wide .attn-symbol { font-family: KaTeX_Math !important } .wide .attn-upright { font-family: KaTeX_Main }
.wide figure { margin: 0 !important }
.wide :is(figcaption, .attn-summary, .attn-title) { display: none }
.wide svg { width: 100%; max-width: none; max-height: none } .wide .attn-explorable > :not(:has(svg)) { display: none }"""


def weights_of_last(scores, axis):
    """Return the softmax over the last axis, whatever `axis` says: the answer of the red card."""
    largest = scores.max(-1, keepdims=True)
    terms = np.exp(scores - largest)
    return terms / terms.sum(-1, keepdims=True)


def refused() -> CheckFailed:
    """Return what the check says to it."""
    try:
        check(TASK, weights_of_last)
    except CheckFailed as failed:
        return failed
    raise AssertionError("the check must refuse it")


def main() -> None:
    lesson = json.loads((IMAGES.parents[1] / "notebooks" / "00_start.ipynb").read_text(encoding="utf-8"))
    looks = next("".join(cell["outputs"][0]["data"]["text/html"]) for cell in lesson["cells"] if cell["id"] == LOOKS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=required_browser(), args=["--no-sandbox"])
        page = browser.new_page(device_scale_factor=2)
        for scheme, colours, ending in (("light", "a11y-light", ""), ("dark", "github-dark", "_dark")):
            page.set_viewport_size({"width": 860, "height": 900})
            style = f'<!doctype html><meta charset="utf-8"><style>{LOOK}{HtmlFormatter(style=colours).get_style_defs()}</style>'
            page.emulate_media(color_scheme=scheme)
            red = f"{answer(weights_of_last)}{cards.rich(refused().verdict)}"
            page.set_content(f"{style}<div>{card(life_of(ALIVE))}</div><div>{red}</div>")
            page.get_by_role("button", name=MISTAKE).click()
            page.add_style_tag(content=FACE)
            page.evaluate("document.fonts.ready")
            _save(page.locator("body").screenshot(), f"cards{ending}.png")
            page.evaluate("document.body.className = 'narrow'")
            _save(page.locator("body").screenshot(), f"cards_narrow{ending}.png")
            for width, name in ((400, "looks_narrow"), (672, "looks")):
                page.set_viewport_size({"width": width, "height": 900})
                page.set_content(f"{style}<body class='wide {'narrow' * (width < 672)}'><div>{looks}</div>")
                page.wait_for_timeout(500)
                _save(page.locator("body > div").screenshot(), f"{name}{ending}.png")
            page.set_content(f"{style}<body class=wide><div>{machine_drawing('attention').html}</div>")
            page.add_style_tag(content=FACE)
            page.evaluate("document.fonts.ready")
            _save(page.locator("body > div").screenshot(), f"machine{ending}.png")
        browser.close()


def answer(given: Callable) -> str:
    code = inspect.getsource(given).replace(f"def {given.__name__}", "def my_softmax")
    code = code.replace(f'    """{given.__doc__}"""\n', "") + f'\ncheck("{TASK}", my_softmax)'
    return highlight(code, PythonLexer(), HtmlFormatter())


def _save(screenshot: bytes, name: str) -> None:
    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
