"""A browser and its pages, as the tests of figures have them."""

from tests.figures.conftest import browser, page, sheet, shown, stopped_page

__all__ = ["browser", "page", "sheet", "shown", "stopped_page"]
