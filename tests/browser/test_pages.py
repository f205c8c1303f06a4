"""A lesson as a page of its own, in a browser without a network: formulas are set, answers are folded, nothing is wider than the window."""

from pathlib import Path

import pytest

from attn_course.authoring.pages import write_pages
from tests.browser.notebook_page import UNMOVED, open_page, required_browser

LESSON = "absorption"  # primes, angle brackets, wide formulas
SET = "() => window.MathJax?.Hub?.queue.pending === 0 && document.querySelectorAll('.MathJax').length > 100"
SHOWN = "(folds) => folds.filter((fold) => [...fold.children].slice(1).some((child) => child.checkVisibility())).length"
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.mark.browser
def test_a_lesson_is_a_page_that_needs_no_network(root: Path, tmp_path: Path) -> None:
    executable = required_browser()
    written = next(path for path in write_pages(root, tmp_path / "pages", only=[LESSON]) if not path.name.startswith("ex_"))
    assert (written.parent / "break.html").is_file()
    with open_page(executable, tmp_path / "profile", UNMOVED) as page:
        page.page.route("http*://**", lambda route: route.abort())
        page.page.goto(written.as_uri())
        page.page.wait_for_function(SET, polling=250)
        assert [url for url in page.elsewhere if url.startswith("http")] == []
        assert page.page.get_by_text("Math Processing Error").count() == 0
        folds = page.page.locator("details.answer, details.outcome")
        assert folds.count() > 20
        assert folds.evaluate_all(SHOWN) == 0
        folds.first.locator("summary").press("Enter")
        assert folds.evaluate_all(SHOWN) == 1
        for width in (1300, 700):
            page.page.set_viewport_size({"width": width, "height": 900})
            assert page.page.evaluate(TOO_WIDE) <= 0
