"""What the programs of a kernel load and store."""

from attn_course.figures.diagram import Area, Diagram, publish_diagram

ROOM, WIDEST, LEAST_BLOCK, MOST_NUMBERS = 552, 24, 90, 48  # pixels, but for the last


def programs(n: int, block: int) -> None:
    """Show which numbers of two arrays each program loads, which it stores, and what its mask leaves out.

    `n`: length of the arrays. `block`: numbers in a block. Raises ValueError if these are too many, or the blocks too small.
    """
    count = -(-n // block) if block > 0 else 0
    lane = min(WIDEST, ROOM / max(1, count * block))
    if not 1 <= n <= count * block <= MOST_NUMBERS or lane * block < LEAST_BLOCK:
        raise ValueError(f"wanted at most {MOST_NUMBERS} numbers in all blocks, and blocks that can be read; got {n} and {block}")
    width, rest = lane * block, count * block - n
    drawing = Diagram(f"programs-{n}-{block}", 660, 300)
    left = 330 - width * count / 2
    arrays = (("x", "query", 40), ("y", "key", 80), ("out", "output", 260))
    for name, role, y in arrays:
        drawing.text((left - 20, y + 5), name, symbol=name != "out")
        drawing.matrix((left + lane * n / 2, y), 1, n, cell=lane, role=role)
        if rest:
            drawing.hatch(Area(left + lane * (n + rest / 2), y, lane * rest, lane))
    for program in range(count):
        middle = left + width * (program + 0.5)
        area = drawing.box(Area(middle, 170, width - 14, 56), f"program {program}")
        read, written = Area(middle, 60, width - 4, 72), Area(middle, 260, width - 4, 32)
        drawing.panel(read)
        drawing.panel(written)
        drawing.arrow(read.bottom, area.top)
        drawing.arrow(area.bottom, written.top)
        drawing.text((middle + 8, 120), "load", anchor="start")
        drawing.text((middle + 8, 228), "store", anchor="start")
    blocks = "; ".join(f"program {each} has {each * block} to {min(n, (each + 1) * block) - 1}" for each in range(count))
    tail = f" The last block ends {rest} addresses beyond the arrays. They are hatched, and the mask leaves them out." if rest else ""
    told = f"Each program loads a block of {block} numbers of x and of y, adds them, and stores a block of out."
    drawn = drawing.finish(
        title=f"{count} programs share {n} numbers",
        caption=f"{told}{tail}",
        alt=f"Arrays x, y and out of {n} numbers: {blocks}. {told}{tail}",
        views=drawing.strips(left + width * (count - count // 2)),
    )
    publish_diagram(drawn)
