"""The course as a site to publish: `attn-course site --out DIR`."""

import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attn_course import __version__
from attn_course.authoring.course import shown_units
from attn_course.authoring.problems import AuthoringError
from attn_course.site.sources import Sources

HERE = Path(__file__).parent
ROOM = "attn_course.site"
SETTINGS: dict[str, Any] = {
    "project": "Own attention",
    "author": "The attn_course authors",
    "copyright": "the authors of Own attention",
    "html_title": "Own attention",
    "language": "en",
    "extensions": ["myst_nb", f"{ROOM}.formulas", f"{ROOM}.references"],
    "html_math_renderer": "built",
    "nb_execution_mode": "off",
    "nb_render_markdown_format": "myst",
    "nb_ipywidgets_js": {},  # else require.js and the widget manager come from elsewhere
    "nb_merge_streams": True,
    "nb_code_prompt_show": "Show what came out",
    "nb_code_prompt_hide": "Hide what came out",
    "myst_enable_extensions": ["dollarmath", "amsmath", "deflist"],
    "myst_heading_anchors": 3,
    "html_theme": "sphinx_book_theme",
    "html_static_path": ["_static"],
    "html_css_files": ["katex/katex.min.css", "alive.css", "site.css"],
    "html_favicon": "_static/mark.svg",
    "html_js_files": ["machine.js", "site.js"],
    "html_search_scorer": str(HERE / "score.js"),
    "html_show_search_summary": False,  # it would be cut from the middle of a page, and read from a server only; site.js says more
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_sidebars": {"**": ["navbar-logo.html", "search-button-field.html", "course-pages.html"]},  # the theme's own is slow
    "templates_path": [str(HERE / "templates")],
    "exclude_patterns": [],
}
UNUSED = ("*.map", "*.po", "*.mo", "*webpack-macros.html")
KEPT = re.compile(r"(<pre.*?</pre>|<textarea.*?</textarea>|<script.*?</script>|<style.*?</style>)", re.DOTALL)
BLANK = re.compile(r"<!--.*?-->|(?<=\n)\s+", re.DOTALL)
SHOWN = re.compile(r"\bfa-([a-z-]+)")
ICON = re.compile(r'"?([\w-]+)"?:\[\d+,\d+,\[[^\]]*\],"[^"]*",(?:"[^"]*"|\[[^\]]*\])\],?')  # name, size, other names, letter, path
THEME: dict[str, Any] = {
    "logo": {"text": "Own attention"},
    "use_download_button": False,  # it would serve what Sphinx read; the page links the notebook itself
    "use_fullscreen_button": False,
    "navbar_persistent": [],  # a second search field, in a bar of its own
    "primary_sidebar_end": [],  # a place for advertisements
    "footer_content_items": ["copyright.html", "extra-footer.html"],
    "show_toc_level": 1,
    "back_to_top_button": False,
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "github-dark",
}


def write_site(root: Path, out: Path, *, only: Iterable[str] | None = None, repository: str = "", branch: str = "main") -> int:
    """Write the site into a folder and return the number of its pages.

    `out`: made if it is not there; what an earlier build left in it is replaced. `only`: slugs ("softmax") or numbers ("2").
    `repository`: "owner/name" on GitHub, for links to Binder and Colab.
    Raises AuthoringError if this is a handout, a notebook has not been built, `only` matches nothing, `out` holds something else, or
    Sphinx complains.
    """
    if not (HERE / "katex").is_dir():
        raise AuthoringError("the site is built in a checkout of the course: what is handed out to students has no KaTeX")
    chosen = shown_units(root, only)
    if missing := [unit.name for unit in chosen if not unit.path.is_file()]:
        raise AuthoringError(f"wanted built notebooks, got none at {', '.join(missing)}; run attn-course notebooks build")
    if out.is_dir() and any(out.iterdir()) and not (out / "searchindex.js").is_file():
        raise AuthoringError(f"{out}: wanted an empty folder or an earlier site, got other files")
    with tempfile.TemporaryDirectory() as folder:
        sources = Sources(chosen, Path(folder, "src"), repository, branch)
        sources.write()
        _run_sphinx(sources, Path(folder, "doctrees"), Path(folder, "html"))
        html = Path(folder, "html")
        for unused in (found for kind in UNUSED for found in list(html.rglob(kind))):  # the theme's, for its own authors
            unused.unlink()
        _leave_icons(html)
        for page in html.rglob("*.html"):
            page.write_text(_without_blanks(page.read_text(encoding="utf-8")), encoding="utf-8")
        (html / "notebooks").mkdir()
        for unit in chosen:
            notebook = json.loads(unit.path.read_text(encoding="utf-8"))
            text = json.dumps(notebook, ensure_ascii=False, separators=(",", ":"))  # what opens it lays it out again
            (html / "notebooks" / unit.path.name).write_text(text, encoding="utf-8")
        if out.is_dir():
            shutil.rmtree(out)
        shutil.move(html, out)
    return sum(1 for _ in out.rglob("*.html"))


def _without_blanks(page: str) -> str:
    """Return a page without comments and the blanks at the beginnings of lines, which are a tenth of a small one."""
    parts = KEPT.split(page)  # what is kept stands at odd places
    return "".join(part if place % 2 else BLANK.sub("", part) for place, part in enumerate(parts))


def _leave_icons(html: Path) -> None:
    """Leave of the theme's icons, 1.5 MB that every page loads, those that a page shows."""
    scripts = html / "_static" / "scripts"
    icons = scripts / "fontawesome.js"
    pages = [*html.glob("*.html"), *html.glob("task/*.html"), *(path for path in scripts.glob("*.js") if path != icons)]
    shown = {name for page in pages for name in SHOWN.findall(page.read_text(encoding="utf-8"))}
    text = icons.read_text(encoding="utf-8")
    icons.write_text(ICON.sub(lambda found: found[0] if found[1] in shown else "", text), encoding="utf-8")


def _run_sphinx(sources: Sources, doctrees: Path, html: Path) -> None:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    said = html.with_name("said.txt")
    settings = SETTINGS | {
        "course_numbers": sources.numbers,
        "course_places": sources.places,
        "course_rows": sources.rows,
        "html_context": {"default_mode": "auto"} | sources.sidebar(),
        "html_theme_options": THEME | {"extra_footer": f"<p>attn_course {__version__}</p>"},
    }
    with said.open("w", encoding="utf-8") as log, patch_docutils(None), docutils_namespace(), warnings.catch_warnings():
        for kind in (DeprecationWarning, PendingDeprecationWarning):  # of the theme, which uses what a later Sphinx will lack
            warnings.simplefilter("ignore", kind)
        app = Sphinx(
            srcdir=sources.folder, confdir=None, outdir=html, doctreedir=doctrees, buildername="html",
            confoverrides=settings, status=None, warning=log, freshenv=True,
        )  # fmt: skip
        app.build(force_all=True)
    if complaints := said.read_text(encoding="utf-8").strip():
        raise AuthoringError(f"the site has faults:\n{complaints.replace(str(sources.folder) + '/', '')}")
