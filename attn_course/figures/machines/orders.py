"""Three orders in which one sum over pairs of positions can be added up."""

import math

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST = 8
SIDE = 176.0


def orders(length: int, chunk: int) -> None:
    """Show which pairs of a query and a key are added one by one and which arrive together, through the state.

    `length`: positions, from 2 to 8. `chunk`: positions of a chunk, from 1 to `length`. Raises ValueError if a number is out of
    range.
    """
    if not 2 <= length <= MOST:
        raise ValueError(f"length must be from 2 to {MOST}; got {length}")
    if not 1 <= chunk <= length:
        raise ValueError(f"chunk must be from 1 to {length}; got {chunk}")
    drawing = Diagram(f"orders-{length}-{chunk}", 660, 290, turns=length, rest=length)
    pairs = length * (length + 1) // 2
    in_chunks = sum((stop - start) * (stop - start + 1) // 2 for start, stop in _chunks(length, chunk))
    reads = math.ceil(length / chunk) - 1
    panels = (
        (110.0, "parallel", length, False, "(Q K^T ⊙ M) V", f"{pairs} pairs"),
        (330.0, "chunked", chunk, False, "Q_c S_c + (Q_c K_c^T ⊙ M) V_c", f"{in_chunks} pairs, {_states(reads)}"),
        (550.0, "recurrent", 1, True, "q_t S_t", _states(length)),
    )
    for x, title, size, through, formula, counted in panels:
        drawing.text((x, 24), title)
        _grid(drawing, Area(x, 38 + SIDE / 2, SIDE, SIDE), length, size, through)
        drawing.text((x, 242), formula, symbol=True)
        drawing.text((x, 270), counted)
    caption = (
        "Rows are queries, columns are keys, and striped cells lie in the future. A blue cell is a pair whose score is computed; a green "
        "block is read from the state in one product, however many keys it covers. All three give the same rows."
    )
    alt = (
        f"Three grids of {length} by {length}. Parallel: {pairs} pairs one by one. Chunks of {chunk}: {in_chunks} pairs within chunks, and "
        f"{_states(reads)} read for what came before. Recurrent: {_states(length)} read, one for each row. {caption}"
    )
    publish_diagram(drawing.finish(title="Three orders of the same sum", caption=caption, alt=alt, views=drawing.strips(222, 440)))


def _chunks(length: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def _states(count: int) -> str:
    return f"{count} {'state' if count == 1 else 'states'}"


def _grid(drawing: Diagram, area: Area, length: int, size: int, through: bool) -> None:
    """Draw the pairs of each chunk as cells and what came before as one bar; with `through`, a row's own pair is in the bar too."""
    cell = area.width / length
    left, top = area.left[0], area.top[1]

    def block(row: int, column: int, rows: int, columns: int) -> Area:
        return Area(left + (column + columns / 2) * cell, top + (row + rows / 2) * cell, columns * cell, rows * cell)

    for row in range(length - 1):
        future = block(row, row + 1, 1, length - row - 1)
        drawing.hatch(drawing.tile(future, lit=False))
    for turn, (start, stop) in enumerate(_chunks(length, size), 1):
        with drawing.during(turn, length):
            if through:
                drawing.tile(block(start, 0, 1, start + 1), role="value")
                continue
            if start:
                drawing.tile(block(start, 0, stop - start, start), role="value")
            for row in range(start, stop):
                for column in range(start, row + 1):
                    drawing.tile(block(row, column, 1, 1), role="scores")
