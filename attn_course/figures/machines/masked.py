"""A mask on the scores of a short text: which key each query may read, and what is left."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST_TOKENS = 8
MOST_LETTERS = 7
ACROSS, DOWN = 70.0, 34.0  # from one cell to the next
LEFT, TOP = 86.0, 76.0
MINUS = "\u2212"


def masked(tokens: Sequence[str], scores: ArrayLike, mask: ArrayLike, *, query: int) -> None:
    """Show a table of whole scores, one row for each query, with the hidden ones striped; one query is lit.

    `tokens`: from 2 to 8 words of at most 7 letters. `scores` (n, n): whole numbers from -99 to 99. `mask` (n, n): True where the
    query may read the key. `query`: the row that is lit, counted from 0. Raises ValueError if there are too few or too many
    tokens, one is too long, a shape does not fit, scores are not whole, or `query` is out of range.
    """
    count = len(tokens)
    if not 2 <= count <= MOST_TOKENS or not all(0 < len(token) <= MOST_LETTERS for token in tokens):
        raise ValueError(f"tokens must be 2 to {MOST_TOKENS} words of at most {MOST_LETTERS} letters; got {list(tokens)}")
    numbers, seen = np.asarray(scores), np.asarray(mask, dtype=bool)
    for name, array in (("scores", numbers), ("mask", seen)):
        if array.shape != (count, count):
            raise ValueError(f"{name} must have the shape {(count, count)}; got {array.shape}")
    if not np.array_equal(numbers, np.clip(np.round(numbers), -99, 99)):
        raise ValueError(f"scores must be whole numbers from -99 to 99; got {numbers.tolist()}")
    if not 0 <= query < count:
        raise ValueError(f"query must be from 0 to {count - 1}; got {query}")

    drawing = Diagram(f"masked-{count}-{query}", LEFT + ACROSS * count + 4, TOP + DOWN * count + 4)
    drawing.text((LEFT + ACROSS * ((count - 1) // 2 + 0.5), 20), "keys")
    drawing.text((LEFT - 8, 54), "queries", anchor="end")
    for column, token in enumerate(tokens):
        drawing.text((LEFT + ACROSS * (column + 0.5), 54), token, lit=bool(seen[query, column]))
    for row, token in enumerate(tokens):
        lit = row == query
        drawing.text((LEFT - 8, TOP + DOWN * row + 5), token, anchor="end", lit=lit)
        for column in range(count):
            cell = Area(LEFT + ACROSS * (column + 0.5), TOP + DOWN * row, ACROSS - 4, DOWN - 4)
            if seen[row, column]:
                number = int(numbers[row, column])
                drawing.box(cell, f"{MINUS if number < 0 else ''}{abs(number)}", role="scores", lit=lit)
            else:
                drawing.hatch(drawing.tile(cell, lit=False))
    hidden = [f"“{token}”" for token, may in zip(tokens, seen[query], strict=True) if not may]
    may = f"may not read {' or '.join(hidden)}" if hidden else "may read every token"
    sentence = f"“{tokens[query]}” {may}."
    caption = f"Rows are queries, columns are keys, and striped scores become minus infinity. {sentence}"
    alt = f"A table of scores with {count} rows and columns, {int((~seen).sum())} of its {count * count} cells striped. {sentence}"
    publish_diagram(
        drawing.finish(
            title="A mask on the scores of a text", caption=caption, alt=alt, views=drawing.strips(*[LEFT + ACROSS * 4] * (count > 4))
        )
    )
