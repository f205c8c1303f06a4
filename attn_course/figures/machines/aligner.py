"""The additive score of one query and one key: a small network."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram

D_Q, D_K, D_HIDDEN = 4, 2, 3  # cells in the drawing
CELL = 12.0


def aligner() -> None:
    """Show how a query and a key of different lengths become one number."""
    drawing = Diagram("aligner", 656, 196)
    total = drawing.circle((318, 98), "+")
    for y, name, width, weight, role in ((48, "q_i", D_Q, "W_Q", "query"), (148, "k_j", D_K, "W_K", "key")):
        given = drawing.matrix((52, y), 1, width, cell=CELL, role=role)
        drawing.text((52, y - 18), name, symbol=True)
        drawing.text((52, y + 28), f"1 × d_{name[0]}", symbol=True)
        box = drawing.box(Area(150, y, 60, 34), f"× {weight}", symbol=True)
        hidden = drawing.matrix((246, y), 1, D_HIDDEN, cell=CELL, role=role)
        drawing.text((246, y + 28), "1 × d_h", symbol=True)
        drawing.arrow(given.right, box.left)
        drawing.arrow(box.right, hidden.left)
        drawing.arrow(hidden.right, (318, y), total.bottom if y > 98 else total.top)
    bent = drawing.box(Area(392, 98, 62, 34), "tanh")
    drawing.arrow(total.right, bent.left)
    hidden = drawing.matrix((476, 98), 1, D_HIDDEN, cell=CELL)
    drawing.text((476, 126), "1 × d_h", symbol=True)
    drawing.arrow(bent.right, hidden.left)
    weighed = drawing.box(Area(552, 98, 50, 34), "· v", symbol=True)
    drawing.arrow(hidden.right, weighed.left)
    score = drawing.matrix((624, 98), 1, 1, cell=16, role="scores")
    drawing.text((624, 78), "e", symbol=True)
    drawing.text((624, 130), "1 × 1", symbol=True)
    drawing.arrow(weighed.right, score.left)
    caption = (
        "W_Q and W_K bring a query and a key to the same length, d_h. Their sum goes through tanh, and the product with v makes one number "
        "of it."
    )
    alt = (
        f"From left to right: the rows q of length {D_Q} and k of length {D_K}, each with its matrix, a sum, tanh, and one score. {caption}"
    )
    publish_diagram(
        drawing.finish(title="The additive score of one pair", caption=caption, alt=alt, views=[(0, 0, 336, 196), (296, 0, 360, 196)])
    )
