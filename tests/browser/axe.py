"""Ask axe-core what it finds on pages: `npm pack axe-core`, unpack it, then `python -m tests.browser.axe axe.min.js PAGE.html...`.

It is not part of the suite, whose own walk over every page (test_every_page.py) needs nothing from elsewhere. Nothing serious is wanted.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.notebook_page import required_browser

RUN = """() => axe.run(document, { resultTypes: ['violations'] })
    .then((found) => found.violations.map((one) => [one.impact, one.id, one.nodes[0].html]))"""


def main(axe: str, *pages: str) -> None:
    """Print what is found in both themes and at two widths, a line each."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=required_browser(), args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for width in (1300, 400):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce")
                for path in pages:
                    page.goto(Path(path).resolve().as_uri())
                    page.evaluate(Path(axe).read_text(encoding="utf-8"))
                    for impact, rule, html in page.evaluate(RUN):
                        print(f"{impact}: {rule}, {path}, {theme}, {width} px: {html[:120]}")
                page.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
