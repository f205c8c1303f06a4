"""Diagrams: boxes, matrices and arrows as one inline SVG that follows the theme of the page, with a caption in words.

An SVG inside HTML sees the page's colours, and its few elements are compared by nbval; a picture of its own (image/svg+xml) would
not. Where a page drops styles, as JupyterLab does in a notebook that is not trusted, only the caption and the words are seen.
"""

import html
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from IPython.display import display

from attn_course.figures.base import Words, require_alt, require_title
from attn_course.figures.compact import compact_style
from attn_course.figures.palette import ROLES
from attn_course.figures.plain import mathematics

LOOK = Path(__file__).with_name("diagram.css")
CODE_LOOK = '.attn-diagram text.attn-code { font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; }'  # goes along with code only
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
SLANTED = re.compile(r"[^\W\d_]|d[A-Z]|QK|PV")  # a letter, the name of a gradient, such as dQ, and products
MARKED = re.compile(r"([_^]?)([^\W_]+|[^\w^]+)")  # "d_k": a letter, then one that stands lower
AMONG_WORDS = re.compile(r"(?<=[a-z] )([A-Z])\b")  # a symbol in a label of words
SYMBOL, WORD, SMALL = 16.5, 15.0, 14.0  # letters, words, and what stands lower or higher, in pixels of the drawing
LEAST_TEXT = 12  # pixels on the page; a narrower page scrolls
TIP = 8.0
CORNER = 7.0
RADIUS = 12
HATCH = 6.0
THINNEST, THICKEST = 0.6, 16.0  # a line whose weight is 0, and one whose weight is 1
SHIFT = {"_": 4.5, "^": -6.0, "^T": -4.5}
HOOK = 10.0  # of a root, before its bar
COLOURS = ROLES | {"gradient": "light-dark(#985800, #e69f00)"}  # gradients are letters too, which need more contrast on a light page

Point = tuple[float, float]
View = tuple[float, float, float, float]  # left, top, width, height


class Area(NamedTuple):
    """A rectangle by its centre and size, in pixels of the drawing."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> Point:
        """The middle of the left side."""
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Point:
        """The middle of the right side."""
        return self.x + self.width / 2, self.y

    @property
    def top(self) -> Point:
        """The middle of the upper side."""
        return self.x, self.y - self.height / 2

    @property
    def bottom(self) -> Point:
        """The middle of the lower side."""
        return self.x, self.y + self.height / 2


@dataclass(frozen=True)
class Drawn:
    """A finished diagram: HTML for a front end, and the words that a text terminal shows and nbval compares."""

    html: str
    alt: str

    def __repr__(self) -> str:
        """Return the words."""
        return f"[figure] {self.alt}"

    def _repr_html_(self) -> str:
        return self.html


class Diagram:
    """A drawing under way. Each part is `lit` or stands back; `role` is a key of `palette.ROLES` and gives it its colour.

    `name`: lower-case words joined by hyphens; every id of the drawing begins with "attn-" and it. `width`, `height`: size in
    pixels. `turns`, `rest`: how many turns a drawing has that can be played, and the one that is seen until then; 0 is none.
    Raises ValueError if `name` has another form.
    """

    def __init__(self, name: str, width: float, height: float, *, turns: int = 0, rest: int = 0) -> None:
        if not NAME.fullmatch(name):
            raise ValueError(f"name must be lower-case words joined by hyphens, such as 'machine-scores'; got {name!r}")
        self.name, self.width = name, width
        self._svg = ElementTree.Element("svg", viewBox=f"0 0 {_px(width)} {_px(height)}", role="img")
        self._svg.set("aria-labelledby", f"attn-{name}-title")
        self._svg.attrib |= {"font-size": _px(WORD), "text-anchor": "middle"}  # what most texts inherit
        self._height = height
        self._links: list[str] = []
        self._has_code = False
        self._turns, self._rest = turns, rest
        self._moves: dict[str, str] = {}

    def box(self, area: Area, text: str = "", *, role: str | None = None, lit: bool = True, symbol: bool = False) -> Area:
        """Draw a box with one line of text in it, and return its area."""
        self._rectangle("attn-box", area, role, lit, round_by=7)
        if text:
            self.text((area.x, area.y + 5), text, lit=lit, symbol=symbol)
        return area

    def matrix(self, centre: Point, rows: int, columns: int, *, cell: float, role: str | None = None, lit: bool = True) -> Area:
        """Draw a matrix as its cells, and return its area."""
        area = Area(*centre, columns * cell, rows * cell)
        self._rectangle("attn-matrix", area, role, lit, round_by=2)
        left, top = area.left[0], area.top[1]
        across = "".join(f"M{_px(left)} {_px(top + row * cell)}h{_px(area.width)}" for row in range(1, rows))
        down = "".join(f"M{_px(left + column * cell)} {_px(top)}v{_px(area.height)}" for column in range(1, columns))
        if across or down:
            self._add("path", d=across + down, fill="none", stroke=_colour(role), **{"stroke-width": "1", "stroke-opacity": "0.4"})
        return area

    def tile(self, area: Area, *, role: str | None = None, lit: bool = True) -> Area:
        """Draw a block of a matrix without its cells, and return its area."""
        self._rectangle("attn-matrix", area, role, lit, round_by=2)
        return area

    def copies(self, area: Area, count: int, *, step: float, role: str | None = None, lit: bool = True) -> None:
        """Draw what is seen of `count` copies behind an area, each a `step` lower and to the right; the area itself is drawn after them."""
        for behind in range(count, 0, -1):
            (right, top), (left, bottom) = (area.right[0], area.top[1]), (area.left[0], area.bottom[1])
            far, near = step * behind, step * (behind - 1)
            edge = [(right + near, top + far), (right + far, top + far), (right + far, bottom + far), (left + far, bottom + far)]
            corners = [*edge, (left + far, bottom + near), (right + near, bottom + near)]
            self._add("polygon", points=_points(corners), **{"class": f"attn-matrix {_state(lit)}"}, **_ink(role))

    def hatch(self, area: Area) -> None:
        """Cover an area with stripes: hidden, not merely pale."""
        left, top = area.left[0], area.top[1]
        path = ""
        for step in range(1, math.ceil((area.width + area.height) / HATCH)):
            along = step * HATCH  # from the point so far along the upper side, then down the right one, to the left one, then the lower one
            start = min(along, area.width), max(0.0, along - area.width)
            end = max(0.0, along - area.height), min(along, area.height)
            path += f"M{_px(left + start[0])} {_px(top + start[1])}L{_px(left + end[0])} {_px(top + end[1])}"
        self._add("path", d=path, **{"class": "attn-hatch"})

    def circle(self, centre: Point, text: str, *, lit: bool = True) -> Area:
        """Draw a small circle with a sign in it, and return its area."""
        x, y = centre
        look = {"class": f"attn-node {_state(lit)}", **_ink(None)}
        self._add("circle", cx=_px(x), cy=_px(y), r=_px(RADIUS), **look)
        self.text((x, y + 5), text, lit=lit)
        return Area(x, y, 2 * RADIUS, 2 * RADIUS)

    def dot(self, centre: Point, role: str) -> None:
        """Draw a small full dot: something that is on its way."""
        x, y = centre
        self._add("circle", cx=_px(x), cy=_px(y), r="6.5", fill=_colour(role), **{"class": "attn-dot"})

    @contextmanager
    def during(self, first: int, last: int) -> Iterator[None]:
        """Let what is drawn meanwhile be seen from one turn to another, counted from 1."""
        name = f"attn-{first}-{last}-of-{self._turns}"
        shares = [(0, "hidden")] * (first > 1) + [(first - 1, "visible")] + [(last, "hidden")] * (last < self._turns)
        steps = "".join(f"{100 * turn / self._turns:.2f}%{{visibility:{look}}}" for turn, look in shares)
        self._moves[name] = f"@keyframes {name}{{{steps}}}"
        resting = " attn-rest" if first <= self._rest <= last else ""
        outer = self._svg
        self._svg = self._add("g", **{"class": f"attn-turn{resting}", "style": f"--attn-name:{name}"})
        yield
        self._svg = outer

    def panel(self, area: Area, *, copies: int = 0, lit: bool = True) -> None:
        """Frame a region with dashes; `copies` of it stand behind, each a little lower and to the right."""
        for behind in range(copies, 0, -1):
            x, y = area.right[0] + 5 * behind, area.bottom[1] + 5 * behind
            corner = f"M{_px(x)} {_px(area.top[1] + 5 * behind + 6)}V{_px(y)}H{_px(area.left[0] + 5 * behind + 6)}"
            self._add("path", d=corner, **{"class": f"attn-panel {_state(lit)}"})
        self._frame(f"attn-panel {_state(lit)}", area, round_by=10)

    def text(
        self,
        at: Point,
        text: str,
        *,
        anchor: str = "middle",
        lit: bool = True,
        symbol: bool = False,
        code: bool = False,
        small: bool = False,
        role: str | None = None,
    ) -> None:
        """Write one line whose baseline runs through `at`; in a symbol "_k" stands lower, and "^T" is a transpose; code is small.

        `anchor` says which part of the line stands there: "start", "middle" or "end".
        """
        if "√" in text:
            self._root(at, *text.split("√"), lit=lit)
            return
        kind = "attn-symbol " if symbol else "attn-code " if code else ""
        line = self._add("text", x=_px(at[0]), y=_px(at[1]), **{"class": kind + _state(lit)}, **_painted("fill", role))
        if anchor != "middle":
            line.set("text-anchor", anchor)
        if code or small:
            line.set("font-size", _px(SMALL))
        self._has_code |= code
        if not symbol and len(parts := AMONG_WORDS.split(text)) > 1:
            for place, part in enumerate(filter(None, parts)):
                look = {"class": "attn-symbol", "font-size": _px(SYMBOL)} if place % 2 else {}
                ElementTree.SubElement(line, "tspan", look).text = part
            return
        if not symbol:
            line.text = text
            return
        line.set("font-size", _px(SYMBOL))
        moved = 0.0
        for sign, run in MARKED.findall(text):
            wanted = SHIFT.get(sign + run, SHIFT.get(sign, 0.0))
            part = ElementTree.SubElement(line, "tspan", {} if wanted == moved else {"dy": _px(wanted - moved)})
            moved = wanted
            part.text = "⊤" if sign + run == "^T" else run
            if sign:
                part.set("font-size", _px(SMALL))
            if sign + run == "^T":
                part.attrib |= {"dx": "-1", "stroke": "currentColor", "stroke-width": "0.3"}
            if not SLANTED.fullmatch(run) or (sign and len(run) > 1):
                part.set("class", "attn-upright")

    def _root(self, at: Point, before: str, under: str, *, lit: bool) -> None:
        """Write a root in the middle of a line, with its bar: letters have none."""
        (x, y), size = at, 0.5 * SYMBOL  # about what a letter takes
        wide = sum((0.5 * SMALL if sign else size) * len(run) for sign, run in MARKED.findall(under))
        x += (size * len(before) - HOOK - wide) / 2
        self.text((x - size * before.endswith(" ") / 2, y), before.rstrip(), anchor="end", lit=lit, symbol=True)
        self.text((x + HOOK, y), under, anchor="start", lit=lit, symbol=True)
        hook = f"M{_px(x)} {_px(y - 4)}l2.2 -1.6 3.2 10 4.2 -18.4h{_px(wide + 2)}"
        self._add("path", d=hook, **{"class": f"attn-root {_state(lit)}"})

    def arrow(self, *points: Point, lit: bool = True, role: str | None = None) -> None:
        """Draw an arrow through the points, with round corners; its tip is the last one."""
        (x0, y0), (x1, y1) = points[-2:]
        along = _unit((x0, y0), (x1, y1))
        base = x1 - TIP * along[0], y1 - TIP * along[1]
        self.wire(*points[:-1], base, lit=lit, role=role)
        aside = -0.45 * TIP * along[1], 0.45 * TIP * along[0]
        corners = [(x1, y1), (base[0] + aside[0], base[1] + aside[1]), (base[0] - aside[0], base[1] - aside[1])]
        self._add("polygon", points=_points(corners), **{"class": f"attn-tip {_state(lit)}"}, **_painted("fill", role))

    def wire(self, *points: Point, lit: bool = True, weight: float | None = None, role: str | None = None) -> None:
        """Draw a line through the points, with round corners; one with a weight has the colour of weights, and is so thick."""
        path = f"M{_px(points[0][0])} {_px(points[0][1])}"
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            room = min(CORNER, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
            start = _towards(corner, before, room)
            end = _towards(corner, after, room)
            path += f"L{_px(start[0])} {_px(start[1])}Q{_px(corner[0])} {_px(corner[1])} {_px(end[0])} {_px(end[1])}"
        path += f"L{_px(points[-1][0])} {_px(points[-1][1])}"
        look = _painted("stroke", role if weight is None else "weights")
        if weight is not None:
            look["style"] += f";stroke-width:{_px(max(THINNEST, THICKEST * weight))}"
        self._add("path", d=path, **{"class": f"attn-wire {_state(lit)}"}, **look)

    def link(self, area: Area, address: str, name: str) -> None:
        """Lead from an area to a page; in the HTML above the drawing, where a front end finds links and keeps them working."""
        (left, _), (_, top) = area.left, area.top
        shares = (
            ("left", left / self.width),
            ("top", top / self._height),
            ("width", area.width / self.width),
            ("height", area.height / self._height),
        )
        place = ";".join(f"{side}:{100 * share:.1f}%" for side, share in shares)
        said = html.escape(name)
        self._links.append(f'<a class="attn-link" href="{html.escape(address)}" style="{place}" title="{said}" aria-label="{said}"></a>')

    def keep_lit(self, but: str, sides: tuple[float, float]) -> None:
        """Take away what stands back, texts with the sign `but` in them, and what lies beyond two `sides`."""
        stays = True
        for part in [*self._svg]:
            if look := part.get("class"):  # the cells of a matrix have none, and follow its frame
                stays = "attn-unlit" not in look and but not in "".join(part.itertext())
            if not stays:
                self._svg.remove(part)
        self.width = sides[1] - sides[0]
        self._svg.set("viewBox", f"{_px(sides[0])} 0 {_px(self.width)} {_px(self._height)}")

    def strips(self, *cuts: float) -> list[View]:
        """Return the pieces between vertical cuts."""
        sides = [0.0, *cuts, self.width]
        return [(left, 0.0, right - left, self._height) for left, right in itertools.pairwise(sides)]

    def finish(self, *, title: str, caption: str, alt: str, views: Sequence[View] = (), upper: float = 0.0) -> Drawn:
        """Return the drawing with its words.

        `title`: what the drawing is, at least three words on one line; what a screen reader says. `caption`: one or two sentences
        that stand below it. `alt`: the drawing in words, at least eight on one line. `views`: pieces of the drawing in their order,
        each narrow enough for a phone, where a page of the site shows them below each other. `upper`: how much of its
        height a slide shows, if not all. Raises ValueError if `title` or `alt` is too short.
        """
        named = ElementTree.Element("title", id=f"attn-{self.name}-title")
        named.text = require_title(title)
        svg = ElementTree.Element("svg", self._svg.attrib)
        below = mathematics(html.escape(caption.replace("'", "’"))).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        narrowest = self.width * LEAST_TEXT / SMALL
        size = f"min-width:{math.ceil(narrowest)}px;max-width:{round(1.12 * self.width)}px"
        svg.set("style", size)
        if views:
            svg.set("data-views", ";".join(" ".join(map(_px, view)) for view in views))
        if upper:
            svg.set("data-upper", f"0 0 {_px(self.width)} {_px(upper)}")
        svg.extend([named, *self._svg])
        drawn = ElementTree.tostring(svg, encoding="unicode")
        if self._links:
            drawn = "\n".join((f'<div class="attn-sheet" style="{size}">{drawn}', *self._links, "</div>"))
        look = "\n".join([LOOK.read_text(encoding="utf-8"), *[CODE_LOOK] * self._has_code, *self._moves.values()])
        if self._moves:
            play = '<label class="attn-play"><input type="checkbox"> play it step by step</label>'
            drawn = f'<div style="--attn-turns:{self._turns}">{play}\n{drawn}</div>'
        figure = (
            f'<figure class="attn-diagram" id="attn-{self.name}">\n<style>{compact_style(look)}</style>\n'
            f'<div class="attn-frame" hidden="hidden">{drawn}</div>\n'
            f"<figcaption>{below}</figcaption>\n</figure>"
        )
        return Drawn(figure, require_alt(alt))

    def _rectangle(self, kind: str, area: Area, role: str | None, lit: bool, round_by: float) -> None:
        self._frame(f"{kind} {_state(lit)}", area, round_by, **_ink(role))

    def _frame(self, kind: str, area: Area, round_by: float, **look: str) -> None:
        place = {"x": _px(area.left[0]), "y": _px(area.top[1]), "width": _px(area.width), "height": _px(area.height)}
        self._add("rect", **place, rx=_px(round_by), **{"class": kind}, **look)

    def _add(self, kind: str, **attributes: str) -> ElementTree.Element:
        return ElementTree.SubElement(self._svg, kind, attributes)


def publish_diagram(drawn: Drawn) -> None:
    """Show a diagram, then its words as a folded line."""
    display(drawn)
    display(Words(drawn.alt))


def _colour(role: str | None) -> str:
    return "var(--attn-ink)" if role in (None, "output") else f"var(--attn-{role}, {COLOURS[role]})"


def _ink(role: str | None) -> dict[str, str]:
    """Return the colour of a shape; the style sheet makes it thick and full where the shape is lit."""
    return {"fill": _colour(role), "stroke": _colour(role)}


def _painted(part: str, role: str | None) -> dict[str, str]:
    """Return the colour of letters and lines that have a role; the style sheet has that of the others."""
    return {"style": f"{part}:{_colour(role)}"} if role else {}


def _state(lit: bool) -> str:
    return "attn-lit" if lit else "attn-unlit"


def _px(length: float) -> str:
    """Return a length to a tenth of a pixel, so that every machine writes the same.

    >>> _px(12.04), _px(-0.01), _px(7.25)
    ('12', '0', '7.2')
    """
    text = f"{length:.1f}"
    return "0" if float(text) == 0.0 else text.removesuffix(".0")


def _points(corners: Iterable[Point]) -> str:
    return " ".join(f"{_px(x)},{_px(y)}" for x, y in corners)


def _unit(start: Point, end: Point) -> Point:
    length = math.dist(start, end)
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


def _towards(start: Point, end: Point, length: float) -> Point:
    x, y = _unit(start, end)
    return start[0] + length * x, start[1] + length * y
