"""Figures of the lesson on writing: the machine, and the arrays in attention with a cache."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram
from attn_course.figures.machines.whole import machine as show_machine


def machine() -> None:
    """Show the machine with what a cache keeps lit."""
    show_machine("kept")


def shapes() -> None:
    """Show the arrays in the lesson's `attend`: two new words behind three kept ones, four query heads and two key heads."""
    cell, step, drawing = 12.0, 4.0, Diagram("shapes", 402, 448)
    across = {"query": 165.0, "key": 255.0, "value": 345.0}

    def sheets(centre: tuple[float, float], rows: int, columns: int, count: int, role: str | None) -> Area:
        drawing.copies(Area(*centre, columns * cell, rows * cell), count - 1, step=step, role=role)
        return drawing.matrix(centre, rows, columns, cell=cell, role=role)

    def below(area: Area, count: int) -> tuple[float, float]:
        return area.x, area.bottom[1] + step * (count - 1)

    for y, said, more in (
        (24, "x", "2 new words"),
        (92, "block.sides", "4, 2 and 2 heads"),
        (252, "remembered", "3 kept + 2 new"),
        (345, "scores", "2 new by 5"),
        (420, "output", "2 new words"),
    ):
        drawing.text((4, y - 2), said, anchor="start", code=True)
        drawing.text((4, y + 16), more, anchor="start", small=True)
    x = drawing.matrix((across["key"], 24), 2, 8, cell=cell)
    heads = {role: sheets((at, 92), 2, 2, 4 if role == "query" else 2, role) for role, at in across.items()}
    drawing.arrow(x.left, (across["query"], 24), heads["query"].top)
    drawing.arrow(x.bottom, heads["key"].top)
    drawing.arrow(x.right, (across["value"], 24), heads["value"].top)
    for role, said in (("query", "queries"), ("key", "keys"), ("value", "values")):
        drawing.text((across[role] + 7, 62), said, anchor="start", small=True)
    turned = {role: drawing.box(Area(across[role], 160, 66, 28), "turned", role=role) for role in ("query", "key")}
    for role, area in turned.items():
        drawing.arrow(below(heads[role], 4 if role == "query" else 2), area.top)
    all_words = {}
    for role in ("key", "value"):
        drawing.copies(Area(across[role], 252, 2 * cell, 5 * cell), 1, step=step, role=role)
        kept = drawing.matrix((across[role], 252 - cell), 3, 2, cell=cell, role=role, lit=False)
        drawing.matrix((across[role], 252 + 1.5 * cell), 2, 2, cell=cell, role=role)
        drawing.arrow(turned["key"].bottom if role == "key" else below(heads["value"], 2), kept.top)
        all_words[role] = Area(across[role], 252, 2 * cell, 5 * cell)
    scores = sheets((210, 345), 2, 5, 4, "scores")
    drawing.hatch(Area(scores.right[0] - cell / 2, scores.top[1] + cell / 2, cell, cell))
    drawing.arrow(turned["query"].bottom, (across["query"], 345), scores.left)
    drawing.arrow(below(all_words["key"], 2), (across["key"], 308), (scores.x, 308), scores.top)
    output = sheets((across["value"], 345), 2, 2, 4, "output")
    drawing.arrow((scores.right[0] + 3 * step, 345), output.left)
    drawing.text((289, 336), "softmax", small=True)
    drawing.arrow(below(all_words["value"], 2), output.top)
    joined = drawing.matrix((across["key"], 420), 2, 8, cell=cell)
    drawing.arrow(below(output, 4), (across["value"], 420), joined.right)
    told = (
        "In each sheet, rows are words; sheets behind each other are heads. Kept rows are pale, and the hatched score is hidden: the first "
        "new word must not see the second."
    )
    alt = (
        "Two new words become queries in four heads, keys and values in two. Queries and keys are turned, the three kept rows come before "
        "the new ones of keys and values, the scores are two by five in each head, with one of them hidden, and the outputs of the heads "
        "stand side by side again."
    )
    publish_diagram(drawing.finish(title="The arrays in attend", caption=told, alt=alt))
