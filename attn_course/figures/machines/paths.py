"""How far a token is from what needs it: step by step through a recurrent network, and in one step of attention."""

from collections.abc import Sequence

from attn_course.figures.diagram import Area, Diagram, publish_diagram

MOST_TOKENS = 8
MOST_LETTERS = 7


def paths(tokens: Sequence[str], source: int) -> None:
    """Show the way from one token to the last position, in a recurrent network and in attention.

    `tokens`: from 2 to 8 words of at most 7 letters. `source`: where the way begins, counted from 0; before the last token.
    Raises ValueError if there are too few or too many tokens, one is too long, or `source` is out of range.
    """
    count = len(tokens)
    if not 2 <= count <= MOST_TOKENS or not all(0 < len(token) <= MOST_LETTERS for token in tokens):
        raise ValueError(f"tokens must be 2 to {MOST_TOKENS} words of at most {MOST_LETTERS} letters; got {list(tokens)}")
    if not 0 <= source < count - 1:
        raise ValueError(f"source must be from 0 to {count - 2}; got {source}")
    steps = count - 1 - source
    drawing = Diagram(f"paths-{count}-{source}", 680, 424, turns=steps + 1)
    drawing.text((8, 24), f"A recurrent network: {steps} {'step' if steps == 1 else 'steps'} from state to state", anchor="start")
    pitch = 664 / count
    before = None
    for index, token in enumerate(tokens):
        x = 8 + pitch * (index + 0.5)
        state = drawing.box(Area(x, 68, 44, 36), f"h_{index + 1}", lit=index >= source, symbol=True)
        below = drawing.box(Area(x, 140, pitch - 5, 34), token, role="value" if index == source else None, lit=index == source)
        drawing.arrow(below.top, state.bottom, lit=index == source)
        if before:
            drawing.arrow(before.right, state.left, lit=index > source)
        before = state
        if index >= source:
            with drawing.during(index - source + 1, index - source + 1):
                drawing.dot(state.top, "value")
    drawing.text((8, 216), "Attention: one step, from any token", anchor="start")
    last = 8 + pitch * (count - 0.5)
    output = drawing.box(Area(min(last, 606), 260, 132, 40), "average", role="weights")
    for index in (*(other for other in range(count) if other != source), source):
        x = 8 + pitch * (index + 0.5)
        below = drawing.box(Area(x, 398, pitch - 5, 34), tokens[index], role="value" if index == source else None, lit=index == source)
        entry = output.x - 54 + 108 * index / (count - 1)
        drawing.arrow(below.top, (entry, output.bottom[1]), lit=index == source)
    with drawing.during(1, 1):
        drawing.dot(below.top, "value")
    with drawing.during(2, steps + 1):
        drawing.dot(output.top, "value")
    sentence = (
        f"In the recurrent network “{tokens[source]}” reaches the last position through {steps} {'update' if steps == 1 else 'updates'} "
        "of the state; with attention it arrives at once, with a weight of its own."
    )
    alt = (
        "Two drawings of the same tokens. Above, each token changes a state that is handed from left to right. Below, each token is joined "
        f"by an arrow of its own to an average at the last position. {sentence}"
    )
    half = 8 + pitch * ((count + 1) // 2)
    views = [(left, top, width, high) for top, high in ((0, 170), (196, 228)) for left, width in ((0, max(half, 400)), (half, 680 - half))]
    publish_diagram(drawing.finish(title="The path from a token to the last position", caption=sentence, alt=alt, views=views))
