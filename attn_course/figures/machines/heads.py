"""How heads are split off and merged again."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram

CELL = 11.0
MOST = {"tokens": 5, "n_heads": 4, "d_k": 3}


def split_and_merge(tokens: int, n_heads: int, d_k: int, head: int) -> None:
    """Show how the columns of Q are cut into heads, and how the outputs become columns again; one head is lit.

    `tokens`, `n_heads`, `d_k`: rows, heads, and columns of each head: at most 5, 4 and 3. Values are as wide as keys. `head`: the
    head that is lit, from 1 to `n_heads`. Raises ValueError if a number is out of range.
    """
    for name, count, most in zip(MOST, (tokens, n_heads, d_k), MOST.values(), strict=True):
        if not 1 <= count <= most:
            raise ValueError(f"{name} must be from 1 to {most}; got {count}")
    if not 1 <= head <= n_heads:
        raise ValueError(f"head must be from 1 to {n_heads}; got {head}")
    pitch = tokens * CELL + 44
    height = max(n_heads * pitch + 24, tokens * CELL + 190)
    middle = height / 2
    drawing = Diagram(f"heads-{n_heads}-{head}", 660, height)
    all_queries = _blocks(drawing, (76, middle), tokens, n_heads, d_k, "query", head)
    drawing.text((76, all_queries.top[1] - 9), "Q", symbol=True)
    drawing.text((76, all_queries.bottom[1] + 18), "T × H d_k", symbol=True)
    merged = _blocks(drawing, (572, middle), tokens, n_heads, d_k, "output", head)
    drawing.text((572, merged.top[1] - 9), "Z", symbol=True)
    drawing.text((582, merged.bottom[1] + 18), "T × H d_v", anchor="start", symbol=True)
    mixed = drawing.box(Area(572, middle + tokens * CELL / 2 + 60, 70, 34), "× W_O", symbol=True)
    drawing.arrow(merged.bottom, mixed.top)
    for number in (*(other for other in range(1, n_heads + 1) if other != head), head):  # the lit one last, above the others
        y = middle + (number - (n_heads + 1) / 2) * pitch
        lit = number == head
        queries = drawing.matrix((208, y), tokens, d_k, cell=CELL, role="query", lit=lit)
        drawing.text((208, queries.top[1] - 8), f"Q_{number}", symbol=True, lit=lit)
        attend = drawing.box(Area(326, y, 136, 40), f"attend, K_{number}, V_{number}", lit=lit, symbol=True)
        outputs = drawing.matrix((444, y), tokens, d_k, cell=CELL, role="output", lit=lit)
        drawing.text((444, outputs.top[1] - 8), f"Z_{number}", symbol=True, lit=lit)
        straight = y == middle
        drawing.arrow(all_queries.right, *(() if straight else ((164, middle), (164, y))), queries.left, lit=lit)
        drawing.arrow(queries.right, attend.left, lit=lit)
        drawing.arrow(attend.right, outputs.left, lit=lit)
        drawing.arrow(outputs.right, *(() if straight else ((488, y), (488, middle))), merged.left, lit=lit)
    first, last = (head - 1) * d_k + 1, head * d_k
    columns = (f"column {first}", f"columns {first} and {last}", f"columns {first} to {last}")[d_k - 1]
    sentence = f"Head {head} of {n_heads} takes {columns} of Q, in every row, and its output returns to the same place in Z."
    caption = f"{sentence} K and V are cut in the same way. Until W_O no head sees what another one does."
    alt = (
        f"The matrix Q, {tokens} by {n_heads * d_k}, is cut into {n_heads} blocks of columns. Each block goes with its own keys and values "
        f"through attention, and the outputs stand side by side in Z, which W_O multiplies. {sentence}"
    )
    publish_diagram(drawing.finish(title="Heads split and merged", caption=caption, alt=alt, views=drawing.strips(404)))


def _blocks(drawing: Diagram, centre: tuple[float, float], rows: int, n_heads: int, columns: int, role: str, head: int) -> Area:
    """Draw a matrix as blocks of columns, one for each head, and return the area of all."""
    x, y = centre
    for number in range(1, n_heads + 1):
        left = x + (number - (n_heads + 1) / 2) * columns * CELL
        drawing.matrix((left, y), rows, columns, cell=CELL, role=role, lit=number == head)
    return Area(x, y, n_heads * columns * CELL, rows * CELL)
