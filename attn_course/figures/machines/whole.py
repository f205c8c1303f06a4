"""The machine: one picture of attention from the input to the residual sum, any part of it lit, in every lesson the same."""

from collections.abc import Mapping

from attn_course.figures.diagram import Area, Diagram, Drawn, Point, publish_diagram

# Each part, along the way of the numbers, and what it does.
PARTS = {
    "input": "X has one row for each of the T tokens; the columns are features.",
    "query-projection": "W_Q turns each row of X into a query.",
    "key-projection": "W_K turns each row of X into a key.",
    "value-projection": "W_V turns each row of X into a value.",
    "query": "Each row of Q says what its token looks for.",
    "key": "Each row of K says by what its token can be found.",
    "value": "Each row of V is what its token hands over.",
    "scores": "Every query meets every key, so the scores have T rows and T columns.",
    "scale": "The scores are divided by the square root of d_k.",
    "mask": "The mask hides keys by setting their scores to minus infinity.",
    "softmax": "The softmax turns each row of scores into weights that sum to 1.",
    "weights": "Row i of P holds the weights with which token i reads the others.",
    "output": "Each output is an average of the values, with the weights of its row.",
    "heads": "The H heads work side by side, and their outputs are put next to each other.",
    "merge": "W_O mixes the outputs of the heads and brings them back to d_model columns.",
    "residual": "What the heads found is added to X, so nothing that X held has to be copied.",
}
PROJECTIONS = ("query-projection", "key-projection", "value-projection")
TWO_INPUTS = "two-inputs"
BACKWARDS = "backwards"
GROUPS = {
    "whole": (tuple(PARTS), "It reads X, lets H heads attend, and adds what they found to X."),
    "attention": (
        ("query", "key", "value", "scores", "scale", "softmax", "weights", "output"),
        "The lit part is one head’s attention: queries meet keys, and the weights that result average the values.",
    ),
    BACKWARDS: (
        ("query", "key", "value", "scores", "scale", "softmax", "weights", "output"),
        "All arrows are turned round. The letter on an arrow is the matrix that the gradient meets there.",
    ),
    "dictionary": (
        ("query", "key", "value", "weights", "output"),
        "Queries ask, keys answer, and the weights that result average the values.",
    ),
    "comparison": (("query", "key", "scores"), "A query and a key go in, and one number comes out: their score."),
    "matches": (("input", "query", "key", "scores"), "Which earlier word a head finds is decided where queries meet keys."),
    "projections": (
        ("input", *PROJECTIONS, "query", "key", "value"),
        "W_Q, W_K and W_V turn the same rows of X into queries, keys and values.",
    ),
    "comparing-matrices": (
        ("query-projection", "key-projection"),
        "Between X and the scores stand W_Q and W_K, and the scores see nothing but their product.",
    ),
    "all-heads": (("heads", "merge"), "The H heads work side by side; Z holds their outputs, and W_O mixes them."),
    TWO_INPUTS: (
        ("input", *PROJECTIONS, "query", "key", "value"),
        "X, which is being written, makes the queries; Y, which is read, makes the keys and the values.",
    ),
    "softmax-between": (
        ("scores", "softmax", "weights"),
        "The softmax stands between the scores and the values, so both matrices of T rows and T columns have to be made.",
    ),
    "one-kernel": (
        ("query", "key", "value", "scores", "scale", "mask", "softmax", "output"),
        "One kernel reads Q, K and V and writes the output; a tile of scores and weights at a time stays where it is calculated.",
    ),
    "kept": (("key", "value"), "While a model writes, it keeps the keys and values of all earlier words."),
    "square-matrices": (
        ("scores", "scale", "weights"),
        "Plain attention stores the scores, the scaled scores and the weights: three tables of T rows and T columns.",
    ),
}
MET = {"Q": "query", "K": "key", "V": "value", "P": "weights"}  # what a gradient meets on its way back, and its colour
SIZES = {"T": 4, "d_model": 6, "d_k": 3, "d_v": 2, "H": 2}
HEIGHT, UPPER = 426, 324  # of all, and of one head
VIEWS = [(0, 0, 316, 328), (282, 0, 374, HEIGHT), (0, 330, 316, 96)]
MOST = 12
MOST_SIDE_BY_SIDE = 24  # columns of all heads together

# Where a part can be clicked, with its letters; Q, K and V are one place, and so are their matrices.
PLACES = {
    "input": Area(47, 138, 94, 92),
    "projections": Area(162, 160, 108, 304),
    "roles": Area(250, 160, 60, 304),
    "scores": Area(348, 48, 70, 72),
    "scale": Area(418, 60, 58, 34),
    "mask": Area(486, 60, 52, 34),
    "softmax": Area(566, 60, 76, 34),
    "weights": Area(592, 160, 96, 52),
    "output": Area(593, 260, 92, 52),
    "heads": Area(566, 387, 100, 66),
    "merge": Area(380, 376, 132, 90),
    "residual": Area(190, 378, 44, 44),
}


def machine(
    name: str, sizes: Mapping[str, int] | None = None, links: Mapping[str, tuple[str, str]] | None = None, *, alone: str = ""
) -> None:
    """Show the machine with one part lit.

    `name`: a part ("scores"), or what several parts make: "attention", "whole". `sizes`: T, d_model, d_k, d_v and H of the reader's
    example, each from 1 to 12; matrices have as many cells. A size that is not given is drawn as some small number and not named in
    the caption. `links`: for each of the `PLACES` that can be clicked, the address of a page and what it is called. `alone`: a sentence
    about the lit part, if nothing else is to be drawn; no shapes are said then. Raises ValueError if there is no such part, size or
    place, or a size is out of range.
    """
    publish_diagram(machine_drawing(name, sizes, links, alone=alone))


def machine_drawing(
    name: str, sizes: Mapping[str, int] | None = None, links: Mapping[str, tuple[str, str]] | None = None, *, alone: str = ""
) -> Drawn:
    """Return the drawing that `machine` shows."""
    if name not in (*PARTS, *GROUPS):
        raise ValueError(f"name must be one of {', '.join((*GROUPS, *PARTS))}; got {name!r}")
    given, linked = dict(sizes or {}), dict(links or {})
    for size, count in given.items():
        if size not in SIZES or not 1 <= count <= MOST:
            raise ValueError(f"sizes must be numbers from 1 to {MOST} for {', '.join(SIZES)}; got {count!r} for {size!r}")
    if unknown := linked.keys() - PLACES.keys():
        raise ValueError(f"links must be for {', '.join(PLACES)}; got {', '.join(sorted(unknown))}")
    drawn = {**SIZES, **given}
    if drawn["H"] * drawn["d_v"] > MOST_SIDE_BY_SIDE:
        raise ValueError(f"sizes must have at most {MOST_SIDE_BY_SIDE} for H times d_v; got {drawn['H']} times {drawn['d_v']}")
    lit, sentence = GROUPS.get(name) or ((name,), PARTS[name])
    if alone:
        drawing = Diagram(f"machine-only-{name}", 656, 310 if "value" in lit else 210)
        _draw(drawing, drawn, frozenset(lit), alone=True)
        drawing.keep_lit(but="×", sides=(205, 656 if "value" in lit else 428))
        title = f"The machine so far: {_listed(list(lit))}"
        return drawing.finish(title=title, caption=f"The machine so far. {alone}", alt=f"{title}. {alone}")
    drawing = Diagram(f"machine-{name}", 656, HEIGHT)
    _draw(drawing, drawn, frozenset(lit), two_inputs=name == TWO_INPUTS, backwards=name == BACKWARDS)
    for place, area in PLACES.items():
        if place in linked:
            drawing.link(area, *linked[place])
    here = f" Here {_listed([f'{size} = {count}' for size, count in given.items()])}." if given else ""
    title = "The whole machine" if name == "whole" else f"The machine with its {_listed(list(lit)).replace('-', ' ')} lit"
    leads = " Each part in a blue frame is a link to its lesson." if linked else ""
    caption = f"The machine of attention. {sentence}{here}{leads}"
    way = FROM_TWO if name == TWO_INPUTS else FROM_ONE
    told = BACK if name == BACKWARDS else f"{way} {WAY}"
    views = () if name == BACKWARDS else VIEWS  # its way back makes no sense in pieces
    upper = UPPER if {"heads", "merge", "residual"}.isdisjoint(lit) else 0
    return drawing.finish(title=title, caption=caption, alt=f"{title}. {sentence}{here} {told}", views=views, upper=upper)


FROM_ONE = (
    "How the numbers flow: X (T by d_model) times W_Q, W_K and W_V (d_model by d_k, d_k and d_v) gives Q and K (T by d_k) and V (T by d_v);"
)
FROM_TWO = (
    "How the numbers flow: X times W_Q gives Q; Y, which has rows and features of its own, times W_K and W_V gives K and V; in what "
    "follows a row stands for a token of X, and a column of the scores for one of Y;"
)
WAY = (
    "Q times K transposed gives one dot product for each query and key; they are divided by the root of d_k, masked, and turned by the "
    "softmax of each row into weights P; P times V is the output of one head; the outputs of H heads stand side by side as Z; W_O brings "
    "them back to as many columns as X has, and X is added."
)

BACK = (
    "The way of the gradients: dZ (T by d_v) meets P and becomes dV (T by d_v), and meets V and becomes dP (T by T); dP meets P, "
    "goes back through the softmax and becomes dS (T by T); divided by the root of d_k, it meets K and becomes dQ, and meets Q and becomes "
    "dK (both T by d_k); from there dQ, dK and dV go on to W_Q, W_K, W_V and X."
)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _draw(
    drawing: Diagram,
    sizes: Mapping[str, int],
    lit: frozenset[str],
    *,
    two_inputs: bool = False,
    backwards: bool = False,
    alone: bool = False,
) -> None:
    length, d_model, d_k, d_v, heads = (sizes[name] for name in ("T", "d_model", "d_k", "d_v", "H"))
    read = length + 1 if two_inputs else length
    rows, columns = ("T_q", "T_k") if two_inputs else ("T", "T")
    asking, answering = ("d_x", "d_y") if two_inputs else ("d_model", "d_model")
    cell = min(10.0, 42 / d_model, 40 / read, 48 / max(d_k, d_v), 48 / (heads * d_v))

    def on(*parts: str) -> bool:
        return not lit.isdisjoint(parts)  # behind the scores an arrow is lit with what it leaves, too

    gradient = "d" if backwards else ""

    def arrow(*points: Point, lit: bool, by: str = "", at: Point = (0.0, 0.0)) -> None:
        """Draw an arrow, turned round if all are; a gradient meets the matrix `by` at a place on the last piece of its way."""
        if not backwards:
            drawing.arrow(*points, lit=lit)
            return
        *way, end = points[::-1]
        if by:
            met = drawing.box(Area(*at, 22, 24), by, role=MET[by], lit=lit, symbol=True)
            enter, leave = (met.bottom, met.top) if end[0] == at[0] else (met.right, met.left)
            drawing.arrow(*way, enter, lit=lit)
            way = [leave]
        drawing.arrow(*way, end, lit=lit)

    drawing.panel(Area(374, 162, 540, 308), copies=2, lit=on("heads"))
    if two_inputs:
        x = drawing.matrix((46, 60), length, d_model, cell=cell, lit=on("input"))
        y = drawing.matrix((46, 260), read, d_model, cell=cell, lit=on("input"))
        _name(drawing, x, "X", "T_q × d_x", lit=on("input"))
        _name(drawing, y, "Y", "T_k × d_y", lit=on("input"))
        inputs = {"query": (x, ()), "key": (y, ((96.0, 260.0), (96.0, 160.0))), "value": (y, ())}
        added: tuple[Point, ...] = (x.left, (5.0, 60.0), (5.0, 340.0))
    else:
        x = drawing.matrix((46, 160), length, d_model, cell=cell, lit=on("input"))
        _name(drawing, x, "X", "T × d_model", above=True, lit=on("input"))
        inputs = {"query": (x, ((96.0, 160.0), (96.0, 60.0))), "key": (x, ()), "value": (x, ((96.0, 160.0), (96.0, 260.0)))}
        added = (x.bottom, (46.0, 340.0))

    lanes = (
        ("query", "Q", 60, length, f"{rows} × d_k"),
        ("key", "K", 160, read, f"{columns} × d_k"),
        ("value", "V", 260, read, f"{columns} × d_v"),
    )
    made = {}
    for role, letter, level, count, shape in lanes:
        width, projected = d_v if role == "value" else d_k, on(f"{role}-projection")
        weight = drawing.matrix((162, level), d_model, width, cell=cell, lit=projected)
        _name(
            drawing,
            weight,
            f"W_{letter}",
            f"{asking if role == 'query' else answering} × d_{'v' if role == 'value' else 'k'}",
            lit=projected,
        )
        made[role] = drawing.matrix((250, level), count, width, cell=cell, role=role, lit=on(role))
        _name(drawing, made[role], gradient + letter, shape, lit=on(role))
        given, turn = inputs[role]
        arrow(given.right, *turn, weight.left, lit=projected)
        arrow(weight.right, made[role].left, lit=projected)

    scores = drawing.matrix((348, 60), length, read, cell=cell, role="scores", lit=on("scores"))
    _name(drawing, scores, "dS/√d_k" if backwards else "QK^T", "", lit=on("scores"))
    drawing.text((358, max(scores.bottom[1] + 20, 98)), f"{rows} × {columns}", anchor="start", lit=on("scores"), symbol=True)
    arrow(made["query"].right, scores.left, lit=on("scores"), by="K", at=(299, 60))
    arrow(made["key"].right, (348, 160), scores.bottom, lit=on("scores"), by="Q", at=(299, 160))

    before, left = scores, "scores"
    for part, text, centre, width in (("scale", "÷ √d_k", 418, 58), ("mask", "mask", 486, 52), ("softmax", "softmax", 566, 76)):
        if alone and not on(part):
            continue
        if backwards and part == "mask":
            chip = drawing.matrix((centre, 60), length, read, cell=cell, role="scores", lit=on("scores"))
            _name(drawing, chip, "dS", f"{rows} × {columns}", lit=on("scores"))
        else:
            colour = "weights" if part == "softmax" else None
            chip = drawing.box(Area(centre, 60, width, 34), text, role=colour, lit=on(part), symbol=part == "scale")
        arrow(before.right, chip.left, lit=on(*("scores",) if backwards else (left, part)))
        before, left = chip, part

    weights = drawing.matrix((566, 160), length, read, cell=cell, role="weights", lit=on("weights"))
    output = drawing.matrix((566, 260), length, d_v, cell=cell, role="output", lit=on("output"))
    for area, symbol, across, part in (
        (weights, gradient + "P", columns, "weights"),
        (output, "dZ" if backwards else "PV", "d_v", "output"),
    ):
        drawing.text((area.right[0] + 8, area.y - 3), symbol, anchor="start", lit=on(part), symbol=True)
        beside, anchor = (area.left[0] - 8, "end") if two_inputs else (area.right[0] + 8, "start")
        drawing.text((beside, area.y + (20 if two_inputs else 17)), f"{rows} × {across}", anchor=anchor, lit=on(part), symbol=True)
    arrow(before.bottom, weights.top, lit=on("softmax", "weights"), by="P", at=(566, 109))
    arrow(weights.bottom, output.top, lit=on("weights", "output"), by="V", at=(566, 210))
    arrow(made["value"].right, output.left, lit=on("output"), by="P", at=(400, 260))
    drawing.text((400, 302), "one of H heads", lit=on("heads"))

    merged = drawing.matrix((566, 378), length, heads * d_v, cell=cell, role="output", lit=on("heads"))
    drawing.text((merged.right[0] + 8, 383), "Z", anchor="start", lit=on("heads"), symbol=True)
    drawing.text((566, max(merged.bottom[1] + 17, 404)), f"{rows} × H d_v", lit=on("heads"), symbol=True)
    arrow(output.bottom, merged.top, lit=on("heads"))
    w_output = drawing.matrix((380, 378), heads * d_v, d_model, cell=cell, lit=on("merge"))
    _name(drawing, w_output, "W_O", f"H d_v × {asking}", lit=on("merge"))
    arrow(merged.left, w_output.right, lit=on("heads", "merge"))
    total = drawing.circle((190, 378), "+", lit=on("residual"))
    arrow(w_output.left, total.right, lit=on("merge", "residual"))
    arrow(*added, (190, 340), total.top, lit=on("residual"))
    result = drawing.matrix((46, 378), length, d_model, cell=cell, lit=on("residual"))
    drawing.text((46, max(result.bottom[1] + 17, 404)), "new X", lit=on("residual"))
    arrow(total.left, result.right, lit=on("residual"))


def _name(drawing: Diagram, area: Area, symbol: str, shape: str, *, lit: bool, above: bool = False) -> None:
    """Write the symbol of a matrix above it and its shape below, or both above."""
    (x, top), bottom = area.top, area.bottom[1]
    drawing.text((x, top - (33 if above else 11)), symbol, lit=lit, symbol=True)
    if shape:
        drawing.text((x, top - 11 if above else bottom + 17), shape, lit=lit, symbol=True)
