"""The memories of a GPU, and the tiles that walk through them."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST_TILES = 5


def memory(q_tiles: int, kv_tiles: int, step: tuple[int, int]) -> None:
    """Show where everything lies while one tile of keys and values is worked on.

    Parameters
    ----------
    q_tiles, kv_tiles : int
        How many tiles queries, and keys and values, are cut into; each from 1 to 5.
    step : (int, int)
        The tile of queries and that of keys and values that are on the chip, counted from 1.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for name, count in (("q_tiles", q_tiles), ("kv_tiles", kv_tiles)):
        if not 1 <= count <= MOST_TILES:
            raise ValueError(f"{name} must be from 1 to {MOST_TILES}; got {count}")
    i, j = step
    if not (1 <= i <= q_tiles and 1 <= j <= kv_tiles):
        raise ValueError(f"step must be a tile of queries from 1 to {q_tiles} and one of keys from 1 to {kv_tiles}; got {step}")
    drawing = Diagram(f"memory-{i}-{j}", 660, 360)
    _large_memory(drawing, q_tiles, kv_tiles, i, j)
    _chip(drawing, i, j)
    for y, text, what in ((112, f"Q_{i}", "once"), (168, f"K_{j}, V_{j}", "now")):
        drawing.arrow((252, y), (348, y), lit=what == "now")
        drawing.text((300, y - 9), text, symbol=True, lit=what == "now")
        drawing.text((300, y + 18), what, lit=what == "now")
    drawing.arrow((348, 306), (252, 306), lit=j == kv_tiles)
    drawing.text((300, 297), f"O_{i}", symbol=True, lit=j == kv_tiles)
    drawing.text((300, 324), "at the end", lit=j == kv_tiles)
    stay = (
        f"Tile {i} of the queries stays on the chip while the tiles of keys and values walk past; "
        f"now it is the turn of tile {j} of {kv_tiles}."
    )
    kept = "Scores and weights live in registers for one step. What is kept is a maximum, a sum and an output for each row."
    alt = (
        "Three memories. HBM, large and slow, holds all tiles of Q, K, V and O. Shared memory holds one tile each of Q, K and V. "
        f"Registers hold one tile of scores, the row maxima and row sums so far, and the output so far, which goes back to HBM at the "
        f"end. {stay}"
    )
    publish_diagram(drawing.finish(title="Three memories and the walking tile", caption=f"{stay} {kept}", alt=alt))


def _large_memory(drawing: Diagram, q_tiles: int, kv_tiles: int, i: int, j: int) -> None:
    drawing.panel(Area(130, 180, 244, 344))
    drawing.text((130, 32), "HBM: large, slow")
    columns = (
        ("Q", "query", 42, q_tiles, i),
        ("K", "key", 101, kv_tiles, j),
        ("V", "value", 160, kv_tiles, j),
        ("O", "output", 219, q_tiles, i),
    )
    for letter, role, x, count, current in columns:
        before = None
        for number in range(1, count + 1):
            tile = drawing.box(Area(x, 78 + 58 * (number - 1), 44, 34), f"{letter}_{number}", role=role, lit=number == current, symbol=True)
            if before and letter in "KV":
                drawing.arrow(before.bottom, tile.top, lit=number == current + 1)
            before = tile


def _chip(drawing: Diagram, i: int, j: int) -> None:
    drawing.panel(Area(501, 180, 306, 344))
    drawing.text((501, 32), "on the chip: small, fast")
    drawing.panel(Area(501, 100, 282, 104))
    drawing.text((376, 68), "shared memory", anchor="start")
    query = drawing.box(Area(406, 116, 52, 36), f"Q_{i}", role="query", symbol=True)
    key = drawing.box(Area(482, 116, 52, 36), f"K_{j}", role="key", symbol=True)
    value = drawing.box(Area(592, 116, 52, 36), f"V_{j}", role="value", symbol=True)
    drawing.panel(Area(501, 252, 282, 180))
    drawing.text((516, 184), "registers", anchor="start")
    scores = drawing.box(Area(444, 218, 136, 36), f"Q_{i} K_{j}^T", role="scores", symbol=True)
    drawing.arrow(query.bottom, (query.x, 200))
    drawing.arrow(key.bottom, (key.x, 200))
    rows = drawing.box(Area(444, 300, 156, 40), "row max, row sum", role="weights")
    drawing.arrow(scores.bottom, rows.top)
    total = drawing.box(Area(592, 300, 78, 40), f"O_{i} so far", role="output", symbol=True)
    drawing.arrow(rows.right, total.left)
    drawing.arrow(value.bottom, total.top)
