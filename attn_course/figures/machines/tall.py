"""The machine for a phone: what `whole` draws from left to right, drawn from top to bottom."""

import json
import re
from collections.abc import Callable

from attn_course.figures.diagram import Area, Diagram, Drawn, Point
from attn_course.figures.machines.whole import BACKWARDS, GROUPS, MET, PARTS, SIZES, TWO_INPUTS

WIDTH, HEIGHT = 360, 924
OWN = (TWO_INPUTS, BACKWARDS)  # these two have ways of their own
NAMES = [name for name in (*GROUPS, *PARTS) if name not in OWN]
LANES = {"query": ("Q", 52), "key": ("K", 158), "value": ("V", 258)}
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
LOWER = {"scale": 2, "mask": 12, "softmax": 24, "weights": 64, "output": 80}  # in the machine turned round, with room for what is met
LOWEST = 80  # ... and all below it


def tall_drawing(name: str) -> Drawn:
    """Return the machine with one part lit, or what several parts make."""
    lit, sentence = GROUPS.get(name) or ((name,), PARTS[name])
    drawing = Diagram(f"machine-{name}", WIDTH, HEIGHT + LOWEST * (name == BACKWARDS))
    _draw(drawing, set(lit).__contains__, two_inputs=name == TWO_INPUTS, backwards=name == BACKWARDS)
    for place, area in PLACES.items() if name in NAMES else ():
        drawing.link(area, "", place)
    return drawing.finish(title="The machine of attention", caption=sentence, alt=f"The machine, from top to bottom. {sentence}")


def script() -> str:
    """Return what `site.js` finds under the name TALL: the drawing, which of its shapes each name lights, where links lie, and others."""
    pages = {name: tall_drawing(name).html for name in (*NAMES, *OWN)}
    found = {name: re.sub(r"<title.*?</title>", "", re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0]) for name, page in pages.items()}
    drawings = {name: re.sub(r' (style|aria-labelledby)="[^"]*"', "", drawing, count=2) for name, drawing in found.items()}
    lit = {name: "".join("10"[bool(un)] for un in re.findall(r"attn-(un)?lit", drawings[name])) for name in NAMES}
    places = re.findall(r'<a class="attn-link" href="" style="([^"]*)"', pages[NAMES[0]])
    said = {"svg": drawings[NAMES[0]].replace("attn-unlit", "attn-lit"), "lit": lit, "places": places}
    return f"const TALL = {json.dumps(said | {'own': {name: drawings[name] for name in OWN}}, ensure_ascii=False)};\n"


def _draw(drawing: Diagram, on: Callable[[str], bool], *, two_inputs: bool, backwards: bool) -> None:
    length, d_model, d_k, d_v, heads = (SIZES[name] for name in ("T", "d_model", "d_k", "d_v", "H"))
    read = length + 1 if two_inputs else length
    asked, answering = ("T_q", "T_k") if two_inputs else ("T", "T")
    gradient = "d" * backwards
    below = LOWEST * backwards

    def at(part: str) -> float:
        return PLACES[part].y + LOWER.get(part, 0) * backwards

    def matrix(part: str, y: float, rows: int, columns: int, x: float = SPINE, role: str | None = None) -> Area:
        return drawing.matrix((x, y), rows, columns, cell=10, role=role, lit=on(part))

    def name(part: str, area: Area, *lines: str, below: float = 0) -> None:
        """Write at the right of a matrix what it is called, and its shape, so far apart that an arrow goes between them."""
        for place, line in enumerate(lines):
            y = area.y + below + 5 + 24 * (place - (len(lines) - 1) / 2)
            drawing.text((area.right[0] + 10, y), line, anchor="start", lit=on(part), symbol=True)

    def arrow(parts: str, *points: Point, by: str = "", meets: Point = (0.0, 0.0)) -> None:
        """Draw an arrow, turned round if all are; a gradient meets the matrix `by` at a place on the last piece of its way.

        `parts`: it is lit with each of them.
        """
        lit = any(map(on, parts.split()))
        *way, end = points[::-1] if backwards else points
        if backwards and by:
            met = drawing.box(Area(*meets, 22, 24), by, role=MET[by], lit=lit, symbol=True)
            drawing.arrow(*way, met.bottom, lit=lit)
            way = [met.top]
        drawing.arrow(*way, end, lit=lit)

    drawing.panel(Area(182, 384 + below / 2, 324, 568 + below), copies=2, lit=on("heads"))
    x = matrix("input", 42, length, d_model, 90 if two_inputs else 180)
    y = matrix("input", 42, read, d_model, 245) if two_inputs else x
    name("input", x, "X", f"{asked} × d_{'x' if two_inputs else 'model'}")
    if two_inputs:
        name("input", y, "Y", "T_k × d_y")
    made = {}
    for role, (letter, lane) in LANES.items():
        projection, width, given = f"{role}-projection", d_v if role == "value" else d_k, x if role == "query" else y
        weight = matrix(projection, 160, d_model, width, lane)
        name(projection, weight, f"W_{letter}")
        made[role] = matrix(role, 250, length if role == "query" else read, width, lane, role)
        name(role, made[role], gradient + letter, f"{asked if role == 'query' else answering} × d_{'v' if role == 'value' else 'k'}")
        arrow(projection, given.bottom, (given.x, 84), (lane, 84), weight.top)
        arrow(projection, weight.bottom, made[role].top)

    before = scores = matrix("scores", 340, length, read, role="scores")
    left = "scores"
    name("scores", scores, *([] if backwards else ["QK^T"]), f"{asked} × {answering}", below=41 if backwards else 29)
    if backwards:  # a root stands about its place
        drawing.text((scores.right[0] + 38, 361), "dS/√d_k", lit=on("scores"), symbol=True)
    arrow("scores", made["query"].bottom, (LANES["query"][1], 340), scores.left, by="K", meets=(LANES["query"][1], 305))
    arrow("scores", made["key"].bottom, (LANES["key"][1], 340), scores.right, by="Q", meets=(LANES["key"][1], 305))
    for part, text in (("scale", "÷ √d_k"), ("mask", "mask"), ("softmax", "softmax")):
        if backwards and part == "mask":
            chip = matrix("scores", at(part), length, read, role="scores")
            name("scores", chip, "dS", f"{asked} × {answering}")
        else:
            area = PLACES[part]._replace(y=at(part))
            chip = drawing.box(area, text, role="weights" if part == "softmax" else None, lit=on(part), symbol=part == "scale")
        arrow("scores" if backwards else f"{left} {part}", before.bottom, chip.top)
        before, left = chip, part
    weights = matrix("weights", at("weights"), length, read, role="weights")
    name("weights", weights, f"{gradient}P", f"{asked} × {answering}")
    arrow("softmax weights", before.bottom, weights.top, by="P", meets=(SPINE, (before.bottom[1] + weights.top[1]) / 2))
    output = matrix("output", at("output"), length, d_v, role="output")
    name("output", output, "dZ" if backwards else "PV", f"{asked} × d_v")
    arrow("weights output", weights.bottom, output.top, by="V", meets=(SPINE, (weights.bottom[1] + output.top[1]) / 2))
    lane = LANES["value"][1]
    arrow("output", made["value"].bottom, (lane, output.y), output.right, by="P", meets=(lane, (output.y + 250) / 2))
    drawing.text((264, 656 + below), "one of H heads", lit=on("heads"))

    merged = matrix("heads", 716 + below, length, heads * d_v, role="output")
    name("heads", merged, "Z", f"{asked} × H d_v")
    arrow("heads", output.bottom, merged.top)
    w_output = matrix("merge", 786 + below, heads * d_v, d_model)
    name("merge", w_output, "W_O")
    arrow("heads merge", merged.bottom, w_output.top)
    total = drawing.circle((SPINE, 838 + below), "+", lit=on("residual"))
    arrow("merge residual", w_output.bottom, total.top)
    arrow("residual", x.left, (8, 42), (8, total.y), total.left)
    result = matrix("residual", 892 + below, length, d_model)
    drawing.text((result.right[0] + 8, result.y + 5), "new X", anchor="start", lit=on("residual"))
    arrow("residual", total.bottom, result.top)
