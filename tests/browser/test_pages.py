"""A lesson as a page of its own, in a browser without a network: formulas are set, answers are folded, nothing is wider than the window."""

import re
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
        assert page.page.locator("details.outcome .why").count() > 10, "the explanation is in the fold of its result"
        assert page.page.locator("details.answer:not(.ours)").count() == 0
        assert folds.count() > 20
        assert folds.evaluate_all(SHOWN) == 0
        folds.first.locator("summary").press("Enter")
        assert folds.evaluate_all(SHOWN) == 1
        for width in (1300, 700, 400):
            page.page.set_viewport_size({"width": width, "height": 900})
            assert page.page.evaluate(TOO_WIDE) <= 0


def test_each_deeper_section_is_one_fold_with_its_heading_in_sight(root: Path, tmp_path: Path) -> None:
    page = next(path for path in write_pages(root, tmp_path, only=["start"]) if not path.name.startswith("ex_"))
    before, *folds = page.read_text(encoding="utf-8").split('<details class="deeper')
    titles = [re.search(r'^[^>]*><summary><h2 id="[^"]+">0\.\d+ (Deeper: [^<]+)', fold) for fold in folds]
    assert [title[1] for title in titles if title] == re.findall(
        r"^# ## (Deeper: .+)$", (root / "notebooks" / "src" / "start.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert "Deeper:" not in before.rpartition("Summary")[2]
    for fold in folds:  # what stands inside is closed inside, and this fold right before the next part
        own = re.sub(r"(?s)<(style|script)\b.*?</\1>", "", fold.partition('id="Sources')[0])
        assert own.count("</details>") == own.count("<details") + 1
    assert "Sources" not in "".join(fold for fold in folds[:-1])


def test_a_page_has_its_title_its_sections_and_its_neighbours(root: Path, tmp_path: Path) -> None:
    pages = [path for path in write_pages(root, tmp_path, only=["lookup", "softmax", "scaling"]) if path.stem[:2].isdigit()]
    first, page, last = [path.read_text(encoding="utf-8") for path in pages]
    assert "<title>02 Softmax: from scores to weights</title>" in page
    contents = re.search(r'<nav aria-label="Contents">(.*?)</nav>', page)[1]
    places = re.findall(r'<li><a href="#([^"]+)">', contents)
    assert places == re.findall(r'<h2 id="([^"]+)"', page)
    assert re.findall(r'rel="(\w+)" href="([^"]+)"', contents) == [("prev", pages[0].name), ("next", pages[2].name)]
    assert ('<a rel="prev"' in first, '<a rel="next"' in last) == (False, False)
    assert re.search(r'<a class="skip" href="#lesson">.*?<main id="lesson" tabindex="-1">', page, re.DOTALL)
