"""Encoder and decoder, and what each of the two paddings hides."""

from collections.abc import Callable, Sequence

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST_TOKENS = 5
MOST_LETTERS = 5
CELL = 24.0
PADDING = "pad"


def paddings(source: Sequence[str], target: Sequence[str], padded_to: tuple[int, int]) -> None:
    """Show which queries may attend to which keys when both sequences are padded to the lengths of their batch.

    `source`, `target`: tokens without padding, each of at most 5 letters. `padded_to`: lengths of the two with padding, at most
    5. Raises ValueError if tokens or lengths are out of range.
    """
    for name, tokens, length in zip(("source", "target"), (source, target), padded_to, strict=True):
        if not 1 <= len(tokens) <= length <= MOST_TOKENS or not all(0 < len(token) <= MOST_LETTERS for token in tokens):
            raise ValueError(
                f"{name} must be 1 to {MOST_TOKENS} tokens of at most {MOST_LETTERS} letters, and not longer than with its padding; "
                f"got {list(tokens)} and {length}"
            )
    q_len, kv_len = padded_to[1], padded_to[0]
    drawing = Diagram(f"paddings-{kv_len}-{q_len}", 660, 258 + CELL * MOST_TOKENS)
    encoder = _side(drawing, 156, "encoder", "key", source, kv_len)
    decoder = _side(drawing, 504, "decoder", "query", target, q_len)
    drawing.arrow(encoder.right, decoder.left)
    drawing.text((330, encoder.y - 10), "K, V", symbol=True)

    read, written = len(source), len(target)
    grids: tuple[tuple[float, str, str, int, int, Callable[[int, int], bool], int], ...] = (
        (110, "encoder to itself", "T_k × T_k", kv_len, kv_len, lambda i, j: j < read, read),
        (330, "decoder to itself", "T_q × T_q", q_len, q_len, lambda i, j: j <= i and j < written, written),
        (550, "decoder to encoder", "T_q × T_k", q_len, kv_len, lambda i, j: j < read, written),
    )
    for x, title, shape, rows, columns, allowed, real in grids:
        drawing.text((x, 198), title)
        top, left = 212 + CELL / 2, x - CELL * (columns - 1) / 2
        for i in range(rows):
            for j in range(columns):
                cell = Area(left + j * CELL, top + i * CELL, CELL, CELL)
                seen = allowed(i, j)
                drawing.tile(cell, role="scores" if seen else None, lit=seen and i < real)
                if not seen:
                    drawing.hatch(cell)
        drawing.text((x, 212 + rows * CELL + 20), shape, symbol=True)
    caption = (
        "Rows are queries, columns are keys, and striped cells are hidden. Padding of the source is hidden wherever it would be a key, in "
        "the encoder and from the decoder. Padding of the target comes last, so the causal mask hides it; its own rows (pale) are left out "
        "of the loss."
    )
    alt = (
        f"An encoder reads {_count(read, kv_len)} and hands keys and values to a decoder, which reads {_count(written, q_len)}. "
        f"Below them stand three grids of scores. {caption}"
    )
    below = 88 + CELL * MOST_TOKENS
    views = [(0, 0, 350, 160), (350, 0, 310, 160), (0, 170, 400, below), (460, 170, 200, below)]
    publish_diagram(drawing.finish(title="Encoder, decoder and two paddings", caption=caption, alt=alt, views=views))


def _count(real: int, length: int) -> str:
    return f"{real} {'token' if real == 1 else 'tokens'} and {length - real} of padding"


def _side(drawing: Diagram, x: float, name: str, role: str, tokens: Sequence[str], length: int) -> Area:
    """Draw an encoder or a decoder above the tokens that it reads, and return its area."""
    body = drawing.box(Area(x, 44, 292, 44), name, role=role)
    pitch = 300 / length
    for index in range(length):
        real = index < len(tokens)
        centre = x - 150 + pitch * (index + 0.5)
        token = drawing.box(
            Area(centre, 130, min(pitch - 6, 92), 34), tokens[index] if real else PADDING, role=role if real else None, lit=real
        )
        drawing.arrow(token.top, (centre, 66), lit=real)
    return body
