"""The machine: one picture of attention from the input to the residual sum, any part of it lit, in every lesson the same."""

from collections.abc import Mapping

from attn_course.figures.diagram import Area, Diagram, Drawn, publish_diagram

# Each part, along the way of the numbers, and what it does.
PARTS = {
    "input": "X has one row for each of the T tokens; the columns are features.",
    "projections": "W_Q, W_K and W_V turn the same rows of X into queries, keys and values.",
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
GROUPS = {
    "whole": (tuple(PARTS), "It reads X, lets H heads attend, and adds what they found to X."),
    "attention": (
        ("query", "key", "value", "scores", "scale", "softmax", "weights", "output"),
        "The lit part is one head's attention: queries meet keys, and the weights that result average the values.",
    ),
}
SIZES = {"T": 4, "d_model": 6, "d_k": 3, "d_v": 2, "H": 2}
MOST = 12
MOST_SIDE_BY_SIDE = 24  # columns of all heads together


def machine(name: str, sizes: Mapping[str, int] | None = None) -> None:
    """Show the machine with one part lit.

    Parameters
    ----------
    name : str
        A part ("scores"), or what several parts make: "attention", "whole".
    sizes : mapping of str to int, optional
        T, d_model, d_k, d_v and H of the reader's example, each from 1 to 12; matrices have as many cells. A size that is not given is
        drawn as some small number and not named in the caption.

    Raises
    ------
    ValueError
        If there is no such part or size, or a size is out of range.
    """
    publish_diagram(machine_drawing(name, sizes))


def machine_drawing(name: str, sizes: Mapping[str, int] | None = None) -> Drawn:
    """Return the drawing that `machine` shows."""
    if name not in (*PARTS, *GROUPS):
        raise ValueError(f"name must be one of {', '.join((*GROUPS, *PARTS))}; got {name!r}")
    given = dict(sizes or {})
    for size, count in given.items():
        if size not in SIZES or not 1 <= count <= MOST:
            raise ValueError(f"sizes must be numbers from 1 to {MOST} for {', '.join(SIZES)}; got {count!r} for {size!r}")
    drawn = {**SIZES, **given}
    if drawn["H"] * drawn["d_v"] > MOST_SIDE_BY_SIDE:
        raise ValueError(f"sizes must have at most {MOST_SIDE_BY_SIDE} for H times d_v; got {drawn['H']} times {drawn['d_v']}")
    lit, sentence = GROUPS.get(name) or ((name,), PARTS[name])
    drawing = Diagram(f"machine-{name}", 656, 456)
    _draw(drawing, drawn, frozenset(lit))
    here = f" Here {_listed([f'{size} = {count}' for size, count in given.items()])}." if given else ""
    title = "The whole machine" if name == "whole" else f"The machine with its {name} lit"
    caption = f"The machine of attention. {sentence}{here}"
    return drawing.finish(title=title, caption=caption, alt=f"{title}. {sentence}{here} {WAY}")


WAY = (
    "The way of the numbers: X (T by d_model) times W_Q, W_K and W_V (d_model by d_k, d_k and d_v) gives Q and K (T by d_k) and V "
    "(T by d_v); Q times K transposed gives T by T scores; they are divided by the root of d_k, masked, and turned by the softmax of "
    "each row into weights P (T by T); P times V is the output of one head (T by d_v); the outputs of H heads stand side by side as Z "
    "(T by H d_v); W_O brings them to T by d_model, and X is added."
)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _draw(drawing: Diagram, sizes: Mapping[str, int], lit: frozenset[str]) -> None:
    length, d_model, d_k, d_v, heads = (sizes[name] for name in ("T", "d_model", "d_k", "d_v", "H"))
    cell = min(10.0, 60 / d_model, 40 / length, 48 / max(d_k, d_v), 48 / (heads * d_v))
    on = lit.__contains__

    drawing.panel(Area(374, 171, 540, 326), copies=2, lit=on("heads"))
    x = drawing.matrix((46, 170), length, d_model, cell=cell, lit=on("input"))
    _name(drawing, x, "X", "T × d_model", above=True, lit=on("input"))

    lanes = (("query", "Q", 64, d_k), ("key", "K", 170, d_k), ("value", "V", 276, d_v))
    made = {}
    for role, letter, y, width in lanes:
        weight = drawing.matrix((162, y), d_model, width, cell=cell, lit=on("projections"))
        _name(drawing, weight, f"W_{letter}", f"d_model × d_{'v' if role == 'value' else 'k'}", lit=on("projections"))
        made[role] = drawing.matrix((250, y), length, width, cell=cell, role=role, lit=on(role))
        _name(drawing, made[role], letter, f"T × d_{'v' if role == 'value' else 'k'}", lit=on(role))
        turn = () if role == "key" else ((96.0, 170.0), (96.0, float(y)))
        drawing.arrow(x.right, *turn, weight.left, lit=on("projections"))
        drawing.arrow(weight.right, made[role].left, lit=on(role) or on("projections"))

    scores = drawing.matrix((348, 64), length, length, cell=cell, role="scores", lit=on("scores"))
    _name(drawing, scores, "Q K^T", "", lit=on("scores"))
    drawing.text((358, max(scores.bottom[1] + 18, 100)), "T × T", anchor="start", lit=on("scores"), symbol=True)
    drawing.arrow(made["query"].right, scores.left, lit=on("scores"))
    drawing.arrow(made["key"].right, (348, 170), scores.bottom, lit=on("scores"))

    before = scores
    for part, text, centre, width in (("scale", "÷ √d_k", 418, 58), ("mask", "mask", 486, 52), ("softmax", "softmax", 566, 76)):
        chip = drawing.box(
            Area(centre, 64, width, 34), text, role="weights" if part == "softmax" else None, lit=on(part), symbol=part == "scale"
        )
        drawing.arrow(before.right, chip.left, lit=on(part))
        before = chip

    weights = drawing.matrix((566, 170), length, length, cell=cell, role="weights", lit=on("weights"))
    _name(drawing, weights, "P", "T × T", beside=True, lit=on("weights"))
    drawing.arrow(before.bottom, weights.top, lit=on("weights"))
    output = drawing.matrix((566, 276), length, d_v, cell=cell, role="output", lit=on("output"))
    _name(drawing, output, "P V", "T × d_v", beside=True, lit=on("output"))
    drawing.arrow(weights.bottom, output.top, lit=on("output"))
    drawing.arrow(made["value"].right, output.left, lit=on("output"))
    drawing.text((400, 318), "one of H heads", lit=on("heads"))

    merged = drawing.matrix((566, 408), length, heads * d_v, cell=cell, role="output", lit=on("heads"))
    drawing.text((merged.right[0] + 8, 412), "Z", anchor="start", lit=on("heads"), symbol=True)
    drawing.text((566, max(merged.bottom[1] + 17, 434)), "T × H d_v", lit=on("heads"), symbol=True)
    drawing.arrow(output.bottom, merged.top, lit=on("heads"))
    w_output = drawing.matrix((380, 408), heads * d_v, d_model, cell=cell, lit=on("merge"))
    _name(drawing, w_output, "W_O", "H d_v × d_model", lit=on("merge"))
    drawing.arrow(merged.left, w_output.right, lit=on("merge"))
    total = drawing.circle((190, 408), "+", lit=on("residual"))
    drawing.arrow(w_output.left, total.right, lit=on("residual"))
    drawing.arrow(x.bottom, (46, 368), (190, 368), total.top, lit=on("residual"))
    result = drawing.matrix((46, 408), length, d_model, cell=cell, lit=on("residual"))
    drawing.text((46, 447), "new X", lit=on("residual"))
    drawing.arrow(total.left, result.right, lit=on("residual"))


def _name(drawing: Diagram, area: Area, symbol: str, shape: str, *, lit: bool, above: bool = False, beside: bool = False) -> None:
    """Write the symbol of a matrix above it and its shape below, or both above, or both to the right."""
    (x, top), bottom = area.top, area.bottom[1]
    if beside:
        drawing.text((area.right[0] + 8, area.y - 3), symbol, anchor="start", lit=lit, symbol=True)
        drawing.text((area.right[0] + 8, area.y + 17), shape, anchor="start", lit=lit, symbol=True)
        return
    drawing.text((x, top - (33 if above else 11)), symbol, lit=lit, symbol=True)
    if shape:
        drawing.text((x, top - 11 if above else bottom + 17), shape, lit=lit, symbol=True)
