"""Every page at two widths and in both themes: nothing is cut off, faint, nameless or out of the reach of the keyboard."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from attn_course.authoring.pages import write_pages
from tests.browser.notebook_page import UNMOVED, NotebookPage, open_page, required_browser

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
LOOK = Path(__file__).with_name("every_page.js").read_text(encoding="utf-8")
WIDTHS, THEMES = (1300, 700), ("light", "dark")
LINKS = "() => [...document.links].map((link) => link.href)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookPage]:
    """One browser for all pages. Formulas stay as they are written: setting them is most of the time, and test_pages.py looks at them."""
    with open_page(required_browser(), tmp_path_factory.mktemp("profile"), UNMOVED) as page:
        page.page.route("**/MathJax.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
        yield page


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_and_its_exercises_can_be_read_and_worked_by_everyone(browser: NotebookPage, tmp_path: Path, lesson: str) -> None:
    pages = [path for path in write_pages(ROOT, tmp_path, only=[lesson]) if lesson == LESSONS[0] or path.stem != "break"]  # one for all
    found = [f"{path.stem}: {fault}" for path in pages for fault in faults(browser, path)]
    assert found == [], "\n".join(found)


PLANTED = {
    "wider than the page: div": '<div style="width: 2000px">far</div>',
    "cut off: div": '<div style="width: 9em; overflow: hidden; white-space: nowrap">a line that is longer than its box</div>',
    "faint text, rgb(119, 119, 119)": '<p style="background: #ddd"><span style="color: #777">grey on grey</span></p>',
    "faint text, rgb(0, 0, 0)": '<p style="opacity: 0.4">black, but hardly there</p>',
    "faint text, rgb(255, 255, 0)": '<svg aria-label="s"><path d="M0 0h99v50H0z" fill="#fff"/><text y="9" fill="#ff0">y</text></svg>',
    "no name: button": "<button></button>",
    "no name: img": "<img>",
    "no name: svg": "<svg><circle r='9'/></svg>",
    "nothing to do at this stop of Tab: div": '<div tabindex="0">words</div>',
    "Tab came out of order to": '<a href="00_start.html" tabindex="2">second</a><a href="00_start.html" tabindex="1">first</a>',
    "no outline to be seen: button": '<button style="outline: none">bare</button>',
    "a link to file": '<a href="../elsewhere.html">away</a>',
    "asked another computer: http": '<img alt="picture" src="http://127.0.0.2:9/picture.png">',
    "the console says": "<script>console.error('oh')</script>",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_and_no_other(browser: NotebookPage, tmp_path: Path, fault: str) -> None:
    path = tmp_path / "00_start.html"
    body = f'<main style="color: black; background: white"><p>Black on white.</p>{PLANTED[fault]}<button>go</button></main>'
    path.write_text(f"<!doctype html><title>planted</title>{body}", encoding="utf-8")
    found = list(faults(browser, path))
    assert any(fault in line for line in found), found
    assert all(fault in line or "console" in line for line in found), found


def faults(browser: NotebookPage, path: Path) -> Iterator[str]:
    """What is wrong with one page, a line each."""
    page = browser.page
    browser.complaints.clear()
    browser.elsewhere.clear()
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # a colour on its way to another is neither
    page.goto(path.as_uri())
    page.add_script_tag(content=LOOK)
    yield from page.evaluate("Page.nameless()")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        yield from (f"{width} px: {fault}" for fault in page.evaluate("Page.overflow()"))
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            yield from (f"{width} px, {theme}: {fault}" for fault in page.evaluate("Page.faint()"))
    page.set_viewport_size({"width": WIDTHS[-1], "height": 200})  # little to draw anew at each stop
    for _ in range(page.evaluate("Page.listen()") + 4):  # a number that can be changed shows buttons beside it when it has the focus
        page.keyboard.down("Tab")
    yield from page.evaluate("Page.focus()")
    yield from (f"a link to {link}, which is not there" for link in page.evaluate(LINKS) if not leads_somewhere(link, path.parent))
    yield from (f"asked another computer: {url}" for url in browser.elsewhere if not url.startswith("file:"))
    yield from (f"the console says {text}" for text in browser.complaints)


def leads_somewhere(link: str, folder: Path) -> bool:
    """Whether a link leads to another computer, or to the page of a lesson or its exercises."""
    parts = urlsplit(link)
    target = Path(unquote(parts.path))
    return parts.scheme != "file" or (target.parent == folder and target.stem.removeprefix("ex_") in LESSONS and target.suffix == ".html")
