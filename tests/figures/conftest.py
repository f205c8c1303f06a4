"""Fixtures of the figure tests."""

from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure
from playwright.sync_api import Browser, Page, sync_playwright

from attn_course.figures import base, broken, diagram, explorable
from tests.browser.notebook_page import CALM, required_browser
from tests.figures.looks import faults
from tests.figures.support import Shown


@pytest.fixture
def shown(monkeypatch) -> Shown:
    """Collect what is displayed instead of displaying it."""
    seen = Shown()
    for room in (base, broken, diagram, explorable):
        monkeypatch.setattr(room, "display", seen.append)
    render, encode = base.render, base.encode_png

    def encode_and_keep(pixels: np.ndarray, dots_per_inch: int) -> bytes:
        seen.pixels = pixels
        return encode(pixels, dots_per_inch)

    def render_and_look(figure: Figure) -> bytes:
        png = render(figure)
        seen.faults += faults(figure, seen.pixels)
        return png

    monkeypatch.setattr(base, "encode_png", encode_and_keep)
    monkeypatch.setattr(base, "render", render_and_look)
    return seen


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser without a window, for all tests of this room; absent, the test is skipped here and fails on CI."""
    program = required_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", *CALM])
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[Page]:
    """A page that must neither ask for anything from elsewhere nor report an error."""
    context = browser.new_context(viewport={"width": 960, "height": 640})
    page = context.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert (asked, errors) == ([], [])
