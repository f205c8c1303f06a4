"""The machine for a phone: what `whole` draws from left to right, drawn from top to bottom."""

import json
import re
from collections.abc import Callable

from attn_course.figures.diagram import Area, Diagram, Drawn, Point
from attn_course.figures.machines.whole import BACKWARDS, GROUPS, PARTS, SIZES, TWO_INPUTS

WIDTH, HEIGHT = 360, 924
NAMES = [name for name in (*GROUPS, *PARTS) if name not in (TWO_INPUTS, BACKWARDS)]  # these two have ways of their own
LANES = {"query": ("Q", 52), "key": ("K", 158), "value": ("V", 264)}
SPINE = 105  # where the way of one head goes down
PLACES = {  # in the order of those of `whole`
    "input": Area(180, 42, 66, 46),
    "projections": Area(176, 160, 296, 68),
    "roles": Area(182, 250, 312, 48),
    "scores": Area(SPINE, 340, 46, 46),
    "scale": Area(SPINE, 398, 58, 30),
    "mask": Area(SPINE, 444, 52, 30),
    "softmax": Area(SPINE, 490, 76, 30),
    "weights": Area(SPINE, 548, 46, 46),
    "output": Area(SPINE, 630, 26, 46),
    "heads": Area(SPINE, 716, 46, 46),
    "merge": Area(SPINE, 786, 66, 46),
    "residual": Area(SPINE, 838, 30, 30),
}


def tall_drawing(name: str) -> Drawn:
    """Return the machine with one part lit, or what several parts make; `name` is one of `NAMES`."""
    lit, sentence = GROUPS.get(name) or ((name,), PARTS[name])
    drawing = Diagram(f"machine-{name}", WIDTH, HEIGHT)
    _draw(drawing, set(lit).__contains__)
    for place, area in PLACES.items():
        drawing.link(area, "", place)
    return drawing.finish(title="The machine of attention", caption=sentence, alt=f"The machine, from top to bottom. {sentence}")


def script() -> str:
    """Return what `site.js` finds under the name TALL: the drawing, for each name which of its shapes are lit, and where links lie."""
    pages = {name: tall_drawing(name).html for name in NAMES}
    drawings = {name: re.sub(r"<title.*?</title>", "", re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0]) for name, page in pages.items()}
    lit = {name: "".join("10"[bool(un)] for un in re.findall(r"attn-(un)?lit", drawing)) for name, drawing in drawings.items()}
    drawing = re.sub(r' (style|aria-labelledby)="[^"]*"', "", drawings[NAMES[0]], count=2).replace("attn-unlit", "attn-lit")
    places = re.findall(r'<a class="attn-link" href="" style="([^"]*)"', pages[NAMES[0]])
    return f"const TALL = {json.dumps({'svg': drawing, 'lit': lit, 'places': places}, ensure_ascii=False)};\n"


def _draw(drawing: Diagram, on: Callable[[str], bool]) -> None:
    length, d_model, d_k, d_v, heads = (SIZES[name] for name in ("T", "d_model", "d_k", "d_v", "H"))

    def matrix(part: str, y: float, rows: int, columns: int, x: float = SPINE, role: str | None = None) -> Area:
        return drawing.matrix((x, y), rows, columns, cell=10, role=role, lit=on(part))

    def name(part: str, area: Area, *lines: str, left: bool = False) -> None:
        x, anchor = (area.left[0] - 8, "end") if left else (area.right[0] + 8, "start")
        for place, line in enumerate(lines):
            drawing.text((x, area.y + 5 + 18 * (place - (len(lines) - 1) / 2)), line, anchor=anchor, lit=on(part), symbol=True)

    def arrow(part: str, *points: Point) -> None:
        drawing.arrow(*points, lit=on(part))

    drawing.panel(Area(182, 384, 324, 568), copies=2, lit=on("heads"))
    x = matrix("input", 42, length, d_model, 180)
    name("input", x, "X", "T × d_model")
    made = {}
    for role, (letter, lane) in LANES.items():
        projection, width = f"{role}-projection", d_v if role == "value" else d_k
        weight = matrix(projection, 160, d_model, width, lane)
        name(projection, weight, f"W_{letter}")
        made[role] = matrix(role, 250, length, width, lane, role)
        name(role, made[role], letter, f"T × d_{'v' if role == 'value' else 'k'}")
        drawing.arrow(x.bottom, (180, 84), (lane, 84), weight.top, lit=on(projection))
        drawing.arrow(weight.bottom, made[role].top, lit=on(role) or on(projection))

    before = scores = matrix("scores", 340, length, length, role="scores")
    drawing.text((SPINE, 312), "Q K^T", lit=on("scores"), symbol=True)
    drawing.text((scores.right[0] + 8, 365), "T × T", anchor="start", lit=on("scores"), symbol=True)
    arrow("scores", made["query"].bottom, (LANES["query"][1], 340), scores.left)
    arrow("scores", made["key"].bottom, (LANES["key"][1], 340), scores.right)
    for part, text in (("scale", "÷ √d_k"), ("mask", "mask"), ("softmax", "softmax")):
        chip = drawing.box(PLACES[part], text, role="weights" if part == "softmax" else None, lit=on(part), symbol=part == "scale")
        arrow(part, before.bottom, chip.top)
        before = chip
    weights = matrix("weights", 548, length, length, role="weights")
    name("weights", weights, "P", "T × T")
    arrow("weights", before.bottom, weights.top)
    output = matrix("output", 630, length, d_v, role="output")
    name("output", output, "P V", "T × d_v", left=True)
    arrow("output", weights.bottom, output.top)
    arrow("output", made["value"].bottom, (LANES["value"][1], 630), output.right)
    drawing.text((264, 656), "one of H heads", lit=on("heads"))

    merged = matrix("heads", 716, length, heads * d_v, role="output")
    name("heads", merged, "Z", "T × H d_v")
    arrow("heads", output.bottom, merged.top)
    w_output = matrix("merge", 786, heads * d_v, d_model)
    name("merge", w_output, "W_O")
    arrow("merge", merged.bottom, w_output.top)
    total = drawing.circle((SPINE, 838), "+", lit=on("residual"))
    arrow("residual", w_output.bottom, total.top)
    arrow("residual", x.left, (8, 42), (8, 838), total.left)
    result = matrix("residual", 892, length, d_model)
    drawing.text((result.right[0] + 8, 897), "new X", anchor="start", lit=on("residual"))
    arrow("residual", total.bottom, result.top)
