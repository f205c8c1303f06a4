"""The memories of a GPU, and the tiles that walk through them."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST_TILES = 5
QUERY, KEY, VALUE = (Area(x, 116, 52, 36) for x in (406, 482, 592))
SCORES = Area(444, 218, 136, 36)


def memory(q_tiles: int, kv_tiles: int, step: tuple[int, int]) -> None:
    """Show where everything lies while one tile of keys and values is worked on.

    `q_tiles`, `kv_tiles`: how many tiles queries, and keys and values, are cut into; each from 1 to 5. `step`: the tile of
    queries and that of keys and values that are on the chip, counted from 1. Raises ValueError if a number is out of range.
    """
    for name, count in (("q_tiles", q_tiles), ("kv_tiles", kv_tiles)):
        if not 1 <= count <= MOST_TILES:
            raise ValueError(f"{name} must be from 1 to {MOST_TILES}; got {count}")
    i, j = step
    if not (1 <= i <= q_tiles and 1 <= j <= kv_tiles):
        raise ValueError(f"step must be a tile of queries from 1 to {q_tiles} and one of keys from 1 to {kv_tiles}; got {step}")
    drawing = Diagram(f"memory-{i}-{j}", 660, 360, turns=kv_tiles, rest=j)
    _still(drawing, q_tiles, i)
    for turn in range(1, kv_tiles + 1):
        with drawing.during(turn, turn):
            _walking(drawing, kv_tiles, i, turn)
    stay = (
        f"Tile {i} of the queries stays on the chip while the tiles of keys and values walk past, one after the other; "
        f"at rest the drawing shows the turn of tile {j} of {kv_tiles}."
    )
    kept = (
        "Scores and weights live in registers for one step. What is kept is a maximum, a sum and an accumulator a for each row. "
        "HBM is the large memory of a GPU; shared memory and registers are its fast ones."
    )
    alt = (
        "Three memories. HBM, large and slow, holds all tiles of Q, K, V and O. Shared memory holds one tile each of Q, K and V. "
        f"Registers hold one tile of scores, the row maxima and row sums so far, and the accumulator, which, divided, goes back to HBM at "
        f"the end as O, beside L. {stay}"
    )
    publish_diagram(
        drawing.finish(title="Three memories and the walking tile", caption=f"{stay} {kept}", alt=alt, views=drawing.strips(350))
    )


def _still(drawing: Diagram, q_tiles: int, i: int) -> None:
    """Draw what stays where it is while keys and values walk past."""
    drawing.panel(Area(130, 180, 244, 344))
    drawing.text((130, 32), "HBM: large, slow")
    for letter, role, x in (("Q", "query", 42), ("O", "output", 219)):
        for number in range(1, q_tiles + 1):
            drawing.box(_place(x, number), f"{letter}_{number}", role=role, lit=number == i, symbol=True)
    drawing.panel(Area(501, 180, 306, 344))
    drawing.text((501, 32), "on the chip: small, fast")
    drawing.panel(Area(501, 100, 282, 104))
    drawing.text((376, 68), "shared memory", anchor="start")
    drawing.panel(Area(501, 252, 282, 180))
    drawing.text((516, 184), "registers", anchor="start")
    drawing.box(QUERY, f"Q_{i}", role="query", symbol=True)
    drawing.arrow(QUERY.bottom, (QUERY.x, SCORES.top[1]))
    drawing.arrow((252, 112), (348, 112), lit=False)
    drawing.text((300, 103), f"Q_{i}", symbol=True, lit=False)
    drawing.text((300, 130), "once", lit=False)
    drawing.arrow((252, 168), (348, 168))
    drawing.text((300, 186), "now")
    drawing.arrow(KEY.bottom, (KEY.x, SCORES.top[1]))
    rows = drawing.box(Area(444, 300, 152, 40), "row max, row sum", role="weights")
    drawing.arrow(SCORES.bottom, rows.top)
    total = drawing.box(Area(592, 300, 90, 40), "a so far", role="output", symbol=True)
    drawing.arrow(rows.right, total.left)
    drawing.arrow(VALUE.bottom, total.top)


def _walking(drawing: Diagram, kv_tiles: int, i: int, j: int) -> None:
    """Draw what is another one in every step."""
    for letter, role, x in (("K", "key", 101), ("V", "value", 160)):
        for number in range(1, kv_tiles + 1):
            tile = drawing.box(_place(x, number), f"{letter}_{number}", role=role, lit=number == j, symbol=True)
            if number > 1:
                drawing.arrow(_place(x, number - 1).bottom, tile.top, lit=number == j + 1)
    drawing.text((300, 159), f"K_{j}, V_{j}", symbol=True)
    drawing.box(KEY, f"K_{j}", role="key", symbol=True)
    drawing.box(VALUE, f"V_{j}", role="value", symbol=True)
    drawing.box(SCORES, f"Q_{i} K_{j}^T", role="scores", symbol=True)
    drawing.arrow((348, 306), (252, 306), lit=j == kv_tiles)
    drawing.text((300, 297), f"O_{i}, L_{i}", symbol=True, lit=j == kv_tiles)
    drawing.text((300, 324), "at the end", lit=j == kv_tiles)


def _place(x: float, number: int) -> Area:
    return Area(x, 78 + 58 * (number - 1), 44, 34)
