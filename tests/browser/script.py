"""JavaScript without a page to look at: a script in the browser that the tests have, and what it returns."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from playwright.sync_api import Page, sync_playwright

from tests.browser.notebook_page import CALM, required_browser

PACKED = """
const packed = (numbers) => {
  const bytes = new Uint8Array(new Float64Array(numbers).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};
"""


@contextmanager
def scripted(source: str) -> Iterator[Page]:
    """Yield an empty page that knows a script, and `packed`, which makes one text of many numbers."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=required_browser(), args=["--no-sandbox", *CALM])
        page = browser.new_page()
        page.add_script_tag(content=f"{source}\n{PACKED}")
        yield page
        browser.close()


def unpacked(text: str) -> np.ndarray:
    """Return the numbers of such a text."""
    return np.frombuffer(base64.b64decode(text))
