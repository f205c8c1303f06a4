"""What holds for every diagram, read off its SVG: letters measured with fonts wider than most, arrows followed to their ends."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

from attn_course.figures.diagram import Drawn

GEOMETRY = ("x", "y", "width", "height", "rx", "cx", "cy", "r", "d", "dy", "points", "viewBox", "font-size")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
FIXED = re.compile(r"#(?:000|fff)(?:000|fff)?\b|\b(?:black|white)\b", re.IGNORECASE)
CODE = 0.603  # width of a letter of code in its size: DejaVu Sans Mono and Menlo; others are narrower
ON_A_PHONE = 14 * 368 / 12  # as wide as a drawing may be whose letters of 14 px are 12 px in a column of 368
SLACK = 0.15  # what rounding to a tenth can move


class Box(NamedTuple):
    """What something covers on the drawing."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: "Box") -> bool:
        return self.left <= other.left and self.top <= other.top and self.right >= other.right and self.bottom >= other.bottom


def svg_of(drawn: Drawn) -> ElementTree.Element:
    """Return the drawing itself; each line of text holds what it inherits."""
    svg = ElementTree.fromstring(re.search(r"<svg.*</svg>", drawn.html, re.DOTALL)[0])
    for line in svg.iter("text"):
        line.attrib = {name: svg.get(name) for name in ("font-size", "text-anchor")} | line.attrib
    return svg


def views(svg: ElementTree.Element) -> list[ElementTree.Element]:
    """Return what is seen of a drawing: in each turn if it has some, else the one that there is."""
    turns = [(group, *map(int, re.findall(r"\d+", group.get("style")))) for group in svg.findall("g")]
    found = []
    for turn in range(1, turns[0][3] + 1) if turns else [1]:
        seen = ElementTree.Element(svg.tag, svg.attrib)
        seen.extend(shape for shape in svg if shape.tag != "g")
        seen.extend(shape for group, first, last, _ in turns if first <= turn <= last for shape in group)
        found.append(seen)
    return found


@cache
def width_of(text: str, size: float, kind: str) -> float:
    """Return the width of a run of letters in DejaVu, whose letters are wider than those of most systems' fonts."""
    if kind == "code":
        return CODE * size * len(text)
    face = FontProperties(family="DejaVu Serif", style="italic") if kind == "symbol" else FontProperties(family="DejaVu Sans")
    font = FT2Font(findfont(face))
    font.set_size(size, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64


def cover(line: ElementTree.Element) -> Box:
    """Return what one line of text covers, from the tops of its capitals to a little below the baseline."""
    size, kind = float(line.get("font-size")), line.get("class").split(" ")[0].removeprefix("attn-")
    runs = [(line.text or "", size)] + [(part.text, float(part.get("font-size", size))) for part in line]
    width = sum(width_of(text, run_size, kind) for text, run_size in runs)
    x, y = float(line.get("x")), float(line.get("y"))
    left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[line.get("text-anchor")] * width
    raised = {part.get("dy", "0")[0] == "-" for part in line} if len(line) > 1 else set()
    return Box(left, y - (0.95 if True in raised else 0.74) * size, left + width, y + 0.2 * size)


def rectangles(svg: ElementTree.Element, *kinds: str) -> list[Box]:
    """Return the rectangles and circles of these kinds."""
    boxes = []
    for shape in svg:
        if shape.get("class", "").split(" ")[0] not in kinds:
            continue
        if shape.tag == "rect":
            x, y, width, height = (float(shape.get(name)) for name in ("x", "y", "width", "height"))
            boxes.append(Box(x, y, x + width, y + height))
        elif shape.tag == "circle":
            x, y, r = (float(shape.get(name)) for name in ("cx", "cy", "r"))
            boxes.append(Box(x - r, y - r, x + r, y + r))
        elif shape.tag == "polygon":  # what is seen of a copy behind; what is not lies under the one in front
            numbers = [float(number) for number in NUMBER.findall(shape.get("points"))]
            boxes.append(Box(min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])))
    return boxes


def segments(svg: ElementTree.Element) -> Iterator[Box]:
    """Yield what the pieces of the lines cover, corners taken as sharp."""
    for wire in svg.iter("path"):
        if wire.get("class", "").startswith("attn-wire"):
            numbers = [float(number) for number in NUMBER.findall(wire.get("d"))]
            for (x0, y0), (x1, y1) in pairwise(zip(numbers[::2], numbers[1::2], strict=True)):
                if x0 == x1 or y0 == y1:
                    yield Box(min(x0, x1) - 1, min(y0, y1) - 1, max(x0, x1) + 1, max(y0, y1) + 1)


def on_border(point: tuple[float, float], box: Box) -> bool:
    x, y = point
    beside = box.top - SLACK <= y <= box.bottom + SLACK and min(abs(x - box.left), abs(x - box.right)) <= SLACK
    above = box.left - SLACK <= x <= box.right + SLACK and min(abs(y - box.top), abs(y - box.bottom)) <= SLACK
    return beside or above


def assert_sound_diagram(draw: Callable[[], Drawn]) -> None:
    """Draw twice: the same each time, named, in rounded numbers and no fixed black or white, every letter free and every arrow at a box."""
    drawn = draw()
    assert draw() == drawn, "two drawings of the same differ"
    svg = svg_of(drawn)
    _assert_form(svg, drawn.html)
    for seen in views(svg):
        _assert_free(seen)


def _assert_free(svg: ElementTree.Element) -> None:
    lines = {f"{''.join(line.itertext())!r} at {line.get('x')}, {line.get('y')}": cover(line) for line in svg.iter("text")}
    left, top, width, height = (float(number) for number in svg.get("viewBox").split())
    whole = Box(left, top, left + width, top + height)
    boxes, solid = rectangles(svg, "attn-box", "attn-node"), rectangles(svg, "attn-matrix")
    wires, panels = list(segments(svg)), rectangles(svg, "attn-panel")
    pieces = [[float(number) for number in piece.split(" ")] for piece in svg.get("data-views", "").split(";") if piece]
    pages = [Box(left, top, left + width, top + height) for left, top, width, height in pieces] or [whole]
    assert all(page.right - page.left <= ON_A_PHONE for page in pages if page != whole), "a piece of the drawing is too wide for a phone"
    for name, box in lines.items():
        assert whole.holds(box), f"{name} leaves the drawing"
        assert any(page.holds(box) for page in pages), f"{name} is in no piece of the drawing"
        around = [outer for outer in boxes if outer.meets(box)]
        assert all(outer.holds(box) for outer in around), f"{name} leaves its box"
        assert not any(matrix.meets(box) for matrix in solid), f"{name} lies on a matrix"
        assert not any(wire.meets(box) for wire in wires), f"{name} lies on a line"
        for panel in panels:
            assert panel.holds(box) or not panel.meets(box), f"{name} crosses a frame"
    for (first, one), (second, other) in combinations(lines.items(), 2):
        assert not one.meets(other), f"{first} and {second} overlap"
    for tip in svg.iter("polygon"):
        if tip.get("class").startswith("attn-tip"):
            point = tuple(float(number) for number in tip.get("points").split(" ")[0].split(","))
            assert any(on_border(point, box) for box in boxes + solid + panels), f"an arrow ends at {point}, where there is no box"


def _assert_form(svg: ElementTree.Element, html: str) -> None:
    assert svg.get("role") == "img"
    assert svg[0].tag == "title"
    assert svg.get("aria-labelledby") == svg[0].get("id")
    assert [identity for identity in re.findall(r'\bid="([^"]*)"', html) if not identity.startswith("attn-")] == []
    assert FIXED.findall(html) == []
    for shape in svg.iter():
        for name in GEOMETRY:
            for number in NUMBER.findall(shape.get(name, "")):
                assert len(number.partition(".")[2]) <= 1, f"{name} of a {shape.tag} is {number}"
    scale = float(re.search(r"min-width:(\d+)px", svg.get("style"))[1]) / float(svg.get("viewBox").split()[2])
    sizes = [float(part.get("font-size")) for part in svg.iter() if part.get("font-size")]
    assert scale * min(sizes) >= 12, "letters fall below 12 px"
