"""A plot as a small SVG whose ink follows the theme of the page, in an <img> too: the colour scheme of that is the picture's."""

import io
import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib import rc_context
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from attn_course.figures.drawing import lifted
from attn_course.figures.palette import DARK, INK, INK_IN_CELL, INK_ON_DARK, INK_ON_LIGHT, LIGHT, NEUTRAL_STYLES, OUTPUT, ROLES

CURVES = {*ROLES.values(), *(colour for colour, _ in NEUTRAL_STYLES)} - {INK, OUTPUT}  # black stands on a ground of its own
THEMED = {INK.lower(): (INK_ON_LIGHT, INK_ON_DARK), INK_IN_CELL: (DARK, LIGHT)} | {
    each.lower(): (each, to_hex(tuple(lifted(each)))) for each in sorted(CURVES)
}
PIXELS = 4 / 3  # of a page, for each point of the drawing
FONT = "'DejaVu Sans',Verdana,sans-serif"  # the letters of both are equally wide
LOOK = "svg:root{color-scheme:light dark}svg{stroke-linejoin:round;stroke-linecap:butt;image-rendering:pixelated}"
NAMED = re.compile(r'(?:href="|url\()#(\w+)')
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
STEP = re.compile(r"([MLCQz])([^MLCQz]*)")
LONG = 4_000  # letters of a path: one so long is drawn to a tenth of a point, others to a hundredth
UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
USUAL = {("font-family", "'DejaVu Sans'"), ("text-anchor", "start"), ("stroke-linejoin", "round"), ("stroke-linecap", "butt")}
UNSEEN = {"fill:none", "opacity:0"}


def vector(figure: Figure) -> str:
    """Return a figure as SVG; the same figure gives the same text on the same machine."""
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "attn"}):
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    drawn = re.sub(r'\sxmlns(?::\w+)?="[^"]*"', "", file.getvalue()).replace("xlink:href", "href")
    names = {name: f"a{at}" for at, name in enumerate(dict.fromkeys(NAMED.findall(drawn)))}
    root = ElementTree.fromstring(NAMED.sub(lambda found: found[0].replace(found[1], names[found[1]]), drawn))
    inside = "".join(ElementTree.tostring(part, encoding="unicode") for child in root for part in _shorter(child, names))
    colours = ""
    for at, (colour, (light, dark)) in enumerate(THEMED.items()):
        if colour in inside:
            inside = inside.replace(colour, f"var(--c{at})")
            colours += f"--c{at}:light-dark({light},{dark});"
    width, height = (float(root.get(side, "").removesuffix("pt")) for side in ("width", "height"))
    size = f'width="{width * PIXELS:.0f}" height="{height * PIXELS:.0f}" viewBox="0 0 {width:g} {height:g}"'
    style = f"<style>{LOOK}svg{{{colours}}}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">{style}{inside}</svg>'


def _shorter(element: Element, names: dict[str, str]) -> list[Element]:
    """Return an element with its numbers to a hundredth and without what says nothing: nothing at all, or its parts alone."""
    inside = [part for child in element for part in _shorter(child, names)]
    if element.tag in ("style", "metadata"):
        return []
    name = names.get(element.attrib.pop("id", ""))
    style = _style(element.attrib.pop("style", ""))
    if UNTURNED.fullmatch(element.get("transform", "")):
        del element.attrib["transform"]
    for key, value in element.attrib.items():
        if key == "d":
            element.set(key, _path(value))
        elif key in ("x", "y", "width", "height", "transform"):
            element.set(key, NUMBER.sub(lambda found: _rounded(float(found[0])), value))
    if name:
        element.set("id", name)
    elif (element.tag in ("path", "rect") and style in UNSEEN) or (element.tag in ("g", "defs") and not inside):
        return []
    if style:
        element.set("style", style)
    if element.tag == "g" and not element.attrib:
        return inside
    element[:] = inside
    element.tail = None
    element.text = element.text if element.tag in ("text", "tspan") else None
    return [element]


def _style(text: str) -> str:
    pairs = [tuple(part.strip() for part in rule.split(":", 1)) for rule in text.split(";") if rule.strip()]
    return ";".join(f"{name}:{value}" for name, value in pairs if (name, value) not in USUAL)


def _path(text: str) -> str:
    """Return the same path by steps from point to point, a straight line in one.

    >>> _path("M 10 20.5 \\nL 11 20.5 \\nL 12.004 20.5 \\nL 12 30 \\nz")
    'm10 20.5l2 0 0 9.5z'
    """
    unit = 10 if len(text) > LONG else 100
    x = y = first_x = first_y = 0
    steps = list[tuple[str, list[int]]]()
    for found in STEP.finditer(text):
        sign, numbers = found[1].lower(), [round(float(each[0]) * unit) for each in NUMBER.finditer(found[2])]
        step = [number - (y if at % 2 else x) for at, number in enumerate(numbers)]
        x, y = numbers[-2:] or (first_x, first_y)
        if sign == "m":
            first_x, first_y = x, y
        if sign == "l" and steps[-1][0] == "l" and _goes_on(steps[-1][1], step):
            steps[-1][1][:] = [before + more for before, more in zip(steps[-1][1], step, strict=True)]
        else:
            steps.append((sign, step))
    signs = ["", *(sign for sign, _ in steps)]
    written = (
        (sign if (sign, before) != ("l", "l") else " ") + " ".join(_rounded(number / unit) for number in step)
        for (sign, step), before in zip(steps, signs, strict=False)
    )
    return "".join(written).replace(" -", "-")


def _goes_on(before: list[int], step: list[int]) -> bool:
    (a, b), (c, d) = before, step
    return a * d == b * c and a * c + b * d >= 0


def _rounded(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".").replace("0.", ".", abs(number) < 1)
    return "0" if text in ("-0", "") else text
