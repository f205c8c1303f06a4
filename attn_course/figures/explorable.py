"""Self-contained cards that a reader moves: one HTML output with its own style and script, and words where scripts do not run.

The parts lie in `explorables/`: for a card called NAME, `NAME.html` holds the controls, `NAME.js` a function
``start(root)``, `NAME.css` what is special about its look, and `NAME_words.html` what it says without scripts.
`base.css` and `base.js` are common to all.
"""

import json
import re
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from IPython.display import display

from attn_course.figures.base import require_alt
from attn_course.numbers import cite

PARTS: Traversable = resources.files("attn_course.figures") / "explorables"
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
        return self.html


def explorable_html(name: str, slug: str, data: Any = None) -> str:
    """Return the card `name` as one piece of HTML that loads nothing from elsewhere.

    Parameters
    ----------
    name : str
        Which card, e.g. "softmax".
    slug : str
        Lower-case words joined by hyphens; all ids of the card begin with "attn-" and it. Two cards of one page
        need two slugs.
    data : plain data, optional
        What the card shows, as JSON holds it; its script finds it under the name DATA.

    Returns
    -------
    html : str
        The same arguments always give the same text.

    Raises
    ------
    ValueError
        If `slug` has another form, or there is no such card.
    """
    if not SLUG.fullmatch(slug):
        raise ValueError(f"slug must be lower-case words joined by hyphens, such as 'softmax-2'; got {slug!r}")
    if not (PARTS / f"{name}.html").is_file():
        raise ValueError(f"name must be one of {explorable_names()}; got {name!r}")
    # The ids become final when the card is built.
    markup = _script_text(read_part(f"{name}.html").replace("{{id}}", f"attn-{slug}"))
    given = "" if data is None else f"const DATA = {_script_text(data)};\n"
    script = f"{given}{read_part('base.js')}\n{read_part(f'{name}.js')}\nmountExplorables({json.dumps(name)}, {markup}, start);"
    return (
        f'<div class="attn-explorable" id="attn-{slug}" data-explorable="{name}">\n'
        f"<style>\n{read_part('base.css')}{read_part(f'{name}.css')}</style>\n"
        f'<div class="attn-words">\n{read_part(f"{name}_words.html")}</div>\n'
        f'<script>\n(() => {{\n"use strict";\n{script}\n}})();\n</script>\n</div>'
    )


def _script_text(data: Any) -> str:
    """Return plain data as JavaScript. In a script, "</" would end it; "<\\/" is the same text."""
    return json.dumps(data, ensure_ascii=False).replace("</", "<\\/")


def read_part(file_name: str) -> str:
    """Return the text of one part of a card, with numbers for roles."""
    return cite((PARTS / file_name).read_text(encoding="utf-8"))


def explorable_names() -> list[str]:
    """Return the cards there are."""
    files = {part.name for part in PARTS.iterdir()}
    return sorted(name.removesuffix(".js") for name in files if name.endswith(".js") and name != "base.js")


def publish_explorable(name: str, slug: str, alt: str, data: Any = None) -> None:
    """Show a card; its text/plain form, which is compared, is "[explorable] " and `alt`.

    Parameters
    ----------
    name : str
        Which card.
    slug : str
        Prefix of its ids, once per page.
    alt : str
        What can be moved and what is to be seen, in at least eight words on one line.
    data : plain data, optional
        What the card shows, if not only its own formulas.

    Raises
    ------
    ValueError
        If there is no such card, or `slug` or `alt` is not as it should be.
    """
    display(Explorable(explorable_html(name, slug, data), require_alt(alt)))


def softmax_explorable(slug: str = "softmax") -> None:
    """Show four scores and a temperature as sliders, with weights, entropy, Jacobian and its spectral norm.

    Parameters
    ----------
    slug : str
        Prefix of its ids; give a second card on the same page another one.
    """
    publish_explorable(
        "softmax",
        slug,
        "Sliders for four scores and a temperature; bars of the weights, their entropy, largest weight, Jacobian and its spectral norm. "
        "Buttons set a uniform case, a tie, a saturated case, and add 100 to all scores, which changes nothing.",
    )
