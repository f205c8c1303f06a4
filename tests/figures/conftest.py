"""Fixtures of the figure tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from playwright.sync_api import Browser, Page, sync_playwright

from attn_course.figures import base, diagram, explorable
from attn_course.game import card
from tests.browser.notebook_page import CALM, required_browser
from tests.figures.looks import faults
from tests.figures.support import Shown

DPI = 144
SIZE = {"width": 960, "height": 640}


@pytest.fixture
def shown(monkeypatch) -> Shown:
    """Collect what is displayed instead of displaying it."""
    seen = Shown()
    for room in (base, card, diagram, explorable):
        monkeypatch.setattr(room, "display", seen.append)
    vector, squeezed = base.vector, base.squeezed

    def draw_and_look(figure: Figure) -> str:
        svg = vector(figure)
        if seen.looking:
            figure.set_dpi(DPI)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            seen.pixels = np.asarray(canvas.buffer_rgba())
            seen.faults += [] if seen else faults(figure, seen.pixels)
        return svg

    monkeypatch.setattr(base, "vector", draw_and_look)
    monkeypatch.setattr(base, "squeezed", lambda figure: squeezed(figure) if seen.looking else "")
    return seen


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser without a window, for all tests of this room; absent, the test is skipped here and fails on CI."""
    program = required_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", *CALM])
        yield browser
        browser.close()


@contextmanager
def silent(page: Page) -> Iterator[None]:
    """Hold a page to asking for nothing from elsewhere and reporting no error."""
    asked, errors = [], []
    ears = {
        "request": lambda request: asked.append(request.url),
        "pageerror": lambda error: errors.append(str(error)),
        "console": lambda message: errors.append(message.text) if message.type == "error" else None,
    }
    for event, ear in ears.items():
        page.on(event, ear)
    yield
    for event, ear in ears.items():
        page.remove_listener(event, ear)
    assert (asked, errors) == ([], [])


@pytest.fixture(scope="package")
def sheet(browser) -> Iterator[Page]:
    """One page for all tests that leave its clock alone: to make one takes as long as many a test."""
    page = browser.new_page(viewport=SIZE)
    yield page
    page.close()


@pytest.fixture
def page(sheet) -> Iterator[Page]:
    """A page of the usual size, light, silent, with nothing on it: the one that other tests had."""
    sheet.set_viewport_size(SIZE)
    sheet.emulate_media(color_scheme="light", reduced_motion="no-preference")
    with silent(sheet):
        yield sheet
        sheet.goto("about:blank")


@pytest.fixture
def stopped_page(browser) -> Iterator[Page]:
    """A page for one test, where time passes only when the test calls page.clock.run_for."""
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    with silent(page):
        yield page
        context.close()
