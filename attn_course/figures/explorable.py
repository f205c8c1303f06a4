"""Self-contained cards that a reader moves: one HTML output with its own style and script, and words where scripts do not run.

The parts lie in `explorables/` of the lesson that shows it: for a card called NAME, `NAME.html` holds its question as a line with the
class attn-title, and the controls; `NAME.js` a function ``start(root)``, `NAME.css` what is special about its look, and
`NAME_words.html` what it says without scripts. A page that begins in another way brings its frame, its title and its words itself.
`card.css` and `card.js` beside this file are the frame of all, with role colours and buttons of 44 px under a finger; `explorable.css`
and `explorable.js` give sliders, and `play`, `onReset`, `speak`, `showBeside`, `drawAxis`, `svg`; see the comments there.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import display

from attn_course.figures.base import require_alt
from attn_course.figures.compact import compact_markup, compact_script, compact_style
from attn_course.numbers import cite

HERE = Path(__file__).parent
TITLE = re.compile(r'<p class="attn-title">(.*)</p>\n')
WITHOUT_SCRIPTS = (
    '<p class="attn-screen">Scripts do not run here, so this card cannot move. In JupyterLab choose <em>Trust Notebook</em> in the command '
    "palette, or run the cell. This is what it shows:</p>\n"
)
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
UNPACK = (HERE / "unpack.js").read_text(encoding="utf-8")
DEFLATED = re.compile(r"<script>\(async\(text\)=>.*?\)\('([\w+/=]+)'\);</script>", re.DOTALL)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; background: light-dark(#f6f8fa, #0d1117); }}
body {{ margin: 0 auto; padding: 0.5rem; max-width: 76rem; }}
</style>
</head>
<body>
{card}
</body>
</html>
"""
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Explorable:
    """One card as a front end takes it, and the words that a text terminal shows in its place."""

    html: str
    alt: str

    def __repr__(self) -> str:
        """Return the words."""
        return f"[explorable] {self.alt}"

    def _repr_html_(self) -> str:
        """Return the card as a notebook stores it, with its script packed."""
        return packed(self.html)


def whole_page(title: str, card: str) -> str:
    """Return a card as a whole page that needs nothing beside it."""
    return PAGE.format(title=escape(title), card=card)


def packed(card: str) -> str:
    """Return a card whose script is deflated: about half as many bytes, and still nothing that it needs from elsewhere."""

    def shorter(script: re.Match[str]) -> str:
        text = base64.b64encode(zlib.compress(script[1].encode(), 9)).decode()
        return f"<script>{compact_script(UNPACK)}('{text}');</script>"

    return SCRIPT.sub(shorter, card)


def unpacked(html: str) -> str:
    """Return a card as it was before `packed`."""
    return DEFLATED.sub(lambda found: f"<script>{zlib.decompress(base64.b64decode(found[1])).decode()}</script>", html)


def explorable_html(card: Path, slug: str, data: Any = None, *, scripts: Iterable[str] = ()) -> str:
    """Return a card as one piece of HTML that loads nothing from elsewhere; the same arguments always give the same text.

    `card`: its parts without their endings, e.g. Path("explorables/softmax"). `slug`: lower-case words joined by hyphens; all ids
    of the card begin with "attn-" and it. Two cards of one page need two slugs. `data`: what the card shows, as JSON holds it; its
    script finds it under the name DATA. `scripts`: texts of those that the card's own builds on, in this order. Raises ValueError
    if `slug` has another form, or there is no such card.
    """
    if not card.with_suffix(".js").is_file():
        raise ValueError(
            f"card must be one of {sorted(part.stem for part in card.parent.iterdir() if part.suffix == '.js')}; got {card.name!r}"
        )
    controls, script, look, words = (_read(card.with_name(card.name + ending)) for ending in (".html", ".js", ".css", "_words.html"))
    given = "" if data is None else f"const DATA = {script_text(data)};\n"
    common = [_read(HERE / f"explorable.{kind}") for kind in ("css", "js")]
    script = "\n".join([given, common[1], *scripts, script])
    return joined_html(card.name, slug, controls, look, words, script, common=common[0])


def joined_html(name: str, slug: str, controls: str, look: str, words: str, script: str, common: str = "") -> str:
    """Return a card made of its parts; see `explorable_html`.

    `look`: CSS of its controls. `common`: CSS of its words too, which is there without scripts. `script` defines ``start(root)`` and
    holds no "</".
    """
    if not SLUG.fullmatch(slug):
        raise ValueError(f"slug must be lower-case words joined by hyphens, such as 'softmax-2'; got {slug!r}")
    if title := TITLE.match(controls):
        words = title[0] + WITHOUT_SCRIPTS + words
        controls = (
            f'<section aria-labelledby="{{{{id}}}}-title">\n<p class="attn-title" id="{{{{id}}}}-title">{title[1]}</p>\n'
            f'{controls[title.end() :]}<p class="attn-summary" role="status" aria-live="polite"></p>\n</section>\n'
        )
    # The ids become final when the card is built.
    markup = script_text(compact_markup(controls.replace("{{id}}", f"attn-{slug}")))
    own = script_text(compact_style(look))
    script = f"{_read(HERE / 'card.js')}\n{script}\nmountExplorables({json.dumps(name)}, {markup}, {own}, start);"
    script = compact_script(f'(() => {{\n"use strict";\n{script}\n}})();')
    return (
        f'<div class="attn-explorable" id="attn-{slug}" data-explorable="{name}">\n'
        f"<style>{compact_style(_read(HERE / 'card.css') + common)}</style>\n"
        f'<div class="attn-words">{compact_markup(words)}</div>\n'
        f"<script>{script}</script>\n</div>"
    )


def joined_parts(html: str) -> tuple[str, str, str]:
    """Return a card in three parts, for a page that loads style and script from files: markup with its words, style, script."""
    style, script = (re.search(rf"<{tag}>(.*?)</{tag}>\n?", html, re.DOTALL) for tag in ("style", "script"))
    if style is None or script is None:
        raise ValueError("html must be a card as joined_html returns it")
    return html.replace(style[0], "").replace(script[0], ""), style[1], script[1]


def script_text(data: Any) -> str:
    """Return plain data as JavaScript. In a script, "</" would end it; "<\\/" is the same text."""
    return json.dumps(data, ensure_ascii=False).replace("</", "<\\/")


def _read(part: Path) -> str:
    """Return the text of one part of a card, with numbers for roles."""
    return cite(part.read_text(encoding="utf-8"))


def publish_explorable(card: Path, alt: str, data: Any = None) -> None:
    """Show a card; its text/plain form, which is compared, is "[explorable] " and `alt`.

    `card`: its parts without their endings; its name is the slug. `alt`: what can be moved and what is to be seen, in at least
    eight words on one line. `data`: what the card shows, if not only its own formulas. Raises ValueError if there is no such
    card, or `alt` is not as it should be.
    """
    display(Explorable(explorable_html(card, card.name, data), require_alt(alt)))
