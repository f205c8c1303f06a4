"""The flow of latent attention: what is kept for each token, and where keys and values come from."""

from attn_course.figures.diagram import Area, Diagram, Point, publish_diagram

LENGTH, D_MODEL, D_HEAD, D_LATENT, D_ROTATED = 5, 6, 4, 5, 2  # cells in the drawing
CELL = 10.0


def latent_flow(*, absorbed: bool) -> None:
    """Show one head at decoding: keys and values rebuilt from what is kept, or what is kept read as it is."""
    drawing = Diagram(f"latent-{'absorbed' if absorbed else 'naive'}", 680, 392)
    token = drawing.matrix((40, 212), 1, D_MODEL, cell=CELL)
    drawing.text((40, 196), "x_t", symbol=True)
    scores = drawing.box(
        Area(549, 74, 226, 84), "(q^C W_UK^T) · c + q^R · k^R" if absorbed else "q^C · k^C + q^R · k^R", role="scores", symbol=True
    )
    drawing.panel(Area(330, 274, 106, 216))
    drawing.text((330, 368), "kept")

    asked = _step(drawing, _branch(drawing, token, 54, "W_Q"), (212, 54), 1, D_HEAD, "q^C", "query")
    turned = _step(drawing, _branch(drawing, token, 100, "W_QR"), (212, 100), 1, D_ROTATED, "q^R", "query")
    drawing.arrow(turned.right, (scores.left[0], 100))
    latent = _step(drawing, _branch(drawing, token, 232, "W_DKV"), (212, 232), 1, D_LATENT, "c_t", None)
    latents = _step(drawing, latent, (330, 232), LENGTH, D_LATENT, "C", None)
    turned_key = _step(drawing, _branch(drawing, token, 320, "W_KR"), (212, 320), 1, D_ROTATED, "k_t^R", "key")
    keys = _step(drawing, turned_key, (330, 320), LENGTH, D_ROTATED, "K^R", "key")
    drawing.arrow(keys.right, (650, 320), (650, scores.bottom[1]))
    (_absorbed if absorbed else _rebuilt)(drawing, asked, latents, scores)

    how = (
        "The query is lifted by W_UK and meets the latents themselves, and the average of latents goes through W_UV once."
        if absorbed
        else "Keys and values of every token are rebuilt from the latents by W_UK and W_UV."
    )
    caption = f"For each token only c_t and the rotated k_t are kept, whatever the number of heads. {how}"
    alt = (
        "The row x_t gives a query in two parts, one of them rotated, a latent row c_t that joins the rows C of earlier tokens, and a "
        f"rotated key that joins the rows K^R. Both sums of products make the scores; the softmax of these weighs the average. {caption}"
    )
    publish_diagram(drawing.finish(title="The flow of latent attention", caption=caption, alt=alt, views=drawing.strips(388)))


def _branch(drawing: Diagram, token: Area, y: float, weight: str) -> Area:
    """Draw the way from the token to a projection, and return the projection's area."""
    box = drawing.box(Area(126, y, 64, 32), weight, symbol=True)
    drawing.arrow(token.right, (82, token.y), (82, y), box.left)
    return box


def _step(drawing: Diagram, before: Area, centre: Point, rows: int, columns: int, symbol: str, role: str | None) -> Area:
    """Draw an arrow to a matrix with its symbol above, and return its area."""
    area = drawing.matrix(centre, rows, columns, cell=CELL, role=role)
    drawing.text((area.x, area.top[1] - 8), symbol, symbol=True)
    drawing.arrow(before.right, area.left)
    return area


def _rebuilt(drawing: Diagram, asked: Area, latents: Area, scores: Area) -> None:
    """Draw keys and values made from the latents, and the average of these values."""
    drawing.arrow(asked.right, (scores.left[0], asked.y))
    made = {}
    for letter, y, role, symbol in (("W_UK", 180, "key", "K^C"), ("W_UV", 266, "value", "V")):
        box = drawing.box(Area(442, y, 62, 32), letter, symbol=True)
        drawing.arrow(latents.right, (396, latents.y), (396, y), box.left)
        made[symbol] = drawing.matrix((520, y), LENGTH, D_HEAD, cell=CELL, role=role)
        drawing.arrow(box.right, made[symbol].left)
    drawing.arrow(made["K^C"].top, (520, scores.bottom[1]))
    drawing.text((492, 148), "K^C", anchor="end", symbol=True)
    drawing.text((492, 238), "V", anchor="end", symbol=True)
    _average(drawing, 596, scores, made["V"].right, ())


def _absorbed(drawing: Diagram, asked: Area, latents: Area, scores: Area) -> None:
    """Draw the query lifted to the latents' width, and the average of the latents brought back afterwards."""
    box = drawing.box(Area(292, 54, 64, 32), "W_UK^T", symbol=True)
    drawing.arrow(asked.right, box.left)
    lifted = drawing.matrix((376, 54), 1, D_LATENT, cell=CELL, role="query")
    drawing.arrow(box.right, lifted.left)
    drawing.arrow(lifted.right, (scores.left[0], 54))
    drawing.arrow(latents.right, (458, latents.y), (458, scores.bottom[1]))
    average = _average(drawing, 522, scores, latents.right, ((458.0, latents.y), (458.0, 266.0)))
    back = drawing.box(Area(610, 266, 60, 34), "W_UV", symbol=True)
    drawing.arrow(average.right, back.left)


def _average(drawing: Diagram, x: float, scores: Area, values: Point, bends: tuple[Point, ...]) -> Area:
    """Draw the softmax below the scores and the average below it, and return the area of the average."""
    softmax = drawing.box(Area(x, 180, 80, 34), "softmax", role="weights")
    drawing.arrow((x, scores.bottom[1]), softmax.top)
    average = drawing.box(Area(x, 266, 80, 34), "average", role="output")
    drawing.arrow(softmax.bottom, average.top)
    drawing.arrow(values, *bends, average.left)
    return average
