"""A whole layer of self-attention: every array as cells with its shape, every arrow with the line of NumPy that it stands for."""

from collections.abc import Mapping
from typing import NamedTuple

from attn_course.figures.diagram import Area, Diagram, Point, publish_diagram

MOST = {"batch": 3, "tokens": 5, "d_model": 9, "n_heads": 3}
VIEWS = [(200, 0, 230, 90), (0, 78, 236, 324), (208, 78, 236, 324), (416, 78, 236, 324), (56, 400, 414, 679)]
LEFT, SPINE, RIGHT = 48.0, 256.0, 464.0  # the three columns
LARGEST, MATRIX = 9.0, 30.0  # the largest side of a cell, and of a matrix of weights
BETWEEN, BEHIND, AROUND = 10.0, 3.0, 5.0  # heads; the sentences of a batch; the frame and its heads
LINE, BESIDE = 17.0, 7.0
WIDEST = 118.0  # half a shape in letters
FLAT = ("batch", "tokens", "d_model")
BY_HEAD = ("batch", "n_heads", "tokens", "d_k")
SQUARE = ("batch", "n_heads", "tokens", "tokens")
MIXER = ("d_model", "d_model")


def layer_tensors(batch: int, tokens: int, d_model: int, n_heads: int) -> None:
    """Show a layer of self-attention from its input to its output, with the shape of every array and the code of every step.

    The call between the heads' queries, keys and values and their outputs is lit. `batch`, `tokens`, `d_model`, `n_heads`: sentences,
    words of each, features, and heads that share the features: at most 3, 5, 9 and 3. Raises ValueError if a number is out of range,
    or the heads do not share the features evenly.
    """
    for name, count in zip(MOST, (batch, tokens, d_model, n_heads), strict=True):
        if not 1 <= count <= MOST[name]:
            raise ValueError(f"{name} must be from 1 to {MOST[name]}; got {count}")
    if d_model % n_heads:
        raise ValueError(f"d_model must be a multiple of n_heads; got {d_model} and {n_heads}")
    sizes = {"batch": batch, "tokens": tokens, "d_model": d_model, "n_heads": n_heads, "d_k": d_model // n_heads}
    drawing = Diagram(f"layer-attend-{batch}-{tokens}-{d_model}-{n_heads}", 652, 1079)
    _draw(_Sheet(drawing, sizes, _cell(sizes)))
    flat, by_head, square, mixer = (f"{_letters(shape)} = {_numbers(shape, sizes)}" for shape in (FLAT, BY_HEAD, SQUARE, MIXER))
    into, back = "".join(_split(sizes)), "".join(_merge(sizes))
    caption = (
        "A layer of self-attention. Sentences of the batch stand one behind the other, heads side by side in a frame, and each head has "
        f"{d_model} / {n_heads} = {sizes['d_k']} of the features. What the dashes enclose is your one call; around it are matrix products "
        "and reshaping."
    )
    alt = (
        "From top to bottom, every array as a grid of cells, the sentences of the batch one behind the other, and on each arrow its code. "
        f"The input x, {flat}, goes three ways: x @ w_query, x @ w_key and x @ w_value, matrices of {mixer}, give Q, K and V, {flat}. "
        f"Q{into} and the same for K and V give q, k and v, {by_head}, with the heads side by side in a frame. Here a dashed panel begins: "
        f"your call: attend(q, k, v). In it q @ k.swapaxes(-1, -2) / np.sqrt(d_k) gives scores, {square}; softmax over the last axis gives "
        f"weights, {square}; weights @ v gives heads, {by_head}. The panel ends. heads{back} gives merged, {flat}, and merged @ w_output, "
        f"a matrix of {mixer}, gives output, {flat}."
    )
    publish_diagram(drawing.finish(title="The arrays of a layer of self-attention", caption=caption, alt=alt, views=VIEWS))


class _Sheet(NamedTuple):
    """The drawing and what all its parts are drawn with."""

    drawing: Diagram
    sizes: Mapping[str, int]
    cell: float

    @property
    def reach(self) -> float:
        """How far the last sentence of the batch stands out behind the first one."""
        return BEHIND * (self.sizes["batch"] - 1)

    def flat(self, name: str, centre: Point, role: str | None = None, *, blocks: int = 1) -> Area:
        """Draw an array of sentences, its columns in blocks, and return the area of the first sentence."""
        x, y = centre
        rows, columns = self.sizes["tokens"], self.sizes["d_model"]
        front = Area(x, y, columns * self.cell, rows * self.cell)
        self._copies(front, role, lit=False)
        for block in range(blocks):
            left = x + (block - (blocks - 1) / 2) * front.width / blocks
            self.drawing.matrix((left, y), rows, columns // blocks, cell=self.cell, role=role, lit=False)
        self._name(name, FLAT, (front.right[0] + self.reach + BESIDE, y), lit=False)
        return front

    def under(self, front: Area) -> Point:
        """Return where an arrow leaves an array of sentences: below the last of them."""
        return front.x, front.bottom[1] + self.reach

    def heads(self, name: str, centre: Point, role: str, shape: tuple[str, ...]) -> Area:
        """Draw an array with an axis for heads, each a grid in one frame, and return the frame."""
        x, y = centre
        rows, columns, n_heads = self.sizes[shape[-2]], self.sizes[shape[-1]], self.sizes["n_heads"]
        grid = Area(0, 0, columns * self.cell, rows * self.cell)
        width = n_heads * grid.width + (n_heads - 1) * BETWEEN + self.reach + 2 * AROUND
        frame = self.drawing.box(Area(x, y, width, grid.height + self.reach + 2 * AROUND), lit=False)
        for head in range(n_heads):
            left = frame.left[0] + AROUND + head * (grid.width + BETWEEN)
            front = grid._replace(x=left + grid.width / 2, y=y - self.reach / 2)
            self._copies(front, role, lit=True)
            self.drawing.matrix((front.x, front.y), rows, columns, cell=self.cell, role=role)
        self._name(name, shape, (frame.right[0] + BESIDE, y), lit=True)
        return frame

    def matrix(self, name: str, wire: Point) -> None:
        """Draw a matrix of weights to the right of the arrow that it meets."""
        x, y = wire
        features = self.sizes["d_model"]
        cell = min(0.6 * LARGEST, MATRIX / features)
        area = self.drawing.matrix((x + 18 + features * cell / 2, y), features, features, cell=cell, lit=False)
        self.drawing.wire(wire, area.left, lit=False)
        self._name(name, MIXER, (area.right[0] + BESIDE, y), lit=False)

    def code(self, at: Point, *lines: str, lit: bool = True) -> None:
        """Write lines of code to the right of an arrow; the first has its baseline at `at`."""
        for place, line in enumerate(lines):
            self.drawing.text((at[0] + 9, at[1] + place * LINE), line, anchor="start", code=True, lit=lit)

    def _name(self, name: str, shape: tuple[str, ...], at: Point, lit: bool) -> None:
        x, y = at[0], at[1] - 1.5 * LINE + 5
        half = (len(shape) + 1) // 2
        letters = _letters(shape[:half])[:-1] + ",", _letters(shape[half:])[1:]
        self.drawing.text((x, y), name, anchor="start", code=True)
        for place, line in enumerate(letters, 1):
            self.drawing.text((x, y + place * LINE), line, anchor="start", lit=False, small=True)
        self.drawing.text((x, y + 3 * LINE), _numbers(shape, self.sizes), anchor="start", code=True, lit=lit)

    def _copies(self, front: Area, role: str | None, lit: bool) -> None:
        self.drawing.copies(front, self.sizes["batch"] - 1, step=BEHIND, role=role, lit=lit)


def _draw(sheet: _Sheet) -> None:
    drawing, n_heads = sheet.drawing, sheet.sizes["n_heads"]
    x = sheet.flat("x", (SPINE, 36))
    drawing.panel(Area(326, 550.5, 648, 453))
    drawing.text((64, 737), "your call:", anchor="start")
    drawing.text((64, 737 + LINE), "attend(q, k, v)", anchor="start", code=True)
    split = {}
    for column, letter, role in ((LEFT, "Q", "query"), (RIGHT, "V", "value"), (SPINE, "K", "key")):
        whole = sheet.flat(letter, (column, 232), role, blocks=n_heads)
        drawing.arrow(sheet.under(x), *(() if column == SPINE else ((SPINE, 86), (column, 86))), whole.top, lit=False)
        sheet.matrix(f"w_{role}", (column, 130))
        sheet.code((column, 186), f"x @ w_{role}", lit=False)
        split[letter] = sheet.heads(letter.lower(), (column, 366), role, BY_HEAD)
        drawing.arrow(sheet.under(whole), split[letter].top, lit=False)
        first, then = _split(sheet.sizes)
        sheet.code((column, 292), letter + first, then, lit=False)
    scores = sheet.heads("scores", (SPINE, 496), "scores", SQUARE)
    drawing.wire(split["Q"].bottom, (LEFT, 412), (SPINE, 412), (SPINE, 426))
    drawing.arrow(split["K"].bottom, scores.top)
    sheet.code((SPINE, 434), "q @ k.swapaxes(-1, -2)", "/ np.sqrt(d_k)")
    weights = sheet.heads("weights", (SPINE, 614), "weights", SQUARE)
    drawing.arrow(scores.bottom, weights.top)
    sheet.code((SPINE, 552), "softmax(scores)")
    drawing.text((SPINE + 9, 552 + LINE), "over the last axis", anchor="start", small=True)
    heads = sheet.heads("heads", (SPINE, 730), "output", BY_HEAD)
    drawing.wire(split["V"].bottom, (RIGHT, 663), (SPINE, 663), (SPINE, 677))
    drawing.arrow(weights.bottom, heads.top)
    sheet.code((SPINE, 685), "weights @ v")
    merged = sheet.flat("merged", (SPINE, 860), "output", blocks=n_heads)
    drawing.arrow(heads.bottom, merged.top, lit=False)
    first, then = _merge(sheet.sizes)
    sheet.code((SPINE, 798), "heads" + first, then, lit=False)
    output = sheet.flat("output", (SPINE, 1041), "output")
    drawing.arrow(sheet.under(merged), output.top, lit=False)
    sheet.matrix("w_output", (SPINE, 939))
    sheet.code((SPINE, 995), "merged @ w_output", lit=False)


def _cell(sizes: Mapping[str, int]) -> float:
    """Return the side of a cell: the largest with which shapes find room beside their grids."""
    n_heads = sizes["n_heads"]
    taken = (n_heads - 1) * BETWEEN + BEHIND * (sizes["batch"] - 1) + 2 * AROUND
    beside = RIGHT - SPINE - WIDEST - 14 - taken
    below = 2 * (RIGHT - SPINE - WIDEST - 15) - taken
    return min(LARGEST, beside / sizes["d_model"], below / (n_heads * sizes["tokens"]))


def _split(sizes: Mapping[str, int]) -> tuple[str, str]:
    return f".reshape({sizes['batch']}, {sizes['tokens']}, {sizes['n_heads']}, {sizes['d_k']})", ".swapaxes(1, 2)"


def _merge(sizes: Mapping[str, int]) -> tuple[str, str]:
    return ".swapaxes(1, 2)", f".reshape{_numbers(FLAT, sizes)}"


def _letters(shape: tuple[str, ...]) -> str:
    return f"({', '.join(shape)})"


def _numbers(shape: tuple[str, ...], sizes: Mapping[str, int]) -> str:
    return f"({', '.join(str(sizes[axis]) for axis in shape)})"
