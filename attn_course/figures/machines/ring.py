"""Ring attention: queries stay on their device, keys and values go round."""

from itertools import pairwise

from attn_course.figures.diagram import Area, Diagram, publish_diagram

FEWEST, MOST = 2, 5
CELL = 28.0


def ring(devices: int, step: int) -> None:
    """Show which keys and values each device holds at one step, and which blocks of the scores have been seen.

    `devices`: from 2 to 5. `step`: from 1, when each device holds its own keys and values, to `devices`, when it has seen all.
    Raises ValueError if a number is out of range.
    """
    if not FEWEST <= devices <= MOST:
        raise ValueError(f"devices must be from {FEWEST} to {MOST}; got {devices}")
    if not 1 <= step <= devices:
        raise ValueError(f"step must be from 1 to {devices}; got {step}")
    held = [(device - step + 1) % devices for device in range(devices)]
    drawing = Diagram(f"ring-{devices}-{step}", 656, 300 + CELL * devices)
    pitch, width = 656 / devices, 104
    boxes = []
    for device, block in enumerate(held):
        x = pitch * (device + 0.5)
        drawing.panel(Area(x, 112, width, 196))
        drawing.text((x, 36), f"device {device + 1}")
        query = drawing.box(Area(x, 66, 80, 34), f"Q_{device + 1}", role="query", symbol=True)
        pair = drawing.box(Area(x, 122, 80, 34), f"K_{block + 1}, V_{block + 1}", role="key", symbol=True)
        total = drawing.box(Area(x, 182, 80, 34), f"O_{device + 1}, lse", role="output", symbol=True)
        drawing.wire(query.bottom, pair.top)
        drawing.arrow(pair.bottom, total.top)
        boxes.append(pair)
    moving = step < devices
    for before, after in pairwise(boxes):
        drawing.arrow(before.right, after.left, lit=moving)
    first, last = boxes[0], boxes[-1]
    drawing.arrow(last.right, (650, 122), (650, 230), (6, 230), (6, 122), first.left, lit=moving)

    top, left = 264 + CELL / 2, 328 - CELL * (devices - 1) / 2
    drawing.text((328, 254), "blocks of the scores")
    for row in range(devices):
        for column in range(devices):
            turn = (row - column) % devices + 1
            cell = Area(left + column * CELL, top + row * CELL, CELL, CELL)
            seen = turn <= step
            drawing.box(cell, str(turn) if seen else "", role="scores" if seen else None, lit=turn == step)
        drawing.text((left - CELL / 2 - 10, top + row * CELL + 5), f"Q_{row + 1}", anchor="end", symbol=True)
        drawing.text((left + row * CELL, top + (devices - 0.5) * CELL + 19), f"K_{row + 1}", symbol=True)
    now = ", ".join(f"{device + 1} with {block + 1}" for device, block in enumerate(held))
    sentence = f"Step {step} of {devices}: the queries of each device meet the keys and values that are there now ({now})."
    then = "Then every device hands its keys and values on to the right" if moving else "Now every query has met every key"
    caption = f"{sentence} {then}. The number in a block of scores is the step in which it is worked on."
    alt = f"{devices} devices in a ring, each with its queries, a block of keys and values, and its output so far. {sentence} {then}."
    publish_diagram(drawing.finish(title="Ring attention, one step", caption=caption, alt=alt))
