"""The built notebooks as pages for a browser alone: predictions folded, formulas typeset without a network."""

import re
import shutil
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from attn_course.authoring.course import units
from attn_course.authoring.problems import AuthoringError
from attn_course.game.card import page_of_the_machine

TEMPLATES = Path(__file__).with_name("page_template")
_HEADING = re.compile(r'<h([12]) id="([^"]+)">(.*?)<a class="anchor-link"', re.DOTALL)
_NAME = re.compile(r"<title>(.*?)</title>")
MATHJAX = "mathjax/MathJax.js?config=TeX-AMS-MML_HTMLorMML-full,Safe"
_STOP = re.compile(r'(<div class="[^"]*\bjp-(?:Cell-inputWrapper|OutputArea-output)\b[^>]*?) tabindex="0"')  # nbconvert's, on every cell
_LINK = re.compile(r'(href=")(?:\.\./(?:work/lessons|work|notebooks|exercises)/)?((?:ex_)?\d\d_\w+)\.ipynb')


def write_pages(root: Path, out: Path, *, only: Iterable[str] | None = None) -> list[Path]:
    """Write lessons and exercises as HTML, with the MathJax they use and the page "Break the machine" beside them.

    `out`: folder to write to; made if it is not there. `only`: slugs ("softmax") or numbers ("2"). Returns what was written.
    Raises AuthoringError if a notebook has not been built, or `only` matches nothing.
    """
    from nbconvert import HTMLExporter

    chosen = [unit for unit in units(root, only) if unit.folder != "solutions"]
    if missing := [unit.name for unit in chosen if not unit.path.is_file()]:
        raise AuthoringError(f"wanted built notebooks, got none at {', '.join(missing)}; run attn-course notebooks build")
    exporter = HTMLExporter(template_name="course", extra_template_basedirs=[str(TEMPLATES)], mathjax_url=MATHJAX)
    out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(str(files("jupyter_server_mathjax") / "static"), out / "mathjax", dirs_exist_ok=True)
    written = []
    texts = {unit: _LINK.sub(r"\1\2.html", _STOP.sub(r"\1", exporter.from_filename(str(unit.path))[0])) for unit in chosen}
    titles = {unit: _title(text) for unit, text in texts.items()}
    for unit, text in texts.items():
        page = out / f"{unit.path.stem}.html"
        row = [other for other in chosen if other.folder == unit.folder]
        near = {which: row[at] for which, at in (("prev", row.index(unit) - 1), ("next", row.index(unit) + 1)) if 0 <= at < len(row)}
        links = "".join(f'<a rel="{which}" href="{other.path.stem}.html">{titles[other]}</a>' for which, other in near.items())
        page.write_text(_with_contents(text, titles[unit], links), encoding="utf-8")
        written.append(page)
    machine = out / "break.html"
    machine.write_text(page_of_the_machine(), encoding="utf-8")
    return [*written, machine]


def _title(text: str) -> str:
    """Return what a page is called: its first heading, or its file where it has none."""
    return next((_words(words) for level, _, words in _HEADING.findall(text) if level == "1"), _NAME.findall(text)[0])


def _with_contents(text: str, title: str, links: str) -> str:
    """Return a page with its title, a list of its sections, and links to the pages before and behind it."""
    sections = "".join(f'<li><a href="#{place}">{_words(words)}</a></li>' for level, place, words in _HEADING.findall(text) if level == "2")
    listed = f'<details class="contents"><summary>Contents</summary><ul>{sections}</ul></details>' if sections else ""
    contents = f'<nav aria-label="Contents">{listed}<p>{links}</p></nav>'
    return _NAME.sub(f"<title>{title}</title>", text, count=1).replace("<!-- contents -->", contents)


def _words(heading: str) -> str:
    return re.sub(r"<.*?>", "", heading).strip()
