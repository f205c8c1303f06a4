"""What to tell and to ask a learner whose arrays do not fit, chosen by their shapes.

Like `run`, this file knows no right answer and imports nothing of the course.
"""

import re

BROADCAST = re.compile(r"^operands could not be broadcast together with (remapped )?shapes (.*?)(requested|$)")  # NumPy's words
PRODUCT = (
    re.compile(r"^matmul: Input operand 1 has a mismatch .*\(size (?P<rows>\d+) is different from (?P<columns>\d+)\)"),
    re.compile(r"^shapes .* not aligned: (?P<columns>\d+) \(dim \d+\) != (?P<rows>\d+) \(dim 0\)"),
    re.compile(r"^mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<columns>\d+) and (?P<rows>\d+)x\d+\)"),  # PyTorch's
)
INTO = (
    re.compile(r"^could not broadcast input array from shape \((?P<given>[\d,]*)\) into shape \((?P<place>[\d,]*)\)$"),
    re.compile(
        r"^non-broadcastable output operand with shape \((?P<place>[\d,]*)\) doesn't match the broadcast shape \((?P<given>[\d,]*)\)$"
    ),
)
NUMBER = re.compile(r"^matmul: Input operand ([01]) does not have enough dimensions \(has 0,")
AXIS = re.compile(r"^(?:\w+: )?axis -?\d+ is out of bounds for array of dimension (\d+)")
BOOLEAN = re.compile(r"^boolean index did not match indexed array along ")
REDUCTION = re.compile(r"\b(?:sum|mean|max|min|amax|amin|norm|std|var|prod|average|logsumexp)\(")
KEPT = re.compile(r"\bkeepdims?\b|\bNone\b|newaxis|expand_dims|unsqueeze|reshape")
DIAGONAL = re.compile(r"\bdiag\(")


def misfit(error: str) -> str:
    """Return in plain words what does not fit what, to stand before "in line 2"; "" if the error is another one.

    >>> misfit("could not broadcast input array from shape (2,3) into shape (2,)")
    'an array of the shape (2, 3) does not fit into one of the shape (2,)'
    """
    for pattern in PRODUCT:
        if found := pattern.match(error):
            left, right = (f"{found[name]} {name.removesuffix('s' * (found[name] == '1'))}" for name in ("columns", "rows"))
            return f"the left factor has {left} and the right one {right}, so they cannot be multiplied"
    for pattern in INTO:
        if found := pattern.match(error):
            return f"an array of the shape {_shape(found['given'])} does not fit into one of the shape {_shape(found['place'])}"
    if found := NUMBER.match(error):
        return f"the {('left', 'right')[int(found[1])]} factor of a matrix product is a single number"
    found = BROADCAST.match(error)
    if not found or len(listed := _shapes(found)) < 2:
        return ""
    *most, last = listed
    shapes = f"{', '.join(map(str, most))} and {last}"
    if found[3]:
        return f"the shapes {shapes} differ in front of their last two axes, so they cannot be multiplied"
    if found[1]:
        return f"arrays of the shapes {shapes} do not fit the letters of einsum"
    return f"arrays of the shapes {shapes} cannot be combined entry by entry"


def _shape(text: str) -> tuple[int, ...]:
    """A shape as NumPy writes it, without its brackets."""
    return tuple(int(length) for length in text.split(",") if length)


def _shapes(found: re.Match[str]) -> list[tuple[int, ...]]:
    """The shapes of BROADCAST; of each remapped one the original."""
    return [_shape(shape) for shape in re.findall(r"\(([\d,]*)\)->" if found[1] else r"\(([\d,]*)\)", found[2])]


def advice_on_shapes(error: str, code: str) -> str:
    """Return advice on an error about shapes; "" if they tell nothing.

    `error`: what NumPy said. `code`: the learner's function from its first line to the one that failed.
    """
    if beyond := AXIS.match(error):
        axes = int(beyond[1])
        named = f"axes 0 to {axes - 1}, or from the end -1 to -{axes}" if axes > 1 else "axis 0 and no other" if axes else "no axis"
        return f"this array has {named}"
    if BOOLEAN.match(error):
        return "a boolean index must have the shape of what it picks from; np.where broadcasts"
    found = BROADCAST.match(error)
    shapes = _shapes(found) if found and not found[1] else []
    if len(shapes) != 2:
        return ""
    one, other = shapes
    if len(one) == len(other):
        return _pairs(one, other)
    small, large = sorted((one, other), key=len)
    column = _as_column(small, large)
    if not column:
        return ""
    lines = code.splitlines()
    if lines and DIAGONAL.search(lines[-1]):
        return "np.diag makes a matrix of a vector; of a matrix it takes the diagonal"
    if any(REDUCTION.search(line) and not KEPT.search(line) for line in lines):
        return "did a reduction lose its axis? See keepdims."
    return f"with an axis of length 1 more, {small} would be {column}, and fit"


def _pairs(one: tuple[int, ...], other: tuple[int, ...]) -> str:
    """Advice where two tables of rows meet as they are: each row with each row needs two axes of rows."""
    if len(one) < 2 or one[:-2] != other[:-2] or one[-1] != other[-1]:
        return ""
    first, second = (*one[:-1], 1, one[-1]), (*other[:-2], 1, *other[-2:])
    both = (*one[:-1], other[-2], one[-1])
    return f"if each row of one is to meet each row of the other, both need an axis more: {first} and {second} give {both}"


def _as_column(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    """The smaller shape with the axis of length 1 behind its first that lets it fit; () if it is not one axis that is missing."""
    if len(small) == len(large) - 1:
        for place in range(1, len(large)):
            if small == large[:place] + large[place + 1 :]:
                return (*small[:place], 1, *small[place:])
    return ()
