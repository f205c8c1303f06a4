"""Every page of the site at two widths and in both themes: nothing is cut off, faint, nameless, dead, or out of the keyboard's reach."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

from attn_course.site import write_site
from attn_course.tasks import all_tasks
from tests.browser.notebook_page import UNMOVED, NotebookPage, open_page, required_browser

ROOT = Path(__file__).parents[2]
LOOK = Path(__file__).with_name("every_page.js").read_text(encoding="utf-8")
WIDTHS, THEMES = (1300, 400), ("light", "dark")
LESSONS = sorted(path.stem[3:] for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
OTHERS = (
    *("index", "sheet", "map", "glossary", "break", "viewer", "search"),
    *("eq/softmax", "eq/value-output-rank-bound", "task/stable-softmax"),
)
SOURCE = re.compile(r"\^T\b|\\[a-z]{2}|\b(?:Gamma|Theta|Lambda|Pi|Sigma|Phi|Psi|Omega)\b")
OVER = """all => all.map((one) => one.getBoundingClientRect().right - one.closest('.eq').lastChild.getBoundingClientRect().left)"""
TOUCHING = """all => all.flatMap((eq) => Array.from(eq.querySelectorAll('.katex-base'), (one) => one.getBoundingClientRect())
    .filter((one, at, rows) => rows.slice(0, at).some((above) => one.top > above.top + above.height / 2 && one.top < above.bottom + 2))
    .map(() => eq.id))"""
HEADED = "all => all.map((one) => one.closest('section').nextElementSibling.querySelector(':scope > :not(span)').tagName)"
IN_LINES = """all => all.filter((one) => {
    const parts = Array.from(one.querySelectorAll('.katex-base'), (part) => part.getBoundingClientRect());
    return parts.length > 1 && parts.at(-1).top > parts[0].bottom - 2;
}).length"""
TOPS = "all => all.map((one) => one.getBoundingClientRect().top)"
BROKEN = """all => all.filter((one) => {
    const text = document.createRange();
    text.selectNodeContents(one);
    return text.getClientRects().length > 1 || one.scrollWidth > one.clientWidth;
}).map((one) => one.textContent)"""
ASIDE = """all => all.map((one) => [one, one.closest('.eq')].map((each) => each.getBoundingClientRect()))
    .map(([body, whole]) => Math.abs(body.left + body.right - whole.left - whole.right) / 2)"""
TOO_LARGE = 40e6
LETTERS = (
    "all => all.filter((one) => one.checkVisibility()).map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)"
)
STOPS = """() => document.querySelectorAll('pre, .cell_output > .output, .pst-scrollable-table-container').forEach((one) => {
    one.tabIndex = one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight ? 0 : -1;
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str, no_shape_checks: None) -> Path:
    """The whole site, built once for all processes of a run."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    with FileLock(shared / "site.lock"):
        if not (shared / "site" / "index.html").is_file():
            write_site(ROOT, shared / "site", repository="owner/course")
    return shared / "site"


class Page(HTMLParser):
    """The anchors of a page and where it leads to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.links = {""}, set[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what it is called and what it loads."""
        self.anchors |= {value for name, value in attrs if name == "id" and value}
        self.links |= {value for name, value in attrs if name in ("href", "src") and value}


class Prose(HTMLParser):
    """The source of formulas that stands in a page as text, outside of code, of formulas and of what cards say to screen readers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open, self.found = list[tuple[str, bool]](), list[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where the text that follows stands."""
        words = dict(attrs).get("class") or ""
        apart = tag in ("code", "pre", "script", "style", "math") or "attn-words" in words or "katex" in words or "alv" in words
        self.open.append((tag, apart))

    def handle_endtag(self, tag: str) -> None:
        """Leave it, and what is never closed inside."""
        places = [place for place, (name, _) in enumerate(self.open) if name == tag]
        del self.open[places[-1] if places else len(self.open) :]

    def handle_data(self, data: str) -> None:
        """Keep the words around it."""
        if SOURCE.search(data) and not any(apart for _, apart in self.open):
            self.found.append(data.strip())


def test_no_page_shows_the_source_of_a_formula_as_text(site: Path) -> None:
    found = {str(path.relative_to(site)): Prose(path).found for path in site.rglob("*.html")}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.browser
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_sheet_has_two_pages_and_no_formula_leaves_its_column(browser: NotebookPage, site: Path, paper: str) -> None:
    page = browser.page
    page.goto((site / "sheet.html").as_uri())
    assert page.locator(".key :is(var, sub, sup)").count() == 0, "what is said of a formula is set as it is"
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=paper))) == 2
    page.set_viewport_size({"width": {"A4": 726, "Letter": 748}[paper], "height": 1000})  # between the margins
    page.emulate_media(media="print")
    try:
        assert max(page.locator(".key .eq .katex-base").evaluate_all(OVER)) < 0  # none is below its number
        assert page.locator(".key .eq").evaluate_all(TOUCHING) == [], "rows of a formula that is broken"
        heads = page.locator(".next-column").evaluate_all(HEADED)
        assert heads == ["H2"] * 5, "each of six columns begins with a lesson"
    finally:
        page.emulate_media(media="null")


def test_every_link_and_every_anchor_is_there_and_the_site_is_small(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    dead = set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target.is_file() and (target not in pages or unquote(parts.fragment) in pages[target].anchors)
            if not parts.scheme and not known:
                dead.add(f"{path.relative_to(site)}: {link}")
    assert dead == set()
    assert len(pages) > 400
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < TOO_LARGE


def test_a_task_leads_into_its_exercise_and_to_its_neighbours_and_an_equation_is_printed_once(site: Path) -> None:
    names = [task.id for task in all_tasks("softmax")]
    page = (site / "task" / f"{names[1]}.html").read_text(encoding="utf-8")
    begin = page.partition('<p class="begin">')[2]
    assert begin.startswith('<a href="../softmax-exercises.html#task-2-2-the-most-undecided-weights">')
    assert re.findall(r'class="(?:left-prev|right-next)"\s+href="([^"]+)"', page) == [f"{names[0]}.html", f"{names[2]}.html"]
    still = (site / "eq" / "value-output-rank-bound.html").read_text(encoding="utf-8").partition("<details>")[0]
    assert still.count('<div class="eq">') == 2, "as it is printed, and with numbers"


def test_search_knows_an_equation_by_its_name_and_a_word_of_a_title(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for wanted in ('"eq/softmax-jacobian"', '"absorption"', '"absorpt"'):
        assert wanted in index


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookPage]:
    """One browser for all pages."""
    with open_page(required_browser(), tmp_path_factory.mktemp("profile"), UNMOVED) as page:
        yield page


@pytest.mark.browser
@pytest.mark.parametrize("name", [*LESSONS, *OTHERS])
def test_a_page_can_be_read_and_worked_by_everyone(browser: NotebookPage, site: Path, name: str) -> None:
    pages = [path for path in (site / f"{name}.html", site / f"{name}-exercises.html") if path.is_file()]
    walked = [path for path in pages if path.stem == "softmax-exercises" or "-exercises" not in path.stem]  # others have the same stops
    found = [f"{path.stem}: {fault}" for path in pages for fault in faults(browser, path, walk=path in walked)]
    assert found == [], "\n".join(found)


@pytest.mark.browser
def test_a_number_opens_its_formula_and_a_reference_shows_it(browser: NotebookPage, site: Path) -> None:
    page = browser.page
    page.set_viewport_size({"width": 1300, "height": 900})
    page.goto((site / "softmax.html").as_uri())
    page.locator("#eq-softmax-derivative .eq-number").press("Enter")
    card = page.locator(".in-place [data-form]").first
    card.wait_for()
    page.locator("#eq-softmax-derivative .eq-number").press("Enter")
    assert page.locator(".in-place").count() == 0
    reference = page.locator("a.eq-ref[href^='#eq-']").first
    reference.focus()
    assert page.locator("#eq-shown .katex").first.is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#eq-shown").count() == 0
    assert max(page.locator(".eq:not(:has(.eq-number)) > .eq-body").evaluate_all(ASIDE)) < 1, "in the middle without a number, too"
    page.goto((site / "flash.html").as_uri())
    page.add_style_tag(content=".eq-number { font-family: 'DejaVu Sans', Verdana, sans-serif; }")  # the widest that a system has
    assert page.locator(".eq-number:visible").evaluate_all(BROKEN) == [], "a number stands in one line"
    page.goto(f"{(site / 'eq' / 'softmax.html').as_uri()}#wrong=2")
    page.locator('[data-form="2"][aria-pressed="true"]').wait_for()


@pytest.mark.browser
def test_a_phone_sees_the_tall_machine_code_that_sets_up_is_folded_and_the_first_page_goes_on(browser: NotebookPage, site: Path) -> None:
    page = browser.page
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto((site / "start.html").as_uri())
    drawing = page.locator("#attn-machine-attention")
    assert drawing.locator("svg").evaluate_all("all => all.map((one) => one.checkVisibility())") == [False, True]
    assert min(drawing.locator("svg text").evaluate_all(LETTERS)) >= 12
    pieces = drawing.locator(".attn-piece:visible .attn-link")
    assert {*pieces.evaluate_all("all => all.map((one) => one.title)")} == {
        *drawing.locator(".attn-link").evaluate_all("all => all.map((one) => one.title)")
    }
    page.goto((site / "gradients.html").as_uri())
    reversed_machine = page.locator("#attn-machine-backwards svg")
    assert reversed_machine.evaluate_all("all => all.map((one) => one.checkVisibility())") == [False, True]
    assert page.locator("#attn-machine-backwards .attn-frame").evaluate("one => one.scrollWidth <= one.clientWidth")
    assert page.locator(".toc-group").text_content() == "Deeper"
    said = page.locator(".deeper > summary").all_inner_texts()
    assert said == [one for one in said if re.fullmatch(r"Read on: about \d+ minutes?(, Eqs?\. \(5\.\d+\).*)?", one)] != []
    page.goto((site / "softmax-exercises.html").as_uri())
    assert 'and ".' in page.locator("p", has_text="It has to hold for both signs of").inner_text(), "a stop stays where it stood"
    hints = page.locator("section#task-2-2-the-most-undecided-weights summary")
    assert [hints.nth(n).is_visible() for n in range(3)] == [True, False, False]
    hints.first.press("Enter")
    assert [hints.nth(n).is_visible() for n in range(3)] == [True, True, False], "one hint at a time"
    page.goto((site / "start.html").as_uri())
    assert page.locator(".tag_hide-input details[open]").count() == 0
    assert page.locator(".tag_hide-input").first.get_by_text("code", exact=True).first.is_visible()
    page.goto((site / "scaling.html").as_uri())
    folds = page.locator(".tag_hide-input:not(:has(.cell_output)) summary").evaluate_all(TOPS)
    cells = json.loads(next((ROOT / "notebooks").glob("*_scaling.ipynb")).read_text(encoding="utf-8"))["cells"]
    hidden = sum("hide-input" in cell["metadata"].get("tags", ()) and not cell["outputs"] for cell in cells)
    assert len({*folds}) == len(folds) == hidden > 1, "folds behind each other cannot be opened"
    page.goto((site / "glossary.html").as_uri())
    whole = page.locator("dl.myst").evaluate_all("all => all.map((one) => one.scrollWidth <= one.clientWidth)")
    assert whole
    assert all(whole), "each word and its dialects are in sight"
    page.goto((site / "heads.html").as_uri())
    short = page.locator("td:not(#formula-card *) .katex-html")
    assert short.count() > 3
    assert short.evaluate_all(IN_LINES) == 0, "a short formula of a table is not broken"
    page.goto((site / "break.html").as_uri())
    head = page.locator(".bd-header-article").evaluate("one => `${one.offsetHeight}px`")
    assert page.locator(".brk-dock").evaluate("one => getComputedStyle(one).top") == head, "below the head of the page"
    page.goto((site / "softmax.html").as_uri())
    page.wait_for_function(
        "['bold', 'italic'].every((style) => document.fonts.check(`${style} 1em KaTeX_Main`))"
    )  # paper needs them at once
    assert page.locator("p.needs").inner_text().startswith("You need")
    page.goto((site / "index.html").as_uri())
    assert page.locator(".begin:not(.beside) a").all_inner_texts() == ["Begin with lesson 00", "Go on with lesson 02"]
    page.goto((site / "eq" / "attention.html").as_uri())
    assert page.locator("p", has_text="for all rows of Q at once").inner_text() == "Eqs. (4.1) and (4.2) for all rows of Q at once."
    assert page.locator(".bd-sidenav .current > a").all_text_contents() == ["04 Scaled dot-product attention", "exercises"]
    page.set_viewport_size({"width": 1300, "height": 900})
    assert page.locator(".bd-sidenav a").last.evaluate("one => one.getBoundingClientRect().bottom") < 900, "all pages are in sight"
    page.keyboard.press("Control+k")
    page.keyboard.type("temperature")
    assert page.locator(".found a mark").first.inner_text() == "temperature"
    assert page.locator(".found a").first.get_attribute("href") == "../eq/softmax-with-temperature.html"
    page.goto(f"{(site / 'search.html').as_uri()}?q=softmax+row")
    page.locator("#search-results mark", has_text=re.compile("^rows?$")).first.wait_for()
    groups = page.locator("#search-results section:visible > h2").all_inner_texts()
    assert {re.sub(r" \d+$", "", one) for one in groups} <= {"Lessons", "Equations", "Tasks", "Exercises", "To look things up"}
    equations = page.locator("#search-results section", has=page.get_by_role("heading", name="Equations"))
    more = equations.get_by_role("button", name="Show all")
    more.wait_for()
    assert equations.locator("li:visible").count() == 5
    more.press("Enter")
    assert equations.locator("li").evaluate_all("all => all.length > 5 && all.every((one) => one.checkVisibility())")
    assert equations.locator("li a").nth(5).evaluate("one => one === document.activeElement")


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
    "asked another computer: http": '<img alt="picture" src="http://127.0.0.2:9/picture.png">',
    "the console says": "<script>console.error('oh')</script>",
}


@pytest.mark.browser
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_and_no_other(browser: NotebookPage, tmp_path: Path, fault: str) -> None:
    path = tmp_path / "00_start.html"
    body = f'<main style="color: black; background: white"><p>Black on white.</p>{PLANTED[fault]}<button>go</button></main>'
    path.write_text(f"<!doctype html><title>planted</title>{body}", encoding="utf-8")
    found = list(faults(browser, path))
    assert any(fault in line for line in found), found
    assert all(fault in line or "console" in line for line in found), found


def faults(browser: NotebookPage, path: Path, *, walk: bool = True) -> Iterator[str]:
    """What is wrong with one page, a line each; `walk` from stop to stop with Tab, too."""
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
    page.evaluate(STOPS)  # as the theme does, but a while after the window has changed
    stops = page.evaluate("Page.listen()") + 4  # a number that can be changed shows buttons beside it when it has the focus
    for _ in range(stops if walk else 0):
        page.keyboard.down("Tab")
    yield from page.evaluate("Page.focus()") if walk else ()
    yield from (f"asked another computer: {url}" for url in browser.elsewhere if not url.startswith("file:"))
    yield from (f"the console says {text}" for text in browser.complaints)
